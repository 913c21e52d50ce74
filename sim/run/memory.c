/* Three figures of memory, as PyTorch users know them.
 *
 *   allocated  live tensors: the ledger's peak over simulated time
 *   reserved   what the caching allocator holds: allocated times the stack's factor for rounding and fragmentation, and
 *              what flat buffers needed at another moment: gradients, optimizer copies and gathered or bucketed tensors
 *              are far larger than activations, whose cached segments cannot serve them and are not joined [1]:
 *                reserved = factor · peak + Σ over these categories (own peak − at the peak)
 *              Before it fails, the allocator gives cached blocks back, so reserved shrinks towards allocated near
 *              capacity
 *   device     what nvidia-smi shows: reserved, the CUDA context, communication buffers and library workspaces
 * A plan fits when the live tensors and the context do. The fullest GPU is that with the most on the device, as
 * nvidia-smi would show it; another one may hold more live tensors, or reserve more, and each figure is the largest.
 *
 * [1] PyTorch, c10/cuda/CUDACachingAllocator.cpp: a block is split, never joined across segments of cudaMalloc.
 * [2] The same: get_free_block looks among blocks of the request's stream only. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "run/measure.h"
#include "run/stalls.h"
#include "run/verdict.h"

static double wanted_B(const dts_plan *plan, const dts_memory_peak *peak) {
    static const dts_memory_category flat[] = {DTS_MEMORY_SHARDS, DTS_MEMORY_GRADIENTS, DTS_MEMORY_OPTIMIZER,
                                               DTS_MEMORY_COMMUNICATION, DTS_MEMORY_GATHERED};
    double wanted = (double)peak->bytes * plan->job.stack->allocator_reserve_factor;
    /* where segments are one range of addresses only those of another stream are apart [2] */
    const size_t apart = plan->job.stack->allocator_expandable ? 1 : sizeof flat / sizeof flat[0];
    for (size_t i = 0; i < apart; i++) {
        wanted += (double)(peak->category_peak[flat[i]] - peak->by_category[flat[i]]);
    }
    return wanted;
}

static double reserved_B(const dts_plan *plan, const dts_memory_peak *peak, double context_B) {
    double allocated_B = (double)peak->bytes;
    double wanted = wanted_B(plan, peak);
    double room = plan->job.cluster->gpu.memory_B - context_B;
    double held = wanted < room ? wanted : room;
    return held > allocated_B ? held : allocated_B;
}

bool dts_estimate_doubtful(const dts_measured *m) {
    const double capacity_B = m->plan->job.cluster->gpu.memory_B, context_B = dts_context_B(m->plan);
    bool doubtful = m->plan->expert > 1;
    for (int64_t p = 0; p < m->plan->pipeline; p++) {
        const dts_id device = dts_fullest_device(m->plan, m->lowered, m->simulation, p);
        const dts_memory_peak *peak = dts_simulation_peak(m->simulation, device);
        if ((double)peak->bytes + context_B > capacity_B) {
            return false;
        }
        doubtful |= wanted_B(m->plan, peak) + context_B > (1 - dts_estimate_margin) * capacity_B;
    }
    return doubtful;
}

/* The layer of a block's kernel with the most memory, as reports show it. */
static int32_t peak_layer(const dts_measured *m, const dts_task_info *info) {
    const dts_block *block = info->block;
    const dts_plan *plan = m->plan;
    if (block->peak_part == DTS_PART_EMBEDDING) {
        return 0;
    }
    if (block->peak_part == DTS_PART_HEAD) {
        return (int32_t)plan->job.model->layers + 1;
    }
    if (info->layer >= 0) {
        return info->layer;
    }
    int64_t s = dts_plan_stage(plan, info->device, info->chunk);
    return (int32_t)plan->chunks[s].first_layer + 1 + block->peak_layer;
}

static const char *peak_cause(const dts_measured *m, dts_id task, dts_arena *arena) {
    if (task == DTS_NO_ID) {
        return "what lives the whole iteration";
    }
    const dts_task_info *info = &m->lowered->infos[task];
    bool inside = info->block != NULL && info->block->peak_name != NULL;
    const char *name = inside ? info->block->peak_name : info->name;
    int32_t layer = inside ? peak_layer(m, info) : info->layer;
    if (info->microbatch < 0 || layer < 0) {
        return dts_arena_strdup(arena, name);
    }
    if (layer == 0 || layer > m->plan->job.model->layers) {
        const char *part = layer == 0 ? "embedding" : "head";
        return strcmp(name, part) == 0
                   ? dts_arena_printf(arena, "%s, microbatch %" PRId32, name, info->microbatch)
                   : dts_arena_printf(arena, "%s, %s, microbatch %" PRId32, name, part, info->microbatch);
    }
    /* layers count from 0, as in `layers` of the stages */
    return dts_arena_printf(arena, "%s, layer %" PRId32 ", microbatch %" PRId32, name, layer - 1, info->microbatch);
}

