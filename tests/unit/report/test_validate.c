/* Statistics and baselines of `dtsim validate`, against numbers worked out by hand. */
#include "check.h"
#include "report/validate.h"

enum { ITERATION = 0, RATE = 1, DEVICE_MEMORY = 4 };

static dts_validation *validation_of(const dts_validate_record *records, size_t count, size_t tables) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_validation *v = dts_arena_alloc(arena, sizeof *v);
    v->arena = arena;
    v->tables = dts_arena_array(arena, tables, sizeof *v->tables);
    v->table_count = tables;
    v->records = dts_arena_array(arena, count, sizeof *v->records);
    for (size_t i = 0; i < count; i++) {
        v->records[i] = records[i];
    }
    v->record_count = count;
    return v;
}

static void sums_up_errors(void **state) {
    (void)state;
    /* errors +10, -20, +30, 0, -50 % */
    const dts_validate_record records[] = {
        {.metric = ITERATION, .measured = 10, .predicted = 11},
        {.metric = ITERATION, .measured = 20, .predicted = 16},
        {.metric = ITERATION, .measured = 30, .predicted = 39},
        {.metric = ITERATION, .measured = 40, .predicted = 40},
        {.metric = ITERATION, .measured = 50, .predicted = 25},
        {.metric = DEVICE_MEMORY, .measured = 4, .predicted = 5},
    };
    dts_validation *v = validation_of(records, 6, 1);
    dts_validate_summary s;
    assert_int_equal(dts_validation_summary(v, ITERATION, -1, &s), DTS_OK);
    assert_int_equal(s.n, 5);
    assert_close(s.mape_pct, 22, 1e-12, 0);
    assert_close(s.median_ape_pct, 20, 1e-12, 0);
    assert_close(s.p90_ape_pct, 42, 1e-12, 0); /* between 30 and 50, at 4 · 0.9 = 3.6 */
    assert_close(s.bias_pct, -6, 1e-12, 0);
    /* ranks 1 2 3 4 5 against 1 2 4 5 3: 1 - 6·(0+0+1+1+4)/(5·24) = 0.7 */
    assert_close(s.spearman, 0.7, 1e-12, 0);
    assert_int_equal(dts_validation_summary(v, DEVICE_MEMORY, -1, &s), DTS_OK);
    assert_int_equal(s.n, 1);
    assert_close(s.bias_pct, 25, 1e-12, 0);
    assert_true(isnan(s.spearman));
    assert_true(isnan(s.time_mape_pct));
    assert_int_equal(dts_validation_summary(v, RATE, -1, &s), DTS_OK);
    assert_int_equal(s.n, 0);
    dts_validation_free(v);
}

/* Twice the rate is half the time. */
static void errors_of_rates_are_told_as_those_of_time_too(void **state) {
    (void)state;
    const dts_validate_record records[] = {{.id = "a", .metric = RATE, .measured = 10, .predicted = 20},
                                           {.id = "b", .metric = RATE, .measured = 10, .predicted = 8},
                                           {.id = "c", .metric = ITERATION, .measured = 10, .predicted = 5}};
    dts_validation *v = validation_of(records, sizeof records / sizeof records[0], 1);
    dts_validate_summary s;
    assert_int_equal(dts_validation_summary(v, RATE, -1, &s), DTS_OK);
    assert_close(s.mape_pct, 60, 1e-12, 0); /* +100 %, -20 % */
    assert_close(s.bias_pct, 40, 1e-12, 0);
    assert_close(s.time_mape_pct, 37.5, 1e-12, 0); /* -50 %, +25 % */
    assert_close(s.time_bias_pct, -12.5, 1e-12, 0);
    assert_int_equal(dts_validation_summary(v, ITERATION, -1, &s), DTS_OK);
    assert_close(s.time_mape_pct, 50, 1e-12, 0);
    assert_close(s.time_bias_pct, -50, 1e-12, 0);
    dts_validation_free(v);
}

static void groups_and_worst_rows_are_those_of_the_records(void **state) {
    (void)state;
    const dts_validate_record records[] = {
        {.id = "a", .metric = ITERATION, .measured = 10, .predicted = 11},              /* +10 % */
        {.id = "b", .metric = ITERATION, .measured = 20, .predicted = 16, .group = 1},  /* -20 % */
        {.id = "c", .metric = ITERATION, .measured = 30, .predicted = 39, .group = 1},  /* +30 % */
        {.id = "d", .metric = DEVICE_MEMORY, .measured = 4, .predicted = 2, .group = 1} /* -50 % */
    };
    dts_validation *v = validation_of(records, 4, 1);
    v->tables[0] = (dts_validate_table){.path = "t.csv", .rows = 3, .simulated = 3};
    const char *groups[] = {"one", "two"};
    v->by = "cluster";
    v->groups = groups;
    v->group_count = 2;
    v->worst = 2;
    dts_validate_summary s;
    assert_int_equal(dts_validation_group_summary(v, ITERATION, 1, &s), DTS_OK);
    assert_int_equal(s.n, 2);
    assert_close(s.mape_pct, 25, 1e-12, 0);
    assert_close(s.bias_pct, 5, 1e-12, 0);
    size_t worst[2];
    assert_int_equal(dts_validation_worst(v, worst), 2);
    assert_int_equal(worst[0], 3);
    assert_int_equal(worst[1], 2);
    assert_int_equal(dts_validation_fit_baselines(v), DTS_OK);
    dts_text text = {0};
    assert_int_equal(dts_validation_json(v, &text), DTS_OK);
    const char *at = strstr(dts_text_string(&text), "\"worst\"");
    assert_non_null(at);
    assert_non_null(strstr(at, "\"d\""));
    assert_null(strstr(at, "\"b\""));
    assert_non_null(strstr(dts_text_string(&text), "\"groups\""));
    dts_text_free(&text);
    dts_validation_free(v);
}

