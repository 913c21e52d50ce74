/* Finding how an iteration repeats; fold.c's head says what must hold. */
#include "run/rhythm.h"

#include <math.h>
#include <string.h>

static dts_rhythm *rhythm_new(const dts_measured *m, const dts_fold *fold, dts_arena *arena) {
    const dts_graph *graph = m->lowered->graph;
    dts_rhythm *out = dts_arena_alloc(arena, sizeof *out);
    if (out == NULL) {
        return NULL;
    }
    *out = (dts_rhythm){.m = m,
                        .fold = fold,
                        .directions = m->plan->copies,
                        .each = m->plan->passes / m->plan->copies,
                        .devices = (size_t)(m->lowered->rows * m->plan->pipeline)};
    size_t cells = out->devices * (size_t)m->plan->passes;
    out->last = dts_arena_array(arena, cells, sizeof *out->last);
    out->spans = dts_arena_array(arena, out->devices, sizeof *out->spans);
    out->counts = dts_arena_array(arena, dts_graph_streams(graph), sizeof *out->counts);
    out->busy = dts_arena_array(arena, dts_graph_streams(graph), sizeof *out->busy);
    out->launching = dts_arena_array(arena, dts_graph_streams(graph), sizeof *out->launching);
    out->kept_B = dts_arena_array(arena, dts_graph_devices(graph), sizeof *out->kept_B);
    out->position = dts_arena_array(arena, m->lowered->info_count, sizeof *out->position);
    out->pace = dts_arena_array(arena, m->lowered->info_count, sizeof *out->pace);
    out->meets = dts_arena_array(arena, m->lowered->info_count, sizeof *out->meets);
    if (out->position == NULL || out->pace == NULL || out->meets == NULL || out->last == NULL || out->spans == NULL ||
        out->counts == NULL || out->busy == NULL || out->launching == NULL || out->kept_B == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < cells; i++) {
        out->last[i] = DTS_NO_ID;
    }
    return out;
}

static void find_last_kernels(dts_rhythm *r) {
    const dts_lowered *lowered = r->m->lowered;
    for (size_t d = 0; d < r->devices; d++) {
        size_t count = 0;
        const dts_id *tasks = dts_graph_stream_tasks(lowered->graph, lowered->compute_stream[d], &count);
        for (size_t i = 0; i < count; i++) {
            int32_t microbatch = lowered->infos[tasks[i]].microbatch;
            if (microbatch >= 0) {
                r->last[(int64_t)d * r->m->plan->passes + microbatch] = tasks[i];
            }
        }
    }
}

/* Those of a device for the microbatches of a direction. */
static const dts_id *last_kernels(const dts_rhythm *r, size_t device, int64_t direction) {
    return r->last + (int64_t)device * r->m->plan->passes + direction * r->each;
}

static bool no_longer(dts_time a, dts_time b) {
    return a <= b || dts_rhythm_same_length(a, b);
}

/* How much later than the microbatch a round before does this one end? Negative: it is not known. */
static dts_time shift_of(const dts_rhythm *r, const dts_id *last, int64_t microbatch) {
    const dts_time *ends = dts_simulation_ends(r->m->simulation);
    dts_id now = last[microbatch];
    dts_id before = last[microbatch - r->round];
    return now == DTS_NO_ID || before == DTS_NO_ID ? -1 : ends[now] - ends[before];
}

/* The microbatches that show the pace: as many as a round has, and never fewer than DTS_LEAST_ROUND. */
typedef struct observed {
    int64_t from, end;
} observed;

static observed observe(const dts_rhythm *r) {
    int64_t count = r->round > DTS_LEAST_ROUND ? r->round : DTS_LEAST_ROUND;
    int64_t end = r->each - r->fold->draining;
    return (observed){.from = end - count > r->round ? end - count : r->round + 1,
                      .end = end}; /* the first does more */
}

/* D: the longest shift of all. Negative: it is not known. */
static dts_time longest_shift(const dts_rhythm *r, observed o) {
    dts_time longest = o.end - o.from < DTS_LEAST_ROUND - 1 ? -1 : 0;
    for (size_t row = 0; row < r->devices * (size_t)r->directions && longest >= 0; row++) {
        const dts_id *last = last_kernels(r, row / (size_t)r->directions, (int64_t)row % r->directions);
        for (int64_t i = o.from; i < o.end && longest >= 0; i++) {
            dts_time shift = shift_of(r, last, i);
            longest = shift < 0 || shift > longest ? shift : longest;
        }
    }
    return longest;
}

