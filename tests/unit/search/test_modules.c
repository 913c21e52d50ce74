/* Recomputation of named modules in a search: the lists that `modules` stands for, and the bounds of layouts with them.
 */
#include <math.h>
#include <string.h>

#include "layouts.h"
#include "search/modules.h"

static const char dense[] =
    "model: {profile: llama, layers: 8, hidden: 2048, heads: 16, kv_heads: 8, vocab: 32000}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 4}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 2048, precision: bf16}\n";

static const char experts[] =
    "model: {profile: deepseek-v2-lite, layers: 5}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 4}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 2048, precision: bf16}\n";

static const char split[] =
    "model: {profile: gpt, layers: 14, hidden: 1024, heads: 16, vocab: 1024}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: zero-bubble\n"
    "training: {global_batch: 48, micro_batch: 4, sequence_length: 2048, precision: amp-fp16}\n";

static size_t chain_of(const char *text, int64_t out[DTS_MODULE_COUNT]) {
    dts_scenario *scenario = parse_text(text);
    dts_diag *diag = dts_diag_new();
    size_t count = 0;
    assert_ok(dts_module_chain(dts_scenario_get(scenario), out, &count, diag), diag);
    dts_scenario_free(scenario);
    return count;
}

/* Each list adds one module to the one before; modules that the model lacks are in none. */
static void lists_grow_by_modules_that_are_there(void **state) {
    (void)state;
    const int64_t latent = 1 << DTS_MODULE_MLA_UP_PROJ | 1 << DTS_MODULE_MOE_ACT | 1 << DTS_MODULE_MOE;
    static const char *const texts[] = {dense, experts};
    for (size_t t = 0; t < 2; t++) {
        int64_t lists[DTS_MODULE_COUNT];
        const size_t count = chain_of(texts[t], lists);
        assert_true(count >= 2);
        for (size_t i = 0; i < count; i++) {
            const int64_t added = lists[i] & ~(i > 0 ? lists[i - 1] : 0);
            assert_true(added != 0 && (added & (added - 1)) == 0);
            assert_true(i == 0 || (lists[i] & lists[i - 1]) == lists[i - 1]);
        }
        assert_int_equal((lists[count - 1] & latent) != 0, t == 1);
    }
}

typedef struct tally {
    const dts_scenario_values *base;
    size_t count, every, seen;
    double error, most; /* of time: sum; of memory: the nearest bound */
} tally;

static void compare(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    tally *t = context;
    if (candidate->value[DTS_AXIS_RECOMPUTE] < DTS_CANDIDATE_MODULES || t->seen++ % t->every != 0) {
        return;
    }
    dts_result *result = check_bounds(candidate, estimate, t->base);
    /* what is written is what is read */
    dts_text written = {0};
    int32_t read = 0;
    dts_candidate_write(candidate, DTS_AXIS_RECOMPUTE, 0, &written);
    assert_true(dts_candidate_parse(DTS_AXIS_RECOMPUTE, dts_text_string(&written), &read));
    assert_int_equal(read, candidate->value[DTS_AXIS_RECOMPUTE]);
    dts_text_free(&written);
    t->error += fabs(estimate->time_s / result->iteration_time_s - 1);
    t->most = fmax(t->most, estimate->least_memory_B / bytes_of(result->peak_allocated_gib));
    t->count++;
    dts_result_free(result);
}

static void bounds_hold(void **state) {
    (void)state;
    static const char *const texts[] = {dense, experts, split};
    static const size_t every[] = {61, 211, 37};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *chain[] = {"none", "modules"};
        const dts_axis over[] = {{.key = "training.recompute", .values = chain, .count = 2}};
        dts_scenario *scenario = parse_text(texts[i]);
        dts_diag *diag = dts_diag_new();
        static dts_layout_space space;
        assert_int_equal(dts_layout_space_make(dts_scenario_get(scenario), over, 1, &space, diag), DTS_OK);
        tally t = {.base = dts_scenario_get(scenario), .every = every[i]};
        for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
            dts_walk_counts counts;
            assert_int_equal(dts_layout_space_walk(&space, pair, compare, &t, &counts, diag), DTS_OK);
        }
        print_message("%zu of %zu layouts: closed form off by %.1f %% on average, bounds of memory up to %.2f\n",
                      t.count, t.seen, 100 * t.error / (double)t.count, t.most);
        assert_true(t.count > 10 && t.error / (double)t.count < 0.15 && t.most > 0.8);
        dts_diag_free(diag);
        dts_scenario_free(scenario);
    }
}

/* The scenario's own list is searched without being named; the stack's stays the first selection. */
static void a_scenarios_own_list_is_searched(void **state) {
    (void)state;
    char text[1024];
    snprintf(text, sizeof text, "%.*s, recompute: {modules: [layernorm, mlp]}}\n", (int)strlen(dense) - 2, dense);
    dts_scenario *scenario = parse_text(text);
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    assert_int_equal(dts_layout_space_make(dts_scenario_get(scenario), NULL, 0, &space, diag), DTS_OK);
    assert_int_equal(space.selections.count, 2);
    assert_int_equal(space.selections.modules[0], 0);
    assert_int_equal(space.selections.modules[1], 1 << DTS_MODULE_LAYERNORM | 1 << DTS_MODULE_MLP);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
}

static void count_layouts(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    size_t *legal = context;
    (void)candidate;
    (void)estimate;
    *legal += 1;
}

static size_t layouts_of(const dts_axis *recompute) {
    dts_scenario *scenario = parse_text(dense);
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    size_t legal = 0;
    assert_int_equal(dts_layout_space_make(dts_scenario_get(scenario), recompute, 1, &space, diag), DTS_OK);
    for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
        dts_walk_counts counts;
        assert_int_equal(dts_layout_space_walk(&space, pair, count_layouts, &legal, &counts, diag), DTS_OK);
    }
    dts_diag_free(diag);
    dts_scenario_free(scenario);
    return legal;
}

/* A list that is what the stack calls selective is left out beside that only. */
static void a_list_alone_is_searched(void **state) {
    (void)state;
    const char *values[] = {"selective", "{modules: [core_attn]}"};
    const dts_axis both = {.key = "training.recompute", .values = values, .count = 2};
    const dts_axis selective = {.key = "training.recompute", .values = values, .count = 1};
    const dts_axis list = {.key = "training.recompute", .values = values + 1, .count = 1};
    const size_t legal = layouts_of(&selective);
    assert_true(legal > 0);
    assert_int_equal(layouts_of(&list), legal);
    assert_int_equal(layouts_of(&both), legal);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_grow_by_modules_that_are_there), cmocka_unit_test(bounds_hold),
        cmocka_unit_test(a_scenarios_own_list_is_searched), cmocka_unit_test(a_list_alone_is_searched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
