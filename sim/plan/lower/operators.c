/* What the operators of one part (embedding, layer, head) become in one direction: kernels, exchanges between ranks,
 * and what each does to memory, in the order of the compute stream (the caching allocator works in that order):
 *   forward   start: + saved_B (activations), + output_B + workspace_B (temporary), - the previous output
 *             end:   - workspace_B
 *   backward  start: + input_B (gradient of the input) + workspace_B
 *             end:   - saved_B, - the gradient of the output, - workspace_B
 * A split backward's input-gradient pass keeps what the products' weight gradients still need: their inputs and the
 * gradients of their outputs. forward_backward.c walks the parts of a chunk. */
#include <math.h>

#include "plan/lower/chunk_pass.h"
#include "plan/lower/costs.h"

typedef dts_walk walk;

static dts_task_info task_info(const walk *w, dts_role role, int32_t layer, const char *name, double flops) {
    return (dts_task_info){.role = (uint8_t)role,
                           .microbatch = (int32_t)w->pass->microbatch,
                           .layer = layer,
                           .chunk = (int32_t)w->pass->chunk_index,
                           .name = name,
                           .flops = flops};
}

/* A collective of the tensor- or expert-parallel group behind the chain, beside which products run. */
static dts_id add_collective_beside(walk *w, dts_group_kind group, double bytes, dts_exchange exchange, dts_takes takes,
                                    const dts_task_info *info) {
    const dts_collective kind = dts_exchange_collective(exchange);
    dts_task_info what = *info;
    what.name = dts_collective_names[kind];
    what.flops = 0;
    return dts_build_collective_beside(w->b, w->pass->stage, group, kind, bytes, w->backward, w->last, takes, &what);
}

/* The chain waits for it; another pass may not. */
static dts_id add_collective(walk *w, dts_group_kind group, double bytes, dts_exchange exchange,
                             const dts_task_info *info) {
    const bool beside = group == DTS_GROUP_EXPERT && w->b->in_turns;
    const dts_takes takes = {.sms = beside ? w->b->plan->job.stack->experts_sms : 0};
    return add_collective_beside(w, group, bytes, exchange, takes, info);
}

/* Copies a whole tensor from or into the order of its ranks' parts. */
static void add_join(walk *w, double bytes, const char *name, const dts_task_info *info) {
    dts_task_info what = *info;
    what.name = name;
    what.flops = 0;
    dts_walk_kernels(w, 1, dts_gpu_memory_s(&w->b->plan->job.cluster->gpu, 2 * bytes), &what);
}

/* Tensor- or expert-parallel communication around an operator: the chain waits for it. What a compiled kernel wrote can
 * be written in the order of the ranks at once. */
static void add_exchange(walk *w, const dts_operator *o, dts_exchange exchange, const dts_task_info *info) {
    const dts_stack *stack = w->b->plan->job.stack;
    const dts_group_kind group = dts_exchange_group(o, exchange);
    const bool copies = stack->tensor_copies && group == DTS_GROUP_TENSOR;
    if (exchange == DTS_EXCHANGE_NONE || dts_lower_placement(w->b->plan, w->pass->stage->index, group).ranks == 1) {
        return;
    }
    dts_walk_capture_exchange(w, group);
    if (exchange == DTS_EXCHANGE_ALL_GATHER && group == DTS_GROUP_TENSOR && !o->plain_exchange &&
        dts_async_gathers_here(w)) {
        dts_async_gather(w, o->exchange_B, info);
        return;
    }
    const bool compiled = stack->compile && o->kind == DTS_OPERATOR_MEMORY;
    if (exchange == DTS_EXCHANGE_REDUCE_SCATTER && copies && !compiled) {
        add_join(w, o->exchange_B, "cut_for_ranks", info);
    }
    w->last = add_collective(w, group, o->exchange_B, exchange, info);
    w->waits[DTS_WAIT_INPUT] = w->last;
    if (exchange == DTS_EXCHANGE_ALL_GATHER && copies) {
        add_join(w, o->exchange_B, "join_of_ranks", info);
    }
}

