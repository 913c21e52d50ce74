/* From many candidates to the few that are simulated in full.
 *
 * A coarse simulation (run/coarse_run.h) takes about a millisecond where one of every kernel takes thirty, and is
 * mostly within 0.2 % of it in time, exact in memory. So many candidates are looked at coarsely, in the order of what
 * those that differ least from them, or else their families, have taken beyond their closed forms, and the best of them
 * is simulated as `dtsim run` does, for bounds and families to learn; then those that come close to the best are
 * simulated like that too, the best first, and only these are ranked. What a family takes in full beyond its coarse
 * simulation decides who is still close. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "search/layouts.h"

/* Numbers are independent of that of the threads, as the answer has to be. */
enum {
    BATCH = 32,     /* coarse at a time */
    TRIED = 2,      /* of these in full at once */
    REFINED = 8,    /* in full at a time */
    COARSE_FOR = 4, /* coarse for each that may be simulated in full */
    NEAR = 2,       /* axes in which candidates differ that are much alike */
    KNOWN = 32,     /* simulated in full of a family: then it is known how far coarse simulation is off for it */
    TOLD = 8,       /* then it is known roughly */
};

/* The closed form may be off by so much for a family of which none has been looked at (exhaustive.c). */
static const double PROMISING = 1.3;
/* What is simulated in full: within this of the best by coarse simulation. Largest difference within a family in 300
 * layouts of 175B: 1.5 %. */
static const double CLOSE = 1.03;
/* Of a family that is known: beyond what full simulations of it differ from coarse ones among each other. As much as
 * makes two layouts one answer (conclude.c). */
static const double CLOSE_KNOWN = 1.001;
/* The closed form of the memory is no bound: beyond this it is believed. */
static const double DOUBT = 1.05;
/* Where a peak depends on an order that a first look does not have, the first look's own is believed beyond this: of
 * 946 such layouts three had less than half of it in full, and none less than 1/2.9. Copies that fall behind with every
 * microbatch are far beyond, and take the longest to simulate in full. */
static const double DISBELIEF = 3;

/* ---- coarse simulation ----------------------------------------------------------------------------------------------
 */

typedef struct screen_work {
    dts_search_context *c;
    dts_screened *items;
    dts_status *status;
    dts_outcome *failures; /* of what could not be simulated */
    size_t count, done;
    bool twins;           /* now come the twins of others, one after the other */
    pthread_mutex_t lock; /* of the caches and the progress */
} screen_work;

/* The one that a candidate is the twin of, of those that have been looked at and those before it in the batch; NULL:
 * none is. */
static const dts_screened *twin_of(const screen_work *w, size_t index) {
    const dts_search_context *c = w->c;
    dts_candidate twin;
    const bool any = dts_layouts_twin(c, &w->items[index].of.candidate, &twin);
    const dts_screened *found = NULL;
    for (size_t i = 0; any && i < c->screened_count + index && found == NULL; i++) {
        found = dts_candidate_compare(&c->screened[i].of.candidate, &twin) == 0 ? &c->screened[i] : NULL;
    }
    return found;
}

static void tell_one(screen_work *w) {
    pthread_mutex_lock(&w->lock);
    w->done++;
    dts_layouts_tell(w->c, w->done, w->count, "a first look");
    pthread_mutex_unlock(&w->lock);
}

static void screen_one(void *context, size_t index) {
    screen_work *w = context;
    dts_screened *s = &w->items[index];
    const dts_screened *twin = twin_of(w, index);
    const bool waits = !w->twins && twin != NULL;
    if (waits || s->done || dts_layouts_stopped(w->c)) {
        return;
    }
    if (twin != NULL && twin->done) {
        s->screening = twin->screening;
        s->failed = twin->failed;
        s->no_memory = twin->no_memory;
        s->done = true;
        tell_one(w);
        return;
    }
    dts_scenario_values values;
    dts_layouts_values(w->c, &s->of.candidate, &values);
    dts_diag *diag = dts_diag_new();
    dts_block_cache *blocks = dts_layouts_take_cache(w->c, &w->lock);
    dts_status status = diag == NULL || blocks == NULL
                            ? DTS_NOMEM
                            : dts_screen_values(&values, blocks, w->c->request->stop, &s->screening, diag);
    dts_layouts_give_back(w->c, &w->lock, blocks);
    status = status == DTS_INVALID ? dts_outcome_of_errors(diag, &w->failures[index]) : status;
    if (status == DTS_NOMEM) { /* there is memory for others */
        dts_outcome_clear(&w->failures[index]);
        w->failures[index].kind = DTS_OUTCOME_NO_MEMORY;
    }
    s->no_memory = status == DTS_NOMEM;
    s->failed = dts_outcome_reason(&w->failures[index]) != NULL;
    dts_diag_free(diag);
    s->done = status == DTS_OK || s->failed;
    w->status[index] = s->done || status == DTS_INTERRUPTED ? DTS_OK : status;
    tell_one(w);
}

