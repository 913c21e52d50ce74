/* The groups of keys of hardware/stacks/NAME.yaml: fuse, ddp, user_buffers, ring_attention, fp8, fsdp, pipeline,
 * allocator.
 */
#include "hardware/stack_parts.h"
#include "hardware/fields.h"

static const char *const fsdp_words[] = {"fsdp", "zero3", NULL};
static const char *const fsdp_copy_kinds[] = {"none", "flat", "tensors", NULL};

static const dts_field fuse_fields[] = {
    {PART("bias_gelu", dts_stack, fuse_bias_gelu, fuse_bias_gelu), .type = DTS_FIELD_BOOL, .required = true,
     .help = "bias and activation of the feed-forward in one kernel"},
    {PART("bias_dropout_add", dts_stack, fuse_bias_gelu, fuse_bias_dropout_add), .type = DTS_FIELD_BOOL,
     .required = true, .help = "bias, dropout and residual in one kernel"},
    {PART("softmax", dts_stack, fuse_bias_gelu, fuse_softmax), .type = DTS_FIELD_BOOL, .required = true,
     .help = "scale, mask and softmax in one kernel"},
    {PART("norm", dts_stack, fuse_bias_gelu, fuse_norm), .type = DTS_FIELD_BOOL, .required = true,
     .help = "normalisation in one kernel"},
    {PART("rotary", dts_stack, fuse_bias_gelu, fuse_rotary), .type = DTS_FIELD_BOOL, .required = true,
     .help = "rotary embedding in one kernel"},
    {PART("loss", dts_stack, fuse_bias_gelu, fuse_loss), .type = DTS_FIELD_BOOL, .required = true,
     .help = "cross entropy in one kernel"},
    {PART("permute", dts_stack, fuse_bias_gelu, fuse_permute), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "mixture of experts: tokens are sorted by expert, and summed again, in one kernel"},
    {PART("scaled_rotary", dts_stack, fuse_bias_gelu, fuse_scaled_rotary), .type = DTS_FIELD_BOOL, .preset = "true",
     .help = "with rotary: also where cosines and sines have a factor (model.rotary_scaled)"},
    {PART("clamp", dts_stack, fuse_bias_gelu, fuse_clamp), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "with bias_gelu: the kernel cuts the activation's inputs off itself (model.activation_clamp)"},
    {PART("expert_bias", dts_stack, fuse_bias_gelu, fuse_expert_bias), .type = DTS_FIELD_BOOL, .preset = "true",
     .help = "mixture of experts: biases of all experts' outputs, weighed by the gates, in one kernel"},
    {PART("epilogues", dts_stack, fuse_bias_gelu, fuse_epilogues), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "products add their bias and apply GELU as they store, and in backward its derivative and the sum of the "
             "bias's gradient (cublasLt's epilogues: FusedDense of apex and FlashAttention)"},
};

const dts_schema dts_stack_fuse_schema = {
    .name = "fuse",
    .help = "fusions: each removes whole passes over memory and launches",
    .fields = fuse_fields,
    .field_count = sizeof fuse_fields / sizeof *fuse_fields,
    .struct_size = WITHIN(dts_stack, fuse_bias_gelu, fuse_epilogues) + sizeof(bool),
};

static const dts_field bert_fields[] = {
    {PART("fine_tunes", dts_stack, bert_fine_tunes, bert_fine_tunes), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "model.head left out means a classification head"},
    {PART("pretraining_lengths", dts_stack, bert_fine_tunes, bert_pretraining_lengths), .type = DTS_FIELD_LIST,
     .element_type = DTS_FIELD_INT, .minimum = 1, .maximum = 1e9,
     .help = "sequence lengths of pre-training: model.head left out means a classification head at all others"},
    {PART("masked_share", dts_stack, bert_fine_tunes, masked_share), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 1, .preset = "0",
     .help = "pre-training: share of the positions whose logits are computed where model.predicted_share does not say; "
             "0: all"},
};

const dts_schema dts_stack_bert_schema = {
    .name = "bert",
    .help = "what BERT is trained for where the model does not say",
    .fields = bert_fields,
    .field_count = sizeof bert_fields / sizeof *bert_fields,
    .struct_size = WITHIN(dts_stack, bert_fine_tunes, masked_share) + sizeof(double),
};

