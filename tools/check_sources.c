/* Does every number in the given YAML files say where it comes from?
 *
 *     dtsim-check-sources FILE-OR-FOLDER…
 *
 * A number has a source when the map it stands in, or any map around that one in the same file, has a `source:` that
 * says something: `{value: 1555 GB/s, source: "A100 data sheet, page 1"}` speaks for one number, a `source:` beside
 * other keys for all of them. A file that `extends:` another needs sources of its own: what is in the other file speaks
 * only for the numbers there. Exit 0: all have one; 1: some have none; 3: a file cannot be read. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <yaml.h>

enum { DEPTH_MAX = 64, PATH_LENGTH_MAX = 4096 };

typedef struct source_tally {
    size_t files, numbers;
    size_t missing;    /* numbers without a source, and sources that say nothing */
    size_t unreadable; /* files */
} source_tally;

typedef struct source_walk {
    const char *path;
    yaml_document_t document;
    source_tally *tally;
} source_walk;

static const char *text_of(const yaml_node_t *node) {
    return (const char *)node->data.scalar.value;
}

/* "8", "-1.5e3", "312 TFLOP/s", "80 %", "40GiB", but not "1.11.0", "2020-05-14" or "8 GPUs per node". */
static bool is_number(const char *text) {
    char *rest = NULL;
    if (strchr("+-.0123456789", text[0]) == NULL || text[0] == '\0') {
        return false;
    }
    strtod(text, &rest);
    if (rest == text) {
        return false;
    }
    rest += *rest == ' ';
    return strspn(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/%") == strlen(rest);
}

static bool says_nothing(const yaml_node_t *source) {
    static const char *const empty[] = {"null", "~", "none", "unknown", "todo", "tbd", "n/a", "?", "-"};
    if (source->type == YAML_SEQUENCE_NODE) {
        return source->data.sequence.items.start == source->data.sequence.items.top;
    }
    if (source->type != YAML_SCALAR_NODE) {
        return true;
    }
    const char *text = text_of(source);
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        if (strcasecmp(text, empty[i]) == 0) {
            return true;
        }
    }
    return text[strspn(text, " \t\r\n")] == '\0';
}

static void complain(source_walk *walk, const yaml_node_t *node, const char *what, const char *subject) {
    walk->tally->missing++;
    printf("%s:%zu:%zu: error: %s: %s\n", walk->path, node->start_mark.line + 1, node->start_mark.column + 1, subject,
           what);
}

static void check_node(source_walk *walk, int id, const char *key, bool sourced, unsigned depth);

static void check_map(source_walk *walk, const yaml_node_t *map, bool sourced, unsigned depth) {
    const yaml_node_pair_t *first = map->data.mapping.pairs.start;
    const yaml_node_pair_t *end = map->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = first; pair < end; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&walk->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(&walk->document, pair->value);
        if (key->type == YAML_SCALAR_NODE && strcmp(text_of(key), "source") == 0) {
            if (says_nothing(value)) {
                complain(walk, value, "this source says nothing", "source");
            } else {
                sourced = true;
            }
        }
    }
    for (const yaml_node_pair_t *pair = first; pair < end; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&walk->document, pair->key);
        const char *name = key->type == YAML_SCALAR_NODE ? text_of(key) : "?";
        if (strcmp(name, "source") != 0 && strcmp(name, "note") != 0) {
            check_node(walk, pair->value, name, sourced, depth + 1);
        }
    }
}

static void check_node(source_walk *walk, int id, const char *key, bool sourced, unsigned depth) {
    const yaml_node_t *node = yaml_document_get_node(&walk->document, id);
    if (depth > DEPTH_MAX) { /* also reached through an alias to a node around itself */
        complain(walk, node, "nested too deeply", key);
        return;
    }
    switch (node->type) {
        case YAML_SCALAR_NODE:
            if (is_number(text_of(node))) {
                walk->tally->numbers++;
                if (!sourced) {
                    complain(walk, node, "a number without a source", key);
                }
            }
            break;
        case YAML_SEQUENCE_NODE:
            for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
                 item++) {
                check_node(walk, *item, key, sourced, depth + 1);
            }
            break;
        case YAML_MAPPING_NODE:
            check_map(walk, node, sourced, depth);
            break;
        case YAML_NO_NODE:
            break;
    }
}

static void check_file(const char *path, source_tally *tally) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        printf("%s: error: %s\n", path, strerror(errno));
        tally->unreadable++;
        return;
    }
    tally->files++;
    yaml_parser_t parser;
    source_walk walk = {.path = path, .tally = tally};
    if (!yaml_parser_initialize(&parser)) {
        printf("%s: error: out of memory\n", path);
        tally->unreadable++;
        fclose(file);
        return;
    }
    yaml_parser_set_input_file(&parser, file);
    if (yaml_parser_load(&parser, &walk.document)) {
        if (yaml_document_get_root_node(&walk.document) != NULL) {
            check_node(&walk, 1, "", false, 0); /* libyaml counts nodes from 1, the root first */
        }
        yaml_document_delete(&walk.document);
    } else {
        printf("%s:%zu:%zu: error: %s\n", path, parser.problem_mark.line + 1, parser.problem_mark.column + 1,
               parser.problem != NULL ? parser.problem : "not YAML");
        tally->unreadable++;
    }
    yaml_parser_delete(&parser);
    fclose(file);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text);
    size_t end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static void check_path(const char *path, source_tally *tally, unsigned depth);

static void check_folder(const char *path, source_tally *tally, unsigned depth) {
    struct dirent **entries = NULL;
    int count = depth > DEPTH_MAX ? -1 : scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        printf("%s: error: cannot list the folder\n", path);
        tally->unreadable++;
        return;
    }
    for (int i = 0; i < count; i++) {
        char inner[PATH_LENGTH_MAX];
        int length = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && length > 0 && (size_t)length < sizeof inner) {
            check_path(inner, tally, depth + 1);
        }
        free(entries[i]);
    }
    free(entries);
}

/* Files named on the command line are always checked; of a folder's, those called .yaml or .yml. */
static void check_path(const char *path, source_tally *tally, unsigned depth) {
    struct stat status;
    if (stat(path, &status) != 0) {
        printf("%s: error: %s\n", path, strerror(errno));
        tally->unreadable++;
    } else if (S_ISDIR(status.st_mode)) {
        check_folder(path, tally, depth);
    } else if (depth == 0 || ends_with(path, ".yaml") || ends_with(path, ".yml")) {
        check_file(path, tally);
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fputs("usage: dtsim-check-sources FILE-OR-FOLDER...\n", stderr);
        return 2;
    }
    source_tally tally = {0};
    for (int i = 1; i < argc; i++) {
        check_path(argv[i], &tally, 0);
    }
    if (tally.files == 0) {
        puts("error: no YAML file found");
        tally.unreadable++;
    }
    printf("%zu files, %zu numbers, %zu without a source\n", tally.files, tally.numbers, tally.missing);
    if (tally.unreadable > 0) {
        return 3;
    }
    return tally.missing > 0 ? 1 : 0;
}
