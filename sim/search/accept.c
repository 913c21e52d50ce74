/* Which plan may be the answer: the best that the asker accepts (a launcher can express it, say). When the best of what
 * was simulated is not accepted, those that are get a search of their own, so that the answer is no leftover. */
#include "search/layouts.h"

/* Coarse simulation looks at four times the usual number of simulations; more than that need not be asked for. */
enum { MOST_KEPT = 1024 };

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

/* Those of the best by closed form that are accepted, up to MOST_KEPT of them, and what is known of them already. */
static dts_status collect(dts_search_context *c, dts_top *out, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < c->best.count && out->count < out->capacity && status == DTS_OK && !dts_layouts_stopped(c);
         i++) {
        const dts_ranked *r = &c->best.items[i];
        const long index = dts_layouts_find(c, &r->candidate);
        bool accepted = index >= 0 && c->search->findings[index].acceptance == DTS_ACCEPTED;
        if (index < 0 || c->search->findings[index].acceptance == DTS_NOT_ASKED) {
            status = ask(c, &r->candidate, &accepted, diag);
        }
        if (index >= 0) {
            c->search->findings[index].acceptance = accepted ? DTS_ACCEPTED : DTS_PASSED_OVER;
        }
        if (accepted) {
            dts_top_add(out, r->score, &r->candidate, &r->estimate);
        }
    }
    return status;
}

/* What was looked at coarsely stays in question if it is on the list. */
static void leave_out_others(dts_search_context *c, const dts_top *list) {
    for (size_t i = 0; i < c->screened_count; i++) {
        dts_screened *s = &c->screened[i];
        s->left_out = true;
        for (size_t k = 0; k < list->count && s->left_out; k++) {
            s->left_out = dts_candidate_compare(&list->items[k].candidate, &s->of.candidate) != 0;
        }
    }
}

/* A search of its own among what is accepted, with as many simulations as the first. */
static dts_status search_accepted(dts_search_context *c, dts_diag *diag) {
    const size_t limit = dts_layouts_limit(c);
    dts_top list = {0};
    dts_status status = dts_top_new(c->best.count < MOST_KEPT ? c->best.count : MOST_KEPT, &list) == DTS_OK
                            ? collect(c, &list, diag)
                            : dts_diag_nomem(diag);
    if (status == DTS_OK && !dts_layouts_stopped(c)) {
        leave_out_others(c, &list);
        c->only_accepted = true;
        status = dts_layouts_simulate_list(c, &list, limit, diag);
        c->only_accepted = false;
    }
    dts_top_free(&list);
    return status;
}

dts_status dts_layouts_ask_all(dts_search_context *c, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < c->search->count && status == DTS_OK; i++) {
        status = fits(&c->search->findings[i]) ? dts_layouts_ask_finding(c, &c->search->findings[i], diag) : DTS_OK;
    }
    for (size_t i = 0; i < c->screened_count && status == DTS_OK; i++) {
        dts_screened *s = &c->screened[i];
        bool accepted = true;
        status = !s->left_out && dts_screened_fits(c, s) ? ask(c, &s->of.candidate, &accepted, diag) : DTS_OK;
        s->left_out = s->left_out || !accepted;
    }
    return status;
}

dts_status dts_layouts_keep_accepted(const dts_search_context *c, dts_top *list, size_t most, dts_diag *diag) {
    dts_status status = DTS_OK;
    size_t kept = 0;
    for (size_t i = 0; i < list->count && kept < most && status == DTS_OK; i++) {
        bool accepted = true;
        status = c->only_accepted ? ask(c, &list->items[i].candidate, &accepted, diag) : DTS_OK;
        if (accepted) {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
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
