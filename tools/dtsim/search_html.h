/* A search's answer as one web page that needs nothing else. */
#ifndef DTS_TOOLS_DTSIM_SEARCH_HTML_H
#define DTS_TOOLS_DTSIM_SEARCH_HTML_H

#include "search_write.h"

dts_status dts_search_write_html(const dts_search *search, const dts_search_writing *options, dts_text *out);

#endif
