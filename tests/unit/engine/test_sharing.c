/* Max-min fair sharing against cases worked out by hand. Rates in units/s, times in ps. */
#include "build.h"

enum { S = 1000 }; /* resources of 1e9 units/s move one unit in 1000 ps */

static dts_graph *graph_with_streams(size_t count) {
    dts_graph *graph = dts_graph_new();
    dts_id device = dts_graph_add_device(graph, "gpu");
    for (size_t i = 0; i < count; i++) {
        dts_graph_add_stream(graph, device, "s");
    }
    return graph;
}

static void a_flow_alone_takes_latency_plus_work_over_rate(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    dts_id link = dts_graph_add_resource(graph, "link", 3e9);
    dts_id stream = 0;
    /* 5 + 1000 / 3e9 s = 5 + 333333.33 ps */
    dts_graph_add_task(graph, &(dts_task){.streams = &stream,
                                          .stream_count = 1,
                                          .duration = 5,
                                          .work = 1000,
                                          .hops = &(dts_hop){link, 1},
                                          .hop_count = 1});
    /* a flow that crosses nothing goes at its cap */
    add_flow(graph, 1, 10, 1e9, 0, NULL);
    dts_simulation *simulation = simulate(graph, NULL);
    assert_int_equal(dts_simulation_ends(simulation)[0], 5 + 333333);
    assert_int_equal(dts_simulation_ends(simulation)[1], 10 * S);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void two_flows_share_one_link(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    dts_id link = dts_graph_add_resource(graph, "link", 1e9);
    add_flow(graph, 0, 100, 0, 1, &link);
    add_flow(graph, 1, 300, 0, 1, &link);
    dts_simulation *simulation = simulate(graph, NULL);
    /* half each until the short one is done at 200; 200 units of the other are left then */
    assert_int_equal(dts_simulation_ends(simulation)[0], 200 * S);
    assert_int_equal(dts_simulation_ends(simulation)[1], 400 * S);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void a_flow_that_joins_later_slows_the_first(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    dts_id link = dts_graph_add_resource(graph, "link", 1e9);
    add_flow(graph, 0, 100, 0, 1, &link);
    add_fixed(graph, 1, 50 * S);
    add_flow(graph, 1, 100, 0, 1, &link);
    dts_simulation *simulation = simulate(graph, NULL);
    /* 50 alone, then half: 50 units left take 100; the second has 50 left at 150 and then all of the link */
    assert_int_equal(dts_simulation_ends(simulation)[0], 150 * S);
    assert_int_equal(dts_simulation_starts(simulation)[2], 50 * S);
    assert_int_equal(dts_simulation_ends(simulation)[2], 200 * S);
    assert_int_equal(dts_simulation_blocker(simulation, 2), 1);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void what_a_capped_flow_leaves_goes_to_the_others(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(3);
    dts_id link = dts_graph_add_resource(graph, "link", 1e9);
    add_flow(graph, 0, 20, 0.2e9, 1, &link);
    add_flow(graph, 1, 40, 0, 1, &link);
    add_flow(graph, 2, 40, 0.9e9, 1, &link); /* a cap above its share does nothing */
    dts_simulation *simulation = simulate(graph, NULL);
    /* 0.2, 0.4, 0.4: all end together */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dts_simulation_ends(simulation)[i], 100 * S);
    }
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

/* Rates as the observer saw them last. */
static void note_rate(void *context, dts_time now, dts_id task, double rate) {
    if (now == 0) {
        ((double *)context)[task] = rate;
    }
}

/* A share just above a cap is another level: the flow behind it gets all that the capped one leaves. */
static void levels_that_nearly_meet_are_two(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    dts_id link = dts_graph_add_resource(graph, "link", 2e9);
    add_flow(graph, 0, 100, 0.9995e9, 1, &link);
    add_flow(graph, 1, 100, 0, 1, &link);
    double rates[2];
    dts_simulation *simulation = simulate(graph, &(dts_observer){.context = rates, .rate_changed = note_rate});
    assert_close(rates[0], 0.9995e9, 1e-12, 0);
    assert_close(rates[1], 1.0005e9, 1e-9, 0);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

/* The textbook's line of three links with capacities 1, 2 and 3: one flow over all, one over each, and a second one
 * over the last. */
static void three_links_in_a_row(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(5);
    dts_id links[] = {dts_graph_add_resource(graph, "a", 1e9), dts_graph_add_resource(graph, "b", 2e9),
                      dts_graph_add_resource(graph, "c", 3e9)};
    add_flow(graph, 0, 100, 0, 3, links);
    add_flow(graph, 1, 100, 0, 1, &links[0]);
    add_flow(graph, 2, 100, 0, 1, &links[1]);
    add_flow(graph, 3, 100, 0, 1, &links[2]);
    add_flow(graph, 4, 100, 0, 1, &links[2]);
    double rates[5];
    dts_simulation *simulation = simulate(graph, &(dts_observer){.context = rates, .rate_changed = note_rate});
    /* a is full first at 1/2; then c with (3 - 1/2) / 2; then b with 2 - 1/2 */
    double want[] = {0.5e9, 0.5e9, 1.5e9, 1.25e9, 1.25e9};
    for (int i = 0; i < 5; i++) {
        assert_close(rates[i], want[i], 1e-12, 0);
    }
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void weights_say_how_much_of_a_resource_the_work_uses(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    dts_id bus = dts_graph_add_resource(graph, "bus", 3e9);
    dts_id streams[] = {0, 1};
    dts_graph_add_task(
        graph, &(dts_task){
                   .streams = &streams[0], .stream_count = 1, .work = 100, .hops = &(dts_hop){bus, 2}, .hop_count = 1});
    dts_graph_add_task(
        graph, &(dts_task){
                   .streams = &streams[1], .stream_count = 1, .work = 250, .hops = &(dts_hop){bus, 1}, .hop_count = 1});
    dts_simulation *simulation = simulate(graph, NULL);
    /* 2x + x = 3 → both at 1 until 100; then the second has 150 left at 3 */
    assert_int_equal(dts_simulation_ends(simulation)[0], 100 * S);
    assert_int_equal(dts_simulation_ends(simulation)[1], 150 * S);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void a_resource_crossed_twice_counts_twice(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(1);
    dts_id bus = dts_graph_add_resource(graph, "bus", 1e9);
    add_flow(graph, 0, 10, 0, 2, (dts_id[]){bus, bus});
    dts_simulation *simulation = simulate(graph, NULL);
    assert_int_equal(dts_simulation_end(simulation), 20 * S);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void weights_of_very_different_size_do_not_starve_anyone(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    dts_id bus = dts_graph_add_resource(graph, "bus", 1e9);
    dts_id gate = dts_graph_add_resource(graph, "gate", 1);
    dts_id streams[] = {0, 1};
    dts_graph_add_task(graph, &(dts_task){.streams = &streams[0],
                                          .stream_count = 1,
                                          .work = 1e-9,
                                          .hops = (dts_hop[]){{bus, 1e17}, {gate, 1e9}},
                                          .hop_count = 2});
    dts_graph_add_task(
        graph,
        &(dts_task){
            .streams = &streams[1], .stream_count = 1, .work = 0.9e9, .hops = &(dts_hop){bus, 1}, .hop_count = 1});
    dts_simulation *simulation = simulate(graph, NULL);
    /* the gate holds the first at 1e-9 units/s, which takes 1e8 of the bus; the second gets the other 9e8 */
    assert_close((double)dts_simulation_ends(simulation)[0], 1e12, 0, 1);
    assert_close((double)dts_simulation_ends(simulation)[1], 1e12, 0, 1);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void count_change(void *context, dts_time now, dts_id task, double rate) {
    (void)now;
    (void)rate;
    ((int *)context)[task]++;
}

static void only_what_is_connected_gets_new_rates(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(4);
    dts_id left = dts_graph_add_resource(graph, "left", 1e9);
    dts_id right = dts_graph_add_resource(graph, "right", 1e9);
    add_flow(graph, 0, 100, 0, 1, &left);
    add_flow(graph, 1, 200, 0, 1, &left);
    add_flow(graph, 2, 1000, 0, 1, &right);
    add_flow(graph, 3, 1000, 0, 1, &right);
    int changes[4] = {0};
    dts_simulation *simulation = simulate(graph, &(dts_observer){.context = changes, .rate_changed = count_change});
    int want[] = {1, 2, 1, 1};
    assert_memory_equal(changes, want, sizeof want);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

/* What comes and goes beside a flow at its cap must not even round its end. */
static void a_rate_that_stays_is_left_alone(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    dts_id link = dts_graph_add_resource(graph, "link", 9e9);
    add_flow(graph, 0, 1000, 3e9, 1, &link);
    for (int i = 0; i < 40; i++) {
        add_flow(graph, 1, 7, 0, 1, &link);
    }
    int changes[41] = {0};
    dts_simulation *simulation = simulate(graph, &(dts_observer){.context = changes, .rate_changed = count_change});
    assert_int_equal(changes[0], 1);
    assert_int_equal(dts_simulation_ends(simulation)[0], 333333);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

/* A long flow over two links, beside another one on the first: what is on the second link alone leaves it its half of
 * the first, until there are too many. */
static void flows_of_one_link_slow_others_only_where_they_have_to(void **state) {
    (void)state;
    enum { MORE = 4 };
    dts_graph *graph = graph_with_streams(3 + MORE);
    dts_id links[] = {dts_graph_add_resource(graph, "a", 1e9), dts_graph_add_resource(graph, "b", 2e9)};
    dts_id wide = add_flow(graph, 0, 1000, 0, 2, links);
    dts_id beside = add_flow(graph, 1, 10000, 0, 1, &links[0]);
    add_fixed(graph, 2, 50 * S);
    dts_id single = add_flow(graph, 2, 75, 0, 1, &links[1]); /* at 2 - 1/2 until 100 */
    for (dts_id i = 0; i < MORE; i++) {                      /* each at 2/5 until 175, the wide one, too */
        add_fixed(graph, 3 + i, 100 * S);
        add_flow(graph, 3 + i, 30, 0, 1, &links[1]);
    }
    int changes[5 + 2 * MORE] = {0};
    dts_simulation *simulation = simulate(graph, &(dts_observer){.context = changes, .rate_changed = count_change});
    const dts_time *ends = dts_simulation_ends(simulation);
    assert_int_equal(ends[single], 100 * S);
    assert_int_equal(changes[wide], 3);
    assert_int_equal(ends[wide], 2015 * S);    /* 1/2 until 100, 2/5 until 175, 1/2 */
    assert_int_equal(ends[beside], 11000 * S); /* what that leaves of a, and all of it in the end */
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

static void flows_that_join_at_one_instant_are_settled_once(void **state) {
    (void)state;
    enum { FLOWS = 50 };
    dts_graph *graph = graph_with_streams(FLOWS);
    dts_id link = dts_graph_add_resource(graph, "link", FLOWS * 1e9);
    int changes[2 * FLOWS] = {0};
    for (dts_id i = 0; i < FLOWS; i++) {
        if (i % 2 == 0) { /* half of them begin behind something that takes no time */
            changes[add_fixed(graph, i, 0)] = 1;
        }
        add_flow(graph, i, 7, 0, 1, &link);
    }
    dts_simulation *simulation = simulate(graph, &(dts_observer){.context = changes, .rate_changed = count_change});
    assert_int_equal(dts_simulation_end(simulation), 7 * S);
    for (size_t i = 0; i < dts_graph_tasks(graph); i++) {
        assert_int_equal(changes[i], 1);
    }
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

/* Half of the link is not there from 0 to 80, however many hold it; 40 of the 100 units are through then. */
static void holds_of_a_resource_do_not_add_up(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(3);
    dts_id link = dts_graph_add_resource(graph, "link", 1e9);
    dts_id flow = add_flow(graph, 0, 100, 0, 1, &link);
    dts_id before = add_fixed(graph, 1, 20 * S);
    dts_id late = add_fixed(graph, 1, 60 * S);
    dts_id early = add_fixed(graph, 2, 30 * S);
    dts_graph_hold(graph, link, 0.5e9, before, late);
    dts_graph_hold(graph, link, 0.5e9, DTS_NO_ID, early);
    dts_graph_hold(graph, link, 0.5e9, late, early); /* it is over before it begins */
    dts_simulation *simulation = simulate(graph, NULL);
    assert_int_equal(dts_simulation_ends(simulation)[flow], 140 * S);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

/* Whatever is held, time moves: a sixteenth is left. */
static void a_sixteenth_is_never_held(void **state) {
    (void)state;
    dts_graph *graph = graph_with_streams(2);
    dts_id link = dts_graph_add_resource(graph, "link", 1e9);
    add_flow(graph, 0, 100, 0, 1, &link);
    dts_graph_hold(graph, link, 2e9, DTS_NO_ID, add_fixed(graph, 1, 800 * S));
    dts_simulation *simulation = simulate(graph, NULL);
    assert_int_equal(dts_simulation_ends(simulation)[0], 800 * S + 50 * S);
    dts_simulation_free(simulation);
    dts_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flow_alone_takes_latency_plus_work_over_rate),
        cmocka_unit_test(two_flows_share_one_link),
        cmocka_unit_test(a_flow_that_joins_later_slows_the_first),
        cmocka_unit_test(what_a_capped_flow_leaves_goes_to_the_others),
        cmocka_unit_test(levels_that_nearly_meet_are_two),
        cmocka_unit_test(three_links_in_a_row),
        cmocka_unit_test(weights_say_how_much_of_a_resource_the_work_uses),
        cmocka_unit_test(a_resource_crossed_twice_counts_twice),
        cmocka_unit_test(weights_of_very_different_size_do_not_starve_anyone),
        cmocka_unit_test(only_what_is_connected_gets_new_rates),
        cmocka_unit_test(a_rate_that_stays_is_left_alone),
        cmocka_unit_test(flows_of_one_link_slow_others_only_where_they_have_to),
        cmocka_unit_test(flows_that_join_at_one_instant_are_settled_once),
        cmocka_unit_test(holds_of_a_resource_do_not_add_up),
        cmocka_unit_test(a_sixteenth_is_never_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
