/* Which inputs of several results differ, the most telling first. */
#ifndef DTS_REPORT_DIFFERENCES_H
#define DTS_REPORT_DIFFERENCES_H

#include "run/result.h"

/* A place in the keys, to begin with {0}. */
typedef struct dts_difference_cursor {
    int rank;
    size_t result, index;
} dts_difference_cursor;

/* The next key with different values: first what the command line says, then the job and its sizes, then what profiles
 * say of hardware, software and model; of these in the order of the first result that has it. NULL: no more.
 * results[]->explanation must be there. */
const char *dts_next_difference(const dts_result *const *results, size_t count, dts_difference_cursor *at);

/* The value of an input; NULL: the result has none. */
const char *dts_input_of(const dts_result *result, const char *key);

#endif
