/* Hugging Face Transformers documentation v4.20.1, "Efficient Training on a Single GPU": BERT-large on one V100 of 16
 * GB with one technique after the other, and the anatomy of memory. Its runs are 512 sequences of 512 tokens in batches
 * of 4: 128 steps. Memory is what NVML says, context included. */
#include "search/search.h"
#include "seeds.h"

static const char bert[] =
    "model: {profile: bert-large, head: classification, labels: 2, lm_transform: false}\n"
    "cluster: v100-16gb-single\nstack: huggingface-trainer\n"
    "training: {global_batch: 4, micro_batch: 4, sequence_length: 512, precision: fp32, optimizer: adamw}\n";

static const char two_gpus[] =
    "model: {profile: bert-base, head: classification, labels: 2, lm_transform: false}\n"
    "cluster: titan-rtx-nvlink-2\nstack: huggingface-trainer\n"
    "training: {global_batch: 16, micro_batch: 8, sequence_length: 128, precision: fp32, optimizer: adamw}\n";

/* three billion parameters, 12·30·2880² + 30000·2880 */
static const char three_billion[] =
    "model: {profile: gpt, layers: 30, hidden: 2880, heads: 24, vocab: 30000}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 1}\nstack: huggingface-trainer\n"
    "training: {global_batch: 1, micro_batch: 1, sequence_length: 128, precision: fp32, optimizer: adamw}\n";

static const char on_a100[] =
    "model: {profile: bert-large, head: classification, labels: 2, lm_transform: false}\n"
    "cluster: a100-40gb-single\nstack: huggingface-trainer\n"
    "training: {global_batch: 32, micro_batch: 32, sequence_length: 512, precision: fp32, optimizer: adamw}\n";

static const char on_dgx_2[] =
    "model: {profile: gpt, layers: 12, hidden: 2048, heads: 16, vocab: 50257}\n"
    "cluster: {profile: dgx-2, nodes: 1, gpus_per_node: 1}\nstack: deepspeed\n"
    "training: {global_batch: 4, micro_batch: 4, sequence_length: 1024, precision: amp-fp16, optimizer: adamw}\n"
    "parallelism: {data_parallel: zero3}\n";

#define HALF_COPIES "of it 2 are the half copies that autocast keeps, counted as activations"
#define ACCUMULATE  "training.micro_batch=1"
#define CHECKPOINT  ACCUMULATE " training.recompute=full"
#define FP16        "training.precision=amp-fp16"
#define TRICKS      FP16 " " CHECKPOINT
#define ADAFACTOR   "training.optimizer=adafactor"
#define EIGHT_BITS  "training.optimizer=adamw-8bit"

static double run_s(const dts_result *r) {
    return 128 * r->iteration_time_s;
}

static double loaded_mib(const dts_result *r) {
    return context_mib(r) + weights_mib(r);
}

static double context_gb(const dts_result *r) {
    return r->memory_gib.context * 1.073741824;
}

static double optimizer_gb(const dts_result *r) {
    return r->memory_gib.optimizer * 1.073741824;
}

static double time_per_sample_ms(const dts_result *r) {
    return 1e3 / r->samples_per_s;
}

static double backward_over_forward(const dts_result *r) {
    return (span_time(r, -1, DTS_SPAN_BACKWARD, NULL) + span_time(r, -1, DTS_SPAN_BACKWARD_WEIGHT, NULL)) /
           span_time(r, -1, DTS_SPAN_FORWARD, NULL);
}

static double gelu_backward_over_forward(const dts_result *r) {
    return span_time(r, -1, DTS_SPAN_BACKWARD, "mlp_gelu") / span_time(r, -1, DTS_SPAN_FORWARD, "mlp_gelu");
}

/* low, high: MiB that fp16 adds with batch 4; low_2, high_2: with batch 1 and checkpointing */
static bool fp16_and_memory(const claim *c, dts_text *got) {
    double large = measure(bert, FP16, device_mib) - measure(bert, NULL, device_mib);
    double small = measure(bert, TRICKS, device_mib) - measure(bert, CHECKPOINT, device_mib);
    dts_text_printf(got, "%+.0f / %+.0f MiB", large, small);
    return within(large, c->low, c->high) && within(small, c->low_2, c->high_2);
}

