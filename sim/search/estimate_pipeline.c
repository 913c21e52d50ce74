/* The closed form of a pipeline's length (estimate.c). */
#include <math.h>
#include <string.h>

#include "search/case.h"

/* Of what hops cost a schedule, the ways of the first microbatch there and of the last one back are waited for, and in
 * between as much as the other stages, being less busy than the busiest, have no time for. */
static double latency_s(const dts_case *k, double busiest_s, const dts_case_passes *mean, double all_s) {
    const double ends_s =
        fmin(all_s, 2 * (double)k->plan->flushes * (double)(k->plan->pipeline - 1) * k->frame->send_s);
    const double idle_s = k->microbatches * (busiest_s - mean->forward_s - mean->input_s - mean->weight_s);
    return ends_s + fmax(0, all_s - ends_s - fmax(0, idle_s));
}

/* Orders that are made for their passes are made often: with more stages that costs more than it tells, and the way to
 * the last stage stands for the bubble. */
enum { MADE_STAGES = 16 };

/* Schedules that have no formula for these passes, or one for a rank's span only. */
static bool is_walked(const dts_schedule_method *method, const dts_schedule_shape *shape) {
    if (method->layout == DTS_LAYOUT_BIDIR || method->asynchronous ||
        (method->follows_costs && shape->stages > MADE_STAGES)) {
        return false;
    }
    return method->bubble == NULL || method->bubble_of_span || dts_schedule_bubble_limit(method, shape) != NULL;
}

static dts_schedule_shape shape_of(const dts_case *k, const dts_schedule_method *method, const dts_case_pipeline *p) {
    return (dts_schedule_shape){.stages = (int)k->plan->pipeline,
                                .microbatches = (int)k->plan->microbatches,
                                .chunks = (int)k->frame->chunks,
                                .flushes = (int)k->plan->flushes,
                                .forward = p->mean.forward_s,
                                .backward_input = p->mean.input_s,
                                .backward_weight = p->mean.weight_s,
                                .latency = dts_plan_overlaps_p2p(k->plan, method) ? k->frame->send_s : 0};
}

/* False: its order is not walked. */
static bool pace_of(const dts_case *k, const dts_schedule_method *method, const dts_schedule_shape *shape,
                    const dts_case_pipeline *p, dts_pace *out) {
    const dts_frame *frame = k->frame;
    dts_schedule_shape alone = *shape;
    alone.latency = 0; /* formulas have it apart */
    if (frame->pace == NULL || frame->class_count > DTS_PACE_CLASSES || !is_walked(method, &alone)) {
        return false;
    }
    *out = (dts_pace){.method = method,
                      .stages = shape->stages,
                      .chunks = shape->chunks,
                      .microbatches = shape->microbatches / (shape->flushes > 1 ? shape->flushes : 1),
                      .input_frees = p->input_frees,
                      .latency_s = shape->latency,
                      .class_count = frame->class_count};
    memcpy(out->classes, p->classes, (size_t)frame->class_count * sizeof *p->classes);
    return true;
}

/* As the order takes that is walked; 0: it is not. */
static double walked_s(const dts_case *k, const dts_schedule_method *method, const dts_schedule_shape *shape,
                       const dts_case_pipeline *p) {
    dts_pace pace;
    const int flushes = shape->flushes > 1 ? shape->flushes : 1;
    return pace_of(k, method, shape, p, &pace) ? fmax(0, dts_pace_length_s(k->frame->pace, &pace)) * flushes : 0;
}

const dts_moments *dts_case_made_moments(const dts_case *k, const dts_schedule_method *method,
                                         const dts_case_pipeline *p) {
    if (k->plan->pipeline == 1 || !dts_plan_measures_passes(k->plan, method)) {
        return NULL;
    }
    dts_pace pace;
    const dts_schedule_shape shape = shape_of(k, method, p);
    return pace_of(k, method, &shape, p, &pace) ? dts_pace_moments(k->frame->pace, &pace) : NULL;
}

/* The pipeline's length: the busiest rank all the time, and the bubble of the average rank. */
double dts_case_pipeline_s(const dts_case *k, const dts_schedule_method *method, const dts_case_pipeline *p) {
    const dts_case_passes *mean = &p->mean;
    double stages = (double)k->plan->pipeline;
    double length_s = k->microbatches * p->busiest_s;
    if (k->plan->pipeline == 1) {
        return length_s;
    }
    dts_schedule_shape shape = shape_of(k, method, p);
    const double order_s = walked_s(k, method, &shape, p);
    if (order_s > 0) {
        return fmax(length_s, order_s);
    }
    double fill_s = (double)k->plan->flushes * (stages - 1) * mean->forward_s / (double)k->frame->chunks;
    if (method->bubble == NULL || method->bubble_of_span) {
        const double span_s = method->bubble == NULL ? 0 : dts_schedule_bubble(method, &shape);
        return length_s + fmax(0, fill_s + span_s); /* no rank is busier than the busiest, however long W is */
    }
    const double bubble_s = dts_schedule_bubble(method, &shape);
    shape.latency = 0;
    const double alone_s = dts_schedule_bubble(method, &shape);
    return length_s + fmax(fill_s, alone_s + latency_s(k, p->busiest_s, mean, bubble_s - alone_s));
}
