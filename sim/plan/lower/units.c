/* Parameters in units.
 *
 * FSDP [1], ZeRO-3 [2]: every layer is a unit whose parameters are gathered before its forward and its backward, freed
 * after each, and whose gradients are reduce-scattered. All share one communication stream, so the order of issue
 * decides: without prefetch the gather of the next unit in backward stands behind the reduce-scatter of this one.
 *
 * Linear layers as units of their own are in linear_units.c.
 *
 * Parameters that rest in host memory come to the GPU as this rank's shard, ahead of the all-gather (offload.c has the
 * copies).
 *
 * Gradients are reduced after every microbatch, or wait for the last one whole (parallelism.gradient_sync: step). Where
 * parameters are not resharded after forward, they stay whole as long, too [3]; torch.distributed.pipelining does both.
 *
 * [1] Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 2023, sections 3.3 and 4.
 * [2] Rajbhandari et al., "ZeRO", 2020, section 5.
 * [3] PyTorch 2.4, torch/distributed/fsdp/_runtime_utils.py, _should_free_in_backward: without synchronisation only
 *     strategies that reshard after forward free. torch/distributed/pipelining/stage.py, backward_maybe_with_nosync.
 * [4] PyTorch 2.0 and 2.1, torch/distributed/fsdp/_runtime_utils.py, _post_backward_hook and _cast_grad_to_param_dtype;
 *     flat_param.py, pre_unshard; torch/distributed/algorithms/_comm_hooks/default_hooks.py, reduce_scatter_hook.
 * [5] A profile of five steps of four microbatches of 41 units has 1,640 gathers of FSDP2: two for every unit and
 *     microbatch, the root's second one as it reshards after forward when it is told to; its repository is
 *     KempnerInstitute/KempnerForge @a7f8346, benchmarks/profiling. The rule is in
 *     torch/distributed/fsdp/_fully_shard/_fsdp_state.py, _lazy_init.
 * [6] PyTorch, torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce: sharded_param.grad is a view
 * of the reduction's output, made on a stream of its own; [4], _post_backward_hook, makes its shard the same way.
 * [7] NVIDIA/Megatron-LM @0056bc94, megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py,
 *     AllGatherPipeline.all_gather_params: the stream of gathers waits for the compute stream as it stands.
 */
#include <math.h>

#include "plan/lower/costs.h"
#include "plan/lower/data_parallel.h"

static int64_t chunk_parts(const dts_chunk *chunk) {
    return chunk->layers + chunk->embedding + chunk->head;
}

static dts_unit *root_of(dts_gradient_sync *sync, const dts_chunk *chunk) {
    return &sync->roots[chunk - sync->b->plan->chunks];
}

/* A layer's unit; that of embedding and head is the chunk's root unit where these are none of their own. */
static dts_unit *unit_of(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position) {
    bool embedding = chunk->embedding && position == 0;
    bool head = chunk->head && position == chunk_parts(chunk) - 1;
    const bool in_root = (embedding || head) && !dts_plan_ends_apart(sync->b->plan);
    return in_root ? root_of(sync, chunk) : &sync->units[chunk - sync->b->plan->chunks][position];
}

/* The part in whose backward a chunk's root unit has all of its gradients. */
static bool ends_root(const dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position) {
    bool everywhere = chunk->embedding || sync->linears != NULL; /* norms of every layer belong to it */
    return position == (everywhere ? 0 : chunk_parts(chunk) - 1);
}

static void unit_add(dts_unit *u, const dts_part_work *work) {
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        u->size.elements[set] += work->parameters[set];
        u->size.quantised[set] += work->quantised[set];
        u->size.frozen_B[set] += work->frozen_B[set];
    }
    u->tensors += work->tensors;
}

