#include "engine/queue.h"

#include <stdlib.h>

bool dts_queue_init(dts_queue *queue, size_t capacity) {
    *queue = (dts_queue){.last = DTS_QUEUE_ROOT - 1, .capacity = capacity};
    if (capacity > SIZE_MAX / sizeof(dts_event) - 16) {
        return false;
    }
    /* The events, the unused slots before the root, and what completes the last group of four. */
    size_t slots = (DTS_QUEUE_ROOT + capacity + 3) & ~(size_t)3;
    queue->slots = aligned_alloc(64, slots * sizeof(dts_event));
    if (queue->slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < slots; i++) {
        queue->slots[i] = DTS_EVENT_NEVER;
    }
    return true;
}

void dts_queue_free(dts_queue *queue) {
    free(queue->slots);
    *queue = (dts_queue){0};
}
