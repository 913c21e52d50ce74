/* Binding of maps: every entry of the file in its order, then the fields that the file leaves out. */
#include <string.h>

#include "config/inside.h"

enum { UNKNOWN_KEYS_SHOWN = 20, STRUCTS_MOST = 4096, DEPTH_MOST = 32 };

dts_status dts_status_worse(dts_status a, dts_status b) {
    return a > b ? a : b;
}

const char *dts_key_join(dts_arena *arena, const char *prefix, const char *key) {
    const size_t before = strlen(prefix), length = strlen(key);
    if (before == 0) {
        return dts_arena_strndup(arena, key, length);
    }
    char *joined = dts_arena_alloc(arena, before + length + 2);
    if (joined != NULL) {
        memcpy(joined, prefix, before + 1);
        joined[before] = '.';
        memcpy(joined + before + 1, key, length + 1);
    }
    return joined;
}

bool dts_is_documentation_key(const char *key) {
    return strcmp(key, "source") == 0 || strcmp(key, "note") == 0 || strcmp(key, "description") == 0;
}

dts_excerpt dts_node_excerpt(const dts_node *node) {
    switch (node->kind) {
        case DTS_NODE_NULL:
            return dts_excerpt_of("nothing");
        case DTS_NODE_LIST:
            return dts_excerpt_of("a list");
        case DTS_NODE_MAP:
            return dts_excerpt_of("a map");
        case DTS_NODE_SCALAR:
            break;
    }
    dts_text text = {0};
    dts_text_printf(&text, node->quoted ? "\"%s\"" : "'%s'", dts_excerpt_of(node->text).text);
    dts_excerpt out = dts_excerpt_of(dts_text_string(&text));
    dts_text_free(&text);
    return out;
}

bool dts_is_unreadable(const dts_node *node) {
    return node->kind == DTS_NODE_NULL && node->implied;
}

dts_arena *dts_binder_trees(const dts_binder *binder) {
    return binder->document != NULL ? dts_document_arena(binder->document) : binder->arena;
}

/* The field's preset as a node without a place; NULL in *out when it has none. */
static dts_status preset_node(dts_binder *binder, const dts_field *field, dts_node **out) {
    dts_place nowhere = {0};
    *out = NULL;
    if (field->preset == NULL) {
        return DTS_OK;
    }
    if (field->type != DTS_FIELD_LIST && field->type != DTS_FIELD_CUSTOM) {
        *out = dts_tree_node(dts_binder_trees(binder), DTS_NODE_SCALAR, &nowhere);
        if (*out == NULL) {
            return dts_diag_nomem(binder->diag);
        }
        (*out)->text = field->preset;
        return DTS_OK;
    }
    dts_source source;
    dts_status status = dts_source_make(field->preset, strlen(field->preset), field->key, field->key,
                                        &dts_limits_default, dts_binder_trees(binder), &source, binder->diag);
    return status != DTS_OK
               ? status
               : dts_tree_build(&source, &nowhere, &dts_limits_default, dts_binder_trees(binder), out, binder->diag);
}

/* ---- messages about keys ---- */

/* *meant: the field that the key is probably a misspelling of, or NULL. */
static dts_status unknown_key(const dts_binder *binder, const dts_schema *schema, const dts_node *node, const char *key,
                              const char **meant) {
    dts_text help = {0};
    if (strchr(node->key, ':') != NULL) {
        dts_text_add(&help, "put a blank behind the ':'");
    } else {
        const char *near = dts_schema_suggest(schema, node->key, &help);
        *meant = near != NULL ? near : *meant;
    }
    dts_status status = dts_diag_error(binder->diag, &node->key_place, key[0] == '\0' ? NULL : key,
                                       dts_text_string(&help), "unknown key '%s'", dts_excerpt_of(node->key).text);
    dts_text_free(&help);
    return status;
}

/* named: what named the profile that lacks the key; NULL: node is a map of a file. */
static dts_status missing_key(const dts_binder *binder, const dts_field *field, const dts_node *node,
                              const dts_node *named, const char *key) {
    dts_text help = {0}, what = {0};
    dts_text_printf(&help, "add '%s%s%s'", named != NULL ? key : "", named != NULL ? "." : "", field->key);
    dts_text_printf(&what, "missing key '%s'", field->key);
    if (named != NULL) {
        dts_text_printf(&what, " in profile %s", dts_node_excerpt(named).text);
        if (node->place.file != NULL) {
            dts_text_printf(&help, " here, or '%s' in %s", field->key, node->place.file);
        }
    }
    dts_text_printf(&help, ": %s", field->help == NULL ? "it has no default" : field->help);
    const bool whole = named == NULL && key[0] != '\0' && strcmp(field->key, "name") == 0; /* of a profile */
    dts_text_add(&help, whole ? "; or take all that is missing from the nearest one: 'profile: NAME'" : "");
    dts_status status =
        dts_diag_error(binder->diag, named != NULL ? &named->place : &node->place, key[0] == '\0' ? NULL : key,
                       dts_text_string(&help), "%s", dts_text_string(&what));
    dts_text_free(&what);
    dts_text_free(&help);
    return status;
}

