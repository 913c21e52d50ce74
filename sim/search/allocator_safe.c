/* Plans that surely fit.
 *
 * Simulations of a search do not replay the caching allocator, which doubles their time. Where the replay of the best
 * plan has a request fail, what is wanted is the best plan of which none fails. How full a GPU may be depends on the
 * sizes and the order of the tensors, which are much the same in a family of candidates: a plan that fails is a ceiling
 * for its family, and a plan below it that does not is a floor. So the replays go to the fastest below the ceilings,
 * and every answer moves one of these; where none is left, one more walk looks below the ceilings, which the first did
 * not know of, and where that is not enough another one looks above them, too: members of a family are not all alike.
 */
#include <math.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "run/verdict.h"
#include "search/layouts.h"

/* Independent of the number of threads, as the answer has to be. */
enum {
    BATCH = 4,       /* replays at once */
    ROUNDS = 2,      /* walks: below the ceilings, anywhere */
    KEPT = 16,       /* of each family in a walk */
    SCREENED = 64,   /* looked at coarsely after a walk */
    COLLECTED = 512, /* of which these are accepted, where only such count */
    SPLITS = 2,      /* context parallelism, or none: closed forms are off by other amounts */
};

/* The first step below a plan that fails, in shares of the GPU; each further one is twice as long. */
static const double STEP = 0.01;
/* Plans of one family whose memory is nearer than this fail together. */
static const double ALIKE = 0.001;
/* Tasks of a simulation whose replay counts for two. */
static const double LONG = 4e6;
/* What is worth a replay: more than two plans differ that are one answer (conclude.c). */
static const double GAIN = 0.999;

/* What is known of a family, by how full the GPU is. */
typedef struct family {
    double failed;              /* the least with which a replay failed; INFINITY: none did */
    double served;              /* the most below that with which one did not; 0: none */
    double steps;               /* how far below failed the next one is tried, where nothing is served */
    double least_ratio[SPLITS]; /* of coarse times to closed forms; INFINITY: none is known */
} family;

typedef struct sure {
    dts_search_context *c;
    family *families;
    double best_s; /* of a plan that is known to fit */
    double left;   /* replays */
    double cost;   /* of a replay, as of a short one */
} sure;

static bool fits(const dts_finding *f) {
    return f->outcome.kind == DTS_OUTCOME_SIMULATED && f->outcome.figures.fits;
}

/* What does not count teaches about its family all the same. */
static bool counts(const sure *s, const dts_finding *f) {
    return fits(f) && (!s->c->only_accepted || f->acceptance == DTS_ACCEPTED);
}

/* A request fails, or enough of them only after the allocator has given everything back: what is as full in a family
 * fails or pays alike, so that the next replay goes elsewhere. */
static bool fails(const dts_finding *f) {
    return f->outcome.figures.unserved_gib > 0 || f->outcome.figures.retry_share >= dts_retries_told;
}

/* It may be the answer: what pays runs, with the time of its replay. */
static bool runs(const dts_finding *f) {
    return !(f->outcome.figures.unserved_gib > 0);
}

static double filled(const dts_search_context *c, const dts_finding *f) {
    return f->outcome.figures.peak_allocated_gib * 1024 * 1024 * 1024 / c->capacity_B;
}

static double expected_fill(const dts_search_context *c, const dts_screened *s) {
    return (s->screening.memory_known ? s->screening.allocated_B : s->of.estimate.memory_B) / c->capacity_B;
}

static family *family_of(const sure *s, const dts_candidate *candidate) {
    return &s->families[dts_layouts_family(&s->c->search->space, candidate)];
}

static void note_failure(family *of, double fill) {
    of->failed = fmin(of->failed, fill);
    of->steps = of->steps > 0 ? 2 * of->steps : STEP;
}

/* How near the ceiling a plan may be: half of the way from a floor, as a search by halves; all of it but the first
 * step; anywhere but beside one that fails, as members of a family are not all alike. */
typedef enum courage { HALVED, BELOW, ANYWHERE, COURAGES } courage;

static bool is_beside_failed(const sure *s, const dts_candidate *candidate, double fill) {
    const dts_search *search = s->c->search;
    bool beside = false;
    for (size_t i = 0; i < search->count && !beside; i++) {
        const dts_finding *f = &search->findings[i];
        beside = f->as_run && fits(f) && fails(f) && fabs(filled(s->c, f) - fill) < ALIKE &&
                 family_of(s, &f->candidate) == family_of(s, candidate);
    }
    return beside;
}

static bool dares(const sure *s, courage most, const dts_candidate *candidate, double fill) {
    const family *f = family_of(s, candidate);
    switch (most) {
        case HALVED:
            return fill <= (f->served > 0 ? (f->served + f->failed) / 2 : f->failed - f->steps);
        case BELOW:
            return fill <= f->failed - STEP;
        case ANYWHERE:
            return !is_beside_failed(s, candidate, fill);
        case COURAGES:
            break;
    }
    return false;
}

