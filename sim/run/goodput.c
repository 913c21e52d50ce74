/* Goodput of a run with checkpoints and failures.
 *
 * Failures come as a Poisson process with mean M between them, and may hit training, checkpoints and restarts [1]. With
 *   t  training between two checkpoints          x = t + d
 *   d  time that a checkpoint holds up training
 *   W  time after that until it is safe (0 when it is written while training waits)
 *   R  time of a restart
 * the expected time E from one safe checkpoint to the next is that of the first attempt and, if it fails, of attempts
 * that begin with a restart and with the work done while the checkpoint was being written:
 *   first attempt     M (1 - e^(-x/M))           fails with 1 - e^(-x/M)
 *   the others        M (e^((R+W+x)/M) - 1)
 *   E               = M e^((R+W)/M) (e^(x/M) - 1)                 with W = 0: the complete cost function of [1]
 *   training          t / E                                       the goodput
 *   checkpoints       d / E
 *   restarts          (e^(x/M) - 1) M (e^(R/M) - 1) / E           each: until one is not hit by a failure
 *   lost work         what remains
 *   failures          1 / M per second of all that time
 * d(E/t)/dt = 0 gives the best interval, whatever R and W are: (1 - t/M) e^((t+d)/M) = 1, so
 *   t = M (1 + W0(-e^(-1-d/M)))                  W0: Lambert's function
 * which is sqrt(2 d M) for small d (Young [2]) and is approximated to higher order in [1].
 *
 * [1] Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
 *     Systems 22 (2006) 303-312.
 * [2] Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974) 530-531. */
#include "run/goodput.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_sf_lambert.h>
#include <math.h>

dts_goodput dts_goodput_of(const dts_failing_run *run, double interval_s) {
    double cycle_s = interval_s + run->checkpoint_s;
    if (isinf(run->mtbf_s)) {
        return (dts_goodput){.training = interval_s / cycle_s, .checkpoints = run->checkpoint_s / cycle_s};
    }
    double m = run->mtbf_s;
    double failed = expm1(cycle_s / m); /* attempts that fail, for each that does not */
    double expected_s = m * exp((run->restart_s + run->commit_s) / m) * failed;
    if (!isfinite(expected_s) || !(expected_s > 0)) {
        return (dts_goodput){0};
    }
    dts_goodput g = {.training = interval_s / expected_s,
                     .checkpoints = run->checkpoint_s / expected_s,
                     .restarts = failed * m * expm1(run->restart_s / m) / expected_s};
    g.lost_work = fmax(0, 1 - g.training - g.checkpoints - g.restarts);
    return g;
}

double dts_best_interval(const dts_failing_run *run) {
    if (isinf(run->mtbf_s)) {
        return INFINITY;
    }
    double x = -exp(-1 - run->checkpoint_s / run->mtbf_s);
    return run->mtbf_s * (1 + gsl_sf_lambert_W0(fmax(x, -1 / M_E))); /* rounding must not leave W0's domain */
}
