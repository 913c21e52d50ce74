/* dtsim search --export: the best plan that a launcher can express, as its configuration. */
#ifndef DTS_TOOLS_DTSIM_SEARCH_EXPORT_H
#define DTS_TOOLS_DTSIM_SEARCH_EXPORT_H

#include "launch.h"
#include "search/search.h"

/* A value that stood in the way of a plan, and of what kind the plan was: others of its kind with the value are not
 * asked for. */
typedef struct dts_export_refusal {
    dts_layout_axis axis;
    int32_t value, schedule, data_parallel;
    bool tensor, pipeline; /* is it parallel in that? */
} dts_export_refusal;

enum { DTS_EXPORT_REFUSALS = 1024 };

typedef struct dts_search_export {
    dts_tool *tool;
    const dts_subject *subject; /* what is searched, with --set on top */
    const dts_scenario_values *base;
    const dts_launcher *launcher;
    dts_export_refusal refusals[DTS_EXPORT_REFUSALS];
    size_t refusal_count;
} dts_search_export;

/* Can the launcher express everything that the search chose? context: a dts_search_export. */
dts_status dts_search_export_accepts(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag);

/* Writes the chosen plan; warnings tell which better ones were passed over, and why. */
dts_status dts_search_export_write(const dts_search_export *export, const dts_search *search);

#endif
