/* What lives the whole iteration, tensor by tensor, in the order in which a training program makes it.
 *
 * states.c says how much there is; here is how it is cut, which matters to the caching allocator only:
 *   parameters      one tensor for each weight and bias; sharded ones (FSDP, ZeRO-3): one for each unit
 *   master weights  the same again, before training begins
 *   moments         made by the first optimizer step: by then the first backward pass has freed its activations, and
 *                   the moments lie in their place
 *   gradients       where autograd's tensor becomes the stored gradient, each is made by the first backward
 * The rest (flat buffers of gradients, buckets, shards of optimizer states) is there from the beginning, in one piece.
 */
#include "base/array.h"
#include "plan/lower/builder.h"

static void add(dts_builder *b, int64_t stage, dts_tensor tensor) {
    dts_tensors *all = &b->tensors[stage];
    if (tensor.bytes <= 0) {
        return;
    }
    dts_tensor *items = dts_arena_room(b->arena, all->items, &all->capacity, all->count + 1, sizeof *items);
    if (items == NULL) {
        b->failed = true;
        return;
    }
    all->items = items;
    all->items[all->count++] = tensor;
}

/* A parameter of so many elements on this rank, and what the optimizer keeps for it. quantised: of an 8- or 4-bit
 * product. */
static void add_parameter(dts_builder *b, int64_t stage, double elements, double quantised, double share) {
    const dts_plan *plan = b->plan;
    const dts_storage *storage = &plan->storage;
    const dts_offload *offload = plan->job.offload;
    if (offload->parameters == DTS_OFFLOAD_NONE) {
        double bytes = dts_plan_weights_B(plan, elements, quantised) * share;
        add(b, stage, (dts_tensor){.category = DTS_MEMORY_PARAMETERS, .made_by = DTS_NO_ID, .bytes = (int64_t)bytes});
    }
    if (offload->optimizer != DTS_OFFLOAD_NONE || (dts_plan_shards_optimizer(plan) && share == 1)) {
        return; /* elsewhere, or in one piece for all */
    }
    double master_B = storage->step_B > storage->parameter_B ? storage->step_B : 0;
    int moments = dts_optimizer_moments((dts_optimizer)plan->job.training->optimizer);
    double moment_B = moments > 0 ? (storage->optimizer_B - master_B) / moments : 0;
    dts_tensor tensor = {.category = DTS_MEMORY_OPTIMIZER, .made_by = DTS_NO_ID};
    tensor.bytes = (int64_t)(elements * master_B * share);
    add(b, stage, tensor);
    tensor.by_step = true;
    tensor.bytes = (int64_t)(elements * moment_B * share);
    for (int i = 0; i < moments; i++) {
        add(b, stage, tensor);
    }
}

static void add_part(dts_builder *b, int64_t stage, const dts_part_work *work) {
    const dts_plan *plan = b->plan;
    if (dts_plan_shards_parameters(plan)) {
        for (int set = 0; set < DTS_SET_COUNT; set++) {
            double share = 1 / (double)dts_plan_shards(plan, (dts_parameter_set)set);
            add_parameter(b, stage, work->parameters[set], work->quantised[set], share);
        }
        return;
    }
    for (size_t i = 0; i < work->operators.count; i++) {
        const dts_operator *o = &work->operators.items[i];
        for (int t = 0; t < DTS_PARAMETER_TENSORS; t++) {
            add_parameter(b, stage, o->parameters[t], o->quantised && t == 0 ? o->parameters[t] : 0, 1);
        }
        bool rests = plan->job.offload->parameters == DTS_OFFLOAD_NONE;
        add(b, stage,
            (dts_tensor){
                .category = DTS_MEMORY_PARAMETERS, .made_by = DTS_NO_ID, .bytes = rests ? (int64_t)o->frozen_B : 0});
    }
}

void dts_build_tensors(dts_builder *b) {
    const dts_plan *plan = b->plan;
    if (b->tensors == NULL || b->stages[0].row > 0) {
        return;
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        for (int64_t v = 0; v < plan->virtual_stages; v++) {
            const dts_chunk *chunk = &plan->chunks[dts_plan_stage(plan, p, v)];
            if (chunk->embedding) {
                add_part(b, p, &b->work[DTS_PART_EMBEDDING]);
            }
            for (int64_t i = 0; i < chunk->layers; i++) {
                add_part(b, p, dts_layer_work(b, chunk->first_layer + i));
            }
            if (chunk->head) {
                add_part(b, p, &b->work[DTS_PART_HEAD]);
            }
        }
    }
}

void dts_tensor_born(dts_builder *b, const dts_stage *stage, dts_id task, double bytes) {
    if (b->tensors == NULL || stage->row > 0 || task == DTS_NO_ID || stage->index >= b->plan->pipeline) {
        return;
    }
    add(b, stage->index, (dts_tensor){.category = DTS_MEMORY_GRADIENTS, .made_by = task, .bytes = (int64_t)bytes});
}
