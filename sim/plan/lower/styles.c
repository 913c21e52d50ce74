/* Layers that follow plans of their own (plan/layers.c), and what happens to activations between two of them.
 *
 * The builder stands at one style at a time: its plan, operators and times are those of b->plan, b->work and so on.
 * Parts of a pass begin and end at style 0 and go to the style of their layer in between.
 *
 * Between a layer with T ranks in a tensor-parallel group and one with T' = k·T, a rank's activation of m samples
 * becomes one of k·m samples, B' bytes = k·B:
 *   without sequence parallelism every rank of the k small groups holds its group's samples whole
 *     forward   all-gather of B' bytes among k ranks, one of each small group                                      (1)
 *     backward  the gradient of the own samples is there already: a view
 *   and from T' to T the other way round: forward a view, backward the all-gather of B' bytes
 *   with sequence parallelism a rank holds m·s/T tokens before and k·m·s/T' = as many behind, but others:
 *     both ways   all-to-all of B bytes among the T' ranks                                                          (2)
 * (2) moves (T'-1)/T' of B for each rank, which is exact for T = 1, and else a little more than the intersections of
 * both layouts ask for. Galvatron has the same transformations between its layers [1].
 *
 * [1] Miao et al., "Galvatron", VLDB 2023, section 3.2. */
#include "plan/lower/walk.h"

dts_status dts_build_styles(dts_builder *b) {
    const dts_plan *plan = b->plan;
    b->styles = dts_arena_array(b->arena, plan->style_count, sizeof *b->styles);
    if (b->styles == NULL) {
        return dts_diag_nomem(b->diag);
    }
    dts_status status = DTS_OK;
    for (size_t k = 0; k < plan->style_count && status == DTS_OK; k++) {
        b->style = k;
        b->plan = dts_plan_style(plan, k);
        status = b->detail != DTS_DETAIL_KERNEL ? dts_block_environment(b->blocks, b) : DTS_OK;
        status = status == DTS_OK ? dts_build_work(b) : status;
        b->styles[k] = (dts_layer_style){.plan = b->plan,
                                         .work = b->work,
                                         .boundary_B = dts_plan_boundary_B(b->plan),
                                         .environment = b->environment};
    }
    if (status == DTS_OK) {
        dts_build_style(b, 0);
    }
    b->plan = plan;
    return status;
}

size_t dts_build_style_before(const dts_builder *b, const dts_chunk *chunk, int64_t position) {
    if (position > 0) {
        return dts_build_style_at(b, chunk, position - 1);
    }
    return chunk->first_layer > 0 ? dts_plan_layer_style(b->plan, chunk->first_layer - 1) : 0;
}

bool dts_lower_layout_move(const dts_plan *from, const dts_plan *to, bool sequence, dts_layout_move *out) {
    const int64_t high = from->tensor > to->tensor ? from->tensor : to->tensor;
    const int64_t low = from->tensor > to->tensor ? to->tensor : from->tensor;
    const bool mixes = sequence || from->context > 1;
    const int64_t block = high * from->context, ranks = mixes ? block : high / low, here = from->gpus_per_node;
    int64_t nodes = (block + here - 1) / here;
    nodes = nodes < ranks ? nodes : ranks;
    *out = (dts_layout_move){.kind = mixes ? DTS_ALL_TO_ALL : DTS_ALL_GATHER,
                             .group = {.ranks = ranks, .nodes = nodes},
                             .sharing = (double)here * (double)nodes / (double)ranks,
                             .bytes = dts_plan_boundary_B(to)};
    return high > low && (mixes || to->tensor > from->tensor); /* else it is there, or a view of what is */
}

void dts_walk_change_layout(dts_walk *w, size_t from, size_t to, int32_t layer) {
    dts_builder *b = w->b;
    dts_layout_move move;
    const bool sequence = b->styles[0].plan->job.parallelism->sequence;
    if (from == to || !dts_lower_layout_move(b->styles[from].plan, b->styles[to].plan, sequence, &move)) {
        return;
    }
    const dts_task_info info = {.microbatch = (int32_t)w->pass->microbatch,
                                .layer = layer,
                                .chunk = (int32_t)w->pass->chunk_index,
                                .name = move.kind == DTS_ALL_TO_ALL ? "change layout" : "gather samples"};
    w->last = dts_build_collective_among(b, w->pass->stage, DTS_GROUP_LAYOUT, move.group, move.sharing, move.kind,
                                         move.bytes, w->backward, w->last, &info);
    w->waits[DTS_WAIT_INPUT] = w->last;
    /* memory changes in the order of the host: behind what it has issued so far */
    const dts_stage *stage = w->pass->stage;
    const bool first = stage->last_kernel == DTS_NO_ID;
    dts_walk_memory(w, first ? stage->last_host : stage->last_kernel, first ? DTS_AT_START : DTS_AT_END,
                    DTS_MEMORY_TEMPORARY, move.bytes);
    if (w->handed_B > 0) {
        dts_walk_drop_handed(w);
    }
    w->handed_B = move.bytes;
}
