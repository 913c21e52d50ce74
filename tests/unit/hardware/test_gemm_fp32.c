/* fp32 products on CUDA cores against measured ones; the one fitted number of each GPU is its vector_efficiency. */
#include "profiles.h"
#include "table.h"

#include "hardware/hardware.h"

static double product_s(const dts_gpu *gpu, int64_t m, int64_t n, int64_t k) {
    const dts_gemm_shape shape = {.batch = 1, .m = m, .n = n, .k = k};
    return dts_gpu_gemm_s(gpu, DTS_FP32, &shape);
}

/* tokens × inputs times inputs × outputs; backward: gradients of the input and of the weight together. Event overhead
 * and the bias gradient are taken off in the table. */
static double row_s(const dts_gpu *gpu, const table *row) {
    int64_t tokens = (int64_t)table_number(row, 2), inputs = (int64_t)table_number(row, 3);
    int64_t outputs = (int64_t)table_number(row, 4);
    if (strcmp(row->cells[1], "forward") == 0) {
        return product_s(gpu, tokens, outputs, inputs);
    }
    return product_s(gpu, tokens, inputs, outputs) + product_s(gpu, inputs, outputs, tokens);
}

static void test_measured(void **state) {
    (void)state;
    static const struct {
        const char *gpu;
        int fitted;
        double mean, worst, held_out; /* bounds a little above what was reached when the numbers were fitted */
    } known[] = {{"v100-32gb-pcie", 15, 0.035, 0.13, 0.07},
                 {"a100-80gb-pcie", 18, 0.025, 0.1, 0.035},
                 {"h100", 18, 0.035, 0.11, 0.095}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        profiles p;
        profiles_open(&p);
        dts_gpu gpu = {0};
        profiles_load(&p, "hardware/gpus", &dts_gpu_schema, known[i].gpu, &gpu);
        errors fitted = {0}, held_out = {0};
        table rows;
        table_open(&rows, "tests/validation/kernels/gemm_fp32.csv");
        while (table_next(&rows)) {
            if (strcmp(rows.cells[0], known[i].gpu) == 0) {
                bool fit = strcmp(rows.cells[6], "fit") == 0;
                errors_add(fit ? &fitted : &held_out, row_s(&gpu, &rows), table_number(&rows, 5) * 1e-6);
            }
        }
        print_message("%s\n", known[i].gpu);
        errors_print(&fitted, "  fp32 products");
        errors_print(&held_out, "  smaller ones, held out");
        assert_int_equal(fitted.count, known[i].fitted);
        assert_int_equal(held_out.count, 6);
        assert_true(errors_mean(&fitted) < known[i].mean && fitted.worst < known[i].worst);
        assert_true(errors_mean(&held_out) < known[i].held_out);
        profiles_close(&p);
    }
}

/* Slices of K fill the last wave: 256 tiles on 80 multiprocessors would be 3.2 of 4 waves, eight slices 25.6 of 26. */
static void test_long_products_are_sliced(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    dts_gpu gpu = {0};
    profiles_load(&p, "hardware/gpus", &dts_gpu_schema, "v100-32gb-pcie", &gpu);
    const double peak = gpu.peak_flops[DTS_FP32], flop = 2.0 * 4096 * 1024;
    double short_rate = flop * 512 / product_s(&gpu, 4096, 1024, 512) / peak;
    double long_rate = flop * 4096 / product_s(&gpu, 4096, 1024, 4096) / peak;
    assert_true(short_rate < 0.9 && long_rate > 0.9);
    profiles_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_long_products_are_sliced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
