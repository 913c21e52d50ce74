/* Reading: what is understood, what is refused, and in which words. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaded.h"

static void test_trees(void **state) {
    (void)state;
    expect_tree("a: 1\nb: [x, 'y', \"z\"]\nc: {d: ~, e: }\n", "{a: 1, b: [x, \"y\", \"z\"], c: {d: null, e: null}}");
    expect_tree("{\"a\": 1, \"b\": [true, null], \"c\": {\"d\": \"x\\u00e9\\n\"}}",
                "{a: 1, b: [true, null], c: {d: \"x\xc3\xa9\\n\"}}");
    expect_tree("{\n\t\"a\": 1,\n\t\"b\": \"p\\/q\"\n}\n", "{a: 1, b: \"p/q\"}"); /* JSON may indent with tabs */
    expect_tree("{\"a\":1,\"b\":[2,3]}", "{a: 1, b: [2, 3]}");
    expect_tree("a: 1\r\nb:\r\n  - 2\r\n  - 3\r\n", "{a: 1, b: [2, 3]}");
    expect_tree(
        "\xef\xbb\xbf"
        "a: 1\n",
        "{a: 1}");
    expect_tree("%YAML 1.1\n---\na: 1\n...\n", "{a: 1}");
    expect_tree("", "null");
    expect_tree("# only a comment\n", "null");
    expect_tree("---\n", "null");
    expect_tree("just text\n", "just text");
    expect_tree("a: |\n  one\n  two\nb: >\n  one\n  two\n", "{a: \"one\\ntwo\\n\", b: \"one two\\n\"}");
    expect_tree("a: null\nb: Null\nc: 'null'\nd: NULL\ne: nul\n", "{a: null, b: null, c: \"null\", d: null, e: nul}");
    expect_tree("base: &b {x: 1, y: [2]}\ncopy: *b\nagain: *b\n",
                "{base: {x: 1, y: [2]}, copy: {x: 1, y: [2]}, again: {x: 1, y: [2]}}");
    expect_tree("a: &x 1\nb: &x 2\nc: *x\n", "{a: 1, b: 2, c: 2}");
    expect_tree("a: 12.5 GB/s\nb: 80 %\nc: a#b\nd: x  # comment\n", "{a: 12.5 GB/s, b: 80 %, c: \"a#b\", d: x}");
}

static void test_places(void **state) {
    (void)state;
    loaded l;
    const char *text = "a: 1\nb\xc3\xa9:   {c: 2,\n  d: [3, 4]}\n";
    loaded_read(&l, text, strlen(text), NULL);
    const dts_node *root = dts_document_root(l.document);
    const dts_node *b = dts_node_get(root, "b\xc3\xa9");
    assert_int_equal(b->key_place.line, 2);
    assert_int_equal(b->key_place.column, 1);
    assert_int_equal(b->place.column, 7); /* in characters, not bytes */
    const dts_node *d = dts_node_get(b, "d");
    assert_int_equal(d->key_place.line, 3);
    assert_int_equal(d->key_place.column, 3);
    assert_int_equal(d->first->next->place.column, 10);
    assert_int_equal(d->place.line_length, strlen("  d: [3, 4]}"));
    assert_memory_equal(d->place.line_text, "  d: [3, 4]}", d->place.line_length);
    assert_string_equal(d->place.file, "x.yaml");
    assert_int_equal(root->count, 2);
    assert_int_equal(d->count, 2);
    unload(&l);
}

static void test_get_and_find(void **state) {
    (void)state;
    loaded l;
    const char *text = "a: {b: {c: 1}, 'b.c': 2}\nd: [1]\n";
    loaded_read(&l, text, strlen(text), NULL);
    const dts_node *root = dts_document_root(l.document);
    assert_string_equal(dts_node_find(root, "a.b.c")->text, "1");
    assert_non_null(dts_node_find(root, "a"));
    assert_null(dts_node_find(root, "a.x"));
    assert_null(dts_node_find(root, "a.b.c.d"));
    assert_null(dts_node_find(root, "d.0"));
    assert_null(dts_node_find(root, ""));
    assert_null(dts_node_find(root, "a."));
    assert_null(dts_node_find(NULL, "a"));
    assert_null(dts_node_get(NULL, "a"));
    assert_null(dts_node_get(dts_node_get(root, "d"), "a"));
    unload(&l);
}

