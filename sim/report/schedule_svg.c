/* Schedules as SVG for slides: 1600 units wide, one rounded box per operation with the microbatch's number.
 *
 * Colours are from the palette of Okabe and Ito (Color Universal Design, jfly.uni-koeln.de/color), which readers with
 * the common forms of colour blindness tell apart; even and odd chunks differ in lightness, so that a print in grey
 * still shows them. */
#include <math.h>
#include <stdio.h>

#include "report/schedule_report.h"
#include "report/svg.h"

enum {
    WIDTH = 1600,
    MARGIN = 24,
    LABEL = 110, /* "stage 12" */
    RIGHT = 190, /* idle and peak */
    ROW = 40,    /* height of a stage */
    ROW_GAP = 4,
    TITLE = 64, /* title and headings above the rows */
    AXIS = 76,  /* ticks and facts below the rows */
    LEGEND = 48,
    LETTER = 11, /* width of a digit at the size used in boxes, and at the small size for narrow ones */
    LETTER_SIZE = 19,
    SMALL_LETTER = 8,
    SMALL_SIZE = 13,
    STAGES_DRAWN = 64,
    TICKS_MOST = 14
};

typedef struct shade {
    const char *fill, *ink;
} shade;

static const shade shades[][2] = {
    /* even chunk, odd chunk */
    [DTS_OP_FORWARD] = {{"#0072B2", "#FFFFFF"}, {"#56B4E9", "#000000"}},
    [DTS_OP_BACKWARD_INPUT] = {{"#E69F00", "#000000"}, {"#F5D58C", "#000000"}},
    [DTS_OP_BACKWARD_WEIGHT] = {{"#009E73", "#FFFFFF"}, {"#8CCFBB", "#000000"}},
    [DTS_OP_BACKWARD] = {{"#E69F00", "#000000"}, {"#F5D58C", "#000000"}},
};

typedef struct picture {
    dts_text *out;
    double per_unit;
    bool kinds[4], odd;
} picture;

static void text_at(const picture *p, double x, double y, const char *anchor, int size, const char *weight,
                    const char *ink, const char *text) {
    const dts_svg_font font = {.size = size, .anchor = anchor, .weight = weight, .ink = ink};
    dts_svg_text(x, y, &font, text, p->out);
}

/* What an operation is, for readers who point at it. */
static void explain_operation(const picture *p, const dts_schedule_report *r, int rank, const dts_op *op, double start,
                              double end) {
    static const char *const names[] = {[DTS_OP_FORWARD] = "forward",
                                        [DTS_OP_BACKWARD_INPUT] = "backward, input gradient",
                                        [DTS_OP_BACKWARD_WEIGHT] = "weight gradient",
                                        [DTS_OP_BACKWARD] = "backward"};
    char chunk[32] = "";
    if (r->schedule.shape.chunks > 1) {
        snprintf(chunk, sizeof chunk, ", chunk %u", (unsigned)op->chunk);
    }
    char text[160];
    snprintf(text, sizeof text, "stage %d: %s of microbatch %u%s, %.6g to %.6g", rank, names[op->kind],
             (unsigned)op->microbatch, chunk, start, end);
    dts_svg_group(text, p->out);
}

static void draw_number(const picture *p, unsigned microbatch, const char *ink, double x, double width, double middle) {
    char number[16];
    int digits = snprintf(number, sizeof number, "%u", microbatch);
    if (width >= digits * LETTER + 4) {
        text_at(p, x + width / 2, middle + 7, "middle", LETTER_SIZE, "normal", ink, number);
    } else if (width >= digits * SMALL_LETTER + 2) {
        text_at(p, x + width / 2, middle + 5, "middle", SMALL_SIZE, "normal", ink, number);
    }
}

