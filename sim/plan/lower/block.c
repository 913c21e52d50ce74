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
 * Where the host waits for a result inside (token counts of experts) it meets the GPU there, with nothing launched that
 * is not done: all that follows the last such moment r takes as long however late it comes,
 *   r = max(c + R, h + R')    end = r + C - R    the host is done at r + G                                          (3)
 * and with K = R' + C - R the end is that of (1). The block is cut at r: a task of G of the host thread waits for it,
 * the delay of the launches lies before it, and behind the block the host is ahead by C - R - G, which may be negative.
 *
 * Beside transfers that take multiprocessors (not where blocks are exact, auto_detail.c) a brief block stands as two
 * tasks: one as long as the rest of it takes, and behind it its products, at the rate of the multiprocessors that are
 * left. Which of both meets a transfer is right on average only: FSDP's first looks were 3 to 5 % short without it, and
 * are within 0.3 %.
 *
 * Memory of a block: at its start the ledger takes the peak above entry, at its end it falls to what stays. */
#include "plan/lower/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/simulate.h"
#include "plan/lower/block_alone.h"

/* Longer than any host is behind: an hour. */
static const double far_ahead_s = 3600;

bool dts_block_wanted(const dts_builder *b, const dts_stage *stage) {
    return b->detail != DTS_DETAIL_KERNEL && stage->index + 1 != b->kernel_stage;
}

/* ---- lowering it alone ------------------------------------------------------------------------------------------ */

typedef dts_alone scratch;
typedef dts_alone_memory memory_watch;

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
    s->b.tensors = NULL;
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
    dts_sync_recorded(sync, out);
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

/* ---- making it
 * ------------------------------------------------------------------------------------------------------- */

enum { MOST_ROWS = DTS_GROUP_COUNT * (DTS_COLLECTIVE_COUNT + 1) }; /* and what goes round a ring */

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
        *possible = dts_alone_durations(&s, out);
    }
    if (status == DTS_OK && *possible) {
        dts_alone_memory_of(&s, &memory, layer, out);
    }
    scratch_free(&s);
    if (status == DTS_OK && *possible) {
        memory_watch again = {0};
        out->handed_B = key->handed_B;
        status = lower_alone(b, stage, 0, arena, body, context, out, &again, &s);
        if (status == DTS_OK) {
            dts_alone_launches(&s, out);
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
        const double peak_B = (double)dts_block_total(block->peak_B);
        dts_build_memory(b, first, DTS_AT_START, stage, DTS_MEMORY_ACTIVATIONS, peak_B);
        dts_build_memory(b, last, DTS_AT_END, stage, DTS_MEMORY_ACTIVATIONS,
                         (double)dts_block_total(block->left_B) - peak_B);
        return;
    }
    add_changes(b, stage->device, first, DTS_AT_START, entry, block->peak_B);
    add_changes(b, stage->device, last, DTS_AT_END, block->peak_B, block->left_B);
}

