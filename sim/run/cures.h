/* What helps a plan that does not fit, or that fits but has retries: changes of one choice, simulated. */
#ifndef DTS_RUN_CURES_H
#define DTS_RUN_CURES_H

#include "run/run.h"

/* Is there something to cure? */
bool dts_needs_cure(const dts_result *result);

/* Finds result->cures: the fastest few that suffice, the mildest of each kind; where none does the one that comes
 * nearest, which may change several things. What the rules refuse is left out. */
dts_status dts_find_cures(const dts_scenario_values *values, const dts_run_options *options, dts_result *result,
                          dts_diag *diag);

#endif
