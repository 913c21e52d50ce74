/* What the first walk tells later ones: of candidates whose outer axes agree, how fast those of each family are at best
 * that seem to fit; of what it passed over, the bound by which it did. Outlines and costs of products need not be made
 * again for what is slower. */
#ifndef DTS_SEARCH_PRUNING_NOTES_H
#define DTS_SEARCH_PRUNING_NOTES_H

#include "search/candidate.h"

enum { DTS_BRANCH_AXES = DTS_AXIS_VIRTUAL_STAGES + 1 };

typedef struct dts_branch dts_branch;

/* Of one pair of tensor and pipeline degrees. */
typedef struct dts_branches {
    dts_branch *items; /* in the order of the walk; sorted after it */
    double *least_s;   /* [branch][family]; INFINITY: none seems to fit */
    size_t count, capacity, least_capacity;
    size_t families;
} dts_branches;

/* Notes a candidate that seems to fit, or the bound of what is passed over; the walk's candidates come branch by
 * branch, or those of twins in turn. */
dts_status dts_branches_add(dts_branches *branches, const dts_candidate *candidate, size_t family, double time_s);
void dts_branches_sort(dts_branches *branches);
/* [family] of the branch to which a candidate belongs; NULL: nothing of it seems to fit. */
const double *dts_branches_find(const dts_branches *branches, const dts_candidate *candidate);
void dts_branches_free(dts_branches *branches);

#endif
