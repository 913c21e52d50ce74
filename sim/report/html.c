/* The result as one web page that needs nothing else: no script, no font, no picture from anywhere. The timeline is
 * SVG, drawn from the same columns as the one in the terminal, only more of them; pointing at a part tells what it is.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/cure.h"
#include "report/format.h"
#include "report/glyphs.h"
#include "report/html_page.h"
#include "report/report.h"
#include "report/rows.h"
#include "report/timeline_cells.h"

enum {
    PLOT_WIDTH = 1200,
    STREAM_AT = 96, /* names of devices, of streams, and at the end what a row adds up to */
    LABEL_WIDTH = 280,
    SUM_WIDTH = 90,
    BASELINE = 14,
    ROW_HEIGHT = 22,
    MEMORY_HEIGHT = 44,
    GAP = 12,
    DEVICES_DRAWN = 64,
    MOST_TICKS = 12
};

static const double gib = 1073741824.0;

typedef struct page {
    const dts_result *result;
    dts_text *out;
    dts_cells cells;
    double y;           /* where the next row of the timeline goes */
    double most_memory; /* bytes: the highest peak of the devices drawn */
    bool used[DTS_SPAN_KIND_COUNT];
} page;

static void add_element(page *p, const char *open, const char *text, const char *close) {
    dts_text_add(p->out, open);
    dts_html_escaped(text, p->out);
    dts_text_add(p->out, close);
}

/* The same, each line of it on one of its own. */
static void add_lines(page *p, const char *open, const char *text, const char *close) {
    dts_text_add(p->out, open);
    for (const char *line = text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        dts_text one = {0};
        dts_text_add_bytes(&one, line, length);
        dts_text_add(p->out, line == text ? "" : "<br>\n");
        dts_html_escaped(dts_text_string(&one), p->out);
        dts_text_end(&one, p->out);
        line += length + (line[length] == '\n');
    }
    dts_text_add(p->out, close);
}

static void add_cell(page *p, dts_formatter *formatter, double value) {
    char buffer[64];
    add_element(p, "<td>", dts_formatted(formatter, value, buffer, sizeof buffer), "</td>");
}

/* ---- what was asked ------------------------------------------------------------------------------------------------
 */

static void write_fact(page *p, const char *name, dts_formatter *formatter, double value, const char *unit) {
    char buffer[64];
    dts_text_printf(p->out, "<div><span class=\"faint\">%s</span><b>%s%s</b></div>\n", name,
                    dts_formatted(formatter, value, buffer, sizeof buffer), unit);
}

static void write_head(page *p) {
    const dts_result *r = p->result;
    dts_html_begin(r->scenario, p->out);
    add_element(p, "<p class=\"faint\">", r->model, ", ");
    dts_parameters_text(r, p->out);
    dts_text_printf(p->out, ", on %" PRId64 " GPU%s: %" PRId64 " × ", r->gpus, r->gpus == 1 ? "" : "s", r->nodes);
    dts_html_escaped(r->cluster, p->out);
    add_element(p, "; ", r->stack, "<br>");
    add_element(p, "Plan: ", r->plan, "; batch ");
    dts_text_printf(p->out,
                    "%" PRId64 " samples%s %" PRId64 "%s, %" PRId64 " microbatch%s of %" PRId64 " per replica</p>\n",
                    r->global_batch, r->new_tokens < r->sequence_length ? ", a token of each behind" : " of",
                    r->sequence_length, r->new_tokens < r->sequence_length ? "" : " tokens", r->microbatches,
                    r->microbatches == 1 ? "" : "es", r->micro_batch);
}

