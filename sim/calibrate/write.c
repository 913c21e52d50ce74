/* A calibration as a page, as JSON, and as a profile fragment whose numbers carry their origin. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "base/quote.h"
#include "calibrate/calibrate.h"
#include "report/format.h"
#include "report/grid.h"
#include "report/json_tree.h"

enum { INDENT = 2, DIGITS = 4, DIGITS_MOST = 6 };

static void heading(const dts_style *style, const char *title, dts_text *out) {
    dts_text_add(out, "\n");
    dts_style_add(style, DTS_PAINT_STRONG, title, out);
    dts_text_add(out, "\n");
}

static void add_quantity(dts_grid *grid, double value, dts_dimension dimension) {
    dts_text text = {0};
    dts_quantity_format(value, dimension, DIGITS, &text);
    dts_grid_add(grid, dts_text_string(&text));
    dts_text_free(&text);
}

static void write_parameters(const dts_calibration *c, const dts_style *style, dts_text *out) {
    static const char *const titles[] = {"parameter", "start", "fitted", "error", "low", "high", ""};
    dts_grid *grid = dts_grid_new(titles, 7, 1u | 1u << 6);
    dts_grid_keep(grid, 1);
    for (size_t j = 0; j < c->parameter_count; j++) {
        const dts_fitted *f = &c->parameters[j];
        dts_grid_add(grid, f->key);
        add_quantity(grid, f->start, f->dimension);
        add_quantity(grid, f->value, f->dimension);
        if (isfinite(f->standard_error)) {
            dts_grid_printf(grid, "%.2g %%", 100 * f->standard_error / f->value);
        } else {
            dts_grid_add(grid, "-");
        }
        add_quantity(grid, f->low, f->dimension);
        add_quantity(grid, f->high, f->dimension);
        dts_grid_add(grid, f->at_bound ? "at its bound" : "");
    }
    heading(style, "Parameters (error: standard error of the fitted value)", out);
    dts_grid_print(grid, style, INDENT, out);
    dts_grid_free(grid);
    for (size_t j = 0; j < c->parameter_count; j++) {
        for (size_t k = j + 1; k < c->parameter_count; k++) {
            double correlation = c->correlation[j * c->parameter_count + k];
            if (fabs(correlation) > 0.9) {
                dts_text_printf(out, "  %s and %s go together: correlation %+.2f\n", c->parameters[j].key,
                                c->parameters[k].key, correlation);
            }
        }
    }
}

static void write_errors(const dts_calibration *c, const dts_style *style, dts_text *out) {
    heading(style, "Mean error of the predictions", out);
    char bias[32];
    dts_text_printf(out, "  before    %5.1f %%  (bias %s)\n", c->before_pct,
                    dts_formatted(dts_format_change, c->bias_before_pct / 100, bias, sizeof bias));
    dts_text_printf(out, "  after     %5.1f %%  (bias %s)\n", c->after_pct,
                    dts_formatted(dts_format_change, c->bias_after_pct / 100, bias, sizeof bias));
    if (c->folds > 0) {
        dts_text_printf(out, "  held out  %5.1f %%  (each of %zu parts predicted by a fit on the others)\n",
                        c->held_out_pct, c->folds);
    }
    if (c->group_count == 0) {
        return;
    }
    static const char *const titles[] = {"group", "values", "before", "after", "held out"};
    dts_grid *grid = dts_grid_new(titles, 5, 1);
    dts_grid_keep(grid, 1);
    for (size_t g = 0; g < c->group_count; g++) {
        const dts_fit_group *group = &c->groups[g];
        dts_grid_add(grid, group->name);
        dts_grid_printf(grid, "%zu", group->records);
        dts_grid_printf(grid, "%.1f %%", group->before_pct);
        dts_grid_printf(grid, "%.1f %%", group->after_pct);
        dts_grid_printf(grid, "%.1f %%", group->held_out_pct);
    }
    dts_text title = {0};
    dts_text_printf(&title, "By %s (held out: fitted on all other groups)", c->by);
    heading(style, dts_text_string(&title), out);
    dts_text_free(&title);
    dts_grid_print(grid, style, INDENT, out);
    dts_grid_free(grid);
}

dts_status dts_calibration_text(const dts_calibration *c, const dts_style *style, dts_text *out) {
    dts_style_add(style, DTS_PAINT_STRONG, c->data, out);
    dts_text_printf(out, ": %zu measured values, %zu parameter%s; %" PRIu64 " simulations\n", c->records,
                    c->parameter_count, c->parameter_count == 1 ? "" : "s", c->simulations);
    write_parameters(c, style, out);
    if (c->refused_count > 0) {
        heading(style, "Refused, left as they are", out);
    }
    for (size_t i = 0; i < c->refused_count; i++) {
        dts_text_printf(out, "  %s: %s\n    help: %s\n", c->refused[i].key, c->refused[i].reason, c->refused[i].help);
    }
    write_errors(c, style, out);
    if (c->failure_count > 0) {
        heading(style, "Rows that cannot be simulated, left out", out);
    }
    for (size_t i = 0; i < c->failure_count; i++) {
        dts_text_printf(out, "  %s: %s\n", c->failures[i].id, c->failures[i].reason);
    }
    return dts_text_status(out);
}

dts_status dts_calibration_json(const dts_calibration *c, dts_text *out) {
    dts_json json;
    cJSON *root = dts_json_begin(&json);
    dts_json_string(&json, root, "data", c->data);
    dts_json_integer(&json, root, "rows", (int64_t)c->rows);
    dts_json_integer(&json, root, "values", (int64_t)c->records);
    cJSON *parameters = dts_json_array(&json, root, "parameters");
    for (size_t j = 0; j < c->parameter_count; j++) {
        const dts_fitted *f = &c->parameters[j];
        cJSON *object = dts_json_object(&json, parameters, NULL);
        dts_json_string(&json, object, "key", f->key);
        dts_json_number(&json, object, "start", f->start);
        dts_json_number(&json, object, "value", f->value);
        dts_json_number(&json, object, "standard_error", f->standard_error);
        dts_json_number(&json, object, "low", f->low);
        dts_json_number(&json, object, "high", f->high);
        dts_json_flag(&json, object, "at_bound", f->at_bound);
        dts_json_number(&json, object, "most_influence", f->most_influence);
        cJSON *correlations = dts_json_array(&json, object, "correlation");
        for (size_t k = 0; k < c->parameter_count; k++) {
            dts_json_number(&json, correlations, NULL, c->correlation[j * c->parameter_count + k]);
        }
    }
    cJSON *refused = dts_json_array(&json, root, "refused");
    for (size_t i = 0; i < c->refused_count; i++) {
        cJSON *object = dts_json_object(&json, refused, NULL);
        dts_json_string(&json, object, "key", c->refused[i].key);
        dts_json_string(&json, object, "reason", c->refused[i].reason);
        dts_json_string(&json, object, "help", c->refused[i].help);
    }
    dts_json_number(&json, root, "mape_before_pct", c->before_pct);
    dts_json_number(&json, root, "mape_after_pct", c->after_pct);
    dts_json_number(&json, root, "bias_before_pct", c->bias_before_pct);
    dts_json_number(&json, root, "bias_after_pct", c->bias_after_pct);
    dts_json_number(&json, root, "mape_held_out_pct", c->held_out_pct);
    dts_json_integer(&json, root, "folds", (int64_t)c->folds);
    cJSON *groups = dts_json_array(&json, root, "groups");
    for (size_t g = 0; g < c->group_count; g++) {
        cJSON *object = dts_json_object(&json, groups, NULL);
        dts_json_string(&json, object, "key", c->by);
        dts_json_string(&json, object, "value", c->groups[g].name);
        dts_json_integer(&json, object, "values", (int64_t)c->groups[g].records);
        dts_json_number(&json, object, "mape_before_pct", c->groups[g].before_pct);
        dts_json_number(&json, object, "mape_after_pct", c->groups[g].after_pct);
        dts_json_number(&json, object, "mape_held_out_pct", c->groups[g].held_out_pct);
    }
    cJSON *failures = dts_json_array(&json, root, "not_simulated");
    for (size_t i = 0; i < c->failure_count; i++) {
        cJSON *object = dts_json_object(&json, failures, NULL);
        dts_json_string(&json, object, "id", c->failures[i].id);
        dts_json_string(&json, object, "reason", c->failures[i].reason);
    }
    return dts_json_end(&json, out);
}

/* ---- the fragment ----------------------------------------------------------------------------------------------- */

