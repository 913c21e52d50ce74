/* What does not fit, and the smallest change that lifts it.
 *
 * For a plan: one more walk keeps the legal neighbours that differ in one key, in two, in three, by closed form the
 * fastest that may fit; they are simulated in this order until one fits. Where nothing fits at all: the same search
 * without restrictions, then on more nodes, in steps of half and of doubles, until something does. */
#include <math.h>
#include <stdlib.h>

#include "run/run.h"
#include "search/layouts.h"

enum { TRIES = 4 /* simulations of each number of keys */, SIMULATIONS_OF_STEP = 8 };

/* The closed form of the memory is no bound: beyond this it is believed. */
static const double DOUBT = 1.05;

typedef struct neighbours {
    const dts_search_context *c;
    const dts_candidate *of;
    dts_top near[DTS_MOST_CHANGED]; /* by the number of keys that differ, less one */
} neighbours;

/* Each of the axes that are asked for is one key. */
static bool is_near(const void *context, const dts_candidate *candidate, int axes) {
    const neighbours *n = context;
    int distance = 0;
    for (int axis = 0; axis < axes; axis++) {
        distance += candidate->value[axis] != n->of->value[axis];
    }
    return distance <= DTS_MOST_CHANGED;
}

static void look_near(void *context, const dts_candidate *candidate, const dts_estimate *estimate) {
    neighbours *n = context;
    int distance = dts_candidate_distance(candidate, n->of);
    if (distance >= 1 && distance <= DTS_MOST_CHANGED && dts_layouts_least_fill(n->c, estimate) <= 1 &&
        estimate->memory_B <= DOUBT * n->c->capacity_B) {
        double over = estimate->memory_B > n->c->capacity_B ? DOUBT : 1;
        dts_top_add(&n->near[distance - 1], over * estimate->time_s, candidate, estimate);
    }
}

static dts_status tops_new(dts_top *tops) {
    dts_status status = DTS_OK;
    for (int i = 0; i < DTS_MOST_CHANGED && status == DTS_OK; i++) {
        status = dts_top_new(TRIES, &tops[i]);
    }
    return status;
}

static void tops_free(dts_top *tops) {
    for (int i = 0; i < DTS_MOST_CHANGED; i++) {
        dts_top_free(&tops[i]);
    }
}

/* The neighbours of a candidate over all pairs. */
static dts_status find_near(dts_search_context *c, const dts_candidate *of, dts_top *near, dts_diag *diag) {
    size_t pairs = dts_layout_space_pairs(&c->search->space);
    neighbours *all = calloc(pairs > 0 ? pairs : 1, sizeof *all);
    dts_status status = all == NULL ? DTS_NOMEM : tops_new(near);
    for (size_t i = 0; i < pairs && status == DTS_OK; i++) {
        all[i] = (neighbours){.c = c, .of = of};
        status = tops_new(all[i].near);
    }
    const dts_layout_watch watch = {.visit = look_near, .wants = is_near};
    dts_walk_counts unused;
    status = status == DTS_OK ? dts_layouts_walk(c, &watch, all, sizeof *all, &unused, diag) : dts_diag_nomem(diag);
    for (size_t i = 0; i < pairs && all != NULL; i++) {
        for (int k = 0; k < DTS_MOST_CHANGED && status == DTS_OK; k++) {
            dts_top_merge(&near[k], &all[i].near[k]);
        }
        tops_free(all[i].near);
    }
    free(all);
    return status;
}

/* What takes most of a plan's memory. */
static dts_status explain(const dts_search_context *c, const dts_candidate *candidate, dts_shortage *out,
                          dts_diag *diag) {
    dts_scenario_values values;
    dts_layouts_values(c, candidate, &values);
    dts_result *result = NULL;
    const dts_run_options options = {.stop = c->request->stop};
    dts_status status = dts_run_values(&values, &options, &result, diag);
    if (status != DTS_OK) {
        return status == DTS_INTERRUPTED ? DTS_OK : status;
    }
    const dts_memory_gib *m = &result->memory_gib;
    const struct {
        const char *name;
        double gib;
    } parts[] = {{"parameters", m->parameters},   {"gradients", m->gradients},   {"optimizer states", m->optimizer},
                 {"activations", m->activations}, {"temporaries", m->temporary}, {"communication", m->communication}};
    out->missing_gib = result->peak_allocated_gib + m->context - result->capacity_gib;
    const double room_gib = result->capacity_gib - m->context;
    const double host = result->host_peak_gib > 0 ? result->host_peak_gib / result->host_capacity_gib : 0;
    const double drives = result->nvme_peak_gib > 0 ? result->nvme_peak_gib / result->nvme_capacity_gib : 0;
    const double gpu = result->peak_allocated_gib / room_gib;
    out->drives = drives > 1 && drives > fmax(gpu, host);
    out->host = host > 1 && host > gpu && !out->drives;
    const double of_host_gib = fmax(result->host_peak_gib - result->host_capacity_gib, 0);
    const bool off = out->host || out->drives; /* what is offloaded is all there is */
    out->also_gib = off ? fmax(out->missing_gib, 0) : of_host_gib;
    if (off) {
        out->missing_gib = out->host ? of_host_gib : result->nvme_peak_gib - result->nvme_capacity_gib;
        out->largest = "offloaded tensors";
        out->largest_gib = out->host ? result->host_peak_gib : result->nvme_peak_gib;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && !off; i++) {
        if (parts[i].gib > out->largest_gib) {
            out->largest = parts[i].name;
            out->largest_gib = parts[i].gib;
        }
    }
    dts_result_free(result);
    return DTS_OK;
}

