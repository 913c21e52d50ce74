/* Plans that train in fp32 though half precision was asked for. */
#ifndef DTS_RUN_FP32_FALLBACK_H
#define DTS_RUN_FP32_FALLBACK_H

#include "plan/plan.h"

/* What the stack leaves wide and what to do, as a warning in the arena; NULL: it does as asked. */
const char *dts_warn_of_wide(const dts_plan *plan, dts_arena *arena);

#endif
