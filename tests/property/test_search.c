/* The search of layouts: its candidates are the legal plans, its bounds hold, its answer is the best of all of them and
 * does not depend on threads or on the order of the values. */
#include <stdlib.h>

#include "base/random.h"
#include "layouts.h"

static const char small[] =
    "model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 2, gpus_per_node: 4}\n"
    "stack: megatron-lm\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: bf16}\n";

static const char tight[] =
    "model: {profile: llama, layers: 6, hidden: 4096, heads: 32, vocab: 32000}\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 2}\n"
    "stack: pytorch-1.11\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 2048, precision: amp-fp16}\n";

static const char experts[] =
    "model: {profile: mixtral-8x7b, layers: 4}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2, gpus_per_node: 4}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 2048, precision: bf16}\n";

static const char adapters[] =
    "model: {profile: llama, layers: 6, hidden: 4096, heads: 32, vocab: 32000}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 2, gpus_per_node: 4}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 2048, precision: amp-bf16,\n"
    "           adapters: {lora: {rank: 16, targets: all-linear, base: nf4}}}\n";

/* The host has no room for what does not fit the GPUs: drives have. */
static const char drives[] =
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 32000}\n"
    "cluster: {profile: dgx-2, nodes: 1, gpus_per_node: 4, host: {memory: 6 GB}}\n"
    "stack: deepspeed\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: fp16, optimizer: adam}\n";

static const double GIB = 1024.0 * 1024.0 * 1024.0;

static const char *const texts[] = {small, tight, experts, adapters, drives};
enum { TEXTS = sizeof texts / sizeof texts[0] };

/* How many of `all` to try: a tenth where few are asked for. */
static size_t some_of(size_t all) {
    return asked_for_few() ? (all + 9) / 10 : all;
}

/* ---- all candidates -------------------------------------------------------------------------------------------------
 */

typedef struct list {
    dts_ranked *items;
    size_t count, capacity;
} list;

static void collect(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    list *l = context;
    if (l->count == l->capacity) {
        l->capacity = l->capacity == 0 ? 1024 : 2 * l->capacity;
        l->items = realloc(l->items, l->capacity * sizeof *l->items);
        assert_non_null(l->items);
    }
    l->items[l->count++] = (dts_ranked){.candidate = *candidate, .estimate = *estimate};
}

static int by_candidate(const void *a, const void *b) {
    return dts_candidate_compare(&((const dts_ranked *)a)->candidate, &((const dts_ranked *)b)->candidate);
}

static list walk_all(const dts_scenario_values *base, const dts_axis *over, size_t over_count,
                     dts_layout_space *space) {
    list all = {0};
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_layout_space_make(base, over, over_count, space, diag), DTS_OK);
    uint64_t legal = 0;
    for (size_t pair = 0; pair < dts_layout_space_pairs(space); pair++) {
        dts_walk_counts counts;
        assert_int_equal(dts_layout_space_walk(space, pair, collect, &all, &counts, diag), DTS_OK);
        legal += counts.legal;
    }
    dts_diag_free(diag);
    assert_int_equal(legal, all.count);
    qsort(all.items, all.count, sizeof *all.items, by_candidate);
    for (size_t i = 1; i < all.count; i++) {
        assert_true(dts_candidate_compare(&all.items[i - 1].candidate, &all.items[i].candidate) < 0); /* each once */
    }
    return all;
}

