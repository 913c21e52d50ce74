/* Generating tokens: what the cache of keys and values takes, and what a step reads. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

enum { LAYERS = 32, WIDTH = 4096, HEADS = 32, KV_HEADS = 8, HEAD = 128, FFN = 14336, VOCABULARY = 32000 };

/* Llama 3 8B with a smaller vocabulary; nothing but the GPU takes time. */
static const char base[] =
    "model: {profile: llama, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 32000}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 1}\n"
    "stack: {profile: pytorch-2, launch: 0, compile: true}\n"
    "training: {mode: decode, global_batch: 16, micro_batch: 16, sequence_length: 2048, precision: bf16}\n";

/* Keys and values of all samples of a replica: 2 · layers · heads / tensor · 128 · 2 bytes a position, or one latent
 * for all heads, which tensor parallelism does not split. */
static void the_cache_takes_what_its_formula_says(void **state) {
    (void)state;
    static const double position_B = 2.0 * LAYERS * KV_HEADS * HEAD * 2;
    static const double latent_B = 61 * (512.0 + 64) * 2;
    static const struct {
        const char *settings;
        double bytes;
    } cases[] = {
        {"", 16 * 2048 * position_B},
        {"training.sequence_length=8192", 16 * 8192 * position_B},
        {"training.kv_cache=fp8", 16 * 2048 * position_B / 2},
        {"training.micro_batch=4", 16 * 2048 * position_B},
        {"cluster.gpus_per_node=8 parallelism.tensor=8", 16 * 2048 * position_B / 8},
        {"cluster.gpus_per_node=4 parallelism.pipeline=4 parallelism.partition=uniform training.micro_batch=4",
         16 * 2048 * position_B / 4},
        {"cluster.gpus_per_node=8 training.micro_batch=2", 2 * 2048 * position_B},
        {"cluster.gpus_per_node=8 parallelism.data_parallel=fsdp training.micro_batch=2", 2 * 2048 * position_B},
        {"training.mode=inference training.kv_cache=native training.micro_batch=1", 16 * 2048 * position_B},
        {"model=deepseek-v3 model.capacity_factor=1", 16 * 2048 * latent_B},
        {"model.attention_window=512", 16 * 512 * position_B},
        {"model.attention_window=512 model.global_every=4", 16 * (0.75 * 512 + 0.25 * 2048) * position_B},
        {"model.attention_window=512 model.first_global_layers=24", 16 * (0.25 * 512 + 0.75 * 2048) * position_B},
        {"model.attention_window=2048", 16 * 2048 * position_B},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[LONGEST_SETTINGS];
        dts_result *r = simulate_text(base, cases[i].settings);
        double kept_B = r->memory_gib.activations * GIB;
        if (strstr(cases[i].settings, "mode=inference") != NULL) { /* activations of the pass are beside it */
            snprintf(settings, sizeof settings, "%s training.kv_cache=none", cases[i].settings);
            dts_result *none = simulate_text(base, settings);
            kept_B -= none->memory_gib.activations * GIB;
            dts_result_free(none);
        }
        assert_close(kept_B, cases[i].bytes, 1e-9, 1);
        assert_true(r->peak_reserved_gib >= r->peak_allocated_gib);
        dts_result_free(r);
    }
}

/* A step reads weights and cache once: that is nearly all of its time, and what a longer context or a wider cache adds
 * is its bytes. FLOPs are two for each weight, and four for each position, head and element of the cache. */
