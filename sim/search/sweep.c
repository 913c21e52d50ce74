#include "search/sweep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "run/physics.h"
#include "run/run.h"

enum { MOST_COMBINATIONS = 1000000 };

typedef struct worker {
    const dts_sweep_request *request;
    dts_sweep *sweep;
    pthread_mutex_t lock; /* of the store, the counters and the progress */
    size_t done;
    dts_status status; /* the first that was not of one combination */
} worker;

void dts_sweep_free(dts_sweep *sweep) {
    if (sweep != NULL) {
        for (size_t i = 0; i < sweep->count && sweep->outcomes != NULL; i++) {
            dts_outcome_clear(&sweep->outcomes[i]);
        }
        free(sweep->outcomes);
        free(sweep->pareto);
        free(sweep->work);
        free(sweep->changed);
        free(sweep);
    }
}

static size_t value_index(const dts_sweep *sweep, size_t index, size_t axis) {
    for (size_t a = sweep->axis_count; a-- > axis + 1;) {
        index /= sweep->axes[a].count;
    }
    return index % sweep->axes[axis].count;
}

const char *dts_sweep_value(const dts_sweep *sweep, size_t index, size_t axis) {
    return sweep->axes[axis].values[value_index(sweep, index, axis)];
}

void dts_sweep_settings(const dts_sweep *sweep, size_t index, dts_text *out) {
    for (size_t a = 0; a < sweep->axis_count; a++) {
        dts_text_printf(out, "%s%s=%s", a > 0 ? " " : "", sweep->axes[a].key, dts_sweep_value(sweep, index, a));
    }
}

