/* Best first: candidates are simulated in the order of the closed form until the number of simulations is used up or
 * until no other can be better, because its bound is not. Where there are more than may be simulated, coarse simulation
 * chooses (coarse_selection.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/layouts.h"

/* Candidates at a time: enough for all threads, few enough to stop early. Independent of the number of threads, as the
 * answer has to be. */
enum { BATCH = 8, REST = 1024 };

/* A family whose best closed form is within this of the best found may hold a better one: that is how far the closed
 * form is off for most families. */
static const double PROMISING = 1.3;

/* How good must a candidate be able to become? */
static double threshold(const dts_search_context *c) {
    long best = dts_layouts_best(c);
    if (best < 0) {
        return INFINITY;
    }
    const dts_figures *figures = &c->search->findings[best].outcome.figures;
    return c->request->objective == DTS_OBJECTIVE_MEMORY ? figures->peak_allocated_gib * 1024 * 1024 * 1024
                                                         : figures->iteration_time_s;
}

/* How much longer than its closed form a family of candidates has taken so far; this decides who is simulated next, and
 * changes no result. */
typedef struct family {
    double simulated_s, estimated_s;
    bool asked; /* in this batch */
} family;

static void learn(const dts_search_context *c, family *families) {
    memset(families, 0, dts_layouts_families(&c->search->space) * sizeof *families);
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        family *of = &families[dts_layouts_family(&c->search->space, &f->candidate)];
        if (f->outcome.kind == DTS_OUTCOME_SIMULATED && f->estimate.time_s > 0) { /* the scenario's own may have none */
            of->simulated_s += f->outcome.figures.iteration_time_s;
            of->estimated_s += f->estimate.time_s;
        }
    }
}

/* By what a candidate is chosen. One of each family that may hold the best comes first. */
static double corrected(const dts_search_context *c, family *families, const dts_ranked *r, double beat) {
    family *f = &families[dts_layouts_family(&c->search->space, &r->candidate)];
    if (c->request->objective == DTS_OBJECTIVE_MEMORY) {
        return r->score;
    }
    if (f->estimated_s > 0) {
        return r->score * f->simulated_s / f->estimated_s;
    }
    bool first = !f->asked && r->score < PROMISING * beat;
    f->asked = true;
    return first ? 0 : r->score;
}

/* The best of a sorted list that have not been seen and may still become the best. */
static dts_status choose(const dts_search_context *c, const dts_top *list, family *families, bool *seen, dts_top *out,
                         dts_diag *diag) {
    learn(c, families);
    double beat = threshold(c);
    dts_status status = DTS_OK;
    for (size_t i = 0; i < list->count && status == DTS_OK; i++) {
        const dts_ranked *r = &list->items[i];
        bool open = !seen[i] && dts_layouts_least(c, &r->estimate) < beat;
        status = open ? dts_layouts_admits(c, &r->candidate, &open, diag) : DTS_OK;
        seen[i] = !open;
        if (open) {
            dts_top_add(out, corrected(c, families, r, beat), &r->candidate, &r->estimate);
        }
    }
    for (size_t i = 0; i < list->count; i++) {
        for (size_t k = 0; k < out->count && !seen[i]; k++) {
            seen[i] = dts_candidate_compare(&list->items[i].candidate, &out->items[k].candidate) == 0;
        }
    }
    return status;
}

/* Are there more candidates that may become the best than may be simulated? */
static dts_status look_how_long(const dts_search_context *c, const dts_top *list, size_t limit, bool *is_long,
                                dts_diag *diag) {
    double beat = threshold(c);
    size_t open = c->search->count;
    dts_status status = DTS_OK;
    *is_long = false;
    for (size_t i = 0; i < list->count && limit != SIZE_MAX && !*is_long && status == DTS_OK && !dts_layouts_stopped(c);
         i++) {
        bool admitted = dts_layouts_least(c, &list->items[i].estimate) < beat;
        status = admitted ? dts_layouts_admits(c, &list->items[i].candidate, &admitted, diag) : DTS_OK;
        open += admitted;
        *is_long = open > limit;
    }
    return status;
}

