#include <stdlib.h>

#include "report/json_tree.h"
#include "report/validate.h"

static void add_record(dts_json *json, cJSON *rows, const dts_validation *v, const dts_validate_record *record) {
    cJSON *row = dts_json_object(json, rows, NULL);
    dts_json_string(json, row, "table", v->tables[record->table].path);
    dts_json_string(json, row, "id", record->id);
    dts_json_string(json, row, "metric", dts_metrics[record->metric].name);
    dts_json_number(json, row, "measured", record->measured);
    dts_json_number(json, row, "predicted", record->predicted);
    dts_json_number(json, row, "error_pct", 100 * (record->predicted - record->measured) / record->measured);
    dts_json_flag(json, row, "fits", record->lack.of == NULL);
    dts_json_number(json, row, "memory_fill", record->fill);
    dts_json_number(json, row, "unserved_gib", record->strain.unserved_gib);
    dts_json_number(json, row, "retry_share", record->strain.retry_share);
    if (record->lack.of != NULL) {
        dts_json_string(json, row, "lacks", record->lack.of);
        dts_json_number(json, row, "needed_gib", record->lack.needed_gib);
        dts_json_number(json, row, "capacity_gib", record->lack.capacity_gib);
    }
    if (dts_metrics[record->metric].kind != DTS_METRIC_MEMORY) {
        dts_json_number(json, row, "measured_mfu", dts_validate_measured_mfu(record));
    }
    if (v->by != NULL) {
        dts_json_string(json, row, "group", v->groups[record->group]);
    }
    for (int b = 0; b < DTS_BASELINE_COUNT; b++) {
        if (dts_metrics[record->metric].kind != DTS_METRIC_MEMORY) {
            dts_json_number(json, row, dts_baseline_names[b], record->baseline[b]);
        }
    }
}

static void add_summary(dts_json *json, cJSON *object, int metric, const dts_validate_summary *s) {
    cJSON *summary = dts_json_object(json, object, dts_metrics[metric].name);
    dts_json_integer(json, summary, "n", (int64_t)s->n);
    dts_json_number(json, summary, "mape_pct", s->mape_pct);
    dts_json_number(json, summary, "median_ape_pct", s->median_ape_pct);
    dts_json_number(json, summary, "p90_ape_pct", s->p90_ape_pct);
    dts_json_number(json, summary, "bias_pct", s->bias_pct);
    if (dts_metrics[metric].kind != DTS_METRIC_MEMORY) {
        dts_json_number(json, summary, "time_mape_pct", s->time_mape_pct);
        dts_json_number(json, summary, "time_bias_pct", s->time_bias_pct);
    }
    dts_json_number(json, summary, "spearman", s->spearman);
}

/* [{key, value, METRIC: {n, mape_pct, …}}] */
static dts_status add_groups(dts_json *json, cJSON *root, const dts_validation *v) {
    cJSON *groups = v->by != NULL ? dts_json_array(json, root, "groups") : NULL;
    for (size_t g = 0; g < v->group_count; g++) {
        cJSON *object = dts_json_object(json, groups, NULL);
        dts_json_string(json, object, "key", v->by);
        dts_json_string(json, object, "value", v->groups[g]);
        for (int m = 0; m < DTS_METRIC_COUNT; m++) {
            dts_validate_summary s;
            if (dts_validation_group_summary(v, m, g, &s) != DTS_OK) {
                return DTS_NOMEM;
            }
            if (s.n > 0) {
                add_summary(json, object, m, &s);
            }
        }
    }
    return DTS_OK;
}

static dts_status add_worst(dts_json *json, cJSON *root, const dts_validation *v) {
    if (v->worst == 0) {
        return DTS_OK;
    }
    size_t *worst = malloc((v->worst + 1) * sizeof *worst);
    if (worst == NULL) {
        return DTS_NOMEM;
    }
    size_t count = dts_validation_worst(v, worst);
    cJSON *rows = dts_json_array(json, root, "worst");
    for (size_t i = 0; i < count; i++) {
        add_record(json, rows, v, &v->records[worst[i]]);
    }
    free(worst);
    return DTS_OK;
}

/* {METRIC: {n, mape_pct, …}} of the simulator or a baseline. */
static dts_status add_summaries(dts_json *json, cJSON *object, const dts_validation *v, int baseline) {
    for (int m = 0; m < DTS_METRIC_COUNT; m++) {
        dts_validate_summary s;
        if (dts_validation_summary(v, m, baseline, &s) != DTS_OK) {
            return DTS_NOMEM;
        }
        if (s.n == 0) {
            continue;
        }
        add_summary(json, object, m, &s);
    }
    return DTS_OK;
}

static void add_tables(dts_json *json, cJSON *root, const dts_validation *v) {
    cJSON *tables = dts_json_array(json, root, "tables");
    for (size_t t = 0; t < v->table_count; t++) {
        const dts_validate_table *table = &v->tables[t];
        cJSON *object = dts_json_object(json, tables, NULL);
        dts_json_string(json, object, "path", table->path);
        dts_json_integer(json, object, "rows", (int64_t)table->rows);
        dts_json_integer(json, object, "simulated", (int64_t)table->simulated);
        dts_json_integer(json, object, "not_simulated", (int64_t)(table->rows - table->simulated));
        cJSON *units = dts_json_object(json, object, "other_unit");
        for (int m = 0; m < DTS_METRIC_COUNT; m++) {
            const char *unit = dts_validation_other_unit(v, t, m);
            if (unit != NULL) {
                dts_json_string(json, units, dts_metrics[m].name, unit);
            }
        }
        cJSON *fitted = dts_json_object(json, object, "fitted_utilisation");
        for (int b = 0; b < DTS_BASELINE_COUNT; b++) {
            dts_json_number(json, fitted, dts_baseline_names[b], table->utilisation[b]);
        }
    }
}

static void add_failures(dts_json *json, cJSON *root, const dts_validation *v) {
    cJSON *failures = dts_json_array(json, root, "not_simulated");
    for (size_t i = 0; i < v->failure_count; i++) {
        const dts_validate_failure *failure = &v->failures[i];
        cJSON *object = dts_json_object(json, failures, NULL);
        dts_json_string(json, object, "table", v->tables[failure->table].path);
        dts_json_integer(json, object, "line", failure->line);
        dts_json_string(json, object, "id", failure->id);
        dts_json_string(json, object, "reason", failure->reason);
    }
}

dts_status dts_validation_json(const dts_validation *validation, dts_text *out) {
    dts_json json;
    cJSON *root = dts_json_begin(&json);
    cJSON *rows = dts_json_array(&json, root, "rows");
    for (size_t i = 0; i < validation->record_count; i++) {
        add_record(&json, rows, validation, &validation->records[i]);
    }
    dts_status status = add_summaries(&json, dts_json_object(&json, root, "summary"), validation, -1);
    cJSON *baselines = dts_json_object(&json, root, "baselines");
    for (int b = 0; b < DTS_BASELINE_COUNT && status == DTS_OK; b++) {
        status = add_summaries(&json, dts_json_object(&json, baselines, dts_baseline_names[b]), validation, b);
    }
    status = status == DTS_OK ? add_groups(&json, root, validation) : status;
    status = status == DTS_OK ? add_worst(&json, root, validation) : status;
    add_tables(&json, root, validation);
    add_failures(&json, root, validation);
    json.failed = json.failed || status != DTS_OK;
    return dts_json_end(&json, out);
}
