#include "report/validate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/table.h"
#include "run/run.h"

const dts_metric dts_metrics[DTS_METRIC_COUNT] = {
    {"iteration_s", "s", DTS_METRIC_TIME, offsetof(dts_result, iteration_time_s)},
    {"tokens_per_s_per_gpu", "tokens/s per GPU", DTS_METRIC_RATE, offsetof(dts_result, tokens_per_s_per_gpu)},
    {"peak_allocated_gib", "GiB", DTS_METRIC_MEMORY, offsetof(dts_result, peak_allocated_gib)},
    {"peak_reserved_gib", "GiB", DTS_METRIC_MEMORY, offsetof(dts_result, peak_reserved_gib)},
    {"peak_device_gib", "GiB", DTS_METRIC_MEMORY, offsetof(dts_result, peak_device_gib)},
};

const char *const dts_baseline_names[DTS_BASELINE_COUNT] = {"utilisation", "utilisation_with_bubble"};

static const char measured_prefix[] = "measured.";

typedef struct work {
    dts_validation *validation;
    const dts_profile_paths *profiles;
    const dts_table *tables;
    dts_diag *diag;
} work;

/* Metric of a column "measured.NAME", -1 for every other column. */
static int metric_of(const char *column) {
    size_t length = sizeof measured_prefix - 1;
    for (int m = 0; strncmp(column, measured_prefix, length) == 0 && m < DTS_METRIC_COUNT; m++) {
        if (strcmp(column + length, dts_metrics[m].name) == 0) {
            return m;
        }
    }
    return -1;
}

static bool is_note(const char *column) {
    return strcmp(column, "id") == 0 || strcmp(column, "source") == 0 || strcmp(column, "note") == 0;
}

/* A measured value: a positive number; 0 after reporting. */
static double measured_value(const dts_table_cell *cell, dts_diag *diag) {
    char *end;
    errno = 0;
    double value = strtod(cell->text, &end);
    if (*end != '\0' || !isfinite(value) || value <= 0) {
        dts_diag_error(diag, &cell->place, NULL, "an empty cell means: not measured", "'%s' is not a positive number",
                       cell->text);
        return 0;
    }
    return value;
}

static dts_status check_columns(const dts_table *table, dts_diag *diag) {
    size_t metrics = 0;
    dts_status status = DTS_OK;
    const char *names[DTS_METRIC_COUNT];
    for (size_t m = 0; m < DTS_METRIC_COUNT; m++) {
        names[m] = dts_metrics[m].name;
    }
    size_t length = sizeof measured_prefix - 1;
    for (size_t c = 0; c < table->columns; c++) {
        const dts_table_cell *cell = &table->header[c];
        bool measured = strncmp(cell->text, measured_prefix, length) == 0;
        metrics += measured ? 1 : 0;
        if (measured && metric_of(cell->text) < 0) {
            const char *nearest = dts_nearest_name(cell->text + length, names, DTS_METRIC_COUNT);
            dts_text help = {0};
            dts_text_printf(&help, "did you mean measured.%s?", nearest != NULL ? nearest : names[0]);
            status =
                dts_diag_error(diag, &cell->place, NULL, dts_text_string(&help), "unknown metric '%s'", cell->text);
            dts_text_free(&help);
        }
    }
    const dts_place top = {.file = table->path};
    if (dts_table_column(table, "id") == SIZE_MAX) {
        status = dts_diag_error(diag, &top, NULL, NULL, "no column 'id'");
    }
    if (metrics == 0) {
        status =
            dts_diag_error(diag, &top, NULL, "e.g. measured.iteration_s", "no column 'measured.…' to compare with");
    }
    return status;
}

static dts_status check_rows(const dts_table *table, dts_diag *diag) {
    dts_status status = DTS_OK;
    size_t id = dts_table_column(table, "id");
    for (size_t r = 0; r < table->rows; r++) {
        const dts_table_cell *row = &table->cells[r * table->columns];
        if (row[id].text[0] == '\0') {
            status = dts_diag_error(diag, &row[id].place, NULL, NULL, "a row without an id");
        }
        for (size_t c = 0; c < table->columns; c++) {
            if (metric_of(table->header[c].text) >= 0 && row[c].text[0] != '\0' && measured_value(&row[c], diag) == 0) {
                status = DTS_INVALID;
            }
        }
    }
    return status;
}

