/* What all subcommands share: see command.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "progress.h"
#include "replace.h"
#include "run/run.h"

int dts_tool_exit(dts_status status) {
    switch (status) {
        case DTS_OK:
            return DTS_EXIT_DONE;
        case DTS_INVALID:
            return DTS_EXIT_INVALID;
        case DTS_USAGE:
            return DTS_EXIT_USAGE;
        case DTS_IO:
        case DTS_NOMEM:
            return DTS_EXIT_IO;
        case DTS_INTERRUPTED:
            return dts_interrupt_exit();
    }
    return DTS_EXIT_IO;
}

int dts_tool_usage(dts_tool *tool, const char *help, const char *format, ...) {
    dts_text message = {0};
    va_list arguments;
    va_start(arguments, format);
    dts_text_vprintf(&message, format, arguments);
    va_end(arguments);
    dts_diag_fail(tool->diag, DTS_USAGE, help, "%s", dts_text_string(&message));
    dts_text_free(&message);
    return DTS_EXIT_USAGE;
}

int dts_tool_choice(dts_tool *tool, const char *option, const char *const *names, const char *text) {
    dts_text all = {0};
    size_t count = 0;
    for (; names[count] != NULL; count++) {
        if (strcmp(names[count], text) == 0) {
            dts_text_free(&all);
            return (int)count;
        }
        dts_text_printf(&all, "%s%s", count > 0 ? ", " : "", names[count]);
    }
    const char *nearest = dts_nearest_name(text, names, count);
    char help[256];
    if (nearest != NULL) {
        snprintf(help, sizeof help, "did you mean '%s'? there are %s", nearest, dts_text_string(&all));
    } else {
        snprintf(help, sizeof help, "there are %s", dts_text_string(&all));
    }
    dts_tool_usage(tool, help, "%s: unknown value '%s'", option, text);
    dts_text_free(&all);
    return -1;
}

const char *const dts_text_or_json[] = {"text", "json", NULL};

int dts_tool_format(dts_tool *tool, const char *const *names, const char *text, int *out) {
    *out = dts_tool_choice(tool, "--format", names, text);
    return *out < 0 ? DTS_EXIT_USAGE : 0;
}

int dts_tool_scenario(dts_tool *tool, const char *argument, const char **out) {
    if (*out != NULL) {
        return dts_tool_usage_scenario(tool, argument, "one scenario at a time");
    }
    *out = argument;
    return 0;
}

int dts_tool_usage_scenario(dts_tool *tool, const char *argument, const char *help) {
    char set[120];
    snprintf(set, sizeof set, "write --set %.100s", argument);
    return dts_tool_usage(tool, strchr(argument, '=') != NULL ? set : help, "unexpected argument '%s'", argument);
}

int dts_tool_no_scenario(dts_tool *tool) {
    return dts_tool_usage(tool, "`dtsim list scenarios` names those that come along", "no scenario given");
}

bool dts_tool_integer(dts_tool *tool, const char *option, const char *text, long minimum, long maximum, long *out) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0') {
        dts_tool_usage(tool, NULL, "%s: '%s' is not a whole number", option, text);
        return false;
    }
    if (errno == ERANGE || value < minimum || value > maximum) {
        char help[96];
        snprintf(help, sizeof help, "from %ld to %ld", minimum, maximum);
        dts_tool_usage(tool, help, "%s: %s is out of bounds", option, text);
        return false;
    }
    *out = value;
    return true;
}

const char *dts_tool_go_on(bool stored) {
    return stored ? "what was simulated is in the store: the same command goes on from there"
                  : "the same command begins anew; with --store FILE.db it would go on from there";
}

dts_status dts_tool_no_memory(dts_tool *tool, size_t count, const char *what) {
    return count == 0 ? DTS_OK
                      : dts_diag_fail(tool->diag, DTS_NOMEM, dts_memory_help, "%zu %s%s ran out of memory", count, what,
                                      count == 1 ? "" : "s");
}

int dts_tool_threads(dts_tool *tool, const char *text, long *out) {
    enum { MOST_THREADS = 256 };
    return dts_tool_integer(tool, "--threads", text, 1, MOST_THREADS, out) ? 0 : DTS_EXIT_USAGE;
}

/* A reader that went away (`dtsim … | head`) needs no message; the exit code says it. */
static dts_status write_failed(dts_tool *tool, const char *path, int error) {
    if (error == EPIPE) {
        return DTS_IO;
    }
    const char *help = error == ENOENT                     ? "make its folder first"
                       : error == EISDIR                   ? "name a file in it"
                       : error == ENOSPC || error == EFBIG ? "name a file on a disk that has room"
                       : error == EACCES || error == EROFS ? "name a file in a folder that you may write to"
                       : error == ENOTDIR                  ? "a part of the path is a file, not a folder"
                                                           : NULL;
    return dts_diag_fail(tool->diag, DTS_IO, help, "cannot write %s: %s", path, strerror(error));
}

static int remember(dts_tool *tool, const dts_written *written, const char *path, const char **out) {
    if (path[0] == '\0') {
        return dts_tool_usage(tool, written->folder ? "name a folder" : "name a file, or - for standard output",
                              "%s: the name is empty", written->option);
    }
    bool known = false;
    for (size_t i = 0; i < tool->written_count; i++) {
        known = known || tool->written[i].path == written->path;
    }
    if (!known && tool->written_count < DTS_WRITTEN_MOST) {
        tool->written[tool->written_count++] = *written;
    }
    *out = path;
    return 0;
}

