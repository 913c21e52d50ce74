/* A sweep as SVG: throughput, and below it the memory of the fullest GPU, over the values of one key, with a line for
 * each value of another; further keys take a picture for each of their values, all on the same scales. A hollow point
 * does not fit, and what leads to one is dashed; "?" may run out of memory; a combination that is illegal leaves a gap.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "report/format.h"
#include "report/svg.h"
#include "scenario/scenario.h"
#include "sweep_write.h"

enum {
    MARGIN = 24,
    LEFT = 104, /* of the plots: room for numbers */
    RIGHT = 40,
    HEAD = 44,
    PLOT = 280, /* height of one, of what stands above it and below it */
    ABOVE = 32,
    BELOW = 34,
    FOOT = 56, /* the key across and what it means */
    LEGEND_LINE = 30,
    TICKS = 8,
    LETTER = 9,        /* width of one of 16 units, for ticks and legends */
    TITLE_LETTER = 13, /* of one of 22, bold */
    TITLE_LINE = 28,
    HELP_LETTER = 7, /* of one of 14 */
    RADIUS = 6,
    EDGE = 18, /* from a plot's side to its first point */
    TEXT = 160,
    DASHES = 3
};

/* Which axis runs across, and where its values stand: shares of the width. */
typedef struct layout {
    const dts_sweep *sweep;
    size_t across, lines; /* axes; lines == across: there is one line */
    size_t *fixed;        /* [axes] which value the others have in this picture */
    double *at;           /* [values across] */
    double width;         /* of a picture */
    double capacity_gib;  /* the most of all, which all pictures have room for */
    bool unfit, doubtful, illegal;
    dts_text *out;
} layout;

typedef double figure_of(const dts_figures *figures);

static double throughput(const dts_figures *f) {
    return f->tokens_per_s;
}

static double memory(const dts_figures *f) {
    return f->peak_device_gib;
}

/* ---- where things are ----------------------------------------------------------------------------------------------
 */

static const dts_field *field_of(const dts_axis *axis) {
    size_t offset = 0;
    return dts_axis_keys(axis) > 1 ? NULL : dts_schema_find(&dts_scenario_schema, axis->key, &offset);
}

/* The values as numbers that rise from each to the next. False: they are no such. */
static bool read_numbers(const dts_axis *axis, double *out) {
    const dts_field *field = field_of(axis);
    bool good = field != NULL && (field->type == DTS_FIELD_INT || field->type == DTS_FIELD_QUANTITY);
    dts_diag *ignored = dts_diag_new();
    for (size_t i = 0; i < axis->count && good; i++) {
        const dts_dimension dimension = field->type == DTS_FIELD_INT ? DTS_DIM_NUMBER : field->dimension;
        good = ignored != NULL &&
               dts_quantity_parse(axis->values[i], dimension, &out[i], NULL, NULL, ignored) == DTS_OK &&
               (i == 0 || out[i] > out[i - 1]);
    }
    dts_diag_free(ignored);
    return good;
}

/* Numbers in equal steps stand on a linear scale, others above zero on a logarithmic one; all else side by side. */
static void place_values(const dts_axis *axis, double *at) {
    const size_t last = axis->count - 1;
    const bool numbers = axis->count > 1 && read_numbers(axis, at);
    bool even = true;
    for (size_t i = 2; i < axis->count && numbers; i++) {
        even = even && fabs(at[i] - at[i - 1] - (at[1] - at[0])) < 1e-9 * fabs(at[i]);
    }
    const bool logarithmic = numbers && !even && at[0] > 0;
    const double low = numbers ? at[0] : 0, high = numbers ? at[last] : 0;
    for (size_t i = 0; i < axis->count; i++) {
        at[i] = logarithmic       ? log(at[i] / low) / log(high / low)
                : numbers         ? (at[i] - low) / (high - low)
                : axis->count > 1 ? (double)i / (double)last
                                  : 0.5;
    }
}

static double x_of(const layout *l, size_t value) {
    return LEFT + EDGE + (l->width - LEFT - RIGHT - 2 * EDGE) * l->at[value];
}

static size_t line_count(const layout *l) {
    return l->lines == l->across ? 1 : l->sweep->axes[l->lines].count;
}

