#include "plan/plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plan/internal.h"

bool dts_plan_quantises(const dts_plan *plan) {
    return plan->storage.product != plan->storage.compute;
}

bool dts_plan_asks_recipe(const dts_job *job) {
    const dts_fp8_recipe recipe = (dts_fp8_recipe)job->stack->fp8_recipe;
    return recipe != DTS_FP8_TENSORWISE && recipe != DTS_FP8_DELAYED;
}

/* The recipe is that of fp8: narrower formats and mxfp8 bring their scales with them. */
static dts_fp8_recipe recipe_of(const dts_plan *plan) {
    return plan->storage.product == DTS_FP8 ? (dts_fp8_recipe)plan->job.stack->fp8_recipe : DTS_FP8_TENSORWISE;
}

bool dts_plan_scales_rows(const dts_plan *plan) {
    const dts_fp8_recipe recipe = recipe_of(plan);
    return recipe == DTS_FP8_ROWWISE || recipe == DTS_FP8_ROWWISE_WIDE_GRADIENT;
}

/* Casts of weights serve all products that read them, unless each has scales of its own. */
static bool caches_weights(const dts_plan *plan) {
    return plan->job.stack->fp8_cached_weights && !dts_plan_scales_rows(plan);
}

bool dts_plan_gathers_quantised(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    const bool as_stored = dts_plan_adapts(plan) && dts_plan_shards_parameters(plan); /* frozen weights are */
    return dts_plan_quantises(plan) && !as_stored && !dts_plan_scales_rows(plan) &&
           (dts_plan_shards_parameters(plan) ? stack->fp8_all_gather : stack->fp8_primary_weights);
}

/* Products of Hopper and of ROCm read 8-bit operands along K only, and so do block scales everywhere
 * (model/quantise.c). */
static int operand_copies(const dts_plan *plan) {
    const dts_gpu *gpu = &plan->job.cluster->gpu;
    bool nvidia = gpu->vendor != NULL && strcmp(gpu->vendor, "nvidia") == 0;
    bool along_k = !nvidia || gpu->compute_capability < 10;
    return along_k || plan->storage.product != DTS_FP8 || recipe_of(plan) == DTS_FP8_BLOCKWISE ? 2 : 1;
}

static const double BLOCK_SCALE_B = 4.0 / 128; /* blockwise: a number in fp32 for 128 elements along a row */

bool dts_plan_narrow_attention(const dts_plan *plan) {
    const dts_fp8_recipe recipe = recipe_of(plan);
    const bool whole_tensors = recipe == DTS_FP8_TENSORWISE || recipe == DTS_FP8_DELAYED;
    return plan->job.stack->fp8_attention && plan->storage.product == DTS_FP8 && whole_tensors &&
           plan->job.stack->attention == DTS_ATTENTION_FLASH && plan->job.model->kv_lora_rank == 0 &&
           !dts_plan_decodes(plan);
}

static dts_quantisation quantisation_of(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    const dts_fp8_recipe recipe = recipe_of(plan);
    bool kept = caches_weights(plan) && !dts_plan_shards_parameters(plan);
    bool current = recipe == DTS_FP8_TENSORWISE && plan->storage.product != DTS_MXFP8;
    bool shares = plan->storage.product == DTS_FP8 && (current || dts_plan_scales_rows(plan));
    bool blocks = plan->storage.product == DTS_MXFP8 || plan->storage.product == DTS_NVFP4;
    const dts_gpu *gpu = &plan->job.cluster->gpu;
    double cast_factor = blocks ? gpu->block_cast_factor : gpu->transpose_factor;
    return (dts_quantisation){.format = plan->storage.product,
                              .copies = operand_copies(plan),
                              .transpose_factor = fmax(stack->fp8_transpose_factor, cast_factor),
                              /* blocks find their scales while they are cast */
                              .amax_kernel = stack->fp8_amax_kernel && current,
                              .shared_scales = shares ? stack->fp8_shared_scales : DTS_SHARED_SCALES_NONE,
                              .scales_B = recipe == DTS_FP8_BLOCKWISE ? BLOCK_SCALE_B : 0,
                              .rows = dts_plan_scales_rows(plan),
                              .attention = dts_plan_narrow_attention(plan),
                              .wide_weight_gradient = recipe == DTS_FP8_ROWWISE_WIDE_GRADIENT,
                              .dispatches = stack->fp8_dispatch,
                              .weights = dts_plan_gathers_quantised(plan) ? DTS_WEIGHTS_QUANTISED
                                         : kept                           ? DTS_WEIGHTS_ONCE
                                                                          : DTS_WEIGHTS_CAST};
}