static void candidates_are_the_legal_plans(void **state) {
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        dts_scenario *scenario = parse_text(texts[t]);
        const dts_scenario_values *base = dts_scenario_get(scenario);
        static dts_layout_space space;
        list all = walk_all(base, NULL, 0, &space);
        for (size_t i = 0; i < all.count; i += 97) {
            assert_true(dts_candidate_legal(&all.items[i].candidate, base));
        }
        /* what the walk leaves out is illegal, the same plan under another name, or has more on drives than it needs
         * (tests/unit/search/test_drives.c) */
        dts_random *random = dts_random_new(7);
        size_t found = 0;
        for (size_t i = 0; i < some_of(20000); i++) {
            dts_ranked drawn = {0};
            int32_t *v = drawn.candidate.value;
            for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
                v[axis] = space.axes[axis].items[dts_random_below(random, (uint32_t)space.axes[axis].count)];
            }
            v[DTS_AXIS_PARTITION] = 0;
            v[DTS_AXIS_SHARD_GROUP] = 0;
            v[DTS_AXIS_RECOMPUTE] =
                v[DTS_AXIS_RECOMPUTE] == DTS_RECOMPUTE_FULL ? DTS_RECOMPUTE_FULL : DTS_RECOMPUTE_NONE;
            v[DTS_AXIS_VIRTUAL_STAGES] = v[DTS_AXIS_VIRTUAL_STAGES] > 2 ? 2 : v[DTS_AXIS_VIRTUAL_STAGES];
            bool distinct = dts_offload_on_drives(v[DTS_AXIS_OFFLOAD]) == 0 && v[DTS_AXIS_PIPELINE] > 1 &&
                            v[DTS_AXIS_TENSOR] * v[DTS_AXIS_PIPELINE] * v[DTS_AXIS_CONTEXT] <
                                base->cluster.nodes * base->cluster.gpus_per_node;
            if (distinct && dts_candidate_legal(&drawn.candidate, base)) {
                assert_non_null(bsearch(&drawn, all.items, all.count, sizeof drawn, by_candidate));
                found++;
            }
        }
        assert_true(found > 0);
        dts_random_free(random);
        free(all.items);
        dts_scenario_free(scenario);
    }
}

/* No simulation undercuts a bound, and the closed form stays near it. What rests in host memory is known but for
 * activations on their way, and for a second copy of tied embeddings on a rank that has both ends. */
static void bounds_hold(void **state) {
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        dts_scenario *scenario = parse_text(texts[t]);
        const dts_scenario_values *base = dts_scenario_get(scenario);
        static dts_layout_space space;
        list all = walk_all(base, NULL, 0, &space);
        double error = 0;
        size_t count = 0, hosts = 0, fullest = 0;
        for (size_t i = 0; i < all.count; i += all.count / some_of(150)) {
            const dts_ranked *r = &all.items[i];
            dts_result *result = check_bounds(&r->candidate, &r->estimate, base);
            double host_B = result->host_peak_gib * GIB;
            if (host_B > 0 && (r->candidate.value[DTS_AXIS_OFFLOAD] & DTS_OFFLOAD_ACTIVATIONS) == 0) {
                fullest += r->estimate.least_host_B > 0.99 * host_B;
                hosts++;
            }
            error += fabs(r->estimate.time_s / result->iteration_time_s - 1);
            count++;
            dts_result_free(result);
        }
        print_message("closed form: off by %.1f %% on average over %zu layouts; %zu of %zu host memories\n",
                      100 * error / (double)count, count, fullest, hosts);
        assert_true(10 * (fullest + 1) >= 9 * hosts);             /* under sanitizers three are looked at */
        assert_true(count < 100 || error / (double)count < 0.25); /* few may all be small and host-bound */
        free(all.items);
        dts_scenario_free(scenario);
    }
}

/* A split backward holds part of a microbatch's activations between its halves, and that in stages which hold few whole
 * ones: no more than that counts in a bound. Large activations, and stages in the middle with more layers than the
 * ends. */
