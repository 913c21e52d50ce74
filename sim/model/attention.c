/* Self-attention of one layer.
 *
 * Per layer, h wide, a heads of width d, on b samples of s positions (S keys): query, key and value products; scores
 * Q·K' (b·a products s×d×S), scale, mask, softmax and dropout over (b, a, s, S), times V, output product, dropout,
 * residual sum. Bytes kept in fp16 with one-byte masks [1]: input 2sbh, Q and K 4sbh, V 2sbh, softmax 2as²b, its
 * dropout mask as²b, the dropped-out softmax 2as²b, the output product's input 2sbh, the mask sbh: 11sbh + 5as²b.
 * Selective recomputation [1] drops the 5as²b.
 *
 * Eager mode also [2]: copies Q, K, V into contiguous matrices for the batched products (batch, heads, positions)
 * and the result back; computes scale, mask comparison, masked fill (a clone and a fill) and softmax as kernels of
 * their own (GPT: five; BERT adds a mask instead: three; Llama also). Megatron's fused softmax kernel stands for its
 * sequence-first layout as well, in which the batched products read Q, K and V in place. It takes half precision and at
 * most so many keys, queries in fours, and b·a in multiples of the rows of one thread block: 8 up to 128 keys, 4 beyond
 * (without a causal mask the queries) [7]. What it does not take is cast to fp32, scaled, masked in place, softmax,
 * cast back.
 * Flash attention keeps Q, K, V, its output (counted at the output product) and the log-sum-exp of every row (fp32)
 * [3]. Autocast computes softmax and its dropout in fp32, and casts for the next product.
 *
 * A window of attention leaves out keys in fused attention (hardware/attention_cost.c); the batched products of the
 * other form compute all of them, and the mask they get anyway hides more.
 *
 * Code that keeps positions before samples and attends samples first [9] copies the joined queries, keys and values,
 * joins keys and values again, which is two more copies of them, and copies the output where there is more than one
 * sample: the output product keeps that copy, fused attention the output. Backward the gradients of keys and values are
 * joined, and that of all three is brought back.
 *
 * Keys and values shared by groups of query heads are copied to full width for the batched products [4]; flash
 * attention reads them as they are, unless the model's code copies them all the same [5].
 *
 * [1] Korthikanti et al. 2022, arXiv 2205.05198, section 4.1 and equation 2; selective recomputation: section 5.
 * [2] karpathy/minGPT mingpt/model.py; huggingface/transformers modeling_bert.py, BertSelfAttention; PyTorch
 *     aten/src/ATen/native/{LinearAlgebra.cpp matmul, TensorAdvancedIndexing.cpp masked_fill}.
 * [3] Dao 2023, FlashAttention-2, arXiv 2307.08691, algorithms 1 and 2.
 * [4] huggingface/transformers modeling_llama.py: repeat_kv, apply_rotary_pos_emb, eager attention.
 * [5] pytorch/torchtitan torchtitan/models/llama/model.py: apply_rotary_emb multiplies complex64, which torch.compile
 *     leaves to eager kernels (pytorch/pytorch issues 105267 and 125718); repeat_kv before the fused attention.
 * [6] huggingface/transformers pytorch_utils.py, softmax_backward_data: before PyTorch 1.11 the gradient takes the
 * input of softmax, since then only its type. Autograd keeps what the gradient takes, here as cast to the output's
 * type.
 * [7] NVIDIA/Megatron-LM megatron/model/fused_softmax.py: is_kernel_available, forward_torch_softmax.
 * [8] foundation-model-stack/foundation-model-stack fms/modules/positions.py: RotaryEmbedding.adjusted_qk.
 * [9] huggingface/nanotron src/nanotron/models/llama.py: CausalSelfAttention. */
#include "model/builder.h"

/* Are keys and values copied once for each query head? */
static bool repeats_keys(const dts_builder *builder) {
    const dts_local *l = &builder->local;
    return l->kv < l->a && (!builder->execution->flash_attention || builder->execution->repeats_keys);
}

