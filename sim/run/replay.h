/* What the caching allocator makes of the tensors of a simulated iteration. */
#ifndef DTS_RUN_REPLAY_H
#define DTS_RUN_REPLAY_H

#include "engine/simulate.h"
#include "hardware/caching_allocator.h"
#include "plan/lower/lower.h"

/* A change of memory. */
typedef struct dts_memory_event {
    dts_time when;
    int64_t bytes;
    dts_id task;
    uint8_t category; /* dts_memory_category */
    bool begins;      /* the change before it, of any device, is of another task, moment or device */
} dts_memory_event;

/* Those of a device, in the order of simulated time. */
typedef struct dts_memory_events {
    dts_memory_event *items;
    size_t count, capacity;
} dts_memory_events;

typedef struct dts_memory_log {
    dts_memory_events *devices; /* [device_count] */
    size_t device_count;
    dts_time when; /* of the last change of all */
    dts_id task, device;
    bool failed; /* memory ran out */
} dts_memory_log;

/* An empty log of so many devices. DTS_NOMEM: memory ran out, there is nothing to free. */
dts_status dts_memory_log_new(size_t devices, dts_memory_log *out);
void dts_memory_log_free(dts_memory_log *log);

/* For dts_observer.memory_changed, with a dts_memory_log as context. */
void dts_memory_log_add(void *context, dts_time now, dts_id device, unsigned category, int64_t bytes, dts_id task);

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
    int iterations;              /* until they did */
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
