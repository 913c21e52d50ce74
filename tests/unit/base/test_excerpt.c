#include "base/excerpt.h"

#include "check.h"

static void test_excerpt(void **state) {
    (void)state;
    assert_string_equal(dts_excerpt_of("plain").text, "plain");
    assert_string_equal(dts_excerpt_of("").text, "");
    assert_string_equal(dts_excerpt_of("a\x1b[31m\nb\x7f").text, "a?[31m?b?");
    assert_string_equal(dts_excerpt_of("caf\xc3\xa9").text, "caf\xc3\xa9");
    assert_string_equal(dts_excerpt_of("\xc2\x9b"
                                       "1m")
                            .text,
                        "?1m"); /* C1: a terminal reads it as ESC [ */
    assert_string_equal(dts_excerpt_of("\xff\xc3").text, "??");
    assert_string_equal(dts_excerpt_of_bytes("abc", 2).text, "ab");
}

/* Cut at a whole character, whatever the length. */
static void test_cut(void **state) {
    (void)state;
    char text[300];
    for (size_t shift = 0; shift < 3; shift++) {
        size_t length = shift;
        memset(text, 'a', shift);
        while (length + 3 < sizeof text) {
            memcpy(text + length, "\xe2\x82\xac", 3);
            length += 3;
        }
        text[length] = '\0';
        dts_excerpt e = dts_excerpt_of(text);
        size_t n = strlen(e.text);
        assert_true(n < DTS_EXCERPT_B && n > DTS_EXCERPT_B - 8);
        assert_string_equal(e.text + n - 3, "...");
        for (size_t i = 0; i < n;) {
            size_t step = dts_utf8_length(e.text + i, n - i);
            assert_true(step > 0);
            i += step;
        }
    }
    memset(text, 'x', DTS_EXCERPT_B - 1);
    text[DTS_EXCERPT_B - 1] = '\0';
    assert_string_equal(dts_excerpt_of(text).text, text); /* fits exactly */
    text[DTS_EXCERPT_B - 1] = 'x';
    text[DTS_EXCERPT_B] = '\0';
    assert_int_equal(strlen(dts_excerpt_of(text).text), DTS_EXCERPT_B - 1);
}

static void test_utf8(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {
        {"a", 1},
        {"\xc3\xa9", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\x80", 0},             /* continuation alone */
        {"\xc0\xaf", 0},         /* overlong '/' */
        {"\xe0\x80\xaf", 0},     /* overlong */
        {"\xed\xa0\x80", 0},     /* surrogate */
        {"\xf4\x90\x80\x80", 0}, /* past U+10FFFF */
        {"\xe2\x82", 0},         /* cut off */
        {"\xff", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(dts_utf8_length(cases[i].text, strlen(cases[i].text)), cases[i].length);
    }
    assert_int_equal(dts_utf8_length("", 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_excerpt), cmocka_unit_test(test_cut),
                                       cmocka_unit_test(test_utf8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
