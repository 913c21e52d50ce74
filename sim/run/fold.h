/* Iterations of many microbatches from two of few (fold.c). */
#ifndef DTS_RUN_FOLD_H
#define DTS_RUN_FOLD_H

#include "run/measure.h"

typedef struct dts_fold {
    int64_t few, more, all; /* microbatches */
    int64_t draining;       /* the last so many of each direction, while the pipeline empties */
} dts_fold;

/* False: there is nothing to fold. */
bool dts_fold_find(const dts_plan *plan, dts_fold *out);

/* Twice as many, after few and more were not enough. False: all of them are not many more. */
bool dts_fold_retry(dts_fold *fold);

/* When what was done, to tell whether it repeats. */
typedef struct dts_rhythm {
    dts_time length; /* of the iteration */
    size_t streams;
    int64_t stages, microbatches;
    int64_t directions; /* each has its share of the microbatches */
    dts_time *busy;     /* [stream] with all its tasks */
    dts_time *finished; /* [stage · microbatches + microbatch] its last kernel */
} dts_rhythm;

dts_status dts_fold_listen(const dts_measured *m, dts_arena *arena, dts_rhythm *out);

/* Is the steady state reached with fold->few microbatches? rhythms: of the two runs. */
bool dts_fold_is_steady(const dts_fold *fold, const dts_rhythm rhythms[2], const dts_result *few,
                        const dts_result *more);

/* Makes more, the result with fold->more microbatches, the one of fold->all. */
void dts_fold_combine(const dts_fold *fold, const dts_result *few, dts_result *more);

#endif
