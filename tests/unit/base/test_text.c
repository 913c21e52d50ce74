/* Text that grows. */
#include "base/text.h"

#include <inttypes.h>

#include "check.h"

static void integers_are_written_as_printf_does(void **state) {
    (void)state;
    static const int64_t values[] = {0, 7, -7, 10, 1000000007, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        dts_text text = {0};
        char told[32];
        snprintf(told, sizeof told, "%" PRId64, values[i]);
        dts_text_add_integer(&text, values[i]);
        assert_string_equal(dts_text_string(&text), told);
        dts_text_free(&text);
    }
}

/* Lengths around the room that is made before the length is known, into texts that are empty and that are nearly full.
 */
static void what_is_printed_may_be_longer_than_usual(void **state) {
    (void)state;
    for (int length = 0; length < 400; length++) {
        dts_text text = {0};
        dts_text_printf(&text, "%*s", length, "");
        assert_int_equal(text.length, length);
        dts_text_printf(&text, "<%0*d>", length + 1, 1);
        assert_int_equal(text.length, 2 * length + 3);
        assert_int_equal(strlen(dts_text_string(&text)), text.length);
        assert_int_equal(text.data[length], '<');
        assert_string_equal(text.data + text.length - 2, "1>");
        dts_text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(integers_are_written_as_printf_does),
                                       cmocka_unit_test(what_is_printed_may_be_longer_than_usual)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
