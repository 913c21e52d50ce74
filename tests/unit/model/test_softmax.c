/* Shapes that Megatron-LM's fused softmax takes (NVIDIA/Megatron-LM megatron/model/fused_softmax.py,
 * is_kernel_available), and what its fallback launches, moves and keeps. */
#include "shapes.h"

typedef struct softmax {
    int forward_kernels, backward_kernels;
    double forward_B, backward_B, saved_B;
} softmax;

static softmax softmax_of(const dts_model *model, const dts_execution *x) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_operators layer = operators_of(model, DTS_PART_LAYER, x, arena);
    const dts_operator *op = find(layer, "attention_softmax");
    assert_non_null(op);
    softmax s = {op->forward_kernels, op->backward_kernels, op->forward_B, op->backward_B, op->saved_B};
    assert_int_equal(find(layer, "qkv_layout")->forward_kernels,
                     0); /* either way the products read Q, K and V in place */
    dts_arena_free(arena);
    return s;
}

/* GPT with 16 heads of 64, as the code of 2021 runs it: fused softmax for up to 2048 keys. */
static dts_model gpt_16_heads(void) {
    dts_model model = gpt_175b();
    model.hidden = 1024;
    model.heads = 16;
    model.max_positions = 4096;
    return model;
}

static dts_execution megatron(int64_t micro_batch, int64_t sequence, int64_t tensor) {
    dts_execution x = plain_fp16(micro_batch, sequence);
    x.fuse_softmax = true;
    x.softmax_keys = 2048;
    x.tensor = tensor;
    return x;
}

static bool fused(const dts_model *model, dts_execution x) {
    return softmax_of(model, &x).forward_kernels == 1;
}

static void test_shapes(void **state) {
    (void)state;
    const dts_model gpt = gpt_16_heads();
    assert_true(fused(&gpt, megatron(1, 1024, 4)));  /* 4 heads */
    assert_true(fused(&gpt, megatron(2, 1024, 8)));  /* 2 of 2 samples */
    assert_false(fused(&gpt, megatron(1, 1024, 8))); /* 2 heads */
    assert_false(fused(&gpt, megatron(3, 1024, 8)));
    assert_true(fused(&gpt, megatron(1, 2048, 1)));
    assert_false(fused(&gpt, megatron(1, 2052, 1))); /* too many keys */
    assert_false(fused(&gpt, megatron(1, 1022, 1))); /* queries not in fours */
    assert_true(fused(&gpt, megatron(1, 128, 2)));   /* up to 128 keys a thread block takes 8 rows */
    assert_false(fused(&gpt, megatron(1, 128, 4)));
    assert_true(fused(&gpt, megatron(1, 132, 4)));
    dts_execution x = megatron(1, 1024, 8);
    x.softmax_keys = 0; /* a compiler's kernel takes all */
    assert_true(fused(&gpt, x));
    x = megatron(1, 1024, 1);
    x.activation = x.weight = DTS_FP32;
    assert_false(fused(&gpt, x));
}

/* Without a causal mask a thread block takes rows of one sample: queries are what it divides. */
static void test_not_causal(void **state) {
    (void)state;
    const dts_model bert = bert_base();             /* 12 heads */
    assert_true(fused(&bert, megatron(1, 128, 3))); /* 4 heads, 128 rows of 8 */
    assert_false(fused(&bert, megatron(1, 124, 3)));
    assert_false(fused(&bert, megatron(1, 128, 2))); /* 6 heads */
}

/* n scores: cast (2 + 4 bytes), scale, fill and softmax (8 each), cast (4 + 2). Backward: cast, gradient of softmax 12,
 * clone and fill 16, scale 8, cast. Kept: the fp32 softmax; dropout keeps what it makes of the cast one. */
static void test_in_turn(void **state) {
    (void)state;
    const dts_model gpt = gpt_16_heads();
    const dts_execution x = megatron(1, 1024, 8), half = megatron(2, 1024, 8);
    const double n = 2 * 1024.0 * 1024;
    softmax s = softmax_of(&gpt, &x);
    assert_int_equal(s.forward_kernels, 5);
    assert_int_equal(s.backward_kernels, 6);
    assert_close(s.forward_B, n * (6 + 3 * 8 + 6), 0, 0);
    assert_close(s.backward_B, n * (6 + 12 + 16 + 8 + 6), 0, 0);
    assert_close(s.saved_B, n * 4, 0, 0);
    softmax one = softmax_of(&gpt, &half); /* twice the scores in one kernel each way */
    assert_close(one.forward_B, 2 * n * 4, 0, 0);
    assert_close(one.backward_B, 2 * n * 6, 0, 0);
    assert_close(one.saved_B, 2 * n * 2, 0, 0);
    dts_execution dry = x;
    dry.dropout = false;
    assert_close(softmax_of(&gpt, &dry).saved_B, n * (4 + 2), 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_not_causal),
        cmocka_unit_test(test_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
