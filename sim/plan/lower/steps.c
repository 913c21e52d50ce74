/* Layers' steps and whole passes as blocks (block.c has what a block is): which can be one, and what it depends on. */
#include <string.h>

#include "plan/lower/chunk_pass.h"
#include "plan/lower/data_parallel.h"

dts_block_action dts_backward_action(dts_op_kind kind) {
    return kind == DTS_OP_BACKWARD_INPUT    ? DTS_BLOCK_BACKWARD_INPUT
           : kind == DTS_OP_BACKWARD_WEIGHT ? DTS_BLOCK_BACKWARD_WEIGHT
                                            : DTS_BLOCK_BACKWARD;
}

static bool makes_weight_gradients(dts_block_action action) {
    return action == DTS_BLOCK_BACKWARD || action == DTS_BLOCK_BACKWARD_WEIGHT;
}

/* What of a pass its blocks depend on. */
static dts_block_key key_of(const dts_builder *b, const dts_pass *pass, dts_block_action action) {
    dts_block_key key;
    memset(&key, 0, sizeof key);
    const dts_plan *plan = b->plan;
    key.action = (uint8_t)action;
    key.outputs_only = pass->outputs_only;
    key.gradients = makes_weight_gradients(action) ? (uint8_t)(pass->summed | pass->first_microbatch) : 0;
    key.microbatch_zero = pass->microbatch == 0;
    key.microbatch_last =
        plan->job.training->recompute.kind == DTS_RECOMPUTE_EXCEPT_LAST && pass->microbatch == plan->microbatches - 1;
    return key;
}

/* A copy of the pass for lowering it alone: it hands gradients over only inside. */
static dts_pass pass_alone(const dts_pass *pass, dts_stage *stage, dts_gradient_sync *sync, bool hands_over) {
    dts_pass alone = *pass;
    alone.stage = stage;
    alone.sync = sync;
    alone.last_microbatch = hands_over;
    alone.input = stage->last_kernel; /* the gate */
    return alone;
}

static dts_task_info block_info(const dts_pass *pass, dts_block_action action, int32_t layer) {
    static const struct {
        const char *name;
        dts_role role;
    } kinds[] = {
        [DTS_BLOCK_FORWARD] = {"forward", DTS_ROLE_FORWARD},
        [DTS_BLOCK_RECOMPUTE] = {"recompute", DTS_ROLE_RECOMPUTE},
        [DTS_BLOCK_BACKWARD] = {"backward", DTS_ROLE_BACKWARD},
        [DTS_BLOCK_BACKWARD_INPUT] = {"backward of inputs", DTS_ROLE_BACKWARD},
        [DTS_BLOCK_BACKWARD_WEIGHT] = {"backward of weights", DTS_ROLE_BACKWARD_WEIGHT},
    };
    return (dts_task_info){.role = (uint8_t)kinds[action].role,
                           .microbatch = (int32_t)pass->microbatch,
                           .layer = layer,
                           .chunk = (int32_t)pass->chunk_index,
                           .name = kinds[action].name};
}

/* A step that is being made a block. */
typedef struct step_alone {
    const dts_walk *walk;
    const dts_step *step;
    bool hands_over;
} step_alone;

static dts_id lower_step(dts_builder *scratch, dts_stage *stage, dts_gradient_sync *sync, const void *context,
                         double *handed_B) {
    const step_alone *what = context;
    dts_pass pass = pass_alone(what->walk->pass, stage, sync, what->hands_over);
    dts_walk w = dts_walk_of(scratch, &pass, what->walk->backward);
    w.handed_B = *handed_B;
    dts_step_lower(&w, what->step);
    *handed_B = w.handed_B;
    return w.last;
}

/* Experts' gradients go into buckets of their own. */
static bool buckets_are_simple(const dts_builder *b, const dts_gradient_sync *sync) {
    return b->plan->job.model->experts == 0 && !dts_sync_takes_gradients(sync);
}

static const dts_block *step_block(dts_walk *w, const dts_step *s, bool hands_over) {
    dts_block_key key = key_of(w->b, w->pass, s->action);
    key.part = (uint8_t)s->part;
    key.keeps = s->action == DTS_BLOCK_RECOMPUTE ? !s->ends : s->keeps;
    key.handed_B = w->handed_B;
    key.held = s->held;
    key.hands_over = hands_over;
    step_alone what = {w, s, hands_over};
    return dts_block_find(w->b, w->pass->stage, &key, s->layer, lower_step, &what);
}

/* Gradients of a step go into buckets one by one. */
static void hand_over_step(dts_walk *w, const dts_step *s) {
    const dts_operators *operators = &w->b->work[s->part].operators;
    for (size_t i = operators->count; i-- > 0;) {
        const dts_operator *o = &operators->items[i];
        dts_sync_gradient(w->pass->sync, dts_operator_set(w->b->plan, o), o->parameters, DTS_PARAMETER_TENSORS,
                          w->pass->last_microbatch);
    }
}

