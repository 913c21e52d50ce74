#include "engine/graph.h"

#include "build.h"

static void name_task(const void *context, dts_id task, uint32_t tag, char *buffer, size_t size) {
    (void)task;
    snprintf(buffer, size, "%s", ((const char *const *)context)[tag]);
}

/* A graph with one device, two streams and as many tasks, taking turns on the streams, as there are names. */
static dts_graph *named_graph(const char *const *names, size_t count) {
    dts_graph *graph = dts_graph_new();
    dts_graph_set_namer(graph, name_task, names);
    dts_id device = dts_graph_add_device(graph, "gpu0");
    dts_graph_add_stream(graph, device, "compute");
    dts_graph_add_stream(graph, device, "comm");
    for (dts_id i = 0; i < count; i++) {
        dts_id stream = i % 2;
        dts_graph_add_task(graph, &(dts_task){.streams = &stream, .stream_count = 1, .tag = i});
    }
    return graph;
}

/* Freezing fails with exactly this message. */
static void assert_refused(dts_graph *graph, const char *text) {
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_graph_freeze(graph, diag), DTS_INVALID);
    assert_only_error(diag, text);
    diag = dts_diag_new(); /* and it stays refused */
    assert_int_equal(dts_graph_freeze(graph, diag), DTS_INVALID);
    dts_diag_free(diag);
    dts_graph_free(graph);
}

static void shows_what_was_added(void **state) {
    (void)state;
    dts_graph *graph = dts_graph_new();
    dts_id gpu = dts_graph_add_device(graph, "gpu0");
    dts_id host = dts_graph_add_device(graph, "host");
    dts_id streams[] = {dts_graph_add_stream(graph, gpu, "compute"), dts_graph_add_stream(graph, host, "cpu")};
    dts_id link = dts_graph_add_resource(graph, "pcie", 2.5e10);
    dts_task task = {.streams = streams,
                     .stream_count = 2,
                     .priority = -3,
                     .duration = 70,
                     .work = 8,
                     .rate_cap = 5,
                     .hops = &(dts_hop){link, 2},
                     .hop_count = 1,
                     .tag = 99};
    assert_int_equal(dts_graph_add_task(graph, &task), 0);
    assert_int_equal(dts_graph_add_task(graph, &(dts_task){.streams = &streams[1], .stream_count = 1}), 1);
    assert_int_equal(dts_graph_add_task(graph, &(dts_task){.streams = &streams[0], .stream_count = 1}), 2);
    dts_graph_depend(graph, 2, 1);
    dts_graph_depend(graph, 2, DTS_NO_ID);
    assert_int_equal(dts_graph_freeze(graph, NULL), DTS_OK);
    assert_int_equal(dts_graph_freeze(graph, NULL), DTS_OK);

    assert_int_equal(dts_graph_devices(graph), 2);
    assert_int_equal(dts_graph_streams(graph), 2);
    assert_int_equal(dts_graph_resources(graph), 1);
    assert_int_equal(dts_graph_tasks(graph), 3);
    assert_int_equal(dts_graph_dependencies(graph), 1);
    assert_string_equal(dts_graph_device_name(graph, host), "host");
    assert_string_equal(dts_graph_stream_name(graph, 0), "compute");
    assert_string_equal(dts_graph_resource_name(graph, link), "pcie");
    assert_int_equal(dts_graph_stream_device(graph, 1), host);

    dts_task view = dts_graph_task(graph, 0);
    assert_int_equal(view.stream_count, 2);
    assert_memory_equal(view.streams, streams, sizeof streams);
    assert_int_equal(view.priority, -3);
    assert_int_equal(view.duration, 70);
    assert_int_equal(view.tag, 99);
    assert_close(view.work, 8, 0, 0);
    assert_close(view.rate_cap, 5, 0, 0);
    assert_int_equal(view.hop_count, 1);
    assert_int_equal(view.hops[0].resource, link);
    assert_close(view.hops[0].weight, 2, 0, 0);

    size_t count;
    const dts_id *tasks = dts_graph_stream_tasks(graph, 0, &count);
    assert_int_equal(count, 2);
    assert_int_equal(tasks[0], 0);
    assert_int_equal(tasks[1], 2);
    const dts_id *predecessors = dts_graph_predecessors(graph, 2, &count);
    assert_int_equal(count, 1);
    assert_int_equal(predecessors[0], 1);

    /* a frozen graph takes nothing more */
    assert_int_equal(dts_graph_add_device(graph, "late"), DTS_NO_ID);
    assert_int_equal(dts_graph_devices(graph), 2);
    dts_graph_free(graph);
}

