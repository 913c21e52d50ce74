/* From operators to kernel times: the only place where the model's shapes meet the GPU's costs.
 *
 * A product C(m, n) = A(m, k)·B(k, n) has two products in backward: the gradient of A, (m, n)·(n, k), and of B,
 * (k, m)·(m, n). Those with weights give an input and a weight gradient; those of two activations (attention scores and
 * context) count both as input gradients, because both carry on the chain. */
#include "plan/lower/work.h"

#include <math.h>
#include <string.h>

#include "plan/lower/chunk_pass.h"

/* Time of kernels that together move bytes: each pays the floor of a small kernel. */
static double memory_s(const dts_builder *b, double bytes, int kernels) {
    return kernels <= 0 ? 0 : kernels * dts_gpu_memory_s(&b->plan->job.cluster->gpu, bytes / kernels);
}

/* Products of experts. Library calls of each expert are kernels of their own. */
static void expert_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t) {
    const dts_gpu *gpu = &b->plan->job.cluster->gpu;
    dts_numeric format = dts_plan_product_format(b->plan, o, false);
    dts_expert_style style = (dts_expert_style)b->plan->job.stack->experts;
    dts_gemm_shape forward = {.batch = o->batch, .m = o->m, .n = o->n, .k = o->k};
    dts_gemm_shape input = {.batch = o->batch, .m = o->m, .n = o->k, .k = o->n};
    dts_gemm_shape weight = {.batch = o->batch, .m = o->k, .n = o->n, .k = o->m, .weight_gradient = true};
    forward.timed = &t->forward_timed;
    input.timed = &t->backward_input_timed;
    weight.timed = &t->backward_weight_timed;
    forward.factor = dts_plan_product_factor(b->plan, o, false);
    input.factor = weight.factor = dts_plan_product_factor(b->plan, o, true);
    /* products add to the stored gradient unless a kernel of its own does */
    double sum_B = dts_plan_accumulates_by_kernel(b->plan) ? 0 : b->plan->storage.gradient_B;
    int kernels = style == DTS_EXPERTS_GROUPED ? 1 : (int)o->batch;
    t->forward_s = b->slowest * dts_gpu_expert_gemm_s(gpu, format, &forward, style, 0);
    t->backward_input_s = b->slowest * dts_gpu_expert_gemm_s(gpu, format, &input, style, 0);
    t->backward_weight_s =
        b->slowest * dts_gpu_expert_gemm_s(gpu, dts_plan_product_format(b->plan, o, true), &weight, style, sum_B);
    t->forward_kernels = kernels;
    t->backward_input_kernels = kernels;
    t->backward_weight_kernels = kernels;
    t->forward_flops = dts_operator_flops(o);
    t->backward_input_flops = t->forward_flops;
    t->backward_weight_flops = t->forward_flops;
    if (o->constant) {
        t->backward_weight_s = 0;
        t->backward_weight_kernels = 0;
        t->backward_weight_flops = 0;
    }
}

static void gemm_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t) {
    double flops = dts_operator_flops(o);
    t->forward_flops = flops;
    t->forward_s = dts_build_gemm_s(b, o, o->m, o->n, o->k, DTS_PRODUCT_FORWARD, &t->forward_timed) +
                   memory_s(b, o->forward_B, o->forward_kernels - 1);
    double of_a = dts_build_gemm_s(b, o, o->m, o->k, o->n, DTS_PRODUCT_OF_INPUT, &t->backward_input_timed);
    /* kernels beyond the two products (the bias gradient's reduction, casts) move backward_B bytes */
    int extra = o->backward_kernels - 2;
    if (o->constant) {
        t->backward_input_s = of_a;
        t->backward_input_kernels = 1;
        t->backward_input_flops = flops;
    } else if (o->weight) {
        t->backward_input_s = of_a;
        t->backward_weight_s =
            dts_build_gemm_s(b, o, o->k, o->n, o->m, DTS_PRODUCT_OF_WEIGHT, &t->backward_weight_timed) +
            memory_s(b, o->backward_B, extra);
        t->backward_input_kernels = 1;
        t->backward_weight_kernels = 1 + (extra > 0 ? extra : 0);
        t->backward_input_flops = flops;
        t->backward_weight_flops = flops;
    } else {
        t->backward_input_s = of_a +
                              dts_build_gemm_s(b, o, o->k, o->n, o->m, DTS_PRODUCT_OF_INPUT, &t->backward_input_timed) +
                              memory_s(b, o->backward_B, extra);
        t->backward_input_kernels = 2 + (extra > 0 ? extra : 0);
        t->backward_input_flops = 2 * flops;
    }
}

