/* Hugging Face Transformers documentation, "Efficient Training on Multiple GPUs": which parallelism for which model and
 * network, pipelines, ZeRO, and FlexFlow's search (Jia, Zaharia, Aiken, MLSys 2019). */
#include "seeds.h"

#include "search/layouts.h"

static const char node[] =
    "model: {profile: gpt, layers: 32, hidden: 5120, heads: 40, vocab: 50304}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1}\nstack: megatron-lm\n"
    "training: {global_batch: 64, micro_batch: 1, sequence_length: 2048, precision: bf16}\n";

static const char pipeline[] =
    "model: {profile: gpt, layers: 24, hidden: 2048, heads: 16, vocab: 50304}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 4}\nstack: megatron-lm\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 1024, precision: bf16}\n"
    "parallelism: {pipeline: 4, schedule: gpipe}\n";

static const char small[] =
    "model: {profile: gpt, layers: 12, hidden: 768, heads: 12, vocab: 50304}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 1}\nstack: pytorch-2\n"
    "training: {global_batch: 64, micro_batch: 1, sequence_length: 1024, precision: amp-bf16}\n";

static const char two_nodes[] =
    "model: {profile: gpt, layers: 32, hidden: 4096, heads: 32, vocab: 50304}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2}\nstack: megatron-lm\n"
    "training: {global_batch: 64, micro_batch: 1, sequence_length: 2048, precision: bf16}\n";

static const char slow_nodes[] =
    "model: {profile: gpt, layers: 40, hidden: 5120, heads: 40, vocab: 50304}\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 4}\nstack: megatron-lm\n"
    "training: {global_batch: 256, micro_batch: 1, sequence_length: 2048, precision: bf16}\n";

static const char sharded[] =
    "model: {profile: gpt, layers: 12, hidden: 4096, heads: 32, vocab: 32000}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 1}\nstack: pytorch-2\n"
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 1024, precision: bf16}\n"
    "parallelism: {data_parallel: fsdp}\n";

#define PCIE      " cluster.intra.kind=pcie cluster.intra.bandwidth=12GB/s cluster.intra.efficiency=0.8"
#define WITH_PP   "parallelism.pipeline=8"
#define WITH_TP   "parallelism.tensor=8 parallelism.sequence=true training.micro_batch=8"
#define WITH_ZERO "parallelism.data_parallel=zero3 training.micro_batch=2 training.recompute=selective"

static double gradients_gib(const dts_result *r) {
    return r->memory_gib.gradients;
}

static double microbatches(const dts_result *r) {
    return (double)r->microbatches;
}

static double bubble(const dts_result *r) {
    return r->bubble_fraction;
}

/* ---- searches -------------------------------------------------------------------------------------------------------
 */

/* The name of the best plan of a scenario. */
static void best_plan(const char *text, const char *settings, dts_text *got) {
    char words[LONGEST_SETTINGS];
    snprintf(words, sizeof words, "%s", settings == NULL ? "" : settings);
    dts_override overrides[MOST_OVERRIDES];
    size_t count = split_settings(words, overrides);
    const char *roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    assert_int_equal(dts_scenario_parse(text, strlen(text), "test", overrides, count, &profiles, &scenario, diag),
                     DTS_OK);
    static const char *const no_offload[] = {"none"};
    static const dts_axis over[] = {{.key = "offload", .values = (const char **)no_offload, .count = 1}};
    dts_search_request request = {.base = dts_scenario_get(scenario),
                                  .restrictions = over,
                                  .restriction_count = 1,
                                  .method = "exhaustive",
                                  .simulations = 24,
                                  .threads = 1};
    dts_search *found = NULL;
    assert_int_equal(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &found, diag), DTS_OK);
    assert_true(found->count > 0 && found->findings[0].outcome.figures.fits);
    dts_text_add(got, found->findings[0].outcome.plan);
    dts_search_free(found);
    dts_scenario_free(scenario);
    dts_diag_free(diag);
}

/* The plan's name, up to its first parallelism, says which are in it. */
static bool best_plan_has(const claim *c, dts_text *got, const char *const *words, const char *const *lacks) {
    best_plan(c->base, c->settings, got);
    bool good = true;
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        good = good && strstr(dts_text_string(got), words[i]) != NULL;
    }
    for (size_t i = 0; lacks != NULL && lacks[i] != NULL; i++) {
        good = good && strstr(dts_text_string(got), lacks[i]) == NULL;
    }
    return good;
}

static bool small_models_take_data_parallelism(const claim *c, dts_text *got) {
    return best_plan_has(c, got, NULL, (const char *const[]){"tensor", "pipeline", "context", NULL});
}