static void draw_operation(picture *p, const dts_schedule_report *r, int rank, size_t index, double top) {
    const dts_op *op = &r->schedule.ops[rank][index];
    double start;
    double end;
    dts_schedule_drawn_at(r, rank, index, &start, &end);
    double x = MARGIN + LABEL + start * p->per_unit;
    double width = (end - start) * p->per_unit;
    if (width <= 0) {
        return;
    }
    bool odd = op->chunk % 2 == 1;
    const shade *s = &shades[op->kind][odd];
    p->kinds[op->kind] = true;
    p->odd = p->odd || odd;
    double gap = width > 8 ? 1 : 0; /* a seam between neighbours where there is room */
    explain_operation(p, r, rank, op, start, end);
    dts_svg_box(x + gap / 2, top, width - gap, ROW - ROW_GAP, width > 16 ? 3 : 0, s->fill, p->out);
    draw_number(p, (unsigned)op->microbatch, s->ink, x, width, top + (ROW - ROW_GAP) / 2.0);
    dts_svg_group_end(p->out);
}

/* A part of the bubble. */
static void draw_idle(const picture *p, const dts_schedule_report *r, int rank, double start, double end, double top) {
    if ((end - start) * p->per_unit < 1) {
        return;
    }
    const char *why = start <= 0 ? "filling" : end >= r->ideal.makespan ? "draining" : "waiting for another stage";
    char text[128];
    snprintf(text, sizeof text, "stage %d: idle from %.6g to %.6g, %s", rank, start, end, why);
    dts_svg_group(text, p->out);
    dts_svg_box(MARGIN + LABEL + start * p->per_unit, top, (end - start) * p->per_unit, ROW - ROW_GAP, 0, DTS_SVG_IDLE,
                p->out);
    dts_svg_group_end(p->out);
}

static void draw_stage(picture *p, const dts_schedule_report *r, int rank, double top) {
    char text[48];
    snprintf(text, sizeof text, "stage %d", rank);
    text_at(p, MARGIN, top + 25, "start", 20, "normal", DTS_SVG_INK, text);
    double busy_until = 0;
    for (size_t i = 0; i < r->schedule.op_count[rank]; i++) {
        double start;
        double end;
        dts_schedule_drawn_at(r, rank, i, &start, &end);
        draw_idle(p, r, rank, busy_until, start, top);
        draw_operation(p, r, rank, i, top);
        busy_until = fmax(busy_until, end);
    }
    draw_idle(p, r, rank, busy_until, r->ideal.makespan, top);
    snprintf(text, sizeof text, "%.1f %%", 100 * r->ideal.idle[rank] / r->ideal.makespan);
    text_at(p, WIDTH - MARGIN - 80, top + 25, "end", 20, "normal", DTS_SVG_INK, text);
    snprintf(text, sizeof text, "%.4g", r->ideal.peak_activation[rank]);
    text_at(p, WIDTH - MARGIN, top + 25, "end", 20, "normal", DTS_SVG_INK, text);
}

static void draw_axis(const picture *p, double end, double step, double top) {
    dts_text_printf(p->out, "<path d=\"M%d %.6gH%.6g", MARGIN + LABEL, top, MARGIN + LABEL + end * p->per_unit);
    for (int n = 0; n * step <= end * (1 + 1e-9); n++) {
        dts_text_printf(p->out, "M%.6g %.6gv6", MARGIN + LABEL + n * step * p->per_unit, top);
    }
    dts_text_add(p->out, "\" stroke=\"" DTS_SVG_QUIET_LINE "\" fill=\"none\"/>\n");
    for (int n = 0; n * step <= end * (1 + 1e-9); n++) {
        char text[32];
        snprintf(text, sizeof text, "%.6g", n * step);
        text_at(p, MARGIN + LABEL + n * step * p->per_unit, top + 22, "middle", 16, "normal", DTS_SVG_QUIET, text);
    }
}

static void draw_title(const picture *p, const dts_schedule_report *r, double top) {
    dts_text line = {0};
    dts_schedule_title(r, &line);
    text_at(p, MARGIN, top + 26, "start", 26, "bold", DTS_SVG_INK, r->schedule.name);
    text_at(p, MARGIN, top + 52, "start", 18, "normal", DTS_SVG_QUIET, dts_text_string(&line));
    text_at(p, WIDTH - MARGIN - 80, top + 52, "end", 18, "normal", DTS_SVG_QUIET, "idle");
    text_at(p, WIDTH - MARGIN, top + 52, "end", 18, "normal", DTS_SVG_QUIET, "peak");
    p->out->failed = p->out->failed || line.failed;
    dts_text_free(&line);
}

