/* A map as text, JSON and SVG. */
#ifndef DTS_TOOLS_DTSIM_MAP_WRITE_H
#define DTS_TOOLS_DTSIM_MAP_WRITE_H

#include "report/style.h"
#include "search/map.h"

dts_status dts_map_write_text(const dts_map *map, const dts_style *style, dts_text *out);
dts_status dts_map_write_json(const dts_map *map, const dts_style *style, dts_text *out);
dts_status dts_map_write_svg(const dts_map *map, const dts_style *style, dts_text *out);

#endif
