/* PyTorch's caching allocator.
 *
 * Frameworks keep what they free, because cudaFree waits for the GPU. What they hold (reserved) is therefore more than
 * what tensors need (allocated), by how sizes fit into each other [1]:
 *   size      a request is rounded up to a multiple of 512 B
 *   pools     requests up to 1 MiB are small, all others large; a block serves its own pool and stream only
 *   segment   what is asked of cudaMalloc: 2 MiB for small ones; 20 MiB for less than 10 MiB; else the size rounded up
 *             to 2 MiB
 *   take      the smallest free block that is large enough; of equal ones that with the lowest address
 *   split     the rest of a block becomes a free block where it is at least 512 B (small pool), or more than 1 MiB
 *   give      a block joins its free neighbours in the segment
 *   streams   a block that another stream uses, too, serves again when that has come past its last use (record_stream)
 *   retry     when cudaMalloc fails, all streams are waited for, all segments without a block in use are freed, and it
 *             is tried once more
 * With expandable segments [2] each pool of a stream has one range of addresses, backed by pages of 2 MiB (small) or
 * 20 MiB. Free blocks in it are split down to 512 B. A request that finds no block extends the lowest free one that
 * pages without memory follow; one at the end, which can grow, is taken last. A retry gives back the pages that are
 * wholly free.
 *
 * [1] PyTorch, c10/cuda/CUDACachingAllocator.cpp, the comment at its head and the constants below; documentation, "CUDA
 *     semantics", section "Memory management".
 * [2] The same file, "Note [Expandable Segments]". */
#include "hardware/caching_allocator.h"
#include "base/array.h"

#include <stdlib.h>

static const int64_t MIB = 1 << 20;
static const int64_t LARGEST_SMALL_B = 1 << 20;   /* requests above are large [1] */
static const int64_t SMALL_SEGMENT_B = 2 << 20;   /* [1] */
static const int64_t MEDIUM_SEGMENT_B = 20 << 20; /* [1] */
static const int64_t LEAST_OWN_B = 10 << 20;      /* requests from here on get a segment of their own size [1] */
static const int64_t LARGE_ROUND_B = 2 << 20;     /* [1] */
static const int64_t LEAST_SPLIT_B = 512;         /* [1] */
static const int64_t RANGE_B = INT64_C(20) << 46; /* of addresses, for one expandable segment: whole pages */

typedef struct block {
    int64_t address, size_B;
    uint32_t previous, next; /* neighbours in the segment */
    unsigned stream;
    bool small, used, mapped;
} block;

/* An expandable segment: its lowest block. */
typedef struct range {
    unsigned stream;
    bool small;
    uint32_t first;
} range;

/* Given back, and still used by another stream. */
typedef struct late {
    uint32_t block;
    int64_t until;
} late;

struct dts_caching_allocator {
    dts_caching_rules rules;
    dts_caching_counts counts;
    block *blocks;
    size_t block_count, block_capacity;
    uint32_t spare;       /* blocks that are no more, chained by next */
    dts_free_blocks free; /* of all pools */
    range *ranges;
    size_t range_count;
    late *lates;
    size_t late_count, late_capacity;
    int64_t next_address;
    bool failed;
};

dts_caching_allocator *dts_caching_new(const dts_caching_rules *rules) {
    dts_caching_allocator *a = calloc(1, sizeof *a);
    if (a != NULL) {
        a->rules = *rules;
        a->spare = DTS_NO_BLOCK;
    }
    return a;
}

void dts_caching_free(dts_caching_allocator *a) {
    if (a != NULL) {
        dts_free_blocks_free(&a->free);
        free(a->ranges);
        free(a->lates);
        free(a->blocks);
        free(a);
    }
}

/* ---- tables ----------------------------------------------------------------------------------------------------- */

static uint32_t block_new(dts_caching_allocator *a, const block *like) {
    uint32_t id = a->spare;
    if (id != DTS_NO_BLOCK) {
        a->spare = a->blocks[id].next;
        a->blocks[id] = *like;
        return id;
    }
    block *blocks = dts_array_room(a->blocks, &a->block_capacity, a->block_count + 1, sizeof *blocks);
    if (blocks == NULL) {
        a->failed = true;
        return DTS_NO_BLOCK;
    }
    a->blocks = blocks;
    a->blocks[a->block_count] = *like;
    return (uint32_t)a->block_count++;
}

static void block_drop(dts_caching_allocator *a, uint32_t id) {
    a->blocks[id].used = true; /* that is, not free */
    a->blocks[id].next = a->spare;
    a->spare = id;
}

static bool is_free(const dts_caching_allocator *a, uint32_t id) {
    return id != DTS_NO_BLOCK && !a->blocks[id].used && a->blocks[id].mapped;
}

