#include "report/measurements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/table.h"
#include "run/run.h"

const dts_metric dts_metrics[DTS_METRIC_COUNT] = {
    {"iteration_s", "s", DTS_METRIC_TIME, offsetof(dts_result, iteration_time_s)},
    {"tokens_per_s_per_gpu", "tokens/s per GPU", DTS_METRIC_RATE, offsetof(dts_result, tokens_per_s_per_gpu)},
    {"peak_allocated_gib", "GiB", DTS_METRIC_MEMORY, offsetof(dts_result, peak_allocated_gib)},
    {"peak_reserved_gib", "GiB", DTS_METRIC_MEMORY, offsetof(dts_result, peak_reserved_gib)},
    {"peak_device_gib", "GiB", DTS_METRIC_MEMORY, offsetof(dts_result, peak_device_gib)},
};

enum { KEY_LONGEST = 256 };

static const char measured_prefix[] = "measured.";

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

/* A measured value in the unit of its metric: a positive number, as bounded as durations in scenarios are, so that no
 * error, mean or fitted constant leaves the numbers. 0 after reporting. */
static double measured_value(const dts_table_cell *cell, int metric, dts_diag *diag) {
    static const double least = 1e-9, most = 1e9;
    const double value = dts_table_positive(cell, "an empty cell means: not measured", diag);
    if (value == 0 || (value >= least && value <= most)) {
        return value;
    }
    char help[64];
    snprintf(help, sizeof help, "from 1e-9 to 1e9 %s", dts_metrics[metric].unit);
    dts_diag_error(diag, &cell->place, NULL, help, "'%s' is out of bounds", cell->text);
    return 0;
}

/* A name of a table's own columns that is written otherwise: "ID", or a metric without "measured."; else NULL. */
static const char *meant(const char *column) {
    static const char *const notes[] = {"id", "source", "note"};
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        if (strcasecmp(column, notes[i]) == 0) {
            return notes[i];
        }
    }
    for (size_t m = 0; m < DTS_METRIC_COUNT; m++) {
        if (strcmp(column, dts_metrics[m].name) == 0) {
            return column;
        }
    }
    return NULL;
}

/* A key that no scenario has is an error of the table, not of each row, and also where every cell is empty. */
static dts_status check_key(const dts_table_cell *cell, dts_diag *diag) {
    if (is_note(cell->text) || strncmp(cell->text, measured_prefix, sizeof measured_prefix - 1) == 0) {
        return DTS_OK;
    }
    const char *other = meant(cell->text);
    if (other != NULL) {
        dts_text help = {0};
        dts_text_printf(&help, "did you mean '%s%s'?", other == cell->text ? measured_prefix : "", other);
        dts_diag_error(diag, &cell->place, NULL, dts_text_string(&help), "unknown column '%s'", cell->text);
        dts_text_free(&help);
        return DTS_INVALID;
    }
    return dts_schema_check_key(&dts_scenario_schema, cell->text, &cell->place, diag);
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
        status = check_key(cell, diag) == DTS_OK ? status : DTS_INVALID;
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
        status = dts_diag_error(diag, &table->header[0].place, NULL, "add a column 'id' that names each row",
                                "no column 'id'");
    }
    if (metrics == 0) {
        status =
            dts_diag_error(diag, &top, NULL, "e.g. measured.iteration_s", "no column 'measured.…' to compare with");
    }
    return status;
}

/* A row is called by its id: TABLE.csv#ID. */
static dts_status check_id(const dts_table *table, size_t r, size_t id, dts_diag *diag) {
    const dts_table_cell *cell = &table->cells[r * table->columns + id];
    if (cell->text[0] == '\0') {
        return dts_diag_error(diag, &cell->place, NULL, NULL, "a row without an id");
    }
    if (cell->text[strcspn(cell->text, "\t\r\n")] != '\0') {
        return dts_diag_error(diag, &cell->place, NULL, "write it in one line, without tabs", "an id of several lines");
    }
    for (size_t earlier = 0; earlier < r; earlier++) {
        const dts_table_cell *other = &table->cells[earlier * table->columns + id];
        if (strcmp(other->text, cell->text) == 0) {
            return dts_diag_error(diag, &cell->place, NULL, "give each row an id of its own",
                                  "the id '%s' is that of line %u, too", cell->text, (unsigned)other->place.line);
        }
    }
    return DTS_OK;
}

