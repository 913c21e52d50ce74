/* Fused attention: bounds and published measurements. */
#include "profiles.h"
#include "table.h"

#include "hardware/hardware.h"

static double flop_of(const dts_attention_shape *shape) {
    double pairs = (double)shape->query_length * (double)shape->key_length * (shape->causal ? 0.5 : 1);
    double forward = 4 * (double)shape->batch * (double)shape->heads * (double)shape->head_dim * pairs;
    return shape->backward ? 2.5 * forward : forward;
}

static void test_bounds(void **state) {
    (void)state;
    static const char *const gpus[] = {"a100-40gb", "v100-16gb", "h100"};
    for (size_t g = 0; g < 3; g++) {
        profiles p;
        profiles_open(&p);
        dts_gpu gpu = {0};
        profiles_load(&p, "hardware/gpus", &dts_gpu_schema, gpus[g], &gpu);
        for (int64_t length = 16; length <= 65536; length *= 2) {
            for (int64_t head_dim = 32; head_dim <= 512; head_dim *= 2) {
                for (int mode = 0; mode < 4; mode++) {
                    const dts_attention_shape shape = {.batch = 1,
                                                       .heads = 16,
                                                       .kv_heads = 16,
                                                       .head_dim = head_dim,
                                                       .query_length = length,
                                                       .key_length = length,
                                                       .causal = mode % 2 == 1,
                                                       .backward = mode / 2 == 1};
                    double time_s = dts_gpu_attention_s(&gpu, DTS_FP16, &shape);
                    assert_true(time_s * gpu.peak_flops[DTS_FP16] >= flop_of(&shape));
                    dts_attention_shape longer = shape;
                    longer.query_length = longer.key_length = 2 * length;
                    assert_true(dts_gpu_attention_s(&gpu, DTS_FP16, &longer) >= time_s);
                }
            }
        }
        const dts_attention_shape shape = {
            .batch = 1, .heads = 16, .kv_heads = 16, .head_dim = 64, .query_length = 128, .key_length = 128};
        assert_close(dts_gpu_attention_s(&gpu, DTS_NVFP4, &shape), 0, 0, 0);
        profiles_close(&p);
    }
}

/* Composable kernels on an MI300X, whose two constants are these rows' means, and AITER's assembly there and on an
 * MI355X: short sequences are as far off as the shape constants, which are the A100's, are from that GPU. */
static void test_measured_on_amd(void **state) {
    (void)state;
    static const char *const names[] = {"MI300X, composable kernels, forward",
                                        "MI300X, composable kernels, backward",
                                        "MI300X, AITER, forward",
                                        "MI300X, AITER, backward",
                                        "MI355X, AITER, forward",
                                        "MI355X, AITER, backward"};
    static const int counts[] = {4, 4, 28, 28, 28, 28};
    static const double means[] = {0.065, 0.025, 0.07, 0.06, 0.15, 0.13};
    profiles p;
    profiles_open(&p);
    errors of[6] = {{.count = 0}};
    table rows;
    table_open(&rows, "tests/validation/kernels/flash_attention.csv");
    while (table_next(&rows)) {
        const bool newer = strcmp(rows.cells[0], "mi355x") == 0, backward = strstr(rows.cells[1], "bwd") != NULL;
        if (!newer && strcmp(rows.cells[0], "mi300x") != 0) {
            continue;
        }
        dts_gpu gpu = {0};
        profiles_load(&p, "hardware/gpus", &dts_gpu_schema, rows.cells[0], &gpu);
        const bool own = strncmp(rows.cells[1], "vendor-", strlen("vendor-")) == 0;
        const double speed = backward ? gpu.flash.aiter_backward : gpu.flash.aiter;
        const int64_t length = (int64_t)table_number(&rows, 7);
        const dts_attention_shape shape = {.head_dim = (int64_t)table_number(&rows, 2),
                                           .heads = (int64_t)table_number(&rows, 3),
                                           .kv_heads = (int64_t)table_number(&rows, 4),
                                           .causal = table_number(&rows, 5) > 0,
                                           .batch = (int64_t)table_number(&rows, 6),
                                           .query_length = length,
                                           .key_length = length,
                                           .speed = own ? speed : 1,
                                           .backward = backward};
        const double time_s = dts_gpu_attention_s(&gpu, DTS_BF16, &shape);
        errors_add(&of[(newer ? 4 : own ? 2 : 0) + backward], flop_of(&shape) / time_s * 1e-12, table_number(&rows, 8));
    }
    for (int i = 0; i < 6; i++) {
        errors_print(&of[i], names[i]);
        assert_int_equal(of[i].count, counts[i]);
        assert_true(errors_mean(&of[i]) < means[i]);
    }
    profiles_close(&p);
}

