/* Hardware profiles (GPU, cluster, stack) bound from YAML, and the time of one kernel on one GPU.
 *
 * hardware/ knows no layer and no model: a kernel is a shape or a number of bytes. All times in seconds, rates in
 * units per second, memory in bytes. */
#ifndef DTS_HARDWARE_HARDWARE_H
#define DTS_HARDWARE_HARDWARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numeric.h"
#include "config/schema.h"

/* ---- GPU ------------------------------------------------------------------------------------------------------ */

/* How far matrix products fall short of the peak; see gemm_cost.c for the formula each number enters. */
typedef struct dts_gemm_profile {
    int64_t tile_m, tile_n;        /* largest output tile of one thread block; smaller ones are derived from it */
    double max_efficiency;         /* of the dense peak, the whole chip busy: what power and clocks allow */
    double tile_efficiency;        /* of one multiprocessor's share of the peak: largest tile, long K */
    double vector_efficiency;      /* of the peak, formats without matrix units (fp32 on CUDA cores) */
    double narrow_factor;          /* both efficiencies of 8- and 4-bit formats, over those of half precision */
    double fp4_factor;             /* of 4-bit formats, over those of 8-bit ones */
    double promoted_factor;        /* fp8: time factor of products that move partial sums to fp32 as they go */
    double row_factor;             /* fp8: time factor of products with a scale for each row */
    double block_factor;           /* fp8: time factor of products with a scale for each block of 128 along K */
    double k_overhead;             /* prologue and epilogue of a tile, in elements of K of an fp16 product */
    double tile_overhead;          /* elements: a tile of m × n takes 1 + tile_overhead·(1/m + 1/n) times as long */
    double weight_gradient_factor; /* time factor of the weight-gradient product (accumulates, reads transposed) */
    double alignment_B;            /* rows of full speed are multiples of this many bytes */
    double misaligned_factor;      /* time factor when they are not */
    double vector_B;               /* rows that are no multiple of this cannot be read in whole vectors */
    double unvectored_factor;      /* time factor of those */
    double unpaired_efficiency;    /* of the peak where rows are odd numbers of 16-bit elements; 0: as unvectored */
    double floor_s;                /* shortest kernel */
} dts_gemm_profile;

/* How far fused attention falls short of the peak; see attention_cost.c. */
typedef struct dts_flash_profile {
    double head_dim_half;   /* elements: efficiency grows with the head dimension d as d / (d + head_dim_half) */
    double length_overhead; /* keys: fixed cost of one block of queries, in keys of work */
    int64_t tile;           /* queries of one thread block */
    double backward_length_overhead;
    int64_t backward_tile; /* 0: both as in forward */
    double wide_forward;   /* efficiency with heads wider than 128 over that at 128; 0: as head_dim_half says */
    double wide_backward;
    double lasting;        /* rate of FlashAttention-2 under load that lasts over that of bursts, which these are */
    double cudnn;          /* rate of cuDNN's fused attention over these */
    double cudnn_backward; /* the same in backward; 0: as in forward */
    double cudnn_half;     /* the same with heads of 64 and narrower, either way */
    double aiter;          /* rate of AITER's assembly over these, with wider heads; 0: it has none for this GPU */
    double aiter_backward; /* the same in backward; 0: as in forward */
    double narrow_forward, narrow_backward; /* in 8 over that in 16 bits; 0: not known */
} dts_flash_profile;

/* Times measured on the machine itself; see timings.h. */
typedef struct dts_timings dts_timings;

typedef struct dts_gpu {
    const char *name;
    const char *vendor;
    const char *architecture; /* volta, turing, ampere, hopper, blackwell, … */
    const char *estimated;    /* what of its rates nobody measured; NULL: nothing that matters */
    double compute_capability;
    int64_t multiprocessors;
    double clock_Hz;
    double memory_B;             /* what the driver reports as total, B */
    double memory_bandwidth_Bps; /* specification */
    double l2_B;
    double peak_flops[DTS_NUMERIC_COUNT]; /* dense, FLOP/s; 0: not supported natively. Keys peak.fp32, peak.fp16, … */
    dts_gemm_profile gemm;
    double memory_efficiency; /* achieved share of the memory bandwidth, large kernels */
    double memory_floor_s;    /* shortest memory-bound kernel */
    double gather_factor;     /* of kernels that put tokens in the order of their experts: time over that of others */
    double loss_factor;       /* the same of fused cross entropy */
    double norm_factor;       /* the same of LayerNorm, but for persistent kernels */
    double block_cast_factor; /* the same of casts with scales of blocks along both dimensions */
    double transpose_factor;  /* the same of casts to 8 bits that write a transposed copy, too */
    double dropout_factor;    /* the same of dropout, forward: it draws random numbers */
    double flash_efficiency_forward, flash_efficiency_backward; /* of the peak: head dimension 128, long sequences */
    dts_flash_profile flash;
    double context_B;          /* CUDA context and libraries, B (what nvidia-smi shows beyond the allocator) */
    double link_bandwidth_Bps; /* GPU-to-GPU, one direction, all links together; 0: none */
    int64_t link_count;
    double pcie_bandwidth_Bps; /* host link, one direction, achieved with pinned memory */
    double power_W;
    double spread;        /* relative standard deviation of the speed of matrix units among GPUs of this kind */
    dts_timings *timings; /* of products and attention; NULL: none */
} dts_gpu;

