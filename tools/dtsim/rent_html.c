/* What to rent as one web page: the answer in sentences, time and money of all offers with the front that no other
 * beats, and the table. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rent_write.h"
#include "report/format.h"
#include "report/html_page.h"
#include "report/html_plot.h"

/* Colours of the page's style, one for each cluster in turn, and what is drawn in them: the next shape where the
 * colours come again. */
static const char *const colors[] = {"forward", "communication", "backward", "optimizer", "recompute", "offload"};
enum { COLORS = sizeof colors / sizeof colors[0], MOST_CLUSTERS = 64, CELL = 64 };
typedef enum shape { CIRCLE, SQUARE, DIAMOND, SHAPES } shape;

typedef struct mark {
    const char *color;
    shape shape;
} mark;

static mark mark_of(size_t cluster) {
    return (mark){colors[cluster % COLORS], (shape)(cluster / COLORS % SHAPES)};
}

/* Money over more than this is drawn on a logarithmic axis. */
static const double wide_range = 20;

static const double day_s = 86400, hour_s = 3600, minute_s = 60;

static void format_days(double seconds, dts_text *out) {
    dts_text_printf(out, "%.10g d", seconds / day_s);
}

static void format_hours(double seconds, dts_text *out) {
    dts_text_printf(out, "%.10g h", seconds / hour_s);
}

static void format_minutes(double seconds, dts_text *out) {
    dts_text_printf(out, "%.10g min", seconds / minute_s);
}

/* The longest unit of which the longest time holds more than two. */
static void set_time_unit(double last_s, dts_plot_axis *axis) {
    const bool days = last_s > 2 * day_s, hours = last_s > 2 * hour_s;
    axis->unit = days ? day_s : hours ? hour_s : minute_s;
    axis->format = days ? format_days : hours ? format_hours : format_minutes;
}

static void format_thousands(double usd, dts_text *out) {
    dts_text_printf(out, "%.10g", usd / 1e3);
}

static void format_millions(double usd, dts_text *out) {
    dts_text_printf(out, "%.10g", usd / 1e6);
}

/* So that ticks have few digits: there is no room for more beside the picture. */
typedef struct money_unit {
    double least_usd; /* of the most that is drawn */
    double usd;
    dts_formatter *format;
    const char *title;
} money_unit;

static const money_unit *unit_of(double most_usd) {
    static const money_unit units[] = {{2e6, 1e6, format_millions, "million USD"},
                                       {2e4, 1e3, format_thousands, "thousand USD"},
                                       {0, 1, dts_format_count, "USD"}};
    size_t i = 0;
    while (most_usd < units[i].least_usd) {
        i++;
    }
    return &units[i];
}

static bool is_drawn(const dts_offer *offer) {
    return dts_offer_plan(offer) != NULL && offer->usd > 0;
}

/* The offers as drawn, and the limits where they are not far away. False: nothing to compare. */
static bool plot_of(const dts_rent *rent, dts_plot *out) {
    double first_s = INFINITY, last_s = 0, least = INFINITY, most = 0;
    size_t drawn = 0;
    for (size_t i = 0; i < rent->count; i++) {
        if (is_drawn(&rent->offers[i])) {
            drawn++;
            first_s = fmin(first_s, rent->offers[i].duration_s);
            last_s = fmax(last_s, rent->offers[i].duration_s);
            least = fmin(least, rent->offers[i].usd);
            most = fmax(most, rent->offers[i].usd);
        }
    }
    if (rent->deadline_s > 0 && rent->deadline_s < 4 * last_s) {
        first_s = fmin(first_s, rent->deadline_s);
        last_s = fmax(last_s, rent->deadline_s);
    }
    if (rent->budget_usd > 0 && rent->budget_usd < 2 * most) {
        least = fmin(least, rent->budget_usd);
        most = fmax(most, rent->budget_usd);
    }
    const bool wide = most > wide_range * least;
    const money_unit *unit = unit_of(most);
    *out = (dts_plot){.label = "offers by time and money",
                      .x = {.low = first_s / 1.15,
                            .high = last_s * 1.15,
                            .logarithmic = true,
                            .title = "time for all tokens, to the left is sooner"},
                      .y = {.low = wide ? least / 1.6 : fmax(0, least - 0.15 * (most - least) - 0.05 * least),
                            .high = wide ? most * 1.6 : most + 0.15 * (most - least) + 0.05 * least,
                            .logarithmic = wide,
                            .unit = unit->usd,
                            .format = unit->format,
                            .title = unit->title}};
    set_time_unit(last_s, &out->x);
    return drawn > 1;
}

