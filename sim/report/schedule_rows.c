/* Each column of a row is an equal part of time and shows the operation that takes most of it, or why the stage waits
 * when it waits for more than half of it; blanks after the end of a schedule that is shorter than its neighbours. The
 * microbatch's number stands at the beginning of an operation that has room for it. Without colour the kinds differ by
 * their pattern, even and odd chunks by its height (in ASCII: by upper and lower case). */
#include "report/schedule_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_LEAST = 8 };

typedef struct sign {
    const char *even, *odd; /* by parity of the chunk */
    char ascii_even, ascii_odd;
    dts_paint paint;
} sign;

static const sign signs[] = {
    [DTS_OP_FORWARD] = {"█", "▆", 'F', 'f', DTS_PAINT_FORWARD},
    [DTS_OP_BACKWARD_INPUT] = {"▒", "░", 'B', 'b', DTS_PAINT_BACKWARD},
    [DTS_OP_BACKWARD_WEIGHT] = {"▓", "▓", 'W', 'w', DTS_PAINT_BACKWARD_WEIGHT},
    [DTS_OP_BACKWARD] = {"▒", "░", 'B', 'b', DTS_PAINT_BACKWARD},
};

typedef struct idle_sign {
    const char *unicode, *ascii, *name;
} idle_sign;

static const idle_sign idle_signs[DTS_IDLE_CAUSES] = {
    [DTS_IDLE_FILL] = {"·", ".", "idle: filling, draining"},
    [DTS_IDLE_DRAIN] = {"·", ".", "idle: filling, draining"},
    [DTS_IDLE_STAGE] = {"-", "-", "waiting for a stage"},
    [DTS_IDLE_HOP] = {"~", "~", "for a hop"},
};

typedef struct cell {
    float best;                  /* columns that the operation shown takes of this one */
    float busy;                  /* columns that all operations take of this one */
    float idle[DTS_IDLE_CAUSES]; /* columns by cause */
    uint8_t kind;                /* dts_op_kind */
    bool odd;                    /* chunk */
    char digit;                  /* of the microbatch's number, or 0 */
} cell;

void dts_schedule_drawn_at(const dts_schedule_report *report, int rank, size_t index, double *start, double *end) {
    const dts_schedule *schedule = &report->schedule;
    const dts_schedule_shape *shape = &schedule->shape;
    const dts_op *ops = schedule->ops[rank];
    size_t first = index;
    while (first > 0 && ops[first - 1].fused_next) {
        first--;
    }
    *start = report->ideal.start[rank][index];
    *end = report->ideal.end[rank][index];
    if (dts_schedule_block_size(schedule, rank, first) == 1) {
        return;
    }
    for (; first < index; first++) {
        *start += dts_op_cost(schedule, &ops[first], shape->forward, shape->backward_input, shape->backward_weight);
    }
    *end = *start + dts_op_cost(schedule, &ops[index], shape->forward, shape->backward_input, shape->backward_weight);
}

/* Greatest common divisor of times that are multiples of something not much smaller. */
static double common_step(double a, double b, double tolerance) {
    while (b > tolerance) {
        double rest = fmod(a, b);
        if (b - rest < tolerance) { /* fmod of a rounded multiple */
            rest = 0;
        }
        a = b;
        b = rest;
    }
    return a;
}

/* The largest step of which every border of every operation is a multiple; 0 when it is below least. */
static double smallest_step(const dts_schedule_report *reports, size_t count, double longest, double least) {
    double step = 0;
    double tolerance = longest * 1e-7;
    for (size_t i = 0; i < count; i++) {
        for (int rank = 0; rank < reports[i].schedule.shape.stages; rank++) {
            for (size_t j = 0; j < reports[i].schedule.op_count[rank]; j++) {
                double start;
                double end;
                dts_schedule_drawn_at(&reports[i], rank, j, &start, &end);
                step = common_step(start, step, tolerance);
                step = common_step(end, step, tolerance);
                if (step < least) {
                    return 0;
                }
            }
        }
    }
    return step;
}

dts_schedule_scale dts_schedule_scale_for(const dts_schedule_report *reports, size_t count, size_t columns) {
    double longest = 0;
    for (size_t i = 0; i < count; i++) {
        longest = fmax(longest, reports[i].ideal.makespan);
    }
    double step = smallest_step(reports, count, longest, longest / (double)columns * (1 - 1e-9));
    dts_schedule_scale scale = {.per_unit = (double)columns / longest, .columns = columns, .exact = step > 0};
    if (scale.exact) {
        double per_step = floor((double)columns * step / longest + 1e-6);
        scale.per_unit = per_step / step;
        scale.columns = (size_t)llround(longest * scale.per_unit);
    }
    scale.band = scale.columns;
    return scale;
}

