/* What an iteration means for a run of many days: failures, checkpoints, goodput, time and money. */
#ifndef DTS_RUN_WHOLE_RUN_H
#define DTS_RUN_WHOLE_RUN_H

#include "run/result.h"
#include "scenario/scenario.h"

/* Fills in result->whole_run; the iteration's figures are known. */
dts_status dts_measure_whole_run(const dts_scenario_values *values, const dts_plan *plan, dts_result *result);

#endif