static void write_facts(page *p) {
    const dts_result *r = p->result;
    dts_text_add(p->out, "<div class=\"facts\">\n");
    write_fact(p, r->fits ? "Iteration time" : "Iteration time, if it did fit", dts_format_time, r->iteration_time_s,
               "");
    if (r->likely.high_s > 0) {
        dts_text likely = {0};
        dts_likely_text(r, &likely);
        dts_text_printf(p->out,
                        "<div title=\"Four of five published runs were that near\"><span class=\"faint\">Likely"
                        "</span><b>%s</b></div>\n",
                        dts_text_string(&likely));
        dts_text_end(&likely, p->out);
    }
    write_fact(p, "Throughput", dts_format_count, r->tokens_per_s, " tokens/s");
    write_fact(p, "Per GPU", dts_format_count, r->tokens_per_s_per_gpu, " tokens/s");
    write_fact(p, "Model FLOPs utilisation", dts_format_percent, r->mfu, "");
    write_fact(p, "Communication (ACO)", dts_format_count, r->aco_ms_per_sample, " ms/sample");
    if (r->price_usd_per_hour > 0 && r->fits) { /* what does not fit is sold nowhere */
        write_fact(p, "Price of 10<sup>9</sup> tokens", dts_format_count,
                   r->price_usd_per_hour / 3600 / r->tokens_per_s * 1e9, " USD");
    }
    dts_text_printf(p->out,
                    "<div><span class=\"faint\">Peak memory</span><b%s>%.1f of %.1f GiB</b><meter value=\"%.3f\" "
                    "max=\"%.3f\" high=\"%.3f\"></meter></div>\n</div>\n",
                    r->fits ? "" : " class=\"bad\"", r->peak_device_gib, r->capacity_gib, r->peak_device_gib,
                    r->capacity_gib, 0.9 * r->capacity_gib);
    dts_text room = {0};
    dts_room_text(r, &room);
    if (room.length > 0) {
        add_element(p, "<p>Room: ", dts_text_string(&room), "</p>\n");
    }
    dts_text_end(&room, p->out);
    if (!r->fits) {
        dts_text cure = {0};
        dts_report_cure(r, &cure);
        add_lines(p, "<p class=\"bad\">Does not fit in memory. ", dts_text_string(&cure), "</p>\n");
        p->out->failed = p->out->failed || cure.failed;
        dts_text_free(&cure);
    } else if (r->allocator.retries > 0 || r->allocator.unserved_gib > 0) {
        dts_text cost = {0};
        dts_report_pressure(r, &cost);
        add_lines(p, r->allocator.unserved_gib > 0 ? "<p class=\"bad\">" : "<p class=\"bad\">Fits, but ",
                  dts_text_string(&cost), "</p>\n");
        p->out->failed = p->out->failed || cost.failed;
        dts_text_free(&cost);
    }
    if (r->measured_times != NULL) {
        add_element(p, "<p>Measured: ", r->measured_times, "</p>\n");
    }
    if (r->bottleneck != NULL) {
        add_element(p, "<p>Bottleneck: ", r->bottleneck, "</p>\n");
    }
    for (size_t i = 0; i < r->warning_count; i++) {
        add_element(p, "<p>Warning: ", r->warnings[i], "</p>\n");
    }
}

/* ---- timeline ------------------------------------------------------------------------------------------------------
 */

static void write_label(page *p, const char *text, double x, double y, bool strong) {
    dts_text_printf(p->out, "<text x=\"%.0f\" y=\"%.0f\"%s>", x, y, strong ? " font-weight=\"600\"" : "");
    add_element(p, "", text, "</text>\n");
}

/* Columns first…behind of one kind as a rectangle with its explanation; a gap of one column parts it from a next
 * operation of the same kind. */
