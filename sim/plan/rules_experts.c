/* Rules of mixtures of experts and of latent attention.
 *
 * Of the R = data · context · tensor ranks of a stage, each group of `expert` neighbours holds one copy of the experts,
 * whole (expert tensor parallelism 1); the R / expert ranks at the same place of their groups hold the same ones and
 * reduce their gradients (NVIDIA/Megatron-LM megatron/core/parallel_state.py; torchtitan's mesh is the same with tensor
 * 1). */
#include <inttypes.h>
#include <stdio.h>

#include "plan/internal.h"

/* The largest degree up to limit that divides both the experts and the ranks of a stage. */
static int64_t nearest_degree(int64_t experts, int64_t ranks, int64_t limit) {
    int64_t best = 1;
    for (int64_t d = 1; d <= limit && d <= experts; d++) {
        if (experts % d == 0 && ranks % d == 0) {
            best = d;
        }
    }
    return best;
}

static dts_status check_degree(const dts_plan *plan, dts_diag *diag) {
    const int64_t experts = plan->job.model->experts, ranks = dts_plan_stage_ranks(plan) * plan->tensor;
    char help[120];
    if (plan->expert == 1) {
        return DTS_OK;
    }
    if (experts == 0) {
        return dts_diag_error(diag, NULL, "parallelism.expert", "use expert: 1, or a model with experts",
                              "expert %" PRId64 " splits experts, but the model is dense", plan->expert);
    }
    snprintf(help, sizeof help, "use expert: %" PRId64, nearest_degree(experts, ranks, plan->expert));
    if (experts % plan->expert != 0) {
        return dts_diag_error(diag, NULL, "parallelism.expert", help,
                              "expert %" PRId64 " does not divide the model's %" PRId64 " experts", plan->expert,
                              experts);
    }
    if (ranks % plan->expert != 0) {
        return dts_diag_error(diag, NULL, "parallelism.expert", help,
                              "expert %" PRId64 " does not divide the %" PRId64
                              " ranks of a stage (data × context × tensor)",
                              plan->expert, ranks);
    }
    return DTS_OK;
}

/* What does not go together with experts on different ranks. */
static dts_status check_company(const dts_plan *plan, dts_diag *diag) {
    if (plan->expert == 1) {
        return DTS_OK;
    }
    if (plan->copies > 1) {
        return dts_diag_error(diag, NULL, "parallelism.schedule", "use 1f1b or dualpipev, or expert: 1",
                              "a schedule in two directions with expert parallelism is not simulated by this version");
    }
    if (plan->shards < plan->replicas) {
        return dts_diag_error(diag, NULL, "parallelism.shard_group", "leave shard_group out, or use expert: 1",
                              "hybrid sharding with expert parallelism is not simulated by this version");
    }
    if (dts_plan_single_process(plan)) {
        return dts_diag_error(diag, NULL, "parallelism.expert", "use ddp, or expert: 1",
                              "dp drives whole models: experts cannot lie on different GPUs");
    }
    return DTS_OK;
}

/* A graph cannot hold a place where the host waits for a number. */
static dts_status check_graphs(const dts_plan *plan, dts_diag *diag) {
    const dts_model *model = plan->job.model;
    const dts_stack *stack = plan->job.stack;
    const bool reads = model->capacity_factor <= 0 && (plan->expert > 1 || stack->experts != DTS_EXPERTS_GROUPED);
    if (dts_model_expert_layers(model) == 0 || stack->cuda_graphs == DTS_GRAPHS_NONE || !reads) {
        return DTS_OK;
    }
    return dts_diag_error(diag, NULL, "stack.cuda_graphs", "use cuda_graphs: none, or set model.capacity_factor",
                          "dropless experts cannot be captured: the host reads how many tokens each one gets");
}

dts_status dts_plan_check_experts(dts_plan *plan, dts_diag *diag) {
    const dts_model *model = plan->job.model;
    plan->expert_replicas = plan->shards;
    if (check_degree(plan, diag) != DTS_OK || check_company(plan, diag) != DTS_OK ||
        check_graphs(plan, diag) != DTS_OK) {
        return DTS_INVALID;
    }
    if (plan->expert > 1) {
        plan->expert_replicas = dts_plan_stage_ranks(plan) * plan->tensor / plan->expert;
    }
    if (model->experts > 0 && plan->tensor > 1 && !plan->job.parallelism->sequence) {
        return dts_diag_error(diag, NULL, "parallelism.sequence", "set sequence: true, or tensor: 1",
                              "experts with tensor parallelism need sequence parallelism: each rank routes its own "
                              "positions");
    }
    if (model->shared_expert_ffn_hidden % plan->tensor != 0) {
        return dts_diag_error(diag, NULL, "parallelism.tensor", "choose a degree that divides the shared expert",
                              "tensor %" PRId64 " does not divide the shared expert's width of %" PRId64, plan->tensor,
                              model->shared_expert_ffn_hidden);
    }
    return DTS_OK;
}
