/* Muon's step: what orthogonalises matrices.
 *
 * Weights of the layers' products are stepped along their momentum with all singular values drawn towards one; the
 * embedding, the output layer, biases and norms along AdamW's direction [1]. A matrix G (m, n), m <= n, becomes
 * X = G / |G|, and then, so many times (stack.optimizer.newton_schulz_steps, 5 everywhere),
 *
 *   A = X·Xᵀ,   B = b·A + c·A·A,   X = a·X + B·X                                                                 (1)
 *
 * three products in bfloat16 with 2·m²n, 2·m³ and 2·m²n FLOP, whatever the format of the training [1, 2]. A GPU without
 * bfloat16 takes fp32. Around them go decay, momentum, its Nesterov form, norm, division, two casts, scale and update:
 * 11 kernels that read or write every element 20 times in the format of the step [3]. Experts that one kernel
 * multiplies are one tensor of stacked matrices, whose products are batched.
 *
 * Queries, keys and values of one weight are matrices of their own, as in Megatron-Core unless told otherwise
 * (`--muon-no-split-qkv`, stack.optimizer.splits_qkv). With tensor parallelism each rank takes its part of a matrix for
 * the matrix (`--muon-tp-mode blockwise`, the default [4]): no communication, and the squares are smaller. Replicas
 * with ddp all step all matrices. ZeRO-1 hands whole matrices to ranks (owners.c) and cuts all else into equal shares,
 * as Megatron-Core's layer-wise distributed optimizer does on its main branch [5]: buckets are laid out so that a
 * matrix lies within one rank's part, and then are reduced, scattered and gathered as those of Adam. They are padded to
 * the fullest part, which is left out here: with more ranks than matrices more goes around than is simulated. (The path
 * that it calls legacy all-reduces gradients, hands out the embedding as well, and gathers into buffers of the size of
 * all parameters [7].) Where parameters are sharded (fsdp, zero3), momentum goes to the rank that a matrix is handed to
 * in bfloat16 and its update comes back, two all-to-alls of a rank's shards [6]; Dion does it batch by batch, beside
 * products of the batch before, which is not simulated.
 *
 * [1] Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"; KellerJordan/Muon, muon.py.
 * [2] NVIDIA-NeMo/Emerging-Optimizers @0001f6e, orthogonalized_optimizers/muon_utils.py, newton_schulz: bfloat16 where
 *     float32_matmul_precision is medium, Muon's default.
 * [3] The same @116b71a, orthogonalized_optimizer.py, step, and [2].
 * [4] NVIDIA/Megatron-LM @025c931, megatron/core/optimizer/muon.py; issue 2583.
 * [5] The same @0063933, layer_wise_optimizer.py, class LayerWiseDistributedOptimizer,
 *     _compute_per_buffer_param_layout and allgather_params.
 * [6] Ahn et al. 2025, "Dion", and microsoft/dion, dion/muon.py: matrices of a batch go to one rank each.
 * [7] The same, and a published table of what it measured (kimi_k3/tools/opt_mem_probe.py): 99.0 million parameters,
 *     of them 8.4 % not in matrices: Adam 1133 MB of states, Muon 788 / DP, and 76 whatever DP is; at the peak 191 more
 *     with DP 2, 4 and 8, two bytes of every parameter. */
#include <math.h>
#include <string.h>

#include "plan/lower/builder.h"
#include "plan/lower/data_parallel.h"
#include "plan/lower/work.h"

enum {
    AROUND = 11,  /* kernels of a tensor beside its products */
    PRODUCTS = 3, /* of one iteration (1) */
    GROUPS = 32   /* tasks that stand for all tensors of a stage */
};
static const double PASSES = 20;     /* of AROUND: tensor reads and writes */
static const double COPIES_B = 10;   /* of an element, at the most: momentum, its quotient, both in fp32, and X */
static const double EXCHANGED_B = 2; /* of an element: bfloat16 */

/* Where parameters are sharded: matrices are put together on their owners, and go back. */
static bool exchanges_matrices(const dts_plan *plan) {
    return dts_plan_owns_matrices(plan) && dts_plan_shards_parameters(plan);
}

void dts_orthogonal_add(dts_orthogonal *a, const dts_orthogonal *b, double times) {
    a->tensors += times * b->tensors;
    a->elements += times * b->elements;
    a->matrices += times * b->matrices;
    a->seconds += times * b->seconds;
    a->largest = fmax(a->largest, times > 0 ? b->largest : 0);
}

double dts_orthogonal_launches(const dts_stack *stack, const dts_orthogonal *tensors) {
    return AROUND * tensors->tensors + PRODUCTS * (double)stack->newton_schulz_steps * tensors->matrices;
}

/* Rows of the matrices that one weight is made of: those of queries, keys and values by themselves. */
static int matrices_of(const dts_plan *plan, const dts_operator *o, int64_t rows[3]) {
    const dts_model *model = plan->job.model;
    const int64_t heads = model->heads, keys = dts_model_kv_heads(model), both = heads + 2 * keys;
    rows[0] = o->n;
    if (!plan->job.stack->splits_qkv || strcmp(o->name, "qkv") != 0 || o->n % both != 0) {
        return 1;
    }
    rows[0] = o->n / both * heads;
    rows[1] = rows[2] = o->n / both * keys;
    return 3;
}

