/* The plan: how a training job is laid over the GPUs. The structs that a scenario binds, the rules that make a plan
 * legal, and what follows from it (degrees, placement, stages). */
#ifndef DTS_PLAN_PLAN_H
#define DTS_PLAN_PLAN_H

#include "hardware/hardware.h"
#include "model/model.h"
#include "network/network.h"
#include "schedule/schedule.h"

typedef enum dts_precision {
    DTS_PRECISION_FP32,
    DTS_PRECISION_TF32,
    DTS_PRECISION_FP16, /* everything in fp16, no master copy */
    DTS_PRECISION_BF16,
    DTS_PRECISION_AMP_FP16, /* fp32 master weights, autocast */
    DTS_PRECISION_AMP_BF16,
    DTS_PRECISION_FP8, /* as amp-bf16, with the layers' linear products in this format; so are the next two */
    DTS_PRECISION_MXFP8,
    DTS_PRECISION_NVFP4,
    DTS_PRECISION_AMP_FP8 /* as fp8: Composer's name for it */
} dts_precision;

typedef enum dts_optimizer {
    DTS_OPTIMIZER_SGD,
    DTS_OPTIMIZER_SGD_MOMENTUM,
    DTS_OPTIMIZER_ADAM,
    DTS_OPTIMIZER_ADAMW,
    DTS_OPTIMIZER_ADAFACTOR,
    DTS_OPTIMIZER_ADAMW_8BIT,
    DTS_OPTIMIZER_LAMB,
    DTS_OPTIMIZER_LION,
    DTS_OPTIMIZER_ADAFACTOR_MOMENTUM, /* with a first moment */
    DTS_OPTIMIZER_NONE,               /* forward and backward only */
    DTS_OPTIMIZER_MUON                /* of the layers' matrices; AdamW of all else */
} dts_optimizer;

/* EXCEPT_LAST: full for all microbatches but the last, whose backward comes at once (torch Pipe's default).
 * SQRT: one checkpoint per √n of the n layers of a chunk, so that √n inputs and the activations of √n layers live (Chen
 * et al., "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.1). */
typedef enum dts_recompute_kind {
    DTS_RECOMPUTE_NONE,
    DTS_RECOMPUTE_SELECTIVE,
    DTS_RECOMPUTE_FULL,
    DTS_RECOMPUTE_EXCEPT_LAST,
    DTS_RECOMPUTE_SQRT,
    DTS_RECOMPUTE_EVERY,
    DTS_RECOMPUTE_FIRST /* the first layers of every chunk in full, the others not at all (Megatron-LM's block method)
                         */
} dts_recompute_kind;

/* Parts of a layer that selective recomputation can repeat (Megatron-Core's recompute_modules). */
typedef enum dts_recompute_module {
    DTS_MODULE_CORE_ATTENTION,
    DTS_MODULE_LAYERNORM,
    DTS_MODULE_MLA_UP_PROJ,
    DTS_MODULE_MLP,
    DTS_MODULE_MOE,
    DTS_MODULE_MOE_ACT,
    DTS_MODULE_SHARED_EXPERTS,
    DTS_MODULE_COUNT
} dts_recompute_module;

extern const char *const dts_recompute_module_names[DTS_MODULE_COUNT + 1]; /* "core_attn", … NULL-terminated */

/* The module of a name of length bytes; -1: none has it. */
int dts_recompute_module_of(const char *name, size_t length);

/* Adds the names of modules (bits of dts_recompute_module), apart from each other by between. */
void dts_recompute_write_modules(int64_t modules, const char *between, dts_text *out);

typedef struct dts_recompute {
    int kind;        /* dts_recompute_kind */
    int64_t layers;  /* EVERY: one checkpoint per this many; FIRST: this many are recomputed */
    int64_t modules; /* SELECTIVE: a bit for each dts_recompute_module; 0: what the stack's selective says */
} dts_recompute;

/* How frozen weights of the layers' products are stored beside adapters; NATIVE: in the format of the products. */
typedef enum dts_base_format {
    DTS_BASE_NATIVE,
    DTS_BASE_INT8,
    DTS_BASE_FP8,
    DTS_BASE_NF4,
    DTS_BASE_FP32,
    DTS_BASE_GPTQ
} dts_base_format;

