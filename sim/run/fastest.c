#include "run/fastest.h"

size_t dts_fastest(const void *plans, size_t count, dts_contender_at *at, bool surely) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        const dts_contender c = at(plans, i);
        if (c.fits && !(surely && c.unserved_gib > 0) &&
            (best == SIZE_MAX || c.tokens_per_s > at(plans, best).tokens_per_s)) {
            best = i;
        }
    }
    return best;
}
