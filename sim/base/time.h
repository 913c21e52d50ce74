/* Simulated time: whole picoseconds, so that sums are exact and runs repeat to the bit.
 * int64_t reaches 106 days; anything longer saturates. */
#ifndef DTS_BASE_TIME_H
#define DTS_BASE_TIME_H

#include <math.h>
#include <stdint.h>

typedef int64_t dts_time; /* picoseconds */

#define DTS_TIME_MAX INT64_MAX
#define DTS_PS_PER_S 1e12

/* Seconds to the nearest picosecond; negative and NaN give 0, too large gives DTS_TIME_MAX. */
static inline dts_time dts_time_from_s(double seconds) {
    double ps = seconds * DTS_PS_PER_S;
    if (!(ps > 0)) {
        return 0;
    }
    if (ps >= 9.2e18) {
        return DTS_TIME_MAX;
    }
    return (dts_time)llround(ps);
}

static inline double dts_time_to_s(dts_time time) {
    return (double)time / DTS_PS_PER_S;
}

#endif