static void bounds_hold_where_backward_is_split(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: gpt, layers: 14, hidden: 1024, heads: 16, vocab: 1024}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
        "stack: zero-bubble\n"
        "training: {global_batch: 48, micro_batch: 4, sequence_length: 2048, precision: amp-fp16}\n";
    const dts_axis over[] = {AXIS("parallelism.pipeline", "4"),
                             AXIS("parallelism.schedule", "zb-h1", "zb-h2", "zbv", "zb1p-heuristic", "zb2p-heuristic",
                                  "zbv-heuristic", "v-half"),
                             AXIS("training.micro_batch", "2", "4"), AXIS("offload", "none"),
                             AXIS("training.recompute", "none", "selective", "full")};
    dts_scenario *scenario = parse_text(text);
    const dts_scenario_values *base = dts_scenario_get(scenario);
    static dts_layout_space space;
    list all = walk_all(base, over, sizeof over / sizeof over[0], &space);
    double nearest = 0;
    for (size_t i = 0; i < all.count; i += asked_for_few() ? 4 : 1) {
        dts_result *result = check_bounds(&all.items[i].candidate, &all.items[i].estimate, base);
        nearest = fmax(nearest, all.items[i].estimate.least_memory_B / (result->peak_allocated_gib * GIB));
        dts_result_free(result);
    }
    print_message("%zu layouts; bounds of memory up to %.2f of the peak\n", all.count, nearest);
    assert_true(all.count > 20 && nearest > 0.8);
    free(all.items);
    dts_scenario_free(scenario);
}

/* Coarse simulation chooses what is simulated in full: it may take a plan for faster than it is, which costs a
 * simulation, but hardly for slower, which would cost the answer. */
static void coarse_simulation_is_close(void **state) {
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        dts_scenario *scenario = parse_text(texts[t]);
        const dts_scenario_values *base = dts_scenario_get(scenario);
        static dts_layout_space space;
        list all = walk_all(base, NULL, 0, &space);
        dts_block_cache *blocks = dts_block_cache_new(0);
        double error = 0, highest = 0, lowest = INFINITY;
        size_t count = 0, known = 0;
        for (size_t i = 0; i < all.count; i += all.count / some_of(300)) {
            const dts_ranked *r = &all.items[i];
            dts_result *result = simulate_candidate(&r->candidate, base);
            dts_scenario_values values;
            dts_candidate_apply(&r->candidate, base, &values);
            dts_screening s = {0};
            dts_diag *diag = dts_diag_new();
            dts_text plan = {0};
            dts_candidate_describe(&r->candidate, base, &plan);
            const dts_status looked = dts_screen_values(&values, blocks, NULL, &s, diag);
            if (looked != DTS_OK) {
                print_error("%s\n", dts_text_string(&plan));
            }
            assert_ok(looked, diag);
            double ratio = s.time_s / result->iteration_time_s;
            /* how long transfers of units last beside exchanges that take their links is what a first look leaves out
             */
            const int32_t *v = r->candidate.value;
            bool lasts = v[DTS_AXIS_DATA_PARALLEL] >= DTS_DP_ZERO3 &&
                         (v[DTS_AXIS_EXPERT] > 1 || v[DTS_AXIS_CONTEXT] > 1 || v[DTS_AXIS_TENSOR] > 1);
            bool same = fabs(s.allocated_B / GIB / result->peak_allocated_gib - 1) < (lasts ? 0.03 : 0.01);
            /* copies of activations that meet on a link may come in another order: 5.7 % once in 300; of what a host
             * holds 2 % too much at most, which would cost the answer, and 8.6 % too little (one layout) */
            const bool copies = v[DTS_AXIS_OFFLOAD] & DTS_OFFLOAD_ACTIVATIONS;
            double most = copies ? 1.07 : 1.05;
            double hosts = result->host_peak_gib > 0 ? result->host_peak_gib / result->host_capacity_gib : 0;
            const double above = s.host_fill / fmax(hosts, 1e-9) - 1;
            bool hosts_same =
                hosts == 0 ? s.host_fill == 0 : above <= (copies ? 0.03 : 0.01) && above >= (copies ? -0.1 : -0.01);
            bool near = s.allocated_B / GIB < 3 * result->peak_allocated_gib;
            if (ratio > most || (s.memory_known && !same) || !hosts_same || !near) {
                fail_msg("%s: coarsely %g s, %g GiB, %g of a host; in full %g s, %g GiB, %g", dts_text_string(&plan),
                         s.time_s, s.allocated_B / GIB, s.host_fill, result->iteration_time_s,
                         result->peak_allocated_gib, hosts);
            }
            dts_text_free(&plan);
            error += fabs(ratio - 1);
            highest = fmax(highest, ratio);
            lowest = fmin(lowest, ratio);
            known += s.memory_known;
            count++;
            dts_result_free(result);
        }
        print_message(
            "coarse simulation: off by %.2f %% on average, %.1f to %+.1f %%, over %zu layouts (memory of %zu)\n",
            100 * error / (double)count, 100 * (lowest - 1), 100 * (highest - 1), count, known);
        assert_true(error / (double)count < 0.05);
        dts_block_cache_free(blocks);
        free(all.items);
        dts_scenario_free(scenario);
    }
}

