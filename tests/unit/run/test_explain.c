/* Explanations against what the result says elsewhere, and what-ifs against what must come out. */
#include "run/explain.h"

#include "simulate.h"

static const char *const scenario = "scenarios/gcp-data-parallel/scaling-pdp.yaml";

static dts_result *explained(const char *path, const char *settings, bool what_if) {
    char copy[LONGEST_SETTINGS];
    snprintf(copy, sizeof copy, "%s", settings);
    dts_override overrides[MOST_OVERRIDES];
    const char *roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    const dts_explain_request request = {.path = path,
                                         .overrides = overrides,
                                         .override_count = split_settings(copy, overrides),
                                         .profiles = &profiles,
                                         .what_if = what_if};
    dts_diag *diag = dts_diag_new();
    dts_result *result = NULL;
    assert_ok(dts_explain(&request, &result, diag), diag);
    return result;
}

static const dts_kernel_row *kernel(const dts_result *r, const char *name, const char *direction) {
    for (size_t i = 0; i < r->explanation->kernel_count; i++) {
        const dts_kernel_row *row = &r->explanation->kernels[i];
        if (strcmp(row->name, name) == 0 && strcmp(row->direction, direction) == 0) {
            return row;
        }
    }
    fail_msg("no kernel %s %s", name, direction);
    return NULL;
}

/* NULL: not tried, or illegal. */
static const dts_what_if_row *find_what_if(const dts_result *r, const char *name) {
    for (size_t i = 0; i < r->explanation->what_if_count; i++) {
        if (strcmp(r->explanation->what_ifs[i].name, name) == 0) {
            return &r->explanation->what_ifs[i];
        }
    }
    return NULL;
}

static const dts_what_if_row *what_if(const dts_result *r, const char *name) {
    const dts_what_if_row *row = find_what_if(r, name);
    if (row == NULL) {
        fail_msg("no what-if %s", name);
    }
    return row;
}

static const char *const settings_of[] = {
    "", "parallelism.pipeline=1", "parallelism.pipeline=1 parallelism.data_parallel=fsdp",
    "parallelism.pipeline=1 parallelism.tensor=4 cluster.nodes=1", "training.recompute=full"};

static void the_critical_path_sums_to_the_iteration(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof settings_of / sizeof settings_of[0]; s++) {
        dts_result *r = explained(scenario, settings_of[s], false);
        double sum = 0;
        for (size_t i = 0; i < r->explanation->path_count; i++) {
            sum += r->explanation->path[i].total_s;
            assert_true(i == 0 || r->explanation->path[i].total_s <= r->explanation->path[i - 1].total_s);
        }
        assert_close(sum, r->iteration_time_s, 1e-12, 0);
        dts_result_free(r);
    }
}

static void kernels_sum_to_the_compute_share_and_to_the_flops(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof settings_of / sizeof settings_of[0]; s++) {
        dts_result *r = explained(scenario, settings_of[s], false);
        double compute_s = 0, flops = 0;
        for (size_t i = 0; i < r->explanation->kernel_count; i++) {
            const dts_kernel_row *row = &r->explanation->kernels[i];
            compute_s += strcmp(row->direction, "optimizer") == 0 ? 0 : row->total_s;
            flops += row->flops;
            assert_true(row->share_of_peak >= 0 && row->share_of_peak <= 1);
            assert_true(row->share_of_bandwidth >= 0 && row->share_of_bandwidth <= 1);
        }
        assert_close(compute_s, r->time_s.compute, 1e-9, 0);
        if (r->stage_count == 1) { /* hfu = FLOP / (peak · time), and 312 TFLOP/s is the A100's fp16 peak */
            assert_close(flops / r->iteration_time_s / 312e12, r->hfu, 1e-9, 0);
        }
        dts_result_free(r);
    }
}

