#include <stdlib.h>
#include <string.h>

#include "search/layouts.h"

dts_status dts_top_new(size_t capacity, dts_top *out) {
    *out = (dts_top){.capacity = capacity, .items = calloc(capacity > 0 ? capacity : 1, sizeof *out->items)};
    return out->items == NULL ? DTS_NOMEM : DTS_OK;
}

void dts_top_free(dts_top *top) {
    free(top->items);
    *top = (dts_top){0};
}

static bool before(double score, const dts_candidate *candidate, const dts_ranked *other) {
    return score < other->score || (score == other->score && dts_candidate_compare(candidate, &other->candidate) < 0);
}

void dts_top_add(dts_top *top, double score, const dts_candidate *candidate, const dts_estimate *estimate) {
    if (top->count == top->capacity && (top->count == 0 || !before(score, candidate, &top->items[top->count - 1]))) {
        return;
    }
    size_t low = 0;
    for (size_t high = top->count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (before(score, candidate, &top->items[middle])) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    size_t kept = top->count < top->capacity ? top->count : top->capacity - 1;
    memmove(&top->items[low + 1], &top->items[low], (kept - low) * sizeof *top->items);
    top->items[low] = (dts_ranked){.score = score, .candidate = *candidate, .estimate = *estimate};
    top->count = kept + 1;
}

/* Both are sorted: from the last ones, so that each is moved once. */
void dts_top_merge(dts_top *into, const dts_top *from) {
    const size_t all = into->count + from->count;
    size_t a = into->count, b = from->count;
    for (size_t at = all; b > 0; at--) {
        const dts_ranked *next = &from->items[b - 1];
        const bool moves = a > 0 && before(next->score, &next->candidate, &into->items[a - 1]);
        const dts_ranked *last = moves ? &into->items[--a] : &from->items[--b];
        if (at <= into->capacity) {
            into->items[at - 1] = *last;
        }
    }
    into->count = all < into->capacity ? all : into->capacity;
}
