/* The groups of keys of hardware/stacks/NAME.yaml: fuse, ddp, user_buffers, ring_attention, fp8, fsdp, pipeline,
 * allocator.
 */
#include "hardware/stack_parts.h"

/* Where a member stands inside the part of dts_stack that starts at first: keys that people want to see grouped
 * ("ddp: {bucket, first_bucket}") without a struct of their own. */
#define WITHIN(first, member) (offsetof(dts_stack, member) - offsetof(dts_stack, first))

static const char *const fsdp_words[] = {"fsdp", "zero3", NULL};
static const char *const fsdp_copy_kinds[] = {"none", "flat", "tensors", NULL};

static const dts_field fuse_fields[] = {
    {.key = "bias_gelu",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = WITHIN(fuse_bias_gelu, fuse_bias_gelu),
     .help = "bias and activation of the feed-forward in one kernel"},
    {.key = "bias_dropout_add",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = WITHIN(fuse_bias_gelu, fuse_bias_dropout_add),
     .help = "bias, dropout and residual in one kernel"},
    {.key = "softmax",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = WITHIN(fuse_bias_gelu, fuse_softmax),
     .help = "scale, mask and softmax in one kernel"},
    {.key = "norm",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = WITHIN(fuse_bias_gelu, fuse_norm),
     .help = "normalisation in one kernel"},
    {.key = "rotary",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = WITHIN(fuse_bias_gelu, fuse_rotary),
     .help = "rotary embedding in one kernel"},
    {.key = "loss",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = WITHIN(fuse_bias_gelu, fuse_loss),
     .help = "cross entropy in one kernel"},
    {.key = "permute",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fuse_bias_gelu, fuse_permute),
     .help = "mixture of experts: tokens are sorted by expert, and summed again, in one kernel"},
    {.key = "scaled_rotary",
     .type = DTS_FIELD_BOOL,
     .preset = "true",
     .offset = WITHIN(fuse_bias_gelu, fuse_scaled_rotary),
     .help = "with rotary: also where cosines and sines have a factor (model.rotary_scaled)"},
    {.key = "clamp",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fuse_bias_gelu, fuse_clamp),
     .help = "with bias_gelu: the kernel cuts the activation's inputs off itself (model.activation_clamp)"},
    {.key = "expert_bias",
     .type = DTS_FIELD_BOOL,
     .preset = "true",
     .offset = WITHIN(fuse_bias_gelu, fuse_expert_bias),
     .help = "mixture of experts: biases of all experts' outputs, weighed by the gates, in one kernel"},
    {.key = "epilogues",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fuse_bias_gelu, fuse_epilogues),
     .help = "products add their bias and apply GELU as they store, and in backward its derivative and the sum of the "
             "bias's gradient (cublasLt's epilogues: FusedDense of apex and FlashAttention)"},
};

const dts_schema dts_stack_fuse_schema = {
    .name = "fuse",
    .help = "fusions: each removes whole passes over memory and launches",
    .fields = fuse_fields,
    .field_count = sizeof fuse_fields / sizeof *fuse_fields,
    .struct_size = WITHIN(fuse_bias_gelu, fuse_epilogues) + sizeof(bool),
};

static const dts_field bert_fields[] = {
    {.key = "fine_tunes",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(bert_fine_tunes, bert_fine_tunes),
     .help = "model.head left out means a classification head"},
    {.key = "pretraining_lengths",
     .type = DTS_FIELD_LIST,
     .element_type = DTS_FIELD_INT,
     .minimum = 1,
     .maximum = 1e9,
     .offset = WITHIN(bert_fine_tunes, bert_pretraining_lengths),
     .help = "sequence lengths of pre-training: model.head left out means a classification head at all others"},
    {.key = "masked_share",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_NUMBER,
     .minimum = 0,
     .maximum = 1,
     .preset = "0",
     .offset = WITHIN(bert_fine_tunes, masked_share),
     .help = "pre-training: share of the positions whose logits are computed where model.predicted_share does not say; "
             "0: all"},
};