static void attention_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t) {
    dts_attention_shape shape = {.batch = o->batch,
                                 .heads = o->heads,
                                 .kv_heads = o->kv_heads,
                                 .head_dim = o->head_dim,
                                 .query_length = o->query_length,
                                 .key_length = o->key_length,
                                 .causal = o->causal,
                                 .window = o->window,
                                 .chunked = o->chunked,
                                 .narrow = o->narrow,
                                 .timed = &t->forward_timed};
    t->forward_s = dts_plan_decodes(b->plan) ? dts_kv_attention_s(b, o) : dts_build_attention_s(b, &shape);
    shape.backward = true;
    shape.timed = &t->backward_input_timed;
    t->backward_input_s = dts_build_attention_s(b, &shape);
    t->backward_input_kernels = o->backward_kernels;
    /* two products of (query, head_dim)·(head_dim, key) forward, five in backward (one recomputed) */
    t->forward_flops = dts_operator_flops(o);
    t->backward_input_flops = 2 * t->forward_flops;
    if (b->plan->context > 1) {
        t->forward_timed = t->backward_input_timed = false; /* its calls are of other shapes */
        dts_context_times(b, o, t);
    }
}

static double slowness(const dts_gpu *gpu, const dts_operator *o) {
    switch (o->slow) {
        case DTS_SLOW_ROWS:
            return gpu->gather_factor;
        case DTS_SLOW_LOSS:
            return gpu->loss_factor;
        case DTS_SLOW_NORM:
            return gpu->norm_factor;
        case DTS_SLOW_NOT:
            break;
    }
    return 1;
}

static void memory_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t) {
    const dts_gpu *gpu = &b->plan->job.cluster->gpu;
    const double slower = slowness(gpu, o);
    const double sums_B = (b->plan->job.stack->chunk_sum_factor - 1) * o->pair_sums_B;
    const double dropout_B = (gpu->dropout_factor - 1) * o->dropout_B;
    t->forward_s = memory_s(b, slower * o->forward_B + dropout_B + sums_B, o->forward_kernels);
    t->backward_input_s = memory_s(b, slower * o->backward_B + sums_B, o->backward_kernels);
    t->backward_input_kernels = o->backward_kernels;
}

void dts_build_operator_times(const dts_builder *b, const dts_operator *o, dts_operator_times *t) {
    t->forward_kernels = o->forward_kernels;
    switch (o->kind) {
        case DTS_OPERATOR_GEMM:
            (o->experts ? expert_times : gemm_times)(b, o, t);
            break;
        case DTS_OPERATOR_ATTENTION:
            attention_times(b, o, t);
            break;
        case DTS_OPERATOR_MEMORY:
            memory_times(b, o, t);
            break;
    }
}

/* Does nothing behind operator i read what it makes in backward? Only the layer's last product is so: its output goes
 * into the residual stream. */
static bool unread_in_backward(const dts_operators *operators, size_t i) {
    for (size_t k = i + 1; k < operators->count; k++) {
        if (operators->items[k].saved_B > 0 || operators->items[k].others_B > 0) {
            return false;
        }
    }
    return true;
}

