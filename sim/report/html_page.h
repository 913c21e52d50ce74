/* What web pages share: one look in light, in dark and on paper, and no need of anything from elsewhere. */
#ifndef DTS_REPORT_HTML_PAGE_H
#define DTS_REPORT_HTML_PAGE_H

#include "base/text.h"

/* Opens a page with its title as the first heading; dts_html_end closes it. */
void dts_html_begin(const char *title, dts_text *out);
void dts_html_end(dts_text *out);

/* Text with the characters that HTML reserves escaped; NULL: "?". */
void dts_html_escaped(const char *text, dts_text *out);

#endif
