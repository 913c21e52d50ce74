/* Casts around the layers' linear products in 8 or 4 bits.
 *
 * A product y = x·W and its two gradients dx = dy·W', dW = dy'·x read their operands in the narrow format, with one
 * scale per tensor (fp8) or per block of 16 or 32 elements (mxfp8, nvfp4) [1]. The operands are cast by kernels that
 * move memory; e is the width of an activation, q that of a narrow element with its share of scales, both in bytes:
 *
 *   input      x (m, k)   forward    m·k·(e + copies·q)
 *   weight     W (n, k)   forward    n·k·(w + copies·q), w: width of the stored weight
 *   gradient   dy (m, n)  backward   m·n·(e + copies·q)
 *
 * copies is 2 where products read both factors along K only (fp8 on Hopper [2] and with ROCm [9]) or where blocks of
 * scales run along K (mxfp8, nvfp4, blockwise fp8 [1]): dx and dW then need transposed copies of W, x and dy, which
 * fused kernels write along.
 * A scale of the current tensor needs its largest value first: one pass more, m·k·e, in three kernels (one clears, one
 * looks, one makes the scale [4]), unless the kernel that makes the
 * tensor finds it on the way (torch.compile) or scales come from earlier steps (delayed scaling) [1]. Writing the
 * transposed copy, a kernel may be slower than its bytes say (transpose_factor).
 *
 * The product keeps x in the narrow format: 1 byte for each of its elements instead of 2. Where sequence parallelism
 * splits x or dy, they are cast first and gathered narrow [3]; the transposed copy is then made of the whole, in
 * backward: 2·m·k·q, for x and for dy.
 *
 * Rowwise: each row of a factor along K has its scale, and K is another dimension in each of the three products. So
 * every product has its own casts, out of tensors that stay wide, behind the gathers of sequence parallelism [5]: each
 * rank casts the whole. A kernel keeps a row along memory in the chip between looking and casting; a column it reads
 * twice, and writes its cast transposed (in three kernels: two look, one casts):
 *
 *   forward         x, W       (m·k + n·k)·(e + q)
 *   dx = dy·W'      dy         m·n·(e + q)
 *                   W, columns n·k·(e + (e + q)·transpose_factor)
 *   dW = dy'·x      both, columns, unless this product stays wide: (m·n + m·k)·(e + (e + q)·transpose_factor)
 *
 * The products of gradients have no kernel for it that adds up in fp32: scales are multiplied in afterwards, n·k·2e for
 * dW; with dx a compiler does it in what reads it.
 *
 * One scale for a tensor whose parts tensor-parallel ranks hold is made from the largest value of all parts: an
 * all-reduce of 4 bytes before the cast, of each operand (DTensor [3]) or of those that are gathered behind it [6].
 * Rowwise, DTensor makes one of 4 bytes a row where ranks hold parts of the rows.
 *
 * Rows of tokens that were cast before they were sent here [8], and gradients that were, come narrow: nothing is cast
 * forward, and only the transposed copy is made, in backward: 2·m·k·q.
 *
 * Fused attention may read 8 bits, too (fp8_dpa of Transformer Engine [7]): queries, keys, values, and the gradient of
 * the output are cast, the output and the gradients of the three are cast back, each by kernels of its own; backward
 * finds the narrow tensors, the output among them. n elements of queries (and outputs), k of keys:
 *
 *   before        forward  (n + 2k)·(e + q), and (n + 2k)·e for the largest values; backward  (n + 2k)·(q + e)
 *   behind        forward  n·(q + e)                                                backward  n·(e + q), and n·e
 *
 * Operands of experts whose products are library calls of their own are cast one by one: the split that Transformer
 * Engine makes of their rows is a loop over the casts, but for delayed scaling [4].
 *
 * [1] NVIDIA, Transformer Engine, "Using FP8 and FP4 with Transformer Engine"; Micikevicius et al. 2022,
 *     arXiv 2209.05433.
 * [2] NVIDIA, cuBLAS documentation, "8-bit floating point data types (FP8) usage": the TN format.
 * [3] pytorch/ao torchao/float8/float8_tensor_parallel.py; Transformer Engine, pytorch/module/layernorm_linear.py.
 * [4] NVIDIA/TransformerEngine transformer_engine/pytorch/csrc/quantizer.cpp, Float8CurrentScalingQuantizer, and
 *     csrc/extensions/cast.cpp, split_quantize.
 * [5] pytorch/ao torchao/float8/float8_linear.py, matmul_with_hp_or_float8_args, and config.py (June 2025);
 * pytorch/torchtitan torchtitan/models/llama3/infra/parallelize.py, enable_float8_tensorwise_tp. [6]
 * NVIDIA/TransformerEngine transformer_engine/pytorch/module/linear.py, _customize_quantizers_float8_current_scaling.
 * [7] the same, pytorch/attention/dot_product_attention/backends.py, FusedAttnFunc.
 * [8] DeepSeek-AI 2024, DeepSeek-V3, arXiv 2412.19437, section 3.3.3.
 * [9] ROCm/TransformerEngine transformer_engine/pytorch/utils.py, is_non_tn_fp8_gemm_supported: false on ROCm. */