static dts_status not_a_map(const dts_binder *binder, const dts_schema *schema, const dts_node *node, const char *key) {
    dts_text help = {0};
    bool glued = node->kind == DTS_NODE_SCALAR && strchr(node->text, ':') != NULL;
    dts_text_add(&help, glued ? "put a blank behind the ':'; keys are " : "write one 'KEY: VALUE' a line; keys are ");
    for (size_t i = 0; i < schema->field_count; i++) {
        dts_text_printf(&help, "%s%s", i == 0 ? "" : ", ", schema->fields[i].key);
    }
    bool root = key[0] == '\0';
    dts_status status =
        root && node->kind == DTS_NODE_NULL
            ? dts_diag_error(binder->diag, &node->place, NULL, dts_text_string(&help), "the file is empty")
            : dts_diag_error(binder->diag, &node->place, root ? NULL : key, dts_text_string(&help),
                             "expected a map of keys, got %s", dts_node_excerpt(node).text);
    dts_text_free(&help);
    return status;
}

/* ---- values ---- */

/* {value: X, source: …, note: …} → X; *out NULL after an error. */
static dts_status unwrap(const dts_binder *binder, const dts_node *node, const char *key, const dts_node **out) {
    const dts_node *value = dts_node_get(node, "value");
    *out = value != NULL ? value : node;
    dts_status status = DTS_OK;
    for (const dts_node *n = value == NULL ? NULL : node->first; n != NULL; n = n->next) {
        if (n != value && !dts_is_documentation_key(n->key)) {
            status = dts_diag_error(binder->diag, &n->key_place, key, "beside 'value' stand only 'source' and 'note'",
                                    "unknown key '%s'", dts_excerpt_of(n->key).text);
        }
    }
    return status;
}

static dts_status bind_map(dts_binder *binder, const dts_schema *schema, const dts_node *node, const char *key,
                           void *out);

static dts_status bind_structs(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                               dts_list *out) {
    if (node->count > STRUCTS_MOST) {
        return dts_diag_error(binder->diag, &node->place, key, NULL, "more than %d entries", STRUCTS_MOST);
    }
    unsigned char *items = dts_arena_array(binder->arena, node->count, field->sub->struct_size);
    if (items == NULL) {
        return dts_diag_nomem(binder->diag);
    }
    dts_status status = DTS_OK;
    size_t i = 0;
    for (const dts_node *n = node->first; n != NULL; n = n->next, i++) {
        const char *item_key = dts_arena_printf(binder->arena, "%s[%zu]", key, i);
        status = dts_status_worse(
            status, item_key == NULL ? dts_diag_nomem(binder->diag)
                                     : bind_map(binder, field->sub, n, item_key, items + i * field->sub->struct_size));
    }
    *out = (dts_list){.items = items, .count = node->count};
    return status;
}

static dts_status bind_list(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                            dts_list *out) {
    if (node->kind != DTS_NODE_LIST) {
        return dts_diag_error(binder->diag, &node->place, key, "write a list such as [A, B]", "expected a list, got %s",
                              dts_node_excerpt(node).text);
    }
    if (field->sub != NULL) {
        return bind_structs(binder, field, node, key, out);
    }
    size_t size = dts_scalar_size(field->element_type);
    unsigned char *items = dts_arena_array(binder->arena, node->count, size);
    if (items == NULL) {
        return dts_diag_nomem(binder->diag);
    }
    dts_field element = *field;
    element.type = field->element_type;
    dts_status status = DTS_OK;
    size_t i = 0;
    for (const dts_node *n = node->first; n != NULL; n = n->next, i++) {
        const char *item_key = dts_arena_printf(binder->arena, "%s[%zu]", key, i);
        status = dts_status_worse(status, item_key == NULL
                                              ? dts_diag_nomem(binder->diag)
                                              : dts_bind_scalar(binder, &element, n, item_key, items + i * size));
    }
    *out = (dts_list){.items = items, .count = node->count};
    return status;
}

static bool holds_unreadable(const dts_node *node) {
    bool found = dts_is_unreadable(node);
    for (const dts_node *n = node->first; n != NULL && !found; n = n->next) {
        found = holds_unreadable(n);
    }
    return found;
}

