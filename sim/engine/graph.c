#include "engine/graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "engine/inside.h"

bool dts_pool_reserve(dts_pool *pool, size_t more, size_t size) {
    if (more <= pool->capacity - pool->count) {
        return true;
    }
    if (more > SIZE_MAX / 4 / size - pool->count) {
        return false;
    }
    void *items = dts_array_grow(pool->items, &pool->capacity, pool->count + more, size);
    pool->items = items != NULL ? items : pool->items;
    return items != NULL;
}

void dts_pool_free(dts_pool *pool) {
    free(pool->items);
    *pool = (dts_pool){0};
}

dts_graph *dts_graph_new(void) {
    dts_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        return NULL;
    }
    graph->names = dts_arena_new(DTS_ARENA_UNLIMITED);
    graph->problems = dts_diag_new();
    /* The rows of the streams of a task need an end, also of the last task: one more than there are tasks. */
    if (graph->names == NULL || graph->problems == NULL ||
        !dts_pool_reserve(&graph->first_stream, 1, sizeof(uint32_t))) {
        dts_graph_free(graph);
        return NULL;
    }
    *(uint32_t *)graph->first_stream.items = 0;
    graph->first_stream.count = 1;
    return graph;
}

void dts_graph_free(dts_graph *graph) {
    if (graph == NULL) {
        return;
    }
    dts_arena_free(graph->names);
    dts_diag_free(graph->problems);
    dts_pool *pools[] = {&graph->devices, &graph->streams, &graph->resources,    &graph->statics,
                         &graph->nodes,   &graph->tags,    &graph->first_stream, &graph->task_streams,
                         &graph->flows,   &graph->hops,    &graph->dependencies, &graph->task_effects,
                         &graph->places,  &graph->holds};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        dts_pool_free(pools[i]);
    }
    free(graph->place_of);
    free(graph->waits);
    free(graph->successors);
    free(graph->effects);
    free(graph->awaited.first);
    free(graph->awaited.items);
    free(graph->stream_tasks.first);
    free(graph->stream_tasks.items);
    free(graph);
}

void dts_graph_expect(dts_graph *graph, size_t tasks) {
    const struct {
        dts_pool *pool;
        size_t size;
    } tables[] = {{&graph->nodes, sizeof(dts_node)},
                  {&graph->tags, sizeof(uint32_t)},
                  {&graph->first_stream, sizeof(uint32_t)},
                  {&graph->task_streams, sizeof(dts_id)},
                  {&graph->dependencies, sizeof(dts_dependency)},
                  {&graph->task_effects, sizeof(dts_task_effect)}};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        dts_pool_reserve(tables[i].pool, tasks, tables[i].size); /* what is not there now may be later */
    }
}

void dts_graph_set_namer(dts_graph *graph, dts_task_namer *namer, const void *context) {
    graph->namer = namer;
    graph->namer_context = context;
}

void dts_graph_task_name(const dts_graph *graph, dts_id task, char *buffer, size_t size) {
    if (graph->namer != NULL && task < graph->tasks) {
        graph->namer(graph->namer_context, task, ((const uint32_t *)graph->tags.items)[task], buffer, size);
    } else {
        snprintf(buffer, size, "task %" PRIu32, task);
    }
}

/* An id is a 32-bit number, and one stands for none. */
static const size_t MOST_ITEMS = (size_t)DTS_NO_ID - 1;

/* Can so many be added as things are? Nearly always. */
static inline bool has_room(const dts_pool *pool, size_t more) {
    return more <= pool->capacity - pool->count && pool->count + more <= MOST_ITEMS;
}

/* Whether the add functions may add to this pool: memory is left, and one more id. Sets out_of_memory if not. */
static bool can_add(dts_graph *graph, dts_pool *pool, size_t more, size_t size) {
    if (graph->out_of_memory || graph->frozen) {
        return false;
    }
    if (has_room(pool, more)) {
        return true;
    }
    if (more > MOST_ITEMS - pool->count) {
        dts_diag_error(graph->problems, NULL, NULL, "simulate less detail, or fewer ranks",
                       "the graph is too large: an id is a 32-bit number");
        return false;
    }
    graph->out_of_memory = !dts_pool_reserve(pool, more, size);
    return !graph->out_of_memory;
}

/* A copy of a name; remembers when memory ran out. */
static const char *copy_name(dts_graph *graph, const char *name) {
    const char *copy = dts_arena_strdup(graph->names, name);
    graph->out_of_memory |= copy == NULL;
    return copy;
}

