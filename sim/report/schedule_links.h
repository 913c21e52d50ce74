/* What a pass of a pipeline waits for: the other side of a picture's gaps. */
#ifndef DTS_REPORT_SCHEDULE_LINKS_H
#define DTS_REPORT_SCHEDULE_LINKS_H

#include "report/schedule_report.h"

/* An operation of a schedule. */
typedef struct dts_schedule_place {
    int rank;
    size_t index;
} dts_schedule_place;

typedef struct dts_schedule_links {
    const dts_schedule_report *report;
    int virtual_stages;
    size_t microbatches; /* of a direction */
    size_t *at[2];       /* [direction][virtual stage][microbatch] of F, of B or BW: index in the order of its rank */
} dts_schedule_links;

dts_status dts_schedule_links_make(const dts_schedule_report *report, dts_schedule_links *out);
void dts_schedule_links_free(dts_schedule_links *links);

/* Of the inputs that the block of an operation needs the one that comes last, and when it is there: when the operation
 * that makes it has ended, a hop later where that is another rank's. False: it needs none. */
bool dts_schedule_input(const dts_schedule_links *links, dts_schedule_place place, dts_schedule_place *from,
                        double *arrives);

/* The operation without whose end this one would have begun earlier: of the rank, before it, or the input's. False: it
 * begins at once. */
bool dts_schedule_held_by(const dts_schedule_links *links, dts_schedule_place place, dts_schedule_place *by);

#endif
