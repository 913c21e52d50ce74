/* The page of `dtsim explain`, for the terminal and for the web: what limits first, then the terms it follows from. */
#include "report/explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/cure.h"
#include "report/format.h"
#include "report/grid.h"
#include "report/html_page.h"
#include "report/rows.h"

enum { INDENT = 2, WIDE = 120 };

typedef struct page {
    const dts_result *result;
    const dts_explanation *e;
    const dts_explain_options *options;
    const dts_style *style;
    dts_text *out;
    bool html;
} page;

static void heading(const page *p, const char *title) {
    if (p->html) {
        dts_html_element("<h2>", title, "</h2>\n", p->out);
        return;
    }
    dts_text_add(p->out, "\n");
    dts_style_begin(p->style, DTS_PAINT_STRONG, p->out);
    dts_style_wrap(p->style, title, 0, p->out);
    dts_style_end(p->style, DTS_PAINT_STRONG, p->out);
}

static void paragraph(const page *p, const char *text) {
    if (p->html) {
        dts_text_add(p->out, "<p>");
        dts_html_prose(text, p->out);
        dts_text_add(p->out, "</p>\n");
        return;
    }
    dts_text_add_repeated(p->out, " ", INDENT);
    dts_style_wrap(p->style, text, INDENT, p->out);
}

/* Rows that are shown of count. */
static size_t shown(const page *p, size_t count) {
    return p->options->rows > 0 && count > p->options->rows ? p->options->rows : count;
}

static void tell_rest(const page *p, size_t count, double rest_s) {
    size_t rest = count - shown(p, count);
    if (rest > 0) {
        char time[32];
        if (p->html) {
            dts_text_printf(p->out, "<p class=\"faint\">… %zu more rows, %s together (--rows 0 shows all)</p>\n", rest,
                            dts_formatted(dts_format_time, rest_s, time, sizeof time));
            return;
        }
        dts_text line = {0};
        dts_text_printf(&line, "%s %zu more rows, %s together (--rows 0 shows all)", p->style->unicode ? "…" : "...",
                        rest, dts_formatted(dts_format_time, rest_s, time, sizeof time));
        paragraph(p, dts_text_string(&line));
        dts_text_end(&line, p->out);
    }
}

/* The page in ASCII where the style asks for it. */
static void print_grid(const page *p, dts_grid *grid) {
    if (p->html) {
        dts_grid_html(grid, p->out);
        dts_grid_free(grid);
        return;
    }
    dts_text text = {0};
    dts_grid_print(grid, p->style, INDENT, &text);
    dts_style_plain(p->style, dts_text_string(&text), p->out);
    dts_text_end(&text, p->out);
    dts_grid_free(grid);
}

static void add_time(dts_grid *grid, double seconds) {
    char buffer[32];
    dts_grid_add(grid, dts_formatted(dts_format_time, seconds, buffer, sizeof buffer));
}

static void add_bytes(dts_grid *grid, double bytes) {
    char buffer[32];
    dts_grid_add(grid, dts_formatted(dts_format_bytes, bytes, buffer, sizeof buffer));
}

static void add_percent(dts_grid *grid, double share) {
    dts_grid_printf(grid, share >= 0.0995 || share == 0 ? "%.0f %%" : "%.1f %%", 100 * share);
}

