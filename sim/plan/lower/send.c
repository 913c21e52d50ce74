/* Transfers between two stages. A link carries the same bytes for every microbatch: what it takes is looked up once. */
#include "plan/lower/builder.h"
#include "plan/lower/receive_posting.h"

/* What sends from one stage to another cross. */
static void look_up(const dts_builder *b, const dts_stage *from, const dts_stage *to, double bytes, dts_link *out) {
    const bool same_node = from->node == to->node;
    dts_transfer transfer = {0};
    dts_p2p_transfer(b->plan->job.cluster, same_node, bytes, &transfer);
    /* all GPUs of a node that run this stage send at the same time */
    const double senders = same_node ? 1 : (double)dts_build_sharers(b);
    size_t count = 0;
    *out = (dts_link){.to = to, .bytes = bytes};
    dts_build_hop(out->hops, &count, from->port_out, transfer.gpu_weight);
    dts_build_hop(out->hops, &count, to->port_in, transfer.gpu_weight);
    if (!same_node) {
        dts_build_hop(out->hops, &count, b->nodes[from->node].out, transfer.nic_weight * senders);
        dts_build_hop(out->hops, &count, b->nodes[to->node].in, transfer.nic_weight * senders);
    }
    dts_build_task_of(b, &transfer, out->hops, count, &out->task);
}

dts_link *dts_build_link(const dts_builder *b, dts_stage *from, const dts_stage *to, bool up, double bytes) {
    dts_link *link = &from->links[up];
    if (link->to != to || link->bytes != bytes) {
        look_up(b, from, to, bytes, link);
        link->stream = up ? from->send_up : from->send_down;
    }
    return link;
}

static dts_id add_send(dts_builder *b, dts_stage *from, dts_link *link, bool holds, dts_id after,
                       const dts_task_info *info) {
    dts_task_info what = *info;
    what.role = DTS_ROLE_COMMUNICATION;
    what.collective = -1;
    what.bytes = link->bytes;
    what.device = from->device;
    what.peer = link->to->device;
    const dts_id streams[] = {link->stream, from->compute};
    link->task.streams = streams;
    link->task.stream_count = holds ? 2 : 1;
    dts_id task = dts_build_add(b, &link->task, &what);
    link->task.streams = NULL;
    dts_graph_depend(b->graph, task, after);
    return task;
}

dts_id dts_build_send(dts_builder *b, dts_stage *from, const dts_stage *to, bool up, bool holds, double bytes,
                      dts_id after, const dts_task_info *info) {
    return add_send(b, from, dts_build_link(b, from, to, up, bytes), holds, after, info);
}

/* Of the latency of a transfer: what passes in the network. */
static dts_time on_the_way(const dts_builder *b, const dts_stage *from, const dts_stage *to) {
    return from->node == to->node ? 0 : dts_time_from_s(b->plan->job.cluster->inter.hop_latency_s);
}

dts_id dts_build_post(dts_builder *b, dts_stage *from, const dts_stage *to, bool up, double bytes, dts_id after,
                      const dts_task_info *info) {
    dts_link *link = dts_build_link(b, from, to, up, bytes);
    const dts_time whole = link->task.duration;
    link->task.duration -= on_the_way(b, from, to);
    const dts_id task = add_send(b, from, link, false, after, info);
    link->task.duration = whole;
    return task;
}

dts_id dts_build_arrival(dts_builder *b, const dts_stage *from, const dts_stage *to, dts_id sent,
                         const dts_task_info *info) {
    const dts_time duration = on_the_way(b, from, to);
    if (duration == 0) {
        return sent;
    }
    dts_task_info what = *info;
    what.role = DTS_ROLE_COMMUNICATION;
    what.collective = -1;
    what.device = from->device;
    what.peer = to->device;
    what.name = "on the way";
    const dts_id arrival = dts_build_add(b, &(dts_task){.duration = duration}, &what);
    dts_graph_depend(b->graph, arrival, sent);
    return arrival;
}

dts_id dts_build_with_send(dts_builder *b, dts_stage *stage, dts_time duration, const dts_task_info *info) {
    const dts_link *link = stage->carries;
    const dts_id streams[] = {link->stream, stage->compute};
    dts_task task = link->task;
    task.streams = streams;
    task.stream_count = 2;
    task.duration += duration;
    stage->carries = NULL;
    stage->carried = dts_build_add(b, &task, info);
    return stage->carried;
}
