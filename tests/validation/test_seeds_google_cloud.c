/* "PyTorch Data Parallel Best Practices on Google Cloud" (Li et al., PyTorch blog, March 2022): what test_gcp_study.c
 * and test_offload.c do not show. */
#include "seeds.h"

#define NODES "cluster: {profile: gcp-a2-highgpu-8g, nodes: 4, gpus_per_node: 2}\nstack: pytorch-1.11\n"

static const char ddp[] =
    "model: mingpt-large\n" NODES
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 256, precision: fp16, optimizer: sgd}\n"
    "parallelism: {data_parallel: ddp}\n";

static const char pdp[] = "model: mingpt-large\n" NODES
                          "training: {global_batch: 64, micro_batch: 8, sequence_length: 256, precision: fp16,\n"
                          "           optimizer: sgd, recompute: except-last}\n"
                          "parallelism: {pipeline: 2, schedule: gpipe-lifo, order: tensor-pipeline-data}\n";

static const char trillion[] =
    "model: mingpt-1t\ncluster: {profile: gcp-a2-highgpu-8g, nodes: 4}\nstack: pytorch-1.11\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 256, precision: fp16,\n"
    "           optimizer: sgd, recompute: full}\nparallelism: {data_parallel: fsdp, fsdp_unit: linear}\n"
    "offload: {parameters: cpu, gradients: cpu, optimizer: cpu, activations: cpu, prefetch: 0}\n";

#define ONE_NODE    "cluster.nodes=1 cluster.gpus_per_node=8"
#define FAST_SOCKET "cluster.profile=gcp-a2-highgpu-8g-fastsocket"
#define STUDY(name) "tests/validation/test_gcp_study.c " name

static double gpus(const dts_result *r) {
    return (double)r->gpus;
}

static double microbatches(const dts_result *r) {
    return (double)r->microbatches;
}

/* Not activations alone: which of the last stage's moments is the highest changes with the microbatches. */
static double peak_gib(const dts_result *r) {
    return r->peak_allocated_gib;
}

static double tokens_in_an_iteration(const dts_result *r) {
    return r->tokens_per_s * r->iteration_time_s;
}

static double throughput(const dts_result *r) {
    return r->tokens_per_s;
}

static bool sizes_are_those_named(const claim *c, dts_text *got) {
    (void)c;
    static const struct {
        const char *name;
        double named;
    } sizes[] = {{"small", 162e6}, {"large", 760e6}, {"2.7b", 2.8e9}, {"6.7b", 6.8e9}, {"16b", 16e9},
                 {"34b", 34e9},    {"81b", 81e9},    {"175b", 175e9}, {"1t", 1e12}};
    bool good = true;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: mingpt-%s\ncluster: {profile: gcp-a2-highgpu-8g, nodes: 1}\nstack: pytorch-1.11\n"
                 "training: {global_batch: 8, micro_batch: 1, sequence_length: 256, precision: fp16, optimizer: sgd}\n"
                 "parallelism: {data_parallel: fsdp}\n",
                 sizes[i].name);
        dts_result *r = simulate_text(text, "");
        dts_text_printf(got, "%s%.4g", i == 0 ? "" : ", ", r->parameters / 1e9);
        good = good && within(r->parameters / sizes[i].named, 0.95, 1.05);
        dts_result_free(r);
    }
    dts_text_add(got, " B");
    return good;
}

/* Gain of NCCL Fast Socket on 4 nodes of 2 GPUs, in percent of throughput or in times. */
static bool fast_socket_gains(const claim *c, dts_text *got) {
    double slow = measure(c->base, c->settings, throughput);
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s " FAST_SOCKET, c->settings);
    double gain = measure(c->base, settings, throughput) / slow;
    dts_text_printf(got, "× %.2f", gain);
    return within(gain, c->low, c->high);
}

static bool fast_socket_hurts_small_models(const claim *c, dts_text *got) {
    (void)c;
    double small =
        measure(ddp, "model=mingpt-small " FAST_SOCKET, throughput) / measure(ddp, "model=mingpt-small", throughput);
    double piped = measure(pdp, FAST_SOCKET, throughput) / measure(pdp, NULL, throughput);
    dts_text_printf(got, "DDP 125M × %.2f, PDP 760M × %.2f", small, piped);
    return small < 1 && piped < 1.1;
}