const dts_schema dts_stack_bert_schema = {
    .name = "bert",
    .help = "what BERT is trained for where the model does not say",
    .fields = bert_fields,
    .field_count = sizeof bert_fields / sizeof *bert_fields,
    .struct_size = WITHIN(bert_fine_tunes, masked_share) + sizeof(double),
};

static const dts_field ddp_fields[] = {
    {.key = "bucket",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .minimum = 1,
     .maximum = 1e12,
     .required = true,
     .offset = WITHIN(ddp_bucket_B, ddp_bucket_B),
     .help = "a bucket closes when it has reached this size"},
    {.key = "first_bucket",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .minimum = 1,
     .maximum = 1e12,
     .required = true,
     .offset = WITHIN(ddp_bucket_B, ddp_first_bucket_B),
     .help = "the same for the first bucket"},
    {.key = "staging",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .preset = "0",
     .maximum = 1e12,
     .offset = WITHIN(ddp_bucket_B, ddp_staging_B),
     .help = "gradients pass through a buffer of this size (DeepSpeed's reduce_bucket_size)"},
    {.key = "gradient_as_bucket_view",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = WITHIN(ddp_bucket_B, gradient_as_bucket_view),
     .help = "gradients live in the buckets: no second copy"},
    {.key = "whole_fp32",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(ddp_bucket_B, ddp_whole_fp32),
     .help = "ZeRO-1: half parameters' gradients that are stored in fp32 are all-reduced, though a rank needs its "
             "shard only"},
    {.key = "owns_tensors",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(ddp_bucket_B, ddp_owns_tensors),
     .help = "ZeRO-1: each rank steps whole tensors and broadcasts them, all gradients are all-reduced (PyTorch's "
             "ZeroRedundancyOptimizer); else every rank has its share of all, reduced and gathered at once"},
    {.key = "keeps_fresh_gradients",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(ddp_bucket_B, ddp_keeps_fresh),
     .help = "what backward makes stays beside the buckets until the step is done"},
    {.key = "overlap",
     .type = DTS_FIELD_BOOL,
     .preset = "true",
     .offset = WITHIN(ddp_bucket_B, ddp_overlap),
     .help =
         "a bucket is reduced as soon as it is full, else when backward is through (XLA hands over all gradients of "
         "a cluster at its end)"},
    {.key = "overlap_gather",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(ddp_bucket_B, ddp_overlap_gather),
     .help = "ZeRO-1: parameters are gathered part by part beside the next iteration's first forward pass "
             "(Megatron-Core's overlap_param_gather), else at once behind the step"},
};

const dts_schema dts_stack_ddp_schema = {
    .name = "ddp",
    .help = "distributed data parallel",
    .fields = ddp_fields,
    .field_count = sizeof ddp_fields / sizeof *ddp_fields,
    .struct_size = WITHIN(ddp_bucket_B, ddp_overlap_gather) + sizeof(bool),
};

static const char *const fp8_recipes[] = {"tensorwise", "delayed", "rowwise", "rowwise-with-gw-hp", "blockwise", NULL};
static const char *const shared_scales[] = {"none", "gathered", "all", NULL};

/* Off unless a profile says otherwise. */
#define FP8_FLAG(name, member, text) \
    { .key = (name), .type = DTS_FIELD_BOOL, .preset = "false", .offset = WITHIN(fp8_recipe, member), .help = (text) }

