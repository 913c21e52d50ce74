/* Loading of data against what can be said in closed form: with iterations of T seconds by themselves and m batches
 * that take a core c seconds each, W loaders need m·c/W, C cores at least m·c/C. */
#include "simulate.h"

/* 4 microbatches of 8 on one GPU; 12 cores, of which training leaves 11. */
static const char *const base =
    "model: bert-base\n"
    "cluster: {profile: v100-16gb-single, host: {cores: 12}}\n"
    "stack: huggingface-trainer\n"
    "training: {global_batch: 32, micro_batch: 8, sequence_length: 128, precision: amp-fp16}\n";

static double time_of(const char *settings) {
    dts_result *r = simulate_text(base, settings);
    double time_s = r->iteration_time_s;
    assert_close(sum_of_shares(&r->time_s), time_s, 1e-9, 0);
    dts_result_free(r);
    return time_s;
}

static void nothing_is_loaded_unless_samples_cost_something(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "input.workers=0 input.pin_memory=false");
    assert_true(r->time_s.input_wait == 0);
    assert_close(r->iteration_time_s, time_of(""), 0, 0);
    dts_result_free(r);
}

/* iteration = max(training, loading); where loading is slower, exactly its time. */
static void the_slower_of_loading_and_training_decides(void **state) {
    (void)state;
    const double by_itself_s = time_of("input.sample_cost=1ns");
    static const struct {
        const char *settings;
        double load_s; /* of an iteration's samples, all loaders together */
    } all[] = {
        {"input.sample_cost=5ms input.workers=4", 32 * 5e-3 / 4},
        {"input.sample_cost=20ms input.workers=4", 32 * 20e-3 / 4},
        {"input.sample_cost=20ms input.workers=3", 32 * 20e-3 / 3},
        {"input.sample_cost=20ms input.workers=2 input.prefetch_factor=1", 32 * 20e-3 / 2},
        {"input.sample_cost=20ms input.workers=1 input.prefetch_factor=8", 32 * 20e-3},
        {"input.sample_cost=50ms input.workers=7", 32 * 50e-3 / 7},
        /* more loaders than cores that training leaves */
        {"input.sample_cost=20ms input.workers=8 cluster.host.cores=3", 32 * 20e-3 / 2},
        {"input.sample_cost=20ms input.workers=8 cluster.host.cores=3 fidelity.network=closed-form", 32 * 20e-3 / 2},
        {"input.sample_cost=20ms input.workers=2 fidelity.detail=block", 32 * 20e-3 / 2},
        {"input.sample_cost=20ms input.workers=2 fidelity.ranks=full", 32 * 20e-3 / 2},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        double expected_s = all[i].load_s > by_itself_s ? all[i].load_s : by_itself_s;
        assert_close(time_of(all[i].settings), expected_s, 1e-4, 0);
    }
}

/* One batch an iteration, and loaders that work on theirs for several iterations. */
static void loaders_may_need_longer_than_an_iteration(void **state) {
    (void)state;
    const double by_itself_s = time_of("training.global_batch=8 input.sample_cost=1ns");
    const double fast_s = time_of("training.global_batch=8 input.workers=4 input.sample_cost=28ms");
    assert_true(8 * 28e-3 > 3 * by_itself_s && 8 * 28e-3 / 4 < by_itself_s);
    assert_close(fast_s, by_itself_s, 1e-3, 0);
    assert_close(time_of("training.global_batch=8 input.workers=4 input.sample_cost=50ms"), 8 * 50e-3 / 4, 1e-4, 0);
    assert_close(time_of("training.global_batch=16 input.workers=3 input.sample_cost=50ms"), 16 * 50e-3 / 3, 1e-4, 0);
}

/* Three batches an iteration and four loaders meet anew in each: iterations go on in a rhythm of two or three lengths,
 * and their mean is told. The lengths are those of iterations simulated one after another. */