static int stages_drawn(const dts_schedule_report *r) {
    return r->schedule.shape.stages < STAGES_DRAWN ? r->schedule.shape.stages : STAGES_DRAWN;
}

static double height_of(const dts_schedule_report *r) {
    return TITLE + stages_drawn(r) * ROW + AXIS;
}

static void draw_schedule(picture *p, const dts_schedule_report *r, double tick, double top) {
    const dts_schedule_shape *s = &r->schedule.shape;
    draw_title(p, r, top);
    double rows = top + TITLE;
    for (int rank = 0; rank < stages_drawn(r); rank++) {
        draw_stage(p, r, rank, rows + rank * ROW);
    }
    double below = rows + stages_drawn(r) * ROW;
    draw_axis(p, r->ideal.makespan, tick, below);
    double work = s->microbatches * (s->forward + s->backward_input + s->backward_weight);
    char text[160];
    snprintf(text, sizeof text, "makespan %.6g, bubble %.6g (%.1f %%)%s", r->ideal.makespan, r->ideal.makespan - work,
             100 * r->ideal.bubble_fraction, stages_drawn(r) < s->stages ? ", first stages only" : "");
    text_at(p, MARGIN + LABEL, below + 48, "start", 18, "normal", DTS_SVG_INK, text);
}

static double legend_box(const picture *p, double x, double y, const char *fill) {
    dts_svg_box(x, y, 22, 22, 3, fill, p->out);
    return x + 26;
}

static void draw_legend(const picture *p, double top) {
    const struct {
        dts_op_kind kind;
        const char *name;
        bool shown;
    } entries[] = {
        {DTS_OP_FORWARD, "forward", p->kinds[DTS_OP_FORWARD]},
        {DTS_OP_BACKWARD, "backward", p->kinds[DTS_OP_BACKWARD]},
        {DTS_OP_BACKWARD_INPUT, "backward, input gradient",
         p->kinds[DTS_OP_BACKWARD_INPUT] && !p->kinds[DTS_OP_BACKWARD]},
        {DTS_OP_BACKWARD_WEIGHT, "weight gradient", p->kinds[DTS_OP_BACKWARD_WEIGHT]},
    };
    double x = MARGIN + LABEL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (entries[i].shown) {
            x = legend_box(p, x, top, shades[entries[i].kind][0].fill);
            x = p->odd ? legend_box(p, x, top, shades[entries[i].kind][1].fill) : x;
            text_at(p, x + 4, top + 17, "start", 18, "normal", DTS_SVG_INK, entries[i].name);
            x += 50 + 9 * (double)snprintf(NULL, 0, "%s", entries[i].name);
        }
    }
    x = legend_box(p, x, top, DTS_SVG_IDLE);
    text_at(
        p, x + 4, top + 17, "start", 18, "normal", DTS_SVG_INK,
        p->odd ? "idle; lighter: odd chunks, or the second direction; digits: microbatch" : "idle; digits: microbatch");
}

dts_status dts_schedule_svg(const dts_schedule_report *reports, size_t count, dts_text *out) {
    double height = MARGIN + LEGEND;
    double longest = 0;
    for (size_t i = 0; i < count; i++) {
        height += height_of(&reports[i]);
        longest = fmax(longest, reports[i].ideal.makespan);
    }
    picture p = {.out = out, .per_unit = (WIDTH - 2 * MARGIN - LABEL - RIGHT) / longest};
    dts_svg_begin(WIDTH, height, out);
    double top = MARGIN;
    for (size_t i = 0; i < count; i++) {
        draw_schedule(&p, &reports[i], dts_svg_step(longest, TICKS_MOST), top);
        top += height_of(&reports[i]);
    }
    draw_legend(&p, top);
    dts_svg_end(out);
    return dts_text_status(out);
}
