/* The page of `dtsim schedule`: pictures on one time scale, then what the bubble costs and what the textbook says. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/grid.h"
#include "report/schedule_report.h"
#include "report/schedule_rows.h"

enum {
    FACT_COLUMNS = 14,  /* labels of the facts below a picture */
    RIGHT_COLUMNS = 15, /* "  idle   peak" at the end of a row */
    STAGES_DRAWN = 64,
    SCREEN_LINES = 44
};

typedef struct page {
    const dts_style *style;
    dts_text *out;
    dts_schedule_scale scale;
    size_t label_columns;
    bool memory;
    double most_live; /* the highest peak of all stages */
    dts_schedule_seen seen;
} page;

static double work_of(const dts_schedule_shape *s) {
    return s->microbatches * (s->forward + s->backward_input + s->backward_weight);
}

size_t dts_schedule_operations(const dts_schedule_report *reports, size_t count) {
    size_t operations = 0;
    for (size_t i = 0; i < count; i++) {
        for (int rank = 0; rank < reports[i].schedule.shape.stages; rank++) {
            operations += reports[i].schedule.op_count[rank];
        }
    }
    return operations;
}

double dts_schedule_peak(const dts_schedule_report *report) {
    double peak = 0;
    for (int rank = 0; rank < report->schedule.shape.stages; rank++) {
        peak = fmax(peak, report->ideal.peak_activation[rank]);
    }
    return peak;
}

static const char *plural(int count) {
    return count == 1 ? "" : "s";
}

void dts_schedule_title(const dts_schedule_report *report, dts_text *out) {
    const dts_schedule_shape *s = &report->schedule.shape;
    const int each = s->microbatches / (s->flushes > 1 ? s->flushes : 1);
    dts_text_printf(out, "%d stage%s, ", s->stages, plural(s->stages));
    if (s->flushes > 1) {
        dts_text_printf(out, "%d flushes of ", s->flushes);
    }
    dts_text_printf(out, "%d microbatch%s", each, each == 1 ? "" : "es");
    if (report->schedule.layout == DTS_LAYOUT_BIDIR) {
        dts_text_add(out, ", both directions");
    } else if (s->chunks > 1) {
        dts_text_printf(out, ", %d chunks%s", s->chunks, report->schedule.layout == DTS_LAYOUT_V ? " in a V" : "");
    }
    if (s->group > 0) {
        dts_text_printf(out, ", groups of %d", s->group);
    }
    dts_text_printf(out, "; F=%.6g B=%.6g W=%.6g", s->forward, s->backward_input, s->backward_weight);
    if (s->latency > 0) {
        dts_text_printf(out, " c=%.6g", s->latency);
    }
    if (s->input_frees != 0) {
        dts_text_printf(out, ", B frees %.4g %%", 100 * s->input_frees);
    }
}

static void write_title(const page *p, const dts_schedule_report *r) {
    dts_text line = {0};
    dts_schedule_title(r, &line);
    dts_style_add(p->style, DTS_PAINT_STRONG, r->schedule.name, p->out);
    size_t indent = strlen(r->schedule.name) + 2;
    if (indent > (size_t)p->style->width / 2) { /* no room beside a long name */
        dts_text_add(p->out, "\n");
        indent = 2;
    }
    dts_text_add(p->out, "  ");
    dts_style_wrap(p->style, dts_text_string(&line), indent, p->out);
    p->out->failed = p->out->failed || line.failed;
    dts_text_free(&line);
}

static dts_status draw_band(page *p, const dts_schedule_report *r, size_t first) {
    char label[32];
    const size_t columns = dts_schedule_band(&p->scale, first);
    const bool last = first + columns == p->scale.columns;
    p->seen.bands = p->seen.bands || !last;
    if (last) {
        dts_text_add_repeated(p->out, " ", p->label_columns + columns);
        dts_style_add(p->style, DTS_PAINT_FAINT, "    idle   peak", p->out);
        dts_text_add(p->out, "\n");
    }
    for (int rank = 0; rank < r->schedule.shape.stages && rank < STAGES_DRAWN; rank++) {
        snprintf(label, sizeof label, "stage %d", rank);
        dts_style_pad(p->style, label, p->label_columns, p->out);
        dts_status status = dts_schedule_row(r, rank, &p->scale, first, p->style, &p->seen, p->out);
        if (last) {
            dts_text_printf(p->out, "%6.1f %% %6.4g", 100 * r->ideal.idle[rank] / r->ideal.makespan,
                            r->ideal.peak_activation[rank]);
        }
        dts_text_add(p->out, "\n");
        if (p->memory) {
            dts_style_pad(p->style, "memory", p->label_columns, p->out);
            status = dts_schedule_live_row(r, rank, &p->scale, first, p->most_live, p->style, p->out);
            dts_text_add(p->out, "\n");
        }
        if (status != DTS_OK) {
            return status;
        }
    }
    if (r->schedule.shape.stages > STAGES_DRAWN) {
        dts_text_printf(p->out, "(%d more stages; --format csv has all)\n", r->schedule.shape.stages - STAGES_DRAWN);
    }
    dts_schedule_axis(&p->scale, first, r->ideal.makespan, p->style, p->label_columns, p->out);
    return DTS_OK;
}

