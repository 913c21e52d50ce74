/* The optimizer step.
 *
 * Per tensor, an optimizer is a row of element-wise kernels, each reading and writing whole tensors; multi-tensor
 * implementations run the same row over chunks of all tensors; a fused one reads and writes everything once. Kernels
 * and passes per tensor are counted from PyTorch's single-tensor implementations (torch/optim/sgd.py, adamw.py,
 * adafactor and 8-bit from their published update rules), in tensor reads + writes:
 *
 *   sgd            param.add_(grad)                                                        1 kernel,   3 passes
 *   sgd-momentum   buf.mul_, buf.add_, param.add_                                          3 kernels,  8 passes
 *   adam, adamw    decay, m.mul_, m.add_, v.mul_, v.addcmul_, sqrt, div, add eps, addcdiv  9 kernels, 22 passes
 *   lamb           as adam, two norms, ratio                                              13 kernels, 28 passes
 *   lion           sign update and one moment                                              5 kernels, 12 passes
 *   adafactor      squares, row and column means, rsqrt, product, clip, update            12 kernels, 20 passes
 *   with momentum  and m.mul_, m.add_                                                     14 kernels, 25 passes
 *   muon           as adamw what muon.c leaves
 *   adamw-8bit     one fused kernel: parameter, gradient, two one-byte moments             1 kernel,   3 passes + 4 B
 *
 * [2] Ren et al., "ZeRO-Offload", 2021, section 4: the step on the CPU, and its copies. */
#include <math.h>

#include "plan/lower/builder.h"
#include "plan/lower/data_parallel.h"

typedef struct optimizer_work {
    int kernels;         /* per tensor and step */
    double passes;       /* tensor reads and writes, unfused */
    double fused_passes; /* when each tensor is read and written once */
} optimizer_work;

static const optimizer_work works[] = {
    [DTS_OPTIMIZER_SGD] = {1, 3, 3},
    [DTS_OPTIMIZER_SGD_MOMENTUM] = {3, 8, 5},
    [DTS_OPTIMIZER_ADAM] = {9, 22, 7},
    [DTS_OPTIMIZER_ADAMW] = {9, 22, 7},
    [DTS_OPTIMIZER_ADAFACTOR] = {12, 20, 20},
    [DTS_OPTIMIZER_ADAMW_8BIT] = {1, 5, 5},
    [DTS_OPTIMIZER_LAMB] = {13, 28, 10},
    [DTS_OPTIMIZER_LION] = {5, 12, 5},
    [DTS_OPTIMIZER_ADAFACTOR_MOMENTUM] = {14, 25, 25},
    [DTS_OPTIMIZER_NONE] = {0, 0, 0},
    [DTS_OPTIMIZER_MUON] = {9, 22, 7}, /* AdamW, of what is not orthogonalised */
};

/* Is there a step at all: one that clips, updates and clears gradients. */
static bool has_step(const dts_plan *plan) {
    return plan->job.training->optimizer != DTS_OPTIMIZER_NONE;
}

double dts_optimizer_traffic_B(const dts_plan *plan, int *kernels) {
    const optimizer_work *work = &works[plan->job.training->optimizer];
    bool fused = plan->job.stack->optimizer_style == DTS_OPTIMIZER_FUSED;
    *kernels = fused ? 1 : work->kernels;
    return (fused ? work->fused_passes : work->passes) * plan->storage.step_B;
}

/* Kernels over elements of all tensors of a stage: one per tensor, or a few over everything. Returns the first of them.
 */
static dts_id add_over_tensors(dts_builder *b, dts_stage *stage, double elements, int tensors, int kernels,
                               double passes, const char *name) {
    const dts_plan *plan = b->plan;
    int launches = plan->job.stack->optimizer_style == DTS_OPTIMIZER_PER_TENSOR ? tensors * kernels : kernels;
    double bytes = elements * passes * plan->storage.step_B;
    dts_id first = DTS_NO_ID;
    for (int i = 0; i < launches; i++) {
        dts_task_info info = {.role = DTS_ROLE_OPTIMIZER, .microbatch = -1, .layer = -1, .name = name};
        const dts_id kernel = dts_build_kernel(b, stage, dts_gpu_memory_s(&plan->job.cluster->gpu, bytes / launches),
                                               false, DTS_NO_ID, &info);
        first = i == 0 ? kernel : first;
    }
    return first;
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
        const dts_chunk *chunk = &plan->chunks[dts_plan_stage(plan, stage->index, v)];
        for (int64_t i = 0; i < chunk->layers; i++) {
            tensors += dts_layer_work(b, chunk->first_layer + i)->tensors;
        }
        tensors += chunk->embedding ? b->work[DTS_PART_EMBEDDING].tensors : 0;
        tensors += chunk->head ? b->work[DTS_PART_HEAD].tensors : 0;
    }
    return (int)tensors;
}

