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
    dts_html_escaped(dts_formatted(axis->format, value, buffer, sizeof buffer), out);
    dts_text_add(out, "</text>\n");
}

/* Logarithmic: at 1, 2 and 5 of each power of ten; in a short range at every half of the first digit's unit. */
static void write_log_ticks(const dts_plot *plot, const dts_plot_axis *axis, dts_text *out) {
    static const double wide_steps[] = {1, 2, 5}, fine_steps[] = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9};
    const bool fine = axis->high / axis->low < 20;
    const double *steps = fine ? fine_steps : wide_steps;
    const double low = axis->low / axis->unit, high = axis->high / axis->unit;
    double free_from = 0;
    for (int power = (int)floor(log10(low)); power <= (int)ceil(log10(high)); power++) {
        for (int i = 0; i < (fine ? 12 : 3); i++) {
            const double value = steps[i] * pow(10, power);
            const double at =
                share_of(axis, value * axis->unit) * (axis == &plot->x ? WIDTH - LEFT - RIGHT : HEIGHT - TOP - BOTTOM);
            const bool room = axis != &plot->x || at < WIDTH - LEFT - RIGHT - 12;
            if (value >= low && value <= high && at >= free_from && room) {
                free_from = at + (axis == &plot->x ? BETWEEN_X : BETWEEN_Y);
                write_tick(plot, axis, value * axis->unit, out);
            }
        }
    }
}

/* At round multiples, up to five of them. */
static void write_even_ticks(const dts_plot *plot, const dts_plot_axis *axis, dts_text *out) {
    const double low = axis->low / axis->unit, high = axis->high / axis->unit, rough = (high - low) / 4;
    const double power = pow(10, floor(log10(rough)));
    const double step = power * (rough > 5 * power ? 10 : rough > 2 * power ? 5 : rough > power ? 2 : 1);
    for (double i = ceil(low / step); i * step <= high; i++) {
        write_tick(plot, axis, i * step * axis->unit, out);
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
                    "x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">",
                    x, TOP, HEIGHT - BOTTOM, color, x + (right ? -5 : 5), TOP + 10, right ? "end" : "start");
    dts_html_element("", name, "</text>\n", out);
}

void dts_plot_limit_y(const dts_plot *plot, double value, const char *color, const char *name, dts_text *out) {
    const double y = dts_plot_y(plot, value);
    dts_text_printf(out,
                    "<path d=\"M%d %.1fH%d\" stroke=\"var(--%s)\" stroke-dasharray=\"4 3\"/><text class=\"tick\" "
                    "x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
                    LEFT, y, WIDTH - RIGHT, color, WIDTH - RIGHT, y - 5);
    dts_html_element("", name, "</text>\n", out);
}

/* Where a name from left to right stands free, at y or below. */
static double free_y(const dts_plot_names *names, double left, double right, double y) {
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < names->count && !moved; i++) {
            moved = left < names->taken[i].right && right > names->taken[i].left && fabs(y - names->taken[i].y) < LINE;
            y = moved ? names->taken[i].y + LINE : y;
        }
    }
    return y;
}

void dts_plot_name(dts_plot_names *names, double x, double y, const char *name, dts_text *out) {
    const bool right = is_right(x);
    const double at = x + (right ? -9 : 9), wide = LETTER * (double)strlen(name);
    const double from = right ? at - wide : at;
    y = free_y(names, from, from + wide, y);
    if (names->count < sizeof names->taken / sizeof names->taken[0]) {
        names->taken[names->count].left = from;
        names->taken[names->count].right = from + wide;
        names->taken[names->count++].y = y;
    }
    dts_text_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"" HALO ">", at, y + 4, right ? "end" : "start");
    dts_html_element("", name, "</text>\n", out);
}

void dts_plot_name_below(double x, double y, const char *name, dts_text *out) {
    const double half = 28; /* of the text, which stays within the picture */
    dts_text_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                    fmin(fmax(x, LEFT + half), WIDTH - RIGHT - half), y + 22);
    dts_html_element("", name, "</text>\n", out);
}
