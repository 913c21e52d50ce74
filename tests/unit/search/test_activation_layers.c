/* Bounds and estimates of plans that offload the activations of some layers alone. */
#include "closed_form.h"

static void check(const char *recompute, int layers, double memory) {
    const char *recomputes[] = {recompute};
    const dts_axis over[] = {AXIS("parallelism.tensor", "1", "2"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.pipeline", "1", "2"), /* the latter is refused */
                             AXIS("parallelism.data_parallel", "zero1", "fsdp"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("offload", "activations"),
                             {.key = "training.recompute", .values = recomputes, .count = 1},
                             AXIS("parallelism.virtual_stages", "1"),
                             AXIS("training.micro_batch", "1", "2")};
    char text[700];
    snprintf(
        text, sizeof text,
        "model: {profile: llama, layers: 8, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 32000}\n"
        "cluster: {profile: dgx-h100, nodes: 1}\n"
        "stack: megatron-bridge\n"
        "training: {global_batch: 32, micro_batch: 1, sequence_length: 4096, precision: bf16}\n"
        "offload: {activation_layers: %d}\n",
        layers);
    check_layouts(text, over, sizeof over / sizeof over[0], 8, memory);
}

/* What is copied, and what stays on the GPU and on the host, is of these layers. */
static void copies_are_of_the_first_layers(void **state) {
    (void)state;
    check("none", 1, 0.08);
    check("none", 4, 0.08);
    check("none", 7, 0.08);
}

static void checkpoints_are_copied_too(void **state) {
    (void)state;
    check("selective", 4, 0.08);
    check("full", 4, 0.08);
    check("{every: 2}", 5, 0.08);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_of_the_first_layers),
                                       cmocka_unit_test(checkpoints_are_copied_too)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
