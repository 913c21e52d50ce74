/* Data parallelism in one process (torch.nn.DataParallel): GPU 0 leads, the others are replicas for one pass.
 *
 * Every microbatch makes five exchanges [1], [2], with n replicas on one node, P parameters and L bytes of outputs (the
 * result of the last product) each:
 *   1 GPU 0 scatters the inputs          (n-1) · 8 B · micro_batch · sequence
 *   2 GPU 0 broadcasts the parameters    P · B/element: the ring, or the links of GPU 0
 *   3 outputs are gathered on GPU 0      (n-1) · L, into GPU 0's link; there the loss of all replicas is computed
 *   4 GPU 0 scatters the gradients of the outputs   (n-1) · L
 *   5 gradients are reduced to GPU 0     P · B/element, when backward is done on all: nothing overlaps it
 * and only GPU 0 takes the optimizer step. Broadcast and reduction are coalesced; each is one transfer here. One thread
 * issues the forward passes of all replicas (Python's lock lets one at a time run), here in turns of a part of the
 * model; backward is issued by the autograd thread of each GPU. Replicas are devices of their own: what is reported is
 * GPU 0, which waits for the others (bubble) and they for it.
 *
 * [1] Hugging Face, "Efficient Training on Multiple GPUs", DataParallel vs DistributedDataParallel.
 * [2] PyTorch, torch/nn/parallel/data_parallel.py, replicate.py, _functions.py (Broadcast, ReduceAddCoalesced). */
#include "plan/lower/builder.h"

static const double token_B = 8; /* int64 */

typedef struct replicas {
    dts_builder *b;
    dts_gradient_sync **syncs;
    dts_pass *passes; /* [count] */
    dts_id *made;     /* [count] latest task of each */
    size_t count;
    double output_B;      /* of one replica */
    size_t first_of_loss; /* operators of the head from here on are the loss */
    double loss_saved_B;  /* of one replica */
} replicas;

static dts_task_info exchange_info(int64_t microbatch, const char *name) {
    return (dts_task_info){.group = DTS_GROUP_DATA, .microbatch = (int32_t)microbatch, .layer = -1, .name = name};
}

/* From GPU 0 to all others; each arrival is what that replica waits for. */
static void scatter(replicas *r, double bytes, dts_id after, int64_t microbatch, const char *name) {
    dts_task_info info = exchange_info(microbatch, name);
    for (size_t i = 1; i < r->count; i++) {
        r->made[i] = dts_build_send(r->b, &r->b->stages[0], &r->b->stages[i], true, false, bytes, after, &info);
    }
}

/* The loss of all replicas' outputs on GPU 0, forward or backward; returns its last kernel. */
static dts_id add_loss(replicas *r, bool backward, int64_t microbatch) {
    dts_builder *b = r->b;
    const dts_part_work *head = &b->work[DTS_PART_HEAD];
    dts_stage *leader = &b->stages[0];
    dts_id last = DTS_NO_ID;
    for (size_t n = r->first_of_loss; n < head->operators.count; n++) {
        size_t i = backward ? head->operators.count - 1 - (n - r->first_of_loss) : n;
        const dts_operator_times *t = &head->times[i];
        int kernels = backward ? t->backward_input_kernels : t->forward_kernels;
        double duration_s = (backward ? t->backward_input_s : t->forward_s) * (double)r->count;
        dts_task_info info = {.role = backward ? DTS_ROLE_BACKWARD : DTS_ROLE_FORWARD,
                              .microbatch = (int32_t)microbatch,
                              .layer = (int32_t)(b->plan->job.model->layers + 1),
                              .name = head->operators.items[i].name};
        for (int k = 0; k < kernels; k++) {
            last = dts_build_kernel(b, leader, duration_s / kernels, backward, DTS_NO_ID, &info);
            for (size_t other = 0; other < r->count; other++) {
                dts_graph_depend(b->graph, last, r->made[other]);
            }
        }
    }
    return last == DTS_NO_ID ? r->made[0] : last;
}

/* 3 and 4: outputs come to GPU 0, their gradients go back. */
static void exchange_outputs(replicas *r, int64_t microbatch) {
    dts_builder *b = r->b;
    dts_stage *leader = &b->stages[0];
    dts_task_info gather = exchange_info(microbatch, "gather outputs");
    for (size_t i = 1; i < r->count; i++) {
        r->made[i] = dts_build_send(b, &b->stages[i], leader, false, false, r->output_B, r->made[i], &gather);
    }
    double held_B = (r->output_B + r->loss_saved_B) * (double)r->count;
    dts_build_memory(b, r->made[0], DTS_AT_END, leader, DTS_MEMORY_TEMPORARY, held_B);
    r->made[0] = add_loss(r, false, microbatch);
    r->made[0] = add_loss(r, true, microbatch);
    scatter(r, r->output_B, r->made[0], microbatch, "scatter output gradients");
    dts_build_memory(b, r->made[r->count - 1], DTS_AT_END, leader, DTS_MEMORY_TEMPORARY, -held_B);
}

