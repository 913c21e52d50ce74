/* Which plan may be the answer: the best that the asker accepts (a launcher can express it, say). When the best of what
 * was simulated is not accepted, those that are get a search of their own, so that the answer is no leftover. */
#include "search/layouts.h"

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

dts_status dts_layouts_ask_finding(const dts_search_context *c, dts_finding *f, dts_diag *diag) {
    bool accepted = true;
    if (c->request->accepts == NULL || f->acceptance != DTS_NOT_ASKED) {
        return DTS_OK;
    }
    const dts_status status = ask(c, &f->candidate, &accepted, diag);
    f->acceptance = accepted ? DTS_ACCEPTED : DTS_PASSED_OVER;
    return status;
}

/* Asks of the findings, the best first, until one is accepted. */
static dts_status ask_findings(dts_search_context *c, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (long next = best_of(c, DTS_NOT_ASKED); next >= 0 && best_of(c, DTS_ACCEPTED) < 0 && status == DTS_OK;
         next = best_of(c, DTS_NOT_ASKED)) {
        status = dts_layouts_ask_finding(c, &c->search->findings[next], diag);
    }
    return status;
}

dts_status dts_layouts_admits(const dts_search_context *c, const dts_candidate *candidate, bool *admitted,
                              dts_diag *diag) {
    *admitted = true;
    return c->only_accepted ? ask(c, candidate, admitted, diag) : DTS_OK;
}

dts_status dts_layouts_ask_all(dts_search_context *c, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < c->search->count && status == DTS_OK; i++) {
        status = fits(&c->search->findings[i]) ? dts_layouts_ask_finding(c, &c->search->findings[i], diag) : DTS_OK;
    }
    for (size_t i = 0; i < c->screened_count && status == DTS_OK; i++) {
        dts_screened *s = &c->screened[i];
        bool accepted = true;
        status = s->left_out ? DTS_OK : ask(c, &s->of.candidate, &accepted, diag);
        s->left_out = s->left_out || !accepted;
    }
    return status;
}

dts_status dts_layouts_keep_accepted(const dts_search_context *c, dts_top *list, size_t most, dts_diag *diag) {
    dts_status status = DTS_OK;
    size_t kept = 0;
    for (size_t i = 0; i < list->count && kept < most && status == DTS_OK; i++) {
        bool accepted = true;
        status = dts_layouts_admits(c, &list->items[i].candidate, &accepted, diag);
        if (accepted) {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
    return status;
}

/* A search of its own among what is accepted, with as many simulations as the first. */
static dts_status search_accepted(dts_search_context *c, dts_diag *diag) {
    const size_t limit = dts_layouts_limit(c);
    dts_status status = dts_layouts_ask_all(c, diag);
    if (status == DTS_OK && !dts_layouts_stopped(c)) {
        c->only_accepted = true;
        status = dts_layouts_simulate_list(c, &c->best, limit, diag);
        c->only_accepted = false;
    }
    return status;
}

dts_status dts_layouts_accept(dts_search_context *c, dts_diag *diag) {
    if (c->request->accepts == NULL) {
        return DTS_OK;
    }
    dts_status status = ask_findings(c, diag);
    bool passed_over = best_of(c, DTS_PASSED_OVER) >= 0;
    if (status == DTS_OK && passed_over) {
        status = search_accepted(c, diag);
    }
    return status;
}
