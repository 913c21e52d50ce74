/* Tables made by the simulator itself with a known value: the fit must find it, and say what it cannot know. */
#include "calibrate/calibrate.h"

#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "run/run.h"

static const char *const roots[] = {"."};
static const dts_profile_paths profiles = {.roots = roots, .count = 1};

static const char header[] =
    "id,model,cluster,cluster.nodes,stack,training.global_batch,training.micro_batch,"
    "training.sequence_length,training.precision,training.optimizer,measured.iteration_s\n";

enum { ROWS = 8 };
static const struct {
    const char *model;
    int nodes, micro_batch;
} rows[ROWS] = {{"mingpt-small", 1, 4}, {"mingpt-small", 2, 4}, {"mingpt-small", 2, 8}, {"mingpt-small", 4, 8},
                {"mingpt-large", 1, 8}, {"mingpt-large", 2, 4}, {"mingpt-large", 2, 8}, {"mingpt-large", 4, 4}};

static void row_text(int i, char *out, size_t size) {
    snprintf(out, size, "%s,gcp-a2-highgpu-8g,%d,pytorch-1.11,%d,%d,256,fp16,sgd", rows[i].model, rows[i].nodes,
             8 * rows[i].nodes * rows[i].micro_batch, rows[i].micro_batch);
}

/* What the simulator says about row i with one value changed. */
static double simulated(int i, const char *key, const char *value) {
    char text[512];
    snprintf(text, sizeof text,
             "{model: %s, cluster: {profile: gcp-a2-highgpu-8g, nodes: %d}, stack: pytorch-1.11, training: "
             "{global_batch: %d, micro_batch: %d, sequence_length: 256, precision: fp16, optimizer: sgd}}",
             rows[i].model, rows[i].nodes, 8 * rows[i].nodes * rows[i].micro_batch, rows[i].micro_batch);
    const dts_override changes[] = {{.key = key, .value = value, .place = {.file = "test"}},
                                    {.key = "stack.launch", .value = "2 us", .place = {.file = "test"}},
                                    {.key = "stack.backward_launch", .value = "2 us", .place = {.file = "test"}}};
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_scenario_parse(text, strlen(text), "test", changes, 3, &profiles, &scenario, diag), DTS_OK);
    assert_int_equal(dts_run(scenario, NULL, &result, diag), DTS_OK);
    dts_diag_free(diag);
    double time_s = result->iteration_time_s;
    dts_result_free(result);
    dts_scenario_free(scenario);
    return time_s;
}

