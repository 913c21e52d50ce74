/* The writers: YAML that loads again to the same values, JSON Schema that is JSON, and the reference page. */
#include <cjson/cJSON.h>

#include "loaded.h"

static const char everything[] =
    "flag: false\nwhole: -7\nratio: 0.3333333333333333\nsize: 40 GiB\nspeed: 123456789 bit/s\ndelay: 5 us\n"
    "rate: 312 TFLOP/s\nclock: 1.41 GHz\npower: 400 W\nprice: 29.39 USD/h\n"
    "text: \"a: 'b' # \\\"c\\\"\\n\\t\\u00e9\\\\ -\"\ncolor: red\n"
    "inner: {count: 3, speed: 1 GB/s, label: 'null'}\noptional: {count: 5}\nnumbers: [1 s, 0.1 ms]\n"
    "names: [x, 'y, z', '3', ' lead', '', '- a', '#', 'true', '~', '[1]', '*x', '%', 'a #b', 'k: v']\n"
    "inners: [{count: 1}, {count: 100, label: z}]\npart: {profile: big, label: mine}\nchoice: {every: 4}\n"
    "low: 0\nhigh: 1e3\n";

static void write_again(const loaded *l, bool annotate, dts_text *out) {
    dts_schema_write_yaml(&everything_schema, &l->values, l->binder.provenance, annotate, out);
    assert_int_equal(dts_text_status(out), DTS_OK);
}

static void assert_same_text(const char *a, const char *b) {
    assert_true((a == NULL) == (b == NULL));
    if (a != NULL) {
        assert_string_equal(a, b);
    }
}

static void assert_same_inner(const inner_values *a, const inner_values *b) {
    assert_int_equal(a->count, b->count);
    assert_true(a->speed_Bps == b->speed_Bps);
    assert_same_text(a->label, b->label);
}

static void assert_same(const everything_values *a, const everything_values *b) {
    assert_int_equal(a->flag, b->flag);
    assert_int_equal(a->whole, b->whole);
    assert_true(a->ratio == b->ratio && a->size_B == b->size_B && a->speed_Bps == b->speed_Bps);
    assert_true(a->delay_s == b->delay_s && a->rate_flops == b->rate_flops && a->clock_Hz == b->clock_Hz);
    assert_true(a->power_W == b->power_W && a->price == b->price);
    assert_same_text(a->text, b->text);
    assert_int_equal(a->color, b->color);
    assert_same_inner(&a->inner, &b->inner);
    assert_same_inner(&a->optional, &b->optional);
    assert_same_inner(&a->part, &b->part);
    assert_int_equal(a->numbers.count, b->numbers.count);
    assert_memory_equal(a->numbers.items, b->numbers.items, a->numbers.count * sizeof(double));
    assert_int_equal(a->names.count, b->names.count);
    for (size_t i = 0; i < a->names.count; i++) {
        assert_same_text(((const char *const *)a->names.items)[i], ((const char *const *)b->names.items)[i]);
    }
    assert_int_equal(a->inners.count, b->inners.count);
    for (size_t i = 0; i < a->inners.count; i++) {
        assert_same_inner((const inner_values *)a->inners.items + i, (const inner_values *)b->inners.items + i);
    }
    assert_int_equal(a->choice.every, b->choice.every);
    assert_int_equal(a->low, b->low);
    assert_int_equal(a->high, b->high);
}

static void expect_round_trip(const char *text) {
    loaded first;
    load(&first, text);
    expect_messages(&first, "");
    for (int annotate = 0; annotate < 2; annotate++) {
        dts_text written = {0};
        write_again(&first, annotate == 1, &written);
        loaded second;
        load(&second, dts_text_string(&written));
        expect_messages(&second, "");
        assert_same(&first.values, &second.values);
        dts_text again = {0};
        dts_text plain = {0};
        write_again(&first, false, &plain);
        write_again(&second, false, &again);
        assert_string_equal(dts_text_string(&again), dts_text_string(&plain));
        dts_text_free(&again);
        dts_text_free(&plain);
        dts_text_free(&written);
        unload(&second);
    }
    unload(&first);
}