double dts_plan_frozen_B(const dts_plan *plan) {
    const double wide_B = dts_numeric_bytes(plan->storage.activation);
    if (!dts_plan_quantises(plan) || dts_plan_shards_parameters(plan)) {
        return wide_B;
    }
    const double narrow_B = operand_copies(plan) * dts_numeric_bytes(plan->storage.product);
    if (dts_plan_gathers_quantised(plan)) {
        return narrow_B;
    }
    return wide_B + (caches_weights(plan) ? narrow_B : 0);
}

double dts_plan_weights_B(const dts_plan *plan, double elements, double quantised) {
    double stored_B = plan->storage.parameter_B;
    if (!dts_plan_quantises(plan) || dts_plan_shards_parameters(plan)) {
        return elements * stored_B;
    }
    double narrow_B = operand_copies(plan) * dts_numeric_bytes(plan->storage.product);
    if (dts_plan_gathers_quantised(plan)) {
        return (elements - quantised) * stored_B + quantised * narrow_B;
    }
    return elements * stored_B + (caches_weights(plan) ? quantised * narrow_B : 0);
}

/* Products of gradients add up in fp32, those of forward do not: the default of Transformer Engine (common/recipe,
 * _2X_ACC_DGRAD, _2X_ACC_WGRAD) and of torchao (float8/config.py, use_fast_accum), where the rowwise kernel is that of
 * forward only (float8_python_api.py). Blockwise moves its sums with every block. */
double dts_plan_product_factor(const dts_plan *plan, const dts_operator *o, bool gradient) {
    const dts_gemm_profile *gemm = &plan->job.cluster->gpu.gemm;
    if (!o->quantised || plan->storage.product != DTS_FP8) {
        return 1;
    }
    if (recipe_of(plan) == DTS_FP8_BLOCKWISE) {
        return gemm->block_factor;
    }
    return gradient ? gemm->promoted_factor : dts_plan_scales_rows(plan) ? gemm->row_factor : 1;
}

dts_numeric dts_plan_product_format(const dts_plan *plan, const dts_operator *o, bool weight_gradient) {
    const bool wide = weight_gradient && recipe_of(plan) == DTS_FP8_ROWWISE_WIDE_GRADIENT;
    if (o->adapter) {
        return plan->storage.adapter;
    }
    return o->quantised && !wide ? plan->storage.product : plan->storage.compute;
}

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
        .quantisation = quantisation_of(plan),
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

int dts_plan_owner_of(const dts_plan *plan, int64_t virtual_stage, int direction) {
    int rank = 0;
    int chunk = 0;
    dts_virtual_stage_owner(plan->schedule.layout, (int)plan->pipeline, (int)virtual_stage, direction, &rank, &chunk);
    return rank;
}

int dts_plan_owner(const dts_plan *plan, int64_t virtual_stage) {
    return dts_plan_owner_of(plan, virtual_stage, 0);
}

int64_t dts_plan_stage(const dts_plan *plan, int64_t rank, int64_t chunk) {
    return dts_virtual_stage(plan->schedule.layout, (int)plan->pipeline, (int)rank, (int)chunk);
}