/* The clusters in the order of the offers, each once. */
static size_t clusters_of(const dts_rent *rent, const char **out) {
    size_t count = 0;
    for (size_t i = 0; i < rent->count; i++) {
        if (!is_drawn(&rent->offers[i])) {
            continue;
        }
        const char *name = dts_scenario_get(rent->offers[i].scenario)->cluster.name;
        size_t k = 0;
        while (k < count && strcmp(out[k], name) != 0) {
            k++;
        }
        if (k == count && count < MOST_CLUSTERS) {
            out[count++] = name;
        }
    }
    return count;
}

static mark mark_of_offer(const dts_offer *offer, const char *const *clusters, size_t count) {
    const char *name = dts_scenario_get(offer->scenario)->cluster.name;
    for (size_t k = 0; k < count; k++) {
        if (strcmp(clusters[k], name) == 0) {
            return mark_of(k);
        }
    }
    return (mark){"host", CIRCLE};
}

/* Opens a shape around a point, of the area of a circle with this radius; its attributes follow. */
static void draw_shape(shape kind, double x, double y, double radius, dts_text *out) {
    const double side = radius * sqrt(acos(-1)), half = side / sqrt(2);
    if (kind == CIRCLE) {
        dts_text_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" ", x, y, radius);
    } else if (kind == SQUARE) {
        dts_text_printf(out, "<path d=\"M%.1f %.1fh%.1fv%.1fh%.1fz\" ", x - side / 2, y - side / 2, side, side, -side);
    } else {
        dts_text_printf(out, "<path d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\" ", x, y - half, half, half, -half,
                        half, -half, -half);
    }
}

static int by_time(const void *a, const void *b) {
    const dts_offer *const *x = a, *const *y = b;
    return ((*x)->duration_s > (*y)->duration_s) - ((*x)->duration_s < (*y)->duration_s);
}

/* Steps along what no other beats: at each time the least money. */
static void draw_front(const dts_rent *rent, const dts_plot *p, dts_text *out) {
    const dts_offer **front = calloc(rent->count > 0 ? rent->count : 1, sizeof *front);
    size_t count = 0;
    for (size_t i = 0; front != NULL && i < rent->count; i++) {
        if (rent->offers[i].pareto) {
            front[count++] = &rent->offers[i];
        }
    }
    if (count > 0) {
        qsort(front, count, sizeof *front, by_time);
        dts_text_printf(out, "<path fill=\"none\" stroke=\"var(--host)\" stroke-width=\"1.5\" d=\"M%.1f %.1f",
                        dts_plot_x(p, front[0]->duration_s), dts_plot_y(p, INFINITY));
        for (size_t i = 0; i < count; i++) {
            dts_text_printf(out, "H%.1fV%.1f", dts_plot_x(p, front[i]->duration_s), dts_plot_y(p, front[i]->usd));
        }
        dts_text_printf(out, "H%.1f\"/>\n", dts_plot_x(p, INFINITY));
    }
    out->failed = out->failed || front == NULL;
    free(front);
}

static void draw_offer(const dts_rent *rent, const dts_offer *offer, mark m, const dts_plot *p, dts_text *out) {
    const bool first = offer == &rent->offers[0], within = offer->in_time && offer->in_budget;
    char buffer[CELL];
    dts_text text = {0};
    dts_text_add(out, "<g>");
    draw_shape(m.shape, dts_plot_x(p, offer->duration_s), dts_plot_y(p, offer->usd), first ? 8 : 5, out);
    if (within) {
        dts_text_printf(out, "fill=\"var(--%s)\"/><title>", m.color);
    } else {
        dts_text_printf(out, "fill=\"none\" stroke=\"var(--%s)\" stroke-width=\"1.5\"/><title>", m.color);
    }
    dts_rent_name(offer, &text);
    dts_text_printf(&text, ": %s, ", dts_formatted(dts_format_duration, offer->duration_s, buffer, sizeof buffer));
    dts_text_printf(&text, "%s USD; ", dts_formatted(dts_format_count, offer->usd, buffer, sizeof buffer));
    dts_candidate_describe(&dts_offer_plan(offer)->candidate, dts_scenario_get(offer->scenario), &text);
    dts_html_element("", dts_text_string(&text), "</title></g>\n", out);
    out->failed = out->failed || text.failed;
    dts_text_free(&text);
}

/* How many nodes: of the answer, and of what no other beats, as far as there is room. */
static void name_offers(const dts_rent *rent, const dts_plot *p, dts_text *out) {
    dts_plot_names names = {.count = 0};
    for (size_t i = 0; i < rent->count; i++) {
        const dts_offer *offer = &rent->offers[i];
        if (is_drawn(offer) && (i == 0 || offer->pareto)) {
            const int64_t nodes = dts_scenario_get(offer->scenario)->cluster.nodes;
            char name[CELL];
            snprintf(name, sizeof name, "%" PRId64 " node%s", nodes, nodes == 1 ? "" : "s");
            dts_plot_name_below(&names, dts_plot_x(p, offer->duration_s), dts_plot_y(p, offer->usd), name, out);
        }
    }
}

