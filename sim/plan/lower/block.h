/* Blocks: a forward or backward of a layer, or of a whole chunk, as one task.
 *
 * A block's times come from lowering it once, kernel by kernel, into a graph of its own and simulating that (block.c).
 * Blocks of equal keys are equal, so one that has been simulated serves again, in this run and, kept in a
 * dts_block_cache, in later ones. */
#ifndef DTS_PLAN_LOWER_BLOCK_H
#define DTS_PLAN_LOWER_BLOCK_H

#include "plan/lower/lower.h"

struct dts_builder;
struct dts_stage;
struct dts_gradient_sync;

typedef enum dts_block_action {
    DTS_BLOCK_FORWARD,
    DTS_BLOCK_RECOMPUTE,
    DTS_BLOCK_BACKWARD,
    DTS_BLOCK_BACKWARD_INPUT,
    DTS_BLOCK_BACKWARD_WEIGHT
} dts_block_action;

/* Where one backward call covers the microbatches of a flush (torch Pipe), autograd sums their weight gradients. */
typedef enum dts_summed {
    DTS_SUMMED = 2, /* with those of other microbatches; 1 is left to keys of blocks */
    DTS_SUMMED_FIRST = 4,
    DTS_SUMMED_LAST = 8,
    DTS_SUMMED_AGAIN = 16 /* earlier flushes have left gradients */
} dts_summed;

enum { DTS_BLOCK_ACTIONS = DTS_BLOCK_BACKWARD_WEIGHT + 1, DTS_BLOCK_CHUNK = 255 };

/* What a block depends on besides the environment (block_cache.c). Zero all of it first: keys are compared as bytes. */
typedef struct dts_block_key {
    double handed_B;      /* temporary at entry, see operators.c */
    double tied_copy;     /* CHUNK with a head: of the stage */
    uint32_t environment; /* filled in by dts_block_find */
    uint32_t layers;      /* CHUNK: how many */
    uint32_t first_layer; /* CHUNK with layers of two kinds: where they begin */
    uint8_t action;       /* dts_block_action */
    uint8_t part;         /* dts_part, or DTS_BLOCK_CHUNK */
    uint8_t keeps;        /* forward: what backward needs; recompute: its own output, too */
    uint8_t outputs_only;
    uint8_t embedding, head; /* CHUNK */
    uint8_t gradients;       /* weight gradients: 1 for the first microbatch, with dts_summed */
    uint8_t microbatch_zero; /* is it number 0 */
    uint8_t microbatch_last; /* is it the last number */
    uint8_t hands_over;      /* weight gradients are copied into buckets */
    uint8_t buffered;        /* CHUNK: its input lies in a buffer of its own */
    uint8_t held;            /* a part: its input lies in memory already */
} dts_block_key;

/* Lowers the block onto stage of a scratch builder; returns the task after which its output exists. *handed_B:
 * temporary at entry, set to that at the end. */
typedef dts_id dts_block_body(struct dts_builder *scratch, struct dts_stage *stage, struct dts_gradient_sync *sync,
                              const void *context, double *handed_B);

/* The block of key: known, or made now. layer: number of its first layer as reports show it. NULL when it cannot be one
 * task (something of it outlives its last kernel), or when memory ran out (builder->failed). */
const dts_block *dts_block_find(struct dts_builder *b, const struct dts_stage *stage, dts_block_key *key, int32_t layer,
                                dts_block_body *body, const void *context);

/* Adds the block as a task (and what holds it up) behind waits; returns the task after which its output exists. */
dts_id dts_block_place(struct dts_builder *b, struct dts_stage *stage, const dts_block *block, const dts_id *waits,
                       size_t wait_count, const dts_task_info *info);

/* Products of a pass as one task, beside which transfers take multiprocessors (builder.c). */
dts_id dts_build_products(struct dts_builder *b, const struct dts_stage *stage, double duration_s,
                          const dts_task_info *info);

/* Bytes that are taken when the last kernel of task starts, which may be a block's. */
void dts_block_allocate(struct dts_builder *b, dts_id task, const struct dts_stage *stage, dts_memory_category category,
                        double bytes);

/* count kernels of duration_s each, one after the other: one task where the host is known to be ahead. False: nothing
 * was added. */
bool dts_block_kernels(struct dts_builder *b, struct dts_stage *stage, int64_t count, double duration_s,
                       double launch_s, const dts_task_info *info);

/* Needs a brief block no task of its host? meets: the host waits for the input. */
bool dts_brief_hides_host(const struct dts_builder *b, const dts_block *block, dts_time ahead, bool meets);
/* Takes the host's wait for the input of a brief block: true where it needs no task, else it is added. */
bool dts_brief_meets(struct dts_builder *b, struct dts_stage *stage, const dts_block *block, bool backward);

/* Is the host's wait for what a stage receives left to the pass that takes it? Not where activations come back from
 * host memory: the host launches their copies in between. */
bool dts_brief_waits_later(const struct dts_builder *b);

/* Kernels between two passes, count of them, that take all on the GPU: true where they are so short that they join the
 * pass that comes next. */
bool dts_brief_joins(struct dts_builder *b, struct dts_stage *stage, int64_t count, dts_time all, double launch_s);

/* Is what a stage receives gathered as a part of the pass that takes it? */
bool dts_brief_gathers_inside(const struct dts_builder *b);
/* The pass that comes next begins with a gather that takes so long. */
void dts_brief_gather(const struct dts_builder *b, struct dts_stage *stage, dts_time gather);

/* Issues a collective that waits for the last one of the block before: true where the host is known to have done so by
 * then, and no task is needed for it. */
bool dts_block_issues(struct dts_builder *b, struct dts_stage *stage, double launch_s);

/* The same for a brief one that waits for the latest kernel. */
bool dts_brief_issues(const struct dts_builder *b, struct dts_stage *stage, dts_id after, double launch_s);

/* Are there collectives of a tensor-parallel group that belong to no block? Those that gather what a stage receives:
 * they stand behind the last collective of the block before, so that it is cut there. */
bool dts_gathers_beside(const dts_plan *plan);

/* Room for what is known of the blocks of whole passes (steps.c). */
dts_status dts_chunks_new(struct dts_builder *b);

/* Does the builder make blocks of a stage at all? */
bool dts_block_wanted(const struct dts_builder *b, const struct dts_stage *stage);

/* The cache's side of dts_block_find (block_cache.c). *known: has it been simulated; the block may be NULL then. */
const dts_block *dts_block_cache_get(dts_block_cache *cache, const dts_block_key *key, bool *known);
/* Keeps a copy of block (NULL: it cannot be one task); *kept is the cache's own. */
dts_status dts_block_cache_put(dts_block_cache *cache, const dts_block_key *key, const dts_block *block,
                               const dts_block **kept);
/* A number for everything else that the blocks of b's plan depend on. */
dts_status dts_block_environment(dts_block_cache *cache, struct dts_builder *b);

#endif