/* May a collective of the layers' groups that belongs to no block still run, without being waited for? A block's own
 * collectives stand behind it. */
static bool follows_collective(const dts_builder *b, const dts_stage *stage, const dts_id *waits, size_t wait_count) {
    const dts_id collective = stage->last_collective;
    if (collective == DTS_NO_ID || (stage->last_kernel != DTS_NO_ID && collective < stage->last_kernel)) {
        return false;
    }
    const dts_group_kind group = (dts_group_kind)b->infos[collective].group;
    bool waited = group != DTS_GROUP_TENSOR && group != DTS_GROUP_EXPERT && group != DTS_GROUP_EXPERT_TENSOR;
    for (size_t i = 0; i < wait_count; i++) {
        waited |= waits[i] == collective;
    }
    return !waited;
}

/* May gradients reach their buckets behind the block that makes them? In a first look, which may be a layer's backward
 * off: at most 2 % of so many. */
static bool may_be_late_at_first(const dts_walk *w) {
    enum { ENOUGH_LAYERS_PASSES = 32 };
    return w->b->brief && w->pass->chunk->layers * w->b->plan->microbatches >= ENOUGH_LAYERS_PASSES;
}

/* Kernel by kernel, or as a block. Where buckets fill up in it, it may hand over its gradients behind the block; where
 * every microbatch does that, its buckets' memory matters, and it stays at kernel detail. */
void dts_step_take(dts_walk *w, const dts_step *s) {
    double room_B = 0;
    bool fills_buckets = dts_sync_hands_over(w->pass->sync, w->pass->last_microbatch, &room_B);
    bool hands_over = makes_weight_gradients(s->action) && fills_buckets;
    /* recomputation makes no gradients, but runs beside the reductions of those that were made before */
    bool beside_reductions = s->action == DTS_BLOCK_RECOMPUTE && fills_buckets && w->pass->stage->contended;
    /* nor does the first forward, beside gathers that the step before has left */
    beside_reductions |= s->action == DTS_BLOCK_FORWARD && !dts_sync_gathers(w->pass->sync) &&
                         w->waits[DTS_WAIT_PARAMETERS] != DTS_NO_ID && w->pass->stage->contended;
    const dts_block *block = NULL;
    bool inside = hands_over;
    /* a gradient that no kernel makes is charged to whatever ran before */
    bool splits = s->action == DTS_BLOCK_BACKWARD_WEIGHT && dts_sync_gathers(w->pass->sync);
    bool simple = buckets_are_simple(w->b, w->pass->sync);
    bool possible =
        dts_block_wanted(w->b, w->pass->stage) && !splits &&
        (w->b->brief || (!follows_collective(w->b, w->pass->stage, w->waits, DTS_WAITS) && !beside_reductions));
    const bool ends = w->pass->first_microbatch || w->pass->last_microbatch; /* nothing else keeps the links busy */
    const bool behind = hands_over && dts_brief_hands_over_behind(w->b, w->pass) && (!ends || may_be_late_at_first(w));
    if (possible && behind) {
        inside = false;
        block = step_block(w, s, true);
    } else if (possible && hands_over && !simple && may_be_late_at_first(w)) {
        inside = false;
        block = step_block(w, s, false);
    } else if (possible && (!hands_over || simple)) {
        block = step_block(w, s, hands_over);
        if (block != NULL && hands_over && block->reduced_B >= room_B) {
            inside = false;
            block = may_be_late_at_first(w) ? step_block(w, s, false) : NULL;
        }
    }
    if (block == NULL) {
        dts_step_lower(w, s);
        return;
    }
    dts_task_info info = block_info(w->pass, s->action, s->layer);
    const dts_id before = w->pass->stage->last_kernel;
    w->last = dts_block_place(w->b, w->pass->stage, block, w->waits, DTS_WAITS, &info);
    w->waits[DTS_WAIT_INPUT] = block->trailing > 0 ? w->last : DTS_NO_ID;
    w->waits[DTS_WAIT_PARAMETERS] = DTS_NO_ID;
    w->waits[DTS_WAIT_OFFLOAD] = DTS_NO_ID;
    w->waits[DTS_WAIT_BRANCH] = DTS_NO_ID;
    w->handed_B = block->handed_B;
    if (behind) {
        dts_sync_take_block(w->pass->sync, block, before);
    } else if (inside) {
        dts_sync_take(w->pass->sync, block->reduced_B, block->reduced_tensors, w->pass->stage->last_kernel);
    } else if (hands_over) {
        hand_over_step(w, s);
    }
}

static dts_op_kind kind_of(dts_block_action action) {
    return action == DTS_BLOCK_BACKWARD_INPUT    ? DTS_OP_BACKWARD_INPUT
           : action == DTS_BLOCK_BACKWARD_WEIGHT ? DTS_OP_BACKWARD_WEIGHT
                                                 : DTS_OP_BACKWARD;
}

typedef struct chunk_alone {
    const dts_pass *pass;
    dts_block_action action;
    bool hands_over;
} chunk_alone;

