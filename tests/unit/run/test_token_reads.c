/* Hosts that wait for token counts inside a pass: it is one block all the same, and one of a first look too. */
#include "plan/lower/costs.h"
#include "run/coarse_run.h"
#include "simulate.h"

static const char *const experts =
    "model: {profile: deepseek-v2-lite, layers: 5}\n"
    "cluster: {profile: dgx-h100, nodes: 1}\n"
    "stack: megatron-core\n"
    "training: {sequence_length: 1024, micro_batch: 1, global_batch: 64, precision: bf16}\n"
    "parallelism: {data_parallel: ddp}\n";

/* The host that waits meets the GPU there, whatever it was ahead or behind before: the time is that of all kernels. */
static void blocks_with_reads_are_exact(void **state) {
    (void)state;
    static const char *const rows[] = {
        "",
        "parallelism.expert=8 stack.launch=1us stack.backward_launch=1us",   /* bound by the GPU */
        "parallelism.expert=8 stack.launch=30us stack.backward_launch=30us", /* by the host */
        "parallelism.expert=8 stack.experts_host=2ms",                       /* and by what it does with the counts */
        "parallelism.expert=8 parallelism.data_parallel=zero1 parallelism.pipeline=1 training.recompute=full",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dts_result *results[3];
        static const char *const details[] = {"kernel", "layer", "block"};
        for (size_t d = 0; d < 3; d++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings, "%s%sfidelity.detail=%s", rows[i], rows[i][0] != '\0' ? " " : "",
                     details[d]);
            results[d] = simulate_text(experts, settings);
        }
        for (size_t d = 1; d < 3; d++) {
            const dts_time_shares *a = &results[0]->time_s, *b = &results[d]->time_s;
            assert_close(results[d]->iteration_time_s, results[0]->iteration_time_s, 1e-9, 0);
            assert_close(results[d]->peak_allocated_gib, results[0]->peak_allocated_gib, 1e-9, 0);
            assert_close(b->compute, a->compute, 1e-9, 1e-9);
            assert_close(b->host_bound, a->host_bound, 1e-9, 1e-9);
            assert_close(b->exposed_communication, a->exposed_communication, 1e-9, 1e-9);
            assert_true(results[d]->simulation.tasks < results[0]->simulation.tasks / 4);
        }
        assert_true(results[0]->time_s.host_bound > 0);
        for (size_t d = 0; d < 3; d++) {
            dts_result_free(results[d]);
        }
    }
}

/* What the host does with the counts is told apart from launches: all that a longer one takes. */
static void waits_for_counts_are_told_apart(void **state) {
    (void)state;
    static const char *const details[] = {"kernel", "layer", "block"};
    for (size_t d = 0; d < sizeof details / sizeof details[0]; d++) {
        dts_result *results[2];
        for (size_t i = 0; i < 2; i++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings, "parallelism.expert=8 stack.experts_host=%dms fidelity.detail=%s",
                     i == 0 ? 4 : 5, details[d]);
            results[i] = simulate_text(experts, settings);
            const dts_time_shares *t = &results[i]->time_s;
            assert_close(t->launches + t->token_counts + t->allocator, t->host_bound, 1e-9, 0);
            assert_true(t->token_counts > 0.8 * t->host_bound);
            assert_non_null(strstr(results[i]->bottleneck, "token counts of experts"));
        }
        assert_close(results[1]->time_s.token_counts - results[0]->time_s.token_counts,
                     results[1]->iteration_time_s - results[0]->iteration_time_s, 0.01, 0);
        dts_result_free(results[0]);
        dts_result_free(results[1]);
    }
    /* a capacity takes them away */
    dts_result *padded = simulate_text(experts, "parallelism.expert=8 stack.experts_host=2ms model.capacity_factor=1");
    assert_close(padded->time_s.token_counts, 0, 0, 0);
    dts_result_free(padded);
}

/* A first look sees in a fraction of the tasks what a run does. */
static void a_first_look_takes_blocks(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        bool memory;
    } rows[] = {
        {"parallelism.expert=8", true},
        {"parallelism.expert=4 parallelism.pipeline=2 parallelism.data_parallel=zero1", true},
        {"parallelism.expert=4 parallelism.context=2 parallelism.pipeline=2", true},
        {"parallelism.expert=4 parallelism.tensor=2 parallelism.sequence=true parallelism.pipeline=2", true},
        {"parallelism.expert=8 training.recompute=full offload.activations=cpu", false},
        {"parallelism.expert=8 parallelism.data_parallel=fsdp training.recompute=full", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dts_result *full = simulate_text(experts, rows[i].settings);
        dts_diag *diag = dts_diag_new();
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "%s", rows[i].settings);
        dts_override overrides[MOST_OVERRIDES];
        size_t count = split_settings(settings, overrides);
        static const char *const roots[] = {"."};
        const dts_profile_paths profiles = {.roots = roots, .count = 1};
        dts_scenario *scenario = NULL;
        dts_status status =
            dts_scenario_parse(experts, strlen(experts), "test", overrides, count, &profiles, &scenario, diag);
        assert_int_equal(status, DTS_OK);
        dts_block_cache *blocks = dts_block_cache_new(0);
        dts_screening s = {0};
        status = dts_screen_values(dts_scenario_get(scenario), blocks, NULL, &s, diag);
        assert_ok(status, diag);
        assert_close(s.time_s, full->iteration_time_s, 0.03, 0);
        assert_int_equal(s.memory_known, rows[i].memory);
        if (rows[i].memory) {
            assert_close(s.allocated_B / (1024.0 * 1024.0 * 1024.0), full->peak_allocated_gib, 0.01, 0);
        }
        assert_true(s.tasks < full->simulation.tasks / 3);
        dts_block_cache_free(blocks);
        dts_scenario_free(scenario);
        dts_result_free(full);
    }
}

/* Closed forms and orders that are made for measured passes see these waits: in the chain of a pass. */
static void chains_have_the_waits(void **state) {
    (void)state;
    static const double host_s[] = {0, 2e-3};
    dts_scenario *scenario = parse_text(experts);
    double chains_s[2];
    for (int i = 0; i < 2; i++) {
        dts_scenario_values values = *dts_scenario_get(scenario);
        values.parallelism.expert = 8;
        values.stack.experts_host_s = host_s[i];
        const dts_job job = dts_scenario_job(&values);
        const dts_selections none = {.count = 1};
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_diag *diag = dts_diag_new();
        dts_plan plan;
        assert_int_equal(dts_plan_outline(&job, arena, &plan, diag), DTS_OK);
        dts_block_costs costs;
        assert_ok(dts_block_costs_of(&plan, &none, arena, arena, &costs, diag), diag);
        chains_s[i] = dts_pass_chain_s(&plan, &costs.parts[DTS_PART_EXPERT_LAYER].forward, false);
        dts_arena_free(arena);
    }
    assert_close(chains_s[1] - chains_s[0], host_s[1], 1e-9, 0);
    dts_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_with_reads_are_exact),
        cmocka_unit_test(waits_for_counts_are_told_apart),
        cmocka_unit_test(chains_have_the_waits),
        cmocka_unit_test(a_first_look_takes_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
