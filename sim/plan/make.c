/* A plan is made: rules, ranks, stages and order, one after the other; and described in a few words. */
#include <inttypes.h>

#include "plan/internal.h"

/* Degrees, formats and microbatches: what the rules decide. */
static dts_status begin(const dts_job *job, dts_plan *out, dts_diag *diag) {
    *out = (dts_plan){.job = *job};
    return dts_plan_apply_rules(job, out, diag);
}

static dts_status place_and_cut(dts_plan *plan, dts_arena *arena, dts_diag *diag) {
    dts_status status = dts_plan_place(plan, arena, diag);
    status = status == DTS_OK ? dts_plan_cut(plan, arena, diag) : status;
    return status == DTS_OK ? dts_plan_check_modules(plan, diag) : status;
}

static dts_status outline(dts_plan *plan, dts_arena *arena, dts_diag *diag) {
    if (plan->method != NULL) {
        plan->schedule.layout = plan->method->layout;
    }
    return place_and_cut(plan, arena, diag);
}

dts_status dts_plan_outline(const dts_job *job, dts_arena *arena, dts_plan *out, dts_diag *diag) {
    dts_status status = begin(job, out, diag);
    return status == DTS_OK ? outline(out, arena, diag) : status;
}

dts_status dts_plan_prepare(const dts_job *job, dts_arena *arena, dts_plan *out, dts_diag *diag) {
    dts_status status = begin(job, out, diag);
    if (status == DTS_OK && dts_plan_measures_passes(out, out->method)) {
        return outline(out, arena, diag);
    }
    status = status == DTS_OK ? dts_plan_build_order(out, NULL, arena, diag) : status;
    return status == DTS_OK ? place_and_cut(out, arena, diag) : status;
}

dts_status dts_plan_order(dts_plan *plan, const dts_schedule_shape *passes, dts_arena *arena, dts_diag *diag) {
    return dts_plan_build_order(plan, passes, arena, diag);
}

const char *dts_plan_describe(const dts_plan *plan, dts_arena *arena) {
    static const char *const kinds[] = {"dp", "ddp", "zero1", "zero2", "zero3", "fsdp"};
    const char *pipeline = "";
    const char *tensor = "";
    if (plan->pipeline > 1) {
        const char *flushes = plan->flushes > 1 ? dts_arena_printf(arena, ", %" PRId64 " flushes", plan->flushes) : "";
        pipeline = dts_arena_printf(arena, "pipeline %" PRId64 " (%s%s%s) × ", plan->pipeline, plan->schedule.name,
                                    dts_plan_describe_costs(plan, arena), flushes == NULL ? "" : flushes);
    }
    if (plan->tensor > 1) {
        tensor =
            dts_arena_printf(arena, "tensor %" PRId64 "%s × ", plan->tensor, plan->async_tensor ? " (overlapped)" : "");
    }
    const char *context = "";
    if (plan->context > 1) {
        static const char *const methods[] = {"ring", "all-to-all", "all-gather"};
        context = dts_arena_printf(arena, "context %" PRId64 " (%s) × ", plan->context,
                                   methods[plan->job.parallelism->context_method]);
    }
    const char *expert = "";
    if (plan->expert > 1) {
        expert = dts_arena_printf(arena, ", expert %" PRId64, plan->expert);
    }
    const char *expert_tensor = "";
    if (plan->expert_tensor > 1) {
        expert_tensor = dts_arena_printf(arena, ", expert tensor %" PRId64, plan->expert_tensor);
    }
    const char *hybrid = "";
    if (plan->shards < plan->replicas) {
        hybrid = dts_arena_printf(arena, " in groups of %" PRId64, plan->shards);
    }
    return dts_arena_printf(arena, "%s%s%s%s%s %" PRId64 "%s%s%s",
                            dts_plan_decodes(plan)  ? "decode: "
                            : dts_plan_infers(plan) ? "inference: "
                                                    : "",
                            pipeline == NULL ? "" : pipeline, tensor == NULL ? "" : tensor,
                            context == NULL ? "" : context, kinds[plan->job.parallelism->data_parallel], plan->data,
                            hybrid == NULL ? "" : hybrid, expert == NULL ? "" : expert,
                            expert_tensor == NULL ? "" : expert_tensor);
}
