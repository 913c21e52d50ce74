#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/cure.h"
#include "report/format.h"
#include "report/grid.h"
#include "report/validate.h"

enum { INDENT = 2, BAR_HALF_LEAST = 4, BAR_HALF_MOST = 10, IDS_SHOWN = 3, NUMBERS_COLUMNS = 34, GROUP_BAR_HALF = 7 };

/* When rows lean one way: so many, off by so much, nearly all in one direction. */
enum { LEANING_LEAST = 4 };
static const double LEANING_PCT = 10, LEANING_SHARE = 0.95;
static const double bar_full_pct = 50; /* the error at which a bar is full */

/* The error as a bar of half columns to the left (too low) or right (too high) of the middle. */
static void add_error_bar(const dts_style *style, double error_pct, size_t half, dts_text *out) {
    double cells = fabs(error_pct) / bar_full_pct * (double)half;
    size_t full = cells > (double)half ? half : (size_t)(cells + 0.5);
    const char *block = style->unicode ? "▬" : "=";
    bool low = error_pct < 0;
    dts_text_add_repeated(out, " ", low ? half - full : half);
    dts_text_add_repeated(out, block, low ? full : 0);
    dts_text_add(out, style->unicode ? "│" : "|");
    dts_text_add_repeated(out, block, low ? 0 : full);
}

/* Columns that are left for each half of the bars beside the longest id of the metric; 0: no room for bars. */
static size_t bar_half(const dts_validation *v, int metric, const dts_style *style) {
    size_t longest = strlen("id");
    for (size_t i = 0; i < v->record_count; i++) {
        size_t length = dts_style_columns(v->records[i].id);
        longest = v->records[i].metric == metric && length > longest ? length : longest;
    }
    size_t others = INDENT + longest + NUMBERS_COLUMNS + 1;
    size_t half = (size_t)style->width > others ? ((size_t)style->width - others) / 2 : 0;
    return half < BAR_HALF_LEAST ? 0 : half > BAR_HALF_MOST ? BAR_HALF_MOST : half;
}

/* " *" behind what does not fit, " ?" behind what may run out of memory, " ^" behind what has retries in its time. */
static const char *mark_of(const dts_validate_record *record) {
    return record->lack.of != NULL ? " *" : dts_report_fit_mark(true, record->strain);
}

static void add_signed(dts_grid *grid, double percent) {
    char buffer[32];
    dts_grid_add(grid, dts_formatted(dts_format_change, percent / 100, buffer, sizeof buffer));
}

static void add_record(dts_grid *grid, const dts_validate_record *record, const dts_style *style, size_t half) {
    double error_pct = 100 * (record->predicted - record->measured) / record->measured;
    dts_grid_printf(grid, "%s%s", record->id, mark_of(record));
    dts_grid_printf(grid, "%.4g", record->measured);
    dts_grid_printf(grid, "%.4g", record->predicted);
    add_signed(grid, error_pct);
    if (half > 0) {
        dts_text bar = {0};
        add_error_bar(style, error_pct, half, &bar);
        dts_grid_add(grid, dts_text_string(&bar));
        dts_text_free(&bar);
    }
}

