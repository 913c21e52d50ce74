/* A schema table as Markdown: one section with a table for each map. */
#include <math.h>
#include <stdio.h>

#include "config/inside.h"

enum { KEY_LONGEST = 256 };

/* Text for a table cell: a '|' would end it. */
static void write_cell(const char *text, dts_text *out) {
    for (size_t i = 0; text[i] != '\0'; i++) {
        dts_text_add(out, text[i] == '|' ? "\\" : "");
        dts_text_add_bytes(out, text[i] == '\n' ? " " : &text[i], 1);
    }
}

static void write_bounds(const dts_field *field, dts_field_type type, dts_text *out) {
    bool lower = isfinite(field->minimum);
    bool upper = field->maximum >= field->minimum && isfinite(field->maximum);
    if ((field->minimum == 0 && field->maximum == 0) || (!lower && !upper)) {
        return;
    }
    dts_dimension dimension = type == DTS_FIELD_INT ? DTS_DIM_NUMBER : field->dimension;
    dts_text_add(out, lower && upper ? ", " : lower ? ", at least " : ", at most ");
    dts_quantity_format_exact(lower ? field->minimum : field->maximum, dimension, out);
    if (lower && upper) {
        dts_text_add(out, " to ");
        dts_quantity_format_exact(field->maximum, dimension, out);
    }
}

static void write_names(const char *const *names, dts_text *out) {
    for (size_t i = 0; names[i] != NULL; i++) {
        dts_text_printf(out, "%s`%s`", i == 0 ? "" : ", ", names[i]);
    }
}

static void write_type(const dts_field *field, dts_field_type type, dts_text *out) {
    switch (type) {
        case DTS_FIELD_BOOL:
            dts_text_add(out, "`true` or `false`");
            break;
        case DTS_FIELD_INT:
            dts_text_add(out, "whole number");
            write_bounds(field, type, out);
            break;
        case DTS_FIELD_QUANTITY:
            dts_text_printf(out, "%s such as %s", dts_dimension_noun(field->dimension),
                            dts_dimension_example(field->dimension));
            write_bounds(field, type, out);
            break;
        case DTS_FIELD_STRING:
            dts_text_add(out, "text");
            break;
        case DTS_FIELD_ENUM:
            write_names(field->names, out);
            break;
        case DTS_FIELD_MAP:
            dts_text_add(out, "map, see below");
            break;
        case DTS_FIELD_LIST:
            dts_text_add(out, "list: ");
            if (field->sub != NULL) {
                dts_text_add(out, "maps, see below");
            } else {
                write_type(field, field->element_type, out);
            }
            break;
        case DTS_FIELD_PROFILE:
            dts_text_printf(out, "profile of `%s/`, see below", field->profile_folder);
            break;
        case DTS_FIELD_CUSTOM:
            if (field->names != NULL) {
                write_names(field->names, out);
                dts_text_add(out, " or more, see its meaning");
            } else {
                dts_text_add(out, "see its meaning");
            }
    }
}

static void write_section(const dts_schema *schema, const char *title, const char *prefix, dts_text *out) {
    dts_text_printf(out, "## %s\n\n", title);
    if (schema->help != NULL) {
        dts_text_printf(out, "%s\n\n", schema->help);
    }
    dts_text_add(out, "| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *f = &schema->fields[i];
        dts_text_printf(out, "| `%s` | ", f->key);
        write_type(f, f->type, out);
        if (f->preset != NULL) {
            dts_text_add(out, " | `");
            write_cell(f->preset, out);
            dts_text_add(out, "` | ");
        } else {
            dts_text_add(out, f->required ? " | required | " : " | - | ");
        }
        write_cell(f->help == NULL ? "" : f->help, out);
        dts_text_add(out, " |\n");
    }
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *f = &schema->fields[i];
        if (f->sub != NULL) {
            char key[KEY_LONGEST];
            char heading[KEY_LONGEST + 8];
            snprintf(key, sizeof key, "%s%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", f->key,
                     f->type == DTS_FIELD_LIST ? "[]" : "");
            snprintf(heading, sizeof heading, "`%s`", key);
            dts_text_add(out, "\n");
            write_section(f->sub, heading, key, out);
        }
    }
}

void dts_schema_write_reference(const dts_schema *schema, dts_text *out) {
    write_section(schema, schema->name, "", out);
}
