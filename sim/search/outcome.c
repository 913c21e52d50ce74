#include "search/outcome.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "hardware/timings.h"
#include "run/run.h"

#define FIGURE(member, kind) \
    { #member, kind, offsetof(dts_figures, member) }

const dts_figure dts_figure_table[] = {
    FIGURE(gpus, DTS_FIGURE_INTEGER),
    FIGURE(iteration_time_s, DTS_FIGURE_NUMBER),
    FIGURE(tokens_per_s, DTS_FIGURE_NUMBER),
    FIGURE(tokens_per_s_per_gpu, DTS_FIGURE_NUMBER),
    FIGURE(samples_per_s, DTS_FIGURE_NUMBER),
    FIGURE(mfu, DTS_FIGURE_NUMBER),
    FIGURE(bubble_fraction, DTS_FIGURE_NUMBER),
    FIGURE(exposed_communication_s, DTS_FIGURE_NUMBER),
    FIGURE(fits, DTS_FIGURE_FLAG),
    FIGURE(peak_allocated_gib, DTS_FIGURE_NUMBER),
    FIGURE(peak_device_gib, DTS_FIGURE_NUMBER),
    FIGURE(capacity_gib, DTS_FIGURE_NUMBER),
    FIGURE(unserved_gib, DTS_FIGURE_NUMBER),
    FIGURE(retry_share, DTS_FIGURE_NUMBER),
    FIGURE(price_usd_per_hour, DTS_FIGURE_NUMBER),
    FIGURE(usd_per_billion_tokens, DTS_FIGURE_NUMBER),
    FIGURE(goodput, DTS_FIGURE_NUMBER),
    FIGURE(wide, DTS_FIGURE_FLAG),
    FIGURE(tasks, DTS_FIGURE_NUMBER),
    FIGURE(retries_s, DTS_FIGURE_NUMBER),
    FIGURE(device_fill, DTS_FIGURE_NUMBER),
    FIGURE(host_fill, DTS_FIGURE_NUMBER),
    FIGURE(kernels, DTS_FIGURE_FLAG),
};
const size_t dts_figure_count = 18;
static_assert(sizeof dts_figure_table / sizeof dts_figure_table[0] == DTS_FIGURES_STORED, "count them");

const double dts_tie = 0.03;

dts_strain dts_figures_strain(const dts_figures *figures) {
    return (dts_strain){figures->unserved_gib, figures->retry_share};
}

double dts_figure_get(const dts_figures *figures, const dts_figure *figure) {
    const void *at = (const char *)figures + figure->offset;
    switch (figure->type) {
        case DTS_FIGURE_NUMBER:
            return *(const double *)at;
        case DTS_FIGURE_INTEGER:
            return (double)*(const int64_t *)at;
        case DTS_FIGURE_FLAG:
            return *(const bool *)at ? 1 : 0;
    }
    return 0;
}

void dts_figure_set(dts_figures *figures, const dts_figure *figure, double value) {
    void *at = (char *)figures + figure->offset;
    switch (figure->type) {
        case DTS_FIGURE_NUMBER:
            *(double *)at = value;
            break;
        case DTS_FIGURE_INTEGER:
            *(int64_t *)at = (int64_t)value;
            break;
        case DTS_FIGURE_FLAG:
            *(bool *)at = value != 0;
            break;
    }
}

const char *dts_outcome_reason(const dts_outcome *outcome) {
    return outcome->kind == DTS_OUTCOME_NO_MEMORY ? "out of memory" : outcome->reason;
}

const char *dts_outcome_help(const dts_outcome *outcome) {
    return outcome->kind == DTS_OUTCOME_NO_MEMORY ? dts_memory_help : outcome->help;
}

static char *copy(const char *text) {
    size_t size = strlen(text) + 1;
    char *made = malloc(size);
    return made == NULL ? NULL : memcpy(made, text, size);
}

/* USD/h over tokens/h, for 10^9 tokens */
double dts_figures_cost(const dts_figures *figures) {
    return figures->price_usd_per_hour / (3600 * figures->tokens_per_s) * 1e9;
}

static double share_of(double peak, double capacity) {
    return peak > 0 ? peak / capacity : 0;
}

dts_status dts_outcome_of_result(const dts_result *result, dts_outcome *out) {
    *out = (dts_outcome){.kind = DTS_OUTCOME_SIMULATED,
                         .figures = {.gpus = result->gpus,
                                     .iteration_time_s = result->iteration_time_s,
                                     .tokens_per_s = result->tokens_per_s,
                                     .tokens_per_s_per_gpu = result->tokens_per_s_per_gpu,
                                     .samples_per_s = result->samples_per_s,
                                     .mfu = result->mfu,
                                     .bubble_fraction = result->bubble_fraction,
                                     .exposed_communication_s = result->time_s.exposed_communication,
                                     .fits = result->fits,
                                     .peak_allocated_gib = result->peak_allocated_gib,
                                     .peak_device_gib = result->peak_device_gib,
                                     .capacity_gib = result->capacity_gib,
                                     .unserved_gib = result->fits ? result->allocator.unserved_gib : 0,
                                     .retry_share = dts_retry_share(result),
                                     .price_usd_per_hour = result->price_usd_per_hour,
                                     .wide = result->wide,
                                     .goodput = result->whole_run.goodput,
                                     .tasks = (double)result->simulation.tasks,
                                     .retries_s = result->allocator.cost_s},
                         .plan = copy(result->plan)};
    dts_figures *f = &out->figures;
    f->device_fill = share_of(result->peak_allocated_gib, result->capacity_gib - result->memory_gib.context);
    f->host_fill = fmax(share_of(result->host_peak_gib, result->host_capacity_gib),
                        share_of(result->nvme_peak_gib, result->nvme_capacity_gib));
    f->kernels = strcmp(result->simulation.detail, dts_detail_names[DTS_DETAIL_KERNEL]) == 0;
    f->usd_per_billion_tokens = result->fits ? dts_figures_cost(f) : 0;
    return out->plan == NULL ? DTS_NOMEM : DTS_OK;
}

dts_status dts_outcome_of_errors(const dts_diag *diag, dts_outcome *out) {
    *out = (dts_outcome){.kind = DTS_OUTCOME_ILLEGAL};
    for (size_t i = 0; i < dts_diag_count(diag); i++) {
        const dts_message *message = dts_diag_get(diag, i);
        if (message->severity == DTS_ERROR) {
            out->reason = copy(message->text);
            out->help = message->help == NULL ? NULL : copy(message->help);
            return out->reason == NULL || (message->help != NULL && out->help == NULL) ? DTS_NOMEM : DTS_OK;
        }
    }
    out->reason = copy("refused");
    return out->reason == NULL ? DTS_NOMEM : DTS_OK;
}

dts_status dts_outcome_copy(const dts_outcome *from, dts_outcome *out) {
    *out = *from;
    out->plan = from->plan == NULL ? NULL : copy(from->plan);
    out->reason = from->reason == NULL ? NULL : copy(from->reason);
    out->help = from->help == NULL ? NULL : copy(from->help);
    const bool all = (out->plan == NULL) == (from->plan == NULL) && (out->reason == NULL) == (from->reason == NULL) &&
                     (out->help == NULL) == (from->help == NULL);
    if (!all) {
        dts_outcome_clear(out);
    }
    return all ? DTS_OK : DTS_NOMEM;
}

void dts_outcome_clear(dts_outcome *outcome) {
    free(outcome->plan);
    free(outcome->reason);
    free(outcome->help);
    *outcome = (dts_outcome){0};
}

void dts_effective_document(const dts_scenario *scenario, dts_text *out) {
    dts_scenario_values values = *dts_scenario_get(scenario);
    values.name = "";
    values.description = "";
    values.expect = "";
    const dts_provenance *provenance = dts_scenario_provenance(scenario);
    dts_schema_write_yaml(&dts_scenario_schema, &values, provenance, false, out);
    for (size_t i = 0; i < dts_provenance_count(provenance); i++) {
        const dts_provenance_entry *entry = dts_provenance_get(provenance, i);
        if (entry->content != 0) {
            dts_text_printf(out, "content of %s (%s): %016" PRIx64 "\n", entry->value, entry->key, entry->content);
        }
    }
    const dts_timings *const measured[] = {values.cluster.timings, values.cluster.gpu.timings};
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        if (measured[i] != NULL) { /* the same file says something else of other hardware */
            dts_text_printf(out, "measured over calculated, %s: %016" PRIx64 "\n", i == 0 ? "collectives" : "kernels",
                            dts_timings_digest(measured[i]));
        }
    }
}

