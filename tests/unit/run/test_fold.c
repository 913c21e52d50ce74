/* Few microbatches for many (run/fold.c): where it may be done, and where something would be missed. */
#include "simulate.h"

static const char *const base =
    "model: {profile: gpt, layers: 8, hidden: 320, heads: 8, vocab: 1000, ffn_hidden: 768}\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 1}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 240, micro_batch: 1, sequence_length: 64, precision: bf16}\n"
    "parallelism: {pipeline: 4}\n";

static dts_result *simulate_some(const char *settings, const char *microbatches) {
    char all[LONGEST_SETTINGS];
    snprintf(all, sizeof all, "%s fidelity.microbatches=%s", settings, microbatches);
    dts_run_options options = {0};
    return simulate_with(&options, NULL, base, all, DTS_OK, NULL);
}

static void check_same(const char *settings, bool folds) {
    dts_result *all = simulate_some(settings, "all");
    dts_result *folded = simulate_some(settings, "folded");
    assert_int_equal(folded->simulation.microbatches > 0, folds);
    assert_true(folds == (folded->simulation.tasks < all->simulation.tasks));
    assert_close(folded->iteration_time_s, all->iteration_time_s, 1e-3, 0);
    for (size_t i = 0; i < all->stage_count; i++) {
        assert_close(folded->stages[i].peak_allocated_gib, all->stages[i].peak_allocated_gib, 1e-9, 0);
    }
    dts_result_free(all);
    dts_result_free(folded);
}

static void a_steady_pipeline_is_folded(void **state) {
    (void)state;
    check_same("", true);
    check_same("parallelism.schedule=interleaved-1f1b parallelism.virtual_stages=2", true);
}

/* torch Pipe keeps the outputs of all microbatches on its last stage: a quarter of a MB each, which with few of them is
 * below the peak of what gathered parameters and gradients take. */
static void what_every_microbatch_leaves_behind_is_not_missed(void **state) {
    (void)state;
    static const char *const settings =
        "stack=pytorch-1.11 training.precision=fp8 training.optimizer=lion training.recompute=full cluster.nodes=4 "
        "cluster.gpus_per_node=4 cluster.gpu.peak.fp8=624TFLOP/s parallelism.data_parallel=zero3 "
        "parallelism.pipeline=2 parallelism.order=tensor-pipeline-data parallelism.schedule=interleaved-1f1b "
        "parallelism.virtual_stages=2 parallelism.partition=uniform parallelism.reshard_after_forward=false ";
    static const char *const batches[] = {"training.global_batch=128", "training.global_batch=160",
                                          "training.global_batch=384"};
    double peaks_gib[3];
    for (int i = 0; i < 3; i++) {
        char all[LONGEST_SETTINGS];
        snprintf(all, sizeof all, "%s%s", settings, batches[i]);
        dts_result *r = simulate_some(all, "all");
        peaks_gib[i] = r->stages[1].peak_allocated_gib;
        dts_result_free(r);
        if (i == 2) {
            check_same(all, false);
        }
    }
    assert_close(peaks_gib[1], peaks_gib[0], 1e-12, 0); /* peaks alone do not tell */
    assert_true(peaks_gib[2] > 1.3 * peaks_gib[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steady_pipeline_is_folded),
        cmocka_unit_test(what_every_microbatch_leaves_behind_is_not_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
