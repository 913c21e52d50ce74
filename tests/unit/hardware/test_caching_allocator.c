/* The caching allocator against the rules and examples that PyTorch documents (c10/cuda/CUDACachingAllocator.cpp, the
 * comment at its head and "Note [Expandable Segments]"; documentation, "CUDA semantics"). */
#include "base/random.h"
#include "check.h"
#include "hardware/caching_allocator.h"

enum { KIB = 1024, MIB = 1024 * KIB };

static const int64_t PLENTY_B = INT64_C(1) << 40;

static dts_caching_allocator *allocator(bool expandable, int64_t capacity_B) {
    const dts_caching_rules rules = {.round_B = 512, .capacity_B = capacity_B, .expandable = expandable};
    dts_caching_allocator *a = dts_caching_new(&rules);
    assert_non_null(a);
    return a;
}

/* Asks for bytes of a fresh allocator: what is allocated, and what is reserved for it. */
static void check_one(int64_t bytes, int64_t allocated_B, int64_t reserved_B) {
    dts_caching_allocator *a = allocator(false, PLENTY_B);
    assert_int_not_equal(dts_caching_take(a, bytes, 0), DTS_NO_BLOCK);
    dts_caching_counts counts = dts_caching_count(a);
    assert_int_equal(counts.allocated_B, allocated_B);
    assert_int_equal(counts.reserved_B, reserved_B);
    assert_int_equal(counts.mallocs, 1);
    dts_caching_free(a);
}

static void test_sizes(void **state) {
    (void)state;
    check_one(1, 512, 2 * MIB); /* what torch.zeros(1) takes */
    check_one(512, 512, 2 * MIB);
    check_one(513, 1024, 2 * MIB);
    check_one(311 * 411 * 4, 511488, 2 * MIB); /* the tensor of PyTorch's test_memory_snapshot */
    check_one(MIB, MIB, 2 * MIB);
    check_one(MIB + 1, MIB + 512, 20 * MIB);
    check_one(10 * MIB - 512, 10 * MIB - 512, 20 * MIB);
    check_one(10 * MIB, 10 * MIB, 10 * MIB);
    check_one(84 * MIB, 84 * MIB, 84 * MIB);     /* PyTorch's test_allocator_settings */
    check_one(85 * MIB - 1, 86 * MIB, 86 * MIB); /* 1 MiB is left: not more than that, so it is not cut off */
    check_one(87 * MIB - 1, 88 * MIB, 88 * MIB);
    check_one(13 * MIB, 14 * MIB, 14 * MIB);
    check_one(12 * MIB + 512, 12 * MIB + 512, 14 * MIB); /* 2 MiB less 512 B are left and cut off */
}

static void test_small_ones_share_a_segment(void **state) {
    (void)state;
    dts_caching_allocator *a = allocator(false, PLENTY_B);
    for (int i = 0; i < 4096; i++) {
        dts_caching_take(a, 512, 0);
    }
    assert_int_equal(dts_caching_count(a).reserved_B, 2 * MIB);
    dts_caching_take(a, 512, 0);
    assert_int_equal(dts_caching_count(a).reserved_B, 4 * MIB);
    dts_caching_take(a, 2 * MIB, 0); /* the large pool does not look into the small one's */
    assert_int_equal(dts_caching_count(a).reserved_B, 24 * MIB);
    dts_caching_free(a);
}

static void test_best_fit(void **state) {
    (void)state;
    dts_caching_allocator *a = allocator(false, PLENTY_B);
    uint32_t forty = dts_caching_take(a, 40 * MIB, 0);
    uint32_t thirty = dts_caching_take(a, 30 * MIB, 0);
    dts_caching_give(a, forty);
    dts_caching_give(a, thirty);
    uint32_t x = dts_caching_take(a, 28 * MIB, 0); /* of the 30, not of the 40 */
    assert_int_equal(dts_caching_take(a, 40 * MIB, 0), forty);
    assert_int_equal(dts_caching_count(a).reserved_B, 70 * MIB);
    assert_int_equal(x, thirty);
    dts_caching_take(a, 2 * MIB, 0); /* the rest of the 30 */
    assert_int_equal(dts_caching_count(a).reserved_B, 70 * MIB);
    assert_int_equal(dts_caching_count(a).allocated_B, 70 * MIB);
    dts_caching_free(a);
}

