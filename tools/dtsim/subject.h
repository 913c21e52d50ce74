/* What a command simulates: a scenario, or one row of a table of measurements. */
#ifndef DTS_TOOLS_DTSIM_SUBJECT_H
#define DTS_TOOLS_DTSIM_SUBJECT_H

#include "overrides.h"

typedef struct dts_subject {
    const char *path; /* of the scenario; NULL: a row, which is all overrides */
    const dts_override *overrides;
    size_t override_count;
} dts_subject;

/* argument: a file, a name of `dtsim list scenarios`, or TABLE.csv#ID. more: --set, on top of a row's own overrides.
 * Everything lies in the tool's arena, or in more. DTS_INVALID or DTS_IO after reporting. */
dts_status dts_subject_find(dts_tool *tool, const char *argument, const dts_overrides *more, dts_subject *out);

/* Makes a scenario that can be read only once, a pipe, one that can be read as often as a command asks. */
dts_status dts_subject_hold(dts_tool *tool, dts_subject *subject);

/* Refuses what is named as a scenario is where tables of measurements are wanted. */
dts_status dts_subject_tables(dts_tool *tool, const char *const *paths, size_t count);

/* Warns of settings on the command line that do nothing in this scenario. */
void dts_subject_warn(dts_tool *tool, const dts_scenario *scenario);
/* Warns of a whole run of less than one iteration, which nobody means: "--tokens 100". tokens 0: none is asked for. */
void dts_subject_warn_tokens(dts_tool *tool, const dts_scenario *scenario, double tokens);

#endif
