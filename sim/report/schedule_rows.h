/* Rows of the terminal picture: one stage of a schedule as characters on a time scale. */
#ifndef DTS_REPORT_SCHEDULE_ROWS_H
#define DTS_REPORT_SCHEDULE_ROWS_H

#include "report/schedule_report.h"

/* Time scale that all schedules of a page share. */
typedef struct dts_schedule_scale {
    double per_unit; /* columns per unit of time */
    size_t columns;
    bool exact;  /* every operation begins and ends at the border of a column */
    size_t band; /* columns that are drawn beside each other: all of them, or a part, and the next part below */
} dts_schedule_scale;

/* Why a stage does nothing. */
typedef enum dts_idle_cause {
    DTS_IDLE_FILL,  /* before its first operation */
    DTS_IDLE_DRAIN, /* after its last */
    DTS_IDLE_STAGE, /* the operation that its input comes from has not ended */
    DTS_IDLE_HOP,   /* the input is on its way */
    DTS_IDLE_CAUSES
} dts_idle_cause;

/* What was drawn, for the legend. */
typedef struct dts_schedule_seen {
    bool backward_input, backward_weight, backward;
    bool idle[DTS_IDLE_CAUSES];
    bool odd_chunk;       /* in a layout of several chunks per stage */
    bool upwards;         /* the second direction of a layout with two */
    bool digits, missing; /* microbatch numbers; some had no room */
    bool block;           /* fused blocks */
    bool bands;           /* several of one schedule */
} dts_schedule_seen;

/* Idle time of a rank by cause; the sum is the rank's idle time. */
void dts_schedule_idle(const dts_schedule_report *report, int rank, double idle[DTS_IDLE_CAUSES]);

/* The largest whole number of columns per smallest step of time that fits into columns; when not even one does, all
 * columns are used and operations are rounded. */
dts_schedule_scale dts_schedule_scale_for(const dts_schedule_report *reports, size_t count, size_t columns);

/* The same for one schedule: where not every operation has room for its microbatch's number, but all have it in a
 * picture of up to most bands of at most columns, that picture's. */
dts_schedule_scale dts_schedule_scale_in_bands(const dts_schedule_report *report, size_t columns, size_t most);

/* How many columns the band that begins at column first has. */
size_t dts_schedule_band(const dts_schedule_scale *scale, size_t first);

/* The band of a rank's row that begins at column first. */
dts_status dts_schedule_row(const dts_schedule_report *report, int rank, const dts_schedule_scale *scale, size_t first,
                            const dts_style *style, dts_schedule_seen *seen, dts_text *out);

/* Live activations of the rank over time, in blocks of up to 8 heights (ASCII: digits: their number, or, when most is
 * above 9, ninths of most). most: the highest of the page. */
dts_status dts_schedule_live_row(const dts_schedule_report *report, int rank, const dts_schedule_scale *scale,
                                 size_t first, double most, const dts_style *style, dts_text *out);

/* Ticks and times below the rows, indented. */
void dts_schedule_axis(const dts_schedule_scale *scale, size_t first, double end, const dts_style *style, size_t indent,
                       dts_text *out);

/* Legend of what was seen. */
void dts_schedule_legend(const dts_schedule_seen *seen, const dts_style *style, dts_text *out);

#endif
