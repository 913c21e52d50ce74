/* The closed form of FSDP: what a stack says about the format of reduced gradients and about the root unit is in it, as
 * in the plan (plan/storage.c, plan/lower/units.c), whatever kind the layout was outlined with. */
#include "closed_form.h"

/* A large root, a slow network: every gather and every reduction is seen. */
#define SCENARIO                                                                                \
    "model: {profile: llama, layers: 6, hidden: 4096, heads: 32, kv_heads: 8, vocab: 128256}\n" \
    "cluster: {profile: gcp-a3-highgpu-8g, nodes: 4}\n"                                         \
    "training: {global_batch: 256, micro_batch: 1, sequence_length: 1024, precision: bf16}\n"   \
    "stack: {profile: pytorch-2, fsdp: "

/* The only layout: by its closed form, and simulated. */
static tally time_of(const char *text, const char *kind, const char *pipeline) {
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
    const tally t = walk_layouts(text, over, sizeof over / sizeof over[0]);
    assert_int_equal(t.count, 1);
    return t;
}

/* The closed form says of a change what simulation says. */
static void check_change(const char *before, const char *after, const char *pipeline, double least) {
    const tally a = time_of(before, "fsdp", pipeline), b = time_of(after, "fsdp", pipeline);
    const double simulated = b.full_s / a.full_s, estimated = b.estimate.time_s / a.estimate.time_s;
    print_message("pipeline %s: %.4f s instead of %.4f, by the closed form %.4f instead of %.4f\n", pipeline, b.full_s,
                  a.full_s, b.estimate.time_s, a.estimate.time_s);
    assert_true(simulated > least);
    assert_true(fabs(estimated - simulated) < 0.02);
    assert_true(fabs(a.estimate.time_s / a.full_s - 1) < 0.05 && fabs(b.estimate.time_s / b.full_s - 1) < 0.05);
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
    assert_true(time_of(single, "fsdp", "1").estimate.memory_B > time_of(half, "fsdp", "1").estimate.memory_B);
    /* of FSDP alone */
    assert_true(time_of(single, "zero3", "1").estimate.time_s == time_of(half, "zero3", "1").estimate.time_s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_gather_of_the_root_is_counted),
        cmocka_unit_test(gradients_reduced_in_fp32_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
