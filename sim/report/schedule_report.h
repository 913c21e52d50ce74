/* Writers for `dtsim schedule`: simulated pipeline schedules as a picture in the terminal, as SVG, JSON and CSV.
 *
 * Each reads schedules with their simulation and nothing else; several schedules are drawn on one time scale. */
#ifndef DTS_REPORT_SCHEDULE_REPORT_H
#define DTS_REPORT_SCHEDULE_REPORT_H

#include "base/diag.h"
#include "report/style.h"
#include "run/ideal.h"

typedef struct dts_schedule_report {
    const dts_schedule_method *method;
    dts_schedule schedule; /* its shape holds the costs */
    dts_ideal ideal;
} dts_schedule_report;

/* The picture: a row per stage, a legend, and what the bubble costs; a table that compares when there are several.
 * memory: with the live activations below each row. */
dts_status dts_schedule_text(const dts_schedule_report *reports, size_t count, bool memory, const dts_style *style,
                             dts_text *out);

/* Only the table: a line per schedule. */
dts_status dts_schedule_table(const dts_schedule_report *reports, size_t count, const dts_style *style, dts_text *out);

/* The columns of that table; a cell of any but the first, the name. */
enum { DTS_SCHEDULE_COLUMNS = 6 };
extern const char *const dts_schedule_columns[DTS_SCHEDULE_COLUMNS];
void dts_schedule_cell(const dts_schedule_report *report, int column, char *out, size_t size);

/* The same schedules with a number of microbatches. */
typedef struct dts_schedule_set {
    const dts_schedule_report *reports;
    int microbatches;
} dts_schedule_set;

/* A web page: the drawing, in which every box says what it is, the table, and what each schedule is about. Of several
 * sets (in the order of their microbatches, all of count schedules) the page is about the one that is shown, and a
 * slider changes to the drawings of the others. With more operations in all than browsers are quick with, the page has
 * the drawing that is shown and no script. */
enum { DTS_SCHEDULE_LINKED_MOST = 40000 };
dts_status dts_schedule_html(const dts_schedule_set *sets, size_t set_count, size_t shown, size_t count, dts_text *out);

/* A drawing for slides, 1600 units wide, in a palette that colour-blind readers can tell apart. */
dts_status dts_schedule_svg(const dts_schedule_report *reports, size_t count, dts_text *out);
/* The same with what the script of a page needs: names of the boxes, when they are, and by which they and the gaps were
 * held up. first: a number that names of a page's earlier drawings have not begun with. */
dts_status dts_schedule_linked_svg(const dts_schedule_report *reports, size_t count, size_t first, dts_text *out);

/* One object with makespan, bubble_fraction, max_stage_span, peak_activation[], idle[], ops[][], start[][], end[][];
 * for several schedules an object with the array "schedules" of these. A fused block is one entry of ops
 * ("F1.0&BW0.1"). */
dts_status dts_schedule_json(const dts_schedule_report *reports, size_t count, dts_text *out);

/* One row per operation: schedule,stage,op,kind,microbatch,chunk,start,end. */
dts_status dts_schedule_csv(const dts_schedule_report *reports, size_t count, dts_text *out);

/* Adds "4 stages, 8 microbatches, 2 chunks; F=1 B=1 W=1". */
void dts_schedule_title(const dts_schedule_report *report, dts_text *out);

/* How many operations all of them have. */
size_t dts_schedule_operations(const dts_schedule_report *reports, size_t count);

/* Activations of one microbatch that the fullest stage holds at once. */
double dts_schedule_peak(const dts_schedule_report *report);

/* Where the operation index of rank is drawn: within a fused block the parts follow each other. */
void dts_schedule_drawn_at(const dts_schedule_report *report, int rank, size_t index, double *start, double *end);

#endif