static void an_empty_graph_is_fine(void **state) {
    (void)state;
    dts_graph *graph = dts_graph_new();
    dts_simulation *simulation = simulate(graph, NULL);
    assert_int_equal(dts_simulation_end(simulation), 0);
    assert_int_equal(dts_simulation_events(simulation), 0);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
    dts_graph_free(NULL);
    dts_simulation_free(NULL);
}

static void explains_dependencies_on_nothing(void **state) {
    (void)state;
    const char *names[] = {"forward", "backward"};
    dts_graph *graph = named_graph(names, 2);
    dts_graph_depend(graph, 1, 7);
    assert_refused(graph, "backward waits for task 7, which does not exist");
    graph = named_graph(names, 2);
    dts_graph_depend(graph, 7, 1);
    assert_refused(graph, "a dependency was added for task 7, which does not exist");
    graph = named_graph(names, 2);
    dts_graph_memory(graph, 7, DTS_AT_END, 0, 0, 1);
    assert_refused(graph, "a memory effect was added for task 7, which does not exist");
}

static void explains_holds_that_differ(void **state) {
    (void)state;
    const char *names[] = {"forward", "backward"};
    dts_graph *graph = named_graph(names, 2);
    dts_id resource = dts_graph_add_resource(graph, "multiprocessors", 108);
    dts_graph_hold(graph, resource, 16, DTS_NO_ID, 0);
    dts_graph_hold(graph, resource, 2, 0, 1);
    assert_refused(graph, "2 units of resource 0 are held");
    graph = named_graph(names, 2);
    dts_graph_hold(graph, 3, 16, DTS_NO_ID, 0);
    assert_refused(graph, "16 units of resource 3 are held");
}

static void explains_the_shortest_cycle(void **state) {
    (void)state;
    const char *names[] = {"a", "b", "c", "d", "e", "f"};
    dts_graph *graph = named_graph(names, 1);
    dts_graph_depend(graph, 0, 0);
    assert_refused(graph, "1 of 1 tasks can never start: a waits for a (dependency)");

    /* a → c → e on one stream, b → d → f on the other; a needs d, d needs a: two steps. The way a-d-c-… is longer. */
    graph = named_graph(names, 6);
    dts_graph_depend(graph, 0, 5);
    dts_graph_depend(graph, 3, 4);
    dts_graph_depend(graph, 3, 0);
    dts_graph_depend(graph, 0, 3);
    assert_refused(graph, "5 of 6 tasks can never start: a waits for d (dependency), d waits for a (dependency)");

    graph = named_graph(names, 4);
    dts_graph_depend(graph, 0, 3);
    dts_graph_depend(graph, 1, 2);
    assert_refused(graph,
                   "4 of 4 tasks can never start: a waits for d (dependency), d waits for b (same stream \"comm\", "
                   "added earlier), b waits for c (dependency), c waits for a (same stream \"compute\", added "
                   "earlier)");
}

static void of_two_cycles_the_shorter_is_named(void **state) {
    (void)state;
    dts_graph *graph = dts_graph_new();
    dts_id device = dts_graph_add_device(graph, "gpu0");
    for (dts_id i = 0; i < 4; i++) {
        add_fixed(graph, dts_graph_add_stream(graph, device, "s"), 1);
    }
    dts_id pairs[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {2, 1}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        dts_graph_depend(graph, pairs[i][0], pairs[i][1]);
    }
    assert_refused(
        graph,
        "4 of 4 tasks can never start: task 1 waits for task 2 (dependency), task 2 waits for task 1 (dependency)");
}

