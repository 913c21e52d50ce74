#include "search_rent.h"

#include <string.h>

#include "base/excerpt.h"
#include "kinds.h"
#include "rent_write.h"
#include "search_export.h"

/* Numbers of nodes that are offered unless the user names some. */
static const char *const usual_nodes[] = {"1", "2", "4", "8", "16", "32", "64"};

typedef struct offers {
    const char **clusters; /* in the tool's arena */
    bool *alone;           /* of each: nothing joins its nodes */
    size_t count;
    dts_text unpriced; /* "dgx-2, dgx-a100-40gb" */
} offers;

static bool is_alone(const dts_cluster *cluster) {
    return cluster->inter.transport == DTS_TRANSPORT_NONE;
}

/* Is what the user names a profile? A name that is none is a mistake, not an offer without a plan. */
static dts_status check_named(dts_tool *tool, const char *name, bool *alone) {
    dts_profile profile;
    dts_status status = dts_profile_read(tool, dts_profile_kind_named("clusters"), name, &profile, tool->diag);
    *alone = status == DTS_OK && is_alone(profile.bound);
    dts_document_free(profile.document);
    return status;
}

static bool is_priced(const dts_rent_command *c, const char *name, const dts_cluster *cluster) {
    bool priced = cluster->price_usd_per_hour > 0;
    for (size_t i = 0; i < c->price_count; i++) {
        priced = priced || strcmp(c->prices[i].cluster, name) == 0;
    }
    return priced;
}

/* Clusters may be both named and meant by a pattern: they are one offer. */
static void add_offer(offers *out, const char *name, bool alone) {
    for (size_t i = 0; i < out->count; i++) {
        if (strcmp(out->clusters[i], name) == 0) {
            return;
        }
    }
    out->alone[out->count] = alone;
    out->clusters[out->count++] = name;
}

/* Adds the cluster profiles that a pattern such as "*h100*" means, by the name of the cluster or of its GPU, and that
 * have a price; the names of those that have none are kept. */
static dts_status add_meant(dts_tool *tool, const dts_rent_command *c, const char *const *names, size_t count,
                            const char *pattern, offers *out) {
    size_t meant = 0;
    for (size_t i = 0; i < count; i++) {
        dts_profile profile;
        dts_diag *why = dts_diag_new();
        const bool read = dts_profile_read(tool, dts_profile_kind_named("clusters"), names[i], &profile, why) == DTS_OK;
        const dts_cluster *cluster = profile.bound;
        if (read && (dts_is_like(names[i], pattern) || dts_is_like(cluster->gpu.name, pattern))) {
            meant++;
            if (is_priced(c, names[i], cluster)) {
                add_offer(out, names[i], is_alone(cluster));
            } else {
                dts_text_printf(&out->unpriced, "%s%s", out->unpriced.length > 0 ? ", " : "", names[i]);
            }
        }
        dts_document_free(profile.document);
        dts_diag_free(why);
    }
    return meant > 0 ? DTS_OK
                     : dts_diag_fail(tool->diag, DTS_USAGE, "`dtsim list clusters` names all",
                                     "--clusters: no cluster or GPU is named like '%s'", dts_excerpt_of(pattern).text);
}

/* What --clusters names, each name and each pattern by itself, or all that has a price. */
static dts_status find_clusters(dts_tool *tool, const dts_rent_command *c, offers *out) {
    static const char *const every[] = {"*"};
    if (c->cluster_count == 0 && c->offers_given) {
        return DTS_OK;
    }
    const char *const *items = c->cluster_count > 0 ? c->clusters : every;
    const size_t item_count = c->cluster_count > 0 ? c->cluster_count : 1;
    const char **names;
    size_t all = 0;
    dts_status status = dts_profile_list(&tool->profiles, dts_profile_kind_named("clusters")->folder, tool->arena,
                                         &names, &all, tool->diag);
    if (status == DTS_OK) {
        out->clusters = dts_arena_array(tool->arena, all + item_count, sizeof *out->clusters);
        out->alone = dts_arena_array(tool->arena, all + item_count, sizeof *out->alone);
        status = out->clusters == NULL || out->alone == NULL ? dts_diag_nomem(tool->diag) : DTS_OK;
    }
    for (size_t i = 0; i < item_count && status == DTS_OK; i++) {
        if (strpbrk(items[i], "*?[") != NULL) {
            status = add_meant(tool, c, names, all, items[i], out);
        } else {
            const char *name = items[i];
            for (size_t k = 0; k < all; k++) {
                name = dts_same_letters(names[k], items[i]) ? names[k] : name;
            }
            bool alone = false;
            status = check_named(tool, name, &alone);
            add_offer(out, name, alone);
        }
    }
    if (status == DTS_OK && out->count == 0) {
        status = dts_diag_fail(tool->diag, DTS_USAGE, "--price 'CLUSTER=30 USD/h' gives one a price",
                               "--clusters: none of those has a price: %s", dts_text_string(&out->unpriced));
    }
    return status;
}

