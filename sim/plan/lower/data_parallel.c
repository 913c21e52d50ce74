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
 * ZeRO-2 [2]: gradients are kept as shards, so every microbatch's buckets are reduce-scattered (the shard's sum over
 * microbatches is added up behind the transfer, a kernel of 1/data of the elements that is not counted).
 *
 * FSDP [3], ZeRO-3 [2]: every layer is a unit whose parameters are gathered before its forward and its backward, freed
 * after each, and whose gradients are reduce-scattered. All share one communication stream, so the order of issue
 * decides: without prefetch the gather of the next unit in backward stands behind the reduce-scatter of this one.
 * Hybrid sharding [3] does so inside groups; what a rank has reduced there is then all-reduced with the ranks that hold
 * the same shard.
 *
 * Offload: parameters that rest in host memory come to the GPU as this rank's shard, ahead of the all-gather; gradients
 * that rest there leave as the reduced shard (offload.c has the copies).
 *
 * [1] Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020, section 4.2.
 * [2] Rajbhandari et al., "ZeRO", 2020, section 5.
 * [3] Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 2023, sections 3.3 and 4.
 */
#include <math.h>

#include "plan/lower/builder.h"

/* Parameters that are gathered and freed together. */
typedef struct unit {
    double elements[DTS_SET_COUNT], quantised[DTS_SET_COUNT]; /* of these, in products of 8 or 4 bits */
    double frozen_B[DTS_SET_COUNT]; /* of those that are not trained, in their stored format */
    bool gathered;
    bool copied;   /* out of the gathered buffer */
    dts_id gather; /* transfer that made it whole, DTS_NO_ID: always whole */
} unit;

/* A reduction, and the kernel that made the last of its gradients. */
typedef struct reduction {
    dts_id made, transfer;
} reduction;

/* Gradients that wait for their reduction, of one set of parameters. */
typedef struct bucket {
    double limit_B, pending_B, held_B;
    dts_id ready;
} bucket;

static const dts_group_kind groups[] = {[DTS_SET_COMMON] = DTS_GROUP_DATA, [DTS_SET_EXPERTS] = DTS_GROUP_EXPERT_DATA};

struct dts_gradient_sync {
    dts_builder *b;
    dts_stage *stage;
    bool active;  /* more than one replica, or something in host memory */
    bool sharded; /* FSDP or ZeRO-3 */
    /* buckets */
    dts_collective reduction;
    bucket buckets[DTS_SET_COUNT];
    bool every_microbatch; /* ZeRO-2 */
    int tensors;
    double total_B;
    int flushed;
    dts_id last_transfer;
    /* units: [virtual stage][position], the root unit holds embedding and head */
    unit **units;
    unit root;
    bool root_has_embedding, root_done;
    dts_id last_gather;
    dts_id recent_uses[2]; /* for the limit on gathers in flight */
    dts_nvme_ring buffers; /* parameters on NVMe */
    reduction *reductions; /* two copies of a stage: all so far */
    size_t reduction_count, reduction_capacity;
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

static void unit_add(unit *u, const dts_part_work *work) {
    u->frozen_B[DTS_SET_COMMON] += work->frozen_B;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        u->elements[set] += work->parameters[set];
        u->quantised[set] += work->quantised[set];
    }
}