/* Are queries, too, copied into the layout of the attention kernels? */
static bool copies_queries(const dts_builder *builder) {
    return !builder->execution->flash_attention && !builder->execution->fuse_softmax;
}

/* Do copies bring query, key and value into the layout of the attention kernels? */
static bool copies_layout(const dts_builder *builder) {
    return copies_queries(builder) || repeats_keys(builder);
}

/* Bytes of queries, or of keys, of this rank. */
static double heads_B(const dts_builder *builder, int64_t heads) {
    const dts_local *l = &builder->local;
    return (double)l->b * (double)l->s * (double)(heads * l->d) * l->e;
}

/* … as attention keeps them. */
static double kept_B(const dts_builder *builder, int64_t heads) {
    return heads_B(builder, heads) * builder->local.attention_q / builder->local.e;
}

static double kept_keys_B(const dts_builder *builder) {
    const dts_local *l = &builder->local;
    if (builder->execution->flash_attention) {
        return kept_B(builder, repeats_keys(builder) ? l->a : l->kv);
    }
    return kept_B(builder, l->a) * (double)l->S / (double)l->s; /* of all positions, one for each query head */
}

/* Query, key and value products. Their outputs are kept, here or as copies in add_layout. */
static void add_qkv(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const bool separate = builder->execution->separate_qkv;
    const bool casts = l->r > l->e, keeps = !copies_layout(builder);
    const double query_B = keeps ? kept_B(builder, l->a) : 0, key_B = keeps ? kept_keys_B(builder) : 0;
    const bool few = dts_has_few_kv_heads(builder);
    const dts_kept_heads kept = {.query_B = query_B, .key_B = key_B};
    if (few && builder->execution->whole_few_kv) {
        dts_add_whole_heads(builder, kept);
        return;
    }
    const dts_bias bias = builder->model->qkv_bias ? DTS_BIAS_OWN : DTS_BIAS_NONE;
    dts_linear linear = {.rows = l->b * l->s, .k = l->h, .bias = bias, .input_B = l->r};
    dts_operator *last; /* to run in backward */
    if (separate && !few) {
        /* The three input gradients are added up: two sums of three passes, in the type of the input, or one of four.
         */
        const bool fused = builder->execution->fuse_sums;
        last = dts_add_memory(builder, "qkv_input",
                              (dts_passes){.backward_kernels = fused ? 1 : 2,
                                           .backward_B = (fused ? 4 : 6) * dts_summed_input_B(builder)});
        const char *const names[] = {"query", "key", "value"};
        const int64_t heads[] = {l->a, l->kv, l->kv};
        for (int i = 0; i < 3; i++) {
            linear.name = names[i];
            linear.n = heads[i] * l->d;
            /* one input for all, unless each casts or gathers its own */
            const bool own = (casts && !l->quantises) || (l->gathers_each && !l->joins_gathers);
            linear.saved_B = i == 0 || own ? l->column_B : 0;
            linear.kept_B = i == 0 ? query_B : key_B;
            linear.shares = i > 0;
            if (i > 0 && l->gathers_each) {
                dts_add_gather(builder, i == 1 ? "key_input" : "value_input");
            }
            linear.role = i == 1 ? DTS_LINEAR_ATTENTION : DTS_LINEAR_QUERY_OR_VALUE;
            dts_add_linear(builder, &linear);
        }
    } else {
        linear.name = "qkv";
        linear.role = DTS_LINEAR_QUERY_KEY_VALUE;
        linear.n = dts_joined_columns(builder);
        linear.saved_B = l->column_B;
        linear.kept_B = few ? 0 : query_B + 2 * key_B;
        if (!few && keeps && builder->execution->keeps_joined_qkv && builder->model->rotary &&
            !l->narrow_attention) { /* not rotated yet */
            linear.kept_B += query_B + kept_B(builder, l->kv);
        }
        last = dts_add_linear(builder, &linear);
        last->gathers_again_B = dts_gathers_again_B(builder);
    }
    if (l->parallel && !dts_sums_branch_gradients(builder)) {
        last->backward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
        last->exchange_B = l->full_B;
    }
    if (few) {
        dts_add_gathered_heads(builder, kept);
    }
}