/* Do ranks share this operator's sequence? */
static bool splits_attention(const dts_builder *b, const dts_operator *o) {
    return b->plan->context > 1 && o->kind == DTS_OPERATOR_ATTENTION;
}

/* Tensors for the casts of each expert, before any is launched. */
static void prepare_casts(walk *w, const dts_operator *o, int kernels) {
    const double host_s = (double)o->expert_casts * w->b->plan->job.stack->fp8_expert_host_s;
    if (kernels > 0 && host_s > 0 && !w->pass->stage->captured) {
        dts_build_host(w->b, w->pass->stage, host_s, w->backward, DTS_NO_ID, "prepare casts");
    }
}

/* An operator's kernels in the direction of w->gradient. *behind, the exchange that follows, becomes NONE where it is
 * part of them. */
static dts_id add_operator(walk *w, const dts_operator *o, int kernels, double duration_s, dts_exchange *behind,
                           const dts_task_info *info) {
    if (splits_attention(w->b, o)) {
        w->arrivals = NULL; /* the products before have read them */
        return dts_context_attention(w, o, w->gradient, info);
    }
    if (dts_async_chunks(w, o, *behind)) {
        dts_id first = dts_async_product(w, o, *behind, info);
        *behind = DTS_EXCHANGE_NONE;
        return first;
    }
    prepare_casts(w, o, kernels);
    dts_id first = dts_walk_kernels(w, kernels, duration_s, info);
    if (first != DTS_NO_ID && w->arrivals != NULL) { /* all that it reads must be there */
        for (int64_t i = 1; i < w->b->plan->tensor; i++) {
            dts_graph_depend(w->b->graph, first, w->arrivals[i]);
        }
        w->arrivals = NULL;
    }
    return first;
}

/* Activations of some bytes come (sign 1) or go (-1), in tensors of the sizes of parts as far as these fit. */
static void save_parts(walk *w, dts_id task, dts_memory_moment moment, const double *parts, size_t count, double left_B,
                       int sign) {
    for (size_t i = 0; i < count && left_B > 0; i++) {
        double part_B = floor(parts[i]);
        if (part_B > 0 && part_B <= left_B) {
            dts_walk_memory(w, task, moment, DTS_MEMORY_ACTIVATIONS, sign * part_B);
            left_B -= part_B;
        }
    }
    dts_walk_memory(w, task, moment, DTS_MEMORY_ACTIVATIONS, sign * left_B);
}

/* Of what an operator keeps for itself (or, where a module lets go of its input, for others), what lies elsewhere. */
static double held_B(const walk *w, const dts_operator *o, bool own) {
    const double boundary_B = floor(w->b->boundary_B);
    return o == w->held && own == (o->saved_B - o->others_B >= boundary_B) ? boundary_B : 0;
}

/* What an operator keeps, tensor by tensor (sign 1), or lets go of (-1): its input, then tensors like its output, then
 * what is left: masks and statistics. The ledger sees their sum; only a caching allocator minds the difference. */
static void save_own(walk *w, dts_id task, dts_memory_moment moment, const dts_operator *o, int sign) {
    const double own_B = o->saved_B - o->others_B - held_B(w, o, true);
    const double parts[] = {o->input_B, o->output_B, o->output_B, o->output_B};
    save_parts(w, task, moment, parts, sizeof parts / sizeof parts[0], own_B, sign);
}

/* What it keeps for operators behind it: tensors like its output. */
static void save_others(walk *w, dts_id task, dts_memory_moment moment, const dts_operator *o, int sign) {
    const double parts[] = {o->output_B, o->output_B, o->output_B};
    save_parts(w, task, moment, parts, sizeof parts / sizeof parts[0], o->others_B - held_B(w, o, false), sign);
}

