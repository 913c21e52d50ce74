/* One microbatch's way through a chunk, operator by operator: what operators.c and forward_backward.c share with each
 * other and with the files that lower a kind of operator in a way of their own. */
#ifndef DTS_PLAN_LOWER_CHUNK_PASS_H
#define DTS_PLAN_LOWER_CHUNK_PASS_H

#include "plan/lower/builder.h"

enum { DTS_WAIT_INPUT, DTS_WAIT_PARAMETERS, DTS_WAIT_OFFLOAD, DTS_WAIT_BRANCH, DTS_WAITS };

/* Of two branches of a chain (routed and shared experts), what the other one has come to. Their kernels take turns on
 * the compute stream in the order in which they are issued; what differs is what each waits for, and hands on. */
typedef struct dts_branch {
    double handed_B;
    dts_id last;
    dts_id waits[DTS_WAITS];
    dts_id *arrivals;
    int64_t arriving_rows;
} dts_branch;

/* Where a pass stands. */
typedef struct dts_walk {
    dts_builder *b;
    const dts_pass *pass;
    bool backward;           /* issued by the autograd thread */
    bool gradient;           /* at the gradients of an operator, not at its (repeated) forward */
    int64_t position;        /* of the part in its chunk */
    double handed_B;         /* temporary: latest output (forward) or input gradient (backward) */
    dts_id last;             /* latest kernel or transfer of the chain */
    dts_id waits[DTS_WAITS]; /* what the next kernel must wait for besides its stream */
    dts_id *arrivals;        /* [tensor] chunks of a gather that the next products read as they come; NULL: none */
    int64_t arriving_rows;   /* of these products; 0: not known before the first */
    dts_id again, deferred;  /* transfers beside the products: the input gathered again, the scattered gradient */
    double gradient_B;       /* of the output of a product whose weight's gradient needs it still */
    bool branched, beside;   /* there are two branches; it stands on the side one */
    dts_branch other;
    const dts_operator *held; /* what it keeps of its layer's input lies elsewhere already; NULL: none does */
    bool reads; /* the host reads token counts behind the CUDA graph that is open, and then takes read_s */
    double read_s;
} dts_walk;

/* kernels launches that share duration_s evenly; returns the first, DTS_NO_ID without any. */
dts_id dts_walk_kernels(dts_walk *w, int kernels, double duration_s, const dts_task_info *info);

dts_walk dts_walk_of(dts_builder *b, const dts_pass *pass, bool backward);

/* Number of layers that share one checkpoint with the chunk's layer at slot; 0: it is not checkpointed by itself. */
int64_t dts_checkpoint_span(const dts_plan *plan, const dts_chunk *chunk, int64_t slot);

/* Steps to the branch that an operator is of, where it is not on it, and joins both where it reads both; NULL: a part
 * ends, and with it the side branch (parallel_branches.c). */
void dts_walk_branch(dts_walk *w, const dts_operator *o);

/* Where CUDA graphs hold modules of layers: begins a graph with the first operator of those, and ends it before the
 * first one of others, before an exchange of others (operator NULL) and with the part (graphs.c). */
void dts_walk_capture(dts_walk *w, const dts_operator *o);
/* The host reads token counts that an operator has made: behind the graph that holds it, where one does. */
void dts_walk_read(dts_walk *w, const dts_operator *o);
/* An exchange comes: one of experts is in no graph that does not hold experts. */
void dts_walk_capture_exchange(dts_walk *w, dts_group_kind group);

/* Is an operator in such a graph, and the exchange behind it in this group? */
bool dts_captures_operator(const dts_stack *stack, const dts_operator *o);
bool dts_captures_exchange(const dts_stack *stack, const dts_operator *o, dts_group_kind group);
/* What such graphs hold beyond what runs without them, B. work: of all parts. */
double dts_graph_pool_B(const dts_plan *plan, const dts_part_work *work, double boundary_B);

