/* Operators that attention, feed-forward block, embedding and head are made of, as PyTorch's eager mode runs them.
 *
 * Bytes. An elementwise kernel over n elements of e bytes moves n·e for every tensor it reads or writes. T below is one
 * tensor. Saved tensors are those that autograd keeps [1]; a tensor kept by two operators is counted at the one that
 * consumes it as the input of a product, or else at its first user.
 *
 *   linear      y = x·W      saves x; backward dx = dy·W', dW = dy'·x: two products; db = sum of dy: one kernel, T
 *   LayerNorm                saves x, mean and 1/σ (fp32 each, per row); backward two kernels: dx, and scale and shift
 *   RMSNorm, eager           x cast to fp32, square, mean, +ε, 1/√, product, cast back, scale: eight kernels (six in
 *                            fp32); saves the fp32 x and the normalised x [2]
 *   GELU (erf)               one kernel, saves its input
 *   GELU (tanh, in Python)   x³, ·, +, ·, tanh, +1, ½x, ·: eight kernels, 18 T; saves x, tanh, ½x and 1+tanh; backward
 *                            eleven kernels, 28 T [3]. Autocast computes x³ and all that follows in fp32 [4]
 *   dropout                  one kernel each way, saves a mask
 *   residual sum             saves nothing; backward adds the gradients of the two branches: one kernel, 3 T
 *   autocast cast            reads one type, writes the other; weights and biases are cast once per forward pass (the
 *                            cache of autocast) and kept for the products of backward, activations at each use;
 * backward casts the gradients back [4]
 *
 * Exchanges of tensor and sequence parallelism are those of [5]: after a row-split product forward, and after the
 * backward of a column-split product, an all-reduce of (s, b, h); with sequence parallelism a reduce-scatter, and
 * all-gathers before the column-split products forward and the row-split ones backward.
 *
 * [1] PyTorch tools/autograd/derivatives.yaml; aten/src/ATen/native/cuda/{layer_norm_kernel.cu,Dropout.cu}.
 * [2] huggingface/transformers models/llama/modeling_llama.py, LlamaRMSNorm.
 * [3] huggingface/transformers activations.py, NewGELUActivation. minGPT has the same form since mid-2022; before
 *     that, and in the data-parallel benchmark built on it (mrshenli/ptd_benchmark@ecd0d25 models.py), it is
 * torch.nn.GELU. [4] PyTorch documentation, "Autocast Op Reference"; aten/src/ATen/autocast_mode.cpp. [5] Korthikanti
 * et al. 2022, Reducing Activation Recomputation in Large Transformer Models, arXiv 2205.05198, section 4. [6]
 * Dao-AILab/flash-attention flash_attn/{modules/mha.py,modules/mlp.py,models/gpt.py,models/bert.py}, fused_bias_fc. */
#include "model/builder.h"

/* Under autocast: weight and bias fp32 → weight type; the input too when it comes in fp32. Backward casts the
 * gradients the other way. */
static void add_casts(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    double groups = linear->experts > 0 ? (double)linear->experts : 1;
    double weights = groups * (double)linear->n * ((double)linear->k + (linear->bias != DTS_BIAS_NONE ? 1 : 0));
    double inputs = linear->input_B > l->e ? groups * (double)linear->rows * (double)linear->k : 0;
    int kernels = 1 + (linear->bias != DTS_BIAS_NONE ? 1 : 0) + (inputs > 0 ? 1 : 0);
    double copies_B = weights * dts_numeric_bytes(builder->execution->weight);
    double bytes = weights * (l->p + dts_numeric_bytes(builder->execution->weight)) + inputs * (linear->input_B + l->e);
    dts_add_memory(builder, "cast",
                   (dts_passes){.forward_kernels = kernels,
                                .backward_kernels = kernels,
                                .forward_B = bytes,
                                .backward_B = bytes,
                                .input_B = inputs * linear->input_B,
                                .output_B = inputs * l->e,
                                .saved_B = copies_B})
        ->weight_copy_B = copies_B;
}

bool dts_defers_output_bias(const dts_builder *builder, bool unfused) {
    const bool joined = builder->execution->fuse_epilogues && !builder->local.parallel && !unfused;
    return builder->execution->fuse_bias_dropout_add && !joined;
}

