/* Where the time of a GPU goes.
 *
 * The compute stream is either busy (compute, or the optimizer's kernels) or waits. Every wait is charged to what the
 * next kernel was waiting for: walk back through blockers (the predecessor that ended last) from the kernel to the
 * start of the gap. The stretch during which a blocker ran belongs to the blocker's class:
 *   host thread                      host_bound (optimizer, when an optimizer kernel waits for its launch)
 *   optimizer's work on the CPU      optimizer
 *   transfer                         exposed_communication
 *   copy from or to host memory      exposed_offload
 *   making a batch, or its copy      input_wait
 *   anything on another device       bubble, but for its step
 * A step, with its copies and what it exchanges with other replicas, begins behind the last pass: no order of the
 * pipeline hides it, so that whoever waits for another device's keeps the names above. Once a wait has led back to
 * another device's pass, what that one waited for, its host among it, is the pipeline's bubble, whatever it was.
 * So is the device's own step while others have passes to do: it costs nothing then, and would count twice beside the
 * step that is waited for. Its kernels beside reductions and steps of others that the iteration ends with are hidden in
 * these.
 * Of exposed communication, transfers that the device takes part in are told from those of others (awaited): no more of
 * the former is exposed than they take.
 * The shares sum to the iteration time exactly, in picoseconds, whatever the schedule. Where the iteration is a
 * window of what was simulated, everything is cut at its borders. */
#include <stdlib.h>

#include "run/measure.h"

const char dts_send_recv[] = "send-recv";

typedef struct tally {
    const dts_measured *m;
    dts_id device;
    dts_time compute, optimizer, communication, bubble, offload, host, input;
    dts_time stalls, counts; /* of host */
    dts_accounts *out;
} tally;

static const dts_task_info *info_of(const dts_measured *m, dts_id task) {
    return &m->lowered->infos[task];
}

/* Column of a transfer in the table of exposures. */
static size_t column(int collective) {
    return collective < 0 ? DTS_COLLECTIVE_COUNT : (size_t)collective;
}

bool dts_takes_part(const dts_measured *m, dts_id task, dts_id device) {
    const dts_task_info *info = info_of(m, task);
    const bool transfer = info->role == DTS_ROLE_COMMUNICATION; /* others have no peer */
    bool part = info->device == device || (transfer && info->peer == device);
    if (info->gang && !part) {
        dts_task all = dts_graph_task(m->lowered->graph, task);
        for (size_t i = 0; i < all.stream_count && !part; i++) {
            part = dts_graph_stream_device(m->lowered->graph, all.streams[i]) == device;
        }
    }
    return part;
}

/* Is a task part of a pass, or passes something on between stages, rather than part of a step? */
static bool is_of_pass(const dts_task_info *info) {
    switch ((dts_role)info->role) {
        case DTS_ROLE_FORWARD:
        case DTS_ROLE_RECOMPUTE:
        case DTS_ROLE_BACKWARD:
        case DTS_ROLE_BACKWARD_WEIGHT:
        case DTS_ROLE_INPUT:
            return true;
        case DTS_ROLE_COMMUNICATION:
            return info->group != DTS_GROUP_DATA && info->group != DTS_GROUP_REPLICA &&
                   info->group != DTS_GROUP_EXPERT_DATA && info->group != DTS_GROUP_EMBEDDING;
        case DTS_ROLE_OPTIMIZER:
        case DTS_ROLE_OFFLOAD:
        case DTS_ROLE_HOST:
        case DTS_ROLE_COUNT:
            break;
    }
    return false;
}

/* What a wait has led back through so far: steps only, so that others' tasks keep their names; a pass of others, so
 * that whatever its host did is part of the pipeline's bubble. */
typedef struct way {
    bool steps_only, others_pass;
} way;

