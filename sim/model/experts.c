/* Feed-forward block of one layer as a mixture of experts.
 *
 * T tokens of this rank, E experts, k per token, inner width f, x expert-parallel ranks that hold E/x experts each:
 *
 *   scores (T, E) = x·Wg; each token goes to its k best experts, y = Σ gate · expert(x)                          [1, 2]
 *   dropless     the rank sends k·T rows and receives N = k·T · imbalance, m = ⌈N/(E/x)⌉ to each of its experts
 *   capacity c   each rank sends C = ⌈k·T/E · c⌉ rows to every expert, padded or cut: N = E·C, m = x·C            [2,
 * 3]
 *
 * imbalance is what the busiest rank receives over the mean: everyone waits for it at the way back.
 *
 *   route     product (T, h)·(h, E), softmax, top-k, masks, losses (balance; z [8]): small kernels over (T, E)
 *   permute   rows sorted by expert (T·h read, N·h written), then an all-to-all of N·h elements
 *   sort      the rows of x ranks become one block per expert (N·h twice), where a rank holds several experts
 *   experts   grouped products (N, h)·(h, f) and (N, f)·(f, h); the gate weighs the activation in between [4]
 *   sort back, all-to-all of N·h, unpermute: sums k rows a token (N·h read, T·h written)
 *   shared    an ordinary feed-forward block for all tokens, added to the sum [5]; where the stack has it so, its first
 *             product and activation run while tokens are on their way to the experts, and the second while they come
 *             back [10], forward and backward: they wait for no exchange of tokens, and no exchange waits for them
 *
 * Backward runs the same all-to-alls the other way round. Bytes kept: x (T·h) at the router, the sorted rows (N·h), the
 * inputs of the activation and of the second product as in the dense block with N rows, and the maps.
 * A dispatcher on the device [6] sends a token once to each rank that has experts of its: to d of the x ranks, each
 * with e = E/x of the E experts, with even routing
 *
 *   d = x · (1 − Π (E − e − i) / (E − i)), i = 0 … k−1;   D = N · d/k rows cross instead of N                     (1)
 *
 * Nothing is sorted before: its kernel reads the tokens where they are, rows are copied for each of the rank's experts
 * behind it (D·h read, N·h written), summed before the way back (N·h read, D·h written), and the kernel that brings
 * them home sums the d rows of a token.
 *
 * Where tokens are dispatched in the products' narrow format [9], x (T·h) is cast before it is sorted and sent, and the
 * gradient of the weighted sum (T·h) before it goes out backward: q bytes an element cross instead of e, and what the
 * products of gradients read otherwise is made of the rows that came (quantise.c). The way home stays wide.
 *
 * Dropless routing without grouped kernels needs token counts on the host (sizes of the products and of the
 * all-to-all): the host waits for the router, or, where the device dispatches, for the rows that have come, whose
 * counts the products' sizes still are [7]. DeepEP makes room for the rows that come: its dispatch exchanges counts
 * first, and the host spins until they are there [11], whatever the products are. Backward has the counts of forward,
 * recomputation asks again. Padded sizes are known beforehand.
 *
 * Tensor parallelism: each rank routes its own positions, and the shared expert is split, gathers and scatters as the
 * dense block does. Experts are whole on each rank, or split among t of them (expert tensor parallelism [4]) as a dense
 * block is, by the columns of the first product and the rows of the second. These t ranks then gather each other's rows
 * behind the all-to-all, so that each computes t·N rows of width f/t; a reduce-scatter brings the sums back before the
 * all-to-all home. Backward does the same the other way round.
 *
 * [1] Shazeer et al. 2017, arXiv 1701.06538.            [2] Lepikhin et al. 2020, GShard, arXiv 2006.16668.
 * [3] Fedus, Zoph, Shazeer 2021, Switch Transformers, arXiv 2101.03961, section 2.2.
 * [4] NVIDIA/Megatron-LM megatron/core/transformer/moe/{router,moe_utils,token_dispatcher,experts}.py (0.12 and later).
 * [5] DeepSeek-AI 2024, DeepSeekMoE, arXiv 2401.06066, section 3.2.
 * [6] HybridEP: deepseek-ai/DeepEP Hybrid-EP_Implementation.md and deep_ep/hybrid_ep_buffer.py.
 * [7] [4], TEGroupedMLP: forward (tokens_per_expert.tolist()) and _apply_bias.
 * [8] [4], moe_utils.py, z_loss_func; Zoph et al. 2022, ST-MoE, arXiv 2202.08906, equation 5.
 * [9] DeepSeek-AI 2024, DeepSeek-V3, arXiv 2412.19437, section 3.3.3, low-precision communication.
 * [10] [4], shared_experts.py and MoEAlltoAllTokenDispatcher: moe_shared_expert_overlap.
 * [11] deepseek-ai/DeepEP csrc/deep_ep.cpp, intranode_dispatch and internode_dispatch: a loop over moe_recv_counter
 *      unless cached (the handle of forward) or num_worst_tokens; Megatron-LM
 * megatron/core/transformer/moe/fused_a2a.py gives no num_worst_tokens, and its counts are on the host then. */
