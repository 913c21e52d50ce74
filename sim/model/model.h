/* Model profiles and the operators that a part of a model runs.
 *
 * model/ knows no hardware: it says what must be computed, moved and kept, in FLOPs, bytes and elements. */
#ifndef DTS_MODEL_MODEL_H
#define DTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numeric.h"
#include "config/schema.h"

/* gpt and llama normalise before a block, bert behind it. */
typedef enum dts_architecture { DTS_ARCH_GPT, DTS_ARCH_BERT, DTS_ARCH_LLAMA } dts_architecture;

/* Hugging Face's names. gelu: the erf form, one kernel. gelu_new: the tanh form written out in Python (Hugging Face
 * GPT-2, later minGPT), eight kernels and four saved tensors unless the stack fuses it. */
typedef enum dts_activation_function { DTS_GELU, DTS_GELU_NEW, DTS_SILU, DTS_RELU } dts_activation_function;

/* What the last part computes. */
/* AUTO: as the stack trains BERT; a language model where nothing has settled it. */
typedef enum dts_head { DTS_HEAD_AUTO, DTS_HEAD_LANGUAGE_MODEL, DTS_HEAD_CLASSIFICATION } dts_head;

/* x + attention(norm(x)) + feed-forward(norm'(x)): one norm for both or two, instead of one block after the other. */
typedef enum dts_parallel_block {
    DTS_PARALLEL_NONE,
    DTS_PARALLEL_SHARED_NORM,
    DTS_PARALLEL_TWO_NORMS
} dts_parallel_block;

/* cross-entropy casts the logits to fp32 first (Megatron-LM, torchtitan, Hugging Face Llama, anything under autocast);
 * cross-entropy-native keeps the logits' type; sum adds the logits up, as benchmarks without labels do. */
typedef enum dts_loss { DTS_LOSS_CROSS_ENTROPY, DTS_LOSS_CROSS_ENTROPY_NATIVE, DTS_LOSS_SUM } dts_loss;

/* A transformer, bound from a profile. Field names are those of the measurement tables. */
typedef struct dts_model {
    const char *name;
    const char *description;
    int architecture; /* dts_architecture */
    int64_t layers, hidden, heads;
    int64_t kv_heads;   /* 0: as heads */
    int64_t head_dim;   /* 0: hidden / heads */
    int64_t ffn_hidden; /* 0: 4·hidden */
    int64_t vocab;
    int64_t max_positions;   /* learned positions; 0: none */
    bool rotary;             /* rotary positions */
    bool rotary_scaled;      /* their cosines and sines have a factor: YaRN's concentration */
    int64_t token_types;     /* BERT segment embeddings */
    bool gated_ffn;          /* SwiGLU, GeGLU: three matrices */
    int activation_function; /* dts_activation_function */
    double activation_clamp; /* of both inputs of a gated activation; 0: none */
    bool rms_norm;           /* else LayerNorm with scale and shift */
    bool bias;               /* biases of the linear layers outside the query, key and value products */
    bool qkv_bias;
    bool dropout; /* the model has dropout; whether it runs is the execution's */
    bool tied_embeddings;
    bool causal;
    bool pooler;                /* BERT pooler and next-sentence head */
    bool lm_transform;          /* BERT prediction head: dense + norm before the decoder, whose bias it has */
    int head;                   /* dts_head */
    int64_t labels;             /* of a classification head */
    double predicted_share;     /* share of the positions whose logits are computed; 0: as the stack says, or all */
    int loss;                   /* dts_loss */
    double expected_parameters; /* published count, 0: none */
    double expected_tolerance;  /* relative */
    bool qk_norm;               /* queries and keys are normalised per head */
    bool attention_sinks;       /* one learned logit per head joins each softmax */
    bool post_norms;            /* norms behind attention and feed-forward block as well, before they are added */
    int parallel_block;         /* dts_parallel_block */
    bool embedding_norm;        /* a norm behind the embedding */
    bool unbiased_projection;   /* with bias: but none of the attention's output projection */
    bool head_bias;             /* of the product that makes the logits */
    bool shared_expert_gate;    /* a sigmoid of a product with one column scales the shared expert's output */
    /* windows of attention; 0: every position sees all (before it) */
    int64_t attention_window;    /* positions that a query of a local layer sees, itself among them */
    bool window_chunked;         /* those of its own chunk of so many positions; else the nearest ones */
    int64_t first_global_layers; /* layers at the start without a window */
    int64_t global_every;        /* every n-th layer behind those has none; 0: all have one */
    /* multi-head latent attention; kv_lora_rank 0: ordinary attention */
    int64_t q_lora_rank, kv_lora_rank; /* widths of the latents of queries (0: none) and of keys and values */
    int64_t qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
    /* mixture of experts; experts 0: dense */
    int64_t experts, experts_per_token;
    int64_t expert_ffn_hidden;        /* 0: as ffn_hidden */
    int64_t shared_expert_ffn_hidden; /* of all shared experts together; 0: none */
    int64_t first_dense_layers;
    int64_t moe_every;                 /* every n-th layer behind those has experts */
    bool router_bias;                  /* the gating product has a bias */
    bool router_z_loss;                /* the square of the scores' log-sum-exp is a loss, too */
    int64_t nodes_per_token;           /* routing reaches experts on at most this many nodes; 0: no limit */
    double capacity_factor;            /* 0: dropless; else tokens an expert takes, over the mean, padded to that */
    double load_imbalance;             /* tokens of the busiest rank over the mean */
    double expected_active_parameters; /* published count of those that one token uses, 0: none */
} dts_model;