static dts_status check_rows(const dts_table *table, dts_diag *diag) {
    dts_status status = DTS_OK;
    size_t id = dts_table_column(table, "id");
    for (size_t r = 0; r < table->rows; r++) {
        const dts_table_cell *row = &table->cells[r * table->columns];
        status = check_id(table, r, id, diag) == DTS_OK ? status : DTS_INVALID;
        for (size_t c = 0; c < table->columns; c++) {
            const int metric = metric_of(table->header[c].text);
            if (metric >= 0 && row[c].text[0] != '\0' && measured_value(&row[c], metric, diag) == 0) {
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

/* The rows of one table from *rows on. */
static dts_status take_rows(const dts_table *table, size_t index, dts_arena *arena, dts_measurement *rows) {
    size_t id = dts_table_column(table, "id");
    size_t source = dts_table_column(table, "source");
    for (size_t r = 0; r < table->rows; r++) {
        const dts_table_cell *cells = &table->cells[r * table->columns];
        dts_override *overrides = dts_arena_array(arena, table->columns, sizeof *overrides);
        if (overrides == NULL) {
            return DTS_NOMEM;
        }
        dts_measurement *row = &rows[r];
        *row = (dts_measurement){.id = cells[id].text,
                                 .table = index,
                                 .line = cells[id].place.line,
                                 .source = source != SIZE_MAX ? cells[source].text : "",
                                 .overrides = overrides};
        for (size_t c = 0; c < table->columns; c++) {
            const char *column = table->header[c].text;
            int metric = metric_of(column);
            if (cells[c].text[0] == '\0' || is_note(column)) {
                continue;
            }
            if (metric >= 0) {
                row->measured[metric] = measured_value(&cells[c], metric, NULL);
            } else {
                overrides[row->override_count++] =
                    (dts_override){.key = column, .value = cells[c].text, .place = cells[c].place};
            }
        }
    }
    return DTS_OK;
}

dts_status dts_measurements_read(const char *const *paths, size_t count, dts_arena *arena, dts_measurements *out,
                                 dts_diag *diag) {
    *out = (dts_measurements){.table_count = count};
    dts_table *tables = dts_arena_array(arena, count, sizeof *tables);
    out->tables = dts_arena_array(arena, count, sizeof *out->tables);
    if (tables == NULL || out->tables == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = read_tables(paths, count, arena, tables, diag);
    for (size_t t = 0; t < count && status == DTS_OK; t++) {
        out->tables[t] = (dts_measurement_table){.path = tables[t].path, .rows = tables[t].rows};
        out->row_count += tables[t].rows;
    }
    out->rows = dts_arena_array(arena, out->row_count, sizeof *out->rows);
    size_t first = 0;
    for (size_t t = 0; t < count && status == DTS_OK && out->rows != NULL; t++) {
        status = take_rows(&tables[t], t, arena, &out->rows[first]);
        first += tables[t].rows;
    }
    return status == DTS_NOMEM || out->rows == NULL ? dts_diag_nomem(diag) : status;
}

dts_status dts_measurement_simulate(const dts_measurement *row, const dts_override *more, size_t more_count,
                                    const dts_profile_paths *profiles, const dts_run_options *options,
                                    dts_scenario **scenario, dts_result **result, dts_diag *diag) {
    *scenario = NULL;
    *result = NULL;
    dts_override *overrides = calloc(row->override_count + more_count + 1, sizeof *overrides);
    if (overrides == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < row->override_count + more_count; i++) {
        overrides[i] = i < row->override_count ? row->overrides[i] : more[i - row->override_count];
    }
    dts_status status = dts_scenario_load(NULL, overrides, row->override_count + more_count, profiles, scenario, diag);
    free(overrides);
    return status == DTS_OK ? dts_run(*scenario, options, result, diag) : status;
}

double dts_metric_predicted(const dts_result *result, int metric) {
    return *(const double *)((const char *)result + dts_metrics[metric].offset);
}

/* The key without an ending ".profile"; false when it is longer than any key. */
static bool plain_key(const char *by, char key[KEY_LONGEST]) {
    static const char ending[] = ".profile";
    size_t length = strlen(by);
    size_t cut = sizeof ending - 1;
    length -= length > cut && strcmp(by + length - cut, ending) == 0 ? cut : 0;
    if (length >= KEY_LONGEST) {
        return false;
    }
    memcpy(key, by, length);
    key[length] = '\0';
    return true;
}

dts_status dts_measurement_check_group(const char *by, dts_diag *diag) {
    char key[KEY_LONGEST];
    size_t offset = 0;
    if (strcmp(by, "table") == 0 ||
        (plain_key(by, key) && dts_schema_find(&dts_scenario_schema, key, &offset) != NULL)) {
        return DTS_OK;
    }
    return dts_diag_error(diag, NULL, NULL,
                          "a dotted scenario key such as cluster, stack or parallelism.tensor, or table",
                          "rows cannot be grouped by '%s': there is no such key", by);
}

const char *dts_measurement_group(const dts_measurements *measurements, const dts_measurement *row,
                                  const dts_scenario *scenario, const char *by) {
    if (strcmp(by, "table") == 0) {
        return measurements->tables[row->table].path;
    }
    char key[KEY_LONGEST];
    return plain_key(by, key) ? dts_scenario_value(scenario, key) : NULL;
}
