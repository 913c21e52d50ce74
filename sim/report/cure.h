/* What helps a plan that does not fit in memory. */
#ifndef DTS_REPORT_CURE_H
#define DTS_REPORT_CURE_H

#include "base/text.h"
#include "report/style.h"
#include "run/verdict.h"

/* How much is missing, what takes most, and what makes it smaller: what was simulated, or else keys of the scenario
 * that lower what takes most. */
void dts_report_cure(const dts_result *result, dts_text *out);

/* What a plan pays that fits with retries, or may run out of memory, and what helps. */
void dts_report_pressure(const dts_result *result, dts_text *out);

/* What was simulated against it (result->cures), as sentences that follow others; nothing where nothing was. Each
 * change begins a line, two blanks deep, and the words of the software for it another one, four blanks deep: where line
 * feeds count as blanks all of it still reads as sentences. */
void dts_report_cures(const dts_result *result, dts_text *out);

/* Writes such a text in lines, of which the first is assumed to start at column indent, as the others do, but for the
 * list, which starts at list_indent. Words that take more than a line are left out, and that is said. */
void dts_report_cure_lines(const char *text, const dts_style *style, size_t indent, size_t list_indent, dts_text *out);

/* What stands behind a plan's memory in a table: " !" where it does not fit, " ?" where it may run out, " ^" where it
 * pays with retries, or "". */
const char *dts_report_fit_mark(bool fits, dts_strain strain);

/* "? may run out of memory: …" and "^ …", below a table of plans of which some have a "?" or a "^"; most: of all of
 * them. Nothing where there is none. */
void dts_report_strain(dts_strain most, const dts_style *style, size_t indent, dts_text *out);

/* " ‡" behind a plan of which all or a part stays in fp32 though half precision was asked for, and what is said of it
 * below a table where any has one. */
const char *dts_report_wide_mark(bool wide);
extern const char dts_report_wide_text[];
void dts_report_wide(bool any, const dts_style *style, size_t indent, dts_text *out);

#endif
