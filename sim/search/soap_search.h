/* Search for a SOAP strategy: several Markov chains over delta simulations, with FlexFlow's proposal [1]. */
#ifndef DTS_SEARCH_SOAP_SEARCH_H
#define DTS_SEARCH_SOAP_SEARCH_H

#include <stdatomic.h>

#include "search/soap_timing.h"

typedef struct dts_soap_options {
    uint64_t seed;
    uint32_t chains;         /* at least 1 */
    uint64_t proposals;      /* of each chain */
    int threads;             /* less than 1: one per core; the answer does not depend on it */
    const atomic_bool *stop; /* set by somebody else: end with the best so far; may be NULL */
} dts_soap_options;

/* One strategy and what it costs. */
typedef struct dts_soap_strategy {
    const char *name;         /* "data parallel", …, "found" */
    dts_soap_choice *choices; /* [operator] */
    double iteration_s;
    double peak_B; /* of the fullest device */
    bool fits;
} dts_soap_strategy;

/* A chain found something better than it had. */
typedef struct dts_soap_step {
    uint32_t chain;
    uint64_t proposal; /* of the chain; 0: where it began */
    double iteration_s;
    bool fits;
} dts_soap_step;

typedef struct dts_soap_outcome {
    dts_soap_strategy baselines[DTS_SOAP_BASELINE_COUNT];
    uint32_t order[DTS_SOAP_BASELINE_COUNT]; /* indices of the baselines, best first */
    dts_soap_strategy best;
    double capacity_B;            /* of a device, without context and libraries */
    double choices_log10;         /* size of the space: log10 of the number of strategies */
    uint64_t proposals, accepted; /* of all chains */
    uint64_t best_at;             /* proposal of its chain that found the best; 0: a chain's start */
    uint32_t best_chain;
    uint64_t timed_tasks, full_tasks; /* delta simulation timed the first, full ones had timed the second */
    dts_soap_step *steps;             /* of all chains, one chain after another, each in its order */
    size_t step_count;
    bool stopped;
} dts_soap_outcome;

/* Everything lives in arena. */
dts_status dts_soap_search(const dts_soap_problem *problem, const dts_soap_options *options, dts_arena *arena,
                           dts_soap_outcome *out, dts_diag *diag);

/* Tries every strategy (method exhaustive); DTS_INVALID with the reason when there are more than `most`. */
dts_status dts_soap_exhaust(const dts_soap_problem *problem, uint64_t most, const atomic_bool *stop, dts_arena *arena,
                            dts_soap_outcome *out, dts_diag *diag);

#endif