static void charge_wait(tally *t, dts_id blocker, dts_time length, bool for_optimizer, way led) {
    const dts_task_info *info = info_of(t->m, blocker);
    const bool named = led.steps_only || info->device == t->device;
    switch ((dts_role)info->role) {
        case DTS_ROLE_HOST:
            if (led.others_pass) {
                t->bubble += length;
                break;
            }
            *(for_optimizer ? &t->optimizer : &t->host) += length;
            t->stalls += info->stall && !for_optimizer ? length : 0;
            t->counts += info->counts && !for_optimizer ? length : 0;
            break;
        case DTS_ROLE_COMMUNICATION:
            if (dts_takes_part(t->m, blocker, t->device)) {
                t->communication += length;
                t->out->exposed_by_row[info->group][column(info->collective)] += dts_time_to_s(length);
            } else if (led.steps_only) {
                t->communication += length;
                t->out->awaited_by_row[info->group][column(info->collective)] += dts_time_to_s(length);
            } else {
                t->bubble += length;
            }
            break;
        case DTS_ROLE_OFFLOAD:
            *(named ? &t->offload : &t->bubble) += length;
            break;
        case DTS_ROLE_INPUT:
            *(info->device == t->device ? &t->input : &t->bubble) += length;
            break;
        case DTS_ROLE_OPTIMIZER: /* on the CPU, or another's */
            *(named ? &t->optimizer : &t->bubble) += length;
            break;
        case DTS_ROLE_FORWARD:
        case DTS_ROLE_RECOMPUTE:
        case DTS_ROLE_BACKWARD:
        case DTS_ROLE_BACKWARD_WEIGHT:
        case DTS_ROLE_COUNT:
            t->bubble += length;
            break;
    }
}

dts_time dts_measured_cut(const dts_measured *m, dts_time *from, dts_time *to) {
    *from = *from > m->from ? *from : m->from;
    *to = *to < m->to ? *to : m->to;
    return *to > *from ? *to - *from : 0;
}

dts_measured dts_measured_on(const dts_measured *m, dts_id device) {
    dts_measured own = *m;
    if (m->begins != NULL && device < (dts_id)(m->lowered->rows * m->plan->pipeline)) {
        own.from += m->begins[device];
        own.to += m->begins[device];
        own.begins = NULL;
    }
    return own;
}

/* Tasks that are charged alike for every device but their own: those of the host (anyone's), and those of one device.
 * A transfer between two devices or more stands for itself. */
#define RUN_OF_COUNTS (UINT32_MAX - 3)
#define RUN_OF_STALL  (UINT32_MAX - 2)
#define RUN_OF_HOST   (UINT32_MAX - 1)
#define RUN_OF_ONE    UINT32_MAX

static uint32_t run_key(const dts_task_info *info) {
    if (info->role == DTS_ROLE_HOST) {
        return info->stall ? RUN_OF_STALL : info->counts ? RUN_OF_COUNTS : RUN_OF_HOST;
    }
    bool several = info->role == DTS_ROLE_COMMUNICATION && (info->device != info->peer || info->gang);
    return several ? RUN_OF_ONE : info->device;
}

/* The first task of the run of alike tasks, each the blocker of the next, that ends with task. Found once for each:
 * with a thousand stages every stage's gaps lead through the same tasks. */
static dts_id first_of_run(const dts_measured *m, dts_id task) {
    uint32_t key = run_key(info_of(m, task));
    if (key == RUN_OF_ONE) {
        return task;
    }
    dts_id first = task;
    while (m->runs[first] == DTS_NO_ID) {
        dts_id before = dts_simulation_blocker(m->simulation, first);
        if (before == DTS_NO_ID || run_key(info_of(m, before)) != key) {
            m->runs[first] = first;
        } else {
            first = before;
        }
    }
    first = m->runs[first];
    for (dts_id i = task; m->runs[i] == DTS_NO_ID;) {
        dts_id before = dts_simulation_blocker(m->simulation, i);
        m->runs[i] = first;
        i = before;
    }
    return first;
}

