/* Attention and feed-forward block side by side: x + attention(norm(x)) + feed-forward(norm'(x)), with one norm for
 * both (GPT-J, Falcon 7B, Phi 2, Command R) or two (GPT-NeoX, Falcon 40B).
 *
 * Their kernels run one after another all the same, on one stream. What falls away is a norm, where it is shared. Two
 * sums remain, forward and backward: of the branches (or of their gradients, where the shared norm ends), and with x.
 *
 * Tensor parallelism. Both branches end in partial sums. Code that knows it adds these first and reduces them once [1,
 * 2]: bias and dropout work on partial sums then, and x is added behind the reduction, by a kernel of its own:
 *
 *   elements of n = (b, s, h), here and in backward    e bytes, residual stream r bytes, dropout mask m
 *   attention's bias and dropout, fused                2 n·e + m                (none without bias and dropout)
 *   the feed-forward block's and the sum, fused        3 n·e + m                then the exchange of n·e
 *   x                                                  n'·e + 2 n'·r            n' = n / t with sequence parallelism
 *
 * beside 2 (n'·e + 2 n'·r + m) and two exchanges. In backward sequence parallelism gathers the gradient of n·e once
 * instead of twice. The gradients of the branches' input are each reduced by their product [1], or once for both, where
 * the reduction stands at the head of the layer [2] (here: with a shared norm). Code that does not know it is that of
 * two blocks in series: each reduces its own output and adds it to the stream.
 *
 * [1] EleutherAI/gpt-neox megatron/model/transformer.py: ParallelTransformerLayer, gpt_j_residual.
 * [2] kingoflolz/mesh-transformer-jax mesh_transformer/layers.py: TransformerLayerShard, f_psum and g_psum. */
#include "model/builder.h"

bool dts_sums_branches(const dts_builder *builder) {
    /* adapters make whole rows, not partial sums */
    return builder->model->parallel_block != DTS_PARALLEL_NONE && builder->execution->sums_branches &&
           !dts_model_adapts(builder->execution);
}

bool dts_sums_branch_gradients(const dts_builder *builder) {
    return dts_sums_branches(builder) && builder->execution->sums_branch_gradients &&
           builder->model->parallel_block == DTS_PARALLEL_SHARED_NORM;
}

void dts_add_branches_input(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const bool reduces = dts_sums_branch_gradients(builder) && l->parallel;
    const double elements = reduces ? (double)l->b * (double)l->s * (double)l->h : l->stream;
    dts_operator *sum = dts_add_memory(builder, "branches_input",
                                       (dts_passes){.backward_kernels = 1, .backward_B = 3 * elements * l->r});
    if (reduces) {
        sum->backward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
        sum->exchange_B = l->full_B;
    }
}

/* What makes a branch's output of its product's: bias and dropout, and the sum with the branch before. */
static dts_operator *add_end(dts_builder *builder, const char *name, bool bias, bool sum) {
    const dts_local *l = &builder->local;
    const double block_B = l->full_B, mask_B = l->drop ? l->full_B / l->e * l->mask_B : 0;
    return dts_add_memory(builder, name,
                          (dts_passes){.forward_kernels = 1,
                                       .forward_B = (sum ? 3 : 2) * block_B + mask_B,
                                       .backward_kernels = (l->drop ? 1 : 0) + (bias ? 1 : 0),
                                       .backward_B = (l->drop ? 2 * block_B + mask_B : 0) + (bias ? block_B : 0),
                                       .input_B = block_B,
                                       .output_B = block_B,
                                       .saved_B = mask_B});
}

void dts_add_branch(dts_builder *builder, const char *fused_name, const char *dropout_name, bool bias) {
    const bool fused = builder->execution->fuse_bias_dropout_add;
    if (builder->local.drop || (fused && bias)) {
        add_end(builder, fused ? fused_name : dropout_name, fused && bias, false);
    }
}

void dts_add_branches_sum(dts_builder *builder, bool bias) {
    const dts_local *l = &builder->local;
    const bool fused = builder->execution->fuse_bias_dropout_add;
    if (!fused) {
        dts_add_branch(builder, "", "mlp_dropout", false);
    }
    dts_operator *sum =
        fused ? add_end(builder, "mlp_bias_dropout_add", bias, true)
              : dts_add_memory(
                    builder, "branches_sum",
                    (dts_passes){
                        .forward_kernels = 1, .forward_B = 3 * l->full_B, .input_B = l->full_B, .output_B = l->full_B});
    if (l->parallel) {
        sum->forward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
        sum->exchange_B = l->full_B;
    }
    dts_operator *residual = dts_add_stream_sum(builder, "residual");
    if (l->sequence) {
        residual->backward_exchange = DTS_EXCHANGE_ALL_GATHER;
        residual->exchange_B = l->full_B;
    }
}
