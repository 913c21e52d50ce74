/* Hugging Face Transformers documentation, "Performance and Scalability: How To Fit a Bigger Model and Train It
 * Faster": BERT-base on MRPC in fp32 and fp16, GPT-2 on two TITAN RTX with DP and DDP, with NVLink and without; and
 * "Single GPU Optimization", a page of notes on the same documentation. */
#include "seeds.h"

static const char mrpc[] =
    "model: {profile: bert-base, vocab: 28996, head: classification, labels: 2, lm_transform: false}\n"
    "cluster: titan-rtx-nvlink-2\nstack: huggingface-trainer\n"
    "training: {global_batch: 16, micro_batch: 8, sequence_length: 128, precision: fp32, optimizer: adamw}\n"
    "parallelism: {data_parallel: ddp}\n";

static const char gpt2[] =
    "model: gpt2\ncluster: titan-rtx-nvlink-2\nstack: huggingface-trainer\n"
    "training: {global_batch: 8, micro_batch: 4, sequence_length: 1024, precision: fp32, optimizer: adamw}\n"
    "parallelism: {data_parallel: ddp}\n";

static const char large[] =
    "model: {profile: bert-large, head: classification, labels: 2, lm_transform: false}\n"
    "cluster: v100-16gb-single\nstack: huggingface-trainer\n"
    "training: {global_batch: 1, micro_batch: 1, sequence_length: 128, precision: fp32, optimizer: adamw}\n";

#define WITH_DP       "parallelism.data_parallel=dp"
#define NO_P2P        "cluster.profile=titan-rtx-pcie-2"
#define BATCH(b, all) "training.micro_batch=" #b " training.global_batch=" #all
#define FP16          " training.precision=amp-fp16"

static double steps_200_s(const dts_result *r) {
    return 200 * r->iteration_time_s;
}

static double steps_per_second(const dts_result *r) {
    return 1 / r->iteration_time_s;
}

static double optimizer_ms(const dts_result *r) {
    return 1e3 * r->time_s.optimizer;
}

static double time_per_sample_ms(const dts_result *r) {
    return 1e3 / r->samples_per_s;
}

static bool fp16_pays_with_large_batches(const claim *c, dts_text *got) {
    (void)c;
    double at_1 = measure(mrpc, BATCH(1, 2) FP16, device_mib) - measure(mrpc, BATCH(1, 2), device_mib);
    double at_64 = measure(mrpc, BATCH(64, 128) FP16, device_mib) - measure(mrpc, BATCH(64, 128), device_mib);
    double at_8 = measure(mrpc, BATCH(8, 16) FP16, device_mib) - measure(mrpc, BATCH(8, 16), device_mib);
    dts_text_printf(got, "%+.0f MiB at batch 1, %+.0f at 8, %+.0f at 64", at_1, at_8, at_64);
    return at_1 > 0 && at_8 < 0 && at_64 < at_8;
}

static bool fp16_is_twice_as_fast(const claim *c, dts_text *got) {
    (void)c;
    static const char *const settings[][2] = {{BATCH(8, 16), BATCH(8, 16) FP16},
                                              {BATCH(16, 32), BATCH(16, 32) FP16},
                                              {BATCH(32, 64), BATCH(32, 64) FP16},
                                              {BATCH(64, 128), BATCH(64, 128) FP16}};
    bool good = true;
    for (int i = 0; i < 4; i++) {
        double gain = measure(mrpc, settings[i][0], iteration_s) / measure(mrpc, settings[i][1], iteration_s);
        dts_text_printf(got, "%s%.1f", i == 0 ? "× " : ", ", gain);
        good = good && within(gain, 1.7, 2.6);
    }
    return good;
}

static bool three_cases_in_order(const claim *c, dts_text *got) {
    double ddp = measure(gpt2, NULL, iteration_s);
    double dp = measure(gpt2, WITH_DP, iteration_s);
    double slow = measure(gpt2, NO_P2P, iteration_s);
    dts_text_printf(got, "DDP %.2f < DP %.2f < DDP without NVLink %.2f s: × %.2f", ddp, dp, slow, slow / dp);
    return ddp < dp && dp < slow && within(slow / dp, c->low, c->high);
}

