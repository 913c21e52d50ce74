/* Writers for `dtsim explain`: a result's explanation as a page for people and as JSON. */
#ifndef DTS_REPORT_EXPLAIN_H
#define DTS_REPORT_EXPLAIN_H

#include "base/text.h"
#include "report/style.h"
#include "run/result.h"

typedef struct dts_explain_options {
    dts_style style;
    size_t rows;              /* most rows of each table; 0: all */
    bool inputs;              /* with every input and where it was written */
    const char *const *roots; /* folders that are cut off the front of file names */
    size_t root_count;
} dts_explain_options;

/* result->explanation must be there. */
dts_status dts_explain_text(const dts_result *result, const dts_explain_options *options, dts_text *out);
/* One web page that needs nothing else; the style is not asked. */
dts_status dts_explain_html(const dts_result *result, const dts_explain_options *options, dts_text *out);
dts_status dts_explain_json(const dts_result *result, const dts_explain_options *options, dts_text *out);

#endif
