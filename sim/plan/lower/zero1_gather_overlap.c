/* ZeRO-1: parameters that a step has updated, on their way back beside the next forward pass
 * (stack.ddp.overlap_gather).
 *
 * An iteration begins with the gathers that the one before has left. In Megatron-Core [1] buckets of parameters are
 * gathered in the order of their use. The first one is sent off before the first forward pass, the next one when a
 * module waits for the one before it, so that it travels beside the kernels of that [2]: by then all kernels before
 * have been launched, and a collective begins behind what the compute stream has got. On the first stage of a pipeline,
 * in its first chunk, the buckets are those of 40 million parameters and more, here one for each part of the model;
 * elsewhere all of a chunk is one [3]. The gathers of a later chunk begin with the first pass of the chunk before it
 * [4].
 *
 * Buckets are gathered in place, in the buffer that holds all parameters of the model: no memory comes and goes.
 *
 * [1] NVIDIA/Megatron-LM megatron/core/distributed/distributed_data_parallel.py, _make_forward_pre_hook; optimizer/
 *     distrib_optimizer.py, zero_grad and step.
 * [2] megatron/core/distributed/param_and_grad_buffer.py, finish_param_sync; torch.distributed orders a collective
 *     behind the current stream when it is called.
 * [3] distributed_data_parallel.py, bucket_size: none behind the first rank of a pipeline and for later chunks.
 * [4] megatron/core/pipeline_parallel/schedules.py, param_sync_func; --align-param-gather has all stages begin at the
 *     same time. */
#include "plan/lower/data_parallel.h"

struct dts_updated {
    dts_id *gathers; /* [position] what its part waits for; DTS_NO_ID: nothing */
    int64_t parts, issued, used;
};

/* Of this rank's chunks, the one of a virtual stage; -1: none. */
static int64_t place_of(const dts_gradient_sync *sync, int64_t virtual_stage) {
    const dts_plan *plan = sync->b->plan;
    for (int64_t v = 0; v < plan->virtual_stages; v++) {
        if (dts_plan_stage(plan, sync->stage->index, v) == virtual_stage) {
            return v;
        }
    }
    return -1;
}

bool dts_updated_new(dts_gradient_sync *sync) {
    const dts_plan *plan = sync->b->plan;
    if (!dts_plan_overlaps_gather(plan)) {
        return true;
    }
    sync->updated = dts_arena_array(sync->b->arena, (size_t)plan->stages, sizeof *sync->updated);
    for (int64_t s = 0; sync->updated != NULL && s < plan->stages; s++) {
        const dts_chunk *chunk = &plan->chunks[s];
        dts_updated *u = &sync->updated[s];
        *u = (dts_updated){.parts = place_of(sync, s) >= 0 ? chunk->layers + chunk->embedding + chunk->head : 0};
        u->gathers = dts_arena_array(sync->b->arena, (size_t)u->parts + 1, sizeof *u->gathers);
        if (u->gathers == NULL) {
            return false;
        }
    }
    return sync->updated != NULL;
}

/* Parameters of a part and their share in narrow products, elements. */
static void add_part(const dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, dts_parameter_set set,
                     double *elements, double *quantised) {
    const dts_builder *b = sync->b;
    const int64_t layer = position - chunk->embedding;
    const dts_part_work *work = layer < 0               ? &b->work[DTS_PART_EMBEDDING]
                                : layer < chunk->layers ? dts_layer_work(b, chunk->first_layer + layer)
                                                        : &b->work[DTS_PART_HEAD];
    const bool copy = layer >= chunk->layers && set == DTS_SET_COMMON;
    *elements += work->parameters[set] + (copy ? sync->stage->tied_copy : 0);
    *quantised += work->quantised[set];
}

/* One bucket, beginning with the part that is next: sent off behind a task. */
static void send_bucket(dts_gradient_sync *sync, int64_t virtual_stage, dts_id after) {
    dts_builder *b = sync->b;
    dts_updated *u = &sync->updated[virtual_stage];
    const int64_t first = u->issued;
    const bool whole = sync->stage->index > 0 || place_of(sync, virtual_stage) > 0;
    if (first >= u->parts) {
        return;
    }
    const dts_task_info info = dts_sync_transfer_info("all-gather parameters");
    const int64_t end = whole ? u->parts : first + 1;
    dts_id made = DTS_NO_ID;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        double elements = 0, quantised = 0;
        for (int64_t i = first; i < end; i++) {
            add_part(sync, &b->plan->chunks[virtual_stage], i, (dts_parameter_set)set, &elements, &quantised);
        }
        if (dts_plan_shards(b->plan, (dts_parameter_set)set) > 1 && elements > 0) {
            const double bytes = dts_plan_gathered_B(b->plan, elements, quantised);
            const dts_id before = made;
            made = dts_build_collective(b, sync->stage, dts_sync_group((dts_parameter_set)set), DTS_ALL_GATHER, bytes,
                                        false, after, &info);
            dts_graph_depend(b->graph, made, before);
        }
    }
    for (int64_t i = first; i < end; i++) {
        u->gathers[i] = i == first ? made : DTS_NO_ID;
    }
    u->issued = end;
}

void dts_updated_begin(dts_gradient_sync *sync) {
    if (sync->updated != NULL) {
        send_bucket(sync, dts_plan_stage(sync->b->plan, sync->stage->index, 0), DTS_NO_ID);
    }
}

bool dts_updated_awaits(const dts_gradient_sync *sync, const dts_chunk *chunk) {
    const dts_updated *u = sync->updated == NULL ? NULL : &sync->updated[chunk - sync->b->plan->chunks];
    return u != NULL && u->used < u->parts;
}

dts_id dts_updated_before_part(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position) {
    const dts_plan *plan = sync->b->plan;
    const int64_t here = chunk - plan->chunks, next = place_of(sync, here) + 1;
    dts_updated *u = &sync->updated[here];
    if (position < u->used) {
        return DTS_NO_ID;
    }
    u->used = position + 1;
    if (u->issued <= position) {
        send_bucket(sync, here, sync->stage->last_kernel);
    }
    if (u->issued == position + 1) {
        send_bucket(sync, here, sync->stage->last_kernel);
    }
    if (position == 0 && next < plan->virtual_stages) {
        send_bucket(sync, dts_plan_stage(plan, sync->stage->index, next), sync->stage->last_kernel);
    }
    return u->gathers[position];
}
