#include "sweep_write.h"

#include <math.h>
#include <string.h>

#include "base/quote.h"
#include "report/cure.h"
#include "report/fields.h"
#include "report/format.h"
#include "report/grid.h"
#include "report/json_tree.h"
#include "run/fastest.h"

enum { GPUS = 0, MFU = 3, FIGURE_COLUMNS = 7, MOST_AXES = DTS_GRID_COLUMNS_MAX - FIGURE_COLUMNS, CELL = 64 };

/* ---- text ---------------------------------------------------------------------------------------------------------
 */

/* The last part of a key, or the whole key when two axes end alike and where keys are joined. */
static const char *short_key(const dts_sweep *sweep, size_t axis) {
    const char *key = sweep->axes[axis].key;
    const char *dot = strrchr(key, '.');
    if (dts_axis_keys(&sweep->axes[axis]) > 1) {
        return key;
    }
    const char *last = dot == NULL ? key : dot + 1;
    for (size_t a = 0; a < sweep->axis_count; a++) {
        const char *other = strrchr(sweep->axes[a].key, '.');
        if (a != axis && strcmp(last, other == NULL ? sweep->axes[a].key : other + 1) == 0) {
            return key;
        }
    }
    return last;
}

static void add_settings(const dts_sweep *sweep, size_t index, dts_grid *grid) {
    if (sweep->axis_count <= MOST_AXES) {
        for (size_t a = 0; a < sweep->axis_count; a++) {
            dts_grid_add(grid, dts_sweep_value(sweep, index, a));
        }
        return;
    }
    dts_text settings = {0};
    dts_sweep_settings(sweep, index, &settings);
    dts_grid_add(grid, dts_text_string(&settings));
    dts_text_free(&settings);
}

static void add_row(const dts_sweep *sweep, size_t index, dts_grid *grid) {
    const dts_figures *f = &sweep->outcomes[index].figures;
    char buffer[CELL];
    add_settings(sweep, index, grid);
    dts_grid_printf(grid, "%lld", (long long)f->gpus);
    dts_grid_add(grid, dts_formatted(dts_format_time, f->iteration_time_s, buffer, sizeof buffer));
    dts_grid_add(grid, dts_formatted(dts_format_count, f->tokens_per_s, buffer, sizeof buffer));
    dts_grid_add(grid, dts_formatted(dts_format_percent, f->mfu, buffer, sizeof buffer));
    dts_grid_printf(grid, "%.1f GiB%s%s", f->peak_device_gib, dts_report_fit_mark(f->fits, dts_figures_strain(f)),
                    dts_report_wide_mark(f->wide));
    if (f->price_usd_per_hour > 0 && f->fits) {
        dts_grid_add(grid, dts_formatted(dts_format_count, f->usd_per_billion_tokens, buffer, sizeof buffer));
    } else {
        dts_grid_add(grid, "");
    }
    dts_grid_add(grid, sweep->pareto[index] ? "*" : "");
}

dts_grid *dts_sweep_grid(const dts_sweep *sweep) {
    const char *titles[DTS_GRID_COLUMNS_MAX];
    size_t columns = 0;
    bool joined = sweep->axis_count > MOST_AXES;
    for (size_t a = 0; a < sweep->axis_count && !joined; a++) {
        titles[columns++] = short_key(sweep, a);
    }
    if (joined) {
        titles[columns++] = "combination";
    }
    size_t axes = columns;
    unsigned settings = (1U << axes) - 1;
    static const char *const figures[FIGURE_COLUMNS] = {"GPUs",   "iteration",      "tokens/s", "MFU",
                                                        "memory", "USD/1e9 tokens", "Pareto"};
    for (size_t i = 0; i < FIGURE_COLUMNS; i++) {
        titles[columns++] = figures[i];
    }
    dts_grid *grid = dts_grid_new(titles, columns, settings);
    dts_grid_keep(grid, settings);
    dts_grid_spare(grid, (1U << MFU | 1U << GPUS) << axes);
    for (size_t i = 0; i < sweep->count; i++) {
        if (sweep->outcomes[i].kind == DTS_OUTCOME_SIMULATED) {
            add_row(sweep, i, grid);
        }
    }
    return grid;
}

bool dts_sweep_any(const dts_sweep *sweep) {
    bool any = false;
    for (size_t i = 0; i < sweep->count; i++) {
        any = any || sweep->outcomes[i].kind == DTS_OUTCOME_SIMULATED;
    }
    return any;
}

