/* Context parallelism against torchtitan's measured runs: Llama 3 8B on one node of H100 at 500 W, fp8, compiled, full
 * recomputation, 32k tokens a GPU (pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, table 2; the
 * figures stand in docs/accuracy.md). No constant was chosen on them; what is missing at 4 and 8 ranks is said there.
 */
#include "simulate.h"

static const char base[] =
    "model: {profile: llama, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 128256}\n"
    "cluster: {profile: grand-teton-h100-96gb, nodes: 1, gpus_per_node: 8}\n"
    "stack: {profile: torchtitan, compile: true}\n"
    "training: {sequence_length: 32768, micro_batch: 1, global_batch: 8, precision: fp8, optimizer: adamw, recompute: "
    "full}\n"
    "parallelism: {data_parallel: fsdp, context: 1}\n";

/* Transformer Engine's ring, which every stack had before. */
#define FUSED                                                                                                \
    " stack.ring_attention.gathers=false stack.ring_attention.copies=false stack.ring_attention.waits=false" \
    " stack.ring_attention.operations=false stack.ring_attention.fp32_gradients=false"

static const struct {
    int context;
    double tokens_per_s, least, most; /* of error */
} runs[] = {{1, 3890, 0, 0.10}, {2, 2540, -0.05, 0.05}, {4, 1071, 0, 0.33}, {8, 548, 0, 0.39}};

static dts_result *run(int context, const char *also) {
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "parallelism.context=%d training.sequence_length=%d training.global_batch=%d%s",
             context, 32768 * context, 8 / context, also);
    return simulate_text(base, settings);
}

static void runs_are_as_measured_within_what_is_known(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        dts_result *r = run(runs[i].context, "");
        const double error = r->tokens_per_s_per_gpu / runs[i].tokens_per_s - 1;
        print_message("context %d: %.0f measured, %.0f simulated, %+.1f %%\n", runs[i].context, runs[i].tokens_per_s,
                      r->tokens_per_s_per_gpu, 100 * error);
        assert_true(error > runs[i].least && error < runs[i].most);
        assert_true(r->fits);
        dts_result_free(r);
    }
}

/* Copies, transfers that are exposed, fp32 gradients. */
static void the_framework_s_ring_costs_more(void **state) {
    (void)state;
    for (size_t i = 1; i < sizeof runs / sizeof *runs; i++) {
        dts_result *own = run(runs[i].context, ""), *fused = run(runs[i].context, FUSED);
        const double ratio = own->iteration_time_s / fused->iteration_time_s;
        print_message("context %d: %.3f of the time with a fused ring\n", runs[i].context, ratio);
        assert_true(ratio > 1.03 && ratio < 1.08);
        dts_result_free(own);
        dts_result_free(fused);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_as_measured_within_what_is_known),
        cmocka_unit_test(the_framework_s_ring_costs_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
