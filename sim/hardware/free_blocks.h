/* The free blocks of the caching allocator: a set in the order of pool, size and address. */
#ifndef DTS_HARDWARE_FREE_BLOCKS_H
#define DTS_HARDWARE_FREE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTS_NO_BLOCK UINT32_MAX

/* Blocks of different pools never serve the same request. */
typedef struct dts_free_key {
    uint64_t kind; /* pool and size: dts_free_kind */
    int64_t address;
} dts_free_key;

typedef struct dts_free_chunk dts_free_chunk;

/* Zeroed: empty. */
typedef struct dts_free_blocks {
    dts_free_key *keys; /* by block */
    dts_free_chunk **chunks;
    size_t key_capacity, chunk_count, chunk_capacity;
} dts_free_blocks;

/* A block's place in the order, until the set changes. */
typedef struct dts_free_place {
    size_t chunk, index;
} dts_free_place;

/* pool < 256, size_B < 2^56 */
static inline uint64_t dts_free_kind(unsigned pool, int64_t size_B) {
    return (uint64_t)pool << 56 | (uint64_t)size_B;
}

void dts_free_blocks_free(dts_free_blocks *set);
/* Blocks go by numbers, best small ones. false: memory ran out, the set is as before. */
bool dts_free_blocks_add(dts_free_blocks *set, uint32_t id, dts_free_key key);
/* The place of the first block that is not before key. */
dts_free_place dts_free_blocks_find(const dts_free_blocks *set, dts_free_key key);
dts_free_place dts_free_blocks_next(const dts_free_blocks *set, dts_free_place place);
/* The block at a place. DTS_NO_BLOCK: the place is behind the last one. */
uint32_t dts_free_blocks_at(const dts_free_blocks *set, dts_free_place place);
/* Takes out the block at a place, of which there must be one. */
void dts_free_blocks_remove(dts_free_blocks *set, dts_free_place place);

#endif
