/* What the loss at the head launches, moves, keeps and reduces. */
#include "shapes.h"

/* A z-loss in passes of fp32 logits: 1 + 2 + 2 + 1 forward, 2 + 2 + 2 + 3 backward, and the cast is kept; none of them
 * where the loss is one kernel. Of a split vocabulary each rank has its part of the passes, and two more reductions. */
static void test_z_loss(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 512);
    const double fp32_B = 4.0 * 2 * 512 * (double)model.vocab;
    const dts_operator without = *find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
    x.z_loss = true;
    const dts_operator with = *find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
    assert_close(with.forward_B - without.forward_B, 6 * fp32_B, 1e-12, 0);
    assert_close(with.backward_B - without.backward_B, 9 * fp32_B, 1e-12, 0);
    assert_close(with.saved_B - without.saved_B, fp32_B, 1e-12, 0);
    x.fuse_loss = true;
    const dts_operator fused = *find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
    x.z_loss = false;
    const dts_operator plain = *find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
    assert_close(fused.forward_B, plain.forward_B, 0, 0);
    assert_close(fused.saved_B, plain.saved_B, 0, 0);
    x.fuse_loss = false;
    x.tensor = 4;
    const dts_operator split = *find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
    x.z_loss = true;
    const dts_operator both = *find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
    assert_close(both.forward_B - split.forward_B, 6 * fp32_B / 4, 1e-12, 0);
    assert_close(both.backward_B - split.backward_B, 9 * fp32_B / 4, 1e-12, 0);
    assert_close(both.saved_B - split.saved_B, fp32_B / 4, 1e-12, 0);
    assert_close(both.exchange_B - split.exchange_B, 2 * 4.0 * 2 * 512, 1e-12, 0);
    dts_arena_free(arena);
}

/* Logits without the last positions are a copy of 2 B an element, or of 4 where all are cast first; that is held, too.
 */
static void test_shifted_logits(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    const dts_model model = gpt_175b();
    dts_execution x = plain_fp16(2, 512);
    const double logits = 2 * 512 * (double)model.vocab;
    const dts_operator without = *find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
    x.shifts_logits = true;
    for (int wide = 0; wide < 2; wide++) {
        x.widens_logits = wide == 1;
        const double copied_B = wide == 1 ? 4 : 2;
        const dts_operator with = *find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
        assert_close(with.forward_B - without.forward_B, 2 * copied_B * logits, 1e-12, 0);
        assert_close(with.backward_B - without.backward_B, 3 * copied_B * logits, 1e-12, 0);
        assert_close(with.saved_B - without.saved_B, (copied_B - 2) * logits, 1e-12, 1);
        assert_int_equal(with.backward_kernels, without.backward_kernels + 2);
    }
    x.tensor = 4; /* a split vocabulary has a loss of its own */
    x.shifts_logits = false;
    const dts_operator split = *find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss");
    x.shifts_logits = true;
    assert_close(find(operators_of(&model, DTS_PART_HEAD, &x, arena), "loss")->forward_B, split.forward_B, 0, 0);
    dts_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_z_loss),
        cmocka_unit_test(test_shifted_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
