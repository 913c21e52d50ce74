/* A tree of several files and settings as one that says the same by itself, wherever it is written to. */
#include <string.h>

#include "config/inside.h"

const dts_field *dts_schema_field(const dts_schema *schema, const char *key) {
    for (size_t i = 0; i < schema->field_count; i++) {
        if (strcmp(schema->fields[i].key, key) == 0) {
            return &schema->fields[i];
        }
    }
    return NULL;
}

const dts_node *dts_tree_latest(const dts_field *field, const dts_node *node, dts_arena *arena) {
    if (node->kind != DTS_NODE_MAP || node->count < 2) {
        return node;
    }
    const dts_node *latest = node->first;
    for (const dts_node *n = latest->next; n != NULL; n = n->next) {
        latest = dts_node_is_over(n, latest) ? n : latest;
    }
    dts_node *copy = dts_tree_merge(NULL, node, arena);
    for (dts_node **link = copy == NULL ? NULL : &copy->first; link != NULL && *link != NULL;) {
        if (dts_node_is_over(latest, *link) && (field->one_form || (*link)->implied)) {
            *link = (*link)->next;
            copy->count--;
        } else {
            link = &(*link)->next;
        }
    }
    return copy;
}

/* Puts the latest forms in place; false: out of memory. */
static bool settle_forms(const dts_schema *schema, dts_node *map, dts_arena *arena) {
    for (dts_node **link = &map->first; *link != NULL; link = &(*link)->next) {
        const dts_field *field = dts_schema_field(schema, (*link)->key);
        if (field == NULL || (*link)->kind != DTS_NODE_MAP) {
            continue;
        }
        if (field->type == DTS_FIELD_CUSTOM) {
            dts_node *next = (*link)->next;
            const dts_node *latest = dts_tree_latest(field, *link, arena);
            *link = latest == NULL ? NULL : dts_tree_merge(NULL, latest, arena);
            if (*link == NULL) {
                return false;
            }
            (*link)->next = next;
        } else if ((field->type == DTS_FIELD_MAP || field->type == DTS_FIELD_PROFILE) &&
                   !settle_forms(field->sub, *link, arena)) {
            return false;
        }
    }
    return true;
}

/* A path counts from the folder of the file that names it: makes that of a file that is there, or of the folder of a
 * Hugging Face model, absolute. false: out of memory, as of all below. */
static bool settle_path(dts_node *node, const char *current, dts_arena *arena) {
    if (node->text[0] == '/') {
        return true;
    }
    const char *file = node->place.file != NULL ? node->place.file : "";
    const char *slash = strrchr(file, '/');
    const int length = slash == NULL ? 0 : (int)(slash - file + 1);
    const char *path = file[0] == '/' ? dts_arena_printf(arena, "%.*s%s", length, file, node->text)
                                      : dts_arena_printf(arena, "%s/%.*s%s", current, length, file, node->text);
    const char *config = path == NULL ? NULL : dts_arena_printf(arena, "%s/config.json", path);
    if (config != NULL && (dts_is_file(path) || dts_is_file(config))) {
        node->text = path;
    }
    return config != NULL;
}

/* A file in a field that reads itself: by its ending, or behind the key file. */
static bool settle_files(const dts_field *field, dts_node *node, const char *current, dts_arena *arena) {
    bool good = true;
    for (dts_node *n = node->first; n != NULL && good; n = n->next) {
        good = (n->key != NULL && dts_is_documentation_key(n->key)) || settle_files(field, n, current, arena);
    }
    if (node->kind != DTS_NODE_SCALAR) {
        return good;
    }
    const size_t length = strlen(node->text), end = strlen(field->file_ending);
    const bool ends = length > end && strcmp(node->text + length - end, field->file_ending) == 0;
    const bool named = node->key != NULL && strcmp(node->key, "file") == 0; /* items of lists have no key */
    return ends || named ? settle_path(node, current, arena) : good;
}

static bool settle_paths(const dts_schema *schema, dts_node *map, const char *current, dts_arena *arena);

static bool settle_field(const dts_field *field, dts_node *node, const char *current, dts_arena *arena) {
    bool good = true;
    if (field->type == DTS_FIELD_CUSTOM) {
        return field->file_ending == NULL || settle_files(field, node, current, arena);
    }
    if (field->type == DTS_FIELD_LIST && field->sub != NULL) {
        for (dts_node *n = node->first; n != NULL && good; n = n->next) {
            good = settle_paths(field->sub, n, current, arena);
        }
        return good;
    }
    if (field->type == DTS_FIELD_PROFILE && node->kind == DTS_NODE_SCALAR) {
        return !dts_is_profile_path(node->text) || settle_path(node, current, arena);
    }
    for (dts_node *n = node->first; n != NULL && good && field->type == DTS_FIELD_PROFILE; n = n->next) {
        const bool named = n->kind == DTS_NODE_SCALAR && strcmp(n->key, "profile") == 0 && dts_is_profile_path(n->text);
        good = !named || settle_path(n, current, arena);
    }
    return good && (field->sub == NULL || settle_paths(field->sub, node, current, arena));
}

/* Of all that the schema says to be files: names, numbers and names of profiles may look like some. */
static bool settle_paths(const dts_schema *schema, dts_node *map, const char *current, dts_arena *arena) {
    bool good = true;
    for (dts_node *n = map->kind == DTS_NODE_MAP ? map->first : NULL; n != NULL && good; n = n->next) {
        const dts_field *field = dts_schema_field(schema, n->key);
        good = field == NULL || settle_field(field, n, current, arena);
    }
    return good;
}

dts_node *dts_schema_settle(const dts_schema *schema, const dts_node *tree, const char *current, dts_arena *arena) {
    dts_node *copy = dts_tree_merge(NULL, tree, arena);
    return copy != NULL && settle_forms(schema, copy, arena) && settle_paths(schema, copy, current, arena) ? copy
                                                                                                           : NULL;
}