static void save_tensors(walk *w, dts_id task, dts_memory_moment moment, const dts_operator *o, int sign) {
    save_own(w, task, moment, o, sign);
    save_others(w, task, moment, o, sign);
}

/* What lives during an operator only, in tensors as large as its input or output at most. */
static void use_workspace(walk *w, dts_id task, dts_memory_moment moment, const dts_operator *o, int sign) {
    double left_B = o->workspace_B;
    const double most_B = floor(fmax(o->input_B, o->output_B));
    for (; most_B > 0 && left_B > most_B; left_B -= most_B) {
        dts_walk_memory(w, task, moment, DTS_MEMORY_TEMPORARY, sign * most_B);
    }
    dts_walk_memory(w, task, moment, DTS_MEMORY_TEMPORARY, sign * left_B);
}

/* The product's parameters must be whole, where they are a unit of their own. */
static void gather_product(walk *w, size_t index) {
    dts_id whole = dts_sync_before_product(w->pass->sync, w->pass->chunk, w->position, index, w->backward);
    w->waits[DTS_WAIT_PARAMETERS] = whole != DTS_NO_ID ? whole : w->waits[DTS_WAIT_PARAMETERS];
}

static void forward_operator(walk *w, dts_part part, size_t index, int32_t layer, dts_role role, bool keep) {
    dts_builder *b = w->b;
    const dts_operator *o = &b->work[part].operators.items[index];
    const dts_operator_times *t = &b->work[part].times[index];
    if (o->once && (role == DTS_ROLE_RECOMPUTE || w->pass->microbatch > 0)) {
        return;
    }
    dts_walk_branch(w, o);
    dts_walk_capture(w, o);
    dts_task_info info = task_info(w, role, layer, o->name, t->forward_flops);
    w->gradient = false;
    const bool shard = role == DTS_ROLE_RECOMPUTE && o->repeats_shard;
    dts_exchange behind = shard ? DTS_EXCHANGE_NONE : o->forward_exchange;
    gather_product(w, index);
    dts_id first = add_operator(w, o, t->forward_kernels, t->forward_s, &behind, &info);
    if (first != DTS_NO_ID) {
        dts_walk_memory(w, first, DTS_AT_START, DTS_MEMORY_TEMPORARY, -w->handed_B);
        dts_walk_memory(w, first, DTS_AT_START, DTS_MEMORY_TEMPORARY, o->output_B);
        use_workspace(w, first, DTS_AT_START, o, 1);
        use_workspace(w, w->last, DTS_AT_END, o, -1);
        if (keep) {
            save_tensors(w, first, DTS_AT_START, o, 1);
        } else if (role == DTS_ROLE_FORWARD && dts_plan_keeps_weight_copies(b->plan)) {
            dts_walk_memory(w, first, DTS_AT_START, DTS_MEMORY_ACTIVATIONS, o->weight_copy_B);
        }
        w->handed_B = o->output_B;
    }
    dts_sync_after_product(w->pass->sync, w->pass->chunk, w->position, index, DTS_PRODUCT_NO_GRADIENT, w->last);
    if (o->host_reads) {
        dts_walk_read(w, o);
    }
    add_exchange(w, o, behind, &info);
}

/* Operators of a part that run in this pass. */
static size_t operator_count(const walk *w, dts_part part) {
    bool outputs_only = part == DTS_PART_HEAD && w->pass->outputs_only;
    return outputs_only ? dts_head_outputs(&w->b->work[DTS_PART_HEAD]) : w->b->work[part].operators.count;
}

void dts_walk_drop_casts(walk *w, dts_part part) {
    const dts_part_work *work = &w->b->work[part];
    for (size_t i = 0; dts_plan_keeps_weight_copies(w->b->plan) && i < operator_count(w, part); i++) {
        const double cast_B = work->times[i].forward_kernels > 0 ? work->operators.items[i].weight_copy_B : 0;
        dts_walk_memory(w, w->pass->stage->last_kernel, DTS_AT_END, DTS_MEMORY_ACTIVATIONS, -cast_B);
    }
}

