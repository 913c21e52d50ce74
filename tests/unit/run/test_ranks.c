/* Every rank by itself: what late, uneven and badly connected ranks cost, against closed forms. */
#include <math.h>

#include "simulate.h"

enum { REPLICAS = 8 };

/* No host time and no network time to speak of: what is left is kernels and reductions. */
static const char *const ddp =
    "model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 8000, max_positions: 1024}\n"
    "cluster: {profile: dgx-a100-40gb, nodes: 1}\n"
    "stack: {profile: pytorch-2, launch: 0, backward_launch: 0, step_host: 0, communication_sms: 0}\n"
    "training: {global_batch: 64, micro_batch: 8, sequence_length: 1024, precision: amp-bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: ddp}\n";

/* The settings are split at blanks, so lists are written without. */
#define LATE "cluster.stragglers=[{node:\t0,gpu:\t3,slowdown:\t1.2}]"

static double time_of(const char *text, const char *settings) {
    dts_result *r = simulate_text(text, settings);
    double time = r->iteration_time_s;
    dts_result_free(r);
    return time;
}

static void ranks_without_a_difference_are_one(void **state) {
    (void)state;
    dts_result *folded = simulate_text(ddp, "fidelity.ranks=folded fidelity.detail=kernel");
    dts_result *full = simulate_text(ddp, "fidelity.ranks=full");
    assert_close(full->iteration_time_s, folded->iteration_time_s, 1e-9, 0);
    assert_int_equal(full->ranks.count, REPLICAS);
    assert_int_equal(folded->ranks.count, 0);
    assert_string_equal(full->simulation.ranks, "full");
    assert_string_equal(folded->simulation.ranks, "folded");
    assert_true(full->simulation.tasks > 7 * folded->simulation.tasks);
    const dts_communication_row *one = communication_row(folded, "all-reduce", "data");
    const dts_communication_row *all = communication_row(full, "all-reduce", "data");
    assert_int_equal(all->count, one->count);
    assert_close(all->bytes, one->bytes, 1e-12, 0);
    dts_result_free(folded);
    dts_result_free(full);
}

/* Reductions that take nothing: the iteration is the late replica's kernels, all of them 1.2 times as long. */
static void a_late_replica_makes_all_wait(void **state) {
    (void)state;
    const char *alone = "cluster.gpus_per_node=1 training.global_batch=8";
    dts_result *one = simulate_text(ddp, alone);
    dts_result *even = simulate_text(ddp, "fidelity.ranks=full");
    dts_result *late = simulate_text(ddp, LATE);
    assert_string_equal(late->simulation.ranks, "full"); /* auto */
    /* compute grows by the factor; the exposed part of the reductions is that of its last bucket either way */
    double kernels = even->time_s.compute + even->time_s.optimizer;
    double exposed = even->iteration_time_s - kernels;
    assert_true(exposed < 0.1 * even->iteration_time_s);
    assert_close(late->iteration_time_s, 1.2 * kernels + exposed, 1e-3, 0);
    assert_true(late->iteration_time_s > 1.2 * one->time_s.compute);
    assert_int_equal(late->ranks.critical, 3);
    assert_close(late->ranks.critical_busy_s, 1.2 * late->ranks.least_busy_s, 1e-6, 0);
    /* a second straggler that is no later costs nothing more; one that is later does */
    assert_close(
        time_of(ddp, "cluster.stragglers=[{node:\t0,gpu:\t3,slowdown:\t1.2},{node:\t0,gpu:\t5,slowdown:\t1.1}]"),
        late->iteration_time_s, 1e-3, 0);
    assert_close(time_of(ddp, "cluster.stragglers=[{node:\t0,slowdown:\t1.2}]"), late->iteration_time_s, 1e-3, 0);
    dts_result_free(one);
    dts_result_free(even);
    dts_result_free(late);
}