/* Where adapters have their dropout: in front of them, or behind. */
typedef enum dts_dropout_position { DTS_DROPOUT_PRE, DTS_DROPOUT_POST } dts_dropout_position;

/* training.adapters: what is trained instead of the weights. */
typedef struct dts_adapters {
    int64_t rank; /* of low-rank adapters; 0: none */
    int targets;  /* dts_adapter_targets */
    int base;     /* dts_base_format */
    bool double_quantisation;
    bool dropout;
    int dropout_position; /* dts_dropout_position */
    bool fp32;            /* adapters of half weights are stored and run in fp32 */
} dts_adapters;

/* INFERENCE: forward passes only, to the model's outputs. DECODE: the same for one new token of each sample, behind
 * sequence_length positions in a cache of keys and values. */
typedef enum dts_mode { DTS_MODE_TRAIN, DTS_MODE_INFERENCE, DTS_MODE_DECODE } dts_mode;

/* How keys and values are kept for later tokens. AUTO: in the format of activations to generate, else not at all. */
typedef enum dts_kv_cache { DTS_KV_CACHE_AUTO, DTS_KV_CACHE_NONE, DTS_KV_CACHE_NATIVE, DTS_KV_CACHE_FP8 } dts_kv_cache;

typedef struct dts_training {
    int mode;                /* dts_mode */
    int64_t global_batch;    /* samples per optimizer step, all replicas */
    int64_t micro_batch;     /* samples per forward pass of one replica */
    int64_t sequence_length; /* tokens per sample */
    int precision;           /* dts_precision */
    int kv_cache;            /* dts_kv_cache */
    int optimizer;           /* dts_optimizer */
    dts_recompute recompute;
    dts_adapters adapters;
    double tokens;                /* of the whole run; 0: not asked */
    double checkpoint_interval_s; /* training between two checkpoints; 0: the best */
    bool checkpoint_asynchronous; /* written beside training */
} dts_training;

typedef enum dts_data_parallel {
    DTS_DP_SINGLE_PROCESS,
    DTS_DP_DDP,
    DTS_DP_ZERO1,
    DTS_DP_ZERO2,
    DTS_DP_ZERO3,
    DTS_DP_FSDP
} dts_data_parallel;

/* AUTO: as the stack cuts, else balanced. */
typedef enum dts_partition_kind {
    DTS_PARTITION_AUTO,
    DTS_PARTITION_BALANCED,
    DTS_PARTITION_UNIFORM,
    DTS_PARTITION_GIVEN
} dts_partition_kind;

typedef struct dts_partition {
    int kind;        /* dts_partition_kind */
    int64_t *layers; /* GIVEN: layers of each virtual stage */
    size_t count;
} dts_partition;

/* Which ranks are neighbours, innermost first. Megatron-LM numbers tensor, data, pipeline: pipelines cross nodes.
 * torch's single-machine Pipe needs tensor, pipeline, data: a pipeline stays inside a node. */
typedef enum dts_rank_order { DTS_ORDER_TENSOR_DATA_PIPELINE, DTS_ORDER_TENSOR_PIPELINE_DATA } dts_rank_order;

/* How context-parallel ranks share attention: K and V go round a ring, heads are exchanged for positions, or K and V
 * are gathered (plan/lower/context.c). */
typedef enum dts_context_method { DTS_CONTEXT_RING, DTS_CONTEXT_ALL_TO_ALL, DTS_CONTEXT_ALL_GATHER } dts_context_method;

/* schedule: a name, or an order from a file. */
typedef struct dts_schedule_choice {
    const char *name;          /* a name of schedule/, or the path of the file */
    const dts_schedule *order; /* NULL: by name */
} dts_schedule_choice;

/* What FSDP gathers and frees together: a layer, or each linear layer inside by itself. */
typedef enum dts_fsdp_unit { DTS_FSDP_UNIT_LAYER, DTS_FSDP_UNIT_LINEAR } dts_fsdp_unit;

/* When gradients are reduced: after every microbatch, or once a step (no_sync of DDP and FSDP). AUTO: once a step where
 * all of them are kept whole (ddp, zero1), once a flush where the stack's pipelines keep FSDP's whole, else after every
 * microbatch. */
typedef enum dts_reduce_when {
    DTS_REDUCE_AUTO,
    DTS_REDUCE_EACH_STEP,
    DTS_REDUCE_EACH_MICROBATCH,
    DTS_REDUCE_EACH_FLUSH /* of a pipeline: with the last microbatch of each */
} dts_reduce_when;