/* The combination of a value across and a line; the last axis varies fastest. */
static size_t index_of(const layout *l, size_t line, size_t value) {
    size_t index = 0;
    for (size_t a = 0; a < l->sweep->axis_count; a++) {
        index = index * l->sweep->axes[a].count + (a == l->across ? value : a == l->lines ? line : l->fixed[a]);
    }
    return index;
}

static bool is_simulated(const dts_sweep *sweep, size_t index) {
    return sweep->outcomes[index].kind == DTS_OUTCOME_SIMULATED;
}

/* The axis across: one of numbers where there is one, of these the one with most values, then the last. */
static size_t choose_across(const dts_sweep *sweep, double *room) {
    size_t best = 0;
    bool best_numbers = read_numbers(&sweep->axes[0], room);
    for (size_t a = 1; a < sweep->axis_count; a++) {
        const bool numbers = read_numbers(&sweep->axes[a], room);
        const bool more = sweep->axes[a].count >= sweep->axes[best].count;
        if (numbers != best_numbers ? numbers : more) {
            best = a;
            best_numbers = numbers;
        }
    }
    return best;
}

/* The lines: of the other axes the one with most values that still have colours of their own, then the last. */
static size_t choose_lines(const dts_sweep *sweep, size_t across) {
    size_t best = across;
    for (size_t a = 0; a < sweep->axis_count; a++) {
        const size_t count = sweep->axes[a].count;
        const size_t before = best == across ? 0 : sweep->axes[best].count;
        const bool told = count <= DTS_SVG_SHADES, told_before = before > 0 && before <= DTS_SVG_SHADES;
        if (a != across && (told != told_before ? told : told ? count >= before : before == 0 || count <= before)) {
            best = a;
        }
    }
    return best;
}

static void look(layout *l) {
    const dts_sweep *sweep = l->sweep;
    for (size_t i = 0; i < sweep->count; i++) {
        const dts_figures *f = &sweep->outcomes[i].figures;
        l->illegal = l->illegal || sweep->outcomes[i].kind == DTS_OUTCOME_ILLEGAL;
        if (is_simulated(sweep, i)) {
            l->unfit = l->unfit || !f->fits;
            l->doubtful = l->doubtful || (f->fits && f->unserved_gib > 0);
        }
    }
}

/* What every GPU of a picture has; 0: they differ. */
static double capacity_of(const layout *l) {
    double capacity = 0;
    for (size_t line = 0; line < line_count(l); line++) {
        for (size_t value = 0; value < l->sweep->axes[l->across].count; value++) {
            const size_t index = index_of(l, line, value);
            const double here = l->sweep->outcomes[index].figures.capacity_gib;
            if (is_simulated(l->sweep, index)) {
                if (capacity > 0 && fabs(capacity - here) > 1e-9) {
                    return 0;
                }
                capacity = here;
            }
        }
    }
    return capacity;
}

/* ---- drawing ------------------------------------------------------------------------------------------------------
 */

static void text_at(const layout *l, double x, double y, const char *anchor, int size, const char *ink,
                    const char *text) {
    const dts_svg_font font = {.size = size, .anchor = anchor, .weight = size > 18 ? "bold" : "normal", .ink = ink};
    dts_svg_text(x, y, &font, text, l->out);
}

static const char *fill_of(size_t line) {
    return dts_svg_shades[line % DTS_SVG_SHADES].fill;
}

/* One plot: top is where its frame begins, end the value there, a whole number of steps from a tick to the next. */
typedef struct plot {
    const layout *l;
    figure_of *figure;
    double top, end, step;
} plot;

static double y_of(const plot *p, double value) {
    return p->top + PLOT * (1 - value / p->end);
}

