/* Zero bubble: the optimizer steps before the gradients of the whole model are known [1].
 *
 * A global gradient norm, or a check for overflows, makes all stages wait for the last one before they step, and the
 * bubble that the schedule has removed is back. Instead stage p adds its own part to what the stages 0 to p - 1 have
 * sent on, and steps at once if that sum asks for no clipping. The whole sum comes back during the forward passes with
 * which the next iteration begins; in the rare case that it does ask, the step is taken back and repeated. That is not
 * simulated: training that is stable does not clip.
 *
 * So each stage has an iteration of its own: from the end of its last step to that of the next. In the steady state all
 * are equally long, and they begin one after another: a parallelogram instead of a rectangle. One iteration is lowered
 * with the times at which the stages begin (dts_lower_options.begins); run/stagger.c finds them.
 *
 * Where input and output embeddings are one tensor on the two ends of the pipeline, their gradients are added up before
 * the step: the last stage makes its part first of all weight gradients that are left when nothing else is.
 *
 * [1] Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 4;
 * sail-sg/zero-bubble-pipeline-parallelism
 *     @16c5660, megatron/optimizer/optimizer.py (pre_step, post_validation); weight_grad_store.py @47c2c7a (clear). */
#include "plan/lower/builder.h"

dts_id dts_build_step_wait(dts_builder *b, dts_stage *stage, dts_id after, const char *name) {
    dts_task_info info = {
        .role = DTS_ROLE_OPTIMIZER, .microbatch = -1, .layer = -1, .device = stage->device, .name = name};
    dts_id wait = dts_build_task(b, stage->compute, 0, &info);
    dts_graph_depend(b->graph, wait, after);
    dts_graph_depend(b->graph, wait, stage->last_host);
    stage->last_kernel = wait;
    return wait;
}

dts_id dts_build_begin(dts_builder *b, dts_stage *stage, int64_t row) {
    dts_task_info info = {.role = DTS_ROLE_HOST,
                          .microbatch = -1,
                          .layer = -1,
                          .device = stage->device,
                          .peer = stage->device,
                          .ahead = true,
                          .name = "iteration before"};
    dts_time begins = b->begins == NULL ? 0 : b->begins[row * b->plan->pipeline + stage->index];
    dts_id host = dts_build_task(b, stage->host, begins, &info);
    dts_id begin = dts_build_task(b, stage->compute, begins, &info);
    stage->last_host = host;
    return begin;
}

size_t dts_build_heads_first(const dts_plan *plan, int64_t rank) {
    const dts_schedule *schedule = &plan->schedule;
    size_t first = schedule->op_count[rank];
    while (first > 0 && schedule->ops[rank][first - 1].kind == DTS_OP_BACKWARD_WEIGHT) {
        first--;
    }
    bool tied = dts_plan_ties_across(plan) && dts_plan_owner(plan, plan->stages - 1) == rank;
    return tied && first < schedule->op_count[rank] ? first : SIZE_MAX;
}

void dts_build_partial_norms(dts_builder *b) {
    for (int64_t p = 1; p < b->plan->pipeline; p++) {
        dts_build_step_wait(b, &b->stages[p], b->stages[p - 1].last_kernel, "gradient norm of the stages before");
    }
}

dts_id dts_build_end(dts_builder *b, dts_stage *stage) {
    return dts_build_step_wait(b, stage, stage->last_collective, "end of the iteration");
}
