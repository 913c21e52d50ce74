/* What autograd keeps of a layer with frozen weights and adapters, tensor by tensor: of a frozen product nothing but
 * its weight, of a frozen norm what the gradient of its input needs. The same layer in PyTorch 2, saved tensors counted
 * by torch.autograd.graph.saved_tensors_hooks, keeps these; without adapters it keeps the inputs of all products and
 * the normalised tensors as well. */
#include "shapes.h"

enum { RANK = 16, BATCH = 2, SEQUENCE = 512, ROWS = BATCH * SEQUENCE };

static const double E = 2, H = 8192, KV = 1024, FFN = 28672, HEADS = 64, FP32_B = 4;

static dts_execution adapted(void) {
    dts_execution x = plain_fp16(BATCH, SEQUENCE);
    x.separate_qkv = true;
    x.flash_attention = true;
    x.adaptation =
        (dts_adaptation){.rank = RANK, .targets = DTS_TARGETS_ALL_LINEAR, .base_B = 2, .other_B = 2, .trained_B = 2};
    return x;
}

/* Of all operators of a name, B a row. */
static double kept(dts_operators operators, const char *name) {
    double sum = 0;
    for (size_t i = 0; i < operators.count; i++) {
        sum += strcmp(operators.items[i].name, name) == 0 ? operators.items[i].saved_B : 0;
    }
    return sum / ROWS;
}

static void only_what_adapters_and_input_gradients_need(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    dts_execution frozen = adapted(), fused = adapted(), trained = adapted();
    fused.fuse_norm = fused.fuse_bias_gelu = true;
    trained.adaptation.rank = 0;
    const struct {
        const char *name;
        double trained, frozen, fused;
    } all[] = {
        /* x in fp32 and 1/σ; the normalised tensor for the scale alone. Fused: x and 1/σ */
        {"attention_norm", H * (FP32_B + E) + FP32_B, H * FP32_B + FP32_B, H * E + FP32_B},
        {"mlp_norm", H * (FP32_B + E) + FP32_B, H * FP32_B + FP32_B, H * E + FP32_B},
        {"query", 2 * H * E, H * E, H * E}, /* the input of all three, and outputs, which attention reads again */
        {"key", KV * E, KV * E, KV * E},
        {"value", KV * E, KV * E, KV * E},
        {"flash_attention", HEADS * FP32_B, HEADS * FP32_B, HEADS * FP32_B},
        {"attention_output", H * E, 0, 0},
        {"mlp_gate", H * E, 0, 0},
        {"mlp_up", 0, 0, 0},
        {"mlp_silu", FFN * E, FFN * E, 0},
        {"mlp_product", 2 * FFN * E, 2 * FFN * E, 0},
        {"mlp_swiglu", 0, 0, 2 * FFN * E},
        {"mlp_down", FFN * E, 0, 0},
        {"lora_a", 0, (3 * H + FFN) * E, (3 * H + FFN) * E}, /* outputs of norms and attention, input of mlp_down */
        {"lora_b", 0, 7 * RANK * E, 7 * RANK * E},
        {"lora_add", 0, 0, 0},
    };
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_operators of[] = {operators_of(&model, DTS_PART_LAYER, &trained, arena),
                                operators_of(&model, DTS_PART_LAYER, &frozen, arena),
                                operators_of(&model, DTS_PART_LAYER, &fused, arena)};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const double expected[] = {all[i].trained, all[i].frozen, all[i].fused};
        for (int k = 0; k < 3; k++) {
            print_message("%-16s %10.0f %10.0f\n", all[i].name, kept(of[k], all[i].name), expected[k]);
            assert_close(kept(of[k], all[i].name), expected[k], 1e-12, 0);
        }
    }
    dts_arena_free(arena);
}

/* Dropout keeps its mask and what it hands the adapter, which then is no longer the product's own input; behind the
 * adapter masks of all outputs. */
static void dropout_keeps_masks(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    dts_execution before = adapted(), behind = adapted();
    before.adaptation.dropout = true;
    behind.adaptation.output_dropout = true;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_operators of = operators_of(&model, DTS_PART_LAYER, &before, arena);
    const double inputs = 6 * H + FFN; /* of seven products: six read h */
    assert_close(kept(of, "lora_dropout"), inputs, 1e-12, 0);
    assert_close(kept(of, "lora_a"), inputs * E, 1e-12, 0);
    assert_close(kept(of, "attention_output"), H * E, 1e-12, 0); /* attention's own output, for its backward */
    of = operators_of(&model, DTS_PART_LAYER, &behind, arena);
    assert_close(kept(of, "lora_add"), 3 * H + 2 * KV + 2 * FFN, 1e-12, 0);
    assert_close(kept(of, "lora_a"), (3 * H + FFN) * E, 1e-12, 0);
    dts_arena_free(arena);
}

