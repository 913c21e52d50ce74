/* Cutting layers into pipeline stages by dynamic programming, under memory that differs from stage to stage. */
#ifndef DTS_SEARCH_STAGE_DP_H
#define DTS_SEARCH_STAGE_DP_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

/* A stage with so many layers. */
typedef struct dts_stage_cost {
    double time_s, memory_B;
} dts_stage_cost;

typedef struct dts_stage_problem {
    size_t stages, layers;
    const dts_stage_cost *costs; /* [stages][layers + 1], by the layers of the stage; 0 layers are not used */
    double capacity_B;
} dts_stage_problem;

/* A cut that no other beats in both its slowest stage and its fullest. */
typedef struct dts_stage_solution {
    double time_s, memory_B; /* of the slowest, of the fullest stage */
    int64_t *layers;         /* [stages], 1 or more each */
} dts_stage_solution;

/* All such cuts within the capacity, the fastest first; in arena. None: nothing fits. */
dts_status dts_stage_dp(const dts_stage_problem *problem, dts_arena *arena, dts_stage_solution **out, size_t *count);

#endif
