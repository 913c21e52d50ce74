/* A strategy of single operators as one web page: what it gains over plain ones, the graph of the operators with their
 * parts, the simulated timeline, and how the chains found it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/format.h"
#include "report/html_page.h"
#include "report/html_plot.h"
#include "report/timeline_cells.h"
#include "soap_write.h"

enum { CELL = 64, SHAPE = 96 };

static const dts_style wide = {.width = 1 << 20, .unicode = true}; /* nothing is broken into lines */

static const char *time_text(double seconds, char buffer[CELL]) {
    return dts_formatted(dts_format_time, seconds, buffer, CELL);
}

/* ---- strategies as bars ---------------------------------------------------------------------------------------------
 */

static void write_ranking(const dts_soap_writing *w, dts_text *out) {
    const dts_soap_strategy *ranked[DTS_SOAP_STRATEGIES];
    const size_t count = dts_soap_rank(w->problem, w->outcome, ranked);
    double longest_s = 0;
    for (size_t i = 0; i < count; i++) {
        longest_s = fmax(longest_s, ranked[i]->iteration_s);
    }
    dts_text_add(out,
                 "<h2>Against plain strategies</h2>\n<div class=\"wide\"><table>\n<tr><th>strategy</th><th>iteration"
                 "</th><th class=\"left\"></th><th>samples/s</th><th>GiB</th><th>found is faster by</th></tr>\n");
    for (size_t i = 0; i < count; i++) {
        const dts_soap_strategy *s = ranked[i];
        char buffer[CELL];
        dts_html_element("<tr><td>", s->name, "</td>", out);
        dts_text_printf(out, "<td>%s</td>", time_text(s->iteration_s, buffer));
        dts_text_printf(
            out,
            "<td class=\"left bar\"><i style=\"width:%.1f%%;background:var(--%s)\"></i></td><td>%s</td>"
            "<td%s>%.2f%s</td>",
            100 * s->iteration_s / longest_s, i == 0 ? "backward" : "forward",
            dts_formatted(dts_format_count, (double)w->problem->graph->batch / s->iteration_s, buffer, sizeof buffer),
            s->fits ? "" : " class=\"bad\"", s->peak_B / DTS_GIB, s->fits ? "" : " does not fit");
        if (i > 0) {
            dts_text_printf(out, "<td>%.2f ×</td></tr>\n", s->iteration_s / w->outcome->best.iteration_s);
        } else {
            dts_text_add(out, "<td></td></tr>\n");
        }
    }
    dts_text_add(out, "</table></div>\n");
}

/* ---- the graph ------------------------------------------------------------------------------------------------------
 */

enum { BOX_WIDTH = 208, BOX_HEIGHT = 46, GAP_X = 22, GAP_Y = 26, MARGIN = 8, LETTERS = 31, BESIDE = 90 };

typedef struct node {
    size_t stands_for; /* the operator that is drawn in its place: itself, or the first of equal layers */
    size_t layers;     /* equal layers that this one begins; 0: none or one */
    size_t rank, place;
} node;

typedef struct drawing {
    const dts_soap_writing *w;
    const dts_soap_choice *choices;
    node *nodes;
    size_t *in_rank; /* [rank] boxes */
    size_t ranks, widest;
} drawing;

/* Only the first of a run of equal layers is drawn. */
static void collapse(drawing *d) {
    const size_t count = d->w->problem->graph->count;
    for (size_t i = 0; i < count;) {
        size_t length;
        const size_t layers = dts_soap_equal_layers(d->w, d->choices, i, &length);
        for (size_t k = 0; k < layers * length; k++) {
            d->nodes[i + k].stands_for = i + k % length;
        }
        d->nodes[i].layers = layers > 1 ? layers : 0;
        i += layers * length;
    }
}

