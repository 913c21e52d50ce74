/* Warnings of a run. */
#ifndef DTS_RUN_WARNINGS_H
#define DTS_RUN_WARNINGS_H

#include "run/measure.h"
#include "scenario/scenario.h"

enum { DTS_WARNINGS_MOST = 24 }; /* that result->warnings has room for */

/* Makes result->warnings, from what was measured, and result->wide. DTS_NOMEM: memory ran out. */
dts_status dts_warn_of_run(const dts_measured *m, dts_result *result);

/* Adds what is to be said of checkpoints, once the whole run is known. */
void dts_warn_of_interval(const dts_scenario_values *values, dts_result *result);

#endif
