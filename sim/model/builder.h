/* Inside of model/: what the files that describe parts share. */
#ifndef DTS_MODEL_BUILDER_H
#define DTS_MODEL_BUILDER_H

#include "model/model.h"

enum { DTS_OPERATORS_MAX = 192 }; /* of one part; the largest has about 70, and 90 more with adapters */

/* Sizes on one rank. Lower-case names follow Korthikanti et al. 2022: s, b, h, a, t. */
typedef struct dts_local {
    int64_t b;               /* samples */
    int64_t s;               /* positions of the sequence on this rank: sequence / context */
    int64_t S;               /* positions that keys cover: the whole sequence */
    int64_t shard;           /* positions outside tensor-parallel regions: s, or s / tensor with sequence parallelism */
    int64_t h;               /* hidden */
    int64_t a, kv, d;        /* heads of this rank, key/value heads of this rank, width of a head */
    int64_t dq, dv;          /* width of a query and key head, and of a value head: d without latent attention */
    int64_t f;               /* feed-forward width of this rank */
    int64_t V;               /* vocabulary rows of this rank */
    int64_t predicted;       /* rows of the logits: share of b·s */
    double e;                /* B of an activation element */
    double r;                /* B of an element of the residual stream (fp32 under autocast) */
    double p;                /* B of a stored parameter and of its gradient */
    bool drop;               /* dropout runs */
    bool parallel, sequence; /* tensor > 1; sequence parallelism within it */
    double full_B;           /* (b, s, h) in activation type, B */
    bool gathers_each;       /* sequence parallelism: another product of the same input gathers it again */
    bool joins_gathers;      /* … forward, a compiler makes one gather of these */
    bool regathers;          /* sequence parallelism that keeps the shard and gathers it again in backward */
    bool layer;              /* this part is a layer, with or without experts */
    int64_t window;          /* positions that a query sees; 0: all */
    bool quantises;          /* linear products of this part run in 8 or 4 bits */
    bool keeps_narrow;       /* and keep their inputs as they were cast */
    double q;                /* B of an element of their operands */
    bool narrow_attention;   /* fused attention of this part reads 8 bits … */
    double attention_q;      /* B of an element that it keeps */
    bool gathers_quantised;  /* sequence parallelism gathers their operands after the cast */
    bool dispatches_quantised; /* so do exchanges of tokens on their way to experts, forward and backward */
    double column_B;           /* what a column-split product keeps of its input, B */
    double stream, mask_B;     /* elements of (b, shard, h); B of a mask element */
} dts_local;

dts_local dts_local_sizes(const dts_model *model, const dts_execution *x);

typedef struct dts_builder {
    const dts_model *model;
    const dts_execution *execution;
    dts_local local;
    dts_region region; /* of what is added */
    dts_operator items[DTS_OPERATORS_MAX];
    size_t count;
} dts_builder;

/* Adds an operator that moves memory. */
typedef struct dts_passes {
    int forward_kernels, backward_kernels;
    double forward_B, backward_B;
    double input_B, output_B, saved_B, workspace_B;
} dts_passes;
dts_operator *dts_add_memory(dts_builder *builder, const char *name, dts_passes passes);

/* Dropout of a tensor by a kernel of its own, which keeps a mask: bytes of both. */
dts_operator *dts_add_dropout(dts_builder *builder, const char *name, double tensor_B, double mask_B);

/* Adds a linear layer (rows, k)·(k, n): under autocast its casts, then the product, then its bias. */
typedef enum dts_bias { DTS_BIAS_NONE, DTS_BIAS_OWN, DTS_BIAS_DEFERRED /* added by a later fused kernel */ } dts_bias;
/* What a linear layer is to those who choose targets for adapters; PLAIN: never one. */
typedef enum dts_linear_role {
    DTS_LINEAR_PLAIN,
    DTS_LINEAR_QUERY_OR_VALUE,
    DTS_LINEAR_QUERY_KEY_VALUE, /* all three in one product */
    DTS_LINEAR_ATTENTION,       /* other projections of attention */
    DTS_LINEAR_GATE_UP,         /* both in one product */
    DTS_LINEAR_FEED_FORWARD
} dts_linear_role;

typedef struct dts_linear {
    const char *name;
    int64_t rows, n, k;
    dts_bias bias;
    double input_B;               /* B of an input element as it comes */
    double saved_B;               /* of the input, as the product keeps it; 0 when another operator keeps it */
    double kept_B;                /* other tensors in activation type that are counted here */
    bool row_split;               /* partial sums: reduced after the product, before the bias */
    bool unfused;                 /* its bias has a kernel with fuse.epilogues, too */
    bool partial;                 /* … later: with those of another product */
    bool whole;                   /* tensor parallelism does not split it */
    bool borrowed;                /* the weight belongs to another part (tied embeddings) */
    bool shares;                  /* its input is that of the product before, and cast there where it is quantised */
    int64_t experts;              /* > 0: that many products of rows each, with weights of their own */
    double routed_rows;           /* with experts: of all of them, the mean over the ranks */
    bool arrives_narrow;          /* its input has been cast before it was sent here */
    bool gradient_arrives_narrow; /* … the gradient of its output */
    dts_linear_role role;
} dts_linear;
dts_operator *dts_add_linear(dts_builder *builder, const dts_linear *linear);

/* One more product of an input that is a shard gathers it (local.gathers_each), and scatters its gradient. */
void dts_add_gather(dts_builder *builder, const char *name);

