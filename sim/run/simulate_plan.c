/* From a plan to its simulated iteration: changes of memory are kept on the way, for pictures and for the caching
 * allocator, and what repeats from iteration to iteration is simulated until it does: the queue of loaded batches, the
 * times at which stages begin, and calls of the allocator. */
#include "run/simulate_plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "plan/lower/measured_passes.h"
#include "run/input.h"
#include "run/measure.h"
#include "run/stalls.h"

typedef struct recorder {
    dts_memory_sample *samples;
    double *now_B; /* [device] */
    size_t count, capacity;
    bool failed;
    bool samples_wanted;
    dts_memory_log *log; /* NULL: not wanted */
} recorder;

static void sample(recorder *r, dts_time now, dts_id device, double bytes) {
    dts_memory_sample *samples = dts_array_room(r->samples, &r->capacity, r->count + 1, sizeof *samples);
    if (samples == NULL) {
        r->failed = true;
        return;
    }
    r->samples = samples;
    r->now_B[device] += bytes;
    r->samples[r->count++] = (dts_memory_sample){.device = device, .when = now, .bytes = r->now_B[device]};
}

static void record_memory(void *context, dts_time now, dts_id device, unsigned category, int64_t bytes, dts_id task) {
    recorder *r = context;
    if (r->samples_wanted) {
        sample(r, now, device, (double)bytes);
    }
    if (r->log != NULL) {
        dts_memory_log_add(r->log, now, device, category, bytes, task);
    }
}

static dts_status simulate(const dts_lowered *lowered, bool record, dts_memory_log *log, const atomic_bool *stop,
                           dts_simulation **out, dts_result *result, dts_diag *diag) {
    recorder r = {
        .now_B = calloc(dts_graph_devices(lowered->graph), sizeof(double)), .samples_wanted = record, .log = log};
    if (r.now_B == NULL) {
        return dts_diag_nomem(diag);
    }
    for (dts_id d = 0; record && d < dts_graph_devices(lowered->graph); d++) {
        sample(&r, 0, d, (double)lowered->static_B[d]);
    }
    dts_observer observer = {
        .context = &r, .memory_changed = record || log != NULL ? record_memory : NULL, .stop = stop};
    dts_status status = dts_simulate(lowered->graph, &observer, out, diag);
    if (status == DTS_OK && record) {
        result->memory_samples = dts_arena_array(result->arena, r.count, sizeof *r.samples);
        if (r.failed || result->memory_samples == NULL) {
            status = dts_diag_nomem(diag);
        } else {
            for (size_t i = 0; i < r.count; i++) {
                result->memory_samples[i] = r.samples[i];
            }
            result->memory_sample_count = r.count;
        }
    }
    free(r.samples);
    free(r.now_B);
    return status;
}

/* Lowers and simulates, again where the queue of loaded batches or the stages' beginnings have not settled. log:
 * changes of memory; NULL: not wanted. */
static dts_status lower_and_simulate(const dts_plan *plan, dts_lower_options *how, bool record, dts_memory_log *log,
                                     dts_arena *arena, dts_simulated *s, dts_result *result, dts_diag *diag) {
    dts_input_steady steady = {0};
    dts_status status = DTS_OK;
    bool again = true;
    while (status == DTS_OK && again) {
        dts_simulation_free(s->simulation);
        s->simulation = NULL;
        dts_lowered_free(&s->lowered);
        how->input_left = steady.left;
        how->begins = s->stagger.begins;
        status = dts_lower(plan, how, arena, &s->lowered, diag);
        if (status == DTS_OK) {
            bool kernels = s->lowered.detail == DTS_DETAIL_KERNEL || how->kernel_stage > 0;
            if (log != NULL && kernels) {
                dts_memory_log_free(log);
                status = dts_memory_log_new(dts_graph_devices(s->lowered.graph), log);
            }
            status = status == DTS_OK
                         ? simulate(&s->lowered, record, kernels ? log : NULL, how->stop, &s->simulation, result, diag)
                         : dts_diag_nomem(diag);
        }
        bool staggers = false;
        if (status == DTS_OK &&
            (dts_input_settle(&steady, plan, &s->lowered, s->simulation, arena, &again) != DTS_OK ||
             dts_stagger_settle(&s->stagger, plan, &s->lowered, s->simulation, arena, &staggers) != DTS_OK)) {
            status = dts_diag_nomem(diag);
        }
        again |= staggers;
    }
    s->longer = steady.longer;
    return status;
}

static dts_time iteration_of(const dts_simulated *s) {
    const dts_time *ends = dts_simulation_ends(s->simulation);
    const dts_lowered *l = &s->lowered;
    if (l->stage_to != NULL) {
        return s->stagger.length;
    }
    return l->window_from != DTS_NO_ID ? ends[l->window_to] - ends[l->window_from]
                                       : ends[dts_last_task(l, s->simulation)] + s->longer;
}

/* Lets the allocator follow the simulation, and simulates once more with what holds the hosts up where it has to free
 * and allocate in every iteration. */