/* Charges [from, to), the wait that ended with blocker's end. */
static void charge_gap(tally *t, dts_time from, dts_time to, dts_id blocker, bool for_optimizer) {
    const dts_time *starts = dts_simulation_starts(t->m->simulation);
    way led = {.steps_only = for_optimizer};
    dts_measured_cut(t->m, &from, &to);
    while (to > from && blocker != DTS_NO_ID) {
        bool own = run_key(info_of(t->m, blocker)) == t->device;
        const bool pass = is_of_pass(info_of(t->m, blocker));
        led.steps_only = led.steps_only && (own || !pass);
        led.others_pass = led.others_pass || (pass && !dts_takes_part(t->m, blocker, t->device));
        dts_id first = own || led.steps_only ? blocker : first_of_run(t->m, blocker);
        dts_time begin = starts[first] > from ? starts[first] : from;
        if (begin < to) {
            charge_wait(t, blocker, to - begin, for_optimizer, led);
            to = begin;
        }
        blocker = dts_simulation_blocker(t->m->simulation, first);
    }
    t->host += to > from ? to - from : 0;
}

dts_id dts_last_task(const dts_lowered *lowered, const dts_simulation *simulation) {
    const dts_time *ends = dts_simulation_ends(simulation);
    dts_id last = DTS_NO_ID;
    for (size_t i = 0; i < lowered->info_count; i++) {
        if (!lowered->infos[i].ahead && (last == DTS_NO_ID || ends[i] > ends[last])) {
            last = (dts_id)i;
        }
    }
    return last;
}

/* A block's kernels, and the communication between them. */
static void charge_block(tally *t, const dts_block *block) {
    t->compute += block->busy;
    t->communication += block->duration - block->busy - block->launches;
    t->host += block->launches;
    t->counts += block->counts;
    for (size_t i = 0; i < block->row_count; i++) {
        const dts_block_row *row = &block->rows[i];
        t->out->exposed_by_row[row->group][column(row->collective)] += dts_time_to_s(row->exposed);
    }
}

