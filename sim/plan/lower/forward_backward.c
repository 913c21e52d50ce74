/* One microbatch's forward or backward pass through one chunk, part by part (operators.c lowers a part): waits for
 * gathered parameters and for what comes back from host memory, checkpoints, and what has to run again.
 *
 * With full recomputation a layer keeps only its input; its operators run again right before their backward. What lies
 * in memory already, a checkpoint or the buffer in which a stage received its input, is not kept a second time by the
 * operator that reads it. */
#include <math.h>

#include "plan/lower/chunk_pass.h"

typedef dts_walk walk;

dts_walk dts_walk_of(dts_builder *b, const dts_pass *pass, bool backward) {
    return (walk){.b = b,
                  .pass = pass,
                  .backward = backward,
                  .last = pass->input,
                  .waits = {pass->input, DTS_NO_ID, DTS_NO_ID, DTS_NO_ID},
                  .again = DTS_NO_ID,
                  .deferred = DTS_NO_ID};
}

/* A layer's number as reports show it: 0 embedding, layers from 1, last + 1 head. */
static int32_t layer_number(const dts_builder *b, dts_part part, int64_t layer) {
    switch (part) {
        case DTS_PART_EMBEDDING:
            return 0;
        case DTS_PART_LAYER:
        case DTS_PART_EXPERT_LAYER:
        case DTS_PART_LOCAL_LAYER:
        case DTS_PART_LOCAL_EXPERT_LAYER:
            return (int32_t)(layer + 1);
        case DTS_PART_HEAD:
            break;
    }
    return (int32_t)(b->plan->job.model->layers + 1);
}

/* torch Pipe checkpoints a whole stage: nothing of it is kept but its input. */
static bool drops_whole_chunk(const walk *w) {
    const dts_plan *plan = w->b->plan;
    return plan->job.training->recompute.kind == DTS_RECOMPUTE_EXCEPT_LAST &&
           w->pass->microbatch != plan->microbatches - 1;
}

int64_t dts_checkpoint_span(const dts_plan *plan, const dts_chunk *chunk, int64_t slot) {
    const dts_recompute *recompute = &plan->job.training->recompute;
    switch ((dts_recompute_kind)recompute->kind) {
        case DTS_RECOMPUTE_FULL:
            return 1;
        case DTS_RECOMPUTE_EVERY:
            return recompute->layers;
        case DTS_RECOMPUTE_FIRST:
            return slot < recompute->layers ? 1 : 0;
        case DTS_RECOMPUTE_SQRT:
            return chunk->layers > 1 ? llround(sqrt((double)chunk->layers)) : 1;
        case DTS_RECOMPUTE_EXCEPT_LAST:
        case DTS_RECOMPUTE_NONE:
        case DTS_RECOMPUTE_SELECTIVE:
            break;
    }
    return 0;
}

static int64_t checkpoint_span(const walk *w, int64_t slot) {
    return dts_checkpoint_span(w->b->plan, w->pass->chunk, slot);
}

/* Is a layer's input the buffer in which the chunk received it? */
static bool in_buffer(const walk *w, int64_t slot) {
    return slot == 0 && dts_input_has_buffer(w->b->plan, w->pass->chunk);
}

/* Bytes that a layer's checkpoint keeps: its input, unless that lies in the buffer in which the chunk received it. */
static double checkpoint_B(const walk *w, int64_t slot) {
    const int64_t span = checkpoint_span(w, slot);
    return span > 0 && slot % span == 0 && !in_buffer(w, slot) ? w->b->boundary_B : 0;
}

/* Is a layer's input there without what its operators keep of it: in a buffer or a checkpoint? A checkpoint goes with
 * the pass that makes the input's gradient, before a product of a later pass can read it. */
static bool input_held(const walk *w, dts_part part, int64_t slot, dts_op_kind kind) {
    if (!dts_part_is_layer(part)) {
        return false;
    }
    const dts_chunk *chunk = w->pass->chunk;
    const int64_t span = checkpoint_span(w, slot);
    const bool checkpoint = drops_whole_chunk(w) ? slot == 0 && !chunk->embedding : span > 0 && slot % span == 0;
    const dts_operators *operators = &w->b->work[part].operators;
    const dts_operator *keeper =
        checkpoint && kind != DTS_OP_BACKWARD ? dts_input_keeper(w->b->plan, operators, w->b->boundary_B) : NULL;
    return in_buffer(w, slot) || (checkpoint && (keeper == NULL || !dts_operator_splits(keeper)));
}

