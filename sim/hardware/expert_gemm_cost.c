/* Time of the products of one rank's experts, E products of the same shape with weights of their own.
 *
 * How libraries run them decides how well they fill the chip, t(b) being the time of b equal products at once
 * (gemm_cost.c):
 *   sequential   E · t(1)                        each expert's tiles fill the chip alone
 *   streams      ⌊E/4⌋ · t(4) + t(E mod 4)       one library call each, on four streams [1]
 *   grouped      t(E)                            one kernel over the tiles of all experts
 *
 * A weight gradient that is added to the stored one of s bytes an element reads and writes it in its epilogue:
 *   t + 2·s·E·m·n / (bandwidth · efficiency): with few rows an expert, memory is most of it.                      (1)
 *
 * [1] NVIDIA/TransformerEngine transformer_engine/pytorch/module/grouped_linear.py, general_grouped_gemm: the number
 *     of cuBLAS streams is 4. */
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
    return time_s + dts_gpu_memory_s(gpu, 2 * sum_B * (double)experts * (double)shape->m * (double)shape->n); /* (1) */
}
