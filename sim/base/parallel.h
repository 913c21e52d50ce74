/* The same work on many items, on several threads. */
#ifndef DTS_BASE_PARALLEL_H
#define DTS_BASE_PARALLEL_H

#include <stddef.h>

/* Handles item index; runs on any thread, so it writes only what belongs to this item. */
typedef void dts_parallel_work(void *context, size_t index);

/* Calls work for 0 … count - 1, each once, handed out in that order to threads threads (less than 1: one per core), and
 * returns when all are done. When no more threads can be made, those that could do all of it. */
void dts_parallel_for(size_t count, int threads, dts_parallel_work *work, void *context);

#endif
