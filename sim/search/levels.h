/* Levels of offload: which there are, and which of them only add reads and writes of drives to another one. */
#ifndef DTS_SEARCH_LEVELS_H
#define DTS_SEARCH_LEVELS_H

#include "search/candidate.h"

/* What rests off the GPU: the optimizer's states, then gradients, then parameters as well, each with activations or
 * without. drives: all levels with any of that on drives, else those without. Returns how many. */
size_t dts_levels_list(bool drives, int32_t out[DTS_OFFLOAD_LEVELS]);

/* Do only plans have it that shard their parameters, or gradients? */
bool dts_levels_need_shards(int32_t level);

/* What has less on drives comes first, else all stay in their order. */
void dts_levels_sort(int32_t *levels, size_t count);

/* Of plans that differ in nothing else, asked of and noted in that order. */
typedef struct dts_levels {
    bool held[DTS_OFFLOAD_LEVELS];          /* those that are looked at */
    uint16_t is_short[DTS_OFFLOAD_ALL + 1]; /* [off the GPU] a bit for each part on drives that leaves the host short */
    bool activations_are_short;             /* they alone are more than the host has */
} dts_levels;

/* No level has been noted yet. */
void dts_levels_begin(dts_levels *levels);
/* A level for which the host may have too little memory, or surely has. */
void dts_levels_note_short(dts_levels *levels, int32_t level, bool surely);

/* Can a level be of use beside those that have less of the same on drives? It only adds reads and writes where one of
 * these has enough memory, is slower than what is wanted, or is refused: where it was not noted. It is of no use either
 * where it leaves activations in host memory that has too little for them alone. */
bool dts_levels_may_pay(const dts_levels *levels, int32_t level);

#endif
