/* How long the passes of an order take that has no formula, or one for equal passes only: the order is walked once for
 * all candidates whose passes are about alike, and what it waits for is counted for each of them. */
#ifndef DTS_SEARCH_PACE_H
#define DTS_SEARCH_PACE_H

#include "schedule/schedule.h"

enum { DTS_PACE_CLASSES = 8, DTS_PACE_PARTS = 5 };

/* Ranks that do the same work, from behind those of the class before. */
typedef struct dts_pace_class {
    int last;
    /* one microbatch through all chunks: forward, the halves of backward; of forward and of the first half what a
     * pass does while its input is still on its way */
    double passes_s[DTS_PACE_PARTS];
} dts_pace_class;

typedef struct dts_pace {
    const dts_schedule_method *method;
    int stages, chunks, microbatches; /* of one flush */
    double input_frees;               /* as in the shape of an order that is made for its passes */
    double latency_s;                 /* of a hop */
    dts_pace_class classes[DTS_PACE_CLASSES];
    int class_count;
} dts_pace;

/* Of one number of stages; in arena. */
typedef struct dts_pace_cache dts_pace_cache;
dts_pace_cache *dts_pace_cache_new(dts_arena *arena);

/* From the first pass of any rank to the last; below 0: there is no such order, or no memory. A function of the pace
 * alone, whatever is in the cache. */
double dts_pace_length_s(dts_pace_cache *cache, const dts_pace *pace);

/* [rank] where the order holds most that was made for these passes, and whose length has been asked for; NULL: the
 * schedule makes none, or more have been made than are kept. */
const dts_moments *dts_pace_moments(const dts_pace_cache *cache, const dts_pace *pace);

#endif