static void draw_frame(const plot *p, const char *title) {
    const layout *l = p->l;
    const double step = p->step;
    text_at(l, MARGIN, p->top - 12, "start", 16, DTS_SVG_INK, title);
    for (int n = 0; n * step <= p->end * (1 + 1e-9); n++) {
        char tick[TEXT];
        snprintf(tick, sizeof tick, "%.6g", n * step);
        dts_text_printf(l->out, "<path d=\"M%d %.6gH%.6g\" stroke=\"%s\"/>\n", LEFT, y_of(p, n * step),
                        l->width - RIGHT, DTS_SVG_GRID_LINE);
        text_at(l, LEFT - 8, y_of(p, n * step) + 5, "end", 15, DTS_SVG_QUIET,
                n * step < 1000 ? tick : dts_formatted(dts_format_count, n * step, tick, sizeof tick));
    }
    const dts_axis *axis = &l->sweep->axes[l->across];
    double free_from = 0;
    for (size_t i = 0; i < axis->count; i++) {
        const double half = LETTER * (double)dts_style_columns(axis->values[i]) / 2;
        dts_text_printf(l->out, "<path d=\"M%.6g %.6gv5\" stroke=\"%s\"/>\n", x_of(l, i), p->top + PLOT,
                        DTS_SVG_QUIET_LINE);
        if (x_of(l, i) - half >= free_from) {
            text_at(l, x_of(l, i), p->top + PLOT + 22, "middle", 15, DTS_SVG_QUIET, axis->values[i]);
            free_from = x_of(l, i) + half + LETTER;
        }
    }
}

static void draw_line(const plot *p, size_t line) {
    const layout *l = p->l;
    static const char *const dashes[DASHES] = {"", "10 4", "2 3"}; /* colours come again with another one */
    for (size_t i = 1; i < l->sweep->axes[l->across].count; i++) {
        const size_t from = index_of(l, line, i - 1), to = index_of(l, line, i);
        if (!is_simulated(l->sweep, from) || !is_simulated(l->sweep, to)) {
            continue;
        }
        const dts_figures *a = &l->sweep->outcomes[from].figures, *b = &l->sweep->outcomes[to].figures;
        const char *dash = a->fits && b->fits ? dashes[line / DTS_SVG_SHADES % DASHES] : "4 4";
        dts_text_printf(l->out,
                        "<path d=\"M%.6g %.6gL%.6g %.6g\" stroke=\"%s\" stroke-width=\"%s\" fill=\"none\"%s%s%s/>\n",
                        x_of(l, i - 1), y_of(p, p->figure(a)), x_of(l, i), y_of(p, p->figure(b)), fill_of(line),
                        a->fits && b->fits ? "2.5" : "1.5", dash[0] != '\0' ? " stroke-dasharray=\"" : "", dash,
                        dash[0] != '\0' ? "\"" : "");
    }
}

static void draw_point(const plot *p, size_t line, size_t value) {
    const layout *l = p->l;
    const size_t index = index_of(l, line, value);
    if (!is_simulated(l->sweep, index)) {
        return;
    }
    const dts_figures *f = &l->sweep->outcomes[index].figures;
    const double x = x_of(l, value), y = y_of(p, p->figure(f));
    dts_text told = {0};
    dts_sweep_settings(l->sweep, index, &told);
    dts_text_add(&told, ": ");
    dts_format_count(f->tokens_per_s, &told);
    dts_text_printf(&told, " tokens/s, %.1f GiB%s", f->peak_device_gib,
                    !f->fits                             ? ", does not fit"
                    : f->unserved_gib > 0                ? ", may run out of memory"
                    : f->retry_share >= dts_retries_told ? ", pays with allocator retries"
                                                         : "");
    dts_svg_group(dts_text_string(&told), l->out);
    dts_text_end(&told, l->out);
    dts_text_printf(l->out, "<circle cx=\"%.6g\" cy=\"%.6g\" r=\"%d\" fill=\"%s\" stroke=\"%s\" stroke-width=\"2\"/>\n",
                    x, y, RADIUS, f->fits ? fill_of(line) : DTS_SVG_PAPER, fill_of(line));
    if (f->fits && f->unserved_gib > 0) {
        text_at(l, x + RADIUS + 3, y - RADIUS, "start", 17, DTS_SVG_INK, "?");
    }
    dts_svg_group_end(l->out);
}

