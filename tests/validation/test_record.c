/* The ranges that `run` prints hold what they promise: four of five runs of a source lie in the range that all other
 * sources give, for each source in turn. */
#include "check.h"
#include "report/evidence.h"

static dts_evidence read_record(dts_arena *arena) {
    dts_diag *diag = dts_diag_new();
    dts_evidence e;
    assert_int_equal(dts_evidence_read("scenarios/published/record/runs.csv", arena, &e, diag), DTS_OK);
    dts_diag_free(diag);
    return e;
}

static void left_out_sources_lie_in_their_ranges(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_evidence e = read_record(arena);
    double inside = 0, width = 0, score = 0, total = 0;
    for (size_t i = 0; i < e.count; i++) {
        double low = 0, high = 0;
        assert_true(dts_evidence_range(&e, &e.runs[i], e.runs[i].source, 0.8, &low, &high));
        const double ratio = e.runs[i].ratio, share = e.share[i];
        const double beyond = ratio < low ? log(low / ratio) : ratio > high ? log(ratio / high) : 0;
        inside += beyond > 0 ? 0 : share;
        width += share * log(high / low);
        score += share * (log(high / low) + 10 * beyond); /* 2 / (1 - 0.8) */
        total += share;
    }
    print_message("%zu runs: %.1f %% inside, mean width a factor of %.2f, score %.3f\n", e.count, 100 * inside / total,
                  exp(width / total), score / total);
    assert_true(e.count > 900);
    assert_close(inside / total, 0.8, 0, 0.04);
    dts_arena_free(arena);
}

/* How full a GPU may be is judged alike: what the figures of other sources put into the lowest and the highest tenth.
 */
static void left_out_memory_is_in_the_tails_as_often_as_it_should_be(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_evidence e = read_record(arena);
    double low = 0, high = 0, total = 0, count = 0;
    for (size_t i = 0; i < e.count; i++) {
        if (e.memory_share[i] > 0) {
            const double within = dts_evidence_memory_within(&e, e.runs[i].source, e.runs[i].memory);
            assert_true(within >= 0);
            low += within < 0.1 ? e.memory_share[i] : 0;
            high += within > 0.9 ? e.memory_share[i] : 0;
            total += e.memory_share[i];
            count++;
        }
    }
    print_message("%.0f figures of memory: %.1f %% lower than a tenth, %.1f %% higher than nine tenths of the others\n",
                  count, 100 * low / total, 100 * high / total);
    assert_true(count > 200);
    assert_close(low / total, 0.1, 0, 0.05);
    assert_close(high / total, 0.1, 0, 0.05);
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_out_sources_lie_in_their_ranges),
        cmocka_unit_test(left_out_memory_is_in_the_tails_as_often_as_it_should_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
