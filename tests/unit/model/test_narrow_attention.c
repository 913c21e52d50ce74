/* Fused attention in 8 bits: what is cast around it, and what is kept (quantise.c). */
#include "shapes.h"

enum { LENGTH = 4096, WIDTH = 128, QUERIES = 64, GROUPS = 8 };
static const double head = LENGTH * (double)WIDTH; /* elements of one head of one sample */

static dts_execution in_8_bits(bool amax_kernel) {
    dts_execution x = plain_fp16(1, LENGTH);
    x.flash_attention = true;
    x.quantisation = (dts_quantisation){
        .format = DTS_FP8, .copies = 2, .transpose_factor = 1, .amax_kernel = amax_kernel, .attention = true};
    return x;
}

/* Current scaling looks for the largest values first, in three kernels a tensor; delayed scaling does not. */
static void operands_are_cast(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_model model = llama_3_70b();
    for (int amax = 0; amax <= 1; amax++) {
        const dts_execution x = in_8_bits(amax == 1);
        const dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
        const dts_operator *before = find(layer, "quantise_attention"), *behind = find(layer, "dequantise_attention");
        const double operands = (QUERIES + 2 * GROUPS) * head, output = QUERIES * head;
        assert_int_equal(before->forward_kernels, amax == 1 ? 12 : 3);
        assert_close(before->forward_B, operands * (amax == 1 ? 5 : 3), 0, 0);
        assert_int_equal(before->backward_kernels, 3);
        assert_close(before->backward_B, operands * 3, 0, 0);
        assert_int_equal(behind->forward_kernels, 1);
        assert_close(behind->forward_B, output * 3, 0, 0);
        assert_int_equal(behind->backward_kernels, amax == 1 ? 4 : 1);
        assert_close(behind->backward_B, output * (amax == 1 ? 5 : 3), 0, 0);
        assert_true(before->recomputed_selectively && behind->recomputed_selectively);
        assert_true(find(layer, "flash_attention")->narrow);
    }
    dts_arena_free(arena);
}

static double saved_of(const dts_model *model, dts_part part, const dts_execution *x, dts_arena *arena) {
    const dts_operators layer = operators_of(model, part, x, arena);
    double sum = 0;
    for (size_t i = 0; i < layer.count; i++) {
        sum += layer.items[i].saved_B;
    }
    return sum;
}

/* Queries, keys, values and output are kept in half as many bytes, nothing else changes. */
static void narrow_tensors_are_kept(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_model model = llama_3_70b();
    dts_execution x = in_8_bits(false);
    const double narrow_B = saved_of(&model, DTS_PART_LAYER, &x, arena);
    x.quantisation.attention = false;
    const double wide_B = saved_of(&model, DTS_PART_LAYER, &x, arena);
    assert_close(wide_B - narrow_B, (2 * QUERIES + 2 * GROUPS) * head, 1e-12, 0);
    dts_arena_free(arena);
}

static void others_stay_wide(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_model model = llama_3_70b();
    model.attention_window = 1024;
    dts_execution x = in_8_bits(false);
    dts_operators layer = operators_of(&model, DTS_PART_LOCAL_LAYER, &x, arena);
    assert_null(find(layer, "quantise_attention"));
    assert_false(find(layer, "flash_attention")->narrow);
    x.quantisation.format = DTS_BF16;
    layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    assert_null(find(layer, "quantise_attention"));
    x = in_8_bits(false);
    x.flash_attention = false;
    layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    assert_null(find(layer, "quantise_attention"));
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_cast),
        cmocka_unit_test(narrow_tensors_are_kept),
        cmocka_unit_test(others_stay_wide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
