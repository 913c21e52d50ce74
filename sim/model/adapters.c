/* Low-rank adapters beside frozen weights [1], and frozen weights that are stored in fewer bits [2].
 *
 *   y = x·W + s · dropout(x)·A·B      W (k, n) frozen, A (k, r), B (r, n) trained
 *
 * Of W only the gradient of its input is computed, so that x is not kept for it; A keeps its own input: x itself, or
 * with dropout a tensor of its own. Per adapted product (PEFT, eager [3]): dropout, two products of rank r, and two
 * elementwise kernels behind them (the scale s, and the sum with the wide product):
 *
 *   parameters  r·(k + n)        FLOPs forward  2·rows·r·(k + n), twice that backward
 *
 * A product that stands for several projections (query, key and value in one) has an adapter for each target.
 *
 * A narrow weight is written out in the type of the product by a kernel before each use, forward and backward: it reads
 * its stored bytes and writes n·k·e, which live as long as the product. Stored bytes per element:
 *   int8, fp8           1
 *   nf4                 1/2 + 4/64: one fp32 constant per block of 64 [2]
 *   nf4, double         1/2 + 1/64 + 4/(64·256): these in 8 bits, with an fp32 constant per 256 of them [2]
 *
 * Embedding, norms, biases and head are frozen too, in the type of the activations. The backward pass ends before the
 * embedding.
 *
 * [1] Hu et al. 2021, LoRA: Low-Rank Adaptation of Large Language Models, arXiv 2106.09685, section 4.1.
 * [2] Dettmers et al. 2023, QLoRA: Efficient Finetuning of Quantized LLMs, arXiv 2305.14314, section 3.
 * [3] huggingface/peft src/peft/tuners/lora/layer.py. */
#include "model/builder.h"

bool dts_model_adapts(const dts_execution *execution) {
    return execution->adaptation.rank > 0;
}

/* Widths of the projections of a product that get an adapter; returns how many. */
static int targets_of(const dts_builder *builder, const dts_linear *linear, int64_t widths[3]) {
    const dts_local *l = &builder->local;
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
            for (int i = 0; targets == DTS_TARGETS_ALL_LINEAR && i < (linear->role == DTS_LINEAR_GATE_UP ? 2 : 1);
                 i++) {
                widths[count++] = linear->role == DTS_LINEAR_GATE_UP ? l->f : linear->n;
            }
            break;
    }
    return count;
}

bool dts_adapter_keeps_input(const dts_builder *builder, const dts_linear *linear) {
    int64_t widths[3];
    return targets_of(builder, linear, widths) > 0 && !builder->execution->adaptation.dropout;
}

/* fp32 adapters are cast for each use; passes: what passes by on the chain. */
static void add_adapter_casts(dts_builder *builder, double elements, double passes_B) {
    const dts_local *l = &builder->local;
    const double trained_B = builder->execution->adaptation.trained_B;
    if (trained_B > l->e) {
        dts_add_memory(builder, "lora_cast",
                       (dts_passes){.forward_kernels = 2,
                                    .backward_kernels = 2,
                                    .forward_B = elements * (trained_B + l->e),
                                    .backward_B = elements * (trained_B + l->e),
                                    .input_B = passes_B,
                                    .output_B = passes_B});
    }
}

