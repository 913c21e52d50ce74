#include "config/table.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/excerpt.h"
#include "base/quote.h"

enum { CELLS_PER_ROW_MAX = 1024, FILE_MAX_B = 16 << 20, UNEVEN_SHOWN = 10 };

typedef struct reader {
    const char *path;
    const char *at, *end;
    const char *line_start;
    uint32_t line, column;
    dts_arena *arena;
    dts_diag *diag;
    size_t errors;
} reader;

typedef struct table_row {
    dts_table_cell cells[CELLS_PER_ROW_MAX];
    size_t count;
} table_row;

static dts_place place_here(const reader *r) {
    const char *line_end = memchr(r->line_start, '\n', (size_t)(r->end - r->line_start));
    line_end = line_end != NULL ? line_end : r->end;
    line_end -= line_end > r->line_start && line_end[-1] == '\r' ? 1 : 0;
    return (dts_place){.file = r->path,
                       .line = r->line,
                       .column = r->column,
                       .line_text = r->line_start,
                       .line_length = (size_t)(line_end - r->line_start)};
}

static void complain(reader *r, const dts_place *place, const char *help, const char *text) {
    r->errors++;
    dts_diag_error(r->diag, place, NULL, help, "%s", text);
}

/* Goes one byte on, keeping line and column (in characters). */
static void advance(reader *r) {
    unsigned char c = (unsigned char)*r->at++;
    if (c == '\n') {
        r->line++;
        r->column = 1;
        r->line_start = r->at;
    } else if (r->at == r->end || ((unsigned char)*r->at & 0xc0) != 0x80) {
        r->column++;
    }
}

static bool at_line_end(const reader *r) {
    return r->at == r->end || *r->at == '\n' || (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n');
}

/* Does a control character stand here that no cell may hold? */
static bool at_control(const reader *r) {
    const size_t length = dts_utf8_length(r->at, (size_t)(r->end - r->at));
    return length > 0 && dts_utf8_is_control(r->at, length) && strchr("\t\n\r", *r->at) == NULL;
}

static const char leave_out[] = "leave it out";

static void skip_blanks(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t')) {
        advance(r);
    }
}

/* The inside of a quoted cell; at stands behind the opening quote. */
static void read_quoted(reader *r, const dts_place *start, dts_text *out) {
    while (r->at < r->end) {
        char c = *r->at;
        if (c == '"' && !(r->at + 1 < r->end && r->at[1] == '"')) {
            advance(r);
            skip_blanks(r);
            if (!at_line_end(r) && *r->at != ',') {
                dts_place here = place_here(r);
                complain(r, &here, "inside quotes a quote is written twice: \"\"", "text behind a closing quote");
                while (!at_line_end(r) && *r->at != ',') {
                    advance(r);
                }
            }
            return;
        }
        if (at_control(r)) {
            dts_place here = place_here(r);
            complain(r, &here, leave_out, "control character");
        }
        if (c == '"') {
            advance(r);
        }
        dts_text_add_bytes(out, &c, 1);
        advance(r);
    }
    complain(r, start, "close it with the same quote; a quote inside quotes is written twice: \"\"",
             "this quote has no end");
}

/* Blanks around a cell without quotes are not part of it. */
static void read_plain(reader *r, dts_text *out) {
    while (!at_line_end(r) && *r->at != ',') {
        if (*r->at == '"' || at_control(r)) {
            dts_place here = place_here(r);
            complain(r, &here,
                     *r->at == '"' ? "put the whole cell in quotes and write the quote twice: \"\"" : leave_out,
                     *r->at == '"' ? "a quote inside a cell without quotes" : "control character");
            while (!at_line_end(r) && *r->at != ',') {
                advance(r);
            }
            return;
        }
        dts_text_add_bytes(out, r->at, 1);
        advance(r);
    }
    while (out->length > 0 && (out->data[out->length - 1] == ' ' || out->data[out->length - 1] == '\t')) {
        out->data[--out->length] = '\0';
    }
}

