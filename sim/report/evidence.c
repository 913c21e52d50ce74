#include "report/evidence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quote.h"
#include "config/table.h"
#include "report/fields.h"
#include "run/verdict.h"

#define RECORD       "scenarios/published/record/runs.csv"
#define LIKELY_SHARE 0.8
enum { LEAST_SOURCES = 5, NEAREST_SHOWN = 5 };

/* ---- the file ---------------------------------------------------------------------------------------------------- */

enum column { TABLE, ID, SOURCE, MODEL, STACK, ARCHITECTURE, PRECISION, PARAMETERS, GPUS, MFU, RATIO, MEMORY, COLUMNS };
static const char *const column_names[COLUMNS] = {"table",        "id",          "source",     "model", "stack",
                                                  "architecture", "precision",   "parameters", "gpus",  "predicted_mfu",
                                                  "ratio",        "memory_ratio"};

void dts_evidence_begin(dts_text *out) {
    for (size_t c = 0; c < COLUMNS; c++) {
        dts_text_printf(out, "%s%s", column_names[c], c + 1 < COLUMNS ? "," : "\n");
    }
}

void dts_evidence_add(const dts_published_run *run, dts_text *out) {
    const char *const texts[] = {run->table, run->id,           run->source,   run->model,
                                 run->stack, run->architecture, run->precision};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        dts_text_add_cell(out, texts[i]);
        dts_text_add(out, ",");
    }
    dts_text_printf(out, "%.4g,%.0f,%.4g,%.5g,", run->parameters, run->gpus, run->mfu, run->ratio);
    if (run->memory > 0) {
        dts_text_printf(out, "%.5g", run->memory);
    }
    dts_text_add(out, "\n");
}

size_t dts_evidence_source_length(const char *source) {
    size_t length = strcspn(source, "@(,;:");
    while (length > 0 && source[length - 1] == ' ') {
        length--;
    }
    return length;
}

static dts_status find_columns(const dts_table *table, size_t at[COLUMNS], dts_diag *diag) {
    dts_status status = DTS_OK;
    for (size_t c = 0; c < COLUMNS; c++) {
        at[c] = dts_table_column(table, column_names[c]);
        if (at[c] == SIZE_MAX) {
            status = dts_diag_error(diag, &(dts_place){.file = table->path}, NULL,
                                    "`dtsim validate --record` writes such a table", "no column '%s'", column_names[c]);
        }
    }
    return status;
}

static dts_status read_run(const dts_table_cell *cells, const size_t at[COLUMNS], dts_published_run *run,
                           dts_diag *diag) {
    static const char help[] = "`dtsim validate --record` writes such a table";
    *run = (dts_published_run){.table = cells[at[TABLE]].text,
                               .id = cells[at[ID]].text,
                               .source = cells[at[SOURCE]].text,
                               .model = cells[at[MODEL]].text,
                               .stack = cells[at[STACK]].text,
                               .architecture = cells[at[ARCHITECTURE]].text,
                               .precision = cells[at[PRECISION]].text,
                               .parameters = dts_table_positive(&cells[at[PARAMETERS]], help, diag),
                               .gpus = dts_table_positive(&cells[at[GPUS]], help, diag),
                               .mfu = dts_table_positive(&cells[at[MFU]], help, diag),
                               .ratio = dts_table_positive(&cells[at[RATIO]], help, diag)};
    const dts_table_cell *memory = &cells[at[MEMORY]];
    run->memory = memory->text[0] != '\0' ? dts_table_positive(memory, help, diag) : 0;
    return run->parameters > 0 && run->gpus > 0 && run->mfu > 0 && run->ratio > 0 &&
                   (run->memory > 0 || memory->text[0] == '\0')
               ? DTS_OK
               : DTS_INVALID;
}

static int by_ratio(const void *a, const void *b) {
    const dts_published_run *x = a, *y = b;
    if (x->ratio != y->ratio) {
        return x->ratio < y->ratio ? -1 : 1;
    }
    const int table = strcmp(x->table, y->table);
    return table != 0 ? table : strcmp(x->id, y->id);
}

static int by_source(const void *a, const void *b) {
    const dts_published_run *const *x = a, *const *y = b;
    return strcmp((*x)->source, (*y)->source);
}

/* Fills in the shares; order has room for all runs. */
static void share_sources(dts_evidence *e, const dts_published_run **order) {
    for (size_t i = 0; i < e->count; i++) {
        order[i] = &e->runs[i];
    }
    qsort(order, e->count, sizeof *order, by_source);
    for (size_t first = 0, behind = 0; first < e->count; first = behind) {
        while (behind < e->count && by_source(&order[first], &order[behind]) == 0) {
            behind++;
        }
        size_t measured = 0;
        for (size_t i = first; i < behind; i++) {
            measured += order[i]->memory > 0 ? 1 : 0;
        }
        for (size_t i = first; i < behind; i++) {
            e->share[order[i] - e->runs] = 1 / sqrt((double)(behind - first));
            e->memory_share[order[i] - e->runs] = order[i]->memory > 0 ? 1 / sqrt((double)measured) : 0;
        }
    }
}

