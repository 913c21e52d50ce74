/* Binding: every type, every default, every refusal in its exact words. */
#include "loaded.h"

static const char minimal[] = "whole: 1\ninner: {count: 2}\n";

static void test_all_types(void **state) {
    (void)state;
    loaded l;
    load(&l,
         "flag: false\nwhole: 1e3\nratio: 25 %\nsize: 40 GiB\nspeed: 100 Gbit/s\ndelay: 5 us\nrate: 312 TFLOP/s\n"
         "clock: 1.41 GHz\npower: 400 W\nprice: 29.39 USD/h\ntext: \"a b\"\ncolor: blue\n"
         "inner: {count: 3, speed: 1 GB/s, label: 7}\nnumbers: [1 s, 2 ms]\nnames: [x, 'y z', 3]\n"
         "inners: [{count: 1}, {count: 100, label: z}]\nchoice: {every: 4}\nlow: 2\nhigh: 3\n");
    expect_messages(&l, "");
    assert_int_equal(l.status, DTS_OK);
    const everything_values *v = &l.values;
    assert_false(v->flag);
    assert_int_equal(v->whole, 1000);
    assert_true(v->ratio == 0.25 && v->size_B == 42949672960.0 && v->speed_Bps == 12.5e9 && v->delay_s == 5e-6);
    assert_true(v->rate_flops == 312e12 && v->clock_Hz == 1.41e9 && v->power_W == 400 && v->price == 29.39);
    assert_string_equal(v->text, "a b");
    assert_int_equal(v->color, 2);
    assert_int_equal(v->inner.count, 3);
    assert_string_equal(v->inner.label, "7");
    assert_int_equal(v->numbers.count, 2);
    assert_true(((const double *)v->numbers.items)[1] == 2e-3);
    assert_string_equal(((const char *const *)v->names.items)[1], "y z");
    assert_int_equal(v->inners.count, 2);
    const inner_values *inners = v->inners.items;
    assert_int_equal(inners[1].count, 100);
    assert_true(inners[0].speed_Bps == 12.5e9); /* the preset of a list's entry */
    assert_int_equal(v->choice.every, 4);
    unload(&l);
}

/* Names and the like are one line of text; prose may have several. */
static void test_control_characters(void **state) {
    (void)state;
    loaded l;
    load(&l, "whole: 1\ninner: {count: 2, label: \"x\\ny: 1\"}\ntext: \"a\\n\\tb\"\nnames: [a, \"\\x1b[31m\"]\n");
    expect_messages(&l,
                    "x.yaml:2:26: error: a line break, \"\\n\", in text of one line [inner.label]\n"
                    "      2 | inner: {count: 2, label: \"x\\ny: 1\"}\n"
                    "        |                          ^\n"
                    "  help: write it in one line\n"
                    "x.yaml:4:12: error: a control character, \"\\u001b\", in text [names[1]]\n"
                    "      4 | names: [a, \"\\x1b[31m\"]\n"
                    "        |            ^\n"
                    "  help: leave it out\n");
    unload(&l);
    load(&l, "whole: 1\ninner: {count: 2}\ntext: \"a\\u202eb\"\n");
    expect_messages(&l,
                    "x.yaml:3:7: error: a control character, \"\\u202e\", in text [text]\n"
                    "      3 | text: \"a\\u202eb\"\n"
                    "        |       ^\n"
                    "  help: leave it out\n");
    unload(&l);
}

static void test_defaults(void **state) {
    (void)state;
    loaded l;
    load(&l, minimal);
    expect_messages(&l, "");
    const everything_values *v = &l.values;
    assert_true(v->flag && v->ratio == 0.8 && v->size_B == 0 && v->color == 1);
    assert_null(v->text);
    assert_true(v->inner.speed_Bps == 12.5e9);
    assert_int_equal(v->optional.count, 0); /* left out: its required key is not missed */
    assert_true(v->optional.speed_Bps == 12.5e9);
    assert_int_equal(v->numbers.count, 2);
    assert_true(((const double *)v->numbers.items)[0] == 5e-6);
    assert_int_equal(v->names.count, 0);
    assert_int_equal(v->part.count, 0);
    assert_int_equal(v->choice.every, 0);
    assert_int_equal(v->high, 10);
    unload(&l);
}

