/* What a search has shown: the ranking, what became of every candidate, and how far the closed form was off. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/layouts.h"

/* Two plans that the model cannot tell apart. The errors of the published tables (docs/accuracy.md) are larger, but
 * most of an error is common to all plans of one model on one cluster. */
static const double tie = 0.03;

bool dts_search_tie(const dts_search *search, const dts_finding *a, const dts_finding *b) {
    double x = dts_search_value(search->objective, &a->outcome.figures);
    double y = dts_search_value(search->objective, &b->outcome.figures);
    return fabs(x - y) < tie * fmin(x, y);
}

/* ---- the second walk ------------------------------------------------------------------------------------------------
 */

typedef struct tally {
    const dts_search_context *c;
    const dts_candidate *simulated; /* sorted */
    double best;                    /* least value that could still be better */
    uint64_t no_better, open;
} tally;

static int by_candidate(const void *a, const void *b) {
    return dts_candidate_compare(a, b);
}

static void count(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    tally *t = context;
    if (estimate->least_memory_B > t->c->capacity_B ||
        bsearch(candidate, t->simulated, t->c->search->count, sizeof *candidate, by_candidate) != NULL) {
        return;
    }
    bool hopeless = dts_layouts_least(t->c, estimate) >= t->best;
    t->no_better += hopeless;
    t->open += !hopeless;
}

static dts_status count_rest(dts_search_context *c, dts_diag *diag) {
    size_t pairs = dts_layout_space_pairs(&c->search->space);
    tally *tallies = calloc(pairs > 0 ? pairs : 1, sizeof *tallies);
    dts_candidate *simulated = calloc(c->search->count + 1, sizeof *simulated);
    if (tallies == NULL || simulated == NULL) {
        free(tallies);
        free(simulated);
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < c->search->count; i++) {
        simulated[i] = c->search->findings[i].candidate;
    }
    qsort(simulated, c->search->count, sizeof *simulated, by_candidate);
    long best = dts_layouts_best(c);
    double value = INFINITY;
    if (best >= 0) {
        const dts_figures *f = &c->search->findings[best].outcome.figures;
        value = c->request->objective == DTS_OBJECTIVE_MEMORY ? f->peak_allocated_gib * 1024 * 1024 * 1024
                                                              : f->iteration_time_s;
    }
    for (size_t i = 0; i < pairs; i++) {
        tallies[i] = (tally){.c = c, .simulated = simulated, .best = value};
    }
    dts_walk_counts total;
    dts_status status = dts_layouts_walk(c, count, tallies, sizeof *tallies, &total, diag);
    for (size_t i = 0; i < pairs && status == DTS_OK; i++) {
        c->search->counts.no_better += tallies[i].no_better;
        c->search->counts.worse_by_estimate += tallies[i].open;
    }
    free(tallies);
    free(simulated);
    c->search->proven = status == DTS_OK && c->search->counts.worse_by_estimate == 0 && best >= 0;
    return status;
}

/* ---- closed form against simulation
 * ---------------------------------------------------------------------------------- */

typedef struct pair_of_times {
    double estimated_s, simulated_s, rank;
} pair_of_times;

static int by_estimate(const void *a, const void *b) {
    const pair_of_times *x = a, *y = b;
    return (x->estimated_s > y->estimated_s) - (x->estimated_s < y->estimated_s);
}

/* Findings are in the order of the simulated times; ties of times do not happen in picoseconds, or do not matter. */
static dts_status compare_with_filter(dts_search *search, dts_diag *diag) {
    pair_of_times *pairs = calloc(search->count > 0 ? search->count : 1, sizeof *pairs);
    if (pairs == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_disagreement *d = &search->disagreement;
    for (size_t i = 0; i < search->count; i++) {
        const dts_finding *f = &search->findings[i];
        if (f->outcome.kind == DTS_OUTCOME_SIMULATED && f->outcome.figures.fits && f->estimate.time_s > 0) {
            double error = fabs(f->estimate.time_s / f->outcome.figures.iteration_time_s - 1);
            d->mean_error += error;
            d->worst_error = fmax(d->worst_error, error);
            pairs[d->count] =
                (pair_of_times){f->estimate.time_s, f->outcome.figures.iteration_time_s, (double)d->count};
            d->count++;
        }
    }
    double n = (double)d->count, squares = 0;
    qsort(pairs, d->count, sizeof *pairs, by_estimate);
    for (size_t i = 0; i < d->count; i++) {
        squares += (pairs[i].rank - (double)i) * (pairs[i].rank - (double)i);
        d->best_rank = pairs[i].rank == 0 ? i + 1 : d->best_rank;
    }
    d->mean_error = n > 0 ? d->mean_error / n : 0;
    d->rank_correlation = n > 1 ? 1 - 6 * squares / (n * (n * n - 1)) : 1;
    free(pairs);
    return DTS_OK;
}

/* ---- the ranking
 * ------------------------------------------------------------------------------------------------------ */

/* Sorts the findings and has baselines and shortages follow them. */
static dts_status rank(dts_search *search, dts_diag *diag) {
    dts_finding *sorted = malloc((search->count > 0 ? search->count : 1) * sizeof *sorted);
    size_t *place = malloc((search->count > 0 ? search->count : 1) * sizeof *place);
    if (sorted == NULL || place == NULL) {
        free(sorted);
        free(place);
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < search->count; i++) {
        size_t at = i;
        while (at > 0 && dts_findings_compare(search->objective, &search->findings[i], &sorted[at - 1]) < 0) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = search->findings[i];
    }
    for (size_t i = 0; i < search->count; i++) {
        for (size_t at = 0; at < search->count; at++) {
            if (dts_candidate_compare(&search->findings[i].candidate, &sorted[at].candidate) == 0) {
                place[i] = at;
            }
        }
    }
    for (int b = 0; b < DTS_RULE_COUNT; b++) {
        long index = search->baselines[b];
        search->baselines[b] = index < 0 ? DTS_NOWHERE : (long)place[index];
        search->shortages[b].lifted_by = place[search->shortages[b].lifted_by];
    }
    free(search->findings);
    free(place);
    search->findings = sorted;
    return DTS_OK;
}

static long choose(const dts_search_context *c) {
    for (size_t i = 0; i < c->search->count && c->search->findings[i].outcome.figures.fits; i++) {
        if (c->request->accepts == NULL || c->search->findings[i].acceptance == DTS_ACCEPTED) {
            return (long)i;
        }
    }
    return DTS_NOWHERE;
}

dts_status dts_layouts_conclude(dts_search_context *c, dts_diag *diag) {
    dts_search *search = c->search;
    search->counts.simulated = search->count;
    search->chosen = DTS_NOWHERE;
    if (search->count == 0) {
        return count_rest(c, diag);
    }
    dts_status status = count_rest(c, diag);
    status = status == DTS_OK ? rank(search, diag) : status;
    search->chosen = status == DTS_OK ? choose(c) : DTS_NOWHERE;
    return status == DTS_OK && search->objective != DTS_OBJECTIVE_MEMORY ? compare_with_filter(search, diag) : status;
}