/* Does FSDP free gathered parameters between forward and backward? AUTO: unless the stack does not in pipelines. */
typedef enum dts_reshard { DTS_RESHARD_AUTO, DTS_RESHARD_YES, DTS_RESHARD_NO } dts_reshard;

typedef struct dts_parallelism {
    int64_t data, tensor, context, expert, pipeline; /* 0: left out, follows from the GPU count */
    int64_t expert_tensor;                           /* ranks that split each expert */
    int64_t virtual_stages;                          /* 0: left out, the schedule's own */
    int64_t flushes;                                 /* of the pipeline, in one optimizer step */
    int context_method;                              /* dts_context_method */
    int data_parallel;                               /* dts_data_parallel */
    int reshard_after_forward;                       /* dts_reshard */
    int gradient_sync;                               /* dts_reduce_when */
    int fsdp_unit;                                   /* dts_fsdp_unit */
    int64_t shard_group;                             /* 0: all */
    bool sequence;
    bool async_tensor;
    dts_schedule_choice schedule;
    int schedule_costs; /* dts_schedule_costs */
    dts_partition partition;
    int order; /* dts_rank_order */
} dts_parallelism;

/* What an order that follows costs is made for: the plan's own passes as a framework would measure them, or F = B = W
 * without transfers. */
typedef enum dts_schedule_costs { DTS_SCHEDULE_COSTS_MEASURED, DTS_SCHEDULE_COSTS_EQUAL } dts_schedule_costs;

typedef enum dts_offload_target { DTS_OFFLOAD_NONE, DTS_OFFLOAD_CPU, DTS_OFFLOAD_NVME } dts_offload_target;

typedef struct dts_offload {
    int parameters, gradients, optimizer, activations; /* dts_offload_target */
    int64_t activation_layers; /* the first layers, whose activations alone are offloaded; 0: those of all */
    int64_t prefetch;          /* layers that copies of activations run ahead; 0: copies hold up what needs them */
    bool pin_memory;
} dts_offload;

typedef struct dts_input {
    int64_t workers;         /* processes that make batches, for each training process; 0: it makes them itself */
    int64_t prefetch_factor; /* batches that each may be ahead */
    double sample_cost_s;    /* a core's time for one sample; 0: samples are there */
    double sample_B;         /* of one sample on its way to the GPU; 0: of its tokens and their targets */
    bool pin_memory;
} dts_input;

extern const dts_schema dts_training_schema, dts_parallelism_schema, dts_offload_schema, dts_input_schema;

/* How finely passes are simulated: every kernel and its launch; a layer's forward or backward as one task; a chunk's
 * forward or backward of one microbatch as one task. */
typedef enum dts_detail { DTS_DETAIL_AUTO, DTS_DETAIL_KERNEL, DTS_DETAIL_LAYER, DTS_DETAIL_BLOCK } dts_detail;

extern const char *const dts_detail_names[]; /* "auto", "kernel", … NULL-terminated */

/* What a plan is made from; borrowed. */
typedef struct dts_job {
    const dts_model *model;
    const dts_cluster *cluster;
    const dts_stack *stack;
    const dts_training *training;
    const dts_parallelism *parallelism;
    const dts_offload *offload;
    const dts_input *input;
} dts_job;

/* Who makes fp32 weights half for the products: autocast, FSDP (half gathered parameters of fp32 shards), or nobody, so
 * that training is in fp32 whatever training.precision asks for (stack.autocast). */
typedef enum dts_half { DTS_HALF_BY_AUTOCAST, DTS_HALF_BY_FSDP, DTS_HALF_BY_NOBODY } dts_half;

/* Bytes per element and number formats that follow from training.precision. */
typedef struct dts_storage {
    dts_numeric compute;     /* of the matrix products */
    dts_numeric product;     /* of the layers' linear products: as compute, or 8 or 4 bits */
    dts_numeric activation;  /* of stored activations */
    dts_numeric adapter;     /* of the products of adapters */
    double parameter_B;      /* what the model's own parameters take, B per element */
    double gradient_B;       /* as stored, B per element */
    double fresh_gradient_B; /* as backward makes them, B per element */
    double reduce_B;         /* gradients on the wire, B per element */
    double optimizer_B;      /* optimizer states (and a separate master copy), B per element */
    double step_B;           /* what the optimizer computes with: its own copy of an element, B */
    bool autocast;           /* parameters are cast for each use (AMP) */
    bool mixed;              /* fp32 weights, of which the precision wants half copies */
    dts_half half;           /* who makes those */
} dts_storage;

