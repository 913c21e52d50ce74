/* The executed timeline, for pictures and traces. */
#include "run/measure.h"

const char *const dts_span_kind_names[DTS_SPAN_KIND_COUNT + 1] = {
    "forward",   "recompute", "backward", "backward-weight", "communication",
    "optimizer", "offload",   "host",     "input",           NULL};

static dts_span_kind span_kind(dts_role role) {
    switch (role) {
        case DTS_ROLE_FORWARD:
            return DTS_SPAN_FORWARD;
        case DTS_ROLE_RECOMPUTE:
            return DTS_SPAN_RECOMPUTE;
        case DTS_ROLE_BACKWARD:
            return DTS_SPAN_BACKWARD;
        case DTS_ROLE_BACKWARD_WEIGHT:
            return DTS_SPAN_BACKWARD_WEIGHT;
        case DTS_ROLE_OPTIMIZER:
            return DTS_SPAN_OPTIMIZER;
        case DTS_ROLE_COMMUNICATION:
            return DTS_SPAN_COMMUNICATION;
        case DTS_ROLE_OFFLOAD:
            return DTS_SPAN_OFFLOAD;
        case DTS_ROLE_INPUT:
            return DTS_SPAN_INPUT;
        case DTS_ROLE_HOST:
        case DTS_ROLE_COUNT:
            break;
    }
    return DTS_SPAN_HOST;
}

static void add_span(const dts_measured *m, uint32_t stream, dts_id task, dts_result *result) {
    const dts_task_info *info = &m->lowered->infos[task];
    dts_time start = dts_simulation_starts(m->simulation)[task];
    dts_time end = dts_simulation_ends(m->simulation)[task];
    if (info->ahead) { /* the picture ends with the iteration */
        const dts_measured own = dts_measured_on(m, info->device);
        dts_measured_cut(&own, &start, &end);
    }
    if (end > start) {
        result->spans[result->span_count++] = (dts_span){.device = result->streams[stream].device,
                                                         .stream = stream,
                                                         .kind = (uint8_t)span_kind((dts_role)info->role),
                                                         .microbatch = info->microbatch,
                                                         .layer = info->layer,
                                                         .chunk = info->chunk,
                                                         .name = dts_arena_strdup(result->arena, info->name),
                                                         .bytes = info->bytes,
                                                         .start = start,
                                                         .end = end};
    }
}

/* With full ranks a collective is one task on the streams of all its members: a span on each. */
static size_t most_spans(const dts_graph *graph) {
    size_t most = 0;
    for (uint32_t s = 0; s < dts_graph_streams(graph); s++) {
        size_t count = 0;
        dts_graph_stream_tasks(graph, s, &count);
        most += count;
    }
    return most;
}

dts_status dts_measure_spans(const dts_measured *m, dts_result *result) {
    const dts_graph *graph = m->lowered->graph;
    result->device_count = dts_graph_devices(graph);
    result->stream_count = dts_graph_streams(graph);
    result->devices = dts_arena_array(result->arena, result->device_count, sizeof *result->devices);
    result->streams = dts_arena_array(result->arena, result->stream_count, sizeof *result->streams);
    result->spans = dts_arena_array(result->arena, most_spans(graph), sizeof *result->spans);
    if (result->devices == NULL || result->streams == NULL || result->spans == NULL) {
        return DTS_NOMEM;
    }
    for (uint32_t d = 0; d < result->device_count; d++) {
        result->devices[d] = dts_arena_strdup(result->arena, dts_graph_device_name(graph, d));
    }
    for (uint32_t s = 0; s < result->stream_count; s++) {
        result->streams[s] = (dts_stream_row){.device = dts_graph_stream_device(graph, s),
                                              .name = dts_arena_strdup(result->arena, dts_graph_stream_name(graph, s))};
        size_t count = 0;
        const dts_id *tasks = dts_graph_stream_tasks(graph, s, &count);
        for (size_t i = 0; i < count; i++) {
            add_span(m, s, tasks[i], result);
        }
    }
    return DTS_OK;
}