/* All iterations of one matrix, or of a batch. */
static double iterations_s(const dts_builder *b, int64_t batch, int64_t rows, int64_t columns) {
    const dts_gpu *gpu = &b->plan->job.cluster->gpu;
    const dts_numeric type = dts_gpu_peak_flops(gpu, DTS_BF16) > 0 ? DTS_BF16 : DTS_FP32;
    const int64_t m = rows < columns ? rows : columns, n = rows < columns ? columns : rows;
    const dts_gemm_shape shapes[PRODUCTS] = {{.batch = batch, .m = m, .n = m, .k = n},
                                             {.batch = batch, .m = m, .n = m, .k = m},
                                             {.batch = batch, .m = m, .n = n, .k = m}};
    double once_s = 0;
    for (int i = 0; i < PRODUCTS; i++) {
        once_s += dts_gpu_gemm_s(gpu, type, &shapes[i]);
    }
    return (double)b->plan->job.stack->newton_schulz_steps * b->slowest * once_s;
}

int dts_orthogonal_matrices(const dts_plan *plan, const dts_operator *o) {
    int64_t rows[3];
    return matrices_of(plan, o, rows);
}

double dts_orthogonal_s(const dts_builder *b, const dts_operator *o) {
    if (!dts_job_orthogonalises(&b->plan->job) || o->kind != DTS_OPERATOR_GEMM || !o->weight ||
        !(o->parameters[0] > 0)) {
        return 0;
    }
    const int64_t experts = o->experts ? o->batch : 1, tensors = dts_operator_tensors(b->plan, o);
    int64_t rows[3];
    double products_s = 0;
    for (int i = matrices_of(b->plan, o, rows); i-- > 0;) {
        products_s += iterations_s(b, experts / tensors, rows[i], o->k);
    }
    const double bytes = o->parameters[0] / (double)tensors * PASSES * b->plan->storage.step_B;
    return (double)tensors * (products_s + AROUND * dts_gpu_memory_s(&b->plan->job.cluster->gpu, bytes / AROUND));
}

dts_orthogonal dts_stage_orthogonal(const dts_builder *b, const dts_stage *stage, bool own) {
    const bool handed_out = own && dts_plan_owns_matrices(b->plan);
    const dts_held *held = &stage->held;
    dts_orthogonal all = {0};
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        dts_orthogonal_add(&all, handed_out ? &held->owned[set].orthogonal : &held->orthogonal[set], 1);
    }
    return all;
}

/* The shards of all matrices on their way to the owners, or back: each group has a stream of its own. */
static void exchange(dts_builder *b, dts_stage *stage, const char *name) {
    const dts_task_info info = {.microbatch = -1, .layer = -1, .name = name};
    const dts_id ready = stage->last_kernel;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        const double shards = (double)dts_plan_shards(b->plan, (dts_parameter_set)set);
        const double bytes = stage->held.orthogonal[set].elements / shards * EXCHANGED_B;
        if (shards > 1 && bytes > 0) {
            dts_build_step_wait(b, stage,
                                dts_build_collective(b, stage, dts_sync_group((dts_parameter_set)set), DTS_ALL_TO_ALL,
                                                     bytes, false, ready, &info),
                                "wait for matrices");
        }
    }
}

void dts_build_orthogonal_step(dts_builder *b, dts_stage *stage) {
    const dts_stack *stack = b->plan->job.stack;
    const dts_orthogonal own = dts_stage_orthogonal(b, stage, true);
    const bool exchanges = exchanges_matrices(b->plan);
    const dts_task_info info = {.role = DTS_ROLE_OPTIMIZER, .microbatch = -1, .layer = -1, .name = "newton_schulz"};
    if (exchanges) {
        exchange(b, stage, "momentum to owners");
    }
    const int groups = (int)fmin(GROUPS, ceil(own.tensors));
    const double launches = dts_orthogonal_launches(stack, &own) / fmax(1, groups);
    const double copies_B = floor(own.largest * COPIES_B);
    for (int i = 0; i < groups; i++) {
        dts_build_kernel(b, stage, own.seconds / groups, false, DTS_NO_ID, &info);
        if (i == 0) {
            dts_build_memory(b, stage->last_kernel, DTS_AT_START, stage, DTS_MEMORY_TEMPORARY, copies_B);
        }
        if (!stage->captured) { /* the kernel has paid for one */
            dts_build_host(b, stage, (launches - 1) * dts_build_launch_s(b->plan, DTS_ROLE_OPTIMIZER, false), false,
                           DTS_NO_ID, "launch");
        }
    }
    if (groups > 0) {
        dts_build_memory(b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY, -copies_B);
    }
    if (exchanges) {
        exchange(b, stage, "updates from owners");
    }
}
