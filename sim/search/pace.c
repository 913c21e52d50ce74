/* The length of an order: each operation begins when its rank is free and its input is there.
 *
 * The longest chain of operations that wait for each other holds n_F forwards of a class of ranks, n_B and n_W halves
 * of backwards and h hops, and takes
 *
 *   sum_c (n_F f + n_B b + n_W w) + h latency                                                     (1)
 *
 * It stays the longest while the passes change little. So passes are rounded to 1/STEPS of the busiest rank's, the
 * order is walked with these, and (1) with a candidate's own passes is its length, to second order. Beyond some
 * multiple of the stages an order repeats itself, and every further microbatch adds as much. */
#include "search/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As they lie in a class's passes. */
enum { F, B, W, FIRST_F, FIRST_B, PARTS = DTS_PACE_PARTS };

enum {
    STEPS = 64,
    HOP_STEPS = 16 * STEPS, /* hops are short, but many */
    COARSE = 4,             /* steps that orders are not made for */
    ORDERS = 256,
    SLOTS = 4096,
    SOME = 4, /* times the stages: microbatches of a walk, and of a longer one */
    MORE = 6
};

/* What candidates share that have one chain; numbers of one type, to be compared as bytes. */
struct numbers {
    int32_t chunks, class_count, frees, hop;
    int32_t microbatches; /* 0: more than are walked */
    int32_t last[DTS_PACE_CLASSES];
    int32_t passes[DTS_PACE_CLASSES][PARTS];
};

typedef struct key {
    const dts_schedule_method *method;
    struct numbers n;
} key;

/* A longest chain: how much of it are passes of each class, in passes through all chunks. What an operation does ahead
 * of its input is taken off where the input comes last. */
typedef struct chain {
    double count[DTS_PACE_CLASSES][PARTS];
    double hops;
} chain;

typedef struct cell {
    key key;
    bool known, built;
    chain some, more; /* more: where there are many microbatches */
} cell;

typedef struct known_order {
    const dts_schedule_method *method;
    dts_schedule_shape shape;
    dts_schedule order;
} known_order;

struct dts_pace_cache {
    dts_arena *arena;
    cell *cells; /* [SLOTS], each for the last key that fell into it */
    known_order orders[ORDERS];
    size_t order_count;
};

dts_pace_cache *dts_pace_cache_new(dts_arena *arena) {
    dts_pace_cache *cache = dts_arena_array(arena, 1, sizeof *cache);
    if (cache != NULL) {
        *cache = (dts_pace_cache){.arena = arena};
    }
    return cache;
}

/* ---- one walk -----------------------------------------------------------------------------------------------------
 */

typedef struct done {
    double end; /* below 0: it has not */
    size_t index;
} done;

typedef struct walk {
    const dts_schedule *order;
    const int *class_of; /* [rank] */
    double passes[DTS_PACE_CLASSES][PARTS];
    double hop;
    int virtual_stages;
    done *forward, *backward; /* [virtual stage][microbatch] */
    double *now;              /* [rank] */
    size_t *next;
    uint8_t **waits; /* [rank][operation] for its input, and not for its rank */
} walk;

static done *done_of(const walk *w, done *all, int stage, uint32_t microbatch) {
    return &all[(size_t)stage * (size_t)w->order->shape.microbatches + microbatch];
}

/* The operation that an operation waits for; NULL: none. *owner: its rank. */
static done *input_of(const walk *w, int rank, const dts_op *op, int *owner) {
    const dts_schedule *o = w->order;
    const int stage = dts_virtual_stage(o->layout, o->shape.stages, rank, op->chunk);
    const bool forward = op->kind == DTS_OP_FORWARD;
    const int before = forward ? stage - 1 : stage + 1;
    int chunk = 0;
    *owner = rank;
    if (op->kind == DTS_OP_BACKWARD_WEIGHT || before < 0) {
        return NULL;
    }
    if (before >= w->virtual_stages) {
        return done_of(w, w->forward, stage, op->microbatch);
    }
    dts_virtual_stage_owner(o->layout, o->shape.stages, before, 0, owner, &chunk);
    return done_of(w, forward ? w->forward : w->backward, before, op->microbatch);
}

