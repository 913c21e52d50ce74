/* What to rent, as text and JSON. */
#ifndef DTS_TOOLS_DTSIM_RENT_WRITE_H
#define DTS_TOOLS_DTSIM_RENT_WRITE_H

#include "report/style.h"
#include "search/rent.h"

dts_status dts_rent_write_text(const dts_rent *rent, const dts_style *style, dts_text *out);
dts_status dts_rent_write_json(const dts_rent *rent, dts_text *out);

#endif
