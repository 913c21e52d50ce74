/* The page that a person reads after `dtsim run`: first what was asked (time, throughput, memory), then why. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/cure.h"
#include "report/format.h"
#include "report/grid.h"
#include "report/report.h"
#include "report/rows.h"

enum {
    INDENT = 2,
    LIST_INDENT = 4,
    LABEL_COLUMNS = 22,
    BAR_LEAST = 10,
    BAR_MOST = 40,
    NUMBER_COLUMNS = 10,
    FACT_COLUMNS = 17,
    VERDICT_COLUMNS = 13,
    SHARE_COLUMNS = 10
};

typedef struct page {
    const dts_result *result;
    const dts_style *style;
    dts_text *out;
    size_t bar_columns;
} page;

static void heading(const page *p, const char *title) {
    dts_text_add(p->out, "\n");
    dts_style_add(p->style, DTS_PAINT_STRONG, title, p->out);
    dts_text_add(p->out, "\n");
}

static void label(const page *p, const char *text) {
    dts_text_add_repeated(p->out, " ", INDENT);
    dts_style_pad(p->style, text, LABEL_COLUMNS, p->out);
}

/* What is left of the window for a bar beside a label and others. */
static size_t bar_columns(const dts_style *style, int others) {
    int left = style->width - INDENT - LABEL_COLUMNS - others;
    return left < BAR_LEAST ? BAR_LEAST : left > BAR_MOST ? BAR_MOST : (size_t)left;
}

static const char *known(const char *text) {
    return text != NULL ? text : "?";
}

/* "name  text": wrapped when it is long. */
static void fact(const page *p, const char *name, dts_text *text) {
    dts_text plain = {0};
    dts_style_plain(p->style, dts_text_string(text), &plain);
    label(p, name);
    dts_style_wrap(p->style, dts_text_string(&plain), INDENT + LABEL_COLUMNS, p->out);
    p->out->failed = p->out->failed || text->failed || plain.failed;
    dts_text_free(&plain);
    dts_text_clear(text);
}

static void write_title(const page *p) {
    const dts_result *r = p->result;
    dts_style_add(p->style, DTS_PAINT_STRONG, known(r->scenario), p->out);
    dts_text_add(p->out, "\n");
    dts_text line = {0};
    dts_text_printf(&line, "%s, ", known(r->model));
    dts_parameters_text(r, &line);
    fact(p, "Model", &line);
    dts_text_printf(&line, "%lld GPU%s: %lld node%s of %s; %s", (long long)r->gpus, r->gpus == 1 ? "" : "s",
                    (long long)r->nodes, r->nodes == 1 ? "" : "s", known(r->cluster), known(r->stack));
    fact(p, "Cluster", &line);
    dts_text_add(&line, known(r->plan));
    fact(p, "Plan", &line);
    dts_format_count((double)r->global_batch, &line);
    if (r->new_tokens < r->sequence_length) {
        dts_text_printf(&line, " samples, a token of each behind %lld, ", (long long)r->sequence_length);
    } else {
        dts_text_printf(&line, " samples of %lld tokens, ", (long long)r->sequence_length);
    }
    if (r->microbatches > 1) {
        dts_text_printf(&line, "%lld microbatches of %lld per replica", (long long)r->microbatches,
                        (long long)r->micro_batch);
    } else {
        dts_text_printf(&line, "%lld per replica", (long long)r->micro_batch);
    }
    fact(p, "Batch", &line);
    if (r->measured_times != NULL) {
        dts_text_add(&line, r->measured_times);
        fact(p, "Measured", &line);
    }
    dts_text_free(&line);
}

/* "name  first   second   third": up to three facts in a row, the first one strong. Frees the cells. */
static void facts(const page *p, const char *name, dts_text cells[3]) {
    label(p, name);
    for (size_t i = 0; i < 3 && cells[i].length > 0; i++) {
        dts_paint paint = i == 0 ? DTS_PAINT_STRONG : DTS_PAINT_NONE;
        dts_style_add(p->style, paint, dts_text_string(&cells[i]), p->out);
        if (i < 2 && cells[i + 1].length > 0) {
            size_t columns = dts_style_columns(dts_text_string(&cells[i]));
            dts_text_add_repeated(p->out, " ", columns + 2 < FACT_COLUMNS ? FACT_COLUMNS - columns : 2);
        }
    }
    dts_text_add(p->out, "\n");
    for (size_t i = 0; i < 3; i++) {
        p->out->failed = p->out->failed || cells[i].failed;
        dts_text_free(&cells[i]);
    }
}

