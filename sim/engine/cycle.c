/* Finding and explaining tasks that wait for each other in a circle.
 *
 * 1. Take away every task that could run (Kahn 1962): what is left waits for ever.
 * 2. Places grow along streams, so every circle holds a dependency on a task whose place is not below its own. From
 * each such task a breadth-first search along "waits for", inside what is left, finds the shortest way back to it. */
#include <stdlib.h>

#include "base/text.h"
#include "engine/inside.h"

/* Steps of a circle that are printed; a longer one is cut in the middle. */
enum { STEPS_SHOWN = 12 };

/* The search for the shortest circle stops after so many edges and keeps the best one so far: about a second. */
static const size_t EDGES_MOST = 50000000;

typedef struct search {
    const dts_graph *graph;
    uint32_t *stuck; /* by task: what it still waits for after step 1; 0: it could run */
    dts_id *queue;   /* tasks reached, in the order of their distance */
    dts_id *via;     /* by task: the one from which the search reached it, DTS_NO_ID: not reached */
    dts_id *best;    /* the shortest circle, best[0] waits for best[1] … the last for best[0] */
    size_t best_length;
    size_t edges;
} search;

/* Step 1. Returns how many tasks are left. */
static size_t run_what_can(search *s) {
    const dts_graph *graph = s->graph;
    const dts_node *nodes = dts_graph_nodes(graph);
    size_t done = 0;
    size_t reached = 0;
    for (size_t task = 0; task < graph->tasks; task++) {
        s->stuck[task] = graph->waits[task];
        if (s->stuck[task] == 0) {
            s->queue[reached++] = (dts_id)task;
        }
    }
    for (; done < reached; done++) {
        dts_id task = s->queue[done];
        for (uint32_t i = nodes[task].first_successor; i < nodes[task + 1].first_successor; i++) {
            dts_id successor = graph->successors[i];
            if (--s->stuck[successor] == 0) {
                s->queue[reached++] = successor;
            }
        }
    }
    return graph->tasks - reached;
}

/* Goes on from a task to all that it waits for. */
static void reach_awaited(search *s, dts_id task, size_t *reached) {
    size_t count;
    const dts_id *awaited = dts_graph_awaited(s->graph, task, &count);
    for (size_t i = 0; i < count; i++) {
        dts_id before = awaited[i];
        if (before != DTS_NO_ID && s->stuck[before] > 0 && s->via[before] == DTS_NO_ID) {
            s->via[before] = task;
            s->queue[(*reached)++] = before;
        }
    }
    s->edges += count;
}

/* Writes down the circle that ends with the first task reached again. */
static void keep(search *s, dts_id first) {
    size_t length = 0;
    dts_id task = first;
    do {
        task = s->via[task];
        length++;
    } while (task != first);
    if (s->best_length != 0 && length >= s->best_length) {
        return;
    }
    s->best_length = length;
    for (size_t i = length; i-- > 0;) { /* via leads backwards */
        task = s->via[task];
        s->best[i] = task;
    }
}

/* Step 2, for the circles through first. */
static void search_from(search *s, dts_id first) {
    size_t reached = 0;
    size_t done = 0;
    reach_awaited(s, first, &reached);
    while (done < reached && s->via[first] == DTS_NO_ID) {
        reach_awaited(s, s->queue[done++], &reached);
    }
    if (s->via[first] != DTS_NO_ID) {
        keep(s, first);
    }
    for (size_t i = 0; i < reached; i++) {
        s->via[s->queue[i]] = DTS_NO_ID;
    }
}

/* "a waits for b (dependency)". */
static void add_step(dts_text *text, const dts_graph *graph, dts_id after, dts_id before) {
    char waiting[128];
    char awaited[128];
    dts_graph_task_name(graph, after, waiting, sizeof waiting);
    dts_graph_task_name(graph, before, awaited, sizeof awaited);
    size_t count;
    size_t occupied;
    size_t i = 0;
    const dts_id *all = dts_graph_awaited(graph, after, &count);
    const dts_id *streams = dts_graph_task_streams(graph, after, &occupied);
    while (all[i] != before) {
        i++;
    }
    if (i < count - occupied) {
        dts_text_printf(text, "%s waits for %s (dependency)", waiting, awaited);
    } else {
        dts_text_printf(text, "%s waits for %s (same stream \"%s\", added earlier)", waiting, awaited,
                        dts_graph_stream_name(graph, streams[i - (count - occupied)]));
    }
}

static dts_status explain(const search *s, size_t left, dts_diag *diag) {
    dts_text text = {0};
    for (size_t i = 0; i < s->best_length; i++) {
        if (s->best_length > STEPS_SHOWN && i == STEPS_SHOWN / 2) {
            dts_text_printf(&text, ", … %zu more …", s->best_length - STEPS_SHOWN);
            i = s->best_length - STEPS_SHOWN / 2;
        }
        dts_text_add(&text, i > 0 ? ", " : "");
        add_step(&text, s->graph, s->best[i], s->best[(i + 1) % s->best_length]);
    }
    dts_status status = dts_text_status(&text);
    if (status == DTS_OK) {
        status = dts_diag_error(diag, NULL, NULL,
                                "a stream runs its tasks in the order in which they were added: add a task after those "
                                "it waits for",
                                "%zu of %zu tasks can never start: %s", left, s->graph->tasks, dts_text_string(&text));
    } else {
        dts_diag_nomem(diag);
    }
    dts_text_free(&text);
    return status;
}

static void find_shortest(search *s) {
    for (size_t task = 0; task < s->graph->tasks; task++) {
        s->via[task] = DTS_NO_ID;
    }
    const dts_dependency *dependencies = s->graph->dependencies.items;
    for (size_t i = 0; i < s->graph->dependencies.count; i++) {
        dts_dependency d = dependencies[i];
        bool found_enough = s->best_length > 0 && s->edges > EDGES_MOST;
        bool back = dts_graph_place(s->graph, d.before) >= dts_graph_place(s->graph, d.after);
        if (back && s->stuck[d.after] > 0 && s->stuck[d.before] > 0 && !found_enough) {
            search_from(s, d.after);
        }
    }
}

dts_status dts_graph_check_cycles(const dts_graph *graph, dts_diag *diag) {
    size_t tasks = graph->tasks;
    search s = {.graph = graph,
                .stuck = malloc(tasks * sizeof(uint32_t)),
                .queue = malloc(tasks * sizeof(dts_id)),
                .via = malloc(tasks * sizeof(dts_id)),
                .best = malloc(tasks * sizeof(dts_id))};
    dts_status status = DTS_OK;
    if (s.stuck == NULL || s.queue == NULL || s.via == NULL || s.best == NULL) {
        status = dts_diag_nomem(diag);
    } else {
        size_t left = run_what_can(&s);
        if (left > 0) {
            find_shortest(&s);
            status = explain(&s, left, diag);
        }
    }
    free(s.stuck);
    free(s.queue);
    free(s.via);
    free(s.best);
    return status;
}
