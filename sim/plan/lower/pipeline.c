/* The schedule's operations of all stages, in an order that respects the pipeline, with the transfers between stages.
 *
 * Every rank's operations are added in the rank's own order. Ranks take turns, one operation each, and an operation is
 * added only when what it consumes has been: that order is the clock of a single process that drives all stages (torch
 * Pipe), and any order would do for ranks with a host of their own.
 *
 * Transfers that do not overlap (Megatron-LM's batched isend and irecv, followed by a wait [1]) stand between two
 * operations of both neighbours: a transfer starts when the sender has made it and the receiver has finished the
 * operation before the one that consumes it (1F1B; in other schedules the receiver posts its receive in time), and the
 * sender's next operation waits until it has arrived. A rank sends and receives in one batch, so the transfers in both
 * directions between two operations run together.
 *
 * With scatter_gather every tensor-parallel rank sends its share of the boundary, and the receiving ranks gather it
 * over their tensor-parallel links before they use it [2].
 *
 * [1] NVIDIA/Megatron-LM megatron/p2p_communication.py (2021) and megatron/core/pipeline_parallel/p2p_communication.py.
 * [2] Narayanan et al. 2021, arXiv 2104.04473, section 4.1. */
#include <inttypes.h>
#include <string.h>

#include "plan/lower/builder.h"

/* What virtual stage s has produced for microbatch i. */
typedef struct produced {
    dts_id activation;         /* task after which the next stage can start its forward */
    dts_id gradient;           /* task after which the previous stage can start its backward */
    dts_id sent_up, sent_down; /* transfers that must not start before the receiver is there; DTS_NO_ID: none */
    bool forward, backward;
} produced;

typedef struct turns {
    dts_builder *b;
    dts_gradient_sync **syncs;
    produced *table;        /* [virtual stage][microbatch] */
    size_t *next;           /* [rank] index of its next operation */
    int64_t *forward_left;  /* [virtual stage] */
    int64_t *backward_left; /* [virtual stage] backward passes that will still make weight gradients */
    dts_id *finished;       /* [rank] last kernel of its latest operation */
    bool blocking, meets;   /* transfers hold the sender; and wait for the receiver */
    int64_t stages, microbatches;
} turns;

static produced *at(const turns *t, int64_t stage, int64_t microbatch) {
    return &t->table[stage * t->microbatches + microbatch];
}

/* Has everything that op of virtual stage s consumes been added? */
static bool is_ready(const turns *t, const dts_op *op, int64_t s) {
    switch ((dts_op_kind)op->kind) {
        case DTS_OP_FORWARD:
            return s == 0 || at(t, s - 1, op->microbatch)->forward;
        case DTS_OP_BACKWARD:
        case DTS_OP_BACKWARD_INPUT:
            return at(t, s, op->microbatch)->forward && (s == t->stages - 1 || at(t, s + 1, op->microbatch)->backward);
        case DTS_OP_BACKWARD_WEIGHT:
            return at(t, s, op->microbatch)->backward;
    }
    return false;
}

/* Does each tensor-parallel rank send a share? Sequence parallelism has split the boundary already. */
static bool shares_boundary(const dts_plan *plan) {
    return plan->job.stack->scatter_gather && plan->tensor > 1 && !plan->job.parallelism->sequence;
}

/* Bytes of the boundary that one rank sends. */
static double sent_B(const turns *t) {
    const dts_plan *plan = t->b->plan;
    double whole = dts_plan_boundary_B(plan);
    return shares_boundary(plan) ? whole / (double)plan->tensor : whole;
}

/* The transfer from virtual stage s to its neighbour, or the producing task itself when both live on one rank. *sent is
 * the transfer, if there is one. */
static dts_id hand_over(turns *t, int64_t s, int64_t to, dts_id made, const dts_op *op, dts_id *sent) {
    *sent = DTS_NO_ID;
    if (to < 0 || to >= t->stages) {
        return DTS_NO_ID;
    }
    dts_builder *b = t->b;
    int from_rank = dts_plan_owner(t->b->plan, s);
    int to_rank = dts_plan_owner(t->b->plan, to);
    if (from_rank == to_rank) {
        return made;
    }
    bool up = to > s;
    dts_task_info info = {.group = DTS_GROUP_PIPELINE,
                          .microbatch = (int32_t)op->microbatch,
                          .layer = -1,
                          .chunk = op->chunk,
                          .name = up ? "send activation" : "send gradient"};
    *sent = dts_build_send(b, &b->stages[from_rank], &b->stages[to_rank], up, sent_B(t), made, &info);
    return *sent;
}

