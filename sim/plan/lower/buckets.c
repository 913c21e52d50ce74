/* Gradients in buckets.
 *
 * DDP [1]: parameters are grouped into buckets in reverse order of registration. A bucket closes as soon as it has
 * reached its size (so it may overshoot by one tensor); its all-reduce is issued when its last gradient is there, and
 * overlaps the rest of backward. With gradient accumulation only the last microbatch does this (no_sync). Unless
 * gradients are views of the buckets, every tensor is copied in (with the division by the group size) and back out at
 * the end. A framework that gets all gradients at once when backward is through (XLA) reduces the buckets one after
 * another then (ddp.overlap).
 *
 * ZeRO-1 [2]: as DDP, but each rank needs the reduced gradients of its share only (reduce-scatter); after its share of
 * the optimizer step the parameters are gathered.
 *
 * ZeRO-2 [2]: gradients are kept as shards, so every microbatch's buckets are reduce-scattered (the shard's sum over
 * microbatches is added up behind the transfer, a kernel of 1/data of the elements that is not counted). Buckets have
 * room for so many gradients (data_parallel.c).
 *
 * [1] Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020, section 4.2.
 * [2] Rajbhandari et al., "ZeRO", 2020, section 5.
 */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "plan/lower/data_parallel.h"

/* One kernel over a tensor on its way into or out of a bucket, behind after: read and write. */
static dts_id pass_tensor(dts_gradient_sync *sync, double bytes, dts_id after, const char *name) {
    dts_task_info info = {.role = DTS_ROLE_BACKWARD_WEIGHT, .microbatch = -1, .layer = -1, .name = name};
    double duration = dts_gpu_memory_s(&sync->b->plan->job.cluster->gpu, 2 * bytes);
    return dts_build_kernel(sync->b, sync->stage, duration, true, after, &info);
}

/* Another gradient lies in buckets only. */
static void hold(dts_gradient_sync *sync, dts_bucket *bucket, const dts_held_gradient *gradient) {
    dts_held_gradient *held =
        dts_arena_room(sync->b->arena, bucket->held, &bucket->held_capacity, bucket->held_count + 1, sizeof *held);
    if (held == NULL) {
        sync->b->failed = true;
        return;
    }
    bucket->held = held;
    held[bucket->held_count++] = *gradient;
}

/* So much has been reduced when task ends: tensors go as wholes, of a block's sum what has been reduced. */
static void let_go(dts_gradient_sync *sync, dts_bucket *bucket, double reduced_B, dts_id task) {
    static const double rounding_B = 0.5;
    size_t gone = 0;
    for (bool whole = true; whole && gone < bucket->held_count; gone += whole) {
        dts_held_gradient *g = &bucket->held[gone];
        whole = g->pending_B <= reduced_B + rounding_B;
        const double part_B = whole ? g->held_B : g->sum ? floor(g->held_B * reduced_B / g->pending_B) : 0;
        dts_build_memory(sync->b, task, DTS_AT_END, sync->stage, DTS_MEMORY_COMMUNICATION, -part_B);
        reduced_B -= whole ? g->pending_B : 0;
        g->held_B -= part_B;
        g->pending_B -= whole ? 0 : fmax(0, reduced_B);
    }
    if (gone == 0) {
        return;
    }
    bucket->held_count -= gone;
    memmove(bucket->held, bucket->held + gone, bucket->held_count * sizeof *bucket->held);
}

static void flush_bucket(dts_gradient_sync *sync, dts_parameter_set set) {
    dts_bucket *pending = &sync->buckets[set];
    const double bytes = pending->pending_B;
    if (bytes <= 0) {
        return;
    }
    const char *name =
        dts_arena_printf(sync->b->arena, "%s bucket %d", dts_collective_names[sync->reduction], sync->flushed);
    dts_task_info info = dts_sync_transfer_info(name == NULL ? "bucket" : name);
    dts_sync_reduce(sync, set, bytes / sync->b->plan->storage.reduce_B, bytes, pending->ready, &info);
    let_go(sync, pending, bytes, sync->last_transfer);
    sync->flushed++;
    pending->limit_B = sync->b->plan->job.stack->ddp_bucket_B;
    pending->pending_B = 0;
}

