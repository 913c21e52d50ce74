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
 * has a flat buffer of the rank's shard [4], stage 2 makes room for all of a rank's with the first of them [5].
 * With expert parallelism the experts of a rank are sharded among its expert-data group only.
 * 8- and 4-bit copies of the weights of products live beside the wide ones, or instead of them (plan.c).
 * What is offloaded lives in host memory, or on NVMe, instead, once for each GPU. A step on the CPU needs its own copy
 * of the parameters (they stay on the GPU as well unless they rest in host memory) and a place for the gradients to
 * arrive.
 *
 * [1] Rajbhandari et al., "ZeRO", 2020, figure 1.
 * [2] NVIDIA/TransformerEngine, transformer_engine/pytorch/module/base.py, get_dummy_wgrad.
 * [3] NVIDIA/Megatron-LM, megatron/model/transformer.py, CoreAttention: get_global_memory_buffer.
 * [4] deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage3.py: grad_partitions_flat_buffer.
 * [5] deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py: copy_grads_in_partition, grads_in_partition. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "plan/lower/walk.h"

enum { SHAPES_MOST = 32 }; /* of weights; a layer has a dozen products */

/* What is on a GPU of the first row is told, term by term, to those who explain it. */
static void tell(dts_builder *b, const dts_stage *stage, const dts_lasting *term) {
    dts_lasting_terms *all = b->lasting == NULL || stage->row > 0 ? NULL : &b->lasting[stage->index];
    if (all == NULL || term->bytes == 0) {
        return;
    }
    dts_lasting *items = dts_arena_room(b->arena, all->items, &all->capacity, all->count + 1, sizeof *items);
    if (items == NULL) {
        b->failed = true;
        return;
    }
    all->items = items;
    all->items[all->count++] = *term;
}

/* Bytes of one rank: on its GPU (DTS_OFFLOAD_NONE), in the memory of its host, or on the host's drives. term: what they
 * are, without the bytes. */
static void add_term(dts_builder *b, dts_stage *stage, dts_lasting term, double bytes, dts_offload_target rests) {
    if (!(bytes <= DTS_MOST_BYTES)) {
        b->too_large = true;
        return;
    }
    int64_t whole = (int64_t)bytes;
    if (rests == DTS_OFFLOAD_NONE) {
        dts_graph_memory_static(b->graph, stage->device, dts_brief_category(b, (dts_memory_category)term.category),
                                whole);
        stage->static_B += whole;
        term.bytes = whole;
        tell(b, stage, &term);
    } else {
        dts_network_links *node = &b->nodes[stage->node];
        bool drives = rests == DTS_OFFLOAD_NVME;
        whole *= dts_build_sharers(b);
        dts_graph_memory_static(b->graph, drives ? node->nvme : node->host, term.category, whole);
        *(drives ? &node->nvme_static_B : &node->static_B) += whole;
    }
}

/* Of no parameters. */
static void add(dts_builder *b, dts_stage *stage, dts_memory_category category, const char *name, double bytes,
                dts_offload_target rests) {
    add_term(b, stage, (dts_lasting){.category = (uint8_t)category, .name = name, .ranks = 1}, bytes, rests);
}

/* Where the weight-gradient product adds to the stored gradient, autograd still wants a tensor: Transformer Engine
 * keeps an empty one of each shape of the layers' weights for good [2]. */
typedef struct shapes {
    int64_t n[SHAPES_MOST], k[SHAPES_MOST];
    size_t count;
} shapes;

static void add_shapes(shapes *all, const dts_operators *operators) {
    for (size_t i = 0; i < operators->count; i++) {
        const dts_operator *o = &operators->items[i];
        bool known = !o->weight || o->constant || all->count == SHAPES_MOST;
        for (size_t s = 0; s < all->count && !known; s++) {
            known = all->n[s] == o->n && all->k[s] == o->k;
        }
        if (!known) {
            all->n[all->count] = o->n;
            all->k[all->count++] = o->k;
        }
    }
}

static double stand_ins_B(const dts_builder *b) {
    const dts_model *model = b->plan->job.model;
    shapes all = {.count = 0};
    if (dts_plan_accumulates_by_kernel(b->plan)) {
        return 0;
    }
    double counts[DTS_PART_COUNT];
    dts_model_count_parts(model, counts);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        if (counts[part] > 0 && dts_part_is_layer((dts_part)part)) {
            add_shapes(&all, &b->work[part].operators);
        }
    }
    double elements = 0;
    for (size_t s = 0; s < all.count; s++) {
        elements += (double)all.n[s] * (double)all.k[s];
    }
    return elements * b->plan->storage.fresh_gradient_B;
}