void dts_walk_drop_outputs(walk *w) {
    const dts_operators *head = &w->b->work[DTS_PART_HEAD].operators;
    if (dts_held_outputs_B(w->b, w->pass) > 0) {
        save_tensors(w, w->pass->stage->last_kernel, DTS_AT_END, &head->items[head->count - 1], -1);
    }
}

/* Adding a new weight gradient to the stored one, where that is a kernel of its own (unit_copies.c). */
static void accumulate_gradients(walk *w, const dts_operator *o, int32_t layer) {
    const dts_plan *plan = w->b->plan;
    const dts_stack *stack = plan->job.stack;
    if (!dts_plan_accumulates_by_kernel(plan) || (stack->zero_grad_to_none && w->pass->first_microbatch) ||
        dts_sync_takes_gradients(w->pass->sync)) {
        return;
    }
    for (int i = 0; i < DTS_PARAMETER_TENSORS; i++) {
        if (o->parameters[i] > 0) {
            const double stored_B = o->parameters[i] * plan->storage.gradient_B;
            double cast_B = 0, add_B = 0;
            dts_accumulate_copies(plan, o->parameters[i], &cast_B, &add_B);
            const dts_gpu *gpu = &plan->job.cluster->gpu;
            dts_task_info info = task_info(w, DTS_ROLE_BACKWARD_WEIGHT, layer, "accumulate_gradient", 0);
            if (cast_B > 0) {
                /* beside the stored ones, and far larger than what activations leave in the allocator's cache */
                dts_id cast = dts_walk_kernels(w, 1, dts_gpu_memory_s(gpu, cast_B), &info);
                dts_walk_memory(w, cast, DTS_AT_START, DTS_MEMORY_GRADIENTS, stored_B);
            }
            dts_id added = dts_walk_kernels(w, 1, dts_gpu_memory_s(gpu, add_B), &info);
            dts_walk_memory(w, added, DTS_AT_END, DTS_MEMORY_GRADIENTS, cast_B > 0 ? -stored_B : 0);
        }
    }
}

/* Do the transfers of a product run beside its two products in backward: the gather of the input beside the gradient of
 * the input, its reduction beside the gradient of the weight? Where both are parts of one pass. */
static bool overlaps_transfers(const dts_builder *b, const dts_operator *o, bool split) {
    return o->kind == DTS_OPERATOR_GEMM && o->weight && !split && dts_overlaps_tensor(b->plan);
}

