/* Values of one map that do not fit together, and which of them to point at. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/schema.h"
#include "config/tree.h"

enum { KEYS_MOST = 4 };

bool dts_node_is_over(const dts_node *a, const dts_node *b) {
    if (a->implied != b->implied) {
        return b->implied;
    }
    if (a->inherited != b->inherited) {
        return a->inherited < b->inherited;
    }
    return a->place.line == 0 && b->place.line != 0;
}

static size_t find_all(const dts_node *map, const char *keys, const dts_node *out[KEYS_MOST]) {
    size_t count = 0;
    for (const char *at = keys; *at != '\0' && count < KEYS_MOST; at += strspn(at, ", ")) {
        char name[64];
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        const dts_node *node = map != NULL ? dts_node_get(map, name) : NULL;
        if (node != NULL) {
            out[count++] = node;
        }
        at += length;
    }
    return count;
}

/* The file without its folder: a profile's may be anywhere. */
static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void write_others(const dts_node *const *nodes, size_t count, const dts_node *culprit, dts_text *help) {
    for (size_t i = 0; i < count; i++) {
        const dts_place *place = &nodes[i]->place;
        const bool elsewhere = nodes[i] != culprit && place->file != NULL &&
                               (culprit->place.file == NULL || strcmp(place->file, culprit->place.file) != 0);
        if (elsewhere) {
            dts_text_printf(help, "%s%s stands in %s", help->length > 0 ? "; " : "", nodes[i]->key,
                            file_name(place->file));
            if (place->line > 0) {
                dts_text_printf(help, ":%u", (unsigned)place->line);
            }
        }
    }
}

dts_status dts_bind_conflict(dts_binder *binder, const dts_node *map, const char *key, const char *keys,
                             const char *help, const char *format, ...) {
    const dts_node *nodes[KEYS_MOST] = {NULL};
    const size_t count = find_all(map, keys, nodes);
    const dts_node *culprit = count > 0 ? nodes[0] : NULL;
    for (size_t i = 1; i < count; i++) {
        culprit = dts_node_is_over(nodes[i], culprit) ? nodes[i] : culprit;
    }
    dts_text message = {0}, more = {0}, path = {0};
    va_list arguments;
    va_start(arguments, format);
    dts_text_vprintf(&message, format, arguments);
    va_end(arguments);
    dts_text_add(&more, help != NULL ? help : "");
    dts_text_add(&path, key);
    if (culprit != NULL) {
        write_others(nodes, count, culprit, &more);
        dts_text_printf(&path, "%s%s", key[0] != '\0' ? "." : "", culprit->key);
    }
    const dts_place *place = culprit != NULL ? &culprit->place : map != NULL ? &map->place : NULL;
    dts_status status =
        dts_diag_error(binder->diag, place, dts_text_string(&path), more.length > 0 ? dts_text_string(&more) : NULL,
                       "%s", dts_text_string(&message));
    dts_text_free(&message);
    dts_text_free(&more);
    dts_text_free(&path);
    return status;
}
