/* What helps is tried, not guessed: changes that users make against too little memory, alone and together
 * (run/cure_levers.c), are simulated before they are told. A plan that does not fit takes a first look at each
 * (run/coarse_run.h), and those that are told of are simulated in full. Retries of the allocator show kernel by kernel
 * only, where many microbatches take long: a few of them show which changes have none and are faster than as many of
 * the plan itself, and the fastest of those are simulated in full.
 *
 * The bound: a budget of tasks that follows from the run itself (run/cure_runs.h), and within it at most
 * DTS_TRIALS_MOST first looks, fewer since a ladder is climbed only until a step suffices, and WHOLE_MOST simulations
 * in full, one more for the nearest where none suffices. What costs no time is tried first, so that a small budget
 * suffices for it. Those in full include trials whose memory a first look only guesses. What would take more is told
 * with the figures of its first look, or not at all where memory is tight or only guessed. A plan with retries has at
 * most DTS_TRIALS_MOST_OF_FITTING trials in place of first looks. */
#include "run/cures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "run/cure_runs.h"
#include "run/verdict.h"

enum { TOLD_MOST = 3, ROUND = 6, WHOLE_MOST = 18 };

static const double SLOW = 0.5; /* of the fastest: not worth telling for being a single change */

typedef struct finder {
    dts_trials trials;
    const dts_scenario_values *base;
    const dts_cure_options *options;
    dts_result *result;
    dts_trial_stage stage;
    dts_tries tries;
    dts_trial *picks[DTS_TRIALS_ROOM]; /* what seems to suffice */
    size_t pick_count, whole_count;
    size_t steps[DTS_LADDERS_MOST]; /* that are climbed of each ladder */
} finder;

bool dts_needs_cure(const dts_result *result) {
    return !result->fits || result->allocator.unserved_gib > 0 || dts_retry_share(result) >= dts_retries_told;
}

/* ---- what suffices ---------------------------------------------------------------------------------------------- */

/* How well a trial does in memory, the best first. */
typedef enum grade { SURE, CLEAN, FEW_RETRIES, STRAINED, TOO_LARGE } grade;

static grade grade_of(const finder *f, const dts_trial *t) {
    const double sure_room = f->options != NULL ? f->options->sure_room : 0;
    if (!t->known || !t->cure.fits) {
        return TOO_LARGE;
    }
    return t->cure.unserved_gib > 0 || t->cure.retry_share >= dts_retries_many ? STRAINED
           : t->cure.retry_share >= dts_retries_told                           ? FEW_RETRIES
           : t->cure.room < sure_room                                          ? CLEAN
                                                                               : SURE;
}

/* A plan that fits needs one that is faster. */
static bool helps(const finder *f, const dts_trial *t) {
    const bool only_slow = f->result->fits && !(f->result->allocator.unserved_gib > 0);
    return !only_slow || t->cure.tokens_per_s > f->result->tokens_per_s;
}

static bool suffices(const finder *f, const dts_trial *t) {
    return grade_of(f, t) <= CLEAN && helps(f, t);
}

/* ---- what is tried ---------------------------------------------------------------------------------------------- */

/* Does no step above this one fit? Of a + b/d, with d twice as large at every step, all steps together gain no more
 * than the last one did. What is split into whole layers or heads gains unevenly: twice that. */
static bool leads_nowhere(const finder *f, const dts_ladder *l, size_t step) {
    const dts_trial *t = &f->trials.items[l->first + step];
    const double before_gib = step > 0 && l->halves ? (t - 1)->looked_gib : 0;
    return before_gib > 0 && t->looked_gib > 0 &&
           t->looked_gib - 2 * fmax(0, before_gib - t->looked_gib) > f->result->capacity_gib;
}

/* The step of a ladder that is to be tried now; NULL: it is at its end, or waits. */
static dts_trial *step_of(const finder *f, size_t ladder) {
    const dts_ladder *l = &f->trials.ladders[ladder];
    const size_t step = f->steps[ladder];
    dts_trial *t = l->stage == f->stage && step < l->count ? &f->trials.items[l->first + step] : NULL;
    return t == NULL || t->waits ? NULL : t;
}

/* Up to the mildest step that suffices, and beyond while it is tight: a first look knows no retries. Not beyond one
 * that waits. */
static void step_on(finder *f, size_t ladder) {
    const dts_ladder *l = &f->trials.ladders[ladder];
    const dts_trial *t = step_of(f, ladder);
    if (t != NULL) {
        const bool enough = suffices(f, t) && (f->result->fits || !dts_tries_tight(&f->tries, t));
        f->steps[ladder] = enough || leads_nowhere(f, l, f->steps[ladder]) ? l->count : f->steps[ladder] + 1;
    }
}