/* limit: the GPUs' of this picture, most: of all. */
static void draw_plot(const layout *l, figure_of *figure, const char *title, double limit, double most, double top) {
    plot p = {.l = l, .figure = figure, .top = top, .end = most};
    for (size_t i = 0; i < l->sweep->count; i++) {
        p.end = is_simulated(l->sweep, i) ? fmax(p.end, figure(&l->sweep->outcomes[i].figures)) : p.end;
    }
    p.end = p.end > 0 ? p.end * 1.03 : 1; /* room for the highest point */
    p.step = dts_svg_step(p.end, TICKS);
    p.end = ceil(p.end / p.step * (1 - 1e-9)) * p.step;
    draw_frame(&p, title);
    if (limit > 0) {
        char text[TEXT];
        snprintf(text, sizeof text, "dashed: a GPU's %.1f GiB", limit);
        dts_text_printf(l->out, "<path d=\"M%d %.6gH%.6g\" stroke=\"%s\" stroke-dasharray=\"6 4\"/>\n", LEFT,
                        y_of(&p, limit), l->width - RIGHT, DTS_SVG_BAD_LINE);
        text_at(l, l->width - RIGHT, top - 12, "end", 14, DTS_SVG_BAD, text);
    }
    for (size_t line = line_count(l); line-- > 0;) {
        draw_line(&p, line);
        for (size_t value = 0; value < l->sweep->axes[l->across].count; value++) {
            draw_point(&p, line, value);
        }
    }
}

/* An entry of the legend at *x, *y, or on a new line where it has no room; shape: what is drawn around 0, 0. */
static void legend_entry(const layout *l, double *x, double *y, const char *shape, const char *name) {
    const double width = 34 + LETTER * (double)dts_style_columns(name) + 20;
    if (*x > LEFT && *x + width > l->width - MARGIN) {
        *x = LEFT;
        *y += LEGEND_LINE;
    }
    dts_text_printf(l->out, "<g transform=\"translate(%.6g %.6g)\">%s</g>\n", *x + 10, *y - 5, shape);
    text_at(l, *x + 26, *y, "start", 16, DTS_SVG_INK, name);
    *x += width;
}

static bool is_drawn(const layout *l, size_t line) {
    bool any = false;
    for (size_t value = 0; value < l->sweep->axes[l->across].count; value++) {
        any = any || is_simulated(l->sweep, index_of(l, line, value));
    }
    return any;
}

/* Returns where it ends. */
static double draw_legend(const layout *l, double y) {
    double x = LEFT;
    for (size_t line = 0; l->lines != l->across && line < line_count(l); line++) {
        const dts_axis *axis = &l->sweep->axes[l->lines];
        char shape[TEXT], name[TEXT];
        snprintf(shape, sizeof shape, "<circle r=\"%d\" fill=\"%s\"/>", RADIUS, fill_of(line));
        snprintf(name, sizeof name, "%s = %s%s", axis->key, axis->values[line],
                 is_drawn(l, line) ? "" : ": nothing is legal");
        legend_entry(l, &x, &y, shape, name);
    }
    if (l->unfit) {
        legend_entry(l, &x, &y, "<circle r=\"6\" fill=\"none\" stroke=\"" DTS_SVG_QUIET_LINE "\" stroke-width=\"2\"/>",
                     "does not fit in memory");
    }
    if (l->doubtful) {
        legend_entry(l, &x, &y,
                     "<text y=\"6\" text-anchor=\"middle\" font-size=\"17\" fill=\"" DTS_SVG_INK "\">?</text>",
                     "may run out of memory");
    }
    if (l->illegal) {
        legend_entry(l, &x, &y, "<path d=\"M-8 0h5m6 0h5\" stroke=\"" DTS_SVG_QUIET_LINE "\" stroke-width=\"2\"/>",
                     "gap: illegal");
    }
    return y;
}

static void draw_foot(const layout *l, double top) {
    const dts_axis *axis = &l->sweep->axes[l->across];
    const dts_field *field = field_of(axis);
    const double middle = (LEFT + l->width - RIGHT) / 2, room = 2 * fmin(middle, l->width - middle);
    text_at(l, middle, top + 16, "middle", 16, DTS_SVG_INK, axis->key);
    if (field != NULL && field->help != NULL) {
        char help[TEXT];
        const size_t bytes = dts_style_break(field->help, (size_t)(room / HELP_LETTER));
        snprintf(help, sizeof help, "%.*s%s", (int)bytes, field->help, field->help[bytes] != '\0' ? " …" : "");
        text_at(l, middle, top + 37, "middle", 14, DTS_SVG_QUIET, help);
    }
}