/* Recomputation by operators keeps the outputs of fused attention, of every second product and of reduce-scatters
 * (whose products need not be repeated then), and of the layer its input; all else is repeated [1]. A compiler keeps
 * of these what backward reads [2]; without one all are kept. What is kept is counted at the operator that made it.
 *
 * [1] pytorch/torchtitan, torchtitan/parallelisms/parallelize_llama.py: _save_list.
 * [2] PyTorch, torch/_functorch/partitioners.py, min_cut_rematerialization_partition: only nodes that have a path to
 *     the backward graph are in the cut, whatever their checkpoint policy says. */
static void keep_every_second_product(const dts_plan *plan, dts_part_work *work) {
    int products = 0;
    bool first = true;
    for (size_t i = 0; i < work->operators.count; i++) {
        dts_operator *o = &work->operators.items[i];
        bool product = o->kind == DTS_OPERATOR_GEMM && o->weight;
        products += product;
        bool scattered = product && plan->tensor > 1 && o->forward_exchange == DTS_EXCHANGE_REDUCE_SCATTER;
        bool kept = o->kind == DTS_OPERATOR_ATTENTION || (product && products % 2 == 1) || scattered;
        const bool unread = kept && plan->job.stack->compile && unread_in_backward(&work->operators, i);
        o->recomputed_selectively = !kept;
        if (unread) {
            o->reads_repeated = true;
            o->saved_B = o->others_B = 0;
        } else if (kept) {
            double kept_B = scattered ? o->exchange_B / (double)plan->tensor : o->output_B;
            o->saved_B = kept_B + (first ? o->input_B : 0);
            o->others_B = 0;
            first = false;
        }
    }
}

/* Elements of statistics that an optimizer keeps of a parameter tensor beside its moments. Adafactor [1]: a row and a
 * column of a matrix's squares, all squares of a vector. 8-bit Adam [2]: a constant per block of each of two moments.
 *
 * [1] Shazeer and Stern 2018, Adafactor, arXiv 1804.04235, section 3.
 * [2] Dettmers et al. 2022, 8-bit Optimizers via Block-wise Quantization, arXiv 2110.02861, section 2: blocks of 2048.
 */
static double statistics_of(const dts_builder *b, const dts_operator *o, const dts_operator_times *times, int tensor) {
    enum { BLOCK = 2048 };
    const double elements = o->parameters[tensor], hidden = (double)b->plan->job.model->hidden;
    const bool product = o->kind == DTS_OPERATOR_GEMM && tensor == 0;
    const bool table = o->kind == DTS_OPERATOR_MEMORY && tensor == 0 && elements > hidden;
    switch ((dts_optimizer)b->plan->job.training->optimizer) {
        case DTS_OPTIMIZER_ADAFACTOR:
        case DTS_OPTIMIZER_ADAFACTOR_MOMENTUM:
            if (product && elements > 0) {
                return (double)(o->experts ? o->batch : 1) * ((double)o->n + (double)o->k);
            }
            /* tables are (rows, hidden); biases, scales and shifts are vectors */
            return table ? elements / hidden + hidden : elements;
        case DTS_OPTIMIZER_ADAMW_8BIT:
            return 2 * ceil(elements / BLOCK);
        case DTS_OPTIMIZER_MUON: /* the second moment of what AdamW steps, in its format */
            return tensor == 0 && times->orthogonal_s > 0 ? 0 : elements * b->plan->storage.step_B / DTS_FP32_B;
        case DTS_OPTIMIZER_SGD:
        case DTS_OPTIMIZER_SGD_MOMENTUM:
        case DTS_OPTIMIZER_ADAM:
        case DTS_OPTIMIZER_ADAMW:
        case DTS_OPTIMIZER_LAMB:
        case DTS_OPTIMIZER_LION:
        case DTS_OPTIMIZER_NONE:
            break;
    }
    return 0;
}

/* Recomputation that stops early ends with the last tensor that is saved. A product saves its input before it runs,
 * unless it is a function of its own in Python, as those in 8 bits are; what is compiled leaves out all that nobody
 * reads. [torch/utils/checkpoint.py, PyTorch 2.1; issue 81448 of pytorch/pytorch] */