static void iterations_in_a_rhythm_are_told_by_their_mean(void **state) {
    (void)state;
    static const char *const two_stages =
        "stack: huggingface-trainer\n"
        "model: {profile: llama, layers: 4, hidden: 320, heads: 8, vocab: 32000, ffn_hidden: 768,\n"
        "        parallel_block: shared_norm}\n"
        "cluster: {profile: gcp-a2-highgpu-8g, nodes: 2, gpus_per_node: 1}\n"
        "training: {global_batch: 3, micro_batch: 1, sequence_length: 128, precision: tf32, optimizer: muon,\n"
        "           recompute: {modules: [core_attn, layernorm]}}\n"
        "parallelism: {pipeline: 2, schedule: zb1p-heuristic, partition: uniform, data_parallel: zero1}\n"
        "input: {workers: 4, prefetch_factor: 1, sample_cost: 30 ms}\n";
    static const struct {
        const char *settings;
        double mean_ms;
    } rows[] = {
        {"stack.launch=6us", (22.5 + 24.456133 + 27.078) / 3},
        {"stack.launch=12us", (22.5 + 25.512133 + 26.586) / 3},
        {"stack.launch=27us", 25.356}, /* settles */
        {"input.sample_cost=26ms", (23.241015 + 23.411118) / 2},
        {"input.sample_cost=28ms", (23.356 + 25.296133) / 2},
    };
    double times_s[sizeof rows / sizeof rows[0]];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const dts_run_options options = {.explain = true};
        dts_result *r = simulate_with(&options, NULL, two_stages, rows[i].settings, DTS_OK, NULL);
        double path_s = 0;
        for (size_t k = 0; k < r->explanation->path_count; k++) {
            path_s += r->explanation->path[k].total_s;
        }
        assert_close(path_s, r->iteration_time_s, 1e-9, 0);
        times_s[i] = r->iteration_time_s;
        assert_close(times_s[i], rows[i].mean_ms * 1e-3, 1e-6, 0);
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        assert_close(r->samples_per_s, 3 / r->iteration_time_s, 1e-9, 0);
        dts_result_free(r);
    }
    assert_true(times_s[0] < times_s[1] && times_s[1] < times_s[2]); /* the slower the host */
}

/* Without loaders the training loop makes a batch, then issues its passes: whatever lead the host has hides as much. */
static void without_loaders_loading_adds_to_training(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "input.workers=0 input.sample_cost=20ms training.global_batch=8");
    const double alone_s = time_of("training.global_batch=8 input.sample_cost=1ns");
    assert_close(r->iteration_time_s, alone_s + 8 * 20e-3, 1e-3, 0);
    assert_close(r->time_s.input_wait, 8 * 20e-3, 1e-2, 0);
    dts_result_free(r);
    double several_s = time_of("input.workers=0 input.sample_cost=20ms");
    assert_true(several_s > 32 * 20e-3 && several_s < time_of("input.sample_cost=1ns") + 32 * 20e-3 + 1e-4);
}

/* One batch of 8 · 1 MB at the host link's 12 GB/s, at half of it from pageable memory; behind a latency. */
static void the_copy_takes_the_host_link(void **state) {
    (void)state;
    const double alone_s = time_of("training.global_batch=8");
    dts_result *pinned = simulate_text(base, "training.global_batch=8 input.sample_bytes=100MB");
    dts_result *pageable =
        simulate_text(base, "training.global_batch=8 input.sample_bytes=100MB input.pin_memory=false");
    double link_Bps = 8 * 100e6 / (pinned->time_s.input_wait);
    assert_close(pageable->time_s.input_wait, 2 * pinned->time_s.input_wait, 1e-2, 0);
    /* meanwhile the host issues kernels, and is ahead from then on */
    assert_true(pinned->iteration_time_s <= alone_s + pinned->time_s.input_wait);
    assert_true(pinned->iteration_time_s >= pinned->time_s.compute + pinned->time_s.input_wait);
    assert_true(link_Bps > 5e9 && link_Bps < 16e9);
    dts_result_free(pinned);
    dts_result_free(pageable);
    /* with several microbatches the copies run beside the passes before, but for pageable memory */
    const char *settings = "input.sample_bytes=10MB stack.launch=1us stack.backward_launch=1us";
    pinned = simulate_text(base, settings);
    char other[200];
    snprintf(other, sizeof other, "%s input.pin_memory=false", settings);
    pageable = simulate_text(base, other);
    assert_true(pinned->time_s.input_wait < 0.3 * pageable->time_s.input_wait);
    dts_result_free(pinned);
    dts_result_free(pageable);
}

