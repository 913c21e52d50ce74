/* Finding the field of a dotted key, and where its value lies in the bound struct. */
#include <stdio.h>
#include <string.h>

#include "config/inside.h"

enum { NAMES_MOST = 128, KEY_LONGEST = 256, NESTED_MOST = 2 };

/* One name of a dotted key. */
typedef struct part {
    const char *text;
    int length;
} part;

static const dts_field *field_named(const dts_schema *schema, part name) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const char *key = schema->fields[i].key;
        if (strlen(key) == (size_t)name.length && memcmp(key, name.text, (size_t)name.length) == 0) {
            return &schema->fields[i];
        }
    }
    return NULL;
}

static bool is_nested(const dts_field *field) {
    return field->type == DTS_FIELD_MAP || field->type == DTS_FIELD_PROFILE;
}

const dts_field *dts_schema_find(const dts_schema *schema, const char *key, size_t *offset) {
    for (;;) {
        const part name = {.text = key, .length = (int)strcspn(key, ".")};
        const dts_field *field = field_named(schema, name);
        if (field == NULL) {
            return NULL;
        }
        *offset += field->offset;
        key += name.length;
        if (*key == '\0') {
            return field;
        }
        if (!is_nested(field)) {
            return NULL;
        }
        schema = field->sub;
        key++;
    }
}

/* Adds the dotted keys of maps inside the schema that end in this name: "training.micro_batch". */
static void add_nested(const dts_schema *schema, const char *key, const char *prefix, unsigned depth, dts_text *out) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        dts_text path = {0};
        dts_text_printf(&path, "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", field->key);
        if (prefix[0] != '\0' && strcmp(field->key, key) == 0) {
            dts_text_printf(out, "%s'%s'", out->length > 0 ? ", " : "", dts_text_string(&path));
        }
        if (is_nested(field) && depth > 0) {
            add_nested(field->sub, key, dts_text_string(&path), depth - 1, out);
        }
        dts_text_free(&path);
    }
}

/* Adds the names with a word that is nearly the key: "memory_bandwidth" for "bandwith". */
static void add_of_word(const char *const *names, size_t count, const char *key, dts_text *out) {
    enum { LEAST = 5 }; /* letters: short words are near to many */
    for (size_t i = 0; i < count && strlen(key) >= LEAST; i++) {
        for (const char *word = names[i]; *word != '\0';) {
            const size_t length = strcspn(word, "_");
            char letters[KEY_LONGEST];
            snprintf(letters, sizeof letters, "%.*s", (int)length, word);
            if (length >= LEAST && dts_edit_distance(letters, key) <= 1) {
                dts_text_printf(out, "%s'%s'", out->length > 0 ? ", " : "", names[i]);
                break;
            }
            word += length;
            word += *word == '_' ? 1 : 0;
        }
    }
}

static const char *hint_of(const dts_schema *schema, const char *key) {
    for (const dts_key_hint *hint = schema->hints; hint != NULL && hint->key != NULL; hint++) {
        if (strcmp(hint->key, key) == 0) {
            return hint->help;
        }
    }
    return NULL;
}

/* The same of the maps inside: "tp" belongs to parallelism. */
static bool add_nested_hint(const dts_schema *schema, const char *key, dts_text *help) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        const char *hint = is_nested(field) ? hint_of(field->sub, key) : NULL;
        if (hint != NULL) {
            dts_text_printf(help, "it belongs to %s: %s", field->key, hint);
            return true;
        }
    }
    return false;
}

/* Adds "did you mean ...?" where there is anything to mean. */
static bool add_meant(const dts_text *names, dts_text *help) {
    if (names->length > 0) {
        dts_text_printf(help, "did you mean %s?", dts_text_string(names));
    }
    return names->length > 0;
}

/* Nothing of this map is nearly called so: a key of the maps inside, or one that another tool calls so. */
static bool suggest_others(const dts_schema *schema, const char *const *names, size_t count, const char *key,
                           dts_text *help) {
    dts_text meant = {0};
    add_nested(schema, key, "", NESTED_MOST, &meant);
    bool found = add_meant(&meant, help) || add_nested_hint(schema, key, help);
    if (!found) {
        add_of_word(names, count, key, &meant);
        found = add_meant(&meant, help);
    }
    dts_text_free(&meant);
    return found;
}

const char *dts_schema_suggest(const dts_schema *schema, const char *key, dts_text *help) {
    const char *hint = hint_of(schema, key);
    if (hint != NULL) {
        dts_text_add(help, hint);
        return NULL;
    }
    const char *names[NAMES_MOST] = {NULL};
    size_t count = 0;
    for (; count < schema->field_count && count < NAMES_MOST; count++) {
        names[count] = schema->fields[count].key;
    }
    const char *near = dts_nearest_name(key, names, count);
    const bool mistyped = near != NULL && dts_edit_distance(near, key) <= 1;
    if (!mistyped && suggest_others(schema, names, near == NULL ? count : 0, key, help)) {
        return NULL;
    }
    if (near != NULL) {
        dts_text_printf(help, "did you mean '%s'?", near);
        return near;
    }
    dts_text_printf(help, "%s has the keys ", schema->name);
    for (size_t i = 0; i < count; i++) {
        dts_text_printf(help, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    return NULL;
}

/* Keys that stand beside a schema's fields: where numbers come from, and what a map builds upon. */
static bool is_beside(const char *name) {
    return dts_is_documentation_key(name) || strcmp(name, "profile") == 0 || strcmp(name, "extends") == 0;
}

static dts_status unknown_part(const dts_schema *schema, const char *key, part name, const dts_place *place,
                               dts_diag *diag) {
    char plain[KEY_LONGEST];
    snprintf(plain, sizeof plain, "%.*s", name.length, name.text);
    dts_text help = {0};
    dts_schema_suggest(schema, plain, &help);
    dts_status status = dts_diag_error(diag, place, strcmp(plain, key) == 0 ? NULL : key, dts_text_string(&help),
                                       "unknown key '%s'", dts_excerpt_of(plain).text);
    dts_text_free(&help);
    return status;
}

dts_status dts_schema_check_key(const dts_schema *schema, const char *key, const dts_place *place, dts_diag *diag) {
    const char *at = key;
    while (schema != NULL) {
        const part name = {.text = at, .length = (int)strcspn(at, ".")};
        const dts_field *field = field_named(schema, name);
        if (field == NULL) {
            return is_beside(at) ? DTS_OK : unknown_part(schema, key, name, place, diag);
        }
        at += name.length;
        schema = is_nested(field) && *at == '.' ? field->sub : NULL;
        at++;
    }
    return DTS_OK;
}
