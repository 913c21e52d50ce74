/* A sweep as text, CSV and JSON. */
#ifndef DTS_TOOLS_DTSIM_SWEEP_WRITE_H
#define DTS_TOOLS_DTSIM_SWEEP_WRITE_H

#include "report/style.h"
#include "search/sweep.h"

dts_status dts_sweep_write_text(const dts_sweep *sweep, const dts_style *style, dts_text *out);
dts_status dts_sweep_write_csv(const dts_sweep *sweep, const dts_style *style, dts_text *out);
dts_status dts_sweep_write_json(const dts_sweep *sweep, const dts_style *style, dts_text *out);

#endif