/* Input gradient of an operator; the chain's next operator needs it. Frees what is not needed for a weight gradient. */
static void backward_input(walk *w, dts_part part, size_t index, int32_t layer, bool keeps_saved, bool split) {
    const dts_operator *o = &w->b->work[part].operators.items[index];
    const dts_operator_times *t = &w->b->work[part].times[index];
    dts_walk_branch(w, o);
    dts_walk_capture(w, o);
    dts_task_info info = task_info(w, DTS_ROLE_BACKWARD, layer, o->name, t->backward_input_flops);
    w->gradient = true;
    dts_exchange behind = o->backward_exchange;
    const bool overlaps = overlaps_transfers(w->b, o, split);
    const bool again = overlaps && o->gathers_again_B > 0;
    w->again = again ? add_collective_beside(w, DTS_GROUP_TENSOR, o->gathers_again_B, DTS_EXCHANGE_ALL_GATHER,
                                             dts_async_takes(w, part, o, DTS_EXCHANGE_ALL_GATHER), &info)
                     : DTS_NO_ID;
    dts_id first = add_operator(w, o, t->backward_input_kernels, t->backward_input_s, &behind, &info);
    if (first != DTS_NO_ID) {
        dts_walk_memory(w, first, DTS_AT_START, DTS_MEMORY_TEMPORARY, o->input_B);
        use_workspace(w, first, DTS_AT_START, o, 1);
        use_workspace(w, w->last, DTS_AT_END, o, -1);
        w->gradient_B = keeps_saved && !split ? w->handed_B : 0;
        dts_walk_memory(w, w->last, DTS_AT_END, DTS_MEMORY_TEMPORARY, w->gradient_B - w->handed_B);
        bool held = part == DTS_PART_HEAD && index + 1 == w->b->work[part].operators.count &&
                    dts_held_outputs_B(w->b, w->pass) > 0;
        if (!keeps_saved && !held) {
            save_tensors(w, w->last, DTS_AT_END, o, -1);
        } else if (keeps_saved && split) { /* for its weight's gradient: its input, and the gradient of its output */
            save_others(w, w->last, DTS_AT_END, o, -1);
        }
        dts_walk_memory(w, w->last, DTS_AT_END, DTS_MEMORY_ACTIVATIONS, keeps_saved && split ? o->output_B : 0);
        w->handed_B = o->input_B;
    } else if (!keeps_saved && t->forward_kernels > 0) { /* the kernels behind it were the last to need them */
        save_tensors(w, w->last, DTS_AT_END, o, -1);
    }
    const bool whole = behind == DTS_EXCHANGE_ALL_REDUCE ||
                       (behind == DTS_EXCHANGE_REDUCE_SCATTER && dts_reduces_beside(w->b->plan, o));
    if (overlaps && whole) {
        w->deferred = add_collective_beside(w, DTS_GROUP_TENSOR, o->exchange_B, behind,
                                            dts_async_takes(w, part, o, behind), &info);
    } else {
        add_exchange(w, o, behind, &info);
    }
}

/* The chain goes on with what was scattered beside the weight gradient. */
static void resume_chain(walk *w) {
    if (w->deferred != DTS_NO_ID) {
        w->last = w->deferred;
        w->waits[DTS_WAIT_INPUT] = w->deferred;
        w->deferred = DTS_NO_ID;
    }
}

/* A new gradient is a tensor of its own until it has been added to, or copied into, the stored one. Where one backward
 * call covers all microbatches of a flush (torch Pipe), autograd sums them in that tensor and hands it over after the
 * last: a copy of the gradients beside the stored ones. */
static void hold_fresh_gradient(walk *w, const dts_operator *o, dts_id first) {
    const dts_plan *plan = w->b->plan;
    double bytes = 0;
    for (int i = 0; i < DTS_PARAMETER_TENSORS; i++) {
        bytes += o->parameters[i] * plan->storage.fresh_gradient_B;
    }
    if (!dts_plan_accumulates_by_kernel(plan)) {
        return;
    }
    bool first_one = w->pass->first_microbatch;
    bool sums = w->pass->summed != 0 && !dts_sync_takes_gradients(w->pass->sync);
    bool stays = !dts_plan_replicates(plan) && plan->job.offload->gradients == DTS_OFFLOAD_NONE;
    if (stays && (first_one || (sums && (w->pass->summed & DTS_SUMMED_AGAIN) == 0))) {
        for (int i = 0; i < DTS_PARAMETER_TENSORS && first_one; i++) { /* it becomes the stored one itself */
            dts_tensor_born(w->b, w->pass->stage, first, o->parameters[i] * plan->storage.gradient_B);
        }
        return;
    }
    bool keeps = (plan->job.stack->ddp_keeps_fresh && plan->job.parallelism->data_parallel == DTS_DP_DDP &&
                  dts_plan_replicates_set(plan, dts_operator_set(plan, o)) && !sums && first_one) ||
                 dts_plan_clips_microbatches(plan);
    bool allocates = !sums || (w->pass->summed & DTS_SUMMED_FIRST) != 0;
    bool frees = !keeps && (!sums || (w->pass->summed & DTS_SUMMED_LAST) != 0);
    w->pass->stage->fresh_B += keeps ? floor(bytes) : 0;
    if (allocates && first != DTS_NO_ID) {
        dts_block_allocate(w->b, first, w->pass->stage, DTS_MEMORY_TEMPORARY, bytes);
    }
    dts_walk_memory(w, w->pass->stage->last_kernel, DTS_AT_END, DTS_MEMORY_TEMPORARY, frees ? -bytes : 0);
}

