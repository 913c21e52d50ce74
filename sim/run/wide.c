/* Half precision that a stack's scripts turn on for some plans only (stack.autocast). */
#include "run/wide.h"

/* Which layers have none: "" for all, NULL: each has. Embedding and head are of style 0, as the plan is. */
static const char *which(const dts_plan *plan) {
    bool wide = dts_plan_stays_wide(plan), all = wide;
    for (size_t k = 0; k < plan->style_count; k++) {
        const bool stays = dts_plan_stays_wide(dts_plan_style(plan, k));
        wide = wide || stays;
        all = all && stays;
    }
    return !wide ? NULL : all ? "" : dts_plan_stays_wide(plan) ? " but for some layers" : " in some layers";
}

bool dts_plan_has_wide(const dts_plan *plan) {
    return which(plan) != NULL;
}

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
    const char *layers = which(plan);
    const char *help = layers == NULL ? NULL : cure(plan, arena);
    if (help == NULL) {
        return NULL;
    }
    const dts_stack *stack = plan->job.stack;
    const char *only = stack->autocast == DTS_AUTOCAST_NEVER
                           ? "is FSDP's only"
                           : "is FSDP's or, without tensor and pipeline parallelism, autocast's";
    return dts_arena_printf(arena, "%s in fp32%s%s: mixed precision of %s %s; %s",
                            dts_plan_infers(plan) ? "runs" : "trains",
                            plan->storage.product != plan->storage.compute ? " around narrow products" : "", layers,
                            stack->name, only, help);
}
