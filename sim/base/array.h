/* Arrays that grow as they are filled, and comparing arrays of numbers. */
#ifndef DTS_BASE_ARRAY_H
#define DTS_BASE_ARRAY_H

#include <stddef.h>

#include "base/arena.h"

/* items (from malloc, or NULL) with room for `wanted` elements of `size` bytes, at least doubled where it grows, and
 * *capacity with it. NULL: memory ran out; then items and *capacity are as before. Assign what comes back:
 *
 *     thing *more = dts_array_room(a->items, &a->capacity, a->count + 1, sizeof *more);
 *     if (more == NULL) {
 *         return DTS_NOMEM;
 *     }
 *     a->items = more; */
void *dts_array_grow(void *items, size_t *capacity, size_t wanted, size_t size);

static inline void *dts_array_room(void *items, size_t *capacity, size_t wanted, size_t size) {
    return wanted <= *capacity && items != NULL ? items : dts_array_grow(items, capacity, wanted, size);
}

/* The same with items in an arena, which keeps the smaller array until it is freed. */
void *dts_arena_grow(dts_arena *arena, const void *items, size_t *capacity, size_t wanted, size_t size);

static inline void *dts_arena_room(dts_arena *arena, void *items, size_t *capacity, size_t wanted, size_t size) {
    return wanted <= *capacity && items != NULL ? items : dts_arena_grow(arena, items, capacity, wanted, size);
}

/* -1, 0 or 1 as for qsort: the first of count numbers that differ decides; all finite. */
int dts_doubles_compare(const double *a, const double *b, size_t count);

#endif
