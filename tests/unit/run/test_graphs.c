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

/* What stands between the graphs of layers is launched as before: FSDP's gathers and reductions, copies of activations
 * and of optimizer states. Kernels and transfers are the same; where launches are free, so is the time. */
static void what_stands_between_graphs_stays(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int replays; /* of a layer's forward and backward, each */
    } cases[] = {
        {"parallelism.data_parallel=fsdp", 2},
        {"parallelism.data_parallel=fsdp training.recompute=full", 2},
        {"parallelism.data_parallel=fsdp training.recompute=sqrt", 3},
        {"offload.activations=cpu", 2},
        {"parallelism.data_parallel=zero1 offload.optimizer=cpu", 2},
    };
    static const char free_launches[] = "stack.launch=0us stack.backward_launch=0us";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double times_s[2][2]; /* [launches cost nothing][graphs] */
        for (int k = 0; k < 4; k++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings, "%s %s stack.cuda_graphs=%s", cases[i].settings,
                     k / 2 == 1 ? free_launches : "", k % 2 == 1 ? "layers" : "none");
            dts_result *r = simulate_text(base, settings);
            times_s[k / 2][k % 2] = r->iteration_time_s;
            if (k / 2 == 0) { /* tasks that take no time are no spans */
                assert_int_equal(spans_named(r, "launch graph"), k % 2 * 8 * 6 * cases[i].replays);
            }
            assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
            dts_result_free(r);
        }
        print_message("%s: %.2f ms, with graphs %.2f\n", cases[i].settings, 1e3 * times_s[0][0], 1e3 * times_s[0][1]);
        assert_close(times_s[1][1], times_s[1][0], 1e-6, 0);
        assert_true(times_s[0][1] < 0.95 * times_s[0][0]);
    }
}

/* One graph of all passes holds the collectives, too: each unit is gathered once a microbatch and reduced once, without
 * the host. */
static void an_iteration_holds_collectives_of_whole_units(void **state) {
    (void)state;
    static const char fsdp[] =
        "parallelism.data_parallel=fsdp parallelism.reshard_after_forward=false parallelism.pipeline=1 "
        "stack.fsdp.unit_host=50us";
    dts_result *none = simulate_text(base, fsdp);
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s stack.cuda_graphs=iteration", fsdp);
    dts_result *graph = simulate_text(base, settings);
    assert_int_equal(spans_named(graph, "launch graph"), 1);
    assert_int_equal(spans_named(graph, "fsdp hooks"), 0);
    assert_true(spans_named(none, "fsdp hooks") > 0);
    for (int i = 0; i < 2; i++) {
        const char *kind = i == 0 ? "all-gather" : "reduce-scatter";
        const dts_communication_row *with = communication_row(graph, kind, "data");
        const dts_communication_row *without = communication_row(none, kind, "data");
        assert_int_equal(with->count, without->count);
        assert_close(with->bytes, without->bytes, 0, 0);
    }
    assert_true(graph->iteration_time_s < 0.5 * none->iteration_time_s);
    dts_result_free(none);
    dts_result_free(graph);
}

static void what_the_host_decides_is_refused(void **state) {
    (void)state;
    const struct {
        const char *settings, *message;
    } cases[] = {
        {"stack.cuda_graphs=layers parallelism.data_parallel=zero3", "host decides between kernels"},
        {"stack.cuda_graphs=iteration parallelism.data_parallel=fsdp parallelism.pipeline=1",
         "unless parameters stay whole"},
        {"stack.cuda_graphs=iteration parallelism.data_parallel=fsdp parallelism.reshard_after_forward=false",
         "unless parameters stay whole"},
        {"stack.cuda_graphs=layers parallelism.data_parallel=fsdp parallelism.fsdp_unit=linear", "linear layers"},
        {"stack.cuda_graphs=layers parallelism.data_parallel=fsdp offload.parameters=cpu offload.optimizer=cpu",
         "at another address"},
        {"stack.cuda_graphs=layers parallelism.data_parallel=zero2 offload.gradients=cpu offload.optimizer=cpu",
         "gradients that leave"},
        {"stack.cuda_graphs=iteration offload.activations=cpu", "inside the graph of an iteration"},
        {"stack.cuda_graphs=layers offload.activations=cpu offload.pin_memory=false", "has to wait for"},
        {"stack.cuda_graphs=maybe", "iteration"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(base, cases[i].settings, cases[i].message);
    }
}

/* Layers with experts behind one without, whose tokens are exchanged by all-to-all. */
static const char experts[] =
    "model: {profile: deepseek-v2-lite, layers: 5}\n"
    "cluster: {profile: dgx-h100, nodes: 1}\n"
    "stack: {profile: megatron-core, launch: 30us, backward_launch: 30us, experts_host: 100us}\n"
    "training: {sequence_length: 1024, micro_batch: 1, global_batch: 32, precision: bf16}\n"
    "parallelism: {data_parallel: ddp, expert: 8}\n";

static dts_result *simulate_modules(const char *scenario, const char *modules, const char *more) {
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "stack.cuda_graphs=layers stack.cuda_graph_modules=[%s]%s%s", modules,
             more[0] != '\0' ? " " : "", more);
    return simulate_text(scenario, settings);
}

