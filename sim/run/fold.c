/* Few microbatches for many: the steady state of a pipeline.
 *
 * Once a pipeline is full every further round of microbatches takes as long as the one before: its tasks wait for each
 * other in the same pattern, and times repeat with a constant shift (a max-plus linear system becomes periodic [1]).
 * So an iteration of m microbatches is simulated with m1 and with m2 = m1 + u of them, u a multiple of the stages, and
 * everything that adds up over time or microbatches follows the line through both:
 *   x(m) = x(m2) + (m - m2) / (m2 - m1) · (x(m2) - x(m1))                                                         (1)
 * Filling, draining, the first and the last microbatch and the optimizer are in both runs.
 *
 * How long it takes until times repeat has no useful bound: a stage that is a little slower than the one before it
 * falls behind for as long as the activations between them last, transfers that share a link drift past each other, and
 * a host that is slower than its GPU holds it up only when its lead is used up. So (1) is followed only where
 *   no stage finishes a microbatch of the last full round later than D = T(m2) - T(m1) after the one u before it, and
 *   one just then: it sets the pace, and those that are faster only use up what waits for them
 *   no stream is busy for longer than D with what u more microbatches add to it: it would fall behind for ever
 *   no share of the time shrinks from m1 to m2: it would be used up
 *   the peaks of memory are the same (gpipe holds all microbatches)
 * Else it is tried once more with twice as many, and then all microbatches are simulated.
 *
 * [1] Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity", 1992, section 3.7. */
#include "run/fold.h"

#include <stdlib.h>

/* A pipeline is followed for two rounds of its stages, to be full, and one more; with several chunks on each stage
 * filling and draining take a round longer each. A long one with one chunk is full after as many microbatches as it has
 * stages, and needs no whole rounds. */
enum { LEAST_ROUND = 4, LONG_PIPELINE = 16, BEYOND = 4 };

bool dts_fold_find(const dts_plan *plan, dts_fold *out) {
    int64_t round = (LEAST_ROUND + plan->pipeline - 1) / plan->pipeline * plan->pipeline;
    int64_t filling = plan->virtual_stages > 1 ? 4 * round : 2 * round;
    *out = (dts_fold){.few = filling, .more = filling + round, .all = plan->microbatches};
    if (plan->pipeline > LONG_PIPELINE && plan->virtual_stages == 1) {
        out->few = plan->pipeline + BEYOND;
        out->more = out->few + BEYOND;
    }
    out->draining = plan->virtual_stages > 1 ? 2 * plan->pipeline : plan->pipeline;
    return plan->microbatches > out->more && plan->job.parallelism->schedule.order == NULL &&
           !dts_plan_asynchronous(plan);
}

bool dts_fold_retry(dts_fold *fold) {
    int64_t round = fold->more - fold->few;
    fold->few *= 2;
    fold->more = fold->few + round;
    return fold->all > 2 * fold->more;
}

/* ---- the rhythm of a run ---------------------------------------------------------------------------------------- */

dts_status dts_fold_listen(const dts_measured *m, dts_arena *arena, dts_rhythm *out) {
    const dts_graph *graph = m->lowered->graph;
    const dts_time *starts = dts_simulation_starts(m->simulation);
    const dts_time *ends = dts_simulation_ends(m->simulation);
    *out = (dts_rhythm){.streams = dts_graph_streams(graph),
                        .stages = m->plan->pipeline,
                        .microbatches = m->plan->passes,
                        .directions = m->plan->copies,
                        .length = m->to - m->from};
    out->busy = dts_arena_array(arena, out->streams, sizeof *out->busy);
    out->finished = dts_arena_array(arena, (size_t)(out->stages * out->microbatches), sizeof *out->finished);
    if (out->busy == NULL || out->finished == NULL) {
        return DTS_NOMEM;
    }
    for (size_t s = 0; s < out->streams; s++) {
        size_t count = 0;
        const dts_id *tasks = dts_graph_stream_tasks(graph, (dts_id)s, &count);
        for (size_t i = 0; i < count; i++) {
            out->busy[s] += ends[tasks[i]] - starts[tasks[i]];
        }
    }
    for (int64_t p = 0; p < out->stages; p++) {
        size_t count = 0;
        const dts_id *tasks = dts_graph_stream_tasks(graph, m->lowered->compute_stream[p], &count);
        for (size_t i = 0; i < count; i++) { /* in the order of time */
            int32_t microbatch = m->lowered->infos[tasks[i]].microbatch;
            if (microbatch >= 0) {
                out->finished[p * out->microbatches + microbatch] = ends[tasks[i]];
            }
        }
    }
    return DTS_OK;
}

