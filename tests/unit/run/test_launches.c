/* When the host launches: beside the GPU, behind it (CUDA_LAUNCH_BLOCKING), and in step with other stages. */
#include "simulate.h"

static const char *const single =
    "model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 51200}\n"
    "cluster: {profile: a100-40gb-single}\n"
    "stack: {profile: megatron-lm, step_host: 0 s}\n"
    "training: {sequence_length: 1024, micro_batch: 4, global_batch: 8, precision: amp-fp16, optimizer: adamw}\n";

static const char *const tensor =
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 51200}\n"
    "cluster: {profile: dgx-a100-40gb}\n"
    "stack: {profile: megatron-lm, step_host: 0 s}\n"
    "training: {sequence_length: 1024, micro_batch: 2, global_batch: 16, precision: amp-fp16, optimizer: adamw, "
    "recompute: full}\n"
    "parallelism: {tensor: 4, pipeline: 2}\n";

static dts_time_shares shares_of(const char *text, const char *settings, double *iteration_s) {
    dts_result *result = simulate_text(text, settings);
    dts_time_shares shares = result->time_s;
    *iteration_s = result->iteration_time_s;
    dts_result_free(result);
    return shares;
}

/* Every launch waits for the kernel before it: they add up, kernels + N launches of L, and N does not depend on L. */
static void blocking_launches_add_up(void **state) {
    (void)state;
    double none_s = 0, one_s = 0, two_s = 0, free_s = 0;
    shares_of(single, "cluster.host.launch_blocking=true stack.launch=0us stack.backward_launch=0us", &none_s);
    dts_time_shares shares =
        shares_of(single, "cluster.host.launch_blocking=true stack.launch=10us stack.backward_launch=10us", &one_s);
    shares_of(single, "cluster.host.launch_blocking=true stack.launch=20us stack.backward_launch=20us", &two_s);
    shares_of(single, "stack.launch=0us stack.backward_launch=0us", &free_s);
    assert_close(none_s, free_s, 1e-9, 0);
    double launches = (one_s - none_s) / 10e-6;
    assert_true(launches > 200);
    assert_close(launches, round(launches), 0, 1e-6 * launches);
    assert_close(two_s - one_s, one_s - none_s, 1e-6, 0);
    assert_true(shares.host_bound > 0.8 * (one_s - none_s) && shares.host_bound <= one_s - none_s + 1e-9);
}

/* A pass as one task has the same launches inside, and the same waits for them. */
static void blocks_block_too(void **state) {
    (void)state;
    double kernel_s = 0, block_s = 0, free_s = 0;
    dts_time_shares kernel =
        shares_of(tensor, "cluster.host.launch_blocking=true stack.launch=50us fidelity.detail=kernel", &kernel_s);
    dts_time_shares block =
        shares_of(tensor, "cluster.host.launch_blocking=true stack.launch=50us fidelity.detail=block", &block_s);
    shares_of(tensor, "stack.launch=50us", &free_s);
    assert_true(kernel_s > 1.1 * free_s);
    assert_close(block_s, kernel_s, 2e-3, 0);
    assert_close(block.compute, kernel.compute, 2e-3, 0);
    assert_close(block.exposed_communication, kernel.exposed_communication, 1e-2, 0);
    /* a wait for the other stage's launches counts as one for the host, inside a block as a bubble */
    assert_close(block.host_bound, kernel.host_bound, 0.06, 0);
}

/* The training loop's own work begins where the GPU has come to the last launch of a pass, however coarse that is; and
 * what is launched behind the kernel before it cannot be issued in turns. */
