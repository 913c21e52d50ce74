/* The keys of hardware/stacks/NAME.yaml. */
#include <stdio.h>

#include "base/excerpt.h"
#include "hardware/fields.h"
#include "hardware/stack_parts.h"
#include "schedule/schedule.h"

static const char *const attention_kinds[] = {"materialised", "flash", NULL};
static const char *const launchers[] = {"none", "megatron-lm", "deepspeed", "torchtitan", NULL};
static const char *const selective_kinds[] = {"attention", "operators", NULL};
static const char *const autocast_uses[] = {"always", "without-model-parallel", "never", NULL};
static const char *const fp32_gradient_kinds[] = {"false", "bf16", "true", NULL};
static const char *const backward_overlaps[] = {"false", "sequence", "true", NULL};
static const char *const few_kv_heads_kinds[] = {"refused", "gathered", "whole", NULL};
static const char *const parallel_reductions[] = {"each", "outputs", "both", NULL};
static const char *const async_backwards[] = {"false", "quantised", "true", NULL};
static const char *const accumulate_kinds[] = {"false", "true", "half", NULL};
static const char *const shifted_logits[] = {"none", "copied", "fp32", NULL};
static const char *const cuda_graphs[] = {"none", "layers", "iteration", NULL};
static const char *const expert_styles[] = {"sequential", "streams", "grouped", NULL};
static const char *const dispatcher_words[] = {"deepep", "hybridep", NULL};

