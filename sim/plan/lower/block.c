/* Making and placing blocks.
 *
 * Between the first and the last kernel of a pass through a layer or a chunk nothing waits for other GPUs: its kernels,
 * their launches and the collectives of its tensor-parallel group follow each other on streams of its own. With the
 * compute stream free (and the input there) at c, and the host free at h, its last kernel then ends at
 *   end = max(c + C, h + K)                                                                                       (1)
 * whatever c and h are: C is the longest path from its first kernel, K the one from its first launch. Both are
 * measured: the pass is lowered by itself with the same code as at kernel detail, and the engine simulates it twice,
 * once with the host far ahead (C, and which collectives the compute stream waits for) and once with both at zero (K).
 * In the larger graph the block is then a task of C on the compute stream                 after the host's first launch
 *   H of the host thread                              all its launches; merged with those before and behind
 *   where the host may hold it up (lead = K - C above what the host is known to be ahead): a delay of K less the first
 *   launch after that launch, and a task of no length on the compute stream that waits for it
 *   a trailing collective, when the pass ends with one: the next pass of another microbatch need not wait for it
 * so that (1) holds exactly. The host is known to be ahead by at least
 *   ahead' = max(ahead + C, K) - H                                                                                (2)
 * after a block; issuing a task of d lowers it by d, and waiting for anything ends all knowledge. A collective that
 * waits for the last one of the block before is issued in time where ahead, less its own launch, is at least as long as
 * the kernels behind that one.
 *
 * Memory of a block: at its start the ledger takes the peak above entry, at its end it falls to what stays. */
#include "plan/lower/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/simulate.h"
#include "plan/lower/builder.h"

/* Longer than any host is behind: an hour. */
static const double far_ahead_s = 3600;

bool dts_block_wanted(const dts_builder *b) {
    return b->detail != DTS_DETAIL_KERNEL;
}

/* ---- lowering it alone ------------------------------------------------------------------------------------------ */

/* A pass by itself. */
typedef struct scratch {
    dts_builder b;
    dts_stage stage;
    dts_id made;
    dts_simulation *simulation;
} scratch;

/* What the ledger did, relative to entry. */
typedef struct memory_watch {
    int64_t now_B[DTS_MEMORY_CATEGORY_COUNT], peak_B[DTS_MEMORY_CATEGORY_COUNT];
    int64_t total_B, peak_total_B;
    dts_id device, peak_task;
    bool peaked;
    int64_t *during_B; /* by task: the total while it runs */
    bool *ended;
} memory_watch;

static void watch_start(void *context, dts_time now, dts_id task) {
    memory_watch *w = context;
    (void)now;
    w->during_B[task] = w->total_B;
}

static void watch_end(void *context, dts_time now, dts_id task) {
    memory_watch *w = context;
    (void)now;
    w->ended[task] = true;
}

static void watch_memory(void *context, dts_time now, dts_id device, unsigned category, int64_t bytes, dts_id task) {
    memory_watch *w = context;
    (void)now;
    if (device != w->device) {
        return;
    }
    w->now_B[category] += bytes;
    w->total_B += bytes;
    if (!w->ended[task]) {
        w->during_B[task] = w->total_B;
    }
    if (w->total_B > w->peak_total_B) {
        w->peak_total_B = w->total_B;
        w->peak_task = task;
        w->peaked = true;
        memcpy(w->peak_B, w->now_B, sizeof w->peak_B);
    }
}

/* Room for what the block frees of what others took: the ledger does not go below zero. */
static void add_stock(scratch *s) {
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        dts_graph_memory_static(s->b.graph, s->stage.device, c, (int64_t)DTS_MOST_BYTES);
    }
}

