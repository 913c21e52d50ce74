/* What a search has shown: the ranking, what became of every candidate, and how far the closed form was off. */
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/layouts.h"

bool dts_search_tie(const dts_search *search, const dts_finding *a, const dts_finding *b) {
    double x = dts_search_value(search->objective, &a->outcome.figures);
    double y = dts_search_value(search->objective, &b->outcome.figures);
    return fabs(x - y) < dts_tie * fmin(x, y);
}

/* ---- what became of all candidates ----------------------------------------------------------------------------------
 */

/* Candidates that have been simulated, or were to be, among those of the first walk. */
typedef struct tally {
    const dts_search_context *c;
    const dts_candidate *simulated, *screened; /* sorted */
    size_t simulated_count, screened_count;
    double best;              /* least value that could still be better */
    uint64_t no_better, open; /* simulated: by their bounds */
    uint64_t coarse;          /* not simulated, and not proven to be no better */
} tally;

static int by_candidate(const void *a, const void *b) {
    return dts_candidate_compare(a, b);
}

static const dts_candidate *find(const dts_candidate *candidate, const dts_candidate *sorted, size_t count) {
    return bsearch(candidate, sorted, count, sizeof *candidate, by_candidate);
}

static bool begins_one(const dts_candidate *candidate, int axes, const dts_candidate *candidates, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (memcmp(candidate->value, candidates[i].value, (size_t)axes * sizeof candidate->value[0]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_known(const void *context, const dts_candidate *candidate, int axes) {
    const tally *t = context;
    return begins_one(candidate, axes, t->simulated, t->simulated_count) ||
           begins_one(candidate, axes, t->screened, t->screened_count);
}

static void count(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    tally *t = context;
    if (dts_layouts_least_fill(t->c, estimate) > 1) {
        return;
    }
    const bool hopeless = dts_layouts_least(t->c, estimate) >= t->best;
    if (find(candidate, t->simulated, t->simulated_count) != NULL) {
        t->no_better += hopeless;
        t->open += !hopeless;
    } else {
        t->coarse += !hopeless && find(candidate, t->screened, t->screened_count) != NULL;
    }
}

/* Of all that may fit, by their bounds. */
static void count_all(const dts_search_context *c, double best, uint64_t *no_better, uint64_t *open) {
    *no_better = *open = 0;
    for (size_t pair = 0; pair < dts_layout_space_pairs(&c->search->space); pair++) {
        const dts_leasts *leasts = &c->leasts[pair];
        for (size_t i = 0; i < leasts->count; i++) {
            *no_better += leasts->items[i] >= best;
            *open += !(leasts->items[i] >= best);
        }
    }
}

/* Of what was simulated coarsely; or of what was in full, and of what could not be. Sorted, the caller frees them. */
static dts_candidate *sorted_candidates(const dts_search_context *c, bool coarse, size_t *count) {
    dts_candidate *out = calloc(c->search->count + c->screened_count + 1, sizeof *out);
    *count = 0;
    if (out == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < c->search->count && !coarse; i++) {
        out[(*count)++] = c->search->findings[i].candidate;
    }
    for (size_t i = 0; i < c->screened_count; i++) {
        if (c->screened[i].failed != coarse) {
            out[(*count)++] = c->screened[i].of.candidate;
        }
    }
    qsort(out, *count, sizeof *out, by_candidate);
    return out;
}

/* Of what is not proven to be too large. */
static void count_failures(dts_search_context *c) {
    dts_search_counts *n = &c->search->counts;
    n->simulated = n->failed = 0;
    for (size_t i = 0; i < c->screened_count; i++) {
        n->failed += c->screened[i].failed; /* such are not simulated in full */
    }
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        const bool failed = dts_outcome_reason(&f->outcome) != NULL;
        n->simulated += !failed;
        n->failed += failed && dts_layouts_least_fill(c, &f->estimate) <= 1;
    }
}

typedef struct fits {
    const dts_search_context *c;
    uint64_t no_memory;
} fits;

static void count_fits(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    (void)candidate;
    fits *f = context;
    f->no_memory += dts_layouts_least_fill(f->c, estimate) > 1;
}

/* With what the first walk passed over. */
static dts_status count_passed(dts_search_context *c, dts_diag *diag) {
    const size_t pairs = dts_layout_space_pairs(&c->search->space);
    fits *all = calloc(pairs > 0 ? pairs : 1, sizeof *all);
    if (all == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < pairs; i++) {
        all[i].c = c;
    }
    const dts_layout_watch watch = {.visit = count_fits};
    dts_walk_counts total;
    const dts_status status = dts_layouts_walk(c, &watch, all, sizeof *all, &total, diag);
    c->search->counts.legal = total.legal;
    c->search->counts.no_memory = 0;
    for (size_t i = 0; i < pairs; i++) {
        c->search->counts.no_memory += all[i].no_memory;
    }
    c->passed = false;
    free(all);
    return status;
}

static uint64_t known_of(const dts_search_counts *n) {
    return n->no_memory + n->simulated + n->failed + n->screened;
}

/* Without a look at all again, unless only what was passed over can tell whether anything is left. */
static dts_status leave_rest(dts_search_context *c, dts_diag *diag) {
    dts_search_counts *n = &c->search->counts;
    n->screened = 0;
    for (size_t i = 0; i < c->screened_count; i++) {
        n->screened += !c->screened[i].failed && dts_layouts_find(c, &c->screened[i].of.candidate) < 0;
    }
    const bool unclear = c->passed && n->legal <= known_of(n) && !dts_layouts_stopped(c);
    const dts_status status = unclear ? count_passed(c, diag) : DTS_OK;
    n->worse_by_estimate = n->legal > known_of(n) ? n->legal - known_of(n) : 0;
    return status;
}

/* Bounds know of no stalls of the allocator, so the best is that without any. */
static double least_full_s(const dts_search_context *c) {
    double least = INFINITY;
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        if (f->outcome.kind == DTS_OUTCOME_SIMULATED && f->outcome.figures.fits) {
            least = fmin(least, f->full_s);
        }
    }
    return least;
}

static dts_status count_rest(dts_search_context *c, dts_diag *diag) {
    if (dts_layouts_stopped(c) || c->request->only_here) {
        return leave_rest(c, diag);
    }
    size_t pairs = dts_layout_space_pairs(&c->search->space);
    tally *tallies = calloc(pairs > 0 ? pairs : 1, sizeof *tallies);
    size_t simulated_count = 0, screened_count = 0;
    dts_candidate *simulated = sorted_candidates(c, false, &simulated_count);
    dts_candidate *screened = sorted_candidates(c, true, &screened_count);
    if (tallies == NULL || simulated == NULL || screened == NULL) {
        free(tallies);
        free(simulated);
        free(screened);
        return dts_diag_nomem(diag);
    }
    long best = dts_layouts_best(c);
    double value = INFINITY;
    if (best >= 0) {
        const dts_figures *f = &c->search->findings[best].outcome.figures;
        value = c->request->objective == DTS_OBJECTIVE_MEMORY ? f->peak_allocated_gib * 1024 * 1024 * 1024
                                                              : least_full_s(c);
    }
    for (size_t i = 0; i < pairs; i++) {
        tallies[i] = (tally){.c = c,
                             .simulated = simulated,
                             .screened = screened,
                             .simulated_count = simulated_count,
                             .screened_count = screened_count,
                             .best = value};
    }
    const dts_layout_watch watch = {.visit = count, .wants = is_known};
    dts_walk_counts unused;
    dts_status status = dts_layouts_walk(c, &watch, tallies, sizeof *tallies, &unused, diag);
    dts_search_counts *n = &c->search->counts;
    count_all(c, value, &n->no_better, &n->worse_by_estimate);
    n->screened = 0;
    for (size_t i = 0; i < pairs && status == DTS_OK; i++) {
        n->no_better -= tallies[i].no_better;
        n->worse_by_estimate -= tallies[i].open + tallies[i].coarse;
        n->screened += tallies[i].coarse;
    }
    free(tallies);
    free(simulated);
    free(screened);
    c->search->proven = status == DTS_OK && n->worse_by_estimate + n->screened + n->failed == 0 && best >= 0;
    return status;
}

/* ---- closed form against simulation
 * ---------------------------------------------------------------------------------- */

/* Times of the same plans: by the first look, and by the closer one. */
typedef struct looks {
    double *first_s, *closer_s, *work; /* work: twice as many */
    size_t count;
} looks;

static void add_look(looks *l, double first_s, double closer_s) {
    l->first_s[l->count] = first_s;
    l->closer_s[l->count++] = closer_s;
}

static dts_disagreement compare(const looks *l) {
    dts_disagreement d = {.count = l->count, .rank_correlation = 1, .best_rank = 1};
    size_t best = 0;
    for (size_t i = 0; i < l->count; i++) {
        double error = fabs(l->first_s[i] / l->closer_s[i] - 1);
        d.mean_error += error / (double)l->count;
        d.worst_error = fmax(d.worst_error, error);
        bool tied = l->closer_s[i] <= l->closer_s[best] && l->first_s[i] < l->first_s[best];
        best = l->closer_s[i] < l->closer_s[best] || tied ? i : best;
    }
    for (size_t i = 0; i < l->count; i++) {
        d.best_rank += l->first_s[i] < l->first_s[best];
    }
    if (l->count > 1) {
        d.rank_correlation = gsl_stats_spearman(l->first_s, 1, l->closer_s, 1, l->count, l->work);
        d.rank_correlation = isfinite(d.rank_correlation) ? d.rank_correlation : 0; /* all alike */
    }
    return d;
}

/* Those of the findings that fit: by their closed forms. */
static void look_at_findings(const dts_search_context *c, looks *l) {
    l->count = 0;
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        if (f->outcome.kind == DTS_OUTCOME_SIMULATED && f->outcome.figures.fits && f->estimate.time_s > 0) {
            add_look(l, f->estimate.time_s, f->full_s);
        }
    }
}