static void test_measured(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    errors a100 = {0}, pcie = {0}, h100_both = {0}, h100_forward = {0}, b200[2] = {{.count = 0}};
    errors wide[2] = {{.count = 0}};
    table rows;
    table_open(&rows, "tests/validation/kernels/flash_attention.csv");
    while (table_next(&rows)) {
        if (strncmp(rows.cells[0], "mi3", 3) == 0) {
            continue;
        }
        dts_gpu gpu = {0};
        profiles_load(&p, "hardware/gpus", &dts_gpu_schema, rows.cells[0], &gpu);
        dts_attention_shape shape = {.head_dim = (int64_t)table_number(&rows, 2),
                                     .heads = (int64_t)table_number(&rows, 3),
                                     .kv_heads = (int64_t)table_number(&rows, 4),
                                     .causal = table_number(&rows, 5) > 0,
                                     .batch = (int64_t)table_number(&rows, 6)};
        shape.query_length = shape.key_length = (int64_t)table_number(&rows, 7);
        double time_s = 0, flop = 0;
        for (int backward = 0; backward < 2; backward++) {
            shape.backward = backward == 1;
            if (strcmp(rows.cells[1], shape.backward ? "fwd" : "bwd") != 0) {
                time_s += dts_gpu_attention_s(&gpu, DTS_BF16, &shape);
                flop += flop_of(&shape);
            }
        }
        bool both = strcmp(rows.cells[1], "fwd+bwd") == 0;
        errors *to = strcmp(rows.cells[0], "h100") == 0 ? (both ? &h100_both : &h100_forward) : both ? &a100 : &pcie;
        if (strcmp(rows.cells[0], "b200") == 0) {
            to = &b200[strcmp(rows.cells[1], "bwd") == 0];
        }
        if (shape.head_dim > 128) {
            to = &wide[strcmp(rows.cells[1], "bwd") == 0];
        }
        errors_add(to, flop / time_s * 1e-12, table_number(&rows, 8));
    }
    errors_print(&a100, "A100 FlashAttention-2, forward + backward");
    errors_print(&pcie, "A100 PCIe by number of heads, causal");
    errors_print(&h100_both, "H100 FlashAttention-2, forward + backward");
    errors_print(&h100_forward, "H100 FlashAttention-2, forward");
    errors_print(&b200[0], "B200 by heads and length, forward");
    errors_print(&b200[1], "B200 by heads and length, backward");
    errors_print(&wide[0], "A100 PCIe and B200, keys 192 wide, forward");
    errors_print(&wide[1], "A100 PCIe and B200, keys 192 wide, backward");
    assert_int_equal(wide[0].count + wide[1].count, 28);
    assert_true(errors_mean(&wide[0]) < 0.15 && errors_mean(&wide[1]) < 0.05);
    assert_int_equal(b200[0].count + b200[1].count, 44);
    assert_true(errors_mean(&b200[0]) < 0.2 && errors_mean(&b200[1]) < 0.1);
    assert_int_equal(a100.count, 24);
    assert_true(errors_mean(&a100) < 0.015 && a100.worst < 0.03);
    assert_true(errors_mean(&pcie) < 0.12);
    assert_true(errors_mean(&h100_both) < 0.08 && h100_both.worst < 0.2);
    assert_true(errors_mean(&h100_forward) < 0.1);
    profiles_close(&p);
}

/* Attention kernel by kernel, as PyTorch runs it, against rates that no constant was fitted on. (batch, heads, length,
 * length) fp16 scores: forward writes, softmax and dropout each read and write them, the second product reads them;
 * backward does the same the other way, with two products for each one and the saved probabilities and mask. The
 * benchmark's query, key, value and output, (batch, length, heads, head dimension), are copied into and out of the
 * layout of the products, as are their gradients, and those of the first three are joined. */
