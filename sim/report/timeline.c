/* The executed timeline in a terminal. Each row is one stream of one device, each column an equal part of the time that
 * is drawn:
 *   - a column shows the kind of work that took most of it: a block when at least half of it was busy, a letter or a
 *     thin line when less was, a dot when nothing ran;
 *   - an operation too short for its column is still seen (as "partly busy");
 *   - the microbatch's number stands at the start of its forward and backward when there is room for it;
 *   - the percentage at the end is the busy share of the row, and the memory row shows the highest allocation within
 *     each column against the GPU's capacity. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/format.h"
#include "report/glyphs.h"
#include "report/report.h"
#include "report/timeline_cells.h"

enum {
    LABEL_WIDEST = 16,
    LABEL_WIDEST_IN_WIDE = 22,
    WIDE = 100,
    RIGHT_COLUMNS = 9,
    PLOT_NARROWEST = 8,
    TICK_COLUMNS = 10,
    DEVICES_DRAWN = 64
};

typedef struct canvas {
    const dts_result *result;
    const dts_style *style;
    dts_text *out;
    dts_cells cells;
    size_t device_columns, stream_columns;
    bool used[DTS_SPAN_KIND_COUNT];
    bool partly_used, digits_used, memory_used;
    dts_paint brush; /* the colour that is switched on */
} canvas;

/* Adds a character of a row; a run of one colour is written as one. */
static void put(canvas *c, dts_paint paint, const char *sign) {
    if (paint != c->brush) {
        dts_style_end(c->style, c->brush, c->out);
        dts_style_begin(c->style, paint, c->out);
        c->brush = paint;
    }
    dts_text_add(c->out, sign);
}

static void draw_cell(canvas *c, size_t index) {
    dts_cell_view view = dts_cells_view(&c->cells, index);
    if (view.idle) {
        put(c, DTS_PAINT_FAINT, c->style->unicode ? "·" : ".");
        return;
    }
    const dts_glyph *glyph = &dts_glyphs[view.kind];
    c->used[view.kind] = true;
    if (view.digit != 0) {
        c->digits_used = true;
        put(c, glyph->paint, (const char[]){view.digit, '\0'});
        return;
    }
    c->partly_used = c->partly_used || !view.full;
    const char *sign = c->style->unicode ? (view.full ? glyph->busy : glyph->partly)
                                         : (view.full ? glyph->ascii_busy : glyph->ascii_partly);
    put(c, glyph->paint, sign);
}

static void draw_labels(canvas *c, const char *device, const char *stream) {
    dts_paint paint = device[0] != '\0' ? DTS_PAINT_STRONG : DTS_PAINT_NONE;
    dts_style_begin(c->style, paint, c->out);
    dts_style_pad(c->style, device, c->device_columns, c->out);
    dts_style_end(c->style, paint, c->out);
    dts_text_add(c->out, " ");
    dts_style_pad(c->style, stream, c->stream_columns, c->out);
    dts_text_add(c->out, " ");
}

/* One stream: spans[0…count) are all of it. */
static void draw_stream(canvas *c, const dts_span *spans, size_t count, const char *device) {
    double busy_ps = dts_cells_fill(&c->cells, spans, count, c->result->microbatches > 1);
    draw_labels(c, device, c->result->streams[spans[0].stream].name);
    for (size_t i = 0; i < c->cells.columns; i++) {
        draw_cell(c, i);
    }
    put(c, DTS_PAINT_NONE, "");
    dts_text_printf(c->out, " %*.0f %%\n", RIGHT_COLUMNS - 3, 100 * busy_ps / (double)(c->cells.to - c->cells.from));
}