static void test_origin_of_values(void **state) {
    (void)state;
    loaded l;
    load(&l,
         "whole: {value: 5, source: a book, note: page 3}\nsource: the web\ninner:\n  source: a paper\n  count: 3\n"
         "delay: 1 s\nnumbers: {value: [1 s], source: log}\nchoice: {value: {every: 2}, source: mail}\n");
    expect_messages(&l, "");
    assert_int_equal(l.values.whole, 5);
    assert_int_equal(l.values.choice.every, 2);
    const dts_provenance *p = l.binder.provenance;
    const dts_provenance_entry *e = dts_provenance_find(p, "whole");
    assert_string_equal(e->value, "5");
    assert_string_equal(e->source, "a book");
    assert_string_equal(e->place.file, "x.yaml");
    assert_int_equal(e->place.line, 1);
    assert_int_equal(e->place.column, 16);
    assert_string_equal(dts_provenance_find(p, "inner.count")->source, "a paper");
    assert_string_equal(dts_provenance_find(p, "delay")->source, "the web");
    assert_string_equal(dts_provenance_find(p, "numbers")->source, "log");
    assert_string_equal(dts_provenance_find(p, "numbers")->value, "[1 s]");
    assert_string_equal(dts_provenance_find(p, "choice")->value, "{every: 2}");
    e = dts_provenance_find(p, "ratio"); /* a default */
    assert_string_equal(e->value, "80 %");
    assert_null(e->place.file);
    assert_null(e->source);
    assert_string_equal(dts_provenance_find(p, "inner.speed")->value, "100 Gbit/s");
    assert_null(dts_provenance_find(p, "size")); /* no value, no default */
    assert_null(dts_provenance_find(p, "no.such"));
    assert_null(dts_provenance_get(p, dts_provenance_count(p)));
    assert_int_equal(dts_provenance_count(NULL), 0);
    unload(&l);
}

typedef struct wrong_case {
    const char *line; /* replaces or follows the minimal document */
    const char *want; /* the messages, for line 3 */
} wrong_case;

