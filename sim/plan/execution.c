/* How the model is executed under a plan and its stack, in the words of model/. */
#include "plan/internal.h"

dts_execution dts_plan_execution(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    return (dts_execution){
        .micro_batch = plan->job.training->micro_batch,
        .sequence_length = plan->job.training->sequence_length,
        .queries = dts_plan_decodes(plan) ? 1 : 0,
        .tensor = plan->tensor,
        .sequence_parallel = plan->job.parallelism->sequence && plan->tensor > 1,
        .context = plan->context,
        .activation = plan->storage.activation,
        .weight = plan->storage.compute == DTS_TF32 ? DTS_FP32 : plan->storage.compute,
        .quantisation = dts_plan_quantisation(plan),
        .adaptation = dts_plan_adaptation(plan),
        .flash_attention = stack->attention == DTS_ATTENTION_FLASH,
        .fuse_bias_gelu = stack->fuse_bias_gelu || stack->compile,
        .fuse_bias_dropout_add = stack->fuse_bias_dropout_add || stack->compile,
        .fuse_softmax = stack->fuse_softmax || stack->compile,
        .fuse_norm = stack->fuse_norm || stack->compile,
        .persistent_norm = stack->persistent_norm,
        .fuse_rotary =
            (stack->fuse_rotary && (!plan->job.model->rotary_scaled || stack->fuse_scaled_rotary)) || stack->compile,
        .fuse_sums = stack->compile,
        .expert = plan->expert,
        .expert_tensor = plan->expert_tensor,
        .grouped_products = stack->experts == DTS_EXPERTS_GROUPED,
        .device_dispatch = dts_plan_dispatches_on_device(plan),
        .complex_rotary = stack->complex_rotary,
        .matrix_rotary = stack->matrix_rotary && !stack->compile,
        .widens_norm = stack->widens_norm && !stack->compile,
        .softmax_keys = stack->compile ? 0 : stack->softmax_keys,
        .keeps_joined_qkv = stack->keeps_joined_qkv,
        .positions_first = stack->positions_first,
        .keeps_softmax_input = stack->keeps_softmax_input,
        .repeats_keys = stack->repeats_keys,
        .gathers_few_kv = stack->few_kv_heads == DTS_FEW_KV_HEADS_GATHERED,
        .whole_few_kv = stack->few_kv_heads == DTS_FEW_KV_HEADS_WHOLE,
        .masked_share = stack->masked_share,
        /* kept by the pipeline, they are counted there */
        .frees_logits = stack->frees_logits || dts_plan_kept_outputs(plan) != DTS_KEPT_OUTPUTS_NONE,
        .shifts_logits = stack->shifted_logits != DTS_SHIFTED_LOGITS_NONE && !stack->compile,
        .widens_logits = stack->shifted_logits == DTS_SHIFTED_LOGITS_FP32,
        .z_loss = stack->z_loss,
        .loss_in_place = stack->loss_in_place,
        .gathers_logits = stack->gathers_logits,
        .gathers_each = stack->gathers_each,
        .joins_gathers = stack->compile,
        .whole_embedding = stack->whole_embedding,
        .keeps_gathered = stack->keeps_gathered,
        .loss_of_split = stack->loss_of_split,
        .loss_metrics = dts_plan_infers(plan) ? 0 : (int)stack->loss_metrics,
        .fuse_permute = stack->fuse_permute || stack->compile,
        .stores_narrow = stack->fp8_activation_input,
        .fuse_clamp = stack->fuse_clamp || stack->compile,
        .fuse_epilogues = stack->fuse_epilogues,
        .fuse_expert_bias = stack->fuse_expert_bias || stack->compile,
        .reads_sizes = stack->device_dispatch_reads,
        .awaits_rows = stack->device_dispatch_waits,
        .shared_beside = stack->shared_expert_overlap,
        .fuse_loss = stack->fuse_loss || (stack->compile && stack->compile_loss),
        .separate_bias = stack->separate_bias,
        .separate_qkv = stack->separate_qkv,
        .sums_branches = stack->parallel_blocks != DTS_PARALLEL_REDUCES_EACH,
        .sums_branch_gradients = stack->parallel_blocks == DTS_PARALLEL_REDUCES_BOTH,
        .dropout = stack->dropout && !dts_plan_infers(plan),
        .mask_B = stack->mask_bool_bytes ? 1 : 1.0 / 8,
        .autocast = plan->storage.autocast,
    };
}

double dts_plan_boundary_B(const dts_plan *plan) {
    dts_execution execution = dts_plan_execution(plan);
    return dts_model_boundary_B(plan->job.model, &execution);
}
