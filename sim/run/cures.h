/* What helps a plan that does not fit, or that fits but has retries: changes of one choice, simulated. */
#ifndef DTS_RUN_CURES_H
#define DTS_RUN_CURES_H

#include "run/run.h"

/* Of changes that were tried; total 0: unknown. */
typedef void dts_run_progress(void *context, size_t done, size_t total, const char *what);

typedef struct dts_cure_options {
    double sure_room;           /* room for tensors over what they take from which on a plan surely fits; 0: any */
    dts_run_progress *progress; /* NULL: nobody listens */
    void *progress_context;
    const char *named; /* how a command line names the scenario: "planning/llama-3-8b --set …"; NULL: none does */
} dts_cure_options;

/* Is there something to cure? */
bool dts_needs_cure(const dts_result *result);

/* Finds result->cures: the fastest few that suffice, the mildest of each kind; where none does the one that comes
 * nearest, which may change several things. What the rules refuse is left out.
 * The result's wall time grows by what that takes. options NULL: none. */
dts_status dts_find_cures(const dts_scenario_values *values, const dts_cure_options *options, dts_result *result,
                          dts_diag *diag);

#endif
