/* For the first s stages with l layers in all, the last of these stages with n of them:
 *
 *   time(s, l)   = max(time(s-1, l-n), time of stage s with n layers)
 *   memory(s, l) = max(memory(s-1, l-n), memory of stage s with n layers)
 *
 * A state is (time, memory); those that another equals or beats in both are dropped, and so are those above the
 * capacity. Both are maxima, so what follows depends on nothing else, and the fronts stay as short as there are
 * different stages. The recurrence in time alone is PipeDream's [1]; memory as a second coordinate takes the place of a
 * bound for each stage that has to be guessed before.
 *
 * [1] Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, section 3.1. */
#include "search/stage_dp.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

typedef struct state {
    double time_s, memory_B;
    const struct state *before;
    size_t layers; /* of the last stage */
} state;

typedef struct front {
    state *states; /* sorted by time, memory falls */
    size_t count;
} front;

static int by_time(const void *a, const void *b) {
    const state *x = a, *y = b;
    const double of_x[] = {x->time_s, x->memory_B, (double)x->layers}; /* layers: the same answer on every machine */
    const double of_y[] = {y->time_s, y->memory_B, (double)y->layers};
    return dts_doubles_compare(of_x, of_y, sizeof of_x / sizeof of_x[0]);
}

/* Sorts, drops what is beaten, and copies the rest into the arena. */
static dts_status keep(state *states, size_t count, dts_arena *arena, front *out) {
    qsort(states, count, sizeof *states, by_time);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || states[i].memory_B < states[kept - 1].memory_B) {
            states[kept++] = states[i];
        }
    }
    *out = (front){.count = kept, .states = dts_arena_array(arena, kept > 0 ? kept : 1, sizeof *states)};
    for (size_t i = 0; i < kept && out->states != NULL; i++) {
        out->states[i] = states[i];
    }
    return out->states == NULL ? DTS_NOMEM : DTS_OK;
}

/* The states of the first stage .. stage s with l layers, from those of one stage less. */
static dts_status extend(const dts_stage_problem *p, size_t s, size_t l, const front *before, dts_arena *arena,
                         front *out) {
    static const state none = {.time_s = 0};
    size_t most = 1;
    for (size_t n = 1; n <= l && s > 0; n++) {
        most += before[l - n].count;
    }
    state *states = malloc(most * sizeof *states);
    if (states == NULL) {
        return DTS_NOMEM;
    }
    size_t count = 0;
    for (size_t n = s == 0 ? l : 1; n <= l && l > 0; n++) {
        const dts_stage_cost *cost = &p->costs[s * (p->layers + 1) + n];
        size_t from = s == 0 ? 1 : before[l - n].count;
        for (size_t i = 0; i < from && cost->memory_B <= p->capacity_B; i++) {
            const state *b = s == 0 ? &none : &before[l - n].states[i];
            states[count++] = (state){.time_s = fmax(b->time_s, cost->time_s),
                                      .memory_B = fmax(b->memory_B, cost->memory_B),
                                      .before = s == 0 ? NULL : b,
                                      .layers = n};
        }
    }
    dts_status status = keep(states, count, arena, out);
    free(states);
    return status;
}

dts_status dts_stage_dp(const dts_stage_problem *problem, dts_arena *arena, dts_stage_solution **out, size_t *count) {
    front *fronts = dts_arena_array(arena, (problem->stages + 1) * (problem->layers + 1), sizeof *fronts);
    *count = 0;
    *out = NULL;
    if (fronts == NULL) {
        return DTS_NOMEM;
    }
    for (size_t s = 0; s < problem->stages; s++) {
        front *now = &fronts[s * (problem->layers + 1)];
        const front *before = s == 0 ? NULL : now - (problem->layers + 1);
        size_t behind = problem->stages - 1 - s; /* each takes one layer at least */
        for (size_t l = s + 1; l + behind <= problem->layers; l++) {
            if (extend(problem, s, l, before, arena, &now[l]) != DTS_OK) {
                return DTS_NOMEM;
            }
        }
    }
    const front *last = &fronts[(problem->stages - 1) * (problem->layers + 1) + problem->layers];
    size_t found = last->states == NULL ? 0 : last->count; /* fewer layers than stages: there is no front */
    *out = dts_arena_array(arena, found > 0 ? found : 1, sizeof **out);
    for (size_t i = 0; i < found && *out != NULL; i++) {
        int64_t *layers = dts_arena_array(arena, problem->stages, sizeof *layers);
        if (layers == NULL) {
            return DTS_NOMEM;
        }
        size_t stage = problem->stages;
        for (const state *at = &last->states[i]; at != NULL; at = at->before) {
            layers[--stage] = (int64_t)at->layers;
        }
        (*out)[i] = (dts_stage_solution){last->states[i].time_s, last->states[i].memory_B, layers};
    }
    *count = *out == NULL ? 0 : found;
    return *out == NULL ? DTS_NOMEM : DTS_OK;
}
