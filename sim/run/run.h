/* The one call: scenario in, result out. */
#ifndef DTS_RUN_RUN_H
#define DTS_RUN_RUN_H

#include "plan/lower/lower.h"
#include "run/result.h"
#include "scenario/scenario.h"

typedef struct dts_run_options {
    bool timeline;           /* keep spans and memory samples in the result (for traces and pictures) */
    bool graph;              /* keep every task of the graph, with what it waited for and when it ran */
    bool explain;            /* keep where time and bytes go, term by term (explanation.h; without what-ifs) */
    bool coarse;             /* with explain: auto takes the detail that it takes without, not kernels */
    const atomic_bool *stop; /* set by another thread or a signal: DTS_INTERRUPTED instead of a result. NULL: nobody */
    dts_block_cache *blocks; /* for many runs: what layers and stages took in earlier ones (plan/lower/lower.h); NULL:
                                this run's own. The result has the same bytes either way. */
} dts_run_options;

/* How to need less memory: the help of a simulation that ran out of it. */
extern const char dts_memory_help[];

/* Plans, lowers, simulates and measures. Warnings go to the result, errors to diag. *out is owned by the caller
 * (dts_result_free). options NULL: none. */
dts_status dts_run(const dts_scenario *scenario, const dts_run_options *options, dts_result **out, dts_diag *diag);

/* The same for values that no file has said, such as those of a scenario with another plan. */
dts_status dts_run_values(const dts_scenario_values *values, const dts_run_options *options, dts_result **out,
                          dts_diag *diag);

#endif