/* Times are whole picoseconds: rounding may differ from one round to the next. */
static bool same_length(dts_time a, dts_time b) {
    static const double part = 1e-7;
    enum { ROUNDING = 1000 };
    return llabs(a - b) <= ROUNDING + (int64_t)(part * (double)b);
}

static bool no_longer(dts_time a, dts_time b) {
    return a <= b || same_length(a, b);
}

/* Is a stage no slower in the last round before its pipeline drains than T grows by? *sets_pace: as slow. end: of these
 * microbatches; first: of a direction's. */
static bool stage_keeps_up(const dts_time *first, int64_t end, int64_t round, dts_time added, bool *sets_pace) {
    int64_t from = end - round > round ? end - round : round + 1; /* the very first makes what the others add to */
    bool keeps_up = from < end;
    bool same = keeps_up;
    for (int64_t i = from; keeps_up && i < end; i++) {
        same &= same_length(first[i] - first[i - round], added);
        keeps_up = no_longer(first[i] - first[i - round], added);
    }
    *sets_pace |= same;
    return keeps_up;
}

static bool repeats(const dts_fold *f, const dts_rhythm *few, const dts_rhythm *more) {
    dts_time added = more->length - few->length;
    bool keep_up = more->streams == few->streams;
    bool sets_pace = false;
    for (size_t s = 0; keep_up && s < more->streams; s++) {
        keep_up = no_longer(more->busy[s] - few->busy[s], added);
    }
    int64_t each = f->more / more->directions;
    int64_t round = (f->more - f->few) / more->directions;
    for (int64_t row = 0; keep_up && row < more->stages * more->directions; row++) {
        keep_up = stage_keeps_up(more->finished + row * each, each - f->draining, round, added, &sets_pace);
    }
    return keep_up && sets_pace;
}

/* ---- following it ------------------------------------------------------------------------------------------------ */

static bool same_memory(const dts_result *a, const dts_result *b) {
    bool same = a->stage_count == b->stage_count && a->host_peak_gib == b->host_peak_gib;
    for (size_t i = 0; same && i < a->stage_count; i++) {
        same = a->stages[i].peak_allocated_gib == b->stages[i].peak_allocated_gib;
    }
    return same;
}

static bool same_rows(const dts_result *a, const dts_result *b) {
    bool same = a->communication_count == b->communication_count;
    for (size_t i = 0; same && i < a->communication_count; i++) {
        same = a->communication[i].kind == b->communication[i].kind &&
               a->communication[i].group == b->communication[i].group;
    }
    return same;
}

/* A share that shrinks as microbatches are added will be used up: the host's step that fewer of them do not hide. The
 * slope changes there. */
static bool no_share_shrinks(const dts_time_shares *few, const dts_time_shares *more) {
    static const double same = 1e-9;
    double total = more->compute;
    return more->exposed_communication >= few->exposed_communication - same * total &&
           more->bubble >= few->bubble - same * total && more->host_bound >= few->host_bound - same * total &&
           more->exposed_offload >= few->exposed_offload - same * total &&
           more->optimizer >= few->optimizer - same * total && more->input_wait >= few->input_wait - same * total;
}

/* (1) */
static double follow(const dts_fold *f, double few, double more) {
    return more + (double)(f->all - f->more) / (double)(f->more - f->few) * (more - few);
}

