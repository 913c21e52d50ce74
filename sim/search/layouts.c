/* The space of layouts, from the first look at all candidates to the ranked answer:
 *   1. a walk over all legal candidates keeps the best by closed form, the best of each plain baseline, and drops what
 * is proven not to fit;
 *   2. the baselines and the scenario's own plan are simulated: what a method finds has to beat them;
 *   3. the method simulates what it chooses;
 *   4. what became of the others is counted, now that the best is known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "run/run.h"
#include "search/layouts.h"
#include "search/plain.h"

enum {
    TENSOR_KINDS = 3,     /* none, inside a node, across nodes */
    ACTIVATION_KINDS = 2, /* on the GPU, offloaded */
    KEPT = 128,           /* candidates of each family that a method may simulate */
    KEPT_OF_BASELINE = 4, /* a baseline takes the first of these that fits */
    KEPT_NEAREST = 32,    /* where nothing fits */
    LARGEST_PIPELINE = 4096
};

const char *const dts_rule_names[] = {"DDP", "FSDP", "Megatron's rule", NULL};

const dts_search_method *const dts_search_methods[] = {&dts_method_exhaustive, &dts_method_dp, &dts_method_mcmc};
const size_t dts_search_method_count = sizeof dts_search_methods / sizeof dts_search_methods[0];

const dts_search_method *dts_search_method_find(const char *name) {
    for (size_t i = 0; i < dts_search_method_count; i++) {
        if (strcmp(dts_search_methods[i]->name, name) == 0) {
            return dts_search_methods[i];
        }
    }
    return NULL;
}

void dts_search_free(dts_search *search) {
    if (search != NULL) {
        for (size_t i = 0; i < search->count; i++) {
            dts_outcome_clear(&search->findings[i].outcome);
        }
        dts_outcome_clear(&search->remedy.outcome);
        free(search->findings);
        dts_arena_free(search->arena);
        free(search);
    }
}

size_t dts_layouts_families(const dts_layout_space *space) {
    return (size_t)ACTIVATION_KINDS * TENSOR_KINDS * (space->axes[DTS_AXIS_SCHEDULE].count + 1) *
               space->axes[DTS_AXIS_DATA_PARALLEL].count +
           1;
}

size_t dts_layouts_family(const dts_layout_space *space, const dts_candidate *candidate) {
    const int32_t *v = candidate->value;
    size_t kind = dts_layout_space_find(space, DTS_AXIS_DATA_PARALLEL, v[DTS_AXIS_DATA_PARALLEL]);
    size_t schedule =
        v[DTS_AXIS_PIPELINE] == 1 ? 0 : 1 + dts_layout_space_find(space, DTS_AXIS_SCHEDULE, v[DTS_AXIS_SCHEDULE]);
    int64_t node = dts_cluster_joined(&space->base->cluster);
    size_t tensor = v[DTS_AXIS_TENSOR] == 1 ? 0 : (v[DTS_AXIS_TENSOR] <= node ? 1 : 2);
    if (kind == space->axes[DTS_AXIS_DATA_PARALLEL].count || schedule > space->axes[DTS_AXIS_SCHEDULE].count) {
        return dts_layouts_families(space) - 1;
    }
    const size_t activations = (v[DTS_AXIS_OFFLOAD] & DTS_OFFLOAD_ACTIVATIONS) != 0;
    return ((schedule * space->axes[DTS_AXIS_DATA_PARALLEL].count + kind) * TENSOR_KINDS + tensor) * ACTIVATION_KINDS +
           activations;
}

/* ---- the first walk -----------------------------------------------------------------------------------------------
 */

typedef struct look {
    const dts_search_context *c;
    dts_top *best; /* [family] */
    dts_top baselines[DTS_RULE_COUNT];
    dts_top nearest;
    uint64_t no_memory;
    dts_estimate own;   /* of the scenario's own plan … */
    bool has_own;       /* … where it is among those of the walk */
    dts_leasts *leasts; /* NULL: not wanted */
    dts_branches *branches;
    bool failed;
    _Atomic double *behind; /* [family], of all pairs: what is behind this is behind all that are kept. NULL: look at
                               everything */
} look;

