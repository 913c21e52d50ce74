#include "plan/lower/lower.h"

#include <stdio.h>
#include <stdlib.h>

#include "plan/lower/data_parallel.h"
#include "plan/lower/work.h"

/* Names a task for the engine's explanations. */
static void name_task(const void *context, dts_id task, uint32_t tag, char *buffer, size_t size) {
    const dts_builder *b = context;
    (void)task;
    const dts_task_info *info = &b->infos[tag];
    if (info->microbatch >= 0) {
        snprintf(buffer, size, "%s (layer %d, microbatch %d)", info->name, info->layer, info->microbatch);
    } else {
        snprintf(buffer, size, "%s", info->name);
    }
}

/* Refuses what would not end: every kernel is a task, and so is its launch. Makes room for what does. */
static dts_status check_size(dts_builder *b) {
    static const double most_tasks = 3e7; /* about 4 GiB */
    const dts_plan *plan = b->plan;
    double kernels[DTS_PART_COUNT] = {0};
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        for (size_t i = 0; i < b->work[part].operators.count; i++) {
            const dts_operator_times *t = &b->work[part].times[i];
            kernels[part] += t->forward_kernels + t->backward_input_kernels + t->backward_weight_kernels;
        }
    }
    double counts[DTS_PART_COUNT], pass = 0;
    dts_model_count_parts(plan->job.model, counts);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        pass += counts[part] * kernels[part];
    }
    double tasks = 2 * pass * (double)plan->passes * (double)b->rows;
    if (tasks > most_tasks && b->rows > 1) {
        return dts_diag_error(b->diag, NULL, "fidelity.ranks", "use `ranks: folded`, or fewer GPUs or microbatches",
                              "one iteration of all %.4g ranks has about %.2g million kernels, more than the %.0f "
                              "million that are simulated",
                              (double)plan->gpus, tasks / 2e6, most_tasks / 2e6);
    }
    if (tasks > most_tasks) {
        return dts_diag_error(
            b->diag, NULL, "training.global_batch",
            "use fewer layers, a larger micro_batch or a smaller global_batch: time grows in proportion to "
            "microbatches",
            "one iteration has about %.3g million kernels, more than the %.3g million that are simulated", tasks / 2e6,
            most_tasks / 2e6);
    }
    /* a pass through a chunk as a block has its copy, transfer, waits and launches beside it */
    static const double tasks_of_block = 8;
    double blocks = 2 * (double)plan->stages * (double)plan->passes * tasks_of_block;
    dts_build_expect(b, (size_t)(b->detail == DTS_DETAIL_BLOCK && blocks < tasks ? blocks : tasks));
    return DTS_OK;
}

/* Does the host wait for the GPU inside a pass? */
static bool host_reads(const dts_builder *b) {
    bool reads = false;
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        const dts_operators *operators = &b->work[part].operators;
        for (size_t i = 0; i < operators->count; i++) {
            reads |= operators->items[i].host_reads;
        }
    }
    return reads;
}

/* Tables of what was lowered, by device. */
static dts_status tables_new(dts_builder *b, dts_lowered *out) {
    size_t stages = (size_t)(b->rows * b->plan->pipeline);
    out->rows = b->rows;
    out->full_ranks = b->full;
    out->compute_stream = dts_arena_array(b->arena, stages, sizeof *out->compute_stream);
    out->gpus = dts_arena_array(b->arena, stages, sizeof *out->gpus);
    out->stage_parameters = dts_arena_array(b->arena, (size_t)b->plan->pipeline, sizeof *out->stage_parameters);
    out->stage_frozen = dts_arena_array(b->arena, (size_t)b->plan->pipeline, sizeof *out->stage_frozen);
    out->lasting = b->lasting = dts_arena_array(b->arena, (size_t)b->plan->pipeline, sizeof *out->lasting);
    out->static_B = dts_arena_array(b->arena, dts_graph_devices(b->graph), sizeof *out->static_B);
    if (dts_plan_post_validates(b->plan)) {
        out->stage_from = dts_arena_array(b->arena, stages, sizeof *out->stage_from);
        out->stage_to = dts_arena_array(b->arena, stages, sizeof *out->stage_to);
        if (out->stage_from == NULL || out->stage_to == NULL) {
            return dts_diag_nomem(b->diag);
        }
    }
    if (b->detail == DTS_DETAIL_KERNEL || b->kernel_stage > 0) {
        out->tensors = b->tensors = dts_arena_array(b->arena, (size_t)b->plan->pipeline, sizeof *out->tensors);
        if (out->tensors == NULL) {
            return dts_diag_nomem(b->diag);
        }
    }
    out->host_device = dts_arena_array(b->arena, (size_t)b->node_count, sizeof *out->host_device);
    out->nvme_device = dts_arena_array(b->arena, (size_t)b->node_count, sizeof *out->nvme_device);
    if (out->compute_stream == NULL || out->gpus == NULL || out->stage_parameters == NULL || out->static_B == NULL ||
        out->host_device == NULL || out->nvme_device == NULL || out->stage_frozen == NULL || out->lasting == NULL) {
        return dts_diag_nomem(b->diag);
    }
    for (int64_t n = 0; n < b->node_count && dts_plan_offloads(b->plan); n++) {
        out->nvme_device[out->host_count] = b->nodes[n].nvme;
        out->host_device[out->host_count++] = b->nodes[n].host;
    }
    return DTS_OK;
}