static const wrong_case wrong[] = {
    {"flag: yes",
     "x.yaml:3:7: error: expected true or false, got 'yes' [flag]\n"
     "      3 | flag: yes\n        |       ^\n  help: write true\n"},
    {"flag: Off",
     "x.yaml:3:7: error: expected true or false, got 'Off' [flag]\n"
     "      3 | flag: Off\n        |       ^\n  help: write false\n"},
    {"flag: TRUE",
     "x.yaml:3:7: error: expected true or false, got 'TRUE' [flag]\n"
     "      3 | flag: TRUE\n        |       ^\n  help: write true\n"},
    {"flag: 0",
     "x.yaml:3:7: error: expected true or false, got '0' [flag]\n"
     "      3 | flag: 0\n        |       ^\n  help: write false\n"},
    {"flag: 'true'",
     "x.yaml:3:7: error: expected true or false, got \"true\" [flag]\n"
     "      3 | flag: 'true'\n        |       ^\n  help: write true or false without quotes\n"},
    {"flag: maybe",
     "x.yaml:3:7: error: expected true or false, got 'maybe' [flag]\n"
     "      3 | flag: maybe\n        |       ^\n  help: write true or false\n"},
    {"flag: [true]",
     "x.yaml:3:7: error: expected true or false, got a list [flag]\n"
     "      3 | flag: [true]\n        |       ^\n  help: on or off\n"},
    {"low: \"8\"",
     "x.yaml:3:6: error: expected a number, got text: \"8\" [low]\n"
     "      3 | low: \"8\"\n        |      ^\n  help: write it without quotes\n"},
    {"low: 1.5",
     "x.yaml:3:6: error: expected a whole number, got '1.5' [low]\n"
     "      3 | low: 1.5\n        |      ^\n  help: write a whole number, such as 1\n"},
    {"low: 1e-1",
     "x.yaml:3:6: error: expected a whole number, got '1e-1' [low]\n"
     "      3 | low: 1e-1\n        |      ^\n  help: write a whole number, such as 0\n"},
    {"low: 010",
     "x.yaml:3:6: error: expected a whole number, got '010' [low]\n"
     "      3 | low: 010\n        |      ^\n  help: write it without the leading zero\n"},
    {"low: 0x10",
     "x.yaml:3:6: error: expected a whole number, got '0x10' [low]\n"
     "      3 | low: 0x10\n        |      ^\n  help: write the number in decimal\n"},
    {"low: 0o17",
     "x.yaml:3:6: error: expected a whole number, got '0o17' [low]\n"
     "      3 | low: 0o17\n        |      ^\n  help: write the number in decimal\n"},
    {"low: 1_000",
     "x.yaml:3:6: error: expected a whole number, got '1_000' [low]\n"
     "      3 | low: 1_000\n        |      ^\n  help: write the number without separators\n"},
    {"low: 1,000",
     "x.yaml:3:6: error: expected a whole number, got '1,000' [low]\n"
     "      3 | low: 1,000\n        |      ^\n  help: write the number without separators\n"},
    {"low: 2k",
     "x.yaml:3:6: error: expected a whole number, got '2k' [low]\n"
     "      3 | low: 2k\n        |      ^\n  help: write the number out: 2000 or 2048\n"},
    {"low: 8 GPUs",
     "x.yaml:3:6: error: expected a whole number, got '8 GPUs' [low]\n"
     "      3 | low: 8 GPUs\n        |      ^\n  help: write one whole number, without a unit or a formula\n"},
    {"low: eight",
     "x.yaml:3:6: error: expected a whole number, got 'eight' [low]\n"
     "      3 | low: eight\n        |      ^\n  help: write a whole number such as 8\n"},
    {"low: .nan",
     "x.yaml:3:6: error: expected a whole number, got '.nan' [low]\n"
     "      3 | low: .nan\n        |      ^\n  help: write a whole number such as 8\n"},
    {"low: 99999999999999999999",
     "x.yaml:3:6: error: 99999999999999999999 is too large [low]\n"
     "      3 | low: 99999999999999999999\n        |      ^\n"
     "  help: whole numbers reach to 2^53\n"},
    {"low: 1e400",
     "x.yaml:3:6: error: 1e400 is too large [low]\n"
     "      3 | low: 1e400\n        |      ^\n  help: whole numbers reach to 2^53\n"},
    {"low: 1:30",
     "x.yaml:3:6: error: expected a whole number, got '1:30' [low]\n"
     "      3 | low: 1:30\n        |      ^\n  help: write one whole number, without a unit or a formula\n"},
    {"low:",
     "x.yaml:3:5: error: has no value; expected a whole number [low]\n"
     "      3 | low:\n        |     ^\n  help: at most high\n"},
    {"low: ~",
     "x.yaml:3:6: error: has no value; expected a whole number [low]\n"
     "      3 | low: ~\n        |      ^\n  help: at most high\n"},
    {"low: {a: 1}",
     "x.yaml:3:6: error: expected a whole number, got a map [low]\n"
     "      3 | low: {a: 1}\n        |      ^\n  help: at most high\n"},
    {"low: {value: 1, sauce: x}",
     "x.yaml:3:17: error: unknown key 'sauce' [low]\n"
     "      3 | low: {value: 1, sauce: x}\n        |                 ^\n"
     "  help: beside 'value' stand only 'source' and 'note'\n"},
    {"low: 11",
     "x.yaml:3:6: error: low is above high [low]\n"
     "      3 | low: 11\n        |      ^\n  help: lower it\n"},
    {"ratio: 1.5",
     "x.yaml:3:8: error: must be between 0 and 1, got 1.5 [ratio]\n"
     "      3 | ratio: 1.5\n        |        ^\n  help: a share\n"},
    {"ratio: 150 %",
     "x.yaml:3:8: error: must be between 0 and 1, got 150 % [ratio]\n"
     "      3 | ratio: 150 %\n        |        ^\n  help: a share\n"},
    {"ratio: '0.5'",
     "x.yaml:3:8: error: expected a number, got text: \"0.5\" [ratio]\n"
     "      3 | ratio: '0.5'\n        |        ^\n  help: write it without quotes\n"},
    {"ratio: nan",
     "x.yaml:3:8: error: 'nan' is not a finite number [ratio]\n"
     "      3 | ratio: nan\n        |        ^\n  help: write a finite number\n"},
    {"size: 40",
     "x.yaml:3:7: error: '40' has no unit [size]\n"
     "      3 | size: 40\n        |       ^\n  help: write a size such as 40 GiB or 25 MB\n"},
    {"size: -1 GB",
     "x.yaml:3:7: error: a size cannot be negative: '-1 GB' [size]\n"
     "      3 | size: -1 GB\n        |       ^\n  help: write it without the minus sign\n"},
    {"size: []",
     "x.yaml:3:7: error: expected a size, got a list [size]\n"
     "      3 | size: []\n        |       ^\n  help: a quantity: size\n"},
    {"color: gren",
     "x.yaml:3:8: error: unknown value 'gren' [color]\n"
     "      3 | color: gren\n        |        ^\n"
     "  help: did you mean 'green'? allowed are red, green, blue\n"},
    {"color: 7",
     "x.yaml:3:8: error: unknown value '7' [color]\n"
     "      3 | color: 7\n        |        ^\n  help: allowed are red, green, blue\n"},
    {"colour: red",
     "x.yaml:3:1: error: unknown key 'colour'\n"
     "      3 | colour: red\n        | ^\n  help: did you mean 'color'?\n"},
    {"low:5: 1",
     "x.yaml:3:1: error: unknown key 'low:5'\n"
     "      3 | low:5: 1\n        | ^\n  help: put a blank behind the ':'\n"},
    {"xylophone: 1",
     "x.yaml:3:1: error: unknown key 'xylophone'\n"
     "      3 | xylophone: 1\n        | ^\n"
     "  help: everything has the keys flag, whole, ratio, size, speed, delay, rate, clock, power, "
     "price, text, color, inner, optional, numbers, names, inners, part, choice, low, high\n"},
    {"optional: {speed: 1 GB/s}",
     "x.yaml:3:11: error: missing key 'count' [optional]\n"
     "      3 | optional: {speed: 1 GB/s}\n        |           ^\n"
     "  help: add 'count': how many\n"},
    {"optional: {count: 1, sped: 1 GB/s}",
     "x.yaml:3:22: error: unknown key 'sped' [optional]\n"
     "      3 | optional: {count: 1, sped: 1 GB/s}\n"
     "        |                      ^\n  help: did you mean 'speed'?\n"},
    {"optional: 5",
     "x.yaml:3:11: error: expected a map of keys, got '5' [optional]\n"
     "      3 | optional: 5\n        |           ^\n"
     "  help: write one 'KEY: VALUE' a line; keys are count, speed, label\n"},
    {"optional:",
     "x.yaml:3:10: error: expected a map of keys, got nothing [optional]\n"
     "      3 | optional:\n        |          ^\n"
     "  help: write one 'KEY: VALUE' a line; keys are count, speed, label\n"},
    {"numbers: 1 s",
     "x.yaml:3:10: error: expected a list, got '1 s' [numbers]\n"
     "      3 | numbers: 1 s\n        |          ^\n  help: write a list such as [A, B]\n"},
    {"numbers: [1 s, 2, 3 GB]",
     "x.yaml:3:16: error: '2' has no unit [numbers[1]]\n"
     "      3 | numbers: [1 s, 2, 3 GB]\n        |                ^\n"
     "  help: write a time such as 5 us or 1.5 ms\n"
     "x.yaml:3:19: error: expected a time, got a size: '3 GB' [numbers[2]]\n"
     "      3 | numbers: [1 s, 2, 3 GB]\n        |                   ^\n"
     "  help: write a time such as 5 us or 1.5 ms\n"},
    {"inners: [{count: 1}, {}]",
     "x.yaml:3:22: error: missing key 'count' [inners[1]]\n"
     "      3 | inners: [{count: 1}, {}]\n        |                      ^\n"
     "  help: add 'count': how many\n"},
    {"choice: some",
     "x.yaml:3:9: error: this is no choice [choice]\n"
     "      3 | choice: some\n        |         ^\n  help: write none or {every: 2}\n"},
    {"choice: {every: 65}",
     "x.yaml:3:17: error: must be between 1 and 64, got 65 [choice]\n"
     "      3 | choice: {every: 65}\n        |                 ^\n  help: how often\n"},
    {"text: [a]",
     "x.yaml:3:7: error: expected text, got a list [text]\n"
     "      3 | text: [a]\n        |       ^\n  help: any | text\n"},
};

