#include "base/diag.h"

#include "check.h"

static void renders_place_caret_and_help(void **state) {
    (void)state;
    dts_diag *diag = dts_diag_new();
    const char *line = "  bandwidth: 600 Gb";
    dts_place place = {.file = "x.yaml", .line = 12, .column = 14, .line_text = line, .line_length = strlen(line)};
    assert_int_equal(dts_diag_error(diag, &place, "a.b", "write 600 Gbit/s", "unknown unit 'Gb'"), DTS_INVALID);
    dts_text text = {0};
    dts_diag_render(diag, false, &text);
    assert_string_equal(dts_text_string(&text),
                        "x.yaml:12:14: error: unknown unit 'Gb' [a.b]\n"
                        "     12 |   bandwidth: 600 Gb\n"
                        "        |              ^\n"
                        "  help: write 600 Gbit/s\n");
    dts_text_free(&text);
    dts_diag_free(diag);
}

static void keeps_a_bounded_number_and_counts_the_rest(void **state) {
    (void)state;
    dts_diag *diag = dts_diag_new();
    for (int i = 0; i < 250; i++) {
        dts_diag_error(diag, NULL, NULL, NULL, "error %d", i);
    }
    assert_int_equal(dts_diag_errors(diag), 250);
    assert_int_equal(dts_diag_count(diag), 100);
    dts_text text = {0};
    dts_diag_render(diag, false, &text);
    assert_non_null(strstr(dts_text_string(&text), "(150 more messages not shown)"));
    dts_text_free(&text);
    dts_diag_free(diag);
}

static void finds_the_nearest_name(void **state) {
    (void)state;
    const char *names[] = {"micro_batch", "global_batch", "sequence_length"};
    assert_string_equal(dts_nearest_name("micro_bacth", names, 3), "micro_batch");
    assert_string_equal(dts_nearest_name("microbatch", names, 3), "micro_batch");
    assert_null(dts_nearest_name("optimizer", names, 3));
}

static void status_is_the_gravest(void **state) {
    (void)state;
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_diag_status(diag), DTS_OK);
    dts_diag_warning(diag, NULL, NULL, NULL, "careful");
    assert_int_equal(dts_diag_status(diag), DTS_OK);
    dts_diag_fail(diag, DTS_IO, NULL, "cannot read");
    dts_diag_error(diag, NULL, NULL, NULL, "wrong");
    assert_int_equal(dts_diag_status(diag), DTS_IO);
    dts_diag_free(diag);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renders_place_caret_and_help),
        cmocka_unit_test(keeps_a_bounded_number_and_counts_the_rest),
        cmocka_unit_test(finds_the_nearest_name),
        cmocka_unit_test(status_is_the_gravest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
