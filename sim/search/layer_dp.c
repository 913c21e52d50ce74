/* For layer l, strategy s and the ways of the layers before it:
 *
 *   time(l, s)      = time(l-1, s') + transition(s', s) + cost(l, s)
 *   kept(l, s)      = kept(l-1, s') + kept of (l, s)
 *   transient(l, s) = max(transient(l-1, s'), transient of (l, s))
 *   beside(l, s), tail(l, s): sums like time, without transitions
 *   a way takes       M + max(0, tail - hides · M), M = max(time, beside), hides <= 1
 *
 * A state is all five. Of the states of one (l, s) those that another equals or beats in all of them are dropped; a way
 * takes no less where any of them is more, so no optimum is lost [1] (Galvatron's recurrence on a grid of memory [2]
 * rounds instead). States whose memory is above the capacity are dropped, too: memory only grows. Where there are more
 * than most_states, what is left is spread evenly from the fastest to the smallest.
 *
 * [1] microsoft/nnscaler, csrc/dp_solver.h, keeps states in the same way.
 * [2] Miao et al., Galvatron, VLDB 2023, section 4.3. */
#include "search/layer_dp.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

typedef struct state {
    double time_s, kept_B, transient_B, beside_s, tail_s;
    const struct state *before;
    uint16_t strategy;
} state;

/* The states of one layer and strategy, sorted by time. */
typedef struct front {
    state *states;
    size_t count;
} front;

static int by_time(const void *a, const void *b) {
    const state *x = a, *y = b;
    const double of_x[] = {x->time_s, x->kept_B, x->transient_B, x->beside_s, x->tail_s};
    const double of_y[] = {y->time_s, y->kept_B, y->transient_B, y->beside_s, y->tail_s};
    return dts_doubles_compare(of_x, of_y, sizeof of_x / sizeof of_x[0]);
}

static double takes_s(const dts_layer_problem *p, const state *s) {
    double busy_s = fmax(s->time_s, p->beside_s + s->beside_s);
    return busy_s + fmax(0, p->tail_s + s->tail_s - p->hides * busy_s);
}

static bool beats(const state *a, const state *b) {
    return a->kept_B <= b->kept_B && a->transient_B <= b->transient_B && a->beside_s <= b->beside_s &&
           a->tail_s <= b->tail_s;
}

/* Sorts, and drops what an earlier state equals or beats. */
static void prune(const dts_layer_problem *p, front *f) {
    qsort(f->states, f->count, sizeof *f->states, by_time);
    size_t kept = 0, likely = 0; /* what beat the one before often beats the next, too */
    for (size_t i = 0; i < f->count; i++) {
        bool beaten = kept > 0 && beats(&f->states[likely], &f->states[i]);
        for (size_t k = 0; k < kept && !beaten; k++) {
            beaten = beats(&f->states[k], &f->states[i]);
            likely = beaten ? k : likely;
        }
        if (!beaten) {
            f->states[kept++] = f->states[i];
        }
    }
    f->count = kept;
    if (p->most_states > 1 && kept > p->most_states) {
        for (size_t i = 0; i < p->most_states; i++) {
            f->states[i] = f->states[i * (kept - 1) / (p->most_states - 1)];
        }
        f->count = p->most_states;
    }
}

/* The states of (layer, strategy) from those of the layer before. */
static dts_status extend(const dts_layer_problem *p, size_t layer, size_t s, const front *before, dts_arena *arena,
                         front *out) {
    const dts_layer_cost *cost = &p->costs[layer * p->strategies + s];
    size_t most = layer == 0 ? 1 : 0;
    for (size_t from = 0; from < p->strategies && layer > 0; from++) {
        most += before[from].count;
    }
    *out = (front){.states = dts_arena_array(arena, most > 0 ? most : 1, sizeof *out->states)};
    if (out->states == NULL) {
        return DTS_NOMEM;
    }
    static const state none = {.time_s = 0};
    for (size_t from = 0; from < (layer == 0 ? 1 : p->strategies); from++) {
        double enter_s = p->enter_s == NULL ? 0 : p->enter_s[s];
        double transition_s = layer == 0 ? enter_s : p->transition_s[from * p->strategies + s];
        size_t count = layer == 0 ? 1 : before[from].count;
        for (size_t i = 0; i < count; i++) {
            const state *b = layer == 0 ? &none : &before[from].states[i];
            state next = {.time_s = b->time_s + transition_s + cost->time_s,
                          .kept_B = b->kept_B + cost->kept_B,
                          .transient_B = fmax(b->transient_B, cost->transient_B),
                          .beside_s = b->beside_s + cost->beside_s,
                          .tail_s = b->tail_s + cost->tail_s,
                          .before = layer == 0 ? NULL : b,
                          .strategy = (uint16_t)s};
            if (isfinite(next.time_s) && next.kept_B + next.transient_B <= p->capacity_B) {
                out->states[out->count++] = next;
            }
        }
    }
    prune(p, out);
    return DTS_OK;
}

