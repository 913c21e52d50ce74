#include "engine/queue.h"

#include <stdlib.h>

#include "build.h"

static int compare_events(const void *a, const void *b) {
    const dts_event *x = a;
    const dts_event *y = b;
    return dts_event_before(*x, *y) ? -1 : dts_event_before(*y, *x) ? 1 : 0;
}

static void assert_event_equal(dts_event got, dts_event want) {
    assert_int_equal(got.time, want.time);
    assert_int_equal(got.order, want.order);
}

static void orders_by_time_then_priority_then_sequence(void **state) {
    (void)state;
    dts_event sorted[] = {
        {0, dts_event_order(INT32_MIN, 7)}, {0, dts_event_order(-1, 0)},         {0, dts_event_order(-1, 1)},
        {0, dts_event_order(0, 0)},         {0, dts_event_order(0, UINT32_MAX)}, {0, dts_event_order(1, 0)},
        {0, dts_event_order(INT32_MAX, 0)}, {1, dts_event_order(0, 0)},
    };
    size_t count = sizeof sorted / sizeof *sorted;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            assert_int_equal(dts_event_before(sorted[i], sorted[j]), i < j);
        }
    }
    assert_int_equal(dts_event_sequence(sorted[4]), UINT32_MAX);
}

static void an_empty_queue_answers_never(void **state) {
    (void)state;
    dts_queue queue;
    assert_true(dts_queue_init(&queue, 1));
    for (int round = 0; round < 3; round++) {
        assert_int_equal(dts_queue_size(&queue), 0);
        assert_event_equal(dts_queue_top(&queue), DTS_EVENT_NEVER);
        dts_event event = {round, 1};
        dts_queue_push(&queue, event);
        assert_int_equal(dts_queue_size(&queue), 1);
        assert_event_equal(dts_queue_pop(&queue), event);
    }
    dts_queue_free(&queue);
}

/* Pushes count events whose times have few values, so that most are ties, and pops them all. */
static void sorts_like_the_reference(size_t count, uint32_t times, uint64_t seed) {
    dts_queue queue;
    assert_true(dts_queue_init(&queue, count));
    dts_event *reference = malloc((count + 1) * sizeof *reference);
    assert_non_null(reference);
    for (size_t i = 0; i < count; i++) {
        int32_t priority = (int32_t)(next_random(&seed) % 5) - 2;
        reference[i] = (dts_event){next_random(&seed) % times, dts_event_order(priority, (uint32_t)i)};
        dts_queue_push(&queue, reference[i]);
    }
    qsort(reference, count, sizeof *reference, compare_events);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(dts_queue_size(&queue), count - i);
        assert_event_equal(dts_queue_pop(&queue), reference[i]);
    }
    assert_int_equal(dts_queue_size(&queue), 0);
    free(reference);
    dts_queue_free(&queue);
}

static void sorts_random_events(void **state) {
    (void)state;
    for (size_t count = 0; count < 70; count++) {
        sorts_like_the_reference(count, 1 + (uint32_t)count % 7, count);
    }
    sorts_like_the_reference(20000, 50, 1);
    sorts_like_the_reference(20000, 2000000000, 2);
}

/* Pushes and pops at random against a plain array that is searched for its least event. */
static void agrees_with_a_plain_array_when_pushes_and_pops_mix(void **state) {
    (void)state;
    enum { CAPACITY = 60 };
    dts_event array[CAPACITY];
    size_t count = 0;
    uint64_t seed = 3;
    dts_queue queue;
    assert_true(dts_queue_init(&queue, CAPACITY));
    for (uint32_t step = 0; step < 50000; step++) {
        bool push = count == 0 || (count < CAPACITY && next_random(&seed) % 2 == 0);
        if (push) {
            array[count] = (dts_event){next_random(&seed) % 100, dts_event_order((int)(step % 3), step)};
            dts_queue_push(&queue, array[count++]);
        } else {
            size_t least = 0;
            for (size_t i = 1; i < count; i++) {
                least = dts_event_before(array[i], array[least]) ? i : least;
            }
            if (next_random(&seed) % 2 == 0) { /* looking first must not matter */
                assert_event_equal(dts_queue_top(&queue), array[least]);
            }
            assert_event_equal(dts_queue_pop(&queue), array[least]);
            array[least] = array[--count];
        }
        assert_int_equal(dts_queue_size(&queue), count);
    }
    dts_queue_free(&queue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_by_time_then_priority_then_sequence),
        cmocka_unit_test(an_empty_queue_answers_never),
        cmocka_unit_test(sorts_random_events),
        cmocka_unit_test(agrees_with_a_plain_array_when_pushes_and_pops_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
