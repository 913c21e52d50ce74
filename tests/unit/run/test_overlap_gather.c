/* ZeRO-1 with parameters gathered beside the next forward pass (stack.ddp.overlap_gather). */
#include "simulate.h"

enum { LAYERS = 8 };

static const char base[] =
    "model: {profile: llama, layers: 8, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 32000}\n"
    "cluster: {profile: dgx-h100, nodes: 2}\n"
    "stack: megatron-core-no-overlap\n"
    "training: {global_batch: 64, micro_batch: 1, sequence_length: 4096, precision: bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: zero1}\n"
    "fidelity: {network: closed-form}\n";

static dts_result *simulated(bool beside, const char *settings) {
    char all[LONGEST_SETTINGS];
    snprintf(all, sizeof all, "stack.ddp.overlap_gather=%s %s", beside ? "true" : "false", settings);
    return simulate_text(base, all);
}

/* As many bytes, in one gather for each layer, the embedding and the head, of which only the first finds nothing to run
 * beside, and the second no more than the embedding; in the same memory. */
static void parts_are_gathered_beside_forward(void **state) {
    (void)state;
    dts_result *behind = simulated(false, ""), *beside = simulated(true, "");
    const dts_communication_row *at_once = communication_row(behind, "all-gather", "data");
    const dts_communication_row *parts = communication_row(beside, "all-gather", "data");
    assert_int_equal(at_once->count, 1);
    assert_int_equal(parts->count, LAYERS + 2);
    assert_close(parts->bytes, at_once->bytes, 1e-12, 0);
    assert_close(at_once->exposed_s, at_once->total_s, 1e-9, 0);
    const double layer = 2 * 4096 * (4096 + 1024) + 3 * 4096 * 14336.0; /* elements */
    const double first = (32000 * 4096.0 + layer) / beside->parameters;
    const double latency_s = (parts->total_s - at_once->total_s) / (LAYERS + 1);
    assert_close(parts->exposed_s, first * at_once->total_s + 2 * latency_s, 0.05, 0);
    assert_close(behind->iteration_time_s - beside->iteration_time_s, at_once->exposed_s - parts->exposed_s, 0.02, 0);
    assert_close(beside->peak_allocated_gib, behind->peak_allocated_gib, 0, 0);
    dts_result_free(behind);
    dts_result_free(beside);
}

/* Later stages have one bucket, which the stages before them hide; so have later chunks. */
static void later_stages_gather_at_once(void **state) {
    (void)state;
    static const char *const settings[] = {
        "parallelism.pipeline=2",
        "parallelism.pipeline=2 parallelism.schedule=interleaved-1f1b parallelism.virtual_stages=2"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        dts_result *behind = simulated(false, settings[i]), *beside = simulated(true, settings[i]);
        const dts_communication_row *last = communication_row(beside, "all-gather", "data");
        assert_close(last->bytes, communication_row(behind, "all-gather", "data")->bytes, 1e-12, 0);
        assert_true(last->count <= LAYERS + 2);
        assert_true(beside->iteration_time_s < behind->iteration_time_s);
        dts_result_free(behind);
        dts_result_free(beside);
    }
}

static void details_agree(void **state) {
    (void)state;
    static const char *const plans[] = {
        "", "model.tied_embeddings=true parallelism.pipeline=2",
        "parallelism.pipeline=2 parallelism.schedule=interleaved-1f1b parallelism.virtual_stages=2",
        "parallelism.tensor=2 parallelism.sequence=true training.recompute=full"};
    static const char *const details[] = {"layer", "block"};
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        dts_result *fine = simulated(true, plans[i]);
        for (size_t d = 0; d < sizeof details / sizeof details[0]; d++) {
            char settings[200];
            snprintf(settings, sizeof settings, "fidelity.detail=%s %s", details[d], plans[i]);
            dts_result *coarse = simulated(true, settings);
            assert_close(coarse->iteration_time_s, fine->iteration_time_s, 1e-12, 0);
            assert_close(coarse->peak_allocated_gib, fine->peak_allocated_gib, 0, 0);
            dts_result_free(coarse);
        }
        dts_result_free(fine);
    }
}

/* Nothing changes where there is nothing to gather, or where the optimizer is in host memory. */
static void others_gather_as_before(void **state) {
    (void)state;
    static const char *const settings[] = {"parallelism.data_parallel=ddp", "parallelism.data_parallel=zero2",
                                           "offload.optimizer=cpu", "stack.ddp.owns_tensors=true"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        dts_result *behind = simulated(false, settings[i]), *beside = simulated(true, settings[i]);
        assert_close(beside->iteration_time_s, behind->iteration_time_s, 0, 0);
        dts_result_free(behind);
        dts_result_free(beside);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_gathered_beside_forward),
        cmocka_unit_test(later_stages_gather_at_once),
        cmocka_unit_test(details_agree),
        cmocka_unit_test(others_gather_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
