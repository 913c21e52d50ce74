/* A search's answer as text and JSON. */
#ifndef DTS_TOOLS_DTSIM_SEARCH_WRITE_H
#define DTS_TOOLS_DTSIM_SEARCH_WRITE_H

#include "report/style.h"
#include "scenario/scenario.h"
#include "search/search.h"

typedef struct dts_search_writing {
    const dts_style *style;
    size_t top;           /* plans to show */
    bool wall_time;       /* also what differs from run to run */
    const char *scenario; /* as the user named it */
} dts_search_writing;

dts_status dts_search_write_text(const dts_search *search, const dts_search_writing *options, dts_text *out);
dts_status dts_search_write_json(const dts_search *search, const dts_search_writing *options, dts_text *out);

/* A plan as overrides of the scenario that was searched, up to most; values lie in arena. */
size_t dts_search_overrides(const dts_candidate *candidate, const dts_scenario_values *base, dts_arena *arena,
                            dts_override *out, size_t most);

#endif