static bool tensor_groups_stay_inside(const claim *c, dts_text *got) {
    best_plan(c->base, c->settings, got);
    bool inside = strstr(dts_text_string(got), "tensor 16") == NULL;
    double near =
        measure(c->base, "parallelism.tensor=8 parallelism.sequence=true parallelism.pipeline=2", iteration_s);
    double far = measure(c->base, "parallelism.tensor=16 parallelism.sequence=true", iteration_s);
    dts_text_printf(got, "; tensor 16 over tensor 8: × %.1f", far / near);
    return inside && far > 1.3 * near;
}

static bool another_cluster_another_plan(const claim *c, dts_text *got) {
    dts_text slow = {0};
    best_plan(c->base, NULL, got);
    best_plan(c->base, c->settings, &slow);
    bool differ = strcmp(dts_text_string(got), dts_text_string(&slow)) != 0;
    dts_text_add(got, "; with slow links ");
    dts_text_add(got, dts_text_string(&slow));
    dts_text_free(&slow);
    return differ;
}

static bool fast_nodes_take_zero_or_three_ways(const claim *c, dts_text *got) {
    best_plan(c->base, c->settings, got);
    const char *plan = dts_text_string(got);
    return strstr(plan, "zero") != NULL || strstr(plan, "fsdp") != NULL ||
           (strstr(plan, "tensor") != NULL && strstr(plan, "pipeline") != NULL);
}

static bool slow_nodes_take_all_four(const claim *c, dts_text *got) {
    return best_plan_has(c, got, (const char *const[]){"tensor", "pipeline", "zero1", NULL}, NULL);
}

/* ---- runs
 * ------------------------------------------------------------------------------------------------------------
 */

static bool three_ways(const char *settings, dts_text *got, double time[3]) {
    static const char *const ways[] = {WITH_PP, WITH_TP, WITH_ZERO};
    for (int i = 0; i < 3; i++) {
        char all[LONGEST_SETTINGS];
        snprintf(all, sizeof all, "%s%s", ways[i], settings);
        dts_result *r = simulate_text(node, all);
        time[i] = r->iteration_time_s;
        dts_text_printf(got, "%s %.1f s%s", (const char *const[]){"pipeline", ", tensor", ", ZeRO"}[i], time[i],
                        r->fits ? "" : " (does not fit)");
        dts_result_free(r);
    }
    return true;
}

static bool alike_on_nvlink(const claim *c, dts_text *got) {
    (void)c;
    double t[3];
    three_ways("", got, t);
    return fmax(t[0], fmax(t[1], t[2])) < 1.25 * fmin(t[0], fmin(t[1], t[2]));
}

static bool pipelines_win_on_pcie(const claim *c, dts_text *got) {
    (void)c;
    double t[3];
    three_ways(PCIE, got, t);
    return t[0] < t[1] && t[0] < t[2];
}

static bool one_layer_is_too_large(const claim *c, dts_text *got) {
    (void)c;
    static const char huge[] =
        "model: {profile: gpt, layers: 8, hidden: 25600, heads: 128, vocab: 50304}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 1}\nstack: megatron-lm\n"
        "training: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: bf16,\n"
        "           recompute: full}\n";
    dts_result *pipe = simulate_text(huge, "parallelism.pipeline=8");
    dts_result *data = simulate_text(huge, "parallelism.data_parallel=zero1");
    dts_text_printf(got, "one layer a GPU: %.0f of %.0f GiB; ZeRO-1 %.0f", pipe->peak_allocated_gib, pipe->capacity_gib,
                    data->peak_allocated_gib);
    bool neither = !pipe->fits && !data->fits;
    dts_result_free(pipe);
    dts_result_free(data);
    return neither;
}

static bool has_an_optimum(const claim *c, dts_text *got) {
    (void)c;
    static const char *const micro[] = {"training.micro_batch=32", "training.micro_batch=16", "training.micro_batch=8",
                                        "training.micro_batch=4",  "training.micro_batch=2",  "training.micro_batch=1"};
    double time[6];
    int best = 0;
    for (int i = 0; i < 6; i++) {
        char settings[256];
        snprintf(settings, sizeof settings,
                 "%s model.hidden=512 model.heads=8 training.sequence_length=256 training.global_batch=32", micro[i]);
        time[i] = measure(pipeline, settings, iteration_s);
        best = time[i] < time[best] ? i : best;
        dts_text_printf(got, "%s%.0f", i == 0 ? "" : ", ", 1e3 * time[i]);
    }
    dts_text_add(got, " ms for 1, 2, 4, 8, 16, 32 chunks");
    return best > 0 && best < 5;
}

