/* Offload to NVMe and the step on the CPU: closed forms, and what ZeRO-Offload [1] and ZeRO-Infinity [2] publish.
 *
 * [1] Ren et al., "ZeRO-Offload", USENIX ATC 2021, table 4.
 * [2] Rajbhandari et al., "ZeRO-Infinity", SC 2021 (arXiv 2104.07857), section 4.1. */
#include <math.h>

#include "simulate.h"

static const char *const base =
    "model: {profile: gpt, layers: 16, hidden: 2048, heads: 16, vocab: 64, max_positions: 1024, tied_embeddings: "
    "false}\n"
    "cluster: {profile: dgx-2, nodes: 1, gpus_per_node: 1}\n"
    "stack: {profile: deepspeed, launch: 0, backward_launch: 0, step_host: 0, fsdp: {unit_host: 0},\n"
    "        optimizer: {gradient_clipping: false}}\n"
    "training: {global_batch: 4, micro_batch: 4, sequence_length: 1024, precision: fp16, optimizer: adam,\n"
    "           recompute: full}\n"
    "parallelism: {data_parallel: zero3}\n";

static dts_result *run(const char *format, double value) {
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, format, value);
    return simulate_text(base, settings);
}

static double time_with(const char *format, double value) {
    dts_result *r = run(format, value);
    double time = r->iteration_time_s;
    assert_close(sum_of_shares(&r->time_s), time, 1e-9, 0);
    dts_result_free(r);
    return time;
}

/* Elements of all 16 layers: 12 h^2 + 13 h each; embedding and head are next to nothing. */
static double elements(void) {
    dts_result *r = run("training.micro_batch=%.0f", 4);
    double count = r->parameters;
    dts_result_free(r);
    return count;
}

/* [2] counts, without overlap, efficiency = ait·bw / (ait·bw + peak): the time of the bytes comes on top of that of the
 * work. Here the parameters (2 bytes) are read for the forward and for the backward with its recomputation, once each.
 */
static void parameters_come_at_the_rate_of_the_drives(void **state) {
    (void)state;
    const char *const format =
        "offload.parameters=nvme offload.optimizer=cpu offload.prefetch=0 stack.fsdp.prefetch=0 "
        "cluster.host.memory_bandwidth=1000000GB/s "
        "cluster.gpu.pcie_bandwidth=1000000GB/s cluster.host.nvme_write=1000000GB/s cluster.host.nvme_read=%fGB/s";
    double free_of_it = time_with(format, 1e6);
    double read_B = 2 * 2 * elements();
    double flops = 8 * elements() * 4 * 1024; /* with the recomputed forward */
    double rate = flops / free_of_it;
    const double rates_GBps[] = {0.5, 2, 8, 32};
    for (int i = 0; i < 4; i++) {
        double time = time_with(format, rates_GBps[i]);
        double ait = flops / read_B;
        double bw = rates_GBps[i] * 1e9;
        double efficiency = ait * bw / (ait * bw + rate);
        print_message("%4.1f GB/s: efficiency %.3f, by the formula %.3f\n", rates_GBps[i], free_of_it / time,
                      efficiency);
        /* a unit is asked for while the one before it computes: the formula is the lower bound, and the larger of both
         * times the upper one */
        assert_true(time <= free_of_it + read_B / bw && time >= fmax(free_of_it, read_B / bw));
        if (i == 0) { /* the drives decide: what is left over is the last unit's work */
            assert_close(time, read_B / bw, 0.05, 0);
        }
        /* reading ahead hides what fits behind the work */
        char ahead[LONGEST_SETTINGS];
        snprintf(ahead, sizeof ahead, "%s offload.prefetch=3 stack.fsdp.prefetch=1", format);
        double overlapped = time_with(ahead, rates_GBps[i]);
        double bound = fmax(free_of_it, read_B / bw);
        assert_true(overlapped >= bound * 0.999 && overlapped < 1.2 * bound);
    }
}

/* The step streams 12 bytes a parameter in and out again, in chunks: with one buffer read, step and write take turns,
 * with several the slowest of them decides. */
static void the_step_streams_its_states(void **state) {
    (void)state;
    const char *const format =
        "offload.optimizer=%s offload.parameters=none cluster.host.nvme_read=1GB/s "
        "cluster.host.nvme_write=2GB/s offload.prefetch=%d";
    char settings[LONGEST_SETTINGS];
    double times[3];
    for (int i = 0; i < 3; i++) {
        snprintf(settings, sizeof settings, format, i == 0 ? "cpu" : "nvme", i == 2 ? 3 : 0);
        dts_result *r = simulate_text(base, settings);
        times[i] = r->iteration_time_s;
        dts_result_free(r);
    }
    double states_B = 12 * elements();
    double read_s = states_B / 1e9;
    double write_s = states_B / 2e9;
    assert_close(times[1] - times[0], read_s + write_s, 0.03, 0);
    assert_close(times[2] - times[0], read_s, 0.05, 0.05 * read_s); /* and the last chunk's step and write */
}