/* The sender's next kernel waits until its transfer has arrived. */
static void hold_sender(turns *t, int64_t rank, dts_id sent) {
    dts_stage *stage = &t->b->stages[rank];
    t->finished[rank] = stage->last_kernel;
    if (t->blocking && sent != DTS_NO_ID) {
        dts_task_info info = {.role = DTS_ROLE_COMMUNICATION,
                              .group = DTS_GROUP_PIPELINE,
                              .collective = -1,
                              .microbatch = -1,
                              .layer = -1,
                              .device = stage->device,
                              .peer = stage->device,
                              .name = "wait for transfer"};
        dts_id wait = dts_build_task(t->b, stage->compute, 0, &info);
        dts_graph_depend(t->b->graph, wait, sent);
    }
}

/* What the operation of rank about to be added must wait for: the transfer that brings its input, gathered. */
static dts_id receive(turns *t, int64_t rank, dts_id arrives, dts_id sent, const dts_op *op) {
    dts_builder *b = t->b;
    if (sent == DTS_NO_ID) {
        return arrives;
    }
    if (t->meets) {
        dts_graph_depend(b->graph, sent, t->finished[rank]);
    }
    if (!shares_boundary(b->plan)) {
        return arrives;
    }
    dts_task_info info = {.microbatch = (int32_t)op->microbatch, .layer = -1, .chunk = op->chunk, .name = "gather"};
    return dts_build_collective(b, &b->stages[rank], DTS_GROUP_TENSOR, DTS_ALL_GATHER,
                                sent_B(t) * (double)b->plan->tensor, op->kind != DTS_OP_FORWARD, arrives, &info);
}

/* Kernels of the framework around every microbatch of a pipeline: scatter, gather, stream waits. */
static void add_chunk_overhead(turns *t, dts_stage *stage, const dts_op *op, bool backward) {
    if (t->b->plan->pipeline == 1) {
        return;
    }
    double bytes = 2 * dts_plan_boundary_B(t->b->plan);
    double duration = dts_gpu_memory_s(&t->b->plan->job.cluster->gpu, bytes);
    for (int64_t i = 0; i < t->b->plan->job.stack->pipeline_chunk_kernels; i++) {
        dts_task_info info = {.role = (uint8_t)(backward ? DTS_ROLE_BACKWARD : DTS_ROLE_FORWARD),
                              .microbatch = (int32_t)op->microbatch,
                              .layer = -1,
                              .chunk = op->chunk,
                              .name = "pipeline_copy"};
        dts_build_kernel(t->b, stage, duration, backward, DTS_NO_ID, &info);
    }
}

/* torch Pipe returns the outputs of all microbatches as one tensor on the last stage: every output is kept until the
 * last is there, then all are copied together; the copy lives as long as the loss needs it. */
static double head_output_B(const dts_builder *b) {
    return b->work[DTS_PART_HEAD].operators.items[dts_head_outputs(b) - 1].output_B;
}

static void gather_outputs(turns *t, dts_stage *stage, dts_id made, bool last) {
    dts_builder *b = t->b;
    double one_B = head_output_B(b);
    dts_build_memory(b, made, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY, one_B);
    if (last) {
        double all_B = one_B * (double)t->microbatches;
        dts_task_info info = {.role = DTS_ROLE_FORWARD, .microbatch = -1, .layer = -1, .name = "gather_outputs"};
        dts_id copy = dts_build_kernel(b, stage, dts_gpu_memory_s(&b->plan->job.cluster->gpu, 2 * all_B), false,
                                       DTS_NO_ID, &info);
        dts_build_memory(b, copy, DTS_AT_START, stage, DTS_MEMORY_TEMPORARY, all_B);
        dts_build_memory(b, copy, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY, -all_B);
    }
}

static bool gathers_outputs(const turns *t, int64_t s) {
    return t->b->plan->job.stack->pipeline_single_process && t->b->plan->pipeline > 1 && t->b->plan->chunks[s].head;
}