static void write_causal(const page *p) {
    if (p->result->causal_mfu < 0.9 * p->result->mfu) {
        dts_text causal = {0};
        dts_text_printf(&causal, "%.1f %%: MFU counts attention among all tokens, as is usual, and half is computed",
                        100 * p->result->causal_mfu);
        fact(p, "Causal MFU", &causal);
        dts_text_free(&causal);
    }
}

static void write_speed(const page *p) {
    const dts_result *r = p->result;
    dts_text_add(p->out, "\n");
    dts_text speed[3] = {{0}, {0}, {0}};
    dts_format_time(r->iteration_time_s, &speed[0]);
    dts_format_count(r->samples_per_s, &speed[1]);
    dts_text_add(&speed[1], " samples/s");
    dts_format_count(r->tokens_per_s, &speed[2]);
    dts_text_add(&speed[2], " tokens/s");
    facts(p, "Iteration time", speed);
    if (r->likely.high_s > 0) {
        dts_text likely = {0};
        dts_likely_text(r, &likely);
        dts_text_add(&likely, ": four of five published runs were that near");
        fact(p, "Likely", &likely);
        dts_text_free(&likely);
    }

    dts_text gpu[3] = {{0}, {0}, {0}};
    dts_format_count(r->tokens_per_s_per_gpu, &gpu[0]);
    dts_text_add(&gpu[0], " tokens/s");
    dts_text_printf(&gpu[1], "%.1f TFLOP/s", r->model_tflops_per_gpu);
    dts_text_printf(&gpu[2], "MFU %.1f", 100 * r->mfu);
    if (fabs(r->hfu - r->mfu) > 0.0005) {
        dts_text_printf(&gpu[2], ", HFU %.1f", 100 * r->hfu);
    }
    dts_text_add(&gpu[2], " %");
    facts(p, "Per GPU", gpu);
    write_causal(p);

    dts_text overhead[3] = {{0}, {0}, {0}};
    dts_format_count(r->aco_ms_per_sample, &overhead[0]);
    dts_text_add(&overhead[0], " ms/sample");
    dts_format_count(r->exposed_aco_ms_per_sample, &overhead[1]);
    dts_text_add(&overhead[1], " ms exposed");
    facts(p, "Communication (ACO)", overhead);
    if (r->price_usd_per_hour > 0) {
        dts_text price[3] = {{0}, {0}, {0}};
        dts_text_printf(&price[0], "%.2f USD/h", r->price_usd_per_hour);
        if (r->idle_gpus > 0) {
            dts_text_printf(&price[2], "%" PRId64 " GPU%s idle in it", r->idle_gpus, r->idle_gpus == 1 ? "" : "s");
        }
        const double usd_per_billion = r->price_usd_per_hour / 3600 / r->tokens_per_s * 1e9;
        if (!r->fits) {
            dts_text_add(&price[1], "no price of tokens: it does not fit");
        } else if (usd_per_billion < 1000) {
            dts_text_printf(&price[1], "%.2f USD per billion tokens", usd_per_billion);
        } else {
            dts_format_count(usd_per_billion, &price[1]);
            dts_text_add(&price[1], " USD per billion tokens");
        }
        facts(p, "Price", price);
    }
    if (r->host_peak_gib > 0) {
        dts_text host[3] = {{0}, {0}, {0}};
        dts_text_printf(&host[0], "%.0f of %.0f GiB", r->host_peak_gib, r->host_capacity_gib);
        dts_text_add(&host[1], "of a node, by offload");
        facts(p, "Host memory", host);
    }
    if (r->nvme_peak_gib > 0) {
        dts_text drives[3] = {{0}, {0}, {0}};
        dts_text_printf(&drives[0], "%.0f of %.0f GiB", r->nvme_peak_gib, r->nvme_capacity_gib);
        dts_text_add(&drives[1], "of a node, by offload");
        facts(p, "NVMe", drives);
    }
    if (r->ranks.count > 0) {
        dts_text ranks[3] = {{0}, {0}, {0}};
        dts_text_printf(&ranks[0], "GPU %" PRId64 " critical", r->ranks.critical);
        dts_format_time(r->ranks.critical_busy_s, &ranks[1]);
        dts_text_add(&ranks[1], " busy");
        dts_text_add(&ranks[2], "least ");
        dts_format_time(r->ranks.least_busy_s, &ranks[2]);
        dts_text_printf(&ranks[2], ", GPU %" PRId64, r->ranks.least_busy);
        facts(p, "Ranks", ranks);
    }
}