static bool naive_uses_one_gpu(const claim *c, dts_text *got) {
    double value = measure(c->base, "training.micro_batch=32 training.recompute=full", bubble);
    say(got, value, NULL);
    return within(value, c->low, c->high);
}

static bool four_small_cards_hold_as_much(const claim *c, dts_text *got) {
    (void)c;
    static const char naive[] =
        "model: {profile: gpt, layers: 24, hidden: 1024, heads: 16, vocab: 50304, tied_embeddings: false}\n"
        "cluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 1}\nstack: pytorch-2\n"
        "training: {global_batch: 4, micro_batch: 4, sequence_length: 1024, precision: fp32}\n";
    dts_result *one = simulate_text(naive, "");
    dts_result *four =
        simulate_text(naive, "cluster.gpus_per_node=4 parallelism.pipeline=4 parallelism.schedule=naive");
    double sum = 0;
    for (size_t i = 0; i < four->stage_count; i++) {
        sum += four->stages[i].memory_gib.parameters;
    }
    /* optimizer steps run side by side, which makes up for the transfers: what is compared is the passes */
    double passes = (four->iteration_time_s - four->time_s.optimizer) / (one->iteration_time_s - one->time_s.optimizer);
    dts_text_printf(got, "weights %.2f = %.2f GiB; passes × %.3f", sum, one->memory_gib.parameters, passes);
    bool good = within(sum / one->memory_gib.parameters, 0.999, 1.001) && passes > 1;
    dts_result_free(one);
    dts_result_free(four);
    return good;
}

static bool tied_ends_exchange(const claim *c, dts_text *got) {
    (void)c;
    dts_result *r = simulate_text(pipeline, "");
    const dts_communication_row *row = communication_row(r, "send-recv", "embedding");
    bool there = row != NULL && row->bytes > 0;
    dts_text_printf(got, "%.0f MB between the first and the last stage", there ? row->bytes / 1e6 : 0);
    dts_result_free(r);
    return there;
}

/* 11.3 billion parameters are 45 GB in fp32 */
static bool fits_on_four_cards(const claim *c, dts_text *got) {
    (void)c;
    static const char model[] =
        "model: {profile: gpt, layers: 32, hidden: 5376, heads: 42, vocab: 32000}\n"
        "cluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 4}\nstack: pytorch-2\n"
        "training: {global_batch: 4, micro_batch: 1, sequence_length: 512, precision: fp32,\n"
        "           recompute: full}\nparallelism: {pipeline: 4}\n";
    dts_result *adamw = simulate_text(model, "");
    dts_result *sgd = simulate_text(model, "training.optimizer=sgd");
    dts_text_printf(got, "AdamW %.0f, SGD %.0f of %.0f GiB", adamw->peak_allocated_gib, sgd->peak_allocated_gib,
                    adamw->capacity_gib);
    bool fits = adamw->fits;
    dts_result_free(adamw);
    dts_result_free(sgd);
    return fits;
}

/* Of the time of all-gathers of parameters, how much is beside compute. */
static bool gathers_hide(const claim *c, dts_text *got) {
    (void)c;
    dts_result *r = simulate_text(sharded, "");
    const dts_communication_row *row = communication_row(r, "all-gather", "data");
    double hidden = row == NULL ? 0 : 1 - row->exposed_s / row->total_s;
    dts_text_printf(got, "%.0f %% of the gathers' time is hidden, %d gathers", 100 * hidden,
                    row == NULL ? 0 : (int)row->count);
    dts_result_free(r);
    return hidden > 1.0 / 3;
}