/* fsdp: gradients are reduced as FSDP does. */
dts_storage dts_storage_of(const dts_training *training, const dts_stack *stack, const dts_gpu *gpu, bool fsdp,
                           dts_half half);

typedef struct dts_plan dts_plan;

/* Is half precision asked for, and does nobody cast? */
bool dts_plan_stays_wide(const dts_plan *plan);

/* A GPU's, in the format that products have. */
double dts_plan_peak_flops(const dts_plan *plan);

/* A consecutive part of the model that one pipeline rank runs as one chunk. */
typedef struct dts_chunk {
    bool embedding, head;
    int64_t first_layer, layers; /* first_layer from 0 */
} dts_chunk;

/* An asynchronous schedule is measured in its steady state: after this many microbatches per stage. */
enum { DTS_PLAN_FILL = 2 };

/* Parameters by who holds copies of them. Experts may have other replicas than all other parameters: the ranks of an
 * expert-data group (rules_experts.c). */
typedef enum dts_parameter_set { DTS_SET_COMMON, DTS_SET_EXPERTS, DTS_SET_COUNT } dts_parameter_set;

/* The plan with everything decided. */
struct dts_plan {
    dts_job job;
    int64_t gpus, gpus_per_node; /* nodes that share links are one here */
    int64_t data, tensor, context, pipeline;
    int64_t expert;         /* ranks that share one copy of the experts, each whole experts */
    int64_t expert_tensor;  /* ranks that share each expert */
    int64_t virtual_stages; /* chunks of a rank */
    int64_t stages;         /* pieces of the model: pipeline · virtual_stages, or pipeline with two directions */
    int64_t copies;         /* of each piece on the pipeline's ranks: 2 with two directions, else 1 */
    int64_t replicas;       /* data · context · copies: ranks that hold the same parameters */
    int64_t microbatches;   /* per replica and iteration */
    int64_t flushes;        /* of the pipeline: runs of its schedule, each of microbatches / flushes */
    int64_t passes;         /* microbatches that are simulated: more where filling and draining are not counted */
    bool async_tensor;      /* tensor-parallel communication in chunks beside the products */
    dts_storage storage;
    dts_placement tensor_group;      /* ranks and nodes of one group */
    dts_placement context_group;     /* the same */
    dts_placement *data_groups;      /* [pipeline] the same for each stage's data-parallel group */
    int64_t shards;                  /* ranks that share one copy of what is sharded: replicas, or the shard group */
    dts_placement *shard_groups;     /* [pipeline] those ranks; as data_groups without hybrid sharding */
    dts_placement *replica_groups;   /* [pipeline] hybrid sharding: the ranks that hold the same shard */
    int64_t replica_groups_per_node; /* of one stage, how many of these share a node's network */
    int64_t expert_replicas;      /* ranks that share one copy of the same experts, when sharded; shards where experts
                                     lie as all other parameters do */
    dts_placement *expert_groups; /* [pipeline] ranks that hold different experts and exchange tokens */
    dts_placement *expert_tensor_groups;    /* [pipeline] ranks that hold parts of the same experts */
    dts_placement *expert_data_groups;      /* [pipeline] ranks that hold the same experts, inside a shard group */
    int64_t expert_groups_per_node;         /* of one stage, how many of these share a node's network */
    int64_t expert_tensor_groups_per_node;  /* the same */
    double expert_crossing;                 /* of the bytes for other nodes, the share that crosses the network */
    double expert_rows;                     /* of one exchange, where the device sends row by row; else 0 */
    int64_t expert_data_groups_per_node;    /* the same */
    int64_t *stage_node;                    /* [pipeline] node of each stage of replica 0 */
    int64_t *stage_switch;                  /* [pipeline] PCIe switch of each stage of replica 0, over all nodes */
    int64_t *stage_per_switch;              /* [pipeline] GPUs behind that switch that run this stage */
    int64_t same_stage_per_node;            /* GPUs of a node that run the same stage: they send at the same time */
    int64_t data_groups_per_stage_and_node; /* of one stage's data-parallel groups, how many share a node's network */
    const dts_schedule_method *method;      /* NULL: the user's own order */
    dts_schedule schedule;
    dts_chunk *chunks; /* [stages] by virtual stage */
};