/* Bytes that a layer leaves for its backward: as the ledger counts them, in whole bytes. */
static double kept_B(const walk *w, int64_t slot) {
    const dts_builder *b = w->b;
    int64_t span = checkpoint_span(w, slot);
    if (drops_whole_chunk(w)) {
        return 0;
    }
    if (span > 0) {
        return floor(checkpoint_B(w, slot));
    }
    const dts_operators *operators = &dts_layer_work(b, w->pass->chunk->first_layer + slot)->operators;
    double bytes = 0;
    for (size_t i = 0; i < operators->count; i++) {
        const dts_operator *o = &operators->items[i];
        bytes += dts_operator_repeats(b->plan, o) || o->forward_kernels == 0 ? 0 : floor(o->saved_B);
    }
    const bool held = in_buffer(w, slot) && dts_input_keeper(b->plan, operators, b->boundary_B) != NULL;
    return bytes - (held ? floor(b->boundary_B) : 0);
}

/* Brings back what backward of a slot needs, and starts on the layers before it. */
static dts_id load_activations(walk *w, int64_t slot) {
    int64_t span = checkpoint_span(w, slot);
    span = span > 0 ? span : 1;
    int64_t group = slot / span * span;
    dts_id loaded = DTS_NO_ID;
    if (slot < w->pass->chunk->layers) {
        loaded = dts_offload_load(w->b, w->pass, group, kept_B(w, group));
    } else {
        group = (slot + span - 1) / span * span; /* the head: only ahead */
    }
    const int64_t ahead = dts_offload_ahead(w->b->plan, w->pass->chunk);
    for (int64_t i = 1; i <= ahead && group - i * span >= 0; i++) {
        dts_offload_load(w->b, w->pass, group - i * span, kept_B(w, group - i * span));
    }
    return loaded;
}

static dts_part layer_part(const walk *w, int64_t layer) {
    return dts_model_layer_part(w->b->plan->job.model, layer);
}

/* A layer's kernels in one direction are a graph where the stack captures layers. */
static void capture(const walk *w, dts_part part, bool begins) {
    if (dts_part_is_layer(part) && !dts_stack_captures_modules(w->b->plan->job.stack)) {
        dts_build_capture(w->b, w->pass->stage, DTS_GRAPHS_LAYERS, begins);
    }
}

static void forward_part(walk *w, dts_part part, int64_t layer, int64_t position) {
    dts_builder *b = w->b;
    int64_t slot = layer - w->pass->chunk->first_layer;
    int64_t span = checkpoint_span(w, slot);
    bool drops = dts_plan_infers(b->plan) || drops_whole_chunk(w) || (dts_part_is_layer(part) && span > 0);
    w->waits[DTS_WAIT_PARAMETERS] = dts_sync_before_part(w->pass->sync, w->pass->chunk, position, false);
    capture(w, part, true);
    if (dts_part_is_layer(part)) {
        w->waits[DTS_WAIT_OFFLOAD] = dts_offload_before_forward(b, w->pass, slot);
    }
    w->position = position;
    dts_step s = {.action = DTS_BLOCK_FORWARD, .part = part, .layer = layer_number(b, part, layer), .keeps = !drops};
    s.held = !drops && dts_part_is_layer(part) && in_buffer(w, slot);
    dts_step_take(w, &s);
    if (dts_part_is_layer(part)) {
        dts_walk_memory(w, w->pass->stage->last_kernel, DTS_AT_END, DTS_MEMORY_ACTIVATIONS, checkpoint_B(w, slot));
    }
    capture(w, part, false);
    if (dts_part_is_layer(part)) {
        dts_offload_store(b, w->pass, slot, kept_B(w, slot), w->last);
    }
    dts_sync_after_forward(w->pass->sync, w->pass->chunk, position, w->last);
}

/* Positions of a chunk's parts: embedding first (if any), then layers, then the head. */
static int64_t first_layer_position(const dts_chunk *chunk) {
    return chunk->embedding ? 1 : 0;
}

static void forward_position(walk *w, int64_t position) {
    const dts_chunk *chunk = w->pass->chunk;
    int64_t layer = position - first_layer_position(chunk);
    if (layer < 0) {
        forward_part(w, DTS_PART_EMBEDDING, 0, position);
    } else if (layer < chunk->layers) {
        forward_part(w, layer_part(w, chunk->first_layer + layer), chunk->first_layer + layer, position);
    } else {
        forward_part(w, DTS_PART_HEAD, 0, position);
    }
}

