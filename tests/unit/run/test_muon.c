/* Muon's step (plan/lower/muon.c). */
#include "simulate.h"

enum { LAYERS = 6, HIDDEN = 4096, FFN = 14336, KEYS = 1024, VOCAB = 32000 };

static const char base[] =
    "model: {profile: llama, layers: 6, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 32000}\n"
    "cluster: {profile: dgx-h100, nodes: 1, gpus_per_node: 1}\n"
    "stack: megatron-core-no-overlap\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 4096, precision: bf16, optimizer: muon}\n";

static const double matrices = LAYERS * (2.0 * HIDDEN * (HIDDEN + KEYS) + 3.0 * HIDDEN * FFN);

static dts_result *simulated(const char *settings) {
    return simulate_text(base, settings);
}

static double optimizer_s(const char *settings) {
    dts_result *result = simulated(settings);
    const double seconds = result->time_s.optimizer;
    dts_result_free(result);
    return seconds;
}

/* 2 m²n + 2 m³ + 2 m²n FLOP an iteration, m <= n. */
static double iteration_flops(double a, double b) {
    const double m = fmin(a, b), n = fmax(a, b);
    return 4 * m * m * n + 2 * m * m * m;
}

/* What iterations add to the step is what their FLOP take, at 50 to 80 % of the GPU's bf16 peak. */
static void iterations_take_their_flops(void **state) {
    (void)state;
    const double added_s = optimizer_s("stack.optimizer.newton_schulz_steps=25") - optimizer_s("");
    const double flops = LAYERS * (2 * iteration_flops(HIDDEN, HIDDEN) + 2 * iteration_flops(KEYS, HIDDEN) +
                                   iteration_flops(2 * FFN, HIDDEN) + iteration_flops(HIDDEN, FFN));
    const double share = 20 * flops / added_s / 989.4e12;
    assert_true(share > 0.5 && share < 0.8);
}

/* Parameters 2, gradients 4, master copy 4, momentum 4; AdamW's second moment, 4, for the rest. */
static void matrices_have_one_moment(void **state) {
    (void)state;
    dts_result *muon = simulated(""), *adamw = simulated("training.optimizer=adamw");
    const double GiB = 1024.0 * 1024 * 1024;
    assert_close((adamw->memory_gib.optimizer - muon->memory_gib.optimizer) * GiB, 4 * matrices, 1e-9, 0);
    assert_close(adamw->memory_gib.parameters, muon->memory_gib.parameters, 0, 0);
    dts_result_free(muon);
    dts_result_free(adamw);
}

/* Replicas repeat the step, ZeRO-1 shares it: 24 matrices of four sizes among eight ranks, of which the fullest has
 * three down projections and keeps their states beside an eighth of all else; gradients and parameters go as with Adam.
 */
static void zero1_shares_the_step(void **state) {
    (void)state;
    const double alone_s = optimizer_s(""), replicas_s = optimizer_s("cluster.gpus_per_node=8");
    const double shared_s = optimizer_s("cluster.gpus_per_node=8 parallelism.data_parallel=zero1");
    assert_close(replicas_s, alone_s, 0.03, 0);
    assert_true(shared_s > alone_s / 8 && shared_s < alone_s / 3);
    dts_result *result = simulated("cluster.gpus_per_node=8 parallelism.data_parallel=zero1");
    const double others = result->parameters - matrices, owned = 3.0 * HIDDEN * FFN;
    const double GiB = 1024.0 * 1024 * 1024;
    assert_close(result->memory_gib.optimizer * GiB, 8 * owned + 12 * others / 8, 1e-6, 0);
    const dts_communication_row *gather = communication_row(result, "all-gather", "data");
    assert_int_equal(gather->count, 1);
    assert_close(gather->bytes, 2 * result->parameters, 1e-6, 0);
    assert_non_null(communication_row(result, "reduce-scatter", "data"));
    dts_result_free(result);
}

/* Queries, keys and values of one weight are three small matrices, or one that is a quarter larger than the queries'.
 */