/* Layers by which copies of activations may lag behind a chunk's forward or run ahead of its backward (offload.c). */
int64_t dts_offload_ahead(const dts_plan *plan, const dts_chunk *chunk);

/* What task does to the memory of the pass's stage; nothing for DTS_NO_ID (chunk_pass.c). */
void dts_walk_memory(dts_walk *w, dts_id task, dts_memory_moment moment, dts_memory_category category, double bytes);

/* The temporary that nobody takes any more. */
void dts_walk_drop_handed(dts_walk *w);
/* Half copies of a part's weights. Autocast caches them until its context ends, with the forward pass, also where a
 * checkpoint keeps nothing for backward (PyTorch, aten/src/ATen/autocast_mode.cpp, cached_cast). */
void dts_walk_drop_casts(dts_walk *w, dts_part part);
/* The outputs that a training loop has held (dts_held_outputs_B) go. */
void dts_walk_drop_outputs(dts_walk *w);
/* Has an operator parameters that are trained? */
bool dts_operator_has_parameters(const dts_operator *o);
/* Does an operator cast a weight whose copy is still there in backward? */
bool dts_operator_has_copy(const dts_plan *plan, const dts_operator *o);
/* Is this operator's forward repeated in backward by selective recomputation? */
bool dts_operator_repeats(const dts_plan *plan, const dts_operator *o);

/* The operator that keeps the input of a layer for backward; NULL: none does, or nothing as large. */
const dts_operator *dts_input_keeper(const dts_plan *plan, const dts_operators *operators, double boundary_B);

/* The operators of a part in one direction: a block of its own at detail layer. */
typedef struct dts_step {
    dts_block_action action;
    dts_part part;
    int32_t layer; /* number that reports show */
    bool keeps;    /* forward: what backward needs */
    bool ends;     /* recompute: a checkpoint ends with this part, whose output nobody reads again */
    bool held;     /* the part's input lies in a checkpoint or in the buffer in which it was received */
} dts_step;

/* Kernel by kernel (operators.c), or as a block where that is exact (steps.c). */
void dts_step_lower(dts_walk *w, const dts_step *s);
void dts_step_take(dts_walk *w, const dts_step *s);

/* A whole pass as one block; returns the task after which its output exists, DTS_NO_ID: it cannot be one (steps.c). */
dts_id dts_chunk_take(dts_builder *b, const dts_pass *pass, dts_block_action action);

dts_block_action dts_backward_action(dts_op_kind kind);

/* Attention whose sequence is split among context-parallel ranks (context.c): times of one rank's kernels, what it
 * keeps beyond the operator's own, and its tasks (gradient: those of its backward), of which the first kernel is
 * returned. */
void dts_context_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t);
double dts_context_saved_B(const dts_builder *b, const dts_operator *o);
dts_id dts_context_attention(dts_walk *w, const dts_operator *o, bool gradient, const dts_task_info *info);

/* Chunked tensor parallelism (async_tensor.c). A gather whose chunks the products behind it take one by one; whether a
 * product is cut into chunks, given the exchange behind it; and its tasks with that exchange, of which the first kernel
 * is returned. */
bool dts_async_gathers_here(const dts_walk *w);
void dts_async_gather(dts_walk *w, double bytes, const dts_task_info *info);
/* Is the gradient of a product's gathered input reduced beside the gradient of its weight? */
bool dts_reduces_beside(const dts_plan *plan, const dts_operator *o);
bool dts_async_chunks(const dts_walk *w, const dts_operator *o, dts_exchange behind);
/* What a whole transfer of backward takes from the product beside it: the gather of a product's input, or the reduction
 * of its gradient. */
dts_takes dts_async_takes(const dts_walk *w, dts_part part, const dts_operator *o, dts_exchange exchange);
/* Adds what chunks change to the times of a part's operators. */
void dts_async_times(dts_builder *b, const dts_operators *operators, dts_operator_times *times);
dts_id dts_async_product(dts_walk *w, const dts_operator *o, dts_exchange behind, const dts_task_info *info);

#endif
