/* Walks through an order.
 *
 * Which operations wait for which is a matter of the order, and not of how long they take: steps lists them once so
 * that each stands behind all that it waits for, and a walk is one loop over that list. */
#include "search/pace_walk.h"

enum { F = DTS_PACE_F, B = DTS_PACE_B, W = DTS_PACE_W, PARTS = DTS_PACE_PARTS, KINDS = 4 };

static const int parts_of[KINDS][2] = {[DTS_OP_FORWARD] = {F, F},
                                       [DTS_OP_BACKWARD_INPUT] = {B, B},
                                       [DTS_OP_BACKWARD_WEIGHT] = {W, W},
                                       [DTS_OP_BACKWARD] = {B, W}};

/* What an operation can do ahead of its input; PARTS: nothing. */
static const int first_of[KINDS] = {[DTS_OP_FORWARD] = DTS_PACE_FIRST_F,
                                    [DTS_OP_BACKWARD_INPUT] = DTS_PACE_FIRST_B,
                                    [DTS_OP_BACKWARD_WEIGHT] = PARTS,
                                    [DTS_OP_BACKWARD] = DTS_PACE_FIRST_B};

/* ---- steps --------------------------------------------------------------------------------------------------------
 */

typedef struct listing {
    const dts_schedule *order;
    int virtual_stages;
    uint32_t *forward, *backward; /* [virtual stage][microbatch] their steps; 0: not yet */
    size_t *next;                 /* [rank] */
    dts_pace_steps *out;
} listing;

static uint32_t *step_of(const listing *l, uint32_t *all, int stage, uint32_t microbatch) {
    return &all[(size_t)stage * (size_t)l->order->shape.microbatches + microbatch];
}

/* What an operation reads; NULL: nothing. *owner: its rank. */
static const uint32_t *input_of(const listing *l, int stage, const dts_op *op, int *owner) {
    const dts_schedule *o = l->order;
    const bool forward = op->kind == DTS_OP_FORWARD;
    const int before = forward ? stage - 1 : stage + 1;
    int chunk = 0;
    if (op->kind == DTS_OP_BACKWARD_WEIGHT || before < 0) {
        return NULL;
    }
    if (before >= l->virtual_stages) {
        return step_of(l, l->forward, stage, op->microbatch);
    }
    dts_virtual_stage_owner(o->layout, o->shape.stages, before, 0, owner, &chunk);
    return step_of(l, forward ? l->forward : l->backward, before, op->microbatch);
}

/* As many operations of a rank as have their inputs. */
static bool advance(listing *l, int rank) {
    const dts_schedule *o = l->order;
    const size_t from = l->next[rank];
    size_t i = from;
    for (; i < o->op_count[rank]; i++) {
        const dts_op *op = &o->ops[rank][i];
        const int stage = dts_virtual_stage(o->layout, o->shape.stages, rank, op->chunk);
        int owner = rank;
        const uint32_t *input = input_of(l, stage, op, &owner);
        if (input != NULL && *input == 0) {
            break;
        }
        const uint32_t step = ++l->out->count;
        l->out->items[step] = (dts_pace_step){.input = input == NULL ? 0 : *input,
                                              .before = l->out->last[rank],
                                              .rank = (uint16_t)rank,
                                              .kind = op->kind,
                                              .hops = owner != rank};
        l->out->last[rank] = step;
        if (op->kind != DTS_OP_BACKWARD_WEIGHT) {
            *step_of(l, op->kind == DTS_OP_FORWARD ? l->forward : l->backward, stage, op->microbatch) = step;
        }
    }
    l->next[rank] = i;
    return i > from;
}

