/* Bytes per parameter by precision and stack: the anatomy of seed 2 (4 weights + 4 gradients + 8 AdamW in fp32, and the
 * 16 and 18 of mixed precision with master weights). */
#include "check.h"
#include "plan/internal.h"

static const dts_gpu gpu = {.peak_flops = {[DTS_FP32] = 1e13, [DTS_FP16] = 1e14, [DTS_BF16] = 1e14}};

static double total_B(const dts_storage *s) {
    return s->parameter_B + s->gradient_B + s->optimizer_B;
}

static dts_storage storage(dts_precision precision, dts_optimizer optimizer, bool master, bool fp32_gradients) {
    dts_training training = {.precision = (int)precision, .optimizer = (int)optimizer};
    dts_stack stack = {.master_weights = master,
                       .fp32_gradients = fp32_gradients ? DTS_FP32_GRADIENTS_ALWAYS : DTS_FP32_GRADIENTS_NEVER};
    return dts_storage_of(&training, &stack, &gpu, false, DTS_HALF_BY_AUTOCAST);
}

static void autocast_keeps_everything_in_fp32(void **state) {
    (void)state;
    dts_storage s = storage(DTS_PRECISION_AMP_FP16, DTS_OPTIMIZER_ADAMW, false, false);
    assert_true(s.autocast);
    assert_close(total_B(&s), 16, 0, 0); /* the cast copy makes 18 while a layer runs */
    s = storage(DTS_PRECISION_FP32, DTS_OPTIMIZER_ADAMW, true, true);
    assert_close(total_B(&s), 16, 0, 0);
    assert_close(s.gradient_B, 4, 0, 0);
}

static void optimizers_keep_their_moments(void **state) {
    (void)state;
    assert_close(storage(DTS_PRECISION_FP32, DTS_OPTIMIZER_ADAMW, false, false).optimizer_B, 8, 0, 0);
    assert_close(storage(DTS_PRECISION_FP32, DTS_OPTIMIZER_SGD_MOMENTUM, false, false).optimizer_B, 4, 0, 0);
    assert_close(storage(DTS_PRECISION_FP32, DTS_OPTIMIZER_ADAMW_8BIT, false, false).optimizer_B, 2, 0, 0);
    assert_close(storage(DTS_PRECISION_FP32, DTS_OPTIMIZER_ADAFACTOR, false, false).optimizer_B, 0, 0, 0);
}

static void master_weights_are_no_autocast(void **state) {
    (void)state;
    static const dts_precision half[] = {DTS_PRECISION_FP16, DTS_PRECISION_BF16, DTS_PRECISION_AMP_FP16,
                                         DTS_PRECISION_AMP_BF16};
    for (size_t i = 0; i < sizeof half / sizeof *half; i++) {
        dts_storage s = storage(half[i], DTS_OPTIMIZER_ADAMW, true, false);
        assert_false(s.autocast);
        assert_close(s.parameter_B, 2, 0, 0);
        assert_close(s.gradient_B, 2, 0, 0);
        assert_close(s.optimizer_B, 12, 0, 0);
        assert_close(s.reduce_B, 2, 0, 0);
        s = storage(half[i], DTS_OPTIMIZER_ADAMW, true, true);
        assert_close(total_B(&s), 18, 0, 0);
        assert_close(s.reduce_B, 4, 0, 0);
    }
    dts_storage s = storage(DTS_PRECISION_BF16, DTS_OPTIMIZER_SGD, true, false);
    assert_close(s.optimizer_B, 4, 0, 0); /* the master copy alone */
}

static void some_stacks_accumulate_only_bf16_in_fp32(void **state) {
    (void)state;
    dts_stack stack = {.master_weights = true,
                       .fp32_gradients = DTS_FP32_GRADIENTS_BF16,
                       .accumulate_kernel = DTS_ACCUMULATE_KERNEL_HALF};
    dts_training training = {.precision = DTS_PRECISION_AMP_BF16};
    dts_plan plan = {.job = {.stack = &stack},
                     .storage = dts_storage_of(&training, &stack, &gpu, false, DTS_HALF_BY_AUTOCAST)};
    assert_close(plan.storage.gradient_B, 4, 0, 0);
    assert_close(plan.storage.reduce_B, 4, 0, 0);
    assert_close(plan.storage.fresh_gradient_B, 2, 0, 0);
    assert_false(dts_plan_accumulates_by_kernel(&plan)); /* fused with the product */
    training.precision = DTS_PRECISION_AMP_FP16;
    plan.storage = dts_storage_of(&training, &stack, &gpu, false, DTS_HALF_BY_AUTOCAST);
    assert_close(plan.storage.gradient_B, 2, 0, 0);
    assert_true(dts_plan_accumulates_by_kernel(&plan));
}

