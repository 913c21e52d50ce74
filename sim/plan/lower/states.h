/* What a rank keeps of its parameters from step to step: the parameters, their gradients, the optimizer's states. The
 * tasks of a simulation (static_memory.c) and the bounds of a search read the same description. */
#ifndef DTS_PLAN_LOWER_STATES_H
#define DTS_PLAN_LOWER_STATES_H

#include "plan/lower/lower.h"

/* How a rank keeps its parameters. What is not said here the plan says. */
typedef struct dts_keeping {
    const dts_plan *plan;
    int data_parallel;                    /* dts_data_parallel */
    int parameters, gradients, optimizer; /* dts_offload_target: where they rest */
    double shards[DTS_SET_COUNT];         /* ranks that share one copy of what is in shards */
} dts_keeping;

/* The parameters of one set on a rank, elements. */
typedef struct dts_set_states {
    double parameters, quantised, frozen, frozen_B;
    double statistics; /* that the optimizer keeps beside moments */
    /* of the parameters and of the statistics, what the rank keeps states of; owns: of tensors or matrices of its own
     */
    double optimizer_share, statistics_share;
    bool owns;
} dts_set_states;

/* One of them. SHARDS: not there until gradients are reduced (units.c). */
typedef struct dts_state {
    dts_lasting term; /* without its bytes */
    double bytes;
    dts_offload_target rests;
} dts_state;

enum { DTS_STATES_MOST = 10 };
/* Writes the states of a set to out[DTS_STATES_MOST]; returns how many there are. */
size_t dts_states_of(const dts_keeping *how, dts_parameter_set set, const dts_set_states *held, dts_state *out);

/* What a rank moves at once between drives and GPU, at most: elements that are trained, and bytes with those that are
 * not. grow: takes in a part of the model, by set. */
typedef struct dts_drive_unit {
    double elements, bytes;
} dts_drive_unit;

void dts_drive_unit_grow(const dts_keeping *how, const double *parameters, const double *frozen_B,
                         dts_drive_unit *largest);

/* Pinned buffers between drives and GPU, in the memory of the host, B: for parameters, and for the step. */
void dts_drive_buffers(const dts_keeping *how, const dts_drive_unit *largest, double *parameters_B, double *step_B);

#endif
