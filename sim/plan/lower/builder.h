/* What the files of plan/lower/ build with: devices, streams, links and the table of what each task is. */
#ifndef DTS_PLAN_LOWER_BUILDER_H
#define DTS_PLAN_LOWER_BUILDER_H

#include "plan/lower/block.h"
#include "plan/lower/owners.h"

/* Times of one operator's kernels on the plan's GPU, seconds. */
typedef struct dts_operator_times {
    double forward_s, backward_input_s, backward_weight_s;           /* all kernels of the operator together */
    bool forward_timed, backward_input_timed, backward_weight_timed; /* measured (gpu.measured) */
    int forward_kernels, backward_input_kernels, backward_weight_kernels;
    double forward_flops, backward_input_flops, backward_weight_flops;
    double forward_exchange_s, backward_exchange_s; /* of its own transfers, beyond the kernels; below 0: in chunks */
    double orthogonal_s; /* what orthogonalising its weight takes in an optimizer step (muon.c); 0: nobody does */
} dts_operator_times;

/* The operators of a kind of part with their times and totals; the same for every layer. */
typedef struct dts_part_work {
    dts_operators operators;
    dts_operator_times *times;
    double saved_B;                   /* of all operators */
    double parameters[DTS_SET_COUNT]; /* elements on one rank */
    double quantised[DTS_SET_COUNT];  /* of these, in products of 8 or 4 bits */
    double frozen[DTS_SET_COUNT];     /* elements that are not trained */
    double frozen_B[DTS_SET_COUNT];   /* and their B */
    double statistics;                /* elements of optimizer statistics beside the moments */
    int tensors;                      /* parameter tensors, of those that are trained */
    dts_orthogonal orthogonal[DTS_SET_COUNT];
    size_t again; /* operators that run again where a checkpoint ends with this part, from the first; of the one behind
                     them, if there is one, only the input is kept again */
} dts_part_work;

/* Parameters on a rank, of all its chunks. */
typedef struct dts_held {
    double parameters[DTS_SET_COUNT]; /* elements that are trained */
    double quantised[DTS_SET_COUNT];  /* of these, in products of 8 or 4 bits */
    double frozen[DTS_SET_COUNT];     /* elements that are not trained */
    double frozen_B[DTS_SET_COUNT];   /* and their B */
    double statistics;                /* elements of optimizer statistics beside the moments */
    dts_orthogonal orthogonal[DTS_SET_COUNT];
    dts_owned owned[DTS_SET_COUNT]; /* none, unless whole tensors belong to ranks */
} dts_held;

/* Largest tensor that is simulated: a petabyte, so that sums of many stay whole numbers of bytes. */
#define DTS_MOST_BYTES 1e15

/* The host may have waited for the GPU: it is not known to be ahead. Far below zero, and far from overflow. */
#define DTS_NEVER_AHEAD (INT64_MIN / 4)

struct dts_gang;
struct dts_random;

/* What a rank's gangs are: one for each group, and for the second of two copies of a stage others of those that reduce
 * its gradients (ranks.c). */
enum { DTS_GANG_DATA_TWO = DTS_GROUP_COUNT, DTS_GANG_EXPERT_DATA_TWO, DTS_GANG_COUNT };

struct dts_stage;

/* A link between two stages, and the latest transfer over it (send.c). */
typedef struct dts_link {
    const struct dts_stage *to; /* NULL: there was none */
    double bytes;
    dts_id stream;
    dts_task task;
    dts_hop hops[4];
} dts_link;