static void add_operation(turns *t, int64_t rank, const dts_op *op, int64_t s) {
    dts_builder *b = t->b;
    dts_stage *stage = &b->stages[rank];
    bool weights = op->kind == DTS_OP_BACKWARD || op->kind == DTS_OP_BACKWARD_WEIGHT;
    bool first = weights && t->backward_left[s] == t->microbatches;
    t->backward_left[s] -= weights;
    dts_pass pass = {.stage = stage,
                     .chunk = &b->plan->chunks[s],
                     .sync = t->syncs[rank],
                     .microbatch = op->microbatch,
                     .chunk_index = op->chunk,
                     .first_microbatch = first,
                     .last_microbatch = weights && t->backward_left[s] == 0,
                     .input = DTS_NO_ID};
    produced *here = at(t, s, op->microbatch);
    add_chunk_overhead(t, stage, op, op->kind != DTS_OP_FORWARD);
    if (op->kind == DTS_OP_FORWARD) {
        if (s > 0) {
            const produced *before = at(t, s - 1, op->microbatch);
            pass.input = receive(t, rank, before->activation, before->sent_up, op);
        }
        dts_id made = dts_build_forward(b, &pass);
        here->activation = hand_over(t, s, s + 1, made, op, &here->sent_up);
        hold_sender(t, rank, here->sent_up);
        here->forward = true;
        t->forward_left[s]--;
        if (gathers_outputs(t, s)) {
            gather_outputs(t, stage, made, t->forward_left[s] == 0);
        }
        return;
    }
    bool sends = op->kind != DTS_OP_BACKWARD_WEIGHT;
    if (sends && s < t->stages - 1) {
        const produced *behind = at(t, s + 1, op->microbatch);
        pass.input = receive(t, rank, behind->gradient, behind->sent_down, op);
    }
    dts_id made = dts_build_backward(b, &pass, (dts_op_kind)op->kind);
    if (gathers_outputs(t, s) && pass.last_microbatch) {
        dts_build_memory(b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY,
                         -head_output_B(b) * (double)t->microbatches);
    }
    if (sends) {
        here->gradient = hand_over(t, s, s - 1, made, op, &here->sent_down);
        here->backward = true;
    }
    hold_sender(t, rank, sends ? here->sent_down : DTS_NO_ID);
}

static dts_status turns_new(turns *t) {
    const dts_plan *plan = t->b->plan;
    size_t cells = (size_t)(t->stages * t->microbatches);
    t->table = dts_arena_array(t->b->arena, cells, sizeof *t->table);
    t->next = dts_arena_array(t->b->arena, (size_t)plan->pipeline, sizeof *t->next);
    t->backward_left = dts_arena_array(t->b->arena, (size_t)t->stages, sizeof *t->backward_left);
    t->forward_left = dts_arena_array(t->b->arena, (size_t)t->stages, sizeof *t->forward_left);
    t->finished = dts_arena_array(t->b->arena, (size_t)plan->pipeline, sizeof *t->finished);
    if (t->table == NULL || t->next == NULL || t->finished == NULL || t->forward_left == NULL ||
        t->backward_left == NULL) {
        return dts_diag_nomem(t->b->diag);
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        t->finished[p] = DTS_NO_ID;
    }
    t->blocking = !plan->job.stack->p2p_overlap;
    t->meets = t->blocking && strcmp(plan->method->name, "1f1b") == 0;
    for (int64_t s = 0; s < t->stages; s++) {
        t->forward_left[s] = t->microbatches;
        t->backward_left[s] = t->microbatches;
    }
    return DTS_OK;
}

dts_status dts_build_pipeline(dts_builder *b, dts_gradient_sync **syncs) {
    const dts_plan *plan = b->plan;
    const dts_schedule *schedule = &plan->schedule;
    turns t = {
        .b = b, .syncs = syncs, .stages = plan->pipeline * plan->virtual_stages, .microbatches = plan->microbatches};
    dts_status status = turns_new(&t);
    bool moved = true;
    while (status == DTS_OK && moved) {
        moved = false;
        for (int64_t rank = 0; rank < plan->pipeline; rank++) {
            if (t.next[rank] == schedule->op_count[rank]) {
                continue;
            }
            const dts_op *op = &schedule->ops[rank][t.next[rank]];
            int64_t s = dts_virtual_stage(schedule->layout, (int)plan->pipeline, (int)rank, op->chunk);
            if (is_ready(&t, op, s)) {
                add_operation(&t, rank, op, s);
                t.next[rank]++;
                moved = true;
            }
        }
    }
    for (int64_t rank = 0; status == DTS_OK && rank < plan->pipeline; rank++) {
        if (t.next[rank] != schedule->op_count[rank]) {
            const dts_op *op = &schedule->ops[rank][t.next[rank]];
            status = dts_diag_error(b->diag, NULL, "parallelism.schedule", "choose another schedule",
                                    "schedule %s deadlocks: stage %" PRId64 " waits for microbatch %" PRIu32,
                                    schedule->name, rank, op->microbatch);
        }
    }
    return status;
}
