/* run --dump: each hop of a simulation as a file. */
#ifndef DTS_TOOLS_DTSIM_DUMP_H
#define DTS_TOOLS_DTSIM_DUMP_H

#include "command.h"
#include "run/run.h"

/* Makes the folder where it is not there and writes 1-document.yaml and 2-scenario.yaml: before the simulation, so that
 * they are there when it fails. */
dts_status dts_dump_scenario(dts_tool *tool, const char *folder, const dts_scenario *scenario);

/* Writes 3-graph.csv and 4-result.json; the result must hold its tasks. */
dts_status dts_dump_result(dts_tool *tool, const char *folder, const dts_result *result);

#endif
