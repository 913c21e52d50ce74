/* Where exchanges of experts share no link with anything else (detail.c), blocks stand for kernels: random mixtures of
 * experts whose groups lie inside nodes take the same time to the last digits, but for one in some hundred (with GPipe
 * and tensor parallelism) that is 0.05 % off. Memory that is replayed beside blocks is that of all kernels.
 * DTSIM_PROPERTY_RUNS and DTSIM_PROPERTY_SEED as in test_scenarios.c. */
#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "plan/lower/lower.h"
#include "plan/lower/measured_passes.h"

/* The scenario of a seed; NULL: not a legal one. */
static dts_scenario *scenario_of(uint64_t seed) {
    drawn d = {.random = seed};
    const int tensor = PICK(&d, 1, 1, 1, 2, 4), pipeline = PICK(&d, 1, 2, 2, 4), nodes = 2 * pipeline;
    const int data = nodes * 8 / tensor / pipeline, chunks = pipeline > 1 ? PICK(&d, 1, 1, 2) : 1;
    const int expert = PICK(&d, 2, 4, 8), micro_batch = PICK(&d, 1, 2), microbatches = pipeline * PICK(&d, 2, 3, 5);
    const char *schedule = chunks > 1 ? "interleaved-1f1b" : PICK(&d, 0, 0, 1) == 1 ? "gpipe" : "1f1b";
    const char *stack = PICK_NAME(&d, "megatron-lm", "megatron-core", "megatron-core-no-overlap", "nemo", "deepspeed");
    const char *recompute = PICK_NAME(&d, "none", "selective", "full", "{every: 2}");
    const char *parallel = PICK_NAME(&d, "ddp", "zero1");
    char text[1200];
    snprintf(text, sizeof text,
             "model: {profile: mixtral-8x7b, layers: %d, hidden: %d, experts: %d, experts_per_token: %d, "
             "moe_every: %d, shared_expert_ffn_hidden: %d, expert_ffn_hidden: 1024}\n"
             "cluster: {profile: dgx-h100, nodes: %d}\n"
             "stack: %s\n"
             "training: {global_batch: %d, micro_batch: %d, sequence_length: 2048, precision: bf16, recompute: %s}\n"
             "parallelism: {tensor: %d, sequence: %s, pipeline: %d, virtual_stages: %d, schedule: %s, expert: %d, "
             "data_parallel: %s}\n",
             pipeline * chunks * PICK(&d, 1, 2, 3), PICK(&d, 1024, 2048), expert * PICK(&d, 1, 2, 4), PICK(&d, 1, 2),
             PICK(&d, 1, 1, 2), PICK(&d, 1024, 4096), nodes, stack, data * micro_batch * microbatches, micro_batch,
             recompute, tensor, tensor > 1 ? "true" : "false", pipeline, chunks, schedule, expert, parallel);
    /* mostly gradients are reduced after the last backward pass */
    static const dts_override late[] = {{.key = "stack.ddp.bucket", .value = "1 TB", .place = {.file = "test"}},
                                        {.key = "stack.ddp.first_bucket", .value = "1 TB", .place = {.file = "test"}}};
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_scenario_parse(text, strlen(text), "test", late, (size_t)PICK(&d, 0, 2, 2, 2), &profiles, &scenario, diag);
    dts_diag_free(diag);
    return scenario;
}

/* Is the plan legal, of a kind that has blocks, and are they exact? */
static bool blocks_are_exact(const dts_scenario_values *values) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_job job = dts_scenario_job(values);
    dts_plan plan;
    const bool exact = dts_lower_plan(&job, arena, &plan, diag) == DTS_OK && dts_blocks_possible(&plan) &&
                       dts_coarse_leaves_out(&plan, true) == NULL;
    dts_diag_free(diag);
    dts_arena_free(arena);
    return exact;
}

typedef struct tally {
    size_t plans, exact;
} tally;

static void compare(dts_scenario_values values, uint64_t seed, tally *t) {
    values.fidelity.microbatches = DTS_MICROBATCHES_ALL;
    values.fidelity.detail = DTS_DETAIL_KERNEL;
    dts_result *kernels = simulate_values(&values, NULL);
    values.fidelity.detail = DTS_DETAIL_BLOCK;
    values.fidelity.allocator = DTS_ALLOCATOR_REPLAY;
    dts_result *blocks = simulate_values(&values, NULL);
    const double time = fabs(blocks->iteration_time_s / kernels->iteration_time_s - 1);
    double memory = 0;
    for (size_t p = 0; p < kernels->stage_count; p++) {
        const dts_stage_row *k = &kernels->stages[p], *b = &blocks->stages[p];
        memory = fmax(memory, fabs(b->peak_allocated_gib / k->peak_allocated_gib - 1));
        memory = fmax(memory, fabs(b->peak_reserved_gib / k->peak_reserved_gib - 1));
    }
    t->plans++;
    t->exact += time < 1e-9;
    if (strcmp(blocks->simulation.detail, "block") != 0 || time > 1e-3 || memory > 1e-9) {
        fail_msg("seed %llu, %s: time off by %.3g, memory by %.3g", (unsigned long long)seed, kernels->plan, time,
                 memory);
    }
    dts_result_free(kernels);
    dts_result_free(blocks);
}

static void blocks_are_kernels(void **state) {
    (void)state;
    const char *runs = getenv("DTSIM_PROPERTY_RUNS"), *seed = getenv("DTSIM_PROPERTY_SEED");
    const uint64_t count = runs != NULL ? strtoull(runs, NULL, 10) : 300;
    const uint64_t first = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    tally t = {0};
    for (uint64_t i = first; i < first + count; i++) {
        dts_scenario *scenario = scenario_of(i);
        if (scenario != NULL && blocks_are_exact(dts_scenario_get(scenario))) {
            compare(*dts_scenario_get(scenario), i, &t);
        }
        dts_scenario_free(scenario);
    }
    print_message("blocks are exact in %zu of %zu plans\n", t.exact, t.plans);
    assert_true(t.plans > count / 8 || count < 40);
    assert_true((double)t.exact > 0.95 * (double)t.plans);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