/* A stage of one replica that is late holds up its own pipeline, and at the end the others. */
static void a_late_stage_makes_all_pipelines_wait(void **state) {
    (void)state;
    const char *pipeline = "parallelism.pipeline=4 parallelism.order=tensor-pipeline-data training.global_batch=128";
    char settings[400];
    snprintf(settings, sizeof settings, "%s fidelity.ranks=full", pipeline);
    dts_result *even = simulate_text(ddp, settings);
    snprintf(settings, sizeof settings, "%s cluster.stragglers=[{node:\t0,gpu:\t6,slowdown:\t10}]", pipeline);
    dts_result *late = simulate_text(ddp, settings); /* replica 1, stage 2 */
    assert_int_equal(late->ranks.critical, 6);
    assert_close(late->ranks.critical_busy_s, 10 * late->ranks.least_busy_s, 1e-6, 0);
    /* it is busy without a break but for filling and draining, which take less than an iteration without it */
    assert_true(late->iteration_time_s > late->ranks.critical_busy_s);
    assert_true(late->iteration_time_s < late->ranks.critical_busy_s + even->iteration_time_s);
    assert_true(late->ranks.critical_busy_s > 2 * even->iteration_time_s);
    assert_close(sum_of_shares(&late->time_s), late->iteration_time_s, 1e-9, 1e-12);
    dts_result_free(even);
    dts_result_free(late);
}

/* Between nodes the ring runs at the rate of its slowest network. */
static void a_slow_network_slows_every_ring_through_it(void **state) {
    (void)state;
    const char *two =
        "cluster.nodes=2 training.global_batch=128 cluster.inter.node_goodput=1GB/s "
        "cluster.inter.all_reduce=ring cluster.inter.fill_latency=0 cluster.inter.base_latency=0 "
        "cluster.inter.hop_latency=0";
    char settings[400];
    snprintf(settings, sizeof settings, "%s fidelity.ranks=full", two);
    dts_result *even = simulate_text(ddp, settings);
    snprintf(settings, sizeof settings, "%s cluster.stragglers=[{node:\t1,network_slowdown:\t2}]", two);
    dts_result *slow = simulate_text(ddp, settings);
    const dts_communication_row *a = communication_row(even, "all-reduce", "data");
    const dts_communication_row *z = communication_row(slow, "all-reduce", "data");
    assert_close(z->total_s, 2 * a->total_s, 1e-3, 0);
    dts_result_free(even);
    dts_result_free(slow);
}

/* Speeds drawn once for each GPU: the iteration is that of the slowest of n, whose expectation over standard normals is
 * 0.564 for 2, 1.424 for 8 and 2.066 for 32 (Harter, "Expected values of normal order statistics", Biometrika 1961). */
static void the_slowest_of_more_is_later(void **state) {
    (void)state;
    static const struct {
        int nodes, gpus;
        double expected;
    } sizes[] = {{1, 2, 0.564}, {1, 8, 1.424}, {4, 8, 2.066}};
    enum { SEEDS = 30 };
    static const double spread = 0.05;
    double before = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int gpus = sizes[i].nodes * sizes[i].gpus;
        double sum = 0;
        for (int seed = 1; seed <= SEEDS; seed++) {
            char settings[300];
            snprintf(settings, sizeof settings,
                     "cluster.nodes=%d cluster.gpus_per_node=%d training.global_batch=%d model.layers=1 "
                     "cluster.gpu_spread=%g fidelity.seed=%d",
                     sizes[i].nodes, sizes[i].gpus, 8 * gpus, spread, seed);
            dts_run_options options = {0};
            dts_result *r = simulate_with(&options, NULL, ddp, settings, DTS_OK, NULL);
            sum += r->ranks.critical_busy_s;
            dts_result_free(r);
        }
        char even[300];
        snprintf(
            even, sizeof even,
            "cluster.nodes=%d cluster.gpus_per_node=%d training.global_batch=%d model.layers=1 fidelity.ranks=full",
            sizes[i].nodes, sizes[i].gpus, 8 * gpus);
        dts_result *one = simulate_text(ddp, even);
        sum /= one->ranks.critical_busy_s;
        dts_result_free(one);
        double mean = sum / SEEDS;
        assert_true(mean > before);
        before = mean;
        print_message("%d GPUs: mean of the latest %.4f\n", gpus, mean);
        /* mean 1 of all; the standard error of the mean is 0.7 % for 2 GPUs, less for more */
        assert_close(mean, exp(spread * sizes[i].expected - spread * spread / 2), 0.015, 0);
    }
}

