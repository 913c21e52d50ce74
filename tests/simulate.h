/* Runs scenarios for tests: a file or a text with "key=value key=value …" on top. Errors are printed and fail the test.
 */
#ifndef DTS_TESTS_SIMULATE_H
#define DTS_TESTS_SIMULATE_H

#include "check.h"
#include "run/run.h"

enum { MOST_OVERRIDES = 24, LONGEST_SETTINGS = 1024 };

/* Splits settings (changed in place) into overrides. */
static inline size_t split_settings(char *settings, dts_override *out) {
    size_t count = 0;
    char *rest = settings;
    for (char *word = strtok_r(settings, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < MOST_OVERRIDES);
        char *equals = strchr(word, '=');
        assert_non_null(equals);
        *equals = '\0';
        out[count++] = (dts_override){.key = word, .value = equals + 1, .place = {.file = "test"}};
    }
    return count;
}

/* Prints what was said unless all is well, which the test demands. Frees diag. */
static inline void assert_ok(dts_status status, dts_diag *diag) {
    if (status != DTS_OK) {
        dts_text messages = {0};
        dts_diag_render(diag, false, &messages);
        print_error("%s", dts_text_string(&messages));
        dts_text_free(&messages);
    }
    dts_diag_free(diag);
    assert_int_equal(status, DTS_OK);
}

/* The scenario of a text; the caller's to free. */
static inline dts_scenario *parse_text(const char *text) {
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    assert_ok(dts_scenario_parse(text, strlen(text), "test", NULL, 0, &profiles, &scenario, diag), diag);
    return scenario;
}

static inline dts_result *simulate_values(const dts_scenario_values *values, const dts_run_options *options) {
    dts_diag *diag = dts_diag_new();
    dts_result *result = NULL;
    assert_ok(dts_run_values(values, options, &result, diag), diag);
    return result;
}

/* path: a file, or NULL to parse text. status: what is expected; NULL result unless DTS_OK. messages: rendered
 * diagnostics, may be NULL. */
static inline dts_result *simulate_with(const dts_run_options *options, const char *path, const char *text,
                                        const char *settings, dts_status status, dts_text *messages) {
    char copy[LONGEST_SETTINGS];
    snprintf(copy, sizeof copy, "%s", settings);
    dts_override overrides[MOST_OVERRIDES];
    size_t count = split_settings(copy, overrides);
    const char *roots[] = {"."};
    dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    dts_status got = path != NULL ? dts_scenario_load(path, overrides, count, &profiles, &scenario, diag)
                                  : dts_scenario_parse(text, text == NULL ? 0 : strlen(text), "test", overrides, count,
                                                       &profiles, &scenario, diag);
    if (got == DTS_OK) {
        got = dts_run(scenario, options, &result, diag);
    }
    dts_text rendered = {0};
    dts_diag_render(diag, false, &rendered);
    if (got != status) {
        print_error("%s", dts_text_string(&rendered));
    }
    if (messages != NULL) {
        dts_text_add(messages, dts_text_string(&rendered));
    }
    dts_text_free(&rendered);
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    assert_int_equal(got, status);
    return result;
}

static inline dts_result *simulate_expecting(const char *path, const char *text, const char *settings,
                                             dts_status status, dts_text *messages) {
    dts_run_options options = {.timeline = true};
    return simulate_with(&options, path, text, settings, status, messages);
}

/* The scenario of a file (or of a text, path NULL) is refused, and what is said holds message and help ("": any). */
static inline void assert_refused_with(const char *path, const char *text, const char *settings, const char *message,
                                       const char *help) {
    dts_text messages = {0};
    assert_null(simulate_expecting(path, text, settings, DTS_INVALID, &messages));
    const char *said = dts_text_string(&messages);
    if (strstr(said, message) == NULL || strstr(said, help) == NULL) {
        print_error("%s: expected \"%s\" and \"%s\" in:\n%s", settings, message, help, said);
        fail();
    }
    dts_text_free(&messages);
}

static inline void assert_refused(const char *text, const char *settings, const char *message) {
    assert_refused_with(NULL, text, settings, message, "");
}

static inline dts_result *simulate_file(const char *path, const char *settings) {
    return simulate_expecting(path, NULL, settings, DTS_OK, NULL);
}

static inline dts_result *simulate_text(const char *text, const char *settings) {
    return simulate_expecting(NULL, text, settings, DTS_OK, NULL);
}

static inline double sum_of_shares(const dts_time_shares *t) {
    return t->compute + t->exposed_communication + t->bubble + t->exposed_offload + t->host_bound + t->optimizer +
           t->input_wait;
}

/* The row of a kind and group, or NULL. */
static inline const dts_communication_row *communication_row(const dts_result *r, const char *kind, const char *group) {
    for (size_t i = 0; i < r->communication_count; i++) {
        if (strcmp(r->communication[i].kind, kind) == 0 && strcmp(r->communication[i].group, group) == 0) {
            return &r->communication[i];
        }
    }
    return NULL;
}

#endif
