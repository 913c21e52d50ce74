/* Documents: files in, trees out, and values set by dotted key. */
#include "config/document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/excerpt.h"
#include "config/inside.h"

const dts_limits dts_limits_default = {.bytes = 4u << 20, .nodes = 200000, .depth = 64, .scalar_B = 64u << 10};

dts_document *dts_document_new(void) {
    dts_document *document = calloc(1, sizeof *document);
    if (document == NULL) {
        return NULL;
    }
    document->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (document->arena == NULL) {
        free(document);
        return NULL;
    }
    dts_place nowhere = {0};
    document->root = dts_tree_node(document->arena, DTS_NODE_NULL, &nowhere);
    if (document->root == NULL) {
        dts_document_free(document);
        return NULL;
    }
    return document;
}

void dts_document_free(dts_document *document) {
    if (document != NULL) {
        dts_arena_free(document->arena);
        free(document);
    }
}

dts_node *dts_document_root(dts_document *document) {
    return document->root;
}

dts_arena *dts_document_arena(dts_document *document) {
    return document->arena;
}

/* ---- reading ---- */

static dts_status refuse_file(const char *path, const char *what, dts_diag *diag) {
    return dts_diag_fail(diag, DTS_IO, NULL, "cannot read '%s': %s", path, what);
}

/* There is room for what the file is said to hold, and then for as much as comes: a pipe does not say. */
dts_status dts_file_read(const char *path, size_t limit, char **out, size_t *length, dts_diag *diag) {
    enum { LEAST_ROOM_B = 4096 };
    struct stat info;
    if (stat(path, &info) != 0) {
        return refuse_file(path, errno == ENOENT ? "no such file" : strerror(errno), diag);
    }
    if (S_ISDIR(info.st_mode)) {
        return dts_diag_fail(diag, DTS_IO, "name a file in it", "cannot read '%s': it is a directory", path);
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return refuse_file(path, strerror(errno), diag);
    }
    const size_t most = limit + 1, said = info.st_size > 0 ? (size_t)info.st_size + 1 : 0;
    char *text = NULL;
    size_t room = said > LEAST_ROOM_B ? said : LEAST_ROOM_B, got = 0;
    for (bool more = true; more; room *= 2) {
        room = room < most ? room : most;
        char *larger = realloc(text, room + 1);
        if (larger == NULL) {
            free(text);
            fclose(file);
            return dts_diag_nomem(diag);
        }
        text = larger;
        got += fread(text + got, 1, room - got, file);
        more = got == room && room < most;
    }
    bool failed = ferror(file) != 0;
    int error = errno;
    fclose(file);
    if (failed) {
        free(text);
        return refuse_file(path, strerror(error), diag);
    }
    text[got] = '\0';
    *out = text;
    *length = got;
    return DTS_OK;
}

/* The table that `dtsim show --effective` prints: kept in a file it is readily taken for a scenario, and what YAML
 * finds wrong with it helps nobody. */
static bool is_table_of_values(const dts_source *source) {
    static const char *const titles[] = {"key", "value", "source"};
    const char *at = source->text;
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        const size_t length = strlen(titles[i]);
        if (strncmp(at, titles[i], length) != 0 || (at[length] != ' ' && at[length] != '\n')) {
            return false;
        }
        at += length;
        at += strspn(at, " ");
    }
    return true;
}

bool dts_is_script(const char *text, size_t length) {
    static const char *const shells[] = {"sh", "bash", "zsh", "dash", "ksh"};
    if (length < 2 || memcmp(text, "#!", 2) != 0) {
        return false;
    }
    const char *end = memchr(text, '\n', length);
    end = end != NULL ? end : text + length;
    for (const char *word = text + 2; word < end;) { /* the first that is neither env nor one of its options */
        const char *stop = word;
        while (stop < end && *stop != ' ' && *stop != '\t' && *stop != '\r') {
            word = *stop == '/' ? stop + 1 : word; /* without its folder */
            stop++;
        }
        const size_t size = (size_t)(stop - word);
        if (size > 0 && *word != '-' && !(size == 3 && memcmp(word, "env", size) == 0)) {
            bool is = size >= strlen("python") && memcmp(word, "python", strlen("python")) == 0;
            for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
                is = is || (size == strlen(shells[i]) && memcmp(word, shells[i], size) == 0);
            }
            return is;
        }
        word = stop + 1;
    }
    return false;
}

static dts_status tree_parse(const char *text, size_t length, const char *name, const dts_limits *limits,
                             dts_arena *arena, dts_node **out, dts_diag *diag) {
    dts_source source;
    *out = NULL;
    dts_status status = dts_source_make(text, length, name, NULL, limits, arena, &source, diag);
    if (status != DTS_OK) {
        return status;
    }
    if (is_table_of_values(&source)) {
        const dts_place place = dts_source_place(&source, 0, 0);
        return dts_diag_error(diag, &place, NULL,
                              "`dtsim show NAME`, without --effective, prints a file that can be used",
                              "a table of values for reading, as `dtsim show --effective` prints it");
    }
    if (dts_is_script(source.text, source.length)) {
        const dts_place place = dts_source_place(&source, 0, 0);
        return dts_diag_error(diag, &place, NULL, "`dtsim import FILE` makes a scenario of a launcher's script",
                              "a script, not YAML");
    }
    return dts_tree_build(&source, NULL, limits, arena, out, diag);
}

