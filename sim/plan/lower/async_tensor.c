/* Tensor-parallel communication in chunks, overlapped with the products around it (parallelism.async_tensor).
 *
 * With sequence parallelism over T ranks a product's rows are cut into T chunks of m/T:
 *
 *   all-gather → product       the rank's own chunk is multiplied at once, while copies bring the other T-1, one after
 *                              another; chunk i waits for copy i [1]
 *   product → reduce-scatter   the chunks of others come first and are copied to them while the next is multiplied; the
 *                              rank's own is last, and a kernel adds up the T partial sums: (T+1)·(m/T)·n·e bytes [1],
 *                              for which it may take longer than they do (stack.chunk_sum_factor)
 *
 * Each copy moves 1/T of the tensor from GPU to GPU: (T-1)/T of it in all, as a ring would. Copies are made by copy
 * engines and take no multiprocessors.
 *
 * Transformer Engine's user buffers [3] do the same (method ring_exchange) but for forward's product → reduce-scatter
 * of 16-bit formats (method pipeline; fp32 has none of this, plan/rules.c): the product is cut into a few chunks that
 * run on all multiprocessors but n, and each is reduced and scattered by a kernel on those n, the last with nothing
 * beside it: chunk' = chunk · P/(P-n)
 *
 * A stack may gain from chunks in forward only (stack.async_backward): PyTorch's forward pass became up to 29 % faster
 * in bf16, the whole step 8 % [2]. There, transfers of backward stay whole.
 *
 * fp8 with a scale for each row casts what was gathered, so that no product reads it: gathers stay whole [4].
 *
 * A product whose input was gathered for several uses (Megatron-LM) reduces the gradient of that beside the weight
 * gradient, and where the input was kept as a shard it gathers that again beside the input gradient. Both stay whole
 * [3], and each takes so many multiprocessors from the product while it moves (method bulk, stack.user_buffers).
 *
 * [1] PyTorch torch/distributed/_symmetric_memory: fused_all_gather_matmul, fused_matmul_reduce_scatter; Wang et al.
 *     2022, Overlap Communication with Dependent Computation via Decomposition, ASPLOS 2023.
 * [2] Wang et al. 2024, Introducing Async Tensor Parallelism in PyTorch, discuss.pytorch.org/t/209487.
 * [3] NVIDIA Transformer Engine, user buffers: "bulk" overlap of layernorm_linear.py.
 * [4] pytorch/pytorch, issue 149990. */
#include <math.h>

#include "plan/lower/chunk_pass.h"
#include "plan/lower/costs.h"

static bool splits_rows(const dts_walk *w, const dts_operator *o) {
    return o->m % w->b->plan->tensor == 0 && o->forward_kernels == 1;
}

/* In backward: if the stack does it there. */
static bool is_on_here(const dts_walk *w) {
    const dts_plan *plan = w->b->plan;
    const dts_async_backward backward = (dts_async_backward)plan->job.stack->async_backward;
    const bool narrow = dts_numeric_bytes(plan->storage.product) < dts_numeric_bytes(DTS_FP16);
    return plan->async_tensor && (!w->backward || backward == DTS_ASYNC_BACKWARD_ALWAYS ||
                                  (backward == DTS_ASYNC_BACKWARD_QUANTISED && narrow));
}

bool dts_async_gathers_here(const dts_walk *w) {
    return is_on_here(w) && !dts_plan_scales_rows(w->b->plan);
}

static dts_id add_copy(dts_walk *w, double bytes, dts_id after, const char *name, const dts_task_info *info) {
    dts_task_info what = *info;
    what.name = name;
    what.flops = 0;
    return dts_build_ring_send(w->b, w->pass->stage, DTS_GROUP_TENSOR, bytes, w->backward, after, &what);
}

void dts_async_gather(dts_walk *w, double bytes, const dts_task_info *info) {
    int64_t chunks = w->b->plan->tensor;
    dts_id *arrivals = dts_arena_array(w->b->arena, (size_t)chunks, sizeof *arrivals);
    if (arrivals == NULL) {
        w->b->failed = true;
        return;
    }
    arrivals[0] = DTS_NO_ID;
    for (int64_t i = 1; i < chunks; i++) {
        arrivals[i] = add_copy(w, bytes / (double)chunks, w->last, "gather chunk", info);
    }
    w->arrivals = arrivals;
    w->arriving_rows = 0;
}

bool dts_async_chunks(const dts_walk *w, const dts_operator *o, dts_exchange behind) {
    bool scatters = behind == DTS_EXCHANGE_REDUCE_SCATTER && !(w->gradient && dts_reduces_beside(w->b->plan, o));
    bool product = o->kind == DTS_OPERATOR_GEMM && o->weight && o->batch == 1;
    bool reads = w->arrivals != NULL && (w->arriving_rows == 0 || w->arriving_rows == o->m);
    return is_on_here(w) && product && splits_rows(w, o) && (scatters || reads);
}