static size_t operators_again(const dts_plan *plan, const dts_operators *operators) {
    const dts_stack *stack = plan->job.stack;
    if (!stack->recompute_stops_early) {
        return operators->count;
    }
    size_t end = operators->count;
    while (end > 0 && operators->items[end - 1].saved_B == 0) {
        end--;
    }
    if (end == 0) {
        return operators->count;
    }
    const dts_operator *last = &operators->items[end - 1];
    const bool saves_first = last->kind == DTS_OPERATOR_GEMM && last->weight && !last->experts && last->others_B == 0 &&
                             (!last->quantised || stack->compile);
    return saves_first ? end - 1 : end;
}

dts_status dts_build_work(dts_builder *b) {
    dts_execution execution = dts_plan_execution(b->plan);
    b->work = dts_arena_array(b->arena, DTS_PART_COUNT, sizeof *b->work);
    if (b->work == NULL) {
        return dts_diag_nomem(b->diag);
    }
    const dts_model *model = b->plan->job.model;
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        dts_part_work *work = &b->work[part];
        if ((dts_part_has_experts((dts_part)part) && model->experts == 0) ||
            (dts_part_is_local((dts_part)part) && model->attention_window == 0)) {
            continue;
        }
        dts_status status = dts_model_operators(model, (dts_part)part, &execution, b->arena, &work->operators, b->diag);
        if (status != DTS_OK) {
            return status;
        }
        const dts_recompute *recompute = &b->plan->job.training->recompute;
        if (dts_part_is_layer((dts_part)part) && recompute->kind == DTS_RECOMPUTE_SELECTIVE) {
            if (recompute->modules != 0) {
                dts_recompute_modules(b->plan, (dts_part)part, &work->operators);
            } else if (b->plan->job.stack->selective == DTS_SELECTIVE_OPERATORS) {
                keep_every_second_product(b->plan, work);
            }
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
            dts_build_operator_times(b, o, &work->times[i]);
            const double orthogonal_s = dts_part_is_layer((dts_part)part) ? dts_orthogonal_s(b, o) : 0;
            work->times[i].orthogonal_s = orthogonal_s;
            work->saved_B += o->saved_B;
            dts_parameter_set set = dts_operator_set(b->plan, o);
            work->frozen[set] += o->frozen;
            work->frozen_B[set] += o->frozen_B;
            work->quantised[set] += o->quantised ? o->parameters[0] : 0;
            if (orthogonal_s > 0) {
                const double tensors = (double)dts_operator_tensors(b->plan, o);
                const dts_orthogonal own = {.tensors = tensors,
                                            .elements = o->parameters[0],
                                            .matrices = tensors * dts_orthogonal_matrices(b->plan, o),
                                            .seconds = orthogonal_s,
                                            .largest = o->parameters[0] / tensors};
                dts_orthogonal_add(&work->orthogonal[set], &own, 1);
            }
            for (int p = 0; p < DTS_PARAMETER_TENSORS; p++) {
                work->parameters[set] += o->parameters[p];
                work->statistics += statistics_of(b, o, &work->times[i], p);
                work->tensors += o->parameters[p] > 0 ? (int)dts_operator_tensors(b->plan, o) : 0;
            }
        }
        dts_async_times(b, &work->operators, work->times);
        work->again = operators_again(b->plan, &work->operators);
    }
    return DTS_OK;
}

dts_status dts_lower_work(const dts_plan *plan, dts_arena *arena, dts_part_work out[DTS_PART_COUNT], dts_diag *diag) {
    return dts_lower_work_at(plan, dts_build_slowest(plan), arena, out, diag);
}

dts_status dts_lower_work_at(const dts_plan *plan, double slowest, dts_arena *arena, dts_part_work out[DTS_PART_COUNT],
                             dts_diag *diag) {
    dts_builder b = {.plan = plan, .arena = arena, .diag = diag, .slowest = slowest};
    dts_status status = dts_build_work(&b);
    if (b.work != NULL) {
        memcpy(out, b.work, DTS_PART_COUNT * sizeof *b.work);
    }
    return status;
}

