/* Which flows move, what is left of each, and when it ends.
 *
 * A flow that moves at rate x [units/s] since t0 with w0 units left then has
 *     w(t) = w0 - x (t - t0)   and ends at   t0 + w0 / x,
 * rounded to the nearest picosecond. w0 and t0 are renewed only when the rate changes, so that a flow whose rate never
 * changes ends exactly work / rate after it began, however much happens elsewhere. */
#include "engine/sharing.h"

#include <math.h>
#include <stdlib.h>

/* Rates that differ by less are the same: the difference is rounding in the solver (sums of up to 1e4 terms of
 * relative error 1e-16). */
static const double SAME_RATE = 1e-12;

bool dts_sharing_init(dts_sharing *sharing, const dts_graph *graph) {
    size_t flows = graph->flows.count;
    size_t most = flows < graph->streams.count ? flows : graph->streams.count;
    size_t resources = graph->resources.count;
    *sharing = (dts_sharing){
        .graph = graph,
        .moving = calloc(most + 1, sizeof(dts_moving)),
        .vacant = calloc(most + 1, sizeof(uint32_t)),
        .shared = calloc(resources + 1, sizeof(dts_shared)),
        .members = malloc((graph->hops.count + 1) * sizeof(dts_member)),
        .heap = calloc(most + 1, sizeof(dts_flow_end)),
        .joined = calloc(most + 1, sizeof(uint32_t)),
        .changed = calloc(resources + 1, sizeof(dts_id)),
        .component = {.flows = calloc(most + 1, sizeof(uint32_t)), .resources = calloc(resources + 1, sizeof(dts_id))},
        .capped = calloc(most + 1, sizeof(uint32_t)),
    };
    if (sharing->moving == NULL || sharing->vacant == NULL || sharing->shared == NULL || sharing->members == NULL ||
        sharing->heap == NULL || sharing->joined == NULL || sharing->changed == NULL ||
        sharing->component.flows == NULL || sharing->component.resources == NULL || sharing->capped == NULL) {
        return false;
    }
    while (sharing->vacant_count < most) {
        sharing->vacant[sharing->vacant_count] = (uint32_t)(most - 1 - sharing->vacant_count);
        sharing->vacant_count++;
    }
    /* Room for all different flows of the graph that ever cross a resource: of those that are shared by the tasks of a
     * stream one moves at a time. Untouched memory costs nothing. */
    const dts_hop *hops = graph->hops.items;
    for (size_t i = 0; i < graph->hops.count; i++) {
        sharing->shared[hops[i].resource].first_member++;
    }
    size_t sum = 0;
    for (size_t i = 0; i < resources; i++) {
        size_t count = sharing->shared[i].first_member;
        sharing->shared[i].first_member = sum;
        sharing->shared[i].capacity = dts_graph_resource(graph, (dts_id)i)->capacity;
        sum += count;
    }
    return true;
}

void dts_sharing_free(dts_sharing *sharing) {
    free(sharing->moving);
    free(sharing->vacant);
    free(sharing->shared);
    free(sharing->members);
    free(sharing->heap);
    free(sharing->joined);
    free(sharing->changed);
    free(sharing->component.flows);
    free(sharing->component.resources);
    free(sharing->capped);
    *sharing = (dts_sharing){0};
}

static void place(dts_sharing *sharing, size_t slot, dts_flow_end end) {
    sharing->heap[slot] = end;
    sharing->moving[end.moving].heap_slot = (uint32_t)slot;
}

