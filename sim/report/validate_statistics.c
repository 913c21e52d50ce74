/* How good predictions are, and what trivial ones would reach.
 *
 * With e_i = (predicted_i - measured_i) / measured_i:
 *   MAPE = mean |e_i|; median and 90th percentile of |e_i| (linear interpolation between order statistics);
 *   bias = mean e_i; Spearman's rank correlation between predicted and measured;
 *   of seconds, for rates: e_i = measured_i / predicted_i - 1, since an iteration's tokens are given.
 *
 * Baselines, per table, with x_i the time at full peak (model FLOPs per GPU / peak FLOP/s) and y_i the measured time:
 *   t_i = c · x_i,  t_i = c · x_i · (1 + (p-1)/(m·v));  c = 1 / utilisation.
 * c minimises sum |c·x_i - y_i| / y_i, so that the baseline is as strong as it can be on that table: the sum is
 * Σ w_i |c - r_i| with r_i = y_i/x_i and w_i = x_i/y_i, and its minimum is the weighted median of the r_i. */
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/validate.h"

enum { RANKS_LEAST = 3 };

static double predicted_by(const dts_validate_record *record, int baseline) {
    return baseline < 0 ? record->predicted : record->baseline[baseline];
}

/* errors of got against wanted, %: their mean, and the mean of their magnitudes, in which they are left. */
static void mean_errors(const double *got, const double *wanted, size_t n, double *errors, double *bias_pct,
                        double *mape_pct) {
    for (size_t i = 0; i < n; i++) {
        errors[i] = 100 * (got[i] - wanted[i]) / wanted[i];
    }
    *bias_pct = gsl_stats_mean(errors, 1, n);
    for (size_t i = 0; i < n; i++) {
        errors[i] = fabs(errors[i]);
    }
    *mape_pct = gsl_stats_mean(errors, 1, n);
}

/* From the records' arrays; errors and work are scratch. */
static void summarise(dts_metric_kind kind, const double *measured, const double *predicted, double *errors,
                      double *work, size_t n, dts_validate_summary *out) {
    out->time_bias_pct = NAN;
    out->time_mape_pct = NAN;
    if (kind == DTS_METRIC_RATE) {
        mean_errors(measured, predicted, n, errors, &out->time_bias_pct, &out->time_mape_pct);
    }
    mean_errors(predicted, measured, n, errors, &out->bias_pct, &out->mape_pct);
    if (kind == DTS_METRIC_TIME) {
        out->time_bias_pct = out->bias_pct;
        out->time_mape_pct = out->mape_pct;
    }
    gsl_sort(errors, 1, n);
    out->median_ape_pct = gsl_stats_median_from_sorted_data(errors, 1, n);
    out->p90_ape_pct = gsl_stats_quantile_from_sorted_data(errors, 1, n, 0.9);
    out->spearman = n < RANKS_LEAST ? NAN : gsl_stats_spearman(measured, 1, predicted, 1, n, work);
    out->n = n;
}

/* Of one group, or of all (SIZE_MAX). */
static dts_status summarise_some(const dts_validation *validation, int metric, int baseline, size_t group,
                                 dts_validate_summary *out) {
    *out = (dts_validate_summary){0};
    size_t most = validation->record_count;
    if (most == 0) {
        return DTS_OK;
    }
    double *numbers = malloc(5 * most * sizeof *numbers); /* measured, predicted, errors, 2n of work */
    if (numbers == NULL) {
        return DTS_NOMEM;
    }
    double *measured = numbers;
    double *predicted = numbers + most;
    size_t n = 0;
    for (size_t i = 0; i < most; i++) {
        const dts_validate_record *record = &validation->records[i];
        bool asked = record->metric == metric && (group == SIZE_MAX || record->group == group);
        if (asked && isfinite(predicted_by(record, baseline))) {
            measured[n] = record->measured;
            predicted[n++] = predicted_by(record, baseline);
        }
    }
    if (n > 0) {
        summarise(dts_metrics[metric].kind, measured, predicted, numbers + 2 * most, numbers + 3 * most, n, out);
    }
    free(numbers);
    return DTS_OK;
}

