/* What pictures in SVG share: the page and its text. */
#ifndef DTS_REPORT_SVG_H
#define DTS_REPORT_SVG_H

#include "base/text.h"

/* Opens a white page; dts_svg_end closes it. */
void dts_svg_begin(double width, double height, dts_text *out);
void dts_svg_end(dts_text *out);

typedef struct dts_svg_font {
    int size;
    const char *anchor; /* "start", "middle", "end" */
    const char *weight; /* "normal", "bold" */
    const char *ink;
} dts_svg_font;

/* Text with its baseline at y; characters that XML reserves are escaped. */
void dts_svg_text(double x, double y, const dts_svg_font *font, const char *text, dts_text *out);

/* A box with corners of this radius. */
void dts_svg_box(double x, double y, double width, double height, double radius, const char *fill, dts_text *out);

/* What follows up to dts_svg_group_end says text when it is pointed at. */
void dts_svg_group(const char *text, dts_text *out);
void dts_svg_group_end(dts_text *out);

#endif