extern const dts_schema dts_gpu_schema;

typedef struct dts_gemm_shape {
    int64_t batch, m, n, k; /* (m, k) × (k, n), batch times */
    bool weight_gradient;
    double factor; /* of the time that computing takes; 0: 1 */
    bool *timed;   /* set where the time is a measured one; NULL: nobody asks */
} dts_gemm_shape;

/* Time of one matrix product, launch excluded. 0 when the GPU cannot compute in type. Rows are k and n long, those of a
 * weight gradient m and n (k, the tokens, is then the strided dimension). */
double dts_gpu_gemm_s(const dts_gpu *gpu, dts_numeric type, const dts_gemm_shape *shape);

/* Expected time of a product on the slowest of so many GPUs over that on an average one. */
double dts_gpu_slowest(const dts_gpu *gpu, int64_t gpus);

/* Stages of a pipeline that have the same work, in any unit. */
typedef struct dts_stage_load {
    double work;
    int64_t stages;
} dts_stage_load;

/* Expected time of the slowest stage over that of the stage with the most work on average GPUs; each stage has so many
 * GPUs. */
double dts_gpu_slowest_stage(const dts_gpu *gpu, int64_t gpus, const dts_stage_load *loads, size_t count);

/* Time of a kernel that moves bytes through the device memory and computes next to nothing. */
double dts_gpu_memory_s(const dts_gpu *gpu, double bytes);

typedef struct dts_attention_shape {
    int64_t batch, heads, kv_heads, head_dim;
    int64_t query_length, key_length;
    bool causal;
    bool backward;
    int64_t window; /* positions that a query sees; 0: all */
    bool chunked;   /* those of its own chunk of window positions; else the nearest ones */
    double speed;   /* of the kernel, over that of FlashAttention-2 in a burst; 0: 1 */
    bool narrow;    /* its operands have 8 bits */
    bool other;     /* it is not FlashAttention-2, which is what gpu.measured holds */
    bool *timed;    /* as of a product */
} dts_attention_shape;

/* Time of fused (flash) attention. */
double dts_gpu_attention_s(const dts_gpu *gpu, dts_numeric type, const dts_attention_shape *shape);

/* The peak that products of this type run against: tf32 where there is none and fp16 without matrix units run at the
 * fp32 rate; 0 when the GPU cannot compute in type. FLOP/s. */
double dts_gpu_peak_flops(const dts_gpu *gpu, dts_numeric type);

/* ---- cluster --------------------------------------------------------------------------------------------------- */

typedef enum dts_intra_kind { DTS_INTRA_NVSWITCH, DTS_INTRA_MESH, DTS_INTRA_PCIE, DTS_INTRA_NONE } dts_intra_kind;
typedef enum dts_transport { DTS_TRANSPORT_NONE, DTS_TRANSPORT_TCP, DTS_TRANSPORT_RDMA } dts_transport;
typedef enum dts_algorithm { DTS_ALGORITHM_AUTO, DTS_ALGORITHM_RING, DTS_ALGORITHM_TREE } dts_algorithm;

/* What GPUs do together over the links. */
typedef enum dts_collective {
    DTS_ALL_REDUCE,
    DTS_ALL_GATHER,
    DTS_REDUCE_SCATTER,
    DTS_BROADCAST,
    DTS_REDUCE,
    DTS_ALL_TO_ALL,
    DTS_BROADCAST_IN_TURN, /* one of several broadcasts that follow each other, each from another root */
    DTS_COLLECTIVE_COUNT
} dts_collective;

extern const char *const dts_collective_names[DTS_COLLECTIVE_COUNT + 1]; /* "all-reduce", … NULL-terminated */