/* Norms of heads are frozen, too. */
static void norms_of_heads(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    model.qk_norm = true;
    dts_execution frozen = adapted(), trained = adapted();
    trained.adaptation.rank = 0;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_operators a = operators_of(&model, DTS_PART_LAYER, &trained, arena);
    const dts_operators b = operators_of(&model, DTS_PART_LAYER, &frozen, arena);
    assert_close(kept(a, "query_norm"), H * (FP32_B + E), 1e-12, 0);
    assert_close(kept(b, "query_norm"), H * FP32_B, 1e-12, 0);
    assert_close(kept(b, "key_norm"), KV * FP32_B, 1e-12, 0);
    assert_true(find(b, "query_norm")->backward_kernels == find(a, "query_norm")->backward_kernels - 2);
    dts_arena_free(arena);
}

/* Weights in fp32 are cast for each product, and the casts wait for backward; all parameters take 4 bytes. */
static void weights_in_fp32_are_cast(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    dts_execution half = adapted(), wide = adapted();
    wide.adaptation.casts = true;
    wide.adaptation.other_B = FP32_B;
    wide.adaptation.base_B = FP32_B;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_part parts[] = {DTS_PART_EMBEDDING, DTS_PART_LAYER, DTS_PART_HEAD};
    const double V = (double)model.vocab, products[] = {0, 2 * H * H + 2 * H * KV + 3 * H * FFN, V * H};
    for (int i = 0; i < 3; i++) {
        const dts_operators a = operators_of(&model, parts[i], &half, arena);
        const dts_operators b = operators_of(&model, parts[i], &wide, arena);
        double half_B = 0, wide_B = 0;
        for (size_t k = 0; k < a.count; k++) {
            half_B += a.items[k].frozen_B;
        }
        for (size_t k = 0; k < b.count; k++) {
            wide_B += b.items[k].frozen_B;
        }
        assert_close(wide_B, 2 * half_B, 1e-12, 0);
        assert_close(kept(b, "cast_weight") * ROWS, products[i] * E, 1e-12, 0);
        assert_true(find(a, "cast_weight") == NULL);
    }
    dts_arena_free(arena);
}

/* The output of a joined product with rotated copies beside it: queries and keys twice. */
static void values_hold_the_joined_output(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    dts_execution apart = adapted(), joined = adapted();
    apart.separate_qkv = joined.separate_qkv = false;
    joined.keeps_joined_qkv = true;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const double apart_B = kept(operators_of(&model, DTS_PART_LAYER, &apart, arena), "qkv");
    assert_close(apart_B, (H + 2 * KV) * E, 1e-12, 0);
    const double joined_B = kept(operators_of(&model, DTS_PART_LAYER, &joined, arena), "qkv");
    assert_close(joined_B, (2 * H + 3 * KV) * E, 1e-12, 0);
    model.rotary = false; /* nothing is copied */
    assert_close(kept(operators_of(&model, DTS_PART_LAYER, &joined, arena), "qkv"), apart_B, 1e-12, 0);
    dts_arena_free(arena);
}

/* One adapter for a product that stands for several projections, as wide as all of them, whatever of it is targeted. */
static void joined_adapters_are_as_wide_as_the_product(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    const struct {
        int targets;
        double apart, joined; /* adapters of a layer */
    } all[] = {{DTS_TARGETS_QUERY_VALUE, 2, 1}, {DTS_TARGETS_ATTENTION, 4, 2}, {DTS_TARGETS_ALL_LINEAR, 7, 4}};
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dts_execution apart = adapted(), joined = adapted();
        apart.separate_qkv = joined.separate_qkv = false;
        apart.adaptation.targets = joined.adaptation.targets = all[i].targets;
        joined.adaptation.joined = true;
        const double apart_B = kept(operators_of(&model, DTS_PART_LAYER, &apart, arena), "lora_b");
        const double joined_B = kept(operators_of(&model, DTS_PART_LAYER, &joined, arena), "lora_b");
        assert_close(apart_B, all[i].apart * RANK * E, 1e-12, 0);
        assert_close(joined_B, all[i].joined * RANK * E, 1e-12, 0);
    }
    dts_execution joined = adapted();
    joined.separate_qkv = false;
    joined.adaptation.targets = DTS_TARGETS_ATTENTION;
    joined.adaptation.joined = true;
    const dts_operators of = operators_of(&model, DTS_PART_LAYER, &joined, arena);
    double parameters = 0;
    for (size_t i = 0; i < of.count; i++) {
        parameters += strncmp(of.items[i].name, "lora", 4) == 0 ? (double)of.items[i].parameters[0] : 0;
    }
    assert_close(parameters, RANK * (H + (H + 2 * KV) + H + H), 1e-12, 0);
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_adapters_and_input_gradients_need),
        cmocka_unit_test(dropout_keeps_masks),
        cmocka_unit_test(norms_of_heads),
        cmocka_unit_test(weights_in_fp32_are_cast),
        cmocka_unit_test(values_hold_the_joined_output),
        cmocka_unit_test(joined_adapters_are_as_wide_as_the_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
