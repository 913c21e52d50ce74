/* The slowest of many GPUs.
 *
 * GPUs of one kind differ: at the power limit each runs at the clock that its own leakage, voltage and cooling leave it
 * [1, 2]. With times of products that are normally distributed, c their relative standard deviation, the slowest of N
 * GPUs takes longer than the mean by
 *
 *   slowest(N) = 1 + c · E(N),   E(N) = Φ⁻¹((N − 3/8) / (N + 1/4))                                               (1)
 *
 * E(N) being Blom's approximation of the expected largest of N standard normal numbers [3], 5 % too large for N = 2 and
 * within 1 % from 8 on (0 for N = 1; 1.43, 2.35, 3.23 for 8, 64, 1024 GPUs).
 *
 * A synchronous job advances with the slowest of all: ranks that split a layer wait for each other in it, replicas wait
 * at the end of a step, and a pipeline runs at the rate of its slowest stage but for the bubble. So all products and
 * attention of all GPUs take (1); only in the bubble, on other stages than the slowest, it is too much. Kernels bound
 * by memory do not depend on the clock of the multiprocessors.
 *
 * [1] Sinha et al., "Not All GPUs Are Created Equal", SC 2022 (arXiv 2208.11035).
 * [2] stas00/ml-engineering, compute/accelerator/README.md, "Not all accelerators are created equal".
 * [3] Blom, "Statistical Estimates and Transformed Beta-Variables", 1958. */
#include <gsl/gsl_cdf.h>

#include "hardware/hardware.h"

double dts_gpu_slowest(const dts_gpu *gpu, int64_t gpus) {
    if (!(gpu->spread > 0) || gpus < 2) {
        return 1;
    }
    const double n = (double)gpus;
    return 1 + gpu->spread * gsl_cdf_ugaussian_Pinv((n - 0.375) / (n + 0.25)); /* (1) */
}
