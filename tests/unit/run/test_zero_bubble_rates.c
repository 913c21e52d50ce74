/* Orders for the times that the authors of Zero Bubble measured have the bubble rates that they publish: table 5 of
 * arXiv 2401.10241, with the times and the formulas of memory behind it in sail-sg/zero-bubble-pipeline-parallelism,
 * megatron/core/pipeline_parallel/efficiency.py. */
#include <math.h>

#include "check.h"
#include "run/ideal.h"

typedef struct setting {
    int stages, microbatches;
    double forward, backward_input, backward_weight, transfer; /* us */
    int hidden, heads;
    double rate[5]; /* by column */
} setting;

static const char *const columns[] = {"1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p"};
enum { ZB_1P = 3, ZB_2P, COLUMNS };

static const setting settings[] = {
    {8, 24, 18522, 18086, 9337, 601, 2304, 24, {0.2431, 0.1585, 0.1083, 0.1585, 0.0433}},
    {8, 32, 18513, 18086, 9331, 626, 2304, 24, {0.1985, 0.1242, 0.0837, 0.1242, 0.0039}},
    {8, 64, 18546, 18097, 9321, 762, 2304, 24, {0.1240, 0.0674, 0.0444, 0.0674, 0.0026}},
    {8, 24, 29718, 29444, 19927, 527, 4096, 32, {0.2347, 0.1323, 0.0698, 0.1323, 0.0029}},
    {8, 32, 29802, 29428, 19530, 577, 4096, 32, {0.1898, 0.1045, 0.0559, 0.1045, 0.0022}},
    {8, 64, 29935, 29621, 19388, 535, 4096, 32, {0.1091, 0.0554, 0.0294, 0.0554, 0.0010}},
    {16, 48, 11347, 11248, 8132, 377, 5120, 40, {0.2552, 0.1397, 0.0672, 0.1397, 0.0066}},
    {16, 64, 11307, 11254, 8101, 379, 5120, 40, {0.2082, 0.1088, 0.0516, 0.1088, 0.0054}},
    {16, 128, 11325, 11308, 8109, 378, 5120, 40, {0.1251, 0.0576, 0.0266, 0.0576, 0.0028}},
    {32, 96, 10419, 10207, 7715, 408, 6144, 48, {0.2646, 0.1421, 0.0641, 0.1421, 0.0038}},
    {32, 128, 10408, 10204, 7703, 408, 6144, 48, {0.2168, 0.1106, 0.0490, 0.1106, 0.0029}},
    {32, 256, 10402, 10248, 7698, 460, 6144, 48, {0.1352, 0.0594, 0.0257, 0.0594, 0.0018}},
};

enum { SETTINGS = sizeof settings / sizeof settings[0], SEQUENCE = 1024 };

typedef struct outcome {
    double rate;
    double peak;              /* the most activations of any stage, in those of a forward */
    double most_behind_input; /* the most microbatches on a stage whose W is still to come */
} outcome;

/* The most forwards without their W. */
static double most_unfinished(const dts_schedule *schedule) {
    dts_schedule all = *schedule;
    all.shape.input_frees = 0;
    double most = 0;
    for (int rank = 0; rank < schedule->shape.stages; rank++) {
        most = fmax(most, dts_schedule_peak_activation(&all, rank));
    }
    return most;
}

static outcome outcome_of(const setting *s, const char *name, double input_frees) {
    const dts_schedule_shape shape = {.stages = s->stages,
                                      .microbatches = s->microbatches,
                                      .chunks = 1,
                                      .forward = s->forward,
                                      .backward_input = s->backward_input,
                                      .backward_weight = s->backward_weight,
                                      .latency = s->transfer,
                                      .input_frees = input_frees};
    const dts_ideal_costs costs = {s->forward, s->backward_input, s->backward_weight, s->transfer};
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    dts_schedule schedule;
    dts_ideal ideal;
    assert_int_equal(dts_schedule_build(name, &shape, arena, &schedule, diag), DTS_OK);
    assert_int_equal(dts_ideal_run(&schedule, &costs, arena, &ideal, diag), DTS_OK);
    /* iterations of orders in the memory of 1F1B end together, those of the others follow each other stage by stage */
    const bool together = strcmp(name, "1f1b") == 0 || strcmp(name, "zb-h1") == 0;
    const double took = together ? ideal.makespan : ideal.max_stage_span;
    const double work = s->microbatches * (s->forward + s->backward_input + s->backward_weight);
    outcome out = {.rate = (took - work) / took, .most_behind_input = most_unfinished(&schedule)};
    for (int rank = 0; rank < s->stages; rank++) {
        out.peak = fmax(out.peak, ideal.peak_activation[rank]);
    }
    dts_diag_free(diag);
    dts_arena_free(arena);
    return out;
}

/* 34 h + 5 a s bytes a token, of which W frees 32 h. */
static double share_of(const setting *s) {
    const double forward = 34.0 * s->hidden + 5.0 * s->heads * SEQUENCE;
    return 1 - 32.0 * s->hidden / forward;
}

static void bubble_rates_are_the_published_ones(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < SETTINGS; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            const outcome got = outcome_of(&settings[i], columns[c], share_of(&settings[i]));
            if (fabs(got.rate - settings[i].rate[c]) > 0.5001e-4) { /* printed with four digits */
                print_error("%s p=%d m=%d: %.5f instead of %.4f\n", columns[c], settings[i].stages,
                            settings[i].microbatches, got.rate, settings[i].rate[c]);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

static void memory_keeps_its_limit(void **state) {
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        const setting *s = &settings[i];
        const double frees[] = {0, 0.3, share_of(s), 0.9};
        for (size_t k = 0; k < sizeof frees / sizeof frees[0]; k++) {
            const outcome one = outcome_of(s, columns[ZB_1P], frees[k]);
            const outcome two = outcome_of(s, columns[ZB_2P], frees[k]);
            assert_true(one.peak <= s->stages + 1e-4);
            assert_true(two.peak <= 2 * s->stages + 1e-4);
            assert_true(two.peak > 2 * s->stages - 1); /* and is used */
        }
    }
}

/* What B frees makes room for more microbatches on their way: without it ZB-2P has ten times the bubble. */
static void early_freed_memory_is_used(void **state) {
    (void)state;
    const setting *s = &settings[4];
    const outcome all = outcome_of(s, columns[ZB_2P], 0);
    const outcome part = outcome_of(s, columns[ZB_2P], share_of(s));
    assert_close(all.most_behind_input, 2 * s->stages, 0, 0);
    assert_true(part.most_behind_input > 1.5 * 2 * s->stages);
    assert_true(all.rate > 10 * part.rate);
}

/* A checkpoint that B turns into all that W needs: weight gradients follow at once. */
static void growing_memory_keeps_its_limit(void **state) {
    (void)state;
    setting s = settings[4];
    const outcome got = outcome_of(&s, columns[ZB_2P], -3);
    assert_true(got.most_behind_input <= 2 * s.stages);
    assert_true(got.peak <= 2 * s.stages + 3 + 1e-4); /* nothing makes room for the very first B */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bubble_rates_are_the_published_ones),
        cmocka_unit_test(memory_keeps_its_limit),
        cmocka_unit_test(early_freed_memory_is_used),
        cmocka_unit_test(growing_memory_keeps_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
