/* Keeping the replicas in step, chunk by chunk: by buckets (buckets.c: DDP, ZeRO-1 and 2) or by units (units.c: FSDP,
 * ZeRO-3). */
#include "plan/lower/data_parallel.h"

static dts_gradient_sync *new_of_style(dts_builder *b, dts_stage *stage, int64_t first_chunk, int64_t last_chunk) {
    dts_gradient_sync *sync = dts_sync_alloc(b, stage);
    if (sync != NULL && b->plan->copies > 1) {
        sync->copy = dts_plan_direction(b->plan, first_chunk);
    }
    bool good = sync != NULL && dts_linear_units_new(sync) && dts_units_new(sync, first_chunk, last_chunk) &&
                dts_linear_units_fill(sync, first_chunk, last_chunk) && dts_updated_new(sync) &&
                dts_nvme_ring_new(b, &sync->buffers);
    return good ? sync : NULL;
}

dts_gradient_sync *dts_sync_new(dts_builder *b, dts_stage *stage, int64_t first_chunk, int64_t last_chunk) {
    dts_gradient_sync *sync = new_of_style(b, stage, first_chunk, last_chunk);
    const size_t styles = b->plan->style_count;
    if (sync == NULL || styles == 1) {
        return sync;
    }
    dts_gradient_sync **all = dts_arena_array(b->arena, styles, sizeof(dts_gradient_sync *));
    if (all == NULL) {
        return NULL;
    }
    all[0] = sync;
    bool good = true;
    for (size_t k = 1; k < styles && good; k++) {
        const size_t like = dts_plan_sync_style(b->plan, k);
        dts_build_style(b, k);
        all[k] = like < k ? all[like] : new_of_style(b, stage, first_chunk, last_chunk);
        good = all[k] != NULL;
    }
    dts_build_style(b, 0);
    sync->of_style = all;
    return good ? sync : NULL;
}

/* Is no layer left on the rank that shares the style's buckets and whose backward comes after this part? */
static bool ends_style(const dts_builder *b, const dts_stage *stage, const dts_chunk *chunk, int64_t position) {
    const dts_plan *plan = b->plan;
    const size_t own = dts_plan_sync_style(plan, b->style);
    bool ends = true;
    for (int64_t v = 0; v < plan->virtual_stages; v++) {
        const dts_chunk *other = &plan->chunks[dts_plan_stage(plan, stage->index, v)];
        int64_t parts = other->layers + other->embedding + other->head;
        int64_t before = other < chunk ? parts : other == chunk ? position : 0;
        for (int64_t i = 0; i < before; i++) {
            ends &= dts_plan_sync_style(plan, dts_build_style_at(b, other, i)) != own;
        }
    }
    return ends;
}

/* ZeRO-2's buckets of every style, behind the backward of a whole chunk. */
static void flush_all(dts_gradient_sync *all) {
    dts_builder *b = all->b;
    const size_t here = b->style;
    for (size_t k = 0; k < b->plan->style_count; k++) {
        dts_build_style(b, k);
        dts_gradient_sync *sync = dts_sync_here(all);
        if (sync->active && sync->every_microbatch && dts_plan_sync_style(b->plan, k) == k) {
            dts_buckets_flush(sync);
        }
    }
    dts_build_style(b, here);
}

void dts_sync_after_backward(dts_gradient_sync *all, const dts_chunk *chunk, int64_t position, bool last_microbatch,
                             dts_id last) {
    dts_gradient_sync *sync = dts_sync_here(all);
    if (all->of_style != NULL && position == 0) {
        flush_all(all);
    }
    if (all->of_style != NULL && sync->active && !sync->sharded && last_microbatch &&
        ends_style(sync->b, sync->stage, chunk, position)) {
        dts_buckets_flush(sync); /* the last bucket of these layers is complete */
    }
    bool complete = sync->every_microbatch || sync->repeats || (sync->b->plan->copies > 1 && last_microbatch);
    if (sync->active && complete && position == 0) {
        dts_buckets_flush(sync); /* of this microbatch's backward, or of this copy */
    }
    if (dts_sync_gathers(sync)) {
        dts_units_after_backward(sync, chunk, position, last_microbatch, last);
    }
}

void dts_sync_end_flush(dts_gradient_sync *all) {
    dts_builder *b = all->b;
    const size_t here = b->style;
    if (!dts_plan_reduces_each_flush(b->plan) || ++all->ended < b->plan->virtual_stages) {
        return;
    }
    all->ended = 0;
    for (size_t k = 0; k < b->plan->style_count; k++) {
        dts_build_style(b, k);
        if (dts_plan_sync_style(b->plan, k) == k) {
            dts_buckets_finish(dts_sync_here(all));
        }
    }
    dts_build_style(b, here);
}
