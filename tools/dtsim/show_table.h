/* `dtsim show` of tables of measurements. */
#ifndef DTS_TOOLS_DTSIM_SHOW_TABLE_H
#define DTS_TOOLS_DTSIM_SHOW_TABLE_H

#include "command.h"

/* Columns with the values that they hold, and rows with what was measured. */
dts_status dts_show_table(const dts_tool *tool, const char *path, dts_text *out);

/* What a row says beside its scenario: measured values, source and note, as comments of YAML. */
dts_status dts_show_row_facts(const dts_tool *tool, const char *path, const char *id, dts_text *out);

#endif