/* In as many lines as it takes; returns by how much it is higher than one. */
static double draw_title(const layout *l, const char *title) {
    const size_t columns = (size_t)((l->width - 2 * MARGIN) / TITLE_LETTER);
    double more = -TITLE_LINE;
    while (*title != '\0') {
        const size_t bytes = dts_style_break(title, columns);
        char line[TEXT];
        snprintf(line, sizeof line, "%.*s", (int)bytes, title);
        more += TITLE_LINE;
        text_at(l, MARGIN, MARGIN + 22 + more, "start", 22, DTS_SVG_INK, line);
        title += bytes;
        title += strspn(title, " ");
    }
    return more;
}

/* Returns where it ends. */
static double draw_parts(const layout *l, const char *title) {
    const double first = MARGIN + HEAD + ABOVE + draw_title(l, title), second = first + PLOT + BELOW + ABOVE;
    const double foot = second + PLOT + BELOW;
    draw_plot(l, throughput, "tokens/s, all GPUs together", 0, 0, first);
    draw_plot(l, memory, "GiB, peak of the fullest GPU", capacity_of(l), l->capacity_gib, second);
    draw_foot(l, foot);
    return draw_legend(l, foot + FOOT + 20);
}

static void draw_picture(layout *l, dts_text *out) {
    dts_text parts = {0}, title = {0};
    dts_text_printf(&title, "Throughput and memory by %s", l->sweep->axes[l->across].key);
    for (size_t a = 0; a < l->sweep->axis_count; a++) {
        if (a != l->across && a != l->lines) {
            const dts_axis *axis = &l->sweep->axes[a];
            dts_text_printf(&title, ", %s = %s", axis->key, axis->values[l->fixed[a]]);
        }
    }
    l->out = &parts;
    const double end = draw_parts(l, dts_text_string(&title));
    l->out = out;
    dts_svg_begin(l->width, end + MARGIN, dts_text_string(&title), out);
    dts_text_add(out, dts_text_string(&parts));
    dts_svg_end(out);
    out->failed = out->failed || parts.failed || title.failed;
    dts_text_free(&parts);
    dts_text_free(&title);
}

/* The next values of the axes that are fixed; false: that were all. */
static bool next_picture(layout *l) {
    for (size_t a = l->sweep->axis_count; a-- > 0;) {
        if (a == l->across || a == l->lines) {
            continue;
        }
        if (++l->fixed[a] < l->sweep->axes[a].count) {
            return true;
        }
        l->fixed[a] = 0;
    }
    return false;
}

static bool has_any(const layout *l) {
    bool any = false;
    for (size_t line = 0; line < line_count(l); line++) {
        any = any || is_drawn(l, line);
    }
    return any;
}

size_t dts_sweep_pictures(const dts_sweep *sweep) {
    double *room = calloc(sweep->count, sizeof *room);
    if (room == NULL) {
        return 0;
    }
    const size_t across = choose_across(sweep, room), lines = choose_lines(sweep, across);
    free(room);
    size_t count = 1;
    for (size_t a = 0; a < sweep->axis_count; a++) {
        count *= a != across && a != lines ? sweep->axes[a].count : 1;
    }
    return count;
}

dts_status dts_sweep_draw(const dts_sweep *sweep, double width, dts_text *out) {
    size_t most = 1;
    for (size_t a = 0; a < sweep->axis_count; a++) {
        most = sweep->axes[a].count > most ? sweep->axes[a].count : most;
    }
    layout l = {.sweep = sweep,
                .width = width,
                .at = calloc(most, sizeof *l.at),
                .fixed = calloc(sweep->axis_count + 1, sizeof *l.fixed)};
    const bool good = l.at != NULL && l.fixed != NULL;
    if (good) {
        l.across = choose_across(sweep, l.at);
        l.lines = choose_lines(sweep, l.across);
        place_values(&sweep->axes[l.across], l.at);
        look(&l);
        do {
            l.capacity_gib = fmax(l.capacity_gib, capacity_of(&l));
        } while (next_picture(&l));
        do {
            if (has_any(&l)) {
                draw_picture(&l, out);
            }
        } while (next_picture(&l));
    }
    free(l.at);
    free(l.fixed);
    return good ? dts_text_status(out) : DTS_NOMEM;
}

dts_status dts_sweep_write_svg(const dts_sweep *sweep, const dts_style *style, dts_text *out) {
    (void)style;
    return dts_sweep_draw(sweep, DTS_SWEEP_WIDTH, out);
}