static bool batch_256_is_too_much(const claim *c, dts_text *got) {
    (void)c;
    static const char *const ways[] = {"", " parallelism.data_parallel=fsdp",
                                       (" parallelism.data_parallel=fsdp " ONE_NODE)};
    bool any = false;
    for (int i = 0; i < 3; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "model=mingpt-13b training.micro_batch=256 training.global_batch=2048%s",
                 ways[i]);
        dts_result *r = simulate_text(ddp, settings);
        dts_text_printf(got, "%s%.0f", i == 0 ? "" : ", ", r->peak_allocated_gib);
        any = any || r->fits;
        dts_result_free(r);
    }
    dts_text_add(got, " of 40 GiB: DDP, FSDP, FSDP on one node");
    return !any;
}

/* The winner of DDP, PDP and FSDP among those that fit, as a letter. */
static char winner(const char *model, const char *network) {
    char settings[128];
    snprintf(settings, sizeof settings, "model=%s %s", model, network);
    char sharded[256];
    snprintf(sharded, sizeof sharded, "%s parallelism.data_parallel=fsdp", settings);
    dts_result *r[] = {simulate_text(ddp, settings), simulate_text(pdp, settings), simulate_text(ddp, sharded)};
    int best = -1;
    for (int i = 0; i < 3; i++) {
        if (r[i]->fits && (best < 0 || r[i]->tokens_per_s > r[best]->tokens_per_s)) {
            best = i;
        }
    }
    for (int i = 0; i < 3; i++) {
        dts_result_free(r[i]);
    }
    return best < 0 ? '-' : "DPF"[best];
}

static bool winners_are_those_advised(const claim *c, dts_text *got) {
    (void)c;
    static const char *const models[] = {"mingpt-small", "mingpt-large", "mingpt-2.7b", "mingpt-13b"};
    char slow[5] = "";
    char fast[5] = "";
    for (int i = 0; i < 4; i++) {
        slow[i] = winner(models[i], "cluster.nodes=4");
        fast[i] = winner(models[i], ONE_NODE);
    }
    dts_text_printf(got, "125M, 760M, 2.7B, 13B: Ethernet %s, NVLink %s (DDP, PDP, FSDP)", slow, fast);
    return strcmp(fast, "DDDF") == 0 && strcmp(slow + 1, "PPF") == 0;
}

static bool longer_pipelines_are_slower(const claim *c, dts_text *got) {
    (void)c;
    double previous = INFINITY;
    bool good = true;
    for (int stages = 2; stages <= 8; stages *= 2) {
        char settings[128];
        /* as many samples per GPU: a pipeline of p has the samples of p GPUs in 2 chunks */
        snprintf(settings, sizeof settings, ONE_NODE " parallelism.pipeline=%d training.micro_batch=%d", stages,
                 8 * stages / 2);
        double tokens = measure(pdp, settings, throughput);
        dts_text_printf(got, "%s%.0f", stages == 2 ? "" : ", ", tokens);
        good = good && tokens < previous;
        previous = tokens;
    }
    dts_text_add(got, " tokens/s with 2, 4, 8 stages");
    return good;
}

static bool a_faster_network_saves_a_trillion(const claim *c, dts_text *got) {
    (void)c;
    double slow = measure(trillion, NULL, iteration_s);
    double fast = measure(trillion,
                          "cluster.inter.nic_bandwidth=50GB/s cluster.inter.node_goodput=40GB/s "
                          "cluster.inter.node_duplex=21.6GB/s cluster.inter.flow_cap=8.6GB/s",
                          iteration_s);
    dts_text_printf(got, "%.0f s at 100 Gbit/s, %.0f s at 400", slow, fast);
    return slow / fast > 2;
}

