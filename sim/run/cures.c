/* What helps is tried, not guessed: changes that users make against too little memory, alone and together
 * (run/cure_trials.c), are simulated before they are told. A plan that does not fit takes a first look at each
 * (run/screen.h), and those that are told of are simulated in full. Retries of the allocator show kernel by kernel
 * only, where many microbatches take long: a few of them show which changes have none and are faster than as many of
 * the plan itself, and the fastest of those are simulated in full.
 *
 * The bound: at most DTS_TRIALS_MOST first looks, fewer since a ladder is climbed only until a step suffices, and
 * WHOLE_MOST simulations in full, one more for the nearest where none suffices, and none of more than about
 * LARGEST_KERNELS kernels. Those in full include trials whose memory a first look only guesses. What would take more
 * is told with the figures of its first look, or not at all where memory is tight or only guessed. A plan with retries
 * has at most DTS_TRIALS_MOST_OF_FITTING trials in place of first looks, each of all its microbatches or a part, under
 * the same number of kernels. */
#include "run/cures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "run/cure_trials.h"
#include "run/ranks.h"
#include "run/screen.h"
#include "run/verdict.h"

enum { TOLD_MOST = 3, ROUND = 6, WHOLE_MOST = 18 };

static const double GIB = 1024.0 * 1024.0 * 1024.0;
static const double LARGEST_KERNELS = 4e5; /* some seconds where they cannot be joined to blocks */
static const double SLOW = 0.5;            /* of the fastest: not worth telling for being a single change */
static const double TIGHT = 0.9;           /* of the capacity: retries are near, so a stronger change is tried, too */

typedef struct finder {
    dts_trials trials;
    const dts_scenario_values *base;
    const dts_run_options *options;
    dts_result *result;
    dts_trial_stage stage;
    int64_t part;                      /* of the batch, one in so many shows what a change does; 1: all is simulated */
    double part_tokens_per_s;          /* of the plan as it is, with so many */
    dts_trial *picks[DTS_TRIALS_ROOM]; /* what seems to suffice */
    size_t pick_count, whole_count;
    size_t steps[DTS_LADDERS_MOST]; /* that are climbed of each ladder */
} finder;

bool dts_needs_cure(const dts_result *result) {
    return !result->fits || result->allocator.unserved_gib > 0 || dts_retry_share(result) >= dts_retries_told;
}

/* ---- what suffices ---------------------------------------------------------------------------------------------- */

/* How well a trial does in memory, the best first. */
typedef enum grade { CLEAN, FEW_RETRIES, STRAINED, TOO_LARGE } grade;

static grade grade_of(const dts_trial *t) {
    if (!t->known || !t->cure.fits) {
        return TOO_LARGE;
    }
    return t->cure.unserved_gib > 0 || t->cure.retry_share >= dts_retries_many ? STRAINED
           : t->cure.retry_share >= dts_retries_told                           ? FEW_RETRIES
                                                                               : CLEAN;
}

/* A plan that fits needs one that is faster. */
static bool helps(const finder *f, const dts_trial *t) {
    const bool only_slow = f->result->fits && !(f->result->allocator.unserved_gib > 0);
    const double now = t->in_part ? f->part_tokens_per_s : f->result->tokens_per_s;
    return !only_slow || t->cure.tokens_per_s > now;
}

static bool suffices(const finder *f, const dts_trial *t) {
    return grade_of(t) == CLEAN && helps(f, t);
}

/* ---- simulating it ---------------------------------------------------------------------------------------------- */

static void simulate_values(const finder *f, const dts_scenario_values *values, dts_trial *t) {
    const dts_run_options options = {.stop = f->options != NULL ? f->options->stop : NULL};
    dts_diag *refusal = dts_diag_new();
    dts_result *r = NULL;
    t->known = refusal != NULL && dts_run_values(values, &options, &r, refusal) == DTS_OK;
    if (t->known) {
        t->cure.fits = r->fits;
        t->cure.gpus = r->gpus;
        t->cure.needed_gib = r->peak_allocated_gib + r->memory_gib.context;
        t->cure.peak_device_gib = r->peak_device_gib;
        t->cure.unserved_gib = r->fits ? r->allocator.unserved_gib : 0;
        t->cure.retries = r->fits ? r->allocator.retries : 0;
        t->cure.retry_share = dts_retry_share(r);
        t->cure.tokens_per_s = r->tokens_per_s;
        t->host_full = r->host_peak_gib > r->host_capacity_gib || r->nvme_peak_gib > r->nvme_capacity_gib;
    }
    dts_result_free(r);
    dts_diag_free(refusal);
}

static void simulate_whole(const finder *f, dts_trial *t) {
    t->in_part = false;
    t->whole = true;
    simulate_values(f, &t->values, t);
}

