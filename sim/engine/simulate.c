/* The event loop.
 *
 * At each instant, in this order: the tasks whose time has come end; then those start that have nothing left to wait
 * for; tasks of no duration may end at once and let others start, so both repeat until nothing more happens; then flows
 * get new rates. Within each step the lower priority goes first, then the task that was added first. */
#include "engine/simulate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/inside.h"
#include "engine/ledger.h"
#include "engine/queue.h"
#include "engine/sharing.h"

struct dts_simulation {
    const dts_graph *graph;
    dts_time *starts, *ends;
    dts_memory_peak *peaks;
    dts_time end;
    uint64_t events;
};

/* What is needed only while time moves. */
typedef struct run {
    const dts_graph *graph;
    const dts_node *nodes;
    const dts_id *successors;
    uint32_t *waits; /* by task: what it still waits for */
    uint8_t *holds;  /* by hold: not begun, begun, over */
    dts_time *starts, *ends;
    dts_queue timers;    /* ends of fixed durations, and of the latencies of flows */
    dts_queue ready;     /* tasks that wait for nothing more, to be started at this instant */
    dts_sharing sharing; /* flows that move, and when they end */
    dts_ledger ledger;
    dts_observer observer;
    dts_time now;
    uint64_t events;
    size_t ended;
    dts_diag *diag;
    dts_status status;
} run;

/* A hold begins, unless it is over already, or ends. */
static void apply_hold(run *r, const dts_effect *effect, dts_id task, dts_memory_moment moment) {
    enum { WAITS, HOLDS, OVER };
    const dts_hold *hold = (const dts_hold *)r->graph->holds.items + effect->bytes;
    uint8_t *state = &r->holds[effect->bytes];
    if (task == hold->until && moment == DTS_AT_END) {
        if (*state == HOLDS) {
            dts_sharing_hold(&r->sharing, hold->resource, false);
        }
        *state = OVER;
    } else if (*state == WAITS) {
        dts_sharing_hold(&r->sharing, hold->resource, true);
        *state = HOLDS;
    }
}

/* Enters what a task does to memory, and to what is held, at this moment. */
static void apply_effects(run *r, dts_id task, dts_memory_moment moment) {
    for (uint32_t i = r->nodes[task].first_effect; i < r->nodes[task + 1].first_effect; i++) {
        const dts_effect *effect = &r->graph->effects[i];
        if (effect->moment != moment) {
            continue;
        }
        if (effect->device == DTS_NO_ID) {
            apply_hold(r, effect, task, moment);
            continue;
        }
        if (r->status != DTS_OK) {
            return; /* the first refusal is the one to explain */
        }
        if (!dts_ledger_enter(&r->ledger, effect, r->now, task)) {
            r->status = dts_ledger_explain(&r->ledger, r->graph, effect, r->now, task, r->diag);
            return;
        }
        if (r->observer.memory_changed != NULL) {
            r->observer.memory_changed(r->observer.context, r->now, effect->device, effect->category, effect->bytes,
                                       task);
        }
    }
}

static void start_task(run *r, dts_id task) {
    const dts_node *node = &r->nodes[task];
    r->starts[task] = r->now;
    if (r->observer.task_started != NULL) {
        r->observer.task_started(r->observer.context, r->now, task);
    }
    apply_effects(r, task, DTS_AT_START);
    dts_time end = node->duration > DTS_TIME_MAX - r->now ? DTS_TIME_MAX : r->now + node->duration;
    dts_queue_push(&r->timers, (dts_event){end, dts_event_order(node->priority, task)});
}

static void end_task(run *r, dts_id task) {
    r->ends[task] = r->now;
    r->ended++;
    if (r->observer.task_ended != NULL) {
        r->observer.task_ended(r->observer.context, r->now, task);
    }
    apply_effects(r, task, DTS_AT_END);
    for (uint32_t i = r->nodes[task].first_successor; i < r->nodes[task + 1].first_successor; i++) {
        dts_id successor = r->successors[i];
        if (--r->waits[successor] == 0) {
            dts_queue_push(&r->ready, (dts_event){r->now, dts_event_order(r->nodes[successor].priority, successor)});
        }
    }
}

/* When the next event happens. */
static dts_time next_time(const run *r) {
    dts_time timer = dts_queue_time(&r->timers);
    dts_time flow = dts_sharing_next(&r->sharing).time;
    return timer < flow ? timer : flow;
}

/* Handles the next timer or the next flow's end. */
static void handle_next(run *r) {
    dts_event timer = dts_queue_top(&r->timers);
    dts_event flow = dts_sharing_next(&r->sharing);
    r->events++;
    if (dts_event_before(flow, timer)) {
        dts_sharing_leave(&r->sharing);
        end_task(r, dts_event_sequence(flow));
        return;
    }
    dts_queue_pop(&r->timers);
    dts_id task = dts_event_sequence(timer);
    if (r->nodes[task].flow == DTS_NO_ID) {
        end_task(r, task);
    } else {
        dts_sharing_join(&r->sharing, task, r->now);
    }
}

static void start_ready(run *r) {
    while (dts_queue_size(&r->ready) > 0) {
        start_task(r, dts_event_sequence(dts_queue_pop(&r->ready)));
    }
}