int dts_plan_direction(const dts_plan *plan, int64_t chunk) {
    return plan->schedule.layout == DTS_LAYOUT_BIDIR ? (int)chunk : 0;
}

/* With two directions each end of the pipeline holds the embedding of one model and the projection of the other: the
 * rank keeps one tensor for both, and the copies' reduction covers it (DeepSeek-V3 technical report, section 3.2.2). */
bool dts_plan_ties_across(const dts_plan *plan) {
    return plan->job.model->tied_embeddings && plan->copies == 1 &&
           dts_plan_owner(plan, 0) != dts_plan_owner(plan, plan->stages - 1);
}

bool dts_plan_scales_loss(const dts_plan *plan) {
    return plan->storage.compute == DTS_FP16 &&
           (plan->job.training->precision != DTS_PRECISION_FP16 || plan->job.stack->master_weights);
}

bool dts_plan_needs_global_number(const dts_plan *plan) {
    const bool steps = plan->job.training->optimizer != DTS_OPTIMIZER_NONE;
    return steps && (plan->job.stack->gradient_clipping || dts_plan_scales_loss(plan));
}

bool dts_plan_clips_microbatches(const dts_plan *plan) {
    return plan->job.stack->clips_microbatches && plan->microbatches > 1 && !dts_plan_infers(plan);
}

bool dts_plan_overlaps_p2p(const dts_plan *plan, const dts_schedule_method *method) {
    const int overlap = plan->job.stack->p2p_overlap;
    const bool splits = method != NULL && method->splits_backward;
    return overlap == DTS_P2P_OVERLAPS || (overlap == DTS_P2P_OVERLAPS_SPLIT && splits) ||
           (overlap == DTS_P2P_OVERLAPS_INTERLEAVED && plan->virtual_stages > 1);
}

bool dts_plan_may_post_validate(const dts_plan *plan, const dts_schedule_method *method) {
    return plan->job.stack->post_validation && plan->pipeline > 1 && plan->copies == 1 && method != NULL &&
           method->splits_backward && dts_plan_needs_global_number(plan) && !dts_plan_infers(plan) &&
           !plan->job.stack->pipeline_single_process;
}

bool dts_plan_post_validates(const dts_plan *plan) {
    return dts_plan_may_post_validate(plan, plan->method) && plan->job.offload->optimizer == DTS_OFFLOAD_NONE &&
           !dts_plan_single_process(plan);
}

bool dts_plan_dispatches_on_device(const dts_plan *plan) {
    const int64_t domain = plan->job.stack->device_dispatch_domain;
    const bool sent = plan->expert > 1 || plan->expert_tensor > 1; /* MoEFlexTokenDispatcher: "requires TPxEP > 1" */
    return domain > 0 && dts_cluster_domain(plan->job.cluster) >= domain && sent;
}

bool dts_plan_shards_parameters(const dts_plan *plan) {
    int kind = plan->job.parallelism->data_parallel;
    return kind == DTS_DP_FSDP || kind == DTS_DP_ZERO3;
}

int64_t dts_units_prefetched(const dts_stack *stack, int data_parallel) {
    const bool own = data_parallel == DTS_DP_ZERO3 && stack->fsdp_zero3_prefetch >= 0;
    return own ? stack->fsdp_zero3_prefetch : stack->fsdp_prefetch;
}

double dts_unit_host_s(const dts_stack *stack, int data_parallel) {
    return stack->fsdp_unit_host_s + (data_parallel == DTS_DP_ZERO3 ? stack->fsdp_zero3_host_s : 0);
}

double dts_adapter_host_s(const dts_plan *plan, int data_parallel) {
    const bool adapts = plan->job.training->adapters.rank > 0;
    return adapts && data_parallel == DTS_DP_ZERO3 ? plan->job.stack->fsdp_adapter_host_s / 2 : 0;
}