dts_id dts_graph_add_device(dts_graph *graph, const char *name) {
    const char *copy = copy_name(graph, name);
    if (!can_add(graph, &graph->devices, 1, sizeof copy)) {
        return DTS_NO_ID;
    }
    ((const char **)graph->devices.items)[graph->devices.count] = copy;
    return (dts_id)graph->devices.count++;
}

dts_id dts_graph_add_stream(dts_graph *graph, dts_id device, const char *name) {
    if (device >= graph->devices.count) {
        dts_diag_error(graph->problems, NULL, NULL, NULL,
                       "stream \"%s\" belongs to device %" PRIu32 ", which does not exist", name, device);
        return DTS_NO_ID;
    }
    const char *copy = copy_name(graph, name);
    if (!can_add(graph, &graph->streams, 1, sizeof(dts_stream))) {
        return DTS_NO_ID;
    }
    ((dts_stream *)graph->streams.items)[graph->streams.count] = (dts_stream){copy, device, DTS_NO_ID};
    return (dts_id)graph->streams.count++;
}

dts_id dts_graph_add_resource(dts_graph *graph, const char *name, double capacity) {
    if (!(capacity > 0) || !isfinite(capacity)) {
        dts_diag_error(graph->problems, NULL, NULL, "a capacity is a finite number of units per second above 0",
                       "resource \"%s\" has a capacity of %g", name, capacity);
        return DTS_NO_ID;
    }
    const char *copy = copy_name(graph, name);
    if (!can_add(graph, &graph->resources, 1, sizeof(dts_resource))) {
        return DTS_NO_ID;
    }
    ((dts_resource *)graph->resources.items)[graph->resources.count] = (dts_resource){copy, capacity, 0};
    return (dts_id)graph->resources.count++;
}

/* What is wrong with the streams of a task about to be added, or NULL. */
static const char *streams_problem(const dts_graph *graph, const dts_task *task) {
    for (size_t i = 0; i < task->stream_count; i++) {
        if (task->streams[i] >= graph->streams.count) {
            return "occupies a stream that does not exist";
        }
    }
    return NULL;
}

/* What is wrong with the work of a task about to be added, or NULL. */
static const char *work_problem(const dts_graph *graph, const dts_task *task) {
    if (task->duration < 0) {
        return "has a negative duration";
    }
    if (!(task->work >= 0) || !isfinite(task->work)) {
        return "has work that is not a finite number of at least 0";
    }
    if (!(task->rate_cap >= 0) || !isfinite(task->rate_cap)) {
        return "has a rate cap that is not a finite number of at least 0";
    }
    if (task->work > 0 && task->hop_count == 0 && task->rate_cap <= 0) {
        return "has work but neither a hop nor a rate cap";
    }
    for (size_t i = 0; i < task->hop_count; i++) {
        if (task->hops[i].resource >= graph->resources.count) {
            return "crosses a resource that does not exist";
        }
        if (!(task->hops[i].weight > 0) || !isfinite(task->hops[i].weight)) {
            return "has a hop whose weight is not a finite number above 0";
        }
    }
    return NULL;
}

static bool is_same_flow(const dts_graph *graph, uint32_t index, const dts_task *task) {
    const dts_flow *flow = (const dts_flow *)graph->flows.items + index;
    const dts_hop *hops = (const dts_hop *)graph->hops.items + flow->first_hop;
    bool same = flow->work == task->work && flow->rate_cap == task->rate_cap && flow->hop_count == task->hop_count;
    for (size_t i = 0; same && i < task->hop_count; i++) {
        same = hops[i].resource == task->hops[i].resource && hops[i].weight == task->hops[i].weight;
    }
    return same;
}

/* The flow of a task with work; room has been made. Transfers of a stream are mostly all alike, and one moves at a
 * time: what one of them says serves the others, and stays near the processor. */
static uint32_t flow_of(dts_graph *graph, const dts_task *task) {
    uint32_t none = DTS_NO_ID;
    uint32_t *latest = task->stream_count > 0 ? &((dts_stream *)graph->streams.items)[task->streams[0]].flow : &none;
    if (*latest != DTS_NO_ID && is_same_flow(graph, *latest, task)) {
        return *latest;
    }
    *latest = (uint32_t)graph->flows.count;
    ((dts_flow *)graph->flows.items)[graph->flows.count++] = (dts_flow){.work = task->work,
                                                                        .rate_cap = task->rate_cap,
                                                                        .first_hop = (uint32_t)graph->hops.count,
                                                                        .hop_count = (uint32_t)task->hop_count};
    if (task->hop_count > 0) {
        memcpy((dts_hop *)graph->hops.items + graph->hops.count, task->hops, task->hop_count * sizeof(dts_hop));
        graph->hops.count += task->hop_count;
    }
    return *latest;
}

