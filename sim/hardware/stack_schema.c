/* The keys of hardware/stacks/NAME.yaml. */
#include <stdio.h>

#include "base/excerpt.h"
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
    {.key = "name",
     .type = DTS_FIELD_STRING,
     .required = true,
     .offset = offsetof(dts_stack, name),
     .help = "what people call it"},
    {.key = "launch",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .required = true,
     .offset = offsetof(dts_stack, launch_s),
     .help = "host time to issue one kernel from the training loop"},
    {.key = "backward_launch",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .required = true,
     .offset = offsetof(dts_stack, backward_launch_s),
     .help = "the same from the autograd engine"},
    {.key = "step_host",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1000,
     .required = true,
     .offset = offsetof(dts_stack, step_host_s),
     .help = "host time per optimizer step outside the kernels: loop, zero_grad, logging"},
    {.key = "cuda_graphs",
     .type = DTS_FIELD_ENUM,
     .names = cuda_graphs,
     .preset = "none",
     .offset = offsetof(dts_stack, cuda_graphs),
     .help =
         "kernels that are captured in a graph and replayed with one launch: none, each layer's forward and backward, "
         "or those of a whole iteration"},
    {.key = "cuda_graph_modules",
     .type = DTS_FIELD_LIST,
     .element_type = DTS_FIELD_STRING,
     .offset = offsetof(dts_stack, graph_modules),
     .help = "with cuda_graphs: layers, what of each layer: attn, mlp (without experts), moe_router (with shared "
             "experts), moe_preprocess, moe (all behind attention); empty: all of it"},
    {.key = "compile",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, compile),
     .help = "element-wise operators are fused by a compiler"},
    {.key = "frees_logits",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, frees_logits),
     .help = "the training loop drops the model's output before backward"},
    {.key = "shifted_logits",
     .type = DTS_FIELD_ENUM,
     .names = shifted_logits,
     .preset = "none",
     .offset = offsetof(dts_stack, shifted_logits),
     .help =
         "the model copies its logits without those of the last positions for its loss (Hugging Face's causal models): "
         "none, copied, or fp32: it casts them first, and what it returns is fp32"},
    {.key = "batch_waits",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, batch_waits),
     .help = "the host waits until the GPU is idle before it launches a microbatch's forward pass on a first stage"},
    {.key = "loss_in_place",
     .type = DTS_FIELD_BOOL,
     .preset = "true",
     .offset = offsetof(dts_stack, loss_in_place),
     .help =
         "the loss of a split vocabulary overwrites its fp32 logits (Megatron-LM), else each step makes a new tensor"},
    {.key = "loss_metrics",
     .type = DTS_FIELD_INT,
     .preset = "0",
     .maximum = 16,
     .offset = offsetof(dts_stack, loss_metrics),
     .help = "cross-entropies of every microbatch's logits beside the loss, which the training loop logs"},
    {.key = "z_loss",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, z_loss),
     .help =
         "the loss has a term in the logits' sum of exponentials, with kernels of its own unless it is fused, compiled "
         "or of a split vocabulary"},
    {.key = "joined_adapters",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, joined_adapters),
     .help =
         "a product that stands for several projections (query, key and value; gate and up) has one low-rank adapter "
         "for all of them, instead of one for each that is targeted"},
    {.key = "loss_of_split",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, loss_of_split),
     .help = "the loss of a split vocabulary also where one rank has all of it: its kernels, without its reductions"},
    {.key = "compile_loss",
     .type = DTS_FIELD_BOOL,
     .preset = "true",
     .offset = offsetof(dts_stack, compile_loss),
     .help = "with compile: the loss as well as the layers"},
    {.key = "attention",
     .type = DTS_FIELD_ENUM,
     .names = attention_kinds,
     .required = true,
     .offset = offsetof(dts_stack, attention),
     .help = "scores in memory, or fused"},
    {.key = "complex_rotary",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, complex_rotary),
     .help = "rotary embedding as a product of complex numbers in fp32, which neither fusion nor compile changes"},
    {.key = "matrix_rotary",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, matrix_rotary),
     .help =
         "rotary embedding as products with 2 x 2 matrices in fp32 that kernels of their own add up, unless compiled"},
    {.key = "widens_norm",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, widens_norm),
     .help = "inputs of fused norms are cast to fp32 by a kernel of their own, and so are their gradients back"},
    {.key = "scores_buffer",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, scores_buffer),
     .help = "attention that is not fused: a buffer of the size of its scores lives for the whole run"},
    {.key = "softmax_keys",
     .type = DTS_FIELD_INT,
     .maximum = 1e9,
     .preset = "0",
     .offset = offsetof(dts_stack, softmax_keys),
     .help = "fuse.softmax: the kernel takes no more keys than that, half precision, and multiples of four in samples "
             "times "
             "heads of a rank (Megatron-LM); other shapes go through separate kernels in fp32. 0: it takes all"},
    {.key = "positions_first",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, positions_first),
     .help =
         "fused attention: queries, keys and values are copied from positions first to samples first, the output back"},
    {.key = "keeps_joined_qkv",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, keeps_joined_qkv),
     .help = "without separate_qkv: values are a view of the product's output, so that queries and keys stay in it "
             "beside their rotated copies; or queries, beside copies of keys and values"},
    {.key = "keeps_softmax_input",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, keeps_softmax_input),
     .help = "eager softmax keeps its input for backward beside its output, as PyTorch did before 1.11"},
    {.key = "repeats_keys",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, repeats_keys),
     .help = "keys and values are copied to all query heads before fused attention"},
    {.key = "few_kv_heads",
     .type = DTS_FIELD_ENUM,
     .names = few_kv_heads_kinds,
     .preset = "refused",
     .offset = offsetof(dts_stack, few_kv_heads),
     .help = "more tensor-parallel ranks than heads of keys and values: refused; gathered: the joined product is cut "
             "below a head, and all ranks gather its output (Megatron-Core); whole: every rank has the weights of all "
             "those heads in a product beside that of its queries"},
    {.key = "bert",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_bert_schema,
     .offset = offsetof(dts_stack, bert_fine_tunes),
     .help = "what BERT is trained for where the model does not say"},
    {.key = "flash_speed",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_NUMBER,
     .minimum = 0.05,
     .maximum = 10,
     .preset = "1",
     .offset = offsetof(dts_stack, flash_speed),
     .help = "rate of fused attention over FlashAttention-2"},
    {.key = "flash_narrow_speed",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_NUMBER,
     .minimum = 0,
     .maximum = 10,
     .preset = "0",
     .offset = offsetof(dts_stack, flash_narrow_speed),
     .help = "the same with heads of 64 and less; between 64 and 128 in proportion; 0: the same"},
    {.key = "cudnn_attention",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, cudnn_attention),
     .help = "fused attention is cuDNN's, at flash.cudnn of the GPU times its rate"},
    {.key = "aiter_attention",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, aiter_attention),
     .help = "fused attention is that of AMD's AITER in assembly, at flash.aiter of the GPU times its rate"},
    {.key = "selective",
     .type = DTS_FIELD_ENUM,
     .names = selective_kinds,
     .preset = "attention",
     .offset = offsetof(dts_stack, selective),
     .help = "what selective recomputation repeats: the attention core, or all but every second product"},
    {.key = "recompute_stops_early",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, recompute_stops_early),
     .help = "recomputation ends when all that backward needs has been saved, so that the last product of a "
             "checkpointed layer and the exchange behind it do not run again"},
    {.key = "tf32",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = offsetof(dts_stack, tf32),
     .help = "fp32 products run as tf32 where the GPU can"},
    {.key = "tensor_backward_overlap",
     .type = DTS_FIELD_ENUM,
     .names = backward_overlaps,
     .offset = offsetof(dts_stack, tensor_backward_overlap),
     .help = "tensor-parallel transfers of backward run beside the products of input and weight gradients: never, "
             "always, or those of sequence parallelism"},
    {.key = "autocast",
     .type = DTS_FIELD_ENUM,
     .names = autocast_uses,
     .preset = "always",
     .offset = offsetof(dts_stack, autocast),
     .help = "where its scripts enter torch.autocast, of plans whose half precision is not FSDP's: always, not with "
             "tensor or pipeline parallelism, or never. Without it amp-... trains in fp32, unless "
             "context parallelism has FSDP wrap it anyway"},
    {.key = "master_weights",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, master_weights),
     .help = "half precision means half weights with fp32 master copies, not autocast"},
    {.key = "fp32_gradients",
     .type = DTS_FIELD_ENUM,
     .names = fp32_gradient_kinds,
     .preset = "false",
     .offset = offsetof(dts_stack, fp32_gradients),
     .help = "with master_weights: gradients are accumulated and reduced in fp32; bf16: only those of bf16 models"},
    {.key = "keeps_half_gradients",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, keeps_half_gradients),
     .help = "with fp32_gradients: the gradients in half stay beside them"},
    {.key = "fuse",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_fuse_schema,
     .required = true,
     .offset = offsetof(dts_stack, fuse_bias_gelu),
     .help = "fusions"},
    {.key = "experts",
     .type = DTS_FIELD_ENUM,
     .names = expert_styles,
     .preset = "sequential",
     .offset = offsetof(dts_stack, experts),
     .help = "products of a rank's experts: one after another, on four streams, or one grouped kernel"},
    {.key = "experts_sms",
     .type = DTS_FIELD_INT,
     .maximum = 128,
     .preset = "0",
     .offset = offsetof(dts_stack, experts_sms),
     .help =
         "multiprocessors that exchanges of experts take from the products of another pass beside them, where two run "
         "in turns (DeepEP's num_sms)"},
    {.key = "experts_host",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .maximum = 1,
     .preset = "0",
     .offset = offsetof(dts_stack, experts_host_s),
     .help = "host time between reading the token counts of an expert layer and the launches that need them"},
    {.key = "device_dispatch_domain",
     .type = DTS_FIELD_INT,
     .maximum = 1024,
     .preset = "0",
     .offset = offsetof(dts_stack, device_dispatch_domain),
     .help = "GPUs joined by links from which on tokens are dispatched by the device and the host reads no counts; 0: "
             "never"},
    {.key = "device_dispatch_reads",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, device_dispatch_reads),
     .help = "with device_dispatch_domain: the host waits for the counts of rows that came, which the products of "
             "experts need "
             "unless they are grouped"},
    {.key = "device_dispatch_waits",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, device_dispatch_waits),
     .help = "with device_dispatch_domain: the host waits for these counts before rows are sent, to make room for them "
             "(DeepEP), whichever way the products run"},
    {.key = "device_dispatcher",
     .type = DTS_FIELD_ENUM,
     .names = dispatcher_words,
     .preset = "deepep",
     .offset = offsetof(dts_stack, device_dispatcher),
     .help = "whose kernels dispatch from the device, for exports; what they do is said by the other keys"},
    {.key = "shared_expert_overlap",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, shared_expert_overlap),
     .help = "where the host dispatches: the first product of the shared experts runs while tokens are on their way to "
             "the others, the second while they come back (Megatron-Core)"},
    {.key = "tokens_cross_once",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, tokens_cross_once),
     .help = "a token for several experts of a node crosses the network once and is handed on inside it (DeepEP, "
             "HybridEP)"},
    {.key = "separate_qkv",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = offsetof(dts_stack, separate_qkv),
     .help = "query, key and value as three products"},
    {.key = "dropout",
     .type = DTS_FIELD_BOOL,
     .required = true,
     .offset = offsetof(dts_stack, dropout),
     .help = "dropout kernels and masks are there"},
    {.key = "mask_bool_bytes",
     .type = DTS_FIELD_BOOL,
     .preset = "true",
     .offset = offsetof(dts_stack, mask_bool_bytes),
     .help = "dropout masks of one byte per element, else one bit"},
    {.key = "zero_grad_to_none",
     .type = DTS_FIELD_BOOL,
     .preset = "true",
     .offset = offsetof(dts_stack, zero_grad_to_none),
     .help = "gradients are dropped after a step instead of filled with zeros"},
    {.key = "persistent_norm",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, persistent_norm),
     .help = "LayerNorm's kernels read each row once (apex FastLayerNorm, Transformer Engine)"},
    {.key = "separate_bias",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, separate_bias),
     .help = "biases are added by a kernel of their own instead of in the product's epilogue"},
    {.key = "accumulate_kernel",
     .type = DTS_FIELD_ENUM,
     .names = accumulate_kinds,
     .preset = "true",
     .offset = offsetof(dts_stack, accumulate_kernel),
     .help = "adding a gradient to the stored one is a kernel per tensor, else the weight-gradient product does it; "
             "half: a kernel where gradients are stored in half"},
    {.key = "accumulate_casts",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, accumulate_casts),
     .help = "half gradients that are added to fp32 ones by kernels are cast to a copy first"},
    {.key = "ddp",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_ddp_schema,
     .required = true,
     .offset = offsetof(dts_stack, ddp_bucket_B),
     .help = "distributed data parallel"},
    {.key = "parallel_blocks",
     .type = DTS_FIELD_ENUM,
     .names = parallel_reductions,
     .preset = "each",
     .offset = offsetof(dts_stack, parallel_blocks),
     .help =
         "attention and feed-forward block side by side, tensor parallelism: each block reduces for itself; outputs: "
         "their partial outputs are added and reduced once; both: the gradients of a shared norm's output as well"},
    {.key = "tensor_copies",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, tensor_copies),
     .help = "sequence parallelism: a copy joins what was gathered and cuts what will be scattered, as the sequence is "
             "not the outermost dimension (DTensor); transfers in chunks need none"},
    {.key = "gathers_each",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, gathers_each),
     .help = "sequence parallelism with separate_qkv: every product gathers its input itself, and keeps it, instead of "
             "one gather for query, key and value and one for gate and up; with compile only gradients go one by one"},
    {.key = "keeps_gathered",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, keeps_gathered),
     .help = "sequence parallelism: backward finds the gathered input of a product instead of gathering it again, also "
             "without separate_qkv"},
    {.key = "whole_embedding",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, whole_embedding),
     .help = "tensor parallelism: every rank has the whole table of tokens; unless the head shares it"},
    {.key = "gathers_logits",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, gathers_logits),
     .help =
         "tensor parallelism: every rank gathers all logits and computes the whole loss, instead of that of a split "
         "vocabulary"},
    {.key = "async_backward",
     .type = DTS_FIELD_ENUM,
     .names = async_backwards,
     .preset = "true",
     .offset = offsetof(dts_stack, async_backward),
     .help = "parallelism.async_tensor cuts transfers of backward into chunks, too; quantised: around 8- and 4-bit "
             "products only"},
    {.key = "chunk_sum_factor",
     .type = DTS_FIELD_QUANTITY,
     .minimum = 1,
     .maximum = 100,
     .preset = "1",
     .offset = offsetof(dts_stack, chunk_sum_factor),
     .help =
         "time of a kernel that adds up a few numbers each, the chunks that a rank received (parallelism.async_tensor) "
         "or the products of matrix_rotary, over the time that its bytes take"},
    {.key = "tensor_overlap",
     .type = DTS_FIELD_BOOL,
     .preset = "false",
     .offset = offsetof(dts_stack, tensor_overlap),
     .help = "parallelism.async_tensor wherever sequence parallelism inside a node allows it"},
    {.key = "user_buffers",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_user_buffers_schema,
     .offset = offsetof(dts_stack, ub_qkv_dgrad),
     .help = "Transformer Engine's user buffers: multiprocessors that tensor-parallel transfers in chunks or beside "
             "products take"},
    {.key = "ring_attention",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_ring_attention_schema,
     .offset = offsetof(dts_stack, ring_waits),
     .help = "context parallelism, method ring: how it is made"},
    {.key = "fp8",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_fp8_schema,
     .offset = offsetof(dts_stack, fp8_recipe),
     .help = "8- and 4-bit products"},
    {.key = "fsdp",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_fsdp_schema,
     .required = true,
     .offset = offsetof(dts_stack, fsdp_prefetch),
     .help = "fully sharded data parallel"},
    {.key = "pipeline",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_pipeline_schema,
     .required = true,
     .offset = offsetof(dts_stack, p2p_overlap),
     .help = "pipeline parallelism"},
    {.key = "optimizer",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_optimizer_schema,
     .required = true,
     .offset = offsetof(dts_stack, optimizer_style),
     .help = "optimizer step"},
    {.key = "allocator",
     .type = DTS_FIELD_MAP,
     .sub = &dts_stack_allocator_schema,
     .required = true,
     .offset = offsetof(dts_stack, allocator_round_B),
     .help = "caching allocator"},
    {.key = "communication_sms",
     .type = DTS_FIELD_INT,
     .maximum = 1000,
     .required = true,
     .offset = offsetof(dts_stack, communication_sms),
     .help = "multiprocessors that a running collective takes from compute"},
    {.key = "tensor_overlap_sms",
     .type = DTS_FIELD_INT,
     .maximum = 1000,
     .preset = "0",
     .offset = offsetof(dts_stack, tensor_overlap_sms),
     .help = "the same of tensor-parallel collectives beside the products of backward (tensor_backward_overlap)"},
    {.key = "communication_memory",
     .type = DTS_FIELD_QUANTITY,
     .maximum = 10,
     .preset = "0",
     .offset = offsetof(dts_stack, communication_memory),
     .help =
         "with communication_sms: bytes of device memory that it moves for each byte that a GPU sends; kernels bound "
         "by memory get the rest"},
    {.key = "launcher",
     .type = DTS_FIELD_ENUM,
     .names = launchers,
     .preset = "none",
     .offset = offsetof(dts_stack, launcher),
     .help = "what alone starts it, so that searches mark plans that it has no words for; none: a library, or unknown"},
    {.key = "schedules",
     .type = DTS_FIELD_LIST,
     .element_type = DTS_FIELD_STRING,
     .offset = offsetof(dts_stack, schedules),
     .help = "pipeline schedules that its launcher offers, for `dtsim search`; empty: unknown, and none is marked"},
    {.key = "context",
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .maximum = 1e12,
     .required = true,
     .offset = offsetof(dts_stack, context_B),
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
