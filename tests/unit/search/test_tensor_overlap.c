/* Bounds and estimates of tensor parallelism whose transfers of backward run beside products, as Megatron's do. */
#include "closed_form.h"

static void bounds_hold_beside_products(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: llama-3-8b, layers: 16}\n"
        "cluster: {profile: dgx-h100, nodes: 2}\n"
        "stack: megatron-core\n"
        "training: {global_batch: 64, micro_batch: 1, sequence_length: 2048, precision: bf16}\n";
    const dts_axis over[] = {AXIS("parallelism.tensor", "2", "4"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.partition", "auto"),
                             AXIS("parallelism.pipeline", "1", "4"),
                             AXIS("parallelism.data_parallel", "zero1"),
                             AXIS("parallelism.sequence", "true", "false"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", "none"),
                             AXIS("parallelism.virtual_stages", "1", "2"),
                             AXIS("training.micro_batch", "1"),
                             AXIS("parallelism.schedule", "1f1b", "interleaved-1f1b")};
    check_layouts(text, over, sizeof over / sizeof over[0], 12, 0.09);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold_beside_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
