/* Post-validation: iterations of stages that do not wait for each other's steps, against closed forms. */
#include <math.h>

#include "simulate.h"

/* Four equal stages: layers so large that embedding, head, step and the floor of small kernels hardly count. */
static const char *const base =
    "model: {profile: gpt, layers: 16, hidden: 8192, heads: 64, vocab: 8, max_positions: 4096, tied_embeddings: "
    "false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 4096, precision: bf16, optimizer: sgd}\n"
    "parallelism: {pipeline: 4, partition: uniform, schedule: zb-h2}\n";

#define PURE                                                                                     \
    "stack.zero_grad_to_none=false stack.launch=0 stack.backward_launch=0 stack.step_host=0 "    \
    "stack.pipeline.chunk_kernels=0 stack.pipeline.p2p_overlap=true stack.persistent_norm=true " \
    "cluster.intra.p2p_latency=0 cluster.intra.base_latency=0 cluster.intra.hop_latency=0 "      \
    "cluster.intra.fill_latency=0 cluster.intra.bandwidth=900000GB/s cluster.intra.efficiency=1 "

#define BARRIER  PURE "stack.optimizer.post_validation=false "
#define VALIDATE PURE "stack.optimizer.post_validation=true "

enum { STAGES = 4, MICROBATCHES = 16 };

/* Of one microbatch on a stage, and of a step, seconds. */
typedef struct pass_times {
    double forward, input, weight, step;
} pass_times;

static pass_times times_of(const dts_result *r) {
    pass_times t = {0};
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *s = &r->spans[i];
        double length = dts_time_to_s(s->end - s->start) / STAGES;
        t.forward += s->kind == DTS_SPAN_FORWARD ? length / MICROBATCHES : 0;
        t.input += s->kind == DTS_SPAN_BACKWARD ? length / MICROBATCHES : 0;
        t.weight += s->kind == DTS_SPAN_BACKWARD_WEIGHT ? length / MICROBATCHES : 0;
        t.step += s->kind == DTS_SPAN_OPTIMIZER ? length : 0;
    }
    return t;
}

/* When a stage's first pass begins, and its last kernel ends, seconds. */
static double first_start(const dts_result *r, uint32_t stage) {
    double first = INFINITY;
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *s = &r->spans[i];
        bool own = s->device == stage && s->kind == DTS_SPAN_FORWARD;
        first = own ? fmin(first, dts_time_to_s(s->start)) : first;
    }
    return first;
}

/* The schedule's textbook bubble is that of one stage's span, and nothing else is lost; with a barrier the pipeline has
 * to fill in every iteration, too. */
static void the_iteration_is_the_span_of_a_stage(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, VALIDATE);
    dts_result *barrier = simulate_text(base, BARRIER);
    pass_times t = times_of(r);
    double work = MICROBATCHES * (t.forward + t.input + t.weight) + t.step;
    double bubble = (STAGES - 1) * fmax(0, t.forward + t.input - 2 * t.weight);
    assert_close(r->iteration_time_s, work + bubble, 0.008, 0);
    assert_close(barrier->iteration_time_s, work + (STAGES - 1) * t.forward, 0.003, 0); /* the last stage's */
    assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-9, 0);
    dts_result_free(barrier);
    dts_result_free(r);
}

static void stages_begin_one_after_another(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, VALIDATE);
    pass_times t = times_of(r);
    for (uint32_t p = 0; p + 1 < STAGES; p++) {
        assert_close(first_start(r, p + 1) - first_start(r, p), t.forward, 0.05, 0);
    }
    for (size_t p = 0; p < r->stage_count; p++) { /* idle in its own iteration, not before and behind it */
        assert_close(r->stages[p].bubble_fraction, 1 - r->stages[p].compute_s / r->iteration_time_s, 0, 0.01);
    }
    dts_result_free(r);
}

/* The first and the last stage add up the gradients of a tied embedding before they step: the last one's part comes
 * before all other weight gradients that are left over, else the first would wait for the end of the last. */
static void a_tied_embedding_does_not_hold_the_first_stage(void **state) {
    (void)state;
    dts_result *untied = simulate_text(base, VALIDATE);
    dts_result *tied = simulate_text(base, VALIDATE "model.tied_embeddings=true");
    assert_close(tied->iteration_time_s, untied->iteration_time_s, 0.003, 0);
    dts_result_free(tied);
    dts_result_free(untied);
}

static void blocks_agree_with_kernels(void **state) {
    (void)state;
    const char *const tied = VALIDATE "model.tied_embeddings=true model.vocab=50304 fidelity.detail=kernel";
    const char *const coarse = VALIDATE "model.tied_embeddings=true model.vocab=50304 fidelity.detail=block";
    dts_result *kernels = simulate_text(base, tied);
    dts_result *blocks = simulate_text(base, coarse);
    assert_close(blocks->iteration_time_s, kernels->iteration_time_s, 0.001, 0);
    assert_close(blocks->peak_allocated_gib, kernels->peak_allocated_gib, 0.001, 0);
    dts_result_free(blocks);
    dts_result_free(kernels);
}

