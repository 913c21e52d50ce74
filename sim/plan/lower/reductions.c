/* Keeping the replicas in step: what buckets (buckets.c: DDP, ZeRO-1 and 2) and units (units.c: FSDP, ZeRO-3) share,
 * the reduction of gradients and their way to host memory.
 *
 * Hybrid sharding [1] shards inside groups; what a rank has reduced there is then all-reduced with the ranks that hold
 * the same shard. Gradients that rest in host memory leave as the reduced shard (offload.c has the copies).
 *
 * Gradients that are kept whole are reduced in place (DDP, ZeRO-1). Others lie in a buffer until they are reduced, and
 * out where they leave. Two reductions of a set have room at least. A kernel that makes gradients for which there is no
 * room waits for the oldest reduction. The room:
 *
 * - ZeRO-2: DTS_BUCKET_ROOM elements. DeepSpeed has two buckets of reduce_bucket_size, 5e8 elements, and the compute
 *   stream waits for the reduction before, with each that begins [2]. Megatron-FSDP has
 *   suggested_communication_unit_size, 1e9, in its queue [3].
 * - Units that leave: two. Copies to host memory run on the stream of the reductions, and the compute stream waits for
 *   the reduction before [4]; ZeRO-3's host waits for the last but two [5].
 * - Units that stay: gathers stand behind the reductions on one stream, so that no more than these are under way. What
 *   is reduced counts where the unit's backward ends (units.c).
 *
 * [1] Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 2023, section 3.2.
 * [2] deepspeedai/DeepSpeed @02aa38c3, deepspeed/runtime/zero/stage_1_and_2.py: IPGBucket, average_tensor; config.py.
 * [3] NVIDIA/Megatron-LM @0056bc94, megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py,
 *     GradReducePipeline.wait_for_previous_grad_reduce; megatron_fsdp.py.
 * [4] pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, post_backward;
 *     _fsdp_collectives.py, foreach_reduce.
 * [5] deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage3.py: max_param_reduce_events.
 */
#include <math.h>

#include "base/array.h"
#include "plan/lower/data_parallel.h"

/* A rank needs the sum of its shard only; DeepSpeed's bf16 optimizer gets it of all gradients nevertheless, and so does
 * an optimizer of whole tensors (with sharding inside groups a ring through all: as much through the network as a
 * reduce-scatter inside the groups and an all-reduce between them). */
static dts_collective reduction_of(const dts_plan *plan) {
    bool whole = plan->job.parallelism->data_parallel == DTS_DP_ZERO1 && plan->job.stack->ddp_whole_fp32 &&
                 plan->storage.gradient_B > plan->storage.parameter_B;
    whole |= dts_plan_owns_tensors(plan) && plan->shards == plan->replicas;
    return dts_plan_shards_optimizer(plan) && !whole ? DTS_REDUCE_SCATTER : DTS_ALL_REDUCE;
}

dts_gradient_sync *dts_sync_alloc(dts_builder *b, dts_stage *stage) {
    dts_gradient_sync *sync = dts_arena_alloc(b->arena, sizeof *sync);
    if (sync == NULL) {
        return NULL;
    }
    int kind = b->plan->job.parallelism->data_parallel;
    const dts_offload *offload = b->plan->job.offload;
    const bool one_process = kind == DTS_DP_SINGLE_PROCESS;
    const bool offloads = offload->parameters != DTS_OFFLOAD_NONE || offload->gradients != DTS_OFFLOAD_NONE;
    const bool common = offloads || (dts_plan_replicates_set(b->plan, DTS_SET_COMMON) && !one_process);
    const bool experts = offloads || (dts_plan_replicates_set(b->plan, DTS_SET_EXPERTS) && !one_process);
    const dts_bucket empty = {.limit_B = b->plan->job.stack->ddp_first_bucket_B, .ready = DTS_NO_ID};
    *sync = (dts_gradient_sync){.b = b,
                                .stage = stage,
                                .active = common || experts,
                                .takes = {[DTS_SET_COMMON] = common, [DTS_SET_EXPERTS] = experts},
                                .sharded = dts_plan_shards_parameters(b->plan),
                                .every_microbatch = kind == DTS_DP_ZERO2,
                                .repeats = dts_plan_repeats_reduction(b->plan),
                                .defers = dts_plan_defers_reduction(b->plan),
                                .reduction = reduction_of(b->plan),
                                .buckets = {empty, empty},
                                .last_transfer = DTS_NO_ID,
                                .last_gather = DTS_NO_ID,
                                .recent_uses = {DTS_NO_ID, DTS_NO_ID}};
    return sync;
}

