/* Freezing: from lists in the order of building to rows that the event loop walks.
 *
 * The order of a stream is nothing but one more dependency, of each task on the one before it. So a task may start as
 * soon as a count of what it waits for, dependencies and stream predecessors alike, has come down to zero, and the
 * event loop knows neither streams nor gangs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/inside.h"

/* count + 1 zeroed offsets. */
static uint32_t *new_offsets(size_t count) {
    return calloc(count + 1, sizeof(uint32_t));
}

/* Room for count items, never NULL for want of items. */
static void *new_items(size_t count, size_t size) {
    return malloc(count > 0 ? count * size : 1);
}

/* Turns counts, of which that of row i is in first[i], into offsets of the rows' ends; filling a row from its end to
 * its beginning then leaves first[i] at the beginning. */
static void counts_to_ends(uint32_t *first, size_t rows) {
    uint32_t sum = 0;
    for (size_t i = 0; i < rows; i++) {
        sum += first[i];
        first[i] = sum;
    }
    first[rows] = sum;
}

static dts_status report_problems(const dts_graph *graph, dts_diag *diag) {
    for (size_t i = 0; i < dts_diag_count(graph->problems); i++) {
        const dts_message *message = dts_diag_get(graph->problems, i);
        dts_diag_error(diag, NULL, NULL, message->help, "%s", message->text);
    }
    return DTS_INVALID;
}

/* Every dependency and every memory effect belongs to tasks that exist. */
static dts_status check_tasks_exist(const dts_graph *graph, dts_diag *diag) {
    dts_status status = DTS_OK;
    const dts_dependency *dependencies = graph->dependencies.items;
    char name[128];
    for (size_t i = 0; i < graph->dependencies.count; i++) {
        dts_dependency d = dependencies[i];
        if (d.after >= graph->tasks) {
            status = dts_diag_error(diag, NULL, NULL, NULL,
                                    "a dependency was added for task %" PRIu32 ", which does not exist", d.after);
        } else if (d.before >= graph->tasks) {
            dts_graph_task_name(graph, d.after, name, sizeof name);
            status = dts_diag_error(diag, NULL, NULL, NULL, "%s waits for task %" PRIu32 ", which does not exist", name,
                                    d.before);
        }
    }
    const dts_task_effect *effects = graph->task_effects.items;
    for (size_t i = 0; i < graph->task_effects.count; i++) {
        if (effects[i].task >= graph->tasks) {
            status =
                dts_diag_error(diag, NULL, NULL, NULL,
                               "a memory effect was added for task %" PRIu32 ", which does not exist", effects[i].task);
        }
    }
    return status;
}

/* place_of: places the other way round; every task has one. */
static dts_status index_places(dts_graph *graph, dts_diag *diag) {
    size_t count = graph->places.count;
    graph->place_of = new_items(count, sizeof *graph->place_of);
    if (graph->place_of == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t task = 0; task < count; task++) {
        graph->place_of[task] = DTS_NO_ID;
    }
    for (size_t place = 0; place < count; place++) {
        dts_id task = dts_graph_task_at(graph, place);
        if (task >= count || graph->place_of[task] != DTS_NO_ID) {
            return dts_diag_error(diag, NULL, NULL, NULL, "task %" PRIu32 " was given a place that is not its own",
                                  task);
        }
        graph->place_of[task] = (dts_id)place;
    }
    return DTS_OK;
}

/* stream_tasks: the tasks of each stream, in the order of their places. */
static dts_status index_streams(dts_graph *graph, dts_diag *diag) {
    size_t count = graph->task_streams.count;
    uint32_t *first = graph->stream_tasks.first = new_offsets(graph->streams.count);
    dts_id *items = graph->stream_tasks.items = new_items(count, sizeof *items);
    if (first == NULL || items == NULL) {
        return dts_diag_nomem(diag);
    }
    const dts_id *task_streams = graph->task_streams.items;
    for (size_t i = 0; i < count; i++) {
        first[task_streams[i]]++;
    }
    counts_to_ends(first, graph->streams.count);
    for (size_t place = graph->tasks; place-- > 0;) {
        dts_id task = dts_graph_task_at(graph, place);
        size_t occupied;
        const dts_id *streams = dts_graph_task_streams(graph, task, &occupied);
        for (size_t i = occupied; i-- > 0;) {
            items[--first[streams[i]]] = task;
        }
    }
    return DTS_OK;
}