static void write_run(page *p, size_t first, size_t behind, dts_cell_view view, bool parted) {
    char from[32];
    char to[32];
    const dts_cells *c = &p->cells;
    double start_s = ((double)c->from + (double)first * c->column_ps) / DTS_PS_PER_S;
    double end_s = ((double)c->from + (double)behind * c->column_ps) / DTS_PS_PER_S;
    p->used[view.kind] = true;
    dts_text_printf(p->out,
                    "<rect x=\"%zu\" y=\"%.0f\" width=\"%zu\" height=\"%d\" fill=\"var(--%s)\"%s><title>%s, %s to "
                    "%s%s</title></rect>\n",
                    LABEL_WIDTH + first, p->y, behind - first - (parted ? 1 : 0), ROW_HEIGHT - 4,
                    dts_span_kind_names[view.kind], view.full ? "" : " opacity=\".5\"", dts_glyphs[view.kind].name,
                    dts_formatted(dts_format_time, start_s, from, sizeof from),
                    dts_formatted(dts_format_time, end_s, to, sizeof to), view.full ? "" : ", mostly waiting");
}

/* Microbatch numbers: runs of digits. */
static void write_numbers(page *p) {
    for (size_t i = 0; i < p->cells.columns; i++) {
        char number[16] = "";
        size_t length = 0;
        while (i + length < p->cells.columns && length < sizeof number - 1 &&
               dts_cells_view(&p->cells, i + length).digit != 0) {
            number[length] = dts_cells_view(&p->cells, i + length).digit;
            number[++length] = '\0';
        }
        /* a character is about nine units wide: only where the operation goes on that long */
        size_t needed = 9 * length + 4;
        bool room = length > 0 && i + needed <= p->cells.columns;
        int kind = room ? dts_cells_view(&p->cells, i + length).kind : 0;
        for (size_t j = i + length; room && j < i + needed; j++) {
            dts_cell_view view = dts_cells_view(&p->cells, j);
            room = view.digit == 0 && view.full && view.kind == kind;
        }
        if (room) {
            dts_text_printf(p->out, "<text class=\"number\" x=\"%zu\" y=\"%.0f\">%s</text>\n", LABEL_WIDTH + i + 3,
                            p->y + BASELINE, number);
        }
        i += length > 0 ? length - 1 : 0;
    }
}

static void write_stream(page *p, const dts_span *spans, size_t count, const char *device) {
    double busy_ps = dts_cells_fill(&p->cells, spans, count, p->result->microbatches > 1);
    write_label(p, device, 0, p->y + BASELINE, true);
    write_label(p, p->result->streams[spans[0].stream].name, STREAM_AT, p->y + BASELINE, false);
    dts_text_printf(p->out, "<rect class=\"row\" x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>\n", LABEL_WIDTH, p->y,
                    PLOT_WIDTH, ROW_HEIGHT - 4);
    size_t first = 0;
    for (size_t i = 1; i <= p->cells.columns; i++) {
        dts_cell_view run = dts_cells_view(&p->cells, first);
        dts_cell_view here = i < p->cells.columns ? dts_cells_view(&p->cells, i) : (dts_cell_view){.kind = -1};
        bool other = here.kind != run.kind || here.idle != run.idle || here.full != run.full;
        bool next_operation = here.digit != 0 && dts_cells_view(&p->cells, i - 1).digit == 0;
        if (other || next_operation) {
            if (!run.idle) {
                write_run(p, first, i, run, !other && i - first > 1);
            }
            first = i;
        }
    }
    write_numbers(p);
    dts_text_printf(p->out, "<text class=\"tick\" x=\"%d\" y=\"%.0f\">%.0f %%</text>\n", LABEL_WIDTH + PLOT_WIDTH + 6,
                    p->y + BASELINE, 100 * busy_ps / (double)(p->cells.to - p->cells.from));
    p->y += ROW_HEIGHT;
}

static double memory_peak(const page *p) {
    double peak = 0;
    for (size_t i = 0; i < p->cells.columns; i++) {
        peak = fmax(peak, p->cells.highs[i]);
    }
    return peak;
}

