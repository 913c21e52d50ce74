/* Where the time goes, where the iteration ends with the step of another stage. */
#include "simulate.h"

/* The first stage has a third more parameters than the last, which has the longer passes: the last reduces and steps
 * beside the first's reduction, and waits for that and the first's step. */
static const char *const uneven =
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 65536, max_positions: 1024, tied_embeddings: "
    "false}\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 2}\n"
    "stack: {profile: megatron-core, optimizer: {gradient_clipping: false}}\n"
    "training: {global_batch: 64, micro_batch: 2, sequence_length: 1024, precision: bf16, optimizer: adamw}\n"
    "parallelism: {pipeline: 2, partition: [5,3], data_parallel: ddp, order: tensor-pipeline-data}\n";

/* Its kernels, and its reduction, s. */
static double of_stage(const dts_result *r, uint32_t device, const char *role, const char *streams) {
    double sum_s = 0;
    for (size_t i = 0; i < r->task_count; i++) {
        const dts_task_row *task = &r->tasks[i];
        const bool counts = task->device == device && strcmp(task->role, role) == 0;
        sum_s += counts && strcmp(task->streams, streams) == 0 ? dts_time_to_s(task->end - task->start) : 0;
    }
    return sum_s;
}

static void another_stages_step_counts_once(void **state) {
    (void)state;
    const dts_run_options options = {.graph = true};
    dts_result *r = simulate_with(&options, NULL, uneven, "", DTS_OK, NULL);
    const double first_s = of_stage(r, 0, "optimizer", "compute"), last_s = of_stage(r, 1, "optimizer", "compute");
    const dts_communication_row *reduction = communication_row(r, "all-reduce", "data");
    print_message("steps of %.2f and %.2f ms, optimizer %.2f ms; reduction %.1f ms, exposed %.1f, awaited %.1f\n",
                  1e3 * first_s, 1e3 * last_s, 1e3 * r->time_s.optimizer, 1e3 * reduction->total_s,
                  1e3 * reduction->exposed_s, 1e3 * reduction->awaited_s);
    assert_true(first_s > 1.3 * last_s);
    assert_close(r->time_s.optimizer, first_s, 1e-3, 0);
    assert_close(reduction->total_s, of_stage(r, 1, "communication", "data collectives"), 1e-9, 0);
    assert_true(reduction->exposed_s > 0.95 * reduction->total_s && reduction->exposed_s < reduction->total_s);
    /* the first stage's reduction ends so much later */
    assert_close(reduction->awaited_s, of_stage(r, 0, "communication", "data collectives") - reduction->total_s, 0.1,
                 0);
    dts_result_free(r);
}

/* Four microbatches go up, and their gradients come back: what waits for a transfer, or passes the network behind it,
 * is none. */
static void what_waits_for_a_transfer_is_none(void **state) {
    (void)state;
    static const char *const settings[] = {"", "stack.profile=megatron-lm", "parallelism.order=tensor-data-pipeline",
                                           "parallelism.order=tensor-data-pipeline fidelity.detail=block"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        dts_result *r = simulate_text(uneven, settings[i]);
        assert_int_equal(communication_row(r, "send-recv", "pipeline")->count, 8);
        dts_result_free(r);
    }
}

/* The second stage waits for the first forward pass of the first, whose host is slower than its kernels: for a pass. */
static void anothers_launches_are_bubble(void **state) {
    (void)state;
    static const char *const details[] = {"kernel", "layer", "block"};
    for (size_t i = 0; i < sizeof details / sizeof details[0]; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "training.sequence_length=128 stack.launch=50us fidelity.detail=%s",
                 details[i]);
        dts_result *r = simulate_text(uneven, settings);
        const double bubble_s = r->stages[1].bubble_fraction * r->iteration_time_s;
        print_message("%s: stage 1 waits %.3f ms for passes\n", details[i], 1e3 * bubble_s);
        assert_true(bubble_s > 5 * 12 * 50e-6); /* five layers of more than twelve kernels */
        dts_result_free(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_stages_step_counts_once),
        cmocka_unit_test(what_waits_for_a_transfer_is_none),
        cmocka_unit_test(anothers_launches_are_bubble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
