/* Closed forms of layouts against the simulation of each. */
#ifndef DTS_TEST_CLOSED_FORM_H
#define DTS_TEST_CLOSED_FORM_H

#include <math.h>

#include "search/layouts.h"
#include "simulate.h"

#define VALUES(...)    \
    (const char *[]) { \
        __VA_ARGS__    \
    }
#define AXIS(name, ...)                                                                                        \
    (dts_axis) {                                                                                               \
        .key = name, .values = VALUES(__VA_ARGS__), .count = sizeof VALUES(__VA_ARGS__) / sizeof(const char *) \
    }

typedef struct tally {
    const dts_scenario_values *base;
    size_t count;
    double worst_memory, worst_time, memory_B; /* of the last one */
} tally;

/* The bounds hold; how far are memory and time from those of the simulation? */
static void compare(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    tally *t = context;
    dts_scenario_values values;
    dts_candidate_apply(candidate, t->base, &values);
    dts_result *result = simulate_values(&values, NULL);
    const double peak_B = result->peak_allocated_gib * 1024.0 * 1024.0 * 1024.0;
    assert_true(estimate->least_memory_B <= peak_B);
    assert_true(estimate->least_time_s <= result->iteration_time_s);
    t->worst_memory = fmax(t->worst_memory, fabs(estimate->memory_B / peak_B - 1));
    t->worst_time = fmax(t->worst_time, fabs(estimate->time_s / result->iteration_time_s - 1));
    t->memory_B = estimate->memory_B;
    t->count++;
    dts_result_free(result);
}

/* Layouts of a scenario over axes, at least so many of them: how far may memory and time be off? Returns the memory of
 * the last one. */
static inline double check_layouts(const char *text, const dts_axis *over, size_t over_count, size_t least,
                                   double memory, double time) {
    dts_scenario *scenario = parse_text(text);
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    assert_int_equal(dts_layout_space_make(dts_scenario_get(scenario), over, over_count, &space, diag), DTS_OK);
    tally t = {.base = dts_scenario_get(scenario)};
    for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
        dts_walk_counts counts;
        assert_int_equal(dts_layout_space_walk(&space, pair, compare, &t, &counts, diag), DTS_OK);
    }
    print_message("%zu layouts: memory off by %.1f %% at most, time by %.1f %%\n", t.count, 100 * t.worst_memory,
                  100 * t.worst_time);
    assert_true(t.count >= least && t.worst_memory < memory && t.worst_time < time);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
    return t.memory_B;
}

#endif
