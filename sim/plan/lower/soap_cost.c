/* What the parts of an operator cost. A kernel takes what the GPU needs, at least the host's launch of it. The step of
 * the optimizer moves passes · bytes per element through the device memory. */
#include <math.h>
#include <stdlib.h>

#include "plan/lower/builder.h"
#include "plan/lower/soap_inside.h"

uint32_t dts_soap_streams(const dts_soap_problem *problem) {
    uint32_t nodes = problem->devices / problem->devices_per_node;
    return 3 * problem->devices + 2 * nodes * problem->lanes_per_node;
}

dts_status dts_soap_lowering_new(const dts_soap_problem *problem, dts_soap_lowering **out, dts_diag *diag) {
    *out = NULL;
    dts_soap_lowering *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_plan plan = {.job = {.cluster = problem->cluster, .stack = problem->stack, .training = problem->training},
                     .storage = problem->storage};
    l->problem = problem;
    l->execution = (dts_tensor_op_execution){.element_B = dts_numeric_bytes(problem->storage.activation),
                                             .flash_attention = problem->stack->attention == DTS_ATTENTION_FLASH};
    l->weight_B = problem->storage.parameter_B + problem->storage.gradient_B + problem->storage.optimizer_B;
    l->update_B = dts_optimizer_traffic_B(&plan, &l->update_kernels);
    l->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    l->costs = l->arena == NULL ? NULL : dts_arena_array(l->arena, problem->graph->count, sizeof *l->costs);
    size_t devices = problem->devices;
    l->latest = calloc(devices, sizeof *l->latest);
    l->stamps = calloc(dts_soap_streams(problem), sizeof *l->stamps);
    if (l->costs == NULL || l->latest == NULL || l->stamps == NULL) {
        dts_soap_lowering_free(l);
        return dts_diag_nomem(diag);
    }
    *out = l;
    return DTS_OK;
}

void dts_soap_lowering_free(dts_soap_lowering *lowering) {
    if (lowering != NULL) {
        dts_arena_free(lowering->arena);
        free(lowering->latest);
        free(lowering->stamps);
        free(lowering);
    }
}

static bool from_data(const dts_soap_problem *p, const dts_tensor_op *op) {
    for (size_t k = 0; k < op->input_count; k++) {
        if (p->graph->ops[op->inputs[k]].type != DTS_TENSOR_INPUT) {
            return false;
        }
    }
    return true;
}

static void cost_part(const dts_soap_lowering *l, const dts_tensor_op *op, const dts_box *box, dts_soap_cost *cost) {
    const dts_soap_problem *p = l->problem;
    dts_plan plan = {.job = {.cluster = p->cluster, .stack = p->stack, .training = p->training},
                     .storage = p->storage,
                     .gpus = p->devices};
    dts_builder builder = {.plan = &plan, .slowest = dts_build_slowest(&plan)};
    dts_operator kernels[DTS_PART_KERNELS];
    size_t count = dts_tensor_op_part_work(p->graph, op, box, &l->execution, kernels);
    double forward_s = 0, backward_s = 0;
    for (size_t i = 0; i < count; i++) {
        dts_operator_times t = {0};
        dts_build_operator_times(&builder, &kernels[i], &t);
        /* nobody wants the gradient of the data */
        bool first = kernels[i].weight && from_data(p, op);
        double input_s = first ? 0 : t.backward_input_s;
        int backward_kernels = (first ? 0 : t.backward_input_kernels) + t.backward_weight_kernels;
        forward_s += fmax(t.forward_s, t.forward_kernels * p->stack->launch_s);
        backward_s += fmax(input_s + t.backward_weight_s, backward_kernels * p->stack->backward_launch_s);
    }
    cost->forward = dts_time_from_s(forward_s);
    cost->backward = dts_time_from_s(backward_s);
    cost->parameters = dts_tensor_op_part_parameters(op, box);
    cost->kept_B = dts_tensor_op_part_kept_B(op, box, &l->execution);
    if (cost->parameters > 0) {
        double gpu_s = dts_gpu_memory_s(&p->cluster->gpu, cost->parameters * l->update_B);
        cost->update = dts_time_from_s(fmax(gpu_s, l->update_kernels * p->stack->launch_s));
    }
}

const dts_soap_cost *dts_soap_costs(dts_soap_lowering *l, size_t i, uint32_t cut_index) {
    const dts_soap_problem *p = l->problem;
    const dts_tensor_op *op = &p->graph->ops[i];
    const dts_soap_cut *cut = &p->cuts[i].items[cut_index];
    if (l->costs[i] == NULL) {
        l->costs[i] = dts_arena_array(l->arena, p->cuts[i].count, sizeof **l->costs);
        if (l->costs[i] == NULL) {
            return NULL;
        }
    }
    dts_soap_cost *costs = l->costs[i][cut_index];
    if (costs == NULL) {
        costs = dts_arena_array(l->arena, (size_t)cut->parts, sizeof *costs);
        for (int64_t j = 0; j < cut->parts && costs != NULL; j++) {
            dts_box box = dts_soap_part(op, cut, j);
            cost_part(l, op, &box, &costs[j]);
        }
        l->costs[i][cut_index] = costs;
    }
    return costs;
}