/* Is there an overflow, and how long are all gradients together? */
static void add_scaled_norm(dts_builder *b, dts_stage *stage, double elements, int tensors) {
    if (dts_plan_scales_loss(b->plan)) {
        add_over_tensors(b, stage, elements, 1, 1, 2, "unscale_gradients"); /* one kernel for all: GradScaler */
        dts_build_host(b, stage, 0, false, stage->last_kernel, "read found_inf");
    }
    if (b->plan->job.stack->gradient_clipping) {
        add_over_tensors(b, stage, elements, tensors, 1, 1, "gradient_norm");
    }
}

static void add_clipping(dts_builder *b, dts_stage *stage, double elements, int tensors) {
    if (b->plan->job.stack->gradient_clipping) {
        add_over_tensors(b, stage, elements, tensors, 1, 2, "clip_gradients");
    }
}

static void add_norm(dts_builder *b, dts_stage *stage, double elements, int tensors) {
    const dts_plan *plan = b->plan;
    if (plan->storage.gradient_B < plan->storage.step_B) { /* the wide ones live until the step is over */
        stage->widened_B = floor(elements * plan->storage.step_B);
        dts_build_memory(b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_OPTIMIZER, stage->widened_B);
    }
    add_master_copy(b, stage, elements, tensors, plan->storage.gradient_B, "widen_gradients");
    if (!dts_plan_clips_microbatches(plan)) {
        add_scaled_norm(b, stage, elements, tensors);
    }
}

/* A tied output projection lives on the first and the last stage: both add up their gradients before the step
 * (Megatron-LM, finalize_model_grads). An all-reduce of two ranks sends the tensor once each way. */
typedef struct tied {
    dts_id to_first, to_last;
} tied;

/* What made the gradients of a stage: its last reduction, or its last kernel without one. */
static dts_id made_by(const dts_stage *stage, dts_id reduced) {
    dts_id made = stage->tied_made == DTS_NO_ID ? stage->last_kernel : stage->tied_made;
    return reduced == DTS_NO_ID ? made : reduced;
}

static tied add_tied_exchange(dts_builder *b, const dts_id *reduced) {
    const dts_plan *plan = b->plan;
    int first = dts_plan_owner(plan, 0);
    int last = dts_plan_owner(plan, plan->stages - 1);
    if (!dts_plan_ties_across(plan) || dts_plan_adapts(plan)) { /* frozen: no gradients */
        return (tied){DTS_NO_ID, DTS_NO_ID};
    }
    double share = dts_plan_shards_gradients(plan) ? (double)plan->shards : 1;
    double bytes = (double)plan->job.model->vocab * (double)plan->job.model->hidden / (double)plan->tensor / share *
                   plan->storage.gradient_B;
    dts_task_info info = {
        .group = DTS_GROUP_EMBEDDING, .microbatch = -1, .layer = 0, .name = "send tied embedding gradient"};
    dts_stage *a = &b->stages[first];
    dts_stage *z = &b->stages[last];
    return (tied){.to_last = dts_build_send(b, a, z, true, false, bytes, made_by(a, reduced[first]), &info),
                  .to_first = dts_build_send(b, z, a, false, false, bytes, made_by(z, reduced[last]), &info)};
}

/* A chunk's states (and gradients) come from NVMe when a buffer is free; returns what the step waits for. */
static dts_id read_states(dts_builder *b, dts_stage *stage, const dts_nvme_ring *buffers, double elements,
                          dts_id arrived) {
    const dts_offload *offload = b->plan->job.offload;
    double bytes = offload->optimizer == DTS_OFFLOAD_NVME ? b->plan->storage.optimizer_B : 0;
    bytes += offload->gradients == DTS_OFFLOAD_NVME ? b->plan->storage.gradient_B : 0;
    if (bytes <= 0) {
        return arrived;
    }
    dts_id read = dts_build_nvme(b, stage, true, elements * bytes, dts_nvme_ring_oldest(buffers), "nvme states");
    dts_graph_depend(b->graph, read, arrived);
    return read;
}