#include <math.h>

#include "model/builder.h"

enum {
    Z_LOSS_KERNELS = 12, /* [8]: log-sum-exp (9: its maximum's infinities, four passes, sum), square, mean, scale */
    Z_LOSS_BACKWARD_KERNELS = 9,
    ROUTE_KERNELS = 16,         /* [4]: cast, softmax, top-k (two), gates and map (six), auxiliary loss (six) */
    CAPACITY_KERNELS = 6,       /* [4]: top-k over tokens (two), mask, scatter, two products */
    ROUTE_BACKWARD_KERNELS = 9, /* gates, softmax, cast; auxiliary loss (six) */
    SORT_KERNELS = 6            /* permutation without a fused kernel: sort of the map (five) and a gather */
};

/* Bytes moved per score by the router's kernels: passes over fp32 scores and one-byte masks [4]. */
#define ROUTE_B    40.0
#define MAP_B      9.0 /* kept per score: fp32 gates, the map, four-byte row numbers */
#define CAPACITY_B 24.0
/* Of the log-sum-exp of fp32 scores: 6 passes forward; 6 backward and 3 to add its gradient to the other one. */
#define Z_LOSS_B          24.0
#define Z_LOSS_BACKWARD_B 36.0

typedef struct routed {
    int64_t local;  /* experts of this rank */
    int64_t m;      /* rows of one expert */
    double rows;    /* N: of the busiest rank */
    double all;     /* t·N: with those of the ranks that split its experts */
    double mean;    /* of all ranks */
    double crossed; /* those that are exchanged: N, or D */
    bool once;      /* D: a token goes to each rank once */
    double tokens;  /* T */
    double token_B; /* one row of h elements */
    double sent_B;  /* … on its way to an expert */
} routed;

/* (1), as d/k. */
static double share_of_ranks(const dts_model *model, int64_t ranks) {
    const double all = (double)model->experts, here = all / (double)ranks;
    double none = 1; /* of a token's experts on a rank */
    for (int64_t i = 0; i < model->experts_per_token; i++) {
        none *= fmax(0, all - here - (double)i) / (all - (double)i);
    }
    return (double)ranks * (1 - none) / (double)model->experts_per_token;
}

static bool sends_rows(const dts_model *model, const dts_execution *execution) {
    return execution->device_dispatch && execution->expert > 1 && execution->expert_tensor == 1 &&
           model->capacity_factor == 0;
}

static routed route_sizes(const dts_model *model, const dts_execution *execution, const dts_local *l) {
    const int64_t ranks = execution->expert, parts = execution->expert_tensor;
    routed r = {.local = model->experts / ranks, .tokens = (double)l->b * (double)l->shard};
    const double sent = r.tokens * (double)model->experts_per_token;
    if (model->capacity_factor > 0) {
        const double capacity = ceil(sent / (double)model->experts * model->capacity_factor);
        r.rows = (double)r.local * capacity * (double)ranks;
        r.mean = r.rows * (double)parts;
    } else {
        r.rows = sent * (ranks > 1 ? fmax(1, model->load_imbalance) : 1);
        r.mean = sent * (double)parts;
    }
    r.all = r.rows * (double)parts;
    r.m = (int64_t)ceil(r.all / (double)r.local);
    r.token_B = (double)l->h * l->e;
    r.sent_B = l->dispatches_quantised ? (double)l->h * l->q : r.token_B;
    r.once = sends_rows(model, execution);
    r.crossed = r.once ? r.rows * share_of_ranks(model, ranks) : r.rows;
    return r;
}

