/* What helps a plan that does not fit in memory. */
#ifndef DTS_REPORT_CURE_H
#define DTS_REPORT_CURE_H

#include "base/text.h"
#include "run/result.h"

/* How much is missing, what takes most, and the keys of the scenario that make it smaller. */
void dts_report_cure(const dts_result *result, dts_text *out);

#endif
