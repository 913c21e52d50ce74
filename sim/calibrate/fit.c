/* Bounded, robust non-linear least squares on relative errors.
 *
 * With y_i the measured and f_i(θ) the predicted value of record i,
 *
 *   r_i(θ) = log f_i(θ) - log y_i                         relative error; over and under count alike              (1)
 *   θ_j    = low_j + (high_j - low_j) · (1 + sin u_j) / 2 no value outside the bounds can be proposed             (2)
 *            in millionths of the range: finer steps are not simulated again
 *   minimise Σ w_i r_i²,  w_i = min(1, c·s / |r_i|), c = 1.345, s = 1.4826 · median |r_i|                         (3)
 *
 * by Levenberg-Marquardt in x = u + SHIFT (GSL, multifit_nlinear; its tolerance of steps is relative to x, which u = 0,
 * the middle of the bounds, would make a nothing) inside a loop that sets the weights anew: Huber's estimator [1].
 * Derivatives are central differences of θ with steps of 0.5 % (simulations are exact to a picosecond, but maxima and
 * rounding up make kinks, so steps must not be small). At the solution, with σ² = Σ w r² / (n - p),
 *
 *   covariance of u = σ² (Jᵀ W J)⁻¹,   standard error of θ_j = sqrt(cov_jj) · |dθ_j/du_j|                         (4)
 *
 * What the data determine: E_ij = ∂ log f_i / ∂ log θ_j with its columns scaled to length 1; the ratio of its smallest
 * singular value to its largest says whether some combination of parameters leaves all predictions as they are. (5)
 *
 * [1] Huber, Robust Estimation of a Location Parameter, Annals of Mathematical Statistics 35(1), 1964. */
#include "calibrate/fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double HUBER = 1.345;
static const double STEP = 0.005;
static const double SHIFT = 2;          /* of u, whose ends are at ±π/2 */
static const double LEAST_SCALE = 1e-4; /* of the residuals: below a hundredth of a per cent nothing is an outlier */
static const double SETTLED = 1e-4;     /* of u: no step, and no new weights, move the solution */
enum { REWEIGHTINGS = 4 };

typedef struct problem {
    dts_predictor *p;
    const size_t *record; /* [n] the chosen records */
    size_t n;
    dts_status status;
} problem;

static double to_value(const dts_fitted *f, double x) {
    static const double parts = 1e6;
    return f->low + (f->high - f->low) * round(parts * (1 + sin(x - SHIFT)) / 2) / parts;
}

/* dθ/dx */
static double slope(const dts_fitted *f, double x) {
    return (f->high - f->low) * cos(x - SHIFT) / 2;
}

/* Not quite at the bounds, where the slope is 0 and nothing moves. */
static double to_free(const dts_fitted *f, double value) {
    double share = 2 * (value - f->low) / (f->high - f->low) - 1;
    return SHIFT + asin(fmin(0.999, fmax(-0.999, share)));
}

static void values_of(const problem *pr, const gsl_vector *u, double *values) {
    for (size_t j = 0; j < pr->p->parameter_count; j++) {
        values[j] = to_value(&pr->p->parameters[j], gsl_vector_get(u, j));
    }
}

static int residuals(const gsl_vector *u, void *context, gsl_vector *out) {
    problem *pr = context;
    double values[DTS_FIT_PARAMETERS_MOST];
    values_of(pr, u, values);
    const double *log_prediction = NULL;
    pr->status = dts_predict_at(pr->p, values, 1, &log_prediction);
    if (pr->status != DTS_OK) {
        return GSL_EBADFUNC;
    }
    for (size_t i = 0; i < pr->n; i++) {
        const dts_fit_record *record = &pr->p->records[pr->record[i]];
        gsl_vector_set(out, i, log_prediction[pr->record[i]] - record->log_measured);
    }
    return GSL_SUCCESS;
}

/* ∂ log f / ∂ θ of all records at values: out[record · parameters + parameter]. */
static dts_status derivatives(dts_predictor *p, const double *values, double *out) {
    size_t count = p->parameter_count;
    double points[2 * DTS_FIT_PARAMETERS_MOST * DTS_FIT_PARAMETERS_MOST] = {0};
    const double *log_prediction[2 * DTS_FIT_PARAMETERS_MOST];
    double width[DTS_FIT_PARAMETERS_MOST];
    for (size_t j = 0; j < count; j++) {
        for (size_t side = 0; side < 2; side++) {
            double *point = &points[(2 * j + side) * count];
            memcpy(point, values, count * sizeof *point);
            double moved = values[j] * (side == 0 ? 1 - STEP : 1 + STEP);
            point[j] = fmin(p->parameters[j].high, fmax(p->parameters[j].low, moved));
        }
        width[j] = points[(2 * j + 1) * count + j] - points[2 * j * count + j];
    }
    dts_status status = dts_predict_at(p, points, 2 * count, log_prediction);
    for (size_t r = 0; status == DTS_OK && r < p->record_count; r++) {
        for (size_t j = 0; j < count; j++) {
            out[r * count + j] = (log_prediction[2 * j + 1][r] - log_prediction[2 * j][r]) / width[j];
        }
    }
    return status;
}

