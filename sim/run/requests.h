/* What an iteration asks of the caching allocator. */
#ifndef DTS_RUN_REQUESTS_H
#define DTS_RUN_REQUESTS_H

#include "engine/simulate.h"
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

typedef enum dts_request_kind {
    DTS_REQUEST_TAKE,
    DTS_REQUEST_GIVE,
    DTS_REQUEST_GIVE_LATE, /* its block serves again when the host has come past `when` */
    DTS_REQUEST_MAKE       /* a tensor that autograd makes where there is none yet */
} dts_request_kind;

typedef struct dts_request {
    int64_t bytes;    /* TAKE, MAKE */
    dts_time when;    /* TAKE of what is gathered: the host asks; GIVE_LATE */
    dts_id task;      /* TAKE, MAKE: that asks */
    uint32_t place;   /* of the tensor among those that live at once; MAKE: among those that tasks make */
    uint8_t kind;     /* dts_request_kind */
    uint8_t category; /* TAKE, MAKE: dts_memory_category */
    bool behind;      /* TAKE: when the host has issued the task */
} dts_request;

/* Those of one iteration of a device, in their order. At its end all is given back that was taken. What the ledger
 * gives back is what it took: in detail kernel cut_B is 0, and unknown_B always is. */
typedef struct dts_requests {
    dts_request *items;
    size_t count;
    size_t places;
    int64_t cut_B;     /* given back as parts of tensors: of blocks, which give back sums */
    int64_t unknown_B; /* given back, and never taken */
} dts_requests;

/* From what the ledger saw on a device; made: tensors of which tasks make some (made_by). The caller frees *out.
 * DTS_NOMEM: memory ran out, there is nothing to free. */
dts_status dts_requests_make(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                             const dts_memory_events *events, const dts_tensors *made, dts_requests *out);
void dts_requests_free(dts_requests *requests);

#endif
