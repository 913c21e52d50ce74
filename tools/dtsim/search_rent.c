#include "search_rent.h"

#include <string.h>

#include "kinds.h"
#include "rent_write.h"

/* Numbers of nodes that are offered unless the user names some. */
static const char *const usual_nodes[] = {"1", "2", "4", "8", "16", "32", "64"};

/* Are all clusters that the user names profiles? A name that is none is a mistake, not an offer without a plan. */
static dts_status check_named(dts_tool *tool, const dts_rent_command *c) {
    dts_status status = DTS_OK;
    for (size_t i = 0; i < c->cluster_count && status == DTS_OK; i++) {
        dts_profile profile;
        status = dts_profile_read(tool, dts_profile_kind_named("clusters"), c->clusters[i], &profile, tool->diag);
        dts_document_free(profile.document);
    }
    return status;
}

/* The cluster profiles that have a price. */
static dts_status find_priced(dts_tool *tool, const char *const **out, size_t *count) {
    const dts_profile_kind *kind = dts_profile_kind_named("clusters");
    const char **names;
    size_t all = 0, kept = 0;
    dts_status status = dts_profile_list(&tool->profiles, kind->folder, tool->arena, &names, &all, tool->diag);
    for (size_t i = 0; i < all && status == DTS_OK; i++) {
        dts_profile profile;
        dts_diag *why = dts_diag_new();
        if (dts_profile_read(tool, kind, names[i], &profile, why) == DTS_OK &&
            ((const dts_cluster *)profile.bound)->price_usd_per_hour > 0) {
            names[kept++] = names[i];
        }
        dts_document_free(profile.document);
        dts_diag_free(why);
    }
    *out = names;
    *count = kept;
    return status;
}

static dts_status write_answer(dts_tool *tool, const dts_rent_command *c, const dts_rent *rent) {
    const dts_search_writing options = {.style = &tool->style,
                                        .scenario = c->scenario,
                                        .overrides = c->overrides->items,
                                        .override_count = c->overrides->count};
    dts_text text = {0};
    dts_status status = c->json ? dts_rent_write_json(rent, &text) : dts_rent_write_text(rent, &options, &text);
    status = status == DTS_OK ? dts_tool_write(tool, &text) : dts_diag_nomem(tool->diag);
    if (status == DTS_OK && c->html_path != NULL) {
        dts_text_clear(&text);
        status = dts_rent_write_html(rent, &options, &text) == DTS_OK ? dts_tool_write_file(tool, c->html_path, &text)
                                                                      : dts_diag_nomem(tool->diag);
    }
    dts_text_free(&text);
    return status;
}

static int code_of(const dts_rent *rent) {
    bool loaded = false;
    for (size_t i = 0; i < rent->count; i++) {
        loaded = loaded || rent->offers[i].scenario != NULL;
    }
    if (rent->interrupted) {
        return DTS_EXIT_INTERRUPTED;
    }
    return rent->within > 0 ? DTS_EXIT_DONE : loaded ? DTS_EXIT_NOT_FITTING : DTS_EXIT_INVALID;
}

int dts_search_rent(dts_tool *tool, const dts_rent_command *c) {
    dts_text study = {0};
    dts_text_printf(&study, "search %s", c->scenario);
    dts_rent_request request = {.path = c->subject->path,
                                .overrides = c->subject->overrides,
                                .override_count = c->subject->override_count,
                                .profiles = &tool->profiles,
                                .clusters = c->clusters,
                                .cluster_count = c->cluster_count,
                                .nodes = c->nodes,
                                .node_count = c->node_count,
                                .tokens = c->tokens,
                                .deadline_s = c->deadline_s,
                                .budget_usd = c->budget_usd,
                                .search = c->search,
                                .space = dts_search_spaces[DTS_SPACE_LAYOUTS]};
    request.search.study = dts_text_string(&study);
    dts_status status = check_named(tool, c);
    if (status == DTS_OK && !c->offers_given && c->cluster_count == 0) {
        status = find_priced(tool, &request.clusters, &request.cluster_count);
    }
    if (!c->offers_given && c->node_count == 0) {
        request.nodes = usual_nodes;
        request.node_count = sizeof usual_nodes / sizeof usual_nodes[0];
    }
    const bool several = request.cluster_count > 1 || request.node_count > 1;
    request.first_simulations = several ? c->first_simulations : 0;
    dts_rent *made = NULL;
    status = status == DTS_OK ? dts_rent_search(&request, &made, tool->diag) : status;
    dts_progress_end(c->progress);
    status = status == DTS_OK ? write_answer(tool, c, made) : status;
    if (status == DTS_OK && made->searched < made->asked) {
        dts_diag_warning(tool->diag, NULL, NULL, dts_tool_go_on(c->search.store != NULL),
                         "interrupted: %zu of %zu offers searched", made->searched, made->asked);
    }
    const int code = status == DTS_OK ? code_of(made) : dts_tool_exit(status);
    dts_text_free(&study);
    dts_rent_free(made);
    return code;
}