/* Applies the rules, fills in what was left out, places ranks and cuts the model into stages. Every rule that is broken
 * is reported with the nearest legal choice. The plan lives in arena and borrows job. An order that is made for the
 * times of the plan's passes is missing: dts_lower_plan measures these and calls dts_plan_order. */
dts_status dts_plan_prepare(const dts_job *job, dts_arena *arena, dts_plan *out, dts_diag *diag);
/* Makes the order of a prepared plan for passes that take so long. */
dts_status dts_plan_order(dts_plan *plan, const dts_schedule_shape *passes, dts_arena *arena, dts_diag *diag);

/* A plan without its schedule, which is neither checked nor built: for a search, which looks at millions of plans. */
dts_status dts_plan_outline(const dts_job *job, dts_arena *arena, dts_plan *out, dts_diag *diag);

/* Is an order of that method made for the times of this plan's passes? */
bool dts_plan_measures_passes(const dts_plan *plan, const dts_schedule_method *method);

/* "pipeline 2 × ddp 8": the plan in a few words, in the arena. */
const char *dts_plan_describe(const dts_plan *plan, dts_arena *arena);
/* "LoRA of rank 16, base nf4": what is trained beside frozen weights; NULL: all of them are trained. */
const char *dts_plan_describe_adapters(const dts_plan *plan, dts_arena *arena);

/* What a dts_data_parallel keeps 1/shards of, and what that of a plan does. */
static inline bool dts_shards_parameters(int data_parallel) {
    return data_parallel == DTS_DP_FSDP || data_parallel == DTS_DP_ZERO3;
}
static inline bool dts_shards_gradients(int data_parallel) {
    return dts_shards_parameters(data_parallel) || data_parallel == DTS_DP_ZERO2;
}
static inline bool dts_shards_optimizer(int data_parallel) {
    return dts_shards_gradients(data_parallel) || data_parallel == DTS_DP_ZERO1;
}
bool dts_plan_shards_parameters(const dts_plan *plan);
bool dts_plan_shards_gradients(const dts_plan *plan);
/* Units gathered ahead in backward, and host time around a collective of a unit, for a dts_data_parallel. */
int64_t dts_units_prefetched(const dts_stack *stack, int data_parallel);
double dts_unit_host_s(const dts_stack *stack, int data_parallel);
/* What each trained tensor of a unit adds to it: an adapter has two. */
double dts_adapter_host_s(const dts_plan *plan, int data_parallel);
bool dts_plan_shards_optimizer(const dts_plan *plan);
/* Are parameters that the step has updated gathered beside the next forward pass (stack.ddp.overlap_gather)? Not those
 * of an optimizer in host memory, nor where stages begin one after another. */
bool dts_plan_overlaps_gather(const dts_plan *plan);
/* The same by a schedule, whatever is sharded and in host memory: candidates of one frame differ in these. */
bool dts_plan_may_overlap_gather(const dts_plan *plan, const dts_schedule_method *method);
/* Does fused attention read 8 bits (stack.fp8.attention): with a scale for each tensor, without latents? */
bool dts_plan_narrow_attention(const dts_plan *plan);
/* Does it keep whole tensors for each rank instead (ZeRO-1 of stacks with ddp.owns_tensors)? */
bool dts_plan_owns_tensors(const dts_plan *plan);
/* Does a step orthogonalise the layers' matrices (lower/muon.c)? */
bool dts_job_orthogonalises(const dts_job *job);
/* Then matrices of what is sharded are stepped whole, each by the rank that it is handed to. */
bool dts_plan_owns_matrices(const dts_plan *plan);
/* And with ZeRO-1 their owner keeps the states, too; all else lies in equal shares. */
bool dts_plan_keeps_matrices(const dts_plan *plan);
/* May ranks own whole tensors, or step whole matrices, with one kind of data parallelism or another? */
bool dts_job_may_own_tensors(const dts_job *job);

/* Do experts have other replicas than all other parameters? */
bool dts_plan_experts_apart(const dts_plan *plan);

