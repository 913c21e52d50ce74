/* Orders for the plan's own passes: what they are made for, that every detail has the same, and what a split backward
 * keeps between its halves. */
#include <stdlib.h>
#include <unistd.h>

#include "plan/lower/measured_passes.h"
#include "simulate.h"

/* The 6.2B model of Zero Bubble (arXiv 2401.10241), whose first and last stage have a layer less, in a microbatch of
 * one sample. */
static const char *const zero_bubble =
    "model: {profile: gpt, layers: 30, hidden: 4096, heads: 32, ffn_hidden: 16384, vocab: 50304}\n"
    "cluster: {profile: a100-80gb-roce-zb, nodes: 1, gpus_per_node: 8}\n"
    "stack: {profile: zero-bubble, pipeline: {p2p_sms: 0, p2p_node_sms: 0}}\n" /* passes are timed alone */
    "training: {sequence_length: 1024, micro_batch: 1, global_batch: 32, precision: amp-fp16}\n"
    "parallelism: {tensor: 1, pipeline: 8, schedule: zb-2p}\n";

/* sbh of one sample: 1024 tokens of 4096 features. */
static const double tokens_features = 1024.0 * 4096;

typedef struct planned {
    dts_scenario *scenario;
    dts_job job;
    dts_arena *arena;
    dts_plan plan;
} planned;

static void plan_text(const char *text, const char *settings, planned *out) {
    char copy[LONGEST_SETTINGS];
    snprintf(copy, sizeof copy, "%s", settings);
    dts_override overrides[MOST_OVERRIDES];
    const size_t count = split_settings(copy, overrides);
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    out->scenario = NULL;
    assert_ok(dts_scenario_parse(text, strlen(text), "test", overrides, count, &profiles, &out->scenario, diag), diag);
    out->job = dts_scenario_job(dts_scenario_get(out->scenario));
    out->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    diag = dts_diag_new();
    assert_ok(dts_lower_plan(&out->job, out->arena, &out->plan, diag), diag);
}

static void planned_free(planned *p) {
    dts_arena_free(p->arena);
    dts_scenario_free(p->scenario);
}

/* The repository's own profile of this model, MB of its ranks: 943, 1240 and 1071 by F, of which B frees 533, 688 and
 * 588 (auto_schedule.py in its main part; the first rank's is what its first version makes orders for). */
static void memory_is_as_the_repository_measured(void **state) {
    (void)state;
    planned p;
    plan_text(zero_bubble, "", &p);
    assert_close(p.plan.schedule.shape.input_frees, 533.0 / 943, 0.003, 0);
    planned_free(&p);
}

static double kernels_s(const dts_result *r, dts_span_kind kind, uint32_t device) {
    double sum = 0;
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *s = &r->spans[i];
        sum += s->kind == kind && s->device == device ? dts_time_to_s(s->end - s->start) : 0;
    }
    return sum;
}

/* A middle stage's passes in the run itself: 32 microbatches, kernels one behind the other. */
static void times_are_those_of_a_middle_stage(void **state) {
    (void)state;
    planned p;
    plan_text(zero_bubble, "", &p);
    dts_result *r = simulate_text(zero_bubble, "fidelity.detail=kernel");
    const dts_schedule_shape *s = &p.plan.schedule.shape;
    assert_close(s->forward, kernels_s(r, DTS_SPAN_FORWARD, 4) / 32, 0.01, 0);
    assert_close(s->backward_input, kernels_s(r, DTS_SPAN_BACKWARD, 4) / 32, 0.01, 0);
    assert_close(s->backward_weight, kernels_s(r, DTS_SPAN_BACKWARD_WEIGHT, 4) / 32, 0.01, 0);
    assert_true(s->latency > 100e-6 && s->latency < 1e-3); /* 2 · 4.2 M bytes over a measured link */
    dts_result_free(r);
    planned_free(&p);
}

static bool same_orders(const dts_schedule *a, const dts_schedule *b) {
    for (int rank = 0; rank < a->shape.stages; rank++) {
        if (a->op_count[rank] != b->op_count[rank] ||
            memcmp(a->ops[rank], b->ops[rank], a->op_count[rank] * sizeof **a->ops) != 0) {
            return false;
        }
    }
    return true;
}