/* Tensor parallelism as wide as a node and the heads allow. */
static bool is_widest(const dts_search_context *c, int64_t tensor) {
    const dts_scenario_values *base = c->request->base;
    const int64_t node = dts_cluster_joined(&base->cluster);
    int64_t widest = 1;
    for (int64_t t = 1; t <= node; t++) {
        widest = node % t == 0 && base->model.heads % t == 0 ? t : widest;
    }
    return tensor == widest;
}

static bool is_baseline(const dts_search_context *c, dts_rule baseline, const dts_candidate *candidate) {
    const int32_t *v = candidate->value;
    int32_t kind = v[DTS_AXIS_DATA_PARALLEL];
    bool whole = v[DTS_AXIS_TENSOR] == 1 && v[DTS_AXIS_PIPELINE] == 1;
    bool sharded = kind == DTS_DP_FSDP || kind == DTS_DP_ZERO3;
    size_t count = 0;
    if (v[DTS_AXIS_OFFLOAD] != 0 || !dts_candidate_is_plain(candidate)) {
        return false;
    }
    switch (baseline) {
        case DTS_RULE_DDP:
            return whole && kind == DTS_DP_DDP;
        case DTS_RULE_FSDP:
            return whole && sharded;
        case DTS_RULE_MEGATRON:
            return is_widest(c, v[DTS_AXIS_TENSOR]) && (kind == DTS_DP_DDP || kind == DTS_DP_ZERO1) &&
                   strcmp(dts_schedule_methods(&count)[v[DTS_AXIS_SCHEDULE]]->name, "1f1b") == 0;
        case DTS_RULE_COUNT:
            break;
    }
    return false;
}

/* Baselines are as fast as they can be made; Megatron's rule takes as few stages as fit. */
static double baseline_score(const dts_search_context *c, dts_rule baseline, const dts_candidate *candidate,
                             const dts_estimate *estimate) {
    double score = dts_layouts_score(c, estimate);
    bool fits = estimate->memory_B <= c->capacity_B;
    if (baseline == DTS_RULE_MEGATRON && fits) {
        return (double)candidate->value[DTS_AXIS_PIPELINE] + score / (1 + score);
    }
    return fits ? score
                : (baseline == DTS_RULE_MEGATRON ? LARGEST_PIPELINE : 1e12) * (estimate->memory_B / c->capacity_B);
}

static bool add_least(dts_leasts *leasts, double least) {
    double *items = dts_array_room(leasts->items, &leasts->capacity, leasts->count + 1, sizeof *items);
    if (items != NULL) {
        leasts->items = items;
        leasts->items[leasts->count++] = least;
    }
    return items != NULL;
}

/* As many as are kept of all pairs are known here, so that no other pair needs what is behind them. */
static void note_last(look *l, size_t family) {
    const dts_top *top = &l->best[family];
    if (l->behind == NULL || top->count < top->capacity) {
        return;
    }
    const double last = top->items[top->count - 1].score;
    for (double before = atomic_load(&l->behind[family]);
         last < before && !atomic_compare_exchange_weak(&l->behind[family], &before, last);) {
    }
}

size_t dts_layouts_first_family(const dts_layout_space *space, const dts_candidate *candidate, int axes,
                                size_t *count) {
    const size_t family = dts_layouts_family(space, candidate);
    *count = axes > DTS_AXIS_OFFLOAD ? 1 : ACTIVATION_KINDS;
    return axes > DTS_AXIS_OFFLOAD ? family : family / ACTIVATION_KINDS * ACTIVATION_KINDS;
}

/* A score is the time, or above it. What is passed over is told to later walks by its bound. */
static bool is_behind(const void *context, const dts_candidate *candidate, int axes, double least_s) {
    const look *l = context;
    size_t count = 0;
    const size_t first = dts_layouts_first_family(&l->c->search->space, candidate, axes, &count);
    bool behind = true;
    for (size_t i = 0; i < count && behind; i++) {
        behind = least_s > atomic_load_explicit(&l->behind[first + i], memory_order_relaxed);
    }
    for (size_t i = 0; i < count && behind; i++) {
        behind = dts_branches_add(l->branches, candidate, first + i, least_s) == DTS_OK; /* else it is looked at */
    }
    return behind;
}

