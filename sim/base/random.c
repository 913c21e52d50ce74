/* mt19937: M. Matsumoto, T. Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998; GSL's variant with the 2002 seeding.
 * The normal deviates come from the ratio method (Kinderman and Monahan 1977), which keeps no state between calls. */
#include "base/random.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdlib.h>

struct dts_random {
    gsl_rng *generator;
};

dts_random *dts_random_new(uint64_t seed) {
    dts_random *random = calloc(1, sizeof *random);
    if (random == NULL) {
        return NULL;
    }
    random->generator = gsl_rng_alloc(gsl_rng_mt19937);
    if (random->generator == NULL) {
        free(random);
        return NULL;
    }
    gsl_rng_set(random->generator, (unsigned long)(seed & 0xffffffffU));
    return random;
}

void dts_random_free(dts_random *random) {
    if (random != NULL) {
        gsl_rng_free(random->generator);
        free(random);
    }
}

double dts_random_uniform(dts_random *random) {
    return gsl_rng_uniform(random->generator);
}

double dts_random_normal(dts_random *random, double mean, double standard_deviation) {
    return mean + gsl_ran_gaussian_ratio_method(random->generator, standard_deviation);
}

uint32_t dts_random_below(dts_random *random, uint32_t count) {
    return (uint32_t)gsl_rng_uniform_int(random->generator, count);
}
