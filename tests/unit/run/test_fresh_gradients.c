/* Where the memory of a replica peaks with and without checkpointing, when what backward makes stays beside DDP's
 * buckets and the loop holds the model's outputs. P is the size of the parameters: model, buckets and fresh gradients.
 */
#include "simulate.h"

static const char *const base =
    "model: mingpt-xl\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 1, gpus_per_node: 8}\n"
    "stack: pytorch-1.11\n"
    "training: {global_batch: 128, micro_batch: 16, sequence_length: 256, precision: fp16, optimizer: sgd,\n"
    "           recompute: full}\n"
    "parallelism: {data_parallel: ddp}\n";

static double peak_with(const char *settings) {
    dts_result *r = simulate_text(base, settings);
    double peak = r->peak_allocated_gib;
    dts_result_free(r);
    return peak;
}

static void three_copies_at_the_end_of_backward(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "");
    const double gib = 1024.0 * 1024 * 1024;
    double copy = 2 * r->parameters / gib;
    double outputs = 16.0 * 256 * 50000 * 2 / gib;
    /* and what the last layer's backward needs: below a tenth */
    assert_true(r->peak_allocated_gib > 3 * copy + outputs - 0.5 * copy);
    assert_close(r->peak_allocated_gib, 3 * copy + outputs, 0.1, 0);
    double views = peak_with("stack.ddp.keeps_fresh_gradients=false");
    assert_true(views < 2.6 * copy);
    dts_result_free(r);
}

static void without_checkpoints_the_peak_is_at_the_start(void **state) {
    (void)state;
    double kept = peak_with("training.recompute=none");
    double views = peak_with("training.recompute=none stack.ddp.keeps_fresh_gradients=false");
    assert_close(kept, views, 0.01, 0);
}

/* The outputs of 16 samples more are there at the peak. */
static void outputs_are_held_by_the_loop(void **state) {
    (void)state;
    double held = peak_with("");
    double more = peak_with("training.micro_batch=32 training.global_batch=256");
    assert_true(more - held > 16.0 * 256 * 50000 * 2 / (1 << 30) * 0.99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_copies_at_the_end_of_backward),
        cmocka_unit_test(without_checkpoints_the_peak_is_at_the_start),
        cmocka_unit_test(outputs_are_held_by_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
