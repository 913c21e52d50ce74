/* Ranks on nodes.
 *
 * With t, c, d, p the coordinates of a rank and T, C, D, P the degrees, the global rank is
 *   tensor-data-pipeline:  t + T·(c + C·(d + D·p))      (Megatron-LM, parallel_state: tp-cp-dp-pp)
 *   tensor-pipeline-data:  t + T·(c + C·(p + P·d))      (a pipeline's stages are neighbours)
 * and its node is rank / gpus_per_node. Ranks that reduce gradients together are counted as r = c + C·d. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "plan/internal.h"

static int64_t gpu_of(const dts_plan *plan, int64_t r, int64_t p) {
    int64_t slot = r + dts_plan_stage_ranks(plan) * p;
    if (plan->job.parallelism->order == DTS_ORDER_TENSOR_PIPELINE_DATA) {
        slot = r % plan->context + plan->context * (p + plan->pipeline * (r / plan->context));
    }
    return plan->tensor * slot;
}

static int64_t node_of(const dts_plan *plan, int64_t r, int64_t p) {
    return gpu_of(plan, r, p) / plan->gpus_per_node;
}

static int64_t stage_of(const dts_plan *plan, int64_t gpu) {
    int64_t slot = gpu / plan->tensor;
    return plan->job.parallelism->order == DTS_ORDER_TENSOR_PIPELINE_DATA ? slot / plan->context % plan->pipeline
                                                                          : slot / dts_plan_stage_ranks(plan);
}

int64_t dts_plan_rows(const dts_plan *plan) {
    return plan->tensor * dts_plan_stage_ranks(plan);
}

int64_t dts_plan_gpu(const dts_plan *plan, int64_t row, int64_t p) {
    return gpu_of(plan, row / plan->tensor, p) + row % plan->tensor;
}

static int64_t switch_width(const dts_plan *plan) {
    int64_t width = plan->job.cluster->host.gpus_per_pcie_switch;
    return width < 1 ? 1 : (width < plan->gpus_per_node ? width : plan->gpus_per_node);
}

int64_t dts_plan_switch(const dts_plan *plan, int64_t gpu) {
    int64_t width = switch_width(plan);
    int64_t per_node = (plan->gpus_per_node + width - 1) / width;
    return gpu / plan->gpus_per_node * per_node + gpu % plan->gpus_per_node / width;
}

/* The PCIe switch of stage p, and the GPUs behind it that run the same stage. */
static void place_on_switch(dts_plan *plan, int64_t p) {
    int64_t width = switch_width(plan);
    int64_t gpu = gpu_of(plan, 0, p);
    int64_t within = gpu % plan->gpus_per_node / width;
    plan->stage_switch[p] = dts_plan_switch(plan, gpu);
    for (int64_t i = within * width; i < (within + 1) * width && i < plan->gpus_per_node; i++) {
        plan->stage_per_switch[p] += stage_of(plan, gpu - gpu % plan->gpus_per_node + i) == p;
    }
}

/* Every stride-th rank of a stage, tensor-parallel ones counted, from its first: the group of these of stage p, and
 * with two directions of the other stage that holds the same parameters (other; p: none). */
typedef struct members {
    int64_t p, other, count, stride;
} row_set;

static int64_t member_node(const dts_plan *plan, const row_set *m, int64_t p, int64_t i) {
    const int64_t row = i * m->stride;
    return (gpu_of(plan, row / plan->tensor, p) + row % plan->tensor) / plan->gpus_per_node;
}

/* Nodes that a group touches; members of stage p, and of both, on the node of the first of stage p. */
static void count_members(const dts_plan *plan, const row_set *m, int64_t *nodes, int64_t *here, int64_t *both_here) {
    int64_t previous = -1;
    int64_t at[2] = {0, m->p == m->other ? m->count : 0};
    const int64_t first = member_node(plan, m, m->p, 0);
    *nodes = *here = *both_here = 0;
    while (at[0] < m->count || at[1] < m->count) { /* nodes grow with the rank: merge both stages */
        int64_t one = at[0] < m->count ? member_node(plan, m, m->p, at[0]) : INT64_MAX;
        int64_t two = at[1] < m->count ? member_node(plan, m, m->other, at[1]) : INT64_MAX;
        int64_t node = one <= two ? one : two;
        at[one <= two ? 0 : 1]++;
        *nodes += node != previous;
        *here += one <= two && node == first;
        *both_here += node == first;
        previous = node;
    }
}

