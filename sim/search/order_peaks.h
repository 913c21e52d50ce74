/* Where the orders of schedules hold most, for closed forms: without building long orders, and each once. */
#ifndef DTS_SEARCH_ORDER_PEAKS_H
#define DTS_SEARCH_ORDER_PEAKS_H

#include "plan/lower/costs.h"

/* Where one schedule's order holds most. */
typedef struct dts_known_moments {
    const dts_schedule_method *method;
    int64_t chunks, microbatches;
    double input_frees;         /* where the order is made for it */
    const dts_moments *moments; /* [pipeline] */
} dts_known_moments;

enum { DTS_MOMENTS_KNOWN = 512 };

/* Of one number of stages. */
typedef struct dts_moment_cache {
    dts_known_moments known[DTS_MOMENTS_KNOWN];
    size_t count;
} dts_moment_cache;

/* [rank] of one flush of the plan, in arena; NULL: the schedule has no such order, or no memory. */
const dts_moments *dts_moments_of(dts_moment_cache *cache, const dts_plan *plan, const dts_block_costs *costs,
                                  const dts_schedule_method *method, dts_arena *arena);

#endif