static void look_at(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    look *l = context;
    for (int b = 0; b < DTS_RULE_COUNT; b++) {
        if (is_baseline(l->c, (dts_rule)b, candidate)) {
            dts_top_add(&l->baselines[b], baseline_score(l->c, (dts_rule)b, candidate, estimate), candidate, estimate);
        }
    }
    if (l->c->has_own && dts_candidate_compare(candidate, &l->c->own.candidate) == 0) {
        l->own = *estimate;
        l->has_own = true;
    }
    const double fill = dts_layouts_least_fill(l->c, estimate);
    if (fill > 1) {
        l->no_memory++;
        if (!l->c->request->only_here) {
            dts_top_add(&l->nearest, fill, candidate, estimate);
        }
    } else {
        size_t family = dts_layouts_family(&l->c->search->space, candidate);
        dts_top_add(&l->best[family], dts_layouts_score(l->c, estimate), candidate, estimate);
        note_last(l, family);
        l->failed |= l->leasts != NULL && !add_least(l->leasts, dts_layouts_least(l->c, estimate));
        l->failed |= estimate->memory_B <= l->c->capacity_B &&
                     dts_branches_add(l->branches, candidate, family, estimate->time_s) != DTS_OK;
    }
}

static dts_status tops_new(size_t count, size_t capacity, dts_top **out) {
    dts_top *tops = calloc(count, sizeof *tops);
    dts_status status = tops == NULL ? DTS_NOMEM : DTS_OK;
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        status = dts_top_new(capacity, &tops[i]);
    }
    *out = tops;
    return status;
}

static void tops_free(dts_top *tops, size_t count) {
    for (size_t i = 0; i < count && tops != NULL; i++) {
        dts_top_free(&tops[i]);
    }
    free(tops);
}

static dts_status looks_new(dts_search_context *c, size_t pairs, _Atomic double *behind, look **out) {
    look *looks = calloc(pairs, sizeof *looks);
    const bool all = !c->request->only_here;
    c->leasts = all ? calloc(pairs, sizeof *c->leasts) : NULL;
    c->branches = calloc(pairs, sizeof *c->branches);
    dts_status status = looks == NULL || c->branches == NULL || (all && c->leasts == NULL) ? DTS_NOMEM : DTS_OK;
    for (size_t i = 0; i < pairs && status == DTS_OK; i++) {
        looks[i].c = c;
        looks[i].behind = behind;
        const size_t families = dts_layouts_families(&c->search->space);
        looks[i].leasts = all ? &c->leasts[i] : NULL;
        c->branches[i].families = families;
        looks[i].branches = &c->branches[i];
        status = tops_new(families, KEPT, &looks[i].best);
        status = status == DTS_OK ? dts_top_new(KEPT_NEAREST, &looks[i].nearest) : status;
        for (int b = 0; b < DTS_RULE_COUNT && status == DTS_OK; b++) {
            status = dts_top_new(KEPT_OF_BASELINE, &looks[i].baselines[b]);
        }
    }
    *out = looks;
    return status;
}

static void looks_free(look *looks, size_t pairs, size_t families) {
    for (size_t i = 0; i < pairs && looks != NULL; i++) {
        tops_free(looks[i].best, families);
        dts_top_free(&looks[i].nearest);
        for (int b = 0; b < DTS_RULE_COUNT; b++) {
            dts_top_free(&looks[i].baselines[b]);
        }
    }
    free(looks);
}

/* The best of each family over all pairs, in one list. */
static dts_status merge_families(dts_search_context *c, const look *looks, size_t pairs, dts_diag *diag) {
    size_t families = dts_layouts_families(&c->search->space);
    dts_status status = dts_top_new(families * KEPT, &c->best);
    for (size_t f = 0; f < families && status == DTS_OK; f++) {
        dts_top family = {0};
        status = dts_top_new(KEPT, &family);
        for (size_t i = 0; i < pairs && status == DTS_OK; i++) {
            dts_top_merge(&family, &looks[i].best[f]);
        }
        dts_top_merge(&c->best, &family);
        dts_top_free(&family);
    }
    return status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}

