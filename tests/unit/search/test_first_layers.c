/* Recomputation of the first layers of every chunk, and of groups of layers, where somebody asks for it: what is looked
 * at, its bounds, and its estimated memory. */
#include "closed_form.h"

static tally layouts_with(const char *first, const char *second) {
    const char *recomputes[] = {first, second};
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.pipeline", "1", "2"), /* of 6 and 3 layers */
                             AXIS("parallelism.data_parallel", "zero1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.partition", "auto"),
                             AXIS("parallelism.schedule", "1f1b"),
                             AXIS("parallelism.virtual_stages", "1"),
                             AXIS("offload", "none"),
                             {.key = "training.recompute", .values = recomputes, .count = second == NULL ? 1 : 2},
                             AXIS("training.micro_batch", "2")};
    static const char text[] =
        "model: {profile: llama, layers: 6, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 32000}\n"
        "cluster: {profile: dgx-h100, nodes: 1}\n"
        "stack: megatron-core\n"
        "training: {global_batch: 64, micro_batch: 1, sequence_length: 4096, precision: bf16}\n";
    const tally t = walk_layouts(text, over, sizeof over / sizeof over[0]);
    print_message("%s: %zu layouts, memory off by %.1f %% at most\n", first, t.count, 100 * t.worst_memory);
    assert_true(t.worst_memory < 0.03);
    return t;
}

/* A list of them alone had no legal layout. */
static void some_are_recomputed(void **state) {
    (void)state;
    assert_int_equal(layouts_with("{first: 2}", NULL).count, 2);
    assert_int_equal(layouts_with("{first: 2}", "none").count, 4);
}

/* Of chunks that have no more layers it is full recomputation, which has a name of its own. */
static void all_are_full_recomputation(void **state) {
    (void)state;
    assert_int_equal(layouts_with("{first: 3}", "full").count, 3);
    const tally all = layouts_with("{first: 3}", NULL);
    assert_int_equal(all.count, 2);
    assert_true(fabs(all.full_s / layouts_with("full", NULL).full_s - 1) < 1e-9); /* of two stages, the last one */
}

/* A checkpoint of more layers than a chunk has is one of all of them. */
static void one_checkpoint_may_hold_all_layers(void **state) {
    (void)state;
    assert_int_equal(layouts_with("{every: 100}", NULL).count, 2);
    assert_int_equal(layouts_with("{every: 100}", "{every: 50}").count, 2);
    assert_int_equal(layouts_with("{every: 100}", "{every: 3}").count, 3); /* all of a chunk of 3 */
    assert_int_equal(layouts_with("{every: 1}", NULL).count, 2);
    assert_int_equal(layouts_with("{every: 1}", "full").count, 2);
    assert_int_equal(layouts_with("sqrt", NULL).count, 2);
    assert_int_equal(layouts_with("sqrt", "{every: 2}").count, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(some_are_recomputed),
                                       cmocka_unit_test(all_are_full_recomputation),
                                       cmocka_unit_test(one_checkpoint_may_hold_all_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
