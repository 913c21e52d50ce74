/* The caching allocator serves the requests of an iteration (requests.c), again and again.
 *
 *   - Tensors that live the whole iteration come first; gradients that autograd makes come where the first backward
 *     makes them (in every iteration where zero_grad drops them), moments where the first step begins, ahead of what it
 *     holds beside them.
 *   - Buffers of sharded parameters are requested on the stream of their collectives [1], shards of gradients on that
 *     of their reductions [2], all else on one stream.
 * The iteration is repeated until one ends as the one before it did: as much reserved, with the same number of retries
 * and calls. After one without either the next would find the same free blocks and do the same: all that an iteration
 * takes it gives back, and what is free in a segment joins.
 *
 * [1] Zhao et al., "PyTorch FSDP", VLDB 2023, section 3.4.
 * [2] plan/lower/units.c, [6]. */
#include "run/replay.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ITERATIONS = 8 };

typedef struct replayer {
    const dts_plan *plan;
    const dts_task_info *infos;
    dts_caching_allocator *allocator;
    dts_requests requests; /* of an iteration */
    uint32_t *blocks;      /* [requests.places] */
    dts_tensors known;     /* that live the whole iteration */
    uint32_t *born;        /* [known.count] blocks of those that a task makes */
    int64_t known_B[DTS_MEMORY_CATEGORY_COUNT];
    bool apart[DTS_MEMORY_CATEGORY_COUNT]; /* what is known is part of what the ledger counts */
    dts_replay *out;
    dts_allocator_stall *stalls;
    size_t stall_count, stall_capacity;
    bool failed;
} replayer;

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
 * there is no memory for it. A run ends there, so later requests get nothing either. */
static uint32_t serve(replayer *r, int64_t bytes, uint8_t category, dts_id task, bool behind) {
    if (r->out->out_of_memory) {
        return DTS_NO_BLOCK;
    }
    dts_caching_counts was = dts_caching_count(r->allocator);
    uint32_t block = dts_caching_take(r->allocator, bytes, stream_of(category));
    dts_caching_counts is = dts_caching_count(r->allocator);
    int64_t calls = is.mallocs - was.mallocs + is.frees - was.frees;
    if (calls > 0 || is.retries > was.retries) {
        note_stall(r, task, behind, is.retries > was.retries, calls);
    }
    if (block == DTS_NO_BLOCK) {
        r->out->out_of_memory = true;
        r->out->requested_B = bytes;
        r->out->held_B = is.allocated_B;
    }
    return block;
}

static void serve_request(replayer *r, const dts_request *request, bool makes) {
    switch ((dts_request_kind)request->kind) {
        case DTS_REQUEST_TAKE:
            if (request->category == DTS_MEMORY_GATHERED) {
                dts_caching_advance(r->allocator, request->when);
            }
            r->blocks[request->place] = serve(r, request->bytes, request->category, request->task, request->behind);
            break;
        case DTS_REQUEST_GIVE:
        case DTS_REQUEST_GIVE_LATE:
            if (r->blocks[request->place] == DTS_NO_BLOCK) { /* there was no memory for it */
                break;
            }
            if (request->kind == DTS_REQUEST_GIVE) {
                dts_caching_give(r->allocator, r->blocks[request->place]);
            } else {
                dts_caching_give_at(r->allocator, r->blocks[request->place], request->when);
            }
            break;
        case DTS_REQUEST_MAKE:
            if (makes) {
                r->born[request->place] = serve(r, request->bytes, request->category, request->task, false);
            }
            break;
    }
}

/* ---- iterations ------------------------------------------------------------------------------------------------- */

/* What of each category is known tensor by tensor: nothing where that is not part of what the ledger counts. */
static void find_known(replayer *r, const int64_t *static_B) {
    for (size_t i = 0; i < r->known.count; i++) {
        r->known_B[r->known.items[i].category] += r->known.items[i].bytes;
    }
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        r->apart[c] = r->known_B[c] <= static_B[c];
        r->known_B[c] = r->apart[c] ? r->known_B[c] : 0;
    }
}

/* Tensors that live the whole iteration: those that are there before the first, or the moments of its step. What is not
 * known one by one is one tensor of its category. */
