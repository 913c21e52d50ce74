/* The decision tree of "Efficient Training on Multiple GPUs" (Hugging Face) held against simulation: what it says of
 * PP, ZeRO and TP with and without fast links, of tensor parallelism across nodes, and of small models. Llama 3 8B does
 * not fit one A100-80GB; the numbers behind each comparison are printed. */
#include "advise/advise.h"
#include "simulate.h"

static const char llama[] =
    "model: llama-3-8b\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 128, micro_batch: 1, sequence_length: 4096, precision: amp-bf16}\n";

static dts_advice advise(const char *settings) {
    static const char *const roots[] = {"."};
    static const dts_profile_paths profiles = {.roots = roots, .count = 1};
    char copy[LONGEST_SETTINGS];
    snprintf(copy, sizeof copy, "%s", settings);
    dts_override overrides[MOST_OVERRIDES];
    size_t count = split_settings(copy, overrides);
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_advice a = {0};
    assert_int_equal(dts_scenario_parse(llama, sizeof llama - 1, "test", overrides, count, &profiles, &scenario, diag),
                     DTS_OK);
    const dts_advice_request request = {.base = dts_scenario_get(scenario)};
    assert_int_equal(dts_advice_make(&request, &a, diag), DTS_OK);
    for (int f = 0; f < DTS_FAMILY_COUNT; f++) {
        print_message("%-14s %8.3f s %s\n", dts_family_names[f], a.families[f].figures.iteration_time_s,
                      !a.families[f].legal         ? "no such plan"
                      : a.families[f].figures.fits ? ""
                                                   : "does not fit");
    }
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    return a;
}

/* SC-093: what fits one GPU takes DDP, or ZeRO; with SGD, as in the study on Google Cloud, DDP is as good. (With AdamW
 * every replica of DDP updates all states, and ZeRO is ahead.) */
static void small_models_stay_whole(void **state) {
    (void)state;
    dts_advice a = advise("model=gpt2-large training.sequence_length=1024 training.optimizer=sgd");
    assert_true(a.facts.fits_one_gpu);
    assert_true(a.verdicts[DTS_BOOK_TREE].agrees);
    assert_true(a.verdicts[DTS_BOOK_STUDY].agrees);
}

/* SC-094: with NVLink, PP, ZeRO and TP perform alike: within 20 %, where the last stage of a pipeline does not keep the
 * logits of all microbatches. Where it does, pipelines do not fit, and advice says so instead of agreeing. */
static void fast_links_make_strategies_alike(void **state) {
    (void)state;
    dts_advice a = advise("stack.pipeline.keeps_outputs=none");
    const dts_verdict *v = &a.verdicts[DTS_BOOK_TREE];
    assert_true(v->branch->alike);
    assert_true(v->agrees);
    assert_int_equal(v->lack, 0);
    assert_true(v->spread < 0.2);
    a = advise("stack.pipeline.keeps_outputs=last");
    assert_false(v->agrees);
    assert_int_equal(v->lack, 1U << DTS_FAMILY_PIPELINE);
    assert_non_null(strstr(a.families[DTS_FAMILY_PIPELINE].why, "stack.pipeline.keeps_outputs=none"));
}

/* SC-095: without fast links PP is faster than TP or ZeRO; its last stage must not keep the logits of all microbatches
 * (return_outputs of torch.distributed.pipelining's schedules). */
static void slow_links_take_pipelines(void **state) {
    (void)state;
    dts_advice a = advise("cluster.intra.kind=pcie cluster.intra.bandwidth=25GB/s stack.pipeline.keeps_outputs=none");
    assert_false(a.facts.fast_inside);
    assert_int_equal(a.verdicts[DTS_BOOK_TREE].branch->families, 1U << DTS_FAMILY_PIPELINE);
    assert_true(a.verdicts[DTS_BOOK_TREE].agrees);
    double pipeline_s = a.families[DTS_FAMILY_PIPELINE].figures.iteration_time_s;
    assert_true(pipeline_s < a.families[DTS_FAMILY_ZERO].figures.iteration_time_s);
    assert_true(pipeline_s < a.families[DTS_FAMILY_TENSOR].figures.iteration_time_s);
}

/* SC-096: tensor parallelism stays inside a node. */
static void tensor_groups_do_not_leave_a_node(void **state) {
    (void)state;
    static const char two_nodes[] =
        "cluster.nodes=2 cluster.gpus_per_node=4 parallelism.pipeline=1 training.recompute=full";
    char settings[LONGEST_SETTINGS];
    double time_s[2];
    for (int i = 0; i < 2; i++) {
        snprintf(settings, sizeof settings, "%s parallelism.tensor=%d", two_nodes, 4 << i);
        dts_result *r = simulate_text(llama, settings);
        time_s[i] = r->iteration_time_s;
        dts_result_free(r);
    }
    print_message("tensor 4 inside nodes %.2f s, tensor 8 across two %.2f s\n", time_s[0], time_s[1]);
    assert_true(time_s[1] > 1.5 * time_s[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_models_stay_whole),
        cmocka_unit_test(fast_links_make_strategies_alike),
        cmocka_unit_test(slow_links_take_pipelines),
        cmocka_unit_test(tensor_groups_do_not_leave_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