/* Combinations that have no figures for the same reason stand together, so that one mistake is read once. */
static bool same_reason(const dts_outcome *a, const dts_outcome *b) {
    const char *one = dts_outcome_help(a), *other = dts_outcome_help(b);
    const bool helps = one != NULL && other != NULL ? strcmp(one, other) == 0 : one == other;
    return helps && a->kind == b->kind && strcmp(dts_outcome_reason(a), dts_outcome_reason(b)) == 0;
}

static void write_reason(const dts_sweep *sweep, size_t first, const dts_style *style, dts_text *out) {
    enum { MOST_SHOWN = 8, INDENT = 4 };
    const dts_outcome *outcome = &sweep->outcomes[first];
    size_t alike = 0;
    for (size_t i = first; i < sweep->count; i++) {
        if (dts_outcome_reason(&sweep->outcomes[i]) != NULL && same_reason(outcome, &sweep->outcomes[i])) {
            alike++;
            if (alike <= MOST_SHOWN) {
                dts_text settings = {0};
                dts_sweep_settings(sweep, i, &settings);
                dts_text_add(out, "  ");
                dts_style_wrap(style, dts_text_string(&settings), INDENT, out);
                out->failed = out->failed || settings.failed;
                dts_text_free(&settings);
            }
        }
    }
    if (alike > MOST_SHOWN) {
        dts_text_printf(out, "  and %zu more\n", alike - MOST_SHOWN);
    }
    dts_text line = {0};
    dts_text_add(&line, dts_outcome_reason(outcome));
    if (dts_outcome_help(outcome) != NULL) {
        dts_text_printf(&line, " (%s)", dts_outcome_help(outcome));
    }
    dts_text_add_repeated(out, " ", INDENT);
    dts_style_wrap(style, dts_text_string(&line), INDENT, out);
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

void dts_sweep_without(const dts_sweep *sweep, dts_outcome_kind kind, const dts_style *style, dts_text *out) {
    enum { MOST_REASONS = 50 };
    size_t firsts[MOST_REASONS], count = 0, others = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        const dts_outcome *outcome = &sweep->outcomes[i];
        bool said = outcome->kind != kind;
        for (size_t k = 0; k < count && !said; k++) {
            said = same_reason(&sweep->outcomes[firsts[k]], outcome);
        }
        if (!said && count < MOST_REASONS) {
            firsts[count++] = i;
        } else if (!said) {
            others++;
        }
    }
    for (size_t k = 0; k < count; k++) {
        write_reason(sweep, firsts[k], style, out);
    }
    if (others > 0) {
        dts_text_printf(out, "  %zu more for other reasons: --format csv has them\n", others);
    }
}

/* The combinations of one work. */
typedef struct contest {
    const dts_sweep *sweep;
    size_t work;
} contest;

static dts_contender contender_at(const void *plans, size_t index) {
    const contest *c = plans;
    const dts_outcome *o = &c->sweep->outcomes[index];
    const bool takes_part = c->sweep->work[index] == c->work && o->kind == DTS_OUTCOME_SIMULATED;
    return (dts_contender){.fits = takes_part && o->figures.fits,
                           .unserved_gib = o->figures.unserved_gib,
                           .tokens_per_s = o->figures.tokens_per_s};
}

static size_t fastest(const contest *c, bool surely) {
    return dts_fastest(c, c->sweep->count, contender_at, surely);
}

/* "Fastest that fits: …", and where that may run out of memory also the fastest that does not. */
static void write_fastest(const contest *c, size_t best, const dts_style *style, dts_text *out) {
    const dts_sweep *sweep = c->sweep;
    dts_text line = {0};
    dts_text_add(&line, "Fastest that fits: ");
    dts_sweep_settings(sweep, best, &line);
    dts_text_printf(&line, " (%s)", sweep->outcomes[best].plan);
    if (sweep->outcomes[best].figures.unserved_gib > 0) {
        size_t sure = fastest(c, true);
        dts_text_add(&line, ", which may run out of memory (?); ");
        if (sure == SIZE_MAX) {
            dts_text_add(&line, "none surely fits");
        } else {
            dts_text_add(&line, "fastest that surely fits: ");
            dts_sweep_settings(sweep, sure, &line);
            dts_text_printf(&line, " (%s)", sweep->outcomes[sure].plan);
        }
    }
    dts_text_add(&line, ".");
    dts_style_wrap(style, dts_text_string(&line), 0, out);
    out->failed = out->failed || line.failed;
    dts_text_free(&line);
}

/* One for each work that has several combinations: a token of another model or length is other work. Returns whether
 * anything fits. */