double dts_model_sent_rows(const dts_model *model, const dts_execution *execution, double *share) {
    *share = 1;
    if (!sends_rows(model, execution)) {
        return 0;
    }
    const dts_local local = dts_local_sizes(model, execution);
    const routed r = route_sizes(model, execution, &local);
    *share = r.crossed / r.rows;
    return r.crossed;
}

/* Do rows of other ranks come to this one's experts? */
static bool exchanges_tokens(const dts_builder *builder) {
    return builder->execution->expert > 1 || builder->execution->expert_tensor > 1;
}

/* Are shared experts computed while tokens are on their way? */
static bool shares_beside(const dts_builder *builder) {
    const dts_execution *execution = builder->execution;
    return execution->shared_beside && !execution->device_dispatch && exchanges_tokens(builder) &&
           builder->model->shared_expert_ffn_hidden > 0;
}

/* Scores, choice and masks. Keeps x for all branches. */
static void add_router(dts_builder *builder, const routed *r) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const bool pads = model->capacity_factor > 0;
    dts_linear scores = {.name = "router",
                         .rows = (int64_t)r->tokens,
                         .n = model->experts,
                         .k = l->h,
                         .bias = model->router_bias ? DTS_BIAS_OWN : DTS_BIAS_NONE,
                         .unfused = true,
                         .input_B = l->r,
                         .saved_B = r->tokens * r->token_B};
    const bool quantises = builder->local.quantises; /* the router stays in the width of activations */
    builder->local.quantises = false;
    dts_add_linear(builder, &scores);
    builder->local.quantises = quantises;
    const double entries = r->tokens * (double)model->experts;
    dts_operator *choice = dts_add_memory(builder, "route",
                                          (dts_passes){.forward_kernels = ROUTE_KERNELS + (pads ? CAPACITY_KERNELS : 0),
                                                       .forward_B = entries * (ROUTE_B + (pads ? CAPACITY_B : 0)),
                                                       .backward_kernels = ROUTE_BACKWARD_KERNELS,
                                                       .backward_B = entries * ROUTE_B,
                                                       .input_B = entries * l->e,
                                                       .output_B = entries * l->e,
                                                       .saved_B = entries * MAP_B});
    if (model->router_z_loss) {
        choice->forward_kernels += Z_LOSS_KERNELS;
        choice->forward_B += entries * Z_LOSS_B;
        choice->backward_kernels += Z_LOSS_BACKWARD_KERNELS;
        choice->backward_B += entries * Z_LOSS_BACKWARD_B;
        choice->saved_B += entries * 4; /* scores */
    }
    const dts_execution *execution = builder->execution;
    choice->host_reads =
        !pads && !execution->device_dispatch && (exchanges_tokens(builder) || !execution->grouped_products);
    choice->host_dispatches = choice->host_reads;
}

/* row_B: r->sent_B on the way to experts, r->token_B on the way home. */
static void exchange_rows(const dts_builder *builder, const routed *r, double row_B, dts_exchange *exchange,
                          dts_operator *op) {
    if (builder->execution->expert > 1) {
        *exchange = DTS_EXCHANGE_ALL_TO_ALL;
        op->exchange_B = r->crossed * row_B;
    }
}

/* The ranks that split an expert gather (forward of the way in, backward of the way out) or scatter their rows, before
 * or behind the all-to-all, which stands on the side of the other ranks. */
static void share_rows(dts_builder *builder, const routed *r, bool in) {
    const double all_B = r->all * r->token_B;
    dts_operator *here = NULL;
    if (builder->execution->expert_tensor == 1) {
        return;
    }
    const bool beside = shares_beside(builder); /* what their exchange hides, this one hides as well */
    if (in) {
        here = dts_add_memory(builder, "from_experts", (dts_passes){0});
        here->branches = beside;
        exchange_rows(builder, r, r->token_B, &here->backward_exchange, here);
    }
    dts_operator *share = dts_add_memory(builder, "share_rows", (dts_passes){0});
    share->among_experts = true;
    share->branches = beside;
    share->exchange_B = all_B;
    share->forward_exchange = in ? DTS_EXCHANGE_ALL_GATHER : DTS_EXCHANGE_REDUCE_SCATTER;
    share->backward_exchange = in ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_GATHER;
    if (!in) {
        here = dts_add_memory(builder, "to_tokens", (dts_passes){0});
        exchange_rows(builder, r, r->token_B, &here->forward_exchange, here);
    }
}

