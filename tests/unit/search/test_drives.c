/* Levels of offload with drives: which there are, what the walk leaves out of them, their bounds, and
 * searches whose answer needs them. */
#include <math.h>

#include "layouts.h"
#include "search/levels.h"

enum { O = DTS_OFFLOAD_OPTIMIZER, G = DTS_OFFLOAD_GRADIENTS, P = DTS_OFFLOAD_PARAMETERS, A = DTS_OFFLOAD_ACTIVATIONS };

/* Half a billion parameters: 16 bytes of each are 7.5 GB, and what of them goes into 3 GB beside activations is little.
 */
#define TEXT(host, prefetch)                                                                                  \
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 32000}\n"                               \
    "cluster: {profile: dgx-2, nodes: 1, gpus_per_node: 2, gpu: {memory: 4 GB}, host: {memory: " host         \
    "}}\n"                                                                                                    \
    "stack: deepspeed\n"                                                                                      \
    "training: {global_batch: 16, micro_batch: 2, sequence_length: 1024, precision: fp16, optimizer: adam}\n" \
    "offload: {prefetch: " prefetch "}\n"

static void levels_are_all_parts_on_drives(void **state) {
    (void)state;
    int32_t levels[DTS_OFFLOAD_LEVELS];
    assert_int_equal(dts_levels_list(false, levels), 7); /* 3 of states, the same with activations, activations */
    /* of what k parts there are off the GPU, 2^k - 1 choices: of 1, 2, 3; 1; 2, 3, 4 parts */
    assert_int_equal(dts_levels_list(true, levels), 1 + 3 + 7 + 1 + 3 + 7 + 15);
    int32_t some[] = {dts_offload_level(O | A, O | A), dts_offload_level(O, O), 0, dts_offload_level(O, 0)};
    dts_levels_sort(some, 4);
    assert_int_equal(some[0], 0);
    assert_int_equal(some[1], O);
    assert_int_equal(some[2], dts_offload_level(O, O));
}

static void drives_are_for_what_the_host_has_no_room_for(void **state) {
    (void)state;
    dts_levels l = {.held = {false}};
    int32_t all[DTS_OFFLOAD_LEVELS];
    for (int drives = 0; drives < 2; drives++) {
        const size_t count = dts_levels_list(drives == 1, all);
        for (size_t i = 0; i < count; i++) {
            l.held[all[i]] = true;
        }
    }
    dts_levels_begin(&l);
    const int32_t first = dts_offload_level(O | G | P, P), second = dts_offload_level(O | G | P, O | P);
    assert_true(dts_levels_may_pay(&l, O | G | P)); /* host memory always may */
    assert_false(dts_levels_may_pay(&l, first));    /* it has room for all */
    dts_levels_note_short(&l, O | G | P, true);
    assert_true(dts_levels_may_pay(&l, first));
    assert_false(dts_levels_may_pay(&l, second)); /* with parameters or states on drives it has room */
    dts_levels_note_short(&l, first, false);
    assert_false(dts_levels_may_pay(&l, second));
    dts_levels_note_short(&l, dts_offload_level(O | G | P, O), false);
    assert_true(dts_levels_may_pay(&l, second));
    l.held[dts_offload_level(O | A, A)] = false; /* what is not looked at leaves nothing out */
    dts_levels_note_short(&l, A, true);
    assert_true(dts_levels_may_pay(&l, dts_offload_level(A, A)));
    assert_false(dts_levels_may_pay(&l, dts_offload_level(O | A, O))); /* activations alone are too much */
    assert_true(dts_levels_may_pay(&l, dts_offload_level(O | A, O | A)));
}

static void levels_are_read_and_written(void **state) {
    (void)state;
    int32_t value = 0;
    assert_true(dts_candidate_parse(DTS_AXIS_OFFLOAD, "optimizer:nvme+gradients+parameters:nvme", &value));
    assert_int_equal(value, dts_offload_level(O | G | P, O | P));
    assert_false(dts_candidate_parse(DTS_AXIS_OFFLOAD, "optimizer:disk", &value));
    assert_false(dts_candidate_parse(DTS_AXIS_OFFLOAD, ":nvme", &value));
    dts_scenario *scenario = parse_text(TEXT("8 GB", "3") "parallelism: {data_parallel: zero3}\n");
    dts_candidate c, again;
    dts_stage_list stages;
    assert_true(dts_candidate_of(dts_scenario_get(scenario), &stages, &c));
    assert_int_equal(c.value[DTS_AXIS_OFFLOAD], 0);
    c.value[DTS_AXIS_OFFLOAD] = dts_offload_level(O | G | P, O | P);
    dts_scenario_values values;
    dts_candidate_apply(&c, dts_scenario_get(scenario), &values);
    assert_int_equal(values.offload.optimizer, DTS_OFFLOAD_NVME);
    assert_int_equal(values.offload.gradients, DTS_OFFLOAD_CPU);
    assert_int_equal(values.offload.parameters, DTS_OFFLOAD_NVME);
    assert_int_equal(values.offload.activations, DTS_OFFLOAD_NONE);
    assert_true(dts_candidate_of(&values, &stages, &again));
    assert_int_equal(dts_candidate_compare(&c, &again), 0);
    dts_text text = {0};
    dts_candidate_describe(&c, dts_scenario_get(scenario), &text);
    assert_non_null(strstr(dts_text_string(&text), "offload optimizer (NVMe), gradients, parameters (NVMe)"));
    dts_text_free(&text);
    dts_scenario_free(scenario);
}

