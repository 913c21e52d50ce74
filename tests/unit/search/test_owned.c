/* The closed form of ZeRO-1 by whole tensors: the rank that owns most decides, as in the plan (plan/lower/owners.c). */
#include <math.h>

#include "search/layouts.h"
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

#define VALUES(...)    \
    (const char *[]) { \
        __VA_ARGS__    \
    }
#define AXIS(name, ...)                                                                                        \
    (dts_axis) {                                                                                               \
        .key = name, .values = VALUES(__VA_ARGS__), .count = sizeof VALUES(__VA_ARGS__) / sizeof(const char *) \
    }

typedef struct tally {
    const dts_scenario_values *base;
    size_t count;
    double worst_memory, worst_time;
} tally;

/* The bound holds, and memory and time are those of the simulation as nearly as where shares are equal. */
static void compare(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    tally *t = context;
    dts_scenario_values values;
    dts_candidate_apply(candidate, t->base, &values);
    dts_result *result = simulate_values(&values, NULL);
    const double peak_B = result->peak_allocated_gib * GIB;
    assert_true(estimate->least_memory_B <= peak_B);
    assert_true(estimate->least_time_s <= result->iteration_time_s);
    t->worst_memory = fmax(t->worst_memory, fabs(estimate->memory_B / peak_B - 1));
    t->worst_time = fmax(t->worst_time, fabs(estimate->time_s / result->iteration_time_s - 1));
    t->count++;
    dts_result_free(result);
}

static void check(const char *text, double memory, double time) {
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.pipeline", "1", "2", "4"),
                             AXIS("parallelism.data_parallel", "zero1"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", "none"),
                             AXIS("parallelism.virtual_stages", "1"),
                             AXIS("training.micro_batch", "1"),
                             AXIS("parallelism.schedule", "1f1b")};
    dts_scenario *scenario = parse_text(text);
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    assert_int_equal(
        dts_layout_space_make(dts_scenario_get(scenario), over, sizeof over / sizeof over[0], &space, diag), DTS_OK);
    tally t = {.base = dts_scenario_get(scenario)};
    for (size_t pair = 0; pair < dts_layout_space_pairs(&space); pair++) {
        dts_walk_counts counts;
        assert_int_equal(dts_layout_space_walk(&space, pair, compare, &t, &counts, diag), DTS_OK);
    }
    print_message("%zu layouts: memory off by %.1f %% at most, time by %.1f %%\n", t.count, 100 * t.worst_memory,
                  100 * t.worst_time);
    assert_true(t.count >= 3 && t.worst_memory < memory && t.worst_time < time);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
}

/* Few large tensors among many ranks: the fullest rank has several times the average. */
static void the_fullest_rank_decides(void **state) {
    (void)state;
    check(
        "model: {profile: gpt, layers: 4, hidden: 4096, heads: 32, vocab: 4096, dropout: false}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 2}\n"
        "stack: internevo\n"
        "training: {global_batch: 16, micro_batch: 1, sequence_length: 512, precision: bf16, optimizer: adamw}\n",
        0.01, 0.06);
}

static void experts_have_owners_of_their_own(void **state) {
    (void)state;
    check(
        "model: {profile: deepseek-v2-lite, layers: 4}\n"
        "cluster: {profile: dgx-h100, nodes: 1}\n"
        "stack: internevo\n"
        "training: {global_batch: 32, micro_batch: 1, sequence_length: 512, precision: bf16, optimizer: adamw}\n",
        0.12, 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_fullest_rank_decides),
                                       cmocka_unit_test(experts_have_owners_of_their_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
