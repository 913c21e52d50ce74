/* The time of a SOAP strategy, and of the same one after a change (delta simulation).
 *
 * Tasks run in the order of their groups (plan/lower/soap.h), each as soon as its streams and what it waits for are
 * done: end = max(ends of all of these) + duration. Because everything points backward in the order, one pass over the
 * groups gives the only solution, which is the engine's. After a change only some groups have other tasks; a group
 * whose tasks are the same, whose streams become free at the same times and whose predecessors end at the same times
 * ends at the same times, so that the pass begins at the first group that changed and skips every group that is clean.
 * The result equals that of a full simulation to the picosecond. */
#ifndef DTS_SEARCH_SOAP_TIMING_H
#define DTS_SEARCH_SOAP_TIMING_H

#include <stdatomic.h>

#include "plan/lower/soap.h"

typedef struct dts_soap_timing dts_soap_timing;

typedef struct dts_soap_change {
    uint32_t op;
    dts_soap_choice choice;
} dts_soap_change;

/* The caller owns *out; problem is borrowed. */
dts_status dts_soap_timing_new(const dts_soap_problem *problem, dts_soap_timing **out, dts_diag *diag);
void dts_soap_timing_free(dts_soap_timing *timing);

/* What is simulated from now on ends when stop is set by somebody else; may be NULL. */
void dts_soap_timing_stop_by(dts_soap_timing *timing, const atomic_bool *stop);
/* Has it? */
bool dts_soap_timing_stopped(const dts_soap_timing *timing);

/* Takes a whole strategy and simulates it in full. False: memory ran out, or it was told to stop. */
bool dts_soap_timing_set(dts_soap_timing *timing, const dts_soap_choice *choices);

/* Simulates the current strategy with changes (no operator twice); then accept or reject must be called. False: memory
 * ran out, or it was told to stop; only free may be called then. */
bool dts_soap_timing_try(dts_soap_timing *timing, const dts_soap_change *changes, size_t count);
void dts_soap_timing_accept(dts_soap_timing *timing);
void dts_soap_timing_reject(dts_soap_timing *timing);

/* A task as it was timed. */
typedef struct dts_soap_span {
    size_t op;
    dts_soap_kind kind;      /* of its group: forward, backward or update; or SYNC */
    bool transfer;           /* brings an input (forward) or a gradient (backward) */
    const uint32_t *streams; /* (plan/lower/soap.h) */
    size_t stream_count;
    dts_time start, end;
} dts_soap_span;

typedef void dts_soap_watcher(void *context, const dts_soap_span *span);

/* Tells every task that is timed from now on, in the order of its streams: set tells all tasks of a strategy. NULL:
 * nobody. */
void dts_soap_timing_watch(dts_soap_timing *timing, dts_soap_watcher *watcher, void *context);

/* Of the strategy last set or tried. */
dts_time dts_soap_timing_end(const dts_soap_timing *timing);
int64_t dts_soap_timing_peak_B(const dts_soap_timing *timing); /* of the fullest device */

/* The accepted strategy. */
const dts_soap_choice *dts_soap_timing_choices(const dts_soap_timing *timing);

/* Tasks timed so far, and those that full simulations would have timed: how much the deltas saved. */
void dts_soap_timing_counts(const dts_soap_timing *timing, uint64_t *timed, uint64_t *full);

#endif