static size_t splits(const dts_candidate *candidate) {
    return candidate->value[DTS_AXIS_CONTEXT] > 1;
}

static void learn(sure *s) {
    const dts_search *search = s->c->search;
    const size_t count = dts_layouts_families(&search->space);
    s->best_s = INFINITY;
    for (size_t i = 0; i < count; i++) {
        s->families[i] = (family){.failed = INFINITY, .least_ratio = {INFINITY, INFINITY}};
    }
    for (size_t i = 0; i < search->count; i++) {
        const dts_finding *f = &search->findings[i];
        if (f->as_run && fits(f) && fails(f)) {
            note_failure(family_of(s, &f->candidate), filled(s->c, f));
        }
    }
    for (size_t i = 0; i < search->count; i++) {
        const dts_finding *f = &search->findings[i];
        if (f->as_run && fits(f) && !fails(f)) {
            family *of = family_of(s, &f->candidate);
            const double fill = filled(s->c, f);
            of->served = fill < of->failed ? fmax(of->served, fill) : of->served;
        }
        if (f->as_run && counts(s, f) && runs(f)) {
            s->best_s = fmin(s->best_s, f->outcome.figures.iteration_time_s);
        }
    }
    for (size_t i = 0; i < s->c->screened_count; i++) {
        const dts_screened *of = &s->c->screened[i];
        family *f = family_of(s, &of->of.candidate);
        if (!of->failed) {
            double *least = &f->least_ratio[splits(&of->of.candidate)];
            *least = fmin(*least, of->screening.time_s / of->of.estimate.time_s);
        }
    }
}

/* ---- replays ------------------------------------------------------------------------------------------------------
 */

/* Of the findings first, then of what has been looked at coarsely. */
static bool next_of(const sure *s, courage most, const bool *taken, size_t *next) {
    const dts_search_context *c = s->c;
    double best_s = GAIN * s->best_s;
    bool any = false;
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        if (!taken[i] && !f->as_run && counts(s, f) && f->outcome.figures.iteration_time_s < best_s &&
            dares(s, most, &f->candidate, filled(c, f))) {
            best_s = f->outcome.figures.iteration_time_s;
            *next = i;
            any = true;
        }
    }
    for (size_t i = 0; i < c->screened_count; i++) {
        const dts_screened *of = &c->screened[i];
        if (!taken[c->search->count + i] && !of->failed && !of->left_out && of->screening.time_s < best_s &&
            dts_screened_fits(c, of) && dares(s, most, &of->of.candidate, expected_fill(c, of)) &&
            dts_layouts_find(c, &of->of.candidate) < 0) {
            best_s = of->screening.time_s;
            *next = c->search->count + i;
            any = true;
        }
    }
    return any;
}

/* The fastest below the ceilings, each as if those before it failed: so they are different, and their answers tell more
 * than those of the same memory four times. First the best alone, which is mostly enough. */
static dts_status choose(sure *s, dts_ranked *out, size_t most, size_t *count) {
    const dts_search_context *c = s->c;
    bool *taken = calloc(c->search->count + c->screened_count + 1, sizeof *taken);
    size_t next = 0;
    *count = 0;
    if (taken == NULL) {
        return DTS_NOMEM;
    }
    courage at = HALVED;
    while (at < COURAGES && !next_of(s, at, taken, &next)) {
        at++;
    }
    while (at < COURAGES && *count < most && next_of(s, at, taken, &next)) {
        taken[next] = true;
        const dts_finding *f = next < c->search->count ? &c->search->findings[next] : NULL;
        const dts_screened *of = f == NULL ? &c->screened[next - c->search->count] : NULL;
        out[*count] = f == NULL ? of->of : (dts_ranked){.candidate = f->candidate, .estimate = f->estimate};
        note_failure(family_of(s, &out[*count].candidate), f == NULL ? expected_fill(c, of) : filled(c, f));
        ++*count;
    }
    free(taken);
    return DTS_OK;
}

static bool knows_none(const sure *s) {
    bool none = true;
    for (size_t i = 0; i < s->c->search->count && none; i++) {
        none = !s->c->search->findings[i].as_run || !counts(s, &s->c->search->findings[i]);
    }
    return none;
}

typedef struct replays {
    dts_search_context *c;
    dts_finding *of[BATCH];
    dts_status status[BATCH];
    bool twins; /* now come those that have waited */
} replays;

/* One of a pair of twins waits for the other. */
static bool waits(const replays *r, size_t index) {
    dts_candidate twin;
    bool found = false;
    const bool any = dts_layouts_twin(r->c, &r->of[index]->candidate, &twin);
    for (size_t i = 0; any && i < index && !found; i++) {
        found = dts_candidate_compare(&r->of[i]->candidate, &twin) == 0;
    }
    return found;
}

