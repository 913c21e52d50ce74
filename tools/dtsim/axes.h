/* --vary KEY=V1,V2,… and its like, collected from the command line. */
#ifndef DTS_TOOLS_DTSIM_AXES_H
#define DTS_TOOLS_DTSIM_AXES_H

#include "command.h"
#include "search/axis.h"

enum { DTS_AXES_MOST = 32 };

typedef struct dts_axes {
    dts_axis items[DTS_AXES_MOST];
    size_t count;
} dts_axes;

/* Reads what stood behind option ("--vary") into *out: KEY=VALUES of keys that scenarios have. Returns what an argp
 * parser hands on: 0, or the exit code after reporting what is wrong. */
int dts_axis_option(dts_tool *tool, const char *option, const char *argument, dts_axis *out);
/* The same, as one more of axes; a key stands there once. */
int dts_axes_option(dts_axes *axes, dts_tool *tool, const char *option, const char *argument);
/* Refuses names of profiles that exist nowhere, before anything is simulated. */
int dts_axis_check_names(const dts_axis *axis, dts_tool *tool, const char *option);
int dts_axes_check_names(const dts_axes *axes, dts_tool *tool, const char *option);

#endif
