/* What the files that keep replicas in step share: data_parallel.c, buckets.c, units.c. */
#ifndef DTS_PLAN_LOWER_DATA_PARALLEL_H
#define DTS_PLAN_LOWER_DATA_PARALLEL_H

#include "plan/lower/costs.h"

/* Parameters that are gathered and freed together. */
typedef struct dts_unit {
    dts_unit_size size;
    int tensors; /* that are trained */
    bool root;   /* its chunk's: whole from the first use to the end of its backward */
    bool done;   /* root: no further use in this pass */
    bool gathered;
    bool summed;   /* whole gradients of earlier microbatches are there */
    bool copied;   /* out of the gathered buffer */
    bool reduced;  /* the shard has gradients of an earlier microbatch */
    dts_id gather; /* transfer that made it whole, DTS_NO_ID: always whole */
} dts_unit;

/* A gradient that lies in buckets only: what of it is still to be reduced, and what it takes of the GPU's memory. */
typedef struct dts_held_gradient {
    double pending_B, held_B;
    bool sum; /* all those of a block */
} dts_held_gradient;

/* Gradients that wait for their reduction, of one set of parameters. */
typedef struct dts_bucket {
    double limit_B, pending_B;
    dts_id ready;
    dts_held_gradient *held; /* [held_count], the oldest first; none where gradients are kept whole */
    size_t held_count, held_capacity;
} dts_bucket;

/* Of gradients that are not kept, in the order in which they are issued: those that have room beside each other. */
typedef struct dts_reduction {
    double elements;
    dts_id done;
} dts_reduction;

typedef struct dts_reductions {
    dts_reduction *items;
    size_t first, count, capacity;
    double elements; /* of all from the first on */
} dts_reductions;

/* ZeRO-1: what a chunk still waits for of the step before (zero1_gather_overlap.c). */
typedef struct dts_updated dts_updated;

struct dts_gradient_sync {
    dts_builder *b;
    dts_stage *stage;
    int copy;                  /* of the stages that this rank holds, with two copies of each */
    bool active;               /* more than one replica, or something in host memory */
    bool takes[DTS_SET_COUNT]; /* do gradients of this set go through buckets or units? */
    bool sharded;              /* FSDP or ZeRO-3 */
    /* buckets */
    dts_collective reduction;
    dts_bucket buckets[DTS_SET_COUNT];
    bool every_microbatch; /* ZeRO-2 */
    bool repeats;          /* DDP: whole gradients, but reduced after every microbatch */
    bool defers;           /* FSDP: whole gradients, reduced after the last microbatch */
    bool records;          /* of a block by itself: nothing is reduced */
    int64_t ended;         /* chunks whose last backward of a flush is through */
    int closed;            /* recorded: buckets that closed, and what lies in the last */
    double open_B;
    int tensors;
    double total_B;
    int flushed;
    dts_id last_transfer;
    dts_reductions under_way[DTS_SET_COUNT];
    dts_updated *updated; /* [virtual stage]; NULL: parameters are gathered behind the step */
    /* units: [virtual stage][position]; embedding and head are in the root unit of their chunk, unless apart */
    dts_unit **units;
    dts_unit *roots;        /* [virtual stage] */
    dts_unit **linears;     /* [virtual stage][in the order of forward]; NULL: linear layers are no units */
    int64_t *linear_counts; /* [virtual stage] */
    dts_id last_gather;
    dts_id recent_uses[2]; /* for the limit on gathers in flight */
    dts_nvme_ring buffers; /* parameters on NVMe */
};

/* Without units; NULL: no memory. */
dts_gradient_sync *dts_sync_alloc(dts_builder *b, dts_stage *stage);

/* The ranks that hold the same parameters of a set. */
dts_group_kind dts_sync_group(dts_parameter_set set);
dts_task_info dts_sync_transfer_info(const char *name);
bool dts_sync_offloads_parameters(const dts_gradient_sync *sync);

/* Gradients of elements are reduced, and leave for host memory, after the kernel made. */
void dts_sync_reduce(dts_gradient_sync *sync, dts_parameter_set set, double elements, double wire_B, dts_id made,
                     const dts_task_info *info);

/* What must be over before there is room for so many gradients of a set beside those whose reductions are under way
 * (reductions.c); DTS_NO_ID: nothing more than has been waited for. */
dts_id dts_sync_room(dts_gradient_sync *sync, dts_parameter_set set, double elements);

/* The last backward of a chunk in a flush is made. Where every flush reduces whole gradients, the last one of the
 * rank's chunks completes the last buckets. */
void dts_sync_end_flush(dts_gradient_sync *sync);

/* The units of the chunks from first to last; false: no memory. */
bool dts_units_new(dts_gradient_sync *sync, int64_t first_chunk, int64_t last_chunk);
/* Of sharded parameters: dts_sync_after_backward. */
void dts_units_after_backward(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool last_microbatch,
                              dts_id last);

/* Makes a unit whole, unless it is; what its kernels wait for; frees it behind last. */
void dts_unit_gather(dts_gradient_sync *sync, dts_unit *u, bool backward);
dts_id dts_unit_use(dts_gradient_sync *sync, dts_unit *u, bool backward);
void dts_unit_release(dts_gradient_sync *sync, dts_unit *u, dts_id last);
/* A unit's gradients of a microbatch are there with last: reduces them, or keeps them for the last microbatch, and lets
 * go of the parameters; returns the last kernel. */
dts_id dts_unit_hand_in(dts_gradient_sync *sync, dts_unit *u, bool last_microbatch, dts_id last);
/* Units whose gathers are issued ahead of need. */
int64_t dts_units_ahead(const dts_gradient_sync *sync, bool backward);

/* Parameters that are gathered beside the first forward passes, where the plan wants that (zero1_gather_overlap.c);
 * false: no memory. At the beginning of the iteration; has a chunk's first pass parts that wait for them? */
bool dts_updated_new(dts_gradient_sync *sync);
void dts_updated_begin(dts_gradient_sync *sync);
bool dts_updated_awaits(const dts_gradient_sync *sync, const dts_chunk *chunk);
/* Before the first forward of a part: sends off what comes behind it, and returns what it waits for. */
dts_id dts_updated_before_part(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position);

/* Linear layers as units (linear_units.c), where the plan wants that: room for them, and those of chunks, after the
 * chunks' other units (dts_units_new); what is none of them goes to the root. false: no memory. */
bool dts_linear_units_new(dts_gradient_sync *sync);
bool dts_linear_units_fill(dts_gradient_sync *sync, int64_t first_chunk, int64_t last_chunk);

#endif