/* One pipeline stage of a row of ranks: of row 0, which stands for all, or of each (ranks.c). */
typedef struct dts_stage {
    int64_t index;
    int64_t row, node, gpu; /* gpu: over all nodes */
    dts_id device;
    dts_id host;     /* the thread that runs the training loop */
    dts_id autograd; /* the thread that issues the backward pass: the same stream unless the stack has one per GPU */
    dts_id compute;
    dts_id collective[DTS_GROUP_COUNT]; /* one stream per communicator; DTS_NO_ID: not there */
    dts_id send_up, send_down;          /* pipeline links to the next and the previous virtual stage */
    dts_link links[2];                  /* down, up: what they carry */
    dts_id port_out, port_in;           /* this GPU's link inside the node */
    dts_id h2d, d2h;                    /* offload, input: streams of copies from and to host memory */
    dts_id nvme_read, nvme_write;       /* offload to NVMe: queues of this GPU's process */
    dts_id pcie_in, pcie_out;           /* offload, input: the link of this GPU's PCIe switch in each direction */
    dts_id last_kernel;                 /* most recent task of the compute stream */
    dts_id last_host;                   /* most recent task of the host thread */
    dts_id last_launched;               /* most recent kernel or collective that the host launched */
    dts_id last_read;                   /* most recent task of the host that begins when it has read a result */
    dts_id holds_host;                  /* the block that the host launches, kernel after kernel; DTS_NO_ID: none */
    dts_time host_pending;              /* issues of the host that are still to be added, as one task */
    dts_time ahead;                     /* the host is at least so much ahead of the compute stream (block.c) */
    const dts_block *last_block;        /* the block placed last, NULL: none */
    dts_id block_end;                   /* its last task of the compute stream */
    dts_id trailing;                    /* its trailing collective, DTS_NO_ID: none */
    dts_id collectives_done;            /* the block placed last has no more of them, DTS_NO_ID: it had none */
    dts_time since_collectives;         /* kernels added since then; DTS_TIME_MAX: not known */
    bool captured;                      /* what is added now is part of a CUDA graph */
    dts_id awaited;                     /* brief: input of the pass that comes next, for which the host waits before
                                           it issues anything; DTS_NO_ID: it need not */
    dts_id met[2];                      /* brief: what the host has waited for, without a task; DTS_NO_ID: nothing */
    dts_time between_passes;            /* brief: kernels around that pass */
    dts_time gathers;                   /* brief: the gather of its input, which runs first */
    dts_link *carries;                  /* brief: what the pass that comes next sends when it is done; NULL: nothing */
    dts_id carried;                     /* brief: the pass that sent; DTS_NO_ID: none since it was last asked */
    dts_id graph_launch;                /* of that graph; DTS_NO_ID: not there yet */
    dts_held held;
    double flops;
    dts_id tied_made; /* the last kernel of a tied projection's gradient, where that comes before others; DTS_NO_ID */
    double tied_copy; /* elements of a tied output projection that does not live with its embedding: a second copy */
    double frozen_tied_B;       /* the same where it is not trained, B */
    int64_t static_B;           /* memory that lives the whole iteration */
    dts_id multiprocessors;     /* resource: collectives of overlapped groups take some from the products */
    dts_id memory_rate;         /* resource: and some from kernels bound by memory */
    bool contended;             /* such a collective may run beside what is issued now */
    size_t next_stall, kernels; /* where to look in the builder's stalls; that this rank has launched */
    dts_id last_collective;     /* most recent collective that this stage has issued, DTS_NO_ID: none */
    double fresh_B;             /* fresh gradients that live until the step is done */
    double shards_B;            /* of gradients that reductions have made, until the step is done */
    double widened_B;           /* wide copies of half gradients, alive within the step */
    /* every rank simulated */
    struct dts_gang *gangs[DTS_GANG_COUNT]; /* this rank's groups; NULL: it stands for them all */
    size_t joined[DTS_GANG_COUNT];          /* collectives of each that this rank has issued */
    int copy;                               /* of two copies of a stage: whose gradients are reduced now */
    int64_t pcie_switch;
    double slowdown;           /* kernels take so many times as long */
    struct dts_random *jitter; /* draws for each kernel; NULL: none */
    struct dts_loader *loader; /* NULL: it reads no data, or its loading is not simulated */
} dts_stage;

typedef struct dts_network_links {
    dts_id out, in;               /* a node's network in each direction */
    dts_id memory;                /* offload, input: the bandwidth of the host's memory */
    dts_id cores;                 /* input: the cores of the host that loaders may use */
    dts_id host;                  /* offload: the device whose ledger is the host's memory */
    int64_t static_B;             /* of that ledger, what lives the whole iteration */
    dts_id nvme_read, nvme_write; /* offload to NVMe: the drives in each direction */
    dts_id nvme;                  /* the device whose ledger is these drives */
    int64_t nvme_static_B;        /* of that ledger, what lives the whole iteration */
} dts_network_links;

struct dts_parked;
struct dts_stash;

