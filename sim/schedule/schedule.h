/* Pipeline schedules: for every stage the order of its forward and backward operations, as a pure function of (stages,
 * microbatches, chunks). No time passes here; simulation happens when an order is lowered to tasks.
 *
 * Notation: p ranks (stages), m microbatches, v chunks (virtual stages) per rank, rank r from 0. Operation costs are
 * those of one microbatch on a rank's whole share; a chunk costs 1/v of it (bidirectional layouts: the full amount, as
 * every rank holds two whole stages). */
#ifndef DTS_SCHEDULE_SCHEDULE_H
#define DTS_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"

enum { DTS_MICROBATCHES_MOST = 1000000 }; /* of one order, drawn or read */

typedef enum dts_op_kind {
    DTS_OP_FORWARD,         /* F */
    DTS_OP_BACKWARD_INPUT,  /* B: gradient of the input only, what the previous stage waits for */
    DTS_OP_BACKWARD_WEIGHT, /* W: gradient of the weights only */
    DTS_OP_BACKWARD         /* BW: both at once; the input gradient leaves at the end */
} dts_op_kind;

typedef struct dts_op {
    uint8_t kind;       /* dts_op_kind */
    uint8_t fused_next; /* runs as one block with the following operation (DualPipe's F&B) */
    uint16_t chunk;
    uint32_t microbatch; /* bidirectional layouts: counted per direction (chunk 0 down, chunk 1 up) */
} dts_op;

/* How chunks lie on ranks. Virtual stage of (rank, chunk): */
typedef enum dts_layout {
    DTS_LAYOUT_SINGLE, /* rank */
    DTS_LAYOUT_LOOP,   /* chunk·p + rank */
    DTS_LAYOUT_V,      /* chunk 0: rank; chunk 1: 2p-1-rank */
    DTS_LAYOUT_BIDIR   /* two pipelines: chunk 0: rank (down), chunk 1: p-1-rank (up) */
} dts_layout;

typedef struct dts_schedule_shape {
    int stages;       /* p >= 1 */
    int microbatches; /* m >= 1 */
    int chunks;       /* v >= 1 */
    int group;        /* microbatches per group of interleaved orders; 0: the schedule's own default */
    int flushes;      /* the order is that of m / flushes microbatches, so many times; 0 as 1 */
    /* relative costs for cost-aware (heuristic) schedules; others ignore them */
    double forward, backward_input, backward_weight, latency;
    /* the part of a forward's activations that its B frees, W the rest; below 0: B keeps more than it frees */
    double input_frees;
} dts_schedule_shape;

typedef struct dts_schedule {
    const char *name;
    dts_layout layout;
    dts_schedule_shape shape;
    dts_op **ops;     /* [stages][op_count[rank]] in the arena */
    size_t *op_count; /* [stages] */
} dts_schedule;

typedef struct dts_schedule_method {
    const char *name;    /* with hyphens: "1f1b", "interleaved-1f1b" */
    const char *alias;   /* what the origin calls it, where that is not the name; NULL */
    const char *summary; /* one line for `dtsim list schedules` */
    const char *origin;  /* paper or framework */
    dts_layout layout;
    int default_chunks;
    bool splits_backward; /* has B and W instead of BW */
    bool follows_costs;   /* the order is made for the costs of the shape */
    bool asynchronous;    /* no flush: updates inside the stream (PipeDream) */
    bool fuses;           /* pairs of passes are one block: one may run while the other waits */
    /* DTS_INVALID with the reason and the nearest legal choice when the shape is illegal for this schedule. */
    dts_status (*check)(const dts_schedule_shape *shape, dts_diag *diag);
    /* One of these writes the order into out, which has its shape and room for it: rank by rank, or all ranks at once
     * with the help of memory that goes when it is done (DTS_NOMEM: there was none). */
    void (*write_rank)(dts_schedule *out, int rank);
    dts_status (*make)(dts_schedule *out, dts_arena *scratch);
    /* Textbook bubble time beyond m·T, in units of the costs; NULL: no closed form. c is the hop latency. */
    double (*bubble)(const dts_schedule_shape *shape);
    const char *bubble_formula;  /* as text, e.g. "(p-1)(F+B+W)"; NULL where the bubble is always 0 */
    const char *latency_formula; /* what latency adds, e.g. "2(p-1)c"; NULL: the formula leaves it out */
    bool bubble_of_span;         /* the formula is about the longest span of one rank, not about the makespan */
    /* NULL when the formula is exact for this shape, else what it leaves out: "it leaves out the latency of hops". */
    const char *(*bubble_limit)(const dts_schedule_shape *shape);
} dts_schedule_method;

