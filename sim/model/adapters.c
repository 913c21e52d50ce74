/* Low-rank adapters beside frozen weights [1], and frozen weights that are stored in fewer bits [2].
 *
 *   y = x·W + s · dropout(x)·A·B      W (k, n) frozen, A (k, r), B (r, n) trained
 *   y = x·W + dropout(s · x·A·B)      the same with dropout of the outputs [5]
 *
 * Of W only the gradient of its input is computed, so that x is not kept for it; A keeps its own input: x itself, or
 * with dropout of x a tensor of its own. Per adapted product (PEFT, eager [3]): dropout, two products of rank r, two
 * elementwise kernels behind them (the scale s, and the sum with the wide product), and in backward the sum of the
 * input gradients of both paths:
 *
 *   parameters  r·(k + n)        FLOPs forward  2·rows·r·(k + n), twice that backward
 *
 * A product that stands for several projections (query, key and value in one) has an adapter for each target, or
 * one for all of them [7]. Experts have one each, as products of rank r grouped like their own.
 *
 * Adapters in fp32 [10] read a copy of their input in fp32, one for each of them, which theirs is to keep, and dropout
 * works on it; without autocast all behind it is in fp32 as well: the products, the scale and the sum, which is cast
 * back. Under autocast the copy is cast again for A, which keeps that one. Backward casts the gradients the other way.
 *
 * Where T ranks share W, both factors are split among them, so that nothing is trained twice [4]; rows·r and rows·n
 * are whole tensors, in bytes of the activations:
 *   W by columns (k, n/T)   A (k, r/T): its output is gathered, rows·r       B (r, n/T)
 *                           backward: the gradient of rows·r is all-reduced, and that of x is reduced with W's own
 *                           (with sequence parallelism in one reduce-scatter, else in a second all-reduce)
 *   W by rows (k/T, n)      A (k/T, r): its output is all-reduced, rows·r    B (r, n/T): its output is gathered, rows·n
 *                           backward: rows·r is all-reduced; with sequence parallelism the gradient of the output is
 *                           gathered for B as it is for W
 * A needs x of all positions in backward: with sequence parallelism the gathered x is kept, not the rank's share. Of an
 * expert split by rows the output of B is left in place: the sum over the ranks behind it puts it together.
 *
 * A narrow weight is written out in the type of the product by a kernel before each use, forward and backward: it reads
 * its stored bytes and writes n·k·e, which live as long as the product. Stored bytes per element:
 *   int8, fp8           1
 *   nf4                 1/2 + 4/64: one fp32 constant per block of 64 [2]
 *   nf4, double         1/2 + 1/64 + 4/(64·256): these in 8 bits, with an fp32 constant per 256 of them [2]
 *   gptq                1/2 + 5/2/128: a scale in 16 bits and a zero in 4 per group of 128 [8]
 * What GPTQ packs is unpacked by operations of the framework [9]: a shift that writes 32-bit integers, their copy in 8
 * bits, a mask, the difference to the zeros and the product with the scales, 1/2 + 4 + 5 + 2 + 2 + 1 + e bytes an
 * element. Autograd keeps the unpacked weight for the gradient of the input.
 *
 * Weights in fp32 are cast before each product, and the cast is kept for the gradient of its input: autocast caches
 * copies of trained weights only [6]. Where FSDP gathers them in half (mixed_precision) there is nothing to cast.
 *
 * Embedding, norms, biases and head are frozen too, in the type of the activations, or with all else in fp32. Then the
 * residual stream is fp32 as with autocast. The backward pass ends before the embedding.
 *
 * [1] Hu et al. 2021, LoRA: Low-Rank Adaptation of Large Language Models, arXiv 2106.09685, section 4.1.
 * [2] Dettmers et al. 2023, QLoRA: Efficient Finetuning of Quantized LLMs, arXiv 2305.14314, section 3.
 * [3] huggingface/peft src/peft/tuners/lora/layer.py.
 * [4] NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/peft/utils.py, ParallelLinearAdapter and
 *     GroupedExpertLinearAdapter.
 * [5] NVIDIA-NeMo/Automodel nemo_automodel/components/_peft/lora.py, dropout_position "post".
 * [6] PyTorch aten/src/ATen/autocast_mode.cpp, cached_cast: leaves that require a gradient.
 * [7] NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/peft/lora.py: linear_qkv and linear_fc1 are wrapped whole.
 * [8] Frantar et al. 2022, GPTQ, arXiv 2210.17323, section 4; groups of 128 as of the Int4 models of Qwen.
 * [9] AutoGPTQ/AutoGPTQ auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py, QuantLinear.forward: as models are trained,
 *     their own kernels take few rows and have no gradient.
 * [10] huggingface/peft v0.13 src/peft/tuners/lora/layer.py, Linear.forward: x.to(lora_A.weight.dtype), result.to(
 *     torch_result_dtype); tuners/tuners_utils.py, cast_adapter_dtype: adapters of half weights are made fp32. */