#include "model/builder.h"

enum { AMAX_KERNELS = 3 };   /* [4] */
enum { COLUMN_KERNELS = 3 }; /* two look for the largest values of columns, one casts */
static const double SCALE_B = 4;

double dts_gathers_again_B(const dts_builder *builder) {
    const dts_local *l = &builder->local;
    const bool trained = !dts_model_adapts(builder->execution); /* adapters keep what was gathered */
    return l->regathers && trained ? l->full_B * (l->keeps_narrow ? l->q / l->e : 1) : 0;
}

/* How much longer kernels take that write a transposed copy, where there is one. */
static double slower(const dts_quantisation *quantisation, int copies) {
    return copies > 1 && quantisation->transpose_factor > 1 ? quantisation->transpose_factor : 1;
}

/* Products that a linear operator stands for: one, or one of each expert. */
static double products(const dts_linear *linear) {
    return linear->experts > 0 ? (double)linear->experts : 1;
}

static int calls_of(const dts_builder *builder, const dts_linear *linear) {
    return linear->experts > 0 && !builder->execution->grouped_products ? (int)linear->experts : 1;
}

/* Kernels that cast tensors and make their scales; what casts of activations without a transposed copy move. */
static int scaled_casts(const dts_builder *builder, int tensors) {
    return tensors * (1 + (builder->execution->quantisation.amax_kernel ? AMAX_KERNELS : 0));
}

static double scaled_cast_B(const dts_builder *builder, double elements) {
    const dts_local *l = &builder->local;
    return elements * (l->e + l->q + (builder->execution->quantisation.amax_kernel ? l->e : 0));
}

/* Kernels of an operand's cast and scale. */
static int cast_kernels(const dts_builder *builder, const dts_linear *linear) {
    return scaled_casts(builder, calls_of(builder, linear));
}

/* Reads a tensor of so many elements of wide_B twice and writes its cast along the other dimension. */
static double column_cast_B(const dts_builder *builder, double elements, double wide_B) {
    return elements * (wide_B + (wide_B + builder->local.q) * slower(&builder->execution->quantisation, 2));
}

/* The ranks' largest values become one. The tensor on the chain passes by. */
static dts_operator *add_shared_scale(dts_builder *builder, bool backward, double scales) {
    dts_operator *scale = dts_add_memory(builder, "shared_scale", (dts_passes){0});
    scale->forward_exchange = backward ? DTS_EXCHANGE_NONE : DTS_EXCHANGE_ALL_REDUCE;
    scale->backward_exchange = backward ? DTS_EXCHANGE_ALL_REDUCE : DTS_EXCHANGE_NONE;
    scale->exchange_B = scales * SCALE_B;
    return scale;
}

/* Scales of rows of which each rank holds a part: the product is split along the dimension that it adds up over. */
static void share_row_scales(dts_builder *builder, const dts_linear *linear, bool backward, int64_t rows) {
    const dts_quantisation *quantisation = &builder->execution->quantisation;
    const bool parts = builder->local.parallel && !linear->whole && linear->experts == 0 &&
                       linear->row_split == !backward; /* forward adds up over k, the input's gradient over n */
    if (parts && quantisation->shared_scales == DTS_SHARED_SCALES_ALL) {
        add_shared_scale(builder, backward, (double)rows);
    }
}