/* GPU-to-GPU inside a node. */
typedef struct dts_intra {
    int kind;                /* dts_intra_kind */
    double bandwidth_Bps;    /* one GPU, one direction, specification; 0: the GPU's link_bandwidth */
    double efficiency;       /* achieved share, large messages */
    double hop_latency_s;    /* one step of a ring */
    double base_latency_s;   /* of any collective: launch, synchronisation */
    double p2p_latency_s;    /* of one send from GPU to GPU */
    double p2p_Bps;          /* what one send reaches; 0: what the links do */
    double fill_latency_s;   /* filling the pipeline of chunks of a collective, large messages */
    double fill_size_B;      /* message at which half of it is reached: chunks grow with the message up to a limit */
    double ring_tail_steps;  /* steps' worth of time that a ring takes beyond its sends (last receive and copy) */
    dts_list ring_bandwidth; /* double B/s: what a ring of 2, 3, … GPUs of a node reaches, for wirings where that
                                depends on the number; empty: bandwidth·efficiency for any */
    double channel_Bps;      /* what one channel of a ring copies at, alone */
    double in_switch_bandwidth_Bps; /* all-reduce inside the switch: bytes of the tensor over its time; 0: it cannot */
    double all_to_all_Bps;          /* what each GPU sends in an all-to-all, one direction; 0: as much as its port */
    double dispatch_row_s;          /* one token's row in the exchange of a dispatcher on the device … */
    double dispatch_rank_s;         /* … and more for each rank of its group */
    int64_t in_switch_ranks;        /* fewest members for which it is used */
    int64_t domain; /* GPUs that these links join where nodes share them (the trays of a rack); 0: those of a node */
} dts_intra;

/* Between nodes. */
typedef struct dts_inter {
    int transport; /* dts_transport */
    int64_t nics_per_node;
    double nics_per_gpu; /* adapters that one GPU can reach without crossing the node: 1 also where GPUs share one */
    double nic_bandwidth_Bps;     /* one NIC, one direction, specification */
    double node_goodput_Bps;      /* all NICs of a node, one direction, what many flows reach together */
    double all_to_all_efficiency; /* share of what a GPU sends to other nodes in a ring that it does in an all-to-all */
    double node_duplex_Bps;       /* both directions of a node together (host copies of TCP); 0: no such limit */
    double tree_efficiency;       /* share of a flow's cap that a tree reaches */
    double flow_cap_Bps;          /* one ring or flow, one direction; 0: none */
    double hop_latency_s;
    double base_latency_s;
    double fill_latency_s; /* as inside a node */
    double fill_size_B;
    int all_reduce; /* dts_algorithm: auto takes the faster one */
} dts_inter;

/* The host of a node, or one of several: dts_cluster_host() has what those of a node have together. */
typedef struct dts_host {
    double memory_B;
    double memory_bandwidth_Bps;
    int64_t cores;
    int64_t gpus;                                          /* that one host has; 0: a node is one host */
    int64_t gpus_per_pcie_switch;                          /* GPUs that share one host link; 1: each has its own */
    double nvme_capacity_B, nvme_read_Bps, nvme_write_Bps; /* all drives of a host; 0: none */
    bool launch_blocking;                                  /* every launch waits until the kernel is done */
} dts_host;

/* What is slower than its like: a GPU, or all of a node, and a node's network. */
typedef struct dts_straggler {
    int64_t node, gpu;                 /* from 0; gpu: of the node, -1: all */
    double slowdown, network_slowdown; /* kernels, and transfers, take so many times as long */
} dts_straggler;

typedef struct dts_cluster {
    const char *name;
    dts_gpu gpu;
    int64_t nodes;
    int64_t gpus_per_node;
    dts_intra intra;
    dts_inter inter;
    dts_host host;
    double price_usd_per_hour; /* one node, or price_gpus of its GPUs; 0: unknown */
    int64_t price_gpus;        /* 0: nodes are rented whole */
    int64_t idle_gpus;         /* of each node: rented, but not used */
    double jitter, gpu_spread; /* relative standard deviations: of a kernel's time, and of a GPU's speed */
    dts_list stragglers;       /* of dts_straggler */
    double mtbf_s;             /* of one GPU with its share of the node: failures that stop a job; 0: none */
    double restart_s;          /* from a failure until the checkpoint is read */
    double checkpoint_Bps;     /* one node, to storage that survives it */
    double storage_Bps;        /* all nodes together; 0: no such limit */
    dts_timings *timings;      /* of collectives; NULL: none */
} dts_cluster;

/* The hosts of a node together, as far as GPUs of it are used: a rack has one in each tray. */
dts_host dts_cluster_host(const dts_cluster *cluster);

/* What all nodes cost in an hour; 0: unknown. */
double dts_cluster_usd_per_hour(const dts_cluster *cluster);