/* Closed form against coarse simulation and full, and coarse simulation against full, none of which replays the caching
 * allocator: what it stalls the answer for is no error of theirs. */
static dts_status compare_steps(dts_search_context *c, dts_diag *diag) {
    const size_t most = c->search->count + c->screened_count + 1;
    double *room = calloc(4 * most, sizeof *room);
    if (room == NULL) {
        return dts_diag_nomem(diag);
    }
    looks l = {.first_s = room, .closer_s = room + most, .work = room + 2 * most};
    for (size_t i = 0; i < c->screened_count; i++) {
        const dts_screened *s = &c->screened[i];
        long index = dts_layouts_find(c, &s->of.candidate);
        if (index >= 0 && c->search->findings[index].outcome.figures.fits) {
            add_look(&l, s->screening.time_s, c->search->findings[index].full_s);
        }
    }
    c->search->coarse = compare(&l);
    look_at_findings(c, &l);
    c->search->closed = compare(&l);
    for (size_t i = 0; i < c->screened_count; i++) {
        const dts_screened *s = &c->screened[i];
        if (dts_screened_fits(c, s) && dts_layouts_find(c, &s->of.candidate) < 0) {
            add_look(&l, s->of.estimate.time_s, s->screening.time_s);
        }
    }
    c->search->disagreement = compare(&l);
    free(room);
    return DTS_OK;
}