/* Do tensor-parallel ranks hold parts of an operand of this product, which is whole on each of them without sequence
 * parallelism (whole) or is not? */
static bool shares_scale(const dts_builder *builder, const dts_linear *linear, bool whole, bool gathered) {
    const dts_local *l = &builder->local;
    const bool split = l->parallel && !linear->whole && linear->experts == 0 && (!whole || l->sequence);
    switch ((dts_shared_scales)builder->execution->quantisation.shared_scales) {
        case DTS_SHARED_SCALES_ALL:
            return split;
        case DTS_SHARED_SCALES_GATHERED:
            return split && gathered;
        case DTS_SHARED_SCALES_NONE:
            break;
    }
    return false;
}

/* (k, n) weight, whose operands are cast for each product by themselves. */
static dts_passes weight_cast_by_rows(const dts_builder *builder, const dts_linear *linear, double elements) {
    const dts_local *l = &builder->local;
    return (dts_passes){.forward_kernels = calls_of(builder, linear),
                        .forward_B = elements * (l->p + l->q),
                        .backward_kernels = calls_of(builder, linear) * COLUMN_KERNELS,
                        .backward_B = column_cast_B(builder, elements, l->p)};
}

/* (k, n) weight. The tensor on the chain passes by. */
static void add_weight_cast(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const dts_quantisation *quantisation = &builder->execution->quantisation;
    const double elements = products(linear) * (double)linear->n * (double)linear->k;
    const double chain_B = products(linear) * (double)linear->rows * (double)linear->k * linear->input_B;
    const int amax = quantisation->amax_kernel ? 1 : 0;
    dts_passes passes = {0};
    if (quantisation->rows) {
        passes = weight_cast_by_rows(builder, linear, elements);
        passes.input_B = passes.output_B = chain_B;
        share_row_scales(builder, linear, false, linear->n);
        dts_add_memory(builder, "quantise_weight", passes)->casts_weight = true;
        share_row_scales(builder, linear, true, linear->k);
        return;
    }
    passes.input_B = passes.output_B = chain_B;
    if (quantisation->weights != DTS_WEIGHTS_QUANTISED && shares_scale(builder, linear, false, false)) {
        add_shared_scale(builder, false, 1)->once = quantisation->weights == DTS_WEIGHTS_ONCE;
    }
    switch ((dts_quantised_weights)quantisation->weights) {
        case DTS_WEIGHTS_ONCE:
            passes.forward_kernels = cast_kernels(builder, linear);
            passes.forward_B = elements * ((1 + amax) * l->p + quantisation->copies * l->q);
            break;
        case DTS_WEIGHTS_CAST: /* backward: again, in the layout that it reads */
            passes.forward_kernels = cast_kernels(builder, linear);
            passes.forward_B = elements * ((1 + amax) * l->p + l->q);
            passes.backward_kernels = calls_of(builder, linear);
            passes.backward_B = elements * (l->p + l->q);
            break;
        case DTS_WEIGHTS_QUANTISED:
            if (quantisation->copies > 1) {
                passes.backward_kernels = calls_of(builder, linear);
                passes.backward_B = 2 * elements * l->q;
            }
            break;
    }
    if (passes.forward_kernels + passes.backward_kernels > 0) {
        dts_operator *cast = dts_add_memory(builder, "quantise_weight", passes);
        cast->once = quantisation->weights == DTS_WEIGHTS_ONCE;
        cast->casts_weight = true;
    }
}

/* Of inputs and gradients: the product that makes a weight's gradient reads them in another layout. Frozen ones have
 * none. */
static int copies_for_gradients(const dts_builder *builder) {
    return dts_model_adapts(builder->execution) ? 1 : builder->execution->quantisation.copies;
}

/* Is there a product for the weight's gradient that reads narrow factors? */
static bool casts_for_weight_gradient(const dts_builder *builder) {
    return !builder->execution->quantisation.wide_weight_gradient && !dts_model_adapts(builder->execution);
}

