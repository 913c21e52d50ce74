/* Questions about operators and plans that need no task graph: what is split, repeated, kept or reduced, and where. */
#include <math.h>

#include "plan/lower/chunk_pass.h"
#include "plan/lower/work.h"

dts_parameter_set dts_operator_set(const dts_plan *plan, const dts_operator *o) {
    return o->experts && dts_plan_experts_apart(plan) ? DTS_SET_EXPERTS : DTS_SET_COMMON;
}

int64_t dts_operator_tensors(const dts_plan *plan, const dts_operator *o) {
    return o->experts && plan->job.stack->experts != DTS_EXPERTS_GROUPED && o->batch > 1 ? o->batch : 1;
}

size_t dts_head_outputs(const dts_part_work *head) {
    const dts_operators *operators = &head->operators;
    size_t count = operators->count;
    while (count > 1 && operators->items[count - 1].kind != DTS_OPERATOR_GEMM) {
        count--; /* the last product makes the logits */
    }
    return count;
}

const dts_part_work *dts_layer_work(const dts_builder *b, int64_t layer) {
    return &b->work[dts_model_layer_part(b->plan->job.model, layer)];
}

double dts_held_outputs_B(const dts_builder *b, const dts_pass *pass) {
    const dts_operators *head = &b->work[DTS_PART_HEAD].operators;
    bool holds =
        b->plan->job.model->loss == DTS_LOSS_SUM && b->plan->pipeline == 1 && pass->chunk->head && !pass->outputs_only;
    return holds ? head->items[head->count - 1].saved_B : 0;
}

bool dts_operator_splits(const dts_operator *o) {
    return o->kind == DTS_OPERATOR_GEMM && o->weight && !o->constant;
}

/* Does it cast a weight whose copy is still there in backward? */
bool dts_operator_has_copy(const dts_plan *plan, const dts_operator *o) {
    return o->casts_weight || (o->weight_copy_B > 0 && dts_plan_keeps_weight_copies(plan));
}

/* Is this operator's forward repeated in backward by selective recomputation? */
bool dts_operator_repeats(const dts_plan *plan, const dts_operator *o) {
    return plan->job.training->recompute.kind == DTS_RECOMPUTE_SELECTIVE && o->recomputed_selectively &&
           !dts_operator_has_copy(plan, o);
}

const dts_operator *dts_input_keeper(const dts_plan *plan, const dts_operators *operators, double boundary_B) {
    for (size_t i = 0; i < operators->count; i++) {
        const dts_operator *o = &operators->items[i];
        if (o->saved_B > 0 && o->forward_kernels > 0 && !dts_operator_repeats(plan, o)) {
            return o->saved_B >= floor(boundary_B) ? o : NULL; /* less: a narrower copy */
        }
    }
    return NULL;
}

bool dts_overlaps_tensor(const dts_plan *plan) {
    const dts_job *job = &plan->job;
    int least = job->parallelism->sequence ? DTS_BACKWARD_OVERLAP_SEQUENCE : DTS_BACKWARD_OVERLAP_ALL;
    return plan->tensor > 1 && (plan->async_tensor || job->stack->tensor_backward_overlap >= least);
}

bool dts_operator_has_parameters(const dts_operator *o) {
    return o->parameters[0] > 0 || o->parameters[1] > 0;
}

bool dts_reduces_beside(const dts_plan *plan, const dts_operator *o) {
    const dts_stack *stack = plan->job.stack;
    return o->gathers_again_B > 0 || (stack->keeps_gathered && !stack->separate_qkv && dts_operator_has_parameters(o));
}

bool dts_operator_is_linear(const dts_operator *o) {
    return o->kind == DTS_OPERATOR_GEMM && o->weight && (o->parameters[0] > 0 || o->frozen_B > 0);
}

dts_group_kind dts_exchange_group(const dts_operator *o, dts_exchange exchange) {
    return exchange == DTS_EXCHANGE_ALL_TO_ALL ? DTS_GROUP_EXPERT
           : o->among_experts                  ? DTS_GROUP_EXPERT_TENSOR
                                               : DTS_GROUP_TENSOR;
}

dts_collective dts_exchange_collective(dts_exchange exchange) {
    static const dts_collective kinds[] = {[DTS_EXCHANGE_ALL_REDUCE] = DTS_ALL_REDUCE,
                                           [DTS_EXCHANGE_ALL_GATHER] = DTS_ALL_GATHER,
                                           [DTS_EXCHANGE_REDUCE_SCATTER] = DTS_REDUCE_SCATTER,
                                           [DTS_EXCHANGE_ALL_TO_ALL] = DTS_ALL_TO_ALL};
    return kinds[exchange];
}

bool dts_build_blocks(const dts_builder *b) {
    return b->plan->job.cluster->host.launch_blocking;
}

int64_t dts_p2p_sms(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    if (plan->pipeline == 1 || !dts_plan_overlaps_p2p(plan, plan->method)) {
        return 0;
    }
    bool inside = true;
    for (int64_t p = 1; p < plan->pipeline; p++) {
        inside &= plan->stage_node[p] == plan->stage_node[0];
    }
    return inside ? stack->p2p_node_sms : stack->p2p_sms;
}
