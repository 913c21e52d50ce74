/* Keeping the replicas in step, chunk by chunk: by buckets (buckets.c: DDP, ZeRO-1 and 2) or by units (units.c: FSDP,
 * ZeRO-3). */
#include "plan/lower/data_parallel.h"

dts_gradient_sync *dts_sync_new(dts_builder *b, dts_stage *stage, int64_t first_chunk, int64_t last_chunk) {
    dts_gradient_sync *sync = dts_sync_alloc(b, stage);
    if (sync != NULL && b->plan->copies > 1) {
        sync->copy = dts_plan_direction(b->plan, first_chunk);
    }
    bool good = sync != NULL && dts_linear_units_new(sync) && dts_units_new(sync, first_chunk, last_chunk) &&
                dts_linear_units_fill(sync, first_chunk, last_chunk) && dts_updated_new(sync) &&
                dts_nvme_ring_new(b, &sync->buffers);
    return good ? sync : NULL;
}

void dts_sync_after_backward(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool last_microbatch,
                             dts_id last) {
    bool complete = sync->every_microbatch || sync->repeats || (sync->b->plan->copies > 1 && last_microbatch);
    if (sync->active && complete && position == 0) {
        dts_buckets_flush(sync); /* of this microbatch's backward, or of this copy */
    }
    if (dts_sync_gathers(sync)) {
        dts_units_after_backward(sync, chunk, position, last_microbatch, last);
    }
}

void dts_sync_end_flush(dts_gradient_sync *sync) {
    const dts_plan *plan = sync->b->plan;
    if (dts_plan_reduces_each_flush(plan) && ++sync->ended == plan->virtual_stages) {
        sync->ended = 0;
        dts_sync_finish(sync);
    }
}
