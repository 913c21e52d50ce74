/* Casts around linear products in 8 and 4 bits: which products, how many bytes, what is kept and gathered. */
#include "shapes.h"

static dts_execution fp8(int64_t tensor, int copies) {
    dts_execution x = plain_fp16(1, 2048);
    x.dropout = false;
    x.flash_attention = true;
    x.activation = DTS_BF16;
    x.weight = DTS_BF16;
    x.tensor = tensor;
    x.sequence_parallel = tensor > 1;
    x.quantisation = (dts_quantisation){.format = DTS_FP8, .copies = copies, .weights = DTS_WEIGHTS_CAST};
    return x;
}

/* The four (here: seven with separate factors) linear products of a layer, and none of the head's. */
static void only_linear_products_of_layers_are_narrow(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    dts_execution x = fp8(1, 2);
    x.separate_qkv = true;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    int narrow = 0;
    for (size_t i = 0; i < layer.count; i++) {
        assert_true(layer.items[i].quantised == (layer.items[i].kind == DTS_OPERATOR_GEMM && layer.items[i].weight));
        narrow += layer.items[i].quantised;
    }
    assert_int_equal(narrow, 7);
    dts_operators head = operators_of(&model, DTS_PART_HEAD, &x, arena);
    assert_false(find(head, "logits")->quantised);
    assert_null(find(head, "quantise_input"));
    dts_arena_free(arena);
}

/* One kernel reads 2 bytes an element and writes 1 for each copy; the scale's pass reads 2 more. */
static void casts_move_their_bytes(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const double h = 12288, tokens = 2048;
    for (int copies = 1; copies <= 2; copies++) {
        dts_execution x = fp8(1, copies);
        dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
        assert_close(find(layer, "quantise_input")->forward_B, tokens * h * (2 + copies), 0, 0);
        assert_close(find(layer, "quantise_weight")->forward_B, 3 * h * h * 3, 0, 0);
        assert_close(find(layer, "quantise_gradient")->backward_B, tokens * 3 * h * (2 + copies), 0, 0);
        x.quantisation.amax_kernel = true;
        x.quantisation.weights = DTS_WEIGHTS_ONCE;
        layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
        assert_int_equal(find(layer, "quantise_input")->forward_kernels, 4);
        assert_close(find(layer, "quantise_input")->forward_B, tokens * h * (4 + copies), 0, 0);
        assert_close(find(layer, "quantise_weight")->forward_B, 3 * h * h * (4 + copies), 0, 0);
        assert_true(find(layer, "quantise_weight")->once);
    }
    dts_arena_free(arena);
}

/* Inputs of the four products, in sbh: 2 + 2 + 2 + 8 become 1 + 1 + 1 + 4, and 2 stay: flash attention keeps its output
 * as it was. */
static void inputs_of_products_are_kept_narrow(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_execution narrow = fp8(1, 1), wide = narrow;
    wide.quantisation.format = DTS_BF16;
    const double sbh = 2048.0 * 12288;
    double saved = saved_B(operators_of(&model, DTS_PART_LAYER, &wide, arena), false) -
                   saved_B(operators_of(&model, DTS_PART_LAYER, &narrow, arena), false);
    assert_close(saved, (1 - 1 + 1 + 4) * sbh, 1e-12, 0);
    dts_arena_free(arena);
}

/* Sequence parallelism gathers what is cast: one byte an element instead of two; sums stay wide. */
static void gathers_are_narrow(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    double gathered_B[2] = {0}, scattered_B[2] = {0};
    for (int i = 0; i < 2; i++) {
        dts_execution x = fp8(8, 2);
        x.quantisation.format = i == 0 ? DTS_BF16 : DTS_FP8;
        dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
        for (size_t j = 0; j < layer.count; j++) {
            const dts_operator *o = &layer.items[j];
            gathered_B[i] += o->gathers_again_B;
            gathered_B[i] += o->forward_exchange == DTS_EXCHANGE_ALL_GATHER ? o->exchange_B : 0;
            gathered_B[i] += o->backward_exchange == DTS_EXCHANGE_ALL_GATHER ? o->exchange_B : 0;
            scattered_B[i] += o->forward_exchange == DTS_EXCHANGE_REDUCE_SCATTER ? o->exchange_B : 0;
            scattered_B[i] += o->backward_exchange == DTS_EXCHANGE_REDUCE_SCATTER ? o->exchange_B : 0;
        }
    }
    const double tensor_B = 2 * 2048.0 * 12288;
    assert_close(gathered_B[0], 6 * tensor_B, 1e-12, 0);
    assert_close(gathered_B[1], 3 * tensor_B, 1e-12, 0);
    assert_close(scattered_B[0], 4 * tensor_B, 1e-12, 0);
    assert_close(scattered_B[1], 4 * tensor_B, 1e-12, 0);
    dts_arena_free(arena);
}

