/* Numbers as people write them. */
#include "check.h"
#include "report/format.h"
#include "report/grid.h"

static void assert_written(dts_formatter *formatter, double value, const char *expected) {
    char buffer[64];
    assert_string_equal(dts_formatted(formatter, value, buffer, sizeof buffer), expected);
}

static void writes_times(void **state) {
    (void)state;
    assert_written(dts_format_time, 0, "0 s");
    assert_written(dts_format_time, 0.065, "65.00 ms");
    assert_written(dts_format_time, 0.6431234, "643.1 ms");
    assert_written(dts_format_time, 0.99994, "999.9 ms");
    assert_written(dts_format_time, 0.99996, "1.000 s");
    assert_written(dts_format_time, 128.64, "128.6 s");
    assert_written(dts_format_time, 86400, "86400.0 s");
    assert_written(dts_format_time, 6e-6, "6.000 us");
    assert_written(dts_format_time, 1e-12, "0.001 ns");
}

static void writes_bytes(void **state) {
    (void)state;
    assert_written(dts_format_bytes, 0, "0 B");
    assert_written(dts_format_bytes, 1023, "1023 B");
    assert_written(dts_format_bytes, 24.0 * 1048576, "24.0 MiB");
    assert_written(dts_format_bytes, 1.5 * 1073741824, "1.50 GiB");
    assert_written(dts_format_bytes, 741.4 * 1048576, "741 MiB");
}

static void writes_counts(void **state) {
    (void)state;
    assert_written(dts_format_count, 0, "0");
    assert_written(dts_format_count, 12.3456, "12.3");
    assert_written(dts_format_count, 999.4, "999");
    assert_written(dts_format_count, 999.6, "1,000");
    assert_written(dts_format_count, 1234567, "1,234,567");
    assert_written(dts_format_count, -1234, "-1,234");
    assert_written(dts_format_count, 123456, "123,456");
    assert_written(dts_format_large, 12345, "12,345");
    assert_written(dts_format_large, 834e6, "834 million");
    assert_written(dts_format_large, 2.8e9, "2.80 billion");
    assert_written(dts_format_large, 175e9, "175 billion");
    assert_written(dts_format_large, 1e12, "1.00 trillion");
    assert_written(dts_format_percent, 0.728, "72.8 %");
    assert_written(dts_format_percent, -0.0004, "0.0 %");
    assert_written(dts_format_change, -0.0004, "+0.0 %");
    assert_written(dts_format_change, -0.0006, "-0.1 %");
    assert_written(dts_format_change, 0.07, "+7.0 %");
    assert_written(dts_format_count, -0.0, "0");
    assert_written(dts_format_bytes, -0.3, "0 B");
    assert_written(dts_format_bytes, -0.5, "0 B"); /* a half goes to the even number */
    assert_written(dts_format_bytes, -0.51, "-1 B");
    assert_written(dts_format_percent, -0.0005, "-0.1 %"); /* a little more than half of it in binary */
    assert_written(dts_format_time, -1e-13, "0.000 ns");
    assert_written(dts_format_duration, -0.0, "0 s");
}

static void tables_wrap_text_in_its_column(void **state) {
    (void)state;
    static const char *const titles[] = {"name", "n", "what it is"};
    dts_grid *grid = dts_grid_new(titles, 3, 5);
    dts_grid_add(grid, "a name of many letters");
    dts_grid_printf(grid, "%d", 123456789);
    dts_grid_add(grid, "first second third fourth fifth");
    const dts_style style = {.width = 53, .unicode = true};
    dts_text text = {0};
    dts_grid_print(grid, &style, 1, &text);
    assert_string_equal(dts_text_string(&text),
                        " name                     n  what it is\n"
                        " a name of many   123456789  first second third\n"
                        "   letters                   fourth fifth\n");
    dts_text_free(&text);
    dts_grid_free(grid);
}

