/* What is said to help does, when a user types it. */
#include "simulate.h"

#include "run/cures.h"
#include "run/verdict.h"

#define LLAMA(cluster, batch, parallelism) \
    "model: llama-3-8b\ncluster: " cluster \
    "\nstack: torchtitan\n"                \
    "training: {" batch ", sequence_length: 8128, precision: bf16, optimizer: adamw}\nparallelism: " parallelism "\n"

static const char *const fsdp =
    LLAMA("{profile: dgx-h100, nodes: 1}", "global_batch: 8, micro_batch: 1", "{data_parallel: fsdp}");

static dts_result *cured_with(const dts_cure_options *options, const char *text, const char *settings) {
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    char copy[LONGEST_SETTINGS];
    snprintf(copy, sizeof copy, "%s", settings);
    dts_override overrides[MOST_OVERRIDES];
    const size_t count = split_settings(copy, overrides);
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    dts_status status = dts_scenario_parse(text, strlen(text), "test", overrides, count, &profiles, &scenario, diag);
    status = status == DTS_OK ? dts_run(scenario, NULL, &result, diag) : status;
    if (status == DTS_OK && dts_needs_cure(result)) {
        status = dts_find_cures(dts_scenario_get(scenario), options, result, diag);
    }
    dts_scenario_free(scenario);
    assert_ok(status, diag);
    return result;
}

static dts_result *cured(const char *text, const char *settings) {
    return cured_with(NULL, text, settings);
}

/* Every change, typed behind what was typed before, gives what it was said to give. */
static void changes_can_be_typed(void **state) {
    (void)state;
    const char *const settings[] = {
        "training.sequence_length=9256",
        "",
        "training.sequence_length=8256 stack.allocator.expandable=false",
        "training.micro_batch=4 training.global_batch=32",
        "parallelism.data_parallel=ddp",
        "parallelism.data_parallel=ddp parallelism.data=8",
        "parallelism.data_parallel=ddp parallelism.data=4 parallelism.tensor=2 training.sequence_length=20480",
        "model=llama-3-405b",
        "model=llama-3-70b cluster.nodes=8 training.global_batch=64 parallelism.data_parallel=ddp parallelism.data=64",
        asked_for_few()
            ? "training.sequence_length=131072 cluster.nodes=4 training.global_batch=32 parallelism.data_parallel=ddp"
            : "training.sequence_length=131072 cluster.nodes=8 training.global_batch=64 parallelism.data_parallel=ddp",
        "cluster.gpus_per_node=1 training.global_batch=1",
        "cluster.gpus_per_node=1 training.global_batch=1 cluster.gpu.memory=24GiB",
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i += asked_for_few() ? 2 : 1) {
        dts_result *r = cured(fsdp, settings[i]);
        print_message("%s:", settings[i]);
        assert_true(r->cures_tried > 0);
        assert_true(r->cure_count > 0);
        for (size_t k = 0; k < r->cure_count; k++) {
            const dts_cure *c = &r->cures[k];
            char both[LONGEST_SETTINGS];
            snprintf(both, sizeof both, "%s %s", settings[i], c->change);
            dts_result *typed = simulate_text(fsdp, both);
            print_message(" %s (%.1f GiB)", c->change, c->peak_device_gib);
            assert_true(typed->fits == c->fits);
            assert_int_equal(typed->gpus, c->gpus);
            assert_close(typed->peak_device_gib, c->peak_device_gib, 1e-12, 0);
            assert_close(typed->tokens_per_s, c->tokens_per_s, 1e-12, 0);
            assert_close(dts_retry_share(typed), c->retry_share, 1e-12, 0);
            dts_result_free(typed);
        }
        print_message("\n");
        dts_result_free(r);
    }
}

