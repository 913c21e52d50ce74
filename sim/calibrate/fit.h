/* The robust bounded least-squares fit on some of the records. */
#ifndef DTS_CALIBRATE_FIT_H
#define DTS_CALIBRATE_FIT_H

#include "calibrate/predictor.h"

typedef struct dts_fit {
    double value[DTS_FIT_PARAMETERS_MOST];
    double standard_error[DTS_FIT_PARAMETERS_MOST];
    double correlation[DTS_FIT_PARAMETERS_MOST * DTS_FIT_PARAMETERS_MOST];
    /* d log prediction / d log parameter, all records: [record][parameter]; in the caller's memory, may be NULL */
    double *influence;
    double worst_influence; /* smallest singular value of the columns scaled to length 1, over the largest */
    double weakest[DTS_FIT_PARAMETERS_MOST]; /* the combination that belongs to it */
    uint64_t iterations;
} dts_fit;

/* Fits the records for which chosen is true, starting from start. most: iterations at most. */
dts_status dts_fit_records(dts_predictor *p, const bool *chosen, const double *start, size_t most, dts_fit *out);

/* Sums of the chosen records at log predictions: mean |error| and mean error, per cent. */
void dts_fit_errors(const dts_predictor *p, const bool *chosen, const double *log_prediction, double *mean_pct,
                    double *bias_pct);

#endif
