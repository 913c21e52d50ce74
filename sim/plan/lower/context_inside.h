/* Attention over a shared sequence: what context.c and ring.c share. */
#ifndef DTS_PLAN_LOWER_CONTEXT_INSIDE_H
#define DTS_PLAN_LOWER_CONTEXT_INSIDE_H

#include "plan/lower/chunk_pass.h"

/* Sizes of one rank, bytes. */
typedef struct dts_context_sizes {
    double query_B; /* (b, s/C, a, d); the output too */
    double block_B; /* K and V of one rank: 2·(b, s/C, kv, d) */
} dts_context_sizes;

/* The attention that is being lowered. */
typedef struct dts_context_split {
    dts_walk *w;
    const dts_operator *o;
    const dts_task_info *info;
    bool gradient; /* its backward */
} dts_context_split;

dts_context_method dts_context_method_of(const dts_builder *b);
/* Calls of attention in one direction. */
int64_t dts_context_calls(const dts_builder *b, const dts_operator *o);
dts_context_sizes dts_context_sizes_of(const dts_builder *b, const dts_operator *o);

/* The kernels of one call of attention (a step of the ring), after one more task. Returns the first. */
dts_id dts_context_call(const dts_context_split *p, int64_t call, dts_id after);

/* count kernels that move bytes together. Returns the first. */
dts_id dts_context_pass(const dts_context_split *p, const char *name, int count, double bytes);

/* What is received lives from the first kernel to the last. */
void dts_context_hold(const dts_context_split *p, dts_id first, double bytes);

/* All of it, method ring (ring.c). Returns the first kernel. */
dts_id dts_context_ring(const dts_context_split *p);

#endif
