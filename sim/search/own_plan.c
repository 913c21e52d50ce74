/* The scenario's own plan: a candidate whatever the space holds, so that no answer is behind what the user has already.
 */
#include "search/layouts.h"
#include "search/levels.h"

static void take_first(const dts_layout_space *space, dts_layout_axis axis, dts_candidate *out) {
    out->value[axis] = space->axes[axis].items[0];
}

/* With one replica only a level of offload that needs shards tells kinds of data parallelism apart, and FSDP where it
 * has half precision of its own. */
static bool kind_matters(const dts_search_context *c, const dts_candidate *candidate) {
    const int32_t *v = candidate->value;
    return dts_candidate_data(candidate, c->request->base) > 1 || v[DTS_AXIS_CONTEXT] > 1 ||
           dts_levels_need_shards(v[DTS_AXIS_OFFLOAD]) ||
           (v[DTS_AXIS_DATA_PARALLEL] == DTS_DP_FSDP && c->request->base->stack.fsdp_mixed_precision);
}

dts_candidate dts_layouts_settled(const dts_search_context *c, const dts_candidate *of) {
    dts_candidate made = *of, *out = &made;
    const dts_layout_space *space = &c->search->space;
    int32_t *v = out->value;
    if (v[DTS_AXIS_PIPELINE] == 1) {
        take_first(space, DTS_AXIS_SCHEDULE, out);
        take_first(space, DTS_AXIS_PARTITION, out);
    }
    if (v[DTS_AXIS_PIPELINE] == 1 || dts_candidate_data(out, c->request->base) == 1) {
        take_first(space, DTS_AXIS_ORDER, out);
    }
    if (v[DTS_AXIS_TENSOR] == 1) {
        take_first(space, DTS_AXIS_SEQUENCE, out);
    }
    if (!kind_matters(c, out)) {
        take_first(space, DTS_AXIS_DATA_PARALLEL, out);
    }
    return made;
}

void dts_layouts_find_own(dts_search_context *c) {
    const dts_layout_space *space = &c->search->space;
    dts_candidate own;
    c->has_own = !c->request->only_here && dts_candidate_of(c->request->base, &c->search->own_stages, &own);
    if (c->has_own) {
        c->own.candidate = dts_layouts_settled(c, &own);
    }
    for (int axis = 0; axis < DTS_AXIS_COUNT && c->has_own; axis++) {
        c->has_own = !space->axes[axis].given ||
                     dts_layout_space_holds(space, (dts_layout_axis)axis, c->own.candidate.value[axis]);
    }
}

dts_status dts_layouts_simulate_own(dts_search_context *c, dts_diag *diag) {
    dts_status status = DTS_OK;
    if (c->has_own && !dts_layouts_stopped(c)) {
        status = dts_layouts_simulate(c, &c->own, 1, diag);
        c->search->own = dts_layouts_find(c, &c->own.candidate);
    }
    return status;
}
