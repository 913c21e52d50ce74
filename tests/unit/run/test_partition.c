/* Cutting the model: into stages (uniform, balanced, given), and a chunk's layers into checkpoints. */
#include <math.h>

#include "simulate.h"

static const char *const base =
    "model: {profile: gpt, layers: 9, hidden: 2048, heads: 16, vocab: 200000, max_positions: 1024, tied_embeddings: "
    "false}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 4}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 8, micro_batch: 2, sequence_length: 1024, precision: bf16, optimizer: sgd}\n"
    "parallelism: {pipeline: 4}\n";

static double slowest(const dts_result *r) {
    double most = 0;
    for (size_t p = 0; p < r->stage_count; p++) {
        most = fmax(most, r->stages[p].compute_s);
    }
    return most;
}

static double slowest_with(const char *partition) {
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "parallelism.partition=%s", partition);
    dts_result *r = simulate_text(base, settings);
    double time = slowest(r);
    dts_result_free(r);
    return time;
}

/* Nine layers on four stages, with a head as long as several layers: of all ways to cut, the balanced one is within 1 %
 * of the best (its costs are rough, its search is exact). */
static void balanced_is_the_best_of_all_cuts(void **state) {
    (void)state;
    double best = INFINITY;
    double worst = 0;
    char best_cut[32] = "";
    for (int a = 0; a <= 9; a++) {
        for (int b = 0; a + b <= 9; b++) {
            for (int c = 0; a + b + c <= 9; c++) {
                char cut[32];
                snprintf(cut, sizeof cut, "[%d,%d,%d,%d]", a, b, c, 9 - a - b - c);
                double time = slowest_with(cut);
                if (time < best) {
                    best = time;
                    snprintf(best_cut, sizeof best_cut, "%s", cut);
                }
                worst = fmax(worst, time);
            }
        }
    }
    double balanced = slowest_with("balanced");
    double uniform = slowest_with("uniform");
    print_message("best %s: %.1f ms on the slowest stage; balanced %.1f, uniform %.1f, worst %.1f\n", best_cut,
                  1e3 * best, 1e3 * balanced, 1e3 * uniform, 1e3 * worst);
    assert_close(balanced, best, 0.01, 0);
    assert_true(uniform > 1.1 * best);
}

/* Sixteen layers on eight stages: where the head becomes longer than a layer, as on a GPU with faster products, one
 * layer moves, not most of them. */
static void one_layer_moves_where_the_head_passes_one(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int64_t layers[8];
    } cuts[] = {
        {"model.vocab=24000", {2, 2, 2, 2, 2, 2, 2, 2}},
        {"model.vocab=32000", {2, 3, 2, 2, 2, 2, 2, 1}},
    };
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings,
                 "model.layers=16 parallelism.pipeline=8 cluster.gpus_per_node=8 parallelism.partition=balanced %s",
                 cuts[i].settings);
        dts_result *r = simulate_text(base, settings);
        assert_int_equal(r->stage_count, 8);
        for (int64_t s = 0; s < 8; s++) {
            assert_int_equal(r->stages[s].layer_count, cuts[i].layers[s]);
        }
        dts_result_free(r);
    }
}

/* The loop of sequential_gpt (mrshenli/ptd_benchmark @2df9b00a, models.py), by hand: of 48 layers of 322 million
 * parameters and two ends of 260 million the fourth stage has eleven and the head; 2.7B gives both stages sixteen. */
static void stages_end_where_parameters_pass_their_share(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int64_t stages, layers[4];
    } cases[] = {
        {"model=mingpt-16b parallelism.pipeline=4", 4, {12, 12, 13, 11}},
        {"model=mingpt-2.7b parallelism.pipeline=2", 2, {16, 16}},
        {"model=mingpt-2.7b parallelism.pipeline=2 parallelism.partition=[17,15]", 2, {17, 15}},
        {"model=mingpt-16b parallelism.pipeline=4 parallelism.partition=balanced", 4, {12, 12, 12, 12}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_result *r = simulate_file("scenarios/gcp-data-parallel/limit-pdp-4.yaml", cases[i].settings);
        assert_int_equal(r->stage_count, cases[i].stages);
        for (int64_t s = 0; s < cases[i].stages; s++) {
            assert_int_equal(r->stages[s].layer_count, cases[i].layers[s]);
        }
        dts_result_free(r);
    }
}