typedef struct tally {
    const dts_scenario_values *base;
    size_t count, with_drives;
} tally;

static void compare(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    tally *t = context;
    dts_result *result = check_bounds(candidate, estimate, t->base);
    t->count++;
    t->with_drives += dts_offload_on_drives(candidate->value[DTS_AXIS_OFFLOAD]) != 0;
    dts_result_free(result);
}

static void walk(const dts_scenario_values *base, const dts_axis *over, size_t count, dts_layout_visitor *visit,
                 void *context) {
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    assert_int_equal(dts_layout_space_make(base, over, count, &space, diag), DTS_OK);
    for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
        dts_walk_counts counts;
        assert_int_equal(dts_layout_space_walk(&space, pair, visit, context, &counts, diag), DTS_OK);
    }
    dts_diag_free(diag);
}

static void bounds_hold(void **state) {
    (void)state;
    static const char *const texts[] = {TEXT("1 GB", "3"), TEXT("1 GB", "0")};
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"), AXIS("parallelism.pipeline", "1"),
                             AXIS("training.recompute", "none", "full"), AXIS("training.micro_batch", "2")};
    for (int i = 0; i < 2; i++) {
        dts_scenario *scenario = parse_text(texts[i]);
        tally t = {.base = dts_scenario_get(scenario)};
        walk(t.base, over, sizeof over / sizeof over[0], compare, &t);
        assert_true(t.with_drives > 50);
        dts_scenario_free(scenario);
    }
}

/* Each level by itself, so that the walk leaves none of them out. */
typedef struct alone {
    const dts_scenario_values *base;
    double time_s[DTS_OFFLOAD_LEVELS], allocated_gib[DTS_OFFLOAD_LEVELS];
    double best_s; /* of what fits */
    int32_t best;
} alone;

static void try_level(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    alone *a = context;
    dts_result *result = check_bounds(candidate, estimate, a->base);
    const int32_t level = candidate->value[DTS_AXIS_OFFLOAD];
    a->time_s[level] = result->iteration_time_s;
    a->allocated_gib[level] = result->peak_allocated_gib;
    if (result->fits && result->iteration_time_s < a->best_s) {
        a->best_s = result->iteration_time_s;
        a->best = level;
    }
    dts_result_free(result);
}

static alone try_levels(const dts_scenario_values *base, const dts_axis *shape, size_t count) {
    static const char *const names[] = {"optimizer", "gradients", "parameters", "activations"};
    alone a = {.base = base, .best_s = INFINITY};
    int32_t levels[2 * DTS_OFFLOAD_LEVELS] = {0};
    size_t all = 1 + dts_levels_list(false, levels + 1);
    all += dts_levels_list(true, levels + all);
    for (size_t i = 0; i < all; i++) {
        char name[80] = "";
        for (int bit = 0; bit < 4; bit++) {
            const int rests = dts_offload_target_of(levels[i], 1 << bit);
            if (rests != DTS_OFFLOAD_NONE) {
                snprintf(name + strlen(name), sizeof name - strlen(name), "%s%s%s", name[0] == '\0' ? "" : "+",
                         names[bit], rests == DTS_OFFLOAD_NVME ? ":nvme" : "");
            }
        }
        dts_axis over[8];
        memcpy(over, shape, count * sizeof *over);
        over[count] = AXIS("offload", name[0] == '\0' ? "none" : name);
        walk(base, over, count + 1, try_level, &a);
    }
    return a;
}

#define SHAPE                                                                                             \
    AXIS("parallelism.tensor", "1"), AXIS("parallelism.pipeline", "1"), AXIS("parallelism.context", "1"), \
        AXIS("parallelism.data_parallel", "zero3"), AXIS("training.micro_batch", "2"),                    \
        AXIS("training.recompute", "full")

