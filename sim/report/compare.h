/* Writers for `dtsim compare`: several results side by side, each term against the first one's. */
#ifndef DTS_REPORT_COMPARE_H
#define DTS_REPORT_COMPARE_H

#include "report/style.h"
#include "run/result.h"

enum { DTS_COMPARE_MOST = 6 };

/* Throughputs that differ by less are called a tie: no prediction is better than that. */
#define DTS_COMPARE_TIE 0.03

typedef struct dts_compare_options {
    dts_style style;
    size_t rows; /* most inputs that are shown; 0: all */
} dts_compare_options;

/* results[i]->explanation must be there; labels[i] names a result. From 2 to DTS_COMPARE_MOST of them. */
dts_status dts_compare_text(const dts_result *const *results, const char *const *labels, size_t count,
                            const dts_compare_options *options, dts_text *out);
/* One web page that needs nothing else; the style is not asked. */
dts_status dts_compare_html(const dts_result *const *results, const char *const *labels, size_t count,
                            const dts_compare_options *options, dts_text *out);
dts_status dts_compare_json(const dts_result *const *results, const char *const *labels, size_t count, dts_text *out);

#endif