static int jacobian(const gsl_vector *u, void *context, gsl_matrix *out) {
    problem *pr = context;
    size_t count = pr->p->parameter_count;
    double values[DTS_FIT_PARAMETERS_MOST];
    values_of(pr, u, values);
    double *slopes = malloc(pr->p->record_count * count * sizeof *slopes);
    pr->status = slopes != NULL ? derivatives(pr->p, values, slopes) : dts_diag_nomem(pr->p->diag);
    for (size_t i = 0; pr->status == DTS_OK && i < pr->n; i++) {
        for (size_t j = 0; j < count; j++) {
            double by_u = slopes[pr->record[i] * count + j] * slope(&pr->p->parameters[j], gsl_vector_get(u, j));
            gsl_matrix_set(out, i, j, by_u);
        }
    }
    free(slopes);
    return pr->status == DTS_OK ? GSL_SUCCESS : GSL_EBADFUNC;
}

/* (3) */
static void set_weights(const gsl_vector *residual, gsl_vector *weights, double *work) {
    size_t n = residual->size;
    for (size_t i = 0; i < n; i++) {
        work[i] = fabs(gsl_vector_get(residual, i));
    }
    gsl_sort(work, 1, n);
    double limit = HUBER * fmax(LEAST_SCALE, 1.4826 * gsl_stats_median_from_sorted_data(work, 1, n));
    for (size_t i = 0; i < n; i++) {
        double size = fabs(gsl_vector_get(residual, i));
        gsl_vector_set(weights, i, size > limit ? limit / size : 1);
    }
}

/* (4) */
static void set_errors(const problem *pr, const gsl_vector *u, const gsl_matrix *covariance, double variance,
                       dts_fit *out) {
    size_t count = pr->p->parameter_count;
    for (size_t j = 0; j < count; j++) {
        double own = gsl_matrix_get(covariance, j, j);
        out->standard_error[j] = sqrt(variance * own) * fabs(slope(&pr->p->parameters[j], gsl_vector_get(u, j)));
        for (size_t k = 0; k < count; k++) {
            double other = gsl_matrix_get(covariance, k, k);
            out->correlation[j * count + k] =
                own > 0 && other > 0 ? gsl_matrix_get(covariance, j, k) / sqrt(own * other) : NAN;
        }
    }
}

typedef struct solver {
    gsl_multifit_nlinear_workspace *workspace;
    gsl_vector *u, *weights;
    gsl_matrix *covariance;
    double *sorted;
} solver;

static dts_status solve(problem *pr, solver *s, size_t most, dts_fit *out) {
    gsl_multifit_nlinear_fdf fdf = {
        .f = residuals, .df = jacobian, .n = pr->n, .p = pr->p->parameter_count, .params = pr};
    gsl_vector *u = s->u;
    gsl_vector_set_all(s->weights, 1);
    for (int round = 0; round < REWEIGHTINGS; round++) {
        if (gsl_multifit_nlinear_winit(u, s->weights, &fdf, s->workspace) != GSL_SUCCESS) {
            return pr->status != DTS_OK ? pr->status : DTS_INVALID;
        }
        int info = 0;
        gsl_multifit_nlinear_driver(most, SETTLED / 2, 1e-7, 0, NULL, NULL, &info, s->workspace);
        if (pr->status != DTS_OK) {
            return pr->status;
        }
        out->iterations += gsl_multifit_nlinear_niter(s->workspace);
        const gsl_vector *found = gsl_multifit_nlinear_position(s->workspace);
        double moved = 0;
        for (size_t j = 0; j < u->size; j++) {
            moved = fmax(moved, fabs(gsl_vector_get(found, j) - gsl_vector_get(u, j)));
        }
        gsl_vector_memcpy(u, found);
        if (round > 0 && moved < SETTLED) {
            break;
        }
        gsl_vector *plain = gsl_vector_alloc(pr->n);
        if (plain == NULL || residuals(u, pr, plain) != GSL_SUCCESS) {
            gsl_vector_free(plain);
            return plain == NULL ? dts_diag_nomem(pr->p->diag) : pr->status;
        }
        set_weights(plain, s->weights, s->sorted);
        gsl_vector_free(plain);
    }
    const gsl_vector *weighted = gsl_multifit_nlinear_residual(s->workspace);
    double sum = 0;
    gsl_blas_ddot(weighted, weighted, &sum);
    gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(s->workspace), 0, s->covariance);
    double freedom = pr->n > pr->p->parameter_count ? (double)(pr->n - pr->p->parameter_count) : NAN;
    set_errors(pr, u, s->covariance, sum / freedom, out);
    values_of(pr, u, out->value);
    return DTS_OK;
}

