/* The schedule's operations of all stages, in an order that respects the pipeline, with the transfers between stages.
 * With two directions every rank holds two stages, one of each pipeline.
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
 * [2] Narayanan et al. 2021, arXiv 2104.04473, section 4.1.
 * [3] sail-sg/zero-bubble-pipeline-parallelism @47c2c7a, megatron/core/weight_grad_store.py, clear. */
#include <inttypes.h>
#include <string.h>

#include "plan/lower/data_parallel.h"
#include "plan/lower/receive_posting.h"

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
    produced *table;        /* [direction][virtual stage][microbatch] */
    size_t *next;           /* [rank] index of its next operation */
    int64_t *forward_left;  /* [direction][virtual stage] */
    int64_t *backward_left; /* [direction][virtual stage] backward passes that will still make weight gradients */
    dts_id *finished;       /* [rank] last kernel of its latest operation */
    int64_t sms;            /* multiprocessors that a transfer holds on either side */
    dts_posted *posted;     /* with those: when receives are posted; else NULL */
    bool blocking, meets;   /* transfers hold the sender; and wait for the receiver */
    bool overlaps;          /* the parts of a block are issued in turns */
    bool shares;            /* each tensor-parallel rank sends a share of the boundary */
    double sent_B;          /* of the boundary, by one rank */
    dts_time gather;        /* of all shares, with idle links */
    double copy_s;          /* a kernel of the framework around a microbatch */
    dts_time copies;        /* all of them */
    size_t *heads_first;    /* [rank] of dts_build_heads_first; NULL: without post-validation */
    int64_t stages;
    int64_t microbatches; /* of each direction */
    int64_t flush;        /* of these, in one flush */
} turns;

/* An operation of a rank with where it belongs, while it is added. */
typedef struct step {
    const dts_op *op;
    int64_t rank, stage; /* stage: virtual */
    int direction;
    dts_pass pass;
    dts_id made;     /* task after which its output exists */
    bool ends_flush; /* the last of its stage's in a flush that makes weight gradients */
} step;

static int64_t place(const turns *t, int direction, int64_t stage) {
    return direction * t->stages + stage;
}

static produced *at(const turns *t, int direction, int64_t stage, int64_t microbatch) {
    return &t->table[place(t, direction, stage) * t->microbatches + microbatch];
}

/* What it consumes follows from this; the pass is set up when that is there. */
static void step_set(const turns *t, int64_t rank, const dts_op *op, step *out) {
    const dts_plan *plan = t->b->plan;
    out->op = op;
    out->rank = rank;
    out->stage = dts_plan_stage(plan, rank, op->chunk);
    out->direction = dts_plan_direction(plan, op->chunk);
    out->made = DTS_NO_ID;
}

/* Has everything that an operation consumes been added? */
static bool is_ready(const turns *t, const step *x) {
    int64_t s = x->stage;
    int64_t m = x->op->microbatch;
    switch ((dts_op_kind)x->op->kind) {
        case DTS_OP_FORWARD:
            return s == 0 || at(t, x->direction, s - 1, m)->forward;
        case DTS_OP_BACKWARD:
        case DTS_OP_BACKWARD_INPUT:
            return at(t, x->direction, s, m)->forward &&
                   (s == t->stages - 1 || at(t, x->direction, s + 1, m)->backward);
        case DTS_OP_BACKWARD_WEIGHT:
            return at(t, x->direction, s, m)->backward;
    }
    return false;
}

/* Does each tensor-parallel rank send a share? Sequence parallelism has split the boundary already. */
static bool shares_boundary(const dts_plan *plan) {
    return plan->job.stack->scatter_gather && plan->tensor > 1 && !plan->job.parallelism->sequence;
}

/* Does the operation hand something to a neighbour? */
static bool sends(const step *x) {
    return x->op->kind != DTS_OP_BACKWARD_WEIGHT;
}

/* Where x's output goes to. */
typedef struct target {
    int64_t stage; /* virtual; out of range: nowhere */
    int rank;
    bool forward, up;
} target;