static void test_unfused(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    errors all = {0};
    table rows;
    table_open(&rows, "tests/validation/kernels/unfused_attention.csv");
    while (table_next(&rows)) {
        dts_gpu gpu = {0};
        profiles_load(&p, "hardware/gpus", &dts_gpu_schema, rows.cells[0], &gpu);
        int64_t head_dim = (int64_t)table_number(&rows, 1), length = (int64_t)table_number(&rows, 4);
        int64_t batch = (int64_t)table_number(&rows, 2) * (int64_t)table_number(&rows, 3);
        const dts_gemm_shape scores = {.batch = batch, .m = length, .n = length, .k = head_dim};
        const dts_gemm_shape context = {.batch = batch, .m = length, .n = head_dim, .k = length};
        double elements = (double)batch * (double)length * (double)length;
        double softmax_s = dts_gpu_memory_s(&gpu, 4 * elements) + dts_gpu_memory_s(&gpu, 6 * elements);
        double dropout_s = 2 * dts_gpu_memory_s(&gpu, 5 * elements); /* with a mask of one byte */
        double tensor_B = 2 * (double)(batch * length * head_dim);
        double copies_s = 11 * dts_gpu_memory_s(&gpu, 2 * tensor_B);
        double time_s = 2 * dts_gpu_gemm_s(&gpu, DTS_FP16, &scores) + 4 * dts_gpu_gemm_s(&gpu, DTS_FP16, &context) +
                        softmax_s + dropout_s + copies_s;
        double flop = 3.5 * 4 * elements * (double)head_dim;
        errors_add(&all, flop / time_s * 1e-12, table_number(&rows, 5));
        print_message("head dimension %3d, %5d tokens: %3.0f TFLOP/s, measured %s\n", (int)head_dim, (int)length,
                      flop / time_s * 1e-12, rows.cells[5]);
    }
    errors_print(&all, "A100 attention kernel by kernel");
    assert_int_equal(all.count, 10);
    assert_true(errors_mean(&all) < 0.07 && all.worst < 0.2);
    profiles_close(&p);
}

/* One multiprocessor at its full rate, with nothing but products: the time says how many pairs were computed. */
static double pairs_of(const dts_attention_shape *shape) {
    static const double peak = 1e12;
    dts_gpu gpu = {.multiprocessors = 1,
                   .flash_efficiency_forward = 1,
                   .flash_efficiency_backward = 1,
                   .memory_bandwidth_Bps = 1e18,
                   .memory_efficiency = 1,
                   .flash = {.tile = 128}};
    gpu.peak_flops[DTS_FP16] = peak;
    return dts_gpu_attention_s(&gpu, DTS_FP16, shape) * peak / 4 / (double)shape->head_dim;
}

static dts_attention_shape long_shape(int64_t length, bool causal, int64_t window) {
    return (dts_attention_shape){.batch = 1,
                                 .heads = 64,
                                 .kv_heads = 64,
                                 .head_dim = 128,
                                 .query_length = length,
                                 .key_length = length,
                                 .causal = causal,
                                 .window = window};
}

enum { TILE = 128, KEYS = 64, S = 16384 };

/* Blocks of 128 queries of one head under a causal window, counted one by one, as FlashAttention-2's loop bounds say.
 */
static double causal_pairs(int64_t w) {
    double pairs = 0;
    for (int64_t row = 0; row < S; row += TILE) {
        const int64_t last = row + TILE, first = row - (w - 1);
        pairs += (double)TILE * (double)(last - (first > 0 ? (first / KEYS) * KEYS : 0));
    }
    return pairs;
}

/* The last wave adds at most one block. */
static void windows_compute_the_blocks_that_they_touch(void **state) {
    (void)state;
    for (int64_t w = 64; w < S; w = w * 3 / 2) {
        double both = 0;
        for (int64_t row = 0; row < S; row += TILE) {
            const int64_t left = row - w / 2, right = row + TILE + w / 2;
            const int64_t to = (right + KEYS - 1) / KEYS * KEYS;
            both += (double)TILE * (double)((to < S ? to : S) - (left > 0 ? left / KEYS * KEYS : 0));
        }
        dts_attention_shape shape = long_shape(S, true, w);
        assert_close(pairs_of(&shape), 64 * causal_pairs(w), 0.012, 0);
        shape.causal = false;
        assert_close(pairs_of(&shape), 64 * both, 0.012, 0);
    }
    /* a row sees itself and w - 1 positions before it: here those fill blocks of keys */
    for (int64_t w = 1; w < 1000; w += KEYS) {
        const dts_attention_shape shape = long_shape(S, true, w);
        assert_close(pairs_of(&shape), 64 * causal_pairs(w), 0.012, 0);
    }
    /* the closed form, for a window that is long beside the tiles: s·w - w²/2 */
    const dts_attention_shape shape = long_shape(S, true, 4096);
    assert_close(pairs_of(&shape), 64 * (16384.0 * 4096 - 4096.0 * 4096 / 2), 0.04, 0);
    /* chunks: s·w/2 */
    dts_attention_shape chunks = long_shape(S, true, 4096);
    chunks.chunked = true;
    assert_close(pairs_of(&chunks), 64 * 16384.0 * 4096 / 2, 0.04, 0);
    /* where they do not divide the sequence the last is as short as it is: blocks counted one by one */
    for (int64_t w = 1280; w < S; w = w * 5 / 4 / TILE * TILE) {
        double pairs = 0;
        for (int64_t row = 0; row < S; row += TILE) {
            const int64_t last = row + TILE < S ? row + TILE : S;
            pairs += (double)TILE * (double)(last - row / w * w);
        }
        chunks.window = w;
        assert_close(pairs_of(&chunks), 64 * pairs, 0.002, 0);
    }
}

