#include "report/validate.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "report/evidence.h"
#include "run/run.h"

const char *const dts_baseline_names[DTS_BASELINE_COUNT] = {"utilisation", "utilisation_with_bubble"};

enum { MODEL, STACK, ARCHITECTURE, PRECISION, NAME_COUNT };

/* What came of one row; texts are its own until they are gathered. */
typedef struct outcome {
    dts_status status;
    char *reason; /* why it could not be simulated */
    char *group;
    char *names[NAME_COUNT];    /* of the run's profiles */
    dts_validate_record record; /* all but metric, measured and predicted */
    double predicted[DTS_METRIC_COUNT];
} outcome;

typedef struct work {
    const dts_validate_request *request;
    dts_measurements measurements;
    outcome *outcomes;    /* [row] */
    pthread_mutex_t lock; /* of the progress */
    size_t done;
} work;

/* The first error, with its key. */
static char *reason_of(const dts_diag *why) {
    const dts_message *first = NULL;
    for (size_t i = 0; i < dts_diag_count(why) && first == NULL; i++) {
        const dts_message *message = dts_diag_get(why, i);
        first = message->severity == DTS_ERROR ? message : NULL;
    }
    dts_text text = {0};
    dts_text_add(&text, first == NULL ? "unknown" : first->text);
    if (first != NULL && first->key != NULL) {
        dts_text_printf(&text, " [%s]", first->key);
    }
    char *copy = dts_text_status(&text) == DTS_OK ? strdup(dts_text_string(&text)) : NULL;
    dts_text_free(&text);
    return copy;
}

/* Live tensors and the context on the fullest GPU, or what is offloaded to the fullest node. */
static dts_validate_lack lack_of(const dts_result *result) {
    const dts_validate_lack all[] = {
        {"GPU", result->peak_allocated_gib + result->memory_gib.context, result->capacity_gib},
        {"host", result->host_peak_gib, result->host_capacity_gib},
        {"NVMe", result->nvme_peak_gib, result->nvme_capacity_gib}};
    dts_validate_lack most = {0};
    for (size_t i = 0; i < sizeof all / sizeof all[0] && !result->fits; i++) {
        const bool more =
            most.of == NULL || all[i].needed_gib * most.capacity_gib > most.needed_gib * all[i].capacity_gib;
        most = more ? all[i] : most;
    }
    return most;
}

/* Names that outlive the scenario. */
static dts_status keep_names(const dts_published_run *run, outcome *out) {
    const char *const names[NAME_COUNT] = {run->model, run->stack, run->architecture, run->precision};
    for (size_t i = 0; i < NAME_COUNT; i++) {
        out->names[i] = strdup(names[i] != NULL ? names[i] : "");
        if (out->names[i] == NULL) {
            return DTS_NOMEM;
        }
    }
    return DTS_OK;
}

static dts_status fill_in(const dts_measurement *row, const dts_scenario *scenario, const dts_result *result,
                          outcome *out) {
    const dts_scenario_values *values = dts_scenario_get(scenario);
    double p = (double)(values->parallelism.pipeline > 1 ? values->parallelism.pipeline : 1);
    double chunks = (double)(values->parallelism.virtual_stages > 1 ? values->parallelism.virtual_stages : 1);
    out->record = (dts_validate_record){
        .id = row->id,
        .table = row->table,
        .lack = lack_of(result),
        .strain = {result->fits ? result->allocator.unserved_gib : 0, dts_retry_share(result)},
        .fill = (result->peak_allocated_gib + result->memory_gib.context) / result->capacity_gib,
        /* seven digits: rows with the same work must tie, whatever rounding their times have left */
        .ideal_s = (double)(float)(result->mfu * result->iteration_time_s),
        .bubble_factor = 1 + (p - 1) / ((double)(result->microbatches > 0 ? result->microbatches : 1) * chunks),
        .tokens_per_gpu = result->tokens_per_s_per_gpu * result->iteration_time_s,
        .gpus = (double)result->gpus,
        .sequence_length = (double)values->training.sequence_length,
        .trains = values->training.mode == DTS_MODE_TRAIN,
        .run = dts_evidence_of(scenario, result)};
    for (int m = 0; m < DTS_METRIC_COUNT; m++) {
        out->predicted[m] = dts_metric_predicted(result, m);
    }
    return keep_names(&out->record.run, out);
}

