/* --set KEY=VALUE, collected from the command line. */
#ifndef DTS_TOOLS_DTSIM_OVERRIDES_H
#define DTS_TOOLS_DTSIM_OVERRIDES_H

#include "command.h"
#include "scenario/scenario.h"

typedef struct dts_overrides {
    dts_override *items;
    size_t count, capacity;
} dts_overrides;

/* Adds one; false after reporting what is wrong with it. argument lives as long as the program. */
bool dts_overrides_add(dts_overrides *overrides, dts_tool *tool, const char *argument);
void dts_overrides_free(dts_overrides *overrides);

#endif
