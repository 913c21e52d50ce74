/* Bounds and estimates of layouts against the simulation of each. */
#ifndef DTS_TEST_CLOSED_FORM_H
#define DTS_TEST_CLOSED_FORM_H

#include <math.h>

#include "layouts.h"

typedef struct tally {
    const dts_scenario_values *base; /* while the layouts are walked */
    size_t count;
    double worst_memory;   /* by which the estimate is off */
    dts_estimate estimate; /* of the last one … */
    double full_s;         /* … which its simulation takes */
} tally;

/* Bounds hold, and how far is the estimated memory from that of the simulation? */
static void compare(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    tally *t = context;
    dts_result *result = check_bounds(candidate, estimate, t->base);
    t->worst_memory = fmax(t->worst_memory, fabs(estimate->memory_B / bytes_of(result->peak_allocated_gib) - 1));
    t->estimate = *estimate;
    t->full_s = result->iteration_time_s;
    t->count++;
    dts_result_free(result);
}

/* All layouts of a scenario over axes. */
static inline tally walk_layouts(const char *text, const dts_axis *over, size_t over_count) {
    dts_scenario *scenario = parse_text(text);
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    assert_int_equal(dts_layout_space_make(dts_scenario_get(scenario), over, over_count, &space, diag), DTS_OK);
    tally t = {.base = dts_scenario_get(scenario)};
    for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
        dts_walk_counts counts;
        assert_int_equal(dts_layout_space_walk(&space, pair, compare, &t, &counts, diag), DTS_OK);
    }
    dts_diag_free(diag);
    dts_scenario_free(scenario);
    t.base = NULL;
    return t;
}

/* At least so many layouts: how far may the memory be off? Returns that of the last one. */
static inline double check_layouts(const char *text, const dts_axis *over, size_t over_count, size_t least,
                                   double memory) {
    const tally t = walk_layouts(text, over, over_count);
    print_message("%zu layouts: memory off by %.1f %% at most\n", t.count, 100 * t.worst_memory);
    assert_true(t.count >= least && t.worst_memory < memory);
    return t.estimate.memory_B;
}

#endif
