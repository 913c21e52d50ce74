/* The published tables: every row is simulated and the errors stay within what was reached when the table was added.
 * The bounds keep a change from making a table worse unnoticed; they are no claim about other runs. */
#include <stdlib.h>

#include "check.h"
#include "report/evidence.h"
#include "report/validate.h"

typedef struct bound {
    const char *table;
    size_t rows;             /* that can be simulated */
    size_t failures;         /* rows that this version refuses */
    const char *time_metric; /* "iteration_s" or "tokens_per_s_per_gpu" */
    double time_pct;         /* most MAPE of it */
    double spearman;         /* least rank correlation of it */
    const char *memory_metric;
    double memory_pct;     /* most MAPE of it */
    bool beats_guess;      /* better than one fitted utilisation with the bubble */
    const char *only_with; /* takes seconds, or a minute: only where the environment has this */
} bound;

#define FOLDER "scenarios/published/"

static const bound bounds[] = {
    {FOLDER "gcp-ptd-2022.csv", 204, 0, "iteration_s", 11, 0.99, "peak_allocated_gib", 3.5, true, NULL},
    {FOLDER "gcp-ptd-2022-held-out.csv", 95, 0, "iteration_s", 11, 0.99, "peak_allocated_gib", 3.5, true, NULL},
    {FOLDER "gcp-ptd-2022-offload.csv", 41, 0, "iteration_s", 12.5, 0.98, "peak_allocated_gib", 14, true, NULL},
    {FOLDER "llm-foundry-fsdp.csv", 85, 0, "tokens_per_s_per_gpu", 3.7, 0.99, NULL, 0, true, NULL},
    {FOLDER "megatron-core-b200.csv", 19, 0, "iteration_s", 5.7, 0.98, "peak_allocated_gib", 1.5, true, NULL},
    {FOLDER "seeds.csv", 20, 0, "iteration_s", 7, 0.95, "peak_device_gib", 2.5, true, NULL},
    {FOLDER "torchtitan.csv", 15, 0, "tokens_per_s_per_gpu", 6.3, 0.94, "peak_reserved_gib", 3, true, NULL},
    {FOLDER "torchtitan-4d.csv", 11, 0, "tokens_per_s_per_gpu", 10.8, 0.98, "peak_reserved_gib", 13.5, true, NULL},
    {FOLDER "trl-long-context.csv", 9, 0, "iteration_s", 4, 0.99, NULL, 0, true, NULL},
    {FOLDER "megatron-bridge.csv", 6, 0, "tokens_per_s_per_gpu", 4.5, 0.9, NULL, 0, false, "DTSIM_LARGE_TABLES"},
    {FOLDER "megatron-bridge-blackwell.csv", 62, 0, "tokens_per_s_per_gpu", 6.8, 0.98, NULL, 0, true, "DTSIM_THOROUGH"},
    {FOLDER "zero-bubble-2023.csv", 24, 0, "iteration_s", 5.5, 0.98, "peak_allocated_gib", 2.5, true, NULL},
    {FOLDER "megatron-deepspeed-a100-3d.csv", 22, 0, "iteration_s", 12.2, 0.97, NULL, 0, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "megatron-deepspeed-a100-single.csv", 100, 0, "iteration_s", 7.6, 0.98, NULL, 0, true, NULL},
    {FOLDER "korthikanti-2022.csv", 8, 0, "iteration_s", 2.3, 0.99, NULL, 0, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "narayanan-2021-table1.csv", 10, 0, "iteration_s", 3, 0.98, NULL, 0, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "bloom-tuning-2022.csv", 31, 0, "iteration_s", 8, 0.82, "peak_device_gib", 10.5, true,
     "DTSIM_LARGE_TABLES"},
    {FOLDER "well-known-runs.csv", 82, 0, "iteration_s", 9, 0.99, "peak_device_gib", 16, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "further-runs.csv", 112, 0, "iteration_s", 14.2, 0.97, "peak_allocated_gib", 13, true,
     "DTSIM_LARGE_TABLES"},
    {FOLDER "more-runs.csv", 83, 0, "iteration_s", 15, 0.95, "peak_allocated_gib", 5, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "recent-runs.csv", 63, 0, "iteration_s", 15.5, 0.97, "peak_allocated_gib", 8, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "latest-runs.csv", 81, 0, "iteration_s", 9.5, 0.98, "peak_reserved_gib", 9.5, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "sixth-runs.csv", 74, 0, "iteration_s", 31.5, 0.94, "peak_allocated_gib", 9.5, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "seventh-runs.csv", 47, 0, "iteration_s", 19.5, 0.94, "peak_reserved_gib", 15, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "other-gpus.csv", 41, 0, "iteration_s", 13.2, 0.93, NULL, 0, true, NULL},
    {FOLDER "neusight-2025.csv", 58, 0, "iteration_s", 7, 0.98, NULL, 0, true, "DTSIM_LARGE_TABLES"},
    {FOLDER "nvidia-bert.csv", 42, 0, "iteration_s", 8, 0.98, NULL, 0, true, "DTSIM_LARGE_TABLES"},
};

