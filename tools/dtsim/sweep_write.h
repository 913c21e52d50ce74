/* A sweep as text, CSV, JSON, as a picture and as a web page. */
#ifndef DTS_TOOLS_DTSIM_SWEEP_WRITE_H
#define DTS_TOOLS_DTSIM_SWEEP_WRITE_H

#include "report/grid.h"
#include "report/style.h"
#include "search/sweep.h"

dts_status dts_sweep_write_text(const dts_sweep *sweep, const dts_style *style, dts_text *out);
dts_status dts_sweep_write_csv(const dts_sweep *sweep, const dts_style *style, dts_text *out);
dts_status dts_sweep_write_json(const dts_sweep *sweep, const dts_style *style, dts_text *out);

/* Throughput and memory over the values of one key, a line for each value of another; of more keys several pictures,
 * each an <svg> by itself, for a page; how many at the most (sweep_svg.c). */
enum { DTS_SWEEP_DRAWN_AXES = 2 };
enum { DTS_SWEEP_WIDTH = 960, DTS_SWEEP_PHONE_WIDTH = 480 }; /* of a picture; letters are as large in both */
dts_status dts_sweep_draw(const dts_sweep *sweep, double width, dts_text *out);
dts_status dts_sweep_write_svg(const dts_sweep *sweep, const dts_style *style, dts_text *out);
size_t dts_sweep_pictures(const dts_sweep *sweep);
/* The pictures, where there are not too many, and what the text says (sweep_html.c). */
dts_status dts_sweep_write_html(const dts_sweep *sweep, const char *scenario, dts_text *out);

/* Parts of the text. The table of what was simulated, which the caller frees; whether there is any of it; what was
 * refused, and why; what follows from all. */
dts_grid *dts_sweep_grid(const dts_sweep *sweep);
bool dts_sweep_any(const dts_sweep *sweep);
void dts_sweep_without(const dts_sweep *sweep, dts_outcome_kind kind, const dts_style *style, dts_text *out);
void dts_sweep_summary(const dts_sweep *sweep, const dts_style *style, dts_text *out);

#endif