/* The profile of the scenario's own cluster, by which --price may call it; NULL: it has none. */
static const char *own_profile(dts_tool *tool, const dts_rent_command *c) {
    dts_diag *unused = dts_diag_new();
    dts_scenario *scenario = NULL;
    const char *name = NULL;
    if (dts_scenario_load(c->subject->path, c->subject->overrides, c->subject->override_count, &tool->profiles,
                          &scenario, unused) == DTS_OK) {
        const dts_node *profile = dts_node_profile_name(dts_node_get(dts_scenario_tree(scenario), "cluster"));
        name = profile != NULL && profile->text != NULL ? dts_arena_printf(tool->arena, "%s", profile->text) : NULL;
    }
    dts_scenario_free(scenario);
    dts_diag_free(unused);
    return name;
}

/* A price of what is no offer would do nothing. */
static dts_status check_prices(dts_tool *tool, const dts_rent_command *c, const offers *of, const char *own) {
    for (size_t i = 0; i < c->price_count; i++) {
        bool any = own != NULL && strcmp(own, c->prices[i].cluster) == 0;
        for (size_t k = 0; k < of->count; k++) {
            any = any || strcmp(of->clusters[k], c->prices[i].cluster) == 0;
        }
        if (!any) {
            return dts_diag_fail(tool->diag, DTS_USAGE, "`dtsim list clusters` names all profiles",
                                 "--price: %s is none of the clusters that are offered", c->prices[i].cluster);
        }
    }
    return DTS_OK;
}

/* Does --set say how nodes are joined? */
static bool says_network(const dts_rent_command *c) {
    bool says = false;
    for (size_t i = 0; i < c->overrides->count; i++) {
        says = says || strncmp(c->overrides->items[i].key, "cluster.inter", strlen("cluster.inter")) == 0;
    }
    return says;
}

static dts_status write_answer(dts_tool *tool, const dts_rent_command *c, const dts_rent *rent, const char *unpriced) {
    const dts_search_writing options = {.style = &tool->style,
                                        .top = c->top,
                                        .unpriced = unpriced,
                                        .scenario = c->scenario,
                                        .overrides = c->overrides->items,
                                        .override_count = c->overrides->count};
    dts_text text = {0};
    dts_status status = (c->json ? dts_rent_write_json : dts_rent_write_text)(rent, &options, &text);
    status = dts_tool_write_made(tool, status, &text);
    if (status == DTS_OK && c->html_path != NULL) {
        status = dts_tool_write_page(tool, c->html_path, dts_rent_write_html(rent, &options, &text), &text);
    }
    dts_text_free(&text);
    return status;
}

/* From now on the launcher is asked about plans on this offer. What it said of shapes on others holds here as well: no
 * rule of a launcher tells plans apart by the machine. */
static void turn_to(dts_search_export *export, const dts_offer *offer) {
    export->scenario = offer->scenario;
    export->base = dts_scenario_get(offer->scenario);
    export->launcher = dts_launcher_of(offer->scenario);
}

static void ask_launcher(void *context, const dts_offer *offer, dts_search_request *search) {
    dts_search_export *export = context;
    turn_to(export, offer);
    if (export->launcher != NULL) {
        dts_search_export_ask(export, search);
    }
}

