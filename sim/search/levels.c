#include "search/levels.h"

#include <string.h>

size_t dts_levels_list(bool drives, int32_t out[DTS_OFFLOAD_LEVELS]) {
    static const int states[] = {0, DTS_OFFLOAD_OPTIMIZER, DTS_OFFLOAD_OPTIMIZER | DTS_OFFLOAD_GRADIENTS,
                                 DTS_OFFLOAD_OPTIMIZER | DTS_OFFLOAD_GRADIENTS | DTS_OFFLOAD_PARAMETERS};
    enum { STATES = sizeof states / sizeof states[0] };
    size_t count = 0;
    for (int i = 1; i < 2 * STATES; i++) { /* the first is nothing at all */
        const int off = states[i % STATES] | (i < STATES ? 0 : DTS_OFFLOAD_ACTIVATIONS);
        for (int some = drives ? 1 : 0; some <= (drives ? off : 0); some++) {
            if ((some & ~off) == 0) {
                out[count++] = dts_offload_level(off, some);
            }
        }
    }
    return count;
}

bool dts_levels_need_shards(int32_t level) {
    return (level & (DTS_OFFLOAD_PARAMETERS | DTS_OFFLOAD_GRADIENTS)) != 0 ||
           dts_offload_target_of(level, DTS_OFFLOAD_OPTIMIZER) == DTS_OFFLOAD_NVME;
}

static int count_on_drives(int32_t level) {
    int count = 0;
    for (int bits = dts_offload_on_drives(level); bits != 0; bits &= bits - 1) {
        count++;
    }
    return count;
}

void dts_levels_sort(int32_t *levels, size_t count) {
    for (size_t i = 1; i < count; i++) {
        const int32_t level = levels[i];
        size_t at = i;
        for (; at > 0 && count_on_drives(levels[at - 1]) > count_on_drives(level); at--) {
            levels[at] = levels[at - 1];
        }
        levels[at] = level;
    }
}

void dts_levels_begin(dts_levels *levels) {
    memset(levels->is_short, 0, sizeof levels->is_short);
    levels->activations_are_short = false;
}

void dts_levels_note_short(dts_levels *levels, int32_t level, bool surely) {
    levels->activations_are_short |= surely && level == DTS_OFFLOAD_ACTIVATIONS;
    levels->is_short[level & DTS_OFFLOAD_ALL] |= (uint16_t)(1U << dts_offload_on_drives(level));
}

static bool leaves_too_much(const dts_levels *levels, int32_t level) {
    return levels->activations_are_short && dts_offload_target_of(level, DTS_OFFLOAD_ACTIVATIONS) == DTS_OFFLOAD_CPU;
}

bool dts_levels_may_pay(const dts_levels *levels, int32_t level) {
    const int off = level & DTS_OFFLOAD_ALL, drives = dts_offload_on_drives(level);
    bool may = drives == 0 || !leaves_too_much(levels, level);
    for (int bit = 1; bit <= drives && may; bit *= 2) {
        const int less = drives & ~bit;
        const int32_t other = dts_offload_level(off, less);
        may = less == drives || (levels->is_short[off] & 1U << less) != 0 || !levels->held[other] ||
              (less != 0 && leaves_too_much(levels, other));
    }
    return may;
}
