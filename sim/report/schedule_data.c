/* Schedules for programs: JSON with the names of the command's contract, and CSV with one row per operation. */
#include <stdio.h>

#include "report/json_tree.h"
#include "report/schedule_report.h"

/* Block by block as in the orders of frameworks: "F0.1", or "F1.0&BW0.1" for what runs as one. */
static void add_blocks(dts_json *json, cJSON *ops, const dts_schedule *schedule, int rank) {
    for (size_t i = 0; i < schedule->op_count[rank];) {
        dts_text block = {0};
        size_t end = i + dts_schedule_block_size(schedule, rank, i);
        for (bool first = true; i < end; i++, first = false) {
            char name[48];
            dts_op_format(schedule, &schedule->ops[rank][i], name, sizeof name);
            dts_text_printf(&block, "%s%s", first ? "" : "&", name);
        }
        dts_json_string(json, ops, NULL, dts_text_string(&block));
        json->failed = json->failed || block.failed;
        dts_text_free(&block);
    }
}

/* One time per block, so that ops, start and end have the same length. */
static void add_times(dts_json *json, cJSON *array, const dts_schedule *schedule, int rank, const double *times) {
    for (size_t i = 0; i < schedule->op_count[rank]; i += dts_schedule_block_size(schedule, rank, i)) {
        dts_json_number(json, array, NULL, times[i]);
    }
}

static void add_report(dts_json *json, cJSON *object, const dts_schedule_report *r) {
    const dts_schedule_shape *s = &r->schedule.shape;
    dts_json_string(json, object, "schedule", r->schedule.name);
    dts_json_integer(json, object, "stages", s->stages);
    dts_json_integer(json, object, "microbatches", s->microbatches);
    dts_json_integer(json, object, "flushes", s->flushes > 1 ? s->flushes : 1);
    dts_json_integer(json, object, "chunks", s->chunks);
    dts_json_number(json, object, "makespan", r->ideal.makespan);
    dts_json_number(json, object, "bubble_fraction", r->ideal.bubble_fraction);
    dts_json_number(json, object, "max_stage_span", r->ideal.max_stage_span);
    cJSON *peak = dts_json_array(json, object, "peak_activation");
    cJSON *idle = dts_json_array(json, object, "idle");
    cJSON *ops = dts_json_array(json, object, "ops");
    cJSON *start = dts_json_array(json, object, "start");
    cJSON *end = dts_json_array(json, object, "end");
    for (int rank = 0; rank < s->stages; rank++) {
        dts_json_number(json, peak, NULL, r->ideal.peak_activation[rank]);
        dts_json_number(json, idle, NULL, r->ideal.idle[rank]);
        add_blocks(json, dts_json_array(json, ops, NULL), &r->schedule, rank);
        add_times(json, dts_json_array(json, start, NULL), &r->schedule, rank, r->ideal.start[rank]);
        add_times(json, dts_json_array(json, end, NULL), &r->schedule, rank, r->ideal.end[rank]);
    }
}

dts_status dts_schedule_json(const dts_schedule_report *reports, size_t count, dts_text *out) {
    dts_json json = {0};
    cJSON *root = dts_json_begin(&json);
    if (count == 1) {
        add_report(&json, root, &reports[0]);
    } else {
        cJSON *all = dts_json_array(&json, root, "schedules");
        for (size_t i = 0; i < count; i++) {
            add_report(&json, dts_json_object(&json, all, NULL), &reports[i]);
        }
    }
    return dts_json_end(&json, out);
}

dts_status dts_schedule_csv(const dts_schedule_report *reports, size_t count, dts_text *out) {
    static const char *const kinds[] = {"F", "B", "W", "BW"};
    dts_text_add(out, "schedule,stage,op,kind,microbatch,chunk,start,end\n");
    for (size_t i = 0; i < count; i++) {
        const dts_schedule *schedule = &reports[i].schedule;
        for (int rank = 0; rank < schedule->shape.stages; rank++) {
            for (size_t j = 0; j < schedule->op_count[rank]; j++) {
                const dts_op *op = &schedule->ops[rank][j];
                char name[48];
                dts_op_format(schedule, op, name, sizeof name);
                dts_text_printf(out, "%s,%d,%s,%s,%u,%u,%.15g,%.15g\n", schedule->name, rank, name, kinds[op->kind],
                                (unsigned)op->microbatch, (unsigned)op->chunk, reports[i].ideal.start[rank][j],
                                reports[i].ideal.end[rank][j]);
            }
        }
    }
    return dts_text_status(out);
}
