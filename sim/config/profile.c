/* Profiles: found by name under the roots or by path, with their bases (`extends`) merged below them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/digest.h"
#include "config/inside.h"

enum { BASES_MOST = 16 };

/* The files being read on top of each other, innermost first. */
typedef struct chain {
    const char *name;
    dev_t device; /* device and inode tell whether two paths are one file */
    ino_t inode;
    const struct chain *above;
    unsigned length;
} chain;

typedef struct lookup {
    dts_binder *binder;
    const char *folder;
    const dts_place *reference;
    const char *key;
} lookup;

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text);
    size_t tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool dts_is_profile_path(const char *name) {
    return strchr(name, '/') != NULL || ends_with(name, ".yaml") || ends_with(name, ".yml") || ends_with(name, ".json");
}

/* Letters, digits and "._+-", not starting with a point: such a name stays in its folder. */
static bool is_name(const char *name) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-";
    return name[0] != '\0' && name[0] != '.' && strspn(name, allowed) == strlen(name);
}

/* A link for the file at path; inode 0 when there is no such file. */
static chain chain_link(const char *name, const char *path, const chain *above) {
    struct stat info;
    chain link = {.name = name, .above = above, .length = above == NULL ? 1 : above->length + 1};
    if (path != NULL && stat(path, &info) == 0) {
        link.device = info.st_dev;
        link.inode = info.st_ino;
    }
    return link;
}

static bool is_same_file(const chain *a, const chain *b) {
    return a->inode != 0 && a->inode == b->inode && a->device == b->device;
}

bool dts_is_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* ---- lists ---- */

static int compare_names(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

typedef struct name_list {
    const char **names;
    size_t count;
    size_t capacity;
} name_list;

static bool name_add(name_list *list, const char *file, dts_arena *arena) {
    const char **names = dts_array_room(list->names, &list->capacity, list->count + 1, sizeof *names);
    if (names == NULL) {
        return false;
    }
    list->names = names;
    list->names[list->count] = dts_arena_strndup(arena, file, strlen(file) - strlen(".yaml"));
    return list->names[list->count++] != NULL;
}

/* The profiles of one folder; a root without the folder is fine. */
static dts_status list_folder(const char *path, dts_arena *arena, name_list *list, dts_diag *diag) {
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return errno == ENOENT || errno == ENOTDIR
                   ? DTS_OK
                   : dts_diag_fail(diag, DTS_IO, NULL, "cannot read the folder '%s': %s", path, strerror(errno));
    }
    dts_status status = DTS_OK;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        bool profile = ends_with(entry->d_name, ".yaml") && entry->d_name[0] != '.';
        if (profile && !name_add(list, entry->d_name, arena)) {
            status = dts_diag_nomem(diag);
            break;
        }
    }
    closedir(directory);
    return status;
}

dts_status dts_profile_list(const dts_profile_paths *profiles, const char *folder, dts_arena *arena,
                            const char ***names, size_t *count, dts_diag *diag) {
    name_list list = {0};
    dts_status status = DTS_OK;
    for (size_t i = 0; status == DTS_OK && i < profiles->count; i++) {
        const char *path = dts_arena_printf(arena, "%s/%s", profiles->roots[i], folder);
        status = path == NULL ? dts_diag_nomem(diag) : list_folder(path, arena, &list, diag);
    }
    const char **out = status == DTS_OK ? dts_arena_array(arena, list.count + 1, sizeof *out) : NULL;
    if (status == DTS_OK && out == NULL) {
        status = dts_diag_nomem(diag);
    }
    if (status == DTS_OK) {
        if (list.count > 0) {
            qsort(list.names, list.count, sizeof *list.names, compare_names);
        }
        *count = 0;
        for (size_t i = 0; i < list.count; i++) {
            if (*count == 0 || strcmp(out[*count - 1], list.names[i]) != 0) {
                out[(*count)++] = list.names[i];
            }
        }
        *names = out;
    }
    free(list.names);
    return status;
}

/* ---- finding ---- */

/* The file of a profile under the first root that has one; *out NULL: there is none. */
static dts_status find_file(const dts_binder *binder, const char *folder, const char *name, const char **out) {
    *out = NULL;
    for (size_t i = 0; i < binder->profiles.count; i++) {
        const char *path = dts_arena_printf(binder->arena, "%s/%s/%s.yaml", binder->profiles.roots[i], folder, name);
        if (path == NULL) {
            return dts_diag_nomem(binder->diag);
        }
        if (dts_is_file(path)) {
            *out = path;
            return DTS_OK;
        }
    }
    return DTS_OK;
}