/* All schedules, in teaching order. */
const dts_schedule_method *const *dts_schedule_methods(size_t *count);
/* By name or alias. NULL when unknown. */
const dts_schedule_method *dts_schedule_find(const char *name);
/* The name that is nearest to an unknown one, or of the first method whose origin it names; NULL: none. */
const char *dts_schedule_nearest(const char *name);

/* Builds name for shape. The operations are complete and unique (each microbatch once forward and once backward per
 * chunk). Errors: unknown name (with the nearest), illegal shape. */
dts_status dts_schedule_build(const char *name, const dts_schedule_shape *shape, dts_arena *arena, dts_schedule *out,
                              dts_diag *diag);

/* The shape of one flush of a shape, of which m is a multiple. */
dts_schedule_shape dts_schedule_flush(const dts_schedule_shape *shape);
/* Where a schedule refuses the microbatches of one of several flushes: *flushes, as many as it takes at most with all
 * of m (0: it takes none); *microbatches, the least number above m for as many flushes (0: none found). */
void dts_schedule_mend_flushes(const dts_schedule_method *method, const dts_schedule_shape *shape, int *flushes,
                               int *microbatches);
/* The order once more for each flush, as gradients are accumulated over several runs of a pipeline: a rank begins the
 * next one when it has done with its own part of the one before. False: no memory. */
bool dts_schedule_repeat(const dts_schedule *one, int flushes, dts_arena *arena, dts_schedule *out);
/* method's closed form, for every flush of the shape; and what it leaves out, as bubble_limit. */
double dts_schedule_bubble(const dts_schedule_method *method, const dts_schedule_shape *shape);
const char *dts_schedule_bubble_limit(const dts_schedule_method *method, const dts_schedule_shape *shape);

/* Virtual stage of (rank, chunk), and back. */
int dts_virtual_stage(dts_layout layout, int stages, int rank, int chunk);
void dts_virtual_stage_owner(dts_layout layout, int stages, int virtual_stage, int direction, int *rank, int *chunk);
int dts_virtual_stage_count(dts_layout layout, int stages, int chunks);

/* Peak of live activations of a rank in units of one microbatch of 1/p of the layers (a chunk counts 1/v, bidirectional
 * 1): +1/v at F, -input_frees/v at B, the rest at W, and -1/v at BW. Follows from the order and input_frees alone. */
double dts_schedule_peak_activation(const dts_schedule *schedule, int rank);

/* Chunks of a rank whose activations live: all of them, from F to B or BW; or what W needs, from B to W. Of the rank's
 * last chunk by themselves, where they are told apart. */
typedef struct dts_schedule_moment {
    float whole, halves;
    float last_whole, last_halves;
} dts_schedule_moment;

/* Moments of an order that no other one exceeds in everything: the peak of what is kept of chunks is at one of them,
 * whatever F leaves and B frees. */
typedef struct dts_moments {
    const dts_schedule_moment *items;
    size_t count;
} dts_moments;

/* [rank]; the last chunk is told apart on the rank that has the last virtual stage. NULL: no memory. */
dts_moments *dts_schedule_moments(const dts_schedule *schedule, dts_arena *arena);
/* Adds a moment to a list that has room for it. Returns how many are left. */
size_t dts_schedule_add_moment(const dts_schedule_moment *moment, dts_schedule_moment *moments, size_t count);

/* Time of one operation for costs as in the shape: a chunk costs 1/v (bidirectional: the full amount). */
double dts_op_cost(const dts_schedule *schedule, const dts_op *op, double forward, double backward_input,
                   double backward_weight);

/* Number of operations of the block that begins with operation index: 1, or more when they are fused. */
size_t dts_schedule_block_size(const dts_schedule *schedule, int rank, size_t index);

/* Writes an operation as "F3", "BW0", "B1.1": kind, microbatch, and the chunk where there are several. */
void dts_op_format(const dts_schedule *schedule, const dts_op *op, char *buffer, size_t size);

#endif
