/* Lowering: a plan becomes a task graph. Only this folder makes tasks.
 *
 * One replica stands for all (folded ranks): every pipeline stage of replica 0 is a device with a host thread, a
 * compute stream, one stream per communicator and one per direction of each pipeline link. Collectives with the other
 * replicas are flows over the replica's links, with weights that count the identical groups sharing them. */
#ifndef DTS_PLAN_LOWER_LOWER_H
#define DTS_PLAN_LOWER_LOWER_H

#include "engine/graph.h"
#include "plan/plan.h"

/* What a task does; reports colour and count by it. */
typedef enum dts_role {
    DTS_ROLE_FORWARD,
    DTS_ROLE_RECOMPUTE,
    DTS_ROLE_BACKWARD,
    DTS_ROLE_BACKWARD_WEIGHT,
    DTS_ROLE_OPTIMIZER,
    DTS_ROLE_COMMUNICATION,
    DTS_ROLE_OFFLOAD, /* a copy between the GPU and host memory */
    DTS_ROLE_HOST,
    DTS_ROLE_COUNT
} dts_role;

extern const char *const dts_role_names[DTS_ROLE_COUNT + 1];

/* Communicators of a device. */
typedef enum dts_group_kind {
    DTS_GROUP_DATA,
    DTS_GROUP_TENSOR,
    DTS_GROUP_CONTEXT,
    DTS_GROUP_PIPELINE,
    DTS_GROUP_EMBEDDING,
    DTS_GROUP_REPLICA,     /* hybrid sharding: the ranks that hold the same shard */
    DTS_GROUP_EXPERT,      /* ranks that hold different experts: tokens */
    DTS_GROUP_EXPERT_DATA, /* ranks that hold the same experts: their gradients and parameters */
    DTS_GROUP_COUNT
} dts_group_kind;

extern const char *const dts_group_names[DTS_GROUP_COUNT + 1];

/* Memory categories of the ledger. */
typedef enum dts_memory_category {
    DTS_MEMORY_PARAMETERS,
    DTS_MEMORY_GRADIENTS,
    DTS_MEMORY_OPTIMIZER,
    DTS_MEMORY_ACTIVATIONS,
    DTS_MEMORY_TEMPORARY,
    DTS_MEMORY_COMMUNICATION,
    DTS_MEMORY_CATEGORY_COUNT
} dts_memory_category;

/* What a task is, by its tag. */
typedef struct dts_task_info {
    uint8_t role;       /* dts_role */
    uint8_t group;      /* communication: dts_group_kind */
    int8_t collective;  /* communication: dts_collective, -1: send-recv */
    int32_t microbatch; /* -1: none */
    int32_t layer;      /* 0 embedding, layers from 1, last + 1 head; -1: none */
    int32_t chunk;
    dts_id device;
    dts_id peer;      /* send-recv: the receiving device; else as device */
    const char *name; /* borrowed from the operator or the arena */
    double bytes;     /* communication: payload, B */
    double flops;     /* products on this GPU, FLOP */
} dts_task_info;

typedef struct dts_lowered {
    dts_graph *graph;     /* frozen; owned */
    dts_task_info *infos; /* by task id */
    size_t info_count;
    dts_id *compute_stream; /* [pipeline] */
    dts_id *host_device;    /* [host_count] offload: whose ledger is a node's host memory */
    dts_id *nvme_device;    /* [host_count] the same of its drives; DTS_NO_ID: none are used */
    size_t host_count;
    dts_id window_from, window_to; /* the iteration is what lies between the ends of these; DTS_NO_ID: all of it */
    double *stage_parameters;      /* [pipeline] elements on one tensor-parallel rank */
    int64_t *static_B;             /* [device] memory that lives the whole iteration, B */
    double flops; /* products of all stages on one tensor rank per iteration, recomputation included, FLOP */
} dts_lowered;

/* Where the members of stage's group of this kind sit. */
dts_placement dts_lower_placement(const dts_plan *plan, int64_t stage, dts_group_kind group);

/* How many identical groups of this kind share the network of a node: each is simulated once, by its member in replica
 * 0, but all load the node's network at the same time. */
double dts_lower_sharing(const dts_plan *plan, dts_group_kind group);

/* Builds the graph of one iteration (one optimizer step). Tables and names live in arena. */
dts_status dts_lower(const dts_plan *plan, bool flow_network, dts_arena *arena, dts_lowered *out, dts_diag *diag);
void dts_lowered_free(dts_lowered *lowered);

#endif