static void test_source_spreads(void **state) {
    (void)state;
    loaded l;
    const char *text = "source: paper\na: 1\nb: {c: 2, source: page}\nd: {value: 3, source: [x]}\n";
    loaded_read(&l, text, strlen(text), NULL);
    const dts_node *root = dts_document_root(l.document);
    assert_string_equal(dts_node_find(root, "a")->source, "paper");
    assert_string_equal(dts_node_find(root, "b.c")->source, "page");
    assert_string_equal(dts_node_find(root, "d.value")->source, "paper"); /* a source is one text */
    unload(&l);
}

typedef struct bad_case {
    const char *text;
    const char *want;
} bad_case;

static const bad_case bad[] = {
    {"a: 1\nb: 2\na: 3\nb: 4\na: 5\n",
     "x.yaml:3:1: error: duplicate key 'a', first given on line 1\n"
     "      3 | a: 3\n"
     "        | ^\n"
     "  help: keep one of the two\n"
     "x.yaml:4:1: error: duplicate key 'b', first given on line 2\n"
     "      4 | b: 4\n"
     "        | ^\n"
     "  help: keep one of the two\n"
     "x.yaml:5:1: error: duplicate key 'a', first given on line 1\n"
     "      5 | a: 5\n"
     "        | ^\n"
     "  help: keep one of the two\n"},
    {"a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n",
     "x.yaml:3:3: error: the merge key '<<' is not supported\n"
     "      3 |   <<: *x\n"
     "        |   ^\n"
     "  help: write the keys out, or name a base with `extends:` or `profile:`\n"},
    {"a: !!python/object:os.system x\nb: !x 2\n",
     "x.yaml:1:4: error: tags such as 'tag:yaml.org,2002:python/object:os.system' are not allowed\n"
     "      1 | a: !!python/object:os.system x\n"
     "        |    ^\n"
     "  help: remove the tag; the schema knows the type of every value\n"
     "x.yaml:2:4: error: tags such as '!x' are not allowed\n"
     "      2 | b: !x 2\n"
     "        |    ^\n"
     "  help: remove the tag; the schema knows the type of every value\n"},
    {"{a: b}: 1\n",
     "x.yaml:1:1: error: a key must be plain text\n"
     "      1 | {a: b}: 1\n"
     "        | ^\n"
     "  help: put quotes around a key or value that holds one of { } [ ] * &\n"},
    {"? [a, b]\n: 1\n",
     "x.yaml:1:3: error: a key must be plain text\n"
     "      1 | ? [a, b]\n"
     "        |   ^\n"
     "  help: put quotes around a key or value that holds one of { } [ ] * &\n"},
    {"a: &k x\n*k : 1\n",
     "x.yaml:2:1: error: a key must be plain text\n"
     "      2 | *k : 1\n"
     "        | ^\n"
     "  help: put quotes around a key or value that holds one of { } [ ] * &\n"},
    {": 1\n",
     "x.yaml:1:1: error: the key before ':' is missing\n"
     "      1 | : 1\n"
     "        | ^\n"
     "  help: write KEY: VALUE\n"},
    {"'': 1\n",
     "x.yaml:1:1: error: a key is empty\n"
     "      1 | '': 1\n"
     "        | ^\n"
     "  help: write KEY: VALUE\n"},
    {"a: *b\n",
     "x.yaml:1:4: error: unknown alias '*b'\n"
     "      1 | a: *b\n"
     "        |    ^\n"
     "  help: an anchor &NAME must stand before its alias *NAME; put quotes around text that starts with '*'\n"},
    {"a: &gpus 1\nb: *gpu\n",
     "x.yaml:2:4: error: unknown alias '*gpu'\n"
     "      2 | b: *gpu\n"
     "        |    ^\n"
     "  help: did you mean *gpus?\n"},
    {"a: &x [1, *x]\n",
     "x.yaml:1:11: error: alias '*x' stands inside the value it names\n"
     "      1 | a: &x [1, *x]\n"
     "        |           ^\n"
     "  help: write the value out\n"},
    {"a: 1\n---\nb: 2\n",
     "x.yaml:2:1: error: a second document begins here; a file holds one\n"
     "      2 | ---\n"
     "        | ^\n"
     "  help: put it into a file of its own\n"},
    {"a: 1\n\tb: 2\n",
     "x.yaml:2:1: error: a tab cannot indent a line\n"
     "      2 |  b: 2\n"
     "        | ^\n"
     "  help: indent with spaces\n"},
    {"a:\n\tb: 2\n",
     "x.yaml:2:1: error: a tab cannot indent a line\n"
     "      2 |  b: 2\n"
     "        | ^\n"
     "  help: indent with spaces\n"},
    {"a: b: c\n",
     "x.yaml:1:5: error: a ':' is not allowed here\n"
     "      1 | a: b: c\n"
     "        |     ^\n"
     "  help: check the indentation, and the ':' of the line above; put quotes around text that holds ': '\n"},
    {"a: [1, 2\nb: 3\n",
     "x.yaml:2:2: error: the list is not closed, begun on line 1\n"
     "      2 | b: 3\n"
     "        |  ^\n"
     "  help: close it with ']', and put ',' between entries\n"},
    {"a: {b: 1\n",
     "x.yaml:2:1: error: the map is not closed, begun on line 1\n"
     "  help: close it with '}', and put ',' between entries\n"},
    {"a: \"x\nb: 1\n",
     "x.yaml:3:1: error: the quoted text is not closed, begun on line 1\n"
     "  help: close it with the same quote\n"},
    {"a: 1\nb 2\n",
     "x.yaml:3:1: error: this line has no ':' behind its key, begun on line 2\n"
     "  help: write KEY: VALUE\n"},
    {"a: 1\n  b: 2\n",
     "x.yaml:2:4: error: a ':' is not allowed here\n"
     "      2 |   b: 2\n"
     "        |    ^\n"
     "  help: check the indentation, and the ':' of the line above; put quotes around text that holds ': '\n"},
    {"  a: 1\nb: 2\n",
     "x.yaml:2:1: error: more text follows after the end of the document\n"
     "      2 | b: 2\n"
     "        | ^\n"
     "  help: a file holds one map: KEY: VALUE on each line\n"},
    {"a: @x\n",
     "x.yaml:1:4: error: text cannot start with '@'\n"
     "      1 | a: @x\n"
     "        |    ^\n"
     "  help: put quotes around it\n"},
    {"a: \"\\q\"\n",
     "x.yaml:1:5: error: unknown escape in quoted text\n"
     "      1 | a: \"\\q\"\n"
     "        |     ^\n"
     "  help: write \\\\ for a backslash, or use single quotes\n"},
    {"a: \"\\ud83d\\ude00\"\n",
     "x.yaml:1:7: error: this \\u escape is no character\n"
     "      1 | a: \"\\ud83d\\ude00\"\n"
     "        |       ^\n"
     "  help: write the character itself, in UTF-8\n"},
    {"a: \"x\\0y\"\n",
     "x.yaml:1:4: error: text cannot hold a zero byte\n"
     "      1 | a: \"x\\0y\"\n"
     "        |    ^\n"
     "  help: remove the \\0\n"},
    {"a: * b\n",
     "x.yaml:1:5: error: an alias '*' lacks its name\n"
     "      1 | a: * b\n"
     "        |     ^\n"
     "  help: put quotes around text that starts with '*'\n"},
    {"a: - b\n",
     "x.yaml:1:4: error: a list entry '-' is not allowed here\n"
     "      1 | a: - b\n"
     "        |    ^\n"
     "  help: put the list on lines of its own below its key\n"},
    {"{a: 1}}\n",
     "x.yaml:1:7: error: this '}' closes nothing\n"
     "      1 | {a: 1}}\n"
     "        |       ^\n"
     "  help: remove it\n"},
    {"%YAML 9.9\n---\na: 1\n",
     "x.yaml:1:1: error: this YAML version is not supported\n"
     "      1 | %YAML 9.9\n"
     "        | ^\n"
     "  help: remove the %YAML line\n"},
    {"a: \x01\n", "x.yaml:1:4: error: control character 0x01 is not allowed\n  help: remove it\n"},
    {"a: \xff\n",
     "x.yaml:1:4: error: byte 0xff is not UTF-8 text\n"
     "  help: save the file as UTF-8\n"},
    {"\xff\xfe"
     "a\n",
     "x.yaml:1:1: error: the file is UTF-16, not UTF-8\n  help: save it as UTF-8\n"},
    {"ab: \xc2\x9b\n",
     "x.yaml:1:5: error: this Unicode character is not allowed in YAML\n"
     "  help: remove it; in a quoted string write it as \\uXXXX\n"},
};

