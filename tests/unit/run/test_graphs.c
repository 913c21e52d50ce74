/* CUDA graphs: kernels stay, launches go. */
#include "simulate.h"

/* Small kernels, so that the host cannot keep up. */
static const char base[] =
    "model: {profile: gpt, layers: 6, hidden: 512, heads: 8, vocab: 1000, ffn_hidden: 1024}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 8}\n"
    "stack: {profile: megatron-core, launch: 20us, backward_launch: 20us}\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 256, precision: bf16}\n"
    "parallelism: {data_parallel: ddp, tensor: 2, pipeline: 2, schedule: 1f1b}\n";

static size_t spans_named(const dts_result *r, const char *name) {
    size_t count = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        count += strcmp(r->spans[i].name, name) == 0;
    }
    return count;
}

/* 8 microbatches a replica; 6 layers, forward and backward each; or one for each of the two stages. */
static void a_graph_is_launched_once(void **state) {
    (void)state;
    dts_result *none = simulate_text(base, "");
    dts_result *layers = simulate_text(base, "stack.cuda_graphs=layers");
    dts_result *iteration = simulate_text(base, "stack.cuda_graphs=iteration");
    assert_int_equal(spans_named(none, "launch graph"), 0);
    assert_int_equal(spans_named(layers, "launch graph"), 8 * 6 * 2);
    assert_int_equal(spans_named(iteration, "launch graph"), 2);
    assert_true(spans_named(layers, "launch") < spans_named(none, "launch"));
    assert_true(spans_named(iteration, "launch") < spans_named(layers, "launch"));
    print_message("none %.2f ms, layers %.2f ms, iteration %.2f ms\n", 1e3 * none->iteration_time_s,
                  1e3 * layers->iteration_time_s, 1e3 * iteration->iteration_time_s);
    assert_true(none->time_s.host_bound > 0.5 * none->iteration_time_s);
    assert_true(layers->iteration_time_s < none->iteration_time_s);
    assert_true(iteration->iteration_time_s < layers->iteration_time_s);
    dts_result_free(none);
    dts_result_free(layers);
    dts_result_free(iteration);
}

static void graphs_change_nothing_where_launches_are_free(void **state) {
    (void)state;
    static const char *const graphs[] = {"none", "layers", "iteration"};
    double first_s = 0;
    for (int i = 0; i < 3; i++) {
        char settings[120];
        snprintf(settings, sizeof settings, "stack.launch=0us stack.backward_launch=0us stack.cuda_graphs=%s",
                 graphs[i]);
        dts_result *r = simulate_text(base, settings);
        first_s = i == 0 ? r->iteration_time_s : first_s;
        assert_close(r->iteration_time_s, first_s, 0, 0);
        dts_result_free(r);
    }
}

static void graphs_need_a_host_that_keeps_out(void **state) {
    (void)state;
    const struct {
        const char *settings, *message;
    } cases[] = {
        {"parallelism.data_parallel=fsdp", "gather parameters between kernels"},
        {"offload.activations=cpu", "copy from and to host memory between kernels"},
        {"stack.cuda_graphs=maybe", "iteration"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[120];
        snprintf(settings, sizeof settings, "stack.cuda_graphs=layers %s", cases[i].settings);
        assert_refused(base, settings, cases[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_is_launched_once),
        cmocka_unit_test(graphs_change_nothing_where_launches_are_free),
        cmocka_unit_test(graphs_need_a_host_that_keeps_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
