/* A plot of dots and lines on a web page: SVG in the page's own colours, no script. */
#ifndef DTS_REPORT_HTML_PLOT_H
#define DTS_REPORT_HTML_PLOT_H

#include <stdbool.h>

#include "base/text.h"
#include "report/format.h"

typedef struct dts_plot_axis {
    double low, high; /* what is drawn of it; low > 0 where it is logarithmic */
    bool logarithmic;
    double unit;           /* ticks stand at round multiples of it: 1, or 86400 for days */
    dts_formatter *format; /* of a tick */
    const char *title;     /* below the x axis, above the y axis */
} dts_plot_axis;

typedef struct dts_plot {
    dts_plot_axis x, y;
    const char *label; /* what readers that cannot see are told */
} dts_plot;

/* Opens the picture with its grid and its ticks; dts_plot_end closes it. */
void dts_plot_begin(const dts_plot *plot, dts_text *out);
void dts_plot_end(dts_text *out);

/* Where a value lies in the picture; what is beyond the range lies on its edge. */
double dts_plot_x(const dts_plot *plot, double value);
double dts_plot_y(const dts_plot *plot, double value);

/* A dashed line across the picture at a value, named; a colour is a name of the page's style ("bad"). */
void dts_plot_limit_x(const dts_plot *plot, double value, const char *color, const char *name, dts_text *out);
void dts_plot_limit_y(const dts_plot *plot, double value, const char *color, const char *name, dts_text *out);

/* What has been named so far, and the dots that names keep away from: start with zeros. */
typedef struct dts_plot_names {
    struct {
        double left, right, y;
    } taken[16]; /* later names are not held against each other */
    size_t count;
    struct {
        double x, y;
    } dots[512]; /* nor are later dots kept free */
    size_t dot_count;
} dts_plot_names;

/* Keeps names away from a dot; its own name may stand beside it. */
void dts_plot_keep_dot(dts_plot_names *names, double x, double y);

/* Keeps names away from that of a limit across. */
void dts_plot_keep_limit(dts_plot_names *names, const dts_plot *plot, double value, const char *name);

/* Text beside, above or below a dot, where neither a name nor another dot is; where there is no such place beside it,
 * below the names that stand there already, or, if it is not needed, nowhere. */
void dts_plot_name(dts_plot_names *names, double x, double y, const char *name, bool needed, dts_text *out);

/* Short text under a dot: below a front of what is least in both there are no other dots. Left out where a name stands
 * already. */
void dts_plot_name_below(dts_plot_names *names, double x, double y, const char *name, dts_text *out);

#endif
