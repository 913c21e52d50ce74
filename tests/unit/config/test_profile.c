/* Profiles: names, paths, overrides, bases, circles, and names that must not leave their folder. */
#include "loaded.h"

static const char start[] = "whole: 1\ninner: {count: 2}\n";

static void load_part(loaded *l, const char *part) {
    char text[256];
    snprintf(text, sizeof text, "%spart: %s\n", start, part);
    load(l, text);
}

static void expect_part(const char *part, int64_t count, double speed_Bps, const char *label) {
    loaded l;
    load_part(&l, part);
    expect_messages(&l, "");
    assert_int_equal(l.status, DTS_OK);
    assert_int_equal(l.values.part.count, count);
    assert_true(l.values.part.speed_Bps == speed_Bps);
    assert_true((label == NULL) == (l.values.part.label == NULL));
    if (label != NULL) {
        assert_string_equal(l.values.part.label, label);
    }
    unload(&l);
}

static void test_references(void **state) {
    (void)state;
    expect_part("small", 2, 1e9, NULL); /* the first root wins */
    expect_part("'small'", 2, 1e9, NULL);
    expect_part("other", 5, 3e9, NULL); /* only under the second */
    expect_part("{profile: small}", 2, 1e9, NULL);
    expect_part("{profile: small, speed: 2 GB/s, label: mine}", 2, 2e9, "mine");
    expect_part("{profile: other, speed: 2 GB/s}", 5, 2e9, NULL);
    expect_part("big", 9, 1e9, "big");
    expect_part("{count: 4}", 4, 12.5e9, NULL); /* all in place */
    expect_part("tests/unit/config/data/parts/small.yaml", 2, 1e9, NULL);
    expect_part("{profile: ./tests/unit/config/more/parts/small.yaml}", 77, 12.5e9, NULL);
}

static void test_origin(void **state) {
    (void)state;
    loaded l;
    load_part(&l, "{profile: big, label: mine}");
    expect_messages(&l, "");
    const dts_provenance *p = l.binder.provenance;
    assert_string_equal(dts_provenance_find(p, "part")->value, "big");
    assert_int_equal(dts_provenance_find(p, "part")->place.line, 3);
    const dts_provenance_entry *speed = dts_provenance_find(p, "part.speed"); /* from the base */
    assert_string_equal(speed->place.file, "tests/unit/config/data/parts/small.yaml");
    assert_int_equal(speed->place.line, 3);
    assert_string_equal(speed->source, "datasheet");
    const dts_provenance_entry *count = dts_provenance_find(p, "part.count");
    assert_string_equal(count->place.file, "tests/unit/config/data/parts/big.yaml");
    assert_null(count->source); /* the base's source does not speak for it */
    assert_string_equal(dts_provenance_find(p, "part.label")->place.file, "x.yaml");
    unload(&l);
    load_part(&l, "{profile: other, speed: 9 GB/s}"); /* an override leaves the source behind */
    assert_null(dts_provenance_find(l.binder.provenance, "part.speed")->source);
    assert_string_equal(dts_provenance_find(l.binder.provenance, "part.count")->source, "web");
    unload(&l);
}

typedef struct wrong_case {
    const char *part;
    const char *want;
} wrong_case;

