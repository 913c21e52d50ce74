#include "base/quote.h"

#include "check.h"

typedef void writer(dts_text *text, const char *string);

typedef struct row {
    const char *text, *written;
} row;

static void check_rows(writer *write, const row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        dts_text text = {0};
        write(&text, rows[i].text);
        assert_string_equal(dts_text_string(&text), rows[i].written);
        dts_text_free(&text);
    }
}

#define CHECK(write, ...) check_rows(write, (const row[]){__VA_ARGS__}, sizeof((row[]){__VA_ARGS__}) / sizeof(row))

#define BAD "\xef\xbf\xbd" /* U+FFFD */

static void lines_hold_no_control_character(void **state) {
    (void)state;
    CHECK(dts_text_add_line, {"", ""}, {"Grüße, 4 × 8", "Grüße, 4 × 8"}, {"x\ntouch PWNED\r\n#", "x touch PWNED  #"},
          {"a\tb\x1b[31m\x07\x7f", "a b?[31m??"}, {"\xc2\x85\xc2\x9b", "??"}, {"\xe2\x80\xa8\xe2\x80\xa9", "??"},
          {"\xe2\x80\xae\xe2\x81\xa6\xef\xbb\xbf\xef\xbf\xbf", "????"}, {"a\xff\xc3", "a" BAD BAD},
          {"\xed\xa0\x80", BAD BAD BAD}, {"\xe2\x80\xa7\xe2\x80\xaf\xc2\xa0", "\xe2\x80\xa7\xe2\x80\xaf\xc2\xa0"});
}

static void texts_of_several_lines_keep_them(void **state) {
    (void)state;
    static const char text[] = "a\tb\nc\rd\x1b\xff";
    dts_text out = {0};
    dts_text_add_lines(&out, text, sizeof text - 1);
    assert_string_equal(dts_text_string(&out), "a\tb\nc d?" BAD);
    dts_text_free(&out);
}

/* What JSON, TOML, YAML and Python read alike: RFC 8259, section 7; TOML 1.0, strings; YAML 1.2, 5.7; Python's string
 * literals. */
static void quoted_strings_escape_what_ends_them(void **state) {
    (void)state;
    CHECK(dts_text_add_quoted, {"", "\"\""}, {"a\"b\\c\n\x01ü", "\"a\\\"b\\\\c\\n\\u0001ü\""},
          {"\t\r\x7f\xc2\x85", "\"\\t\\u000d\\u007f\\u0085\""}, {"\xe2\x80\xa8\xef\xbf\xbe", "\"\\u2028\\ufffe\""},
          {"'''$(x)\xff", "\"'''$(x)" BAD "\""});
}

static void yaml_is_quoted_where_it_has_to_be(void **state) {
    (void)state;
    CHECK(dts_text_add_yaml, {"gpt2", "gpt2"}, {"600 GB/s", "600 GB/s"}, {"-1", "-1"}, {"1e3", "1e3"}, {"no", "no"},
          {"", "\"\""}, {"null", "\"null\""}, {"~", "\"~\""}, {"- x", "\"- x\""}, {"a: b", "\"a: b\""},
          {"a #b", "\"a #b\""}, {"... a", "\"... a\""}, {" a", "\" a\""}, {"a ", "\"a \""}, {"!!int", "\"!!int\""},
          {"[a]", "\"[a]\""}, {"%TAG", "\"%TAG\""}, {"a\nb", "\"a\\nb\""});
    CHECK(dts_text_add_yaml_string, {"gpt2", "gpt2"}, {"405B", "405B"}, {"1f1b", "1f1b"}, {"H100 80 GB", "H100 80 GB"},
          {"no", "\"no\""}, {"Yes", "\"Yes\""}, {"1e3", "\"1e3\""}, {"-1", "\"-1\""}, {"0x1F", "\"0x1F\""},
          {"2024-01-01", "\"2024-01-01\""}, {".inf", "\".inf\""}, {"1_000", "\"1_000\""}, {"...", "\"...\""});
}

static void words_are_quoted_where_bash_needs_it(void **state) {
    (void)state;
    CHECK(dts_text_add_word, {"planning/llama-3-8b", "planning/llama-3-8b"},
          {"training.sequence_length=8192", "training.sequence_length=8192"},
          {"my plans/8b.yaml", "'my plans/8b.yaml'"}, {"8b$(x).yaml", "'8b$(x).yaml'"},
          {"model={layers: 2}", "'model={layers: 2}'"}, {"name=Ann's", "'name=Ann'\\''s'"}, {"#1", "'#1'"},
          {"~/8b.yaml", "'~/8b.yaml'"}, {"", "''"}, {"a\nb", "$'a\\x0ab'"}, {"\x1b'\\\xff", "$'\\x1b\\'\\\\\\xff'"});
}

/* What a spreadsheet would calculate gets an apostrophe, and so does what would be taken for such text when read. */
static void cells_are_no_formulas_and_read_back(void **state) {
    (void)state;
    CHECK(dts_text_add_cell, {NULL, ""}, {"a", "a"}, {"a,b", "\"a,b\""}, {"a\"b", "\"a\"\"b\""}, {"a\nb", "\"a\nb\""},
          {" a", "\" a\""}, {"-1", "-1"}, {"+1e3", "+1e3"}, {"=1+1", "'=1+1"}, {"=\"x\",1", "\"'=\"\"x\"\",1\""},
          {"@SUM(A1)", "'@SUM(A1)"}, {"-1+2", "'-1+2"}, {"\tx", "\"'\tx\""}, {"'=x", "''=x"}, {"'x", "'x"},
          {"a\x1b", "a?"});
    static const char *const texts[] = {"", "a", "=1", "'=1", "''=1", "'-1", "-1", "'a", "''", "+x", "@", "''@"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dts_text text = {0};
        dts_text_add_cell(&text, texts[i]);
        assert_string_equal(dts_cell_text(dts_text_string(&text)), texts[i]);
        dts_text_free(&text);
    }
}

static void add_markup(dts_text *text, const char *string) {
    dts_text_add_markup(text, string, strlen(string));
}

static void markup_holds_no_tag(void **state) {
    (void)state;
    CHECK(add_markup, {"a<b>&\"c\"", "a&lt;b&gt;&amp;&quot;c&quot;"}, {"\x1b\x07 \xff", BAD BAD " " BAD},
          {"a\nb\xef\xbf\xbf", "a\nb" BAD});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_hold_no_control_character),
        cmocka_unit_test(texts_of_several_lines_keep_them),
        cmocka_unit_test(quoted_strings_escape_what_ends_them),
        cmocka_unit_test(yaml_is_quoted_where_it_has_to_be),
        cmocka_unit_test(words_are_quoted_where_bash_needs_it),
        cmocka_unit_test(cells_are_no_formulas_and_read_back),
        cmocka_unit_test(markup_holds_no_tag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
