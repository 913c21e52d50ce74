/* Walking and simulating on several threads; the order of the answers does not depend on them. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "run/physics.h"
#include "run/run.h"
#include "search/layouts.h"

size_t dts_layouts_limit(const dts_search_context *c) {
    return c->simulations == 0 ? SIZE_MAX : c->search->count + c->simulations;
}

bool dts_layouts_stopped(const dts_search_context *c) {
    return c->search->interrupted || (c->request->stop != NULL && atomic_load(c->request->stop));
}

/* ---- walking ------------------------------------------------------------------------------------------------------
 */

typedef struct pair_work {
    const dts_search_context *c;
    const dts_layout_watch *watch;
    char *contexts;
    size_t size;
    dts_walk_counts *counts; /* [pair] */
    dts_status *status;      /* [pair] */
} pair_work;

static void walk_pair(void *context, size_t pair) {
    pair_work *w = context;
    if (dts_layouts_stopped(w->c)) {
        return;
    }
    dts_diag *diag = dts_diag_new();
    w->status[pair] = diag == NULL ? DTS_NOMEM
                                   : dts_layout_space_watch(&w->c->search->space, pair, w->watch,
                                                            w->contexts + pair * w->size, &w->counts[pair], diag);
    dts_diag_free(diag);
}

dts_status dts_layouts_walk(dts_search_context *c, const dts_layout_watch *watch, void *contexts, size_t size,
                            dts_walk_counts *total, dts_diag *diag) {
    double begin_s = dts_clock_s();
    size_t pairs = dts_layout_space_pairs(&c->search->space);
    pair_work w = {.c = c, .watch = watch, .contexts = contexts, .size = size};
    w.counts = calloc(pairs, sizeof *w.counts);
    w.status = calloc(pairs, sizeof *w.status);
    dts_status status = w.counts == NULL || w.status == NULL ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK) {
        dts_parallel_for(pairs, c->request->threads, walk_pair, &w);
    }
    *total = (dts_walk_counts){0};
    for (size_t i = 0; i < pairs && status == DTS_OK; i++) {
        status = w.status[i];
        total->legal += w.counts[i].legal;
        total->illegal += w.counts[i].illegal;
        total->passed |= w.counts[i].passed;
        if (total->reason[0] == '\0') {
            memcpy(total->reason, w.counts[i].reason, sizeof total->reason);
        }
    }
    free(w.counts);
    free(w.status);
    c->search->walk_s += dts_clock_s() - begin_s;
    return status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}

/* ---- objectives ----------------------------------------------------------------------------------------------------
 */

const char *const dts_objective_names[] = {"time", "cost", "memory", "throughput-per-dollar", NULL};

double dts_search_value(dts_objective objective, const dts_figures *figures) {
    switch (objective) {
        case DTS_OBJECTIVE_MEMORY:
            return figures->peak_allocated_gib;
        case DTS_OBJECTIVE_COST:
        case DTS_OBJECTIVE_THROUGHPUT_PER_DOLLAR: /* the same order: one is 1 over the other */
            return dts_figures_cost(figures);
        case DTS_OBJECTIVE_TIME:
            break;
    }
    return figures->iteration_time_s;
}

/* On one cluster price and time go together, so their closed forms are ranked by time. */
double dts_layouts_least(const dts_search_context *c, const dts_estimate *estimate) {
    bool memory = c->request->objective == DTS_OBJECTIVE_MEMORY;
    return memory ? estimate->least_memory_B : estimate->least_time_s;
}

double dts_layouts_score(const dts_search_context *c, const dts_estimate *estimate) {
    bool memory = c->request->objective == DTS_OBJECTIVE_MEMORY;
    double over = estimate->memory_B / c->capacity_B - 1;
    /* what seems too large is tried after what seems to fit: the closed form of the memory is no bound */
    double penalty = over > 0 ? 1 + 10 * over : 1;
    return (memory ? estimate->memory_B : estimate->time_s) * penalty;
}