static void add_origin(const dts_calibration *c, const dts_fitted *f, dts_text *out) {
    dts_text source = {0};
    dts_text_printf(&source, "fitted by dtsim calibrate on %s; mean error %.1f %% before, %.1f %% after", c->data,
                    c->before_pct, c->after_pct);
    if (c->folds > 0) {
        dts_text_printf(&source, ", %.1f %% held out (%zu parts)", c->held_out_pct, c->folds);
    }
    if (f->at_bound) {
        dts_text_add(&source, "; at the bound of what was allowed");
    } else if (isfinite(f->standard_error)) {
        dts_text_printf(&source, "; standard error %.2g %%", 100 * f->standard_error / f->value);
    }
    dts_text_add(&source, "; started from ");
    dts_quantity_format(f->start, f->dimension, DIGITS, &source);
    dts_text_add_quoted(out, dts_text_string(&source));
    out->failed = out->failed || source.failed;
    dts_text_free(&source);
}

/* The value rounded to about a tenth of its standard error: four to six digits. */
static double rounded(const dts_fitted *f) {
    double grain = isfinite(f->standard_error) ? f->standard_error / 10 : 0;
    int digits = grain > 0 ? (int)ceil(log10(f->value / grain)) : DIGITS_MOST;
    digits = digits < DIGITS ? DIGITS : digits > DIGITS_MOST ? DIGITS_MOST : digits;
    char text[32];
    snprintf(text, sizeof text, "%.*g", digits, f->value);
    return fmin(f->high, fmax(f->low, strtod(text, NULL)));
}