static dts_status follow_allocator(const dts_plan *plan, const dts_memory_log *log, dts_lower_options *how, bool record,
                                   dts_arena *arena, dts_simulated *s, dts_result *result, dts_diag *diag) {
    dts_host_stall *stalls = NULL;
    size_t count = 0;
    dts_status status = dts_replay_stages(plan, &s->lowered, s->simulation, log, &s->replays);
    if (status == DTS_OK) {
        status = dts_replay_stalls(plan, &s->lowered, s->simulation, s->replays, &stalls, &count);
    }
    if (status != DTS_OK) {
        return dts_diag_nomem(diag);
    }
    if (count > 0) {
        how->stalls = stalls;
        how->stall_count = count;
        s->unhindered = iteration_of(s);
        status = lower_and_simulate(plan, how, record, NULL, arena, s, result, diag);
    }
    free(stalls);
    return status;
}

/* Is the memory of both the same on a stage? */
static bool peaks_agree(const dts_plan *plan, const dts_simulated *a, const dts_simulated *b, int64_t p) {
    static const double part = 0.01; /* what detail may differ by */
    dts_id x = dts_fullest_device(plan, &a->lowered, a->simulation, p);
    dts_id y = dts_fullest_device(plan, &b->lowered, b->simulation, p);
    double bytes = (double)dts_simulation_peak(a->simulation, x)->bytes;
    return fabs((double)dts_simulation_peak(b->simulation, y)->bytes - bytes) <= part * bytes;
}

/* The allocator follows a stage of a plan for some of the microbatches, which is simulated kernel by kernel. *agrees:
 * it takes the memory that it takes with all of them, s. */
static dts_status replay_stage(const dts_plan *some, const dts_lower_options *how, int64_t p, const dts_simulated *s,
                               bool *agrees, dts_replay *replay, dts_diag *diag) {
    dts_lower_options fine = *how;
    fine.detail = s->lowered.detail;
    fine.kernel_stage = 1 + p;
    dts_memory_log log = {0};
    dts_simulated beside = {.simulation = NULL};
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_status status =
        arena == NULL ? dts_diag_nomem(diag) : lower_and_simulate(some, &fine, false, &log, arena, &beside, NULL, diag);
    *agrees = status == DTS_OK && peaks_agree(some, s, &beside, p);
    if (*agrees) {
        const dts_id device = dts_fullest_device(some, &beside.lowered, beside.simulation, p);
        const double room_B = some->job.cluster->gpu.memory_B - dts_context_B(some);
        status = dts_replay_device(some, &beside.lowered, beside.simulation, &log, device, p, room_B, replay);
        status = status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
    }
    dts_memory_log_free(&log);
    dts_simulated_free(&beside, some->pipeline);
    dts_arena_free(arena);
    return status;
}

/* The same for every stage, with a flush of so many microbatches. s->replays stays NULL where they do not agree. */
static dts_status replay_few(const dts_plan *plan, int64_t few, const dts_lower_options *how, dts_arena *arena,
                             dts_simulated *s, bool *agrees, dts_diag *diag) {
    dts_training training = *plan->job.training;
    training.global_batch = training.global_batch / plan->microbatches * few;
    dts_parallelism parallelism = *plan->job.parallelism;
    parallelism.flushes = 1;
    dts_job job = plan->job;
    job.training = &training;
    job.parallelism = &parallelism;
    dts_plan some;
    dts_status status = dts_lower_plan(&job, arena, &some, diag);
    dts_replay *replays = calloc((size_t)plan->pipeline, sizeof *replays);
    status = replays == NULL ? dts_diag_nomem(diag) : status;
    *agrees = true;
    for (int64_t p = 0; p < plan->pipeline && status == DTS_OK && *agrees; p++) {
        status = replay_stage(&some, how, p, s, agrees, &replays[p], diag);
    }
    if (status == DTS_OK && *agrees) {
        s->replays = replays;
    } else {
        dts_replays_free(replays, plan->pipeline);
    }
    return status;
}

/* With twice as many microbatches as stages most schedules have been as full as they get, and repeat; where the peak is
 * another one still, as with GPipe, it takes all. */
dts_status dts_replay_beside(const dts_plan *plan, const dts_lower_options *how, dts_arena *arena, dts_simulated *s,
                             dts_diag *diag) {
    const int64_t flush = plan->microbatches / plan->flushes, filled = 2 * plan->pipeline, fast = dts_lower_short(plan);
    const int64_t some = filled > fast ? filled : fast - fast % plan->pipeline;
    const bool own_order = plan->job.parallelism->schedule.order != NULL;
    bool agrees = false;
    dts_status status = DTS_OK;
    if (some < flush && !own_order) {
        status = replay_few(plan, some, how, arena, s, &agrees, diag);
    }
    if (status == DTS_OK && !agrees) {
        status = replay_few(plan, flush, how, arena, s, &agrees, diag);
    }
    return status;
}

dts_status dts_simulate_plan(const dts_plan *plan, dts_allocator_detail allocator, dts_lower_options *how, bool record,
                             dts_arena *arena, dts_simulated *s, dts_result *result, dts_diag *diag) {
    dts_memory_log log = {0};
    const bool replays = allocator != DTS_ALLOCATOR_ESTIMATE;
    dts_status status = lower_and_simulate(plan, how, record, replays ? &log : NULL, arena, s, result, diag);
    if (status == DTS_OK && replays && s->lowered.detail == DTS_DETAIL_KERNEL) {
        status = follow_allocator(plan, &log, how, record, arena, s, result, diag);
    }
    dts_memory_log_free(&log);
    return status;
}

void dts_simulated_free(dts_simulated *s, int64_t stages) {
    dts_replays_free(s->replays, stages);
    dts_simulation_free(s->simulation);
    dts_lowered_free(&s->lowered);
}