/* Of the node's host or its drives. */
static double least_host_fill(const dts_search_context *c, const dts_estimate *estimate) {
    const double host = estimate->least_host_B > 0 ? estimate->least_host_B / c->host_B : 0;
    return estimate->least_drives_B > 0 ? fmax(host, estimate->least_drives_B / c->drives_B) : host;
}

double dts_layouts_least_fill(const dts_search_context *c, const dts_estimate *estimate) {
    return fmax(estimate->least_memory_B / c->capacity_B, least_host_fill(c, estimate));
}

bool dts_search_any_fits(const dts_search *search) {
    return search->count > 0 && search->findings[0].outcome.kind == DTS_OUTCOME_SIMULATED &&
           search->findings[0].outcome.figures.fits;
}

bool dts_finding_surely_fits(const dts_finding *f) {
    return f->as_run && f->outcome.kind == DTS_OUTCOME_SIMULATED && f->outcome.figures.fits &&
           !(f->outcome.figures.unserved_gib > 0);
}

const dts_finding *dts_search_plan(const dts_search *search) {
    if (search == NULL || !dts_search_any_fits(search)) {
        return NULL;
    }
    if (search->chosen >= 0) {
        return &search->findings[search->chosen];
    }
    for (size_t i = 0; i < search->count; i++) {
        if (dts_finding_surely_fits(&search->findings[i])) {
            return &search->findings[i];
        }
    }
    return &search->findings[0];
}

int dts_findings_compare(dts_objective objective, const dts_finding *a, const dts_finding *b) {
    bool measured = a->outcome.kind == DTS_OUTCOME_SIMULATED;
    if (measured != (b->outcome.kind == DTS_OUTCOME_SIMULATED)) {
        return measured ? -1 : 1;
    }
    if (a->outcome.figures.fits != b->outcome.figures.fits) {
        return a->outcome.figures.fits ? -1 : 1;
    }
    double x = dts_search_value(objective, &a->outcome.figures);
    double y = dts_search_value(objective, &b->outcome.figures);
    if (!a->outcome.figures.fits) {
        /* what is equally short of host memory: by the GPU's */
        const bool equal = a->fill == b->fill;
        x = equal ? a->outcome.figures.peak_allocated_gib : a->fill;
        y = equal ? b->outcome.figures.peak_allocated_gib : b->fill;
    }
    return x != y ? (x < y ? -1 : 1) : dts_candidate_compare(&a->candidate, &b->candidate);
}

long dts_layouts_best(const dts_search_context *c) {
    long best = DTS_NOWHERE;
    for (size_t i = 0; i < c->search->count; i++) {
        const dts_finding *f = &c->search->findings[i];
        if (f->outcome.kind == DTS_OUTCOME_SIMULATED && f->outcome.figures.fits &&
            (!c->only_accepted || f->acceptance == DTS_ACCEPTED) &&
            (best < 0 || dts_findings_compare(c->request->objective, f, &c->search->findings[best]) < 0)) {
            best = (long)i;
        }
    }
    return best;
}

/* ---- simulating ----------------------------------------------------------------------------------------------------
 */

typedef struct simulation_work {
    dts_search_context *c;
    dts_finding *findings; /* to be filled */
    dts_status *status;
    pthread_mutex_t lock; /* of the store and the progress */
    size_t done, count;
    bool twins; /* now come those that are twins of others in the batch, one after the other */
} simulation_work;

/* What the store knows a result by: the scenario's document and the settings on top. */
static void write_document(const dts_search_request *request, const dts_candidate *candidate, dts_text *document,
                           dts_text *settings) {
    for (int axis = 0; axis < DTS_AXIS_COUNT; axis++) {
        for (int i = 0; dts_candidate_key((dts_layout_axis)axis, i) != NULL; i++) {
            dts_text_printf(settings, "%s%s=", settings->length > 0 ? " " : "",
                            dts_candidate_key((dts_layout_axis)axis, i));
            dts_candidate_write(candidate, (dts_layout_axis)axis, i, settings);
        }
    }
    dts_text_printf(document, "%s\nsearch %s\n", request->document, dts_text_string(settings));
}

