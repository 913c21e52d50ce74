/* Bounds and estimates of layers with experts: how their dispatcher sends tokens, and what the host does for casts. */
#include "closed_form.h"

#define ONE_STAGE                                                                                             \
    AXIS("parallelism.tensor", "1"), AXIS("parallelism.context", "1"), AXIS("parallelism.pipeline", "1"),     \
        AXIS("parallelism.order", "tensor-data-pipeline"), AXIS("parallelism.partition", "auto"),             \
        AXIS("parallelism.sequence", "false"), AXIS("parallelism.schedule", "1f1b"), AXIS("offload", "none"), \
        AXIS("parallelism.shard_group", "0"), AXIS("training.recompute", "none", "full"),                     \
        AXIS("parallelism.virtual_stages", "1")

static void tokens_cross_once(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: qwen3-30b-a3b, layers: 4}\n"
        "cluster: {profile: dgx-h100, nodes: 2}\n"
        "stack: {profile: megatron-core, tokens_cross_once: true, device_dispatch_domain: 2}\n"
        "training: {global_batch: 64, micro_batch: 1, sequence_length: 4096, precision: bf16}\n";
    const dts_axis over[] = {ONE_STAGE, AXIS("parallelism.expert", "16"), AXIS("training.micro_batch", "1", "4"),
                             AXIS("parallelism.data_parallel", "zero1")};
    check_layouts(text, over, sizeof over / sizeof over[0], 4, 0.15);
}

/* Each expert's tensors before its casts hold up the host; rows of tokens, not links, bound an exchange in a rack. */
static void casts_hold_up_the_host(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: qwen3-30b-a3b, layers: 4}\n"
        "cluster: {profile: gb200-nvl72, nodes: 1, gpus_per_node: 8}\n"
        "stack: {profile: megatron-bridge, device_dispatch_domain: 8}\n"
        "training: {global_batch: 128, micro_batch: 1, sequence_length: 4096, precision: mxfp8}\n";
    const dts_axis over[] = {ONE_STAGE, AXIS("parallelism.expert", "2", "8"), AXIS("training.micro_batch", "1", "8"),
                             AXIS("parallelism.data_parallel", "zero1")};
    check_layouts(text, over, sizeof over / sizeof over[0], 8, 0.1);
}

/* Where stages are neighbours the ranks that share experts lie on both nodes, where replicas are they lie on one. The
 * order that came second had the exchanges of the first: a third too little time, or two thirds too much. */
static void exchanges_are_those_of_the_order(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: qwen3-30b-a3b, layers: 4}\n"
        "cluster: {profile: dgx-h100, nodes: 2}\n"
        "stack: megatron-core\n"
        "training: {global_batch: 64, micro_batch: 1, sequence_length: 4096, precision: bf16}\n";
    static const char *const orders[][2] = {{"tensor-data-pipeline", "tensor-pipeline-data"},
                                            {"tensor-pipeline-data", "tensor-data-pipeline"}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                                 AXIS("parallelism.context", "1"),
                                 AXIS("parallelism.pipeline", "2"),
                                 AXIS("parallelism.order", orders[i][0], orders[i][1]),
                                 AXIS("parallelism.partition", "auto"),
                                 AXIS("parallelism.schedule", "1f1b"),
                                 AXIS("parallelism.shard_group", "0"),
                                 AXIS("parallelism.virtual_stages", "1"),
                                 AXIS("parallelism.expert", "8"),
                                 AXIS("parallelism.data_parallel", "zero1"),
                                 AXIS("training.micro_batch", "4"),
                                 AXIS("training.recompute", "full"),
                                 AXIS("offload", "none")};
        const tally t = walk_layouts(text, over, sizeof over / sizeof over[0]);
        assert_true(t.count == 2 && t.worst_memory < 0.15);
        assert_close(t.estimate.time_s, t.full_s, 0.15, 0); /* of the order that comes second */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_cross_once), cmocka_unit_test(casts_hold_up_the_host),
                                       cmocka_unit_test(exchanges_are_those_of_the_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
