/* For the best plan of an offer, with T tokens to train on:
 *   duration = T / (tokens per second · goodput)      goodput: failures, checkpoints and restarts (run/whole_run.c)
 *   price    = duration · USD per hour of all nodes                                              no data transfer
 * An offer on which the model's FLOPs of all tokens take longer than the deadline at the GPUs' peak rate is not
 * searched; one whose GPUs lack the precision is, and tells that. */
#include "search/rent.h"
#include "run/verdict.h"

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
        free(rent->own_nodes);
        free(rent->left_out);
        free(rent);
    }
}

const dts_finding *dts_offer_plan(const dts_offer *offer) {
    return dts_search_plan(offer->search);
}

bool dts_rent_any_wide(const dts_rent *rent) {
    bool any = false;
    for (size_t i = 0; i < rent->plans && !any; i++) {
        any = dts_offer_plan(&rent->offers[i])->outcome.figures.wide;
    }
    return any;
}

static char *copy(const char *text) {
    size_t size = strlen(text) + 1;
    char *made = malloc(size);
    return made == NULL ? NULL : memcpy(made, text, size);
}

bool dts_rent_replaces(const dts_override *override) {
    return strcmp(override->key, "cluster") == 0 || strcmp(override->key, "cluster.profile") == 0;
}

/* Does what the scenario, or its row of a table, says here of its own cluster not hold for an offer? Nor do times that
 * were measured on one machine hold for all. */
static bool is_of_own_cluster(const dts_override *override) {
    const bool measured =
        strcmp(override->key, "cluster.measured") == 0 || strcmp(override->key, "cluster.gpu.measured") == 0;
    return measured || dts_rent_replaces(override) ||
           (strncmp(override->key, "cluster.", strlen("cluster.")) == 0 && override->place.origin != DTS_ORIGIN_SET);
}

static const char *price_of(const dts_rent_request *request, const char *cluster) {
    const char *price = NULL;
    cluster = cluster != NULL ? cluster : request->own_cluster;
    for (size_t i = 0; i < request->price_count && cluster != NULL; i++) {
        price = strcmp(request->prices[i].cluster, cluster) == 0 ? request->prices[i].usd_per_hour : price;
    }
    return price;
}

/* The scenario on this offer's machines: whole ones, whatever the scenario says of its own, but for --set. */
static dts_status load_scenario(const dts_rent_request *request, dts_offer *offer, dts_diag *diag) {
    size_t count = 0;
    dts_override *overrides = calloc(request->override_count + 3, sizeof *overrides);
    if (overrides == NULL) {
        return dts_diag_nomem(diag);
    }
    if (offer->cluster != NULL) {
        overrides[count++] = (dts_override){.key = "cluster", .value = offer->cluster, .place = {.file = "--clusters"}};
    }
    for (size_t i = 0; i < request->override_count; i++) {
        if (offer->cluster == NULL || !is_of_own_cluster(&request->overrides[i])) {
            overrides[count++] = request->overrides[i];
        }
    }
    if (offer->nodes != NULL) {
        overrides[count++] =
            (dts_override){.key = "cluster.nodes", .value = offer->nodes, .place = {.file = "--nodes"}};
    }
    if (offer->price != NULL) {
        overrides[count++] =
            (dts_override){.key = "cluster.price", .value = offer->price, .place = {.file = "--price"}};
    }
    dts_status status = dts_scenario_load(request->path, overrides, count, request->profiles, &offer->scenario, diag);
    free(overrides);
    return status;
}

/* An error of one offer is its reason. */
static dts_status load(const dts_rent_request *request, const dts_rent *rent, dts_offer *offer, dts_diag *diag) {
    dts_diag *why = dts_diag_new();
    dts_status status = why == NULL ? DTS_NOMEM : load_scenario(request, offer, why);
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
    } else if (status == DTS_OK && offer == rent->offers && request->cluster_count < 2) {
        dts_diag_append(diag, why); /* warnings of one cluster are told once, of many they are not the user's */
    }
    dts_diag_free(why);
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}

/* Are there candidates that were not simulated, though they may be as good? */
static bool is_open(const dts_search *search) {
    return search->counts.worse_by_estimate + search->counts.screened > 0;
}

