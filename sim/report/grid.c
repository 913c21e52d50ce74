#include "report/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/html_page.h"

enum { GAP = 2, TEXT_LEAST = 15, LAST_LEAST = 24, WORD_MOST = 14, HANGING = 2, BENEATH = 4, LONG_TEXT = 30 };

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

/* What a table of some columns looks like in some window. */
typedef struct layout {
    const dts_grid *grid;
    const dts_style *style;
    size_t indent, window;
    unsigned shown, wrapped; /* bits: columns that are shown, that may be wrapped */
    size_t widths[DTS_GRID_COLUMNS_MAX];
} layout;

/* The widest cell of a column, without its title. */
static size_t content_width(const dts_grid *grid, size_t column) {
    size_t widest = 0;
    for (size_t i = column; i < grid->count; i += grid->columns) {
        size_t width = dts_style_columns(grid->cells[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static size_t longest_word(const char *text) {
    size_t longest = 0;
    while (*text != '\0') {
        size_t bytes = strcspn(text, " ");
        longest = bytes > longest ? bytes : longest;
        text += bytes + strspn(text + bytes, " ");
    }
    return longest;
}

/* How narrow a column may become. Numbers stay in one line, below a title that may take several and whose longest words
 * are broken; text that may be wrapped keeps enough for a word or two. */
static size_t least_width(const layout *l, size_t column) {
    const dts_grid *grid = l->grid;
    size_t content = content_width(grid, column), word = longest_word(grid->titles[column]);
    word = word > WORD_MOST ? WORD_MOST : word;
    if (has(l->wrapped, column)) {
        bool last = column == grid->columns - 1;
        size_t least = last && content > LAST_LEAST ? LAST_LEAST : TEXT_LEAST;
        content = content < least ? content : least;
    }
    return content > word ? content : word;
}

/* The column that gives way when the table is too wide: the last one while it can be wrapped, then what only a title
 * makes wide, then the widest of text (columns: none is left). */
static size_t yielding(const layout *l, const size_t contents[], const size_t leasts[]) {
    size_t columns = l->grid->columns, last = columns - 1;
    if (has(l->wrapped, last) && l->widths[last] > leasts[last]) {
        return last;
    }
    size_t title = columns, text = columns;
    for (size_t c = 0; c < columns; c++) {
        if (l->widths[c] > leasts[c] && l->widths[c] > contents[c]) {
            title = title == columns || l->widths[c] > l->widths[title] ? c : title;
        } else if (l->widths[c] > leasts[c]) {
            text = text == columns || l->widths[c] > l->widths[text] ? c : text;
        }
    }
    return title < columns ? title : text;
}

/* Fills in the widths of the columns that are shown, made to fit the window; 0: not shown. False: it is too wide. */
static bool fit(layout *l) {
    size_t contents[DTS_GRID_COLUMNS_MAX] = {0}, leasts[DTS_GRID_COLUMNS_MAX] = {0}, total = l->indent;
    memset(l->widths, 0, sizeof l->widths);
    for (size_t c = 0; c < l->grid->columns; c++) {
        if (!has(l->shown, c)) {
            continue;
        }
        size_t title = dts_style_columns(l->grid->titles[c]);
        contents[c] = content_width(l->grid, c);
        leasts[c] = least_width(l, c);
        l->widths[c] = contents[c] > title ? contents[c] : title;
        total += l->widths[c] + (c > 0 ? GAP : 0);
    }
    while (total > l->window) {
        size_t column = yielding(l, contents, leasts);
        if (column == l->grid->columns) {
            return false;
        }
        l->widths[column]--;
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

/* As much of a cell as a line of its column takes; *cell goes on behind it. Further lines of the first column are
 * indented, so that they are not taken for rows. */
static void print_piece(const layout *l, size_t column, bool first_line, const char **cell, dts_text *out) {
    const size_t width = l->widths[column];
    const size_t hanging = column == 0 && !first_line && width > (size_t)2 * HANGING ? HANGING : 0;
    if (!has(l->grid->left, column) && dts_style_columns(*cell) <= width) {
        dts_style_pad_left(l->style, *cell, width, out);
        *cell += strlen(*cell);
        return;
    }
    size_t bytes = dts_style_break(*cell, width - hanging);
    dts_text piece = {0};
    dts_text_add_bytes(&piece, *cell, bytes);
    *cell += bytes;
    *cell += strspn(*cell, " ");
    dts_text_add_repeated(out, " ", hanging);
    if (has(l->grid->left, column)) {
        dts_style_pad(l->style, dts_text_string(&piece), width - hanging, out);
    } else {
        dts_style_pad_left(l->style, dts_text_string(&piece), width, out);
    }
    out->failed = out->failed || piece.failed;
    dts_text_free(&piece);
}

/* The columns of part of a row, on as many lines as its longest cell takes. */
static void print_row(const layout *l, unsigned part, dts_paint paint, const char *const *cells, dts_text *out) {
    const char *rest[DTS_GRID_COLUMNS_MAX];
    memcpy(rest, cells, l->grid->columns * sizeof *rest);
    bool more = true;
    for (bool first_line = true; more; first_line = false) {
        more = false;
        dts_text_add_repeated(out, " ", l->indent);
        dts_style_begin(l->style, paint, out);
        for (size_t c = 0; c < l->grid->columns; c++) {
            if (!has(part, c)) {
                continue;
            }
            dts_text_add_repeated(out, " ", c > 0 ? GAP : 0);
            print_piece(l, c, first_line, &rest[c], out);
            more = more || *rest[c] != '\0';
        }
        end_line(l->style, paint, out);
    }
}

/* The last cell of a row on lines of its own. */
static void print_beneath(const layout *l, dts_paint paint, const char *cell, dts_text *out) {
    if (cell[0] != '\0') {
        size_t indent = l->indent + BENEATH;
        dts_text_add_repeated(out, " ", indent);
        dts_style_begin(l->style, paint, out);
        dts_style_wrap(l->style, cell, indent, out);
        dts_style_end(l->style, paint, out);
    }
}

/* Widths for a table in parts: names take half of the window, or what words need at least; each other column takes what
 * it likes of the rest, and what a number needs even beyond it. */
static void fit_parts(layout *l, unsigned names) {
    size_t count = 0, room = l->window - l->indent;
    for (size_t c = 0; c < l->grid->columns; c++) {
        count += has(names, c);
    }
    const size_t share = room / (2 * (count > 0 ? count : 1));
    for (size_t c = 0; c < l->grid->columns; c++) { /* names are the first columns */
        size_t least = least_width(l, c), most = has(names, c) ? share : room > GAP ? room - GAP : 0;
        size_t title = dts_style_columns(l->grid->titles[c]), content = content_width(l->grid, c);
        size_t natural = content > title ? content : title;
        most = most > least ? most : least;
        l->widths[c] = natural < most ? natural : most;
        size_t taken = has(names, c) ? l->widths[c] + (c > 0 ? GAP : 0) : 0;
        room -= taken < room ? taken : room;
    }
}

/* Leaves out spare columns, then puts the last one's text on lines of its own (not a mere word), then wraps names,
 * until it fits. False: it does not; the widths are those of a table in parts then, each beginning with the names. */
static bool choose_columns(layout *l, unsigned names) {
    const dts_grid *grid = l->grid;
    size_t last = grid->columns - 1;
    unsigned all = l->shown;
    bool fits = fit(l);
    for (size_t c = last; c-- > 0 && !fits;) {
        if (has(grid->spare, c)) {
            l->shown &= ~(1u << c);
            fits = fit(l);
        }
    }
    if (!fits && has(grid->left, last) && last > 0 && content_width(grid, last) > TEXT_LEAST) {
        l->shown &= ~(1u << last);
        fits = fit(l);
    }
    if (!fits) {
        l->wrapped = grid->left;
        fits = fit(l);
    }
    if (!fits) {
        l->shown = all;
        fit_parts(l, names);
    }
    return fits;
}

/* The columns behind *next that stand beside the names in one window, with those that have no title and belong to the
 * one before; at least one. */
static unsigned next_part(const layout *l, unsigned names, size_t *next) {
    size_t total = l->indent;
    for (size_t c = 0; c < l->grid->columns; c++) {
        total += has(names, c) ? l->widths[c] + (c > 0 ? GAP : 0) : 0;
    }
    unsigned part = names;
    while (*next < l->grid->columns) {
        size_t end = *next + 1, width = has(l->shown, *next) ? l->widths[*next] + GAP : 0;
        for (; end < l->grid->columns && l->grid->titles[end][0] == '\0'; end++) {
            width += has(l->shown, end) ? l->widths[end] + GAP : 0;
        }
        if (part != names && total + width > l->window) {
            break;
        }
        total += width;
        for (; *next < end; (*next)++) {
            part |= l->shown & 1u << *next;
        }
    }
    return part;
}

static void print_left_out(const layout *l, unsigned hidden, dts_text *out) {
    if (hidden == 0) {
        return;
    }
    dts_text line = {0};
    dts_text_add(&line, "the window is too narrow to show");
    bool first = true;
    for (size_t c = 0; c < l->grid->columns; c++) {
        if (has(hidden, c)) {
            dts_text_printf(&line, "%s %s", first ? "" : ",", l->grid->titles[c]);
            first = false;
        }
    }
    dts_text_add_repeated(out, " ", l->indent);
    dts_style_begin(l->style, DTS_PAINT_FAINT, out);
    dts_style_wrap(l->style, dts_text_string(&line), l->indent, out);
    dts_style_end(l->style, DTS_PAINT_FAINT, out);
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

void dts_grid_print(const dts_grid *grid, const dts_style *style, size_t indent, dts_text *out) {
    if (grid == NULL || grid->failed || grid->columns == 0) {
        out->failed = true;
        return;
    }
    size_t last = grid->columns - 1;
    unsigned all = (1u << grid->columns) - 1;
    layout l = {.grid = grid,
                .style = style,
                .indent = indent,
                .window = style->width > DTS_STYLE_NARROWEST ? (size_t)style->width : DTS_STYLE_NARROWEST,
                .shown = all,
                .wrapped = grid->left & ~grid->kept};
    unsigned names = 1;
    size_t next = 1;
    for (; next < last && has(grid->kept & grid->left, next); next++) {
        names |= 1u << next;
    }
    bool fits = choose_columns(&l, names);
    for (bool first = true; next < grid->columns || first; first = false) {
        unsigned part = fits ? l.shown : next_part(&l, names, &next);
        dts_text_add(out, first ? "" : "\n");
        const bool beneath = !has(l.shown, last); /* there are no parts then */
        print_row(&l, part, DTS_PAINT_FAINT, grid->titles, out);
        print_beneath(&l, DTS_PAINT_FAINT, beneath ? grid->titles[last] : "", out);
        for (size_t i = 0; i + grid->columns <= grid->count; i += grid->columns) {
            print_row(&l, part, DTS_PAINT_NONE, &grid->cells[i], out);
            print_beneath(&l, DTS_PAINT_NONE, beneath ? grid->cells[i + last] : "", out);
        }
        next = fits ? grid->columns : next;
    }
    print_left_out(&l, all & ~l.shown & grid->spare, out);
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
