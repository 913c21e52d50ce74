/* Half precision that a stack's scripts turn on for some plans only (stack.autocast). */
#include "run/wide.h"

const char *dts_warn_of_wide(const dts_plan *plan, dts_arena *arena) {
    if (!dts_plan_stays_wide(plan)) {
        return NULL;
    }
    const dts_stack *stack = plan->job.stack;
    const char *only = stack->autocast == DTS_AUTOCAST_NEVER
                           ? "is FSDP's only"
                           : "is FSDP's or, without tensor and pipeline parallelism, autocast's";
    return dts_arena_printf(arena,
                            "trains in fp32%s: mixed precision of %s %s; parallelism.data_parallel=fsdp with more than "
                            "one replica has it, and training.precision=bf16 stores weights in half, without an fp32 "
                            "copy",
                            plan->storage.product != plan->storage.compute ? " around narrow products" : "",
                            stack->name, only);
}
