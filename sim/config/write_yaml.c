/* A bound struct as YAML. What is written loads again to the same values: quantities in a unit that is exact, text in
 * quotes where YAML needs them, and nothing that was left out and has no default. */
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "config/inside.h"

enum { KEY_LONGEST = 512 };

static const size_t INDENT = 2;

typedef struct writer {
    const dts_provenance *provenance;
    bool annotate;
    dts_text *out;
} writer;

/* A struct being written: its dotted prefix and its indentation. */
typedef struct scope {
    const char *prefix;
    size_t indent;
} scope;

/* A key longer than any schema has finds no provenance: it is left out rather than cut to another key's name. */
static void keep_if_whole(char *key, int length) {
    if (length < 0 || length >= KEY_LONGEST) {
        key[0] = '\0';
    }
}

static void join(char *out, const char *prefix, const char *key) {
    keep_if_whole(out, snprintf(out, KEY_LONGEST, "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", key));
}

static const void *at(const void *bound, const dts_field *field) {
    return (const unsigned char *)bound + field->offset;
}

static bool is_zero(const dts_field *field, const void *value) {
    switch (field->type) {
        case DTS_FIELD_BOOL:
            return !*(const bool *)value;
        case DTS_FIELD_INT:
            return *(const int64_t *)value == 0;
        case DTS_FIELD_QUANTITY:
            return *(const double *)value == 0;
        case DTS_FIELD_STRING:
            return *(const char *const *)value == NULL;
        case DTS_FIELD_ENUM:
            return *(const int *)value == 0;
        case DTS_FIELD_LIST:
            return ((const dts_list *)value)->count == 0;
        default:
            return false;
    }
}

static void write_scalar(const dts_field *field, dts_field_type type, const void *value, dts_text *out) {
    switch (type) {
        case DTS_FIELD_BOOL:
            dts_text_add(out, *(const bool *)value ? "true" : "false");
            break;
        case DTS_FIELD_INT:
            dts_text_printf(out, "%lld", (long long)*(const int64_t *)value);
            break;
        case DTS_FIELD_QUANTITY:
            dts_quantity_format_exact(*(const double *)value, field->dimension, out);
            break;
        case DTS_FIELD_ENUM:
            dts_text_add_yaml(out, field->names[*(const int *)value]);
            break;
        default:
            dts_text_add_yaml_string(out, *(const char *const *)value);
    }
}

static void end_line(const writer *w, const dts_provenance_entry *entry) {
    if (w->annotate && entry != NULL) {
        dts_text_add(w->out, "  # ");
        if (entry->place.file == NULL) {
            dts_text_add(w->out, "default");
        } else {
            dts_text_add_line(w->out, entry->place.file);
            if (entry->place.line > 0) {
                dts_text_printf(w->out, ":%u", entry->place.line);
            }
        }
        if (entry->source != NULL) {
            dts_text_add(w->out, " (");
            dts_text_add_line(w->out, entry->source);
            dts_text_add(w->out, ")");
        }
    }
    dts_text_add(w->out, "\n");
}

static void write_struct(const writer *w, const dts_schema *schema, const void *bound, scope s);

/* An optional struct that was left out: one of its required fields has no value. */
static bool is_absent(const writer *w, const dts_field *field, const void *bound, const char *key) {
    for (size_t i = 0; !dts_field_always(field) && i < field->sub->field_count; i++) {
        const dts_field *f = &field->sub->fields[i];
        char name[KEY_LONGEST];
        join(name, key, f->key);
        if (f->required && dts_provenance_find(w->provenance, name) == NULL && is_zero(f, at(bound, f))) {
            return f->type != DTS_FIELD_MAP && f->type != DTS_FIELD_PROFILE && f->type != DTS_FIELD_CUSTOM;
        }
    }
    return false;
}