/* A link of half the speed: what it adds to a step. */
static bool sharding_needs_the_link_more(const claim *c, dts_text *got) {
    (void)c;
    double ddp = measure(gpt2, NO_P2P, iteration_s) - measure(gpt2, NULL, iteration_s);
    double zero3 = measure(gpt2, NO_P2P " parallelism.data_parallel=zero3", iteration_s) -
                   measure(gpt2, "parallelism.data_parallel=zero3", iteration_s);
    dts_text_printf(got, "without NVLink DDP %+.0f ms, ZeRO-3 %+.0f ms", 1e3 * ddp, 1e3 * zero3);
    return zero3 > ddp && ddp > 0;
}

static bool the_first_gpu_works_more(const claim *c, dts_text *got) {
    (void)c;
    double busy[2];
    dts_result *r = simulate_text(gpt2, WITH_DP);
    for (int d = 0; d < 2; d++) {
        busy[d] = 0;
        for (int kind = DTS_SPAN_FORWARD; kind <= DTS_SPAN_BACKWARD_WEIGHT; kind++) {
            busy[d] += span_time(r, d, (dts_span_kind)kind, NULL);
        }
        busy[d] = (busy[d] + span_time(r, d, DTS_SPAN_OPTIMIZER, NULL)) / r->iteration_time_s;
    }
    dts_result_free(r);
    dts_text_printf(got, "GPU 0 busy %.0f %%, GPU 1 %.0f %%", 100 * busy[0], 100 * busy[1]);
    return busy[0] > busy[1];
}

#define MEMORY(text, set, mib, v, why)                                                                                 \
    {                                                                                                                  \
        text, #mib " MiB", v, why, .check = a_value, .base = mrpc, .settings = set, .of = device_mib, NEAR(mib, 0.06), \
                                   .unit = "MiB"                                                                       \
    }

