/* Iterations of many microbatches from one of few (fold.c). */
#ifndef DTS_RUN_FOLD_H
#define DTS_RUN_FOLD_H

#include "run/measure.h"

typedef struct dts_fold {
    int64_t some, all; /* microbatches that are simulated, and that there are; they differ by whole rounds */
    int64_t round;     /* of each direction: the longest after which times may repeat */
    int64_t directions;
    int64_t tried; /* microbatches that were simulated before, in vain; 0: none */
    dts_time tried_time;
    int64_t draining; /* the last so many of each direction, while the pipeline empties */
    bool nearly;      /* all that was missing then is that fewer microbatches agree: the fewest more will show it */
    bool fills;       /* a guess: the orders of stages are known to keep the pace, though rounds are not whole yet */
} dts_fold;

/* False: there is nothing to fold. */
bool dts_fold_find(const dts_plan *plan, dts_fold *out);

/* The same for a first look, from an outline: without proof, so with fewer. */
bool dts_fold_guess(const dts_plan *outline, dts_fold *out);
/* Does the plan of fold->some microbatches drain as dts_fold_guess has thought? */
bool dts_fold_holds(const dts_fold *fold, const dts_plan *part);
/* Half as many more, after fold->some were not enough, or one round more where that is nearly all that is missing.
 * False: all of them are not many more. */
bool dts_fold_retry(dts_fold *fold);

/* How a simulated iteration repeats; borrows both arguments. */
typedef struct dts_rhythm dts_rhythm;

/* *out: how m, of fold->some microbatches, repeats, in arena; NULL: it does not. Tells m what of it stands for more,
 * and fold what was tried. */
dts_status dts_fold_listen(dts_fold *fold, dts_measured *m, dts_arena *arena, const dts_rhythm **out);

/* *round: how long the slowest stage takes for fold->round further microbatches while the pipeline is full, in as far
 * as m shows it; negative: it does not. A guess at what dts_fold_listen proves. */
dts_status dts_fold_pace(const dts_fold *fold, dts_measured *m, dts_arena *arena, dts_time *round);

/* Makes result, of what was listened to, that of all microbatches. */
void dts_fold_follow(const dts_rhythm *rhythm, dts_result *result);

#endif
