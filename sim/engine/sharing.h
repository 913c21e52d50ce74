/* Flows that move, and the rates at which they do: max-min fair sharing of resources. */
#ifndef DTS_ENGINE_SHARING_H
#define DTS_ENGINE_SHARING_H

#include "engine/inside.h"
#include "engine/queue.h"
#include "engine/simulate.h"

/* A flow that moves. */
typedef struct dts_moving {
    dts_id task;
    const dts_flow *flow;
    const dts_hop *hops;
    double remaining;   /* units left at the time `updated` */
    double rate;        /* units per second since then; 0: it has just joined */
    double fair_rate;   /* what the solver found */
    dts_time updated;   /* ps */
    uint32_t heap_slot; /* its place in the heap of ends; DTS_NO_ID: it has just joined */
    uint32_t visit;     /* the last settlement that came across it */
    dts_id held_by;     /* the full resource that its rate comes from; DTS_NO_ID: its cap */
    bool fixed;         /* the solver has found its rate */
} dts_moving;

/* A flow that crosses a resource, by its index among the moving ones. */
typedef struct dts_member {
    uint32_t moving;
    double weight;
} dts_member;

/* A resource during the simulation. */
typedef struct dts_shared {
    double capacity; /* units per second, without what is held */
    double left;     /* solver: of the capacity */
    double share;    /* solver: the rate at which its open members would use up what was left at the last look */
    size_t first_member;
    uint32_t member_count;
    uint32_t holds; /* that last now */
    uint32_t open;  /* solver: members not yet fixed */
    uint32_t visit; /* the last settlement that came across it */
    uint32_t apart; /* the last one that settled it apart from others */
    bool stale;     /* solver: a member was fixed since the last look */
    bool changed;   /* a member has left, or more or less is held, since the last settlement */
} dts_shared;

/* When a flow ends at its present rate. */
typedef struct dts_flow_end {
    dts_event event;
    uint32_t moving;
} dts_flow_end;

/* Flows and resources that are connected: every flow that crosses one of the resources, and every resource that one of
 * the flows crosses. */
typedef struct dts_component {
    uint32_t *flows;
    size_t flow_count;
    dts_id *resources;
    size_t resource_count;
} dts_component;

typedef struct dts_sharing {
    const dts_graph *graph;
    dts_moving *moving; /* at most one per stream is in use */
    uint32_t *vacant;   /* stack of the unused ones */
    size_t vacant_count;
    dts_shared *shared;  /* by resource */
    dts_member *members; /* those of resource r begin at shared[r].first_member */
    dts_flow_end *heap;  /* binary heap, the earliest end first */
    size_t heap_count;
    uint32_t *joined; /* flows that have joined since the last settlement */
    size_t joined_count;
    dts_id *changed; /* resources that a flow has left, or of which more or less is held, since then */
    size_t changed_count;
    dts_component component; /* of the settlement under way */
    uint32_t *capped;        /* solver: flows of the component that have a cap and are not fixed */
    size_t capped_count;
    uint32_t visit; /* number of the last settlement */
} dts_sharing;

bool dts_sharing_init(dts_sharing *sharing, const dts_graph *graph);
void dts_sharing_free(dts_sharing *sharing);

/* The flow of task begins to move. */
void dts_sharing_join(dts_sharing *sharing, dts_id task, dts_time now);

/* When the next flow ends, at the rates of the last settlement; DTS_EVENT_NEVER when none moves. */
static inline dts_event dts_sharing_next(const dts_sharing *sharing) {
    return sharing->heap_count > 0 ? sharing->heap[0].event : DTS_EVENT_NEVER;
}

/* One hold of a resource begins or ends. */
void dts_sharing_hold(dts_sharing *sharing, dts_id resource, bool begins);

/* Takes that flow out. */
void dts_sharing_leave(dts_sharing *sharing);

/* Gives every flow that is connected with a change its new fair rate and end. Once per instant is enough. */
void dts_sharing_settle(dts_sharing *sharing, dts_time now, const dts_observer *observer);

/* The solver: sets fair_rate of the flows of sharing->component, and uses up its list of resources. */
void dts_sharing_solve(dts_sharing *sharing);

/* The same for a flow that shares nothing. */
void dts_sharing_solve_alone(const dts_sharing *sharing, dts_moving *moving);

/* The same for flows that cross this resource only, where that leaves the rates of all others as they are (fair.c).
 * False: it does not. */
bool dts_sharing_solve_within(dts_sharing *sharing, dts_id resource);

#endif
