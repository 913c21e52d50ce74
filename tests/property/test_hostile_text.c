/* No text becomes code: whatever stands in a string, what is written reads back to it, and a launcher's file of a
 * scenario with a hostile name differs from that of any other in its comments alone.
 * DTSIM_PROPERTY_RUNS sets how many strings are drawn, DTSIM_PROPERTY_SEED the first seed. */
#include <cjson/cJSON.h>

#include "base/excerpt.h"
#include "base/quote.h"
#include "config/table.h"
#include "draw.h"
#include "interop/interop.h"

enum { PARTS_MOST = 6, RUNS = 3000 };

static const char *const root = ".";
static const dts_profile_paths profiles = {.roots = &root, .count = 1};

static const char *const parts[] = {
    "\n",
    "\r",
    "\t",
    "\x1b[31m",
    "\x07",
    "\x7f",
    "\xc2\x85",
    "\xe2\x80\xa8",
    "\xe2\x80\xae",
    "\xff",
    "\xc3",
    "\"",
    "'",
    "'''",
    "\"\"\"",
    "`touch P`",
    "$(touch P)",
    "${P}",
    "\\",
    "\\n",
    "#",
    " #",
    "]]",
    "]]>",
    "=1+1",
    "+",
    "-",
    "@",
    ": ",
    "- ",
    "!!int ",
    "%TAG",
    "~",
    "null",
    "1e3",
    "yes",
    "2024-01-01",
    "&a",
    "*a",
    "{",
    "}",
    "[",
    "]",
    ",",
    ";",
    "| ",
    "> ",
    "<b>",
    "&amp;",
    "model: gpt2",
    "touch P",
    " ",
    "ä",
    "x",
    "\xef\xbb\xbf",
    "--- ",
    "...",
    "? ",
    "0x1F",
    "=HYPERLINK(\"\")",
    "\xf0\x9f\x92\xa5",
    "''=",
    "\r\n",
};

static void draw_text(uint64_t *random, dts_text *out) {
    dts_text_clear(out);
    const uint64_t count = 1 + next_random(random) % PARTS_MOST;
    for (uint64_t i = 0; i < count; i++) {
        dts_text_add(out, parts[next_random(random) % (sizeof parts / sizeof *parts)]);
    }
}

static size_t number(const char *name, size_t usual) {
    const char *text = getenv(name);
    return text != NULL ? strtoul(text, NULL, 10) : usual;
}

static bool is_utf8(const char *text) {
    for (size_t length = strlen(text), n; length > 0; text += n, length -= n) {
        n = dts_utf8_length(text, length);
        if (n == 0) {
            return false;
        }
    }
    return true;
}

/* kept: control characters that may stand in it. */
static bool is_clean(const char *text, const char *kept) {
    for (size_t length = strlen(text), n; length > 0; text += n, length -= n) {
        n = dts_utf8_length(text, length);
        if (n == 0 || (dts_utf8_is_control(text, n) && strchr(kept, *text) == NULL)) {
            return false;
        }
    }
    return true;
}

/* The text with U+FFFD for what is no UTF-8: what the writers make of it. */
static const char *as_utf8(const char *text, dts_text *out) {
    dts_text_clear(out);
    for (size_t length = strlen(text), n; length > 0;) {
        n = dts_utf8_length(text, length);
        dts_text_add_bytes(out, n > 0 ? text : "\xef\xbf\xbd", n > 0 ? n : 3);
        n = n > 0 ? n : 1;
        text += n;
        length -= n;
    }
    return dts_text_string(out);
}

static void check_json(const char *text, const char *meant) {
    dts_text out = {0};
    dts_text_add_quoted(&out, text);
    assert_true(is_clean(dts_text_string(&out), ""));
    cJSON *read = cJSON_Parse(dts_text_string(&out));
    assert_non_null(read);
    assert_string_equal(read->valuestring, meant);
    cJSON_Delete(read);
    dts_text_free(&out);
}

typedef void writer(dts_text *text, const char *string);