static dts_gradient_sync **syncs_new(dts_builder *b) {
    int64_t copies = b->plan->copies; /* each copy of a stage is reduced by itself */
    dts_gradient_sync **syncs =
        dts_arena_array(b->arena, (size_t)(b->stage_count * copies), sizeof(dts_gradient_sync *));
    for (int64_t i = 0; syncs != NULL && i < b->stage_count * copies; i++) {
        int64_t first = copies > 1 ? i % copies : 0;
        int64_t last = copies > 1 ? first : b->plan->virtual_stages - 1;
        syncs[i] = dts_sync_new(b, &b->stages[i / copies], first, last);
        if (syncs[i] == NULL) {
            return NULL;
        }
    }
    return syncs;
}

/* Ranks that share one copy hold a part each. With two directions two ranks hold a stage. */
static double trained_of(const dts_plan *plan, const dts_stage *stage) {
    const double *held = stage->held.parameters;
    const double elements = held[DTS_SET_COMMON] * (double)plan->tensor +
                            held[DTS_SET_EXPERTS] * (double)(plan->expert * plan->expert_tensor);
    return elements / (double)plan->copies;
}

/* All of one row of ranks: its pipeline, and its steps. */
static dts_status build_row(dts_builder *b, dts_lowered *out, int64_t row) {
    dts_build_select_row(b, row);
    dts_status status = dts_offload_new(b);
    if (status == DTS_OK) {
        status = dts_stash_new(b);
    }
    if (status == DTS_OK) {
        status = dts_input_new(b);
    }
    if (status != DTS_OK) {
        return status;
    }
    dts_build_count_parameters(b);
    dts_gradient_sync **syncs = syncs_new(b);
    if (syncs == NULL) {
        return dts_diag_nomem(b->diag);
    }
    dts_build_static_memory(b);
    dts_build_tensors(b);
    for (int64_t p = 0; p < b->stage_count; p++) {
        out->static_B[b->stages[p].device] = b->stages[p].static_B;
    }
    for (int64_t p = 0; p < b->plan->pipeline && out->stage_from != NULL; p++) {
        out->stage_from[row * b->plan->pipeline + p] = dts_build_begin(b, &b->stages[p], row);
    }
    for (int64_t p = 0; p < b->stage_count && dts_plan_overlaps_gather(b->plan); p++) {
        dts_updated_begin(syncs[p]);
    }
    status = dts_plan_single_process(b->plan) ? dts_build_single_process(b, syncs) : dts_build_pipeline(b, syncs);
    if (status != DTS_OK) {
        return status;
    }
    if (dts_plan_infers(b->plan)) {
        dts_build_end_of_inference(b, syncs);
    } else {
        dts_build_optimizer(b, syncs);
    }
    for (int64_t p = 0; p < b->plan->pipeline; p++) {
        dts_stage *stage = &b->stages[p];
        if (out->stage_to != NULL) {
            out->stage_to[row * b->plan->pipeline + p] = dts_build_end(b, stage);
        }
        out->compute_stream[row * b->plan->pipeline + p] = stage->compute;
        out->gpus[row * b->plan->pipeline + p] = stage->gpu;
        out->stage_parameters[p] = dts_stage_parameters(stage);
        out->trained += row == 0 ? trained_of(b->plan, stage) : 0;
        out->stage_frozen[p] = dts_stage_frozen(stage);
        out->flops += row == 0 ? stage->flops : 0;
    }
    return DTS_OK;
}