/* A table of all rows with the value changed, each time off by a factor and by noise in turns; path is filled in. */
static void make_table_off(char *path, const char *key, const char *value, double factor, double noise) {
    strcpy(path, "/tmp/dtsim-calibrate-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    fputs(header, file);
    static const double signs[] = {1, -1, -1, 1, -1, 1, 1, -1}; /* without a trend over models or nodes */
    for (int i = 0; i < ROWS; i++) {
        char row[256];
        row_text(i, row, sizeof row);
        fprintf(file, "r%d,%s,%.9g\n", i, row, factor * simulated(i, key, value) * (1 + noise * signs[i]));
    }
    assert_int_equal(fclose(file), 0);
}

static void make_table(char *path, const char *key, const char *value, double noise) {
    make_table_off(path, key, value, 1, noise);
}

static dts_status fit(const char *path, const dts_fit_request *parameters, size_t count, const char *by,
                      dts_calibration **out, dts_text *messages) {
    /* so that kernels matter as well as transfers */
    const dts_override launches[] = {{.key = "stack.launch", .value = "2 us", .place = {.file = "test"}},
                                     {.key = "stack.backward_launch", .value = "2 us", .place = {.file = "test"}}};
    const dts_calibrate_request request = {.paths = &path,
                                           .overrides = launches,
                                           .override_count = 2,
                                           .path_count = 1,
                                           .profiles = &profiles,
                                           .parameters = parameters,
                                           .parameter_count = count,
                                           .time = true,
                                           .folds = 2,
                                           .by = by,
                                           .threads = 2};
    dts_diag *diag = dts_diag_new();
    *out = NULL;
    dts_status status = dts_calibrate(&request, out, diag);
    dts_diag_render(diag, false, messages);
    dts_diag_free(diag);
    return status;
}

static void expect_refusal(const char *path, const dts_fit_request *parameters, size_t count, const char *words) {
    dts_calibration *c = NULL;
    dts_text messages = {0};
    assert_int_equal(fit(path, parameters, count, NULL, &c, &messages), DTS_INVALID);
    assert_null(c);
    if (strstr(dts_text_string(&messages), words) == NULL) {
        fail_msg("'%s' is not in: %s", words, dts_text_string(&messages));
    }
    dts_text_free(&messages);
}

/* The second of two parameters is refused, the first is fitted as if it stood alone. */
static void expect_first_only(const char *path, const dts_fit_request *parameters, const char *words) {
    dts_calibration *both = NULL, *alone = NULL;
    dts_text messages = {0};
    assert_int_equal(fit(path, parameters, 2, NULL, &both, &messages), DTS_OK);
    assert_int_equal(fit(path, parameters, 1, NULL, &alone, &messages), DTS_OK);
    assert_int_equal(both->parameter_count, 1);
    assert_string_equal(both->parameters[0].key, parameters[0].key);
    assert_close(both->parameters[0].value, alone->parameters[0].value, 1e-12, 0);
    assert_close(both->parameters[0].standard_error, alone->parameters[0].standard_error, 1e-9, 0);
    assert_close(both->held_out_pct, alone->held_out_pct, 1e-9, 0);
    assert_int_equal(alone->refused_count, 0);
    assert_int_equal(both->refused_count, 1);
    assert_string_equal(both->refused[0].key, parameters[1].key);
    if (strstr(both->refused[0].reason, words) == NULL) {
        fail_msg("'%s' is not in: %s", words, both->refused[0].reason);
    }
    dts_calibration_free(both);
    dts_calibration_free(alone);
    dts_text_free(&messages);
}

static void finds_a_known_bandwidth(void **state) {
    (void)state;
    char path[64];
    make_table(path, "cluster.inter.flow_cap", "1.7 GB/s", 0);
    const dts_fit_request cap = {.key = "cluster.inter.flow_cap"};
    dts_calibration *c = NULL;
    dts_text messages = {0};
    assert_int_equal(fit(path, &cap, 1, NULL, &c, &messages), DTS_OK);
    assert_close(c->parameters[0].start, 2.15e9, 1e-12, 0);
    assert_close(c->parameters[0].value, 1.7e9, 1e-4, 0);
    assert_true(c->before_pct > 5 && c->after_pct < 0.01 && c->held_out_pct < 0.01);
    assert_string_equal(c->base_key, "cluster");
    assert_string_equal(c->base_name, "gcp-a2-highgpu-8g");
    dts_calibration_free(c);
    dts_text_free(&messages);
    unlink(path);
}

static void noise_shows_in_the_standard_error(void **state) {
    (void)state;
    char path[64];
    make_table(path, "cluster.inter.flow_cap", "1.7 GB/s", 0.02);
    const dts_fit_request cap = {.key = "cluster.inter.flow_cap"};
    dts_calibration *c = NULL;
    dts_text messages = {0};
    assert_int_equal(fit(path, &cap, 1, "model", &c, &messages), DTS_OK);
    const dts_fitted *f = &c->parameters[0];
    /* 6 of 8 rows nearly inversely proportional to it, each 2 % off: about 2 % / sqrt(6) */
    assert_true(f->standard_error > 0.003 * f->value && f->standard_error < 0.03 * f->value);
    assert_true(fabs(f->value - 1.7e9) < 3 * f->standard_error);
    assert_close(c->after_pct, 2, 0.25, 0);
    assert_true(c->simulations < 300); /* no row that a fit does not see, and no step of less than a millionth */
    assert_true(c->held_out_pct >= c->after_pct);
    assert_int_equal(c->group_count, 2);
    for (size_t g = 0; g < 2; g++) {
        assert_int_equal(c->groups[g].records, 4);
        assert_true(c->groups[g].held_out_pct < c->groups[g].before_pct);
        assert_true(c->groups[g].held_out_pct > 0.5 * c->groups[g].after_pct);
    }
    dts_text yaml = {0};
    assert_int_equal(dts_calibration_yaml(c, &yaml), DTS_OK);
    assert_non_null(strstr(dts_text_string(&yaml), "extends: \"gcp-a2-highgpu-8g\"\ninter:\n  flow_cap: {value: 1."));
    assert_non_null(strstr(dts_text_string(&yaml), "standard error"));
    dts_text_free(&yaml);
    dts_calibration_free(c);
    dts_text_free(&messages);
    unlink(path);
}

static void stays_within_bounds_and_says_so(void **state) {
    (void)state;
    char path[64];
    make_table(path, "cluster.inter.flow_cap", "1.7 GB/s", 0);
    const dts_fit_request cap = {.key = "cluster.inter.flow_cap", .low = 1.9e9, .high = 3e9};
    dts_calibration *c = NULL;
    dts_text messages = {0};
    assert_int_equal(fit(path, &cap, 1, NULL, &c, &messages), DTS_OK);
    assert_true(c->parameters[0].value >= 1.9e9 && c->parameters[0].value < 1.91e9);
    assert_true(c->parameters[0].at_bound);
    assert_true(isnan(c->parameters[0].standard_error));
    dts_calibration_free(c);
    const dts_fit_request upside_down = {.key = "cluster.inter.flow_cap", .low = 3e9, .high = 1e9};
    expect_refusal(path, &upside_down, 1, "are not possible");
    const dts_fit_request above_one = {.key = "cluster.gpu.memory_kernel.efficiency", .low = 0.5, .high = 1.5};
    expect_refusal(path, &above_one, 1, "are not possible");
    dts_text_free(&messages);
    unlink(path);
}

static void refuses_what_the_data_cannot_determine(void **state) {
    (void)state;
    char path[64];
    make_table(path, "cluster.inter.flow_cap", "1.7 GB/s", 0.01);
    /* nothing is offloaded */
    const dts_fit_request flat[] = {{.key = "cluster.inter.flow_cap"}, {.key = "cluster.gpu.pcie_bandwidth"}};
    expect_first_only(path, flat, "no prediction changes between its bounds");
    expect_refusal(path, &flat[1], 1, "no prediction changes between its bounds [cluster.gpu.pcie_bandwidth]");
    /* only their product matters */
    const dts_fit_request twins[] = {{.key = "cluster.gpu.memory_bandwidth"},
                                     {.key = "cluster.gpu.memory_kernel.efficiency", .low = 0.5, .high = 1}};
    expect_first_only(path, twins,
                      "cannot tell cluster.gpu.memory_bandwidth and cluster.gpu.memory_kernel.efficiency apart");
    const dts_fit_request unknown = {.key = "cluster.inter.flow_ca"};
    expect_refusal(path, &unknown, 1, "unknown key");
    const dts_fit_request whole = {.key = "cluster.nodes"};
    expect_refusal(path, &whole, 1, "not a continuous number");
    const dts_fit_request unset = {.key = "cluster.intra.in_switch_bandwidth"};
    expect_refusal(path, &unset, 1, "nothing to start from");
    unlink(path);
    /* faster than any network makes it: beyond some rate all transfers are hidden, or something else limits them */
    make_table_off(path, "cluster.inter.flow_cap", "1.7 GB/s", 0.02, 0);
    const dts_fit_request hidden = {.key = "cluster.inter.flow_cap", .low = 1e9, .high = 100e9};
    expect_refusal(path, &hidden, 1, "the fit went up to ");
    expect_refusal(path, &hidden, 1, "where no prediction depends on it any more [cluster.inter.flow_cap]");
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_known_bandwidth),
        cmocka_unit_test(noise_shows_in_the_standard_error),
        cmocka_unit_test(stays_within_bounds_and_says_so),
        cmocka_unit_test(refuses_what_the_data_cannot_determine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
