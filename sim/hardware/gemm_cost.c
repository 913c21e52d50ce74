/* Time of a matrix product (m, k) × (k, n), batch times.
 *
 * A thread block computes one output tile of a × b elements over all of K; one multiprocessor works on one block at a
 * time. With T = batch·⌈m/a⌉·⌈n/b⌉ tiles on P multiprocessors, the busiest one computes ⌈T/P⌉ tiles: wave and tile
 * quantisation [1]. P(type) is the dense peak, FLOP/s:
 *
 *   t_tiles  = ⌈s·T/P⌉ · 2·a·b·(k/s + k0) · g(a, b) / (P(type)/P · tile_efficiency) + t_sum(s)                     (1)
 *   g(a, b)  = (1 + c·(1/a + 1/b)) / (1 + c·(1/A + 1/B)),  A × B the largest tile: operands fetched per product
 *   c        = tile_overhead · P(type)/P(fp16) · e/2: bytes of operands, e each, for the time of a product          (2)
 *   k0       = k_overhead · P(type)/P(fp16): prologue and epilogue of a tile are a fixed time                       (3)
 *   t_sum    = 8·s·batch·m·n bytes / (bandwidth · efficiency) for s > 1: s sums in fp32 are written and read       (7)
 *   t_chip   = 2·batch·m·n·k / (P(type) · max_efficiency): power and clocks with all multiprocessors busy           (4)
 *   t_memory = bytes of both operands and the result / (bandwidth · efficiency): roofline [2]                       (5)
 *   t        = max(floor, t_memory, max(t_tiles, t_chip) · alignment · weight gradient · factor)                    (6)
 *   t_chip   = 2·batch·m·n·k / (P(type) · unpaired_efficiency), alignment = 1: rows of odd numbers of two bytes     (8)
 *
 * The library picks the tile, and the number s of slices of K: on matrix units when tiles are fewer than
 * multiprocessors, and to fill up the last wave in gradients of weights, whose K is the number of tokens [4]; on CUDA
 * cores always, whose products are so long that adding up the slices costs nothing [3]. We take the fastest of six
 * tiles and four slicings. Rows that are no multiple of `vector` bytes cost their factor, those that
 * are no multiple of `alignment` theirs in proportion to the lines that they split [1]. Rows of an odd number of
 * 16-bit elements are no multiple of the 4 bytes that the smallest asynchronous copy moves: what is left are kernels
 * of an older generation that load elements one by one and are bound by that, not by power (8) [6]. The factor is that
 * of fp8's scales and of how it adds up, which the caller knows. Not modelled: clocks that fall
 * with the data's bit patterns; operands that stay in L2 between kernels.
 *
 * [1] NVIDIA, Matrix Multiplication Background User's Guide, sections on tile and wave quantisation and alignment.
 * [2] Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009.
 * [3] 4096 x 1024 x 4096 in fp32 on a V100, 256 tiles of 128 x 128 on 80 multiprocessors: 92 % of the peak, 4 waves
 *     would be 80 % (tests/validation/kernels/gemm_fp32.csv; there too all other rows of long K).
 * [4] NVIDIA, cuBLAS documentation: CUBLASLT_ALGO_CONFIG_SPLITK_NUM and CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME. Without
 *     slices in gradients of weights and without (7) the errors of tests/validation/kernels/gemm.csv are 3.1 instead of
 *     2.9 % (A100; its weight gradients 2.9 instead of 2.6), 5.2 instead of 4.5 (V100) and 9.9 instead of 9.7 (B200,
 *     worst 104 instead of 61); with slices in all products passes of 14.6B on A100 are 2 % further off [5].
 * [5] tests/validation/test_stage_passes.c.
 * [6] NVIDIA, PTX ISA: cp.async copies 4, 8 or 16 bytes. The kernels: see unpaired_efficiency in
 * hardware/gpus/h100.yaml. The constants are in hardware/gpus/NAME.yaml, each with its fit and error. */
