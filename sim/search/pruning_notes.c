#include "search/pruning_notes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct dts_branch {
    int32_t value[DTS_BRANCH_AXES];
    size_t at; /* of its first family in least_s */
};

static int by_values(const void *a, const void *b) {
    return memcmp(a, b, sizeof(int32_t[DTS_BRANCH_AXES]));
}

static dts_branch *add_branch(dts_branches *b, const dts_candidate *candidate) {
    dts_branch *items = dts_array_room(b->items, &b->capacity, b->count + 1, sizeof *items);
    b->items = items == NULL ? b->items : items;
    double *least_s = dts_array_room(b->least_s, &b->least_capacity, (b->count + 1) * b->families, sizeof *b->least_s);
    b->least_s = least_s == NULL ? b->least_s : least_s;
    if (items == NULL || least_s == NULL) {
        return NULL;
    }
    dts_branch *branch = &items[b->count];
    memcpy(branch->value, candidate->value, sizeof branch->value);
    branch->at = b->count++ * b->families;
    for (size_t i = 0; i < b->families; i++) {
        least_s[branch->at + i] = INFINITY;
    }
    return branch;
}

dts_status dts_branches_add(dts_branches *b, const dts_candidate *candidate, size_t family, double time_s) {
    enum { TWINS = 2 };
    dts_branch *branch = NULL;
    for (size_t back = 1; back <= TWINS && back <= b->count && branch == NULL; back++) {
        dts_branch *before = &b->items[b->count - back];
        branch = by_values(before->value, candidate->value) == 0 ? before : NULL;
    }
    branch = branch == NULL ? add_branch(b, candidate) : branch;
    if (branch == NULL) {
        return DTS_NOMEM;
    }
    double *least_s = &b->least_s[branch->at + family];
    *least_s = fmin(*least_s, time_s);
    return DTS_OK;
}

void dts_branches_sort(dts_branches *b) {
    if (b->count > 0) { /* without any there is no array */
        qsort(b->items, b->count, sizeof *b->items, by_values);
    }
}

const double *dts_branches_find(const dts_branches *b, const dts_candidate *candidate) {
    const dts_branch *branch =
        b->count == 0 ? NULL : bsearch(candidate->value, b->items, b->count, sizeof *b->items, by_values);
    return branch == NULL ? NULL : &b->least_s[branch->at];
}

void dts_branches_free(dts_branches *b) {
    free(b->items);
    free(b->least_s);
    *b = (dts_branches){0};
}