/* One term of each formula decides, so exactly one of the three growths is 1. */
static void bounds_are_what_the_formulas_say(void **state) {
    (void)state;
    dts_result *r =
        explained(scenario, "parallelism.pipeline=1 training.micro_batch=32 training.global_batch=512", false);
    const dts_kernel_row *product = kernel(r, "mlp_up", "forward");
    assert_int_equal(product->bound, DTS_BOUND_COMPUTE);
    assert_close(product->by_compute, 1, 1e-6, 0);
    assert_close(product->by_memory + product->by_floor, 0, 0, 1e-9);
    /* (32 · 256 tokens, 1536)·(1536, 6144) on each of 24 layers, once */
    assert_close(product->flops, 24 * 2.0 * 32 * 256 * 1536 * 6144, 1e-12, 0);
    assert_non_null(strstr(product->shape, "(8192, 1536)·(1536, 6144)"));
    const dts_kernel_row *softmax = kernel(r, "attention_softmax", "backward");
    assert_int_equal(softmax->bound, DTS_BOUND_MEMORY);
    /* linear in the bytes: t(B / 1.1) = 1.1 t(B) */
    assert_close(softmax->by_memory, 1, 1e-6, 0);
    assert_close(softmax->share_of_bandwidth, 0.889, 1e-6, 0); /* memory_kernel.efficiency of the A100 */
    dts_result_free(r);
    r = explained(scenario, "parallelism.pipeline=1 training.micro_batch=1 training.global_batch=16", false);
    const dts_kernel_row *small = kernel(r, "attention_merge", "forward");
    assert_int_equal(small->bound, DTS_BOUND_LAUNCH); /* 36 us to launch, less to run */
    assert_true(small->wait_s > small->total_s);
    dts_result_free(r);
}

/* FLOP of attention are counted in full, as MFU counts them; what fused attention reaches is that of the half it
 * computes. */
static void fused_attention_stays_below_the_peak(void **state) {
    (void)state;
    dts_result *r = explained("scenarios/planning/llama-3-8b.yaml",
                              "cluster.profile=dgx-h100 cluster.nodes=1 stack=megatron-core model.layers=2 "
                              "training.global_batch=8 parallelism.data_parallel=zero1",
                              false);
    const dts_kernel_row *attention = kernel(r, "flash_attention", "forward");
    assert_close(attention->flops, 2 * 4.0 * 8192 * 8192 * 4096, 1e-12, 0);
    assert_true(attention->flops / attention->total_s > 989e12);
    assert_close(attention->share_of_peak, attention->flops / 2 / attention->total_s / 989e12, 1e-9, 0);
    assert_close(kernel(r, "mlp_down", "forward")->computed, 1, 0, 0);
    dts_result_free(r);
}

static void what_ifs_move_what_they_name(void **state) {
    (void)state;
    dts_result *r = explained(scenario, "parallelism.pipeline=1", true);
    assert_true(r->time_s.exposed_communication > 0.8 * r->iteration_time_s);
    const dts_what_if_row *network = what_if(r, "network between nodes");
    double slower = r->time_s.exposed_communication / 11; /* a tenth faster takes 1/11 less */
    assert_close(r->iteration_time_s - network->iteration_s, slower, 0.15, 0);
    const dts_what_if_row *size = what_if(r, "GPU memory size");
    assert_close(size->iteration_s, r->iteration_time_s, 1e-12, 0);
    assert_close(size->peak_device_gib, r->peak_device_gib, 1e-9, 0);
    assert_true(what_if(r, "host link (PCIe)")->iteration_s == r->iteration_time_s);
    assert_non_null(strstr(network->keys, "cluster.inter.flow_cap"));
    for (size_t i = 0; i < r->explanation->what_if_count; i++) {
        const dts_what_if_row *row = &r->explanation->what_ifs[i];
        /* faster hardware never slows this plan by more than the order of simultaneous transfers */
        assert_true(row->plan || row->iteration_s < 1.01 * r->iteration_time_s);
    }
    assert_non_null(strstr(r->explanation->advice, "network between nodes matters most"));
    dts_result_free(r);
}

/* Who cuts stages by hand is told what cutting them anew gives; a list of layers does not hide other numbers of stages
 * and chunks, which it cannot be for. */
