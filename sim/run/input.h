/* The queue of loaded batches from one iteration to the next. */
#ifndef DTS_RUN_INPUT_H
#define DTS_RUN_INPUT_H

#include "engine/simulate.h"
#include "plan/lower/lower.h"

enum { DTS_INPUT_ROUNDS = 24 };

/* Zeroed before the first iteration. */
typedef struct dts_input_steady {
    double *left; /* dts_lower_options.input_left of the iteration to be simulated next */
    int rounds;
    dts_time lengths[DTS_INPUT_ROUNDS + 1]; /* of the iterations so far */
    double *lefts[DTS_INPUT_ROUNDS + 1];    /* with which they began */
    dts_time longer; /* iterations are longer than the last one on average, by waiting for batches */
    bool found;      /* that was the shortest of a rhythm */
} dts_input_steady;

/* After an iteration that was lowered with steady->left: does it stand for all that follow? If not, *again is set, and
 * steady->left is what the next one begins with. */
dts_status dts_input_settle(dts_input_steady *steady, const dts_plan *plan, const dts_lowered *lowered,
                            const dts_simulation *simulation, dts_arena *arena, bool *again);

#endif