/* A bias behind an exchange, or in the gradient of one, works on this rank's rows. A frozen one has no gradient. With
 * epilogues the product adds it, and that of the weight's gradient sums its own, where FlashAttention has FusedDense:
 * attention, plain feed-forward block, BERT's transform, its logits and pooler; GatedMlp, the head of GPT and
 * classifiers are nn.Linear there [6]. */
static void add_own_bias(dts_builder *builder, const dts_linear *linear, double output_B) {
    const dts_local *l = &builder->local;
    const bool reduced = linear->row_split && !linear->partial && linear->experts == 0;
    double rows_B = reduced && l->sequence ? output_B * (double)l->shard / (double)l->s : output_B;
    if (builder->execution->fuse_epilogues && !linear->unfused && !(reduced && l->parallel)) {
        return;
    }
    bool separate = builder->execution->separate_bias || (reduced && l->parallel);
    bool trained = !dts_model_adapts(builder->execution);
    dts_add_memory(builder, "bias",
                   (dts_passes){.forward_kernels = separate ? 1 : 0,
                                .forward_B = separate ? 2 * rows_B : 0,
                                .backward_kernels = trained ? 1 : 0,
                                .backward_B = trained ? rows_B : 0,
                                .input_B = rows_B,
                                .output_B = rows_B});
}

/* Casts for a frozen product, which adapters' outputs pass by, and backward the gradient that the adapters need. */
static void add_casts_beside(dts_builder *builder, const dts_linear *linear, double deltas_B) {
    const double groups = linear->experts > 0 ? (double)linear->experts : 1;
    const double gradient_B = groups * (double)linear->rows * (double)linear->n * builder->local.e;
    size_t i = builder->count;
    for (dts_add_operand_casts(builder, linear); i < builder->count; i++) {
        builder->items[i].output_B += deltas_B;
        builder->items[i].input_B += deltas_B > 0 ? gradient_B : 0;
    }
}

dts_operator *dts_add_linear(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const bool frozen = dts_model_adapts(builder->execution);
    double deltas_B = 0; /* outputs of adapters that wait for the product */
    if (frozen) {
        if (l->layer) {
            deltas_B = dts_add_adapters(builder, linear);
        } else {
            dts_add_base_cast(builder, linear, (double)linear->rows * (double)linear->k * l->e);
        }
        if (l->quantises) {
            add_casts_beside(builder, linear, deltas_B);
        }
    } else if (l->quantises) {
        dts_add_operand_casts(builder, linear);
    } else if (builder->execution->autocast) {
        add_casts(builder, linear);
    }
    double groups = linear->experts > 0 ? (double)linear->experts : 1;
    dts_operator *product = dts_add_product(builder, linear);
    double output_B = product->output_B;
    product->saved_B = (frozen ? 0 : linear->saved_B * (l->keeps_narrow ? l->q / l->e : 1)) + linear->kept_B;
    product->others_B = linear->kept_B;
    product->quantised = l->quantises;
    if (dts_rescales_gradient(builder)) {
        product->backward_kernels++;
        product->backward_B += 2 * groups * (double)linear->n * (double)linear->k * l->e;
    }
    if (deltas_B > 0) { /* forward they pass by, backward the gradient that their products need does */
        product->output_B += deltas_B;
        product->input_B += output_B;
    }
    if (frozen && l->layer && builder->execution->adaptation.narrow) {
        product->workspace_B = dts_written_weight_B(builder, linear);
    }
    if (!linear->borrowed) {
        product->parameters[0] = groups * (double)linear->n * (double)linear->k;
    }
    product->parameters[1] = linear->bias != DTS_BIAS_NONE ? groups * (double)linear->n : 0;
    if (linear->row_split && !linear->partial && linear->experts == 0 &&
        l->parallel) { /* of experts: behind the sort (experts.c) */
        product->forward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
        product->exchange_B = output_B;
    }
    if (l->quantises) {
        dts_add_gradient_cast(builder, linear);
    }
    if (deltas_B > 0) {
        dts_add_adapted_sums(builder, linear);
    }
    if (linear->bias == DTS_BIAS_OWN) {
        add_own_bias(builder, linear, output_B);
    }
    return product;
}