/* head_start_s: of the host before the GPU. */
static dts_status lower_alone(const dts_builder *b, const dts_stage *stage, double head_start_s, dts_arena *arena,
                              dts_block_body *body, const void *context, dts_block *out, memory_watch *memory,
                              scratch *s) {
    *s = (scratch){.b = *b};
    s->b.arena = arena;
    s->b.alone = true;
    s->b.infos = NULL;
    s->b.info_count = s->b.info_capacity = 0;
    s->b.detail = b->detail == DTS_DETAIL_BLOCK ? DTS_DETAIL_LAYER : DTS_DETAIL_KERNEL;
    s->b.graph = dts_graph_new();
    if (s->b.graph == NULL) {
        return dts_diag_nomem(b->diag);
    }
    dts_status status = dts_build_stage_alone(&s->b, stage->index, &s->stage);
    if (status != DTS_OK) {
        return status;
    }
    s->stage.tied_copy = stage->tied_copy;
    s->stage.ahead = DTS_NEVER_AHEAD;
    dts_gradient_sync *sync = dts_sync_recorder(&s->b, &s->stage);
    if (sync == NULL) {
        return dts_diag_nomem(b->diag);
    }
    add_stock(s);
    dts_task_info gate = {.role = DTS_ROLE_HOST, .microbatch = -1, .layer = -1, .name = "gate"};
    s->stage.last_kernel = dts_build_task(&s->b, s->stage.compute, dts_time_from_s(head_start_s), &gate);
    s->made = body(&s->b, &s->stage, sync, context, &out->handed_B);
    dts_build_host(&s->b, &s->stage, 0, false, DTS_NO_ID, "issued"); /* and all that is pending */
    dts_sync_recorded(sync, &out->reduced_B, &out->reduced_tensors);
    out->flops = s->stage.flops;
    out->fresh_B = s->stage.fresh_B;
    if (s->b.failed || s->b.too_large) {
        return DTS_NOMEM;
    }
    status = dts_graph_freeze(s->b.graph, b->diag);
    memory->device = s->stage.device;
    memory->during_B = dts_arena_array(arena, s->b.info_count, sizeof *memory->during_B);
    memory->ended = dts_arena_array(arena, s->b.info_count, sizeof *memory->ended);
    if (memory->during_B == NULL || memory->ended == NULL) {
        return dts_diag_nomem(b->diag);
    }
    dts_observer observer = {
        .context = memory, .task_started = watch_start, .task_ended = watch_end, .memory_changed = watch_memory};
    return status == DTS_OK ? dts_simulate(s->b.graph, &observer, &s->simulation, b->diag) : status;
}

static void scratch_free(scratch *s) {
    dts_simulation_free(s->simulation);
    dts_graph_free(s->b.graph);
    free(s->b.infos);
}

/* ---- reading its times ------------------------------------------------------------------------------------------ */

static dts_block_row *row_of(dts_block *block, const dts_block_row *like) {
    for (size_t i = 0; i < block->row_count; i++) {
        if (block->rows[i].group == like->group && block->rows[i].collective == like->collective) {
            return &block->rows[i];
        }
    }
    block->rows[block->row_count] = (dts_block_row){.group = like->group, .collective = like->collective};
    return &block->rows[block->row_count++];
}

static void add_rows(dts_block *block, const dts_block_row *row) {
    dts_block_row *to = row_of(block, row);
    to->count += row->count;
    to->bytes += row->bytes;
    to->total += row->total;
    to->exposed += row->exposed;
}

/* A collective of this GPU's groups; a transfer between stages cannot be in a block. */
static bool is_collective(const dts_task_info *info) {
    return info->role == DTS_ROLE_COMMUNICATION && info->collective >= 0 && !info->rest;
}

/* Charges the wait of the compute stream from `from` to the start of task to the collectives that it waited for and,
 * where they block, to launches. Returns what is left: it waited for something else. */
static dts_time charge_wait(const scratch *s, dts_block *block, dts_time from, dts_id task) {
    const dts_time *starts = dts_simulation_starts(s->simulation);
    dts_time to = starts[task];
    while (to > from) {
        task = dts_simulation_blocker(s->simulation, task);
        bool launch = task != DTS_NO_ID && dts_build_blocks(&s->b) && s->b.infos[task].role == DTS_ROLE_HOST;
        if (task == DTS_NO_ID || !(launch || is_collective(&s->b.infos[task]) || s->b.infos[task].rest)) {
            return to - from;
        }
        dts_time begin = starts[task] > from ? starts[task] : from;
        if (launch) {
            block->launches += to - begin;
            to = begin;
            continue;
        }
        dts_block_row row = {
            .group = s->b.infos[task].group, .collective = s->b.infos[task].collective, .exposed = to - begin};
        add_rows(block, &row);
        to = begin;
    }
    return 0;
}

/* The tasks of the compute stream behind the gate. */
static const dts_id *kernels_of(const scratch *s, size_t *count) {
    const dts_id *tasks = dts_graph_stream_tasks(s->b.graph, s->stage.compute, count);
    *count -= 1;
    return tasks + 1;
}

