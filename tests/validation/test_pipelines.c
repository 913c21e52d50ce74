/* The expectations that the scenarios of scenarios/pipelines/ state. */
#include "simulate.h"

static dts_result *run(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "scenarios/pipelines/%s.yaml", name);
    return simulate_file(path, "");
}

static double time_of(const char *name) {
    dts_result *r = run(name);
    double time = r->iteration_time_s;
    assert_close(sum_of_shares(&r->time_s), time, 1e-9, 0);
    dts_result_free(r);
    return time;
}

static void schedules_differ_as_the_scenarios_say(void **state) {
    (void)state;
    double one = time_of("1f1b");
    assert_close(time_of("gpipe"), one, 0.01, 0);
    assert_true(time_of("naive") > 2.7 * one);
    double interleaved = time_of("interleaved-1f1b");
    assert_true(interleaved < one);
    assert_close(time_of("looped-bfs"), interleaved, 0.02, 0);
    assert_true(time_of("zb-h1") < one);
    assert_true(time_of("zbv") < one);
    assert_true(time_of("chimera") < one);
    assert_true(time_of("dualpipev") < one);
    assert_true(time_of("dualpipe") < time_of("chimera"));
}

static void memory_differs_as_the_scenarios_say(void **state) {
    (void)state;
    dts_result *one = run("1f1b");
    dts_result *gpipe = run("gpipe");
    dts_result *naive = run("naive");
    dts_result *both = run("dualpipe");
    dts_result *folded = run("dualpipev");
    dts_result *zbv = run("zbv");
    const dts_stage_row *first = &one->stages[0];
    assert_close(first->memory_gib.activations, 4 * naive->stages[0].memory_gib.activations, 0.02, 0);
    assert_close(gpipe->stages[0].memory_gib.activations, 4 * first->memory_gib.activations, 0.02, 0);
    assert_close(both->stages[1].memory_gib.parameters, 2 * one->stages[1].memory_gib.parameters, 1e-6, 0);
    assert_close(folded->stages[1].memory_gib.parameters, one->stages[1].memory_gib.parameters, 1e-6, 0);
    assert_close(zbv->stages[3].memory_gib.activations, zbv->stages[0].memory_gib.activations, 0.1, 0);
    dts_result_free(one);
    dts_result_free(gpipe);
    dts_result_free(naive);
    dts_result_free(both);
    dts_result_free(folded);
    dts_result_free(zbv);
}

static void pipedream_keeps_versions_and_its_slowest_stage_busy(void **state) {
    (void)state;
    dts_result *flushed = run("1f1b");
    dts_result *r = run("pipedream");
    assert_true(r->time_s.bubble < 0.001 * r->iteration_time_s);
    assert_true(r->time_s.optimizer > 8 * flushed->time_s.optimizer);
    assert_close(r->stages[0].memory_gib.parameters, 4 * flushed->stages[0].memory_gib.parameters, 1e-6, 0);
    dts_result_free(flushed);
    dts_result_free(r);
}

static void the_order_in_the_file_is_zb_h2(void **state) {
    (void)state;
    dts_result *file = run("own-order");
    dts_result *named = simulate_file("scenarios/pipelines/own-order.yaml", "parallelism.schedule=zb-h2");
    assert_true(file->iteration_time_s == named->iteration_time_s);
    assert_true(file->peak_allocated_gib == named->peak_allocated_gib);
    assert_non_null(strstr(file->plan, "(own-order)"));
    dts_result_free(file);
    dts_result_free(named);
}

/* The order has to be for the plan's ranks and microbatches. */
static void an_order_for_another_plan_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *settings, *word;
    } rows[] = {
        {"parallelism.pipeline=2", "set pipeline: 4"},
        {"training.global_batch=16", "use global_batch 32"},
        {"parallelism.virtual_stages=2", "set virtual_stages: 1, or leave it out"},
        {"parallelism.schedule=nowhere.csv", "no such file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_refused_with("scenarios/pipelines/own-order.yaml", "", rows[i].settings, rows[i].word, "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_differ_as_the_scenarios_say),
        cmocka_unit_test(memory_differs_as_the_scenarios_say),
        cmocka_unit_test(pipedream_keeps_versions_and_its_slowest_stage_busy),
        cmocka_unit_test(the_order_in_the_file_is_zb_h2),
        cmocka_unit_test(an_order_for_another_plan_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
