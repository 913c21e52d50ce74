/* The event queue: a 4-ary heap of 16-byte events, in the order (time, priority, sequence).
 *
 * An event is nothing but its place in that order: the time, and one word with the priority in its upper and the
 * sequence number in its lower half. The sequence number doubles as the handle by which the owner finds what the event
 * is about; in a simulation it is the number of the task, so that ties go to the task that was added first.
 *
 * Why it is fast:
 * - Four children of 16 bytes fill one cache line, and the storage is aligned so that they never straddle two.
 * - The earliest of four is chosen without a branch.
 * - Free slots hold an event later than all others, so that a group of four can always be compared whole.
 * - A pop leaves a hole at the root. In a simulation the end of one task starts the next one, so that a push mostly
 *   follows; it fills the hole and saves one of two trips through the heap.
 * The capacity is reserved up front: neither push nor pop allocates. */
#ifndef DTS_ENGINE_QUEUE_H
#define DTS_ENGINE_QUEUE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

typedef struct dts_event {
    dts_time time; /* at least 0 */
    uint64_t order;
} dts_event;

/* Later than all others; what an empty queue answers. No event may be pushed with this value. */
#define DTS_EVENT_NEVER ((dts_event){DTS_TIME_MAX, UINT64_MAX})

typedef struct dts_queue {
    dts_event *slots; /* the root is slots[DTS_QUEUE_ROOT]: groups of four children start at multiples of 64 bytes */
    size_t last;      /* index of the last used slot; DTS_QUEUE_ROOT - 1 when empty */
    size_t capacity;  /* events that fit */
    bool hole;        /* the root was popped and not yet replaced */
} dts_queue;

/* The slot of the root. The children of slot i are 4(i - 3) + 4 … + 7, its parent is i / 4 + 2. */
enum { DTS_QUEUE_ROOT = 3 };

/* An empty queue with room for capacity events. False: memory ran out. */
bool dts_queue_init(dts_queue *queue, size_t capacity);
void dts_queue_free(dts_queue *queue);

/* The lower priority first (it may be negative), then the lower sequence number. */
static inline uint64_t dts_event_order(int32_t priority, uint32_t sequence) {
    return (uint64_t)((uint32_t)priority ^ UINT32_C(0x80000000)) << 32 | sequence;
}

static inline uint32_t dts_event_sequence(dts_event event) {
    return (uint32_t)event.order;
}

/* Time and order as one number: two machine instructions compare it, without a branch. */
__extension__ typedef unsigned __int128 dts_event_key;

/* For times of at least 0, as all simulated times are. */
static inline dts_event_key dts_event_as_key(dts_event event) {
    return (dts_event_key)(uint64_t)event.time << 64 | event.order;
}

static inline bool dts_event_before(dts_event a, dts_event b) {
    return dts_event_as_key(a) < dts_event_as_key(b);
}

static inline size_t dts_queue_size(const dts_queue *queue) {
    return queue->last - (DTS_QUEUE_ROOT - 1) - (queue->hole ? 1 : 0);
}

/* The slot of the earliest of the four events from slot first on: a knockout. The winners of the first round go on as
 * values, so that the second need not fetch them again, and a mask picks the final slot where a branch would be
 * mispredicted every other time. */
static inline size_t dts_queue_earliest_of_four(const dts_event *slots, size_t first) {
    dts_event_key a = dts_event_as_key(slots[first]);
    dts_event_key b = dts_event_as_key(slots[first + 1]);
    dts_event_key c = dts_event_as_key(slots[first + 2]);
    dts_event_key d = dts_event_as_key(slots[first + 3]);
    size_t left = first + (b < a);
    size_t right = first + 2 + (d < c);
    dts_event_key left_key = b < a ? b : a;
    dts_event_key right_key = d < c ? d : c;
    return left ^ ((left ^ right) & -(size_t)(right_key < left_key));
}

/* Moves the free slot hole towards the leaves until event fits into it. */
static inline void dts_queue_sift_down(dts_queue *queue, size_t hole, dts_event event) {
    dts_event *slots = queue->slots;
    size_t last = queue->last;
    size_t child;
    while ((child = 4 * hole - 8) <= last) {
        /* The grandchildren, of which one group comes next. An address behind the end does no harm. */
        for (size_t i = 0; i < 4; i++) {
            __builtin_prefetch(&slots[4 * (child + i) - 8]);
        }
        size_t earliest = dts_queue_earliest_of_four(slots, child);
        if (!dts_event_before(slots[earliest], event)) {
            break;
        }
        slots[hole] = slots[earliest];
        hole = earliest;
    }
    slots[hole] = event;
}

/* Puts the last event into the hole that a pop left at the root. */
static inline void dts_queue_close_hole(dts_queue *queue) {
    dts_event event = queue->slots[queue->last];
    queue->slots[queue->last--] = DTS_EVENT_NEVER;
    queue->hole = false;
    if (queue->last >= DTS_QUEUE_ROOT) {
        dts_queue_sift_down(queue, DTS_QUEUE_ROOT, event);
    }
}

/* The earliest event, or DTS_EVENT_NEVER. */
static inline dts_event dts_queue_top(dts_queue *queue) {
    if (queue->hole) {
        dts_queue_close_hole(queue);
    }
    return queue->slots[DTS_QUEUE_ROOT];
}

/* When the earliest event is, without filling the hole that a pop has left: the root's four children are next. */
static inline dts_time dts_queue_time(const dts_queue *queue) {
    if (!queue->hole) {
        return queue->slots[DTS_QUEUE_ROOT].time;
    }
    bool empty = queue->last <= DTS_QUEUE_ROOT;
    return empty ? DTS_TIME_MAX : queue->slots[dts_queue_earliest_of_four(queue->slots, DTS_QUEUE_ROOT + 1)].time;
}

/* Removes the earliest event; the queue must not be empty. */
static inline dts_event dts_queue_pop(dts_queue *queue) {
    dts_event event = dts_queue_top(queue);
    queue->hole = true;
    return event;
}

static inline void dts_queue_push(dts_queue *queue, dts_event event) {
    if (queue->hole) {
        queue->hole = false;
        dts_queue_sift_down(queue, DTS_QUEUE_ROOT, event);
        return;
    }
    assert(dts_queue_size(queue) < queue->capacity);
    dts_event *slots = queue->slots;
    size_t hole = ++queue->last;
    while (hole > DTS_QUEUE_ROOT) {
        size_t parent = hole / 4 + 2;
        if (!dts_event_before(event, slots[parent])) {
            break;
        }
        slots[hole] = slots[parent];
        hole = parent;
    }
    slots[hole] = event;
}

#endif
