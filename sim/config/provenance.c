/* Where every bound value came from. */
#include <string.h>

#include "base/array.h"
#include "config/inside.h"

enum { LINE_LONGEST = 400 };

struct dts_provenance {
    dts_arena *arena;
    dts_provenance_entry *entries;
    size_t *key_lengths; /* of the entries: most keys that are not the one looked for differ in length */
    size_t count;
    size_t capacity, length_capacity;
    const char *last_file; /* most entries come from the file of the one before */
};

dts_status dts_provenance_begin(dts_binder *binder) {
    if (binder->provenance != NULL) {
        return DTS_OK;
    }
    binder->provenance = dts_arena_alloc(binder->arena, sizeof *binder->provenance);
    if (binder->provenance == NULL) {
        return dts_diag_nomem(binder->diag);
    }
    binder->provenance->arena = binder->arena;
    return DTS_OK;
}

static bool make_room(dts_provenance *p) {
    dts_provenance_entry *entries = dts_arena_room(p->arena, p->entries, &p->capacity, p->count + 1, sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    p->entries = entries;
    size_t *lengths = dts_arena_room(p->arena, p->key_lengths, &p->length_capacity, p->count + 1, sizeof *lengths);
    p->key_lengths = lengths == NULL ? p->key_lengths : lengths;
    return lengths != NULL;
}

/* The place with strings of our own: the document may be gone when it is shown. */
static bool own_place(dts_provenance *p, const dts_place *place, dts_place *out) {
    *out = (dts_place){.line = place->line, .column = place->column, .origin = place->origin};
    if (place->file == NULL) {
        return true;
    }
    if (p->last_file == NULL || strcmp(p->last_file, place->file) != 0) {
        p->last_file = dts_arena_strdup(p->arena, place->file);
    }
    out->file = p->last_file;
    if (place->line_text != NULL && place->line_length <= LINE_LONGEST) {
        out->line_text = dts_arena_strndup(p->arena, place->line_text, place->line_length);
        out->line_length = out->line_text == NULL ? 0 : place->line_length;
    }
    return out->file != NULL;
}

dts_status dts_provenance_add(dts_binder *binder, const char *key, const dts_node *node, bool as_yaml) {
    dts_provenance *p = binder->provenance;
    dts_text value = {0};
    if (node->kind == DTS_NODE_SCALAR && !as_yaml) {
        dts_text_add(&value, node->text);
    } else {
        dts_node_write(node, &value);
    }
    dts_provenance_entry entry = {.key = dts_arena_strdup(p->arena, key),
                                  .value = dts_arena_strdup(p->arena, dts_text_string(&value)),
                                  .source = node->source == NULL ? NULL : dts_arena_strdup(p->arena, node->source),
                                  .content = binder->content};
    bool complete = dts_text_status(&value) == DTS_OK && entry.key != NULL && entry.value != NULL &&
                    (node->source == NULL || entry.source != NULL) && own_place(p, &node->place, &entry.place) &&
                    make_room(p);
    dts_text_free(&value);
    if (!complete) {
        return dts_diag_nomem(binder->diag);
    }
    p->key_lengths[p->count] = strlen(key);
    p->entries[p->count++] = entry;
    return DTS_OK;
}

dts_status dts_provenance_take_known(dts_binder *binder, const char *key) {
    dts_provenance *p = binder->provenance;
    const dts_provenance *known = binder->known_provenance;
    const size_t length = strlen(key);
    for (size_t i = 0; i < dts_provenance_count(known); i++) {
        const dts_provenance_entry *entry = &known->entries[i];
        const char behind = strncmp(entry->key, key, length) == 0 ? entry->key[length] : '-';
        if (behind != '\0' && behind != '.' && behind != '[') {
            continue;
        }
        if (!make_room(p)) {
            return dts_diag_nomem(binder->diag);
        }
        p->key_lengths[p->count] = known->key_lengths[i];
        p->entries[p->count++] = *entry;
    }
    return DTS_OK;
}

size_t dts_provenance_count(const dts_provenance *provenance) {
    return provenance == NULL ? 0 : provenance->count;
}

const dts_provenance_entry *dts_provenance_get(const dts_provenance *provenance, size_t index) {
    return provenance != NULL && index < provenance->count ? &provenance->entries[index] : NULL;
}

const dts_provenance_entry *dts_provenance_find(const dts_provenance *provenance, const char *key) {
    const size_t length = strlen(key);
    for (size_t i = 0; i < dts_provenance_count(provenance); i++) {
        if (provenance->key_lengths[i] == length && memcmp(provenance->entries[i].key, key, length) == 0) {
            return &provenance->entries[i];
        }
    }
    return NULL;
}

bool dts_provenance_locate(const void *provenance, const char *key, dts_place *out) {
    const dts_provenance_entry *found = dts_provenance_find(provenance, key);
    const bool within = found == NULL;
    const size_t length = strlen(key);
    for (size_t i = 0; within && i < dts_provenance_count(provenance); i++) {
        const dts_provenance_entry *entry = dts_provenance_get(provenance, i);
        const char behind = strncmp(entry->key, key, length) == 0 ? entry->key[length] : '\0';
        if (entry->place.file != NULL && (behind == '.' || behind == '[')) {
            /* of a map's values the one that was set is to blame, which has no line, and not what a file had before */
            found = found == NULL || (entry->place.line == 0 && found->place.line != 0) ? entry : found;
        }
    }
    if (found == NULL || found->place.file == NULL) {
        return false;
    }
    *out = found->place;
    return true;
}
