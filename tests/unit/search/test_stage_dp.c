/* Cuts into stages against trying all of them. */
#include "base/random.h"
#include "check.h"
#include "search/stage_dp.h"

enum { MOST_STAGES = 4, MOST_LAYERS = 9 };

typedef struct instance {
    dts_stage_problem problem;
    dts_stage_cost costs[MOST_STAGES * (MOST_LAYERS + 1)];
} instance;

/* Stages that grow with their layers, each in its own way; small numbers, so that ties are common. */
static void draw(dts_random *random, instance *x) {
    size_t stages = 1 + dts_random_below(random, MOST_STAGES);
    size_t layers = stages + dts_random_below(random, (uint32_t)(MOST_LAYERS - stages + 1));
    for (size_t s = 0; s < stages; s++) {
        double time = 1 + dts_random_below(random, 3), ends = dts_random_below(random, 4);
        double memory = 1 + dts_random_below(random, 4), fixed = dts_random_below(random, 5);
        for (size_t n = 0; n <= layers; n++) {
            x->costs[s * (layers + 1) + n] =
                (dts_stage_cost){.time_s = ends + time * (double)n, .memory_B = fixed + memory * (double)n};
        }
    }
    x->problem = (dts_stage_problem){
        .stages = stages, .layers = layers, .costs = x->costs, .capacity_B = 4 + dts_random_below(random, 16)};
}

/* The least time of a slowest stage whose fullest stage is within bound; INFINITY: none. */
static double least_time(const dts_stage_problem *p, size_t stage, size_t left, double time_s, double bound_B) {
    if (stage == p->stages) {
        return left == 0 ? time_s : INFINITY;
    }
    double best = INFINITY;
    for (size_t n = 1; n <= left; n++) {
        const dts_stage_cost *c = &p->costs[stage * (p->layers + 1) + n];
        if (c->memory_B <= bound_B) {
            best = fmin(best, least_time(p, stage + 1, left - n, fmax(time_s, c->time_s), bound_B));
        }
    }
    return best;
}

static void check_solution(const dts_stage_problem *p, const dts_stage_solution *s) {
    double time_s = 0, memory_B = 0;
    int64_t layers = 0;
    for (size_t i = 0; i < p->stages; i++) {
        assert_true(s->layers[i] >= 1);
        const dts_stage_cost *c = &p->costs[i * (p->layers + 1) + (size_t)s->layers[i]];
        time_s = fmax(time_s, c->time_s);
        memory_B = fmax(memory_B, c->memory_B);
        layers += s->layers[i];
    }
    assert_int_equal(layers, p->layers);
    assert_close(s->time_s, time_s, 0, 0);
    assert_close(s->memory_B, memory_B, 0, 0);
}

static void the_front_is_that_of_all_cuts(void **state) {
    (void)state;
    dts_random *random = dts_random_new(11);
    size_t several = 0, none = 0;
    for (int run = 0; run < 500; run++) {
        instance x;
        draw(random, &x);
        const dts_stage_problem *p = &x.problem;
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_stage_solution *solutions = NULL;
        size_t count = 0;
        assert_int_equal(dts_stage_dp(p, arena, &solutions, &count), DTS_OK);
        for (size_t i = 0; i < count; i++) {
            check_solution(p, &solutions[i]);
            assert_close(solutions[i].time_s, least_time(p, 0, p->layers, 0, solutions[i].memory_B), 0, 0);
            assert_true(i == 0 || (solutions[i].time_s > solutions[i - 1].time_s &&
                                   solutions[i].memory_B < solutions[i - 1].memory_B));
        }
        double best = least_time(p, 0, p->layers, 0, p->capacity_B);
        assert_true(count > 0 ? solutions[0].time_s == best : isinf(best));
        if (count > 0) { /* nothing takes less than the last */
            assert_true(isinf(least_time(p, 0, p->layers, 0, solutions[count - 1].memory_B - 0.5)));
        }
        several += count > 1;
        none += count == 0;
        dts_arena_free(arena);
    }
    assert_true(several > 50 && none > 20);
    dts_random_free(random);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_front_is_that_of_all_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