static void write_fit(const page *p) {
    const dts_result *r = p->result;
    double share = r->capacity_gib > 0 ? r->peak_device_gib / r->capacity_gib : 0;
    dts_paint paint = !r->fits                                  ? DTS_PAINT_BAD
                      : share > 0.9 || r->allocator.retries > 0 ? DTS_PAINT_WARN
                                                                : DTS_PAINT_GOOD;
    label(p, "Peak memory");
    dts_text amount = {0};
    dts_text_printf(&amount, "%.1f of %.1f GiB", r->peak_device_gib, r->capacity_gib);
    dts_style_begin(p->style, DTS_PAINT_STRONG, p->out);
    size_t columns = amount.length < FACT_COLUMNS ? FACT_COLUMNS : amount.length + 1;
    dts_style_pad(p->style, dts_text_string(&amount), columns, p->out);
    dts_style_end(p->style, DTS_PAINT_STRONG, p->out);
    dts_text_free(&amount);
    dts_style_bar(p->style, paint, share, bar_columns(p->style, (int)columns + VERDICT_COLUMNS), p->out);
    dts_text_add(p->out, " ");
    const char *verdict = !r->fits                                                   ? "DOES NOT FIT"
                          : r->allocator.unserved_gib > 0 || dts_fits_by_estimate(r) ? "may not fit"
                          : r->allocator.retries > 0                                 ? "fits, but"
                                                                                     : "fits";
    dts_style_add(p->style, paint, verdict, p->out);
    dts_text_add(p->out, "\n");
    if (!r->fits) {
        dts_text cure = {0};
        dts_report_cure(r, &cure);
        dts_text_add_repeated(p->out, " ", INDENT + LABEL_COLUMNS);
        dts_report_cure_lines(dts_text_string(&cure), p->style, INDENT + LABEL_COLUMNS, LIST_INDENT, p->out);
        p->out->failed = p->out->failed || cure.failed;
        dts_text_free(&cure);
    } else if (r->allocator.retries > 0 || r->allocator.unserved_gib > 0) {
        dts_text cost = {0};
        dts_report_pressure(r, &cost);
        dts_text_add_repeated(p->out, " ", INDENT + LABEL_COLUMNS);
        dts_report_cure_lines(dts_text_string(&cost), p->style, INDENT + LABEL_COLUMNS, LIST_INDENT, p->out);
        p->out->failed = p->out->failed || cost.failed;
        dts_text_free(&cost);
    }
    dts_text room = {0};
    dts_room_text(r, &room);
    if (room.length > 0) {
        fact(p, "Room", &room);
    }
    dts_text_free(&room);
}

static void write_bottleneck(const page *p) {
    if (p->result->bottleneck != NULL) {
        label(p, "Bottleneck");
        dts_style_wrap(p->style, p->result->bottleneck, INDENT + LABEL_COLUMNS, p->out);
    }
}

/* "name  bar  amount  share". */
static void write_share(const page *p, const char *name, dts_paint paint, double share, const char *amount) {
    label(p, name);
    dts_style_bar(p->style, paint, share, p->bar_columns, p->out);
    dts_text_add(p->out, " ");
    dts_style_pad_left(p->style, amount, NUMBER_COLUMNS, p->out);
    dts_text_printf(p->out, " %6.1f %%\n", 100 * share);
}