static const dts_field stack_fields[] = {
    {FIELD("name", dts_stack, name), .type = DTS_FIELD_STRING, .required = true, .help = "what people call it"},
    {FIELD("launch", dts_stack, launch_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME, .maximum = 1,
     .required = true, .help = "host time to issue one kernel from the training loop"},
    {FIELD("backward_launch", dts_stack, backward_launch_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .required = true, .help = "the same from the autograd engine"},
    {FIELD("step_host", dts_stack, step_host_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME, .maximum = 1000,
     .required = true, .help = "host time per optimizer step outside the kernels: loop, zero_grad, logging"},
    {FIELD("cuda_graphs", dts_stack, cuda_graphs), .type = DTS_FIELD_ENUM, .names = cuda_graphs, .preset = "none",
     .help =
         "kernels that are captured in a graph and replayed with one launch: none, each layer's forward and backward, "
         "or those of a whole iteration"},
    {FIELD("cuda_graph_modules", dts_stack, graph_modules), .type = DTS_FIELD_LIST, .element_type = DTS_FIELD_STRING,
     .help = "with cuda_graphs: layers, what of each layer: attn, mlp (without experts), moe_router (with shared "
             "experts), moe_preprocess, moe (all behind attention); empty: all of it"},
    {FIELD("compile", dts_stack, compile), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "element-wise operators are fused by a compiler"},
    {FIELD("frees_logits", dts_stack, frees_logits), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "the training loop drops the model's output before backward"},
    {FIELD("shifted_logits", dts_stack, shifted_logits), .type = DTS_FIELD_ENUM, .names = shifted_logits,
     .preset = "none",
     .help =
         "the model copies its logits without those of the last positions for its loss (Hugging Face's causal models): "
         "none, copied, or fp32: it casts them first, and what it returns is fp32"},
    {FIELD("batch_waits", dts_stack, batch_waits), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "the host waits until the GPU is idle before it launches a microbatch's forward pass on a first stage"},
    {FIELD("loss_in_place", dts_stack, loss_in_place), .type = DTS_FIELD_BOOL, .preset = "true",
     .help =
         "the loss of a split vocabulary overwrites its fp32 logits (Megatron-LM), else each step makes a new tensor"},
    {FIELD("loss_metrics", dts_stack, loss_metrics), .type = DTS_FIELD_INT, .preset = "0", .maximum = 16,
     .help = "cross-entropies of every microbatch's logits beside the loss, which the training loop logs"},
    {FIELD("z_loss", dts_stack, z_loss), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "the loss has a term in the logits' sum of exponentials, with kernels of its own unless it is fused, compiled "
         "or of a split vocabulary"},
    {FIELD("joined_adapters", dts_stack, joined_adapters), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "a product that stands for several projections (query, key and value; gate and up) has one low-rank adapter "
         "for all of them, instead of one for each that is targeted"},
    {FIELD("loss_of_split", dts_stack, loss_of_split), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "the loss of a split vocabulary also where one rank has all of it: its kernels, without its reductions"},
    {FIELD("compile_loss", dts_stack, compile_loss), .type = DTS_FIELD_BOOL, .preset = "true",
     .help = "with compile: the loss as well as the layers"},
    {FIELD("attention", dts_stack, attention), .type = DTS_FIELD_ENUM, .names = attention_kinds, .required = true,
     .help = "scores in memory, or fused"},
    {FIELD("complex_rotary", dts_stack, complex_rotary), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "rotary embedding as a product of complex numbers in fp32, which neither fusion nor compile changes"},
    {FIELD("matrix_rotary", dts_stack, matrix_rotary), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "rotary embedding as products with 2 x 2 matrices in fp32 that kernels of their own add up, unless compiled"},
    {FIELD("widens_norm", dts_stack, widens_norm), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "inputs of fused norms are cast to fp32 by a kernel of their own, and so are their gradients back"},
    {FIELD("scores_buffer", dts_stack, scores_buffer), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "attention that is not fused: a buffer of the size of its scores lives for the whole run"},
    {FIELD("softmax_keys", dts_stack, softmax_keys), .type = DTS_FIELD_INT, .maximum = 1e9, .preset = "0",
     .help = "fuse.softmax: the kernel takes no more keys than that, half precision, and multiples of four in samples "
             "times "
             "heads of a rank (Megatron-LM); other shapes go through separate kernels in fp32. 0: it takes all"},
    {FIELD("positions_first", dts_stack, positions_first), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "fused attention: queries, keys and values are copied from positions first to samples first, the output back"},
    {FIELD("keeps_joined_qkv", dts_stack, keeps_joined_qkv), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "without separate_qkv: values are a view of the product's output, so that queries and keys stay in it "
             "beside their rotated copies; or queries, beside copies of keys and values"},
    {FIELD("keeps_softmax_input", dts_stack, keeps_softmax_input), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "eager softmax keeps its input for backward beside its output, as PyTorch did before 1.11"},
    {FIELD("repeats_keys", dts_stack, repeats_keys), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "keys and values are copied to all query heads before fused attention"},
    {FIELD("few_kv_heads", dts_stack, few_kv_heads), .type = DTS_FIELD_ENUM, .names = few_kv_heads_kinds,
     .preset = "refused",
     .help = "more tensor-parallel ranks than heads of keys and values: refused; gathered: the joined product is cut "
             "below a head, and all ranks gather its output (Megatron-Core); whole: every rank has the weights of all "
             "those heads in a product beside that of its queries"},
    {FIELD("bert", dts_stack, bert_fine_tunes), .type = DTS_FIELD_MAP, .sub = &dts_stack_bert_schema,
     .help = "what BERT is trained for where the model does not say"},
    {FIELD("flash_speed", dts_stack, flash_speed), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER,
     .minimum = 0.05, .maximum = 10, .preset = "1", .help = "rate of fused attention over FlashAttention-2"},
    {FIELD("flash_narrow_speed", dts_stack, flash_narrow_speed), .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 10, .preset = "0",
     .help = "the same with heads of 64 and less; between 64 and 128 in proportion; 0: the same"},
    {FIELD("cudnn_attention", dts_stack, cudnn_attention), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "fused attention is cuDNN's, at flash.cudnn of the GPU times its rate"},
    {FIELD("aiter_attention", dts_stack, aiter_attention), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "fused attention is that of AMD's AITER in assembly, at flash.aiter of the GPU times its rate"},
    {FIELD("selective", dts_stack, selective), .type = DTS_FIELD_ENUM, .names = selective_kinds, .preset = "attention",
     .help = "what selective recomputation repeats: the attention core, or all but every second product"},
    {FIELD("recompute_stops_early", dts_stack, recompute_stops_early), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "recomputation ends when all that backward needs has been saved, so that the last product of a "
             "checkpointed layer and the exchange behind it do not run again"},
    {FIELD("tf32", dts_stack, tf32), .type = DTS_FIELD_BOOL, .required = true,
     .help = "fp32 products run as tf32 where the GPU can"},
    {FIELD("tensor_backward_overlap", dts_stack, tensor_backward_overlap), .type = DTS_FIELD_ENUM,
     .names = backward_overlaps,
     .help = "tensor-parallel transfers of backward run beside the products of input and weight gradients: never, "
             "always, or those of sequence parallelism"},
    {FIELD("autocast", dts_stack, autocast), .type = DTS_FIELD_ENUM, .names = autocast_uses, .preset = "always",
     .help = "where its scripts enter torch.autocast, of plans whose half precision is not FSDP's: always, not with "
             "tensor or pipeline parallelism, or never. Without it amp-... trains in fp32, unless "
             "context parallelism has FSDP wrap it anyway"},
    {FIELD("master_weights", dts_stack, master_weights), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "half precision means half weights with fp32 master copies, not autocast"},
    {FIELD("fp32_gradients", dts_stack, fp32_gradients), .type = DTS_FIELD_ENUM, .names = fp32_gradient_kinds,
     .preset = "false",
     .help = "with master_weights: gradients are accumulated and reduced in fp32; bf16: only those of bf16 models"},
    {FIELD("keeps_half_gradients", dts_stack, keeps_half_gradients), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "with fp32_gradients: the gradients in half stay beside them"},
    {FIELD("fuse", dts_stack, fuse_bias_gelu), .type = DTS_FIELD_MAP, .sub = &dts_stack_fuse_schema, .required = true,
     .help = "fusions"},
    {FIELD("experts", dts_stack, experts), .type = DTS_FIELD_ENUM, .names = expert_styles, .preset = "sequential",
     .help = "products of a rank's experts: one after another, on four streams, or one grouped kernel"},
    {FIELD("experts_sms", dts_stack, experts_sms), .type = DTS_FIELD_INT, .maximum = 128, .preset = "0",
     .help =
         "multiprocessors that exchanges of experts take from the products of another pass beside them, where two run "
         "in turns (DeepEP's num_sms)"},
    {FIELD("experts_host", dts_stack, experts_host_s), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_TIME,
     .maximum = 1, .preset = "0",
     .help = "host time between reading the token counts of an expert layer and the launches that need them"},
    {FIELD("device_dispatch_domain", dts_stack, device_dispatch_domain), .type = DTS_FIELD_INT, .maximum = 1024,
     .preset = "0",
     .help = "GPUs joined by links from which on tokens are dispatched by the device and the host reads no counts; 0: "
             "never"},
    {FIELD("device_dispatch_reads", dts_stack, device_dispatch_reads), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "with device_dispatch_domain: the host waits for the counts of rows that came, which the products of "
             "experts need "
             "unless they are grouped"},
    {FIELD("device_dispatch_waits", dts_stack, device_dispatch_waits), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "with device_dispatch_domain: the host waits for these counts before rows are sent, to make room for them "
             "(DeepEP), whichever way the products run"},
    {FIELD("device_dispatcher", dts_stack, device_dispatcher), .type = DTS_FIELD_ENUM, .names = dispatcher_words,
     .preset = "deepep",
     .help = "whose kernels dispatch from the device, for exports; what they do is said by the other keys"},
    {FIELD("shared_expert_overlap", dts_stack, shared_expert_overlap), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "where the host dispatches: the first product of the shared experts runs while tokens are on their way to "
             "the others, the second while they come back (Megatron-Core)"},
    {FIELD("tokens_cross_once", dts_stack, tokens_cross_once), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "a token for several experts of a node crosses the network once and is handed on inside it (DeepEP, "
             "HybridEP)"},
    {FIELD("separate_qkv", dts_stack, separate_qkv), .type = DTS_FIELD_BOOL, .required = true,
     .help = "query, key and value as three products"},
    {FIELD("dropout", dts_stack, dropout), .type = DTS_FIELD_BOOL, .required = true,
     .help = "dropout kernels and masks are there"},
    {FIELD("mask_bool_bytes", dts_stack, mask_bool_bytes), .type = DTS_FIELD_BOOL, .preset = "true",
     .help = "dropout masks of one byte per element, else one bit"},
    {FIELD("zero_grad_to_none", dts_stack, zero_grad_to_none), .type = DTS_FIELD_BOOL, .preset = "true",
     .help = "gradients are dropped after a step instead of filled with zeros"},
    {FIELD("persistent_norm", dts_stack, persistent_norm), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "LayerNorm's kernels read each row once (apex FastLayerNorm, Transformer Engine)"},
    {FIELD("separate_bias", dts_stack, separate_bias), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "biases are added by a kernel of their own instead of in the product's epilogue"},
    {FIELD("accumulate_kernel", dts_stack, accumulate_kernel), .type = DTS_FIELD_ENUM, .names = accumulate_kinds,
     .preset = "true",
     .help = "adding a gradient to the stored one is a kernel per tensor, else the weight-gradient product does it; "
             "half: a kernel where gradients are stored in half"},
    {FIELD("accumulate_casts", dts_stack, accumulate_casts), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "half gradients that are added to fp32 ones by kernels are cast to a copy first"},
    {FIELD("ddp", dts_stack, ddp_bucket_B), .type = DTS_FIELD_MAP, .sub = &dts_stack_ddp_schema, .required = true,
     .help = "distributed data parallel"},
    {FIELD("parallel_blocks", dts_stack, parallel_blocks), .type = DTS_FIELD_ENUM, .names = parallel_reductions,
     .preset = "each",
     .help =
         "attention and feed-forward block side by side, tensor parallelism: each block reduces for itself; outputs: "
         "their partial outputs are added and reduced once; both: the gradients of a shared norm's output as well"},
    {FIELD("tensor_copies", dts_stack, tensor_copies), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "sequence parallelism: a copy joins what was gathered and cuts what will be scattered, as the sequence is "
             "not the outermost dimension (DTensor); transfers in chunks need none"},
    {FIELD("gathers_each", dts_stack, gathers_each), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "sequence parallelism with separate_qkv: every product gathers its input itself, and keeps it, instead of "
             "one gather for query, key and value and one for gate and up; with compile only gradients go one by one"},
    {FIELD("keeps_gathered", dts_stack, keeps_gathered), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "sequence parallelism: backward finds the gathered input of a product instead of gathering it again, also "
             "without separate_qkv"},
    {FIELD("whole_embedding", dts_stack, whole_embedding), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "tensor parallelism: every rank has the whole table of tokens; unless the head shares it"},
    {FIELD("gathers_logits", dts_stack, gathers_logits), .type = DTS_FIELD_BOOL, .preset = "false",
     .help =
         "tensor parallelism: every rank gathers all logits and computes the whole loss, instead of that of a split "
         "vocabulary"},
    {FIELD("async_backward", dts_stack, async_backward), .type = DTS_FIELD_ENUM, .names = async_backwards,
     .preset = "true",
     .help = "parallelism.async_tensor cuts transfers of backward into chunks, too; quantised: around 8- and 4-bit "
             "products only"},
    {FIELD("chunk_sum_factor", dts_stack, chunk_sum_factor), .type = DTS_FIELD_QUANTITY, .minimum = 1, .maximum = 100,
     .preset = "1",
     .help =
         "time of a kernel that adds up a few numbers each, the chunks that a rank received (parallelism.async_tensor) "
         "or the products of matrix_rotary, over the time that its bytes take"},
    {FIELD("tensor_overlap", dts_stack, tensor_overlap), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "parallelism.async_tensor wherever sequence parallelism inside a node allows it"},
    {FIELD("user_buffers", dts_stack, ub_qkv_dgrad), .type = DTS_FIELD_MAP, .sub = &dts_stack_user_buffers_schema,
     .help = "Transformer Engine's user buffers: multiprocessors that tensor-parallel transfers in chunks or beside "
             "products take"},
    {FIELD("ring_attention", dts_stack, ring_waits), .type = DTS_FIELD_MAP, .sub = &dts_stack_ring_attention_schema,
     .help = "context parallelism, method ring: how it is made"},
    {FIELD("fp8", dts_stack, fp8_recipe), .type = DTS_FIELD_MAP, .sub = &dts_stack_fp8_schema,
     .help = "8- and 4-bit products"},
    {FIELD("fsdp", dts_stack, fsdp_prefetch), .type = DTS_FIELD_MAP, .sub = &dts_stack_fsdp_schema, .required = true,
     .help = "fully sharded data parallel"},
    {FIELD("pipeline", dts_stack, p2p_overlap), .type = DTS_FIELD_MAP, .sub = &dts_stack_pipeline_schema,
     .required = true, .help = "pipeline parallelism"},
    {FIELD("optimizer", dts_stack, optimizer_style), .type = DTS_FIELD_MAP, .sub = &dts_stack_optimizer_schema,
     .required = true, .help = "optimizer step"},
    {FIELD("allocator", dts_stack, allocator_round_B), .type = DTS_FIELD_MAP, .sub = &dts_stack_allocator_schema,
     .required = true, .help = "caching allocator"},
    {FIELD("communication_sms", dts_stack, communication_sms), .type = DTS_FIELD_INT, .maximum = 1000, .required = true,
     .help = "multiprocessors that a running collective takes from compute"},
    {FIELD("tensor_overlap_sms", dts_stack, tensor_overlap_sms), .type = DTS_FIELD_INT, .maximum = 1000, .preset = "0",
     .help = "the same of tensor-parallel collectives beside the products of backward (tensor_backward_overlap)"},
    {FIELD("communication_memory", dts_stack, communication_memory), .type = DTS_FIELD_QUANTITY, .maximum = 10,
     .preset = "0",
     .help =
         "with communication_sms: bytes of device memory that it moves for each byte that a GPU sends; kernels bound "
         "by memory get the rest"},
    {FIELD("launcher", dts_stack, launcher), .type = DTS_FIELD_ENUM, .names = launchers, .preset = "none",
     .help = "what alone starts it, so that searches mark plans that it has no words for; none: a library, or unknown"},
    {FIELD("schedules", dts_stack, schedules), .type = DTS_FIELD_LIST, .element_type = DTS_FIELD_STRING,
     .help = "pipeline schedules that its launcher offers, for `dtsim search`; empty: unknown, and none is marked"},
    {FIELD("context", dts_stack, context_B), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_BYTES, .maximum = 1e12,
     .required = true,
     .help = "NCCL buffers and framework workspaces beyond the GPU's own context, with two GPUs or more"},
};

/* A misspelt schedule would mark one that the launcher has. */
static dts_status check_schedules(dts_binder *binder, const dts_node *node, const dts_stack *stack) {
    const char *const *names = stack->schedules.items;
    dts_status status = DTS_OK;
    for (size_t i = 0; i < stack->schedules.count; i++) {
        if (dts_schedule_find(names[i]) == NULL) {
            const dts_node *list = node == NULL ? NULL : dts_node_get(node, "schedules");
            const char *nearest = dts_schedule_nearest(names[i]);
            char help[120];
            snprintf(help, sizeof help, "%s%s%s`dtsim list schedules` names all",
                     nearest == NULL ? "" : "did you mean ", nearest == NULL ? "" : nearest,
                     nearest == NULL ? "" : "? ");
            status = dts_diag_error(binder->diag, list == NULL ? NULL : &list->place, "stack.schedules", help,
                                    "unknown schedule '%s'", dts_excerpt_of(names[i]).text);
        }
    }
    return status;
}

bool dts_stack_offers(const dts_stack *stack, const char *schedule) {
    const char *const *names = stack->schedules.items;
    bool offered = stack->schedules.count == 0;
    for (size_t i = 0; i < stack->schedules.count; i++) {
        offered = offered || dts_schedule_find(names[i]) == dts_schedule_find(schedule);
    }
    return offered;
}

static dts_status stack_check(dts_binder *binder, const dts_node *node, const char *key, void *bound) {
    const dts_stack *stack = bound;
    if (check_schedules(binder, node, stack) != DTS_OK || dts_stack_check_graphs(binder, node, stack) != DTS_OK) {
        return DTS_INVALID;
    }
    if (stack->ddp_first_bucket_B > stack->ddp_bucket_B) {
        return dts_diag_error(binder->diag, node ? &node->place : NULL, key,
                              "the first bucket is small so that communication starts early",
                              "ddp.first_bucket (%g B) is larger than ddp.bucket (%g B)", stack->ddp_first_bucket_B,
                              stack->ddp_bucket_B);
    }
    if (stack->fp32_gradients && !stack->master_weights) {
        return dts_diag_error(binder->diag, node ? &node->place : NULL, key, "set master_weights: true",
                              "fp32_gradients describes half-precision weights with fp32 master copies");
    }
    return DTS_OK;
}

double dts_stack_context_B(const dts_stack *stack, const dts_cluster *cluster) {
    return cluster->nodes * cluster->gpus_per_node > 1 ? stack->context_B : 0;
}

static const dts_key_hint stack_hints[] = {
    {"flash_attention", "write attention: flash"},
    {"flash", "write attention: flash"},
    {"sdpa", "write attention: flash"},
    {NULL, NULL},
};

const dts_schema dts_stack_schema = {
    .name = "stack",
    .help = "the software that drives the hardware; hardware/stacks/NAME.yaml",
    .fields = stack_fields,
    .field_count = sizeof stack_fields / sizeof *stack_fields,
    .struct_size = sizeof(dts_stack),
    .check = stack_check,
    .hints = stack_hints,
};
