/* What of a plan takes its time from files of measured ones (gpu.measured, cluster.measured). */
#ifndef DTS_RUN_MEASURED_SHARE_H
#define DTS_RUN_MEASURED_SHARE_H

#include "run/measure.h"

/* Fills in result->measured_times. warnings, of two: files of which nothing is taken; NULL: none. Needs
 * result->communication. */
dts_status dts_tell_timed(const dts_measured *m, dts_result *result, const char *warnings[2]);

#endif