extern const dts_schema dts_model_schema;

/* What a model consists of, in execution order: embedding, layers, head. */
typedef enum dts_part {
    DTS_PART_EMBEDDING,
    DTS_PART_LAYER,
    DTS_PART_HEAD,
    DTS_PART_EXPERT_LAYER,      /* a layer whose feed-forward block is a mixture of experts */
    DTS_PART_LOCAL_LAYER,       /* with a window of attention */
    DTS_PART_LOCAL_EXPERT_LAYER /* both */
} dts_part;
enum { DTS_PART_COUNT = DTS_PART_LOCAL_EXPERT_LAYER + 1 };

bool dts_part_is_layer(dts_part part);
bool dts_part_has_experts(dts_part part);
bool dts_part_is_local(dts_part part);

/* Which kind of layer; layer from 0. */
dts_part dts_model_layer_part(const dts_model *model, int64_t layer);
/* How many there are of each part. */
void dts_model_count_parts(const dts_model *model, double counts[DTS_PART_COUNT]);
/* Positions of keys that a query of a part sees at most, out of keys. */
int64_t dts_model_seen_keys(const dts_model *model, dts_part part, int64_t keys);
int64_t dts_model_expert_layers(const dts_model *model);
bool dts_model_layers_alike(const dts_model *model);

/* The optional dimensions with their rule applied. */
int64_t dts_model_kv_heads(const dts_model *model);
/* Heads of keys and values that the queries of one tensor-parallel rank read: one where there are fewer than ranks. */
int64_t dts_model_rank_kv_heads(const dts_model *model, int64_t tensor);
int64_t dts_model_head_dim(const dts_model *model);
int64_t dts_model_ffn_hidden(const dts_model *model);
int64_t dts_model_expert_ffn_hidden(const dts_model *model);
/* Width of a query and key head, and of a value head: they differ with latent attention only. */
int64_t dts_model_qk_head_dim(const dts_model *model);
int64_t dts_model_v_head_dim(const dts_model *model);

/* Parameters, elements. A tied output projection counts once (in the embedding). */
double dts_model_parameters(const dts_model *model);
double dts_model_part_parameters(const dts_model *model, dts_part part);
/* Those that one token uses: all but the routed experts it is not sent to. */
double dts_model_active_parameters(const dts_model *model);

