/* How much slower than average GPUs the plan's slowest stage is (hardware/gpu_spread.c).
 *
 * The work of a stage is the FLOPs of its chunks' products: one forward, two backward, and one where a checkpoint runs
 * a layer again. What selective recomputation runs again is left out. */
#include "plan/lower/builder.h"

/* FLOPs of every kind of part that the model has; only ratios matter. */
static void part_work(const dts_plan *plan, double out[DTS_PART_COUNT]) {
    double counts[DTS_PART_COUNT];
    dts_model_count_parts(plan->job.model, counts);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        out[part] = counts[part] > 0
                        ? dts_model_part_flops(plan->job.model, (dts_part)part, plan->job.training->sequence_length, 0)
                        : 0;
    }
}

/* Adds a stage to those with the same work. Stages differ by whole layers and by the ends, so that there are few kinds;
 * beyond room, the last one takes all that are left. */
static size_t add_stage(dts_stage_load *loads, size_t count, size_t room, double work) {
    for (size_t i = 0; i < count; i++) {
        if (loads[i].work >= work && loads[i].work <= work) {
            loads[i].stages++;
            return count;
        }
    }
    if (count == room) {
        loads[room - 1].work = work > loads[room - 1].work ? work : loads[room - 1].work;
        loads[room - 1].stages++;
        return count;
    }
    loads[count] = (dts_stage_load){work, 1};
    return count + 1;
}

/* Forward passes' worth of FLOPs of the layer at this place of its chunk. */
static double passes(const dts_plan *plan, const dts_chunk *chunk, int64_t place) {
    const dts_plan *style = dts_plan_style(plan, dts_plan_layer_style(plan, chunk->first_layer + place));
    const dts_recompute *recompute = &style->job.training->recompute;
    switch ((dts_recompute_kind)recompute->kind) {
        case DTS_RECOMPUTE_NONE:
        case DTS_RECOMPUTE_SELECTIVE:
            return 3;
        case DTS_RECOMPUTE_FULL:
        case DTS_RECOMPUTE_EXCEPT_LAST:
        case DTS_RECOMPUTE_SQRT:
        case DTS_RECOMPUTE_EVERY:
            return 4;
        case DTS_RECOMPUTE_FIRST:
            return place < recompute->layers ? 4 : 3;
    }
    return 3;
}

static double chunk_work(const dts_plan *plan, const double parts[DTS_PART_COUNT], int64_t stage) {
    const dts_chunk *chunk = &plan->chunks[stage];
    double work = chunk->head ? 3 * parts[DTS_PART_HEAD] : 0;
    for (int64_t i = 0; i < chunk->layers; i++) {
        work += passes(plan, chunk, i) * parts[dts_model_layer_part(plan->job.model, chunk->first_layer + i)];
    }
    return work;
}

double dts_build_slowest(const dts_plan *plan) {
    const dts_cluster *cluster = plan->job.cluster;
    if (cluster->gpu_spread > 0) { /* every GPU has a speed of its own (ranks.c) */
        return 1;
    }
    if (plan->pipeline < 2) {
        return dts_gpu_slowest(&cluster->gpu, plan->gpus);
    }
    double parts[DTS_PART_COUNT];
    part_work(plan, parts);
    enum { KINDS = 16 };
    dts_stage_load loads[KINDS];
    size_t count = 0;
    for (int64_t rank = 0; rank < plan->pipeline; rank++) {
        double work = 0;
        for (int64_t s = rank; s < plan->stages; s += plan->pipeline) {
            work += chunk_work(plan, parts, s);
        }
        if (plan->copies == 2) {
            work += chunk_work(plan, parts, plan->pipeline - 1 - rank);
        }
        count = add_stage(loads, count, KINDS, work);
    }
    return dts_gpu_slowest_stage(&cluster->gpu, plan->gpus / plan->pipeline, loads, count);
}