/* Half copies of weights that parts which keep nothing have left in autocast's cache go. */
static void drop_cached_casts(walk *w) {
    const dts_chunk *chunk = w->pass->chunk;
    const bool whole = dts_plan_infers(w->b->plan) || drops_whole_chunk(w);
    if (whole && chunk->embedding) {
        dts_walk_drop_casts(w, DTS_PART_EMBEDDING);
    }
    for (int64_t i = 0; i < chunk->layers; i++) {
        if (whole || checkpoint_span(w, i) > 0) {
            dts_walk_drop_casts(w, layer_part(w, chunk->first_layer + i));
        }
    }
    if (whole && chunk->head) {
        dts_walk_drop_casts(w, DTS_PART_HEAD);
    }
}

void dts_build_forwards(dts_builder *b, const dts_pass *passes, size_t count, dts_id *made) {
    walk *walks = dts_arena_array(b->arena, count, sizeof *walks);
    if (walks == NULL) {
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const dts_pass *pass = &passes[i];
        walks[i] = dts_walk_of(b, pass, false);
    }
    const dts_chunk *chunk = passes[0].chunk;
    int64_t positions = chunk->embedding + chunk->layers + chunk->head;
    for (int64_t position = 0; position < positions; position++) {
        for (size_t i = 0; i < count; i++) {
            forward_position(&walks[i], position);
        }
    }
    for (size_t i = 0; i < count; i++) {
        walk *w = &walks[i];
        dts_walk_drop_handed(w);
        drop_cached_casts(w);
        if (drops_whole_chunk(w)) {
            dts_walk_memory(w, w->pass->stage->last_kernel, DTS_AT_END, DTS_MEMORY_ACTIVATIONS, b->boundary_B);
            dts_offload_store(b, w->pass, chunk->layers, floor(b->boundary_B), w->last);
        }
        made[i] = w->last;
    }
}

dts_id dts_build_forward(dts_builder *b, const dts_pass *pass) {
    dts_id made = dts_chunk_take(b, pass, DTS_BLOCK_FORWARD);
    if (made == DTS_NO_ID) {
        dts_build_forwards(b, pass, 1, &made);
    }
    return made;
}

/* Repeats the forward of the part at a position of the chunk with all that its backward needs, and its output unless a
 * checkpoint ends with it. */
static void recompute_part(walk *w, dts_part part, int64_t layer, int64_t position, dts_op_kind kind, bool ends) {
    w->waits[DTS_WAIT_PARAMETERS] = dts_sync_before_part(w->pass->sync, w->pass->chunk, position, true);
    w->position = position;
    dts_step s = {.action = DTS_BLOCK_RECOMPUTE, .part = part, .layer = layer_number(w->b, part, layer), .ends = ends};
    s.held = input_held(w, part, layer - w->pass->chunk->first_layer, kind);
    dts_step_take(w, &s);
}

/* The last layer of those that share a checkpoint repeats all of them. */
static void recompute_group(walk *w, int64_t layer, int64_t span, dts_op_kind kind) {
    const dts_chunk *chunk = w->pass->chunk;
    int64_t in_chunk = layer - chunk->first_layer;
    bool ends_group = (in_chunk + 1) % span == 0 || in_chunk + 1 == chunk->layers;
    for (int64_t i = in_chunk - in_chunk % span; ends_group && i <= in_chunk; i++) {
        int64_t again = chunk->first_layer + i;
        dts_part part = layer_part(w, again);
        dts_sync_before_part(w->pass->sync, chunk, first_layer_position(chunk) + i, true);
        capture(w, part, true);
        recompute_part(w, part, again, first_layer_position(chunk) + i, kind, i == in_chunk);
        capture(w, part, false);
    }
}