#include "model/builder.h"

/* One adapter is as wide as the product. */
static int join(const dts_linear *linear, int64_t widths[3]) {
    widths[0] = linear->n;
    return 1;
}

/* Widths of the projections of a product that get an adapter; returns how many. */
static int targets_of(const dts_builder *builder, const dts_linear *linear, int64_t widths[3]) {
    const dts_local *l = &builder->local;
    const bool joined = builder->execution->adaptation.joined;
    const dts_adapter_targets targets = (dts_adapter_targets)builder->execution->adaptation.targets;
    const bool attention = targets != DTS_TARGETS_QUERY_VALUE;
    int count = 0;
    switch (linear->role) {
        case DTS_LINEAR_PLAIN:
            break;
        case DTS_LINEAR_QUERY_OR_VALUE:
            widths[count++] = linear->n;
            break;
        case DTS_LINEAR_QUERY_KEY_VALUE:
            if (joined) {
                return join(linear, widths);
            }
            widths[count++] = l->a * l->d;
            widths[count++] = l->kv * l->d;
            if (attention) {
                widths[count++] = l->kv * l->d;
            }
            break;
        case DTS_LINEAR_ATTENTION:
            if (attention) {
                widths[count++] = linear->n;
            }
            break;
        case DTS_LINEAR_GATE_UP:
        case DTS_LINEAR_FEED_FORWARD:
            if (joined && targets == DTS_TARGETS_ALL_LINEAR) {
                return join(linear, widths);
            }
            for (int i = 0; targets == DTS_TARGETS_ALL_LINEAR && i < (linear->role == DTS_LINEAR_GATE_UP ? 2 : 1);
                 i++) {
                widths[count++] = linear->role == DTS_LINEAR_GATE_UP ? linear->n / 2 : linear->n;
            }
            break;
    }
    return count;
}

bool dts_adapter_keeps_input(const dts_builder *builder, const dts_linear *linear) {
    int64_t widths[3];
    return targets_of(builder, linear, widths) > 0 && !builder->execution->adaptation.dropout &&
           !builder->execution->adaptation.copies;
}

/* How many products of its shape a linear layer has. */
static double groups_of(const dts_linear *linear) {
    return linear->experts > 0 ? (double)linear->experts : 1;
}

/* Ranks that share the weight. */
static int64_t ranks_of(const dts_builder *builder, const dts_linear *linear) {
    if (linear->whole) {
        return 1;
    }
    return linear->experts > 0 ? builder->execution->expert_tensor : builder->execution->tensor;
}

/* The tensors around the adapters of a product, B. */
typedef struct sizes {
    double x_B;      /* (rows, k): the input */
    double narrow_B; /* (rows, rank) */
    double before_B; /* outputs of the adapters before this one, which wait for their sums */
    double kept_B;   /* of the input, by this adapter */
} sizes;

static double rows_B(const dts_builder *builder, const dts_linear *linear, int64_t width) {
    return groups_of(linear) * (double)linear->rows * (double)width * builder->local.e;
}

/* fp32 adapters are cast for each use under autocast; passes: what passes by on the chain. */
static void add_adapter_casts(dts_builder *builder, double elements, double passes_B) {
    const dts_local *l = &builder->local;
    const double trained_B = builder->execution->adaptation.trained_B;
    if (trained_B > l->e && !builder->execution->adaptation.wide) {
        dts_add_memory(builder, "lora_cast",
                       (dts_passes){.forward_kernels = 2,
                                    .backward_kernels = 2,
                                    .forward_B = elements * (trained_B + l->e),
                                    .backward_B = elements * (trained_B + l->e),
                                    .input_B = passes_B,
                                    .output_B = passes_B});
    }
}