/* A box stands below everything that it reads. */
static void lay_out(drawing *d) {
    const dts_tensor_graph *graph = d->w->problem->graph;
    for (size_t i = 0; i < graph->count; i++) {
        node *n = &d->nodes[i];
        if (n->stands_for != i) {
            continue;
        }
        for (size_t k = 0; k < graph->ops[i].input_count; k++) {
            const size_t from = d->nodes[graph->ops[i].inputs[k]].stands_for;
            n->rank = from < i && d->nodes[from].rank + 1 > n->rank ? d->nodes[from].rank + 1 : n->rank;
        }
        n->place = d->in_rank[n->rank]++;
        d->widest = d->in_rank[n->rank] > d->widest ? d->in_rank[n->rank] : d->widest;
        d->ranks = n->rank + 1 > d->ranks ? n->rank + 1 : d->ranks;
    }
}

static double left_of(const drawing *d, const node *n) {
    const double room = (double)(d->widest - d->in_rank[n->rank]) * (BOX_WIDTH + GAP_X) / 2;
    return MARGIN + room + (double)n->place * (BOX_WIDTH + GAP_X);
}

static double top_of(const node *n) {
    return MARGIN + (double)n->rank * (BOX_HEIGHT + GAP_Y);
}

/* By what it is mostly cut: samples, other positions, or its own parameters. */
static const char *color_of(const dts_tensor_op *op, const dts_soap_cut *cut) {
    static const char *const colors[] = {[DTS_SPLIT_NONE] = "host",
                                         [DTS_SPLIT_SAMPLE] = "forward",
                                         [DTS_SPLIT_ATTRIBUTE] = "recompute",
                                         [DTS_SPLIT_PARAMETER] = "communication"};
    int most = 0;
    for (int i = 1; i < op->dims; i++) {
        most = cut->degree[i] > cut->degree[most] ? i : most;
    }
    return op->type == DTS_TENSOR_INPUT || cut->parts == 1 ? "host" : colors[op->split[most]];
}

static void draw_edge(const drawing *d, const node *from, const node *to, dts_text *out) {
    const double x = left_of(d, from) + BOX_WIDTH / 2.0, y = top_of(from) + BOX_HEIGHT;
    const double to_x = left_of(d, to) + BOX_WIDTH / 2.0, to_y = top_of(to);
    /* past other boxes on their left side */
    const double aside = to->rank > from->rank + 1 && fabs(to_x - x) < BOX_WIDTH ? BOX_WIDTH / 2.0 + 8 : 0;
    if (aside > 0) {
        const double side = fmax(fmin(x, to_x) - aside, 2);
        dts_text_printf(out,
                        "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fV%.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n",
                        x - 30, y, x - 30, y + GAP_Y, side, y, side, y + GAP_Y, to_y - GAP_Y, side, to_y, to_x - 30,
                        to_y - GAP_Y, to_x - 30, to_y);
    } else {
        dts_text_printf(out, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n", x, y, x, y + GAP_Y * 0.6, to_x,
                        to_y - GAP_Y * 0.6, to_x, to_y);
    }
}

static void draw_box(const drawing *d, size_t i, dts_text *out) {
    const dts_tensor_op *op = &d->w->problem->graph->ops[i];
    const dts_soap_cut *cut = dts_soap_cut_of(d->w, d->choices, i);
    const node *n = &d->nodes[i];
    const double x = left_of(d, n), y = top_of(n);
    char split[SHAPE], devices[CELL], line[2 * SHAPE];
    dts_soap_describe_cut(op, cut, split, sizeof split);
    dts_soap_describe_devices(&d->choices[i], cut, devices, sizeof devices);
    dts_text_printf(out, "<g><title>%s (%s): ", op->name, dts_tensor_op_type_names[op->type]);
    for (int k = 0; k < op->dims; k++) {
        dts_text_printf(out, "%s%" PRId64, k > 0 ? " x " : "", op->size[k]);
    }
    if (op->type != DTS_TENSOR_INPUT) {
        dts_text_printf(out, "; cut: %s; GPU %s", split, devices);
    }
    dts_text_printf(out,
                    "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"var(--%s)\" "
                    "fill-opacity=\".22\" stroke=\"var(--%s)\"/><text x=\"%.1f\" y=\"%.1f\" font-weight=\"600\">",
                    x, y, BOX_WIDTH, BOX_HEIGHT, color_of(op, cut), color_of(op, cut), x + 9, y + 18);
    snprintf(line, sizeof line, "%.*s%s", LETTERS - 6, op->name, strlen(op->name) > LETTERS - 6 ? "…" : "");
    dts_html_element("", line, "</text>", out);
    if (op->type != DTS_TENSOR_INPUT) {
        snprintf(line, sizeof line, "%s · GPU %s", split, devices);
        dts_text_printf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + 9, y + 36);
        dts_html_element("", line, "</text>", out);
    }
    if (n->layers > 0) {
        dts_text_printf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">%zu equal layers</text>", x + BOX_WIDTH + 6,
                        y + 18, n->layers);
    }
    dts_text_add(out, "</g>\n");
}

