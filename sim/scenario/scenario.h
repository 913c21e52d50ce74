/* Everything a user can say, in one struct: the model, the cluster, the software, the training job and the plan. */
#ifndef DTS_SCENARIO_SCENARIO_H
#define DTS_SCENARIO_SCENARIO_H

#include "hardware/hardware.h"
#include "model/model.h"
#include "model/tensor_graph.h"
#include "plan/plan.h"

typedef struct dts_fidelity {
    int detail;       /* dts_detail */
    int network;      /* dts_network_detail */
    int ranks;        /* dts_rank_detail */
    int microbatches; /* dts_microbatch_detail */
    int64_t seed;     /* of what is drawn: cluster.jitter, cluster.gpu_spread */
    int allocator;    /* dts_allocator_detail */
} dts_fidelity;

typedef enum dts_microbatch_detail {
    DTS_MICROBATCHES_AUTO,
    DTS_MICROBATCHES_ALL,
    DTS_MICROBATCHES_FOLDED
} dts_microbatch_detail;

typedef enum dts_allocator_detail {
    DTS_ALLOCATOR_AUTO,
    DTS_ALLOCATOR_ESTIMATE,
    DTS_ALLOCATOR_REPLAY
} dts_allocator_detail;

typedef enum dts_network_detail { DTS_NETWORK_AUTO, DTS_NETWORK_CLOSED_FORM, DTS_NETWORK_FLOW } dts_network_detail;
typedef enum dts_rank_detail { DTS_RANKS_AUTO, DTS_RANKS_FOLDED, DTS_RANKS_FULL } dts_rank_detail;

typedef struct dts_scenario_values {
    const char *name;
    const char *description; /* what the scenario is about */
    const char *expect;      /* what to expect, and why */
    dts_model model;
    dts_graph_profile graph; /* without operators: the model it is */
    dts_cluster cluster;
    dts_stack stack;
    dts_training training;
    dts_parallelism parallelism;
    dts_offload offload;
    dts_input input;
    dts_fidelity fidelity;
} dts_scenario_values;

extern const dts_schema dts_scenario_schema;

/* What the plan is made from; borrows values. */
dts_job dts_scenario_job(const dts_scenario_values *values);

/* One `KEY=VALUE` of the command line or one cell of a table. */
typedef struct dts_override {
    const char *key;   /* dotted */
    const char *value; /* YAML */
    dts_place place;   /* for messages */
} dts_override;

typedef struct dts_scenario dts_scenario;

/* Reads a scenario file (path), or starts from an empty one (path NULL: a table's row), applies the overrides in order,
 * resolves profiles and binds. All errors are reported. *out is owned by the caller. */
dts_status dts_scenario_load(const char *path, const dts_override *overrides, size_t override_count,
                             const dts_profile_paths *profiles, dts_scenario **out, dts_diag *diag);
/* The same where the model, the cluster and the stack are those of like, which was loaded from the same file and
 * overrides but for some of other keys: they are borrowed from it, and no profile is read. */
dts_status dts_scenario_load_like(const dts_scenario *like, const char *path, const dts_override *overrides,
                                  size_t override_count, const dts_profile_paths *profiles, dts_scenario **out,
                                  dts_diag *diag);
/* The same from text. */
dts_status dts_scenario_parse(const char *text, size_t length, const char *name, const dts_override *overrides,
                              size_t override_count, const dts_profile_paths *profiles, dts_scenario **out,
                              dts_diag *diag);
/* The same scenario by itself, as it may be written to a file in any folder: dts_schema_settle says what differs. Lives
 * as long as scenario. */
dts_status dts_scenario_settle(const dts_scenario *scenario, const char *current, const dts_profile_paths *profiles,
                               dts_scenario **out, dts_diag *diag);
/* Overrides of values that are bound already, in order: of single keys below `cluster`, `stack`, `training` and the
 * like, not of profiles, which take files. Strings and lists go to arena; what keys say together is left to the rules
 * of the plan. */
dts_status dts_scenario_change(dts_scenario_values *values, const dts_override *overrides, size_t override_count,
                               dts_arena *arena, dts_diag *diag);
void dts_scenario_free(dts_scenario *scenario);
const dts_scenario_values *dts_scenario_get(const dts_scenario *scenario);
const dts_provenance *dts_scenario_provenance(const dts_scenario *scenario);
/* The value of a dotted key as text, borrowed; NULL: the scenario says nothing of it. */
const char *dts_scenario_value(const dts_scenario *scenario, const char *key);
/* The file with its overrides and its bases merged, before profiles are looked up; borrowed. */
const dts_node *dts_scenario_tree(const dts_scenario *scenario);

#endif
