/* A stream's executed spans, put into equal columns of time: what the timelines in the terminal and on the web page
 * draw. */
#ifndef DTS_REPORT_TIMELINE_CELLS_H
#define DTS_REPORT_TIMELINE_CELLS_H

#include <stdbool.h>

#include "run/result.h"

/* What a column shows: the kind of work that took most of it. */
typedef struct dts_cell_view {
    bool idle;  /* nothing worth showing ran */
    bool full;  /* at least half of the column was busy */
    int kind;   /* dts_span_kind */
    char digit; /* of a microbatch's number, or 0 */
} dts_cell_view;

typedef struct dts_cell dts_cell;

typedef struct dts_cells {
    dts_time from, to;
    double column_ps;
    size_t columns;
    dts_cell *cells; /* [columns] of the stream that was filled in last */
    double *highs;   /* [columns] bytes, of the device that was asked for last */
} dts_cells;

/* The time from…to in columns. False: out of memory. dts_cells_free either way. */
bool dts_cells_make(dts_cells *cells, dts_time from, dts_time to, size_t columns);
void dts_cells_free(dts_cells *cells);

/* Puts the spans of one stream into the columns. numbers: a microbatch's number is written at the start of its forward
 * and backward where there is room. Returns the busy time within from…to, ps.
 *
 * Operations are runs of spans of one microbatch and chunk: its forward, or its backward with recomputation. Weight
 * gradients that alternate with input gradients, as in an undivided backward, count as backward. */
double dts_cells_fill(dts_cells *cells, const dts_span *spans, size_t count, bool numbers);

/* Column i. An operation shorter than a column is shown too; the thin end of a long one is not. */
dts_cell_view dts_cells_view(const dts_cells *cells, size_t i);

/* Highest allocation of device within each column, into highs. False: there are no samples. */
bool dts_cells_memory(dts_cells *cells, const dts_result *result, uint32_t device);

/* Ticks of a time axis: round steps in one unit. */
typedef struct dts_axis {
    const char *unit; /* "ms" */
    double unit_ps;
    double step; /* in units: 1, 2 or 5 times a power of ten */
} dts_axis;

/* The axis from…to with the shortest steps of which at most `most` fit. */
dts_axis dts_axis_make(dts_time from, dts_time to, double most);

/* Index behind the last span of the stream that span i belongs to. */
size_t dts_stream_end(const dts_result *result, size_t i);

/* When the last span of the result ends, but no earlier than the iteration. */
dts_time dts_timeline_end(const dts_result *result);

#endif