static double shortest_operation(const dts_schedule_report *report) {
    double shortest = INFINITY;
    for (int rank = 0; rank < report->schedule.shape.stages; rank++) {
        for (size_t i = 0; i < report->schedule.op_count[rank]; i++) {
            double start;
            double end;
            dts_schedule_drawn_at(report, rank, i, &start, &end);
            shortest = end > start ? fmin(shortest, end - start) : shortest;
        }
    }
    return shortest;
}

dts_schedule_scale dts_schedule_scale_in_bands(const dts_schedule_report *report, size_t columns, size_t most) {
    const dts_schedule_scale whole = dts_schedule_scale_for(report, 1, columns);
    const double makespan = report->ideal.makespan;
    const double shortest = shortest_operation(report);
    const int digits = snprintf(NULL, 0, "%d", report->schedule.shape.microbatches - 1);
    if (shortest * whole.per_unit >= digits + 1 - 1e-6) {
        return whole;
    }
    const double step = smallest_step(report, 1, makespan, makespan / (double)(columns * most));
    const size_t per_step = step > 0 ? (size_t)ceil((digits + 1) * step / shortest - 1e-6) : 0;
    if (per_step == 0 || per_step > columns) {
        return whole;
    }
    const size_t total = (size_t)llround(makespan / step) * per_step, room = columns - columns % per_step;
    const size_t bands = (total + room - 1) / room, steps = total / per_step;
    if (bands > most) {
        return whole;
    }
    return (dts_schedule_scale){.per_unit = (double)per_step / step,
                                .columns = total,
                                .exact = true,
                                .band = (steps + bands - 1) / bands * per_step};
}

size_t dts_schedule_band(const dts_schedule_scale *scale, size_t first) {
    return scale->columns - first < scale->band ? scale->columns - first : scale->band;
}

/* Calls see for every idle interval of a rank, in order of time. An input that a stage waits for within its order
 * always comes over a hop: what the rank itself hands on is there when the operation before ends. */
static void each_idle(const dts_schedule_report *r, int rank,
                      void (*see)(void *context, dts_idle_cause cause, double start, double end), void *context) {
    size_t count = r->schedule.op_count[rank];
    const double *start = r->ideal.start[rank];
    const double *end = r->ideal.end[rank];
    double latency = r->schedule.shape.latency;
    see(context, DTS_IDLE_FILL, 0, start[0]);
    for (size_t i = 1; i < count; i++) {
        if (start[i] > end[i - 1]) {
            double sent = fmax(end[i - 1], start[i] - latency);
            see(context, DTS_IDLE_STAGE, end[i - 1], sent);
            see(context, DTS_IDLE_HOP, sent, start[i]);
        }
    }
    see(context, DTS_IDLE_DRAIN, end[count - 1], r->ideal.makespan);
}

static void add_up(void *context, dts_idle_cause cause, double start, double end) {
    double *idle = context;
    idle[cause] += end - start;
}

void dts_schedule_idle(const dts_schedule_report *report, int rank, double idle[DTS_IDLE_CAUSES]) {
    memset(idle, 0, DTS_IDLE_CAUSES * sizeof *idle);
    each_idle(report, rank, add_up, idle);
}

typedef struct canvas {
    cell *cells;
    const dts_schedule_scale *scale;
} canvas;

/* Columns that [start, end) crosses: calls take with the part of each. */
static void cross(const canvas *c, double start, double end, void (*take)(cell *at, float part, const void *what),
                  const void *what) {
    double from = start * c->scale->per_unit;
    double to = fmin(end * c->scale->per_unit, (double)c->scale->columns);
    for (size_t i = (size_t)from; i < c->scale->columns && (double)i < to; i++) {
        take(&c->cells[i], (float)(fmin(to, (double)i + 1) - fmax(from, (double)i)), what);
    }
}

static void take_operation(cell *at, float part, const void *what) {
    const dts_op *op = what;
    at->busy += part;
    if (part > at->best) {
        at->best = part;
        at->kind = op->kind;
        at->odd = op->chunk % 2 == 1;
    }
}

static void take_idle(cell *at, float part, const void *what) {
    at->idle[*(const dts_idle_cause *)what] += part;
}

static void cover_idle(void *context, dts_idle_cause cause, double start, double end) {
    cross(context, start, end, take_idle, &cause);
}

static void write_number(cell *cells, const dts_schedule_scale *scale, const dts_op *op, double start, double end,
                         dts_schedule_seen *seen) {
    size_t first = (size_t)llround(start * scale->per_unit);
    size_t behind = (size_t)llround(end * scale->per_unit);
    if (behind > scale->columns || behind < first + 2) {
        return;
    }
    char number[16];
    size_t digits = (size_t)snprintf(number, sizeof number, "%u", (unsigned)op->microbatch);
    if (behind - first <= digits) {
        seen->missing = true;
        return;
    }
    for (size_t i = 0; i < digits; i++) {
        cells[first + i].digit = number[i];
    }
    seen->digits = true;
}