/* Ranks among which the data parallelism shards parameters of a set. */
int64_t dts_plan_shards(const dts_plan *plan, dts_parameter_set set);
/* Do replicas of anything have gradients in common, and do those of one set go through the reductions? Experts that
 * tensor parallelism splits less than the rest have replicas where that has one; where the rest has several, gradients
 * of experts are divided by their number, too, even if one rank has them. */
bool dts_plan_replicates(const dts_plan *plan);
bool dts_plan_replicates_set(const dts_plan *plan, dts_parameter_set set);

/* Does FSDP free gathered parameters between forward and backward? */
bool dts_plan_reshards(const dts_plan *plan);
/* Are embedding and head units of FSDP of their own? Not where they share a tensor, which lies in one unit. */
bool dts_plan_ends_apart(const dts_plan *plan);

/* Would FSDP's gradients wait whole for the last microbatch? Do they, in this plan? And does DDP reduce those of every
 * microbatch? */
bool dts_plan_reduces_each_step(const dts_plan *plan);
/* Of several flushes, is each one's last microbatch the end of such a wait? */
bool dts_plan_reduces_each_flush(const dts_plan *plan);
bool dts_plan_defers_reduction(const dts_plan *plan);
/* Do the shards of FSDP's gradients come into being as they are reduced, and go with the step (zero_grad)? */
bool dts_plan_gradients_come(const dts_plan *plan);
/* B of a stored gradient of a set. */
double dts_plan_stored_gradient_B(const dts_plan *plan, dts_parameter_set set);
/* Do stages of a pipeline have a buffer for each microbatch that they receive (stack.pipeline.microbatch_buffers)? */
bool dts_plan_buffers_microbatches(const dts_plan *plan);
/* Whose outputs stay until the step ends: NONE without a pipeline, and where nothing is trained. */
dts_kept_outputs dts_plan_kept_outputs(const dts_plan *plan);
bool dts_plan_repeats_reduction(const dts_plan *plan);

/* Are linear layers units of FSDP by themselves? */
bool dts_plan_wraps_linears(const dts_plan *plan);

/* Does anything rest in host memory, or on NVMe below it? */
bool dts_plan_offloads(const dts_plan *plan);
bool dts_plan_uses_nvme(const dts_plan *plan);

/* Is the loading of data simulated? Where samples cost nothing and nobody says how large they are, it is not. */
bool dts_plan_loads_input(const dts_plan *plan);
/* Cores of a node that its training processes leave to loaders; and how many of those each node has. */
double dts_plan_loader_cores(const dts_plan *plan);

/* What a process's step on the CPU reads and writes, B/s, beside nobody else; 0: as fast as the host's memory. */
double dts_plan_cpu_step_Bps(const dts_plan *plan);
double dts_plan_loaders_per_node(const dts_plan *plan);
/* Bytes of a sample on its way to the GPU. */
double dts_plan_sample_B(const dts_plan *plan);

/* Forward passes that a sample's model FLOPs count as: 3 with the backward, 2 where base weights have no gradients. */
double dts_training_passes(const dts_training *training);
/* Forward passes only? One new token a sample? With a cache of keys and values? */
bool dts_plan_infers(const dts_plan *plan);
bool dts_plan_decodes(const dts_plan *plan);
bool dts_plan_caches(const dts_plan *plan);
/* Do autocast's half copies of weights stay to the end of a forward pass that keeps nothing for backward (inference,
 * checkpointed layers)? Its cache takes parameters, which views of sharded ones are not. */
bool dts_plan_keeps_weight_copies(const dts_plan *plan);

/* One process drives all replicas through GPU 0, and there is more than one. */
bool dts_plan_single_process(const dts_plan *plan);
/* Are tokens sent to their experts by kernels that know the counts, which the host does not read before it? */
bool dts_plan_dispatches_on_device(const dts_plan *plan);

/* Do the layers' linear products run in 8 or 4 bits? And do FSDP's gathers or the optimizer's step bring weights that
 * are cast already? */
bool dts_plan_quantises(const dts_plan *plan);
bool dts_plan_gathers_quantised(const dts_plan *plan);
/* fp8 with a scale for each row: operands are cast behind what gathers them. */
bool dts_plan_scales_rows(const dts_plan *plan);
/* Of a product: the format of its factors, and what its scales and sums cost (gradient: of its input or weight). */
dts_numeric dts_plan_product_format(const dts_plan *plan, const dts_operator *o, bool weight_gradient);
double dts_plan_product_factor(const dts_plan *plan, const dts_operator *o, bool gradient);

