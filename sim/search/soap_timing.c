#include "search/soap_timing.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

typedef struct saved_group {
    size_t number;
    dts_soap_group group;
} saved_group;

struct dts_soap_timing {
    const dts_soap_problem *problem;
    dts_soap_lowering *lowering;
    size_t operators, devices, streams;
    dts_soap_choice *choices;
    dts_soap_group *groups; /* [3n] */
    dts_time *ends;         /* [slot] of the accepted strategy */
    dts_time *before;       /* [3n + 1][streams] when each stream is free before a group, by position in the order */
    int64_t *memory_B;      /* [devices] */
    dts_time end;

    /* the trial */
    uint32_t trial;
    uint32_t *timed;   /* [3n] the last trial in which a group was timed */
    uint32_t *changed; /* [3n] the last trial in which it ended at other times */
    uint32_t *rebuilt; /* [3n] the last trial in which it got other tasks */
    uint32_t *touched; /* [n] the last trial that changed what the operator keeps in memory */
    dts_time *trial_ends, *trial_before, *now;
    dts_time *link_ends;
    size_t link_capacity;
    int64_t *trial_memory_B;
    dts_time trial_end;
    size_t first; /* position where the trial begins */
    saved_group *saved;
    size_t saved_count;
    dts_soap_change *undo; /* choices before the trial */
    size_t undo_count;
    dts_soap_group *spare; /* arrays to be used again */
    size_t spare_count;

    uint64_t timed_tasks, full_tasks, tasks;
    const atomic_bool *stop; /* NULL: nobody tells */
    dts_soap_watcher *watcher;
    void *watcher_context;
};

void dts_soap_timing_watch(dts_soap_timing *timing, dts_soap_watcher *watcher, void *context) {
    timing->watcher = watcher;
    timing->watcher_context = context;
}

void dts_soap_timing_stop_by(dts_soap_timing *timing, const atomic_bool *stop) {
    timing->stop = stop;
}

bool dts_soap_timing_stopped(const dts_soap_timing *timing) {
    return timing->stop != NULL && atomic_load_explicit(timing->stop, memory_order_relaxed);
}

dts_status dts_soap_timing_new(const dts_soap_problem *problem, dts_soap_timing **out, dts_diag *diag) {
    *out = NULL;
    dts_soap_timing *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return dts_diag_nomem(diag);
    }
    size_t n = problem->graph->count;
    t->problem = problem;
    t->operators = n;
    t->devices = problem->devices;
    t->streams = dts_soap_streams(problem);
    size_t slots = (size_t)DTS_SOAP_KINDS * n * t->devices, states = (3 * n + 1) * t->streams;
    t->choices = calloc(n, sizeof *t->choices);
    t->groups = calloc(3 * n, sizeof *t->groups);
    t->ends = calloc(slots, sizeof *t->ends);
    t->trial_ends = calloc(slots, sizeof *t->trial_ends);
    t->before = calloc(states, sizeof *t->before);
    t->trial_before = calloc(states, sizeof *t->trial_before);
    t->now = calloc(t->streams, sizeof *t->now);
    t->memory_B = calloc(t->devices, sizeof *t->memory_B);
    t->trial_memory_B = calloc(t->devices, sizeof *t->trial_memory_B);
    t->timed = calloc(3 * n, sizeof *t->timed);
    t->changed = calloc(3 * n, sizeof *t->changed);
    t->rebuilt = calloc(3 * n, sizeof *t->rebuilt);
    t->touched = calloc(n, sizeof *t->touched);
    t->saved = calloc(3 * n, sizeof *t->saved);
    t->undo = calloc(n, sizeof *t->undo);
    t->spare = calloc(3 * n, sizeof *t->spare);
    bool ok = t->choices != NULL && t->groups != NULL && t->ends != NULL && t->trial_ends != NULL &&
              t->before != NULL && t->trial_before != NULL && t->now != NULL && t->memory_B != NULL &&
              t->trial_memory_B != NULL && t->timed != NULL && t->changed != NULL && t->rebuilt != NULL &&
              t->touched != NULL && t->saved != NULL && t->undo != NULL && t->spare != NULL;
    dts_status status = ok ? dts_soap_lowering_new(problem, &t->lowering, diag) : dts_diag_nomem(diag);
    if (status != DTS_OK) {
        dts_soap_timing_free(t);
        return status;
    }
    *out = t;
    return DTS_OK;
}

