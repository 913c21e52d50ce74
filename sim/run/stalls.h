/* The caching allocator of every stage, and what it costs near the GPU's capacity. */
#ifndef DTS_RUN_STALLS_H
#define DTS_RUN_STALLS_H

#include "run/replay.h"

/* Of the ranks that run stage p, the device with the highest peak. */
dts_id dts_fullest_device(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                          int64_t p);

/* Memory of the GPU that is not the allocator's: the CUDA context, communication buffers, library workspaces. */
double dts_context_B(const dts_plan *plan);

/* Replays the fullest device of each stage; *out is malloc'ed, [plan->pipeline], dts_replays_free. */
dts_status dts_replay_stages(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                             const dts_memory_log *log, dts_replay **out);
void dts_replays_free(dts_replay *replays, int64_t stages);

/* What holds up the hosts in the steady state; *out is malloc'ed, NULL: nothing does. */
dts_status dts_replay_stalls(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                             const dts_replay *replays, dts_host_stall **out, size_t *count);

#endif