/* A grouped product casts the weights of all its experts; the router stays wide. */
static void experts_are_cast_as_well(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    model.experts = 8;
    model.experts_per_token = 2;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_execution x = fp8(1, 1);
    x.expert = 2;
    x.grouped_products = true;
    dts_operators layer = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
    assert_false(find(layer, "router")->quantised);
    int grouped = 0;
    for (size_t i = 2; i + 1 < layer.count; i++) {
        const dts_operator *o = &layer.items[i];
        if (o->kind != DTS_OPERATOR_GEMM || !o->experts) {
            continue;
        }
        const dts_operator *input = &layer.items[i - 1], *weight = &layer.items[i - 2], *gradient = o + 1;
        assert_true(o->quantised && o->batch == 4);
        assert_string_equal(weight->name, "quantise_weight");
        assert_close(weight->forward_B, o->parameters[0] * (2 + 1), 0, 0);
        assert_close(input->forward_B, 4.0 * (double)o->m * (double)o->k * 3, 0, 0);
        assert_close(gradient->backward_B, 4.0 * (double)o->m * (double)o->n * 3, 0, 0);
        grouped++;
    }
    assert_int_equal(grouped, 2);
    /* as library calls of each of the four experts, each has its own cast, and three kernels for its scale */
    x.grouped_products = false;
    for (int amax = 0; amax <= 1; amax++) {
        x.quantisation.amax_kernel = amax == 1;
        layer = operators_of(&model, DTS_PART_EXPERT_LAYER, &x, arena);
        for (size_t i = 2; i + 1 < layer.count; i++) {
            if (layer.items[i].kind == DTS_OPERATOR_GEMM && layer.items[i].experts) {
                assert_int_equal(layer.items[i - 1].forward_kernels, 4 * (1 + 3 * amax));
                assert_int_equal(layer.items[i + 1].backward_kernels, 4 * (1 + 3 * amax));
            }
        }
    }
    dts_arena_free(arena);
}

/* GPT-3 175B, its first product: x (2048, 12288), W (36864, 12288). Rows: 2 read and 1 written for every product's
 * operand by itself, columns read twice and written slowly; the gradient's rows and columns; scales multiplied into dW
 * afterwards. */
static void rows_are_cast_for_each_product(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const double h = 12288, tokens = 2048, slow = 1.5, column = 2 + 3 * slow;
    dts_execution x = fp8(1, 2);
    x.quantisation.rows = true;
    x.quantisation.transpose_factor = slow;
    dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    assert_close(find(layer, "quantise_input")->forward_B, tokens * h * 3, 0, 0);
    assert_close(find(layer, "quantise_input")->backward_B, tokens * h * column, 1e-12, 0);
    assert_int_equal(find(layer, "quantise_input")->backward_kernels, 3);
    assert_close(find(layer, "quantise_weight")->forward_B, 3 * h * h * 3, 0, 0);
    assert_close(find(layer, "quantise_weight")->backward_B, 3 * h * h * column, 1e-12, 0);
    assert_close(find(layer, "quantise_gradient")->backward_B, tokens * 3 * h * (3 + column), 1e-12, 0);
    assert_close(find(layer, "qkv")->backward_B, 3 * h * h * 4, 0, 0);
    assert_int_equal(find(layer, "qkv")->backward_kernels, 3);
    x.quantisation.wide_weight_gradient = true;
    layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    assert_int_equal(find(layer, "quantise_input")->backward_kernels, 0);
    assert_close(find(layer, "quantise_gradient")->backward_B, tokens * 3 * h * 3, 0, 0);
    assert_int_equal(find(layer, "qkv")->backward_kernels, 2);
    dts_arena_free(arena);
}