/* A cache of blocks that no other simulation uses; NULL: the simulation makes its own. */
dts_block_cache *dts_layouts_take_cache(dts_search_context *c, pthread_mutex_t *lock) {
    pthread_mutex_lock(lock);
    dts_block_cache *cache = c->cache_count > 0 ? c->caches[--c->cache_count] : NULL;
    pthread_mutex_unlock(lock);
    return cache != NULL ? cache : dts_block_cache_new(0);
}

void dts_layouts_give_back(dts_search_context *c, pthread_mutex_t *lock, dts_block_cache *cache) {
    pthread_mutex_lock(lock);
    dts_block_cache **caches = cache == NULL ? NULL : realloc(c->caches, (c->cache_count + 1) * sizeof *caches);
    if (caches != NULL) {
        c->caches = caches;
        c->caches[c->cache_count++] = cache;
    } else {
        dts_block_cache_free(cache);
    }
    pthread_mutex_unlock(lock);
}

void dts_layouts_free_caches(dts_search_context *c) {
    for (size_t i = 0; i < c->cache_count; i++) {
        dts_block_cache_free(c->caches[i]);
    }
    free(c->caches);
    c->caches = NULL;
    c->cache_count = 0;
}

void dts_layouts_values(const dts_search_context *c, const dts_candidate *candidate, dts_scenario_values *out) {
    dts_candidate_apply(candidate, c->request->base, out);
    if (out->fidelity.microbatches == DTS_MICROBATCHES_AUTO) { /* the same time, sooner */
        out->fidelity.microbatches = DTS_MICROBATCHES_FOLDED;
    }
    if (out->fidelity.allocator == DTS_ALLOCATOR_AUTO &&
        !c->replays) { /* `fits` does not depend on it, and it would double the time */
        out->fidelity.allocator = DTS_ALLOCATOR_ESTIMATE;
    }
}

/* What follows from its figures. Where blocks stand for kernels, `dtsim run` does not always replay the allocator
 * either.
 */
static void take_figures(const dts_scenario_values *base, dts_finding *f) {
    const dts_figures *figures = &f->outcome.figures;
    f->full_s = figures->iteration_time_s - figures->retries_s;
    f->tasks = figures->tasks;
    f->host_fill = figures->host_fill;
    f->fill = fmax(figures->device_fill, figures->host_fill);
    f->as_run = f->outcome.kind == DTS_OUTCOME_SIMULATED &&
                (!figures->replays || base->fidelity.allocator != DTS_ALLOCATOR_AUTO);
}

static dts_status simulate_values(const dts_scenario_values *values, const dts_run_options *options,
                                  const dts_scenario_values *base, dts_finding *f) {
    dts_diag *diag = dts_diag_new();
    dts_result *result = NULL;
    dts_status status = diag == NULL ? DTS_NOMEM : dts_run_values(values, options, &result, diag);
    if (status == DTS_OK) {
        status = dts_outcome_of_result(result, &f->outcome);
        take_figures(base, f);
    } else if (status == DTS_INVALID) {
        status = dts_outcome_of_errors(diag, &f->outcome); /* more kernels than are simulated */
    } else if (status == DTS_INTERRUPTED) {
        status = DTS_OK; /* it stays pending */
    }
    if (status == DTS_NOMEM) { /* there is memory for others */
        dts_outcome_clear(&f->outcome);
        f->outcome.kind = DTS_OUTCOME_NO_MEMORY;
        status = DTS_OK;
    }
    dts_result_free(result);
    dts_diag_free(diag);
    return status;
}

/* The one of this batch, before index, that a finding is the twin of, or DTS_NOWHERE. */
static long twin_in_batch(const simulation_work *w, size_t index) {
    dts_candidate twin;
    const bool any = dts_layouts_twin(w->c, &w->findings[index].candidate, &twin);
    long found = DTS_NOWHERE;
    for (size_t i = 0; any && i < index && found == DTS_NOWHERE; i++) {
        found = dts_candidate_compare(&w->findings[i].candidate, &twin) == 0 ? (long)i : DTS_NOWHERE;
    }
    return found;
}

