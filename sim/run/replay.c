/* From the ledger's changes to requests of the caching allocator.
 *
 * The lowering states what each operator allocates and frees tensor by tensor, and the ledger sees them in the order of
 * the compute stream, which is that of the host's requests [1]. What is added is a tensor; what is taken away is the
 * latest one of the same size, category, microbatch, layer and chunk, or else the latest of that size and category.
 *   - Within one task requests come before frees: an output is there before its input goes.
 *   - A temporary that goes while a tensor of its size is kept is that tensor: the input that an operator saves, or, at
 *     the end of a task, an output that stays for the loss (torch Pipe).
 *   - Activations that are offloaded leave the GPU tensor by tensor, and come back as the same ones.
 *   - Tensors that live the whole iteration come first; gradients that autograd makes come where the first backward
 *     makes them (in every iteration where zero_grad drops them), moments after the first iteration.
 *   - Buffers of sharded parameters are requested on the stream of their collectives [2], shards of gradients on that
 * of their reductions [3], all else on one stream.
 *   - The collective's stream uses such a buffer until the last kernel that reads it is done, and without a limit on
 *     all-gathers in flight the host has asked for many more by then: the buffer serves again only requests that the
 *     host issues later than that [2].
 * The iteration is repeated until one ends as the one before it did: as much reserved, with the same number of retries
 * and calls.
 *
 * [1] PyTorch, c10/cuda/CUDACachingAllocator.cpp: a block that is freed serves the next request of its stream at once,
 *     because kernels of a stream run in order.
 * [2] Zhao et al., "PyTorch FSDP", VLDB 2023, section 3.4.
 * [3] plan/lower/units.c, [6]. */
#include "run/replay.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ITERATIONS = 8, SLOTS = 1 << 14 };

#define NONE UINT32_MAX

void dts_memory_log_add(void *context, dts_time now, dts_id device, unsigned category, int64_t bytes, dts_id task) {
    dts_memory_log *log = context;
    dts_memory_events *of = &log->devices[device];
    dts_memory_event *items = dts_array_room(of->items, &of->capacity, of->count + 1, sizeof *items);
    if (items == NULL) {
        log->failed = true;
        return;
    }
    const bool begins = task != log->task || now != log->when || device != log->device;
    of->items = items;
    items[of->count++] =
        (dts_memory_event){.when = now, .bytes = bytes, .task = task, .category = (uint8_t)category, .begins = begins};
    log->when = now;
    log->task = task;
    log->device = device;
}

dts_status dts_memory_log_new(size_t devices, dts_memory_log *out) {
    *out = (dts_memory_log){.device_count = devices, .task = DTS_NO_ID, .device = DTS_NO_ID};
    out->devices = calloc(devices + 1, sizeof *out->devices);
    return out->devices == NULL ? DTS_NOMEM : DTS_OK;
}

void dts_memory_log_free(dts_memory_log *log) {
    for (size_t d = 0; log->devices != NULL && d < log->device_count; d++) {
        free(log->devices[d].items);
    }
    free(log->devices);
    *log = (dts_memory_log){0};
}

/* ---- live tensors ----------------------------------------------------------------------------------------------- */

typedef struct tensor {
    int64_t bytes;
    uint32_t block;
    int32_t microbatch, layer, chunk;
    uint32_t older, newer; /* of the category */
    uint32_t chained;      /* of the slot: the one before it */
    uint8_t category;
} tensor;

typedef struct replayer {
    const dts_plan *plan;
    const dts_lowered *lowered;
    dts_caching_allocator *allocator;
    tensor *tensors;
    size_t count, capacity;
    uint32_t spare;
    uint32_t newest[DTS_MEMORY_CATEGORY_COUNT];
    uint32_t *slots; /* [SLOTS] newest tensor of each hash */
    tensor *parked;  /* on the host: what they are, without a block */
    size_t parked_count, parked_capacity;
    dts_tensors known; /* that live the whole iteration */
    uint32_t *born;    /* [known.count] blocks of those that a task makes */
    size_t next_born;
    bool apart[DTS_MEMORY_CATEGORY_COUNT]; /* what is known is part of what the ledger counts */
    const dts_time *starts, *ends;
    dts_replay *out;
    dts_allocator_stall *stalls;
    size_t stall_count, stall_capacity;
    bool failed;
} replayer;

