/* Lowering and simulating a plan. */
#ifndef DTS_RUN_SIMULATE_PLAN_H
#define DTS_RUN_SIMULATE_PLAN_H

#include "run/replay.h"
#include "run/result.h"
#include "run/stagger.h"
#include "scenario/scenario.h"

/* What simulating a plan leaves. */
typedef struct dts_simulated {
    dts_lowered lowered;
    dts_simulation *simulation;
    dts_replay *replays; /* [pipeline]; NULL: the allocator is estimated */
    dts_stagger stagger; /* with post-validation */
    dts_time longer;     /* iterations are than this one on average (dts_input_steady) */
    dts_time unhindered; /* the iteration without the allocator's calls; 0: nothing held it up */
} dts_simulated;

/* Lowers and simulates; *s is empty before, and the caller's whatever is returned. allocator: whether the caching
 * allocator follows. how: what is found on the way is added. record: changes of memory become result->memory_samples.
 */
dts_status dts_simulate_plan(const dts_plan *plan, dts_allocator_detail allocator, dts_lower_options *how, bool record,
                             dts_arena *arena, dts_simulated *s, dts_result *result, dts_diag *diag);
/* Where blocks or layers stand for kernels: s->replays of as many microbatches as fill the pipeline, for each stage of
 * which the iteration is simulated again with its kernels. NULL as before where they take other memory than all do. */
dts_status dts_replay_beside(const dts_plan *plan, const dts_lower_options *how, dts_arena *arena, dts_simulated *s,
                             dts_diag *diag);
void dts_simulated_free(dts_simulated *s, int64_t stages);

#endif