static dts_id lower_chunk(dts_builder *scratch, dts_stage *stage, dts_gradient_sync *sync, const void *context,
                          double *handed_B) { /* NOLINT(readability-non-const-parameter): a callback's type */
    const chunk_alone *what = context;
    dts_pass pass = pass_alone(what->pass, stage, sync, what->hands_over);
    (void)handed_B; /* nothing is handed from chunk to chunk */
    return what->action == DTS_BLOCK_FORWARD ? dts_build_forward(scratch, &pass)
                                             : dts_build_backward(scratch, &pass, kind_of(what->action));
}

/* Blocks of whole passes: most microbatches of a chunk have the same as the one before. */
typedef struct dts_pass_block {
    bool known;
    bool first, zero, last, hands_over; /* of the pass that it was looked up for */
    uint8_t summed;
    const dts_block *block;
} pass_block;

dts_status dts_chunks_new(dts_builder *b) {
    if (b->detail == DTS_DETAIL_BLOCK) {
        b->passes = dts_arena_array(b->arena, (size_t)b->plan->stages * DTS_BLOCK_ACTIONS, sizeof *b->passes);
    }
    return b->detail == DTS_DETAIL_BLOCK && b->passes == NULL ? dts_diag_nomem(b->diag) : DTS_OK;
}

static const dts_block *find_chunk_block(dts_builder *b, const dts_pass *pass, dts_block_action action,
                                         bool hands_over) {
    const dts_chunk *chunk = pass->chunk;
    dts_block_key key = key_of(b, pass, action);
    key.part = DTS_BLOCK_CHUNK;
    key.layers = (uint32_t)chunk->layers;
    const dts_model *model = b->plan->job.model;
    key.first_layer = model->experts > 0 || model->attention_window > 0 ? (uint32_t)chunk->first_layer : 0;
    key.embedding = chunk->embedding;
    key.buffered = dts_input_has_buffer(b->plan, chunk);
    key.head = chunk->head;
    key.tied_copy = chunk->head ? pass->stage->tied_copy : 0;
    key.hands_over = hands_over;
    chunk_alone what = {pass, action, hands_over};
    return dts_block_find(b, pass->stage, &key, (int32_t)chunk->first_layer + 1, lower_chunk, &what);
}

static const dts_block *chunk_block(dts_builder *b, const dts_pass *pass, dts_block_action action, bool hands_over) {
    const bool zero = pass->microbatch == 0;
    const bool last = pass->microbatch == b->plan->microbatches - 1;
    pass_block *p = &b->passes[(pass->chunk - b->plan->chunks) * DTS_BLOCK_ACTIONS + (int64_t)action];
    if (!p->known || p->first != pass->first_microbatch || p->summed != pass->summed || p->zero != zero ||
        p->last != last || p->hands_over != hands_over) {
        p->block = find_chunk_block(b, pass, action, hands_over);
        p->known = true;
        p->first = pass->first_microbatch;
        p->summed = pass->summed;
        p->zero = zero;
        p->last = last;
        p->hands_over = hands_over;
    }
    return p->block;
}

/* The whole pass as one block; DTS_NO_ID where something of other streams happens inside it: gathers of FSDP, copies of
 * offloaded activations, buckets that fill up, recomputation that does not wait for the input. */
dts_id dts_chunk_take(dts_builder *b, const dts_pass *pass, dts_block_action action) {
    double room_B = 0;
    bool hands_over = makes_weight_gradients(action) && dts_sync_hands_over(pass->sync, pass->last_microbatch, &room_B);
    const bool inside = pass->first_microbatch || pass->last_microbatch;
    const bool behind = hands_over && !inside && dts_brief_hands_over_behind(b, pass);
    if (b->detail != DTS_DETAIL_BLOCK || !dts_block_wanted(b, pass->stage) || dts_sync_gathers(pass->sync) ||
        (action == DTS_BLOCK_FORWARD && dts_updated_awaits(pass->sync, pass->chunk)) || b->parked != NULL ||
        b->plan->job.training->recompute.kind == DTS_RECOMPUTE_EXCEPT_LAST ||
        (hands_over && !behind && !buckets_are_simple(b, pass->sync)) ||
        (!b->brief && follows_collective(b, pass->stage, &pass->input, 1))) {
        return DTS_NO_ID;
    }
    const dts_block *block = chunk_block(b, pass, action, hands_over);
    if (block == NULL || (hands_over && !behind && block->reduced_B >= room_B)) {
        return DTS_NO_ID;
    }
    dts_task_info info = block_info(pass, action, -1);
    pass->stage->carries = pass->sends;
    const dts_id before = pass->stage->last_kernel;
    dts_id made = dts_block_place(b, pass->stage, block, &pass->input, 1, &info);
    if (behind) {
        dts_sync_take_block(pass->sync, block, before);
        dts_buckets_flush(pass->sync);
    } else if (hands_over) {
        dts_sync_take(pass->sync, block->reduced_B, block->reduced_tensors, pass->stage->last_kernel);
    }
    return made;
}