/* fp16's saving comes from the difference of two sums that nvidia-smi rounds to its allocator's blocks: 40 % */
#define BERT_BASE(b, all, fp32, v32, why32, fp16, v16, why16, saving, v, why)                                        \
    MEMORY("BERT-base, batch " #b ", fp32", BATCH(b, all), fp32, v32, why32),                                        \
        MEMORY("BERT-base, batch " #b ", fp16", BATCH(b, all) FP16, fp16, v16, why16), {                             \
        "fp16 saves at batch " #b, #saving " MiB", v, why, .check = a_difference, .base = mrpc,                      \
                                                           .settings = BATCH(b, all), .against = BATCH(b, all) FP16, \
                                                           .of = device_mib, NEAR(saving, 0.4), .unit = "MiB"        \
    }

#define GPT2(text, set, seconds, rate, v, why)                                                         \
    {                                                                                                  \
        "200 steps of GPT-2, " text,                                                                   \
        #seconds " s",                                                                                 \
        v,                                                                                             \
        why,                                                                                           \
        .check = a_value,                                                                              \
        .base = gpt2,                                                                                  \
        .settings = set,                                                                               \
        .of = steps_200_s,                                                                             \
        NEAR(seconds, 0.08),                                                                           \
        .unit = "s"},                                                                                  \
    {                                                                                                  \
        "rate, " text ": called samples, but 200 steps by the time", #rate " steps/s", v, why,         \
            .check = a_value, .base = gpt2, .settings = set, .of = steps_per_second, NEAR(rate, 0.08), \
            .unit = "steps/s"                                                                          \
    }

#define PADDED                                                                                                     \
    "pairs of sentences are padded to the longest of a batch, which is not known (128 here, the most); errors of " \
    "both sums add up"

static const claim scalability[] = {
    BERT_BASE(8, 16, 4247, HOLDS, NULL, 4163, HOLDS, NULL, 84, DISAGREES, PADDED),
    BERT_BASE(16, 32, 4971, HOLDS, NULL, 4793, HOLDS, NULL, 178, DISAGREES, PADDED),
    BERT_BASE(32, 64, 6827, HOLDS, NULL, 6207, HOLDS, NULL, 620, DISAGREES, PADDED),
    BERT_BASE(64, 128, 10037, HOLDS, NULL, 8061, HOLDS, NULL, 1976, HOLDS, NULL),
    {"fp16 saves memory with large batches only and takes more with small ones", "sign changes below 8", HOLDS, NULL,
     .check = fp16_pays_with_large_batches},
    {"fp16 is twice as fast, at batch 8, 16, 32 and 64", "2 ×", DISAGREES,
     "in the middle only: at batch 8 launches by the host bind fp16, at 64 tensor cores gain more than was seen",
     .check = fp16_is_twice_as_fast},
    {"mixed precision: weights twice, half activations, fp32 gradients and states", "rule", HOLDS, NULL,
     .proof = "tests/unit/plan/test_storage.c autocast_keeps_everything_in_fp32"},
    {"checkpoints of n layers take memory of order √n", "√n", HOLDS, "`recompute: sqrt`",
     .proof = "tests/unit/run/test_partition.c sqrt_checkpoints_keep_a_root_of_the_layers"},
    GPT2("DP, NVLink", WITH_DP, 110.5948, 1.808, DISAGREES,
         "9 % too slow, since the copies that GPT-2 makes of its logits for the loss are simulated: see below, DP "
         "against "
         "DDP"),
    GPT2("DDP, NVLink", NULL, 101.9003, 1.963, HOLDS, NULL),
    GPT2("DDP, no peer access", NO_P2P, 131.4367, 1.522, DISAGREES,
         "the path through host memory is faster in the model than it was; what desktop board it was is not known"),
    {"200 steps are 0.69 epochs", "0.69", NOT_SIMULATED,
     "the data set has no part in a step; 200 · 8 / 0.69 are 2319 blocks", .check = NULL},
    {"two TITAN RTX joined by two NVLinks", "2 links", HOLDS, "the cluster `titan-rtx-nvlink-2`",
     .proof = "tests/unit/hardware/test_profiles.c test_clusters"},
    {"DP is about 10 % slower than DDP with NVLink", "8.5 % from the times", DISAGREES,
     "it is slower, but by more than within 5 points: gathered logits pass NVLink and GPU 0's memory at less overlap "
     "than they did",
     .check = a_ratio, .base = gpt2, .settings = WITH_DP, .against = NULL, .of = iteration_s, .low = 1.035,
     .high = 1.135},
    {"DP with NVLink is about 15 % faster than DDP without", "× 1.19 from the times", DISAGREES,
     "the last two come out alike: DP a little too slow, the path through host memory too fast",
     .check = three_cases_in_order, NEAR(1.19, 0.08)},
    {"a slow link matters little for DDP and a lot for ZeRO", "order", HOLDS, "ZeRO-3 of GPT-2",
     .check = sharding_needs_the_link_more},
    {"DDP exchanges once a batch, DP five times", "1 / 5", HOLDS, NULL,
     .proof = "tests/unit/run/test_strategies.c a_single_process_makes_five_exchanges"},
    {"under DP the first GPU works more than the others", "order", HOLDS, NULL, .check = the_first_gpu_works_more},
    {"DP runs on one machine only", "refused", HOLDS, NULL, .check = is_refused, .base = gpt2,
     .settings = WITH_DP " cluster.profile=dgx-a100-40gb cluster.nodes=2 training.global_batch=64"},
    {"nvidia-smi names seven kinds of connections", "7 kinds", NOT_SIMULATED,
     "such a matrix is not read; links are described in cluster profiles", .check = NULL},
    {"fused optimizers are faster with many small tensors", "faster", HOLDS, NULL, .check = a_ratio, .base = gpt2,
     .settings = "stack.optimizer.style=per-tensor", .against = "stack.optimizer.style=fused", .of = optimizer_ms,
     .low = 1.1, .high = 10},
};

/* ---- notes
 * -----------------------------------------------------------------------------------------------------------
 */

/* MiB that mixed precision adds: a large model at batch 1, a small one at batch 64 */
static bool precision_and_size(const claim *c, dts_text *got) {
    (void)c;
    double grows = measure(large, &FP16[1], device_mib) - measure(large, NULL, device_mib);
    double shrinks = measure(mrpc, BATCH(64, 128) FP16, device_mib) - measure(mrpc, BATCH(64, 128), device_mib);
    dts_text_printf(got, "BERT-large, batch 1 × 128: %+.0f MiB; BERT-base, batch 64: %+.0f", grows, shrinks);
    return grows > 0 && shrinks < 0;
}

static bool weights_grow_by_half(const claim *c, dts_text *got) {
    (void)c;
    double weights = measure(large, FEW_TOKENS FP16, weights_with_copies) / measure(large, FEW_TOKENS, weight_bytes);
    double gain = measure(mrpc, BATCH(64, 128), iteration_s) / measure(mrpc, BATCH(64, 128) FP16, iteration_s);
    dts_text_printf(got, "weights × %.2f, %.1f times as fast", weights, gain);
    return within(weights, 1.4, 1.5) && gain > 1;
}

static bool small_microbatches_are_slow(const claim *c, dts_text *got) {
    (void)c;
    double previous = 0;
    bool good = true;
    static const char *const settings[] = {
        "training.global_batch=64 training.micro_batch=32", "training.global_batch=64 training.micro_batch=8",
        "training.global_batch=64 training.micro_batch=2", "training.global_batch=64 training.micro_batch=1"};
    for (int i = 0; i < 4; i++) {
        double ms = measure(large, settings[i], time_per_sample_ms);
        dts_text_printf(got, "%s%.1f", i == 0 ? "" : ", ", ms);
        good = good && ms > previous;
        previous = ms;
    }
    dts_text_add(got, " ms a sample for microbatches of 32, 8, 2, 1");
    return good;
}

static bool accumulation_keeps_its_buffer(const claim *c, dts_text *got) {
    (void)c;
    double none = measure(large, NULL, device_mib);
    double four = measure(large, "training.global_batch=4", device_mib);
    double many = measure(large, "training.global_batch=64", device_mib);
    dts_text_printf(got, "%.0f MiB with 1 step, %.0f with 4, %.0f with 64", none, four, many);
    return fabs(four - many) < 1 && four >= none;
}

/* Adapters beside frozen weights; and batches of samples that take a core 1 ms each. */
static bool adapters_and_preloading(const claim *c, dts_text *got) {
    (void)c;
    double all = measure(large, NULL, device_mib);
    double adapted = measure(large, "training.adapters.lora.rank=16", device_mib);
    double stalls = measure(large, "input.workers=0 input.sample_cost=1ms training.global_batch=32", iteration_s);
    double preloads = measure(large, "input.workers=2 input.sample_cost=1ms training.global_batch=32", iteration_s);
    dts_text_printf(got, "adapters: %.0f instead of %.0f MiB; preloading: %.2f instead of %.2f s", adapted, all,
                    preloads, stalls);
    return adapted < 0.8 * all && preloads < 0.99 * stalls;
}

static const claim notes[] = {
    {"ZeRO 1 shards states, 2 gradients too, 3 parameters too", "rule", HOLDS,
     "in inference only stage 3 matters; the others are refused there (`unit/run/test_inference`)",
     .proof = "tests/unit/run/test_strategies.c memory_is_that_of_zeros_table"},
    {"mixed precision: more memory for a large model at small batch, less the other way round", "signs", HOLDS, NULL,
     .check = precision_and_size},
    {"mixed precision is faster and weights take 1.5 times the memory", "1.5 ×", HOLDS,
     "the half copies that autocast keeps are counted as activations", .check = weights_grow_by_half},
    {"low-rank adapters save memory; preloading data saves time", "signs", HOLDS, NULL,
     .check = adapters_and_preloading},
    {"effective batch = steps · batch; many steps of accumulation slow down", "rising", HOLDS, NULL,
     .check = small_microbatches_are_slow},
    {"does accumulation itself take memory? the author cannot tell", "open", HOLDS,
     "no more with 64 steps than with 4: gradients are there for good, and activations are those of one microbatch",
     .check = accumulation_keeps_its_buffer},
    {"with offload the optimizer must exist for the CPU", "rule", HOLDS,
     "the step runs on the host, at the stack's rate",
     .proof = "tests/unit/run/test_strategies.c the_cpu_takes_the_step"},
};

static void scalability_claims_are_as_listed(void **state) {
    (void)state;
    const document d = {'P', "[Performance and Scalability](#performance-and-scalability)", "test_seeds_scalability",
                        scalability, sizeof scalability / sizeof scalability[0]};
    claims_agree(&d);
}

static void notes_are_as_listed(void **state) {
    (void)state;
    const document d = {'N', "[Single GPU Optimization, notes](#single-gpu-optimization-notes)",
                        "test_seeds_scalability", notes, sizeof notes / sizeof notes[0]};
    claims_agree(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalability_claims_are_as_listed),
        cmocka_unit_test(notes_are_as_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
