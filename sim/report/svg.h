/* What pictures in SVG share: the page and its text. */
#ifndef DTS_REPORT_SVG_H
#define DTS_REPORT_SVG_H

#include "base/text.h"

/* Opens a white page; dts_svg_end closes it. label: what a reader who does not see it is told, and all there is to tell
 * (a table says the rest); NULL: its parts are there to be read one by one. */
void dts_svg_begin(double width, double height, const char *label, dts_text *out);
void dts_svg_end(dts_text *out);

/* Colours of what stands on the paper and not on another colour: the value of a fill, or a stroke (..._LINE), and a
 * class by which web pages put their own colour there (html_page.c), so that a picture is dark on a dark page. An
 * element takes one of them. */
#define DTS_SVG_PAPER      "#FFFFFF\" class=\"paper"
#define DTS_SVG_INK        "#000000\" class=\"ink"
#define DTS_SVG_QUIET      "#555555\" class=\"quiet"
#define DTS_SVG_QUIET_LINE "#555555\" class=\"quiet-line"
#define DTS_SVG_GRID_LINE  "#DDDDDD\" class=\"grid-line"
#define DTS_SVG_IDLE       "#ECECEC\" class=\"idle"
#define DTS_SVG_BAD        "#C93A3A\" class=\"bad-ink"
#define DTS_SVG_BAD_LINE   "#C93A3A\" class=\"bad-line"

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

/* Colours from the palette of Okabe and Ito (Color Universal Design, jfly.uni-koeln.de/color), which readers with the
 * common forms of colour blindness tell apart; light: the same paler; ink: of small text on fill. */
typedef struct dts_svg_shade {
    const char *fill, *light, *ink;
} dts_svg_shade;

enum { DTS_SVG_SHADES = 8 };
extern const dts_svg_shade dts_svg_shades[DTS_SVG_SHADES];

/* Smallest of 1, 2, 5 · 10^n that gives at most so many ticks up to end. */
double dts_svg_step(double end, int ticks);

/* What follows up to dts_svg_group_end says text when it is pointed at. */
void dts_svg_group(const char *text, dts_text *out);
/* The same with attributes, each after a blank. */
void dts_svg_group_with(const char *attributes, const char *text, dts_text *out);
void dts_svg_group_end(dts_text *out);

#endif
