/* Schedules without overlap of forward and backward: one microbatch at a time, and GPipe.
 *
 *   naive   bubble = (p-1) m T + 2 m (p-1) c                                        peak = 1
 *   GPipe   bubble = (p-1) T + 2 (p-1) c, backwards in or against the order of the forwards    peak = m
 *
 * with T = tF + tB + tW. [1] Huang et al., GPipe, NeurIPS 2019; the exact range was checked by simulation (tests). */
#include "schedule/order.h"

static dts_status build_naive(const dts_schedule_shape *shape, dts_arena *arena, dts_schedule *out) {
    dts_status status = dts_order_begin(&dts_schedule_naive, shape, arena, out);
    for (int rank = 0; status == DTS_OK && rank < shape->stages; rank++) {
        for (int i = 0; i < shape->microbatches; i++) {
            dts_order_add(out, rank, DTS_OP_FORWARD, 0, i);
            dts_order_add(out, rank, DTS_OP_BACKWARD, 0, i);
        }
    }
    return status;
}

static double naive_bubble(const dts_schedule_shape *shape) {
    double hops = shape->stages - 1;
    return hops * shape->microbatches * (dts_shape_work(shape) + 2 * shape->latency);
}

static dts_status build_gpipe_order(const dts_schedule_method *method, bool reversed, const dts_schedule_shape *shape,
                                    dts_arena *arena, dts_schedule *out) {
    dts_status status = dts_order_begin(method, shape, arena, out);
    int m = shape->microbatches;
    for (int rank = 0; status == DTS_OK && rank < shape->stages; rank++) {
        for (int i = 0; i < m; i++) {
            dts_order_add(out, rank, DTS_OP_FORWARD, 0, i);
        }
        for (int i = 0; i < m; i++) {
            dts_order_add(out, rank, DTS_OP_BACKWARD, 0, reversed ? m - 1 - i : i);
        }
    }
    return status;
}

static dts_status build_gpipe(const dts_schedule_shape *shape, dts_arena *arena, dts_schedule *out) {
    return build_gpipe_order(&dts_schedule_gpipe, false, shape, arena, out);
}

static dts_status build_gpipe_lifo(const dts_schedule_shape *shape, dts_arena *arena, dts_schedule *out) {
    return build_gpipe_order(&dts_schedule_gpipe_lifo, true, shape, arena, out);
}

static double gpipe_bubble(const dts_schedule_shape *shape) {
    return (shape->stages - 1) * (dts_shape_work(shape) + 2 * shape->latency);
}

const dts_schedule_method dts_schedule_naive = {
    .name = "naive",
    .summary = "one microbatch at a time: all stages but one wait",
    .origin = "model parallelism without a pipeline",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .check = dts_shape_check_one_chunk,
    .build = build_naive,
    .bubble = naive_bubble,
    .bubble_formula = "(p-1) m (F+B+W)",
    .latency_formula = "2(p-1) m c",
    .bubble_limit = dts_limit_none,
};

const dts_schedule_method dts_schedule_gpipe = {
    .name = "gpipe",
    .summary = "all forwards, then all backwards",
    .origin = "GPipe (Huang et al. 2019)",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .check = dts_shape_check_one_chunk,
    .build = build_gpipe,
    .bubble = gpipe_bubble,
    .bubble_formula = "(p-1)(F+B+W)",
    .latency_formula = "2(p-1)c",
    .bubble_limit = dts_limit_none,
};

const dts_schedule_method dts_schedule_gpipe_lifo = {
    .name = "gpipe-lifo",
    .summary = "gpipe with the backwards in reverse order",
    .origin = "GPipe (Huang et al. 2019)",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .check = dts_shape_check_one_chunk,
    .build = build_gpipe_lifo,
    .bubble = gpipe_bubble,
    .bubble_formula = "(p-1)(F+B+W)",
    .latency_formula = "2(p-1)c",
    .bubble_limit = dts_limit_none,
};
