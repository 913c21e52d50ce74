/* The hold model (D. W. Jones, "An empirical comparison of priority-queue and event-set implementations",
 * Communications of the ACM 29(4), 1986): a queue of constant size whose earliest event is taken out and put back at a
 * later time. The increments are exponential, the most common choice there. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"
#include "engine/queue.h"

enum {
    INCREMENTS = 4096, /* drawn beforehand: the logarithm must not be part of the measurement */
    ROUNDS = 8,
    HOLDS = 1000000, /* in one round: long enough that filling the caches again does not count */
};

/* The other side: a binary heap as a textbook has it, of events as one would first write them down. */
typedef struct plain_event {
    dts_time time;
    int32_t priority;
    uint32_t task;
    uint64_t sequence;
} plain_event;

typedef struct plain_queue {
    plain_event *events;
    size_t count;
} plain_queue;

static bool plain_before(const plain_event *a, const plain_event *b) {
    if (a->time != b->time) {
        return a->time < b->time;
    }
    if (a->priority != b->priority) {
        return a->priority < b->priority;
    }
    return a->sequence < b->sequence;
}

static void plain_push(plain_queue *queue, plain_event event) {
    size_t i = queue->count++;
    while (i > 0 && plain_before(&event, &queue->events[(i - 1) / 2])) {
        queue->events[i] = queue->events[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    queue->events[i] = event;
}

static plain_event plain_pop(plain_queue *queue) {
    plain_event least = queue->events[0];
    plain_event last = queue->events[--queue->count];
    size_t i = 0;
    for (size_t child = 1; child < queue->count; child = 2 * i + 1) {
        if (child + 1 < queue->count && plain_before(&queue->events[child + 1], &queue->events[child])) {
            child++;
        }
        if (!plain_before(&queue->events[child], &last)) {
            break;
        }
        queue->events[i] = queue->events[child];
        i = child;
    }
    queue->events[i] = last;
    return least;
}

/* Holds; returns a number that depends on the order of the events. */
static uint64_t hold_engine(dts_queue *queue, const dts_time *increments, uint32_t *sequence) {
    uint64_t sum = 0;
    for (size_t i = 0; i < HOLDS; i++) {
        dts_event event = dts_queue_pop(queue);
        sum = sum * 31 + (uint64_t)event.time;
        event.time += increments[i % INCREMENTS];
        event.order = dts_event_order(0, (*sequence)++);
        dts_queue_push(queue, event);
    }
    return sum;
}

static uint64_t hold_plain(plain_queue *queue, const dts_time *increments, uint64_t *sequence) {
    uint64_t sum = 0;
    for (size_t i = 0; i < HOLDS; i++) {
        plain_event event = plain_pop(queue);
        sum = sum * 31 + (uint64_t)event.time;
        event.time += increments[i % INCREMENTS];
        event.sequence = (*sequence)++;
        plain_push(queue, event);
    }
    return sum;
}

/* Times of the first events, and how far an event is put back: mean 1 us, in ps. */
static dts_time draw(uint64_t *state) {
    return (dts_time)(-log((bench_random(state) + 1.0) / 4294967297.0) * 1e6);
}

/* Both queues hold in turn, so that what else the machine does meets both; the fastest round of each counts. */
static bool measure(dts_queue *queue, plain_queue *plain, const dts_time *increments, bench_hold_result *result) {
    double engine_s = INFINITY;
    double plain_s = INFINITY;
    uint32_t sequence = (uint32_t)result->pending;
    uint64_t plain_sequence = result->pending;
    bool same = true;
    for (int round = 0; round < ROUNDS; round++) {
        double before = bench_cpu_s();
        uint64_t sum = hold_engine(queue, increments, &sequence);
        double between = bench_cpu_s();
        same &= sum == hold_plain(plain, increments, &plain_sequence);
        double after = bench_cpu_s();
        engine_s = fmin(engine_s, between - before);
        plain_s = fmin(plain_s, after - between);
    }
    result->engine_per_s = HOLDS / engine_s;
    result->textbook_per_s = HOLDS / plain_s;
    return same;
}

bool bench_hold(size_t pending, bench_hold_result *result) {
    *result = (bench_hold_result){.pending = pending};
    dts_queue queue;
    plain_queue plain = {malloc(pending * sizeof(plain_event)), 0};
    dts_time increments[INCREMENTS];
    bool good = dts_queue_init(&queue, pending) && plain.events != NULL;
    uint64_t state = 1;
    for (size_t i = 0; good && i < pending; i++) {
        dts_time time = draw(&state);
        dts_queue_push(&queue, (dts_event){time, dts_event_order(0, (uint32_t)i)});
        plain_push(&plain, (plain_event){.time = time, .sequence = i});
    }
    for (size_t i = 0; i < INCREMENTS; i++) {
        increments[i] = draw(&state);
    }
    good = good && measure(&queue, &plain, increments, result);
    dts_queue_free(&queue);
    free(plain.events);
    return good;
}
