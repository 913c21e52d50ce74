/* What to rent, as text, JSON and a web page. */
#ifndef DTS_TOOLS_DTSIM_RENT_WRITE_H
#define DTS_TOOLS_DTSIM_RENT_WRITE_H

#include "report/grid.h"
#include "search/rent.h"
#include "search_write.h"

dts_status dts_rent_write_text(const dts_rent *rent, const dts_search_writing *options, dts_text *out);
dts_status dts_rent_write_json(const dts_rent *rent, const dts_search_writing *options, dts_text *out);
dts_status dts_rent_write_html(const dts_rent *rent, const dts_search_writing *options, dts_text *out);

/* Parts of the text that the page has, too. "300 billion tokens of llama-3-8b within 10.0 days, by cost" */
void dts_rent_title(const dts_rent *rent, dts_text *out);
/* The answer in sentences, one a line: what to rent, and what is sooner or cheaper. */
void dts_rent_answer(const dts_rent *rent, dts_text *out);
/* What the answer does not count, and what is unknown; one remark a line. */
void dts_rent_remarks(const dts_rent *rent, const dts_search_writing *options, dts_text *out);
/* Is it as good as the first, within what a simulation can tell? */
bool dts_rent_tie(const dts_rent *rent, const dts_offer *offer);
/* "16 × aws-p4de-24xlarge" */
void dts_rent_name(const dts_offer *offer, dts_text *out);
/* Offers with a plan as a table, the first of them and those that no other beats in time and money, those without as
 * lines; NULL: memory ran out. */
dts_grid *dts_rent_grid(const dts_rent *rent, size_t top);
void dts_rent_missing(const dts_rent *rent, dts_text *out);
/* The command that simulates the first offer's plan; nothing where there is none. */
void dts_rent_again(const dts_rent *rent, const dts_search_writing *options, dts_text *out);

#endif