static void follow_times(const dts_fold *f, const dts_time_shares *few, dts_time_shares *more) {
    more->compute = follow(f, few->compute, more->compute);
    more->exposed_communication = follow(f, few->exposed_communication, more->exposed_communication);
    more->bubble = follow(f, few->bubble, more->bubble);
    more->exposed_offload = follow(f, few->exposed_offload, more->exposed_offload);
    more->host_bound = follow(f, few->host_bound, more->host_bound);
    more->optimizer = follow(f, few->optimizer, more->optimizer);
    more->input_wait = follow(f, few->input_wait, more->input_wait);
}

static void follow_communication(const dts_fold *f, const dts_result *few, dts_result *more) {
    for (size_t i = 0; i < more->communication_count; i++) {
        const dts_communication_row *from = &few->communication[i];
        dts_communication_row *row = &more->communication[i];
        row->count = (int64_t)(follow(f, (double)from->count, (double)row->count) + 0.5);
        row->bytes = follow(f, from->bytes, row->bytes);
        row->total_s = follow(f, from->total_s, row->total_s);
        row->exposed_s = follow(f, from->exposed_s, row->exposed_s);
    }
}

/* Throughput and utilisation follow from the time. */
static void follow_speed(const dts_fold *f, const dts_result *few, dts_result *more, double time_s) {
    double faster = (double)f->all / (double)f->more * more->iteration_time_s / time_s;
    more->hfu = follow(f, few->hfu * few->iteration_time_s, more->hfu * more->iteration_time_s) / time_s;
    more->samples_per_s *= faster;
    more->tokens_per_s *= faster;
    more->tokens_per_s_per_gpu *= faster;
    more->model_tflops_per_gpu *= faster;
    more->mfu *= faster;
}

static void follow_stages(const dts_fold *f, const dts_result *few, dts_result *more, double time_s) {
    more->bubble_fraction = 0;
    for (size_t i = 0; i < more->stage_count; i++) {
        const dts_stage_row *from = &few->stages[i];
        dts_stage_row *row = &more->stages[i];
        row->compute_s = follow(f, from->compute_s, row->compute_s);
        row->bubble_fraction =
            follow(f, from->bubble_fraction * few->iteration_time_s, row->bubble_fraction * more->iteration_time_s) /
            time_s;
        more->bubble_fraction += row->bubble_fraction / (double)more->stage_count;
    }
}

bool dts_fold_is_steady(const dts_fold *fold, const dts_rhythm rhythms[2], const dts_result *few,
                        const dts_result *more) {
    return repeats(fold, &rhythms[0], &rhythms[1]) && same_memory(few, more) && same_rows(few, more) &&
           no_share_shrinks(&few->time_s, &more->time_s);
}

void dts_fold_combine(const dts_fold *f, const dts_result *few, dts_result *more) {
    double time_s = follow(f, few->iteration_time_s, more->iteration_time_s);
    follow_speed(f, few, more, time_s);
    follow_stages(f, few, more, time_s);
    follow_times(f, &few->time_s, &more->time_s);
    follow_communication(f, few, more);
    double samples = (double)more->global_batch / (double)more->microbatches * (double)f->all / (double)more->gpus;
    double total_s = 0;
    for (size_t i = 0; i < more->communication_count; i++) {
        total_s += more->communication[i].total_s;
    }
    more->aco_ms_per_sample = 1e3 * total_s / samples;
    more->exposed_aco_ms_per_sample = 1e3 * more->time_s.exposed_communication / samples;
    more->ranks.critical_busy_s = follow(f, few->ranks.critical_busy_s, more->ranks.critical_busy_s);
    more->ranks.least_busy_s = follow(f, few->ranks.least_busy_s, more->ranks.least_busy_s);
    more->iteration_time_s = time_s;
    more->global_batch = more->global_batch / more->microbatches * f->all;
    more->microbatches = f->all;
    more->simulation.tasks += few->simulation.tasks;
    more->simulation.events += few->simulation.events;
    more->simulation.microbatches = f->more;
}