static void test_neighbours_join(void **state) {
    (void)state;
    dts_caching_allocator *a = allocator(false, PLENTY_B);
    uint32_t parts[4];
    uint32_t whole = dts_caching_take(a, 40 * MIB, 0);
    dts_caching_give(a, whole);
    for (int i = 0; i < 4; i++) {
        parts[i] = dts_caching_take(a, 10 * MIB, 0);
    }
    assert_int_equal(dts_caching_count(a).reserved_B, 40 * MIB);
    dts_caching_give(a, parts[1]);
    dts_caching_give(a, parts[3]);
    dts_caching_give(a, parts[2]); /* joins both sides */
    dts_caching_take(a, 30 * MIB, 0);
    assert_int_equal(dts_caching_count(a).reserved_B, 40 * MIB);
    dts_caching_free(a);
}

static void test_streams_do_not_share(void **state) {
    (void)state;
    dts_caching_allocator *a = allocator(false, PLENTY_B);
    dts_caching_give(a, dts_caching_take(a, 50 * MIB, 0));
    dts_caching_take(a, 50 * MIB, 1);
    assert_int_equal(dts_caching_count(a).reserved_B, 100 * MIB);
    dts_caching_take(a, 50 * MIB, 0);
    assert_int_equal(dts_caching_count(a).reserved_B, 100 * MIB);
    dts_caching_free(a);
}

static void test_retry(void **state) {
    (void)state;
    dts_caching_allocator *a = allocator(false, 100 * MIB);
    dts_caching_give(a, dts_caching_take(a, 60 * MIB, 0));
    dts_caching_give(a, dts_caching_take(a, 512, 1));
    uint32_t eighty = dts_caching_take(a, 80 * MIB, 0);
    assert_int_not_equal(eighty, DTS_NO_BLOCK);
    dts_caching_counts counts = dts_caching_count(a);
    assert_int_equal(counts.retries, 1);
    assert_int_equal(counts.frees, 2); /* both pools, all streams */
    assert_int_equal(counts.reserved_B, 80 * MIB);
    assert_int_equal(counts.peak_reserved_B, 80 * MIB);
    assert_int_equal(dts_caching_take(a, 30 * MIB, 0), DTS_NO_BLOCK);
    dts_caching_give(a, eighty);
    dts_caching_take(a, 2 * MIB, 0); /* holds the segment of 80 in place */
    assert_int_equal(dts_caching_take(a, 80 * MIB, 0), DTS_NO_BLOCK);
    dts_caching_free(a);

    a = allocator(true, 100 * MIB); /* pages of 20 MiB: the lowest stays, the other four serve */
    dts_caching_give(a, dts_caching_take(a, 80 * MIB, 0));
    dts_caching_take(a, 2 * MIB, 0);
    assert_int_not_equal(dts_caching_take(a, 80 * MIB, 1), DTS_NO_BLOCK);
    counts = dts_caching_count(a);
    assert_int_equal(counts.retries, 1);
    assert_int_equal(counts.frees, 3);
    assert_int_equal(counts.reserved_B, 100 * MIB);
    dts_caching_free(a);
}

/* The example of the note: tensors that are a little larger in every iteration do not fit into the segments of the
 * one before, and what is left over there serves nobody. */
static int64_t growing_batches(bool expandable, int64_t *largest_B) {
    enum { LAYERS = 50, ITERATIONS = 4 };
    dts_caching_allocator *a = allocator(expandable, PLENTY_B);
    *largest_B = 0;
    for (int64_t n = 8; n < 8 + ITERATIONS; n++) {
        uint32_t blocks[LAYERS][2];
        for (int i = 0; i < LAYERS; i++) {
            blocks[i][0] = dts_caching_take(a, n * 2 * MIB, 0);
            blocks[i][1] = dts_caching_take(a, n * 7 * MIB, 0);
        }
        *largest_B = dts_caching_count(a).allocated_B;
        for (int i = 0; i < LAYERS; i++) {
            dts_caching_give(a, blocks[i][0]);
            dts_caching_give(a, blocks[i][1]);
        }
    }
    int64_t reserved_B = dts_caching_count(a).peak_reserved_B;
    dts_caching_free(a);
    return reserved_B;
}

