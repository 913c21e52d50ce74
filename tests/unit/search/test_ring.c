/* The closed form of ring attention whose keys and values are gathered and whose gradients go round by themselves. */
#include "closed_form.h"

/* Where each transfer is waited for (a compiler's trace), C sends of gradients a layer are as long as they take: on
 * slow links nearly all of the iteration is transfers. */
static void gradients_go_round_once_for_each_rank(void **state) {
    (void)state;
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                             AXIS("parallelism.context", "2", "4", "8"),
                             AXIS("parallelism.pipeline", "1"),
                             AXIS("parallelism.data_parallel", "ddp"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", "none"),
                             AXIS("training.micro_batch", "1")};
    static const char text[] =
        "model: {profile: llama, layers: 8, hidden: 4096, heads: 32, kv_heads: 32, ffn_hidden: 4096, vocab: 1024}\n"
        "cluster: {profile: dgx-h100, nodes: 1, intra: {bandwidth: 10 GB/s}}\n"
        "stack: {profile: torchtitan, compile: true}\n"
        "training: {global_batch: 16, micro_batch: 1, sequence_length: 16384, precision: bf16, optimizer: sgd}\n";
    check_layouts(text, over, sizeof over / sizeof over[0], 3, 1, 0.02);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_go_round_once_for_each_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