/* The second part of each row of awaited. first[task] is the end of its row, and then that of its first part. last:
 * scratch, the latest task so far on each stream. */
static dts_status await_streams(dts_graph *graph, dts_id *last, dts_diag *diag) {
    for (size_t i = 0; i < graph->streams.count; i++) {
        last[i] = DTS_NO_ID;
    }
    for (size_t place = 0; place < graph->tasks; place++) {
        dts_id task = dts_graph_task_at(graph, place);
        size_t occupied;
        const dts_id *streams = dts_graph_task_streams(graph, task, &occupied);
        graph->awaited.first[task] -= (uint32_t)occupied;
        dts_id *items = graph->awaited.items + graph->awaited.first[task];
        for (size_t i = 0; i < occupied; i++) {
            items[i] = last[streams[i]];
            last[streams[i]] = task;
            if (items[i] == task) {
                char name[128];
                dts_graph_task_name(graph, task, name, sizeof name);
                return dts_diag_error(diag, NULL, NULL, NULL, "%s occupies stream \"%s\" twice", name,
                                      dts_graph_stream_name(graph, streams[i]));
            }
        }
    }
    return DTS_OK;
}

/* awaited: dependencies and stream orders side by side. */
static dts_status index_awaited(dts_graph *graph, dts_diag *diag) {
    size_t most = graph->dependencies.count + graph->task_streams.count;
    if (most >= DTS_NO_ID) {
        return dts_diag_error(diag, NULL, NULL, "simulate less detail, or fewer ranks",
                              "the graph is too large: it has %zu dependencies and stream orders", most);
    }
    const dts_dependency *dependencies = graph->dependencies.items;
    const uint32_t *first_stream = graph->first_stream.items;
    uint32_t *first = graph->awaited.first = new_offsets(graph->tasks);
    dts_id *items = graph->awaited.items = new_items(most, sizeof *items);
    dts_id *last = new_items(graph->streams.count, sizeof *last);
    dts_status status = DTS_NOMEM;
    if (first != NULL && items != NULL && last != NULL) {
        for (size_t task = 0; task < graph->tasks; task++) {
            first[task] = first_stream[task + 1] - first_stream[task];
        }
        for (size_t i = 0; i < graph->dependencies.count; i++) {
            first[dependencies[i].after]++;
        }
        counts_to_ends(first, graph->tasks);
        status = await_streams(graph, last, diag);
        for (size_t i = graph->dependencies.count; status == DTS_OK && i-- > 0;) {
            items[--first[dependencies[i].after]] = dependencies[i].before;
        }
    }
    free(last);
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}

/* waits, and successors: awaited the other way round. */
static dts_status index_successors(dts_graph *graph, dts_diag *diag) {
    size_t tasks = graph->tasks;
    const uint32_t *first = graph->awaited.first;
    const dts_id *awaited = graph->awaited.items;
    dts_node *nodes = dts_graph_nodes(graph);
    uint32_t *waits = graph->waits = new_items(tasks, sizeof *waits);
    dts_id *successors = graph->successors = new_items(first[tasks], sizeof *successors);
    if (waits == NULL || successors == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t task = 0; task < tasks; task++) {
        waits[task] = 0;
        for (uint32_t i = first[task]; i < first[task + 1]; i++) {
            if (awaited[i] != DTS_NO_ID) {
                waits[task]++;
                nodes[awaited[i]].first_successor++;
            }
        }
    }
    uint32_t sum = 0;
    for (size_t task = 0; task < tasks; task++) {
        sum += nodes[task].first_successor;
        nodes[task].first_successor = sum;
    }
    nodes[tasks].first_successor = sum;
    for (size_t task = tasks; task-- > 0;) {
        for (uint32_t i = first[task]; i < first[task + 1]; i++) {
            if (awaited[i] != DTS_NO_ID) {
                successors[--nodes[awaited[i]].first_successor] = (dts_id)task;
            }
        }
    }
    return DTS_OK;
}

