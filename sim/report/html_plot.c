#include "report/html_plot.h"

#include <math.h>
#include <string.h>

#include "report/html_page.h"

/* In units of the picture: small enough that its letters can be read on a telephone. */
enum {
    WIDTH = 480,
    HEIGHT = 330,
    LEFT = 62,
    RIGHT = 14,
    TOP = 18,
    BOTTOM = 46,
    BETWEEN_X = 58,
    BETWEEN_Y = 26,
    EDGE = 12,
    LINE = 15,  /* of text */
    LETTER = 7, /* the width of one, on average */
    CELL = 64
};

/* Text stays readable where dots and lines lie below it. */
#define HALO " style=\"paint-order:stroke;stroke:var(--paper);stroke-width:3px\""

static double share_of(const dts_plot_axis *axis, double value) {
    const double share = axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low)
                                           : (value - axis->low) / (axis->high - axis->low);
    return fmin(fmax(share, 0), 1);
}

double dts_plot_x(const dts_plot *plot, double value) {
    return LEFT + (WIDTH - LEFT - RIGHT) * share_of(&plot->x, value);
}

double dts_plot_y(const dts_plot *plot, double value) {
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share_of(&plot->y, value);
}

/* In the right part of the picture text belongs on the other side. */
static bool is_right(double x) {
    return x > WIDTH * 0.66;
}

/* "1.500 s" becomes "1.5 s", "700.0 ms" "700 ms": ticks are round. */
static void drop_zeros(char *text) {
    char *point = strchr(text, '.');
    char *end = point == NULL ? NULL : point + 1 + strspn(point + 1, "0123456789");
    char *kept = end;
    while (kept != NULL && kept > point && (kept[-1] == '0' || kept[-1] == '.')) {
        kept--;
    }
    if (kept != end) {
        memmove(kept, end, strlen(end) + 1);
    }
}

static void write_tick(const dts_plot *plot, const dts_plot_axis *axis, double value, dts_text *out) {
    char buffer[CELL];
    if (axis == &plot->x) {
        const double x = dts_plot_x(plot, value);
        dts_text_printf(out,
                        "<path d=\"M%.1f %dV%d\" stroke=\"var(--line)\"/><text class=\"tick\" x=\"%.1f\" y=\"%d\" "
                        "text-anchor=\"middle\">",
                        x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 16);
    } else {
        const double y = dts_plot_y(plot, value);
        dts_text_printf(out,
                        "<path d=\"M%d %.1fH%d\" stroke=\"var(--line)\"/><text class=\"tick\" x=\"%d\" y=\"%.1f\" "
                        "text-anchor=\"end\">",
                        LEFT, y, WIDTH - RIGHT, LEFT - 6, y + 4);
    }
    dts_formatted(axis->format, value, buffer, sizeof buffer);
    drop_zeros(buffer);
    dts_html_escaped(buffer, out);
    dts_text_add(out, "</text>\n");
}

/* Where a value stands on its axis, in units of the picture. */
static double along(const dts_plot *plot, const dts_plot_axis *axis, double value) {
    return share_of(axis, value) * (axis == &plot->x ? WIDTH - LEFT - RIGHT : HEIGHT - TOP - BOTTOM);
}

/* Values at which a logarithmic axis has ticks: these steps in each power of ten. */
typedef struct steps {
    double of[12];
    int count;
} steps;

/* Writes the ticks, or with out NULL only tells whether they leave each other room. The last label may not reach over
 * the edge. */
static bool log_ticks(const dts_plot *plot, const dts_plot_axis *axis, const steps *s, dts_text *out) {
    const double low = axis->low / axis->unit, high = axis->high / axis->unit;
    const double between = axis == &plot->x ? BETWEEN_X : BETWEEN_Y;
    double before = -between;
    for (int power = (int)floor(log10(low)); power <= (int)ceil(log10(high)); power++) {
        for (int i = 0; i < s->count; i++) {
            const double value = s->of[i] * pow(10, power), at = along(plot, axis, value * axis->unit);
            if (value < low || value > high || (axis == &plot->x && at > WIDTH - LEFT - RIGHT - EDGE)) {
                continue;
            }
            if (at - before < between) {
                return false;
            }
            before = at;
            if (out != NULL) {
                write_tick(plot, axis, value * axis->unit, out);
            }
        }
    }
    return before >= 0;
}