void dts_freeze_norm(dts_passes *passes, double input_B, bool eager) {
    passes->backward_kernels -= eager ? 2 : 1;
    passes->backward_B -= input_B * (eager ? 4 : 2);
    passes->saved_B -= eager ? input_B : 0; /* the normalised tensor, which only the scale's gradient needs */
}

/* (rows, hidden) in residual type → activations. LayerNorm keeps the input's type under autocast: fp32. */
void dts_add_norm(dts_builder *builder, const char *name, int64_t rows, bool gathers) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    double elements = (double)rows * (double)l->h;
    double statistics_B = (double)rows * DTS_FP32_B;
    dts_passes passes = {.input_B = elements * l->r, .output_B = elements * l->r};
    if (!model->rms_norm || builder->execution->fuse_norm) {
        passes.forward_kernels = 1;
        passes.forward_B = 2 * elements * l->r;
        passes.backward_kernels = 2;
        passes.backward_B = 5 * elements * l->r; /* dx: reads dy and x, writes dx; scale and shift: reads dy and x */
        passes.saved_B = elements * l->r + (model->rms_norm ? 1 : 2) * statistics_B;
        if (builder->execution->widens_norm && l->r < DTS_FP32_B) {
            /* forward: cast r+4, norm 4+r; backward: dx r+8, scale and shift r+4, cast 4+r */
            passes.forward_kernels = 2;
            passes.forward_B = elements * (8 + 2 * l->r);
            passes.backward_kernels = 3;
            passes.backward_B = elements * (16 + 3 * l->r);
            passes.saved_B += elements * (DTS_FP32_B - l->r);
            passes.workspace_B = elements * DTS_FP32_B;
        }
    } else {
        /* forward: cast r+4, square 8, mean 4, product 8, cast 4+r, scale 2r (in fp32 8); the rest is per row.
         * backward: dw product 3r and sum r, dn = dy·w 2r, cast r+4, dn/σ 8, its row sum 12+4, square (three kernels)
         * 24, sum of both 12, cast 4+r; two per-row kernels. */
        bool casts = l->r < DTS_FP32_B;
        passes.forward_kernels = casts ? 8 : 6;
        passes.forward_B = elements * (casts ? 28 + 4 * l->r : 28);
        passes.backward_kernels = casts ? 14 : 12;
        passes.backward_B = elements * (casts ? 68 + 8 * l->r : 84);
        passes.saved_B = elements * (DTS_FP32_B + l->r) + statistics_B;
        passes.workspace_B = elements * DTS_FP32_B;
    }
    if (dts_model_adapts(builder->execution)) {
        dts_freeze_norm(&passes, elements * l->r, model->rms_norm && !builder->execution->fuse_norm);
    }
    dts_operator *norm = dts_add_memory(builder, name, passes);
    norm->parameters[0] = (double)l->h;
    norm->parameters[1] = model->rms_norm ? 0 : (double)l->h;
    norm->slow = model->rms_norm || builder->execution->persistent_norm ? DTS_SLOW_NOT : DTS_SLOW_NORM;
    if (gathers && l->sequence && !l->gathers_quantised) {
        norm->forward_exchange = DTS_EXCHANGE_ALL_GATHER;
        norm->exchange_B = l->full_B;
    }
}

double dts_summed_input_B(const dts_builder *builder) {
    const dts_local *l = &builder->local;
    return (l->gathers_each ? l->stream : (double)l->b * (double)l->s * (double)l->h) * l->r;
}

void dts_add_gather(dts_builder *builder, const char *name) {
    dts_operator *gather = dts_add_memory(builder, name, (dts_passes){0});
    gather->forward_exchange = builder->local.joins_gathers ? DTS_EXCHANGE_NONE : DTS_EXCHANGE_ALL_GATHER;
    gather->backward_exchange = DTS_EXCHANGE_REDUCE_SCATTER;
    gather->exchange_B = builder->local.full_B;
}

/* 0.5·x·(1 + tanh(√(2/π)·(x + 0.0447·x³))) written out, under autocast: x³ is computed in fp32, and with it all that
 * follows [4]. Forward: cast 4+e, power 8, products 8 and 8, sum 8+e, tanh 8, sum 8, x/2 2e, product 8+e, cast 4+e.
 * Backward: casts e+4, 4+e, 4+e and 4+e, products 12 and 8+e, x/2 2e, tanh 12, products 8 and 8, power 28, two sums 6e.
 */