/* Does it change what a token takes? */
static bool changes_work(const dts_axis *axis) {
    static const char *const keys[] = {
        "model", "model.profile", "model.layers", "model.hidden", "graph", "training.sequence_length", "training.mode"};
    for (size_t k = 0; k < dts_axis_keys(axis); k++) {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            if (strcmp(dts_axis_key(axis, k), keys[i]) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* The first combination of the same work has the first value on every axis that does not change it. */
static void find_work(dts_sweep *sweep) {
    for (size_t i = 0; i < sweep->count; i++) {
        size_t first = i, stride = 1;
        for (size_t a = sweep->axis_count; a-- > 0;) {
            first -= changes_work(&sweep->axes[a]) ? 0 : stride * value_index(sweep, i, a);
            stride *= sweep->axes[a].count;
        }
        sweep->work[i] = first;
    }
}

bool dts_sweep_of_several_works(const dts_sweep *sweep) {
    return sweep->work[sweep->count - 1] != sweep->work[0];
}

/* ---- one combination --------------------------------------------------------------------------------------------- */

static dts_status load(const dts_sweep_request *request, const dts_sweep *sweep, size_t index, dts_scenario **out,
                       dts_diag *diag) {
    size_t count = request->override_count;
    for (size_t a = 0; a < request->axis_count; a++) {
        count += dts_axis_keys(&request->axes[a]);
    }
    dts_override *overrides = calloc(count, sizeof *overrides);
    if (overrides == NULL) {
        return dts_diag_nomem(diag);
    }
    size_t at = 0;
    for (; at < request->override_count; at++) {
        overrides[at] = request->overrides[at];
    }
    for (size_t a = 0; a < request->axis_count; a++) {
        const dts_axis *axis = &request->axes[a];
        for (size_t k = 0; k < dts_axis_keys(axis); k++) {
            const char *value = dts_axis_part(axis, value_index(sweep, index, a), k);
            overrides[at++] = (dts_override){
                .key = dts_axis_key(axis, k),
                .value = value,
                .place = {.file = "--vary", .line = 0, .line_text = value, .line_length = strlen(value)}};
        }
    }
    dts_status status = dts_scenario_load(request->path, overrides, count, request->profiles, out, diag);
    free(overrides);
    return status;
}

/* Loads a combination and hashes what decides its result: the effective scenario, or, when it cannot be read, why. */
static dts_status identify(const dts_sweep_request *request, const dts_sweep *sweep, size_t index, dts_scenario **out,
                           dts_text *document, dts_diag *diag) {
    dts_status status = load(request, sweep, index, out, diag);
    if (status == DTS_OK) {
        dts_effective_document(*out, document);
    } else {
        dts_text_add(document, "refused: ");
        dts_diag_render(diag, false, document);
    }
    if (status == DTS_NOMEM || dts_text_status(document) != DTS_OK) {
        return DTS_NOMEM;
    }
    return status == DTS_IO ? DTS_INVALID : status; /* a profile that is not there */
}

static dts_status simulate(const dts_scenario *scenario, dts_outcome *out, dts_diag *diag) {
    dts_result *result = NULL;
    dts_status status = dts_run(scenario, NULL, &result, diag);
    if (status == DTS_OK) {
        status = dts_outcome_of_result(result, out);
    }
    dts_result_free(result);
    return status;
}

static bool look_up(worker *w, const char *hash, dts_outcome *out) {
    if (w->request->store == NULL) {
        return false;
    }
    pthread_mutex_lock(&w->lock);
    const bool found = dts_store_find(w->request->store, hash, out);
    pthread_mutex_unlock(&w->lock);
    return found;
}

/* Counts, stores and tells. hash: its result's, NULL: there is none to be kept. */
static void account(worker *w, size_t index, const char *hash, bool found) {
    pthread_mutex_lock(&w->lock);
    dts_sweep *sweep = w->sweep;
    const dts_outcome *outcome = &sweep->outcomes[index];
    dts_text settings = {0};
    dts_sweep_settings(sweep, index, &settings);
    sweep->reused += found;
    sweep->simulated += !found && outcome->kind == DTS_OUTCOME_SIMULATED;
    sweep->illegal += outcome->kind == DTS_OUTCOME_ILLEGAL;
    sweep->no_memory += outcome->kind == DTS_OUTCOME_NO_MEMORY;
    w->done++;
    if (hash != NULL && w->request->store != NULL) {
        dts_store_add(w->request->store, w->request->study, index, dts_text_string(&settings), hash,
                      found ? NULL : outcome);
    }
    if (w->request->progress != NULL) {
        w->request->progress(w->request->progress_context, w->done, sweep->count, dts_text_string(&settings));
    }
    dts_text_free(&settings);
    pthread_mutex_unlock(&w->lock);
}

static dts_status combine(worker *w, size_t index, dts_diag *diag) {
    dts_scenario *scenario = NULL;
    dts_text document = {0};
    char hash[17];
    dts_outcome *outcome = &w->sweep->outcomes[index];
    dts_status status = identify(w->request, w->sweep, index, &scenario, &document, diag);
    dts_document_hash(DTS_PHYSICS, dts_text_string(&document), hash);
    dts_text_free(&document);
    const bool found = status != DTS_NOMEM && look_up(w, hash, outcome);
    if (found) {
        status = DTS_OK;
    } else if (status == DTS_OK) {
        status = simulate(scenario, outcome, diag);
    }
    if (status == DTS_INVALID) {
        status = dts_outcome_of_errors(diag, outcome);
    }
    dts_scenario_free(scenario);
    if (status == DTS_OK) {
        account(w, index, hash, found);
    }
    return status;
}

static void work(void *context, size_t index) {
    worker *w = context;
    pthread_mutex_lock(&w->lock);
    bool stopped = w->status != DTS_OK || (w->request->stop != NULL && atomic_load(w->request->stop));
    w->sweep->interrupted |= stopped;
    pthread_mutex_unlock(&w->lock);
    if (stopped) {
        return;
    }
    dts_diag *diag = dts_diag_new();
    dts_status status = diag == NULL ? DTS_NOMEM : combine(w, index, diag);
    dts_diag_free(diag);
    if (status == DTS_NOMEM) {
        dts_outcome_clear(&w->sweep->outcomes[index]);
        w->sweep->outcomes[index].kind = DTS_OUTCOME_NO_MEMORY;
        account(w, index, NULL, false);
    } else if (status != DTS_OK) {
        pthread_mutex_lock(&w->lock);
        w->status = w->status == DTS_OK ? status : w->status;
        pthread_mutex_unlock(&w->lock);
    }
}

/* ---- the study ----------------------------------------------------------------------------------------------------
 */

static size_t line_length(const char *text) {
    return strcspn(text, "\n");
}

/* The first line in which two documents differ, as "was …, is …"; malloc. */
static char *describe_change(const char *before, const char *now) {
    while (*before != '\0' && line_length(before) == line_length(now) &&
           strncmp(before, now, line_length(before)) == 0) {
        before += line_length(before) + (before[line_length(before)] != '\0');
        now += line_length(now) + (now[line_length(now)] != '\0');
    }
    before += strspn(before, " ");
    now += strspn(now, " ");
    dts_text text = {0};
    dts_text_printf(&text, "'%.*s' is now '%.*s'", (int)line_length(before), before, (int)line_length(now), now);
    char *made = text.failed ? NULL : text.data;
    if (made == NULL) {
        dts_text_free(&text);
    }
    return made;
}

/* Compares with the last time that this sweep was run with this store. */
static void begin_study(const dts_sweep_request *request, dts_sweep *sweep) {
    if (request->store == NULL) {
        return;
    }
    dts_diag *unused = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_text document = {0};
    dts_status status = unused == NULL ? DTS_NOMEM : identify(request, sweep, 0, &scenario, &document, unused);
    if (status != DTS_NOMEM) {
        char *before = dts_store_study(request->store, request->study, dts_text_string(&document));
        if (before != NULL) {
            sweep->changed = describe_change(before, dts_text_string(&document));
            free(before);
        }
    }
    dts_scenario_free(scenario);
    dts_text_free(&document);
    dts_diag_free(unused);
}

static dts_status sweep_new(const dts_sweep_request *request, dts_sweep **out, dts_diag *diag) {
    size_t count = 1;
    for (size_t a = 0; a < request->axis_count; a++) {
        if (request->axes[a].count > MOST_COMBINATIONS / count) {
            return dts_diag_fail(diag, DTS_USAGE, "vary fewer values, or use `dtsim search`",
                                 "more than %d combinations", (int)MOST_COMBINATIONS);
        }
        count *= request->axes[a].count;
    }
    dts_sweep *sweep = calloc(1, sizeof *sweep);
    if (sweep == NULL) {
        return dts_diag_nomem(diag);
    }
    *sweep = (dts_sweep){.axes = request->axes, .axis_count = request->axis_count, .count = count};
    sweep->outcomes = calloc(count, sizeof *sweep->outcomes);
    sweep->pareto = calloc(count, sizeof *sweep->pareto);
    sweep->work = calloc(count, sizeof *sweep->work);
    if (sweep->outcomes == NULL || sweep->pareto == NULL || sweep->work == NULL) {
        dts_sweep_free(sweep);
        return dts_diag_nomem(diag);
    }
    *out = sweep;
    return DTS_OK;
}

/* Where all combinations are refused for one reason, the mistake is the scenario's: it is reported with its place, as
 * if the first combination had been run. */
static dts_status check_any(const dts_sweep_request *request, const dts_sweep *sweep, dts_diag *diag) {
    for (size_t i = 0; i < sweep->count; i++) {
        const dts_outcome *outcome = &sweep->outcomes[i];
        if (outcome->kind != DTS_OUTCOME_ILLEGAL || strcmp(outcome->reason, sweep->outcomes[0].reason) != 0) {
            return DTS_OK;
        }
    }
    dts_scenario *scenario = NULL;
    dts_outcome unused = {0};
    dts_status status = load(request, sweep, 0, &scenario, diag);
    status = status == DTS_OK ? simulate(scenario, &unused, diag) : status;
    dts_outcome_clear(&unused);
    dts_scenario_free(scenario);
    return status;
}

dts_status dts_sweep_run(const dts_sweep_request *request, dts_sweep **out, dts_diag *diag) {
    dts_sweep *sweep = NULL;
    dts_status status = sweep_new(request, &sweep, diag);
    if (status == DTS_OK) {
        begin_study(request, sweep);
        worker w = {.request = request, .sweep = sweep, .lock = PTHREAD_MUTEX_INITIALIZER};
        dts_parallel_for(sweep->count, request->threads, work, &w);
        pthread_mutex_destroy(&w.lock);
        status = w.status;
    }
    status = status == DTS_OK ? check_any(request, sweep, diag) : status;
    if (status != DTS_OK) {
        dts_sweep_free(sweep);
        return status;
    }
    find_work(sweep);
    dts_pareto_mark(sweep->outcomes, sweep->work, sweep->count, sweep->pareto);
    *out = sweep;
    return DTS_OK;
}