static void test_round_trip(void **state) {
    (void)state;
    expect_round_trip(everything);
    expect_round_trip("whole: 1\ninner: {count: 2}\n");
    expect_round_trip("whole: 0\ninner: {count: 2}\nnumbers: []\nnames: []\ninners: []\n");
    expect_round_trip("whole: 9007199254740992\ninner: {count: 2}\ntext: ''\nsize: 0\nratio: 0\n");
    /* a comment must stay one line, whatever the source says */
    expect_round_trip("whole: {value: 3, source: \"a\\nhigh: 4\\u2028low: 5\\x85b\\x1b\"}\ninner: {count: 2}\n");
}

static void test_annotated(void **state) {
    (void)state;
    loaded l;
    load(&l,
         "whole: {value: 5, source: \"a\\nbook\"}\ninner:\n  count: 2\n  speed: 80 Gbit/s\npart: {profile: small, "
         "label: "
         "x}\ncolor: red\n");
    dts_text text = {0};
    write_again(&l, true, &text);
    assert_string_equal(dts_text_string(&text),
                        "flag: true  # default\n"
                        "whole: 5  # x.yaml:1 (a book)\n"
                        "ratio: 0.8  # default\n"
                        "color: red  # x.yaml:6\n"
                        "inner:\n"
                        "  count: 2  # x.yaml:3\n"
                        "  speed: 10 GB/s  # x.yaml:4\n"
                        "numbers: [5 us, 1 ms]  # default\n"
                        "part:  # x.yaml:5\n"
                        "  count: 2  # tests/unit/config/data/parts/small.yaml:2 (datasheet)\n"
                        "  speed: 1 GB/s  # tests/unit/config/data/parts/small.yaml:3 (datasheet)\n"
                        "  label: x  # x.yaml:5\n"
                        "choice: none  # default\n"
                        "high: 10  # default\n");
    dts_text_free(&text);
    unload(&l);
}

/* Without provenance all but the custom fields is written. */
static void test_without_provenance(void **state) {
    (void)state;
    loaded l;
    load(&l, "whole: 1\ninner: {count: 2}\nchoice: {every: 3}\n");
    dts_text text = {0};
    dts_schema_write_yaml(&everything_schema, &l.values, NULL, true, &text);
    assert_string_equal(dts_text_string(&text),
                        "flag: true\nwhole: 1\nratio: 0.8\ncolor: green\ninner:\n  count: 2\n  speed: 12.5 GB/s\n"
                        "numbers: [5 us, 1 ms]\nhigh: 10\n");
    dts_text_free(&text);
    unload(&l);
}

static const cJSON *at(const cJSON *object, const char *a, const char *b) {
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, a);
    return b == NULL ? inner : cJSON_GetObjectItemCaseSensitive(inner, b);
}

static void test_json_schema(void **state) {
    (void)state;
    dts_text text = {0};
    dts_schema_write_json_schema(&everything_schema, &text);
    cJSON *schema = cJSON_Parse(dts_text_string(&text));
    assert_non_null(schema);
    assert_string_equal(at(schema, "$schema", NULL)->valuestring, "https://json-schema.org/draft/2020-12/schema");
    assert_string_equal(at(schema, "title", NULL)->valuestring, "everything");
    assert_true(cJSON_IsFalse(at(schema, "additionalProperties", NULL)));
    const cJSON *properties = at(schema, "properties", NULL);
    for (size_t i = 0; i < everything_schema.field_count; i++) { /* every field is there, and documented */
        const cJSON *field = at(properties, everything_schema.fields[i].key, NULL);
        assert_non_null(field);
        assert_string_equal(at(field, "description", NULL)->valuestring, everything_schema.fields[i].help);
    }
    assert_non_null(at(properties, "extends", NULL));
    assert_non_null(at(properties, "source", NULL));
    const cJSON *count = at(at(properties, "inner", "properties"), "count", NULL);
    const cJSON *plain = cJSON_GetArrayItem(at(count, "anyOf", NULL), 0);
    assert_string_equal(at(plain, "type", NULL)->valuestring, "integer");
    assert_close(at(plain, "minimum", NULL)->valuedouble, 1, 0, 0);
    assert_close(at(plain, "maximum", NULL)->valuedouble, 100, 0, 0);
    assert_null(at(at(properties, "inner", NULL), "required", NULL)); /* a base may have it */
    const cJSON *list = cJSON_GetArrayItem(at(at(properties, "inners", NULL), "anyOf", NULL), 0);
    assert_string_equal(cJSON_GetArrayItem(at(list, "items", "required"), 0)->valuestring, "count");
    const cJSON *color = cJSON_GetArrayItem(at(at(properties, "color", NULL), "anyOf", NULL), 0);
    assert_int_equal(cJSON_GetArraySize(at(color, "enum", NULL)), 3);
    assert_string_equal(at(at(properties, "color", NULL), "default", NULL)->valuestring, "green");
    assert_true(cJSON_IsTrue(at(at(properties, "flag", NULL), "default", NULL)));
    const cJSON *power = cJSON_GetArrayItem(at(at(properties, "power", NULL), "anyOf", NULL), 0);
    assert_string_equal(at(power, "pattern", NULL)->valuestring,
                        "^[+]?[0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)? *((k|M|G|T|P|E|m|u|µ|μ|n|p)?W)$|^0$");
    const cJSON *part = cJSON_GetArrayItem(at(at(properties, "part", NULL), "anyOf", NULL), 1);
    assert_non_null(at(at(part, "properties", NULL), "profile", NULL));
    assert_null(at(part, "required", NULL)); /* the profile has the rest */
    cJSON_Delete(schema);
    dts_text_free(&text);
}