/* How many kernels, of all ranks that are simulated, stand one by one; 0: blocks of them do. */
static double single_kernels(const dts_scenario_values *values, const dts_plan *plan, bool full) {
    const bool flow = values->fidelity.network != DTS_NETWORK_CLOSED_FORM;
    const dts_detail asked = (dts_detail)values->fidelity.detail;
    const dts_detail detail = asked == DTS_DETAIL_AUTO ? dts_lower_detail(plan, flow) : asked;
    const int64_t stages = values->parallelism.pipeline > 0 ? values->parallelism.pipeline : 1;
    const double ranks = full ? (double)(values->cluster.nodes * values->cluster.gpus_per_node) / (double)stages : 1;
    return !full && detail == DTS_DETAIL_BLOCK ? 0 : ranks * dts_lower_kernels(plan);
}

/* Is it simulated in full within a few seconds? */
static bool is_cheap(const dts_scenario_values *values) {
    const dts_job job = dts_scenario_job(values);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *refusal = dts_diag_new();
    dts_plan plan;
    bool cheap = false, full = false;
    if (arena != NULL && refusal != NULL && dts_plan_make(&job, arena, &plan, refusal) == DTS_OK &&
        dts_ranks_choose(&plan, &values->fidelity, &full, refusal) == DTS_OK) {
        cheap = single_kernels(values, &plan, full) <= LARGEST_KERNELS;
    }
    dts_diag_free(refusal);
    dts_arena_free(arena);
    return cheap;
}

static bool is_tight(const finder *f, const dts_trial *t) {
    return t->cure.needed_gib > TIGHT * f->result->capacity_gib;
}

/* In full, or as the first look or the part has it where that takes too long. */
static void simulate_chosen(const finder *f, dts_trial *t) {
    if (is_cheap(&t->values)) {
        simulate_whole(f, t);
        return;
    }
    t->whole = true;
    t->cure.coarse = true;
    if (t->in_part) {
        t->known = grade_of(t) == CLEAN;
        t->cure.tokens_per_s *= f->result->tokens_per_s / f->part_tokens_per_s;
        t->in_part = false;
    } else {
        t->known = !t->cure.fits || !is_tight(f, t);
        t->cure.peak_device_gib = t->cure.needed_gib;
    }
}

/* A part of the batch; all of it where the rules refuse the part. */
static void simulate_part(const finder *f, dts_trial *t) {
    dts_scenario_values some = t->values;
    t->in_part = f->part > 1 && t->values.training.global_batch % f->part == 0;
    if (t->in_part) {
        some.training.global_batch /= f->part;
        if (is_cheap(&some)) {
            simulate_values(f, &some, t);
        }
    }
    if ((!t->in_part || !t->known) && is_cheap(&t->values)) {
        simulate_whole(f, t);
    }
}

/* How much of the batch suffices to try changes of a plan that fits. What stages keep until the step ends grows with
 * the number of microbatches, so that fewer would say another memory. */
static int64_t part_of(const dts_result *r) {
    enum { FEW = 32, CHEAP = 200000 };
    const int64_t least = FEW * (r->stage_count > 1 ? (int64_t)r->stage_count : 1);
    if (!r->fits || r->kept_outputs_gib > 0 || r->simulation.tasks < CHEAP) {
        return 1;
    }
    int64_t part = r->microbatches / least;
    while (part > 1 && r->microbatches % part != 0) {
        part--;
    }
    return part > 1 ? part : 1;
}

/* As many microbatches of the plan itself, to compare with. */
static void find_part(finder *f) {
    dts_trial base = {.values = *f->base};
    f->part = part_of(f->result);
    if (f->part > 1) {
        simulate_part(f, &base);
        f->part_tokens_per_s = base.cure.tokens_per_s;
        f->part = base.known && base.in_part ? f->part : 1;
    }
}

/* Would even a first look simulate all of it? */
static bool has_no_first_look(const dts_scenario_values *values) {
    const dts_job job = dts_scenario_job(values);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *refusal = dts_diag_new();
    dts_plan outline;
    bool full = false;
    const bool lacks = arena != NULL && refusal != NULL && dts_plan_outline(&job, arena, &outline, refusal) == DTS_OK &&
                       dts_ranks_choose(&outline, &values->fidelity, &full, refusal) == DTS_OK &&
                       (full || dts_ranks_are_drawn(&outline) || dts_plan_loads_input(&outline));
    dts_diag_free(refusal);
    dts_arena_free(arena);
    return lacks;
}

/* A first look, in blocks of kernels and at folded ranks, however the rest is simulated. What it only guesses to fit
 * waits for more. */
