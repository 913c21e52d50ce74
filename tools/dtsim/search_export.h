/* dtsim search --export: the best plan that a launcher can express, as its configuration. */
#ifndef DTS_TOOLS_DTSIM_SEARCH_EXPORT_H
#define DTS_TOOLS_DTSIM_SEARCH_EXPORT_H

#include "launch.h"
#include "search/search.h"

/* What a launcher's rules tell plans apart by. Others with the same shape are not asked for again. */
enum { DTS_EXPORT_SHAPE = 17 };

typedef struct dts_export_shape {
    int32_t value[DTS_EXPORT_SHAPE];
} dts_export_shape;

/* Why the launcher cannot express a plan; strings in the tool's arena. */
typedef struct dts_export_obstacle {
    const char *text; /* NULL: it can */
    const char *help; /* the nearest, or what is missing */
    bool refused;     /* there is nothing near */
} dts_export_obstacle;

typedef struct dts_export_known {
    dts_export_shape shape;
    dts_export_obstacle obstacle;
} dts_export_known;

typedef struct dts_search_export {
    dts_tool *tool;
    const dts_subject *subject;   /* what is searched, with --set on top */
    const dts_scenario *scenario; /* loaded from subject */
    const dts_scenario_values *base;
    const dts_launcher *launcher;
    dts_export_known *known;
    size_t known_count, known_capacity;
} dts_search_export;

/* Can the launcher express everything that the search chose? context: a dts_search_export. */
dts_status dts_search_export_accepts(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag);

/* Does --over name schedules? Whoever does knows who can run them. */
bool dts_search_names_schedules(const dts_search_request *request);
/* Has a search ask the stack's launcher which plans may be its answer, unless it names schedules. */
void dts_search_export_ask(dts_search_export *export, dts_search_request *request);

/* Tells a finding, or every one, why the launcher cannot run it, if it cannot. */
dts_status dts_search_export_mark_plan(dts_search_export *export, dts_finding *plan);
dts_status dts_search_export_mark(dts_search_export *export, dts_search *search);

void dts_search_export_clear(dts_search_export *export);

/* Writes the chosen plan; warnings tell which better ones were passed over, and why. */
dts_status dts_search_export_write(dts_search_export *export, const dts_search *search);

#endif
