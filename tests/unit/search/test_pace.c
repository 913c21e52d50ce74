/* The lengths of orders by their longest chains, against the engine's. */
#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "check.h"
#include "run/ideal.h"
#include "search/pace.h"

/* As the engine runs the order with the passes of one class. */
static double simulated(const dts_pace *pace) {
    const double *s = pace->classes[0].passes_s;
    const dts_schedule_shape shape = {.stages = pace->stages,
                                      .microbatches = pace->microbatches,
                                      .chunks = pace->chunks,
                                      .forward = s[0],
                                      .backward_input = s[1],
                                      .backward_weight = s[2],
                                      .latency = pace->latency_s,
                                      .input_frees = pace->input_frees};
    const dts_ideal_costs costs = {s[0], s[1], s[2], pace->latency_s};
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_schedule order;
    dts_ideal ideal;
    assert_int_equal(dts_schedule_build(pace->method->name, &shape, arena, &order, diag), DTS_OK);
    assert_int_equal(dts_ideal_run(&order, &costs, arena, &ideal, diag), DTS_OK);
    const double out = ideal.makespan;
    dts_diag_free(diag);
    dts_arena_free(arena);
    return out;
}

static dts_pace pace_of(const char *schedule, int stages, int chunks, int microbatches) {
    dts_pace out = {.method = dts_schedule_find(schedule),
                    .stages = stages,
                    .chunks = chunks,
                    .microbatches = microbatches,
                    .input_frees = 0.5,
                    .class_count = 1};
    assert_non_null(out.method);
    out.classes[0].last = stages - 1;
    return out;
}

static void set_passes(dts_pace *pace, double forward, double input, double weight) {
    const double passes_s[DTS_PACE_PARTS] = {forward, input, weight};
    memcpy(pace->classes[0].passes_s, passes_s, sizeof passes_s);
}

/* Passes that lie between those of the walks, and more microbatches than are walked. */
static void lengths_are_those_of_the_engine(void **state) {
    (void)state;
    static const char *const schedules[] = {"v-min", "v-half", "1f1b-v", "zbv", "zb-h2", "zb1p-heuristic"};
    static const double passes[][3] = {{1, 1, 1}, {1, 1.283, 0.871}, {0.93, 2.117, 0.907}, {1.414, 1.707, 0.333}};
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    for (int stages = 3; stages <= 8; stages += 5) {
        dts_pace_cache *cache = dts_pace_cache_new(arena);
        assert_non_null(cache);
        for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
            const int chunks = i < 4 ? 2 : 1;
            double worst = 0;
            for (size_t j = 0; j < 16; j++) {
                dts_pace pace = pace_of(schedules[i], stages, chunks, j < 8 ? 2 * stages : 12 * stages);
                const double *s = passes[j % 4];
                set_passes(&pace, s[0], s[1], s[2]);
                pace.latency_s = j % 8 < 4 ? 0 : 0.0713;
                const double length_s = dts_pace_length_s(cache, &pace);
                worst = fmax(worst, fabs(length_s / simulated(&pace) - 1));
                assert_true(fabs(dts_pace_length_s(cache, &pace) - length_s) <= 0); /* from the cache */
            }
            print_message("%s of %d stages: off by %.2f %% at most\n", schedules[i], stages, 100 * worst);
            assert_true(worst < 0.01);
        }
    }
    dts_arena_free(arena);
}

/* (m + p - 1) (F + B + W) of equal ranks; the slowest rank sets the pace of unequal ones, and what a pass does ahead of
 * its input is not waited for on the way there and back. */
static void chains_go_through_the_busiest_rank(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_pace_cache *cache = dts_pace_cache_new(arena);
    dts_pace pace = pace_of("1f1b", 4, 1, 16);
    set_passes(&pace, 1, 1, 1);
    assert_true(fabs(dts_pace_length_s(cache, &pace) - 19 * 3) < 1e-9);
    pace.classes[0].passes_s[3] = 0.25; /* of 1 */
    assert_true(fabs(dts_pace_length_s(cache, &pace) - (19 * 3 - 3 * 0.25)) < 1e-9);
    pace.classes[0].passes_s[3] = 0;
    pace.class_count = 2;
    pace.classes[1] = pace.classes[0];
    pace.classes[0].last = 2;
    for (int part = 0; part < 3; part++) {
        pace.classes[1].passes_s[part] = 2;
    }
    assert_true(fabs(dts_pace_length_s(cache, &pace) - (16 * 6 + 3 * 3)) < 1e-9);
    dts_arena_free(arena);
}

static void orders_that_do_not_exist_have_no_length(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_pace_cache *cache = dts_pace_cache_new(arena);
    dts_pace pace = pace_of("v-min", 4, 3, 16);
    set_passes(&pace, 1, 1, 1);
    assert_true(dts_pace_length_s(cache, &pace) < 0);
    set_passes(&pace, 0, 0, 0);
    assert_true(dts_pace_length_s(cache, &pace) < 0);
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lengths_are_those_of_the_engine),
                                       cmocka_unit_test(chains_go_through_the_busiest_rank),
                                       cmocka_unit_test(orders_that_do_not_exist_have_no_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
