/* A tree of several files and settings as one that says the same by itself, wherever it is written to. */
#include <string.h>
#include <sys/stat.h>

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

/* Paths count from the folder of the file that names them: makes those of files that are there absolute. */
static bool settle_paths(dts_node *node, const char *current, dts_arena *arena) {
    bool good = true;
    for (dts_node *n = node->first; n != NULL && good; n = n->next) {
        good = settle_paths(n, current, arena);
    }
    const char *text = node->kind == DTS_NODE_SCALAR ? node->text : "/";
    if (text[0] == '/' || (strchr(text, '/') == NULL && strchr(text, '.') == NULL)) {
        return good;
    }
    const char *file = node->place.file != NULL ? node->place.file : "";
    const char *slash = strrchr(file, '/');
    const int length = slash == NULL ? 0 : (int)(slash - file + 1);
    const char *path = file[0] == '/' ? dts_arena_printf(arena, "%.*s%s", length, file, text)
                                      : dts_arena_printf(arena, "%s/%.*s%s", current, length, file, text);
    struct stat info;
    if (path != NULL && stat(path, &info) == 0) {
        node->text = path;
    }
    return good && path != NULL;
}

dts_node *dts_schema_settle(const dts_schema *schema, const dts_node *tree, const char *current, dts_arena *arena) {
    dts_node *copy = dts_tree_merge(NULL, tree, arena);
    return copy != NULL && settle_forms(schema, copy, arena) && settle_paths(copy, current, arena) ? copy : NULL;
}
