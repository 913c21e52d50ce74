/* What scenarios/experts/README.md says comes out. */
#include "simulate.h"

#define MIXTRAL  "scenarios/experts/mixtral-2-dgx.yaml"
#define DEEPSEEK "scenarios/experts/deepseek-v3-h800.yaml"
#define SWITCH   "scenarios/experts/switch-capacity.yaml"

/* What tests compare. */
typedef struct outcome {
    double time_s, tokens_per_s_per_gpu, exchange_s, exposed_s, compute_s;
    bool fits;
} outcome;

static outcome run(const char *file, const char *settings) {
    dts_result *r = simulate_file(file, settings);
    const dts_communication_row *row = communication_row(r, "all-to-all", "expert");
    assert_non_null(row);
    outcome o = {.time_s = r->iteration_time_s,
                 .tokens_per_s_per_gpu = r->tokens_per_s_per_gpu,
                 .exchange_s = row->total_s,
                 .exposed_s = row->exposed_s,
                 .compute_s = r->time_s.compute,
                 .fits = r->fits};
    print_message("%-45s %-90s %7.3f s  all-to-all %6.3f s, %6.3f s exposed  %5.0f tokens/s per GPU\n", file, settings,
                  o.time_s, o.exchange_s, o.exposed_s, o.tokens_per_s_per_gpu);
    dts_result_free(r);
    return o;
}

static void tokens_inside_a_node_are_cheap(void **state) {
    (void)state;
    outcome full = run(MIXTRAL, ""), kept = run(MIXTRAL, "training.recompute=none");
    assert_true(full.exchange_s < 0.07 * full.time_s && full.exposed_s > 0.9 * full.exchange_s);
    assert_close(full.exchange_s, 1.5 * kept.exchange_s, 0.02, 0);
    assert_true(full.fits && !kept.fits && kept.time_s < 0.8 * full.time_s);
}

static void the_busiest_rank_decides(void **state) {
    (void)state;
    outcome even = run(MIXTRAL, ""), uneven = run(MIXTRAL, "model.load_imbalance=1.5");
    assert_true(uneven.time_s > 1.25 * even.time_s && uneven.time_s < 1.5 * even.time_s);
}

/* arXiv 2412.19437, sections 3.2.1 and 3.2.2, and table 1. */
static void tokens_between_nodes_are_not(void **state) {
    (void)state;
    outcome plain = run(DEEPSEEK, ""), once = run(DEEPSEEK, "stack.tokens_cross_once=true");
    outcome as_rings = run(DEEPSEEK, "cluster.inter.all_to_all_efficiency=1");
    outcome turns = run(DEEPSEEK, "stack.tokens_cross_once=true parallelism.schedule=dualpipev");
    outcome both = run(DEEPSEEK, "stack.tokens_cross_once=true parallelism.schedule=dualpipe");
    outcome kept = run(DEEPSEEK, "stack.tokens_cross_once=true parallelism.schedule=dualpipev training.recompute=none");
    assert_true(plain.compute_s / plain.exchange_s > 0.5 && plain.compute_s / plain.exchange_s < 1);
    assert_true(once.compute_s / once.exchange_s > 1 && once.compute_s / once.exchange_s < 1.6);
    assert_close(once.exchange_s, 0.5 * as_rings.exchange_s, 0.05, 0);
    assert_close(plain.exchange_s, 47.5 / 37.2 * as_rings.exchange_s, 0.01, 0);
    assert_true(turns.exposed_s < 0.75 * turns.exchange_s && turns.time_s < 0.85 * once.time_s);
    assert_true(both.exposed_s < 0.75 * both.exchange_s && both.time_s < turns.time_s);
    /* what the report repeats: sections 3.2.3 (norms, up-projections) and 3.3.2 (SwiGLU) */
    outcome repeated = run(DEEPSEEK,
                           "stack.tokens_cross_once=true parallelism.schedule=dualpipe "
                           "training.recompute={\"modules\":[layernorm,mla_up_proj,moe_act]}");
    const double published = 1e12 / (180e3 * 3600);
    print_message("DeepSeek-V3: %.0f tokens/s per GPU, published %.0f\n", repeated.tokens_per_s_per_gpu, published);
    assert_true(turns.tokens_per_s_per_gpu < published && kept.tokens_per_s_per_gpu > published);
    assert_close(repeated.tokens_per_s_per_gpu, published, 0.08, 0);
}

static void padding_costs(void **state) {
    (void)state;
    double last = 0;
    static const char *const factors[] = {"model.capacity_factor=1", "model.capacity_factor=1.25",
                                          "model.capacity_factor=2"};
    for (int i = 0; i < 3; i++) {
        outcome o = run(SWITCH, factors[i]);
        assert_true(o.time_s > last);
        last = o.time_s;
    }
    outcome one = run(SWITCH, ""), two = run(SWITCH, "model.experts_per_token=2");
    assert_true(two.exchange_s > 1.5 * one.exchange_s && two.time_s > one.time_s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_inside_a_node_are_cheap),
        cmocka_unit_test(the_busiest_rank_decides),
        cmocka_unit_test(tokens_between_nodes_are_not),
        cmocka_unit_test(padding_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
