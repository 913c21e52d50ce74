/* Every rank by itself or one for all: the same, wherever nothing differs between ranks. Random legal scenarios of at
 * most 32 GPUs (draw.h); a scenario whose replicas lie differently on the nodes says so, and is left out.
 * DTSIM_PROPERTY_RUNS and _SEED as for the other property tests. */
#include <stdlib.h>

#include "draw.h"
#include "report/report.h"

enum { MOST_GPUS = 32 };

static bool warns(const dts_result *r, const char *of) {
    bool found = false;
    for (size_t i = 0; i < r->warning_count; i++) {
        found = found || strstr(r->warnings[i], of) != NULL;
    }
    return found;
}

static void check_same(const dts_result *folded, const dts_result *full) {
    assert_close(full->iteration_time_s, folded->iteration_time_s, 1e-5, 0);
    assert_close(full->hfu, folded->hfu, 0.001, 0);
    assert_close(sum_of_shares(&full->time_s), full->iteration_time_s, 1e-9, 1e-12);
    assert_close(full->peak_allocated_gib, folded->peak_allocated_gib, 1e-9, 0);
    assert_close(full->host_peak_gib, folded->host_peak_gib, 0.001, 1e-6);
    assert_close(full->ranks.critical_busy_s, full->ranks.least_busy_s, 0.001, 1e-9);
    assert_int_equal(full->ranks.count, full->gpus);
    for (size_t i = 0; i < folded->stage_count; i++) {
        assert_close(full->stages[i].peak_allocated_gib, folded->stages[i].peak_allocated_gib, 1e-9, 0);
    }
}

static void full_and_folded_ranks_agree(void **state) {
    (void)state;
    const char *runs_text = getenv("DTSIM_PROPERTY_RUNS");
    const char *seed_text = getenv("DTSIM_PROPERTY_SEED");
    uint64_t runs = runs_text == NULL ? 150 : strtoull(runs_text, NULL, 10);
    uint64_t seed = seed_text == NULL ? 1 : strtoull(seed_text, NULL, 10);
    uint64_t compared = 0, apart = 0, large = 0, refused = 0, differ = 0;
    dts_run_options options = {0};
    for (uint64_t i = 0; i < runs; i++) {
        drawn d = draw(seed + i);
        if (getenv("DTSIM_PROPERTY_SHOW") != NULL) {
            print_message("# seed %llu\n%s", (unsigned long long)(seed + i), d.text);
        }
        if (d.nodes * d.per_node > MOST_GPUS) {
            large++;
            continue;
        }
        if (is_parallel(&d, "dp")) { /* one process for all */
            refused++;
            continue;
        }
        if (d.differ) { /* ranks by themselves */
            differ++;
            continue;
        }
        dts_result *folded =
            simulate_with(&options, NULL, d.text, "fidelity.detail=kernel fidelity.ranks=folded", DTS_OK, NULL);
        dts_result *full = simulate_with(&options, NULL, d.text, "fidelity.ranks=full", DTS_OK, NULL);
        if (warns(folded, "in different ways")) {
            apart++;
        } else {
            check_same(folded, full);
            compared++;
        }
        dts_result_free(folded);
        dts_result_free(full);
    }
    print_message(
        "%llu compared, %llu placed differently, %llu too large, %llu without a rank for each GPU, %llu differ\n",
        (unsigned long long)compared, (unsigned long long)apart, (unsigned long long)large, (unsigned long long)refused,
        (unsigned long long)differ);
    assert_true(compared * 3 > runs);
}

/* ---- seeds ------------------------------------------------------------------------------------------------------ */

static const char *const ddp =
    "model: {profile: gpt, layers: 2, hidden: 512, heads: 8, vocab: 8000, max_positions: 1024}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 1}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 1024, precision: amp-bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: ddp}\n";

/* Without the warnings, which tell of keys that do nothing in the plan at hand. */
static char *json_of(const char *settings) {
    dts_run_options options = {0};
    dts_result *r = simulate_with(&options, NULL, ddp, settings, DTS_OK, NULL);
    dts_text text = {0};
    dts_report_options how = {0};
    assert_int_equal(dts_report_json(r, &how, &text), DTS_OK);
    char *copy = strdup(dts_text_string(&text));
    assert_non_null(copy);
    char *warnings = strstr(copy, "\"warnings\"");
    if (warnings != NULL) {
        *warnings = '\0';
    }
    dts_text_free(&text);
    dts_result_free(r);
    return copy;
}

static void a_seed_says_everything(void **state) {
    (void)state;
    char *a = json_of("cluster.jitter=0.1 fidelity.seed=7");
    char *same = json_of("cluster.jitter=0.1 fidelity.seed=7");
    char *other = json_of("cluster.jitter=0.1 fidelity.seed=8");
    assert_string_equal(a, same);
    assert_string_not_equal(a, other);
    assert_non_null(strstr(a, "\"seed\":\t7"));
    char *none = json_of("fidelity.ranks=full");
    char *zero = json_of(
        "fidelity.ranks=full cluster.jitter=0 fidelity.seed=9 "
        "cluster.stragglers=[{node:\t0,gpu:\t1,slowdown:\t1}]");
    assert_string_equal(none, zero);
    free(a);
    free(same);
    free(other);
    free(none);
    free(zero);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_and_folded_ranks_agree),
        cmocka_unit_test(a_seed_says_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
