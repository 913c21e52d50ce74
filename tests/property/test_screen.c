/* A first look (run/coarse_run.h) is the physics of a run with fewer tasks: on random scenarios of every stack, with
 * few microbatches and with many, its time is that of all kernels wherever a block knows all that happens inside it
 * (dts_coarse_leaves_out), and hardly longer anywhere: what is too long costs a search its answer.
 * DTSIM_PROPERTY_RUNS and DTSIM_PROPERTY_SEED as in test_scenarios.c. */
#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "plan/lower/lower.h"
#include "plan/lower/measured_passes.h"
#include "run/coarse_run.h"
#include "simulate.h"

static const char *const stacks[] = {
    "deepspeed",    "fms-fsdp",  "huggingface-eager",   "huggingface-trainer", "internevo",
    "litgpt",       "llm-c",     "llm-foundry",         "megatron-core",       "megatron-core-no-overlap",
    "megatron-lm",  "nemo",      "megatron-deepspeed",  "megatron-lm-2021",    "nvidia-bert",
    "pytorch-1.11", "pytorch-2", "nvidia-bert-pytorch", "torchtitan",          "zero-bubble"};

/* The scenario of a seed, on any stack that takes it, and where many is set with 16 to 63 microbatches; NULL: the stack
 * refuses the plan, or a first look would run it in full. */
static dts_scenario *scenario_of(uint64_t seed, bool many) {
    drawn d = draw(seed);
    if (d.differ || d.loads) {
        return NULL;
    }
    const char *rest = strchr(d.text, '\n');
    const char *stack =
        PICK(&d, 0, 1) == 1 ? d.stack : stacks[next_random(&d.random) % (sizeof stacks / sizeof stacks[0])];
    char text[sizeof d.text + 64];
    snprintf(text, sizeof text, "stack: %s%s", stack, rest);
    const int rounds = 2 * d.pipeline;
    int microbatches = 16 + PICK(&d, 0, 7, 19, 31, 47);
    microbatches = microbatches < rounds ? rounds : microbatches - microbatches % rounds;
    char batch[32];
    snprintf(batch, sizeof batch, "%d", d.data * d.micro_batch * microbatches);
    const dts_override override = {.key = "training.global_batch", .value = batch, .place = {.file = "test"}};
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_scenario_parse(text, strlen(text), "test", &override, many ? 1 : 0, &profiles, &scenario, diag);
    dts_diag_free(diag);
    return scenario;
}

static const char *left_out(const dts_scenario_values *values) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_job job = dts_scenario_job(values);
    dts_plan plan;
    assert_int_equal(dts_lower_plan(&job, arena, &plan, diag), DTS_OK);
    const char *what = dts_coarse_leaves_out(&plan, true);
    dts_diag_free(diag);
    dts_arena_free(arena);
    return what;
}

typedef struct tally {
    size_t exact, others; /* scenarios: where blocks know everything, and the rest */
    double error, other;  /* of exact and of the rest: sums */
    double lowest, highest;
} tally;

static void compare(dts_scenario *scenario, uint64_t seed, dts_block_cache *blocks, tally *t) {
    static const double GIB = 1024.0 * 1024.0 * 1024.0;
    dts_scenario_values values = *dts_scenario_get(scenario);
    values.fidelity.detail = DTS_DETAIL_KERNEL;
    values.fidelity.allocator = DTS_ALLOCATOR_ESTIMATE;
    dts_diag *diag = dts_diag_new();
    dts_result *full = NULL;
    if (dts_run_values(&values, NULL, &full, diag) != DTS_OK) { /* a stack that this plan cannot have */
        dts_diag_free(diag);
        return;
    }
    values.fidelity.detail = DTS_DETAIL_AUTO;
    dts_screening look = {0};
    assert_ok(dts_screen_values(&values, blocks, NULL, &look, diag), diag);
    const double off = look.time_s / full->iteration_time_s - 1;
    const double memory = look.allocated_B / GIB / full->peak_allocated_gib - 1;
    const char *leaves_out = left_out(&values);
    if (leaves_out == NULL) {
        t->exact++;
        t->error += fabs(off);
        t->lowest = fmin(t->lowest, off);
        t->highest = fmax(t->highest, off);
    }
    t->others += leaves_out != NULL;
    t->other += leaves_out != NULL ? fabs(off) : 0;
    const double least = leaves_out == NULL ? -0.05 : -1;
    if (off > 0.05 || off < least || (look.memory_known && fabs(memory) > (leaves_out == NULL ? 0.01 : 0.05))) {
        fail_msg("seed %llu: %+.2f %% of %g s, memory %+.2f %% (%s)", (unsigned long long)seed, 100 * off,
                 full->iteration_time_s, 100 * memory, leaves_out == NULL ? "nothing is left out" : leaves_out);
    }
    dts_result_free(full);
}

