/* Does an iteration go on for ever as its last two rounds did?
 *
 * The end of a task is the latest end of what it waits for and its duration: with constant durations one round follows
 * from the one before by x(n + 1) = A x(n), linear in (max, +). So where no task of a round ends more than D after the
 * same task of the round before,                                                                                  (1)
 * none ever will: A is monotone, x(n + 1) = A x(n) <= A (x(n - 1) + D) = x(n) + D. A task that ends just D later keeps
 * the pace. It does so for ever where what it waited for, and what that waited for …, keeps the pace, too:        (2)
 * then x(n + 1) >= x(n) + D as well. The rest is ahead, uses up what lies between it and the others, and keeps their
 * pace from then on; whether it has done so by the end of the iteration is not known, so the end must not wait for it:
 * what the iteration ends with must go back to a task that keeps the pace (rhythm.c).
 * Transfers that share links have no constant durations: one that moves against the others changes theirs, by no more
 * than it takes itself. So in a round all must keep the pace that may meet another (crossing.c). While the pipeline
 * drains some may be held up by a host that will be further ahead: only if they take little of the iteration, or if
 * fewer microbatches, simulated before, have shown that it does not matter.                                       (3)
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/rhythm.h"

/* Times are whole picoseconds, and rounding may differ from one round to the next. A task that ends later than D by
 * part of it in every round is never later by more than part of the iteration. */
bool dts_rhythm_same_length(dts_time a, dts_time b) {
    static const double part = 1e-5;
    enum { ROUNDING = 1000 };
    return llabs(a - b) <= ROUNDING + (int64_t)(part * (double)b);
}

/* k of (1) in rhythm.c */
int64_t dts_rhythm_rounds(const dts_rhythm *r) {
    return (r->fold->all - r->fold->some) / (r->round * r->directions);
}

enum { UNKNOWN, KEEPS, AHEAD };

/* What (3) may leave out of the iteration. */
static const double little = 2e-4;

/* The task of its stream that is a round earlier (or later, by 1); DTS_NO_ID: there is none. */
static dts_id a_round_from(const dts_rhythm *r, dts_id task, int by) {
    const dts_graph *graph = r->m->lowered->graph;
    const dts_id stream = dts_graph_task(graph, task).streams[0];
    size_t count = 0;
    const dts_id *tasks = dts_graph_stream_tasks(graph, stream, &count);
    const size_t here = r->position[task], step = r->counts[stream];
    if (by < 0) {
        return here < step ? DTS_NO_ID : tasks[here - step];
    }
    return here + step < count ? tasks[here + step] : DTS_NO_ID;
}

static bool has_stream(const dts_rhythm *r, dts_id task) {
    return dts_graph_task(r->m->lowered->graph, task).stream_count > 0;
}

/* A task's place on the first of its streams. */
static void find_positions(dts_rhythm *r) {
    const dts_graph *graph = r->m->lowered->graph;
    for (dts_id s = 0; s < dts_graph_streams(graph); s++) {
        size_t count = 0;
        const dts_id *tasks = dts_graph_stream_tasks(graph, s, &count);
        for (size_t i = 0; i < count; i++) {
            if (dts_graph_task(graph, tasks[i]).streams[0] == s) {
                r->position[tasks[i]] = (uint32_t)i;
            }
        }
    }
}

/* Of a task of the round that occupies a stream. UNKNOWN: it ends too late, or is no task of the round before. */
static int compare_with_round_before(const dts_rhythm *r, dts_id task) {
    const dts_time *starts = dts_simulation_starts(r->m->simulation);
    const dts_time *ends = dts_simulation_ends(r->m->simulation);
    const dts_task_info *infos = r->m->lowered->infos;
    const dts_id before = a_round_from(r, task, -1);
    if (before == DTS_NO_ID || infos[before].role != infos[task].role) {
        return UNKNOWN;
    }
    const dts_time shift = ends[task] - ends[before];
    if (dts_rhythm_same_length(shift, r->length)) {
        return dts_rhythm_same_length(starts[task] - starts[before], r->length) ? KEEPS : AHEAD;
    }
    return shift < r->length ? AHEAD : UNKNOWN;
}

/* (1) */
static bool none_falls_behind(dts_rhythm *r) {
    memset(r->pace, UNKNOWN, r->m->lowered->info_count);
    for (dts_id task = r->first; task < r->end; task++) {
        if (dts_rhythm_has(r, task) && has_stream(r, task)) {
            r->pace[task] = (uint8_t)compare_with_round_before(r, task);
            if (r->pace[task] == UNKNOWN) {
                return false;
            }
        }
    }
    return true;
}

