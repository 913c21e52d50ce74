/* Attention and feed-forward block side by side: norms, sums, and what tensor parallelism exchanges. */
#include "shapes.h"

typedef struct sums {
    int norms, forward_kernels, backward_kernels;
    int reduced, gathered;           /* exchanges of forward: all-reduces or reduce-scatters, all-gathers */
    int reduced_back, gathered_back; /* of backward */
    double forward_B, backward_B;
} sums;

static sums count(const dts_model *model, const dts_execution *x) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_operators layer = operators_of(model, DTS_PART_LAYER, x, arena);
    sums s = {0};
    for (size_t i = 0; i < layer.count; i++) {
        const dts_operator *o = &layer.items[i];
        s.norms += strstr(o->name, "norm") != NULL;
        s.forward_kernels += o->forward_kernels;
        s.backward_kernels += o->backward_kernels;
        s.reduced +=
            o->forward_exchange == DTS_EXCHANGE_ALL_REDUCE || o->forward_exchange == DTS_EXCHANGE_REDUCE_SCATTER;
        s.gathered += o->forward_exchange == DTS_EXCHANGE_ALL_GATHER;
        s.reduced_back +=
            o->backward_exchange == DTS_EXCHANGE_ALL_REDUCE || o->backward_exchange == DTS_EXCHANGE_REDUCE_SCATTER;
        s.gathered_back += o->backward_exchange == DTS_EXCHANGE_ALL_GATHER;
        s.forward_B += o->kind == DTS_OPERATOR_MEMORY ? o->forward_B : 0;
        s.backward_B += o->kind == DTS_OPERATOR_MEMORY ? o->backward_B : 0;
        if (o->forward_exchange != DTS_EXCHANGE_NONE || o->backward_exchange != DTS_EXCHANGE_NONE) {
            assert_close(o->exchange_B, (double)(x->micro_batch * x->sequence_length * model->hidden) * 2, 0, 0);
        }
    }
    dts_arena_free(arena);
    return s;
}

/* One norm less where it is shared. Without a stack that adds partial sums nothing else changes, and with two norms
 * nothing at all: the kernels of the blocks run one after another, and two sums are two sums. */
static void without_sums_only_the_shared_norm_falls_away(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    for (int mode = 0; mode < 4; mode++) {
        dts_execution x = plain_fp16(2, 2048);
        x.fuse_bias_dropout_add = mode % 2 == 1;
        x.tensor = mode / 2 == 1 ? 8 : 1;
        model.parallel_block = DTS_PARALLEL_NONE;
        const sums serial = count(&model, &x);
        model.parallel_block = DTS_PARALLEL_TWO_NORMS;
        const sums two = count(&model, &x);
        assert_int_equal(two.forward_kernels, serial.forward_kernels);
        assert_int_equal(two.backward_kernels, serial.backward_kernels);
        assert_close(two.forward_B, serial.forward_B, 0, 0);
        assert_close(two.backward_B, serial.backward_B, 0, 0);
        model.parallel_block = DTS_PARALLEL_SHARED_NORM;
        const sums one = count(&model, &x);
        assert_int_equal(serial.norms - one.norms, 1);
        assert_int_equal(serial.forward_kernels - one.forward_kernels, 1);
        assert_int_equal(serial.backward_kernels - one.backward_kernels, 2);
        assert_int_equal(one.reduced, serial.reduced);
    }
}

/* Exchanges of a layer, as the code that makes them says: gpt-neox adds the partial outputs, mesh-transformer-jax the
 * gradients, too. */
static void partial_sums_are_reduced_once(void **state) {
    (void)state;
    static const struct {
        bool sequence, gradients;
        int block; /* dts_parallel_block */
        int reduced, gathered, reduced_back, gathered_back;
    } cases[] = {
        {false, false, DTS_PARALLEL_NONE, 2, 0, 2, 0},        {false, true, DTS_PARALLEL_NONE, 2, 0, 2, 0},
        {false, false, DTS_PARALLEL_TWO_NORMS, 1, 0, 2, 0},   {false, true, DTS_PARALLEL_TWO_NORMS, 1, 0, 2, 0},
        {false, false, DTS_PARALLEL_SHARED_NORM, 1, 0, 2, 0}, {false, true, DTS_PARALLEL_SHARED_NORM, 1, 0, 1, 0},
        {true, false, DTS_PARALLEL_NONE, 2, 2, 2, 2},         {true, false, DTS_PARALLEL_TWO_NORMS, 1, 2, 2, 1},
        {true, false, DTS_PARALLEL_SHARED_NORM, 1, 1, 2, 1},  {true, true, DTS_PARALLEL_SHARED_NORM, 1, 1, 1, 1},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        dts_model model = gpt_175b();
        dts_execution x = plain_fp16(2, 2048);
        const size_t c = i / 2;
        x.tensor = 8;
        x.sequence_parallel = cases[c].sequence;
        x.fuse_bias_dropout_add = i % 2 == 1;
        x.sums_branches = true;
        x.sums_branch_gradients = cases[c].gradients;
        model.parallel_block = cases[c].block;
        const sums s = count(&model, &x);
        assert_int_equal(s.reduced, cases[c].reduced);
        assert_int_equal(s.gathered, cases[c].gathered);
        assert_int_equal(s.reduced_back, cases[c].reduced_back);
        assert_int_equal(s.gathered_back, cases[c].gathered_back);
    }
}

/* The table at the head of sim/model/parallel_block.c, in units of n·e. */
static void the_sums_move_what_their_formula_says(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    model.dropout = false;
    dts_execution x = plain_fp16(2, 2048);
    x.fuse_bias_dropout_add = true;
    x.tensor = 8;
    const double unit_B = 2.0 * 2048 * 12288 * 2;
    const sums serial = count(&model, &x);
    model.parallel_block = DTS_PARALLEL_TWO_NORMS;
    x.sums_branches = true;
    const sums two = count(&model, &x);
    assert_close(serial.forward_B - two.forward_B, (2 * 3 - 2 - 3 - 3) * unit_B, 1e-12, 0);
    assert_close(two.backward_B, serial.backward_B, 1e-12, 0);
    model.bias = false; /* the first branch has nothing to add then */
    const sums bare = count(&model, &x);
    model.parallel_block = DTS_PARALLEL_NONE;
    assert_close(count(&model, &x).forward_B - bare.forward_B, 0, 0, 1);
    model.parallel_block = DTS_PARALLEL_SHARED_NORM; /* a norm reads and writes; 5 in backward */
    assert_close(count(&model, &x).forward_B - bare.forward_B, -2 * unit_B, 1e-9, 0);
    assert_close(count(&model, &x).backward_B - bare.backward_B, -5 * unit_B, 1e-9, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_sums_only_the_shared_norm_falls_away),
                                       cmocka_unit_test(partial_sums_are_reduced_once),
                                       cmocka_unit_test(the_sums_move_what_their_formula_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
