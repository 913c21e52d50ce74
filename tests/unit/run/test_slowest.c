/* How far the slowest of the GPUs holds up a pipeline: by the work of the ranks, however their stages lie. */
#include "simulate.h"

static const char base[] =
    "model: {profile: llama, layers: 30, hidden: 1024, heads: 8, kv_heads: 8, vocab: 8192, tied_embeddings: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 8}\n"
    "stack: zero-bubble\n"
    "training: {global_batch: 32, micro_batch: 4, sequence_length: 2048, precision: bf16}\n"
    "parallelism: {pipeline: 4, data: 2, schedule: zbv}\n";

/* Kernels on the critical path's GPU with GPUs that differ, over those with GPUs that do not. */
static double slowed(const char *settings) {
    double compute_s[2];
    for (int i = 0; i < 2; i++) {
        char all[LONGEST_SETTINGS];
        snprintf(all, sizeof all, "cluster.gpu.spread=%s %s", i == 0 ? "0" : "0.05", settings);
        dts_result *r = simulate_text(base, all);
        compute_s[i] = r->time_s.compute;
        dts_result_free(r);
    }
    return compute_s[1] / compute_s[0];
}

/* Ranks of a V have the first and the last, the second and the last but one, …: 9, 8, 8 and 7 layers either way, the
 * head aside. Equal ranks wait for the slowest of all GPUs. */
static void ranks_of_a_v(void **state) {
    (void)state;
    const double one = slowed("parallelism.partition=[4,4,4,3,4,4,4,3]");
    const double other = slowed("parallelism.partition=[5,4,4,3,4,4,4,2]");
    const double equal = slowed("model.layers=32 parallelism.partition=uniform model.vocab=8");
    assert_close(one, other, 1e-3, 0);
    assert_true(equal > one + 0.002);
}

/* Frozen weights halve the backward pass of layers and head alike; what a checkpoint repeats, only layers have. */
static void head_against_layers(void **state) {
    (void)state;
    const char *plain = "parallelism.schedule=1f1b parallelism.pipeline=2 parallelism.data=4 model.vocab=32768";
    char repeated[LONGEST_SETTINGS];
    snprintf(repeated, sizeof repeated, "%s training.recompute=full", plain);
    assert_true(slowed(repeated) > slowed(plain));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_a_v),
        cmocka_unit_test(head_against_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
