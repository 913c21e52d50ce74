/* Two passes as one block: the forward of one microbatch and the backward of another, issued in turns.
 *
 * On its own, a pass leaves the compute stream idle whenever it exchanges something (tensor parallelism, experts): its
 * next kernel needs the result. A block cuts both passes behind their exchanges and issues the pieces in turns, so that
 * the kernels of one run while the other's exchange is on its way: DualPipe's overlapped forward and backward [1],
 * Megatron-LM's overlap of expert exchanges [2]. Where experts are on several ranks, both cut there only: a layer has
 * two such exchanges in either direction, so that the pieces pair up. Piece i of n stands at (i + 1/2) / n of the
 * block, so that both passes advance together however many exchanges each has. Nothing becomes faster but waiting:
 * kernels take their time one after another. Passes without exchanges inside keep their order.
 *
 * With full ranks an exchange is a task of the first rank that issues it; the others are cut at the same places, behind
 * their own issues of it.
 *
 * [1] DeepSeek-V3 technical report, 2024, section 3.2.1, figure 4; deepseek-ai/DualPipe.
 * [2] NVIDIA/Megatron-LM, --overlap-moe-expert-parallel-comm. */
#include "base/array.h"
#include "plan/lower/builder.h"

/* One pass: its tasks [at, end), its cuts [cut, cut_end), and how many pieces are done of it. */
typedef struct half {
    size_t at, end, cut, cut_end;
    size_t piece, pieces;
} half;

void dts_overlap_begin(dts_builder *b) {
    b->cut_count = 0;
}

/* Do blocks end at an exchange of this group? */
static bool cuts_at(const dts_builder *b, dts_group_kind group) {
    if (b->plan->expert > 1) {
        return group == DTS_GROUP_EXPERT;
    }
    return group != DTS_GROUP_DATA && group != DTS_GROUP_PIPELINE && group != DTS_GROUP_REPLICA &&
           group != DTS_GROUP_EXPERT_DATA;
}

void dts_overlap_cut(dts_builder *b, dts_group_kind group) {
    if (!cuts_at(b, group) || !dts_build_may_overlap(b)) {
        return;
    }
    size_t *cuts = dts_arena_room(b->arena, b->cuts, &b->cut_capacity, b->cut_count + 1, sizeof *cuts);
    if (cuts == NULL) {
        b->failed = true;
        return;
    }
    b->cuts = cuts;
    b->cuts[b->cut_count++] = b->info_count;
}

static half half_of(const dts_builder *b, size_t first, size_t end) {
    half h = {.at = first, .end = end, .pieces = 1};
    while (h.cut < b->cut_count && b->cuts[h.cut] <= first) {
        h.cut++;
    }
    for (h.cut_end = h.cut; h.cut_end < b->cut_count && b->cuts[h.cut_end] <= end; h.cut_end++) {
        h.pieces++;
    }
    return h;
}

static void take_piece(const dts_builder *b, half *h, dts_id *order, size_t *count) {
    size_t to = h->cut < h->cut_end ? b->cuts[h->cut++] : h->end;
    while (h->at < to) {
        order[(*count)++] = (dts_id)h->at++;
    }
    h->piece++;
}

/* (piece + 1/2) / pieces of a is not behind that of z. */
static bool goes_first(const half *a, const half *z) {
    return a->at < a->end && (z->at == z->end || (2 * a->piece + 1) * z->pieces <= (2 * z->piece + 1) * a->pieces);
}

bool dts_build_may_overlap(const dts_builder *b) {
    const dts_plan *plan = b->plan;
    /* units that are gathered for one pass and used by the other, and copies that hold up the host, have to stay in
     * the order in which they were built, as has what is launched only when the one before is done */
    return !dts_plan_shards_parameters(plan) && !dts_plan_offloads(plan) && !plan->job.stack->pipeline_single_process &&
           !dts_build_blocks(b);
}

void dts_build_overlap(dts_builder *b, dts_stage *stage, size_t first, size_t middle, size_t end) {
    half a = half_of(b, first, middle);
    half z = half_of(b, middle, end);
    if (a.pieces == 1 || z.pieces == 1) {
        return;
    }
    dts_id *order = dts_arena_array(b->arena, end - first, sizeof *order);
    if (order == NULL) {
        b->failed = true;
        return;
    }
    size_t count = 0;
    while (a.at < a.end || z.at < z.end) {
        take_piece(b, goes_first(&a, &z) ? &a : &z, order, &count);
    }
    dts_graph_arrange(b->graph, (dts_id)first, order, count);
    for (size_t i = count; i-- > 0;) { /* what the next pass comes behind */
        const dts_task_info *info = &b->infos[order[i]];
        if (info->role != DTS_ROLE_HOST && info->role != DTS_ROLE_COMMUNICATION) {
            stage->last_kernel = order[i];
            break;
        }
    }
}