dts_takes dts_async_takes(const dts_walk *w, dts_part part, const dts_operator *o, dts_exchange exchange) {
    const dts_stack *stack = w->b->plan->job.stack;
    if (!w->b->plan->async_tensor || part == DTS_PART_HEAD || o->experts) { /* NCCL's, in Transformer Engine too */
        return (dts_takes){.sms = stack->tensor_overlap_sms, .channels = true};
    }
    const int64_t gather = o->feed_forward ? stack->ub_fc1_dgrad : stack->ub_qkv_dgrad;
    const int64_t scatter = o->feed_forward ? stack->ub_fc1_wgrad : stack->ub_qkv_wgrad;
    return (dts_takes){.sms = exchange == DTS_EXCHANGE_ALL_GATHER ? gather : scatter};
}

/* Method pipeline: multiprocessors that the product leaves to its transfers; 0: ring exchange. */
static int64_t margin_of(const dts_walk *w, const dts_operator *o) {
    const dts_stack *stack = w->b->plan->job.stack;
    const bool narrow = o->quantised && dts_numeric_bytes(w->b->plan->storage.product) < dts_numeric_bytes(DTS_FP16);
    return w->gradient || narrow ? 0 : o->feed_forward ? stack->ub_fc2_fprop : stack->ub_proj_fprop;
}

static int64_t splits_of(const dts_plan *plan, const dts_operator *o) {
    const int64_t splits = plan->job.stack->ub_splits;
    return o->m % splits == 0 ? splits : plan->tensor;
}

/* One of so many chunks, on the multiprocessors that are left. */
static double part_s(const dts_walk *w, const dts_operator *o, int64_t splits, int64_t margin) {
    const int64_t all = w->b->plan->job.cluster->gpu.multiprocessors;
    return dts_build_gemm_s(w->b, o, o->m / splits, o->n, o->k, DTS_PRODUCT_FORWARD, NULL) * (double)all /
           (double)(all > margin ? all - margin : 1);
}

/* One chunk of a rank's rows. */
static double chunk_s(const dts_walk *w, const dts_operator *o) {
    const int64_t chunks = w->b->plan->tensor;
    return w->gradient ? dts_build_gemm_s(w->b, o, o->m / chunks, o->k, o->n, DTS_PRODUCT_OF_INPUT, NULL)
                       : dts_build_gemm_s(w->b, o, o->m / chunks, o->n, o->k, DTS_PRODUCT_FORWARD, NULL);
}

/* Adding up the partial sums of the rank's own chunk. */
static double sum_s(const dts_plan *plan, const dts_operator *o) {
    const double bytes = (double)(plan->tensor + 1) * o->exchange_B / (double)plan->tensor;
    return dts_gpu_memory_s(&plan->job.cluster->gpu, bytes) * plan->job.stack->chunk_sum_factor;
}

/* The product in a few chunks on the multiprocessors that are left, each reduced behind it. */
static dts_id pipelined_product(dts_walk *w, const dts_operator *o, int64_t margin, const dts_task_info *info) {
    const int64_t splits = splits_of(w->b->plan, o);
    const double each_s = part_s(w, o, splits, margin);
    dts_task_info one = *info;
    one.flops = info->flops / (double)splits;
    dts_task_info reduction = *info;
    reduction.name = "scatter chunk";
    reduction.flops = 0;
    dts_id first = DTS_NO_ID;
    dts_id arrived = DTS_NO_ID;
    for (int64_t i = 0; i < splits; i++) {
        dts_id kernel = dts_walk_kernels(w, 1, each_s, &one);
        first = i == 0 ? kernel : first;
        arrived = dts_build_collective(w->b, w->pass->stage, DTS_GROUP_TENSOR, DTS_REDUCE_SCATTER,
                                       o->exchange_B / (double)splits, w->backward, kernel, &reduction);
    }
    w->last = arrived;
    w->waits[DTS_WAIT_INPUT] = arrived;
    return first;
}

dts_id dts_async_product(dts_walk *w, const dts_operator *o, dts_exchange behind, const dts_task_info *info) {
    int64_t chunks = w->b->plan->tensor;
    bool scatters = behind == DTS_EXCHANGE_REDUCE_SCATTER;
    const int64_t margin = scatters && w->arrivals == NULL ? margin_of(w, o) : 0;
    if (margin > 0) {
        return pipelined_product(w, o, margin, info);
    }
    double chunk_B = o->exchange_B / (double)chunks;
    const double each_s = chunk_s(w, o);
    dts_task_info one = *info;
    one.flops = info->flops / (double)chunks;
    dts_id first = DTS_NO_ID;
    dts_id sent = DTS_NO_ID;
    w->arriving_rows = o->m;
    for (int64_t i = 0; i < chunks; i++) {
        dts_id kernel = dts_walk_kernels(w, 1, each_s, &one);
        first = i == 0 ? kernel : first;
        dts_graph_depend(w->b->graph, kernel, w->arrivals == NULL ? DTS_NO_ID : w->arrivals[i]);
        if (scatters && i < chunks - 1) {
            sent = add_copy(w, chunk_B, kernel, "scatter chunk", info);
        }
    }
    if (scatters) {
        dts_task_info sum = *info;
        sum.name = "sum_chunks";
        sum.flops = 0;
        dts_id added = dts_walk_kernels(w, 1, sum_s(w->b->plan, o), &sum);
        dts_graph_depend(w->b->graph, added, sent);
    }
    return first;
}

