/* From operators to kernel times: the only place where the model's shapes meet the GPU's costs.
 *
 * A product C(m, n) = A(m, k)·B(k, n) has two products in backward: the gradient of A, (m, n)·(n, k), and of B,
 * (k, m)·(m, n). Those with weights give an input and a weight gradient; those of two activations (attention scores and
 * context) count both as input gradients, because both carry on the chain. */
#include "plan/lower/work.h"

#include <string.h>

#include "plan/lower/walk.h"

double dts_build_gemm_s(const dts_builder *b, const dts_operator *o, int64_t m, int64_t n, int64_t k,
                        bool weight_gradient) {
    dts_gemm_shape shape = {.batch = o->batch, .m = m, .n = n, .k = k, .weight_gradient = weight_gradient};
    dts_numeric format = o->quantised ? b->plan->storage.product : b->plan->storage.compute;
    return dts_gpu_gemm_s(&b->plan->job.cluster->gpu, format, &shape);
}

/* Time of kernels that together move bytes: each pays the floor of a small kernel. */
static double memory_s(const dts_builder *b, double bytes, int kernels) {
    return kernels <= 0 ? 0 : kernels * dts_gpu_memory_s(&b->plan->job.cluster->gpu, bytes / kernels);
}

static void gemm_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t) {
    double flops = 2.0 * (double)o->batch * (double)o->m * (double)o->n * (double)o->k;
    t->forward_flops = flops;
    t->forward_s = dts_build_gemm_s(b, o, o->m, o->n, o->k, false) + memory_s(b, o->forward_B, o->forward_kernels - 1);
    double of_a = dts_build_gemm_s(b, o, o->m, o->k, o->n, false);
    /* kernels beyond the two products (the bias gradient's reduction, casts) move backward_B bytes */
    int extra = o->backward_kernels - 2;
    if (o->weight) {
        t->backward_input_s = of_a;
        t->backward_weight_s = dts_build_gemm_s(b, o, o->k, o->n, o->m, true) + memory_s(b, o->backward_B, extra);
        t->backward_input_kernels = 1;
        t->backward_weight_kernels = 1 + (extra > 0 ? extra : 0);
        t->backward_input_flops = flops;
        t->backward_weight_flops = flops;
    } else {
        t->backward_input_s =
            of_a + dts_build_gemm_s(b, o, o->k, o->n, o->m, false) + memory_s(b, o->backward_B, extra);
        t->backward_input_kernels = 2 + (extra > 0 ? extra : 0);
        t->backward_input_flops = 2 * flops;
    }
}

double dts_build_attention_s(const dts_builder *b, const dts_attention_shape *shape) {
    return dts_gpu_attention_s(&b->plan->job.cluster->gpu, b->plan->storage.compute, shape) /
           b->plan->job.stack->flash_speed;
}

static void attention_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t) {
    dts_attention_shape shape = {.batch = o->batch,
                                 .heads = o->heads,
                                 .kv_heads = o->kv_heads,
                                 .head_dim = o->head_dim,
                                 .query_length = o->query_length,
                                 .key_length = o->key_length,
                                 .causal = o->causal};
    t->forward_s = dts_build_attention_s(b, &shape);
    shape.backward = true;
    t->backward_input_s = dts_build_attention_s(b, &shape);
    t->backward_input_kernels = o->backward_kernels;
    /* two products of (query, head_dim)·(head_dim, key) forward, five in backward (one recomputed) */
    t->forward_flops = 4.0 * (double)o->batch * (double)o->heads * (double)o->query_length * (double)o->key_length *
                       (double)o->head_dim;
    t->backward_input_flops = 2 * t->forward_flops;
    if (b->plan->context > 1) {
        dts_context_times(b, o, t);
    }
}

static void operator_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t) {
    t->forward_kernels = o->forward_kernels;
    switch (o->kind) {
        case DTS_OPERATOR_GEMM:
            gemm_times(b, o, t);
            break;
        case DTS_OPERATOR_ATTENTION:
            attention_times(b, o, t);
            break;
        case DTS_OPERATOR_MEMORY:
            t->forward_s = memory_s(b, o->forward_B, o->forward_kernels);
            t->backward_input_s = memory_s(b, o->backward_B, o->backward_kernels);
            t->backward_input_kernels = o->backward_kernels;
            break;
    }
}