static dts_status measure_stage(const dts_measured *m, int64_t p, dts_result *result) {
    const dts_plan *plan = m->plan;
    const dts_id device = dts_fullest_device(plan, m->lowered, m->simulation, p);
    const dts_memory_peak *peak = dts_simulation_peak(m->simulation, device);
    double context_B = dts_context_B(plan);
    double allocated_B = (double)peak->bytes;
    double reserved = reserved_B(plan, peak, context_B);
    if (m->replays != NULL) { /* up to where a request failed, if one did */
        reserved = fmax((double)m->replays[p].peak_reserved_B, allocated_B);
    }
    dts_stage_row *row = &result->stages[p];
    row->peak_allocated_gib = allocated_B / DTS_GIB;
    row->peak_reserved_gib = reserved / DTS_GIB;
    row->peak_device_gib = (reserved + context_B) / DTS_GIB;
    row->memory_gib = (dts_memory_gib){
        .parameters = (double)peak->by_category[DTS_MEMORY_PARAMETERS] / DTS_GIB,
        .gradients = (double)(peak->by_category[DTS_MEMORY_GRADIENTS] + peak->by_category[DTS_MEMORY_SHARDS]) / DTS_GIB,
        .optimizer = (double)peak->by_category[DTS_MEMORY_OPTIMIZER] / DTS_GIB,
        .activations = (double)peak->by_category[DTS_MEMORY_ACTIVATIONS] / DTS_GIB,
        .temporary = (double)peak->by_category[DTS_MEMORY_TEMPORARY] / DTS_GIB,
        .communication =
            (double)(peak->by_category[DTS_MEMORY_COMMUNICATION] + peak->by_category[DTS_MEMORY_GATHERED]) / DTS_GIB,
        .context = context_B / DTS_GIB,
        .fragmentation = (reserved - allocated_B) / DTS_GIB,
    };
    row->peak_at_s = dts_time_to_s(peak->when);
    row->peak_cause = peak_cause(m, peak->task, result->arena);
    return row->peak_cause == NULL ? DTS_NOMEM : DTS_OK;
}

/* How the caching allocator of a stage gets by. */
static void note_allocator(const dts_measured *m, int64_t p, dts_result *result) {
    const dts_replay *replay = m->replays != NULL ? &m->replays[p] : NULL;
    if (replay != NULL && replay->out_of_memory) {
        result->allocator.unserved_gib = (double)replay->requested_B / DTS_GIB;
    } else if (replay != NULL && m->lowered->detail != DTS_DETAIL_KERNEL) {
        result->allocator.untimed_retries |= replay->retries > 0;
    } else if (replay != NULL && replay->retries > result->allocator.retries) {
        result->allocator.retries = replay->retries;
        result->allocator.calls = replay->calls;
    }
}

/* What is offloaded must fit into the nodes. */
static void measure_hosts(const dts_measured *m, dts_result *result) {
    for (size_t n = 0; n < m->lowered->host_count; n++) {
        double peak_gib = (double)dts_simulation_peak(m->simulation, m->lowered->host_device[n])->bytes / DTS_GIB;
        result->host_capacity_gib = dts_cluster_host(m->plan->job.cluster).memory_B / DTS_GIB;
        result->host_peak_gib = peak_gib > result->host_peak_gib ? peak_gib : result->host_peak_gib;
        result->fits &= peak_gib <= result->host_capacity_gib;
        dts_id drives = m->lowered->nvme_device[n];
        if (drives != DTS_NO_ID) {
            peak_gib = (double)dts_simulation_peak(m->simulation, drives)->bytes / DTS_GIB;
            result->nvme_capacity_gib = dts_cluster_host(m->plan->job.cluster).nvme_capacity_B / DTS_GIB;
            result->nvme_peak_gib = peak_gib > result->nvme_peak_gib ? peak_gib : result->nvme_peak_gib;
            result->fits &= peak_gib <= result->nvme_capacity_gib;
        }
    }
}

