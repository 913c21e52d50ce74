/* A result with its reasons, and what would change if the hardware or the plan were a little different. */
#ifndef DTS_RUN_EXPLAIN_H
#define DTS_RUN_EXPLAIN_H

#include "run/run.h"

typedef struct dts_explain_request {
    const char *path; /* of the scenario; NULL: nothing but the overrides */
    const dts_override *overrides;
    size_t override_count;
    const dts_profile_paths *profiles;
    bool coarse;  /* at the detail that a run takes, not kernel by kernel */
    bool what_if; /* simulate the changes as well: some twenty more runs */
    int threads;  /* simulations at a time; less than 1: one per core */
} dts_explain_request;

/* Simulates the scenario and explains it: result->explanation. *out is owned by the caller. */
dts_status dts_explain(const dts_explain_request *request, dts_result **out, dts_diag *diag);

#endif