static void look_at(const finder *f, dts_trial *t) {
    dts_scenario_values quick = t->values;
    if (quick.fidelity.detail == DTS_DETAIL_KERNEL) {
        quick.fidelity.detail = DTS_DETAIL_AUTO;
    }
    if (quick.fidelity.ranks == DTS_RANKS_FULL) {
        quick.fidelity.ranks = DTS_RANKS_AUTO;
    }
    if (has_no_first_look(&quick)) {
        t->waits = is_cheap(&t->values);
        return;
    }
    dts_diag *refusal = dts_diag_new();
    dts_block_cache *blocks = dts_block_cache_new(0);
    dts_screening look = {.fits = false};
    t->known =
        refusal != NULL && blocks != NULL &&
        dts_screen_values(&quick, blocks, f->options != NULL ? f->options->stop : NULL, &look, refusal) == DTS_OK;
    if (t->known) {
        t->looked_gib = look.allocated_B / GIB + f->result->memory_gib.context;
    }
    if (t->known && look.memory_known) {
        t->cure.fits = look.fits;
        t->cure.gpus = t->values.cluster.nodes * t->values.cluster.gpus_per_node;
        t->cure.needed_gib = t->looked_gib;
        t->cure.tokens_per_s = f->result->tokens_per_s * f->result->iteration_time_s / look.time_s *
                               (double)t->values.training.global_batch / (double)f->base->training.global_batch;
        t->host_full = look.host_fill > 1;
    } else if (t->known) {
        t->known = false;
        t->waits = look.fits && is_cheap(&t->values);
    }
    dts_block_cache_free(blocks);
    dts_diag_free(refusal);
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

/* Up to the mildest step that suffices, and beyond while it is tight: a first look knows no retries. Not beyond one
 * that waits. */
static void climb(void *context, size_t index) {
    finder *f = context;
    const dts_ladder *l = &f->trials.ladders[index];
    size_t step = f->steps[index];
    while (l->stage == f->stage && step < l->count) {
        dts_trial *t = &f->trials.items[l->first + step];
        if (!t->whole) {
            (f->result->fits ? simulate_part : look_at)(f, t);
        }
        if (t->waits) {
            break;
        }
        const bool enough = suffices(f, t) && (f->result->fits || !is_tight(f, t));
        step = enough || leads_nowhere(f, l, step) ? l->count : step + 1;
    }
    f->steps[index] = step;
}

/* What surely fits and has no retries first, then what is faster. */
static int compare(const void *a, const void *b) {
    const dts_trial *x = *(dts_trial *const *)a, *y = *(dts_trial *const *)b;
    if (grade_of(x) != grade_of(y)) {
        return grade_of(x) < grade_of(y) ? -1 : 1;
    }
    return x->cure.tokens_per_s != y->cure.tokens_per_s ? (x->cure.tokens_per_s > y->cure.tokens_per_s ? -1 : 1)
                                                        : (x < y ? -1 : 1);
}

static bool is_alone(const finder *f, const dts_trial *t) {
    return f->trials.ladders[t->ladder].stage == DTS_TRY_ALONE;
}

typedef struct turn {
    finder *f;
    dts_trial *items[ROUND];
    size_t count;
} turn;

static void simulate_one(void *context, size_t index) {
    turn *r = context;
    simulate_chosen(r->f, r->items[index]);
}

static void simulate_all(turn *r) {
    dts_parallel_for(r->count, 0, simulate_one, r);
    for (size_t i = 0; i < r->count; i++) {
        r->items[i]->waits = false;
    }
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
        simulate_all(&r);
        dts_parallel_for(f->trials.ladder_count, 0, climb, f);
        r.count = 0;
        fill_with_waiting(f, &r);
    } while (r.count > 0);
    for (size_t i = 0; i < f->trials.count; i++) {
        dts_trial *t = &f->trials.items[i];
        if (f->trials.ladders[t->ladder].stage == stage && grade_of(t) < STRAINED && helps(f, t)) {
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
    qsort(f->picks, f->pick_count, sizeof f->picks[0], compare);
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
    bool worth = t->whole && grade_of(t) <= STRAINED && helps(f, t);
    bool strained = grade_of(t) == STRAINED;
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
    qsort(f->picks, f->pick_count, sizeof f->picks[0], compare);
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

/* How many of them surely fit. */
static size_t count_good(finder *f) {
    const dts_trial *told[TOLD_MOST] = {NULL};
    const size_t count = select_told(f, told);
    size_t good = 0;
    for (size_t i = 0; i < count; i++) {
        good += suffices(f, told[i]);
    }
    return good;
}

/* Simulates in whole what first looks and parts of the batch have shown to suffice, the fastest first, until as many
 * are sure as are told of. */
static void settle(finder *f) {
    for (;;) {
        turn r = {.f = f};
        fill_round(f, &r);
        if (r.count == 0 || count_good(f) >= TOLD_MOST) {
            break;
        }
        simulate_all(&r);
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
    return status;
}

static dts_status take_nearest(finder *f) {
    dts_trial *best = nearest(f);
    if (best == NULL) {
        return DTS_OK;
    }
    if (!best->whole) {
        simulate_chosen(f, best);
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
    find_part(f);
    try_stage(f, DTS_TRY_ALONE);
    if (f->result->fits) {
        settle(f);
    }
    if (!f->result->fits || count_good(f) == 0) { /* first looks are cheap: several may be better than one alone */
        try_stage(f, DTS_TRY_TOGETHER);
        settle(f);
    }
    if (count_good(f) == 0) {
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

dts_status dts_find_cures(const dts_scenario_values *values, const dts_run_options *options, dts_result *result,
                          dts_diag *diag) {
    finder *f = calloc(1, sizeof *f);
    dts_trial *items = calloc(DTS_TRIALS_ROOM, sizeof *items);
    dts_status status = f == NULL || items == NULL ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK) {
        *f = (finder){.trials = {.items = items}, .base = values, .options = options, .result = result};
        status = find(f);
    }
    free(items);
    free(f);
    return status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}