/* Where the weights of quantised products come from. */
typedef enum dts_quantised_weights {
    DTS_WEIGHTS_CAST,     /* cast from `weight` for every pass in either direction */
    DTS_WEIGHTS_ONCE,     /* cast in the first microbatch and kept until the step */
    DTS_WEIGHTS_QUANTISED /* they come in the format of the products: cast before they are gathered, or by the step */
} dts_quantised_weights;

/* Whose largest values are looked up among tensor-parallel ranks before a cast, so that all use one scale. */
typedef enum dts_shared_scales {
    DTS_SHARED_SCALES_NONE,
    DTS_SHARED_SCALES_GATHERED, /* operands that sequence parallelism gathers behind the cast */
    DTS_SHARED_SCALES_ALL       /* every operand that ranks hold parts of */
} dts_shared_scales;

/* 8- and 4-bit products of the layers' linear operators; attention, embedding and head stay in `activation`. */
typedef struct dts_quantisation {
    dts_numeric format; /* of their operands: DTS_FP8 and narrower; anything wider: none */
    int copies;         /* 2: the unit reads rows of both factors along K only, so that a transposed copy is made too */
    bool amax_kernel;   /* the largest value of a tensor is found by a kernel of its own before the cast */
    int weights;        /* dts_quantised_weights */
    double transpose_factor;   /* time of kernels that write a transposed copy over that of others */
    double scales_B;           /* B of scales for each element, beside those that the format counts */
    bool rows;                 /* a scale for each row along K, so that the operands of either gradient are cast by
                                  themselves, from what was gathered wide */
    bool wide_weight_gradient; /* the product that makes the weight's gradient is not narrow */
    int shared_scales;         /* dts_shared_scales */
    bool attention;            /* fused attention reads its operands in 8 bits, too */
    bool dispatches;           /* tokens and their gradients are cast before they are sent to the ranks of experts */
} dts_quantisation;

/* Do the layers' linear products run in 8 or 4 bits? */
bool dts_model_quantises(const dts_quantisation *quantisation);

/* Which linear layers get a low-rank adapter: Hugging Face PEFT's usual targets of a decoder, all projections of
 * attention, or every linear layer but the head. */
typedef enum dts_adapter_targets {
    DTS_TARGETS_QUERY_VALUE,
    DTS_TARGETS_ATTENTION,
    DTS_TARGETS_ALL_LINEAR
} dts_adapter_targets;

/* Low-rank adapters are trained, all other weights are frozen (adapters.c). */
typedef struct dts_adaptation {
    int64_t rank;        /* 0: no adapters, everything is trained */
    int targets;         /* dts_adapter_targets */
    bool dropout;        /* of the adapters' inputs */
    bool output_dropout; /* of their outputs */
    bool joined;         /* a product that stands for several projections has one adapter, not one for each */
    double base_B;       /* B of a frozen weight of the layers' products, as it is stored */
    bool narrow;         /* it is stored in a format that products cannot read */
    bool unpacks;        /* so it is, and operations of the framework unpack it (GPTQ) */
    double other_B;      /* of any other frozen weight: of embedding, head and norms */
    bool casts;          /* frozen weights come to the products in fp32 */
    bool double_quantised;
    double trained_B; /* B of an adapter's element, as it is stored */
    bool wide;        /* adapters run in fp32: what they read is cast, and what they write */
    bool copies;      /* each adapter reads a copy of its input in its own format */
} dts_adaptation;

