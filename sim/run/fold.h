/* Iterations of many microbatches from two of few (fold.c). */
#ifndef DTS_RUN_FOLD_H
#define DTS_RUN_FOLD_H

#include "plan/plan.h"
#include "run/result.h"

typedef struct dts_fold {
    int64_t few, more, all; /* microbatches */
} dts_fold;

/* False: there is nothing to fold. */
bool dts_fold_find(const dts_plan *plan, dts_fold *out);

/* Makes more, the result with fold->more microbatches, the one of fold->all. False, and more is as it was: the steady
 * state was not reached. */
bool dts_fold_combine(const dts_fold *fold, const dts_result *few, dts_result *more);

#endif
