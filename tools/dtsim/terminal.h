/* What the terminal can do. */
#ifndef DTS_TOOLS_DTSIM_TERMINAL_H
#define DTS_TOOLS_DTSIM_TERMINAL_H

#include "report/style.h"

/* Colour is used on a terminal that is not called "dumb", unless NO_COLOR is set to anything. */
bool dts_terminal_color(int fd);

/* Width from COLUMNS or the window (80 when neither says), colour as above, Unicode when the locale is UTF-8. */
dts_style dts_terminal_style(int fd);

#endif
