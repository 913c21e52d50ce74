/* How changes against too little memory are simulated, within a budget of tasks that follows from the run itself: the
 * same scenario tries the same changes on every computer. */
#ifndef DTS_RUN_CURE_RUNS_H
#define DTS_RUN_CURE_RUNS_H

#include "run/cure_levers.h"
#include "run/cures.h"

typedef struct dts_tries {
    const dts_scenario_values *base;
    const dts_cure_options *options; /* NULL: none */
    const dts_result *result;        /* of base */
    int64_t part;                    /* of the batch, one in so many shows what a change does; 1: all is simulated */
    double part_tokens_per_s;        /* of the plan as it is, with so many */
    double budget, spent;            /* tasks */
    double tasks_per_kernel;         /* of the run, where kernels stand one by one; at least 1 */
    size_t left_out;                 /* changes that could not be afforded */
    size_t told;                     /* changes whose progress was told */
} dts_tries;

enum { DTS_TRIES_AT_ONCE = 16 };

/* Borrows all. */
void dts_tries_begin(dts_tries *tries, const dts_scenario_values *base, const dts_cure_options *options,
                     const dts_result *result);

/* Half as much again, for trials of another kind. */
void dts_tries_renew(dts_tries *tries);

/* At most DTS_TRIES_AT_ONCE trials side by side, each as far as it can be afforded; what cannot stays unknown. A first
 * look, or a part of the batch where a look simulates every kernel, too. */
void dts_tries_first(dts_tries *tries, dts_trial *const *items, size_t count);
/* In full, or as the first look or the part has it where that costs too much. last: what is left of the budget is for
 * these; else first looks are to follow. */
void dts_tries_whole(dts_tries *tries, dts_trial *const *items, size_t count, bool last);

/* More than nine tenths of the capacity: retries are near, so a stronger change is tried, too. */
bool dts_tries_tight(const dts_tries *tries, const dts_trial *t);

#endif
