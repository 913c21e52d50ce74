/* The set of free blocks against a sorted array. */
#include "base/random.h"
#include "check.h"
#include "hardware/free_blocks.h"

enum { MOST = 3000 };

/* The same set as one array in its order. */
typedef struct array {
    dts_free_key keys[MOST]; /* by block */
    uint32_t ids[MOST];
    size_t count;
} array;

static bool before(const dts_free_key *a, const dts_free_key *b) {
    return a->kind != b->kind ? a->kind < b->kind : a->address < b->address;
}

/* Place of the first block that is not before key. */
static size_t place_of(const array *a, const dts_free_key *key) {
    size_t place = 0;
    while (place < a->count && before(&a->keys[a->ids[place]], key)) {
        place++;
    }
    return place;
}

static void array_add(array *a, uint32_t id, dts_free_key key) {
    const size_t place = place_of(a, &key);
    memmove(&a->ids[place + 1], &a->ids[place], (a->count - place) * sizeof *a->ids);
    a->ids[place] = id;
    a->keys[id] = key;
    a->count++;
}

static void array_remove(array *a, size_t place) {
    a->count--;
    memmove(&a->ids[place], &a->ids[place + 1], (a->count - place) * sizeof *a->ids);
}

/* Few sizes, so that many blocks differ by their address only; no two blocks have the same address. */
static dts_free_key draw(dts_random *random, uint32_t id) {
    const int64_t size_B = 512 * (1 + (int64_t)dts_random_below(random, 8));
    return (dts_free_key){.kind = dts_free_kind(dts_random_below(random, 3), size_B),
                          .address = (int64_t)dts_random_below(random, 1000) * MOST + id};
}

static void check_find(const dts_free_blocks *set, const array *a, dts_free_key key) {
    const size_t place = place_of(a, &key);
    const uint32_t want = place < a->count ? a->ids[place] : DTS_NO_BLOCK;
    assert_int_equal(dts_free_blocks_at(set, dts_free_blocks_find(set, key)), want);
}

static void check_order(const dts_free_blocks *set, const array *a) {
    dts_free_place place = dts_free_blocks_find(set, (dts_free_key){0});
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(dts_free_blocks_at(set, place), a->ids[i]);
        place = dts_free_blocks_next(set, place);
    }
    assert_int_equal(dts_free_blocks_at(set, place), DTS_NO_BLOCK);
}

/* Fills the set to about `blocks`, and empties it again. */
static void check_random(uint32_t blocks, uint64_t seed) {
    enum { STEPS = 6000 };
    array *sorted = calloc(1, sizeof *sorted);
    dts_free_blocks set = {0};
    dts_random *random = dts_random_new(seed);
    assert_non_null(sorted);
    assert_non_null(random);
    for (int i = 0; i < 2 * STEPS; i++) {
        const bool fills = i < STEPS ? sorted->count < blocks && dts_random_below(random, 3) > 0
                                     : sorted->count < blocks && dts_random_below(random, 3) == 0;
        const uint32_t id = dts_random_below(random, blocks);
        const dts_free_key key = draw(random, id);
        check_find(&set, sorted, key);
        size_t place = 0;
        while (place < sorted->count && sorted->ids[place] != id) {
            place++;
        }
        if (place < sorted->count && !fills) {
            dts_free_blocks_remove(&set, dts_free_blocks_find(&set, sorted->keys[id]));
            array_remove(sorted, place);
        } else if (place == sorted->count && fills) {
            assert_true(dts_free_blocks_add(&set, id, key));
            array_add(sorted, id, key);
        }
        if (i % 500 == 0) {
            check_order(&set, sorted);
        }
    }
    while (sorted->count > 0) {
        const size_t place = dts_random_below(random, (uint32_t)sorted->count);
        dts_free_blocks_remove(&set, dts_free_blocks_find(&set, sorted->keys[sorted->ids[place]]));
        array_remove(sorted, place);
    }
    check_order(&set, sorted);
    dts_random_free(random);
    dts_free_blocks_free(&set);
    free(sorted);
}

static void test_as_sorted_array(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        check_random(12, seed); /* as in most replays */
        check_random(MOST, seed);
    }
}

/* Blocks of one size in the order of their addresses, as those of equal layers come, and in the reverse order. */
static void test_in_order(void **state) {
    (void)state;
    enum { COUNT = 1 << 14 };
    for (int reverse = 0; reverse < 2; reverse++) {
        dts_free_blocks set = {0};
        for (uint32_t i = 0; i < COUNT; i++) {
            const uint32_t id = reverse ? COUNT - 1 - i : i;
            assert_true(dts_free_blocks_add(&set, id, (dts_free_key){.kind = dts_free_kind(0, 512), .address = id}));
        }
        for (uint32_t id = 0; id < COUNT; id++) { /* the first goes, each time */
            const dts_free_place first = dts_free_blocks_find(&set, (dts_free_key){0});
            assert_int_equal(dts_free_blocks_at(&set, first), id);
            dts_free_blocks_remove(&set, first);
        }
        dts_free_blocks_free(&set);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_sorted_array),
        cmocka_unit_test(test_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
