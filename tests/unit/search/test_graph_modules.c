/* Bounds and estimates of plans whose CUDA graphs hold modules of layers: what is outside of them the host launches
 * kernel by kernel, and their pool pins memory (plan/lower/graphs.c). */
#include "closed_form.h"

static tally walk_modules(const char *model, const char *recompute, const char *stack) {
    const dts_axis over[] = {AXIS("parallelism.tensor", "1", "2"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.pipeline", "1", "2"),
                             AXIS("parallelism.data_parallel", "zero1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.schedule", "1f1b"),
                             AXIS("offload", "none"),
                             {.key = "training.recompute", .values = &recompute, .count = 1},
                             AXIS("parallelism.virtual_stages", "1"),
                             AXIS("training.micro_batch", "1")};
    char text[900];
    snprintf(text, sizeof text,
             "model: {%s}\n"
             "cluster: {profile: dgx-h100, nodes: 1}\n"
             "stack: {profile: megatron-core, launch: 15us, backward_launch: 15us, %s}\n"
             "training: {global_batch: 32, micro_batch: 1, sequence_length: 1024, precision: bf16}\n",
             model, stack);
    const tally t = walk_layouts(text, over, sizeof over / sizeof over[0]);
    print_message("%s: %zu layouts, memory off by %.1f %% at most\n", stack, t.count, 100 * t.worst_memory);
    return t;
}

/* Kernels are so small that the host bounds the passes, but for what graphs hold. */
static void launches_are_those_outside(void **state) {
    (void)state;
    static const char dense[] = "profile: llama, layers: 8, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000";
    static const char *const stacks[] = {"cuda_graphs: layers, cuda_graph_modules: [mlp]",
                                         "cuda_graphs: layers, cuda_graph_modules: [attn]",
                                         "cuda_graphs: layers, cuda_graph_modules: [attn, mlp]"};
    const tally without = walk_modules(dense, "none", "cuda_graphs: none");
    for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++) {
        const tally t = walk_modules(dense, "none", stacks[i]);
        assert_true(t.count >= 4 && t.worst_memory < 0.07);
        assert_true(t.estimate.time_s < without.estimate.time_s && t.full_s < without.full_s);
    }
}

/* Experts stay with the host, and bounds hold. */
static void routing_goes_with_attention(void **state) {
    (void)state;
    static const char *const stacks[] = {"cuda_graphs: layers, cuda_graph_modules: [attn]",
                                         "cuda_graphs: layers, cuda_graph_modules: [attn, moe_router, moe_preprocess]"};
    static const char *const recomputes[] = {"none", "full"};
    for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++) {
        for (size_t k = 0; k < sizeof recomputes / sizeof recomputes[0]; k++) {
            const tally t = walk_modules("profile: deepseek-v2-lite, layers: 4", recomputes[k], stacks[i]);
            assert_true(t.count >= 6 && t.worst_memory < 0.11);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches_are_those_outside),
                                       cmocka_unit_test(routing_goes_with_attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
