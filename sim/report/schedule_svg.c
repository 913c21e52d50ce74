/* Schedules as SVG for slides: 1600 units wide, one rounded box per operation with the microbatch's number.
 *
 * Colours are from the palette of Okabe and Ito (Color Universal Design, jfly.uni-koeln.de/color), which readers with
 * the common forms of colour blindness tell apart; even and odd chunks differ in lightness, so that a print in grey
 * still shows them. */
#include <math.h>
#include <stdio.h>

#include "report/schedule_links.h"
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
    TICKS_MOST = 14,
    NAME = 96 /* bytes */
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
    bool linked;
    size_t number; /* of the schedule that is drawn */
    dts_schedule_links links;
    bool kinds[4], odd;
} picture;

static void text_at(const picture *p, double x, double y, const char *anchor, int size, const char *weight,
                    const char *ink, const char *text) {
    const dts_svg_font font = {.size = size, .anchor = anchor, .weight = weight, .ink = ink};
    dts_svg_text(x, y, &font, text, p->out);
}

/* "backward of microbatch 3, chunk 1" */
static void name_operation(const dts_schedule_report *r, const dts_op *op, char *out, size_t size) {
    static const char *const names[] = {[DTS_OP_FORWARD] = "forward",
                                        [DTS_OP_BACKWARD_INPUT] = "backward, input gradient",
                                        [DTS_OP_BACKWARD_WEIGHT] = "weight gradient",
                                        [DTS_OP_BACKWARD] = "backward"};
    const int length = snprintf(out, size, "%s of microbatch %u", names[op->kind], (unsigned)op->microbatch);
    if (r->schedule.shape.chunks > 1) {
        snprintf(out + length, size - (size_t)length, ", chunk %u", (unsigned)op->chunk);
    }
}

static int stages_drawn(const dts_schedule_report *r) {
    return r->schedule.shape.stages < STAGES_DRAWN ? r->schedule.shape.stages : STAGES_DRAWN;
}

static bool takes_time(const dts_schedule_report *r, dts_schedule_place place) {
    double start;
    double end;
    dts_schedule_drawn_at(r, place.rank, place.index, &start, &end);
    return end > start;
}

/* The attribute that names an operation that is drawn; nothing in a picture without a script. */
static void add_reference(const picture *p, const char *attribute, dts_schedule_place place, dts_text *out) {
    if (p->linked) {
        dts_text_printf(out, " %s=\"k%zu-%d-%zu\"", attribute, p->number, place.rank, place.index);
    }
}

/* The attribute that points at a cause: the first, back along what held up what, that takes time. Of a stage that is
 * not drawn there is no box to point at, so it is told. */
static void add_cause(const picture *p, const dts_schedule_report *r, dts_schedule_place by, dts_text *out) {
    bool any = p->linked;
    while (any && !takes_time(r, by)) {
        const dts_schedule_place here = by;
        any = dts_schedule_held_by(&p->links, here, &by);
    }
    if (any && by.rank < stages_drawn(r)) {
        add_reference(p, "data-by", by, out);
    } else if (any) {
        char name[NAME];
        name_operation(r, &r->schedule.ops[by.rank][by.index], name, sizeof name);
        dts_text_printf(out, " data-beyond=\"the %s on stage %d\"", name, by.rank);
    }
}