/* Each stream has a pool of large blocks and one of small ones. */
static unsigned pool_of(unsigned stream, bool small) {
    return 2 * stream + small;
}

static dts_free_key pool_key(const dts_caching_allocator *a, uint32_t id) {
    const block *b = &a->blocks[id];
    return (dts_free_key){.kind = dts_free_kind(pool_of(b->stream, b->small), b->size_B), .address = b->address};
}

static void pool_add(dts_caching_allocator *a, uint32_t id) {
    a->failed |= !dts_free_blocks_add(&a->free, id, pool_key(a, id));
}

static void pool_remove(dts_caching_allocator *a, uint32_t id) {
    const dts_free_place place = dts_free_blocks_find(&a->free, pool_key(a, id));
    if (dts_free_blocks_at(&a->free, place) == id) {
        dts_free_blocks_remove(&a->free, place);
    }
}

/* ---- blocks of a segment ---------------------------------------------------------------------------------------- */

/* The upper part of a block, from size_B on, becomes a block of its own, of the same kind and in no pool. */
static uint32_t cut(dts_caching_allocator *a, uint32_t id, int64_t size_B) {
    block upper = a->blocks[id];
    upper.address += size_B;
    upper.size_B -= size_B;
    upper.previous = id;
    uint32_t made = block_new(a, &upper);
    if (made != DTS_NO_BLOCK) {
        a->blocks[id].size_B = size_B;
        a->blocks[id].next = made;
        if (upper.next != DTS_NO_BLOCK) {
            a->blocks[upper.next].previous = made;
        }
    }
    return made;
}

/* A block swallows the one above it. */
static void join(dts_caching_allocator *a, uint32_t id) {
    uint32_t upper = a->blocks[id].next;
    a->blocks[id].size_B += a->blocks[upper].size_B;
    a->blocks[id].next = a->blocks[upper].next;
    if (a->blocks[id].next != DTS_NO_BLOCK) {
        a->blocks[a->blocks[id].next].previous = id;
    }
    block_drop(a, upper);
}

/* A block that is in no pool becomes free; returns the one that it is now part of. */
static uint32_t set_free(dts_caching_allocator *a, uint32_t id) {
    a->blocks[id].used = false;
    if (is_free(a, a->blocks[id].next)) {
        pool_remove(a, a->blocks[id].next);
        join(a, id);
    }
    if (is_free(a, a->blocks[id].previous)) {
        id = a->blocks[id].previous;
        pool_remove(a, id);
        join(a, id);
    }
    pool_add(a, id);
    return id;
}

/* ---- cudaMalloc ------------------------------------------------------------------------------------------------- */

static bool reserve(dts_caching_allocator *a, int64_t bytes) {
    if (bytes > a->rules.capacity_B - a->counts.reserved_B) {
        return false;
    }
    a->counts.reserved_B += bytes;
    if (a->counts.reserved_B > a->counts.peak_reserved_B) {
        a->counts.peak_reserved_B = a->counts.reserved_B;
    }
    return true;
}

static int64_t round_up(int64_t bytes, int64_t to_B) {
    return (bytes + to_B - 1) / to_B * to_B;
}

static int64_t segment_B(int64_t size_B) {
    if (size_B <= LARGEST_SMALL_B) {
        return SMALL_SEGMENT_B;
    }
    return size_B < LEAST_OWN_B ? MEDIUM_SEGMENT_B : round_up(size_B, LARGE_ROUND_B);
}

/* A new segment, as one free block in no pool. */
static uint32_t add_segment(dts_caching_allocator *a, int64_t size_B, unsigned stream) {
    int64_t bytes = segment_B(size_B);
    if (!reserve(a, bytes)) {
        return DTS_NO_BLOCK;
    }
    block fresh = {.address = a->next_address,
                   .size_B = bytes,
                   .previous = DTS_NO_BLOCK,
                   .next = DTS_NO_BLOCK,
                   .stream = stream,
                   .small = size_B <= LARGEST_SMALL_B,
                   .mapped = true};
    a->next_address += bytes;
    a->counts.mallocs++;
    return block_new(a, &fresh);
}

/* ---- expandable segments ---------------------------------------------------------------------------------------- */

static int64_t page_B(bool small) {
    return small ? SMALL_SEGMENT_B : MEDIUM_SEGMENT_B;
}