/* Jitter of single kernels averages out within a rank: far less than its deviation, but never less than none. */
static void jitter_averages_out(void **state) {
    (void)state;
    double even = time_of(ddp, "fidelity.ranks=full");
    double little = time_of(ddp, "cluster.jitter=0.05");
    double more = time_of(ddp, "cluster.jitter=0.2");
    assert_true(little > even && more > little);
    assert_true(more < 1.1 * even);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    assert_refused_with(NULL, ddp, "fidelity.ranks=folded cluster.jitter=0.1",
                        "one rank cannot stand for all where cluster.jitter", "full");
    assert_refused_with(NULL, ddp, "fidelity.ranks=folded " LATE, "cluster.stragglers makes them differ",
                        "ranks: full");
    assert_refused_with(NULL, ddp, "fidelity.detail=block fidelity.ranks=full", "kernel by kernel", "detail: kernel");
    assert_refused_with(NULL, ddp, "parallelism.data_parallel=dp fidelity.ranks=full", "one drives all",
                        "ranks: folded");
    assert_refused_with(NULL, ddp, "cluster.jitter=0.1 fidelity.microbatches=folded", "drawn at random",
                        "microbatches: all");
    assert_refused_with(NULL, ddp, "cluster.stragglers=[{node:\t4,slowdown:\t2}]", "names node 4 of 1", "count from 0");
    assert_refused_with(NULL, ddp, "cluster.stragglers=[{node:\t0,gpu:\t8,slowdown:\t2}]", "names gpu 8 of 8",
                        "count from 0");
    assert_refused_with(NULL, ddp, "cluster.stragglers=[{node:\t0,gpu:\t1,network_slowdown:\t2}]",
                        "not about one of its GPUs", "leave `gpu`");
}

/* Pipelines of 3 on nodes of 8: some cross, the first does not. */
static void replicas_lie_as_they_lie(void **state) {
    (void)state;
    const char *three =
        "cluster.nodes=3 cluster.inter.node_goodput=1GB/s parallelism.pipeline=3 training.global_batch=512 "
        "parallelism.order=tensor-pipeline-data";
    char settings[400];
    dts_run_options options = {0};
    snprintf(settings, sizeof settings, "%s fidelity.ranks=folded", three);
    dts_result *folded = simulate_with(&options, NULL, ddp, settings, DTS_OK, NULL);
    snprintf(settings, sizeof settings, "%s fidelity.ranks=full", three);
    dts_result *full = simulate_with(&options, NULL, ddp, settings, DTS_OK, NULL);
    bool warned = false;
    for (size_t i = 0; i < folded->warning_count; i++) {
        warned = warned || strstr(folded->warnings[i], "in different ways") != NULL;
    }
    assert_true(warned);
    assert_int_equal(full->warning_count + 1, folded->warning_count);
    assert_true(full->iteration_time_s > 1.02 * folded->iteration_time_s);
    dts_result_free(folded);
    dts_result_free(full);
}

static double time_of_file(const char *file, const char *settings) {
    char path[100];
    snprintf(path, sizeof path, "scenarios/stragglers/%s.yaml", file);
    dts_run_options options = {0};
    dts_result *r = simulate_with(&options, path, NULL, settings, DTS_OK, NULL);
    double time = r->iteration_time_s;
    dts_result_free(r);
    return time;
}

