/* One --vary: a key of the scenario and the values that it takes. */
#ifndef DTS_SEARCH_AXIS_H
#define DTS_SEARCH_AXIS_H

#include "base/arena.h"
#include "base/diag.h"

typedef struct dts_axis {
    const char *key;     /* dotted */
    const char **values; /* YAML */
    size_t count;        /* at least 1 */
} dts_axis;

/* KEY=V1,V2,…; commas inside brackets, braces and quotes do not separate. A value is a range when it is
 *   A..B     whole numbers from A to B
 *   A..B+S   every S-th
 *   A..B*F   A, A·F, A·F², … up to B
 * Strings live in arena. Errors name the option as option ("--vary"). */
dts_status dts_axis_parse(const char *option, const char *text, dts_arena *arena, dts_axis *out, dts_diag *diag);

/* Values of a list as above without its key. */
dts_status dts_values_parse(const char *option, const char *text, dts_arena *arena, const char ***values, size_t *count,
                            dts_diag *diag);

#endif
