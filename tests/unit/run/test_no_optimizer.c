/* training.optimizer: none is forward and backward only. */
#include "simulate.h"

static const char *const base =
    "model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 32000, max_positions: 512}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: huggingface-eager\n"
    "training: {sequence_length: 512, micro_batch: 4, global_batch: 16, precision: fp32}\n";

/* No states and no step; what is left of the iteration is SGD's without its kernels: a step of 3 passes over every
 * parameter, the norm and the clipping of 3 more, and the clearing of gradients. */
static void passes_only(void **state) {
    (void)state;
    static const char *const layouts[] = {"", "parallelism.pipeline=4", "parallelism.tensor=2",
                                          "parallelism.data_parallel=fsdp"};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        char sgd_settings[LONGEST_SETTINGS], none_settings[LONGEST_SETTINGS];
        snprintf(sgd_settings, sizeof sgd_settings, "training.optimizer=sgd %s", layouts[i]);
        snprintf(none_settings, sizeof none_settings, "training.optimizer=none %s", layouts[i]);
        dts_result *sgd = simulate_text(base, sgd_settings), *none = simulate_text(base, none_settings);
        assert_true(none->memory_gib.optimizer == 0);
        assert_close(none->memory_gib.gradients, sgd->memory_gib.gradients, 1e-9, 0);
        assert_true(none->time_s.optimizer < 1e-6 && sgd->time_s.optimizer > 1e-4);
        assert_close(none->iteration_time_s, sgd->iteration_time_s - sgd->time_s.optimizer, 0.01, 0);
        dts_result_free(sgd);
        dts_result_free(none);
    }
}

static void nothing_to_shard(void **state) {
    (void)state;
    assert_refused(base, "training.optimizer=none parallelism.data_parallel=zero1", "ZeRO-1 and ZeRO-2");
    assert_refused(base, "training.optimizer=none parallelism.data_parallel=fsdp offload.optimizer=cpu",
                   "no states to offload");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_only),
        cmocka_unit_test(nothing_to_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
