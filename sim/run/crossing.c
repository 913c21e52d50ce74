/* Which transfers of a round, or behind it, may meet another one on their way.
 *
 * Two transfers over one resource never meet where one can only start when the other has ended: along dependencies and
 * the orders of streams there is a path from one to the other. A path from one to the next of each resource, in the
 * order of their starts, is one between any two. What crosses a resource that others hold for a while may meet them,
 * and so may they. The rounds to come have the same tasks with the same dependencies, so that what is ordered in this
 * round, and against the first behind it, stays so. */
#include <stdlib.h>

#include "base/array.h"
#include "run/rhythm.h"

/* A transfer over a resource. */
typedef struct crossing {
    dts_time start;
    dts_id resource, task;
} crossing;

static int by_resource_and_start(const void *a, const void *b) {
    const crossing *x = a;
    const crossing *y = b;
    if (x->resource != y->resource) {
        return x->resource < y->resource ? -1 : 1;
    }
    if (x->start != y->start) {
        return x->start < y->start ? -1 : 1;
    }
    return (x->task > y->task) - (x->task < y->task);
}

/* Sorted; the caller frees them. NULL: memory ran out. */
static crossing *list_crossings(const dts_rhythm *r, size_t *count) {
    const dts_graph *graph = r->m->lowered->graph;
    const dts_time *starts = dts_simulation_starts(r->m->simulation);
    size_t capacity = 0;
    crossing *all = dts_array_room(NULL, &capacity, 1, sizeof *all);
    *count = 0;
    for (dts_id task = r->first; all != NULL && task < r->m->lowered->info_count; task++) {
        const dts_task view = dts_graph_task(graph, task);
        const bool here = view.hop_count > 0 && (dts_rhythm_has(r, task) || dts_rhythm_is_behind(r, task));
        if (!here) {
            continue;
        }
        crossing *more = dts_array_room(all, &capacity, *count + view.hop_count, sizeof *more);
        if (more == NULL) {
            free(all);
            return NULL;
        }
        all = more;
        for (size_t i = 0; i < view.hop_count; i++) {
            all[(*count)++] = (crossing){starts[task], view.hops[i].resource, task};
        }
    }
    if (all != NULL) {
        qsort(all, *count, sizeof *all, by_resource_and_start);
    }
    return all;
}

/* A look backwards from a task. */
enum { MOST_REACHED = 256 };

typedef struct look {
    dts_id reached[MOST_REACHED];
    size_t count;
} look;

static void reach(look *l, dts_id task) {
    bool known = l->count == MOST_REACHED;
    for (size_t i = 0; i < l->count && !known; i++) {
        known = l->reached[i] == task;
    }
    if (!known) {
        l->reached[l->count++] = task;
    }
}

/* Does later wait for earlier, if not at once? Only what starts when earlier has ended can stand between them. False
 * where that is not found out soon. */
static bool waits_for(const dts_rhythm *r, dts_id later, dts_id earlier) {
    const dts_time *starts = dts_simulation_starts(r->m->simulation);
    const dts_time end = dts_simulation_ends(r->m->simulation)[earlier];
    look l = {.count = 0};
    reach(&l, later);
    for (size_t next = 0; next < l.count; next++) {
        size_t count = 0;
        const dts_id *before = dts_graph_awaited_by(r->m->lowered->graph, l.reached[next], &count);
        for (size_t i = 0; i < count; i++) {
            if (before[i] == earlier) {
                return true;
            }
            if (before[i] != DTS_NO_ID && starts[before[i]] >= end) {
                reach(&l, before[i]);
            }
        }
    }
    return false;
}

/* Holds begin and end beside what crosses their resource. Returns by resource, if others hold of it; the caller frees
 * them. NULL: memory ran out. */
static bool *find_held(dts_rhythm *r) {
    const dts_graph *graph = r->m->lowered->graph;
    bool *held = calloc(dts_graph_resources(graph) + 1, sizeof *held);
    for (size_t i = 0; held != NULL && i < dts_graph_holds(graph); i++) {
        held[dts_graph_hold_resource(graph, i)] = true;
        r->meets[dts_graph_hold_until(graph, i)] = true;
    }
    return held;
}

bool dts_rhythm_find_meetings(dts_rhythm *r) {
    size_t count = 0;
    crossing *all = list_crossings(r, &count);
    if (all == NULL) {
        return false;
    }
    for (dts_id task = 0; task < r->m->lowered->info_count; task++) {
        r->meets[task] = false;
    }
    bool *held = find_held(r);
    for (size_t i = 0; held != NULL && i < count; i++) {
        r->meets[all[i].task] |= held[all[i].resource];
    }
    for (size_t i = 1; i < count; i++) {
        const crossing *a = &all[i - 1];
        const crossing *b = &all[i];
        if (a->resource == b->resource && a->task != b->task && !waits_for(r, b->task, a->task)) {
            r->meets[a->task] = r->meets[b->task] = true;
        }
    }
    free(all);
    free(held);
    return held != NULL;
}
