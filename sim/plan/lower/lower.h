/* Lowering: a plan becomes a task graph. Only this folder makes tasks.
 *
 * One replica stands for all (folded ranks): every pipeline stage of replica 0 is a device with a host thread, a
 * compute stream, one stream per communicator and one per direction of each pipeline link. Collectives with the other
 * replicas are flows over the replica's links, with weights that count the identical groups sharing them. With full
 * ranks every GPU is such a device, and a collective is one task on the streams of all members (ranks.c). */
#ifndef DTS_PLAN_LOWER_LOWER_H
#define DTS_PLAN_LOWER_LOWER_H

#include <stdatomic.h>

#include "engine/graph.h"
#include "plan/plan.h"

/* What a task does; reports colour and count by it. */
typedef enum dts_role {
    DTS_ROLE_FORWARD,
    DTS_ROLE_RECOMPUTE,
    DTS_ROLE_BACKWARD,
    DTS_ROLE_BACKWARD_WEIGHT,
    DTS_ROLE_OPTIMIZER,
    DTS_ROLE_COMMUNICATION,
    DTS_ROLE_OFFLOAD, /* a copy between the GPU and host memory */
    DTS_ROLE_INPUT,   /* making a batch, or its copy to the GPU */
    DTS_ROLE_HOST,
    DTS_ROLE_COUNT
} dts_role;

extern const char *const dts_role_names[DTS_ROLE_COUNT + 1];

/* Communicators of a device. */
typedef enum dts_group_kind {
    DTS_GROUP_DATA,
    DTS_GROUP_TENSOR,
    DTS_GROUP_CONTEXT,
    DTS_GROUP_PIPELINE,
    DTS_GROUP_EMBEDDING,
    DTS_GROUP_REPLICA,       /* hybrid sharding: the ranks that hold the same shard */
    DTS_GROUP_EXPERT,        /* ranks that hold different experts: tokens */
    DTS_GROUP_EXPERT_DATA,   /* ranks that hold the same experts: their gradients and parameters */
    DTS_GROUP_EXPERT_TENSOR, /* ranks that hold parts of the same experts */
    DTS_GROUP_COUNT
} dts_group_kind;

extern const char *const dts_group_names[DTS_GROUP_COUNT + 1];

/* Memory categories of the ledger. */
typedef enum dts_memory_category {
    DTS_MEMORY_PARAMETERS,
    DTS_MEMORY_GRADIENTS,
    DTS_MEMORY_OPTIMIZER,
    DTS_MEMORY_ACTIVATIONS,
    DTS_MEMORY_TEMPORARY,
    DTS_MEMORY_COMMUNICATION,
    DTS_MEMORY_GATHERED, /* buffers that parameters are gathered into: requested on the stream of the collectives */
    DTS_MEMORY_SHARDS,   /* of gradients, made by reductions: requested on the stream of these (units.c) */
    DTS_MEMORY_CATEGORY_COUNT
} dts_memory_category;

/* Communication inside a block, by group and kind. */
typedef struct dts_block_row {
    uint8_t group;     /* dts_group_kind */
    int8_t collective; /* dts_collective */
    int64_t count;
    double bytes;
    dts_time total, exposed; /* exposed: the compute stream waited for it */
} dts_block_row;

/* A forward or backward as one task: what simulating it kernel by kernel gave (block.c). */
typedef struct dts_block {
    dts_time duration;         /* from the first kernel's start to the last one's end, the host far ahead */
    dts_time busy;             /* of that, kernels; the rest is exposed communication, but for the launches */
    dts_time products;         /* of these, products of matrices and fused attention */
    dts_time launches;         /* of duration, waits for launches that wait for the GPU themselves */
    dts_time counts;           /* of these, for the host that reads token counts */
    dts_time first_launch;     /* host: until the first kernel is issued */
    dts_time host;             /* host: until the last one is */
    dts_time lead;             /* how far ahead the host must be at the start, not to hold up the last kernel */
    dts_time first_collective; /* when its first collective starts; DTS_TIME_MAX: none */
    dts_time last_collective;  /* when its last one ends, but the trailing one; 0: none */
    dts_time launched_last;    /* of that, the kernel that the host launches last, or what trails */
    bool reads;                /* the host waits for a result inside: token counts of experts */
    dts_time read;             /* when it has the last of these; before that the host does not get further ahead */
    dts_time host_after;       /* host: from then until all is issued */
    dts_time trailing;         /* a collective behind the last kernel; 0: none */
    const char *trailing_name;
    double trailing_B;
    uint8_t trailing_group;
    int8_t trailing_collective;
    dts_block_row *rows;
    size_t row_count;
    double flops;     /* of its products */
    double fresh_B;   /* of left_B, fresh gradients that live until the step is done */
    double handed_B;  /* temporary that the next one takes over */
    double reduced_B; /* gradients copied into buckets, of so many tensors */
    int reduced_tensors;
    int closed_buckets;                        /* that these fill, from none on */
    double open_B;                             /* what is left in the last */
    int64_t peak_B[DTS_MEMORY_CATEGORY_COUNT]; /* at its highest total, less at entry */
    int64_t left_B[DTS_MEMORY_CATEGORY_COUNT]; /* at its end, less at entry */
    int64_t last_B;                            /* total while the last kernel runs, less at entry */
    const char *peak_name;                     /* the kernel that reached it; NULL: not above entry */
    int32_t peak_layer;                        /* its layer, counted from the block's first; see peak_part */
    uint8_t peak_part;                         /* dts_part */
} dts_block;

