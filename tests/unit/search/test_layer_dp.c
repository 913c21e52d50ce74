/* Dynamic programming over layers against trying everything, and the list of strategies against a published count. */
#include "base/random.h"
#include "check.h"
#include "search/layer_dp.h"

enum { MOST_LAYERS = 6, MOST_STRATEGIES = 5, INSTANCES = 500 };

typedef struct instance {
    dts_layer_problem problem;
    dts_layer_cost costs[MOST_LAYERS * MOST_STRATEGIES];
    double transitions[MOST_STRATEGIES * MOST_STRATEGIES], enter[MOST_STRATEGIES], leave[MOST_STRATEGIES];
} instance;

static void draw(dts_random *random, instance *out) {
    size_t layers = 1 + dts_random_below(random, MOST_LAYERS);
    size_t strategies = 1 + dts_random_below(random, MOST_STRATEGIES);
    for (size_t i = 0; i < layers * strategies; i++) {
        /* few different values, so that there are ties */
        out->costs[i] = (dts_layer_cost){.time_s = 1 + dts_random_below(random, 9),
                                         .kept_B = 1 + dts_random_below(random, 9),
                                         .transient_B = dts_random_below(random, 12),
                                         .beside_s = dts_random_below(random, 12),
                                         .tail_s = dts_random_below(random, 5)};
    }
    for (size_t i = 0; i < strategies * strategies; i++) {
        bool apart = dts_random_below(random, 5) == 0;
        out->transitions[i] = apart ? (double)INFINITY : (double)dts_random_below(random, 4);
    }
    out->problem = (dts_layer_problem){.layers = layers,
                                       .strategies = strategies,
                                       .costs = out->costs,
                                       .transition_s = out->transitions,
                                       .enter_s = out->enter,
                                       .leave_s = out->leave,
                                       .beside_s = dts_random_below(random, 3),
                                       .tail_s = dts_random_below(random, 3),
                                       .hides = 0.25 * dts_random_below(random, 5),
                                       .capacity_B = (double)layers * 5 + 6};
    for (size_t s = 0; s < strategies; s++) {
        out->enter[s] = dts_random_below(random, 3);
        out->leave[s] = dts_random_below(random, 3);
    }
}

/* Time and memory of one way; false: not together, or too large. */
static bool measure(const dts_layer_problem *p, const uint16_t *choice, double *time_s, double *memory_B) {
    double kept_B = 0, transient_B = 0, beside_s = p->beside_s, tail_s = p->tail_s;
    *time_s = p->enter_s[choice[0]] + p->leave_s[choice[p->layers - 1]];
    for (size_t layer = 0; layer < p->layers; layer++) {
        const dts_layer_cost *cost = &p->costs[layer * p->strategies + choice[layer]];
        *time_s += cost->time_s;
        *time_s += layer > 0 ? p->transition_s[choice[layer - 1] * p->strategies + choice[layer]] : 0;
        kept_B += cost->kept_B;
        transient_B = fmax(transient_B, cost->transient_B);
        beside_s += cost->beside_s;
        tail_s += cost->tail_s;
    }
    *time_s = fmax(*time_s, beside_s);
    *time_s += fmax(0, tail_s - p->hides * *time_s);
    *memory_B = kept_B + transient_B;
    return isfinite(*time_s) && *memory_B <= p->capacity_B;
}

/* The least time of all ways with at most memory_B. */
static double try_all(const dts_layer_problem *p, double memory_B) {
    size_t ways = 1;
    for (size_t layer = 0; layer < p->layers; layer++) {
        ways *= p->strategies;
    }
    double best_s = INFINITY;
    for (size_t way = 0; way < ways; way++) {
        uint16_t choice[MOST_LAYERS];
        double time_s = 0, needs_B = 0;
        for (size_t layer = 0, rest = way; layer < p->layers; layer++, rest /= p->strategies) {
            choice[layer] = (uint16_t)(rest % p->strategies);
        }
        if (measure(p, choice, &time_s, &needs_B) && needs_B <= memory_B) {
            best_s = fmin(best_s, time_s);
        }
    }
    return best_s;
}

static void equals_trying_everything(void **state) {
    (void)state;
    dts_random *random = dts_random_new(11);
    int solvable = 0, fronts = 0;
    for (int i = 0; i < INSTANCES; i++) {
        instance drawn;
        draw(random, &drawn);
        const dts_layer_problem *p = &drawn.problem;
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_layer_solution *solutions = NULL;
        size_t count = 0;
        assert_int_equal(dts_layer_dp(p, arena, &solutions, &count), DTS_OK);
        double best_s = try_all(p, p->capacity_B);
        assert_int_equal(count > 0, isfinite(best_s));
        for (size_t k = 0; k < count; k++) {
            double time_s = 0, memory_B = 0;
            assert_true(measure(p, solutions[k].choice, &time_s, &memory_B)); /* what it says is what it costs */
            assert_close(solutions[k].time_s, time_s, 0, 0);
            assert_close(solutions[k].memory_B, memory_B, 0, 0);
            assert_close(try_all(p, memory_B), time_s, 0, 0); /* nothing as small is faster */
            assert_true(k == 0 || solutions[k].memory_B < solutions[k - 1].memory_B);
        }
        if (count > 0) {
            assert_close(solutions[0].time_s, best_s, 0, 0);
            solvable++;
            fronts += count > 1;
        }
        dts_arena_free(arena);
    }
    dts_random_free(random);
    assert_true(solvable > INSTANCES / 2 && solvable < INSTANCES); /* both kinds came */
    assert_true(fronts > INSTANCES / 10);
}

/* PKU-DAIR/Hetu-Galvatron, tests/search_engine/test_generate_strategies.py: 50 strategies of a layer on 8 GPUs with
 * degrees up to 8, ZeRO-2 or ZeRO-3, with and without recomputation, no context parallelism. */
static void strategies_of_eight_gpus(void **state) {
    (void)state;
    dts_layer_strategy all[64];
    assert_int_equal(dts_layer_strategies(8, 8, all, 64), 50);
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(all[i].pipeline * all[i].split * all[i].data, 8);
        assert_true(all[i].split > 1 || !all[i].sequence);
        assert_true(all[i].data > 1 || !all[i].parameters_sharded);
        for (size_t k = 0; k < i; k++) {
            bool same = all[i].pipeline == all[k].pipeline && all[i].split == all[k].split &&
                        all[i].sequence == all[k].sequence && all[i].parameters_sharded == all[k].parameters_sharded &&
                        all[i].recompute == all[k].recompute;
            assert_false(same);
        }
    }
    assert_int_equal(dts_layer_strategies(1, 8, all, 64), 2);
    assert_int_equal(dts_layer_strategies(8, 1, all, 64), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_trying_everything),
                                       cmocka_unit_test(strategies_of_eight_gpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
