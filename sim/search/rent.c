/* For the best plan of an offer, with T tokens to train on:
 *   duration = T / (tokens per second · goodput)      goodput: failures, checkpoints and restarts (run/whole_run.c)
 *   price    = duration · USD per hour of all nodes                                              no data transfer */
#include "search/rent.h"

#include <stdlib.h>
#include <string.h>

void dts_rent_free(dts_rent *rent) {
    if (rent != NULL) {
        for (size_t i = 0; i < rent->count; i++) {
            dts_search_free(rent->offers[i].search);
            dts_scenario_free(rent->offers[i].scenario);
            free(rent->offers[i].reason);
        }
        free(rent->offers);
        free(rent);
    }
}

const dts_finding *dts_offer_plan(const dts_offer *offer) {
    bool any = offer->search != NULL && offer->search->count > 0 &&
               offer->search->findings[0].outcome.kind == DTS_OUTCOME_SIMULATED &&
               offer->search->findings[0].outcome.figures.fits;
    return any ? &offer->search->findings[0] : NULL;
}

static char *copy(const char *text) {
    size_t size = strlen(text) + 1;
    char *made = malloc(size);
    return made == NULL ? NULL : memcpy(made, text, size);
}

/* The scenario on this offer's machines. An error of one offer is its reason. */
static dts_status load(const dts_rent_request *request, dts_offer *offer, dts_diag *diag) {
    size_t count = request->override_count;
    dts_override *overrides = calloc(count + 2, sizeof *overrides);
    dts_diag *why = dts_diag_new();
    if (overrides == NULL || why == NULL) {
        free(overrides);
        dts_diag_free(why);
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < count; i++) {
        overrides[i] = request->overrides[i];
    }
    if (offer->cluster != NULL) {
        overrides[count++] =
            (dts_override){.key = "cluster.profile", .value = offer->cluster, .place = {.file = "--clusters"}};
    }
    if (offer->nodes != NULL) {
        overrides[count++] =
            (dts_override){.key = "cluster.nodes", .value = offer->nodes, .place = {.file = "--nodes"}};
    }
    dts_status status = dts_scenario_load(request->path, overrides, count, request->profiles, &offer->scenario, why);
    if (status != DTS_OK && status != DTS_NOMEM) {
        const dts_message *message = dts_diag_count(why) > 0 ? dts_diag_get(why, 0) : NULL;
        dts_text text = {0};
        dts_text_add(&text, message != NULL ? message->text : "refused");
        if (message != NULL && message->help != NULL) {
            dts_text_printf(&text, " (%s)", message->help);
        }
        offer->reason = text.failed ? NULL : copy(dts_text_string(&text));
        dts_text_free(&text);
        status = offer->reason == NULL ? DTS_NOMEM : DTS_OK;
    }
    free(overrides);
    dts_diag_free(why);
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}

/* Why no plan was found. */
static char *explain(const dts_search *search) {
    dts_text text = {0};
    if (search->interrupted) {
        dts_text_add(&text, "interrupted");
    } else if (search->counts.legal > 0) {
        dts_text_add(&text, "nothing fits in memory");
    } else {
        dts_text_printf(&text, "no layout is legal%s%s", search->counts.illegal_reason[0] != '\0' ? ": " : "",
                        search->counts.illegal_reason);
    }
    return text.data;
}

static dts_status search_offer(const dts_rent_request *request, dts_offer *offer, dts_diag *diag) {
    dts_text document = {0};
    dts_effective_document(offer->scenario, &document);
    dts_search_request search = request->search;
    search.base = dts_scenario_get(offer->scenario);
    search.document = dts_text_string(&document);
    dts_status status = document.failed ? dts_diag_nomem(diag) : request->space->run(&search, &offer->search, diag);
    dts_text_free(&document);
    const dts_finding *plan = status == DTS_OK ? dts_offer_plan(offer) : NULL;
    if (plan != NULL) {
        const dts_figures *f = &plan->outcome.figures;
        offer->duration_s = request->tokens / (f->tokens_per_s * f->goodput);
        offer->usd = offer->duration_s / 3600 * f->price_usd_per_hour;
        offer->in_time = !(request->deadline_s > 0) || offer->duration_s <= request->deadline_s;
    } else if (status == DTS_OK) {
        offer->reason = explain(offer->search);
        status = offer->reason == NULL ? dts_diag_nomem(diag) : DTS_OK;
    }
    return status;
}