/* The collective behind the last kernel becomes a task of its own. */
static bool read_trailing(const scratch *s, dts_block *block, dts_time last_kernel_end) {
    const dts_time *ends = dts_simulation_ends(s->simulation);
    const dts_task_info *info = &s->b.infos[s->made];
    if (ends[s->made] <= last_kernel_end) {
        return true;
    }
    dts_time start = dts_simulation_starts(s->simulation)[s->made];
    bool launched_late = dts_build_blocks(&s->b) && charge_wait(s, block, last_kernel_end, s->made) == 0;
    if (!is_collective(info) || (start != last_kernel_end && !launched_late)) {
        return false;
    }
    block->duration += start - last_kernel_end;
    block->trailing = ends[s->made] - start;
    block->trailing_name = info->name;
    block->trailing_B = info->bytes;
    block->trailing_group = info->group;
    block->trailing_collective = info->collective;
    return true;
}

static void keep_first(dts_block *block, dts_time collective) {
    block->first_collective = collective < block->first_collective ? collective : block->first_collective;
}

static void keep_last(dts_block *block, dts_time collective) {
    block->last_collective = collective > block->last_collective ? collective : block->last_collective;
}

static bool trails_at(const scratch *s, const dts_block *block, size_t task) {
    return block->trailing > 0 && task == s->made;
}

/* Kernels of a task of the compute stream. */
static dts_time busy_of(const scratch *s, dts_id task) {
    const dts_task_info *info = &s->b.infos[task];
    if (info->block != NULL) {
        return info->block->busy;
    }
    return info->rest ? 0 : dts_simulation_ends(s->simulation)[task] - dts_simulation_starts(s->simulation)[task];
}

/* Counts the communication of a task; begin: when the block begins. */
static void read_communication(const scratch *s, dts_block *block, dts_id task, dts_time begin) {
    const dts_task_info *info = &s->b.infos[task];
    dts_time start = dts_simulation_starts(s->simulation)[task];
    dts_time end = dts_simulation_ends(s->simulation)[task];
    const dts_block *inner = info->block;
    for (size_t r = 0; inner != NULL && r < inner->row_count; r++) {
        add_rows(block, &inner->rows[r]);
    }
    if (inner != NULL && inner->first_collective < DTS_TIME_MAX) {
        keep_first(block, start - begin + inner->first_collective);
        keep_last(block, start - begin + inner->last_collective);
    }
    if (!is_collective(info)) {
        return;
    }
    keep_first(block, start - begin);
    if (!trails_at(s, block, task)) {
        keep_last(block, end - begin);
        dts_block_row row = {.group = info->group,
                             .collective = info->collective,
                             .count = 1,
                             .bytes = info->bytes,
                             .total = end - start};
        add_rows(block, &row);
    }
}

/* With the host far ahead. False: it cannot be one task. */
static bool read_durations(const scratch *s, dts_block *block) {
    const dts_time *starts = dts_simulation_starts(s->simulation);
    const dts_time *ends = dts_simulation_ends(s->simulation);
    size_t count = 0;
    const dts_id *kernels = kernels_of(s, &count);
    if (count == 0 || s->made == DTS_NO_ID) {
        return false;
    }
    dts_time begin = ends[kernels[-1]]; /* the gate's */
    dts_time now = begin;
    for (size_t i = 0; i < count; i++) {
        block->busy += busy_of(s, kernels[i]);
        const dts_block *inner = s->b.infos[kernels[i]].block;
        block->launches += inner != NULL ? inner->launches : 0;
        if (charge_wait(s, block, now, kernels[i]) > 0) {
            return false;
        }
        now = ends[kernels[i]];
    }
    block->duration = now - begin;
    block->first_collective = DTS_TIME_MAX;
    if (!read_trailing(s, block, now)) {
        return false;
    }
    if (block->trailing == 0) {
        const dts_block *last = s->b.infos[kernels[count - 1]].block;
        block->launched_last = last != NULL ? last->launched_last : now - starts[kernels[count - 1]];
    }
    for (size_t i = 0; i < s->b.info_count; i++) {
        bool foreign = s->b.infos[i].role == DTS_ROLE_OFFLOAD ||
                       (s->b.infos[i].role == DTS_ROLE_COMMUNICATION && s->b.infos[i].collective < 0);
        if (ends[i] > begin + block->duration + block->trailing || foreign) {
            return false;
        }
        read_communication(s, block, (dts_id)i, begin);
    }
    return starts[kernels[0]] >= begin;
}

