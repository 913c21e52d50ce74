/* Products in 8 or 4 bits under a plan: their formats, what their scales cost, and what their weights take. */
#include <math.h>
#include <string.h>

#include "plan/internal.h"

bool dts_plan_quantises(const dts_plan *plan) {
    return plan->storage.product != plan->storage.compute;
}

bool dts_plan_asks_recipe(const dts_job *job) {
    const dts_fp8_recipe recipe = (dts_fp8_recipe)job->stack->fp8_recipe;
    return recipe != DTS_FP8_TENSORWISE && recipe != DTS_FP8_DELAYED;
}

/* The recipe is that of fp8: narrower formats and mxfp8 bring their scales with them. */
static dts_fp8_recipe recipe_of(const dts_plan *plan) {
    return plan->storage.product == DTS_FP8 ? (dts_fp8_recipe)plan->job.stack->fp8_recipe : DTS_FP8_TENSORWISE;
}

bool dts_plan_scales_rows(const dts_plan *plan) {
    const dts_fp8_recipe recipe = recipe_of(plan);
    return recipe == DTS_FP8_ROWWISE || recipe == DTS_FP8_ROWWISE_WIDE_GRADIENT;
}

/* Casts of weights serve all products that read them, unless each has scales of its own. */
static bool caches_weights(const dts_plan *plan) {
    return plan->job.stack->fp8_cached_weights && !dts_plan_scales_rows(plan);
}

bool dts_plan_gathers_quantised(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    const bool as_stored = dts_plan_adapts(plan) && dts_plan_shards_parameters(plan); /* frozen weights are */
    return dts_plan_quantises(plan) && !as_stored && !dts_plan_scales_rows(plan) &&
           (dts_plan_shards_parameters(plan) ? stack->fp8_all_gather : stack->fp8_primary_weights);
}

/* Products of Hopper and of ROCm read 8-bit operands along K only, and so do block scales everywhere
 * (model/quantise.c). */
static int operand_copies(const dts_plan *plan) {
    const dts_gpu *gpu = &plan->job.cluster->gpu;
    bool nvidia = gpu->vendor != NULL && strcmp(gpu->vendor, "nvidia") == 0;
    bool along_k = !nvidia || gpu->compute_capability < 10;
    return along_k || plan->storage.product != DTS_FP8 || recipe_of(plan) == DTS_FP8_BLOCKWISE ? 2 : 1;
}

static const double BLOCK_SCALE_B = 4.0 / 128; /* blockwise: a number in fp32 for 128 elements along a row */

bool dts_plan_narrow_attention(const dts_plan *plan) {
    const dts_fp8_recipe recipe = recipe_of(plan);
    const bool whole_tensors = recipe == DTS_FP8_TENSORWISE || recipe == DTS_FP8_DELAYED;
    return plan->job.stack->fp8_attention && plan->storage.product == DTS_FP8 && whole_tensors &&
           plan->job.stack->attention == DTS_ATTENTION_FLASH && plan->job.model->kv_lora_rank == 0 &&
           !dts_plan_decodes(plan);
}

dts_quantisation dts_plan_quantisation(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    const dts_fp8_recipe recipe = recipe_of(plan);
    bool kept = caches_weights(plan) && !dts_plan_shards_parameters(plan);
    bool current = recipe == DTS_FP8_TENSORWISE && plan->storage.product != DTS_MXFP8;
    bool shares = plan->storage.product == DTS_FP8 && (current || dts_plan_scales_rows(plan));
    bool blocks = plan->storage.product == DTS_MXFP8 || plan->storage.product == DTS_NVFP4;
    const dts_gpu *gpu = &plan->job.cluster->gpu;
    double cast_factor = blocks ? gpu->block_cast_factor : gpu->transpose_factor;
    return (dts_quantisation){.format = plan->storage.product,
                              .copies = operand_copies(plan),
                              .transpose_factor = fmax(stack->fp8_transpose_factor, cast_factor),
                              /* blocks find their scales while they are cast */
                              .amax_kernel = stack->fp8_amax_kernel && current,
                              .shared_scales = shares ? stack->fp8_shared_scales : DTS_SHARED_SCALES_NONE,
                              .scales_B = recipe == DTS_FP8_BLOCKWISE ? BLOCK_SCALE_B : 0,
                              .rows = dts_plan_scales_rows(plan),
                              .attention = dts_plan_narrow_attention(plan),
                              .wide_weight_gradient = recipe == DTS_FP8_ROWWISE_WIDE_GRADIENT,
                              .dispatches = stack->fp8_dispatch,
                              .weights = dts_plan_gathers_quantised(plan) ? DTS_WEIGHTS_QUANTISED
                                         : kept                           ? DTS_WEIGHTS_ONCE
                                                                          : DTS_WEIGHTS_CAST};
}

double dts_plan_frozen_B(const dts_plan *plan) {
    const double wide_B = dts_numeric_bytes(plan->storage.activation);
    if (!dts_plan_quantises(plan) || dts_plan_shards_parameters(plan)) {
        return wide_B;
    }
    const double narrow_B = operand_copies(plan) * dts_numeric_bytes(plan->storage.product);
    if (dts_plan_gathers_quantised(plan)) {
        return narrow_B;
    }
    return wide_B + (caches_weights(plan) ? narrow_B : 0);
}

double dts_plan_weights_B(const dts_plan *plan, double elements, double quantised) {
    double stored_B = plan->storage.parameter_B;
    if (!dts_plan_quantises(plan) || dts_plan_shards_parameters(plan)) {
        return elements * stored_B;
    }
    double narrow_B = operand_copies(plan) * dts_numeric_bytes(plan->storage.product);
    if (dts_plan_gathers_quantised(plan)) {
        return (elements - quantised) * stored_B + quantised * narrow_B;
    }
    return elements * stored_B + (caches_weights(plan) ? quantised * narrow_B : 0);
}

/* Products of gradients add up in fp32, those of forward do not: the default of Transformer Engine (common/recipe,
 * _2X_ACC_DGRAD, _2X_ACC_WGRAD) and of torchao (float8/config.py, use_fast_accum), where the rowwise kernel is that of
 * forward only (float8_python_api.py). Blockwise moves its sums with every block. */
double dts_plan_product_factor(const dts_plan *plan, const dts_operator *o, bool gradient) {
    const dts_gemm_profile *gemm = &plan->job.cluster->gpu.gemm;
    if (!o->quantised || plan->storage.product != DTS_FP8) {
        return 1;
    }
    if (recipe_of(plan) == DTS_FP8_BLOCKWISE) {
        return gemm->block_factor;
    }
    return gradient ? gemm->promoted_factor : dts_plan_scales_rows(plan) ? gemm->row_factor : 1;
}

dts_numeric dts_plan_product_format(const dts_plan *plan, const dts_operator *o, bool weight_gradient) {
    const bool wide = weight_gradient && recipe_of(plan) == DTS_FP8_ROWWISE_WIDE_GRADIENT;
    if (o->adapter) {
        return plan->storage.adapter;
    }
    return o->quantised && !wide ? plan->storage.product : plan->storage.compute;
}
