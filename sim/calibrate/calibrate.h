/* Fitting parameters of profiles to tables of measurements. See fit.c for the mathematics. */
#ifndef DTS_CALIBRATE_CALIBRATE_H
#define DTS_CALIBRATE_CALIBRATE_H

#include "report/measurements.h"
#include "report/style.h"

/* What to fit. low and high: both 0: half and twice the value that the rows start from, within the schema's bounds. */
typedef struct dts_fit_request {
    const char *key; /* dotted: "stack.launch", "cluster.gpu.gemm.max_efficiency" */
    double low, high;
} dts_fit_request;

/* Told when a batch of simulations begins; may be NULL. total: 0, as how long a fit takes to converge is not known. */
typedef void dts_calibrate_progress(void *context, size_t done, size_t total, const char *what);

typedef struct dts_calibrate_request {
    const char *const *paths; /* of the tables */
    size_t path_count;
    const dts_override *overrides; /* on top of every row */
    size_t override_count;
    const dts_override *where; /* only rows in which each of these cells has this text */
    size_t where_count;
    const dts_profile_paths *profiles;
    const dts_fit_request *parameters;
    size_t parameter_count;
    bool time, memory; /* which metrics are fitted */
    size_t folds;      /* of the cross-validation; less than 2: none */
    const char *by;    /* leave-one-group-out as well; NULL: not */
    int threads;       /* simulations at a time; less than 1: one per core */
    dts_calibrate_progress *progress;
    void *context;
} dts_calibrate_request;

enum { DTS_FIT_PARAMETERS_MOST = 16 };

typedef struct dts_fitted {
    const char *key;
    dts_dimension dimension;
    double low, high, start, value;
    double standard_error; /* NaN at a bound: the data would rather have it beyond */
    bool at_bound;
    double most_influence; /* largest |d log prediction / d log parameter| of any row, at the solution */
} dts_fitted;

typedef struct dts_fit_group {
    const char *name;
    size_t records;
    double before_pct, after_pct, held_out_pct; /* mean |error|; held out: fitted on all other groups */
} dts_fit_group;

typedef struct dts_fit_failure {
    const char *id, *reason;
} dts_fit_failure;

/* A parameter that stays as it is in every row. */
typedef struct dts_fit_refused {
    const char *key, *reason, *help;
} dts_fit_refused;

typedef struct dts_calibration {
    dts_arena *arena; /* owns everything below */
    dts_fitted *parameters;
    size_t parameter_count;
    double *correlation;      /* [parameter][parameter] */
    dts_fit_refused *refused; /* that the data do not determine; the others are fitted without them */
    size_t refused_count;
    size_t rows, records;      /* that were fitted; a row may have several measured values */
    dts_fit_failure *failures; /* rows that could not be simulated at the start */
    size_t failure_count;
    double before_pct, after_pct; /* mean |error| */
    double bias_before_pct, bias_after_pct;
    double held_out_pct; /* NaN without cross-validation */
    size_t folds;
    const char *by; /* NULL: no groups */
    dts_fit_group *groups;
    size_t group_count;
    uint64_t simulations, iterations;
    const char *data; /* "runs.csv (12 rows)": for the source of what is written */
    const char
        *base_name;       /* the profile that the fragment extends; NULL: the rows use several, or it is a scenario's */
    const char *base_key; /* "cluster.gpu", "cluster", "stack"; "" for a fragment of a scenario */
} dts_calibration;

/* Fits. Parameters that the data do not determine, or cannot tell apart from one named before, are refused and the
 * rest is fitted. DTS_INVALID with the reason when a parameter is unknown or starts from different values, or none is
 * left. *out is owned by the caller. */
dts_status dts_calibrate(const dts_calibrate_request *request, dts_calibration **out, dts_diag *diag);
void dts_calibration_free(dts_calibration *calibration);

dts_status dts_calibration_text(const dts_calibration *calibration, const dts_style *style, dts_text *out);
dts_status dts_calibration_json(const dts_calibration *calibration, dts_text *out);
/* YAML that a profile folder or a scenario's reference can take: the fitted values, each with its source. */
dts_status dts_calibration_yaml(const dts_calibration *calibration, dts_text *out);

#endif
