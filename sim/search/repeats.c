/* Values of the recomputation axis that say something of their own. */
#include <math.h>

#include "search/space.h"

/* Does a selection run something again, and not what one before it does that is searched, too? The stack's, the first
 * of all, may not be. */
static bool selection_differs(const dts_layout_space *space, const dts_frame *frame, size_t selection) {
    double kernels_s = 0;
    bool same = false;
    for (int i = 0; i < frame->class_count; i++) {
        kernels_s += frame->classes[i].selective[selection].kernels_s;
    }
    const size_t first = dts_layout_space_holds(space, DTS_AXIS_RECOMPUTE, DTS_RECOMPUTE_SELECTIVE) ? 0 : 1;
    for (size_t before = first; before < selection && !same; before++) {
        same = true;
        for (int i = 0; i < frame->class_count && same; i++) {
            const dts_class_selection *a = &frame->classes[i].selective[before];
            const dts_class_selection *b = &frame->classes[i].selective[selection];
            same = a->kernels_s == b->kernels_s && a->launches == b->launches && a->layers_B == b->layers_B;
        }
    }
    return kernels_s > 0 && !same;
}

/* Layers of one checkpoint in chunks of at most so many; 0: not all layers are recomputed. */
static double span_of(int32_t recompute, double layers) {
    const dts_recompute what = dts_candidate_recompute(recompute);
    switch ((dts_recompute_kind)what.kind) {
        case DTS_RECOMPUTE_FULL:
            return 1;
        case DTS_RECOMPUTE_SQRT:
            return fmax(1, round(sqrt(layers)));
        case DTS_RECOMPUTE_EVERY:
            return fmin((double)what.layers, layers);
        case DTS_RECOMPUTE_FIRST:
            return (double)what.layers < layers ? 0 : 1;
        case DTS_RECOMPUTE_EXCEPT_LAST:
        case DTS_RECOMPUTE_NONE:
        case DTS_RECOMPUTE_SELECTIVE:
            break;
    }
    return 0;
}

/* Of values that say the same the plan has the name that tells most: sqrt has the last. */
static bool is_named_before(int32_t recompute, int32_t other) {
    return recompute != DTS_RECOMPUTE_SQRT && (other == DTS_RECOMPUTE_SQRT || recompute < other);
}

bool dts_layout_space_recomputes(const dts_layout_space *space, const dts_frame *frame, int32_t recompute) {
    if (recompute == DTS_RECOMPUTE_SELECTIVE || recompute > DTS_CANDIDATE_MODULES) {
        return selection_differs(space, frame, dts_frame_selection(frame, recompute));
    }
    if (recompute < DTS_RECOMPUTE_SQRT) {
        return true;
    }
    double most = 0;
    for (int i = 0; i < frame->class_count; i++) {
        most = fmax(most, frame->classes[i].layers / (double)frame->chunks);
    }
    const dts_recompute what = dts_candidate_recompute(recompute);
    const double span = span_of(recompute, most);
    bool same = false;
    for (size_t i = 0; i < space->axes[DTS_AXIS_RECOMPUTE].count && span > 0; i++) {
        const int32_t other = space->axes[DTS_AXIS_RECOMPUTE].items[i];
        same |= span_of(other, most) == span && is_named_before(other, recompute);
    }
    /* more layers than a chunk has are all of them; nobody needs that who has not asked for it */
    const bool given = space->axes[DTS_AXIS_RECOMPUTE].given;
    return !same && (given || what.kind != DTS_RECOMPUTE_EVERY || (double)what.layers <= most);
}