/* The narrow path of one target of width n: x passes by, and the outputs of the targets before (before_B). */
static void add_adapter(dts_builder *builder, const dts_linear *linear, int64_t n, double kept_B, double before_B) {
    const dts_local *l = &builder->local;
    const int64_t rank = builder->execution->adaptation.rank;
    const double rows = (double)linear->rows, x_B = rows * (double)linear->k * l->e;
    const double narrow_B = rows * (double)rank * l->e, wide_B = rows * (double)n * l->e;
    const double parts[] = {(double)linear->k * (double)rank, (double)rank * (double)n};
    add_adapter_casts(builder, parts[0] + parts[1], x_B + before_B);
    const dts_linear products[] = {{.name = "lora_a", .rows = linear->rows, .n = rank, .k = linear->k},
                                   {.name = "lora_b", .rows = linear->rows, .n = n, .k = rank}};
    const double outputs_B[] = {x_B + before_B + narrow_B, x_B + before_B + wide_B};
    const double inputs_B[] = {x_B, x_B + narrow_B};
    const double saved_B[] = {kept_B, narrow_B};
    for (int i = 0; i < 2; i++) {
        dts_operator *o = dts_add_product(builder, &products[i]);
        o->output_B = outputs_B[i];
        o->input_B = inputs_B[i];
        o->saved_B = saved_B[i];
        o->parameters[0] = parts[i];
        o->adapter = true;
    }
}

double dts_add_adapters(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    const dts_adaptation *adaptation = &builder->execution->adaptation;
    int64_t widths[3];
    const int count = targets_of(builder, linear, widths);
    const double elements = (double)linear->rows * (double)linear->k, x_B = elements * l->e;
    double outputs_B = 0, kept_B = linear->saved_B;
    if (count > 0 && adaptation->dropout) {
        const double mask_B = elements * builder->execution->mask_B;
        dts_add_memory(builder, "lora_dropout",
                       (dts_passes){.forward_kernels = 1,
                                    .forward_B = 2 * x_B + mask_B,
                                    .backward_kernels = 1,
                                    .backward_B = 2 * x_B + mask_B,
                                    .input_B = x_B,
                                    .output_B = x_B,
                                    .saved_B = mask_B});
        kept_B = x_B;
    }
    for (int i = 0; i < count; i++) {
        add_adapter(builder, linear, widths[i], kept_B, outputs_B);
        outputs_B += (double)linear->rows * (double)widths[i] * l->e;
        kept_B = 0; /* one input for all */
    }
    if (adaptation->narrow) {
        const double weights = (double)linear->n * (double)linear->k;
        const double chain_B = x_B + outputs_B;
        const int kernels = adaptation->double_quantised ? 2 : 1;
        dts_add_memory(builder, "dequantise_weight",
                       (dts_passes){.forward_kernels = kernels,
                                    .backward_kernels = kernels,
                                    .forward_B = weights * (adaptation->base_B + l->e),
                                    .backward_B = weights * (adaptation->base_B + l->e),
                                    .input_B = chain_B,
                                    .output_B = chain_B});
    }
    return outputs_B;
}

void dts_add_adapted_sums(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    int64_t widths[3];
    const int count = targets_of(builder, linear, widths);
    const double output_B = (double)linear->rows * (double)linear->n * l->e;
    for (int i = 0; i < count; i++) { /* the scale, and the sum; backward: the scale of the gradient */
        const double T = (double)linear->rows * (double)widths[i] * l->e;
        dts_add_memory(builder, "lora_add",
                       (dts_passes){.forward_kernels = 2,
                                    .forward_B = 5 * T,
                                    .backward_kernels = 1,
                                    .backward_B = 2 * T,
                                    .input_B = output_B,
                                    .output_B = output_B});
    }
}

void dts_freeze_part(dts_builder *builder, dts_part part) {
    const dts_local *l = &builder->local;
    const bool layer = part == DTS_PART_LAYER || part == DTS_PART_EXPERT_LAYER;
    for (size_t i = 0; i < builder->count; i++) {
        dts_operator *o = &builder->items[i];
        if (o->adapter) {
            continue;
        }
        const bool product = o->kind == DTS_OPERATOR_GEMM && o->weight;
        const double weight_B = product && layer ? builder->execution->adaptation.base_B : l->e;
        o->frozen = o->parameters[0] + o->parameters[1];
        o->frozen_B = o->parameters[0] * weight_B + o->parameters[1] * l->e;
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
            o->saved_B = 0;
        }
    }
}