/* Short forms of the directions, for narrow tables. */
static const char *short_direction(const char *direction) {
    static const char *const names[][2] = {{"forward", "fwd"},    {"recompute", "again"},
                                           {"backward", "bwd"},   {"backward-weight", "wgrad"},
                                           {"optimizer", "step"}, {"communication", "comm"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(direction, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return direction;
}

static void write_title(const page *p) {
    const dts_result *r = p->result;
    char time[32];
    dts_text title = {0};
    dts_text_printf(&title, "%s: %s an iteration", r->scenario,
                    dts_formatted(dts_format_time, r->iteration_time_s, time, sizeof time));
    if (p->html) {
        dts_html_begin(dts_text_string(&title), p->out);
    } else {
        dts_style_add(p->style, DTS_PAINT_STRONG, dts_text_string(&title), p->out);
    }
    dts_text_end(&title, p->out);
    dts_text line = {0};
    dts_text_printf(&line, "%s, %s on %" PRId64 " GPU%s of %s; %s; detail %s", r->model, r->plan, r->gpus,
                    r->gpus == 1 ? "" : "s", r->cluster, r->stack, r->simulation.detail);
    dts_text_add(p->out, "\n");
    dts_text plain = {0};
    dts_style_plain(p->style, dts_text_string(&line), &plain);
    paragraph(p, dts_text_string(&plain));
    dts_text_end(&plain, p->out);
    dts_text_end(&line, p->out);
    if (r->whole_run.tokens > 0) {
        dts_text whole = {0};
        dts_whole_run_title(r, &whole);
        paragraph(p, dts_text_string(&whole));
        dts_text_end(&whole, p->out);
    }
    if (r->measured_times != NULL) {
        dts_text measured = {0};
        dts_text_printf(&measured, "Measured: %s", r->measured_times);
        paragraph(p, dts_text_string(&measured));
        dts_text_end(&measured, p->out);
    }
}

static void write_bars(const page *p) {
    if (p->html) {
        dts_html_bars(&p->result, NULL, 1, p->out);
    }
}

static void write_advice(const page *p) {
    if (p->e->advice != NULL) {
        heading(p, "What limits this plan, and what would help");
        paragraph(p, p->e->advice);
    }
}

static void write_shares(const page *p) {
    const dts_time_shares *t = &p->result->time_s;
    const struct {
        const char *name, *meaning;
        double s;
    } rows[] = {
        {"compute", "kernels of forward, recomputation and backward run", t->compute},
        {"exposed communication", "the compute stream waits for a transfer", t->exposed_communication},
        {"bubble", "it waits for a pass of another stage", t->bubble},
        {"exposed offload", "it waits for a copy from or to the host", t->exposed_offload},
        {"host", "it waits for a kernel to be launched", t->launches},
        {"allocator", "it waits for cudaFree and cudaMalloc: memory is near the GPU's capacity", t->allocator},
        {"token counts", "it waits for the host, which waits for the token counts of experts", t->token_counts},
        {"optimizer", "the optimizer's step runs, on the GPU or the CPU, or waits for its launches", t->optimizer},
        {"input", "it waits for data", t->input_wait},
    };
    static const char *const titles[] = {"term", "time", "share", "what it is"};
    dts_grid *grid = dts_grid_new(titles, 4, 9);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].s > 0) {
            dts_grid_add(grid, rows[i].name);
            add_time(grid, rows[i].s);
            add_percent(grid, rows[i].s / p->result->iteration_time_s);
            dts_grid_add(grid, rows[i].meaning);
        }
    }
    dts_text title = {0};
    dts_text_printf(&title, "Where the time goes on the critical path's GPU (stage %" PRId64 "; sums to the iteration)",
                    p->e->path_device);
    heading(p, dts_text_string(&title));
    dts_text_end(&title, p->out);
    write_bars(p);
    print_grid(p, grid);
}

static void write_path(const page *p) {
    static const char *const titles[] = {"tasks", "what", "pass", "stream", "GPUs", "time", "share"};
    dts_grid *grid = dts_grid_new(titles, 7, 14);
    double rest_s = 0;
    for (size_t i = 0; i < p->e->path_count; i++) {
        const dts_path_row *row = &p->e->path[i];
        if (i >= shown(p, p->e->path_count)) {
            rest_s += row->total_s;
            continue;
        }
        char count[32];
        dts_grid_printf(grid, "%s x", dts_formatted(dts_format_count, (double)row->count, count, sizeof count));
        dts_grid_add(grid, row->name);
        dts_grid_add(grid, short_direction(row->direction));
        dts_grid_add(grid, row->stream);
        dts_grid_printf(grid, "%" PRId64, row->devices);
        add_time(grid, row->total_s);
        add_percent(grid, row->total_s / p->result->iteration_time_s);
    }
    heading(p, "Critical path: each task held up the next one (sums to the iteration)");
    print_grid(p, grid);
    tell_rest(p, p->e->path_count, rest_s);
}

/* What the table of kernels shows beside the columns it always has. */
typedef struct kernel_columns {
    bool waits, waves, shape;
} kernel_columns;

static const double WAVE_LEAST = 0.05; /* a loss from which on it is told */

