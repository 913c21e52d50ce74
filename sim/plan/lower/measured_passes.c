/* What a framework measures of its passes before it makes an order for them.
 *
 * The zero-bubble repository [1] runs some iterations with timers that wait for the GPU, then makes its order for
 *   F, B, W   of a rank, the sum over its chunks of a pass alone; of all ranks the median, the upper one of two
 *   c         a transfer between stages with nothing beside it
 *   memory    what is allocated behind F less before it, the same for B, and for W the rest, all on the first rank; the
 *             limit is p or 2p times what a forward allocates
 * Here a pass takes its kernels and the exchanges between them, or what the host needs to launch these where that is
 * longer. A checkpointed layer is repeated in B. What data parallelism and offload move meanwhile is left out: an
 * order is a choice, and how its passes follow each other comes out of the simulation.
 *
 * The first rank's forward has left what backward needs and the tensor that it sends, which is freed when it is sent,
 * between passes: the share of it that B frees is
 *   1 - (what products keep for the gradients of their weights + sent) / (what backward needs + sent)             (1)
 * which is below zero where forward leaves checkpoints only, and B all that it repeated for W. The repository has an
 * example with a microbatch of the 6.2B model [2]: 943 MB, of which B frees 533; (1) gives 944 and 533
 * (tests/unit/run/test_profiled_orders.c).
 *
 * The same at every detail: it comes from the operators, not from tasks.
 *
 * [1] sail-sg/zero-bubble-pipeline-parallelism, megatron/core/pipeline_parallel/zb_schedules.py (ScheduleTimers,
 *     update_schedule): times and memory of all ranks; its first version takes the medians and the first rank's memory.
 * [2] auto_schedule.py there, in its main part. */
#include "plan/lower/measured_passes.h"

#include <math.h>
#include <stdlib.h>

#include "plan/lower/chunk_pass.h"
#include "plan/lower/costs.h"

enum { F, B, W, KINDS };

/* Of one microbatch on one rank. */
typedef struct passes {
    double time_s[KINDS];
    double left_B;    /* by forward */
    double weights_B; /* of that and what B repeats, freed by W */
} passes;

typedef struct profile {
    const dts_plan *plan;
    dts_block_costs costs;
} profile;

static void add_part(const dts_plan *plan, const dts_part_cost *part, passes *out) {
    out->time_s[F] += dts_pass_chain_s(plan, &part->forward, false);
    out->time_s[B] += dts_pass_chain_s(plan, &part->input, true);
    out->time_s[W] += dts_pass_chain_s(plan, &part->weight, true);
    out->time_s[W] += plan->microbatches > 1 ? part->accumulate_s : 0;
    out->weights_B += part->weights_B;
}

static void add_layer(const profile *p, const dts_chunk *chunk, int64_t slot, passes *out) {
    const int64_t layer = chunk->first_layer + slot;
    const dts_plan *plan = p->plan;
    const dts_part_cost *part = &p->costs.parts[dts_model_layer_part(plan->job.model, layer)];
    const int64_t span = dts_checkpoint_span(plan, chunk, slot);
    add_part(plan, part, out);
    if (span > 0) {
        out->time_s[B] += dts_pass_chain_s(plan, &part->again, true);
        out->left_B += slot % span == 0 ? p->costs.boundary_B : 0;
    } else if (plan->job.training->recompute.kind == DTS_RECOMPUTE_SELECTIVE) {
        out->time_s[B] += dts_pass_chain_s(plan, &part->repeated[0], true);
        out->left_B += part->selective_B[0];
    } else {
        out->left_B += part->saved_B;
    }
}

static void add_end(const profile *p, dts_part which, passes *out) {
    const dts_part_cost *part = &p->costs.parts[which];
    add_part(p->plan, part, out);
    out->left_B += part->saved_B;
}

static passes of_rank(const profile *p, int64_t rank) {
    passes sum = {0};
    for (int64_t v = 0; v < p->plan->virtual_stages; v++) {
        const dts_chunk *chunk = &p->plan->chunks[dts_plan_stage(p->plan, rank, v)];
        for (int64_t slot = 0; slot < chunk->layers; slot++) {
            add_layer(p, chunk, slot, &sum);
        }
        if (chunk->embedding) {
            add_end(p, DTS_PART_EMBEDDING, &sum);
        }
        if (chunk->head) {
            add_end(p, DTS_PART_HEAD, &sum);
        }
    }
    return sum;
}

static int by_value(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double upper_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

static dts_status measure(const profile *p, dts_arena *scratch, dts_schedule_shape *shape) {
    const size_t ranks = (size_t)p->plan->pipeline;
    double *times[KINDS];
    for (int kind = F; kind < KINDS; kind++) {
        times[kind] = dts_arena_array(scratch, ranks, sizeof *times[kind]);
        if (times[kind] == NULL) {
            return DTS_NOMEM;
        }
    }
    passes first = {0};
    for (size_t rank = 0; rank < ranks; rank++) {
        const passes own = of_rank(p, (int64_t)rank);
        for (int kind = F; kind < KINDS; kind++) {
            times[kind][rank] = own.time_s[kind];
        }
        first = rank == 0 ? own : first;
    }
    shape->forward = upper_median(times[F], ranks);
    shape->backward_input = upper_median(times[B], ranks);
    shape->backward_weight = upper_median(times[W], ranks);
    const double sent_B = p->costs.boundary_B;
    shape->latency = dts_lower_send_s(p->plan, sent_B);
    shape->input_frees = 1 - (first.weights_B + sent_B) / (first.left_B + sent_B); /* (1) */
    return DTS_OK;
}

dts_status dts_lower_profile(const dts_plan *plan, dts_schedule_shape *shape, dts_diag *diag) {
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_selections selections = {.modules = {plan->job.training->recompute.modules}, .count = 1};
    profile p = {.plan = plan};
    dts_status status = scratch == NULL ? dts_diag_nomem(diag)
                                        : dts_block_costs_of(plan, &selections, scratch, scratch, &p.costs, diag);
    if (status == DTS_OK && measure(&p, scratch, shape) != DTS_OK) {
        status = dts_diag_nomem(diag);
    }
    dts_arena_free(scratch);
    return status;
}

dts_status dts_lower_plan(const dts_job *job, dts_arena *arena, dts_plan *out, dts_diag *diag) {
    dts_schedule_shape times = {0};
    dts_status status = dts_plan_prepare(job, arena, out, diag);
    if (status != DTS_OK || !dts_plan_measures_passes(out, out->method)) {
        return status;
    }
    status = dts_lower_profile(out, &times, diag);
    return status == DTS_OK ? dts_plan_order(out, &times, arena, diag) : status;
}