/* Writes the parameters whose keys begin with prefix ("" or "gpu."), nested; keys of one map stand together. */
static void write_level(const dts_calibration *c, const char *prefix, size_t depth, dts_text *out) {
    size_t length = strlen(prefix);
    for (size_t j = 0; j < c->parameter_count; j++) {
        const char *key = c->parameters[j].key;
        if (strncmp(key, prefix, length) != 0) {
            continue;
        }
        size_t part = strcspn(key + length, ".");
        bool told = false; /* an earlier parameter lies in the same map */
        for (size_t k = 0; k < j && !told; k++) {
            told = strncmp(c->parameters[k].key, key, length + part) == 0 && c->parameters[k].key[length + part] == '.';
        }
        if (told) {
            continue;
        }
        dts_text_add_repeated(out, "  ", depth);
        dts_text_printf(out, "%.*s:", (int)part, key + length);
        if (key[length + part] == '.') {
            dts_text below = {0};
            dts_text_printf(&below, "%.*s.", (int)(length + part), key);
            dts_text_add(out, "\n");
            write_level(c, dts_text_string(&below), depth + 1, out);
            out->failed = out->failed || below.failed;
            dts_text_free(&below);
        } else {
            dts_text_add(out, " {value: ");
            dts_quantity_format_exact(rounded(&c->parameters[j]), c->parameters[j].dimension, out);
            dts_text_add(out, ", source: ");
            add_origin(c, &c->parameters[j], out);
            dts_text_add(out, "}\n");
        }
    }
}

dts_status dts_calibration_yaml(const dts_calibration *c, dts_text *out) {
    dts_text prefix = {0};
    if (c->base_key[0] != '\0') {
        dts_text_printf(&prefix, "%s.", c->base_key);
        dts_text_printf(out, "extends: ");
        dts_text_add_quoted(out, c->base_name);
        dts_text_add(out, "\n");
    } else {
        dts_text_add(out, "# A part of a scenario: `extends: ./THIS-FILE` takes it.\n");
    }
    write_level(c, dts_text_string(&prefix), 0, out);
    out->failed = out->failed || prefix.failed;
    dts_text_free(&prefix);
    return dts_text_status(out);
}