dts_group_kind dts_sync_group(dts_parameter_set set) {
    return set == DTS_SET_EXPERTS ? DTS_GROUP_EXPERT_DATA : DTS_GROUP_DATA;
}

dts_task_info dts_sync_transfer_info(const char *name) {
    return (dts_task_info){.role = DTS_ROLE_COMMUNICATION, .microbatch = -1, .layer = -1, .name = name};
}

bool dts_sync_offloads_parameters(const dts_gradient_sync *sync) {
    return sync->b->plan->job.offload->parameters != DTS_OFFLOAD_NONE;
}

static bool offloads_gradients(const dts_gradient_sync *sync) {
    return sync->b->plan->job.offload->gradients != DTS_OFFLOAD_NONE;
}

/* Where gradients have a buffer of limited size. */
static void note_reduction(dts_gradient_sync *sync, dts_parameter_set set, double elements, dts_id done) {
    dts_reductions *all = &sync->under_way[set];
    if (!sync->every_microbatch && !(sync->sharded && offloads_gradients(sync))) {
        return;
    }
    dts_reduction *items = dts_arena_room(sync->b->arena, all->items, &all->capacity, all->count + 1, sizeof *items);
    if (items == NULL) {
        sync->b->failed = true;
        return;
    }
    all->items = items;
    items[all->count++] = (dts_reduction){.elements = elements, .done = done};
    all->elements += elements;
}

void dts_sync_reduce(dts_gradient_sync *sync, dts_parameter_set set, double elements, double wire_B, dts_id made,
                     const dts_task_info *info) {
    dts_builder *b = sync->b;
    const dts_plan *plan = b->plan;
    const int64_t shards = dts_plan_shards(plan, set);
    double shard = sync->reduction == DTS_REDUCE_SCATTER ? (double)shards : 1;
    dts_id done = made;
    sync->stage->copy = sync->copy;
    if (shards > 1) {
        done = dts_build_collective(b, sync->stage, dts_sync_group(set), sync->reduction, wire_B, true, made, info);
    }
    if (plan->shards < plan->replicas) {
        dts_task_info between = dts_sync_transfer_info("all-reduce between groups");
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
    sync->stage->copy = 0;
    sync->last_transfer = done;
    note_reduction(sync, set, elements, done);
}

dts_id dts_sync_room(dts_gradient_sync *sync, dts_parameter_set set, double elements) {
    dts_reductions *all = &sync->under_way[set];
    const double room = sync->every_microbatch ? DTS_BUCKET_ROOM : 0;
    dts_id over = DTS_NO_ID;
    while (all->count - all->first > 1 && all->elements + elements > room) {
        const dts_reduction *oldest = &all->items[all->first++];
        all->elements -= oldest->elements;
        over = oldest->done;
    }
    return over;
}

bool dts_sync_takes_gradients(const dts_gradient_sync *sync) {
    return (sync->active && (sync->every_microbatch || (sync->sharded && !sync->defers))) ||
           dts_plan_single_process(sync->b->plan);
}

void dts_sync_reduced(dts_gradient_sync *sync, dts_id task) {
    sync->last_transfer = task;
}

bool dts_sync_gathers(const dts_gradient_sync *sync) {
    return sync->active && sync->sharded;
}