static bool units_new(dts_gradient_sync *sync, int64_t first_chunk, int64_t last_chunk) {
    dts_builder *b = sync->b;
    const dts_plan *plan = b->plan;
    sync->units = dts_arena_array(b->arena, (size_t)plan->stages, sizeof *sync->units);
    if (sync->units == NULL) {
        return false;
    }
    sync->root = (unit){.gather = DTS_NO_ID};
    for (int64_t v = first_chunk; v <= last_chunk; v++) {
        int64_t s = dts_plan_stage(plan, sync->stage->index, v);
        const dts_chunk *chunk = &plan->chunks[s];
        sync->units[s] = dts_arena_array(b->arena, (size_t)chunk_parts(chunk), sizeof **sync->units);
        if (sync->units[s] == NULL) {
            return false;
        }
        for (int64_t i = 0; i < chunk->layers; i++) {
            unit *u = &sync->units[s][i + chunk->embedding];
            u->gather = DTS_NO_ID;
            unit_add(u, dts_layer_work(b, chunk->first_layer + i));
        }
        sync->root_has_embedding |= chunk->embedding;
        if (chunk->embedding) {
            unit_add(&sync->root, &b->work[DTS_PART_EMBEDDING]);
        }
        if (chunk->head) {
            unit_add(&sync->root, &b->work[DTS_PART_HEAD]);
        }
    }
    sync->root.elements[DTS_SET_COMMON] += sync->stage->tied_copy;
    return true;
}

static dts_gradient_sync *sync_alloc(dts_builder *b, dts_stage *stage) {
    dts_gradient_sync *sync = dts_arena_alloc(b->arena, sizeof *sync);
    if (sync == NULL) {
        return NULL;
    }
    int kind = b->plan->job.parallelism->data_parallel;
    const dts_offload *offload = b->plan->job.offload;
    const bucket empty = {.limit_B = b->plan->job.stack->ddp_first_bucket_B, .ready = DTS_NO_ID};
    *sync =
        (dts_gradient_sync){.b = b,
                            .stage = stage,
                            .active = (b->plan->replicas > 1 && kind != DTS_DP_SINGLE_PROCESS) ||
                                      offload->parameters != DTS_OFFLOAD_NONE || offload->gradients != DTS_OFFLOAD_NONE,
                            .sharded = dts_plan_shards_parameters(b->plan),
                            .every_microbatch = kind == DTS_DP_ZERO2,
                            .reduction = dts_plan_shards_optimizer(b->plan) ? DTS_REDUCE_SCATTER : DTS_ALL_REDUCE,
                            .buckets = {empty, empty},
                            .last_transfer = DTS_NO_ID,
                            .last_gather = DTS_NO_ID,
                            .recent_uses = {DTS_NO_ID, DTS_NO_ID}};
    return sync;
}

dts_gradient_sync *dts_sync_new(dts_builder *b, dts_stage *stage, int64_t first_chunk, int64_t last_chunk) {
    dts_gradient_sync *sync = sync_alloc(b, stage);
    bool good = sync != NULL && units_new(sync, first_chunk, last_chunk) && dts_nvme_ring_new(b, &sync->buffers);
    return good ? sync : NULL;
}

static dts_task_info transfer_info(const char *name) {
    return (dts_task_info){.role = DTS_ROLE_COMMUNICATION, .microbatch = -1, .layer = -1, .name = name};
}

static bool offloads_parameters(const dts_gradient_sync *sync) {
    return sync->b->plan->job.offload->parameters != DTS_OFFLOAD_NONE;
}

static bool offloads_gradients(const dts_gradient_sync *sync) {
    return sync->b->plan->job.offload->gradients != DTS_OFFLOAD_NONE;
}

static void note_reduction(dts_gradient_sync *sync, dts_id made, dts_id transfer) {
    if (sync->b->plan->copies == 1) {
        return;
    }
    if (sync->reduction_count == sync->reduction_capacity) {
        size_t capacity = sync->reduction_capacity == 0 ? 16 : 2 * sync->reduction_capacity;
        reduction *grown = dts_arena_array(sync->b->arena, capacity, sizeof *grown);
        if (grown == NULL) {
            sync->b->failed = true;
            return;
        }
        for (size_t i = 0; i < sync->reduction_count; i++) {
            grown[i] = sync->reductions[i];
        }
        sync->reductions = grown;
        sync->reduction_capacity = capacity;
    }
    sync->reductions[sync->reduction_count++] = (reduction){.made = made, .transfer = transfer};
}