/* Why no plan was found. */
static char *explain(const dts_search *search) {
    dts_text text = {0};
    if (search->interrupted) {
        dts_text_add(&text, "interrupted");
    } else if (search->counts.simulated == 0 && search->counts.failed > 0) {
        dts_text_printf(&text, "no plan could be simulated: %s", search->counts.failure);
    } else if (search->counts.legal > 0) {
        dts_text_add(&text, is_open(search) ? "nothing that was simulated fits in memory (--simulate looks at more)"
                                            : "nothing fits in memory");
    } else {
        const bool said = search->counts.illegal_reason[0] != '\0';
        dts_text_printf(&text, "no layout is legal: %s",
                        said ? search->counts.illegal_reason
                             : "with the values that are searched, no degrees divide its GPUs and the global batch");
    }
    return text.data;
}

/* The least time that all tokens take: a model FLOPs utilisation of 100 %; 0: the GPUs lack this precision. */
static double least_duration_s(const dts_rent_request *request, const dts_scenario_values *v) {
    const dts_storage storage = /* of the narrowest plan */
        dts_storage_of(&v->training, &v->stack, &v->cluster.gpu, false, DTS_HALF_BY_AUTOCAST);
    const double sample_flops =
        dts_training_passes(&v->training) *
        dts_model_forward_flops(&v->model, v->training.sequence_length, v->training.sequence_length);
    const double rate =
        dts_gpu_peak_flops(&v->cluster.gpu, storage.product) * (double)(v->cluster.nodes * v->cluster.gpus_per_node);
    return rate > 0 ? request->tokens / (double)v->training.sequence_length * sample_flops / rate : 0;
}

/* Is the deadline out of reach? Then that is the reason. */
static dts_status rule_out(const dts_rent_request *request, dts_offer *offer, dts_diag *diag) {
    const double least_s = least_duration_s(request, dts_scenario_get(offer->scenario));
    if (request->deadline_s > 0 && least_s > request->deadline_s) {
        dts_text text = {0};
        offer->times_deadline = least_s / request->deadline_s;
        dts_text_printf(&text, "%.3g times the deadline even at the peak rate of its GPUs: not searched",
                        offer->times_deadline);
        offer->reason = text.data;
        return text.failed ? dts_diag_nomem(diag) : DTS_OK;
    }
    return DTS_OK;
}

/* Few simulations found no plan that surely fits without paying for it, or none that is as good as one that may, and
 * there are more candidates. What cannot be launched is no measure of what can. */
static bool needs_more(const dts_search *search) {
    const dts_finding *plan = dts_search_plan(search), *first = search->findings;
    while (plan != NULL && plan->acceptance == DTS_ACCEPTED && first->acceptance == DTS_PASSED_OVER) {
        first++;
    }
    const bool sure = plan != NULL && !(plan->outcome.figures.unserved_gib > 0) &&
                      plan->outcome.figures.retry_share < dts_retries_told;
    return is_open(search) && !search->interrupted && (!sure || !dts_search_tie(search, first, plan));
}

