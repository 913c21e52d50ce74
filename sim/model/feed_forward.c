/* Feed-forward block of one layer.
 *
 *   plain:  y = gelu(x·W1 + b1)·W2 + b2             keeps x 2sbh, W1's output 8sbh, W2's input 8sbh, mask sbh: 19sbh
 *   gated:  y = (silu(x·Wg) ∘ (x·Wu))·Wd, or gelu   keeps x, gate, silu(gate), up, and Wd's input: 2sbh + 8sbf
 * in bytes, fp16, with f = 4h in the plain form [1]. The fused gated activation keeps gate and up only: 2sbh + 6sbf
 * [2], cast to one byte an element by a kernel of its own and back where memory is short [4]: 2sbh + 4sbf.
 *
 * [1] Korthikanti et al. 2022, arXiv 2205.05198, section 4.1.
 * [2] NVIDIA/Megatron-LM megatron/core/fusions/fused_bias_swiglu.py.
 * [3] The same, megatron/core/fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl.
 * [4] [2], fp8_input_store: input.to(torch.float8_e4m3fn), and back to its type in backward. */
#include "model/builder.h"

/* Product(s) into the inner width. */
static void add_up(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const bool gated = model->gated_ffn, separate = gated && builder->execution->separate_qkv;
    const bool kept = model->parallel_block == DTS_PARALLEL_SHARED_NORM &&
                      !l->keeps_narrow; /* the input, by the products of the attention */
    const bool epilogue = builder->execution->fuse_epilogues && !gated;
    dts_bias bias = !model->bias                                      ? DTS_BIAS_NONE
                    : builder->execution->fuse_bias_gelu && !epilogue ? DTS_BIAS_DEFERRED
                                                                      : DTS_BIAS_OWN;
    dts_linear linear = {.rows = l->b * l->s,
                         .k = l->h,
                         .bias = bias,
                         .input_B = l->r,
                         .unfused = gated,
                         .saved_B = kept ? 0 : l->column_B};
    dts_operator *last; /* to run in backward */
    if (separate) {
        last = dts_add_memory(builder, "mlp_input",
                              (dts_passes){.backward_kernels = 1, .backward_B = 3 * dts_summed_input_B(builder)});
    }
    linear.name = separate ? "mlp_gate" : gated ? "mlp_gate_up" : "mlp_up";
    linear.n = gated && !separate ? 2 * l->f : l->f;
    linear.role = gated && !separate ? DTS_LINEAR_GATE_UP : DTS_LINEAR_FEED_FORWARD;
    dts_operator *product = dts_add_linear(builder, &linear);
    product->gathers_again_B = dts_gathers_again_B(builder);
    product->feed_forward = true;
    if (separate) {
        linear.name = "mlp_up";
        linear.shares = true;
        if (l->gathers_each) {
            dts_add_gather(builder, "up_input");
        }
        if ((!l->gathers_each || l->joins_gathers) &&
            (l->r <= l->e || l->quantises)) { /* one input for both, unless each casts its own copy */
            linear.saved_B = 0;
        }
        dts_add_linear(builder, &linear);
    } else {
        last = product;
    }
    if (l->parallel && !dts_sums_branch_gradients(builder)) {
        last->backward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
        last->exchange_B = l->full_B;
    }
}

/* Both halves cut off, and put side by side again for a fused activation; backward the mask, and their gradients
 * joined [3]. */
static void add_clamp(dts_builder *builder, double T, bool joined) {
    dts_add_memory(builder, "mlp_clamp",
                   (dts_passes){.forward_kernels = joined ? 3 : 2,
                                .forward_B = (joined ? 8 : 4) * T,
                                .backward_kernels = joined ? 3 : 2,
                                .backward_B = (joined ? 10 : 6) * T,
                                .input_B = 2 * T,
                                .output_B = 2 * T,
                                .saved_B = 2 * T});
}

