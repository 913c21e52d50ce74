/* What the simulations of a pass by itself say about it as a block: block.c has the equations. */
#include "plan/lower/block_alone.h"

#include <string.h>

typedef dts_alone scratch;
typedef dts_alone_memory memory_watch;

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

/* A collective of this GPU's groups, or a transfer round the ring of one; none between stages can be in a block. */
static bool is_collective(const dts_task_info *info) {
    return info->role == DTS_ROLE_COMMUNICATION && info->group != DTS_GROUP_PIPELINE && !info->rest;
}

/* Does the host wait for kernels of the pass, so that they wait for launches however far it was ahead? */
static bool waits_for_gpu(const scratch *s) {
    return dts_build_blocks(&s->b) || s->stage.last_read != DTS_NO_ID;
}

/* Charges the wait of the compute stream from `from` to the start of task to the collectives that it waited for and,
 * where they block, to launches. Returns what is left: it waited for something else. */
static dts_time charge_wait(const scratch *s, dts_block *block, dts_time from, dts_id task) {
    const dts_time *starts = dts_simulation_starts(s->simulation);
    dts_time to = starts[task];
    while (to > from) {
        task = dts_simulation_blocker(s->simulation, task);
        bool launch = task != DTS_NO_ID && waits_for_gpu(s) && s->b.infos[task].role == DTS_ROLE_HOST;
        if (task == DTS_NO_ID || !(launch || is_collective(&s->b.infos[task]) || s->b.infos[task].rest)) {
            return to - from;
        }
        dts_time begin = starts[task] > from ? starts[task] : from;
        if (launch) {
            block->launches += to - begin;
            block->counts += s->b.infos[task].counts ? to - begin : 0;
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
    bool launched_late = waits_for_gpu(s) && charge_wait(s, block, last_kernel_end, s->made) == 0;
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

static dts_time products_of(const scratch *s, dts_id task) {
    const dts_task_info *info = &s->b.infos[task];
    return info->block != NULL ? info->block->products : info->flops > 0 ? busy_of(s, task) : 0;
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

/* When the host has read what it waits for; where every launch waits, it does that anyway. False: something of the pass
 * is not behind it. */
static bool read_meeting(const scratch *s, dts_block *block, dts_time begin) {
    const dts_time *starts = dts_simulation_starts(s->simulation);
    block->reads = s->stage.last_read != DTS_NO_ID && !dts_build_blocks(&s->b);
    if (!block->reads) {
        return true;
    }
    block->read = starts[s->stage.last_read] - begin;
    block->host_after = dts_simulation_ends(s->simulation)[s->stage.last_host] - starts[s->stage.last_read];
    const bool cut_before =
        dts_gathers_beside(s->b.plan) && block->last_collective > 0 && block->last_collective < block->read;
    return block->read >= 0 && block->read <= block->duration && !cut_before;
}

/* With the host far ahead. False: it cannot be one task. */
bool dts_alone_durations(const scratch *s, dts_block *block) {
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
        block->products += products_of(s, kernels[i]);
        const dts_block *inner = s->b.infos[kernels[i]].block;
        block->launches += inner != NULL ? inner->launches : 0;
        block->counts += inner != NULL ? inner->counts : 0;
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
                       (s->b.infos[i].role == DTS_ROLE_COMMUNICATION && s->b.infos[i].group == DTS_GROUP_PIPELINE);
        if (ends[i] > begin + block->duration + block->trailing || foreign) {
            return false;
        }
        read_communication(s, block, (dts_id)i, begin);
    }
    return starts[kernels[0]] >= begin && read_meeting(s, block, begin);
}

/* With the host and the compute stream free at zero. */
void dts_alone_launches(const scratch *s, dts_block *block) {
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

int64_t dts_block_total(const int64_t *by_category) {
    int64_t total = 0;
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        total += by_category[c];
    }
    return total;
}

void dts_alone_memory_of(const scratch *s, const memory_watch *memory, int32_t layer, dts_block *block) {
    memcpy(block->peak_B, memory->peak_B, sizeof block->peak_B);
    memcpy(block->left_B, memory->now_B, sizeof block->left_B);
    size_t count = 0;
    const dts_id *kernels = kernels_of(s, &count);
    const dts_block *inner = s->b.infos[kernels[count - 1]].block;
    block->last_B = memory->during_B[kernels[count - 1]];
    block->last_B += inner != NULL ? inner->last_B - dts_block_total(inner->peak_B) : 0;
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
