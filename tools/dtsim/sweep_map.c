#include "sweep_map.h"

#include <string.h>

enum { LETTERS = 26, LABEL = 24, CELL_WIDTH = 64, CELL_HEIGHT = 30, LEFT = 190, TOP = 60, LINE = 22 };

/* The choice of one cell. */
typedef struct cell {
    size_t best; /* value of the third axis; SIZE_MAX: none is legal and fits */
    bool tie;    /* the next is within 3 % */
    double tokens_per_s;
} cell;

static cell judge(const dts_sweep *sweep, size_t row, size_t column) {
    cell c = {.best = SIZE_MAX};
    size_t choices = sweep->axes[2].count;
    double second = 0;
    for (size_t i = 0; i < choices; i++) {
        const dts_outcome *o = &sweep->outcomes[(row * sweep->axes[1].count + column) * choices + i];
        if (o->kind != DTS_OUTCOME_SIMULATED || !o->figures.fits) {
            continue;
        }
        if (o->figures.tokens_per_s > c.tokens_per_s) {
            second = c.tokens_per_s;
            c.best = i;
            c.tokens_per_s = o->figures.tokens_per_s;
        } else if (o->figures.tokens_per_s > second) {
            second = o->figures.tokens_per_s;
        }
    }
    c.tie = second > 0.97 * c.tokens_per_s;
    return c;
}

static char letter(size_t choice) {
    return choice == SIZE_MAX ? '-' : (char)('A' + (int)(choice % LETTERS));
}

dts_status dts_sweep_write_map(const dts_sweep *sweep, const dts_style *style, dts_text *out) {
    const dts_axis *rows = &sweep->axes[0], *columns = &sweep->axes[1], *choices = &sweep->axes[2];
    dts_style_printf(style, DTS_PAINT_STRONG, out, "Best of %s over %s (down) and %s (across)\n", choices->key,
                     rows->key, columns->key);
    dts_text_add_repeated(out, " ", LABEL + 2);
    size_t width = 4;
    for (size_t c = 0; c < columns->count; c++) {
        size_t columns_of_label = dts_style_columns(columns->values[c]) + 2;
        width = columns_of_label > width && columns_of_label <= LABEL ? columns_of_label : width;
    }
    for (size_t c = 0; c < columns->count; c++) {
        dts_style_pad_left(style, columns->values[c], width, out);
    }
    dts_text_add(out, "\n");
    for (size_t r = 0; r < rows->count; r++) {
        dts_text_add(out, "  ");
        dts_style_pad(style, rows->values[r], LABEL, out);
        for (size_t c = 0; c < columns->count; c++) {
            cell of = judge(sweep, r, c);
            dts_text_add_repeated(out, " ", width - 2);
            dts_text_printf(out, "%c%c", letter(of.best), of.tie ? '=' : ' ');
        }
        dts_text_add(out, "\n");
    }
    dts_text_add(out, "\n");
    for (size_t i = 0; i < choices->count; i++) {
        dts_text_printf(out, "%c  %s\n", letter(i), choices->values[i]);
    }
    dts_text_add(out, "-  none is legal and fits in memory\n=  the next best is within 3 %\n");
    return dts_text_status(out);
}

/* Text between tags. */
static void add_escaped(const char *text, dts_text *out) {
    for (; *text != '\0'; text++) {
        switch (*text) {
            case '&':
                dts_text_add(out, "&amp;");
                break;
            case '<':
                dts_text_add(out, "&lt;");
                break;
            case '>':
                dts_text_add(out, "&gt;");
                break;
            default:
                dts_text_add_bytes(out, text, 1);
        }
    }
}

static void add_label(size_t x, size_t y, const char *anchor, const char *text, dts_text *out) {
    dts_text_printf(out, "<text x=\"%zu\" y=\"%zu\" text-anchor=\"%s\">", x, y, anchor);
    add_escaped(text, out);
    dts_text_add(out, "</text>\n");
}

/* Colours that also differ in grey and for the colour-blind (Okabe and Ito, 2008). */
static const char *colour(size_t choice) {
    static const char *const colours[] = {"#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#0072b2"};
    return choice == SIZE_MAX ? "#dddddd" : colours[choice % (sizeof colours / sizeof colours[0])];
}

static void add_cell(const cell *of, size_t x, size_t y, dts_text *out) {
    dts_text_printf(out,
                    "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" fill=\"%s\" stroke=\"white\"><title>%.4g "
                    "tokens/s</title></rect>\n",
                    x, y, (int)CELL_WIDTH, (int)CELL_HEIGHT, colour(of->best), of->tokens_per_s);
    const char text[] = {letter(of->best), of->tie ? '=' : '\0', '\0'};
    add_label(x + CELL_WIDTH / 2, y + 20, "middle", text, out);
}

dts_status dts_sweep_write_map_svg(const dts_sweep *sweep, const dts_style *style, dts_text *out) {
    (void)style;
    const dts_axis *rows = &sweep->axes[0], *columns = &sweep->axes[1], *choices = &sweep->axes[2];
    size_t width = LEFT + columns->count * CELL_WIDTH + 20;
    size_t bottom = TOP + rows->count * CELL_HEIGHT + 30;
    dts_text_printf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" font-family=\"sans-serif\" "
                    "font-size=\"13\">\n",
                    width > 640 ? width : 640, bottom + (choices->count + 2) * LINE);
    dts_text title = {0};
    dts_text_printf(&title, "Best of %s over %s (down) and %s (across)", choices->key, rows->key, columns->key);
    add_label(10, 24, "start", dts_text_string(&title), out);
    bool failed = title.failed;
    dts_text_free(&title);
    for (size_t c = 0; c < columns->count; c++) {
        add_label(LEFT + c * CELL_WIDTH + CELL_WIDTH / 2, TOP - 8, "middle", columns->values[c], out);
    }
    for (size_t r = 0; r < rows->count; r++) {
        add_label(LEFT - 10, TOP + r * CELL_HEIGHT + 20, "end", rows->values[r], out);
        for (size_t c = 0; c < columns->count; c++) {
            cell of = judge(sweep, r, c);
            add_cell(&of, LEFT + c * CELL_WIDTH, TOP + r * CELL_HEIGHT, out);
        }
    }
    for (size_t i = 0; i <= choices->count; i++) {
        size_t choice = i == choices->count ? SIZE_MAX : i;
        size_t y = bottom + i * LINE;
        const char text[] = {letter(choice), '\0'};
        dts_text_printf(out, "<rect x=\"10\" y=\"%zu\" width=\"22\" height=\"16\" fill=\"%s\"/>\n", y - 13,
                        colour(choice));
        add_label(21, y, "middle", text, out);
        add_label(42, y, "start", choice == SIZE_MAX ? "none is legal and fits" : choices->values[i], out);
    }
    dts_text_add(out, "</svg>\n");
    return failed ? DTS_NOMEM : dts_text_status(out);
}
