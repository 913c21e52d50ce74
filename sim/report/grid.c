#include "report/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/html_page.h"

enum { GAP = 2, CUT_LEAST = 8, WRAP_LEAST = 24, BENEATH = 4, FIRST_CELLS = 64, LONG_TEXT = 30 };

struct dts_grid {
    dts_arena *arena; /* holds the texts */
    const char *titles[DTS_GRID_COLUMNS_MAX];
    size_t columns;
    unsigned left, kept, spare;
    const char **cells;
    size_t count, capacity;
    bool failed;
};

dts_grid *dts_grid_new(const char *const *titles, size_t columns, unsigned left) {
    dts_grid *grid = calloc(1, sizeof *grid);
    if (grid == NULL) {
        return NULL;
    }
    grid->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (grid->arena == NULL) {
        free(grid);
        return NULL;
    }
    memcpy(grid->titles, titles, columns * sizeof *titles);
    grid->columns = columns;
    grid->left = left;
    return grid;
}

void dts_grid_free(dts_grid *grid) {
    if (grid != NULL) {
        dts_arena_free(grid->arena);
        free(grid->cells);
        free(grid);
    }
}

void dts_grid_keep(dts_grid *grid, unsigned columns) {
    if (grid != NULL) {
        grid->kept = columns;
    }
}

void dts_grid_spare(dts_grid *grid, unsigned columns) {
    if (grid != NULL) {
        grid->spare = columns;
    }
}

void dts_grid_add(dts_grid *grid, const char *cell) {
    if (grid == NULL || grid->failed) {
        return;
    }
    const char **cells = dts_array_room(grid->cells, &grid->capacity, grid->count + 1, sizeof *cells);
    if (cells == NULL) {
        grid->failed = true;
        return;
    }
    grid->cells = cells;
    const char *copy = dts_arena_strdup(grid->arena, cell);
    grid->failed = copy == NULL;
    grid->cells[grid->count++] = copy;
}

void dts_grid_printf(dts_grid *grid, const char *format, ...) {
    dts_text text = {0};
    va_list arguments;
    va_start(arguments, format);
    dts_text_vprintf(&text, format, arguments);
    va_end(arguments);
    dts_grid_add(grid, dts_text_string(&text));
    if (grid != NULL) {
        grid->failed = grid->failed || text.failed;
    }
    dts_text_free(&text);
}

static bool has(unsigned columns, size_t column) {
    return (columns >> column & 1u) != 0;
}

/* A last column of text is wrapped rather than cut, unless it is kept. */
static bool wraps(const dts_grid *grid) {
    return ((grid->left & ~grid->kept) >> (grid->columns - 1) & 1u) != 0;
}

/* The column that gives way when the table is too wide: the last one while it can be wrapped to something readable,
 * then the widest of text; numbers are never cut (columns: none is left). */
static size_t yielding(const dts_grid *grid, const size_t widths[]) {
    size_t last = grid->columns - 1;
    if (wraps(grid) && widths[last] > WRAP_LEAST) {
        return last;
    }
    size_t widest = grid->columns;
    for (size_t c = 0; c < grid->columns - wraps(grid); c++) {
        bool cuttable = ((grid->left & ~grid->kept) >> c & 1u) != 0 && widths[c] > CUT_LEAST;
        if (cuttable && (widest == grid->columns || widths[c] > widths[widest])) {
            widest = c;
        }
    }
    return widest;
}

/* The widths of the columns that are shown, made to fit the window; 0: not shown. False: it is still too wide. */
static bool fit(const dts_grid *grid, const dts_style *style, size_t indent, unsigned shown, size_t widths[]) {
    size_t total = indent;
    memset(widths, 0, grid->columns * sizeof *widths);
    for (size_t c = 0; c < grid->columns; c++) {
        if (!has(shown, c)) {
            continue;
        }
        widths[c] = dts_style_columns(grid->titles[c]);
        for (size_t i = c; i < grid->count; i += grid->columns) {
            size_t width = dts_style_columns(grid->cells[i]);
            widths[c] = width > widths[c] ? width : widths[c];
        }
        total += widths[c] + (c > 0 ? GAP : 0);
    }
    size_t window = style->width > DTS_STYLE_NARROWEST ? (size_t)style->width : DTS_STYLE_NARROWEST;
    while (total > window) {
        size_t column = yielding(grid, widths);
        if (column == grid->columns) {
            return false;
        }
        widths[column]--;
        total--;
    }
    return true;
}

/* Ends a line without blanks before the line feed. */
static void end_line(const dts_style *style, dts_paint paint, dts_text *out) {
    while (out->length > 0 && out->data[out->length - 1] == ' ') {
        out->data[--out->length] = '\0';
    }
    dts_style_end(style, paint, out);
    dts_text_add(out, "\n");
}

static void print_cell(const dts_grid *grid, const dts_style *style, size_t column, const char *cell, size_t width,
                       dts_text *out) {
    if (has(grid->left, column)) {
        dts_style_pad(style, cell, width, out);
    } else {
        dts_style_pad_left(style, cell, width, out);
    }
}

