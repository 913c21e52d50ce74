/* Ranks on nodes.
 *
 * With t, d, p the coordinates of a rank and T, D, P the degrees, the global rank is
 *   tensor-data-pipeline:  t + T·(d + D·p)      (Megatron-LM, parallel_state: tp-dp-pp)
 *   tensor-pipeline-data:  t + T·(p + P·d)      (a pipeline's stages are neighbours)
 * and its node is rank / gpus_per_node. */
#include <inttypes.h>

#include "plan/internal.h"

static int64_t node_of(const dts_plan *plan, int64_t d, int64_t p) {
    int64_t slot =
        plan->job.parallelism->order == DTS_ORDER_TENSOR_PIPELINE_DATA ? p + plan->pipeline * d : d + plan->data * p;
    return plan->tensor * slot / plan->gpus_per_node;
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

dts_status dts_plan_place(dts_plan *plan, dts_arena *arena, dts_diag *diag) {
    plan->stage_node = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->stage_node);
    if (plan->stage_node == NULL) {
        return dts_diag_nomem(diag);
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        plan->stage_node[p] = node_of(plan, 0, p);
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
    return DTS_OK;
}