void dts_soap_timing_free(dts_soap_timing *timing) {
    if (timing == NULL) {
        return;
    }
    for (size_t i = 0; timing->groups != NULL && i < 3 * timing->operators; i++) {
        dts_soap_group_free(&timing->groups[i]);
    }
    for (size_t i = 0; i < timing->saved_count; i++) {
        dts_soap_group_free(&timing->saved[i].group);
    }
    for (size_t i = 0; i < timing->spare_count; i++) {
        dts_soap_group_free(&timing->spare[i]);
    }
    dts_soap_lowering_free(timing->lowering);
    void *const arrays[] = {timing->choices,   timing->groups, timing->ends,           timing->before,
                            timing->memory_B,  timing->timed,  timing->changed,        timing->rebuilt,
                            timing->touched,   timing->now,    timing->trial_ends,     timing->trial_before,
                            timing->link_ends, timing->saved,  timing->trial_memory_B, timing->undo,
                            timing->spare,     timing};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        free(arrays[i]);
    }
}

/* ---- the pass over the groups --------------------------------------------------------------------------------------
 */

static dts_time end_of(const dts_soap_timing *t, dts_soap_slot slot) {
    if ((slot & DTS_SOAP_LOCAL) != 0) {
        return t->link_ends[slot & ~DTS_SOAP_LOCAL];
    }
    size_t group = dts_soap_group_of(slot, t->operators, t->devices);
    return t->timed[group] == t->trial ? t->trial_ends[slot] : t->ends[slot];
}

/* Operators, to divide by: a graph has one at least, which no analyzer of this file can know. */
static size_t divisor(const dts_soap_timing *t) {
    return t->operators > 0 ? t->operators : 1;
}

/* Tells the watcher of a task of group `number`. */
static void tell(const dts_soap_timing *t, size_t number, const dts_soap_task *task, const uint32_t *streams,
                 dts_time start) {
    static const dts_soap_kind of_group[] = {DTS_SOAP_FORWARD, DTS_SOAP_BACKWARD, DTS_SOAP_UPDATE};
    const bool transfer = (task->slot & DTS_SOAP_LOCAL) != 0;
    const size_t block = transfer ? 0 : task->slot / t->devices / divisor(t);
    const dts_soap_span span = {.op = number % divisor(t),
                                .kind = block == DTS_SOAP_SYNC ? DTS_SOAP_SYNC : of_group[number / divisor(t)],
                                .transfer = transfer,
                                .streams = streams,
                                .stream_count = task->stream_count,
                                .start = start,
                                .end = start + task->duration};
    t->watcher(t->watcher_context, &span);
}

/* Runs the tasks of a group from the streams' state in now. */
static void time_group(dts_soap_timing *t, size_t number) {
    const dts_soap_group *g = &t->groups[number];
    bool changed = false;
    t->timed[number] = t->trial;
    t->timed_tasks += g->task_count;
    for (size_t i = 0; i < g->task_count; i++) {
        const dts_soap_task *task = &g->tasks[i];
        const uint32_t *streams = g->streams + task->first_stream;
        const dts_soap_slot *afters = g->afters + task->first_after;
        dts_time start = 0;
        for (uint32_t s = 0; s < task->stream_count; s++) {
            dts_time free_at = t->now[streams[s]];
            start = free_at > start ? free_at : start;
        }
        for (uint32_t a = 0; a < task->after_count; a++) {
            dts_time made_at = end_of(t, afters[a]);
            start = made_at > start ? made_at : start;
        }
        dts_time end = start + task->duration;
        if (t->watcher != NULL) {
            tell(t, number, task, streams, start);
        }
        for (uint32_t s = 0; s < task->stream_count; s++) {
            t->now[streams[s]] = end;
        }
        if ((task->slot & DTS_SOAP_LOCAL) != 0) {
            t->link_ends[task->slot & ~DTS_SOAP_LOCAL] = end;
        } else {
            changed |= end != t->ends[task->slot];
            t->trial_ends[task->slot] = end;
        }
    }
    if (changed) {
        t->changed[number] = t->trial;
    }
}

