/* Launchers for the commands that write their files. */
#ifndef DTS_TOOLS_DTSIM_LAUNCH_H
#define DTS_TOOLS_DTSIM_LAUNCH_H

#include "command.h"
#include "interop/interop.h"
#include "subject.h"

/* The launcher of this name; NULL after reporting. readable: it must have files that can be imported. */
const dts_launcher *dts_launch_choose(dts_tool *tool, const char *option, const char *name, bool readable);

/* Writes the subject's plan for the launcher, as the command's output. What cannot be expressed becomes warnings. */
dts_status dts_launch_write(dts_tool *tool, const dts_subject *subject, const dts_launcher *launcher);

#endif
