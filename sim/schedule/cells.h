/* Internal to schedule/: an order as it was written, before it is checked. */
#ifndef DTS_SCHEDULE_CELLS_H
#define DTS_SCHEDULE_CELLS_H

#include "schedule/file.h"

typedef struct dts_cell {
    uint8_t kind; /* dts_op_kind */
    bool fused_next;
    uint32_t stage, microbatch;
    uint32_t row, column; /* of the file, from 1: row r + 1 is rank r */
    dts_place place;
} dts_cell;

typedef struct dts_cell_row {
    dts_cell *cells;
    size_t count, capacity;
    dts_place place;
} dts_cell_row;

typedef struct dts_cells {
    const char *path;
    dts_cell_row *rows;
    size_t count, capacity;
    dts_arena *arena; /* owns the rows and the text that places point into */
} dts_cells;

/* Reads the text; errors about single cells only. *ignored: actions that were left out. */
dts_status dts_cells_parse(const char *text, size_t length, dts_cells *out, size_t *ignored, dts_diag *diag);

/* What a complete order fulfils, and its shape. */
dts_status dts_cells_check(const dts_cells *cells, dts_layout *layout, dts_schedule_shape *shape, dts_diag *diag);

/* DTS_INVALID with the circle when ranks wait for each other for ever. */
dts_status dts_cells_check_deadlock(const dts_cells *cells, const dts_schedule_shape *shape, dts_diag *diag);

/* "0F3". */
void dts_cell_name(const dts_cell *cell, char *buffer, size_t size);

#endif