static void add_widened_gelu(dts_builder *builder, const char *name, double elements) {
    const double e = builder->local.e;
    dts_add_memory(builder, name,
                   (dts_passes){.forward_kernels = 10,
                                .forward_B = elements * (64 + 6 * e),
                                .backward_kernels = 15,
                                .backward_B = elements * (92 + 13 * e),
                                .input_B = elements * e,
                                .output_B = elements * e,
                                .saved_B = elements * (3 * DTS_FP32_B + e), /* x, tanh and its sum in fp32; x/2 */
                                .workspace_B = elements * 2 * DTS_FP32_B});
}

void dts_add_gelu(dts_builder *builder, const char *name, double elements) {
    double T = elements * builder->local.e;
    bool fused = builder->execution->fuse_bias_gelu;
    bool python = builder->model->activation_function == DTS_GELU_NEW && !fused;
    if (python && builder->execution->autocast && builder->local.e < DTS_FP32_B) {
        add_widened_gelu(builder, name, elements);
        return;
    }
    bool bias = fused && builder->model->bias; /* its gradient is summed here */
    dts_add_memory(builder, name,
                   (dts_passes){.forward_kernels = python ? 8 : 1,
                                .forward_B = (python ? 18 : 2) * T,
                                .backward_kernels = (python ? 11 : 1) + (bias ? 1 : 0),
                                .backward_B = ((python ? 28 : 3) + (bias ? 1 : 0)) * T,
                                .input_B = T,
                                .output_B = T,
                                .saved_B = (python ? 4 : 1) * T,
                                .workspace_B = python ? T : 0});
}

/* Fused: one forward kernel reads the block's output and the stream, and writes the stream and the mask. */
static void add_fused_residual(dts_builder *builder, const char *name, bool bias, bool split) {
    const dts_local *l = &builder->local;
    double mask_B = l->drop ? l->stream * l->mask_B : 0;
    double block_B = l->stream * l->e, sum_B = l->stream * l->r;
    int kernels = 1 + (l->drop ? 1 : 0) + (bias ? 1 : 0);
    dts_operator *op = dts_add_memory(
        builder, name,
        (dts_passes){.forward_kernels = 1,
                     .forward_B = block_B + 2 * sum_B + mask_B,
                     .backward_kernels = kernels,
                     .backward_B = 3 * sum_B + (l->drop ? 2 * block_B + mask_B : 0) + (bias ? block_B : 0),
                     .input_B = block_B,
                     .output_B = sum_B,
                     .saved_B = mask_B});
    if (split && l->sequence && !l->gathers_quantised) {
        op->backward_exchange = DTS_EXCHANGE_ALL_GATHER;
        op->exchange_B = l->full_B;
    }
}

dts_operator *dts_add_stream_sum(dts_builder *builder, const char *name) {
    const dts_local *l = &builder->local;
    const double block_B = l->stream * l->e, sum_B = l->stream * l->r;
    const bool casts = l->r > l->e; /* the block's gradient leaves the fp32 stream */
    return dts_add_memory(builder, name,
                          (dts_passes){.forward_kernels = 1,
                                       .forward_B = block_B + 2 * sum_B,
                                       .backward_kernels = casts ? 2 : 1,
                                       .backward_B = 3 * sum_B + (casts ? sum_B + block_B : 0),
                                       .input_B = block_B,
                                       .output_B = sum_B});
}

void dts_add_residual(dts_builder *builder, const char *fused_name, const char *dropout_name, const char *sum_name,
                      bool bias, bool split) {
    const dts_local *l = &builder->local;
    if (builder->execution->fuse_bias_dropout_add) {
        add_fused_residual(builder, fused_name, bias, split);
        return;
    }
    dts_operator *first = NULL;
    if (l->drop) {
        first = dts_add_dropout(builder, dropout_name, l->stream * l->e, l->stream * l->mask_B);
    }
    dts_operator *sum = dts_add_stream_sum(builder, sum_name);
    if (split && l->sequence && !l->gathers_quantised) {
        if (first == NULL) {
            first = sum;
        }
        first->backward_exchange = DTS_EXCHANGE_ALL_GATHER;
        first->exchange_B = l->full_B;
    }
}
