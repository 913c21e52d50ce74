/* Writers: a result as a page for people, as JSON, as CSV, as a timeline in the terminal and as a trace file.
 *
 * Every writer reads a dts_result and nothing else, and the same result gives the same bytes. */
#ifndef DTS_REPORT_REPORT_H
#define DTS_REPORT_REPORT_H

#include <stdio.h>

#include "base/diag.h"
#include "report/style.h"
#include "run/result.h"

typedef struct dts_report_options {
    dts_style style;
    bool wall_time; /* JSON: include simulation.wall_s, which differs from run to run */
} dts_report_options;

/* One format of `dtsim run --format`. */
typedef struct dts_report_format {
    const char *name;
    const char *summary;
    dts_status (*write)(const dts_result *result, const dts_report_options *options, dts_text *out);
    bool lists; /* does it hold rows of what there are several of, such as cures? */
} dts_report_format;

/* text, json, csv. */
extern const dts_report_format dts_report_formats[];
extern const size_t dts_report_format_count;

/* The page that a person reads: what came out, whether it fits, where time and memory go, and what limits. */
dts_status dts_report_text(const dts_result *result, const dts_report_options *options, dts_text *out);

/* JSON with the names of the command's contract; DTS_NOMEM is the only failure. */
dts_status dts_report_json(const dts_result *result, const dts_report_options *options, dts_text *out);

/* One header line and one row (RFC 4180); nested names are dotted ("memory_gib.parameters"). Lists (stages,
 * communication) are left to JSON. */
dts_status dts_report_csv(const dts_result *result, const dts_report_options *options, dts_text *out);

/* The task graph as CSV, a line per task (dts_run_options.graph). */
dts_status dts_report_graph(const dts_result *result, dts_text *out);

typedef struct dts_timeline_options {
    dts_style style;
    double from_s, to_s; /* the part of the iteration that is drawn; to_s 0: up to the end */
} dts_timeline_options;

/* The executed timeline as rows of characters: per device and stream what ran when, idle time, memory. The result must
 * hold spans (dts_run_options.timeline). DTS_INVALID when the asked part is empty. */
dts_status dts_report_timeline(const dts_result *result, const dts_timeline_options *options, dts_text *out,
                               dts_diag *diag);

/* Everything as one web page that needs no network: figures, the timeline (when the result holds spans) and tables. */
dts_status dts_report_html(const dts_result *result, dts_text *out);

/* The executed timeline in the Chrome trace format, which https://ui.perfetto.dev and chrome://tracing open: a process
 * per device, a thread per stream, times in microseconds (to the picosecond), a counter of allocated memory. Written
 * piece by piece; DTS_IO when the file cannot be written (errno says why). */
dts_status dts_report_trace(const dts_result *result, FILE *file);

#endif