static void test_reference(void **state) {
    (void)state;
    dts_text text = {0};
    dts_schema_write_reference(&everything_schema, &text);
    const char *page = dts_text_string(&text);
    static const char *const lines[] = {
        "## everything\n\nAll types of fields.\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n",
        "| `flag` | `true` or `false` | `true` | on or off |\n",
        "| `whole` | whole number | required | a whole number |\n",
        "| `ratio` | a plain number such as 0.8 or 80 %, 0 to 1 | `80 %` | a share |\n",
        "| `size` | a size such as 40 GiB or 25 MB | - | a quantity: size |\n",
        "| `text` | text | - | any \\| text |\n",
        "| `color` | `red`, `green`, `blue` | `green` | one of three |\n",
        "| `numbers` | list: a time such as 5 us or 1.5 ms | `[5 us, 1 ms]` | times |\n",
        "| `inners` | list: maps, see below | - | more parts |\n",
        "| `part` | profile of `parts/`, see below | - | a part from a file |\n",
        "| `choice` | `none` or more, see its meaning | `none` | none or {every: n} |\n",
        "\n## `inner`\n\nA part.\n\n",
        "| `count` | whole number, 1 to 100 | required | how many |\n",
        "\n## `inners[]`\n",
        "\n## `part`\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strstr(page, lines[i]) == NULL) {
            fail_msg("not in the reference: %s", lines[i]);
        }
    }
    dts_text_free(&text);
}

/* Any text survives a trip through YAML. */
static void test_any_text(void **state) {
    (void)state;
    static const char *const pieces[] = {"a",        " ", ":", "#",    "\n", "\t",           "'",        "\"", "\\",
                                         "\xc2\x85", "-", "%", "null", "{",  "\xe2\x80\xa9", "\xc3\xa9", ",",  "&"};
    enum { COUNT = sizeof pieces / sizeof pieces[0] };
    for (size_t i = 0; i < COUNT * COUNT * COUNT; i++) {
        dts_text text = {0};
        dts_text_add(&text, pieces[i % COUNT]);
        dts_text_add(&text, pieces[i / COUNT % COUNT]);
        dts_text_add(&text, pieces[i / COUNT / COUNT]);
        dts_node node = {.kind = DTS_NODE_SCALAR, .text = dts_text_string(&text)};
        dts_node list = {.kind = DTS_NODE_LIST, .first = &node, .count = 1};
        dts_text yaml = {0};
        dts_node_write(&list, &yaml);
        dts_document *document = NULL;
        assert_int_equal(dts_document_parse(yaml.data, yaml.length, "x", NULL, &document, NULL), DTS_OK);
        const dts_node *back = dts_document_root(document)->first;
        assert_int_equal(back->kind, DTS_NODE_SCALAR);
        assert_string_equal(back->text, node.text);
        dts_document_free(document);
        dts_text_free(&yaml);
        dts_text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_annotated), cmocka_unit_test(test_without_provenance),
        cmocka_unit_test(test_json_schema), cmocka_unit_test(test_reference), cmocka_unit_test(test_any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
