/* A user's text inside what is written: one function for each kind of place. What comes out is valid UTF-8, and no
 * character of it ends a line, steers a terminal or ends the place it stands in: text stays text. */
#ifndef DTS_BASE_QUOTE_H
#define DTS_BASE_QUOTE_H

#include "base/text.h"

/* Part of a line: of a comment, a message, a report. A blank stands for line feeds, carriage returns and tabs, "?" for
 * any other character that no line holds (dts_utf8_is_control), U+FFFD for a byte that is no UTF-8. */
void dts_text_add_line(dts_text *text, const char *string);
/* The same of a text of several lines: line feeds and tabs stay. */
void dts_text_add_lines(dts_text *text, const char *string, size_t length);

/* In double quotes, which mean the same in JSON, TOML, YAML and Python. */
void dts_text_add_quoted(dts_text *text, const char *string);

/* A scalar of YAML, without quotes where it means the same without. */
void dts_text_add_yaml(dts_text *text, const char *string);
/* A string of YAML: other readers than ours take "no", "1e3" or "2024-01-01" without quotes for something else. */
void dts_text_add_yaml_string(dts_text *text, const char *string);

/* One word of bash, in quotes where it needs them. */
void dts_text_add_word(dts_text *text, const char *string);

/* A cell of CSV (RFC 4180); NULL: an empty one. Spreadsheets calculate what begins with = + - @, a tab or a carriage
 * return: such a text gets an apostrophe in front, which they do not show, and dts_cell_text() takes it off. */
void dts_text_add_cell(dts_text *text, const char *string);
/* What a cell says: a part of string. */
const char *dts_cell_text(const char *string);

/* Text of HTML and SVG, between tags or in double quotes. */
void dts_text_add_markup(dts_text *text, const char *string, size_t length);

#endif
