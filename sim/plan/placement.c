/* Ranks on nodes.
 *
 * With t, d, p the coordinates of a rank and T, D, P the degrees, the global rank is
 *   tensor-data-pipeline:  t + T·(d + D·p)      (Megatron-LM, parallel_state: tp-dp-pp)
 *   tensor-pipeline-data:  t + T·(p + P·d)      (a pipeline's stages are neighbours)
 * and its node is rank / gpus_per_node. */
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
    plan->data_groups = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->data_groups);
    if (plan->stage_node == NULL || plan->data_groups == NULL) {
        return dts_diag_nomem(diag);
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        plan->stage_node[p] = node_of(plan, 0, p);
    }
    int64_t g = plan->gpus_per_node;
    int64_t tensor_here = plan->tensor < g ? plan->tensor : g;
    plan->tensor_group = (dts_placement){.ranks = plan->tensor, .nodes = (plan->tensor + g - 1) / g};
    plan->data_groups_per_stage_and_node = tensor_here;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        int64_t nodes = 0;
        int64_t members = 0;
        count_data_group(plan, p, &nodes, &members);
        plan->data_groups[p] = (dts_placement){.ranks = plan->data, .nodes = nodes};
        int64_t same_stage = members * tensor_here;
        plan->same_stage_per_node = same_stage > plan->same_stage_per_node ? same_stage : plan->same_stage_per_node;
    }
    return DTS_OK;
}