static void keys_and_values_are_matrices_of_their_own(void **state) {
    (void)state;
    const double whole_s = optimizer_s("stack.optimizer.splits_qkv=false"), parts_s = optimizer_s("");
    const double flops = 5 * LAYERS *
                         (iteration_flops(HIDDEN + 2 * KEYS, HIDDEN) - iteration_flops(HIDDEN, HIDDEN) -
                          2 * iteration_flops(KEYS, HIDDEN));
    assert_close(whole_s - parts_s, flops / 650e12, 0.35, 0);
}

/* One replica of all but the experts, of which there are four: these are shared, all else is stepped by everybody. */
static void experts_have_replicas_of_their_own(void **state) {
    (void)state;
    static const char experts[] =
        "model=mixtral-8x7b model.layers=4 cluster.gpus_per_node=8 parallelism.tensor=8 parallelism.sequence=true "
        "parallelism.expert=2 parallelism.expert_tensor=1 parallelism.data_parallel=";
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%sddp", experts);
    const double all_s = optimizer_s(settings);
    snprintf(settings, sizeof settings, "%szero1", experts);
    assert_true(optimizer_s(settings) < all_s / 3);
}

/* Shards come together in bfloat16 and go back: two all-to-alls of what a rank has of the matrices. */
static void shards_meet_on_their_owners(void **state) {
    (void)state;
    dts_result *result = simulated("cluster.gpus_per_node=8 parallelism.data_parallel=fsdp stack=torchtitan");
    const dts_communication_row *row = communication_row(result, "all-to-all", "data");
    assert_non_null(row);
    assert_int_equal(row->count, 2);
    assert_close(row->bytes, 2 * 2 * matrices / 8, 1e-9, 0);
    dts_result_free(result);
}

/* Small matrices are launched for longer than they run: 26 kernels each. */
static void the_host_launches_every_kernel(void **state) {
    (void)state;
    static const char small[] =
        "model.hidden=256 model.heads=4 model.kv_heads=4 model.ffn_hidden=768 model.layers=48 "
        "training.sequence_length=64";
    dts_result *result = simulated(small);
    const double launches = 48 * 4 * 26;
    assert_true(result->time_s.optimizer + result->time_s.host_bound > 0.9 * launches * 3e-6);
    dts_result_free(result);
}

static size_t iterations_of_step(const char *settings) {
    dts_result *result = simulated(settings);
    size_t count = 0;
    for (size_t i = 0; i < result->span_count; i++) {
        count += result->spans[i].name != NULL && strcmp(result->spans[i].name, "newton_schulz") == 0;
    }
    dts_result_free(result);
    return count;
}

/* A layer has four weights: attention in and out, feed-forward block up and down. A task stands for each of few, and 32
 * for all of many. */
static void few_tasks_stand_for_many_matrices(void **state) {
    (void)state;
    assert_int_equal(iterations_of_step("model.layers=2"), 2 * 4);
    assert_int_equal(iterations_of_step("model.layers=16"), 32);
}

static void what_cannot_be_stepped_is_refused(void **state) {
    (void)state;
    dts_text messages = {0};
    const dts_run_options options = {0};
    simulate_with(&options, NULL, base, "cluster.gpus_per_node=8 parallelism.data_parallel=zero2", DTS_INVALID,
                  &messages);
    assert_non_null(strstr(dts_text_string(&messages), "muon with ZeRO-2 is not simulated"));
    simulate_with(&options, NULL, base, "offload.optimizer=cpu", DTS_INVALID, &messages);
    assert_non_null(strstr(dts_text_string(&messages), "its step on the CPU is not simulated"));
    dts_text_free(&messages);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(iterations_take_their_flops),
                                       cmocka_unit_test(matrices_have_one_moment),
                                       cmocka_unit_test(keys_and_values_are_matrices_of_their_own),
                                       cmocka_unit_test(experts_have_replicas_of_their_own),
                                       cmocka_unit_test(zero1_shares_the_step),
                                       cmocka_unit_test(shards_meet_on_their_owners),
                                       cmocka_unit_test(the_host_launches_every_kernel),
                                       cmocka_unit_test(few_tasks_stand_for_many_matrices),
                                       cmocka_unit_test(what_cannot_be_stepped_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