void dts_sync_pair(dts_gradient_sync *a, dts_gradient_sync *z) {
    for (size_t i = 0; i < a->reduction_count && i < z->reduction_count; i++) {
        dts_graph_depend(a->b->graph, a->reductions[i].transfer, z->reductions[i].made);
        dts_graph_depend(a->b->graph, z->reductions[i].transfer, a->reductions[i].made);
    }
}

/* Gradients of elements leave after the transfer that reduced them, or after made where there is one rank only. */
static void reduce_and_store(dts_gradient_sync *sync, dts_parameter_set set, double elements, double wire_B,
                             dts_id made, const dts_task_info *info) {
    dts_builder *b = sync->b;
    const dts_plan *plan = b->plan;
    const int64_t shards = dts_plan_shards(plan, set);
    double shard = sync->reduction == DTS_REDUCE_SCATTER ? (double)shards : 1;
    dts_id done = made;
    if (shards > 1) {
        done = dts_build_collective(b, sync->stage, groups[set], sync->reduction, wire_B, true, made, info);
    }
    if (plan->shards < plan->replicas) {
        dts_task_info between = transfer_info("all-reduce between groups");
        done = dts_build_collective(b, sync->stage, DTS_GROUP_REPLICA, DTS_ALL_REDUCE, wire_B / shard, true, done,
                                    &between);
    }
    if (offloads_gradients(sync)) {
        double bytes = floor(elements / shard * plan->storage.gradient_B);
        dts_task_info out = {.microbatch = -1, .layer = -1, .name = "d2h gradients"};
        dts_build_memory(b, made, DTS_AT_END, sync->stage, DTS_MEMORY_GRADIENTS, bytes);
        done = dts_build_copy(b, sync->stage, false, bytes, true, done, &out);
        dts_build_memory(b, done, DTS_AT_END, sync->stage, DTS_MEMORY_GRADIENTS, -bytes);
        if (plan->job.offload->gradients == DTS_OFFLOAD_NVME) {
            dts_build_host_memory(b, done, DTS_AT_START, sync->stage, DTS_MEMORY_GRADIENTS, bytes);
            done = dts_build_nvme(b, sync->stage, false, bytes, done, "nvme gradients");
            dts_build_host_memory(b, done, DTS_AT_END, sync->stage, DTS_MEMORY_GRADIENTS, -bytes);
        }
    }
    note_reduction(sync, made, done);
    sync->last_transfer = done;
}

/* ---- buckets ---------------------------------------------------------------------------------------------------- */

/* One kernel over a tensor on its way into or out of a bucket: read and write. */
static dts_id pass_tensor(dts_gradient_sync *sync, double bytes, const char *name) {
    dts_task_info info = {.role = DTS_ROLE_BACKWARD_WEIGHT, .microbatch = -1, .layer = -1, .name = name};
    double duration = dts_gpu_memory_s(&sync->b->plan->job.cluster->gpu, 2 * bytes);
    return dts_build_kernel(sync->b, sync->stage, duration, true, DTS_NO_ID, &info);
}

static void flush_bucket(dts_gradient_sync *sync, dts_parameter_set set) {
    bucket *pending = &sync->buckets[set];
    if (pending->pending_B <= 0) {
        return;
    }
    const char *name =
        dts_arena_printf(sync->b->arena, "%s bucket %d", dts_collective_names[sync->reduction], sync->flushed);
    dts_task_info info = transfer_info(name == NULL ? "bucket" : name);
    reduce_and_store(sync, set, pending->pending_B / sync->b->plan->storage.reduce_B, pending->pending_B,
                     pending->ready, &info);
    dts_build_memory(sync->b, sync->last_transfer, DTS_AT_END, sync->stage, DTS_MEMORY_COMMUNICATION, -pending->held_B);
    sync->flushed++;
    *pending = (bucket){.limit_B = sync->b->plan->job.stack->ddp_bucket_B, .ready = pending->ready};
}