static void draw_graph(const drawing *d, dts_text *out) {
    const dts_tensor_graph *graph = d->w->problem->graph;
    const double width = 2 * MARGIN + (double)d->widest * (BOX_WIDTH + GAP_X) + BESIDE;
    const double height = 2 * MARGIN + (double)d->ranks * (BOX_HEIGHT + GAP_Y) - GAP_Y;
    dts_text_printf(
        out,
        "<div class=\"wide tall\"><svg class=\"timeline\" viewBox=\"0 0 "
        "%.0f %.0f\" style=\"min-width:0;width:%.0fpx;max-width:none\" role=\"img\" aria-label=\"the operators and "
        "how they are cut\">\n<g fill=\"none\" stroke=\"var(--faint)\">\n",
        width, height, width);
    for (size_t i = 0; i < graph->count; i++) {
        for (size_t k = 0; k < graph->ops[i].input_count && d->nodes[i].stands_for == i; k++) {
            const size_t from = d->nodes[graph->ops[i].inputs[k]].stands_for;
            if (from < i) {
                draw_edge(d, &d->nodes[from], &d->nodes[i], out);
            }
        }
    }
    dts_text_add(out, "</g>\n");
    for (size_t i = 0; i < graph->count; i++) {
        if (d->nodes[i].stands_for == i) {
            draw_box(d, i, out);
        }
    }
    dts_text_add(out,
                 "</svg></div>\n<p class=\"faint\">Cut mostly by "
                 "<i style=\"background:var(--forward)\"></i>samples "
                 "<i style=\"background:var(--recompute)\"></i>positions, rows or columns "
                 "<i style=\"background:var(--communication)\"></i>parameters "
                 "<i style=\"background:var(--host)\"></i>not at all. Point at a box for its shape.</p>\n");
}

static dts_status write_graph(const dts_soap_writing *w, dts_text *out) {
    const size_t count = w->problem->graph->count;
    drawing d = {.w = w, .choices = w->outcome->best.choices};
    d.nodes = calloc(count, sizeof *d.nodes);
    d.in_rank = calloc(count, sizeof *d.in_rank);
    const bool ok = d.nodes != NULL && d.in_rank != NULL;
    if (ok) {
        collapse(&d);
        lay_out(&d);
        dts_text_add(out, "<h2>The operators</h2>\n");
        draw_graph(&d, out);
    }
    free(d.nodes);
    free(d.in_rank);
    return ok ? DTS_OK : DTS_NOMEM;
}

/* ---- the timeline ---------------------------------------------------------------------------------------------------
 */

enum { PLOT = 1200, LABEL = 165, ROW = 20, ROWS_A_GPU = 2, GPUS_DRAWN = 16, GAP = 6, MOST_TICKS = 12 };

typedef struct bar {
    dts_soap_span span;
} bar;

/* The bars of one row, in the order of its stream. */
typedef struct row {
    bar *bars;
    size_t count, capacity;
} row;

typedef struct timeline {
    const dts_soap_writing *w;
    row rows[GPUS_DRAWN * ROWS_A_GPU]; /* kernels, and what the GPU's port sends */
    uint32_t gpus;
    dts_time end;
    bool failed;
} timeline;

static void watch(void *context, const dts_soap_span *span) {
    timeline *t = context;
    t->end = span->end > t->end ? span->end : t->end;
    for (size_t i = 0; i < span->stream_count; i++) {
        const uint32_t gpu = span->streams[i] / 3, which = span->streams[i] % 3; /* kernels, out, in */
        if (gpu >= t->gpus || which >= ROWS_A_GPU || span->end == span->start) {
            continue;
        }
        row *r = &t->rows[gpu * ROWS_A_GPU + which];
        bar *bars = dts_array_room(r->bars, &r->capacity, r->count + 1, sizeof *bars);
        t->failed = t->failed || bars == NULL;
        if (bars != NULL) {
            r->bars = bars;
            bars[r->count++].span = *span;
        }
    }
}