static bool write_winners(const dts_sweep *sweep, const dts_style *style, dts_text *out) {
    enum { MOST_WINNERS = 12 };
    const bool several = dts_sweep_of_several_works(sweep);
    size_t works = 0, told = 0;
    bool any = false;
    for (size_t i = 0; i < sweep->count; i++) {
        works += sweep->work[i] == i;
    }
    if (several) {
        dts_style_wrap(style,
                       works == sweep->count
                           ? "Their tokens are different work: none is the fastest."
                           : "Tokens of different models or lengths are different work: of each its fastest.",
                       0, out);
    }
    for (size_t i = 0; i < sweep->count; i++) {
        const contest c = {.sweep = sweep, .work = i};
        const size_t best = sweep->work[i] == i ? fastest(&c, false) : SIZE_MAX;
        any = any || best != SIZE_MAX;
        if (best != SIZE_MAX && works < sweep->count + (several ? 0 : 1) && told++ < MOST_WINNERS) {
            write_fastest(&c, best, style, out);
        }
    }
    if (told > MOST_WINNERS) {
        dts_text_printf(out, "and of %zu more.\n", told - MOST_WINNERS);
    }
    return any;
}

void dts_sweep_summary(const dts_sweep *sweep, const dts_style *style, dts_text *out) {
    size_t pending = 0, simulated = 0, unfit = 0, unpriced = 0;
    dts_strain most = {0};
    bool wide = false;
    for (size_t i = 0; i < sweep->count; i++) {
        const dts_outcome *o = &sweep->outcomes[i];
        wide |= o->kind == DTS_OUTCOME_SIMULATED && o->figures.wide;
        pending += o->kind == DTS_OUTCOME_PENDING;
        simulated += o->kind == DTS_OUTCOME_SIMULATED;
        unfit += o->kind == DTS_OUTCOME_SIMULATED && !o->figures.fits;
        dts_strain_add(&most, dts_figures_strain(&o->figures)); /* none where nothing was simulated */
        unpriced += o->kind == DTS_OUTCOME_SIMULATED && !(o->figures.price_usd_per_hour > 0);
    }
    dts_text_printf(out, "%zu combinations: %zu simulated, %zu illegal", sweep->count, simulated, sweep->illegal);
    if (sweep->no_memory > 0) {
        dts_text_printf(out, ", %zu out of memory", sweep->no_memory);
    }
    if (sweep->reused > 0) {
        dts_text_printf(out, "; %zu of them were in the store", sweep->reused);
    }
    dts_text_add(out, ".\n");
    const bool any = write_winners(sweep, style, out);
    if (unfit > 0) {
        dts_text_printf(out, "! does not fit in memory (%zu).\n", unfit);
    }
    dts_report_strain(most, style, 0, out);
    dts_report_wide(wide, style, 0, out);
    if (any) {
        dts_text line = {0};
        dts_text_printf(&line, "* nothing else that fits%s is better in throughput%s at once.",
                        dts_sweep_of_several_works(sweep) ? ", of the same model and length," : "",
                        unpriced == 0 ? ", memory and price of a token" : " and memory");
        dts_style_wrap(style, dts_text_string(&line), 0, out);
        dts_text_end(&line, out);
    }
    if (unpriced > 0) {
        dts_text_printf(out, "Price unknown for %zu: set cluster.price.\n", unpriced);
    }
    if (pending > 0) {
        dts_style_printf(style, DTS_PAINT_WARN, out, "Interrupted: %zu combinations were not begun.\n", pending);
    }
}

dts_status dts_sweep_write_text(const dts_sweep *sweep, const dts_style *style, dts_text *out) {
    if (dts_sweep_any(sweep)) {
        dts_grid *grid = dts_sweep_grid(sweep);
        dts_grid_print(grid, style, 2, out);
        dts_grid_free(grid);
    }
    if (sweep->illegal > 0) {
        dts_text_add(out, out->length > 0 ? "\n" : "");
        dts_style_add(style, DTS_PAINT_STRONG, "Illegal combinations\n", out);
        dts_sweep_without(sweep, DTS_OUTCOME_ILLEGAL, style, out);
    }
    if (sweep->no_memory > 0) {
        dts_text_add(out, out->length > 0 ? "\n" : "");
        dts_style_add(style, DTS_PAINT_STRONG, "Not simulated\n", out);
        dts_sweep_without(sweep, DTS_OUTCOME_NO_MEMORY, style, out);
    }
    dts_text_add(out, "\n");
    dts_sweep_summary(sweep, style, out);
    return dts_text_status(out);
}