/* ---- methods --------------------------------------------------------------------------------------------------------
 */

static dts_search *search(const dts_scenario_values *base, const char *method, const dts_axis *over, size_t over_count,
                          size_t simulations, uint64_t seed, int threads) {
    dts_search_request request = {.base = base,
                                  .restrictions = over,
                                  .restriction_count = over_count,
                                  .method = method,
                                  .simulations = simulations,
                                  .seed = seed,
                                  .threads = threads};
    dts_diag *diag = dts_diag_new();
    dts_search *made = NULL;
    assert_int_equal(dts_search_spaces[0]->run(&request, &made, diag), DTS_OK);
    dts_diag_free(diag);
    return made;
}

static void every_method_finds_the_optimum(void **state) {
    (void)state;
    const dts_axis over[] = {
        AXIS("parallelism.schedule", "1f1b", "interleaved-1f1b"),
        AXIS("offload", "none", "optimizer"),
        AXIS("training.recompute", "none", "full"),
        AXIS("parallelism.partition", "balanced"),
        AXIS("parallelism.virtual_stages", "1", "2"),
        AXIS("training.micro_batch", "1", "2", "4"),
        AXIS("parallelism.data_parallel", "ddp", "zero1", "fsdp"),
    };
    size_t over_count = sizeof over / sizeof over[0];
    /* in the second space DDP with tensor parallelism is 1.8 % behind FSDP, two changes away from it */
    static const double slack[] = {1.01, 1.02};
    for (size_t t = 0; t < some_of(2); t++) {
        dts_scenario *scenario = parse_text(texts[t]);
        const dts_scenario_values *base = dts_scenario_get(scenario);
        static dts_layout_space space;
        list all = walk_all(base, over, over_count, &space);
        double best_s = INFINITY;
        for (size_t i = 0; i < all.count; i++) {
            dts_result *result = simulate_candidate(&all.items[i].candidate, base);
            best_s = result->fits ? fmin(best_s, result->iteration_time_s) : best_s;
            dts_result_free(result);
        }
        dts_search *exhaustive = search(base, "exhaustive", over, over_count, 0, 1, 1);
        assert_true(exhaustive->proven);
        print_message("%zu layouts, %zu simulated until proven\n", all.count, exhaustive->count);
        /* the bounds save work where computing decides; in the second space the network does, of which they know little
         */
        assert_true(t == 0 ? exhaustive->count < all.count / 4 : exhaustive->count <= all.count);
        assert_close(exhaustive->findings[0].outcome.figures.iteration_time_s, best_s, 0, 0);
        dts_search_free(exhaustive);
        for (size_t most = 8; most <= 32; most *= 2) { /* chosen by coarse simulation */
            dts_search *some = search(base, "exhaustive", over, over_count, most, 1, 1);
            print_message("%zu at most: %zu coarsely, %zu in full: %g s, off by %.2f %%\n", most, some->screenings,
                          some->count, some->findings[0].outcome.figures.iteration_time_s,
                          100 * some->coarse.mean_error);
            /* where no more are left than may be simulated, all of them are */
            assert_true(some->screenings > 0 || some->proven);
            assert_close(some->findings[0].outcome.figures.iteration_time_s, best_s, most < 32 ? 0.01 : 0, 0);
            dts_search_free(some);
        }
        dts_search *dp = search(base, "dp", over, over_count, 0, 1, 1);
        assert_true(dp->findings[0].outcome.figures.iteration_time_s <= best_s); /* of a larger space */
        dts_search_free(dp);
        size_t near = 0, seeds = some_of(10);
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            dts_search *mcmc = search(base, "mcmc", over, over_count, 400, seed, 1);
            near += mcmc->findings[0].outcome.figures.fits &&
                    mcmc->findings[0].outcome.figures.iteration_time_s <= slack[t] * best_s;
            dts_search_free(mcmc);
        }
        print_message("%zu layouts, best %g s; mcmc within %.0f %% in %zu of %zu seeds\n", all.count, best_s,
                      100 * (slack[t] - 1), near, seeds);
        assert_true(near * 100 >= seeds * 95);
        free(all.items);
        dts_scenario_free(scenario);
    }
}