static void do_row(void *context, size_t index) {
    work *w = context;
    const dts_measurement *row = &w->measurements.rows[index];
    outcome *out = &w->outcomes[index];
    if (w->request->stop != NULL && atomic_load(w->request->stop)) {
        out->status = DTS_INTERRUPTED;
        return;
    }
    pthread_mutex_lock(&w->lock);
    if (w->request->progress != NULL) {
        w->request->progress(w->request->context, w->done, w->measurements.row_count, row->id);
    }
    w->done++;
    pthread_mutex_unlock(&w->lock);
    dts_diag *why = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_result *result = NULL;
    const dts_run_options options = {.stop = w->request->stop};
    out->status = why == NULL ? DTS_NOMEM
                              : dts_measurement_simulate(row, w->request->overrides, w->request->override_count,
                                                         w->request->profiles, &options, &scenario, &result, why);
    if (out->status == DTS_OK) {
        out->status = fill_in(row, scenario, result, out);
    } else if (why != NULL) {
        out->reason = reason_of(why);
        out->status = out->reason == NULL || dts_diag_status(why) == DTS_NOMEM ? DTS_NOMEM : out->status;
    }
    if (out->status == DTS_OK && w->request->by != NULL) {
        const char *group = dts_measurement_group(&w->measurements, row, scenario, w->request->by);
        out->group = strdup(group != NULL ? group : "-");
        out->status = out->group != NULL ? DTS_OK : DTS_NOMEM;
    }
    dts_result_free(result);
    dts_scenario_free(scenario);
    dts_diag_free(why);
}

/* ---- gathering, in the order of the rows ------------------------------------------------------------------------- */

/* Index of a group's name, entered when it is new; SIZE_MAX: out of memory. */
static size_t group_of(dts_validation *v, const char *name) {
    for (size_t i = 0; i < v->group_count; i++) {
        if (strcmp(v->groups[i], name) == 0) {
            return i;
        }
    }
    v->groups[v->group_count] = dts_arena_strdup(v->arena, name);
    return v->groups[v->group_count] != NULL ? v->group_count++ : SIZE_MAX;
}

static dts_status name_run(const dts_validation *v, const dts_measurement *row, const outcome *out,
                           dts_published_run *run) {
    run->table = v->tables[row->table].name;
    run->id = row->id;
    run->source = dts_arena_strndup(v->arena, row->source, dts_evidence_source_length(row->source));
    run->model = dts_arena_strdup(v->arena, out->names[MODEL]);
    run->stack = dts_arena_strdup(v->arena, out->names[STACK]);
    run->architecture = dts_arena_strdup(v->arena, out->names[ARCHITECTURE]);
    run->precision = dts_arena_strdup(v->arena, out->names[PRECISION]);
    return run->source != NULL && run->model != NULL && run->stack != NULL && run->architecture != NULL &&
                   run->precision != NULL
               ? DTS_OK
               : DTS_NOMEM;
}

/* Measured over predicted memory: allocated, which stands first and tells most of what is needed, else reserved; 0:
 * neither is measured. */
static double memory_ratio(const dts_measurement *row, const outcome *out) {
    for (int m = 0; m < DTS_METRIC_COUNT; m++) {
        const bool needed =
            dts_metrics[m].kind == DTS_METRIC_MEMORY && strcmp(dts_metrics[m].name, "peak_device_gib") != 0;
        if (needed && row->measured[m] > 0) {
            return row->measured[m] / out->predicted[m];
        }
    }
    return 0;
}

static dts_status gather_row(dts_validation *v, const dts_measurement *row, const outcome *out) {
    if (out->status == DTS_NOMEM) { /* no fault of the row: the errors of the others alone would be another table's */
        return DTS_NOMEM;
    }
    if (out->status != DTS_OK) {
        const bool stopped = out->status == DTS_INTERRUPTED;
        const char *reason = stopped               ? "interrupted"
                             : out->reason != NULL ? dts_arena_strdup(v->arena, out->reason)
                                                   : NULL;
        v->interrupted += stopped;
        v->failures[v->failure_count++] =
            (dts_validate_failure){.id = row->id, .table = row->table, .line = row->line, .reason = reason};
        return reason != NULL ? DTS_OK : DTS_NOMEM;
    }
    v->tables[row->table].simulated++;
    dts_validate_record record = out->record;
    if (out->group != NULL) {
        record.group = group_of(v, out->group);
    }
    if (name_run(v, row, out, &record.run) != DTS_OK) {
        return DTS_NOMEM;
    }
    record.run.memory = memory_ratio(row, out);
    for (int m = 0; m < DTS_METRIC_COUNT; m++) {
        if (row->measured[m] > 0) {
            record.metric = m;
            record.measured = row->measured[m];
            record.predicted = out->predicted[m];
            record.run.ratio = dts_metrics[m].kind == DTS_METRIC_TIME   ? record.measured / record.predicted
                               : dts_metrics[m].kind == DTS_METRIC_RATE ? record.predicted / record.measured
                                                                        : 0;
            v->records[v->record_count++] = record;
        }
    }
    return record.group != SIZE_MAX ? DTS_OK : DTS_NOMEM;
}