static dts_status bind_custom(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                              void *out) {
    if (holds_unreadable(node)) { /* parsers of other rooms know only readable nodes */
        return DTS_INVALID;
    }
    return field->parse(binder, field, node, key, out);
}

/* A map of the same entries without the one under key; the entries are shared with node's copy. */
static dts_node *without(dts_arena *arena, const dts_node *node, const char *key) {
    dts_node *copy = dts_tree_merge(NULL, node, arena);
    for (dts_node **link = copy == NULL ? NULL : &copy->first; link != NULL && *link != NULL;) {
        if (strcmp((*link)->key, key) == 0) {
            *link = (*link)->next;
            copy->count--;
        } else {
            link = &(*link)->next;
        }
    }
    return copy;
}

/* The map that a profile reference stands for: the profile with the overrides merged over it. */
static dts_status profile_node(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                               const dts_node **out) {
    const dts_node *name = dts_node_profile_name(node);
    if (name == NULL) {
        *out = node;
        return DTS_OK;
    }
    if (name->kind != DTS_NODE_SCALAR) {
        return dts_diag_error(binder->diag, &name->place, key,
                              "write NAME, a path, or {profile: NAME, KEY: VALUE, ...}",
                              "expected the name of a profile, got %s", dts_node_excerpt(name).text);
    }
    dts_node *base = NULL;
    dts_profile_adopter *outer = binder->adopt;
    binder->adopt = field->sub->adopt;
    dts_status status = dts_profile_resolve(binder, field->profile_folder, name->text, &name->place, key, &base);
    binder->adopt = outer;
    if (base == NULL) {
        return status;
    }
    dts_arena *trees = dts_binder_trees(binder);
    dts_node *overrides = node == name ? NULL : without(trees, node, "profile");
    dts_node *merged = node == name ? base : dts_tree_merge(base, overrides, trees);
    if (merged == NULL || (node != name && overrides == NULL)) {
        return dts_diag_nomem(binder->diag);
    }
    *out = merged;
    return dts_status_worse(status, dts_provenance_add(binder, key, name, false));
}

/* A profile that the root names, as it was bound before. */
static dts_status take_known(dts_binder *binder, const dts_field *field, const char *key, void *out) {
    memcpy(out, (const unsigned char *)binder->known + field->offset, field->sub->struct_size);
    return dts_provenance_take_known(binder, key);
}

static dts_status bind_profile(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                               void *out) {
    if (binder->known != NULL && strchr(key, '.') == NULL) {
        return take_known(binder, field, key, out);
    }
    if (binder->depth >= DEPTH_MOST) {
        return dts_diag_error(binder->diag, &node->place, key, NULL, "profiles inside profiles deeper than %d levels",
                              DEPTH_MOST);
    }
    const dts_node *map = NULL;
    bool incomplete = binder->incomplete;
    binder->depth++;
    dts_status status = profile_node(binder, field, node, key, &map);
    if (map != NULL) {
        bool told = false;
        status = dts_status_worse(status, dts_check_stands_alone(binder, field, node, map, key, &told));
        binder->incomplete = binder->incomplete || told;
        binder->reference = map != node ? dts_node_profile_name(node) : NULL;
        status = dts_status_worse(status, bind_map(binder, field->sub, map, key, out));
    }
    binder->depth--;
    binder->incomplete = incomplete;
    return status;
}

dts_status dts_bind_value(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                          void *out) {
    if (dts_is_unreadable(node)) {
        return DTS_INVALID;
    }
    if (field->type == DTS_FIELD_MAP) {
        return bind_map(binder, field->sub, node, key, out);
    }
    if (field->type == DTS_FIELD_PROFILE) {
        return bind_profile(binder, field, node, key, out);
    }
    const dts_node *value = NULL;
    dts_status status = unwrap(binder, node, key, &value);
    if (status != DTS_OK) {
        return status;
    }
    switch (field->type) {
        case DTS_FIELD_LIST:
            return bind_list(binder, field, value, key, out);
        case DTS_FIELD_CUSTOM:
            return bind_custom(binder, field, value, key, out);
        default:
            return dts_bind_scalar(binder, field, value, key, out);
    }
}

/* ---- maps ---- */

/* Binds one field of a struct and notes where its value came from. */
static dts_status bind_field(dts_binder *binder, const dts_field *field, const dts_node *node, const char *prefix,
                             void *out) {
    const char *key = dts_key_join(binder->arena, prefix, field->key);
    if (key == NULL) {
        return dts_diag_nomem(binder->diag);
    }
    node = field->type == DTS_FIELD_CUSTOM ? dts_tree_latest(field, node, dts_binder_trees(binder)) : node;
    if (node == NULL) {
        return dts_diag_nomem(binder->diag);
    }
    const uint64_t outside = binder->content;
    binder->content = 0;
    dts_status status = dts_bind_value(binder, field, node, key, (unsigned char *)out + field->offset);
    bool noted = field->type == DTS_FIELD_MAP || field->type == DTS_FIELD_PROFILE ||
                 (field->type == DTS_FIELD_LIST && field->sub != NULL);
    if (status == DTS_OK && !noted) {
        const dts_node *value = dts_node_get(node, "value");
        status = dts_provenance_add(binder, key, value == NULL ? node : value, field->type == DTS_FIELD_CUSTOM);
    }
    binder->content = outside;
    return status;
}

