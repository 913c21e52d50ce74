/* What a message between stages spends in the network: it holds up its receiver, and the next message only where the
 * stack's sender waits for it. */
#include "simulate.h"

/* Stages of the same cost, one on a node; no step to speak of. */
static const char base[] =
    "model: {profile: gpt, layers: 4, hidden: 2048, heads: 16, vocab: 64, tied_embeddings: false, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2, gpus_per_node: 1}\n"
    "stack: {profile: torchtitan, step_host: 0}\n"
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: bf16, optimizer: none}\n"
    "parallelism: {data: 1, pipeline: 2, schedule: gpipe, partition: uniform}\n"
    "fidelity: {detail: kernel}\n";

static const double LATENCY_S = 20e-3;

/* What the latency of the network adds to an iteration. */
static double added_s(const char *settings, int microbatches) {
    static const char *const latencies[] = {"0s", "20ms"};
    double time_s[2];
    for (int i = 0; i < 2; i++) {
        char all[LONGEST_SETTINGS];
        snprintf(all, sizeof all, "%s training.global_batch=%d cluster.inter.hop_latency=%s", settings, microbatches,
                 latencies[i]);
        dts_result *r = simulate_text(base, all);
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        time_s[i] = r->iteration_time_s;
        dts_result_free(r);
    }
    return time_s[1] - time_s[0];
}

/* Once on the way to the last stage and once on the way back, however many messages follow one another. */
static void a_posted_message_does_not_wait_for_the_one_before(void **state) {
    (void)state;
    for (int microbatches = 2; microbatches <= 32; microbatches *= 4) {
        assert_close(added_s("stack.pipeline.p2p_overlap=true", microbatches), 2 * LATENCY_S, 0.05, 0);
    }
}

/* A sender that waits for each message waits for all of them. */
static void a_sender_that_waits_pays_for_every_message(void **state) {
    (void)state;
    const double few = added_s("stack.pipeline.p2p_overlap=false", 8);
    const double many = added_s("stack.pipeline.p2p_overlap=false", 32);
    assert_true(few > 8 * LATENCY_S);
    assert_close(many - few, 2 * 24 * LATENCY_S, 0.1, 0);
}

/* Inside a node there is no network to be on. */
static void a_node_has_no_such_latency(void **state) {
    (void)state;
    assert_close(added_s("cluster.nodes=1 cluster.gpus_per_node=2", 8), 0, 0, 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_posted_message_does_not_wait_for_the_one_before),
        cmocka_unit_test(a_sender_that_waits_pays_for_every_message),
        cmocka_unit_test(a_node_has_no_such_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