/* The units of a virtual stage; false: no memory. */
static bool add_chunk(dts_gradient_sync *sync, int64_t stage) {
    dts_builder *b = sync->b;
    const dts_chunk *chunk = &b->plan->chunks[stage];
    dts_unit *root = &sync->roots[stage];
    *root = (dts_unit){.root = true, .gather = DTS_NO_ID};
    if (chunk->head) {
        root->size.elements[DTS_SET_COMMON] += sync->stage->tied_copy;
        root->size.frozen_B[DTS_SET_COMMON] += sync->stage->frozen_tied_B;
    }
    sync->units[stage] = dts_arena_array(b->arena, (size_t)chunk_parts(chunk), sizeof **sync->units);
    if (sync->units[stage] == NULL) {
        return false;
    }
    for (int64_t i = 0; i < chunk_parts(chunk); i++) {
        sync->units[stage][i].gather = DTS_NO_ID;
    }
    if (sync->linears != NULL) {
        return true; /* linear_units.c fills it */
    }
    for (int64_t i = 0; i < chunk->layers; i++) {
        unit_add(&sync->units[stage][i + chunk->embedding], dts_layer_work(b, chunk->first_layer + i));
    }
    if (chunk->embedding) {
        unit_add(unit_of(sync, chunk, 0), &b->work[DTS_PART_EMBEDDING]);
    }
    if (chunk->head) {
        unit_add(unit_of(sync, chunk, chunk_parts(chunk) - 1), &b->work[DTS_PART_HEAD]);
    }
    return true;
}

bool dts_units_new(dts_gradient_sync *sync, int64_t first_chunk, int64_t last_chunk) {
    dts_builder *b = sync->b;
    const dts_plan *plan = b->plan;
    sync->units = dts_arena_array(b->arena, (size_t)plan->stages, sizeof *sync->units);
    sync->roots = dts_arena_array(b->arena, (size_t)plan->stages, sizeof *sync->roots);
    if (sync->units == NULL || sync->roots == NULL) {
        return false;
    }
    for (int64_t v = first_chunk; v <= last_chunk; v++) {
        if (!add_chunk(sync, dts_plan_stage(plan, sync->stage->index, v))) {
            return false;
        }
    }
    return true;
}

/* [set] */
static void shards_of(const dts_gradient_sync *sync, double *shards) {
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        shards[set] = (double)dts_plan_shards(sync->b->plan, (dts_parameter_set)set);
    }
}

static double gathered_B(const dts_gradient_sync *sync, const dts_unit *u, dts_parameter_set set) {
    return dts_plan_unit_B(sync->b->plan, u->size.elements[set], u->size.quantised[set], u->size.frozen_B[set]);
}

/* Bytes of a unit's shard where it rests in host memory. */
static double shard_B(const dts_gradient_sync *sync, const dts_unit *u, dts_parameter_set set) {
    const dts_plan *plan = sync->b->plan;
    return (u->size.elements[set] * plan->storage.parameter_B + u->size.frozen_B[set]) /
           (double)dts_plan_shards(plan, set);
}

static bool has_parameters(const dts_unit *u, dts_parameter_set set) {
    return u->size.elements[set] > 0 || u->size.frozen_B[set] > 0;
}

static bool is_empty(const dts_unit *u) {
    return !has_parameters(u, DTS_SET_COMMON) && !has_parameters(u, DTS_SET_EXPERTS);
}

/* The framework's work around a unit's collective, on the host. */
static void unit_hooks(dts_gradient_sync *sync, const dts_unit *u, bool backward) {
    const dts_plan *plan = sync->b->plan;
    const int kind = plan->job.parallelism->data_parallel;
    const double host_s = dts_unit_host_s(plan->job.stack, kind) + u->tensors * dts_adapter_host_s(plan, kind);
    if (host_s > 0 && !sync->stage->captured) {
        dts_build_host(sync->b, sync->stage, host_s, backward, DTS_NO_ID, "fsdp hooks");
    }
}