static void test_wrong(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s\n", minimal, wrong[i].line);
        expect_load(text, wrong[i].want);
    }
}

static void test_roots(void **state) {
    (void)state;
    expect_load("",
                "x.yaml:1:1: error: the file is empty\n"
                "  help: write one 'KEY: VALUE' a line; keys are flag, whole, ratio, size, speed, delay, rate, clock, "
                "power, price, text, color, inner, optional, numbers, names, inners, part, choice, low, high\n");
    expect_load("hello\n",
                "x.yaml:1:1: error: expected a map of keys, got 'hello'\n"
                "      1 | hello\n        | ^\n"
                "  help: write one 'KEY: VALUE' a line; keys are flag, whole, ratio, size, speed, delay, rate, clock, "
                "power, price, text, color, inner, optional, numbers, names, inners, part, choice, low, high\n");
    expect_load(
        "{}\n",
        "x.yaml:1:1: error: missing key 'whole'\n      1 | {}\n        | ^\n  help: add 'whole': a whole number\n"
        "x.yaml:1:1: error: missing key 'inner'\n      1 | {}\n        | ^\n"
        "  help: add 'inner': a part that must be there\n");
}

/* A quantity with its unit may be quoted: JSON has no other way to write it. */
static void test_json(void **state) {
    (void)state;
    loaded l;
    load(&l,
         "{\"whole\": 3, \"inner\": {\"count\": 2, \"speed\": \"12.5 GB/s\"}, \"ratio\": \"80 %\", \"flag\": true}");
    expect_messages(&l, "");
    assert_true(l.values.inner.speed_Bps == 12.5e9 && l.values.ratio == 0.8);
    unload(&l);
}