/* Hybrid sharding: neighbouring ranks form the shard groups. members of stage p's data group lie on a node. */
static dts_status place_shards(dts_plan *plan, int64_t p, int64_t members, dts_diag *diag) {
    dts_placement data = plan->data_groups[p];
    plan->shard_groups[p] = data;
    plan->replica_groups[p] = (dts_placement){.ranks = 1, .nodes = 1};
    if (plan->shards == plan->replicas) {
        return DTS_OK;
    }
    if (members < 1) {
        return dts_diag_error(diag, NULL, "parallelism", NULL, "replica 0 lies on no node"); /* cannot be */
    }
    bool even = data.ranks == members * data.nodes;
    bool inside = plan->shards <= members;
    if (!even || (inside ? members % plan->shards != 0 : plan->shards % members != 0)) {
        char help[80];
        snprintf(help, sizeof help, even ? "use shard_group: %" PRId64 : "leave shard_group out", members);
        return dts_diag_error(diag, NULL, "parallelism.shard_group", help,
                              "shard groups of %" PRId64 " ranks do not fit evenly on nodes with %" PRId64
                              " of the replicas",
                              plan->shards, members);
    }
    int64_t groups = dts_plan_stage_ranks(plan) / plan->shards;
    plan->shard_groups[p] = (dts_placement){.ranks = plan->shards, .nodes = inside ? 1 : plan->shards / members};
    plan->replica_groups[p] = (dts_placement){.ranks = groups, .nodes = inside ? data.nodes : groups};
    plan->replica_groups_per_node = (inside ? plan->shards : members) * plan->data_groups_per_stage_and_node;
    return DTS_OK;
}

/* Groups must be the same on every node they touch. */
static dts_status place_group(const dts_plan *plan, const row_set *m, const char *what, dts_placement *out,
                              dts_diag *diag) {
    int64_t nodes = 0, here = 0, both_here = 0;
    count_members(plan, m, &nodes, &here, &both_here);
    *out = (dts_placement){.ranks = m->count * (m->p == m->other ? 1 : 2), .nodes = nodes};
    if (both_here * nodes != out->ranks) {
        return dts_diag_error(diag, NULL, "parallelism.expert", "choose a degree that divides the GPUs of a node",
                              "%s groups of %" PRId64 " ranks do not fit evenly on nodes of %" PRId64 " GPUs", what,
                              out->ranks, plan->gpus_per_node);
    }
    return DTS_OK;
}

/* A token has k experts on d of the N nodes of its group: N(1 − (1 − 1/N)^k) of them with even routing, or as few as
 * the routing is limited to. Where it crosses once for each node, d/k of its copies do. */
static double crossing_share(const dts_plan *plan, int64_t nodes) {
    const dts_model *model = plan->job.model;
    if (!plan->job.stack->tokens_cross_once || nodes == 1) {
        return 1;
    }
    const double all = (double)nodes, chosen = (double)model->experts_per_token;
    double reached = all * (1 - pow(1 - 1 / all, chosen));
    if (model->nodes_per_token > 0) {
        reached = fmin(reached, (double)model->nodes_per_token);
    }
    return reached / chosen;
}

/* How many of a group share a node with stage_here ranks that its stage's parameters lie on. */
static int64_t groups_on_node(const dts_placement *group, int64_t stage_here) {
    const int64_t groups = stage_here * group->nodes / group->ranks;
    return groups > 1 ? groups : 1;
}

/* Ranks that split an expert are neighbours, those that exchange tokens come next, and those that hold the same experts
 * are copies apart. both_here: with the ranks of the other copy of the stage. */
static dts_status place_experts(dts_plan *plan, int64_t p, int64_t other, int64_t stage_here, int64_t both_here,
                                dts_diag *diag) {
    dts_placement *tokens = &plan->expert_groups[p], *parts = &plan->expert_tensor_groups[p];
    dts_placement *data = &plan->expert_data_groups[p];
    *tokens = *parts = (dts_placement){.ranks = 1, .nodes = 1};
    *data = plan->shard_groups[p];
    if (!dts_plan_experts_apart(plan)) { /* each is split like everything else */
        *parts = plan->job.model->experts > 0 ? plan->tensor_group : *parts;
        plan->expert_tensor_groups_per_node = groups_on_node(parts, stage_here);
        return DTS_OK;
    }
    const int64_t copy = plan->expert * plan->expert_tensor;
    const struct {
        row_set members;
        const char *what;
        dts_placement *out;
    } groups[] = {{{p, p, plan->expert_tensor, 1}, "expert-tensor", parts},
                  {{p, p, plan->expert, plan->expert_tensor}, "expert", tokens},
                  {{p, other, plan->expert_replicas / plan->copies, copy}, "expert-data", data}};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (place_group(plan, &groups[i].members, groups[i].what, groups[i].out, diag) != DTS_OK) {
            return DTS_INVALID;
        }
    }
    const dts_execution execution = dts_plan_execution(plan);
    double sent = 1; /* of a token's rows, where its ranks get one each */
    plan->expert_rows = dts_model_sent_rows(plan->job.model, &execution, &sent);
    plan->expert_crossing = fmin(1, crossing_share(plan, tokens->nodes) / sent);
    plan->expert_groups_per_node = groups_on_node(tokens, stage_here);
    plan->expert_tensor_groups_per_node = groups_on_node(parts, stage_here);
    plan->expert_data_groups_per_node = groups_on_node(data, both_here);
    return DTS_OK;
}