static void backward_part(walk *w, dts_part part, int64_t layer, int64_t position, dts_op_kind kind) {
    int64_t span = dts_part_is_layer(part) && kind != DTS_OP_BACKWARD_WEIGHT
                       ? checkpoint_span(w, layer - w->pass->chunk->first_layer)
                       : 0;
    w->waits[DTS_WAIT_PARAMETERS] = dts_sync_before_part(w->pass->sync, w->pass->chunk, position, true);
    if (part != DTS_PART_EMBEDDING && kind != DTS_OP_BACKWARD_WEIGHT) {
        int64_t slot = dts_part_is_layer(part) ? layer - w->pass->chunk->first_layer : w->pass->chunk->layers;
        w->waits[DTS_WAIT_OFFLOAD] = load_activations(w, slot);
    }
    if (span > 1) {
        recompute_group(w, layer, span, kind);
    }
    capture(w, part, true);
    if (span == 1) { /* part of the layer's own graph */
        recompute_part(w, part, layer, position, kind, true);
    }
    w->position = position;
    dts_step s = {.action = dts_backward_action(kind), .part = part, .layer = layer_number(w->b, part, layer)};
    s.held = input_held(w, part, layer - w->pass->chunk->first_layer, kind);
    dts_step_take(w, &s);
    capture(w, part, false);
    if (span > 0) {
        dts_walk_memory(w, w->pass->stage->last_kernel, DTS_AT_END, DTS_MEMORY_ACTIVATIONS,
                        -checkpoint_B(w, layer - w->pass->chunk->first_layer));
    }
    if (kind != DTS_OP_BACKWARD_INPUT) {
        dts_sync_after_backward(w->pass->sync, w->pass->chunk, position, w->pass->last_microbatch,
                                w->pass->stage->last_kernel);
    }
}

static void recompute_chunk(walk *w, dts_op_kind kind) {
    const dts_chunk *chunk = w->pass->chunk;
    int64_t position = first_layer_position(chunk);
    if (chunk->embedding) {
        recompute_part(w, DTS_PART_EMBEDDING, 0, 0, kind, false);
    }
    for (int64_t i = 0; i < chunk->layers; i++) {
        recompute_part(w, layer_part(w, chunk->first_layer + i), chunk->first_layer + i, position + i, kind, false);
    }
    if (chunk->head) {
        recompute_part(w, DTS_PART_HEAD, 0, position + chunk->layers, kind, false);
    }
}

static void backward_head(walk *w, dts_op_kind kind) {
    const dts_chunk *chunk = w->pass->chunk;
    backward_part(w, DTS_PART_HEAD, 0, first_layer_position(chunk) + chunk->layers, kind);
    if (kind != DTS_OP_BACKWARD_INPUT && w->pass->stage->tied_copy > 0) {
        dts_sync_gradient(w->pass->sync, DTS_SET_COMMON, &w->pass->stage->tied_copy, 1, w->pass->last_microbatch);
    }
}

void dts_build_head_weights(dts_builder *b, const dts_pass *pass) {
    walk w = dts_walk_of(b, pass, true);
    backward_head(&w, DTS_OP_BACKWARD_WEIGHT);
    dts_walk_drop_handed(&w);
}

dts_id dts_build_backward(dts_builder *b, const dts_pass *pass, dts_op_kind kind) {
    dts_id made = pass->without_head ? DTS_NO_ID : dts_chunk_take(b, pass, dts_backward_action(kind));
    if (made != DTS_NO_ID) {
        return made;
    }
    walk w = dts_walk_of(b, pass, true);
    const dts_chunk *chunk = pass->chunk;
    bool repeats = drops_whole_chunk(&w) && kind != DTS_OP_BACKWARD_WEIGHT;
    if (repeats) {
        /* torchgpipe repeats the forward before the gradient arrives */
        w.waits[DTS_WAIT_INPUT] = DTS_NO_ID;
        w.waits[DTS_WAIT_OFFLOAD] = dts_offload_load(b, pass, chunk->layers, floor(b->boundary_B));
        recompute_chunk(&w, kind);
        w.waits[DTS_WAIT_INPUT] = pass->input;
    }
    int64_t position = first_layer_position(chunk);
    if (chunk->head && !pass->without_head) {
        backward_head(&w, kind);
    }
    for (int64_t i = chunk->layers; i-- > 0;) {
        backward_part(&w, layer_part(&w, chunk->first_layer + i), chunk->first_layer + i, position + i, kind);
    }
    if (chunk->embedding) {
        backward_part(&w, DTS_PART_EMBEDDING, 0, 0, kind);
    }
    dts_walk_drop_handed(&w);
    dts_walk_memory(&w, pass->stage->last_kernel, DTS_AT_END, DTS_MEMORY_ACTIVATIONS, repeats ? -b->boundary_B : 0);
    dts_walk_drop_outputs(&w);
    return w.last;
}
