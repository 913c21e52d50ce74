/* PyTorch's ring attention against counts made by hand from its loop: kernels, bytes and transfers of a layer. */
#include <inttypes.h>

#include "run/explain.h"

#include "simulate.h"

enum { LAYERS = 2, HIDDEN = 4096, HEAD_DIM = 128, KV_HEADS = 8, CONTEXT = 4, LENGTH = 131072 };

#define EAGER                                                                                           \
    "stack=pytorch-2 stack.communication_sms=0 cluster.nodes=1 cluster.gpus_per_node=4 model.layers=2 " \
    "cluster.gpu.memory_kernel.efficiency=1 training.recompute=none training.global_batch=1 "           \
    "parallelism.context=4 cluster.gpu.memory=1TB "
#define COMPILED EAGER "stack.compile=true "

static dts_result *explained(const char *settings) {
    char copy[LONGEST_SETTINGS];
    snprintf(copy, sizeof copy, "%s", settings);
    dts_override overrides[MOST_OVERRIDES];
    const char *roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    const dts_explain_request request = {.path = "scenarios/long-context/ring.yaml",
                                         .overrides = overrides,
                                         .override_count = split_settings(copy, overrides),
                                         .profiles = &profiles};
    dts_diag *diag = dts_diag_new();
    dts_result *result = NULL;
    assert_ok(dts_explain(&request, &result, diag), diag);
    return result;
}

static const double q = (double)LENGTH / CONTEXT * HIDDEN;            /* elements of the queries */
static const double v = 2.0 * LENGTH / CONTEXT * KV_HEADS * HEAD_DIM; /* of keys and values */
static const double lse = (double)LENGTH / CONTEXT * (HIDDEN / (double)HEAD_DIM);

/* Kernels of that name in one layer, and the bytes that they move at the memory's rate. */
static void assert_kernels(const dts_result *r, const char *name, const char *direction, int64_t count, double bytes) {
    for (size_t i = 0; i < r->explanation->kernel_count; i++) {
        const dts_kernel_row *row = &r->explanation->kernels[i];
        if (strcmp(row->name, name) == 0 && strcmp(row->direction, direction) == 0) {
            print_message("%s %s: %" PRId64 " kernels, %.3f ms a layer\n", name, direction, row->count / LAYERS,
                          row->total_s / LAYERS * 1e3);
            assert_int_equal(row->count, count * LAYERS);
            assert_close(row->total_s, LAYERS * bytes / 3350e9, 1e-3, 0);
            return;
        }
    }
    fail_msg("no kernels %s %s", name, direction);
}

static bool has_kernels(const dts_result *r, const char *name) {
    for (size_t i = 0; i < r->explanation->kernel_count; i++) {
        if (strcmp(r->explanation->kernels[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static const dts_communication_row *transfers(const dts_result *r, const char *kind) {
    for (size_t i = 0; i < r->communication_count; i++) {
        if (strcmp(r->communication[i].kind, kind) == 0 && strcmp(r->communication[i].group, "context") == 0) {
            return &r->communication[i];
        }
    }
    fail_msg("no %s", kind);
    return NULL;
}

/* out.to(fp32); then of out - sigmoid(block_lse - lse) * (out - block_out) three passes over the outputs and with the
 * log-sum-exps five of theirs; half in the end. */
static void operations_are_kernels(void **state) {
    (void)state;
    dts_result *r = explained(EAGER);
    const double later = CONTEXT - 1;
    assert_kernels(r, "attention_merge", "forward", 1 + (CONTEXT - 1) * (4 + 5) + 1,
                   q * (2 + 4) + later * (q * (2 + 4 + 12 + 8 + 12) + 5 * lse * 12) + q * (4 + 2));
    /* zeros; dQ, dK and dV of every step, of the later ones half of dK and dV; half in the end */
    assert_kernels(r, "attention_gradient_sum", "backward", 3 + CONTEXT * 3 + 2,
                   4 * (q + v) + CONTEXT * q * 10 + v * 10 + later * v * 5 + 6 * (q + v));
    assert_kernels(r, "join_halves", "backward", 2 * (CONTEXT - 1), later * 8 * v);
    assert_kernels(r, "join_gradients", "backward", CONTEXT, CONTEXT * 8 * v);
    assert_kernels(r, "join_keys", "forward", CONTEXT - 1, later * 4 * v);
    assert_kernels(r, "contiguous_keys", "forward", 2, 4 * v);
    dts_result_free(r);
}

static void a_compiler_fuses_them(void **state) {
    (void)state;
    dts_result *r = explained(COMPILED);
    assert_kernels(r, "attention_merge", "forward", CONTEXT - 1, (CONTEXT - 1) * q * 10);
    assert_kernels(r, "attention_gradient_sum", "backward", 2 * CONTEXT + 2,
                   (q + v) * (6 + (CONTEXT - 1) * 10) + 6 * (q + v));
    assert_kernels(r, "join_keys", "forward", 1, 4 * v);
    assert_false(has_kernels(r, "join_halves"));
    assert_false(has_kernels(r, "join_gradients"));
    dts_result_free(r);
}

/* Keys and values of all ranks twice; dK and dV in fp32 after each step. Traced, each transfer is waited for at once.
 */
static void transfers_are_apart(void **state) {
    (void)state;
    dts_result *eager = explained(EAGER), *compiled = explained(COMPILED);
    const dts_result *const both[] = {eager, compiled};
    for (size_t i = 0; i < 2; i++) {
        const dts_communication_row *gathers = transfers(both[i], "all-gather");
        const dts_communication_row *sends = transfers(both[i], "send-recv");
        assert_int_equal(gathers->count, 2 * LAYERS);
        assert_close(gathers->bytes, 2.0 * LAYERS * CONTEXT * v * 2, 1e-12, 0);
        assert_int_equal(sends->count, CONTEXT * LAYERS);
        assert_close(sends->bytes, (double)LAYERS * CONTEXT * v * 4, 1e-12, 0);
        print_message("exposed %.3f of %.3f ms, %.3f of %.3f ms\n", gathers->exposed_s * 1e3, gathers->total_s * 1e3,
                      sends->exposed_s * 1e3, sends->total_s * 1e3);
    }
    assert_true(transfers(eager, "all-gather")->exposed_s < 0.01 * transfers(eager, "all-gather")->total_s);
    assert_true(transfers(compiled, "all-gather")->exposed_s > 0.99 * transfers(compiled, "all-gather")->total_s);
    assert_true(transfers(compiled, "send-recv")->exposed_s > 0.99 * transfers(compiled, "send-recv")->total_s);
    /* the last of four sends in a layer brings gradients home: nothing is left beside it but the sum of dQ */
    assert_true(transfers(eager, "send-recv")->exposed_s < 0.26 * transfers(eager, "send-recv")->total_s);
    dts_result_free(eager);
    dts_result_free(compiled);
}

/* Keys and values may be gathered though their gradients stay in the type of activations: as many bytes as a ring of
 * fused kernels sends for them, and those of the last trip home. */
static void narrow_gradients_travel_apart_too(void **state) {
    (void)state;
    dts_result *r = explained(COMPILED "stack.ring_attention.fp32_gradients=false");
    assert_close(transfers(r, "send-recv")->bytes, (double)LAYERS * CONTEXT * v * 2, 1e-12, 0);
    dts_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_kernels),
        cmocka_unit_test(a_compiler_fuses_them),
        cmocka_unit_test(transfers_are_apart),
        cmocka_unit_test(narrow_gradients_travel_apart_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
