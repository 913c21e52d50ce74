/* How much of the GPU the best plan leaves, and whether published runs had kept within that. */
#include <math.h>
#include <string.h>

#include "hardware/hardware.h"
#include "report/format.h"
#include "search_write.h"

/* What a GPU has for tensors. */
static double tensors_gib(const dts_search *search) {
    const dts_cluster *cluster = &search->base->cluster;
    const double context_B = cluster->gpu.context_B + dts_stack_context_B(&search->base->stack, cluster);
    return (cluster->gpu.memory_B - context_B) / DTS_GIB;
}

double dts_search_fit_share(const dts_search *search, const dts_evidence *evidence, const dts_finding *f) {
    return dts_evidence_memory_within(evidence, NULL, tensors_gib(search) / f->outcome.figures.peak_allocated_gib);
}

static double room_gib(const dts_search *search, const dts_finding *f) {
    return tensors_gib(search) - f->outcome.figures.peak_allocated_gib;
}

/* The best that can be launched of those that were simulated, whatever else stands in the table. */
static const dts_finding *best_that_is_sure(const dts_search *search, const dts_evidence *evidence) {
    for (size_t i = 0; i < search->count; i++) {
        const dts_finding *f = &search->findings[i];
        const bool holds = f->outcome.kind == DTS_OUTCOME_SIMULATED && f->outcome.figures.fits &&
                           !(f->outcome.figures.unserved_gib > 0) && dts_search_launchable(search, f);
        if (holds && dts_search_fit_share(search, evidence, f) >= dts_evidence_sure) {
            return f;
        }
    }
    return NULL;
}

/* Whoever has said how much memory to use needs no advice. */
static bool memory_is_given(const dts_search_writing *options) {
    for (size_t i = 0; i < options->override_count; i++) {
        if (strcmp(options->overrides[i].key, "cluster.gpu.memory") == 0) {
            return true;
        }
    }
    return false;
}

/* The memory of a GPU on which plans that just fit leave as much on this one as is sure. */
static double sure_memory_gib(const dts_search *search, const dts_evidence *evidence) {
    const double memory = search->base->cluster.gpu.memory_B / DTS_GIB, tensors = tensors_gib(search);
    return memory - tensors + tensors / dts_evidence_memory_most(evidence, dts_evidence_sure);
}

void dts_search_room(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    const dts_finding *plan = dts_search_plan(search);
    if (options->evidence == NULL || plan == NULL || memory_is_given(options)) {
        return;
    }
    const double share = dts_search_fit_share(search, options->evidence, plan);
    if (share < 0 || share >= dts_evidence_sure) {
        return;
    }
    char buffer[32];
    dts_text_printf(
        out, "Tensors of rank %zu leave %.1f GiB; in %.0f of 10 published runs predictions were no more too low.",
        (size_t)(plan - search->findings) + 1, room_gib(search, plan), 10 * share);
    const dts_finding *other = best_that_is_sure(search, options->evidence);
    if (other != NULL) {
        const double behind = dts_search_value(search->objective, &other->outcome.figures) /
                                  dts_search_value(search->objective, &plan->outcome.figures) -
                              1;
        dts_text_printf(out, " Rank %zu leaves %.1f (", (size_t)(other - search->findings) + 1,
                        room_gib(search, other));
        dts_candidate_describe(&other->candidate, search->base, out);
        dts_text_printf(out, "; %s behind in %s).", dts_formatted(dts_format_percent, behind, buffer, sizeof buffer),
                        dts_objective_names[search->objective]);
    }
    dts_text_printf(out, " --set cluster.gpu.memory=%.0fGiB searches among plans that leave enough in 9 of 10.",
                    floor(sure_memory_gib(search, options->evidence)));
}
