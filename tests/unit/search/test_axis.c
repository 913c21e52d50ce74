/* Lists, ranges and what is wrong with them. */
#include "check.h"
#include "search/axis.h"

static void expect(const char *text, const char *joined) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_axis axis = {0};
    assert_int_equal(dts_axis_parse("--vary", text, arena, &axis, diag), DTS_OK);
    dts_text got = {0};
    dts_text_printf(&got, "%s:", axis.key);
    for (size_t i = 0; i < axis.count; i++) {
        dts_text_printf(&got, " %s", axis.values[i]);
    }
    assert_string_equal(dts_text_string(&got), joined);
    dts_text_free(&got);
    dts_diag_free(diag);
    dts_arena_free(arena);
}

static void refuse(const char *text, const char *message) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_axis axis = {0};
    assert_int_equal(dts_axis_parse("--vary", text, arena, &axis, diag), DTS_USAGE);
    assert_int_equal(dts_diag_count(diag), 1);
    assert_string_equal(dts_diag_get(diag, 0)->text, message);
    assert_non_null(dts_diag_get(diag, 0)->help);
    dts_diag_free(diag);
    dts_arena_free(arena);
}

static void lists_and_ranges(void **state) {
    (void)state;
    expect("a.b=1", "a.b: 1");
    expect("a=x,y,z", "a: x y z");
    expect("a=1..4", "a: 1 2 3 4");
    expect("a=0..96+32", "a: 0 32 64 96");
    expect("a=1..64*4", "a: 1 4 16 64");
    expect("a=1..60*4,none", "a: 1 4 16 none");
    expect("a=full,{every: 2},[1, 2]", "a: full {every: 2} [1, 2]");
    expect("a='x,y',z", "a: 'x,y' z");
    expect("a=0.5,1e9", "a: 0.5 1e9");
    expect("a=../model.yaml", "a: ../model.yaml");
}

static void joined_keys_change_together(void **state) {
    (void)state;
    expect("a.b/c=1/2,3/4", "a.b/c: 1/2 3/4");
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_axis axis;
    assert_int_equal(dts_axis_parse("--vary", "a.b/c/d=1/2/x,3/4/y", arena, &axis, diag), DTS_OK);
    assert_int_equal(dts_axis_keys(&axis), 3);
    assert_string_equal(dts_axis_key(&axis, 0), "a.b");
    assert_string_equal(dts_axis_part(&axis, 0, 1), "2");
    assert_string_equal(dts_axis_part(&axis, 1, 2), "y");
    assert_int_equal(dts_axis_parse("--vary", "a.b=1,2", arena, &axis, diag), DTS_OK);
    assert_int_equal(dts_axis_keys(&axis), 1);
    assert_string_equal(dts_axis_key(&axis, 0), "a.b");
    assert_string_equal(dts_axis_part(&axis, 1, 0), "2");
    dts_diag_free(diag);
    dts_arena_free(arena);
    refuse("a/b=1/2,3", "--vary: '3' is not a value for each key of 'a/b'");
    refuse("a/b=1..4", "--vary: '1' is not a value for each key of 'a/b'");
}

static void what_is_wrong(void **state) {
    (void)state;
    refuse("a", "--vary: 'a' is not KEY=VALUES");
    refuse("=1", "--vary: '=1' is not KEY=VALUES");
    refuse("a=", "--vary: a value is empty");
    refuse("a=1,,2", "--vary: a value is empty");
    refuse("a=1,2,1", "--vary: '1' stands there twice");
    refuse("a=1..4,3", "--vary: '3' stands there twice");
    refuse("a=4..1", "--vary: the range '4..1' is empty or never ends");
    refuse("a=1..8*1", "--vary: the range '1..8*1' is empty or never ends");
    refuse("a=0..8*2", "--vary: the range '0..8*2' is empty or never ends");
    refuse("a=1..8+0", "--vary: the range '1..8+0' is empty or never ends");
    refuse("a=1..x", "--vary: '1..x' is not a range");
    refuse("a=1..1000000", "--vary: more than 10000 values");
    refuse("a={every: 2", "--vary: a bracket or quote is left open in '{every: 2'");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_and_ranges),
                                       cmocka_unit_test(joined_keys_change_together), cmocka_unit_test(what_is_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