/* Bytes of what adapters work on, over those of the activations. */
static double widening(const dts_builder *builder) {
    return builder->execution->adaptation.wide ? DTS_FP32_B / builder->local.e : 1;
}

/* Is the input of this product in fp32 as it comes from a norm, whose scale is? */
static bool reads_wide_stream(const dts_builder *builder, const dts_linear *linear) {
    const bool inner = linear->role == DTS_LINEAR_ATTENTION || linear->role == DTS_LINEAR_FEED_FORWARD;
    return builder->execution->adaptation.casts && !inner;
}

/* The copy of the input in fp32, unless it is, and under autocast its own cast; backward the casts of its gradient.
 * Returns what of it A reads. */
static double add_input_copy(dts_builder *builder, const dts_linear *linear, double x_B, double passes_B) {
    if (!builder->execution->adaptation.copies) {
        return x_B;
    }
    const bool wide = builder->execution->adaptation.wide;
    const double copied_B = x_B / builder->local.e * DTS_FP32_B, read_B = wide ? copied_B : x_B;
    const int casts = wide || reads_wide_stream(builder, linear) ? 1 : 2;
    const double moved_B = casts * (x_B + copied_B);
    dts_add_memory(builder, "lora_copy",
                   (dts_passes){.forward_kernels = casts,
                                .backward_kernels = casts,
                                .forward_B = moved_B,
                                .backward_B = moved_B,
                                .input_B = passes_B,
                                .output_B = passes_B + read_B});
    return read_B;
}

static void add_factor(dts_builder *builder, const dts_linear *like, const char *name, int64_t n, int64_t k,
                       double input_B, double output_B, double saved_B) {
    const dts_linear product = {
        .name = name, .rows = like->rows, .n = n, .k = k, .experts = like->experts, .routed_rows = like->routed_rows};
    dts_operator *o = dts_add_product(builder, &product);
    o->input_B = input_B;
    o->output_B = output_B;
    o->saved_B = saved_B;
    o->parameters[0] = groups_of(like) * (double)n * (double)k;
    o->adapter = true;
}

/* What the ranks exchange between the factors. */
static void add_rank_exchange(dts_builder *builder, const dts_linear *linear, const sizes *s) {
    dts_operator *between = dts_add_memory(builder, "lora_rank", (dts_passes){0});
    between->forward_exchange = linear->row_split ? DTS_EXCHANGE_ALL_REDUCE : DTS_EXCHANGE_ALL_GATHER;
    between->backward_exchange = DTS_EXCHANGE_ALL_REDUCE;
    between->exchange_B = s->narrow_B;
    between->among_experts = linear->experts > 0;
}

/* The narrow path of one target of width n: x passes by, and the outputs of the targets before. */
static void add_adapter(dts_builder *builder, const dts_linear *linear, int64_t n, const sizes *s) {
    const int64_t rank = builder->execution->adaptation.rank, ranks = ranks_of(builder, linear);
    const int64_t inner = linear->row_split ? rank : rank / ranks; /* columns of A */
    const int64_t outer = linear->row_split ? n / ranks : n;       /* columns of B */
    const double passes_B = s->x_B + s->before_B;
    const double elements = groups_of(linear) * ((double)linear->k * (double)inner + (double)rank * (double)outer);
    const double read_B = add_input_copy(builder, linear, s->x_B, passes_B);
    add_adapter_casts(builder, elements, passes_B);
    add_factor(builder, linear, "lora_a", inner, linear->k, read_B, passes_B + s->narrow_B,
               builder->execution->adaptation.copies ? read_B : s->kept_B);
    if (ranks > 1) {
        add_rank_exchange(builder, linear, s);
    }
    add_factor(builder, linear, "lora_b", outer, rank, s->x_B + s->narrow_B,
               passes_B + widening(builder) * rows_B(builder, linear, n), s->narrow_B);
    if (ranks > 1 && linear->row_split && linear->experts == 0) {
        dts_operator *out = &builder->items[builder->count - 1];
        out->forward_exchange = DTS_EXCHANGE_ALL_GATHER;
        out->exchange_B = widening(builder) * rows_B(builder, linear, n);
    }
}

