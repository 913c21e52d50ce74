/* Walking, copying, merging and writing trees. */
#include <stdlib.h>
#include <string.h>

#include "config/tree.h"

dts_node *dts_tree_node(dts_arena *arena, dts_node_kind kind, const dts_place *place) {
    dts_node *node = dts_arena_alloc(arena, sizeof *node);
    if (node != NULL) {
        node->kind = kind;
        node->place = *place;
    }
    return node;
}

void dts_tree_append(dts_node *parent, dts_node *last, dts_node *child) {
    if (last == NULL) {
        last = parent->first;
        while (last != NULL && last->next != NULL) {
            last = last->next;
        }
    }
    if (last == NULL) {
        parent->first = child;
    } else {
        last->next = child;
    }
    child->next = NULL;
    parent->count++;
}

dts_node *dts_node_get(const dts_node *map, const char *key) {
    if (map == NULL || map->kind != DTS_NODE_MAP) {
        return NULL;
    }
    for (dts_node *n = map->first; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0) {
            return n;
        }
    }
    return NULL;
}

const dts_node *dts_node_profile_name(const dts_node *node) {
    return node != NULL && node->kind == DTS_NODE_MAP ? dts_node_get(node, "profile") : node;
}

dts_node *dts_node_find(const dts_node *map, const char *dotted_key) {
    const dts_node *at = map;
    for (const char *part = dotted_key; at != NULL && at->kind == DTS_NODE_MAP;) {
        size_t length = strcspn(part, ".");
        dts_node *child = at->first;
        while (child != NULL && (strlen(child->key) != length || memcmp(child->key, part, length) != 0)) {
            child = child->next;
        }
        if (child == NULL || part[length] == '\0') {
            return child;
        }
        at = child;
        part += length + 1;
    }
    return NULL;
}

/* A copy of the node alone, without children and siblings. */
static dts_node *copy_one(const dts_node *node, dts_arena *arena) {
    dts_node *copy = dts_arena_alloc(arena, sizeof *copy);
    if (copy != NULL) {
        *copy = *node;
        copy->first = NULL;
        copy->next = NULL;
        copy->count = 0;
    }
    return copy;
}

dts_node *dts_tree_copy(const dts_node *node, size_t limit, size_t *count, dts_arena *arena) {
    if (++*count > limit) {
        return NULL;
    }
    dts_node *copy = copy_one(node, arena);
    if (copy == NULL) {
        return NULL;
    }
    dts_node *last = NULL;
    for (const dts_node *n = node->first; n != NULL; n = n->next) {
        dts_node *child = dts_tree_copy(n, limit, count, arena);
        if (child == NULL) {
            return NULL;
        }
        dts_tree_append(copy, last, child);
        last = child;
    }
    return copy;
}

static dts_node *copy_all(const dts_node *node, dts_arena *arena) {
    size_t count = 0;
    return dts_tree_copy(node, SIZE_MAX, &count, arena);
}

dts_node *dts_tree_open_name(const dts_node *name, dts_arena *arena) {
    dts_node *map = copy_one(name, arena);
    dts_node *entry = copy_one(name, arena);
    if (map == NULL || entry == NULL) {
        return NULL;
    }
    map->kind = DTS_NODE_MAP;
    map->text = NULL;
    map->quoted = false;
    entry->key = "profile";
    entry->key_place = name->place;
    entry->implied = true;
    dts_tree_append(map, NULL, entry);
    return map;
}

static int compare_by_key(const void *left, const void *right) {
    const dts_node *const *a = left;
    const dts_node *const *b = right;
    return strcmp((*a)->key, (*b)->key);
}

/* Both are maps: overlay's entries over base's. The entries of base are sorted for the search. */
static dts_node *merge_maps(const dts_node *base, const dts_node *overlay, dts_arena *arena) {
    dts_node *out = copy_one(overlay, arena);
    const dts_node **sorted = dts_arena_array(arena, overlay->count + 1, sizeof *sorted);
    if (out == NULL || sorted == NULL) {
        return NULL;
    }
    size_t count = 0;
    for (const dts_node *n = overlay->first; n != NULL; n = n->next) {
        sorted[count++] = n;
    }
    qsort(sorted, count, sizeof *sorted, compare_by_key);
    dts_node *last = NULL;
    for (const dts_node *n = base->first; n != NULL; n = n->next) {
        const dts_node **over = bsearch(&n, sorted, count, sizeof *sorted, compare_by_key);
        dts_node *child = over == NULL ? copy_all(n, arena) : dts_tree_merge(n, *over, arena);
        if (child == NULL) {
            return NULL;
        }
        child->inherited += over == NULL ? 1 : 0;
        if (over != NULL) {
            const dts_node *value = n->kind == DTS_NODE_MAP ? dts_node_get(n, "value") : n;
            child->replaced = value != NULL && value->text != NULL ? dts_arena_strdup(arena, value->text) : NULL;
        }
        dts_tree_append(out, last, child);
        last = child;
    }
    /* then what only the overlay has, in its order */
    const dts_node **known = dts_arena_array(arena, base->count + 1, sizeof *known);
    if (known == NULL) {
        return NULL;
    }
    count = 0;
    for (const dts_node *n = base->first; n != NULL; n = n->next) {
        known[count++] = n;
    }
    qsort(known, count, sizeof *known, compare_by_key);
    for (const dts_node *n = overlay->first; n != NULL; n = n->next) {
        if (bsearch(&n, known, count, sizeof *known, compare_by_key) == NULL) {
            dts_node *child = copy_all(n, arena);
            if (child == NULL) {
                return NULL;
            }
            dts_tree_append(out, last, child);
            last = child;
        }
    }
    return out;
}

dts_node *dts_tree_merge(const dts_node *base, const dts_node *overlay, dts_arena *arena) {
    if (overlay == NULL || base == NULL) {
        const dts_node *one = overlay == NULL ? base : overlay;
        return one == NULL ? NULL : copy_all(one, arena);
    }
    if (overlay->kind != DTS_NODE_MAP || dts_node_get(overlay, "value") != NULL) {
        return copy_all(overlay, arena); /* a new value leaves the old one's source behind */
    }
    if (base->kind == DTS_NODE_SCALAR && dts_node_get(overlay, "profile") == NULL) {
        base = dts_tree_open_name(base, arena);
        if (base == NULL) {
            return NULL;
        }
    }
    return base->kind == DTS_NODE_MAP ? merge_maps(base, overlay, arena) : copy_all(overlay, arena);
}
