/* The two ends of a model: embedding and head.
 *
 * Embedding. Forward gathers rows; backward makes a dense gradient of the whole table (V, h): a fill, and up to 3072
 * indices one scatter kernel, above that a sort of the indices and a segmented sum [1]. Learned positions are added;
 * their gradient sums over the samples into a dense table.
 *
 * Head. L = predicted rows · V elements of logits. The loss in eager mode:
 *
 * - cross-entropy: cast to fp32, log-softmax, negative log-likelihood, three kernels. It keeps the fp32 log-softmax 4L
 * (the cast is freed) and, since the training loop holds the model's output, the logits e·L (unless it drops them
 * first). Backward: fill and scatter of the gradient, log-softmax, cast.
 * - cross-entropy-native: the same without casts, e·L + e·L.
 * - shifted: models with a loss of their own (Hugging Face [5]) copy the logits but for the last positions first, 2e·L;
 *   backward fills and copies, 3e·L. Those that cast all logits before it do so in fp32, and return that.
 * - z-loss: the square of the logarithm of the sum of exponentials is added to either, by torch.logsumexp: maximum,
 *   difference, exponential, sum; its gradient is difference, exponential and product, added to that of the
 *   cross-entropy. The fp32 logits are kept for it [4]. A fused or compiled loss has it without passes of its own.
 *   Where the vocabulary is split each rank has the passes over its part, and maximum and sum are reduced once more.
 * - sum: one reduction that keeps the logits; the gradient is one value spread over L elements, which each of the two
 *   products writes out before it reads it.
 * - vocabulary-parallel (tensor > 1, Megatron-LM's always): cast, maximum, difference, exponential, sum, quotient and
 * small kernels on the targets; three reductions over the group of one fp32 value a row. It keeps the fp32 softmax 4L
 * [2]; the logits are freed. DTensor's makes a new tensor in each step, up to three of 4L beside the one that is kept
 * [3].
 * - of gathered logits: tensor > 1, but each rank gathers all logits and goes on as one that has the whole vocabulary
 *   (DTensor, ColwiseParallel with a replicated output).
 * - fused: one kernel that keeps the logits and later overwrites them with their gradient.
 *
 * A metric is the forward of cross-entropy once more.
 *
 * [1] PyTorch aten/src/ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu.
 * [2] NVIDIA/Megatron-LM megatron/core/tensor_parallel/cross_entropy.py; Korthikanti et al. 2022, arXiv 2205.05198,
 *     section 4.3 (4sbv/t).
 * [3] PyTorch torch/distributed/tensor/parallel/loss.py.
 * [4] PyTorch aten/src/ATen/native/ReduceOps.cpp, logsumexp_out_impl; torch/csrc/autograd/FunctionsManual.cpp,
 *     logsumexp_backward.
 * [5] huggingface/transformers v4.36, modeling_llama.py and modeling_gpt2.py, forward of ...ForCausalLM. */
#include "model/builder.h"

#define INDEX_B 8.0 /* int64 */

enum {
    SCATTER_INDICES = 3072, /* [1]: above it the gradient sorts the indices */
    SCATTER_KERNELS = 2,    /* fill, scatter */
    SORT_KERNELS = 12,      /* fill, radix sort (4), segment starts (3), partial sums (3), write */
    TARGET_KERNELS = 9      /* vocabulary-parallel: bounds, mask, shift, gather, fill, logarithm, difference, … */
};

/* Masking of the indices of other ranks, and of their rows. */
enum { VOCABULARY_PARALLEL_KERNELS = 7 };

static void add_token_embedding(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double rows = (double)l->b * (double)l->s, elements = rows * (double)l->h;
    const bool whole = builder->execution->whole_embedding && !builder->model->tied_embeddings;
    const bool split = l->parallel && !whole;
    const double entries = (double)(whole ? builder->model->vocab : l->V);
    const double table_B = entries * (double)l->h * l->p;
    int backward = rows > SCATTER_INDICES ? SORT_KERNELS : SCATTER_KERNELS;
    double backward_B = table_B + elements * (l->r + l->p);
    if (builder->model->tied_embeddings) { /* adds the gradient of the output projection */
        backward += 1;
        backward_B += 3 * table_B;
    }
    dts_operator *op =
        dts_add_memory(builder, "token_embedding",
                       (dts_passes){.forward_kernels = 1 + (split ? VOCABULARY_PARALLEL_KERNELS : 0),
                                    .forward_B = elements * (l->p + l->r) + (split ? elements * l->r : 0),
                                    .backward_kernels = backward + (split ? 1 : 0),
                                    .backward_B = backward_B + (split ? elements * l->r : 0),
                                    .input_B = rows * INDEX_B,
                                    .output_B = elements * l->r,
                                    .saved_B = rows * INDEX_B});
    op->parameters[0] = entries * (double)l->h;
    if (split) {
        op->forward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
        op->exchange_B = elements * l->r;
    }
}

