/* The task graph as a table: one line per task. */
#include <inttypes.h>

#include "base/quote.h"
#include "report/fields.h"
#include "report/report.h"

static void add_text(const char *text, dts_text *out) {
    dts_text_add(out, ",");
    dts_text_add_cell(out, text);
}

static void add_number(double value, dts_text *out) {
    char buffer[32];
    dts_report_number(value, "", buffer);
    dts_text_printf(out, ",%s", buffer);
}

dts_status dts_report_graph(const dts_result *result, dts_text *out) {
    dts_text_add(out,
                 "task,name,role,device,streams,microbatch,layer,fixed_s,work_B,flops,waits_for,start_ps,end_ps,"
                 "held_up_by\n");
    for (size_t i = 0; i < result->task_count; i++) {
        const dts_task_row *row = &result->tasks[i];
        dts_text_printf(out, "%zu", i);
        add_text(row->name, out);
        add_text(row->role, out);
        dts_text_printf(out, ",%" PRIu32, row->device);
        add_text(row->streams, out);
        dts_text_printf(out, ",%" PRId32 ",%" PRId32, row->microbatch, row->layer);
        add_number(row->fixed_s, out);
        add_number(row->work_B, out);
        add_number(row->flops, out);
        add_text(row->waits_for, out);
        dts_text_printf(out, ",%" PRId64 ",%" PRId64 ",", row->start, row->end);
        if (row->held_up_by >= 0) {
            dts_text_printf(out, "%" PRId64, row->held_up_by);
        }
        dts_text_add(out, "\n");
    }
    return dts_text_status(out);
}
