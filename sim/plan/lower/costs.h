/* What one microbatch of a part of the model costs on one GPU, summed over its operators: the numbers of which the
 * closed forms of a search are made, and the times for which an order is. They come from the same operators and kernel
 * times as the simulation's tasks. */
#ifndef DTS_PLAN_LOWER_COSTS_H
#define DTS_PLAN_LOWER_COSTS_H

#include "plan/lower/work.h"

/* Seconds of kernels, seconds of tensor-parallel collectives that the chain waits for, and launches: of kernels and
 * exchanges, or of the CUDA graphs of modules that hold them. */
typedef struct dts_pass_cost {
    double kernel_s, exchange_s;
    double kernels, exchanges;
    double idle_s;              /* the GPU waits while the host, which has read token counts, goes on */
    double waited_s, longest_s; /* forward: what exchanges take at least, and the longest of these */
} dts_pass_cost;

/* What selective recomputation may run again: each a bit for each dts_recompute_module, 0 what the stack's selective
 * says. */
enum { DTS_SELECTIONS = 8 };
typedef struct dts_selections {
    int64_t modules[DTS_SELECTIONS];
    size_t count;
} dts_selections;

/* Each parameter tensor of a part that is trained. */
typedef struct dts_tensor_sizes {
    dts_tensor_size *items;
    size_t count;
} dts_tensor_sizes;

typedef struct dts_part_cost {
    dts_pass_cost forward, input, weight;   /* backward: input and weight gradients */
    dts_pass_cost repeated[DTS_SELECTIONS]; /* what selective recomputation runs again */
    dts_pass_cost again;                    /* what a checkpoint of this part runs again */
    double hidden_s;     /* of the exchanges of both halves, beside products where they are one pass */
    double accumulate_s; /* adding the weight gradients to stored ones, where that is a kernel */
    double saved_B;      /* kept for backward, whole bytes per operator */
    double copies_B;     /* of that, cast weights: a split backward frees them before the rest */
    double weights_B;    /* what a split backward keeps until the weight gradients are made */
    /* as these two, with selective recomputation */
    double selective_B[DTS_SELECTIONS], selective_weights_B[DTS_SELECTIONS];
    /* of that, its input, which lies in a buffer where a chunk has received it */
    double input_B, selective_input_B[DTS_SELECTIONS];
    double forward_peak_B, backward_peak_B;                     /* temporaries while the part runs */
    double parameters[DTS_SET_COUNT], quantised[DTS_SET_COUNT]; /* elements on one rank */
    double frozen_B[DTS_SET_COUNT];                             /* weights beside adapters, as they are stored */
    double tensors;
    double statistics; /* elements that the optimizer keeps beside moments */
    dts_orthogonal orthogonal[DTS_SET_COUNT];
    dts_tensor_sizes sizes[DTS_SET_COUNT]; /* where ranks may own whole tensors; else empty */
    double linears;                        /* linear layers, each a unit of FSDP where the scenario wants that */
} dts_part_cost;

typedef struct dts_block_costs {
    dts_part_cost parts[DTS_PART_COUNT];
    dts_selections selections;
    double boundary_B, logits_B; /* what a stage hands to the next, and the head's outputs */
    double graph_pool_B;         /* of CUDA graphs of modules */
    double slowest;              /* what products take on the GPUs that hold up the job, where nothing is recomputed */
} dts_block_costs;

/* For the plan's microbatch, tensor parallelism and formats; sizes of tensors lie in arena, scratch is used for a
 * moment. A selection that no layer has as it is simulated runs nothing again. */
dts_status dts_block_costs_of(const dts_plan *plan, const dts_selections *selections, dts_arena *arena,
                              dts_arena *scratch, dts_block_costs *out, dts_diag *diag);

/* How much less than in costs of the plan, whose slowest is known, the GPUs that hold up the job may slow its products,
 * whatever is recomputed and in which layout the stages lie (slowest.c): at most 1. */
double dts_least_slowest(const dts_plan *plan, double known);

/* Parameters that are gathered and freed together: elements that are trained, of these in products of 8 or 4 bits, and
 * bytes of those that are not trained, in their stored format. */
typedef struct dts_unit_size {
    double elements[DTS_SET_COUNT], quantised[DTS_SET_COUNT];
    double frozen_B[DTS_SET_COUNT];
} dts_unit_size;

/* A kernel around a unit's collective, by what it reads and writes. */
typedef struct dts_unit_copy {
    const char *name;
    double bytes;
} dts_unit_copy;
enum { DTS_UNIT_COPIES = 4 };

/* Bytes of the sets that several ranks share, gathered; of kernels, 0: there is none (unit_copies.c). shards: [set]
 * ranks that share one copy. */
double dts_unit_whole_B(const dts_plan *plan, const dts_unit_size *u, const double *shards);
double dts_unit_quantise_B(const dts_plan *plan, const dts_unit_size *u, const double *shards, int set);
double dts_unit_cast_B(const dts_plan *plan, const dts_unit_size *u, const double *shards);
/* Of gradients; again: the shard has those of a microbatch before. Returns how many. */
size_t dts_unit_hand_in_copies(const dts_plan *plan, const dts_unit_size *u, const double *shards, bool again,
                               dts_unit_copy *out);

/* Bytes that kernels move which add new gradients to stored ones: 0 of the first, there is none. */
void dts_accumulate_copies(const dts_plan *plan, double elements, double *cast_B, double *add_B);

/* The chain of one pass: its kernels and exchanges, or their launches, and what the GPU waits behind the reads of token
 * counts. */
double dts_pass_chain_s(const dts_plan *plan, const dts_pass_cost *pass, bool backward);
/* A send between stages, and the gather behind it where tensor-parallel ranks send a share each. */
double dts_lower_send_s(const dts_plan *plan, double boundary_B);

/* A collective that starts on idle links which groups equal ones of a node use at the same time. */
double dts_shared_collective_s(const dts_cluster *cluster, dts_collective kind, dts_placement placement, double bytes,
                               double groups);

/* The rate of a transfer when its groups alone use the links, B/s. */
double dts_shared_rate_Bps(const dts_cluster *cluster, const dts_transfer *transfer, double groups);

/* Multiprocessors that NCCL takes for a transfer, where a ring at the full rate of the GPU's link takes most. */
double dts_channel_multiprocessors(const dts_cluster *cluster, const dts_transfer *transfer, double groups,
                                   double most);

/* What a pipeline keeps of each microbatch until the step ends, of virtual stage s, where stages hand on boundary_B
 * (pipeline_buffers.c). */
double dts_kept_output_B(const dts_plan *plan, int64_t s, double boundary_B, double logits_B);
double dts_kept_gradient_B(const dts_plan *plan, int64_t s, double boundary_B);

#endif
