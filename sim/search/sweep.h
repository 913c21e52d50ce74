/* Every combination of the values of some keys, simulated. */
#ifndef DTS_SEARCH_SWEEP_H
#define DTS_SEARCH_SWEEP_H

#include <stdatomic.h>

#include "search/axis.h"
#include "search/outcome.h"
#include "search/store.h"

/* Told after every combination, by one thread at a time. */
typedef void dts_sweep_progress(void *context, size_t done, size_t total, const char *what);

typedef struct dts_sweep_request {
    const char *path; /* the scenario's file */
    const dts_override *overrides;
    size_t override_count;
    const dts_axis *axes; /* the last one varies fastest */
    size_t axis_count;
    const dts_profile_paths *profiles;
    dts_store *store;             /* NULL: none */
    const char *study;            /* with a store: the name of this sweep in it */
    int threads;                  /* less than 1: one per core */
    const atomic_bool *stop;      /* set by somebody else: begin no further combination; may be NULL */
    dts_sweep_progress *progress; /* may be NULL */
    void *progress_context;
} dts_sweep_request;

typedef struct dts_sweep {
    const dts_axis *axes; /* borrowed from the request */
    size_t axis_count;
    dts_outcome *outcomes; /* [count] in the order of the combinations, whatever the number of threads */
    bool *pareto;          /* [count] */
    size_t *work; /* [count]: the first combination whose tokens are the same work: of the same model and length */
    size_t count;
    size_t simulated, illegal, reused; /* reused: found in the store */
    size_t no_memory;                  /* ran out of it */
    bool interrupted;
    char *changed; /* with a store: how the scenario differs from the study's last time; NULL: not at all */
} dts_sweep;

/* Errors of one combination are its outcome, and so is that it ran out of memory. */
dts_status dts_sweep_run(const dts_sweep_request *request, dts_sweep **out, dts_diag *diag);
void dts_sweep_free(dts_sweep *sweep);

/* Are there combinations whose tokens are different work, so that none of all is the fastest? */
bool dts_sweep_of_several_works(const dts_sweep *sweep);

/* The value of an axis in a combination. */
const char *dts_sweep_value(const dts_sweep *sweep, size_t index, size_t axis);

/* "training.micro_batch=4 cluster.nodes=2" */
void dts_sweep_settings(const dts_sweep *sweep, size_t index, dts_text *out);

#endif