/* Rows of several experts come from each rank: they are sorted by expert, or back. */
static dts_operator *add_sort(dts_builder *builder, const routed *r, const char *name, bool in) {
    const bool sorts = r->local > 1 || r->once;
    const double crossed = r->once ? r->crossed : r->all;
    const double forward_B = in ? r->sent_B : r->token_B, backward_B = in ? r->token_B : r->sent_B; /* of a row */
    return dts_add_memory(builder, name,
                          (dts_passes){.forward_kernels = sorts ? 1 : 0,
                                       .forward_B = sorts ? (crossed + r->all) * forward_B : 0,
                                       .backward_kernels = sorts ? 1 : 0,
                                       .backward_B = sorts ? (crossed + r->all) * backward_B : 0,
                                       .input_B = (in ? crossed : r->all) * backward_B,
                                       .output_B = (in ? r->all : crossed) * forward_B,
                                       .workspace_B = sorts ? r->all * r->token_B : 0});
}

/* The dispatcher's own kernels sort and sum: one more counts who gets what. */
static dts_operator *add_device_dispatch(dts_builder *builder, const routed *r) {
    return dts_add_memory(builder, "dispatch",
                          (dts_passes){.forward_kernels = 1,
                                       .forward_B = r->tokens * (double)builder->model->experts,
                                       .input_B = r->tokens * r->token_B,
                                       .output_B = r->crossed * r->sent_B});
}

static dts_operator *add_device_combine(dts_builder *builder, const routed *r) {
    return dts_add_memory(builder, "combine",
                          (dts_passes){.input_B = r->crossed * r->sent_B, .output_B = r->tokens * r->token_B});
}

static dts_operator *add_permute(dts_builder *builder, const routed *r) {
    const bool fused = builder->execution->fuse_permute;
    const double rows_B = r->rows * r->token_B, tokens_B = r->tokens * r->token_B;
    const double sent_B = (r->tokens + r->rows) * r->sent_B;
    dts_operator *permute = dts_add_memory(builder, "permute",
                                           (dts_passes){.forward_kernels = fused ? 2 : SORT_KERNELS,
                                                        .forward_B = sent_B,
                                                        .backward_kernels = fused ? 1 : 2,
                                                        .backward_B = tokens_B + (fused ? 1 : 3) * rows_B,
                                                        .input_B = tokens_B,
                                                        .output_B = r->rows * r->sent_B,
                                                        .workspace_B = fused ? 0 : tokens_B});
    permute->slow = DTS_SLOW_ROWS;
    return permute;
}

static dts_operator *add_unpermute(dts_builder *builder, const routed *r) {
    const bool fused = builder->execution->fuse_permute;
    const double rows_B = r->rows * r->token_B, tokens_B = r->tokens * r->token_B;
    /* unfused: a fill and a scatter that adds, which reads and writes the sum for every row */
    dts_operator *sum = dts_add_memory(builder, "unpermute",
                                       (dts_passes){.forward_kernels = fused ? 1 : 2,
                                                    .forward_B = tokens_B + (fused ? 1 : 3) * rows_B,
                                                    .backward_kernels = 1,
                                                    .backward_B = (r->tokens + r->rows) * r->sent_B,
                                                    .input_B = r->rows * r->sent_B,
                                                    .output_B = tokens_B,
                                                    .workspace_B = rows_B});
    sum->slow = DTS_SLOW_ROWS;
    return sum;
}

/* An ordinary block for all tokens, split over the tensor-parallel ranks: what it reads, */
static void add_shared_input(dts_builder *builder) {
    const dts_local *l = &builder->local;
    if (l->sequence) { /* the positions of all ranks */
        dts_operator *gather = dts_add_memory(builder, "shared_input", (dts_passes){0});
        gather->forward_exchange = DTS_EXCHANGE_ALL_GATHER;
        gather->exchange_B = l->full_B;
    }
}