/* At round multiples, as many as leave each other room, up to six or so. */
static void write_even_ticks(const dts_plot *plot, const dts_plot_axis *axis, dts_text *out) {
    static const double rounds[] = {1, 2, 5, 10, 20};
    const double low = axis->low / axis->unit, high = axis->high / axis->unit;
    const double power = pow(10, floor(log10((high - low) / 6)));
    const double between = axis == &plot->x ? BETWEEN_X : BETWEEN_Y;
    double step = 0;
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
        step = rounds[i] * power;
        const double first = ceil(low / step) * step;
        const double width =
            axis->logarithmic /* the last two are the nearest to each other */
                ? along(plot, axis, high * axis->unit) - along(plot, axis, (high - step) * axis->unit)
                : along(plot, axis, (first + step) * axis->unit) - along(plot, axis, first * axis->unit);
        if (step >= (high - low) / 6 && width >= between) {
            break;
        }
    }
    for (double i = ceil(low / step); i * step <= high; i++) {
        if (axis != &plot->x || along(plot, axis, i * step * axis->unit) <= WIDTH - LEFT - RIGHT - EDGE) {
            write_tick(plot, axis, i * step * axis->unit, out);
        }
    }
}

/* The densest of the usual divisions that has room; even steps within one doubling. */
static void write_log_ticks(const dts_plot *plot, const dts_plot_axis *axis, dts_text *out) {
    static const steps choices[] = {
        {{1, 1.5, 2, 3, 4, 5, 6, 8}, 8}, {{1, 1.5, 2, 3, 5, 7}, 6}, {{1, 2, 5}, 3}, {{1, 3}, 2}, {{1}, 1}};
    if (axis->high / axis->low < 2) {
        write_even_ticks(plot, axis, out);
        return;
    }
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        if (log_ticks(plot, axis, &choices[i], NULL)) {
            log_ticks(plot, axis, &choices[i], out);
            return;
        }
    }
}

void dts_plot_begin(const dts_plot *plot, dts_text *out) {
    dts_text_printf(out,
                    "<svg class=\"timeline\" style=\"min-width:0;max-width:46rem\" viewBox=\"0 0 %d %d\" role=\"img\" "
                    "aria-label=\"%s\">\n",
                    WIDTH, HEIGHT, plot->label);
    const dts_plot_axis *const axes[] = {&plot->x, &plot->y};
    for (size_t i = 0; i < 2; i++) {
        (axes[i]->logarithmic ? write_log_ticks : write_even_ticks)(plot, axes[i], out);
    }
    dts_text_printf(out,
                    "<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text><text class=\"tick\" "
                    "x=\"4\" y=\"%d\">%s</text>\n",
                    (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, plot->x.title, TOP - 6, plot->y.title);
}

void dts_plot_end(dts_text *out) {
    dts_text_add(out, "</svg>\n");
}

void dts_plot_limit_x(const dts_plot *plot, double value, const char *color, const char *name, dts_text *out) {
    const double x = dts_plot_x(plot, value);
    const bool right = is_right(x);
    dts_text_printf(out,
                    "<path d=\"M%.1f %dV%d\" stroke=\"var(--%s)\" stroke-dasharray=\"4 3\"/><text class=\"tick\" "
                    "x=\"%.1f\" y=\"%d\" text-anchor=\"%s\"" HALO ">",
                    x, TOP, HEIGHT - BOTTOM, color, x + (right ? -5 : 5), TOP + 10, right ? "end" : "start");
    dts_html_element("", name, "</text>\n", out);
}

void dts_plot_limit_y(const dts_plot *plot, double value, const char *color, const char *name, dts_text *out) {
    const double y = dts_plot_y(plot, value);
    dts_text_printf(out,
                    "<path d=\"M%d %.1fH%d\" stroke=\"var(--%s)\" stroke-dasharray=\"4 3\"/><text class=\"tick\" "
                    "x=\"%d\" y=\"%.1f\" text-anchor=\"end\"" HALO ">",
                    LEFT, y, WIDTH - RIGHT, color, WIDTH - RIGHT, y - 5);
    dts_html_element("", name, "</text>\n", out);
}

/* Where a name from left to right stands free, at y or below; in whole pixels, so that a line further is one. */
static double free_y(const dts_plot_names *names, double left, double right, double y) {
    y = round(y);
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < names->count && !moved; i++) {
            moved = left < names->taken[i].right && right > names->taken[i].left && fabs(y - names->taken[i].y) < LINE;
            y = moved ? names->taken[i].y + LINE : y;
        }
    }
    return y;
}