/* The chunk goes back, with the new parameters where these rest on NVMe, too. */
static void write_states(dts_builder *b, dts_stage *stage, dts_nvme_ring *buffers, double elements, dts_id step) {
    const dts_offload *offload = b->plan->job.offload;
    double bytes = offload->optimizer == DTS_OFFLOAD_NVME ? b->plan->storage.optimizer_B : 0;
    bytes += offload->parameters == DTS_OFFLOAD_NVME ? b->plan->storage.parameter_B : 0;
    dts_nvme_ring_put(buffers,
                      bytes > 0 ? dts_build_nvme(b, stage, false, elements * bytes, step, "nvme states") : step);
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
    double norm_passes = (stack->gradient_clipping ? 3 : 0) + (dts_plan_scales_loss(plan) ? 2 : 0);
    norm_passes = dts_plan_clips_microbatches(plan) ? 0 : norm_passes;
    dts_task_info out = {.microbatch = -1, .layer = -1, .name = "d2h gradients"};
    dts_task_info in = {.microbatch = -1, .layer = -1, .name = "h2d parameters"};
    dts_id *arrived = dts_arena_array(b->arena, (size_t)parts, sizeof *arrived);
    dts_nvme_ring buffers = {0};
    if (arrived == NULL || !dts_nvme_ring_new(b, &buffers)) {
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
        dts_id read = read_states(b, stage, &buffers, part, arrived[i]);
        dts_id step = dts_build_cpu_step(b, stage, part * step_B, read, "optimizer_step on the CPU");
        write_states(b, stage, &buffers, part, step);
        if (offload->parameters == DTS_OFFLOAD_NONE) {
            done = dts_build_copy(b, stage, true, part * plan->storage.parameter_B, false, step, &in);
        }
    }
    return done;
}

/* What lives until the step is over. */
static void free_gradient_copies(dts_builder *b, dts_stage *stage) {
    dts_build_memory(b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_OPTIMIZER, -stage->widened_B);
    stage->widened_B = 0;
    dts_build_memory(b, stage->last_kernel, DTS_AT_END, stage, DTS_MEMORY_TEMPORARY, -stage->fresh_B);
    stage->fresh_B = 0;
}

/* What a stage steps: elements on this rank, in how many tensors. */
typedef struct step_size {
    double elements;
    int tensors;
} step_size;

/* What a rank steps one by one: all but the matrices that are orthogonalised. */
static step_size not_orthogonalised(const dts_builder *b, const dts_stage *stage, step_size size) {
    const dts_plan *plan = b->plan;
    const dts_orthogonal all = dts_stage_orthogonal(b, stage, false);
    if (!(all.tensors > 0)) {
        return size;
    }
    const double tensors = stage_tensors(b, stage);
    double elements = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        const double ranks =
            dts_plan_shards_optimizer(plan) ? (double)dts_plan_shards(plan, (dts_parameter_set)set) : 1;
        elements += (stage->held.parameters[set] - stage->held.orthogonal[set].elements) / ranks;
    }
    return (step_size){.elements = elements, .tensors = (int)ceil(size.tensors * (1 - all.tensors / tensors))};
}

/* The step on the GPU. */
static void add_gpu_step(dts_builder *b, dts_stage *stage, double elements, int tensors) {
    const dts_plan *plan = b->plan;
    const dts_stack *stack = plan->job.stack;
    const optimizer_work *work = &works[plan->job.training->optimizer];
    if (!has_step(plan)) {
        free_gradient_copies(b, stage);
        return;
    }
    if (!dts_plan_clips_microbatches(plan)) {
        add_clipping(b, stage, elements, tensors);
    }
    bool fused = stack->optimizer_style == DTS_OPTIMIZER_FUSED;
    const step_size rest = not_orthogonalised(b, stage, (step_size){elements, tensors});
    const dts_id first = add_over_tensors(b, stage, rest.elements, rest.tensors, fused ? 1 : work->kernels,
                                          fused ? work->fused_passes : work->passes, "optimizer_step");
    dts_build_step_memory(b, stage, rest.elements, rest.tensors, first);
    if (dts_job_orthogonalises(&plan->job)) {
        dts_build_orthogonal_step(b, stage);
    }
    free_gradient_copies(b, stage);
    add_master_copy(b, stage, elements, tensors, plan->storage.parameter_B, "narrow_parameters");
    if (!stack->zero_grad_to_none) {
        add_over_tensors(b, stage, elements, tensors, 1, 1, "zero_grad");
    }
}

