/* Choosing among measured plans: for every model, cluster and batch of which several layouts were measured, the plan
 * that dtsim ranks first is compared with the one that was fastest.
 *
 *   regret = measured time of the chosen plan / measured time of the fastest - 1
 *
 * Beside it stands what a simple rule would have chosen: the most data parallelism, then the largest microbatch. */
#include <stdlib.h>

#include "check.h"
#include "config/table.h"
#include "run/run.h"

enum { MOST_ROWS = 128 };

typedef struct plan_row {
    const char *id;
    char group[256];                /* the columns that are no choice of the plan */
    double measured_s, predicted_s; /* for one sample */
    double data, micro_batch;
    bool fits, done;
} plan_row;

static const char *cell(const dts_table *table, size_t row, const char *column) {
    size_t index = dts_table_column(table, column);
    return index == SIZE_MAX ? "" : table->cells[row * table->columns + index].text;
}

static bool is_choice(const char *column) {
    return strncmp(column, "parallelism.", 12) == 0 || strcmp(column, "training.micro_batch") == 0 ||
           strcmp(column, "training.global_batch") == 0 || strcmp(column, "training.recompute") == 0 ||
           strcmp(column, "id") == 0 || strcmp(column, "source") == 0 || strcmp(column, "note") == 0 ||
           strncmp(column, "measured.", 9) == 0;
}

/* Simulates a row; false when it is refused. */
static bool simulate(const dts_table *table, size_t row, plan_row *out) {
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_override overrides[64];
    size_t count = 0;
    for (size_t i = 0; i < table->columns; i++) {
        const char *key = table->header[i].text;
        const char *text = table->cells[row * table->columns + i].text;
        bool says = strchr(key, '.') != NULL && strncmp(key, "measured.", 9) != 0 && text[0] != '\0';
        if (says) {
            overrides[count++] = (dts_override){.key = key, .value = text};
        }
    }
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    bool good = dts_scenario_load(NULL, overrides, count, &profiles, &scenario, diag) == DTS_OK &&
                dts_run(scenario, NULL, &result, diag) == DTS_OK;
    if (good) {
        out->predicted_s = result->iteration_time_s / (double)result->global_batch;
        out->fits = result->fits;
    } else {
        print_message("%s: %s\n", out->id, dts_diag_get(diag, 0)->text);
    }
    dts_result_free(result);
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    return good;
}

static void read_row(const dts_table *table, size_t row, plan_row *out) {
    *out = (plan_row){.id = cell(table, row, "id")};
    size_t length = 0;
    for (size_t i = 0; i < table->columns; i++) {
        if (!is_choice(table->header[i].text)) {
            length += (size_t)snprintf(out->group + length, sizeof out->group - length, " %s",
                                       table->cells[row * table->columns + i].text);
            assert_true(length < sizeof out->group);
        }
    }
    out->measured_s = strtod(cell(table, row, "measured.iteration_s"), NULL) /
                      strtod(cell(table, row, "training.global_batch"), NULL);
    out->data = strtod(cell(table, row, "parallelism.data"), NULL);
    out->micro_batch = strtod(cell(table, row, "training.micro_batch"), NULL);
}

/* One group's regrets: of dtsim's choice, and of the simple rule's. */
static bool judge(plan_row *rows, size_t count, size_t first, double *of_dtsim, double *of_rule) {
    const plan_row *chosen = &rows[first], *fastest = &rows[first], *ruled = &rows[first];
    size_t members = 0;
    for (size_t i = first; i < count; i++) {
        if (strcmp(rows[i].group, rows[first].group) == 0) {
            const plan_row *r = &rows[i];
            chosen = r->predicted_s < chosen->predicted_s ? r : chosen;
            fastest = r->measured_s < fastest->measured_s ? r : fastest;
            bool more = r->data > ruled->data || (r->data == ruled->data && r->micro_batch > ruled->micro_batch);
            ruled = more ? r : ruled;
            rows[i].done = true;
            members++;
        }
    }
    *of_dtsim = chosen->measured_s / fastest->measured_s - 1;
    *of_rule = ruled->measured_s / fastest->measured_s - 1;
    if (members > 1) {
        print_message("  %2zu plans: chosen %s, fastest %s, regret %.1f %% (rule: %.1f %%) [%s]\n", members, chosen->id,
                      fastest->id, 100 * *of_dtsim, 100 * *of_rule, rows[first].group);
    }
    return members > 1;
}

static double mean_regret(const char *path) {
    static plan_row rows[MOST_ROWS];
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_table table = {0};
    assert_int_equal(dts_table_read(path, arena, &table, diag), DTS_OK);
    assert_true(table.rows <= MOST_ROWS);
    size_t count = 0, unfit = 0, groups = 0;
    for (size_t i = 0; i < table.rows; i++) {
        read_row(&table, i, &rows[count]);
        if (simulate(&table, i, &rows[count])) {
            unfit += !rows[count].fits;
            count++;
        }
    }
    double sum = 0, ruled = 0;
    print_message("%s: %zu rows simulated of %zu, %zu said not to fit\n", path, count, table.rows, unfit);
    for (size_t i = 0; i < count; i++) {
        double regret = 0, rule = 0;
        if (!rows[i].done && judge(rows, count, i, &regret, &rule)) {
            sum += regret;
            ruled += rule;
            groups++;
        }
    }
    assert_true(groups > 1);
    print_message("  mean regret %.2f %% over %zu groups; of the rule %.2f %%\n", 100 * sum / (double)groups, groups,
                  100 * ruled / (double)groups);
    assert_int_equal(unfit, 0); /* all of them ran */
    dts_diag_free(diag);
    dts_arena_free(arena);
    return sum / (double)groups;
}

static void megatron_deepspeed(void **state) {
    (void)state;
    assert_true(mean_regret("scenarios/published/megatron-deepspeed-a100-3d.csv") <= 0.03);
}

static void bloom(void **state) {
    (void)state;
    if (getenv("DTSIM_LARGE_TABLES") == NULL) { /* set by ctest, but not under a sanitizer */
        skip();
    }
    assert_true(mean_regret("scenarios/published/bloom-tuning-2022.csv") <= 0.03);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(megatron_deepspeed), cmocka_unit_test(bloom)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
