/* A sweep of three keys as a map: which value of the third is best for every pair of the first two. */
#ifndef DTS_TOOLS_DTSIM_SWEEP_MAP_H
#define DTS_TOOLS_DTSIM_SWEEP_MAP_H

#include "report/style.h"
#include "search/sweep.h"

enum { DTS_MAP_AXES = 3 };

/* Rows are the first key, columns the second, letters the third's values. */
dts_status dts_sweep_write_map(const dts_sweep *sweep, const dts_style *style, dts_text *out);
dts_status dts_sweep_write_map_svg(const dts_sweep *sweep, const dts_style *style, dts_text *out);

#endif