static void note(dts_layout layout, const dts_op *op, dts_schedule_seen *seen) {
    bool odd = op->chunk % 2 == 1;
    seen->backward_input = seen->backward_input || op->kind == DTS_OP_BACKWARD_INPUT;
    seen->backward_weight = seen->backward_weight || op->kind == DTS_OP_BACKWARD_WEIGHT;
    seen->backward = seen->backward || op->kind == DTS_OP_BACKWARD;
    seen->odd_chunk = seen->odd_chunk || (odd && layout != DTS_LAYOUT_BIDIR);
    seen->upwards = seen->upwards || (odd && layout == DTS_LAYOUT_BIDIR);
    seen->block = seen->block || op->fused_next;
}

static bool is_idle(const cell *c) {
    return c->busy < 0.5F;
}

static dts_paint paint_of(const cell *c) {
    return is_idle(c) ? DTS_PAINT_FAINT : signs[c->kind].paint;
}

static void draw_idle(const cell *c, const dts_style *style, dts_schedule_seen *seen, dts_text *out) {
    int most = 0;
    for (int cause = 1; cause < DTS_IDLE_CAUSES; cause++) {
        most = c->idle[cause] > c->idle[most] ? cause : most;
    }
    if (c->idle[most] <= 0) { /* after the schedule's end */
        dts_text_add(out, " ");
        return;
    }
    seen->idle[most] = true;
    dts_text_add(out, style->unicode ? idle_signs[most].unicode : idle_signs[most].ascii);
}

static void draw_busy(const cell *c, const dts_style *style, dts_text *out) {
    const sign *s = &signs[c->kind];
    if (c->digit != 0) {
        dts_text_add_bytes(out, &c->digit, 1);
    } else if (style->unicode) {
        dts_text_add(out, c->odd ? s->odd : s->even);
    } else {
        dts_text_add_bytes(out, c->odd ? &s->ascii_odd : &s->ascii_even, 1);
    }
}

/* Cells of one colour share its escape sequence. */
static void draw_cells(const canvas *c, size_t first, const dts_style *style, dts_schedule_seen *seen, dts_text *out) {
    const cell *cells = c->cells + first;
    const size_t count = dts_schedule_band(c->scale, first);
    for (size_t i = 0; i < count; i++) {
        dts_paint paint = paint_of(&cells[i]);
        if (i == 0 || paint != paint_of(&cells[i - 1])) {
            dts_style_begin(style, paint, out);
        }
        if (is_idle(&cells[i])) {
            draw_idle(&cells[i], style, seen, out);
        } else {
            draw_busy(&cells[i], style, out);
        }
        if (i + 1 == count || paint != paint_of(&cells[i + 1])) {
            dts_style_end(style, paint, out);
        }
    }
}

dts_status dts_schedule_row(const dts_schedule_report *report, int rank, const dts_schedule_scale *scale, size_t first,
                            const dts_style *style, dts_schedule_seen *seen, dts_text *out) {
    canvas c = {.cells = calloc(scale->columns, sizeof(cell)), .scale = scale};
    if (c.cells == NULL) {
        return DTS_NOMEM;
    }
    for (size_t i = 0; i < report->schedule.op_count[rank]; i++) {
        const dts_op *op = &report->schedule.ops[rank][i];
        double start;
        double end;
        dts_schedule_drawn_at(report, rank, i, &start, &end);
        cross(&c, start, end, take_operation, op);
        write_number(c.cells, scale, op, start, end, seen);
        note(report->schedule.layout, op, seen);
    }
    each_idle(report, rank, cover_idle, &c);
    draw_cells(&c, first, style, seen, out);
    free(c.cells);
    return DTS_OK;
}

/* Smallest of 1, 2, 5 · 10^n units that is at least TICK_LEAST columns wide. */
static double tick_step(double per_unit) {
    double least = TICK_LEAST / per_unit;
    double power = pow(10, floor(log10(least)));
    double scaled = least / power;
    return power * (scaled <= 1 ? 1 : scaled <= 2 ? 2 : scaled <= 5 ? 5 : 10);
}

