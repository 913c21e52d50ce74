/* PyTorch's caching allocator on one GPU, as rules about sizes: no memory is behind it. */
#ifndef DTS_HARDWARE_CACHING_ALLOCATOR_H
#define DTS_HARDWARE_CACHING_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/free_blocks.h" /* DTS_NO_BLOCK */

typedef struct dts_caching_allocator dts_caching_allocator;

typedef struct dts_caching_rules {
    int64_t round_B;    /* sizes are multiples of this, 512 in PyTorch */
    int64_t capacity_B; /* what cudaMalloc can give in all */
    bool expandable;    /* expandable_segments:True */
} dts_caching_rules;

typedef struct dts_caching_counts {
    int64_t reserved_B, peak_reserved_B;   /* held from cudaMalloc */
    int64_t allocated_B, peak_allocated_B; /* of that, in blocks that are in use, as rounded */
    int64_t mallocs, frees;                /* of segments, or of pages with expandable segments */
    int64_t retries;                       /* cudaMalloc failed: all cached segments were freed */
} dts_caching_counts;

/* NULL: memory ran out. */
dts_caching_allocator *dts_caching_new(const dts_caching_rules *rules);
void dts_caching_free(dts_caching_allocator *allocator);

/* A block of at least bytes (> 0) for the work of a stream (0, 1, …). DTS_NO_BLOCK: the GPU's memory does not suffice
 * even when all that is cached is given back. */
uint32_t dts_caching_take(dts_caching_allocator *allocator, int64_t bytes, unsigned stream);
/* The block is no longer in use. */
void dts_caching_give(dts_caching_allocator *allocator, uint32_t id);

/* The same, but another stream uses it until when (record_stream): it serves again once the time has come
 * (dts_caching_advance), or when a retry has waited for all streams. */
void dts_caching_give_at(dts_caching_allocator *allocator, uint32_t id, int64_t when);
void dts_caching_advance(dts_caching_allocator *allocator, int64_t now);

dts_caching_counts dts_caching_count(const dts_caching_allocator *allocator);
/* Could not grow its own tables: what it says is wrong from then on. */
bool dts_caching_failed(const dts_caching_allocator *allocator);

#endif
