/* From the ledger's changes to requests of the caching allocator.
 *
 * The lowering states what each operator allocates and frees tensor by tensor, and the ledger sees them in the order of
 * the compute stream, which is that of the host's requests [1]. What is added is a tensor; what is taken away is the
 * latest one of the same size, category, microbatch, layer and chunk, or else the latest of that size and category.
 *   - Within one task requests come before frees: an output is there before its input goes.
 *   - A temporary that goes while a tensor of its size is kept is that tensor: the input that an operator saves, or, at
 *     the end of a task, an output that stays for the loss (torch Pipe).
 *   - Activations that are offloaded leave the GPU tensor by tensor, and come back as the same ones.
 *   - Gradients that autograd makes come where the first backward makes them.
 *   - The collective's stream uses a buffer of sharded parameters until the last kernel that reads it is done, and
 *     without a limit on all-gathers in flight the host has asked for many more by then: the buffer serves again only
 *     requests that the host issues later than that [2].
 * Which tensor is which does not depend on the allocator: every iteration makes the same requests.
 *
 * [1] PyTorch, c10/cuda/CUDACachingAllocator.cpp: a block that is freed serves the next request of its stream at once,
 *     because kernels of a stream run in order.
 * [2] Zhao et al., "PyTorch FSDP", VLDB 2023, section 3.4. */
#include "run/requests.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_SLOTS = 1 << 14 };

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
    int32_t microbatch, layer, chunk;
    uint32_t older, newer; /* of the category */
    uint32_t chained;      /* of the slot: the one before it */
    uint8_t category;
} tensor;

typedef struct maker {
    const dts_plan *plan;
    const dts_lowered *lowered;
    const dts_time *starts, *ends;
    tensor *tensors;
    size_t capacity;
    uint32_t spare;
    uint32_t newest[DTS_MEMORY_CATEGORY_COUNT];
    uint32_t *slots; /* [slot_count, a power of two] newest tensor of each hash */
    size_t slot_count;
    tensor *parked; /* on the host: what they are */
    size_t parked_count, parked_capacity;
    const dts_tensors *made; /* that tasks make */
    size_t next_made;
    size_t capacity_of_items;
    dts_requests *out;
    bool failed;
} maker;

