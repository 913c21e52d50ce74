/* Few microbatches for many (run/fold.c): where it may be done, and where something would be missed. */
#include "simulate.h"

#include "run/fold.h"
#include "run/verdict.h"

static const char *const base =
    "model: {profile: gpt, layers: 8, hidden: 320, heads: 8, vocab: 1000, ffn_hidden: 768}\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 1}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 240, micro_batch: 1, sequence_length: 64, precision: bf16}\n"
    "parallelism: {pipeline: 4}\n";

static dts_result *simulate_of(const char *text, const char *settings, const char *microbatches) {
    char all[LONGEST_SETTINGS];
    snprintf(all, sizeof all, "%s fidelity.microbatches=%s", settings, microbatches);
    dts_run_options options = {0};
    return simulate_with(&options, NULL, text, all, DTS_OK, NULL);
}

static dts_result *simulate_some(const char *settings, const char *microbatches) {
    return simulate_of(base, settings, microbatches);
}

static void check_same_of(const char *text, const char *settings, bool folds) {
    dts_result *all = simulate_of(text, settings, "all");
    dts_result *folded = simulate_of(text, settings, "folded");
    assert_int_equal(folded->simulation.microbatches > 0, folds);
    assert_true(folds == (folded->simulation.tasks < all->simulation.tasks));
    assert_close(folded->iteration_time_s, all->iteration_time_s, 1e-3, 0);
    assert_close(folded->time_s.host_bound, all->time_s.host_bound, 0, 0.03 * all->iteration_time_s);
    for (size_t i = 0; i < all->stage_count; i++) {
        assert_close(folded->stages[i].peak_allocated_gib, all->stages[i].peak_allocated_gib, 1e-9, 0);
    }
    dts_result_free(all);
    dts_result_free(folded);
}

static void check_same(const char *settings, bool folds) {
    check_same_of(base, settings, folds);
}

static void a_steady_pipeline_is_folded(void **state) {
    (void)state;
    check_same("", true);
    check_same("parallelism.schedule=interleaved-1f1b parallelism.virtual_stages=2", true);
}

/* The last stage ends its forward pass with an all-reduce of the loss: a round of that stage has it, not one of the
 * first. */
static void collectives_behind_blocks_belong_to_their_stage(void **state) {
    (void)state;
    check_same("fidelity.detail=block model.layers=16 cluster.nodes=4 parallelism.tensor=2 parallelism.pipeline=16",
               true);
}

/* The last of 32 stages have a layer less and get ahead, so that their transfers come earlier with every round. On each
 * link one follows from the other: they do not meet. */
static void transfers_in_order_may_move(void **state) {
    (void)state;
    check_same_of(
        "model: {profile: gpt, layers: 48, hidden: 4096, heads: 32, vocab: 1000}\n"
        "cluster: {profile: gcp-a2-highgpu-8g, nodes: 32, gpus_per_node: 1}\n"
        "stack: megatron-lm\n"
        "training: {global_batch: 96, micro_batch: 1, sequence_length: 1024, precision: bf16}\n"
        "parallelism: {pipeline: 32}\n"
        "fidelity: {detail: block}\n",
        "", true);
}

/* Gradients fill buckets in the last backward, whose reductions the step waits for: that pass stays at kernels however
 * many microbatches there are, so that all of them, as blocks or as kernels, take as long as few that stand for all. */
static void the_last_backward_is_the_same_in_all(void **state) {
    (void)state;
    static const char *const text =
        "model: {profile: llama, layers: 16, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 128256}\n"
        "cluster: {profile: dgx-h100, nodes: 1}\n"
        "stack: megatron-core\n"
        "training: {global_batch: 128, micro_batch: 1, sequence_length: 4096, precision: bf16}\n"
        "parallelism: {pipeline: 4, data_parallel: zero1}\n";
    static const char *const details[] = {"fidelity.detail=kernel", "fidelity.detail=layer", "fidelity.detail=block"};
    dts_result *folded = simulate_of(text, details[2], "folded");
    assert_true(folded->simulation.microbatches > 0);
    for (size_t i = 0; i < sizeof details / sizeof details[0]; i++) {
        dts_result *all = simulate_of(text, details[i], "all");
        assert_close(folded->iteration_time_s, all->iteration_time_s, 1e-9, 0);
        dts_result_free(all);
    }
    dts_result_free(folded);
}

/* `auto` looks for a steady state where an iteration has some 200,000 kernels, unless its steps are to be seen. */
static void long_iterations_fold_unasked(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        bool explain, folds;
    } cases[] = {
        {"", false, false}, /* 60 · 8 layers · 120 = 57,600 */
        {"training.global_batch=960", false, true},
        {"training.global_batch=960", true, false},
        {"training.global_batch=960 fidelity.microbatches=all", false, false},
        {"model.layers=96 training.global_batch=72", false, false}, /* 16 of 36 are too many to try */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_run_options options = {.explain = cases[i].explain};
        dts_result *r = simulate_with(&options, NULL, base, cases[i].settings, DTS_OK, NULL);
        assert_int_equal(r->simulation.microbatches > 0, cases[i].folds);
        dts_result_free(r);
    }
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

/* Hosts get ahead of their GPUs with every microbatch. At the end of 20 of them they still hold up reductions, which
 * later share the links with the last exchanges of the layers: 0.6 % of the iteration. */
