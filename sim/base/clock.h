/* A clock on the wall that never goes back, for saying how long something took. Simulated time is base/time.h. */
#ifndef DTS_BASE_CLOCK_H
#define DTS_BASE_CLOCK_H

#include <time.h>

/* Seconds since a moment that stays the same while the program runs. */
static inline double dts_clock_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