/* Presets of a map that is left out; what has none stays zero. */
static dts_status bind_absent(dts_binder *binder, const dts_field *field, const char *prefix, void *out) {
    if (field->type == DTS_FIELD_MAP) {
        const char *key = dts_key_join(binder->arena, prefix, field->key);
        dts_status status = key == NULL ? dts_diag_nomem(binder->diag) : DTS_OK;
        for (size_t i = 0; status == DTS_OK && i < field->sub->field_count; i++) {
            status = bind_absent(binder, &field->sub->fields[i], key, (unsigned char *)out + field->offset);
        }
        return status;
    }
    dts_node *preset = NULL;
    dts_status status = preset_node(binder, field, &preset);
    return status != DTS_OK || preset == NULL ? status : bind_field(binder, field, preset, prefix, out);
}

/* Fields that a misspelt key stands for: they are not reported as missing on top. */
typedef struct misspelt {
    const char *fields[UNKNOWN_KEYS_SHOWN];
    size_t count;
} misspelt;

static bool is_misspelt(const misspelt *m, const char *key) {
    for (size_t i = 0; i < m->count; i++) {
        if (strcmp(m->fields[i], key) == 0) {
            return true;
        }
    }
    return false;
}

static dts_status bind_entries(dts_binder *binder, const dts_schema *schema, const dts_node *node, const char *key,
                               void *out, misspelt *meant) {
    dts_status status = DTS_OK;
    size_t unknown = 0;
    for (const dts_node *n = node->first; n != NULL; n = n->next) {
        const dts_field *field = dts_schema_field(schema, n->key);
        if (field != NULL) {
            status = dts_status_worse(status, bind_field(binder, field, n, key, out));
        } else if (!dts_is_documentation_key(n->key)) {
            unknown++;
            if (unknown <= UNKNOWN_KEYS_SHOWN) {
                const char *near = NULL;
                status = dts_status_worse(status, unknown_key(binder, schema, n, key, &near));
                if (near != NULL) {
                    meant->fields[meant->count++] = near;
                }
            }
        }
    }
    if (unknown > UNKNOWN_KEYS_SHOWN) {
        dts_diag_error(binder->diag, &node->place, key[0] == '\0' ? NULL : key, "remove them", "%zu more unknown keys",
                       unknown - UNKNOWN_KEYS_SHOWN);
    }
    return status;
}

static dts_status bind_map(dts_binder *binder, const dts_schema *schema, const dts_node *node, const char *key,
                           void *out) {
    const dts_node *named = binder->reference;
    binder->reference = NULL; /* maps inside it are the file's */
    const dts_node *implied = dts_node_get(node, "profile");
    if (implied != NULL && implied->implied && dts_schema_field(schema, "profile") == NULL) {
        return not_a_map(binder, schema, implied, key);
    }
    if (dts_is_unreadable(node)) {
        return DTS_INVALID;
    }
    if (node->kind != DTS_NODE_MAP) {
        return not_a_map(binder, schema, node, key);
    }
    misspelt meant = {.count = 0};
    dts_status status = bind_entries(binder, schema, node, key, out, &meant);
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        if (dts_node_get(node, field->key) != NULL || is_misspelt(&meant, field->key)) {
            continue;
        }
        bool stands_in = field->unless != NULL && dts_node_get(node, field->unless) != NULL;
        bool missed = field->required && !stands_in && !binder->incomplete;
        status = dts_status_worse(
            status, missed ? missing_key(binder, field, node, named, key) : bind_absent(binder, field, key, out));
    }
    bool whole = status == DTS_OK && !binder->incomplete;
    return whole && schema->check != NULL ? schema->check(binder, node, key, out) : status;
}

dts_status dts_bind(dts_binder *binder, const dts_schema *schema, const dts_node *node, const char *key, void *out) {
    if (key[0] == '\0') { /* a custom parser may have set part of the struct already */
        memset(out, 0, schema->struct_size);
    }
    binder->root = binder->root != NULL ? binder->root : schema;
    dts_status status = dts_provenance_begin(binder);
    return status != DTS_OK ? status : bind_map(binder, schema, node, key, out);
}
