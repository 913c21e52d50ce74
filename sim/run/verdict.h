/* Does a plan fit in memory, and at which price? */
#ifndef DTS_RUN_VERDICT_H
#define DTS_RUN_VERDICT_H

#include "base/text.h"
#include "run/result.h"

/* What speaks against plans that fit: the most of each of them. */
typedef struct dts_strain {
    double unserved_gib; /* as of dts_result.allocator */
    double retry_share;  /* of the iteration */
} dts_strain;

void dts_strain_add(dts_strain *most, dts_strain plan);

/* The share of the iteration from which on retries are told of, 1 %. */
extern const double dts_retries_told;
/* The share from which on they may be what limits it, 10 %. */
extern const double dts_retries_many;

/* Of the iteration, what retries of the caching allocator take; 0: none, or the plan does not fit. */
double dts_retry_share(const dts_result *result);

/* Share of the capacity within which an estimate of reserved memory does not tell whether a plan fits. */
extern const double dts_estimate_margin;
/* Live tensors fit, but reserved memory is an estimate that ends within that margin. */
bool dts_fits_by_estimate(const dts_result *result);

/* Room for tensors over allocated_gib, what they take: the GPU's memory without the CUDA context, in multiples of it.
 */
double dts_memory_room(const dts_result *result, double allocated_gib);

/* Are retries what limits the iteration: at least a tenth of it, and no other wait is longer? */
bool dts_retries_limit(const dts_result *result);

/* "2 allocator retries cost 46 % of the iteration". */
void dts_retry_cost(int64_t retries, double share, dts_text *out);

/* "fits", "fits, but 2 allocator retries cost 46 % of the iteration", "may run out of memory", "does not fit". NULL:
 * memory ran out. */
const char *dts_verdict_of(const dts_result *result);

/* The same of its parts, in arena. */
const char *dts_verdict_text(dts_arena *arena, bool fits, double unserved_gib, int64_t retries, double retry_share);

/* What happens in retries. NULL: memory ran out. */
const char *dts_retries_text(const dts_result *result);

/* What to say of a plan whose live tensors fit while a request fails (allocator.unserved_gib), the same everywhere.
 * result: of that plan; NULL: of several. NULL is returned where memory ran out. */
const char *dts_unserved_text(dts_arena *arena, const dts_result *result, double unserved_gib);

#endif