static dts_status first_walk(dts_search_context *c, dts_top *baselines, dts_diag *diag) {
    size_t pairs = dts_layout_space_pairs(&c->search->space);
    const size_t families = dts_layouts_families(&c->search->space);
    /* where nobody asks what became of the others, and candidates are kept by their times */
    const bool passes = c->request->only_here && c->request->objective != DTS_OBJECTIVE_MEMORY;
    _Atomic double *behind = malloc(families * sizeof *behind);
    for (size_t f = 0; f < families && behind != NULL; f++) {
        atomic_init(&behind[f], (double)INFINITY);
    }
    look *looks = NULL;
    const dts_layout_watch watch = {.visit = look_at, .passes = passes ? is_behind : NULL};
    dts_walk_counts total;
    bool own_found = false;
    dts_status status = behind == NULL ? DTS_NOMEM : looks_new(c, pairs, passes ? behind : NULL, &looks);
    status = status == DTS_OK ? dts_layouts_walk(c, &watch, looks, sizeof *looks, &total, diag) : dts_diag_nomem(diag);
    if (status == DTS_OK) {
        for (size_t i = 0; i < pairs; i++) {
            c->search->counts.no_memory += looks[i].no_memory;
            c->own.estimate = looks[i].has_own ? looks[i].own : c->own.estimate;
            own_found = own_found || looks[i].has_own;
            status = looks[i].failed ? dts_diag_nomem(diag) : status;
            dts_top_merge(&c->nearest, &looks[i].nearest);
            dts_branches_sort(&c->branches[i]);
            for (int b = 0; b < DTS_RULE_COUNT; b++) {
                dts_top_merge(&baselines[b], &looks[i].baselines[b]);
            }
        }
        c->passed = total.passed;
        c->search->counts.legal = total.legal + (c->has_own && !own_found);
        c->search->counts.illegal = total.illegal;
        memcpy(c->search->counts.illegal_reason, total.reason, sizeof total.reason);
    }
    status = status == DTS_OK ? merge_families(c, looks, pairs, diag) : status;
    looks_free(looks, pairs, families);
    free(behind);
    return status;
}

/* ---- baselines ------------------------------------------------------------------------------------------------------
 */

/* Of a baseline's candidates the first that fits, or the first. */
static dts_status simulate_baseline(dts_search_context *c, dts_rule baseline, const dts_top *top, dts_diag *diag) {
    for (size_t i = 0; i < top->count && !dts_layouts_stopped(c); i++) {
        dts_status status = dts_layouts_simulate(c, &top->items[i], 1, diag);
        long index = dts_layouts_find(c, &top->items[i].candidate);
        if (status != DTS_OK) {
            return status;
        }
        bool fits = index >= 0 && c->search->findings[index].outcome.figures.fits;
        if (c->search->baselines[baseline] == DTS_NOWHERE || fits) {
            c->search->baselines[baseline] = index;
        }
        if (fits) {
            break;
        }
    }
    return DTS_OK;
}

/* ---- the run --------------------------------------------------------------------------------------------------------
 */

/* Where the asker needs more than the first simulations have shown. */
static dts_status go_on(dts_search_context *c, const dts_search_method *method, dts_diag *diag) {
    const dts_search_request *request = c->request;
    const bool more = request->needs_more != NULL && request->simulations > 0 && !dts_layouts_stopped(c) &&
                      c->search->count < DTS_SEARCH_SIMULATIONS && request->needs_more(c->search);
    if (!more) {
        return DTS_OK;
    }
    c->search->went_on = true;
    c->simulations = DTS_SEARCH_SIMULATIONS - c->search->count;
    dts_status status = method->run(c, diag);
    status = status == DTS_OK ? dts_layouts_assure(c, diag) : status;
    c->search->interrupted = dts_layouts_stopped(c);
    return status == DTS_OK ? dts_layouts_conclude(c, diag) : status;
}

static void free_context(dts_search_context *c) {
    dts_top_free(&c->best);
    dts_top_free(&c->nearest);
    free(c->screened);
    for (size_t i = 0; i < dts_layout_space_pairs(&c->search->space); i++) {
        if (c->leasts != NULL) {
            free(c->leasts[i].items);
        }
        if (c->branches != NULL) {
            dts_branches_free(&c->branches[i]);
        }
    }
    free(c->leasts);
    free(c->branches);
    dts_layouts_free_caches(c);
}

