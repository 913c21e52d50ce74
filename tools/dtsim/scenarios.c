/* Scenarios by name: ROOT/scenarios/THEME/NAME.yaml is called "THEME/NAME". */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/quote.h"
#include "interop/interop.h"
#include "kinds.h"
#include "overrides.h"

enum { DEEPEST = 4, MATCHES_MOST = 8, ENDINGS = 3 };

static const char suffix[] = ".yaml";
static const char *const endings[ENDINGS] = {suffix, ".yml", ".json"};

typedef struct name_list {
    dts_arena *arena;
    const char **names;
    size_t count, capacity;
    bool failed;
} name_list;

static void add(name_list *list, const char *name, size_t length) {
    const char **names = dts_array_room(list->names, &list->capacity, list->count + 1, sizeof *names);
    if (names == NULL) {
        list->failed = true;
        return;
    }
    list->names = names;
    const char *copy = dts_arena_strndup(list->arena, name, length);
    if (copy == NULL) {
        list->failed = true;
        return;
    }
    list->names[list->count++] = copy;
}

/* What else lies in the folders of scenarios, such as a pipe that nobody writes to, is not read. */
static bool is_regular(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Adds all scenarios below folder/inner. */
static void walk(name_list *list, const char *folder, const char *inner, int depth) {
    const char *path = dts_arena_printf(list->arena, "%s/%s", folder, inner);
    DIR *directory = path != NULL && depth < DEEPEST ? opendir(path) : NULL;
    if (directory == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        const char *name = dts_arena_printf(list->arena, "%s%s%s", inner, inner[0] != '\0' ? "/" : "", entry->d_name);
        const char *full = name != NULL ? dts_arena_printf(list->arena, "%s/%s", folder, name) : NULL;
        struct stat info;
        if (full == NULL) {
            list->failed = true;
        } else if (stat(full, &info) == 0 && S_ISDIR(info.st_mode)) {
            walk(list, folder, name, depth + 1);
        } else if (is_regular(full)) {
            size_t length = strlen(name);
            size_t tail = sizeof suffix - 1;
            if (length > tail && strcmp(name + length - tail, suffix) == 0) {
                add(list, name, length - tail);
            }
        }
    }
    closedir(directory);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

dts_status dts_scenario_names(dts_tool *tool, const char ***names, size_t *count) {
    name_list list = {.arena = tool->arena};
    for (size_t i = 0; i < tool->profiles.count; i++) {
        const char *folder = dts_arena_printf(tool->arena, "%s/scenarios", tool->profiles.roots[i]);
        if (folder != NULL) {
            walk(&list, folder, "", 0);
        }
    }
    if (list.count > 0) {
        qsort(list.names, list.count, sizeof *list.names, by_name);
    }
    size_t unique = 0;
    for (size_t i = 0; i < list.count; i++) {
        if (unique == 0 || strcmp(list.names[unique - 1], list.names[i]) != 0) {
            list.names[unique++] = list.names[i];
        }
    }
    *count = unique;
    *names = dts_arena_array(tool->arena, unique, sizeof **names);
    if (*names != NULL && unique > 0) {
        memcpy(*names, list.names, unique * sizeof **names);
    }
    free(list.names);
    return list.failed || *names == NULL ? dts_diag_nomem(tool->diag) : DTS_OK;
}

/* A file of this name in a folder of scenarios, regular or not; NULL: there is none. */
static const char *scenario_in_roots(dts_tool *tool, const char *argument, bool regular) {
    for (size_t i = 0; i < tool->profiles.count; i++) {
        const char *path =
            dts_arena_printf(tool->arena, "%s/scenarios/%s%s", tool->profiles.roots[i], argument, suffix);
        if (path != NULL && access(path, F_OK) == 0 && is_regular(path) == regular) {
            return path;
        }
    }
    return NULL;
}

const char *dts_scenario_path(dts_tool *tool, const char *argument) {
    return access(argument, F_OK) == 0 ? argument : scenario_in_roots(tool, argument, true);
}

/* Scenarios whose name without their folder is the argument. */
typedef struct name_matches {
    const char *names[MATCHES_MOST];
    size_t count;
} name_matches;

static const char *last_part(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

/* Length of a path without the ending of a scenario's file. */
static size_t stem_length(const char *path) {
    size_t length = strlen(path);
    for (size_t i = 0; i < ENDINGS; i++) {
        const size_t tail = strlen(endings[i]);
        if (length > tail && strcmp(path + length - tail, endings[i]) == 0) {
            return length - tail;
        }
    }
    return length;
}

/* An argument's last part, without the ending of a file. In the tool's arena. */
static const char *bare_name(dts_tool *tool, const char *argument) {
    const char *last = last_part(argument);
    const char *bare = dts_arena_strndup(tool->arena, last, stem_length(last));
    return bare != NULL ? bare : last;
}

static name_matches scenarios_named(dts_tool *tool, const char *argument) {
    const char *bare = bare_name(tool, argument);
    const char **names;
    size_t count;
    name_matches found = {.count = 0};
    if (dts_scenario_names(tool, &names, &count) == DTS_OK) {
        for (size_t i = 0; i < count && found.count < MATCHES_MOST; i++) {
            if (strcmp(last_part(names[i]), bare) == 0) {
                found.names[found.count++] = names[i];
            }
        }
    }
    return found;
}

const char *dts_scenario_nearest(dts_tool *tool, const char *argument) {
    const char **names;
    size_t count;
    if (dts_scenario_names(tool, &names, &count) != DTS_OK) {
        return NULL;
    }
    const char *nearest = dts_nearest_name(argument, names, count);
    const char **parts = nearest == NULL ? dts_arena_array(tool->arena, count, sizeof *parts) : NULL;
    if (parts == NULL) {
        return nearest;
    }
    for (size_t i = 0; i < count; i++) {
        parts[i] = last_part(names[i]);
    }
    const char *near = dts_nearest_name(bare_name(tool, argument), parts, count);
    for (size_t i = 0; i < count && near != NULL && nearest == NULL; i++) {
        nearest = parts[i] == near ? names[i] : NULL;
    }
    return nearest;
}

const char *dts_scenario_path_by_name(dts_tool *tool, const char *argument) {
    if (strcmp(bare_name(tool, argument), argument) != 0) {
        return NULL; /* a path or a file was meant, and it is not there */
    }
    const name_matches named = scenarios_named(tool, argument);
    return named.count == 1 ? dts_scenario_path(tool, named.names[0]) : NULL;
}

/* "did you mean 'planning/gpt3-175b'?" and what lies between it and the next words. Nothing where there is none. */
static void add_meant(const char *const *meant, size_t count, const char *next, dts_text *help) {
    for (size_t i = 0; i < count; i++) {
        dts_text_printf(help, "%s'%s'", i == 0 ? "did you mean " : " or ", meant[i]);
    }
    dts_text_printf(help, "%s%s", count > 0 ? "?" : "", count > 0 ? next : "");
}

/* A profile where a scenario is asked for: says what it is and what takes it. named: scenarios of the same name. */
static dts_status refuse_profile(dts_tool *tool, const dts_profile_kind *kind, const char *name, bool file,
                                 const name_matches *named) {
    const char *key = strcmp(kind->name, "gpus") == 0 ? "cluster.gpu" : kind->one;
    dts_text help = {0};
    add_meant(named->names, named->count, " ", &help);
    dts_text_add(&help, "`dtsim show ");
    dts_text_add_word(&help, name);
    dts_text_add(&help, "` shows it; to use it, write");
    dts_override_write(" ", key, name, &help);
    dts_text_add(&help, " after a scenario");
    dts_diag_fail(tool->diag, DTS_INVALID, dts_text_string(&help), "%s is a %s%s, not a scenario", name, kind->one,
                  file ? " profile" : "");
    dts_text_free(&help);
    return DTS_INVALID;
}

const char *dts_path_with_slash(dts_tool *tool, const char *path) {
    return strchr(path, '/') != NULL ? path : dts_arena_printf(tool->arena, "./%s", path);
}

/* A file that is called so but for its ending; NULL: there is none. */
static const char *file_meant(dts_tool *tool, const char *argument) {
    const int length = (int)stem_length(argument);
    for (size_t i = 0; i < ENDINGS; i++) {
        const char *path = dts_arena_printf(tool->arena, "%.*s%s", length, argument, endings[i]);
        if (path != NULL && access(path, F_OK) == 0) {
            return path;
        }
    }
    return NULL;
}

static bool may_be_scenario(dts_tool *tool, const char *folder, const char *name) {
    const char *path = dts_arena_printf(tool->arena, "%s%s", folder, name);
    struct stat info;
    return name[0] != '.' && name[stem_length(name)] != '\0' && path != NULL && stat(path, &info) == 0 &&
           S_ISREG(info.st_mode);
}

/* The file of the folder that was named, or of the one that we are in, whose name is nearest; NULL: none is near. */
static const char *file_near(dts_tool *tool, const char *argument) {
    enum { FILES_MOST = 1000 };
    const char *last = last_part(argument);
    const char *folder = dts_arena_strndup(tool->arena, argument, (size_t)(last - argument));
    DIR *open = folder != NULL && last[0] != '\0' ? opendir(folder[0] == '\0' ? "." : folder) : NULL;
    const char **names = open != NULL ? dts_arena_array(tool->arena, FILES_MOST, sizeof *names) : NULL;
    size_t count = 0;
    for (struct dirent *entry; names != NULL && count < FILES_MOST && (entry = readdir(open)) != NULL;) {
        const char *name =
            may_be_scenario(tool, folder, entry->d_name) ? dts_arena_strdup(tool->arena, entry->d_name) : NULL;
        if (name != NULL) {
            names[count++] = name;
        }
    }
    if (open != NULL) {
        closedir(open);
    }
    if (count == 0) {
        return NULL;
    }
    qsort(names, count, sizeof *names, by_name);
    const char **bare = dts_arena_array(tool->arena, count, sizeof *bare); /* all endings are near each other */
    for (size_t i = 0; i < count && bare != NULL; i++) {
        bare[i] = bare_name(tool, names[i]);
    }
    const char *near = bare != NULL ? dts_nearest_name(bare_name(tool, last), bare, count) : NULL;
    for (size_t i = 0; i < count && near != NULL; i++) {
        if (bare[i] == near) {
            return dts_arena_printf(tool->arena, "%s%s", folder, names[i]);
        }
    }
    return NULL;
}

dts_status dts_scenario_within_reach(dts_tool *tool, const char *argument) {
    struct stat info;
    const char *other = scenario_in_roots(tool, argument, false);
    const int error = stat(argument, &info) == 0 ? 0 : errno;
    if (other != NULL) {
        return dts_diag_fail(tool->diag, DTS_IO, "a scenario is a YAML or JSON file",
                             "cannot read %s: it is no regular file", other);
    }
    return error == 0 || error == ENOENT || error == ENOTDIR
               ? DTS_OK
               : dts_diag_fail(tool->diag, DTS_IO, NULL, "cannot read '%s': %s", argument, strerror(error));
}

static dts_status unknown_scenario(dts_tool *tool, const char *argument, const name_matches *named) {
    dts_text help = {0};
    dts_status status;
    if (dts_scenario_within_reach(tool, argument) != DTS_OK) {
        return DTS_IO;
    }
    if (named->count > 1) {
        add_meant(named->names, named->count, "", &help);
        status = dts_diag_fail(tool->diag, DTS_INVALID, dts_text_string(&help), "'%s' is the name of several scenarios",
                               argument);
    } else {
        const char *nearest = file_meant(tool, argument);
        nearest = nearest == NULL && named->count > 0 ? named->names[0] : nearest;
        nearest = nearest == NULL ? file_near(tool, argument) : nearest;
        nearest = nearest == NULL ? dts_scenario_nearest(tool, argument) : nearest;
        add_meant(&nearest, nearest != NULL ? 1 : 0, " ", &help);
        dts_text_add(&help, "`dtsim list scenarios` names those that come along");
        status = dts_diag_fail(tool->diag, DTS_IO, dts_text_string(&help), "no file and no scenario '%s'", argument);
    }
    dts_text_free(&help);
    return status;
}

/* What is meant for another program is read by import. */
static bool is_of_launcher(const char *path) {
    const size_t most = dts_limits_default.bytes;
    struct stat info;
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "r") : NULL;
    char *text = file != NULL ? malloc(most) : NULL;
    const size_t length = text != NULL ? fread(text, 1, most, file) : 0;
    const bool owned = length > 0 && dts_launcher_owns(path, text, length);
    free(text);
    if (file != NULL) {
        fclose(file);
    }
    return owned;
}

static dts_status refuse_launcher(dts_tool *tool, const char *path) {
    dts_text help = {0};
    dts_text_add(&help, "`dtsim import ");
    dts_text_add_word(&help, path);
    dts_text_add(&help, " -o scenario.yaml` makes a scenario of it");
    dts_diag_fail(tool->diag, DTS_INVALID, dts_text_string(&help), "%s is a launcher's file, not a scenario", path);
    dts_text_free(&help);
    return DTS_INVALID;
}

dts_status dts_scenario_find(dts_tool *tool, const char *argument, const char **path) {
    const name_matches none = {.count = 0};
    *path = dts_scenario_path(tool, argument);
    if (*path != NULL && is_of_launcher(*path)) {
        return refuse_launcher(tool, *path);
    }
    if (*path != NULL) {
        const dts_profile_kind *kind = dts_profile_kind_of_file(tool, *path);
        return kind == NULL ? DTS_OK : refuse_profile(tool, kind, dts_path_with_slash(tool, *path), true, &none);
    }
    const name_matches named = scenarios_named(tool, argument);
    for (size_t i = 0; i < dts_profile_kind_count; i++) {
        if (dts_profile_exists(tool, &dts_profile_kinds[i], argument)) {
            return refuse_profile(tool, &dts_profile_kinds[i], argument, false, &named);
        }
    }
    *path = dts_scenario_path_by_name(tool, argument);
    return *path != NULL ? DTS_OK : unknown_scenario(tool, argument, &named);
}