static dts_status read_tables(const char *const *paths, size_t count, dts_arena *arena, dts_table *tables,
                              dts_diag *diag) {
    dts_status gravest = DTS_OK;
    for (size_t i = 0; i < count; i++) {
        dts_status status = dts_table_read(paths[i], arena, &tables[i], diag);
        gravest = status > gravest ? status : gravest;
        if (status <= DTS_INVALID && tables[i].cells != NULL) { /* all errors in one run */
            status = check_columns(&tables[i], diag);
            status = status == DTS_OK ? check_rows(&tables[i], diag) : status;
        }
        gravest = status > gravest ? status : gravest;
    }
    return gravest;
}

static void add_failure(work *w, size_t table, const dts_table_cell *id, const dts_diag *why) {
    dts_validation *v = w->validation;
    const dts_message *first = NULL;
    for (size_t i = 0; i < dts_diag_count(why) && first == NULL; i++) {
        const dts_message *message = dts_diag_get(why, i);
        first = message->severity == DTS_ERROR ? message : NULL;
    }
    const char *reason = first == NULL        ? "unknown"
                         : first->key == NULL ? first->text
                                              : dts_arena_printf(v->arena, "%s [%s]", first->text, first->key);
    reason = reason != NULL ? dts_arena_strdup(v->arena, reason) : NULL;
    v->failures[v->failure_count++] = (dts_validate_failure){
        .id = id->text, .table = table, .line = id->place.line, .reason = reason != NULL ? reason : "out of memory"};
}

static void add_records(work *w, size_t t, const dts_table_cell *row, const dts_scenario_values *values,
                        const dts_result *result) {
    const dts_table *table = &w->tables[t];
    dts_validation *v = w->validation;
    double p = (double)(values->parallelism.pipeline > 1 ? values->parallelism.pipeline : 1);
    double chunks = (double)(values->parallelism.virtual_stages > 1 ? values->parallelism.virtual_stages : 1);
    dts_validate_record record = {
        .id = row[dts_table_column(table, "id")].text,
        .table = t,
        .fits = result->fits,
        .ideal_s = result->mfu * result->iteration_time_s,
        .bubble_factor = 1 + (p - 1) / ((double)(result->microbatches > 0 ? result->microbatches : 1) * chunks),
        .tokens_per_gpu = result->tokens_per_s_per_gpu * result->iteration_time_s};
    for (size_t c = 0; c < table->columns; c++) {
        record.metric = metric_of(table->header[c].text);
        if (record.metric >= 0 && row[c].text[0] != '\0') {
            record.measured = measured_value(&row[c], NULL);
            record.predicted = *(const double *)((const char *)result + dts_metrics[record.metric].offset);
            v->records[v->record_count++] = record;
        }
    }
}

/* Loads and simulates one row; why it failed goes to the caller's diag. */
static dts_status simulate(const work *w, size_t t, const dts_table_cell *row, dts_override *overrides,
                           dts_scenario **scenario, dts_result **result, dts_diag *why) {
    const dts_table *table = &w->tables[t];
    size_t count = 0;
    for (size_t c = 0; c < table->columns; c++) {
        const char *column = table->header[c].text;
        if (!is_note(column) && metric_of(column) < 0 && row[c].text[0] != '\0') {
            overrides[count++] = (dts_override){.key = column, .value = row[c].text, .place = row[c].place};
        }
    }
    dts_status status = dts_scenario_load(NULL, overrides, count, w->profiles, scenario, why);
    return status == DTS_OK ? dts_run(*scenario, NULL, result, why) : status;
}