static size_t slot_of(const maker *r, const tensor *t) {
    uint64_t hash = (uint64_t)t->bytes;
    const uint64_t parts[] = {t->category, (uint32_t)t->microbatch, (uint32_t)t->layer, (uint32_t)t->chunk};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        hash = (hash ^ parts[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return (size_t)hash & (r->slot_count - 1);
}

static bool alike(const tensor *a, const tensor *b) {
    return a->bytes == b->bytes && a->category == b->category && a->microbatch == b->microbatch &&
           a->layer == b->layer && a->chunk == b->chunk;
}

static void enlist(maker *r, uint32_t id) {
    tensor *t = &r->tensors[id];
    size_t slot = slot_of(r, t);
    t->chained = r->slots[slot];
    r->slots[slot] = id;
    t->older = r->newest[t->category];
    t->newer = NONE;
    if (t->older != NONE) {
        r->tensors[t->older].newer = id;
    }
    r->newest[t->category] = id;
}

static void strike(maker *r, uint32_t id) {
    const tensor *t = &r->tensors[id];
    uint32_t *link = &r->slots[slot_of(r, t)];
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
static uint32_t find(const maker *r, const tensor *t) {
    uint32_t found = NONE;
    const bool oldest = t->category == DTS_MEMORY_TEMPORARY;
    for (uint32_t id = r->slots[slot_of(r, t)]; id != NONE && (oldest || found == NONE); id = r->tensors[id].chained) {
        found = alike(&r->tensors[id], t) ? id : found;
    }
    for (uint32_t id = r->newest[t->category]; id != NONE && found == NONE; id = r->tensors[id].older) {
        found = r->tensors[id].bytes == t->bytes ? id : NONE;
    }
    return found;
}

static uint32_t tensor_new(maker *r) {
    uint32_t id = r->spare;
    if (id != NONE) {
        r->spare = r->tensors[id].older;
        return id;
    }
    tensor *tensors = dts_array_room(r->tensors, &r->capacity, r->out->places + 1, sizeof *tensors);
    if (tensors == NULL) {
        r->failed = true;
        return NONE;
    }
    r->tensors = tensors;
    return (uint32_t)r->out->places++;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void add(maker *r, const dts_request *request) {
    dts_request *items = dts_array_room(r->out->items, &r->capacity_of_items, r->out->count + 1, sizeof *items);
    if (items == NULL) {
        r->failed = true;
        return;
    }
    r->out->items = items;
    items[r->out->count++] = *request;
}

/* When the host asks for what task needs: with the launch. */
static dts_time issued(const maker *r, dts_id task) {
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

static void take(maker *r, const tensor *like, dts_id task, bool behind) {
    const uint32_t id = tensor_new(r);
    if (id == NONE) {
        return;
    }
    r->tensors[id] = *like;
    enlist(r, id);
    add(r, &(dts_request){.kind = DTS_REQUEST_TAKE,
                          .bytes = like->bytes,
                          .when = like->category == DTS_MEMORY_GATHERED ? issued(r, task) : 0,
                          .task = task,
                          .place = id,
                          .category = like->category,
                          .behind = behind});
}

/* Are gathered buffers kept from the stream that asks for them until the last kernel that reads them is done?
 * FSDP2 and Megatron-FSDP order the streams instead, and a limit on gathers makes the host wait. */
static bool records_streams(const maker *r) {
    const dts_stack *stack = r->plan->job.stack;
    return !stack->fsdp_limit_all_gathers && !stack->fsdp_gathers_in_order &&
           stack->fsdp_copies != DTS_FSDP_COPIES_TENSORS;
}

/* when: the GPU is done with it. */
static void let_go(maker *r, uint32_t id, dts_time when) {
    strike(r, id);
    const bool late = r->tensors[id].category == DTS_MEMORY_GATHERED && records_streams(r);
    add(r, &(dts_request){.kind = late ? DTS_REQUEST_GIVE_LATE : DTS_REQUEST_GIVE, .when = when, .place = id});
    r->tensors[id].older = r->spare;
    r->spare = id;
}

static tensor tensor_of(const maker *r, const dts_memory_event *e) {
    const dts_task_info *info = &r->lowered->infos[e->task];
    return (tensor){.bytes = llabs(e->bytes),
                    .microbatch = info->microbatch,
                    .layer = info->layer,
                    .chunk = info->chunk,
                    .category = e->category};
}

/* What is freed but was not requested in this size, as by a block: the latest tensors that it covers, and of the next
 * one a part, which the allocator knows as a free and a smaller request. */
static void let_go_parts(maker *r, const tensor *sum, dts_time when, dts_id task) {
    int64_t left_B = sum->bytes;
    for (uint32_t id = r->newest[sum->category]; id != NONE && left_B > 0;) {
        uint32_t older = r->tensors[id].older;
        if (r->tensors[id].bytes <= left_B) {
            left_B -= r->tensors[id].bytes;
            let_go(r, id, when);
        }
        id = older;
    }
    const uint32_t last = r->newest[sum->category];
    if (left_B > 0 && last != NONE) { /* all that are left are larger */
        tensor rest = r->tensors[last];
        rest.bytes -= left_B;
        let_go(r, last, when);
        take(r, &rest, task, true);
        r->out->cut_B += left_B;
        left_B = 0;
    }
    r->out->unknown_B += left_B;
}

/* Does the event see its task off? What appears then is no output: that was there from the start. The host asks for it
 * behind the task: a unit of parameters that is gathered next. */
static bool ends_task(const maker *r, const dts_memory_event *e) {
    return e->when == r->ends[e->task] && e->when > r->starts[e->task];
}

/* A temporary that goes while a tensor of its size is kept becomes that tensor. */
static void pass_on(maker *r, dts_memory_event *group, size_t count) {
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
                r->tensors[id] = to;
                enlist(r, id);
                group[f].bytes = group[t].bytes = 0;
                break;
            }
        }
    }
}

static bool of_one_pass(const tensor *a, const tensor *b) {
    return a->microbatch == b->microbatch && a->chunk == b->chunk;
}

static bool of_one_part(const tensor *a, const tensor *b) {
    return of_one_pass(a, b) && a->layer == b->layer;
}

static bool is_offload(const maker *r, const dts_memory_event *e) {
    return e->category == DTS_MEMORY_ACTIVATIONS && r->lowered->infos[e->task].role == DTS_ROLE_OFFLOAD;
}

/* The tensors of a part of the model leave the GPU: sum is their bytes. */
static void park(maker *r, const tensor *sum, dts_time when, dts_id task) {
    int64_t left_B = sum->bytes;
    for (int others = 0; others < 3; others++) { /* those of the part first, then those of its pass */
        for (uint32_t id = r->newest[sum->category]; id != NONE && left_B > 0;) {
            const tensor t = r->tensors[id];
            if (t.bytes <= left_B && (others == 2 || (others == 1 ? of_one_pass(&t, sum) : of_one_part(&t, sum)))) {
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
    const tensor rest = {.bytes = left_B, .category = sum->category};
    let_go_parts(r, &rest, when, task);
}

/* They come back, in the order in which they were made. */
static void unpark(maker *r, const tensor *sum, dts_id task, bool behind) {
    tensor rest = *sum;
    for (size_t i = r->parked_count; i-- > 0;) {
        const tensor t = r->parked[i];
        if (of_one_part(&t, sum) && t.bytes <= rest.bytes) {
            rest.bytes -= t.bytes;
            take(r, &t, task, behind);
            r->parked_count--;
            memmove(&r->parked[i], &r->parked[i + 1], (r->parked_count - i) * sizeof *r->parked);
        }
    }
    if (rest.bytes > 0) {
        take(r, &rest, task, behind);
    }
}

/* What one task does at one moment. */
static void make_group(maker *r, const dts_memory_event *events, size_t count) {
    enum { MOST = 32 };
    dts_memory_event group[MOST];
    for (size_t from = 0; from < count; from += MOST) {
        size_t some = count - from < MOST ? count - from : MOST;
        memcpy(group, events + from, some * sizeof *group);
        pass_on(r, group, some);
        for (size_t i = 0; i < some; i++) {
            if (group[i].bytes > 0) {
                tensor t = tensor_of(r, &group[i]);
                (is_offload(r, &group[i]) ? unpark : take)(r, &t, group[i].task, ends_task(r, &group[i]));
            }
        }
        for (size_t i = 0; i < some; i++) {
            if (group[i].bytes < 0) {
                tensor t = tensor_of(r, &group[i]);
                const bool leaves = is_offload(r, &group[i]);
                uint32_t id = leaves ? NONE : find(r, &t);
                if (leaves) {
                    park(r, &t, group[i].when, group[i].task);
                } else if (id != NONE) {
                    let_go(r, id, group[i].when);
                } else {
                    let_go_parts(r, &t, group[i].when, group[i].task);
                }
            }
        }
    }
}

/* The gradients that autograd has made by now: those of tasks that began no later. */
static void make(maker *r, dts_time now) {
    for (; r->next_made < r->made->count; r->next_made++) {
        const dts_tensor *t = &r->made->items[r->next_made];
        if (t->made_by == DTS_NO_ID) {
            continue;
        }
        if (r->starts[t->made_by] > now) {
            return;
        }
        add(r, &(dts_request){.kind = DTS_REQUEST_MAKE,
                              .bytes = t->bytes,
                              .task = t->made_by,
                              .place = (uint32_t)r->next_made,
                              .category = t->category});
    }
}

static void make_all(maker *r, const dts_memory_events *events) {
    for (size_t from = 0; from < events->count;) {
        size_t to = from + 1;
        while (to < events->count && !events->items[to].begins) {
            to++;
        }
        make(r, events->items[from].when);
        make_group(r, &events->items[from], to - from);
        from = to;
    }
    make(r, DTS_TIME_MAX);
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        while (r->newest[c] != NONE) { /* versions of weights, states on their way: the next iteration asks again */
            let_go(r, r->newest[c], 0);
        }
    }
}

dts_status dts_requests_make(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                             const dts_memory_events *events, const dts_tensors *made, dts_requests *out) {
    *out = (dts_requests){0};
    maker r = {.plan = plan,
               .lowered = lowered,
               .starts = dts_simulation_starts(simulation),
               .ends = dts_simulation_ends(simulation),
               .spare = NONE,
               .made = made,
               .out = out};
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        r.newest[c] = NONE;
    }
    for (r.slot_count = LEAST_SLOTS; r.slot_count < events->count / 2;) { /* every other one adds a tensor */
        r.slot_count *= 2;
    }
    r.slots = malloc(r.slot_count * sizeof *r.slots);
    r.failed = r.slots == NULL;
    if (!r.failed) {
        memset(r.slots, 0xff, r.slot_count * sizeof *r.slots);
        make_all(&r, events);
    }
    free(r.tensors);
    free(r.parked);
    free(r.slots);
    if (r.failed) {
        dts_requests_free(out);
    }
    return r.failed ? DTS_NOMEM : DTS_OK;
}

void dts_requests_free(dts_requests *requests) {
    free(requests->items);
    *requests = (dts_requests){0};
}