static void take(dts_plot_names *names, double left, double right, double y) {
    if (names->count < sizeof names->taken / sizeof names->taken[0]) {
        names->taken[names->count].left = left;
        names->taken[names->count].right = right;
        names->taken[names->count++].y = round(y);
    }
}

void dts_plot_keep_limit(dts_plot_names *names, const dts_plot *plot, double value, const char *name) {
    take(names, WIDTH - RIGHT - LETTER * (double)strlen(name), WIDTH - RIGHT, dts_plot_y(plot, value) - 9);
}

void dts_plot_keep_dot(dts_plot_names *names, double x, double y) {
    if (names->dot_count < sizeof names->dots / sizeof names->dots[0]) {
        names->dots[names->dot_count].x = x;
        names->dots[names->dot_count++].y = y;
    }
}

/* Where the name of a dot at x, y may stand: beside it, above it or below it. */
typedef struct spot {
    double at, left, right, y;
    const char *anchor;
} spot;

static spot spot_beside(double x, double y, double wide, bool on_the_left) {
    const double at = x + (on_the_left ? -9 : 9), left = on_the_left ? at - wide : at;
    return (spot){at, left, left + wide, y, on_the_left ? "end" : "start"};
}

static bool is_free(const dts_plot_names *names, const spot *s, double x, double y) {
    enum { DOT = 8 };
    bool free = s->left >= LEFT && s->right <= WIDTH - RIGHT && s->y >= TOP && s->y <= HEIGHT - BOTTOM - LINE / 2 &&
                free_y(names, s->left, s->right, s->y) == round(s->y);
    for (size_t i = 0; i < names->dot_count && free; i++) {
        const double dot_x = names->dots[i].x, dot_y = names->dots[i].y;
        const bool own = fabs(dot_x - x) < 0.1 && fabs(dot_y - y) < 0.1;
        free = own || dot_x < s->left - DOT || dot_x > s->right + DOT || fabs(dot_y - s->y) > LINE / 2 + DOT;
    }
    return free;
}

void dts_plot_name(dts_plot_names *names, double x, double y, const char *name, bool needed, dts_text *out) {
    const double wide = LETTER * (double)strlen(name), half = wide / 2;
    const double middle = fmin(fmax(x, LEFT + half), WIDTH - RIGHT - half);
    const spot usual = spot_beside(x, y, wide, is_right(x));
    const spot spots[] = {usual,
                          spot_beside(x, y, wide, !is_right(x)),
                          {middle, middle - half, middle + half, y - 17, "middle"},
                          {middle, middle - half, middle + half, y + 18, "middle"},
                          {middle, middle - half, middle + half, y - 24, "middle"},
                          {middle, middle - half, middle + half, y + 24, "middle"}};
    enum { SPOTS = sizeof spots / sizeof spots[0] };
    size_t free = 0;
    while (free < SPOTS && !is_free(names, &spots[free], x, y)) {
        free++;
    }
    if (free == SPOTS && !needed) {
        return;
    }
    spot chosen = free < SPOTS ? spots[free] : usual;
    chosen.y = free < SPOTS ? chosen.y : free_y(names, usual.left, usual.right, y);
    take(names, chosen.left, chosen.right, chosen.y);
    dts_text_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"" HALO ">", chosen.at, round(chosen.y) + 4,
                    chosen.anchor);
    dts_html_element("", name, "</text>\n", out);
}

void dts_plot_name_below(dts_plot_names *names, double x, double y, const char *name, dts_text *out) {
    const double half = LETTER * (double)strlen(name) / 2; /* the text stays within the picture, and above the axis */
    const double middle = fmin(fmax(x, LEFT + half), WIDTH - RIGHT - half);
    y = round(y + (y + 22 > HEIGHT - BOTTOM - 2 ? -12 : 22));
    if (free_y(names, middle - half, middle + half, y) == y) {
        take(names, middle - half, middle + half, y);
        dts_text_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\"" HALO ">", middle, y);
        dts_html_element("", name, "</text>\n", out);
    }
}