/* The first of a stream's tasks that does not end before the window begins. */
static size_t first_in_window(const dts_measured *m, const dts_id *tasks, size_t count) {
    const dts_time *ends = dts_simulation_ends(m->simulation);
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (ends[tasks[middle]] <= m->from) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

/* When the pass of others ends that the last step waits for; 0: it waits for one of the device's own. */
static dts_time last_pass_of_others(const tally *t) {
    dts_id task = t->m->last_task;
    while (task != DTS_NO_ID && !is_of_pass(info_of(t->m, task))) {
        task = dts_simulation_blocker(t->m->simulation, task);
    }
    const bool others = task != DTS_NO_ID && !dts_takes_part(t->m, task, t->device);
    return others ? dts_simulation_ends(t->m->simulation)[task] : 0;
}

typedef struct stretch {
    dts_time from, to;
} stretch;

/* Of the critical path behind now, the first stretch of tasks that the device has no part in; at the end of time: there
 * is none. */
static stretch next_of_others(const tally *t, dts_time now) {
    const dts_time *starts = dts_simulation_starts(t->m->simulation);
    const dts_time *ends = dts_simulation_ends(t->m->simulation);
    stretch next = {DTS_TIME_MAX, DTS_TIME_MAX};
    bool others = false;
    for (dts_id task = t->m->last_task; task != DTS_NO_ID && ends[task] > now;
         task = dts_simulation_blocker(t->m->simulation, task)) {
        const bool goes_on = others;
        others = !dts_takes_part(t->m, task, t->device);
        if (others) {
            next = (stretch){starts[task], goes_on ? next.to : ends[task]};
        }
    }
    return next;
}

/* The tasks of a compute stream that go before its last step. */
static size_t tasks_before_step(const dts_measured *m, const dts_id *tasks, size_t count) {
    while (count > 0 && info_of(m, tasks[count - 1])->role == DTS_ROLE_OPTIMIZER) {
        count--;
    }
    return count;
}

/* Charges the device's own step in [from, to). others: what was found last; nothing at first. */
static void charge_step(tally *t, stretch *others, dts_time from, dts_time to) {
    while (from < to) {
        *others = others->to > from ? *others : next_of_others(t, from);
        const dts_time alone = others->from < to ? others->from : to;
        t->optimizer += alone > from ? alone - from : 0;
        from = alone > from ? alone : from;
        const dts_time until = others->to < to ? others->to : to;
        charge_gap(t, from, until, t->m->last_task, true);
        from = until > from ? until : from;
    }
}

void dts_account_device(const dts_measured *all, dts_id device, dts_accounts *out) {
    const dts_measured own = dts_measured_on(all, device);
    const dts_measured *m = &own;
    *out = (dts_accounts){0};
    tally t = {.m = m, .device = device, .out = out};
    const dts_time *starts = dts_simulation_starts(m->simulation);
    const dts_time *ends = dts_simulation_ends(m->simulation);
    size_t count = 0;
    const dts_id *tasks = dts_graph_stream_tasks(m->lowered->graph, m->lowered->compute_stream[device], &count);
    size_t first = first_in_window(m, tasks, count);
    dts_time now = first > 0 ? ends[tasks[first - 1]] : 0;
    const size_t step = all->begins == NULL ? tasks_before_step(m, tasks, count) : count;
    const dts_time hidden = last_pass_of_others(&t);
    stretch others = {0};
    for (size_t i = first; i < count && now < m->to; i++) {
        dts_id task = tasks[i];
        if (i >= step && now < hidden) {
            charge_gap(&t, now, hidden, m->last_task, true);
            now = hidden;
        }
        if (ends[task] <= now) {
            continue;
        }
        bool optimizer = info_of(m, task)->role == DTS_ROLE_OPTIMIZER;
        if (starts[task] > now) {
            charge_gap(&t, now, starts[task], dts_simulation_blocker(m->simulation, task), optimizer);
        }
        dts_time begin = starts[task] > now ? starts[task] : now;
        dts_time end = ends[task];
        now = end;
        dts_time inside = dts_measured_cut(m, &begin, &end);
        if (info_of(m, task)->block != NULL) {
            if (starts[task] >= m->from && starts[task] < m->to) {
                charge_block(&t, info_of(m, task)->block);
            }
        } else if (i >= step) {
            charge_step(&t, &others, begin, end);
        } else if (!info_of(m, task)->rest) {
            *(optimizer ? &t.optimizer : &t.compute) += inside;
        }
    }
    const dts_time end = dts_simulation_end(m->simulation);
    charge_gap(&t, now, end, m->last_task, true);
    t.bubble += m->to > end ? m->to - end : 0; /* the longest stage's iteration is every stage's (stagger.c) */
    out->shares = (dts_time_shares){.compute = dts_time_to_s(t.compute),
                                    .optimizer = dts_time_to_s(t.optimizer),
                                    .exposed_communication = dts_time_to_s(t.communication),
                                    .bubble = dts_time_to_s(t.bubble),
                                    .exposed_offload = dts_time_to_s(t.offload),
                                    .host_bound = dts_time_to_s(t.host),
                                    .input_wait = dts_time_to_s(t.input),
                                    .launches = dts_time_to_s(t.host - t.stalls - t.counts),
                                    .allocator = dts_time_to_s(t.stalls),
                                    .token_counts = dts_time_to_s(t.counts)};
}

dts_status dts_critical_device(const dts_measured *m, dts_id *out) {
    size_t devices = dts_graph_devices(m->lowered->graph);
    dts_time *times = calloc(devices, sizeof *times);
    if (times == NULL) {
        return DTS_NOMEM;
    }
    const dts_time *starts = dts_simulation_starts(m->simulation);
    const dts_time *ends = dts_simulation_ends(m->simulation);
    for (dts_id task = m->last_task; task != DTS_NO_ID; task = dts_simulation_blocker(m->simulation, task)) {
        const dts_task_info *info = info_of(m, task);
        if (info->role != DTS_ROLE_HOST && info->role != DTS_ROLE_COMMUNICATION && info->role != DTS_ROLE_OFFLOAD &&
            info->role != DTS_ROLE_INPUT && !info->rest) {
            dts_time time = info->block != NULL ? info->block->busy : ends[task] - starts[task];
            bool repeated = ends[task] > m->repeated_from && ends[task] <= m->repeated_to;
            times[info->device] += time + (repeated ? m->repeats * time : 0);
        }
    }
    *out = 0; /* of those whose compute stream is known: one process that drives all GPUs shows the first */
    for (dts_id device = 1; device < (dts_id)(m->lowered->rows * m->plan->pipeline); device++) {
        *out = times[device] > times[*out] ? device : *out;
    }
    free(times);
    return DTS_OK;
}

bool dts_moves_bytes(const dts_task_info *info) {
    return info->bytes > 0;
}

dts_status dts_measure_communication(const dts_measured *all, dts_id device, const dts_accounts *accounts,
                                     dts_result *result) {
    const dts_measured own = dts_measured_on(all, device);
    const dts_measured *m = &own;
    enum { COLUMNS = DTS_COLLECTIVE_COUNT + 1 };
    dts_communication_row rows[DTS_GROUP_COUNT][COLUMNS] = {{{0}}};
    const dts_time *starts = dts_simulation_starts(m->simulation);
    const dts_time *ends = dts_simulation_ends(m->simulation);
    for (size_t i = 0; i < m->lowered->info_count; i++) {
        const dts_task_info *info = &m->lowered->infos[i];
        if (info->role == DTS_ROLE_COMMUNICATION && !info->rest && dts_takes_part(m, (dts_id)i, device)) {
            dts_communication_row *row = &rows[info->group][column(info->collective)];
            const bool inside = starts[i] >= m->from && starts[i] < m->to;
            dts_time from = starts[i], to = ends[i];
            row->count += inside && dts_moves_bytes(info);
            row->bytes += inside ? info->bytes : 0;
            row->total_s += dts_time_to_s(dts_measured_cut(m, &from, &to));
        }
        for (size_t r = 0; info->block != NULL && info->device == device && r < info->block->row_count; r++) {
            const dts_block_row *inner = &info->block->rows[r];
            dts_communication_row *row = &rows[inner->group][column(inner->collective)];
            row->count += inner->count;
            row->bytes += inner->bytes;
            row->total_s += dts_time_to_s(inner->total);
        }
    }
    result->communication = dts_arena_array(result->arena, (size_t)DTS_GROUP_COUNT * COLUMNS, sizeof rows[0][0]);
    if (result->communication == NULL) {
        return DTS_NOMEM;
    }
    for (int g = 0; g < DTS_GROUP_COUNT; g++) {
        for (int c = 0; c < COLUMNS; c++) {
            rows[g][c].exposed_s = accounts->exposed_by_row[g][c];
            rows[g][c].awaited_s = accounts->awaited_by_row[g][c];
            if (rows[g][c].count > 0 || rows[g][c].exposed_s > 0 || rows[g][c].awaited_s > 0) {
                rows[g][c].group = dts_group_names[g];
                rows[g][c].kind = c == DTS_COLLECTIVE_COUNT ? dts_send_recv : dts_collective_names[c];
                result->communication[result->communication_count++] = rows[g][c];
            }
        }
    }
    return DTS_OK;
}

void dts_measure_aco(dts_result *result) {
    const double samples = (double)result->global_batch / (double)result->gpus;
    double total_s = 0, exposed_s = 0;
    for (size_t i = 0; i < result->communication_count; i++) {
        total_s += result->communication[i].total_s;
        exposed_s += result->communication[i].exposed_s;
    }
    result->aco_ms_per_sample = 1e3 * total_s / samples;
    result->exposed_aco_ms_per_sample = 1e3 * exposed_s / samples;
}
