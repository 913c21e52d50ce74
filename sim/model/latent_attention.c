/* Multi-head latent attention: the products that make queries, keys and values from narrow latents.
 *
 * a heads; a query or key head has n + r elements, r of them rotary, a value head v; latents of width p (queries) and
 * c (keys and values) [1, equations 37 to 47]:
 *
 *   c_q = norm(x·W_dq)          (h, p)                 q = c_q·W_uq            (p, a(n + r))
 *   [c_kv, k_r] = x·W_dkv       (h, c + r)             [k_n, v] = norm(c_kv)·W_ukv   (c, a(n + v))
 *   head i: query [q_n, rope(q_r)], key [k_n, rope(k_r)] with one k_r for all heads, value v
 *
 * Without p (DeepSeek-V2-Lite) queries come from x at once. Training materialises keys and values of all heads; the
 * latents save memory in inference only. Bytes kept per position and layer, e per element:
 *   x, both latents before and behind their norms, and query, key and value as attention takes them:
 *   e·(h + 2p + 2c + r + a(2(n + r) + v))
 * Megatron-Core [2] writes query and key by concatenation (query: read and write; key: k_n and one k_r for each head),
 * and copies the value out of its product into a contiguous tensor.
 *
 * Tensor parallelism splits the heads of the up-projections; the down-projections are whole on every rank [2]. With
 * sequence parallelism they work on the rank's positions, and the normed latents are gathered instead of x.
 *
 * [1] DeepSeek-AI 2024, DeepSeek-V2, arXiv 2405.04434, section 2.1 and appendix C.
 * [2] NVIDIA/Megatron-LM megatron/core/transformer/multi_latent_attention.py. */
#include "model/builder.h"

/* RMSNorm over rows of width elements; kept: its input. */
static dts_operator *add_latent_norm(dts_builder *builder, const char *name, double rows, double width) {
    const dts_local *l = &builder->local;
    const double T = rows * width * l->e;
    const bool fused = builder->execution->fuse_norm;
    dts_operator *norm = dts_add_memory(builder, name,
                                        (dts_passes){.forward_kernels = fused ? 1 : 8,
                                                     .forward_B = (fused ? 2 : 18) * T,
                                                     .backward_kernels = fused ? 2 : 14,
                                                     .backward_B = (fused ? 5 : 42) * T,
                                                     .input_B = T,
                                                     .output_B = T,
                                                     .saved_B = T + rows * DTS_FP32_B});
    norm->parameters[0] = width;
    return norm;
}

/* The gradients of the latents are summed over the ranks that hold different heads. */
static void reduce_latent(dts_builder *builder, dts_operator *up, double latent_B) {
    const dts_local *l = &builder->local;
    if (l->parallel) {
        up->backward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
        up->exchange_B = latent_B;
    }
}

static void gather_latent(dts_builder *builder, dts_operator *norm, double latent_B) {
    if (builder->local.sequence) {
        norm->forward_exchange = DTS_EXCHANGE_ALL_GATHER;
        norm->exchange_B = latent_B;
    }
}

/* Queries, with their latent where the model has one. x is kept here. */
static void add_queries(dts_builder *builder, double x_B) {
    const dts_local *l = &builder->local;
    const int64_t rank = builder->model->q_lora_rank, own = l->b * l->shard, all = l->b * l->s;
    dts_linear down = {.name = "query_down",
                       .rows = own,
                       .n = rank,
                       .k = l->h,
                       .input_B = l->r,
                       .saved_B = x_B,
                       .whole = true,
                       .role = DTS_LINEAR_ATTENTION};
    dts_linear up = {
        .name = "query_up", .rows = all, .n = l->a * l->dq, .k = rank, .input_B = l->e, .role = DTS_LINEAR_ATTENTION};
    if (rank == 0) {
        up.name = "query";
        up.k = l->h;
        up.input_B = l->r;
        up.saved_B = x_B;
        reduce_latent(builder, dts_add_linear(builder, &up), l->full_B);
        return;
    }
    const double latent_B = (double)all * (double)rank * l->e;
    dts_add_linear(builder, &down);
    gather_latent(builder, add_latent_norm(builder, "query_latent_norm", (double)own, (double)rank), latent_B);
    up.saved_B = latent_B;
    reduce_latent(builder, dts_add_linear(builder, &up), latent_B);
}

/* Rotary parts are turned and joined with the rest; values are copied out of their product. */
static void add_join(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const double rows = (double)l->b * (double)l->s * (double)l->a * l->e;
    const double query_B = rows * (double)l->dq, value_B = rows * (double)l->dv;
    const double rope_B = rows * (double)builder->model->qk_rope_head_dim;
    const bool fused = builder->execution->fuse_rotary;
    const double turn_B = (fused ? 2 : 10) * rope_B; /* as for ordinary queries, attention.c */
    /* forward: turn the queries' part (the keys' is one head); join query and key, copy the value. Backward: the same
     * passes, and the rotary key's gradient is summed over the heads. */
    const double moved_B = turn_B + 4 * query_B + 2 * value_B;
    dts_add_memory(builder, "join_heads",
                   (dts_passes){.forward_kernels = (fused ? 2 : 20) + 3,
                                .forward_B = moved_B,
                                .backward_kernels = (fused ? 2 : 36) + 4,
                                .backward_B = moved_B + rope_B,
                                .input_B = 2 * query_B + value_B,
                                .output_B = 2 * query_B + value_B,
                                .saved_B = 2 * query_B + value_B});
}

void dts_add_latent_projections(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const int64_t own = l->b * l->shard, all = l->b * l->s;
    const double x_B = (double)own * (double)l->h * l->r;
    /* both branches start from x: their gradients are added */
    dts_add_memory(builder, "latent_input", (dts_passes){.backward_kernels = 1, .backward_B = 3 * x_B});
    add_queries(builder, x_B);
    const int64_t latent = model->kv_lora_rank;
    dts_linear down = {.name = "key_value_down",
                       .rows = own,
                       .n = latent + model->qk_rope_head_dim,
                       .k = l->h,
                       .input_B = l->r,
                       .whole = true,
                       .role = DTS_LINEAR_ATTENTION};
    dts_add_linear(builder, &down);
    const double latent_B = (double)all * (double)(latent + model->qk_rope_head_dim) * l->e;
    gather_latent(builder, add_latent_norm(builder, "key_value_latent_norm", (double)own, (double)latent), latent_B);
    dts_linear up = {.name = "key_value_up",
                     .rows = all,
                     .n = l->a * (model->qk_nope_head_dim + l->dv),
                     .k = latent,
                     .input_B = l->e,
                     .saved_B = latent_B,
                     .role = DTS_LINEAR_ATTENTION};
    reduce_latent(builder, dts_add_linear(builder, &up), latent_B);
    add_join(builder);
}
