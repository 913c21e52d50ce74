/* What the files of this room share: the layout of a graph. Not for other rooms. */
#ifndef DTS_ENGINE_INSIDE_H
#define DTS_ENGINE_INSIDE_H

#include <stdbool.h>

#include "engine/graph.h"

/* What the event loop touches of a task: 24 bytes side by side, so that a task costs one cache line. */
typedef struct dts_node {
    dts_time duration;
    int32_t priority;
    uint32_t flow;            /* index into flows; DTS_NO_ID: fixed duration only */
    uint32_t first_successor; /* into successors; the next node's is the end */
    uint32_t first_effect;    /* into effects; the next node's is the end */
} dts_node;

typedef struct dts_flow {
    double work;
    double rate_cap; /* 0: none */
    uint32_t first_hop;
    uint32_t hop_count;
} dts_flow;

/* One change of a memory ledger; or the beginning or end of a hold, whose number stands for the bytes. */
typedef struct dts_effect {
    int64_t bytes;
    dts_id device; /* DTS_NO_ID: a hold */
    uint16_t category;
    uint16_t moment; /* dts_memory_moment */
} dts_effect;

typedef struct dts_task_effect {
    dts_effect effect;
    dts_id task;
} dts_task_effect;

typedef struct dts_dependency {
    dts_id after, before;
} dts_dependency;

typedef struct dts_stream {
    const char *name;
    dts_id device;
    uint32_t flow; /* of the latest task whose first stream it is and that had one; DTS_NO_ID: none yet */
} dts_stream;

typedef struct dts_resource {
    const char *name;
    double capacity;
    double held; /* of it, while any hold lasts; 0: there are none */
} dts_resource;

/* For a while a part of a resource's capacity is not there. */
typedef struct dts_hold {
    dts_id resource;
    dts_id until; /* the task that ends it */
} dts_hold;

/* A growable array. What the items are is said where the pool is declared. */
typedef struct dts_pool {
    void *items;
    size_t count, capacity;
} dts_pool;

/* Compressed rows: the items of row i are items[first[i]] … items[first[i + 1] - 1]. */
typedef struct dts_rows {
    uint32_t *first;
    dts_id *items;
} dts_rows;

struct dts_graph {
    dts_arena *names;
    dts_diag *problems; /* what the add functions refused; freeze reports it */
    dts_task_namer *namer;
    const void *namer_context;
    bool frozen;
    bool refused; /* freeze found an error; it stays one */
    bool out_of_memory;

    dts_pool devices;   /* const char *, the name */
    dts_pool streams;   /* dts_stream */
    dts_pool resources; /* dts_resource */
    dts_pool statics;   /* dts_effect: the memory that is there from the beginning */
    dts_pool holds;     /* dts_hold */

    size_t tasks;
    size_t delays;         /* of these, without a stream */
    dts_pool nodes;        /* dts_node by task, and one more as the end of the last */
    dts_pool tags;         /* uint32_t by task */
    dts_pool first_stream; /* uint32_t by task, and one more: into task_streams */
    dts_pool task_streams; /* dts_id */
    dts_pool flows;        /* dts_flow; tasks of one stream share it where it is the same */
    dts_pool hops;         /* dts_hop */
    dts_pool dependencies; /* dts_dependency; freeze frees them and leaves their count */
    dts_pool places; /* dts_id: the task at a place in the order of streams; behind the last, place and id agree */
    dts_pool task_effects; /* dts_task_effect, in the order in which they were added; freed by freeze */

    /* Made by freeze. */
    dts_id *place_of;    /* places the other way round, as far as they go */
    dts_rows awaited;    /* by task: its dependencies, then the task before it on each of its streams (or DTS_NO_ID) */
    uint32_t *waits;     /* by task: how many it waits for, DTS_NO_ID not counted */
    dts_id *successors;  /* by task (dts_node.first_successor): who waits for it */
    dts_effect *effects; /* by task (dts_node.first_effect) */
    dts_rows stream_tasks; /* by stream: its tasks in order */
};

static inline dts_node *dts_graph_nodes(const dts_graph *graph) {
    return graph->nodes.items;
}

static inline const dts_resource *dts_graph_resource(const dts_graph *graph, dts_id resource) {
    return (const dts_resource *)graph->resources.items + resource;
}

static inline dts_id dts_graph_task_at(const dts_graph *graph, size_t place) {
    return place < graph->places.count ? ((const dts_id *)graph->places.items)[place] : (dts_id)place;
}

/* Frozen graph only. */
static inline dts_id dts_graph_place(const dts_graph *graph, dts_id task) {
    return task < graph->places.count ? graph->place_of[task] : task;
}

/* The streams that a task occupies. */
static inline const dts_id *dts_graph_task_streams(const dts_graph *graph, dts_id task, size_t *count) {
    const uint32_t *first = graph->first_stream.items;
    *count = first[task + 1] - first[task];
    return (const dts_id *)graph->task_streams.items + first[task];
}

/* All that a task waits for: the row of graph->awaited. Frozen graph only. */
static inline const dts_id *dts_graph_awaited(const dts_graph *graph, dts_id task, size_t *count) {
    const uint32_t *first = graph->awaited.first;
    *count = first[task + 1] - first[task];
    return graph->awaited.items + first[task];
}

/* Makes room for more items of size bytes each behind the last one. False: memory ran out. */
bool dts_pool_reserve(dts_pool *pool, size_t more, size_t size);
void dts_pool_free(dts_pool *pool);

/* When tasks wait for each other in a circle: adds an error that names the shortest circle found and returns
 * DTS_INVALID. Needs all that freeze makes. */
dts_status dts_graph_check_cycles(const dts_graph *graph, dts_diag *diag);

#endif