/* Time would have to pass the largest number. */
static dts_status explain_overflow(run *r) {
    dts_event timer = dts_queue_top(&r->timers);
    dts_event flow = dts_sharing_next(&r->sharing);
    dts_id task = dts_event_sequence(dts_event_before(flow, timer) ? flow : timer);
    char name[128];
    dts_graph_task_name(r->graph, task, name, sizeof name);
    return dts_diag_error(r->diag, NULL, NULL, "look for a duration that is far too long or a rate that is far too low",
                          "simulated time would pass 106 days: %s, started at %.6g s, does not end; %zu of %zu tasks "
                          "are left",
                          name, dts_time_to_s(r->starts[task]), r->graph->tasks - r->ended, r->graph->tasks);
}

static dts_status move_time(run *r) {
    for (size_t task = 0; task < r->graph->tasks; task++) {
        if (r->waits[task] == 0) {
            dts_queue_push(&r->ready, (dts_event){0, dts_event_order(r->nodes[task].priority, (dts_id)task)});
        }
    }
    start_ready(r);
    while (r->ended < r->graph->tasks && r->status == DTS_OK) {
        if (r->observer.stop != NULL && atomic_load_explicit(r->observer.stop, memory_order_relaxed)) {
            return DTS_INTERRUPTED;
        }
        r->now = next_time(r);
        if (r->now == DTS_TIME_MAX) {
            return explain_overflow(r);
        }
        do {
            do {
                handle_next(r);
            } while (next_time(r) == r->now);
            start_ready(r);
        } while (next_time(r) == r->now && r->status == DTS_OK);
        dts_sharing_settle(&r->sharing, r->now, &r->observer);
    }
    return r->status;
}

/* Everything that the run will need, so that nothing is allocated while time moves. */
static dts_status prepare(run *r, dts_simulation *simulation) {
    const dts_graph *graph = r->graph;
    size_t tasks = graph->tasks;
    /* A task that runs or is ready is alone on at least one stream, or is one without. */
    size_t most = dts_graph_streams(graph) + graph->delays;
    most = tasks < most ? tasks : most;
    r->starts = simulation->starts = malloc((tasks + 1) * sizeof(dts_time));
    r->ends = simulation->ends = malloc((tasks + 1) * sizeof(dts_time));
    r->waits = malloc((tasks + 1) * sizeof(uint32_t));
    r->holds = calloc(graph->holds.count + 1, sizeof(uint8_t));
    bool room = dts_queue_init(&r->timers, most);
    room &= dts_queue_init(&r->ready, most);
    room &= dts_sharing_init(&r->sharing, graph);
    if (!room || r->starts == NULL || r->ends == NULL || r->waits == NULL || r->holds == NULL) {
        return dts_diag_nomem(r->diag);
    }
    memcpy(r->waits, graph->waits, tasks * sizeof(uint32_t));
    return dts_ledger_init(&r->ledger, graph, r->diag);
}

dts_status dts_simulate(const dts_graph *graph, const dts_observer *observer, dts_simulation **out, dts_diag *diag) {
    *out = NULL;
    if (!graph->frozen) {
        return dts_diag_error(diag, NULL, NULL, NULL, "the task graph is not frozen");
    }
    dts_simulation *simulation = calloc(1, sizeof *simulation);
    if (simulation == NULL) {
        return dts_diag_nomem(diag);
    }
    run r = {.graph = graph,
             .nodes = graph->nodes.items,
             .successors = graph->successors,
             .observer = observer != NULL ? *observer : (dts_observer){0},
             .diag = diag};
    dts_status status = prepare(&r, simulation);
    if (status == DTS_OK) {
        status = move_time(&r);
        dts_ledger_close(&r.ledger);
        simulation->graph = graph;
        simulation->end = r.now;
        simulation->events = r.events;
        simulation->peaks = r.ledger.peaks;
        r.ledger.peaks = NULL;
    }
    dts_queue_free(&r.timers);
    dts_queue_free(&r.ready);
    dts_sharing_free(&r.sharing);
    dts_ledger_free(&r.ledger);
    free(r.waits);
    free(r.holds);
    if (status != DTS_OK) {
        dts_simulation_free(simulation);
        simulation = NULL;
    }
    *out = simulation;
    return status;
}

void dts_simulation_free(dts_simulation *simulation) {
    if (simulation != NULL) {
        free(simulation->starts);
        free(simulation->ends);
        free(simulation->peaks);
        free(simulation);
    }
}

dts_time dts_simulation_end(const dts_simulation *simulation) {
    return simulation->end;
}

uint64_t dts_simulation_events(const dts_simulation *simulation) {
    return simulation->events;
}

const dts_time *dts_simulation_starts(const dts_simulation *simulation) {
    return simulation->starts;
}

const dts_time *dts_simulation_ends(const dts_simulation *simulation) {
    return simulation->ends;
}

const dts_memory_peak *dts_simulation_peak(const dts_simulation *simulation, dts_id device) {
    return &simulation->peaks[device];
}

dts_id dts_simulation_blocker(const dts_simulation *simulation, dts_id task) {
    const dts_graph *graph = simulation->graph;
    if (simulation->starts[task] == 0) {
        return DTS_NO_ID;
    }
    dts_id blocker = DTS_NO_ID;
    const dts_time *ends = simulation->ends;
    size_t count;
    const dts_id *awaited = dts_graph_awaited(graph, task, &count);
    for (size_t i = 0; i < count; i++) {
        dts_id before = awaited[i];
        if (before != DTS_NO_ID && (blocker == DTS_NO_ID || ends[before] > ends[blocker] ||
                                    (ends[before] == ends[blocker] && before < blocker))) {
            blocker = before;
        }
    }
    return blocker;
}