static void write_memory_row(page *p, uint32_t device) {
    if (!dts_cells_memory(&p->cells, p->result, device)) {
        return;
    }
    double peak = memory_peak(p);
    double scale = p->most_memory;
    double floor_y = p->y + MEMORY_HEIGHT - 4;
    write_label(p, "memory", STREAM_AT, p->y + 20, false);
    dts_text_printf(p->out, "<path class=\"memory\" d=\"M%d %.1f", LABEL_WIDTH, floor_y);
    for (size_t i = 0; i < p->cells.columns; i++) {
        if (i == 0 || p->cells.highs[i] != p->cells.highs[i - 1]) {
            double height = scale > 0 ? fmin(1, p->cells.highs[i] / scale) * (MEMORY_HEIGHT - 6) : 0;
            dts_text_printf(p->out, "H%zuV%.1f", LABEL_WIDTH + i, floor_y - height);
        }
    }
    dts_text_printf(
        p->out,
        "H%dV%.1fz\"><title>allocated memory, at most %.1f GiB; the row is as high as %.1f GiB</title></path>\n",
        LABEL_WIDTH + PLOT_WIDTH, floor_y, peak / gib, scale / gib);
    dts_text_printf(p->out, "<text class=\"tick\" x=\"%d\" y=\"%.0f\">%.1f GiB</text>\n", LABEL_WIDTH + PLOT_WIDTH + 6,
                    p->y + 20, peak / gib);
    p->y += MEMORY_HEIGHT;
}

static void write_axis(page *p) {
    const dts_axis axis = dts_axis_make(0, p->cells.to, MOST_TICKS);
    for (int i = 0; i * axis.step * axis.unit_ps <= (double)p->cells.to; i++) {
        double x = LABEL_WIDTH + i * axis.step * axis.unit_ps / p->cells.column_ps;
        dts_text_printf(p->out,
                        "<path d=\"M%.1f 0V%.0f\" stroke=\"var(--line)\"/><text class=\"tick\" text-anchor=\"middle\" "
                        "x=\"%.1f\" y=\"%.0f\">%.10g %s</text>\n",
                        x, p->y, x, p->y + 16, i * axis.step, axis.unit);
    }
    p->y += 22;
}

/* The rows are written first: only then their height is known. */
static void write_timeline(page *p) {
    const dts_result *r = p->result;
    dts_text *page_text = p->out;
    dts_text drawing = {0};
    p->out = &drawing;
    /* the hosts' memory, of what is offloaded, has no row */
    for (size_t i = 0; i < r->span_count && r->spans[i].device < DEVICES_DRAWN; i++) {
        const bool next = i == 0 || r->spans[i].device != r->spans[i - 1].device;
        if (next && dts_cells_memory(&p->cells, r, r->spans[i].device)) {
            p->most_memory = fmax(p->most_memory, memory_peak(p));
        }
    }
    size_t i = 0;
    while (i < r->span_count && r->spans[i].device < DEVICES_DRAWN) {
        uint32_t device = r->spans[i].device;
        bool first = true;
        while (i < r->span_count && r->spans[i].device == device) {
            size_t behind = dts_stream_end(r, i);
            write_stream(p, &r->spans[i], behind - i, first ? r->devices[device] : "");
            first = false;
            i = behind;
        }
        write_memory_row(p, device);
        p->y += GAP;
    }
    dts_text grid = {0};
    p->out = &grid;
    write_axis(p);
    p->out = page_text;
    dts_text_printf(p->out,
                    "<h2>Timeline</h2>\n<div class=\"wide\"><svg class=\"timeline long\" role=\"img\" "
                    "aria-label=\"what each stream of each device does when\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
                    "height=\"%.0f\">\n",
                    LABEL_WIDTH + PLOT_WIDTH + SUM_WIDTH, p->y, LABEL_WIDTH + PLOT_WIDTH + SUM_WIDTH, p->y);
    dts_text_add(p->out, dts_text_string(&grid)); /* lies behind the rows */
    dts_text_add(p->out, dts_text_string(&drawing));
    p->out->failed = p->out->failed || drawing.failed || grid.failed;
    dts_text_free(&drawing);
    dts_text_free(&grid);
    dts_text_add(p->out, "</svg></div>\n<p class=\"faint\">");
    for (int k = 0; k < DTS_SPAN_KIND_COUNT; k++) {
        if (p->used[k]) {
            dts_text_printf(p->out, "<i style=\"background:var(--%s)\"></i>%s", dts_span_kind_names[k],
                            dts_glyphs[k].name);
        }
    }
    dts_text_printf(p->out,
                    "<br>Pale: busy less than half of the time. Numbers: microbatches. Memory: a row is %.1f GiB high. "
                    "Point at a part to see what it is.",
                    p->most_memory / gib);
    if (r->device_count > DEVICES_DRAWN) {
        dts_text_printf(p->out, " The first %d of %zu devices are drawn.", DEVICES_DRAWN, r->device_count);
    }
    dts_text_add(p->out, "</p>\n");
}

