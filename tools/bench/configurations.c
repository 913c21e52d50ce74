/* How many configurations of a plan a search can simulate in a second: GPT-3 175B at a global batch of 1536 on 512,
 * 1024 and 4096 A100, over every legal layout of tensor 1 … 8, pipeline 1 … 64, micro-batch 1 … 8 and one or two chunks
 * per stage, on one core and with one cache of blocks. Each is planned, lowered to blocks, simulated and measured; and,
 * the same layouts again, looked at coarsely, as a search does before it simulates the best in full. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "run/coarse_run.h"
#include "run/run.h"

static const char scenario_text[] =
    "model: gpt3-175b\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 64}\n"
    "stack: megatron-lm\n"
    "training: {global_batch: 1536, micro_batch: 1, sequence_length: 2048, precision: fp16, recompute: full}\n"
    "parallelism: {tensor: 8, pipeline: 8, data_parallel: ddp}\n"
    "fidelity: {detail: block, microbatches: folded}\n";

/* Illegal layouts are refused: they cost what refusing costs, and are not counted. */
static void run_one(const dts_scenario_values *values, dts_block_cache *blocks, bench_configurations_result *result) {
    dts_diag *diag = dts_diag_new();
    dts_run_options options = {.blocks = blocks};
    dts_result *r = NULL;
    if (diag != NULL && dts_run_values(values, &options, &r, diag) == DTS_OK) {
        result->configurations++;
        result->tasks += r->simulation.tasks;
        dts_result_free(r);
    }
    dts_diag_free(diag);
}

static void screen_one(const dts_scenario_values *values, dts_block_cache *blocks,
                       bench_configurations_result *result) {
    dts_diag *diag = dts_diag_new();
    dts_screening s;
    if (diag != NULL && dts_screen_values(values, blocks, NULL, &s, diag) == DTS_OK) {
        result->configurations++;
        result->tasks += s.tasks;
    }
    dts_diag_free(diag);
}

typedef void one_configuration(const dts_scenario_values *values, dts_block_cache *blocks,
                               bench_configurations_result *result);

static void run_all(const dts_scenario_values *base, int64_t nodes, dts_block_cache *blocks, one_configuration *one,
                    bench_configurations_result *result) {
    dts_scenario_values values = *base;
    values.cluster.nodes = nodes;
    double begin = bench_cpu_s();
    for (int64_t tensor = 1; tensor <= 8; tensor *= 2) {
        for (int64_t pipeline = 1; pipeline <= 64; pipeline *= 2) {
            for (int64_t chunks = 1; chunks <= 2; chunks++) {
                for (int64_t micro_batch = 1; micro_batch <= 8; micro_batch *= 2) {
                    values.parallelism.tensor = tensor;
                    values.parallelism.pipeline = pipeline;
                    values.parallelism.virtual_stages = chunks;
                    values.parallelism.schedule.name = chunks > 1 ? "interleaved-1f1b" : "1f1b";
                    values.training.micro_batch = micro_batch;
                    one(&values, blocks, result);
                }
            }
        }
    }
    result->cpu_s += bench_cpu_s() - begin;
}

bool bench_configurations(const char *root, int64_t gpus, bench_configurations_result *cold,
                          bench_configurations_result *warm, bench_configurations_result *coarse) {
    dts_profile_paths profiles = {.roots = &root, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_block_cache *blocks = dts_block_cache_new(0);
    *cold = *warm = *coarse = (bench_configurations_result){0};
    bool good = diag != NULL && blocks != NULL &&
                dts_scenario_parse(scenario_text, strlen(scenario_text), "benchmark", NULL, 0, &profiles, &scenario,
                                   diag) == DTS_OK;
    if (good) {
        int64_t nodes = gpus / 8;
        run_all(dts_scenario_get(scenario), nodes, blocks, run_one, cold);
        run_all(dts_scenario_get(scenario), nodes, blocks, run_one, warm);
        run_all(dts_scenario_get(scenario), nodes, blocks, screen_one, coarse);
    }
    dts_scenario_free(scenario);
    dts_block_cache_free(blocks);
    dts_diag_free(diag);
    return good && cold->configurations > 0;
}