dts_status dts_evidence_read(const char *path, dts_arena *arena, dts_evidence *out, dts_diag *diag) {
    *out = (dts_evidence){0};
    dts_table table;
    size_t at[COLUMNS];
    dts_status status = dts_table_read(path, arena, &table, diag);
    status = status == DTS_OK ? find_columns(&table, at, diag) : status;
    if (status != DTS_OK) {
        return status;
    }
    out->runs = dts_arena_array(arena, table.rows, sizeof *out->runs);
    out->share = dts_arena_array(arena, table.rows, sizeof *out->share);
    out->memory_share = dts_arena_array(arena, table.rows, sizeof *out->memory_share);
    const dts_published_run **order = dts_arena_array(arena, table.rows, sizeof *order);
    if (out->runs == NULL || out->share == NULL || out->memory_share == NULL || order == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t r = 0; r < table.rows; r++) {
        const dts_status row = read_run(&table.cells[r * table.columns], at, &out->runs[r], diag);
        status = row == DTS_OK ? status : row;
    }
    if (status == DTS_OK) {
        out->count = table.rows;
        qsort(out->runs, out->count, sizeof *out->runs, by_ratio);
        share_sources(out, order);
    }
    return status;
}

/* ---- what it says ------------------------------------------------------------------------------------------------ */

static bool same(const char *a, const char *b) {
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static double likeness(const dts_published_run *run, const dts_published_run *like) {
    return exp(-fabs(log(run->mfu / like->mfu)));
}

/* The ratio that a part of the weights lies at or below. */
static double quantile(const dts_evidence *e, const double *weights, double total, double part) {
    double sum = 0;
    size_t i = 0;
    for (; i + 1 < e->count && sum + weights[i] < part * total; i++) {
        sum += weights[i];
    }
    return e->runs[i].ratio;
}

bool dts_evidence_range(const dts_evidence *evidence, const dts_published_run *like, const char *left_out, double share,
                        double *low, double *high) {
    double *weights = calloc(evidence->count + 1, sizeof *weights);
    double total = 0, sources = 0; /* n runs of a source have shares of 1/root(n): n of their squares are 1 */
    if (weights == NULL) {
        return false;
    }
    for (size_t i = 0; i < evidence->count && like->mfu > 0; i++) {
        const bool counts = left_out == NULL || strcmp(evidence->runs[i].source, left_out) != 0;
        weights[i] = counts ? evidence->share[i] * likeness(&evidence->runs[i], like) : 0;
        total += weights[i];
        sources += counts ? evidence->share[i] * evidence->share[i] : 0;
    }
    const bool known = total > 0 && sources > LEAST_SOURCES - 0.5;
    if (known) {
        *low = quantile(evidence, weights, total, (1 - share) / 2);
        *high = quantile(evidence, weights, total, (1 + share) / 2);
    }
    free(weights);
    return known;
}

double dts_evidence_memory_within(const dts_evidence *evidence, const char *left_out, double most) {
    double within = 0, total = 0, sources = 0; /* as above */
    for (size_t i = 0; i < evidence->count; i++) {
        const bool counts = left_out == NULL || strcmp(evidence->runs[i].source, left_out) != 0;
        const double weight = counts ? evidence->memory_share[i] : 0;
        total += weight;
        within += evidence->runs[i].memory <= most ? weight : 0;
        sources += weight * weight;
    }
    return total > 0 && sources > LEAST_SOURCES - 0.5 ? within / total : -1;
}

const double dts_evidence_sure = 0.85;

double dts_evidence_memory_most(const dts_evidence *evidence, double share) {
    double least = 0;
    for (size_t i = 0; i < evidence->count; i++) {
        const double most = evidence->runs[i].memory;
        if (most > 0 && (least == 0 || most < least) && dts_evidence_memory_within(evidence, NULL, most) >= share) {
            least = most;
        }
    }
    return least;
}

/* "amp-bf16" has the products of "bf16". */
static const char *product_of(const char *precision) {
    static const char amp[] = "amp-";
    return precision != NULL && strncmp(precision, amp, sizeof amp - 1) == 0 ? precision + sizeof amp - 1 : precision;
}

/* For a reader, not for the range: the same software and GPUs say most, then the precision and the kind of model. */
static double nearness(const dts_published_run *run, const dts_published_run *like) {
    return likeness(run, like) * (same(run->stack, like->stack) ? 4 : 1) *
           (same(run->architecture, like->architecture) ? 4 : 1) *
           (same(product_of(run->precision), product_of(like->precision)) ? 2 : 1) *
           (same(run->model, like->model) ? 2 : 1) *
           exp(-fabs(log(run->gpus / like->gpus)) / 2 - fabs(log(run->parameters / like->parameters)) / 2);
}

size_t dts_evidence_nearest(const dts_evidence *evidence, const dts_published_run *like, size_t most, size_t *out) {
    size_t count = 0;
    while (count < most && like->mfu > 0) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < evidence->count; i++) {
            bool fresh = true;
            for (size_t k = 0; k < count; k++) {
                fresh = fresh && strcmp(evidence->runs[out[k]].source, evidence->runs[i].source) != 0;
            }
            if (fresh &&
                (best == SIZE_MAX || nearness(&evidence->runs[i], like) > nearness(&evidence->runs[best], like))) {
                best = i;
            }
        }
        if (best == SIZE_MAX) {
            break;
        }
        out[count++] = best;
    }
    return count;
}