int dts_tool_output(dts_tool *tool, const char *option, const char *path, const char **out) {
    return remember(tool, &(dts_written){.option = option, .path = out}, path, out);
}

int dts_tool_output_folder(dts_tool *tool, const char *option, const char *path, const char **out) {
    return remember(tool, &(dts_written){.option = option, .path = out, .folder = true}, path, out);
}

/* What a file, or files in a folder, could not be written for as things stand; 0: no reason. */
static int hindrance(const dts_tool *tool, const char *path, bool folder) {
    struct stat info;
    if (!folder && strcmp(path, "-") == 0) {
        return 0;
    }
    if (stat(path, &info) == 0) {
        const bool found = S_ISDIR(info.st_mode);
        if (found != folder) {
            return found ? EISDIR : ENOTDIR;
        }
        return access(path, folder ? W_OK | X_OK : W_OK) == 0 ? 0 : errno;
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    const char *above = length == 0 ? "." : length == 1 ? "/" : dts_arena_strndup(tool->arena, path, length - 1);
    if (above != NULL && stat(above, &info) == 0 && !S_ISDIR(info.st_mode)) {
        return ENOTDIR;
    }
    return above == NULL || access(above, W_OK | X_OK) == 0 ? 0 : errno;
}

static dts_status check_writable(dts_tool *tool, const char *path, bool folder) {
    const int error = hindrance(tool, path, folder);
    return error == 0 ? DTS_OK : write_failed(tool, path, error);
}

dts_status dts_tool_writable(dts_tool *tool, const char *path) {
    return check_writable(tool, path, false);
}

/* Whether a word of the command line names the file: itself, before a '#' (a row of a table) or behind a '=' (--set).
 */
static bool word_names(const dts_tool *tool, const char *word, const struct stat *file) {
    const char *row = strrchr(word, '#'), *value = strrchr(word, '=');
    const char *const names[] = {word, row == NULL ? NULL : dts_arena_strndup(tool->arena, word, (size_t)(row - word)),
                                 value == NULL ? NULL : value + 1};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct stat info;
        if (names[i] != NULL && stat(names[i], &info) == 0 && info.st_dev == file->st_dev &&
            info.st_ino == file->st_ino) {
            return true;
        }
    }
    return false;
}

/* The word that names what is about to be written, but for the one that says to write it; NULL: none. */
static const char *word_for_output(const dts_tool *tool, const char *path, int argc, char **argv) {
    struct stat file;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode)) {
        return NULL;
    }
    for (int i = 1; i < argc; i++) {
        const bool own = path >= argv[i] && path <= argv[i] + strlen(argv[i]);
        if (!own && word_names(tool, argv[i], &file)) {
            return argv[i];
        }
    }
    return NULL;
}

dts_status dts_tool_outputs_writable(dts_tool *tool, int argc, char **argv) {
    for (size_t i = 0; i < tool->written_count; i++) {
        const dts_written *w = &tool->written[i];
        for (size_t k = 0; k < i; k++) {
            if (strcmp(*w->path, *tool->written[k].path) == 0 && strcmp(*w->path, "-") != 0) {
                dts_tool_usage(tool, "name two files", "%s and %s would both write %s", tool->written[k].option,
                               w->option, *w->path);
                return DTS_USAGE;
            }
        }
        const dts_status status = check_writable(tool, *w->path, w->folder);
        if (status != DTS_OK) {
            return status;
        }
        const char *word = word_for_output(tool, *w->path, argc, argv);
        if (word != NULL) {
            dts_tool_usage(tool, "name another file", "%s would write over %s, which the command line names as '%s'",
                           w->option, *w->path, word);
            return DTS_USAGE;
        }
    }
    return DTS_OK;
}

dts_status dts_tool_write_by(dts_tool *tool, const char *path, dts_tool_writer *write, const void *context) {
    bool standard = path == NULL || strcmp(path, "-") == 0;
    const char *name = standard ? "standard output" : path;
    dts_replacement other = {.file = stdout};
    errno = 0;
    if (!standard && !dts_replacement_open(&other, path)) {
        return write_failed(tool, name, errno);
    }
    bool good = write(context, other.file);
    good = fflush(other.file) == 0 && good;
    good = standard ? good : dts_replacement_close(&other, good);
    return good ? DTS_OK : write_failed(tool, name, errno);
}

static bool write_text(const void *context, FILE *file) {
    const dts_text *text = context;
    return fwrite(dts_text_string(text), 1, text->length, file) == text->length;
}

dts_status dts_tool_write_file(dts_tool *tool, const char *path, const dts_text *text) {
    if (dts_text_status(text) != DTS_OK) {
        return dts_diag_nomem(tool->diag);
    }
    dts_text filtered = {0};
    dts_style_filter(&tool->style, text, &filtered);
    dts_status status = dts_text_status(&filtered) == DTS_OK ? dts_tool_write_by(tool, path, write_text, &filtered)
                                                             : dts_diag_nomem(tool->diag);
    dts_text_free(&filtered);
    return status;
}

dts_status dts_tool_write(dts_tool *tool, const dts_text *text) {
    return dts_tool_write_file(tool, tool->output_path, text);
}

dts_status dts_tool_write_page(dts_tool *tool, const char *path, dts_status made, dts_text *text) {
    const dts_status status = made == DTS_OK ? dts_tool_write_file(tool, path, text) : dts_diag_nomem(tool->diag);
    dts_text_clear(text);
    return status;
}

dts_status dts_tool_write_made(dts_tool *tool, dts_status made, dts_text *text) {
    return dts_tool_write_page(tool, tool->output_path, made, text);
}
