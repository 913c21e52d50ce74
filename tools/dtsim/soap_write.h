/* A search's answer over SOAP strategies as text, JSON and a web page. */
#ifndef DTS_TOOLS_DTSIM_SOAP_WRITE_H
#define DTS_TOOLS_DTSIM_SOAP_WRITE_H

#include "report/grid.h"
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
dts_status dts_soap_write_html(const dts_soap_writing *w, dts_text *out, dts_diag *diag);

/* Parts of the text that the page has, too. */
enum { DTS_SOAP_STRATEGIES = DTS_SOAP_BASELINE_COUNT + 1 };
/* What was found, then the baselines, best first; returns how many. */
size_t dts_soap_rank(const dts_soap_problem *problem, const dts_soap_outcome *o,
                     const dts_soap_strategy *out[DTS_SOAP_STRATEGIES]);
const dts_soap_cut *dts_soap_cut_of(const dts_soap_writing *w, const dts_soap_choice *choices, size_t op);
/* "sample 4 × feature 2", or "whole"; "0-7" */
void dts_soap_describe_cut(const dts_tensor_op *op, const dts_soap_cut *cut, char *buffer, size_t size);
void dts_soap_describe_devices(const dts_soap_choice *choice, const dts_soap_cut *cut, char *buffer, size_t size);
/* How many layers of a transformer from operator i on are cut alike, and how many operators each has; 1 and 1
 * elsewhere.
 */
size_t dts_soap_equal_layers(const dts_soap_writing *w, const dts_soap_choice *choices, size_t i, size_t *length);
/* Operators, how they are cut, and where they lie. NULL: memory ran out. */
dts_grid *dts_soap_strategy_grid(const dts_soap_writing *w, const dts_soap_strategy *s);
/* How it was searched, and what was not. */
void dts_soap_effort(const dts_soap_writing *w, const dts_style *style, dts_text *out);

#endif
