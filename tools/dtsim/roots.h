/* Where profiles are looked for. */
#ifndef DTS_TOOLS_DTSIM_ROOTS_H
#define DTS_TOOLS_DTSIM_ROOTS_H

#include "base/arena.h"
#include "config/schema.h"

/* In this order: the folders of the environment variable DTSIM_DATA; when the program runs from a build folder, the
 * source tree; the data installed beside the program (PREFIX/bin/dtsim → PREFIX/share/dtsim, so that an installation
 * can be moved) or where it was configured to be; the current folder. Folders that do not exist are left out. */
dts_status dts_roots_find(dts_arena *arena, dts_profile_paths *out);

#endif