bool dts_plan_shards_gradients(const dts_plan *plan) {
    return dts_plan_shards_parameters(plan) || plan->job.parallelism->data_parallel == DTS_DP_ZERO2;
}

bool dts_plan_reshards(const dts_plan *plan) {
    const int reshard = plan->job.parallelism->reshard_after_forward;
    const bool whole = plan->pipeline > 1 && !plan->job.stack->fsdp_reshard_in_pipeline && !dts_plan_infers(plan);
    return reshard == DTS_RESHARD_AUTO ? !whole : reshard == DTS_RESHARD_YES;
}

bool dts_plan_ends_apart(const dts_plan *plan) {
    const dts_job *job = &plan->job;
    return job->stack->fsdp_ends_apart && !job->model->tied_embeddings && !dts_plan_wraps_linears(plan);
}

bool dts_plan_reduces_each_step(const dts_plan *plan) {
    const dts_parallelism *p = plan->job.parallelism;
    const bool waits = plan->job.stack->pipeline_defers_reduction && plan->pipeline > 1 && plan->copies == 1 &&
                       p->layers.count == 0 && plan->job.offload->gradients == DTS_OFFLOAD_NONE &&
                       !dts_plan_asynchronous(plan) && !dts_plan_infers(plan);
    return p->gradient_sync == DTS_REDUCE_AUTO
               ? waits
               : p->gradient_sync == DTS_REDUCE_EACH_STEP || p->gradient_sync == DTS_REDUCE_EACH_FLUSH;
}

bool dts_plan_reduces_each_flush(const dts_plan *plan) {
    const int when = plan->job.parallelism->gradient_sync;
    const bool fsdp = plan->job.parallelism->data_parallel == DTS_DP_FSDP;
    return plan->flushes > 1 &&
           (when == DTS_REDUCE_EACH_FLUSH || (when == DTS_REDUCE_AUTO && fsdp && dts_plan_reduces_each_step(plan)));
}

bool dts_plan_defers_reduction(const dts_plan *plan) {
    return dts_plan_reduces_each_step(plan) && plan->job.parallelism->data_parallel == DTS_DP_FSDP &&
           plan->microbatches > 1 && dts_plan_replicates(plan);
}

bool dts_plan_gradients_come(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel == DTS_DP_FSDP && plan->job.stack->zero_grad_to_none &&
           dts_plan_replicates(plan) && plan->job.offload->gradients == DTS_OFFLOAD_NONE && !dts_plan_infers(plan) &&
           !dts_plan_asynchronous(plan);
}

/* One rank of FSDP reduces nothing, but adds up in the format of the reduction all the same. */
double dts_plan_stored_gradient_B(const dts_plan *plan, dts_parameter_set set) {
    const dts_storage *storage = &plan->storage;
    const bool sums = plan->job.parallelism->data_parallel == DTS_DP_FSDP && dts_plan_shards(plan, set) == 1 &&
                      plan->microbatches > 1 && dts_plan_reduces_each_step(plan);
    return sums ? fmax(storage->gradient_B, storage->reduce_B) : storage->gradient_B;
}

/* Steps of an asynchronous schedule have no end. */
static bool has_steps_of_stages(const dts_plan *plan) {
    return plan->pipeline > 1 && !dts_plan_infers(plan) && !dts_plan_asynchronous(plan);
}

bool dts_plan_buffers_microbatches(const dts_plan *plan) {
    return plan->job.stack->pipeline_buffers && has_steps_of_stages(plan);
}

dts_kept_outputs dts_plan_kept_outputs(const dts_plan *plan) {
    return has_steps_of_stages(plan) ? (dts_kept_outputs)plan->job.stack->pipeline_keeps_outputs
                                     : DTS_KEPT_OUTPUTS_NONE;
}

bool dts_plan_repeats_reduction(const dts_plan *plan) {
    const dts_parallelism *p = plan->job.parallelism;
    return p->gradient_sync == DTS_REDUCE_EACH_MICROBATCH && p->data_parallel == DTS_DP_DDP;
}