/* Both ranks that hold a stage reduce it together, across nodes or inside one: the same as folded. A late rank holds up
 * the pipelines of both directions. */
static void both_copies_of_a_stage_are_one_group(void **state) {
    (void)state;
    static const char text[] =
        "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 50304, tied_embeddings: false}\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 2}\n"
        "stack: megatron-core\n"
        "training: {global_batch: 64, micro_batch: 1, sequence_length: 1024, precision: bf16}\n"
        "parallelism: {data_parallel: zero1, pipeline: 4, schedule: dualpipe}\n";
    static const char *const cases[] = {
        "",
        "parallelism.schedule=chimera parallelism.data_parallel=ddp",
        "parallelism.tensor=2 parallelism.order=tensor-pipeline-data",
        "parallelism.order=tensor-pipeline-data parallelism.data_parallel=ddp",
        "parallelism.pipeline=8 training.global_batch=32",
        "model=mixtral-8x7b model.layers=4 parallelism.expert=4",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "%s fidelity.ranks=full", cases[i]);
        dts_result *folded = simulate_text(text, cases[i]);
        dts_result *full = simulate_text(text, settings);
        assert_close(full->iteration_time_s, folded->iteration_time_s, 1e-6, 0);
        assert_close(full->peak_allocated_gib, folded->peak_allocated_gib, 1e-9, 0);
        for (size_t k = 0; k < folded->communication_count; k++) {
            const dts_communication_row *one = &folded->communication[k];
            const dts_communication_row *all = communication_row(full, one->kind, one->group);
            assert_int_equal(all->count, one->count);
            assert_close(all->bytes, one->bytes, 1e-9, 0);
            assert_close(all->total_s, one->total_s, 1e-3, 0);
        }
        dts_result_free(folded);
        dts_result_free(full);
    }
    const double even_s = time_of(text, "fidelity.ranks=full");
    const double late_s = time_of(text, LATE);
    print_message("even %.2f ms, one GPU a fifth slower %.2f\n", 1e3 * even_s, 1e3 * late_s);
    assert_true(late_s > 1.1 * even_s && late_s < 1.2 * even_s);
}

static void the_scenarios_tell_the_truth(void **state) {
    (void)state;
    double good = time_of_file("slow-node", "cluster.stragglers=[]");
    assert_close(time_of_file("slow-node", "") / good, 1.19, 0.01, 0);
    assert_close(time_of_file("gpu-spread", "") / good, 1.07, 0.03, 0);
    assert_close(time_of_file("gpu-spread", "cluster.gpu_spread=0") / good, 1.003, 0.002, 0);
    double even = time_of_file("lost-adapters", "cluster.stragglers=[]");
    assert_close(time_of_file("lost-adapters", "") / even, 1.09, 0.01, 0);
    double late = time_of_file("lost-adapters", "cluster.stragglers=[] stack.fsdp.prefetch=0");
    assert_close(time_of_file("lost-adapters", "stack.fsdp.prefetch=0") / late, 1.40, 0.02, 0);
    double inside = time_of_file("lost-adapters", "cluster.stragglers=[] parallelism.shard_group=8");
    assert_close(time_of_file("lost-adapters", "parallelism.shard_group=8") / inside, 1.07, 0.01, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_without_a_difference_are_one),
        cmocka_unit_test(a_late_replica_makes_all_wait),
        cmocka_unit_test(a_late_stage_makes_all_pipelines_wait),
        cmocka_unit_test(a_slow_network_slows_every_ring_through_it),
        cmocka_unit_test(the_slowest_of_more_is_later),
        cmocka_unit_test(jitter_averages_out),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(replicas_lie_as_they_lie),
        cmocka_unit_test(both_copies_of_a_stage_are_one_group),
        cmocka_unit_test(the_scenarios_tell_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
