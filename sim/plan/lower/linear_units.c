/* Linear layers as units of FSDP (parallelism.fsdp_unit: linear): each nn.Linear is wrapped by itself [1], gathered
 * before its kernels and freed behind them, and its gradient is reduced as soon as it is made. Everything else (norms,
 * tables) belongs to the root unit of its chunk, which is whole from the first part to the end.
 *
 * At most two units are there at a time instead of whole layers. A checkpointed layer is gathered three times: for its
 * forward, for its recomputation, and for its gradients, as a linear layer's parameters are freed as soon as its
 * forward has run. As one unit, it stays whole from the recomputation to the gradients.
 *
 * [1] PyTorch, torch/distributed/fsdp/fully_sharded_data_parallel.py: post-forward hooks reshard each wrapped module.
 */
#include "plan/lower/data_parallel.h"

static bool is_unit(const dts_plan *plan, const dts_operator *o) {
    return dts_plan_wraps_linears(plan) && dts_operator_is_linear(o);
}

static int64_t parts(const dts_chunk *chunk) {
    return chunk->layers + chunk->embedding + chunk->head;
}

static const dts_operators *operators_at(const dts_builder *b, const dts_chunk *chunk, int64_t position) {
    int64_t layer = position - chunk->embedding;
    const dts_part_work *work = layer < 0               ? &b->work[DTS_PART_EMBEDDING]
                                : layer < chunk->layers ? dts_layer_work(b, chunk->first_layer + layer)
                                                        : &b->work[DTS_PART_HEAD];
    return &work->operators;
}

/* Units among the first operators of a part. */
static int64_t units_before(const dts_plan *plan, const dts_operators *operators, size_t end) {
    int64_t units = 0;
    for (size_t i = 0; i < end; i++) {
        units += is_unit(plan, &operators->items[i]);
    }
    return units;
}

static int64_t count_units(const dts_builder *b, const dts_chunk *chunk) {
    int64_t units = 0;
    for (int64_t position = 0; position < parts(chunk); position++) {
        const dts_operators *operators = operators_at(b, chunk, position);
        units += units_before(b->plan, operators, operators->count);
    }
    return units;
}

bool dts_linear_units_new(dts_gradient_sync *sync) {
    const dts_plan *plan = sync->b->plan;
    if (!dts_plan_wraps_linears(plan)) {
        return true;
    }
    sync->linears = dts_arena_array(sync->b->arena, (size_t)plan->stages, sizeof *sync->linears);
    sync->linear_counts = dts_arena_array(sync->b->arena, (size_t)plan->stages, sizeof *sync->linear_counts);
    return sync->linears != NULL && sync->linear_counts != NULL;
}

static void add_operator(const dts_plan *plan, dts_unit *u, const dts_operator *o) {
    dts_parameter_set set = dts_operator_set(plan, o);
    u->size.frozen_B[set] += o->frozen_B;
    u->size.quantised[set] += o->quantised ? o->parameters[0] : 0;
    for (int p = 0; p < DTS_PARAMETER_TENSORS; p++) {
        u->size.elements[set] += o->parameters[p];
    }
}

static bool add_chunk(dts_gradient_sync *sync, int64_t stage) {
    const dts_builder *b = sync->b;
    const dts_chunk *chunk = &b->plan->chunks[stage];
    int64_t count = count_units(b, chunk);
    dts_unit *units = dts_arena_array(b->arena, (size_t)count, sizeof *units);
    if (units == NULL) {
        return false;
    }
    int64_t next = 0;
    for (int64_t position = 0; position < parts(chunk); position++) {
        const dts_operators *operators = operators_at(b, chunk, position);
        for (size_t i = 0; i < operators->count; i++) {
            bool own = is_unit(b->plan, &operators->items[i]);
            if (own) {
                units[next].gather = DTS_NO_ID;
            }
            add_operator(b->plan, own ? &units[next++] : &sync->roots[stage], &operators->items[i]);
        }
    }
    sync->linears[stage] = units;
    sync->linear_counts[stage] = count;
    return true;
}

bool dts_linear_units_fill(dts_gradient_sync *sync, int64_t first_chunk, int64_t last_chunk) {
    bool good = true;
    for (int64_t v = first_chunk; v <= last_chunk && good && sync->linears != NULL; v++) {
        good = add_chunk(sync, dts_plan_stage(sync->b->plan, sync->stage->index, v));
    }
    return good;
}

/* A linear layer's place among those of its chunk; -1: it is no unit. */
static int64_t place(const dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, size_t index) {
    if (sync->linears == NULL || !dts_sync_gathers(sync)) {
        return -1;
    }
    const dts_operators *here = operators_at(sync->b, chunk, position);
    if (!is_unit(sync->b->plan, &here->items[index])) {
        return -1;
    }
    int64_t before = units_before(sync->b->plan, here, index);
    for (int64_t i = 0; i < position; i++) {
        const dts_operators *operators = operators_at(sync->b, chunk, i);
        before += units_before(sync->b->plan, operators, operators->count);
    }
    return before;
}

dts_id dts_sync_before_product(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, size_t index,
                               bool backward) {
    int64_t at = place(sync, chunk, position, index);
    if (at < 0) {
        return DTS_NO_ID;
    }
    int64_t stage = chunk - sync->b->plan->chunks;
    dts_unit *units = sync->linears[stage];
    dts_unit_gather(sync, &units[at], backward);
    for (int64_t i = 1; i <= dts_units_ahead(sync, backward); i++) {
        int64_t next = backward ? at - i : at + i;
        if (next >= 0 && next < sync->linear_counts[stage]) {
            dts_unit_gather(sync, &units[next], backward);
        }
    }
    return dts_unit_use(sync, &units[at], backward);
}

void dts_sync_after_product(dts_gradient_sync *sync, const dts_chunk *chunk, int64_t position, size_t index,
                            dts_product_gradient gradient, dts_id last) {
    int64_t at = place(sync, chunk, position, index);
    if (at < 0) {
        return;
    }
    dts_unit *u = &sync->linears[chunk - sync->b->plan->chunks][at];
    if (gradient != DTS_PRODUCT_NO_GRADIENT) {
        dts_unit_hand_in(sync, u, gradient == DTS_PRODUCT_LAST_GRADIENT, last);
    } else if (dts_plan_reshards(sync->b->plan)) {
        dts_unit_release(sync, u, last);
    }
}

int dts_unit_tensors(const dts_builder *b, const dts_stage *stage) {
    const dts_plan *plan = b->plan;
    if (!dts_plan_wraps_linears(plan)) {
        return (int)(plan->job.model->layers / plan->pipeline + 1);
    }
    int64_t tensors = plan->virtual_stages; /* the roots; each unit is one flat tensor */
    for (int64_t v = 0; v < plan->virtual_stages; v++) {
        tensors += count_units(b, &plan->chunks[dts_plan_stage(plan, stage->index, v)]);
    }
    return (int)tensors;
}