dts_status dts_layouts_run(const dts_search_request *request, dts_search **out, dts_diag *diag) {
    if (request->base->training.mode != DTS_MODE_TRAIN) {
        return dts_diag_error(diag, NULL, "training.mode", "use `dtsim sweep`, or mode: train",
                              "the bounds of this search are those of training, not of inference");
    }
    const dts_search_method *method = dts_search_method_find(request->method);
    dts_search *search = calloc(1, sizeof *search);
    if (search == NULL) {
        return dts_diag_nomem(diag);
    }
    *search = (dts_search){.base = request->base,
                           .method = method->name,
                           .objective = request->objective,
                           .seed = request->seed,
                           .threads = request->threads,
                           .arena = dts_arena_new(DTS_ARENA_UNLIMITED)};
    if (search->arena == NULL) {
        free(search);
        return dts_diag_nomem(diag);
    }
    dts_search_context c = {.request = request, .search = search, .simulations = request->simulations};
    const dts_cluster *cluster = &request->base->cluster;
    c.host_B = dts_cluster_host(cluster).memory_B;
    c.drives_B = dts_cluster_host(cluster).nvme_capacity_B;
    c.capacity_B = dts_layout_space_gpu_B(request->base);
    dts_top baselines[DTS_RULE_COUNT] = {{0}};
    dts_status status =
        dts_layout_space_make(request->base, request->restrictions, request->restriction_count, &search->space, diag);
    if (status == DTS_OK && request->only_offered) {
        dts_layout_space_keep_offered(&search->space);
    }
    for (int b = 0; b < DTS_RULE_COUNT && status == DTS_OK; b++) {
        status = dts_top_new(KEPT_OF_BASELINE, &baselines[b]) == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
    }
    search->space.stop = request->stop;
    if (status == DTS_OK && dts_top_new(KEPT_NEAREST, &c.nearest) != DTS_OK) {
        status = dts_diag_nomem(diag);
    }
    search->own = DTS_NOWHERE;
    if (status == DTS_OK) {
        dts_layouts_find_own(&c);
        status = first_walk(&c, baselines, diag);
    }
    for (int b = 0; b < DTS_RULE_COUNT && status == DTS_OK; b++) {
        search->baselines[b] = DTS_NOWHERE;
        status = request->only_here ? DTS_OK : simulate_baseline(&c, (dts_rule)b, &baselines[b], diag);
    }
    status = status == DTS_OK ? dts_layouts_simulate_own(&c, diag) : status;
    status = status == DTS_OK ? method->run(&c, diag) : status;
    status = status == DTS_OK ? dts_layouts_simulate_nearest(&c, diag) : status;
    status = status == DTS_OK ? dts_layouts_lift(&c, diag) : status;
    status = status == DTS_OK ? dts_layouts_accept(&c, diag) : status;
    status = status == DTS_OK ? dts_layouts_assure(&c, diag) : status;
    search->interrupted = dts_layouts_stopped(&c); /* also between two simulations */
    status = status == DTS_OK ? dts_layouts_conclude(&c, diag) : status;
    status = status == DTS_OK ? go_on(&c, method, diag) : status;
    status = status == DTS_OK ? dts_layouts_remedy(&c, diag) : status;
    for (int b = 0; b < DTS_RULE_COUNT; b++) {
        dts_top_free(&baselines[b]);
    }
    free_context(&c);
    if (status != DTS_OK) {
        dts_search_free(search);
        return status;
    }
    *out = search;
    return DTS_OK;
}

static const dts_search_space layouts = {
    .name = "layouts",
    .summary = "degrees, schedule, microbatch, sharding, recomputation, offload, placement",
    .run = dts_layouts_run,
};

static const dts_search_space soap = {
    .name = "soap",
    .summary = "every operator cut by itself: by sample, attribute and parameter, and where its parts lie",
};

static const dts_search_space to_rent = {
    .name = "rent",
    .summary = "clusters and numbers of nodes, each with its best layout: time and money of a whole run",
};

const dts_search_space *const dts_search_spaces[] = {&layouts, &soap, &to_rent};
const size_t dts_search_space_count = sizeof dts_search_spaces / sizeof dts_search_spaces[0];
