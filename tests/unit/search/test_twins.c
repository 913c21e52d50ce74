/* Layouts that are one plan under two names have one result, to the last bit, and those that are not have none. */
#include <string.h>

#include "layouts.h"

typedef struct seen {
    const dts_search_context *c;
    size_t every, pairs, alone;
} seen;

static void assert_same(const dts_candidate *a, const dts_candidate *b, const dts_scenario_values *base) {
    const dts_candidate *both[] = {a, b};
    dts_outcome outcomes[2];
    dts_screening screenings[2];
    size_t tasks[2];
    for (int i = 0; i < 2; i++) {
        dts_result *result = simulate_candidate(both[i], base);
        dts_scenario_values values;
        dts_diag *diag = dts_diag_new();
        assert_int_equal(dts_outcome_of_result(result, &outcomes[i]), DTS_OK);
        tasks[i] = result->simulation.tasks;
        dts_result_free(result);
        dts_candidate_apply(both[i], base, &values);
        assert_int_equal(dts_screen_values(&values, NULL, NULL, &screenings[i], diag), DTS_OK);
        dts_diag_free(diag);
    }
    for (size_t f = 0; f < dts_figure_count; f++) {
        const double x = dts_figure_get(&outcomes[0].figures, &dts_figure_table[f]);
        const double y = dts_figure_get(&outcomes[1].figures, &dts_figure_table[f]);
        assert_memory_equal(&x, &y, sizeof x);
    }
    assert_string_equal(outcomes[0].plan, outcomes[1].plan);
    assert_int_equal(tasks[0], tasks[1]);
    assert_memory_equal(&screenings[0].time_s, &screenings[1].time_s, sizeof(double));
    assert_memory_equal(&screenings[0].allocated_B, &screenings[1].allocated_B, sizeof(double));
    assert_memory_equal(&screenings[0].host_fill, &screenings[1].host_fill, sizeof(double));
    assert_int_equal(screenings[0].fits, screenings[1].fits);
    dts_outcome_clear(&outcomes[0]);
    dts_outcome_clear(&outcomes[1]);
}

static void look(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    (void)estimate;
    seen *s = context;
    dts_candidate twin, back;
    if (candidate->value[DTS_AXIS_ORDER] != DTS_ORDER_TENSOR_DATA_PIPELINE ||
        candidate->value[DTS_AXIS_PIPELINE] == 1) {
        return;
    }
    if (!dts_layouts_twin(s->c, candidate, &twin)) {
        s->alone++;
        return;
    }
    assert_true(dts_layouts_twin(s->c, &twin, &back));
    assert_int_equal(dts_candidate_compare(candidate, &back), 0);
    if (s->pairs++ % s->every == 0) {
        assert_same(candidate, &twin, s->c->request->base);
    }
}

/* every: so many pairs of twins are simulated once. */
static seen walk(const char *text, size_t every) {
    static dts_layout_space space;
    dts_scenario *scenario = parse_text(text);
    const dts_search_request request = {.base = dts_scenario_get(scenario)};
    const dts_search_context c = {.request = &request};
    seen s = {.c = &c, .every = every};
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_layout_space_make(request.base, NULL, 0, &space, diag), DTS_OK);
    for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
        dts_walk_counts counts;
        assert_int_equal(dts_layout_space_walk(&space, pair, look, &s, &counts, diag), DTS_OK);
    }
    dts_diag_free(diag);
    dts_scenario_free(scenario);
    return s;
}

static void nodes_that_are_full_have_no_order(void **state) {
    (void)state;
    const seen s = walk(
        "model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000}\n"
        "cluster: {profile: dgx-a100-40gb, nodes: 4, gpus_per_node: 2}\n"
        "stack: megatron-lm\n"
        "training: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: bf16}\n",
        331);
    assert_true(s.pairs / 331 > 10 && s.alone > 0);
}

static void experts_too(void **state) {
    (void)state;
    const seen s = walk(
        "model: {profile: mixtral-8x7b, layers: 4}\n"
        "cluster: {profile: dgx-h100, nodes: 4, gpus_per_node: 4}\n"
        "stack: megatron-core\n"
        "training: {global_batch: 32, micro_batch: 1, sequence_length: 2048, precision: bf16}\n",
        1009);
    assert_true(s.pairs / 1009 > 10 && s.alone > 0);
}

static void nodes_that_differ_have_one(void **state) {
    (void)state;
    const seen s = walk(
        "model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 32000}\n"
        "cluster: {profile: dgx-a100-40gb, nodes: 4, gpus_per_node: 2, stragglers: [{node: 1, slowdown: 1.1}]}\n"
        "stack: megatron-lm\n"
        "training: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: bf16}\n",
        1);
    assert_true(s.pairs == 0 && s.alone > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_are_full_have_no_order),
        cmocka_unit_test(experts_too),
        cmocka_unit_test(nodes_that_differ_have_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