bool dts_rescales_gradient(const dts_builder *builder) {
    return builder->local.quantises && builder->execution->quantisation.rows && casts_for_weight_gradient(builder);
}

/* (m, k) input, along its rows, and in backward along its columns. */
static void add_input_cast_by_rows(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const double elements = products(linear) * (double)linear->rows * (double)linear->k;
    const int calls = calls_of(builder, linear);
    const bool columns = casts_for_weight_gradient(builder);
    share_row_scales(builder, linear, false, linear->rows);
    dts_operator *cast =
        dts_add_memory(builder, "quantise_input",
                       (dts_passes){.forward_kernels = calls,
                                    .forward_B = elements * (linear->input_B + l->q),
                                    .backward_kernels = columns ? calls * COLUMN_KERNELS : 0,
                                    .backward_B = columns ? column_cast_B(builder, elements, linear->input_B) : 0,
                                    .input_B = elements * linear->input_B,
                                    .output_B = elements * l->q});
    cast->expert_casts = calls > 1 ? calls : 0;
}

/* Of rows that came narrow, what the product that makes the weight's gradient reads; gradient: of the output's. */
static void add_transpose(dts_builder *builder, const dts_linear *linear, int64_t width, const char *name,
                          bool gradient) {
    const dts_local *l = &builder->local;
    const dts_quantisation *quantisation = &builder->execution->quantisation;
    const double elements = products(linear) * (double)linear->rows * (double)width;
    const int calls = quantisation->copies > 1 ? calls_of(builder, linear) : 0;
    dts_operator *cast = dts_add_memory(
        builder, name,
        (dts_passes){.backward_kernels = calls,
                     .backward_B = calls > 0 ? 2 * elements * l->q * slower(quantisation, quantisation->copies) : 0,
                     .input_B = elements * (gradient ? quantisation->copies * l->q : l->e),
                     .output_B = elements * (gradient ? l->e : l->q)});
    cast->expert_casts = calls > 1 ? calls : 0;
}

void dts_add_token_cast(dts_builder *builder, double tokens, bool gradient) {
    const dts_local *l = &builder->local;
    const double elements = tokens * (double)l->h, cast_B = scaled_cast_B(builder, elements);
    const int kernels = scaled_casts(builder, 1);
    dts_add_memory(builder, gradient ? "quantise_gradient" : "quantise_input",
                   (dts_passes){.forward_kernels = gradient ? 0 : kernels,
                                .forward_B = gradient ? 0 : cast_B,
                                .backward_kernels = gradient ? kernels : 0,
                                .backward_B = gradient ? cast_B : 0,
                                .input_B = elements * (gradient ? l->q : l->e),
                                .output_B = elements * (gradient ? l->e : l->q)});
}

void dts_add_operand_casts(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const dts_quantisation *quantisation = &builder->execution->quantisation;
    add_weight_cast(builder, linear);
    if (linear->shares) {
        return;
    }
    if (quantisation->rows) {
        add_input_cast_by_rows(builder, linear);
        return;
    }
    if (linear->arrives_narrow) {
        add_transpose(builder, linear, linear->k, "quantise_input", false);
        return;
    }
    const bool gathers = l->gathers_quantised && !linear->row_split;
    const double whole = products(linear) * (double)linear->rows * (double)linear->k;
    const double elements = gathers ? whole * (double)l->shard / (double)l->s : whole;
    const bool transposes = gathers && quantisation->copies > 1;
    const int copies = gathers ? 1 : copies_for_gradients(builder), amax = quantisation->amax_kernel ? 1 : 0;
    const double transposed_B = transposes ? 2 * whole * l->q * slower(quantisation, 2) : 0;
    if (shares_scale(builder, linear, !linear->row_split, gathers)) {
        add_shared_scale(builder, false, 1);
    }
    dts_operator *cast = dts_add_memory(
        builder, "quantise_input",
        (dts_passes){.forward_kernels = cast_kernels(builder, linear),
                     .forward_B = elements * (amax * linear->input_B +
                                              (linear->input_B + copies * l->q) * slower(quantisation, copies)),
                     .backward_kernels = transposes ? 1 : 0,
                     .backward_B = transposed_B,
                     .input_B = elements * linear->input_B,
                     .output_B = whole * l->q});
    cast->expert_casts = calls_of(builder, linear) > 1 ? cast_kernels(builder, linear) : 0;
    if (gathers) {
        cast->forward_exchange = DTS_EXCHANGE_ALL_GATHER;
        cast->exchange_B = whole * l->q;
    }
}