/* As many full buckets as there are gradients for. */
static void flush_full(dts_gradient_sync *sync, dts_parameter_set set) {
    dts_bucket *pending = &sync->buckets[set];
    double rest_B = pending->pending_B;
    while (rest_B > 0 && rest_B >= pending->limit_B) {
        pending->pending_B = pending->limit_B;
        rest_B -= pending->limit_B;
        flush_bucket(sync, set);
    }
    pending->pending_B = rest_B;
}

/* What had to be over for what has gathered in a bucket; otherwise: before. */
static dts_id room_for(dts_gradient_sync *sync, dts_parameter_set set, dts_id otherwise) {
    const dts_id over = dts_sync_room(sync, set, sync->buckets[set].pending_B / sync->b->plan->storage.reduce_B);
    return over == DTS_NO_ID ? otherwise : over;
}

/* As many as gradients behind blocks have closed, all of one size: a tensor may overshoot the limit. Returns what had
 * to be over for the last gradients to have room. */
static dts_id flush_closed(dts_gradient_sync *sync, dts_parameter_set set) {
    dts_bucket *pending = &sync->buckets[set];
    const double part_B = (pending->pending_B - sync->open_B) / sync->closed;
    dts_id room = DTS_NO_ID;
    for (; sync->closed > 0; sync->closed--) {
        pending->pending_B = part_B;
        room = room_for(sync, set, room);
        flush_bucket(sync, set);
    }
    pending->pending_B = sync->open_B;
    return room_for(sync, set, room);
}

void dts_buckets_flush(dts_gradient_sync *sync) {
    static const dts_parameter_set order[] = {DTS_SET_EXPERTS, DTS_SET_COMMON};
    for (size_t i = 0; !sync->records && i < sizeof order / sizeof order[0]; i++) {
        if (!sync->b->plan->job.stack->ddp_overlap) { /* all of them are there when the last kernel is done */
            sync->buckets[order[i]].ready = sync->stage->last_kernel;
            flush_full(sync, order[i]);
        }
        flush_bucket(sync, order[i]);
    }
}

/* More gradients, which have filled buckets and left something in the last. */
static void record_buckets(dts_gradient_sync *sync, int closed, double open_B) {
    sync->closed += closed;
    sync->open_B += open_B;
    if (sync->open_B >= sync->b->plan->job.stack->ddp_bucket_B) {
        sync->closed++;
        sync->open_B = 0;
    }
}

void dts_sync_gradient(dts_gradient_sync *sync, dts_parameter_set set, const double *parameters, size_t count,
                       bool last_microbatch) {
    dts_bucket *pending = &sync->buckets[set];
    /* of a block that is lowered alone, last_microbatch says whether gradients are handed over inside it or behind */
    const bool hands_over = last_microbatch || (!sync->records && (sync->every_microbatch || sync->repeats));
    if (!sync->takes[set] || sync->sharded || !hands_over) {
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
        const dts_id room =
            sync->every_microbatch
                ? dts_sync_room(sync, set, parameters[i] + pending->pending_B / sync->b->plan->storage.reduce_B)
                : DTS_NO_ID;
        pending->ready = pass_tensor(sync, bytes, room, copies ? "copy_to_bucket" : "scale_in_bucket");
        if (sync->every_microbatch) {
            const dts_held_gradient own = {.pending_B = bytes, .held_B = floor(bytes)};
            dts_build_memory(sync->b, pending->ready, DTS_AT_START, sync->stage, DTS_MEMORY_COMMUNICATION, own.held_B);
            hold(sync, pending, &own);
        }
        pending->pending_B += bytes;
        sync->total_B += bytes;
        sync->tensors++;
        if (sync->records) {
            record_buckets(sync, 0, bytes);
        }
        if (stack->ddp_overlap && pending->pending_B >= pending->limit_B) {
            flush_bucket(sync, set);
        }
    }
}

bool dts_sync_hands_over(const dts_gradient_sync *sync, bool last_microbatch, double *room_B) {
    const dts_bucket *pending = &sync->buckets[DTS_SET_COMMON];
    *room_B = sync->flushed > 0 ? 0 : pending->limit_B - pending->pending_B;
    return sync->active && !sync->sharded && (last_microbatch || sync->every_microbatch || sync->repeats);
}