/* What a task is, by its tag. */
typedef struct dts_task_info {
    uint8_t role;       /* dts_role */
    uint8_t group;      /* communication: dts_group_kind */
    int8_t collective;  /* communication: dts_collective, -1: send-recv */
    int32_t microbatch; /* -1: none */
    int32_t layer;      /* 0 embedding, layers from 1, last + 1 head; -1: none */
    int32_t chunk;
    dts_id device;
    dts_id peer;      /* send-recv: the receiving device; else as device */
    const char *name; /* borrowed from the operator or the arena */
    double bytes;     /* communication: payload, B */
    double flops;     /* products on this GPU, FLOP */
    double
        kept_B;  /* outputs that stay from its end until the step's (pipeline_buffers.c); below 0: dropped at its end */
    bool rest;   /* part of something whose task before it was counted as a whole */
    bool gang;   /* a transfer of all whose streams it takes, not only of device */
    bool stall;  /* of the host: calls of the caching allocator that is short of memory */
    bool counts; /* of the host: it reads token counts of experts, and prepares what depends on them */
    bool ahead;  /* for the next iteration: this one does not wait for it */
    const dts_block *block; /* what is inside; NULL: a task of its own */
} dts_task_info;

/* Of what lives the whole iteration, one tensor, for those who follow the allocator. */
typedef struct dts_tensor {
    uint8_t category; /* dts_memory_category */
    bool by_step;     /* not there before the first optimizer step */
    dts_id made_by;   /* the task that makes it in the first iteration; DTS_NO_ID: it is there from the beginning */
    int64_t bytes;
} dts_tensor;

typedef struct dts_tensors {
    dts_tensor *items;
    size_t count, capacity;
} dts_tensors;

/* Of what lives the whole iteration on a GPU, one term: elements, shared by so many ranks, that take so many bytes
 * here. */
typedef struct dts_lasting {
    uint8_t category; /* dts_memory_category; SHARDS are not there from the beginning, but all come */
    uint8_t set;      /* dts_parameter_set */
    const char *name; /* what the elements are; NULL: the trained parameters themselves */
    double elements;  /* 0: bytes that are not counted by parameters */
    double ranks;
    int64_t bytes;
} dts_lasting;

typedef struct dts_lasting_terms {
    dts_lasting *items;
    size_t count, capacity;
} dts_lasting_terms;

/* Kinds of products and attention, an operator of a kind of part in a direction each, and those of them whose time is
 * one of gpu.measured; without such a file there are none. */
typedef struct dts_timed_kernels {
    int64_t taken, all;
} dts_timed_kernels;

typedef struct dts_lowered {
    dts_graph *graph;     /* frozen; owned */
    dts_detail detail;    /* what was taken */
    dts_task_info *infos; /* by task id */
    size_t info_count;
    bool full_ranks;        /* every rank is there; else one row stands for all */
    int64_t rows;           /* of ranks, each a pipeline: device row · pipeline + stage */
    dts_id *compute_stream; /* [rows · pipeline] */
    int64_t *gpus;          /* [rows · pipeline] the GPU of each, over all nodes */
    dts_id *host_device;    /* [host_count] offload: whose ledger is a node's host memory */
    dts_id *nvme_device;    /* [host_count] the same of its drives; DTS_NO_ID: none are used */
    size_t host_count;
    dts_id window_from, window_to; /* the iteration is what lies between the ends of these; DTS_NO_ID: all of it */
    dts_id *stage_from, *stage_to; /* [rows · pipeline] of each stage by itself, with post-validation; NULL: without */
    size_t input_depth;            /* batches that loaders may be ahead; 0: there are none */
    size_t input_batches;          /* of an iteration */
    dts_id *input_ahead; /* [rows · stages][input_depth] the batches of the next iteration; DTS_NO_ID: none here */
    double *stage_parameters;   /* [pipeline] elements that are trained, on one tensor-parallel rank */
    double trained;             /* of all stages and ranks that share them */
    double *stage_frozen;       /* [pipeline] elements that are not */
    int64_t *static_B;          /* [device] memory that lives the whole iteration, B */
    dts_lasting_terms *lasting; /* [pipeline] its terms on the GPUs of the first row, which add up to it */
    dts_tensors *tensors; /* [pipeline] of it, what is known one by one: of stages at detail kernel, on the first row */
    double flops;         /* products of all stages on one tensor rank per iteration, recomputation included, FLOP */
    dts_timed_kernels timed;
} dts_lowered;

