#include "base/random.h"

#include <stdbool.h>

#include "check.h"

enum { SAMPLES = 100000 };

static void test_repeats(void **state) {
    (void)state;
    dts_random *a = dts_random_new(42);
    dts_random *b = dts_random_new(42);
    dts_random *c = dts_random_new(43);
    bool differs = false;
    for (int i = 0; i < 1000; i++) {
        double x = dts_random_uniform(a);
        assert_true(x == dts_random_uniform(b));
        differs = differs || x != dts_random_uniform(c);
    }
    assert_true(differs);
    dts_random_free(a);
    dts_random_free(b);
    dts_random_free(c);
    dts_random_free(NULL);
}

/* Moments within five standard errors. */
static void test_moments(void **state) {
    (void)state;
    dts_random *r = dts_random_new(7);
    double uniform = 0, normal = 0, square = 0;
    unsigned counts[6] = {0};
    for (int i = 0; i < SAMPLES; i++) {
        double u = dts_random_uniform(r);
        assert_true(u >= 0 && u < 1);
        uniform += u / SAMPLES;
        double n = dts_random_normal(r, 3, 2);
        normal += n / SAMPLES;
        square += (n - 3) * (n - 3) / SAMPLES;
        counts[dts_random_below(r, 6)]++;
    }
    assert_close(uniform, 0.5, 0, 5 * 0.2887 / sqrt(SAMPLES));
    assert_close(normal, 3, 0, 5 * 2 / sqrt(SAMPLES));
    assert_close(square, 4, 0, 5 * 4 * sqrt(2) / sqrt(SAMPLES));
    for (int i = 0; i < 6; i++) {
        assert_close(counts[i], SAMPLES / 6.0, 0, 5 * sqrt(SAMPLES * (1 / 6.0) * (5 / 6.0)));
    }
    dts_random_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_repeats), cmocka_unit_test(test_moments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