/* Inputs stay as they were, and what sequence parallelism gathers is wide: as many bytes as in bf16. */
static void rows_are_cast_behind_gathers(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    double gathered_B[2] = {0}, kept_B[2];
    for (int i = 0; i < 2; i++) {
        dts_execution x = fp8(8, 2);
        x.quantisation.format = i == 0 ? DTS_BF16 : DTS_FP8;
        x.quantisation.rows = true;
        dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
        kept_B[i] = saved_B(layer, false);
        for (size_t j = 0; j < layer.count; j++) {
            const dts_operator *o = &layer.items[j];
            gathered_B[i] += o->gathers_again_B;
            gathered_B[i] += o->forward_exchange == DTS_EXCHANGE_ALL_GATHER ? o->exchange_B : 0;
            gathered_B[i] += o->backward_exchange == DTS_EXCHANGE_ALL_GATHER ? o->exchange_B : 0;
        }
    }
    assert_close(gathered_B[1], gathered_B[0], 1e-12, 0);
    assert_close(kept_B[1], kept_B[0], 1e-12, 0);
    dts_arena_free(arena);
}

static int count_shared(dts_operators layer, bool backward, double bytes) {
    int count = 0;
    for (size_t i = 0; i < layer.count; i++) {
        const dts_operator *o = &layer.items[i];
        const dts_exchange exchange = (dts_exchange)(backward ? o->backward_exchange : o->forward_exchange);
        if (strcmp(o->name, "shared_scale") == 0 && exchange == DTS_EXCHANGE_ALL_REDUCE) {
            assert_int_equal(o->forward_kernels + o->backward_kernels, 0);
            count += fabs(o->exchange_B - bytes) < 0.5;
        }
    }
    return count;
}

/* Four products. One scale a tensor: with sequence parallelism ranks hold parts of everything, of which two inputs and
 * two gradients are gathered; without it the column-split products' inputs and the others' gradients are whole. Weights
 * only where they are cast here. */
static void ranks_agree_on_scales(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const struct {
        int shared, tensor;
        bool sequence, rows;
        dts_quantised_weights weights;
        int forward, backward;
        double bytes;
    } cases[] = {
        {DTS_SHARED_SCALES_NONE, 8, true, false, DTS_WEIGHTS_CAST, 0, 0, 4},
        {DTS_SHARED_SCALES_GATHERED, 8, true, false, DTS_WEIGHTS_CAST, 2, 2, 4},
        {DTS_SHARED_SCALES_GATHERED, 8, false, false, DTS_WEIGHTS_CAST, 0, 0, 4},
        {DTS_SHARED_SCALES_ALL, 8, true, false, DTS_WEIGHTS_CAST, 8, 4, 4},
        {DTS_SHARED_SCALES_ALL, 8, true, false, DTS_WEIGHTS_QUANTISED, 4, 4, 4},
        {DTS_SHARED_SCALES_ALL, 8, false, false, DTS_WEIGHTS_CAST, 6, 2, 4},
        {DTS_SHARED_SCALES_ALL, 1, false, false, DTS_WEIGHTS_CAST, 0, 0, 4},
        /* rows: what ranks add up over: inputs of two, gradients of two products, 4 B for each token */
        {DTS_SHARED_SCALES_ALL, 8, true, true, DTS_WEIGHTS_CAST, 2, 2, 4 * 2048},
        {DTS_SHARED_SCALES_GATHERED, 8, true, true, DTS_WEIGHTS_CAST, 0, 0, 4 * 2048},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_execution x = fp8(cases[i].tensor, 2);
        x.sequence_parallel = cases[i].sequence;
        x.quantisation.weights = (int)cases[i].weights;
        x.quantisation.rows = cases[i].rows;
        x.quantisation.shared_scales = cases[i].shared;
        dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
        assert_int_equal(count_shared(layer, false, cases[i].bytes), cases[i].forward);
        assert_int_equal(count_shared(layer, true, cases[i].bytes), cases[i].backward);
    }
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_linear_products_of_layers_are_narrow),
        cmocka_unit_test(casts_move_their_bytes),
        cmocka_unit_test(inputs_of_products_are_kept_narrow),
        cmocka_unit_test(gathers_are_narrow),
        cmocka_unit_test(experts_are_cast_as_well),
        cmocka_unit_test(rows_are_cast_for_each_product),
        cmocka_unit_test(rows_are_cast_behind_gathers),
        cmocka_unit_test(ranks_agree_on_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
