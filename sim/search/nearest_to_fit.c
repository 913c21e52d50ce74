/* Where nothing fits: the plan that lacks least, so that the answer can say what binds.
 *
 * A plan's fill is its bytes over the capacity, of the fullest GPU or host. Of what is proven not to fit those come
 * first whose bounds are lowest; once the bound of the next one is above the least fill that was simulated, no other
 * can lack less. */
#include <math.h>

#include "search/layouts.h"

/* Bounds leave out temporaries: a few more than the first are looked at. */
enum { BATCH = 4, MOST = 16 };

static double least_simulated(const dts_search_context *c) {
    double least = INFINITY;
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        least = f->outcome.kind == DTS_OUTCOME_SIMULATED ? fmin(least, f->fill) : least;
    }
    return least;
}

dts_status dts_layouts_simulate_nearest(dts_search_context *c, dts_diag *diag) {
    dts_status status = DTS_OK;
    if (c->request->only_here || dts_layouts_best(c) >= 0) {
        return DTS_OK;
    }
    for (size_t i = 0; i < c->nearest.count && i < MOST && status == DTS_OK && !dts_layouts_stopped(c); i += BATCH) {
        if (c->nearest.items[i].score >= least_simulated(c)) {
            break;
        }
        const size_t left = c->nearest.count - i;
        status = dts_layouts_simulate(c, &c->nearest.items[i], left < BATCH ? left : BATCH, diag);
    }
    return status;
}
