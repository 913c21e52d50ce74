/* Steps that every kind of operator takes on its way through a chunk: kernels one behind the other, and memory. */
#include "plan/lower/chunk_pass.h"

dts_id dts_walk_kernels(dts_walk *w, int kernels, double duration_s, const dts_task_info *info) {
    dts_id first = DTS_NO_ID;
    dts_task_info one = *info;
    one.flops = kernels > 0 ? info->flops / kernels : 0;
    for (int i = 0; i < kernels; i++) {
        w->last = dts_build_kernel(w->b, w->pass->stage, duration_s / kernels, w->backward, DTS_NO_ID, &one);
        for (int slot = 0; slot < DTS_WAITS; slot++) {
            dts_graph_depend(w->b->graph, w->last, w->waits[slot]);
            w->waits[slot] = DTS_NO_ID;
        }
        if (first == DTS_NO_ID) {
            first = w->last;
        }
    }
    return first;
}

void dts_walk_memory(dts_walk *w, dts_id task, dts_memory_moment moment, dts_memory_category category, double bytes) {
    if (task != DTS_NO_ID) {
        dts_build_memory(w->b, task, moment, w->pass->stage, category, bytes);
    }
}

/* The temporary that nobody takes any more. */
void dts_walk_drop_handed(dts_walk *w) {
    dts_walk_memory(w, w->pass->stage->last_kernel, DTS_AT_END, DTS_MEMORY_TEMPORARY, -w->handed_B);
    w->handed_B = 0;
}