void dts_sync_take(dts_gradient_sync *sync, double bytes, int tensors, dts_id ready) {
    dts_bucket *pending = &sync->buckets[DTS_SET_COMMON];
    pending->ready = ready;
    pending->pending_B += bytes;
    sync->total_B += bytes;
    sync->tensors += tensors;
}

/* The compute stream goes on when a transfer is over. */
static void wait_for(dts_gradient_sync *sync, dts_id transfer) {
    const dts_task_info info = {.role = DTS_ROLE_BACKWARD_WEIGHT,
                                .microbatch = -1,
                                .layer = -1,
                                .device = sync->stage->device,
                                .name = "wait for a bucket"};
    if (transfer != DTS_NO_ID) {
        sync->stage->last_kernel = dts_build_task(sync->b, sync->stage->compute, 0, &info);
        dts_graph_depend(sync->b->graph, sync->stage->last_kernel, transfer);
    }
}

/* When the gradients of a block that begins behind a task, made one after another, have filled the open bucket. */
static dts_id filled_by(dts_gradient_sync *sync, const dts_bucket *open, const dts_block *block, dts_id begins) {
    const double share = fmin(1, (open->limit_B - open->pending_B) / block->reduced_B);
    const dts_task_info info = {
        .role = DTS_ROLE_HOST, .microbatch = -1, .layer = -1, .device = sync->stage->device, .name = "a bucket fills"};
    if (begins == DTS_NO_ID || !(share > 0)) {
        return sync->stage->last_kernel;
    }
    const dts_id filled = dts_build_delay(sync->b, (dts_time)(share * (double)block->duration), &info);
    dts_graph_depend(sync->b->graph, filled, begins);
    return filled;
}

void dts_sync_take_block(dts_gradient_sync *sync, const dts_block *block, dts_id begins) {
    dts_bucket *pending = &sync->buckets[DTS_SET_COMMON];
    sync->open_B = sync->records ? sync->open_B : pending->pending_B;
    pending->ready = filled_by(sync, pending, block, begins);
    pending->pending_B += block->reduced_B;
    const dts_held_gradient all = {
        .pending_B = block->reduced_B, .held_B = (double)block->left_B[DTS_MEMORY_COMMUNICATION], .sum = true};
    hold(sync, pending, &all);
    sync->total_B += block->reduced_B;
    sync->tensors += block->reduced_tensors;
    record_buckets(sync, block->closed_buckets, block->open_B);
    if (sync->b->plan->job.stack->ddp_overlap && !sync->records && sync->closed > 0) {
        wait_for(sync, flush_closed(sync, DTS_SET_COMMON));
    }
}

dts_gradient_sync *dts_sync_recorder(dts_builder *b, dts_stage *stage) {
    dts_gradient_sync *sync = dts_sync_alloc(b, stage);
    if (sync != NULL) {
        sync->records = true;
        sync->buckets[DTS_SET_COMMON].limit_B = INFINITY;
        sync->buckets[DTS_SET_EXPERTS].limit_B = INFINITY;
    }
    return sync;
}

void dts_sync_recorded(const dts_gradient_sync *sync, dts_block *block) {
    block->reduced_B = sync->total_B;
    block->reduced_tensors = sync->tensors;
    block->closed_buckets = sync->closed;
    block->open_B = sync->open_B;
}

dts_id dts_sync_finish(dts_gradient_sync *sync) {
    if (!sync->active || sync->sharded) {
        return sync->last_transfer;
    }
    dts_buckets_flush(sync);
    if (!sync->b->plan->job.stack->gradient_as_bucket_view && !sync->every_microbatch && sync->tensors > 0) {
        dts_id last = sync->last_transfer;
        for (int i = 0; i < sync->tensors; i++) {
            pass_tensor(sync, sync->total_B / sync->tensors, last, "copy_from_bucket");
            last = DTS_NO_ID; /* the stream keeps the rest in order */
        }
    }
    sync->flushed = 0; /* an asynchronous schedule begins anew after every update, a pipeline in every flush */
    sync->tensors = 0;
    sync->total_B = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        sync->buckets[set].limit_B = sync->b->plan->job.stack->ddp_first_bucket_B;
    }
    return sync->last_transfer;
}