/* A buffer of the size of a layer's attention scores, which all layers hand to the product that makes them: it ignores
 * what is in it [3]. */
static double scores_buffer_B(const dts_builder *b) {
    double bytes = 0;
    for (int part = 0; part < DTS_PART_COUNT && b->plan->job.stack->scores_buffer; part++) {
        const dts_operators *operators = &b->work[part].operators;
        for (size_t i = 0; i < operators->count; i++) {
            const dts_operator *o = &operators->items[i];
            bytes = strcmp(o->name, "attention_scores") == 0 ? fmax(bytes, o->output_B) : bytes;
        }
    }
    return bytes;
}

/* What a step on the CPU needs in host memory of what is not there anyway. */
static void add_cpu_copies(dts_builder *b, dts_stage *stage, double parameters) {
    const dts_offload *offload = b->plan->job.offload;
    const dts_storage *storage = &b->plan->storage;
    if (offload->optimizer != DTS_OFFLOAD_NONE && offload->parameters == DTS_OFFLOAD_NONE) {
        add(b, stage, DTS_MEMORY_PARAMETERS, NULL, parameters * storage->parameter_B,
            (dts_offload_target)offload->optimizer);
    }
    if (offload->optimizer != DTS_OFFLOAD_NONE && offload->gradients == DTS_OFFLOAD_NONE) {
        add(b, stage, DTS_MEMORY_GRADIENTS, NULL, parameters * storage->gradient_B, DTS_OFFLOAD_CPU);
    }
}

/* Of a set: parameters and optimizer states. */
static void add_states(dts_builder *b, dts_stage *stage, dts_parameter_set set) {
    const dts_plan *plan = b->plan;
    const dts_storage *storage = &plan->storage;
    const dts_offload *offload = plan->job.offload;
    const dts_held *held = &stage->held;
    const double parameters = held->parameters[set];
    const double ranks = dts_plan_shards_parameters(plan) ? (double)dts_plan_shards(plan, set) : 1;
    const double optimizer_share = dts_optimizer_share(b, stage, set);
    dts_lasting term = {.category = DTS_MEMORY_PARAMETERS, .set = (uint8_t)set, .ranks = ranks};
    term.elements = held->frozen[set];
    term.name = "frozen parameters";
    add_term(b, stage, term, held->frozen_B[set] * (1 / ranks), (dts_offload_target)offload->parameters);
    term.elements = parameters;
    term.name = NULL;
    add_term(b, stage, term, dts_plan_weights_B(plan, parameters, held->quantised[set]) * (1 / ranks),
             (dts_offload_target)offload->parameters);
    term.category = DTS_MEMORY_OPTIMIZER;
    /* then these are the fullest rank's own tensors, or matrices */
    const bool owns = dts_plan_owns_tensors(plan) || dts_plan_keeps_matrices(plan);
    term.ranks = dts_plan_shards_optimizer(plan) && !owns ? (double)dts_plan_shards(plan, set) : 1;
    term.elements = owns ? parameters * optimizer_share : parameters;
    add_term(b, stage, term, parameters * storage->optimizer_B * optimizer_share,
             (dts_offload_target)offload->optimizer);
    const double statistics_share = dts_plan_keeps_matrices(plan)
                                        ? 1 / (double)dts_plan_shards(plan, set) /* of none of the matrices */
                                        : optimizer_share;
    if (set == DTS_SET_COMMON && !dts_plan_infers(plan)) {
        add(b, stage, DTS_MEMORY_OPTIMIZER, "statistics", held->statistics * DTS_FP32_B * statistics_share,
            (dts_offload_target)offload->optimizer);
    }
    add_cpu_copies(b, stage, parameters * optimizer_share);
}

