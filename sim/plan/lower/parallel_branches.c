/* A chain of operators that forks: shared experts beside the exchanges of routed ones (model/experts.c).
 *
 * The branches are issued in one order on one compute stream: kernels that fill a GPU take turns, whichever stream they
 * are launched on. So no kernel becomes faster, and what a branch gains is that it does not wait for the exchanges of
 * the other: a layer takes at least its kernels and at least its exchanges. */
#include "plan/lower/chunk_pass.h"

static void step_over(dts_walk *w) {
    const dts_branch here = {
        .handed_B = w->handed_B, .last = w->last, .arrivals = w->arrivals, .arriving_rows = w->arriving_rows};
    dts_branch to = w->other;
    w->other = here;
    for (int slot = 0; slot < DTS_WAITS; slot++) {
        w->other.waits[slot] = w->waits[slot];
        w->waits[slot] = to.waits[slot];
    }
    w->handed_B = to.handed_B;
    w->last = to.last;
    w->arrivals = to.arrivals;
    w->arriving_rows = to.arriving_rows;
    w->beside = !w->beside;
}

/* It reads what the kernels before have made, but not what is still on its way. */
static void fork(dts_walk *w) {
    w->branched = true;
    w->other = (dts_branch){.last = w->pass->stage->last_kernel};
    for (int slot = 0; slot < DTS_WAITS; slot++) {
        w->other.waits[slot] = DTS_NO_ID;
    }
}

static void join(dts_walk *w) {
    w->waits[DTS_WAIT_BRANCH] = w->other.waits[DTS_WAIT_INPUT];
    dts_walk_memory(w, w->pass->stage->last_kernel, DTS_AT_END, DTS_MEMORY_TEMPORARY, -w->other.handed_B);
    w->branched = false;
}

void dts_walk_branch(dts_walk *w, const dts_operator *o) {
    const bool beside = o != NULL && o->beside;
    if (beside && !w->branched) {
        fork(w);
    }
    if (beside != w->beside) {
        step_over(w);
    }
    if (w->branched && !beside && (o == NULL || o->joins)) {
        join(w);
    }
}