/* Recomputation by operators keeps the outputs of fused attention and of every second product, and of the layer its
 * input; all else is repeated. What is kept is counted at the operator that made it. */
static void keep_every_second_product(dts_part_work *work) {
    int products = 0;
    bool first = true;
    for (size_t i = 0; i < work->operators.count; i++) {
        dts_operator *o = &work->operators.items[i];
        bool product = o->kind == DTS_OPERATOR_GEMM && o->weight;
        products += product;
        bool kept = o->kind == DTS_OPERATOR_ATTENTION || (product && products % 2 == 1);
        o->recomputed_selectively = !kept;
        if (kept) {
            o->saved_B = o->output_B + (first ? o->input_B : 0);
            first = false;
        }
    }
}

dts_status dts_build_work(dts_builder *b) {
    dts_execution execution = dts_plan_execution(b->plan);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        dts_part_work *work = &b->work[part];
        dts_status status =
            dts_model_operators(b->plan->job.model, (dts_part)part, &execution, b->arena, &work->operators, b->diag);
        if (status != DTS_OK) {
            return status;
        }
        if (part == DTS_PART_LAYER && b->plan->job.stack->selective == DTS_SELECTIVE_OPERATORS &&
            b->plan->job.training->recompute.kind == DTS_RECOMPUTE_SELECTIVE) {
            keep_every_second_product(work);
        }
        work->times = dts_arena_array(b->arena, work->operators.count, sizeof *work->times);
        if (work->times == NULL) {
            return dts_diag_nomem(b->diag);
        }
        for (size_t i = 0; i < work->operators.count; i++) {
            dts_operator *o = &work->operators.items[i];
            if (b->plan->context > 1 && o->kind == DTS_OPERATOR_ATTENTION) {
                o->saved_B += dts_context_saved_B(b, o);
            }
            operator_times(b, o, &work->times[i]);
            work->saved_B += o->saved_B;
            work->quantised += o->quantised ? o->parameters[0] : 0;
            for (int p = 0; p < DTS_PARAMETER_TENSORS; p++) {
                work->parameters += o->parameters[p];
                work->tensors += o->parameters[p] > 0;
            }
        }
    }
    return DTS_OK;
}

dts_status dts_lower_work(const dts_plan *plan, dts_arena *arena, dts_part_work out[DTS_PART_COUNT], dts_diag *diag) {
    dts_builder b = {.plan = plan, .arena = arena, .diag = diag};
    dts_status status = dts_build_work(&b);
    memcpy(out, b.work, sizeof b.work);
    return status;
}

size_t dts_head_outputs(const dts_builder *b) {
    const dts_operators *operators = &b->work[DTS_PART_HEAD].operators;
    size_t count = operators->count;
    while (count > 1 && operators->items[count - 1].kind != DTS_OPERATOR_GEMM) {
        count--; /* the last product makes the logits */
    }
    return count;
}

/* A tied output projection whose embedding lives on another rank is a second copy of it, elements on one
 * tensor-parallel rank. */
static double tied_copy(const dts_plan *plan) {
    const dts_model *model = plan->job.model;
    return dts_plan_ties_across(plan) ? (double)model->vocab * (double)model->hidden / (double)plan->tensor : 0;
}

static void count_chunk(dts_builder *b, dts_stage *stage, const dts_chunk *chunk) {
    stage->parameters += b->work[DTS_PART_LAYER].parameters * (double)chunk->layers;
    stage->quantised += b->work[DTS_PART_LAYER].quantised * (double)chunk->layers;
    stage->parameters += chunk->embedding ? b->work[DTS_PART_EMBEDDING].parameters : 0;
    if (chunk->head) {
        stage->tied_copy = tied_copy(b->plan);
        stage->parameters += b->work[DTS_PART_HEAD].parameters + stage->tied_copy;
    }
}

void dts_build_count_parameters(dts_builder *b) {
    const dts_plan *plan = b->plan;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        for (int64_t v = 0; v < plan->virtual_stages; v++) {
            count_chunk(b, &b->stages[p], &plan->chunks[dts_plan_stage(plan, p, v)]);
        }
    }
}
