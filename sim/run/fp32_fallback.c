/* Half precision that a stack's scripts turn on for some plans only (stack.autocast). */
#include "run/fp32_fallback.h"

/* What makes it half, where that is left to FSDP. */
static const char *cure(const dts_plan *plan, dts_arena *arena) {
    const dts_stack *stack = plan->job.stack;
    const bool fp16 = plan->job.training->precision == DTS_PRECISION_AMP_FP16;
    const char *stored =
        dts_arena_printf(arena, "training.precision=%s stores weights in half%s", fp16 ? "fp16" : "bf16",
                         dts_plan_infers(plan) ? "" : ", without an fp32 copy");
    if (stored == NULL) {
        return NULL;
    }
    const bool sharded = dts_plan_shards_parameters(plan) && plan->data * plan->context > 1;
    if (!stack->fsdp_mixed_precision) {
        return dts_arena_printf(arena, "stack.fsdp.mixed_precision=true%s has it, and %s",
                                sharded ? "" : " beside parallelism.data_parallel=fsdp with more than one replica",
                                stored);
    }
    return dts_arena_printf(arena, "parallelism.data_parallel=fsdp with more than one replica has it, and %s", stored);
}

const char *dts_warn_of_wide(const dts_plan *plan, dts_arena *arena) {
    const char *help = dts_plan_stays_wide(plan) ? cure(plan, arena) : NULL;
    if (help == NULL) {
        return NULL;
    }
    const dts_stack *stack = plan->job.stack;
    const char *only = stack->autocast == DTS_AUTOCAST_NEVER
                           ? "is FSDP's only"
                           : "is FSDP's or, without tensor and pipeline parallelism, autocast's";
    return dts_arena_printf(
        arena, "%s in fp32%s: mixed precision of %s %s; %s", dts_plan_infers(plan) ? "runs" : "trains",
        plan->storage.product != plan->storage.compute ? " around narrow products" : "", stack->name, only, help);
}
