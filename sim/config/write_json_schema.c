/* A schema table as a JSON Schema, draft 2020-12, for completion and checks in editors. Editors read YAML with it, so
 * quantities are text with a pattern. Where a scalar may stand, {value: …, source: …} may. */
#include <math.h>
#include <string.h>

#include "config/inside.h"

enum { INDENT = 2 };

/* Where the writer is: the text and the indentation of the object being written. */
typedef struct writer {
    dts_text *out;
    size_t indent;
    bool first; /* no member of the current object was written yet */
} writer;

static void write_string(const char *text, dts_text *out) {
    dts_text_add(out, "\"");
    for (size_t i = 0; text[i] != '\0'; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            dts_text_printf(out, "\\%c", c);
        } else if (c < 0x20) {
            dts_text_printf(out, "\\u%04x", c);
        } else {
            dts_text_add_bytes(out, text + i, 1);
        }
    }
    dts_text_add(out, "\"");
}

/* Begins the next member of the current object. */
static void member(writer *w, const char *name) {
    dts_text_add(w->out, w->first ? "\n" : ",\n");
    dts_text_add_repeated(w->out, " ", w->indent);
    write_string(name, w->out);
    dts_text_add(w->out, ": ");
    w->first = false;
}

static void member_string(writer *w, const char *name, const char *value) {
    if (value != NULL) {
        member(w, name);
        write_string(value, w->out);
    }
}

static void open(writer *w) {
    dts_text_add(w->out, "{");
    w->indent += INDENT;
    w->first = true;
}

static void close(writer *w) {
    w->indent -= INDENT;
    dts_text_add(w->out, "\n");
    dts_text_add_repeated(w->out, " ", w->indent);
    dts_text_add(w->out, "}");
    w->first = false;
}

static void member_bounds(writer *w, const dts_field *field) {
    if ((field->minimum == 0 && field->maximum == 0) || field->type == DTS_FIELD_LIST) {
        return;
    }
    if (isfinite(field->minimum)) {
        member(w, "minimum");
        dts_text_printf(w->out, "%.17g", field->minimum);
    }
    if (field->maximum >= field->minimum && isfinite(field->maximum)) {
        member(w, "maximum");
        dts_text_printf(w->out, "%.17g", field->maximum);
    }
}

static void member_names(writer *w, const char *const *names) {
    member(w, "enum");
    dts_text_add(w->out, "[");
    for (size_t i = 0; names[i] != NULL; i++) {
        dts_text_add(w->out, i == 0 ? "" : ", ");
        write_string(names[i], w->out);
    }
    dts_text_add(w->out, "]");
}

/* The units; blanks may stand around the / of money's. */
static void write_units(dts_dimension dimension, dts_text *out) {
    dts_text units = {0};
    dts_dimension_write_pattern(dimension, &units);
    for (const char *at = dts_text_string(&units); *at != '\0'; at++) {
        const bool loose = *at == '/' && dimension == DTS_DIM_MONEY_RATE;
        dts_text_add_bytes(out, loose ? " */ *" : at, loose ? strlen(" */ *") : 1);
    }
    out->failed = out->failed || units.failed;
    dts_text_free(&units);
}

static void member_quantity(writer *w, const dts_field *field) {
    static const char number[] = "[0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)?";
    dts_text pattern = {0};
    if (field->dimension == DTS_DIM_MONEY_RATE) { /* the sign before the number */
        dts_text_printf(&pattern, "^[$] *[+]?%s */ *h(our)?$|", number);
    }
    dts_text_printf(&pattern, "%s%s *(", field->dimension == DTS_DIM_NUMBER ? "^[-+]?" : "^[+]?", number);
    write_units(field->dimension, &pattern);
    const bool plain = field->dimension == DTS_DIM_NUMBER || field->dimension == DTS_DIM_COUNT;
    dts_text_add(&pattern, field->dimension == DTS_DIM_NUMBER  ? ")$"
                           : field->dimension == DTS_DIM_COUNT ? ")?$"
                                                               : ")$|^0$");
    member(w, "type");
    dts_text_add(w->out, "[\"number\", \"string\"]");
    member_string(w, "pattern", dts_text_string(&pattern));
    if (plain) {
        member_bounds(w, field);
    } else { /* only 0 may stand without its unit */
        member(w, "minimum");
        dts_text_add(w->out, "0");
        member(w, "maximum");
        dts_text_add(w->out, "0");
    }
    dts_text_free(&pattern);
}

/* The members that say what one scalar may be. */
static void members_scalar(writer *w, const dts_field *field, dts_field_type type) {
    switch (type) {
        case DTS_FIELD_BOOL:
            member_string(w, "type", "boolean");
            break;
        case DTS_FIELD_INT:
            member_string(w, "type", "integer");
            member_bounds(w, field);
            break;
        case DTS_FIELD_QUANTITY:
            member_quantity(w, field);
            break;
        case DTS_FIELD_ENUM:
            member_names(w, field->names);
            break;
        default:
            member(w, "type");
            dts_text_add(w->out, "[\"string\", \"number\", \"boolean\"]");
    }
}

