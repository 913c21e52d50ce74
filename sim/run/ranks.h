/* Every rank by itself, or one for all. */
#ifndef DTS_RUN_RANKS_H
#define DTS_RUN_RANKS_H

#include "run/measure.h"
#include "scenario/scenario.h"

/* Is anything drawn at random? */
bool dts_ranks_are_drawn(const dts_plan *plan);

/* What fidelity.ranks comes to; DTS_INVALID with the reason where it cannot be done. */
dts_status dts_ranks_choose(const dts_plan *plan, const dts_fidelity *fidelity, bool *full, dts_diag *diag);

/* How far the ranks lie apart: result->ranks. */
void dts_measure_ranks(const dts_measured *m, dts_result *result);

#endif
