/* Text that grows. */
#include "base/text.h"
#include "check.h"

/* A shell reads each as the word that it was. */
static void words_are_quoted_where_a_shell_needs_it(void **state) {
    (void)state;
    static const struct {
        const char *word, *told;
    } rows[] = {
        {"planning/llama-3-8b", "planning/llama-3-8b"},
        {"training.sequence_length=8192", "training.sequence_length=8192"},
        {"my plans/8b.yaml", "'my plans/8b.yaml'"},
        {"8b$(x).yaml", "'8b$(x).yaml'"},
        {"model={layers: 2}", "'model={layers: 2}'"},
        {"name=Ann's", "'name=Ann'\\''s'"},
        {"#1", "'#1'"},
        {"~/8b.yaml", "'~/8b.yaml'"},
        {"", "''"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dts_text text = {0};
        dts_text_add_word(&text, rows[i].word);
        assert_string_equal(dts_text_string(&text), rows[i].told);
        dts_text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_quoted_where_a_shell_needs_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