static const char *bar_color(const dts_soap_span *s) {
    return s->transfer || s->kind == DTS_SOAP_SYNC ? "communication"
           : s->kind == DTS_SOAP_FORWARD           ? "forward"
           : s->kind == DTS_SOAP_BACKWARD          ? "backward"
                                                   : "optimizer";
}

static const char *bar_name(const dts_soap_span *s) {
    return s->transfer                    ? (s->kind == DTS_SOAP_FORWARD ? "input of" : "gradient of")
           : s->kind == DTS_SOAP_SYNC     ? "all-reduce of"
           : s->kind == DTS_SOAP_FORWARD  ? "forward of"
           : s->kind == DTS_SOAP_BACKWARD ? "backward of"
                                          : "update of";
}

/* Bars of one colour that would be narrower than a unit are joined with those behind them. */
static void draw_row(const timeline *t, const row *r, double y, dts_text *out) {
    const double unit = (double)PLOT / (double)t->end;
    dts_text_printf(out, "<rect class=\"row\" x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>\n", LABEL, y, PLOT,
                    ROW - 4);
    for (size_t i = 0; i < r->count;) {
        const dts_soap_span *first = &r->bars[i].span;
        size_t behind = i + 1;
        dts_time end = first->end;
        while (behind < r->count && (double)(end - first->start) * unit < 1 &&
               bar_color(first) == bar_color(&r->bars[behind].span) &&
               (double)(r->bars[behind].span.start - end) * unit < 0.5) {
            end = r->bars[behind++].span.end;
        }
        char from[CELL], to[CELL];
        dts_text_printf(out, "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"var(--%s)\"><title>%s ",
                        LABEL + (double)first->start * unit, y, fmax((double)(end - first->start) * unit - 0.3, 0.4),
                        ROW - 4, bar_color(first), bar_name(first));
        dts_html_escaped(t->w->problem->graph->ops[first->op].name, out);
        if (behind > i + 1) {
            dts_text_printf(out, " and %zu more", behind - i - 1);
        }
        dts_text_printf(out, ", %s to %s</title></rect>\n", time_text(dts_time_to_s(first->start), from),
                        time_text(dts_time_to_s(end), to));
        i = behind;
    }
}

static void draw_timeline(const timeline *t, dts_text *out) {
    const double height = t->gpus * (ROWS_A_GPU * ROW + GAP) + 20;
    dts_text_printf(out,
                    "<h2>Simulated timeline</h2>\n<div class=\"wide\"><svg class=\"timeline long\" role=\"img\" "
                    "aria-label=\"what each GPU and its network do when\" viewBox=\"0 0 %d %.0f\">\n",
                    LABEL + PLOT + 40, height);
    const dts_axis axis = dts_axis_make(0, t->end, MOST_TICKS);
    for (int i = 0; i * axis.step * axis.unit_ps <= (double)t->end; i++) {
        const double x = LABEL + i * axis.step * axis.unit_ps / (double)t->end * PLOT;
        dts_text_printf(out,
                        "<path d=\"M%.1f 0V%.0f\" stroke=\"var(--line)\"/><text class=\"tick\" text-anchor=\"middle\" "
                        "x=\"%.1f\" y=\"%.0f\">%.10g %s</text>\n",
                        x, height - 18, x, height - 4, i * axis.step, axis.unit);
    }
    double y = 0;
    for (uint32_t gpu = 0; gpu < t->gpus; gpu++) {
        dts_text_printf(out, "<text x=\"0\" y=\"%.0f\" font-weight=\"600\">GPU %" PRIu32 "</text>", y + 13, gpu);
        for (int k = 0; k < ROWS_A_GPU; k++) {
            dts_text_printf(out, "<text x=\"78\" y=\"%.0f\">%s</text>\n", y + 13, k == 0 ? "kernels" : "network");
            draw_row(t, &t->rows[gpu * ROWS_A_GPU + (uint32_t)k], y, out);
            y += ROW;
        }
        y += GAP;
    }
    dts_text_add(out,
                 "</svg></div>\n<p class=\"faint\"><i style=\"background:var(--forward)\"></i>forward "
                 "<i style=\"background:var(--backward)\"></i>backward "
                 "<i style=\"background:var(--communication)\"></i>transfers and all-reduces "
                 "<i style=\"background:var(--optimizer)\"></i>update. Point at a bar to see whose it is.");
    if (t->w->problem->devices > t->gpus) {
        dts_text_printf(out, " The first %" PRIu32 " of %" PRIu32 " GPUs.", t->gpus, t->w->problem->devices);
    }
    dts_text_add(out, "</p>\n");
}