bool dts_pace_steps_make(const dts_schedule *order, dts_arena *arena, dts_arena *scratch, dts_pace_steps *out) {
    const size_t stages = (size_t)order->shape.stages;
    listing l = {.order = order, .out = out};
    l.virtual_stages = dts_virtual_stage_count(order->layout, order->shape.stages, order->shape.chunks);
    const size_t passes = (size_t)l.virtual_stages * (size_t)order->shape.microbatches;
    size_t count = 0;
    for (size_t rank = 0; rank < stages; rank++) {
        count += order->op_count[rank];
    }
    *out = (dts_pace_steps){.stages = order->shape.stages, .chunks = order->shape.chunks};
    out->items = dts_arena_array(arena, count + 1, sizeof *out->items);
    out->last = dts_arena_array(arena, stages, sizeof *out->last);
    l.forward = dts_arena_array(scratch, passes, sizeof *l.forward);
    l.backward = dts_arena_array(scratch, passes, sizeof *l.backward);
    l.next = dts_arena_array(scratch, stages, sizeof *l.next);
    const bool there =
        out->items != NULL && out->last != NULL && l.forward != NULL && l.backward != NULL && l.next != NULL;
    for (bool moved = there; moved;) { /* there and back, as activations and gradients go */
        moved = false;
        for (int rank = 0; rank < order->shape.stages; rank++) {
            moved |= advance(&l, rank);
        }
        for (int rank = order->shape.stages; rank-- > 0;) {
            moved |= advance(&l, rank);
        }
    }
    return there && out->count == count;
}

/* ---- one walk -----------------------------------------------------------------------------------------------------
 */

typedef struct timing {
    double takes, ahead; /* of its input */
} timing;

typedef struct walk {
    const dts_pace_steps *steps;
    const int *class_of;
    double hop;
    timing timings[DTS_PACE_CLASSES][KINDS];
    double *end; /* [step] */
} walk;

static const timing *timing_of(const walk *w, const dts_pace_step *s) {
    return &w->timings[w->class_of[s->rank]][s->kind];
}

/* When a step's input is there, and when it could go on without. */
static double ready_of(const walk *w, const dts_pace_step *s) {
    return w->end[s->input] + (s->hops ? w->hop : 0);
}

static double free_of(const walk *w, const dts_pace_step *s, const timing *t) {
    return w->end[s->before] + t->ahead;
}

/* Back from the operation that ends last. */
static dts_pace_chain chain_of(const walk *w) {
    const dts_pace_steps *steps = w->steps;
    const double share = 1.0 / steps->chunks;
    dts_pace_chain out = {0};
    int rank = 0;
    for (int r = 1; r < steps->stages; r++) {
        rank = w->end[steps->last[r]] > w->end[steps->last[rank]] ? r : rank;
    }
    for (uint32_t at = steps->last[rank]; at > 0;) {
        const dts_pace_step *s = &steps->items[at];
        double *count = out.count[w->class_of[s->rank]];
        const int *parts = parts_of[s->kind];
        count[parts[0]] += share;
        count[parts[1]] += parts[1] == parts[0] ? 0 : share;
        at = s->before;
        if (s->input > 0 && ready_of(w, s) > free_of(w, s, timing_of(w, s))) {
            count[first_of[s->kind]] -= share;
            out.hops += s->hops ? 1 : 0;
            at = s->input;
        }
    }
    return out;
}

bool dts_pace_walk(const dts_pace_steps *steps, const dts_pace_times *times, dts_arena *scratch, dts_pace_chain *out) {
    const double share = 1.0 / steps->chunks;
    walk w = {.steps = steps, .class_of = times->class_of, .hop = times->hop};
    for (int c = 0; c < times->class_count; c++) {
        const double *passes = times->passes[c];
        for (int kind = 0; kind < KINDS; kind++) {
            const int *parts = parts_of[kind], first = first_of[kind];
            w.timings[c][kind].takes = share * (passes[parts[0]] + (parts[1] == parts[0] ? 0 : passes[parts[1]]));
            w.timings[c][kind].ahead = first == PARTS ? 0 : share * passes[first];
        }
    }
    w.end = dts_arena_array(scratch, steps->count + 1, sizeof *w.end);
    if (w.end == NULL) {
        return false;
    }
    for (uint32_t i = 1; i <= steps->count; i++) {
        const dts_pace_step *s = &steps->items[i];
        const timing *t = timing_of(&w, s);
        const double ready = ready_of(&w, s), free = free_of(&w, s, t);
        w.end[i] = (ready > free ? ready : free) + t->takes - t->ahead;
    }
    *out = chain_of(&w);
    return true;
}