/* Of a set: gradients, and what they are reduced through. */
static void add_gradients(dts_builder *b, dts_stage *stage, dts_parameter_set set) {
    const dts_plan *plan = b->plan;
    const dts_storage *storage = &plan->storage;
    const double parameters = stage->held.parameters[set];
    dts_lasting term = {.category = DTS_MEMORY_GRADIENTS, .set = (uint8_t)set, .elements = parameters};
    term.ranks = dts_plan_shards_gradients(plan) ? (double)dts_plan_shards(plan, set) : 1;
    const double bytes = parameters * dts_plan_stored_gradient_B(plan, set) * (1 / term.ranks);
    if (dts_plan_gradients_come(plan)) { /* units.c takes them */
        term.category = DTS_MEMORY_SHARDS;
        term.bytes = (int64_t)bytes;
        tell(b, stage, &term);
        term.category = DTS_MEMORY_GRADIENTS;
    } else {
        add_term(b, stage, term, bytes, (dts_offload_target)plan->job.offload->gradients);
    }
    term.ranks = 1;
    if (plan->job.stack->keeps_half_gradients && storage->gradient_B > storage->fresh_gradient_B) {
        term.name = "half gradients beside wide ones";
        add_term(b, stage, term, parameters * storage->fresh_gradient_B, DTS_OFFLOAD_NONE);
    }
    if (dts_plan_replicates_set(plan, set) && !dts_plan_infers(plan)) {
        add(b, stage, DTS_MEMORY_COMMUNICATION, "a bucket that gradients pass through",
            fmin(plan->job.stack->ddp_staging_B, parameters * storage->reduce_B), DTS_OFFLOAD_NONE);
    }
    if (dts_plan_replicates_set(plan, set) && !dts_plan_shards_gradients(plan) && !dts_plan_single_process(plan) &&
        !plan->job.stack->gradient_as_bucket_view) {
        term.name = NULL;
        term.category = DTS_MEMORY_COMMUNICATION;
        add_term(b, stage, term, parameters * storage->reduce_B, DTS_OFFLOAD_NONE);
    }
}

/* Pinned buffers between drives and GPU: one unit of parameters, or one chunk of the step with all it reads and writes,
 * for each that may be under way. */
static void add_buffers(dts_builder *b, dts_stage *stage) {
    const dts_plan *plan = b->plan;
    const dts_offload *offload = plan->job.offload;
    double buffers = (double)offload->prefetch + 1;
    double largest = 0, largest_B = 0; /* trained elements, and bytes with those that are not */
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        const dts_part_work *work = &b->work[part];
        double elements = 0, bytes = 0;
        for (int set = 0; set < DTS_SET_COUNT; set++) {
            double shards = (double)dts_plan_shards(plan, (dts_parameter_set)set);
            elements += work->parameters[set] / shards;
            bytes += (work->parameters[set] * plan->storage.parameter_B + work->frozen_B[set]) / shards;
        }
        largest = fmax(largest, elements);
        largest_B = fmax(largest_B, bytes);
    }
    if (offload->parameters == DTS_OFFLOAD_NVME) {
        add(b, stage, DTS_MEMORY_PARAMETERS, NULL, buffers * largest_B, DTS_OFFLOAD_CPU);
    }
    if (offload->optimizer == DTS_OFFLOAD_NVME) {
        double element_B = plan->storage.optimizer_B + plan->storage.gradient_B + plan->storage.parameter_B;
        add(b, stage, DTS_MEMORY_OPTIMIZER, NULL, buffers * largest * element_B, DTS_OFFLOAD_CPU);
    }
}

void dts_build_static_memory(dts_builder *b) {
    for (int64_t p = 0; p < b->plan->pipeline; p++) {
        dts_stage *stage = &b->stages[p];
        for (int set = 0; set < DTS_SET_COUNT; set++) {
            add_states(b, stage, (dts_parameter_set)set);
            add_gradients(b, stage, (dts_parameter_set)set);
        }
        add(b, stage, DTS_MEMORY_GRADIENTS, "stand-ins for gradients of weights", stand_ins_B(b), DTS_OFFLOAD_NONE);
        add(b, stage, DTS_MEMORY_ACTIVATIONS, "keys and values", dts_kv_cache_B(b->plan, stage), DTS_OFFLOAD_NONE);
        add(b, stage, DTS_MEMORY_TEMPORARY, "attention scores", scores_buffer_B(b), DTS_OFFLOAD_NONE);
        add(b, stage, DTS_MEMORY_TEMPORARY, "pool of CUDA graphs", dts_graph_pool_B(b->plan, b->work, b->boundary_B),
            DTS_OFFLOAD_NONE);
        add(b, stage, DTS_MEMORY_COMMUNICATION, "buffers of microbatches",
            dts_microbatch_buffers_B(b->plan, p, b->boundary_B), DTS_OFFLOAD_NONE);
        add_buffers(b, stage);
    }
}
