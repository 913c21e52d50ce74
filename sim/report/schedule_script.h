/* The part of a page of schedules that can be stepped through (schedule_html.c). */
#ifndef DTS_REPORT_SCHEDULE_SCRIPT_H
#define DTS_REPORT_SCHEDULE_SCRIPT_H

#include "report/html_page.h"
#include "report/schedule_report.h"

/* Around a linked drawing: the controls ahead of it, the script behind it. */
void dts_schedule_lesson_begin(const dts_schedule_report *reports, size_t count, dts_text *out);
void dts_schedule_lesson_end(dts_text *out);

#endif
