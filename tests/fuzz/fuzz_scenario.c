/* libFuzzer harness for scenarios: any bytes are loaded as a scenario against the real profiles, which lie in the
 * folder that DTSIM_DATA names, or in the current one. A scenario that loads must load again from what
 * dts_schema_write_yaml() makes of it, to the same text. */
#include <stdint.h>
#include <string.h>

#include "messages.h"
#include "scenario/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dts_status load(const char *text, size_t length, dts_scenario **out, dts_diag *diag) {
    const char *folder = getenv("DTSIM_DATA");
    const char *const roots[] = {folder == NULL ? "." : folder};
    const dts_profile_paths profiles = {roots, 1};
    return dts_scenario_parse(text, length, "input", NULL, 0, &profiles, out, diag);
}

static void write(const dts_scenario *scenario, bool annotate, dts_text *out) {
    dts_schema_write_yaml(&dts_scenario_schema, dts_scenario_get(scenario), dts_scenario_provenance(scenario), annotate,
                          out);
}

/* Aborts when what was written does not load, or says something else. */
static void round_trip(const dts_scenario *scenario) {
    dts_diag *diag = dts_diag_new();
    dts_text annotated = {0};
    dts_text plain = {0};
    dts_text again = {0};
    write(scenario, true, &annotated);
    write(scenario, false, &plain);
    dts_scenario *second = NULL;
    if (diag == NULL || load(dts_text_string(&annotated), annotated.length, &second, diag) != DTS_OK) {
        abort();
    }
    write(second, false, &again);
    if (strcmp(dts_text_string(&plain), dts_text_string(&again)) != 0) {
        abort();
    }
    dts_scenario_free(second);
    dts_text_free(&annotated);
    dts_text_free(&plain);
    dts_text_free(&again);
    dts_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dts_diag *diag = dts_diag_new();
    if (diag == NULL) {
        return 0;
    }
    dts_scenario *scenario = NULL;
    const dts_status status = load((const char *)data, size, &scenario, diag);
    if (status == DTS_OK) {
        round_trip(scenario);
    }
    check_messages(diag, status);
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    return 0;
}
