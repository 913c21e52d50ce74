/* What web pages share: one look in light, in dark and on paper, and no need of anything from elsewhere. */
#ifndef DTS_REPORT_HTML_PAGE_H
#define DTS_REPORT_HTML_PAGE_H

#include "base/text.h"
#include "run/result.h"

/* Opens a page with its title as the first heading; dts_html_end closes it. */
void dts_html_begin(const char *title, dts_text *out);
void dts_html_end(dts_text *out);

/* Parts of an iteration's time with the names and colours of pages (html_bars.c). */
typedef struct dts_html_part {
    const char *name, *color;
    size_t offset; /* of the double in dts_time_shares */
} dts_html_part;

extern const dts_html_part dts_html_parts[];
extern const size_t dts_html_part_count;
double dts_html_part_s(const dts_result *result, const dts_html_part *part);

/* Iteration times as bars on one scale, parted into where the time goes, with a legend (html_bars.c). labels NULL: no
 * names. */
void dts_html_bars(const dts_result *const *results, const char *const *labels, size_t count, dts_text *out);

/* A sentence: what stands in backticks is code. */
void dts_html_prose(const char *text, dts_text *out);

/* <open>, the text escaped, and <close>. */
void dts_html_element(const char *open, const char *text, const char *close, dts_text *out);

/* Lines of such sentences as paragraphs, with these attributes; empty ones are left out. */
void dts_html_lines(const char *lines, const char *attributes, dts_text *out);

/* Text with the characters that HTML reserves escaped; NULL: "?". */
void dts_html_escaped(const char *text, dts_text *out);

#endif