/* What a task waited for, on a stream; DTS_NO_ID: nothing. */
static dts_id blocker_on_stream(const dts_rhythm *r, dts_id task) {
    do {
        task = dts_simulation_blocker(r->m->simulation, task);
    } while (task != DTS_NO_ID && !has_stream(r, task));
    return task;
}

/* (2): what belongs to the round before or behind of its device stands for the same of the round. */
static bool pace_is_kept(const dts_rhythm *r) {
    for (dts_id task = r->first; task < r->end; task++) {
        if (!dts_rhythm_has(r, task) || r->pace[task] != KEEPS) {
            continue;
        }
        dts_id for_what = blocker_on_stream(r, task);
        if (for_what != DTS_NO_ID && !dts_rhythm_has(r, for_what)) {
            for_what = a_round_from(r, for_what, dts_rhythm_is_behind(r, for_what) ? -1 : 1);
        }
        if (for_what == DTS_NO_ID || r->pace[for_what] != KEEPS) {
            return false;
        }
    }
    return true;
}

/* Behind the round the pace is that of what a task waited for. */
static int pace_of(dts_rhythm *r, dts_id task) {
    dts_id from = task;
    while (from != DTS_NO_ID && r->pace[from] == UNKNOWN && dts_rhythm_is_behind(r, from)) {
        from = dts_simulation_blocker(r->m->simulation, from);
    }
    const uint8_t pace = from == DTS_NO_ID || r->pace[from] == UNKNOWN ? AHEAD : r->pace[from];
    while (task != from) {
        r->pace[task] = pace;
        task = dts_simulation_blocker(r->m->simulation, task);
    }
    return pace;
}

/* The whole iteration, as it would be. */
static double all_of_it(const dts_rhythm *r) {
    return (double)(r->m->to - r->m->from) + (double)dts_rhythm_rounds(r) * (double)r->length;
}

/* Does a transfer of the round come earlier with every round? */
static bool a_transfer_moves(const dts_rhythm *r) {
    bool moves = false;
    for (dts_id task = r->first; task < r->end && !moves; task++) {
        moves = dts_rhythm_has(r, task) && dts_graph_task(r->m->lowered->graph, task).hop_count > 0 &&
                r->pace[task] != KEEPS;
    }
    return moves;
}

/* What transfers take that move while the pipeline drains and may meet others; DTS_TIME_MAX: some do in every round. */
static dts_time moving(dts_rhythm *r) {
    const dts_time *starts = dts_simulation_starts(r->m->simulation);
    const dts_time *ends = dts_simulation_ends(r->m->simulation);
    const bool look = a_transfer_moves(r);
    if (look && !dts_rhythm_find_meetings(r)) {
        return DTS_TIME_MAX;
    }
    dts_time time = 0;
    for (dts_id task = r->first; task < r->m->lowered->info_count; task++) {
        const bool has = dts_rhythm_has(r, task);
        if ((has || dts_rhythm_is_behind(r, task)) && dts_graph_task(r->m->lowered->graph, task).hop_count > 0 &&
            (!look || r->meets[task]) && pace_of(r, task) != KEEPS) {
            if (has) {
                return DTS_TIME_MAX;
            }
            time += ends[task] - starts[task];
        }
    }
    return time;
}

/* Were fewer microbatches shorter by just their rounds? One round alone must show that all the others together change
 * no more. */
static bool fewer_agree(const dts_rhythm *r) {
    const dts_fold *fold = r->fold;
    const bool one = fold->some - fold->tried == fold->round * fold->directions;
    const double rounds = (double)(fold->some - fold->tried) / (double)(r->round * r->directions);
    const double apart = (double)(r->m->to - r->m->from - fold->tried_time) - rounds * (double)r->length;
    const double times = one ? fmax(1, (double)dts_rhythm_rounds(r) / rounds) : 1;
    return fold->tried > 0 && times * fabs(apart) <= little * all_of_it(r);
}

/* (3) */
static bool transfers_keep_pace(dts_rhythm *r) {
    const dts_time time = moving(r);
    const bool may = time < DTS_TIME_MAX, goes = may && ((double)time <= little * all_of_it(r) || fewer_agree(r));
    r->nearly |= may && !goes && r->fold->tried == 0;
    return goes;
}

bool dts_rhythm_moves(const dts_rhythm *r, size_t device) {
    size_t count = 0;
    const dts_id *tasks = dts_graph_stream_tasks(r->m->lowered->graph, r->m->lowered->compute_stream[device], &count);
    bool moves = false;
    for (size_t i = 0; i < count && !moves; i++) {
        moves = dts_rhythm_has(r, tasks[i]) && r->pace[tasks[i]] != KEEPS;
    }
    return moves;
}

bool dts_rhythm_goes_on(dts_rhythm *r) {
    find_positions(r);
    return none_falls_behind(r) && pace_is_kept(r) && transfers_keep_pace(r);
}