/* The experts' buckets first: their groups are smaller. */
static void flush_buckets(dts_gradient_sync *sync) {
    flush_bucket(sync, DTS_SET_EXPERTS);
    flush_bucket(sync, DTS_SET_COMMON);
}

/* A gradient that is not kept whole: its bucket is there until it has been reduced. */
static void hold_in_bucket(dts_gradient_sync *sync, bucket *pending, double bytes) {
    double whole = floor(bytes);
    dts_build_memory(sync->b, pending->ready, DTS_AT_START, sync->stage, DTS_MEMORY_COMMUNICATION, whole);
    pending->held_B += whole;
}

bool dts_sync_takes_gradients(const dts_gradient_sync *sync) {
    return (sync->active && (sync->every_microbatch || sync->sharded)) || dts_plan_single_process(sync->b->plan);
}

void dts_sync_reduced(dts_gradient_sync *sync, dts_id task) {
    sync->last_transfer = task;
}

void dts_sync_gradient(dts_gradient_sync *sync, dts_parameter_set set, const double *parameters, size_t count,
                       bool last_microbatch) {
    bucket *pending = &sync->buckets[set];
    if (!sync->active || sync->sharded || !(last_microbatch || sync->every_microbatch)) {
        return;
    }
    for (size_t i = count; i-- > 0;) {
        if (parameters[i] <= 0) {
            continue;
        }
        double bytes = parameters[i] * sync->b->plan->storage.reduce_B;
        /* a fresh gradient is not in its bucket yet, even where gradients end up as views of it */
        const dts_stack *stack = sync->b->plan->job.stack;
        bool copies = !stack->gradient_as_bucket_view || stack->zero_grad_to_none || sync->every_microbatch;
        /* the division by the group size happens on the way, or in place */
        pending->ready = pass_tensor(sync, bytes, copies ? "copy_to_bucket" : "scale_in_bucket");
        if (sync->every_microbatch) {
            hold_in_bucket(sync, pending, bytes);
        }
        pending->pending_B += bytes;
        sync->total_B += bytes;
        sync->tensors++;
        if (pending->pending_B >= pending->limit_B) {
            flush_bucket(sync, set);
        }
    }
}

bool dts_sync_hands_over(const dts_gradient_sync *sync, bool last_microbatch, double *room_B) {
    const bucket *pending = &sync->buckets[DTS_SET_COMMON];
    *room_B = sync->flushed > 0 ? 0 : pending->limit_B - pending->pending_B;
    return sync->active && !sync->sharded && (last_microbatch || sync->every_microbatch);
}

bool dts_sync_gathers(const dts_gradient_sync *sync) {
    return sync->active && sync->sharded;
}

void dts_sync_take(dts_gradient_sync *sync, double bytes, int tensors, dts_id ready) {
    bucket *pending = &sync->buckets[DTS_SET_COMMON];
    pending->ready = ready;
    pending->pending_B += bytes;
    sync->total_B += bytes;
    sync->tensors += tensors;
}

dts_gradient_sync *dts_sync_recorder(dts_builder *b, dts_stage *stage) {
    dts_gradient_sync *sync = sync_alloc(b, stage);
    if (sync != NULL) {
        sync->buckets[DTS_SET_COMMON].limit_B = INFINITY;
        sync->buckets[DTS_SET_EXPERTS].limit_B = INFINITY;
    }
    return sync;
}

void dts_sync_recorded(const dts_gradient_sync *sync, double *bytes, int *tensors) {
    *bytes = sync->total_B;
    *tensors = sync->tensors;
}