/* GPUs that the links of a node can join: its own, or those of the rack whose trays are nodes. */
int64_t dts_cluster_domain(const dts_cluster *cluster);
/* GPUs of the job that are joined by them: nodes that share links count as one as far as they divide the nodes evenly.
 */
int64_t dts_cluster_joined(const dts_cluster *cluster);

/* DTS_FIELD_CUSTOM, "never" or a time; out: a double in s, 0 for never. */
dts_field_parser dts_mtbf_parse;

extern const dts_schema dts_cluster_schema;

/* ---- stack: the software that drives the hardware ---------------------------------------------------------------- */

typedef enum dts_attention_kind { DTS_ATTENTION_MATERIALISED, DTS_ATTENTION_FLASH } dts_attention_kind;

/* What selective recomputation repeats: the attention core, or every operator but fused attention and every second
 * matrix product (torchtitan). */
typedef enum dts_backward_overlap {
    DTS_BACKWARD_OVERLAP_NONE,
    DTS_BACKWARD_OVERLAP_SEQUENCE,
    DTS_BACKWARD_OVERLAP_ALL
} dts_backward_overlap;
typedef enum dts_selective_kind { DTS_SELECTIVE_ATTENTION, DTS_SELECTIVE_OPERATORS } dts_selective_kind;

/* What is captured and replayed with one launch: nothing, each layer's forward and backward of a microbatch, or all
 * forward and backward passes of an iteration. The optimizer's step is never part of it. */
typedef enum dts_cuda_graphs { DTS_GRAPHS_NONE, DTS_GRAPHS_LAYERS, DTS_GRAPHS_ITERATION } dts_cuda_graphs;

/* Of layers, the modules that are captured where not all of a layer is. Names, ended by NULL: as Megatron-Core's. */
typedef enum dts_graph_module {
    DTS_GRAPH_ATTN,
    DTS_GRAPH_MLP,
    DTS_GRAPH_MOE,
    DTS_GRAPH_MOE_ROUTER,
    DTS_GRAPH_MOE_PREPROCESS,
    DTS_GRAPH_MODULE_COUNT
} dts_graph_module;
extern const char *const dts_graph_module_names[DTS_GRAPH_MODULE_COUNT + 1];

/* How the products of a rank's experts run. STREAMS: one library call each, spread over four streams (Transformer
 * Engine's grouped linear layer). */
typedef enum dts_expert_style { DTS_EXPERTS_SEQUENTIAL, DTS_EXPERTS_STREAMS, DTS_EXPERTS_GROUPED } dts_expert_style;

typedef enum dts_optimizer_style {
    DTS_OPTIMIZER_PER_TENSOR,
    DTS_OPTIMIZER_MULTI_TENSOR,
    DTS_OPTIMIZER_FUSED
} dts_optimizer_style;

/* What a model does with its logits before a loss of its own (model/ends.c). */
typedef enum dts_shifted_logits {
    DTS_SHIFTED_LOGITS_NONE,
    DTS_SHIFTED_LOGITS_COPIED,
    DTS_SHIFTED_LOGITS_FP32
} dts_shifted_logits;

/* Where torch.autocast is entered, of plans whose half precision is not FSDP's: the stack's scripts may leave it out.
 */
typedef enum dts_autocast_use {
    DTS_AUTOCAST_ALWAYS,
    DTS_AUTOCAST_WITHOUT_MODEL_PARALLEL, /* not with tensor or pipeline parallelism */
    DTS_AUTOCAST_NEVER
} dts_autocast_use;

/* Which half formats accumulate their gradients in fp32. */
typedef enum dts_fp32_gradients {
    DTS_FP32_GRADIENTS_NEVER,
    DTS_FP32_GRADIENTS_BF16,
    DTS_FP32_GRADIENTS_ALWAYS
} dts_fp32_gradients;

/* Transfers between stages hold the compute stream, or not, or not where schedules split backward. */
typedef enum dts_p2p_overlap {
    DTS_P2P_BLOCKS,
    DTS_P2P_OVERLAPS,
    DTS_P2P_OVERLAPS_SPLIT,
    DTS_P2P_OVERLAPS_INTERLEAVED
} dts_p2p_overlap;

/* What adds a new gradient to the stored one: the weight-gradient product itself, or a kernel per tensor (HALF: only
 * where gradients are stored in half, because the fused product writes fp32). */
typedef enum dts_accumulate {
    DTS_ACCUMULATE_PRODUCT,
    DTS_ACCUMULATE_KERNEL,
    DTS_ACCUMULATE_KERNEL_HALF
} dts_accumulate;

/* Does async_tensor cut the transfers of backward (and of recomputation there) into chunks? QUANTISED: those around 8-
 * and 4-bit products. */