static bool make_room(dts_search_context *c, size_t more) {
    dts_screened *screened =
        dts_array_room(c->screened, &c->screened_capacity, c->screened_count + more, sizeof *screened);
    c->screened = screened != NULL ? screened : c->screened;
    return screened != NULL;
}

dts_status dts_layouts_screen(dts_search_context *c, const dts_ranked *candidates, size_t count, dts_diag *diag) {
    double begin_s = dts_clock_s();
    screen_work w = {.c = c, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    w.status = calloc(count + 1, sizeof *w.status);
    w.failures = calloc(count + 1, sizeof *w.failures);
    if (w.status == NULL || w.failures == NULL || !make_room(c, count)) {
        free(w.status);
        free(w.failures);
        return dts_diag_nomem(diag);
    }
    w.items = c->screened + c->screened_count;
    for (size_t i = 0; i < count; i++) {
        w.items[i] = (dts_screened){.of = candidates[i]};
    }
    dts_parallel_for(count, c->request->threads, screen_one, &w);
    w.twins = true;
    dts_parallel_for(count, 1, screen_one, &w);
    pthread_mutex_destroy(&w.lock);
    dts_status status = DTS_OK;
    for (size_t i = 0; i < count; i++) {
        status = w.status[i] != DTS_OK ? w.status[i] : status;
        c->search->interrupted |= !w.items[i].done && w.status[i] == DTS_OK;
        if (w.items[i].failed) {
            dts_layouts_note_failure(c, &w.items[i].of.candidate, dts_outcome_reason(&w.failures[i]));
        }
        dts_outcome_clear(&w.failures[i]);
        if (w.items[i].done) {
            c->screened[c->screened_count++] = w.items[i];
        }
    }
    free(w.status);
    free(w.failures);
    c->search->screenings = c->screened_count;
    c->search->screen_s += dts_clock_s() - begin_s;
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}

/* ---- what is known ------------------------------------------------------------------------------------------------
 */

static bool by_memory(const dts_search_context *c) {
    return c->request->objective == DTS_OBJECTIVE_MEMORY;
}

bool dts_screened_fits(const dts_search_context *c, const dts_screened *s) {
    const bool may_fit = s->screening.host_fill <= 1 && s->of.estimate.memory_B <= DOUBT * c->capacity_B &&
                         s->screening.allocated_B <= DISBELIEF * c->capacity_B;
    return !s->failed && (s->screening.memory_known ? s->screening.fits : may_fit);
}

/* Of the objective; smaller is better. */
static double value_of(const dts_search_context *c, const dts_screened *s) {
    double memory_B = s->screening.memory_known ? s->screening.allocated_B : s->of.estimate.memory_B;
    return by_memory(c) ? memory_B : s->screening.time_s;
}

/* Sums over the candidates of a family of what they took. */
typedef struct family {
    double estimated, coarse; /* of those that were looked at coarsely */
    double estimated_B, coarse_B;
    size_t known;       /* simulated in full as well */
    double least_ratio; /* full to coarse, of those that are known; 0: none is */
    double greatest_ratio;
    bool asked; /* in this batch */
} family;

static family *family_of(const dts_search_context *c, family *families, const dts_candidate *candidate) {
    return &families[dts_layouts_family(&c->search->space, candidate)];
}

static void learn(const dts_search_context *c, family *families) {
    memset(families, 0, dts_layouts_families(&c->search->space) * sizeof *families);
    for (size_t i = 0; i < c->screened_count; i++) {
        const dts_screened *s = &c->screened[i];
        family *of = family_of(c, families, &s->of.candidate);
        if (s->failed) {
            continue;
        }
        of->estimated += s->of.estimate.time_s;
        of->coarse += s->screening.time_s;
        of->estimated_B += s->screening.memory_known ? s->of.estimate.memory_B : 0;
        of->coarse_B += s->screening.memory_known ? s->screening.allocated_B : 0;
        long index = dts_layouts_find(c, &s->of.candidate);
        if (index >= 0 && c->search->findings[index].outcome.kind == DTS_OUTCOME_SIMULATED) {
            double ratio = c->search->findings[index].outcome.figures.iteration_time_s / s->screening.time_s;
            of->least_ratio = of->known > 0 ? fmin(of->least_ratio, ratio) : ratio;
            of->greatest_ratio = fmax(of->greatest_ratio, ratio);
            of->known++;
        }
    }
}

/* The best value of anything that was simulated in full and fits; INFINITY: nothing does. */
static double best_value(const dts_search_context *c) {
    static const double GIB = 1024.0 * 1024.0 * 1024.0;
    long index = dts_layouts_best(c);
    double best = INFINITY;
    if (index >= 0) {
        const dts_figures *f = &c->search->findings[index].outcome.figures;
        best = by_memory(c) ? f->peak_allocated_gib * GIB : f->iteration_time_s;
    }
    return best;
}

static bool something_fits(const dts_search_context *c) {
    bool fits = false;
    for (size_t i = 0; i < c->screened_count && !fits; i++) {
        fits = !c->screened[i].left_out && dts_screened_fits(c, &c->screened[i]);
    }
    return fits;
}

/* ---- choosing -------------------------------------------------------------------------------------------------------
 */

/* The smallest scores of many; of equal ones the first. */
typedef struct picks {
    double score[BATCH];
    size_t index[BATCH];
    size_t count, most;
} picks;

static bool is_picked(const picks *p, double score) {
    return p->count < p->most || score < p->score[p->count - 1];
}

static void pick(picks *p, double score, size_t index) {
    if (!is_picked(p, score)) {
        return;
    }
    size_t at = p->count < p->most ? p->count++ : p->count - 1;
    while (at > 0 && p->score[at - 1] > score) {
        p->score[at] = p->score[at - 1];
        p->index[at] = p->index[at - 1];
        at--;
    }
    p->score[at] = score;
    p->index[at] = index;
}

/* What is known of one of a list: how much more than its closed forms the nearest took that has been looked at. */
typedef struct listed {
    bool seen;
    int distance; /* axes in which that one differs; NEAR + 1: none is near */
    double time_ratio, memory_ratio;
} listed;

/* Has every candidate of the list learn from those that were looked at from first on. */
static void learn_near(const dts_search_context *c, const dts_top *list, size_t first, listed *known) {
    for (size_t i = 0; i < list->count; i++) {
        for (size_t k = first; k < c->screened_count && !known[i].seen; k++) {
            const dts_screened *s = &c->screened[k];
            const int32_t *a = list->items[i].candidate.value, *b = s->of.candidate.value;
            int distance = 0;
            for (int axis = 0; axis < DTS_AXIS_COUNT && distance <= known[i].distance; axis++) {
                distance += a[axis] != b[axis];
            }
            const bool alike = distance <= known[i].distance && distance <= NEAR && !s->failed &&
                               dts_layouts_family(&c->search->space, &list->items[i].candidate) ==
                                   dts_layouts_family(&c->search->space, &s->of.candidate);
            if (alike) {
                known[i].distance = distance;
                known[i].time_ratio = s->screening.time_s / s->of.estimate.time_s;
                known[i].memory_ratio =
                    s->screening.memory_known ? s->screening.allocated_B / s->of.estimate.memory_B : 1;
            }
        }
    }
}

/* The score of a candidate with what is known of others. */
static double corrected(const dts_search_context *c, const family *f, const listed *known, const dts_ranked *r) {
    if (by_memory(c)) {
        return r->score;
    }
    const bool near = known->distance <= NEAR;
    dts_estimate e = r->estimate;
    e.time_s *= near ? known->time_ratio : (f->coarse > 0 ? f->coarse / f->estimated : 1);
    e.memory_B *= near ? known->memory_ratio : (f->coarse_B > 0 ? f->coarse_B / f->estimated_B : 1);
    return dts_layouts_score(c, &e);
}

/* Those of a list that come next; one of each family that may hold the best comes first. */
static dts_status choose_coarse(const dts_search_context *c, const dts_top *list, family *families, listed *known,
                                picks *out, dts_diag *diag) {
    learn(c, families);
    double beat = best_value(c);
    dts_status status = DTS_OK;
    for (size_t i = 0; i < list->count && status == DTS_OK; i++) {
        const dts_ranked *r = &list->items[i];
        known[i].seen = known[i].seen || dts_layouts_least(c, &r->estimate) >= beat;
        if (known[i].seen) {
            continue;
        }
        family *f = family_of(c, families, &r->candidate);
        bool first = f->coarse <= 0 && !f->asked && r->score < PROMISING * beat;
        const double score = first ? 0 : corrected(c, f, &known[i], r);
        bool admitted = true;
        status = is_picked(out, score) ? dts_layouts_admits(c, &r->candidate, &admitted, diag) : DTS_OK;
        known[i].seen = !admitted;
        if (admitted) {
            f->asked = true;
            pick(out, score, i);
        }
    }
    for (size_t i = 0; i < out->count; i++) {
        known[out->index[i]].seen = true;
    }
    return status;
}

/* How many of the findings that fit are different answers. */
static size_t count_answers(const dts_search_context *c) {
    const dts_finding *f = c->search->findings;
    size_t count = 0;
    for (size_t i = 0; i < c->search->count; i++) {
        bool other = f[i].outcome.kind == DTS_OUTCOME_SIMULATED && f[i].outcome.figures.fits;
        for (size_t k = 0; k < i && other; k++) {
            other = !f[k].outcome.figures.fits || !dts_layouts_same_answer(c->request->objective, &f[k], &f[i]);
        }
        count += other;
    }
    return count;
}

/* How far behind the best may a candidate be that takes beyond its coarse simulation what its family took at least? Of
 * a family that is known, about one in KNOWN more takes less than all before it; it is taken to be less by what these
 * differ among each other, and by twice that where only TOLD are known, of which one in TOLD more does. */
static double margin_of(const family *f) {
    if (f->known < TOLD) {
        return CLOSE;
    }
    const double spread = f->greatest_ratio / f->least_ratio;
    return fmin(CLOSE, CLOSE_KNOWN * (f->known < KNOWN ? spread * spread : spread));
}

/* Those that have been looked at and not been simulated in full, the best first, as long as they are better than
 * the best or, if asked, close to it: what fits, and where nothing does, what lacks least. */
static void choose_full(const dts_search_context *c, family *families, bool close, picks *out) {
    learn(c, families);
    const bool enough = close && count_answers(c) >= c->request->answers;
    double best = best_value(c);
    bool any = isfinite(best) || something_fits(c);
    for (size_t i = 0; i < c->screened_count; i++) {
        const dts_screened *s = &c->screened[i];
        if (s->failed || s->left_out || dts_layouts_find(c, &s->of.candidate) >= 0 ||
            (any && !dts_screened_fits(c, s))) {
            continue;
        }
        const family *f = family_of(c, families, &s->of.candidate);
        double full = by_memory(c) || f->least_ratio <= 0 ? 1 : f->least_ratio;
        double score = any ? value_of(c, s) * full : s->screening.allocated_B;
        const double margin = enough ? margin_of(f) : (close ? CLOSE : 1);
        if (!isfinite(best) || score < margin * best) {
            pick(out, score, i);
        }
    }
}

static dts_status simulate_picked(dts_search_context *c, const picks *chosen, dts_diag *diag) {
    dts_ranked batch[BATCH];
    for (size_t i = 0; i < chosen->count; i++) {
        batch[i] = c->screened[chosen->index[i]].of;
    }
    return dts_layouts_simulate(c, batch, chosen->count, diag);
}

/* Simulates the best of what has been looked at in full where it seems better than all that was: bounds and families
 * learn from it. */
static dts_status try_best(dts_search_context *c, family *families, size_t limit, dts_diag *diag) {
    size_t room = limit > c->search->count ? limit - c->search->count : 0;
    picks chosen = {.most = room < TRIED ? room : TRIED};
    if (something_fits(c) && chosen.most > 0) {
        choose_full(c, families, false, &chosen);
    }
    return simulate_picked(c, &chosen, diag);
}

static dts_status screen_list(dts_search_context *c, const dts_top *list, family *families, listed *known, size_t limit,
                              dts_diag *diag) {
    dts_status status = DTS_OK;
    size_t full = limit > c->search->count ? limit - c->search->count : 0;
    size_t end = c->screened_count + COARSE_FOR * full;
    for (bool left = true; left && status == DTS_OK && c->screened_count < end && !dts_layouts_stopped(c);) {
        size_t room = end - c->screened_count;
        picks chosen = {.most = room < BATCH ? room : BATCH};
        status = choose_coarse(c, list, families, known, &chosen, diag);
        dts_ranked batch[BATCH];
        for (size_t i = 0; i < chosen.count; i++) {
            batch[i] = list->items[chosen.index[i]];
        }
        left = chosen.count > 0;
        const size_t first_new = c->screened_count;
        status = status == DTS_OK ? dts_layouts_screen(c, batch, chosen.count, diag) : status;
        learn_near(c, list, first_new, known);
        status = status == DTS_OK ? try_best(c, families, limit, diag) : status;
    }
    return status;
}

static dts_status refine(dts_search_context *c, family *families, size_t limit, dts_diag *diag) {
    dts_status status = DTS_OK;
    for (bool left = true; left && status == DTS_OK && c->search->count < limit && !dts_layouts_stopped(c);) {
        size_t room = limit - c->search->count;
        picks chosen = {.most = room < REFINED ? room : REFINED};
        choose_full(c, families, true, &chosen);
        status = simulate_picked(c, &chosen, diag);
        left = chosen.count > 0 && isfinite(best_value(c)); /* where nothing fits a few show what it lacks */
    }
    return status;
}

/* Is a screened candidate, as far as is known, what one of the findings is? */
static bool seems_known(const dts_search_context *c, const dts_screened *s) {
    dts_finding as = {.candidate = s->of.candidate};
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        as.outcome.figures = f->outcome.figures; /* but the time, which is all that is compared */
        as.outcome.figures.iteration_time_s = s->screening.time_s;
        if (f->outcome.figures.fits && dts_layouts_same_answer(DTS_OBJECTIVE_TIME, f, &as)) {
            return true;
        }
    }
    return false;
}