/* Is there a stage whose every shift is the longest? */
static bool a_stage_sets_the_pace(const dts_rhythm *r, observed o) {
    bool found = false;
    for (size_t row = 0; row < r->devices * (size_t)r->directions && !found; row++) {
        const dts_id *last = last_kernels(r, row / (size_t)r->directions, (int64_t)row % r->directions);
        found = true;
        for (int64_t i = o.from; i < o.end && found; i++) {
            found = dts_rhythm_same_length(shift_of(r, last, i), r->length);
        }
    }
    return found;
}

/* ---- a round ------------------------------------------------------------------------------------------------------
 */

static void find_spans(dts_rhythm *r) {
    const dts_time *ends = dts_simulation_ends(r->m->simulation);
    int64_t end = r->each - r->fold->draining - 1;
    r->first = DTS_NO_ID;
    r->end = 0;
    for (size_t d = 0; d < r->devices; d++) {
        const dts_id *last = last_kernels(r, d, 0);
        r->spans[d] = (span){.before = end >= 2 * r->round ? last[end - 2 * r->round] : DTS_NO_ID,
                             .after = last[end - r->round],
                             .until = last[end],
                             .from = ends[last[end - r->round]],
                             .to = ends[last[end]]};
        r->first = r->spans[d].after < r->first ? r->spans[d].after + 1 : r->first;
        r->end = r->spans[d].until >= r->end ? r->spans[d].until + 1 : r->end;
    }
}

/* Kernels of microbatches on a compute stream. */
typedef struct work {
    size_t kernels;
    dts_time busy;
} work;

static void add_work(const dts_rhythm *r, dts_id task, work *to) {
    to->kernels++;
    to->busy += dts_simulation_ends(r->m->simulation)[task] - dts_simulation_starts(r->m->simulation)[task];
}

/* Tasks of the compute stream behind `after` up to until, and of these what microbatches do. */
static size_t work_between(const dts_rhythm *r, size_t device, dts_id after, dts_id until, work *out) {
    const dts_lowered *lowered = r->m->lowered;
    size_t all = 0;
    const dts_id *tasks = dts_graph_stream_tasks(lowered->graph, lowered->compute_stream[device], &all);
    size_t count = 0;
    bool inside = false;
    *out = (work){0};
    for (size_t i = 0; i < all && (i == 0 || tasks[i - 1] != until); i++) {
        count += inside;
        if (inside && lowered->infos[tasks[i]].microbatch >= 0) {
            add_work(r, tasks[i], out);
        }
        inside |= tasks[i] == after;
    }
    return count;
}

/* What the microbatches of a round ask of a device's compute stream. */
static work work_of_microbatches(const dts_rhythm *r, size_t device) {
    const dts_lowered *lowered = r->m->lowered;
    int64_t end = r->each - r->fold->draining;
    size_t count = 0;
    const dts_id *tasks = dts_graph_stream_tasks(lowered->graph, lowered->compute_stream[device], &count);
    work out = {0};
    for (size_t i = 0; i < count; i++) {
        int32_t microbatch = lowered->infos[tasks[i]].microbatch;
        if (microbatch >= 0 && microbatch % r->each >= end - r->round && microbatch % r->each < end) {
            add_work(r, tasks[i], &out);
        }
    }
    return out;
}

/* The same kernels, whose times may still settle: a kernel beside a transfer takes longer, and so does one that waits
 * in turn for its part of a link. Whether they do is seen task by task (steady_proof.c). */
static bool is_same_work(work a, work b) {
    static const double settling = 1e-4;
    return a.kernels == b.kernels && fabs((double)(a.busy - b.busy)) <= settling * (double)b.busy;
}

/* Has each device a whole round's work in the last round, as in the one before? */
static bool rounds_are_whole(const dts_rhythm *r) {
    for (size_t d = 0; d < r->devices; d++) {
        const span *s = &r->spans[d];
        work now, before;
        size_t count = work_between(r, d, s->after, s->until, &now);
        bool same = s->before == DTS_NO_ID || work_between(r, d, s->before, s->after, &before) == count;
        if (!same || !is_same_work(work_of_microbatches(r, d), now)) {
            return false;
        }
    }
    return true;
}

