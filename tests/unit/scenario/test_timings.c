/* Measured times of kernels and collectives (gpu.measured, cluster.measured): what is taken, and what is refused. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "network/network.h"
#include "scenario/scenario.h"

typedef struct fixture {
    char folder[40], path[64];
    dts_scenario *scenario;
    dts_diag *diag;
    dts_status status;
} fixture;

static const char header[] = "kind,variant,dtype,a,b,c,d,seconds\n";

/* A job on 2 nodes of 8 A100 whose times are in a file of these rows; machine: further keys of the command line. */
static void load(fixture *f, const char *rows, const dts_override *machine) {
    static const char text[] =
        "model: gpt2\ncluster: {profile: dgx-a100-40gb, nodes: 2}\nstack: pytorch-2\n"
        "training: {sequence_length: 1024, micro_batch: 1, global_batch: 16, precision: amp-bf16, optimizer: adamw}\n";
    const char *roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    strcpy(f->folder, "/tmp/dtsim-timings-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof f->path, "%s/times.csv", f->folder);
    FILE *file = fopen(f->path, "wb");
    assert_non_null(file);
    assert_true(fputs(rows, file) >= 0);
    assert_int_equal(fclose(file), 0);
    const dts_override overrides[] = {{.key = "cluster.gpu.measured", .value = f->path},
                                      {.key = "cluster.measured", .value = f->path},
                                      machine != NULL ? *machine : (dts_override){0}};
    f->diag = dts_diag_new();
    f->status = dts_scenario_parse(text, strlen(text), "test", overrides, machine != NULL ? 3 : 2, &profiles,
                                   &f->scenario, f->diag);
}

static void done(fixture *f) {
    unlink(f->path);
    rmdir(f->folder);
    dts_scenario_free(f->scenario);
    dts_diag_free(f->diag);
}

static const dts_cluster *cluster_of(const fixture *f) {
    assert_int_equal(f->status, DTS_OK);
    return &dts_scenario_get(f->scenario)->cluster;
}

static const char kernels[] =
    "kind,variant,dtype,a,b,c,d,seconds\n"
    "device,name:X,,,,,,0\n"
    "gemm,small,fp16,1,64,64,64,1\n"
    "gemm,forward,bf16,1,2048,1024,4096,0.001\n"
    "gemm,input,bf16,1,2048,1024,4096,0.004\n"
    "gemm,weight,bf16,1,1024,2048,4096,0.003\n"
    "attention-math,forward,bf16,4,16,2048,64,9\n"
    "attention-flash-causal,backward,bf16,4,16,2048,64,0.005\n"
    "collective,all-reduce,fp16,1048576,8,,,0.0001\n"
    "collective,all-reduce,fp16,67108864,8,1,,0.002\n";

/* These very shapes take what was measured, the mean of two readings; any other takes what it took. */
static void shapes_take_their_times(void **state) {
    (void)state;
    fixture f = {0};
    load(&f, kernels, NULL);
    const dts_gpu *gpu = &cluster_of(&f)->gpu;
    dts_gemm_shape shape = {.batch = 1, .m = 2048, .n = 4096, .k = 1024};
    assert_close(dts_gpu_gemm_s(gpu, DTS_BF16, &shape), 0.002, 1e-12, 0);
    dts_gpu closed = *gpu;
    closed.timings = NULL;
    shape.factor = 2; /* of fp8's scales and the like: on top */
    assert_close(
        dts_gpu_gemm_s(gpu, DTS_BF16, &shape) / dts_gpu_gemm_s(&closed, DTS_BF16, &shape),
        0.002 / dts_gpu_gemm_s(&closed, DTS_BF16, &(dts_gemm_shape){.batch = 1, .m = 2048, .n = 4096, .k = 1024}),
        1e-12, 0);
    shape.factor = 0;
    assert_close(dts_gpu_gemm_s(gpu, DTS_FP16, &shape), dts_gpu_gemm_s(&closed, DTS_FP16, &shape), 0, 0);
    shape.m = 2049;
    assert_close(dts_gpu_gemm_s(gpu, DTS_BF16, &shape), dts_gpu_gemm_s(&closed, DTS_BF16, &shape), 0, 0);
    shape = (dts_gemm_shape){.batch = 1, .m = 1024, .n = 4096, .k = 2048, .weight_gradient = true};
    assert_close(dts_gpu_gemm_s(gpu, DTS_BF16, &shape), 0.003, 1e-12, 0);

    dts_attention_shape attention = {.batch = 4,
                                     .heads = 16,
                                     .kv_heads = 4, /* shared keys and values are as good as heads of their own */
                                     .head_dim = 64,
                                     .query_length = 2048,
                                     .key_length = 2048,
                                     .causal = true,
                                     .backward = true};
    const double measured_s = dts_gpu_attention_s(gpu, DTS_BF16, &attention);
    assert_close(measured_s, 0.005, 0.01, 0);
    attention.speed = 2; /* of other kernels; this one was measured as it is */
    assert_close(dts_gpu_attention_s(gpu, DTS_BF16, &attention), measured_s, 0, 0);
    attention.other = true;
    assert_close(dts_gpu_attention_s(gpu, DTS_BF16, &attention), dts_gpu_attention_s(&closed, DTS_BF16, &attention), 0,
                 0);
    attention.other = false;
    attention.speed = 0;
    attention.causal = false;
    assert_close(dts_gpu_attention_s(gpu, DTS_BF16, &attention), dts_gpu_attention_s(&closed, DTS_BF16, &attention), 0,
                 0);
    done(&f);
}

/* A time that is what the closed form says is a measured one all the same. */
static void equal_times_are_taken_too(void **state) {
    (void)state;
    fixture f = {0}, same = {0};
    load(&f, kernels, NULL);
    dts_gpu closed = cluster_of(&f)->gpu;
    closed.timings = NULL;
    bool timed = false;
    const dts_gemm_shape shape = {.batch = 1, .m = 2048, .n = 4096, .k = 1024, .timed = &timed};
    dts_cluster plain = *cluster_of(&f);
    plain.timings = NULL;
    dts_transfer alone;
    dts_collective_transfer(&plain, DTS_ALL_REDUCE, (dts_placement){8, 1}, 1024, &alone);
    char rows[256];
    snprintf(rows, sizeof rows,
             "%sgemm,forward,bf16,1,2048,1024,4096,%.17g\ncollective,all-reduce,fp16,1024,8,1,,%.17g\n", header,
             dts_gpu_gemm_s(&closed, DTS_BF16, &shape), alone.alone_s);
    assert_false(timed);
    load(&same, rows, NULL);
    assert_close(dts_gpu_gemm_s(&cluster_of(&same)->gpu, DTS_BF16, &shape), dts_gpu_gemm_s(&closed, DTS_BF16, &shape),
                 1e-12, 0);
    assert_true(timed);
    timed = false;
    dts_gpu_gemm_s(&cluster_of(&same)->gpu, DTS_FP16, &shape);
    assert_false(timed);
    dts_transfer transfer;
    dts_collective_transfer(cluster_of(&same), DTS_ALL_REDUCE, (dts_placement){8, 1}, 1024, &transfer);
    assert_true(transfer.timed);
    dts_collective_transfer(cluster_of(&same), DTS_ALL_REDUCE, (dts_placement){4, 1}, 1024, &transfer);
    assert_false(transfer.timed);
    done(&same);
    done(&f);
}

static double all_reduce_s(const dts_cluster *cluster, int64_t ranks, double bytes) {
    dts_transfer transfer;
    dts_collective_transfer(cluster, DTS_ALL_REDUCE, (dts_placement){ranks, 1}, bytes, &transfer);
    return transfer.alone_s;
}

/* Groups of as many ranks take the curve, between its points and beyond; others do not. */
static void groups_take_their_curve(void **state) {
    (void)state;
    fixture f = {0};
    load(&f, kernels, NULL);
    const dts_cluster *cluster = cluster_of(&f);
    dts_cluster closed = *cluster;
    closed.timings = NULL;
    assert_close(all_reduce_s(cluster, 8, 1048576), 0.0001, 1e-12, 0);
    assert_close(all_reduce_s(cluster, 8, 67108864), 0.002, 1e-12, 0);
    const double low = 0.0001 / all_reduce_s(&closed, 8, 1048576), high = 0.002 / all_reduce_s(&closed, 8, 67108864);
    assert_close(all_reduce_s(cluster, 8, 8388608) / all_reduce_s(&closed, 8, 8388608), sqrt(low * high), 1e-9, 0);
    assert_close(all_reduce_s(cluster, 8, 1e9) / all_reduce_s(&closed, 8, 1e9), high, 1e-12, 0);
    assert_close(all_reduce_s(cluster, 8, 4096) / all_reduce_s(&closed, 8, 4096), low, 1e-12, 0);
    assert_close(all_reduce_s(cluster, 4, 1048576), all_reduce_s(&closed, 4, 1048576), 0, 0);
    dts_transfer gather, other;
    dts_collective_transfer(cluster, DTS_ALL_GATHER, (dts_placement){8, 1}, 1e6, &gather);
    dts_collective_transfer(&closed, DTS_ALL_GATHER, (dts_placement){8, 1}, 1e6, &other);
    assert_close(gather.alone_s, other.alone_s, 0, 0);
    assert_false(gather.timed);
    done(&f);
}

/* Faster hardware than the one that was measured: times follow as the closed forms do. */
static void what_ifs_scale_what_was_measured(void **state) {
    (void)state;
    fixture f = {0}, faster = {0};
    load(&f, kernels, NULL);
    const dts_override twice = {.key = "cluster.gpu.peak.bf16", .value = "624 TFLOP/s"};
    load(&faster, kernels, &twice);
    const dts_gemm_shape shape = {.batch = 1, .m = 2048, .n = 4096, .k = 1024};
    dts_gpu closed = cluster_of(&f)->gpu, closed_faster = cluster_of(&faster)->gpu;
    closed.timings = closed_faster.timings = NULL;
    const double gain = dts_gpu_gemm_s(&closed, DTS_BF16, &shape) / dts_gpu_gemm_s(&closed_faster, DTS_BF16, &shape);
    assert_true(gain > 1.1);
    assert_close(dts_gpu_gemm_s(&cluster_of(&faster)->gpu, DTS_BF16, &shape), 0.002 / gain, 1e-9, 0);
    assert_close(all_reduce_s(cluster_of(&faster), 8, 1048576), 0.0001, 1e-12, 0);
    done(&f);
    done(&faster);
}

/* However the other machine is written, and not where a closed form's constant is tried, as calibrate does. */
static void only_machines_scale(void **state) {
    (void)state;
    static const char rows[] =
        "kind,variant,dtype,a,b,c,d,seconds\n"
        "gemm,forward,bf16,1,2048,1024,4096,0.002\n"
        "collective,all-reduce,fp16,1e8,16,2,,0.01\n";
    static const struct {
        dts_override override;
        bool scales;
    } cases[] = {
        {{.key = "cluster.inter.node_goodput", .value = "50 GB/s"}, true},
        {{.key = "cluster.inter", .value = "{node_goodput: 50 GB/s}"}, true},
        {{.key = "cluster.inter.tree_efficiency", .value = "0.5"}, false},
        {{.key = "cluster.gpu.peak.bf16", .value = "624 TFLOP/s"}, true},
        {{.key = "cluster.gpu", .value = "{peak: {bf16: 624 TFLOP/s}}"}, true},
        {{.key = "cluster.gpu.gemm.max_efficiency", .value = "0.3"}, false},
        {{.key = "cluster.gpu.gemm.floor", .value = "1 ms"}, false},
        {{.key = "cluster.gpu.peak.bf16", .value = "624 TFLOP/s", .place = {.file = "--fit"}},
         true}, /* a name of a file */
        {{.key = "cluster.gpu.peak.bf16", .value = "624 TFLOP/s", .place = {.origin = DTS_ORIGIN_FIT}}, false},
    };
    const dts_gemm_shape shape = {.batch = 1, .m = 2048, .n = 4096, .k = 1024};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = {0};
        load(&f, rows, &cases[i].override);
        dts_transfer transfer;
        dts_collective_transfer(cluster_of(&f), DTS_ALL_REDUCE, (dts_placement){16, 2}, 1e8, &transfer);
        const double moved = fabs(transfer.alone_s / 0.01 - 1) +
                             fabs(dts_gpu_gemm_s(&cluster_of(&f)->gpu, DTS_BF16, &shape) / 0.002 - 1);
        if ((moved > 1e-9) != cases[i].scales) {
            fail_msg("%s=%s moves measured times by %g", cases[i].override.key, cases[i].override.value, moved);
        }
        done(&f);
    }
}