static void stages_cut_by_hand_are_cut_anew(void **state) {
    (void)state;
    static const char by_hand[] =
        "cluster.nodes=1 cluster.gpus_per_node=4 parallelism.data=1 parallelism.pipeline=4 "
        "parallelism.schedule=1f1b parallelism.partition=[9,5,5,5] training.global_batch=64";
    dts_result *r = explained(scenario, by_hand, true);
    const dts_what_if_row *anew = what_if(r, "stages cut anew");
    assert_non_null(anew);
    assert_string_equal(anew->change, "parallelism.partition=auto");
    assert_true(anew->iteration_s < 0.9 * r->iteration_time_s);
    assert_non_null(strstr(r->explanation->advice, "parallelism.partition=auto"));
    const dts_what_if_row *chunks = what_if(r, "more chunks a stage");
    assert_non_null(chunks);
    assert_non_null(strstr(chunks->change, "parallelism.partition=auto"));
    dts_result_free(r);
    /* what leaves the stages as many as they are keeps their layers */
    static const char in_groups[] =
        "cluster.nodes=1 parallelism.data=1 parallelism.tensor=2 parallelism.sequence=false parallelism.pipeline=4 "
        "parallelism.schedule=1f1b parallelism.partition=[9,5,5,5] training.global_batch=32";
    r = explained(scenario, in_groups, true);
    const dts_what_if_row *sequence = what_if(r, "sequence parallelism");
    assert_non_null(sequence);
    assert_string_equal(sequence->change, "parallelism.sequence=true");
    dts_result_free(r);
    r = explained(scenario, "cluster.nodes=1 parallelism.pipeline=4 training.global_batch=32", true);
    for (size_t i = 0; i < r->explanation->what_if_count; i++) {
        assert_string_not_equal(r->explanation->what_ifs[i].name, "stages cut anew"); /* they are */
    }
    dts_result_free(r);
}

/* Whoever leaves all experts on every rank is told what spreading them over a node gives; those that are spread have
 * both neighbours, and dense models none. */
static void experts_are_spread(void **state) {
    (void)state;
    static const char mixtral[] = "scenarios/experts/mixtral-2-dgx.yaml";
    dts_result *r =
        explained(mixtral, "parallelism.expert=1 parallelism.pipeline=1 parallelism.data_parallel=fsdp", true);
    const dts_what_if_row *more = what_if(r, "experts on more ranks");
    assert_non_null(more);
    assert_string_equal(more->change, "parallelism.expert=8");
    assert_true(more->iteration_s < r->iteration_time_s);
    assert_null(find_what_if(r, "experts on fewer ranks"));
    dts_result_free(r);
    r = explained(mixtral, "parallelism.expert=4", true);
    assert_string_equal(what_if(r, "experts on more ranks")->change, "parallelism.expert=8");
    assert_string_equal(what_if(r, "experts on fewer ranks")->change, "parallelism.expert=2");
    dts_result_free(r);
    r = explained(scenario, "training.recompute=none", true);
    assert_null(find_what_if(r, "experts on more ranks"));
    assert_null(strstr(r->explanation->advice, "less recomputation")); /* there is none to leave out */
    dts_result_free(r);
}

/* Far too small kernels: the time is the launches', so a tenth off the launch cost is nearly a tenth of the time. */
static void launch_bound_plans_gain_what_launches_cost(void **state) {
    (void)state;
    dts_result *r = explained(scenario,
                              "parallelism.pipeline=1 training.micro_batch=1 training.global_batch=1 cluster.nodes=1 "
                              "cluster.gpus_per_node=1 stack.step_host=0",
                              true);
    const dts_what_if_row *launch = what_if(r, "launch cost of kernels");
    double share = r->iteration_time_s / launch->iteration_s - 1;
    assert_true(share > 0.07 && share <= 0.1 + 1e-9);
    dts_result_free(r);
}

static void inputs_know_their_sources(void **state) {
    (void)state;
    dts_result *r = explained(scenario, "cluster.gpu.memory_bandwidth=\"1400GB/s\"", false);
    bool bandwidth = false, peak = false;
    for (size_t i = 0; i < r->explanation->input_count; i++) {
        const dts_input_row *row = &r->explanation->inputs[i];
        if (strcmp(row->key, "cluster.gpu.memory_bandwidth") == 0) {
            bandwidth = true;
            assert_string_equal(row->file, "test");
            assert_string_equal(row->use, "device memory");
        }
        if (strcmp(row->key, "cluster.gpu.peak.fp16") == 0) {
            peak = true;
            assert_non_null(row->source);
            assert_true(row->line > 0);
        }
    }
    assert_true(bandwidth && peak);
    dts_result_free(r);
}

/* ZeRO, figure 1: 2 bytes each of parameters and gradients in fp16, and all terms together are what the device holds.
 */
