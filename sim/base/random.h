/* Seeded random numbers: GSL's Mersenne twister (mt19937), so that a seed gives the same numbers on every machine.
 * Each generator stands alone; simulations that run side by side share nothing. */
#ifndef DTS_BASE_RANDOM_H
#define DTS_BASE_RANDOM_H

#include <stdint.h>

typedef struct dts_random dts_random;

/* NULL when memory ran out. Only the lower 32 bits of the seed reach the generator; seed 0 means GSL's 4357. */
dts_random *dts_random_new(uint64_t seed);
void dts_random_free(dts_random *random);

/* In [0, 1). */
double dts_random_uniform(dts_random *random);
double dts_random_normal(dts_random *random, double mean, double standard_deviation);
/* 0 … count - 1, each as likely; 1 <= count <= 2^32 - 1. */
uint32_t dts_random_below(dts_random *random, uint32_t count);

#endif