dts_status dts_layouts_simulate_list(dts_search_context *c, const dts_top *list, size_t limit, dts_diag *diag) {
    bool is_long = false;
    dts_status status = look_how_long(c, list, limit, &is_long, diag);
    if (status != DTS_OK || is_long) {
        return status == DTS_OK ? dts_layouts_refine_list(c, list, limit, diag) : status;
    }
    bool *seen = calloc(list->count + 1, sizeof *seen);
    family *families = calloc(dts_layouts_families(&c->search->space), sizeof *families);
    if (seen == NULL || families == NULL) {
        free(seen);
        free(families);
        return dts_diag_nomem(diag);
    }
    for (bool left = true; left && status == DTS_OK && c->search->count < limit && !dts_layouts_stopped(c);) {
        dts_ranked items[BATCH];
        size_t most = limit - c->search->count < BATCH ? limit - c->search->count : BATCH;
        dts_top batch = {.items = items, .capacity = most};
        status = choose(c, list, families, seen, &batch, diag);
        left = batch.count > 0;
        status = status == DTS_OK ? dts_layouts_simulate(c, items, batch.count, diag) : status;
    }
    free(seen);
    free(families);
    return status;
}

/* Candidates that the first walk did not keep, and that no bound excludes. */
typedef struct rest {
    const dts_search_context *c;
    double beat;
    dts_top open;
} rest;

static void look_at_rest(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    rest *r = context;
    if (dts_layouts_least_fill(r->c, estimate) <= 1 && dts_layouts_least(r->c, estimate) < r->beat &&
        dts_layouts_find(r->c, candidate) < 0) {
        dts_top_add(&r->open, dts_layouts_score(r->c, estimate), candidate, estimate);
    }
}

/* Puts them into *out, which the caller frees. */
static dts_status collect_rest(dts_search_context *c, dts_top *out, dts_diag *diag) {
    size_t pairs = dts_layout_space_pairs(&c->search->space);
    rest *rests = calloc(pairs > 0 ? pairs : 1, sizeof *rests);
    dts_status status = rests == NULL ? DTS_NOMEM : dts_top_new(REST, out);
    for (size_t i = 0; i < pairs && status == DTS_OK; i++) {
        rests[i] = (rest){.c = c, .beat = threshold(c)};
        status = dts_top_new(REST, &rests[i].open);
    }
    const dts_layout_watch watch = {.visit = look_at_rest};
    dts_walk_counts unused;
    status = status == DTS_OK ? dts_layouts_walk(c, &watch, rests, sizeof *rests, &unused, diag) : dts_diag_nomem(diag);
    for (size_t i = 0; i < pairs && rests != NULL; i++) {
        dts_top_merge(out, &rests[i].open);
        dts_top_free(&rests[i].open);
    }
    free(rests);
    return status;
}

static dts_status look(dts_search_context *c, dts_diag *diag) {
    size_t limit = dts_layouts_limit(c);
    dts_status status = dts_layouts_simulate_list(c, &c->best, limit, diag);
    bool left = true;
    while (left && status == DTS_OK && c->screened_count == 0 && c->search->count < limit && !dts_layouts_stopped(c)) {
        dts_top open = {0};
        const size_t before = c->search->count;
        status = collect_rest(c, &open, diag);
        status = status == DTS_OK ? dts_layouts_simulate_list(c, &open, limit, diag) : status;
        left = c->search->count > before; /* of what is open, none may be accepted */
        dts_top_free(&open);
    }
    return status;
}

/* Where only the best is wanted, what is not accepted is looked at only if nothing else fits: two searches would take
 * twice as long. */
static dts_status run(dts_search_context *c, dts_diag *diag) {
    dts_status status = DTS_OK;
    c->keeps_to_accepted = c->request->accepts != NULL && c->request->only_here;
    if (c->keeps_to_accepted) {
        c->only_accepted = true;
        status = look(c, diag);
        c->keeps_to_accepted = dts_layouts_best(c) >= 0;
        c->only_accepted = false;
    }
    return status == DTS_OK && !c->keeps_to_accepted ? look(c, diag) : status;
}

const dts_search_method dts_method_exhaustive = {
    .name = "exhaustive",
    .summary = "all by closed form and proven bounds, the best of them by simulation",
    .run = run,
};
