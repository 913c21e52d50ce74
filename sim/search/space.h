/* The space of layouts: the values of each axis, and a walk over all legal candidates with their closed forms. */
#ifndef DTS_SEARCH_SPACE_H
#define DTS_SEARCH_SPACE_H

#include <stdatomic.h>

#include "search/axis.h"
#include "search/layout_costs.h"

enum { DTS_MOST_VALUES = 256 };

typedef struct dts_layout_space {
    const atomic_bool *stop;         /* walks end when it is set; NULL: never */
    const dts_scenario_values *base; /* borrowed */
    struct {
        int32_t items[DTS_MOST_VALUES];
        size_t count;
        bool given; /* by the user */
    } axes[DTS_AXIS_COUNT];
    dts_selections selections; /* of the values of recomputation: the stack's, and lists of modules */
} dts_layout_space;

/* The values that make sense for base, where restrictions do not say otherwise; a restriction's key is the scenario's
 * ("parallelism.tensor"; "offload" with none, cpu, nvme, optimizer, optimizer:nvme+gradients, …). */
dts_status dts_layout_space_make(const dts_scenario_values *base, const dts_axis *restrictions, size_t count,
                                 dts_layout_space *out, dts_diag *diag);

/* Leaves out the schedules that the stack's launcher lacks, unless the user named them, or it has none of them. */
void dts_layout_space_keep_offered(dts_layout_space *space);

/* What a GPU has for tensors: its memory without the context. */
double dts_layout_space_gpu_B(const dts_scenario_values *base);

/* Has the cluster drives, and can they be read and written? */
bool dts_layout_space_may_use_drives(const dts_scenario_values *base);

/* Where among an axis's values is this one; their count: nowhere. */
size_t dts_layout_space_find(const dts_layout_space *space, dts_layout_axis axis, int32_t value);
bool dts_layout_space_holds(const dts_layout_space *space, dts_layout_axis axis, int32_t value);

/* Does a value of the recomputation axis say something of its own of the candidates of a frame (repeats.c)? */
bool dts_layout_space_recomputes(const dts_layout_space *space, const dts_frame *frame, int32_t recompute);

/* A pair of tensor and pipeline degrees is walked as one; several may be walked at the same time. */
size_t dts_layout_space_pairs(const dts_layout_space *space);

/* Told of every legal candidate of a pair. Values that change nothing (the order of ranks of a single stage) are left
 * out: each plan comes once. So is a level of offload whose drives only add reads and writes: one of the axis that has
 * less of the same on drives is sure to have enough host memory, or too little on the GPU. */
typedef void dts_layout_visitor(void *context, const dts_candidate *candidate, const dts_estimate *estimate);

typedef struct dts_walk_counts {
    uint64_t legal;   /* candidates visited */
    uint64_t illegal; /* combinations of the outer axes that a rule refuses */
    char reason[160]; /* the first of these refusals that was not about the number of samples */
    bool passed;      /* some were passed over, and are not counted */
} dts_walk_counts;

dts_status dts_layout_space_walk(const dts_layout_space *space, size_t pair, dts_layout_visitor *visit, void *context,
                                 dts_walk_counts *counts, dts_diag *diag);

/* May candidates be wanted that begin with these values, of the first axes? Counts are of no use where some are not. */
typedef bool dts_layout_filter(const void *context, const dts_candidate *candidate, int axes);

/* Is nothing lost without the candidates that begin with these values, of the axes up to sharding at least, and that
 * all take least_s or longer by their closed forms? */
typedef bool dts_layout_passer(const void *context, const dts_candidate *candidate, int axes, double least_s);

/* All are called with the walk's context. */
typedef struct dts_layout_watch {
    dts_layout_visitor *visit;
    dts_layout_filter *wants;  /* NULL: all are */
    dts_layout_passer *passes; /* NULL: none are passed over */
} dts_layout_watch;

/* The same without the candidates that are not wanted, or passed over. */
dts_status dts_layout_space_watch(const dts_layout_space *space, size_t pair, const dts_layout_watch *watch,
                                  void *context, dts_walk_counts *counts, dts_diag *diag);

/* Is a candidate legal by the plan's own rules? Slow: makes the whole plan. */
bool dts_candidate_legal(const dts_candidate *candidate, const dts_scenario_values *base);

#endif
