/* SOAP strategies: every operator of a tensor graph is cut along its own dimensions, and every part has a device [1].
 *
 * A choice says how many parts each dimension of the output makes, and on which devices they lie: parts are numbered
 * with the last dimension fastest (so that parts of one weight are neighbours), and part j lies on device first + j, as
 * FlexFlow numbers them [2]. Operators of a layer that do not depend on each other may lie on different devices:
 * that is the O of SOAP.
 *
 * [1] Jia, Zaharia, Aiken, Beyond Data and Model Parallelism for Deep Neural Networks, MLSys 2019, section 4.
 * [2] flexflow/FlexFlow src/runtime/model.cc, Op::get_random_parallel_config. */
#ifndef DTS_PLAN_SOAP_H
#define DTS_PLAN_SOAP_H

#include "model/tensor_graph.h"
#include "plan/plan.h"

/* One way of cutting an operator. */
typedef struct dts_soap_cut {
    int64_t degree[DTS_TENSOR_DIMS]; /* parts along each dimension */
    int64_t parts;                   /* their product */
    int64_t align;                   /* the first device is a multiple of this: parts of one weight share a node */
} dts_soap_cut;

typedef struct dts_soap_cuts {
    dts_soap_cut *items;
    size_t count;
} dts_soap_cuts;

/* What is chosen for one operator. */
typedef struct dts_soap_choice {
    uint32_t cut;   /* index into the operator's cuts */
    uint32_t first; /* device of part 0 */
} dts_soap_choice;

/* What stays the same while strategies change. Everything lives in the arena it was made with. */
typedef struct dts_soap_problem {
    const dts_tensor_graph *graph;
    const dts_cluster *cluster;
    const dts_stack *stack;
    const dts_training *training;
    dts_storage storage;
    dts_soap_cuts *cuts; /* [operator] */
    uint32_t devices;
    uint32_t devices_per_node;
    uint32_t lanes_per_node; /* network adapters */
    uint32_t **consumers;    /* [operator][consumer_count]: who reads it; ascending; twice when it is read twice */
    size_t *consumer_count;
} dts_soap_problem;

/* DTS_INVALID when the cluster is too large, or an operator cannot be placed at all. */
dts_status dts_soap_problem_make(const dts_tensor_graph *graph, const dts_cluster *cluster, const dts_stack *stack,
                                 const dts_training *training, dts_arena *arena, dts_soap_problem *out, dts_diag *diag);

/* The box that part j of a cut makes. */
dts_box dts_soap_part(const dts_tensor_op *op, const dts_soap_cut *cut, int64_t part);

/* The strategies that need no search. */
typedef enum dts_soap_baseline {
    DTS_SOAP_SINGLE,    /* all on device 0 */
    DTS_SOAP_DATA,      /* samples over as many devices as divide the batch */
    DTS_SOAP_EXPERT,    /* convolutions by samples, dense layers by parameters [3]; transformers: weights and heads
                           inside a node, as Megatron does, samples beyond */
    DTS_SOAP_DATA_NODE, /* the same on one node, the others idle: slow networks can make that the best */
    DTS_SOAP_EXPERT_NODE,
    DTS_SOAP_BASELINE_COUNT /* [3] Krizhevsky 2014, One weird trick …, arXiv 1404.5997 */
} dts_soap_baseline;

extern const char *const dts_soap_baseline_names[DTS_SOAP_BASELINE_COUNT + 1];

void dts_soap_baseline_choices(const dts_soap_problem *problem, dts_soap_baseline baseline, dts_soap_choice *choices);

/* Positions of the first device that a cut can have: 0, align, 2·align … */
uint32_t dts_soap_positions(const dts_soap_problem *problem, const dts_soap_cut *cut);

#endif