/* GPUs of a node compete for its cores; one loader serves a tensor-parallel group; a pipeline's first stage loads. */
static void loaders_of_a_node_share_its_cores(void **state) {
    (void)state;
    static const char *const node =
        "model: mingpt-large\n"
        "cluster: {profile: gcp-a2-highgpu-8g, nodes: 1, host: {cores: 24}}\n"
        "stack: megatron-lm\n"
        "training: {global_batch: 32, micro_batch: 4, sequence_length: 256, precision: fp16}\n"
        "input: {sample_cost: 1 s, workers: 4}\n";
    static const struct {
        const char *settings;
        double load_s; /* 16 cores for loaders */
    } all[] = {
        {"", 4.0 * 8 / 16},
        {"input.workers=1", 4.0},
        {"parallelism.tensor=2", 8.0 / 4}, /* 4 groups · 4 loaders on 16 cores */
        {"parallelism.tensor=8", 32.0 / 4},
        {"parallelism.tensor=2 fidelity.ranks=full", 8.0 / 4},
        {"parallelism.pipeline=2", 8.0 / 4},
        {"parallelism.pipeline=2 parallelism.order=tensor-pipeline-data fidelity.ranks=full", 8.0 / 4},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dts_result *r = simulate_text(node, all[i].settings);
        assert_close(r->iteration_time_s, all[i].load_s, 1e-3, 0);
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        assert_true(r->time_s.input_wait + r->time_s.bubble > 0.5 * r->iteration_time_s);
        dts_result_free(r);
    }
    /* one process for all: it loads the batch of all replicas, on the 23 cores that it leaves */
    dts_result *r = simulate_text(node, "parallelism.data_parallel=dp stack=pytorch-1.11 input.workers=8");
    assert_close(r->iteration_time_s, 32.0 / 8, 1e-2, 0);
    dts_result_free(r);
}

/* The queue is as long at the end of an iteration as at its beginning, whatever the number of microbatches. */
static void folded_microbatches_load_as_all(void **state) {
    (void)state;
    const char *slow = "training.global_batch=256 input.workers=2 input.sample_cost=20ms";
    char folded[200];
    snprintf(folded, sizeof folded, "%s fidelity.microbatches=folded", slow);
    assert_close(time_of(slow), 256 * 20e-3 / 2, 1e-6, 0);
    assert_close(time_of(folded), 256 * 20e-3 / 2, 1e-4, 0);
}

static void more_loaders_than_cores_are_warned_about(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "input.workers=16 input.sample_cost=20ms");
    bool said = false;
    for (size_t i = 0; i < r->warning_count; i++) {
        said |= strstr(r->warnings[i], "more than 11 for each process load nothing faster") != NULL;
    }
    assert_true(said);
    dts_result_free(r);
}

/* One process for both pipelines loads at both ends, and lets go of what it has loaded. */
static void both_ends_of_two_pipelines_load(void **state) {
    (void)state;
    dts_result *r = simulate_text(
        "model: {profile: gpt, layers: 4, hidden: 512, heads: 8, vocab: 1000}\n"
        "cluster: {profile: gcp-a2-highgpu-8g, nodes: 1, gpus_per_node: 2}\n"
        "stack: pytorch-1.11\n"
        "training: {global_batch: 16, micro_batch: 2, sequence_length: 128, precision: fp32}\n"
        "parallelism: {pipeline: 2, schedule: chimera}\n"
        "input: {workers: 0, sample_cost: 1 ms, sample_bytes: 600 kB}\n",
        "");
    assert_true(r->time_s.input_wait > 0);
    for (size_t d = 0; d < r->stage_count; d++) {
        double first = -1, last = -1;
        for (size_t i = 0; i < r->memory_sample_count; i++) {
            if (r->memory_samples[i].device == d) {
                last = r->memory_samples[i].bytes;
                first = first < 0 ? last : first;
            }
        }
        assert_close(last, first, 0, 1024);
    }
    dts_result_free(r);
}

static void the_scenario_tells_the_truth(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double iteration_s, wait_s;
    } rows[] = {
        {"", 0.251, 0.003},
        {"input.workers=2", 0.251, 0.003},
        {"input.workers=1", 0.384, 0.136},
        {"input.workers=0", 0.635, 0.387},
        {"input.workers=4 cluster.host.cores=16", 0.384, 0.136},
        {"training.micro_batch=4", 0.407, 0.0002},
        {"training.micro_batch=4 input.pin_memory=false", 0.415, 0.0035},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dts_result *r = simulate_file("scenarios/input/pictures.yaml", rows[i].settings);
        assert_close(r->iteration_time_s, rows[i].iteration_s, 0.01, 0);
        assert_close(r->time_s.input_wait, rows[i].wait_s, 0.1, 0);
        dts_result_free(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_loaded_unless_samples_cost_something),
        cmocka_unit_test(the_slower_of_loading_and_training_decides),
        cmocka_unit_test(loaders_may_need_longer_than_an_iteration),
        cmocka_unit_test(iterations_in_a_rhythm_are_told_by_their_mean),
        cmocka_unit_test(without_loaders_loading_adds_to_training),
        cmocka_unit_test(the_copy_takes_the_host_link),
        cmocka_unit_test(loaders_of_a_node_share_its_cores),
        cmocka_unit_test(folded_microbatches_load_as_all),
        cmocka_unit_test(more_loaders_than_cores_are_warned_about),
        cmocka_unit_test(both_ends_of_two_pipelines_load),
        cmocka_unit_test(the_scenario_tells_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