/* All ladders a step at a time, so that the budget first pays for the mildest step of each. */
static void climb(finder *f) {
    bool moved = true;
    while (moved) {
        moved = false;
        for (size_t from = 0, to = 0; from < f->trials.ladder_count; from = to) {
            dts_trial *items[DTS_TRIES_AT_ONCE];
            size_t count = 0;
            for (; to < f->trials.ladder_count && count < DTS_TRIES_AT_ONCE; to++) {
                dts_trial *t = step_of(f, to);
                moved = moved || t != NULL;
                if (t != NULL && !t->whole) {
                    items[count++] = t;
                }
            }
            dts_tries_first(&f->tries, items, count);
            for (size_t i = from; i < to; i++) {
                step_on(f, i);
            }
        }
    }
}

/* What surely fits and has no retries first, then what is faster. */
static int compare(const void *a, const void *b) {
    const dts_trial *x = *(dts_trial *const *)a, *y = *(dts_trial *const *)b;
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return x->cure.tokens_per_s != y->cure.tokens_per_s ? (x->cure.tokens_per_s > y->cure.tokens_per_s ? -1 : 1)
                                                        : (x < y ? -1 : 1);
}

static void sort_picks(finder *f) {
    for (size_t i = 0; i < f->pick_count; i++) {
        f->picks[i]->rank = (int)grade_of(f, f->picks[i]);
    }
    qsort(f->picks, f->pick_count, sizeof f->picks[0], compare);
}

static bool is_alone(const finder *f, const dts_trial *t) {
    return f->trials.ladders[t->ladder].alone;
}

typedef struct turn {
    finder *f;
    dts_trial *items[ROUND];
    size_t count;
} turn;

static void simulate_all(turn *r, bool last) {
    dts_tries_whole(&r->f->tries, r->items, r->count, last);
    r->f->whole_count += r->count;
}

/* Of what waits, those on the mildest steps first. Every stage leaves some for those behind it. */
static void fill_with_waiting(finder *f, turn *r) {
    const size_t share = WHOLE_MOST * ((size_t)f->stage + 1) / DTS_TRIAL_STAGES;
    for (size_t step = 0; step < DTS_TRIALS_MOST; step++) {
        for (size_t i = 0; i < f->trials.ladder_count; i++) {
            const dts_ladder *l = &f->trials.ladders[i];
            const bool here = l->stage == f->stage && f->steps[i] == step && step < l->count;
            if (here && r->count < ROUND && f->whole_count + r->count < share) {
                r->items[r->count++] = &f->trials.items[l->first + step];
            }
        }
    }
}

static void try_stage(finder *f, dts_trial_stage stage) {
    turn r = {.f = f};
    f->stage = stage;
    do {
        simulate_all(&r, false);
        climb(f);
        r.count = 0;
        fill_with_waiting(f, &r);
    } while (r.count > 0);
    for (size_t i = 0; i < f->trials.count; i++) {
        dts_trial *t = &f->trials.items[i];
        if (f->trials.ladders[t->ladder].stage == stage && grade_of(f, t) < STRAINED && helps(f, t)) {
            f->picks[f->pick_count++] = t;
        }
    }
}

/* Would nobody take it beside the best? By GPU, since some trials have more of them. */
static bool is_far_slower(const dts_trial *t, const dts_trial *best) {
    static const double far = 0.25;
    return t->cure.tokens_per_s / (double)t->cure.gpus < far * best->cure.tokens_per_s / (double)best->cure.gpus;
}

/* The fastest that are not simulated in whole yet, and the fastest of single changes in any case. */
static void fill_round(finder *f, turn *r) {
    const dts_trial *alone = NULL;
    sort_picks(f);
    for (size_t i = 0; i < f->pick_count && alone == NULL; i++) {
        alone = is_alone(f, f->picks[i]) ? f->picks[i] : NULL;
    }
    const size_t left = WHOLE_MOST - f->whole_count, wanted = f->result->fits ? TOLD_MOST : ROUND;
    const size_t most = left < wanted ? left : wanted;
    for (size_t i = 0; i < f->pick_count && r->count < most; i++) {
        dts_trial *t = f->picks[i];
        const bool last = r->count + 1 == most && alone != NULL && !alone->whole && t != alone;
        bool taken =
            t->whole || is_far_slower(t, f->picks[0]) || (last && t->cure.tokens_per_s > alone->cure.tokens_per_s);
        if (!taken) {
            r->items[r->count++] = t;
        }
    }
}

