/* From tables and keys to fitted parameters: what may be fitted, what the data determine, and how good it is. */
#include "calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "calibrate/fit.h"
#include "calibrate/start.h"

static const double FLAT = 1e-6; /* relative change of a prediction that counts as none */
static const double INFLUENCE_LEAST = 1e-4;
static const double RATIO_LEAST = 1e-3; /* of singular values: below it a combination is not determined */
static const double SHARE_OF_WEAKEST = 0.3;
enum { ITERATIONS_MOST = 30, ITERATIONS_OF_FOLD = 6 };

/* ---- what the data determine ------------------------------------------------------------------------------------ */

/* Parameter j stays as it is in the rows, for the reason, and is told of: the data say nothing of it. */
static dts_status refuse(dts_fit_work *w, size_t j, const char *help, dts_text *reason) {
    dts_calibration *c = w->c;
    const dts_fit_refused refused = {.key = c->parameters[j].key,
                                     .reason = dts_arena_strdup(c->arena, dts_text_string(reason)),
                                     .help = dts_arena_strdup(c->arena, help)};
    const bool failed = dts_text_status(reason) != DTS_OK || refused.reason == NULL || refused.help == NULL;
    dts_text_free(reason);
    if (failed) {
        return dts_diag_nomem(w->diag);
    }
    c->refused[c->refused_count++] = refused;
    dts_predictor_drop(&w->predictor, j, c->parameters[j].start);
    memmove(&c->parameters[j], &c->parameters[j + 1], (c->parameter_count - j - 1) * sizeof *c->parameters);
    c->parameter_count--;
    return DTS_OK;
}

/* With no parameter left there is nothing to show: then the reasons are errors. */
static dts_status check_any_left(dts_fit_work *w) {
    const dts_calibration *c = w->c;
    for (size_t i = 0; c->parameter_count == 0 && i < c->refused_count; i++) {
        dts_diag_error(w->diag, NULL, c->refused[i].key, c->refused[i].help, "%s", c->refused[i].reason);
    }
    return c->parameter_count == 0 ? DTS_INVALID : DTS_OK;
}

/* Refuses parameters that change nothing between their bounds. */
static dts_status refuse_flat(dts_fit_work *w) {
    dts_calibration *c = w->c;
    size_t count = c->parameter_count;
    double points[(2 * DTS_FIT_PARAMETERS_MOST + 1) * DTS_FIT_PARAMETERS_MOST] = {0};
    const double *at[2 * DTS_FIT_PARAMETERS_MOST + 1];
    for (size_t i = 0; i < 2 * count + 1; i++) {
        for (size_t j = 0; j < count; j++) {
            const dts_fitted *f = &c->parameters[j];
            points[i * count + j] = i == 2 * j ? f->low : i == 2 * j + 1 ? f->high : f->start;
        }
    }
    dts_status status = dts_predict_at(&w->predictor, points, 2 * count + 1, at);
    if (status != DTS_OK) {
        return status;
    }
    dts_fit_errors(&w->predictor, NULL, at[2 * count], &c->before_pct, &c->bias_before_pct);
    for (size_t j = count; j-- > 0 && status == DTS_OK;) { /* backwards: those behind move up */
        double most = 0;
        for (size_t r = 0; r < c->records; r++) {
            most = fmax(most, fabs(at[2 * j][r] - at[2 * count][r]));
            most = fmax(most, fabs(at[2 * j + 1][r] - at[2 * count][r]));
        }
        if (most < FLAT) {
            dts_text reason = {0};
            dts_text_add(&reason, "the data cannot determine it: no prediction changes between its bounds");
            status = refuse(w, j, "leave it out, or add rows that depend on it", &reason);
        }
    }
    return status == DTS_OK ? check_any_left(w) : status;
}

/* Of the parameters whose common change leaves predictions as they are, the one that was named last. */
static dts_status refuse_combination(dts_fit_work *w, const dts_fit *fit) {
    dts_text reason = {0};
    size_t last = 0;
    double most = 0; /* of many parameters each has a small share */
    for (size_t j = 0; j < w->c->parameter_count; j++) {
        most = fmax(most, fabs(fit->weakest[j]));
    }
    const char *between = "the data cannot tell ";
    for (size_t j = 0; j < w->c->parameter_count; j++) {
        if (fabs(fit->weakest[j]) >= fmin(most, SHARE_OF_WEAKEST)) {
            dts_text_printf(&reason, "%s%s", between, w->c->parameters[j].key);
            between = " and ";
            last = j;
        }
    }
    dts_text_printf(&reason,
                    " apart: a common change leaves all predictions as they are (ratio of singular values %.2g)",
                    fit->worst_influence);
    return refuse(w, last, "fit one of them, or add rows in which they act differently", &reason);
}