/* How a part is cut and executed; what the plan and the software stack decide. */
typedef struct dts_execution {
    int64_t micro_batch, sequence_length;
    int64_t
        queries; /* positions that are computed, the last ones: keys and values of the others are in a cache; 0: all */
    int64_t tensor; /* tensor-parallel degree, 1: none */
    bool sequence_parallel;
    int64_t context;        /* context-parallel degree */
    dts_numeric activation; /* storage of activations */
    dts_numeric weight;     /* storage of the weights that the products read */
    dts_quantisation quantisation;
    dts_adaptation adaptation;
    bool flash_attention;
    bool fuse_bias_gelu, fuse_bias_dropout_add, fuse_softmax, fuse_norm, fuse_rotary, fuse_loss;
    bool persistent_norm; /* LayerNorm reads its rows once */
    bool fuse_sums;       /* gradients of an input that several products read are added up in one kernel */
    bool complex_rotary;  /* rotary embedding as a product of complex numbers in fp32 */
    bool matrix_rotary;   /* … as products with 2 × 2 matrices in fp32, added up by kernels of their own */
    bool widens_norm;     /* inputs of norms are cast to fp32 first */
    bool repeats_keys;    /* keys and values are copied to all query heads before fused attention, too */
    bool gathers_few_kv;  /* tensor > heads of keys and values: the product is cut below a head, its output gathered */
    bool whole_few_kv;    /* … or every rank makes the keys and values of all heads (few_heads.c) */
    double masked_share;  /* of BERT's positions whose logits are computed where the model does not say; 0: all */
    bool loss_in_place;   /* vocabulary-parallel loss: overwrites its fp32 logits step by step */
    bool gathers_logits;  /* tensor > 1: all ranks gather the logits, the loss is that of one rank */
    bool gathers_each;    /* sequence_parallel: products of one input gather it, and scatter its gradient, one by one */
    bool joins_gathers;   /* … but a compiler joins the gathers */
    bool whole_embedding; /* tensor > 1: every rank has the whole table of tokens */
    bool keeps_gathered;  /* sequence_parallel: what was gathered is kept, with separate_qkv it is anyway */
    bool loss_of_split;   /* that loss also without tensor parallelism */
    int loss_metrics;     /* cross-entropies of the logits that nothing depends on */
    bool z_loss;          /* the square of the logarithm of the sum of exponentials is part of the loss */
    bool frees_logits;    /* the output is dropped before backward where the loss does not need it */
    bool shifts_logits;   /* the loss reads a copy of the logits */
    bool widens_logits;   /* they are cast to fp32 before it, and returned so */
    bool separate_qkv;    /* query, key and value (and gate and up) as products of their own */
    int64_t expert;       /* expert-parallel degree, 1: all experts on every rank */
    int64_t expert_tensor; /* ranks that split each expert */
    bool device_dispatch;  /* tokens are sent to experts without their counts on the host */
    bool grouped_products; /* the products of all local experts are one kernel, which needs no counts on the host */
    bool fuse_permute;     /* tokens are sorted by expert in one kernel */
    bool stores_narrow;    /* inputs of fused gated activations are kept in one byte an element */
    bool fuse_clamp;       /* the inner activation cuts its inputs off itself */
    bool fuse_epilogues;   /* products do what their biases and GELU need as they store */
    bool fuse_expert_bias; /* the bias behind the experts, weighed by the gates, is added in one kernel */
    bool shared_beside;    /* shared experts run beside the exchanges of tokens, where the host dispatches */
    bool reads_sizes;      /* a dispatcher on the device tells the host how many rows came: sizes of library calls */
    bool awaits_rows;      /* … and the host waits for that before they are sent */
    bool separate_bias;    /* biases added by a kernel of their own instead of in the product's epilogue */
    bool sums_branches;    /* blocks side by side: partial sums of both are added before one reduction */
    bool sums_branch_gradients; /* … and the gradients of a shared input */
    bool dropout;
    double mask_B;            /* bytes of a dropout mask element */
    int64_t softmax_keys;     /* Megatron-LM's fused softmax takes that many keys at most, and not all shapes; 0: all */
    bool positions_first;     /* … are copied to samples first for fused attention, and its output back */
    bool keeps_joined_qkv;    /* values are a view of the joined product's output, which stays whole with them */
    bool keeps_softmax_input; /* eager softmax keeps its input beside its output */
    bool autocast; /* torch.autocast: weights stored in fp32, cast to `weight` for each use; residual stream, norms,
                      softmax and loss in fp32 */
} dts_execution;