static bool optimizers_in_order(const claim *c, dts_text *got) {
    (void)c;
    static const char *const settings[] = {NULL, ADAFACTOR, EIGHT_BITS};
    double memory[3];
    double time[3];
    for (int i = 0; i < 3; i++) {
        memory[i] = measure(bert, settings[i], device_mib);
        time[i] = measure(bert, settings[i], run_s);
    }
    dts_text_printf(got, "AdamW %.0f MiB, %.1f s; Adafactor %.0f, %.1f; 8-bit %.0f, %.1f", memory[0], time[0],
                    memory[1], time[1], memory[2], time[2]);
    return memory[1] < memory[2] && memory[2] < memory[0] && time[2] < time[0] && time[0] < time[1];
}

static bool bytes_of_optimizers(const claim *c, dts_text *got) {
    (void)c;
    double adamw = measure(bert, NULL, optimizer_bytes);
    double eight = measure(bert, EIGHT_BITS, optimizer_bytes);
    double sgd = measure(bert, "training.optimizer=sgd-momentum", optimizer_bytes);
    dts_text_printf(got, "%.2f / %.2f / %.2f B", adamw, eight, sgd);
    return within(adamw, 7.95, 8.05) && within(eight, 1.95, 2.1) && within(sgd, 3.97, 4.03);
}

static bool states_of_three_billion(const claim *c, dts_text *got) {
    (void)c;
    double adamw = measure(three_billion, NULL, optimizer_gb);
    double adafactor = measure(three_billion, "training.optimizer=adafactor-momentum", optimizer_gb);
    double eight = measure(three_billion, EIGHT_BITS, optimizer_gb);
    dts_text_printf(got, "%.1f / %.2f / %.1f GB", adamw, adafactor, eight);
    return within(adamw, 23.5, 25) && within(adafactor, 12, 13) && within(eight, 5.8, 6.4);
}

static double bytes_with_copies(const dts_result *r) {
    return static_bytes(r) + per_parameter(r, r->memory_gib.activations);
}

static bool weights_in_two_precisions(const claim *c, dts_text *got) {
    double single = measure(bert, FEW_TOKENS, c->of);
    double mixed = measure(bert, FP16 FEW_TOKENS, c->of);
    dts_text_printf(got, "%.2f / %.2f B", single, mixed);
    return within(single, c->low, c->high) && within(mixed, c->low_2, c->high_2);
}

static bool has_six_parts(const claim *c, dts_text *got) {
    (void)c;
    dts_result *r = simulate_text(bert, FP16);
    const dts_memory_gib *m = &r->memory_gib;
    dts_text_printf(got, "GiB: %.1f, %.1f, %.1f, %.1f, %.1f; context %.1f", m->parameters, m->optimizer, m->gradients,
                    m->activations, m->temporary, m->context);
    bool all = m->parameters > 0 && m->optimizer > 0 && m->gradients > 0 && m->activations > 0 && m->temporary > 0 &&
               m->context > 0;
    dts_result_free(r);
    return all;
}

static bool bf16_and_tf32_are_refused(const claim *c, dts_text *got) {
    (void)c;
    static const char *const settings[] = {"training.precision=amp-bf16", "training.precision=tf32"};
    int refused = 0;
    for (int i = 0; i < 2; i++) {
        dts_diag *diag = dts_diag_new();
        char text[LONGEST_SETTINGS];
        snprintf(text, sizeof text, "%s", bert);
        char words[64];
        snprintf(words, sizeof words, "%s", settings[i]);
        dts_override overrides[MOST_OVERRIDES];
        size_t count = split_settings(words, overrides);
        const char *roots[] = {"."};
        dts_profile_paths profiles = {.roots = roots, .count = 1};
        dts_scenario *scenario = NULL;
        dts_result *r = NULL;
        dts_status status =
            dts_scenario_parse(text, strlen(text), "test", overrides, count, &profiles, &scenario, diag);
        refused += status != DTS_OK || dts_run(scenario, NULL, &r, diag) != DTS_OK;
        dts_result_free(r);
        dts_scenario_free(scenario);
        dts_diag_free(diag);
    }
    dts_text_printf(got, "%d of 2 refused on V100", refused);
    return refused == 2;
}