/* Backward the gradients of all paths from x are added up here. */
static void add_branch(dts_builder *builder, double x_B, int adapters) {
    dts_add_memory(
        builder, "lora_input",
        (dts_passes){.backward_kernels = adapters, .backward_B = 3 * adapters * x_B, .input_B = x_B, .output_B = x_B})
        ->adapter_input = true;
}

/* A narrow weight becomes readable; chain_B passes by. */
static void add_dequantisation(dts_builder *builder, const dts_linear *linear, double chain_B) {
    const dts_adaptation *adaptation = &builder->execution->adaptation;
    const double weights = groups_of(linear) * (double)linear->n * (double)linear->k;
    const int kernels = (adaptation->double_quantised ? 2 : 1) * (int)groups_of(linear);
    dts_add_memory(builder, "dequantise_weight",
                   (dts_passes){.forward_kernels = kernels,
                                .backward_kernels = kernels,
                                .forward_B = weights * (adaptation->base_B + builder->local.e),
                                .backward_B = weights * (adaptation->base_B + builder->local.e),
                                .input_B = chain_B,
                                .output_B = chain_B});
}

enum { UNPACK_KERNELS = 5, UNPACK_ZEROS_KERNELS = 5 }; /* [9]: the zeros are small */

static void add_unpacking(dts_builder *builder, const dts_linear *linear, double chain_B) {
    const double weights = groups_of(linear) * (double)linear->n * (double)linear->k, e = builder->local.e;
    dts_add_memory(builder, "unpack_weight",
                   (dts_passes){.forward_kernels = (UNPACK_KERNELS + UNPACK_ZEROS_KERNELS) * (int)groups_of(linear),
                                .forward_B = weights * (builder->execution->adaptation.base_B + 14 + e),
                                .input_B = chain_B,
                                .output_B = chain_B,
                                .saved_B = weights * e,
                                .workspace_B = weights / groups_of(linear) * 5}); /* 32 and 8 bits side by side */
}

void dts_add_base_cast(dts_builder *builder, const dts_linear *linear, double chain_B) {
    const dts_adaptation *adaptation = &builder->execution->adaptation;
    const double e = builder->local.e;
    if (!adaptation->casts || adaptation->base_B <= e) {
        return;
    }
    const double weights = groups_of(linear) * (double)linear->n * (double)linear->k;
    dts_add_memory(builder, "cast_weight",
                   (dts_passes){.forward_kernels = 1,
                                .forward_B = weights * (adaptation->base_B + e),
                                .input_B = chain_B,
                                .output_B = chain_B,
                                .saved_B = weights * e});
}

double dts_add_adapters(dts_builder *builder, const dts_linear *linear) {
    const dts_adaptation *adaptation = &builder->execution->adaptation;
    int64_t widths[3];
    const int count = targets_of(builder, linear, widths);
    sizes s = {.x_B = rows_B(builder, linear, linear->k),
               .narrow_B = widening(builder) * rows_B(builder, linear, adaptation->rank)};
    s.kept_B = linear->saved_B > 0 || adaptation->dropout ? s.x_B : 0;
    if (count > 0) {
        add_branch(builder, s.x_B, count);
    }
    if (count > 0 && adaptation->dropout) {
        const double elements = s.x_B / builder->local.e;
        dts_add_dropout(builder, "lora_dropout", adaptation->copies ? elements * DTS_FP32_B : s.x_B,
                        elements * builder->execution->mask_B);
    }
    for (int i = 0; i < count; i++) {
        add_adapter(builder, linear, widths[i], &s);
        s.before_B += widening(builder) * rows_B(builder, linear, widths[i]);
        s.kept_B = 0; /* one input for all, unless each has a copy */
    }
    if (adaptation->narrow) {
        add_dequantisation(builder, linear, s.x_B + s.before_B);
    }
    if (adaptation->unpacks) {
        add_unpacking(builder, linear, s.x_B + s.before_B);
    }
    dts_add_base_cast(builder, linear, s.x_B + s.before_B);
    return s.before_B;
}

