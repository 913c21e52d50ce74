/* Loading of data: batches are made by loader processes on the host, wait in a queue, and are copied to the GPU.
 *
 * As PyTorch's DataLoader does it [1], with W loaders of one training process, F batches ahead for each, and a batch of
 * n samples that takes a core n·c seconds:
 *   batch i is made by loader i mod W, in the order of i
 *   it is begun when that loader is free and batch i - W·F has been taken
 *   the training loop takes it when it is made, and waits until then (input_wait)
 *   W = 0: the training loop makes it itself between two passes
 * Loaders of a node share the cores that its training processes leave, max-min fairly: one never uses more than one
 * core, and W·P loaders on C cores have C / (W·P) each where that is less. So, in the long run, with m batches an
 * iteration of T seconds by itself,
 *   iteration = max(T, m·n·c / min(W, C/P))                                                                       (1)
 * which comes out of the simulation and is not put in. One loader serves a tensor-parallel group [2]: each of its GPUs
 * counts as a share of it. Only ranks with the embedding read data: labels of the last stage are taken as there.
 *
 * The copy goes from pinned memory, on a stream of its own, beside what the GPU is at. From pageable memory it stands
 * behind the kernels issued so far, and the host waits for it: all its lead is lost [3]. The thread that copies batches
 * into pinned memory is not simulated, nor is the disk: what reading takes is part of c.
 *
 * An iteration begins with a queue as the one before left it. How much of its first W·F batches is still to be made is
 * given (dts_lower_options.input_left), and those of the next iteration are made as far as this one lets them, so that
 * the state at its end can be read; run/input.c repeats the iteration until both agree.
 *
 * [1] PyTorch, torch/utils/data/dataloader.py, _MultiProcessingDataLoaderIter; torch/utils/data/_utils/pin_memory.py.
 * [2] NVIDIA/Megatron-LM, pretrain_gpt.py, is_dataset_built_on_rank.
 * [3] PyTorch, aten/src/ATen/native/cuda/Copy.cu: a copy that is not non_blocking synchronises its stream. */
#include <math.h>

#include "plan/lower/builder.h"

struct dts_loader {
    dts_stage *stage;
    int64_t passes;         /* that share a batch: all where one process splits it into microbatches */
    double batch_s;         /* of a core, for one */
    double batch_B;         /* of its copy */
    size_t workers, depth;  /* depth: batches that they may be ahead */
    dts_id *streams;        /* [workers] */
    dts_id *made;           /* [batches + depth]; DTS_NO_ID: it was there from the beginning */
    dts_id copied;          /* the batch taken last */
    const double *left;     /* [depth]; NULL: nothing */
    dts_id *ahead;          /* [depth] the first batches of the next iteration */
    double cores_per_batch; /* cores that are used where this loader uses one */
};

/* Adds the making of a batch behind those before it, when task before has ended. */
static void make_batch(dts_builder *b, struct dts_loader *l, int64_t batch, dts_id before) {
    bool entered = batch < (int64_t)l->depth;
    double work_s = l->batch_s * (entered ? (l->left == NULL ? 0 : l->left[batch]) : 1);
    l->made[batch] = DTS_NO_ID;
    if (!(work_s > 0)) {
        return;
    }
    bool ahead = batch >= (int64_t)b->input_batches;
    dts_task_info info = {.role = DTS_ROLE_INPUT,
                          .microbatch = ahead ? -1 : (int32_t)(batch * l->passes),
                          .layer = -1,
                          .device = l->stage->device,
                          .peer = l->stage->device,
                          .ahead = ahead,
                          .name = "make batch"};
    dts_hop hop = {.resource = b->nodes[l->stage->node].cores, .weight = l->cores_per_batch};
    double used = dts_plan_loaders_per_node(b->plan) / dts_plan_loader_cores(b->plan);
    dts_transfer work = {.work_B = work_s, .rate_cap_Bps = 1, .alone_s = work_s * fmax(1, used)};
    l->made[batch] = dts_build_transfer(b, l->streams[batch % (int64_t)l->workers], &work, &hop, 1, &info);
    dts_graph_depend(b->graph, l->made[batch], before);
    if (ahead) {
        l->ahead[(size_t)batch - b->input_batches] = l->made[batch];
    }
}

static bool make_first(dts_builder *b, struct dts_loader *l) {
    l->streams = dts_arena_array(b->arena, l->workers, sizeof *l->streams);
    l->made = dts_arena_array(b->arena, b->input_batches + l->depth, sizeof *l->made);
    if (l->streams == NULL || l->made == NULL) {
        return false;
    }
    for (size_t w = 0; w < l->workers; w++) {
        const char *name = dts_arena_printf(b->arena, "loader %zu", w);
        b->failed |= name == NULL;
        l->streams[w] = dts_graph_add_stream(b->graph, l->stage->device, name == NULL ? "loader" : name);
    }
    for (size_t i = 0; i < l->depth; i++) {
        make_batch(b, l, (int64_t)i, DTS_NO_ID);
    }
    return true;
}