/* Those behind the best, until there are as many different answers as are wanted. */
static dts_status fill_answers(dts_search_context *c, size_t limit, dts_diag *diag) {
    dts_status status = DTS_OK;
    size_t have = count_answers(c);
    for (bool left = true; left && status == DTS_OK && !dts_layouts_stopped(c);) {
        size_t room = limit > c->search->count ? limit - c->search->count : 0;
        size_t wanted = c->request->answers > have ? c->request->answers - have : 0;
        size_t most = wanted < room ? wanted : room;
        picks chosen = {.most = most < REFINED ? most : REFINED};
        for (size_t i = 0; i < c->screened_count && chosen.most > 0; i++) {
            const dts_screened *s = &c->screened[i];
            if (!s->failed && !s->left_out && dts_screened_fits(c, s) && dts_layouts_find(c, &s->of.candidate) < 0 &&
                !seems_known(c, s)) {
                pick(&chosen, value_of(c, s), i);
            }
        }
        left = chosen.count > 0;
        status = simulate_picked(c, &chosen, diag);
        have = count_answers(c);
    }
    return status;
}

/* Those that a search which goes on has looked at before. */
static void mark_seen(const dts_search_context *c, const dts_top *list, listed *known) {
    for (size_t i = 0; i < list->count; i++) {
        known[i].distance = NEAR + 1;
        for (size_t k = 0; k < c->screened_count && !known[i].seen; k++) {
            known[i].seen = dts_candidate_compare(&c->screened[k].of.candidate, &list->items[i].candidate) == 0;
        }
    }
}

dts_status dts_layouts_refine_list(dts_search_context *c, const dts_top *list, size_t limit, dts_diag *diag) {
    listed *known = calloc(list->count + 1, sizeof *known);
    family *families = calloc(dts_layouts_families(&c->search->space), sizeof *families);
    dts_status status = known == NULL || families == NULL ? dts_diag_nomem(diag) : DTS_OK;
    if (status == DTS_OK) {
        mark_seen(c, list, known);
        learn_near(c, list, 0, known);
    }
    status = status == DTS_OK ? screen_list(c, list, families, known, limit, diag) : status;
    status = status == DTS_OK ? refine(c, families, limit, diag) : status;
    status = status == DTS_OK && c->request->answers > 0 ? fill_answers(c, limit, diag) : status;
    free(known);
    free(families);
    return status;
}