/* Degrees climb to the one that suffices, and what one change alone does not do, two do. */
static void long_sequences_are_split_and_recomputed(void **state) {
    (void)state;
    static const struct {
        const char *settings, *told;
    } rows[] = {
        {"training.sequence_length=131072", "training.recompute=selective parallelism.context=8"},
        {"training.sequence_length=131072 cluster.nodes=8 training.global_batch=64", "parallelism.context=16"},
        {"training.sequence_length=131072 cluster.profile=dgx-b200", "parallelism.context=8"},
        {"training.sequence_length=32768 model=llama-3-70b cluster.nodes=8 training.global_batch=64",
         "training.recompute=full parallelism.context=2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += asked_for_few() ? 2 : 1) {
        dts_result *r = cured(fsdp, rows[i].settings);
        bool told = false;
        assert_int_equal(r->cure_count, 3);
        for (size_t k = 0; k < r->cure_count; k++) {
            print_message("%s: %s (%.1f GiB)\n", rows[i].settings, r->cures[k].change, r->cures[k].peak_device_gib);
            assert_true(r->cures[k].fits && strncmp(r->cures[k].verdict, "fits", 4) == 0);
            told |= strcmp(r->cures[k].change, rows[i].told) == 0;
        }
        assert_true(told);
        dts_result_free(r);
    }
}

/* Where nothing does on these GPUs, adapters and shorter samples are told apart, as another training. */
static void another_training_may_fit(void **state) {
    (void)state;
    static const struct {
        const char *settings, *told; /* NULL: the plan has a cure on its GPUs */
    } rows[] = {
        {"model=llama-3-70b cluster.profile=dgx-a100-80gb cluster.gpus_per_node=1", "training.adapters={lora: "},
        {"training.sequence_length=1048576 training.recompute=full cluster.gpus_per_node=1",
         "training.sequence_length="},
        {"model=llama-3-70b cluster.profile=rtx-4090-pcie-8 stack=pytorch-2 parallelism.data_parallel=ddp "
         "training.sequence_length=2048",
         "parallelism.data_parallel=fsdp training.adapters={lora: "},
        {"model=llama-3-70b cluster.profile=rtx-4090-pcie-8 stack=deepspeed parallelism.data_parallel=zero1 "
         "training.sequence_length=2048",
         "parallelism.data_parallel=zero3 training.adapters={lora: "},
        {"training.sequence_length=131072", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dts_result *r = cured(fsdp, rows[i].settings);
        bool told = rows[i].told == NULL && r->other_training_count == 0;
        for (size_t k = 0; k < r->other_training_count; k++) {
            const dts_cure *c = &r->other_trainings[k];
            print_message("%s: %s (%.1f GiB)\n", rows[i].settings, c->change, c->peak_device_gib);
            assert_true(c->fits && c->gpus == r->gpus && c->peak_device_gib < r->capacity_gib);
            told |= rows[i].told != NULL && strstr(c->change, rows[i].told) != NULL;
        }
        assert_true(told);
        dts_result_free(r);
    }
}

/* What takes long in full is told as a first look has it. */
static void large_plans_are_looked_at(void **state) {
    (void)state;
    dts_result *r = cured(fsdp,
                          "model=llama-3-405b cluster.nodes=512 training.global_batch=2048 stack=megatron-core "
                          "parallelism.tensor=8 parallelism.pipeline=16 parallelism.data_parallel=zero1 "
                          "training.sequence_length=131072");
    assert_true(r->cure_count > 0);
    for (size_t k = 0; k < r->cure_count; k++) {
        assert_true(r->cures[k].coarse && r->cures[k].fits);
        assert_null(r->cures[k].verdict); /* a first look knows no retries */
        assert_true(r->cures[k].peak_device_gib < 0.9 * r->capacity_gib);
    }
    dts_result_free(r);
}

/* Kernels that are asked for one by one are as many as they are, and so are those of all ranks. */
static void what_fidelity_asks_for_counts(void **state) {
    (void)state;
    static const char *const settings[] = {
        "training.global_batch=2048 fidelity.detail=kernel",
        "training.global_batch=256 fidelity.ranks=full",
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char all[LONGEST_SETTINGS];
        snprintf(all, sizeof all, "parallelism.data_parallel=ddp %s", settings[i]);
        dts_result *r = cured(fsdp, all);
        assert_true(r->cure_count > 0);
        for (size_t k = 0; k < r->cure_count; k++) {
            print_message("%s: %s\n", settings[i], r->cures[k].change);
            assert_true(r->cures[k].coarse && r->cures[k].fits);
        }
        dts_result_free(r);
    }
}

/* A first look only guesses what graphs hold, so that all that is known was simulated in full. */
static void guesses_are_checked_within_the_bound(void **state) {
    (void)state;
    enum { WHOLE_MOST = 18 };
    dts_result *r = cured(fsdp, "parallelism.data_parallel=ddp stack.cuda_graphs=layers");
    print_message("%zu known\n", r->cures_tried);
    assert_true(r->cures_tried > 0 && r->cures_tried <= WHOLE_MOST);
    assert_int_equal(r->cure_count, 3);
    for (size_t k = 0; k < r->cure_count; k++) {
        assert_true(r->cures[k].fits && !r->cures[k].coarse);
    }
    dts_result_free(r);
}

/* Weights of 70 billion parameters stay on every GPU, however often a sequence or the layers are split again. */
static void degrees_that_lead_nowhere_are_left(void **state) {
    (void)state;
    dts_result *r = cured(fsdp,
                          "model=llama-3-70b cluster.nodes=8 training.global_batch=64 "
                          "parallelism.data_parallel=ddp parallelism.data=64");
    print_message("%zu known\n", r->cures_tried);
    assert_true(r->cure_count > 0 && r->cures[0].fits);
    assert_true(r->cures_tried < 66);
    dts_result_free(r);
}

/* DeepSpeed has stages of ZeRO and no FSDP. */
static void states_are_sharded_as_the_software_says(void **state) {
    (void)state;
    static const char *const stacks[] = {"deepspeed", "pytorch-2"};
    bool told[2][2] = {{false}};
    for (size_t i = 0; i < 2; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings,
                 "stack=%s model=llama-3-70b cluster.nodes=8 training.global_batch=64 parallelism.data_parallel=ddp",
                 stacks[i]);
        dts_result *r = cured(fsdp, settings);
        assert_true(r->cure_count > 0);
        for (size_t k = 0; k < r->cure_count; k++) {
            print_message("%s: %s\n", stacks[i], r->cures[k].change);
            told[i][0] |= strstr(r->cures[k].change, "data_parallel=zero") != NULL;
            told[i][1] |= strstr(r->cures[k].change, "data_parallel=fsdp") != NULL;
        }
        dts_result_free(r);
    }
    assert_true(told[0][0] && !told[0][1] && told[1][1]);
}

/* Of a plan whose GPUs have enough, and of one that only its nodes are too small for. */
static void small_nodes_are_told_of(void **state) {
    (void)state;
    dts_result *r = cured(fsdp, "cluster.host.memory=20GiB offload.optimizer=cpu training.recompute=full");
    assert_false(r->fits);
    assert_true(r->cure_count > 0 && r->cures[0].fits);
    print_message("%s\n", r->cures[0].change);
    assert_string_equal(r->cures[0].change, "offload.optimizer=none");
    dts_result_free(r);
    r = cured(fsdp,
              "model=llama-3-70b cluster.gpus_per_node=4 training.global_batch=4 training.recompute=full "
              "cluster.host.memory=20GiB");
    print_message("%s, but %s\n", r->cures[0].change, r->host_short == NULL ? "nothing" : r->host_short);
    assert_non_null(r->host_short);
    assert_string_equal(r->host_short, "offload.optimizer=cpu");
    dts_result_free(r);
}

static void what_fits_needs_none(void **state) {
    (void)state;
    dts_result *fits = cured(fsdp, "training.sequence_length=7000");
    assert_int_equal(fits->cures_tried, 0);
    dts_result *unasked = simulate_text(fsdp, "training.sequence_length=9256");
    assert_int_equal(unasked->cures_tried, 0);
    dts_result_free(fits);
    dts_result_free(unasked);
}

/* Retries go with everything that leaves room, and what is told of is faster than paying for them. */
static void retries_are_cured(void **state) {
    (void)state;
    dts_result *r = cured(fsdp, "");
    assert_true(r->fits);
    for (size_t k = 0; k < r->cure_count; k++) {
        assert_true(r->cures[k].retry_share < 0.01);
        assert_true(r->cures[k].tokens_per_s > r->tokens_per_s);
        assert_true(k == 0 || r->cures[k].tokens_per_s <= r->cures[k - 1].tokens_per_s);
    }
    assert_string_equal(r->cures[0].change, "training.recompute=selective");
    dts_result_free(r);
}

/* What fits, but with a few retries, is told behind what surely fits, and marked. */
static void few_retries_are_marked(void **state) {
    (void)state;
    dts_result *r = cured(fsdp,
                          "training.sequence_length=9000 training.recompute=full cluster.gpu.memory=32GiB "
                          "stack.allocator.expandable=false");
    assert_int_equal(r->cure_count, 3);
    assert_true(r->cures[0].retry_share < 0.01 && r->cures[1].retry_share < 0.01);
    assert_true(r->cures[2].retry_share >= 0.01 && r->cures[2].retry_share < 0.1 && r->cures[2].retries > 0);
    assert_int_equal(strncmp(r->cures[2].verdict, "fits, but ", strlen("fits, but ")), 0);
    dts_result_free(r);
}

/* Of many microbatches a few show what helps; what is told of is simulated with all of them. */
static void many_microbatches_are_tried_in_part(void **state) {
    (void)state;
    const char *many = asked_for_few() ? "training.global_batch=192" : "training.global_batch=512";
    dts_result *r = cured(fsdp, many);
    assert_true(r->fits && r->cure_count > 1);
    assert_true(r->cures_tried > r->cure_count); /* the parts of others were simulated as well */
    assert_true(r->cures_left_out > 0);          /* for which the budget did not suffice */
    assert_false(r->cures[0].coarse);
    for (size_t k = 0; k < r->cure_count; k++) {
        assert_true(r->cures[k].tokens_per_s > r->tokens_per_s);
        assert_true(k == 0 || r->cures[k].tokens_per_s <= r->cures[k - 1].tokens_per_s);
        assert_true(r->cures[k].retry_share < 0.01);
    }
    char both[LONGEST_SETTINGS];
    snprintf(both, sizeof both, "%s %s", many, r->cures[0].change);
    dts_result *typed = simulate_text(fsdp, both);
    assert_close(typed->tokens_per_s, r->cures[0].tokens_per_s, 1e-12, 0);
    dts_result_free(typed);
    dts_result_free(r);
}

/* More whole replicas hold as much each; what does not suffice is not offered. */
static void whole_replicas_are_not_sent_to_more_gpus(void **state) {
    (void)state;
    dts_result *r = cured(fsdp, "parallelism.data_parallel=ddp training.micro_batch=2 training.global_batch=16");
    assert_false(r->fits);
    assert_true(r->cure_count > 0);
    for (size_t k = 0; k < r->cure_count; k++) {
        assert_true(r->cures[k].fits);
        assert_int_equal(r->cures[k].gpus, r->gpus);
    }
    dts_result_free(r);
}

/* Nothing suffices: the nearest, and how much it needs. */
static void the_nearest_is_told_where_nothing_suffices(void **state) {
    (void)state;
    dts_result *r = cured(fsdp, "cluster.gpu.memory=4GiB");
    assert_int_equal(r->cure_count, 1);
    assert_false(r->cures[0].fits);
    assert_true(r->cures[0].needed_gib > r->capacity_gib && r->cures_tried > 10);
    assert_null(r->look_further); /* whoever asked has not said how a command would name it */
    dts_result_free(r);
    const dts_cure_options options = {.named = "here.yaml --set cluster.gpu.memory=4GiB"};
    dts_result *further = cured_with(&options, fsdp, "cluster.gpu.memory=4GiB");
    assert_string_equal(further->look_further, "dtsim search here.yaml --set cluster.gpu.memory=4GiB");
    dts_result_free(further);
}

/* What costs no time is combined before anything that costs some. */
static void what_is_free_comes_first(void **state) {
    (void)state;
    static const char megatron[] =
        "model: qwen2.5-32b\ncluster: {profile: dgx-h100, nodes: 2}\nstack: megatron-core\nparallelism: {tensor: 8}\n"
        "training: {global_batch: 128, micro_batch: 1, sequence_length: 8192, precision: bf16}\n";
    dts_result *r = cured(megatron, "");
    assert_true(r->cure_count > 0);
    assert_string_equal(r->cures[0].change, "parallelism.sequence=true parallelism.data_parallel=zero1");
    assert_true(r->cures[0].fits && r->cures[0].tokens_per_s > r->tokens_per_s);
    dts_result_free(r);
}

/* A change that just fills the card is told behind those that leave room, however fast it is. */
static void what_is_sure_comes_first(void **state) {
    (void)state;
    enum { MANY = 3 };
    const char *const settings = "training.micro_batch=4 training.global_batch=32";
    const double rooms[] = {0, 1.12}; /* full recomputation leaves less */
    bool doubted[2] = {false, false};
    for (size_t i = 0; i < 2; i++) {
        const dts_cure_options options = {.sure_room = rooms[i]};
        dts_result *r = cured_with(&options, fsdp, settings);
        assert_int_equal(r->cure_count, MANY);
        for (size_t k = 0; k < r->cure_count; k++) {
            print_message("%s: room %.3f\n", r->cures[k].change, r->cures[k].room);
            doubted[i] |= r->cures[k].room < rooms[1];
            assert_true(k == 0 || r->cures[k].room < rooms[i] || r->cures[k - 1].room >= rooms[i]);
        }
        dts_result_free(r);
    }
    assert_true(doubted[0]);
}

/* Trials take a few times as long as the run, and the same ones are taken every time. */
static void trials_keep_to_a_budget(void **state) {
    (void)state;
    static const char *const settings =
        "stack=pytorch-2 cluster.nodes=2 cluster.gpu.memory=40GiB "
        "parallelism.data_parallel=ddp parallelism.tensor=4 parallelism.pipeline=4 "
        "parallelism.schedule=chimera training.global_batch=128";
    size_t tried = 0;
    for (int i = 0; i < 2; i++) {
        dts_result *r = cured(fsdp, settings);
        print_message("%zu tried, %zu left out\n", r->cures_tried, r->cures_left_out);
        assert_true(r->cures_tried > 0 && r->cures_left_out > 0 && r->cures_tried < 10);
        assert_true(i == 0 || r->cures_tried == tried);
        tried = r->cures_tried;
        dts_result_free(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_can_be_typed),
        cmocka_unit_test(long_sequences_are_split_and_recomputed),
        cmocka_unit_test(another_training_may_fit),
        cmocka_unit_test(large_plans_are_looked_at),
        cmocka_unit_test(what_fidelity_asks_for_counts),
        cmocka_unit_test(guesses_are_checked_within_the_bound),
        cmocka_unit_test(degrees_that_lead_nowhere_are_left),
        cmocka_unit_test(states_are_sharded_as_the_software_says),
        cmocka_unit_test(small_nodes_are_told_of),
        cmocka_unit_test(what_fits_needs_none),
        cmocka_unit_test(retries_are_cured),
        cmocka_unit_test(few_retries_are_marked),
        cmocka_unit_test(many_microbatches_are_tried_in_part),
        cmocka_unit_test(whole_replicas_are_not_sent_to_more_gpus),
        cmocka_unit_test(the_nearest_is_told_where_nothing_suffices),
        cmocka_unit_test(what_is_free_comes_first),
        cmocka_unit_test(what_is_sure_comes_first),
        cmocka_unit_test(trials_keep_to_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
