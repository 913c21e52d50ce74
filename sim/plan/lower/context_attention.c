/* Tasks of attention whose sequence is split: by all-to-all or all-gather here, by a ring in ring.c. */
#include "plan/lower/context_inside.h"

static void add_collective(const dts_context_split *p, dts_collective kind, double bytes) {
    dts_task_info what = *p->info;
    what.name = dts_collective_names[kind];
    what.flops = 0;
    p->w->last = dts_build_collective(p->w->b, p->w->pass->stage, DTS_GROUP_CONTEXT, kind, bytes, p->w->backward,
                                      p->w->last, &what);
    p->w->waits[DTS_WAIT_INPUT] = p->w->last;
}

/* Packs, exchanges and unpacks tensors of bytes together. Returns the first kernel. */
static dts_id exchange(const dts_context_split *p, int tensors, double bytes) {
    dts_id first = dts_context_pass(p, "sequence_to_heads", tensors, 2 * bytes);
    add_collective(p, DTS_ALL_TO_ALL, bytes);
    dts_context_pass(p, "sequence_to_heads", tensors, 2 * bytes);
    return first;
}

static dts_id all_to_all(const dts_context_split *p) {
    dts_context_sizes z = dts_context_sizes_of(p->w->b, p->o);
    double inputs_B = z.query_B + z.block_B;
    dts_id first = p->gradient ? exchange(p, 1, z.query_B) : exchange(p, 3, inputs_B);
    dts_context_call(p, 0, DTS_NO_ID);
    if (p->gradient) {
        exchange(p, 3, inputs_B);
    } else {
        exchange(p, 1, z.query_B);
    }
    return first;
}

static dts_id all_gather(const dts_context_split *p) {
    double gathered_B = dts_context_sizes_of(p->w->b, p->o).block_B * (double)p->w->b->plan->context;
    add_collective(p, DTS_ALL_GATHER, gathered_B);
    dts_id first = dts_context_pass(p, "order_chunks", 2, 2 * gathered_B);
    for (int64_t i = 0; i < dts_context_calls(p->w->b, p->o); i++) {
        dts_context_call(p, i, DTS_NO_ID);
    }
    if (p->gradient) {
        dts_context_pass(p, "order_chunks", 2, 2 * gathered_B);
        add_collective(p, DTS_REDUCE_SCATTER, gathered_B);
    }
    dts_context_hold(p, first, (p->gradient ? 2 : 1) * gathered_B);
    return first;
}

dts_id dts_context_attention(dts_walk *w, const dts_operator *o, bool gradient, const dts_task_info *info) {
    dts_context_split one = {.w = w, .o = o, .info = info, .gradient = gradient};
    const dts_context_split *p = &one;
    switch (dts_context_method_of(w->b)) {
        case DTS_CONTEXT_RING:
            return dts_context_ring(p);
        case DTS_CONTEXT_ALL_GATHER:
            return all_gather(p);
        case DTS_CONTEXT_ALL_TO_ALL:
            break;
    }
    return all_to_all(p);
}