/* Moments that an optimizer keeps of a parameter, each a tensor of its size; factored ones do not count. */
int dts_optimizer_moments(dts_optimizer optimizer);

/* Bytes of weights, of which quantised elements are those of the layers' linear products, as they live through the
 * iteration on the GPU (whole) and as they are gathered. */
double dts_plan_weights_B(const dts_plan *plan, double elements, double quantised);
double dts_plan_gathered_B(const dts_plan *plan, double elements, double quantised);
/* Bytes of a gathered unit of FSDP or ZeRO-3, whatever the plan shards: trained elements, and frozen ones as stored. */
double dts_plan_unit_B(const dts_plan *plan, double elements, double quantised, double frozen_B);

/* Is adding a new gradient to the stored one a kernel of its own? */
bool dts_plan_accumulates_by_kernel(const dts_plan *plan);

/* Are scales of rows or blocks asked for? A stack whose fp8 is tensorwise or delayed may run other formats, too; who
 * asks for these wants them. */
bool dts_plan_asks_recipe(const dts_job *job);

/* Are only low-rank adapters trained? */
bool dts_plan_adapts(const dts_plan *plan);

/* Bytes of a frozen weight outside the layers' products, as it is stored; and of frozen weights that are stored in so
 * many bytes, as FSDP gathers them. */
double dts_plan_frozen_other_B(const dts_plan *plan);
double dts_plan_gathered_frozen_B(const dts_plan *plan, double stored_B);

/* How a part of the model is executed under the plan and the stack. */
dts_execution dts_plan_execution(const dts_plan *plan);

/* Marks what the modules of training.recompute repeat of a layer's operators, and moves what is kept for them; returns
 * the modules that the layer has (modules.c). */
int64_t dts_recompute_modules(const dts_plan *plan, dts_part part, dts_operators *operators);

/* Ranks of a stage, tensor-parallel ones included: each is a row, whose GPUs run one pipeline. Row t + T·(c + C·d) has
 * the coordinates t, c, d (placement.c). */
int64_t dts_plan_rows(const dts_plan *plan);
/* The GPU that runs stage p of a row, over all nodes; and the PCIe switch of a GPU, over all nodes. */
int64_t dts_plan_gpu(const dts_plan *plan, int64_t row, int64_t p);
int64_t dts_plan_switch(const dts_plan *plan, int64_t gpu);

/* Bytes of the tensor handed from layer to layer, of one microbatch on one rank. */
double dts_plan_boundary_B(const dts_plan *plan);

/* Pipeline rank that owns a virtual stage: that of the pipeline that runs down, or of the given direction (0 down, 1
 * up). */
int dts_plan_owner(const dts_plan *plan, int64_t virtual_stage);
int dts_plan_owner_of(const dts_plan *plan, int64_t virtual_stage, int direction);

/* The virtual stage of a rank's chunk, and the direction in which it is run. */
int64_t dts_plan_stage(const dts_plan *plan, int64_t rank, int64_t chunk);
int dts_plan_direction(const dts_plan *plan, int64_t chunk);

/* Are the weights updated inside the stream, without a flush? */
bool dts_plan_asynchronous(const dts_plan *plan);

/* Does a tied output projection live on another rank than its embedding, so that there are two of them? */
bool dts_plan_ties_across(const dts_plan *plan);

/* Does the step wait for a number over all gradients of the model: a norm, or the loss scaler's check? */
bool dts_plan_needs_global_number(const dts_plan *plan);
/* Are gradients clipped microbatch by microbatch, where there are several to add up? */
bool dts_plan_clips_microbatches(const dts_plan *plan);
/* Do transfers between stages go on beside the kernels with a schedule? NULL: none of those that have names. */
bool dts_plan_overlaps_p2p(const dts_plan *plan, const dts_schedule_method *method);
/* Does a stage step without that number, and begin the next iteration while other stages still finish this one? */
bool dts_plan_post_validates(const dts_plan *plan);
/* The same by a schedule, whatever is sharded and in host memory. */
bool dts_plan_may_post_validate(const dts_plan *plan, const dts_schedule_method *method);
/* Are fp16 gradients next to fp32 weights scaled against underflow? */
bool dts_plan_scales_loss(const dts_plan *plan);

#endif