#include <math.h>

#include "hardware/timings.h"

double dts_gpu_peak_flops(const dts_gpu *gpu, dts_numeric type) {
    double peak = gpu->peak_flops[type];
    if (!(peak > 0) && (type == DTS_TF32 || type == DTS_FP16)) {
        return gpu->peak_flops[DTS_FP32];
    }
    return peak;
}

double dts_gpu_memory_s(const dts_gpu *gpu, double bytes) {
    if (!(bytes > 0)) {
        return 0;
    }
    return fmax(gpu->memory_floor_s, bytes / (gpu->memory_bandwidth_Bps * gpu->memory_efficiency));
}

static double ceil_div(double a, double b) {
    return ceil(a / b);
}

/* Equations (1), (7) over all tiles and slicings: the time of the best, s. */
static double tiles_s(const dts_gpu *gpu, const dts_gemm_shape *shape, dts_numeric type, double peak, bool matrix_units,
                      double efficiency) {
    const dts_gemm_profile *gemm = &gpu->gemm;
    const double pace = peak / dts_gpu_peak_flops(gpu, DTS_FP16);
    const double k0 = gemm->k_overhead * pace;                                                           /* (3) */
    const double c = gemm->tile_overhead * pace * dts_numeric_bytes(type) / dts_numeric_bytes(DTS_FP16); /* (2) */
    const double tile_m = (double)gemm->tile_m, tile_n = (double)gemm->tile_n;
    const double candidates[][2] = {
        {tile_m, tile_n},         {tile_n, tile_m},         {tile_m / 2, tile_n},
        {tile_m / 2, tile_n / 2}, {tile_n / 2, tile_m / 2}, {tile_m / 4, tile_n / 2},
    };
    const double processors = (double)gpu->multiprocessors;
    const double k = (double)shape->k;
    const double shortest_slice = 512; /* elements of K: shorter slices are not worth their reduction */
    const double partial_B = 8 * (double)shape->batch * (double)shape->m * (double)shape->n; /* (7) */
    double best_s = INFINITY;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        double a = candidates[i][0], b = candidates[i][1];
        double tiles = (double)shape->batch * ceil_div((double)shape->m, a) * ceil_div((double)shape->n, b);
        double operands = (1 + c * (1 / a + 1 / b)) / (1 + c * (1 / tile_m + 1 / tile_n)); /* (2) */
        for (double slices = 1; slices <= 8; slices *= 2) {
            bool enough = matrix_units && !shape->weight_gradient && tiles >= processors;
            if (slices > 1 && (enough || k / slices < shortest_slice)) {
                break;
            }
            double waves = ceil_div(tiles * slices, processors);
            double flop = waves * 2 * a * b * (k / slices + k0) * operands;
            double sum_s = matrix_units && slices > 1 ? dts_gpu_memory_s(gpu, slices * partial_B) : 0;
            best_s = fmin(best_s, flop / (peak / processors * efficiency) + sum_s);
        }
    }
    return best_s;
}

static bool is_multiple(int64_t elements, double element_B, double of_B) {
    return fmod((double)elements * element_B, of_B) == 0;
}

/* Rows of a bytes times an odd number begin at multiples of a: of their accesses of one line, `alignment` bytes, the
 * share 1 - a/alignment touches two. Over that of rows that are multiples of `vector` and no more. */
static double split_lines(const dts_gemm_profile *gemm, double element_B, int64_t elements) {
    double start_B = gemm->alignment_B;
    while (start_B > gemm->vector_B && !is_multiple(elements, element_B, start_B)) {
        start_B /= 2;
    }
    return start_B < gemm->alignment_B
               ? (gemm->alignment_B - start_B) / (gemm->alignment_B - fmin(gemm->vector_B, start_B))
               : 0;
}