static uint32_t range_of(dts_caching_allocator *a, unsigned stream, bool small) {
    for (size_t i = 0; i < a->range_count; i++) {
        if (a->ranges[i].stream == stream && a->ranges[i].small == small) {
            return a->ranges[i].first;
        }
    }
    range *ranges = realloc(a->ranges, (a->range_count + 1) * sizeof *ranges);
    if (ranges == NULL) {
        a->failed = true;
        return DTS_NO_BLOCK;
    }
    a->ranges = ranges;
    block all = {.address = (int64_t)a->range_count * RANGE_B,
                 .size_B = RANGE_B,
                 .previous = DTS_NO_BLOCK,
                 .next = DTS_NO_BLOCK,
                 .stream = stream,
                 .small = small};
    ranges[a->range_count] = (range){.stream = stream, .small = small, .first = block_new(a, &all)};
    return ranges[a->range_count++].first;
}

/* Is there room for size_B from a block on, if all pages had memory? */
static bool has_room(const dts_caching_allocator *a, uint32_t id, int64_t size_B) {
    int64_t room_B = 0;
    for (; id != DTS_NO_BLOCK && !a->blocks[id].used && room_B < size_B; id = a->blocks[id].next) {
        room_B += a->blocks[id].size_B;
    }
    return room_B >= size_B;
}

/* The lowest block from which a request can be met with more pages. */
static uint32_t growable(const dts_caching_allocator *a, uint32_t first, int64_t size_B) {
    for (uint32_t id = first; id != DTS_NO_BLOCK; id = a->blocks[id].next) {
        if (a->blocks[id].mapped) {
            continue;
        }
        uint32_t below = a->blocks[id].previous;
        if (is_free(a, below) && has_room(a, below, size_B)) {
            return below;
        }
        if (has_room(a, id, size_B)) {
            return id;
        }
    }
    return DTS_NO_BLOCK;
}

/* Backs the lowest pages of a block that has none; returns the free block that they are now part of. */
static uint32_t map_pages(dts_caching_allocator *a, uint32_t id, int64_t bytes) {
    int64_t page = page_B(a->blocks[id].small);
    bytes = round_up(bytes, page);
    bytes = bytes < a->blocks[id].size_B ? bytes : a->blocks[id].size_B;
    if (!reserve(a, bytes)) {
        return DTS_NO_BLOCK;
    }
    a->counts.mallocs += bytes / page;
    if (bytes < a->blocks[id].size_B && cut(a, id, bytes) == DTS_NO_BLOCK) {
        return DTS_NO_BLOCK;
    }
    a->blocks[id].mapped = true;
    return set_free(a, id);
}

/* Extends a free block until it holds size_B; it is in no pool then. */
static uint32_t expand(dts_caching_allocator *a, int64_t size_B, unsigned stream) {
    uint32_t first = range_of(a, stream, size_B <= LARGEST_SMALL_B);
    uint32_t id = a->failed ? DTS_NO_BLOCK : growable(a, first, size_B);
    if (id != DTS_NO_BLOCK && !a->blocks[id].mapped) {
        id = map_pages(a, id, size_B);
    }
    while (id != DTS_NO_BLOCK && a->blocks[id].size_B < size_B) {
        id = map_pages(a, a->blocks[id].next, size_B - a->blocks[id].size_B);
    }
    if (id != DTS_NO_BLOCK) {
        pool_remove(a, id);
    }
    return id;
}

/* A block's size, and what it could grow to. */
static int64_t expanded_B(const dts_caching_allocator *a, uint32_t id) {
    uint32_t next = a->blocks[id].next;
    bool grows = next != DTS_NO_BLOCK && !a->blocks[next].mapped;
    return a->blocks[id].size_B + (grows ? a->blocks[next].size_B : 0);
}