/* Reads the cells up to the end of the line. Returns DTS_NOMEM, or DTS_INVALID when there are too many to keep. */
static dts_status read_row(reader *r, table_row *out) {
    out->count = 0;
    for (;;) {
        if (out->count == CELLS_PER_ROW_MAX) {
            dts_place here = place_here(r);
            complain(r, &here, NULL, "more than 1024 cells in a row");
            while (!at_line_end(r)) {
                advance(r);
            }
            return DTS_INVALID;
        }
        dts_table_cell *cell = &out->cells[out->count++];
        skip_blanks(r);
        cell->place = place_here(r);
        dts_text text = {0};
        if (r->at < r->end && *r->at == '"') {
            advance(r);
            read_quoted(r, &cell->place, &text);
        } else {
            read_plain(r, &text);
        }
        cell->text = text.failed ? NULL : dts_arena_strdup(r->arena, dts_cell_text(dts_text_string(&text)));
        dts_text_free(&text);
        if (cell->text == NULL) {
            return dts_diag_nomem(r->diag);
        }
        if (r->at < r->end && *r->at == ',') {
            advance(r);
            continue;
        }
        while (r->at < r->end && *r->at != '\n') {
            advance(r); /* the \r of \r\n */
        }
        if (r->at < r->end) {
            advance(r);
        }
        return DTS_OK;
    }
}

/* Spreadsheets of countries with a decimal comma separate columns otherwise, and some save two bytes a character. */
static dts_status check_separator(reader *r, const table_row *header) {
    const char *text = header->cells[0].text;
    const char other = strchr(text, ';') != NULL ? ';' : '\t';
    if (header->count > 1 || strchr(text, other) == NULL) {
        return DTS_OK;
    }
    return dts_diag_error(r->diag, &header->cells[0].place, NULL,
                          "in a spreadsheet save as CSV (comma delimited); decimals have a point",
                          "columns are separated by %s, not by commas", other == ';' ? "semicolons" : "tabs");
}

static bool all_empty(const table_row *row) {
    for (size_t i = 0; i < row->count; i++) {
        if (row->cells[i].text[0] != '\0') {
            return false;
        }
    }
    return true;
}

static void check_header(reader *r, const table_row *header) {
    for (size_t i = 0; i < header->count; i++) {
        const dts_table_cell *cell = &header->cells[i];
        if (cell->text[0] == '\0') {
            complain(r, &cell->place, "name it, or remove the column", "a column without a name");
        }
        for (size_t j = 0; j < i; j++) {
            if (cell->text[0] != '\0' && strcmp(header->cells[j].text, cell->text) == 0) {
                r->errors++;
                dts_diag_error(r->diag, &cell->place, NULL, NULL, "column '%s' is there twice", cell->text);
            }
        }
    }
}

static dts_status append(dts_table_cell **cells, size_t *count, size_t *capacity, const table_row *row) {
    dts_table_cell *grown = dts_array_room(*cells, capacity, *count + row->count, sizeof *grown);
    if (grown == NULL) {
        return DTS_NOMEM;
    }
    *cells = grown;
    memcpy(*cells + *count, row->cells, row->count * sizeof *row->cells);
    *count += row->count;
    return DTS_OK;
}

static const dts_table_cell *keep(dts_arena *arena, const dts_table_cell *cells, size_t count) {
    dts_table_cell *copy = dts_arena_array(arena, count, sizeof *copy);
    if (copy != NULL && count > 0) {
        memcpy(copy, cells, count * sizeof *copy);
    }
    return copy;
}

/* Reads all rows behind the header into *cells (owned by the caller). */
static dts_status read_rows(reader *r, table_row *row, size_t columns, dts_table_cell **cells, size_t *count) {
    size_t capacity = 0, uneven = 0;
    while (r->at < r->end) {
        if (at_line_end(r)) { /* an empty line */
            while (*r->at != '\n') {
                advance(r);
            }
            advance(r);
            continue;
        }
        dts_place start = place_here(r);
        size_t errors = r->errors;
        dts_status status = read_row(r, row);
        if (status == DTS_NOMEM) {
            return status;
        }
        if (r->errors > errors) {
            continue; /* what was wrong was said; the number of cells would only follow from it */
        }
        if (status == DTS_OK && all_empty(row)) {
            continue; /* commas alone are an empty line of a spreadsheet */
        }
        if (status == DTS_OK && row->count != columns) {
            r->errors++;
            uneven++;
            if (uneven <= UNEVEN_SHOWN) {
                dts_diag_error(r->diag, &start, NULL, "put cells that hold a comma in quotes",
                               "%zu cells, but the header names %zu columns", row->count, columns);
            }
        } else if (status == DTS_OK && append(cells, count, &capacity, row) != DTS_OK) {
            return dts_diag_nomem(r->diag);
        }
    }
    if (uneven > UNEVEN_SHOWN) {
        dts_diag_error(r->diag, &(dts_place){.file = r->path}, NULL, "is this a table, with a header and commas?",
                       "%zu more rows with another number of cells", uneven - UNEVEN_SHOWN);
    }
    return DTS_OK;
}

