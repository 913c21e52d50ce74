/* What an optimizer step on the GPU holds beside parameters, gradients and states while it runs: tensors of the format
 * that it computes with. A fused kernel holds none. Else they are as many as an implementation keeps at once: of one
 * tensor after the other, or, where kernels take lists (multi-tensor), of all tensors at once. Lists are as long as
 * what a rank steps, 1/shards where states are sharded; PyTorch says of foreach: "uses ~ sizeof(params) more peak
 * memory".
 *
 *                  per tensor                                         multi-tensor
 *   sgd            none: the buffer is the update [1]                 none
 *   adam, adamw    2: the root, and its quotient [2]                  1: the root, divided in place [2]
 *   lamb           2: the root, and the update [3]                    2
 *   lion           3: two products and their sum [4]                  1: the interpolated moment
 *   adafactor      2: the squares, and these with epsilon [5]         1: the variance, row times column [6]
 *   adamw-8bit     none: one kernel in any style                      none
 * Norms and clipping of gradients hold a number for each tensor, and scale in place [7].
 *
 * [1] pytorch/pytorch, torch/optim/sgd.py. [2] torch/optim/adam.py and adamw.py, 2.1 and later: _single_tensor_adam,
 * _multi_tensor_adam. [3] huggingface/pytorch-image-models, timm/optim/lamb.py. [4] google/automl,
 * lion/lion_pytorch.py; nobody has lists of it: of the least row of operations. [5] huggingface/transformers,
 * optimization.py, Adafactor. [6] torch/optim/_adafactor.py, _multi_tensor_adafactor. [7] torch/nn/utils/clip_grad.py.
 */
#include <math.h>

#include "plan/lower/builder.h"

/* Tensors at once. */
typedef struct temporaries {
    int of_one, of_all;
} temporaries;

static const temporaries held[] = {
    [DTS_OPTIMIZER_SGD] = {0, 0},        [DTS_OPTIMIZER_SGD_MOMENTUM] = {0, 0},
    [DTS_OPTIMIZER_ADAM] = {2, 1},       [DTS_OPTIMIZER_ADAMW] = {2, 1},
    [DTS_OPTIMIZER_ADAFACTOR] = {2, 1},  [DTS_OPTIMIZER_ADAFACTOR_MOMENTUM] = {2, 1},
    [DTS_OPTIMIZER_ADAMW_8BIT] = {0, 0}, [DTS_OPTIMIZER_LAMB] = {2, 2},
    [DTS_OPTIMIZER_LION] = {3, 1},       [DTS_OPTIMIZER_MUON] = {2, 1}, /* AdamW, of what is not orthogonalised */
    [DTS_OPTIMIZER_NONE] = {0, 0},
};

double dts_step_lists_B(const dts_plan *plan) {
    const bool lists = plan->job.stack->optimizer_style == DTS_OPTIMIZER_MULTI_TENSOR;
    return lists && !dts_plan_infers(plan) ? held[plan->job.training->optimizer].of_all * plan->storage.step_B : 0;
}

static double largest_of_part(const dts_plan *plan, const dts_part_work *work) {
    double largest = 0;
    for (int set = 0; set < DTS_SET_COUNT && dts_plan_shards_parameters(plan); set++) { /* a unit is one tensor */
        largest = fmax(largest, work->parameters[set] / (double)dts_plan_shards(plan, (dts_parameter_set)set));
    }
    for (size_t i = 0; i < work->operators.count && !dts_plan_shards_parameters(plan); i++) {
        for (int t = 0; t < DTS_PARAMETER_TENSORS; t++) {
            largest = fmax(largest, work->operators.items[i].parameters[t]);
        }
    }
    return largest;
}

/* Elements of the largest tensor that a rank steps. */
static double largest_tensor(const dts_builder *b, const dts_stage *stage) {
    const dts_plan *plan = b->plan;
    double largest = 0;
    for (int64_t v = 0; v < plan->virtual_stages; v++) {
        const dts_chunk *chunk = &plan->chunks[dts_plan_stage(plan, stage->index, v)];
        for (int64_t i = 0; i < chunk->layers; i++) {
            largest = fmax(largest, largest_of_part(plan, dts_layer_work(b, chunk->first_layer + i)));
        }
        largest = fmax(largest, chunk->embedding ? largest_of_part(plan, &b->work[DTS_PART_EMBEDDING]) : 0);
        largest = fmax(largest, chunk->head ? largest_of_part(plan, &b->work[DTS_PART_HEAD]) : 0);
    }
    return largest;
}

/* Bytes in count tensors come (sign 1) with a task, or go (-1). */
static void hold(dts_builder *b, const dts_stage *stage, dts_id task, double bytes, int count, int sign) {
    for (; count > 0; count--) {
        const double part_B = floor(bytes / count);
        dts_build_memory(b, task, sign > 0 ? DTS_AT_START : DTS_AT_END, stage, DTS_MEMORY_TEMPORARY, sign * part_B);
        bytes -= part_B;
    }
}

void dts_build_step_memory(dts_builder *b, const dts_stage *stage, double elements, int tensors, dts_id first) {
    const temporaries *here = &held[b->plan->job.training->optimizer];
    double bytes = floor(elements * dts_step_lists_B(b->plan));
    int count = here->of_all * (b->tensors == NULL ? 1 : tensors); /* one by one for an allocator's replay */
    if (b->plan->job.stack->optimizer_style == DTS_OPTIMIZER_PER_TENSOR) {
        const double one_B = floor(fmin(largest_tensor(b, stage), elements) * b->plan->storage.step_B);
        count = here->of_one;
        bytes = one_B * count;
    }
    if (first != DTS_NO_ID && bytes > 0) {
        hold(b, stage, first, bytes, count, 1);
        hold(b, stage, stage->last_kernel, bytes, count, -1);
    }
}