dts_id dts_sync_finish(dts_gradient_sync *sync) {
    if (!sync->active || sync->sharded) {
        return sync->last_transfer;
    }
    flush_buckets(sync);
    if (!sync->b->plan->job.stack->gradient_as_bucket_view && !sync->every_microbatch && sync->tensors > 0) {
        dts_id last = sync->last_transfer;
        for (int i = 0; i < sync->tensors; i++) {
            dts_id copy = pass_tensor(sync, sync->total_B / sync->tensors, "copy_from_bucket");
            dts_graph_depend(sync->b->graph, copy, last);
            last = DTS_NO_ID; /* the stream keeps the rest in order */
        }
    }
    sync->flushed = 0; /* an asynchronous schedule begins anew after every update */
    sync->tensors = 0;
    sync->total_B = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        sync->buckets[set].limit_B = sync->b->plan->job.stack->ddp_first_bucket_B;
    }
    return sync->last_transfer;
}

/* ---- units ------------------------------------------------------------------------------------------------------ */

static double gathered_B(const dts_gradient_sync *sync, const unit *u, dts_parameter_set set) {
    return dts_plan_gathered_B(sync->b->plan, u->elements[set], u->quantised[set]) + u->frozen_B[set];
}

/* Bytes of a unit's shard where it rests in host memory. */
static double shard_B(const dts_gradient_sync *sync, const unit *u, dts_parameter_set set) {
    const dts_plan *plan = sync->b->plan;
    return (u->elements[set] * plan->storage.parameter_B + u->frozen_B[set]) / (double)dts_plan_shards(plan, set);
}

static bool has_parameters(const unit *u, dts_parameter_set set) {
    return u->elements[set] > 0 || u->frozen_B[set] > 0;
}

/* The framework's work around a unit's collective, on the host. */
static void unit_hooks(dts_gradient_sync *sync, bool backward) {
    double host_s = sync->b->plan->job.stack->fsdp_unit_host_s;
    if (host_s > 0) {
        dts_build_host(sync->b, sync->stage, host_s, backward, DTS_NO_ID, "fsdp hooks");
    }
}

/* What a gathered unit takes on the GPU: with parameters in host memory the own shard, too. */
static double unit_B(const dts_gradient_sync *sync, const unit *u) {
    const dts_plan *plan = sync->b->plan;
    double bytes = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        double shards = (double)dts_plan_shards(plan, (dts_parameter_set)set);
        bytes += shards > 1 ? gathered_B(sync, u, (dts_parameter_set)set) : 0;
        bytes += offloads_parameters(sync) ? floor(shard_B(sync, u, (dts_parameter_set)set)) : 0;
    }
    return bytes;
}

/* Parameters that rest on NVMe come to a pinned buffer first: when one is free, or, without prefetch, when they are
 * asked for and the unit before them is whole. */
static dts_id read_shard(dts_gradient_sync *sync, double bytes) {
    dts_builder *b = sync->b;
    if (b->plan->job.offload->parameters != DTS_OFFLOAD_NVME) {
        return DTS_NO_ID;
    }
    dts_id read = dts_build_nvme(b, sync->stage, true, bytes, dts_nvme_ring_oldest(&sync->buffers), "nvme parameters");
    if (b->plan->job.offload->prefetch == 0) {
        dts_graph_depend(b->graph, read, sync->stage->last_host);
        dts_graph_depend(b->graph, read, sync->last_gather);
    }
    return read;
}

