/* Setting by dotted key, and merging. */
#include "config/tree.h"
#include "loaded.h"

static void expect_set(const char *text, const char *key, const char *value, const char *want) {
    loaded l;
    loaded_read(&l, text, strlen(text), NULL);
    const dts_place origin = {.file = "--set"};
    dts_status status = dts_document_set(l.document, key, value, &origin, l.diag);
    dts_text got = {0};
    if (status == DTS_OK) {
        dts_node_write(dts_document_root(l.document), &got);
    } else {
        dts_diag_render(l.diag, false, &got);
    }
    assert_string_equal(dts_text_string(&got), want);
    dts_text_free(&got);
    unload(&l);
}

static void test_set(void **state) {
    (void)state;
    expect_set("a: 1\nb: 2\n", "a", "3", "{a: 3, b: 2}"); /* in place */
    expect_set("a: 1\n", "b", "x y", "{a: 1, b: x y}");
    expect_set("", "a.b.c", "1", "{a: {b: {c: 1}}}");
    expect_set("a:\n", "a.b", "1", "{a: {b: 1}}");
    expect_set("a: {b: 1, c: 2}\n", "a.b", "{d: [1, 2]}", "{a: {b: {d: [1, 2]}, c: 2}}");
    expect_set("a: gpt\n", "a.layers", "8", "{a: {profile: gpt, layers: 8}}");
    expect_set("a: {profile: gpt}\n", "a.layers", "8", "{a: {profile: gpt, layers: 8}}");
    expect_set("a: {profile: gpt}\n", "a", "llama", "{a: llama}");
    expect_set("a: 1\n", "a", "", "{a: null}");
    expect_set("a: 1\n", "a", "'8'", "{a: \"8\"}");
    expect_set("a: 1\n", "a", "100 Gbit/s", "{a: 100 Gbit/s}");
    expect_set("a: [1]\n", "a", "[2, 3]", "{a: [2, 3]}");
    expect_set("a: [1]\n", "a.0", "2",
               "--set: error: 'a' is a list; its entries cannot be set one by one [a.0]\n"
               "  help: set the whole list, such as KEY=[1, 2]\n");
    expect_set("a: 1\n", "b", "[1",
               "--set: error: the list is not closed [b]\n"
               "  help: close it with ']', and put ',' between entries\n");
    expect_set("a: 1\n", "b", "{x: 1, x: 2}", "--set: error: duplicate key 'x' [b]\n  help: keep one of the two\n");
    static const char *const wrong_keys[] = {"", ".", "a.", ".a", "a..b"};
    for (size_t i = 0; i < sizeof wrong_keys / sizeof wrong_keys[0]; i++) {
        char want[128];
        snprintf(want, sizeof want,
                 "--set: error: '%s' is no key\n  help: write KEY=VALUE with a key such as training.micro_batch\n",
                 wrong_keys[i]);
        expect_set("a: 1\n", wrong_keys[i], "1", want);
    }
}

/* Errors in a set value point to where it was given. */
static void test_places(void **state) {
    (void)state;
    loaded l;
    const char *text = "whole: 1\ninner: {count: 2}\n";
    loaded_read(&l, text, strlen(text), NULL);
    char line[] = "id,inner.count\nrow1,many\n"; /* may be gone when the message is written */
    dts_place origin = {.file = "table.csv", .line = 2, .column = 6, .line_text = line + 15, .line_length = 9};
    assert_int_equal(dts_document_set(l.document, "inner.count", "many", &origin, l.diag), DTS_OK);
    memset(line, 'x', sizeof line - 1);
    loaded_bind(&l);
    expect_messages(&l,
                    "table.csv:2:6: error: expected a whole number, got 'many' [inner.count]\n"
                    "      2 | row1,many\n        |      ^\n  help: write a whole number such as 8\n");
    unload(&l);
}

static void test_set_many_levels(void **state) {
    (void)state;
    dts_text key = {0};
    dts_text_add(&key, "a");
    dts_text_add_repeated(&key, ".a", 100000);
    dts_document *document = dts_document_new();
    assert_int_equal(dts_document_set(document, key.data, "1", NULL, NULL), DTS_INVALID);
    assert_int_equal(dts_document_set(document, "a.b", "1", NULL, NULL), DTS_OK);
    assert_string_equal(dts_node_find(dts_document_root(document), "a.b")->text, "1");
    dts_document_free(document);
    dts_text_free(&key);
}