static const dts_field fp8_fields[] = {
    {.key = "recipe",
     .type = DTS_FIELD_ENUM,
     .names = fp8_recipes,
     .preset = "tensorwise",
     .offset = WITHIN(fp8_recipe, fp8_recipe),
     .help = "scales of fp8: of the tensor as it is, of earlier steps (delayed), of each row along the inner dimension "
             "(rowwise-with-gw-hp: the products of weight gradients stay wide), of blocks of 128"},
    {.key = "shared_scales",
     .type = DTS_FIELD_ENUM,
     .names = shared_scales,
     .preset = "none",
     .offset = WITHIN(fp8_recipe, fp8_shared_scales),
     .help = "recipe tensorwise: tensor-parallel ranks find one largest value before the casts of all operands they "
             "hold parts of, of those that are gathered afterwards, or of none"},
    FP8_FLAG(
        "amax_kernel", fp8_amax_kernel,
        "current scaling: a kernel of its own finds a tensor's largest value; false: delayed scaling, or a compiler "
        "that fuses it"),
    FP8_FLAG("cached_weights", fp8_cached_weights,
             "weights that are not sharded are cast once a step and kept beside the wide ones"),
    FP8_FLAG("primary_weights", fp8_primary_weights,
             "weights that are not sharded exist in the narrow format only, beside the optimizer's master copies"),
    FP8_FLAG("half_weights", fp8_half_weights,
             "without master_weights: weights, gradients and states are in bf16, not in fp32"),
    {.key = "transpose_factor",
     .type = DTS_FIELD_QUANTITY,
     .minimum = 1,
     .maximum = 10,
     .preset = "1",
     .offset = WITHIN(fp8_recipe, fp8_transpose_factor),
     .help = "casts that write a transposed copy as well: time over that of other kernels for as many bytes"},
    {.key = "expert_host",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .preset = "0",
     .offset = WITHIN(fp8_recipe, fp8_expert_host_s),
     .help = "host time for the tensors of each kernel of an expert's cast, where experts are cast one by one"},
    FP8_FLAG("dispatch", fp8_dispatch,
             "tokens go to the ranks of their experts in the narrow format, and so do the gradients of what comes home "
             "(DeepSeek-V3); not with scales of rows"),
    FP8_FLAG("activation_input", fp8_activation_input,
             "inputs of a fused gated activation are kept in one byte an element for backward, in 16-bit training too "
             "(Megatron-LM's activation_func_fp8_input_store)"),
    FP8_FLAG("all_gather", fp8_all_gather, "sharded parameters are cast before they are gathered"),
    FP8_FLAG("attention", fp8_attention,
             "precision fp8, recipes tensorwise and delayed: fused attention without windows reads queries, keys and "
             "values in 8 bits, and gradients (Transformer Engine's fp8_dpa)"),
};

const dts_schema dts_stack_fp8_schema = {
    .name = "fp8",
    .help = "8- and 4-bit products of the layers' linear operators",
    .fields = fp8_fields,
    .field_count = sizeof fp8_fields / sizeof *fp8_fields,
    .struct_size = WITHIN(fp8_recipe, fp8_attention) + sizeof(bool),
};