bool dts_plan_wraps_linears(const dts_plan *plan) {
    const dts_parallelism *p = plan->job.parallelism;
    return p->fsdp_unit == DTS_FSDP_UNIT_LINEAR && p->data_parallel == DTS_DP_FSDP;
}

bool dts_plan_shards_optimizer(const dts_plan *plan) {
    return dts_plan_shards_gradients(plan) || plan->job.parallelism->data_parallel == DTS_DP_ZERO1;
}

bool dts_job_orthogonalises(const dts_job *job) {
    return job->training->optimizer == DTS_OPTIMIZER_MUON && job->training->mode == DTS_MODE_TRAIN;
}

bool dts_plan_keeps_matrices(const dts_plan *plan) {
    return dts_plan_owns_matrices(plan) && !dts_plan_owns_tensors(plan) && !dts_plan_shards_parameters(plan);
}

bool dts_job_may_own_tensors(const dts_job *job) {
    return job->stack->ddp_owns_tensors || dts_job_orthogonalises(job);
}

bool dts_plan_owns_matrices(const dts_plan *plan) {
    return dts_job_orthogonalises(&plan->job) && dts_plan_shards_optimizer(plan);
}

bool dts_plan_owns_tensors(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel == DTS_DP_ZERO1 && plan->job.stack->ddp_owns_tensors &&
           plan->job.offload->optimizer == DTS_OFFLOAD_NONE && (plan->shards > 1 || plan->expert_replicas > 1);
}

bool dts_plan_may_overlap_gather(const dts_plan *plan, const dts_schedule_method *method) {
    const bool asynchronous = method != NULL && method->asynchronous;
    const bool in_order = plan->copies == 1 && !dts_plan_may_post_validate(plan, method) && !asynchronous;
    return plan->job.stack->ddp_overlap_gather && in_order && dts_plan_replicates(plan) && plan->style_count == 1 &&
           !dts_plan_infers(plan);
}

bool dts_plan_overlaps_gather(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel == DTS_DP_ZERO1 && dts_plan_may_overlap_gather(plan, plan->method) &&
           plan->job.offload->optimizer == DTS_OFFLOAD_NONE && !dts_plan_owns_tensors(plan);
}

bool dts_plan_accumulates_by_kernel(const dts_plan *plan) {
    switch ((dts_accumulate)plan->job.stack->accumulate_kernel) {
        case DTS_ACCUMULATE_PRODUCT:
            return false;
        case DTS_ACCUMULATE_KERNEL:
            return true;
        case DTS_ACCUMULATE_KERNEL_HALF:
            break;
    }
    return plan->storage.gradient_B < 4;
}

bool dts_plan_experts_apart(const dts_plan *plan) {
    const bool differ = plan->expert > 1 || plan->expert_tensor != plan->tensor;
    return plan->job.model->experts > 0 && differ;
}

int64_t dts_plan_shards(const dts_plan *plan, dts_parameter_set set) {
    return set == DTS_SET_EXPERTS ? plan->expert_replicas : plan->shards;
}

bool dts_plan_replicates_set(const dts_plan *plan, dts_parameter_set set) {
    return plan->replicas > 1 || dts_plan_shards(plan, set) > 1;
}

bool dts_plan_replicates(const dts_plan *plan) {
    return dts_plan_replicates_set(plan, DTS_SET_COMMON) || dts_plan_replicates_set(plan, DTS_SET_EXPERTS);
}

bool dts_plan_offloads(const dts_plan *plan) {
    const dts_offload *o = plan->job.offload;
    return o->parameters != DTS_OFFLOAD_NONE || o->gradients != DTS_OFFLOAD_NONE || o->optimizer != DTS_OFFLOAD_NONE ||
           o->activations != DTS_OFFLOAD_NONE;
}

