#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

enum { LEAST = 16 };

void *dts_array_grow(void *items, size_t *capacity, size_t wanted, size_t size) {
    if (wanted > SIZE_MAX / 4 / size || *capacity > SIZE_MAX / 4 / size) {
        return NULL;
    }
    size_t larger = 2 * *capacity > wanted ? 2 * *capacity : wanted;
    larger = larger < LEAST ? LEAST : larger;
    void *grown = realloc(items, larger * size);
    if (grown != NULL) {
        *capacity = larger;
    }
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