typedef enum dts_operator_kind {
    DTS_OPERATOR_GEMM,      /* batch × (m, k)·(k, n) */
    DTS_OPERATOR_ATTENTION, /* fused attention */
    DTS_OPERATOR_MEMORY     /* bound by memory: norm, gelu, softmax, dropout, add, transpose, embedding, loss, cast */
} dts_operator_kind;

/* Communication that follows an operator (forward) or its gradient (backward): of tensor parallelism, or of expert
 * parallelism (all-to-all). */
typedef enum dts_exchange {
    DTS_EXCHANGE_NONE,
    DTS_EXCHANGE_ALL_REDUCE,
    DTS_EXCHANGE_ALL_GATHER,
    DTS_EXCHANGE_REDUCE_SCATTER,
    DTS_EXCHANGE_ALL_TO_ALL
} dts_exchange;

/* Kernels that move memory more slowly than others; the GPU says by how much. */
typedef enum dts_slow {
    DTS_SLOW_NOT,
    DTS_SLOW_ROWS, /* tokens' rows to and from the order of their experts */
    DTS_SLOW_LOSS, /* fused cross entropy */
    DTS_SLOW_NORM  /* LayerNorm that reads its rows more than once */
} dts_slow;

/* Parts of a layer that a CUDA graph may hold by themselves. */
typedef enum dts_region {
    DTS_REGION_NONE,         /* of no layer */
    DTS_REGION_ATTENTION,    /* with its norm and its sum with the residual stream */
    DTS_REGION_FEED_FORWARD, /* without experts; likewise */
    DTS_REGION_ROUTER,       /* norm, choice of experts, and shared experts that run beside no exchange */
    DTS_REGION_PREPROCESS,   /* rows put in the order in which an all-to-all sends them */
    DTS_REGION_EXPERTS       /* what follows: exchanges, experts, sums */
} dts_region;

enum { DTS_PARAMETER_TENSORS = 2 };

/* One operator on one tensor-parallel rank, for one microbatch. An operator without kernels in one direction does
 * nothing there but its exchange; one that keeps bytes has kernels in both. */
