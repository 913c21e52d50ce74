/* What may help a plan with too little memory: the changes that are tried, each as users write it. */
#ifndef DTS_RUN_CURE_LEVERS_H
#define DTS_RUN_CURE_LEVERS_H

#include "run/result.h"
#include "scenario/scenario.h"

/* The bound on what is tried. A plan that fits, but with retries, is simulated kernel by kernel for each of them. */
enum {
    DTS_TRIALS_MOST = 144,
    DTS_TRIALS_MOST_OF_FITTING = 64,
    DTS_TRIALS_OF_OTHERS = 36,
    DTS_TRIALS_ROOM = DTS_TRIALS_MOST + DTS_TRIALS_OF_OTHERS,
    DTS_TRIAL_CHANGES_MOST = 10,
    DTS_LADDERS_MOST = 80
};

/* Changes are tried alone, then several at once, then on more GPUs, until something suffices. Where nothing does on
 * these GPUs, another training may: adapters, or shorter samples, with sharded states where
 * they are whole. */
typedef enum dts_trial_stage {
    DTS_TRY_FREE, /* what costs no time, alone and together */
    DTS_TRY_ALONE,
    DTS_TRY_TOGETHER,
    DTS_TRY_LARGER,
    DTS_TRIAL_STAGES,
    DTS_TRY_OTHERS = DTS_TRIAL_STAGES
} dts_trial_stage;

/* The overrides, and nothing else, make the values. */
typedef struct dts_trial {
    dts_override changes[DTS_TRIAL_CHANGES_MOST];
    size_t change_count;
    dts_scenario_values values;
    size_t ladder;
    dts_cure cure;
    int rank;          /* how well it does in memory, the best first (run/cures.c) */
    bool known;        /* the rules allow it, and the figures of cure are simulated */
    bool whole;        /* by a whole simulation, no first look and no part of the batch */
    bool waits;        /* a first look does not know it, and a simulation in full would */
    bool in_part;      /* the figures are those of a part of the batch */
    bool host_full;    /* it does not fit in the memory or the drives of a node */
    double looked_gib; /* what has to fit by a first look, which may only guess it; 0: none was taken */
} dts_trial;

/* Alternatives that follow each other, the mildest first. */
typedef struct dts_ladder {
    size_t first, count;
    dts_trial_stage stage;
    bool alone;  /* of single changes */
    bool halves; /* each step splits by twice as much as the one before */
} dts_ladder;

typedef struct dts_trials {
    dts_trial *items; /* DTS_TRIALS_ROOM of them */
    size_t count;
    dts_ladder ladders[DTS_LADDERS_MOST];
    size_t ladder_count;
} dts_trials;

/* Fills trials, with room for DTS_TRIALS_ROOM in items. result: of the plan as it is; strings go to its arena. */
dts_status dts_trials_make(const dts_scenario_values *base, const dts_result *result, dts_trials *trials);
/* Adds those of stage DTS_TRY_OTHERS. */
dts_status dts_trials_add_others(const dts_scenario_values *base, const dts_result *result, dts_trials *trials);

/* Does a say nothing new beside b: all changes of b and more, or one of them further? */
bool dts_trial_repeats(const dts_trial *a, const dts_trial *b);

#endif
