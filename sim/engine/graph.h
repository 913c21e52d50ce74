/* The task graph: what has to happen, on which streams, after what, and what it does to memory.
 *
 * The engine knows no GPU and no layer. A *device* owns memory. A *stream* executes its tasks one at a time in the
 * order in which they were added (the semantics of a CUDA stream, and of a host thread that issues work). A task may
 * occupy several streams (a collective among ranks): it starts when it is at the head of all of them and all its
 * dependencies have ended; a task without streams is a delay between others. A *resource* (a link, a NIC, a memory bus)
 * is shared max-min fairly by the flows that cross it.
 *
 * Build with the add functions, then dts_graph_freeze, then simulate as often as wanted: a frozen graph is immutable.
 */
#ifndef DTS_ENGINE_GRAPH_H
#define DTS_ENGINE_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/time.h"

typedef struct dts_graph dts_graph;
typedef uint32_t dts_id; /* index of a device, stream, resource or task, each counted from 0 */

#define DTS_NO_ID UINT32_MAX

enum { DTS_MEMORY_CATEGORIES_MAX = 16 };

/* One hop of a flow. weight: units of the resource used per unit of work (2.0: the work crosses it twice). */
typedef struct dts_hop {
    dts_id resource;
    double weight;
} dts_hop;

/* A task. Zero is a sensible default for all but streams. */
typedef struct dts_task {
    const dts_id *streams; /* occupied from start to end; copied */
    size_t stream_count;   /* 0: a delay, which only its dependencies hold up */
    int32_t priority;      /* among events of the same instant the lower goes first */
    dts_time duration;     /* fixed part, ps; for a flow: latency before the work begins to move */
    double work;           /* > 0: a flow of this many units (bytes) after the fixed part */
    double rate_cap;       /* most units per second this flow can use; 0: none */
    const dts_hop *hops;   /* resources crossed by the work; copied */
    size_t hop_count;
    uint32_t tag; /* free for the builder: an index into its own table of what the task is */
} dts_task;

typedef enum dts_memory_moment { DTS_AT_START, DTS_AT_END } dts_memory_moment;

/* Names a task for explanations; writes at most size bytes into buffer. */
typedef void dts_task_namer(const void *context, dts_id task, uint32_t tag, char *buffer, size_t size);

dts_graph *dts_graph_new(void);
void dts_graph_free(dts_graph *graph);

/* Makes room for about so many tasks, so that tables need not grow and be moved; there may be fewer or more. */
void dts_graph_expect(dts_graph *graph, size_t tasks);

/* For the explanations of cycles and deadlocks; without it tasks are called "task 17". */
void dts_graph_set_namer(dts_graph *graph, dts_task_namer *namer, const void *context);

/* The add functions return the new id, or DTS_NO_ID when memory ran out or an argument is impossible (sticky; reported
 * by dts_graph_freeze, so that builders need not check each call). Names are copied. */
dts_id dts_graph_add_device(dts_graph *graph, const char *name);
dts_id dts_graph_add_stream(dts_graph *graph, dts_id device, const char *name);
dts_id dts_graph_add_resource(dts_graph *graph, const char *name, double capacity); /* units per second, > 0 */
dts_id dts_graph_add_task(dts_graph *graph, const dts_task *task);

/* after starts only when before has ended. before may have a higher id than after. DTS_NO_ID as before is ignored, so
 * that "the previous one, if any" needs no test. */
void dts_graph_depend(dts_graph *graph, dts_id after, dts_id before);

/* The count tasks that begin with first take their places on their streams in the given order of ids instead of that of
 * adding: two pieces of work that were built one after the other are issued in turns. order is copied; it holds each of
 * these tasks once. */
void dts_graph_arrange(dts_graph *graph, dts_id first, const dts_id *order, size_t count);

/* units of a resource's capacity are not there for flows while any hold of it lasts, at most 15/16 of it: from the end
 * of after (DTS_NO_ID: from the start of until) to the end of until; never, if until has ended before. A kernel that
 * occupies multiprocessors whether it moves data or waits for it; those of one stream run one at a time, so that holds
 * of a resource do not add up. units are the same for all holds of a resource. */
void dts_graph_hold(dts_graph *graph, dts_id resource, double units, dts_id after, dts_id until);

/* bytes (negative: freed) of a category change on device when the task starts or ends. */
void dts_graph_memory(dts_graph *graph, dts_id task, dts_memory_moment moment, dts_id device, unsigned category,
                      int64_t bytes);
/* bytes of a category that are there from the beginning. */
void dts_graph_memory_static(dts_graph *graph, dts_id device, unsigned category, int64_t bytes);

/* Checks and indexes the graph. DTS_INVALID with an explanation that names the tasks when a dependency is dangling or
 * the dependencies and stream orders form a cycle (the shortest one found is printed); DTS_NOMEM when building ran out.
 */
dts_status dts_graph_freeze(dts_graph *graph, dts_diag *diag);

size_t dts_graph_devices(const dts_graph *graph);
size_t dts_graph_streams(const dts_graph *graph);
size_t dts_graph_resources(const dts_graph *graph);
size_t dts_graph_tasks(const dts_graph *graph);
size_t dts_graph_dependencies(const dts_graph *graph);
const char *dts_graph_device_name(const dts_graph *graph, dts_id device);
const char *dts_graph_stream_name(const dts_graph *graph, dts_id stream);
const char *dts_graph_resource_name(const dts_graph *graph, dts_id resource);
dts_id dts_graph_stream_device(const dts_graph *graph, dts_id stream);
size_t dts_graph_holds(const dts_graph *graph);
dts_id dts_graph_hold_resource(const dts_graph *graph, size_t hold);
dts_id dts_graph_hold_until(const dts_graph *graph, size_t hold); /* the task that ends it */

/* A view of a task; pointers are borrowed from the graph. */
dts_task dts_graph_task(const dts_graph *graph, dts_id task);
/* The name that explanations use; writes at most size bytes into buffer, the final zero included. */
void dts_graph_task_name(const dts_graph *graph, dts_id task, char *buffer, size_t size);
/* Frozen graph only: the tasks that task waits for, and the tasks of one stream in order; borrowed. */
const dts_id *dts_graph_predecessors(const dts_graph *graph, dts_id task, size_t *count);
/* These, and the task before it on each of its streams (DTS_NO_ID: it is the first). */
const dts_id *dts_graph_awaited_by(const dts_graph *graph, dts_id task, size_t *count);
const dts_id *dts_graph_stream_tasks(const dts_graph *graph, dts_id stream, size_t *count);
/* Frozen graph only: adds to by_device what task changes in each device's memory from before its start to after its
 * end, B. */
void dts_graph_memory_changes(const dts_graph *graph, dts_id task, int64_t *by_device);

#endif
