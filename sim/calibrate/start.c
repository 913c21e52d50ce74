#include "calibrate/start.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/quantity.h"

const char *const dts_fit_base_keys[DTS_FIT_BASES] = {"cluster.gpu", "cluster", "stack"};

static const double DEFAULT_FACTOR = 2; /* bounds that nobody gave: half and twice the start */

/* ---- the start -------------------------------------------------------------------------------------------------- */

static dts_status find_fields(dts_fit_work *w) {
    const dts_calibrate_request *request = w->request;
    dts_status status = DTS_OK;
    if (request->parameter_count > DTS_FIT_PARAMETERS_MOST) {
        return dts_diag_error(w->diag, NULL, NULL, "fit fewer at a time", "more than %d parameters",
                              DTS_FIT_PARAMETERS_MOST);
    }
    for (size_t j = 0; j < request->parameter_count; j++) {
        const char *key = request->parameters[j].key;
        const dts_field *field = dts_schema_find(&dts_scenario_schema, key, &w->offsets[j]);
        if (field == NULL) {
            const dts_place place = {.file = "--fit", .origin = DTS_ORIGIN_FIT};
            status = dts_schema_check_key(&dts_scenario_schema, key, &place, w->diag);
            status = status == DTS_OK ? dts_diag_error(w->diag, &place, key, "only quantities are fitted",
                                                       "this is not a continuous number")
                                      : status;
        } else if (field->type != DTS_FIELD_QUANTITY) {
            status =
                dts_diag_error(w->diag, NULL, key, "only quantities are fitted", "this is not a continuous number");
        }
        w->fields[j] = field;
    }
    return status;
}

static char *copy(const char *text) {
    return text != NULL ? strdup(text) : NULL;
}