/* ---- tables --------------------------------------------------------------------------------------------------------
 */

static void write_share(page *p, const char *name, const char *color, double value, double whole, const char *amount) {
    if (!(value > 0) || !(whole > 0)) {
        return;
    }
    dts_text_printf(p->out,
                    "<tr><td>%s</td><td class=\"left bar\"><i style=\"width:%.1f%%;background:var(--%s)\"></i></td>"
                    "<td>%s</td><td>%.1f %%</td></tr>\n",
                    name, 100 * fmin(1, value / whole), color, amount, 100 * value / whole);
}

static void write_times(page *p) {
    dts_text_add(p->out, "<h2>Where the time goes (GPU on the critical path)</h2>\n<table>\n");
    for (size_t i = 0; i < dts_html_part_count; i++) {
        const dts_html_part *part = &dts_html_parts[i];
        const double seconds = dts_html_part_s(p->result, part);
        char amount[32];
        write_share(p, part->name, part->color, seconds, p->result->iteration_time_s,
                    dts_formatted(dts_format_time, seconds, amount, sizeof amount));
    }
    dts_text_add(p->out, "</table>\n");
}

static void write_whole_run(page *p) {
    static const char *const colors[DTS_WHOLE_RUN_ROWS] = {"forward", "offload", "bad", "host"};
    const dts_whole_run *w = &p->result->whole_run;
    if (!(w->tokens > 0)) {
        return;
    }
    dts_text_add(p->out, "<h2>");
    dts_whole_run_title(p->result, p->out);
    dts_text_add(p->out, "</h2>\n<table>\n");
    dts_share_row rows[DTS_WHOLE_RUN_ROWS];
    dts_whole_run_rows(w, rows);
    for (size_t i = 0; i < DTS_WHOLE_RUN_ROWS && isfinite(w->expected_s) && w->goodput < 1; i++) {
        char amount[32];
        dts_formatted(dts_format_duration, rows[i].share * w->expected_s, amount, sizeof amount);
        write_share(p, rows[i].name, colors[i], rows[i].share, 1, amount);
    }
    dts_text_add(p->out, "</table>\n<p class=\"faint\">");
    dts_whole_run_remark(p->result, p->out);
    dts_text_add(p->out, "</p>\n");
}

static void write_memory(page *p) {
    dts_memory_row rows[DTS_MEMORY_ROWS];
    dts_memory_rows(&p->result->memory_gib, rows);
    dts_text_add(p->out, "<h2>Memory of the fullest GPU at its peak (share of the GPU's)</h2>\n<table>\n");
    for (size_t i = 0; i < DTS_MEMORY_ROWS; i++) {
        char amount[32];
        snprintf(amount, sizeof amount, "%.2f GiB", rows[i].gib);
        write_share(p, rows[i].name, "forward", rows[i].gib, p->result->capacity_gib, amount);
    }
    dts_text_add(p->out, "</table>\n");
}