static dts_status lift(dts_search_context *c, long index, dts_shortage *out, dts_diag *diag) {
    const dts_candidate of = c->search->findings[index].candidate;
    dts_top near[DTS_MOST_CHANGED] = {{0}};
    dts_status status = explain(c, &of, out, diag);
    status = status == DTS_OK ? find_near(c, &of, near, diag) : status;
    for (int k = 0; k < DTS_MOST_CHANGED; k++) {
        for (size_t i = 0; i < near[k].count && status == DTS_OK && !out->lifted && !dts_layouts_stopped(c); i++) {
            status = dts_layouts_simulate(c, &near[k].items[i], 1, diag);
            long found = dts_layouts_find(c, &near[k].items[i].candidate);
            out->lifted = found >= 0 && c->search->findings[found].outcome.figures.fits;
            out->lifted_by = out->lifted ? (size_t)found : 0;
        }
    }
    tops_free(near);
    return status;
}

dts_status dts_layouts_lift(dts_search_context *c, dts_diag *diag) {
    dts_status status = DTS_OK;
    bool wanted = !c->request->only_here;
    for (int b = 0; b < DTS_RULE_COUNT && status == DTS_OK && wanted && !dts_layouts_stopped(c); b++) {
        long index = c->search->baselines[b];
        if (index >= 0 && c->search->findings[index].outcome.kind == DTS_OUTCOME_SIMULATED &&
            !c->search->findings[index].outcome.figures.fits) {
            status = lift(c, index, &c->search->shortages[b], diag);
        }
    }
    return status;
}

/* ---- more nodes ----------------------------------------------------------------------------------------------------
 */

/* The same search on so many nodes, or in the whole space; *fits: a plan does. */
static dts_status search_again(const dts_search_context *c, int64_t nodes, bool whole, dts_remedy *out, bool *fits,
                               dts_diag *diag) {
    dts_scenario_values base = *c->request->base;
    base.cluster.nodes = nodes;
    dts_search_request request = *c->request;
    request.base = &base;
    request.method = dts_method_exhaustive.name;
    request.restriction_count = whole ? 0 : request.restriction_count;
    request.simulations = SIMULATIONS_OF_STEP;
    request.store = NULL;
    request.accepts = NULL;
    request.only_here = true;
    dts_search *search = NULL;
    dts_status status = dts_layouts_run(&request, &search, diag);
    *fits = status == DTS_OK && search->chosen >= 0;
    if (*fits) {
        dts_finding *best = &search->findings[search->chosen];
        out->nodes = nodes;
        out->unrestricted = whole;
        out->on = best->candidate;
        out->outcome = best->outcome;
        best->outcome = (dts_outcome){0}; /* it has moved */
    }
    dts_search_free(search);
    return status;
}

dts_status dts_layouts_remedy(dts_search_context *c, dts_diag *diag) {
    enum { STEPS = 12 }; /* up to 64 times as many: 3/2, 2, 3, 4, 6, 8 … */
    dts_search *search = c->search;
    dts_remedy *remedy = &search->remedy;
    bool simulated = search->count > 0 && search->findings[0].outcome.kind == DTS_OUTCOME_SIMULATED;
    if (c->request->only_here || !simulated || dts_search_any_fits(search) || dts_layouts_stopped(c)) {
        return DTS_OK;
    }
    dts_status status = explain(c, &search->findings[0].candidate, &remedy->shortage, diag);
    int64_t whole = c->request->base->cluster.nodes;
    bool fits = false;
    if (status == DTS_OK && c->request->restriction_count > 0) {
        status = search_again(c, whole, true, remedy, &fits, diag);
    }
    const bool alone = c->request->base->cluster.inter.transport == DTS_TRANSPORT_NONE;
    for (int step = 0; step < STEPS && !alone && status == DTS_OK && !fits && !dts_layouts_stopped(c); step++) {
        int64_t nodes = step % 2 == 0 ? whole * 3 / 2 : whole * 2;
        if (step % 2 == 0 && whole % 2 != 0) {
            continue; /* no half */
        }
        whole = step % 2 == 0 ? whole : nodes;
        status = search_again(c, nodes, false, remedy, &fits, diag);
        remedy->most = nodes;
    }
    return status;
}
