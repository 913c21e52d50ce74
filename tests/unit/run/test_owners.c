/* ZeRO-1 by whole tensors: who steps them, and their broadcasts. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* Two layers of 4096 with products of 16, 48 and 64 Mi elements (attention output; queries, keys and values; each of
 * the two of the feed-forward layer), and next to nothing else. */
enum { RANKS = 8 };

static const char base[] =
    "model: {profile: gpt, layers: 2, hidden: 4096, heads: 32, vocab: 64, tied_embeddings: false, dropout: false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 512, precision: bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: zero1}\n";

static dts_result *owned(const char *settings) {
    char all[LONGEST_SETTINGS];
    snprintf(all, sizeof all, "stack.ddp.owns_tensors=true %s", settings);
    return simulate_text(base, all);
}

/* All gradients are reduced everywhere, and the owners' broadcasts bring every parameter once. */
static void owners_broadcast_what_they_step(void **state) {
    (void)state;
    dts_result *shares = simulate_text(base, "");
    dts_result *tensors = owned("");
    const double parameters_B = 2 * shares->parameters;
    assert_close(communication_row(shares, "reduce-scatter", "data")->bytes, parameters_B, 1e-6, 0);
    assert_close(communication_row(shares, "all-gather", "data")->bytes, parameters_B, 1e-6, 0);
    assert_close(communication_row(tensors, "all-reduce", "data")->bytes, parameters_B, 1e-6, 0);
    const dts_communication_row *broadcasts = communication_row(tensors, "broadcast in turn", "data");
    assert_int_equal(broadcasts->count, RANKS);
    assert_close(broadcasts->bytes, parameters_B, 1e-6, 0);
    dts_result_free(shares);
    dts_result_free(tensors);
}

/* Eight ranks for eight large tensors: the fullest has one of 64 Mi elements, of 384, and not an eighth of all. Two
 * ranks: 192 each. */
static void the_fullest_rank_decides(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double mi_elements;
    } cases[] = {{"", 64}, {"cluster.gpus_per_node=2 training.global_batch=2", 192}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_result *r = owned(cases[i].settings);
        /* bf16 without master weights: two moments of 2 bytes; small tensors fill up where there is room */
        const double states_B = r->memory_gib.optimizer * GIB;
        assert_close(states_B, cases[i].mi_elements * 1024 * 1024 * 4, 0.02, 0);
        dts_result_free(r);
    }
}

/* A ring through more nodes takes longer for each broadcast; an all-gather of shares hardly does. */
static void many_broadcasts_wait_for_the_ring(void **state) {
    (void)state;
    static const char many[] = "cluster.nodes=16 training.global_batch=128";
    dts_result *shares = simulate_text(base, many);
    dts_result *tensors = owned(many);
    const dts_communication_row *broadcasts = communication_row(tensors, "broadcast in turn", "data");
    assert_true(broadcasts->count > RANKS && broadcasts->count < 16 * RANKS); /* as many as there are tensors */
    assert_true(tensors->iteration_time_s > shares->iteration_time_s);
    assert_close(sum_of_shares(&tensors->time_s), tensors->iteration_time_s, 1e-9, 0);
    dts_result_free(shares);
    dts_result_free(tensors);
}

/* Experts of a group of one rank have nobody to send to; those of several have their own owners. */
static void experts_have_owners_of_their_own(void **state) {
    (void)state;
    static const char experts[] =
        "model: {profile: deepseek-v2-lite, layers: 4}\n"
        "cluster: {profile: dgx-h100, nodes: 1}\n"
        "stack: internevo\n"
        "training: {global_batch: 32, micro_batch: 1, sequence_length: 512, precision: bf16, optimizer: adamw}\n"
        "parallelism: {data_parallel: zero1, expert: 8}\n";
    static const char *const settings[] = {
        "",
        "fidelity.detail=block",
        "cluster.nodes=4 parallelism.shard_group=8",
        "cluster.nodes=2 parallelism.shard_group=4 parallelism.expert=4",
        "cluster.nodes=2 parallelism.pipeline=2",
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        dts_result *r = simulate_text(experts, settings[i]);
        assert_true(communication_row(r, "broadcast in turn", "data")->count > 1);
        assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
        dts_result_free(r);
    }
}

/* Expert tensors lie apart unless one kernel multiplies all of them. 8 experts of a rank in 3 layers are too many
 * tensors for 4 owners to be uneven; stacked, 3 layers of 2 or 3 tensors of unlike sizes leave one of them more than a
 * quarter.
 */
static void experts_are_tensors_each(void **state) {
    (void)state;
    static const char experts[] =
        "model: {profile: deepseek-v2-lite, layers: 4, vocab: 1024}\n"
        "cluster: {profile: dgx-h100, nodes: 4}\n"
        "stack: internevo\n"
        "training: {global_batch: 32, micro_batch: 1, sequence_length: 512, precision: bf16, optimizer: adamw}\n"
        "parallelism: {data_parallel: zero1, expert: 8}\n";
    dts_result *shares = simulate_text(experts, "stack.ddp.owns_tensors=false");
    dts_result *apart = simulate_text(experts, "");
    dts_result *stacked = simulate_text(experts, "stack.experts=grouped");
    assert_true(apart->memory_gib.optimizer > shares->memory_gib.optimizer);
    assert_true(stacked->memory_gib.optimizer > 1.1 * apart->memory_gib.optimizer);
    dts_result_free(shares);
    dts_result_free(apart);
    dts_result_free(stacked);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_broadcast_what_they_step),   cmocka_unit_test(the_fullest_rank_decides),
        cmocka_unit_test(many_broadcasts_wait_for_the_ring), cmocka_unit_test(experts_have_owners_of_their_own),
        cmocka_unit_test(experts_are_tensors_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