static void add_kernel(dts_grid *grid, const dts_kernel_row *row, kernel_columns with) {
    char count[32];
    dts_grid_add(grid, row->name);
    dts_grid_add(grid, short_direction(row->direction));
    dts_grid_add(grid, dts_formatted(dts_format_count, (double)row->count, count, sizeof count));
    add_time(grid, row->total_s / (double)row->count);
    add_time(grid, row->total_s);
    if (row->flops > 0) {
        dts_grid_printf(grid, "%.1f (%.0f %%)", row->computed * row->flops / row->total_s / 1e12,
                        100 * row->share_of_peak);
    } else {
        dts_grid_add(grid, "");
    }
    if (row->bytes > 0) {
        dts_grid_printf(grid, "%.0f", row->bytes / row->total_s / 1e9);
    } else {
        dts_grid_add(grid, "");
    }
    if (with.waits && row->wait_s > 0) {
        add_time(grid, row->wait_s);
    } else if (with.waits) {
        dts_grid_add(grid, "");
    }
    if (with.waves && row->wave_loss >= WAVE_LEAST && row->bound <= DTS_BOUND_WAVES) {
        dts_grid_printf(grid, "-%.0f %%", 100 * row->wave_loss);
    } else if (with.waves) {
        dts_grid_add(grid, "");
    }
    dts_grid_printf(grid, "%s%s", dts_bound_names[row->bound], row->measured ? ", measured" : "");
    if (with.shape) {
        dts_grid_add(grid, row->shape != NULL ? row->shape : "");
    }
}

static dts_grid *new_kernels(const page *p, kernel_columns *with) {
    enum { EACH = 3, WAIT = 7 };
    const char *titles[11] = {"kernels", "pass", "times", "each", "total", "TFLOP/s", "GB/s"};
    size_t columns = WAIT;
    *with = (kernel_columns){.shape = p->style->width >= WIDE};
    for (size_t i = 0; i < shown(p, p->e->kernel_count); i++) {
        const dts_kernel_row *row = &p->e->kernels[i];
        with->waits = with->waits || row->wait_s > 0;
        with->waves = with->waves || (row->wave_loss >= WAVE_LEAST && row->bound <= DTS_BOUND_WAVES);
    }
    if (with->waits) {
        titles[columns++] = "host wait";
    }
    if (with->waves) {
        titles[columns++] = "wave";
    }
    unsigned text = 3u | 1u << columns;
    titles[columns++] = "bound by";
    if (with->shape) {
        text |= 1u << columns;
        titles[columns++] = "shape";
    }
    dts_grid *grid = dts_grid_new(titles, columns, text);
    dts_grid_keep(grid, 3u);
    dts_grid_spare(grid, 1u << EACH | (with->waits ? 1u << WAIT : 0));
    return grid;
}

static void write_kernels(const page *p) {
    kernel_columns with;
    dts_grid *grid = new_kernels(p, &with);
    double rest_s = 0;
    for (size_t i = 0; i < p->e->kernel_count; i++) {
        if (i < shown(p, p->e->kernel_count)) {
            add_kernel(grid, &p->e->kernels[i], with);
        } else {
            rest_s += p->e->kernels[i].total_s;
        }
    }
    dts_text title = {0};
    dts_text_printf(&title, "Kernels of stage %" PRId64 " (wave: what idle multiprocessors of the last wave cost)",
                    p->e->path_device);
    heading(p, dts_text_string(&title));
    dts_text_end(&title, p->out);
    print_grid(p, grid);
    tell_rest(p, p->e->kernel_count, rest_s);
}

/* Each formula once. */
static void write_formulas(const page *p) {
    for (size_t i = 0; i < p->e->transfer_count; i++) {
        const dts_transfer_row *row = &p->e->transfers[i];
        bool told = false;
        for (size_t j = 0; j < i && !told; j++) {
            told = strcmp(p->e->transfers[j].formula, row->formula) == 0;
        }
        if (!told) {
            dts_text line = {0};
            dts_text_printf(&line, "%s %s: %s", row->algorithm, row->kind, row->formula);
            dts_text plain = {0};
            dts_style_plain(p->style, dts_text_string(&line), &plain);
            paragraph(p, dts_text_string(&plain));
            dts_text_end(&plain, p->out);
            dts_text_end(&line, p->out);
        }
    }
}

static void add_transfer(dts_grid *grid, const dts_transfer_row *row, bool wide) {
    char count[32];
    dts_grid_add(grid, row->kind);
    dts_grid_add(grid, row->group);
    dts_grid_printf(grid, "%" PRId64 "/%" PRId64, row->ranks, row->nodes);
    dts_grid_add(grid, dts_formatted(dts_format_count, (double)row->count, count, sizeof count));
    add_bytes(grid, row->bytes);
    if (wide) {
        add_time(grid, row->latency_s);
        add_time(grid, row->alone_s);
    }
    add_time(grid, row->mean_s);
    add_time(grid, row->total_s);
    if (wide) {
        dts_grid_printf(grid, "%s, %.3g GB/s: %s%s%s", row->algorithm, row->rate_Bps / 1e9, row->limit,
                        row->sharing > 1 ? ", shared" : "", row->measured ? ", measured" : "");
    } else {
        dts_grid_printf(grid, "%s%s", row->limit, row->measured ? ", measured" : "");
    }
}