static const wrong_case wrong[] = {
    {"smal",
     "x.yaml:3:7: error: no profile 'smal' in parts/ [part]\n      3 | part: smal\n        |       ^\n"
     "  help: did you mean 'small'?\n"},
    {"quaternion",
     "x.yaml:3:7: error: no profile 'quaternion' in parts/ [part]\n"
     "      3 | part: quaternion\n        |       ^\n"
     "  help: there are big, broken, circle-a, circle-b, circle-c, list-base, lost-base, no-map, other, small\n"},
    {"Circle",
     "x.yaml:3:7: error: no profile 'Circle' in parts/ [part]\n"
     "      3 | part: Circle\n        |       ^\n"
     "  help: did you mean 'circle-a', 'circle-b', 'circle-c'?\n"},
    {"../parts/small.yml",
     "x.yaml:3:7: error: cannot read '../parts/small.yml': no such file [part]\n"
     "      3 | part: ../parts/small.yml\n        |       ^\n"
     "  help: a path counts from the folder of the file that names it\n"},
    {"tests/",
     "x.yaml:3:7: error: cannot read 'tests/': it is no regular file [part]\n"
     "      3 | part: tests/\n        |       ^\n  help: name a YAML or JSON file\n"},
    {"/dev/zero",
     "x.yaml:3:7: error: cannot read '/dev/zero': it is no regular file [part]\n"
     "      3 | part: /dev/zero\n        |       ^\n  help: name a YAML or JSON file\n"},
    {"..",
     "x.yaml:3:7: error: '..' cannot be the name of a profile [part]\n"
     "      3 | part: ..\n        |       ^\n"
     "  help: names have letters, digits and . _ + - only; a path holds a '/' or ends in .yaml\n"},
    {".small",
     "x.yaml:3:7: error: '.small' cannot be the name of a profile [part]\n"
     "      3 | part: .small\n        |       ^\n"
     "  help: names have letters, digits and . _ + - only; a path holds a '/' or ends in .yaml\n"},
    {"'small$(x)'",
     "x.yaml:3:7: error: 'small$(x)' cannot be the name of a profile [part]\n"
     "      3 | part: 'small$(x)'\n        |       ^\n"
     "  help: names have letters, digits and . _ + - only; a path holds a '/' or ends in .yaml\n"},
    {"''",
     "x.yaml:3:7: error: '' cannot be the name of a profile [part]\n"
     "      3 | part: ''\n        |       ^\n"
     "  help: names have letters, digits and . _ + - only; a path holds a '/' or ends in .yaml\n"},
    {"[small]",
     "x.yaml:3:7: error: expected the name of a profile, got a list [part]\n"
     "      3 | part: [small]\n        |       ^\n  help: write NAME, a path, or {profile: NAME, KEY: VALUE, ...}\n"},
    {"{profile: {a: 1}}",
     "x.yaml:3:17: error: expected the name of a profile, got a map [part]\n"
     "      3 | part: {profile: {a: 1}}\n        |                 ^\n"
     "  help: write NAME, a path, or {profile: NAME, KEY: VALUE, ...}\n"},
    {"{profile: small, cuont: 1}",
     "x.yaml:3:24: error: unknown key 'cuont' [part]\n"
     "      3 | part: {profile: small, cuont: 1}\n        |                        ^\n  help: did you mean 'count'?\n"},
    {"circle-a",
     "tests/unit/config/data/parts/circle-c.yaml:1:10: error: profiles extend each other in a circle: circle-a -> "
     "circle-b -> circle-c.yaml -> circle-a [part]\n"
     "      1 | extends: circle-a\n        |          ^\n  help: remove one of the 'extends'\n"},
    {"list-base",
     "tests/unit/config/data/parts/list-base.yaml:1:10: error: expected the name of one file to extend, got a list "
     "[part]\n      1 | extends: [small]\n        |          ^\n  help: write extends: NAME or a path\n"},
    {"lost-base",
     "tests/unit/config/data/parts/lost-base.yaml:1:10: error: no profile 'smal' in parts/ [part]\n"
     "      1 | extends: smal\n        |          ^\n"
     "  help: did you mean 'small'?\n"},
    {"no-map",
     "tests/unit/config/data/parts/no-map.yaml:1:1: error: expected a profile, got a list [part]\n"
     "  help: a profile is a map: KEY: VALUE on each line\n"},
    {"broken",
     "tests/unit/config/data/parts/broken.yaml:3:1: error: duplicate key 'speed', first given on line 2\n"
     "      3 | speed: 6\n        | ^\n  help: keep one of the two\n"
     "tests/unit/config/data/parts/broken.yaml:1:8: error: expected a whole number, got 'many' [part.count]\n"
     "      1 | count: many\n        |        ^\n  help: write a whole number such as 8\n"
     "tests/unit/config/data/parts/broken.yaml:2:8: error: '5' has no unit [part.speed]\n"
     "      2 | speed: 5\n        |        ^\n  help: write a bandwidth such as 100 Gbit/s or 12.5 GB/s\n"},
};

static void test_wrong(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        loaded l;
        load_part(&l, wrong[i].part);
        expect_messages(&l, wrong[i].want);
        assert_int_equal(l.status, DTS_INVALID);
        unload(&l);
    }
}

static void test_no_profiles(void **state) {
    (void)state;
    static const char *const nowhere[] = {"no-such-folder"};
    loaded l;
    const char *text = "whole: 1\ninner: {count: 2}\npart: small\n";
    loaded_read(&l, text, strlen(text), NULL);
    l.binder.profiles = (dts_profile_paths){nowhere, 1};
    loaded_bind(&l);
    expect_messages(&l,
                    "x.yaml:3:7: error: no profile 'small' in parts/ [part]\n"
                    "      3 | part: small\n        |       ^\n"
                    "  help: there is no profile in parts/ at all; write a path such as ./NAME.yaml, or check the data "
                    "directory\n");
    unload(&l);
}

static void test_list(void **state) {
    (void)state;
    const dts_profile_paths paths = {loaded_roots, 2};
    dts_arena *arena = dts_arena_new(0);
    const char **names = NULL;
    size_t count = 0;
    assert_int_equal(dts_profile_list(&paths, "parts", arena, &names, &count, NULL), DTS_OK);
    assert_int_equal(count, 10);
    for (size_t i = 1; i < count; i++) {
        assert_true(strcmp(names[i - 1], names[i]) < 0);
    }
    assert_int_equal(dts_profile_list(&paths, "nothing", arena, &names, &count, NULL), DTS_OK);
    assert_int_equal(count, 0);
    dts_arena_free(arena);
}

/* A file that is no profile extends others of its folder. */
static void test_extend(void **state) {
    (void)state;
    loaded l;
    const char *text = "extends: big\nlabel: top\n";
    loaded_read(&l, text, strlen(text), NULL);
    dts_node *node = NULL;
    assert_int_equal(dts_profile_extend(&l.binder, "parts", dts_document_root(l.document), &node), DTS_OK);
    inner_values inner;
    assert_int_equal(dts_bind(&l.binder, &inner_schema, node, "", &inner), DTS_OK);
    assert_int_equal(inner.count, 9);
    assert_string_equal(inner.label, "top");
    assert_true(inner.speed_Bps == 1e9);
    unload(&l);
    /* when the base is lost, its keys are not missed */
    text = "extends: bgi\nlabl: top\n";
    loaded_read(&l, text, strlen(text), NULL);
    assert_int_equal(dts_profile_extend(&l.binder, "parts", dts_document_root(l.document), &node), DTS_INVALID);
    assert_int_equal(dts_bind(&l.binder, &inner_schema, node, "", &inner), DTS_INVALID);
    assert_int_equal(dts_diag_count(l.diag), 2);
    assert_string_equal(dts_diag_get(l.diag, 0)->text, "no profile 'bgi' in parts/");
    assert_string_equal(dts_diag_get(l.diag, 1)->text, "unknown key 'labl'");
    unload(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references),  cmocka_unit_test(test_origin), cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_no_profiles), cmocka_unit_test(test_list),   cmocka_unit_test(test_extend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