/* As a key, a value, and an entry of a list that is one of a map. */
static void check_yaml(writer *write, const char *text, const char *meant) {
    dts_text out = {0}, word = {0};
    write(&word, text);
    assert_true(is_clean(dts_text_string(&word), ""));
    const char *w = dts_text_string(&word);
    dts_text_printf(&out, "%s: %s\nlist: {a: [%s, %s], %s: b}\nlast: 1\n", w, w, w, w, w);
    dts_document *document = NULL;
    dts_diag *diag = dts_diag_new();
    const dts_status status = dts_document_parse(dts_text_string(&out), out.length, "written", NULL, &document, diag);
    dts_text said = {0};
    dts_diag_render(diag, false, &said);
    if (status != DTS_OK) {
        fail_msg("%s%s", dts_text_string(&out), dts_text_string(&said));
    }
    const dts_node *first = dts_document_root(document)->first, *list = first->next;
    assert_int_equal(dts_document_root(document)->count, 3);
    assert_string_equal(first->key, meant);
    assert_string_equal(first->text, meant);
    assert_int_equal(list->count, 2);
    assert_int_equal(list->first->count, 2);
    assert_string_equal(list->first->first->next->text, meant);
    assert_string_equal(list->first->next->key, meant);
    dts_text_free(&said);
    dts_diag_free(diag);
    dts_document_free(document);
    dts_text_free(&word);
    dts_text_free(&out);
}

/* Tables hold no control characters: the writer replaces them, and the reader refuses them. */
static void check_cell(const char *text) {
    dts_text out = {0}, clean = {0};
    dts_text_add_lines(&clean, text, strlen(text));
    dts_text_add(&out, "id,b\n");
    dts_text_add_cell(&out, text);
    dts_text_add(&out, ",1\n");
    const char *cell = dts_text_string(&out) + strlen("id,b\n");
    assert_null(strchr("=@\t\r", cell[cell[0] == '"' ? 1 : 0]));
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_table table;
    assert_int_equal(dts_table_parse(dts_text_string(&out), out.length, "written", arena, &table, NULL), DTS_OK);
    assert_int_equal(table.rows, 1);
    assert_string_equal(table.cells[0].text, dts_text_string(&clean));
    dts_arena_free(arena);
    dts_text_free(&clean);
    dts_text_free(&out);
}

static void what_is_written_reads_back(void **state) {
    (void)state;
    uint64_t random = number("DTSIM_PROPERTY_SEED", 1);
    dts_text text = {0}, meant = {0}, out = {0};
    for (size_t i = 0; i < number("DTSIM_PROPERTY_RUNS", RUNS); i++) {
        draw_text(&random, &text);
        const char *t = dts_text_string(&text), *m = as_utf8(t, &meant);
        check_json(t, m);
        if (m[0] != '\0' && strcmp(m, "list") != 0 && strcmp(m, "last") != 0 && strcmp(m, "a") != 0) {
            check_yaml(dts_text_add_yaml, t, m);
            check_yaml(dts_text_add_yaml_string, t, m);
        }
        check_cell(t);
        dts_text_clear(&out);
        dts_text_add_line(&out, t);
        assert_true(is_clean(dts_text_string(&out), ""));
        dts_text_clear(&out);
        dts_text_add_markup(&out, t, strlen(t));
        assert_true(is_clean(dts_text_string(&out), "\n\t"));
        assert_null(strpbrk(dts_text_string(&out), "<>\""));
    }
    dts_text_free(&out);
    dts_text_free(&meant);
    dts_text_free(&text);
}

/* bash says what it reads as words: printf makes no other file than its output. */
static void bash_reads_the_words_that_were_meant(void **state) {
    (void)state;
    enum { WORDS = 400 };
    uint64_t random = number("DTSIM_PROPERTY_SEED", 1);
    dts_text text = {0}, script = {0}, meant = {0};
    dts_text_add(&script, "printf '%s\\0'");
    for (size_t i = 0; i < WORDS; i++) {
        draw_text(&random, &text);
        dts_text_add(&script, " ");
        dts_text_add_word(&script, dts_text_string(&text));
        dts_text_add_bytes(&meant, dts_text_string(&text), text.length + 1);
    }
    assert_true(is_clean(dts_text_string(&script), ""));
    char name[] = "/tmp/dtsim-words-XXXXXX";
    const int descriptor = mkstemp(name);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(dts_text_string(&script), 1, script.length, file), script.length);
    fclose(file);
    dts_text_clear(&script);
    dts_text_printf(&script, "PATH= /bin/bash %s", name);
    FILE *bash = popen(dts_text_string(&script), "r");
    assert_non_null(bash);
    char *got = calloc(1, meant.length + 1);
    const size_t length = fread(got, 1, meant.length + 1, bash);
    assert_int_equal(pclose(bash), 0);
    remove(name);
    assert_int_equal(length, meant.length);
    assert_memory_equal(got, dts_text_string(&meant), meant.length);
    free(got);
    dts_text_free(&meant);
    dts_text_free(&script);
    dts_text_free(&text);
}

