/* How much slower than average GPUs the plan's slowest stage is (hardware/gpu_spread.c).
 *
 * The work of a stage is the FLOPs of its chunks' products: one forward, two backward (one where weights are frozen),
 * and one where a checkpoint runs a layer again. What selective recomputation runs again is left out. */
#include <math.h>

#include "plan/lower/costs.h"

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
 * beyond room, the last one takes all that are left, with the most work of these: never too fast. */
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

/* Where a search asks before it knows what is recomputed. */
typedef enum checkpoints { AS_PLANNED, NOTHING, EVERYTHING } checkpoints;

/* Is the layer at this place of its chunk run again for its backward pass? */
static bool runs_again(const dts_plan *plan, int64_t place) {
    const dts_recompute *recompute = &plan->job.training->recompute;
    switch ((dts_recompute_kind)recompute->kind) {
        case DTS_RECOMPUTE_NONE:
        case DTS_RECOMPUTE_SELECTIVE:
            return false;
        case DTS_RECOMPUTE_FULL:
        case DTS_RECOMPUTE_EXCEPT_LAST:
        case DTS_RECOMPUTE_SQRT:
        case DTS_RECOMPUTE_EVERY:
            return true;
        case DTS_RECOMPUTE_FIRST:
            return place < recompute->layers;
    }
    return false;
}

static double chunk_work(const dts_plan *plan, const double parts[DTS_PART_COUNT], checkpoints repeats, int64_t stage) {
    const dts_chunk *chunk = &plan->chunks[stage];
    const double once = dts_plan_adapts(plan) ? 2 : 3; /* frozen weights have no gradient of their own */
    double work = chunk->head ? once * parts[DTS_PART_HEAD] : 0;
    for (int64_t i = 0; i < chunk->layers; i++) {
        const bool again = repeats == EVERYTHING || (repeats == AS_PLANNED && runs_again(plan, i));
        work += (once + again) * parts[dts_model_layer_part(plan->job.model, chunk->first_layer + i)];
    }
    return work;
}

/* Of a pipeline's stages as they lie in this layout, with the work of parts. */
static double slowest_stage(const dts_plan *plan, const double parts[DTS_PART_COUNT], dts_layout layout,
                            checkpoints repeats) {
    enum { KINDS = 16 };
    dts_stage_load loads[KINDS];
    size_t count = 0;
    const int64_t chunks = layout == DTS_LAYOUT_BIDIR ? 2 : plan->stages / plan->pipeline;
    for (int rank = 0; rank < plan->pipeline; rank++) {
        double work = 0;
        for (int chunk = 0; chunk < chunks; chunk++) {
            work += chunk_work(plan, parts, repeats, dts_virtual_stage(layout, (int)plan->pipeline, rank, chunk));
        }
        count = add_stage(loads, count, KINDS, work);
    }
    return dts_gpu_slowest_stage(&plan->job.cluster->gpu, plan->gpus / plan->pipeline, loads, count);
}

/* Do the GPUs that hold up the job differ from stage to stage? With a spread of its own every GPU has a speed of its
 * own (ranks.c). */
static bool stages_differ(const dts_plan *plan) {
    return !(plan->job.cluster->gpu_spread > 0) && plan->pipeline > 1;
}

double dts_build_slowest(const dts_plan *plan) {
    const dts_cluster *cluster = plan->job.cluster;
    if (!stages_differ(plan)) {
        return cluster->gpu_spread > 0 ? 1 : dts_gpu_slowest(&cluster->gpu, plan->gpus);
    }
    double parts[DTS_PART_COUNT];
    part_work(plan, parts);
    return slowest_stage(plan, parts, plan->schedule.layout, AS_PLANNED);
}

double dts_least_slowest(const dts_plan *plan, double known) {
    if (!stages_differ(plan)) {
        return 1;
    }
    double parts[DTS_PART_COUNT];
    part_work(plan, parts);
    double least = fmin(known, slowest_stage(plan, parts, plan->schedule.layout, EVERYTHING));
    const bool two = plan->stages == 2 * plan->pipeline, one = plan->stages == plan->pipeline;
    if (one || two) { /* schedules in a V, or from both ends, may have the same cut */
        const dts_layout other = two ? DTS_LAYOUT_V : DTS_LAYOUT_BIDIR;
        least = fmin(least,
                     fmin(slowest_stage(plan, parts, other, NOTHING), slowest_stage(plan, parts, other, EVERYTHING)));
    }
    return least / known;
}
