/* A search's answer over SOAP strategies as text and JSON. */
#ifndef DTS_TOOLS_DTSIM_SOAP_WRITE_H
#define DTS_TOOLS_DTSIM_SOAP_WRITE_H

#include "report/style.h"
#include "search/soap_search.h"

typedef struct dts_soap_writing {
    const dts_style *style;
    const char *scenario; /* its name */
    const char *method;
    const dts_soap_problem *problem;
    const dts_soap_options *options;
    const dts_soap_outcome *outcome;
    double wall_s; /* below 0: left out, so that equal searches print equal bytes */
} dts_soap_writing;

dts_status dts_soap_write_text(const dts_soap_writing *w, dts_text *out);
dts_status dts_soap_write_json(const dts_soap_writing *w, dts_text *out);

#endif