typedef struct dts_builder {
    const dts_plan *plan;
    dts_part_work *work;  /* [DTS_PART_COUNT] */
    double boundary_B;    /* of a microbatch, between layers */
    uint32_t environment; /* of the blocks */
    dts_arena *arena;
    dts_graph *graph;
    dts_diag *diag;
    double slowest; /* time of products on the GPUs that hold up the job over that on average ones */
    bool flow_network;
    dts_detail detail;       /* KERNEL, LAYER or BLOCK */
    dts_block_cache *blocks; /* not with KERNEL */
    dts_stage *all_stages;   /* [rows][stage_count] */
    bool full;               /* every rank; else one row stands for all */
    int64_t kernel_stage;    /* of dts_lower_options */
    bool brief;              /* the same */
    bool alone;              /* one block is built by itself (block.c) */
    bool in_turns;           /* what is added now runs in turns with another pass */
    bool host_reads;         /* the host waits for results of the GPU inside passes */
    const atomic_bool *stop; /* the same */
    int64_t rows;
    dts_hop *hops;   /* room for those of a collective of all rows */
    dts_id *streams; /* the same for its streams */
    uint64_t seed;
    const dts_host_stall *stalls;    /* [stall_count] */
    size_t stall_count, stall_tasks; /* stalls, and tasks added for them so far */
    size_t *stall_at;                /* [stall_count] kernels that the rank of the first row launches before each */
    const double *input_left;        /* of dts_lower_options */
    dts_id *input_ahead;             /* of dts_lowered */
    size_t input_depth, input_batches;
    dts_stage *stages; /* [stage_count] the pipeline's of one row, or the replicas of a single process */
    int64_t stage_count;
    dts_network_links *nodes; /* [node_count] nodes of row 0, or all */
    int64_t node_count;
    struct dts_parked **parked;    /* [virtual stage][microbatch · slots + slot]; NULL: activations stay (offload.c) */
    struct dts_pass_block *passes; /* [virtual stage][action] blocks of whole passes (steps.c); NULL: not kept */
    struct dts_stash *stash;       /* versions of the weights; NULL: one for all (asynchronous.c) */
    dts_tensors *tensors;          /* [pipeline] that live the whole iteration (tensors.c); NULL: not wanted */
    dts_lasting_terms *lasting;    /* [pipeline] the same by what they are (static_memory.c); NULL: not wanted */
    const dts_time *begins;        /* of dts_lower_options */
    dts_id window_from, window_to; /* the iteration begins and ends with the end of these; DTS_NO_ID: all is one */
    dts_task_info *infos;
    size_t info_count, info_capacity;
    size_t *cuts; /* how many tasks there were behind each exchange inside a pass (overlap.c) */
    size_t cut_count, cut_capacity;
    bool failed;    /* memory ran out while adding; checked once at the end */
    bool too_large; /* a tensor is larger than DTS_MOST_BYTES */
} dts_builder;

/* Adds a task, and gives it its tag. */
dts_id dts_build_add(dts_builder *b, dts_task *task, const dts_task_info *info);

/* Adds a task of fixed duration on one stream. */
dts_id dts_build_task(dts_builder *b, dts_id stream, dts_time duration, const dts_task_info *info);

/* A task of fixed duration that occupies nothing. */
dts_id dts_build_delay(dts_builder *b, dts_time duration, const dts_task_info *info);

/* The groups whose collectives stand inside a pass: ranks, nodes and equal groups on a node of each; returns how many
 * rows of facts (room for DTS_GROUP_COUNT). */
size_t dts_build_inner_groups(const dts_plan *plan, double (*facts)[3]);

/* Issues work from the host thread, then a kernel of duration_s on the stage's compute stream that waits for the issue
 * and for after (DTS_NO_ID: nothing more). backward: issued by the autograd thread. Returns the kernel. */
dts_id dts_build_kernel(dts_builder *b, dts_stage *stage, double duration_s, bool backward, dts_id after,
                        const dts_task_info *info);
/* What the host takes to issue one of that role. */
double dts_build_launch_s(const dts_plan *plan, dts_role role, bool backward);

/* What is added from now on is launched one by one again, or replayed as part of a new CUDA graph of scope, where the
 * stack captures that scope. */
void dts_build_capture(dts_builder *b, dts_stage *stage, dts_cuda_graphs scope, bool begins);

/* Does every launch wait until the one before is done on the GPU? */
bool dts_build_blocks(const dts_builder *b);

/* A host task of duration_s, after which later issues come; waits for after. */
dts_id dts_build_host(dts_builder *b, dts_stage *stage, double duration_s, bool backward, dts_id after,
                      const char *name);