static void test_bad(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_read(bad[i].text, strlen(bad[i].text), NULL, bad[i].want);
    }
    expect_read("a: 1\nb\0c", 8, NULL,
                "x.yaml:2:2: error: the file is binary, not text (byte 0x00)\n"
                "  help: scenarios and profiles are YAML or JSON text in UTF-8\n");
}

/* Errors that leave the structure clear do not hide what comes after, nor the errors of binding. */
static void test_goes_on(void **state) {
    (void)state;
    expect_load("whole: 1\nwhole: 2\ninner: {count: 0}\nflag: !!bool yes\n",
                "x.yaml:4:7: error: tags such as 'tag:yaml.org,2002:bool' are not allowed\n"
                "      4 | flag: !!bool yes\n"
                "        |       ^\n"
                "  help: remove the tag; the schema knows the type of every value\n"
                "x.yaml:2:1: error: duplicate key 'whole', first given on line 1\n"
                "      2 | whole: 2\n"
                "        | ^\n"
                "  help: keep one of the two\n"
                "x.yaml:3:16: error: must be between 1 and 100, got 0 [inner.count]\n"
                "      3 | inner: {count: 0}\n"
                "        |                ^\n"
                "  help: how many\n"
                "x.yaml:4:7: error: expected true or false, got 'yes' [flag]\n"
                "      4 | flag: !!bool yes\n"
                "        |       ^\n"
                "  help: write true\n");
}