static target target_of(const turns *t, const step *x) {
    target to = {.forward = x->op->kind == DTS_OP_FORWARD};
    to.stage = to.forward ? x->stage + 1 : x->stage - 1;
    if (to.stage >= 0 && to.stage < t->stages) {
        to.rank = dts_plan_owner_of(t->b->plan, to.stage, x->direction);
        to.up = t->b->plan->copies > 1 ? to.rank > x->rank : to.forward;
    }
    return to;
}

/* The transfer of what x has made to the next stage, or the producing task itself when both live on one rank. *sent is
 * the transfer, if there is one: issued when the pass has returned, it waits for all kernels of that. Both directions
 * of a pair of ranks have a link stream each. */
static dts_id hand_over(turns *t, const step *x, dts_id *sent) {
    dts_builder *b = t->b;
    dts_stage *from = &b->stages[x->rank];
    const target to = target_of(t, x);
    *sent = from->carried;
    from->carried = DTS_NO_ID;
    if (*sent != DTS_NO_ID) {
        return *sent;
    }
    if (to.stage < 0 || to.stage >= t->stages) {
        return DTS_NO_ID;
    }
    if (x->rank == to.rank) {
        return x->made;
    }
    dts_task_info info = {.group = DTS_GROUP_PIPELINE,
                          .microbatch = (int32_t)x->pass.microbatch,
                          .layer = -1,
                          .chunk = x->op->chunk,
                          .name = to.forward ? "send activation" : "send gradient"};
    const dts_stage *receiver = &b->stages[to.rank];
    *sent = t->blocking ? dts_build_send(b, from, receiver, to.up, b->brief, t->sent_B, x->made, &info)
                        : dts_build_post(b, from, receiver, to.up, t->sent_B, x->made, &info);
    if (from->last_kernel != x->made) {
        dts_graph_depend(b->graph, *sent, from->last_kernel);
    }
    if (t->posted != NULL) {
        dts_graph_hold(b->graph, from->multiprocessors, (double)t->sms, DTS_NO_ID, *sent);
    }
    return t->blocking ? *sent : dts_build_arrival(b, from, receiver, *sent, &info);
}

/* Brief: a transfer that holds its sender and needs not wait for the receiver goes on where the pass ends. */
static dts_link *link_of(turns *t, const step *x) {
    dts_builder *b = t->b;
    const target to = target_of(t, x);
    if (!b->brief || !t->blocking || t->meets || !sends(x) || to.stage < 0 || to.stage >= t->stages ||
        to.rank == x->rank) {
        return NULL;
    }
    return dts_build_link(b, &b->stages[x->rank], &b->stages[to.rank], to.up, t->sent_B);
}