static void draw_memory(canvas *c, uint32_t device) {
    static const char *const levels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    if (!dts_cells_memory(&c->cells, c->result, device)) {
        return;
    }
    double peak = 0;
    for (size_t i = 0; i < c->cells.columns; i++) {
        peak = c->cells.highs[i] > peak ? c->cells.highs[i] : peak;
    }
    double scale = c->result->capacity_gib > 0 ? c->result->capacity_gib * DTS_GIB : peak;
    c->memory_used = true;
    draw_labels(c, "", "memory");
    for (size_t i = 0; i < c->cells.columns; i++) {
        double share = scale > 0 ? c->cells.highs[i] / scale : 0;
        share = share > 1 ? 1 : share;
        char digit[2] = {(char)('0' + (int)(9 * share + 0.5)), '\0'};
        put(c, DTS_PAINT_FAINT, c->style->unicode ? levels[(size_t)ceil(8 * share)] : digit);
    }
    put(c, DTS_PAINT_NONE, "");
    char buffer[32];
    dts_text_printf(c->out, " %*s\n", RIGHT_COLUMNS - 1, dts_formatted(dts_format_bytes, peak, buffer, sizeof buffer));
}

/* Ticks with their times below, in one unit for the whole axis. */
static void draw_axis(canvas *c) {
    const dts_axis axis = dts_axis_make(c->cells.from, c->cells.to, (double)c->cells.columns / TICK_COLUMNS);
    double per_unit = axis.unit_ps / c->cells.column_ps;
    double start = (double)c->cells.from / axis.unit_ps;
    dts_text ticks = {0};
    dts_text labels = {0};
    double first = ceil(start / axis.step - 1e-9) + 0.0; /* no negative zero */
    for (double n = first;; n++) {
        double exact = (n * axis.step - start) * per_unit;
        size_t column = exact < 0 ? 0 : (size_t)(exact + 1e-6);
        char label[32];
        snprintf(label, sizeof label, "%.10g %s", n * axis.step, n <= first ? axis.unit : "");
        size_t length = strlen(label);
        length -= label[length - 1] == ' ' ? 1 : 0;
        if (column + length > c->cells.columns) {
            break;
        }
        size_t at = dts_style_columns(dts_text_string(&ticks));
        dts_text_add_repeated(&ticks, c->style->unicode ? "─" : "-", column - at);
        dts_text_add(&ticks, c->style->unicode ? "┴" : "+");
        dts_text_add_repeated(&labels, " ", column - labels.length);
        dts_text_add_bytes(&labels, label, length);
    }
    size_t drawn = dts_style_columns(dts_text_string(&ticks));
    dts_text_add_repeated(&ticks, c->style->unicode ? "─" : "-", c->cells.columns - drawn);
    size_t indent = c->device_columns + c->stream_columns + 2;
    const char *lines[] = {dts_text_string(&ticks), dts_text_string(&labels)};
    for (size_t i = 0; i < 2; i++) {
        dts_text_add_repeated(c->out, " ", indent);
        dts_style_add(c->style, DTS_PAINT_FAINT, lines[i], c->out);
        dts_text_add(c->out, "\n");
    }
    c->out->failed = c->out->failed || ticks.failed || labels.failed;
    dts_text_free(&ticks);
    dts_text_free(&labels);
}

/* Adds one entry of the legend, on a new line when it would not fit. */
static void add_legend(const canvas *c, dts_paint paint, const char *sign, const char *name, size_t *column) {
    size_t length = dts_style_columns(sign) + 1 + strlen(name);
    if (*column > 0 && *column + 3 + length > (size_t)c->style->width) {
        dts_text_add(c->out, "\n");
        *column = 0;
    }
    dts_text_add(c->out, *column > 0 ? "   " : "");
    *column += length + (*column > 0 ? 3 : 0);
    dts_style_add(c->style, paint, sign, c->out);
    dts_text_printf(c->out, " %s", name);
}

static void draw_legend(const canvas *c) {
    bool unicode = c->style->unicode;
    size_t column = 0;
    dts_text_add(c->out, "\n");
    for (int k = 0; k < DTS_SPAN_KIND_COUNT; k++) {
        if (c->used[k]) {
            const dts_glyph *glyph = &dts_glyphs[k];
            add_legend(c, glyph->paint, unicode ? glyph->busy : glyph->ascii_busy, glyph->name, &column);
        }
    }
    add_legend(c, DTS_PAINT_FAINT, unicode ? "·" : ".", "idle", &column);
    if (c->digits_used) {
        add_legend(c, DTS_PAINT_NONE, "0 1 2", "microbatch", &column);
    }
    if (c->partly_used) {
        add_legend(c, DTS_PAINT_NONE, unicode ? "f b ╍ ╌" : "f b : '", "busy less than half a column", &column);
    }
    if (c->memory_used) {
        add_legend(c, DTS_PAINT_NONE, unicode ? "▁▄█" : "0-9", "memory, of what the GPU has", &column);
    }
    dts_text_add(c->out, "\n");
}