/* Rules that know only keys find where a value was written. */
static void test_locate(void **state) {
    (void)state;
    loaded l;
    load(&l, "whole: 1\ninner: {count: 2}\n");
    const dts_provenance *p = l.binder.provenance;
    dts_place place = {0};
    assert_true(dts_provenance_locate(p, "inner.count", &place));
    assert_int_equal(place.line, 2);
    assert_true(dts_provenance_locate(p, "inner", &place)); /* anything below it */
    assert_int_equal(place.column, 16);
    assert_false(dts_provenance_locate(p, "ratio", &place)); /* a default stands nowhere */
    assert_false(dts_provenance_locate(p, "inn", &place));
    assert_false(dts_provenance_locate(p, "no.such", &place));
    dts_diag_set_locator(l.diag, dts_provenance_locate, p);
    dts_diag_error(l.diag, NULL, "whole", "make it even", "odd");
    dts_diag_error(l.diag, NULL, "high", NULL, "too high");
    dts_diag_set_locator(l.diag, NULL, NULL);
    dts_diag_error(l.diag, NULL, "whole", NULL, "odd");
    expect_messages(&l,
                    "x.yaml:1:8: error: odd [whole]\n      1 | whole: 1\n        |        ^\n  help: make it even\n"
                    "error: too high [high]\nerror: odd [whole]\n");
    unload(&l);
}