static dts_status write_timeline(const dts_soap_writing *w, dts_text *out, dts_diag *diag) {
    timeline *t = calloc(1, sizeof *t);
    dts_soap_timing *timing = NULL;
    if (t == NULL) {
        return DTS_NOMEM;
    }
    t->w = w;
    t->gpus = w->problem->devices < GPUS_DRAWN ? w->problem->devices : GPUS_DRAWN;
    dts_status status = dts_soap_timing_new(w->problem, &timing, diag);
    if (status == DTS_OK) {
        dts_soap_timing_watch(timing, watch, t);
        status = dts_soap_timing_set(timing, w->outcome->best.choices) && !t->failed ? DTS_OK : DTS_NOMEM;
    }
    if (status == DTS_OK && t->end > 0) {
        draw_timeline(t, out);
    }
    for (size_t i = 0; i < sizeof t->rows / sizeof t->rows[0]; i++) {
        free(t->rows[i].bars);
    }
    dts_soap_timing_free(timing);
    free(t);
    return status;
}

/* ---- how it was found -----------------------------------------------------------------------------------------------
 */

static void draw_chain(const dts_soap_outcome *o, size_t first, size_t behind, double last, const dts_plot *p,
                       dts_text *out) {
    const bool best = o->steps[first].chain == o->best_chain;
    dts_text_printf(out, "<path fill=\"none\" stroke=\"var(--%s)\" stroke-width=\"%s\" d=\"M%.1f %.1f",
                    best ? "backward" : "host", best ? "2.5" : "1",
                    dts_plot_x(p, fmax(1, (double)o->steps[first].proposal)),
                    dts_plot_y(p, o->steps[first].iteration_s));
    for (size_t i = first + 1; i < behind; i++) {
        dts_text_printf(out, "H%.1fV%.1f", dts_plot_x(p, fmax(1, (double)o->steps[i].proposal)),
                        dts_plot_y(p, o->steps[i].iteration_s));
    }
    dts_text_printf(out, "H%.1f\"><title>chain %" PRIu32 ": %zu times better</title></path>\n", dts_plot_x(p, last),
                    o->steps[first].chain + 1, behind - first - 1);
}

static void write_progress(const dts_soap_writing *w, dts_text *out) {
    const dts_soap_outcome *o = w->outcome;
    double last = 2, least_s = INFINITY, most_s = 0;
    for (size_t i = 0; i < o->step_count; i++) {
        least_s = fmin(least_s, o->steps[i].iteration_s);
        last = fmax(last, (double)o->steps[i].proposal);
    }
    last = fmax(last, w->options->chains > 0 ? (double)w->options->proposals : (double)o->proposals);
    const dts_soap_strategy *ranked[DTS_SOAP_STRATEGIES];
    const size_t count = dts_soap_rank(w->problem, o, ranked);
    for (size_t i = 0; i < count; i++) {
        most_s = i > 0 && i < 3 ? fmax(most_s, ranked[i]->iteration_s) : most_s;
    }
    if (o->step_count == 0 || !(least_s > 0)) {
        return;
    }
    most_s = fmax(1.5 * most_s, 1.2 * least_s);
    const dts_plot p = {.label = "the best iteration time of each chain over its proposals",
                        .x = {.low = 1,
                              .high = last,
                              .logarithmic = true,
                              .unit = 1,
                              .format = dts_format_count,
                              .title = "proposals of a chain"},
                        .y = {.low = least_s / 1.1,
                              .high = most_s,
                              .logarithmic = true,
                              .unit = 1,
                              .format = dts_format_time,
                              .title = "best so far"}};
    dts_text_add(out, "<h2>How it was found</h2>\n");
    dts_plot_begin(&p, out);
    for (size_t i = 1; i < count; i++) {
        if (ranked[i]->iteration_s < most_s) {
            dts_plot_limit_y(&p, ranked[i]->iteration_s, "bad", ranked[i]->name, out);
        }
    }
    for (size_t i = 0; i < o->step_count;) {
        size_t behind = i + 1;
        while (behind < o->step_count && o->steps[behind].chain == o->steps[i].chain) {
            behind++;
        }
        draw_chain(o, i, behind, last, &p, out);
        i = behind;
    }
    dts_plot_end(out);
    dts_text_add(out,
                 "<p class=\"faint\">A line for each chain, from where it began; the thick one found the best. What "
                 "began slower than the picture is high lies on its edge.</p>\n");
}

