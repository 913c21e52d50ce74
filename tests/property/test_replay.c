/* What the ledger gives back is what it took, tensor by tensor: else the caching allocator's replay keeps tensors that
 * are gone. Over random legal scenarios in every detail, and over every stack with every way of sharding, offload and
 * resharding, of a small model:
 *   of a kernel, every free is the whole of one tensor that was asked for (seeds 1 to 400: of 3,000 random scenarios 26
 *   cut one, where activations leave the GPU as a sum or a schedule holds two chunks at a loss)
 *   of a block, which gives back sums, no more is given back than was taken
 *   at the end of an iteration every place is given back as often as it was taken
 * DTSIM_PROPERTY_RUNS sets how many scenarios are drawn, DTSIM_PROPERTY_SEED the first seed. */
#include <dirent.h>
#include <stdlib.h>

#include "draw.h"
#include "plan/lower/lower.h"
#include "plan/lower/measured_passes.h"
#include "run/requests.h"

/* What the run had come to, for the message when it fails. */
static char current[4 * LONGEST_SETTINGS];

static void check_requests(const dts_requests *requests, dts_detail detail) {
    int64_t live = 0;
    for (size_t i = 0; i < requests->count; i++) {
        const uint8_t kind = requests->items[i].kind;
        live += kind == DTS_REQUEST_TAKE;
        live -= kind == DTS_REQUEST_GIVE || kind == DTS_REQUEST_GIVE_LATE;
        assert_true(live >= 0);
    }
    assert_int_equal(live, 0);
    assert_int_equal(requests->unknown_B, 0);
    if (detail == DTS_DETAIL_KERNEL) {
        assert_int_equal(requests->cut_B, 0);
    }
}

static void check_plan(const dts_plan *plan, dts_detail detail, dts_arena *arena, dts_diag *diag) {
    dts_block_cache *blocks = dts_block_cache_new(1 << 20);
    const dts_lower_options options = {.flow_network = true, .detail = detail, .blocks = blocks};
    dts_lowered lowered;
    assert_int_equal(dts_lower(plan, &options, arena, &lowered, diag), DTS_OK);
    dts_memory_log log;
    assert_int_equal(dts_memory_log_new(dts_graph_devices(lowered.graph), &log), DTS_OK);
    const dts_observer observer = {.context = &log, .memory_changed = dts_memory_log_add};
    dts_simulation *simulation = NULL;
    assert_int_equal(dts_simulate(lowered.graph, &observer, &simulation, diag), DTS_OK);
    assert_false(log.failed);
    for (int64_t p = 0; p < plan->pipeline; p++) {
        const dts_tensors none = {0};
        dts_requests requests;
        assert_int_equal(dts_requests_make(plan, &lowered, simulation, &log.devices[p], &none, &requests), DTS_OK);
        check_requests(&requests, lowered.detail);
        dts_requests_free(&requests);
    }
    dts_memory_log_free(&log);
    dts_simulation_free(simulation);
    dts_lowered_free(&lowered);
    dts_block_cache_free(blocks);
}

/* Is the scenario legal? Then it is checked. */
static bool check_text(const char *text, dts_detail detail) {
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    snprintf(current, sizeof current, "%s", text);
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_scenario *scenario = NULL;
    dts_plan plan;
    bool legal = dts_scenario_parse(text, strlen(text), "test", NULL, 0, &profiles, &scenario, diag) == DTS_OK;
    if (legal) {
        const dts_job job = dts_scenario_job(dts_scenario_get(scenario));
        legal = dts_lower_plan(&job, arena, &plan, diag) == DTS_OK;
    }
    if (legal) {
        check_plan(&plan, detail, arena, diag);
    }
    dts_scenario_free(scenario);
    dts_arena_free(arena);
    dts_diag_free(diag);
    current[0] = '\0';
    return legal;
}

static uint64_t number_from(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void random_scenarios_free_what_they_take(void **state) {
    (void)state;
    static const dts_detail details[] = {DTS_DETAIL_KERNEL, DTS_DETAIL_KERNEL, DTS_DETAIL_LAYER, DTS_DETAIL_BLOCK};
    const uint64_t runs = number_from("DTSIM_PROPERTY_RUNS", 400), seed = number_from("DTSIM_PROPERTY_SEED", 1);
    for (uint64_t i = 0; i < runs; i++) {
        const drawn d = draw(seed + i);
        assert_true(check_text(d.text, details[i % 4]));
    }
}

/* ---- every stack ------------------------------------------------------------------------------------------------ */

static const char *const sharding[] = {"ddp",
                                       "zero1",
                                       "zero2",
                                       "zero3",
                                       "fsdp",
                                       "zero3, reshard_after_forward: false",
                                       "fsdp, reshard_after_forward: false",
                                       "fsdp, gradient_sync: step",
                                       "fsdp, fsdp_unit: linear",
                                       "fsdp, shard_group: 2"};
static const char *const offloads[] = {"optimizer: none",
                                       "activations: cpu",
                                       "optimizer: cpu",
                                       "optimizer: cpu, gradients: cpu",
                                       "optimizer: cpu, parameters: cpu",
                                       "optimizer: cpu, gradients: cpu, parameters: cpu, activations: cpu"};

/* Counts what is legal. */
static int check_stack(const char *stack) {
    int legal = 0;
    for (size_t s = 0; s < sizeof sharding / sizeof sharding[0]; s++) {
        for (size_t o = 0; o < sizeof offloads / sizeof offloads[0]; o++) {
            char text[4 * LONGEST_SETTINGS];
            snprintf(text, sizeof text,
                     "model: {profile: llama, layers: 3, hidden: 320, heads: 5, vocab: 1001, ffn_hidden: 768}\n"
                     "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\nstack: %s\n"
                     "training: {global_batch: 8, micro_batch: 1, sequence_length: 64, precision: bf16}\n"
                     "parallelism: {data_parallel: %s}\noffload: {%s}\n",
                     stack, sharding[s], offloads[o]);
            legal += check_text(text, o % 3 == 2 ? DTS_DETAIL_LAYER : DTS_DETAIL_KERNEL);
        }
    }
    return legal;
}

static void every_stack_frees_what_it_takes(void **state) {
    (void)state;
    enum { FEWEST = 5 };
    DIR *folder = opendir("hardware/stacks");
    assert_non_null(folder);
    int stacks = 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char name[LONGEST_SETTINGS];
        snprintf(name, sizeof name, "%s", entry->d_name);
        char *end = strstr(name, ".yaml");
        if (end != NULL) {
            *end = '\0';
            const int legal = check_stack(name);
            if (legal < FEWEST) {
                print_error("%s: only %d legal\n", name, legal);
            }
            assert_true(legal >= FEWEST);
            stacks++;
        }
    }
    closedir(folder);
    assert_true(stacks > 20);
}

static int say_current(void **state) {
    (void)state;
    if (current[0] != '\0') {
        print_error("%s", current);
    }
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_scenarios_free_what_they_take, say_current),
        cmocka_unit_test_teardown(every_stack_frees_what_it_takes, say_current),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