bool dts_plan_uses_nvme(const dts_plan *plan) {
    const dts_offload *o = plan->job.offload;
    return o->parameters == DTS_OFFLOAD_NVME || o->gradients == DTS_OFFLOAD_NVME || o->optimizer == DTS_OFFLOAD_NVME ||
           o->activations == DTS_OFFLOAD_NVME;
}

double dts_training_passes(const dts_training *training) {
    if (training->mode != DTS_MODE_TRAIN) {
        return 1;
    }
    return training->adapters.rank > 0 ? 2 : 3;
}

bool dts_plan_infers(const dts_plan *plan) {
    return plan->job.training->mode != DTS_MODE_TRAIN;
}

bool dts_plan_decodes(const dts_plan *plan) {
    return plan->job.training->mode == DTS_MODE_DECODE;
}

bool dts_plan_caches(const dts_plan *plan) {
    const int cache = plan->job.training->kv_cache;
    return cache > DTS_KV_CACHE_NONE || (cache == DTS_KV_CACHE_AUTO && dts_plan_decodes(plan));
}

bool dts_plan_keeps_weight_copies(const dts_plan *plan) {
    return !dts_plan_shards_parameters(plan);
}

bool dts_plan_loads_input(const dts_plan *plan) {
    return plan->job.input->sample_cost_s > 0 || plan->job.input->sample_B > 0;
}

/* One process for all GPUs of a node, or one for each. */
static int64_t processes_per_node(const dts_plan *plan) {
    bool one = dts_plan_single_process(plan) || (plan->job.stack->pipeline_single_process && plan->pipeline > 1);
    return one ? 1 : plan->gpus_per_node;
}

double dts_plan_loader_cores(const dts_plan *plan) {
    int64_t left = dts_cluster_host(plan->job.cluster).cores - processes_per_node(plan);
    return left > 1 ? (double)left : 1;
}

double dts_plan_cpu_step_Bps(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    if (!(stack->cpu_thread_Bps > 0)) {
        return stack->cpu_step_Bps;
    }
    const int64_t processes = processes_per_node(plan);
    double threads = (double)dts_cluster_host(plan->job.cluster).cores / (double)processes;
    threads = processes > 1 && stack->cpu_threads > 0 ? fmin((double)stack->cpu_threads, threads) : threads;
    const double together_Bps = fmax(threads, 1) * stack->cpu_thread_Bps;
    return stack->cpu_step_Bps > 0 ? fmin(together_Bps, stack->cpu_step_Bps) : together_Bps;
}

double dts_plan_loaders_per_node(const dts_plan *plan) {
    if (dts_plan_single_process(plan)) {
        return (double)plan->job.input->workers;
    }
    int64_t tensor_here = plan->tensor < plan->gpus_per_node ? plan->tensor : plan->gpus_per_node;
    return (double)(plan->job.input->workers * plan->same_stage_per_node) / (double)tensor_here;
}

double dts_plan_sample_B(const dts_plan *plan) {
    static const double token_B = 16; /* its number and its target's, int64 */
    double given = plan->job.input->sample_B;
    return given > 0 ? given : token_B * (double)plan->job.training->sequence_length;
}

bool dts_plan_single_process(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel == DTS_DP_SINGLE_PROCESS && plan->data > 1;
}

bool dts_plan_asynchronous(const dts_plan *plan) {
    return plan->method != NULL && plan->method->asynchronous;
}

dts_status dts_plan_begin(const dts_job *job, dts_plan *out, dts_diag *diag) {
    *out = (dts_plan){.job = *job};
    return dts_plan_apply_rules(job, out, diag);
}

static dts_status place_and_cut(dts_plan *plan, dts_arena *arena, dts_diag *diag) {
    dts_status status = dts_plan_place(plan, arena, diag);
    status = status == DTS_OK ? dts_plan_cut(plan, arena, diag) : status;
    status = status == DTS_OK ? dts_plan_make_styles(plan, arena, diag) : status;
    return status == DTS_OK ? dts_plan_check_modules(plan, diag) : status;
}