/* Rows of the study's tables with parameters of 81B and more: scenarios, measured s and GiB. */
static bool linear_units_are_nearer(const claim *c, dts_text *got) {
    (void)c;
    static const char *const head =
        "cluster: {profile: gcp-a2-highgpu-8g, nodes: 4}\nstack: pytorch-1.11\n"
        "training: {global_batch: 512, micro_batch: 16, sequence_length: 256, precision: fp16, optimizer: sgd,\n"
        "           recompute: full}\nparallelism: {data_parallel: fsdp}\noffload: {prefetch: 0}\n";
    static const char host[] = " offload.parameters=cpu offload.gradients=cpu offload.optimizer=cpu";
    static const struct {
        const char *settings, *offload;
        double s, gib;
    } rows[] = {
        {"model=mingpt-81b", "", 319.7, 19.34},
        {"model=mingpt-81b offload.activations=cpu", "", 322.6, 14.369},
        {"model=mingpt-175b", host, 687.32, 14.924},
        {"model=mingpt-175b offload.activations=cpu", host, 674.77, 6.018},
        {"model=mingpt-81b offload.activations=cpu cluster.gpus_per_node=2 training.micro_batch=8 "
         "training.global_batch=64",
         host, 313.69, 3.479},
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    double time[2] = {0}, memory[2] = {0};
    for (int linear = 0; linear < 2; linear++) {
        for (int i = 0; i < ROWS; i++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings, "%s%s%s", rows[i].settings, rows[i].offload,
                     linear ? " parallelism.fsdp_unit=linear" : "");
            dts_result *r = simulate_text(head, settings);
            time[linear] += 100 * fabs(r->iteration_time_s / rows[i].s - 1) / ROWS;
            memory[linear] += 100 * fabs(r->peak_allocated_gib / rows[i].gib - 1) / ROWS;
            dts_result_free(r);
        }
    }
    dts_text_printf(got, "mean errors: time %.0f %% instead of %.0f, memory %.0f %% instead of %.0f", time[1], time[0],
                    memory[1], memory[0]);
    return time[1] < 0.5 * time[0] && memory[1] < 0.5 * memory[0];
}

/* Throughput over the batch: where it is highest, live tensors take more than 32 GB, and beyond it falls. */
static bool used_memory_slows(const claim *c, dts_text *got) {
    (void)c;
    static const int batches[] = {48, 60, 70, 73};
    double last = 0, used_gb = 0;
    bool good = true;
    for (int i = 0; i < 4; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings,
                 "parallelism.data_parallel=fsdp cluster.gpus_per_node=8 training.micro_batch=%d "
                 "training.global_batch=%d",
                 batches[i], 32 * batches[i]);
        dts_result *r = simulate_text(ddp, settings);
        good &= i < 3 ? r->tokens_per_s > last : r->tokens_per_s < 0.98 * last && used_gb > 32;
        good &= r->fits;
        last = r->tokens_per_s;
        used_gb = r->peak_allocated_gib * 1.073741824;
        dts_text_printf(got, "%s%.0f tokens/s at batch %d", i > 0 ? ", " : "", last, batches[i]);
        dts_result_free(r);
    }
    return good;
}