/* The host waits for a result of the GPU, and takes duration_s to go on. */
dts_id dts_build_read(dts_builder *b, dts_stage *stage, double duration_s, bool backward, dts_id result);

/* The host waits for a transfer, and for the kernels before it. */
void dts_build_wait(dts_builder *b, dts_stage *stage, bool backward, dts_id arrives);

/* A collective of stage's group over bytes: issued by the host, waits for after; returns the transfer. */
dts_id dts_build_collective(dts_builder *b, dts_stage *stage, dts_group_kind group, dts_collective kind, double bytes,
                            bool backward, dts_id after, const dts_task_info *info);

/* Do tensor-parallel transfers of backward run beside products? (operator_traits.c) */
bool dts_overlaps_tensor(const dts_plan *plan);

/* Multiprocessors that a transfer between stages holds on either side; 0: none, or it holds the compute stream
 * (operator_traits.c). */
int64_t dts_p2p_sms(const dts_plan *plan);

/* Multiprocessors that a transfer takes from the products beside it: so many at the rate that it reaches alone, or
 * channels: a ring at the full rate of the GPU's link takes so many, and slower ones fewer. 0: copy engines move it, or
 * none are beside it. */
typedef struct dts_takes {
    int64_t sms;
    bool channels;
} dts_takes;

/* A collective that takes multiprocessors from products of its own pass. */
dts_id dts_build_collective_beside(dts_builder *b, dts_stage *stage, dts_group_kind group, dts_collective kind,
                                   double bytes, bool backward, dts_id after, dts_takes takes,
                                   const dts_task_info *info);

/* Every rank of stage's group sends bytes to the next one of a ring: issued by the host, waits for after. */
dts_id dts_build_ring_send(dts_builder *b, dts_stage *stage, dts_group_kind group, double bytes, bool backward,
                           dts_id after, const dts_task_info *info);

/* What transfers of bytes from one stage to another are. */
dts_link *dts_build_link(const dts_builder *b, dts_stage *from, const dts_stage *to, bool up, double bytes);
/* Brief: a pass of that duration and, behind it, what it carries, as one task. */
dts_id dts_build_with_send(dts_builder *b, dts_stage *stage, dts_time duration, const dts_task_info *info);

/* A transfer between two stages' GPUs, on the sender's link stream; info says which group it belongs to. holds: the
 * sender's next kernel waits for its end. */
dts_id dts_build_send(dts_builder *b, dts_stage *from, const dts_stage *to, bool up, bool holds, double bytes,
                      dts_id after, const dts_task_info *info);

/* A hop over a resource that there is. */
void dts_build_hop(dts_hop *hops, size_t *count, dts_id resource, double weight);

/* Duration, work and hops of a transfer's task; borrows hops. */
void dts_build_task_of(const dts_builder *b, const dts_transfer *transfer, const dts_hop *hops, size_t hop_count,
                       dts_task *out);

/* A transfer as a task: with the flow network it shares what it crosses, else it takes its closed form. */
dts_id dts_build_transfer_of(dts_builder *b, const dts_id *streams, size_t stream_count, const dts_transfer *transfer,
                             const dts_hop *hops, size_t hop_count, const dts_task_info *info);
dts_id dts_build_transfer(dts_builder *b, dts_id stream, const dts_transfer *transfer, const dts_hop *hops,
                          size_t hop_count, const dts_task_info *info);

void dts_build_memory(dts_builder *b, dts_id task, dts_memory_moment moment, const dts_stage *stage,
                      dts_memory_category category, double bytes);
/* Where the ledger of a GPU counts what is of category: all in one place where only totals are wanted (coarse_hooks.c).
 */
dts_memory_category dts_brief_category(const dts_builder *b, dts_memory_category category);

/* Time of products and fused attention on the GPUs that hold up the job over that on average ones (slowest.c). */
double dts_build_slowest(const dts_plan *plan);
/* Times of a product in the format of an operator's, and of fused attention with the stack's kernels (kernel_times.c).
 * timed: set where that is a measured time; may be NULL. */
typedef enum dts_product { DTS_PRODUCT_FORWARD, DTS_PRODUCT_OF_INPUT, DTS_PRODUCT_OF_WEIGHT } dts_product;
double dts_build_gemm_s(const dts_builder *b, const dts_operator *o, int64_t m, int64_t n, int64_t k,
                        dts_product product, bool *timed);
double dts_build_attention_s(const dts_builder *b, const dts_attention_shape *shape);

