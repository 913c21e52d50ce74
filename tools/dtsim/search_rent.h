/* dtsim search --space rent: from the command line to the answer. */
#ifndef DTS_TOOLS_DTSIM_SEARCH_RENT_H
#define DTS_TOOLS_DTSIM_SEARCH_RENT_H

#include "command.h"
#include "progress.h"
#include "search/rent.h"
#include "subject.h"

typedef struct dts_rent_command {
    const char *scenario;           /* as the user named it */
    const dts_subject *subject;     /* what it stands for, with --set on top */
    const dts_overrides *overrides; /* --set alone */
    bool offers_given; /* not --space rent: the scenario's own cluster and nodes stand for what is not given */
    const char *const *clusters, *const *nodes;
    size_t cluster_count, node_count;
    const dts_rent_price *prices; /* --price */
    size_t price_count;
    size_t top; /* offers to show */
    double tokens, deadline_s, budget_usd;
    dts_search_request search;
    size_t first_simulations; /* as in dts_rent_request, where there are several offers */
    dts_progress *progress;   /* of the search: ended before the answer is written */
    const char *html_path;    /* NULL: none */
    bool json;
} dts_rent_command;

/* Searches and writes the answer; returns the exit code. */
int dts_search_rent(dts_tool *tool, const dts_rent_command *command);

#endif
