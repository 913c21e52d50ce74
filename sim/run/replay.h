/* What the caching allocator makes of the tensors of a simulated iteration. */
#ifndef DTS_RUN_REPLAY_H
#define DTS_RUN_REPLAY_H

#include "hardware/caching_allocator.h"
#include "run/requests.h"

/* A place in the iteration where the host has to do with cudaMalloc and cudaFree. */
typedef struct dts_allocator_stall {
    dts_id task;   /* when it is issued */
    bool behind;   /* not before that, but before what is issued next */
    bool retries;  /* all that is cached is freed: cudaFree waits for the GPU */
    int64_t calls; /* of cudaFree and cudaMalloc */
} dts_allocator_stall;

typedef struct dts_replay {
    int64_t peak_reserved_B;     /* over all iterations */
    int64_t peak_allocated_B;    /* in blocks, as rounded */
    int64_t retries;             /* of an iteration, when they repeat */
    int64_t calls;               /* of it, of cudaFree and cudaMalloc */
    bool out_of_memory;          /* a request failed even after a retry */
    int64_t requested_B;         /* by it */
    int64_t held_B;              /* then in use */
    dts_allocator_stall *stalls; /* of an iteration, when they repeat; malloc'ed */
    size_t stall_count;
} dts_replay;

/* Lets the allocator serve what happened on a device, a GPU of the given stage, iteration after iteration until they
 * are alike. room_B: what cudaMalloc can give. DTS_NOMEM: memory ran out. */
dts_status dts_replay_device(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                             const dts_memory_log *log, dts_id device, int64_t stage, double room_B, dts_replay *out);
void dts_replay_free(dts_replay *replay);

#endif
