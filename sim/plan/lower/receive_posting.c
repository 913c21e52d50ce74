/* When a stage posts its receives, where transfers overlap.
 *
 * A receive of NCCL is a kernel that holds its multiprocessors from its launch until the data have come [1]. PyTorch
 * makes it wait for the passes that were issued before it [2]. Behind which one it is issued is the framework's choice:
 *
 *   schedules that split backward [3]   the order of passes and transfers comes from a plan with the times of passes.
 *       A receive stands where the plan has its send end; if a pass of the receiver is running then, before that pass.
 *       So it is issued behind the last pass that the plan ends before the send does
 *   others [4]                          behind the pass before it in the same direction: the transfers between two
 *       forward passes run beside the backward pass that lies between them
 *
 * The plan is that of the passes and transfers as the framework measures them (measured_passes.c).
 *
 * [1] NVIDIA/nccl, issue 689. [2] PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, pointToPoint.
 * [3] sail-sg/zero-bubble-pipeline-parallelism @6229e79, megatron/core/pipeline_parallel/auto_schedule.py, ilp_results.
 * [4] NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving
 *     with overlap_p2p_comm. */
#include "plan/lower/receive_posting.h"

#include <math.h>

#include "plan/lower/measured_passes.h"

struct dts_posted {
    const dts_plan *plan;
    size_t *first;   /* [rank] into the next two */
    double *planned; /* end of each operation, s */
    dts_id *done;    /* its last kernel */
    double *made;    /* [direction][virtual stage][microbatch][backward] planned end, s */
    int64_t microbatches;
};

static double *made_at(const dts_posted *p, int direction, int64_t stage, int64_t microbatch, bool backward) {
    return &p->made[((direction * p->plan->stages + stage) * p->microbatches + microbatch) * 2 + backward];
}

/* When the plan has what an operation consumes; infinite: not yet. */
static double ready_s(const dts_posted *p, const dts_schedule_shape *times, int direction, int64_t stage,
                      const dts_op *op) {
    const int64_t m = op->microbatch;
    const double c = times->latency;
    switch ((dts_op_kind)op->kind) {
        case DTS_OP_FORWARD:
            return stage == 0 ? 0 : *made_at(p, direction, stage - 1, m, false) + c;
        case DTS_OP_BACKWARD:
        case DTS_OP_BACKWARD_INPUT:
            return fmax(*made_at(p, direction, stage, m, false),
                        stage + 1 == p->plan->stages ? 0 : *made_at(p, direction, stage + 1, m, true) + c);
        case DTS_OP_BACKWARD_WEIGHT:
            break;
    }
    return *made_at(p, direction, stage, m, true);
}

/* Plans the next operation of a rank, if it can be. */
static bool plan_next(dts_posted *p, const dts_schedule_shape *times, int64_t rank, size_t next) {
    const dts_schedule *schedule = &p->plan->schedule;
    if (next == schedule->op_count[rank]) {
        return false;
    }
    const dts_op *op = &schedule->ops[rank][next];
    const int64_t stage = dts_plan_stage(p->plan, rank, op->chunk);
    const int direction = dts_plan_direction(p->plan, op->chunk);
    double *planned = &p->planned[p->first[rank]];
    const double start_s = fmax(next > 0 ? planned[next - 1] : 0, ready_s(p, times, direction, stage, op));
    if (isinf(start_s)) {
        return false;
    }
    planned[next] = start_s + dts_op_cost(schedule, op, times->forward, times->backward_input, times->backward_weight);
    if (op->kind != DTS_OP_BACKWARD_WEIGHT) {
        *made_at(p, direction, stage, op->microbatch, op->kind != DTS_OP_FORWARD) = planned[next];
    }
    return true;
}

dts_posted *dts_posted_new(const dts_builder *b) {
    const dts_plan *plan = b->plan;
    dts_posted *p = dts_arena_alloc(b->arena, sizeof *p);
    size_t *next = dts_arena_array(b->arena, (size_t)plan->pipeline, sizeof *next);
    size_t *first = dts_arena_array(b->arena, (size_t)plan->pipeline, sizeof *first);
    dts_schedule_shape times = {0};
    if (p == NULL || next == NULL || first == NULL || dts_lower_profile(plan, &times, b->diag) != DTS_OK) {
        return NULL;
    }
    size_t count = 0;
    for (int64_t rank = 0; rank < plan->pipeline; rank++) {
        first[rank] = count;
        next[rank] = 0;
        count += plan->schedule.op_count[rank];
    }
    *p = (dts_posted){.plan = plan, .first = first, .microbatches = plan->passes / plan->copies};
    const size_t passes = (size_t)(2 * plan->passes * plan->stages);
    p->planned = dts_arena_array(b->arena, count, sizeof *p->planned);
    p->done = dts_arena_array(b->arena, count, sizeof *p->done);
    p->made = dts_arena_array(b->arena, passes, sizeof *p->made);
    if (p->planned == NULL || p->done == NULL || p->made == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < passes; i++) {
        p->made[i] = INFINITY;
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int64_t rank = 0; rank < plan->pipeline; rank++) {
            for (; plan_next(p, &times, rank, next[rank]); moved = true) {
                next[rank]++;
            }
        }
    }
    return p;
}

void dts_posted_done(dts_posted *p, int64_t rank, size_t index, dts_id task) {
    p->done[p->first[rank] + index] = task;
}

dts_id dts_posted_behind(const dts_posted *p, int64_t rank, size_t index, const dts_op *op) {
    const dts_op *ops = p->plan->schedule.ops[rank];
    const double *planned = &p->planned[p->first[rank]];
    const bool backward = op->kind != DTS_OP_FORWARD;
    const int64_t stage = dts_plan_stage(p->plan, rank, op->chunk) + (backward ? 1 : -1);
    const double sent_s = *made_at(p, dts_plan_direction(p->plan, op->chunk), stage, op->microbatch, backward);
    const bool by_plan = p->plan->method != NULL && p->plan->method->splits_backward;
    while (index-- > 0) {
        const bool same = ops[index].kind != DTS_OP_BACKWARD_WEIGHT && backward == (ops[index].kind != DTS_OP_FORWARD);
        if (by_plan ? planned[index] < sent_s : same) {
            return p->done[p->first[rank] + index];
        }
    }
    return DTS_NO_ID;
}