/* Predictions do change between its bounds (refuse_flat), but not where the fit went. */
static dts_status refuse_without_influence(dts_fit_work *w, size_t j) {
    const dts_fitted *f = &w->c->parameters[j];
    dts_text value = {0}, help = {0}, reason = {0};
    dts_quantity_format(f->value, f->dimension, 3, &value);
    dts_text_printf(&help,
                    "what is left of the error has another cause: leave it out, or hold it where it has an effect with "
                    "--fit %s=LOW:HIGH",
                    f->key);
    dts_text_printf(&reason,
                    "the data cannot determine it: the fit went %s to %s%s, where no prediction "
                    "depends on it any more",
                    f->value < f->start ? "down" : "up", dts_text_string(&value), f->at_bound ? ", its bound" : "");
    const dts_status status = refuse(w, j, dts_text_string(&help), &reason);
    dts_text_free(&value);
    dts_text_free(&help);
    return status;
}

/* Of the parameters with a standard error that says no more than the bounds do, the one with the widest. Without it the
 * others may be known better. */
static dts_status refuse_unsure(dts_fit_work *w) {
    const dts_calibration *c = w->c;
    size_t worst = 0;
    double widest = 0.5;
    for (size_t j = 0; j < c->parameter_count; j++) {
        const dts_fitted *f = &c->parameters[j];
        const double width = f->at_bound ? 0 : f->standard_error / (f->high - f->low);
        worst = width > widest ? j : worst;
        widest = fmax(width, widest);
    }
    if (!(widest > 0.5)) {
        return DTS_OK;
    }
    dts_text reason = {0};
    dts_text_printf(&reason,
                    "the data cannot determine it: its standard error, %.3g, is larger than half of the range between "
                    "its bounds",
                    c->parameters[worst].standard_error);
    return refuse(w, worst, "leave it out, or add rows that depend on it more", &reason);
}

/* Refuses what the fit could not determine; parameters without effect first, as their errors mean nothing. */
static dts_status refuse_undetermined(dts_fit_work *w, const dts_fit *fit) {
    dts_calibration *c = w->c;
    const size_t count = c->parameter_count;
    for (size_t j = 0; j < count; j++) {
        c->parameters[j].most_influence = 0;
        for (size_t r = 0; r < c->records; r++) {
            c->parameters[j].most_influence =
                fmax(c->parameters[j].most_influence, fabs(fit->influence[r * count + j]));
        }
    }
    dts_status status = DTS_OK;
    for (size_t j = count; j-- > 0 && status == DTS_OK;) {
        status = c->parameters[j].most_influence < INFLUENCE_LEAST ? refuse_without_influence(w, j) : DTS_OK;
    }
    if (status == DTS_OK && c->parameter_count == count && fit->worst_influence < RATIO_LEAST) {
        status = refuse_combination(w, fit);
    }
    return status == DTS_OK && c->parameter_count == count ? refuse_unsure(w) : status;
}

/* ---- fitting ---------------------------------------------------------------------------------------------------- */

static void take(dts_fit_work *w, const dts_fit *fit) {
    dts_calibration *c = w->c;
    for (size_t j = 0; j < c->parameter_count; j++) {
        dts_fitted *f = &c->parameters[j];
        f->value = fit->value[j];
        double room = fmin(f->value - f->low, f->high - f->value);
        f->at_bound = room < 0.005 * (f->high - f->low);
        f->standard_error = f->at_bound ? NAN : fit->standard_error[j];
    }
    memcpy(c->correlation, fit->correlation, c->parameter_count * c->parameter_count * sizeof *c->correlation);
    c->iterations = fit->iterations;
}

