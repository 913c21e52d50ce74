/* Bounds and estimated memory of FSDP in pipelines, with whole weights and with adapters, over scenarios that are
 * drawn.
 */
#include "base/random.h"
#include "closed_form.h"

enum { DRAWS = 60 };

static const char *one_of(dts_random *random, const char *const *values, uint32_t count) {
    return values[dts_random_below(random, count)];
}

#define ONE_OF(random, ...) \
    one_of(random, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Of schedules that do not split the backward, how far the memory is off. */
typedef struct errors {
    size_t count;
    double sum, worst;
} errors;

/* A layout of its own for each seed. */
static void compare_drawn(uint64_t seed, const char *adapters, errors *e) {
    dts_random *random = dts_random_new(seed);
    /* one after another: arguments of a call are drawn in an order that is the compiler's */
    const char *layers = ONE_OF(random, "8", "16", "24"), *vocab = ONE_OF(random, "32000", "128256");
    const char *cluster = ONE_OF(random, "dgx-a100-80gb", "dgx-h100"), *nodes = ONE_OF(random, "1", "2");
    const char *stack = ONE_OF(random, "pytorch-2", "torchtitan"), *batch = ONE_OF(random, "64", "128");
    const char *length = ONE_OF(random, "2048", "4096");
    const char *schedule = ONE_OF(random, "1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zbv");
    const char *pipeline = ONE_OF(random, "2", "4"), *recompute = ONE_OF(random, "none", "full");
    const char *micro_batch = ONE_OF(random, "1", "2");
    dts_random_free(random);
    char text[1000];
    snprintf(text, sizeof text,
             "model: {profile: llama-3-8b, layers: %s, vocab: %s}\n"
             "cluster: {profile: %s, nodes: %s}\n"
             "stack: %s\n"
             "training: {global_batch: %s, micro_batch: 1, sequence_length: %s, precision: bf16%s}\n"
             "fidelity: {allocator: estimate}\n",
             layers, vocab, cluster, nodes, stack, batch, length, adapters);
    const bool chunks = strcmp(schedule, "interleaved-1f1b") == 0 || strcmp(schedule, "zbv") == 0;
    const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                             AXIS("parallelism.context", "1"),
                             AXIS("parallelism.order", "tensor-data-pipeline"),
                             AXIS("parallelism.partition", "auto"),
                             AXIS("parallelism.pipeline", pipeline),
                             AXIS("parallelism.data_parallel", "fsdp"),
                             AXIS("parallelism.shard_group", "0"),
                             AXIS("offload", "none"),
                             AXIS("training.recompute", recompute),
                             AXIS("parallelism.virtual_stages", chunks ? "2" : "1"),
                             AXIS("training.micro_batch", micro_batch),
                             AXIS("parallelism.schedule", schedule)};
    const tally t = walk_layouts(text, over, sizeof over / sizeof over[0]);
    if (schedule[0] != 'z') {
        e->count += t.count;
        e->sum += (double)t.count * t.worst_memory; /* one layout */
        e->worst = fmax(e->worst, t.worst_memory);
    }
}

static void bounds_hold_and_memory_is_near(void **state) {
    (void)state;
    static const char *const adapters[] = {"", ", adapters: {lora: {rank: 16, targets: all-linear}}"};
    for (size_t i = 0; i < 2; i++) {
        errors e = {0};
        for (uint64_t seed = 1; seed <= DRAWS; seed++) {
            compare_drawn(seed, adapters[i], &e);
        }
        const double count = (double)e.count;
        print_message("memory of %zu layouts off by %.1f %% on average, %.1f %% at most\n", e.count,
                      100 * e.sum / count, 100 * e.worst);
        assert_true(e.count >= DRAWS / 4 && e.sum < 0.06 * count && e.worst < 0.2);
    }
}

/* What a step returns lies on the last stage until it ends, with a copy: without that, plans that lack a terabyte were
 * simulated to see that they do not fit. */
static void kept_outputs_are_in_the_bound(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: llama-3-8b, layers: 8}\n"
        "cluster: {profile: dgx-h100, nodes: 1}\n"
        "stack: torchtitan\n"
        "training: {global_batch: 512, micro_batch: 1, sequence_length: 4096, precision: bf16}\n"
        "fidelity: {allocator: estimate}\n";
    static const char *const schedules[] = {"1f1b", "zb-h1"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        const dts_axis over[] = {AXIS("parallelism.tensor", "1"),
                                 AXIS("parallelism.context", "1"),
                                 AXIS("parallelism.order", "tensor-data-pipeline"),
                                 AXIS("parallelism.partition", "auto"),
                                 AXIS("parallelism.pipeline", "2"),
                                 AXIS("parallelism.data_parallel", "fsdp"),
                                 AXIS("parallelism.shard_group", "0"),
                                 AXIS("offload", "none"),
                                 AXIS("training.recompute", "none"),
                                 AXIS("parallelism.virtual_stages", "1"),
                                 AXIS("training.micro_batch", "1"),
                                 AXIS("parallelism.schedule", schedules[i])};
        const tally t =
            walk_layouts(text, over, sizeof over / sizeof over[0]); /* whose bounds no simulation undercuts */
        print_message("%s: bound of memory %.1f GB, estimate %.1f GB, off by %.1f %%\n", schedules[i],
                      t.estimate.least_memory_B / 1e9, t.estimate.memory_B / 1e9, 100 * t.worst_memory);
        assert_true(t.count == 1 && t.worst_memory < 0.05 && t.estimate.least_memory_B > 0.85 * t.estimate.memory_B);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold_and_memory_is_near),
                                       cmocka_unit_test(kept_outputs_are_in_the_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
