/* Which plan becomes the answer: the best that the asker accepts. */
#include <string.h>

#include "check.h"
#include "search/search.h"

static const char small[] =
    "model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 32000}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: megatron-lm\n"
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: bf16}\n";

#define VALUES(...)    \
    (const char *[]) { \
        __VA_ARGS__    \
    }
#define AXIS(name, ...)                                                                                        \
    (dts_axis) {                                                                                               \
        .key = name, .values = VALUES(__VA_ARGS__), .count = sizeof VALUES(__VA_ARGS__) / sizeof(const char *) \
    }

static dts_scenario *parse(const char *text) {
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    assert_int_equal(dts_scenario_parse(text, strlen(text), "test", NULL, 0, &profiles, &scenario, diag), DTS_OK);
    dts_diag_free(diag);
    return scenario;
}

static dts_search *search(dts_search_request request) {
    dts_diag *diag = dts_diag_new();
    dts_search *made = NULL;
    request.method = request.method == NULL ? "exhaustive" : request.method;
    request.threads = request.threads == 0 ? 2 : request.threads;
    assert_int_equal(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &made, diag), DTS_OK);
    dts_diag_free(diag);
    return made;
}

/* As a launcher that can do some things only. */
typedef struct asker {
    dts_layout_axis axis;
    int32_t value; /* that it wants there */
    size_t asked;
} asker;

static dts_status accepts(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag) {
    asker *a = context;
    (void)diag;
    *accepted = candidate->value[a->axis] == a->value;
    a->asked++;
    return DTS_OK;
}

/* The answer is the best of those that are accepted: as good as in a space that holds nothing else. */
static void the_best_accepted_plan_is_chosen(void **state) {
    (void)state;
    dts_scenario *scenario = parse(small);
    const dts_axis over[] = {AXIS("parallelism.schedule", "1f1b", "gpipe"), AXIS("training.recompute", "none", "full"),
                             AXIS("offload", "none"), AXIS("parallelism.pipeline", "1", "2", "4"),
                             AXIS("parallelism.data_parallel", "ddp", "zero1", "fsdp")};
    const struct {
        dts_layout_axis axis;
        int32_t value;
        dts_axis only;
    } cases[] = {
        {DTS_AXIS_PIPELINE, 4, AXIS("parallelism.pipeline", "4")},
        {DTS_AXIS_RECOMPUTE, DTS_RECOMPUTE_FULL, AXIS("training.recompute", "full")},
    };
    for (size_t i = 0; i < 2; i++) {
        asker asks = {.axis = cases[i].axis, .value = cases[i].value};
        dts_search_request request = {.base = dts_scenario_get(scenario),
                                      .restrictions = over,
                                      .restriction_count = 5,
                                      .simulations = 4, /* too few to come across many that are accepted */
                                      .accepts = accepts,
                                      .accepts_context = &asks};
        dts_search *some = search(request);
        assert_true(some->chosen > 0 && asks.asked > 1);
        assert_int_equal(some->findings[some->chosen].candidate.value[cases[i].axis], cases[i].value);
        for (long k = 0; k < some->chosen; k++) {
            assert_int_equal(some->findings[k].acceptance, DTS_PASSED_OVER);
        }
        dts_axis restricted[5];
        for (size_t k = 0; k < 5; k++) {
            restricted[k] = strcmp(over[k].key, cases[i].only.key) == 0 ? cases[i].only : over[k];
        }
        dts_search *all =
            search((dts_search_request){.base = request.base, .restrictions = restricted, .restriction_count = 5});
        assert_true(all->proven && all->chosen == 0);
        assert_close(some->findings[some->chosen].outcome.figures.iteration_time_s,
                     all->findings[0].outcome.figures.iteration_time_s, 0.02, 0);
        dts_search_free(all);
        dts_search_free(some);
    }
    dts_scenario_free(scenario);
}

static void nothing_accepted_is_no_answer(void **state) {
    (void)state;
    dts_scenario *scenario = parse(small);
    asker asks = {.axis = DTS_AXIS_TENSOR, .value = 3};
    dts_search *none = search((dts_search_request){
        .base = dts_scenario_get(scenario), .simulations = 4, .accepts = accepts, .accepts_context = &asks});
    assert_int_equal(none->chosen, DTS_NOWHERE);
    assert_true(none->findings[0].outcome.figures.fits);
    dts_search_free(none);
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_accepted_plan_is_chosen),
        cmocka_unit_test(nothing_accepted_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