/* Norms of each head of queries and keys (Qwen 3): one fused kernel each, or the eight of an eager RMSNorm. */
static void add_qk_norm(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double heads[] = {(double)l->a, (double)l->kv};
    const char *const names[] = {"query_norm", "key_norm"};
    const bool fused = builder->execution->fuse_norm;
    for (int i = 0; i < 2; i++) {
        const double elements = (double)l->b * (double)l->s * heads[i] * (double)l->d;
        dts_passes passes = {.forward_kernels = fused ? 1 : 8,
                             .forward_B = elements * (fused ? 2 * l->e : 28 + 4 * l->e),
                             .backward_kernels = fused ? 2 : 14,
                             .backward_B = elements * (fused ? 5 * l->e : 68 + 8 * l->e),
                             .input_B = elements * l->e,
                             .output_B = elements * l->e,
                             .saved_B = elements * (fused ? l->e : DTS_FP32_B + l->e)};
        if (dts_model_adapts(builder->execution)) {
            dts_freeze_norm(&passes, elements * l->e, !fused);
        }
        dts_add_memory(builder, names[i], passes)->parameters[0] = (double)l->d;
    }
}

/* Each number of a pair times a column of its 2 × 2 matrix, and the two products added up by a reduction; in half,
 * casts around that. Backward is the same the other way: the gradient times the matrix, added up over its rows [8]. */
static void add_matrix_rotary(dts_builder *builder, double elements) {
    const double T = elements * builder->local.e;
    const double casts_B = builder->local.e < DTS_FP32_B ? 2 * (T + elements * DTS_FP32_B) : 0;
    const double sums_B = 3 * elements * DTS_FP32_B;
    const dts_passes passes = {.forward_kernels = casts_B > 0 ? 8 : 4,
                               .forward_B = casts_B + 3 * elements * DTS_FP32_B + sums_B,
                               .backward_kernels = casts_B > 0 ? 8 : 4,
                               .backward_B = casts_B + 3 * elements * DTS_FP32_B + sums_B,
                               .input_B = T,
                               .output_B = T,
                               .workspace_B = 3 * elements * DTS_FP32_B};
    dts_add_memory(builder, "rotary", passes)->pair_sums_B = sums_B;
}

static void add_rotary(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double elements = (double)l->b * (double)l->s * (double)((l->a + l->kv) * l->d);
    const double T = elements * l->e;
    if (builder->execution->matrix_rotary) {
        add_matrix_rotary(builder, elements);
        return;
    }
    const bool complex = builder->execution->complex_rotary;
    const bool fused = builder->execution->fuse_rotary;
    /* Of query and of key, forward: x·cos 2, rotate (negate a half 1, concatenate 2), ·sin 2, sum 3. Backward: two
     * products 4, negation 1, two slice gradients (fill and copy) 4, two sums 6. */
    dts_passes passes = {.forward_kernels = fused ? 2 : 10,
                         .forward_B = (fused ? 2 : 10) * T,
                         .backward_kernels = fused ? 2 : 18,
                         .backward_B = (fused ? 2 : 15) * T,
                         .input_B = T,
                         .output_B = T,
                         .workspace_B = fused ? 0 : 2 * T};
    if (complex) { /* in both directions: to fp32, a product of complex numbers, and back [5] */
        const bool casts = l->e < DTS_FP32_B;
        passes.forward_kernels = passes.backward_kernels = casts ? 6 : 2;
        passes.forward_B = passes.backward_B =
            2 * elements * DTS_FP32_B + (casts ? 2 * (T + elements * DTS_FP32_B) : 0);
        passes.workspace_B = 2 * elements * DTS_FP32_B;
    }
    dts_add_memory(builder, "rotary", passes);
}