/* What was found on it before is forgotten. */
static dts_status search_offer(const dts_rent_request *request, bool thorough, dts_offer *offer, dts_diag *diag) {
    dts_text document = {0};
    dts_effective_document(offer->scenario, &document);
    dts_search_request search = request->search;
    search.simulations = thorough ? search.simulations : request->first_simulations;
    offer->thorough = thorough;
    dts_search_free(offer->search);
    offer->search = NULL;
    search.progress = NULL; /* offers are what is told */
    search.needs_more = needs_more;
    search.only_offered = true; /* what is paid for has to be launched */
    search.only_here = true;    /* plain baselines and ways out are for those who have chosen a cluster */
    search.base = dts_scenario_get(offer->scenario);
    search.document = dts_text_string(&document);
    if (request->asks != NULL) {
        request->asks(request->asks_context, offer, &search);
    }
    dts_status status = document.failed ? dts_diag_nomem(diag) : request->space->run(&search, &offer->search, diag);
    dts_text_free(&document);
    if (status != DTS_OK || offer->search == NULL) {
        return status;
    }
    if (offer->search->went_on) { /* as far as a thorough one of so many simulations */
        const size_t simulations = request->search.simulations;
        offer->thorough |= simulations > 0 && simulations <= DTS_SEARCH_SIMULATIONS;
    }
    const dts_finding *plan = dts_offer_plan(offer);
    if (plan != NULL) {
        const dts_figures *f = &plan->outcome.figures;
        offer->duration_s = request->tokens / (f->tokens_per_s * f->goodput);
        offer->usd = offer->duration_s / 3600 * f->price_usd_per_hour;
        offer->in_time = !(request->deadline_s > 0) || offer->duration_s <= request->deadline_s;
        offer->in_budget = !(request->budget_usd > 0) || (offer->usd > 0 && offer->usd <= request->budget_usd);
    } else {
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
    bool within_a = a->in_time && a->in_budget, within_b = b->in_time && b->in_budget;
    if (within_a != within_b) {
        return within_a ? -1 : 1;
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

const dts_offer *dts_rent_best(const dts_rent *rent, bool in_time, bool in_budget, dts_rent_by by) {
    const dts_offer *best = NULL;
    for (size_t i = 0; i < rent->count; i++) {
        const dts_offer *o = &rent->offers[i];
        const bool money = by == DTS_RENT_BY_MONEY;
        if (dts_offer_plan(o) == NULL || (in_time && !o->in_time) || (in_budget && !o->in_budget) ||
            (money && !(o->usd > 0))) {
            continue;
        }
        const bool better = best == NULL || (money ? o->usd < best->usd : o->duration_s < best->duration_s);
        best = better ? o : best;
    }
    return best;
}

static void mark_pareto(dts_rent *rent) {
    rent->plans = rent->within = rent->unpriced = 0;
    for (size_t i = 0; i < rent->count; i++) {
        dts_offer *a = &rent->offers[i];
        a->pareto = dts_offer_plan(a) != NULL && a->usd > 0;
        rent->plans += dts_offer_plan(a) != NULL;
        rent->within += dts_offer_plan(a) != NULL && a->in_time && a->in_budget;
        rent->unpriced += dts_offer_plan(a) != NULL && !(a->usd > 0);
        for (size_t k = 0; k < rent->count && a->pareto; k++) {
            const dts_offer *b = &rent->offers[k];
            bool better = dts_offer_plan(b) != NULL && b->usd > 0 && b->duration_s <= a->duration_s &&
                          b->usd <= a->usd && (b->duration_s < a->duration_s || b->usd < a->usd);
            a->pareto = !better;
        }
    }
}

/* ---- the search -----------------------------------------------------------------------------------------------------
 */

/* Offers that are searched thoroughly after a first search of all: more than the answer names. */
enum { MOST_THOROUGH = 6, SECOND_BEST = 3 };

/* The next that the answer is made from, or may be, of those that were searched at first only; NULL: none. */
static dts_offer *next_named(const dts_rent *rent) {
    for (int k = 0; k < 8; k++) {
        const dts_rent_by by = k % 2 == 0 ? DTS_RENT_BY_TIME : DTS_RENT_BY_MONEY;
        const dts_offer *best = dts_rent_best(rent, (k & 4) == 0, (k & 2) == 0, by);
        if (best != NULL && !best->thorough) {
            return &rent->offers[best - rent->offers];
        }
    }
    for (size_t i = 0; i < rent->plans; i++) {
        dts_offer *offer = &rent->offers[i];
        if (!offer->thorough && (i < SECOND_BEST || offer->pareto)) {
            return offer;
        }
    }
    return NULL;
}

static void tell(const dts_rent_request *request, size_t done, size_t total, const char *what) {
    if (request->search.progress != NULL) {
        request->search.progress(request->search.progress_context, done, total, what != NULL ? what : "");
    }
}

/* An offer of which few plans were simulated seems worse than it is, and another one with it: so what the answer is
 * made from is searched again with all simulations, and the answer made anew. */
static dts_status search_named(const dts_rent_request *request, dts_rent *rent, dts_diag *diag) {
    dts_status status = DTS_OK;
    bool left = true;
    for (size_t n = 0; n < MOST_THOROUGH && left && status == DTS_OK && !rent->interrupted; n++) {
        dts_offer *offer = next_named(rent);
        left = offer != NULL;
        if (left) {
            tell(request, rent->count, rent->count, offer->cluster);
            status = search_offer(request, true, offer, diag);
            rent->interrupted = offer->search != NULL && offer->search->interrupted;
        }
        if (left && status == DTS_OK) {
            mark_pareto(rent);
            rank(rent);
        }
    }
    return status;
}

/* What is wrong with every offer in the same way is wrong with the scenario. */
static dts_status check_scenario(const dts_rent_request *request, const dts_rent *rent, dts_diag *diag) {
    for (size_t i = 0; i < rent->count; i++) {
        const dts_offer *offer = &rent->offers[i];
        if (offer->scenario != NULL || strcmp(offer->reason, rent->offers[0].reason) != 0) {
            return DTS_OK;
        }
    }
    dts_offer again = {
        .cluster = rent->offers[0].cluster, .nodes = rent->offers[0].nodes, .price = rent->offers[0].price};
    const dts_status status = load_scenario(request, &again, diag);
    dts_scenario_free(again.scenario);
    return status;
}

/* What the scenario's own cluster says that offers do not take over: "gpu, gpus_per_node"; and its number of nodes,
 * which they do where none are asked for. A scenario that does not load as it is may do so on an offer: then its file
 * is looked at as it stands. */
static dts_status look_at_own_cluster(const dts_rent_request *request, dts_rent *rent, dts_diag *diag) {
    dts_scenario *own = NULL;
    dts_diag *unused = dts_diag_new();
    dts_status status = unused == NULL ? DTS_NOMEM
                                       : dts_scenario_load(request->path, request->overrides, request->override_count,
                                                           request->profiles, &own, unused);
    dts_document *document = NULL;
    if (status != DTS_OK && status != DTS_NOMEM && request->path != NULL) {
        (void)dts_document_read(request->path, NULL, &document, unused);
    }
    const dts_node *tree = status == DTS_OK   ? dts_scenario_tree(own)
                           : document != NULL ? dts_document_root(document)
                                              : NULL;
    const dts_node *cluster = tree != NULL ? dts_node_get(tree, "cluster") : NULL;
    dts_text left_out = {0}, nodes = {0};
    for (const dts_node *n = cluster != NULL ? cluster->first : NULL; n != NULL; n = n->next) {
        if (n->place.origin == DTS_ORIGIN_SET || strcmp(n->key, "profile") == 0) {
            continue;
        }
        if (strcmp(n->key, "nodes") == 0) {
            dts_text_add(&nodes, n->kind == DTS_NODE_SCALAR ? n->text : "");
        } else if (dts_node_get(cluster, "profile") != NULL) { /* else all is one machine of the user's */
            dts_text_printf(&left_out, "%scluster.%s", left_out.length > 0 ? ", " : "", n->key);
        }
    }
    rent->left_out = left_out.length > 0 ? copy(dts_text_string(&left_out)) : NULL;
    rent->own_nodes = nodes.length > 0 ? copy(dts_text_string(&nodes)) : NULL;
    const bool lost = left_out.failed || nodes.failed || (left_out.length > 0 && rent->left_out == NULL) ||
                      (nodes.length > 0 && rent->own_nodes == NULL);
    dts_text_free(&left_out);
    dts_text_free(&nodes);
    dts_scenario_free(own);
    dts_document_free(document);
    dts_diag_free(unused);
    return lost || status == DTS_NOMEM ? dts_diag_nomem(diag) : DTS_OK;
}

/* Is pair i of cluster and number of nodes one? Of clusters whose nodes nothing joins, the first number is. */
static bool is_offer(const dts_rent_request *request, size_t i, size_t sizes) {
    return i % sizes == 0 || request->alone == NULL || !request->alone[i / sizes];
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
    rent->budget_usd = request->budget_usd;
    rent->objective = request->search.objective;
    for (size_t i = 0; i < clusters * sizes; i++) {
        rent->asked += is_offer(request, i, sizes);
    }
    const bool few = rent->asked <= MOST_THOROUGH; /* all may be searched as if they were the answer */
    dts_status status = request->cluster_count > 0 ? look_at_own_cluster(request, rent, diag) : DTS_OK;
    for (size_t i = 0; i < clusters * sizes && status == DTS_OK && !rent->interrupted; i++) {
        if (!is_offer(request, i, sizes)) {
            continue;
        }
        dts_offer *offer = &rent->offers[rent->count++];
        offer->cluster = request->cluster_count > 0 ? request->clusters[i / sizes] : NULL;
        offer->price = price_of(request, offer->cluster);
        offer->nodes = request->node_count > 0 ? request->nodes[i % sizes] : rent->own_nodes;
        status = load(request, rent, offer, diag);
        tell(request, rent->count - 1, rent->asked, offer->cluster);
        status = status == DTS_OK && offer->scenario != NULL ? rule_out(request, offer, diag) : status;
        if (status == DTS_OK && offer->scenario != NULL && offer->reason == NULL) {
            status = search_offer(request, few || request->first_simulations == 0, offer, diag);
        }
        rent->interrupted = offer->search != NULL && offer->search->interrupted;
        rent->searched = rent->count - (rent->interrupted ? 1 : 0);
    }
    status = status == DTS_OK && !rent->interrupted ? check_scenario(request, rent, diag) : status;
    if (status == DTS_OK) {
        mark_pareto(rent);
        rank(rent);
        status = search_named(request, rent, diag);
    }
    if (status != DTS_OK) {
        dts_rent_free(rent);
        return status;
    }
    *out = rent;
    return DTS_OK;
}
