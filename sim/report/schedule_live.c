/* The curve of live activations below a stage's row: each column shows the most that are held at any moment of it. An
 * activation is there from the start of its forward to the end of its weight gradient, but what the gradient of the
 * input frees only to the end of that. */
#include <math.h>
#include <stdlib.h>

#include "report/schedule_rows.h"

static void raise_columns(double *highs, const dts_schedule_scale *scale, double start, double end, double live) {
    double to = fmin(end * scale->per_unit, (double)scale->columns);
    for (size_t i = (size_t)(start * scale->per_unit + 1e-9); i < scale->columns && (double)i < to - 1e-9; i++) {
        highs[i] = live > highs[i] ? live : highs[i];
    }
}

/* Live activations rise at the start of an operation's block and fall at its end, so that they are constant from one
 * start to the next, and from the last start to the last end. */
static void find_highs(const dts_schedule_report *r, int rank, const dts_schedule_scale *scale, double *highs) {
    const dts_schedule *schedule = &r->schedule;
    double one = schedule->layout == DTS_LAYOUT_BIDIR ? 1 : 1.0 / schedule->shape.chunks;
    const double by_input = schedule->shape.input_frees;
    const double freed[] = {[DTS_OP_FORWARD] = 0,
                            [DTS_OP_BACKWARD_INPUT] = by_input,
                            [DTS_OP_BACKWARD_WEIGHT] = 1 - by_input,
                            [DTS_OP_BACKWARD] = 1};
    double live = 0;
    for (size_t i = 0; i < schedule->op_count[rank]; i++) {
        const dts_op *op = &schedule->ops[rank][i];
        double start;
        double end;
        dts_schedule_drawn_at(r, rank, i, &start, &end);
        live += op->kind == DTS_OP_FORWARD ? one : 0;
        raise_columns(highs, scale, start, end, live);
        live -= freed[op->kind] * one;
        double next;
        double next_end = r->ideal.makespan;
        if (i + 1 < schedule->op_count[rank]) {
            dts_schedule_drawn_at(r, rank, i + 1, &next, &next_end);
            raise_columns(highs, scale, end, next, live);
        }
    }
}

dts_status dts_schedule_live_row(const dts_schedule_report *report, int rank, const dts_schedule_scale *scale,
                                 size_t first, double most, const dts_style *style, dts_text *out) {
    static const char *const levels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double *highs = calloc(scale->columns, sizeof *highs);
    if (highs == NULL) {
        return DTS_NOMEM;
    }
    find_highs(report, rank, scale, highs);
    size_t end = first + dts_schedule_band(scale, first); /* up to where there are any */
    while (end > first && highs[end - 1] <= 0) {
        end--;
    }
    dts_style_begin(style, DTS_PAINT_FAINT, out);
    for (size_t i = first; i < end; i++) {
        double share = most > 0 ? highs[i] / most : 0;
        if (style->unicode) {
            dts_text_add(out, levels[(int)ceil(8 * share - 1e-9)]);
        } else if (highs[i] <= 0) {
            dts_text_add(out, " ");
        } else {
            dts_text_printf(out, "%d", (int)ceil((most <= 9 ? highs[i] : 9 * share) - 1e-9));
        }
    }
    dts_style_end(style, DTS_PAINT_FAINT, out);
    free(highs);
    return DTS_OK;
}