/* Takes the pages of a free block that is in no pool, and that has whole ones. */
static void unmap_pages(dts_caching_allocator *a, uint32_t id) {
    int64_t page = page_B(a->blocks[id].small);
    int64_t from = round_up(a->blocks[id].address, page);
    int64_t to = (a->blocks[id].address + a->blocks[id].size_B) / page * page;
    if (from >= to) {
        pool_add(a, id);
        return;
    }
    if (to < a->blocks[id].address + a->blocks[id].size_B) {
        uint32_t upper = cut(a, id, to - a->blocks[id].address);
        if (upper != DTS_NO_BLOCK) {
            pool_add(a, upper);
        }
    }
    if (from > a->blocks[id].address) {
        uint32_t lower = id;
        id = cut(a, lower, from - a->blocks[lower].address);
        pool_add(a, lower);
        if (id == DTS_NO_BLOCK) {
            return;
        }
    }
    a->counts.reserved_B -= to - from;
    a->counts.frees += (to - from) / page;
    a->blocks[id].mapped = false;
    uint32_t next = a->blocks[id].next, previous = a->blocks[id].previous;
    if (next != DTS_NO_BLOCK && !a->blocks[next].mapped) {
        join(a, id);
    }
    if (previous != DTS_NO_BLOCK && !a->blocks[previous].mapped) {
        join(a, previous);
    }
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

/* Gives back all that can be. */
static void release_cached(dts_caching_allocator *a) {
    for (uint32_t id = 0; id < a->block_count; id++) {
        const block *b = &a->blocks[id];
        const bool whole = b->previous == DTS_NO_BLOCK && b->next == DTS_NO_BLOCK;
        if (!is_free(a, id) || !(whole || a->rules.expandable)) {
            continue;
        }
        pool_remove(a, id);
        if (a->rules.expandable) {
            unmap_pages(a, id);
        } else {
            a->counts.reserved_B -= b->size_B;
            a->counts.frees++;
            block_drop(a, id);
        }
    }
}

static bool is_of(const dts_caching_allocator *a, uint32_t id, unsigned stream, bool small) {
    return id != DTS_NO_BLOCK && a->blocks[id].stream == stream && a->blocks[id].small == small;
}

/* The best free block, taken out of its pool. */
static uint32_t best_fit(dts_caching_allocator *a, int64_t size_B, unsigned stream) {
    const bool small = size_B <= LARGEST_SMALL_B;
    const dts_free_key least = {.kind = dts_free_kind(pool_of(stream, small), size_B)};
    dts_free_place place = dts_free_blocks_find(&a->free, least);
    uint32_t id = dts_free_blocks_at(&a->free, place);
    if (!is_of(a, id, stream, small)) {
        return DTS_NO_BLOCK;
    }
    while (a->rules.expandable) {
        const dts_free_place next_place = dts_free_blocks_next(&a->free, place);
        const uint32_t next = dts_free_blocks_at(&a->free, next_place);
        if (!is_of(a, next, stream, small) || expanded_B(a, next) >= expanded_B(a, id)) {
            break;
        }
        place = next_place;
        id = next;
    }
    dts_free_blocks_remove(&a->free, place);
    return id;
}

static uint32_t grow(dts_caching_allocator *a, int64_t size_B, unsigned stream) {
    return a->rules.expandable ? expand(a, size_B, stream) : add_segment(a, size_B, stream);
}

uint32_t dts_caching_take(dts_caching_allocator *a, int64_t bytes, unsigned stream) {
    int64_t size_B = round_up(bytes, a->rules.round_B);
    uint32_t id = best_fit(a, size_B, stream);
    if (id == DTS_NO_BLOCK) {
        id = grow(a, size_B, stream);
    }
    if (id == DTS_NO_BLOCK && !a->failed) {
        a->counts.retries++;
        dts_caching_advance(a, INT64_MAX);
        release_cached(a);
        id = grow(a, size_B, stream);
    }
    if (id == DTS_NO_BLOCK) {
        return DTS_NO_BLOCK;
    }
    int64_t rest_B = a->blocks[id].size_B - size_B;
    bool fine = a->blocks[id].small || a->rules.expandable;
    a->blocks[id].used = true;
    if (fine ? rest_B >= LEAST_SPLIT_B : rest_B > MIB) {
        uint32_t upper = cut(a, id, size_B);
        if (upper != DTS_NO_BLOCK) {
            set_free(a, upper);
        }
    }
    a->counts.allocated_B += a->blocks[id].size_B;
    if (a->counts.allocated_B > a->counts.peak_allocated_B) {
        a->counts.peak_allocated_B = a->counts.allocated_B;
    }
    return id;
}

void dts_caching_give(dts_caching_allocator *a, uint32_t id) {
    a->counts.allocated_B -= a->blocks[id].size_B;
    set_free(a, id);
}

void dts_caching_give_at(dts_caching_allocator *a, uint32_t id, int64_t when) {
    late *lates = dts_array_room(a->lates, &a->late_capacity, a->late_count + 1, sizeof *lates);
    if (lates == NULL) {
        a->failed = true;
        return;
    }
    a->lates = lates;
    a->counts.allocated_B -= a->blocks[id].size_B;
    a->lates[a->late_count++] = (late){.block = id, .until = when};
}

void dts_caching_advance(dts_caching_allocator *a, int64_t now) {
    size_t kept = 0;
    for (size_t i = 0; i < a->late_count; i++) {
        if (a->lates[i].until <= now) {
            set_free(a, a->lates[i].block);
        } else {
            a->lates[kept++] = a->lates[i];
        }
    }
    a->late_count = kept;
}

dts_caching_counts dts_caching_count(const dts_caching_allocator *a) {
    return a->counts;
}

bool dts_caching_failed(const dts_caching_allocator *a) {
    return a->failed;
}