static dts_status build(dts_builder *b, dts_lowered *out) {
    dts_status status = dts_build_stages(b);
    if (status == DTS_OK && b->detail != DTS_DETAIL_KERNEL) {
        status = dts_block_environment(b->blocks, b);
    }
    if (status == DTS_OK) {
        status = dts_build_work(b);
    }
    if (status == DTS_OK) {
        b->host_reads = host_reads(b);
        out->timed = dts_build_timed(b);
        status = check_size(b);
    }
    if (status == DTS_OK) {
        status = dts_chunks_new(b);
    }
    if (status == DTS_OK) {
        status = tables_new(b, out);
    }
    for (int64_t row = 0; row < b->rows && status == DTS_OK; row++) {
        status = build_row(b, out, row);
    }
    for (size_t n = 0; n < out->host_count && status == DTS_OK; n++) {
        out->static_B[out->host_device[n]] = b->nodes[n].static_B;
        if (out->nvme_device[n] != DTS_NO_ID) {
            out->static_B[out->nvme_device[n]] = b->nodes[n].nvme_static_B;
        }
    }
    out->input_depth = b->input_depth;
    out->input_batches = b->input_batches;
    out->input_ahead = b->input_ahead;
    out->window_from = b->window_from;
    out->window_to = b->window_to;
    return status;
}

static dts_detail detail_of(const dts_plan *plan, const dts_lower_options *options) {
    dts_detail detail =
        options->detail == DTS_DETAIL_AUTO ? dts_lower_detail(plan, options->flow_network) : options->detail;
    bool possible = options->brief ? dts_brief_blocks_possible(plan) : dts_blocks_possible(plan);
    return options->full_ranks || options->blocks == NULL || !possible ? DTS_DETAIL_KERNEL : detail;
}

dts_status dts_lower(const dts_plan *plan, const dts_lower_options *options, dts_arena *arena, dts_lowered *out,
                     dts_diag *diag) {
    *out = (dts_lowered){0};
    const dts_detail detail = detail_of(plan, options);
    dts_builder *b = dts_arena_alloc(arena, sizeof *b);
    if (b == NULL) {
        return dts_diag_nomem(diag);
    }
    *b = (dts_builder){.plan = plan,
                       .arena = arena,
                       .graph = dts_graph_new(),
                       .diag = diag,
                       .boundary_B = dts_plan_boundary_B(plan),
                       .slowest = dts_build_slowest(plan),
                       .flow_network = options->flow_network,
                       .detail = detail,
                       .blocks = options->blocks,
                       .full = options->full_ranks,
                       .kernel_stage = options->kernel_stage,
                       .brief = options->brief && detail != DTS_DETAIL_KERNEL,
                       .stop = options->stop,
                       .seed = options->seed,
                       .input_left = options->input_left,
                       .begins = options->begins,
                       .stalls = options->stalls,
                       .stall_count = options->stall_count,
                       .stall_at = dts_arena_array(arena, options->stall_count + 1, sizeof *b->stall_at),
                       .window_from = DTS_NO_ID,
                       .window_to = DTS_NO_ID};
    if (b->graph == NULL || b->stall_at == NULL) {
        dts_graph_free(b->graph);
        return dts_diag_nomem(diag);
    }
    dts_graph_set_namer(b->graph, name_task, b);
    dts_status status = build(b, out);
    dts_ranks_free(b);
    if (status == DTS_OK && b->failed) {
        status = dts_diag_nomem(diag);
    }
    if (status == DTS_OK && b->too_large) {
        status = dts_diag_error(diag, NULL, "training", "check model, micro_batch and sequence_length",
                                "a single tensor takes more than a petabyte");
    }
    if (status == DTS_OK) {
        status = dts_graph_freeze(b->graph, diag);
    }
    if (status != DTS_OK) {
        dts_graph_free(b->graph);
        free(b->infos);
        return status;
    }
    out->graph = b->graph;
    out->detail = b->detail;
    out->infos = b->infos;
    out->info_count = b->info_count;
    return DTS_OK;
}

void dts_lowered_free(dts_lowered *lowered) {
    if (lowered != NULL) {
        dts_graph_free(lowered->graph);
        free(lowered->infos);
        lowered->graph = NULL;
        lowered->infos = NULL;
    }
}