static const dts_field fsdp_fields[] = {
    {.key = "prefetch",
     .type = DTS_FIELD_INT,
     .maximum = 1000,
     .required = true,
     .offset = WITHIN(fsdp_prefetch, fsdp_prefetch),
     .help = "all-gathers issued ahead in backward"},
    {.key = "zero3_prefetch",
     .type = DTS_FIELD_INT,
     .minimum = -1,
     .maximum = 1000,
     .preset = "-1",
     .offset = WITHIN(fsdp_prefetch, fsdp_zero3_prefetch),
     .help = "the same with parallelism.data_parallel: zero3; -1: as prefetch"},
    {.key = "forward_prefetch",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = WITHIN(fsdp_prefetch, fsdp_forward_prefetch),
     .help = "all-gathers issued ahead in forward too"},
    {.key = "limit_all_gathers",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = WITHIN(fsdp_prefetch, fsdp_limit_all_gathers),
     .help = "the host waits rather than hold more than two gathered units"},
    {.key = "gathers_in_order",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fsdp_prefetch, fsdp_gathers_in_order),
     .help = "a gather waits for the kernels that were issued before it, so that its buffer is one that they are done "
             "with (Megatron-FSDP)"},
    {.key = "mixed_precision",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fsdp_prefetch, fsdp_mixed_precision),
     .help = "half precision of sharded parameters means fp32 shards and half gathered copies, not autocast"},
    {.key = "gathers_stored",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fsdp_prefetch, fsdp_gathers_stored),
     .help =
         "without mixed_precision: fp32 parameters are gathered as they are stored, and autocast casts them for each "
         "product, else they are gathered in half"},
    {.key = "reduce_fp32",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fsdp_prefetch, fsdp_reduce_fp32),
     .help = "with mixed_precision: gradients are reduced in fp32, else in half"},
    {.key = "reduce_half_fp32",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fsdp_prefetch, fsdp_reduce_half_fp32),
     .help = "precision bf16 or fp16: gradients wait and are reduced in fp32, and stored in half"},
    {.key = "copies",
     .type = DTS_FIELD_ENUM,
     .names = fsdp_copy_kinds,
     .preset = "none",
     .offset = WITHIN(fsdp_prefetch, fsdp_copies),
     .help = "what kernels around a unit's collectives move: flat, gradients into one tensor (FSDP1); tensors, "
             "parameters out of and gradients into buffers (FSDP2)"},
    {.key = "unit_host",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .preset = "0",
     .maximum = 1,
     .offset = WITHIN(fsdp_prefetch, fsdp_unit_host_s),
     .help = "host time around every gather and scatter of a unit: hooks, views, stream waits"},
    {.key = "zero3_host",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .preset = "0",
     .maximum = 1,
     .offset = WITHIN(fsdp_prefetch, fsdp_zero3_host_s),
     .help = "with parallelism.data_parallel: zero3, host time on top of unit_host: DeepSpeed's hooks around modules"},
    {.key = "zero3_adapter_host",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .preset = "0",
     .maximum = 1,
     .offset = WITHIN(fsdp_prefetch, fsdp_adapter_host_s),
     .help = "the same for the modules of each low-rank adapter of the unit"},
    {.key = "reshard_in_pipeline",
     .type = DTS_FIELD_BOOL,
     .preset = "true",
     .offset = WITHIN(fsdp_prefetch, fsdp_reshard_in_pipeline),
     .help = "what parallelism.reshard_after_forward: auto means with a pipeline"},
    {.key = "root_reshards",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fsdp_prefetch, fsdp_root_reshards),
     .help = "where parameters are resharded after forward: the root's as well, which are gathered again for backward"},
    {.key = "ends_apart",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(fsdp_prefetch, fsdp_ends_apart),
     .help =
         "embedding and head are units of their own, gathered and freed as layers are; else, and where they share a "
         "tensor, they belong to the root, which stays whole"},
    {.key = "called",
     .type = DTS_FIELD_ENUM,
     .names = fsdp_words,
     .preset = "fsdp",
     .offset = WITHIN(fsdp_prefetch, fsdp_called),
     .help = "what its users say for parallelism.data_parallel where all states are sharded: hints and searches do so"},
};

const dts_schema dts_stack_fsdp_schema = {
    .name = "fsdp",
    .help = "fully sharded data parallel",
    .fields = fsdp_fields,
    .field_count = sizeof fsdp_fields / sizeof *fsdp_fields,
    .struct_size = WITHIN(fsdp_prefetch, fsdp_called) + sizeof(int),
};

/* A number of multiprocessors; userbuffers.h of Transformer Engine has UB_MAX_SM, 32. */
#define UB_FIELD(key_, member, help_)                                                                             \
    {                                                                                                             \
        .key = key_, .type = DTS_FIELD_INT, .maximum = 32, .preset = "0", .offset = WITHIN(ub_qkv_dgrad, member), \
        .help = help_                                                                                             \
    }

static const dts_field user_buffers_fields[] = {
    UB_FIELD("qkv_dgrad", ub_qkv_dgrad, "the gather of the input beside the gradient of attention's input"),
    UB_FIELD("qkv_wgrad", ub_qkv_wgrad, "the reduction of that gradient beside the weight gradient"),
    UB_FIELD("fc1_dgrad", ub_fc1_dgrad, "the same gather of the feed-forward layer"),
    UB_FIELD("fc1_wgrad", ub_fc1_wgrad, "the same reduction of the feed-forward layer"),
    UB_FIELD("proj_fprop", ub_proj_fprop,
             "method pipeline, 16-bit products: kept free of attention's output product; 0: ring exchange"),
    UB_FIELD("fc2_fprop", ub_fc2_fprop, "the same of the second product of the feed-forward layer"),
    {.key = "splits",
     .type = DTS_FIELD_INT,
     .minimum = 1,
     .maximum = 64,
     .preset = "4",
     .offset = WITHIN(ub_qkv_dgrad, ub_splits),
     .help = "method pipeline: chunks of a product, each reduced behind it, the last one with nothing beside it"},
};

