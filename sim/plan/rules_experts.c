/* Rules of mixtures of experts and of latent attention.
 *
 * Of the R = data · context · tensor ranks of a stage, each group of expert · expert_tensor neighbours holds one copy
 * of the experts: expert_tensor neighbours split each expert of theirs, and the ranks at the same place of these groups
 * hold different experts and exchange tokens. The ranks at the same place of the copies hold the same parameters and
 * reduce their gradients [1]. Hybrid sharding keeps whole copies inside a shard group, S · tensor ranks with
 * S · tensor / (expert · expert_tensor) of them: experts are sharded among these and reduced with the other groups, as
 * all other parameters are [2]. With two directions both ranks that hold a stage have the same experts.
 *
 * Where expert = 1 and expert_tensor = tensor, experts lie as all other parameters do.
 *
 * [1] NVIDIA/Megatron-LM megatron/core/parallel_state.py: the expert decoder's rank generator, tp-ep-dp.
 * [2] pytorch/torchtitan torchtitan/distributed/parallel_dims.py: dp_shard_mod_ep and dp_shard_in_ep. */
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

/* Ranks that split each expert, beside those that share them out. */
static dts_status check_tensor_degree(const dts_plan *plan, dts_diag *diag) {
    const int64_t ranks = dts_plan_stage_ranks(plan) * plan->tensor / plan->expert;
    const int64_t width = dts_model_expert_ffn_hidden(plan->job.model);
    char help[120];
    if (plan->expert_tensor == 1) {
        return DTS_OK;
    }
    if (plan->job.model->experts == 0) {
        return dts_diag_error(diag, NULL, "parallelism.expert_tensor", "use expert_tensor: 1, or a model with experts",
                              "expert_tensor %" PRId64 " splits experts, but the model is dense", plan->expert_tensor);
    }
    snprintf(help, sizeof help, "use expert_tensor: %" PRId64, nearest_degree(width, ranks, plan->expert_tensor));
    if (width % plan->expert_tensor != 0) {
        return dts_diag_error(diag, NULL, "parallelism.expert_tensor", help,
                              "expert_tensor %" PRId64 " does not divide the experts' width of %" PRId64,
                              plan->expert_tensor, width);
    }
    if (ranks % plan->expert_tensor != 0) {
        return dts_diag_error(diag, NULL, "parallelism.expert_tensor", help,
                              "expert %" PRId64 " × expert_tensor %" PRId64 " does not divide the %" PRId64
                              " ranks of a stage (data × context × tensor)",
                              plan->expert, plan->expert_tensor, ranks * plan->expert);
    }
    return DTS_OK;
}

/* Ranks that together hold one copy of the experts. */
static int64_t copy_ranks(const dts_plan *plan) {
    return plan->expert * plan->expert_tensor;
}

/* What does not go together with experts on different ranks. */
static dts_status check_company(const dts_plan *plan, dts_diag *diag) {
    char help[120];
    if (copy_ranks(plan) == 1) {
        return DTS_OK;
    }
    const int64_t sharing = plan->shards * plan->tensor;
    if (plan->shards < plan->replicas && sharing % copy_ranks(plan) != 0) {
        snprintf(help, sizeof help, "use expert: %" PRId64 ", or leave shard_group out",
                 nearest_degree(plan->job.model->experts, sharing / plan->expert_tensor, plan->expert));
        return dts_diag_error(
            diag, NULL, "parallelism.shard_group", help,
            "a shard group holds whole copies of the experts, but the %" PRId64
            " ranks of one (shard_group × tensor) are no multiple of expert × expert_tensor, %" PRId64,
            sharing, copy_ranks(plan));
    }
    if (dts_plan_single_process(plan)) {
        return dts_diag_error(diag, NULL, "parallelism.expert", "use ddp, or expert: 1",
                              "dp drives whole models: experts cannot lie on different GPUs");
    }
    return DTS_OK;
}

/* A graph cannot hold a place where the host waits for a number: none is read where tokens are dispatched by the device
 * and products take their counts from it, too (NVIDIA in mlcommons/training_results_v6.0, deepseekv3_671b: HybridEP,
 * fused grouped products and CUDA_GRAPH_SCOPE=full_iteration, without a capacity). */
static dts_status check_graphs(const dts_plan *plan, dts_diag *diag) {
    const dts_model *model = plan->job.model;
    const dts_stack *stack = plan->job.stack;
    const bool calls = stack->experts != DTS_EXPERTS_GROUPED; /* for each expert, whose sizes the host must know */
    const bool device = dts_plan_dispatches_on_device(plan);
    const bool reads = device ? stack->device_dispatch_waits || (stack->device_dispatch_reads && calls)
                              : copy_ranks(plan) > 1 || calls;
    const bool captured = dts_stack_captures_all(stack) ||
                          (dts_stack_captures_modules(stack) && dts_stack_captures(stack, DTS_GRAPH_MOE));
    if (dts_model_expert_layers(model) == 0 || !captured || !reads || model->capacity_factor > 0) {
        return DTS_OK;
    }
#define REST "capture the rest, by stack.cuda_graph_modules: [attn, moe_router] with cuda_graphs: layers"
    return dts_diag_error(diag, NULL, "stack.cuda_graphs",
                          !device                        ? "set model.capacity_factor, or " REST
                          : stack->device_dispatch_waits ? REST
                                                         : "set stack.device_dispatch_reads: false if products take "
                                                           "their sizes from the device, or " REST,
                          "dropless experts cannot be captured: the host reads how many tokens each one gets");
#undef REST
}

/* The mean is what a rank of expert gets of all tokens: none can receive more than all. */
static dts_status check_load(const dts_plan *plan, dts_diag *diag) {
    const dts_model *model = plan->job.model;
    if (plan->expert == 1 || model->load_imbalance <= (double)plan->expert) {
        return DTS_OK;
    }
    char help[120];
    snprintf(help, sizeof help, "give at most %" PRId64 ": one rank of expert then receives all tokens", plan->expert);
    return dts_diag_error(diag, NULL, "model.load_imbalance", help,
                          "load_imbalance %g gives the busiest of %" PRId64 " ranks more than all tokens",
                          model->load_imbalance, plan->expert);
}

dts_status dts_plan_check_experts(dts_plan *plan, dts_diag *diag) {
    const dts_model *model = plan->job.model;
    plan->expert_replicas = plan->shards;
    if (check_degree(plan, diag) != DTS_OK || check_tensor_degree(plan, diag) != DTS_OK ||
        check_company(plan, diag) != DTS_OK || check_graphs(plan, diag) != DTS_OK || check_load(plan, diag) != DTS_OK) {
        return DTS_INVALID;
    }
    if (dts_plan_experts_apart(plan)) {
        plan->expert_replicas = plan->shards * plan->tensor / copy_ranks(plan);
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