/* … its first product and the activation, */
static void add_shared_up(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const int64_t f = model->shared_expert_ffn_hidden / builder->execution->tensor, rows = l->b * l->s;
    dts_linear product = {.name = model->gated_ffn ? "shared_gate_up" : "shared_up",
                          .rows = rows,
                          .n = model->gated_ffn ? 2 * f : f,
                          .k = l->h,
                          .bias = model->bias ? DTS_BIAS_OWN : DTS_BIAS_NONE,
                          .unfused = true,
                          .input_B = l->r,
                          .saved_B = dts_model_adapts(builder->execution) ? l->full_B : 0, /* else at the router */
                          .role = model->gated_ffn ? DTS_LINEAR_GATE_UP : DTS_LINEAR_FEED_FORWARD};
    dts_operator *up = dts_add_linear(builder, &product);
    up->gathers_again_B = dts_gathers_again_B(builder);
    if (l->sequence) {
        up->backward_exchange = DTS_EXCHANGE_REDUCE_SCATTER;
        up->exchange_B = l->full_B;
    }
    dts_add_inner_activation(builder, (double)rows * (double)f);
}

/* … and its second one, with a gate: a product with one column, sigmoid, scaling, which keeps the unscaled output. */
static void add_shared_down(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const int64_t f = model->shared_expert_ffn_hidden / builder->execution->tensor, rows = l->b * l->s;
    const double stream_B = l->stream * l->r;
    dts_linear product = {.name = "shared_down",
                          .rows = rows,
                          .n = l->h,
                          .k = f,
                          .bias = model->bias ? DTS_BIAS_OWN : DTS_BIAS_NONE,
                          .unfused = true,
                          .input_B = l->e,
                          .saved_B = (double)rows * (double)f * l->e,
                          .row_split = true,
                          .role = DTS_LINEAR_FEED_FORWARD};
    dts_add_linear(builder, &product);
    if (l->sequence) { /* the gradient of all ranks' positions */
        dts_operator *gather = dts_add_memory(builder, "shared_output", (dts_passes){0});
        gather->backward_exchange = DTS_EXCHANGE_ALL_GATHER;
        gather->exchange_B = l->full_B;
    }
    if (model->shared_expert_gate) {
        dts_operator *gate = dts_add_memory(builder, "shared_gate",
                                            (dts_passes){.forward_kernels = 3,
                                                         .forward_B = 3 * stream_B,
                                                         .backward_kernels = 5,
                                                         .backward_B = 6 * stream_B,
                                                         .input_B = stream_B,
                                                         .output_B = stream_B,
                                                         .saved_B = stream_B});
        gate->parameters[0] = (double)l->h;
    }
}

/* Adds operators of shared experts beside the exchange of the operator before them [10]; backward, that is the exchange
 * behind the operator that follows. */
static void add_beside(dts_builder *builder, void (*add)(dts_builder *)) {
    const size_t first = builder->count;
    if (!shares_beside(builder)) {
        return;
    }
    const dts_region region = builder->region;
    builder->region = DTS_REGION_EXPERTS;
    add(builder);
    builder->region = region;
    if (builder->count > first) {
        builder->items[first - 1].branches = true;
    }
    for (size_t i = first; i < builder->count; i++) {
        builder->items[i].beside = true;
    }
}

/* Tokens to the ranks of their experts; backward brings their gradients back and sums them. */
static void add_dispatch(dts_builder *builder, const routed *r) {
    if (builder->local.dispatches_quantised) {
        dts_add_token_cast(builder, r->tokens, false);
    }
    builder->region = r->once ? DTS_REGION_EXPERTS : DTS_REGION_PREPROCESS;
    dts_operator *leave = (r->once ? add_device_dispatch : add_permute)(builder, r);
    builder->region = DTS_REGION_EXPERTS;
    exchange_rows(builder, r, r->sent_B, &leave->forward_exchange, leave);
    leave->host_reads = r->once && builder->execution->awaits_rows;
    add_beside(builder, add_shared_up);
    share_rows(builder, r, true);
    if (exchanges_tokens(builder)) {
        dts_operator *sort = add_sort(builder, r, "sort_by_expert", true);
        if (builder->execution->expert_tensor == 1) {
            exchange_rows(builder, r, r->token_B, &sort->backward_exchange, sort);
        }
        sort->host_reads = r->once && builder->execution->reads_sizes && !builder->execution->grouped_products &&
                           !builder->execution->awaits_rows;
    }
}

/* Results to the ranks of their tokens, and the weighted sum. */
static void add_combine(dts_builder *builder, const routed *r) {
    if (exchanges_tokens(builder)) {
        dts_operator *sort = add_sort(builder, r, "sort_by_rank", false);
        if (builder->execution->expert_tensor == 1) {
            exchange_rows(builder, r, r->token_B, &sort->forward_exchange, sort);
        }
    }
    share_rows(builder, r, false);
    add_beside(builder, add_shared_down);
    dts_operator *sum = (r->once ? add_device_combine : add_unpermute)(builder, r);
    exchange_rows(builder, r, r->sent_B, &sum->backward_exchange, sum);
    if (builder->local.dispatches_quantised) {
        dts_add_token_cast(builder, r->tokens, true);
    }
}

