/* Keeping the replicas in step.
 *
 * DDP [1]: parameters are grouped into buckets in reverse order of registration. A bucket closes as soon as it has
 * reached its size (so it may overshoot by one tensor); its all-reduce is issued when its last gradient is there, and
 * overlaps the rest of backward. With gradient accumulation only the last microbatch does this (no_sync). Unless
 * gradients are views of the buckets, every tensor is copied in (with the division by the group size) and back out at
 * the end.
 *
 * ZeRO-1 [2]: as DDP, but each rank needs the reduced gradients of its share only (reduce-scatter); after its share of
 * the optimizer step the parameters are gathered.
 *
 * FSDP [3], ZeRO-3 [2]: every layer is a unit whose parameters are gathered before its forward and its backward, freed
 * after each, and whose gradients are reduce-scattered. All share one communication stream, so the order of issue
 * decides: without prefetch the gather of the next unit in backward stands behind the reduce-scatter of this one.
 *
 * [1] Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020, section 4.2.
 * [2] Rajbhandari et al., "ZeRO", 2020, section 5.
 * [3] Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 2023, sections 3.3 and 4.
 */
#include "plan/lower/builder.h"

/* Parameters that are gathered and freed together. */
typedef struct unit {
    double elements;
    bool gathered;
    dts_id gather;   /* transfer that made it whole, DTS_NO_ID: always whole */
    dts_id last_use; /* kernel after which the gathered copy was freed last time */
} unit;

/* What arrived in a bucket and must be copied back. */
struct dts_gradient_sync {
    dts_builder *b;
    dts_stage *stage;
    bool active;  /* more than one replica */
    bool sharded; /* FSDP or ZeRO-3 */
    /* buckets */
    dts_collective reduction;
    double limit_B, pending_B;
    int tensors;
    double total_B;
    int bucket;
    dts_id ready, last_transfer;
    /* units: [virtual stage][position], the root unit holds embedding and head */
    unit **units;
    unit root;
    bool root_has_embedding, root_done;
    dts_id recent_uses[2]; /* for the limit on gathers in flight */
};

static int64_t chunk_parts(const dts_chunk *chunk) {
    return chunk->layers + chunk->embedding + chunk->head;
}

/* A layer's unit, or the root unit for embedding and head. */
static unit *unit_of(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position) {
    bool embedding = chunk->embedding && position == 0;
    bool head = chunk->head && position == chunk_parts(chunk) - 1;
    return embedding || head ? &sync->root : &sync->units[chunk - sync->b->plan->chunks][position];
}

static bool units_new(dts_gradient_sync *sync) {
    dts_builder *b = sync->b;
    const dts_plan *plan = b->plan;
    int64_t stages = plan->pipeline * plan->virtual_stages;
    sync->units = dts_arena_array(b->arena, (size_t)stages, sizeof *sync->units);
    if (sync->units == NULL) {
        return false;
    }
    sync->root = (unit){.gather = DTS_NO_ID, .last_use = DTS_NO_ID};
    for (int64_t v = 0; v < plan->virtual_stages; v++) {
        int s = dts_virtual_stage(plan->schedule.layout, (int)plan->pipeline, (int)sync->stage->index, (int)v);
        const dts_chunk *chunk = &plan->chunks[s];
        sync->units[s] = dts_arena_array(b->arena, (size_t)chunk_parts(chunk), sizeof **sync->units);
        if (sync->units[s] == NULL) {
            return false;
        }
        for (int64_t i = 0; i < chunk_parts(chunk); i++) {
            sync->units[s][i] =
                (unit){.elements = b->work[DTS_PART_LAYER].parameters, .gather = DTS_NO_ID, .last_use = DTS_NO_ID};
        }
        sync->root_has_embedding |= chunk->embedding;
        sync->root.elements += chunk->embedding ? b->work[DTS_PART_EMBEDDING].parameters : 0;
        sync->root.elements += chunk->head ? b->work[DTS_PART_HEAD].parameters : 0;
    }
    return true;
}