static void write_transfers(const page *p) {
    enum { MEAN = 5, WIDE_MEAN = 7 };
    static const char *const wide_titles[] = {"transfer", "group", "ranks", "times", "bytes",
                                              "latency",  "alone", "mean",  "total", "algorithm, rate, limit"};
    static const char *const titles[] = {"transfer", "group", "ranks", "times", "bytes", "mean", "total", "limit"};
    if (p->e->transfer_count == 0) {
        return;
    }
    bool wide = p->style->width >= WIDE;
    dts_grid *grid = wide ? dts_grid_new(wide_titles, 10, 3u | 1u << 9) : dts_grid_new(titles, 8, 3u | 1u << 7);
    dts_grid_keep(grid, 3u);
    dts_grid_spare(grid, 1u << (wide ? WIDE_MEAN : MEAN));
    double rest_s = 0;
    for (size_t i = 0; i < p->e->transfer_count; i++) {
        if (i < shown(p, p->e->transfer_count)) {
            add_transfer(grid, &p->e->transfers[i], wide);
        } else {
            rest_s += p->e->transfers[i].total_s;
        }
    }
    heading(p, wide ? "Transfers (ranks/nodes of the group; alone: on idle links; mean: as simulated)"
                    : "Transfers (ranks/nodes of the group)");
    print_grid(p, grid);
    tell_rest(p, p->e->transfer_count, rest_s);
    write_formulas(p);
}

static void write_memory(const page *p) {
    static const char *const titles[] = {"memory", "GiB", "of what"};
    dts_grid *grid = dts_grid_new(titles, 3, 5);
    for (size_t i = 0; i < p->e->memory_count; i++) {
        const dts_memory_term *term = &p->e->memory[i];
        dts_grid_add(grid, term->name);
        dts_grid_printf(grid, "%.2f", term->gib);
        dts_grid_add(grid, term->formula != NULL ? term->formula : "");
    }
    dts_text title = {0};
    dts_text_printf(&title, "Memory of the fullest GPU at its peak: %.2f of %.2f GiB", p->result->peak_device_gib,
                    p->result->capacity_gib);
    heading(p, dts_text_string(&title));
    dts_text_end(&title, p->out);
    print_grid(p, grid);
}

static void tell_strain(const page *p, dts_strain most) {
    static const dts_style one_line = {.width = 1 << 20, .unicode = true};
    dts_text text = {0};
    if (p->html) {
        dts_report_strain(most, &one_line, 0, &text);
        dts_html_element(text.length > 0 ? "<p>" : "", dts_text_string(&text), text.length > 0 ? "</p>\n" : "", p->out);
    } else {
        dts_report_strain(most, p->style, INDENT, p->out);
    }
    dts_text_end(&text, p->out);
}

static void add_change(dts_grid *grid, double share) {
    char buffer[32];
    dts_grid_add(grid, dts_formatted(dts_format_change, share, buffer, sizeof buffer));
}

static void write_what_ifs(const page *p) {
    static const char *const titles[] = {"what if", "changed", "iteration", "time", "samples/s", "memory"};
    if (p->e->what_if_count == 0) {
        return;
    }
    dts_grid *grid = dts_grid_new(titles, 6, 3u);
    dts_strain most = {0};
    bool unfit = false;
    const dts_result *r = p->result;
    for (size_t i = 0; i < p->e->what_if_count; i++) {
        const dts_what_if_row *row = &p->e->what_ifs[i];
        dts_grid_add(grid, row->name);
        dts_grid_add(grid, row->change);
        add_time(grid, row->iteration_s);
        add_change(grid, row->iteration_s / r->iteration_time_s - 1);
        add_change(grid, row->samples_per_s / r->samples_per_s - 1);
        const dts_strain strain = {row->unserved_gib, row->retry_share};
        dts_grid_printf(grid, "%.1f GiB%s", row->peak_device_gib, dts_report_fit_mark(row->fits, strain));
        dts_strain_add(&most, strain);
        unfit = unfit || !row->fits;
    }
    heading(p, "What if (each simulated again)");
    print_grid(p, grid);
    if (unfit) {
        paragraph(p, "! does not fit in memory");
    }
    tell_strain(p, most);
}