/* One query of few heads over many keys takes as long as its bytes: query, key, value and output once each, and in
 * backward their gradients as well. */
static void few_queries_take_as_long_as_their_bytes(void **state) {
    (void)state;
    dts_gpu gpu = {.multiprocessors = 1,
                   .flash_efficiency_forward = 1,
                   .flash_efficiency_backward = 1,
                   .memory_bandwidth_Bps = 1e12,
                   .memory_efficiency = 1,
                   .flash = {.tile = 128}};
    gpu.peak_flops[DTS_FP16] = 1e18;
    dts_attention_shape shape = {
        .batch = 3, .heads = 8, .kv_heads = 2, .head_dim = 128, .query_length = 1, .key_length = 100000};
    const double bytes = 3 * 128 * 2 * (2 * 8.0 + 2 * 2 * 100000.0); /* samples, head dimension, bytes of an element */
    assert_close(dts_gpu_attention_s(&gpu, DTS_FP16, &shape), bytes / 1e12, 1e-9, 0);
    shape.backward = true;
    assert_close(dts_gpu_attention_s(&gpu, DTS_FP16, &shape), 2 * bytes / 1e12, 1e-9, 0);
}

static void narrower_windows_are_never_slower(void **state) {
    (void)state;
    static const char *const gpus[] = {"a100-40gb", "h100", "b200"};
    profiles p;
    profiles_open(&p);
    for (size_t g = 0; g < 3; g++) {
        dts_gpu gpu = {0};
        profiles_load(&p, "hardware/gpus", &dts_gpu_schema, gpus[g], &gpu);
        for (int mode = 0; mode < 12; mode++) {
            dts_attention_shape shape = long_shape(mode % 2 == 0 ? 4096 : 1000, mode / 2 % 3 > 0, 0);
            shape.chunked = mode / 2 % 3 == 2;
            shape.backward = mode / 6 == 1;
            shape.heads = mode % 2 == 0 ? 64 : 3;
            const double whole_s = dts_gpu_attention_s(&gpu, DTS_BF16, &shape);
            double before_s = 0;
            for (shape.window = 1; shape.window < 6000; shape.window += 1 + shape.window / 7) {
                const double time_s = dts_gpu_attention_s(&gpu, DTS_BF16, &shape);
                assert_true(time_s >= before_s * (1 - 1e-12) && time_s <= whole_s);
                assert_true(shape.window < shape.key_length || time_s == whole_s);
                before_s = time_s;
            }
            assert_true(before_s == whole_s);
        }
    }
    profiles_close(&p);
}

/* Jiang et al. 2023, Mistral 7B, arXiv 2310.06825, section 2: 16384 positions with a window of 4096 are computed twice
 * as fast as without. A cluster of A100 or H100: the paper does not say. */
static void mistrals_window_doubles_the_speed(void **state) {
    (void)state;
    profiles p;
    profiles_open(&p);
    static const char *const gpus[] = {"a100-40gb", "h100"};
    for (size_t g = 0; g < 2; g++) {
        dts_gpu gpu = {0};
        profiles_load(&p, "hardware/gpus", &dts_gpu_schema, gpus[g], &gpu);
        const dts_attention_shape whole = long_shape(16384, true, 0), window = long_shape(16384, true, 4096);
        const double ratio = dts_gpu_attention_s(&gpu, DTS_FP16, &whole) / dts_gpu_attention_s(&gpu, DTS_FP16, &window);
        print_message("%s: a window of 4096 of 16384 positions is %.2f times as fast\n", gpus[g], ratio);
        assert_close(ratio, 2, 0.15, 0);
    }
    profiles_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unfused),
                                       cmocka_unit_test(test_bounds),
                                       cmocka_unit_test(test_measured),
                                       cmocka_unit_test(test_measured_on_amd),
                                       cmocka_unit_test(windows_compute_the_blocks_that_they_touch),
                                       cmocka_unit_test(few_queries_take_as_long_as_their_bytes),
                                       cmocka_unit_test(narrower_windows_are_never_slower),
                                       cmocka_unit_test(mistrals_window_doubles_the_speed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
