/* Tables in CSV (RFC 4180: quoted cells, doubled quotes, line breaks inside quotes; blanks around cells do not count,
 * nor do lines of empty cells) whose every cell knows where it stands. */
#ifndef DTS_CONFIG_TABLE_H
#define DTS_CONFIG_TABLE_H

#include "base/arena.h"
#include "base/diag.h"

typedef struct dts_table_cell {
    const char *text;
    dts_place place;
} dts_table_cell;

typedef struct dts_table {
    const char *path;
    size_t columns, rows;
    const dts_table_cell *header; /* [columns], unique and not empty */
    const dts_table_cell *cells;  /* [rows][columns] */
} dts_table;

/* Reads a table into the arena. All errors are reported: a quote that does not end, text behind a closing quote, rows
 * with too few or too many cells, empty or repeated column names, control characters, no header, columns separated by
 * something else than commas. */
dts_status dts_table_read(const char *path, dts_arena *arena, dts_table *out, dts_diag *diag);
dts_status dts_table_parse(const char *text, size_t length, const char *path, dts_arena *arena, dts_table *out,
                           dts_diag *diag);

/* A cell's positive number; 0 after reporting with help (diag NULL: silently). */
double dts_table_positive(const dts_table_cell *cell, const char *help, dts_diag *diag);

/* Column of this name, or SIZE_MAX. */
size_t dts_table_column(const dts_table *table, const char *name);

#endif
