/* Tables of measured runs: each row is a scenario, given by overrides, with what was measured. */
#ifndef DTS_REPORT_MEASUREMENTS_H
#define DTS_REPORT_MEASUREMENTS_H

#include "base/diag.h"
#include "config/schema.h"
#include "run/run.h"
#include "scenario/scenario.h"

typedef enum dts_metric_kind {
    DTS_METRIC_TIME,  /* s per iteration */
    DTS_METRIC_RATE,  /* tokens per second and GPU */
    DTS_METRIC_MEMORY /* GiB */
} dts_metric_kind;

typedef struct dts_metric {
    const char *name; /* the column is "measured.NAME" */
    const char *unit;
    dts_metric_kind kind;
    size_t offset; /* of the predicted double in dts_result */
} dts_metric;

enum { DTS_METRIC_COUNT = 5 };
extern const dts_metric dts_metrics[DTS_METRIC_COUNT];

typedef struct dts_measurement {
    const char *id;
    size_t table; /* index into the tables */
    uint32_t line;
    const char *source;            /* of its column `source`; empty without one */
    const dts_override *overrides; /* the cells that are not empty */
    size_t override_count;
    double measured[DTS_METRIC_COUNT]; /* 0: not measured */
} dts_measurement;

typedef struct dts_measurement_table {
    const char *path;
    size_t rows;
} dts_measurement_table;

/* Rows of all tables, in order; everything lies in the arena that they were read into. */
typedef struct dts_measurements {
    dts_measurement_table *tables;
    size_t table_count;
    dts_measurement *rows;
    size_t row_count;
} dts_measurements;

/* Reads and checks tables. All errors are reported, then DTS_INVALID returned. */
dts_status dts_measurements_read(const char *const *paths, size_t count, dts_arena *arena, dts_measurements *out,
                                 dts_diag *diag);

/* Simulates one row with more overrides on top; options as of dts_run. What is wrong goes to diag. *scenario and
 * *result are owned by the caller, also after errors (NULL then, or what was made before). Rows may be simulated in
 * parallel. */
dts_status dts_measurement_simulate(const dts_measurement *row, const dts_override *more, size_t more_count,
                                    const dts_profile_paths *profiles, const dts_run_options *options,
                                    dts_scenario **scenario, dts_result **result, dts_diag *diag);

/* What result predicts for a metric. */
double dts_metric_predicted(const dts_result *result, int metric);

/* Can rows be grouped so? DTS_INVALID after reporting. */
dts_status dts_measurement_check_group(const char *by, dts_diag *diag);

/* What a row is grouped by: the value of a scenario key ("stack", "cluster.nodes"; an ending ".profile" is dropped) or,
 * for "table", the table's path. Borrowed from the scenario or the measurements; NULL: the key says nothing. */
const char *dts_measurement_group(const dts_measurements *measurements, const dts_measurement *row,
                                  const dts_scenario *scenario, const char *by);

#endif