/* What the plan says goes before what the stack does: balanced is another cut than that of either stack. With a head of
 * 410 million parameters and layers of 50 million, 9 layers and the embedding pass two thirds of 1.27 thousand million:
 * the last stage would have no layer, so that a stack with parameter_stages balances the work after all. */
static void what_is_said_goes_before_the_stack(void **state) {
    (void)state;
    static const char *const stacks[] = {
        "stack.pipeline.uniform_stages=false stack.pipeline.parameter_stages=false",
        "stack.pipeline.uniform_stages=true stack.pipeline.parameter_stages=false",
        "stack.pipeline.uniform_stages=false stack.pipeline.parameter_stages=true",
        "stack.pipeline.uniform_stages=false stack.pipeline.parameter_stages=true model.vocab=2000",
    };
    static const int64_t balanced[][4] = {{3, 3, 3, 0}, {3, 3, 3, 0}, {3, 3, 3, 0}, {2, 3, 2, 2}};
    static const int64_t automatic[][4] = {{3, 3, 3, 0}, {3, 2, 2, 2}, {3, 3, 3, 0}, {3, 2, 2, 2}};
    for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++) {
        for (int said = 0; said < 2; said++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings, "%s%s", stacks[i], said ? " parallelism.partition=balanced" : "");
            dts_result *r = simulate_text(base, settings);
            for (int p = 0; p < 4; p++) {
                assert_int_equal(r->stages[p].layer_count, (said ? balanced : automatic)[i][p]);
            }
            dts_result_free(r);
        }
    }
}

/* nanotron's cut of 24 layers of 42 million weights and a head of 103 million, 2.45 layers: the layer that passes a
 * stage's share still belongs to it; the last of eight stages is the head alone, of two it has ten layers. Tied
 * embeddings do not matter. With more stages than that something would be empty, and the work is balanced. */
static void products_end_stages(void **state) {
    (void)state;
    static const char *const model =
        "model.profile=llama model.layers=24 model.hidden=2048 model.heads=32 "
        "model.ffn_hidden=4096 model.vocab=50257 stack.profile=nanotron cluster.gpus_per_node=8 ";
    static const struct {
        const char *said;
        int64_t stages, layers[8];
    } cuts[] = {
        {"parallelism.pipeline=2", 2, {14, 10}},
        {"parallelism.pipeline=4", 4, {7, 7, 6, 4}},
        {"parallelism.pipeline=4 model.tied_embeddings=true", 4, {7, 7, 6, 4}},
        {"parallelism.pipeline=8", 8, {4, 3, 3, 4, 3, 3, 4, 0}},
        {"parallelism.pipeline=8 model.vocab=200704", 8, {3, 4, 4, 4, 4, 4, 1, 0}},
        {"parallelism.pipeline=4 stack.pipeline.product_stages=false stack.pipeline.uniform_stages=true",
         4,
         {6, 6, 6, 6}},
    };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "%s%s", model, cuts[i].said);
        dts_result *r = simulate_text(base, settings);
        assert_int_equal(r->stage_count, cuts[i].stages);
        for (int64_t s = 0; s < cuts[i].stages; s++) {
            assert_int_equal(r->stages[s].layer_count, cuts[i].layers[s]);
        }
        dts_result_free(r);
    }
}

