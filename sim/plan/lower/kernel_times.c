/* Times of products and of fused attention on the plan's GPUs. */
#include <math.h>

#include "plan/lower/work.h"

double dts_build_gemm_s(const dts_builder *b, const dts_operator *o, int64_t m, int64_t n, int64_t k,
                        dts_product product, bool *timed) {
    const bool of_weight = product == DTS_PRODUCT_OF_WEIGHT;
    const dts_numeric format = dts_plan_product_format(b->plan, o, of_weight);
    dts_gemm_shape shape = {.batch = o->batch, .m = m, .n = n, .k = k, .weight_gradient = of_weight};
    shape.timed = timed;
    shape.factor = dts_plan_product_factor(b->plan, o, product != DTS_PRODUCT_FORWARD);
    return b->slowest * dts_gpu_gemm_s(&b->plan->job.cluster->gpu, format, &shape);
}

/* Rate of the stack's kernel over FlashAttention-2's, by the width of heads. */
static double flash_speed_of(const dts_stack *stack, int64_t head_dim) {
    const double wide = fmin(fmax((double)(head_dim - 64) / 64, 0), 1);
    const double narrow = stack->flash_narrow_speed > 0 ? stack->flash_narrow_speed : stack->flash_speed;
    return wide * stack->flash_speed + (1 - wide) * narrow;
}

/* Rate of cuDNN's kernel over those of the profile, */
static double cudnn_of(const dts_flash_profile *flash, const dts_attention_shape *shape) {
    if (shape->head_dim <= 64) {
        return flash->cudnn_half;
    }
    return shape->backward && flash->cudnn_backward > 0 ? flash->cudnn_backward : flash->cudnn;
}

/* … and that of AITER's; 0: it has none. */
static double aiter_of(const dts_stack *stack, const dts_flash_profile *flash, const dts_attention_shape *shape) {
    if (!stack->aiter_attention || shape->head_dim <= 64) {
        return 0;
    }
    return shape->backward && flash->aiter_backward > 0 ? flash->aiter_backward : flash->aiter;
}

double dts_build_attention_s(const dts_builder *b, const dts_attention_shape *shape) {
    const dts_gpu *gpu = &b->plan->job.cluster->gpu;
    const dts_stack *stack = b->plan->job.stack;
    const double aiter = aiter_of(stack, &gpu->flash, shape);
    const double vendor = aiter > 0 ? aiter : stack->cudnn_attention ? cudnn_of(&gpu->flash, shape) : 0;
    const double own = stack->flash_speed < 1 ? 1 : gpu->flash.lasting; /* half the rate meets no limit of power */
    const double flash_speed = flash_speed_of(stack, shape->head_dim);
    dts_attention_shape kernel = *shape;
    const double narrow = shape->backward ? gpu->flash.narrow_backward : gpu->flash.narrow_forward;
    kernel.speed = flash_speed * (vendor > 0 ? vendor : own) * (shape->narrow ? narrow : 1);
    kernel.other = shape->narrow || flash_speed != 1 || (vendor > 0 && vendor != 1);
    return b->slowest * dts_gpu_attention_s(gpu, b->plan->storage.compute, &kernel);
}
