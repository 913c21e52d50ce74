/* The optimizer step.
 *
 * Per tensor, an optimizer is a row of element-wise kernels, each reading and writing whole tensors; multi-tensor
 * implementations run the same row over chunks of all tensors; a fused one reads and writes everything once. Kernels
 * and passes per tensor are counted from PyTorch's single-tensor implementations (torch/optim/sgd.py, adamw.py,
 * adafactor and 8-bit from their published update rules), in tensor reads + writes: sgd            param.add_(grad) 1
 * kernel,  3 passes sgd-momentum   buf.mul_, buf.add_, param.add_                                          3 kernels, 8
 * passes adam, adamw    decay, m.mul_, m.add_, v.mul_, v.addcmul_, sqrt, div, add eps, addcdiv  9 kernels, 22 passes
 *   lamb           as adam, two norms, ratio                                              13 kernels, 28 passes
 *   lion           sign update and one moment                                              5 kernels, 12 passes
 *   adafactor      squares, row and column means, rsqrt, product, clip, update             12 kernels, 20 passes
 *   adamw-8bit     one fused kernel: parameter, gradient, two one-byte moments             1 kernel,  3 passes + 4
 * bytes
 *
 * [2] Ren et al., "ZeRO-Offload", 2021, section 4: the step on the CPU, and its copies. */
#include "plan/lower/builder.h"

typedef struct optimizer_work {
    int kernels;         /* per tensor and step */
    double passes;       /* tensor reads and writes, unfused */
    double fused_passes; /* when each tensor is read and written once */
} optimizer_work;

static const optimizer_work works[] = {
    [DTS_OPTIMIZER_SGD] = {1, 3, 3},          [DTS_OPTIMIZER_SGD_MOMENTUM] = {3, 8, 5},
    [DTS_OPTIMIZER_ADAM] = {9, 22, 7},        [DTS_OPTIMIZER_ADAMW] = {9, 22, 7},
    [DTS_OPTIMIZER_ADAFACTOR] = {12, 20, 20}, [DTS_OPTIMIZER_ADAMW_8BIT] = {1, 5, 5},
    [DTS_OPTIMIZER_LAMB] = {13, 28, 10},      [DTS_OPTIMIZER_LION] = {5, 12, 5},
};

/* Kernels over elements of all tensors of a stage: one per tensor, or a few over everything. */
static void add_over_tensors(dts_builder *b, dts_stage *stage, double elements, int tensors, int kernels, double passes,
                             const char *name) {
    const dts_plan *plan = b->plan;
    int launches = plan->job.stack->optimizer_style == DTS_OPTIMIZER_PER_TENSOR ? tensors * kernels : kernels;
    double bytes = elements * passes * plan->storage.step_B;
    for (int i = 0; i < launches; i++) {
        dts_task_info info = {.role = DTS_ROLE_OPTIMIZER, .microbatch = -1, .layer = -1, .name = name};
        dts_build_kernel(b, stage, dts_gpu_memory_s(&plan->job.cluster->gpu, bytes / launches), false, DTS_NO_ID,
                         &info);
    }
}

/* Master weights: half gradients are widened for the step, and the new weights narrowed after it. */
static void add_master_copy(dts_builder *b, dts_stage *stage, double elements, int tensors, double half_B,
                            const char *name) {
    double step_B = b->plan->storage.step_B;
    if (half_B < step_B) {
        add_over_tensors(b, stage, elements, tensors, 1, (half_B + step_B) / step_B, name);
    }
}

static int stage_tensors(const dts_builder *b, const dts_stage *stage) {
    const dts_plan *plan = b->plan;
    int64_t tensors = 0;
    for (int64_t v = 0; v < plan->virtual_stages; v++) {
        int s = dts_virtual_stage(plan->schedule.layout, (int)plan->pipeline, (int)stage->index, (int)v);
        const dts_chunk *chunk = &plan->chunks[s];
        tensors += chunk->layers * b->work[DTS_PART_LAYER].tensors;
        tensors += chunk->embedding ? b->work[DTS_PART_EMBEDDING].tensors : 0;
        tensors += chunk->head ? b->work[DTS_PART_HEAD].tensors : 0;
    }
    return (int)tensors;
}