/* ---- the page -------------------------------------------------------------------------------------------------------
 */

static void write_head(const dts_soap_writing *w, dts_text *out) {
    const dts_soap_problem *p = w->problem;
    const dts_soap_strategy *best = &w->outcome->best;
    const dts_soap_strategy *data = &w->outcome->baselines[DTS_SOAP_DATA];
    char buffer[CELL];
    dts_html_begin("Every operator cut by itself", out);
    dts_html_element("<p class=\"faint\">", w->scenario, ": ", out);
    dts_html_escaped(p->graph->name, out);
    dts_text_printf(out, ", %zu operators, ", p->graph->count);
    dts_format_large(p->graph->parameters, out);
    dts_text_printf(out, " parameters, %" PRId64 " samples on %" PRIu32 " × ", p->graph->batch, p->devices);
    dts_html_escaped(p->cluster->gpu.name, out);
    dts_text_printf(out, "; 10<sup>%.0f</sup> strategies</p>\n<div class=\"facts\">\n", w->outcome->choices_log10);
    dts_text_printf(out, "<div><span class=\"faint\">Iteration time</span><b>%s</b></div>\n",
                    time_text(best->iteration_s, buffer));
    if (isfinite(data->iteration_s)) {
        dts_text_printf(out, "<div><span class=\"faint\">Against data parallelism</span><b>%.2f × as fast</b></div>\n",
                        data->iteration_s / best->iteration_s);
    }
    dts_text_printf(out, "<div><span class=\"faint\">Peak memory</span><b%s>%.2f of %.1f GiB</b></div>\n</div>\n",
                    best->fits ? "" : " class=\"bad\"", best->peak_B / DTS_GIB, w->outcome->capacity_B / DTS_GIB);
    if (!best->fits) {
        dts_text_add(out, "<p class=\"bad\">Nothing that was tried fits.</p>\n");
    }
}

/* The strategies as tables: what was found, the others behind a click. */
static void write_tables(const dts_soap_writing *w, dts_text *out) {
    const dts_soap_strategy *ranked[DTS_SOAP_STRATEGIES];
    const size_t count = dts_soap_rank(w->problem, w->outcome, ranked);
    dts_text_add(out, "<h2>Operators, cuts, GPUs</h2>\n");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            dts_html_element("<details><summary>", ranked[i]->name, "</summary>\n", out);
        }
        dts_grid *grid = dts_soap_strategy_grid(w, ranked[i]);
        dts_grid_html(grid, out);
        dts_grid_free(grid);
        dts_text_add(out, i > 0 ? "</details>\n" : "");
    }
}

dts_status dts_soap_write_html(const dts_soap_writing *w, dts_text *out, dts_diag *diag) {
    dts_text text = {0};
    write_head(w, out);
    write_ranking(w, out);
    dts_status status = write_graph(w, out);
    status = status == DTS_OK ? write_timeline(w, out, diag) : status;
    write_progress(w, out);
    write_tables(w, out);
    dts_soap_effort(w, &wide, &text);
    dts_html_lines(dts_text_string(&text), " class=\"faint\"", out);
    out->failed = out->failed || text.failed;
    dts_text_free(&text);
    dts_html_end(out);
    return status == DTS_OK && dts_text_status(out) == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}
