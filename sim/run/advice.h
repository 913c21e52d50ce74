/* A paragraph for people: what limits a plan and what would help. */
#ifndef DTS_RUN_ADVICE_H
#define DTS_RUN_ADVICE_H

#include "run/result.h"
#include "scenario/scenario.h"

/* From the shares of the time, the memory and the what-ifs of result->explanation; into its advice. DTS_NOMEM is the
 * only failure. */
dts_status dts_advise(const dts_scenario_values *values, dts_result *result);

#endif