/* Where one process splits a batch into microbatches, it loads all of them together, at each of two ends by itself. */
static int64_t passes_per_batch(const dts_plan *plan) {
    return plan->job.stack->pipeline_single_process && plan->pipeline > 1 ? plan->passes / plan->copies : 1;
}

static bool reads_data(const dts_builder *b, const dts_stage *stage) {
    bool reads = false;
    for (int64_t v = 0; v < b->plan->virtual_stages; v++) {
        reads |= b->plan->chunks[dts_plan_stage(b->plan, stage->index, v)].embedding;
    }
    return reads && (!dts_plan_single_process(b->plan) || stage == &b->stages[0]);
}

static struct dts_loader *loader_new(dts_builder *b, dts_stage *stage, size_t index) {
    const dts_plan *plan = b->plan;
    const dts_input *input = plan->job.input;
    const int64_t passes = passes_per_batch(plan);
    double samples = (double)(plan->job.training->micro_batch * passes);
    samples *= dts_plan_single_process(plan) ? (double)plan->data : 1;
    struct dts_loader *l = dts_arena_alloc(b->arena, sizeof *l);
    if (l == NULL) {
        return NULL;
    }
    *l = (struct dts_loader){.stage = stage,
                             .passes = passes,
                             .batch_s = samples * input->sample_cost_s,
                             .batch_B = samples * dts_plan_sample_B(plan),
                             .workers = (size_t)input->workers,
                             .depth = b->input_depth,
                             .copied = DTS_NO_ID,
                             .left = b->input_left == NULL ? NULL : &b->input_left[index * b->input_depth],
                             .ahead = &b->input_ahead[index * b->input_depth],
                             .cores_per_batch = dts_plan_loaders_per_node(plan) / fmax(1, (double)input->workers)};
    if (b->full) {
        l->cores_per_batch /= (double)plan->same_stage_per_node;
    }
    return l->depth == 0 || make_first(b, l) ? l : NULL;
}

dts_status dts_input_new(dts_builder *b) {
    const dts_input *input = b->plan->job.input;
    if (!dts_plan_loads_input(b->plan)) {
        return DTS_OK;
    }
    b->input_depth = input->sample_cost_s > 0 ? (size_t)(input->workers * input->prefetch_factor) : 0;
    b->input_batches = (size_t)(b->plan->passes / b->plan->copies / passes_per_batch(b->plan));
    if (b->input_ahead == NULL) { /* with the first row */
        size_t count = (size_t)(b->rows * b->stage_count) * b->input_depth;
        b->input_ahead = dts_arena_array(b->arena, count, sizeof *b->input_ahead);
        for (size_t i = 0; b->input_ahead != NULL && i < count; i++) {
            b->input_ahead[i] = DTS_NO_ID;
        }
    }
    for (int64_t p = 0; b->input_ahead != NULL && p < b->stage_count; p++) {
        dts_stage *stage = &b->stages[p];
        if (reads_data(b, stage)) {
            stage->loader = loader_new(b, stage, (size_t)(stage - b->all_stages));
            if (stage->loader == NULL) {
                return dts_diag_nomem(b->diag);
            }
        }
    }
    return b->input_ahead == NULL ? dts_diag_nomem(b->diag) : DTS_OK;
}

dts_id dts_input_take(dts_builder *b, dts_stage *stage, int64_t microbatch) {
    struct dts_loader *l = stage->loader;
    if (l == NULL || microbatch % l->passes != 0) {
        return l == NULL ? DTS_NO_ID : l->copied;
    }
    int64_t batch = microbatch / l->passes;
    if (l->depth > 0) {
        dts_id taken = dts_build_host(b, stage, 0, false, l->made[batch], "take batch");
        make_batch(b, l, batch + (int64_t)l->depth, taken);
    } else if (l->batch_s > 0) {
        dts_build_host_work(b, stage, DTS_ROLE_INPUT, l->batch_s, "make batch");
    }
    dts_task_info info = {.microbatch = (int32_t)microbatch, .layer = -1, .name = "h2d batch"};
    bool behind = !b->plan->job.input->pin_memory;
    l->copied = dts_build_input_copy(b, stage, l->batch_B, behind ? stage->last_kernel : DTS_NO_ID, &info);
    dts_build_memory(b, l->copied, DTS_AT_START, stage, DTS_MEMORY_ACTIVATIONS, l->batch_B);
    return l->copied;
}

void dts_input_leave(dts_builder *b, dts_stage *stage, int64_t microbatch, dts_id task) {
    const struct dts_loader *l = stage->loader;
    if (l != NULL && microbatch % l->passes == l->passes - 1) {
        dts_build_memory(b, task, DTS_AT_END, stage, DTS_MEMORY_ACTIVATIONS, -l->batch_B);
    }
}
