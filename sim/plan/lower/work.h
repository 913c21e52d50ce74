/* What a plan's operators cost, without a graph: for explanations. */
#ifndef DTS_PLAN_LOWER_WORK_H
#define DTS_PLAN_LOWER_WORK_H

#include "plan/lower/builder.h"

/* The operators of each part with their times on plan's GPU, as dts_lower takes them. */
dts_status dts_lower_work(const dts_plan *plan, dts_arena *arena, dts_part_work out[DTS_PART_COUNT], dts_diag *diag);
/* The same where dts_build_slowest of the plan is known. */
dts_status dts_lower_work_at(const dts_plan *plan, double slowest, dts_arena *arena, dts_part_work out[DTS_PART_COUNT],
                             dts_diag *diag);

/* How many kinds of products and attention of b's plan take a measured time. */
dts_timed_kernels dts_build_timed(const dts_builder *b);

/* Tensors that each kind of parameters of an operator is made of: one for each expert, unless they are stacked. */
int64_t dts_operator_tensors(const dts_plan *plan, const dts_operator *o);

#endif