typedef enum dts_async_backward {
    DTS_ASYNC_BACKWARD_NEVER,
    DTS_ASYNC_BACKWARD_QUANTISED,
    DTS_ASYNC_BACKWARD_ALWAYS
} dts_async_backward;

/* Whose outputs of all microbatches stay until the step ends. */
typedef enum dts_kept_outputs { DTS_KEPT_OUTPUTS_NONE, DTS_KEPT_OUTPUTS_LAST, DTS_KEPT_OUTPUTS_ALL } dts_kept_outputs;

/* Does the compute stream wait for a transfer of ring attention where it is launched, instead of where it is read?
 * COMPILED: where the layers are compiled. */
typedef enum dts_ring_waits { DTS_RING_WAITS_NEVER, DTS_RING_WAITS_COMPILED, DTS_RING_WAITS_ALWAYS } dts_ring_waits;

/* What its users call data parallelism with all states sharded. */
typedef enum dts_fsdp_called { DTS_CALLED_FSDP, DTS_CALLED_ZERO3 } dts_fsdp_called;

/* Whose kernels dispatch tokens from the device: who launches must know, time does not. */
typedef enum dts_device_dispatcher { DTS_DISPATCHER_DEEPEP, DTS_DISPATCHER_HYBRIDEP } dts_device_dispatcher;

/* The launcher without which this software does not start: what it cannot express cannot be run. */
typedef enum dts_stack_launcher {
    DTS_LAUNCHED_ANYHOW, /* a library, whose users write their own script, or unknown */
    DTS_LAUNCHED_BY_MEGATRON,
    DTS_LAUNCHED_BY_DEEPSPEED,
    DTS_LAUNCHED_BY_TORCHTITAN
} dts_stack_launcher;

/* What FSDP's kernels move besides the collectives: nothing, one flat tensor per unit whose gradient is put together
 * from its views' and divided (FSDP1), or parameters copied out of the gathered buffer and gradients copied into the
 * scattered one (FSDP2). */
typedef enum dts_fsdp_copies { DTS_FSDP_COPIES_NONE, DTS_FSDP_COPIES_FLAT, DTS_FSDP_COPIES_TENSORS } dts_fsdp_copies;

/* Where the scales of fp8 products come from: the largest value of a tensor as it is, or of earlier steps' tensors; of
 * each row along the inner dimension, with products for weight gradients narrow or wide; of blocks of 128 (x 128 in
 * weights). */
typedef enum dts_fp8_recipe {
    DTS_FP8_TENSORWISE,
    DTS_FP8_DELAYED,
    DTS_FP8_ROWWISE,
    DTS_FP8_ROWWISE_WIDE_GRADIENT,
    DTS_FP8_BLOCKWISE
} dts_fp8_recipe;

/* More tensor-parallel ranks than heads of keys and values: an error; parts of heads, whose outputs are gathered; all
 * heads on every rank. */
typedef enum dts_few_kv_heads {
    DTS_FEW_KV_HEADS_REFUSED,
    DTS_FEW_KV_HEADS_GATHERED,
    DTS_FEW_KV_HEADS_WHOLE
} dts_few_kv_heads;

/* Attention and feed-forward block side by side under tensor parallelism: each reduces its output and the gradient of
 * its input; partial outputs are added and reduced once; gradients of a shared input, too. */
typedef enum dts_parallel_reduction {
    DTS_PARALLEL_REDUCES_EACH,
    DTS_PARALLEL_REDUCES_OUTPUTS,
    DTS_PARALLEL_REDUCES_BOTH
} dts_parallel_reduction;

