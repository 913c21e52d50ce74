/* What a parameter, a gradient and the optimizer's states take, and in which formats products run.
 *
 * Bytes per parameter (the anatomy of [1], [2]):
 *   precision      parameters  gradients  master+moments with AdamW
 *   fp32, tf32     4           4          8
 *   amp-*          4           4          8      autocast casts each weight for use; [1]: 18 with the cast copy
 *   fp16, bf16     2           2          4      everything in half precision, no master copy (seed 4's runs)
 *   any of the last two on a stack with master_weights: 2 + 2 + 12, with fp32_gradients 2 + 4 + 12 (16 and 18) [2], [3]
 *   fp8, mxfp8, nvfp4  as amp-bf16, on a stack with fp8.half_weights as bf16
 *   amp-* where nobody casts (stack.autocast): fp32. Products of 8 or 4 bits stay, all around them is fp32
 *   inference: parameters only, in the same formats; no master copies. Autocast keeps half copies of weights to the end
 *   of a pass: 4 + 2 of [1]
 *
 * 8- and 4-bit formats are those of products' operands. What copies of the weights live beside them, or instead of
 * them, is the stack's (plan.c).
 *
 * With adapters (adapters.c) this is of the adapters' parameters only; all others take what their base format says, and
 * have no gradients and states.
 *
 * Moments have the format of the parameters in plain PyTorch optimizers; 8-bit Adam keeps one byte each, Adafactor rows
 * and columns, SGD nothing; what statistics take beside elements follows from the tensors (lower/work.c).
 *
 * [1] Hugging Face, "Efficient Training on a Single GPU", section "Anatomy of Model's Memory".
 * [2] Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020, section 3.1.
 * [3] NVIDIA/Megatron-LM, docs, "Distributed Optimizer": 20 bytes with fp16 gradients that are copied to fp32 ones in
 * the step (not counted here: the copies live in the step only, lower/optimizer.c), 18 with fp32 gradients. */
#include <math.h>

#include "plan/internal.h"

int dts_optimizer_moments(dts_optimizer optimizer) {
    switch (optimizer) {
        case DTS_OPTIMIZER_ADAM:
        case DTS_OPTIMIZER_ADAMW:
        case DTS_OPTIMIZER_LAMB:
        case DTS_OPTIMIZER_ADAMW_8BIT:
            return 2;
        case DTS_OPTIMIZER_SGD_MOMENTUM:
        case DTS_OPTIMIZER_LION:
        case DTS_OPTIMIZER_ADAFACTOR_MOMENTUM:
        case DTS_OPTIMIZER_MUON: /* the second one of what AdamW steps: lower/work.c, statistics */
            return 1;
        case DTS_OPTIMIZER_SGD:
        case DTS_OPTIMIZER_ADAFACTOR:
        case DTS_OPTIMIZER_NONE:
            break;
    }
    return 0;
}

static bool is_half(dts_numeric type) {
    return type == DTS_FP16 || type == DTS_BF16;
}

/* Format of the layers' linear products. */
static dts_numeric product_of(dts_precision precision, dts_numeric compute) {
    switch (precision) {
        case DTS_PRECISION_FP8:
        case DTS_PRECISION_AMP_FP8:
            return DTS_FP8;
        case DTS_PRECISION_MXFP8:
            return DTS_MXFP8;
        case DTS_PRECISION_NVFP4:
            return DTS_NVFP4;
        case DTS_PRECISION_FP32:
        case DTS_PRECISION_TF32:
        case DTS_PRECISION_FP16:
        case DTS_PRECISION_BF16:
        case DTS_PRECISION_AMP_FP16:
        case DTS_PRECISION_AMP_BF16:
            break;
    }
    return compute;
}

/* Of products of fp32 weights. */
static dts_numeric wide_format(const dts_stack *stack, const dts_gpu *gpu) {
    return stack->tf32 && gpu->peak_flops[DTS_TF32] > 0 ? DTS_TF32 : DTS_FP32;
}

/* Half weights and activations; the optimizer owns an fp32 copy of its weights. */
static void use_master_weights(dts_storage *s, const dts_stack *stack) {
    s->autocast = false;
    s->parameter_B = 2;
    bool wide = stack->fp32_gradients == DTS_FP32_GRADIENTS_ALWAYS ||
                (stack->fp32_gradients == DTS_FP32_GRADIENTS_BF16 && s->compute == DTS_BF16);
    s->gradient_B = wide ? 4 : 2;
    s->step_B = 4;
}

/* Products of 8 or 4 bits in a model that is in bf16 all over. */
static void use_half_weights(dts_storage *s) {
    s->autocast = false;
    s->parameter_B = 2;
    s->gradient_B = 2;
    s->step_B = 2;
}

/* Adapters in fp32 beside half weights, without autocast: their products run as those of fp32 do. */
static void widen_adapters(dts_storage *s, const dts_stack *stack, const dts_gpu *gpu) {
    s->adapter = wide_format(stack, gpu);
    s->parameter_B = 4;
    s->gradient_B = 4;
    s->step_B = 4;
}

