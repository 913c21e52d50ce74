/* Ranks on nodes.
 *
 * With t, d, p the coordinates of a rank and T, D, P the degrees, the global rank is
 *   tensor-data-pipeline:  t + T·(d + D·p)      (Megatron-LM, parallel_state: tp-dp-pp)
 *   tensor-pipeline-data:  t + T·(p + P·d)      (a pipeline's stages are neighbours)
 * and its node is rank / gpus_per_node. */
#include <inttypes.h>
#include <stdio.h>

#include "plan/internal.h"

static int64_t gpu_of(const dts_plan *plan, int64_t d, int64_t p) {
    int64_t slot =
        plan->job.parallelism->order == DTS_ORDER_TENSOR_PIPELINE_DATA ? p + plan->pipeline * d : d + plan->data * p;
    return plan->tensor * slot;
}

static int64_t node_of(const dts_plan *plan, int64_t d, int64_t p) {
    return gpu_of(plan, d, p) / plan->gpus_per_node;
}

static int64_t stage_of(const dts_plan *plan, int64_t gpu) {
    int64_t slot = gpu / plan->tensor;
    return plan->job.parallelism->order == DTS_ORDER_TENSOR_PIPELINE_DATA ? slot % plan->pipeline : slot / plan->data;
}

/* The PCIe switch of stage p, and the GPUs behind it that run the same stage. */
static void place_on_switch(dts_plan *plan, int64_t p) {
    int64_t width = plan->job.cluster->host.gpus_per_pcie_switch;
    width = width < 1 ? 1 : (width < plan->gpus_per_node ? width : plan->gpus_per_node);
    int64_t per_node = (plan->gpus_per_node + width - 1) / width;
    int64_t gpu = gpu_of(plan, 0, p);
    int64_t within = gpu % plan->gpus_per_node / width;
    plan->stage_switch[p] = gpu / plan->gpus_per_node * per_node + within;
    for (int64_t i = within * width; i < (within + 1) * width && i < plan->gpus_per_node; i++) {
        plan->stage_per_switch[p] += stage_of(plan, gpu - gpu % plan->gpus_per_node + i) == p;
    }
}

/* Nodes touched by the data-parallel group of stage p, and GPUs of that stage on the node of replica 0. */
static void count_data_group(const dts_plan *plan, int64_t p, int64_t *nodes, int64_t *members_here) {
    int64_t previous = -1;
    *nodes = 0;
    *members_here = 0;
    int64_t here = node_of(plan, 0, p);
    for (int64_t d = 0; d < plan->data; d++) {
        int64_t node = node_of(plan, d, p); /* grows with d */
        *nodes += node != previous;
        *members_here += node == here;
        previous = node;
    }
}

/* Hybrid sharding: neighbouring ranks form the shard groups; members of one stage's data group lie on a node. */
static void place_shards(dts_plan *plan, int64_t members) {
    int64_t groups = plan->data / plan->shards;
    bool inside = plan->shards <= members;
    plan->shard_group = (dts_placement){.ranks = plan->shards, .nodes = inside ? 1 : plan->shards / members};
    plan->replica_group = (dts_placement){.ranks = groups, .nodes = inside ? plan->data_group.nodes : groups};
    plan->replica_groups_per_node = (inside ? plan->shards : members) * plan->data_groups_per_stage_and_node;
}

dts_status dts_plan_place(dts_plan *plan, dts_arena *arena, dts_diag *diag) {
    plan->stage_node = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->stage_node);
    plan->stage_switch = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->stage_switch);
    plan->stage_per_switch = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->stage_per_switch);
    if (plan->stage_node == NULL || plan->stage_switch == NULL || plan->stage_per_switch == NULL) {
        return dts_diag_nomem(diag);
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        plan->stage_node[p] = node_of(plan, 0, p);
        plan->stage_per_switch[p] = 0;
        place_on_switch(plan, p);
        plan->pipeline_crosses_nodes |= p > 0 && plan->stage_node[p] != plan->stage_node[p - 1];
    }
    int64_t g = plan->gpus_per_node;
    plan->tensor_group = (dts_placement){.ranks = plan->tensor, .nodes = (plan->tensor + g - 1) / g};
    int64_t nodes = 1;
    int64_t members = 1;
    count_data_group(plan, 0, &nodes, &members);
    plan->data_group = (dts_placement){.ranks = plan->data, .nodes = nodes};
    if (plan->data % nodes != 0) {
        return dts_diag_error(diag, NULL, "parallelism",
                              "choose degrees that divide the GPUs of a node, or cluster.gpus_per_node accordingly",
                              "%" PRId64 " replicas lie unevenly on %" PRId64 " nodes", plan->data, nodes);
    }
    int64_t tensor_here = plan->tensor < g ? plan->tensor : g;
    plan->data_groups_per_stage_and_node = tensor_here;
    plan->same_stage_per_node = members * tensor_here;
    if (plan->shards < members ? members % plan->shards != 0 : plan->shards % members != 0) {
        char help[80];
        snprintf(help, sizeof help, "use shard_group: %" PRId64, members);
        return dts_diag_error(diag, NULL, "parallelism.shard_group", help,
                              "shard groups of %" PRId64 " ranks do not fit evenly on nodes with %" PRId64
                              " of the replicas",
                              plan->shards, members);
    }
    place_shards(plan, members);
    return DTS_OK;
}
