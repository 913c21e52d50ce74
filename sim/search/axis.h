/* One --vary: a key of the scenario and the values that it takes; or several keys that change together. */
#ifndef DTS_SEARCH_AXIS_H
#define DTS_SEARCH_AXIS_H

#include "base/arena.h"
#include "base/diag.h"

typedef struct dts_axis {
    const char *key;     /* dotted; joined: "cluster.nodes/cluster.gpus_per_node" */
    const char **values; /* YAML; joined: "4/2" */
    size_t count;        /* at least 1 */
    /* joined keys: each key, and its value of each of values */
    size_t key_count;           /* 0: not joined */
    const char **keys, **parts; /* [key_count], [count][key_count] */
} dts_axis;

/* KEY=V1,V2,…; commas inside brackets, braces and quotes do not separate. A value is a range when it is
 *   A..B     whole numbers from A to B
 *   A..B+S   every S-th
 *   A..B*F   A, A·F, A·F², … up to B
 * Keys joined by slashes change together, and so many slashes are in each of their values, which are no ranges then.
 * Strings live in arena. Errors name the option as option ("--vary"). */
dts_status dts_axis_parse(const char *option, const char *text, dts_arena *arena, dts_axis *out, dts_diag *diag);

/* How many keys change with an axis, and what they are at one of its values. */
size_t dts_axis_keys(const dts_axis *axis);
const char *dts_axis_key(const dts_axis *axis, size_t key);
const char *dts_axis_part(const dts_axis *axis, size_t value, size_t key);

/* Values of a list as above without its key. */
dts_status dts_values_parse(const char *option, const char *text, dts_arena *arena, const char ***out, size_t *count,
                            dts_diag *diag);

#endif