static void write_times(const page *p) {
    const dts_time_shares *t = &p->result->time_s;
    const struct {
        const char *name;
        double seconds;
        dts_paint paint;
    } rows[] = {
        {"compute", t->compute, DTS_PAINT_FORWARD},
        {"exposed communication", t->exposed_communication, DTS_PAINT_COMMUNICATION},
        {"pipeline bubble", t->bubble, DTS_PAINT_BAD},
        {"exposed offload", t->exposed_offload, DTS_PAINT_OFFLOAD},
        {"waiting for the host", t->launches, DTS_PAINT_HOST},
        {"caching allocator", t->allocator, DTS_PAINT_BAD},
        {"token counts (host)", t->token_counts, DTS_PAINT_HOST},
        {"optimizer", t->optimizer, DTS_PAINT_OPTIMIZER},
        {"waiting for input", t->input_wait, DTS_PAINT_INPUT},
    };
    heading(p, "Where the time goes (GPU on the critical path)");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].seconds > 0) {
            char amount[32];
            dts_formatted(dts_format_time, rows[i].seconds, amount, sizeof amount);
            write_share(p, rows[i].name, rows[i].paint, rows[i].seconds / p->result->iteration_time_s, amount);
        }
    }
}

/* The run of many days, where its length was asked for. */
static void write_whole_run(const page *p) {
    static const dts_paint paints[DTS_WHOLE_RUN_ROWS] = {DTS_PAINT_FORWARD, DTS_PAINT_OFFLOAD, DTS_PAINT_BAD,
                                                         DTS_PAINT_HOST};
    const dts_whole_run *w = &p->result->whole_run;
    if (!(w->tokens > 0)) {
        return;
    }
    dts_text title = {0}, remark = {0};
    dts_whole_run_title(p->result, &title);
    heading(p, dts_text_string(&title));
    dts_share_row rows[DTS_WHOLE_RUN_ROWS];
    dts_whole_run_rows(w, rows);
    for (size_t i = 0; i < DTS_WHOLE_RUN_ROWS; i++) {
        if (rows[i].share > 0 && w->goodput < 1) {
            char amount[32];
            dts_formatted(dts_format_duration, rows[i].share * w->expected_s, amount, sizeof amount);
            write_share(p, rows[i].name, paints[i], rows[i].share, amount);
        }
    }
    dts_whole_run_remark(p->result, &remark);
    if (remark.length > 0) {
        dts_text_add_repeated(p->out, " ", INDENT);
        dts_style_wrap(p->style, dts_text_string(&remark), INDENT, p->out);
    }
    p->out->failed = p->out->failed || title.failed || remark.failed;
    dts_text_free(&title);
    dts_text_free(&remark);
}

static void write_memory(const page *p) {
    dts_memory_row rows[DTS_MEMORY_ROWS];
    dts_memory_rows(&p->result->memory_gib, rows);
    heading(p, "Memory of the fullest GPU at its peak (share of the GPU's)");
    for (size_t i = 0; i < DTS_MEMORY_ROWS; i++) {
        if (rows[i].gib > 0) {
            char amount[32];
            snprintf(amount, sizeof amount, "%.2f GiB", rows[i].gib);
            write_share(p, rows[i].name, DTS_PAINT_FORWARD, rows[i].gib / p->result->capacity_gib, amount);
        }
    }
}

/* A line under a table, if there is anything to say. */
static void write_remark(const page *p, void (*write)(const dts_result *, dts_text *)) {
    dts_text remark = {0};
    write(p->result, &remark);
    if (dts_text_string(&remark)[0] != '\0') {
        dts_text_add_repeated(p->out, " ", INDENT);
        dts_style_wrap(p->style, dts_text_string(&remark), INDENT, p->out);
    }
    p->out->failed = p->out->failed || remark.failed;
    dts_text_free(&remark);
}