bool dts_profile_is_there(const dts_binder *binder, const char *folder, const char *name) {
    const char *path = NULL;
    return is_name(name) && find_file(binder, folder, name, &path) == DTS_OK && path != NULL;
}

/* A path counts from the folder of the file that names it; NULL: out of memory. */
static const char *path_beside(const dts_binder *binder, const char *name, const dts_place *reference) {
    const char *file = reference == NULL || reference->file == NULL ? "" : reference->file;
    const char *slash = strrchr(file, '/');
    return name[0] == '/' || slash == NULL
               ? dts_arena_strdup(binder->arena, name)
               : dts_arena_printf(binder->arena, "%.*s%s", (int)(slash - file + 1), file, name);
}

/* The path of a file that a value names. */
static dts_status locate_file(dts_binder *binder, const char *name, const dts_place *reference, const char *key,
                              const char *kind, const char **out) {
    const dts_status status = dts_check_text(binder->diag, name, false, reference, key);
    if (status != DTS_OK) {
        return status;
    }
    const char *path = path_beside(binder, name, reference);
    if (path == NULL) {
        return dts_diag_nomem(binder->diag);
    }
    struct stat info;
    if (stat(path, &info) != 0) {
        return dts_diag_error(binder->diag, reference, key, "a path counts from the folder of the file that names it",
                              "cannot read '%s': %s", dts_excerpt_of(path).text,
                              errno == ENOENT ? "no such file" : strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        const char *config = dts_arena_printf(binder->arena, "%s/config.json", path);
        const bool model = config != NULL && S_ISDIR(info.st_mode) && stat(config, &info) == 0;
        if (model) { /* the folder of a Hugging Face model */
            *out = config;
            return DTS_OK;
        }
        char help[64];
        snprintf(help, sizeof help, "name a %s file", kind);
        return dts_diag_error(binder->diag, reference, key, help, "cannot read '%s': it is no regular file",
                              dts_excerpt_of(path).text);
    }
    *out = path;
    return DTS_OK;
}

dts_status dts_binder_read(dts_binder *binder, const char *name, const dts_place *reference, const char *key,
                           const char *kind, const char **path, char **text, size_t *length) {
    enum { FILE_MOST_B = 16 << 20 };
    dts_status status = locate_file(binder, name, reference, key, kind, path);
    if (status == DTS_OK) {
        status = dts_file_read(*path, FILE_MOST_B, text, length, binder->diag);
    }
    if (status != DTS_OK) {
        return status;
    }
    if (*length > FILE_MOST_B) {
        free(*text);
        *text = NULL;
        return dts_diag_error(binder->diag, &(dts_place){.file = *path}, NULL, NULL, "larger than 16 MiB");
    }
    const uint64_t before = binder->content != 0 ? binder->content : DTS_DIGEST_EMPTY;
    binder->content = dts_digest_add(before, *text, *length + 1); /* files of one value stay apart */
    return DTS_OK;
}

static dts_status locate(const lookup *l, const char *name, const char **out) {
    if (dts_is_profile_path(name)) {
        dts_text help = {0};
        const char *path = path_beside(l->binder, name, l->reference);
        struct stat info;
        const bool meant = name[0] != '/' && name[0] != '.' && path != NULL && stat(path, &info) != 0 &&
                           dts_suggest_for_path(l->binder, l->folder, name, &help);
        if (meant) {
            dts_text_add(&help, " a path counts from the folder of the file that names it");
            dts_diag_error(l->binder->diag, l->reference, l->key, dts_text_string(&help), "no file and no profile '%s'",
                           dts_excerpt_of(name).text);
        }
        dts_text_free(&help);
        return meant ? DTS_INVALID : locate_file(l->binder, name, l->reference, l->key, "YAML or JSON", out);
    }
    if (!is_name(name)) {
        return dts_diag_error(l->binder->diag, l->reference, l->key,
                              "names have letters, digits and . _ + - only; a path holds a '/' or ends in .yaml",
                              "'%s' cannot be the name of a profile", dts_excerpt_of(name).text);
    }
    const dts_status status = find_file(l->binder, l->folder, name, out);
    return status != DTS_OK || *out != NULL ? status
                                            : dts_unknown_profile(l->binder, l->folder, name, l->reference, l->key);
}

/* ---- bases ---- */

static dts_status refuse_cycle(const lookup *l, const chain *again) {
    const chain *links[BASES_MOST + 1];
    size_t count = 0;
    for (const chain *c = again->above; c != NULL; c = c->above) {
        links[count++] = c;
        if (is_same_file(c, again)) {
            break;
        }
    }
    dts_text circle = {0};
    for (size_t i = count; i > 0; i--) {
        dts_text_printf(&circle, "%s -> ", dts_excerpt_of(links[i - 1]->name).text);
    }
    dts_status status = dts_diag_error(l->binder->diag, l->reference, l->key, "remove one of the 'extends'",
                                       "profiles extend each other in a circle: %s%s", dts_text_string(&circle),
                                       dts_excerpt_of(again->name).text);
    dts_text_free(&circle);
    return status;
}

static dts_status load(const lookup *l, const char *name, const chain *above, dts_node **out);

/* Merges node over the base that its `extends` names. link: node's own file. */
static dts_status extend(const lookup *l, dts_node *node, const chain *link, dts_node **out) {
    *out = node;
    const dts_node *extends = dts_node_get(node, "extends");
    if (extends == NULL) {
        return DTS_OK;
    }
    for (dts_node **n = &node->first; *n != NULL; n = &(*n)->next) {
        if (*n == extends) {
            *n = extends->next;
            node->count--;
            break;
        }
    }
    if (extends->kind != DTS_NODE_SCALAR) {
        l->binder->incomplete = true;
        return dts_diag_error(l->binder->diag, &extends->place, l->key, "write extends: NAME or a path",
                              "expected the name of one file to extend, got %s", dts_node_excerpt(extends).text);
    }
    lookup next = {.binder = l->binder, .folder = l->folder, .reference = &extends->place, .key = l->key};
    dts_node *base = NULL;
    dts_status status = load(&next, extends->text, link, &base);
    if (base == NULL) {
        l->binder->incomplete = true;
        return status;
    }
    *out = dts_tree_merge(base, node, dts_binder_trees(l->binder));
    return *out == NULL ? dts_diag_nomem(l->binder->diag) : status;
}

/* The profile's tree with its bases; with a status other than DTS_OK *out may still be a tree worth binding. */
static dts_status load(const lookup *l, const char *name, const chain *above, dts_node **out) {
    const char *path = NULL;
    *out = NULL;
    dts_status status = locate(l, name, &path);
    if (status != DTS_OK) {
        return status;
    }
    chain link = chain_link(name, path, above);
    for (const chain *c = above; c != NULL; c = c->above) {
        if (is_same_file(c, &link)) {
            return refuse_cycle(l, &link);
        }
    }
    if (link.length > BASES_MOST) {
        return dts_diag_error(l->binder->diag, l->reference, l->key, "merge some of the bases",
                              "'extends' reaches through more than %d files", BASES_MOST);
    }
    dts_node *tree = NULL;
    status = dts_tree_read(path, &dts_limits_default, dts_binder_trees(l->binder), &tree, l->binder->diag);
    if (tree == NULL) {
        return status;
    }
    if (tree->kind != DTS_NODE_MAP) {
        /* any file of the machine may have been named: its content is not for messages */
        dts_place place = tree->place;
        place.line_text = NULL;
        const char *got = tree->kind == DTS_NODE_LIST ? "a list" : tree->kind == DTS_NODE_NULL ? "nothing" : "text";
        return dts_diag_error(l->binder->diag, &place, l->key, "a profile is a map: KEY: VALUE on each line",
                              "expected a profile, got %s", got);
    }
    if (l->binder->adopt != NULL) {
        status = dts_status_worse(status, l->binder->adopt(l->binder, tree, &tree));
    }
    return tree == NULL ? status : dts_status_worse(status, extend(l, tree, &link, out));
}

dts_status dts_profile_resolve(dts_binder *binder, const char *folder, const char *name, const dts_place *reference,
                               const char *key, dts_node **out) {
    lookup l = {.binder = binder, .folder = folder, .reference = reference, .key = key};
    return load(&l, name, NULL, out);
}

dts_status dts_profile_extend(dts_binder *binder, const char *folder, dts_node *node, dts_node **out) {
    const char *file = node->place.file == NULL ? "" : node->place.file;
    lookup l = {.binder = binder, .folder = folder, .reference = &node->place, .key = NULL};
    chain link = chain_link(file, file, NULL);
    return extend(&l, node, &link, out);
}