/* Devices, streams and links of all rows (links.c). */
dts_status dts_build_stages(dts_builder *b);
/* Makes a row's stages those that are built with. */
void dts_build_select_row(dts_builder *b, int64_t row);

/* ---- every rank (ranks.c) --------------------------------------------------------------------------------------- */

/* How many GPUs with a task of the same stage a task stands for, on a node and behind a PCIe switch. */
int64_t dts_build_sharers(const dts_builder *b);
int64_t dts_build_switch_sharers(const dts_builder *b, const dts_stage *stage);

/* The groups of all ranks, and what differs between them. */
dts_status dts_ranks_new(dts_builder *b);
void dts_ranks_free(dts_builder *b);

/* A kernel's duration on this rank. */
double dts_ranks_duration_s(const dts_builder *b, const dts_stage *stage, double duration_s);

/* Where the members of stage's group sit. */
dts_placement dts_ranks_placement(const dts_builder *b, const dts_stage *stage, dts_group_kind group);

/* What a transfer takes of a GPU besides its links, per unit of work. */
typedef struct dts_taken {
    double multiprocessors;
    double memory_B; /* moved through the device memory */
} dts_taken;

/* The transfer that is the next one of stage's group: the first member to issue it adds it for all. taken: of each
 * member. */
dts_id dts_ranks_transfer(dts_builder *b, dts_stage *stage, dts_group_kind group, const dts_transfer *transfer,
                          dts_taken taken, const dts_task_info *info);
/* Has stage's process issued its latest transfer of the group for all ranks that it drives? With one process for all
 * stages and two copies of each it drives both ranks that hold one, whose calls are one (ncclGroupStart). */
bool dts_ranks_complete(const dts_builder *b, const dts_stage *stage, dts_group_kind group);
/* Only one stage, as *stage; its tables live in b->arena. */
dts_status dts_build_stage_alone(dts_builder *b, int64_t index, dts_stage *stage);

/* The kernels of one operator (work.c). Of b only the plan's job and storage are read. */
void dts_build_operator_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t);

/* Operators and their times, of b->plan (work.c). */
dts_status dts_build_work(dts_builder *b);
/* Fills each stage's parameters from its chunks' operators (work.c). */
void dts_build_count_parameters(dts_builder *b);
/* Fills each stage's list of who steps which tensors, where ranks own whole ones; after dts_build_count_parameters()
 * (owners.c). */
void dts_build_count_owners(dts_builder *b);
/* What orthogonalising an operator's weight takes, and the stage's step with these tensors. */
double dts_orthogonal_s(const dts_builder *b, const dts_operator *o);
void dts_build_orthogonal_step(dts_builder *b, dts_stage *stage);
/* All that a stage holds; and of it what the rank steps that takes longest. */
dts_orthogonal dts_stage_orthogonal(const dts_builder *b, const dts_stage *stage, bool own);
/* The share of a set that the fullest rank of the stage steps; 1: nothing is sharded (owners.c). */
double dts_optimizer_share(const dts_builder *b, const dts_stage *stage, dts_parameter_set set);
/* Elements that a rank of the stage has, of all sets: trained ones, and frozen ones. */
double dts_stage_parameters(const dts_stage *stage);
double dts_stage_frozen(const dts_stage *stage);
/* Whose replicas hold an operator's parameters. */
dts_parameter_set dts_operator_set(const dts_plan *plan, const dts_operator *o);
/* Operators and times of a layer (from 0). */
const dts_part_work *dts_layer_work(const dts_builder *b, int64_t layer);

/* ---- the techniques -------------------------------------------------------------------------------------------- */

/* Gradients of one stage as they become ready in backward: in buckets, units, or nothing (data_parallel.c). */
typedef struct dts_gradient_sync dts_gradient_sync;

/* For the chunks of stage from first to last. */
dts_gradient_sync *dts_sync_new(dts_builder *b, dts_stage *stage, int64_t first_chunk, int64_t last_chunk);
/* Before the first kernel of the forward or backward of the part at a position of its chunk: FSDP's all-gather. Returns
 * what the part must wait for. */
dts_id dts_sync_before_part(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool backward);
/* After a part's forward: FSDP frees the gathered parameters. */
void dts_sync_after_forward(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, dts_id last);
/* Are gradients handed over after every microbatch, so that none is kept whole? */
bool dts_sync_takes_gradients(const dts_gradient_sync *sync);
/* The kernels so far have made the gradients of an operator (elements each). */
void dts_sync_gradient(dts_gradient_sync *sync, dts_parameter_set set, const double *parameters, size_t count,
                       bool last_microbatch);