/* The shard of a set comes from host memory and the others' shards from their GPUs; returns what made it whole. */
static dts_id make_set_whole(dts_gradient_sync *sync, const unit *u, dts_parameter_set set, bool backward) {
    dts_builder *b = sync->b;
    const dts_plan *plan = b->plan;
    const double shards = (double)dts_plan_shards(plan, set);
    dts_id shard = DTS_NO_ID;
    if (offloads_parameters(sync)) {
        dts_task_info in = {.microbatch = -1, .layer = -1, .name = "h2d parameters"};
        dts_id after = plan->job.offload->prefetch == 0 ? sync->last_gather : DTS_NO_ID; /* one stream for both */
        double bytes = shard_B(sync, u, set);
        dts_id read = read_shard(sync, bytes);
        shard = dts_build_copy(b, sync->stage, true, bytes, backward, after, &in);
        dts_graph_depend(b->graph, shard, read);
        if (read != DTS_NO_ID) {
            dts_nvme_ring_put(&sync->buffers, shard);
        }
    }
    if (dts_plan_gathers_quantised(plan) && u->quantised[set] > 0) {
        double bytes =
            u->quantised[set] / shards * (plan->storage.parameter_B + dts_numeric_bytes(plan->storage.product));
        dts_task_info cast = {.role = (uint8_t)(backward ? DTS_ROLE_BACKWARD : DTS_ROLE_FORWARD),
                              .microbatch = -1,
                              .layer = -1,
                              .name = "quantise_shard"};
        shard =
            dts_build_kernel(b, sync->stage, dts_gpu_memory_s(&plan->job.cluster->gpu, bytes), backward, shard, &cast);
    }
    if (shards > 1) {
        dts_task_info info = transfer_info(u == &sync->root ? "all-gather root" : "all-gather");
        return dts_build_collective(b, sync->stage, groups[set], DTS_ALL_GATHER, gathered_B(sync, u, set), backward,
                                    shard, &info);
    }
    return shard;
}

/* Sets are gathered one after another, on one stream of the framework: the layer waits for the last of them. */
static void make_whole(dts_gradient_sync *sync, unit *u, bool backward) {
    u->gather = DTS_NO_ID;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        dts_id made = has_parameters(u, (dts_parameter_set)set)
                          ? make_set_whole(sync, u, (dts_parameter_set)set, backward)
                          : DTS_NO_ID;
        if (made != DTS_NO_ID) {
            dts_graph_depend(sync->b->graph, made, u->gather);
            u->gather = made;
        }
    }
    sync->last_gather = u->gather;
    u->gathered = true;
    u->copied = false;
}

/* A kernel over a unit's parameters or gradients around its collective, on the compute stream. */
static dts_id copy_unit(dts_gradient_sync *sync, double bytes, bool backward, dts_id after, const char *name) {
    dts_builder *b = sync->b;
    dts_task_info info = {.role = (uint8_t)(backward ? DTS_ROLE_BACKWARD : DTS_ROLE_FORWARD),
                          .microbatch = -1,
                          .layer = -1,
                          .name = name};
    return dts_build_kernel(b, sync->stage, dts_gpu_memory_s(&b->plan->job.cluster->gpu, bytes), backward, after,
                            &info);
}

/* FSDP2: parameters leave the gathered buffer before the unit runs; both are there while they do. */
static dts_id use_unit(dts_gradient_sync *sync, unit *u, bool backward) {
    double whole_B = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        bool gathers = dts_plan_shards(sync->b->plan, (dts_parameter_set)set) > 1;
        whole_B += gathers ? floor(gathered_B(sync, u, (dts_parameter_set)set)) : 0;
    }
    if (u->copied || u->gather == DTS_NO_ID || !(whole_B > 0) ||
        sync->b->plan->job.stack->fsdp_copies != DTS_FSDP_COPIES_TENSORS) {
        return u->gather;
    }
    u->copied = true;
    dts_id copy = copy_unit(sync, 2 * whole_B, backward, u->gather, "copy_out parameters");
    dts_build_memory(sync->b, copy, DTS_AT_START, sync->stage, DTS_MEMORY_COMMUNICATION, whole_B);
    dts_build_memory(sync->b, copy, DTS_AT_END, sync->stage, DTS_MEMORY_COMMUNICATION, -whole_B);
    return copy;
}

/* Gradients of a unit on their way into the reduction: copied into its buffer, in its format (FSDP2), or put together
 * in one tensor and divided (FSDP1). */
