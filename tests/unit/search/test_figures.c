/* Search, sweep and advise say of a plan what a run of it says. */
#include <string.h>

#include "run/verdict.h"
#include "search/search.h"
#include "simulate.h"

static dts_axis axis(const char *text, dts_arena *arena) {
    dts_axis made;
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_axis_parse("--over", text, arena, &made, diag), DTS_OK);
    dts_diag_free(diag);
    return made;
}

static bool warns(const dts_result *r, const char *of) {
    bool found = false;
    for (size_t i = 0; i < r->warning_count; i++) {
        found |= strcmp(r->warnings[i], of) == 0;
    }
    return found;
}

/* A batch of 73 leaves live tensors room on 40 GB, but not the allocator; one of 8 leaves room to both. */
static void the_answer_has_the_figures_of_a_run(void **state) {
    (void)state;
    static const char *const batches[] = {"8", "73"};
    for (size_t t = 0; t < 2; t++) {
        char text[LONGEST_SETTINGS];
        snprintf(text, sizeof text,
                 "model: mingpt-large\nstack: pytorch-1.11\n"
                 "cluster: {profile: gcp-a2-highgpu-8g, nodes: 1, gpus_per_node: 1}\n"
                 "training: {global_batch: %s, micro_batch: %s, sequence_length: 256, precision: fp16, optimizer: "
                 "sgd}\n",
                 batches[t], batches[t]);
        dts_scenario *scenario = parse_text(text);
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        char only[64];
        snprintf(only, sizeof only, "training.micro_batch=%s", batches[t]);
        const dts_axis over[] = {axis("training.recompute=none", arena), axis("offload=none", arena),
                                 axis(only, arena)};
        dts_diag *diag = dts_diag_new();
        const dts_search_request request = {.base = dts_scenario_get(scenario),
                                            .restrictions = over,
                                            .restriction_count = 3,
                                            .method = "exhaustive",
                                            .threads = 1,
                                            .simulations = 8};
        dts_search *made = NULL;
        assert_int_equal(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &made, diag), DTS_OK);
        assert_true(dts_search_any_fits(made));
        const dts_figures *f = &made->findings[0].outcome.figures;
        dts_result *r = simulate_text(text, "");
        assert_close(f->iteration_time_s, r->iteration_time_s, 0, 0);
        assert_close(f->peak_allocated_gib, r->peak_allocated_gib, 0, 0);
        assert_close(f->peak_device_gib, r->peak_device_gib, 0, 0);
        assert_close(f->unserved_gib, r->allocator.unserved_gib, 0, 0);
        assert_true((f->unserved_gib > 0) == (t == 1));
        assert_true(warns(r, dts_unserved_text(arena, r, f->unserved_gib)) == (t == 1));
        dts_result_free(r);
        dts_search_free(made);
        dts_diag_free(diag);
        dts_arena_free(arena);
        dts_scenario_free(scenario);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_answer_has_the_figures_of_a_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