/* After a part's backward: FSDP's reduce-scatter. last_microbatch: gradients are complete. */
void dts_sync_after_backward(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool last_microbatch,
                             dts_id last);
/* The gradients are complete with task: someone else has reduced them. */
void dts_sync_reduced(dts_gradient_sync *sync, dts_id task);
/* Will gradients be handed over now (dts_sync_gradient)? Then *room says how many bytes fit before a reduction begins;
 * 0 when one has. */
bool dts_sync_hands_over(const dts_gradient_sync *sync, bool last_microbatch, double *room_B);
/* Are parameters gathered for each use (FSDP, ZeRO-3)? */
bool dts_sync_gathers(const dts_gradient_sync *sync);
/* Gradients of tensors, handed over inside a block that ends with ready. */
void dts_sync_take(dts_gradient_sync *sync, double bytes, int tensors, dts_id ready);
/* Brief: gradients of a block that begins behind that task, whose buckets are reduced from then on. The compute stream
 * waits until there was room for them. */
void dts_sync_take_block(dts_gradient_sync *sync, const dts_block *block, dts_id begins);
/* Reduces what waits in the buckets; the experts' first: their groups are smaller. */
void dts_buckets_flush(dts_gradient_sync *sync);
/* For lowering a block: hands over into buckets without end, whose content is then read. */
dts_gradient_sync *dts_sync_recorder(dts_builder *b, dts_stage *stage);
void dts_sync_recorded(const dts_gradient_sync *sync, dts_block *block);
/* Where linear layers are units of their own: before the kernels of a product, forward or gradients, at a position of
 * its chunk; returns what they wait for. Else both do nothing. */
dts_id dts_sync_before_product(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, size_t index,
                               bool backward);
/* Have kernels made gradients of a product's parameters, and those of the last microbatch? */
typedef enum dts_product_gradient {
    DTS_PRODUCT_NO_GRADIENT,
    DTS_PRODUCT_GRADIENT,
    DTS_PRODUCT_LAST_GRADIENT
} dts_product_gradient;

/* Behind them. */
void dts_sync_after_product(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, size_t index,
                            dts_product_gradient gradient, dts_id last);
/* Has an operator a gradient of its weight beside that of its input, so that a split backward keeps what it saved? */
bool dts_operator_splits(const dts_operator *o);
/* Is an operator a linear layer, which FSDP may wrap by itself? */
bool dts_operator_is_linear(const dts_operator *o);
/* Tensors that a step sees of a layer's part: one for each unit. */
int dts_unit_tensors(const dts_builder *b, const dts_stage *stage);
/* Reduces what waits in the buckets, copies all back where gradients are no views of them, and begins anew; returns the
 * last transfer (DTS_NO_ID: none). */
dts_id dts_sync_finish(dts_gradient_sync *sync);

/* As dts_build_host, for work of another role than launching: that of the training loop itself. */
dts_id dts_build_host_work(dts_builder *b, dts_stage *stage, dts_role role, double duration_s, const char *name);

/* A copy of a batch to the GPU, from pinned or pageable memory (offload.c); waits for after. */
dts_id dts_build_input_copy(dts_builder *b, dts_stage *stage, double bytes, dts_id after, const dts_task_info *info);

/* Room for about so many tasks. */
void dts_build_expect(dts_builder *b, size_t tasks);

/* Loading of data (input.c); all do nothing where it is not simulated. The loaders of a row of ranks. */
dts_status dts_input_new(dts_builder *b);
/* The training loop takes the batch of microbatch; returns what its first kernel waits for. */
dts_id dts_input_take(dts_builder *b, dts_stage *stage, int64_t microbatch);
/* The batch is not needed any more when task ends. */
void dts_input_leave(dts_builder *b, dts_stage *stage, int64_t microbatch, dts_id task);

/* The offload of a plan (offload.c). A copy between the GPU and host memory: issued by the host thread, waits for
 * after.
 */
dts_id dts_build_copy(dts_builder *b, dts_stage *stage, bool to_device, double bytes, bool backward, dts_id after,
                      const dts_task_info *info);