static void expect_merge(const char *base, const char *overlay, const char *want) {
    loaded a;
    loaded b;
    loaded_read(&a, base, strlen(base), NULL);
    loaded_read(&b, overlay, strlen(overlay), NULL);
    dts_document *document = dts_document_new();
    const dts_node *merged =
        dts_tree_merge(dts_document_root(a.document), dts_document_root(b.document), dts_document_arena(document));
    dts_text got = {0};
    dts_node_write(merged, &got);
    assert_string_equal(dts_text_string(&got), want);
    dts_text_free(&got);
    dts_document_free(document);
    unload(&a);
    unload(&b);
}

static void test_merge(void **state) {
    (void)state;
    expect_merge("{a: 1, b: 2}", "{b: 3, c: 4}", "{a: 1, b: 3, c: 4}");
    expect_merge("{a: {x: 1, y: 2}}", "{a: {y: 3}}", "{a: {x: 1, y: 3}}");
    expect_merge("{a: [1, 2]}", "{a: [3]}", "{a: [3]}");
    expect_merge("{a: {x: 1}}", "{a: 5}", "{a: 5}");
    expect_merge("{a: {x: 1}}", "{a: ~}", "{a: null}");
    expect_merge("{a: name}", "{a: {x: 1}}", "{a: {profile: name, x: 1}}");
    expect_merge("{a: name}", "{a: {profile: other, x: 1}}", "{a: {profile: other, x: 1}}");
    expect_merge("{a: [1]}", "{a: {x: 1}}", "{a: {x: 1}}");
    expect_merge("{a: {value: 1, source: s}}", "{a: {value: 2}}", "{a: {value: 2}}");
    expect_merge("{a: {value: 1, source: s}}", "{a: 2}", "{a: 2}");
    expect_merge("{a: 1}", "{}", "{a: 1}");
    expect_merge("{}", "{a: 1}", "{a: 1}");
    expect_merge("5", "{a: 1}", "{profile: 5, a: 1}");
    dts_document *document = dts_document_new();
    dts_arena *arena = dts_document_arena(document);
    assert_null(dts_tree_merge(NULL, NULL, arena));
    dts_node *root = dts_document_root(document);
    assert_int_equal(dts_tree_merge(root, NULL, arena)->kind, DTS_NODE_NULL);
    assert_int_equal(dts_tree_merge(NULL, root, arena)->kind, DTS_NODE_NULL);
    dts_document_free(document);
}

/* The copy shares nothing that a later change could reach. */
static void test_merge_copies(void **state) {
    (void)state;
    loaded l;
    const char *text = "a: {b: 1}\n";
    loaded_read(&l, text, strlen(text), NULL);
    dts_node *root = dts_document_root(l.document);
    const dts_node *copy = dts_tree_merge(root, NULL, dts_document_arena(l.document));
    assert_int_equal(dts_document_set(l.document, "a.b", "2", NULL, NULL), DTS_OK);
    assert_string_equal(dts_node_find(copy, "a.b")->text, "1");
    assert_string_equal(dts_node_find(root, "a.b")->text, "2");
    assert_int_equal(dts_node_find(copy, "a.b")->place.column, 8); /* places are kept */
    unload(&l);
}

/* A plain form that a map replaces ("choice: none" under {every: 2}) leaves no `profile` behind; a map that was given
 * a plain value is told so. */
static void test_replaced_plain_forms(void **state) {
    (void)state;
    loaded l;
    const char *text = "whole: 1\ninner: {count: 2}\nchoice: none\noptional: 7\n";
    const dts_place origin = {.file = "--set"};
    loaded_read(&l, text, strlen(text), NULL);
    assert_int_equal(dts_document_set(l.document, "choice.every", "3", &origin, l.diag), DTS_OK);
    assert_int_equal(dts_document_set(l.document, "optional.count", "3", &origin, l.diag), DTS_OK);
    loaded_bind(&l);
    assert_int_equal(l.values.choice.every, 3);
    expect_messages(&l,
                    "x.yaml:4:11: error: expected a map of keys, got '7' [optional]\n"
                    "      4 | optional: 7\n        |           ^\n"
                    "  help: write one 'KEY: VALUE' a line; keys are count, speed, label\n");
    unload(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),          cmocka_unit_test(test_places),
        cmocka_unit_test(test_merge),        cmocka_unit_test(test_set_many_levels),
        cmocka_unit_test(test_merge_copies), cmocka_unit_test(test_replaced_plain_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
