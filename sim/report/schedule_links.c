/* Inputs of passes, as run/ideal.c lowers them: F(i, s) of F(i, s-1); B(i, s) of B(i, s+1), on the last stage of F(i,
 * s); W(i, s) of B(i, s); s is the virtual stage, i the microbatch. */
#include "report/schedule_links.h"

#include <stdlib.h>

static int direction_of(const dts_schedule *schedule, int chunk) {
    return schedule->layout == DTS_LAYOUT_BIDIR ? chunk : 0;
}

static size_t slot(const dts_schedule_links *links, int direction, int stage, size_t microbatch) {
    return ((size_t)direction * (size_t)links->virtual_stages + (size_t)stage) * links->microbatches + microbatch;
}

dts_status dts_schedule_links_make(const dts_schedule_report *report, dts_schedule_links *out) {
    const dts_schedule *schedule = &report->schedule;
    const dts_schedule_shape *shape = &schedule->shape;
    const size_t directions = schedule->layout == DTS_LAYOUT_BIDIR ? 2 : 1;
    *out =
        (dts_schedule_links){.report = report,
                             .virtual_stages = dts_virtual_stage_count(schedule->layout, shape->stages, shape->chunks),
                             .microbatches = (size_t)shape->microbatches / directions};
    const size_t slots = directions * (size_t)out->virtual_stages * out->microbatches;
    out->at[0] = calloc(slots, sizeof *out->at[0]);
    out->at[1] = calloc(slots, sizeof *out->at[1]);
    if (out->at[0] == NULL || out->at[1] == NULL) {
        dts_schedule_links_free(out);
        return DTS_NOMEM;
    }
    for (int rank = 0; rank < shape->stages; rank++) {
        for (size_t i = 0; i < schedule->op_count[rank]; i++) {
            const dts_op *op = &schedule->ops[rank][i];
            const int stage = dts_virtual_stage(schedule->layout, shape->stages, rank, op->chunk);
            if (op->kind != DTS_OP_BACKWARD_WEIGHT) {
                out->at[op->kind != DTS_OP_FORWARD]
                       [slot(out, direction_of(schedule, op->chunk), stage, op->microbatch)] = i;
            }
        }
    }
    return DTS_OK;
}

void dts_schedule_links_free(dts_schedule_links *links) {
    free(links->at[0]);
    free(links->at[1]);
    *links = (dts_schedule_links){0};
}

/* The one input of an operation by itself. */
static bool find_input(const dts_schedule_links *links, dts_schedule_place place, dts_schedule_place *from) {
    const dts_schedule *schedule = &links->report->schedule;
    const int stages = schedule->shape.stages;
    const dts_op *op = &schedule->ops[place.rank][place.index];
    const int own = dts_virtual_stage(schedule->layout, stages, place.rank, op->chunk);
    const int direction = direction_of(schedule, op->chunk);
    const bool forward = op->kind == DTS_OP_FORWARD, weight = op->kind == DTS_OP_BACKWARD_WEIGHT;
    const bool turns = !forward && !weight && own + 1 == links->virtual_stages;
    const int stage = forward ? own - 1 : weight || turns ? own : own + 1;
    if (stage < 0) {
        return false;
    }
    int chunk = 0;
    dts_virtual_stage_owner(schedule->layout, stages, stage, direction, &from->rank, &chunk);
    from->index = links->at[!forward && !turns][slot(links, direction, stage, op->microbatch)];
    return true;
}

bool dts_schedule_input(const dts_schedule_links *links, dts_schedule_place place, dts_schedule_place *from,
                        double *arrives) {
    const dts_schedule_report *r = links->report;
    size_t first = place.index;
    while (first > 0 && r->schedule.ops[place.rank][first - 1].fused_next) {
        first--;
    }
    const size_t end = first + dts_schedule_block_size(&r->schedule, place.rank, first);
    bool any = false;
    for (size_t i = first; i < end; i++) {
        dts_schedule_place input;
        if (!find_input(links, (dts_schedule_place){place.rank, i}, &input) ||
            (input.rank == place.rank && input.index >= first)) { /* made by the block itself */
            continue;
        }
        const double hop = input.rank != place.rank ? r->schedule.shape.latency : 0;
        const double there = r->ideal.end[input.rank][input.index] + hop;
        if (!any || there > *arrives) {
            *from = input;
            *arrives = there;
            any = true;
        }
    }
    return any;
}

bool dts_schedule_held_by(const dts_schedule_links *links, dts_schedule_place place, dts_schedule_place *by) {
    const dts_schedule_report *r = links->report;
    const double start = r->ideal.start[place.rank][place.index], near = 1e-9 * r->ideal.makespan;
    double arrives = 0;
    const dts_schedule_place before = {place.rank, place.index - 1};
    if (place.index > 0 && (r->schedule.ops[before.rank][before.index].fused_next ||
                            r->ideal.end[before.rank][before.index] >= start - near)) {
        *by = before;
        return true;
    }
    if (start <= near || !dts_schedule_input(links, place, by, &arrives)) {
        return false;
    }
    while (r->schedule.ops[by->rank][by->index].fused_next) {
        by->index++; /* a block hands on what it makes at its end */
    }
    return true;
}
