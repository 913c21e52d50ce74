/* More tensor-parallel ranks than heads of keys and values: several ranks read the same keys and values. t ranks, a
 * heads of queries and g < t of keys and values in the whole model, of width d; (b, s) positions on a rank.
 *
 * Gathered [1]. The joined product of queries, keys and values is cut evenly, below a head: no weight is there twice.
 * Its output is gathered among all t ranks, and each takes its group and of that its queries:
 *
 *   columns of the product        (a + 2g)·d / t
 *   gathered and scattered        F = b·s·(a + 2g)·d·e forward, the same backward
 *   of one group                  G = F / g, of that queries Q = G·a / (a + 2g), of one rank Q·g / t
 *   copies forward                2F            what a gather along the last dimension puts together
 *   copies backward               Q + 2Q·g/t    gradients of all queries of the group: filled, and this rank's copied
 *                                 F + 2G        of all groups: the same
 *                                 2F            cut for the ranks
 *
 * Values are a view of what was gathered, and so are queries and keys unless they are rotated: as with the joined
 * product of one rank, it stays whole where the stack keeps that (keeps_joined_qkv), or where nothing is rotated.
 *
 * Whole [2]. Queries have a product of their own; that of keys and values is on every rank, with all g heads. Each rank
 * has the part of their gradient that its queries make, so the gradient of keys and values is summed over the ranks,
 * instead of that of their input. With sequence parallelism a rank makes keys and values of its own positions, which
 * are gathered, and their gradient scattered:
 *
 *   weights on every rank         h·2g·d
 *   exchange                      b·s·2g·d·e: all-reduce in backward; or all-gather forward, reduce-scatter backward
 *
 * and the gradients of the input of both products are added up: one kernel, 3 T. Then the weights' gradients are sums
 * over a rank's own positions, which are added up once a step, as those of norms are: neither is simulated.
 *
 * [1] NVIDIA/Megatron-LM core 0.16 (0.15 refuses it: modelscope/ms-swift issue 8219), megatron/core/transformer/
 *     attention.py, SelfAttention.get_query_key_value_tensors; tensor_parallel/mappings.py,
 *     _AllGatherFromTensorParallelRegion.
 * [2] bigcode-project/Megatron-LM megatron/model/transformer.py, ParallelAttention with attention_head_type multiquery,
 *     of StarCoder; with g > 1 in a descendant for Falcon 40B. */
#include "model/builder.h"

enum { BACKWARD_COPIES = 5 }; /* a fill and a copy twice, and the cut */

bool dts_has_few_kv_heads(const dts_builder *builder) {
    return dts_model_kv_heads(builder->model) < builder->execution->tensor;
}

/* Columns of queries, keys and values of the whole model. */
static int64_t all_columns(const dts_builder *builder) {
    return (builder->model->heads + 2 * dts_model_kv_heads(builder->model)) * builder->local.d;
}

int64_t dts_joined_columns(const dts_builder *builder) {
    const dts_local *l = &builder->local;
    return dts_has_few_kv_heads(builder) ? all_columns(builder) / builder->execution->tensor
                                         : (l->a + 2 * l->kv) * l->d;
}

static double bytes_of(const dts_builder *builder, int64_t columns) {
    const dts_local *l = &builder->local;
    return (double)l->b * (double)l->s * (double)columns * l->e;
}

/* What the ranks exchange of a tensor that all of them need. */
static dts_operator *add_ranks_exchange(dts_builder *builder, const char *name, double bytes) {
    dts_operator *between = dts_add_memory(builder, name, (dts_passes){0});
    between->exchange_B = bytes;
    between->plain_exchange = true;
    return between;
}

void dts_add_gathered_heads(dts_builder *builder, dts_kept_heads kept) {
    const int64_t groups = dts_model_kv_heads(builder->model);
    const double all_B = bytes_of(builder, all_columns(builder)), group_B = all_B / (double)groups;
    const double queries_B = bytes_of(builder, builder->model->heads * builder->local.d) / (double)groups;
    const double rank_B = bytes_of(builder, builder->local.a * builder->local.d);
    const bool keeps = kept.query_B > 0, rotates = builder->model->rotary;
    const bool keeps_all =
        keeps && (!rotates || builder->execution->keeps_joined_qkv) && !builder->local.narrow_attention;
    const double rotated_B = rotates ? kept.query_B + kept.key_B : 0;
    dts_operator *gather = add_ranks_exchange(builder, "qkv_gather", all_B);
    gather->forward_exchange = DTS_EXCHANGE_ALL_GATHER;
    gather->backward_exchange = DTS_EXCHANGE_REDUCE_SCATTER;
    dts_add_memory(builder, "qkv_of_rank",
                   (dts_passes){.forward_kernels = 1,
                                .forward_B = 2 * all_B,
                                .backward_kernels = BACKWARD_COPIES,
                                .backward_B = queries_B + 2 * rank_B + all_B + 2 * group_B + 2 * all_B,
                                .input_B = all_B,
                                .output_B = all_B,
                                .saved_B = keeps_all ? all_B + rotated_B : kept.query_B + 2 * kept.key_B});
}

void dts_add_whole_heads(dts_builder *builder, dts_kept_heads kept) {
    const dts_local *l = &builder->local;
    const int64_t columns = 2 * dts_model_kv_heads(builder->model) * l->d;
    const dts_bias bias = builder->model->qkv_bias ? DTS_BIAS_OWN : DTS_BIAS_NONE;
    dts_add_memory(builder, "qkv_input", (dts_passes){.backward_kernels = 1, .backward_B = 3 * l->stream * l->r});
    dts_operator *query = dts_add_linear(builder, &(dts_linear){.name = "query",
                                                                .rows = l->b * l->s,
                                                                .n = l->a * l->d,
                                                                .k = l->h,
                                                                .bias = bias,
                                                                .input_B = l->r,
                                                                .saved_B = l->column_B,
                                                                .kept_B = kept.query_B,
                                                                .role = DTS_LINEAR_QUERY_OR_VALUE});
    query->gathers_again_B = dts_gathers_again_B(builder);
    if (!dts_sums_branch_gradients(builder)) {
        query->backward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
        query->exchange_B = l->full_B;
    }
    /* its input is that of the queries' product, unless it is cast for it, or the shard that was gathered for it */
    const bool own = (l->sequence && !l->regathers) || (l->r > l->e && !l->quantises);
    dts_add_linear(builder, &(dts_linear){.name = "key_value",
                                          .rows = l->b * l->shard,
                                          .n = columns,
                                          .k = l->h,
                                          .bias = bias,
                                          .input_B = l->r,
                                          .saved_B = own ? l->stream * l->e : 0,
                                          .kept_B = 2 * kept.key_B * (double)dts_model_kv_heads(builder->model),
                                          .whole = true,
                                          .shares = true,
                                          .role = DTS_LINEAR_ATTENTION});
    dts_operator *between = add_ranks_exchange(builder, "key_value_ranks", bytes_of(builder, columns));
    between->forward_exchange = l->sequence ? DTS_EXCHANGE_ALL_GATHER : DTS_EXCHANGE_NONE;
    between->backward_exchange = l->sequence ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE;
}