/* The sender's next kernel waits until its transfer has arrived; a brief one occupies its compute stream. */
static void hold_sender(turns *t, int64_t rank, dts_id sent) {
    dts_stage *stage = &t->b->stages[rank];
    t->finished[rank] = stage->last_kernel;
    if (t->blocking && !t->b->brief && sent != DTS_NO_ID) {
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

/* The host issues nothing more until `after` and all kernels of its stage are done. */
static void hold_host(dts_builder *b, dts_stage *stage, bool backward, dts_id after, const char *name) {
    dts_id wait = dts_build_host(b, stage, 0, backward, after, name);
    if (after != stage->last_kernel) {
        dts_graph_depend(b->graph, wait, stage->last_kernel);
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
    if (t->posted != NULL) {
        const dts_id posted = dts_posted_behind(t->posted, rank, t->next[rank], op);
        dts_graph_hold(b->graph, b->stages[rank].multiprocessors, (double)t->sms, posted, sent);
    }
    if (b->plan->job.stack->pipeline_host_waits && t->blocking) {
        bool later = dts_brief_waits_later(b); /* the block decides whether it takes a task */
        b->stages[rank].awaited = later ? arrives : DTS_NO_ID;
        if (!later) {
            hold_host(b, &b->stages[rank], op->kind != DTS_OP_FORWARD, arrives, "wait for transfer");
        }
    }
    if (t->shares && dts_brief_gathers_inside(b)) {
        dts_brief_gather(b, &b->stages[rank], t->gather);
    } else if (t->shares) {
        dts_task_info info = {.microbatch = (int32_t)op->microbatch, .layer = -1, .chunk = op->chunk, .name = "gather"};
        arrives = dts_build_collective(b, &b->stages[rank], DTS_GROUP_TENSOR, DTS_ALL_GATHER,
                                       t->sent_B * (double)b->plan->tensor, op->kind != DTS_OP_FORWARD, arrives, &info);
    }
    return arrives;
}

/* Kernels of the framework around every microbatch of a pipeline: scatter, gather, stream waits. */
static void add_chunk_overhead(turns *t, dts_stage *stage, const dts_op *op, bool backward) {
    if (t->b->plan->pipeline == 1) {
        return;
    }
    const double duration = t->copy_s;
    const dts_stack *stack = t->b->plan->job.stack;
    dts_task_info info = {.role = (uint8_t)(backward ? DTS_ROLE_BACKWARD : DTS_ROLE_FORWARD),
                          .microbatch = (int32_t)op->microbatch,
                          .layer = -1,
                          .chunk = op->chunk,
                          .name = "pipeline_copy"};
    const double launch_s = backward ? stack->backward_launch_s : stack->launch_s;
    if (dts_brief_joins(t->b, stage, stack->pipeline_chunk_kernels, t->copies, launch_s)) {
        return;
    }
    if (dts_block_kernels(t->b, stage, stack->pipeline_chunk_kernels, duration, launch_s, &info)) {
        return;
    }
    for (int64_t i = 0; i < stack->pipeline_chunk_kernels; i++) {
        dts_build_kernel(t->b, stage, duration, backward, DTS_NO_ID, &info);
    }
}

/* torch Pipe returns the outputs of all microbatches as one tensor on the last stage: every output is kept until the
 * last is there, then all are copied together; the copy lives as long as the loss needs it. The thread that works for
 * the stage holds on to the last output until its next task
 * [PyTorch, torch/distributed/pipeline/sync/worker.py]. */
static void gather_outputs(turns *t, dts_stage *stage, dts_id made, bool last) {
    dts_builder *b = t->b;
    dts_build_memory(b, made, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY, dts_head_output_B(b));
    if (last) {
        const dts_id copy = dts_build_joined_outputs(b, stage, t->flush);
        dts_build_memory(b, copy, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY, dts_head_output_B(b));
    }
}

/* Behind the loss: what is gathered, and the last output, are not needed any more. */
static void drop_outputs(turns *t, dts_stage *stage) {
    dts_build_memory(t->b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY,
                     -dts_head_output_B(t->b) * (double)t->flush);
    dts_build_memory(t->b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY, -dts_head_output_B(t->b));
}

static bool gathers_outputs(const turns *t, int64_t s) {
    return t->b->plan->job.stack->pipeline_single_process && t->b->plan->pipeline > 1 && t->b->plan->chunks[s].head;
}

static bool makes_weights(const step *x) {
    return x->op->kind == DTS_OP_BACKWARD || x->op->kind == DTS_OP_BACKWARD_WEIGHT;
}

/* With left weight gradients of its stage to come, this one's among them: which of those that autograd sums it is. */
static uint8_t summed(const turns *t, int64_t left) {
    const dts_plan *plan = t->b->plan;
    if (!plan->job.stack->pipeline_single_process || plan->pipeline == 1 || t->flush == 1 ||
        dts_plan_asynchronous(plan)) {
        return 0;
    }
    const int bits = DTS_SUMMED | (left % t->flush == 0 ? DTS_SUMMED_FIRST : 0) |
                     ((left - 1) % t->flush == 0 ? DTS_SUMMED_LAST : 0) |
                     (left <= t->microbatches - t->flush ? DTS_SUMMED_AGAIN : 0);
    return (uint8_t)bits;
}

/* Sets up the pass with its input; an asynchronous schedule updates after every microbatch, so that each is the first
 * and the last. */
static void begin_step(turns *t, step *x) {
    dts_builder *b = t->b;
    const dts_plan *plan = b->plan;
    int64_t *left = &t->backward_left[place(t, x->direction, x->stage)];
    bool alone = dts_plan_asynchronous(plan);
    bool first = makes_weights(x) && (alone || *left == t->microbatches);
    const uint8_t sums = makes_weights(x) ? summed(t, *left) : 0;
    *left -= makes_weights(x);
    x->ends_flush = makes_weights(x) && *left % t->flush == 0;
    x->pass = (dts_pass){.stage = &b->stages[x->rank],
                         .chunk = &plan->chunks[x->stage],
                         .sync = t->syncs[x->rank * plan->copies + x->direction],
                         .microbatch = x->direction * t->microbatches + x->op->microbatch,
                         .chunk_index = x->op->chunk,
                         .summed = sums,
                         .first_microbatch = first,
                         .last_microbatch = makes_weights(x) && (alone || *left == 0 ||
                                                                 (x->ends_flush && dts_plan_reduces_each_flush(plan))),
                         .outputs_only = dts_plan_infers(plan),
                         .input = DTS_NO_ID};
    add_chunk_overhead(t, x->pass.stage, x->op, x->op->kind != DTS_OP_FORWARD);
    if (x->op->kind == DTS_OP_FORWARD) {
        dts_stash_use(b, x->pass.stage, x->pass.microbatch);
        if (x->stage > 0) {
            const produced *before = at(t, x->direction, x->stage - 1, x->op->microbatch);
            x->pass.input = receive(t, x->rank, before->activation, before->sent_up, x->op);
        } else {
            if (b->plan->job.stack->batch_waits) {
                hold_host(b, x->pass.stage, false, x->pass.stage->last_kernel, "wait for batch");
            }
            x->pass.input = dts_input_take(b, x->pass.stage, x->op->microbatch);
        }
    } else if (sends(x) && x->stage < t->stages - 1) {
        const produced *behind = at(t, x->direction, x->stage + 1, x->op->microbatch);
        x->pass.input = receive(t, x->rank, behind->gradient, behind->sent_down, x->op);
    }
}

/* Nothing comes back: outputs that were gathered, and the batch, are not needed any more. */
static void finish_inference(turns *t, const step *x, bool last) {
    dts_stage *stage = x->pass.stage;
    if (gathers_outputs(t, x->stage) && last) {
        drop_outputs(t, stage);
    }
    if (x->stage == 0) {
        dts_input_leave(t->b, stage, x->op->microbatch, x->made);
    }
}

static void finish_forward(turns *t, step *x) {
    produced *here = at(t, x->direction, x->stage, x->op->microbatch);
    here->activation = hand_over(t, x, &here->sent_up);
    hold_sender(t, x->rank, here->sent_up);
    here->forward = true;
    int64_t left = --t->forward_left[place(t, x->direction, x->stage)];
    if (gathers_outputs(t, x->stage)) {
        gather_outputs(t, x->pass.stage, x->made, left % t->flush == 0);
    }
    dts_keep_output(t->b, x->pass.stage, x->stage);
    if (dts_plan_infers(t->b->plan)) {
        finish_inference(t, x, left % t->flush == 0);
    }
}

static void finish_backward(turns *t, step *x) {
    produced *here = at(t, x->direction, x->stage, x->op->microbatch);
    if (gathers_outputs(t, x->stage) && x->ends_flush) {
        drop_outputs(t, x->pass.stage);
    }
    if (sends(x)) {
        here->gradient = hand_over(t, x, &here->sent_down);
        here->backward = true;
        dts_keep_gradient(t->b, x->pass.stage, x->stage);
    }
    if (x->ends_flush) {
        dts_sync_end_flush(x->pass.sync);
        dts_drop_kept(t->b, x->pass.stage, x->stage, t->flush);
    }
    hold_sender(t, x->rank, sends(x) ? here->sent_down : DTS_NO_ID);
    if (makes_weights(x) && x->stage == 0) {
        dts_input_leave(t->b, x->pass.stage, x->op->microbatch, x->pass.stage->last_kernel);
    }
    if (makes_weights(x)) {
        dts_build_microbatch_clip(t->b, x->pass.stage);
        dts_stash_update(t->b, x->pass.stage, x->pass.sync, x->pass.microbatch);
    }
}

/* Does the rank's operation at index make weight gradients of the head? */
static bool makes_head(const turns *t, int64_t rank, size_t index) {
    const dts_plan *plan = t->b->plan;
    return plan->chunks[dts_plan_stage(plan, rank, plan->schedule.ops[rank][index].chunk)].head;
}

/* Where only weight gradients are left, those of a tied projection go first, of all microbatches, so that the other end
 * of the pipeline need not wait for the rest [3]. */
static void hurry_heads(turns *t, step *x) {
    const dts_schedule *schedule = &t->b->plan->schedule;
    if (t->heads_first == NULL || t->next[x->rank] < t->heads_first[x->rank] ||
        !makes_head(t, x->rank, t->next[x->rank])) {
        return;
    }
    x->pass.without_head = true;
    dts_stage *stage = x->pass.stage;
    if (stage->tied_made != DTS_NO_ID) {
        return;
    }
    int64_t left = t->backward_left[place(t, x->direction, x->stage)] + 1;
    for (size_t i = t->next[x->rank]; i < schedule->op_count[x->rank]; i++) {
        dts_pass pass = x->pass;
        pass.microbatch = schedule->ops[x->rank][i].microbatch;
        pass.last_microbatch = i + 1 == schedule->op_count[x->rank];
        if (makes_head(t, x->rank, i)) {
            pass.summed = summed(t, left--);
            dts_build_head_weights(t->b, &pass);
        }
    }
    stage->tied_made = stage->last_kernel;
}

static void add_pass(turns *t, step *x) {
    dts_builder *b = t->b;
    hurry_heads(t, x);
    x->made = x->op->kind == DTS_OP_FORWARD ? dts_build_forward(b, &x->pass)
                                            : dts_build_backward(b, &x->pass, (dts_op_kind)x->op->kind);
}

/* A block takes the inputs of all its parts before it begins and hands on all outputs at its end. */
static void add_block(turns *t, step *steps, size_t count) {
    dts_builder *b = t->b;
    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        begin_step(t, &steps[i]);
    }
    dts_overlap_begin(b);
    size_t first = b->info_count;
    size_t middle = first;
    steps[0].pass.sends = count == 1 ? link_of(t, &steps[0]) : NULL;
    b->in_turns = count == 2 && t->overlaps;
    steps[0].pass.stage->contended |= b->in_turns && b->plan->job.stack->experts_sms > 0;
    for (size_t i = 0; i < count; i++) {
        middle = i == 1 ? b->info_count : middle;
        add_pass(t, &steps[i]);
    }
    if (b->in_turns) {
        dts_build_overlap(b, steps[0].pass.stage, first, middle, b->info_count);
    }
    b->in_turns = false;
    dts_id last = steps[0].pass.stage->last_kernel;
    for (size_t i = 0; i < count; i++) {
        if (t->posted != NULL) {
            dts_posted_done(t->posted, steps[i].rank, t->next[steps[i].rank] + i, last);
        }
        steps[i].made = count > 1 ? last : steps[i].made;
        if (steps[i].op->kind == DTS_OP_FORWARD) {
            finish_forward(t, &steps[i]);
        } else {
            finish_backward(t, &steps[i]);
        }
    }
}

/* What a boundary is for its sender, and for its receiver. */
static void look_at_boundary(turns *t) {
    const dts_plan *plan = t->b->plan;
    t->shares = shares_boundary(plan);
    t->sent_B = t->shares ? t->b->boundary_B / (double)plan->tensor : t->b->boundary_B;
    dts_transfer gather = {0};
    if (t->shares) {
        dts_lower_transfer(plan, 0, DTS_GROUP_TENSOR, DTS_ALL_GATHER, t->sent_B * (double)plan->tensor, &gather);
    }
    t->gather = dts_time_from_s(gather.alone_s);
}

static dts_status turns_new(turns *t) {
    const dts_plan *plan = t->b->plan;
    size_t rows = (size_t)(plan->copies * t->stages);
    size_t cells = rows * (size_t)t->microbatches;
    t->table = dts_arena_array(t->b->arena, cells, sizeof *t->table);
    t->next = dts_arena_array(t->b->arena, (size_t)plan->pipeline, sizeof *t->next);
    t->backward_left = dts_arena_array(t->b->arena, rows, sizeof *t->backward_left);
    t->forward_left = dts_arena_array(t->b->arena, rows, sizeof *t->forward_left);
    t->finished = dts_arena_array(t->b->arena, (size_t)plan->pipeline, sizeof *t->finished);
    if (t->table == NULL || t->next == NULL || t->finished == NULL || t->forward_left == NULL ||
        t->backward_left == NULL) {
        return dts_diag_nomem(t->b->diag);
    }
    t->sms = t->b->stages[0].multiprocessors != DTS_NO_ID && t->b->detail == DTS_DETAIL_KERNEL ? dts_p2p_sms(plan) : 0;
    t->posted = t->sms > 0 ? dts_posted_new(t->b) : NULL;
    if (t->sms > 0 && t->posted == NULL) {
        return dts_diag_nomem(t->b->diag);
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        t->b->stages[p].carried = DTS_NO_ID;
        t->finished[p] = DTS_NO_ID;
        t->b->stages[p].contended |= t->sms > 0;
    }
    if (dts_plan_post_validates(plan)) {
        t->heads_first = dts_arena_array(t->b->arena, (size_t)plan->pipeline, sizeof *t->heads_first);
        if (t->heads_first == NULL) {
            return dts_diag_nomem(t->b->diag);
        }
        for (int64_t p = 0; p < plan->pipeline; p++) {
            t->heads_first[p] = dts_build_heads_first(plan, p);
        }
    }
    t->blocking = !dts_plan_overlaps_p2p(plan, plan->method);
    t->meets = t->blocking && strcmp(plan->schedule.name, "1f1b") == 0;
    t->overlaps = dts_build_may_overlap(t->b);
    look_at_boundary(t);
    t->copy_s = dts_gpu_memory_s(&plan->job.cluster->gpu, 2 * t->b->boundary_B);
    t->copies = plan->job.stack->pipeline_chunk_kernels * dts_time_from_s(t->copy_s);
    for (size_t row = 0; row < rows; row++) {
        t->forward_left[row] = t->microbatches;
        t->backward_left[row] = t->microbatches;
    }
    return DTS_OK;
}

/* Parts of a block; the schedules' blocks have two. */
enum { MOST_PARTS = 4 };

/* Adds the rank's next operation or block if all it consumes is there. */
static bool advance(turns *t, int64_t rank) {
    const dts_schedule *schedule = &t->b->plan->schedule;
    size_t next = t->next[rank];
    if (next == schedule->op_count[rank]) {
        return false;
    }
    step steps[MOST_PARTS];
    size_t count = dts_schedule_block_size(schedule, (int)rank, next);
    count = count < MOST_PARTS ? count : MOST_PARTS;
    for (size_t i = 0; i < count; i++) {
        step_set(t, rank, &schedule->ops[rank][next + i], &steps[i]);
        if (!is_ready(t, &steps[i])) {
            return false;
        }
    }
    add_block(t, steps, count);
    t->next[rank] += count;
    return true;
}

dts_status dts_build_pipeline(dts_builder *b, dts_gradient_sync **syncs) {
    const dts_plan *plan = b->plan;
    const dts_schedule *schedule = &plan->schedule;
    turns t = {.b = b, .syncs = syncs, .stages = plan->stages, .microbatches = plan->passes / plan->copies};
    t.flush = t.microbatches / plan->flushes;
    dts_status status = turns_new(&t);
    bool moved = true;
    for (int64_t rank = 0; rank < plan->pipeline; rank++) {
        dts_build_capture(b, &b->stages[rank], DTS_GRAPHS_ITERATION, true);
    }
    while (status == DTS_OK && moved) {
        moved = false;
        for (int64_t rank = 0; rank < plan->pipeline; rank++) {
            moved |= advance(&t, rank);
        }
        if (b->stop != NULL && atomic_load_explicit(b->stop, memory_order_relaxed)) {
            return DTS_INTERRUPTED;
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
    for (int64_t rank = 0; rank < plan->pipeline; rank++) {
        dts_build_capture(b, &b->stages[rank], DTS_GRAPHS_ITERATION, false);
    }
    return status;
}