/* Between a pinned buffer in host memory and the node's drives, when after is done (nvme.c). */
dts_id dts_build_nvme(dts_builder *b, dts_stage *stage, bool read, double bytes, dts_id after, const char *name);
/* Pinned buffers that are used in turns: the task after which each is free again, the oldest first. */
typedef struct dts_nvme_ring {
    dts_id *left; /* [count] */
    size_t count, next;
} dts_nvme_ring;
bool dts_nvme_ring_new(dts_builder *b, dts_nvme_ring *ring);
dts_id dts_nvme_ring_oldest(const dts_nvme_ring *ring);
void dts_nvme_ring_put(dts_nvme_ring *ring, dts_id left);
/* Optimizer work of the CPU that moves bytes through the host's memory, on the training loop's thread. */
dts_id dts_build_cpu_step(dts_builder *b, dts_stage *stage, double bytes, dts_id after, const char *name);
/* What each GPU of a stage takes of its host's memory. */
void dts_build_host_memory(dts_builder *b, dts_id task, dts_memory_moment moment, const dts_stage *stage,
                           dts_memory_category category, double bytes);

struct dts_pass;
/* Are gradients that every microbatch reduces handed over behind the blocks that make them (coarse_shortcuts.c)? */
bool dts_brief_hands_over_behind(const dts_builder *b, const struct dts_pass *pass);

/* One schedule operation of a stage; *ready is set to the task after which its output exists (forward_backward.c). */
typedef struct dts_pass {
    dts_stage *stage;
    const dts_chunk *chunk;
    dts_gradient_sync *sync;
    int64_t microbatch, chunk_index;
    uint8_t summed;        /* dts_summed: bits */
    bool first_microbatch; /* of this chunk's passes that make weight gradients */
    bool last_microbatch;
    bool outputs_only; /* the loss is computed elsewhere */
    bool without_head; /* the weight gradients of the head are there already */
    dts_link *sends;   /* brief: what it may send by itself (coarse_shortcuts.c); NULL: nothing */
    dts_id input;      /* the transfer that brings the input (or its gradient), DTS_NO_ID: none */
} dts_pass;

/* Activations in host memory, by slot: a layer of the chunk, or its layer count for the chunk's input. All do nothing
 * where activations stay on the GPU. */
dts_status dts_offload_new(dts_builder *b);
/* Behind last: bytes of the slot leave, where those of its layer are offloaded. */
void dts_offload_store(dts_builder *b, const dts_pass *pass, int64_t slot, double bytes, dts_id last);
/* What the forward of a slot must wait for, so that not too much is on its way. */
dts_id dts_offload_before_forward(dts_builder *b, const dts_pass *pass, int64_t slot);
/* Starts the way back, once; returns what the backward must wait for. */
dts_id dts_offload_load(dts_builder *b, const dts_pass *pass, int64_t slot, double bytes);

dts_id dts_build_forward(dts_builder *b, const dts_pass *pass);
/* Passes of the same chunk that take turns at every part; made[i] as dts_build_forward returns it. */
void dts_build_forwards(dts_builder *b, const dts_pass *passes, size_t count, dts_id *made);
/* A loop that sums the model's outputs holds them in a variable until backward is done (loss: sum); a loss inside the
 * model lets go of its logits. */
double dts_held_outputs_B(const dts_builder *b, const dts_pass *pass);
/* How many operators of the head make its outputs; those behind are the loss. */
size_t dts_head_outputs(const dts_part_work *head);
/* Their bytes, of one microbatch. */
double dts_logits_B(const dts_part_work *head);
double dts_head_output_B(const dts_builder *b);
/* A copy of the outputs of all microbatches side by side, which lives no longer than it takes. Returns its kernel. */
dts_id dts_build_joined_outputs(dts_builder *b, dts_stage *stage, int64_t microbatches);
/* What stages of a pipeline keep until the step ends (pipeline_buffers.c), behind the latest kernel: the output of
 * virtual stage s, the gradient of its input; and all of both are dropped. */
void dts_keep_output(dts_builder *b, const dts_stage *stage, int64_t s);
void dts_keep_gradient(dts_builder *b, const dts_stage *stage, int64_t s);
void dts_drop_kept(dts_builder *b, dts_stage *stage, int64_t s, int64_t microbatches);
/* Does a chunk's input lie in one of those? */
bool dts_input_has_buffer(const dts_plan *plan, const dts_chunk *chunk);
/* Buffers of a pipeline's rank for what it receives. */
double dts_microbatch_buffers_B(const dts_plan *plan, int64_t rank, double boundary_B);
/* kind: DTS_OP_BACKWARD, _INPUT or _WEIGHT. Returns the kernel after which the input gradient exists. */
dts_id dts_build_backward(dts_builder *b, const dts_pass *pass, dts_op_kind kind);
/* The weight gradients of a chunk's head alone. */
void dts_build_head_weights(dts_builder *b, const dts_pass *pass);