static dts_validate_summary summary_of(const dts_validation *v, int metric, int baseline) {
    dts_validate_summary s;
    assert_int_equal(dts_validation_summary(v, metric, baseline, &s), DTS_OK);
    return s;
}

static int metric_named(const char *name) {
    for (int i = 0; i < DTS_METRIC_COUNT; i++) {
        if (strcmp(dts_metrics[i].name, name) == 0) {
            return i;
        }
    }
    fail();
    return -1;
}

/* Runs of the record (report/evidence.h) took what it says, but for the last bits of a change of the model. */
static void check_record(const dts_evidence *record, const dts_validation *v) {
    for (size_t i = 0; i < record->count; i++) {
        const dts_published_run *old = &record->runs[i];
        for (size_t k = 0; k < v->record_count; k++) {
            const dts_published_run *now = &v->records[k].run;
            if (strcmp(now->table, old->table) != 0 || strcmp(now->id, old->id) != 0) {
                continue;
            }
            if (now->ratio > 0 && fabs(now->ratio / old->ratio - 1) > 0.02) {
                print_error(
                    "%s#%s takes %.4f times the prediction, %.4f in the record: tests/validation/write-record "
                    "writes it anew\n",
                    now->table, now->id, now->ratio, old->ratio);
                fail();
            }
            if ((now->memory > 0 || old->memory > 0) && !(fabs(now->memory / old->memory - 1) <= 0.02)) {
                print_error("%s#%s needs %.4f times the memory predicted, %.4f in the record: see above\n", now->table,
                            now->id, now->memory, old->memory);
                fail();
            }
        }
    }
}

static void check_table(const dts_evidence *record, const bound *b) {
    const char *roots[] = {"."};
    dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_validation *v = NULL;
    const dts_validate_request request = {.paths = &b->table, .path_count = 1, .profiles = &profiles, .threads = 2};
    assert_int_equal(dts_validate(&request, &v, diag), DTS_OK);
    dts_validate_summary time = summary_of(v, metric_named(b->time_metric), -1);
    dts_validate_summary guess = summary_of(v, metric_named(b->time_metric), DTS_BASELINE_BUBBLE);
    print_message("%s: %s %.1f %% (bias %+.1f %%, rank %.3f; one constant with bubble %.1f %%)\n", b->table,
                  b->time_metric, time.mape_pct, time.bias_pct, time.spearman, guess.mape_pct);
    assert_int_equal(v->failure_count, b->failures);
    assert_int_equal(v->tables[0].simulated, b->rows);
    assert_true(time.mape_pct <= b->time_pct && time.spearman >= b->spearman);
    assert_true(time.mape_pct < guess.mape_pct || !b->beats_guess);
    if (b->memory_metric != NULL) {
        dts_validate_summary memory = summary_of(v, metric_named(b->memory_metric), -1);
        print_message("  %s %.1f %%\n", b->memory_metric, memory.mape_pct);
        assert_true(memory.mape_pct <= b->memory_pct);
    }
    check_record(record, v);
    dts_validation_free(v);
    dts_diag_free(diag);
}

static void published_tables_stay_within_their_errors(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_evidence record;
    assert_int_equal(dts_evidence_read("scenarios/published/record/runs.csv", arena, &record, diag), DTS_OK);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        if (bounds[i].only_with == NULL || getenv(bounds[i].only_with) != NULL) {
            check_table(&record, &bounds[i]);
        }
    }
    dts_diag_free(diag);
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_tables_stay_within_their_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