/* fp16 gradients next to fp32 weights are scaled against underflow. */
static bool scales_loss(const dts_plan *plan) {
    return plan->storage.compute == DTS_FP16 &&
           (plan->job.training->precision != DTS_PRECISION_FP16 || plan->job.stack->master_weights);
}

/* Gradient norm and the scaling of clipping (read; read and write), and the loss scaler's check: each ends in a number
 * that the host reads, so the host waits for the GPU. */
static void add_norm_and_scale(dts_builder *b, dts_stage *stage, double elements, int tensors) {
    const dts_plan *plan = b->plan;
    bool clips = plan->job.stack->gradient_clipping;
    bool scales = scales_loss(plan);
    if (scales) {
        add_over_tensors(b, stage, elements, tensors, 1, 2, "unscale_gradients");
        dts_build_host(b, stage, 0, false, stage->last_kernel, "read found_inf");
    }
    if (clips) {
        add_over_tensors(b, stage, elements, tensors, 1, 1, "gradient_norm");
        add_over_tensors(b, stage, elements, tensors, 1, 2, "clip_gradients");
    }
}

/* A tied output projection lives on the first and the last stage: both add up their gradients before the step
 * (Megatron-LM, finalize_model_grads). An all-reduce of two ranks sends the tensor once each way. */
typedef struct tied {
    dts_id to_first, to_last;
} tied;

static tied add_tied_exchange(dts_builder *b) {
    const dts_plan *plan = b->plan;
    int64_t stages = plan->pipeline * plan->virtual_stages;
    int first = 0;
    int last = 0;
    int chunk = 0;
    dts_virtual_stage_owner(plan->schedule.layout, (int)plan->pipeline, 0, 0, &first, &chunk);
    dts_virtual_stage_owner(plan->schedule.layout, (int)plan->pipeline, (int)stages - 1, 0, &last, &chunk);
    if (!plan->job.model->tied_embeddings || first == last) {
        return (tied){DTS_NO_ID, DTS_NO_ID};
    }
    double bytes = (double)plan->job.model->vocab * (double)plan->job.model->hidden / (double)plan->tensor *
                   plan->storage.gradient_B;
    dts_task_info info = {
        .group = DTS_GROUP_EMBEDDING, .microbatch = -1, .layer = 0, .name = "send tied embedding gradient"};
    dts_stage *a = &b->stages[first];
    dts_stage *z = &b->stages[last];
    return (tied){.to_last = dts_build_send(b, a, z, true, bytes, a->last_kernel, &info),
                  .to_first = dts_build_send(b, z, a, false, bytes, z->last_kernel, &info)};
}

/* The step on the CPU [2], layer by layer so that copies overlap the work: gradients out (unless they are there
 * already), step, parameters back (unless they rest there). The norm of all gradients comes before the first step.
 * Returns when the last parameters are back. */
static dts_id add_cpu_step(dts_builder *b, dts_stage *stage, double elements, dts_id reduced) {
    const dts_plan *plan = b->plan;
    const dts_stack *stack = plan->job.stack;
    const dts_offload *offload = plan->job.offload;
    const optimizer_work *work = &works[plan->job.training->optimizer];
    bool fused = stack->optimizer_style == DTS_OPTIMIZER_FUSED;
    double passes = fused ? work->fused_passes : work->passes;
    passes += stack->zero_grad_to_none ? 0 : 1;
    int64_t parts = plan->job.model->layers / plan->pipeline + 1;
    double part = elements / (double)parts;
    /* with master weights the half-precision copy is written as well */
    double step_B = passes * plan->storage.step_B +
                    (plan->storage.parameter_B < plan->storage.step_B ? plan->storage.parameter_B : 0);
    double norm_passes = (stack->gradient_clipping ? 3 : 0) + (scales_loss(plan) ? 2 : 0);
    dts_task_info out = {.microbatch = -1, .layer = -1, .name = "d2h gradients"};
    dts_task_info in = {.microbatch = -1, .layer = -1, .name = "h2d parameters"};
    dts_id *arrived = dts_arena_array(b->arena, (size_t)parts, sizeof *arrived);
    if (arrived == NULL) {
        b->failed = true;
        return DTS_NO_ID;
    }
    for (int64_t i = 0; i < parts; i++) {
        arrived[i] = offload->gradients != DTS_OFFLOAD_NONE
                         ? reduced
                         : dts_build_copy(b, stage, false, part * plan->storage.gradient_B, false, reduced, &out);
    }
    if (norm_passes > 0) {
        dts_build_cpu_step(b, stage, elements * norm_passes * plan->storage.gradient_B, arrived[parts - 1],
                           "gradient_norm on the CPU");
    }
    dts_id done = DTS_NO_ID;
    for (int64_t i = 0; i < parts; i++) {
        dts_id step = dts_build_cpu_step(b, stage, part * step_B, arrived[i], "optimizer_step on the CPU");
        if (offload->parameters == DTS_OFFLOAD_NONE) {
            done = dts_build_copy(b, stage, true, part * plan->storage.parameter_B, false, step, &in);
        }
    }
    return done;
}

