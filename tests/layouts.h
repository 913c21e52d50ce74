/* Layouts of a search for tests: axes that are written out, and the simulation of a candidate, which undercuts none of
 * its bounds. */
#ifndef DTS_TESTS_LAYOUTS_H
#define DTS_TESTS_LAYOUTS_H

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

static inline double bytes_of(double gib) {
    return gib * 1024.0 * 1024.0 * 1024.0;
}

static inline dts_result *simulate_candidate(const dts_candidate *candidate, const dts_scenario_values *base) {
    dts_scenario_values values;
    dts_candidate_apply(candidate, base, &values);
    return simulate_values(&values, NULL);
}

static inline dts_result *check_bounds(const dts_candidate *candidate, const dts_estimate *estimate,
                                       const dts_scenario_values *base) {
    dts_result *result = simulate_candidate(candidate, base);
    const double peak_B = bytes_of(result->peak_allocated_gib), host_B = bytes_of(result->host_peak_gib);
    const double drives_B = bytes_of(result->nvme_peak_gib);
    const bool most = base->cluster.host.nvme_capacity_B > 0;
    if (estimate->least_time_s > result->iteration_time_s || estimate->least_memory_B > peak_B ||
        estimate->least_host_B > host_B || estimate->least_drives_B > drives_B ||
        (most && estimate->most_host_B < host_B * (1 - 1e-9))) {
        dts_text plan = {0};
        dts_candidate_describe(candidate, base, &plan);
        fail_msg(
            "%s: at least %g s, %g B, %g B in a host and at most %g, %g B on drives; simulated %g s, %g B, %g B, "
            "%g B",
            dts_text_string(&plan), estimate->least_time_s, estimate->least_memory_B, estimate->least_host_B,
            estimate->most_host_B, estimate->least_drives_B, result->iteration_time_s, peak_B, host_B, drives_B);
        dts_text_free(&plan);
    }
    return result;
}

#endif
