/* Predictions against measurements: every row of a table is simulated, each of its measured values becomes one record,
 * and the errors are summed up beside two trivial baselines.
 *
 * A row that cannot be simulated stays in the result with its reason. */
#ifndef DTS_REPORT_VALIDATE_H
#define DTS_REPORT_VALIDATE_H

#include "base/diag.h"
#include "config/schema.h"
#include "report/style.h"

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

/* The baselines: what a prediction must beat to be worth anything. */
typedef enum dts_baseline {
    DTS_BASELINE_UTILISATION, /* model FLOPs / (peak · u) */
    DTS_BASELINE_BUBBLE,      /* the same times 1 + (p-1)/(m·v) */
    DTS_BASELINE_COUNT
} dts_baseline;
extern const char *const dts_baseline_names[DTS_BASELINE_COUNT];

/* One measured value of one row that was simulated. */
typedef struct dts_validate_record {
    const char *id;
    size_t table;
    int metric;
    bool fits;
    double measured, predicted;
    double baseline[DTS_BASELINE_COUNT]; /* predictions of the baselines; NaN for memory */
    double ideal_s;                      /* time at the full peak: model FLOPs / peak */
    double bubble_factor;                /* 1 + (p-1)/(m·v) */
    double tokens_per_gpu;               /* per iteration */
} dts_validate_record;

typedef struct dts_validate_failure {
    const char *id;
    size_t table;
    uint32_t line;
    const char *reason;
} dts_validate_failure;

typedef struct dts_validate_table {
    const char *path;
    size_t rows, simulated;
    double utilisation[DTS_BASELINE_COUNT]; /* fitted on this table; NaN without time or rate */
} dts_validate_table;

typedef struct dts_validate_summary {
    size_t n;
    double mape_pct, median_ape_pct, p90_ape_pct; /* of |predicted - measured| / measured */
    double bias_pct;                              /* mean of (predicted - measured) / measured */
    double spearman;                              /* rank correlation; NaN for fewer than three records */
} dts_validate_summary;

typedef struct dts_validation {
    dts_arena *arena; /* owns everything below */
    dts_validate_table *tables;
    size_t table_count;
    dts_validate_record *records;
    size_t record_count;
    dts_validate_failure *failures;
    size_t failure_count;
} dts_validation;

/* Told before each row; may be NULL. */
typedef void dts_validate_progress(void *context, size_t done, size_t total, const char *id);

/* Reads all tables, then simulates row by row. DTS_INVALID when a table itself is wrong (nothing is simulated then).
 * *out is owned by the caller. */
dts_status dts_validate(const char *const *paths, size_t path_count, const dts_profile_paths *profiles,
                        dts_validate_progress *progress, void *context, dts_validation **out, dts_diag *diag);
void dts_validation_free(dts_validation *validation);

/* Summary of the records of one metric: of the simulator (baseline < 0) or of a baseline. n is 0 when there are none.
 */
dts_status dts_validation_summary(const dts_validation *validation, int metric, int baseline,
                                  dts_validate_summary *out);

/* Fits the baselines' constants, one per table, and fills in their predictions. Called by dts_validate. */
dts_status dts_validation_fit_baselines(dts_validation *validation);

dts_status dts_validation_text(const dts_validation *validation, const dts_style *style, dts_text *out);
dts_status dts_validation_json(const dts_validation *validation, dts_text *out);

#endif
