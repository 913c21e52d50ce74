/* Internal to schedule/: how the members of the family write their orders and check their shapes. */
#ifndef DTS_SCHEDULE_ORDER_H
#define DTS_SCHEDULE_ORDER_H

#include "schedule/schedule.h"

/* Appends one operation to the rank's order. */
void dts_order_add(dts_schedule *schedule, int rank, dts_op_kind kind, int chunk, int microbatch);
/* The two operations appended last run as one block. */
void dts_order_fuse_last_two(dts_schedule *schedule, int rank);

/* What every shape has to fulfil: 1 <= stages <= 4096 and so on, and not more operations than can be held. */
dts_status dts_shape_check(const dts_schedule_shape *shape, dts_diag *diag);
/* The same, for schedules with exactly one or exactly two chunks, and for those with two or more of each. */
dts_status dts_shape_check_one_chunk(const dts_schedule_shape *shape, dts_diag *diag);
dts_status dts_shape_check_two_chunks(const dts_schedule_shape *shape, dts_diag *diag);
dts_status dts_shape_check_loop(const dts_schedule_shape *shape, dts_diag *diag);

/* tF + tB + tW of a microbatch. */
double dts_shape_work(const dts_schedule_shape *shape);
/* One of the shape's costs, or a half of it, as a whole number: heuristics compare sums of costs, and sums that are
 * equal have to compare as equal. The largest cost becomes 720720 · 10^5 (divisible by 1 … 16). */
int64_t dts_shape_ticks(const dts_schedule_shape *shape, double cost);
/* What F, B and W add to a rank's activations, in whole numbers for the same reason; together 0. */
void dts_shape_memory(const dts_schedule_shape *shape, int64_t memory[3]);
/* What formulas leave out, for bubble_limit: nothing; latency; latency and a count of microbatches below p, below
 * 2p-1, or no multiple of p. */
const char *dts_limit_none(const dts_schedule_shape *shape);
const char *dts_limit_latency(const dts_schedule_shape *shape);
const char *dts_limit_at_least_p(const dts_schedule_shape *shape);
const char *dts_limit_at_least_2p(const dts_schedule_shape *shape);
const char *dts_limit_multiple_of_p(const dts_schedule_shape *shape);

/* Depth-first orders: forwards run through all chunks of one group of microbatches before the next group begins;
 * warm-up forwards, then (forward, backward) pairs, then the rest of the backwards. */
typedef struct dts_depth_first {
    int group;        /* microbatches per group */
    int warmup;       /* forwards ahead of the first pair; capped at what there is */
    int weight_delay; /* W follows this many backwards after its B; < 0: the backward is not split */
    bool fuse_pairs;  /* a pair is one block */
    bool padded;      /* the last group keeps the places of microbatches that do not exist */
} dts_depth_first;

void dts_order_depth_first(dts_schedule *schedule, int rank, const dts_depth_first *rule);

/* Group size of torch's flexible interleaving: m / max(1, m / p), and its check. */
int dts_flexible_group(const dts_schedule_shape *shape);
dts_status dts_shape_check_flexible(const dts_schedule_shape *shape, dts_diag *diag);

/* The members, by file. */
extern const dts_schedule_method dts_schedule_naive, dts_schedule_gpipe, dts_schedule_gpipe_lifo;    /* gpipe.c */
extern const dts_schedule_method dts_schedule_1f1b, dts_schedule_pipedream, dts_schedule_eager_1f1b; /* one_f_one_b.c */
extern const dts_schedule_method dts_schedule_interleaved, dts_schedule_interleaved_flex,            /* interleaved.c */
    dts_schedule_interleaved_group2p, dts_schedule_interleaved_moe;
extern const dts_schedule_method dts_schedule_looped_bfs, dts_schedule_breadth_first_fifo; /* breadth_first.c */
extern const dts_schedule_method dts_schedule_zb_h1, dts_schedule_zb_h2,                   /* zero_bubble.c */
    dts_schedule_interleaved_zb1p, dts_schedule_group_interleaved;
extern const dts_schedule_method dts_schedule_zb1p_heuristic, dts_schedule_zb2p_heuristic; /* zb_heuristic.c */
extern const dts_schedule_method dts_schedule_zbv;                                         /* zbv.c */
extern const dts_schedule_method dts_schedule_zbv_heuristic;                               /* zbv_heuristic.c */
extern const dts_schedule_method dts_schedule_1f1b_v;                                      /* one_f_one_b_v.c */
extern const dts_schedule_method dts_schedule_v_half, dts_schedule_v_min;                  /* v_memory.c */
extern const dts_schedule_method dts_schedule_chimera;                                     /* chimera.c */
extern const dts_schedule_method dts_schedule_dualpipe, dts_schedule_dualpipev;            /* dualpipe.c */

#endif
