/* What a launcher expresses in full comes back as what it was: a random legal scenario, exported without a loss and
 * imported into one that says something else about all that was written, takes the same time and memory. Megatron-LM
 * has flags for what its software does: there the scenario that is imported into has that software as it is.
 * DTSIM_PROPERTY_RUNS sets how many scenarios are drawn, DTSIM_PROPERTY_SEED the first seed. */
#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "interop/interop.h"
#include "simulate.h"

enum { OVERRIDES_MOST = 300, SCRAMBLES_MOST = 16 };

static const char *const root = ".";
static const dts_profile_paths profiles = {.roots = &root, .count = 1};

/* Values that no scenario has, for keys that an export said it used. */
static const dts_override scramble[] = {
    {"training.sequence_length", "7", {.file = "scramble"}},
    {"training.precision", "nvfp4", {.file = "scramble"}},
    {"training.optimizer", "lion", {.file = "scramble"}},
    {"training.recompute", "sqrt", {.file = "scramble"}},
    {"parallelism.data_parallel", "dp", {.file = "scramble"}},
    {"parallelism.tensor", "7", {.file = "scramble"}},
    {"parallelism.context", "7", {.file = "scramble"}},
    {"parallelism.async_tensor", "true", {.file = "scramble"}},
};

/* Whole plans give both in words of their own. */
static const dts_override batch[] = {
    {"training.global_batch", "7", {.file = "scramble"}},
    {"training.micro_batch", "7", {.file = "scramble"}},
};

static bool is_used(const dts_notes *notes, const char *key) {
    const size_t length = strlen(key);
    for (size_t i = 0; i < notes->count; i++) {
        if (notes->items[i].kind == DTS_NOTE_USED && strncmp(notes->items[i].what, key, length) == 0 &&
            notes->items[i].what[length] == ' ') {
            return true;
        }
    }
    return false;
}

static bool is_lossless(const dts_notes *notes) {
    for (size_t i = 0; i < notes->count; i++) {
        if (notes->items[i].kind == DTS_NOTE_LOST) {
            return false;
        }
    }
    return true;
}

/* A line at a time, as print_error() cuts long texts. */
static void print_lines(const char *text) {
    for (const char *at = text; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
        print_error("%.*s\n", (int)strcspn(at, "\n"), at);
    }
}

static void print_all(const char *scenario, const char *file, const dts_diag *diag) {
    dts_text text = {0};
    dts_diag_render(diag, false, &text);
    print_lines(scenario);
    print_lines(file);
    print_lines(dts_text_string(&text));
    dts_text_free(&text);
}

/* Keys that came back as something else. */
static void print_differences(const dts_scenario *first, const dts_scenario *second, dts_arena *arena) {
    dts_settings was = {.arena = arena}, is = {.arena = arena};
    dts_facts_of(first, NULL, &was);
    dts_facts_of(second, NULL, &is);
    for (size_t i = 0; i < was.count; i++) {
        const char *got = dts_settings_get(&is, was.items[i].path);
        if (got == NULL || strcmp(got, was.items[i].value) != 0) {
            print_error("  %s: %s -> %s\n", was.items[i].path, was.items[i].value, got == NULL ? "nothing" : got);
        }
    }
}

/* What users ask of Megatron-LM's software. */
static const char *const asked[] = {
    "", /* as it is */
    ", device_dispatch_domain: 2, tokens_cross_once: true, device_dispatch_waits: true, device_dispatcher: deepep",
    ", device_dispatch_domain: 2, tokens_cross_once: true",
    ", device_dispatch_domain: 0",
    ", experts: sequential",
    ", shared_expert_overlap: true",
    ", fuse: {permute: false}",
    ", fuse: {loss: false}",
    ", ddp: {overlap: false, bucket: 1 TB, first_bucket: 1 TB}",
    ", fp32_gradients: false",
    ", optimizer: {gradient_clipping: false}",
    ", attention: materialised",
};
enum { ASKED = sizeof asked / sizeof asked[0], ASKED_LONGEST = 160 };

/* Writes the scenario with the launcher's own software, as it is or as it is asked. */
static void write_with_own_stack(const dts_launcher *launcher, const drawn *d, const char *wish, char *text,
                                 size_t size) {
    snprintf(text, size, "stack: {profile: %s%s}%s", launcher->stack, wish, strchr(d->text, '\n'));
}

/* NULL: it is not legal. */
static dts_result *run_text(const char *text) {
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_result *r = NULL;
    if (dts_scenario_parse(text, strlen(text), "own", NULL, 0, &profiles, &scenario, diag) == DTS_OK) {
        dts_run(scenario, NULL, &r, diag);
    }
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    return r;
}