/* (m, n) gradient, along its rows and its columns. */
static void add_gradient_cast_by_rows(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const double elements = products(linear) * (double)linear->rows * (double)linear->n;
    const int calls = calls_of(builder, linear);
    const bool columns = casts_for_weight_gradient(builder);
    dts_operator *cast = dts_add_memory(
        builder, "quantise_gradient",
        (dts_passes){.backward_kernels = calls * (columns ? 1 + COLUMN_KERNELS : 1),
                     .backward_B = elements * (l->e + l->q) + (columns ? column_cast_B(builder, elements, l->e) : 0),
                     .input_B = elements * l->q * (columns ? 2 : 1),
                     .output_B = elements * l->e});
    cast->expert_casts = calls > 1 ? calls : 0;
    share_row_scales(builder, linear, true, linear->rows);
}

void dts_add_gradient_cast(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const dts_quantisation *quantisation = &builder->execution->quantisation;
    if (quantisation->rows) {
        add_gradient_cast_by_rows(builder, linear);
        return;
    }
    if (linear->gradient_arrives_narrow) {
        add_transpose(builder, linear, linear->n, "quantise_gradient", true);
        return;
    }
    const bool gathers = l->gathers_quantised && linear->row_split && !linear->partial;
    const double whole = products(linear) * (double)linear->rows * (double)linear->n;
    const double elements = gathers ? whole * (double)l->shard / (double)l->s : whole;
    const bool transposes = gathers && quantisation->copies > 1;
    const int copies = gathers ? 1 : copies_for_gradients(builder), amax = quantisation->amax_kernel ? 1 : 0;
    const double transposed_B = transposes ? 2 * whole * l->q * slower(quantisation, 2) : 0;
    dts_operator *cast = dts_add_memory(
        builder, "quantise_gradient",
        (dts_passes){.backward_kernels = cast_kernels(builder, linear) + (transposes ? 1 : 0),
                     .backward_B = elements * (amax * l->e + (l->e + copies * l->q) * slower(quantisation, copies)) +
                                   transposed_B,
                     .input_B = whole * copies_for_gradients(builder) * l->q,
                     .output_B = elements * l->e});
    cast->expert_casts = calls_of(builder, linear) > 1 ? cast_kernels(builder, linear) : 0;
    if (gathers) {
        cast->backward_exchange = DTS_EXCHANGE_ALL_GATHER;
        cast->exchange_B = whole * l->q;
    }
    if (shares_scale(builder, linear, linear->row_split, gathers)) { /* backward comes to it first */
        add_shared_scale(builder, true, 1);
    }
}

enum { ATTENTION_OPERANDS = 3 };

void dts_add_attention_casts(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double rows = (double)l->b * (double)l->s;
    const double elements = rows * (double)(l->a * l->dq + l->kv * (l->dq + l->dv));
    dts_add_memory(builder, "quantise_attention",
                   (dts_passes){.forward_kernels = scaled_casts(builder, ATTENTION_OPERANDS),
                                .forward_B = scaled_cast_B(builder, elements),
                                .backward_kernels = ATTENTION_OPERANDS,
                                .backward_B = elements * (l->q + l->e),
                                .input_B = elements * l->e,
                                .output_B = elements * l->q})
        ->recomputed_selectively = true;
}

void dts_add_attention_output_casts(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double elements = (double)l->b * (double)l->s * (double)(l->a * l->dv);
    dts_add_memory(builder, "dequantise_attention",
                   (dts_passes){.forward_kernels = 1,
                                .forward_B = elements * (l->q + l->e),
                                .backward_kernels = scaled_casts(builder, 1),
                                .backward_B = scaled_cast_B(builder, elements),
                                .input_B = elements * l->q,
                                .output_B = elements * l->e})
        ->recomputed_selectively = true;
}
