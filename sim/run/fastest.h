/* Which of several plans is the answer: the fastest that fits, and the fastest that surely does. */
#ifndef DTS_RUN_FASTEST_H
#define DTS_RUN_FASTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dts_contender {
    bool fits;
    double unserved_gib; /* what the caching allocator could not serve: above 0 it may run out of memory */
    double tokens_per_s;
} dts_contender;

typedef dts_contender dts_contender_at(const void *plans, size_t index);

/* The index of the fastest of count plans that fit, or of those that surely do; SIZE_MAX: there is none. */
size_t dts_fastest(const void *plans, size_t count, dts_contender_at *at, bool surely);

#endif