/* Where a search puts what a plan keeps off the GPU: the slowest of what its best plan uses. Settings leave less and
 * less room. */
static const char *best_place(const char *gpu, const char *host) {
    static const char *const batches[] = {"1", "2", "4"}, *const repeats[] = {"none", "full"};
    const dts_axis over[] = {{.key = "training.micro_batch", .values = (const char **)batches, .count = 3},
                             {.key = "training.recompute", .values = (const char **)repeats, .count = 2}};
    char text[600];
    snprintf(text, sizeof text,
             "model: {profile: gpt, layers: 12, hidden: 2048, heads: 16, vocab: 50257}\n"
             "cluster: {profile: dgx-2, nodes: 1, gpus_per_node: 1, gpu: {memory: %s}, host: {memory: %s}}\n"
             "stack: deepspeed\n"
             "training: {global_batch: 4, micro_batch: 4, sequence_length: 1024, precision: amp-fp16, optimizer: "
             "adamw}\n",
             gpu, host);
    dts_scenario *scenario = parse_text(text);
    const dts_search_request request = {.base = dts_scenario_get(scenario),
                                        .restrictions = over,
                                        .restriction_count = sizeof over / sizeof over[0],
                                        .method = "exhaustive",
                                        .simulations = 12,
                                        .threads = 1};
    dts_search *found = NULL;
    dts_diag *diag = dts_diag_new();
    assert_ok(dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &found, diag), diag);
    const int32_t level = found->findings[0].candidate.value[DTS_AXIS_OFFLOAD];
    const char *place = !dts_search_any_fits(found)         ? "nowhere"
                        : dts_offload_on_drives(level) != 0 ? "NVMe"
                        : level != 0                        ? "CPU"
                                                            : "GPU";
    dts_search_free(found);
    dts_scenario_free(scenario);
    return place;
}

/* no offload < CPU < NVMe; and what a search takes as room gets less: 16 bytes of each of 0.7 billion parameters are 11
 * GB, 8 of them states */
static bool offload_is_the_last_resort(const claim *c, dts_text *got) {
    (void)c;
    double none = measure(on_dgx_2, NULL, iteration_s);
    double cpu = measure(on_dgx_2, "offload.parameters=cpu offload.gradients=cpu offload.optimizer=cpu", iteration_s);
    double nvme =
        measure(on_dgx_2, "offload.parameters=nvme offload.gradients=nvme offload.optimizer=nvme", iteration_s);
    double bare = measure(on_dgx_2, "parallelism.data_parallel=ddp", iteration_s);
    const char *const places[] = {best_place("32 GB", "1 TB"), best_place("8 GB", "1 TB"), best_place("8 GB", "6 GB")};
    dts_text_printf(got, "%.2f s without, %.2f ZeRO-3, %.2f + CPU, %.2f + NVMe; a search takes %s, %s, %s", bare, none,
                    cpu, nvme, places[0], places[1], places[2]);
    return bare <= none && none < cpu && cpu < nvme && strcmp(places[0], "GPU") == 0 && strcmp(places[1], "CPU") == 0 &&
           strcmp(places[2], "NVMe") == 0;
}

typedef struct toggle {
    const char *name, *off, *on;
    int faster, smaller; /* 1: yes, 0: no, -1: either */
} toggle;

/* Small batches, so that copies have a pass before to hide behind. */
static bool loading_stalls(const claim *c, dts_text *got) {
    (void)c;
    static const char *const settings[] = {"input.workers=0", "input.workers=1", "input.workers=4", "input.workers=8",
                                           "input.workers=4 input.pin_memory=false"};
    double ms[5];
    for (int i = 0; i < 5; i++) {
        char all[200];
        snprintf(all, sizeof all, "training.micro_batch=4 %s", settings[i]);
        dts_result *r = simulate_file("scenarios/input/pictures.yaml", all);
        ms[i] = 1e3 * r->iteration_time_s;
        dts_result_free(r);
    }
    dts_text_printf(got, "%.0f ms in the main process, %.0f with 1 worker, %.0f with 4, %.0f with 8; 4 unpinned %.0f",
                    ms[0], ms[1], ms[2], ms[3], ms[4]);
    return ms[0] > 1.2 * ms[1] && ms[1] >= ms[2] && fabs(ms[2] - ms[3]) < 0.01 * ms[2] && ms[4] > 1.01 * ms[2];
}