/* What the walk takes for granted: with more of the same on drives a plan is no faster, and needs as much of the GPU.
 */
static void drives_only_add(void **state) {
    (void)state;
    dts_scenario *scenario = parse_text(TEXT("64 GB", "3"));
    const dts_axis shape[] = {SHAPE};
    const alone a = try_levels(dts_scenario_get(scenario), shape, sizeof shape / sizeof shape[0]);
    size_t compared = 0;
    for (int32_t level = 0; level < DTS_OFFLOAD_LEVELS; level++) {
        for (int bit = 1; bit <= A && a.time_s[level] > 0; bit *= 2) {
            const int drives = dts_offload_on_drives(level);
            const int32_t less = dts_offload_level(level & DTS_OFFLOAD_ALL, drives & ~bit);
            if ((drives & bit) != 0) {
                assert_true(a.time_s[less] > 0 && a.time_s[level] > 0.998 * a.time_s[less]);
                assert_close(a.allocated_gib[level], a.allocated_gib[less], 0.01, 0);
                compared++;
            }
        }
    }
    assert_int_equal(compared, 1 + 4 + 12 + 1 + 4 + 12 + 32); /* of k parts k · 2^(k-1) pairs */
    assert_int_equal(dts_offload_on_drives(a.best), 0);
    dts_scenario_free(scenario);
}

static dts_search *search(const dts_scenario_values *base, const dts_axis *over, size_t count) {
    const dts_search_request request = {.base = base,
                                        .restrictions = over,
                                        .restriction_count = count,
                                        .method = "exhaustive",
                                        .simulations = 12,
                                        .threads = 2};
    dts_search *found = NULL;
    dts_diag *diag = dts_diag_new();
    assert_ok(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &found, diag), diag);
    return found;
}

/* States are 7 GB of the two GPUs' 8, and the host has no room for them either. */
static void a_search_finds_what_needs_drives(void **state) {
    (void)state;
    dts_scenario *scenario = parse_text(TEXT("5.5 GB", "3"));
    const dts_axis shape[] = {SHAPE};
    const size_t count = sizeof shape / sizeof shape[0];
    const alone a = try_levels(dts_scenario_get(scenario), shape, count);
    assert_true(dts_offload_on_drives(a.best) != 0);
    dts_search *found = search(dts_scenario_get(scenario), shape, count);
    const dts_figures *best = &found->findings[0].outcome.figures;
    assert_true(best->fits && dts_offload_on_drives(found->findings[0].candidate.value[DTS_AXIS_OFFLOAD]) != 0);
    assert_close(best->iteration_time_s, a.best_s, 1e-3, 0);
    dts_search_free(found);
    dts_scenario_free(scenario);
}

/* ---- the scenario's own plan ---------------------------------------------------------------------------------------
 */

static uint64_t sum(const dts_search_counts *n) {
    return n->no_memory + n->no_better + n->worse_by_estimate + n->screened + n->simulated + n->failed;
}

/* Two pipelines in opposite directions have no bounds and are not searched. */
static void the_scenarios_own_plan_is_a_candidate(void **state) {
    (void)state;
    dts_scenario *scenario = parse_text(
        "model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000}\n"
        "cluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 4}\n"
        "stack: megatron-lm\n"
        "training: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: bf16}\n"
        "parallelism: {pipeline: 4, schedule: chimera}\n");
    const dts_scenario_values *base = dts_scenario_get(scenario);
    const dts_axis offload = AXIS("offload", "none"), schedule = AXIS("parallelism.schedule", "1f1b", "gpipe");
    const dts_axis both[] = {offload, schedule};
    dts_result *result = simulate_values(base, NULL);
    for (int i = 0; i < 2; i++) {
        dts_search *found = search(base, both, i == 0 ? 1 : 2);
        assert_true((found->own >= 0) == (i == 0)); /* --over leaves it out */
        if (i == 0) {
            assert_close(found->findings[found->own].outcome.figures.iteration_time_s, result->iteration_time_s, 1e-9,
                         0);
        }
        assert_int_equal(sum(&found->counts), found->counts.legal);
        dts_search_free(found);
    }
    dts_result_free(result);
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(levels_are_all_parts_on_drives),
                                       cmocka_unit_test(drives_are_for_what_the_host_has_no_room_for),
                                       cmocka_unit_test(levels_are_read_and_written),
                                       cmocka_unit_test(bounds_hold),
                                       cmocka_unit_test(drives_only_add),
                                       cmocka_unit_test(a_search_finds_what_needs_drives),
                                       cmocka_unit_test(the_scenarios_own_plan_is_a_candidate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