/* (5) */
static dts_status judge(const problem *pr, dts_fit *out) {
    size_t count = pr->p->parameter_count;
    dts_status status = derivatives(pr->p, out->value, out->influence);
    gsl_matrix *e = gsl_matrix_calloc(pr->n > count ? pr->n : count, count);
    gsl_matrix *v = gsl_matrix_alloc(count, count);
    gsl_vector *singular = gsl_vector_alloc(count);
    gsl_vector *work = gsl_vector_alloc(count);
    for (size_t r = 0; status == DTS_OK && r < pr->p->record_count; r++) {
        for (size_t j = 0; j < count; j++) {
            out->influence[r * count + j] *= out->value[j];
        }
    }
    if (status == DTS_OK && e != NULL && v != NULL && singular != NULL && work != NULL) {
        for (size_t j = 0; j < count; j++) {
            double length = 0;
            for (size_t i = 0; i < pr->n; i++) {
                length = hypot(length, out->influence[pr->record[i] * count + j]);
            }
            for (size_t i = 0; i < pr->n && length > 0; i++) {
                gsl_matrix_set(e, i, j, out->influence[pr->record[i] * count + j] / length);
            }
        }
        gsl_linalg_SV_decomp(e, v, singular, work);
        out->worst_influence = gsl_vector_get(singular, count - 1) / gsl_vector_get(singular, 0);
        for (size_t j = 0; j < count; j++) {
            out->weakest[j] = gsl_matrix_get(v, j, count - 1);
        }
    } else if (status == DTS_OK) {
        status = dts_diag_nomem(pr->p->diag);
    }
    gsl_matrix_free(e);
    gsl_matrix_free(v);
    gsl_vector_free(singular);
    gsl_vector_free(work);
    return status;
}

dts_status dts_fit_records(dts_predictor *p, const bool *chosen, const double *start, size_t most, dts_fit *out) {
    gsl_set_error_handler_off(); /* GSL's own handler would end the process; every return value is looked at instead */
    double *influence = out->influence;
    *out = (dts_fit){.influence = influence};
    size_t *record = malloc((p->record_count + 1) * sizeof *record);
    if (record == NULL) {
        return dts_diag_nomem(p->diag);
    }
    problem pr = {.p = p, .record = record};
    for (size_t r = 0; r < p->record_count; r++) {
        if (chosen[r]) {
            record[pr.n++] = r;
        }
    }
    size_t count = p->parameter_count;
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    solver s = {.workspace = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, pr.n, count),
                .u = gsl_vector_alloc(count),
                .weights = gsl_vector_alloc(pr.n),
                .covariance = gsl_matrix_alloc(count, count),
                .sorted = malloc((pr.n + 1) * sizeof(double))};
    dts_status status = DTS_NOMEM;
    p->chosen = chosen;
    if (s.workspace != NULL && s.u != NULL && s.weights != NULL && s.covariance != NULL && s.sorted != NULL) {
        for (size_t j = 0; j < count; j++) {
            gsl_vector_set(s.u, j, to_free(&p->parameters[j], start[j]));
        }
        status = solve(&pr, &s, most, out);
    } else {
        dts_diag_nomem(p->diag);
    }
    p->chosen = NULL;
    if (status == DTS_OK && influence != NULL) {
        status = judge(&pr, out);
    }
    if (s.workspace != NULL) {
        gsl_multifit_nlinear_free(s.workspace);
    }
    gsl_vector_free(s.u);
    gsl_vector_free(s.weights);
    gsl_matrix_free(s.covariance);
    free(s.sorted);
    free(record);
    return status;
}

void dts_fit_errors(const dts_predictor *p, const bool *chosen, const double *log_prediction, double *mean_pct,
                    double *bias_pct) {
    double sum = 0, bias = 0, n = 0;
    for (size_t r = 0; r < p->record_count; r++) {
        if (chosen == NULL || chosen[r]) {
            double error = exp(log_prediction[r] - p->records[r].log_measured) - 1;
            sum += fabs(error);
            bias += error;
            n++;
        }
    }
    *mean_pct = 100 * sum / n;
    if (bias_pct != NULL) {
        *bias_pct = 100 * bias / n;
    }
}
