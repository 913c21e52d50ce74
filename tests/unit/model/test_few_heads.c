/* More tensor-parallel ranks than heads of keys and values, against the bytes and sizes at the head of few_heads.c. */
#include "shapes.h"

enum { RANKS = 16, LENGTH = 4096, WIDTH = 128, GROUPS = 8, QUERIES = 64, HIDDEN = 8192 };
static const double row_B = LENGTH * 2.0; /* one column of (s, 1, columns), B */

static dts_execution over_ranks(bool sequence) {
    dts_execution x = plain_fp16(1, LENGTH);
    x.tensor = RANKS;
    x.sequence_parallel = sequence;
    x.flash_attention = true;
    return x;
}

static double parameters_of(dts_operators layer) {
    double sum = 0;
    for (size_t i = 0; i < layer.count; i++) {
        sum += layer.items[i].parameters[0];
    }
    return sum;
}

/* The product is cut below a head, so that no weight is there twice, and its whole output goes around. */
static void parts_of_heads_are_gathered(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_model model = llama_3_70b();
    dts_execution x = over_ranks(true);
    x.gathers_few_kv = true;
    dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
    const double columns = (QUERIES + 2 * GROUPS) * WIDTH, all_B = columns * row_B;
    assert_int_equal(find(layer, "qkv")->n, (int64_t)columns / RANKS);
    const dts_operator *gather = find(layer, "qkv_gather"), *own = find(layer, "qkv_of_rank");
    assert_int_equal(gather->forward_exchange, DTS_EXCHANGE_ALL_GATHER);
    assert_int_equal(gather->backward_exchange, DTS_EXCHANGE_REDUCE_SCATTER);
    assert_close(gather->exchange_B, all_B, 0, 0);
    assert_close(own->forward_B, 2 * all_B, 0, 0);
    /* queries of the group filled, 4 heads copied; all filled, the group of 8 + 2 heads copied; all cut */
    assert_close(own->backward_B,
                 8 * WIDTH * row_B + 2 * 4 * WIDTH * row_B + all_B + 2 * 10 * WIDTH * row_B + 2 * all_B, 0, 0);
    /* rotated queries and keys are tensors of their own; else all is one */
    assert_close(own->saved_B, (4 + 2) * WIDTH * row_B, 0, 0);
    x.keeps_joined_qkv = true;
    assert_close(find(operators_of(&model, DTS_PART_LAYER, &x, arena), "qkv_of_rank")->saved_B,
                 all_B + (4 + 1) * WIDTH * row_B, 0, 0);
    assert_int_equal(find(layer, "flash_attention")->heads, 4);
    assert_int_equal(find(layer, "flash_attention")->kv_heads, 1);
    const double norms = 2.0 * HIDDEN;
    assert_close((parameters_of(layer) - norms) * RANKS + norms, dts_model_part_parameters(&model, DTS_PART_LAYER),
                 1e-12, 0);
    dts_arena_free(arena);
}

/* Every rank has the weights of all heads; the gradient of keys and values is summed, not that of their input. */
static void whole_heads_are_on_every_rank(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_model model = llama_3_70b();
    const double heads_B = 2 * GROUPS * WIDTH * row_B, norms = 2.0 * HIDDEN;
    for (int sequence = 0; sequence <= 1; sequence++) {
        dts_execution x = over_ranks(sequence == 1);
        x.whole_few_kv = true;
        dts_operators layer = operators_of(&model, DTS_PART_LAYER, &x, arena);
        const dts_operator *query = find(layer, "query"), *both = find(layer, "key_value");
        assert_int_equal(query->n, QUERIES * WIDTH / RANKS);
        assert_int_equal(both->n, 2 * GROUPS * WIDTH);
        assert_int_equal(both->m, sequence == 1 ? LENGTH / RANKS : LENGTH);
        assert_int_equal(both->backward_exchange, DTS_EXCHANGE_NONE);
        const dts_operator *between = find(layer, "key_value_ranks");
        assert_close(between->exchange_B, heads_B, 0, 0);
        assert_int_equal(between->forward_exchange, sequence == 1 ? DTS_EXCHANGE_ALL_GATHER : DTS_EXCHANGE_NONE);
        assert_int_equal(between->backward_exchange,
                         sequence == 1 ? DTS_EXCHANGE_REDUCE_SCATTER : DTS_EXCHANGE_ALL_REDUCE);
        const double repeated = 2.0 * GROUPS * WIDTH * HIDDEN;
        assert_close((parameters_of(layer) - norms - repeated) * RANKS + norms + repeated,
                     dts_model_part_parameters(&model, DTS_PART_LAYER), 1e-12, 0);
    }
    dts_arena_free(arena);
}

/* Where ranks divide the heads it makes no difference what else the software could do. */
static void enough_heads_are_divided(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_model model = llama_3_70b();
    dts_execution x = over_ranks(false);
    x.tensor = GROUPS;
    const dts_operators plain = operators_of(&model, DTS_PART_LAYER, &x, arena);
    x.gathers_few_kv = true;
    assert_int_equal(operators_of(&model, DTS_PART_LAYER, &x, arena).count, plain.count);
    x.gathers_few_kv = false;
    x.whole_few_kv = true;
    assert_int_equal(operators_of(&model, DTS_PART_LAYER, &x, arena).count, plain.count);
    dts_arena_free(arena);
}

static void check_refused(const dts_model *model, const dts_execution *x, const char *message) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_operators operators = {0};
    assert_int_equal(dts_model_operators(model, DTS_PART_LAYER, x, arena, &operators, diag), DTS_INVALID);
    assert_string_equal(dts_diag_get(diag, 0)->text, message);
    dts_diag_free(diag);
    dts_arena_free(arena);
}

static void what_cannot_be_shared_is_refused(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    dts_execution x = over_ranks(false);
    x.gathers_few_kv = true;
    x.adaptation.rank = 16;
    check_refused(&model, &x, "adapters of keys and values know no more ranks than heads: 16 of 8");
    x.adaptation.rank = 0;
    model.kv_heads = 32; /* a rank would have parts of groups of different sizes */
    x.tensor = 64;
    x.gathers_few_kv = false;
    check_refused(&model, &x, "kv_heads 32 is not a multiple of the tensor-parallel degree 64");
    model.heads = 192;
    model.kv_heads = 24;
    x.gathers_few_kv = true;
    check_refused(&model, &x, "kv_heads 24 is not a multiple of the tensor-parallel degree 64");
    x.tensor = RANKS;
    model.kv_heads = 1;
    model.heads = 16;
    model.head_dim = 12;
    check_refused(&model, &x, "the 216 columns of queries, keys and values cannot be cut into 16 parts");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_heads_are_gathered),
        cmocka_unit_test(whole_heads_are_on_every_rank),
        cmocka_unit_test(enough_heads_are_divided),
        cmocka_unit_test(what_cannot_be_shared_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
