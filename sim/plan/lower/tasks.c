/* Tasks of the graph, each with what it is to the reports. */
#include <stdlib.h>

#include "plan/lower/builder.h"

static bool grow_infos(dts_builder *b, size_t capacity) {
    dts_task_info *infos = realloc(b->infos, capacity * sizeof *infos);
    if (infos != NULL) {
        b->infos = infos;
        b->info_capacity = capacity;
    }
    return infos != NULL;
}

void dts_build_expect(dts_builder *b, size_t tasks) {
    dts_graph_expect(b->graph, tasks);
    if (tasks > b->info_capacity) {
        grow_infos(b, tasks);
    }
}

/* The tag of the next task; the table grows in step with the graph's tasks, so tag and task id are equal. */
static uint32_t info_add(dts_builder *b, const dts_task_info *info) {
    enum { FEW = 64 };
    if (b->info_count == b->info_capacity && !grow_infos(b, b->info_capacity == 0 ? FEW : 2 * b->info_capacity)) {
        b->failed = true;
        return 0;
    }
    b->infos[b->info_count] = *info;
    return (uint32_t)b->info_count++;
}

dts_id dts_build_add(dts_builder *b, dts_task *task, const dts_task_info *info) {
    task->tag = info_add(b, info);
    return dts_graph_add_task(b->graph, task);
}

dts_id dts_build_task(dts_builder *b, dts_id stream, dts_time duration, const dts_task_info *info) {
    dts_task task = {.streams = &stream, .stream_count = 1, .duration = duration};
    return dts_build_add(b, &task, info);
}

dts_id dts_build_delay(dts_builder *b, dts_time duration, const dts_task_info *info) {
    dts_task task = {.duration = duration};
    return dts_build_add(b, &task, info);
}

void dts_build_hop(dts_hop *hops, size_t *count, dts_id resource, double weight) {
    if (resource != DTS_NO_ID && weight > 0) {
        hops[(*count)++] = (dts_hop){.resource = resource, .weight = weight};
    }
}

void dts_build_task_of(const dts_builder *b, const dts_transfer *transfer, const dts_hop *hops, size_t hop_count,
                       dts_task *out) {
    if (b->flow_network && transfer->work_B > 0) {
        out->duration = dts_time_from_s(transfer->latency_s);
        out->work = transfer->work_B;
        out->rate_cap = transfer->rate_cap_Bps;
        out->hops = hops;
        out->hop_count = hop_count;
    } else {
        out->duration = dts_time_from_s(transfer->alone_s);
    }
}

dts_id dts_build_transfer_of(dts_builder *b, const dts_id *streams, size_t stream_count, const dts_transfer *transfer,
                             const dts_hop *hops, size_t hop_count, const dts_task_info *info) {
    dts_task task = {.streams = streams, .stream_count = stream_count};
    dts_build_task_of(b, transfer, hops, hop_count, &task);
    return dts_build_add(b, &task, info);
}
