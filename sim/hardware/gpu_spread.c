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
 * at the end of a step, and a pipeline runs at the rate of its slowest stage but for the bubble. Where stages have the
 * same work that is the stage of the slowest GPU, (1). Where one has more, another must be slower by that much to hold
 * it up, and the slowest GPU is seldom on it: with N GPUs a stage and work w(s), the largest of w(s) · (1 + c · z) has
 * the distribution
 *
 *   P(time <= x) = Π Φ((x / w(s) − 1) / c)^N                                                                      (2)
 *
 * and is taken where (2) has the probability at which (1) stands for all GPUs together; with equal work it is (1). All
 * products and attention of all GPUs take this; only in the bubble, on other stages than the slowest, it is too much.
 * Kernels bound by memory do not depend on the clock of the multiprocessors.
 *
 * [1] Sinha et al., "Not All GPUs Are Created Equal", SC 2022 (arXiv 2208.11035).
 * [2] stas00/ml-engineering, compute/accelerator/README.md, "Not all accelerators are created equal".
 * [3] Blom, "Statistical Estimates and Transformed Beta-Variables", 1958. */
#include <math.h>

#include <gsl/gsl_cdf.h>

#include "hardware/hardware.h"

/* Φ of Blom's E(n). */
static double blom(double n) {
    return (n - 0.375) / (n + 0.25);
}

double dts_gpu_slowest(const dts_gpu *gpu, int64_t gpus) {
    if (!(gpu->spread > 0) || gpus < 2) {
        return 1;
    }
    return 1 + gpu->spread * gsl_cdf_ugaussian_Pinv(blom((double)gpus)); /* (1) */
}

double dts_gpu_slowest_stage(const dts_gpu *gpu, int64_t gpus, const dts_stage_load *loads, size_t count) {
    double stages = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        stages += (double)loads[i].stages;
        most = fmax(most, loads[i].work);
    }
    double high = dts_gpu_slowest(gpu, (int64_t)((double)gpus * stages));
    if (count < 2 || !(most > 0) || !(high > 1)) {
        return high;
    }
    /* the most loaded stage on an average GPU, to all stages with its work */
    const double n = (double)gpus * stages, wanted = stages * log(blom(n));
    double low = 1;
    while (high - low > 1e-9) {
        const double x = (low + high) / 2;
        double sum = 0; /* the logarithm of (2), over N */
        for (size_t i = 0; i < count; i++) {
            if (loads[i].work > 0) {
                const double z = (x * most / loads[i].work - 1) / gpu->spread;
                sum += (double)loads[i].stages * log(gsl_cdf_ugaussian_P(z));
            }
        }
        *(sum < wanted ? &low : &high) = x;
    }
    return high;
}
