#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 16 };

/* The next capacity; 0: more than memory can hold. */
static size_t larger_than(size_t capacity, size_t wanted, size_t size) {
    if (wanted > SIZE_MAX / 4 / size || capacity > SIZE_MAX / 4 / size) {
        return 0;
    }
    const size_t larger = 2 * capacity > wanted ? 2 * capacity : wanted;
    return larger < LEAST ? LEAST : larger;
}

void *dts_array_grow(void *items, size_t *capacity, size_t wanted, size_t size) {
    const size_t larger = larger_than(*capacity, wanted, size);
    void *grown = larger > 0 ? realloc(items, larger * size) : NULL;
    if (grown != NULL) {
        *capacity = larger;
    }
    return grown;
}

void *dts_arena_grow(dts_arena *arena, const void *items, size_t *capacity, size_t wanted, size_t size) {
    const size_t larger = larger_than(*capacity, wanted, size);
    void *grown = larger > 0 ? dts_arena_array(arena, larger, size) : NULL;
    if (grown != NULL && *capacity > 0) {
        memcpy(grown, items, *capacity * size);
    }
    *capacity = grown != NULL ? larger : *capacity;
    return grown;
}

int dts_doubles_compare(const double *a, const double *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}