static void test_limits(void **state) {
    (void)state;
    dts_limits limits = {.bytes = 100, .nodes = 8, .depth = 3, .scalar_B = 10};
    expect_read("[[[1]]]", 7, &limits, "");
    expect_read("[[[[1]]]]", 9, &limits,
                "x.yaml:1:4: error: nested deeper than 3 levels\n"
                "      1 | [[[[1]]]]\n"
                "        |    ^\n"
                "  help: take levels away\n");
    expect_read("[1, 2, 3, 4, 5, 6, 7]", 21, &limits, "");
    expect_read("[1, 2, 3, 4, 5, 6, 7, 8]", 24, &limits,
                "x.yaml:1:23: error: more than 8 values\n"
                "      1 | [1, 2, 3, 4, 5, 6, 7, 8]\n"
                "        |                       ^\n"
                "  help: scenarios and profiles have fewer than 1000; is this the right file?\n");
    expect_read("0123456789", 10, &limits, "");
    expect_read("0123456789a", 11, &limits,
                "x.yaml:1:1: error: this text is longer than 10 bytes\n"
                "      1 | 0123456789a\n"
                "        | ^\n"
                "  help: shorten it\n");
    char text[101];
    memset(text, ' ', sizeof text);
    expect_read(text, 100, &limits, "");
    expect_read(text, 101, &limits, "x.yaml: error: the file is larger than 100 bytes\n");
}

/* Nine levels of nine aliases are 10^9 values: refused after 200,000, at once. */
static void test_alias_bomb(void **state) {
    (void)state;
    dts_text text = {0};
    dts_text_add(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 10; i++) {
        dts_text_printf(&text, "a%d: &a%d [", i, i);
        for (int j = 0; j < 9; j++) {
            dts_text_printf(&text, "%s*a%d", j == 0 ? "" : ", ", i - 1);
        }
        dts_text_add(&text, "]\n");
    }
    expect_read(text.data, text.length, NULL,
                "x.yaml:6:15: error: more than 200000 values after expanding aliases\n"
                "      6 | a5: &a5 [*a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4]\n"
                "        |               ^\n"
                "  help: write the values out instead of nesting aliases\n");
    dts_text_free(&text);
}

