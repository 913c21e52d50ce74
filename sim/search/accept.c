/* Which plan may be the answer: the best that the asker accepts (a launcher can express it, say). When the best of what
 * was simulated is not accepted, the best by closed form that are take their turn, so that the answer is no leftover.
 */
#include <math.h>

#include "search/layouts.h"

enum { BATCH = 8, MOST_ASKED = 1000 };

/* Candidates whose closed form is beyond the best accepted one by more than this are not asked for: that is how far it
 * is off for most families (exhaustive.c). */
static const double PROMISING = 1.3;

static bool fits(const dts_finding *f) {
    return f->outcome.kind == DTS_OUTCOME_SIMULATED && f->outcome.figures.fits;
}

/* The best finding that fits with this acceptance. */
static long best_of(const dts_search_context *c, dts_acceptance acceptance) {
    long best = DTS_NOWHERE;
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        if (fits(f) && f->acceptance == acceptance &&
            (best < 0 || dts_findings_compare(c->request->objective, f, &c->search->findings[best]) < 0)) {
            best = (long)i;
        }
    }
    return best;
}

static dts_status ask(const dts_search_context *c, const dts_candidate *candidate, bool *accepted, dts_diag *diag) {
    return c->request->accepts(c->request->accepts_context, candidate, accepted, diag);
}

/* Asks of the findings, the best first, until one is accepted. */
static dts_status ask_findings(dts_search_context *c, dts_diag *diag) {
    dts_status status = DTS_OK;
    bool accepted = best_of(c, DTS_ACCEPTED) >= 0;
    for (long next = best_of(c, DTS_NOT_ASKED); next >= 0 && !accepted && status == DTS_OK;
         next = best_of(c, DTS_NOT_ASKED)) {
        dts_finding *f = &c->search->findings[next];
        status = ask(c, &f->candidate, &accepted, diag);
        f->acceptance = accepted ? DTS_ACCEPTED : DTS_PASSED_OVER;
    }
    return status;
}

static double value_in_scores(const dts_search_context *c, long index) {
    if (index < 0) {
        return INFINITY;
    }
    const dts_figures *f = &c->search->findings[index].outcome.figures;
    return c->request->objective == DTS_OBJECTIVE_MEMORY ? f->peak_allocated_gib * 1024 * 1024 * 1024
                                                         : f->iteration_time_s;
}

static dts_status simulate(dts_search_context *c, const dts_ranked *batch, size_t count, dts_diag *diag) {
    dts_status status = dts_layouts_simulate(c, batch, count, diag);
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        long index = dts_layouts_find(c, &batch[i].candidate);
        if (index >= 0) {
            c->search->findings[index].acceptance = DTS_ACCEPTED;
        }
    }
    return status;
}

/* Simulates accepted candidates that may be better than the accepted findings, the most promising first. */
static dts_status look_for_more(dts_search_context *c, dts_diag *diag) {
    size_t limit = c->simulations == 0 ? SIZE_MAX : c->search->count + c->simulations;
    size_t waiting = 0, asked = 0;
    dts_ranked batch[BATCH];
    dts_status status = DTS_OK;
    for (size_t i = 0; i < c->best.count && status == DTS_OK && asked < MOST_ASKED && !dts_layouts_stopped(c); i++) {
        const dts_ranked *r = &c->best.items[i];
        double beat = value_in_scores(c, best_of(c, DTS_ACCEPTED));
        if (r->score > PROMISING * beat || c->search->count + waiting >= limit) {
            break;
        }
        if (dts_layouts_least(c, &r->estimate) >= beat || dts_layouts_find(c, &r->candidate) >= 0) {
            continue;
        }
        bool accepted = false;
        status = ask(c, &r->candidate, &accepted, diag);
        asked++;
        if (accepted) {
            batch[waiting++] = *r;
        }
        if (waiting == BATCH && status == DTS_OK) {
            status = simulate(c, batch, waiting, diag);
            waiting = 0;
        }
    }
    return status == DTS_OK && !dts_layouts_stopped(c) ? simulate(c, batch, waiting, diag) : status;
}

dts_status dts_layouts_accept(dts_search_context *c, dts_diag *diag) {
    if (c->request->accepts == NULL) {
        return DTS_OK;
    }
    dts_status status = ask_findings(c, diag);
    bool passed_over = best_of(c, DTS_PASSED_OVER) >= 0;
    if (status == DTS_OK && passed_over) {
        status = look_for_more(c, diag);
    }
    return status;
}
