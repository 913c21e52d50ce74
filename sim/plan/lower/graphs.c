/* CUDA graphs of modules of a layer [1]: what of a layer has fixed sizes is replayed, the rest is launched one by one.
 *
 *   attn             attention with its norm and its sum
 *   mlp              the feed-forward block of a layer without experts
 *   moe_router       norm and choice of experts, and shared experts unless they run beside exchanges
 *   moe_preprocess   what an all-to-all needs before, the order of its rows; not with dispatchers on the device
 *   moe              all of a layer with experts behind attention
 *
 * Neighbours are one graph: in Megatron-Core a layer has one for each direction. Recomputation within is part of it.
 * Where the host reads token counts that a graph makes, it does so behind the graph: with moe_preprocess behind the
 * sorted rows instead of before them (cuda_dtoh_point before_ep_alltoall [2]).
 *
 * Memory. Graphs have a pool of their own, which the kernels around them cannot use, nor they that of the others: what
 * lives during an operator only is there twice, once for the largest one that is captured and once for the largest one
 * that is not; the copy of the input (b, s, h) that a graph reads is one more. All graphs share the pool and their
 * buffers, and what is kept for backward lies in one of the pools only [3].
 *
 *   pinned_B = min(max captured (input + output + workspace), max of the others) + (b, s, h)
 *
 * [1] NVIDIA/Megatron-LM megatron/core/transformer/transformer_layer.py: _te_cuda_graph_capture and _replay;
 *     megatron/training/arguments.py: --cuda-graph-scope.
 * [2] megatron/core/transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher.
 * [3] docs/discussions/deepseek-v3-gb200-optimization, section 2.3. */
#include <math.h>

#include "plan/lower/chunk_pass.h"

static bool holds(const dts_stack *stack, dts_region region) {
    switch (region) {
        case DTS_REGION_NONE:
            return false;
        case DTS_REGION_ATTENTION:
            return dts_stack_captures(stack, DTS_GRAPH_ATTN);
        case DTS_REGION_FEED_FORWARD:
            return dts_stack_captures(stack, DTS_GRAPH_MLP);
        case DTS_REGION_ROUTER:
            return dts_stack_captures(stack, DTS_GRAPH_MOE_ROUTER) || dts_stack_captures(stack, DTS_GRAPH_MOE);
        case DTS_REGION_PREPROCESS:
            return dts_stack_captures(stack, DTS_GRAPH_MOE_PREPROCESS) || dts_stack_captures(stack, DTS_GRAPH_MOE);
        case DTS_REGION_EXPERTS:
            return dts_stack_captures(stack, DTS_GRAPH_MOE);
    }
    return false;
}

bool dts_captures_operator(const dts_stack *stack, const dts_operator *o) {
    return dts_stack_captures_modules(stack) && holds(stack, o->region);
}

bool dts_captures_exchange(const dts_stack *stack, const dts_operator *o, dts_group_kind group) {
    return dts_stack_captures_modules(stack) &&
           holds(stack, group == DTS_GROUP_EXPERT ? DTS_REGION_EXPERTS : o->region);
}

static void read_counts(dts_walk *w, double host_s) {
    dts_build_read(w->b, w->pass->stage, host_s, w->backward, w->last);
}

static void move_to(dts_walk *w, dts_region region) {
    const dts_stack *stack = w->b->plan->job.stack;
    dts_stage *stage = w->pass->stage;
    if (!dts_stack_captures_modules(stack)) {
        return;
    }
    const bool inside = holds(stack, region);
    if (inside != stage->captured) {
        stage->captured = inside;
        stage->graph_launch = DTS_NO_ID;
    }
    if (!inside && w->reads) {
        w->reads = false;
        read_counts(w, w->read_s);
    }
}

void dts_walk_capture(dts_walk *w, const dts_operator *o) {
    move_to(w, o == NULL ? DTS_REGION_NONE : o->region);
}

void dts_walk_capture_exchange(dts_walk *w, dts_group_kind group) {
    if (group == DTS_GROUP_EXPERT) {
        move_to(w, DTS_REGION_EXPERTS);
    }
}

void dts_walk_read(dts_walk *w, const dts_operator *o) {
    const double host_s = o->host_dispatches ? w->b->plan->job.stack->experts_host_s : 0;
    if (w->pass->stage->captured) {
        w->reads = true;
        w->read_s = host_s;
    } else {
        read_counts(w, host_s);
    }
}

double dts_graph_pool_B(const dts_plan *plan, const dts_part_work *work, double boundary_B) {
    const dts_stack *stack = plan->job.stack;
    double most_B[2] = {0, 0}; /* [captured] */
    double counts[DTS_PART_COUNT] = {0};
    if (!dts_stack_captures_modules(stack)) {
        return 0;
    }
    dts_model_count_parts(plan->job.model, counts);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        const dts_operators *operators = &work[part].operators;
        for (size_t i = 0; i < operators->count && dts_part_is_layer((dts_part)part) && counts[part] > 0; i++) {
            const dts_operator *o = &operators->items[i];
            const int captured = holds(stack, o->region) ? 1 : 0;
            most_B[captured] = fmax(most_B[captured], floor(o->input_B + o->output_B + o->workspace_B));
        }
    }
    return most_B[1] > 0 ? fmin(most_B[0], most_B[1]) + floor(boundary_B) : 0;
}