/* ---- the ranking
 * ----------------------------------------------------------------------------------------------------- */

/* Smaller is better. Sorting is stable, so offers that are equal stay in the order in which they were asked for. */
static int compare(const dts_rent *rent, const dts_offer *a, const dts_offer *b) {
    bool money = rent->objective != DTS_OBJECTIVE_TIME;
    bool has_a = dts_offer_plan(a) != NULL, has_b = dts_offer_plan(b) != NULL;
    if (has_a != has_b || !has_a) {
        return has_a == has_b ? 0 : (has_a ? -1 : 1);
    }
    if (a->in_time != b->in_time) {
        return a->in_time ? -1 : 1;
    }
    if (money && (a->usd > 0) != (b->usd > 0)) {
        return a->usd > 0 ? -1 : 1;
    }
    double x = money && a->usd > 0 ? a->usd : a->duration_s;
    double y = money && b->usd > 0 ? b->usd : b->duration_s;
    return (x > y) - (x < y);
}

static void rank(dts_rent *rent) {
    for (size_t i = 1; i < rent->count; i++) {
        dts_offer offer = rent->offers[i];
        size_t at = i;
        while (at > 0 && compare(rent, &offer, &rent->offers[at - 1]) < 0) {
            rent->offers[at] = rent->offers[at - 1];
            at--;
        }
        rent->offers[at] = offer;
    }
}

static void mark_pareto(dts_rent *rent) {
    for (size_t i = 0; i < rent->count; i++) {
        dts_offer *a = &rent->offers[i];
        a->pareto = dts_offer_plan(a) != NULL && a->usd > 0;
        rent->unpriced += dts_offer_plan(a) != NULL && !(a->usd > 0);
        for (size_t k = 0; k < rent->count && a->pareto; k++) {
            const dts_offer *b = &rent->offers[k];
            bool better = dts_offer_plan(b) != NULL && b->usd > 0 && b->duration_s <= a->duration_s &&
                          b->usd <= a->usd && (b->duration_s < a->duration_s || b->usd < a->usd);
            a->pareto = !better;
        }
    }
}

dts_status dts_rent_search(const dts_rent_request *request, dts_rent **out, dts_diag *diag) {
    size_t clusters = request->cluster_count > 0 ? request->cluster_count : 1;
    size_t sizes = request->node_count > 0 ? request->node_count : 1;
    dts_rent *rent = calloc(1, sizeof *rent);
    if (rent == NULL || (rent->offers = calloc(clusters * sizes, sizeof *rent->offers)) == NULL) {
        free(rent);
        return dts_diag_nomem(diag);
    }
    rent->tokens = request->tokens;
    rent->deadline_s = request->deadline_s;
    rent->objective = request->search.objective;
    dts_status status = DTS_OK;
    for (size_t i = 0; i < clusters * sizes && status == DTS_OK && !rent->interrupted; i++) {
        dts_offer *offer = &rent->offers[rent->count++];
        offer->cluster = request->cluster_count > 0 ? request->clusters[i / sizes] : NULL;
        offer->nodes = request->node_count > 0 ? request->nodes[i % sizes] : NULL;
        status = load(request, offer, diag);
        if (status == DTS_OK && offer->scenario != NULL) {
            status = search_offer(request, offer, diag);
        }
        rent->interrupted = offer->search != NULL && offer->search->interrupted;
    }
    if (status != DTS_OK) {
        dts_rent_free(rent);
        return status;
    }
    mark_pareto(rent);
    rank(rent);
    *out = rent;
    return DTS_OK;
}