/* Bytes of one of the gradients that are added up where several products read an input: of the gathered input, or,
 * where each product scatters its own, of the shard. */
double dts_summed_input_B(const dts_builder *builder);

/* The product alone, without casts, bias or parameters. */
dts_operator *dts_add_product(dts_builder *builder, const dts_linear *linear);

/* Around a frozen product: the adapters' products and the weight's way to its type before it (returns what they leave
 * for the sum, B), and the sum behind it (adapters.c). */
double dts_add_adapters(dts_builder *builder, const dts_linear *linear);
/* A frozen weight in fp32 becomes readable; chain_B passes by. */
void dts_add_base_cast(dts_builder *builder, const dts_linear *linear, double chain_B);
void dts_add_adapted_sums(dts_builder *builder, const dts_linear *linear);
/* Weights that are written out in their type for one use, B. */
double dts_written_weight_B(const dts_builder *builder, const dts_linear *linear);
/* Does an adapter keep the input of this product as it is? */
bool dts_adapter_keeps_input(const dts_builder *builder, const dts_linear *linear);
/* Takes the gradients of all weights but the adapters' out of a part. */
void dts_freeze_part(dts_builder *builder, dts_part part);

/* Does its weight's gradient get its scales in a kernel of its own, behind the product? */
bool dts_rescales_gradient(const dts_builder *builder);

/* Around attention in 8 bits: casts of its operands before it, and of its output behind it (quantise.c). */
void dts_add_attention_casts(dts_builder *builder);
void dts_add_attention_output_casts(dts_builder *builder);

/* What a column-split product gathers again in backward for its weight gradient, B. */
double dts_gathers_again_B(const dts_builder *builder);

/* Adds a norm over (b, shard, h). Its output feeds a column-split product, so sequence parallelism gathers it here. */
void dts_add_norm(dts_builder *builder, const char *name, int64_t rows, bool gathers);
/* Takes the gradients of a frozen norm's scale and shift, and what is kept for them, out of its passes. */
void dts_freeze_norm(dts_passes *passes, double input_B, bool eager);

/* Do fused kernels behind them add the biases of attention's and the feed-forward block's outputs? unfused: of a
 * product that dts_linear calls so. */
bool dts_defers_output_bias(const dts_builder *builder, bool unfused);

/* Adds GELU or the like over elements of the feed-forward block or of BERT's prediction head. */
void dts_add_gelu(dts_builder *builder, const char *name, double elements);

/* Adds the sum of a block's output with the stream that passes it by, as a kernel of its own. */
dts_operator *dts_add_stream_sum(dts_builder *builder, const char *name);

/* Adds dropout of a block's output and the residual sum; the fused form takes the bias with it. split: the block ends
 * in a row-split product, so that sequence parallelism gathers its gradient here. */
void dts_add_residual(dts_builder *builder, const char *fused_name, const char *dropout_name, const char *sum_name,
                      bool bias, bool split);

/* Attention and feed-forward block side by side (parallel_block.c). Are their partial sums added before one reduction;
 * are the gradients of their shared input, too? Else the blocks are those of a layer where one follows the other. */
bool dts_sums_branches(const dts_builder *builder);
bool dts_sums_branch_gradients(const dts_builder *builder);
/* Where the branches begin: backward adds up their gradients. */
void dts_add_branches_input(dts_builder *builder);
/* The end of the first branch; the end of the second, their sum, and that with the residual stream. */
void dts_add_branch(dts_builder *builder, const char *fused_name, const char *dropout_name, bool bias);
void dts_add_branches_sum(dts_builder *builder, bool bias);

/* Tokens of h elements become narrow before they are sent to the ranks of their experts; gradient: that of their sum,
 * backward. */
void dts_add_token_cast(dts_builder *builder, double tokens, bool gradient);

/* Casts around a linear product in 8 or 4 bits (quantise.c): of weight and input before it, of its output's gradient
 * behind it. */
void dts_add_operand_casts(dts_builder *builder, const dts_linear *linear);
void dts_add_gradient_cast(dts_builder *builder, const dts_linear *linear);

/* More tensor-parallel ranks than heads of keys and values (few_heads.c). Bytes of queries, keys and values that
 * attention keeps of one rank; 0: they are kept as copies. */
typedef struct dts_kept_heads {
    double query_B, key_B;
} dts_kept_heads;
bool dts_has_few_kv_heads(const dts_builder *builder);
/* Columns of the joined product. */
int64_t dts_joined_columns(const dts_builder *builder);
/* Behind that product: its output in full, and out of it what this rank needs. */
void dts_add_gathered_heads(dts_builder *builder, dts_kept_heads kept);
/* Queries, and keys and values of all heads, by products of their own. */
void dts_add_whole_heads(dts_builder *builder, dts_kept_heads kept);

void dts_add_attention(dts_builder *builder);          /* attention.c */
void dts_add_latent_projections(dts_builder *builder); /* latent_attention.c */
void dts_add_feed_forward(dts_builder *builder);       /* feed_forward.c */
/* The activation between two products, over rows of width inner (elements of one half of a gated one). */
void dts_add_inner_activation(dts_builder *builder, double elements); /* feed_forward.c */
void dts_add_experts(dts_builder *builder);                           /* experts.c */
void dts_add_embedding(dts_builder *builder);                         /* ends.c */
void dts_add_head(dts_builder *builder);                              /* ends.c */

#endif
