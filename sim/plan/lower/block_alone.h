/* A pass that is lowered and simulated by itself to become a block (block.c), and what is read from that. */
#ifndef DTS_PLAN_LOWER_BLOCK_ALONE_H
#define DTS_PLAN_LOWER_BLOCK_ALONE_H

#include "engine/simulate.h"
#include "plan/lower/builder.h"

/* A pass by itself. */
typedef struct dts_alone {
    dts_builder b;
    dts_stage stage;
    dts_id made;
    dts_simulation *simulation;
} dts_alone;

/* What the ledger did, relative to entry. */
typedef struct dts_alone_memory {
    int64_t now_B[DTS_MEMORY_CATEGORY_COUNT], peak_B[DTS_MEMORY_CATEGORY_COUNT];
    int64_t total_B, peak_total_B;
    dts_id device, peak_task;
    bool peaked;
    int64_t *during_B; /* by task: the total while it runs */
    bool *ended;
} dts_alone_memory;

/* Its times with the host far ahead. False: it cannot be one task. */
bool dts_alone_durations(const dts_alone *s, dts_block *block);
/* What the host adds, where it and the compute stream are free at zero. */
void dts_alone_launches(const dts_alone *s, dts_block *block);
/* layer: number of the block's first layer as reports show it. */
void dts_alone_memory_of(const dts_alone *s, const dts_alone_memory *memory, int32_t layer, dts_block *block);

/* Over all categories. */
int64_t dts_block_total(const int64_t *by_category);

#endif