static void count_direction(double seconds, bool timed, dts_timed_kernels *out) {
    out->all += seconds > 0;
    out->taken += seconds > 0 && timed;
}

dts_timed_kernels dts_build_timed(const dts_builder *b) {
    const bool backward = !dts_plan_infers(b->plan);
    dts_timed_kernels out = {0};
    double counts[DTS_PART_COUNT];
    dts_model_count_parts(b->plan->job.model, counts);
    for (int part = 0; part < DTS_PART_COUNT && b->plan->job.cluster->gpu.timings != NULL; part++) {
        const dts_part_work *work = &b->work[part];
        for (size_t i = 0; i < work->operators.count && counts[part] > 0; i++) {
            const dts_operator_times *t = &work->times[i];
            if (work->operators.items[i].kind != DTS_OPERATOR_MEMORY) {
                count_direction(t->forward_s, t->forward_timed, &out);
                count_direction(backward ? t->backward_input_s : 0, t->backward_input_timed, &out);
                count_direction(backward ? t->backward_weight_s : 0, t->backward_weight_timed, &out);
            }
        }
    }
    return out;
}

double dts_logits_B(const dts_part_work *head) {
    return head->operators.items[dts_head_outputs(head) - 1].output_B;
}

/* A tied output projection whose embedding lives on another rank is a second copy of it, elements on one
 * tensor-parallel rank. */
static double tied_copy(const dts_plan *plan) {
    const dts_model *model = plan->job.model;
    return dts_plan_ties_across(plan) ? (double)model->vocab * (double)model->hidden / (double)plan->tensor : 0;
}

double dts_stage_parameters(const dts_stage *stage) {
    return stage->held.parameters[DTS_SET_COMMON] + stage->held.parameters[DTS_SET_EXPERTS];
}

double dts_stage_frozen(const dts_stage *stage) {
    return stage->held.frozen[DTS_SET_COMMON] + stage->held.frozen[DTS_SET_EXPERTS];
}

static void count_part(dts_held *held, const dts_part_work *work) {
    held->statistics += work->statistics;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        held->frozen[set] += work->frozen[set];
        held->frozen_B[set] += work->frozen_B[set];
        held->parameters[set] += work->parameters[set];
        held->quantised[set] += work->quantised[set];
        dts_orthogonal_add(&held->orthogonal[set], &work->orthogonal[set], 1);
    }
}

/* A second copy of a frozen embedding has no gradient that anyone would add up. */
static void add_tied_copy(const dts_builder *b, dts_stage *stage) {
    const double elements = tied_copy(b->plan);
    if (dts_plan_adapts(b->plan)) {
        stage->held.frozen[DTS_SET_COMMON] += elements;
        stage->frozen_tied_B = elements * dts_plan_frozen_other_B(b->plan);
        stage->held.frozen_B[DTS_SET_COMMON] += stage->frozen_tied_B;
    } else {
        stage->tied_copy = elements;
        stage->held.parameters[DTS_SET_COMMON] += elements;
    }
}

static void count_chunk(dts_builder *b, dts_stage *stage, const dts_chunk *chunk) {
    for (int64_t i = 0; i < chunk->layers; i++) {
        count_part(&stage->held, dts_layer_work(b, chunk->first_layer + i));
    }
    if (chunk->embedding) {
        count_part(&stage->held, &b->work[DTS_PART_EMBEDDING]);
    }
    if (chunk->head) {
        count_part(&stage->held, &b->work[DTS_PART_HEAD]);
        add_tied_copy(b, stage);
    }
}

void dts_build_count_parameters(dts_builder *b) {
    const dts_plan *plan = b->plan;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        for (int64_t v = 0; v < plan->virtual_stages; v++) {
            count_chunk(b, &b->stages[p], &plan->chunks[dts_plan_stage(plan, p, v)]);
        }
    }
    dts_build_count_owners(b);
}
