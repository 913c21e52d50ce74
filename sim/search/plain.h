/* Plain plans: what everybody would try first. The baselines of a search and the families of advice are plain, so that
 * both call the same plan DDP, FSDP or Megatron's. */
#ifndef DTS_SEARCH_PLAIN_H
#define DTS_SEARCH_PLAIN_H

#include "search/candidate.h"

enum { DTS_PLAIN_VALUES = 3 };

/* An axis of which plain plans have some values only; the others are free, or what a baseline is about. */
typedef struct dts_plain_axis {
    dts_layout_axis axis;
    size_t count;
    int32_t values[DTS_PLAIN_VALUES];
} dts_plain_axis;

extern const dts_plain_axis dts_plain_axes[];
extern const size_t dts_plain_axis_count;

bool dts_candidate_is_plain(const dts_candidate *candidate);

#endif