static void write_communication(const page *p) {
    const dts_result *r = p->result;
    if (r->communication_count == 0) {
        return;
    }
    static const char *const titles[] = {"operation", "group", "times", "bytes", "total", "exposed", "rate"};
    dts_grid *grid = dts_grid_new(titles, 7, 3);
    char buffer[32];
    for (size_t i = 0; i < r->communication_count; i++) {
        const dts_communication_row *row = &r->communication[i];
        dts_grid_add(grid, row->kind);
        dts_grid_add(grid, row->group);
        dts_grid_add(grid, dts_formatted(dts_format_count, (double)row->count, buffer, sizeof buffer));
        dts_grid_add(grid, dts_formatted(dts_format_bytes, row->bytes, buffer, sizeof buffer));
        dts_grid_add(grid, dts_formatted(dts_format_time, row->total_s, buffer, sizeof buffer));
        dts_grid_add(grid, dts_formatted(dts_format_time, row->exposed_s, buffer, sizeof buffer));
        dts_grid_printf(grid, "%.1f GB/s", row->total_s > 0 ? row->bytes / row->total_s / 1e9 : 0.0);
    }
    heading(p, "Communication of one GPU per iteration");
    dts_grid_print(grid, p->style, INDENT, p->out);
    dts_grid_free(grid);
    write_remark(p, dts_awaited_text);
}

static void write_stages(const page *p) {
    const dts_result *r = p->result;
    if (r->stage_count < 2) {
        return;
    }
    static const char *const titles[] = {"stage", "layers",      "parameters", "compute",
                                         "idle",  "peak memory", "reached by"};
    dts_grid *grid = dts_grid_new(titles, 7, 1u << 6);
    char buffer[32];
    for (size_t i = 0; i < r->stage_count; i++) {
        const dts_stage_row *row = &r->stages[i];
        dts_grid_printf(grid, "%lld", (long long)row->stage);
        dts_text layers = {0}, shown = {0};
        dts_stage_layers(row, &layers);
        dts_style_plain(p->style, dts_text_string(&layers), &shown);
        dts_grid_add(grid, dts_text_string(&shown));
        dts_text_free(&layers);
        dts_text_free(&shown);
        dts_grid_add(grid, dts_formatted(dts_format_large, row->parameters, buffer, sizeof buffer));
        dts_grid_add(grid, dts_formatted(dts_format_time, row->compute_s, buffer, sizeof buffer));
        dts_grid_add(grid, dts_formatted(dts_format_percent, row->bubble_fraction, buffer, sizeof buffer));
        dts_grid_printf(grid, "%.1f GiB", row->peak_device_gib);
        dts_grid_add(grid, row->peak_cause != NULL ? row->peak_cause : "");
    }
    heading(p, "Pipeline stages");
    dts_grid_print(grid, p->style, INDENT, p->out);
    dts_grid_free(grid);
    write_remark(p, dts_stage_mean);
}

static void write_warnings(const page *p) {
    if (p->result->warning_count > 0) {
        heading(p, "Warnings");
    }
    for (size_t i = 0; i < p->result->warning_count; i++) {
        dts_style_warning(p->style, p->result->warnings[i], INDENT, p->out);
    }
}

static void write_footer(const page *p) {
    const dts_result *r = p->result;
    dts_text line = {0};
    dts_text_add(&line, "Simulated ");
    dts_format_count((double)r->simulation.tasks, &line);
    dts_text_add(&line, " tasks, ");
    dts_format_count((double)r->simulation.events, &line);
    dts_text_add(&line, " events");
    if (r->simulation.microbatches > 0) {
        dts_text_printf(&line, ", %lld of %lld microbatches, whose steady state stands for the rest",
                        (long long)r->simulation.microbatches, (long long)r->microbatches);
    }
    dts_text_printf(&line, "; detail %s, network %s, ranks %s.", known(r->simulation.detail),
                    known(r->simulation.network), known(r->simulation.ranks));
    dts_text_add(p->out, "\n");
    dts_style_wrap(p->style, dts_text_string(&line), 0, p->out);
    p->out->failed = p->out->failed || line.failed;
    dts_text_free(&line);
}

dts_status dts_report_text(const dts_result *result, const dts_report_options *options, dts_text *out) {
    page p = {.result = result, .style = &options->style, .out = out};
    p.bar_columns = bar_columns(p.style, NUMBER_COLUMNS + SHARE_COLUMNS);
    write_title(&p);
    write_speed(&p);
    write_fit(&p);
    write_bottleneck(&p);
    write_whole_run(&p);
    write_times(&p);
    write_memory(&p);
    write_communication(&p);
    write_stages(&p);
    write_warnings(&p);
    write_footer(&p);
    return dts_text_status(out);
}
