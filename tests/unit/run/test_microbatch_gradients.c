/* What TensorFlow's way with gradients costs: unscaled and clipped in every microbatch, and reduced behind the whole
 * backward pass instead of beside it. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;
static const double MEMORY_BPS = 1e12;

enum { GRADIENT_B = 4, NORM_AND_CLIP = 3, UNSCALE = 2 };

/* Layers so large that floors of small kernels hardly count; 4 microbatches; memory moves 1 TB/s, launches are free. */
static const char base[] =
    "model: {profile: gpt, layers: 8, hidden: 4096, heads: 32, vocab: 64, tied_embeddings: false, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 1,\n"
    "          gpu: {memory_bandwidth: 1000 GB/s, memory_kernel: {efficiency: 1}}}\n"
    "stack: {profile: pytorch-2, launch: 0 s, backward_launch: 0 s, step_host: 0 s,\n"
    "        optimizer: {gradient_clipping: true, style: fused}}\n"
    "training: {global_batch: 4, micro_batch: 1, sequence_length: 256, precision: fp32, optimizer: sgd}\n"
    "parallelism: {data_parallel: ddp}\n";

#define CLIPS "stack.optimizer.clips_microbatches=true "

static void clipping_costs_its_passes_in_every_microbatch(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int times, passes; /* more often than once a step, over all gradients */
    } cases[] = {
        {"training.precision=fp32 ", 3, NORM_AND_CLIP},
        {"training.precision=amp-fp16 ", 3, NORM_AND_CLIP + UNSCALE},
        {"training.precision=amp-fp16 training.global_batch=8 ", 7, NORM_AND_CLIP + UNSCALE},
        {"training.precision=amp-fp16 stack.optimizer.gradient_clipping=false ", 3, UNSCALE},
        {"training.precision=amp-fp16 training.global_batch=1 ", 0, NORM_AND_CLIP + UNSCALE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[LONGEST_SETTINGS];
        dts_result *once = simulate_text(base, cases[i].settings);
        snprintf(settings, sizeof settings, "%s" CLIPS, cases[i].settings);
        dts_result *each = simulate_text(base, settings);
        const double bytes = once->parameters * GRADIENT_B * cases[i].passes * cases[i].times;
        assert_close(each->iteration_time_s - once->iteration_time_s, bytes / MEMORY_BPS, 2e-3, 1e-9);
        assert_close(sum_of_shares(&each->time_s), each->iteration_time_s, 1e-9, 0);
        dts_result_free(once);
        dts_result_free(each);
    }
}

/* Nothing of a microbatch can be added before all of it is there: beside the sums, its gradients wait whole. */
static void gradients_of_a_microbatch_wait_for_their_norm(void **state) {
    (void)state;
    static const char *const eight =
        "cluster.gpus_per_node=8 training.global_batch=32 training.sequence_length=16 "
        "stack.accumulate_kernel=true stack.ddp.overlap=false ";
    char settings[LONGEST_SETTINGS];
    dts_result *once = simulate_text(base, eight);
    snprintf(settings, sizeof settings, "%s" CLIPS, eight);
    dts_result *each = simulate_text(base, settings);
    const double whole_gib = once->parameters * GRADIENT_B / GIB;
    assert_close(each->peak_allocated_gib - once->peak_allocated_gib, whole_gib, 0.1, 0);
    dts_result_free(once);
    dts_result_free(each);
}

static void a_rank_without_all_gradients_cannot_clip_them(void **state) {
    (void)state;
    static const char *const plans[] = {"parallelism.pipeline=2", "parallelism.data_parallel=fsdp",
                                        "parallelism.data_parallel=zero2"};
    char settings[LONGEST_SETTINGS];
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        snprintf(settings, sizeof settings, CLIPS "cluster.gpus_per_node=2 %s", plans[i]);
        assert_refused_with(NULL, base, settings, "by the norm of all of them", "use ddp or zero1 without a pipeline");
    }
    snprintf(settings, sizeof settings,
             CLIPS "cluster.gpus_per_node=2 parallelism.data_parallel=zero1 stack.ddp.overlap=false");
    dts_result_free(simulate_text(base, settings));
    snprintf(settings, sizeof settings,
             CLIPS "cluster.gpus_per_node=2 parallelism.data_parallel=fsdp training.global_batch=2");
    dts_result_free(simulate_text(base, settings));
}

/* Ranks add up what has been clipped: buckets that go as they fill would be ahead of it. */
static void nothing_is_reduced_before_it_is_clipped(void **state) {
    (void)state;
    static const char *const kinds[] = {"ddp", "zero1"};
    char settings[LONGEST_SETTINGS];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(settings, sizeof settings, CLIPS "cluster.gpus_per_node=2 parallelism.data_parallel=%s", kinds[i]);
        assert_refused_with(NULL, base, settings, "before the last microbatch's gradients are clipped",
                            "set stack.ddp.overlap: false");
    }
}

/* Without overlap all of the reductions is waited for, in buckets of the same size; more than hides beside backward. */
static void reductions_behind_backward_are_waited_for(void **state) {
    (void)state;
    static const char *const eight =
        "cluster.gpus_per_node=8 training.global_batch=8 stack.ddp.bucket=64MiB "
        "stack.ddp.first_bucket=64MiB ";
    static const char *const details[] = {"kernel", "layer"};
    char settings[LONGEST_SETTINGS];
    for (size_t i = 0; i < sizeof details / sizeof details[0]; i++) {
        snprintf(settings, sizeof settings, "%sfidelity.detail=%s", eight, details[i]);
        dts_result *beside = simulate_text(base, settings);
        snprintf(settings, sizeof settings, "%sfidelity.detail=%s stack.ddp.overlap=false", eight, details[i]);
        dts_result *behind = simulate_text(base, settings);
        const dts_communication_row *row = communication_row(behind, "all-reduce", "data");
        assert_close(row->bytes, communication_row(beside, "all-reduce", "data")->bytes, 1e-9, 0);
        assert_close((double)row->count, behind->parameters * GRADIENT_B / (64 * 1024.0 * 1024), 0, 1);
        assert_close(row->exposed_s, row->total_s, 1e-9, 0);
        assert_close(behind->time_s.exposed_communication, row->total_s, 1e-3, 0);
        assert_true(beside->time_s.exposed_communication < 0.9 * row->total_s);
        assert_true(behind->iteration_time_s > beside->iteration_time_s);
        dts_result_free(beside);
        dts_result_free(behind);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clipping_costs_its_passes_in_every_microbatch),
        cmocka_unit_test(gradients_of_a_microbatch_wait_for_their_norm),
        cmocka_unit_test(a_rank_without_all_gradients_cannot_clip_them),
        cmocka_unit_test(nothing_is_reduced_before_it_is_clipped),
        cmocka_unit_test(reductions_behind_backward_are_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
