/* CSV tables: quoting, and errors with their place. */
#include "check.h"
#include "config/table.h"

typedef struct loaded {
    dts_arena *arena;
    dts_diag *diag;
    dts_table table;
    dts_status status;
    char first[256]; /* "line:column message" of the first error */
} loaded;

static loaded load(const char *text) {
    loaded l = {.arena = dts_arena_new(DTS_ARENA_UNLIMITED), .diag = dts_diag_new()};
    l.status = dts_table_parse(text, strlen(text), "t.csv", l.arena, &l.table, l.diag);
    const dts_message *message = dts_diag_get(l.diag, 0);
    if (message != NULL) {
        snprintf(l.first, sizeof l.first, "%u:%u %s", message->place.line, message->place.column, message->text);
    }
    return l;
}

static void unload(loaded *l) {
    dts_arena_free(l->arena);
    dts_diag_free(l->diag);
}

static const char *cell(const loaded *l, size_t row, size_t column) {
    return l->table.cells[row * l->table.columns + column].text;
}

static void reads_quotes_line_ends_and_a_byte_order_mark(void **state) {
    (void)state;
    loaded l = load(
        "\xef\xbb\xbf"
        "id,note,x\r\n"
        "a,\"one, two\",1\r\n"
        "\r\n"
        "b,\"say \"\"hi\"\"\nthere\",\n"
        "\"\",ü,3");
    assert_int_equal(l.status, DTS_OK);
    assert_int_equal(l.table.columns, 3);
    assert_int_equal(l.table.rows, 3);
    assert_string_equal(l.table.header[0].text, "id");
    assert_string_equal(cell(&l, 0, 1), "one, two");
    assert_string_equal(cell(&l, 0, 2), "1");
    assert_string_equal(cell(&l, 1, 1), "say \"hi\"\nthere");
    assert_string_equal(cell(&l, 1, 2), "");
    assert_string_equal(cell(&l, 2, 0), "");
    assert_string_equal(cell(&l, 2, 1), "ü");
    const dts_place *place = &l.table.cells[2 * 3 + 2].place;
    assert_int_equal(place->line, 6);
    assert_int_equal(place->column, 6); /* characters, not bytes */
    assert_int_equal(dts_table_column(&l.table, "x"), 2);
    assert_true(dts_table_column(&l.table, "y") == SIZE_MAX);
    unload(&l);
}

/* As spreadsheets and people write them: blanks beside commas, and lines of commas alone. */
static void blanks_around_cells_do_not_count(void **state) {
    (void)state;
    loaded l = load(
        "id, x ,\ty\n"
        "  a b , \" c \" ,1 \n"
        ",,\n"
        " , ,\r\n"
        "d,,2\n");
    assert_int_equal(l.status, DTS_OK);
    assert_int_equal(l.table.rows, 2);
    assert_string_equal(l.table.header[1].text, "x");
    assert_string_equal(l.table.header[2].text, "y");
    assert_string_equal(cell(&l, 0, 0), "a b");
    assert_string_equal(cell(&l, 0, 1), " c ");
    assert_string_equal(cell(&l, 0, 2), "1");
    assert_int_equal(l.table.cells[2].place.line, 2);
    assert_int_equal(l.table.cells[0].place.column, 3);
    assert_string_equal(cell(&l, 1, 0), "d");
    unload(&l);
}

static void places_every_error(void **state) {
    (void)state;
    static const struct {
        const char *text, *first;
        size_t errors;
    } cases[] = {
        {"", "0:0 the table is empty", 1},
        {"a,b\n1\n2,3\n4,5,6\n", "2:1 1 cells, but the header names 2 columns", 2},
        {"a,b\n1,\"x\n2,3\n", "2:3 this quote has no end", 1},
        {"a,b\n1,\"x\"y\n", "2:6 text behind a closing quote", 1},
        {"a,b\n1,x\"y\"\n", "2:4 a quote inside a cell without quotes", 1},
        {"a,,b\n1,2,3\n", "1:3 a column without a name", 1},
        {"a,b,a\n1,2,3\n", "1:5 column 'a' is there twice", 1},
        {"a\n\x01\n", "2:1 control character", 1},
        {"id;x\n1;2\n", "1:1 columns are separated by semicolons, not by commas", 1},
        {"id\tx\n1\t2\n", "1:1 columns are separated by tabs, not by commas", 1},
        {"\xff\xfei", "0:0 the table is written in UTF-16", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        loaded l = load(cases[i].text);
        assert_int_equal(l.status, DTS_INVALID);
        assert_string_equal(l.first, cases[i].first);
        assert_int_equal(dts_diag_errors(l.diag), cases[i].errors);
        unload(&l);
    }
}

static void refuses_what_is_no_text_and_what_is_not_there(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_table table;
    assert_int_equal(dts_table_parse("a\n\0b\n", 5, "t.csv", arena, &table, diag), DTS_INVALID);
    assert_int_equal(dts_table_read("no/such/table.csv", arena, &table, diag), DTS_IO);
    dts_diag_free(diag);
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_quotes_line_ends_and_a_byte_order_mark),
        cmocka_unit_test(blanks_around_cells_do_not_count),
        cmocka_unit_test(places_every_error),
        cmocka_unit_test(refuses_what_is_no_text_and_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