dts_step_work dts_step_work_of(const dts_plan *plan) {
    const dts_stack *stack = plan->job.stack;
    const optimizer_work *work = &works[plan->job.training->optimizer];
    bool fused = stack->optimizer_style == DTS_OPTIMIZER_FUSED;
    double step_B = plan->storage.step_B;
    double passes = fused ? work->fused_passes : work->passes;
    int launches = fused ? 1 : work->kernels;
    const double times = dts_plan_clips_microbatches(plan) ? (double)plan->microbatches : 1;
    const struct {
        double runs, passes;
    } around[] = {
        {stack->gradient_clipping ? times : 0, 3}, /* its norm, and the clipping */
        {stack->gradient_clipping ? times : 0, 0},
        {dts_plan_scales_loss(plan) ? times : 0, 2},
        {stack->zero_grad_to_none ? 0 : 1, 1},
        {plan->storage.gradient_B < step_B ? 1 : 0, (plan->storage.gradient_B + step_B) / step_B},
        {plan->storage.parameter_B < step_B ? 1 : 0, (plan->storage.parameter_B + step_B) / step_B},
    };
    if (!has_step(plan)) {
        return (dts_step_work){0};
    }
    const double update_B = passes * step_B;
    for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
        passes += around[i].runs * around[i].passes;
        launches += (int)around[i].runs;
    }
    return (dts_step_work){.element_B = passes * step_B,
                           .update_B = update_B,
                           .launches = launches,
                           .per_tensor = stack->optimizer_style == DTS_OPTIMIZER_PER_TENSOR};
}

static step_size size_of_step(const dts_builder *b, const dts_stage *stage) {
    const dts_plan *plan = b->plan;
    const double shards = dts_plan_shards_optimizer(plan) ? (double)plan->shards : 1;
    int tensors =
        dts_plan_shards_parameters(plan) ? dts_unit_tensors(b, stage) : (int)ceil(stage_tensors(b, stage) / shards);
    if (dts_plan_owns_tensors(plan)) {
        const dts_owned *owned = stage->held.owned;
        tensors = owned[DTS_SET_COMMON].most_tensors + owned[DTS_SET_EXPERTS].most_tensors;
    }
    double elements = 0;
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        elements += stage->held.parameters[set] * dts_optimizer_share(b, stage, (dts_parameter_set)set);
    }
    return (step_size){.elements = elements, .tensors = tensors};
}

void dts_build_microbatch_clip(dts_builder *b, dts_stage *stage) {
    if (!dts_plan_clips_microbatches(b->plan)) {
        return;
    }
    const double elements = dts_stage_parameters(stage);
    const int tensors = stage_tensors(b, stage);
    add_scaled_norm(b, stage, elements, tensors);
    add_clipping(b, stage, elements, tensors);
    free_gradient_copies(b, stage);
}

/* Returns when the stage's share is updated. */
static dts_id add_step(dts_builder *b, dts_stage *stage) {
    step_size size = size_of_step(b, stage);
    if (b->plan->job.offload->optimizer != DTS_OFFLOAD_NONE) {
        return add_cpu_step(b, stage, size.elements, stage->last_kernel);
    }
    add_gpu_step(b, stage, size.elements, size.tensors);
    return stage->last_kernel;
}

/* Each rank that owns tensors sends them to all others. */
static void add_broadcasts(dts_builder *b, dts_stage *stage, dts_group_kind group, dts_parameter_set set,
                           dts_id after) {
    const dts_owned *owned = &stage->held.owned[set];
    const dts_task_info info = {.microbatch = -1, .layer = -1, .name = "broadcast parameters"};
    for (int64_t i = 0; i < owned->ranks; i++) {
        dts_build_collective(b, stage, group, DTS_BROADCAST_IN_TURN, owned->elements[i] * b->plan->storage.parameter_B,
                             false, after, &info);
    }
}