/* What an operation is, for readers who point at it. */
static void explain_operation(const picture *p, const dts_schedule_report *r, dts_schedule_place place, double start,
                              double end) {
    char name[NAME], text[2 * NAME];
    dts_text attributes = {0};
    dts_schedule_place by;
    name_operation(r, &r->schedule.ops[place.rank][place.index], name, sizeof name);
    snprintf(text, sizeof text, "stage %d: %s, %.6g to %.6g", place.rank, name, start, end);
    add_reference(p, "id", place, &attributes);
    if (p->linked) {
        dts_text_printf(&attributes, " data-s=\"%.9g\" data-e=\"%.9g\"", start, end);
    }
    if (dts_schedule_held_by(&p->links, place, &by)) {
        add_cause(p, r, by, &attributes);
    }
    dts_svg_group_with(dts_text_string(&attributes), text, p->out);
    dts_text_end(&attributes, p->out);
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

static void draw_operation(picture *p, const dts_schedule_report *r, dts_schedule_place place, double top) {
    const dts_op *op = &r->schedule.ops[place.rank][place.index];
    if (!takes_time(r, place)) {
        return;
    }
    double start;
    double end;
    dts_schedule_drawn_at(r, place.rank, place.index, &start, &end);
    double x = MARGIN + LABEL + start * p->per_unit;
    double width = (end - start) * p->per_unit;
    bool odd = op->chunk % 2 == 1;
    const shade *s = &shades[op->kind][odd];
    p->kinds[op->kind] = true;
    p->odd = p->odd || odd;
    double gap = width > 8 ? 1 : 0; /* a seam between neighbours where there is room */
    explain_operation(p, r, place, start, end);
    dts_svg_box(x + gap / 2, top, width - gap, ROW - ROW_GAP, width > 16 ? 3 : 0, s->fill, p->out);
    draw_number(p, (unsigned)op->microbatch, s->ink, x, width, top + (ROW - ROW_GAP) / 2.0);
    dts_svg_group_end(p->out);
}

/* Why a stage does nothing until next begins, which is its operation after the gap. */
static void explain_gap(const picture *p, const dts_schedule_report *r, dts_schedule_place next, double start,
                        double end, dts_text *text) {
    dts_schedule_place from;
    double arrives = 0;
    dts_text_printf(text, "stage %d: idle from %.6g to %.6g, ", next.rank, start, end);
    if (end >= r->ideal.makespan) {
        dts_text_add(text, "draining: all its work is done");
    } else if (dts_schedule_input(&p->links, next, &from, &arrives)) {
        char awaited[NAME];
        const double ends = r->ideal.end[from.rank][from.index];
        name_operation(r, &r->schedule.ops[from.rank][from.index], awaited, sizeof awaited);
        dts_text_printf(text, "%s for the %s on stage %d, which ends at %.6g",
                        start <= 0 ? "filling: waiting" : "waiting", awaited, from.rank, ends);
        if (arrives > ends) {
            dts_text_printf(text, ", and for the hop, %.6g", arrives - ends);
        }
    }
}

/* The attribute that points at what begins where a gap ends: the next operation, or one behind it that takes time. */
static void add_next(const picture *p, const dts_schedule_report *r, dts_schedule_place next, dts_text *out) {
    const size_t count = r->schedule.op_count[next.rank];
    const double begins = r->ideal.start[next.rank][next.index];
    while (next.index < count && !takes_time(r, next)) {
        next.index++;
    }
    if (next.index < count && r->ideal.start[next.rank][next.index] <= begins) {
        add_reference(p, "data-next", next, out);
    }
}

/* A part of the bubble, ahead of this operation of the stage. */
static void draw_gap(const picture *p, const dts_schedule_report *r, dts_schedule_place next, double start, double end,
                     double top) {
    if ((end - start) * p->per_unit < 1) {
        return;
    }
    dts_text text = {0}, attributes = {0};
    dts_schedule_place from;
    double arrives = 0;
    explain_gap(p, r, next, start, end, &text);
    if (end < r->ideal.makespan && dts_schedule_input(&p->links, next, &from, &arrives)) {
        add_cause(p, r, from, &attributes);
        add_next(p, r, next, &attributes);
    }
    dts_text_add(&attributes, p->linked ? " class=\"gap\"" : "");
    dts_svg_group_with(dts_text_string(&attributes), dts_text_string(&text), p->out);
    dts_svg_box(MARGIN + LABEL + start * p->per_unit, top, (end - start) * p->per_unit, ROW - ROW_GAP, 0, DTS_SVG_IDLE,
                p->out);
    dts_svg_group_end(p->out);
    dts_text_end(&attributes, p->out);
    dts_text_end(&text, p->out);
}

static void draw_stage(picture *p, const dts_schedule_report *r, int rank, double top) {
    char text[48];
    snprintf(text, sizeof text, "stage %d", rank);
    text_at(p, MARGIN, top + 25, "start", 20, "normal", DTS_SVG_INK, text);
    double busy_until = 0;
    const size_t count = r->schedule.op_count[rank];
    for (size_t i = 0; i < count; i++) {
        const dts_schedule_place place = {rank, i};
        double start;
        double end;
        dts_schedule_drawn_at(r, rank, i, &start, &end);
        draw_gap(p, r, place, busy_until, start, top);
        draw_operation(p, r, place, top);
        busy_until = fmax(busy_until, end);
    }
    draw_gap(p, r, (dts_schedule_place){rank, count}, busy_until, r->ideal.makespan, top);
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

static dts_status draw_all(picture *p, const dts_schedule_report *reports, size_t count) {
    double height = MARGIN + LEGEND, longest = 0, top = MARGIN;
    for (size_t i = 0; i < count; i++) {
        height += height_of(&reports[i]);
        longest = fmax(longest, reports[i].ideal.makespan);
    }
    p->per_unit = (WIDTH - 2 * MARGIN - LABEL - RIGHT) / longest;
    dts_svg_begin(WIDTH, height, p->linked ? NULL : "pipeline schedules: what each stage does when", p->out);
    for (size_t i = 0; i < count; i++, p->number++) {
        if (dts_schedule_links_make(&reports[i], &p->links) != DTS_OK) {
            return DTS_NOMEM;
        }
        draw_schedule(p, &reports[i], dts_svg_step(longest, TICKS_MOST), top);
        dts_schedule_links_free(&p->links);
        top += height_of(&reports[i]);
    }
    draw_legend(p, top);
    if (p->linked) { /* where a script draws; and what it needs to place a time */
        dts_text_printf(p->out,
                        "<g class=\"over\" data-x=\"%d\" data-unit=\"%.9g\" data-end=\"%.9g\" data-top=\"%.6g\"></g>\n",
                        MARGIN + LABEL, p->per_unit, longest, top);
    }
    dts_svg_end(p->out);
    return dts_text_status(p->out);
}

dts_status dts_schedule_svg(const dts_schedule_report *reports, size_t count, dts_text *out) {
    picture p = {.out = out};
    return draw_all(&p, reports, count);
}

dts_status dts_schedule_linked_svg(const dts_schedule_report *reports, size_t count, size_t first, dts_text *out) {
    picture p = {.out = out, .linked = true, .number = first};
    return draw_all(&p, reports, count);
}