static uint64_t number_from(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void a_first_look_is_a_run(void **state) {
    (void)state;
    const uint64_t runs = number_from("DTSIM_PROPERTY_RUNS", 600), first = number_from("DTSIM_PROPERTY_SEED", 1);
    dts_block_cache *blocks = dts_block_cache_new(0);
    tally few = {0}, many = {0};
    for (uint64_t seed = first; seed < first + runs; seed++) {
        dts_scenario *scenario = scenario_of(seed, seed % 4 == 0);
        if (scenario != NULL) {
            compare(scenario, seed, blocks, seed % 4 == 0 ? &many : &few);
        }
        dts_scenario_free(scenario);
    }
    const tally *both[] = {&few, &many};
    for (size_t i = 0; i < 2; i++) {
        const double count = fmax(1, (double)both[i]->exact), others = fmax(1, (double)both[i]->others);
        print_message(
            "%s microbatches: off by %.3f %% on average, %+.2f to %+.2f %%, over %zu scenarios; "
            "something is left out of %zu, %.2f %%\n",
            i == 0 ? "few" : "many", 100 * both[i]->error / count, 100 * both[i]->lowest, 100 * both[i]->highest,
            both[i]->exact, both[i]->others, 100 * both[i]->other / others);
        assert_true(both[i]->error / count < 0.002 || both[i]->exact < 20);
        assert_true(both[i]->other / others < 0.01 || both[i]->others < 20);
    }
    dts_block_cache_free(blocks);
}

/* ZeRO-2 keeps what every microbatch's backward makes until it has been reduced, and no longer: a block hands its
 * gradients over inside or behind it, not both. */
static void zero2_lets_go_of_gradients(void **state) {
    (void)state;
    static const struct {
        const char *model, *cluster, *stack, *batch, *parallelism;
    } cases[] = {
        {"mixtral-8x7b, layers: 8", "dgx-a100-80gb", "megatron-lm", "128", "expert: 2"},
        {"mixtral-8x7b, layers: 8", "dgx-a100-80gb", "deepspeed", "64", "pipeline: 2, expert: 2"},
        {"mixtral-8x7b, layers: 16", "dgx-h100", "pytorch-2", "64", "tensor: 2, sequence: true, pipeline: 2"},
    };
    static const char *const recompute[] = {"none", "full", "{every: 2}"};
    static const double GIB = 1024.0 * 1024.0 * 1024.0;
    double worst = 0;
    dts_block_cache *blocks = dts_block_cache_new(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t r = 0; r < sizeof recompute / sizeof recompute[0]; r++) {
            char text[800];
            snprintf(text, sizeof text,
                     "model: {profile: %s}\n"
                     "cluster: {profile: %s, nodes: 1}\n"
                     "stack: %s\n"
                     "training: {global_batch: %s, micro_batch: 1, sequence_length: 4096, recompute: %s}\n"
                     "parallelism: {data_parallel: zero2, %s}\n"
                     "fidelity: {allocator: estimate}\n",
                     cases[i].model, cases[i].cluster, cases[i].stack, cases[i].batch, recompute[r],
                     cases[i].parallelism);
            dts_scenario *scenario = parse_text(text);
            dts_result *full = simulate_values(dts_scenario_get(scenario), NULL);
            dts_screening look = {0};
            dts_diag *diag = dts_diag_new();
            assert_ok(dts_screen_values(dts_scenario_get(scenario), blocks, NULL, &look, diag), diag);
            const double time = look.time_s / full->iteration_time_s - 1;
            const double memory = look.allocated_B / GIB / full->peak_allocated_gib - 1;
            print_message("%s on %s, %s, recompute %s: %+.1f %% of %.3f s, %+.1f %% of %.1f GiB\n", cases[i].model,
                          cases[i].stack, cases[i].parallelism, recompute[r], 100 * time, full->iteration_time_s,
                          100 * memory, full->peak_allocated_gib);
            worst = fmax(worst, fabs(time) < 0.03 ? fabs(memory) : INFINITY);
            dts_result_free(full);
            dts_scenario_free(scenario);
        }
    }
    dts_block_cache_free(blocks);
    assert_true(worst < 0.25); /* those of a layer are there at once */
}

/* ZeRO-2's buckets over networks from one that hides all reductions to one that hides few: a pass waits for its buckets
 * in a first look, too. */
static void zero2_waits_for_its_buckets(void **state) {
    (void)state;
    static const char *const goodputs[] = {"6 GB/s", "12 GB/s", "18 GB/s", "24 GB/s", "50 GB/s"};
    static const char *const buckets[] = {"25 MB", "200 MB"};
    double worst = 0;
    dts_block_cache *blocks = dts_block_cache_new(0);
    for (size_t i = 0; i < 2 * sizeof goodputs / sizeof goodputs[0]; i++) {
        char text[4 * LONGEST_SETTINGS];
        snprintf(text, sizeof text,
                 "model: gpt3-6.7b\ncluster: {profile: dgx-a100-80gb, nodes: 2, inter: {node_goodput: %s}}\n"
                 "stack: {profile: deepspeed, ddp: {bucket: %s}}\n"
                 "training: {sequence_length: 2048, micro_batch: 1, global_batch: 256, precision: fp16}\n"
                 "parallelism: {data: 16, data_parallel: zero2}\n",
                 goodputs[i / 2], buckets[i % 2]);
        dts_scenario *scenario = parse_text(text);
        dts_result *full = simulate_values(dts_scenario_get(scenario), NULL);
        dts_screening look = {0};
        dts_diag *diag = dts_diag_new();
        assert_ok(dts_screen_values(dts_scenario_get(scenario), blocks, NULL, &look, diag), diag);
        const double off = look.time_s / full->iteration_time_s - 1;
        print_message("%s, buckets of %s: %+.1f %% of %.3f s\n", goodputs[i / 2], buckets[i % 2], 100 * off,
                      full->iteration_time_s);
        worst = fmax(worst, fabs(off));
        dts_result_free(full);
        dts_scenario_free(scenario);
    }
    dts_block_cache_free(blocks);
    assert_true(worst < 0.04);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_first_look_is_a_run),
                                       cmocka_unit_test(zero2_lets_go_of_gradients),
                                       cmocka_unit_test(zero2_waits_for_its_buckets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