static void set_up(replayer *r, const int64_t *static_B, bool by_step) {
    for (unsigned c = 0; c < DTS_MEMORY_CATEGORY_COUNT; c++) {
        for (size_t i = 0; r->apart[c] && i < r->known.count; i++) {
            const dts_tensor *t = &r->known.items[i];
            if (t->category == c && t->by_step == by_step && t->made_by == DTS_NO_ID) {
                serve(r, t->bytes, (uint8_t)c, DTS_NO_ID, false);
            }
        }
        const int64_t rest_B = static_B[c] - r->known_B[c];
        if (rest_B > 0 && !by_step) {
            serve(r, rest_B, (uint8_t)c, DTS_NO_ID, false);
        }
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

/* Does an optimizer's step ask for it? */
static bool of_step(const replayer *r, const dts_request *request) {
    return request->kind == DTS_REQUEST_TAKE && request->category == DTS_MEMORY_TEMPORARY &&
           r->infos[request->task].role == DTS_ROLE_OPTIMIZER;
}

static void iterate(replayer *r, const int64_t *static_B, bool makes, bool first) {
    for (size_t i = 0; i < r->requests.count; i++) {
        if (first && of_step(r, &r->requests.items[i])) {
            set_up(r, static_B, true);
            first = false;
        }
        serve_request(r, &r->requests.items[i], makes);
    }
    dts_caching_advance(r->allocator, DTS_TIME_MAX); /* the host reads the loss */
    if (first) {
        set_up(r, static_B, true);
    }
}

static void repeat(replayer *r, const int64_t *static_B) {
    const bool drops = r->plan->job.stack->zero_grad_to_none;
    dts_caching_counts last = {.retries = -1};
    int64_t retries = -1, calls = -1;
    bool settled = false;
    set_up(r, static_B, false);
    for (int i = 0; i < MOST_ITERATIONS && !settled && !r->failed && !r->out->out_of_memory; i++) {
        r->stall_count = 0;
        dts_caching_counts was = dts_caching_count(r->allocator);
        iterate(r, static_B, drops || i == 0, i == 0);
        if (drops) {
            drop_gradients(r);
        }
        dts_caching_counts is = dts_caching_count(r->allocator);
        r->out->retries = is.retries - was.retries;
        r->out->calls = is.mallocs - was.mallocs + is.frees - was.frees;
        const bool none = r->out->retries == 0 && r->out->calls == 0;
        settled = i > 0 &&
                  (none || (is.reserved_B == last.reserved_B && r->out->retries == retries && r->out->calls == calls));
        last = is;
        retries = r->out->retries;
        calls = r->out->calls;
    }
}

dts_status dts_replay_device(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                             const dts_memory_log *log, dts_id device, int64_t stage, double room_B, dts_replay *out) {
    *out = (dts_replay){0};
    if (log->failed) {
        return DTS_NOMEM;
    }
    const dts_stack *stack = plan->job.stack;
    const dts_caching_rules rules = {.round_B = (int64_t)stack->allocator_round_B,
                                     .capacity_B = (int64_t)room_B,
                                     .expandable = stack->allocator_expandable};
    replayer r = {.plan = plan, .infos = lowered->infos, .allocator = dts_caching_new(&rules), .out = out};
    r.known = lowered->tensors != NULL ? lowered->tensors[stage] : (dts_tensors){0};
    const int64_t *static_B = dts_simulation_peak(simulation, device)->final_bytes;
    find_known(&r, static_B);
    const dts_tensors none = {0};
    const dts_status status = dts_requests_make(plan, lowered, simulation, &log->devices[device],
                                                r.apart[DTS_MEMORY_GRADIENTS] ? &r.known : &none, &r.requests);
    r.born = malloc((r.known.count + 1) * sizeof *r.born);
    r.blocks = malloc((r.requests.places + 1) * sizeof *r.blocks);
    r.failed = status != DTS_OK || r.allocator == NULL || r.born == NULL || r.blocks == NULL;
    if (!r.failed) {
        memset(r.born, 0xff, (r.known.count + 1) * sizeof *r.born);
        repeat(&r, static_B);
        dts_caching_counts counts = dts_caching_count(r.allocator);
        out->peak_reserved_B = counts.peak_reserved_B;
        out->peak_allocated_B = counts.peak_allocated_B;
        out->stalls = r.stalls;
        out->stall_count = r.stall_count;
        r.failed |= dts_caching_failed(r.allocator);
    }
    dts_caching_free(r.allocator);
    dts_requests_free(&r.requests);
    free(r.blocks);
    free(r.born);
    return r.failed ? DTS_NOMEM : DTS_OK;
}

void dts_replay_free(dts_replay *replay) {
    free(replay->stalls);
    *replay = (dts_replay){0};
}