void dts_document_hash(const char *physics, const char *document, char out[17]) {
    const uint64_t hash = dts_digest_add_text(dts_digest_add_text(DTS_DIGEST_EMPTY, physics), document);
    snprintf(out, 17, "%016" PRIx64, hash);
}

/* Is a at least as good as b in everything, and better in something? */
static bool dominates(const dts_figures *a, const dts_figures *b, bool priced) {
    if (a->tokens_per_s < b->tokens_per_s || a->peak_device_gib > b->peak_device_gib ||
        (priced && a->usd_per_billion_tokens > b->usd_per_billion_tokens)) {
        return false;
    }
    return a->tokens_per_s > b->tokens_per_s || a->peak_device_gib < b->peak_device_gib ||
           (priced && a->usd_per_billion_tokens < b->usd_per_billion_tokens);
}

static bool competes(const dts_outcome *outcome) {
    return outcome->kind == DTS_OUTCOME_SIMULATED && outcome->figures.fits;
}

void dts_pareto_mark(const dts_outcome *outcomes, const size_t *work, size_t count, bool *pareto) {
    bool priced = true;
    for (size_t i = 0; i < count; i++) {
        priced &= !competes(&outcomes[i]) || outcomes[i].figures.price_usd_per_hour > 0;
    }
    for (size_t i = 0; i < count; i++) {
        pareto[i] = competes(&outcomes[i]);
        for (size_t j = 0; j < count && pareto[i]; j++) {
            pareto[i] = work[j] != work[i] || !competes(&outcomes[j]) ||
                        !dominates(&outcomes[j].figures, &outcomes[i].figures, priced);
        }
    }
}
