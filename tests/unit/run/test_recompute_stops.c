/* Recomputation that stops when all that backward needs has been saved (torch.utils.checkpoint without re-entrance
 * since PyTorch 2.1): the last product of a checkpoint, 8 h² of a layer's 24 h² FLOP a token, and the exchange behind
 * it do not run again, unless what follows the product keeps its output. */
#include "simulate.h"

enum { LAYERS = 4, MICROBATCHES = 2, HIDDEN = 1024, TOKENS = 4 * 512 };

static const char *const base =
    "model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 50304, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
    "stack: {profile: pytorch-2, recompute_stops_early: true, dropout: false}\n"
    "training: {global_batch: 64, micro_batch: 4, sequence_length: 512, precision: bf16, recompute: full}\n"
    "parallelism: {data_parallel: ddp}\n";

static size_t repeats_of(const dts_result *r, const char *name) {
    size_t count = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        count += r->spans[i].kind == DTS_SPAN_RECOMPUTE && strcmp(r->spans[i].name, name) == 0;
    }
    return count;
}

/* Of one GPU in an iteration. */
static double flops(const dts_result *r) {
    return r->hfu * r->iteration_time_s;
}

static void the_last_product_is_left_out(void **state) {
    (void)state;
    dts_result *stops = simulate_text(base, "");
    dts_result *whole = simulate_text(base, "stack.recompute_stops_early=false");
    dts_result *none = simulate_text(base, "training.recompute=none");
    assert_int_equal(repeats_of(stops, "mlp_up"), LAYERS * MICROBATCHES);
    assert_int_equal(repeats_of(stops, "mlp_down"), 0);
    assert_int_equal(repeats_of(whole, "mlp_down"), LAYERS * MICROBATCHES);
    /* 12 h² parameters a layer make 24 h² FLOP a token, attention 4 s h: 8 h² of them are left out */
    const double layer = 24.0 * HIDDEN + 4.0 * 512;
    assert_close((flops(stops) - flops(none)) / (flops(whole) - flops(none)), 1 - 8.0 * HIDDEN / layer, 1e-9, 0);
    assert_true(stops->iteration_time_s < whole->iteration_time_s);
    assert_true(stops->peak_allocated_gib <= whole->peak_allocated_gib);
    dts_result_free(stops);
    dts_result_free(whole);
    dts_result_free(none);
}

/* Layers inside a checkpoint hand their outputs on. */
static void only_where_a_checkpoint_ends(void **state) {
    (void)state;
    dts_result *pairs = simulate_text(base, "training.recompute.every=2");
    assert_int_equal(repeats_of(pairs, "mlp_up"), LAYERS * MICROBATCHES);
    assert_int_equal(repeats_of(pairs, "mlp_down"), LAYERS * MICROBATCHES / 2);
    dts_result_free(pairs);
}

/* Dropout keeps a mask of the product's output; functions in Python keep what they need when they are through. */
static void not_where_something_behind_it_is_kept(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        bool runs;
    } all[] = {
        {"stack.dropout=true model.dropout=true", true},
        {"cluster.profile=dgx-h100 training.precision=fp8", true},
        {"cluster.profile=dgx-h100 training.precision=fp8 stack.compile=true", false},
        {"model.experts=8 model.experts_per_token=2", true},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dts_result *r = simulate_text(base, all[i].settings);
        const size_t down = repeats_of(r, "mlp_down") + repeats_of(r, "expert_down");
        print_message("%-70s %zu\n", all[i].settings, down);
        assert_int_equal(down > 0, all[i].runs);
        dts_result_free(r);
    }
}

static int64_t reductions(const char *settings) {
    dts_result *r = simulate_text(base, settings);
    const int64_t count = communication_row(r, "all-reduce", "tensor")->count;
    dts_result_free(r);
    return count;
}

static void the_exchange_behind_it_too(void **state) {
    (void)state;
    const int64_t stops = reductions("parallelism.tensor=2");
    const int64_t whole = reductions("parallelism.tensor=2 stack.recompute_stops_early=false");
    assert_int_equal(whole - stops, LAYERS * 4); /* 4 microbatches, on half as many replicas */
}

static const char *const llama =
    "model: {profile: llama, layers: 4, hidden: 1024, heads: 16, ffn_hidden: 2816, vocab: 65536}\n"
    "cluster: {profile: dgx-h100, nodes: 1}\n"
    "stack: {profile: torchtitan, fuse: {loss: true}}\n"
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 8192, precision: bf16, recompute: selective}\n"
    "parallelism: {data_parallel: fsdp}\n";

/* Activations of a layer at the peak, which is that of the loss. */
static double layer_gib(const char *settings) {
    double gib[2];
    for (int twice = 0; twice < 2; twice++) {
        char with[100];
        snprintf(with, sizeof with, "%s model.layers=%d", settings, (1 + twice) * LAYERS);
        dts_result *r = simulate_text(llama, with);
        gib[twice] = r->memory_gib.activations;
        dts_result_free(r);
    }
    return (gib[1] - gib[0]) / LAYERS;
}

/* Every second product is kept, of seven the last one too; nothing reads that in backward, and a compiler drops it:
 * in each layer a bf16 tensor of the hidden width. What is repeated stays the same. */
static void a_compiler_keeps_no_output_that_nothing_reads(void **state) {
    (void)state;
    const double tensor_gib = 2.0 * 8192 * 1024 / (1024.0 * 1024.0 * 1024.0);
    assert_close(layer_gib("stack.compile=false") - layer_gib("stack.compile=true"), tensor_gib, 1e-6, 0);
    dts_result *r = simulate_text(llama, "stack.compile=true");
    assert_int_equal(repeats_of(r, "mlp_gate"), 0);
    assert_int_equal(repeats_of(r, "mlp_up"), LAYERS);
    assert_int_equal(repeats_of(r, "mlp_down"), 0);
    dts_result_free(r);
}

/* Collectives beside products take no multiprocessors here, as coarse detail leaves that out. */
static void details_agree(void **state) {
    (void)state;
    static const char *const settings[] = {"", "parallelism.tensor=2", "training.recompute.every=2",
                                           "parallelism.data_parallel=fsdp",
                                           "parallelism.data_parallel=fsdp parallelism.fsdp_unit=linear"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char with[200];
        snprintf(with, sizeof with, "%s stack.communication_sms=0 fidelity.detail=kernel", settings[i]);
        dts_result *fine = simulate_text(base, with);
        snprintf(with, sizeof with, "%s stack.communication_sms=0 fidelity.detail=layer", settings[i]);
        dts_result *coarse = simulate_text(base, with);
        assert_close(coarse->iteration_time_s, fine->iteration_time_s, 1e-9, 0);
        assert_close(coarse->peak_allocated_gib, fine->peak_allocated_gib, 1e-9, 0);
        dts_result_free(fine);
        dts_result_free(coarse);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_product_is_left_out),
        cmocka_unit_test(only_where_a_checkpoint_ends),
        cmocka_unit_test(not_where_something_behind_it_is_kept),
        cmocka_unit_test(the_exchange_behind_it_too),
        cmocka_unit_test(a_compiler_keeps_no_output_that_nothing_reads),
        cmocka_unit_test(details_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