dts_gradient_sync *dts_sync_new(dts_builder *b, dts_stage *stage) {
    dts_gradient_sync *sync = dts_arena_alloc(b->arena, sizeof *sync);
    if (sync == NULL) {
        return NULL;
    }
    int kind = b->plan->job.parallelism->data_parallel;
    *sync = (dts_gradient_sync){.b = b,
                                .stage = stage,
                                .active = b->plan->data > 1,
                                .sharded = kind == DTS_DP_FSDP || kind == DTS_DP_ZERO3,
                                .reduction = kind == DTS_DP_ZERO1 ? DTS_REDUCE_SCATTER : DTS_ALL_REDUCE,
                                .limit_B = b->plan->job.stack->ddp_first_bucket_B,
                                .ready = DTS_NO_ID,
                                .last_transfer = DTS_NO_ID,
                                .recent_uses = {DTS_NO_ID, DTS_NO_ID}};
    return units_new(sync) ? sync : NULL;
}

static dts_task_info transfer_info(const char *name) {
    return (dts_task_info){.role = DTS_ROLE_COMMUNICATION, .microbatch = -1, .layer = -1, .name = name};
}

/* ---- buckets ---------------------------------------------------------------------------------------------------- */

/* One kernel over a tensor on its way into or out of a bucket: read and write. */
static dts_id pass_tensor(dts_gradient_sync *sync, double bytes, const char *name) {
    dts_task_info info = {.role = DTS_ROLE_BACKWARD_WEIGHT, .microbatch = -1, .layer = -1, .name = name};
    double duration = dts_gpu_memory_s(&sync->b->plan->job.cluster->gpu, 2 * bytes);
    return dts_build_kernel(sync->b, sync->stage, duration, true, DTS_NO_ID, &info);
}

static void flush_bucket(dts_gradient_sync *sync) {
    if (sync->pending_B <= 0) {
        return;
    }
    const char *name =
        dts_arena_printf(sync->b->arena, "%s bucket %d", dts_collective_names[sync->reduction], sync->bucket);
    dts_task_info info = transfer_info(name == NULL ? "bucket" : name);
    sync->last_transfer = dts_build_collective(sync->b, sync->stage, DTS_GROUP_DATA, sync->reduction, sync->pending_B,
                                               true, sync->ready, &info);
    sync->bucket++;
    sync->pending_B = 0;
    sync->limit_B = sync->b->plan->job.stack->ddp_bucket_B;
}

void dts_sync_gradient(dts_gradient_sync *sync, const double *parameters, size_t count) {
    if (!sync->active || sync->sharded) {
        return;
    }
    for (size_t i = count; i-- > 0;) {
        if (parameters[i] <= 0) {
            continue;
        }
        double bytes = parameters[i] * sync->b->plan->storage.reduce_B;
        /* a fresh gradient is not in its bucket yet, even where gradients end up as views of it */
        const dts_stack *stack = sync->b->plan->job.stack;
        bool copies = !stack->gradient_as_bucket_view || stack->zero_grad_to_none;
        /* the division by the group size happens on the way, or in place */
        sync->ready = pass_tensor(sync, bytes, copies ? "copy_to_bucket" : "scale_in_bucket");
        sync->pending_B += bytes;
        sync->total_B += bytes;
        sync->tensors++;
        if (sync->pending_B >= sync->limit_B) {
            flush_bucket(sync);
        }
    }
}

dts_id dts_sync_finish(dts_gradient_sync *sync) {
    if (!sync->active || sync->sharded) {
        return sync->last_transfer;
    }
    flush_bucket(sync);
    if (!sync->b->plan->job.stack->gradient_as_bucket_view && sync->tensors > 0) {
        dts_id last = sync->last_transfer;
        for (int i = 0; i < sync->tensors; i++) {
            dts_id copy = pass_tensor(sync, sync->total_B / sync->tensors, "copy_from_bucket");
            dts_graph_depend(sync->b->graph, copy, last);
            last = DTS_NO_ID; /* the stream keeps the rest in order */
        }
    }
    return sync->last_transfer;
}

/* ---- units ------------------------------------------------------------------------------------------------------ */

static double gathered_B(const dts_gradient_sync *sync, const unit *u) {
    return u->elements * dts_numeric_bytes(sync->b->plan->storage.compute);
}