/* ---- a result's range -------------------------------------------------------------------------------------------- */

dts_published_run dts_evidence_of(const dts_scenario *scenario, const dts_result *result) {
    return (dts_published_run){.model = dts_scenario_value(scenario, "model.architecture"),
                               .precision = dts_scenario_value(scenario, "training.precision"),
                               .stack = result->stack,
                               .architecture = dts_scenario_value(scenario, "cluster.gpu.architecture"),
                               .parameters = result->parameters,
                               .gpus = (double)result->gpus,
                               .mfu = result->mfu};
}

static void add_fit_shares(const dts_evidence *evidence, dts_cure *cures, size_t count) {
    for (size_t i = 0; i < count; i++) {
        cures[i].fit_share = fmax(dts_evidence_memory_within(evidence, NULL, cures[i].room), 0);
    }
}

static dts_status fill_in(const dts_evidence *evidence, const dts_published_run *like, dts_result *result) {
    double low = 0, high = 0;
    size_t nearest[NEAREST_SHOWN];
    add_fit_shares(evidence, result->cures, result->cure_count);
    add_fit_shares(evidence, result->other_trainings, result->other_training_count);
    const double room = dts_memory_room(result, result->peak_allocated_gib);
    result->likely.fit_share = fmax(dts_evidence_memory_within(evidence, NULL, room), 0);
    if (!result->fits || !dts_evidence_range(evidence, like, NULL, LIKELY_SHARE, &low, &high)) {
        return DTS_OK;
    }
    const size_t count = dts_evidence_nearest(evidence, like, NEAREST_SHOWN, nearest);
    dts_published_run *runs = dts_arena_array(result->arena, count, sizeof *runs);
    if (runs == NULL) {
        return DTS_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        runs[i] = evidence->runs[nearest[i]];
    }
    result->likely.low_s = low * result->iteration_time_s;
    result->likely.high_s = high * result->iteration_time_s;
    result->likely.nearest = runs;
    result->likely.nearest_count = count;
    return DTS_OK;
}

/* A result is worth more than its range: what is wrong with the record is a warning. */
static void warn(const char *path, const dts_diag *why, dts_diag *diag) {
    const dts_message *first = dts_diag_count(why) > 0 ? dts_diag_get(why, 0) : NULL;
    dts_diag_warning(diag, first != NULL ? &first->place : &(dts_place){.file = path}, NULL,
                     "`dtsim validate --record` writes such a file; without it no likely range is told",
                     "the record of published runs cannot be read: %s", first != NULL ? first->text : "unknown");
}

/* The record in the first folder that has one, in *out; NULL: none has. */
static dts_status find_record(const dts_profile_paths *folders, dts_arena *arena, const char **out) {
    *out = NULL;
    for (size_t i = 0; i < folders->count && *out == NULL; i++) {
        const char *path = dts_arena_printf(arena, "%s/" RECORD, folders->roots[i]);
        if (path == NULL) {
            return DTS_NOMEM;
        }
        *out = access(path, R_OK) == 0 ? path : NULL;
    }
    return DTS_OK;
}

dts_status dts_evidence_open(const dts_scenario_values *values, const dts_profile_paths *folders, dts_arena *arena,
                             dts_evidence *out, dts_diag *diag) {
    *out = (dts_evidence){0};
    if (values->training.mode != DTS_MODE_TRAIN) {
        return DTS_OK;
    }
    const char *path = NULL;
    dts_diag *why = dts_diag_new();
    dts_status status = why != NULL ? find_record(folders, arena, &path) : DTS_NOMEM;
    if (status == DTS_OK && path != NULL) {
        status = dts_evidence_read(path, arena, out, why);
        if (status != DTS_OK && status != DTS_NOMEM) {
            warn(path, why, diag);
            status = DTS_OK;
        }
    }
    dts_diag_free(why);
    return status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}

dts_status dts_evidence_attach(const dts_evidence *evidence, const dts_scenario *scenario, dts_result *result,
                               dts_diag *diag) {
    const dts_published_run like = dts_evidence_of(scenario, result);
    return fill_in(evidence, &like, result) == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
}