static dts_status fit_once(dts_fit_work *w, const bool *all) {
    dts_calibration *c = w->c;
    const size_t count = c->parameter_count;
    dts_fit fit = {.influence = dts_arena_array(c->arena, c->records * count, sizeof(double))};
    c->correlation = dts_arena_array(c->arena, count * count, sizeof *c->correlation);
    if (fit.influence == NULL || c->correlation == NULL) {
        return dts_diag_nomem(w->diag);
    }
    double from[DTS_FIT_PARAMETERS_MOST];
    for (size_t j = 0; j < count; j++) {
        from[j] = c->parameters[j].start;
    }
    const double *at = NULL;
    dts_status status = dts_fit_records(&w->predictor, all, from, ITERATIONS_MOST, &fit);
    if (status == DTS_OK) {
        take(w, &fit);
        status = dts_predict_at(&w->predictor, fit.value, 1, &at);
    }
    if (status == DTS_OK) {
        dts_fit_errors(&w->predictor, NULL, at, &c->after_pct, &c->bias_after_pct);
        status = refuse_undetermined(w, &fit);
    }
    return status == DTS_OK ? check_any_left(w) : status;
}

/* Again without what was refused, until the data determine all that is left. */
static dts_status fit_all(dts_fit_work *w) {
    bool *all = dts_arena_array(w->c->arena, w->c->records, sizeof *all);
    if (all == NULL) {
        return dts_diag_nomem(w->diag);
    }
    for (size_t r = 0; r < w->c->records; r++) {
        all[r] = true;
    }
    size_t before = 0;
    dts_status status = DTS_OK;
    do {
        before = w->c->parameter_count;
        status = fit_once(w, all);
    } while (status == DTS_OK && w->c->parameter_count < before);
    return status;
}

/* Fits all records but the held-out ones, from the full solution, and gives the predictions there. */
static dts_status fit_without(dts_fit_work *w, const bool *held_out, const double **at) {
    dts_calibration *c = w->c;
    bool *chosen = malloc((c->records + 1) * sizeof *chosen);
    if (chosen == NULL) {
        return dts_diag_nomem(w->diag);
    }
    double from[DTS_FIT_PARAMETERS_MOST];
    for (size_t j = 0; j < c->parameter_count; j++) {
        from[j] = c->parameters[j].value;
    }
    size_t left = 0;
    for (size_t r = 0; r < c->records; r++) {
        chosen[r] = !held_out[r];
        left += chosen[r];
    }
    dts_fit fit = {0};
    dts_status status = DTS_OK;
    if (left > c->parameter_count) {
        status = dts_fit_records(&w->predictor, chosen, from, ITERATIONS_OF_FOLD, &fit);
    } else { /* too few are left to learn from: what was there before */
        for (size_t j = 0; j < c->parameter_count; j++) {
            fit.value[j] = c->parameters[j].start;
        }
    }
    free(chosen);
    return status == DTS_OK ? dts_predict_at(&w->predictor, fit.value, 1, at) : status;
}

/* Rows are dealt out to folds in turn, so that a fold holds rows of all parts of a sorted table. */
static dts_status cross_validate(dts_fit_work *w, bool *held_out) {
    dts_calibration *c = w->c;
    c->held_out_pct = NAN;
    c->folds = w->request->folds < c->rows ? w->request->folds : c->rows;
    if (c->folds < 2) {
        c->folds = 0;
        return DTS_OK;
    }
    double sum = 0;
    dts_status status = DTS_OK;
    for (size_t fold = 0; fold < c->folds && status == DTS_OK; fold++) {
        size_t count = 0, row = 0;
        for (size_t r = 0; r < c->records; r++) {
            row += r > 0 && w->records[r].row != w->records[r - 1].row;
            held_out[r] = row % c->folds == fold;
            count += held_out[r];
        }
        const double *at = NULL;
        double mean_pct = 0;
        status = fit_without(w, held_out, &at);
        if (status == DTS_OK && count > 0) {
            dts_fit_errors(&w->predictor, held_out, at, &mean_pct, NULL);
            sum += mean_pct * (double)count;
        }
    }
    c->held_out_pct = sum / (double)c->records;
    return status;
}