typedef struct dts_operator {
    const char *name; /* "qkv", "attention_scores", "mlp_up", "gelu", … */
    dts_operator_kind kind;
    dts_region region;
    int64_t batch, m, n, k; /* GEMM, forward. Backward: input (m, n)·(n, k), weight (k, m)·(m, n) */
    bool weight;            /* GEMM with parameters; else both factors are activations */
    bool quantised;         /* GEMM in the format of the execution's quantisation */
    bool narrow;            /* attention that reads 8 bits */
    bool feed_forward;      /* GEMM: into or out of the feed-forward layer */
    bool once;              /* runs in the first microbatch of a step only */
    dts_slow slow;          /* MEMORY: kernels that reach less of the bandwidth than others */
    double dropout_B;       /* MEMORY: of forward_B, what kernels move that draw random numbers */
    double pair_sums_B;     /* MEMORY: of forward_B, and as much of backward_B, what sums of pairs of numbers move */
    bool experts;           /* GEMM: one product of m rows for each of batch local experts, which hold the parameters */
    double routed_rows;     /* of those: rows of all experts together, the mean over the ranks; batch·m is the busiest
                               rank's */
    int64_t heads, kv_heads, head_dim, query_length, key_length; /* attention, with batch = micro_batch */
    bool causal;
    int64_t window;                        /* attention: positions that a query sees; 0: all */
    bool chunked;                          /* those of its own chunk of window positions */
    double forward_B, backward_B;          /* device-memory traffic of DTS_OPERATOR_MEMORY, B */
    int forward_kernels, backward_kernels; /* launches; GEMM backward: of input and weight gradient together */
    double
        parameters[DTS_PARAMETER_TENSORS]; /* elements of the weight and the bias (or scale and shift), on this rank */
    bool adapter;                          /* product of a low-rank adapter */
    bool adapter_input;                    /* where adapters branch off the input of a product */
    bool constant;                         /* GEMM: the weight is frozen and has no gradient */
    double frozen, frozen_B;               /* elements that are not trained, on this rank, and their B */
    double input_B;                        /* (micro_batch, sequence, features) input tensor, B */
    double output_B;                       /* output tensor, B */
    double saved_B;  /* kept from forward until this operator's backward, B; an input shared with another operator is
                        counted at one of them */
    double others_B; /* of saved_B: tensors for operators behind it, which no gradient of its weight needs */
    double weight_copy_B; /* of saved_B: a cast weight, which the gradient of the input is the last to need */
    double workspace_B;   /* lives during the operator only, beside its input, output and saved tensors, B */
    dts_exchange forward_exchange, backward_exchange; /* tensor > 1; after the operator's own work */
    double exchange_B;                                /* size of the whole (reduced or gathered) tensor, B */
    bool among_experts;     /* these exchanges are among the ranks that split an expert, not the tensor-parallel ones */
    bool plain_exchange;    /* … and not cut into chunks where those of other operators are */
    double gathers_again_B; /* sequence parallel: the input was kept as a shard, so backward all-gathers this much for
                               the weight gradient, behind the product of the input gradient; 0: it does not */
    int expert_casts;       /* kernels of experts' casts, one by one, whose tensors the host makes before; else 0 */
    bool beside;            /* of a branch (shared experts) that waits for no exchange of the others */
    bool branches;          /* … such operators run beside this one's exchange */
    bool joins;             /* reads both branches, forward or backward */
    bool host_reads;        /* the host waits for this operator's result: token counts that decide later sizes */
    bool host_dispatches;   /* … and then prepares the exchange of tokens (stack.experts_host) */
    bool casts_weight;      /* to a narrow format: recomputation of activations does not need it again */
    bool recomputed_selectively; /* attention core: selective recomputation drops saved_B and repeats the operator */
    bool repeats_shard;          /* … without its exchange: backward gathers the input again anyway */
    bool reads_repeated; /* its input is dropped as well: what made it is repeated before this operator's backward */
} dts_operator;

typedef struct dts_operators {
    dts_operator *items;
    size_t count;
} dts_operators;

/* Operators of one part in forward order; backward runs them in reverse. */
dts_status dts_model_operators(const dts_model *model, dts_part part, const dts_execution *execution, dts_arena *arena,
                               dts_operators *out, dts_diag *diag);

/* Are only adapters trained? */
bool dts_model_adapts(const dts_execution *execution);

/* FLOPs of a product's forward, or of fused attention's two, 2 per multiply-add; 0 for others. Attention counts
 * min(window, keys) positions for every query. */
double dts_operator_flops(const dts_operator *o);

/* FLOPs of the matrix products (and attention) of one sample's forward pass through the whole model, for its last
 * queries positions (0: all): for MFU. The
 * convention: 2 per multiply-add, causal attention counted in full (within its window, too), recomputation not counted;
 * forward only. */
double dts_model_forward_flops(const dts_model *model, int64_t sequence_length, int64_t queries);

/* Of these FLOPs, the share that causal kernels leave out. */
double dts_model_masked_share(const dts_model *model, int64_t sequence_length, int64_t queries);

/* The same of one part (of a layer of its kind, or of an end), with experts that have equal shares and no padding. */
double dts_model_part_flops(const dts_model *model, dts_part part, int64_t sequence_length, int64_t queries);

/* Rows that a dispatcher on the device sends, one of a token to each rank that has experts of its: of one layer and
 * microbatch, those that the rank keeps too. *share: of the rows that there are for its experts. 0 and 1 without such a
 * dispatcher. */
double dts_model_sent_rows(const dts_model *model, const dts_execution *execution, double *share);

/* Bytes of the tensor handed from layer to layer: (micro_batch, sequence, hidden). */
double dts_model_boundary_B(const dts_model *model, const dts_execution *execution);

/* Is the residual stream fp32? So it is wherever weights in fp32 meet autocast: embeddings and norms are not cast. */
bool dts_model_wide_stream(const dts_execution *execution);

#endif
