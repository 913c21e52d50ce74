#include "show_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "config/table.h"
#include "report/grid.h"
#include "report/measurements.h"

enum { TOLD_MOST = 6 };

static const char measured_prefix[] = "measured.";

static bool is_measured(const dts_table *table, size_t column) {
    return strncmp(table->header[column].text, measured_prefix, sizeof measured_prefix - 1) == 0;
}

static const char *cell(const dts_table *table, size_t row, size_t column) {
    return table->cells[row * table->columns + column].text;
}

/* Is this the first row of the column with its text? */
static bool is_new(const dts_table *table, size_t row, size_t column) {
    for (size_t r = 0; r < row; r++) {
        if (strcmp(cell(table, r, column), cell(table, row, column)) == 0) {
            return false;
        }
    }
    return true;
}

typedef struct column_summary {
    size_t filled, different;
    bool numbers;
    const char *least, *most; /* of the numbers, as they are written */
} column_summary;

static column_summary summarise(const dts_table *table, size_t column) {
    column_summary s = {.numbers = true};
    double least = 0, most = 0;
    for (size_t r = 0; r < table->rows; r++) {
        const char *text = cell(table, r, column);
        if (text[0] == '\0') {
            continue;
        }
        char *end;
        const double value = strtod(text, &end);
        s.numbers = s.numbers && *end == '\0';
        if (s.filled == 0 || value < least) {
            least = value;
            s.least = text;
        }
        if (s.filled == 0 || value > most) {
            most = value;
            s.most = text;
        }
        s.filled++;
        s.different += is_new(table, r, column) ? 1 : 0;
    }
    return s;
}

/* "1, 2, 4", "64 to 1536", "gpt, bert, … (12)" */
static void write_values(const dts_table *table, size_t column, const column_summary *s, dts_text *out) {
    if (s->numbers && s->different > TOLD_MOST) {
        dts_text_printf(out, "%s to %s", s->least, s->most);
        return;
    }
    size_t told = 0;
    for (size_t r = 0; r < table->rows && told < TOLD_MOST; r++) {
        const char *text = cell(table, r, column);
        if (text[0] != '\0' && is_new(table, r, column)) {
            dts_text_printf(out, "%s%s", told++ > 0 ? ", " : "", text);
        }
    }
    if (s->different > told) {
        dts_text_printf(out, ", … (%zu)", s->different);
    }
}

static void write_columns(const dts_table *table, const dts_style *style, dts_text *out) {
    static const char *const titles[] = {"column", "rows", "values"};
    dts_grid *grid = dts_grid_new(titles, 3, 5);
    dts_grid_keep(grid, 1);
    for (size_t c = 0; c < table->columns; c++) {
        const char *name = table->header[c].text;
        if (strcmp(name, "id") == 0 || strcmp(name, "note") == 0) {
            continue;
        }
        const column_summary s = summarise(table, c);
        dts_text values = {0};
        write_values(table, c, &s, &values);
        dts_grid_add(grid, name);
        dts_grid_printf(grid, "%zu", s.filled);
        dts_grid_add(grid, dts_text_string(&values));
        dts_text_free(&values);
    }
    dts_grid_print(grid, style, 0, out);
    dts_grid_free(grid);
}

static void write_rows(const dts_table *table, const dts_style *style, dts_text *out) {
    const char *titles[1 + DTS_METRIC_COUNT] = {"id"};
    size_t columns[1 + DTS_METRIC_COUNT] = {dts_table_column(table, "id")}, count = 1;
    for (size_t c = 0; c < table->columns && count <= DTS_METRIC_COUNT; c++) {
        if (is_measured(table, c)) {
            columns[count] = c;
            titles[count++] = table->header[c].text + sizeof measured_prefix - 1;
        }
    }
    dts_grid *grid = dts_grid_new(titles, count, 1);
    dts_grid_keep(grid, 1);
    for (size_t r = 0; r < table->rows; r++) {
        for (size_t i = 0; i < count; i++) {
            const char *text = cell(table, r, columns[i]);
            dts_grid_add(grid, text[0] != '\0' ? text : "-");
        }
    }
    dts_grid_print(grid, style, 0, out);
    dts_grid_free(grid);
}

dts_status dts_show_table(const dts_tool *tool, const char *path, dts_text *out) {
    dts_measurements checked;
    dts_table table;
    dts_status status = dts_measurements_read(&path, 1, tool->arena, &checked, tool->diag);
    status = status == DTS_OK ? dts_table_read(path, tool->arena, &table, tool->diag) : status;
    if (status != DTS_OK) {
        return status;
    }
    dts_text_printf(out, "%s: %zu run%s\n\n", path, table.rows, table.rows == 1 ? "" : "s");
    write_columns(&table, &tool->style, out);
    dts_text_add(out, "\n");
    write_rows(&table, &tool->style, out);
    const char *row = dts_arena_printf(tool->arena, "%s#%s", path, cell(&table, 0, dts_table_column(&table, "id")));
    dts_text_add(out, "\nThe scenario of a row:  dtsim show ");
    dts_text_add_word(out, row != NULL ? row : path);
    dts_text_add(out, "\nAll against dtsim:      dtsim validate ");
    dts_text_add_word(out, path);
    dts_text_add(out, "\n");
    return row != NULL ? DTS_OK : dts_diag_nomem(tool->diag);
}

/* A cell as comments, a line for each of its own. */
static void write_comment(const char *name, const char *text, dts_text *out) {
    dts_text_printf(out, "# %s: ", name);
    for (; *text != '\0'; text += strspn(text, "\r\n")) {
        const size_t length = strcspn(text, "\r\n");
        dts_text line = {0};
        dts_text_add_bytes(&line, text, length);
        dts_text_add_line(out, dts_text_string(&line));
        dts_text_end(&line, out);
        text += length;
        dts_text_add(out, *text != '\0' ? "\n#   " : "");
    }
    dts_text_add(out, "\n");
}

dts_status dts_show_row_facts(const dts_tool *tool, const char *path, const char *id, dts_text *out) {
    dts_table table;
    dts_status status = dts_table_read(path, tool->arena, &table, tool->diag);
    const size_t ids = status == DTS_OK ? dts_table_column(&table, "id") : SIZE_MAX;
    for (size_t r = 0; ids != SIZE_MAX && r < table.rows; r++) {
        for (size_t c = 0; c < table.columns && strcmp(cell(&table, r, ids), id) == 0; c++) {
            const char *name = table.header[c].text, *text = cell(&table, r, c);
            if (text[0] != '\0' &&
                (is_measured(&table, c) || strcmp(name, "source") == 0 || strcmp(name, "note") == 0)) {
                write_comment(name, text, out);
            }
        }
    }
    return status;
}
