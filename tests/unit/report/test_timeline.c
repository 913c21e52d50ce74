/* The timeline in the terminal, drawn from a result made by hand. */
#include <stdlib.h>

#include "check.h"
#include "report/report.h"
#include "sample.h"

static char *draw(const dts_result *result, dts_timeline_options options) {
    dts_text text = {0};
    assert_int_equal(dts_report_timeline(result, &options, &text, NULL), DTS_OK);
    return text.data;
}

/* Label columns 7 + 10 + 2, right column 9: 60 columns are left, three per millisecond. */
static const dts_timeline_options ascii = {.style = {.width = 88, .color = false, .unicode = false}};

static void draws_every_kind_of_row_in_ascii(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    char *drawn = draw(&s.result, ascii);
    assert_string_equal(drawn,
                        "Timeline  0 s to 20.00 ms, one column is 333.3 us\n"
                        "\n"
                        "stage 0 compute    0FF1FF......0BBBBB2FF1BBBBB3FF2BBBBB...3BBBBB......OOOOOOOOO     75 %\n"
                        "        all-reduce .............................................======.........     10 %\n"
                        "        host       ------------------------------------------..................     70 %\n"
                        "        memory     222222222222555555555555555555555555555999999922222222222222 38.0 GiB\n"
                        "stage 1 compute    ...0FF0BBBBB1FF1BBBBB2FF2BBBBB3FF3BBBBB............OOOOOOOOO     75 %\n"
                        "        all-reduce .......................................======...............     10 %\n"
                        "        memory     222222333333333333333333333333333333333333333333333333333333 12.0 GiB\n"
                        "                   +--------------+--------------+--------------+--------------\n"
                        "                   0 ms           5              10             15\n"
                        "\n"
                        "F forward   B backward   = communication   O optimizer   - host   . idle\n"
                        "0 1 2 microbatch   0-9 memory, of what the GPU has\n");
    free(drawn);
}

static void shows_what_is_shorter_than_a_column(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    for (size_t i = 0; i < s.result.span_count; i++) {
        s.spans[i].end = s.spans[i].start + MS / 100; /* a hundredth of what it was: gaps everywhere */
    }
    char *drawn = draw(&s.result, ascii);
    assert_non_null(strstr(drawn, "stage 0 compute    f..f........b.....f..b.....f..b........b...........o........"));
    assert_non_null(strstr(drawn, "all-reduce .............................................:......"));
    assert_non_null(strstr(drawn, "busy less than half a column"));
    free(drawn);
}

/* The kernels of an undivided backward: input and weight gradients take turns, a copy into a bucket comes between. */
static void shows_an_undivided_backward_as_one(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    static const dts_span_kind kinds[] = {DTS_SPAN_BACKWARD, DTS_SPAN_BACKWARD_WEIGHT, DTS_SPAN_COMMUNICATION,
                                          DTS_SPAN_BACKWARD, DTS_SPAN_BACKWARD_WEIGHT, DTS_SPAN_BACKWARD};
    s.result.span_count = 0;
    for (int i = 0; i < 6; i++) {
        sample_span(&s, 0, 0, kinds[i], i == 2 ? -1 : 3, "kernel", 2 * i, 2 * i + 2);
    }
    char *drawn = draw(&s.result, ascii);
    assert_non_null(strstr(drawn, "compute    3BBBBBBBBBBB======BBBBBBBBBBBBBBBBBB......"));
    free(drawn);
    /* a small kernel of the backward that ran right behind the forward does not take the number with it */
    s.result.span_count = 0;
    sample_span(&s, 0, 0, DTS_SPAN_FORWARD, 3, "kernel", 0, 2);
    sample_span(&s, 0, 0, DTS_SPAN_BACKWARD, 3, "kernel", 2, 2);
    sample_span(&s, 0, 0, DTS_SPAN_BACKWARD, 3, "kernel", 10, 14);
    s.spans[0].end -= MS / 10;
    s.spans[1].start -= MS / 10;
    drawn = draw(&s.result, ascii);
    assert_non_null(strstr(drawn, "compute    3FFFFF........................3BBBBBBBBBBB......"));
    free(drawn);
    /* divided: all input gradients, then all weight gradients */
    s.result.span_count = 0;
    sample_span(&s, 0, 0, DTS_SPAN_BACKWARD, 3, "kernel", 0, 4);
    sample_span(&s, 0, 0, DTS_SPAN_BACKWARD_WEIGHT, 3, "kernel", 4, 8);
    drawn = draw(&s.result, ascii);
    assert_non_null(strstr(drawn, "compute    3BBBBBBBBBBBWWWWWWWWWWWW......"));
    free(drawn);
}

static void zooms(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    dts_timeline_options options = ascii;
    options.from_s = 0.004;
    options.to_s = 0.010;
    char *drawn = draw(&s.result, options);
    assert_non_null(strstr(drawn, "4.000 ms to 10.00 ms"));
    /* ten columns a millisecond: B0 4-6, F2 6-7, B1 7-9, F3 9-10 */
    assert_non_null(strstr(drawn, "0BBBBBBBBBBBBBBBBBBB2FFFFFFFFF1BBBBBBBBBBBBBBBBBBB3FFFFFFFFF    100 %"));
    free(drawn);
    dts_text text = {0};
    options.from_s = 0.05;
    options.to_s = 0.06;
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_report_timeline(&s.result, &options, &text, diag), DTS_INVALID);
    assert_int_equal(dts_diag_errors(diag), 1);
    dts_diag_free(diag);
    dts_text_free(&text);
}

static void fits_every_window(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    for (int width = DTS_STYLE_NARROWEST; width <= 300; width++) {
        const dts_timeline_options options = {.style = {.width = width, .color = width % 2 == 0, .unicode = true}};
        char *drawn = draw(&s.result, options);
        char *rest = NULL;
        for (char *line = strtok_r(drawn, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
            if (dts_style_columns(line) > (size_t)width) {
                print_error("width %d, %zu columns: %s\n", width, dts_style_columns(line), line);
                fail();
            }
        }
        free(drawn);
    }
}

static void survives_hundreds_of_devices(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    enum { DEVICES = 200 };
    static const char *names[DEVICES];
    static dts_stream_row streams[DEVICES];
    static dts_span spans[DEVICES];
    for (uint32_t i = 0; i < DEVICES; i++) {
        names[i] = "gpu";
        streams[i] = (dts_stream_row){i, "compute"};
        spans[i] = s.spans[0];
        spans[i].device = spans[i].stream = i;
    }
    s.result.devices = names;
    s.result.device_count = s.result.stream_count = s.result.span_count = DEVICES;
    s.result.streams = streams;
    s.result.spans = spans;
    char *drawn = draw(&s.result, ascii);
    assert_non_null(strstr(drawn, "(136 more devices; a trace file shows all)"));
    free(drawn);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_every_kind_of_row_in_ascii),
        cmocka_unit_test(shows_what_is_shorter_than_a_column),
        cmocka_unit_test(zooms),
        cmocka_unit_test(shows_an_undivided_backward_as_one),
        cmocka_unit_test(fits_every_window),
        cmocka_unit_test(survives_hundreds_of_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