/* One row: records, or a failure with its reason. Running out of memory ends it all. */
static dts_status do_row(work *w, size_t t, size_t index, dts_override *overrides) {
    const dts_table *table = &w->tables[t];
    const dts_table_cell *row = &table->cells[index * table->columns];
    dts_diag *why = dts_diag_new();
    if (why == NULL) {
        return dts_diag_nomem(w->diag);
    }
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    dts_status status = simulate(w, t, row, overrides, &scenario, &result, why);
    if (status == DTS_OK) {
        add_records(w, t, row, dts_scenario_get(scenario), result);
        w->validation->tables[t].simulated++;
    } else {
        add_failure(w, t, &row[dts_table_column(table, "id")], why);
    }
    dts_result_free(result);
    dts_scenario_free(scenario);
    dts_diag_free(why);
    return DTS_OK;
}

/* Room for everything that the tables can give. */
static dts_status reserve(work *w, size_t table_count, size_t *rows, size_t *most_columns) {
    dts_validation *v = w->validation;
    size_t records = 0;
    for (size_t t = 0; t < table_count; t++) {
        *rows += w->tables[t].rows;
        records += w->tables[t].rows * DTS_METRIC_COUNT;
        *most_columns = w->tables[t].columns > *most_columns ? w->tables[t].columns : *most_columns;
    }
    v->tables = dts_arena_array(v->arena, table_count, sizeof *v->tables);
    v->records = dts_arena_array(v->arena, records, sizeof *v->records);
    v->failures = dts_arena_array(v->arena, *rows, sizeof *v->failures);
    if (v->tables == NULL || v->records == NULL || v->failures == NULL) {
        dts_diag_nomem(w->diag);
        return DTS_NOMEM;
    }
    v->table_count = table_count;
    for (size_t t = 0; t < table_count; t++) {
        v->tables[t] = (dts_validate_table){.path = w->tables[t].path, .rows = w->tables[t].rows};
    }
    return DTS_OK;
}

static dts_status do_tables(work *w, size_t table_count, dts_validate_progress *progress, void *context) {
    size_t rows = 0;
    size_t columns = 0;
    dts_status status = reserve(w, table_count, &rows, &columns);
    if (status != DTS_OK) {
        return status;
    }
    dts_override *overrides = calloc(columns + 1, sizeof *overrides);
    if (overrides == NULL) {
        return dts_diag_nomem(w->diag);
    }
    size_t done = 0;
    for (size_t t = 0; t < table_count; t++) {
        const dts_table *table = &w->tables[t];
        for (size_t r = 0; r < table->rows && status == DTS_OK; r++) {
            if (progress != NULL) {
                progress(context, done, rows, table->cells[r * table->columns + dts_table_column(table, "id")].text);
            }
            status = do_row(w, t, r, overrides);
            done++;
        }
    }
    free(overrides);
    if (status == DTS_OK && dts_validation_fit_baselines(w->validation) != DTS_OK) {
        status = dts_diag_nomem(w->diag);
    }
    return status;
}

dts_status dts_validate(const char *const *paths, size_t path_count, const dts_profile_paths *profiles,
                        dts_validate_progress *progress, void *context, dts_validation **out, dts_diag *diag) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (arena == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_validation *validation = dts_arena_alloc(arena, sizeof *validation);
    dts_table *tables = dts_arena_array(arena, path_count, sizeof *tables);
    dts_status status = DTS_OK;
    if (validation == NULL || tables == NULL) {
        dts_diag_nomem(diag);
        status = DTS_NOMEM;
    } else {
        validation->arena = arena;
        status = read_tables(paths, path_count, arena, tables, diag);
    }
    if (status == DTS_OK) {
        work w = {.validation = validation, .profiles = profiles, .tables = tables, .diag = diag};
        status = do_tables(&w, path_count, progress, context);
    }
    if (status != DTS_OK) {
        dts_arena_free(arena);
        return status;
    }
    *out = validation;
    return DTS_OK;
}

void dts_validation_free(dts_validation *validation) {
    if (validation != NULL) {
        dts_arena_free(validation->arena);
    }
}