/* The framework's work around a unit's collective, on the host. */
static void unit_hooks(dts_gradient_sync *sync, bool backward) {
    double host_s = sync->b->plan->job.stack->fsdp_unit_host_s;
    if (host_s > 0) {
        dts_build_host(sync->b, sync->stage, host_s, backward, DTS_NO_ID, "fsdp hooks");
    }
}

static void gather(dts_gradient_sync *sync, unit *u, bool backward) {
    if (u->gathered || u->elements <= 0) {
        return;
    }
    dts_builder *b = sync->b;
    if (b->plan->job.stack->fsdp_limit_all_gathers) {
        dts_build_host(b, sync->stage, 0, backward, sync->recent_uses[0], "wait for a free unit");
    }
    unit_hooks(sync, backward);
    dts_task_info info = transfer_info(u == &sync->root ? "all-gather root" : "all-gather");
    u->gather = dts_build_collective(b, sync->stage, DTS_GROUP_DATA, DTS_ALL_GATHER, gathered_B(sync, u), backward,
                                     DTS_NO_ID, &info);
    u->gathered = true;
    /* The caching allocator counts in the order in which the host allocates and frees, however far it runs ahead of the
     * GPU: that is, behind what has been issued so far. */
    bool first = sync->stage->last_kernel == DTS_NO_ID;
    dts_build_memory(b, first ? sync->stage->last_host : sync->stage->last_kernel, first ? DTS_AT_START : DTS_AT_END,
                     sync->stage, DTS_MEMORY_COMMUNICATION, gathered_B(sync, u));
}

static void release(dts_gradient_sync *sync, unit *u, dts_id last) {
    if (!u->gathered) {
        return;
    }
    dts_build_memory(sync->b, last, DTS_AT_END, sync->stage, DTS_MEMORY_COMMUNICATION, -gathered_B(sync, u));
    u->gathered = false;
    u->last_use = last;
    sync->recent_uses[0] = sync->recent_uses[1];
    sync->recent_uses[1] = last;
}

dts_id dts_sync_before_part(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool backward) {
    if (!sync->active || !sync->sharded) {
        return DTS_NO_ID;
    }
    unit *u = unit_of(sync, chunk, position);
    if ((chunk->embedding || chunk->head) && !sync->root_done) {
        gather(sync, &sync->root, backward); /* the root unit is whole from the first part to the end */
    }
    gather(sync, u, backward);
    const dts_stack *stack = sync->b->plan->job.stack;
    int64_t ahead = backward ? stack->fsdp_prefetch : (stack->fsdp_forward_prefetch ? 1 : 0);
    for (int64_t i = 1; i <= ahead; i++) {
        int64_t next = backward ? position - i : position + i;
        if (next >= 0 && next < chunk_parts(chunk)) {
            gather(sync, unit_of(sync, chunk, next), backward);
        }
    }
    return u->gather;
}

void dts_sync_after_forward(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, dts_id last) {
    if (!sync->active || !sync->sharded) {
        return;
    }
    unit *u = unit_of(sync, chunk, position);
    if (u != &sync->root && sync->b->plan->job.parallelism->reshard_after_forward) {
        release(sync, u, last);
    }
}

void dts_sync_after_backward(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool last_microbatch,
                             dts_id last) {
    if (!sync->active || !sync->sharded) {
        return;
    }
    unit *u = unit_of(sync, chunk, position);
    /* the root unit's gradients are complete with the embedding's, or with the head's where that is all */
    bool root_part = sync->root_has_embedding ? chunk->embedding && position == 0 : true;
    if (u == &sync->root && !(last_microbatch && root_part)) {
        return;
    }
    sync->root_done |= u == &sync->root;
    dts_builder *b = sync->b;
    double gradient_B = u->elements * b->plan->storage.reduce_B;
    unit_hooks(sync, true);
    dts_task_info info = transfer_info("reduce-scatter");
    dts_build_memory(b, last, DTS_AT_START, sync->stage, DTS_MEMORY_COMMUNICATION, gradient_B);
    sync->last_transfer =
        dts_build_collective(b, sync->stage, DTS_GROUP_DATA, DTS_REDUCE_SCATTER, gradient_B, true, last, &info);
    dts_build_memory(b, last, DTS_AT_END, sync->stage, DTS_MEMORY_COMMUNICATION, -gradient_B);
    release(sync, u, last);
}
