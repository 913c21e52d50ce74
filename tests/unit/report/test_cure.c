/* What is said of a plan that does not fit, or pays for it. */
#include "check.h"
#include "report/cure.h"
#include "report/report.h"
#include "sample.h"

static const dts_report_options plain = {.style = {.width = 80, .color = false, .unicode = true}};

static void page_names_a_cure_when_it_does_not_fit(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    s.result.fits = false;
    s.result.peak_device_gib = 55;
    dts_text text = {0};
    dts_report_text(&s.result, &plain, &text);
    assert_non_null(strstr(dts_text_string(&text), "DOES NOT FIT"));
    assert_non_null(strstr(dts_text_string(&text), "15.4 GiB too much"));
    assert_null(strstr(dts_text_string(&text), "training.recompute=full")); /* HFU over MFU: it recomputes already */
    s.result.hfu = s.result.mfu;
    dts_text_clear(&text);
    dts_report_text(&s.result, &plain, &text);
    assert_non_null(strstr(dts_text_string(&text), "training.recompute=full"));
    s.result.memory_gib.parameters = 30;
    dts_text_clear(&text);
    dts_report_text(&s.result, &plain, &text);
    assert_non_null(strstr(dts_text_string(&text), "parallelism.data_parallel=fsdp"));
    s.result.plan = "fsdp 16";
    dts_text_clear(&text);
    dts_report_text(&s.result, &plain, &text);
    assert_null(strstr(dts_text_string(&text), "parallelism.data_parallel=fsdp"));
    dts_text_free(&text);
}

/* A plan with one sample a microbatch that needs a fifth more than GPUs of 79 GiB have. */
static dts_result crowded(int64_t gpus, int64_t nodes, const char *plan, bool recomputes) {
    return (dts_result){.gpus = gpus,
                        .nodes = nodes,
                        .micro_batch = 1,
                        .plan = plan,
                        .mfu = 0.3,
                        .hfu = recomputes ? 0.4 : 0.3,
                        .capacity_gib = 79,
                        .peak_device_gib = 95,
                        .peak_allocated_gib = 94,
                        .host_capacity_gib = 1000};
}

static void assert_cure(const dts_result *r, const char *told, const char *untold) {
    dts_text text = {0};
    dts_report_cure(r, &text);
    print_message("%s\n", dts_text_string(&text));
    assert_non_null(strstr(dts_text_string(&text), told));
    assert_null(strstr(dts_text_string(&text), untold));
    dts_text_free(&text);
}

