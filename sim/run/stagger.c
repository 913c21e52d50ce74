/* The steady state of stages that wait for their neighbours only (plan/lower/post_validation.c).
 *
 * An iteration maps the times b at which its stages begin to those at which they end, e = A(b), and these are the times
 * at which the next one begins. A takes maxima of sums, and shifting all of b shifts all of e: a max-plus linear map,
 * whose iterates end in b(k + 1) = b(k) + T where every stage depends on every other one, as forward passes in one
 * direction and backward passes in the other see to [1]. T is the length of an iteration, of every stage alike, however
 * far apart their beginnings are. It is found by iterating, which takes a few rounds.
 *
 * Where the longest circuit runs through two iterations, as through a tied embedding's exchange between stages that
 * nothing else couples, the lengths alternate about T. A never moves two b apart, so the mean of b and A(b) comes
 * nearer to the b that repeats [2]: from some round on it is taken. Allocation of links is not max-plus linear; where
 * stages still differ in the end, the longest one stands for T.
 *
 * [1] Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity", 1992, section 3.7.
 * [2] Krasnoselskii 1955; Ishikawa, "Fixed points and iteration of a nonexpansive mapping in a Banach space", Proc. AMS
 *     59, 1976. */
#include "run/stagger.h"

#include <math.h>

enum { ROUNDS_PLAIN = 3, ROUNDS_MOST = 8 };

static bool same_length(dts_time a, dts_time b) {
    static const double part = 1e-6;
    return fabs((double)(a - b)) <= part * (double)b;
}

dts_status dts_stagger_settle(dts_stagger *stagger, const dts_plan *plan, const dts_lowered *lowered,
                              const dts_simulation *simulation, dts_arena *arena, bool *again) {
    *again = false;
    if (lowered->stage_to == NULL) {
        return DTS_OK;
    }
    const size_t count = (size_t)(lowered->rows * plan->pipeline);
    const dts_time *ends = dts_simulation_ends(simulation);
    dts_time longest = 0, shortest = DTS_TIME_MAX, first = DTS_TIME_MAX;
    for (size_t i = 0; i < count; i++) {
        const dts_time end = ends[lowered->stage_to[i]];
        const dts_time length = end - ends[lowered->stage_from[i]];
        longest = length > longest ? length : longest;
        shortest = length < shortest ? length : shortest;
        first = end < first ? end : first;
    }
    stagger->length = longest;
    *again = !same_length(shortest, longest) && ++stagger->rounds < ROUNDS_MOST;
    if (*again) {
        dts_time *next = dts_arena_array(arena, count, sizeof *next);
        if (next == NULL) {
            return DTS_NOMEM;
        }
        for (size_t i = 0; i < count; i++) {
            next[i] = ends[lowered->stage_to[i]] - first;
            if (stagger->rounds > ROUNDS_PLAIN) {
                next[i] = (next[i] + stagger->begins[i]) / 2;
            }
        }
        stagger->begins = next;
    }
    return DTS_OK;
}

size_t dts_stagger_first(const dts_stagger *stagger, const dts_plan *plan, const dts_lowered *lowered) {
    const size_t count = (size_t)(lowered->rows * plan->pipeline);
    size_t first = 0;
    for (size_t i = 1; i < count && stagger->begins != NULL; i++) {
        first = stagger->begins[i] < stagger->begins[first] ? i : first;
    }
    return first;
}

dts_time dts_stagger_longest(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation) {
    const dts_time *starts = dts_simulation_starts(simulation);
    const dts_time *ends = dts_simulation_ends(simulation);
    dts_time longest = 0;
    for (size_t i = 0; i < (size_t)(lowered->rows * plan->pipeline); i++) {
        size_t count = 0;
        const dts_id *tasks = dts_graph_stream_tasks(lowered->graph, lowered->compute_stream[i], &count);
        const dts_time span = count > 1 ? ends[lowered->stage_to[i]] - starts[tasks[1]] : 0; /* behind stage_from */
        longest = span > longest ? span : longest;
    }
    return longest;
}