static void add_up_launches(dts_rhythm *r) {
    const dts_lowered *lowered = r->m->lowered;
    const dts_time *starts = dts_simulation_starts(r->m->simulation);
    const dts_time *ends = dts_simulation_ends(r->m->simulation);
    memset(r->launching, 0, dts_graph_streams(lowered->graph) * sizeof *r->launching);
    for (dts_id task = 0; task < lowered->info_count; task++) {
        if (lowered->infos[task].role == DTS_ROLE_HOST) {
            const dts_task view = dts_graph_task(lowered->graph, task);
            for (size_t i = 0; i < view.stream_count; i++) {
                r->launching[view.streams[i]] += ends[task] - starts[task];
            }
        }
    }
}

static void add_up_round(dts_rhythm *r) {
    const dts_lowered *lowered = r->m->lowered;
    const dts_time *starts = dts_simulation_starts(r->m->simulation);
    const dts_time *ends = dts_simulation_ends(r->m->simulation);
    memset(r->counts, 0, dts_graph_streams(lowered->graph) * sizeof *r->counts);
    memset(r->busy, 0, dts_graph_streams(lowered->graph) * sizeof *r->busy);
    memset(r->kept_B, 0, dts_graph_devices(lowered->graph) * sizeof *r->kept_B);
    r->flops = 0;
    for (dts_id task = r->first; task < r->end; task++) {
        if (!dts_rhythm_has(r, task)) {
            continue;
        }
        const dts_task_info *info = &lowered->infos[task];
        const dts_task view = dts_graph_task(lowered->graph, task);
        for (size_t i = 0; i < view.stream_count; i++) {
            r->counts[view.streams[i]]++;
            r->busy[view.streams[i]] += ends[task] - starts[task];
        }
        r->flops += info->device < (dts_id)r->m->plan->pipeline ? info->flops : 0;
        dts_graph_memory_changes(lowered->graph, task, r->kept_B);
    }
}

/* Launches that nothing waits for are one task at the end of the iteration: then a round has its share of all. */
static bool streams_keep_up(const dts_rhythm *r) {
    for (size_t s = 0; s < dts_graph_streams(r->m->lowered->graph); s++) {
        double launching = (double)r->launching[s] * (double)r->round / (double)r->each;
        dts_time busy = r->busy[s] > 0 ? r->busy[s] : (dts_time)launching;
        if (!no_longer(busy, r->length)) {
            return false;
        }
    }
    return true;
}

static bool memory_stays(const dts_rhythm *r) {
    for (size_t d = 0; d < dts_graph_devices(r->m->lowered->graph); d++) {
        if (r->kept_B[d] != 0) {
            return false;
        }
    }
    return true;
}

/* How much later than the same task of the round before does this one of a stream end? Negative: there is none. */
static dts_time shift_on_stream(const dts_rhythm *r, dts_id stream, dts_id task) {
    const dts_time *ends = dts_simulation_ends(r->m->simulation);
    size_t count = 0;
    const dts_id *tasks = dts_graph_stream_tasks(r->m->lowered->graph, stream, &count);
    size_t i = 0;
    while (tasks[i] != task) {
        i++;
    }
    return i < r->counts[stream] ? -1 : ends[task] - ends[tasks[i - r->counts[stream]]];
}

/* The pace of what the iteration ends with. It may be a host that has much to launch at the end, or a stage that began
 * late: more microbatches hide that. Negative: it does not come from the round. */
static dts_time shift_of_end(dts_rhythm *r) {
    dts_id task = r->m->last_task;
    while (task != DTS_NO_ID &&
           !(dts_rhythm_has(r, task) && dts_graph_task(r->m->lowered->graph, task).stream_count > 0)) {
        task = dts_simulation_blocker(r->m->simulation, task);
    }
    r->on_path = task;
    return task == DTS_NO_ID ? -1 : shift_on_stream(r, dts_graph_task(r->m->lowered->graph, task).streams[0], task);
}

/* A device that is faster than the pace and waits for its launches will wait for others instead, once these have used
 * up what lies between them. How soon is not known: among many times as many microbatches it does not matter. One that
 * keeps the pace will wait for something else between its launches, and what is not known. */