/* ---- CSV ----------------------------------------------------------------------------------------------------------
 */

static void csv_figures(const dts_outcome *outcome, dts_text *out) {
    char buffer[32];
    for (size_t i = 0; i < dts_figure_count; i++) {
        const dts_figure *figure = &dts_figure_table[i];
        double value = dts_figure_get(&outcome->figures, figure);
        dts_text_add(out, ",");
        if (outcome->kind != DTS_OUTCOME_SIMULATED) {
            continue;
        }
        if (figure->type == DTS_FIGURE_FLAG) {
            dts_text_add(out, value != 0 ? "true" : "false");
        } else {
            dts_report_number(value, "", buffer);
            dts_text_add(out, buffer);
        }
    }
}

static const char *const kind_names[] = {[DTS_OUTCOME_PENDING] = "pending",
                                         [DTS_OUTCOME_SIMULATED] = "simulated",
                                         [DTS_OUTCOME_ILLEGAL] = "illegal",
                                         [DTS_OUTCOME_NO_MEMORY] = "out of memory"};

dts_status dts_sweep_write_csv(const dts_sweep *sweep, const dts_style *style, dts_text *out) {
    (void)style;
    for (size_t a = 0; a < sweep->axis_count; a++) {
        dts_text_add_cell(out, sweep->axes[a].key);
        dts_text_add(out, ",");
    }
    dts_text_add(out, "outcome,plan");
    for (size_t i = 0; i < dts_figure_count; i++) {
        dts_text_printf(out, ",%s", dts_figure_table[i].name);
    }
    dts_text_add(out, ",pareto,reason\n");
    for (size_t i = 0; i < sweep->count; i++) {
        const dts_outcome *outcome = &sweep->outcomes[i];
        for (size_t a = 0; a < sweep->axis_count; a++) {
            dts_text_add_cell(out, dts_sweep_value(sweep, i, a));
            dts_text_add(out, ",");
        }
        dts_text_printf(out, "%s,", kind_names[outcome->kind]);
        dts_text_add_cell(out, outcome->plan);
        csv_figures(outcome, out);
        dts_text_printf(out, ",%s,", sweep->pareto[i] ? "true" : "false");
        dts_text_add_cell(out, dts_outcome_reason(outcome));
        dts_text_add(out, "\n");
    }
    return dts_text_status(out);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------
 */

static void json_figures(dts_json *json, cJSON *row, const dts_figures *figures) {
    for (size_t i = 0; i < dts_figure_count; i++) {
        const dts_figure *figure = &dts_figure_table[i];
        double value = dts_figure_get(figures, figure);
        if (figure->type == DTS_FIGURE_FLAG) {
            dts_json_flag(json, row, figure->name, value != 0);
        } else if (figure->type == DTS_FIGURE_INTEGER) {
            dts_json_integer(json, row, figure->name, (int64_t)value);
        } else {
            dts_json_number(json, row, figure->name, value);
        }
    }
}

dts_status dts_sweep_write_json(const dts_sweep *sweep, const dts_style *style, dts_text *out) {
    (void)style;
    dts_json json = {0};
    cJSON *root = dts_json_begin(&json);
    cJSON *rows = dts_json_array(&json, root, "combinations");
    for (size_t i = 0; i < sweep->count; i++) {
        const dts_outcome *outcome = &sweep->outcomes[i];
        cJSON *row = dts_json_object(&json, rows, NULL);
        cJSON *settings = dts_json_object(&json, row, "settings");
        for (size_t a = 0; a < sweep->axis_count; a++) {
            dts_json_string(&json, settings, sweep->axes[a].key, dts_sweep_value(sweep, i, a));
        }
        dts_json_string(&json, row, "outcome", kind_names[outcome->kind]);
        if (outcome->kind == DTS_OUTCOME_SIMULATED) {
            dts_json_string(&json, row, "plan", outcome->plan);
            json_figures(&json, row, &outcome->figures);
            dts_json_flag(&json, row, "pareto", sweep->pareto[i]);
        } else if (dts_outcome_reason(outcome) != NULL) {
            dts_json_string(&json, row, "reason", dts_outcome_reason(outcome));
            dts_json_string(&json, row, "help", dts_outcome_help(outcome));
        }
    }
    dts_json_integer(&json, root, "illegal", (int64_t)sweep->illegal);
    dts_json_integer(&json, root, "out_of_memory", (int64_t)sweep->no_memory);
    dts_json_flag(&json, root, "interrupted", sweep->interrupted);
    return dts_json_end(&json, out);
}
