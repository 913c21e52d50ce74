/* The rows that the text page and the web page share. */
#ifndef DTS_REPORT_ROWS_H
#define DTS_REPORT_ROWS_H

#include "run/result.h"

typedef struct dts_memory_row {
    const char *name; /* as people read it */
    double gib;
} dts_memory_row;

enum { DTS_MEMORY_ROWS = 8 };

/* What memory is made of, in the order of reports. */
void dts_memory_rows(const dts_memory_gib *memory, dts_memory_row out[DTS_MEMORY_ROWS]);

#endif