dts_status dts_tree_read(const char *path, const dts_limits *limits, dts_arena *arena, dts_node **out, dts_diag *diag) {
    char *text = NULL;
    size_t length = 0;
    *out = NULL;
    dts_status status = dts_file_read(path, limits->bytes, &text, &length, diag);
    if (status == DTS_OK) {
        status = tree_parse(text, length, path, limits, arena, out, diag);
    }
    free(text);
    return status;
}

/* Wraps up: a document around the tree, or none when there is no tree. */
static dts_status finish(dts_document *document, dts_status status, dts_document **out) {
    if (document->root == NULL) {
        dts_document_free(document);
        document = NULL;
    }
    *out = document;
    return status;
}

dts_status dts_document_read(const char *path, const dts_limits *limits, dts_document **out, dts_diag *diag) {
    *out = NULL;
    dts_document *document = dts_document_new();
    if (document == NULL) {
        return dts_diag_nomem(diag);
    }
    const dts_limits *used = limits != NULL ? limits : &dts_limits_default;
    return finish(document, dts_tree_read(path, used, document->arena, &document->root, diag), out);
}

dts_status dts_document_parse(const char *text, size_t length, const char *name, const dts_limits *limits,
                              dts_document **out, dts_diag *diag) {
    *out = NULL;
    dts_document *document = dts_document_new();
    if (document == NULL) {
        return dts_diag_nomem(diag);
    }
    const dts_limits *used = limits != NULL ? limits : &dts_limits_default;
    return finish(document, tree_parse(text, length, name, used, document->arena, &document->root, diag), out);
}

/* ---- setting ---- */

/* The value as a tree whose every node stands at origin. */
static dts_status value_parse(dts_document *document, const char *dotted_key, const char *value,
                              const dts_place *origin, dts_node **out, dts_diag *diag) {
    const char *name = origin != NULL && origin->file != NULL ? origin->file : dotted_key;
    dts_source source;
    dts_status status =
        dts_source_make(value, strlen(value), name, dotted_key, &dts_limits_default, document->arena, &source, diag);
    if (status != DTS_OK) {
        return status;
    }
    dts_place place = {.file = source.name};
    if (origin != NULL) {
        place = *origin;
        place.file = source.name;
    }
    if (place.line_text != NULL) { /* the caller's text may not live as long as the document */
        place.line_text = dts_arena_strndup(document->arena, place.line_text, place.line_length);
    }
    return dts_tree_build(&source, &place, &dts_limits_default, document->arena, out, diag);
}

/* Makes *node a map: an empty one out of null, {profile: NAME} out of a name. */
static dts_status open_map(dts_document *document, dts_node *node, const char *dotted_key, const dts_place *origin,
                           dts_diag *diag) {
    if (node->kind == DTS_NODE_MAP) {
        return DTS_OK;
    }
    if (node->kind == DTS_NODE_LIST) {
        return dts_diag_error(diag, origin, dotted_key, "set the whole list, such as KEY=[1, 2]",
                              "'%s' is a list; its entries cannot be set one by one",
                              dts_excerpt_of(node->key == NULL ? "the document" : node->key).text);
    }
    if (node->kind == DTS_NODE_NULL) {
        node->kind = DTS_NODE_MAP;
        return DTS_OK;
    }
    dts_node *map = dts_tree_open_name(node, document->arena);
    if (map == NULL) {
        return dts_diag_nomem(diag);
    }
    node->kind = DTS_NODE_MAP;
    node->text = NULL;
    node->quoted = false;
    node->first = map->first;
    node->count = map->count;
    return DTS_OK;
}

/* The child of the map under key, made (null, at origin) when absent; NULL: out of memory. */
static dts_node *child_for(dts_document *document, dts_node *map, const char *key, const dts_place *origin) {
    dts_node *child = dts_node_get(map, key);
    if (child == NULL) {
        child = dts_tree_node(document->arena, DTS_NODE_NULL, origin);
        if (child != NULL) {
            child->key = key;
            child->key_place = *origin;
            dts_tree_append(map, NULL, child);
        }
    }
    return child;
}

static bool is_dotted_key(const char *key) {
    size_t length = strlen(key);
    unsigned parts = 1;
    for (size_t i = 0; i < length; i++) {
        parts += key[i] == '.' ? 1 : 0;
    }
    return length > 0 && key[0] != '.' && key[length - 1] != '.' && strstr(key, "..") == NULL &&
           parts < dts_limits_default.depth;
}

dts_status dts_document_set(dts_document *document, const char *dotted_key, const char *value, const dts_place *origin,
                            dts_diag *diag) {
    if (!is_dotted_key(dotted_key)) {
        return dts_diag_error(diag, origin, NULL, "write KEY=VALUE with a key such as training.micro_batch",
                              "'%s' is no key", dts_excerpt_of(dotted_key).text);
    }
    dts_node *tree = NULL;
    dts_status status = value_parse(document, dotted_key, value, origin, &tree, diag);
    if (status != DTS_OK) {
        return status;
    }
    dts_node *at = document->root;
    for (const char *part = dotted_key; part != NULL;) {
        size_t length = strcspn(part, ".");
        const char *key = dts_arena_strndup(document->arena, part, length);
        status = open_map(document, at, dotted_key, origin, diag);
        if (status != DTS_OK) {
            return status;
        }
        at = key == NULL ? NULL : child_for(document, at, key, &tree->place);
        if (at == NULL) {
            return dts_diag_nomem(diag);
        }
        part = part[length] == '\0' ? NULL : part + length + 1;
    }
    tree->key = at->key;
    tree->key_place = tree->place;
    tree->next = at->next;
    *at = *tree; /* in place, so that the order of the keys stays */
    return DTS_OK;
}
