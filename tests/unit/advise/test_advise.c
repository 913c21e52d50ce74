/* Every branch of the rules from given facts, and facts, families and verdicts from simulation on small clusters. */
#include "advise/advise.h"
#include "check.h"
#include "search/plain.h"

/* ---- the rules ---------------------------------------------------------------------------------------------------
 */

static dts_facts facts(int64_t nodes, int64_t gpus_per_node, bool fits) {
    return (dts_facts){.gpus = nodes * gpus_per_node,
                       .nodes = nodes,
                       .gpus_per_node = gpus_per_node,
                       .parameters = 1e9,
                       .fits_one_gpu = fits,
                       .largest_layer_fits = true};
}

static unsigned tree(const dts_facts *f) {
    return dts_rule_book_branch(&dts_rule_books[DTS_BOOK_TREE], f)->families;
}

static unsigned study(const dts_facts *f) {
    return dts_rule_book_branch(&dts_rule_books[DTS_BOOK_STUDY], f)->families;
}

enum {
    DDP = 1U << DTS_FAMILY_DDP,
    ZERO = 1U << DTS_FAMILY_ZERO,
    PP = 1U << DTS_FAMILY_PIPELINE,
    TP = 1U << DTS_FAMILY_TENSOR,
    THREE = 1U << DTS_FAMILY_3D,
    THREE_ZERO = 1U << DTS_FAMILY_3D_ZERO
};

static void the_tree_has_eight_branches(void **state) {
    (void)state;
    dts_facts f = facts(1, 1, true);
    assert_int_equal(tree(&f), 0);
    f = facts(1, 8, true);
    assert_int_equal(tree(&f), DDP | ZERO);
    f = facts(1, 8, false);
    assert_int_equal(tree(&f), PP);
    f.fast_inside = true;
    assert_int_equal(tree(&f), PP | ZERO | TP);
    assert_true(dts_rule_book_branch(&dts_rule_books[DTS_BOOK_TREE], &f)->alike);
    f.largest_layer_fits = false;
    assert_int_equal(tree(&f), ZERO | TP);
    f = facts(4, 8, false);
    assert_int_equal(tree(&f), THREE_ZERO);
    f.fast_between = true;
    assert_int_equal(tree(&f), ZERO | THREE);
    f = facts(4, 8, true);
    assert_int_equal(tree(&f), 0);
    f.fast_between = true;
    assert_int_equal(tree(&f), ZERO | THREE);
}

static void the_study_has_three_recommendations(void **state) {
    (void)state;
    dts_facts f = facts(1, 8, true);
    assert_int_equal(study(&f), DDP);
    f.parameters = 5e9;
    assert_int_equal(study(&f), ZERO);
    f.high_aco = true;
    assert_int_equal(study(&f), PP);
    f.parameters = 1e9;
    assert_int_equal(study(&f), PP);
    f.parameters = 16e9;
    assert_int_equal(study(&f), ZERO);
    f = facts(1, 1, true);
    assert_int_equal(study(&f), 0);
}

/* ---- simulated ---------------------------------------------------------------------------------------------------
 */

static const char toy[] =
    "model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: megatron-lm\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: bf16}\n";

/* The toy with up to three overrides; the caller's to free. */
static dts_scenario *parse(const char *const settings[][2], size_t count) {
    static const char *const roots[] = {"."};
    static const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_override overrides[4];
    for (size_t i = 0; i < count; i++) {
        overrides[i] = (dts_override){.key = settings[i][0], .value = settings[i][1], .place = {.file = "test"}};
    }
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    assert_int_equal(dts_scenario_parse(toy, sizeof toy - 1, "toy", overrides, count, &profiles, &scenario, diag),
                     DTS_OK);
    dts_diag_free(diag);
    return scenario;
}

static dts_advice advise(const char *const settings[][2], size_t count) {
    dts_scenario *scenario = parse(settings, count);
    dts_diag *diag = dts_diag_new();
    dts_advice advice = {0};
    const dts_advice_request request = {.base = dts_scenario_get(scenario), .threads = 1};
    const dts_status status = dts_advice_make(&request, &advice, diag);
    dts_text rendered = {0};
    dts_diag_render(diag, false, &rendered);
    if (status != DTS_OK) {
        print_error("%s", dts_text_string(&rendered));
    }
    dts_text_free(&rendered);
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    assert_int_equal(status, DTS_OK);
    return advice;
}

static double time_of(const dts_advice *a, dts_family family) {
    assert_true(a->families[family].legal);
    return a->families[family].figures.iteration_time_s;
}

/* A small model on one fast node: whole replicas, and nothing recomputed or offloaded. */
static void what_fits_stays_whole(void **state) {
    (void)state;
    dts_advice a = advise(NULL, 0);
    assert_true(a.facts.fits_one_gpu && a.facts.largest_layer_fits && a.facts.fast_inside);
    assert_true(a.facts.largest_layer_gib < a.facts.one_gpu_recompute_gib);
    assert_true(a.facts.one_gpu_recompute_gib < a.facts.one_gpu_gib);
    const dts_verdict *v = &a.verdicts[DTS_BOOK_TREE];
    assert_int_equal(v->branch->families, DDP | ZERO);
    assert_true(v->agrees);
    assert_close(v->behind, time_of(&a, (dts_family)v->best) / time_of(&a, (dts_family)a.best) - 1, 1e-12, 0);
    assert_int_equal(a.verdicts[DTS_BOOK_STUDY].branch->families, DDP);
    const dts_trials *recompute = &a.trials[DTS_TRIALS_RECOMPUTE];
    assert_int_equal(recompute->items[recompute->preferred].value, DTS_RECOMPUTE_NONE);
    assert_int_equal(recompute->preferred, recompute->fastest);
    const dts_trials *offload = &a.trials[DTS_TRIALS_OFFLOAD];
    assert_int_equal(offload->items[offload->preferred].value, 0);
    assert_int_equal(offload->preferred, offload->fastest);
}

