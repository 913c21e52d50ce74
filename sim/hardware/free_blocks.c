/* A sorted array in chunks. Most sets are a dozen blocks in one chunk, for which nothing is faster; of a million blocks
 * a change moves one chunk at most. A full chunk is split in halves, an empty one goes. */
#include "hardware/free_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { FULL = 256 };

struct dts_free_chunk {
    size_t count; /* 1 to FULL */
    uint32_t ids[FULL];
};

void dts_free_blocks_free(dts_free_blocks *set) {
    for (size_t i = 0; i < set->chunk_count; i++) {
        free(set->chunks[i]);
    }
    free(set->chunks);
    free(set->keys);
    *set = (dts_free_blocks){0};
}

static bool before(const dts_free_blocks *set, uint32_t id, dts_free_key key) {
    const dts_free_key own = set->keys[id];
    return own.kind != key.kind ? own.kind < key.kind : own.address < key.address;
}

/* The first chunk whose last block is not before key, or the last chunk. */
static size_t find_chunk(const dts_free_blocks *set, dts_free_key key) {
    size_t low = 0, high = set->chunk_count - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const dts_free_chunk *chunk = set->chunks[middle];
        if (before(set, chunk->ids[chunk->count - 1], key)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

dts_free_place dts_free_blocks_find(const dts_free_blocks *set, dts_free_key key) {
    if (set->chunk_count == 0) {
        return (dts_free_place){0};
    }
    const size_t found = find_chunk(set, key);
    const dts_free_chunk *chunk = set->chunks[found];
    size_t low = 0, high = chunk->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (before(set, chunk->ids[middle], key)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (dts_free_place){.chunk = found, .index = low};
}

dts_free_place dts_free_blocks_next(const dts_free_blocks *set, dts_free_place place) {
    const bool last = place.index + 1 == set->chunks[place.chunk]->count;
    return last ? (dts_free_place){.chunk = place.chunk + 1}
                : (dts_free_place){.chunk = place.chunk, .index = place.index + 1};
}

uint32_t dts_free_blocks_at(const dts_free_blocks *set, dts_free_place place) {
    const bool there = place.chunk < set->chunk_count && place.index < set->chunks[place.chunk]->count;
    return there ? set->chunks[place.chunk]->ids[place.index] : DTS_NO_BLOCK;
}

/* A new chunk, still empty, at a place among the chunks. NULL: memory ran out. */
static dts_free_chunk *insert_chunk(dts_free_blocks *set, size_t place) {
    dts_free_chunk **chunks = dts_array_room(set->chunks, &set->chunk_capacity, set->chunk_count + 1, sizeof *chunks);
    dts_free_chunk *fresh = chunks != NULL ? malloc(sizeof *fresh) : NULL;
    set->chunks = chunks != NULL ? chunks : set->chunks;
    if (fresh != NULL) {
        memmove(&chunks[place + 1], &chunks[place], (set->chunk_count - place) * sizeof(dts_free_chunk *));
        chunks[place] = fresh;
        fresh->count = 0;
        set->chunk_count++;
    }
    return fresh;
}

/* Makes a place in a full chunk one in a chunk with room. false: memory ran out. */
static bool split(dts_free_blocks *set, dts_free_place *place) {
    dts_free_chunk *upper = insert_chunk(set, place->chunk + 1), *lower = set->chunks[place->chunk];
    if (upper == NULL) {
        return false;
    }
    lower->count = FULL / 2;
    upper->count = FULL - FULL / 2;
    memcpy(upper->ids, lower->ids + lower->count, upper->count * sizeof *upper->ids);
    if (place->index > lower->count) {
        place->index -= lower->count;
        place->chunk++;
    }
    return true;
}

bool dts_free_blocks_add(dts_free_blocks *set, uint32_t id, dts_free_key key) {
    dts_free_key *keys = dts_array_room(set->keys, &set->key_capacity, (size_t)id + 1, sizeof *keys);
    if (keys == NULL) {
        return false;
    }
    set->keys = keys;
    dts_free_place place = dts_free_blocks_find(set, key);
    const bool room = set->chunk_count == 0                     ? insert_chunk(set, 0) != NULL
                      : set->chunks[place.chunk]->count == FULL ? split(set, &place)
                                                                : true;
    if (!room) {
        return false;
    }
    keys[id] = key;
    dts_free_chunk *chunk = set->chunks[place.chunk];
    uint32_t *at = &chunk->ids[place.index];
    memmove(at + 1, at, (chunk->count - place.index) * sizeof *at);
    *at = id;
    chunk->count++;
    return true;
}

void dts_free_blocks_remove(dts_free_blocks *set, dts_free_place place) {
    dts_free_chunk *chunk = set->chunks[place.chunk];
    uint32_t *at = &chunk->ids[place.index];
    chunk->count--;
    memmove(at, at + 1, (chunk->count - place.index) * sizeof *at);
    if (chunk->count == 0) {
        free(chunk);
        set->chunk_count--;
        memmove(&set->chunks[place.chunk], &set->chunks[place.chunk + 1],
                (set->chunk_count - place.chunk) * sizeof(dts_free_chunk *));
    }
}