void dts_schedule_axis(const dts_schedule_scale *scale, size_t first, double end, const dts_style *style, size_t indent,
                       dts_text *out) {
    dts_text line = {0};
    dts_text labels = {0};
    double step = tick_step(scale->per_unit);
    const size_t columns = dts_schedule_band(scale, first);
    for (size_t n = 0; (double)n * step <= end * (1 + 1e-9); n++) {
        size_t column = (size_t)llround((double)n * step * scale->per_unit);
        if (column < first || column > first + columns - (first + columns < scale->columns)) {
            continue; /* at a seam a tick belongs to the band that it begins */
        }
        column -= first;
        size_t drawn = dts_style_columns(dts_text_string(&line));
        dts_text_add_repeated(&line, style->unicode ? "─" : "-", column - drawn);
        dts_text_add(&line, style->unicode ? "┴" : "+");
        dts_text_add_repeated(&labels, " ", column - labels.length);
        dts_text_printf(&labels, "%.6g", (double)n * step);
    }
    size_t drawn = dts_style_columns(dts_text_string(&line));
    dts_text_add_repeated(&line, style->unicode ? "─" : "-", columns > drawn ? columns - drawn : 0);
    const dts_text *both[] = {&line, &labels};
    for (size_t i = 0; i < 2; i++) {
        dts_text_add_repeated(out, " ", indent);
        dts_style_add(style, DTS_PAINT_FAINT, dts_text_string(both[i]), out);
        dts_text_add(out, "\n");
        out->failed = out->failed || both[i]->failed;
    }
    dts_text_free(&line);
    dts_text_free(&labels);
}

/* Adds one entry of the legend, on a new line when it would not fit. */
static void legend_entry(const dts_style *style, dts_paint paint, const char *sign_text, const char *name,
                         size_t *column, dts_text *out) {
    size_t length = dts_style_columns(sign_text) + 1 + strlen(name);
    if (*column > 0) {
        bool fits = *column + 3 + length <= (size_t)style->width;
        dts_text_add(out, fits ? "   " : "\n");
        *column = fits ? *column + 3 : 0;
    }
    *column += length;
    dts_style_add(style, paint, sign_text, out);
    dts_text_printf(out, " %s", name);
}

static void legend_kind(const dts_style *style, dts_op_kind kind, bool odd, const char *name, size_t *column,
                        dts_text *out) {
    const sign *s = &signs[kind];
    char text[32];
    if (style->unicode) {
        snprintf(text, sizeof text, "%s%s%s", s->even, odd ? " " : "", odd ? s->odd : "");
    } else {
        snprintf(text, sizeof text, odd ? "%c %c" : "%c", s->ascii_even, s->ascii_odd);
    }
    legend_entry(style, s->paint, text, name, column, out);
}

static void legend_notes(const dts_schedule_seen *seen, const dts_style *style, dts_text *out) {
    dts_text line = {0};
    if (seen->digits) {
        dts_text_printf(&line, "digits: microbatch%s; ",
                        seen->missing ? ", where its number has room (a wider --width, or --format svg)" : "");
    }
    if (seen->odd_chunk || seen->upwards) {
        const char *what = !seen->upwards    ? "even and odd chunks"
                           : seen->odd_chunk ? "even and odd chunks, or the two directions"
                                             : "the two directions";
        dts_text_printf(&line, "two signs: %s; ", what);
    }
    if (seen->block) {
        dts_text_add(&line, "blocks of a forward and a backward are drawn one after the other; ");
    }
    if (seen->bands) {
        dts_text_add(&line, "time goes on in the rows below; ");
    }
    if (line.length > 0 && !line.failed) {
        line.data[line.length - 2] = '\0'; /* the last separator */
        dts_style_wrap(style, line.data, 0, out);
    }
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

void dts_schedule_legend(const dts_schedule_seen *seen, const dts_style *style, dts_text *out) {
    bool odd = seen->odd_chunk || seen->upwards;
    size_t column = 0;
    legend_kind(style, DTS_OP_FORWARD, odd, "forward", &column, out);
    bool input_only = seen->backward_input && !seen->backward;
    legend_kind(style, DTS_OP_BACKWARD, odd, input_only ? "backward, input gradient" : "backward", &column, out);
    if (seen->backward_weight) {
        legend_kind(style, DTS_OP_BACKWARD_WEIGHT, odd && !style->unicode, "weight gradient", &column, out);
    }
    bool edges_shown = false;
    for (int cause = 0; cause < DTS_IDLE_CAUSES; cause++) {
        bool edge = cause == DTS_IDLE_FILL || cause == DTS_IDLE_DRAIN;
        if (seen->idle[cause] && !(edge && edges_shown)) {
            const idle_sign *s = &idle_signs[cause];
            legend_entry(style, DTS_PAINT_FAINT, style->unicode ? s->unicode : s->ascii, s->name, &column, out);
        }
        edges_shown = edges_shown || (edge && seen->idle[cause]);
    }
    dts_text_add(out, "\n");
    legend_notes(seen, style, out);
}
