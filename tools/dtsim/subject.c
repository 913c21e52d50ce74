#include "subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quote.h"
#include "kinds.h"
#include "report/measurements.h"

/* Where the table's name ends and #ID begins; NULL: not the form TABLE.csv#ID. */
static const char *row_mark(const char *argument) {
    const char *mark = strstr(argument, ".csv#");
    return mark != NULL ? mark + strlen(".csv") : NULL;
}

static dts_status unknown_row(dts_tool *tool, const dts_measurements *table, const char *path, const char *id) {
    const char **names = dts_arena_array(tool->arena, table->row_count, sizeof *names);
    for (size_t i = 0; names != NULL && i < table->row_count; i++) {
        names[i] = table->rows[i].id;
    }
    const char *nearest = names != NULL ? dts_nearest_name(id, names, table->row_count) : NULL;
    char help[160];
    snprintf(help, sizeof help, "did you mean '%s'?", nearest != NULL ? nearest : "");
    return dts_diag_fail(tool->diag, DTS_INVALID, nearest != NULL ? help : NULL, "no row '%s' in %s", id, path);
}

static dts_status find_row(dts_tool *tool, const char *path, const char *id, const dts_overrides *more,
                           dts_subject *out) {
    dts_measurements table;
    dts_status status = dts_measurements_read(&path, 1, tool->arena, &table, tool->diag);
    const dts_measurement *row = NULL;
    for (size_t i = 0; status == DTS_OK && i < table.row_count && row == NULL; i++) {
        row = strcmp(table.rows[i].id, id) == 0 ? &table.rows[i] : NULL;
    }
    if (status != DTS_OK || row == NULL) {
        return status != DTS_OK ? status : unknown_row(tool, &table, path, id);
    }
    dts_text name = {0};
    dts_text_add_yaml_string(&name, id);
    const char *named = name.failed ? NULL : dts_arena_strdup(tool->arena, dts_text_string(&name));
    dts_text_free(&name);
    dts_override *all = dts_arena_array(tool->arena, 1 + row->override_count + more->count, sizeof *all);
    if (all == NULL || named == NULL) {
        return dts_diag_nomem(tool->diag);
    }
    size_t count = 0;
    const dts_place place = {.file = path, .line = row->line, .column = 1};
    all[count++] = (dts_override){.key = "name", .value = named, .place = place}; /* unless the row has one */
    for (size_t i = 0; i < row->override_count; i++) {
        all[count++] = row->overrides[i];
    }
    for (size_t i = 0; i < more->count; i++) {
        all[count++] = more->items[i];
    }
    *out = (dts_subject){.overrides = all, .override_count = count};
    return DTS_OK;
}

dts_status dts_subject_find(dts_tool *tool, const char *argument, const dts_overrides *more, dts_subject *out) {
    const char *mark = row_mark(argument);
    if (mark != NULL) {
        const char *path = dts_arena_strndup(tool->arena, argument, (size_t)(mark - argument));
        return path != NULL ? find_row(tool, path, mark + 1, more, out) : dts_diag_nomem(tool->diag);
    }
    size_t length = strlen(argument);
    if (length > 4 && strcmp(argument + length - 4, ".csv") == 0 && access(argument, F_OK) == 0) {
        dts_text help = {0};
        dts_text_printf(&help, "name one: %s#ID; `dtsim validate ", argument);
        dts_text_add_word(&help, argument);
        dts_text_add(&help, "` simulates all");
        dts_diag_fail(tool->diag, DTS_INVALID, dts_text_string(&help), "'%s' is a table: every row is a scenario",
                      argument);
        dts_text_free(&help);
        return DTS_INVALID;
    }
    *out = (dts_subject){.overrides = more->items, .override_count = more->count};
    return dts_scenario_find(tool, argument, &out->path);
}

/* A file without a name that holds what there is to read, from its beginning; below 0: it could not be made. It stays
 * open for as long as the command runs. */
static int copy_of(const char *path) {
    enum { BLOCK = 65536 };
    static char buffer[BLOCK];
    char name[] = "/tmp/dtsim-XXXXXX";
    FILE *from = fopen(path, "rb");
    const int copy = from == NULL ? -1 : mkstemp(name);
    bool good = copy >= 0 && unlink(name) == 0;
    for (size_t count; good && (count = fread(buffer, 1, sizeof buffer, from)) > 0;) {
        good = write(copy, buffer, count) == (ssize_t)count;
    }
    good = good && ferror(from) == 0;
    const int error = errno;
    if (from != NULL) {
        fclose(from);
    }
    if (!good && copy >= 0) {
        close(copy);
    }
    errno = error;
    return good ? copy : -1;
}

dts_status dts_subject_hold(dts_tool *tool, dts_subject *subject) {
    struct stat about;
    if (subject->path == NULL || stat(subject->path, &about) != 0 || S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) {
        return DTS_OK; /* a regular file, or for the loader to refuse */
    }
    const int copy = copy_of(subject->path);
    if (copy < 0) {
        return dts_diag_fail(tool->diag, DTS_IO, NULL, "cannot read %s: %s", subject->path, strerror(errno));
    }
    subject->path = dts_arena_printf(tool->arena, "/dev/fd/%d", copy);
    return subject->path != NULL ? DTS_OK : dts_diag_nomem(tool->diag);
}

static bool is_set(const dts_provenance_entry *entry) {
    return entry != NULL && entry->place.origin == DTS_ORIGIN_SET;
}

/* A file may keep a schedule for when it has a pipeline, and a search's command sets all there is to a plan; who sets a
 * schedule alone expects it to do something. */
void dts_subject_warn(dts_tool *tool, const dts_scenario *scenario) {
    const dts_parallelism *p = &dts_scenario_get(scenario)->parallelism;
    const dts_provenance *values = dts_scenario_provenance(scenario);
    const dts_provenance_entry *schedule = dts_provenance_find(values, "parallelism.schedule");
    const bool one = p->pipeline == 1 || (p->pipeline == 0 && p->data == 0);
    if (one && is_set(schedule) && !is_set(dts_provenance_find(values, "parallelism.pipeline"))) {
        dts_diag_warning(tool->diag, &schedule->place, NULL, "set parallelism.pipeline, too",
                         "the schedule does nothing: there is no pipeline");
    }
    dts_subject_warn_tokens(tool, scenario, dts_scenario_get(scenario)->training.tokens);
}

void dts_subject_warn_tokens(dts_tool *tool, const dts_scenario *scenario, double tokens) {
    const dts_training *t = &dts_scenario_get(scenario)->training;
    const double batch = (double)t->global_batch * (double)t->sequence_length;
    if (tokens > 0 && tokens < batch) {
        dts_text help = {0};
        dts_text_add(&help, "count all tokens of the run, with a unit such as M, B or T");
        if (tokens < 1e5) {
            dts_text_printf(&help, ": did you mean %gB?", tokens);
        }
        dts_diag_warning(tool->diag, NULL, "training.tokens", dts_text_string(&help),
                         "a whole run of %.15g tokens is less than one global batch, of %.15g", tokens, batch);
        dts_text_free(&help);
    }
}

dts_status dts_subject_tables(dts_tool *tool, const char *const *paths, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *dot = strrchr(paths[i], '.');
        if (dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0)) {
            return dts_diag_fail(tool->diag, DTS_INVALID, "a table is a CSV file; `dtsim run` takes a scenario",
                                 "'%s' is no table of measurements", paths[i]);
        }
    }
    return DTS_OK;
}