/* Puts an end where it belongs, given that only the one in slot may be out of order. */
static void sift(dts_sharing *sharing, size_t slot, dts_flow_end end) {
    dts_flow_end *heap = sharing->heap;
    while (slot > 0 && dts_event_before(end.event, heap[(slot - 1) / 2].event)) {
        place(sharing, slot, heap[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * slot + 1;
        if (child + 1 < sharing->heap_count && dts_event_before(heap[child + 1].event, heap[child].event)) {
            child++;
        }
        if (child >= sharing->heap_count || !dts_event_before(heap[child].event, end.event)) {
            break;
        }
        place(sharing, slot, heap[child]);
        slot = child;
    }
    place(sharing, slot, end);
}

void dts_sharing_join(dts_sharing *sharing, dts_id task, dts_time now) {
    const dts_graph *graph = sharing->graph;
    uint32_t index = sharing->vacant[--sharing->vacant_count];
    dts_moving *moving = &sharing->moving[index];
    const dts_flow *flow = (const dts_flow *)graph->flows.items + dts_graph_nodes(graph)[task].flow;
    moving->task = task;
    moving->flow = flow;
    moving->hops = (const dts_hop *)graph->hops.items + flow->first_hop;
    moving->remaining = flow->work;
    moving->rate = moving->fair_rate = 0;
    moving->updated = now;
    moving->heap_slot = DTS_NO_ID;
    moving->held_by = DTS_NO_ID;
    moving->visit = 0;
    moving->fixed = false;
    for (uint32_t i = 0; i < flow->hop_count; i++) {
        dts_shared *shared = &sharing->shared[moving->hops[i].resource];
        sharing->members[shared->first_member + shared->member_count++] = (dts_member){index, moving->hops[i].weight};
    }
    sharing->joined[sharing->joined_count++] = index;
}

static void note_change(dts_sharing *sharing, dts_id resource) {
    dts_shared *shared = &sharing->shared[resource];
    if (!shared->changed) {
        shared->changed = true;
        sharing->changed[sharing->changed_count++] = resource;
    }
}

void dts_sharing_hold(dts_sharing *sharing, dts_id resource, bool begins) {
    static const double least = 1.0 / 16; /* so that time moves */
    const dts_resource *whole = dts_graph_resource(sharing->graph, resource);
    dts_shared *shared = &sharing->shared[resource];
    shared->holds = begins ? shared->holds + 1 : shared->holds - 1;
    shared->capacity =
        shared->holds > 0 ? fmax(whole->capacity - whole->held, least * whole->capacity) : whole->capacity;
    note_change(sharing, resource);
}

/* Takes one membership of a flow in a resource away; the order of the others does not matter. */
static void remove_member(dts_sharing *sharing, dts_id resource, uint32_t moving) {
    dts_shared *shared = &sharing->shared[resource];
    dts_member *members = sharing->members + shared->first_member;
    uint32_t i = 0;
    while (members[i].moving != moving) {
        i++;
    }
    members[i] = members[--shared->member_count];
    note_change(sharing, resource);
}

void dts_sharing_leave(dts_sharing *sharing) {
    uint32_t index = sharing->heap[0].moving;
    const dts_moving *moving = &sharing->moving[index];
    dts_flow_end last = sharing->heap[--sharing->heap_count];
    if (sharing->heap_count > 0) {
        sift(sharing, 0, last);
    }
    for (uint32_t i = 0; i < moving->flow->hop_count; i++) {
        remove_member(sharing, moving->hops[i].resource, index);
    }
    sharing->vacant[sharing->vacant_count++] = index;
}

static void visit_flow(dts_sharing *sharing, uint32_t index) {
    dts_moving *moving = &sharing->moving[index];
    if (moving->visit != sharing->visit) {
        moving->visit = sharing->visit;
        sharing->component.flows[sharing->component.flow_count++] = index;
    }
}

static void visit_resource(dts_sharing *sharing, dts_id resource) {
    dts_shared *shared = &sharing->shared[resource];
    if (shared->visit != sharing->visit) {
        shared->visit = sharing->visit;
        sharing->component.resources[sharing->component.resource_count++] = resource;
    }
}

/* Completes the component from the one flow or resource that is in it. */
static void collect_component(dts_sharing *sharing) {
    dts_component *component = &sharing->component;
    size_t flows_done = 0;
    size_t resources_done = 0;
    while (flows_done < component->flow_count || resources_done < component->resource_count) {
        while (flows_done < component->flow_count) {
            const dts_moving *moving = &sharing->moving[component->flows[flows_done++]];
            for (uint32_t i = 0; i < moving->flow->hop_count; i++) {
                visit_resource(sharing, moving->hops[i].resource);
            }
        }
        while (resources_done < component->resource_count) {
            const dts_shared *shared = &sharing->shared[component->resources[resources_done++]];
            for (uint32_t i = 0; i < shared->member_count; i++) {
                visit_flow(sharing, sharing->members[shared->first_member + i].moving);
            }
        }
    }
}

/* Gives a flow the rate that the solver found for it. */
static void apply_rate(dts_sharing *sharing, uint32_t index, dts_time now, const dts_observer *observer) {
    dts_moving *moving = &sharing->moving[index];
    if (fabs(moving->fair_rate - moving->rate) <= SAME_RATE * moving->rate) {
        return;
    }
    double moved = moving->rate * dts_time_to_s(now - moving->updated);
    moving->remaining = moved < moving->remaining ? moving->remaining - moved : 0;
    moving->rate = moving->fair_rate;
    moving->updated = now;
    dts_time takes = dts_time_from_s(moving->remaining / moving->rate);
    dts_time end = takes > DTS_TIME_MAX - now ? DTS_TIME_MAX : now + takes;
    int32_t priority = dts_graph_nodes(sharing->graph)[moving->task].priority;
    size_t slot = moving->heap_slot == DTS_NO_ID ? sharing->heap_count++ : moving->heap_slot;
    sift(sharing, slot, (dts_flow_end){{end, dts_event_order(priority, moving->task)}, index});
    if (observer->rate_changed != NULL) {
        observer->rate_changed(observer->context, now, moving->task, moving->rate);
    }
}

/* What was found for the component holds from now on. */
static void apply_component(dts_sharing *sharing, dts_time now, const dts_observer *observer) {
    for (size_t i = 0; i < sharing->component.flow_count; i++) {
        apply_rate(sharing, sharing->component.flows[i], now, observer);
    }
}

static void clear_component(dts_sharing *sharing) {
    sharing->component.flow_count = 0;
    sharing->component.resource_count = 0;
}

static void settle_component(dts_sharing *sharing, dts_time now, const dts_observer *observer) {
    collect_component(sharing);
    dts_sharing_solve(sharing);
    apply_component(sharing, now, observer);
    clear_component(sharing);
}

/* Settles a resource whose own flows have changed: apart from all that is connected where that is possible. What else
 * is settled at this instant may still reach it then. */
static void settle_resource(dts_sharing *sharing, dts_id resource, dts_time now, const dts_observer *observer) {
    dts_shared *shared = &sharing->shared[resource];
    if (shared->visit == sharing->visit || shared->apart == sharing->visit) {
        return;
    }
    if (dts_sharing_solve_within(sharing, resource)) {
        shared->apart = sharing->visit;
        apply_component(sharing, now, observer);
        clear_component(sharing);
    } else {
        clear_component(sharing);
        visit_resource(sharing, resource);
        settle_component(sharing, now, observer);
    }
}

/* Is a flow the only one on all of its way? */
static bool is_alone(const dts_sharing *sharing, const dts_moving *moving) {
    for (uint32_t i = 0; i < moving->flow->hop_count; i++) {
        if (sharing->shared[moving->hops[i].resource].member_count != 1) {
            return false;
        }
    }
    return true;
}

/* Gives a flow that has just joined its rate: most are alone, and need no others looked at. */
static void settle_joined(dts_sharing *sharing, uint32_t index, dts_time now, const dts_observer *observer) {
    dts_moving *moving = &sharing->moving[index];
    if (is_alone(sharing, moving)) {
        dts_sharing_solve_alone(sharing, moving);
        apply_rate(sharing, index, now, observer);
    } else if (moving->flow->hop_count == 1) {
        settle_resource(sharing, moving->hops[0].resource, now, observer);
    } else {
        visit_flow(sharing, index);
        settle_component(sharing, now, observer);
    }
}

void dts_sharing_settle(dts_sharing *sharing, dts_time now, const dts_observer *observer) {
    if (sharing->joined_count + sharing->changed_count == 0) {
        return;
    }
    sharing->visit++;
    for (size_t i = 0; i < sharing->joined_count; i++) {
        settle_joined(sharing, sharing->joined[i], now, observer);
    }
    for (size_t i = 0; i < sharing->changed_count; i++) {
        const dts_id resource = sharing->changed[i];
        dts_shared *shared = &sharing->shared[resource];
        shared->changed = false;
        if (shared->member_count > 0) {
            settle_resource(sharing, resource, now, observer);
        }
    }
    sharing->joined_count = 0;
    sharing->changed_count = 0;
}
