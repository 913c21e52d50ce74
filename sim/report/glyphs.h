/* How each kind of span looks: a block for a busy column, a letter or thin line for one that is mostly waiting. */
#ifndef DTS_REPORT_GLYPHS_H
#define DTS_REPORT_GLYPHS_H

#include "report/style.h"
#include "run/result.h"

typedef struct dts_glyph {
    const char *name; /* for the legend */
    const char *busy, *partly;
    const char *ascii_busy, *ascii_partly;
    dts_paint paint;
} dts_glyph;

extern const dts_glyph dts_glyphs[DTS_SPAN_KIND_COUNT];

#endif