/* What an operator's exchange is, and among whom. */
dts_collective dts_exchange_collective(dts_exchange exchange);
dts_group_kind dts_exchange_group(const dts_operator *o, dts_exchange exchange);

/* Where the members of stage's group of this kind sit. */
dts_placement dts_lower_placement(const dts_plan *plan, int64_t stage, dts_group_kind group);
/* A collective of that group, alone. */
void dts_lower_transfer(const dts_plan *plan, int64_t stage, dts_group_kind group, dts_collective kind, double bytes,
                        dts_transfer *out);

/* How many identical groups of this kind share the network of a node: each is simulated once, by its member in replica
 * 0, but all load the node's network at the same time. */
double dts_lower_sharing(const dts_plan *plan, dts_group_kind group);

/* What an optimizer step on the GPU does with one element, and with one tensor or, where tensors are stepped together,
 * with all. */
typedef struct dts_step_work {
    double element_B; /* read and written, B */
    double update_B;  /* of these, by the update itself, which matrices that are orthogonalised do not have */
    int launches;
    bool per_tensor;
} dts_step_work;

dts_step_work dts_step_work_of(const dts_plan *plan);

/* Elements of gradients that ZeRO-2 has in buckets, filled or on their way: two buckets at least (data_parallel.c). */
#define DTS_BUCKET_ROOM 1e9

/* What a step on the GPU holds of every element while it runs, B, where it takes all tensors at once (step_memory.c).
 */
double dts_step_lists_B(const dts_plan *plan);

/* Blocks that have been simulated, for a caller that runs many similar configurations. A cache belongs to one thread
 * at a time; what is in it never changes a result. */
typedef struct dts_block_cache dts_block_cache;

/* Above most_B bytes the cache starts afresh with the next run (0: about 64 MiB). NULL when memory ran out. */
dts_block_cache *dts_block_cache_new(size_t most_B);
void dts_block_cache_free(dts_block_cache *cache);

/* Something that holds the host up when it comes to a task: cudaMalloc, and cudaFree, which waits for the GPU. */
typedef struct dts_host_stall {
    dts_id device;
    dts_id task; /* of the graph without stalls */
    double seconds;
    bool behind; /* before the launch that follows the task's, of a kernel or a collective, not before its own */
    bool waits;  /* for all that the GPU has been given */
} dts_host_stall;

typedef struct dts_lower_options {
    bool flow_network;
    dts_detail detail;        /* AUTO: as dts_lower_detail says */
    dts_block_cache *blocks;  /* borrowed; needed for LAYER and BLOCK */
    int64_t kernel_stage;     /* with LAYER and BLOCK, 1 + a stage that is lowered kernel by kernel, for its requests of
                                 memory; 0: none */
    bool brief;               /* blocks: what is known to be hidden or takes microseconds has no tasks (block.c) */
    const atomic_bool *stop;  /* as of dts_observer */
    bool full_ranks;          /* every rank, kernel by kernel; not for a single process */
    uint64_t seed;            /* of cluster.jitter and gpu_spread, with full ranks */
    const double *input_left; /* [as dts_lowered.input_ahead] of the first batches, the part that is still to be made
                                 when the iteration begins; NULL: none, they are ready */
    const dts_host_stall *stalls; /* those of a device in the order of its tasks; at detail kernel; with full ranks of
                                     the first row, for all */
    size_t stall_count;
    const dts_time *begins; /* [rows · pipeline] with post-validation: when each stage begins; NULL: all at once */
} dts_lower_options;

/* Do rows of ranks lie on the nodes in another way than the first, so that it does not stand for all? */
bool dts_lower_rows_differ(const dts_plan *plan);

/* About how many kernels an iteration has. */
double dts_lower_kernels(const dts_plan *plan);
/* Microbatches whose kernels are few enough to be simulated one by one. */
int64_t dts_lower_short(const dts_plan *plan);
/* So many that `auto` takes what is as exact and sooner done, where there is such. */
bool dts_lower_is_long(const dts_plan *plan);

/* What `auto` takes: BLOCK for large iterations that it simulates exactly enough, else KERNEL (auto_detail.c). */
dts_detail dts_lower_detail(const dts_plan *plan, bool flow_network);
/* Can a pass be a block at all? If not, every detail is KERNEL. */
bool dts_blocks_possible(const dts_plan *plan);
/* A brief one: only the peak of memory may be another then. */
bool dts_brief_blocks_possible(const dts_plan *plan);
/* Is it known not to be? Where there are no blocks fewer microbatches may show less (torch Pipe gathers all outputs).
 */
bool dts_brief_peak_known(const dts_plan *plan);
/* Why a detail above kernel leaves something out that matters; NULL: it does not. */
const char *dts_coarse_leaves_out(const dts_plan *plan, bool flow_network);

/* Builds the graph of one iteration (one optimizer step). Tables and names live in arena, and in the cache until it is
 * used again. */
dts_status dts_lower(const dts_plan *plan, const dts_lower_options *options, dts_arena *arena, dts_lowered *out,
                     dts_diag *diag);
void dts_lowered_free(dts_lowered *lowered);

#endif