static dts_status parse(reader *r, table_row *row, dts_table *out) {
    if (r->at == r->end) {
        return dts_diag_error(r->diag, &(dts_place){.file = r->path}, NULL, "the first line names the columns",
                              "the table is empty");
    }
    dts_status status = read_row(r, row);
    status = status == DTS_OK ? check_separator(r, row) : status;
    if (status != DTS_OK) {
        return status;
    }
    check_header(r, row);
    out->columns = row->count;
    out->header = keep(r->arena, row->cells, row->count);
    dts_table_cell *cells = NULL;
    size_t count = 0;
    status = read_rows(r, row, out->columns, &cells, &count);
    if (status == DTS_OK && count == 0 && r->errors == 0) {
        status = dts_diag_error(r->diag, &(dts_place){.file = r->path}, NULL,
                                "each further line is a run, with a cell for each column",
                                "the table has a header, but no rows");
    }
    out->rows = count / out->columns;
    out->cells = keep(r->arena, cells, count);
    free(cells);
    if (status == DTS_OK && (out->header == NULL || out->cells == NULL)) {
        status = dts_diag_nomem(r->diag);
    }
    return status != DTS_OK ? status : r->errors > 0 ? DTS_INVALID : DTS_OK;
}

dts_status dts_table_parse(const char *text, size_t length, const char *path, dts_arena *arena, dts_table *out,
                           dts_diag *diag) {
    *out = (dts_table){.path = dts_arena_strdup(arena, path)};
    if (length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0)) {
        return dts_diag_error(diag, &(dts_place){.file = path}, NULL, "save it as CSV UTF-8",
                              "the table is written in UTF-16");
    }
    if (memchr(text, '\0', length) != NULL) {
        return dts_diag_error(diag, &(dts_place){.file = path}, NULL, "tables are CSV text in UTF-8",
                              "not a text file (zero byte)");
    }
    const char *copy = dts_arena_strndup(arena, text, length); /* messages show its lines */
    table_row *row = malloc(sizeof *row);
    if (out->path == NULL || copy == NULL || row == NULL) {
        free(row);
        return dts_diag_nomem(diag);
    }
    const char *start = length >= 3 && memcmp(copy, "\xef\xbb\xbf", 3) == 0 ? copy + 3 : copy;
    reader r = {.path = out->path,
                .at = start,
                .end = copy + length,
                .line_start = start,
                .line = 1,
                .column = 1,
                .arena = arena,
                .diag = diag};
    dts_status status = parse(&r, row, out);
    free(row);
    return status;
}

dts_status dts_table_read(const char *path, dts_arena *arena, dts_table *out, dts_diag *diag) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return dts_diag_fail(diag, DTS_IO, "name a CSV file; published tables lie in scenarios/published/",
                             "cannot read %s: %s", path, strerror(errno));
    }
    dts_text text = {0};
    char buffer[1 << 16];
    size_t got;
    errno = 0;
    while ((got = fread(buffer, 1, sizeof buffer, file)) > 0 && text.length <= FILE_MAX_B) {
        dts_text_add_bytes(&text, buffer, got);
    }
    int error = errno;
    bool failed = ferror(file) != 0;
    fclose(file);
    dts_status status;
    if (failed) {
        status = dts_diag_fail(diag, DTS_IO, error == EISDIR ? "name a CSV file in it" : NULL, "cannot read %s: %s",
                               path, strerror(error));
    } else if (dts_text_status(&text) != DTS_OK) {
        status = dts_diag_nomem(diag);
    } else if (text.length > FILE_MAX_B) {
        status = dts_diag_error(diag, &(dts_place){.file = path}, NULL, NULL, "larger than 16 MiB");
    } else {
        status = dts_table_parse(dts_text_string(&text), text.length, path, arena, out, diag);
    }
    dts_text_free(&text);
    return status;
}

double dts_table_positive(const dts_table_cell *cell, const char *help, dts_diag *diag) {
    char *end;
    double value = strtod(cell->text, &end);
    if (*end != '\0' || !isfinite(value) || value <= 0) {
        const bool comma = *end == ',' && end != cell->text;
        dts_diag_error(diag, &cell->place, NULL, comma ? "decimals have a point, and thousands nothing" : help,
                       "'%s' is not a positive number", cell->text);
        return 0;
    }
    return value;
}

size_t dts_table_column(const dts_table *table, const char *name) {
    for (size_t i = 0; i < table->columns; i++) {
        if (strcmp(table->header[i].text, name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}
