#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

typedef struct pool {
    atomic_size_t next;
    size_t count;
    dts_parallel_work *work;
    void *context;
} pool;

static void *serve(void *argument) {
    pool *p = argument;
    for (size_t i = atomic_fetch_add(&p->next, 1); i < p->count; i = atomic_fetch_add(&p->next, 1)) {
        p->work(p->context, i);
    }
    return NULL;
}

/* That are online, at least 1. */
static int cores(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : (cores > MOST_THREADS ? MOST_THREADS : (int)cores);
}

void dts_parallel_for(size_t count, int threads, dts_parallel_work *work, void *context) {
    pool p = {.count = count, .work = work, .context = context};
    atomic_init(&p.next, 0);
    threads = threads < 1 ? cores() : (threads > MOST_THREADS ? MOST_THREADS : threads);
    pthread_t others[MOST_THREADS];
    int started = 0;
    while (started + 1 < threads && (size_t)started + 1 < count &&
           pthread_create(&others[started], NULL, serve, &p) == 0) {
        started++;
    }
    serve(&p);
    for (int i = 0; i < started; i++) {
        pthread_join(others[i], NULL);
    }
}
