/* What a plan is exported as is imported as the same plan: for every scenario that comes along and every launcher that
 * can be read, each key that the export says it used has the same value after the import into a scenario that says
 * something else about all of them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "interop/interop.h"

static const char *const root = ".";
static const dts_profile_paths profiles = {.roots = &root, .count = 1};

/* Values that no scenario has. */
static const dts_override scramble[] = {
    {"training",
     "{global_batch: 7, micro_batch: 7, sequence_length: 7, precision: nvfp4, optimizer: lion, recompute: sqrt}",
     {.file = "scramble"}},
    {"parallelism", "{data_parallel: dp}", {.file = "scramble"}},
    {"offload", "{optimizer: nvme}", {.file = "scramble"}},
};
enum { SCRAMBLES = 3 };

static void print_errors(const dts_diag *diag) {
    dts_text text = {0};
    dts_diag_render(diag, false, &text);
    print_error("%s", dts_text_string(&text));
    dts_text_free(&text);
}

/* Keys that export and import must agree about although the launcher counts them otherwise. */
static bool is_counted(const dts_launcher *launcher, const char *key) {
    return launcher->whole_plan &&
           (strcmp(key, "training.global_batch") == 0 || strcmp(key, "training.micro_batch") == 0);
}

static size_t compare(const char *path, const dts_launcher *launcher, const dts_scenario *first,
                      const dts_scenario *second, const dts_notes *notes, dts_arena *arena) {
    dts_settings was = {.arena = arena}, is = {.arena = arena};
    dts_facts_of(first, NULL, &was);
    dts_facts_of(second, NULL, &is);
    size_t compared = 0;
    for (size_t i = 0; i < notes->count; i++) {
        const char *equals = strstr(notes->items[i].what, " = ");
        if (notes->items[i].kind != DTS_NOTE_USED || equals == NULL) {
            continue;
        }
        char key[100];
        snprintf(key, sizeof key, "%.*s", (int)(equals - notes->items[i].what), notes->items[i].what);
        const char *got = dts_settings_get(&is, key);
        if (strcmp(key, "parallelism.partition") == 0 && got != NULL && got[0] == '[') {
            continue; /* a balanced cut becomes the list of layers that it is */
        }
        if (got == NULL || strcmp(got, equals + 3) != 0) {
            print_error("%s, %s: %s came back as %s\n", path, launcher->name, notes->items[i].what,
                        got == NULL ? "nothing" : got);
        }
        assert_non_null(got);
        assert_string_equal(got, equals + 3);
        compared++;
    }
    for (size_t i = 0; i < was.count; i++) {
        if (is_counted(launcher, was.items[i].path)) {
            assert_string_equal(dts_settings_get(&is, was.items[i].path), was.items[i].value);
            compared++;
        }
    }
    return compared;
}

/* Number of keys that were compared; 0: the launcher cannot express the plan. */
static size_t round_trip(const char *path, const dts_launcher *launcher) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_scenario *first = NULL, *base = NULL, *second = NULL;
    assert_int_equal(dts_scenario_load(path, NULL, 0, &profiles, &first, diag), DTS_OK);
    dts_notes notes = {.arena = arena}, back = {.arena = arena};
    dts_text text = {0};
    size_t compared = 0;
    if (dts_export(first, launcher, &notes, &text, diag) == DTS_OK) {
        dts_settings facts = {.arena = arena};
        assert_int_equal(dts_scenario_load(path, scramble, SCRAMBLES, &profiles, &base, diag), DTS_OK);
        dts_facts_of(base, NULL, &facts);
        dts_override all[256], *imported = NULL;
        size_t count = 0;
        dts_status status =
            dts_import(launcher, dts_text_string(&text), text.length, "file", &facts, &back, &imported, &count, diag);
        if (status != DTS_OK || dts_diag_warnings(diag) > 0) {
            print_error("%s, %s\n%s", path, launcher->name, dts_text_string(&text));
            print_errors(diag);
        }
        assert_int_equal(status, DTS_OK);
        assert_int_equal(dts_diag_warnings(diag), 0); /* what we write, we know */
        assert_true(SCRAMBLES + count <= 256);
        memcpy(all, scramble, sizeof scramble);
        memcpy(all + SCRAMBLES, imported, count * sizeof *imported);
        status = dts_scenario_load(path, all, SCRAMBLES + count, &profiles, &second, diag);
        if (status != DTS_OK) {
            print_errors(diag);
        }
        assert_int_equal(status, DTS_OK);
        compared = compare(path, launcher, first, second, &notes, arena);
    }
    dts_text_free(&text);
    dts_scenario_free(second);
    dts_scenario_free(base);
    dts_scenario_free(first);
    dts_diag_free(diag);
    dts_arena_free(arena);
    return compared;
}

static void every_scenario_comes_back(void **state) {
    (void)state;
    static const char *const themes[] = {"gcp-data-parallel", "long-context", "offload", "pipelines", "experts"};
    size_t scenarios = 0, expressed = 0, keys = 0;
    for (size_t t = 0; t < sizeof themes / sizeof themes[0]; t++) {
        char folder[100];
        snprintf(folder, sizeof folder, "scenarios/%s", themes[t]);
        DIR *directory = opendir(folder);
        for (struct dirent *entry = directory == NULL ? NULL : readdir(directory); entry != NULL;
             entry = readdir(directory)) {
            if (strstr(entry->d_name, ".yaml") == NULL) {
                continue;
            }
            char path[400];
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            scenarios++;
            for (size_t l = 0; dts_launchers[l] != NULL; l++) {
                const bool both = dts_launchers[l]->read != NULL && dts_launchers[l]->write != NULL;
                size_t compared = both ? round_trip(path, dts_launchers[l]) : 0;
                expressed += compared > 0 ? 1 : 0;
                keys += compared;
            }
        }
        if (directory != NULL) {
            closedir(directory);
        }
    }
    assert_true(scenarios >= 30);
    assert_true(expressed >= 100);
    assert_true(keys >= 1500);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_scenario_comes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
