/* Devices, streams and links of replica 0. */
#include <inttypes.h>
#include <stdio.h>

#include "plan/lower/builder.h"

/* A node's network with the capacities the cluster states. */
static void add_node(dts_builder *b, int64_t index) {
    const dts_inter *inter = &b->plan->job.cluster->inter;
    double capacity = dts_node_network_Bps(b->plan->job.cluster);
    dts_network_links *node = &b->nodes[index];
    *node = (dts_network_links){.out = DTS_NO_ID,
                                .in = DTS_NO_ID,
                                .memory = DTS_NO_ID,
                                .host = DTS_NO_ID,
                                .nvme = DTS_NO_ID,
                                .nvme_read = DTS_NO_ID,
                                .nvme_write = DTS_NO_ID};
    char name[64];
    if (dts_plan_offloads(b->plan)) {
        snprintf(name, sizeof name, "node %" PRId64 " host memory", index);
        node->memory = dts_graph_add_resource(b->graph, name, b->plan->job.cluster->host.memory_bandwidth_Bps);
        node->host = dts_graph_add_device(b->graph, name);
    }
    if (dts_plan_uses_nvme(b->plan)) {
        snprintf(name, sizeof name, "node %" PRId64 " NVMe reads", index);
        node->nvme_read = dts_graph_add_resource(b->graph, name, b->plan->job.cluster->host.nvme_read_Bps);
        snprintf(name, sizeof name, "node %" PRId64 " NVMe writes", index);
        node->nvme_write = dts_graph_add_resource(b->graph, name, b->plan->job.cluster->host.nvme_write_Bps);
        snprintf(name, sizeof name, "node %" PRId64 " NVMe", index);
        node->nvme = dts_graph_add_device(b->graph, name);
    }
    if (inter->transport == DTS_TRANSPORT_NONE || capacity <= 0) {
        return;
    }
    snprintf(name, sizeof name, "node %" PRId64 " network out", index);
    node->out = dts_graph_add_resource(b->graph, name, capacity);
    snprintf(name, sizeof name, "node %" PRId64 " network in", index);
    node->in = dts_graph_add_resource(b->graph, name, capacity);
}

/* Streams for copies, and the link of the PCIe switch: stages on the same switch share it. */
static void add_host_link(dts_builder *b, dts_stage *stage) {
    const dts_plan *plan = b->plan;
    stage->h2d = dts_graph_add_stream(b->graph, stage->device, "h2d");
    stage->d2h = dts_graph_add_stream(b->graph, stage->device, "d2h");
    if (dts_plan_uses_nvme(plan)) {
        stage->nvme_read = dts_graph_add_stream(b->graph, stage->device, "nvme read");
        stage->nvme_write = dts_graph_add_stream(b->graph, stage->device, "nvme write");
    }
    for (int64_t p = 0; p < stage->index; p++) {
        if (plan->stage_switch[p] == plan->stage_switch[stage->index]) {
            stage->pcie_in = b->stages[p].pcie_in;
            stage->pcie_out = b->stages[p].pcie_out;
            return;
        }
    }
    char name[64];
    double capacity_Bps = plan->job.cluster->gpu.pcie_bandwidth_Bps;
    snprintf(name, sizeof name, "stage %" PRId64 " host link in", stage->index);
    stage->pcie_in = dts_graph_add_resource(b->graph, name, capacity_Bps);
    snprintf(name, sizeof name, "stage %" PRId64 " host link out", stage->index);
    stage->pcie_out = dts_graph_add_resource(b->graph, name, capacity_Bps);
}