static dts_status draw(page *p, const dts_schedule_report *r) {
    dts_status status = DTS_OK;
    for (size_t first = 0; first < p->scale.columns && status == DTS_OK; first += p->scale.band) {
        status = draw_band(p, r, first);
    }
    return status;
}

/* One scale for all. A single schedule may be cut into bands, as many as a screen has room for. */
static dts_schedule_scale scale_of(const dts_schedule_report *reports, size_t count, size_t columns, bool memory) {
    if (count > 1) {
        return dts_schedule_scale_for(reports, count, columns);
    }
    const int stages = reports[0].schedule.shape.stages;
    const size_t lines = (size_t)(stages < STAGES_DRAWN ? stages : STAGES_DRAWN) * (memory ? 2 : 1) + 2;
    return dts_schedule_scale_in_bands(&reports[0], columns, lines < SCREEN_LINES ? SCREEN_LINES / lines : 1);
}

static void write_legend(const page *p) {
    dts_schedule_legend(&p->seen, p->style, p->out);
    if (p->memory && !p->style->unicode && p->most_live <= 9) {
        dts_text_add(p->out, "memory: number of live activations, rounded up\n");
    } else if (p->memory) {
        dts_text_printf(p->out, "memory: live activations, %s = %.4g\n", p->style->unicode ? "█" : "9", p->most_live);
    }
    dts_text_add(p->out, "\n");
}

static void fact(const page *p, const char *name, const char *format, ...) DTS_PRINTF(3, 4);
static void fact(const page *p, const char *name, const char *format, ...) {
    dts_text line = {0};
    va_list arguments;
    va_start(arguments, format);
    dts_text_vprintf(&line, format, arguments);
    va_end(arguments);
    dts_style_pad(p->style, name, FACT_COLUMNS, p->out);
    dts_style_wrap(p->style, dts_text_string(&line), FACT_COLUMNS, p->out);
    p->out->failed = p->out->failed || line.failed;
    dts_text_free(&line);
}

/* Simulated time beyond m·T that the textbook's formula is about. */
static double measured_bubble(const dts_schedule_report *r) {
    double time = r->method->bubble_of_span ? r->ideal.max_stage_span : r->ideal.makespan;
    return time - work_of(&r->schedule.shape);
}

static bool same(double a, double b, const dts_schedule_report *r) {
    return fabs(a - b) <= 1e-9 * r->ideal.makespan;
}

static void write_textbook(const page *p, const dts_schedule_report *r) {
    const dts_schedule_method *method = r->method;
    if (method->bubble == NULL) {
        fact(p, "textbook", "no closed form");
        return;
    }
    double want = dts_schedule_bubble(method, &r->schedule.shape);
    double got = measured_bubble(r);
    dts_text formula = {0};
    if (method->bubble_formula != NULL) {
        const int flushes = r->schedule.shape.flushes;
        if (flushes > 1) {
            dts_text_printf(&formula, " = %d × %s", flushes, method->bubble_formula);
        } else {
            dts_text_printf(&formula, " = %s", method->bubble_formula);
        }
    }
    if (method->latency_formula != NULL && r->schedule.shape.latency > 0) {
        dts_text_printf(&formula, " + %s", method->latency_formula);
    }
    dts_text_add(&formula, method->bubble_of_span ? ", of the longest span" : "");
    if (same(got, want, r)) {
        fact(p, "textbook", "%.6g%s, as simulated", want, dts_text_string(&formula));
    } else {
        const char *why = dts_schedule_bubble_limit(method, &r->schedule.shape);
        fact(p, "textbook", "%.6g%s; simulated %.6g: %s", want, dts_text_string(&formula), got,
             why != NULL ? why : "the formula is not exact here");
    }
    p->out->failed = p->out->failed || formula.failed;
    dts_text_free(&formula);
}

/* Idle time of all stages by cause, as parts of the bubble of one stage. */
static void write_idle(const page *p, const dts_schedule_report *r) {
    static const char *const names[DTS_IDLE_CAUSES] = {"filling", "draining", "waiting for other stages", "for hops"};
    double sums[DTS_IDLE_CAUSES] = {0};
    for (int rank = 0; rank < r->schedule.shape.stages; rank++) {
        double idle[DTS_IDLE_CAUSES];
        dts_schedule_idle(r, rank, idle);
        for (int cause = 0; cause < DTS_IDLE_CAUSES; cause++) {
            sums[cause] += idle[cause];
        }
    }
    dts_text line = {0};
    for (int cause = 0; cause < DTS_IDLE_CAUSES; cause++) {
        double mean = sums[cause] / r->schedule.shape.stages;
        if (mean > 1e-9 * r->ideal.makespan) {
            dts_text_printf(&line, "%s%.6g %s", line.length > 0 ? ", " : "", mean, names[cause]);
        }
    }
    if (line.length > 0) {
        fact(p, "", "of it %s (mean of the stages)", dts_text_string(&line));
    }
    p->out->failed = p->out->failed || line.failed;
    dts_text_free(&line);
}

