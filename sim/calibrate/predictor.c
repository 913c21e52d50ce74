#include "calibrate/predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/quantity.h"

struct dts_point {
    dts_point *next;
    double *values;         /* [parameter] */
    double *log_prediction; /* [record] */
    bool *known;            /* [row] */
};

/* One row at one point. */
typedef struct job {
    size_t row;
    dts_point *point;
    dts_status status;
} job;

typedef struct batch {
    const dts_predictor *p;
    job *jobs;
    dts_text *reasons; /* [job] why it failed */
} batch;

static dts_point *find(const dts_predictor *p, const double *values) {
    for (dts_point *point = p->points; point != NULL; point = point->next) {
        if (memcmp(point->values, values, p->parameter_count * sizeof *values) == 0) {
            return point;
        }
    }
    return NULL;
}

static dts_point *add(dts_predictor *p, const double *values) {
    dts_point *point = dts_arena_alloc(p->arena, sizeof *point);
    if (point == NULL) {
        return NULL;
    }
    point->values = dts_arena_array(p->arena, p->parameter_count, sizeof *point->values);
    point->log_prediction = dts_arena_array(p->arena, p->record_count, sizeof *point->log_prediction);
    point->known = dts_arena_array(p->arena, p->measurements->row_count, sizeof *point->known);
    if (point->values == NULL || point->log_prediction == NULL || point->known == NULL) {
        return NULL;
    }
    memcpy(point->values, values, p->parameter_count * sizeof *values);
    point->next = p->points;
    p->points = point;
    return point;
}

static void do_job(void *context, size_t index) {
    const batch *b = context;
    const dts_predictor *p = b->p;
    job *j = &b->jobs[index];
    dts_text texts[DTS_FIT_PARAMETERS_MOST] = {{0}};
    dts_override overrides[DTS_FIT_PARAMETERS_MOST + 1];
    dts_override *all = calloc(p->request->override_count + p->parameter_count, sizeof *all);
    dts_diag *why = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    j->status = all == NULL || why == NULL ? DTS_NOMEM : DTS_OK;
    for (size_t i = 0; j->status == DTS_OK && i < p->parameter_count; i++) {
        dts_quantity_format_exact(j->point->values[i], p->parameters[i].dimension, &texts[i]);
        overrides[i] = (dts_override){.key = p->parameters[i].key,
                                      .value = dts_text_string(&texts[i]),
                                      .place = {.file = "--fit", .origin = DTS_ORIGIN_FIT}};
        all[p->request->override_count + i] = overrides[i];
    }
    for (size_t i = 0; j->status == DTS_OK && i < p->request->override_count; i++) {
        all[i] = p->request->overrides[i];
    }
    if (j->status == DTS_OK) {
        j->status = dts_measurement_simulate(&p->measurements->rows[j->row], all,
                                             p->request->override_count + p->parameter_count, p->request->profiles,
                                             NULL, &scenario, &result, why);
    }
    for (size_t r = 0; j->status == DTS_OK && r < p->record_count; r++) {
        if (p->records[r].row == j->row) {
            j->point->log_prediction[r] = log(dts_metric_predicted(result, p->records[r].metric));
        }
    }
    if (j->status != DTS_OK && why != NULL && dts_diag_count(why) > 0) {
        dts_text_add(&b->reasons[index], dts_diag_get(why, 0)->text);
    }
    for (size_t i = 0; i < p->parameter_count; i++) {
        dts_text_free(&texts[i]);
    }
    dts_result_free(result);
    dts_scenario_free(scenario);
    dts_diag_free(why);
    free(all);
}

/* Simulates jobs; the first that failed is reported. */
static dts_status run(dts_predictor *p, job *jobs, size_t count) {
    batch b = {.p = p, .jobs = jobs, .reasons = calloc(count + 1, sizeof *b.reasons)};
    if (b.reasons == NULL) {
        return dts_diag_nomem(p->diag);
    }
    if (p->request->progress != NULL) {
        p->request->progress(p->request->context, p->simulations, 0, "fitting");
    }
    dts_parallel_for(count, p->request->threads, do_job, &b);
    p->simulations += count;
    dts_status status = DTS_OK;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].status != DTS_OK && status == DTS_OK) {
            status = jobs[i].status == DTS_NOMEM
                         ? dts_diag_nomem(p->diag)
                         : dts_diag_error(p->diag, NULL, NULL, "narrow the bounds of the parameters",
                                          "row '%s' cannot be simulated with changed parameters: %s",
                                          p->measurements->rows[jobs[i].row].id, dts_text_string(&b.reasons[i]));
        }
        dts_text_free(&b.reasons[i]);
    }
    free(b.reasons);
    return status;
}

static bool is_wanted(const dts_predictor *p, size_t row) {
    bool wanted = false;
    for (size_t r = 0; r < p->record_count && !wanted; r++) {
        wanted = p->records[r].row == row && (p->chosen == NULL || p->chosen[r]);
    }
    return wanted && p->used[row];
}

dts_status dts_predict_at(dts_predictor *p, const double *values, size_t count, const double **out) {
    size_t rows = p->measurements->row_count;
    job *jobs = calloc(count * rows + 1, sizeof *jobs);
    dts_status status = jobs == NULL ? dts_diag_nomem(p->diag) : DTS_OK;
    size_t job_count = 0;
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        dts_point *point = find(p, &values[i * p->parameter_count]);
        if (point == NULL) {
            point = add(p, &values[i * p->parameter_count]);
            if (point == NULL) {
                status = dts_diag_nomem(p->diag);
                break;
            }
        }
        for (size_t r = 0; r < rows; r++) {
            if (!point->known[r] && is_wanted(p, r)) {
                point->known[r] = true;
                jobs[job_count++] = (job){.row = r, .point = point};
            }
        }
        out[i] = point->log_prediction;
    }
    if (status == DTS_OK && job_count > 0) {
        status = run(p, jobs, job_count);
    }
    free(jobs);
    return status;
}

void dts_predictor_drop(dts_predictor *p, size_t j, double start) {
    dts_point **next = &p->points;
    while (*next != NULL) {
        double *values = (*next)->values;
        if (values[j] == start) {
            memmove(&values[j], &values[j + 1], (p->parameter_count - j - 1) * sizeof *values);
            next = &(*next)->next;
        } else {
            *next = (*next)->next;
        }
    }
    p->parameter_count--;
}