static void every_rank_by_itself_agrees(void **state) {
    (void)state;
    const char *const eight = VALIDATE "cluster.gpus_per_node=8 training.global_batch=32 fidelity.ranks=folded";
    const char *const full = VALIDATE "cluster.gpus_per_node=8 training.global_batch=32 fidelity.ranks=full";
    dts_result *one = simulate_text(base, eight);
    dts_result *all = simulate_text(base, full);
    assert_close(all->iteration_time_s, one->iteration_time_s, 1e-5, 0);
    dts_result_free(all);
    dts_result_free(one);
}

/* It ends with the stage that begins first, whose iteration is not shifted. */
static void the_critical_path_is_one_iteration_long(void **state) {
    (void)state;
    const dts_run_options options = {.explain = true};
    dts_result *r = simulate_with(&options, NULL, base, VALIDATE "model.vocab=50304", DTS_OK, NULL);
    double sum = 0;
    for (size_t i = 0; i < r->explanation->path_count; i++) {
        sum += r->explanation->path[i].total_s;
    }
    assert_close(sum, r->iteration_time_s, 1e-5, 0);
    for (size_t i = 0; i < r->explanation->kernel_count; i++) {
        assert_string_not_equal(r->explanation->kernels[i].name, "iteration before");
    }
    dts_result_free(r);
}

/* A tied embedding between nodes couples the ends of the pipeline alone, and the stages' iterations alternate: their
 * mean is what repeats, and the shares of any stage make it up. */
static void alternating_iterations_settle(void **state) {
    (void)state;
    static const char *const alternating =
        "stack: zero-bubble\n"
        "model: {profile: gpt, layers: 12, hidden: 256, heads: 8, vocab: 32000, ffn_hidden: 768, experts: 8, "
        "experts_per_token: 2, expert_ffn_hidden: 128, shared_expert_ffn_hidden: 256, moe_every: 1, "
        "capacity_factor: 1}\n"
        "cluster: {profile: gcp-a2-highgpu-8g, nodes: 4, gpus_per_node: 1}\n"
        "training: {global_batch: 56, micro_batch: 7, sequence_length: 128, precision: amp-bf16, optimizer: adam}\n"
        "parallelism: {pipeline: 4, schedule: zb1p-heuristic, partition: balanced, data_parallel: zero3, "
        "reshard_after_forward: false}\n";
    const dts_run_options options = {.explain = true};
    dts_result *r = simulate_with(&options, NULL, alternating, "", DTS_OK, NULL);
    assert_close(sum_of_shares(&r->time_s), r->iteration_time_s, 1e-5, 0);
    double sum = 0;
    for (size_t i = 0; i < r->explanation->path_count; i++) {
        sum += r->explanation->path[i].total_s;
    }
    assert_close(sum, r->iteration_time_s, 1e-5, 0);
    dts_result_free(r);
}

/* Only schedules that are made for it, and only where there is something to wait for. */
static void other_schedules_wait(void **state) {
    (void)state;
    static const char *const others[] = {"parallelism.schedule=1f1b", "stack.optimizer.gradient_clipping=false"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char with[LONGEST_SETTINGS], without[LONGEST_SETTINGS];
        snprintf(with, sizeof with, "%s%s", VALIDATE, others[i]);
        snprintf(without, sizeof without, "%s%s", BARRIER, others[i]);
        dts_result *a = simulate_text(base, with);
        dts_result *b = simulate_text(base, without);
        assert_true(a->iteration_time_s == b->iteration_time_s);
        dts_result_free(a);
        dts_result_free(b);
    }
}

/* Nothing is validated where nothing steps: the iteration ends for all stages at once. */
static void without_a_step_all_end_together(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, VALIDATE "training.optimizer=none ");
    dts_result *barrier = simulate_text(base, BARRIER "training.optimizer=none ");
    assert_close(r->iteration_time_s, barrier->iteration_time_s, 0, 0);
    assert_close(first_start(r, STAGES - 1) - first_start(r, 0), first_start(barrier, STAGES - 1), 0, 1e-12);
    dts_result_free(barrier);
    dts_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_iteration_is_the_span_of_a_stage),
        cmocka_unit_test(stages_begin_one_after_another),
        cmocka_unit_test(a_tied_embedding_does_not_hold_the_first_stage),
        cmocka_unit_test(blocks_agree_with_kernels),
        cmocka_unit_test(every_rank_by_itself_agrees),
        cmocka_unit_test(the_critical_path_is_one_iteration_long),
        cmocka_unit_test(alternating_iterations_settle),
        cmocka_unit_test(other_schedules_wait),
        cmocka_unit_test(without_a_step_all_end_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
