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

/* A caret far to the right (JSON on one line) is shown with the text around it; characters are not cut in half. */
static void shows_the_part_of_a_long_line(void **state) {
    (void)state;
    char line[1200];
    for (size_t i = 0; i < 400; i++) {
        memcpy(line + 3 * i, "\xe2\x82\xac", 3);
    }
    memcpy(line + 3 * 300, "abc", 3); /* column 301 */
    dts_diag *diag = dts_diag_new();
    dts_place place = {.file = "x", .line = 1, .column = 301, .line_text = line, .line_length = sizeof line};
    dts_diag_error(diag, &place, NULL, NULL, "far");
    const dts_message *m = dts_diag_get(diag, 0);
    assert_int_equal(m->place.column, 301);
    assert_int_equal(m->caret, 103);
    assert_memory_equal(m->place.line_text, "...\xe2\x82\xac", 6);
    assert_memory_equal(m->place.line_text + 3 + 3 * 99, "abc", 3);
    assert_string_equal(m->place.line_text + m->place.line_length - 6, "\xe2\x82\xac...");
    place.column = 5;
    dts_diag_error(diag, &place, NULL, NULL, "near");
    m = dts_diag_get(diag, 1);
    assert_int_equal(m->caret, 5);
    assert_int_equal(m->place.line_length, 3 * 160 + 3);
    dts_diag_free(diag);
}

static void appends_what_another_collected(void **state) {
    (void)state;
    dts_diag *diag = dts_diag_new(), *other = dts_diag_new();
    const dts_place place = {.file = "x", .line = 2, .column = 3, .line_text = "a: b", .line_length = 4};
    dts_diag_warning(diag, NULL, NULL, NULL, "first");
    dts_diag_error(other, &place, "a", "mend it", "second");
    dts_diag_fail(other, DTS_IO, NULL, "third");
    dts_text alone = {0}, both = {0};
    dts_diag_render(other, false, &alone);
    dts_diag_append(diag, other);
    dts_diag_free(other); /* the messages are copies */
    dts_diag_render(diag, false, &both);
    assert_string_equal(strstr(dts_text_string(&both), "x:2:3"), dts_text_string(&alone));
    assert_int_equal(dts_diag_errors(diag), 2);
    assert_int_equal(dts_diag_warnings(diag), 1);
    assert_int_equal(dts_diag_status(diag), DTS_IO);
    dts_text_free(&alone);
    dts_text_free(&both);
    dts_diag_free(diag);
}

static void same_letters_in_another_case_are_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"fp16", "bf16", "tf32"};
    assert_string_equal(dts_nearest_name("BF16", names, 3), "bf16");
    static const char *const joined[] = {"rtx-3090-nvlink-2", "rtx-4090-pcie-8", "zb-h1"};
    assert_string_equal(dts_nearest_name("rtx4090", joined, 3), "rtx-4090-pcie-8");
    assert_string_equal(dts_nearest_name("RTX_4090", joined, 3), "rtx-4090-pcie-8");
    assert_string_equal(dts_nearest_name("ZBH1", joined, 3), "zb-h1");
    assert_true(dts_same_letters("Zero_Bubble", "zero-bubble") && !dts_same_letters("-", "_"));
    assert_string_equal(dts_nearest_name("bf61", names, 3), "bf16");
    assert_null(dts_nearest_name("quaternion", names, 3));
}

static void patterns_fold_case_and_what_joins_words(void **state) {
    (void)state;
    assert_true(dts_is_like("gcp-a2-highgpu-8g", "*A2_high*"));
    assert_true(dts_is_like("gcp-a2-highgpu-8g", "gcp a2 HIGHGPU-[6-9]g"));
    assert_true(dts_is_like("H100-SXM5-80GB", "h100?sxm5*") == false); /* nothing joins, so ? is a letter */
    assert_false(dts_is_like("gcp-a2-highgpu-8g", "a2*"));
    assert_true(dts_holds_letters("Zero Bubble, Qi et al.", "zero-bubble") && !dts_holds_letters("zero", "-"));
    char longer[400], other[400];
    memset(longer, 'a', sizeof longer);
    memset(other, 'A', sizeof other);
    longer[sizeof longer - 1] = other[sizeof other - 1] = '\0';
    assert_true(dts_is_like(longer, other) && dts_same_letters(longer, other) && dts_holds_letters(longer, other));
    other[sizeof other - 2] = 'b';
    assert_false(dts_is_like(longer, other) || dts_same_letters(longer, other) || dts_holds_letters(longer, other));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renders_place_caret_and_help),
        cmocka_unit_test(shows_the_part_of_a_long_line),
        cmocka_unit_test(appends_what_another_collected),
        cmocka_unit_test(same_letters_in_another_case_are_nearest),
        cmocka_unit_test(patterns_fold_case_and_what_joins_words),
        cmocka_unit_test(keeps_a_bounded_number_and_counts_the_rest),
        cmocka_unit_test(finds_the_nearest_name),
        cmocka_unit_test(status_is_the_gravest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
