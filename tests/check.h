/* What every cmocka test includes: cmocka and our own comparison of doubles. */
#ifndef DTS_TESTS_CHECK_H
#define DTS_TESTS_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* cmocka 1.1.5 compares doubles as floats; this compares as doubles and prints both. Passes when |got - want| is at
 * most rel·|want| + abs. */
static inline void check_close(double got, double want, double rel, double abs, const char *expression,
                               const char *file, int line) {
    if (!(fabs(got - want) <= rel * fabs(want) + abs)) {
        print_error("%s = %.17g, expected %.17g (relative %.3g, absolute %.3g)\n", expression, got, want, rel, abs);
        _fail(file, line);
    }
}

/* DTSIM_PROPERTY_RUNS asks for fewer runs than usual, as under sanitizers; where it is not set, tests are whole. */
static inline bool asked_for_few(void) {
    enum { USUAL = 400 };
    const char *runs = getenv("DTSIM_PROPERTY_RUNS");
    return runs != NULL && strtoul(runs, NULL, 10) < USUAL;
}

#define assert_close(got, want, rel, abs) check_close((got), (want), (rel), (abs), #got, __FILE__, __LINE__)

#endif
