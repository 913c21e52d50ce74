/* Kernels that memory bounds, forward in fp32, against measured ones: the rate of the GPU's profile for the bytes that
 * a kernel must move, LayerNorm's factor over forward and backward together, and dropout's. */
#include "profiles.h"
#include "table.h"

#include "hardware/hardware.h"

static double row_bytes(const table *row) {
    return table_number(row, 2) * table_number(row, 3) * table_number(row, 4);
}

/* Norms of one size, forward and backward together, against the time of their bytes: the ratios' mean. */
typedef struct norm {
    double measured_s, bytes_s;
} norm;

static void test_measured(void **state) {
    (void)state;
    static const struct {
        const char *gpu;
        int rows;
        double mean, worst, norm; /* norm: how far the profile's factor may be from what was measured */
    } known[] = {
        {"v100-32gb-pcie", 8, 0.06, 0.2, 0.01}, {"a100-80gb-pcie", 9, 0.09, 0.2, 0.12}, {"h100", 9, 0.07, 0.15, 0.01}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        profiles p;
        profiles_open(&p);
        dts_gpu gpu = {0};
        profiles_load(&p, "hardware/gpus", &dts_gpu_schema, known[i].gpu, &gpu);
        errors others = {0};
        norm last = {0};
        double factors = 0, pairs = 0, dropout = 0, dropouts = 0;
        table rows;
        table_open(&rows, "tests/validation/kernels/memory_bound.csv");
        while (table_next(&rows)) {
            if (strcmp(rows.cells[0], known[i].gpu) != 0) {
                continue;
            }
            double measured_s = table_number(&rows, 5) * 1e-6, bytes_s = dts_gpu_memory_s(&gpu, row_bytes(&rows));
            if (strcmp(rows.cells[1], "norm") == 0) {
                last = (norm){measured_s, bytes_s};
            } else if (strcmp(rows.cells[1], "norm-backward") == 0) {
                factors += (last.measured_s + measured_s) / (last.bytes_s + bytes_s);
                pairs++;
            } else if (strcmp(rows.cells[1], "dropout") == 0) {
                errors_add(&others, bytes_s * gpu.dropout_factor, measured_s);
                dropout += measured_s / bytes_s;
                dropouts++;
            } else {
                errors_add(&others, bytes_s, measured_s);
            }
        }
        print_message("%s: norms take %.2f times the time of their bytes, here %.2f\n", known[i].gpu, factors / pairs,
                      gpu.norm_factor);
        errors_print(&others, "  element-wise, softmax, dropout, forward");
        assert_close(gpu.norm_factor, factors / pairs, known[i].norm, 0);
        assert_close(gpu.dropout_factor, dropout / dropouts, 0.01, 0);
        assert_int_equal(others.count, known[i].rows);
        assert_true(errors_mean(&others) < known[i].mean && others.worst < known[i].worst);
        profiles_close(&p);
    }
}

/* Casts of bf16 to fp8 with a scale for each column, written transposed, as torch.compile makes them on an H100: the
 * tensor is read once for the largest values, and again to be cast, which takes torchtitan's stack transpose_factor of
 * the bytes' time (pytorch/ao, pull request 2769, torch_time_us; the kernel of the same with 2.2 TB/s). Nothing was
 * fitted to them. */
static void test_casts_along_columns(void **state) {
    (void)state;
    static const double measured_us[][2] = {{1, 114.976},  {1, 145.44},    {16, 2182.32},
                                            {16, 2081.39}, {128, 21692.4}, {128, 18088.4}};
    profiles p;
    profiles_open(&p);
    dts_gpu gpu = {0};
    dts_stack stack = {0};
    profiles_load(&p, "hardware/gpus", &dts_gpu_schema, "h100-96gb", &gpu);
    profiles_load(&p, "hardware/stacks", &dts_stack_schema, "torchtitan", &stack);
    errors all = {0};
    for (size_t i = 0; i < sizeof measured_us / sizeof *measured_us; i++) {
        const double elements = measured_us[i][0] * 8192 * 5120;
        const double cast_s = dts_gpu_memory_s(&gpu, elements * (2 + 1)) * stack.fp8_transpose_factor;
        errors_add(&all, dts_gpu_memory_s(&gpu, elements * 2) + cast_s, measured_us[i][1] * 1e-6);
    }
    errors_print(&all, "casts along columns, H100");
    assert_true(errors_mean(&all) < 0.13 && all.worst < 0.27);
    profiles_close(&p);
}

/* Casts of bf16 to fp8 with the transposed copy on an MI300X (ROCm/TransformerEngine, pull request 89): four bytes an
 * element. The profile's factor is of these two. */
static void test_transposed_casts(void **state) {
    (void)state;
    static const double measured[][2] = {{2048.0 * 12288, 54.7456e-6}, {256.0 * 65536, 39.4748e-6}};
    profiles p;
    profiles_open(&p);
    dts_gpu gpu = {0};
    profiles_load(&p, "hardware/gpus", &dts_gpu_schema, "mi300x", &gpu);
    for (size_t i = 0; i < 2; i++) {
        assert_close(dts_gpu_memory_s(&gpu, 4 * measured[i][0]) * gpu.transpose_factor, measured[i][1], 0.07, 0);
    }
    profiles_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transposed_casts),
        cmocka_unit_test(test_casts_along_columns),
        cmocka_unit_test(test_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
