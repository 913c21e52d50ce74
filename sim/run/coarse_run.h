/* A first look at one of many plans: its time and memory by an event simulation with fewer and larger tasks than
 * `dtsim run` takes, to choose those that are simulated in full. */
#ifndef DTS_RUN_COARSE_RUN_H
#define DTS_RUN_COARSE_RUN_H

#include "plan/lower/lower.h"
#include "scenario/scenario.h"

typedef struct dts_screening {
    double time_s;      /* of an iteration */
    double allocated_B; /* live tensors of the fullest GPU */
    bool fits;          /* in GPUs, nodes and drives */
    double host_fill;   /* bytes over capacity of the fullest host or its drives */
    bool memory_known;  /* of GPUs; else the peak depends on an order that a first look lacks (plan/lower/auto_detail.c)
                         */
    size_t tasks;       /* that were simulated */
} dts_screening;

/* blocks, stop: as of dts_run_options. Errors as of dts_run_values. */
dts_status dts_screen_values(const dts_scenario_values *values, dts_block_cache *blocks, const atomic_bool *stop,
                             dts_screening *out, dts_diag *diag);

#endif
