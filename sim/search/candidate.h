/* A layout as a search sees it: one value for each axis of the space. */
#ifndef DTS_SEARCH_CANDIDATE_H
#define DTS_SEARCH_CANDIDATE_H

#include "scenario/scenario.h"

/* The axes, outermost first. */
typedef enum dts_layout_axis {
    DTS_AXIS_TENSOR,
    DTS_AXIS_PIPELINE,
    DTS_AXIS_CONTEXT,
    DTS_AXIS_EXPERT,
    DTS_AXIS_MICRO_BATCH,
    DTS_AXIS_SEQUENCE, /* 0, 1 */
    DTS_AXIS_ORDER,    /* dts_rank_order */
    DTS_AXIS_VIRTUAL_STAGES,
    DTS_AXIS_PARTITION,     /* dts_partition_kind; GIVEN: see stages */
    DTS_AXIS_SCHEDULE,      /* index into dts_schedule_methods */
    DTS_AXIS_DATA_PARALLEL, /* dts_data_parallel */
    DTS_AXIS_SHARD_GROUP,   /* 0: all */
    DTS_AXIS_RECOMPUTE,     /* dts_recompute_kind; DTS_RECOMPUTE_EVERY + n: one checkpoint per n layers;
                           DTS_CANDIDATE_FIRST + n: the first n layers of every chunk;
                           DTS_CANDIDATE_MODULES + m: the modules of the bits of m (dts_recompute.modules) */
    DTS_AXIS_OFFLOAD,       /* a level: what rests off the GPU (dts_offload_bits), and what of it on drives */
    DTS_AXIS_COUNT
} dts_layout_axis;

enum { DTS_CANDIDATE_FIRST = 1 << 20, DTS_CANDIDATE_MODULES = 1 << 21 };

/* What a value of the recomputation axis says. */
dts_recompute dts_candidate_recompute(int32_t value);

enum dts_offload_bits {
    DTS_OFFLOAD_OPTIMIZER = 1,
    DTS_OFFLOAD_GRADIENTS = 2,
    DTS_OFFLOAD_PARAMETERS = 4,
    DTS_OFFLOAD_ACTIVATIONS = 8,
    DTS_OFFLOAD_ALL = 15,
    DTS_OFFLOAD_LEVELS = 256
};

/* The level at which off rests off the GPU, and on_drives, a part of it, on NVMe. */
static inline int32_t dts_offload_level(int off, int on_drives) {
    return (int32_t)(off | on_drives * (DTS_OFFLOAD_ALL + 1));
}

static inline int dts_offload_on_drives(int32_t level) {
    return level / (DTS_OFFLOAD_ALL + 1);
}

/* Where what a bit says rests at a level (dts_offload_target). */
static inline int dts_offload_target_of(int32_t level, int bit) {
    const bool drives = (dts_offload_on_drives(level) & bit) != 0;
    return drives ? DTS_OFFLOAD_NVME : (level & bit) != 0 ? DTS_OFFLOAD_CPU : DTS_OFFLOAD_NONE;
}

/* Layers of each stage; the walk over all candidates knows none, dynamic programming makes them. */
typedef struct dts_stage_list {
    int64_t *layers;
    size_t count;
} dts_stage_list;

typedef struct dts_candidate {
    int32_t value[DTS_AXIS_COUNT];
    const dts_stage_list *stages; /* where the partition is DTS_PARTITION_GIVEN; borrowed */
} dts_candidate;

/* Replicas that the degrees leave of the scenario's GPUs. */
int64_t dts_candidate_data(const dts_candidate *candidate, const dts_scenario_values *base);

/* A total order, so that no answer depends on who came first. */
int dts_candidate_compare(const dts_candidate *a, const dts_candidate *b);

/* The scenario with the candidate's plan; borrows base's strings and lists. */
void dts_candidate_apply(const dts_candidate *candidate, const dts_scenario_values *base, dts_scenario_values *out);

/* The candidate of the scenario's own plan, which may point to stages; false: it is illegal, or has an order of passes
 * of its own (parallelism.schedule names a file), which no candidate says. */
bool dts_candidate_of(const dts_scenario_values *base, dts_stage_list *stages, dts_candidate *out);

/* Is the candidate the same plan in the other order of ranks (rank_order_twins.c)? */
bool dts_candidate_has_twin(const dts_candidate *candidate, const dts_scenario_values *base);

/* "tensor 8 · pipeline 4 × 2 (interleaved-1f1b) · zero1 16 · micro 1 · recompute selective" */
void dts_candidate_describe(const dts_candidate *candidate, const dts_scenario_values *base, dts_text *out);

/* The scenario key of an axis, and its value there as YAML; the offload axis has four keys (index 0 … 3), the others
 * one. NULL: no more. */
const char *dts_candidate_key(dts_layout_axis axis, int index);
void dts_candidate_write(const dts_candidate *candidate, dts_layout_axis axis, int index, dts_text *out);

/* Has an axis its usual value, which need not be told? */
bool dts_candidate_usual(const dts_candidate *candidate, dts_layout_axis axis);
/* Does key `index` of an axis have different values? How many keys do, of all axes. */
bool dts_candidate_differs(const dts_candidate *a, const dts_candidate *b, dts_layout_axis axis, int index);
int dts_candidate_distance(const dts_candidate *a, const dts_candidate *b);

/* What a dimension is called when it is named as searched: "tensor", "virtual stages". */
const char *dts_layout_axis_name(dts_layout_axis axis);

/* The value that YAML text means on an axis; false: none. */
bool dts_candidate_parse(dts_layout_axis axis, const char *text, int32_t *out);
/* What to write on an axis, as help. */
void dts_candidate_values(dts_layout_axis axis, dts_text *out);

#endif