/* Appends a task known to be right; room has been made. */
static void append_task(dts_graph *graph, const dts_task *task) {
    size_t id = graph->tasks++;
    dts_node *node = (dts_node *)graph->nodes.items + id;
    *node = (dts_node){.duration = task->duration, .priority = task->priority, .flow = DTS_NO_ID};
    ((uint32_t *)graph->tags.items)[id] = task->tag;
    dts_id *streams = (dts_id *)graph->task_streams.items + graph->task_streams.count;
    for (size_t i = 0; i < task->stream_count; i++) { /* one, mostly */
        streams[i] = task->streams[i];
    }
    graph->delays += task->stream_count == 0;
    graph->nodes.count = graph->tags.count = graph->tasks;
    graph->task_streams.count += task->stream_count;
    ((uint32_t *)graph->first_stream.items)[graph->tasks] = (uint32_t)graph->task_streams.count;
    graph->first_stream.count = graph->tasks + 1;
    if (task->work > 0) {
        node->flow = flow_of(graph, task);
    }
}

static bool make_room(dts_graph *graph, const dts_task *task) {
    return can_add(graph, &graph->nodes, 2, sizeof(dts_node)) && can_add(graph, &graph->tags, 1, sizeof(uint32_t)) &&
           can_add(graph, &graph->first_stream, 1, sizeof(uint32_t)) &&
           can_add(graph, &graph->task_streams, task->stream_count, sizeof(dts_id)) &&
           can_add(graph, &graph->flows, 1, sizeof(dts_flow)) &&
           can_add(graph, &graph->hops, task->hop_count + 1, sizeof(dts_hop));
}

dts_id dts_graph_add_task(dts_graph *graph, const dts_task *task) {
    const char *problem = streams_problem(graph, task);
    problem = problem != NULL ? problem : work_problem(graph, task);
    if (problem != NULL) {
        dts_diag_error(graph->problems, NULL, NULL, NULL, "the task added after %zu others (tag %" PRIu32 ") %s",
                       graph->tasks, task->tag, problem);
        return DTS_NO_ID;
    }
    bool room = has_room(&graph->nodes, 2) && has_room(&graph->tags, 1) && has_room(&graph->first_stream, 1) &&
                has_room(&graph->task_streams, task->stream_count) && has_room(&graph->flows, 1) &&
                has_room(&graph->hops, task->hop_count + 1) && !graph->frozen && !graph->out_of_memory;
    if (!room && !make_room(graph, task)) {
        return DTS_NO_ID;
    }
    append_task(graph, task);
    return (dts_id)(graph->tasks - 1);
}

void dts_graph_depend(dts_graph *graph, dts_id after, dts_id before) {
    if (before == DTS_NO_ID || !can_add(graph, &graph->dependencies, 1, sizeof(dts_dependency))) {
        return;
    }
    ((dts_dependency *)graph->dependencies.items)[graph->dependencies.count++] = (dts_dependency){after, before};
}

void dts_graph_arrange(dts_graph *graph, dts_id first, const dts_id *order, size_t count) {
    size_t end = (size_t)first + count;
    if (end > graph->tasks) {
        dts_diag_error(graph->problems, NULL, NULL, NULL, "tasks up to %zu are arranged, but there are only %zu", end,
                       graph->tasks);
        return;
    }
    size_t more = end > graph->places.count ? end - graph->places.count : 0;
    if (!can_add(graph, &graph->places, more, sizeof(dts_id))) {
        return;
    }
    dts_id *places = graph->places.items;
    for (; graph->places.count < end; graph->places.count++) {
        places[graph->places.count] = (dts_id)graph->places.count;
    }
    for (size_t i = 0; i < count; i++) {
        places[first + i] = order[i];
    }
}

/* Whether a ledger has such a row; if not, that is a problem of the graph. */
static bool check_ledger(dts_graph *graph, dts_id device, unsigned category) {
    if (device >= graph->devices.count) {
        dts_diag_error(graph->problems, NULL, NULL, NULL, "memory of device %" PRIu32 ", which does not exist", device);
        return false;
    }
    if (category >= DTS_MEMORY_CATEGORIES_MAX) {
        dts_diag_error(graph->problems, NULL, NULL, NULL, "memory category %u of device \"%s\"; there are only %d",
                       category, dts_graph_device_name(graph, device), DTS_MEMORY_CATEGORIES_MAX);
        return false;
    }
    return true;
}