/* True: the launcher could express it. plain: the scenario with software of which nothing is asked. Counts in wrong
 * what came back as something else. */
static bool comes_back(const char *scenario, const char *plain, const dts_result *expected,
                       const dts_launcher *launcher, size_t *wrong_count) {
    size_t wrong = 0;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_notes notes = {.arena = arena}, back = {.arena = arena};
    dts_text text = {0};
    dts_scenario *first = parse_text(scenario), *base = NULL, *second = NULL;
    const bool written = dts_export(first, launcher, &notes, &text, diag) == DTS_OK && is_lossless(&notes);
    if (written) {
        dts_override all[OVERRIDES_MOST], *imported = NULL;
        size_t others = 0, count = 0;
        for (size_t i = 0; i < sizeof scramble / sizeof scramble[0]; i++) {
            if (is_used(&notes, scramble[i].key)) {
                all[others++] = scramble[i];
            }
        }
        for (size_t i = 0; launcher->whole_plan && i < sizeof batch / sizeof batch[0]; i++) {
            all[others++] = batch[i];
        }
        assert_int_equal(dts_scenario_parse(plain, strlen(plain), "base", all, others, &profiles, &base, diag), DTS_OK);
        dts_settings facts = {.arena = arena};
        dts_facts_of(base, NULL, &facts);
        dts_status status =
            dts_import(launcher, dts_text_string(&text), text.length, "file", &facts, &back, &imported, &count, diag);
        assert_true(others + count <= OVERRIDES_MOST);
        for (size_t i = 0; status == DTS_OK && i < count; i++) {
            all[others + i] = imported[i];
        }
        dts_result *r = NULL;
        status = status == DTS_OK
                     ? dts_scenario_parse(plain, strlen(plain), "second", all, others + count, &profiles, &second, diag)
                     : status;
        status = status == DTS_OK ? dts_run(second, NULL, &r, diag) : status;
        const bool same =
            r != NULL && fabs(r->iteration_time_s - expected->iteration_time_s) < 1e-9 * expected->iteration_time_s &&
            fabs(r->peak_allocated_gib - expected->peak_allocated_gib) < 1e-9 * expected->peak_allocated_gib;
        if (!same) {
            print_error("%s: %.9g s, %.9g GiB came back as %.9g s, %.9g GiB\n", launcher->name,
                        expected->iteration_time_s, expected->peak_allocated_gib, r == NULL ? 0 : r->iteration_time_s,
                        r == NULL ? 0 : r->peak_allocated_gib);
            print_all(scenario, dts_text_string(&text), diag);
            if (second != NULL) {
                print_differences(first, second, arena);
            }
        }
        wrong += !same;
        dts_result_free(r);
    }
    dts_text_free(&text);
    dts_scenario_free(second);
    dts_scenario_free(base);
    dts_scenario_free(first);
    dts_diag_free(diag);
    dts_arena_free(arena);
    *wrong_count += wrong;
    return written;
}

static uint64_t number_of(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void what_is_expressed_comes_back(void **state) {
    (void)state;
    const uint64_t runs = number_of("DTSIM_PROPERTY_RUNS", 200), seed = number_of("DTSIM_PROPERTY_SEED", 1);
    size_t expressed[16] = {0}, wrong = 0;
    for (uint64_t i = 0; i < runs; i++) {
        const drawn d = draw(seed + i);
        for (size_t l = 0; dts_launchers[l] != NULL; l++) {
            if (dts_launchers[l]->read == NULL || dts_launchers[l]->write == NULL) {
                continue;
            }
            char text[sizeof d.text + ASKED_LONGEST], plain[sizeof text];
            const bool megatron = strcmp(dts_launchers[l]->name, "megatron-lm") == 0;
            write_with_own_stack(dts_launchers[l], &d, megatron ? asked[(seed + i) % ASKED] : "", text, sizeof text);
            write_with_own_stack(dts_launchers[l], &d, "", plain, sizeof plain);
            dts_result *r = run_text(text);
            expressed[l] += r != NULL && comes_back(text, plain, r, dts_launchers[l], &wrong);
            dts_result_free(r);
        }
    }
    assert_int_equal(wrong, 0);
    size_t all = 0;
    for (size_t l = 0; dts_launchers[l] != NULL; l++) {
        if (dts_launchers[l]->read != NULL && dts_launchers[l]->write != NULL) {
            print_message("%s: %zu of %zu in full\n", dts_launchers[l]->name, expressed[l], (size_t)runs);
            all += expressed[l];
        }
    }
    assert_true(runs < 100 || all > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_expressed_comes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