/* What is said can be done: no smaller microbatch than one sample, nothing split over one GPU. */
static void cures_can_be_applied(void **state) {
    (void)state;
    static const struct {
        int64_t gpus, nodes, micro_batch;
        const char *plan;
        double parameters, activations, temporary; /* GiB: the largest is what is told */
        bool recomputes;
        double host_gib; /* offloaded */
        const char *told, *untold;
    } rows[] = {
        {16, 2, 4, "ddp 16", 50, 1, 1, false, 0, "data_parallel=fsdp or", "offload"},
        {1, 1, 4, "ddp 1", 50, 1, 1, false, 0, "offload.optimizer=cpu", "splits"},
        {1, 1, 4, "ddp 1", 50, 1, 1, false, 0, "base: nf4", "fsdp"},
        {1, 1, 4, "ddp 1", 50, 1, 1, false, 10, "training.adapters (low rank", "offload"},
        {8, 1, 4, "fsdp 8", 50, 1, 1, false, 0, "offload.parameters=cpu", "data_parallel=fsdp"},
        {8, 1, 4, "fsdp 8", 50, 1, 1, false, 10, "more GPUs", "offload"},
        {1, 1, 4, "ddp 1", 50, 1, 1, false, 0, "offload.optimizer=cpu", "more GPUs"}, /* replicas hold as much each */
        {16, 2, 4, "fsdp 16", 50, 1, 1, false, 0, "more GPUs", "offload"},
        {8, 1, 4, "ddp 8", 1, 50, 1, false, 0, "training.recompute=full or a smaller", "offload"},
        {8, 1, 1, "ddp 8", 1, 50, 1, false, 0, "training.recompute=full", "micro_batch"},
        {8, 1, 1, "ddp 8", 1, 50, 1, true, 0, "parallelism.context", "micro_batch"},
        {1, 1, 1, "ddp 1", 1, 50, 1, true, 0, "offload.activations=cpu", "parallelism"},
        {1, 1, 2, "ddp 1", 1, 50, 1, true, 0, "micro_batch", "parallelism"},
        {8, 1, 2, "ddp 8", 1, 1, 50, true, 0, "micro_batch", "sequence_length"},
        {8, 1, 1, "ddp 8", 1, 1, 50, true, 0, "parallelism.tensor", "micro_batch"},
        {1, 1, 1, "ddp 1", 1, 1, 50, true, 0, "training.sequence_length", "micro_batch"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dts_result r = crowded(rows[i].gpus, rows[i].nodes, rows[i].plan, rows[i].recomputes);
        r.micro_batch = rows[i].micro_batch;
        r.host_peak_gib = rows[i].host_gib;
        r.memory_gib.parameters = rows[i].parameters;
        r.memory_gib.activations = rows[i].activations;
        r.memory_gib.temporary = rows[i].temporary;
        assert_cure(&r, rows[i].told, rows[i].untold);
    }
}

/* Experts that no two ranks hold cannot be split by fsdp: what is told for them follows from how they lie. */
static void cures_of_experts_split_experts(void **state) {
    (void)state;
    static const struct {
        const char *plan;
        int64_t copies;
        bool recomputes;
        double experts_gib;
        const char *told, *untold;
    } rows[] = {
        {"pipeline 2 (1f1b) x zero1 8, expert 8", 1, false, 31, "fsdp cannot split them", "data_parallel=fsdp"},
        {"pipeline 2 (1f1b) x zero1 8, expert 8", 1, false, 31, "recompute=full", "offload"},
        {"pipeline 2 (1f1b) x zero1 8, expert 8", 1, true, 31, "adamw-8bit", "recompute=full"},
        {"fsdp 16, expert 8", 2, true, 31, "expert_tensor", "data_parallel="},
        {"zero1 16, expert 8", 2, true, 31, "which are split already", "data_parallel="},
        {"ddp 16, expert 8", 2, true, 31, "2 ranks hold alike: parallelism.data_parallel=zero1 or fsdp", "cannot"},
        {"zero1 16, expert 8", 2, true, 2, "data_parallel=fsdp or", "experts"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dts_result r = crowded(16, 2, rows[i].plan, rows[i].recomputes);
        r.memory_gib = (dts_memory_gib){.optimizer = 32.6, .activations = 29, .gradients = 14};
        r.experts.optimizer_gib = rows[i].experts_gib;
        r.experts.copies = rows[i].copies;
        r.experts.wide_moments = true;
        assert_cure(&r, rows[i].told, rows[i].untold);
    }
}

/* Outputs that a pipeline keeps of all microbatches are not what recomputation makes smaller. */
static void kept_outputs_are_a_part_of_their_own(void **state) {
    (void)state;
    dts_result r = crowded(8, 1, "pipeline 4 x ddp 2", false);
    r.memory_gib = (dts_memory_gib){.activations = 66, .temporary = 64, .optimizer = 20};
    r.kept_outputs_gib = r.joined_outputs_gib = 62;
    static const char *const told[] = {"keeps_outputs=none", "recompute=full"};
    for (int i = 0; i < 2; i++) {
        assert_cure(&r, told[i], told[1 - i]);
        r.kept_outputs_gib = r.joined_outputs_gib = 16; /* then activations are 50, temporaries 48 */
    }
}

/* What was simulated is told in place of what is so in general. */
static void simulated_cures_come_first(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    dts_cure cures[] = {{.change = "training.micro_batch=1",
                         .fits = true,
                         .gpus = s.result.gpus,
                         .needed_gib = 30,
                         .peak_device_gib = 31.25,
                         .tokens_per_s = 0.96 * s.result.tokens_per_s,
                         .verdict = "fits"},
                        {.change = "parallelism.data_parallel=fsdp cluster.nodes=9",
                         .fits = true,
                         .gpus = 99,
                         .needed_gib = 30,
                         .peak_device_gib = 38,
                         .retry_share = 0.02,
                         .tokens_per_s = s.result.tokens_per_s,
                         .verdict = "fits, but 1 allocator retry costs 2.0 % of the iteration"}};
    s.result.fits = false;
    s.result.peak_device_gib = 55;
    s.result.cures = cures;
    s.result.cure_count = 2;
    s.result.cures_tried = 12;
    dts_text text = {0};
    dts_report_cure(&s.result, &text);
    assert_non_null(strstr(dts_text_string(&text),
                           "What helps, simulated:\n  training.micro_batch=1 (31.2 GiB, -4 % tokens/s);\n  "
                           "parallelism.data_parallel=fsdp cluster.nodes=9 (38.0 GiB, "
                           "fits, but 1 allocator retry costs 2.0 % of the iteration, on 99 GPUs)."));
    cures[0].fit_share = 0.42;
    cures[1].fit_share = 0.93; /* sure enough */
    dts_text_clear(&text);
    dts_report_cure(&s.result, &text);
    assert_non_null(strstr(dts_text_string(&text),
                           "micro_batch=1 (31.2 GiB, enough in 4 of 10 published runs, -4 % tokens/s);\n  "
                           "parallelism.data_parallel=fsdp cluster.nodes=9 (38.0 GiB, fits, but"));
    cures[0].fit_share = 0;
    cures[0].coarse = true;
    cures[0].spelled = "Trainer: per_device_train_batch_size=1";
    dts_text_clear(&text);
    dts_report_cure(&s.result, &text);
    assert_non_null(strstr(dts_text_string(&text),
                           "(about 31.2 GiB, about -4 % tokens/s);\n    Trainer: per_device_train_batch_size=1\n"));
    dts_text lines = {0};
    dts_report_cure_lines(dts_text_string(&text), &plain.style, 24, 4, &lines);
    assert_non_null(strstr(dts_text_string(&lines),
                           "\n    training.micro_batch=1 (about 31.2 GiB, about -4 % tokens/s);\n"
                           "      Trainer: per_device_train_batch_size=1\n"
                           "    parallelism.data_parallel=fsdp"));
    cures[0].spelled = "Trainer: per_device_train_batch_size=1, gradient_accumulation_steps=32, optim=adamw_bnb_8bit";
    dts_text_clear(&text);
    dts_text_clear(&lines);
    dts_report_cure(&s.result, &text);
    dts_report_cure_lines(dts_text_string(&text), &plain.style, 24, 4, &lines);
    assert_null(strstr(dts_text_string(&lines), "optim="));
    assert_non_null(strstr(dts_text_string(&lines), "--width 98 or"));
    dts_style wide = plain.style;
    wide.width = 98; /* is enough */
    dts_text_clear(&lines);
    dts_report_cure_lines(dts_text_string(&text), &wide, 24, 4, &lines);
    assert_non_null(strstr(dts_text_string(&lines), ", optim=adamw_bnb_8bit\n"));
    assert_null(strstr(dts_text_string(&lines), "longer than a line"));
    wide.width--;
    dts_text_clear(&lines);
    dts_report_cure_lines(dts_text_string(&text), &wide, 24, 4, &lines);
    assert_null(strstr(dts_text_string(&lines), "optim="));
    dts_text_free(&lines);
    cures[0].fits = false;
    s.result.look_further = "dtsim search here.yaml --set training.micro_batch=2";
    s.result.cure_count = 1;
    dts_text_clear(&text);
    dts_report_cure(&s.result, &text);
    assert_non_null(strstr(dts_text_string(&text),
                           "None of the 12 changes that were simulated suffices, alone, together or on more nodes; "
                           "nearest comes training.micro_batch=1, which needs 30.0 GiB. `dtsim search here.yaml --set "
                           "training.micro_batch=2` looks at every legal plan."));
    s.result.cures_left_out = 30;
    dts_text_clear(&text);
    dts_report_cure(&s.result, &text);
    assert_non_null(strstr(dts_text_string(&text),
                           "simulated suffices; nearest comes training.micro_batch=1, which needs 30.0 GiB. 30 more "
                           "were left out: they take too long. `dtsim search"));
    s.result.cures_left_out = 0;
    s.result.host_short = "offload.optimizer=cpu";
    dts_text_clear(&text);
    dts_report_cure(&s.result, &text);
    assert_non_null(
        strstr(dts_text_string(&text),
               "30.0 GiB. Only the nodes' memory or drives are too small for offload.optimizer=cpu. `dtsim"));
    s.result.host_short = s.result.look_further = NULL;
    s.result.fits = true;
    s.result.allocator.retries = 3;
    s.result.allocator.cost_s = 0.25 * s.result.iteration_time_s;
    s.result.cure_count = 0;
    dts_text_clear(&text);
    dts_report_pressure(&s.result, &text);
    assert_string_equal(dts_text_string(&text),
                        "3 allocator retries cost 25 % of the iteration. None of the 12 changes that were simulated is "
                        "faster and without retries.");
    dts_text_free(&text);
}

static void tables_mark_what_pays(void **state) {
    (void)state;
    assert_string_equal(dts_report_fit_mark(false, (dts_strain){1, 0.5}), " !");
    assert_string_equal(dts_report_fit_mark(true, (dts_strain){1, 0.5}), " ?");
    assert_string_equal(dts_report_fit_mark(true, (dts_strain){0, 0.5}), " ^");
    assert_string_equal(dts_report_fit_mark(true, (dts_strain){0, 0.009}), ""); /* not worth telling */
    dts_strain most = {0};
    dts_strain_add(&most, (dts_strain){0, 0.2});
    dts_strain_add(&most, (dts_strain){0, 0.1});
    dts_text text = {0};
    const dts_style wide = {.width = 400};
    dts_report_strain(most, &wide, 0, &text);
    assert_non_null(strstr(dts_text_string(&text), "cost up to 20 % of the iteration"));
    assert_null(strstr(dts_text_string(&text), "?"));
    dts_text_clear(&text);
    dts_report_strain((dts_strain){0}, &plain.style, 0, &text);
    assert_int_equal(text.length, 0);
    dts_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_names_a_cure_when_it_does_not_fit),
        cmocka_unit_test(cures_can_be_applied),
        cmocka_unit_test(cures_of_experts_split_experts),
        cmocka_unit_test(kept_outputs_are_a_part_of_their_own),
        cmocka_unit_test(simulated_cures_come_first),
        cmocka_unit_test(tables_mark_what_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
