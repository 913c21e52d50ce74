/* Predictions of all rows at given parameters, in parallel, each point only once. */
#ifndef DTS_CALIBRATE_PREDICTOR_H
#define DTS_CALIBRATE_PREDICTOR_H

#include "calibrate/calibrate.h"

/* One measured value. */
typedef struct dts_fit_record {
    size_t row; /* index into the measurements */
    int metric;
    double log_measured;
    size_t group;
} dts_fit_record;

typedef struct dts_point dts_point;

typedef struct dts_predictor {
    const dts_calibrate_request *request;
    const dts_measurements *measurements;
    const bool *used;             /* [row] */
    const dts_fitted *parameters; /* keys and dimensions */
    size_t parameter_count;
    const dts_fit_record *records;
    size_t record_count;
    const bool *chosen; /* [record] whose predictions are asked for; NULL: all */
    dts_arena *arena;
    dts_point *points; /* known ones */
    uint64_t simulations;
    dts_diag *diag;
} dts_predictor;

/* log of the prediction of every record at each of count points of parameter_count values; out[i] is borrowed, one
 * array per point, in which only chosen records count. DTS_INVALID after reporting when a row cannot be simulated
 * there. */
dts_status dts_predict_at(dts_predictor *p, const double *values, size_t count, const double **out);

/* Parameter j, which its caller takes out of p->parameters, stays at the rows' own value: known points where it has
 * that value stay known. */
void dts_predictor_drop(dts_predictor *p, size_t j, double start);

#endif
