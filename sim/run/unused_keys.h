/* Keys that somebody wrote and that do nothing in the plan at hand. */
#ifndef DTS_RUN_UNUSED_KEYS_H
#define DTS_RUN_UNUSED_KEYS_H

#include "config/schema.h"
#include "plan/plan.h"
#include "run/result.h"

/* Adds warnings to result, with room for most, each with the reason and what would make the keys count. said: where the
 * values of the plan's scenario were written; keys of a profile are silent in many plans, and are not told. */
dts_status dts_warn_of_silent(const dts_plan *plan, const dts_provenance *said, size_t most, dts_result *result);

#endif