/* ---- without tasks ------------------------------------------------------------------------------------------------
 */

/* A copy to the next rank, on an idle link. */
static double copy_s(const dts_plan *plan, double bytes) {
    dts_transfer t = {0};
    dts_p2p_transfer(plan->job.cluster, plan->tensor_group.nodes == 1, bytes, &t);
    return t.alone_s;
}

/* A product in chunks with its transfers: each copy in (arriving_s, 0: all are there) while a chunk is multiplied, and
 * each out while the next one is. */
static double chunked_s(const dts_walk *w, const dts_operator *o, bool scatters, double arriving_s) {
    const dts_plan *plan = w->b->plan;
    const double chunks = (double)plan->tensor;
    const int64_t margin = scatters && w->arrivals == NULL ? margin_of(w, o) : 0;
    if (margin > 0) {
        const int64_t splits = splits_of(plan, o);
        const double each_s = part_s(w, o, splits, margin), n = (double)splits;
        const double reduce_s = dts_shared_collective_s(plan->job.cluster, DTS_REDUCE_SCATTER, plan->tensor_group,
                                                        o->exchange_B / n, dts_lower_sharing(plan, DTS_GROUP_TENSOR));
        return fmax(n * each_s + reduce_s, each_s + n * reduce_s);
    }
    const double each_s = chunk_s(w, o), sent_s = scatters ? copy_s(plan, o->exchange_B / chunks) : 0;
    return fmax(chunks * each_s, each_s + (chunks - 1) * fmax(arriving_s, sent_s)) + (scatters ? sum_s(plan, o) : 0);
}

static double exchange_s(const dts_plan *plan, const dts_operator *o, dts_exchange exchange) {
    return dts_shared_collective_s(plan->job.cluster, dts_exchange_collective(exchange), plan->tensor_group,
                                   o->exchange_B, dts_lower_sharing(plan, DTS_GROUP_TENSOR));
}

/* One direction through a part, in which walk tells what arrives. */
static void count_saved(dts_walk *w, const dts_operators *operators, dts_operator_times *times) {
    const dts_plan *plan = w->b->plan;
    dts_id some = DTS_NO_ID;
    double arriving_s = 0;
    for (size_t k = 0; k < operators->count; k++) {
        const size_t i = w->gradient ? operators->count - 1 - k : k;
        const dts_operator *o = &operators->items[i];
        dts_operator_times *t = &times[i];
        const dts_exchange behind = w->gradient ? o->backward_exchange : o->forward_exchange;
        const bool tensor = behind != DTS_EXCHANGE_NONE && dts_exchange_group(o, behind) == DTS_GROUP_TENSOR;
        const double whole_s = w->gradient ? t->backward_input_s : t->forward_s;
        double *out = w->gradient ? &t->backward_exchange_s : &t->forward_exchange_s;
        const bool chunked = dts_async_chunks(w, o, behind);
        if (chunked) {
            const bool scatters = tensor && behind == DTS_EXCHANGE_REDUCE_SCATTER;
            *out += chunked_s(w, o, scatters, arriving_s) - whole_s - (scatters ? exchange_s(plan, o, behind) : 0);
            w->arriving_rows = o->m;
            arriving_s = 0;
        } else if ((w->gradient ? t->backward_input_kernels : t->forward_kernels) > 0) {
            *out += (double)(plan->tensor - 1) * arriving_s;
            arriving_s = 0;
            w->arrivals = NULL;
        }
        if (tensor && behind == DTS_EXCHANGE_ALL_GATHER && !o->plain_exchange && dts_async_gathers_here(w)) {
            *out -= exchange_s(plan, o, behind);
            arriving_s = copy_s(plan, o->exchange_B / (double)plan->tensor);
            w->arrivals = &some;
            w->arriving_rows = 0;
        }
    }
    w->arrivals = NULL;
}

void dts_async_times(dts_builder *b, const dts_operators *operators, dts_operator_times *times) {
    for (int gradient = 0; gradient < 2 && b->plan->async_tensor && b->plan->tensor > 1; gradient++) {
        dts_walk w = {.b = b, .backward = gradient == 1, .gradient = gradient == 1};
        count_saved(&w, operators, times);
    }
}