static bool hosts_have_settled(const dts_rhythm *r) {
    enum { MANY = 16 };
    static const double little = 0.02;
    const bool many = r->fold->all >= MANY * r->fold->some;
    bool settled = true;
    for (size_t d = 0; d < r->devices && settled; d++) {
        dts_measured m = *r->m;
        dts_accounts round;
        m.from = r->spans[d].from;
        m.to = r->spans[d].to;
        dts_account_device(&m, (dts_id)d, &round);
        const bool keeps = dts_rhythm_same_length(m.to - m.from, r->length);
        settled =
            round.shares.host_bound <= little * dts_time_to_s(r->length) || (keeps ? !dts_rhythm_moves(r, d) : many);
    }
    return settled;
}

/* Is the iteration in a rhythm of round microbatches? */
static bool repeats(dts_rhythm *r, int64_t round) {
    r->round = round;
    if ((r->fold->all - r->fold->some) % (round * r->fold->directions) != 0) {
        return false;
    }
    observed o = observe(r);
    r->length = longest_shift(r, o);
    if (r->length < 0 || !a_stage_sets_the_pace(r, o)) {
        return false;
    }
    find_spans(r);
    if (!rounds_are_whole(r)) {
        return false;
    }
    add_up_round(r);
    return streams_keep_up(r) && memory_stays(r) && dts_rhythm_same_length(shift_of_end(r), r->length) &&
           dts_rhythm_goes_on(r) && hosts_have_settled(r);
}

dts_status dts_fold_listen(dts_fold *fold, dts_measured *m, dts_arena *arena, const dts_rhythm **out) {
    *out = NULL;
    dts_rhythm *r = rhythm_new(m, fold, arena);
    if (r == NULL) {
        return DTS_NOMEM;
    }
    find_last_kernels(r);
    add_up_launches(r);
    bool steady = false;
    fold->nearly = false;
    for (int64_t round = 1; round < fold->round && !steady; round *= 2) {
        steady = repeats(r, round);
    }
    if (steady || repeats(r, fold->round)) {
        *out = r;
        m->repeats = dts_rhythm_rounds(r);
        m->repeated_to = dts_simulation_ends(m->simulation)[r->on_path];
        m->repeated_from = m->repeated_to - r->length;
    }
    fold->nearly = r->nearly;
    fold->tried = fold->some;
    fold->tried_time = m->to - m->from;
    return DTS_OK;
}

/* What a guess at the pace may be off by. */
static const double near = 0.005;

/* Has the last round of each device the work of as many microbatches? */
static bool rounds_have_work(const dts_rhythm *r) {
    for (size_t d = 0; d < r->devices; d++) {
        const span *s = &r->spans[d];
        work now;
        work_between(r, d, s->after, s->until, &now);
        const double asked = (double)work_of_microbatches(r, d).busy;
        if (fabs((double)now.busy - asked) > near * asked) {
            return false;
        }
    }
    return true;
}

/* What the stream with the most to do is asked for in a round. */
static double busiest_stream(const dts_rhythm *r) {
    dts_time most = 0;
    for (size_t s = 0; s < dts_graph_streams(r->m->lowered->graph); s++) {
        most = r->busy[s] > most ? r->busy[s] : most;
    }
    return (double)most;
}

dts_status dts_fold_pace(const dts_fold *fold, dts_measured *m, dts_arena *arena, dts_time *round) {
    dts_rhythm *r = rhythm_new(m, fold, arena);
    if (r == NULL) {
        return DTS_NOMEM;
    }
    find_last_kernels(r);
    r->round = fold->round;
    r->length = longest_shift(r, observe(r));
    *round = -1;
    if (r->length >= 0) {
        find_spans(r);
        add_up_round(r);
        const double length = (double)r->length;
        const bool keeps = fabs((double)shift_of_end(r) - length) <= near * length;
        const bool launched = r->on_path == DTS_NO_ID || m->lowered->infos[r->on_path].role == DTS_ROLE_HOST;
        const bool shown = fold->fills ? !launched : keeps && rounds_have_work(r);
        *round = shown && busiest_stream(r) <= (1 + near) * length ? r->length : -1;
    }
    return DTS_OK;
}