/* ---- the ranking ----------------------------------------------------------------------------------------------- */

/* Sorts the findings and has baselines and shortages follow them. */
static dts_status rank(dts_search_context *c, dts_diag *diag) {
    dts_search *search = c->search;
    dts_finding *sorted = malloc((search->count > 0 ? search->count : 1) * sizeof *sorted);
    size_t *place = calloc(search->count > 0 ? search->count : 1, sizeof *place);
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
    c->capacity = search->count;
    return DTS_OK;
}

/* Rows of one answer: the degrees and the microbatch are the same, and the times closer than anybody would choose by.
 * What else differs (an offload that hides behind other work, a recomputation beside a slow network) changes nothing
 * here but perhaps the memory. */
static const double equal = 1e-3;

bool dts_layouts_same_answer(dts_objective objective, const dts_finding *a, const dts_finding *b) {
    static const dts_layout_axis shape[] = {DTS_AXIS_TENSOR, DTS_AXIS_PIPELINE, DTS_AXIS_CONTEXT, DTS_AXIS_EXPERT,
                                            DTS_AXIS_MICRO_BATCH};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
        if (a->candidate.value[shape[i]] != b->candidate.value[shape[i]]) {
            return false;
        }
    }
    const dts_figures *x = &a->outcome.figures, *y = &b->outcome.figures;
    double value_x = dts_search_value(objective, x), value_y = dts_search_value(objective, y);
    return fabs(y->iteration_time_s - x->iteration_time_s) <= equal * x->iteration_time_s &&
           fabs(value_y - value_x) <= equal * value_x;
}

/* Findings are sorted, so that those of one answer have nearly the value of its first. */
static void mark_answers(dts_search *search) {
    size_t answers = 0;
    for (size_t i = 0; i < search->count && search->findings[i].outcome.figures.fits; i++) {
        dts_finding *f = &search->findings[i];
        const double least = dts_search_value(search->objective, &f->outcome.figures) / (1 + equal);
        f->equal_to = i;
        for (size_t k = i;
             k-- > 0 && dts_search_value(search->objective, &search->findings[k].outcome.figures) >= least;) {
            if (search->findings[k].equal_to == k &&
                dts_layouts_same_answer(search->objective, &search->findings[k], f)) {
                f->equal_to = k;
                break;
            }
        }
        f->answer = f->equal_to == i ? answers++ : search->findings[f->equal_to].answer;
    }
}

