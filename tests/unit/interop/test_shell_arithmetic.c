/* Numbers of the shell, with what bash 5.2 prints. */
#include "interop/shell_arithmetic.h"

#include "check.h"

static char changed[64];

static const char *get(void *context, const char *name, size_t length) {
    (void)context;
    static const char *const known[][2] = {{"A", "5"}, {"B", "A+1"}, {"EMPTY", ""}, {"SELF", "SELF"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i][0]) == length && strncmp(known[i][0], name, length) == 0) {
            return known[i][1];
        }
    }
    return NULL;
}

static void set(void *context, const char *name, size_t length, int64_t value) {
    (void)context;
    snprintf(changed + strlen(changed), sizeof changed - strlen(changed), "%.*s=%lld ", (int)length, name,
             (long long)value);
}

static const dts_arithmetic_names names = {.get = get, .set = set};

static void operators_have_their_precedence(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {{"(4+4)*3", 24},
                 {"17%5", 2},
                 {"64/(4*2)", 8},
                 {"1<<3", 8},
                 {"20 - (4 - 2)", 18},
                 {"16>8?12:24", 12},
                 {"24&8", 8},
                 {"010", 8},
                 {"2**3**2", 512},
                 {"-2**2", 4},
                 {"0x1F + 2#101 + 36#z + 64#_", 31 + 5 + 35 + 63},
                 {"~5", -6},
                 {"!5 + !0", 1},
                 {"1 || 0 && 0", 1},
                 {"6 | 3 ^ 5 & 4", 7},
                 {"-7 / 2", -3},
                 {"-7 % 3", -1},
                 {"1 < 2 == 1", 1},
                 {"0 ? 1 : 0 ? 2 : 3", 3},
                 {"1, 2", 2},
                 {"5--3", 8},
                 {"\n 2 *\t3 ", 6},
                 {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = -99;
        assert_true(dts_arithmetic(cases[i].text, strlen(cases[i].text), &names, &value));
        assert_int_equal(value, cases[i].value);
    }
}

static int64_t value_of(const char *text) {
    int64_t value = 0;
    assert_true(dts_arithmetic(text, strlen(text), &names, &value));
    return value;
}

static void numbers_wrap_around(void **state) {
    (void)state;
    assert_true(value_of("9223372036854775807 + 1") == INT64_MIN);
    assert_true(value_of("-9223372036854775808 / -1") == INT64_MIN);
    assert_int_equal(value_of("-9223372036854775808 % -1"), 0);
    assert_true(value_of("1 << 63") == INT64_MIN);
    assert_int_equal(value_of("-8 >> 1"), -4);
    assert_true(value_of("2 ** 63") == INT64_MIN && value_of("2 ** 64") == 0);
}

static void variables_are_expressions(void **state) {
    (void)state;
    changed[0] = '\0';
    assert_int_equal(value_of("B * 2 + EMPTY"), 12);
    assert_int_equal(value_of("C = D = A += 2"), 7);
    assert_int_equal(value_of("A++ + ++A - --A - A--"), 5 + 6 - 4 - 5);
    assert_int_equal(value_of("0 && (A = 9), 1 || A++, 0 ? A = 8 : 3"), 3);
    assert_string_equal(changed, "A=7 D=7 C=7 A=6 A=6 A=4 A=4 ");
}

static void what_bash_refuses_is_not_understood(void **state) {
    (void)state;
    static const char *const cases[] = {
        "1/0",   "1%0",  "2 ** -1", "08",        "3#3",           "65#1",
        "10#",   "1 +",  "(1",      "1)",        "1 2",           "1 = 2",
        "A +",   "+",    "1 ? 2",   "1 + A = 3", "(A)++",         "$A",
        "A[0]",  "NAME", "1.5",     "SELF",      "5 ++A",         "++A++",
        "\"1\"", "#",    "012#5",   "A = ",      "1 ? 2 : A = 3", "9223372036854775809"};
    int64_t value;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (dts_arithmetic(cases[i], strlen(cases[i]), &names, &value)) {
            print_error("%s\n", cases[i]);
            fail();
        }
    }
    char deep[3000];
    memset(deep, '(', sizeof deep);
    assert_false(dts_arithmetic(deep, sizeof deep, &names, &value));
    memset(deep, '-', sizeof deep);
    assert_false(dts_arithmetic(deep, sizeof deep, &names, &value));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_have_their_precedence), cmocka_unit_test(numbers_wrap_around),
        cmocka_unit_test(variables_are_expressions), cmocka_unit_test(what_bash_refuses_is_not_understood)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