static void add_stage(dts_builder *b, int64_t index, dts_stage *stage) {
    const dts_plan *plan = b->plan;
    *stage = (dts_stage){.index = dts_plan_single_process(plan) ? 0 : index,
                         .last_kernel = DTS_NO_ID,
                         .last_host = DTS_NO_ID,
                         .block_end = DTS_NO_ID,
                         .trailing = DTS_NO_ID,
                         .collectives_done = DTS_NO_ID};
    char name[64];
    snprintf(name, sizeof name, "stage %" PRId64, index);
    bool replicas = dts_plan_single_process(plan);
    if (plan->pipeline == 1) {
        snprintf(name, sizeof name, "gpu %" PRId64, index);
    }
    stage->device = dts_graph_add_device(b->graph, name);
    bool shared_host = replicas || (plan->job.stack->pipeline_single_process && plan->pipeline > 1);
    stage->host = shared_host && index > 0 ? b->stages[0].host : dts_graph_add_stream(b->graph, stage->device, "host");
    stage->autograd = shared_host ? dts_graph_add_stream(b->graph, stage->device, "autograd") : stage->host;
    stage->compute = dts_graph_add_stream(b->graph, stage->device, "compute");
    const bool sharing[DTS_GROUP_COUNT] = {[DTS_GROUP_DATA] = plan->shards > 1,
                                           [DTS_GROUP_TENSOR] = plan->tensor > 1,
                                           [DTS_GROUP_CONTEXT] = plan->context > 1,
                                           [DTS_GROUP_REPLICA] = plan->replicas > plan->shards,
                                           [DTS_GROUP_EXPERT] = plan->expert > 1,
                                           [DTS_GROUP_EXPERT_DATA] = plan->expert > 1 && plan->expert_replicas > 1};
    for (int g = 0; g < DTS_GROUP_COUNT; g++) {
        snprintf(name, sizeof name, "%s collectives", dts_group_names[g]);
        stage->collective[g] = sharing[g] ? dts_graph_add_stream(b->graph, stage->device, name) : DTS_NO_ID;
    }
    stage->send_up = DTS_NO_ID;
    stage->send_down = DTS_NO_ID;
    if (plan->pipeline > 1 || replicas) {
        stage->send_up = dts_graph_add_stream(b->graph, stage->device, "send to next stage");
        stage->send_down = dts_graph_add_stream(b->graph, stage->device, "send to previous stage");
    }
    stage->multiprocessors = DTS_NO_ID;
    if (b->flow_network && plan->job.stack->communication_sms > 0 && plan->replicas > 1 && !replicas) {
        snprintf(name, sizeof name, "stage %" PRId64 " multiprocessors", index);
        stage->multiprocessors = dts_graph_add_resource(b->graph, name, (double)plan->job.cluster->gpu.multiprocessors);
    }
    stage->h2d = DTS_NO_ID;
    stage->d2h = DTS_NO_ID;
    stage->port_out = DTS_NO_ID;
    stage->port_in = DTS_NO_ID;
    double port = dts_gpu_port_Bps(plan->job.cluster);
    if (port > 0) {
        snprintf(name, sizeof name, "stage %" PRId64 " GPU link out", index);
        stage->port_out = dts_graph_add_resource(b->graph, name, port);
        snprintf(name, sizeof name, "stage %" PRId64 " GPU link in", index);
        stage->port_in = dts_graph_add_resource(b->graph, name, port);
    }
}

dts_status dts_build_stages(dts_builder *b) {
    const dts_plan *plan = b->plan;
    b->node_count = plan->stage_node[plan->pipeline - 1] + 1; /* nodes grow with the stage */
    b->stage_count = dts_plan_single_process(plan) ? plan->data : plan->pipeline;
    b->nodes = dts_arena_array(b->arena, (size_t)b->node_count, sizeof *b->nodes);
    b->stages = dts_arena_array(b->arena, (size_t)b->stage_count, sizeof *b->stages);
    if (b->nodes == NULL || b->stages == NULL) {
        return dts_diag_nomem(b->diag);
    }
    for (int64_t p = 0; p < b->stage_count; p++) {
        add_stage(b, p, &b->stages[p]);
        if (dts_plan_offloads(plan)) {
            add_host_link(b, &b->stages[p]);
        }
    }
    for (int64_t i = 0; i < b->node_count; i++) { /* behind the stages: device p is stage p */
        add_node(b, i);
    }
    return DTS_OK;
}

dts_status dts_build_stage_alone(dts_builder *b, int64_t index, dts_stage *stage) {
    int64_t node = b->plan->stage_node[index];
    b->nodes = dts_arena_array(b->arena, (size_t)node + 1, sizeof *b->nodes);
    if (b->nodes == NULL) {
        return dts_diag_nomem(b->diag);
    }
    add_stage(b, index, stage);
    add_node(b, node);
    return DTS_OK;
}