/* With the host and the compute stream free at zero. */
static void read_launches(const scratch *s, dts_block *block) {
    const dts_time *ends = dts_simulation_ends(s->simulation);
    size_t count = 0;
    const dts_id *kernels = kernels_of(s, &count);
    const dts_time *starts = dts_simulation_starts(s->simulation);
    block->first_launch = starts[kernels[0]];
    for (size_t i = 0; i < s->b.info_count; i++) { /* or a collective before it */
        bool first = is_collective(&s->b.infos[i]) && starts[i] < block->first_launch;
        block->first_launch = first ? starts[i] : block->first_launch;
    }
    block->host = ends[s->stage.last_host];
    dts_time end = ends[kernels[count - 1]];
    dts_time made = ends[s->made] - block->trailing;
    block->lead = (made > end ? made : end) - block->duration;
}

static int64_t total_of(const int64_t *by_category) {
    int64_t total = 0;
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        total += by_category[c];
    }
    return total;
}

static void read_memory(const scratch *s, const memory_watch *memory, int32_t layer, dts_block *block) {
    memcpy(block->peak_B, memory->peak_B, sizeof block->peak_B);
    memcpy(block->left_B, memory->now_B, sizeof block->left_B);
    size_t count = 0;
    const dts_id *kernels = kernels_of(s, &count);
    const dts_block *inner = s->b.infos[kernels[count - 1]].block;
    block->last_B = memory->during_B[kernels[count - 1]];
    block->last_B += inner != NULL ? inner->last_B - total_of(inner->peak_B) : 0;
    if (!memory->peaked) {
        return;
    }
    const dts_task_info *info = &s->b.infos[memory->peak_task];
    int32_t last = (int32_t)s->b.plan->job.model->layers + 1;
    if (info->block != NULL && info->block->peak_name != NULL) {
        block->peak_name = info->block->peak_name;
        block->peak_part = info->block->peak_part;
        block->peak_layer = info->block->peak_layer + info->layer - layer;
        return;
    }
    block->peak_name = info->name;
    block->peak_part = info->layer == 0 ? DTS_PART_EMBEDDING : (info->layer == last ? DTS_PART_HEAD : DTS_PART_LAYER);
    block->peak_layer = info->layer - layer;
}

enum { MOST_ROWS = DTS_GROUP_COUNT * DTS_COLLECTIVE_COUNT };

/* *possible: can it be one task. */
static dts_status make(const dts_builder *b, const dts_stage *stage, const dts_block_key *key, int32_t layer,
                       dts_block_body *body, const void *context, dts_arena *arena, dts_block *out, bool *possible) {
    *out = (dts_block){.handed_B = key->handed_B, .rows = dts_arena_array(arena, MOST_ROWS, sizeof *out->rows)};
    if (out->rows == NULL) {
        return DTS_NOMEM;
    }
    memory_watch memory = {0};
    scratch s;
    dts_status status = lower_alone(b, stage, far_ahead_s, arena, body, context, out, &memory, &s);
    if (status == DTS_OK) {
        *possible = read_durations(&s, out);
    }
    if (status == DTS_OK && *possible) {
        read_memory(&s, &memory, layer, out);
    }
    scratch_free(&s);
    if (status == DTS_OK && *possible) {
        memory_watch again = {0};
        out->handed_B = key->handed_B;
        status = lower_alone(b, stage, 0, arena, body, context, out, &again, &s);
        if (status == DTS_OK) {
            read_launches(&s, out);
        }
        scratch_free(&s);
    }
    return status;
}

const dts_block *dts_block_find(dts_builder *b, const dts_stage *stage, dts_block_key *key, int32_t layer,
                                dts_block_body *body, const void *context) {
    key->environment = b->environment;
    bool known = false;
    const dts_block *block = dts_block_cache_get(b->blocks, key, &known);
    if (known) {
        return block;
    }
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_block made;
    bool possible = false;
    dts_status status = arena == NULL ? DTS_NOMEM : make(b, stage, key, layer, body, context, arena, &made, &possible);
    if (status == DTS_OK) {
        status = dts_block_cache_put(b->blocks, key, possible ? &made : NULL, &block);
    }
    dts_arena_free(arena);
    if (status != DTS_OK) {
        b->failed = true;
        return NULL;
    }
    return block;
}

/* ---- placing it ------------------------------------------------------------------------------------------------- */

