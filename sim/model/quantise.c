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
 * copies is 2 where the matrix units read both factors along K only (fp8 on Hopper [2]) or where blocks of scales run
 * along K (mxfp8, nvfp4 [1]): dx and dW then need transposed copies of W, x and dy, which fused kernels write along.
 * A scale of the current tensor needs its largest value first: one pass more, m·k·e, in three kernels (one clears, one
 * looks, one makes the scale [4]), unless the kernel that makes the
 * tensor finds it on the way (torch.compile) or scales come from earlier steps (delayed scaling) [1]. Writing the
 * transposed copy, a kernel may be slower than its bytes say (transpose_factor).
 *
 * The product keeps x in the narrow format: 1 byte for each of its elements instead of 2. Where sequence parallelism
 * splits x or dy, they are cast first and gathered narrow [3]; the transposed copy is then made of the whole, in
 * backward: 2·m·k·q, for x and for dy.
 *
 * Operands of experts whose products are library calls of their own are cast one by one: the split that Transformer
 * Engine makes of their rows is a loop over the casts, but for delayed scaling [4].
 *
 * [1] NVIDIA, Transformer Engine, "Using FP8 and FP4 with Transformer Engine"; Micikevicius et al. 2022,
 *     arXiv 2209.05433.
 * [2] NVIDIA, cuBLAS documentation, "8-bit floating point data types (FP8) usage": the TN format.
 * [3] pytorch/ao torchao/float8/float8_tensor_parallel.py; Transformer Engine, pytorch/module/layernorm_linear.py.
 * [4] NVIDIA/TransformerEngine transformer_engine/pytorch/csrc/quantizer.cpp, Float8CurrentScalingQuantizer, and
 *     csrc/extensions/cast.cpp, split_quantize. */
#include "model/builder.h"

enum { AMAX_KERNELS = 3 }; /* [4] */

bool dts_model_quantises(const dts_quantisation *quantisation) {
    switch (quantisation->format) {
        case DTS_FP8:
        case DTS_MXFP8:
        case DTS_NVFP4:
            return true;
        case DTS_FP32:
        case DTS_TF32:
        case DTS_FP16:
        case DTS_BF16:
        case DTS_NUMERIC_COUNT:
            break;
    }
    return false;
}

double dts_gathers_again_B(const dts_builder *builder) {
    const dts_local *l = &builder->local;
    const bool trained = !dts_model_adapts(builder->execution); /* adapters keep what was gathered */
    return l->regathers && trained ? l->full_B * (l->quantises ? l->q / l->e : 1) : 0;
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

/* Kernels of an operand's cast and scale. */
static int cast_kernels(const dts_builder *builder, const dts_linear *linear) {
    return calls_of(builder, linear) * (1 + (builder->execution->quantisation.amax_kernel ? AMAX_KERNELS : 0));
}

/* (k, n) weight. The tensor on the chain passes by. */
static void add_weight_cast(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const dts_quantisation *quantisation = &builder->execution->quantisation;
    const double elements = products(linear) * (double)linear->n * (double)linear->k;
    const double chain_B = products(linear) * (double)linear->rows * (double)linear->k * linear->input_B;
    const int amax = quantisation->amax_kernel ? 1 : 0;
    dts_passes passes = {.input_B = chain_B, .output_B = chain_B};
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
        dts_add_memory(builder, "quantise_weight", passes)->once = quantisation->weights == DTS_WEIGHTS_ONCE;
    }
}

/* Of inputs and gradients: the product that makes a weight's gradient reads them in another layout. Frozen ones have
 * none. */
static int copies_for_gradients(const dts_builder *builder) {
    return dts_model_adapts(builder->execution) ? 1 : builder->execution->quantisation.copies;
}

void dts_add_operand_casts(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const dts_quantisation *quantisation = &builder->execution->quantisation;
    add_weight_cast(builder, linear);
    if (linear->shares) {
        return;
    }
    const bool gathers = l->gathers_quantised && !linear->row_split;
    const double whole = products(linear) * (double)linear->rows * (double)linear->k;
    const double elements = gathers ? whole * (double)l->shard / (double)l->s : whole;
    const bool transposes = gathers && quantisation->copies > 1;
    const int copies = gathers ? 1 : copies_for_gradients(builder), amax = quantisation->amax_kernel ? 1 : 0;
    const double transposed_B = transposes ? 2 * whole * l->q * slower(quantisation, 2) : 0;
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

void dts_add_gradient_cast(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const dts_quantisation *quantisation = &builder->execution->quantisation;
    const bool gathers = l->gathers_quantised && linear->row_split;
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
}