/* With parameters in host memory the own shard lies on the GPU, too, while a unit is whole. */
static double own_shard_B(const dts_gradient_sync *sync, const dts_unit *u) {
    double bytes = 0;
    for (int set = 0; set < DTS_SET_COUNT && dts_sync_offloads_parameters(sync); set++) {
        bytes += floor(shard_B(sync, u, (dts_parameter_set)set));
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
static dts_id make_set_whole(dts_gradient_sync *sync, const dts_unit *u, dts_parameter_set set, bool backward) {
    dts_builder *b = sync->b;
    const dts_plan *plan = b->plan;
    const double shards = (double)dts_plan_shards(plan, set);
    dts_id shard = DTS_NO_ID;
    if (dts_sync_offloads_parameters(sync)) {
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
    double all_shards[DTS_SET_COUNT];
    shards_of(sync, all_shards);
    const double quantise_B = dts_unit_quantise_B(plan, &u->size, all_shards, (int)set);
    if (quantise_B > 0) {
        dts_task_info cast = {.role = (uint8_t)(backward ? DTS_ROLE_BACKWARD : DTS_ROLE_FORWARD),
                              .microbatch = -1,
                              .layer = -1,
                              .name = "quantise_shard"};
        shard = dts_build_kernel(b, sync->stage, dts_gpu_memory_s(&plan->job.cluster->gpu, quantise_B), backward, shard,
                                 &cast);
    }
    if (shards > 1) {
        dts_task_info info = dts_sync_transfer_info(u->root ? "all-gather root" : "all-gather");
        dts_id whole = dts_build_collective(b, sync->stage, dts_sync_group(set), DTS_ALL_GATHER,
                                            gathered_B(sync, u, set), backward, shard, &info);
        if (plan->job.stack->fsdp_gathers_in_order) {
            dts_graph_depend(b->graph, whole, sync->stage->last_kernel); /* [7] */
        }
        return whole;
    }
    return shard;
}

/* Sets are gathered one after another, on one stream of the framework: the layer waits for the last of them. */
static void make_whole(dts_gradient_sync *sync, dts_unit *u, bool backward) {
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

/* Of a unit, what is gathered. */
static double whole_B(const dts_gradient_sync *sync, const dts_unit *u) {
    double shards[DTS_SET_COUNT];
    shards_of(sync, shards);
    return dts_unit_whole_B(sync->b->plan, &u->size, shards);
}

/* FSDP2: parameters leave the gathered buffer before the unit runs; both are there while they do. */
dts_id dts_unit_use(dts_gradient_sync *sync, dts_unit *u, bool backward) {
    const double bytes = whole_B(sync, u);
    if (u->copied || u->gather == DTS_NO_ID || !(bytes > 0) ||
        sync->b->plan->job.stack->fsdp_copies != DTS_FSDP_COPIES_TENSORS) {
        return u->gather;
    }
    u->copied = true;
    dts_id copy = copy_unit(sync, 2 * bytes, backward, u->gather, "copy_out parameters");
    dts_build_memory(sync->b, copy, DTS_AT_START, sync->stage, DTS_MEMORY_COMMUNICATION, bytes);
    dts_build_memory(sync->b, copy, DTS_AT_END, sync->stage, DTS_MEMORY_GATHERED, -bytes);
    return copy;
}

/* Before the gather, beside other kernels, as the gradients below. */
static void cast_shard(dts_gradient_sync *sync, const dts_unit *u, bool backward) {
    double shards[DTS_SET_COUNT];
    shards_of(sync, shards);
    const double bytes = dts_unit_cast_B(sync->b->plan, &u->size, shards);
    if (bytes > 0) {
        copy_unit(sync, bytes, backward, DTS_NO_ID, "cast shard");
    }
}

/* Gradients of a unit on their way into the reduction. FSDP1's kernels run beside backward on a stream of their own and
 * take the GPU from it, also those behind the reduction: they are counted where the unit's backward ends, and wait for
 * nothing. */
static dts_id hand_in_gradients(dts_gradient_sync *sync, const dts_unit *u, dts_id last) {
    double shards[DTS_SET_COUNT];
    shards_of(sync, shards);
    dts_unit_copy copies[DTS_UNIT_COPIES];
    const size_t count = dts_unit_hand_in_copies(sync->b->plan, &u->size, shards, u->reduced, copies);
    for (size_t i = 0; i < count; i++) {
        last = copy_unit(sync, copies[i].bytes, true, last, copies[i].name);
    }
    return last;
}

void dts_unit_gather(dts_gradient_sync *sync, dts_unit *u, bool backward) {
    if (u->gathered || is_empty(u)) {
        return;
    }
    dts_builder *b = sync->b;
    if (b->plan->job.stack->fsdp_limit_all_gathers && !sync->stage->captured) {
        dts_build_host(b, sync->stage, 0, backward, sync->recent_uses[0], "wait for a free unit");
    }
    unit_hooks(sync, u, backward);
    cast_shard(sync, u, backward);
    make_whole(sync, u, backward);
    /* The caching allocator counts in the order in which the host allocates and frees, however far it runs ahead of the
     * GPU: that is, behind what has been issued so far. */
    bool first = sync->stage->last_kernel == DTS_NO_ID;
    const dts_id issued = first ? sync->stage->last_host : sync->stage->last_kernel;
    const dts_memory_moment moment = first ? DTS_AT_START : DTS_AT_END;
    dts_build_memory(b, issued, moment, sync->stage, DTS_MEMORY_GATHERED, whole_B(sync, u));
    dts_build_memory(b, issued, moment, sync->stage, DTS_MEMORY_GATHERED, own_shard_B(sync, u));
}

void dts_unit_release(dts_gradient_sync *sync, dts_unit *u, dts_id last) {
    if (!u->gathered) {
        return;
    }
    const dts_memory_category category = u->copied ? DTS_MEMORY_COMMUNICATION : DTS_MEMORY_GATHERED;
    dts_build_memory(sync->b, last, DTS_AT_END, sync->stage, category, -whole_B(sync, u));
    dts_build_memory(sync->b, last, DTS_AT_END, sync->stage, DTS_MEMORY_GATHERED, -own_shard_B(sync, u));
    u->gathered = false;
    sync->recent_uses[0] = sync->recent_uses[1];
    sync->recent_uses[1] = last;
}

int64_t dts_units_ahead(const dts_gradient_sync *sync, bool backward) {
    const dts_job *job = &sync->b->plan->job;
    return backward ? dts_units_prefetched(job->stack, job->parallelism->data_parallel)
                    : (job->stack->fsdp_forward_prefetch ? 1 : 0);
}

/* The root unit is whole from its chunk's first part to the end of its own backward, in every microbatch [5]. */
static void gather_root(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool backward) {
    dts_unit *root = root_of(sync, chunk);
    const int64_t first = backward ? chunk_parts(chunk) - 1 : 0;
    root->done = root->done && position != first;
    if (!root->done) {
        dts_unit_gather(sync, root, backward);
    }
}

/* The units behind that at position. */
static void gather_ahead(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool backward) {
    int64_t left = dts_units_ahead(sync, backward);
    int64_t step = backward ? -1 : 1;
    for (int64_t next = position + step; left > 0 && next >= 0 && next < chunk_parts(chunk); next += step, left--) {
        dts_unit_gather(sync, unit_of(sync, chunk, next), backward);
    }
}

dts_id dts_sync_before_part(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool backward) {
    if (sync->updated != NULL) {
        return backward ? DTS_NO_ID : dts_updated_before_part(sync, chunk, position);
    }
    if (!dts_sync_gathers(sync)) {
        return DTS_NO_ID;
    }
    gather_root(sync, chunk, position, backward);
    dts_unit *u = unit_of(sync, chunk, position);
    dts_unit_gather(sync, u, backward);
    dts_unit_use(sync, root_of(sync, chunk), backward);
    gather_ahead(sync, chunk, position, backward);
    return dts_unit_use(sync, u, backward);
}

void dts_sync_after_forward(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, dts_id last) {
    if (!dts_sync_gathers(sync)) {
        return;
    }
    dts_unit *u = unit_of(sync, chunk, position);
    const bool ends = position == chunk_parts(chunk) - 1;
    if (dts_plan_reshards(sync->b->plan)) {
        if (!u->root) {
            dts_unit_release(sync, u, last);
        }
        if (ends && sync->b->plan->job.stack->fsdp_root_reshards) {
            dts_unit_release(sync, root_of(sync, chunk), last);
        }
    }
}

/* What a reduction leaves behind: the shard's gradients, to which those of later microbatches are added, until the step
 * is done [6]. */
static void make_shard(dts_gradient_sync *sync, const dts_unit *u, dts_id last) {
    const dts_plan *plan = sync->b->plan;
    double bytes = 0;
    for (int set = 0; set < DTS_SET_COUNT && !u->reduced && dts_plan_gradients_come(plan); set++) {
        bytes += u->size.elements[set] / (double)dts_plan_shards(plan, (dts_parameter_set)set) *
                 dts_plan_stored_gradient_B(plan, (dts_parameter_set)set);
    }
    dts_build_memory(sync->b, last, DTS_AT_END, sync->stage, DTS_MEMORY_SHARDS, floor(bytes));
    sync->stage->shards_B += floor(bytes);
}

/* The compute stream goes on when there is room for the unit's gradients; returns its last task. */
static dts_id wait_for_room(dts_gradient_sync *sync, const dts_unit *u, dts_id last) {
    dts_builder *b = sync->b;
    const dts_task_info info = {.role = DTS_ROLE_BACKWARD,
                                .microbatch = -1,
                                .layer = -1,
                                .device = sync->stage->device,
                                .name = "wait for gradients to leave"};
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        const double elements = u->size.elements[set];
        const dts_id room = elements > 0 ? dts_sync_room(sync, (dts_parameter_set)set, elements) : DTS_NO_ID;
        if (room != DTS_NO_ID) {
            last = dts_build_task(b, sync->stage->compute, 0, &info);
            dts_graph_depend(b->graph, last, room);
            sync->stage->last_kernel = last;
        }
    }
    return last;
}

static dts_id reduce_unit(dts_gradient_sync *sync, dts_unit *u, dts_id last) {
    dts_builder *b = sync->b;
    if (is_empty(u)) {
        return last;
    }
    last = wait_for_room(sync, u, last);
    unit_hooks(sync, u, true);
    last = hand_in_gradients(sync, u, last);
    make_shard(sync, u, last);
    u->reduced = true;
    dts_task_info info = dts_sync_transfer_info("reduce-scatter");
    for (int set = DTS_SET_COUNT; set-- > 0;) {
        double gradient_B = u->size.elements[set] * b->plan->storage.reduce_B;
        if (gradient_B > 0) {
            dts_block_allocate(b, last, sync->stage, DTS_MEMORY_COMMUNICATION, gradient_B);
            dts_sync_reduce(sync, (dts_parameter_set)set, u->size.elements[set], gradient_B, last, &info);
            dts_build_memory(b, last, DTS_AT_END, sync->stage, DTS_MEMORY_COMMUNICATION, -gradient_B);
        }
    }
    return last;
}

/* FSDP's no_sync: whole gradients, in the format of their reduction, wait for the last microbatch [3]. */
static void sum_gradients(dts_gradient_sync *sync, dts_unit *u, bool last_microbatch, dts_id last) {
    double bytes = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        bytes += floor(u->size.elements[set] * sync->b->plan->storage.reduce_B);
    }
    if (u->summed == last_microbatch) {
        dts_build_memory(sync->b, last, DTS_AT_END, sync->stage, DTS_MEMORY_GRADIENTS,
                         last_microbatch ? -bytes : bytes);
        u->summed = !last_microbatch;
    }
}

dts_id dts_unit_hand_in(dts_gradient_sync *sync, dts_unit *u, bool last_microbatch, dts_id last) {
    const bool reduces = !sync->defers || last_microbatch;
    const bool stays = sync->defers && !last_microbatch && !dts_plan_reshards(sync->b->plan);
    if (sync->defers) {
        sum_gradients(sync, u, last_microbatch, last);
    }
    if (reduces) {
        last = reduce_unit(sync, u, last);
    }
    if (!stays) {
        dts_unit_release(sync, u, last);
    }
    return last;
}

void dts_build_end_of_inference(dts_builder *b, dts_gradient_sync **syncs) {
    for (int64_t p = 0; p < b->stage_count; p++) {
        for (int64_t stage = 0; dts_sync_gathers(syncs[p]) && stage < b->plan->stages; stage++) {
            dts_unit_release(syncs[p], &syncs[p]->roots[stage], b->stages[p].last_kernel);
        }
    }
}

void dts_units_after_backward(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, bool last_microbatch,
                              dts_id last) {
    dts_unit *u = unit_of(sync, chunk, position);
    dts_unit *root = root_of(sync, chunk);
    if (u != root) {
        last = dts_unit_hand_in(sync, u, last_microbatch, last);
    }
    if (ends_root(sync, chunk, position)) {
        dts_unit_hand_in(sync, root, last_microbatch, last);
        root->done = true;
    }
}