static void memory_terms_sum_to_the_peak(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof settings_of / sizeof settings_of[0]; s++) {
        dts_result *r = explained(scenario, settings_of[s], false);
        double sum_gib = 0;
        for (size_t i = 0; i < r->explanation->memory_count; i++) {
            sum_gib += r->explanation->memory[i].gib;
            assert_non_null(r->explanation->memory[i].formula);
        }
        assert_close(sum_gib, r->peak_device_gib, 1e-9, 0);
        if (s == 1) { /* plain DDP */
            assert_string_equal(r->explanation->memory[0].name, "parameters");
            assert_non_null(strstr(r->explanation->memory[0].formula, "8.34e+08 parameters · 2 B"));
        }
        dts_result_free(r);
    }
}

static const dts_memory_term *term_of(const dts_result *r, const char *name) {
    for (size_t i = 0; i < r->explanation->memory_count; i++) {
        if (strcmp(r->explanation->memory[i].name, name) == 0) {
            return &r->explanation->memory[i];
        }
    }
    return NULL;
}

/* Experts are shared by the ranks that hold the same ones: here by one of 8, while 8 share what is dense. The numbers
 * of a formula are its term. */
static void experts_are_terms_of_their_own(void **state) {
    (void)state;
    const double GIB = 1024.0 * 1024.0 * 1024.0;
    static const char *const names[] = {"parameters", "gradients", "optimizer"};
    static const double ranks[] = {1, 1, 8};
    dts_result *r = explained("scenarios/experts/mixtral-2-dgx.yaml", "training.global_batch=32", false);
    for (size_t i = 0; i < 3; i++) {
        const dts_memory_term *term = term_of(r, names[i]);
        double dense_gib, dense, dense_B, experts_gib, experts, experts_B, by = 1;
        assert_non_null(term);
        print_message("%s\n", term->formula);
        assert_int_equal(sscanf(term->formula, "%lf GiB: %lf dense parameters · %lf B", &dense_gib, &dense, &dense_B),
                         3);
        const char *behind = strstr(term->formula, "; ");
        assert_non_null(behind);
        assert_int_equal(
            sscanf(behind, "; %lf GiB: %lf parameters of experts · %lf B", &experts_gib, &experts, &experts_B), 3);
        const char *shared = strstr(term->formula, " / ");
        assert_true((shared != NULL && shared < behind) == (ranks[i] > 1));
        assert_true(shared == NULL || sscanf(shared, " / %lf ranks", &by) == 1);
        assert_close(by, ranks[i], 0, 0);
        assert_close(dense_gib, dense * dense_B / ranks[i] / GIB, 0, 0.006);
        assert_close(experts_gib, experts * experts_B / GIB, 1e-3, 0.006);
        assert_close(experts, 2.82e9, 0.01, 0);
        double sum_gib = dense_gib; /* with all that stand behind, and what is there at the peak only */
        for (const char *next = behind; next != NULL; next = strstr(next + 1, "; ")) {
            double gib;
            assert_true(sscanf(next, "; %lf GiB", &gib) == 1 || sscanf(next, "; and %lf GiB", &gib) == 1);
            sum_gib += gib;
        }
        assert_close(sum_gib, term->gib, 0, 0.03);
    }
    dts_result_free(r);
}

static void plain_runs_have_no_explanation(void **state) {
    (void)state;
    dts_result *r = simulate_file(scenario, "");
    assert_null(r->explanation);
    dts_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_critical_path_sums_to_the_iteration),
        cmocka_unit_test(kernels_sum_to_the_compute_share_and_to_the_flops),
        cmocka_unit_test(bounds_are_what_the_formulas_say),
        cmocka_unit_test(fused_attention_stays_below_the_peak),
        cmocka_unit_test(what_ifs_move_what_they_name),
        cmocka_unit_test(stages_cut_by_hand_are_cut_anew),
        cmocka_unit_test(experts_are_spread),
        cmocka_unit_test(launch_bound_plans_gain_what_launches_cost),
        cmocka_unit_test(inputs_know_their_sources),
        cmocka_unit_test(memory_terms_sum_to_the_peak),
        cmocka_unit_test(experts_are_terms_of_their_own),
        cmocka_unit_test(plain_runs_have_no_explanation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