/* The ledger enters one category after the other: what falls first, so that no total in between is a peak. */
static void add_changes(dts_builder *b, dts_id device, dts_id task, dts_memory_moment moment, const int64_t *from_B,
                        const int64_t *to_B) {
    for (int sign = -1; sign <= 1; sign += 2) {
        for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
            int64_t change = to_B[c] - from_B[c];
            if (change != 0 && (change > 0) == (sign > 0)) {
                dts_graph_memory(b->graph, task, moment, device, c, change);
            }
        }
    }
}

static void add_memory(dts_builder *b, const dts_stage *stage, const dts_block *block, dts_id first, dts_id last) {
    static const int64_t entry[DTS_MEMORY_CATEGORY_COUNT] = {0};
    if (b->brief && !b->alone) {
        const double peak_B = (double)total_of(block->peak_B);
        dts_build_memory(b, first, DTS_AT_START, stage, DTS_MEMORY_ACTIVATIONS, peak_B);
        dts_build_memory(b, last, DTS_AT_END, stage, DTS_MEMORY_ACTIVATIONS, (double)total_of(block->left_B) - peak_B);
        return;
    }
    add_changes(b, stage->device, first, DTS_AT_START, entry, block->peak_B);
    add_changes(b, stage->device, last, DTS_AT_END, block->peak_B, block->left_B);
}

void dts_block_allocate(dts_builder *b, dts_id task, const dts_stage *stage, dts_memory_category category,
                        double bytes) {
    const dts_block *block = task == stage->block_end ? stage->last_block : NULL;
    double room = block == NULL ? 0 : (double)(total_of(block->peak_B) - block->last_B);
    double above = bytes > room ? bytes - room : 0;
    dts_build_memory(b, task, DTS_AT_START, stage, category, above);
    dts_build_memory(b, task, DTS_AT_END, stage, category, floor(bytes) - floor(above));
}

/* A task of no length that ends the block when the launches have let it. */
static dts_id add_end_of_launches(dts_builder *b, dts_stage *stage, dts_time length, dts_id first_launch,
                                  const dts_task_info *info) {
    dts_task_info launches = {
        .role = DTS_ROLE_HOST, .microbatch = -1, .layer = -1, .device = stage->device, .name = "launches"};
    dts_id delay = dts_build_delay(b, length, &launches);
    dts_graph_depend(b->graph, delay, first_launch);
    dts_task_info what = *info;
    what.block = NULL;
    what.flops = 0;
    dts_id end = dts_build_task(b, stage->compute, 0, &what);
    dts_graph_depend(b->graph, end, delay);
    return end;
}

static dts_id add_trailing(dts_builder *b, const dts_stage *stage, const dts_block *block, dts_id after,
                           const dts_task_info *info) {
    dts_task_info what = *info;
    what.role = DTS_ROLE_COMMUNICATION;
    what.group = block->trailing_group;
    what.collective = block->trailing_collective;
    what.bytes = block->trailing_B;
    what.peer = stage->device;
    what.flops = 0;
    what.block = NULL;
    what.name = block->trailing_name;
    dts_id task = dts_build_task(b, stage->collective[block->trailing_group], block->trailing, &what);
    dts_graph_depend(b->graph, task, after);
    return task;
}

/* The trailing collective of the block before holds up those of this one: its stream is not free yet. Returns what the
 * block must wait for so that its first collective does not start too early. */
static dts_id rest_of_trailing(dts_builder *b, const dts_stage *stage, const dts_block *block, const dts_id *waits,
                               size_t wait_count) {
    if (stage->trailing == DTS_NO_ID || block->first_collective >= stage->last_block->trailing) {
        return DTS_NO_ID;
    }
    for (size_t i = 0; i < wait_count; i++) {
        if (waits[i] == stage->trailing) {
            return DTS_NO_ID; /* it waits for all of it */
        }
    }
    dts_task_info info = b->infos[stage->trailing];
    info.rest = true;
    dts_id rest = dts_build_delay(b, stage->last_block->trailing - block->first_collective, &info);
    dts_graph_depend(b->graph, rest, stage->block_end);
    return rest;
}

