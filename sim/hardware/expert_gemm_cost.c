/* Time of the products of one rank's experts, E products (m, k) × (k, n) with weights of their own.
 *
 * How libraries run them decides how well they fill the chip, t(b) being the time of b equal products at once
 * (gemm_cost.c):
 *   sequential   E · t(1)                        each expert's tiles fill the chip alone
 *   streams      ⌊E/4⌋ · t(4) + t(E mod 4)       one library call each, on four streams [1]
 *   grouped      t(E)                            one kernel over the tiles of all experts
 *
 * With few rows an expert, what touches the weights counts; e bytes an element, s of the stored gradient:
 *   forward, input gradient   + e·E·n·k / (bandwidth · efficiency)          the weights come from memory, while those
 *                             of the dense products behind t's constants are mostly in L2, and a product's blocks
 *                             all wait for the same ones at its start                                             (1)
 *   weight gradient           + (2s − e)·E·m·n / (bandwidth · efficiency)   added to the stored gradient: read and
 *                             written in the epilogue instead of e written                                        (2)
 *
 * Against 76 products of Transformer Engine on a B200 [2]: mean error 11 % (29 % without (1) and (2)), where the host
 * does not hold them up: a library call took it 9 us.
 *
 * [1] NVIDIA/TransformerEngine transformer_engine/pytorch/module/grouped_linear.py, general_grouped_gemm: the number
 *     of cuBLAS streams is 4.
 * [2] MooreThreads/SimuMax @4dcaae5 configs/system/b200_bf16_ceperm.json. */
#include "hardware/hardware.h"

enum { STREAMS = 4 };

static double at_once_s(const dts_gpu *gpu, dts_numeric type, const dts_gemm_shape *shape, int64_t products) {
    dts_gemm_shape some = *shape;
    some.batch = products;
    return dts_gpu_gemm_s(gpu, type, &some);
}

double dts_gpu_expert_gemm_s(const dts_gpu *gpu, dts_numeric type, const dts_gemm_shape *shape, dts_expert_style style,
                             double sum_B) {
    const int64_t experts = shape->batch;
    const double element_B = dts_numeric_bytes(type), n = (double)shape->n;
    double time_s = 0;
    switch (style) {
        case DTS_EXPERTS_SEQUENTIAL:
            time_s = (double)experts * at_once_s(gpu, type, shape, 1);
            break;
        case DTS_EXPERTS_STREAMS:
            time_s = (double)(experts / STREAMS) * at_once_s(gpu, type, shape, STREAMS) +
                     at_once_s(gpu, type, shape, experts % STREAMS);
            break;
        case DTS_EXPERTS_GROUPED:
            time_s = at_once_s(gpu, type, shape, experts);
            break;
    }
    const double sum = sum_B > 0 ? 2 * sum_B - element_B : 0;
    const double bytes = shape->weight_gradient ? sum * (double)shape->m * n        /* (2) */
                                                : element_B * n * (double)shape->k; /* (1) */
    return time_s + dts_gpu_memory_s(gpu, bytes * (double)experts);
}