static const int parts_of[][2] = {[DTS_OP_FORWARD] = {F, F},
                                  [DTS_OP_BACKWARD_INPUT] = {B, B},
                                  [DTS_OP_BACKWARD_WEIGHT] = {W, W},
                                  [DTS_OP_BACKWARD] = {B, W}};

/* What an operation can do ahead of its input. */
static int first_of(const dts_op *op) {
    return op->kind == DTS_OP_FORWARD ? FIRST_F : op->kind == DTS_OP_BACKWARD_WEIGHT ? PARTS : FIRST_B;
}

/* As many operations of a rank as have their inputs. */
static bool advance(walk *w, int rank) {
    const dts_schedule *o = w->order;
    const double *passes = w->passes[w->class_of[rank]], share = 1.0 / o->shape.chunks;
    const size_t from = w->next[rank];
    for (size_t i = from; i < o->op_count[rank]; i++) {
        const dts_op *op = &o->ops[rank][i];
        int owner = rank;
        const done *input = input_of(w, rank, op, &owner);
        if (input != NULL && input->end < 0) {
            break;
        }
        const int *parts = parts_of[op->kind], first = first_of(op);
        const double ready = input == NULL ? 0 : input->end + (owner == rank ? 0 : w->hop);
        const double takes = share * (passes[parts[0]] + (parts[1] == parts[0] ? 0 : passes[parts[1]]));
        const double ahead = first == PARTS ? 0 : share * passes[first];
        w->waits[rank][i] = ready > w->now[rank] + ahead;
        w->now[rank] = fmax(ready, w->now[rank] + ahead) + takes - ahead;
        if (op->kind != DTS_OP_BACKWARD_WEIGHT) {
            const int stage = dts_virtual_stage(o->layout, o->shape.stages, rank, op->chunk);
            *done_of(w, op->kind == DTS_OP_FORWARD ? w->forward : w->backward, stage, op->microbatch) =
                (done){w->now[rank], i};
        }
        w->next[rank] = i + 1;
    }
    return w->next[rank] > from;
}

/* Back from the operation that ends last. */
static chain chain_of(const walk *w) {
    const dts_schedule *o = w->order;
    const double share = 1.0 / o->shape.chunks;
    chain out = {0};
    int rank = 0;
    for (int r = 1; r < o->shape.stages; r++) {
        rank = w->now[r] > w->now[rank] ? r : rank;
    }
    for (size_t left = o->op_count[rank]; left > 0;) {
        const size_t i = left - 1;
        const dts_op *op = &o->ops[rank][i];
        double *count = out.count[w->class_of[rank]];
        const int *parts = parts_of[op->kind];
        count[parts[0]] += share;
        count[parts[1]] += parts[1] == parts[0] ? 0 : share;
        left = i;
        if (w->waits[rank][i]) {
            int owner = rank;
            const done *input = input_of(w, rank, op, &owner);
            count[first_of(op)] -= share;
            out.hops += owner == rank ? 0 : 1;
            rank = owner;
            left = input->index + 1;
        }
    }
    return out;
}

static bool make_room(walk *w, dts_arena *scratch) {
    const dts_schedule *o = w->order;
    const size_t stages = (size_t)o->shape.stages;
    const size_t count = (size_t)w->virtual_stages * (size_t)o->shape.microbatches;
    w->forward = dts_arena_array(scratch, count, sizeof *w->forward);
    w->backward = dts_arena_array(scratch, count, sizeof *w->backward);
    w->now = dts_arena_array(scratch, stages, sizeof *w->now);
    w->next = dts_arena_array(scratch, stages, sizeof *w->next);
    w->waits = dts_arena_array(scratch, stages, sizeof *w->waits);
    bool there = w->forward != NULL && w->backward != NULL && w->now != NULL && w->next != NULL && w->waits != NULL;
    for (size_t i = 0; there && i < count; i++) {
        w->forward[i].end = w->backward[i].end = -1;
    }
    for (size_t rank = 0; there && rank < stages; rank++) {
        w->waits[rank] = dts_arena_array(scratch, o->op_count[rank], sizeof *w->waits[rank]);
        there = w->waits[rank] != NULL;
    }
    return there;
}

