/* scenarios/long-context: what its README says comes out. */
#include "simulate.h"

#define FOLDER "scenarios/long-context/"

static dts_result *run(const char *file, const char *settings) {
    dts_result *r = simulate_file(file, settings);
    print_message("%-40s %-70s %7.3f s, %6.0f tokens/s per GPU, %6.1f GiB\n", file, settings, r->iteration_time_s,
                  r->tokens_per_s_per_gpu, r->peak_allocated_gib);
    return r;
}

/* Transfers of the context group: seconds altogether, and exposed. */
static double moving_s(const dts_result *r, bool exposed) {
    double sum = 0;
    for (size_t i = 0; i < r->communication_count; i++) {
        if (strcmp(r->communication[i].group, "context") == 0) {
            sum += exposed ? r->communication[i].exposed_s : r->communication[i].total_s;
        }
    }
    return sum;
}

static void a_long_sequence_needs_several_gpus(void **state) {
    (void)state;
    dts_result *one = run(FOLDER "ring.yaml", "parallelism.context=1 training.global_batch=32");
    dts_result *eight = run(FOLDER "ring.yaml", "");
    assert_false(one->fits);
    assert_true(eight->fits);
    dts_result_free(one);
    dts_result_free(eight);
}

static void methods_differ_in_what_is_exposed(void **state) {
    (void)state;
    dts_result *ring = run(FOLDER "ring.yaml", "");
    dts_result *heads = run(FOLDER "all-to-all.yaml", "");
    dts_result *gather = run(FOLDER "all-gather.yaml", "");
    print_message("moving %.3f, %.3f, %.3f s; exposed %.3f, %.3f, %.3f s\n", moving_s(ring, false),
                  moving_s(heads, false), moving_s(gather, false), moving_s(ring, true), moving_s(heads, true),
                  moving_s(gather, true));
    assert_true(moving_s(ring, true) < 0.01 * moving_s(ring, false));
    assert_true(moving_s(heads, true) > 0.99 * moving_s(heads, false));
    assert_close(moving_s(heads, false) / moving_s(ring, false), 0.5, 0.15, 0);
    assert_true(moving_s(gather, true) > moving_s(heads, true));
    assert_true(heads->iteration_time_s < ring->iteration_time_s);
    assert_true(ring->iteration_time_s < gather->iteration_time_s);
    dts_result_free(ring);
    dts_result_free(heads);
    dts_result_free(gather);
}

/* Sums that nothing fuses; compiled, they are fused, and transfers are waited for at once. */
static void a_ring_of_operations_is_slower(void **state) {
    (void)state;
#define OWN                                                                                                    \
    "stack.ring_attention.gathers=true stack.ring_attention.copies=true stack.ring_attention.operations=true " \
    "stack.ring_attention.fp32_gradients=true "
    dts_result *fused = run(FOLDER "ring.yaml", "");
    dts_result *own = run(FOLDER "ring.yaml", OWN);
    dts_result *fused_compiled = run(FOLDER "ring.yaml", "stack.compile=true stack.ring_attention.waits=false");
    dts_result *compiled = run(FOLDER "ring.yaml", OWN "stack.compile=true");
    assert_close(own->iteration_time_s / fused->iteration_time_s, 1.05, 0.01, 0);
    assert_close(compiled->iteration_time_s / fused_compiled->iteration_time_s, 1.03, 0.01, 0);
    assert_true(moving_s(own, true) < 0.1 * moving_s(own, false));
    assert_true(moving_s(compiled, true) > 0.99 * moving_s(compiled, false));
    dts_result_free(fused);
    dts_result_free(own);
    dts_result_free(fused_compiled);
    dts_result_free(compiled);
}

static void short_sequences_favour_the_ring(void **state) {
    (void)state;
    const char *const brief = "training.sequence_length=8192 training.global_batch=64";
    dts_result *ring = run(FOLDER "ring.yaml", brief);
    dts_result *heads = run(FOLDER "all-to-all.yaml", brief);
    dts_result *gather = run(FOLDER "all-gather.yaml", brief);
    assert_true(ring->iteration_time_s < heads->iteration_time_s);
    assert_true(heads->iteration_time_s < gather->iteration_time_s);
    dts_result_free(ring);
    dts_result_free(heads);
    dts_result_free(gather);
}

/* K and V leave the node over the network, at a seventh of NVLink's rate. */
static void a_ring_over_the_network_needs_longer_sequences(void **state) {
    (void)state;
    dts_result *brief = run(FOLDER "ring-16.yaml", "training.sequence_length=32768");
    dts_result *lengthy = run(FOLDER "ring-16.yaml", "training.sequence_length=65536");
    print_message("exposed %.0f %% and %.0f %%\n", 100 * moving_s(brief, true) / moving_s(brief, false),
                  100 * moving_s(lengthy, true) / moving_s(lengthy, false));
    assert_true(moving_s(brief, true) > 0.1 * moving_s(brief, false));
    assert_true(moving_s(lengthy, true) < 0.01 * moving_s(lengthy, false));
    dts_result_free(brief);
    dts_result_free(lengthy);
}

static void heads_limit_all_to_all(void **state) {
    (void)state;
    assert_refused_with(FOLDER "all-to-all.yaml", "", "parallelism.context=16",
                        "does not divide the 8 key and value heads", "");
}

/* Tensor parallelism of 4 and context parallelism of 2 do the same work as 8 ranks of tensor parallelism. */
static void windows_make_long_sequences_cheap(void **state) {
    (void)state;
    static const char file[] = FOLDER "windows.yaml", half[] = "parallelism.tensor=4 parallelism.context=2 ";
    char settings[LONGEST_SETTINGS];
    dts_result *local = run(file, "");
    dts_result *global = run(file, "model.attention_window=0 model.global_every=0");
    assert_close(global->iteration_time_s / local->iteration_time_s, 1.46, 0.03, 0);
    assert_close(local->peak_allocated_gib, global->peak_allocated_gib, 0, 0);
    assert_close(local->time_s.exposed_communication, global->time_s.exposed_communication, 0.01, 0);
    snprintf(settings, sizeof settings, "%sparallelism.context_method=ring", half);
    assert_refused_with(file, "", settings, "rings know no windows", "all-gather");
    static const char *const methods[] = {"all-to-all", "all-gather"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(settings, sizeof settings, "%sparallelism.context_method=%s", half, methods[i]);
        dts_result *shared = run(file, settings);
        assert_close(shared->iteration_time_s, local->iteration_time_s, 0.15, 0); /* fewer exchanges of tensors */
        dts_result_free(shared);
    }
    dts_result_free(local);
    dts_result_free(global);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_sequence_needs_several_gpus),
        cmocka_unit_test(methods_differ_in_what_is_exposed),
        cmocka_unit_test(a_ring_of_operations_is_slower),
        cmocka_unit_test(short_sequences_favour_the_ring),
        cmocka_unit_test(a_ring_over_the_network_needs_longer_sequences),
        cmocka_unit_test(heads_limit_all_to_all),
        cmocka_unit_test(windows_make_long_sequences_cheap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