/* Brings query, key and value into the layout of the attention kernels, where that takes copies; repeating keys and
 * values for each query head is a copy too, whose gradient sums over the group. */
static void add_layout(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double query_B = heads_B(builder, l->a), kv_B = heads_B(builder, l->kv);
    dts_passes passes = {.input_B = query_B + 2 * kv_B, .output_B = query_B + 2 * kv_B};
    if (copies_layout(builder)) {
        bool queries = copies_queries(builder);
        passes.output_B = 3 * query_B;
        passes.saved_B = kept_B(builder, l->a) + 2 * kept_keys_B(builder);
        passes.forward_kernels = queries ? 3 : 2;
        passes.forward_B = (queries ? 2 * query_B : 0) + 2 * (kv_B + query_B);
        passes.backward_kernels = passes.forward_kernels;
        passes.backward_B = passes.forward_B;
    }
    if (!builder->execution->separate_qkv) { /* the three gradients are joined */
        passes.backward_kernels += 1;
        passes.backward_B += 2 * (query_B + 2 * kv_B);
    }
    if (builder->execution->positions_first && builder->execution->flash_attention) { /* [9] */
        passes.forward_kernels += 3;
        passes.forward_B += 2 * (query_B + 2 * kv_B) + 4 * 2 * kv_B;
        passes.backward_kernels += 2;
        passes.backward_B += 2 * (query_B + 2 * kv_B) + 2 * 2 * kv_B;
    }
    if (passes.backward_kernels > 0) {
        dts_add_memory(builder, "qkv_layout", passes);
    }
}

/* Does the fused kernel of [7] take this shape? */
static bool takes_softmax(const dts_builder *builder) {
    const dts_local *l = &builder->local;
    const int64_t limit = builder->execution->softmax_keys, block = l->S <= 128 ? 8 : 4;
    const int64_t blocked = builder->model->causal ? l->b * l->a : l->s;
    return limit == 0 ||
           (l->e < DTS_FP32_B && l->S <= limit && l->s % 4 == 0 && l->b * l->a % 4 == 0 && blocked % block == 0);
}

/* What Megatron-LM does instead, masking in place: the copy in fp32 is kept, and where no dropout follows the cast
 * output, which the next product reads. Gradients are masked in a new tensor. */
static dts_passes softmax_in_turn(const dts_builder *builder, double elements) {
    const dts_local *l = &builder->local;
    const bool casts = l->e < DTS_FP32_B;
    const double X = elements * l->e, P = elements * DTS_FP32_B;
    return (dts_passes){.forward_kernels = casts ? 5 : 3,
                        .forward_B = 6 * P + (casts ? 2 * (X + P) : 0),
                        .backward_kernels = casts ? 6 : 4, /* softmax; clone, fill; scale */
                        .backward_B = 9 * P + (casts ? 2 * (X + P) : 0),
                        .input_B = X,
                        .output_B = X,
                        .saved_B = P + (casts && !l->drop ? X : 0),
                        .workspace_B = P};
}

/* X bytes of scores become P bytes of softmax, in one kernel or, eager, in those of [2]. */
static dts_passes softmax_passes(const dts_builder *builder, double X, double P) {
    dts_passes passes = {.input_B = X, .output_B = P};
    passes.forward_kernels = 1; /* softmax */
    passes.forward_B = X + P;
    passes.backward_kernels = 1; /* reads gradient and output, writes the gradient of the scores */
    passes.backward_B = 2 * P + X;
    if (!builder->execution->fuse_softmax) {
        bool fills = builder->model->architecture == DTS_ARCH_GPT;
        passes.forward_kernels += fills ? 4 : 2; /* scale; comparison, clone, fill — or the sum with the mask */
        passes.forward_B += (fills ? 6 : 4) * X;
        passes.backward_kernels += fills ? 3 : 1; /* scale; clone, fill */
        passes.backward_B += (fills ? 6 : 2) * X;
        passes.workspace_B = X;
    }
    /* Without dropout the next product's factor is this very tensor, unless it is cast. */
    passes.saved_B = builder->execution->keeps_softmax_input && !builder->execution->fuse_softmax ? 2 * P : P; /* [6] */
    return passes;
}

