/* The task graph with what became of it, row by row: for `dtsim run --dump`. */
#include "run/measure.h"

static const char *streams_of(const dts_graph *graph, const dts_task *task, dts_arena *arena) {
    const char *text = "";
    for (size_t i = 0; i < task->stream_count && text != NULL; i++) {
        text =
            dts_arena_printf(arena, "%s%s%s", text, i > 0 ? " + " : "", dts_graph_stream_name(graph, task->streams[i]));
    }
    return text;
}

static const char *waits_of(const dts_graph *graph, dts_id task, dts_arena *arena) {
    size_t count = 0;
    const dts_id *before = dts_graph_predecessors(graph, task, &count);
    const char *text = "";
    for (size_t i = 0; i < count && text != NULL; i++) {
        text = dts_arena_printf(arena, "%s%s%lu", text, i > 0 ? " " : "", (unsigned long)before[i]);
    }
    return text;
}

dts_status dts_measure_graph(const dts_measured *m, dts_result *result) {
    const dts_graph *graph = m->lowered->graph;
    size_t count = dts_graph_tasks(graph);
    result->tasks = dts_arena_array(result->arena, count, sizeof *result->tasks);
    if (result->tasks == NULL) {
        return DTS_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        dts_id id = (dts_id)i;
        dts_task task = dts_graph_task(graph, id);
        const dts_task_info *info = &m->lowered->infos[i];
        dts_id blocker = dts_simulation_blocker(m->simulation, id);
        dts_task_row *row = &result->tasks[result->task_count++];
        *row = (dts_task_row){.name = dts_arena_strdup(result->arena, info->name),
                              .role = dts_role_names[info->role],
                              .device = info->device,
                              .streams = streams_of(graph, &task, result->arena),
                              .waits_for = waits_of(graph, id, result->arena),
                              .microbatch = info->microbatch,
                              .layer = info->layer,
                              .fixed_s = dts_time_to_s(task.duration),
                              .work_B = task.work,
                              .flops = info->flops,
                              .start = dts_simulation_starts(m->simulation)[i],
                              .end = dts_simulation_ends(m->simulation)[i],
                              .held_up_by = blocker == DTS_NO_ID ? -1 : (int64_t)blocker};
        if (row->name == NULL || row->streams == NULL || row->waits_for == NULL) {
            return DTS_NOMEM;
        }
    }
    return DTS_OK;
}