dts_id dts_block_place(dts_builder *b, dts_stage *stage, const dts_block *block, const dts_id *waits, size_t wait_count,
                       const dts_task_info *info) {
    dts_id rest = rest_of_trailing(b, stage, block, waits, wait_count);
    bool meets = dts_brief_meets(b, stage, block, waits[0], info->role != DTS_ROLE_FORWARD);
    dts_time ahead = meets ? 0 : stage->ahead;
    dts_time lead = block->lead;
    bool hidden = dts_brief_hides_host(b, block, ahead, meets);
    bool launched = ahead >= lead || hidden;
    dts_time late = hidden && lead > ahead ? lead - ahead : 0;
    dts_time before = stage->between_passes + (late > stage->gathers ? late : stage->gathers);
    stage->between_passes = stage->gathers = 0;
    dts_id issue = DTS_NO_ID;
    if (!launched) {
        issue = dts_build_host(b, stage, dts_time_to_s(block->first_launch), false,
                               dts_build_blocks(b) ? stage->last_launched : DTS_NO_ID, "launch");
    }
    /* else the host has nothing left to issue when the block ends, but is held until then */
    if (!dts_build_blocks(b) && !hidden) {
        stage->host_pending += launched ? block->host : block->host - block->first_launch;
    }
    dts_task_info what = *info;
    what.device = stage->device;
    what.peer = stage->device;
    what.flops = block->flops;
    what.block = block;
    const bool within = b->brief && (b->plan->job.parallelism->sequence || dts_brief_gathers_inside(b));
    bool cuts = dts_gathers_beside(b->plan) && block->last_collective > 0 && !within;
    /* the host waits for the kernel before the one that it launches last */
    bool alone = block->launched_last == block->duration;
    bool holds = dts_build_blocks(b) && !cuts && !alone && block->launched_last > 0;
    dts_time cut = cuts ? block->last_collective : block->duration - (holds ? block->launched_last : 0);
    dts_id task = dts_build_task(b, stage->compute, before + cut, &what);
    dts_graph_depend(b->graph, task, issue);
    dts_graph_depend(b->graph, task, rest);
    for (size_t i = 0; i < wait_count; i++) {
        dts_graph_depend(b->graph, task, waits[i]);
    }
    stage->last_kernel = task;
    stage->collectives_done = cuts ? task : stage->collectives_done;
    if (cuts || holds) {
        what.block = NULL;
        what.rest = true;
        what.flops = 0;
        stage->last_kernel = dts_build_task(b, stage->compute, block->duration - cut, &what);
    }
    if (!launched && lead > block->first_launch) {
        stage->last_kernel = add_end_of_launches(b, stage, lead + block->duration - block->first_launch, issue, &what);
    }
    stage->since_collectives = cuts && launched ? block->duration - block->last_collective : DTS_TIME_MAX;
    stage->last_block = block;
    stage->block_end = stage->last_kernel;
    stage->holds_host = !dts_build_blocks(b) || alone ? DTS_NO_ID : holds ? task : stage->last_kernel;
    add_memory(b, stage, block, task, stage->last_kernel);
    stage->flops += block->flops;
    stage->fresh_B += block->fresh_B;
    stage->ahead =
        dts_build_blocks(b) ? DTS_NEVER_AHEAD : (ahead > lead ? ahead : lead) + block->duration - block->host;
    stage->trailing = block->trailing > 0 ? add_trailing(b, stage, block, stage->last_kernel, info) : DTS_NO_ID;
    stage->last_launched = stage->trailing != DTS_NO_ID ? stage->trailing : stage->last_kernel;
    return stage->last_launched;
}

bool dts_block_kernels(dts_builder *b, dts_stage *stage, int64_t count, double duration_s, double launch_s,
                       const dts_task_info *info) {
    dts_time launch = dts_time_from_s(launch_s);
    dts_time one = dts_time_from_s(duration_s);
    dts_time lead = launch > one ? count * launch - (count - 1) * one : launch; /* K - C of block.c's head */
    if (!dts_block_wanted(b) || stage->ahead < lead || count < 1) {
        return false;
    }
    dts_task_info what = *info;
    what.device = stage->device;
    stage->last_kernel = dts_build_task(b, stage->compute, count * one, &what);
    stage->host_pending += count * launch;
    stage->ahead += count * (one - launch);
    stage->since_collectives += stage->since_collectives < DTS_TIME_MAX ? count * one : 0;
    return true;
}

bool dts_block_issues(dts_builder *b, dts_stage *stage, double launch_s) {
    dts_time launch = dts_time_from_s(launch_s);
    bool known = b->detail == DTS_DETAIL_BLOCK && stage->collectives_done != DTS_NO_ID &&
                 stage->since_collectives < DTS_TIME_MAX;
    if (!known || stage->ahead - launch < stage->since_collectives) {
        return false;
    }
    stage->host_pending += launch;
    stage->ahead -= launch;
    return true;
}