static void draw_title(const canvas *c) {
    static const char title[] = "Timeline  ";
    dts_text extent = {0};
    dts_format_time(dts_time_to_s(c->cells.from), &extent);
    dts_text_add(&extent, " to ");
    dts_format_time(dts_time_to_s(c->cells.to), &extent);
    dts_text_add(&extent, ", one column is ");
    dts_format_time(c->cells.column_ps / DTS_PS_PER_S, &extent);
    dts_style_add(c->style, DTS_PAINT_STRONG, title, c->out);
    dts_style_wrap(c->style, dts_text_string(&extent), sizeof title - 1, c->out);
    dts_text_add(c->out, "\n");
    c->out->failed = c->out->failed || extent.failed;
    dts_text_free(&extent);
}

/* Widths of the label columns, from the longest names; returns what is left for the plot. */
static size_t measure(canvas *c) {
    const dts_result *r = c->result;
    size_t device = 0;
    size_t stream = strlen("memory");
    for (size_t i = 0; i < r->device_count; i++) {
        size_t length = dts_style_columns(r->devices[i]);
        device = length > device ? length : device;
    }
    for (size_t i = 0; i < r->stream_count; i++) {
        size_t length = dts_style_columns(r->streams[i].name);
        stream = length > stream ? length : stream;
    }
    size_t widest = c->style->width < WIDE ? LABEL_WIDEST : LABEL_WIDEST_IN_WIDE;
    c->device_columns = device < widest ? device : widest;
    c->stream_columns = stream < widest ? stream : widest;
    size_t around = c->device_columns + c->stream_columns + 2 + RIGHT_COLUMNS;
    size_t width = c->style->width > 0 ? (size_t)c->style->width : 0;
    return width > around + PLOT_NARROWEST ? width - around : PLOT_NARROWEST;
}

/* Rows of all devices; spans are ordered by device, stream and start. */
static void draw_rows(canvas *c) {
    const dts_result *r = c->result;
    size_t i = 0;
    while (i < r->span_count && r->spans[i].device < DEVICES_DRAWN) {
        uint32_t device = r->spans[i].device;
        bool first = true;
        while (i < r->span_count && r->spans[i].device == device) {
            size_t behind = dts_stream_end(r, i);
            draw_stream(c, &r->spans[i], behind - i, first ? r->devices[device] : "");
            first = false;
            i = behind;
        }
        draw_memory(c, device);
    }
    if (r->device_count > DEVICES_DRAWN) {
        dts_text_printf(c->out, "(%zu more devices; a trace file shows all)\n", r->device_count - DEVICES_DRAWN);
    }
}

dts_status dts_report_timeline(const dts_result *result, const dts_timeline_options *options, dts_text *out,
                               dts_diag *diag) {
    dts_time end = dts_timeline_end(result);
    dts_time from = dts_time_from_s(options->from_s);
    dts_time to = options->to_s > 0 && dts_time_from_s(options->to_s) < end ? dts_time_from_s(options->to_s) : end;
    if (to <= from) {
        char buffer[32];
        dts_formatted(dts_format_time, dts_time_to_s(end), buffer, sizeof buffer);
        return dts_diag_error(diag, NULL, NULL, "--from lies before --to, and both inside the iteration",
                              "the asked part of the timeline is empty: the iteration takes %s", buffer);
    }
    canvas c = {.result = result, .style = &options->style, .out = out};
    size_t columns = measure(&c);
    bool good = dts_cells_make(&c.cells, from, to, columns);
    if (good) {
        draw_title(&c);
        draw_rows(&c);
        draw_axis(&c);
        draw_legend(&c);
    }
    dts_cells_free(&c.cells);
    return good && dts_text_status(out) == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}
