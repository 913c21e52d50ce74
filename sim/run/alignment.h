/* Dimensions that matrix units read badly, or fused attention not at all. */
#ifndef DTS_RUN_ALIGNMENT_H
#define DTS_RUN_ALIGNMENT_H

#include "plan/plan.h"

/* The dimension whose next aligned size would save most time, as a warning in the arena; NULL: none saves much. */
const char *dts_warn_of_alignment(const dts_plan *plan, dts_arena *arena);

/* A width of heads that fused attention has no kernel for, as a warning in the arena; NULL: none. */
const char *dts_warn_of_heads(const dts_plan *plan, dts_arena *arena);

#endif