/* {first: n}: between keeping all and repeating all, and the same as repeating all when n is all. */
static void some_layers_are_recomputed(void **state) {
    (void)state;
    dts_scenario *scenario = parse_text(small);
    const dts_scenario_values *base = dts_scenario_get(scenario);
    static dts_layout_space space;
    const dts_axis over[] = {AXIS("parallelism.pipeline", "2"),
                             AXIS("parallelism.tensor", "1"),
                             AXIS("training.micro_batch", "1"),
                             AXIS("parallelism.schedule", "1f1b"),
                             AXIS("parallelism.data_parallel", "ddp"),
                             AXIS("parallelism.context", "1"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", "none", "full")};
    list all = walk_all(base, over, sizeof over / sizeof over[0], &space);
    dts_candidate candidate = all.items[0].candidate; /* 2 stages of 4 layers */
    static const int32_t recomputes[] = {DTS_RECOMPUTE_NONE, DTS_CANDIDATE_FIRST + 1, DTS_CANDIDATE_FIRST + 3,
                                         DTS_RECOMPUTE_FULL, DTS_CANDIDATE_FIRST + 4, DTS_CANDIDATE_FIRST + 9};
    double hardware[6], peak_gib[6];
    for (size_t i = 0; i < 6; i++) {
        candidate.value[DTS_AXIS_RECOMPUTE] = recomputes[i];
        dts_result *result = simulate_candidate(&candidate, base);
        hardware[i] = result->hfu / result->mfu; /* FLOPs that run over those that count */
        peak_gib[i] = result->peak_allocated_gib;
        dts_result_free(result);
    }
    for (size_t i = 1; i < 4; i++) {
        assert_true(hardware[i] > hardware[i - 1]);
        assert_true(peak_gib[i] < peak_gib[i - 1]);
    }
    /* one of four layers is a quarter of what all four add */
    assert_close(hardware[1] - hardware[0], (hardware[3] - hardware[0]) / 4, 1e-9, 0);
    for (size_t i = 4; i < 6; i++) {
        assert_close(hardware[i], hardware[3], 0, 0);
        assert_close(peak_gib[i], peak_gib[3], 0, 0);
    }
    free(all.items);
    dts_scenario_free(scenario);
}

static void assert_same_answer(const dts_search *a, const dts_search *b) {
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(dts_candidate_compare(&a->findings[i].candidate, &b->findings[i].candidate), 0);
        assert_close(a->findings[i].outcome.figures.iteration_time_s, b->findings[i].outcome.figures.iteration_time_s,
                     0, 0);
    }
    assert_memory_equal(a->baselines, b->baselines, sizeof a->baselines);
    assert_int_equal(a->counts.no_better, b->counts.no_better);
    assert_int_equal(a->counts.worse_by_estimate, b->counts.worse_by_estimate);
}

static void threads_and_order_do_not_matter(void **state) {
    (void)state;
    dts_scenario *scenario = parse_text(small);
    const dts_scenario_values *base = dts_scenario_get(scenario);
    const dts_axis over[] = {AXIS("parallelism.tensor", "1", "2", "4"), AXIS("training.micro_batch", "1", "2"),
                             AXIS("parallelism.data_parallel", "ddp", "fsdp", "zero1")};
    const dts_axis turned[] = {AXIS("parallelism.data_parallel", "zero1", "fsdp", "ddp"),
                               AXIS("training.micro_batch", "2", "1"), AXIS("parallelism.tensor", "4", "2", "1")};
    static const char *const methods[] = {"exhaustive", "dp", "mcmc"};
    for (size_t m = 0; m < 3; m++) {
        dts_search *one = search(base, methods[m], over, 3, 40, 3, 1);
        dts_search *four = search(base, methods[m], over, 3, 40, 3, 4);
        assert_same_answer(one, four);
        dts_search_free(four);
        if (m < 2) {
            dts_search *other = search(base, methods[m], turned, 3, 40, 3, 2);
            assert_same_answer(one, other);
            dts_search_free(other);
        }
        dts_search_free(one);
    }
    dts_scenario_free(scenario);
}

/* A larger space is never worse, and neither is more memory. */
static void more_is_never_worse(void **state) {
    (void)state;
    dts_scenario *scenario = parse_text(tight);
    dts_scenario_values values = *dts_scenario_get(scenario);
    const dts_axis narrow[] = {AXIS("parallelism.tensor", "1"),
                               AXIS("parallelism.pipeline", "1", "2"),
                               AXIS("offload", "none"),
                               AXIS("training.micro_batch", "1"),
                               AXIS("training.recompute", "none", "full"),
                               AXIS("parallelism.schedule", "1f1b")};
    const dts_axis wide[] = {AXIS("parallelism.tensor", "1", "2"),
                             AXIS("parallelism.pipeline", "1", "2", "4"),
                             AXIS("offload", "none"),
                             AXIS("training.micro_batch", "1"),
                             AXIS("training.recompute", "none", "full"),
                             AXIS("parallelism.schedule", "1f1b")};
    const size_t axes = asked_for_few() ? 6 : 4;
    dts_search *few = search(&values, "exhaustive", narrow, axes, 0, 1, 2);
    dts_search *many = search(&values, "exhaustive", wide, axes, 0, 1, 2);
    assert_true(few->proven && many->proven);
    double few_s = few->findings[0].outcome.figures.iteration_time_s;
    double many_s = many->findings[0].outcome.figures.iteration_time_s;
    assert_true(many_s <= few_s);
    values.cluster.gpu.memory_B *= 2;
    dts_search *large = search(&values, "exhaustive", wide, axes, 0, 1, 2);
    assert_true(large->findings[0].outcome.figures.iteration_time_s <= many_s);
    dts_search *cut_anew = search(&values, "dp", wide, axes, 0, 1, 2); /* its space holds the other one */
    assert_true(cut_anew->findings[0].outcome.figures.iteration_time_s <=
                large->findings[0].outcome.figures.iteration_time_s);
    dts_search_free(cut_anew);
    dts_search_free(few);
    dts_search_free(many);
    dts_search_free(large);
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_the_legal_plans),      cmocka_unit_test(bounds_hold),
        cmocka_unit_test(bounds_hold_where_backward_is_split), cmocka_unit_test(coarse_simulation_is_close),
        cmocka_unit_test(some_layers_are_recomputed),          cmocka_unit_test(every_method_finds_the_optimum),
        cmocka_unit_test(threads_and_order_do_not_matter),     cmocka_unit_test(more_is_never_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