/* What may run out of memory is better than nothing on these GPUs. */
static bool is_worth(const finder *f, const dts_trial *t, const dts_trial *const *told, size_t count) {
    bool worth = t->whole && grade_of(f, t) <= STRAINED && helps(f, t);
    bool strained = grade_of(f, t) == STRAINED;
    for (size_t k = 0; k < count && told[k] != NULL; k++) {
        worth &= told[k]->ladder != t->ladder && !dts_trial_repeats(t, told[k]);
        worth &= !is_far_slower(t, told[0]);
        worth &= !strained || told[k]->cure.gpus != t->cure.gpus;
    }
    return worth && !(strained && f->result->fits);
}

/* The best of what was simulated in whole; a single change is among them where one suffices and is not much slower. */
static size_t select_told(finder *f, const dts_trial *told[TOLD_MOST]) {
    const dts_trial *alone = NULL;
    size_t count = 0;
    sort_picks(f);
    for (size_t i = 0; i < f->pick_count && alone == NULL; i++) {
        const dts_trial *t = f->picks[i];
        const bool fast = t->cure.tokens_per_s > SLOW * f->picks[0]->cure.tokens_per_s;
        alone = is_alone(f, t) && t->whole && suffices(f, t) && fast ? t : NULL;
    }
    for (size_t i = 0; i < f->pick_count && count < TOLD_MOST; i++) {
        const dts_trial *t = f->picks[i];
        const bool kept = count + 1 == TOLD_MOST && alone != NULL && t != alone; /* the last place */
        if (!kept && is_worth(f, t, told, count)) {
            alone = is_alone(f, t) ? NULL : alone;
            told[count++] = t;
        }
    }
    return count;
}

/* How many of them are at least as good. */
static size_t count_good(finder *f, grade least) {
    const dts_trial *told[TOLD_MOST] = {NULL};
    const size_t count = select_told(f, told);
    size_t good = 0;
    for (size_t i = 0; i < count; i++) {
        good += grade_of(f, told[i]) <= least && helps(f, told[i]);
    }
    return good;
}

/* Simulates in whole what first looks and parts of the batch have shown to suffice, the fastest first, until as many
 * are sure as are told of. */
static void settle(finder *f) {
    for (;;) {
        turn r = {.f = f};
        fill_round(f, &r);
        if (r.count == 0 || count_good(f, SURE) >= TOLD_MOST) {
            break;
        }
        simulate_all(&r, true);
    }
}

/* ---- what is told ----------------------------------------------------------------------------------------------- */

/* Of what does not suffice; a node that is full needs another remedy than its GPUs do. */
static dts_trial *nearest(finder *f) {
    dts_trial *best = NULL;
    for (size_t i = 0; i < f->trials.count; i++) {
        dts_trial *t = &f->trials.items[i];
        best = t->known && !t->host_full && (best == NULL || t->cure.needed_gib < best->cure.needed_gib) ? t : best;
    }
    return best;
}

/* What lacks host memory or drives only, where nothing that is told suffices on these GPUs. NULL: nothing. */
static const char *short_of_host(const finder *f) {
    const dts_result *r = f->result;
    const dts_trial *best = NULL;
    for (size_t i = 0; i < r->cure_count; i++) {
        if (r->cures[i].fits && r->cures[i].gpus == r->gpus) {
            return NULL;
        }
    }
    for (size_t i = 0; i < f->trials.count; i++) {
        const dts_trial *t = &f->trials.items[i];
        const bool here = t->known && t->host_full && t->cure.gpus == r->gpus && t->cure.needed_gib <= r->capacity_gib;
        best = here && (best == NULL || t->change_count < best->change_count) ? t : best;
    }
    return best == NULL ? NULL : best->cure.change;
}

static dts_status tell(dts_result *result, const dts_trial *t, dts_cure *list, size_t *list_count) {
    dts_cure *c = &list[(*list_count)++];
    *c = t->cure;
    dts_override *changes = dts_arena_array(result->arena, t->change_count, sizeof *changes);
    if (changes == NULL) {
        return DTS_NOMEM;
    }
    memcpy(changes, t->changes, t->change_count * sizeof *changes);
    c->changes = changes;
    c->change_count = t->change_count;
    if (c->fits && c->coarse) {
        return DTS_OK; /* retries are not known */
    }
    c->verdict = dts_verdict_text(result->arena, c->fits, c->unserved_gib, c->retries, c->retry_share);
    return c->verdict == NULL ? DTS_NOMEM : DTS_OK;
}