static dts_status index_effects(dts_graph *graph, dts_diag *diag) {
    size_t count = graph->task_effects.count;
    const dts_task_effect *added = graph->task_effects.items;
    dts_node *nodes = dts_graph_nodes(graph);
    graph->effects = new_items(count, sizeof *graph->effects);
    if (graph->effects == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < count; i++) {
        nodes[added[i].task].first_effect++;
    }
    uint32_t sum = 0;
    for (size_t task = 0; task < graph->tasks; task++) {
        sum += nodes[task].first_effect;
        nodes[task].first_effect = sum;
    }
    nodes[graph->tasks].first_effect = sum;
    for (size_t i = count; i-- > 0;) {
        graph->effects[--nodes[added[i].task].first_effect] = added[i].effect;
    }
    dts_pool_free(&graph->task_effects);
    return DTS_OK;
}

/* Places that only grow along dependencies cannot come back to where they began; and along streams they always grow. */
static bool may_have_cycles(const dts_graph *graph) {
    const dts_dependency *dependencies = graph->dependencies.items;
    for (size_t i = 0; i < graph->dependencies.count; i++) {
        if (dts_graph_place(graph, dependencies[i].before) >= dts_graph_place(graph, dependencies[i].after)) {
            return true;
        }
    }
    return false;
}

dts_status dts_graph_freeze(dts_graph *graph, dts_diag *diag) {
    if (graph->frozen) {
        return DTS_OK;
    }
    if (graph->refused) {
        return dts_diag_error(diag, NULL, NULL, NULL, "the task graph was found to be wrong before");
    }
    graph->refused = true;
    if (graph->out_of_memory || !dts_pool_reserve(&graph->nodes, 1, sizeof(dts_node))) {
        return dts_diag_nomem(diag);
    }
    if (dts_diag_errors(graph->problems) > 0) {
        return report_problems(graph, diag);
    }
    dts_graph_nodes(graph)[graph->tasks] = (dts_node){0};
    dts_status status = check_tasks_exist(graph, diag);
    dts_status (*const steps[])(dts_graph *, dts_diag *) = {index_effects, index_places, index_streams, index_awaited,
                                                            index_successors};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == DTS_OK; i++) {
        status = steps[i](graph, diag);
    }
    if (status == DTS_OK && may_have_cycles(graph)) {
        status = dts_graph_check_cycles(graph, diag);
    }
    graph->frozen = status == DTS_OK;
    graph->refused = !graph->frozen;
    if (graph->frozen) { /* awaited has them */
        free(graph->dependencies.items);
        graph->dependencies = (dts_pool){.count = graph->dependencies.count};
    }
    return status;
}

const dts_id *dts_graph_predecessors(const dts_graph *graph, dts_id task, size_t *count) {
    size_t occupied;
    dts_graph_task_streams(graph, task, &occupied);
    const dts_id *awaited = dts_graph_awaited(graph, task, count);
    *count -= occupied;
    return awaited;
}

const dts_id *dts_graph_awaited_by(const dts_graph *graph, dts_id task, size_t *count) {
    return dts_graph_awaited(graph, task, count);
}

const dts_id *dts_graph_stream_tasks(const dts_graph *graph, dts_id stream, size_t *count) {
    const uint32_t *first = graph->stream_tasks.first;
    *count = first[stream + 1] - first[stream];
    return graph->stream_tasks.items + first[stream];
}

void dts_graph_memory_changes(const dts_graph *graph, dts_id task, int64_t *by_device) {
    const dts_node *nodes = dts_graph_nodes(graph);
    for (uint32_t i = nodes[task].first_effect; i < nodes[task + 1].first_effect; i++) {
        if (graph->effects[i].device != DTS_NO_ID) {
            by_device[graph->effects[i].device] += graph->effects[i].bytes;
        }
    }
}