static dts_id hand_in_gradients(dts_gradient_sync *sync, const unit *u, dts_id last) {
    const dts_storage *storage = &sync->b->plan->storage;
    double fresh_B = fmin(storage->reduce_B, dts_numeric_bytes(storage->compute));
    double elements = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        elements += dts_plan_shards(sync->b->plan, (dts_parameter_set)set) > 1 ? u->elements[set] : 0;
    }
    if (!(elements > 0)) {
        return last;
    }
    switch ((dts_fsdp_copies)sync->b->plan->job.stack->fsdp_copies) {
        case DTS_FSDP_COPIES_NONE:
            break;
        case DTS_FSDP_COPIES_FLAT:
            return copy_unit(sync, 4 * elements * fresh_B, true, last, "flatten gradients");
        case DTS_FSDP_COPIES_TENSORS:
            return copy_unit(sync, elements * (fresh_B + storage->reduce_B), true, last, "copy_in gradients");
    }
    return last;
}

static void gather(dts_gradient_sync *sync, unit *u, bool backward) {
    if (u->gathered || !has_parameters(u, DTS_SET_COMMON)) { /* every unit has some, or is empty */
        return;
    }
    dts_builder *b = sync->b;
    if (b->plan->job.stack->fsdp_limit_all_gathers) {
        dts_build_host(b, sync->stage, 0, backward, sync->recent_uses[0], "wait for a free unit");
    }
    unit_hooks(sync, backward);
    make_whole(sync, u, backward);
    /* The caching allocator counts in the order in which the host allocates and frees, however far it runs ahead of the
     * GPU: that is, behind what has been issued so far. */
    bool first = sync->stage->last_kernel == DTS_NO_ID;
    dts_build_memory(b, first ? sync->stage->last_host : sync->stage->last_kernel, first ? DTS_AT_START : DTS_AT_END,
                     sync->stage, DTS_MEMORY_COMMUNICATION, unit_B(sync, u));
}

static void release(dts_gradient_sync *sync, unit *u, dts_id last) {
    if (!u->gathered) {
        return;
    }
    dts_build_memory(sync->b, last, DTS_AT_END, sync->stage, DTS_MEMORY_COMMUNICATION, -unit_B(sync, u));
    u->gathered = false;
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
    use_unit(sync, &sync->root, backward);
    const dts_stack *stack = sync->b->plan->job.stack;
    int64_t ahead = backward ? stack->fsdp_prefetch : (stack->fsdp_forward_prefetch ? 1 : 0);
    for (int64_t i = 1; i <= ahead; i++) {
        int64_t next = backward ? position - i : position + i;
        if (next >= 0 && next < chunk_parts(chunk)) {
            gather(sync, unit_of(sync, chunk, next), backward);
        }
    }
    return use_unit(sync, u, backward);
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
    bool complete = sync->every_microbatch || (sync->b->plan->copies > 1 && last_microbatch);
    if (sync->active && complete && position == 0) {
        flush_buckets(sync); /* of this microbatch's backward, or of this copy */
    }
    if (!sync->active || !sync->sharded) {
        return;
    }
    unit *u = unit_of(sync, chunk, position);
    /* the root unit's gradients are complete with the embedding's, or with the head's where that is all */
    bool root_part = sync->root_has_embedding ? chunk->embedding && position == 0 : true;
    if (u == &sync->root && !root_part) {
        return;
    }
    sync->root_done |= u == &sync->root && last_microbatch;
    dts_builder *b = sync->b;
    unit_hooks(sync, true);
    last = hand_in_gradients(sync, u, last);
    dts_task_info info = transfer_info("reduce-scatter");
    for (int set = DTS_SET_COUNT; set-- > 0;) {
        double gradient_B = u->elements[set] * b->plan->storage.reduce_B;
        if (gradient_B > 0) {
            dts_block_allocate(b, last, sync->stage, DTS_MEMORY_COMMUNICATION, gradient_B);
            reduce_and_store(sync, (dts_parameter_set)set, u->elements[set], gradient_B, last, &info);
            dts_build_memory(b, last, DTS_AT_END, sync->stage, DTS_MEMORY_COMMUNICATION, -gradient_B);
        }
    }
    if (u != &sync->root || last_microbatch) {
        release(sync, u, last);
    }
}
