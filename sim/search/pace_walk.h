/* An order as its operations wait for each other, which is walked with many passes (pace.c). */
#ifndef DTS_SEARCH_PACE_WALK_H
#define DTS_SEARCH_PACE_WALK_H

#include "search/pace.h"

/* As they lie in a class's passes. */
enum { DTS_PACE_F, DTS_PACE_B, DTS_PACE_W, DTS_PACE_FIRST_F, DTS_PACE_FIRST_B };

/* A longest chain: how much of it are passes of each class, in passes through all chunks. What an operation does ahead
 * of its input is taken off where the input comes last. */
typedef struct dts_pace_chain {
    double count[DTS_PACE_CLASSES][DTS_PACE_PARTS];
    double hops;
} dts_pace_chain;

/* An operation behind those that it waits for. */
typedef struct dts_pace_step {
    uint32_t input, before; /* steps: what it reads, the one before on its rank; 0: nothing */
    uint16_t rank;
    uint8_t kind; /* dts_op_kind */
    bool hops;    /* the input comes from another rank */
} dts_pace_step;

typedef struct dts_pace_steps {
    dts_pace_step *items; /* [1 … count]; number 0 is done when all begins */
    uint32_t count;
    uint32_t *last; /* [rank] */
    int stages, chunks;
} dts_pace_steps;

/* Whoever comes first, first; in arena. False: no memory, or operations wait for each other. */
bool dts_pace_steps_make(const dts_schedule *order, dts_arena *arena, dts_arena *scratch, dts_pace_steps *out);

/* What the passes of a walk take. */
typedef struct dts_pace_times {
    double passes[DTS_PACE_CLASSES][DTS_PACE_PARTS];
    int class_count;
    const int *class_of; /* [rank] */
    double hop;
} dts_pace_times;

/* The longest chain of passes. False: no memory. */
bool dts_pace_walk(const dts_pace_steps *steps, const dts_pace_times *times, dts_arena *scratch, dts_pace_chain *out);

#endif