/* A line under a table, if there is anything to say. */
static void write_remark(page *p, void (*write)(const dts_result *, dts_text *)) {
    dts_text remark = {0};
    write(p->result, &remark);
    if (dts_text_string(&remark)[0] != '\0') {
        add_element(p, "<p class=\"faint\">", dts_text_string(&remark), "</p>\n");
    }
    p->out->failed = p->out->failed || remark.failed;
    dts_text_free(&remark);
}

static void write_communication(page *p) {
    const dts_result *r = p->result;
    if (r->communication_count == 0) {
        return;
    }
    dts_text_add(p->out,
                 "<h2>Communication of one GPU per iteration</h2>\n<table>\n<tr><th>operation</th><th class=\"left\">"
                 "group</th><th>times</th><th>bytes</th><th>total</th><th>exposed</th><th>rate</th></tr>\n");
    for (size_t i = 0; i < r->communication_count; i++) {
        const dts_communication_row *row = &r->communication[i];
        add_element(p, "<tr><td>", row->kind, "</td>");
        add_element(p, "<td class=\"left\">", row->group, "</td>");
        add_cell(p, dts_format_count, (double)row->count);
        add_cell(p, dts_format_bytes, row->bytes);
        add_cell(p, dts_format_time, row->total_s);
        add_cell(p, dts_format_time, row->exposed_s);
        dts_text_printf(p->out, "<td>%.1f GB/s</td></tr>\n", row->total_s > 0 ? row->bytes / row->total_s / 1e9 : 0.0);
    }
    dts_text_add(p->out, "</table>\n");
    write_remark(p, dts_awaited_text);
}

static void write_stages(page *p) {
    const dts_result *r = p->result;
    if (r->stage_count < 2) {
        return;
    }
    dts_text_add(p->out,
                 "<h2>Pipeline stages</h2>\n<table>\n<tr><th>stage</th><th>layers</th><th>parameters</th>"
                 "<th>compute</th><th>idle</th><th>peak memory (GiB)</th><th class=\"left\">reached by</th></tr>\n");
    for (size_t i = 0; i < r->stage_count; i++) {
        const dts_stage_row *row = &r->stages[i];
        dts_text_printf(p->out, "<tr><td>%" PRId64 "</td><td>", row->stage);
        dts_stage_layers(row, p->out);
        dts_text_add(p->out, "</td>");
        add_cell(p, dts_format_large, row->parameters);
        add_cell(p, dts_format_time, row->compute_s);
        add_cell(p, dts_format_percent, row->bubble_fraction);
        dts_text_printf(p->out, "<td>%.1f</td>", row->peak_device_gib);
        add_element(p, "<td class=\"left\">", row->peak_cause != NULL ? row->peak_cause : "", "</td></tr>\n");
    }
    dts_text_add(p->out, "</table>\n");
    write_remark(p, dts_stage_mean);
}

static void write_footer(page *p) {
    const dts_result *r = p->result;
    dts_text_add(p->out, "<p class=\"faint\" style=\"margin-top:2rem\">Simulated ");
    dts_format_count((double)r->simulation.tasks, p->out);
    dts_text_printf(p->out, " tasks; detail %s, network %s, ranks %s.</p>\n", r->simulation.detail,
                    r->simulation.network, r->simulation.ranks);
}

dts_status dts_report_html(const dts_result *result, dts_text *out) {
    page p = {.result = result, .out = out};
    write_head(&p);
    write_facts(&p);
    dts_time end = dts_timeline_end(result);
    bool drawn = result->span_count > 0 && end > 0;
    bool good = !drawn || dts_cells_make(&p.cells, 0, end, PLOT_WIDTH);
    if (drawn && good) {
        write_timeline(&p);
    }
    dts_cells_free(&p.cells);
    write_whole_run(&p);
    write_times(&p);
    write_memory(&p);
    write_communication(&p);
    write_stages(&p);
    write_footer(&p);
    dts_html_end(out);
    return good ? dts_text_status(out) : DTS_NOMEM;
}