/* Exchanges of experts as nccl-tests makes them; not those that hand rows on, which it does not. */
static void experts_take_their_exchange(void **state) {
    (void)state;
    fixture f = {0};
    load(&f,
         "kind,variant,dtype,a,b,c,d,seconds\ncollective,all-to-all,bf16,1e8,16,2,,0.05\n"
         "gemm,forward,bf16,1,2048,1024,4096,0.001\n",
         NULL);
    dts_transfer transfer;
    dts_token_transfer(cluster_of(&f), (dts_placement){16, 2}, 1e8, 1, 0, &transfer);
    assert_close(transfer.alone_s, 0.05, 1e-12, 0);
    dts_token_transfer(cluster_of(&f), (dts_placement){16, 2}, 1e8, 0.5, 0, &transfer);
    assert_true(transfer.alone_s < 0.02);
    done(&f);
}

/* The file and a message for each way to get it wrong. */
static void wrong_rows_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *row, *message;
    } cases[] = {
        {"gem,forward,bf16,1,2,3,4,0.1", "'gem' is no kind of measurement"},
        {"gemm,sideways,bf16,1,2,3,4,0.1", "'sideways' is no variant of this kind"},
        {"gemm,forward,half,1,2,3,4,0.1", "'half' is no number format of products"},
        {"gemm,forward,bf16,1,0,3,4,0.1", "'0' is no size"},
        {"gemm,forward,bf16,1,2.5,3,4,0.1", "'2.5' is no size"},
        {"gemm,forward,bf16,1,2,3,1e300,0.1", "'1e300' is no size"},
        {"gemm,forward,bf16,1,2,3,,0.1", "'' is no size"},
        {"gemm,forward,bf16,1,2,3,4,-1", "'-1' is no time"},
        {"gemm,forward,bf16,1,2,3,4,nan", "'nan' is no time"},
        {"gemm,forward,bf16,1,2,3,4,1e-320", "'1e-320' is no time"},
        {"gemm,forward,bf16,1,2,3,4,12 us", "'12 us' is no time"},
        {"collective,all-gossip,fp16,1,2,1,,0.1", "'all-gossip' is no variant of this kind"},
        {"collective,all-reduce,fp16,1024,8,3,,0.1", "'3' nodes do not divide the ranks"},
        {"device,name:X,,,,,,0", "no times of products or attention in this file [cluster.gpu.measured]"},
        {"device,name:X,,,,,,0", "no times of collectives in this file [cluster.measured]"},
        {"collective,all-reduce,fp16,1024,8,1,,0.1", "no times of products or attention in this file"},
        {"gemm,forward,bf16,1,2,3,4,0.1", "no times of collectives in this file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = {0};
        char rows[256];
        snprintf(rows, sizeof rows, "%s%s\n", header, cases[i].row);
        load(&f, rows, NULL);
        dts_text text = {0};
        dts_diag_render(f.diag, false, &text);
        assert_int_equal(f.status, DTS_INVALID);
        if (strstr(dts_text_string(&text), cases[i].message) == NULL) {
            fail_msg("%s: %s", cases[i].row, dts_text_string(&text));
        }
        dts_text_free(&text);
        done(&f);
    }
    fixture f = {0};
    load(&f, "kind,variant,a\ngemm,forward,1\n", NULL);
    assert_int_equal(f.status, DTS_INVALID);
    done(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_take_their_times),          cmocka_unit_test(groups_take_their_curve),
        cmocka_unit_test(what_ifs_scale_what_was_measured), cmocka_unit_test(only_machines_scale),
        cmocka_unit_test(experts_take_their_exchange),      cmocka_unit_test(wrong_rows_are_refused),
        cmocka_unit_test(equal_times_are_taken_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
