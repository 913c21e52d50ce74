/* Memory that lives through the whole iteration: states of parameters (states.c), and what there is beside them.
 *
 * [1] NVIDIA/TransformerEngine, transformer_engine/pytorch/module/base.py, get_dummy_wgrad.
 * [2] NVIDIA/Megatron-LM, megatron/model/transformer.py, CoreAttention: get_global_memory_buffer. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "plan/lower/chunk_pass.h"
#include "plan/lower/states.h"

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
 * keeps an empty one of each shape of the layers' weights for good [1]. */
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
 * what is in it [2]. */
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

static dts_keeping keeping_of(const dts_plan *plan) {
    const dts_offload *offload = plan->job.offload;
    dts_keeping how = {.plan = plan,
                       .data_parallel = plan->job.parallelism->data_parallel,
                       .parameters = offload->parameters,
                       .gradients = offload->gradients,
                       .optimizer = offload->optimizer};
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        how.shards[set] = (double)dts_plan_shards(plan, (dts_parameter_set)set);
    }
    return how;
}

static void add_states(dts_builder *b, dts_stage *stage, dts_parameter_set set) {
    const dts_plan *plan = b->plan;
    const dts_held *held = &stage->held;
    const dts_keeping how = keeping_of(plan);
    const double share = dts_optimizer_share(b, stage, set);
    const bool matrices = dts_plan_keeps_matrices(plan);
    const dts_set_states states = {
        .parameters = held->parameters[set],
        .quantised = held->quantised[set],
        .frozen = held->frozen[set],
        .frozen_B = held->frozen_B[set],
        .statistics = held->statistics,
        .optimizer_share = share,
        .statistics_share = matrices ? 1 / how.shards[set] : share, /* of none of the matrices */
        .owns = dts_plan_owns_tensors(plan) || matrices};
    dts_state all[DTS_STATES_MOST];
    const size_t count = dts_states_of(&how, set, &states, all);
    for (size_t i = 0; i < count; i++) {
        dts_state *s = &all[i];
        if (s->term.category == DTS_MEMORY_SHARDS) { /* units.c takes them */
            s->term.bytes = (int64_t)s->bytes;
            tell(b, stage, &s->term);
        } else {
            add_term(b, stage, s->term, s->bytes, s->rests);
        }
    }
}

/* One unit of parameters, or one chunk of the step with all it reads and writes, for each that may be under way. */
static void add_buffers(dts_builder *b, dts_stage *stage) {
    const dts_keeping how = keeping_of(b->plan);
    dts_drive_unit largest = {0};
    double parameters_B = 0, step_B = 0;
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        dts_drive_unit_grow(&how, b->work[part].parameters, b->work[part].frozen_B, &largest);
    }
    dts_drive_buffers(&how, &largest, &parameters_B, &step_B);
    if (how.parameters == DTS_OFFLOAD_NVME) {
        add(b, stage, DTS_MEMORY_PARAMETERS, NULL, parameters_B, DTS_OFFLOAD_CPU);
    }
    if (how.optimizer == DTS_OFFLOAD_NVME) {
        add(b, stage, DTS_MEMORY_OPTIMIZER, NULL, step_B, DTS_OFFLOAD_CPU);
    }
}

void dts_build_static_memory(dts_builder *b) {
    for (int64_t p = 0; p < b->plan->pipeline; p++) {
        dts_stage *stage = &b->stages[p];
        for (int set = 0; set < DTS_SET_COUNT; set++) {
            add_states(b, stage, (dts_parameter_set)set);
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
