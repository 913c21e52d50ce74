/* Bounds and estimates of ZeRO-1 by whole tensors: the rank that owns most decides, as in the plan
 * (plan/lower/owners.c). */
#include "closed_form.h"

static void check(const char *text, double memory) {
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.pipeline", "1", "2", "4"),
                             AXIS("parallelism.data_parallel", "zero1"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", "none"),
                             AXIS("parallelism.virtual_stages", "1"),
                             AXIS("training.micro_batch", "1"),
                             AXIS("parallelism.schedule", "1f1b")};
    check_layouts(text, over, sizeof over / sizeof over[0], 3, memory);
}

/* Few large tensors among many ranks: the fullest rank has several times the average. */
static void the_fullest_rank_decides(void **state) {
    (void)state;
    check(
        "model: {profile: gpt, layers: 4, hidden: 4096, heads: 32, vocab: 4096, dropout: false}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 2}\n"
        "stack: internevo\n"
        "training: {global_batch: 16, micro_batch: 1, sequence_length: 512, precision: bf16, optimizer: adamw}\n",
        0.01);
}

static void experts_have_owners_of_their_own(void **state) {
    (void)state;
    check(
        "model: {profile: deepseek-v2-lite, layers: 4}\n"
        "cluster: {profile: dgx-h100, nodes: 1}\n"
        "stack: internevo\n"
        "training: {global_batch: 32, micro_batch: 1, sequence_length: 512, precision: bf16, optimizer: adamw}\n",
        0.13);
}

/* Muon's matrices: of a fullest rank, of every replica, of the owners of shards. */
static void matrices_have_owners_too(void **state) {
    (void)state;
    static const char *kinds[] = {"ddp", "zero1", "fsdp"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const dts_axis over[] = {AXIS("parallelism.tensor", "1", "2"),
                                 AXIS("parallelism.context", "1"),
                                 AXIS("parallelism.order", "tensor-data-pipeline"),
                                 AXIS("parallelism.pipeline", "1"),
                                 {.key = "parallelism.data_parallel", .values = &kinds[i], .count = 1},
                                 AXIS("offload", "none"),
                                 AXIS("training.recompute", "none"),
                                 AXIS("parallelism.virtual_stages", "1"),
                                 AXIS("training.micro_batch", "1"),
                                 AXIS("parallelism.schedule", "1f1b")};
        check_layouts(
            "model: {profile: llama, layers: 8, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: "
            "32000}\n"
            "cluster: {profile: dgx-h100, nodes: 1}\n"
            "stack: megatron-core\n"
            "training: {global_batch: 16, micro_batch: 1, sequence_length: 4096, precision: bf16, optimizer: muon}\n",
            over, sizeof over / sizeof over[0], 2, 0.09);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_fullest_rank_decides),
                                       cmocka_unit_test(experts_have_owners_of_their_own),
                                       cmocka_unit_test(matrices_have_owners_too)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