static void add_gated_activation(dts_builder *builder, double elements) {
    const double T = elements * builder->local.e;
    const bool fused = builder->execution->fuse_bias_gelu;
    if (builder->model->activation_clamp > 0 && !(fused && builder->execution->fuse_clamp)) {
        add_clamp(builder, T, fused);
    }
    const bool silu = builder->model->activation_function == DTS_SILU;
    if (fused) {
        const bool bias = builder->model->bias; /* its gradient is summed here */
        const bool narrow = builder->execution->stores_narrow && builder->local.e > 1;
        const double cast_B = narrow ? 2 * T + 2 * elements : 0; /* to one byte each, or back */
        dts_add_memory(builder, silu ? "mlp_swiglu" : "mlp_geglu",
                       (dts_passes){.forward_kernels = narrow ? 2 : 1,
                                    .forward_B = 3 * T + cast_B,
                                    .backward_kernels = (bias ? 2 : 1) + (narrow ? 1 : 0),
                                    .backward_B = (bias ? 7 : 5) * T + cast_B,
                                    .input_B = 2 * T,
                                    .output_B = T,
                                    .saved_B = narrow ? 2 * elements : 2 * T,
                                    .workspace_B = narrow ? 2 * T : 0});
        return;
    }
    /* One product for both halves: their gradients are joined by a copy. */
    const bool joined = !builder->execution->separate_qkv;
    dts_add_memory(builder, silu ? "mlp_silu" : "mlp_gelu",
                   (dts_passes){.forward_kernels = 1,
                                .forward_B = 2 * T,
                                .backward_kernels = joined ? 2 : 1,
                                .backward_B = (joined ? 7 : 3) * T,
                                .input_B = T,
                                .output_B = T,
                                .saved_B = T});
    dts_add_memory(builder, "mlp_product",
                   (dts_passes){.forward_kernels = 1,
                                .forward_B = 3 * T,
                                .backward_kernels = 2,
                                .backward_B = 6 * T,
                                .input_B = 2 * T,
                                .output_B = T,
                                .saved_B = 2 * T});
}

void dts_add_inner_activation(dts_builder *builder, double elements) {
    if (builder->model->gated_ffn) {
        add_gated_activation(builder, elements);
    } else {
        dts_add_gelu(builder, builder->model->activation_function == DTS_RELU ? "mlp_relu" : "mlp_gelu", elements);
    }
}

void dts_add_feed_forward(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const double inner = (double)l->b * (double)l->s * (double)l->f;
    if (model->architecture != DTS_ARCH_BERT && model->parallel_block != DTS_PARALLEL_SHARED_NORM) {
        dts_add_norm(builder, "mlp_norm", l->b * l->shard, true);
    }
    add_up(builder);
    if (model->gated_ffn || !builder->execution->fuse_epilogues) {
        dts_add_inner_activation(builder, inner);
    } else { /* the product stores what it had before, too, for backward */
        const double T = inner * l->e;
        dts_add_memory(builder, "mlp_epilogue", (dts_passes){.input_B = T, .output_B = T, .saved_B = T});
    }
    const bool deferred = dts_defers_output_bias(builder, model->gated_ffn);
    dts_linear down = {.name = "mlp_down",
                       .rows = l->b * l->s,
                       .n = l->h,
                       .k = l->f,
                       .bias = !model->bias ? DTS_BIAS_NONE
                               : deferred   ? DTS_BIAS_DEFERRED
                                            : DTS_BIAS_OWN,
                       .input_B = l->e,
                       .saved_B = inner * l->e,
                       .row_split = true,
                       .unfused = model->gated_ffn,
                       .partial = dts_sums_branches(builder),
                       .role = DTS_LINEAR_FEED_FORWARD};
    dts_add_linear(builder, &down)->feed_forward = true;
    if (model->post_norms) {
        dts_add_norm(builder, "mlp_post_norm", l->b * l->shard, false);
    }
    if (dts_sums_branches(builder)) {
        dts_add_branches_sum(builder, model->bias && deferred);
    } else {
        dts_add_residual(builder, "mlp_bias_dropout_add", "mlp_dropout", "mlp_residual", model->bias && deferred, true);
    }
    if (model->architecture == DTS_ARCH_BERT) {
        dts_add_norm(builder, "mlp_norm", l->b * l->shard, true);
    }
}