static void fits_one_constant_per_table(void **state) {
    (void)state;
    /* Table 0: measured times are 2, 2 and 5 times the ideal ones: the best single constant is 2 (utilisation 0.5).
     * With the bubble factor the third row's 2.5 is explained: constant 2 again, without any error. The rate of the
     * fourth row, 100 tokens per GPU and iteration, belongs to a time of 4 = 2 · 2. Table 1: one row, ratio 4. */
    const dts_validate_record records[] = {
        {.metric = ITERATION, .measured = 2, .predicted = 2, .ideal_s = 1, .bubble_factor = 1},
        {.metric = ITERATION, .measured = 6, .predicted = 6, .ideal_s = 3, .bubble_factor = 1},
        {.metric = ITERATION, .measured = 10, .predicted = 10, .ideal_s = 2, .bubble_factor = 2.5},
        {.metric = RATE, .measured = 25, .predicted = 25, .ideal_s = 2, .bubble_factor = 1, .tokens_per_gpu = 100},
        {.metric = DEVICE_MEMORY, .measured = 7, .predicted = 7, .ideal_s = 2, .bubble_factor = 1},
        {.table = 1, .metric = ITERATION, .measured = 4, .predicted = 4, .ideal_s = 1, .bubble_factor = 1},
    };
    dts_validation *v = validation_of(records, 6, 2);
    assert_int_equal(dts_validation_fit_baselines(v), DTS_OK);
    assert_close(v->tables[0].utilisation[DTS_BASELINE_UTILISATION], 0.5, 1e-12, 0);
    assert_close(v->tables[0].utilisation[DTS_BASELINE_BUBBLE], 0.5, 1e-12, 0);
    assert_close(v->tables[1].utilisation[DTS_BASELINE_UTILISATION], 0.25, 1e-12, 0);
    assert_close(v->records[2].baseline[DTS_BASELINE_UTILISATION], 4, 1e-12, 0);
    assert_close(v->records[2].baseline[DTS_BASELINE_BUBBLE], 10, 1e-12, 0);
    assert_close(v->records[3].baseline[DTS_BASELINE_UTILISATION], 25, 1e-12, 0);
    assert_true(isnan(v->records[4].baseline[DTS_BASELINE_UTILISATION]));
    assert_close(v->records[5].baseline[DTS_BASELINE_UTILISATION], 4, 1e-12, 0);
    dts_validate_summary s;
    assert_int_equal(dts_validation_summary(v, ITERATION, DTS_BASELINE_UTILISATION, &s), DTS_OK);
    assert_int_equal(s.n, 4);
    assert_close(s.mape_pct, 15, 1e-12, 0); /* 0, 0, 60 %, 0 */
    assert_int_equal(dts_validation_summary(v, ITERATION, DTS_BASELINE_BUBBLE, &s), DTS_OK);
    assert_close(s.mape_pct, 0, 0, 1e-12);
    dts_validation_free(v);
}

static void names_rows_above_the_peak(void **state) {
    (void)state;
    const dts_validate_record records[] = {
        {.id = "possible", .metric = ITERATION, .measured = 2, .predicted = 2, .ideal_s = 1},
        {.id = "short", .metric = ITERATION, .measured = 2, .predicted = 2, .ideal_s = 2.5},
        {.id = "rate", .metric = RATE, .measured = 50, .predicted = 25, .ideal_s = 3, .tokens_per_gpu = 100},
        {.id = "bytes", .metric = DEVICE_MEMORY, .measured = 7, .predicted = 7, .ideal_s = 9},
    };
    dts_validation *v = validation_of(records, sizeof records / sizeof records[0], 1);
    v->tables[0] = (dts_validate_table){.path = "t.csv", .rows = 4, .simulated = 4};
    assert_close(dts_validate_measured_mfu(&records[0]), 0.5, 1e-12, 0);
    assert_close(dts_validate_measured_mfu(&records[2]), 1.5, 1e-12, 0);
    assert_true(isnan(dts_validate_measured_mfu(&records[3])));
    dts_text text = {0};
    const dts_style style = {.width = 200};
    assert_int_equal(dts_validation_text(v, &style, &text), DTS_OK);
    const char *told = strstr(dts_text_string(&text), "Measured above the peak");
    assert_non_null(told);
    assert_non_null(strstr(told, "  short (125 %), rate (150 %): "));
    dts_text_free(&text);
    dts_validation_free(v);
}

static void writes_nothing_wrong_about_nothing(void **state) {
    (void)state;
    dts_validation *v = validation_of(NULL, 0, 1);
    v->tables[0] = (dts_validate_table){.path = "empty.csv"};
    assert_int_equal(dts_validation_fit_baselines(v), DTS_OK);
    dts_text text = {0};
    const dts_style style = {.width = 80};
    assert_int_equal(dts_validation_text(v, &style, &text), DTS_OK);
    assert_string_equal(dts_text_string(&text), "empty.csv: 0 rows, 0 simulated, 0 not\n");
    dts_text_clear(&text);
    assert_int_equal(dts_validation_json(v, &text), DTS_OK);
    assert_non_null(strstr(dts_text_string(&text), "\"utilisation\":\tnull"));
    dts_text_free(&text);
    dts_validation_free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_up_errors),
        cmocka_unit_test(errors_of_rates_are_told_as_those_of_time_too),
        cmocka_unit_test(groups_and_worst_rows_are_those_of_the_records),
        cmocka_unit_test(fits_one_constant_per_table),
        cmocka_unit_test(names_rows_above_the_peak),
        cmocka_unit_test(writes_nothing_wrong_about_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
