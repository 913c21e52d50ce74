/* The queue of loaded batches from one iteration to the next. */
#ifndef DTS_RUN_INPUT_H
#define DTS_RUN_INPUT_H

#include "engine/simulate.h"
#include "plan/lower/lower.h"

typedef struct dts_input_steady {
    double *left; /* dts_lower_options.input_left of the iteration to be simulated next */
    int rounds;
    dts_time length; /* of the iteration before */
} dts_input_steady;

/* After an iteration that was lowered with steady->left: is it like all that follow? If not, *again is set, and
 * steady->left is what the next one begins with. */
dts_status dts_input_settle(dts_input_steady *steady, const dts_plan *plan, const dts_lowered *lowered,
                            const dts_simulation *simulation, dts_arena *arena, bool *again);

#endif
