/* How much of the GPU the best plan leaves, and whether published runs had kept within that. */
#include <math.h>

#include "hardware/hardware.h"
#include "report/format.h"
#include "search_write.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;
static const double sure = 0.85; /* of the published figures: nine of ten, rounded */

/* What a GPU has for tensors. */
static double tensors_gib(const dts_search *search) {
    const dts_cluster *cluster = &search->base->cluster;
    const double context_B = cluster->gpu.context_B + dts_stack_context_B(&search->base->stack, cluster);
    return (cluster->gpu.memory_B - context_B) / GIB;
}

double dts_search_fit_share(const dts_search *search, const dts_evidence *evidence, const dts_finding *f) {
    return dts_evidence_memory_within(evidence, NULL, tensors_gib(search) / f->outcome.figures.peak_allocated_gib);
}

static double room_gib(const dts_search *search, const dts_finding *f) {
    return tensors_gib(search) - f->outcome.figures.peak_allocated_gib;
}

/* The best of those that were simulated, whatever else stands in the table. */
static const dts_finding *best_that_is_sure(const dts_search *search, const dts_evidence *evidence) {
    for (size_t i = 0; i < search->count; i++) {
        const dts_finding *f = &search->findings[i];
        const bool holds = f->outcome.kind == DTS_OUTCOME_SIMULATED && f->outcome.figures.fits &&
                           !(f->outcome.figures.unserved_gib > 0);
        if (holds && dts_search_fit_share(search, evidence, f) >= sure) {
            return f;
        }
    }
    return NULL;
}

void dts_search_room(const dts_search *search, const dts_search_writing *options, dts_text *out) {
    if (options->evidence == NULL || !dts_search_any_fits(search) || search->base->training.mode != DTS_MODE_TRAIN) {
        return;
    }
    const dts_finding *first = &search->findings[0];
    const double share = dts_search_fit_share(search, options->evidence, first);
    if (share < 0 || share >= sure) {
        return;
    }
    char buffer[32];
    dts_text_printf(out, "The first leaves %.1f GiB of memory, enough in %.0f of 10 published runs.",
                    room_gib(search, first), 10 * share);
    const dts_finding *other = best_that_is_sure(search, options->evidence);
    if (other != NULL) {
        const double behind = dts_search_value(search->objective, &other->outcome.figures) /
                                  dts_search_value(search->objective, &first->outcome.figures) -
                              1;
        dts_text_printf(out, " Rank %zu leaves %.1f GiB (", (size_t)(other - search->findings) + 1,
                        room_gib(search, other));
        dts_candidate_describe(&other->candidate, search->base, out);
        dts_text_printf(out, "; %s behind in %s).", dts_formatted(dts_format_percent, behind, buffer, sizeof buffer),
                        dts_objective_names[search->objective]);
    }
    dts_text_printf(out, " --set cluster.gpu.memory=%.0fGiB searches for plans that leave a tenth.",
                    floor(0.9 * search->base->cluster.gpu.memory_B / GIB));
}