static const claim claims[] = {
    {"64 nodes of 8 A100-40GB", "512 GPUs", HOLDS, NULL, .check = a_value, .base = ddp,
     .settings = "cluster.nodes=64 cluster.gpus_per_node=8 training.global_batch=4096", .of = gpus, NEAR(512, 0)},
    {"NVLink inside a node", "600 GB/s", HOLDS, "300 GB/s each way",
     .proof = "tests/unit/hardware/test_profiles.c test_known_numbers"},
    {"Ethernet between nodes", "100 Gbit/s", HOLDS, "12.5 GB/s",
     .proof = "tests/unit/hardware/test_profiles.c test_known_numbers"},
    {"fp16, SGD, 256 tokens, vocabulary 50K, minGPT", "recipe", HOLDS, "the scenarios of `gcp-data-parallel`",
     .proof = STUDY("ddp_is_first_on_one_machine")},
    {"models from 125M (162M) to 1T", "9 sizes", DISAGREES,
     "the code of the 760M has 834 million, all others are within 5 %; the 13B and the 16B are one model; 34B and 81B "
     "have assumed shapes",
     .check = sizes_are_those_named},
    {"throughput = tokens · batch · GPUs in an iteration's time", "256 · 64", HOLDS, NULL, .check = a_value,
     .base = ddp, .of = tokens_in_an_iteration, NEAR(256.0 * 64, 1e-9)},
    {"PDP: pipelines of 2 GPUs, 2 microbatches, DDP around", "2", HOLDS, NULL, .check = a_value, .base = pdp,
     .of = microbatches, NEAR(2, 0)},
    {"high communication overhead: PDP is best below 10B", "PDP", HOLDS, "up to 2.7B",
     .proof = STUDY("pdp_is_ahead_on_several_machines")},
    {"low communication overhead: DDP is best below 3B", "DDP", HOLDS, NULL,
     .proof = STUDY("ddp_is_first_on_one_machine")},
    {"all else: FSDP, up to 1T", "FSDP", HOLDS, NULL,
     .proof = "tests/validation/test_offload.c a_trillion_parameters_take_an_hour"},
    {"high and low part at about 20 ms a sample", "20 ms", DISAGREES,
     "the boundary comes out near half of that; at 20 ms the two differ by less than 15 %. The post does not say how "
     "it measured the overhead",
     .result = "about 9 ms", .proof = STUDY("high_and_low_aco_part_near_20_ms")},
    {"throughput dips from 8 to 16 GPUs", "dip", HOLDS, NULL, .proof = STUDY("sixteen_gpus_dip_behind_eight")},
    {"more GPUs are not always faster", "dip", HOLDS, NULL, .proof = STUDY("sixteen_gpus_dip_behind_eight")},
    {"one machine: DDP is fastest, 125M, 760M and 2.7B", "DDP", HOLDS, NULL,
     .proof = STUDY("ddp_is_first_on_one_machine")},
    {"several machines: PDP is ahead of DDP, more so for large models", "rising", HOLDS, NULL,
     .proof = STUDY("pdp_is_ahead_on_several_machines")},
    {"an all-reduce among half the GPUs is faster", "6 %", HOLDS, "rings", .result = "6.7 %",
     .proof = STUDY("concurrent_all_reduces_use_the_network_better")},
    {"one all-reduce of DDP takes at least", "17 ms", HOLDS, "a bucket of 25 MiB", .result = "17 ms",
     .proof = STUDY("concurrent_all_reduces_use_the_network_better")},
    {"two all-reduces at once take, each", "25 ms", DISAGREES,
     "the study's own iteration times say 20 to 22 ms; the network was fitted on those", .result = "20 ms",
     .proof = STUDY("concurrent_all_reduces_use_the_network_better")},
    {"so two at once gain 1 − 25 / (2 · 17)", "26 %", DISAGREES, "for the same reason", .result = "42 %",
     .proof = STUDY("concurrent_all_reduces_use_the_network_better")},
    {"one all-reduce cannot fill the network", "below", HOLDS, "a cap for each flow",
     .proof = STUDY("concurrent_all_reduces_use_the_network_better")},
    {"batch 20 is always above batch 8", "order", HOLDS, NULL, .proof = STUDY("larger_batches_give_more_throughput")},
    {"throughput falls once 32 of 40 GB are used", "falls", HOLDS,
     "FSDP without a limit on gathers: buffers that the host asks for ahead of the GPU make the allocator free and "
     "allocate anew; with DDP no size is asked for twice on two streams, and it does not fall",
     .check = used_memory_slows},
    {"more chunks: slightly slower, much less memory", "signs", HOLDS, NULL,
     .proof = STUDY("more_chunks_trade_a_little_time_for_memory")},
    {"DDP does not go beyond 2.8B", "2.8B", HOLDS, "2.7B fits, 6.8B does not",
     .proof = STUDY("models_run_out_of_memory_where_observed")},
    {"pipelines of 2 run out of memory at 16B", "16B", HOLDS, NULL,
     .proof = STUDY("models_run_out_of_memory_where_observed")},
    {"pipelines of 4 run out of memory at 34B", "34B", HOLDS, NULL,
     .proof = STUDY("models_run_out_of_memory_where_observed")},
    {"only FSDP reaches 1T on 32 GPUs", "1T", HOLDS, "with parameters in host memory",
     .proof = "tests/validation/test_offload.c a_trillion_parameters_take_an_hour"},
    {"an iteration of 1T, FSDP, batch 1", "4085 s", HOLDS, "with linear layers as units, as from 81B on",
     .check = a_value, .base = trillion, .of = iteration_s, NEAR(4085, 0.08), .unit = "s"},
    {"1T needs 400 Gbit/s", "400 Gbit/s", HOLDS, "four times the network more than halves the time",
     .check = a_faster_network_saves_a_trillion},
    {"FSDP wraps layers, from 81B on each product", "unit", HOLDS,
     "`parallelism.fsdp_unit`; the five runs of 81B and more on several nodes are nearer in time and memory with it",
     .check = linear_units_are_nearer},
    {"which memory options go with which parallelism", "table", HOLDS, NULL,
     .proof = "tests/unit/run/test_strategies.c senseless_offload_is_refused"},
    {"microbatches alone save no activations", "equal", HOLDS, "GPipe without recomputation, 2 and 8 microbatches",
     .check = a_ratio, .base = pdp, .settings = "training.recompute=none training.micro_batch=2",
     .against = "training.recompute=none", .of = peak_gib, .low = 0.95, .high = 1.05},
    {"pipelines of PyTorch 1.11 stay on one machine", "limit", HOLDS, "others are refused",
     .proof = "tests/unit/run/test_strategies.c a_pipeline_of_one_process_stays_on_its_node"},
    {"batch 8: the faster network gains more for larger models", "rising", HOLDS, NULL,
     .proof = STUDY("slow_network_hurts_large_models_most_and_pdp_least")},
    {"PDP gains least from the faster network", "order", HOLDS, NULL,
     .proof = STUDY("slow_network_hurts_large_models_most_and_pdp_least")},
    {"FSDP's gain drops at 13B, where copies to the host are the bottleneck", "drops", DISAGREES,
     "it drops, but more for the step on the CPU than for the copies, most of which overlap compute",
     .proof = "tests/validation/test_offload.c offload_makes_the_network_matter_less"},
    {"at batch 64 the faster network gains less", "order", DISAGREES,
     "in 8 of 9 cases; FSDP on 125M is bound by the host on both networks", .result = "8 of 9",
     .proof = STUDY("slow_network_hurts_large_models_most_and_pdp_least")},
    {"Fast Socket raises all-reduce throughput", "30–60 %", HOLDS, "DDP, 2.7B, bound by its all-reduce",
     .check = fast_socket_gains, .base = ddp, .settings = "model=mingpt-2.7b", .low = 1.25, .high = 1.6},
    {"Fast Socket makes FSDP up to 3 times as fast", "3 ×", DISAGREES,
     "more connections for one transfer explain no more; the study has no breakdown", .check = fast_socket_gains,
     .base = ddp, .settings = "parallelism.data_parallel=fsdp", .low = 2.5, .high = 3.5},
    {"Fast Socket slows DDP on small models and never helps PDP", "≤ 1", DISAGREES, "a wider pipe never hurts here",
     .check = fast_socket_hurts_small_models},
    {"batch 256 with 13B is out of memory", "does not fit", HOLDS, NULL, .check = batch_256_is_too_much},
    {"the advice: PDP, with fast links DDP; above 10B FSDP", "map", HOLDS, NULL, .check = winners_are_those_advised},
    {"longer pipelines cost more: only for larger models", "falling", HOLDS, "760M on one node",
     .check = longer_pipelines_are_slower},
};

static void claims_are_as_listed(void **state) {
    (void)state;
    const document d = {
        'G',
        "[PyTorch Data Parallel Best Practices on Google Cloud](#pytorch-data-parallel-best-practices-on-google-cloud)",
        "test_seeds_google_cloud", claims, sizeof claims / sizeof claims[0]};
    claims_agree(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(claims_are_as_listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