bool dts_search_next_equal(const dts_search *search, size_t first, size_t *at) {
    const double most = (1 + equal) * dts_search_value(search->objective, &search->findings[first].outcome.figures);
    for (size_t i = *at + 1; i < search->count && search->findings[i].outcome.figures.fits; i++) {
        const dts_finding *f = &search->findings[i];
        if (f->equal_to == first) {
            *at = i;
            return true;
        }
        if (dts_search_value(search->objective, &f->outcome.figures) > most) {
            break;
        }
    }
    return false;
}

/* Of the plans that are accepted the best that surely fits, else the best that fits. Which plans come before another
 * is known only with the figures of `dtsim run`: retries of the allocator put the first of the quick figures behind
 * plans that nobody has asked about yet. */
static dts_status choose(const dts_search_context *c, long *chosen, dts_diag *diag) {
    dts_status status = DTS_OK;
    *chosen = DTS_NOWHERE;
    for (size_t i = 0; i < c->search->count && c->search->findings[i].outcome.figures.fits && status == DTS_OK; i++) {
        dts_finding *f = &c->search->findings[i];
        status = dts_layouts_ask_finding(c, f, diag);
        if (c->request->accepts == NULL || f->acceptance == DTS_ACCEPTED) {
            if (dts_finding_surely_fits(f)) {
                *chosen = (long)i;
                break;
            }
            *chosen = *chosen == DTS_NOWHERE ? (long)i : *chosen;
        }
    }
    return status;
}

/* A plan of the answer whose figures are cheaper ones than those of `dtsim run`: the first of the different answers,
 * all that are asked for where the allocator may not serve the best, or a baseline. */
static long unsettled(const dts_search_context *c, long chosen) {
    enum { ANSWERS = 3 };
    static const double quick = 1e6; /* tasks: replayed within a second */
    const dts_search *search = c->search;
    const bool sure = !(search->findings[0].outcome.figures.unserved_gib > 0);
    const size_t answers = sure || c->request->answers < ANSWERS ? ANSWERS : c->request->answers;
    for (size_t i = 0; i < search->count; i++) {
        const dts_finding *f = &search->findings[i];
        bool told =
            f->outcome.figures.fits && f->equal_to == i && f->answer < (f->tasks > quick ? (size_t)ANSWERS : answers);
        for (int b = 0; b < DTS_RULE_COUNT; b++) {
            told |= search->baselines[b] == (long)i;
        }
        told |= chosen == (long)i;
        if (told && !f->as_run && f->outcome.kind == DTS_OUTCOME_SIMULATED) {
            return (long)i;
        }
    }
    return DTS_NOWHERE;
}

/* The search estimates reserved memory and folds microbatches, which is much sooner and changes neither what fits nor,
 * but for retries of the allocator, the order. What it answers with gets the figures of `dtsim run`. */
static dts_status settle(dts_search_context *c, dts_diag *diag) {
    enum { MOST = 24 };
    dts_status status = rank(c, diag);
    for (int i = 0; i <= MOST && status == DTS_OK; i++) {
        mark_answers(c->search);
        long chosen = DTS_NOWHERE;
        status = c->request->accepts != NULL ? choose(c, &chosen, diag) : DTS_OK;
        long next = status == DTS_OK && i < MOST && !dts_layouts_stopped(c) ? unsettled(c, chosen) : DTS_NOWHERE;
        if (next < 0) {
            break;
        }
        status = dts_layouts_simulate_as_run(c, &c->search->findings[next]);
        status = status == DTS_OK ? rank(c, diag) : dts_diag_nomem(diag);
    }
    return status;
}

static void count_out_of_memory(dts_search_context *c) {
    uint64_t count = 0;
    for (size_t i = 0; i < c->screened_count; i++) {
        count += c->screened[i].no_memory;
    }
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        count += f->no_memory || f->outcome.kind == DTS_OUTCOME_NO_MEMORY;
    }
    c->search->counts.out_of_memory = count;
}

dts_status dts_layouts_conclude(dts_search_context *c, dts_diag *diag) {
    dts_search *search = c->search;
    count_failures(c);
    search->counts.no_better = search->counts.screened = search->counts.worse_by_estimate =
        0; /* of before it went on */
    search->chosen = DTS_NOWHERE;
    if (search->count == 0) {
        count_out_of_memory(c);
        return count_rest(c, diag);
    }
    dts_status status = count_rest(c, diag);
    status = status == DTS_OK ? settle(c, diag) : status;
    count_out_of_memory(c);
    status = status == DTS_OK ? choose(c, &search->chosen, diag) : status;
    return status == DTS_OK && search->objective != DTS_OBJECTIVE_MEMORY ? compare_steps(c, diag) : status;
}