static const claim claims[] = {
    {"what fits on one GPU: DDP (or ZeRO)", "data parallel", HOLDS, NULL, .check = small_models_take_data_parallelism,
     .base = small},
    {"one node with fast links: pipeline, tensor parallelism and ZeRO are alike", "alike", HOLDS,
     "14 B parameters, within 25 %", .check = alike_on_nvlink},
    {"without fast links a pipeline is ahead of tensor parallelism and ZeRO", "order", HOLDS, "PCIe",
     .check = pipelines_win_on_pcie},
    {"tensor parallelism stays inside a node", "≤ 8", HOLDS, NULL, .check = tensor_groups_stay_inside,
     .base = two_nodes},
    {"a layer that fits no GPU needs tensor parallelism or ZeRO-3", "does not fit", HOLDS, NULL,
     .check = one_layer_is_too_large},
    {"nodes with fast links: ZeRO, or pipeline + tensor + data", "one of them", HOLDS, NULL,
     .check = fast_nodes_take_zero_or_three_ways, .base = two_nodes},
    {"slow links and little memory: data + pipeline + tensor + ZeRO-1", "all four", HOLDS,
     "1 % before the best without tensor parallelism, on 32 GPUs of 40 GB", .check = slow_nodes_take_all_four,
     .base = slow_nodes},
    {"the Hub's memory calculator is right within a few percent", "few %", NOT_SIMULATED,
     "another tool; what dtsim reaches is in accuracy.md", .check = NULL},
    {"global batch = microbatch · chunks · replicas: 8 · 32 · 4", "1024", HOLDS, "chunks", .check = a_value,
     .base = node,
     .settings = "training.global_batch=1024 training.micro_batch=8 parallelism.pipeline=2 parallelism.data=4",
     .of = microbatches, NEAR(32, 0)},
    {"1024 on 4 replicas in 32 chunks: microbatches of 8; 1023 is refused", "8", HOLDS, NULL, .check = is_refused,
     .base = node,
     .settings = "training.global_batch=1023 training.micro_batch=8 parallelism.pipeline=2 parallelism.data=4"},
    {"one chunk: one GPU of p works at a time", "bubble 3/4", HOLDS, NULL, .check = naive_uses_one_gpu,
     .base = pipeline, .low = 0.72, .high = 0.78},
    {"too many chunks are as slow as too few", "an optimum", HOLDS, NULL, .check = has_an_optimum},
    {"GPipe: F0 to F3, then a wait, then B3 to B0", "order", HOLDS, NULL,
     .proof = "tests/unit/schedule/test_orders.c orders_equal_the_generators"},
    {"1F1B and interleaving shrink bubble or memory", "order", HOLDS, NULL,
     .proof = "tests/validation/test_pipelines.c schedules_differ_as_the_scenarios_say"},
    {"four small cards hold the model of one large one, slower", "order", HOLDS, "`schedule: naive`",
     .check = four_small_cards_hold_as_much},
    {"tied embeddings are exchanged between the first and last stage", "exchange", HOLDS, NULL,
     .check = tied_ends_exchange},
    {"a model of 45 GB barely fits on four cards of 40 GB", "fits", DISAGREES,
     "not with AdamW, whose states alone are 90 GB; weights and gradients would fit", .check = fits_on_four_cards},
    {"ZeRO gathers a layer just before its use, ahead of time", "overlap", HOLDS, NULL, .check = gathers_hide},
    {"ZeRO cuts every parameter into N equal shards", "1/N", HOLDS, NULL,
     .proof = "tests/unit/run/test_strategies.c memory_is_that_of_zeros_table"},
    {"a pipeline takes ZeRO-1; ZeRO-2 reduces every microbatch", "slower", HOLDS, NULL, .check = a_ratio,
     .base = two_nodes, .settings = "parallelism.pipeline=4 parallelism.data_parallel=zero2",
     .against = "parallelism.pipeline=4 parallelism.data_parallel=zero1", .of = iteration_s, .low = 1.005, .high = 10},
    {"a pipeline of p stages has 1/p of the gradients already", "1/4", HOLDS, NULL, .check = a_ratio, .base = two_nodes,
     .settings = "parallelism.pipeline=4", .against = "parallelism.pipeline=1", .of = gradients_gib, .low = 0.23,
     .high = 0.30},
    {"data × pipeline needs 4 GPUs, with tensor parallelism 8", "refused with 4", HOLDS, NULL, .check = is_refused,
     .base = pipeline, .settings = "parallelism.pipeline=2 parallelism.data=2 parallelism.tensor=2"},
    {"FlexFlow's search takes about 30 minutes for a cluster; S, O, A, P", "30 min", HOLDS,
     "`--space soap`; times of searches are in search.md", .result = "seconds",
     .proof = "tests/unit/search/test_soap.c test_search_finds_optimum"},
    {"another cluster, another plan", "differs", HOLDS, NULL, .check = another_cluster_another_plan, .base = node,
     .settings = &PCIE[1]},
    {"simulation can choose the schedule (Varuna)", "search", HOLDS, "`--over parallelism.schedule`",
     .proof = "tests/property/test_search.c every_method_finds_the_optimum"},
    {"dynamic workloads may want other strategies over time", "–", NOT_SIMULATED,
     "one iteration is simulated; `load_imbalance` is all that varies", .check = NULL},
};

static void claims_are_as_listed(void **state) {
    (void)state;
    const document d = {'M', "[Efficient Training on Multiple GPUs](#efficient-training-on-multiple-gpus)",
                        "test_seeds_multi_gpu", claims, sizeof claims / sizeof claims[0]};
    claims_agree(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(claims_are_as_listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
