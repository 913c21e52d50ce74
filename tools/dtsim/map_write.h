/* A map as text, JSON and SVG. */
#ifndef DTS_TOOLS_DTSIM_MAP_WRITE_H
#define DTS_TOOLS_DTSIM_MAP_WRITE_H

#include "report/style.h"
#include "search/map.h"

/* GiB of the request that fails where this strategy (DTS_MAP_NONE: none) may run out of memory in this cell; 0: it does
 * not. */
double dts_map_unserved(const dts_map *map, int strategy, size_t panel, size_t down, size_t across);

dts_status dts_map_write_text(const dts_map *map, const dts_style *style, dts_text *out);
dts_status dts_map_write_json(const dts_map *map, const dts_style *style, dts_text *out);
/* The picture on a web page with what follows (map_svg.c). */
dts_status dts_map_write_html(const dts_map *map, dts_text *out);
/* "Model: gpt2; cluster: 2 × GCP a2-highgpu-8g; batch: 128 samples of 256 tokens", without what an axis varies; nothing
 * where the scenarios say nothing of it without their axes (map_subject.c). */
void dts_map_subject(const dts_map *map, dts_text *out);
/* What stands below the map of the text: who is first in how many cells; what may run out of memory, or is missing. */
void dts_map_winners(const dts_map *map, const dts_style *style, dts_text *out);
void dts_map_doubts(const dts_map *map, const dts_style *style, dts_text *out);
dts_status dts_map_write_svg(const dts_map *map, const dts_style *style, dts_text *out);

#endif