/* Everybody needs the others' shares; with two copies of a stage, also those of the other pipeline's rank. */
static void add_gather(dts_builder *b, int64_t p, const dts_id *updated) {
    const dts_plan *plan = b->plan;
    dts_stage *stage = &b->stages[p];
    const dts_held *held = &stage->held;
    stage->copy = plan->copies == 2 && p >= plan->pipeline / 2; /* both ranks of a pair gather as the same group */
    for (int set = 0; set < DTS_SET_COUNT; set++) {
        bool sharded = dts_plan_shards(plan, (dts_parameter_set)set) > 1 && held->parameters[set] > 0;
        if (sharded && dts_plan_owns_tensors(plan)) {
            add_broadcasts(b, stage, dts_sync_group((dts_parameter_set)set), (dts_parameter_set)set, updated[p]);
        } else if (dts_plan_shards_optimizer(plan) && !dts_plan_shards_parameters(plan) && sharded) {
            dts_task_info gather = {.microbatch = -1, .layer = -1, .name = "all-gather parameters"};
            dts_build_collective(b, stage, dts_sync_group((dts_parameter_set)set), DTS_ALL_GATHER,
                                 dts_plan_gathered_B(plan, held->parameters[set], held->quantised[set]), false,
                                 updated[p], &gather);
        }
    }
    stage->copy = 0;
}

dts_id dts_build_stage_update(dts_builder *b, dts_stage *stage, dts_id reduced) {
    dts_build_host(b, stage, b->plan->job.stack->step_host_s, false, DTS_NO_ID, "training loop");
    dts_id begin = dts_build_step_wait(b, stage, reduced, "wait for gradients");
    add_step(b, stage);
    return begin;
}

/* The gradient norm and the scaler's check are over all stages: no stage steps before the slowest has its number. */
static void add_barrier(dts_builder *b) {
    dts_id all = dts_build_step_wait(b, &b->stages[0], DTS_NO_ID, "gradient norm of all stages");
    for (int64_t p = 1; p < b->plan->pipeline; p++) {
        dts_graph_depend(b->graph, all, b->stages[p].last_kernel);
    }
    for (int64_t p = 1; p < b->plan->pipeline; p++) {
        dts_build_step_wait(b, &b->stages[p], all, "gradient norm of all stages");
    }
}

/* On the numbers of the whole model, if the step needs any. */
static void let_stages_agree(dts_builder *b) {
    if (dts_plan_post_validates(b->plan)) {
        dts_build_partial_norms(b);
    } else if (b->plan->pipeline > 1 && dts_plan_needs_global_number(b->plan)) {
        add_barrier(b);
    }
}

void dts_build_optimizer(dts_builder *b, dts_gradient_sync **syncs) {
    const dts_plan *plan = b->plan;
    if (b->stash != NULL) {
        return; /* every stage has stepped within the stream */
    }
    dts_id *reduced = dts_arena_array(b->arena, (size_t)plan->pipeline, sizeof *reduced);
    if (reduced == NULL) {
        b->failed = true;
        return;
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        if (p == 0 || b->stages[p].host != b->stages[0].host) { /* one loop a process */
            dts_build_host(b, &b->stages[p], plan->job.stack->step_host_s, false, DTS_NO_ID, "training loop");
        }
        reduced[p] = dts_sync_finish(syncs[p * plan->copies]);
        if (plan->copies == 2) { /* one stream takes the reductions of both: the later one is done last */
            dts_id other = dts_sync_finish(syncs[p * plan->copies + 1]);
            reduced[p] = other != DTS_NO_ID && (reduced[p] == DTS_NO_ID || other > reduced[p]) ? other : reduced[p];
        }
    }
    tied tied_gradients = add_tied_exchange(b, reduced);
    bool on_cpu = plan->job.offload->optimizer != DTS_OFFLOAD_NONE;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        dts_stage *stage = &b->stages[p];
        dts_id wait = dts_build_step_wait(b, stage, reduced[p], "wait for gradients");
        stage->contended = false; /* nothing of the data-parallel groups runs beside the step */
        bool last = p == plan->pipeline - 1;
        dts_graph_depend(b->graph, wait,
                         p == 0 ? tied_gradients.to_first : (last ? tied_gradients.to_last : DTS_NO_ID));
        step_size size = size_of_step(b, stage);
        if (!on_cpu && has_step(plan)) {
            add_norm(b, stage, size.elements, size.tensors);
        }
    }
    if (has_step(plan) && !on_cpu) {
        let_stages_agree(b);
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        dts_stage *stage = &b->stages[p];
        reduced[p] = add_step(b, stage);
        dts_build_memory(b, reduced[p] != DTS_NO_ID ? reduced[p] : stage->last_kernel, DTS_AT_END, stage,
                         DTS_MEMORY_SHARDS, -stage->shards_B);
        stage->shards_B = 0;
    }
    for (int64_t p = 0; p < plan->pipeline && !dts_plan_overlaps_gather(plan); p++) {
        add_gather(b, p, reduced);
    }
}