/* A table added to every position: learned positions, token types. */
static void add_table(dts_builder *builder, const char *name, int64_t rows) {
    const dts_local *l = &builder->local;
    const double T = l->stream * l->r;
    const double table = (double)rows * (double)l->h;
    dts_operator *op = dts_add_memory(builder, name,
                                      (dts_passes){.forward_kernels = 2, /* gather, sum */
                                                   .forward_B = 3 * T + (double)l->shard * (double)l->h * (l->p + l->r),
                                                   .backward_kernels = SCATTER_KERNELS,
                                                   .backward_B = T + table * l->p,
                                                   .input_B = T,
                                                   .output_B = T});
    op->parameters[0] = table;
}

void dts_add_embedding(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    add_token_embedding(builder);
    if (model->max_positions > 0) {
        add_table(builder, "position_embedding", model->max_positions);
    }
    if (model->token_types > 0) {
        add_table(builder, "type_embedding", model->token_types);
    }
    if (model->architecture == DTS_ARCH_BERT || model->embedding_norm) {
        dts_add_norm(builder, "embedding_norm", l->b * l->shard, true);
    }
    if (l->drop) {
        dts_add_dropout(builder, "embedding_dropout", l->stream * l->r, l->stream * l->mask_B);
    }
    if (l->sequence) { /* before the table's gradient */
        dts_operator *last = &builder->items[builder->count - 1];
        last->backward_exchange = DTS_EXCHANGE_ALL_GATHER;
        last->exchange_B = (double)l->b * (double)l->s * (double)l->h * l->r;
    }
}

/* Forward of cross-entropy in elements of c B: cast where they are wider, log-softmax, negative log-likelihood. */
static dts_passes cross_entropy_forward(double logits, double stored_B, double c) {
    const double cast_B = c > stored_B ? logits * (stored_B + c) : 0;
    return (dts_passes){.forward_kernels = 2 + (c > stored_B ? 1 : 0),
                        .forward_B = 2 * c * logits + cast_B,
                        .input_B = logits * stored_B};
}

/* Has each rank of a tensor-parallel group the logits of its own part of the vocabulary only? */
static bool splits_loss(const dts_builder *builder) {
    return builder->local.parallel && !builder->execution->gathers_logits;
}

/* Logits of one rank, as metrics and loss read them. */
static double read_logits(const dts_builder *builder) {
    const dts_local *l = &builder->local;
    return (double)l->predicted * (double)(splits_loss(builder) ? l->V : builder->model->vocab);
}

/* On top of cross-entropy in elements of c B; what it reads is there: casts is whether only as a cast that is kept. */
static void add_z_loss(dts_passes *passes, double logits, double c, bool casts) {
    const int of_rows = 6; /* logarithm, sum, square, mask, mean, scale: of one element a row */
    passes->forward_kernels += 4 + of_rows;
    passes->forward_B += 6 * c * logits;
    passes->backward_kernels += 4 + of_rows;
    passes->backward_B += 9 * c * logits;
    passes->saved_B += casts ? c * logits : 0;
    passes->workspace_B += c * logits;
}

/* Do the logits of all but the last positions go to the loss as a copy? */
static bool shifts_logits(const dts_builder *builder) {
    const dts_execution *x = builder->execution;
    return x->shifts_logits && builder->model->architecture != DTS_ARCH_BERT && !splits_loss(builder) &&
           !x->loss_of_split;
}

/* Forward the copy of stored_B an element, or fp32; backward a fill and a copy into it. Of what is returned in fp32 the
 * training loop holds that. */
static void add_shift(dts_passes *passes, const dts_execution *x, double logits, double stored_B) {
    const double copied_B = x->widens_logits ? DTS_FP32_B : stored_B;
    passes->forward_kernels += 1;
    passes->forward_B += 2 * copied_B * logits;
    passes->backward_kernels += 2;
    passes->backward_B += 3 * copied_B * logits;
    passes->saved_B += x->frees_logits ? 0 : (copied_B - stored_B) * logits;
}