static void replay_one(void *context, size_t index) {
    replays *r = context;
    if (!r->of[index]->as_run && waits(r, index) == r->twins) {
        r->status[index] = dts_layouts_simulate_as_run(r->c, r->of[index]);
    }
}

static dts_status replay(sure *s, dts_diag *diag) {
    dts_search_context *c = s->c;
    bool any = true;
    dts_status status = DTS_OK;
    while (any && status == DTS_OK && s->left >= 1 && !dts_layouts_stopped(c)) {
        dts_ranked batch[BATCH];
        size_t count = 0;
        learn(s);
        const size_t most = knows_none(s) ? 1 : (size_t)fmin(s->left / s->cost, BATCH - 1) + 1;
        status = choose(s, batch, most, &count) == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
        any = count > 0;
        c->replays =
            s->cost > 1 + DTS_LAYOUTS_LARGE / LONG && c->request->store == NULL; /* which knows times without stalls */
        status = status == DTS_OK ? dts_layouts_simulate(c, batch, count, diag) : status; /* that only seem to fit */
        c->replays = false;
        replays work = {.c = c};
        size_t found = 0;
        for (size_t i = 0; i < count && status == DTS_OK; i++) {
            const long index = dts_layouts_find(c, &batch[i].candidate);
            dts_finding *f = index >= 0 ? &c->search->findings[index] : NULL;
            if (f != NULL && fits(f) && (!f->as_run || f->again)) {
                work.of[found++] = f;
            }
        }
        dts_parallel_for(found, c->request->threads, replay_one, &work);
        work.twins = true;
        dts_parallel_for(found, 1, replay_one, &work);
        for (size_t i = 0; i < found; i++) {
            s->cost = fmax(s->cost, 1 + work.of[i]->tasks / LONG);
            status = work.status[i] == DTS_NOMEM ? dts_diag_nomem(diag) : status;
        }
        s->left -= (double)count * s->cost;
    }
    learn(s);
    return status;
}

/* ---- one more walk --------------------------------------------------------------------------------------------------
 */

typedef struct look {
    const sure *s;
    dts_top *best; /* [family] */
    const dts_branches *branches;
    bool anywhere; /* not below the ceilings only */
} look;

static double correction(const family *f, const dts_candidate *candidate) {
    const double least = f->least_ratio[splits(candidate)];
    return isfinite(least) ? least : 1;
}

static bool is_slower(const void *context, const dts_candidate *candidate, int axes, double least_s) {
    const sure *s = ((const look *)context)->s;
    size_t count = 0;
    const size_t first = dts_layouts_first_family(&s->c->search->space, candidate, axes, &count);
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, correction(&s->families[first + i], candidate));
    }
    return least_s * least >= GAIN * s->best_s;
}

/* Nothing of other branches gets as far as the times in look_below. */
static bool may_gain(const void *context, const dts_candidate *candidate, int axes) {
    const look *l = context;
    const sure *s = l->s;
    if (axes < DTS_BRANCH_AXES) {
        return true;
    }
    const double *least_s = dts_branches_find(l->branches, candidate);
    bool may = false;
    for (size_t i = 0; least_s != NULL && i < l->branches->families && !may; i++) {
        may = least_s[i] * correction(&s->families[i], candidate) < GAIN * s->best_s;
    }
    return may;
}

static bool is_screened(const dts_search_context *c, const dts_candidate *candidate) {
    bool known = false;
    for (size_t i = 0; i < c->screened_count && !known; i++) {
        known = dts_candidate_compare(&c->screened[i].of.candidate, candidate) == 0;
    }
    return known;
}

static void look_below(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    look *l = context;
    const sure *s = l->s;
    const size_t index = dts_layouts_family(&s->c->search->space, candidate);
    const family *f = &s->families[index];
    const double time_s = estimate->time_s * correction(f, candidate);
    const dts_top *best = &l->best[index];
    const double last_s = best->count < best->capacity ? INFINITY : best->items[best->count - 1].score;
    const double ceiling = l->anywhere ? 1 : fmin(f->failed - STEP, 1);
    if (time_s < GAIN * s->best_s && time_s < last_s && estimate->memory_B <= ceiling * s->c->capacity_B &&
        dts_layouts_least_fill(s->c, estimate) <= 1 && dts_layouts_find(s->c, candidate) < 0 &&
        !is_screened(s->c, candidate)) {
        dts_top_add(&l->best[index], time_s, candidate, estimate);
    }
}

