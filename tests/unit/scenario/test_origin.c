/* What counts as set by a command's user is told by what it is, not by the name of the file that it stands in. */
#include <string.h>

#include "check.h"
#include "scenario/scenario.h"

static size_t warnings_of(const char *file, const dts_override *override) {
    static const char text[] =
        "model: gpt2\ncluster: {profile: dgx-a100, nodes: 2}\nstack: pytorch-2\n"
        "training: {sequence_length: 512, micro_batch: 1, global_batch: 16, precision: amp-bf16, optimizer: adamw}\n";
    const char *roots[] = {"."};
    dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    const dts_status status = dts_scenario_parse(text, strlen(text), file, override, 1, &profiles, &scenario, diag);
    assert_int_equal(status, DTS_OK);
    const size_t warnings = dts_diag_count(diag);
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    return warnings;
}

static void the_name_of_a_file_is_no_origin(void **state) {
    (void)state;
    const dts_override set = {
        .key = "cluster", .value = "dgx-h100", .place = {.file = "--set", .origin = DTS_ORIGIN_SET}};
    const dts_override cell = {.key = "cluster", .value = "dgx-h100", .place = {.file = "--set"}};
    assert_int_equal(warnings_of("file.yaml", &set), 1); /* its nodes are lost */
    assert_int_equal(warnings_of("--set", &set), 1);
    assert_int_equal(warnings_of("file.yaml", &cell), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_of_a_file_is_no_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