static const dts_field ddp_fields[] = {
    {PART("bucket", dts_stack, ddp_bucket_B, ddp_bucket_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES,
     .minimum = 1, .maximum = 1e12, .required = true, .help = "a bucket closes when it has reached this size"},
    {PART("first_bucket", dts_stack, ddp_bucket_B, ddp_first_bucket_B), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES, .minimum = 1, .maximum = 1e12, .required = true,
     .help = "the same for the first bucket"},
    {PART("staging", dts_stack, ddp_bucket_B, ddp_staging_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES,
     .preset = "0", .maximum = 1e12,
     .help = "gradients pass through a buffer of this size (DeepSpeed's reduce_bucket_size)"},
    {PART("gradient_as_bucket_view", dts_stack, ddp_bucket_B, gradient_as_bucket_view), .type = DTS_FIELD_BOOL,
     .required = true, .help = "gradients live in the buckets: no second copy"},
    {PART("whole_fp32", dts_stack, ddp_bucket_B, ddp_whole_fp32), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "ZeRO-1: half parameters' gradients that are stored in fp32 are all-reduced, though a rank needs its "
             "shard only"},
    {PART("owns_tensors", dts_stack, ddp_bucket_B, ddp_owns_tensors), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "ZeRO-1: each rank steps whole tensors and broadcasts them, all gradients are all-reduced (PyTorch's "
             "ZeroRedundancyOptimizer); else every rank has its share of all, reduced and gathered at once"},
    {PART("keeps_fresh_gradients", dts_stack, ddp_bucket_B, ddp_keeps_fresh), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "what backward makes stays beside the buckets until the step is done"},
    {PART("overlap", dts_stack, ddp_bucket_B, ddp_overlap), .type = DTS_FIELD_BOOL, .preset = "true",
     .help =
         "a bucket is reduced as soon as it is full, else when backward is through (XLA hands over all gradients of "
         "a cluster at its end)"},
    {PART("overlap_gather", dts_stack, ddp_bucket_B, ddp_overlap_gather), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "ZeRO-1: parameters are gathered part by part beside the next iteration's first forward pass "
             "(Megatron-Core's overlap_param_gather), else at once behind the step"},
};

const dts_schema dts_stack_ddp_schema = {
    .name = "ddp",
    .help = "distributed data parallel",
    .fields = ddp_fields,
    .field_count = sizeof ddp_fields / sizeof *ddp_fields,
    .struct_size = WITHIN(dts_stack, ddp_bucket_B, ddp_overlap_gather) + sizeof(bool),
};

static const char *const fp8_recipes[] = {"tensorwise", "delayed", "rowwise", "rowwise-with-gw-hp", "blockwise", NULL};
static const char *const shared_scales[] = {"none", "gathered", "all", NULL};

/* Off unless a profile says otherwise. */
#define FP8_FLAG(name, member, text) \
    { PART(name, dts_stack, fp8_recipe, member), .type = DTS_FIELD_BOOL, .preset = "false", .help = text }

static const dts_field fp8_fields[] = {
    {PART("recipe", dts_stack, fp8_recipe, fp8_recipe), .type = DTS_FIELD_ENUM, .names = fp8_recipes,
     .preset = "tensorwise",
     .help = "scales of fp8: of the tensor as it is, of earlier steps (delayed), of each row along the inner dimension "
             "(rowwise-with-gw-hp: the products of weight gradients stay wide), of blocks of 128"},
    {PART("shared_scales", dts_stack, fp8_recipe, fp8_shared_scales), .type = DTS_FIELD_ENUM, .names = shared_scales,
     .preset = "none",
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
    {PART("transpose_factor", dts_stack, fp8_recipe, fp8_transpose_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1,
     .maximum = 10, .preset = "1",
     .help = "casts that write a transposed copy as well: time over that of other kernels for as many bytes"},
    {PART("expert_host", dts_stack, fp8_recipe, fp8_expert_host_s), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME, .maximum = 1, .preset = "0",
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
    .struct_size = WITHIN(dts_stack, fp8_recipe, fp8_attention) + sizeof(bool),
};

static const dts_field fsdp_fields[] = {
    {PART("prefetch", dts_stack, fsdp_prefetch, fsdp_prefetch), .type = DTS_FIELD_INT, .maximum = 1000,
     .required = true, .help = "all-gathers issued ahead in backward"},
    {PART("zero3_prefetch", dts_stack, fsdp_prefetch, fsdp_zero3_prefetch), .type = DTS_FIELD_INT, .minimum = -1,
     .maximum = 1000, .preset = "-1", .help = "the same with parallelism.data_parallel: zero3; -1: as prefetch"},
    {PART("forward_prefetch", dts_stack, fsdp_prefetch, fsdp_forward_prefetch), .type = DTS_FIELD_BOOL,
     .required = true, .help = "all-gathers issued ahead in forward too"},
    {PART("limit_all_gathers", dts_stack, fsdp_prefetch, fsdp_limit_all_gathers), .type = DTS_FIELD_BOOL,
     .required = true, .help = "the host waits rather than hold more than two gathered units"},
    {PART("gathers_in_order", dts_stack, fsdp_prefetch, fsdp_gathers_in_order), .type = DTS_FIELD_BOOL,
     .preset = "false",
     .help = "a gather waits for the kernels that were issued before it, so that its buffer is one that they are done "
             "with (Megatron-FSDP)"},
    {PART("mixed_precision", dts_stack, fsdp_prefetch, fsdp_mixed_precision), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "half precision of sharded parameters means fp32 shards and half gathered copies, not autocast"},
    {PART("gathers_stored", dts_stack, fsdp_prefetch, fsdp_gathers_stored), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "without mixed_precision: fp32 parameters are gathered as they are stored, and autocast casts them for each "
         "product, else they are gathered in half"},
    {PART("reduce_fp32", dts_stack, fsdp_prefetch, fsdp_reduce_fp32), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "with mixed_precision: gradients are reduced in fp32, else in half"},
    {PART("reduce_half_fp32", dts_stack, fsdp_prefetch, fsdp_reduce_half_fp32), .type = DTS_FIELD_BOOL,
     .preset = "false", .help = "precision bf16 or fp16: gradients wait and are reduced in fp32, and stored in half"},
    {PART("copies", dts_stack, fsdp_prefetch, fsdp_copies), .type = DTS_FIELD_ENUM, .names = fsdp_copy_kinds,
     .preset = "none",
     .help = "what kernels around a unit's collectives move: flat, gradients into one tensor (FSDP1); tensors, "
             "parameters out of and gradients into buffers (FSDP2)"},
    {PART("unit_host", dts_stack, fsdp_prefetch, fsdp_unit_host_s), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME, .preset = "0", .maximum = 1,
     .help = "host time around every gather and scatter of a unit: hooks, views, stream waits"},
    {PART("zero3_host", dts_stack, fsdp_prefetch, fsdp_zero3_host_s), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME, .preset = "0", .maximum = 1,
     .help = "with parallelism.data_parallel: zero3, host time on top of unit_host: DeepSpeed's hooks around modules"},
    {PART("zero3_adapter_host", dts_stack, fsdp_prefetch, fsdp_adapter_host_s), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME, .preset = "0", .maximum = 1,
     .help = "the same for the modules of each low-rank adapter of the unit"},
    {PART("reshard_in_pipeline", dts_stack, fsdp_prefetch, fsdp_reshard_in_pipeline), .type = DTS_FIELD_BOOL,
     .preset = "true", .help = "what parallelism.reshard_after_forward: auto means with a pipeline"},
    {PART("root_reshards", dts_stack, fsdp_prefetch, fsdp_root_reshards), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "where parameters are resharded after forward: the root's as well, which are gathered again for backward"},
    {PART("ends_apart", dts_stack, fsdp_prefetch, fsdp_ends_apart), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "embedding and head are units of their own, gathered and freed as layers are; else, and where they share a "
         "tensor, they belong to the root, which stays whole"},
    {PART("called", dts_stack, fsdp_prefetch, fsdp_called), .type = DTS_FIELD_ENUM, .names = fsdp_words,
     .preset = "fsdp",
     .help = "what its users say for parallelism.data_parallel where all states are sharded: hints and searches do so"},
};

const dts_schema dts_stack_fsdp_schema = {
    .name = "fsdp",
    .help = "fully sharded data parallel",
    .fields = fsdp_fields,
    .field_count = sizeof fsdp_fields / sizeof *fsdp_fields,
    .struct_size = WITHIN(dts_stack, fsdp_prefetch, fsdp_called) + sizeof(int),
};

/* A number of multiprocessors; userbuffers.h of Transformer Engine has UB_MAX_SM, 32. */
#define UB_FIELD(name, member, text) \
    { PART(name, dts_stack, ub_qkv_dgrad, member), .type = DTS_FIELD_INT, .maximum = 32, .preset = "0", .help = text }

static const dts_field user_buffers_fields[] = {
    UB_FIELD("qkv_dgrad", ub_qkv_dgrad, "the gather of the input beside the gradient of attention's input"),
    UB_FIELD("qkv_wgrad", ub_qkv_wgrad, "the reduction of that gradient beside the weight gradient"),
    UB_FIELD("fc1_dgrad", ub_fc1_dgrad, "the same gather of the feed-forward layer"),
    UB_FIELD("fc1_wgrad", ub_fc1_wgrad, "the same reduction of the feed-forward layer"),
    UB_FIELD("proj_fprop", ub_proj_fprop,
             "method pipeline, 16-bit products: kept free of attention's output product; 0: ring exchange"),
    UB_FIELD("fc2_fprop", ub_fc2_fprop, "the same of the second product of the feed-forward layer"),
    {PART("splits", dts_stack, ub_qkv_dgrad, ub_splits), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 64,
     .preset = "4",
     .help = "method pipeline: chunks of a product, each reduced behind it, the last one with nothing beside it"},
};

const dts_schema dts_stack_user_buffers_schema = {
    .name = "user_buffers",
    .help = "Transformer Engine's user buffers",
    .fields = user_buffers_fields,
    .field_count = sizeof user_buffers_fields / sizeof *user_buffers_fields,
    .struct_size = WITHIN(dts_stack, ub_qkv_dgrad, ub_splits) + sizeof(int64_t),
};

static const char *const ring_waits[] = {"false", "compiled", "true", NULL};

static const dts_field ring_attention_fields[] = {
    {PART("waits", dts_stack, ring_waits, ring_waits), .type = DTS_FIELD_ENUM, .names = ring_waits, .preset = "false",
     .help = "transfers are waited for where they are launched, so that no attention runs beside them; compiled: where "
             "the layers are compiled"},
    {PART("gathers", dts_stack, ring_waits, ring_gathers), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "keys and values of all ranks are gathered at once, in forward and again in backward, instead of passed on"},
    {PART("copies", dts_stack, ring_waits, ring_copies), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "copies make keys and values contiguous and join them for a transfer"},
    {PART("operations", dts_stack, ring_waits, ring_operations), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "outputs and gradients are added up by operations of the framework, a kernel each unless compiled, instead "
         "of one fused kernel"},
    {PART("fp32_gradients", dts_stack, ring_waits, ring_fp32_gradients), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "gradients of keys and values travel by themselves and in fp32, and a last time home, instead of with keys "
         "and values in the type of activations"},
};

const dts_schema dts_stack_ring_attention_schema = {
    .name = "ring_attention",
    .help = "context parallelism, method ring",
    .fields = ring_attention_fields,
    .field_count = sizeof ring_attention_fields / sizeof *ring_attention_fields,
    .struct_size = WITHIN(dts_stack, ring_waits, ring_fp32_gradients) + sizeof(bool),
};

static const char *const p2p_overlaps[] = {"false", "true", "split", "interleaved", NULL};

static const char *const kept_outputs[] = {"none", "last", "all", NULL};

static const dts_field pipeline_fields[] = {
    {PART("p2p_overlap", dts_stack, p2p_overlap, p2p_overlap), .type = DTS_FIELD_ENUM, .names = p2p_overlaps,
     .required = true,
     .help = "transfers between stages do not hold the compute stream; split: only where schedules split backward; "
             "interleaved: only where stages have several chunks"},
    {PART("p2p_sms", dts_stack, p2p_overlap, p2p_sms), .type = DTS_FIELD_INT, .maximum = 64, .preset = "0",
     .help =
         "multiprocessors that each transfer between stages holds on either side, where it overlaps: NCCL's channels "
         "per peer. A receive is posted behind the pass before it in the same direction"},
    {PART("p2p_node_sms", dts_stack, p2p_overlap, p2p_node_sms), .type = DTS_FIELD_INT, .maximum = 64, .preset = "0",
     .help = "the same where the whole pipeline lies on one node"},
    {PART("uniform_stages", dts_stack, p2p_overlap, uniform_stages), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "stages have equally many layers unless the plan says otherwise"},
    {PART("parameter_stages", dts_stack, p2p_overlap, parameter_stages), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "a stage ends as soon as all parameters up to there pass its share of them, unless the plan says otherwise"},
    {PART("product_stages", dts_stack, p2p_overlap, product_stages), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "the same of the weights of layers and head; the embedding costs nothing, the last stage may be the head "
             "alone"},
    {PART("scatter_gather", dts_stack, p2p_overlap, scatter_gather), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "tensor-parallel ranks send a share each and gather it on the other side"},
    {PART("host_waits", dts_stack, p2p_overlap, pipeline_host_waits), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "the host waits until a transfer from another stage has arrived and all kernels before it are done"},
    {PART("chunk_kernels", dts_stack, p2p_overlap, pipeline_chunk_kernels), .type = DTS_FIELD_INT, .maximum = 100000,
     .required = true, .help = "extra kernels per microbatch and stage: scatter, gather, stream waits"},
    {PART("launch_factor", dts_stack, p2p_overlap, pipeline_launch_factor), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_NUMBER, .minimum = 1, .maximum = 100, .preset = "1",
     .help = "launches take this times as long in a process that drives all stages: its threads share Python's lock"},
    {PART("single_process", dts_stack, p2p_overlap, pipeline_single_process), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "one process drives all stages: one thread issues their forward passes in turn"},
    {PART("defers_reduction", dts_stack, p2p_overlap, pipeline_defers_reduction), .type = DTS_FIELD_BOOL,
     .preset = "false",
     .help = "with fsdp, gradients wait whole for the last microbatch (parallelism.gradient_sync: auto)"},
    {PART("microbatch_buffers", dts_stack, p2p_overlap, pipeline_buffers), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "a stage has buffers of its own for what it receives of every microbatch, in both directions, and keeps the "
         "gradients of its inputs until the step ends"},
    {PART("keeps_outputs", dts_stack, p2p_overlap, pipeline_keeps_outputs), .type = DTS_FIELD_ENUM,
     .names = kept_outputs, .preset = "none",
     .help = "which stages keep their outputs of all microbatches until the step ends; the last one's are joined then"},
};

const dts_schema dts_stack_pipeline_schema = {
    .name = "pipeline",
    .help = "pipeline parallelism",
    .fields = pipeline_fields,
    .field_count = sizeof pipeline_fields / sizeof *pipeline_fields,
    .struct_size = WITHIN(dts_stack, p2p_overlap, pipeline_keeps_outputs) + sizeof(int),
};

static const dts_field allocator_fields[] = {
    {PART("round", dts_stack, allocator_round_B, allocator_round_B), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES, .minimum = 1, .maximum = 1e10, .required = true, .help = "block rounding"},
    {PART("reserve_factor", dts_stack, allocator_round_B, allocator_reserve_factor), .type = DTS_FIELD_QUANTITY,
     .minimum = 1, .maximum = 10, .required = true, .help = "reserved over allocated memory in steady state"},
    {PART("expandable", dts_stack, allocator_round_B, allocator_expandable), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "expandable_segments: free memory serves tensors of any size"},
    {PART("page", dts_stack, allocator_round_B, allocator_page_s), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME, .preset = "0.13 ms", .maximum = 1,
     .help =
         "expandable_segments: time of mapping or unmapping one page more, half of both: cuMemCreate 193 us, cuMemMap "
         "1, cuMemSetAccess 36, cuMemUnmap 26 on an A100 (magnate3/linux-riscv-dev, nccl/gpu/shm/bench_vmm), 41 in "
         "all on another GPU; of 20 MiB as of 2 (c10/cuda/CUDACachingAllocator.cpp, Note [Expandable Segments])"},
    {PART("slow_path", dts_stack, allocator_round_B, slow_path_s), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME, .maximum = 1, .required = true, .help = "time of one call of cudaFree or cudaMalloc"},
};

const dts_schema dts_stack_allocator_schema = {
    .name = "allocator",
    .help = "caching allocator",
    .fields = allocator_fields,
    .field_count = sizeof allocator_fields / sizeof *allocator_fields,
    .struct_size = WITHIN(dts_stack, allocator_round_B, slow_path_s) + sizeof(double),
};
