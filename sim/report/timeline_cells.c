#include "report/timeline_cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double busy_least = 0.1; /* share of a column below which it is shown as idle */

struct dts_cell {
    double busy[DTS_SPAN_KIND_COUNT]; /* ps */
    bool marked;                      /* the middle of an operation lies here: never shown as idle */
    char digit;
};

bool dts_cells_make(dts_cells *cells, dts_time from, dts_time to, size_t columns) {
    *cells = (dts_cells){.from = from,
                         .to = to,
                         .column_ps = (double)(to - from) / (double)columns,
                         .columns = columns,
                         .cells = calloc(columns, sizeof(dts_cell)),
                         .highs = calloc(columns, sizeof(double))};
    return cells->cells != NULL && cells->highs != NULL;
}

void dts_cells_free(dts_cells *cells) {
    free(cells->cells);
    free(cells->highs);
}

static size_t column_of(const dts_cells *c, double when) {
    double column = (when - (double)c->from) / c->column_ps;
    return column <= 0 ? 0 : column >= (double)c->columns ? c->columns - 1 : (size_t)column;
}

/* Part of column i that a span covers, ps. */
static double part_of(const dts_cells *c, const dts_span *span, size_t i) {
    double left = (double)c->from + (double)i * c->column_ps;
    double part = fmin((double)span->end, left + c->column_ps) - fmax((double)span->start, left);
    return part > 0 ? part : 0;
}

/* Adds the part of a span that is drawn to the cells it crosses; returns its length, ps. */
static double cover(dts_cells *c, const dts_span *span, int kind) {
    if (span->end <= c->from || span->start >= c->to) {
        return 0;
    }
    double busy = 0;
    size_t last = column_of(c, (double)span->end);
    for (size_t i = column_of(c, (double)span->start); i <= last; i++) {
        double part = part_of(c, span, i);
        c->cells[i].busy[kind] += part;
        busy += part;
    }
    return busy;
}

/* Forward and backward (with its recomputation) of a microbatch are operations; all other spans stand for themselves.
 */
typedef enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_OTHER } phase;

static phase phase_of(const dts_span *span) {
    if (span->microbatch < 0) {
        return PHASE_OTHER;
    }
    switch ((dts_span_kind)span->kind) {
        case DTS_SPAN_FORWARD:
            return PHASE_FORWARD;
        case DTS_SPAN_RECOMPUTE:
        case DTS_SPAN_BACKWARD:
        case DTS_SPAN_BACKWARD_WEIGHT:
            return PHASE_BACKWARD;
        default:
            return PHASE_OTHER;
    }
}

static bool same_operation(const dts_span *a, const dts_span *b) {
    return phase_of(a) != PHASE_OTHER && phase_of(a) == phase_of(b) && a->microbatch == b->microbatch &&
           a->chunk == b->chunk;
}

/* The first column at least half of which the operation fills itself; columns when there is none. */
static size_t first_full(const dts_cells *c, const dts_span *spans, size_t count) {
    size_t column = 0;
    double busy = 0;
    for (size_t s = 0; s < count; s++) {
        size_t last = column_of(c, (double)spans[s].end);
        for (size_t i = column_of(c, (double)spans[s].start); i <= last && spans[s].start < c->to; i++) {
            busy = (i == column ? busy : 0) + part_of(c, &spans[s], i);
            column = i;
            if (busy >= 0.5 * c->column_ps) {
                return i;
            }
        }
    }
    return c->columns;
}

/* Marks the middle of an operation, and writes its microbatch's number at its start when there is room. */
static void mark(dts_cells *c, const dts_span *spans, size_t count, bool numbers) {
    dts_time start = spans[0].start;
    dts_time end = spans[count - 1].end;
    if (end <= c->from || start >= c->to) {
        return;
    }
    c->cells[column_of(c, ((double)start + (double)end) / 2)].marked = true;
    if (!numbers || phase_of(&spans[0]) == PHASE_OTHER || start < c->from) {
        return;
    }
    char number[16];
    size_t digits = (size_t)snprintf(number, sizeof number, "%d", (int)spans[0].microbatch);
    size_t behind = (size_t)floor((double)(end - c->from) / c->column_ps + 0.5);
    behind = behind < c->columns ? behind : c->columns;
    size_t first = first_full(c, spans, count);
    for (size_t i = 0; i < digits && first + digits < behind; i++) {
        c->cells[first + i].digit = number[i];
    }
}

/* One operation: count spans. */
static double fill_operation(dts_cells *c, const dts_span *spans, size_t count, bool numbers) {
    size_t changes = 0; /* between input and weight gradients */
    int gradient = -1;
    for (size_t i = 0; i < count; i++) {
        int kind = spans[i].kind;
        if (kind == DTS_SPAN_BACKWARD || kind == DTS_SPAN_BACKWARD_WEIGHT) {
            changes += gradient >= 0 && kind != gradient ? 1 : 0;
            gradient = kind;
        }
    }
    double busy = 0;
    for (size_t i = 0; i < count; i++) {
        bool undivided = changes > 1 && spans[i].kind == DTS_SPAN_BACKWARD_WEIGHT;
        busy += cover(c, &spans[i], undivided ? DTS_SPAN_BACKWARD : spans[i].kind);
    }
    mark(c, spans, count, numbers);
    return busy;
}

