/* The estimated memory of frozen weights in fp32, beside what the simulation of the same layouts takes. */
#include "closed_form.h"

static double check(const char *text, const char *pipeline, const char *data_parallel, const char *recompute) {
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.partition", "uniform"),
                             AXIS("parallelism.pipeline", pipeline),
                             AXIS("parallelism.data_parallel", data_parallel),
                             AXIS("parallelism.shard_group", "0"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", recompute),
                             AXIS("parallelism.virtual_stages", "1"),
                             AXIS("training.micro_batch", "1"),
                             AXIS("parallelism.schedule", "1f1b")};
    return check_layouts(text, over, sizeof over / sizeof over[0], 1, 0.08);
}

#define LORA "adapters: {lora: {rank: 16, targets: all-linear, base: fp32}}}\n"

/* The last stage's copy of the embedding takes what a head of its own does. */
static void copies_of_tied_weights(void **state) {
    (void)state;
    static const char *const tied[] = {"true", "false"};
    double memory_B[2];
    for (int i = 0; i < 2; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "model: {profile: llama-3-8b, layers: 4, tied_embeddings: %s}\n"
                 "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
                 "stack: pytorch-2\n"
                 "training: {global_batch: 8, micro_batch: 1, sequence_length: 4096, precision: bf16, " LORA,
                 tied[i]);
        memory_B[i] = check(text, "4", "ddp", "none");
    }
    assert_close(memory_B[0], memory_B[1], 1e-9, 0);
}

/* Casts are gone with their layer, whatever the microbatches; half copies of fp32 shards need none. */
static void gathered_weights(void **state) {
    (void)state;
    static const char *const stacks[] = {"pytorch-2", "{profile: pytorch-2, fsdp: {mixed_precision: true}}"};
    static const char *const recompute[] = {"none", "full"};
    for (int i = 0; i < 4; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "model: {profile: llama-3-8b, layers: 8, vocab: 32000}\n"
                 "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
                 "stack: %s\n"
                 "training: {global_batch: 32, micro_batch: 1, sequence_length: 2048, precision: amp-bf16, " LORA,
                 stacks[i / 2]);
        check(text, "1", "fsdp", recompute[i % 2]);
    }
}

/* PyTorch's pipelines keep outputs, gradients of inputs and buffers of all microbatches until the step ends: with
 * adapters, or with recomputation, most of what there is. */
static void what_pipelines_keep(void **state) {
    (void)state;
    static const char *const adapters[] = {", adapters: {lora: {rank: 16, targets: all-linear}}", ""};
    for (int i = 0; i < 2; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "model: {profile: llama-3-8b, layers: 8}\n"
                 "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
                 "stack: pytorch-2\n"
                 "training: {global_batch: 32, micro_batch: 1, sequence_length: 4096, precision: bf16%s}\n",
                 adapters[i]);
        const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                                 AXIS("parallelism.context", "1"),
                                 AXIS("parallelism.order", "tensor-data-pipeline"),
                                 AXIS("parallelism.partition", "auto"),
                                 AXIS("parallelism.pipeline", "2", "4"),
                                 AXIS("parallelism.data_parallel", "ddp"),
                                 AXIS("offload", "none"),
                                 AXIS("training.recompute", "none", "full"),
                                 AXIS("parallelism.virtual_stages", "1", "2"),
                                 AXIS("training.micro_batch", "1"),
                                 AXIS("parallelism.schedule", "1f1b", "interleaved-1f1b", "gpipe")};
        check_layouts(text, over, sizeof over / sizeof over[0], 12, 0.1);
    }
}

/* On a stack whose FSDP has a half precision of its own, whole parameters have autocast: other kernels, other kept
 * tensors. */
static void half_precision_of_shards(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: llama-3-8b, layers: 4, vocab: 32000}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
        "stack: {profile: pytorch-2, fsdp: {mixed_precision: true}}\n"
        "training: {global_batch: 32, micro_batch: 1, sequence_length: 2048, precision: amp-bf16}\n";
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.partition", "auto"),
                             AXIS("parallelism.pipeline", "1"),
                             AXIS("parallelism.data_parallel", "ddp", "zero1", "zero3", "fsdp"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", "none", "full"),
                             AXIS("training.micro_batch", "1")};
    check_layouts(text, over, sizeof over / sizeof over[0], 8, 0.2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_of_tied_weights),
        cmocka_unit_test(gathered_weights),
        cmocka_unit_test(what_pipelines_keep),
        cmocka_unit_test(half_precision_of_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