dts_status dts_validation_summary(const dts_validation *validation, int metric, int baseline,
                                  dts_validate_summary *out) {
    return summarise_some(validation, metric, baseline, SIZE_MAX, out);
}

dts_status dts_validation_group_summary(const dts_validation *validation, int metric, size_t group,
                                        dts_validate_summary *out) {
    return summarise_some(validation, metric, -1, group, out);
}

size_t dts_validation_worst(const dts_validation *validation, size_t *out) {
    size_t count = 0;
    for (size_t i = 0; i < validation->record_count && validation->worst > 0; i++) {
        double error = fabs(validation->records[i].predicted / validation->records[i].measured - 1);
        size_t at = count;
        while (at > 0 &&
               error >
                   fabs(validation->records[out[at - 1]].predicted / validation->records[out[at - 1]].measured - 1)) {
            at--;
        }
        if (at == validation->worst) {
            continue;
        }
        count += count < validation->worst ? 1 : 0;
        memmove(&out[at + 1], &out[at], (count - 1 - at) * sizeof *out);
        out[at] = i;
    }
    return count;
}

typedef struct ratio {
    double value, weight;
} ratio;

static int by_value(const void *a, const void *b) {
    double left = ((const ratio *)a)->value;
    double right = ((const ratio *)b)->value;
    return (left > right) - (left < right);
}

static double weighted_median(ratio *ratios, size_t count) {
    double half = 0;
    for (size_t i = 0; i < count; i++) {
        half += ratios[i].weight / 2;
    }
    qsort(ratios, count, sizeof *ratios, by_value);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += ratios[i].weight;
        if (sum >= half) {
            return ratios[i].value;
        }
    }
    return NAN;
}

/* Measured seconds per iteration; NaN for memory. */
static double measured_time_s(const dts_validate_record *record) {
    switch (dts_metrics[record->metric].kind) {
        case DTS_METRIC_TIME:
            return record->measured;
        case DTS_METRIC_RATE:
            return record->tokens_per_gpu / record->measured;
        case DTS_METRIC_MEMORY:
            break;
    }
    return NAN;
}

double dts_validate_measured_mfu(const dts_validate_record *record) {
    return record->ideal_s / measured_time_s(record);
}

/* The baseline's time at full utilisation. */
static double unscaled_s(const dts_validate_record *record, dts_baseline baseline) {
    return baseline == DTS_BASELINE_BUBBLE ? record->ideal_s * record->bubble_factor : record->ideal_s;
}

static void fit(dts_validation *v, size_t table, dts_baseline baseline, ratio *ratios) {
    size_t n = 0;
    for (size_t i = 0; i < v->record_count; i++) {
        const dts_validate_record *record = &v->records[i];
        double ratio_of_times = measured_time_s(record) / unscaled_s(record, baseline);
        if (record->table == table && isfinite(ratio_of_times) && ratio_of_times > 0) {
            ratios[n++] = (ratio){ratio_of_times, 1 / ratio_of_times};
        }
    }
    double scale = weighted_median(ratios, n);
    v->tables[table].utilisation[baseline] = 1 / scale;
    for (size_t i = 0; i < v->record_count; i++) {
        dts_validate_record *record = &v->records[i];
        if (record->table != table) {
            continue;
        }
        double seconds = scale * unscaled_s(record, baseline);
        bool rate = dts_metrics[record->metric].kind == DTS_METRIC_RATE;
        bool memory = dts_metrics[record->metric].kind == DTS_METRIC_MEMORY;
        record->baseline[baseline] = memory ? NAN : rate ? record->tokens_per_gpu / seconds : seconds;
    }
}

dts_status dts_validation_fit_baselines(dts_validation *validation) {
    ratio *ratios = malloc((validation->record_count + 1) * sizeof *ratios);
    if (ratios == NULL) {
        return DTS_NOMEM;
    }
    for (size_t t = 0; t < validation->table_count; t++) {
        for (int b = 0; b < DTS_BASELINE_COUNT; b++) {
            fit(validation, t, (dts_baseline)b, ratios);
        }
    }
    free(ratios);
    return DTS_OK;
}