/* ---- launchers' files ------------------------------------------------------------------------------------------- */

static const char plan[] =
    "model: {profile: gpt, layers: 12, hidden: 768, heads: 12, vocab: 50304}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2, gpus_per_node: 8}\nstack: pytorch-2\n"
    "training: {global_batch: 64, micro_batch: 2, sequence_length: 1024, precision: bf16, optimizer: adamw}\n"
    "parallelism: {tensor: 2, data_parallel: ddp}\n";

static dts_status load(const char *text, size_t length, const char *file, dts_scenario **out) {
    return dts_scenario_parse(text, length, file, NULL, 0, &profiles, out, NULL);
}

/* What a launcher's file says, without its comments, all of which are lines of their own. */
static bool export(const dts_scenario *scenario, const dts_launcher *launcher, dts_text *out) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_notes notes = {.arena = arena};
    dts_text whole = {0};
    dts_diag *diag = dts_diag_new();
    const bool written = dts_export(scenario, launcher, &notes, &whole, diag) == DTS_OK;
    dts_diag_free(diag);
    dts_text_clear(out);
    assert_true(is_clean(dts_text_string(&whole), "\n\t"));
    for (const char *at = dts_text_string(&whole); *at != '\0';) {
        const size_t line = strcspn(at, "\n");
        if (launcher->comment == NULL || strncmp(at, launcher->comment, strlen(launcher->comment)) != 0) {
            dts_text_add_bytes(out, at, line + 1);
        }
        at += line + (at[line] == '\n' ? 1 : 0);
    }
    dts_text_free(&whole);
    dts_arena_free(arena);
    return written;
}

/* The name stands in the scenario, which may refuse it, or is that of its file, which nothing refuses. */
static void exports_of_hostile_names_differ_in_comments_alone(void **state) {
    (void)state;
    uint64_t random = number("DTSIM_PROPERTY_SEED", 1);
    dts_text text = {0}, given = {0}, usual = {0}, got = {0};
    size_t refused = 0, launchers = 0;
    for (size_t i = 0; i < number("DTSIM_PROPERTY_RUNS", RUNS) / 20; i++) {
        draw_text(&random, &text);
        const char *t = dts_text_string(&text);
        dts_scenario *plain = NULL, *named = NULL, *filed = NULL;
        dts_text_clear(&given);
        dts_text_add(&given, "name: ");
        dts_text_add_quoted(&given, t);
        dts_text_printf(&given, "\n%s", plan);
        assert_int_equal(load(plan, sizeof plan - 1, "plain.yaml", &plain), DTS_OK);
        assert_int_equal(load(plan, sizeof plan - 1, t, &filed), DTS_OK);
        const dts_status status = load(dts_text_string(&given), given.length, "named.yaml", &named);
        const bool allowed = !is_utf8(t) || is_clean(t, ""); /* U+FFFD is a character as others are */
        if (is_utf8(t)) {
            assert_int_equal(status, allowed ? DTS_OK : DTS_INVALID);
        }
        refused += status != DTS_OK ? 1 : 0;
        for (size_t k = 0; dts_launchers[k] != NULL; k++) {
            if (dts_launchers[k]->write == NULL || !export(plain, dts_launchers[k], &usual)) {
                continue;
            }
            launchers += i == 0 ? 1 : 0;
            assert_true(export(filed, dts_launchers[k], &got));
            assert_string_equal(dts_text_string(&got), dts_text_string(&usual));
            if (named != NULL) {
                assert_true(export(named, dts_launchers[k], &got));
                assert_string_equal(dts_text_string(&got), dts_text_string(&usual));
            }
        }
        dts_scenario_free(plain);
        dts_scenario_free(named);
        dts_scenario_free(filed);
    }
    assert_true(launchers >= 6);
    assert_true(refused > 0);
    dts_text_free(&got);
    dts_text_free(&usual);
    dts_text_free(&given);
    dts_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(bash_reads_the_words_that_were_meant),
        cmocka_unit_test(exports_of_hostile_names_differ_in_comments_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