static dts_status outline(dts_plan *plan, dts_arena *arena, dts_diag *diag) {
    if (plan->method != NULL) {
        plan->schedule.layout = plan->method->layout;
    }
    return place_and_cut(plan, arena, diag);
}

dts_status dts_plan_outline(const dts_job *job, dts_arena *arena, dts_plan *out, dts_diag *diag) {
    dts_status status = dts_plan_begin(job, out, diag);
    return status == DTS_OK ? outline(out, arena, diag) : status;
}

dts_status dts_plan_prepare(const dts_job *job, dts_arena *arena, dts_plan *out, dts_diag *diag) {
    dts_status status = dts_plan_begin(job, out, diag);
    if (status == DTS_OK && dts_plan_measures_passes(out, out->method)) {
        return outline(out, arena, diag);
    }
    status = status == DTS_OK ? dts_plan_build_order(out, NULL, arena, diag) : status;
    return status == DTS_OK ? place_and_cut(out, arena, diag) : status;
}

dts_status dts_plan_order(dts_plan *plan, const dts_schedule_shape *passes, dts_arena *arena, dts_diag *diag) {
    dts_status status = dts_plan_build_order(plan, passes, arena, diag);
    return status == DTS_OK ? dts_plan_make_styles(plan, arena, diag) : status; /* with this order */
}

const char *dts_plan_describe(const dts_plan *plan, dts_arena *arena) {
    static const char *const kinds[] = {"dp", "ddp", "zero1", "zero2", "zero3", "fsdp"};
    const char *pipeline = "";
    const char *tensor = "";
    if (plan->pipeline > 1) {
        const char *flushes = plan->flushes > 1 ? dts_arena_printf(arena, ", %" PRId64 " flushes", plan->flushes) : "";
        pipeline = dts_arena_printf(arena, "pipeline %" PRId64 " (%s%s%s) × ", plan->pipeline, plan->schedule.name,
                                    dts_plan_describe_costs(plan, arena), flushes == NULL ? "" : flushes);
    }
    if (plan->tensor > 1) {
        tensor =
            dts_arena_printf(arena, "tensor %" PRId64 "%s × ", plan->tensor, plan->async_tensor ? " (overlapped)" : "");
    }
    const char *context = "";
    if (plan->context > 1) {
        static const char *const methods[] = {"ring", "all-to-all", "all-gather"};
        context = dts_arena_printf(arena, "context %" PRId64 " (%s) × ", plan->context,
                                   methods[plan->job.parallelism->context_method]);
    }
    const char *expert = "";
    if (plan->expert > 1) {
        expert = dts_arena_printf(arena, ", expert %" PRId64, plan->expert);
    }
    const char *expert_tensor = "";
    if (plan->expert_tensor > 1) {
        expert_tensor = dts_arena_printf(arena, ", expert tensor %" PRId64, plan->expert_tensor);
    }
    const char *hybrid = "";
    if (plan->shards < plan->replicas) {
        hybrid = dts_arena_printf(arena, " in groups of %" PRId64, plan->shards);
    }
    return dts_arena_printf(arena, "%s%s%s%s%s %" PRId64 "%s%s%s%s",
                            dts_plan_decodes(plan)  ? "decode: "
                            : dts_plan_infers(plan) ? "inference: "
                                                    : "",
                            pipeline == NULL ? "" : pipeline, tensor == NULL ? "" : tensor,
                            context == NULL ? "" : context, kinds[plan->job.parallelism->data_parallel], plan->data,
                            hybrid == NULL ? "" : hybrid, expert == NULL ? "" : expert,
                            expert_tensor == NULL ? "" : expert_tensor, dts_plan_describe_layers(plan, arena));
}