/* What rests on the drives is counted there, with pinned buffers for what is under way in host memory. */
static void capacity_is_checked(void **state) {
    (void)state;
    dts_result *r =
        run("offload.parameters=nvme offload.optimizer=nvme offload.gradients=nvme offload.prefetch=%.0f", 2);
    const double gib = 1024.0 * 1024 * 1024;
    assert_close(r->nvme_peak_gib, elements() * (2 + 2 + 12) / gib, 1e-3, 0);
    assert_true(r->host_peak_gib > 0 && r->host_peak_gib < 0.5 * r->nvme_peak_gib);
    assert_true(r->fits);
    dts_result *small = run("offload.parameters=nvme offload.optimizer=nvme cluster.host.nvme_capacity=%.0fGB", 8);
    assert_false(small->fits);
    assert_non_null(strstr(small->warnings[0], "does not fit on NVMe"));
    dts_result_free(r);
    dts_result_free(small);
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"offload.optimizer=nvme cluster=dgx-1v-32gb cluster.gpus_per_node=1 cluster.nodes=1",
         "use cpu, or set cluster.host.nvme_capacity"},
        {"offload.optimizer=nvme offload.pin_memory=false", "set offload.pin_memory: true"},
        {"offload.optimizer=nvme parallelism.data_parallel=zero2", "use zero3 or fsdp, or offload.optimizer: cpu"},
        {"offload.parameters=nvme", "set offload.optimizer"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_refused(base, rows[i][0], rows[i][1]);
    }
}

/* [1], table 4: seconds of one step. The rate of each stack comes from this table (one number for three sizes each). */
static void steps_on_the_cpu_take_what_is_published(void **state) {
    (void)state;
    static const struct {
        int layers;
        double parameters_e9, deepspeed_s, pytorch_s;
    } rows[] = {{20, 1, 0.22, 1.39}, {80, 4, 1.03, 5.71}, {200, 10, 2.57, 14.76}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int fast = 0; fast < 2; fast++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings,
                     "model.layers=%d offload.optimizer=cpu stack=%s stack.optimizer.gradient_clipping=false "
                     "training.precision=%s parallelism.data_parallel=zero2",
                     rows[i].layers, fast ? "deepspeed" : "pytorch-2", fast ? "fp16" : "fp32");
            dts_result *r = simulate_text(base, settings);
            double step_s = 0;
            for (size_t s = 0; s < r->span_count; s++) {
                if (strcmp(r->spans[s].name, "optimizer_step on the CPU") == 0) {
                    step_s += dts_time_to_s(r->spans[s].end - r->spans[s].start);
                }
            }
            double got = step_s / r->parameters * rows[i].parameters_e9 * 1e9;
            double want = fast ? rows[i].deepspeed_s : rows[i].pytorch_s;
            print_message("%.0fB, %s: %.2f s, published %.2f\n", rows[i].parameters_e9, fast ? "CPU-Adam" : "PyTorch",
                          got, want);
            assert_close(got, want, 0.17, 0);
            dts_result_free(r);
        }
    }
}

/* [2], figures 5 and 6: a DGX-2 trains 100 billion parameters with all states off the GPU at about 40 TFLOP/s per GPU.
 */
static void a_node_trains_a_hundred_billion(void **state) {
    (void)state;
    dts_result *r = simulate_file("scenarios/offload/zero-infinity-dgx-2.yaml", "");
    dts_result *serial = simulate_file("scenarios/offload/zero-infinity-dgx-2.yaml", "offload.prefetch=0");
    print_message("100B on one DGX-2: %.1f TFLOP/s per GPU, %.0f GiB on NVMe; without prefetch %.1f\n",
                  r->model_tflops_per_gpu, r->nvme_peak_gib, serial->model_tflops_per_gpu);
    assert_true(r->fits);
    assert_true(r->model_tflops_per_gpu > 25 && r->model_tflops_per_gpu < 50);
    assert_true(serial->iteration_time_s > 1.4 * r->iteration_time_s);
    dts_result_free(r);
    dts_result_free(serial);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_come_at_the_rate_of_the_drives),
        cmocka_unit_test(the_step_streams_its_states),
        cmocka_unit_test(capacity_is_checked),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(steps_on_the_cpu_take_what_is_published),
        cmocka_unit_test(a_node_trains_a_hundred_billion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