/* What advice calls DDP is what a search does: plain in the same way, and the same plan where it does not fit. */
static void families_are_the_baselines_of_a_search(void **state) {
    (void)state;
    static const char *const large[][2] = {{"model.hidden", "4096"}, {"model.heads", "32"}, {"model.layers", "32"}};
    for (size_t settings = 0; settings <= 3; settings += 3) {
        dts_scenario *scenario = parse(large, settings);
        dts_advice a = advise(large, settings);
        const dts_search_request request = {
            .base = dts_scenario_get(scenario), .method = "exhaustive", .simulations = 12, .threads = 1};
        dts_diag *diag = dts_diag_new();
        dts_search *search = NULL;
        assert_int_equal(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &search, diag), DTS_OK);
        for (int rule = 0; rule < DTS_RULE_COUNT; rule++) {
            assert_true(search->baselines[rule] >= 0);
            assert_true(dts_candidate_is_plain(&search->findings[search->baselines[rule]].candidate));
        }
        const dts_finding *ddp = &search->findings[search->baselines[DTS_RULE_DDP]];
        const dts_contender *family = &a.families[DTS_FAMILY_DDP];
        assert_int_equal(family->figures.fits, settings == 0);
        assert_int_equal(dts_candidate_compare(&family->candidate, &ddp->candidate), 0);
        for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
            assert_true(!a.families[f].legal || dts_candidate_is_plain(&a.families[f].candidate));
        }
        dts_search_free(search);
        dts_diag_free(diag);
        dts_scenario_free(scenario);
    }
}

/* The winner is no slower than any family, and every time stands in its own row. */
static void the_first_is_first(void **state) {
    (void)state;
    static const char *const slow[][2] = {{"cluster", "{profile: gcp-a2-highgpu-8g, nodes: 4, gpus_per_node: 2}"},
                                          {"training.global_batch", "64"}};
    dts_advice a = advise(slow, 2);
    assert_false(a.facts.fast_between);
    assert_int_equal(a.verdicts[DTS_BOOK_TREE].branch->families, 0);
    assert_int_equal(a.verdicts[DTS_BOOK_TREE].best, DTS_NO_TRIAL);
    assert_true(time_of(&a, DTS_FAMILY_PIPELINE) < time_of(&a, DTS_FAMILY_DDP));
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        assert_true(!a.families[f].legal || !a.families[f].figures.fits ||
                    time_of(&a, (dts_family)f) >= time_of(&a, (dts_family)a.best));
    }
}

/* Half of the model's need: whole replicas do not fit, its parts do. */
static void what_does_not_fit_is_split(void **state) {
    (void)state;
    static const char *const small[][2] = {{"model.layers", "96"}, {"model.hidden", "4096"}, {"model.heads", "32"}};
    dts_advice a = advise(small, 3);
    assert_false(a.facts.fits_one_gpu);
    assert_true(a.facts.largest_layer_fits);
    assert_int_equal(a.verdicts[DTS_BOOK_TREE].branch->families, PP | ZERO | TP);
    assert_false(a.families[DTS_FAMILY_DDP].legal && a.families[DTS_FAMILY_DDP].figures.fits &&
                 a.families[DTS_FAMILY_DDP].candidate.value[DTS_AXIS_OFFLOAD] == 0);
}

static void a_layer_may_be_too_large(void **state) {
    (void)state;
    static const char *const wide[][2] = {{"model.layers", "2"}, {"model.hidden", "24576"}, {"model.heads", "128"}};
    dts_advice a = advise(wide, 3);
    assert_false(a.facts.largest_layer_fits);
    assert_int_equal(a.verdicts[DTS_BOOK_TREE].branch->families, ZERO | TP);
    const dts_contender *pipeline = &a.families[DTS_FAMILY_PIPELINE];
    assert_true(!pipeline->legal || !pipeline->figures.fits || pipeline->candidate.value[DTS_AXIS_OFFLOAD] != 0);
}

static void one_gpu_has_one_family(void **state) {
    (void)state;
    static const char *const alone[][2] = {{"cluster.gpus_per_node", "1"}};
    dts_advice a = advise(alone, 1);
    assert_int_equal(a.best, DTS_FAMILY_DDP);
    assert_false(a.families[DTS_FAMILY_ZERO].legal || a.families[DTS_FAMILY_PIPELINE].legal);
    assert_false(a.families[DTS_FAMILY_TENSOR].legal || a.families[DTS_FAMILY_3D].legal);
    const dts_trials *micro = &a.trials[DTS_TRIALS_MICRO_BATCH];
    assert_true(micro->count >= 4 && micro->preferred >= 0);
    for (size_t i = 1; i < micro->count; i++) {
        assert_true(micro->items[i].value > micro->items[i - 1].value);
        assert_true(micro->items[i].figures.peak_device_gib >= micro->items[i - 1].figures.peak_device_gib);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_has_eight_branches), cmocka_unit_test(the_study_has_three_recommendations),
        cmocka_unit_test(what_fits_stays_whole),       cmocka_unit_test(families_are_the_baselines_of_a_search),
        cmocka_unit_test(the_first_is_first),          cmocka_unit_test(what_does_not_fit_is_split),
        cmocka_unit_test(a_layer_may_be_too_large),    cmocka_unit_test(one_gpu_has_one_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