/* Scale, mask and softmax over (b, a, s, S). */
static void add_softmax(dts_builder *builder, double elements) {
    const dts_local *l = &builder->local;
    const bool fused = builder->execution->fuse_softmax, in_turn = fused && !takes_softmax(builder);
    const bool upcasts = builder->model->architecture == DTS_ARCH_LLAMA && !fused;
    const bool casts = !in_turn && (builder->execution->autocast || upcasts) && l->e < DTS_FP32_B;
    const double X = elements * l->e, P = casts ? elements * DTS_FP32_B : X;
    const dts_passes passes = in_turn ? softmax_in_turn(builder, elements) : softmax_passes(builder, X, P);
    dts_operator *softmax = dts_add_memory(builder, "attention_softmax", passes);
    softmax->recomputed_selectively = true;
    softmax->parameters[0] = builder->model->attention_sinks ? (double)l->a : 0;
    const double mask_B = l->drop ? elements * l->mask_B : 0;
    if (l->drop || casts) {
        double cast_B = casts ? P + X : 0, drop_B = l->drop ? 2 * P + mask_B : 0;
        int kernels = (l->drop ? 1 : 0) + (casts ? 1 : 0);
        dts_operator *dropout = dts_add_memory(builder, "attention_dropout",
                                               (dts_passes){.forward_kernels = kernels,
                                                            .forward_B = drop_B + cast_B,
                                                            .backward_kernels = kernels,
                                                            .backward_B = drop_B + cast_B,
                                                            .input_B = P,
                                                            .output_B = X,
                                                            .saved_B = mask_B + X,
                                                            .workspace_B = l->drop && casts ? P : 0});
        dropout->recomputed_selectively = true;
        dropout->dropout_B = drop_B;
    }
}

static void add_product(dts_builder *builder, const char *name, int64_t n, int64_t k) {
    const dts_local *l = &builder->local;
    double heads = (double)l->b * (double)l->a * l->e;
    dts_operator *product = dts_add_memory(builder, name,
                                           (dts_passes){.forward_kernels = 1,
                                                        .backward_kernels = 2,
                                                        .input_B = heads * (double)l->s * (double)k,
                                                        .output_B = heads * (double)l->s * (double)n});
    product->kind = DTS_OPERATOR_GEMM;
    product->batch = l->b * l->a;
    product->m = l->s;
    product->n = n;
    product->k = k;
    product->recomputed_selectively = true;
}

/* Heads side by side again, and positions where the output product wants them. */
static void add_merge(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double T = (double)l->b * (double)l->s * (double)(l->a * l->dv) * l->e;
    dts_add_memory(builder, "attention_merge",
                   (dts_passes){.forward_kernels = 1,
                                .forward_B = 2 * T,
                                .backward_kernels = 1,
                                .backward_B = 2 * T,
                                .input_B = T,
                                .output_B = T});
}

static void add_materialised(dts_builder *builder) {
    const dts_local *l = &builder->local;
    add_product(builder, "attention_scores", l->S, l->dq);
    add_softmax(builder, (double)l->b * (double)l->a * (double)l->s * (double)l->S);
    add_product(builder, "attention_context", l->dv, l->S);
    add_merge(builder);
}