/* A cluster of the legend. */
static void name_cluster(const char *name, mark m, dts_text *out) {
    dts_text_add(out,
                 "<span style=\"white-space:nowrap;margin-right:1rem\"><svg viewBox=\"0 0 14 14\" "
                 "style=\"width:.9rem;min-width:0;margin-right:.3rem;vertical-align:-.1em\">");
    draw_shape(m.shape, 7, 7, 5.5, out);
    dts_text_printf(out, "fill=\"var(--%s)\"/></svg>", m.color);
    dts_html_element("", name, "</span> ", out);
}

static void write_plot(const dts_rent *rent, dts_text *out) {
    dts_plot p;
    if (!plot_of(rent, &p)) {
        return;
    }
    const char *clusters[MOST_CLUSTERS];
    const size_t count = clusters_of(rent, clusters);
    dts_text_add(out, "<h2>Time against money</h2>\n");
    dts_plot_begin(&p, out);
    if (rent->deadline_s > p.x.low && rent->deadline_s < p.x.high) {
        dts_plot_limit_x(&p, rent->deadline_s, "bad", "deadline", out);
    }
    if (rent->budget_usd > p.y.low && rent->budget_usd < p.y.high) {
        dts_plot_limit_y(&p, rent->budget_usd, "bad", "budget", out);
    }
    draw_front(rent, &p, out);
    for (size_t i = rent->count; i-- > 0;) { /* the best lie on top */
        if (is_drawn(&rent->offers[i])) {
            draw_offer(rent, &rent->offers[i], mark_of_offer(&rent->offers[i], clusters, count), &p, out);
        }
    }
    name_offers(rent, &p, out);
    dts_plot_end(out);
    dts_text_add(out,
                 "<p class=\"faint\">Every dot is a number of nodes with its best plan; point at it to see which. The "
                 "line joins what no other offer beats in both. ");
    dts_text_add(out, is_drawn(&rent->offers[0]) ? "The largest dot is the answer"
                                                 : "The answer is no dot: its price is unknown");
    dts_text_add(out, rent->deadline_s > 0 || rent->budget_usd > 0 ? "; hollow: outside the limits.<br>" : ".<br>");
    for (size_t k = 0; k < count; k++) {
        name_cluster(clusters[k], mark_of(k), out);
    }
    dts_text_add(out, "</p>\n");
}

dts_status dts_rent_write_html(const dts_rent *rent, const dts_search_writing *options, dts_text *out) {
    dts_text text = {0};
    dts_rent_title(rent, &text);
    dts_html_begin("What to rent", out);
    dts_html_element("<p class=\"faint\">", options->scenario, ": ", out);
    dts_html_element("", dts_text_string(&text), "</p>\n", out);
    dts_text_clear(&text);
    dts_rent_answer(rent, &text);
    dts_html_lines(dts_text_string(&text), " style=\"font-size:1.15rem;margin-top:.6rem\"", out);
    write_plot(rent, out);
    if (rent->plans > 0) {
        dts_text_add(out, "<h2>Offers</h2>\n");
        dts_grid *grid = dts_rent_grid(rent, rent->count);
        dts_grid_html(grid, out);
        dts_grid_free(grid);
        dts_text_add(out,
                     "<p class=\"faint\">* no other is both sooner and cheaper. = a tie: within 3 % of the "
                     "first.</p>\n");
    }
    dts_text_clear(&text);
    dts_rent_remarks(rent, options, &text);
    dts_html_lines(dts_text_string(&text), " class=\"faint\"", out);
    dts_text_clear(&text);
    dts_rent_missing(rent, &text);
    if (text.length > 0) {
        dts_text_add(out, "<h2>Without a plan</h2>\n");
        dts_html_lines(dts_text_string(&text), "", out);
    }
    dts_text_clear(&text);
    dts_rent_again(rent, options, &text);
    if (text.length > 0) {
        dts_html_element("<h2>The first again</h2>\n<div class=\"wide\"><pre>", dts_text_string(&text),
                         "</pre></div>\n", out);
    }
    if (rent->interrupted) {
        dts_text_add(out, "<p class=\"bad\">Interrupted: the rest was not searched.</p>\n");
    }
    out->failed = out->failed || text.failed;
    dts_text_free(&text);
    dts_html_end(out);
    return dts_text_status(out);
}