static bool walk_order(const dts_schedule *order, const key *k, const int *class_of, dts_arena *scratch, chain *out) {
    walk w = {.order = order, .class_of = class_of, .hop = (double)k->n.hop / HOP_STEPS};
    w.virtual_stages = dts_virtual_stage_count(order->layout, order->shape.stages, order->shape.chunks);
    for (int c = 0; c < k->n.class_count; c++) {
        for (int part = 0; part < PARTS; part++) {
            w.passes[c][part] = (double)k->n.passes[c][part] / STEPS;
        }
    }
    if (!make_room(&w, scratch)) {
        return false;
    }
    for (bool moved = true; moved;) { /* there and back, as activations and gradients go */
        moved = false;
        for (int rank = 0; rank < order->shape.stages; rank++) {
            moved |= advance(&w, rank);
        }
        for (int rank = order->shape.stages; rank-- > 0;) {
            moved |= advance(&w, rank);
        }
    }
    *out = chain_of(&w);
    return true;
}

/* ---- orders and their chains --------------------------------------------------------------------------------------
 */

/* [rank] */
static const int *classes_of(const key *k, int stages, dts_arena *scratch) {
    int *class_of = dts_arena_array(scratch, (size_t)stages, sizeof *class_of);
    for (int rank = 0, c = 0; class_of != NULL && rank < stages; rank++) {
        class_of[rank] = c;
        c += rank == k->n.last[c] && c + 1 < k->n.class_count;
    }
    return class_of;
}

static double coarsely(double count) {
    return fmax(1, round(count / COARSE)) * COARSE;
}

/* As the zero-bubble repository measures it for its orders (plan/lower/profile.c), but in coarse steps: making such an
 * order takes longer than walking it. */
static dts_schedule_shape shape_of(const key *k, int stages, int microbatches) {
    dts_schedule_shape shape = {.stages = stages, .microbatches = microbatches, .chunks = k->n.chunks};
    if (k->method->follows_costs) {
        int middle = 0;
        while (k->n.last[middle] < stages / 2) {
            middle++;
        }
        const int32_t *median = k->n.passes[middle];
        shape.forward = coarsely(median[F] - median[FIRST_F]);
        shape.backward_input = coarsely(median[B] - median[FIRST_B]);
        shape.backward_weight = coarsely(median[W]);
        shape.latency = round((double)k->n.hop * STEPS / HOP_STEPS);
        shape.input_frees = round((double)k->n.frees / COARSE) * COARSE / STEPS;
    }
    return shape;
}

static bool same_shape(const dts_schedule_shape *a, const dts_schedule_shape *b) {
    const double apart = fabs(a->forward - b->forward) + fabs(a->backward_input - b->backward_input) +
                         fabs(a->backward_weight - b->backward_weight) + fabs(a->latency - b->latency) +
                         fabs(a->input_frees - b->input_frees);
    return a->chunks == b->chunks && a->microbatches == b->microbatches && apart <= 0;
}

static bool build(const key *k, const dts_schedule_shape *shape, dts_arena *arena, dts_schedule *out) {
    dts_diag *diag = dts_diag_new();
    const bool built = diag != NULL && dts_schedule_build(k->method->name, shape, arena, out, diag) == DTS_OK;
    dts_diag_free(diag);
    return built;
}

/* NULL: there is none. One for which there is no room is made anew each time, in scratch. */
static const dts_schedule *order_for(dts_pace_cache *cache, const key *k, int stages, int microbatches,
                                     dts_arena *scratch) {
    const dts_schedule_shape shape = shape_of(k, stages, microbatches);
    for (size_t i = 0; i < cache->order_count; i++) {
        const known_order *known = &cache->orders[i];
        if (known->method == k->method && same_shape(&known->shape, &shape)) {
            return &known->order;
        }
    }
    if (cache->order_count == ORDERS) {
        dts_schedule *order = dts_arena_array(scratch, 1, sizeof *order);
        return order != NULL && build(k, &shape, scratch, order) ? order : NULL;
    }
    known_order *known = &cache->orders[cache->order_count];
    *known = (known_order){.method = k->method, .shape = shape};
    if (!build(k, &shape, cache->arena, &known->order)) {
        return NULL;
    }
    cache->order_count++;
    return &known->order;
}