/* Numbers alone fill the window: the text goes beneath its row, and no line ends with blanks. */
static void tables_put_the_last_column_beneath(void **state) {
    (void)state;
    static const char *const titles[] = {"rank", "first number", "second number", "plan"};
    dts_grid *grid = dts_grid_new(titles, 4, 1 | 8);
    static const char *const cells[] = {"1", "123456789", "", "tensor 4 with a pipeline of eight stages",
                                        "2", "7",         "", ""};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        dts_grid_add(grid, cells[i]);
    }
    const dts_style style = {.width = 46, .unicode = true};
    dts_text text = {0};
    dts_grid_print(grid, &style, 1, &text);
    assert_string_equal(dts_text_string(&text),
                        " rank  first number  second number\n"
                        "     plan\n"
                        " 1        123456789\n"
                        "     tensor 4 with a pipeline of eight stages\n"
                        " 2                7\n");
    dts_text_free(&text);
    dts_grid_free(grid);
}

static dts_grid *names_and_numbers(unsigned numbers) {
    static const char *const titles[] = {"training.micro_batch", "A", "B", "", "C", "", "D", "", "E", ""};
    dts_grid *grid = dts_grid_new(titles, 1 + numbers, 1);
    dts_grid_keep(grid, 1);
    for (int row = 0; row < 2; row++) {
        dts_grid_printf(grid, "a_name_of_layers-%d", row);
        for (unsigned i = 0; i < numbers; i++) {
            dts_grid_printf(grid, "%d23456", row + 1);
        }
    }
    return grid;
}

/* Names give way last, and a name that is broken differs from the others still. */
static void tables_wrap_names_rather_than_cut_them(void **state) {
    (void)state;
    dts_grid *grid = names_and_numbers(3);
    const dts_style style = {.width = 40, .unicode = true};
    dts_text text = {0};
    dts_grid_print(grid, &style, 0, &text);
    assert_string_equal(dts_text_string(&text),
                        "training.              A       B\n"
                        "  micro_batch\n"
                        "a_name_of_        123456  123456  123456\n"
                        "  layers-0\n"
                        "a_name_of_        223456  223456  223456\n"
                        "  layers-1\n");
    dts_text_free(&text);
    dts_grid_free(grid);
}

/* Numbers that are too wide for the window stand in several tables; those without a title stay where they belong. */
static void tables_of_many_numbers_stand_in_parts(void **state) {
    (void)state;
    dts_grid *grid = names_and_numbers(5);
    const dts_style style = {.width = 48, .unicode = true};
    dts_text text = {0};
    dts_grid_print(grid, &style, 0, &text);
    assert_string_equal(dts_text_string(&text),
                        "training.micro_batch       A       B\n"
                        "a_name_of_layers-0    123456  123456  123456\n"
                        "a_name_of_layers-1    223456  223456  223456\n"
                        "\n"
                        "training.micro_batch       C\n"
                        "a_name_of_layers-0    123456  123456\n"
                        "a_name_of_layers-1    223456  223456\n");
    dts_text_free(&text);
    dts_grid_free(grid);
}

static void bars_show_what_is_there(void **state) {
    (void)state;
    const dts_style ascii = {.width = 80};
    const dts_style unicode = {.width = 80, .unicode = true};
    static const struct {
        double share;
        const char *ascii, *unicode;
    } cases[] = {
        {0, "....", "····"},   {0.01, "#...", "▏···"}, {0.5, "##..", "██··"},
        {0.6, "##..", "██▍·"}, {1, "####", "████"},    {7, "####", "████"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_text text = {0};
        dts_style_bar(&ascii, DTS_PAINT_GOOD, cases[i].share, 4, &text);
        assert_string_equal(dts_text_string(&text), cases[i].ascii);
        dts_text_clear(&text);
        dts_style_bar(&unicode, DTS_PAINT_GOOD, cases[i].share, 4, &text);
        assert_string_equal(dts_text_string(&text), cases[i].unicode);
        dts_text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_times),
        cmocka_unit_test(writes_bytes),
        cmocka_unit_test(writes_counts),
        cmocka_unit_test(bars_show_what_is_there),
        cmocka_unit_test(tables_wrap_text_in_its_column),
        cmocka_unit_test(tables_put_the_last_column_beneath),
        cmocka_unit_test(tables_wrap_names_rather_than_cut_them),
        cmocka_unit_test(tables_of_many_numbers_stand_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
