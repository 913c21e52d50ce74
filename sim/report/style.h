/* How text for people is drawn: width of the window, colour or not, Unicode blocks or plain ASCII. Every writer of text
 * takes one of these; none of them asks the terminal itself. */
#ifndef DTS_REPORT_STYLE_H
#define DTS_REPORT_STYLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

typedef struct dts_style {
    int width;    /* columns; at least DTS_STYLE_NARROWEST is assumed */
    bool color;   /* ANSI colours */
    bool unicode; /* block and line characters; else ASCII */
} dts_style;

enum { DTS_STYLE_NARROWEST = 40, DTS_STYLE_DEFAULT_WIDTH = 80, DTS_STYLE_WIDEST = 500 };

/* What a piece of text is, so that all pages use the same colours. */
typedef enum dts_paint {
    DTS_PAINT_NONE,
    DTS_PAINT_STRONG, /* headings and the number that was asked for */
    DTS_PAINT_FAINT,  /* frames, units, hints */
    DTS_PAINT_GOOD,
    DTS_PAINT_WARN,
    DTS_PAINT_BAD,
    DTS_PAINT_FORWARD,
    DTS_PAINT_BACKWARD,
    DTS_PAINT_BACKWARD_WEIGHT,
    DTS_PAINT_RECOMPUTE,
    DTS_PAINT_COMMUNICATION,
    DTS_PAINT_OPTIMIZER,
    DTS_PAINT_OFFLOAD,
    DTS_PAINT_HOST,
    DTS_PAINT_INPUT,
    DTS_PAINT_COUNT
} dts_paint;

/* Adds string in its colour; without colour, just the string. */
void dts_style_add(const dts_style *style, dts_paint paint, const char *string, dts_text *out);
void dts_style_printf(const dts_style *style, dts_paint paint, dts_text *out, const char *format, ...) DTS_PRINTF(4, 5);

/* Switches a colour on and off for longer runs. Nothing without colour. */
void dts_style_begin(const dts_style *style, dts_paint paint, dts_text *out);
void dts_style_end(const dts_style *style, dts_paint paint, dts_text *out);

/* Columns that UTF-8 text takes on a terminal (one per character; escape sequences take none). */
size_t dts_style_columns(const char *text);

/* Bytes of text that a line of so many columns takes: up to its last blank, where there is none up to a sign that joins
 * the parts of a name, else as much as fits (at least a character; parts of a path come
 * before parts of a word). Blanks at the break belong to neither line. */
size_t dts_style_break(const char *text, size_t columns);

/* string; in ASCII "×" becomes "x", "·" "*" and any other character beyond ASCII "?". */
void dts_style_plain(const dts_style *style, const char *string, dts_text *out);

/* What was made as it may be written: lines of text (dts_text_add_lines), and among them the colours above. */
void dts_style_filter(const dts_style *style, const dts_text *made, dts_text *out);

/* string, cut to columns with an ellipsis when it is longer, then filled with blanks up to columns. */
void dts_style_pad(const dts_style *style, const char *string, size_t columns, dts_text *out);
/* The same, blanks first. */
void dts_style_pad_left(const dts_style *style, const char *string, size_t columns, dts_text *out);

/* A bar of columns cells filled to share (0…1, cut to that): eighths of a cell with Unicode, '#' in ASCII; the rest is
 * a track of dots. */
void dts_style_bar(const dts_style *style, dts_paint paint, double share, size_t columns, dts_text *out);

/* text broken at blanks so that no line is wider than the style; every line after the first starts with indent blanks,
 * and the first is assumed to start at column indent. Ends with a line feed. */
void dts_style_wrap(const dts_style *style, const char *text, size_t indent, dts_text *out);
/* The same behind a mark of its own. */
void dts_style_warning(const dts_style *style, const char *text, size_t indent, dts_text *out);

#endif
