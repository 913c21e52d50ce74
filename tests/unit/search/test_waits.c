/* What closed forms say a GPU waits for: first gathers of layers that share a checkpoint, and hops of a pipeline. */
#include "closed_form.h"

/* The only layout: by its closed form, and simulated. */
static tally time_of(const char *text, const char *sharding, const char *pipeline, const char *recompute) {
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.pipeline", pipeline),
                             AXIS("parallelism.data_parallel", sharding),
                             AXIS("parallelism.shard_group", "0"),
                             AXIS("parallelism.partition", "uniform"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", recompute),
                             AXIS("parallelism.virtual_stages", "1"),
                             AXIS("training.micro_batch", "1"),
                             AXIS("parallelism.schedule", "1f1b")};
    const tally t = walk_layouts(text, over, sizeof over / sizeof over[0]);
    assert_int_equal(t.count, 1);
    print_message("%s, recompute %s: %.4f s, by the closed form %.4f (%+.2f %%)\n", sharding, recompute, t.full_s,
                  t.estimate.time_s, 100 * (t.estimate.time_s / t.full_s - 1));
    return t;
}

/* Layers that share a checkpoint begin their backward with the gathers of the first two of them, which nothing hides.
 */
static void checkpoints_of_layers_wait_for_two_gathers(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: llama, layers: 24, hidden: 4096, heads: 32, kv_heads: 8, vocab: 32000}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 4}\n"
        "stack: pytorch-2\n"
        "training: {global_batch: 32, micro_batch: 1, sequence_length: 4096, precision: bf16}\n";
    static const char *const spans[] = {"full", "{every: 2}", "{every: 3}", "{every: 4}"};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        const tally t = time_of(text, "fsdp", "1", spans[i]);
        assert_close(t.estimate.time_s, t.full_s, 0.025, 0);
    }
}

/* A large head makes the last of four stages the busiest. Hops between the others hide in the time that they have to
 * spare, but for the way of the first microbatch there and that of the last one back, 2 · 3 hops of 2048 · 2048
 * elements of 2 bytes. A GPU has one of a node's 8 adapters, so an eighth of its rate. */
static void hops_hide_behind_the_busiest_stage(void **state) {
    (void)state;
    static const double slow_Bps = 3e9, fast_Bps = 10e9;
    tally t[2];
    for (int i = 0; i < 2; i++) {
        char text[600];
        snprintf(text, sizeof text,
                 "model: {profile: llama, layers: 8, hidden: 2048, heads: 16, vocab: 512000}\n"
                 "cluster: {profile: dgx-a100-80gb, nodes: 4, gpus_per_node: 1, inter: {node_goodput: %g GB/s}}\n"
                 "stack: pytorch-2\n"
                 "training: {global_batch: 16, micro_batch: 1, sequence_length: 2048, precision: bf16}\n",
                 1e-9 * (i == 0 ? slow_Bps : fast_Bps));
        t[i] = time_of(text, "ddp", "4", "none");
        assert_close(t[i].estimate.time_s, t[i].full_s, 0.05, 0);
    }
    const double hops_s = 2 * 3 * 2048.0 * 2048 * 2 * 8 * (1 / slow_Bps - 1 / fast_Bps);
    assert_close(t[0].full_s - t[1].full_s, hops_s, 0.01, 0);
    assert_close(t[0].estimate.time_s - t[1].estimate.time_s, hops_s, 0.01, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(checkpoints_of_layers_wait_for_two_gathers),
                                       cmocka_unit_test(hops_hide_behind_the_busiest_stage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