static void write_map(const writer *w, const dts_field *field, const void *bound, scope s, const char *key) {
    if (is_absent(w, field, bound, key)) {
        return;
    }
    dts_text body = {0};
    writer inner = {.provenance = w->provenance, .annotate = w->annotate, .out = &body};
    write_struct(&inner, field->sub, bound, (scope){key, s.indent + INDENT});
    if (body.length > 0 || dts_field_always(field)) {
        dts_text_add_repeated(w->out, " ", s.indent);
        dts_text_printf(w->out, "%s:%s", field->key, body.length > 0 ? "" : " {}");
        end_line(w, field->type == DTS_FIELD_PROFILE ? dts_provenance_find(w->provenance, key) : NULL);
        dts_text_add(w->out, dts_text_string(&body));
    }
    w->out->failed = w->out->failed || body.failed;
    dts_text_free(&body);
}

/* A list of structs: each entry's first line carries the dash. */
static void write_structs(const writer *w, const dts_field *field, const dts_list *list, scope s, const char *key) {
    dts_text_add_repeated(w->out, " ", s.indent);
    dts_text_printf(w->out, "%s:%s\n", field->key, list->count == 0 ? " []" : "");
    for (size_t i = 0; i < list->count; i++) {
        char name[KEY_LONGEST];
        keep_if_whole(name, snprintf(name, sizeof name, "%s[%zu]", key, i));
        dts_text body = {0};
        writer inner = {.provenance = w->provenance, .annotate = w->annotate, .out = &body};
        size_t indent = s.indent + 2 * INDENT;
        write_struct(&inner, field->sub, (const unsigned char *)list->items + i * field->sub->struct_size,
                     (scope){name, indent});
        dts_text_add_repeated(w->out, " ", indent - INDENT);
        dts_text_printf(w->out, "- %s", body.length > 0 ? dts_text_string(&body) + indent : "{}\n");
        w->out->failed = w->out->failed || body.failed;
        dts_text_free(&body);
    }
}

static void write_list(const dts_field *field, const dts_list *list, dts_text *out) {
    size_t size = dts_scalar_size(field->element_type);
    dts_text_add(out, "[");
    for (size_t i = 0; i < list->count; i++) {
        dts_text_add(out, i == 0 ? "" : ", ");
        write_scalar(field, field->element_type, (const unsigned char *)list->items + i * size, out);
    }
    dts_text_add(out, "]");
}

static void write_field(const writer *w, const dts_field *field, const void *value, scope s) {
    char key[KEY_LONGEST];
    join(key, s.prefix, field->key);
    const dts_provenance_entry *entry = dts_provenance_find(w->provenance, key);
    if (field->type == DTS_FIELD_MAP || field->type == DTS_FIELD_PROFILE) {
        write_map(w, field, value, s, key);
        return;
    }
    bool custom = field->type == DTS_FIELD_CUSTOM;
    /* a bound required key has an entry; one without was missing: a generic profile */
    bool required = dts_field_always(field) && w->provenance == NULL;
    bool unset = !required && field->preset == NULL && entry == NULL && is_zero(field, value);
    if (unset || (custom && entry == NULL)) {
        return;
    }
    if (field->type == DTS_FIELD_LIST && field->sub != NULL) {
        write_structs(w, field, value, s, key);
        return;
    }
    dts_text_add_repeated(w->out, " ", s.indent);
    dts_text_printf(w->out, "%s: ", field->key);
    if (custom) {
        dts_text_add(w->out, entry->value);
    } else if (field->type == DTS_FIELD_LIST) {
        write_list(field, value, w->out);
    } else {
        write_scalar(field, field->type, value, w->out);
    }
    end_line(w, entry);
}

static void write_struct(const writer *w, const dts_schema *schema, const void *bound, scope s) {
    for (size_t i = 0; i < schema->field_count; i++) {
        write_field(w, &schema->fields[i], at(bound, &schema->fields[i]), s);
    }
}

void dts_schema_write_yaml(const dts_schema *schema, const void *bound, const dts_provenance *provenance, bool annotate,
                           dts_text *out) {
    writer w = {.provenance = provenance, .annotate = annotate, .out = out};
    write_struct(&w, schema, bound, (scope){"", 0});
}