static dts_status take(finder *f) {
    dts_result *result = f->result;
    result->cures = dts_arena_array(result->arena, TOLD_MOST, sizeof *result->cures);
    dts_status status = result->cures == NULL ? DTS_NOMEM : DTS_OK;
    const dts_trial *told[TOLD_MOST] = {NULL};
    const size_t count = select_told(f, told);
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        status = tell(result, told[i], result->cures, &result->cure_count);
    }
    for (size_t i = 0; i < f->trials.count; i++) {
        result->cures_tried += f->trials.items[i].known;
    }
    result->cures_left_out = f->tries.left_out;
    return status;
}

static dts_status take_nearest(finder *f) {
    dts_trial *best = nearest(f);
    if (best == NULL) {
        return DTS_OK;
    }
    if (!best->whole) {
        dts_tries_whole(&f->tries, &best, 1, true);
    }
    return best->known ? tell(f->result, best, f->result->cures, &f->result->cure_count) : DTS_OK;
}

static bool suffices_here(const dts_result *r) {
    bool here = false;
    for (size_t i = 0; i < r->cure_count; i++) {
        here = here || (r->cures[i].fits && r->cures[i].gpus == r->gpus);
    }
    return here;
}

/* Where nothing suffices on these GPUs: what fits there, but learns something else. */
static dts_status find_others(finder *f) {
    enum { OTHERS_WHOLE = 6 };
    dts_result *r = f->result;
    dts_status status = dts_trials_add_others(f->base, r, &f->trials);
    if (status != DTS_OK) {
        return status;
    }
    f->pick_count = 0;
    f->whole_count = WHOLE_MOST - OTHERS_WHOLE;
    dts_tries_renew(&f->tries);
    try_stage(f, DTS_TRY_OTHERS);
    settle(f);
    const dts_trial *told[TOLD_MOST] = {NULL};
    const size_t count = select_told(f, told);
    r->other_trainings = dts_arena_array(r->arena, TOLD_MOST, sizeof *r->other_trainings);
    if (r->other_trainings == NULL) {
        return DTS_NOMEM;
    }
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        status = tell(r, told[i], r->other_trainings, &r->other_training_count);
    }
    return status;
}

static dts_status find(finder *f) {
    dts_status status = dts_trials_make(f->base, f->result, &f->trials);
    if (status != DTS_OK) {
        return status;
    }
    dts_tries_begin(&f->tries, f->base, f->options, f->result);
    try_stage(f, DTS_TRY_FREE);
    try_stage(f, DTS_TRY_ALONE);
    if (f->result->fits) {
        settle(f);
    }
    if (!f->result->fits ||
        count_good(f, CLEAN) == 0) { /* first looks are cheap: several may be better than one alone */
        try_stage(f, DTS_TRY_TOGETHER);
        settle(f);
    }
    if (count_good(f, CLEAN) == 0) {
        try_stage(f, DTS_TRY_LARGER);
        settle(f);
    }
    status = take(f);
    if (status == DTS_OK && f->result->cure_count == 0 && !f->result->fits) {
        status = take_nearest(f);
    }
    f->result->host_short = f->result->fits ? NULL : short_of_host(f);
    if (status == DTS_OK && (f->result->cure_count == 0 || !f->result->cures[0].fits) && f->options != NULL &&
        f->options->named != NULL) {
        f->result->look_further = dts_arena_printf(f->result->arena, "dtsim search %s", f->options->named);
        status = f->result->look_further == NULL ? DTS_NOMEM : DTS_OK;
    }
    if (status == DTS_OK && !f->result->fits && !suffices_here(f->result)) {
        status = find_others(f);
    }
    return status;
}

dts_status dts_find_cures(const dts_scenario_values *values, const dts_cure_options *options, dts_result *result,
                          dts_diag *diag) {
    const double begin = dts_clock_s();
    finder *f = calloc(1, sizeof *f);
    dts_trial *items = calloc(DTS_TRIALS_ROOM, sizeof *items);
    dts_status status = f == NULL || items == NULL ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK) {
        *f = (finder){.trials = {.items = items}, .base = values, .options = options, .result = result};
        status = find(f);
    }
    free(items);
    free(f);
    result->simulation.wall_s += dts_clock_s() - begin;
    return status == DTS_NOMEM ? dts_diag_nomem_help(diag, dts_memory_help) : status;
}