/* The gates have weighed the activation, so that biases behind the second product have to be weighed as well [7]. For
 * each expert: b·gate, the sum, and all rows put together again; backward the gradients of b and of the gates, a
 * product and a sum each, and those of the rows put together. */
static void add_gated_bias(dts_builder *builder, const routed *r) {
    const double rows_B = r->all * r->token_B;
    const int experts = (int)r->local;
    const bool fused = builder->execution->fuse_expert_bias;
    dts_add_memory(builder, "expert_bias",
                   (dts_passes){.forward_kernels = fused ? 1 : 2 * experts + 1,
                                .forward_B = (fused ? 2 : 6) * rows_B,
                                .backward_kernels = fused ? 1 : 4 * experts + 1,
                                .backward_B = (fused ? 1 : 8) * rows_B,
                                .input_B = rows_B,
                                .output_B = rows_B,
                                .workspace_B = fused ? 0 : 2 * rows_B});
}

static void add_routed(dts_builder *builder, const routed *r) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const int64_t parts = builder->execution->expert_tensor, f = dts_model_expert_ffn_hidden(model) / parts;
    const double rows = (double)r->local * (double)r->m;
    builder->region = DTS_REGION_EXPERTS;
    add_dispatch(builder, r);
    dts_linear product = {.name = model->gated_ffn ? "expert_gate_up" : "expert_up",
                          .rows = r->m,
                          .n = model->gated_ffn ? 2 * f : f,
                          .k = l->h,
                          .bias = model->bias ? DTS_BIAS_OWN : DTS_BIAS_NONE,
                          .unfused = true,
                          .input_B = l->e,
                          .saved_B = r->all * r->token_B,
                          .experts = r->local,
                          .routed_rows = r->mean,
                          .arrives_narrow = l->dispatches_quantised,
                          .role = model->gated_ffn ? DTS_LINEAR_GATE_UP : DTS_LINEAR_FEED_FORWARD};
    dts_add_linear(builder, &product);
    dts_add_inner_activation(builder, rows * (double)f);
    product.name = "expert_down";
    product.arrives_narrow = false;
    product.gradient_arrives_narrow = l->dispatches_quantised;
    product.bias = model->bias ? DTS_BIAS_DEFERRED : DTS_BIAS_NONE;
    product.n = l->h;
    product.k = f;
    product.saved_B = r->all * (double)f * l->e;
    product.row_split = parts > 1;
    product.role = DTS_LINEAR_FEED_FORWARD;
    dts_add_linear(builder, &product);
    if (model->bias) {
        add_gated_bias(builder, r);
    }
    add_combine(builder, r);
}

void dts_add_experts(dts_builder *builder) {
    const dts_local *l = &builder->local;
    const dts_model *model = builder->model;
    const routed r = route_sizes(model, builder->execution, l);
    const bool shared = model->shared_expert_ffn_hidden > 0;
    const double stream_B = l->stream * l->r, tokens_B = r.tokens * r.token_B;
    builder->region = DTS_REGION_ROUTER;
    dts_add_norm(builder, "mlp_norm", l->b * l->shard, false);
    /* router, experts and shared expert start from x: their gradients are added */
    const int sums = shared ? 2 : 1;
    dts_add_memory(builder, "expert_input", (dts_passes){.backward_kernels = sums, .backward_B = 3 * sums * stream_B});
    builder->items[builder->count - 1].joins = true; /* backward */
    add_router(builder, &r);
    add_beside(builder, add_shared_input);
    if (shared && !shares_beside(builder)) {
        add_shared_input(builder);
        add_shared_up(builder);
        add_shared_down(builder);
    }
    add_routed(builder, &r);
    if (shared) {
        dts_add_memory(
            builder, "add_shared",
            (dts_passes){.forward_kernels = 1, .forward_B = 3 * tokens_B, .input_B = tokens_B, .output_B = tokens_B});
        builder->items[builder->count - 1].joins = true;
    }
    dts_add_residual(builder, "mlp_bias_dropout_add", "mlp_dropout", "mlp_residual", false, false);
}
