/* What an optimizer step holds beside its states: lists of all tensors, tensors one after another, or nothing. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* Few tokens: the step is the peak, of parameters, gradients and what the optimizer keeps, 4 bytes of an element each.
 */
static const char bert[] =
    "model: bert-large\ncluster: {profile: lambda-8x-a100-80gb, gpus_per_node: 1}\nstack: pytorch-2\n"
    "training: {global_batch: 1, micro_batch: 1, sequence_length: 32, precision: fp32, optimizer: adam}\n"
    "parallelism: {data_parallel: ddp}\n";

static dts_result *step(const char *text, const char *style, const char *optimizer) {
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "stack.optimizer.style=%s training.optimizer=%s", style, optimizer);
    return simulate_text(text, settings);
}

/* States of an element, and lists beside them while it is stepped. */
static void lists_are_as_long_as_the_parameters(void **state) {
    (void)state;
    static const struct {
        const char *optimizer;
        int kept, lists;
    } cases[] = {{"sgd", 2, 0},   {"sgd-momentum", 3, 0}, {"adam", 4, 1},
                 {"adamw", 4, 1}, {"lamb", 4, 2},         {"lion", 3, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_result *lists = step(bert, "multi-tensor", cases[i].optimizer);
        const double all_B = 4 * lists->parameters;
        assert_close(lists->memory_gib.parameters * GIB, all_B, 1e-6, 0);
        if (cases[i].lists > 0) {
            assert_close(lists->memory_gib.temporary * GIB, cases[i].lists * all_B, 1e-6, 0);
            assert_close(lists->peak_allocated_gib * GIB, (cases[i].kept + cases[i].lists) * all_B, 1e-3, 0);
            assert_non_null(strstr(lists->stages[0].peak_cause, "optimizer_step"));
        } else {
            assert_true(lists->peak_allocated_gib * GIB < (cases[i].kept + 0.2) * all_B);
        }
        assert_true(lists->peak_reserved_gib < 1.12 * lists->peak_allocated_gib); /* one by one, of cached blocks */
        dts_result_free(lists);
    }
}

/* The largest tensor is the table of words, 30,522 times 1,024: twice that per tensor, all at once a copy of all. */
static void styles_differ_by_a_copy(void **state) {
    (void)state;
    dts_result *fused = step(bert, "fused", "adam"), *one = step(bert, "per-tensor", "adam");
    dts_result *all = step(bert, "multi-tensor", "adam");
    const double table_B = 4.0 * 30522 * 1024, all_B = 4 * all->parameters;
    assert_close(one->peak_allocated_gib * GIB, 4 * all_B + 2 * table_B, 1e-3, 0);
    assert_close((all->peak_allocated_gib - one->peak_allocated_gib) * GIB, all_B - 2 * table_B, 1e-3, 0);
    assert_true(fused->peak_allocated_gib < one->peak_allocated_gib);
    assert_close(fused->memory_gib.optimizer, all->memory_gib.optimizer, 0, 0);
    dts_result_free(fused);
    dts_result_free(one);
    dts_result_free(all);
}

/* Of eight replicas each steps all, or its eighth: so long is the list. FSDP's gathered units weigh more than that. */
static void lists_are_sharded(void **state) {
    (void)state;
    static const char llama[] =
        "model: {profile: llama-2-7b, layers: 8}\ncluster: {profile: dgx-a100-80gb, nodes: 1}\nstack: pytorch-2\n"
        "training: {global_batch: 8, micro_batch: 1, sequence_length: 16, precision: bf16, recompute: full}\n";
    static const struct {
        const char *sharding;
        double shards;
        bool in_step;
    } cases[] = {{"ddp", 1, true}, {"zero1", 8, true}, {"fsdp", 8, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[LONGEST_SETTINGS];
        snprintf(text, sizeof text, "%sparallelism: {data_parallel: %s}\n", llama, cases[i].sharding);
        dts_result *lists = step(text, "multi-tensor", "adamw"), *fused = step(text, "fused", "adamw");
        const double list_B = 2 * lists->parameters / cases[i].shards;
        assert_close(lists->memory_gib.optimizer * GIB, 2 * list_B, 1e-6, 0);
        assert_int_equal(strstr(lists->stages[0].peak_cause, "optimizer_step") != NULL, cases[i].in_step);
        if (cases[i].in_step) {
            assert_close(lists->memory_gib.temporary * GIB, list_B, 1e-6, 0);
        } else {
            assert_close(lists->peak_allocated_gib, fused->peak_allocated_gib, 0, 0);
        }
        dts_result_free(lists);
        dts_result_free(fused);
    }
}

/* A model of 9.2 billion parameters in bf16 that fits but for its lists: 68.9 GiB, 17.2 more in the step, and the
 * context. One of 6.7 billion, which fits with them. */
static void fits_but_for_the_lists(void **state) {
    (void)state;
    static const char *const gemma =
        "model: gemma-2-9b\ncluster: {profile: lambda-8x-a100-80gb, gpus_per_node: 1}\nstack: huggingface-trainer-2\n"
        "training: {global_batch: 1, micro_batch: 1, sequence_length: 512, precision: bf16, recompute: full}\n"
        "parallelism: {data_parallel: ddp}\n";
    static const char *const llama =
        "model: llama-2-7b\ncluster: {profile: lambda-8x-a100-80gb, gpus_per_node: 1}\nstack: torchtune\n"
        "training: {global_batch: 2, micro_batch: 2, sequence_length: 512, precision: bf16, recompute: full}\n"
        "parallelism: {data_parallel: ddp}\n";
    dts_result *lists = simulate_text(gemma, ""), *fused = simulate_text(gemma, "stack.optimizer.style=fused");
    assert_string_equal(lists->verdict, "does not fit");
    assert_close(lists->peak_device_gib, 87.6, 1e-3, 0);
    assert_string_equal(fused->verdict, "fits");
    dts_result *large = simulate_text(llama, "stack.optimizer.style=multi-tensor"), *small = simulate_text(llama, "");
    assert_string_equal(large->verdict, "fits");
    assert_close((large->peak_device_gib - small->peak_device_gib) * GIB, 2 * small->parameters, 0.02, 0);
    dts_result_free(lists);
    dts_result_free(fused);
    dts_result_free(large);
    dts_result_free(small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_as_long_as_the_parameters),
        cmocka_unit_test(styles_differ_by_a_copy),
        cmocka_unit_test(lists_are_sharded),
        cmocka_unit_test(fits_but_for_the_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