/* schedule_costs: equal is the order that `dtsim schedule` draws; other schedules have no costs. */
static void equal_costs_can_be_asked_for(void **state) {
    (void)state;
    static const char *const names[] = {"zb1p-heuristic", "zb2p-heuristic", "zbv-heuristic"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        planned equal, measured;
        char settings[100];
        snprintf(settings, sizeof settings, "parallelism.schedule=%s parallelism.schedule_costs=equal", names[i]);
        plan_text(zero_bubble, settings, &equal);
        snprintf(settings, sizeof settings, "parallelism.schedule=%s", names[i]);
        plan_text(zero_bubble, settings, &measured);
        const dts_schedule_shape shape = {.stages = 8,
                                          .microbatches = 32,
                                          .chunks = (int)equal.plan.virtual_stages,
                                          .forward = 1,
                                          .backward_input = 1,
                                          .backward_weight = 1};
        dts_schedule drawn;
        dts_diag *diag = dts_diag_new();
        assert_ok(dts_schedule_build(names[i], &shape, equal.arena, &drawn, diag), diag);
        assert_true(same_orders(&equal.plan.schedule, &drawn));
        assert_false(same_orders(&measured.plan.schedule, &drawn));
        planned_free(&equal);
        planned_free(&measured);
    }
}

/* The order does not depend on how finely it is simulated, and no detail finds another peak of memory. */
static void every_detail_has_the_same_order(void **state) {
    (void)state;
    dts_result *kernel = simulate_text(zero_bubble, "fidelity.detail=kernel");
    static const char *const details[] = {"fidelity.detail=layer", "fidelity.detail=block"};
    for (size_t i = 0; i < 2; i++) {
        dts_result *coarse = simulate_text(zero_bubble, details[i]);
        assert_close(coarse->iteration_time_s, kernel->iteration_time_s, 0.005, 0);
        for (size_t p = 0; p < kernel->stage_count; p++) {
            assert_close(coarse->stages[p].peak_allocated_gib, kernel->stages[p].peak_allocated_gib, 1e-6, 0);
        }
        dts_result_free(coarse);
    }
    dts_result_free(kernel);
}

/* Recomputation in full leaves checkpoints, which B turns into what W needs: (1) of lower/measured_passes.c is far
 * below 0. */
static void checkpoints_grow_in_backward(void **state) {
    (void)state;
    planned p;
    plan_text(zero_bubble, "training.recompute=full", &p);
    const double left = 3 * 2 + 1, sent = 2, weights = 3 * 32; /* sbh of the first stage's layers, and a mask */
    assert_close(p.plan.schedule.shape.input_frees, 1 - (weights + sent) / (left + sent), 0.01, 0);
    planned_free(&p);
    dts_result *r = simulate_text(zero_bubble, "training.recompute=full");
    assert_true(r->peak_allocated_gib > 0);
    dts_result_free(r);
}

static double first_stage_gib(const char *order) {
    char folder[] = "/tmp/dtsim-order-XXXXXX";
    char path[sizeof folder + 10], settings[LONGEST_SETTINGS];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/order.csv", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n1F0,1I0,1W0,1F1,1I1,1W1\n", order);
    fclose(file);
    snprintf(
        settings, sizeof settings,
        "training.micro_batch=4 training.global_batch=8 parallelism.pipeline=2 cluster.gpus_per_node=2 model.layers=8 "
        "stack.optimizer.post_validation=false parallelism.partition=uniform parallelism.schedule=%s",
        path);
    dts_result *r = simulate_text(zero_bubble, settings);
    const double gib = r->stages[0].memory_gib.activations;
    dts_result_free(r);
    unlink(path);
    rmdir(folder);
    return gib;
}

/* Between B and W a layer keeps the inputs of its products, 2 + 2 + 2 + 8 sbh bytes, and the gradients of their
 * outputs, 6 + 2 + 8 + 2: 32 sbh, the authors' number. Queries, keys and values are gone. Four layers, four samples. */
static void split_halves_keep_32_sbh(void **state) {
    (void)state;
    static const double GIB = 1024.0 * 1024.0 * 1024.0;
    const double one_by_one = first_stage_gib("0F0,0I0,0W0,0F1,0I1,0W1");
    const double w_later = first_stage_gib("0F0,0I0,0F1,0I1,0W0,0W1");
    assert_close((w_later - one_by_one) * GIB, 4 * 4 * 32 * tokens_features, 1e-9, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_as_the_repository_measured), cmocka_unit_test(times_are_those_of_a_middle_stage),
        cmocka_unit_test(equal_costs_can_be_asked_for),         cmocka_unit_test(every_detail_has_the_same_order),
        cmocka_unit_test(checkpoints_grow_in_backward),         cmocka_unit_test(split_halves_keep_32_sbh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