/* Where one process drives all stages of a pipeline, it reaches the GPUs of its own node only (torch Pipe; Li et al.,
 * "PyTorch Data Parallel Best Practices on Google Cloud", 2022: "single machine pipeline parallelism as of v1.11"). */
static dts_status check_one_process(const dts_plan *plan, dts_diag *diag) {
    const dts_job *job = &plan->job;
    int64_t gpus = plan->tensor * plan->context * plan->pipeline;
    bool whole = plan->gpus_per_node % gpus == 0;
    bool inside = job->cluster->nodes == 1 || (whole && job->parallelism->order == DTS_ORDER_TENSOR_PIPELINE_DATA);
    if (!job->stack->pipeline_single_process || plan->pipeline == 1 || inside) {
        return DTS_OK;
    }
    return dts_diag_error(diag, NULL, whole ? "parallelism.order" : "parallelism.pipeline",
                          whole ? "use order: tensor-pipeline-data, which keeps a pipeline inside a node"
                                : "use fewer stages, or a stack with a process for each GPU",
                          "one process drives all stages of a pipeline, but they lie on several nodes");
}

dts_status dts_plan_place(dts_plan *plan, dts_arena *arena, dts_diag *diag) {
    plan->stage_node = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->stage_node);
    plan->data_groups = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->data_groups);
    plan->shard_groups = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->shard_groups);
    plan->replica_groups = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->replica_groups);
    plan->expert_groups = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->expert_groups);
    plan->expert_tensor_groups = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->expert_tensor_groups);
    plan->expert_data_groups = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->expert_data_groups);
    plan->stage_switch = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->stage_switch);
    plan->stage_per_switch = dts_arena_array(arena, (size_t)plan->pipeline, sizeof *plan->stage_per_switch);
    if (plan->stage_node == NULL || plan->data_groups == NULL || plan->shard_groups == NULL ||
        plan->replica_groups == NULL || plan->expert_groups == NULL || plan->expert_tensor_groups == NULL ||
        plan->expert_data_groups == NULL || plan->stage_switch == NULL || plan->stage_per_switch == NULL) {
        return dts_diag_nomem(diag);
    }
    if (check_one_process(plan, diag) != DTS_OK) {
        return DTS_INVALID;
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        plan->stage_node[p] = node_of(plan, 0, p);
        plan->stage_per_switch[p] = 0;
        place_on_switch(plan, p);
    }
    int64_t g = plan->gpus_per_node;
    int64_t tensor_here = plan->tensor < g ? plan->tensor : g;
    plan->tensor_group = (dts_placement){.ranks = plan->tensor, .nodes = (plan->tensor + g - 1) / g};
    /* ranks of these two degrees stand together */
    int64_t neighbour_nodes = (plan->tensor * plan->context + g - 1) / g;
    plan->context_group = (dts_placement){.ranks = plan->context,
                                          .nodes = neighbour_nodes < plan->context ? neighbour_nodes : plan->context};
    plan->data_groups_per_stage_and_node = tensor_here;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        int64_t nodes = 0, here = 0, both_here = 0;
        const int64_t other = plan->copies == 2 ? plan->pipeline - 1 - p : p;
        count_members(plan, &(row_set){p, other, dts_plan_stage_ranks(plan), plan->tensor}, &nodes, &here, &both_here);
        plan->data_groups[p] = (dts_placement){.ranks = plan->replicas, .nodes = nodes};
        if (place_shards(plan, p, here, diag) != DTS_OK) {
            return DTS_INVALID;
        }
        int64_t same_stage = here * tensor_here;
        if (place_experts(plan, p, other, same_stage, both_here * tensor_here, diag) != DTS_OK) {
            return DTS_INVALID;
        }
        plan->same_stage_per_node = same_stage > plan->same_stage_per_node ? same_stage : plan->same_stage_per_node;
    }
    return DTS_OK;
}