/* All stages' operations in an order that respects the pipeline (pipeline.c). */
dts_status dts_build_pipeline(dts_builder *b, dts_gradient_sync **syncs);

/* May a forward and a backward of one rank be issued in turns? The tasks [first, middle) and [middle, end) are one pass
 * each; both are cut where they wait for exchanges (overlap.c). */
bool dts_build_may_overlap(const dts_builder *b);
/* The chain of a pass waits for an exchange of this group, which has been added last; begin: forgets those before. */
void dts_overlap_cut(dts_builder *b, dts_group_kind group);
void dts_overlap_begin(dts_builder *b);
void dts_build_overlap(dts_builder *b, dts_stage *stage, size_t first, size_t middle, size_t end);

/* Asynchronous schedules; all do nothing for others (asynchronous.c). The forward of microbatch uses the current
 * version of the weights; behind its backward the stage updates them. */
dts_status dts_stash_new(dts_builder *b);
void dts_stash_use(dts_builder *b, const dts_stage *stage, int64_t microbatch);
void dts_stash_update(dts_builder *b, dts_stage *stage, dts_gradient_sync *sync, int64_t microbatch);

/* All replicas' passes and exchanges (single_process.c). */
dts_status dts_build_single_process(dts_builder *b, dts_gradient_sync **syncs);

/* The kernels of a step and what they move of every element, B (optimizer.c). */
double dts_optimizer_traffic_B(const dts_plan *plan, int *kernels);

/* What the kernels of a step from first to the latest hold beside states, of a rank's elements in so many tensors
 * (step_memory.c). */
void dts_build_step_memory(dts_builder *b, const dts_stage *stage, double elements, int tensors, dts_id first);

/* Inference: what is still gathered goes with the last kernel of its stage (units.c). */
void dts_build_end_of_inference(dts_builder *b, dts_gradient_sync **syncs);

/* The optimizer step of every stage (optimizer.c). */
void dts_build_optimizer(dts_builder *b, dts_gradient_sync **syncs);

/* A task of the step of no length on the stage's compute stream, behind the host's latest issue and after. */
dts_id dts_build_step_wait(dts_builder *b, dts_stage *stage, dts_id after, const char *name);

/* Post-validation (post_validation.c): a stage of the builder's row begins at its own time, the stages pass what they
 * know of the gradients on, and each ends by itself. begins and ends are tasks of no interest but for their times. */
dts_id dts_build_begin(dts_builder *b, dts_stage *stage, int64_t row);
void dts_build_partial_norms(dts_builder *b);
dts_id dts_build_end(dts_builder *b, dts_stage *stage);
/* The first of a rank's operations behind which there are only weight gradients, where the tied projection's go first;
 * SIZE_MAX: there is none. */
size_t dts_build_heads_first(const dts_plan *plan, int64_t rank);

/* Behind a microbatch's backward: its gradients are unscaled and clipped, where the stack does so before it adds them.
 */
void dts_build_microbatch_clip(dts_builder *b, dts_stage *stage);
/* One stage steps by itself when reduced is done; returns the task with which the step begins (optimizer.c). */
dts_id dts_build_stage_update(dts_builder *b, dts_stage *stage, dts_id reduced);

/* The cache of keys and values of a stage, and the attention of one token of each sample of a pass to it (kv_cache.c).
 */
double dts_kv_cache_B(const dts_plan *plan, const dts_stage *stage);
double dts_kv_attention_s(const dts_builder *b, const dts_operator *o);

/* Parameters, gradients, optimizer states and buckets that live the whole iteration (static_memory.c). */
void dts_build_static_memory(dts_builder *b);
/* The same, tensor by tensor, as far as it is known (tensors.c); for the stages of the first row only. Later, a stored
 * gradient that task makes in the first iteration. */
void dts_build_tensors(dts_builder *b);
void dts_tensor_born(dts_builder *b, const dts_stage *stage, dts_id task, double bytes);

#endif