/* A row of the columns shown, with its line feed; a last cell that is not shown stands on lines of its own beneath. */
static void print_row(const dts_grid *grid, const dts_style *style, dts_paint paint, size_t indent,
                      const size_t widths[], unsigned shown, const char *const *cells, dts_text *out) {
    size_t last = grid->columns - 1;
    bool beneath = !has(shown, last);
    size_t column = indent;
    dts_text_add_repeated(out, " ", indent);
    dts_style_begin(style, paint, out);
    for (size_t c = 0; c < last; c++) {
        if (!has(shown, c)) {
            continue;
        }
        print_cell(grid, style, c, cells[c], widths[c], out);
        dts_text_add_repeated(out, " ", GAP);
        column += widths[c] + GAP;
    }
    bool left = has(grid->left, last);
    if (!beneath && !(left && dts_style_columns(cells[last]) > widths[last])) {
        print_cell(grid, style, last, cells[last], widths[last], out);
        end_line(style, paint, out);
        return;
    }
    if (beneath) {
        end_line(style, paint, out);
        if (cells[last][0] == '\0') {
            return;
        }
        column = indent + BENEATH;
        dts_text_add_repeated(out, " ", column);
        dts_style_begin(style, paint, out);
    }
    dts_style_wrap(style, cells[last], column, out);
    dts_style_end(style, paint, out);
}

/* Leaves out spare columns, and then the last one's text for lines of its own, until the rest fits. */
static unsigned choose_columns(const dts_grid *grid, const dts_style *style, size_t indent, unsigned all,
                               size_t widths[]) {
    size_t last = grid->columns - 1;
    unsigned shown = all;
    bool fits = fit(grid, style, indent, shown, widths);
    for (size_t c = last; c-- > 0 && !fits;) {
        if (has(grid->spare, c)) {
            shown &= ~(1u << c);
            fits = fit(grid, style, indent, shown, widths);
        }
    }
    if (!fits && has(grid->left, last) && last > 0) {
        shown &= ~(1u << last);
        fit(grid, style, indent, shown, widths);
    }
    return shown;
}

static void print_left_out(const dts_grid *grid, const dts_style *style, size_t indent, unsigned hidden,
                           dts_text *out) {
    if (hidden == 0) {
        return;
    }
    dts_text line = {0};
    dts_text_add(&line, "the window is too narrow for");
    bool first = true;
    for (size_t c = 0; c < grid->columns; c++) {
        if (has(hidden, c)) {
            dts_text_printf(&line, "%s %s", first ? "" : ",", grid->titles[c]);
            first = false;
        }
    }
    dts_text_add_repeated(out, " ", indent);
    dts_style_begin(style, DTS_PAINT_FAINT, out);
    dts_style_wrap(style, dts_text_string(&line), indent, out);
    dts_style_end(style, DTS_PAINT_FAINT, out);
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

void dts_grid_print(const dts_grid *grid, const dts_style *style, size_t indent, dts_text *out) {
    if (grid == NULL || grid->failed || grid->columns == 0) {
        out->failed = true;
        return;
    }
    size_t widths[DTS_GRID_COLUMNS_MAX];
    unsigned all = (1u << grid->columns) - 1;
    unsigned shown = choose_columns(grid, style, indent, all, widths);
    print_row(grid, style, DTS_PAINT_FAINT, indent, widths, shown, grid->titles, out);
    for (size_t i = 0; i + grid->columns <= grid->count; i += grid->columns) {
        print_row(grid, style, DTS_PAINT_NONE, indent, widths, shown, &grid->cells[i], out);
    }
    print_left_out(grid, style, indent, all & ~shown & grid->spare, out);
}

/* Long text is broken into lines of some width, names and numbers are not. */
static void html_row(const dts_grid *grid, const char *tag, const char *const *cells, dts_text *out) {
    dts_text_add(out, "<tr>");
    for (size_t c = 0; c < grid->columns; c++) {
        const bool text = strlen(cells[c]) > LONG_TEXT;
        dts_text_printf(out, "<%s%s style=\"%s\">", tag, has(grid->left, c) ? " class=\"left\"" : "",
                        text ? "min-width:14rem" : "white-space:nowrap");
        dts_html_escaped(cells[c], out);
        dts_text_printf(out, "</%s>", tag);
    }
    dts_text_add(out, "</tr>\n");
}

void dts_grid_html(const dts_grid *grid, dts_text *out) {
    if (grid == NULL || grid->failed || grid->columns == 0) {
        out->failed = true;
        return;
    }
    dts_text_add(out, "<div class=\"wide\"><table>\n");
    html_row(grid, "th", grid->titles, out);
    for (size_t i = 0; i + grid->columns <= grid->count; i += grid->columns) {
        html_row(grid, "td", &grid->cells[i], out);
    }
    dts_text_add(out, "</table></div>\n");
}
