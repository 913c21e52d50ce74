/* Invariants over random legal scenarios:
 *   the time shares sum to the iteration time, and none is negative
 *   no faster than the products at the GPU's peak
 *   memory is what lives the whole iteration again when it ends; peaks are not below it
 *   spans of a stream do not overlap, and none leaves the iteration
 *   exposed communication is no more than there was
 *   doubling every bandwidth, or the GPU's rates, is never slower; halving the launch cost is never slower
 *   the closed-form network agrees with the flow network where transfers do not share links
 * DTSIM_PROPERTY_RUNS sets how many scenarios are drawn, DTSIM_PROPERTY_SEED the first seed,
 * DTSIM_PROPERTY_SHOW prints them. */
#include <stdlib.h>

#include "simulate.h"

/* A small generator of our own, so that a seed means the same scenario everywhere (SplitMix64, Steele et al. 2014). */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int pick(uint64_t *state, const int *choices, int count) {
    return choices[next_random(state) % (uint64_t)count];
}

#define PICK(state, ...) \
    pick(state, (const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

static const char *pick_name(uint64_t *state, const char *const *names, int count) {
    return names[next_random(state) % (uint64_t)count];
}

typedef struct drawn {
    char text[LONGEST_SETTINGS];
    int pipeline, data;
} drawn;

/* What may rest in host memory under a data parallelism, as a further setting. */
static void draw_offload(uint64_t *s, drawn *d, const char *parallel, bool single) {
    bool parameters = strcmp(parallel, "zero3") == 0 || strcmp(parallel, "fsdp") == 0;
    bool gradients = parameters || strcmp(parallel, "zero2") == 0;
    bool optimizer = PICK(s, 0, 0, 1) == 1 && (strcmp(parallel, "ddp") != 0 || d->data == 1);
    size_t length = strlen(d->text);
    if (!single && PICK(s, 0, 1)) {
        snprintf(d->text + length, sizeof d->text - length,
                 "offload: {parameters: %s, gradients: %s, optimizer: %s, activations: %s, prefetch: %d, "
                 "pin_memory: %s}\n",
                 optimizer && parameters && PICK(s, 0, 1) ? "cpu" : "none",
                 optimizer && gradients && PICK(s, 0, 1) ? "cpu" : "none", optimizer ? "cpu" : "none",
                 PICK(s, 0, 1) ? "cpu" : "none", PICK(s, 0, 1, 3), PICK(s, 0, 1, 1) ? "true" : "false");
    }
}

/* A legal scenario. */
static drawn draw(uint64_t seed) {
    static const char *const schedules[] = {"gpipe", "1f1b", "interleaved-1f1b", "naive"};
    static const char *const parallels[] = {"ddp", "zero1", "zero2", "zero3", "fsdp"};
    static const char *const precisions[] = {"fp16", "amp-fp16", "fp32", "bf16"};
    static const char *const optimizers[] = {"sgd", "sgd-momentum", "adamw", "adafactor", "lamb"};
    static const char *const recomputes[] = {"none", "selective", "full", "{every: 2}", "except-last"};
    uint64_t *s = &seed;
    drawn d;
    int nodes = PICK(s, 1, 1, 2, 4);
    int per_node = PICK(s, 1, 2, 4, 8);
    int gpus = nodes * per_node;
    int tensor = PICK(s, 1, 1, 1, 2, 4);
    tensor = tensor > per_node ? 1 : tensor;
    d.pipeline = PICK(s, 1, 1, 2, 4);
    d.pipeline = d.pipeline > gpus / tensor ? 1 : d.pipeline;
    d.data = gpus / tensor / d.pipeline;
    const char *schedule = pick_name(s, schedules, 4);
    int interleaved = strcmp(schedule, "interleaved-1f1b") == 0 && d.pipeline > 1;
    int chunks = interleaved ? 2 : 1;
    int microbatches = interleaved ? d.pipeline * PICK(s, 1, 2, 3) : PICK(s, 1, 2, 3, 5, 8);
    int micro_batch = PICK(s, 1, 2, 4, 7);
    const char *parallel = pick_name(s, parallels, 5);
    bool sharded = strcmp(parallel, "zero3") == 0 || strcmp(parallel, "fsdp") == 0;
    bool hybrid = sharded && d.data % 4 == 0 && d.pipeline == 1 && PICK(s, 0, 1);
    bool single = !hybrid && nodes == 1 && tensor == 1 && d.pipeline == 1 && d.data > 1 && PICK(s, 0, 1, 1) == 0;
    snprintf(d.text, sizeof d.text,
             "model: {profile: %s, layers: %d, hidden: %d, heads: 8, vocab: %d, ffn_hidden: 768}\n"
             "cluster: {profile: gcp-a2-highgpu-8g, nodes: %d, gpus_per_node: %d}\nstack: pytorch-1.11\n"
             "training: {global_batch: %d, micro_batch: %d, sequence_length: %d, precision: %s, optimizer: %s,\n"
             "           recompute: %s}\n"
             "parallelism: {tensor: %d, pipeline: %d, virtual_stages: %d, schedule: %s, partition: uniform,\n"
             "              data_parallel: %s, order: %s,\n"
             "              sequence: %s%s}\n",
             PICK(s, 0, 1) ? "gpt" : "llama", d.pipeline * chunks * PICK(s, 1, 2, 3), PICK(s, 256, 320, 512),
             PICK(s, 1000, 32000), nodes, per_node, d.data * micro_batch * microbatches, micro_batch,
             PICK(s, 64, 128, 200), pick_name(s, precisions, 4), pick_name(s, optimizers, 5),
             pick_name(s, recomputes, 5), tensor, d.pipeline, chunks, schedule, single ? "dp" : parallel,
             PICK(s, 0, 1) ? "tensor-data-pipeline" : "tensor-pipeline-data",
             tensor > 1 && PICK(s, 0, 1) ? "true" : "false", hybrid ? ", shard_group: 2" : "");
    draw_offload(s, &d, parallel, single);
    return d;
}

static void check_spans(const dts_result *r) {
    dts_time end = dts_time_from_s(r->iteration_time_s) + 1;
    for (size_t i = 0; i < r->span_count; i++) {
        const dts_span *span = &r->spans[i];
        assert_true(span->start >= 0 && span->start <= span->end && span->end <= end);
        if (i > 0 && r->spans[i - 1].stream == span->stream) {
            assert_true(r->spans[i - 1].end <= span->start);
        }
    }
}

/* What the ledger says at the end, per device: what was there from the start. */
static void check_memory(const dts_result *r) {
    for (size_t d = 0; d < r->stage_count; d++) {
        const dts_memory_gib *m = &r->stages[d].memory_gib;
        double first = -1;
        double last = -1;
        for (size_t i = 0; i < r->memory_sample_count; i++) {
            if (r->memory_samples[i].device == d) {
                last = r->memory_samples[i].bytes;
                first = first < 0 ? last : first;
                assert_true(last >= first - 1024); /* fractions of bytes are cut */
            }
        }
        assert_close(last, first, 0, 1024);
        assert_true(first >= m->parameters * 1024 * 1024 * 1024 - 1024);
        assert_true(m->parameters >= 0 && m->gradients >= 0 && m->optimizer >= 0 && m->activations >= -1e-6 &&
                    m->temporary >= -1e-6 && m->communication >= -1e-6);
    }
}

static void check_result(const dts_result *r) {
    const dts_time_shares *t = &r->time_s;
    assert_close(sum_of_shares(t), r->iteration_time_s, 1e-9, 1e-12);
    assert_true(t->compute >= 0 && t->exposed_communication >= 0 && t->bubble >= 0 && t->host_bound >= 0 &&
                t->optimizer >= 0 && t->exposed_offload >= 0);
    assert_true(r->hfu <= 1 && r->hfu >= r->mfu * (1 - 1e-9));
    double exposed = 0;
    for (size_t i = 0; i < r->communication_count; i++) {
        exposed += r->communication[i].exposed_s;
    }
    assert_close(exposed, t->exposed_communication, 1e-9, 1e-12);
    assert_true(r->peak_allocated_gib <= r->peak_reserved_gib + 1e-9);
    check_spans(r);
    check_memory(r);
}

static double iteration_time(const drawn *d, const char *network, const char *settings) {
    char all[LONGEST_SETTINGS];
    snprintf(all, sizeof all, "fidelity.network=%s %s", network, settings);
    dts_result *r = simulate_text(d->text, all);
    double time = r->iteration_time_s;
    dts_result_free(r);
    return time;
}

/* With closed-form transfers every start is a maximum of sums of durations (streams keep their order), so a faster part
 * is never slower. Where transfers share links max-min fairly it can be, a little: a transfer that starts earlier may
 * take its share from one that is on the critical path. */
static void check_monotone(const drawn *d) {
    static const char *const improvements[] = {
        "stack.launch=4us stack.backward_launch=3us stack.step_host=100us",
        ("cluster.inter.nic_bandwidth=200Gbit/s cluster.inter.node_goodput=20GB/s cluster.inter.node_duplex=21.32GB/s "
         "cluster.inter.flow_cap=8.46GB/s cluster.intra.bandwidth=600GB/s"),
        "cluster.gpu.memory_bandwidth=3110GB/s",
        "cluster.gpu.pcie_bandwidth=48GB/s cluster.host.memory_bandwidth=560GB/s",
    };
    double exact = iteration_time(d, "closed-form", "");
    double shared = iteration_time(d, "flow", "");
    for (size_t i = 0; i < sizeof improvements / sizeof improvements[0]; i++) {
        assert_true(iteration_time(d, "closed-form", improvements[i]) <= exact * (1 + 1e-9));
        assert_true(iteration_time(d, "flow", improvements[i]) <= shared * (1 + 0.05));
    }
}

static void check_scenario(uint64_t seed) {
    drawn d = draw(seed);
    if (getenv("DTSIM_PROPERTY_SHOW") != NULL) {
        print_message("# seed %llu\n%s", (unsigned long long)seed, d.text);
    }
    dts_result *r = simulate_text(d.text, "");
    check_result(r);
    dts_result_free(r);
    if (seed % 4 == 0) {
        check_monotone(&d);
    }
}

static void invariants_hold_over_random_scenarios(void **state) {
    (void)state;
    const char *runs_text = getenv("DTSIM_PROPERTY_RUNS");
    const char *seed_text = getenv("DTSIM_PROPERTY_SEED");
    uint64_t runs = runs_text == NULL ? 400 : strtoull(runs_text, NULL, 10);
    uint64_t seed = seed_text == NULL ? 1 : strtoull(seed_text, NULL, 10);
    for (uint64_t i = 0; i < runs; i++) {
        check_scenario(seed + i);
    }
    print_message("%llu scenarios\n", (unsigned long long)runs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(invariants_hold_over_random_scenarios)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