/* Does the row have all the cells that were asked for? */
static bool is_asked_for(const dts_fit_work *w, const dts_measurement *m) {
    for (size_t i = 0; i < w->request->where_count; i++) {
        const dts_override *asked = &w->request->where[i];
        bool found = false;
        for (size_t c = 0; c < m->override_count && !found; c++) {
            found = strcmp(m->overrides[c].key, asked->key) == 0 && strcmp(m->overrides[c].value, asked->value) == 0;
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static void start_row(void *context, size_t index) {
    dts_fit_work *w = context;
    dts_fit_start *row = &w->rows[index];
    const dts_measurement *m = &w->measurements.rows[index];
    row->skipped = !is_asked_for(w, m);
    if (row->skipped) {
        row->status = DTS_INVALID;
        return;
    }
    dts_diag *why = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    row->status = why == NULL ? DTS_NOMEM
                              : dts_measurement_simulate(m, w->request->overrides, w->request->override_count,
                                                         w->request->profiles, NULL, &scenario, &result, why);
    if (row->status == DTS_OK) {
        const unsigned char *values = (const unsigned char *)dts_scenario_get(scenario);
        for (size_t j = 0; j < w->request->parameter_count; j++) {
            row->values[j] = *(const double *)(values + w->offsets[j]);
        }
        for (size_t b = 0; b < sizeof dts_fit_base_keys / sizeof dts_fit_base_keys[0]; b++) {
            row->bases[b] = copy(dts_scenario_value(scenario, dts_fit_base_keys[b]));
        }
        row->group =
            w->request->by != NULL ? copy(dts_measurement_group(&w->measurements, m, scenario, w->request->by)) : NULL;
    } else if (why != NULL && dts_diag_count(why) > 0) {
        row->reason = copy(dts_diag_get(why, 0)->text);
    }
    dts_result_free(result);
    dts_scenario_free(scenario);
    dts_diag_free(why);
}

/* All rows start from one value of each parameter. */
static dts_status check_start(dts_fit_work *w, size_t j, double *start) {
    const char *key = w->request->parameters[j].key;
    const char *first = NULL;
    for (size_t r = 0; r < w->measurements.row_count; r++) {
        if (w->rows[r].status != DTS_OK) {
            continue;
        }
        if (first == NULL) {
            first = w->measurements.rows[r].id;
            *start = w->rows[r].values[j];
        } else if (w->rows[r].values[j] != *start) {
            return dts_diag_error(w->diag, NULL, key, "fit rows of one GPU, cluster or stack at a time (--where)",
                                  "rows '%s' and '%s' start from different values, %g and %g", first,
                                  w->measurements.rows[r].id, *start, w->rows[r].values[j]);
        }
    }
    if (first != NULL && !(*start > 0)) {
        return dts_diag_error(w->diag, NULL, key, "give it a value first: --set KEY=VALUE",
                              "it is 0 in all rows: there is nothing to start from");
    }
    return DTS_OK;
}

/* The bounds of a parameter: those asked for, else half and twice the start; always within the schema's. */
static dts_status set_bounds(dts_fit_work *w, size_t j, double start, dts_fitted *out) {
    const dts_fit_request *asked = &w->request->parameters[j];
    const dts_field *field = w->fields[j];
    bool bounded = field->minimum != 0 || field->maximum != 0;
    double least = bounded ? field->minimum : 0;
    double most = bounded && field->maximum >= field->minimum ? field->maximum : INFINITY;
    bool given = asked->low != 0 || asked->high != 0;
    *out = (dts_fitted){.key = asked->key, .dimension = field->dimension, .start = start, .value = start};
    out->low = given ? asked->low : fmax(least, start / DEFAULT_FACTOR);
    out->high = given ? asked->high : fmin(most, start * DEFAULT_FACTOR);
    if (!(out->low > 0 && out->low < out->high) || out->low < least || out->high > most) {
        return dts_diag_error(w->diag, NULL, asked->key, "LOW:HIGH with 0 < LOW < HIGH, within what the key can be",
                              "bounds from %g to %g are not possible (from %g to %g are)", out->low, out->high, least,
                              most);
    }
    return DTS_OK;
}

static dts_status start(dts_fit_work *w) {
    size_t rows = w->measurements.row_count;
    w->rows = calloc(rows + 1, sizeof *w->rows);
    w->used = calloc(rows + 1, sizeof *w->used);
    dts_calibration *c = w->c;
    c->parameter_count = w->request->parameter_count;
    c->parameters = dts_arena_array(c->arena, c->parameter_count, sizeof *c->parameters);
    c->refused = dts_arena_array(c->arena, c->parameter_count, sizeof *c->refused);
    c->failures = dts_arena_array(c->arena, rows, sizeof *c->failures);
    if (w->rows == NULL || w->used == NULL || c->parameters == NULL || c->refused == NULL || c->failures == NULL) {
        return dts_diag_nomem(w->diag);
    }
    dts_parallel_for(rows, w->request->threads, start_row, w);
    for (size_t r = 0; r < rows; r++) {
        w->used[r] = w->rows[r].status == DTS_OK;
        if (w->used[r]) {
            c->rows++;
        } else if (!w->rows[r].skipped) {
            const char *reason = w->rows[r].reason != NULL ? w->rows[r].reason : "out of memory";
            c->failures[c->failure_count++] =
                (dts_fit_failure){.id = w->measurements.rows[r].id, .reason = dts_arena_strdup(c->arena, reason)};
        }
    }
    dts_status status = DTS_OK;
    for (size_t j = 0; j < c->parameter_count; j++) {
        double value = 0;
        dts_status one = check_start(w, j, &value);
        one = one == DTS_OK && c->rows > 0 ? set_bounds(w, j, value, &c->parameters[j]) : one;
        status = status == DTS_OK ? one : status;
    }
    return status;
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

static size_t group_of(dts_calibration *c, const char *name) {
    for (size_t g = 0; g < c->group_count; g++) {
        if (strcmp(c->groups[g].name, name) == 0) {
            return g;
        }
    }
    c->groups[c->group_count] = (dts_fit_group){.name = dts_arena_strdup(c->arena, name)};
    return c->group_count++;
}

static dts_status list_records(dts_fit_work *w) {
    dts_calibration *c = w->c;
    w->records = dts_arena_array(c->arena, w->measurements.row_count * DTS_METRIC_COUNT, sizeof *w->records);
    c->groups = dts_arena_array(c->arena, w->measurements.row_count, sizeof *c->groups);
    c->by = w->request->by != NULL ? dts_arena_strdup(c->arena, w->request->by) : NULL;
    if (w->records == NULL || c->groups == NULL) {
        return dts_diag_nomem(w->diag);
    }
    for (size_t r = 0; r < w->measurements.row_count; r++) {
        bool any = false;
        for (int m = 0; m < DTS_METRIC_COUNT && w->used[r]; m++) {
            bool memory = dts_metrics[m].kind == DTS_METRIC_MEMORY;
            double measured = w->measurements.rows[r].measured[m];
            if (measured > 0 && (memory ? w->request->memory : w->request->time)) {
                size_t group = 0;
                if (c->by != NULL) {
                    group = group_of(c, w->rows[r].group != NULL ? w->rows[r].group : "-");
                    c->groups[group].records++;
                }
                w->records[c->records++] =
                    (dts_fit_record){.row = r, .metric = m, .log_measured = log(measured), .group = group};
                any = true;
            }
        }
        c->rows -= w->used[r] && !any;
        w->used[r] = any;
    }
    if (c->records == 0 && c->rows == 0) {
        return dts_diag_error(w->diag, NULL, NULL, "take another --where, or leave it out",
                              "no row of the tables has what --where asks for");
    }
    if (c->records <= c->parameter_count) {
        return dts_diag_error(w->diag, NULL, NULL, "give more rows, or fit fewer parameters",
                              "%zu measured values do not determine %zu parameters and their errors", c->records,
                              c->parameter_count);
    }
    w->predictor = (dts_predictor){.request = w->request,
                                   .measurements = &w->measurements,
                                   .used = w->used,
                                   .parameters = c->parameters,
                                   .parameter_count = c->parameter_count,
                                   .records = w->records,
                                   .record_count = c->records,
                                   .arena = c->arena,
                                   .diag = w->diag};
    return DTS_OK;
}

dts_status dts_fit_prepare(dts_fit_work *w) {
    const dts_calibrate_request *request = w->request;
    dts_status status = request->by != NULL ? dts_measurement_check_group(request->by, w->diag) : DTS_OK;
    status = status == DTS_OK ? find_fields(w) : status;
    if (status == DTS_OK) {
        status = dts_measurements_read(request->paths, request->path_count, w->c->arena, &w->measurements, w->diag);
    }
    status = status == DTS_OK ? start(w) : status;
    return status == DTS_OK ? list_records(w) : status;
}

void dts_fit_work_free(dts_fit_work *w) {
    for (size_t r = 0; w->rows != NULL && r < w->measurements.row_count; r++) {
        free(w->rows[r].reason);
        free(w->rows[r].group);
        for (size_t b = 0; b < DTS_FIT_BASES; b++) {
            free(w->rows[r].bases[b]);
        }
    }
    free(w->rows);
    free(w->used);
}
