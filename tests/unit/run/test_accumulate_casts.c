/* DeepSpeed's BF16_Optimizer casts each half gradient to fp32 before it adds it to the stored one: the copy of the
 * largest tensor, the embedding's of V words of h elements, lives beside half and fp32 gradients of all. */
#include "simulate.h"

static const char *const base =
    "model: {profile: gpt, layers: 2, hidden: 2048, heads: 16, vocab: 250880}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 1}\n"
    "stack: megatron-deepspeed\n"
    "training: {global_batch: 4, micro_batch: 1, sequence_length: 128, precision: bf16, optimizer: adamw}\n";

static double peak_with(const char *settings) {
    dts_result *r = simulate_text(base, settings);
    double peak = r->peak_allocated_gib;
    dts_result_free(r);
    return peak;
}

/* a few tokens: 0.001 GiB of them are still there when the embedding's gradient is made */
static void the_largest_copy_is_part_of_the_peak(void **state) {
    (void)state;
    const double copy_gib = 4.0 * 250880 * 2048 / (1024.0 * 1024 * 1024);
    static const char *const details[] = {"kernel", "block"};
    for (size_t i = 0; i < sizeof details / sizeof details[0]; i++) {
        char with[80], without[80];
        snprintf(with, sizeof with, "fidelity.detail=%s", details[i]);
        snprintf(without, sizeof without, "fidelity.detail=%s stack.accumulate_casts=false", details[i]);
        assert_close(peak_with(with) - peak_with(without), copy_gib, 0, 0.001);
    }
}

/* fp16 gradients stay in half: nothing to cast */
static void gradients_of_one_type_are_not_copied(void **state) {
    (void)state;
    assert_close(peak_with("training.precision=amp-fp16"),
                 peak_with("training.precision=amp-fp16 stack.accumulate_casts=false"), 0, 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_copy_is_part_of_the_peak),
        cmocka_unit_test(gradients_of_one_type_are_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
