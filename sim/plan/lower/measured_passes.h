/* What a framework measures of its passes before it makes an order for them. */
#ifndef DTS_PLAN_LOWER_MEASURED_PASSES_H
#define DTS_PLAN_LOWER_MEASURED_PASSES_H

#include "plan/plan.h"

/* The plan of a job with its order, also where that follows from the passes' times. As dts_plan_prepare else. */
dts_status dts_lower_plan(const dts_job *job, dts_arena *arena, dts_plan *out, dts_diag *diag);

/* The costs of shape, s: of a plan that has its stages, but no order yet. */
dts_status dts_lower_profile(const dts_plan *plan, dts_schedule_shape *shape, dts_diag *diag);

#endif
