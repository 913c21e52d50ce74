/* Reading the measured rows of tests/validation/kernels/NAME.csv: plain CSV without quotes, first line the columns. */
#ifndef DTS_TESTS_TABLE_H
#define DTS_TESTS_TABLE_H

#include <stdbool.h>
#include <stdlib.h>

#include "check.h"

enum { TABLE_CELLS = 16 };

typedef struct table {
    FILE *file;
    char line[1024];
    char *cells[TABLE_CELLS];
} table;

static inline void table_split(table *rows) {
    rows->line[strcspn(rows->line, "\r\n")] = '\0';
    char *rest = rows->line;
    for (size_t i = 0; i < TABLE_CELLS; i++) {
        rows->cells[i] = rest;
        if (rest != NULL) {
            char *comma = strchr(rest, ',');
            if (comma != NULL) {
                *comma++ = '\0';
            }
            rest = comma;
        }
    }
}

/* Opens the table; the first table_next gives its first row. */
static inline void table_open(table *rows, const char *path) {
    rows->file = fopen(path, "r");
    assert_non_null(rows->file);
    assert_non_null(fgets(rows->line, sizeof rows->line, rows->file));
}

/* The next row in cells; false at the end, when the file is closed. */
static inline bool table_next(table *rows) {
    if (fgets(rows->line, sizeof rows->line, rows->file) == NULL) {
        fclose(rows->file);
        return false;
    }
    table_split(rows);
    return true;
}

static inline double table_number(const table *rows, size_t column) {
    assert_non_null(rows->cells[column]);
    return strtod(rows->cells[column], NULL);
}

/* Errors of predictions, gathered and printed. */
typedef struct errors {
    double sum, worst;
    int count;
} errors;

static inline void errors_add(errors *e, double predicted, double measured) {
    double error = fabs(predicted / measured - 1);
    e->sum += error;
    e->worst = fmax(e->worst, error);
    e->count++;
}

static inline double errors_mean(const errors *e) {
    return e->sum / (double)e->count;
}

static inline void errors_print(const errors *e, const char *what) {
    print_message("%-44s %3d rows: mean error %5.2f %%, worst %5.1f %%\n", what, e->count, 100 * errors_mean(e),
                  100 * e->worst);
}

#endif
