/* Short ways to build small graphs in the tests of the engine. */
#ifndef DTS_TESTS_ENGINE_BUILD_H
#define DTS_TESTS_ENGINE_BUILD_H

#include "check.h"
#include "engine/simulate.h"

/* A task of so many ps on one stream. */
static inline dts_id add_fixed(dts_graph *graph, dts_id stream, dts_time duration) {
    return dts_graph_add_task(graph, &(dts_task){.streams = &stream, .stream_count = 1, .duration = duration});
}

/* A flow without latency over resources with weight 1. */
static inline dts_id add_flow(dts_graph *graph, dts_id stream, double work, double cap, size_t count,
                              const dts_id *resources) {
    dts_hop hops[8];
    for (size_t i = 0; i < count; i++) {
        hops[i] = (dts_hop){resources[i], 1};
    }
    return dts_graph_add_task(
        graph,
        &(dts_task){
            .streams = &stream, .stream_count = 1, .work = work, .rate_cap = cap, .hops = hops, .hop_count = count});
}

/* The only message of a diag, freed with it. */
static inline void assert_only_error(dts_diag *diag, const char *text) {
    assert_int_equal(dts_diag_count(diag), 1);
    assert_string_equal(dts_diag_get(diag, 0)->text, text);
    dts_diag_free(diag);
}

/* Freezes and simulates a graph that must be right. */
static inline dts_simulation *simulate(dts_graph *graph, const dts_observer *observer) {
    dts_diag *diag = dts_diag_new();
    dts_simulation *simulation = NULL;
    dts_status status = dts_graph_freeze(graph, diag);
    if (status == DTS_OK) {
        status = dts_simulate(graph, observer, &simulation, diag);
    }
    if (status != DTS_OK) {
        print_error("%s\n", dts_diag_get(diag, 0)->text);
    }
    assert_int_equal(status, DTS_OK);
    dts_diag_free(diag);
    return simulation;
}

/* Numbers that look random and repeat: Knuth's MMIX generator, upper bits. */
static inline uint32_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

#endif