static void a_cycle_through_a_gang_names_the_stream(void **state) {
    (void)state;
    dts_graph *graph = dts_graph_new();
    dts_id device = dts_graph_add_device(graph, "gpu0");
    dts_id first = dts_graph_add_stream(graph, device, "first");
    dts_id second = dts_graph_add_stream(graph, device, "second");
    add_fixed(graph, second, 1);
    dts_graph_add_task(graph, &(dts_task){.streams = (dts_id[]){first, second}, .stream_count = 2});
    dts_graph_depend(graph, 0, 1);
    assert_refused(graph,
                   "2 of 2 tasks can never start: task 0 waits for task 1 (dependency), task 1 waits for task 0 (same "
                   "stream \"second\", added earlier)");
}

static void a_dependency_on_a_later_task_is_fine_without_a_cycle(void **state) {
    (void)state;
    const char *names[] = {"a", "b"};
    dts_graph *graph = named_graph(names, 2);
    dts_graph_depend(graph, 0, 1);
    assert_int_equal(dts_graph_freeze(graph, NULL), DTS_OK);
    dts_graph_free(graph);
}

static void cuts_a_long_cycle_in_the_middle(void **state) {
    (void)state;
    dts_graph *graph = dts_graph_new();
    dts_id device = dts_graph_add_device(graph, "gpu0");
    for (dts_id i = 0; i < 20; i++) {
        add_fixed(graph, dts_graph_add_stream(graph, device, "s"), 1);
        dts_graph_depend(graph, i, (i + 1) % 20);
    }
    assert_refused(graph,
                   "20 of 20 tasks can never start: task 0 waits for task 1 (dependency), task 1 waits for task 2 "
                   "(dependency), task 2 waits for task 3 (dependency), task 3 waits for task 4 (dependency), task 4 "
                   "waits for task 5 (dependency), task 5 waits for task 6 (dependency), … 8 more …, task 14 waits for "
                   "task 15 (dependency), task 15 waits for task 16 (dependency), task 16 waits for task 17 "
                   "(dependency), task 17 waits for task 18 (dependency), task 18 waits for task 19 (dependency), task "
                   "19 waits for task 0 (dependency)");
}

/* Adds one impossible task to a graph with one stream and one resource; freezing explains. */
static void assert_task_refused(dts_task task, const char *what) {
    dts_graph *graph = dts_graph_new();
    dts_graph_add_stream(graph, dts_graph_add_device(graph, "gpu0"), "compute");
    dts_graph_add_resource(graph, "link", 1);
    assert_int_equal(dts_graph_add_task(graph, &task), DTS_NO_ID);
    char text[200];
    snprintf(text, sizeof text, "the task added after 0 others (tag %u) %s", task.tag, what);
    assert_refused(graph, text);
}

static void refuses_impossible_tasks(void **state) {
    (void)state;
    dts_id zero = 0;
    dts_id one = 1;
    dts_hop hop = {0, 1};
    dts_hop nowhere = {1, 1};
    dts_hop weightless = {0, 0};
    dts_task good = {.streams = &zero, .stream_count = 1, .work = 1, .hops = &hop, .hop_count = 1, .tag = 4};
    dts_task task = good;
    task.streams = &one;
    assert_task_refused(task, "occupies a stream that does not exist");
    task = good;
    task.duration = -1;
    assert_task_refused(task, "has a negative duration");
    task = good;
    task.work = -1;
    assert_task_refused(task, "has work that is not a finite number of at least 0");
    task.work = (double)NAN;
    assert_task_refused(task, "has work that is not a finite number of at least 0");
    task = good;
    task.rate_cap = (double)INFINITY;
    assert_task_refused(task, "has a rate cap that is not a finite number of at least 0");
    task = good;
    task.hop_count = 0;
    assert_task_refused(task, "has work but neither a hop nor a rate cap");
    task = good;
    task.hops = &nowhere;
    assert_task_refused(task, "crosses a resource that does not exist");
    task.hops = &weightless;
    assert_task_refused(task, "has a hop whose weight is not a finite number above 0");
}