static void transfers_that_move_at_the_end_are_not_missed(void **state) {
    (void)state;
    check_same_of(
        "model: {experts: 8, experts_per_token: 1, expert_ffn_hidden: 384, shared_expert_ffn_hidden: 256, "
        "capacity_factor: 2, profile: gpt, layers: 2, hidden: 320, heads: 8, vocab: 1000, ffn_hidden: 768}\n"
        "cluster: {profile: gcp-a2-highgpu-8g, nodes: 4}\n"
        "stack: megatron-core\n"
        "training: {global_batch: 5376, micro_batch: 7, sequence_length: 128, precision: fp32, "
        "optimizer: sgd-momentum}\n"
        "parallelism: {pipeline: 2, context: 4, expert: 1, expert_tensor: 2}\n",
        "stack.fuse.expert_bias=true", true);
}

/* Copies of activations set the pace, and the kernels between them wait for their launches until the host is ahead. */
static void waits_that_end_are_not_missed(void **state) {
    (void)state;
    check_same_of(
        "model: {profile: gpt, layers: 2, hidden: 512, heads: 8, vocab: 32000, ffn_hidden: 768}\n"
        "cluster: {profile: gcp-a2-highgpu-8g, nodes: 4, gpus_per_node: 1}\n"
        "stack: {profile: pytorch-1.11, persistent_norm: true}\n"
        "training: {global_batch: 1344, micro_batch: 7, sequence_length: 128, precision: fp32, optimizer: lamb}\n"
        "offload: {activations: cpu, prefetch: 3}\n",
        "cluster.gpu.memory_kernel.dropout_factor=1", false);
}

/* Rings of 16 GPUs over two nodes beside sends of a pipeline: what a kernel and a transfer take still settles in the
 * seventh digit when the pipeline drains, and a device's kernels of a round are those of its microbatches all the same.
 */
static void lengths_may_settle(void **state) {
    (void)state;
    check_same_of(
        "model: {profile: llama, layers: 8, hidden: 1024, heads: 8, kv_heads: 8, ffn_hidden: 2816, vocab: 32000}\n"
        "cluster: {profile: dgx-h100, nodes: 8}\n"
        "stack: megatron-core\n"
        "training: {global_batch: 128, micro_batch: 1, sequence_length: 65536, precision: bf16}\n"
        "parallelism: {data_parallel: zero1, pipeline: 4, virtual_stages: 2, schedule: interleaved-1f1b, context: "
        "16}\n",
        "fidelity.detail=kernel", true);
}

/* Where only two lengths are missing that agree, a round more shows it; else half as many more are tried, as long as
 * that is far from all. */
static void nearly_enough_takes_a_round_more(void **state) {
    (void)state;
    dts_fold fold = {.some = 80, .all = 256, .round = 16, .directions = 1, .nearly = true};
    assert_true(dts_fold_retry(&fold));
    assert_int_equal(fold.some, 96);
    assert_false(dts_fold_retry(&fold));
    assert_int_equal(fold.some, 144);
    fold.some = 240;
    fold.nearly = true;
    assert_false(dts_fold_retry(&fold));
}

/* Retries of the allocator: those of every microbatch come again with each, and cost as much as all of them simulated;
 * those that come once do not grow. */
static void retries_follow_their_rounds(void **state) {
    (void)state;
    static const char *const fsdp =
        "model: llama-3-8b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: torchtitan\n"
        "training: {global_batch: 256, micro_batch: 1, sequence_length: 8050, precision: bf16, optimizer: adamw}\n"
        "parallelism: {data_parallel: fsdp}\n";
    static const char *const settings[] = {
        "fidelity.detail=kernel",
        "fidelity.detail=kernel training.sequence_length=7700 stack.allocator.expandable=false"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        dts_result *all = simulate_of(fsdp, settings[i], "all");
        dts_result *folded = simulate_of(fsdp, settings[i], "folded");
        assert_true(folded->simulation.microbatches > 0);
        assert_true(all->allocator.retries > all->microbatches);
        assert_int_equal(folded->allocator.retries, all->allocator.retries);
        assert_int_equal(folded->allocator.calls, all->allocator.calls);
        assert_close(folded->allocator.cost_s, all->allocator.cost_s, 0.02, 0);
        bool told = false;
        for (size_t k = 0; k < folded->warning_count; k++) {
            told |= strcmp(folded->warnings[k], dts_retries_text(all)) == 0;
        }
        assert_true(told);
        dts_result_free(folded);
        dts_result_free(all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steady_pipeline_is_folded),
        cmocka_unit_test(long_iterations_fold_unasked),
        cmocka_unit_test(retries_follow_their_rounds),
        cmocka_unit_test(lengths_may_settle),
        cmocka_unit_test(nearly_enough_takes_a_round_more),
        cmocka_unit_test(collectives_behind_blocks_belong_to_their_stage),
        cmocka_unit_test(transfers_in_order_may_move),
        cmocka_unit_test(transfers_that_move_at_the_end_are_not_missed),
        cmocka_unit_test(waits_that_end_are_not_missed),
        cmocka_unit_test(what_every_microbatch_leaves_behind_is_not_missed),
        cmocka_unit_test(the_last_backward_is_the_same_in_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