static void test_expandable_segments(void **state) {
    (void)state;
    int64_t largest_B = 0;
    assert_true((double)growing_batches(false, &largest_B) > 1.25 * (double)largest_B);
    int64_t reserved_B = growing_batches(true, &largest_B);
    assert_true(reserved_B >= largest_B);
    assert_true(reserved_B < largest_B + 20 * MIB); /* less than a page over */

    dts_caching_allocator *a = allocator(true, PLENTY_B);
    dts_caching_take(a, 1, 0);
    assert_int_equal(dts_caching_count(a).reserved_B, 2 * MIB);
    uint32_t large = dts_caching_take(a, 30 * MIB, 0);
    assert_int_equal(dts_caching_count(a).reserved_B, 42 * MIB);
    dts_caching_take(a, 10 * MIB, 0); /* the rest of the second page */
    assert_int_equal(dts_caching_count(a).reserved_B, 42 * MIB);
    dts_caching_take(a, 1 * MIB + 512, 0);
    assert_int_equal(dts_caching_count(a).reserved_B, 62 * MIB);
    dts_caching_give(a, large);
    dts_caching_take(a, 29 * MIB, 0); /* of the hole, not of the end that can grow */
    assert_int_equal(dts_caching_count(a).reserved_B, 62 * MIB);
    dts_caching_free(a);
}

/* Random requests: what is held never falls short of what is in use, nor passes the capacity, and nothing is lost. */
static void check_random(bool expandable, int64_t capacity_B, uint64_t seed) {
    enum { MOST = 200, STEPS = 20000 };
    uint32_t live[MOST];
    int64_t sizes[MOST];
    int count = 0;
    int64_t sum_B = 0;
    dts_caching_allocator *a = allocator(expandable, capacity_B);
    dts_random *random = dts_random_new(seed);
    assert_non_null(random);
    for (int i = 0; i < STEPS; i++) {
        if (count < MOST && (count == 0 || dts_random_below(random, 2) == 0)) {
            int64_t bytes = (int64_t)1 << dts_random_below(random, 26);
            bytes += (int64_t)dts_random_below(random, (uint32_t)bytes);
            uint32_t block = dts_caching_take(a, bytes, (unsigned)dts_random_below(random, 3));
            if (block == DTS_NO_BLOCK) {
                assert_true(dts_caching_count(a).reserved_B + bytes > capacity_B / 4);
                continue;
            }
            live[count] = block;
            sizes[count++] = bytes;
            sum_B += bytes;
        } else {
            int which = (int)dts_random_below(random, (uint32_t)count);
            dts_caching_give(a, live[which]);
            sum_B -= sizes[which];
            live[which] = live[--count];
            sizes[which] = sizes[count];
        }
        dts_caching_counts counts = dts_caching_count(a);
        assert_true(counts.allocated_B >= sum_B);
        assert_true(counts.reserved_B >= counts.allocated_B);
        assert_true(counts.peak_reserved_B <= capacity_B);
    }
    while (count > 0) {
        dts_caching_give(a, live[--count]);
    }
    assert_int_equal(dts_caching_count(a).allocated_B, 0);
    /* all of it is whole again: one request of the capacity fits */
    assert_int_not_equal(dts_caching_take(a, capacity_B / (20 * MIB) * (20 * MIB), 0), DTS_NO_BLOCK);
    assert_false(dts_caching_failed(a));
    dts_random_free(random);
    dts_caching_free(a);
}

static void test_random(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        check_random(false, INT64_C(400) * MIB, seed);
        check_random(true, INT64_C(400) * MIB, seed);
        check_random(seed % 2 == 0, PLENTY_B, seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_small_ones_share_a_segment),
        cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_neighbours_join),
        cmocka_unit_test(test_streams_do_not_share),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_expandable_segments),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