static void pure_half_precision_has_no_master_copy(void **state) {
    (void)state;
    dts_storage s = storage(DTS_PRECISION_BF16, DTS_OPTIMIZER_ADAMW, false, false);
    assert_close(total_B(&s), 8, 0, 0);
}

/* FSDP may widen gradients of half parameters for their reduction, and narrow what arrives. */
static void fsdp_may_reduce_half_gradients_in_fp32(void **state) {
    (void)state;
    dts_stack stack = {.fsdp_reduce_half_fp32 = true};
    dts_training training = {.precision = DTS_PRECISION_BF16, .optimizer = DTS_OPTIMIZER_ADAMW};
    dts_storage s = dts_storage_of(&training, &stack, &gpu, true, DTS_HALF_BY_FSDP);
    assert_close(s.reduce_B, 4, 0, 0);
    assert_close(total_B(&s), 8, 0, 0);
    assert_close(dts_storage_of(&training, &stack, &gpu, false, DTS_HALF_BY_AUTOCAST).reduce_B, 2, 0, 0);
    stack.master_weights = true;
    assert_close(dts_storage_of(&training, &stack, &gpu, true, DTS_HALF_BY_FSDP).reduce_B, 2, 0, 0);
}

/* FSDP's own half precision is of sharded parameters: what is replicated has autocast. */
static void mixed_precision_needs_shards(void **state) {
    (void)state;
    const dts_stack stack = {.fsdp_mixed_precision = true};
    const dts_training training = {.precision = DTS_PRECISION_AMP_BF16, .optimizer = DTS_OPTIMIZER_ADAMW};
    const dts_storage sharded = dts_storage_of(&training, &stack, &gpu, true, DTS_HALF_BY_FSDP);
    assert_true(!sharded.autocast);
    assert_close(sharded.reduce_B, 2, 0, 0);
    const dts_storage whole = dts_storage_of(&training, &stack, &gpu, false, DTS_HALF_BY_AUTOCAST);
    assert_true(whole.autocast);
    assert_close(whole.reduce_B, 4, 0, 0);
}

/* A stack may leave autocast out: then all is fp32, but products of 8 bits and weights that are stored in half. */
static void without_autocast_is_fp32(void **state) {
    (void)state;
    const dts_stack stack = {.autocast = DTS_AUTOCAST_NEVER};
    dts_training training = {.precision = DTS_PRECISION_AMP_BF16, .optimizer = DTS_OPTIMIZER_ADAMW};
    dts_storage s = dts_storage_of(&training, &stack, &gpu, false, DTS_HALF_BY_NOBODY);
    assert_true(!s.autocast && s.compute == DTS_FP32 && s.product == DTS_FP32 && s.activation == DTS_FP32);
    assert_close(total_B(&s), 16, 0, 0);
    training.precision = DTS_PRECISION_FP8;
    s = dts_storage_of(&training, &stack, &gpu, false, DTS_HALF_BY_NOBODY);
    assert_true(!s.autocast && s.compute == DTS_FP32 && s.product == DTS_FP8 && s.activation == DTS_FP32);
    training.precision = DTS_PRECISION_BF16;
    s = dts_storage_of(&training, &stack, &gpu, false, DTS_HALF_BY_NOBODY);
    assert_true(s.compute == DTS_BF16 && s.activation == DTS_BF16);
    assert_close(total_B(&s), 8, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(autocast_keeps_everything_in_fp32),
        cmocka_unit_test(optimizers_keep_their_moments),
        cmocka_unit_test(master_weights_are_no_autocast),
        cmocka_unit_test(without_autocast_is_fp32),
        cmocka_unit_test(some_stacks_accumulate_only_bf16_in_fp32),
        cmocka_unit_test(fsdp_may_reduce_half_gradients_in_fp32),
        cmocka_unit_test(pure_half_precision_has_no_master_copy),
        cmocka_unit_test(mixed_precision_needs_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