static dts_passes loss_passes(const dts_builder *builder, double logits) {
    const dts_local *l = &builder->local;
    const double L_B = logits * l->e;
    dts_passes passes = {.input_B = L_B};
    if (builder->model->loss == DTS_LOSS_SUM) {
        passes.forward_kernels = 1;
        passes.forward_B = L_B;
        passes.backward_kernels = 2;
        passes.backward_B = 2 * L_B;
        passes.saved_B = L_B;
        return passes;
    }
    if (builder->execution->fuse_loss) {
        passes.forward_kernels = 1;
        passes.forward_B = L_B;
        passes.backward_kernels = 1;
        passes.backward_B = 2 * L_B;
        passes.saved_B = L_B;
        return passes;
    }
    const bool native = builder->model->loss == DTS_LOSS_CROSS_ENTROPY_NATIVE && !builder->execution->autocast;
    const double c = native ? l->e : DTS_FP32_B; /* B of a computed element */
    const bool casts = c > l->e;
    const double cast_B = casts ? logits * (l->e + c) : 0;
    if (splits_loss(builder) || builder->execution->loss_of_split) {
        /* maximum c, difference 2c, exponential 2c, sum c, quotient 2c; backward: scaling 2c */
        passes.forward_kernels = 5 + (casts ? 1 : 0) + TARGET_KERNELS;
        passes.forward_B = 8 * c * logits + cast_B;
        passes.backward_kernels = 3 + (casts ? 1 : 0);
        passes.backward_B = 2 * c * logits + cast_B;
        passes.saved_B = c * logits;
        if (!builder->execution->loss_in_place) { /* backward: fill c, exponential 2c, sum 3c, product 3c */
            passes.backward_kernels += 3;
            passes.backward_B += 6 * c * logits;
            passes.workspace_B = 3 * c * logits;
        }
    } else {
        passes = cross_entropy_forward(logits, l->e, c);
        passes.backward_kernels = 3 + (casts ? 1 : 0);
        passes.backward_B = 4 * c * logits + cast_B; /* fill c; log-softmax reads gradient and output, writes */
        passes.saved_B = (builder->execution->frees_logits ? 0 : L_B) + c * logits;
        passes.workspace_B = (casts ? 2 : 1) * c * logits; /* backward: gradients of the log-softmax's two sides */
    }
    if (shifts_logits(builder)) {
        add_shift(&passes, builder->execution, logits, l->e);
    }
    if (builder->execution->z_loss) {
        add_z_loss(&passes, logits, c, casts);
    }
    return passes;
}

static void add_loss(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double rows = (double)l->predicted;
    dts_operator *loss = dts_add_memory(builder, "loss", loss_passes(builder, read_logits(builder)));
    loss->output_B = DTS_FP32_B;
    loss->slow = builder->execution->fuse_loss ? DTS_SLOW_LOSS : DTS_SLOW_NOT;
    if (splits_loss(builder)) {
        loss->forward_exchange = DTS_EXCHANGE_ALL_REDUCE;
        const int of_z_loss = builder->execution->z_loss && !builder->execution->fuse_loss ? 2 : 0;
        loss->exchange_B = (3 + of_z_loss) * rows * DTS_FP32_B;
    }
}

/* What is logged: made after backward of logits that the training loop still holds, so that its own tensors are no part
 * of the peak. It stands before the loss, which is the last operator, and hands the logits on. */
static void add_metrics(dts_builder *builder) {
    const dts_local *l = &builder->local;
    dts_passes passes = cross_entropy_forward(read_logits(builder), l->e, DTS_FP32_B);
    passes.forward_kernels *= builder->execution->loss_metrics;
    passes.forward_B *= builder->execution->loss_metrics;
    passes.output_B = passes.input_B;
    if (passes.forward_kernels > 0) {
        dts_add_memory(builder, "loss_metrics", passes);
    }
}

/* Forward the whole logits arrive, backward a copy takes this rank's part of their gradient. */
static void gather_logits(const dts_builder *builder, dts_operator *product) {
    const dts_local *l = &builder->local;
    product->forward_exchange = DTS_EXCHANGE_ALL_GATHER;
    product->exchange_B = product->output_B = read_logits(builder) * l->e;
    product->backward_kernels++;
    product->backward_B += 2 * (double)l->predicted * (double)l->V * l->e;
}