/* 5: the gradients of all replicas are added up on GPU 0, and there to what it has. */
static void reduce_gradients(replicas *r, int64_t microbatch) {
    dts_builder *b = r->b;
    const dts_plan *plan = b->plan;
    dts_stage *leader = &b->stages[0];
    double gradient_B = dts_stage_parameters(leader) * plan->storage.gradient_B;
    dts_task_info info = exchange_info(microbatch, "reduce gradients");
    dts_id reduce = dts_build_collective(b, leader, DTS_GROUP_DATA, DTS_REDUCE, gradient_B, true, r->made[0], &info);
    dts_build_memory(b, reduce, DTS_AT_START, leader, DTS_MEMORY_TEMPORARY, gradient_B);
    for (size_t i = 1; i < r->count; i++) {
        dts_graph_depend(b->graph, reduce, r->made[i]);
        dts_build_memory(b, reduce, DTS_AT_START, &b->stages[i], DTS_MEMORY_GRADIENTS, gradient_B);
        dts_build_memory(b, reduce, DTS_AT_END, &b->stages[i], DTS_MEMORY_GRADIENTS, -gradient_B);
        dts_build_memory(b, reduce, DTS_AT_END, &b->stages[i], DTS_MEMORY_PARAMETERS,
                         -dts_stage_parameters(leader) * plan->storage.parameter_B);
    }
    dts_id added = reduce;
    const dts_stack *stack = plan->job.stack;
    if (dts_plan_accumulates_by_kernel(plan) && !(stack->zero_grad_to_none && microbatch == 0)) {
        dts_task_info add = {.role = DTS_ROLE_BACKWARD_WEIGHT,
                             .microbatch = (int32_t)microbatch,
                             .layer = -1,
                             .name = "accumulate_gradient"};
        added =
            dts_build_kernel(b, leader, dts_gpu_memory_s(&plan->job.cluster->gpu, 3 * gradient_B), true, reduce, &add);
    }
    dts_build_memory(b, added, DTS_AT_END, leader, DTS_MEMORY_TEMPORARY, -gradient_B);
    dts_sync_reduced(r->syncs[0], added);
}

static void add_microbatch(replicas *r, int64_t microbatch) {
    dts_builder *b = r->b;
    const dts_plan *plan = b->plan;
    dts_stage *leader = &b->stages[0];
    const dts_training *training = plan->job.training;
    dts_id arrived = dts_input_take(b, leader, microbatch);
    double sample_B =
        plan->job.input->sample_B > 0 ? plan->job.input->sample_B : token_B * (double)training->sequence_length;
    scatter(r, sample_B * (double)training->micro_batch, arrived, microbatch, "scatter inputs");
    double parameters_B = dts_stage_parameters(leader) * plan->storage.parameter_B;
    dts_task_info info = exchange_info(microbatch, "broadcast parameters");
    dts_id replicated = dts_build_collective(b, leader, DTS_GROUP_DATA, DTS_BROADCAST, parameters_B, false,
                                             r->made[r->count - 1], &info);
    for (size_t i = 0; i < r->count; i++) {
        dts_build_memory(b, replicated, DTS_AT_START, &b->stages[i], DTS_MEMORY_PARAMETERS, i > 0 ? parameters_B : 0);
        r->passes[i] = (dts_pass){.stage = &b->stages[i],
                                  .chunk = &plan->chunks[0],
                                  .sync = r->syncs[i],
                                  .microbatch = microbatch,
                                  .first_microbatch = microbatch == 0,
                                  .last_microbatch = microbatch == plan->microbatches - 1,
                                  .outputs_only = true,
                                  .input = replicated};
    }
    dts_build_forwards(b, r->passes, r->count, r->made);
    exchange_outputs(r, microbatch);
    for (size_t i = 0; i < r->count; i++) {
        r->passes[i].input = r->made[i];
        r->made[i] = dts_build_backward(b, &r->passes[i], DTS_OP_BACKWARD);
        r->made[i] = b->stages[i].last_kernel;
    }
    dts_input_leave(b, leader, microbatch, leader->last_kernel);
    reduce_gradients(r, microbatch);
}

dts_status dts_build_single_process(dts_builder *b, dts_gradient_sync **syncs) {
    const dts_part_work *head = &b->work[DTS_PART_HEAD];
    replicas r = {.b = b, .syncs = syncs, .count = (size_t)b->plan->data};
    r.first_of_loss = dts_head_outputs(&b->work[DTS_PART_HEAD]);
    r.output_B = head->operators.items[r.first_of_loss - 1].output_B;
    for (size_t i = r.first_of_loss; i < head->operators.count; i++) {
        r.loss_saved_B += head->operators.items[i].saved_B;
    }
    r.passes = dts_arena_array(b->arena, r.count, sizeof *r.passes);
    r.made = dts_arena_array(b->arena, r.count, sizeof *r.made);
    if (r.passes == NULL || r.made == NULL) {
        return dts_diag_nomem(b->diag);
    }
    for (int64_t microbatch = 0; microbatch < b->plan->microbatches; microbatch++) {
        r.made[0] = b->stages[0].last_kernel;
        add_microbatch(&r, microbatch);
    }
    return DTS_OK;
}