static int by_solution(const void *a, const void *b) {
    const dts_layer_solution *x = a, *y = b;
    const double of_x[] = {x->time_s, x->memory_B}, of_y[] = {y->time_s, y->memory_B};
    return dts_doubles_compare(of_x, of_y, sizeof of_x / sizeof of_x[0]);
}

/* The ways of the last layer as solutions: sorted, and only those that no faster one beats in memory. */
static dts_status collect(const dts_layer_problem *p, const front *last, dts_arena *arena, dts_layer_solution **out,
                          size_t *count) {
    size_t all = 0;
    for (size_t s = 0; s < p->strategies; s++) {
        all += last[s].count;
    }
    dts_layer_solution *solutions = dts_arena_array(arena, all > 0 ? all : 1, sizeof *solutions);
    if (solutions == NULL) {
        return DTS_NOMEM;
    }
    size_t made = 0;
    for (size_t s = 0; s < p->strategies; s++) {
        for (size_t i = 0; i < last[s].count; i++) {
            state end_of_all = last[s].states[i];
            end_of_all.time_s += p->leave_s == NULL ? 0 : p->leave_s[s];
            const state *end = &end_of_all;
            dts_layer_solution *solution = &solutions[made++];
            *solution = (dts_layer_solution){.time_s = takes_s(p, end),
                                             .memory_B = end->kept_B + end->transient_B,
                                             .choice = dts_arena_array(arena, p->layers, sizeof *solution->choice)};
            if (solution->choice == NULL) {
                return DTS_NOMEM;
            }
            size_t layer = p->layers;
            for (const state *at = end; at != NULL; at = at->before) {
                solution->choice[--layer] = at->strategy;
            }
        }
    }
    qsort(solutions, made, sizeof *solutions, by_solution);
    *count = 0;
    for (size_t i = 0; i < made; i++) {
        if (*count == 0 || solutions[i].memory_B < solutions[*count - 1].memory_B) {
            solutions[(*count)++] = solutions[i];
        }
    }
    *out = solutions;
    return DTS_OK;
}

dts_status dts_layer_dp(const dts_layer_problem *problem, dts_arena *arena, dts_layer_solution **out, size_t *count) {
    front *before = dts_arena_array(arena, problem->strategies, sizeof *before);
    front *now = dts_arena_array(arena, problem->strategies, sizeof *now);
    dts_status status = before == NULL || now == NULL ? DTS_NOMEM : DTS_OK;
    for (size_t layer = 0; layer < problem->layers && status == DTS_OK; layer++) {
        for (size_t s = 0; s < problem->strategies && status == DTS_OK; s++) {
            status = extend(problem, layer, s, before, arena, &now[s]);
        }
        front *swap = before;
        before = now;
        now = swap;
    }
    return status == DTS_OK ? collect(problem, before, arena, out, count) : status;
}

/* ---- strategies
 * ------------------------------------------------------------------------------------------------------ */

typedef struct gathering {
    dts_layer_strategy *items;
    size_t capacity, count;
} gathering;

static void add(gathering *g, dts_layer_strategy strategy) {
    for (int recompute = 0; recompute < 2; recompute++) {
        strategy.recompute = recompute != 0;
        if (g->count < g->capacity) {
            g->items[g->count] = strategy;
        }
        g->count++;
    }
}

size_t dts_layer_strategies(int gpus, int most, dts_layer_strategy *strategies, size_t capacity) {
    gathering g = {.items = strategies, .capacity = capacity};
    for (int pipeline = 1; pipeline <= gpus && pipeline <= most; pipeline *= 2) {
        for (int split = 1; pipeline * split <= gpus && split <= most; split *= 2) {
            int data = gpus / (pipeline * split);
            for (int sequence = 0; sequence <= (split > 1); sequence++) {
                for (int sharded = 0; sharded <= (data > 1); sharded++) {
                    add(&g, (dts_layer_strategy){.pipeline = pipeline,
                                                 .split = split,
                                                 .data = data,
                                                 .sequence = sequence != 0,
                                                 .parameters_sharded = sharded != 0});
                }
            }
        }
    }
    return g.count;
}
