/* Running a frozen task graph: the discrete-event simulation.
 *
 * Events are ordered by (time, priority, sequence), so that two runs give the same bytes; the sequence number is the
 * id of the task. At one instant all ends come before the starts that they allow. No allocation happens while time
 * moves. */
#ifndef DTS_ENGINE_SIMULATE_H
#define DTS_ENGINE_SIMULATE_H

#include <stdatomic.h>

#include "engine/graph.h"

/* Told about everything as it happens; any function may be NULL. For traces and teaching. */
typedef struct dts_observer {
    void *context;
    void (*task_started)(void *context, dts_time now, dts_id task);
    void (*task_ended)(void *context, dts_time now, dts_id task);
    void (*memory_changed)(void *context, dts_time now, dts_id device, unsigned category, int64_t bytes, dts_id task);
    void (*rate_changed)(void *context, dts_time now, dts_id task, double rate); /* a flow's share, units/s */
    const atomic_bool *stop; /* set by another thread or a signal: DTS_INTERRUPTED. NULL: nobody tells */
} dts_observer;

/* The highest memory use of one device. */
typedef struct dts_memory_peak {
    int64_t bytes;                                    /* all categories together */
    int64_t by_category[DTS_MEMORY_CATEGORIES_MAX];   /* at the moment of the peak */
    int64_t category_peak[DTS_MEMORY_CATEGORIES_MAX]; /* each category's own peak, at its own moment */
    int64_t final_bytes[DTS_MEMORY_CATEGORIES_MAX];   /* what is left at the end */
    dts_time when;
    dts_id task; /* whose allocation reached it; DTS_NO_ID: the static part */
} dts_memory_peak;

typedef struct dts_simulation dts_simulation;

/* Simulates graph from time 0. DTS_INVALID with an explanation when time would pass DTS_TIME_MAX (naming the task that
 * does not end), or when a ledger goes negative. A deadlock cannot happen here: freeze has refused every graph that
 * could have one, naming who waits for whom. *out is owned by the caller and borrows graph, which must outlive it.
 * observer may be NULL. */
dts_status dts_simulate(const dts_graph *graph, const dts_observer *observer, dts_simulation **out, dts_diag *diag);
void dts_simulation_free(dts_simulation *simulation);

dts_time dts_simulation_end(const dts_simulation *simulation); /* when the last task ended */
uint64_t dts_simulation_events(const dts_simulation *simulation);
/* Start and end of every task, by task id; borrowed. */
const dts_time *dts_simulation_starts(const dts_simulation *simulation);
const dts_time *dts_simulation_ends(const dts_simulation *simulation);
const dts_memory_peak *dts_simulation_peak(const dts_simulation *simulation, dts_id device);

/* Why a task did not start earlier: the dependency or stream predecessor that ended last (ties: the lowest id),
 * DTS_NO_ID when it started at 0. The chain of these from the last task is the critical path. */
dts_id dts_simulation_blocker(const dts_simulation *simulation, dts_id task);

#endif
