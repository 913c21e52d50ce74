/* A table of text: cells are added row by row and widths follow from them. Nothing is cut: text and titles are wrapped
 * within their columns, numbers never are, and no line is wider than a window that has room for the names and a number.
 * Where that is not enough, spare columns are left out, which is said; then the last column's text stands on indented
 * lines beneath its row; then names are wrapped; and what is left stands in several tables, one below the other, each
 * with the first column. A column without a title belongs to the one before it. */
#ifndef DTS_REPORT_GRID_H
#define DTS_REPORT_GRID_H

#include "base/arena.h"
#include "report/style.h"

enum { DTS_GRID_COLUMNS_MAX = 12 };

typedef struct dts_grid dts_grid;

/* columns titles; left: bit i set: column i is aligned to the left, else to the right. NULL when memory ran out. */
dts_grid *dts_grid_new(const char *const *titles, size_t columns, unsigned left);
void dts_grid_free(dts_grid *grid);

/* Columns (bits) whose text stays in one line as long as anything else can give way: names. Those that follow the first
 * column are repeated with it in each part of a table. */
void dts_grid_keep(dts_grid *grid, unsigned columns);

/* Columns (bits) that a narrow window may leave out, the last of them first; not the last column of the table. */
void dts_grid_spare(dts_grid *grid, unsigned columns);

/* The next cell, copied; rows follow from the number of columns. grid NULL is fine. */
void dts_grid_add(dts_grid *grid, const char *cell);
void dts_grid_printf(dts_grid *grid, const char *format, ...) DTS_PRINTF(2, 3);

/* The table with its titles (faint), every line indented. Remembers in out when memory ran out. */
void dts_grid_print(const dts_grid *grid, const dts_style *style, size_t indent, dts_text *out);
/* The same for a web page: a table that can be moved sideways. */
void dts_grid_html(const dts_grid *grid, dts_text *out);

#endif
