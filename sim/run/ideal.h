/* A pipeline schedule alone, without hardware or model: the schedule's order is lowered to tasks of given costs and
 * simulated by the engine. For teaching, and for the exact comparison with the frameworks' own generators. */
#ifndef DTS_RUN_IDEAL_H
#define DTS_RUN_IDEAL_H

#include "schedule/schedule.h"

typedef struct dts_ideal_costs {
    double forward, backward_input, backward_weight; /* of one microbatch on a rank's whole share, any unit */
    double latency;                                  /* of a hop between ranks; the sender is not held up */
} dts_ideal_costs;

typedef struct dts_ideal {
    double makespan;
    double bubble_fraction;  /* 1 - busy / (p · makespan) */
    double max_stage_span;   /* max over ranks of last end - first start */
    double *idle;            /* [stages] makespan - busy */
    double *peak_activation; /* [stages] */
    double **start, **end;   /* [stages][op]; parts of a fused block have the block's */
} dts_ideal;

/* Everything is in the arena. DTS_INVALID for negative, infinite or all-zero costs, and above 2e7 operations. */
dts_status dts_ideal_run(const dts_schedule *schedule, const dts_ideal_costs *costs, dts_arena *arena, dts_ideal *out,
                         dts_diag *diag);

#endif