/* Do the groups end at other times that this one waits for? */
static bool waits_for_changed(const dts_soap_timing *t, size_t number) {
    size_t n = divisor(t), op = number % n;
    const dts_tensor_op *self = &t->problem->graph->ops[op];
    switch (number / n) {
        case 0:
            for (size_t k = 0; k < self->input_count; k++) {
                if (t->changed[self->inputs[k]] == t->trial) {
                    return true;
                }
            }
            return false;
        case 1:
            for (size_t c = 0; c < t->problem->consumer_count[op]; c++) {
                if (t->changed[n + t->problem->consumers[op][c]] == t->trial) {
                    return true;
                }
            }
            return false;
        default:
            return t->changed[n + op] == t->trial;
    }
}

static bool is_clean(const dts_soap_timing *t, size_t number, const dts_time *before) {
    const dts_soap_group *g = &t->groups[number];
    if (t->rebuilt[number] == t->trial || waits_for_changed(t, number)) {
        return false;
    }
    for (size_t i = 0; i < g->used_count; i++) {
        if (t->now[g->used[i]] != before[g->used[i]]) {
            return false;
        }
    }
    return true;
}

static void pass(dts_soap_timing *t) {
    size_t groups = 3 * t->operators, row = t->streams;
    memcpy(t->now, t->before + t->first * row, row * sizeof *t->now);
    for (size_t position = t->first; position < groups; position++) {
        size_t number = dts_soap_order(position, t->operators);
        const dts_time *before = t->before + position * row;
        if (is_clean(t, number, before)) {
            const dts_soap_group *g = &t->groups[number];
            for (size_t i = 0; i < g->used_count; i++) {
                t->now[g->used[i]] = before[row + g->used[i]];
            }
        } else {
            time_group(t, number);
        }
        memcpy(t->trial_before + (position + 1) * row, t->now, row * sizeof *t->now);
    }
    t->trial_end = 0;
    for (size_t s = 0; s < row; s++) {
        t->trial_end = t->now[s] > t->trial_end ? t->now[s] : t->trial_end;
    }
    t->full_tasks += t->tasks;
}

/* ---- changes -------------------------------------------------------------------------------------------------------
 */