/* Of 8 microbatches a replica and 6 layers: neighbours are one graph, so that all of a layer is what layers are. */
static void modules_are_launched_once_a_layer(void **state) {
    (void)state;
    dts_result *none = simulate_text(base, "");
    dts_result *layers = simulate_text(base, "stack.cuda_graphs=layers");
    dts_result *all = simulate_modules(base, "attn,mlp", "");
    dts_result *attention = simulate_modules(base, "attn", "");
    dts_result *absent = simulate_modules(base, "moe_router", "");
    assert_int_equal(spans_named(attention, "launch graph"), 8 * 6 * 2);
    assert_int_equal(spans_named(all, "launch graph"), 8 * 6 * 2);
    assert_int_equal(spans_named(all, "launch"), spans_named(layers, "launch"));
    assert_close(all->iteration_time_s, layers->iteration_time_s, 0, 0);
    assert_true(spans_named(layers, "launch") < spans_named(attention, "launch"));
    assert_true(spans_named(attention, "launch") < spans_named(none, "launch"));
    assert_int_equal(spans_named(absent, "launch graph"), 0); /* no layer has experts */
    assert_close(absent->iteration_time_s, none->iteration_time_s, 0, 0);
    dts_result *const results[] = {none, layers, all, attention, absent};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        dts_result_free(results[i]);
    }
}

/* 4 microbatches, 4 layers with experts and 1 without. The host reads token counts once for each as without graphs,
 * behind what has been captured; the more is, the sooner all is done. */
static void dropless_experts_leave_the_rest_to_graphs(void **state) {
    (void)state;
    static const struct {
        const char *modules;
        int graphs; /* of layers, for each microbatch and direction */
    } steps[] = {{"attn", 5}, {"attn,mlp", 5}, {"attn,mlp,moe_router", 5}, {"attn,mlp,moe_router,moe_preprocess", 5}};
    dts_result *none = simulate_text(experts, "");
    const size_t reads = spans_named(none, "read token counts");
    size_t launches = spans_named(none, "launch");
    double time_s = none->iteration_time_s;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        dts_result *r = simulate_modules(experts, steps[i].modules, "");
        assert_int_equal(spans_named(r, "launch graph"), 4 * 2 * steps[i].graphs);
        assert_int_equal(spans_named(r, "read token counts"), reads);
        assert_true(spans_named(r, "launch") < launches);
        assert_true(r->iteration_time_s <= time_s);
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        launches = spans_named(r, "launch");
        time_s = r->iteration_time_s;
        dts_result_free(r);
    }
    assert_int_equal(reads, 4 * 4);
    dts_result *attention = simulate_modules(experts, "attn", ""); /* a pool of its own */
    assert_true(attention->peak_allocated_gib > none->peak_allocated_gib);
    assert_close(attention->peak_allocated_gib, none->peak_allocated_gib, 0.02, 0);
    dts_result_free(attention);
    print_message("none %.2f ms, all but experts %.2f ms\n", 1e3 * none->iteration_time_s, 1e3 * time_s);
    assert_true(time_s < 0.95 * none->iteration_time_s);
    dts_result_free(none);
}

/* Two graphs a layer where attention stands between nothing that is captured; recomputation within is part of them. */
static void modules_apart_are_graphs_of_their_own(void **state) {
    (void)state;
    dts_result *router = simulate_modules(experts, "moe_router", "");
    assert_int_equal(spans_named(router, "launch graph"), 4 * 2 * 4);
    dts_result *again = simulate_modules(experts, "attn,moe_router", "training.recompute=selective");
    assert_int_equal(spans_named(again, "launch graph"), 4 * 2 * 5);
    /* padded experts may be captured, too: then nothing of a layer is left */
    dts_result *padded = simulate_modules(experts, "attn,mlp,moe", "model.capacity_factor=1");
    dts_result *layers = simulate_text(experts, "stack.cuda_graphs=layers model.capacity_factor=1");
    assert_close(padded->iteration_time_s, layers->iteration_time_s, 0, 0);
    assert_int_equal(spans_named(padded, "launch"), spans_named(layers, "launch"));
    dts_result_free(router);
    dts_result_free(again);
    dts_result_free(padded);
    dts_result_free(layers);
    assert_refused(experts, "stack.cuda_graphs=layers stack.cuda_graph_modules=[attn,moe]", "cannot be captured");
    assert_refused(experts, "stack.cuda_graphs=layers stack.cuda_graph_modules=[moe_preprocess]", "moe_router only");
    assert_refused(experts, "stack.cuda_graphs=layers stack.cuda_graph_modules=[moe,moe_router]", "name one of them");
    assert_refused(experts, "stack.cuda_graphs=layers stack.cuda_graph_modules=[router]", "'router' is no module");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_is_launched_once),
        cmocka_unit_test(graphs_change_nothing_where_launches_are_free),
        cmocka_unit_test(what_stands_between_graphs_stays),
        cmocka_unit_test(an_iteration_holds_collectives_of_whole_units),
        cmocka_unit_test(what_the_host_decides_is_refused),
        cmocka_unit_test(modules_are_launched_once_a_layer),
        cmocka_unit_test(dropless_experts_leave_the_rest_to_graphs),
        cmocka_unit_test(modules_apart_are_graphs_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