static void add_flash(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double rows = (double)l->b * (double)l->s;
    const int64_t kv = repeats_keys(builder) ? l->a : l->kv;
    dts_operator *attention =
        dts_add_memory(builder, "flash_attention",
                       (dts_passes){.forward_kernels = 1,
                                    .backward_kernels = 3, /* row sums of dO·O, the gradient, the type of dQ */
                                    .input_B = rows * (double)(l->a * l->dq + kv * (l->dq + l->dv)) * l->e,
                                    .output_B = rows * (double)(l->a * l->dv) * l->e,
                                    .saved_B = rows * (double)l->a * DTS_FP32_B,
                                    .workspace_B = rows * (double)(l->a * l->dq) * DTS_FP32_B /* dQ in fp32 */});
    attention->kind = DTS_OPERATOR_ATTENTION;
    attention->batch = l->b;
    attention->heads = l->a;
    attention->kv_heads = kv;
    attention->head_dim = (l->dq + l->dv) / 2; /* the same FLOPs and bytes where they differ */
    attention->query_length = l->s;
    attention->key_length = l->S;
    attention->causal = builder->model->causal;
    attention->window = l->window;
    attention->chunked = l->window > 0 && builder->model->window_chunked;
    attention->narrow = l->narrow_attention;
    attention->recomputed_selectively = true;
    attention->parameters[0] = builder->model->attention_sinks ? (double)l->a : 0;
}

void dts_add_attention(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const bool flash = builder->execution->flash_attention;
    const bool sums = dts_sums_branches(builder), shared = model->parallel_block == DTS_PARALLEL_SHARED_NORM;
    if (sums && !shared) {
        dts_add_branches_input(builder);
    }
    if (model->architecture != DTS_ARCH_BERT) {
        /* latents are gathered instead of their input, if both branches have one */
        dts_add_norm(builder, "attention_norm", l->b * l->shard, model->kv_lora_rank == 0 || model->q_lora_rank == 0);
    }
    if (sums && shared) {
        dts_add_branches_input(builder);
    }
    if (model->kv_lora_rank > 0) {
        dts_add_latent_projections(builder);
    } else {
        add_qkv(builder);
        if (model->qk_norm) {
            add_qk_norm(builder);
        }
        if (model->rotary) {
            add_rotary(builder);
        }
        add_layout(builder);
    }
    const bool merges = flash && builder->execution->positions_first && l->b > 1;
    if (l->narrow_attention) {
        dts_add_attention_casts(builder);
    }
    if (flash) {
        add_flash(builder);
        if (l->narrow_attention) {
            dts_add_attention_output_casts(builder);
        }
        if (merges) {
            add_merge(builder);
        }
    } else {
        add_materialised(builder);
    }
    const bool deferred = dts_defers_output_bias(builder, false);
    const double output_B = (double)l->b * (double)l->s * (double)(l->a * l->dv) * l->e;
    const bool bias = model->bias && !model->unbiased_projection;
    dts_linear output = {.name = "attention_output",
                         .rows = l->b * l->s,
                         .n = l->h,
                         .k = l->a * l->dv,
                         .bias = !bias      ? DTS_BIAS_NONE
                                 : deferred ? DTS_BIAS_DEFERRED
                                            : DTS_BIAS_OWN,
                         .input_B = l->e,
                         .saved_B = output_B,
                         .row_split = true,
                         .partial = sums,
                         .role = DTS_LINEAR_ATTENTION};
    /* fused attention needs its output for its own backward, as it was before the cast, or where no product keeps it */
    const bool unkept = dts_model_adapts(builder->execution) && !dts_adapter_keeps_input(builder, &output);
    output.kept_B = flash && (l->keeps_narrow || unkept || merges) ? output_B * l->attention_q / l->e : 0;
    dts_add_linear(builder, &output);
    if (model->post_norms) {
        dts_add_norm(builder, "attention_post_norm", l->b * l->shard, false);
    }
    if (sums) {
        dts_add_branch(builder, "attention_bias_dropout", "attention_output_dropout", bias && deferred);
    } else {
        dts_add_residual(builder, "attention_bias_dropout_add", "attention_output_dropout", "attention_residual",
                         bias && deferred, true);
    }
    if (model->architecture == DTS_ARCH_BERT) {
        dts_add_norm(builder, "attention_norm", l->b * l->shard, true);
    }
}