/* Which rows do not fit, and by how much. */
static void write_lacks(const dts_validation *v, int metric, const dts_style *style, dts_text *out) {
    dts_text line = {0};
    dts_text_add(&line,
                 "* the simulator says that this does not fit; GiB of live tensors and context on the fullest GPU:");
    size_t count = 0;
    for (size_t i = 0; i < v->record_count; i++) {
        const dts_validate_record *r = &v->records[i];
        if (r->metric == metric && r->lack.of != NULL) {
            const bool gpu = strcmp(r->lack.of, "GPU") == 0;
            dts_text_printf(&line, "%s %s %.1f of %.1f%s%s", count++ > 0 ? "," : "", r->id, r->lack.needed_gib,
                            r->lack.capacity_gib, gpu ? "" : " offloaded to ", gpu ? "" : r->lack.of);
        }
    }
    if (count > 0) {
        dts_text_printf(out, "%*s", INDENT, "");
        dts_style_wrap(style, dts_text_string(&line), INDENT + 2, out);
    }
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

/* Which rows have retries in their time, and which may run out: metric < 0: of all. */
static void write_strains(const dts_validation *v, int metric, const dts_style *style, dts_text *out) {
    static const char *const heads[] = {
        "^ near the GPU's capacity: retries of the caching allocator are in the time, and a little less memory would "
        "leave "
        "none; share of the iteration:",
        "? live tensors fit, but a request fails in the replay of the caching allocator: the time is one without "
        "retries:"};
    for (int which = 0; which < 2; which++) {
        dts_text line = {0};
        dts_text_add(&line, heads[which]);
        size_t count = 0;
        const char *last = "";
        for (size_t i = 0; i < v->record_count; i++) {
            const dts_validate_record *r = &v->records[i];
            const char *mark = mark_of(r);
            if ((metric >= 0 && r->metric != metric) || mark[0] == '\0' || mark[1] != heads[which][0] ||
                strcmp(last, r->id) == 0) {
                continue;
            }
            last = r->id;
            dts_text_printf(&line, "%s %s", count++ > 0 ? "," : "", r->id);
            if (which == 0) {
                dts_text_printf(&line, " %.0f %%", 100 * r->strain.retry_share);
            }
        }
        if (count > 0) {
            dts_text_printf(out, "%*s", INDENT, "");
            dts_style_wrap(style, dts_text_string(&line), INDENT + 2, out);
        }
        out->failed = out->failed || line.failed;
        dts_text_free(&line);
    }
}

static void write_metric(const dts_validation *v, int metric, const dts_style *style, dts_text *out) {
    size_t half = bar_half(v, metric, style);
    char scale[2 * BAR_HALF_MOST + 2];
    snprintf(scale, sizeof scale, "%-*s|%*s", (int)half, "-50%", (int)half, "+50%");
    const char *const titles[] = {"id", "measured", "predicted", "error", scale};
    dts_grid *grid = dts_grid_new(titles, half > 0 ? 5 : 4, 1u | 1u << 4);
    dts_grid_keep(grid, 1u | 1u << 4);
    size_t n = 0;
    for (size_t i = 0; i < v->record_count; i++) {
        if (v->records[i].metric == metric) {
            add_record(grid, &v->records[i], style, half);
            n++;
        }
    }
    if (n > 0) {
        dts_text_add(out, "\n");
        dts_style_add(style, DTS_PAINT_STRONG, dts_metrics[metric].name, out);
        dts_text_printf(out, " (%s)\n", dts_metrics[metric].unit);
        dts_grid_print(grid, style, INDENT, out);
    }
    write_lacks(v, metric, style, out);
    write_strains(v, metric, style, out);
    dts_grid_free(grid);
}

static void add_summary_row(dts_grid *grid, const char *metric, const char *by, const dts_validate_summary *s) {
    dts_grid_add(grid, metric);
    dts_grid_add(grid, by);
    dts_grid_printf(grid, "%zu", s->n);
    dts_grid_printf(grid, "%.1f %%", s->mape_pct);
    dts_grid_printf(grid, "%.1f %%", s->median_ape_pct);
    dts_grid_printf(grid, "%.1f %%", s->p90_ape_pct);
    add_signed(grid, s->bias_pct);
    if (isfinite(s->spearman)) {
        dts_grid_printf(grid, "%.3f", s->spearman);
    } else {
        dts_grid_add(grid, "-");
    }
}

/* How wrong the same predictions of a rate are in seconds. */
static void add_time_row(dts_grid *grid, const dts_validate_summary *s) {
    dts_grid_add(grid, "");
    dts_grid_add(grid, "dtsim, as time");
    dts_grid_printf(grid, "%zu", s->n);
    dts_grid_printf(grid, "%.1f %%", s->time_mape_pct);
    dts_grid_add(grid, "");
    dts_grid_add(grid, "");
    add_signed(grid, s->time_bias_pct);
    dts_grid_add(grid, "");
}

static dts_status write_summary(const dts_validation *v, const dts_style *style, dts_text *out) {
    static const char *const titles[] = {"metric", "predicted by", "n", "MAPE", "median", "p90", "bias", "rank"};
    static const char *const by[] = {"dtsim", "one utilisation", "… and bubble"};
    static const char *const by_ascii[] = {"dtsim", "one utilisation", "+ bubble"};
    dts_grid *grid = dts_grid_new(titles, 8, 3);
    dts_status status = DTS_OK;
    for (int m = 0; m < DTS_METRIC_COUNT; m++) {
        for (int b = -1; b < DTS_BASELINE_COUNT && status == DTS_OK; b++) {
            dts_validate_summary s;
            status = dts_validation_summary(v, m, b, &s);
            if (status == DTS_OK && s.n > 0) {
                add_summary_row(grid, b < 0 ? dts_metrics[m].name : "", (style->unicode ? by : by_ascii)[b + 1], &s);
                if (b < 0 && dts_metrics[m].kind == DTS_METRIC_RATE) {
                    add_time_row(grid, &s);
                }
            }
        }
    }
    if (v->record_count == 0) {
        dts_grid_free(grid);
        return status;
    }
    dts_text_add(out, "\n");
    dts_style_add(style, DTS_PAINT_STRONG, "Summary", out);
    dts_text_add(out, "\n");
    dts_grid_print(grid, style, INDENT, out);
    dts_grid_free(grid);
    return status;
}

/* A line per group and metric; the bar shows the bias. */
static dts_status write_groups(const dts_validation *v, const dts_style *style, dts_text *out) {
    if (v->by == NULL || v->record_count == 0) {
        return DTS_OK;
    }
    static const char *const titles[] = {"group", "metric", "n", "MAPE", "p90", "bias", "rank", "-50%   |   +50%"};
    dts_grid *grid = dts_grid_new(titles, 8, 3u | 1u << 7);
    dts_grid_keep(grid, 1u | 1u << 7);
    dts_status status = DTS_OK;
    for (size_t g = 0; g < v->group_count; g++) {
        const char *name = v->groups[g];
        for (int m = 0; m < DTS_METRIC_COUNT && status == DTS_OK; m++) {
            dts_validate_summary s;
            status = dts_validation_group_summary(v, m, g, &s);
            if (status != DTS_OK || s.n == 0) {
                continue;
            }
            dts_grid_add(grid, name);
            dts_grid_add(grid, dts_metrics[m].name);
            dts_grid_printf(grid, "%zu", s.n);
            dts_grid_printf(grid, "%.1f %%", s.mape_pct);
            dts_grid_printf(grid, "%.1f %%", s.p90_ape_pct);
            add_signed(grid, s.bias_pct);
            dts_grid_printf(grid, isfinite(s.spearman) ? "%.3f" : "-", s.spearman);
            dts_text bar = {0};
            add_error_bar(style, s.bias_pct, GROUP_BAR_HALF, &bar);
            dts_grid_add(grid, dts_text_string(&bar));
            dts_text_free(&bar);
            name = "";
        }
    }
    dts_text_add(out, "\n");
    dts_style_printf(style, DTS_PAINT_STRONG, out, "By %s", v->by);
    dts_text_add(out, "\n");
    dts_grid_print(grid, style, INDENT, out);
    dts_grid_free(grid);
    return status;
}

/* Instead of all rows: those with the largest errors. */
static dts_status write_worst(const dts_validation *v, const dts_style *style, dts_text *out) {
    size_t *worst = malloc((v->worst + 1) * sizeof *worst);
    if (worst == NULL) {
        return DTS_NOMEM;
    }
    size_t count = dts_validation_worst(v, worst);
    static const char *const titles[] = {"id", "metric", "measured", "predicted", "error", "-50%   |   +50%"};
    dts_grid *grid = dts_grid_new(titles, 6, 3u | 1u << 5);
    dts_grid_keep(grid, 1u | 1u << 5);
    for (size_t i = 0; i < count; i++) {
        const dts_validate_record *record = &v->records[worst[i]];
        double error_pct = 100 * (record->predicted - record->measured) / record->measured;
        dts_grid_printf(grid, "%s%s", record->id, mark_of(record));
        dts_grid_add(grid, dts_metrics[record->metric].name);
        dts_grid_printf(grid, "%.4g", record->measured);
        dts_grid_printf(grid, "%.4g", record->predicted);
        add_signed(grid, error_pct);
        dts_text bar = {0};
        add_error_bar(style, error_pct, GROUP_BAR_HALF, &bar);
        dts_grid_add(grid, dts_text_string(&bar));
        dts_text_free(&bar);
    }
    free(worst);
    if (count > 0) {
        dts_text_add(out, "\n");
        dts_style_printf(style, DTS_PAINT_STRONG, out, "The %zu largest errors", count);
        dts_text_add(out, "\n");
        dts_grid_print(grid, style, INDENT, out);
    }
    dts_grid_free(grid);
    return DTS_OK;
}

static void write_fitted(const dts_validation *v, const dts_style *style, dts_text *out) {
    bool any = false;
    for (size_t t = 0; t < v->table_count; t++) {
        any = any || isfinite(v->tables[t].utilisation[DTS_BASELINE_UTILISATION]);
    }
    if (!any) {
        return;
    }
    dts_text_add(out, "\n  ");
    dts_style_wrap(style,
                   "The baselines are what anyone could guess: time = model FLOPs / (peak x u), with the u that suits "
                   "each table best, and the same times 1 + (p-1)/(m v) for the pipeline's bubble.",
                   INDENT, out);
    for (size_t t = 0; t < v->table_count; t++) {
        const double *u = v->tables[t].utilisation;
        if (isfinite(u[DTS_BASELINE_UTILISATION])) {
            dts_text_printf(out, "  u = %.3f, with bubble %.3f in %s\n", u[DTS_BASELINE_UTILISATION],
                            u[DTS_BASELINE_BUBBLE], v->tables[t].path);
        }
    }
}

/* Failures with the same reason are told together, with the first few rows. */
static void write_failures(const dts_validation *v, const dts_style *style, dts_text *out) {
    if (v->failure_count == 0) {
        return;
    }
    dts_text_add(out, "\n");
    dts_style_printf(style, DTS_PAINT_STRONG, out, "Not simulated");
    dts_text_printf(out, " (%zu row%s)\n", v->failure_count, v->failure_count == 1 ? "" : "s");
    for (size_t i = 0; i < v->failure_count; i++) {
        bool told = false;
        for (size_t j = 0; j < i && !told; j++) {
            told = strcmp(v->failures[j].reason, v->failures[i].reason) == 0;
        }
        if (told) {
            continue;
        }
        dts_text line = {0};
        size_t same = 0;
        dts_text_printf(&line, "%s:", v->failures[i].reason);
        for (size_t j = i; j < v->failure_count; j++) {
            if (strcmp(v->failures[j].reason, v->failures[i].reason) == 0 && same++ < IDS_SHOWN) {
                dts_text_printf(&line, "%s %s (line %u)", same > 1 ? "," : "", v->failures[j].id, v->failures[j].line);
            }
        }
        if (same > IDS_SHOWN) {
            dts_text_printf(&line, " and %zu more", same - IDS_SHOWN);
        }
        dts_text_printf(out, "  %4zu  ", same);
        dts_style_wrap(style, dts_text_string(&line), INDENT + 6, out);
        out->failed = out->failed || line.failed;
        dts_text_free(&line);
    }
}

/* Rows whose measurements no GPU of their kind can have made. */
static void write_impossible(const dts_validation *v, const dts_style *style, dts_text *out) {
    dts_text line = {0};
    for (size_t i = 0; i < v->record_count; i++) {
        const dts_validate_record *record = &v->records[i];
        const double mfu = dts_validate_measured_mfu(record);
        if (mfu > 1) {
            dts_text_printf(&line, "%s %s (%.0f %%)", line.length == 0 ? "" : ",", record->id, 100 * mfu);
        }
    }
    if (line.length > 0) {
        dts_text_add(out, "\n");
        dts_style_add(style, DTS_PAINT_STRONG, "Measured above the peak of the GPUs", out);
        dts_text_add(out, "\n  ");
        dts_text_add(&line,
                     ": model FLOPs as the row describes them, of the peak. Some fact of such a row is wrong or "
                     "missing, for instance the length of sequences without padding.");
        dts_style_wrap(style, dts_text_string(&line) + 1, INDENT, out);
    }
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

/* "units.csv, more.csv": the tables from first on whose column seems to be in this unit. */
static void add_tables(const dts_validation *v, size_t first, int metric, const char *unit, dts_text *out) {
    for (size_t t = first; t < v->table_count; t++) {
        if (dts_validation_other_unit(v, t, metric) == unit) {
            dts_text_printf(out, "%s%s", t > first ? ", " : "", v->tables[t].path);
        }
    }
}

/* Is it the first table in this unit? The others are named beside it. */
static bool is_first_in(const dts_validation *v, size_t table, int metric, const char *unit) {
    bool first = true;
    for (size_t t = 0; t < table; t++) {
        first = first && dts_validation_other_unit(v, t, metric) != unit;
    }
    return first;
}

static void write_units(const dts_validation *v, const dts_style *style, dts_text *out) {
    bool any = false;
    for (int m = 0; m < DTS_METRIC_COUNT; m++) {
        for (size_t t = 0; t < v->table_count; t++) {
            const char *unit = dts_validation_other_unit(v, t, m);
            if (unit == NULL || !is_first_in(v, t, m, unit)) {
                continue;
            }
            dts_text_add(out, any ? "" : "\n");
            if (!any) {
                dts_style_add(style, DTS_PAINT_STRONG, "Another unit?", out);
                dts_text_add(out, "\n");
            }
            any = true;
            dts_text line = {0};
            dts_text_printf(&line, "measured.%s of ", dts_metrics[m].name);
            add_tables(v, t, m, unit, &line);
            dts_text_printf(&line, ": is it %s? The column is for %s.", unit, dts_metrics[m].unit);
            dts_text_add(out, "  ");
            dts_style_wrap(style, dts_text_string(&line), INDENT, out);
            dts_text_end(&line, out);
        }
    }
}

static bool is_in_another_unit(const dts_validation *v, int metric) {
    bool any = false;
    for (size_t t = 0; t < v->table_count; t++) {
        any = any || dts_validation_other_unit(v, t, metric) != NULL;
    }
    return any;
}

/* Rows whose time is predicted too short. */
static size_t count_fast(const dts_validation *v, int metric) {
    size_t fast = 0;
    for (size_t i = 0; i < v->record_count; i++) {
        const dts_validate_record *r = &v->records[i];
        const bool rate = dts_metrics[metric].kind == DTS_METRIC_RATE;
        fast += r->metric == metric && (rate ? r->predicted > r->measured : r->predicted < r->measured);
    }
    return fast;
}

/* Where nearly all rows are off in one direction, one cause may be behind them. */
static dts_status write_lean(const dts_validation *v, const dts_style *style, dts_text *out) {
    for (int m = 0; m < DTS_METRIC_COUNT; m++) {
        dts_validate_summary s;
        const dts_status status = dts_validation_summary(v, m, -1, &s);
        if (status != DTS_OK) {
            return status;
        }
        if (dts_metrics[m].kind == DTS_METRIC_MEMORY || s.n < LEANING_LEAST || s.time_mape_pct < LEANING_PCT ||
            fabs(s.time_bias_pct) < LEANING_SHARE * s.time_mape_pct || is_in_another_unit(v, m)) {
            continue;
        }
        const bool fast = s.time_bias_pct < 0;
        const size_t fast_rows = count_fast(v, m);
        dts_text line = {0};
        dts_text_printf(&line,
                        "%zu of %zu rows are predicted too %s, all of them by %.0f %% on average. Where a fact that "
                        "they share is not the cause (network, stack, what is fused; `dtsim explain` says where the "
                        "time goes), `dtsim calibrate TABLE --fit KEY` fits a number of a profile to them.",
                        fast ? fast_rows : s.n - fast_rows, s.n, fast ? "fast" : "slow", fabs(s.time_bias_pct));
        dts_text_add(out, "\n  ");
        dts_style_wrap(style, dts_text_string(&line), INDENT, out);
        const bool failed = line.failed;
        dts_text_free(&line);
        return failed ? DTS_NOMEM : DTS_OK;
    }
    return DTS_OK;
}

dts_status dts_validation_text(const dts_validation *validation, const dts_style *style, dts_text *out) {
    for (size_t t = 0; t < validation->table_count; t++) {
        const dts_validate_table *table = &validation->tables[t];
        dts_style_add(style, DTS_PAINT_STRONG, table->path, out);
        dts_text_printf(out, ": %zu row%s, %zu simulated, %zu not\n", table->rows, table->rows == 1 ? "" : "s",
                        table->simulated, table->rows - table->simulated);
    }
    dts_status status = DTS_OK;
    for (int m = 0; m < DTS_METRIC_COUNT && validation->worst == 0; m++) {
        write_metric(validation, m, style, out);
    }
    if (validation->worst > 0) {
        status = write_worst(validation, style, out);
    }
    status = status == DTS_OK ? write_groups(validation, style, out) : status;
    status = status == DTS_OK ? write_summary(validation, style, out) : status;
    write_fitted(validation, style, out);
    write_units(validation, style, out);
    status = status == DTS_OK ? write_lean(validation, style, out) : status;
    write_impossible(validation, style, out);
    write_failures(validation, style, out);
    return status != DTS_OK ? status : dts_text_status(out);
}
