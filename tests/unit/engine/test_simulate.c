/* Streams, gangs, priorities, memory, observers and errors of the event loop. Times in ps. */
#include "engine/simulate.h"

#include <stdlib.h>

#include "build.h"

enum { GB = 1000000000 };

static dts_graph *graph_with_streams(size_t count) {
    dts_graph *graph = dts_graph_new();
    dts_id device = dts_graph_add_device(graph, "gpu0");
    for (size_t i = 0; i < count; i++) {
        dts_graph_add_stream(graph, device, "s");
    }
    return graph;
}

static void assert_span(const dts_simulation *simulation, dts_id task, dts_time start, dts_time end) {
    assert_int_equal(dts_simulation_starts(simulation)[task], start);
    assert_int_equal(dts_simulation_ends(simulation)[task], end);
}

static void a_stream_runs_its_tasks_in_the_order_of_adding(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    add_fixed(graph, 0, 10); /* 0 */
    add_fixed(graph, 0, 20); /* 1 waits for 2 */
    add_fixed(graph, 1, 50); /* 2 */
    add_fixed(graph, 0, 5);  /* 3 has no dependency, but stands behind 1 */
    dts_graph_depend(graph, 1, 2);
    dts_simulation *simulation = simulate(graph, NULL);
    assert_span(simulation, 0, 0, 10);
    assert_span(simulation, 1, 50, 70);
    assert_span(simulation, 2, 0, 50);
    assert_span(simulation, 3, 70, 75);
    assert_int_equal(dts_simulation_end(simulation), 75);
    assert_int_equal(dts_simulation_events(simulation), 4);
    assert_int_equal(dts_simulation_blocker(simulation, 0), DTS_NO_ID);
    assert_int_equal(dts_simulation_blocker(simulation, 1), 2);
    assert_int_equal(dts_simulation_blocker(simulation, 3), 1);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void the_blocker_of_a_tie_is_the_lowest_id(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(3);
    add_fixed(graph, 0, 10);
    add_fixed(graph, 1, 10);
    add_fixed(graph, 2, 10);
    add_fixed(graph, 2, 1);
    dts_graph_depend(graph, 3, 1);
    dts_graph_depend(graph, 3, 0);
    dts_simulation *simulation = simulate(graph, NULL);
    assert_int_equal(dts_simulation_blocker(simulation, 3), 0);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void a_gang_starts_at_the_head_of_all_its_streams(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(3);
    add_fixed(graph, 0, 10); /* 0 */
    add_fixed(graph, 1, 30); /* 1 */
    dts_id gang = dts_graph_add_task(
        graph, &(dts_task){.streams = (dts_id[]){0, 1, 2}, .stream_count = 3, .duration = 7}); /* 2 */
    add_fixed(graph, 0, 1);                                                                    /* 3 */
    add_fixed(graph, 2, 2);                                                                    /* 4 */
    dts_simulation *simulation = simulate(graph, NULL);
    assert_span(simulation, gang, 30, 37);
    assert_span(simulation, 3, 37, 38);
    assert_span(simulation, 4, 37, 39);
    assert_int_equal(dts_simulation_blocker(simulation, gang), 1);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

/* Writes down what happened as text such as "0+ 0- 1+". */
typedef struct diary {
    char text[400];
    size_t length;
} diary;

static void write_started(void *context, dts_time now, dts_id task) {
    diary *d = context;
    d->length += (size_t)snprintf(d->text + d->length, sizeof d->text - d->length, "%d:%u+ ", (int)now, task);
}

static void write_ended(void *context, dts_time now, dts_id task) {
    diary *d = context;
    d->length += (size_t)snprintf(d->text + d->length, sizeof d->text - d->length, "%d:%u- ", (int)now, task);
}

static void write_memory(void *context, dts_time now, dts_id device, unsigned category, int64_t bytes, dts_id task) {
    diary *d = context;
    d->length += (size_t)snprintf(d->text + d->length, sizeof d->text - d->length, "%d:%u:%u/%u%+d ", (int)now, task,
                                  device, category, (int)bytes);
}

static void write_rate(void *context, dts_time now, dts_id task, double rate) {
    diary *d = context;
    d->length += (size_t)snprintf(d->text + d->length, sizeof d->text - d->length, "%d:%u@%g ", (int)now, task, rate);
}

static void observers_see_ends_before_starts_and_low_priorities_first(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(4);
    dts_id link = dts_graph_add_resource(graph, "link", 1e12); /* one unit in a ps */
    int32_t priorities[] = {5, 0, -5};
    for (dts_id i = 0; i < 3; i++) { /* 0 … 2 end together */
        dts_graph_add_task(graph,
                           &(dts_task){.streams = &i, .stream_count = 1, .duration = 10, .priority = priorities[i]});
    }
    for (dts_id i = 0; i < 3; i++) { /* 3 … 5 start then, and take no time */
        dts_graph_add_task(graph, &(dts_task){.streams = &i, .stream_count = 1, .priority = priorities[i]});
    }
    dts_id flow = add_flow(graph, 3, 4, 0, 1, &link);
    dts_graph_depend(graph, flow, 5);
    dts_graph_memory(graph, 5, DTS_AT_START, 0, 2, 100);
    dts_graph_memory(graph, 5, DTS_AT_END, 0, 2, -100);
    diary d = {{0}, 0};
    dts_simulation *simulation = simulate(graph, &(dts_observer){.context = &d,
                                                                 .task_started = write_started,
                                                                 .task_ended = write_ended,
                                                                 .memory_changed = write_memory,
                                                                 .rate_changed = write_rate});
    assert_string_equal(d.text,
                        "0:2+ 0:1+ 0:0+ "
                        "10:2- 10:1- 10:0- 10:5+ 10:5:0/2+100 10:4+ 10:3+ "
                        "10:5- 10:5:0/2-100 10:4- 10:3- 10:6+ 10:6@1e+12 14:6- ");
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void priorities_also_order_flows_and_fixed_tasks(void **state) {
    (void)state;
    for (int32_t priority = -1; priority <= 1; priority++) {
        dts_graph *graph = graph_with_streams(2);
        dts_id link = dts_graph_add_resource(graph, "link", 1e12); /* one unit in a ps */
        dts_id stream = 0;
        dts_graph_add_task(graph, &(dts_task){.streams = &stream,
                                              .stream_count = 1,
                                              .work = 10,
                                              .hops = &(dts_hop){link, 1},
                                              .hop_count = 1,
                                              .priority = priority});
        add_fixed(graph, 1, 10);
        diary d = {{0}, 0};
        dts_simulation *simulation = simulate(graph, &(dts_observer){.context = &d, .task_ended = write_ended});
        assert_string_equal(d.text, priority <= 0 ? "10:0- 10:1- " : "10:1- 10:0- ");
        dts_simulation_free(simulation);
        dts_graph_free(graph);
    }
}

static void a_peak_knows_its_moment_its_task_and_its_categories(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(1);
    dts_id other = dts_graph_add_device(graph, "gpu1");
    dts_graph_memory_static(graph, 0, 0, 10 * (int64_t)GB);
    for (int i = 0; i < 4; i++) {
        add_fixed(graph, 0, 10);
    }
    dts_graph_memory(graph, 0, DTS_AT_START, 0, 1, 3 * (int64_t)GB);
    dts_graph_memory(graph, 1, DTS_AT_START, 0, 2, 4 * (int64_t)GB);
    dts_graph_memory(graph, 1, DTS_AT_END, 0, 2, -4 * (int64_t)GB);
    dts_graph_memory(graph, 2, DTS_AT_START, 0, 1, 2 * (int64_t)GB); /* 15 GB is less than 17 */
    dts_graph_memory(graph, 2, DTS_AT_END, 0, 0, -1 * (int64_t)GB);
    dts_graph_memory(graph, 3, DTS_AT_START, 0, 0, 3 * (int64_t)GB); /* 17 GB again: the first time counts */
    dts_graph_memory(graph, 3, DTS_AT_END, 0, 0, -3 * (int64_t)GB);
    dts_simulation *simulation = simulate(graph, NULL);
    const dts_memory_peak *peak = dts_simulation_peak(simulation, 0);
    assert_int_equal(peak->bytes, 17 * (int64_t)GB);
    assert_int_equal(peak->when, 10);
    assert_int_equal(peak->task, 1);
    int64_t at_peak[DTS_MEMORY_CATEGORIES_MAX] = {10 * (int64_t)GB, 3 * (int64_t)GB, 4 * (int64_t)GB};
    int64_t own_peaks[DTS_MEMORY_CATEGORIES_MAX] = {12 * (int64_t)GB, 5 * (int64_t)GB, 4 * (int64_t)GB};
    int64_t final[DTS_MEMORY_CATEGORIES_MAX] = {9 * (int64_t)GB, 5 * (int64_t)GB, 0};
    assert_memory_equal(peak->by_category, at_peak, sizeof at_peak);
    assert_memory_equal(peak->category_peak, own_peaks, sizeof own_peaks);
    assert_memory_equal(peak->final_bytes, final, sizeof final);
    assert_int_equal(dts_simulation_peak(simulation, other)->bytes, 0);
    assert_int_equal(dts_simulation_peak(simulation, other)->task, DTS_NO_ID);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

/* What is freed at an instant is free for what starts at it, on whatever stream. */
static void memory_freed_and_taken_at_one_instant_does_not_add_up(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    add_fixed(graph, 1, 10);
    add_fixed(graph, 0, 10);
    add_fixed(graph, 1, 10);
    dts_graph_memory(graph, 1, DTS_AT_START, 0, 0, 70);
    dts_graph_memory(graph, 1, DTS_AT_END, 0, 0, -70);
    dts_graph_memory(graph, 2, DTS_AT_START, 0, 0, 80);
    dts_simulation *simulation = simulate(graph, NULL);
    assert_int_equal(dts_simulation_peak(simulation, 0)->bytes, 80);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

/* Simulating a graph that freezes fails with exactly this message. */
static void assert_fails(dts_graph *graph, const char *text) {
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_graph_freeze(graph, diag), DTS_OK);
    dts_simulation *simulation = NULL;
    assert_int_equal(dts_simulate(graph, NULL, &simulation, diag), DTS_INVALID);
    assert_null(simulation);
    assert_only_error(diag, text);
    dts_graph_free(graph);
}

static void a_ledger_below_zero_is_an_error(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(1);
    add_fixed(graph, 0, 10);
    add_fixed(graph, 0, 10);
    dts_graph_memory(graph, 0, DTS_AT_START, 0, 3, 100);
    dts_graph_memory(graph, 1, DTS_AT_END, 0, 3, -101);
    dts_graph_memory(graph, 1, DTS_AT_END, 0, 4, -1);
    assert_fails(graph,
                 "memory of device \"gpu0\" goes negative: task 1 frees 101 bytes of category 3 at its end (20 ps), "
                 "which holds 100");
    graph = graph_with_streams(2); /* of two at one instant the first is named */
    add_fixed(graph, 0, 10);
    add_fixed(graph, 1, 10);
    dts_graph_memory(graph, 1, DTS_AT_START, 0, 0, -2);
    dts_graph_memory(graph, 0, DTS_AT_START, 0, 0, -1);
    assert_fails(graph,
                 "memory of device \"gpu0\" goes negative: task 0 frees 1 bytes of category 0 at its start (0 ps), "
                 "which holds 0");
    graph = graph_with_streams(1);
    add_fixed(graph, 0, 10);
    dts_graph_memory_static(graph, 0, 0, INT64_MAX);
    dts_graph_memory(graph, 0, DTS_AT_START, 0, 1, 1);
    assert_fails(graph, "memory of device \"gpu0\" grows past 2^63 bytes: task 0 adds 1 bytes to 0 of category 1");
    graph = graph_with_streams(0);
    dts_graph_memory_static(graph, 0, 0, INT64_MAX);
    dts_graph_memory_static(graph, 0, 1, 1);
    assert_fails(graph, "static memory of device \"gpu0\" is more than 2^63 bytes");
}

static void time_that_runs_out_is_an_error(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(1);
    add_fixed(graph, 0, DTS_TIME_MAX - 1);
    add_fixed(graph, 0, 1000);
    add_fixed(graph, 0, 1000);
    assert_fails(graph,
                 "simulated time would pass 106 days: task 1, started at 9.22337e+06 s, does not end; 2 of 3 tasks are "
                 "left");
    graph = graph_with_streams(1);
    dts_id link = dts_graph_add_resource(graph, "link", 1e-9);
    add_fixed(graph, 0, 1);
    add_flow(graph, 0, 1e9, 0, 1, &link);
    assert_fails(graph,
                 "simulated time would pass 106 days: task 1, started at 1e-12 s, does not end; 1 of 2 tasks are left");
}

static void a_graph_must_be_frozen(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(1);
    dts_diag *diag = dts_diag_new();
    dts_simulation *simulation = NULL;
    assert_int_equal(dts_simulate(graph, NULL, &simulation, diag), DTS_INVALID);
    assert_only_error(diag, "the task graph is not frozen");
    dts_graph_free(graph);
}

/* The example of docs/engine.md. */
static void tasks_without_streams_are_delays_that_run_side_by_side(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(1);
    dts_id first = add_fixed(graph, 0, 10);
    dts_id delays[5];
    for (dts_id i = 0; i < 5; i++) {
        delays[i] = dts_graph_add_task(graph, &(dts_task){.duration = 20 + i});
        dts_graph_depend(graph, delays[i], first);
    }
    dts_id last = add_fixed(graph, 0, 1);
    dts_graph_depend(graph, last, delays[4]);
    dts_simulation *simulation = simulate(graph, NULL);
    for (dts_id i = 0; i < 5; i++) {
        assert_span(simulation, delays[i], 10, 30 + i);
    }
    assert_span(simulation, last, 34, 35);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void the_example_of_the_manual(void **state) {
    (void)state;
    dts_graph *graph = dts_graph_new();
    enum { US = 1000000 }; /* ps */
    dts_id streams[2][2];
    dts_id network = dts_graph_add_resource(graph, "network", 100e9);
    for (int g = 0; g < 2; g++) {
        dts_id gpu = dts_graph_add_device(graph, g == 0 ? "gpu0" : "gpu1");
        streams[g][0] = dts_graph_add_stream(graph, gpu, "compute");
        streams[g][1] = dts_graph_add_stream(graph, gpu, "comm");
    }
    dts_id kernels[2];
    for (int g = 0; g < 2; g++) {
        kernels[g] = add_fixed(graph, streams[g][0], g == 0 ? 30 * US : 40 * US);
        dts_graph_memory(graph, kernels[g], DTS_AT_START, (dts_id)g, 0, 4000000);
    }
    dts_id all_reduce = dts_graph_add_task(graph, &(dts_task){.streams = (dts_id[]){streams[0][1], streams[1][1]},
                                                              .stream_count = 2,
                                                              .duration = 5 * US,
                                                              .work = 4000000,
                                                              .hops = &(dts_hop){network, 1},
                                                              .hop_count = 1});
    dts_graph_depend(graph, all_reduce, kernels[0]);
    dts_graph_depend(graph, all_reduce, kernels[1]);
    dts_id send = dts_graph_add_task(graph, &(dts_task){.streams = &streams[0][0],
                                                        .stream_count = 1,
                                                        .duration = 25 * US,
                                                        .work = 1000000,
                                                        .hops = &(dts_hop){network, 1},
                                                        .hop_count = 1});
    dts_graph_memory(graph, send, DTS_AT_END, 0, 0, -4000000);
    dts_simulation *simulation = simulate(graph, NULL);
    assert_span(simulation, kernels[0], 0, 30 * US);
    assert_span(simulation, kernels[1], 0, 40 * US);
    assert_span(simulation, all_reduce, 40 * US, 95 * US);
    assert_span(simulation, send, 30 * US, 75 * US);
    assert_int_equal(dts_simulation_blocker(simulation, all_reduce), kernels[1]);
    assert_int_equal(dts_simulation_peak(simulation, 0)->bytes, 4000000);
    assert_int_equal(dts_simulation_peak(simulation, 0)->final_bytes[0], 0);
    assert_int_equal(dts_simulation_peak(simulation, 1)->final_bytes[0], 4000000);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_runs_its_tasks_in_the_order_of_adding),
        cmocka_unit_test(the_blocker_of_a_tie_is_the_lowest_id),
        cmocka_unit_test(a_gang_starts_at_the_head_of_all_its_streams),
        cmocka_unit_test(observers_see_ends_before_starts_and_low_priorities_first),
        cmocka_unit_test(priorities_also_order_flows_and_fixed_tasks),
        cmocka_unit_test(a_peak_knows_its_moment_its_task_and_its_categories),
        cmocka_unit_test(memory_freed_and_taken_at_one_instant_does_not_add_up),
        cmocka_unit_test(a_ledger_below_zero_is_an_error),
        cmocka_unit_test(time_that_runs_out_is_an_error),
        cmocka_unit_test(a_graph_must_be_frozen),
        cmocka_unit_test(tasks_without_streams_are_delays_that_run_side_by_side),
        cmocka_unit_test(the_example_of_the_manual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
