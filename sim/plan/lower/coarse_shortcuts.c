/* Brief blocks are for a first look at many plans (run/coarse_run.c). A host that waits for the input of a pass is free
 * when the GPU is, so that by (1) the pass takes max(C, K) from then on, and where it has issued everything by the end
 * (H <= max(C, K)) nothing waits for it later: neither needs a task. Kernels of microseconds between two passes are
 * added to the second, which puts them behind its input instead of before it, and a block is not cut at its last
 * collective where nothing is gathered beside it.
 *
 * What tensor-parallel ranks gather of a boundary (pipeline.c) is issued by a host that has waited for its arrival, and
 * for all kernels before. Nothing else runs on the GPU then, and the host launches the pass meanwhile: with the issue l
 * and the length g of the gather the pass takes
 *   l + max(g + C, K) = l + g + C + max(0, K - C - g)                                                            (2)
 * from the arrival, as one task. Equation (1): block.c.
 *
 * A transfer that holds its sender and needs not wait for the receiver goes on where the pass ends, on the same stream:
 * both are one task, whose fixed part is the pass.
 *
 * ZeRO-2 reduces the gradients of every microbatch. Their stream takes one bucket after the other: they may as well
 * begin with the pass that makes them, which ends when its last bucket has room (data_parallel.c). Of the
 * last microbatch, where nothing hides what is left, and of the first, which the stream is idle before, with the layer.
 *
 * A collective that waits for the latest kernel is issued by then where the host is known to be ahead by as much: it
 * needs no task for that.
 *
 * Only the highest total of a GPU's memory is looked at: its categories are one. */
#include "plan/lower/builder.h"

/* Of a pass, what may wait for its input though it need not. */
static const double little = 0.01;

bool dts_brief_hides_host(const dts_builder *b, const dts_block *block, dts_time ahead, bool meets) {
    dts_time held_up = meets && block->lead > 0 ? block->lead : 0;
    return b->brief && !dts_build_blocks(b) && (meets || (ahead >= block->lead && !b->host_reads)) &&
           block->host <= block->duration + held_up;
}

bool dts_brief_gathers_inside(const dts_builder *b) {
    const dts_plan *plan = b->plan;
    const bool waits = plan->job.stack->pipeline_host_waits && !dts_plan_overlaps_p2p(plan, plan->method);
    return waits && dts_brief_waits_later(b) && !dts_build_blocks(b);
}

bool dts_brief_joins(dts_builder *b, dts_stage *stage, int64_t count, dts_time all, double launch_s) {
    const dts_time issue = count * dts_time_from_s(launch_s);
    const dts_time longest = all > issue ? all : issue;
    if (!b->brief || b->detail == DTS_DETAIL_KERNEL || dts_build_blocks(b) || stage->last_block == NULL ||
        (double)longest > little * (double)stage->last_block->duration) {
        return false;
    }
    stage->between_passes += all;
    stage->host_pending += issue;
    stage->ahead += all - issue;
    return true;
}

void dts_brief_gather(const dts_builder *b, dts_stage *stage, dts_time gather) {
    stage->gathers = gather;
    stage->between_passes += dts_time_from_s(b->plan->job.stack->backward_launch_s);
}

bool dts_brief_hands_over_behind(const dts_builder *b, const dts_pass *pass) {
    return b->brief && dts_sync_takes_gradients(pass->sync) && b->plan->job.model->experts == 0;
}

bool dts_brief_meets(dts_builder *b, dts_stage *stage, const dts_block *block, bool backward) {
    const dts_id awaited = stage->awaited;
    stage->awaited = DTS_NO_ID;
    if (awaited == DTS_NO_ID) {
        return false;
    }
    const bool hidden = dts_brief_hides_host(b, block, 0, true);
    if (hidden) {
        stage->met[0] = awaited;
        stage->met[1] = stage->last_kernel;
    } else {
        dts_build_wait(b, stage, backward, awaited);
    }
    return hidden;
}