static void members_struct(writer *w, const dts_schema *schema, const char *reference);
static void member_required(writer *w, const dts_schema *schema);

/* The members that say what the field's value may be, without the {value: …} around it. */
static void members_value(writer *w, const dts_field *field) {
    switch (field->type) {
        case DTS_FIELD_MAP:
            members_struct(w, field->sub, NULL); /* what is missing may stand in a base: nothing is required */
            break;
        case DTS_FIELD_LIST:
            member_string(w, "type", "array");
            member(w, "items");
            open(w);
            if (field->sub != NULL) {
                members_struct(w, field->sub, NULL);
                member_required(w, field->sub); /* lists are replaced whole, never merged with a base */
            } else {
                members_scalar(w, field, field->element_type);
            }
            close(w);
            break;
        case DTS_FIELD_CUSTOM:
            member(w, "type");
            dts_text_add(w->out, "[\"string\", \"number\", \"boolean\", \"array\", \"object\"]");
            break;
        default:
            members_scalar(w, field, field->type);
    }
}

/* An object of an anyOf list; its members follow. */
static void alternative(writer *w, bool first) {
    dts_text_add(w->out, first ? "[" : ", ");
    open(w);
}

static void members_profile(writer *w, const dts_field *field) {
    member(w, "anyOf");
    alternative(w, true);
    member_string(w, "type", "string");
    dts_text text = {0};
    dts_text_printf(&text, "a profile of %s/, or a path", field->profile_folder);
    member_string(w, "description", dts_text_string(&text));
    dts_text_free(&text);
    close(w);
    alternative(w, false);
    members_struct(w, field->sub, "profile");
    close(w);
    dts_text_add(w->out, "]");
}

/* A value, or the value with its origin. */
static void members_documented(writer *w, const dts_field *field) {
    member(w, "anyOf");
    alternative(w, true);
    members_value(w, field);
    close(w);
    alternative(w, false);
    member_string(w, "type", "object");
    member(w, "properties");
    open(w);
    member(w, "value");
    open(w);
    members_value(w, field);
    close(w);
    member(w, "source");
    dts_text_add(w->out, "{}");
    member(w, "note");
    dts_text_add(w->out, "{}");
    close(w);
    member(w, "required");
    dts_text_add(w->out, "[\"value\"]");
    member(w, "additionalProperties");
    dts_text_add(w->out, "false");
    close(w);
    dts_text_add(w->out, "]");
}

static void member_field(writer *w, const dts_field *field) {
    member(w, field->key);
    open(w);
    member_string(w, "description", field->help);
    if (field->preset != NULL) {
        member(w, "default");
        bool literal = field->type == DTS_FIELD_BOOL || field->type == DTS_FIELD_INT;
        if (literal) {
            dts_text_add(w->out, field->preset);
        } else {
            write_string(field->preset, w->out);
        }
    }
    if (field->type == DTS_FIELD_PROFILE) {
        members_profile(w, field);
    } else if (field->type == DTS_FIELD_MAP) {
        members_value(w, field);
    } else {
        members_documented(w, field);
    }
    close(w);
}

static void member_any(writer *w, const dts_schema *schema, const char *name, const char *meaning) {
    for (size_t i = 0; i < schema->field_count; i++) {
        if (strcmp(schema->fields[i].key, name) == 0) {
            return;
        }
    }
    member(w, name);
    open(w);
    member_string(w, "description", meaning);
    close(w);
}

/* `required` with the schema's required keys, if it has any. */
static void member_required(writer *w, const dts_schema *schema) {
    bool any = false;
    for (size_t i = 0; i < schema->field_count; i++) {
        if (dts_field_always(&schema->fields[i])) {
            if (!any) {
                member(w, "required");
            }
            dts_text_add(w->out, any ? ", " : "[");
            write_string(schema->fields[i].key, w->out);
            any = true;
        }
    }
    dts_text_add(w->out, any ? "]" : "");
}

/* reference: the key by which another file may give the rest ("profile", "extends"), or NULL. */
static void members_struct(writer *w, const dts_schema *schema, const char *reference) {
    member_string(w, "type", "object");
    member(w, "properties");
    open(w);
    if (reference != NULL) {
        member(w, reference);
        open(w);
        member_string(w, "description", "the file that gives all that is not said here");
        member_string(w, "type", "string");
        close(w);
    }
    for (size_t i = 0; i < schema->field_count; i++) {
        member_field(w, &schema->fields[i]);
    }
    member_any(w, schema, "source", "where the numbers of this map come from");
    member_any(w, schema, "note", "anything worth knowing about them");
    member_any(w, schema, "description", "what this is");
    close(w);
    member(w, "additionalProperties");
    dts_text_add(w->out, "false");
}

void dts_schema_write_json_schema(const dts_schema *schema, dts_text *out) {
    writer w = {.out = out};
    open(&w);
    member_string(&w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    member_string(&w, "title", schema->name);
    member_string(&w, "description", schema->help);
    members_struct(&w, schema, "extends"); /* nothing is required: a base, a profile or an override may have it */
    close(&w);
    dts_text_add(out, "\n");
}