/* The step on the GPU. */
static void add_gpu_step(dts_builder *b, dts_stage *stage, double elements, int tensors) {
    const dts_plan *plan = b->plan;
    const dts_stack *stack = plan->job.stack;
    const optimizer_work *work = &works[plan->job.training->optimizer];
    add_master_copy(b, stage, elements, tensors, plan->storage.gradient_B, "widen_gradients");
    add_norm_and_scale(b, stage, elements, tensors);
    bool fused = stack->optimizer_style == DTS_OPTIMIZER_FUSED;
    add_over_tensors(b, stage, elements, tensors, fused ? 1 : work->kernels, fused ? work->fused_passes : work->passes,
                     "optimizer_step");
    add_master_copy(b, stage, elements, tensors, plan->storage.parameter_B, "narrow_parameters");
    if (!stack->zero_grad_to_none) {
        add_over_tensors(b, stage, elements, tensors, 1, 1, "zero_grad");
    }
}

static void add_step(dts_builder *b, dts_stage *stage, dts_gradient_sync *sync, dts_id tied_gradient) {
    const dts_plan *plan = b->plan;
    const dts_stack *stack = plan->job.stack;
    bool all_sharded = dts_plan_shards_parameters(plan);
    double elements = stage->parameters / (dts_plan_shards_optimizer(plan) ? (double)plan->shards : 1);
    /* sharded parameters are flat: one tensor per unit, which is one per layer */
    int tensors = all_sharded ? (int)(plan->job.model->layers / plan->pipeline) + 1 : stage_tensors(b, stage);
    if (dts_plan_shards_optimizer(plan) && !all_sharded) {
        tensors = (int)((tensors + plan->shards - 1) / plan->shards); /* each rank steps its share of the tensors */
    }
    dts_build_host(b, stage, stack->step_host_s, false, DTS_NO_ID, "training loop");
    /* the first kernel of the step waits for the last gradients */
    dts_id reduced = dts_sync_finish(sync);
    dts_task_info info = {.role = DTS_ROLE_OPTIMIZER,
                          .microbatch = -1,
                          .layer = -1,
                          .device = stage->device,
                          .name = "wait for gradients"};
    dts_id wait = dts_build_task(b, stage->compute, 0, &info);
    dts_graph_depend(b->graph, wait, reduced);
    dts_graph_depend(b->graph, wait, tied_gradient);
    dts_graph_depend(b->graph, wait, stage->last_host);
    dts_id updated;
    if (plan->job.offload->optimizer != DTS_OFFLOAD_NONE) {
        updated = add_cpu_step(b, stage, elements, wait);
    } else {
        add_gpu_step(b, stage, elements, tensors);
        updated = stage->last_kernel;
    }
    if (dts_plan_shards_optimizer(plan) && !all_sharded && plan->data > 1) {
        dts_task_info gather = {.microbatch = -1, .layer = -1, .name = "all-gather parameters"};
        dts_build_collective(b, stage, DTS_GROUP_DATA, DTS_ALL_GATHER, stage->parameters * plan->storage.parameter_B,
                             false, updated, &gather);
    }
}

void dts_build_optimizer(dts_builder *b, dts_gradient_sync **syncs) {
    tied tied_gradients = add_tied_exchange(b);
    for (int64_t p = 0; p < b->plan->pipeline; p++) {
        bool first = p == 0;
        bool last = p == b->plan->pipeline - 1;
        add_step(b, &b->stages[p], syncs[p],
                 first ? tied_gradients.to_first : (last ? tied_gradients.to_last : DTS_NO_ID));
    }
}