const dts_schema dts_stack_user_buffers_schema = {
    .name = "user_buffers",
    .help = "Transformer Engine's user buffers",
    .fields = user_buffers_fields,
    .field_count = sizeof user_buffers_fields / sizeof *user_buffers_fields,
    .struct_size = WITHIN(ub_qkv_dgrad, ub_splits) + sizeof(int64_t),
};

static const char *const ring_waits[] = {"false", "compiled", "true", NULL};

static const dts_field ring_attention_fields[] = {
    {.key = "waits",
     .type = DTS_FIELD_ENUM,
     .names = ring_waits,
     .preset = "false",
     .offset = WITHIN(ring_waits, ring_waits),
     .help = "transfers are waited for where they are launched, so that no attention runs beside them; compiled: where "
             "the layers are compiled"},
    {.key = "gathers",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(ring_waits, ring_gathers),
     .help =
         "keys and values of all ranks are gathered at once, in forward and again in backward, instead of passed on"},
    {.key = "copies",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(ring_waits, ring_copies),
     .help = "copies make keys and values contiguous and join them for a transfer"},
    {.key = "operations",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(ring_waits, ring_operations),
     .help =
         "outputs and gradients are added up by operations of the framework, a kernel each unless compiled, instead "
         "of one fused kernel"},
    {.key = "fp32_gradients",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(ring_waits, ring_fp32_gradients),
     .help =
         "gradients of keys and values travel by themselves and in fp32, and a last time home, instead of with keys "
         "and values in the type of activations"},
};

const dts_schema dts_stack_ring_attention_schema = {
    .name = "ring_attention",
    .help = "context parallelism, method ring",
    .fields = ring_attention_fields,
    .field_count = sizeof ring_attention_fields / sizeof *ring_attention_fields,
    .struct_size = WITHIN(ring_waits, ring_fp32_gradients) + sizeof(bool),
};

static const char *const p2p_overlaps[] = {"false", "true", "split", "interleaved", NULL};

static const char *const kept_outputs[] = {"none", "last", "all", NULL};

static const dts_field pipeline_fields[] = {
    {.key = "p2p_overlap",
     .type = DTS_FIELD_ENUM,
     .names = p2p_overlaps,
     .required = true,
     .offset = WITHIN(p2p_overlap, p2p_overlap),
     .help = "transfers between stages do not hold the compute stream; split: only where schedules split backward; "
             "interleaved: only where stages have several chunks"},
    {.key = "p2p_sms",
     .type = DTS_FIELD_INT,
     .maximum = 64,
     .preset = "0",
     .offset = WITHIN(p2p_overlap, p2p_sms),
     .help =
         "multiprocessors that each transfer between stages holds on either side, where it overlaps: NCCL's channels "
         "per peer. A receive is posted behind the pass before it in the same direction"},
    {.key = "p2p_node_sms",
     .type = DTS_FIELD_INT,
     .maximum = 64,
     .preset = "0",
     .offset = WITHIN(p2p_overlap, p2p_node_sms),
     .help = "the same where the whole pipeline lies on one node"},
    {.key = "uniform_stages",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(p2p_overlap, uniform_stages),
     .help = "stages have equally many layers unless the plan says otherwise"},
    {.key = "parameter_stages",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(p2p_overlap, parameter_stages),
     .help =
         "a stage ends as soon as all parameters up to there pass its share of them, unless the plan says otherwise"},
    {.key = "product_stages",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(p2p_overlap, product_stages),
     .help = "the same of the weights of layers and head; the embedding costs nothing, the last stage may be the head "
             "alone"},
    {.key = "scatter_gather",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(p2p_overlap, scatter_gather),
     .help = "tensor-parallel ranks send a share each and gather it on the other side"},
    {.key = "host_waits",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(p2p_overlap, pipeline_host_waits),
     .help = "the host waits until a transfer from another stage has arrived and all kernels before it are done"},
    {.key = "chunk_kernels",
     .type = DTS_FIELD_INT,
     .maximum = 100000,
     .required = true,
     .offset = WITHIN(p2p_overlap, pipeline_chunk_kernels),
     .help = "extra kernels per microbatch and stage: scatter, gather, stream waits"},
    {.key = "launch_factor",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_NUMBER,
     .minimum = 1,
     .maximum = 100,
     .preset = "1",
     .offset = WITHIN(p2p_overlap, pipeline_launch_factor),
     .help = "launches take this times as long in a process that drives all stages: its threads share Python's lock"},
    {.key = "single_process",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(p2p_overlap, pipeline_single_process),
     .help = "one process drives all stages: one thread issues their forward passes in turn"},
    {.key = "defers_reduction",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(p2p_overlap, pipeline_defers_reduction),
     .help = "with fsdp, gradients wait whole for the last microbatch (parallelism.gradient_sync: auto)"},
    {.key = "microbatch_buffers",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(p2p_overlap, pipeline_buffers),
     .help =
         "a stage has buffers of its own for what it receives of every microbatch, in both directions, and keeps the "
         "gradients of its inputs until the step ends"},
    {.key = "keeps_outputs",
     .type = DTS_FIELD_ENUM,
     .names = kept_outputs,
     .preset = "none",
     .offset = WITHIN(p2p_overlap, pipeline_keeps_outputs),
     .help = "which stages keep their outputs of all microbatches until the step ends; the last one's are joined then"},
};