static dts_status gather(const work *w, dts_validation *v) {
    const dts_measurements *m = &w->measurements;
    v->tables = dts_arena_array(v->arena, m->table_count, sizeof *v->tables);
    v->records = dts_arena_array(v->arena, m->row_count * DTS_METRIC_COUNT, sizeof *v->records);
    v->failures = dts_arena_array(v->arena, m->row_count, sizeof *v->failures);
    v->groups = dts_arena_array(v->arena, m->row_count, sizeof *v->groups);
    v->by = w->request->by != NULL ? dts_arena_strdup(v->arena, w->request->by) : NULL;
    if (v->tables == NULL || v->records == NULL || v->failures == NULL || v->groups == NULL ||
        (v->by == NULL && w->request->by != NULL)) {
        return DTS_NOMEM;
    }
    v->worst = w->request->worst;
    v->table_count = m->table_count;
    for (size_t t = 0; t < m->table_count; t++) {
        const char *name = dts_arena_stem(v->arena, m->tables[t].path);
        if (name == NULL) {
            return DTS_NOMEM;
        }
        v->tables[t] = (dts_validate_table){.path = m->tables[t].path, .name = name, .rows = m->tables[t].rows};
    }
    dts_status status = DTS_OK;
    for (size_t i = 0; i < m->row_count && status == DTS_OK; i++) {
        status = gather_row(v, &m->rows[i], &w->outcomes[i]);
    }
    return status == DTS_OK ? dts_validation_fit_baselines(v) : status;
}

static dts_status simulate_all(work *w, dts_diag *diag) {
    w->outcomes = calloc(w->measurements.row_count + 1, sizeof *w->outcomes);
    if (w->outcomes == NULL || pthread_mutex_init(&w->lock, NULL) != 0) {
        return dts_diag_nomem(diag);
    }
    dts_parallel_for(w->measurements.row_count, w->request->threads, do_row, w);
    pthread_mutex_destroy(&w->lock);
    return DTS_OK;
}

/* A table in which nothing is measured is simulated all the same: that every row can be is an answer, too. */
static void warn_of_unmeasured(const dts_measurements *measurements, dts_diag *diag) {
    for (size_t t = 0; t < measurements->table_count; t++) {
        bool measured = false;
        for (size_t r = 0; r < measurements->row_count; r++) {
            for (size_t m = 0; m < DTS_METRIC_COUNT && measurements->rows[r].table == t; m++) {
                measured = measured || measurements->rows[r].measured[m] > 0;
            }
        }
        if (!measured) {
            dts_diag_warning(diag, &(dts_place){.file = measurements->tables[t].path}, NULL,
                             "fill in a column measured.…; `dtsim run TABLE.csv#ID` shows what a row takes",
                             "no row has a measured value: there is nothing to compare with");
        }
    }
}

dts_status dts_validate(const dts_validate_request *request, dts_validation **out, dts_diag *diag) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_validation *validation = arena != NULL ? dts_arena_alloc(arena, sizeof *validation) : NULL;
    if (validation == NULL) {
        dts_arena_free(arena);
        return dts_diag_nomem(diag);
    }
    validation->arena = arena;
    work w = {.request = request};
    dts_status status = request->by != NULL ? dts_measurement_check_group(request->by, diag) : DTS_OK;
    if (status == DTS_OK) {
        status = dts_measurements_read(request->paths, request->path_count, arena, &w.measurements, diag);
    }
    if (status == DTS_OK) {
        warn_of_unmeasured(&w.measurements, diag);
        status = simulate_all(&w, diag);
    }
    if (status == DTS_OK) {
        status = gather(&w, validation) == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
    }
    for (size_t i = 0; w.outcomes != NULL && i < w.measurements.row_count; i++) {
        free(w.outcomes[i].reason);
        free(w.outcomes[i].group);
        for (size_t n = 0; n < NAME_COUNT; n++) {
            free(w.outcomes[i].names[n]);
        }
    }
    free(w.outcomes);
    if (status != DTS_OK) {
        dts_arena_free(arena);
        return status;
    }
    *out = validation;
    return DTS_OK;
}

void dts_validation_free(dts_validation *validation) {
    if (validation != NULL) {
        dts_arena_free(validation->arena);
    }
}

dts_status dts_validation_evidence(const dts_validation *validation, dts_text *out, size_t *runs) {
    *runs = 0;
    dts_evidence_begin(out);
    for (size_t i = 0; i < validation->record_count; i++) {
        const dts_validate_record *record = &validation->records[i];
        const dts_validate_record *before = i > 0 ? &validation->records[i - 1] : NULL;
        const bool again = before != NULL && before->run.ratio > 0 && before->table == record->table &&
                           strcmp(before->id, record->id) == 0;
        if (record->trains && record->run.ratio > 0 && !again) { /* a time and a rate say the same */
            dts_evidence_add(&record->run, out);
            ++*runs;
        }
    }
    return dts_text_status(out);
}