void dts_graph_memory(dts_graph *graph, dts_id task, dts_memory_moment moment, dts_id device, unsigned category,
                      int64_t bytes) {
    if (!check_ledger(graph, device, category) || !can_add(graph, &graph->task_effects, 1, sizeof(dts_task_effect))) {
        return;
    }
    ((dts_task_effect *)graph->task_effects.items)[graph->task_effects.count++] =
        (dts_task_effect){{bytes, device, (uint16_t)category, (uint16_t)moment}, task};
}

static void add_hold_effect(dts_graph *graph, dts_id task, dts_memory_moment moment) {
    if (can_add(graph, &graph->task_effects, 1, sizeof(dts_task_effect))) {
        ((dts_task_effect *)graph->task_effects.items)[graph->task_effects.count++] =
            (dts_task_effect){{(int64_t)graph->holds.count, DTS_NO_ID, 0, (uint16_t)moment}, task};
    }
}

void dts_graph_hold(dts_graph *graph, dts_id resource, double units, dts_id after, dts_id until) {
    dts_resource *held =
        resource < graph->resources.count ? (dts_resource *)graph->resources.items + resource : &(dts_resource){0};
    const bool differs = held->held > 0 && held->held != units;
    if (resource >= graph->resources.count || !(units > 0) || !isfinite(units) || differs) {
        dts_diag_error(graph->problems, NULL, NULL, "hold the same finite number above 0 of a resource that was added",
                       "%g units of resource %" PRIu32 " are held", units, resource);
        return;
    }
    if (!can_add(graph, &graph->holds, 1, sizeof(dts_hold))) {
        return;
    }
    held->held = units;
    add_hold_effect(graph, after == DTS_NO_ID ? until : after, after == DTS_NO_ID ? DTS_AT_START : DTS_AT_END);
    add_hold_effect(graph, until, DTS_AT_END);
    ((dts_hold *)graph->holds.items)[graph->holds.count++] = (dts_hold){resource, until};
}

void dts_graph_memory_static(dts_graph *graph, dts_id device, unsigned category, int64_t bytes) {
    if (!check_ledger(graph, device, category) || !can_add(graph, &graph->statics, 1, sizeof(dts_effect))) {
        return;
    }
    if (bytes < 0) {
        dts_diag_error(graph->problems, NULL, NULL, NULL, "static memory of device \"%s\" is negative",
                       dts_graph_device_name(graph, device));
        return;
    }
    ((dts_effect *)graph->statics.items)[graph->statics.count++] =
        (dts_effect){bytes, device, (uint16_t)category, DTS_AT_START};
}

size_t dts_graph_devices(const dts_graph *graph) {
    return graph->devices.count;
}

size_t dts_graph_streams(const dts_graph *graph) {
    return graph->streams.count;
}

size_t dts_graph_resources(const dts_graph *graph) {
    return graph->resources.count;
}

size_t dts_graph_tasks(const dts_graph *graph) {
    return graph->tasks;
}

size_t dts_graph_dependencies(const dts_graph *graph) {
    return graph->dependencies.count;
}

const char *dts_graph_device_name(const dts_graph *graph, dts_id device) {
    return ((const char *const *)graph->devices.items)[device];
}

const char *dts_graph_stream_name(const dts_graph *graph, dts_id stream) {
    return ((const dts_stream *)graph->streams.items)[stream].name;
}

dts_id dts_graph_stream_device(const dts_graph *graph, dts_id stream) {
    return ((const dts_stream *)graph->streams.items)[stream].device;
}

size_t dts_graph_holds(const dts_graph *graph) {
    return graph->holds.count;
}

dts_id dts_graph_hold_resource(const dts_graph *graph, size_t hold) {
    return ((const dts_hold *)graph->holds.items)[hold].resource;
}

dts_id dts_graph_hold_until(const dts_graph *graph, size_t hold) {
    return ((const dts_hold *)graph->holds.items)[hold].until;
}

const char *dts_graph_resource_name(const dts_graph *graph, dts_id resource) {
    return dts_graph_resource(graph, resource)->name;
}

dts_task dts_graph_task(const dts_graph *graph, dts_id task) {
    const dts_node *node = dts_graph_nodes(graph) + task;
    dts_task view = {
        .priority = node->priority, .duration = node->duration, .tag = ((const uint32_t *)graph->tags.items)[task]};
    view.streams = dts_graph_task_streams(graph, task, &view.stream_count);
    if (node->flow != DTS_NO_ID) {
        const dts_flow *flow = (const dts_flow *)graph->flows.items + node->flow;
        view.work = flow->work;
        view.rate_cap = flow->rate_cap;
        view.hops = (const dts_hop *)graph->hops.items + flow->first_hop;
        view.hop_count = flow->hop_count;
    }
    return view;
}