static dts_status simulate(simulation_work *w, dts_finding *f) {
    const long here = twin_in_batch(w, (size_t)(f - w->findings));
    const dts_finding *twin =
        here != DTS_NOWHERE ? &w->findings[here] : dts_layouts_find_twin(w->c, &f->candidate, w->c->replays);
    if (twin != NULL && dts_finding_serves(twin)) {
        return dts_finding_take(twin, f);
    }
    dts_scenario_values values;
    dts_layouts_values(w->c, &f->candidate, &values);
    const dts_run_options options = {.blocks = dts_layouts_take_cache(w->c, &w->lock), .stop = w->c->request->stop};
    dts_status status = simulate_values(&values, &options, w->c->request->base, f);
    dts_layouts_give_back(w->c, &w->lock, options.blocks);
    if (w->c->replays && f->outcome.kind == DTS_OUTCOME_SIMULATED && !f->as_run && f->tasks > DTS_LAYOUTS_LARGE) {
        f->as_run = f->again = true; /* dts_layouts_values_as_run has the same */
    }
    return status;
}

void dts_layouts_values_as_run(const dts_search_context *c, const dts_finding *f, dts_scenario_values *out) {
    dts_candidate_apply(&f->candidate, c->request->base, out);
    if (f->tasks > DTS_LAYOUTS_LARGE && out->fidelity.microbatches == DTS_MICROBATCHES_AUTO) {
        out->fidelity.microbatches = DTS_MICROBATCHES_FOLDED;
    }
}

dts_status dts_layouts_simulate_as_run(const dts_search_context *c, dts_finding *f) {
    const dts_finding *twin = dts_layouts_find_twin(c, &f->candidate, true);
    dts_finding again = *f;
    again.outcome = (dts_outcome){.kind = DTS_OUTCOME_PENDING};
    dts_status status = DTS_OK;
    if (twin != NULL) {
        status = dts_finding_take(twin, &again);
    } else {
        dts_scenario_values values;
        dts_layouts_values_as_run(c, f, &values);
        const dts_run_options options = {.stop = c->request->stop};
        status = simulate_values(&values, &options, c->request->base, &again);
    }
    if (status == DTS_OK && again.outcome.kind == DTS_OUTCOME_SIMULATED) {
        dts_outcome_clear(&f->outcome);
        again.full_s = f->full_s;
        again.again = true;
        *f = again;
    } else {
        f->no_memory = again.outcome.kind == DTS_OUTCOME_NO_MEMORY;
        dts_outcome_clear(&again.outcome);
    }
    f->as_run = true;
    return status;
}

static dts_status simulate_stored(simulation_work *w, size_t index) {
    const dts_search_request *request = w->c->request;
    dts_finding *f = &w->findings[index];
    if (request->store == NULL) {
        return simulate(w, f);
    }
    dts_text document = {0}, settings = {0};
    char hash[17];
    bool found = false;
    write_document(request, &f->candidate, &document, &settings);
    dts_document_hash(DTS_PHYSICS, dts_text_string(&document), hash);
    dts_status status = document.failed ? DTS_NOMEM : DTS_OK;
    if (status == DTS_OK) {
        pthread_mutex_lock(&w->lock);
        found = dts_store_find(request->store, hash, &f->outcome);
        pthread_mutex_unlock(&w->lock);
    }
    if (found) {
        take_figures(request->base, f);
    } else if (status == DTS_OK) {
        status = simulate(w, f);
    }
    pthread_mutex_lock(&w->lock);
    w->c->search->counts.stored += found;
    if (f->outcome.kind == DTS_OUTCOME_SIMULATED || f->outcome.kind == DTS_OUTCOME_ILLEGAL) {
        dts_store_add(request->store, request->study, w->c->search->count + index, dts_text_string(&settings), hash,
                      found ? NULL : &f->outcome);
    }
    pthread_mutex_unlock(&w->lock);
    dts_text_free(&document);
    dts_text_free(&settings);
    return status;
}