void dts_block_allocate(dts_builder *b, dts_id task, const dts_stage *stage, dts_memory_category category,
                        double bytes) {
    const dts_block *block = task == stage->block_end ? stage->last_block : NULL;
    double room = block == NULL ? 0 : (double)(dts_block_total(block->peak_B) - block->last_B);
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
    what.device = stage->device;
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

/* Of a stretch of a brief block, what products take while transfers may run beside them. */
static dts_time products_in(const dts_builder *b, const dts_stage *stage, const dts_block *block, dts_time stretch) {
    const bool beside = b->brief && !b->alone && stage->contended && block->duration > 0;
    return beside ? (dts_time)((double)stretch * (double)block->products / (double)block->duration) : 0;
}

/* A stretch of a block: its products, which transfers beside it slow down, come behind the rest of it. */
static dts_id add_stretch(dts_builder *b, dts_stage *stage, const dts_block *block, dts_time before, dts_time stretch,
                          const dts_task_info *info) {
    const dts_time products = products_in(b, stage, block, stretch);
    const dts_id first = dts_build_task(b, stage->compute, before + stretch - products, info);
    stage->last_kernel = first;
    if (products > 0) {
        dts_task_info what = *info;
        what.block = NULL;
        what.flops = 0;
        what.rest = true;
        stage->last_kernel = dts_build_products(b, stage, dts_time_to_s(products), &what);
    }
    return first;
}

/* How a block that is not one task is cut. */
typedef struct pieces {
    bool met;         /* where the host reads a result */
    bool cuts, holds; /* at cut, behind its last collective or before the kernel launched last */
    dts_time cut;     /* the whole, where it is none of that */
    dts_time held_up; /* beyond its duration the launches may take so much from issue on; 0: they do not */
    dts_id issue;
} pieces;

/* Behind the first piece, which the host meets or not. what: of the block. */
static void add_pieces(dts_builder *b, dts_stage *stage, const dts_block *block, const pieces *p, dts_task_info what) {
    what.block = NULL;
    what.flops = 0;
    if (p->met) {
        if (p->held_up > 0) {
            stage->last_kernel = add_end_of_launches(b, stage, p->held_up + block->read, p->issue, &what);
        }
        stage->host_pending = 0; /* has been issued by then */
        dts_build_read(b, stage, dts_time_to_s(block->host_after), false, stage->last_kernel);
        what.rest = true;
        add_stretch(b, stage, block, 0, p->cut - block->read, &what);
    }
    stage->collectives_done = p->cuts ? stage->last_kernel : stage->collectives_done;
    if (p->cuts || p->holds) {
        what.rest = true;
        add_stretch(b, stage, block, 0, block->duration - p->cut, &what);
    }
    if (p->held_up > 0 && !p->met) {
        stage->last_kernel = add_end_of_launches(b, stage, p->held_up + block->duration, p->issue, &what);
    }
}

dts_id dts_block_place(dts_builder *b, dts_stage *stage, const dts_block *block, const dts_id *waits, size_t wait_count,
                       const dts_task_info *info) {
    dts_id rest = rest_of_trailing(b, stage, block, waits, wait_count);
    bool meets = dts_brief_meets(b, stage, block, info->role != DTS_ROLE_FORWARD);
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
    const bool met = block->reads && !hidden;
    if (meets) {
        stage->host_pending = block->host; /* what it issued before was done when it met the GPU */
    } else if (!dts_build_blocks(b) && !met) {
        stage->host_pending += launched ? block->host : block->host - block->first_launch;
    }
    dts_task_info what = *info;
    what.device = stage->device;
    what.peer = stage->device;
    what.flops = block->flops;
    what.block = block;
    const bool within = b->brief && (b->plan->job.parallelism->sequence || dts_brief_gathers_inside(b));
    pieces p = {.met = met, .issue = issue};
    p.cuts = dts_gathers_beside(b->plan) && block->last_collective > 0 && !within;
    p.held_up = launched || lead <= block->first_launch ? 0 : lead - block->first_launch;
    /* the host waits for the kernel before the one that it launches last */
    bool alone = block->launched_last == block->duration;
    p.holds = dts_build_blocks(b) && !p.cuts && !alone && block->launched_last > 0;
    p.cut = p.cuts ? block->last_collective : block->duration - (p.holds ? block->launched_last : 0);
    const dts_time stretch = met ? block->read : p.cut;
    const bool whole = !p.cuts && !p.holds && !met && launched && block->trailing == 0;
    const bool carries = stage->carries != NULL && whole && products_in(b, stage, block, stretch) == 0;
    const dts_id task = carries ? dts_build_with_send(b, stage, before + stretch, &what)
                                : add_stretch(b, stage, block, before, stretch, &what);
    stage->last_kernel = carries ? task : stage->last_kernel;
    stage->carries = NULL;
    dts_graph_depend(b->graph, task, issue);
    dts_graph_depend(b->graph, task, rest);
    dts_graph_depend(b->graph, task, meets ? stage->met[0] : DTS_NO_ID); /* what is recomputed does not take it */
    for (size_t i = 0; i < wait_count; i++) {
        dts_graph_depend(b->graph, task, waits[i]);
    }
    add_pieces(b, stage, block, &p, what);
    stage->since_collectives = p.cuts && launched ? block->duration - block->last_collective : DTS_TIME_MAX;
    stage->last_block = block;
    stage->block_end = stage->last_kernel;
    stage->holds_host = !dts_build_blocks(b) || alone ? DTS_NO_ID : p.holds ? task : stage->last_kernel;
    add_memory(b, stage, block, task, stage->last_kernel);
    stage->flops += block->flops;
    stage->fresh_B += block->fresh_B;
    stage->ahead = dts_build_blocks(b) ? DTS_NEVER_AHEAD
                   : block->reads      ? block->duration - block->read - block->host_after
                                       : (ahead > lead ? ahead : lead) + block->duration - block->host;
    stage->trailing = block->trailing > 0 ? add_trailing(b, stage, block, stage->last_kernel, info) : DTS_NO_ID;
    stage->last_launched = stage->trailing != DTS_NO_ID ? stage->trailing : stage->last_kernel;
    return stage->last_launched;
}

bool dts_block_kernels(dts_builder *b, dts_stage *stage, int64_t count, double duration_s, double launch_s,
                       const dts_task_info *info) {
    dts_time launch = dts_time_from_s(launch_s);
    dts_time one = dts_time_from_s(duration_s);
    dts_time lead = launch > one ? count * launch - (count - 1) * one : launch; /* K - C of block.c's head */
    if (!dts_block_wanted(b, stage) || stage->ahead < lead || count < 1 || stage->awaited != DTS_NO_ID) {
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
