/* What is kept of a file grows as the file does: one copy of a line, however many values stand in it. */
#include "check.h"
#include "interop/inside.h"

enum { BYTES_FOR_A_BYTE = 200 };

static void import_text(const dts_launcher *launcher, const dts_text *text) {
    dts_notes notes = {.arena = dts_arena_new(DTS_ARENA_UNLIMITED)};
    dts_settings base = {.arena = notes.arena};
    dts_diag *diag = dts_diag_new();
    dts_override *overrides = NULL;
    size_t count = 0;
    dts_import(launcher, dts_text_string(text), text->length, "file", &base, &notes, &overrides, &count, diag);
    assert_int_equal(dts_diag_errors(diag), 0);
    assert_true(notes.count > 4000); /* every key is told of */
    const size_t used = dts_arena_used(notes.arena);
    if (used > BYTES_FOR_A_BYTE * text->length) {
        print_error("%s: %zu bytes for %zu\n", launcher->name, used, text->length);
        fail();
    }
    dts_diag_free(diag);
    dts_arena_free(notes.arena);
}

static void keys_of_one_line_share_it(void **state) {
    (void)state;
    dts_text text = {0};
    dts_text_add(&text, "{\"zero_optimization\":{\"stage\":2}");
    for (int i = 0; i < 5000; i++) {
        dts_text_printf(&text, ",\"unknown_key_%d\":%d", i, i);
    }
    dts_text_add(&text, "}");
    import_text(&dts_launcher_deepspeed, &text);
    dts_text_free(&text);
}

static void flags_of_one_line_share_it(void **state) {
    (void)state;
    dts_text text = {0};
    dts_text_add(&text, "torchrun pretrain_gpt.py --num-layers 8");
    for (int i = 0; i < 5000; i++) {
        dts_text_printf(&text, " --unknown-%d %d", i, i);
    }
    import_text(&dts_launcher_megatron, &text);
    dts_text_free(&text);
}

static void sections_are_many(void **state) {
    (void)state;
    dts_text text = {0};
    for (int i = 0; i < 5000; i++) {
        dts_text_printf(&text, "[s%d]\nk = 1\n", i);
    }
    import_text(&dts_launcher_torchtitan_toml, &text);
    dts_text_free(&text);
}

static void sections_and_keys_stand_once(void **state) {
    (void)state;
    static const char text[] = "[a]\nk = 1\n[b]\nk = 1\n[a]\nl = 1\n[b.c]\nk = 1\nk = 2\n";
    dts_settings out = {.arena = dts_arena_new(DTS_ARENA_UNLIMITED)};
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_read_toml(text, sizeof text - 1, "file", &out, diag), DTS_INVALID);
    assert_int_equal(dts_diag_errors(diag), 2);
    assert_string_equal(dts_diag_get(diag, 0)->text, "the key stands there twice");
    assert_int_equal(dts_diag_get(diag, 0)->place.line, 9);
    assert_string_equal(dts_diag_get(diag, 1)->text, "the section stands there twice");
    assert_int_equal(dts_diag_get(diag, 1)->place.line, 5);
    dts_diag_free(diag);
    dts_arena_free(out.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_one_line_share_it), cmocka_unit_test(flags_of_one_line_share_it),
        cmocka_unit_test(sections_are_many), cmocka_unit_test(sections_and_keys_stand_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