static void stages_get_what_is_given(void **state) {
    (void)state;
    dts_result *r = simulate_text(base, "parallelism.partition=[1,4,0,4]");
    const int64_t layers[] = {1, 4, 0, 4};
    const int64_t first[] = {0, 1, 5, 5};
    for (int p = 0; p < 4; p++) {
        assert_int_equal(r->stages[p].layer_count, layers[p]);
        assert_int_equal(r->stages[p].first_layer, first[p]);
    }
    dts_result_free(r);
    r = simulate_text(base, "parallelism.partition=uniform");
    assert_int_equal(r->stages[0].layer_count, 3); /* the remainder comes first */
    assert_int_equal(r->stages[1].layer_count, 2);
    dts_result_free(r);
    /* two directions cut the model into as many stages as there are ranks; each rank holds two */
    r = simulate_text(base, "parallelism.partition=[3,2,3,1] parallelism.schedule=chimera");
    assert_int_equal(r->stages[0].layer_count, 3 + 1);
    assert_int_equal(r->stages[1].layer_count, 2 + 3);
    assert_int_equal(r->stages[1].chunk_count, 2);
    assert_int_equal(r->stages[1].chunks[0].first_layer, 3);
    assert_int_equal(r->stages[1].chunks[0].layer_count, 2);
    assert_int_equal(r->stages[1].chunks[1].first_layer, 5);
    assert_int_equal(r->stages[1].chunks[1].layer_count, 3);
    dts_result_free(r);
}

static void wrong_sums_and_counts_are_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"parallelism.partition=[3,3,3,3]",
         "the partition has 4 stages and 12 layers, the plan 4 stages and the model 9"},
        {"parallelism.partition=[3,3,3]", "the partition has 3 stages and 9 layers, the plan 4 stages"},
        {"parallelism.partition=[3,2,2,2] parallelism.schedule=zbv", "the plan 8 stages"},
        {"parallelism.partition=[3,2,2,1,1,0,0,0] parallelism.schedule=dualpipe training.global_batch=16",
         "the plan 4 stages"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_refused(base, rows[i][0], rows[i][1]);
    }
}

/* n layers: √n inputs and the activations of √n layers live at once, instead of those of n (Chen et al. 2016). */
static void sqrt_checkpoints_keep_a_root_of_the_layers(void **state) {
    (void)state;
    double roots[4];
    double whole[4];
    for (int i = 0; i < 4; i++) {
        int n = (i + 2) * (i + 2);
        char settings[LONGEST_SETTINGS];
        const char *const format =
            "model.layers=%d model.vocab=64 parallelism.pipeline=1 cluster.gpus_per_node=1 "
            "training.recompute=%s";
        snprintf(settings, sizeof settings, format, n, "sqrt");
        dts_result *r = simulate_text(base, settings);
        roots[i] = r->memory_gib.activations;
        dts_result_free(r);
        snprintf(settings, sizeof settings, format, n, "none");
        r = simulate_text(base, settings);
        whole[i] = r->memory_gib.activations;
        dts_result_free(r);
    }
    double boundary = 2.0 * 1024 * 2048 * 2 / (1 << 30); /* (batch, sequence, hidden) bf16 */
    double layer = (whole[3] - whole[0]) / (25 - 4);     /* activations of one */
    for (int i = 0; i < 4; i++) {
        int root = i + 2;
        /* the last layers' group is repeated first, while all inputs are there: √n inputs and √n layers */
        assert_close(roots[i], root * (boundary + layer) - boundary, 0.02,
                     0); /* the first layer keeps its checkpoint */
        assert_close(whole[i], root * root * layer, 0.05, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced_is_the_best_of_all_cuts),
        cmocka_unit_test(one_layer_moves_where_the_head_passes_one),
        cmocka_unit_test(stages_end_where_parameters_pass_their_share),
        cmocka_unit_test(what_is_said_goes_before_the_stack),
        cmocka_unit_test(products_end_stages),
        cmocka_unit_test(stages_get_what_is_given),
        cmocka_unit_test(wrong_sums_and_counts_are_refused),
        cmocka_unit_test(sqrt_checkpoints_keep_a_root_of_the_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