/* Logits and loss, with BERT's transform before. */
static void add_language_model(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const double rows_B = (double)l->predicted * (double)l->h * l->e;
    if (l->predicted < l->b * l->s) { /* picks the predicted rows; backward fills and scatters */
        dts_add_memory(builder, "predicted_rows",
                       (dts_passes){.forward_kernels = 1,
                                    .forward_B = 2 * rows_B,
                                    .backward_kernels = 2,
                                    .backward_B = 2 * rows_B + l->full_B,
                                    .input_B = l->full_B,
                                    .output_B = rows_B});
    }
    if (model->lm_transform) {
        dts_linear transform = {.name = "transform",
                                .rows = l->predicted,
                                .n = l->h,
                                .k = l->h,
                                .bias = DTS_BIAS_OWN,
                                .input_B = l->r,
                                .saved_B = rows_B};
        dts_add_linear(builder, &transform);
        dts_add_gelu(builder, "transform_gelu", (double)l->predicted * (double)l->h);
        dts_add_norm(builder, "transform_norm", l->predicted, false);
    }
    dts_linear logits = {.name = "logits",
                         .rows = l->predicted,
                         .n = l->V,
                         .k = l->h,
                         .bias = model->lm_transform || model->head_bias ? DTS_BIAS_OWN : DTS_BIAS_NONE,
                         .unfused = !model->lm_transform,
                         .input_B = l->r,
                         .saved_B = l->regathers ? rows_B * (double)l->shard / (double)l->s : rows_B,
                         .borrowed = model->tied_embeddings};
    const bool gathers = l->parallel && builder->execution->gathers_logits;
    dts_operator *reducer = gathers ? dts_add_memory(builder, "logits_input", (dts_passes){0}) : NULL;
    dts_operator *product = dts_add_linear(builder, &logits);
    if (l->parallel) {
        reducer = gathers ? reducer : product;
        reducer->backward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
        reducer->exchange_B = rows_B;
        product->gathers_again_B = l->regathers ? rows_B : 0;
    }
    if (gathers) {
        gather_logits(builder, product);
    }
    add_metrics(builder);
    add_loss(builder);
}

/* The first position of each sample → dense, tanh → a classifier of a few labels and its loss. */
static void add_pooler(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double rows_B = (double)l->b * (double)l->h * l->e;
    const double whole_B = l->full_B / l->e * l->r;
    dts_add_memory(builder, "first_position",
                   (dts_passes){.forward_kernels = 1,
                                .forward_B = 2 * rows_B,
                                .backward_kernels = 2, /* fill, copy */
                                .backward_B = whole_B + 2 * rows_B,
                                .input_B = whole_B,
                                .output_B = rows_B});
    dts_linear pooler = {
        .name = "pooler", .rows = l->b, .n = l->h, .k = l->h, .bias = DTS_BIAS_OWN, .input_B = l->r, .saved_B = rows_B};
    dts_add_linear(builder, &pooler);
    dts_add_memory(builder, "pooler_tanh",
                   (dts_passes){.forward_kernels = 1,
                                .forward_B = 2 * rows_B,
                                .backward_kernels = 1,
                                .backward_B = 3 * rows_B,
                                .input_B = rows_B,
                                .output_B = rows_B,
                                .saved_B = rows_B});
    dts_linear classifier = {.name = "classifier",
                             .rows = l->b,
                             .n = builder->model->labels,
                             .k = l->h,
                             .bias = DTS_BIAS_OWN,
                             .unfused = true,
                             .input_B = l->e};
    dts_add_linear(builder, &classifier); /* its input is the tanh's output, kept there */
    const double classes = (double)l->b * (double)builder->model->labels * DTS_FP32_B;
    dts_add_memory(builder, "classifier_loss",
                   (dts_passes){.forward_kernels = 2,
                                .forward_B = 2 * classes,
                                .backward_kernels = 3,
                                .backward_B = 4 * classes,
                                .input_B = classes,
                                .output_B = DTS_FP32_B,
                                .saved_B = classes});
}

void dts_add_head(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    if (model->architecture != DTS_ARCH_BERT) {
        dts_add_norm(builder, "final_norm", l->b * l->shard, true);
    }
    if (model->pooler) {
        add_pooler(builder);
    }
    if (model->head != DTS_HEAD_CLASSIFICATION) {
        add_language_model(builder);
    }
}