static bool every_toggle_has_its_sign(const claim *c, dts_text *got) {
    (void)c;
    static const toggle toggles[] = {
        {"accumulation", "", "training.micro_batch=2", 0, 1},
        {"checkpointing", "", "training.recompute=full", 0, 1},
        {"mixed precision", "training.micro_batch=64 training.global_batch=128",
         "training.micro_batch=64 training.global_batch=128 training.precision=amp-fp16", 1, -1},
        {"batch size", "", "training.micro_batch=32 training.global_batch=64", 1, -1},
        {"8-bit optimizer", "", "training.optimizer=adamw-8bit", 1, 1},
        {"ZeRO-1", "", "parallelism.data_parallel=zero1", -1, 1},
        {"ZeRO-3", "", "parallelism.data_parallel=zero3", 0, 1},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof toggles / sizeof toggles[0]; i++) {
        const toggle *t = &toggles[i];
        bool faster = measure(two_gpus, t->on, time_per_sample_ms) < measure(two_gpus, t->off, time_per_sample_ms);
        bool smaller = measure(two_gpus, t->on, device_mib) < measure(two_gpus, t->off, device_mib);
        dts_text_printf(got, "%s%s %s%s", i > 0 ? ", " : "", t->name, faster ? "faster" : "slower",
                        smaller ? " and smaller" : "");
        good = good && (t->faster < 0 || faster == t->faster) && (t->smaller < 0 || smaller == t->smaller);
    }
    return good;
}

/* time (8 %), rate (8 %) and memory (6 %) of one of the document's runs */
#define RUN(what, set, seconds, rate, mib, time_verdict, time_why, memory_verdict, memory_why)                \
    {"time of 128 steps, " what, #seconds " s", time_verdict,    time_why,                                    \
     .check = a_value,           .base = bert,  .settings = set, .of = run_s,                                 \
     NEAR(seconds, 0.08),        .unit = "s"},                                                                \
        {"rate, " what,    #rate " samples/s", time_verdict,    time_why,                                     \
         .check = a_value, .base = bert,       .settings = set, .of = samples_per_second,                     \
         NEAR(rate, 0.08), .unit = "samples/s"},                                                              \
    {                                                                                                         \
        "memory after training, " what, #mib " MiB", memory_verdict, memory_why,                              \
            .check = a_value, .base = bert, .settings = set, .of = device_mib, NEAR(mib, 0.06), .unit = "MiB" \
    }

#define COPIES "the half copies are counted as activations, from a layer's forward to its backward"
#define FAST                                                                                                           \
    "products and memory-bound kernels of fp16 at batch 4 were slower in the run, or the host was: with accumulation " \
    "and "                                                                                                             \
    "checkpoints the same kernels are within 8 %"
#define STEP "Adafactor's step is many small kernels for each tensor; more of them than are counted"