/* Half precision was asked for, and the framework's scripts cast nothing. */
static void leave_wide(dts_storage *s, const dts_stack *stack, const dts_gpu *gpu) {
    const bool narrow = s->product != s->compute;
    s->autocast = false;
    s->compute = wide_format(stack, gpu);
    s->activation = DTS_FP32;
    s->product = narrow ? s->product : s->compute;
}

dts_storage dts_storage_of(const dts_training *training, const dts_stack *stack, const dts_gpu *gpu, bool fsdp,
                           dts_half half) {
    dts_storage s = {.compute = DTS_FP32, .activation = DTS_FP32, .parameter_B = 4, .gradient_B = 4};
    s.half = half;
    switch ((dts_precision)training->precision) {
        case DTS_PRECISION_FP32:
            s.compute = wide_format(stack, gpu);
            break;
        case DTS_PRECISION_TF32:
            s.compute = DTS_TF32;
            break;
        case DTS_PRECISION_FP16:
        case DTS_PRECISION_BF16:
            s.compute = training->precision == DTS_PRECISION_FP16 ? DTS_FP16 : DTS_BF16;
            s.activation = s.compute;
            s.parameter_B = 2;
            s.gradient_B = 2;
            break;
        case DTS_PRECISION_AMP_FP16:
        case DTS_PRECISION_AMP_BF16:
            s.compute = training->precision == DTS_PRECISION_AMP_FP16 ? DTS_FP16 : DTS_BF16;
            s.activation = s.compute;
            s.autocast = true;
            break;
        case DTS_PRECISION_FP8:
        case DTS_PRECISION_MXFP8:
        case DTS_PRECISION_NVFP4:
        case DTS_PRECISION_AMP_FP8:
            s.compute = DTS_BF16;
            s.activation = DTS_BF16;
            s.autocast = true;
            break;
    }
    s.product = product_of((dts_precision)training->precision, s.compute);
    s.step_B = s.parameter_B;
    if (is_half(s.compute) && stack->master_weights) {
        use_master_weights(&s, stack);
    } else if (s.product != s.compute && stack->fp8_half_weights) {
        use_half_weights(&s);
    }
    s.mixed = s.autocast;
    if (s.mixed && half == DTS_HALF_BY_NOBODY) {
        leave_wide(&s, stack, gpu);
    }
    s.adapter = s.compute;
    if (training->adapters.rank > 0 && training->adapters.fp32) {
        widen_adapters(&s, stack, gpu);
    }
    s.reduce_B = s.gradient_B;
    s.fresh_gradient_B = s.parameter_B;
    if (is_half(s.compute) && s.autocast && half == DTS_HALF_BY_FSDP) {
        s.autocast = false; /* shards stay in fp32 */
        s.reduce_B = stack->fsdp_reduce_fp32 ? 4 : 2;
    }
    if (is_half(s.compute) && s.parameter_B == 2 && s.step_B == 2 && fsdp && stack->fsdp_reduce_half_fp32) {
        s.reduce_B = 4; /* as they are made, for the wire and while they wait for it */
    }
    if (training->adapters.rank > 0) {
        s.autocast = false; /* frozen weights have the format of the products: only the adapters are cast */
    }
    if (training->mode != DTS_MODE_TRAIN) { /* parameters are all there is, and no master copy of them */
        s.gradient_B = 0;
        s.fresh_gradient_B = 0;
        s.reduce_B = 0;
        s.step_B = s.parameter_B;
        s.optimizer_B = 0;
        return s;
    }
    double master_B = s.step_B > s.parameter_B ? s.step_B : 0;
    double moment_B = training->optimizer == DTS_OPTIMIZER_ADAMW_8BIT ? 1 : s.step_B;
    s.optimizer_B = master_B + dts_optimizer_moments((dts_optimizer)training->optimizer) * moment_B;
    return s;
}

bool dts_plan_stays_wide(const dts_plan *plan) {
    return plan->storage.mixed && plan->storage.half == DTS_HALF_BY_NOBODY;
}

double dts_plan_peak_flops(const dts_plan *plan) {
    return dts_gpu_peak_flops(&plan->job.cluster->gpu, plan->storage.product);
}

/* An element of a unit: MixedPrecision makes it half whatever is stored, and adapters in fp32 have nothing narrower. */
static double unit_element_B(const dts_plan *plan) {
    const bool stored = plan->job.stack->fsdp_gathers_stored && plan->storage.half != DTS_HALF_BY_FSDP;
    return stored ? plan->storage.parameter_B : dts_numeric_bytes(plan->storage.adapter);
}

double dts_plan_gathered_B(const dts_plan *plan, double elements, double quantised) {
    const double wide_B = dts_plan_shards_parameters(plan) ? unit_element_B(plan) : plan->storage.parameter_B;
    double narrow = dts_plan_gathers_quantised(plan) ? quantised : 0;
    return (elements - narrow) * wide_B + narrow * dts_numeric_bytes(plan->storage.product);
}

double dts_plan_unit_B(const dts_plan *plan, double elements, double quantised, double frozen_B) {
    const double bytes = dts_plan_shards_parameters(plan) ? dts_plan_gathered_B(plan, elements, quantised)
                                                          : elements * unit_element_B(plan);
    return bytes + dts_plan_gathered_frozen_B(plan, frozen_B);
}
