/* What became of all candidates of a search, counted from the bounds of its first walk. */
#include <math.h>

#include "layouts.h"

typedef struct fates {
    const dts_search_context *c;
    double best_s;
    uint64_t no_memory, known, no_better, open;
} fates;

static void count_candidate(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    fates *n = context;
    const bool fits = dts_layouts_least_fill(n->c, estimate) <= 1;
    const bool known = dts_layouts_find(n->c, candidate) >= 0;
    const bool better = estimate->least_time_s < n->best_s;
    n->no_memory += !fits;
    n->known += fits && known;
    n->no_better += fits && !known && !better;
    n->open += fits && !known && better;
}

/* As a walk over all of them, at the end, counts them. */
static void all_candidates_are_accounted_for(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: gpt, layers: 24, hidden: 4096, heads: 32, vocab: 32000}\n"
        "cluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 4}\n"
        "stack: megatron-lm\n"
        "training: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: bf16}\n";
    dts_scenario *scenario = parse_text(text);
    const dts_scenario_values *base = dts_scenario_get(scenario);
    const dts_search_request request = {.base = base, .method = "exhaustive", .simulations = 6, .threads = 2};
    dts_diag *diag = dts_diag_new();
    dts_search *found = NULL;
    assert_int_equal(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &found, diag), DTS_OK);
    const dts_search_context c = {
        .request = &request,
        .search = found,
        .capacity_B = base->cluster.gpu.memory_B - base->cluster.gpu.context_B -
                      dts_stack_context_B(&base->stack, &base->cluster),
        .host_B = base->cluster.host.memory_B,
        .drives_B = base->cluster.host.nvme_capacity_B,
    };
    fates n = {.c = &c, .best_s = INFINITY};
    for (size_t i = 0; i < found->count; i++) { /* as they were compared, without the allocator's replay */
        const dts_finding *f = &found->findings[i];
        n.best_s = f->outcome.figures.fits ? fmin(n.best_s, f->full_s) : n.best_s;
    }
    for (size_t pair = 0; pair < dts_layout_space_pairs(&found->space); pair++) {
        dts_walk_counts unused;
        assert_int_equal(dts_layout_space_walk(&found->space, pair, count_candidate, &n, &unused, diag), DTS_OK);
    }
    print_message("%d do not fit, %d simulated, %d no better, %d open\n", (int)n.no_memory, (int)n.known,
                  (int)n.no_better, (int)n.open);
    assert_true(n.no_memory > 0 && n.no_better > 0 && n.open > 0 && found->counts.screened > 0);
    assert_int_equal(found->counts.no_memory, n.no_memory);
    assert_int_equal(found->counts.no_better, n.no_better);
    assert_int_equal(found->counts.worse_by_estimate + found->counts.screened + found->counts.failed, n.open);
    dts_diag_free(diag);
    dts_search_free(found);
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_candidates_are_accounted_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