const dts_schema dts_stack_pipeline_schema = {
    .name = "pipeline",
    .help = "pipeline parallelism",
    .fields = pipeline_fields,
    .field_count = sizeof pipeline_fields / sizeof *pipeline_fields,
    .struct_size = WITHIN(p2p_overlap, pipeline_keeps_outputs) + sizeof(int),
};

static const dts_field allocator_fields[] = {
    {.key = "round",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .minimum = 1,
     .maximum = 1e10,
     .required = true,
     .offset = WITHIN(allocator_round_B, allocator_round_B),
     .help = "block rounding"},
    {.key = "reserve_factor",
     .type = DTS_FIELD_QUANTITY,
     .minimum = 1,
     .maximum = 10,
     .required = true,
     .offset = WITHIN(allocator_round_B, allocator_reserve_factor),
     .help = "reserved over allocated memory in steady state"},
    {.key = "expandable",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = WITHIN(allocator_round_B, allocator_expandable),
     .help = "expandable_segments: free memory serves tensors of any size"},
    {.key = "page",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .preset = "0.13 ms",
     .maximum = 1,
     .offset = WITHIN(allocator_round_B, allocator_page_s),
     .help =
         "expandable_segments: time of mapping or unmapping one page more, half of both: cuMemCreate 193 us, cuMemMap "
         "1, cuMemSetAccess 36, cuMemUnmap 26 on an A100 (magnate3/linux-riscv-dev, nccl/gpu/shm/bench_vmm), 41 in "
         "all on another GPU; of 20 MiB as of 2 (c10/cuda/CUDACachingAllocator.cpp, Note [Expandable Segments])"},
    {.key = "slow_path_threshold",
     .type = DTS_FIELD_QUANTITY,
     .minimum = 0.1,
     .maximum = 1,
     .required = true,
     .offset = WITHIN(allocator_round_B, slow_path_threshold),
     .help = "share of the capacity above which memory is given back and allocated again"},
    {.key = "slow_path",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .required = true,
     .offset = WITHIN(allocator_round_B, slow_path_s),
     .help = "time of one call of cudaFree or cudaMalloc"},
};

const dts_schema dts_stack_allocator_schema = {
    .name = "allocator",
    .help = "caching allocator",
    .fields = allocator_fields,
    .field_count = sizeof allocator_fields / sizeof *allocator_fields,
    .struct_size = WITHIN(allocator_round_B, slow_path_s) + sizeof(double),
};