/* Tells the plan of each offer why the launcher of the scenario's software cannot run it, if it cannot. */
static dts_status mark_plans(dts_search_export *export, const dts_rent *rent) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < rent->plans && status == DTS_OK; i++) {
        const dts_offer *offer = &rent->offers[i];
        dts_finding *findings = offer->search->findings;
        turn_to(export, offer);
        if (export->launcher != NULL) {
            status = dts_search_export_mark_plan(export, &findings[dts_offer_plan(offer) - findings]);
        }
    }
    return status;
}

static int code_of(const dts_rent *rent) {
    bool loaded = false;
    for (size_t i = 0; i < rent->count; i++) {
        loaded = loaded || rent->offers[i].scenario != NULL;
    }
    if (rent->interrupted) {
        return dts_interrupt_exit();
    }
    return rent->within > 0 ? DTS_EXIT_DONE : loaded ? DTS_EXIT_NOT_FITTING : DTS_EXIT_INVALID;
}

int dts_search_rent(dts_tool *tool, const dts_rent_command *c) {
    dts_text study = {0};
    dts_text_printf(&study, "search %s", c->scenario);
    dts_search_export export = {.tool = tool, .subject = c->subject};
    dts_rent_request request = {.path = c->subject->path,
                                .overrides = c->subject->overrides,
                                .override_count = c->subject->override_count,
                                .profiles = &tool->profiles,
                                .prices = c->prices,
                                .price_count = c->price_count,
                                .nodes = c->nodes,
                                .node_count = c->node_count,
                                .tokens = c->tokens,
                                .deadline_s = c->deadline_s,
                                .budget_usd = c->budget_usd,
                                .search = c->search,
                                .space = dts_search_spaces[DTS_SPACE_LAYOUTS],
                                .asks = ask_launcher,
                                .asks_context = &export};
    request.search.study = dts_text_string(&study);
    offers of = {0};
    dts_status status = find_clusters(tool, c, &of);
    request.own_cluster = of.count == 0 && c->price_count > 0 ? own_profile(tool, c) : NULL;
    status = status == DTS_OK ? check_prices(tool, c, &of, request.own_cluster) : status;
    request.clusters = of.clusters;
    request.cluster_count = of.count;
    if (!c->offers_given && c->node_count == 0) {
        request.nodes = usual_nodes;
        request.node_count = sizeof usual_nodes / sizeof usual_nodes[0];
        request.alone = says_network(c) ? NULL : of.alone;
    }
    const bool several = request.cluster_count > 1 || request.node_count > 1;
    request.first_simulations = several ? c->first_simulations : 0;
    dts_rent *made = NULL;
    status = status == DTS_OK ? dts_rent_search(&request, &made, tool->diag) : status;
    dts_progress_end(c->progress);
    status = status == DTS_OK ? mark_plans(&export, made) : status;
    status = status == DTS_OK ? write_answer(tool, c, made, of.unpriced.length > 0 ? of.unpriced.data : NULL) : status;
    if (status == DTS_OK && made->searched < made->asked) {
        dts_diag_warning(tool->diag, NULL, NULL, dts_tool_go_on(c->search.store != NULL),
                         "interrupted: %zu of %zu offers searched", made->searched, made->asked);
    }
    if (status == DTS_OK && made->count > 0 && made->offers[0].scenario != NULL) {
        dts_subject_warn_tokens(tool, made->offers[0].scenario, c->tokens);
    }
    size_t out_of_memory = 0;
    for (size_t i = 0; status == DTS_OK && i < made->count; i++) {
        const dts_search *search = made->offers[i].search;
        out_of_memory += search != NULL ? (size_t)search->counts.out_of_memory : 0;
    }
    if (status == DTS_OK && !made->interrupted) {
        status = dts_tool_no_memory(tool, out_of_memory, "simulation");
    }
    const int code = status == DTS_OK ? code_of(made) : dts_tool_exit(status);
    dts_search_export_clear(&export);
    dts_text_free(&study);
    dts_text_free(&of.unpriced);
    dts_rent_free(made);
    return code;
}