/* A value that could not be read is reported once. */
static void test_unreadable(void **state) {
    (void)state;
    static const char *const lines[] = {"low: *x\n",      "names: [*x]\n", "inners: [*x]\n",
                                        "optional: *x\n", "part: *x\n",    "choice: {every: *x}\n",
                                        "choice: *x\n",   "numbers: *x\n", "low: {value: *x}\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s%s", minimal, lines[i]);
        loaded l;
        load(&l, text);
        assert_int_equal(dts_diag_errors(l.diag), 1);
        assert_string_equal(dts_diag_get(l.diag, 0)->text, "unknown alias '*x'");
        assert_int_equal(l.status, DTS_INVALID);
        unload(&l);
    }
    expect_load(
        "whole: *x\nniner: {count: 1}\n", /* nor is it missed, nor what a misspelt key stands for */
        "x.yaml:1:8: error: unknown alias '*x'\n      1 | whole: *x\n        |        ^\n"
        "  help: an anchor &NAME must stand before its alias *NAME; put quotes around text that starts with '*'\n"
        "x.yaml:2:1: error: unknown key 'niner'\n      2 | niner: {count: 1}\n        | ^\n"
        "  help: did you mean 'inner'?\n");
}

/* More digits than any number has: too large, and not zero. */
static void test_many_digits(void **state) {
    (void)state;
    dts_text text = {0};
    dts_text_printf(&text, "%slow: ", minimal);
    dts_text_add_repeated(&text, "9", 300);
    loaded l;
    loaded_read(&l, text.data, text.length, NULL);
    loaded_bind(&l);
    assert_int_equal(dts_diag_errors(l.diag), 1);
    assert_non_null(strstr(dts_diag_get(l.diag, 0)->text, "... is too large"));
    unload(&l);
    dts_text_free(&text);
}

static void test_many_unknown_keys(void **state) {
    (void)state;
    dts_text text = {0};
    dts_text_add(&text, minimal);
    for (int i = 0; i < 50000; i++) {
        dts_text_printf(&text, "unknown%d: 1\n", i);
    }
    loaded l;
    loaded_read(&l, text.data, text.length, NULL);
    loaded_bind(&l);
    assert_int_equal(dts_diag_errors(l.diag), 21);
    assert_string_equal(dts_diag_get(l.diag, 20)->text, "49980 more unknown keys");
    unload(&l);
    dts_text_free(&text);
}

static void test_many_structs(void **state) {
    (void)state;
    dts_text text = {0};
    dts_text_add(&text, minimal);
    dts_text_add(&text, "inners:\n");
    for (int i = 0; i < 5000; i++) {
        dts_text_add(&text, "- {count: 1}\n");
    }
    loaded l;
    loaded_read(&l, text.data, text.length, NULL);
    loaded_bind(&l);
    assert_int_equal(dts_diag_errors(l.diag), 1);
    assert_string_equal(dts_diag_get(l.diag, 0)->text, "more than 4096 entries");
    unload(&l);
    dts_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_origin_of_values),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_many_digits),
        cmocka_unit_test(test_locate),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_many_unknown_keys),
        cmocka_unit_test(test_many_structs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