/* The fastest of all below the ceilings, or anywhere, by closed form and what the families took beyond theirs. */
static dts_status collect(sure *s, bool anywhere, dts_top *out, dts_diag *diag) {
    const size_t pairs = dts_layout_space_pairs(&s->c->search->space);
    const size_t families = dts_layouts_families(&s->c->search->space);
    look *looks = calloc(pairs + 1, sizeof *looks);
    dts_top *tops = calloc(pairs * families + 1, sizeof *tops);
    dts_status status = looks == NULL || tops == NULL ? DTS_NOMEM : DTS_OK;
    for (size_t i = 0; i < pairs * families && status == DTS_OK; i++) {
        status = dts_top_new(KEPT, &tops[i]);
        looks[i / families] = (look){.s = s,
                                     .best = &tops[i / families * families],
                                     .branches = &s->c->branches[i / families],
                                     .anywhere = anywhere};
    }
    const dts_layout_watch watch = {.visit = look_below, .wants = may_gain, .passes = is_slower};
    dts_walk_counts unused;
    status =
        status == DTS_OK ? dts_layouts_walk(s->c, &watch, looks, sizeof *looks, &unused, diag) : dts_diag_nomem(diag);
    for (size_t i = 0; tops != NULL && i < pairs * families; i++) {
        dts_top_merge(out, &tops[i]);
        dts_top_free(&tops[i]);
    }
    free(tops);
    free(looks);
    return status;
}

static dts_status look_further(sure *s, bool anywhere, dts_diag *diag) {
    dts_top list = {0};
    const size_t most = s->c->only_accepted ? COLLECTED : SCREENED;
    dts_status status = dts_top_new(most, &list) == DTS_OK ? collect(s, anywhere, &list, diag) : dts_diag_nomem(diag);
    status = status == DTS_OK ? dts_layouts_keep_accepted(s->c, &list, SCREENED, diag) : status;
    status = status == DTS_OK ? dts_layouts_screen(s->c, list.items, list.count, diag) : status;
    dts_top_free(&list);
    return status;
}

/* Is the best of all that is known not to fail as good as what the search before has looked for? That passed over what
 * is slower than plans were without the stalls that their replays have found. */
static bool is_enough(const sure *s) {
    double least_s = INFINITY;
    for (size_t i = 0; i < s->c->search->count; i++) {
        const dts_finding *f = &s->c->search->findings[i];
        if (counts(s, f)) {
            least_s = fmin(least_s, fails(f) ? f->full_s : f->outcome.figures.iteration_time_s);
        }
    }
    return s->best_s * GAIN <= least_s;
}

static dts_status assure(dts_search_context *c, dts_diag *diag) {
    const size_t simulations =
        c->simulations == 0 || c->simulations > DTS_SEARCH_SIMULATIONS ? DTS_SEARCH_SIMULATIONS : c->simulations;
    if (c->request->objective == DTS_OBJECTIVE_MEMORY || dts_layouts_best(c) < 0) {
        return DTS_OK; /* what takes least memory is served if anything is */
    }
    sure s = {.c = c, .cost = 1, .left = fmax((double)simulations / 8, BATCH)};
    s.families = calloc(dts_layouts_families(&c->search->space), sizeof *s.families);
    dts_status status = s.families == NULL ? dts_diag_nomem(diag) : replay(&s, diag);
    for (int round = 0; round < ROUNDS && status == DTS_OK && !is_enough(&s) && !dts_layouts_stopped(c); round++) {
        s.left = fmax((double)simulations / 12, BATCH);
        status = look_further(&s, round > 0, diag);
        status = status == DTS_OK ? replay(&s, diag) : status;
    }
    free(s.families);
    return status;
}

/* The best that surely fits; NULL: none is known. */
static dts_finding *surest(const dts_search_context *c) {
    dts_finding *best = NULL;
    for (size_t i = 0; i < c->search->count; i++) {
        dts_finding *f = &c->search->findings[i];
        const bool better =
            dts_finding_surely_fits(f) && (best == NULL || dts_findings_compare(c->request->objective, f, best) < 0);
        best = better ? f : best;
    }
    return best;
}

/* Where the best that surely fits is none that somebody can run, those that are get the same once more. */
dts_status dts_layouts_assure(dts_search_context *c, dts_diag *diag) {
    c->only_accepted = c->keeps_to_accepted;
    dts_status status = assure(c, diag);
    c->only_accepted = false;
    dts_finding *best = status == DTS_OK && c->request->accepts != NULL ? surest(c) : NULL;
    status = best != NULL ? dts_layouts_ask_finding(c, best, diag) : status;
    if (best == NULL || best->acceptance != DTS_PASSED_OVER || status != DTS_OK || dts_layouts_stopped(c)) {
        return status;
    }
    status = dts_layouts_ask_all(c, diag);
    c->only_accepted = true;
    status = status == DTS_OK ? assure(c, diag) : status;
    c->only_accepted = false;
    return status;
}