static size_t slot_of(const tensor *t) {
    uint64_t hash = (uint64_t)t->bytes;
    const uint64_t parts[] = {t->category, (uint32_t)t->microbatch, (uint32_t)t->layer, (uint32_t)t->chunk};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        hash = (hash ^ parts[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return (size_t)(hash % SLOTS);
}

static bool alike(const tensor *a, const tensor *b) {
    return a->bytes == b->bytes && a->category == b->category && a->microbatch == b->microbatch &&
           a->layer == b->layer && a->chunk == b->chunk;
}

static void enlist(replayer *r, uint32_t id) {
    tensor *t = &r->tensors[id];
    size_t slot = slot_of(t);
    t->chained = r->slots[slot];
    r->slots[slot] = id;
    t->older = r->newest[t->category];
    t->newer = NONE;
    if (t->older != NONE) {
        r->tensors[t->older].newer = id;
    }
    r->newest[t->category] = id;
}

static void strike(replayer *r, uint32_t id) {
    const tensor *t = &r->tensors[id];
    uint32_t *link = &r->slots[slot_of(t)];
    while (*link != id) {
        link = &r->tensors[*link].chained;
    }
    *link = t->chained;
    if (t->older != NONE) {
        r->tensors[t->older].newer = t->newer;
    }
    if (t->newer != NONE) {
        r->tensors[t->newer].older = t->older;
    } else {
        r->newest[t->category] = t->older;
    }
}

/* A tensor like t, or at least of its size and category: the latest, but of temporaries the oldest, since an output is
 * there before its input goes. */
static uint32_t find(const replayer *r, const tensor *t) {
    uint32_t found = NONE;
    const bool oldest = t->category == DTS_MEMORY_TEMPORARY;
    for (uint32_t id = r->slots[slot_of(t)]; id != NONE && (oldest || found == NONE); id = r->tensors[id].chained) {
        found = alike(&r->tensors[id], t) ? id : found;
    }
    for (uint32_t id = r->newest[t->category]; id != NONE && found == NONE; id = r->tensors[id].older) {
        found = r->tensors[id].bytes == t->bytes ? id : NONE;
    }
    return found;
}

static uint32_t tensor_new(replayer *r) {
    uint32_t id = r->spare;
    if (id != NONE) {
        r->spare = r->tensors[id].older;
        return id;
    }
    tensor *tensors = dts_array_room(r->tensors, &r->capacity, r->count + 1, sizeof *tensors);
    if (tensors == NULL) {
        r->failed = true;
        return NONE;
    }
    r->tensors = tensors;
    return (uint32_t)r->count++;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void note_stall(replayer *r, dts_id task, bool behind, bool retries, int64_t calls) {
    dts_allocator_stall *last = r->stall_count > 0 ? &r->stalls[r->stall_count - 1] : NULL;
    if (last != NULL && last->task == task && last->behind == behind) {
        last->retries |= retries;
        last->calls += calls;
        return;
    }
    dts_allocator_stall *stalls = dts_array_room(r->stalls, &r->stall_capacity, r->stall_count + 1, sizeof *stalls);
    if (stalls == NULL) {
        r->failed = true;
        return;
    }
    r->stalls = stalls;
    r->stalls[r->stall_count++] =
        (dts_allocator_stall){.task = task, .behind = behind, .retries = retries, .calls = calls};
}

static unsigned stream_of(uint8_t category) {
    return category == DTS_MEMORY_GATHERED ? 1 : category == DTS_MEMORY_SHARDS ? 2 : 0;
}

/* A block for so many bytes of a category; task: that asks for it; behind: when the host has issued it. DTS_NO_BLOCK:
 * there is no memory for it. */
static uint32_t serve(replayer *r, int64_t bytes, uint8_t category, dts_id task, bool behind) {
    dts_caching_counts was = dts_caching_count(r->allocator);
    uint32_t block = dts_caching_take(r->allocator, bytes, stream_of(category));
    dts_caching_counts is = dts_caching_count(r->allocator);
    int64_t calls = is.mallocs - was.mallocs + is.frees - was.frees;
    if (calls > 0 || is.retries > was.retries) {
        note_stall(r, task, behind, is.retries > was.retries, calls);
    }
    if (block == DTS_NO_BLOCK && !r->out->out_of_memory) {
        r->out->out_of_memory = true;
        r->out->requested_B = bytes;
        r->out->held_B = is.allocated_B;
    }
    return block;
}

/* When the host asks for what task needs: with the launch. */
static dts_time issued(const replayer *r, dts_id task) {
    size_t count = 0;
    const dts_id *before = dts_graph_predecessors(r->lowered->graph, task, &count);
    dts_time when = r->starts[task];
    for (size_t i = 0; i < count; i++) {
        if (r->lowered->infos[before[i]].role == DTS_ROLE_HOST) {
            when = r->ends[before[i]];
        }
    }
    return when;
}

static void request(replayer *r, const tensor *like, dts_id task, bool behind) {
    if (like->category == DTS_MEMORY_GATHERED) {
        dts_caching_advance(r->allocator, issued(r, task));
    }
    uint32_t block = serve(r, like->bytes, like->category, task, behind);
    uint32_t id = block == DTS_NO_BLOCK ? NONE : tensor_new(r);
    if (id != NONE) {
        r->tensors[id] = *like;
        r->tensors[id].block = block;
        enlist(r, id);
    }
}

/* Are gathered buffers kept from the stream that asks for them until the last kernel that reads them is done?
 * FSDP2 and Megatron-FSDP order the streams instead, and a limit on gathers makes the host wait. */
static bool records_streams(const replayer *r) {
    const dts_stack *stack = r->plan->job.stack;
    return !stack->fsdp_limit_all_gathers && !stack->fsdp_gathers_in_order &&
           stack->fsdp_copies != DTS_FSDP_COPIES_TENSORS;
}

/* when: the GPU is done with it. */
static void let_go(replayer *r, uint32_t id, dts_time when) {
    strike(r, id);
    if (r->tensors[id].category == DTS_MEMORY_GATHERED && records_streams(r)) {
        dts_caching_give_at(r->allocator, r->tensors[id].block, when);
    } else {
        dts_caching_give(r->allocator, r->tensors[id].block);
    }
    r->tensors[id].older = r->spare;
    r->spare = id;
}

static tensor tensor_of(const replayer *r, const dts_memory_event *e) {
    const dts_task_info *info = &r->lowered->infos[e->task];
    return (tensor){.bytes = llabs(e->bytes),
                    .microbatch = info->microbatch,
                    .layer = info->layer,
                    .chunk = info->chunk,
                    .category = e->category};
}

/* What is freed but was not requested in this size: the latest tensors that it covers. */
static void let_go_parts(replayer *r, const tensor *sum, dts_time when) {
    int64_t left_B = sum->bytes;
    for (uint32_t id = r->newest[sum->category]; id != NONE && left_B > 0;) {
        uint32_t older = r->tensors[id].older;
        if (r->tensors[id].bytes <= left_B) {
            left_B -= r->tensors[id].bytes;
            let_go(r, id, when);
        }
        id = older;
    }
}

/* Does the event see its task off? What appears then is no output: that was there from the start. The host asks for it
 * behind the task: a unit of parameters that is gathered next. */
static bool ends_task(const replayer *r, const dts_memory_event *e) {
    return e->when == r->ends[e->task] && e->when > r->starts[e->task];
}

/* A temporary that goes while a tensor of its size is kept becomes that tensor. */
static void pass_on(replayer *r, dts_memory_event *group, size_t count) {
    for (size_t f = 0; f < count; f++) {
        if (group[f].bytes >= 0 || group[f].category != DTS_MEMORY_TEMPORARY) {
            continue;
        }
        for (size_t t = 0; t < count; t++) {
            const uint8_t category = group[t].category;
            const bool stays =
                category == DTS_MEMORY_ACTIVATIONS || (category == DTS_MEMORY_TEMPORARY && ends_task(r, &group[t]));
            if (!stays || group[t].bytes != -group[f].bytes) {
                continue;
            }
            tensor from = tensor_of(r, &group[f]), to = tensor_of(r, &group[t]);
            uint32_t id = find(r, &from);
            if (id != NONE) {
                strike(r, id);
                to.block = r->tensors[id].block;
                r->tensors[id] = to;
                enlist(r, id);
                group[f].bytes = group[t].bytes = 0;
                break;
            }
        }
    }
}

static bool of_one_part(const tensor *a, const tensor *b) {
    return a->microbatch == b->microbatch && a->layer == b->layer && a->chunk == b->chunk;
}

static bool is_offload(const replayer *r, const dts_memory_event *e) {
    return e->category == DTS_MEMORY_ACTIVATIONS && r->lowered->infos[e->task].role == DTS_ROLE_OFFLOAD;
}

/* The tensors of a part of the model leave the GPU: sum is their bytes. */
static void park(replayer *r, const tensor *sum, dts_time when) {
    int64_t left_B = sum->bytes;
    for (int others = 0; others < 2; others++) { /* those of the part first */
        for (uint32_t id = r->newest[sum->category]; id != NONE && left_B > 0;) {
            const tensor t = r->tensors[id];
            if (t.bytes <= left_B && (others == 1 || of_one_part(&t, sum))) {
                tensor *parked = dts_array_room(r->parked, &r->parked_capacity, r->parked_count + 1, sizeof *parked);
                if (parked == NULL) {
                    r->failed = true;
                    return;
                }
                r->parked = parked;
                parked[r->parked_count] = *sum; /* as what it comes back */
                parked[r->parked_count++].bytes = t.bytes;
                left_B -= t.bytes;
                let_go(r, id, when);
            }
            id = t.older;
        }
    }
}

/* They come back, in the order in which they were made. */
static void unpark(replayer *r, const tensor *sum, dts_id task, bool behind) {
    tensor rest = *sum;
    for (size_t i = r->parked_count; i-- > 0;) {
        const tensor t = r->parked[i];
        if (of_one_part(&t, sum) && t.bytes <= rest.bytes) {
            rest.bytes -= t.bytes;
            request(r, &t, task, behind);
            r->parked_count--;
            memmove(&r->parked[i], &r->parked[i + 1], (r->parked_count - i) * sizeof *r->parked);
        }
    }
    if (rest.bytes > 0) {
        request(r, &rest, task, behind);
    }
}

/* What one task does at one moment. */
static void replay_group(replayer *r, const dts_memory_event *events, size_t count) {
    enum { MOST = 32 };
    dts_memory_event group[MOST];
    for (size_t from = 0; from < count; from += MOST) {
        size_t some = count - from < MOST ? count - from : MOST;
        memcpy(group, events + from, some * sizeof *group);
        pass_on(r, group, some);
        for (size_t i = 0; i < some; i++) {
            if (group[i].bytes > 0) {
                tensor t = tensor_of(r, &group[i]);
                (is_offload(r, &group[i]) ? unpark : request)(r, &t, group[i].task, ends_task(r, &group[i]));
            }
        }
        for (size_t i = 0; i < some; i++) {
            if (group[i].bytes < 0) {
                tensor t = tensor_of(r, &group[i]);
                const bool leaves = is_offload(r, &group[i]);
                uint32_t id = leaves ? NONE : find(r, &t);
                if (leaves) {
                    park(r, &t, group[i].when);
                } else if (id != NONE) {
                    let_go(r, id, group[i].when);
                } else {
                    let_go_parts(r, &t, group[i].when);
                }
            }
        }
    }
}

/* ---- iterations ------------------------------------------------------------------------------------------------- */

/* Tensors that live the whole iteration: those that are there before the first, or the moments after it. What is not
 * known one by one is one tensor of its category. */
static void set_up(replayer *r, const int64_t *static_B, bool by_step) {
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        int64_t known_B = 0;
        for (size_t i = 0; i < r->known.count; i++) {
            known_B += r->known.items[i].category == c ? r->known.items[i].bytes : 0;
        }
        r->apart[c] = known_B <= static_B[c]; /* else it is not what the ledger counts */
        for (size_t i = 0; r->apart[c] && i < r->known.count; i++) {
            const dts_tensor *t = &r->known.items[i];
            if (t->category == c && t->by_step == by_step && t->made_by == DTS_NO_ID) {
                serve(r, t->bytes, (uint8_t)c, DTS_NO_ID, false);
            }
        }
        int64_t rest_B = static_B[c] - (r->apart[c] ? known_B : 0);
        if (rest_B > 0 && !by_step) {
            serve(r, rest_B, (uint8_t)c, DTS_NO_ID, false);
        }
    }
}

/* The gradients that autograd has made by now: those of tasks that began no later. */
static void bear(replayer *r, dts_time now) {
    while (r->next_born < r->known.count) {
        const dts_tensor *t = &r->known.items[r->next_born];
        if (t->made_by != DTS_NO_ID) {
            if (r->starts[t->made_by] > now) {
                return;
            }
            r->born[r->next_born] = serve(r, t->bytes, t->category, t->made_by, false);
        }
        r->next_born++;
    }
}

/* zero_grad(set_to_none=True) */
static void drop_gradients(replayer *r) {
    for (size_t i = 0; i < r->known.count; i++) {
        if (r->born[i] != DTS_NO_BLOCK) {
            dts_caching_give(r->allocator, r->born[i]);
            r->born[i] = DTS_NO_BLOCK;
        }
    }
}

static void iterate(replayer *r, const dts_memory_events *events, bool bears) {
    r->next_born = bears && r->apart[DTS_MEMORY_GRADIENTS] ? 0 : r->known.count;
    for (size_t from = 0; from < events->count;) {
        size_t to = from + 1;
        while (to < events->count && !events->items[to].begins) {
            to++;
        }
        bear(r, events->items[from].when);
        replay_group(r, &events->items[from], to - from);
        from = to;
    }
    bear(r, DTS_TIME_MAX);
    r->parked_count = 0;
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        while (r->newest[c] != NONE) { /* versions of weights, states on their way: the next iteration asks again */
            let_go(r, r->newest[c], 0);
        }
    }
    dts_caching_advance(r->allocator, DTS_TIME_MAX); /* the host reads the loss */
}

static void repeat(replayer *r, const dts_memory_events *events, const int64_t *static_B) {
    dts_caching_counts last = {.retries = -1};
    int64_t retries = -1, calls = -1;
    set_up(r, static_B, false);
    for (int i = 0; i < MOST_ITERATIONS && !r->failed && !r->out->out_of_memory; i++) {
        r->stall_count = 0;
        dts_caching_counts was = dts_caching_count(r->allocator);
        bool drops = r->plan->job.stack->zero_grad_to_none;
        iterate(r, events, drops || i == 0);
        if (i == 0) {
            set_up(r, static_B, true);
        }
        if (drops) {
            drop_gradients(r);
        }
        dts_caching_counts is = dts_caching_count(r->allocator);
        r->out->iterations = i + 1;
        r->out->retries = is.retries - was.retries;
        r->out->calls = is.mallocs - was.mallocs + is.frees - was.frees;
        if (i > 0 && is.reserved_B == last.reserved_B && r->out->retries == retries && r->out->calls == calls) {
            break;
        }
        last = is;
        retries = r->out->retries;
        calls = r->out->calls;
    }
}

dts_status dts_replay_device(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                             const dts_memory_log *log, dts_id device, int64_t stage, double room_B, dts_replay *out) {
    *out = (dts_replay){0};
    const dts_stack *stack = plan->job.stack;
    const dts_caching_rules rules = {.round_B = (int64_t)stack->allocator_round_B,
                                     .capacity_B = (int64_t)room_B,
                                     .expandable = stack->allocator_expandable};
    replayer r = {.plan = plan,
                  .lowered = lowered,
                  .allocator = dts_caching_new(&rules),
                  .spare = NONE,
                  .slots = malloc(SLOTS * sizeof *r.slots),
                  .starts = dts_simulation_starts(simulation),
                  .ends = dts_simulation_ends(simulation),
                  .out = out};
    r.known = lowered->tensors != NULL ? lowered->tensors[stage] : (dts_tensors){0};
    r.born = malloc((r.known.count + 1) * sizeof *r.born);
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        r.newest[c] = NONE;
    }
    r.failed = r.allocator == NULL || r.slots == NULL || r.born == NULL || log->failed;
    if (!r.failed) {
        memset(r.slots, 0xff, SLOTS * sizeof *r.slots);
        memset(r.born, 0xff, (r.known.count + 1) * sizeof *r.born);
        repeat(&r, &log->devices[device], dts_simulation_peak(simulation, device)->final_bytes);
        dts_caching_counts counts = dts_caching_count(r.allocator);
        out->peak_reserved_B = counts.peak_reserved_B;
        out->peak_allocated_B = counts.peak_allocated_B;
        out->stalls = r.stalls;
        out->stall_count = r.stall_count;
        r.failed |= dts_caching_failed(r.allocator);
    }
    dts_caching_free(r.allocator);
    free(r.tensors);
    free(r.parked);
    free(r.slots);
    free(r.born);
    return r.failed ? DTS_NOMEM : DTS_OK;
}

void dts_replay_free(dts_replay *replay) {
    free(replay->stalls);
    *replay = (dts_replay){0};
}