static void refuses_impossible_resources_streams_and_memory(void **state) {
    (void)state;
    dts_graph *graph = dts_graph_new();
    assert_int_equal(dts_graph_add_resource(graph, "link", 0), DTS_NO_ID);
    assert_refused(graph, "resource \"link\" has a capacity of 0");
    graph = dts_graph_new();
    assert_int_equal(dts_graph_add_resource(graph, "link", (double)INFINITY), DTS_NO_ID);
    assert_refused(graph, "resource \"link\" has a capacity of inf");
    graph = dts_graph_new();
    assert_int_equal(dts_graph_add_stream(graph, 3, "compute"), DTS_NO_ID);
    assert_refused(graph, "stream \"compute\" belongs to device 3, which does not exist");
    graph = dts_graph_new();
    dts_graph_memory_static(graph, 3, 0, 1);
    assert_refused(graph, "memory of device 3, which does not exist");
    graph = dts_graph_new();
    dts_graph_memory_static(graph, dts_graph_add_device(graph, "gpu0"), 16, 1);
    assert_refused(graph, "memory category 16 of device \"gpu0\"; there are only 16");
    graph = dts_graph_new();
    dts_graph_memory_static(graph, dts_graph_add_device(graph, "gpu0"), 0, -1);
    assert_refused(graph, "static memory of device \"gpu0\" is negative");
    graph = dts_graph_new();
    dts_id stream = dts_graph_add_stream(graph, dts_graph_add_device(graph, "gpu0"), "compute");
    dts_graph_add_task(graph, &(dts_task){.streams = (dts_id[]){stream, stream}, .stream_count = 2});
    assert_refused(graph, "task 0 occupies stream \"compute\" twice");
}

static void all_problems_are_reported_together(void **state) {
    (void)state;
    dts_graph *graph = dts_graph_new();
    dts_graph_add_resource(graph, "a", -1);
    dts_graph_add_resource(graph, "b", (double)NAN);
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_graph_freeze(graph, diag), DTS_INVALID);
    assert_int_equal(dts_diag_errors(diag), 2);
    assert_string_equal(dts_diag_get(diag, 0)->help, "a capacity is a finite number of units per second above 0");
    dts_diag_free(diag);
    dts_graph_free(graph);
}

/* Tasks that are arranged run in that order; the ids stay. A circle through the new order is found. */
static void takes_tasks_in_the_arranged_order(void **state) {
    (void)state;
    const char *const names[] = {"a", "x", "b", "y", "c", "z"};
    const dts_id order[] = {4, 3, 2, 5};
    dts_graph *graph = named_graph(names, 6);
    dts_graph_arrange(graph, 2, order, 4);
    assert_int_equal(dts_graph_freeze(graph, NULL), DTS_OK);
    size_t count;
    const dts_id *tasks = dts_graph_stream_tasks(graph, 0, &count);
    assert_int_equal(count, 3);
    assert_int_equal(tasks[0], 0);
    assert_int_equal(tasks[1], 4);
    assert_int_equal(tasks[2], 2);
    tasks = dts_graph_stream_tasks(graph, 1, &count);
    assert_int_equal(tasks[1], 3);
    assert_int_equal(tasks[2], 5);
    dts_graph_free(graph);

    graph = named_graph(names, 6);
    dts_graph_arrange(graph, 2, order, 4);
    dts_graph_depend(graph, 4, 2); /* c waits for b, which now stands behind it */
    assert_refused(graph,
                   "2 of 6 tasks can never start: c waits for b (dependency), b waits for c (same stream \"compute\", "
                   "added earlier)");

    graph = named_graph(names, 6);
    const dts_id twice[] = {4, 4, 2, 5};
    dts_graph_arrange(graph, 2, twice, 4);
    assert_refused(graph, "task 4 was given a place that is not its own");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_what_was_added),
        cmocka_unit_test(an_empty_graph_is_fine),
        cmocka_unit_test(explains_dependencies_on_nothing),
        cmocka_unit_test(explains_holds_that_differ),
        cmocka_unit_test(explains_the_shortest_cycle),
        cmocka_unit_test(of_two_cycles_the_shorter_is_named),
        cmocka_unit_test(a_cycle_through_a_gang_names_the_stream),
        cmocka_unit_test(a_dependency_on_a_later_task_is_fine_without_a_cycle),
        cmocka_unit_test(cuts_a_long_cycle_in_the_middle),
        cmocka_unit_test(refuses_impossible_tasks),
        cmocka_unit_test(refuses_impossible_resources_streams_and_memory),
        cmocka_unit_test(all_problems_are_reported_together),
        cmocka_unit_test(takes_tasks_in_the_arranged_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