/* Index behind the operation that begins with span i. Spans of other kinds in its midst, such as copies into a bucket,
 * do not end it. */
static size_t operation_end(const dts_span *spans, size_t count, size_t i) {
    size_t behind = i + 1;
    for (size_t j = i + 1; j < count && phase_of(&spans[i]) != PHASE_OTHER; j++) {
        if (same_operation(&spans[i], &spans[j])) {
            behind = j + 1;
        } else if (phase_of(&spans[j]) != PHASE_OTHER) {
            break;
        }
    }
    return behind;
}

double dts_cells_fill(dts_cells *cells, const dts_span *spans, size_t count, bool numbers) {
    memset(cells->cells, 0, cells->columns * sizeof *cells->cells);
    double busy = 0;
    size_t behind;
    for (size_t i = 0; i < count; i = behind) {
        behind = operation_end(spans, count, i);
        busy += fill_operation(cells, &spans[i], behind - i, numbers);
    }
    return busy;
}

/* Main kind and busy time of a column. */
static double weigh(const dts_cells *c, size_t i, int *kind) {
    const dts_cell *cell = &c->cells[i];
    double busy = 0;
    *kind = 0;
    for (int k = 0; k < DTS_SPAN_KIND_COUNT; k++) {
        busy += cell->busy[k];
        *kind = cell->busy[k] > cell->busy[*kind] ? k : *kind;
    }
    return busy;
}

/* Is column i full of kind? */
static bool is_full_of(const dts_cells *c, size_t i, int kind) {
    int main_kind;
    return i < c->columns && weigh(c, i, &main_kind) >= 0.5 * c->column_ps && main_kind == kind;
}

dts_cell_view dts_cells_view(const dts_cells *cells, size_t i) {
    dts_cell_view view = {.digit = cells->cells[i].digit};
    double busy = weigh(cells, i, &view.kind);
    view.full = busy >= 0.5 * cells->column_ps;
    bool thin_end =
        !view.full && ((i > 0 && is_full_of(cells, i - 1, view.kind)) || is_full_of(cells, i + 1, view.kind));
    bool seen = busy > 0 && cells->cells[i].marked;
    view.idle = (busy < busy_least * cells->column_ps || thin_end) && !seen;
    return view;
}

/* Raises the highs of the columns that [from, to] touches. */
static void raise_highs(dts_cells *c, double from, double to, double bytes) {
    if (to < (double)c->from || from > (double)c->to) {
        return;
    }
    size_t last = column_of(c, to);
    for (size_t i = column_of(c, from); i <= last; i++) {
        c->highs[i] = bytes > c->highs[i] ? bytes : c->highs[i];
    }
}

bool dts_cells_memory(dts_cells *cells, const dts_result *result, uint32_t device) {
    memset(cells->highs, 0, cells->columns * sizeof *cells->highs);
    double current = 0;
    double since = 0;
    bool any = false;
    for (size_t i = 0; i < result->memory_sample_count; i++) {
        const dts_memory_sample *sample = &result->memory_samples[i];
        if (sample->device == device) {
            raise_highs(cells, since, (double)sample->when, current);
            current = sample->bytes;
            since = (double)sample->when;
            any = true;
        }
    }
    raise_highs(cells, since, (double)cells->to, current);
    return any;
}

dts_axis dts_axis_make(dts_time from, dts_time to, double most) {
    static const dts_axis units[] = {{"s", 1e12, 0}, {"ms", 1e9, 0}, {"us", 1e6, 0}, {"ns", 1e3, 0}};
    double length = (double)(to - from);
    size_t u = 0;
    while (u < 3 && length < 2 * units[u].unit_ps) {
        u++;
    }
    dts_axis axis = units[u];
    double least = length / axis.unit_ps / most;
    double power = pow(10, floor(log10(least)));
    double scaled = least / power;
    axis.step = power * (scaled <= 1 ? 1 : scaled <= 2 ? 2 : scaled <= 5 ? 5 : 10);
    return axis;
}

size_t dts_stream_end(const dts_result *result, size_t i) {
    size_t behind = i + 1;
    while (behind < result->span_count && result->spans[behind].stream == result->spans[i].stream) {
        behind++;
    }
    return behind;
}

dts_time dts_timeline_end(const dts_result *result) {
    dts_time end = dts_time_from_s(result->iteration_time_s);
    for (size_t i = 0; i < result->span_count; i++) {
        end = result->spans[i].end > end ? result->spans[i].end : end;
    }
    return end;
}