static dts_status leave_groups_out(dts_fit_work *w, bool *held_out) {
    dts_calibration *c = w->c;
    double before[DTS_FIT_PARAMETERS_MOST], after[DTS_FIT_PARAMETERS_MOST];
    for (size_t j = 0; j < c->parameter_count; j++) {
        before[j] = c->parameters[j].start;
        after[j] = c->parameters[j].value;
    }
    dts_status status = DTS_OK;
    for (size_t g = 0; g < c->group_count && status == DTS_OK; g++) {
        for (size_t r = 0; r < c->records; r++) {
            held_out[r] = w->records[r].group == g;
        }
        const double *at[3] = {NULL, NULL, NULL};
        status = dts_predict_at(&w->predictor, before, 1, &at[0]);
        status = status == DTS_OK ? dts_predict_at(&w->predictor, after, 1, &at[1]) : status;
        status = status == DTS_OK ? fit_without(w, held_out, &at[2]) : status;
        if (status == DTS_OK) {
            dts_fit_group *group = &c->groups[g];
            dts_fit_errors(&w->predictor, held_out, at[0], &group->before_pct, NULL);
            dts_fit_errors(&w->predictor, held_out, at[1], &group->after_pct, NULL);
            dts_fit_errors(&w->predictor, held_out, at[2], &group->held_out_pct, NULL);
        }
    }
    return status;
}

static dts_status check_by_leaving_out(dts_fit_work *w) {
    bool *held_out = calloc(w->c->records + 1, sizeof *held_out);
    if (held_out == NULL) {
        return dts_diag_nomem(w->diag);
    }
    dts_status status = cross_validate(w, held_out);
    status = status == DTS_OK ? leave_groups_out(w, held_out) : status;
    free(held_out);
    return status;
}

/* ---- what it is for --------------------------------------------------------------------------------------------- */

static bool is_under(const char *key, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(key, prefix, length) == 0 && key[length] == '.';
}

/* The narrowest profile that holds all parameters, and its name where all rows use the same. */
static void find_base(dts_fit_work *w) {
    dts_calibration *c = w->c;
    c->base_key = "";
    for (size_t b = 0; b < DTS_FIT_BASES && c->base_key[0] == '\0'; b++) {
        bool all = true;
        for (size_t j = 0; j < c->parameter_count; j++) {
            all = all && is_under(c->parameters[j].key, dts_fit_base_keys[b]);
        }
        const char *name = NULL;
        for (size_t r = 0; all && r < w->measurements.row_count; r++) {
            const char *own = w->used[r] ? w->rows[r].bases[b] : NULL;
            all = own == NULL || name == NULL || strcmp(own, name) == 0;
            name = name == NULL ? own : name;
        }
        if (all && name != NULL) {
            c->base_key = dts_fit_base_keys[b];
            c->base_name = dts_arena_strdup(c->arena, name);
        }
    }
}

static dts_status describe_data(dts_fit_work *w) {
    dts_calibration *c = w->c;
    dts_text text = {0};
    for (size_t t = 0; t < w->measurements.table_count; t++) {
        const char *slash = strrchr(w->measurements.tables[t].path, '/');
        dts_text_printf(&text, "%s%s", t > 0 ? ", " : "", slash != NULL ? slash + 1 : w->measurements.tables[t].path);
    }
    dts_text_printf(&text, " (%zu rows)", c->rows);
    c->data = dts_text_status(&text) == DTS_OK ? dts_arena_strdup(c->arena, dts_text_string(&text)) : NULL;
    dts_text_free(&text);
    return c->data != NULL ? DTS_OK : dts_diag_nomem(w->diag);
}

static dts_status calibrate(dts_fit_work *w) {
    dts_status (*const steps[])(dts_fit_work *) = {dts_fit_prepare, refuse_flat, fit_all, check_by_leaving_out,
                                                   describe_data};
    dts_status status = DTS_OK;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == DTS_OK; i++) {
        status = steps[i](w);
    }
    if (status == DTS_OK) {
        find_base(w);
        w->c->simulations = w->predictor.simulations + w->c->rows;
    }
    return status;
}

dts_status dts_calibrate(const dts_calibrate_request *request, dts_calibration **out, dts_diag *diag) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_calibration *c = arena != NULL ? dts_arena_alloc(arena, sizeof *c) : NULL;
    if (c == NULL) {
        dts_arena_free(arena);
        return dts_diag_nomem(diag);
    }
    c->arena = arena;
    dts_fit_work w = {.request = request, .c = c, .diag = diag};
    dts_status status = calibrate(&w);
    dts_fit_work_free(&w);
    if (status != DTS_OK) {
        dts_arena_free(arena);
        return status;
    }
    *out = c;
    return DTS_OK;
}

void dts_calibration_free(dts_calibration *calibration) {
    if (calibration != NULL) {
        dts_arena_free(calibration->arena);
    }
}