typedef struct dts_stack {
    const char *name;
    double launch_s;          /* host time to issue one kernel from the training loop */
    double backward_launch_s; /* the same from the autograd engine (C++) */
    double step_host_s;       /* host time per optimizer step outside the kernels: loop, zero_grad, logging */
    int cuda_graphs;          /* dts_cuda_graphs */
    dts_list graph_modules;   /* const char *: of layers, what graphs hold; empty: all of each */
    bool compile;
    bool complex_rotary;  /* rotary embedding as a product of complex numbers in fp32, whatever is fused or compiled */
    bool matrix_rotary;   /* … as products with 2 × 2 matrices in fp32 that kernels of their own add up */
    bool widens_norm;     /* inputs of norms are cast to fp32 by a kernel of their own */
    bool scores_buffer;   /* the product that makes attention scores is handed a tensor of their size, kept for good */
    int64_t softmax_keys; /* most keys of the kernel that fuse_softmax stands for, which takes half precision and
                             multiples of four heads only; 0: it takes all */
    bool
        positions_first; /* queries, keys and values are copied to samples first for fused attention, its output back */
    bool keeps_joined_qkv;    /* values are a view of the joined product's output, which stays whole with them */
    bool keeps_softmax_input; /* eager softmax keeps its input for backward beside its output (PyTorch before 1.11) */
    bool repeats_keys;        /* keys and values are copied to all query heads before fused attention, too */
    int few_kv_heads;         /* dts_few_kv_heads */
    /* BERT, where the model does not say */
    bool bert_fine_tunes;              /* with a classification head */
    dts_list bert_pretraining_lengths; /* int64_t: sequences of other lengths are fine-tuned; none: fine_tunes says */
    double masked_share;               /* of the positions whose logits are computed in pre-training; 0: all */
    bool frees_logits;                 /* the training loop drops the model's output before backward */
    int shifted_logits;                /* dts_shifted_logits */
    bool loss_in_place;                /* the vocabulary-parallel loss overwrites its fp32 logits step by step */
    bool joined_adapters;              /* one low-rank adapter for a product that stands for several projections */
    bool loss_of_split;                /* that loss also without tensor parallelism */
    bool z_loss;                       /* the loss has a term in the sum of exponentials */
    int64_t loss_metrics;              /* cross-entropies of the logits that the training loop computes to be logged */
    bool batch_waits;   /* the host waits for all kernels before it when it takes a microbatch on a first stage */
    bool compile_loss;  /* with compile: the loss, too, not only the layers */
    int attention;      /* dts_attention_kind */
    double flash_speed; /* of fused attention, over FlashAttention-2 (which the GPU profile describes) */
    double flash_narrow_speed;  /* the same with heads of 64 and less; 0: the same */
    bool cudnn_attention;       /* fused attention is cuDNN's where that is faster */
    bool aiter_attention;       /* fused attention is AITER's in assembly where the GPU has it */
    int selective;              /* dts_selective_kind */
    bool recompute_stops_early; /* recomputation ends when all that backward needs has been saved */
    bool tf32;                  /* fp32 products run as tf32 where the GPU can */
    int autocast;               /* dts_autocast_use: else amp-…, and 8 and 4 bits around their products, is fp32 */
    bool master_weights; /* half precision (with or without amp-) is not autocast: weights and activations in half, fp32
                            master weights and moments with the optimizer (Megatron-LM, apex O2, DeepSpeed) */
    int fp32_gradients;  /* dts_fp32_gradients, with master_weights: accumulated and reduced in fp32, else in half */
    bool keeps_half_gradients; /* with fp32 gradients: the half ones stay beside them */
    /* fusions: each removes whole memory passes and launches */
    bool fuse_bias_gelu, fuse_bias_dropout_add, fuse_softmax, fuse_norm, fuse_rotary, fuse_loss, fuse_permute;
    bool fuse_scaled_rotary, fuse_clamp, fuse_expert_bias, fuse_epilogues;
    bool persistent_norm;  /* LayerNorm keeps its rows in registers (apex FastLayerNorm, Transformer Engine) */
    int experts;           /* dts_expert_style */
    int64_t experts_sms;   /* multiprocessors that exchanges of experts take from products of another pass */
    double experts_host_s; /* host time from the token counts of an expert layer to the launches that need them */
    int64_t device_dispatch_domain; /* GPUs joined by links from which on a dispatcher on the device needs no counts on
                                       the host; 0: none does */
    bool device_dispatch_reads;     /* … but the counts of rows that came, where products are library calls */
    bool device_dispatch_waits;     /* … before they are sent: the host makes room for them (DeepEP) */
    int device_dispatcher;          /* dts_device_dispatcher */
    bool shared_expert_overlap;     /* shared experts run beside the exchanges of tokens */
    bool tokens_cross_once;         /* a token for several experts of a node crosses the network once (DeepEP) */
    bool separate_bias; /* biases are added by a kernel of their own (PyTorch before 1.12), else by the product */
    int tensor_backward_overlap; /* dts_backward_overlap: tensor-parallel transfers of backward run beside the products
                                    of the layer they belong to */
    bool separate_qkv;           /* query, key, value as three products */
    bool dropout;                /* dropout kernels and masks are there */
    bool mask_bool_bytes;        /* dropout masks of one byte per element (else bit-packed) */
    /* DDP */
    double ddp_bucket_B, ddp_first_bucket_B;
    double ddp_staging_B;         /* gradients pass through a buffer of this size on their way into the reduction */
    bool gradient_as_bucket_view; /* gradients live in the buckets: no second copy */
    bool ddp_whole_fp32;          /* ZeRO-1: gradients stored in fp32 are all-reduced, not scattered */
    bool ddp_owns_tensors;        /* ZeRO-1: whole tensors belong to ranks, which broadcast them */
    bool ddp_keeps_fresh;         /* what backward makes stays beside the buckets until the step is done */
    bool ddp_overlap;             /* a bucket is reduced as soon as it is full, else when backward is through */
    bool ddp_overlap_gather;      /* ZeRO-1: what a step has updated is gathered beside the next forward */
    /* 8- and 4-bit products */
    int fp8_recipe;              /* dts_fp8_recipe, of fp8 */
    int fp8_shared_scales;       /* none, gathered, all: operands whose scale tensor-parallel ranks agree on */
    bool fp8_amax_kernel;        /* scales of current tensors: their largest value is found by a kernel of its own */
    bool fp8_cached_weights;     /* weights are cast once a step and kept beside the wide ones */
    bool fp8_primary_weights;    /* weights exist in the narrow format only (and as the optimizer's master copies) */
    bool fp8_half_weights;       /* weights, gradients and states are in bf16, without master copies */
    double fp8_transpose_factor; /* time of casts that write a transposed copy, too, over that of others */
    double fp8_expert_host_s;    /* host time for each kernel of an expert's cast, beside its launch */
    bool fp8_dispatch;           /* tokens are cast before they are sent to the ranks of their experts */
    bool fp8_activation_input;   /* inputs of fused gated activations are kept in one byte an element */
    bool fp8_all_gather;         /* sharded parameters are cast before they are gathered */
    bool fp8_attention;          /* fused attention reads 8 bits, too, with a scale for each tensor */
    int parallel_blocks;         /* dts_parallel_reduction */
    bool gathers_each;           /* sequence parallel: each product of an input gathers it */
    bool keeps_gathered;         /* sequence parallel: gathered inputs are kept for backward */
    bool whole_embedding;        /* tensor parallel: each rank has the whole table of tokens */
    bool gathers_logits;         /* tensor parallel: each rank computes the loss of the whole vocabulary */
    bool tensor_copies;          /* sequence-parallel transfers of whole tensors are joined and cut by copies */
    int async_backward;          /* dts_async_backward: are they cut into chunks by async_tensor in backward, too */
    double chunk_sum_factor;     /* time of a kernel that adds up a few numbers each over that of its bytes */
    bool tensor_overlap; /* parallelism.async_tensor wherever it is possible, also where the plan does not ask */
    /* Transformer Engine's user buffers: multiprocessors that transfers beside products take; 0: copy engines move them
     */
    int64_t ub_qkv_dgrad, ub_qkv_wgrad, ub_fc1_dgrad, ub_fc1_wgrad;
    int64_t ub_proj_fprop, ub_fc2_fprop; /* kept free of these products, 16-bit formats; 0: ring exchange */
    int64_t ub_splits;                   /* chunks of those products */
    /* context parallelism, method ring */
    int ring_waits;           /* dts_ring_waits */
    bool ring_gathers;        /* keys and values of all ranks are gathered at once, not passed on */
    bool ring_copies;         /* they are made contiguous and joined by copies */
    bool ring_operations;     /* sums are the framework's operations, a kernel each unless compiled */
    bool ring_fp32_gradients; /* their gradients travel by themselves, in fp32, and a last time home */
    /* FSDP */
    int64_t fsdp_prefetch;       /* all-gathers issued ahead in backward */
    int64_t fsdp_zero3_prefetch; /* the same with zero3; < 0: as many */
    bool fsdp_forward_prefetch;
    bool fsdp_limit_all_gathers;
    bool fsdp_gathers_in_order;    /* a gather waits for the kernels that were issued before it */
    bool fsdp_mixed_precision;     /* half precision is FSDP's: fp32 shards, half gathered parameters, no autocast */
    bool fsdp_gathers_stored;      /* without that parameters are gathered as they are stored, and cast by autocast */
    bool fsdp_reduce_fp32;         /* with it: gradients are reduced in fp32, else in half */
    bool fsdp_reduce_half_fp32;    /* gradients of half parameters are reduced in fp32 */
    int fsdp_copies;               /* dts_fsdp_copies */
    double fsdp_unit_host_s;       /* host time around every gather and scatter of a unit: hooks, views, stream waits */
    double fsdp_zero3_host_s;      /* on top of it with zero3: DeepSpeed's hooks around every module */
    double fsdp_adapter_host_s;    /* the same for the modules of each adapter of the unit */
    bool fsdp_reshard_in_pipeline; /* parameters are freed between forward and backward in pipelines too */
    bool fsdp_root_reshards;       /* the root unit is freed after forward, too */
    bool fsdp_ends_apart;          /* embedding and head are units of their own, else the root's */
    int fsdp_called;               /* dts_fsdp_called */
    int launcher;                  /* dts_stack_launcher */
    dts_list schedules;            /* const char *: of pipelines, that its launcher offers; empty: nobody has said */
    /* pipeline */
    int p2p_overlap;                /* dts_p2p_overlap: do transfers not hold the compute stream */
    int64_t p2p_sms;                /* multiprocessors that such a transfer holds on either side */
    int64_t p2p_node_sms;           /* the same where all stages lie on one node */
    bool uniform_stages;            /* a plan that leaves the partition open gets even stages */
    bool parameter_stages;          /* … stages that end as soon as they pass their share of the parameters */
    bool product_stages;            /* … of the weights of products, the head's included */
    bool scatter_gather;            /* tensor-parallel ranks each send a share of the boundary and gather it behind */
    bool pipeline_host_waits;       /* the host waits for what a stage receives, and for all kernels before it */
    int64_t pipeline_chunk_kernels; /* extra kernels per microbatch and stage (scatter, gather, stream waits) */
    double pipeline_launch_factor;  /* launches in such a process take this times as long: its threads share a lock */
    bool pipeline_single_process; /* one process drives all stages (torch Pipe): their forward passes are issued by one
                                     thread in turn, backward by the autograd thread of each GPU */
    bool pipeline_defers_reduction; /* FSDP's gradients wait whole for the last microbatch */
    bool pipeline_buffers;          /* what a stage receives has a buffer for each microbatch, kept with its gradient */
    int pipeline_keeps_outputs;     /* dts_kept_outputs */
    int accumulate_kernel;          /* dts_accumulate */
    bool accumulate_casts;          /* as kernels: half gradients are cast to a copy in fp32, and that is added */
    bool zero_grad_to_none; /* gradients are dropped after the step: the first one of an iteration is stored, not added
                             */
    /* optimizer */
    int optimizer_style; /* dts_optimizer_style */
    bool gradient_clipping;
    bool clips_microbatches; /* every microbatch's gradients are unscaled and clipped before they are added up */
    bool post_validation;    /* stages step before the global numbers are known, and check them in the next iteration */
    double optimizer_launch_s; /* host time to issue one kernel of the step: a tight loop; 0: launch_s */
    double cpu_step_Bps;   /* what a step on the CPU reads and writes in one process; 0: as fast as the host's memory */
    double cpu_thread_Bps; /* the same of one of its threads; 0: any */
    bool splits_qkv;       /* queries, keys and values of one weight by themselves */
    int64_t newton_schulz_steps; /* Muon: iterations that orthogonalise a matrix */
    int64_t cpu_threads;         /* of a process, where a node has several; 0: its share of the cores */
    /* caching allocator */
    double allocator_round_B;        /* block rounding, B */
    double allocator_reserve_factor; /* reserved over allocated in steady state */
    bool allocator_expandable;       /* segments grow and shrink: what is free serves any size */
    double allocator_page_s;         /* of an expandable segment, each page behind the first of a request */
    double slow_path_s;              /* cost of one cudaFree + cudaMalloc round */
    int64_t communication_sms;       /* multiprocessors that a running collective takes from compute */
    int64_t tensor_overlap_sms;      /* the same of tensor-parallel collectives that overlap backward */
    double communication_memory;     /* B of device memory that it moves for each byte that a GPU sends */
    double context_B;                /* NCCL buffers and framework workspaces beyond the GPU's own context, B */
} dts_stack;

extern const dts_schema dts_stack_schema;

/* Can the stack's launcher run pipelines in this order? True where nobody has said which it can. */
bool dts_stack_offers(const dts_stack *stack, const char *schedule);

/* Do graphs hold modules of layers only, and this one (stack_graphs.c)? All that layers or passes launch? */
bool dts_stack_captures_modules(const dts_stack *stack);
bool dts_stack_captures(const dts_stack *stack, dts_graph_module module);
bool dts_stack_captures_all(const dts_stack *stack);

/* What communicators and libraries hold beyond the GPU's own context, B: nothing to speak of where there is one GPU,
 * which needs no communicator. */
double dts_stack_context_B(const dts_stack *stack, const dts_cluster *cluster);

/* Time of the products of shape->batch experts, launches excluded; sum_B: bytes of an element of the stored gradient
 * that a weight gradient is added to, 0: none. */
double dts_gpu_expert_gemm_s(const dts_gpu *gpu, dts_numeric type, const dts_gemm_shape *shape, dts_expert_style style,
                             double sum_B);

#endif
