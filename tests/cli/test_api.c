/* The public header as a user of the library sees it: this file includes nothing else of the library. */
#include "dtsim.h"

#include <cjson/cJSON.h>

#include "check.h"

static const char *const folders[] = {"."}; /* tests run in the root of the repository */
static const char scenario[] = "scenarios/gcp-data-parallel/scaling-pdp.yaml";

static dts_prediction *predict(const char *path, const char *change, int expected) {
    const char *const changes[] = {change};
    const dts_request request = {.scenario = path,
                                 .overrides = changes,
                                 .override_count = change != NULL ? 1 : 0,
                                 .folders = folders,
                                 .folder_count = 1};
    dts_prediction *prediction = NULL;
    assert_int_equal(dts_predict(&request, &prediction), expected);
    assert_non_null(prediction);
    return prediction;
}

static void predicts_and_gives_numbers_by_name(void **state) {
    (void)state;
    dts_prediction *p = predict(scenario, NULL, DTS_PREDICTED);
    assert_string_equal(dts_prediction_messages(p), "");
    double seconds = dts_prediction_number(p, "iteration_time_s");
    assert_true(seconds > 0 && seconds < 60);
    assert_close(dts_prediction_number(p, "samples_per_s"), dts_prediction_number(p, "global_batch") / seconds, 1e-12,
                 0);
    assert_close(dts_prediction_number(p, "fits"), 1, 0, 0);
    assert_true(dts_prediction_number(p, "memory_gib.activations") > 0);
    assert_true(dts_prediction_number(p, "simulation.events") > 0);
    assert_true(isnan(dts_prediction_number(p, "scenario")));
    assert_true(isnan(dts_prediction_number(p, "memory_gib")));
    assert_true(isnan(dts_prediction_number(p, "nonsense")));
    cJSON *json = cJSON_Parse(dts_prediction_json(p));
    assert_non_null(json);
    assert_close(cJSON_GetObjectItemCaseSensitive(json, "iteration_time_s")->valuedouble, seconds, 0, 0);
    cJSON_Delete(json);
    dts_prediction_free(p);
}

static void overrides_count(void **state) {
    (void)state;
    dts_prediction *one = predict(scenario, NULL, DTS_PREDICTED);
    dts_prediction *two = predict(scenario, "training.sequence_length=128", DTS_PREDICTED);
    assert_true(dts_prediction_number(two, "iteration_time_s") < dts_prediction_number(one, "iteration_time_s"));
    assert_close(dts_prediction_number(two, "sequence_length"), 128, 0, 0);
    dts_prediction_free(one);
    dts_prediction_free(two);
}

static void explains_what_is_wrong(void **state) {
    (void)state;
    dts_prediction *p = predict(scenario, "training.micro_bacth=4", DTS_PREDICTION_INVALID);
    assert_non_null(strstr(dts_prediction_messages(p), "micro_batch"));
    assert_true(isnan(dts_prediction_number(p, "iteration_time_s")));
    assert_null(dts_prediction_json(p));
    dts_prediction_free(p);
    p = predict(scenario, "nonsense", DTS_PREDICTION_INVALID);
    assert_non_null(strstr(dts_prediction_messages(p), "KEY=VALUE"));
    dts_prediction_free(p);
    p = predict("no/such/file.yaml", NULL, DTS_PREDICTION_IO);
    assert_non_null(strstr(dts_prediction_messages(p), "no/such/file.yaml"));
    dts_prediction_free(p);
    dts_prediction_free(NULL);
    assert_non_null(strstr(dts_prediction_messages(NULL), "out of memory"));
}

static void knows_its_version(void **state) {
    (void)state;
    assert_true(dts_version()[0] >= '0' && dts_version()[0] <= '9');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predicts_and_gives_numbers_by_name),
        cmocka_unit_test(overrides_count),
        cmocka_unit_test(explains_what_is_wrong),
        cmocka_unit_test(knows_its_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