void dts_layouts_tell(const dts_search_context *c, size_t done, size_t count, const char *what) {
    if (c->request->progress != NULL) {
        size_t before = c->search->count + c->screened_count;
        c->request->progress(c->request->progress_context, before + done, before + count, what);
    }
}

static void simulate_one(void *context, size_t index) {
    simulation_work *w = context;
    const bool waits = !w->twins && twin_in_batch(w, index) != DTS_NOWHERE;
    if (waits || dts_layouts_stopped(w->c) || w->findings[index].outcome.kind != DTS_OUTCOME_PENDING) {
        return;
    }
    w->status[index] = simulate_stored(w, index);
    pthread_mutex_lock(&w->lock);
    w->done++;
    dts_layouts_tell(w->c, w->done, w->count, w->findings[index].outcome.plan);
    pthread_mutex_unlock(&w->lock);
}

static bool make_room(dts_search_context *c, size_t more) {
    dts_finding *findings =
        dts_array_room(c->search->findings, &c->capacity, c->search->count + more, sizeof *findings);
    c->search->findings = findings != NULL ? findings : c->search->findings;
    return findings != NULL;
}

void dts_layouts_note_failure(dts_search_context *c, const dts_candidate *candidate, const char *reason) {
    dts_search_counts *n = &c->search->counts;
    if (n->failure[0] == '\0' && reason != NULL) {
        dts_text plan = {0};
        dts_candidate_describe(candidate, c->request->base, &plan);
        snprintf(n->failure, sizeof n->failure, "%s: %s", dts_text_string(&plan), reason);
        dts_text_free(&plan);
    }
}

/* Keeps what was simulated, in the order of the candidates. */
static dts_status keep(dts_search_context *c, simulation_work *w) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < w->count; i++) {
        status = w->status[i] != DTS_OK ? w->status[i] : status;
        if (w->findings[i].outcome.kind == DTS_OUTCOME_PENDING) {
            c->search->interrupted |= w->status[i] == DTS_OK;
        } else {
            dts_layouts_note_failure(c, &w->findings[i].candidate, dts_outcome_reason(&w->findings[i].outcome));
            c->search->findings[c->search->count++] = w->findings[i];
        }
    }
    return status;
}

dts_status dts_layouts_simulate(dts_search_context *c, const dts_ranked *candidates, size_t count, dts_diag *diag) {
    double begin_s = dts_clock_s();
    simulation_work w = {.c = c, .lock = PTHREAD_MUTEX_INITIALIZER};
    w.findings = calloc(count > 0 ? count : 1, sizeof *w.findings);
    w.status = calloc(count > 0 ? count : 1, sizeof *w.status);
    if (w.findings == NULL || w.status == NULL || !make_room(c, count)) {
        free(w.findings);
        free(w.status);
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < count; i++) {
        bool again = dts_layouts_find(c, &candidates[i].candidate) != DTS_NOWHERE;
        for (size_t k = 0; k < w.count && !again; k++) { /* a list may hold a candidate twice, estimated in two ways */
            again = dts_candidate_compare(&w.findings[k].candidate, &candidates[i].candidate) == 0;
        }
        if (!again) {
            w.findings[w.count++] = (dts_finding){.candidate = candidates[i].candidate,
                                                  .estimate = candidates[i].estimate,
                                                  .acceptance = c->only_accepted ? DTS_ACCEPTED : DTS_NOT_ASKED};
        }
    }
    dts_parallel_for(w.count, c->request->threads, simulate_one, &w);
    w.twins = true;
    dts_parallel_for(w.count, 1, simulate_one, &w);
    pthread_mutex_destroy(&w.lock);
    dts_status status = keep(c, &w);
    free(w.findings);
    free(w.status);
    c->search->simulate_s += dts_clock_s() - begin_s;
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}
