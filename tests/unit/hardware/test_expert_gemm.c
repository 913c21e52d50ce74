/* Products of experts: how the three styles compare, and measured efficiencies. */
#include "profiles.h"
#include "table.h"

#include "hardware/hardware.h"

static double expert_s(const dts_gpu *gpu, int64_t experts, int64_t m, dts_expert_style style) {
    const dts_gemm_shape shape = {.batch = experts, .m = m, .n = 3072, .k = 5120};
    return dts_gpu_expert_gemm_s(gpu, DTS_BF16, &shape, style, 0);
}

/* More at once never costs more; one expert is one product; experts follow each other. */
static void test_styles(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    dts_gpu gpu = {0};
    profiles_load(&p, "hardware/gpus", &dts_gpu_schema, "h100", &gpu);
    const dts_gemm_shape one = {.batch = 1, .m = 200, .n = 3072, .k = 5120};
    const double weights_s = 2.0 * 3072 * 5120 / (gpu.memory_bandwidth_Bps * gpu.memory_efficiency);
    const double alone_s = dts_gpu_gemm_s(&gpu, DTS_BF16, &one) + weights_s;
    for (int64_t experts = 1; experts <= 64; experts *= 2) {
        const double sequential_s = expert_s(&gpu, experts, 200, DTS_EXPERTS_SEQUENTIAL);
        const double streams_s = expert_s(&gpu, experts, 200, DTS_EXPERTS_STREAMS);
        const double grouped_s = expert_s(&gpu, experts, 200, DTS_EXPERTS_GROUPED);
        assert_close(sequential_s, (double)experts * alone_s, 1e-12, 0);
        assert_true(streams_s <= sequential_s * (1 + 1e-12) && grouped_s <= streams_s * (1 + 1e-12));
        assert_true(experts == 1 || grouped_s < sequential_s);
    }
    assert_close(expert_s(&gpu, 6, 200, DTS_EXPERTS_STREAMS),
                 expert_s(&gpu, 4, 200, DTS_EXPERTS_GROUPED) + expert_s(&gpu, 2, 200, DTS_EXPERTS_GROUPED), 1e-12, 0);
    profiles_close(&p);
}

/* Adding to the stored gradient reads and writes four bytes instead of writing two. */
static void test_accumulation(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    dts_gpu gpu = {0};
    profiles_load(&p, "hardware/gpus", &dts_gpu_schema, "h100", &gpu);
    const dts_gemm_shape shape = {.batch = 16, .m = 5120, .n = 3072, .k = 128, .weight_gradient = true};
    const double plain_s = dts_gpu_expert_gemm_s(&gpu, DTS_BF16, &shape, DTS_EXPERTS_GROUPED, 0);
    const double added_s = dts_gpu_expert_gemm_s(&gpu, DTS_BF16, &shape, DTS_EXPERTS_GROUPED, 4);
    assert_close(added_s - plain_s,
                 (2 * 4 - 2) * 16 * 5120.0 * 3072 / (gpu.memory_bandwidth_Bps * gpu.memory_efficiency), 1e-9, 0);
    profiles_close(&p);
}

/* Transformer Engine's grouped products on a B200: 4 to 256 experts, 128 to 8192 rows each. */
static void test_measured(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    dts_gpu gpu = {0};
    profiles_load(&p, "hardware/gpus", &dts_gpu_schema, "b200", &gpu);
    errors all = {0}, weight = {0};
    table rows;
    table_open(&rows, "tests/validation/kernels/grouped_gemm.csv");
    while (table_next(&rows)) {
        const bool gradient = strcmp(rows.cells[1], "weight") == 0, input = strcmp(rows.cells[1], "input") == 0;
        const int64_t m = (int64_t)table_number(&rows, 3), n = (int64_t)table_number(&rows, 4);
        const int64_t k = (int64_t)table_number(&rows, 5);
        const dts_gemm_shape shape = {.batch = (int64_t)table_number(&rows, 2),
                                      .m = gradient ? k : m,
                                      .n = input ? k : n,
                                      .k = gradient ? m
                                           : input  ? n
                                                    : k,
                                      .weight_gradient = gradient};
        const double flop = 2 * (double)shape.batch * (double)m * (double)n * (double)k;
        /* a library call took that host 9 us: the smallest products wait for it */
        const double kernels_s =
            dts_gpu_expert_gemm_s(&gpu, DTS_BF16, &shape, DTS_EXPERTS_STREAMS, table_number(&rows, 6));
        const double time_s = fmax(kernels_s, 9e-6 * (double)shape.batch);
        const double efficiency = flop / time_s / gpu.peak_flops[DTS_BF16], measured = table_number(&rows, 7);
        if (getenv("DTSIM_SHOW") != NULL) {
            print_message("%-8s %4lld x %5lld %5lld %5lld  sum %.0f  measured %.3f  here %.3f  %+.0f %%\n",
                          rows.cells[1], (long long)shape.batch, (long long)m, (long long)n, (long long)k,
                          table_number(&rows, 6), measured, efficiency, 100 * (efficiency / measured - 1));
        }
        errors_add(&all, efficiency, measured);
        errors_add(gradient ? &weight : &(errors){0}, efficiency, measured);
    }
    errors_print(&all, "B200 grouped products");
    errors_print(&weight, "  weight gradients");
    assert_int_equal(all.count, 76);
    assert_true(errors_mean(&all) < 0.13);
    assert_true(errors_mean(&weight) < 0.14);
    profiles_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_styles),
        cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