/* Weight gradient of an operator, and its hand-over to data parallelism in the last microbatch. */
static void backward_weight(walk *w, dts_part part, size_t index, int32_t layer, bool frees_saved, bool split) {
    const dts_operator *o = &w->b->work[part].operators.items[index];
    const dts_operator_times *t = &w->b->work[part].times[index];
    dts_walk_branch(w, o);
    dts_walk_capture(w, o);
    if (o->gathers_again_B > 0) {
        /* sequence parallelism kept a shard of the input; the weight gradient needs all of it */
        dts_task_info again = task_info(w, DTS_ROLE_COMMUNICATION, layer, o->name, 0);
        if (w->again == DTS_NO_ID) {
            w->again = add_collective(w, DTS_GROUP_TENSOR, o->gathers_again_B, DTS_EXCHANGE_ALL_GATHER, &again);
        }
        w->waits[DTS_WAIT_INPUT] = w->again;
        w->again = DTS_NO_ID;
    }
    dts_task_info info = task_info(w, DTS_ROLE_BACKWARD_WEIGHT, layer, o->name, t->backward_weight_flops);
    dts_id first = dts_walk_kernels(w, t->backward_weight_kernels, t->backward_weight_s, &info);
    if (frees_saved && split && o->backward_kernels > 0) { /* what the pass of the input's gradient has left */
        save_own(w, w->last, DTS_AT_END, o, -1);
        dts_walk_memory(w, w->last, DTS_AT_END, DTS_MEMORY_ACTIVATIONS, -o->output_B);
    } else if (frees_saved) {
        save_tensors(w, w->last, DTS_AT_END, o, -1);
    }
    dts_walk_memory(w, w->pass->stage->last_kernel, DTS_AT_END, DTS_MEMORY_TEMPORARY, -w->gradient_B);
    w->gradient_B = 0;
    if (dts_operator_has_parameters(o)) {
        first = first == DTS_NO_ID ? w->pass->stage->last_kernel : first;
        accumulate_gradients(w, o, layer);
        dts_sync_gradient(w->pass->sync, dts_operator_set(w->b->plan, o), o->parameters, DTS_PARAMETER_TENSORS,
                          w->pass->last_microbatch);
        hold_fresh_gradient(w, o, first);
    }
}

/* First operator of the run of selectively repeated operators before index; casts of weights may stand among them. */
static size_t repeated_run_start(const dts_builder *b, dts_part part, size_t index) {
    const dts_operator *items = b->work[part].operators.items;
    size_t first = index;
    while (index > 0 &&
           (dts_operator_repeats(b->plan, &items[index - 1]) || dts_operator_has_copy(b->plan, &items[index - 1]))) {
        index--;
        first = dts_operator_has_copy(b->plan, &items[index]) ? first : index;
    }
    return first;
}

/* The product at which recomputation stops: its parameters have been asked for, its input is kept. */
static void stop_at_operator(walk *w, dts_part part, size_t index) {
    gather_product(w, index);
    save_tensors(w, w->last, DTS_AT_END, &w->b->work[part].operators.items[index], 1);
    dts_sync_after_product(w->pass->sync, w->pass->chunk, w->position, index, DTS_PRODUCT_NO_GRADIENT, w->last);
}

