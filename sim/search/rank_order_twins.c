/* Layouts that are one plan under two names.
 *
 * The two orders of ranks number tensor and context ranks first, and then replicas or stages first. With the names of
 * plan/placement.c and g GPUs a node, a rank's node is
 *     (t + T·(c + C·x)) / g,     x = d + D·p or p + P·d
 * and where g divides T·C this is x · T·C/g + (t + T·c) / g: each pair of d and p has nodes of its own, in either
 * order. So the orders differ in the names of nodes only, and one simulation serves both, bit for bit
 * (tests/unit/search/test_twins.c). Not where nodes are told apart. */
#include "search/layouts.h"

long dts_layouts_find(const dts_search_context *c, const dts_candidate *candidate) {
    for (size_t i = 0; i < c->search->count; i++) {
        if (dts_candidate_compare(&c->search->findings[i].candidate, candidate) == 0) {
            return (long)i;
        }
    }
    return DTS_NOWHERE;
}

static bool nodes_are_alike(const dts_cluster *cluster) {
    return cluster->stragglers.count == 0 && !(cluster->jitter > 0) && !(cluster->gpu_spread > 0);
}

bool dts_candidate_has_twin(const dts_candidate *candidate, const dts_scenario_values *base) {
    const int32_t *v = candidate->value;
    const int64_t together = (int64_t)v[DTS_AXIS_TENSOR] * v[DTS_AXIS_CONTEXT];
    return together % dts_cluster_joined(&base->cluster) == 0 && nodes_are_alike(&base->cluster);
}

bool dts_layouts_twin(const dts_search_context *c, const dts_candidate *candidate, dts_candidate *out) {
    const int32_t *v = candidate->value;
    *out = *candidate;
    out->value[DTS_AXIS_ORDER] = v[DTS_AXIS_ORDER] == DTS_ORDER_TENSOR_DATA_PIPELINE ? DTS_ORDER_TENSOR_PIPELINE_DATA
                                                                                     : DTS_ORDER_TENSOR_DATA_PIPELINE;
    return dts_candidate_has_twin(candidate, c->request->base);
}

bool dts_finding_serves(const dts_finding *f) {
    return f->outcome.kind == DTS_OUTCOME_SIMULATED;
}

const dts_finding *dts_layouts_find_twin(const dts_search_context *c, const dts_candidate *candidate, bool again) {
    dts_candidate twin;
    const long index = dts_layouts_twin(c, candidate, &twin) ? dts_layouts_find(c, &twin) : DTS_NOWHERE;
    const dts_finding *f = index < 0 ? NULL : &c->search->findings[index];
    return f != NULL && dts_finding_serves(f) && f->again == again ? f : NULL;
}

dts_status dts_finding_take(const dts_finding *from, dts_finding *to) {
    const dts_finding own = *to;
    dts_outcome outcome;
    if (dts_outcome_copy(&from->outcome, &outcome) != DTS_OK) {
        return DTS_NOMEM;
    }
    *to = *from;
    to->outcome = outcome;
    to->candidate = own.candidate;
    to->estimate = own.estimate;
    to->acceptance = own.acceptance;
    return DTS_OK;
}
