/* Predictions against measurements: every row of a table is simulated, each of its measured values becomes one record,
 * and the errors are summed up beside two trivial baselines.
 *
 * A row that cannot be simulated stays in the result with its reason. */
#ifndef DTS_REPORT_VALIDATE_H
#define DTS_REPORT_VALIDATE_H

#include <stdatomic.h>

#include "report/measurements.h"
#include "report/style.h"
#include "run/verdict.h"

/* The baselines: what a prediction must beat to be worth anything. */
typedef enum dts_baseline {
    DTS_BASELINE_UTILISATION, /* model FLOPs / (peak · u) */
    DTS_BASELINE_BUBBLE,      /* the same times 1 + (p-1)/(m·v) */
    DTS_BASELINE_COUNT
} dts_baseline;
extern const char *const dts_baseline_names[DTS_BASELINE_COUNT];

/* Memory that a row lacks most of, by its share. */
typedef struct dts_validate_lack {
    const char *of; /* "GPU", "host", "NVMe"; NULL: it fits */
    double needed_gib, capacity_gib;
} dts_validate_lack;

/* One measured value of one row that was simulated. */
typedef struct dts_validate_record {
    const char *id;
    size_t table;
    int metric;
    size_t group; /* index into the validation's groups */
    dts_validate_lack lack;
    dts_strain strain; /* where it fits: what near the capacity makes the prediction less sure */
    double fill;       /* live tensors and context over the capacity, of the fullest GPU */
    double measured, predicted;
    double baseline[DTS_BASELINE_COUNT]; /* predictions of the baselines; NaN for memory */
    double ideal_s;                      /* time at the full peak: model FLOPs / peak */
    double bubble_factor;                /* 1 + (p-1)/(m·v) */
    double tokens_per_gpu;               /* per iteration */
    double gpus, sequence_length;
    bool trains;           /* not inference */
    dts_published_run run; /* what identifies it; ratio: of time, also where a rate was measured; 0 for memory */
} dts_validate_record;

typedef struct dts_validate_failure {
    const char *id;
    size_t table;
    uint32_t line;
    const char *reason;
} dts_validate_failure;

typedef struct dts_validate_table {
    const char *path;
    const char *name; /* of the file, without folder and ending */
    size_t rows, simulated;
    double utilisation[DTS_BASELINE_COUNT]; /* fitted on this table; NaN without time or rate */
} dts_validate_table;

typedef struct dts_validate_summary {
    size_t n;
    double mape_pct, median_ape_pct, p90_ape_pct; /* of |predicted - measured| / measured */
    double bias_pct;                              /* mean of (predicted - measured) / measured */
    double time_mape_pct, time_bias_pct;          /* the same of seconds: a rate's by its inverse; NaN for memory */
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
    const char *by; /* what the rows are grouped by; NULL: not at all */
    const char **groups;
    size_t group_count;
    size_t worst;       /* rows with the largest errors to be told; 0: all rows in order instead */
    size_t interrupted; /* rows that were left out because somebody stopped it; they are failures, too */
} dts_validation;

/* Told before each row; may be NULL. */
typedef void dts_validate_progress(void *context, size_t done, size_t total, const char *id);

typedef struct dts_validate_request {
    const char *const *paths; /* of the tables */
    size_t path_count;
    const dts_override *overrides; /* on top of every row */
    size_t override_count;
    const dts_profile_paths *profiles;
    const char *by;                  /* NULL: no groups; see dts_measurement_group */
    size_t worst;                    /* as in dts_validation */
    int threads;                     /* rows at a time; less than 1: one per core */
    const atomic_bool *stop;         /* set by somebody else: simulate no further row; NULL: nobody */
    dts_validate_progress *progress; /* one call at a time, from any thread */
    void *context;
} dts_validate_request;

/* Reads all tables, then simulates their rows. DTS_INVALID when a table itself is wrong (nothing is simulated then).
 * *out is owned by the caller. */
dts_status dts_validate(const dts_validate_request *request, dts_validation **out, dts_diag *diag);
void dts_validation_free(dts_validation *validation);

/* Summary of the records of one metric: of the simulator (baseline < 0) or of a baseline. n is 0 when there are none.
 */
dts_status dts_validation_summary(const dts_validation *validation, int metric, int baseline,
                                  dts_validate_summary *out);

/* The same for the simulator's records of one group. */
dts_status dts_validation_group_summary(const dts_validation *validation, int metric, size_t group,
                                        dts_validate_summary *out);

/* Model FLOPs utilisation that a measurement means, with the peak of its plan's products; NaN for memory. Above 1 the
 * row says that its GPUs did more than they can: a fact of it is wrong or lacks (padding that was left out, sequences
 * shorter than their limit, another precision). */
double dts_validate_measured_mfu(const dts_validate_record *record);

/* The unit that all of a table's values of a metric may be in, where it is not the metric's: "milliseconds". NULL: the
 * metric's own, as far as one can see, or there are none. */
const char *dts_validation_other_unit(const dts_validation *validation, size_t table, int metric);

/* Indices of the records with the largest errors of all metrics, the largest first: at most validation->worst, into
 * out; returns how many. */
size_t dts_validation_worst(const dts_validation *validation, size_t *out);

/* Fits the baselines' constants, one per table, and fills in their predictions. Called by dts_validate. */
dts_status dts_validation_fit_baselines(dts_validation *validation);

/* The record that says how far predictions may be trusted (report/evidence.h): a line for each run of training whose
 * time or rate was measured, under the names of its table and source; also of runs that are too large here: they were
 * measured. *runs: how many those are. */
dts_status dts_validation_evidence(const dts_validation *validation, dts_text *out, size_t *runs);

dts_status dts_validation_text(const dts_validation *validation, const dts_style *style, dts_text *out);
dts_status dts_validation_json(const dts_validation *validation, dts_text *out);

#endif