/* The file without the folder that profiles were looked for in. */
static const char *short_path(const page *p, const char *path) {
    for (size_t i = 0; i < p->options->root_count; i++) {
        size_t length = strlen(p->options->roots[i]);
        if (strncmp(path, p->options->roots[i], length) == 0 && path[length] == '/') {
            return path + length + 1;
        }
    }
    return path;
}

static void write_inputs(const page *p) {
    if (!p->options->inputs) {
        dts_text_add(p->out, "\n");
        paragraph(p, "--inputs lists every number that went in, where it was written and its source.");
        return;
    }
    static const char *const titles[] = {"enters", "key", "value", "from", "source"};
    dts_grid *grid = dts_grid_new(titles, 5, 31);
    dts_grid_keep(grid, 6);
    for (size_t i = 0; i < p->e->input_count; i++) {
        const dts_input_row *row = &p->e->inputs[i];
        dts_grid_add(grid, row->use);
        dts_grid_add(grid, row->key);
        dts_grid_add(grid, row->value);
        if (row->file == NULL) {
            dts_grid_add(grid, "default");
        } else if (row->line > 0) {
            dts_grid_printf(grid, "%s:%" PRIu32, short_path(p, row->file), row->line);
        } else {
            dts_grid_add(grid, short_path(p, row->file));
        }
        dts_grid_add(grid, row->source != NULL ? row->source : "");
    }
    heading(p, "What went in");
    print_grid(p, grid);
}

static void write_warnings(const page *p) {
    if (p->result->warning_count > 0) {
        heading(p, "Warnings");
    }
    for (size_t i = 0; i < p->result->warning_count && p->html; i++) {
        paragraph(p, p->result->warnings[i]);
    }
    for (size_t i = 0; i < p->result->warning_count && !p->html; i++) {
        dts_style_warning(p->style, p->result->warnings[i], INDENT, p->out);
    }
}

/* What measurements there are of such runs, and how far dtsim was off. */
static void write_evidence(const page *p) {
    const dts_result *r = p->result;
    if (!(r->likely.high_s > 0)) {
        return;
    }
    static const char *const titles[] = {"run", "model", "parameters", "GPUs", "precision", "stack", "ratio"};
    dts_grid *grid = dts_grid_new(titles, 7, 1 << 0 | 1 << 1 | 1 << 4 | 1 << 5);
    char buffer[32];
    for (size_t i = 0; i < r->likely.nearest_count; i++) {
        const dts_published_run *run = &r->likely.nearest[i];
        dts_grid_printf(grid, "%s.csv#%s", run->table, run->id);
        dts_grid_add(grid, run->model);
        dts_grid_add(grid, dts_formatted(dts_format_large, run->parameters, buffer, sizeof buffer));
        dts_grid_printf(grid, "%.0f %s", run->gpus, run->architecture);
        dts_grid_add(grid, run->precision);
        dts_grid_add(grid, run->stack);
        dts_grid_printf(grid, "%.2f", run->ratio);
    }
    heading(p, "How sure that is");
    dts_text line = {0};
    dts_text_add(&line, "Likely ");
    dts_likely_text(r, &line);
    dts_text_add(&line,
                 ": four of five published runs were that near, those of a like utilisation counting more. The "
                 "nearest one of each source (tables in scenarios/published), with its ratio of measured to "
                 "predicted time:");
    paragraph(p, dts_text_string(&line));
    print_grid(p, grid);
    dts_text_clear(&line);
    dts_text_add(&line, "Memory: ");
    const size_t before = line.length;
    dts_room_text(r, &line);
    if (line.length > before) {
        dts_text_add(&line, ".");
        dts_text_add(p->out, "\n");
        paragraph(p, dts_text_string(&line));
    }
    dts_text_end(&line, p->out);
}

static void write_page(const page *p) {
    write_title(p);
    write_advice(p);
    write_shares(p);
    write_path(p);
    write_kernels(p);
    write_transfers(p);
    write_memory(p);
    write_what_ifs(p);
    write_evidence(p);
    write_warnings(p);
    write_inputs(p);
}

dts_status dts_explain_text(const dts_result *result, const dts_explain_options *options, dts_text *out) {
    page p = {.result = result, .e = result->explanation, .options = options, .style = &options->style, .out = out};
    write_page(&p);
    return dts_text_status(out);
}

dts_status dts_explain_html(const dts_result *result, const dts_explain_options *options, dts_text *out) {
    const dts_style style = {.width = 1 << 20, .unicode = true}; /* all columns; a browser breaks lines */
    page p = {
        .result = result, .e = result->explanation, .options = options, .style = &style, .out = out, .html = true};
    write_page(&p);
    dts_html_end(out);
    return dts_text_status(out);
}