static void write_facts(const page *p, const dts_schedule_report *r) {
    const dts_schedule_shape *s = &r->schedule.shape;
    double work = work_of(s);
    fact(p, "makespan", "%.6g; a stage works for %.6g of it", r->ideal.makespan, work);
    fact(p, "bubble", "%.6g, %.1f %% of the makespan", r->ideal.makespan - work, 100 * r->ideal.bubble_fraction);
    write_idle(p, r);
    if (!same(r->ideal.max_stage_span, r->ideal.makespan, r)) {
        fact(p, "longest span",
             "%.6g, from a stage's first start to its last end: bubble %.6g when iterations are chained",
             r->ideal.max_stage_span, r->ideal.max_stage_span - work);
    }
    write_textbook(p, r);
    fact(p, "peak", "%.6g activation%s of one microbatch in 1/%d of the layers%s", dts_schedule_peak(r),
         dts_schedule_peak(r) == 1 ? "" : "s", s->stages,
         r->schedule.layout == DTS_LAYOUT_BIDIR ? "; every stage holds the weights of two" : "");
}

const char *const dts_schedule_columns[DTS_SCHEDULE_COLUMNS] = {"schedule",    "makespan", "bubble",
                                                                "of makespan", "textbook", "peak"};

void dts_schedule_cell(const dts_schedule_report *report, int column, char *out, size_t size) {
    const dts_schedule_shape *shape = &report->schedule.shape;
    const dts_schedule_method *method = report->method;
    switch (column) {
        case 1:
            snprintf(out, size, "%.6g", report->ideal.makespan);
            break;
        case 2:
            snprintf(out, size, "%.6g", report->ideal.makespan - work_of(shape));
            break;
        case 3:
            snprintf(out, size, "%.1f %%", 100 * report->ideal.bubble_fraction);
            break;
        case 4:
            if (method->bubble == NULL) {
                snprintf(out, size, "-");
            } else {
                snprintf(out, size, "%.6g%s", dts_schedule_bubble(method, shape),
                         method->bubble_of_span ? " (span)" : "");
            }
            break;
        default:
            snprintf(out, size, "%.4g", dts_schedule_peak(report));
    }
}

dts_status dts_schedule_table(const dts_schedule_report *reports, size_t count, const dts_style *style, dts_text *out) {
    dts_grid *grid = dts_grid_new(dts_schedule_columns, DTS_SCHEDULE_COLUMNS, 1);
    out->failed = out->failed || grid == NULL;
    for (size_t i = 0; grid != NULL && i < count; i++) {
        dts_grid_add(grid, reports[i].schedule.name);
        for (int c = 1; c < DTS_SCHEDULE_COLUMNS; c++) {
            char cell[32];
            dts_schedule_cell(&reports[i], c, cell, sizeof cell);
            dts_grid_add(grid, cell);
        }
    }
    if (grid != NULL) {
        dts_grid_print(grid, style, 0, out);
    }
    dts_grid_free(grid);
    return dts_text_status(out);
}

dts_status dts_schedule_text(const dts_schedule_report *reports, size_t count, bool memory, const dts_style *style,
                             dts_text *out) {
    page p = {.style = style, .out = out, .memory = memory};
    int stages = 0;
    for (size_t i = 0; i < count; i++) {
        stages = reports[i].schedule.shape.stages > stages ? reports[i].schedule.shape.stages : stages;
        p.most_live = fmax(p.most_live, dts_schedule_peak(&reports[i]));
    }
    p.label_columns = (size_t)snprintf(NULL, 0, "stage %d ", stages - 1);
    int width = style->width < DTS_STYLE_NARROWEST ? DTS_STYLE_NARROWEST : style->width;
    p.scale = scale_of(reports, count, (size_t)width - p.label_columns - RIGHT_COLUMNS, memory);
    for (size_t i = 0; i < count; i++) {
        write_title(&p, &reports[i]);
        dts_status status = draw(&p, &reports[i]);
        if (status != DTS_OK) {
            return status;
        }
        if (count == 1) {
            write_legend(&p);
            write_facts(&p, &reports[i]);
        } else {
            dts_text_add(out, "\n");
        }
    }
    if (count > 1) {
        write_legend(&p);
        return dts_schedule_table(reports, count, style, out);
    }
    return dts_text_status(out);
}
