/* The fastest of several plans, and the fastest that surely fits. */
#include "run/fastest.h"
#include "simulate.h"

static dts_contender at(const void *plans, size_t index) {
    return ((const dts_contender *)plans)[index];
}

static void what_fits_and_what_surely_does(void **state) {
    (void)state;
    const dts_contender plans[] = {{true, 0, 10}, {false, 0, 40}, {true, 1, 30}, {true, 0, 20}, {true, 0, 20}};
    assert_int_equal(dts_fastest(plans, 5, at, false), 2);
    assert_int_equal(dts_fastest(plans, 5, at, true), 3); /* of equals the first */
    assert_int_equal(dts_fastest(plans + 1, 2, at, true), SIZE_MAX);
    assert_int_equal(dts_fastest(plans + 1, 1, at, false), SIZE_MAX);
    assert_int_equal(dts_fastest(plans, 0, at, false), SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_fits_and_what_surely_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
