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

#include "search/pace_walk.h"

enum { PARTS = DTS_PACE_PARTS };

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

typedef struct cell {
    key key;
    bool known, built;
    dts_pace_chain some, more; /* more: where there are many microbatches */
} cell;

typedef struct known_order {
    const dts_schedule_method *method;
    dts_schedule_shape shape;
    dts_pace_steps steps;
    dts_moments *moments; /* [rank] where it is made for its passes */
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
        shape.forward = coarsely(median[DTS_PACE_F] - median[DTS_PACE_FIRST_F]);
        shape.backward_input = coarsely(median[DTS_PACE_B] - median[DTS_PACE_FIRST_B]);
        shape.backward_weight = coarsely(median[DTS_PACE_W]);
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

static bool build(const key *k, const dts_schedule_shape *shape, dts_arena *arena, dts_arena *scratch,
                  known_order *out) {
    dts_schedule order;
    dts_diag *diag = dts_diag_new();
    const bool built = diag != NULL && dts_schedule_build(k->method->name, shape, scratch, &order, diag) == DTS_OK;
    dts_diag_free(diag);
    *out = (known_order){.method = k->method, .shape = *shape};
    if (!built || !dts_pace_steps_make(&order, arena, scratch, &out->steps)) {
        return false;
    }
    out->moments = k->method->follows_costs ? dts_schedule_moments(&order, arena) : NULL;
    return out->moments != NULL || !k->method->follows_costs;
}

static const known_order *find_order(const dts_pace_cache *cache, const dts_schedule_method *method,
                                     const dts_schedule_shape *shape) {
    for (size_t i = 0; i < cache->order_count; i++) {
        if (cache->orders[i].method == method && same_shape(&cache->orders[i].shape, shape)) {
            return &cache->orders[i];
        }
    }
    return NULL;
}

/* NULL: there is none. One for which there is no room is made anew each time, in scratch. */
static const known_order *order_for(dts_pace_cache *cache, const key *k, int stages, int microbatches,
                                    dts_arena *scratch) {
    const dts_schedule_shape shape = shape_of(k, stages, microbatches);
    const known_order *found = find_order(cache, k->method, &shape);
    if (found != NULL) {
        return found;
    }
    const bool room = cache->order_count < ORDERS;
    known_order *made = room ? &cache->orders[cache->order_count] : dts_arena_array(scratch, 1, sizeof *made);
    if (made == NULL || !build(k, &shape, room ? cache->arena : scratch, scratch, made)) {
        return NULL;
    }
    cache->order_count += room ? 1 : 0;
    return made;
}

static bool find_chain(dts_pace_cache *cache, const key *k, int stages, int microbatches, dts_pace_chain *out) {
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    const known_order *made = scratch == NULL ? NULL : order_for(cache, k, stages, microbatches, scratch);
    dts_pace_times times = {.class_count = k->n.class_count, .hop = (double)k->n.hop / HOP_STEPS};
    times.class_of = made == NULL ? NULL : classes_of(k, stages, scratch);
    for (int c = 0; c < k->n.class_count; c++) {
        for (int part = 0; part < PARTS; part++) {
            times.passes[c][part] = (double)k->n.passes[c][part] / STEPS;
        }
    }
    const bool walked = times.class_of != NULL && dts_pace_walk(&made->steps, &times, scratch, out);
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

/* FNV-1a, of whole numbers. */
static uint32_t hashed(uint32_t hash, const int32_t *numbers, int count) {
    for (int i = 0; i < count; i++) {
        hash = (hash ^ (uint32_t)numbers[i]) * 16777619U;
    }
    return hash;
}

static size_t slot_of(const key *k) {
    const int32_t alone[] = {k->n.chunks, k->n.frees, k->n.hop, k->n.microbatches};
    uint32_t hash = hashed(2166136261U ^ (uint32_t)(uintptr_t)k->method, alone, sizeof alone / sizeof alone[0]);
    hash = hashed(hash, k->n.last, k->n.class_count);
    for (int c = 0; c < k->n.class_count; c++) {
        hash = hashed(hash, k->n.passes[c], PARTS);
    }
    return (hash ^ hash >> 16) % SLOTS; /* a product's low bits know nothing of high ones */
}

static void fill(dts_pace_cache *cache, cell *c, int stages) {
    const key *k = &c->key;
    c->known = true;
    c->built = k->n.microbatches > 0 ? find_chain(cache, k, stages, k->n.microbatches, &c->some)
                                     : find_chain(cache, k, stages, SOME * stages, &c->some) &&
                                           find_chain(cache, k, stages, MORE * stages, &c->more);
}

static double chain_s(const dts_pace_chain *c, const dts_pace *pace) { /* (1) */
    double out = c->hops * pace->latency_s;
    for (int i = 0; i < pace->class_count; i++) {
        for (int part = 0; part < PARTS; part++) {
            out += c->count[i][part] * pace->classes[i].passes_s[part];
        }
    }
    return out;
}

static double busiest_of(const dts_pace *pace) {
    double busiest_s = 0;
    for (int i = 0; i < pace->class_count; i++) {
        const double *passes_s = pace->classes[i].passes_s;
        busiest_s = fmax(busiest_s, passes_s[DTS_PACE_F] + passes_s[DTS_PACE_B] + passes_s[DTS_PACE_W]);
    }
    return busiest_s;
}

const dts_moments *dts_pace_moments(const dts_pace_cache *cache, const dts_pace *pace) {
    const double busiest_s = busiest_of(pace);
    if (!pace->method->follows_costs || !(busiest_s > 0) || !isfinite(busiest_s)) {
        return NULL;
    }
    const key k = key_of(pace, busiest_s);
    const int microbatches = k.n.microbatches > 0 ? k.n.microbatches : SOME * pace->stages;
    const dts_schedule_shape shape = shape_of(&k, pace->stages, microbatches);
    const known_order *order = find_order(cache, pace->method, &shape);
    return order == NULL ? NULL : order->moments;
}

double dts_pace_length_s(dts_pace_cache *cache, const dts_pace *pace) {
    const double busiest_s = busiest_of(pace);
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
