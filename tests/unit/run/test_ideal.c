/* Simulated schedules against the golden numbers: start times, makespan, span, idle time and peak of activations, and
 * closed forms in their stated ranges. */
#include "run/ideal.h"

#include "unit/schedule/golden.h"

static const double exact = 1e-9;

static void run(const dts_schedule *schedule, double forward, double input, double weight, double latency,
                dts_arena *arena, dts_ideal *out) {
    dts_ideal_costs costs = {forward, input, weight, latency};
    dts_diag *diag = dts_diag_new();
    if (dts_ideal_run(schedule, &costs, arena, out, diag) != DTS_OK) {
        print_error("%s: %s\n", schedule->name, dts_diag_count(diag) > 0 ? dts_diag_get(diag, 0)->text : "no message");
        fail();
    }
    dts_diag_free(diag);
}

static void compare_rank(const dts_schedule *schedule, const dts_ideal *got, const cJSON *want, int rank) {
    const cJSON *idle = cJSON_GetObjectItemCaseSensitive(want, "idle");
    const cJSON *peak = cJSON_GetObjectItemCaseSensitive(want, "peak_activation");
    assert_close(got->idle[rank], cJSON_GetArrayItem(idle, rank)->valuedouble, 0, exact);
    assert_close(got->peak_activation[rank], cJSON_GetArrayItem(peak, rank)->valuedouble, 0, exact);
    const cJSON *starts = cJSON_GetObjectItemCaseSensitive(want, "start"); /* only in the small cases */
    const cJSON *start;
    size_t index = 0;
    cJSON_ArrayForEach(start, cJSON_GetArrayItem(starts, rank)) {
        assert_close(got->start[rank][index], start->valuedouble, 0, exact);
        index += dts_schedule_block_size(schedule, rank, index);
    }
    assert_true(starts == NULL || index == schedule->op_count[rank]);
}

static void start_times_equal_the_evaluator(void **state) {
    (void)state;
    cJSON *document = golden_read();
    int compared = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(document, "cases")) {
        const dts_schedule_method *method = golden_method(golden_string(item, "schedule"));
        const cJSON *want;
        cJSON_ArrayForEach(want, cJSON_GetObjectItemCaseSensitive(item, "expected")) {
            double f, b, w, c;
            assert_int_equal(sscanf(want->string, "tF=%lf,tB=%lf,tW=%lf,c=%lf", &f, &b, &w, &c), 4);
            assert_non_null(method);
            dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
            dts_schedule schedule;
            golden_build_case(item, method, arena, &schedule);
            dts_ideal got;
            run(&schedule, f, b, w, c, arena, &got);
            assert_close(got.makespan, cJSON_GetObjectItemCaseSensitive(want, "makespan")->valuedouble, 0, exact);
            for (int rank = 0; rank < schedule.shape.stages; rank++) {
                compare_rank(&schedule, &got, want, rank);
            }
            compared++;
            dts_arena_free(arena);
        }
    }
    cJSON_Delete(document);
    assert_int_equal(compared, 303);
}

static bool near(double got, double want, double tolerance) {
    return fabs(got - want) <= tolerance;
}

/* One row: schedule,p,m,v,tF,tB,tW,c,makespan,bubble_fraction,peak_stage0,peak_max,origin,max_stage_span,layout.
 * The table has nine decimals at most. */
static bool row_is_equal(char *line) {
    char *field[15];
    size_t fields = 0;
    for (char *at = line; at != NULL && fields < 15; fields++) {
        field[fields] = at;
        at = strchr(at, ',');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    assert_int_equal(fields, 15);
    const dts_schedule_method *method = golden_method(field[0]);
    assert_non_null(method);
    double number[14] = {0};
    for (size_t i = 1; i < 14; i++) {
        number[i] = strtod(field[i], NULL);
    }
    dts_schedule_shape shape = {.stages = (int)number[1],
                                .microbatches = (int)number[2],
                                .chunks = (int)number[3],
                                .forward = number[4],
                                .backward_input = number[5],
                                .backward_weight = number[6],
                                .latency = number[7]};
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_schedule schedule;
    golden_build(method, &shape, arena, &schedule);
    dts_ideal got;
    run(&schedule, number[4], number[5], number[6], number[7], arena, &got);
    double peak = 0;
    for (int rank = 0; rank < shape.stages; rank++) {
        peak = fmax(peak, got.peak_activation[rank]);
    }
    bool equal = near(got.makespan, number[8], exact) && near(got.bubble_fraction, number[9], exact) &&
                 near(got.peak_activation[0], number[10], exact) && near(peak, number[11], exact) &&
                 near(got.max_stage_span, number[13], exact);
    if (!equal) {
        print_error("%s p=%s m=%s v=%s F=%s B=%s W=%s c=%s: makespan %.12g instead of %s, span %.12g instead of %s\n",
                    field[0], field[1], field[2], field[3], field[4], field[5], field[6], field[7], got.makespan,
                    field[8], got.max_stage_span, field[13]);
    }
    dts_arena_free(arena);
    return equal;
}

static void compare_table(const char *path, int rows_expected) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[512];
    assert_non_null(fgets(line, sizeof line, file)); /* the heading */
    int rows = 0;
    int wrong = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        wrong += row_is_equal(line) ? 0 : 1;
        rows++;
    }
    fclose(file);
    assert_int_equal(wrong, 0);
    assert_int_equal(rows, rows_expected);
}

static void makespans_equal_the_table(void **state) {
    (void)state;
    compare_table("tests/golden/schedules/pipeline_makespans.csv", 3930);
}

static void makespans_of_more_stages_equal_the_table(void **state) {
    (void)state;
    compare_table("tests/golden/schedules/pipeline_makespans_large.csv", 382);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_times_equal_the_evaluator),
        cmocka_unit_test(makespans_equal_the_table),
        cmocka_unit_test(makespans_of_more_stages_equal_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