static const claim claims[] = {
    {"the CUDA context and loaded kernels on a V100", "1343 MiB", HOLDS, "a fact of the GPU's profile, from here",
     .check = a_value, .base = bert, .of = context_mib, NEAR(1343, 0.01), .unit = "MiB"},
    {"loaded kernels take 1 to 2 GB", "1–2 GB", HOLDS, NULL, .check = a_value, .base = bert, .of = context_gb, .low = 1,
     .high = 2, .unit = "GB"},
    {"context and weights of BERT-large", "2631 MiB", HOLDS, NULL, .check = a_value, .base = bert, .of = loaded_mib,
     NEAR(2631, 0.01), .unit = "MiB"},
    {"weights of BERT-large in fp32", "1288 MiB", HOLDS, NULL, .check = a_value, .base = bert, .of = weights_mib,
     NEAR(1288, 0.01), .unit = "MiB"},
    {"what a V100 of 16 GB offers", "16160 MiB", HOLDS, "a fact of the GPU's profile", .check = a_value, .base = bert,
     .of = capacity_mib, NEAR(16160, 0.001), .unit = "MiB"},
    RUN("fp32, batch 4", NULL, 57.82, 8.86, 14949, HOLDS, NULL, HOLDS, NULL),
    RUN("+ accumulation, 4 × batch 1", ACCUMULATE, 66.03, 7.75, 8681, HOLDS, NULL, HOLDS, NULL),
    RUN("+ checkpointing", CHECKPOINT, 85.47, 5.99, 6775, HOLDS, NULL, HOLDS, NULL),
    RUN("fp16, batch 4", FP16, 27.46, 18.64, 13939, DISAGREES, FAST, HOLDS, NULL),
    RUN("fp16 + accumulation + checkpointing", TRICKS, 50.76, 10.09, 7275, HOLDS, NULL, HOLDS, NULL),
    RUN("Adafactor, batch 4", ADAFACTOR, 64.31, 7.96, 12295, DISAGREES, STEP, HOLDS, NULL),
    RUN("Adafactor + fp16 + accumulation + checkpointing", ADAFACTOR " " TRICKS, 56.54, 9.06, 4847, HOLDS, NULL, HOLDS,
        NULL),
    RUN("8-bit Adam, batch 4", EIGHT_BITS, 55.95, 9.15, 13085, HOLDS, NULL, HOLDS, NULL),
    RUN("8-bit Adam + fp16 + accumulation + checkpointing", EIGHT_BITS " " TRICKS, 49.46, 10.35, 5363, HOLDS, NULL,
        HOLDS, NULL),
    {"a hand-written loop with Accelerate takes the same memory as the Trainer", "5363 MiB", HOLDS,
     "nothing here depends on the front end", .check = a_value, .base = bert, .settings = EIGHT_BITS " " TRICKS,
     .of = device_mib, NEAR(5363, 0.06), .unit = "MiB"},
    {"Adafactor with all tricks: a third of the memory at the same rate", "memory ÷ 3, time × 0.95–1.10", HOLDS, NULL,
     .check = memory_and_time, .base = bert, .settings = ADAFACTOR " " TRICKS, .low = 1 / 3.3, .high = 1 / 2.7,
     .low_2 = 0.91, .high_2 = 1.05},
    {"accumulation saves a lot of memory and slows down slightly", "memory × 0.58, time × 1.14", HOLDS,
     "memory within 8 %", .check = memory_and_time, .base = bert, .settings = ACCUMULATE, NEAR(0.58, 0.08),
     .low_2 = 1.02, .high_2 = 1.25},
    {"checkpointing costs about 20 % of the time", "20–30 %", HOLDS, NULL, .check = a_ratio, .base = bert,
     .settings = CHECKPOINT, .against = ACCUMULATE, .of = iteration_s, .low = 1.2, .high = 1.35},
    {"fp16 is about twice as fast as fp32", "2.1 ×", DISAGREES, FAST, .check = a_ratio, .base = bert, .settings = FP16,
     .against = NULL, .of = samples_per_second, .low = 1.8, .high = 2.4},
    {"fp16 saves little memory at batch 4 and takes more at batch 1 with checkpoints", "−1010 / +500 MiB", HOLDS, NULL,
     .check = fp16_and_memory, .low = -2000, .high = -300, .low_2 = 250, .high_2 = 1000},
    {"memory: Adafactor < 8-bit < AdamW; time: 8-bit < AdamW < Adafactor", "order", DISAGREES,
     "memory and 8-bit in order; Adafactor comes out as fast as AdamW", .check = optimizers_in_order},
    {"mixed precision with AdamW: 18 bytes a parameter", "18 B", HOLDS, HALF_COPIES, .check = a_value, .base = bert,
     .settings = FP16 FEW_TOKENS, .of = bytes_with_copies, .low = 17.5, .high = 18.1, .unit = "B"},
    {"mixed-precision inference: 6 bytes a parameter", "6 B", HOLDS, HALF_COPIES, .check = a_value, .base = bert,
     .settings = FP16 FEW_TOKENS " training.mode=inference", .of = bytes_with_copies, .low = 5.8, .high = 6.05,
     .unit = "B"},
    {"weights: 4 bytes in fp32, 6 in mixed precision", "4 / 6 B", HOLDS, HALF_COPIES,
     .check = weights_in_two_precisions, .of = weights_with_copies, .low = 3.99, .high = 4.05, .low_2 = 5.8,
     .high_2 = 6.05},
    {"states: AdamW 8, 8-bit 2, SGD with momentum 4 bytes", "8 / 2 / 4 B", HOLDS, NULL, .check = bytes_of_optimizers},
    {"gradients: 4 bytes in fp32 and in mixed precision", "4 / 4 B", HOLDS, NULL, .check = weights_in_two_precisions,
     .of = gradient_bytes, .low = 3.99, .high = 4.01, .low_2 = 3.99, .high_2 = 4.01},
    {"Adafactor: slightly more than 4 bytes", "4+ B", HOLDS,
     "with a first moment (`adafactor-momentum`); the document's own runs (2654 MiB saved of the 2557 that 8 bytes "
     "are) "
     "were without one, as the Trainer sets it: 0.01 B",
     .check = a_value, .base = bert, .settings = "training.optimizer=adafactor-momentum", .of = optimizer_bytes,
     .low = 4, .high = 4.5, .unit = "B"},
    {"states of 3 billion parameters: AdamW, Adafactor, 8-bit", "24 / 12+ / 6 GB", HOLDS,
     "Adafactor with a first moment", .check = states_of_three_billion},
    {"an 8-bit optimizer saves three quarters of the states", "75 %", HOLDS, NULL, .check = a_ratio, .base = bert,
     .settings = EIGHT_BITS, .against = NULL, .of = optimizer_bytes, .low = 0.245, .high = 0.265},
    {"six parts: weights, states, gradients, activations, temporary buffers, other", "6 parts", HOLDS, NULL,
     .check = has_six_parts},
    {"backward takes about twice the time of forward", "2 ×", HOLDS, NULL, .check = a_value, .base = bert,
     .of = backward_over_forward, .low = 1.8, .high = 2.6},
    {"element-wise operators move 3 tensors backward and 2 forward", "1.5 ×", HOLDS, "GELU", .check = a_value,
     .base = bert, .of = gelu_backward_over_forward, .low = 1.4, .high = 1.6},
    {"three kinds of operators: products, reductions, element-wise", "3 kinds", HOLDS, NULL,
     .proof = "tests/unit/run/test_explain.c bounds_are_what_the_formulas_say"},
    {"sizes that 8 (64 on A100) divides are efficient; tiles quantise", "8 / 64", HOLDS,
     "`run` warns, with the next aligned size and what it would save (`unit/run/test_alignment`)",
     .proof = "tests/unit/hardware/test_gemm.c test_alignment"},
    {"tf32 is up to 3 times as fast as fp32", "≤ 3 ×", DISAGREES,
     "BERT-large, batch 32, on an A100, products 8 times as fast on paper, gradients of weights 7", .check = a_ratio,
     .base = on_a100, .settings = "training.precision=tf32", .against = "stack.tf32=false", .of = samples_per_second,
     .low = 1.5, .high = 3.3},
    {"bf16 and tf32 need Ampere", "refused", HOLDS, NULL, .check = bf16_and_tf32_are_refused},
    {"batch 64: 16 × 4 rather than 64 × 1", "faster", HOLDS, NULL, .check = a_ratio, .base = bert,
     .settings = "training.global_batch=64 training.micro_batch=4",
     .against = "training.global_batch=64 training.micro_batch=1", .of = samples_per_second, .low = 1.02, .high = 2},
    {"what fits needs no ZeRO; otherwise CPU, then NVMe", "order", HOLDS, NULL, .check = offload_is_the_last_resort},
    {"what makes training faster or smaller (table of methods)", "7 signs", HOLDS, NULL,
     .check = every_toggle_has_its_sign},
    {"experts: 4 to 5 times faster training, ten times the memory", "4–5 ×", NOT_SIMULATED,
     "the gain is fewer steps to the same loss; a step's time and the memory of experts are simulated", .check = NULL},
    {"every other layer has experts", "1/2", HOLDS, "`moe_every`",
     .proof = "tests/unit/model/test_experts.c test_which_layers"},
    {"loading in the main process stalls training; workers and pinned memory help", "stall", HOLDS,
     "`scenarios/input`: pictures; more workers than needed change nothing", .check = loading_stalls},
};

static void claims_are_as_listed(void **state) {
    (void)state;
    const document d = {'S', "[Efficient Training on a Single GPU](#efficient-training-on-a-single-gpu)",
                        "test_seeds_single_gpu", claims, sizeof claims / sizeof claims[0]};
    claims_agree(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(claims_are_as_listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
