/* Memory that lives through the whole iteration, per parameter of the stage (bytes per element from plan/storage.c):
 *   parameters, gradients, optimizer states     in full, or 1/data of what the data parallelism shards [1]
 *   DDP's buckets                                a second copy of the gradients, unless gradients are views of them
 *
 *   technique      parameters  gradients  optimizer
 *   ddp            1           1          1
 *   zero1          1           1          1/data, or the fullest rank's tensors (owners.c)
 *   zero2          1           1/data     1/data     and the buckets under way
 *   zero3, fsdp    1/shards    1/shards   1/shards   shards: data, or the shard group of hybrid sharding
 * FSDP's gradients are not there until they are reduced where zero_grad drops them (units.c). DeepSpeed's stay: stage 3
 * has a flat buffer of the rank's shard [2], stage 2 makes room for all of a rank's with the first of them [3].
 * With expert parallelism the experts of a rank are sharded among its expert-data group only.
 * 8- and 4-bit copies of the weights of products live beside the wide ones, or instead of them (plan.c).
 * What is offloaded lives in host memory, or on NVMe, instead, once for each GPU. A step on the CPU needs its own copy
 * of the parameters (they stay on the GPU as well unless they rest in host memory) and a place for the gradients to
 * arrive.
 *
 * [1] Rajbhandari et al., "ZeRO", 2020, figure 1.
 * [2] deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage3.py: grad_partitions_flat_buffer.
 * [3] deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py: copy_grads_in_partition, grads_in_partition. */
#include "plan/lower/states.h"

#include <math.h>

typedef struct listing {
    const dts_keeping *how;
    uint8_t set;
    dts_state *out;
    size_t count;
} listing;

/* name, NULL: the trained parameters themselves; elements, 0: bytes that are not counted by parameters. */
static void add(listing *l, dts_memory_category category, const char *name, double elements, double ranks, double bytes,
                int rests) {
    l->out[l->count++] = (dts_state){
        .term = {.category = (uint8_t)category, .set = l->set, .name = name, .elements = elements, .ranks = ranks},
        .bytes = bytes,
        .rests = (dts_offload_target)rests};
}

/* What a step on the CPU needs of what is not there anyway. */
static void add_cpu_copies(listing *l, double elements) {
    const dts_keeping *how = l->how;
    const dts_storage *storage = &how->plan->storage;
    if (how->optimizer != DTS_OFFLOAD_NONE && how->parameters == DTS_OFFLOAD_NONE) {
        add(l, DTS_MEMORY_PARAMETERS, NULL, 0, 1, elements * storage->parameter_B, how->optimizer);
    }
    if (how->optimizer != DTS_OFFLOAD_NONE && how->gradients == DTS_OFFLOAD_NONE) {
        add(l, DTS_MEMORY_GRADIENTS, NULL, 0, 1, elements * storage->gradient_B, DTS_OFFLOAD_CPU);
    }
}

static void add_states(listing *l, const dts_set_states *held) {
    const dts_keeping *how = l->how;
    const dts_plan *plan = how->plan;
    const double parameters = held->parameters, share = held->optimizer_share;
    const double ranks = dts_shards_parameters(how->data_parallel) ? how->shards[l->set] : 1;
    const bool sharded = dts_shards_optimizer(how->data_parallel) && !held->owns;
    add(l, DTS_MEMORY_PARAMETERS, "frozen parameters", held->frozen, ranks, held->frozen_B * (1 / ranks),
        how->parameters);
    add(l, DTS_MEMORY_PARAMETERS, NULL, parameters, ranks,
        dts_plan_weights_B(plan, parameters, held->quantised) * (1 / ranks), how->parameters);
    add(l, DTS_MEMORY_OPTIMIZER, NULL, held->owns ? parameters * share : parameters, sharded ? how->shards[l->set] : 1,
        parameters * plan->storage.optimizer_B * share, how->optimizer);
    if (l->set == DTS_SET_COMMON && !dts_plan_infers(plan)) {
        add(l, DTS_MEMORY_OPTIMIZER, "statistics", 0, 1, held->statistics * DTS_FP32_B * held->statistics_share,
            how->optimizer);
    }
    add_cpu_copies(l, parameters * share);
}

/* Gradients, and the buffers that they are reduced through. */
static void add_gradients(listing *l, const dts_set_states *held) {
    const dts_keeping *how = l->how;
    const dts_plan *plan = how->plan;
    const dts_storage *storage = &plan->storage;
    const dts_parameter_set set = (dts_parameter_set)l->set;
    const bool sharded = dts_shards_gradients(how->data_parallel);
    const bool come = dts_plan_gradients_come(plan) && how->gradients == DTS_OFFLOAD_NONE;
    const bool single = how->data_parallel == DTS_DP_SINGLE_PROCESS && plan->data > 1;
    const double ranks = sharded ? how->shards[set] : 1, parameters = held->parameters;
    add(l, come ? DTS_MEMORY_SHARDS : DTS_MEMORY_GRADIENTS, NULL, parameters, ranks,
        parameters * dts_plan_stored_gradient_B(plan, set) * (1 / ranks), how->gradients);
    if (plan->job.stack->keeps_half_gradients && storage->gradient_B > storage->fresh_gradient_B) {
        add(l, DTS_MEMORY_GRADIENTS, "half gradients beside wide ones", parameters, 1,
            parameters * storage->fresh_gradient_B, DTS_OFFLOAD_NONE);
    }
    if (dts_plan_replicates_set(plan, set) && !dts_plan_infers(plan)) {
        add(l, DTS_MEMORY_COMMUNICATION, "a bucket that gradients pass through", 0, 1,
            fmin(plan->job.stack->ddp_staging_B, parameters * storage->reduce_B), DTS_OFFLOAD_NONE);
    }
    if (dts_plan_replicates_set(plan, set) && !sharded && !single && !plan->job.stack->gradient_as_bucket_view) {
        add(l, DTS_MEMORY_COMMUNICATION, NULL, parameters, 1, parameters * storage->reduce_B, DTS_OFFLOAD_NONE);
    }
}

size_t dts_states_of(const dts_keeping *how, dts_parameter_set set, const dts_set_states *held, dts_state *out) {
    listing l = {.how = how, .set = (uint8_t)set, .out = out};
    add_states(&l, held);
    add_gradients(&l, held);
    return l.count;
}

void dts_drive_unit_grow(const dts_keeping *how, const double *parameters, const double *frozen_B,
                         dts_drive_unit *largest) {
    double elements = 0, bytes = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        elements += parameters[set] / how->shards[set];
        bytes += (parameters[set] * how->plan->storage.parameter_B + frozen_B[set]) / how->shards[set];
    }
    largest->elements = fmax(largest->elements, elements);
    largest->bytes = fmax(largest->bytes, bytes);
}

void dts_drive_buffers(const dts_keeping *how, const dts_drive_unit *largest, double *parameters_B, double *step_B) {
    const dts_storage *storage = &how->plan->storage;
    const double buffers = (double)how->plan->job.offload->prefetch + 1;
    const double element_B = storage->optimizer_B + storage->gradient_B + storage->parameter_B;
    *parameters_B = how->parameters == DTS_OFFLOAD_NVME ? buffers * largest->bytes : 0;
    *step_B = how->optimizer == DTS_OFFLOAD_NVME ? buffers * largest->elements * element_B : 0;
}