static bool find_chain(dts_pace_cache *cache, const key *k, int stages, int microbatches, chain *out) {
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_schedule *order = scratch == NULL ? NULL : order_for(cache, k, stages, microbatches, scratch);
    const int *class_of = order == NULL ? NULL : classes_of(k, stages, scratch);
    const bool walked = class_of != NULL && walk_order(order, k, class_of, scratch, out);
    dts_arena_free(scratch);
    return walked;
}

static int32_t steps(double share, int of) {
    return (int32_t)lround(share * of);
}

static key key_of(const dts_pace *pace, double busiest_s) {
    key k = {.method = pace->method};
    k.n.chunks = pace->chunks;
    k.n.microbatches = pace->microbatches > MORE * pace->stages ? 0 : pace->microbatches;
    k.n.class_count = pace->class_count;
    k.n.frees = pace->method->follows_costs ? steps(pace->input_frees, STEPS) : 0;
    k.n.hop = steps(pace->latency_s / busiest_s, HOP_STEPS);
    for (int i = 0; i < pace->class_count; i++) {
        const dts_pace_class *c = &pace->classes[i];
        k.n.last[i] = c->last;
        for (int part = 0; part < PARTS; part++) {
            k.n.passes[i][part] = steps(c->passes_s[part] / busiest_s, STEPS);
        }
    }
    return k;
}

/* FNV-1a. */
static size_t slot_of(const key *k) {
    const unsigned char *bytes = (const unsigned char *)&k->n;
    uint32_t hash = 2166136261U ^ (uint32_t)(uintptr_t)k->method;
    for (size_t i = 0; i < sizeof k->n; i++) {
        hash = (hash ^ bytes[i]) * 16777619U;
    }
    return hash % SLOTS;
}

static void fill(dts_pace_cache *cache, cell *c, int stages) {
    const key *k = &c->key;
    c->known = true;
    c->built = k->n.microbatches > 0 ? find_chain(cache, k, stages, k->n.microbatches, &c->some)
                                     : find_chain(cache, k, stages, SOME * stages, &c->some) &&
                                           find_chain(cache, k, stages, MORE * stages, &c->more);
}

static double chain_s(const chain *c, const dts_pace *pace) { /* (1) */
    double out = c->hops * pace->latency_s;
    for (int i = 0; i < pace->class_count; i++) {
        for (int part = 0; part < PARTS; part++) {
            out += c->count[i][part] * pace->classes[i].passes_s[part];
        }
    }
    return out;
}

double dts_pace_length_s(dts_pace_cache *cache, const dts_pace *pace) {
    double busiest_s = 0;
    for (int i = 0; i < pace->class_count; i++) {
        const double *passes_s = pace->classes[i].passes_s;
        busiest_s = fmax(busiest_s, passes_s[F] + passes_s[B] + passes_s[W]);
    }
    if (cache->cells == NULL) {
        cache->cells = dts_arena_array(cache->arena, SLOTS, sizeof *cache->cells);
    }
    if (cache->cells == NULL || !(busiest_s > 0) || !isfinite(busiest_s)) {
        return -1;
    }
    const key k = key_of(pace, busiest_s);
    cell *c = &cache->cells[slot_of(&k)];
    if (!c->known || c->key.method != k.method || memcmp(&c->key.n, &k.n, sizeof k.n) != 0) {
        *c = (cell){.key = k};
        fill(cache, c, pace->stages);
    }
    if (!c->built) {
        return -1;
    }
    const double some_s = chain_s(&c->some, pace);
    if (k.n.microbatches > 0) {
        return some_s;
    }
    const double more_s = chain_s(&c->more, pace), beyond = pace->microbatches - SOME * pace->stages;
    return some_s + (more_s - some_s) * beyond / ((MORE - SOME) * pace->stages);
}