double dts_written_weight_B(const dts_builder *builder, const dts_linear *linear) {
    const double at_once = builder->execution->grouped_products ? groups_of(linear) : 1;
    return at_once * (double)linear->n * (double)linear->k * builder->local.e;
}

void dts_add_adapted_sums(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    int64_t widths[3];
    const int count = targets_of(builder, linear, widths);
    const bool scattered = linear->row_split && linear->experts == 0 && l->sequence;
    const double share = scattered ? (double)l->shard / (double)l->s : 1; /* of the rows, behind the exchange */
    const double output_B = rows_B(builder, linear, linear->n);
    const bool drops = builder->execution->adaptation.output_dropout;
    for (int i = 0; i < count; i++) { /* the scale, and the sum; backward: the scale of the gradient */
        const double T = share * rows_B(builder, linear, widths[i]);
        const double mask_B = drops ? T / l->e * builder->execution->mask_B : 0;
        const double drop_B = drops ? 2 * T + mask_B : 0;
        const double wide_B = widening(builder) > 1 ? T / l->e * DTS_FP32_B : 0; /* the same in fp32 */
        dts_operator *sum =
            dts_add_memory(builder, "lora_add",
                           (dts_passes){.forward_kernels = (drops ? 3 : 2) + (wide_B > 0 ? 1 : 0),
                                        .forward_B = (wide_B > 0 ? 2 * T + 5 * wide_B : 5 * T) + drop_B,
                                        .backward_kernels = (drops ? 2 : 1) + (wide_B > 0 ? 2 : 0),
                                        .backward_B = (wide_B > 0 ? 2 * T + 4 * wide_B : 2 * T) + drop_B,
                                        .input_B = output_B,
                                        .output_B = output_B,
                                        .saved_B = mask_B});
        sum->dropout_B = drop_B;
        if (scattered) {
            sum->backward_exchange = DTS_EXCHANGE_ALL_GATHER;
            sum->exchange_B = output_B;
        }
    }
}

/* What the ranks that share a product do with the gradient of its input: a scatter comes behind the sum of all paths;
 * an all-reduce is part of each path. */
static void move_input_exchanges(dts_builder *builder) {
    dts_operator *input = NULL;
    for (size_t i = 0; i < builder->count; i++) {
        dts_operator *o = &builder->items[i];
        input = o->adapter_input ? o : input;
        if (input == NULL || o->adapter || o->kind != DTS_OPERATOR_GEMM || !o->weight) {
            continue;
        }
        if (o->backward_exchange != DTS_EXCHANGE_NONE) {
            input->backward_exchange = o->backward_exchange;
            input->exchange_B = o->exchange_B;
        }
        if (o->backward_exchange == DTS_EXCHANGE_REDUCE_SCATTER) {
            o->backward_exchange = DTS_EXCHANGE_NONE;
        }
        input = NULL;
    }
}

void dts_freeze_part(dts_builder *builder, dts_part part) {
    const dts_adaptation *adaptation = &builder->execution->adaptation;
    const bool layer = dts_part_is_layer(part);
    move_input_exchanges(builder);
    for (size_t i = 0; i < builder->count; i++) {
        dts_operator *o = &builder->items[i];
        if (o->adapter) {
            continue;
        }
        const bool product = o->kind == DTS_OPERATOR_GEMM && o->weight;
        const double weight_B = product && layer ? adaptation->base_B : adaptation->other_B;
        o->frozen = o->parameters[0] + o->parameters[1];
        o->frozen_B = o->parameters[0] * weight_B + o->parameters[1] * adaptation->other_B;
        for (int p = 0; p < DTS_PARAMETER_TENSORS; p++) {
            o->parameters[p] = 0;
        }
        if (product) {
            o->constant = true;
            o->backward_kernels = 1;
        }
        if (part == DTS_PART_EMBEDDING) {
            o->backward_kernels = 0;
            o->backward_B = 0;
            o->backward_exchange = DTS_EXCHANGE_NONE;
            o->saved_B = 0;
        }
    }
}