static void memory_bounds_a_step(void **state) {
    (void)state;
    const double weights =
        LAYERS * (WIDTH * (double)(HEADS + 2 * KV_HEADS) * HEAD + (double)WIDTH * HEADS * HEAD + 3.0 * WIDTH * FFN) +
        (double)WIDTH * VOCABULARY;
    const double cache_B = 16.0 * 2048 * 2 * LAYERS * KV_HEADS * HEAD * 2;
    dts_result *once = simulate_text(base, "");
    dts_result *longer = simulate_text(base, "training.sequence_length=6144");
    dts_result *narrow = simulate_text(base, "training.kv_cache=fp8");
    dts_scenario *scenario = parse_text(base);
    const dts_gpu *gpu = &dts_scenario_get(scenario)->cluster.gpu;
    const double rate_Bps = gpu->memory_bandwidth_Bps * gpu->memory_efficiency;
    const double least_s = (2 * weights + cache_B) / rate_Bps;
    print_message("a step takes %.2f ms, reading %.2f ms\n", 1e3 * once->iteration_time_s, 1e3 * least_s);
    assert_true(once->iteration_time_s > least_s && once->iteration_time_s < 1.15 * least_s);
    assert_close(longer->iteration_time_s - once->iteration_time_s, 2 * cache_B / rate_Bps, 0.02, 0);
    assert_close(once->iteration_time_s - narrow->iteration_time_s, cache_B / 2 / rate_Bps, 0.05, 0);
    assert_close(once->tokens_per_s, 16 / once->iteration_time_s, 1e-12, 0);
    const double flop = 16 * (2 * weights + 4.0 * LAYERS * HEADS * HEAD * 2048);
    assert_close(once->model_tflops_per_gpu * 1e12 * once->iteration_time_s, flop, 1e-9, 0);
    dts_scenario_free(scenario);
    dts_result_free(once);
    dts_result_free(longer);
    dts_result_free(narrow);
}

/* One token is passed on from stage to stage, and reduced by tensor-parallel ranks. */
static void exchanges_are_of_one_token(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "cluster.gpus_per_node=4 parallelism.tensor=2 parallelism.pipeline=2");
    const double token_B = 16.0 * WIDTH * 2;
    const dts_communication_row *send = communication_row(r, "send-recv", "pipeline");
    const dts_communication_row *reduce = communication_row(r, "all-reduce", "tensor");
    assert_close(send->bytes, (double)send->count * token_B, 1e-9, 0);
    assert_true(reduce->count >= LAYERS);
    assert_close(reduce->bytes, (double)reduce->count * token_B, 0.1,
                 0); /* the embedding's or the loss's beside them */
    for (int i = 0; i < 2; i++) {
        const char *graphs = i == 0 ? "stack.cuda_graphs=iteration stack.launch=20us" : "stack.launch=20us";
        dts_result *launched = simulate_text(base, graphs);
        assert_true(i == 0 ? launched->time_s.host_bound < 1e-4 : launched->iteration_time_s > 0.005);
        dts_result_free(launched);
    }
    dts_result_free(r);
}

static void what_has_one_position_is_not_split(void **state) {
    (void)state;
    static const struct {
        const char *settings, *message, *help;
    } cases[] = {
        {"cluster.gpus_per_node=2 parallelism.context=2", "a step of decode has one", "context: 1"},
        {"cluster.gpus_per_node=2 parallelism.tensor=2 parallelism.sequence=true", "a step of decode has one",
         "sequence: false"},
        {"stack.attention=materialised", "fused attention only", "attention: flash"},
        {"training.kv_cache=none", "from the keys and values of those before it", "kv_cache: native"},
        {"model.profile=bert", "attend to earlier positions", "mode: inference"},
        {"training.mode=train training.kv_cache=fp8", "keeps no cache", "mode: inference"},
        {"training.recompute=full", "keeps no activations", "recompute: none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused_with(NULL, base, cases[i].settings, cases[i].message, cases[i].help);
    }
}

static void the_scenario_tells_the_truth(void **state) {
    (void)state;
    static const char file[] = "scenarios/inference/llama-3-70b-decode.yaml";
    dts_result *r = simulate_file(file, "");
    dts_result *one = simulate_file(file, "training.global_batch=1 training.micro_batch=1");
    dts_result *half = simulate_file(file, "training.kv_cache=fp8");
    assert_close(r->memory_gib.parameters, 16.4, 0.01, 0);
    assert_close(r->memory_gib.activations, 5, 0.01, 0);
    assert_close((r->memory_gib.parameters + r->memory_gib.activations) * GIB / 2.79e12, 8.3e-3, 0.02, 0);
    assert_true(r->time_s.compute > 8.3e-3 && r->time_s.compute < 9.5e-3);
    assert_close(half->memory_gib.activations, 2.5, 0.01, 0);
    assert_true(one->iteration_time_s > 0.7 * r->iteration_time_s);
    dts_result_free(r);
    dts_result_free(one);
    dts_result_free(half);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cache_takes_what_its_formula_says),
        cmocka_unit_test(memory_bounds_a_step),
        cmocka_unit_test(exchanges_are_of_one_token),
        cmocka_unit_test(what_has_one_position_is_not_split),
        cmocka_unit_test(the_scenario_tells_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
