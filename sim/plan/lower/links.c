/* Devices, streams and links of the ranks that are simulated. */
#include <inttypes.h>
#include <stdio.h>

#include "plan/lower/builder.h"

/* What cluster.stragglers says of a node's network. */
static double network_slowdown(const dts_builder *b, int64_t node) {
    const dts_cluster *cluster = b->plan->job.cluster;
    const dts_list *stragglers = &cluster->stragglers;
    double slowdown = 1;
    for (size_t i = 0; b->full && i < stragglers->count; i++) {
        const dts_straggler *s = &((const dts_straggler *)stragglers->items)[i];
        slowdown *= s->node * cluster->gpus_per_node / b->plan->gpus_per_node == node ? s->network_slowdown : 1;
    }
    return slowdown;
}

static bool copies_from_host(const dts_plan *plan) {
    return dts_plan_offloads(plan) || dts_plan_loads_input(plan);
}

/* A node's network with the capacities the cluster states. */
static void add_node(dts_builder *b, int64_t index) {
    const dts_inter *inter = &b->plan->job.cluster->inter;
    double capacity = dts_node_network_Bps(b->plan->job.cluster) / network_slowdown(b, index);
    dts_network_links *node = &b->nodes[index];
    *node = (dts_network_links){.out = DTS_NO_ID,
                                .in = DTS_NO_ID,
                                .memory = DTS_NO_ID,
                                .cores = DTS_NO_ID,
                                .host = DTS_NO_ID,
                                .nvme = DTS_NO_ID,
                                .nvme_read = DTS_NO_ID,
                                .nvme_write = DTS_NO_ID};
    char name[64];
    if (copies_from_host(b->plan)) {
        snprintf(name, sizeof name, "node %" PRId64 " host memory", index);
        node->memory =
            dts_graph_add_resource(b->graph, name, dts_cluster_host(b->plan->job.cluster).memory_bandwidth_Bps);
    }
    if (dts_plan_offloads(b->plan)) {
        node->host = dts_graph_add_device(b->graph, name);
    }
    if (dts_plan_loads_input(b->plan)) {
        snprintf(name, sizeof name, "node %" PRId64 " cores", index);
        node->cores = dts_graph_add_resource(b->graph, name, dts_plan_loader_cores(b->plan));
    }
    if (dts_plan_uses_nvme(b->plan)) {
        snprintf(name, sizeof name, "node %" PRId64 " NVMe reads", index);
        node->nvme_read = dts_graph_add_resource(b->graph, name, dts_cluster_host(b->plan->job.cluster).nvme_read_Bps);
        snprintf(name, sizeof name, "node %" PRId64 " NVMe writes", index);
        node->nvme_write =
            dts_graph_add_resource(b->graph, name, dts_cluster_host(b->plan->job.cluster).nvme_write_Bps);
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

/* What the names of a stage's links begin with. */
static const char *of_stage(dts_builder *b, int64_t index, const dts_stage *stage) {
    const char *name = b->full ? dts_arena_printf(b->arena, "gpu %" PRId64, stage->gpu)
                               : dts_arena_printf(b->arena, "stage %" PRId64, index);
    b->failed |= name == NULL;
    return name == NULL ? "" : name;
}

/* Streams for copies, and the link of the PCIe switch: stages on the same switch share it. */
static void add_host_link(dts_builder *b, dts_stage *stage) {
    const dts_plan *plan = b->plan;
    stage->h2d = dts_graph_add_stream(b->graph, stage->device, "h2d");
    if (dts_plan_offloads(plan)) {
        stage->d2h = dts_graph_add_stream(b->graph, stage->device, "d2h");
    }
    if (dts_plan_uses_nvme(plan)) {
        stage->nvme_read = dts_graph_add_stream(b->graph, stage->device, "nvme read");
        stage->nvme_write = dts_graph_add_stream(b->graph, stage->device, "nvme write");
    }
    for (const dts_stage *other = b->all_stages; other < stage; other++) {
        if (other->pcie_switch == stage->pcie_switch) {
            stage->pcie_in = other->pcie_in;
            stage->pcie_out = other->pcie_out;
            return;
        }
    }
    char name[64];
    double capacity_Bps = plan->job.cluster->gpu.pcie_bandwidth_Bps;
    snprintf(name, sizeof name, "%s host link in", of_stage(b, stage->index, stage));
    stage->pcie_in = dts_graph_add_resource(b->graph, name, capacity_Bps);
    snprintf(name, sizeof name, "%s host link out", of_stage(b, stage->index, stage));
    stage->pcie_out = dts_graph_add_resource(b->graph, name, capacity_Bps);
}

/* Which groups there are collectives of. */
static void groups_of(const dts_plan *plan, bool *sharing) {
    sharing[DTS_GROUP_DATA] = plan->shards > 1;
    sharing[DTS_GROUP_TENSOR] = plan->tensor > 1;
    sharing[DTS_GROUP_CONTEXT] = plan->context > 1;
    sharing[DTS_GROUP_REPLICA] = plan->replicas > plan->shards;
    sharing[DTS_GROUP_EXPERT] = plan->expert > 1;
    sharing[DTS_GROUP_EXPERT_TENSOR] = plan->expert_tensor > 1;
    sharing[DTS_GROUP_EXPERT_DATA] = dts_plan_experts_apart(plan) && plan->expert_replicas > 1;
}

/* May transfers take multiprocessors from products: those between replicas, and of tensor parallelism in backward? */
static bool shares_multiprocessors(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    const bool replicas = dts_plan_replicates(plan) && stack->communication_sms > 0;
    const bool tensor = dts_overlaps_tensor(plan) && (plan->async_tensor || stack->tensor_overlap_sms > 0);
    const bool experts = plan->expert > 1 && stack->experts_sms > 0;
    return (replicas || tensor || experts || dts_p2p_sms(plan) > 0) && !dts_plan_single_process(plan);
}

static void add_stage(dts_builder *b, int64_t row, int64_t index, dts_stage *stage) {
    const dts_plan *plan = b->plan;
    const int64_t number = dts_plan_single_process(plan) ? 0 : index;
    const int64_t gpu = dts_plan_gpu(plan, row, number);
    *stage = (dts_stage){.index = number,
                         .row = row,
                         .gpu = gpu,
                         .node = gpu / plan->gpus_per_node,
                         .pcie_switch = dts_plan_switch(plan, gpu),
                         .slowdown = 1,
                         .last_kernel = DTS_NO_ID,
                         .last_host = DTS_NO_ID,
                         .awaited = DTS_NO_ID,
                         .met = {DTS_NO_ID, DTS_NO_ID},
                         .last_collective = DTS_NO_ID,
                         .block_end = DTS_NO_ID,
                         .trailing = DTS_NO_ID,
                         .last_launched = DTS_NO_ID,
                         .last_read = DTS_NO_ID,
                         .holds_host = DTS_NO_ID,
                         .collectives_done = DTS_NO_ID,
                         .tied_made = DTS_NO_ID,
                         .since_collectives = DTS_TIME_MAX};
    char name[64];
    snprintf(name, sizeof name, "stage %" PRId64, index);
    bool replicas = dts_plan_single_process(plan);
    if (plan->pipeline == 1) {
        snprintf(name, sizeof name, "gpu %" PRId64, b->full ? gpu : index);
    } else if (b->full) {
        snprintf(name, sizeof name, "gpu %" PRId64 ", stage %" PRId64, gpu, index);
    }
    stage->device = dts_graph_add_device(b->graph, name);
    bool shared_host = replicas || (plan->job.stack->pipeline_single_process && plan->pipeline > 1);
    stage->host = shared_host && index > 0 ? b->stages[0].host : dts_graph_add_stream(b->graph, stage->device, "host");
    stage->autograd = shared_host ? dts_graph_add_stream(b->graph, stage->device, "autograd") : stage->host;
    stage->compute = dts_graph_add_stream(b->graph, stage->device, "compute");
    bool sharing[DTS_GROUP_COUNT] = {false};
    groups_of(plan, sharing);
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
    stage->memory_rate = DTS_NO_ID;
    if (b->flow_network && shares_multiprocessors(plan)) {
        snprintf(name, sizeof name, "%s multiprocessors", of_stage(b, index, stage));
        const dts_gpu *chip = &plan->job.cluster->gpu;
        stage->multiprocessors = dts_graph_add_resource(b->graph, name, (double)chip->multiprocessors);
        if (plan->job.stack->communication_memory > 0) {
            snprintf(name, sizeof name, "%s memory", of_stage(b, index, stage));
            stage->memory_rate =
                dts_graph_add_resource(b->graph, name, chip->memory_bandwidth_Bps * chip->memory_efficiency);
        }
    }
    stage->h2d = DTS_NO_ID;
    stage->d2h = DTS_NO_ID;
    stage->port_out = DTS_NO_ID;
    stage->port_in = DTS_NO_ID;
    double port = dts_gpu_port_Bps(plan->job.cluster);
    if (port > 0) {
        snprintf(name, sizeof name, "%s GPU link out", of_stage(b, index, stage));
        stage->port_out = dts_graph_add_resource(b->graph, name, port);
        snprintf(name, sizeof name, "%s GPU link in", of_stage(b, index, stage));
        stage->port_in = dts_graph_add_resource(b->graph, name, port);
    }
}

dts_status dts_build_stages(dts_builder *b) {
    const dts_plan *plan = b->plan;
    b->rows = b->full ? dts_plan_rows(plan) : 1;
    /* nodes grow with the stage and the row */
    b->node_count = dts_plan_gpu(plan, b->rows - 1, plan->pipeline - 1) / plan->gpus_per_node + 1;
    b->stage_count = dts_plan_single_process(plan) ? plan->data : plan->pipeline;
    b->nodes = dts_arena_array(b->arena, (size_t)b->node_count, sizeof *b->nodes);
    b->all_stages = dts_arena_array(b->arena, (size_t)(b->rows * b->stage_count), sizeof *b->all_stages);
    if (b->nodes == NULL || b->all_stages == NULL) {
        return dts_diag_nomem(b->diag);
    }
    for (int64_t row = 0; row < b->rows; row++) {
        dts_build_select_row(b, row);
        for (int64_t p = 0; p < b->stage_count; p++) {
            add_stage(b, row, p, &b->stages[p]);
            if (copies_from_host(plan)) {
                add_host_link(b, &b->stages[p]);
            }
        }
    }
    dts_build_select_row(b, 0);
    for (int64_t i = 0; i < b->node_count; i++) { /* behind the stages: device p is stage p of row 0 */
        add_node(b, i);
    }
    return dts_ranks_new(b);
}

void dts_build_select_row(dts_builder *b, int64_t row) {
    b->stages = &b->all_stages[row * b->stage_count];
}

dts_status dts_build_stage_alone(dts_builder *b, int64_t index, dts_stage *stage) {
    int64_t node = b->plan->stage_node[index];
    b->nodes = dts_arena_array(b->arena, (size_t)node + 1, sizeof *b->nodes);
    if (b->nodes == NULL) {
        return dts_diag_nomem(b->diag);
    }
    add_stage(b, 0, index, stage);
    add_node(b, node);
    return DTS_OK;
}
