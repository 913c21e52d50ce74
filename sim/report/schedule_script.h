/* The part of a page of schedules that can be stepped through (schedule_html.c). */
#ifndef DTS_REPORT_SCHEDULE_SCRIPT_H
#define DTS_REPORT_SCHEDULE_SCRIPT_H

#include "report/html_page.h"
#include "report/schedule_report.h"

/* The drawings of all sets, of which one is shown, with the controls ahead of them and the script behind. */
dts_status dts_schedule_lessons(const dts_schedule_set *sets, size_t set_count, size_t shown, size_t count,
                                dts_text *out);

#endif
