/* The published tables: every row is simulated and the errors stay within what was reached when the table was added.
 * The bounds keep a change from making a table worse unnoticed; they are no claim about other runs. */
#include "check.h"
#include "report/validate.h"

typedef struct bound {
    const char *table;
    size_t rows;       /* simulated; all of the table's unless said otherwise */
    double time_pct;   /* most MAPE of iteration_s */
    double memory_pct; /* most MAPE of peak_allocated_gib */
    double spearman;   /* least rank correlation of iteration_s */
} bound;

static const bound bounds[] = {
    {"scenarios/published/gcp-ptd-2022.csv", 204, 12, 6.5, 0.99},
    {"scenarios/published/gcp-ptd-2022-held-out.csv", 95, 12, 6, 0.99},
    {"scenarios/published/gcp-ptd-2022-offload.csv", 41, 15, 24, 0.98},
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

static void published_tables_stay_within_their_errors(void **state) {
    (void)state;
    const char *roots[] = {"."};
    dts_profile_paths profiles = {.roots = roots, .count = 1};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        dts_diag *diag = dts_diag_new();
        dts_validation *v = NULL;
        assert_int_equal(dts_validate(&bounds[i].table, 1, &profiles, NULL, NULL, &v, diag), DTS_OK);
        dts_validate_summary time = summary_of(v, metric_named("iteration_s"), -1);
        dts_validate_summary memory = summary_of(v, metric_named("peak_allocated_gib"), -1);
        dts_validate_summary guess = summary_of(v, metric_named("iteration_s"), DTS_BASELINE_BUBBLE);
        print_message("%s: time %.1f %% (bias %+.1f %%, rank %.3f; one constant with bubble %.1f %%), memory %.1f %%\n",
                      bounds[i].table, time.mape_pct, time.bias_pct, time.spearman, guess.mape_pct, memory.mape_pct);
        assert_int_equal(v->failure_count, 0);
        assert_int_equal(v->tables[0].simulated, bounds[i].rows);
        assert_true(time.mape_pct <= bounds[i].time_pct && time.spearman >= bounds[i].spearman);
        assert_true(memory.mape_pct <= bounds[i].memory_pct);
        assert_true(time.mape_pct < guess.mape_pct);
        dts_validation_free(v);
        dts_diag_free(diag);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_tables_stay_within_their_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
