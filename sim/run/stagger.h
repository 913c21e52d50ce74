/* Stages that begin their iterations one after another. */
#ifndef DTS_RUN_STAGGER_H
#define DTS_RUN_STAGGER_H

#include "engine/simulate.h"
#include "plan/lower/lower.h"

/* What is found from iteration to iteration. Zeroed before the first. */
typedef struct dts_stagger {
    dts_time *begins; /* [rows · pipeline] of the iteration simulated last; NULL: all at once */
    dts_time length;  /* of that iteration, its longest stage */
    int rounds;
} dts_stagger;

/* After an iteration was simulated: *again, and the times at which the next one begins, where the stages' own
 * iterations are not equally long yet. Without post-validation there is nothing to find. */
dts_status dts_stagger_settle(dts_stagger *stagger, const dts_plan *plan, const dts_lowered *lowered,
                              const dts_simulation *simulation, dts_arena *arena, bool *again);

/* The stage that begins first, at 0: its index in begins. */
size_t dts_stagger_first(const dts_stagger *stagger, const dts_plan *plan, const dts_lowered *lowered);

/* What an iteration takes at most whose stages have begun all at once: the longest stage, from its first kernel on. In
 * iterations of this length the stages can keep the distances of this one. */
dts_time dts_stagger_longest(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation);

#endif
