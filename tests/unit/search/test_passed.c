/* Candidates that a walk passes over: only those that are behind, and all that are kept are still there. What one walk
 * notes of branches: no less, and no more, than the best of each. */
#include <math.h>
#include <string.h>

#include "closed_form.h"

enum { KEPT = 24, ASKED = 64 };

static const char pipelines[] =
    "model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 2, gpus_per_node: 4}\n"
    "stack: megatron-lm\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: bf16}\n";

static const char experts[] =
    "model: {profile: mixtral-8x7b, layers: 4, hidden: 512, heads: 8, kv_heads: 4, ffn_hidden: 1024}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 4}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: bf16}\n";

static const char adapters[] =
    "model: {profile: llama-3-8b, layers: 4}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: bf16, adapters: {lora: {rank: "
    "8}}}\n";

typedef struct watched {
    dts_top best;
    size_t visited;
    bool passes;
    struct {
        dts_candidate candidate;
        int axes;
        double least_s;
    } asked[ASKED]; /* the last ones */
    size_t asked_count;
} watched;

static void watch_candidate(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    watched *w = context;
    for (size_t i = 0; i < ASKED && i < w->asked_count; i++) {
        const size_t known = (size_t)w->asked[i].axes * sizeof candidate->value[0];
        if (memcmp(w->asked[i].candidate.value, candidate->value, known) == 0) {
            assert_true(w->asked[i].least_s <= estimate->time_s);
        }
    }
    w->visited++;
    dts_top_add(&w->best, estimate->time_s, candidate, estimate);
}

static bool ask(const void *context, const dts_candidate *candidate, int axes, double least_s) {
    watched *w = (watched *)context;
    const size_t at = w->asked_count++ % ASKED;
    w->asked[at].candidate = *candidate;
    w->asked[at].axes = axes;
    w->asked[at].least_s = least_s;
    return w->passes && w->best.count == w->best.capacity && least_s > w->best.items[w->best.count - 1].score;
}

static dts_scenario *space_of(const char *text, dts_layout_space *space, dts_diag *diag) {
    dts_scenario *scenario = parse_text(text);
    assert_int_equal(dts_layout_space_make(dts_scenario_get(scenario), NULL, 0, space, diag), DTS_OK);
    return scenario;
}

static void walk_all(const char *text, watched *w) {
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    dts_scenario *scenario = space_of(text, &space, diag);
    assert_int_equal(dts_top_new(KEPT, &w->best), DTS_OK);
    const dts_layout_watch watch = {.visit = watch_candidate, .passes = ask};
    for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
        dts_walk_counts counts;
        assert_int_equal(dts_layout_space_watch(&space, pair, &watch, w, &counts, diag), DTS_OK);
    }
    dts_diag_free(diag);
    dts_scenario_free(scenario);
}

static void what_is_passed_over_is_behind(void **state) {
    (void)state;
    static const char *const texts[] = {pipelines, experts, adapters};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        static watched all, some;
        all = (watched){.passes = false};
        some = (watched){.passes = true};
        walk_all(texts[t], &all);
        walk_all(texts[t], &some);
        print_message("%zu candidates, looked at %zu\n", all.visited, some.visited);
        assert_true(some.visited < all.visited / 2);
        assert_int_equal(some.best.count, all.best.count);
        for (size_t i = 0; i < all.best.count; i++) {
            assert_int_equal(dts_candidate_compare(&all.best.items[i].candidate, &some.best.items[i].candidate), 0);
        }
        dts_top_free(&all.best);
        dts_top_free(&some.best);
    }
}

typedef struct noted {
    const dts_layout_space *space;
    dts_branches branches;
    size_t attained, visited;
    double fastest_s;
} noted;

static void note(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    noted *n = context;
    const size_t family = dts_layouts_family(n->space, candidate);
    assert_int_equal(dts_branches_add(&n->branches, candidate, family, estimate->time_s), DTS_OK);
    n->fastest_s = fmin(n->fastest_s, estimate->time_s);
    n->visited++;
}

/* Passes over all that is slower than what has been looked at, and notes its bound. */
static bool note_bound(const void *context, const dts_candidate *candidate, int axes, double least_s) {
    noted *n = (noted *)context;
    size_t count = 0;
    const size_t first = dts_layouts_first_family(n->space, candidate, axes, &count);
    const bool passed = least_s > n->fastest_s;
    for (size_t i = 0; i < count && passed; i++) {
        assert_int_equal(dts_branches_add(&n->branches, candidate, first + i, least_s), DTS_OK);
    }
    return passed;
}

static void look_up(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    noted *n = context;
    const double *least_s = dts_branches_find(&n->branches, candidate);
    assert_non_null(least_s);
    const double least = least_s[dts_layouts_family(n->space, candidate)];
    assert_true(least <= estimate->time_s);
    n->attained += least >= estimate->time_s;
    dts_candidate other = *candidate;
    other.value[DTS_AXIS_MICRO_BATCH] = INT32_MAX;
    assert_null(dts_branches_find(&n->branches, &other));
}

static void branches_are_noted_with_their_best(void **state) {
    (void)state;
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    dts_scenario *scenario = space_of(pipelines, &space, diag);
    size_t branches = 0;
    for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
        noted n = {.space = &space, .branches = {.families = dts_layouts_families(&space)}};
        dts_walk_counts counts;
        assert_int_equal(dts_layout_space_walk(&space, pair, note, &n, &counts, diag), DTS_OK);
        dts_branches_sort(&n.branches);
        assert_int_equal(dts_layout_space_walk(&space, pair, look_up, &n, &counts, diag), DTS_OK);
        size_t known = 0;
        for (size_t i = 0; i < n.branches.count * n.branches.families; i++) {
            known += isfinite(n.branches.least_s[i]) != 0;
        }
        assert_true(n.attained >= known);
        branches += n.branches.count;
        dts_branches_free(&n.branches);
    }
    assert_true(branches > KEPT);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
}

static void know(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    noted *n = context;
    const double *least_s = dts_branches_find(&n->branches, candidate);
    assert_non_null(least_s);
    assert_true(least_s[dts_layouts_family(n->space, candidate)] <= estimate->time_s);
    n->visited++;
}

/* Later walks look for what the first one passed over, in either order of ranks. */
static void what_is_passed_over_is_noted_by_its_bound(void **state) {
    (void)state;
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    dts_scenario *scenario = space_of(pipelines, &space, diag);
    size_t all = 0, looked_at = 0;
    for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
        noted n = {
            .space = &space, .branches = {.families = dts_layouts_families(&space)}, .fastest_s = (double)INFINITY};
        dts_walk_counts counts;
        const dts_layout_watch watch = {.visit = note, .passes = note_bound};
        assert_int_equal(dts_layout_space_watch(&space, pair, &watch, &n, &counts, diag), DTS_OK);
        dts_branches_sort(&n.branches);
        looked_at += n.visited;
        n.visited = 0;
        assert_int_equal(dts_layout_space_walk(&space, pair, know, &n, &counts, diag), DTS_OK);
        all += n.visited;
        dts_branches_free(&n.branches);
    }
    assert_true(looked_at < all / 4);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_passed_over_is_behind),
                                       cmocka_unit_test(what_is_passed_over_is_noted_by_its_bound),
                                       cmocka_unit_test(branches_are_noted_with_their_best)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