static bool rebuild(dts_soap_timing *t, size_t number) {
    if (t->rebuilt[number] == t->trial) {
        return true;
    }
    t->rebuilt[number] = t->trial;
    t->saved[t->saved_count++] = (saved_group){.number = number, .group = t->groups[number]};
    t->groups[number] = t->spare_count > 0 ? t->spare[--t->spare_count] : (dts_soap_group){0};
    t->tasks -= t->saved[t->saved_count - 1].group.task_count;
    if (dts_soap_timing_stopped(t) || !dts_soap_build_group(t->lowering, t->choices, number, &t->groups[number])) {
        return false;
    }
    const dts_soap_group *g = &t->groups[number];
    t->tasks += g->task_count;
    dts_time *grown = dts_array_room(t->link_ends, &t->link_capacity, g->link_count, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    t->link_ends = grown;
    size_t position = number < t->operators || number >= 2 * t->operators ? number : 3 * t->operators - 1 - number;
    t->first = position < t->first ? position : t->first;
    return true;
}

/* Everything whose tasks an operator's choice decides: its own, its readers' forward, its inputs' backward. */
static bool rebuild_around(dts_soap_timing *t, size_t op) {
    const dts_soap_problem *p = t->problem;
    const dts_tensor_op *self = &p->graph->ops[op];
    size_t n = t->operators;
    bool ok = rebuild(t, op) && rebuild(t, n + op) && rebuild(t, 2 * n + op);
    for (size_t c = 0; c < p->consumer_count[op] && ok; c++) {
        ok = rebuild(t, p->consumers[op][c]);
    }
    for (size_t k = 0; k < self->input_count && ok; k++) {
        ok = rebuild(t, n + self->inputs[k]);
    }
    return ok;
}

/* Enters or takes away the memory of an operator and its readers, whose received copies depend on it. */
static void add_memory_around(dts_soap_timing *t, size_t op, int sign) {
    const dts_soap_problem *p = t->problem;
    uint32_t mark = 2 * t->trial + (sign > 0);
    for (size_t c = 0; c <= p->consumer_count[op]; c++) {
        size_t i = c == 0 ? op : p->consumers[op][c - 1];
        if (t->touched[i] != mark) {
            t->touched[i] = mark;
            dts_soap_add_memory(t->lowering, t->choices, i, sign, t->trial_memory_B);
        }
    }
}

bool dts_soap_timing_try(dts_soap_timing *t, const dts_soap_change *changes, size_t count) {
    t->trial++;
    t->first = 3 * t->operators;
    t->saved_count = 0;
    t->undo_count = count;
    memcpy(t->trial_memory_B, t->memory_B, t->devices * sizeof *t->memory_B);
    for (size_t i = 0; i < count; i++) {
        add_memory_around(t, changes[i].op, -1);
    }
    for (size_t i = 0; i < count; i++) {
        t->undo[i] = (dts_soap_change){.op = changes[i].op, .choice = t->choices[changes[i].op]};
        t->choices[changes[i].op] = changes[i].choice;
    }
    for (size_t i = 0; i < count; i++) {
        add_memory_around(t, changes[i].op, 1);
        if (!rebuild_around(t, changes[i].op)) {
            return false;
        }
    }
    pass(t);
    return true;
}

static void keep_spare(dts_soap_timing *t, dts_soap_group group) {
    if (t->spare_count < 3 * t->operators) {
        t->spare[t->spare_count++] = group;
    } else {
        dts_soap_group_free(&group);
    }
}

static void drop_saved(dts_soap_timing *t) {
    for (size_t i = 0; i < t->saved_count; i++) {
        keep_spare(t, t->saved[i].group);
    }
    t->saved_count = 0;
}

void dts_soap_timing_accept(dts_soap_timing *t) {
    size_t groups = 3 * t->operators, row = t->streams;
    for (size_t position = t->first; position < groups; position++) {
        size_t number = dts_soap_order(position, t->operators);
        if (t->timed[number] != t->trial) {
            continue;
        }
        const dts_soap_group *g = &t->groups[number];
        for (size_t i = 0; i < g->task_count; i++) {
            dts_soap_slot slot = g->tasks[i].slot;
            if ((slot & DTS_SOAP_LOCAL) == 0) {
                t->ends[slot] = t->trial_ends[slot];
            }
        }
    }
    if (t->first < groups) {
        memcpy(t->before + (t->first + 1) * row, t->trial_before + (t->first + 1) * row,
               (groups - t->first) * row * sizeof *t->before);
    }
    drop_saved(t);
    memcpy(t->memory_B, t->trial_memory_B, t->devices * sizeof *t->memory_B);
    t->end = t->trial_end;
}

void dts_soap_timing_reject(dts_soap_timing *t) {
    for (size_t i = 0; i < t->saved_count; i++) {
        size_t number = t->saved[i].number;
        t->tasks -= t->groups[number].task_count;
        keep_spare(t, t->groups[number]);
        t->groups[number] = t->saved[i].group;
        t->tasks += t->groups[number].task_count;
    }
    t->saved_count = 0;
    for (size_t i = t->undo_count; i-- > 0;) {
        t->choices[t->undo[i].op] = t->undo[i].choice;
    }
    t->trial_end = t->end;
    memcpy(t->trial_memory_B, t->memory_B, t->devices * sizeof *t->memory_B);
}

bool dts_soap_timing_set(dts_soap_timing *t, const dts_soap_choice *choices) {
    memcpy(t->choices, choices, t->operators * sizeof *choices);
    memset(t->memory_B, 0, t->devices * sizeof *t->memory_B);
    memset(t->before, 0, t->streams * sizeof *t->before);
    t->trial++;
    drop_saved(t); /* of one that was told to stop */
    t->undo_count = 0;
    t->first = 0;
    for (size_t i = 0; i < 3 * t->operators; i++) {
        if (!rebuild(t, i)) {
            return false;
        }
    }
    memset(t->trial_memory_B, 0, t->devices * sizeof *t->memory_B);
    for (size_t i = 0; i < t->operators; i++) {
        dts_soap_add_memory(t->lowering, t->choices, i, 1, t->trial_memory_B);
    }
    pass(t);
    dts_soap_timing_accept(t);
    return true;
}

dts_time dts_soap_timing_end(const dts_soap_timing *timing) {
    return timing->trial_end;
}

int64_t dts_soap_timing_peak_B(const dts_soap_timing *timing) {
    int64_t peak_B = 0;
    for (size_t d = 0; d < timing->devices; d++) {
        peak_B = timing->trial_memory_B[d] > peak_B ? timing->trial_memory_B[d] : peak_B;
    }
    return peak_B;
}

const dts_soap_choice *dts_soap_timing_choices(const dts_soap_timing *timing) {
    return timing->choices;
}

void dts_soap_timing_counts(const dts_soap_timing *timing, uint64_t *timed, uint64_t *full) {
    *timed = timing->timed_tasks;
    *full = timing->full_tasks;
}
