/* What a fit starts from: the rows, the parameters with their bounds, the records. */
#ifndef DTS_CALIBRATE_START_H
#define DTS_CALIBRATE_START_H

#include "calibrate/predictor.h"

enum { DTS_FIT_BASES = 3 };
/* The profiles that a fragment can extend, the narrowest first. */
extern const char *const dts_fit_base_keys[DTS_FIT_BASES];

/* A row at the start. */
typedef struct dts_fit_start {
    dts_status status;
    bool skipped; /* not asked for */
    char *reason, *group;
    double values[DTS_FIT_PARAMETERS_MOST];
    char *bases[DTS_FIT_BASES]; /* names of the GPU, the cluster and the stack */
} dts_fit_start;

typedef struct dts_fit_work {
    const dts_calibrate_request *request;
    dts_calibration *c;
    dts_measurements measurements;
    size_t offsets[DTS_FIT_PARAMETERS_MOST];
    const dts_field *fields[DTS_FIT_PARAMETERS_MOST];
    dts_fit_start *rows;
    bool *used;
    dts_fit_record *records;
    dts_predictor predictor;
    dts_diag *diag;
} dts_fit_work;

/* Reads the tables, simulates every row once, checks the parameters and lists the records. */
dts_status dts_fit_prepare(dts_fit_work *w);
void dts_fit_work_free(dts_fit_work *w);

#endif