/* Rows that asynchronous copies cannot read, on GPUs of which it is known what that costs: (8). */
static bool is_unpaired(const dts_gemm_profile *gemm, double element_B, const dts_gemm_shape *shape) {
    const double smallest_copy_B = 4;
    int64_t row = shape->weight_gradient ? shape->m : shape->k;
    return gemm->unpaired_efficiency > 0 &&
           !(is_multiple(row, element_B, smallest_copy_B) && is_multiple(shape->n, element_B, smallest_copy_B));
}

static double alignment_factor(const dts_gemm_profile *gemm, double element_B, const dts_gemm_shape *shape) {
    int64_t row = shape->weight_gradient ? shape->m : shape->k; /* the second kind of row is n long in both */
    if (!is_multiple(row, element_B, gemm->vector_B) || !is_multiple(shape->n, element_B, gemm->vector_B)) {
        return gemm->unvectored_factor;
    }
    double split = fmax(split_lines(gemm, element_B, row), split_lines(gemm, element_B, shape->n));
    return 1 + (gemm->misaligned_factor - 1) * split;
}

/* The closed form (6). */
static double product_s(const dts_gpu *gpu, dts_numeric type, const dts_gemm_shape *shape) {
    const dts_gemm_profile *gemm = &gpu->gemm;
    double peak = dts_gpu_peak_flops(gpu, type);
    if (!(peak > 0) || shape->batch < 1 || shape->m < 1 || shape->n < 1 || shape->k < 1) {
        return 0;
    }
    double m = (double)shape->m, n = (double)shape->n, k = (double)shape->k, batch = (double)shape->batch;
    double element_B = dts_numeric_bytes(type);
    /* tf32 of GeForce cards has the peak of fp32, but runs on matrix units */
    bool matrix_units = type != DTS_FP32 && gpu->peak_flops[type] > 0;
    double chip_efficiency = matrix_units ? gemm->max_efficiency : gemm->vector_efficiency;
    double tile_efficiency = matrix_units ? gemm->tile_efficiency : gemm->vector_efficiency;
    if (element_B < dts_numeric_bytes(DTS_FP16)) {
        double narrow = gemm->narrow_factor * (element_B < dts_numeric_bytes(DTS_FP8) ? gemm->fp4_factor : 1);
        chip_efficiency *= narrow;
        tile_efficiency *= narrow;
    }

    const bool unpaired = matrix_units && is_unpaired(gemm, dts_numeric_data_bytes(type), shape);
    double chip_s = 2 * batch * m * n * k / (peak * (unpaired ? gemm->unpaired_efficiency : chip_efficiency));
    double time_s = fmax(tiles_s(gpu, shape, type, peak, matrix_units, tile_efficiency), chip_s);
    if (matrix_units && !unpaired) {
        time_s *= alignment_factor(gemm, dts_numeric_data_bytes(type), shape);
    }
    if (shape->weight_gradient) {
        time_s *= gemm->weight_gradient_factor;
    }
    time_s *= shape->factor > 0 ? shape->factor : 1;
    double result_B = fmax(element_B, dts_numeric_bytes(DTS_FP16)); /* 8- and 4-bit products have wide results */
    double bytes = batch * ((m * k + k * n) * element_B + m * n * result_B);
    return fmax(gemm->floor_s, fmax(time_s, dts_gpu_memory_s(gpu, bytes)));
}

double dts_gpu_gemm_s(const dts_gpu *gpu, dts_numeric type, const dts_gemm_shape *shape) {
    const dts_timing *timed = NULL;
    if (gpu->timings != NULL) {
        const dts_timing_key key = {.kind = DTS_TIMING_GEMM,
                                    .variant = shape->weight_gradient,
                                    .type = (int)type,
                                    .size = {shape->batch, shape->m, shape->n, shape->k}};
        timed = dts_timings_find(gpu->timings, &key);
    }
    if (timed != NULL && shape->timed != NULL) {
        *shape->timed = true;
    }
    return product_s(gpu, type, shape) * (timed != NULL ? timed->factor : 1);
}
