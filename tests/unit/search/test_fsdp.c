/* The closed form of FSDP: what a stack says about the format of reduced gradients and about the root unit is in it, as
 * in the plan (plan/storage.c, plan/lower/units.c), whatever kind the layout was outlined with. */
#include <math.h>

#include "search/layouts.h"
#include "simulate.h"

#define VALUES(...)    \
    (const char *[]) { \
        __VA_ARGS__    \
    }
#define AXIS(name, ...)                                                                                        \
    (dts_axis) {                                                                                               \
        .key = name, .values = VALUES(__VA_ARGS__), .count = sizeof VALUES(__VA_ARGS__) / sizeof(const char *) \
    }

/* A large root, a slow network: every gather and every reduction is seen. */
#define SCENARIO                                                                                \
    "model: {profile: llama, layers: 6, hidden: 4096, heads: 32, kv_heads: 8, vocab: 128256}\n" \
    "cluster: {profile: gcp-a3-highgpu-8g, nodes: 4}\n"                                         \
    "training: {global_batch: 256, micro_batch: 1, sequence_length: 1024, precision: bf16}\n"   \
    "stack: {profile: pytorch-2, fsdp: "

/* Of the only layout: by its closed form, and simulated. */
typedef struct timing {
    const dts_scenario_values *base;
    size_t count;
    double estimate_s, full_s, memory_B;
} timing;

static void keep(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    timing *t = context;
    dts_scenario_values values;
    dts_candidate_apply(candidate, t->base, &values);
    dts_result *result = simulate_values(&values, NULL);
    assert_true(estimate->least_time_s <= result->iteration_time_s);
    t->estimate_s = estimate->time_s;
    t->full_s = result->iteration_time_s;
    t->memory_B = estimate->memory_B;
    t->count++;
    dts_result_free(result);
}

static timing time_of(const char *text, const char *kind, const char *pipeline) {
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.pipeline", pipeline),
                             AXIS("parallelism.data_parallel", kind),
                             AXIS("parallelism.shard_group", "0"),
                             AXIS("parallelism.partition", "auto"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", "none"),
                             AXIS("parallelism.virtual_stages", "1"),
                             AXIS("training.micro_batch", "1"),
                             AXIS("parallelism.schedule", "1f1b")};
    dts_scenario *scenario = parse_text(text);
    dts_diag *diag = dts_diag_new();
    static dts_layout_space space;
    timing t = {.base = dts_scenario_get(scenario)};
    assert_ok(dts_layout_space_make(t.base, over, sizeof over / sizeof over[0], &space, diag), diag);
    dts_walk_counts counts;
    diag = dts_diag_new();
    assert_int_equal(dts_layout_space_walk(&space, 0, keep, &t, &counts, diag), DTS_OK);
    assert_int_equal(t.count, 1);
    dts_diag_free(diag);
    dts_scenario_free(scenario);
    t.base = NULL;
    return t;
}

/* The closed form says of a change what simulation says. */
static void check_change(const char *before, const char *after, const char *pipeline, double least) {
    const timing a = time_of(before, "fsdp", pipeline), b = time_of(after, "fsdp", pipeline);
    const double simulated = b.full_s / a.full_s, estimated = b.estimate_s / a.estimate_s;
    print_message("pipeline %s: %.4f s instead of %.4f, by the closed form %.4f instead of %.4f\n", pipeline, b.full_s,
                  a.full_s, b.estimate_s, a.estimate_s);
    assert_true(simulated > least);
    assert_true(fabs(estimated - simulated) < 0.02);
    assert_true(fabs(a.estimate_s / a.full_s - 1) < 0.05 && fabs(b.estimate_s / b.full_s - 1) < 0.05);
}

static void a_second_gather_of_the_root_is_counted(void **state) {
    (void)state;
    static const char once[] = SCENARIO "{root_reshards: false}}\n";
    static const char twice[] = SCENARIO "{root_reshards: true}}\n";
    check_change(once, twice, "1", 1.05);
    check_change(once, twice, "2", 1.05);
}

static void gradients_reduced_in_fp32_are_counted(void **state) {
    (void)state;
    static const char half[] = SCENARIO "{reduce_half_fp32: false}}\n";
    static const char single[] = SCENARIO "{reduce_half_fp32: true}}\n";
    check_change(half, single, "1", 1.05);
    assert_true(time_of(single, "fsdp", "1").memory_B > time_of(half, "fsdp", "1").memory_B);
    /* of FSDP alone */
    assert_true(time_of(single, "zero3", "1").estimate_s == time_of(half, "zero3", "1").estimate_s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_gather_of_the_root_is_counted),
        cmocka_unit_test(gradients_reduced_in_fp32_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