/* Repeats the forward of operators first to end, or of those that are chosen, with what their backward needs. */
static void recompute_operators(walk *w, dts_part part, size_t first, size_t end, int32_t layer, bool all, bool stops) {
    /* the gradients on the chain are no outputs of these */
    const bool branched = w->branched, beside = w->beside;
    const dts_branch other = w->other;
    const double gradient_B = w->handed_B;
    w->branched = w->beside = false;
    w->handed_B = 0;
    const size_t again = stops && w->b->work[part].again < end ? w->b->work[part].again : end;
    const dts_operator *items = w->b->work[part].operators.items;
    for (size_t i = first; i < again; i++) {
        if (all || dts_operator_repeats(w->b->plan, &items[i])) {
            forward_operator(w, part, i, layer, DTS_ROLE_RECOMPUTE, true);
        }
    }
    if (again < end) {
        stop_at_operator(w, part, again);
    }
    dts_walk_branch(w, NULL);
    dts_walk_drop_handed(w);
    w->handed_B = gradient_B;
    w->branched = branched;
    w->beside = beside;
    w->other = other;
}

static void backward_operators(walk *w, dts_part part, int32_t layer, dts_op_kind kind) {
    const dts_builder *b = w->b;
    const dts_operators *operators = &b->work[part].operators;
    const bool selective = b->plan->job.training->recompute.kind == DTS_RECOMPUTE_SELECTIVE;
    size_t repeated_from = operators->count; /* operators from here on have been repeated already */
    for (size_t i = operator_count(w, part); i-- > 0;) {
        const dts_operator *o = &operators->items[i];
        const bool product = dts_operator_splits(o);
        if (kind != DTS_OP_BACKWARD_WEIGHT) {
            const bool repeats = dts_operator_repeats(b->plan, o);
            if ((repeats || (o->reads_repeated && selective)) && i < repeated_from) {
                const size_t end = repeats ? i + 1 : i;
                repeated_from = repeated_run_start(b, part, end);
                recompute_operators(w, part, repeated_from, end, layer, false, false);
            }
            gather_product(w, i);
            backward_input(w, part, i, layer, product, kind == DTS_OP_BACKWARD_INPUT);
        }
        if (kind != DTS_OP_BACKWARD_INPUT) {
            backward_weight(w, part, i, layer, product, kind == DTS_OP_BACKWARD_WEIGHT);
            dts_sync_after_product(w->pass->sync, w->pass->chunk, w->position, i,
                                   w->pass->last_microbatch ? DTS_PRODUCT_LAST_GRADIENT : DTS_PRODUCT_GRADIENT,
                                   w->pass->stage->last_kernel);
        }
        resume_chain(w);
    }
    dts_walk_branch(w, NULL);
    dts_walk_capture(w, NULL);
}

void dts_step_lower(dts_walk *w, const dts_step *s) {
    size_t count = operator_count(w, s->part);
    const dts_operators *operators = &w->b->work[s->part].operators;
    w->held = s->held ? dts_input_keeper(w->b->plan, operators, w->b->boundary_B) : NULL;
    switch (s->action) {
        case DTS_BLOCK_FORWARD:
            for (size_t i = 0; i < count; i++) {
                bool keep = s->keeps && !dts_operator_repeats(w->b->plan, &operators->items[i]);
                forward_operator(w, s->part, i, s->layer, DTS_ROLE_FORWARD, keep);
            }
            dts_walk_branch(w, NULL);
            dts_walk_capture(w, NULL);
            break;
        case DTS_BLOCK_RECOMPUTE:
            recompute_operators(w, s->part, 0, count, s->layer, true, s->ends);
            dts_walk_capture(w, NULL);
            break;
        case DTS_BLOCK_BACKWARD:
            backward_operators(w, s->part, s->layer, DTS_OP_BACKWARD);
            break;
        case DTS_BLOCK_BACKWARD_INPUT:
            backward_operators(w, s->part, s->layer, DTS_OP_BACKWARD_INPUT);
            break;
        case DTS_BLOCK_BACKWARD_WEIGHT:
            backward_operators(w, s->part, s->layer, DTS_OP_BACKWARD_WEIGHT);
            break;
    }
}