static void blocking_launches_hold_the_training_loop(void **state) {
    (void)state;
    static const char *const settings =
        "cluster.host.launch_blocking=true stack.step_host=5ms parallelism.tensor=2 parallelism.pipeline=1 "
        "training.global_batch=8 ";
    double times_s[3];
    static const char *const details[] = {"kernel", "layer", "block"};
    for (int i = 0; i < 3; i++) {
        char all[LONGEST_SETTINGS];
        snprintf(all, sizeof all, "%sfidelity.detail=%s", settings, details[i]);
        shares_of(tensor, all, &times_s[i]);
        assert_close(times_s[i], times_s[0], 1e-3, 0);
    }
    double turns_s = 0, free_s = 0;
    static const char *const dualpipe = "parallelism.schedule=dualpipe parallelism.tensor=2 ";
    char blocking[LONGEST_SETTINGS];
    snprintf(blocking, sizeof blocking, "%scluster.host.launch_blocking=true", dualpipe);
    shares_of(tensor, blocking, &turns_s);
    shares_of(tensor, dualpipe, &free_s);
    assert_true(turns_s > free_s);
}

/* Slow hosts that wait for what their stage receives take turns: n microbatches pass p stages in n + p - 1 times the
 * host's time for one, where hosts that run ahead need n. */
static void waiting_hosts_take_turns(void **state) {
    (void)state;
    const char *slow =
        "training.micro_batch=1 parallelism.tensor=1 model.vocab=1024 stack.launch=2ms "
        "stack.backward_launch=2ms";
    char settings[512];
    double times_s[3];
    const char *runs[] = {"training.global_batch=16 stack.pipeline.host_waits=true",
                          "training.global_batch=32 stack.pipeline.host_waits=true",
                          "training.global_batch=16 stack.pipeline.host_waits=false"};
    for (int i = 0; i < 3; i++) { /* 4, 8 and 4 microbatches of each of 4 replicas */
        snprintf(settings, sizeof settings, "%s %s", slow, runs[i]);
        shares_of(tensor, settings, &times_s[i]);
    }
    double one_s = (times_s[1] - times_s[0]) / 4;
    assert_close(times_s[0] - times_s[2], one_s, 0.15, 0);
    assert_close(times_s[0], (4 + 2 - 1) * one_s, 0.05, 0);
}

/* A GPU that is never short of launches has to wait for one at the beginning of each microbatch, if the host has waited
 * for it there: shorter launches than the shortest kernel, one a microbatch. */
static void microbatches_begin_with_an_idle_gpu(void **state) {
    (void)state;
    const char *fast = "stack.launch=1us stack.backward_launch=1us training.global_batch";
    char settings[300];
    double times_s[2][2];
    for (int waits = 0; waits < 2; waits++) {
        for (int i = 0; i < 2; i++) {
            snprintf(settings, sizeof settings, "stack.batch_waits=%s %s=%d", waits ? "true" : "false", fast,
                     i == 0 ? 4 : 32);
            shares_of(single, settings, &times_s[waits][i]);
        }
    }
    assert_close(times_s[1][0], times_s[0][0], 1e-9, 0);
    assert_close(times_s[1][1] - times_s[0][1], 7 * 1e-6, 1e-6, 0);
}

/* One process drives both ranks that hold a stage: it issues their collective for both before it waits for that. */
static void one_process_issues_for_both_copies(void **state) {
    (void)state;
    static const char *const both =
        "model: {profile: llama-moe, layers: 8, hidden: 512, heads: 8, vocab: 32000, ffn_hidden: 1024, experts: 4, "
        "experts_per_token: 2, expert_ffn_hidden: 512, moe_every: 1}\n"
        "cluster: {profile: dgx-a100-40gb}\n"
        "stack: {profile: pytorch-1.11}\n"
        "training: {sequence_length: 256, micro_batch: 1, global_batch: 16, precision: fp32, optimizer: adamw}\n"
        "parallelism: {pipeline: 2, virtual_stages: 2, schedule: dualpipe, expert: 2, data_parallel: zero1}\n";
    double ahead_s = 0, behind_s = 0;
    shares_of(both, "", &ahead_s);
    shares_of(both, "cluster.host.launch_blocking=true", &behind_s);
    assert_true(behind_s > ahead_s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocking_launches_add_up),
        cmocka_unit_test(blocks_block_too),
        cmocka_unit_test(blocking_launches_hold_the_training_loop),
        cmocka_unit_test(waiting_hosts_take_turns),
        cmocka_unit_test(microbatches_begin_with_an_idle_gpu),
        cmocka_unit_test(one_process_issues_for_both_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