/* Each alias adds a level: nesting by aliases counts as nesting. */
static void test_deep_aliases(void **state) {
    (void)state;
    dts_text text = {0};
    dts_text_add(&text, "a0: &a0 [x]\n");
    for (int i = 1; i < 200; i++) {
        dts_text_printf(&text, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    }
    expect_read(text.data, text.length, NULL,
                "x.yaml:64:12: error: nested deeper than 64 levels\n"
                "     64 | a63: &a63 [*a62]\n"
                "        |            ^\n"
                "  help: take levels away\n");
    dts_text_free(&text);
}

/* Time must stay in proportion to the size: each of these was or could be quadratic. */
static void test_large(void **state) {
    (void)state;
    dts_text text = {0};
    for (int i = 0; i < 60000; i++) { /* one map with many keys, each twice */
        dts_text_printf(&text, "k%d: %d\n", i % 30000, i);
    }
    loaded l;
    loaded_read(&l, text.data, text.length, NULL);
    assert_int_equal(dts_diag_errors(l.diag), 30000);
    assert_int_equal(dts_diag_count(l.diag), 100);
    assert_int_equal(dts_document_root(l.document)->count, 30000);
    unload(&l);
    dts_text_clear(&text);
    dts_text_add(&text, "["); /* many values on one long line */
    for (int i = 0; i < 60000; i++) {
        dts_text_add(&text, "1,");
    }
    dts_text_add(&text, "1]");
    expect_read(text.data, text.length, NULL, "");
    dts_text_clear(&text);
    dts_text_add_repeated(&text, "[", 1 << 20);
    loaded_read(&l, text.data, text.length, NULL);
    assert_int_equal(dts_diag_errors(l.diag), 1);
    assert_string_equal(dts_diag_get(l.diag, 0)->text, "nested deeper than 64 levels");
    unload(&l);
    dts_text_clear(&text);
    for (int i = 0; i < 400; i++) {
        dts_text_printf(&text, "k%d: &k%d 1\n", i, i);
    }
    loaded_read(&l, text.data, text.length, NULL);
    assert_string_equal(dts_diag_get(l.diag, 0)->text, "more than 256 anchors in one file");
    unload(&l);
    dts_text_free(&text);
}

static void expect_unreadable(const char *path, const char *want) {
    dts_diag *diag = dts_diag_new();
    dts_document *document = (dts_document *)diag; /* must be overwritten */
    assert_int_equal(dts_document_read(path, NULL, &document, diag), DTS_IO);
    assert_null(document);
    dts_text text = {0};
    dts_diag_render(diag, false, &text);
    assert_string_equal(dts_text_string(&text), want);
    dts_text_free(&text);
    dts_diag_free(diag);
}

static void test_files(void **state) {
    (void)state;
    expect_unreadable("no/such.yaml", "error: cannot read 'no/such.yaml': no such file\n");
    expect_unreadable("tests", "error: cannot read 'tests': it is a directory\n  help: name a file in it\n");
    dts_diag *diag = dts_diag_new();
    dts_document *document = NULL;
    assert_int_equal(dts_document_read("tests/unit/config/data/parts/small.yaml", NULL, &document, diag), DTS_OK);
    assert_string_equal(dts_node_find(dts_document_root(document), "count")->text, "2");
    dts_document_free(document);
    dts_limits limits = dts_limits_default;
    limits.bytes = 4;
    assert_int_equal(dts_document_read("tests/unit/config/data/parts/small.yaml", &limits, &document, diag),
                     DTS_INVALID);
    assert_null(document);
    assert_string_equal(dts_diag_get(diag, 0)->text, "the file is larger than 4 bytes");
    dts_diag_free(diag);
    if (geteuid() != 0) { /* root reads everything */
        char path[] = "/tmp/dtsim-test-XXXXXX";
        int file = mkstemp(path);
        assert_true(file >= 0);
        assert_int_equal(fchmod(file, 0), 0);
        diag = dts_diag_new();
        assert_int_equal(dts_document_read(path, NULL, &document, diag), DTS_IO);
        dts_diag_free(diag);
        close(file);
        unlink(path);
    }
}

/* A line for a shell or for Python makes a script of a text; any other is a comment. */
static void test_scripts(void **state) {
    (void)state;
    static const char *const scripts[] = {"#!/bin/bash\nrun", "#!/bin/sh", "#! /usr/bin/env bash -l\n",
                                          "#!/usr/bin/env -S python3.11 -u\n", "#!python\r\nimport torch\n"};
    static const char *const others[] = {"#!/usr/bin/env -S dtsim run\ncount: 2\n",
                                         "#!\ncount: 2\n",
                                         "#! bashful\n",
                                         "#",
                                         "",
                                         "count: 2 #!/bin/sh\n",
                                         "#!/usr/bin/env\nbash: 1\n"};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        assert_true(dts_is_script(scripts[i], strlen(scripts[i])));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(dts_is_script(others[i], strlen(others[i])));
    }
    loaded l;
    loaded_read(&l, others[0], strlen(others[0]), NULL);
    assert_int_equal(l.status, DTS_OK);
    assert_string_equal(dts_node_get(dts_document_root(l.document), "count")->text, "2");
    unload(&l);
    loaded_read(&l, scripts[0], strlen(scripts[0]), NULL);
    assert_string_equal(dts_diag_get(l.diag, 0)->text, "a script, not YAML");
    unload(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),          cmocka_unit_test(test_places),     cmocka_unit_test(test_get_and_find),
        cmocka_unit_test(test_source_spreads), cmocka_unit_test(test_bad),        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_limits),         cmocka_unit_test(test_alias_bomb), cmocka_unit_test(test_large),
        cmocka_unit_test(test_deep_aliases),   cmocka_unit_test(test_files),      cmocka_unit_test(test_scripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
