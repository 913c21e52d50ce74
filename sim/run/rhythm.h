/* How a simulated iteration repeats: what fold.c follows. Not for other rooms. */
#ifndef DTS_RUN_RHYTHM_H
#define DTS_RUN_RHYTHM_H

#include "run/fold.h"

/* So many microbatches in a row must keep the rhythm, whatever its length. */
enum { DTS_LEAST_ROUND = 4 };

/* The work of a device between the ends of two microbatches' last kernels: tasks are added in the order in which it
 * issues them. */
typedef struct span {
    dts_id before, after, until; /* tasks: the round is what is behind `after` up to until; the one before likewise */
    dts_time from, to;           /* when those two end */
} span;

struct dts_rhythm {
    const dts_measured *m;
    const dts_fold *fold;
    int64_t directions, each; /* pipelines, and the microbatches of each */
    dts_id *last;             /* [device · microbatches + microbatch] its last kernel; DTS_NO_ID: none */
    int64_t round;            /* u, of each direction */
    dts_time length;          /* D */
    span *spans;              /* [device] */
    dts_id first, end;        /* tasks of the round are among those from first up to this, not included */
    size_t *counts;           /* [stream] tasks of a round */
    dts_time *busy;           /* [stream] in a round */
    dts_time *launching;      /* [stream] of hosts, in the whole iteration */
    int64_t *kept_B;          /* [device] that a round leaves behind */
    dts_id on_path;           /* the last task of the critical path that is in a round */
    bool nearly;              /* it goes on if fewer microbatches agree, and there were none */
    double flops;             /* of a round, all stages of one row */
    size_t devices;
    uint32_t *position; /* [task] on its stream (steady_proof.c) */
    uint8_t *pace;      /* [task] */
    bool *meets;        /* [task] a transfer of the round or behind it that may meet another (crossing.c) */
};

/* Are two lengths the same but for rounding? */
bool dts_rhythm_same_length(dts_time a, dts_time b);

/* Of the device that issues a task. One process that drives all GPUs issues everything. */
static inline const span *dts_rhythm_span(const dts_rhythm *r, dts_id task) {
    const dts_id device = r->m->lowered->infos[task].device;
    return &r->spans[device < r->devices ? device : 0];
}

/* Is a task of the round of the device that issues it? Always false outside of r->first … r->end. */
static inline bool dts_rhythm_has(const dts_rhythm *r, dts_id task) {
    const span *s = dts_rhythm_span(r, task);
    return task > s->after && task <= s->until;
}

/* Does the device that issues it do so behind its round? Always false before r->first. */
static inline bool dts_rhythm_is_behind(const dts_rhythm *r, dts_id task) {
    return task > dts_rhythm_span(r, task)->until;
}

/* Will all that follows be as the round is (steady_proof.c)? */
bool dts_rhythm_goes_on(dts_rhythm *r);

/* Fills in meets; false: memory ran out. */
bool dts_rhythm_find_meetings(dts_rhythm *r);

/* Are there kernels of a device that come earlier in every round, against its last (steady_proof.c)? */
bool dts_rhythm_moves(const dts_rhythm *r, size_t device);

/* Rounds that were not simulated: k of (1) in fold.c. */
int64_t dts_rhythm_rounds(const dts_rhythm *r);

#endif
