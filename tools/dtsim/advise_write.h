/* Advice as a page and as JSON. */
#ifndef DTS_TOOLS_DTSIM_ADVISE_WRITE_H
#define DTS_TOOLS_DTSIM_ADVISE_WRITE_H

#include "advise/advise.h"
#include "report/style.h"

dts_status dts_advise_write_text(const dts_advice *advice, const dts_style *style, dts_text *out);
dts_status dts_advise_write_html(const dts_advice *advice, dts_text *out);
dts_status dts_advise_write_json(const dts_advice *advice, const dts_style *style, dts_text *out);

#endif