/* What stage p holds at its peak of outputs that stay until the step ends (stack.pipeline.keeps_outputs). */
static void note_kept_outputs(const dts_measured *m, int64_t p, dts_result *result) {
    result->kept_outputs_gib = result->joined_outputs_gib = 0;
    if (dts_plan_kept_outputs(m->plan) == DTS_KEPT_OUTPUTS_NONE) {
        return;
    }
    const dts_id device = dts_fullest_device(m->plan, m->lowered, m->simulation, p);
    const dts_memory_peak *peak = dts_simulation_peak(m->simulation, device);
    const dts_time *ends = dts_simulation_ends(m->simulation);
    double kept_B = 0;
    for (size_t i = 0; i < m->lowered->info_count; i++) {
        const dts_task_info *info = &m->lowered->infos[i];
        kept_B += info->device == device && ends[i] <= peak->when ? info->kept_B : 0;
    }
    result->kept_outputs_gib = kept_B / DTS_GIB;
    /* the kernel that joins outputs is the one of a forward pass at whose end they are dropped */
    const dts_task_info *at = peak->task == DTS_NO_ID ? NULL : &m->lowered->infos[peak->task];
    if (at != NULL && at->role == DTS_ROLE_FORWARD && at->kept_B < 0) {
        result->joined_outputs_gib = -at->kept_B / DTS_GIB;
    }
}

/* Of a GPU's states of one kind, what is experts'. */
static double experts_gib(const dts_lasting_terms *terms, dts_memory_category category) {
    double bytes = 0;
    for (size_t i = 0; i < terms->count; i++) {
        const dts_lasting *term = &terms->items[i];
        bytes += term->category == category && term->set == DTS_SET_EXPERTS ? (double)term->bytes : 0;
    }
    return bytes / DTS_GIB;
}

static void note_experts(const dts_measured *m, size_t stage, dts_result *result) {
    const dts_lasting_terms *terms = &m->lowered->lasting[stage];
    result->experts.parameters_gib = experts_gib(terms, DTS_MEMORY_PARAMETERS);
    result->experts.gradients_gib = experts_gib(terms, DTS_MEMORY_GRADIENTS) + experts_gib(terms, DTS_MEMORY_SHARDS);
    result->experts.optimizer_gib = experts_gib(terms, DTS_MEMORY_OPTIMIZER);
    result->experts.copies = m->plan->expert_replicas;
    const int optimizer_kind = m->plan->job.training->optimizer;
    result->experts.wide_moments = optimizer_kind == DTS_OPTIMIZER_ADAM || optimizer_kind == DTS_OPTIMIZER_ADAMW;
}

size_t dts_fullest_stage(const dts_result *result) {
    size_t fullest = 0;
    for (size_t p = 1; p < result->stage_count; p++) {
        const dts_stage_row *row = &result->stages[p], *most = &result->stages[fullest];
        const bool equal = row->peak_device_gib == most->peak_device_gib; /* as where reserves end at the capacity */
        if (equal ? row->peak_allocated_gib > most->peak_allocated_gib : row->peak_device_gib > most->peak_device_gib) {
            fullest = p;
        }
    }
    return fullest;
}

dts_status dts_measure_memory(const dts_measured *m, dts_result *result) {
    double capacity_B = m->plan->job.cluster->gpu.memory_B;
    result->capacity_gib = capacity_B / DTS_GIB;
    result->fits = true;
    for (int64_t p = 0; p < m->plan->pipeline; p++) {
        if (measure_stage(m, p, result) != DTS_OK) {
            return DTS_NOMEM;
        }
        const dts_stage_row *row = &result->stages[p];
        note_allocator(m, p, result);
        result->fits &= row->peak_allocated_gib + row->memory_gib.context <= result->capacity_gib;
        result->peak_allocated_gib = fmax(result->peak_allocated_gib, row->peak_allocated_gib);
        result->peak_reserved_gib = fmax(result->peak_reserved_gib, row->peak_reserved_gib);
        result->peak_device_gib = fmax(result->peak_device_gib, row->peak_device_gib);
    }
    result->allocator.doubtful = m->replays == NULL && dts_estimate_doubtful(m);
    const size_t fullest = dts_fullest_stage(result);
    result->memory_gib = result->stages[fullest].memory_gib;
    note_kept_outputs(m, (int64_t)fullest, result);
    note_experts(m, fullest, result);
    measure_hosts(m, result);
    return DTS_OK;
}
