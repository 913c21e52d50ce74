/* From replays to what the host has to wait for.
 *
 * When cudaMalloc fails, the allocator frees all that it holds in unused segments and asks again; later requests of the
 * iteration then need cudaMalloc, where the cache served them before. A retry waits for all work of the GPU (cudaFree
 * does, and the allocator for its events [1]), and every call takes the stack's allocator.slow_path; with expandable
 * segments, which a request maps and unmaps page by page, the first page does and the others allocator.page. Both are
 * tasks of the host thread in a second simulation, at the kernels where they happened: what they cost comes out of it.
 *
 * [1] PyTorch, c10/cuda/CUDACachingAllocator.cpp, release_cached_blocks; CUDA C++ Programming Guide, "Implicit
 *     Synchronization". */
#include "run/stalls.h"

#include <stdlib.h>

dts_id dts_fullest_device(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                          int64_t p) {
    dts_id most = (dts_id)p;
    for (int64_t row = 1; row < lowered->rows; row++) {
        dts_id device = (dts_id)(row * plan->pipeline + p);
        bool more = dts_simulation_peak(simulation, device)->bytes > dts_simulation_peak(simulation, most)->bytes;
        most = more ? device : most;
    }
    return most;
}

double dts_context_B(const dts_plan *plan) {
    return plan->job.cluster->gpu.context_B + dts_stack_context_B(plan->job.stack, plan->job.cluster);
}

/* A pattern of retries that repeats, in a run that goes on. */
static bool retries(const dts_replay *replay) {
    return replay->retries > 0 && !replay->out_of_memory;
}

dts_status dts_replay_stages(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                             const dts_memory_log *log, dts_replay **out) {
    *out = NULL;
    dts_replay *replays = calloc((size_t)plan->pipeline, sizeof *replays);
    if (replays == NULL) {
        return DTS_NOMEM;
    }
    double room_B = plan->job.cluster->gpu.memory_B - dts_context_B(plan);
    for (int64_t p = 0; p < plan->pipeline; p++) {
        dts_id device = dts_fullest_device(plan, lowered, simulation, p);
        dts_replay *replay = &replays[p];
        dts_status status = dts_replay_device(plan, lowered, simulation, log, device, p, room_B, replay);
        if (status == DTS_OK && lowered->full_ranks && device != (dts_id)p && retries(replay)) {
            dts_replay_free(replay); /* the ranks of the first row say where hosts are held up (lower.h) */
            status = dts_replay_device(plan, lowered, simulation, log, (dts_id)p, p, room_B, replay);
        }
        if (status != DTS_OK) {
            dts_replays_free(replays, plan->pipeline);
            return DTS_NOMEM;
        }
    }
    *out = replays;
    return DTS_OK;
}

void dts_replays_free(dts_replay *replays, int64_t stages) {
    for (int64_t p = 0; replays != NULL && p < stages; p++) {
        dts_replay_free(&replays[p]);
    }
    free(replays);
}

static double stall_s(const dts_stack *stack, const dts_allocator_stall *s) {
    if (stack->allocator_expandable && s->calls > 0) {
        return stack->slow_path_s + (double)(s->calls - 1) * stack->allocator_page_s;
    }
    return (double)s->calls * stack->slow_path_s;
}

dts_status dts_replay_stalls(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                             const dts_replay *replays, dts_host_stall **out, size_t *count) {
    size_t all = 0;
    for (int64_t p = 0; p < plan->pipeline; p++) {
        all += retries(&replays[p]) ? replays[p].stall_count : 0;
    }
    *out = NULL;
    *count = 0;
    if (all == 0) {
        return DTS_OK;
    }
    dts_host_stall *stalls = malloc(all * sizeof *stalls);
    if (stalls == NULL) {
        return DTS_NOMEM;
    }
    for (int64_t p = 0; p < plan->pipeline; p++) {
        dts_id device = lowered->full_ranks ? (dts_id)p : dts_fullest_device(plan, lowered, simulation, p);
        for (size_t i = 0; retries(&replays[p]) && i < replays[p].stall_count; i++) {
            const dts_allocator_stall *s = &replays[p].stalls[i];
            if (s->task != DTS_NO_ID) {
                stalls[(*count)++] = (dts_host_stall){.device = device,
                                                      .task = s->task,
                                                      .seconds = stall_s(plan->job.stack, s),
                                                      .behind = s->behind,
                                                      .waits = s->retries};
            }
        }
    }
    *out = stalls;
    return DTS_OK;
}
