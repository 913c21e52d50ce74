#include "roots.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOTS_MAX = 32 };

typedef struct root_list {
    dts_arena *arena;
    const char **roots;
    size_t count;
    bool failed;
} root_list;

static void add(root_list *list, const char *path) {
    struct stat status;
    if (list->count == ROOTS_MAX || path[0] == '\0' || stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->roots[i], path) == 0) {
            return;
        }
    }
    const char *copy = dts_arena_strdup(list->arena, path);
    if (copy == NULL) {
        list->failed = true;
        return;
    }
    list->roots[list->count++] = copy;
}

static void add_environment(root_list *list) {
    const char *data = getenv("DTSIM_DATA");
    if (data == NULL) {
        return;
    }
    char *copy = dts_arena_strdup(list->arena, data);
    if (copy == NULL) {
        list->failed = true;
        return;
    }
    char *rest = NULL;
    for (char *part = strtok_r(copy, ":", &rest); part != NULL; part = strtok_r(NULL, ":", &rest)) {
        add(list, part);
    }
}

/* The folder the program lies in, or "" when it cannot be told. */
static void program_folder(char folder[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
}

static void add_beside_program(root_list *list) {
    char folder[PATH_MAX];
    program_folder(folder);
    size_t build_length = strlen(DTSIM_BUILD_DIR);
    if (strncmp(folder, DTSIM_BUILD_DIR, build_length) == 0 &&
        (folder[build_length] == '/' || folder[build_length] == '\0')) {
        add(list, DTSIM_SOURCE_DIR);
        return;
    }
    const char *installed = dts_arena_printf(list->arena, "%s/../share/dtsim", folder);
    if (installed == NULL) {
        list->failed = true;
        return;
    }
    add(list, installed);
    add(list, DTSIM_DATADIR);
}

dts_status dts_roots_find(dts_arena *arena, dts_profile_paths *out) {
    root_list list = {.arena = arena, .roots = dts_arena_array(arena, ROOTS_MAX, sizeof(char *))};
    if (list.roots == NULL) {
        return DTS_NOMEM;
    }
    add_environment(&list);
    add_beside_program(&list);
    add(&list, ".");
    *out = (dts_profile_paths){.roots = list.roots, .count = list.count};
    return list.failed ? DTS_NOMEM : DTS_OK;
}
