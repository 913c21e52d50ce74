/* Schedules without overlap of forward and backward: one microbatch at a time, and GPipe.
 *
 *   naive   bubble = (p-1) m T + 2 m (p-1) c                                        peak = 1
 *   GPipe   bubble = (p-1) T + 2 (p-1) c, backwards in or against the order of the forwards    peak = m
 *
 * with T = tF + tB + tW. [1] Huang et al., GPipe, NeurIPS 2019; the exact range was checked by simulation (tests). */
#include "schedule/order.h"

static void write_naive(dts_schedule *out, int rank) {
    for (int i = 0; i < out->shape.microbatches; i++) {
        dts_order_add(out, rank, DTS_OP_FORWARD, 0, i);
        dts_order_add(out, rank, DTS_OP_BACKWARD, 0, i);
    }
}

static double naive_bubble(const dts_schedule_shape *shape) {
    double hops = shape->stages - 1;
    return hops * shape->microbatches * (dts_shape_work(shape) + 2 * shape->latency);
}

static void write_all(dts_schedule *out, int rank, bool reversed) {
    const int m = out->shape.microbatches;
    for (int i = 0; i < m; i++) {
        dts_order_add(out, rank, DTS_OP_FORWARD, 0, i);
    }
    for (int i = 0; i < m; i++) {
        dts_order_add(out, rank, DTS_OP_BACKWARD, 0, reversed ? m - 1 - i : i);
    }
}

static void write_gpipe(dts_schedule *out, int rank) {
    write_all(out, rank, false);
}

static void write_gpipe_lifo(dts_schedule *out, int rank) {
    write_all(out, rank, true);
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
    .write_rank = write_naive,
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
    .write_rank = write_gpipe,
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
    .write_rank = write_gpipe_lifo,
    .bubble = gpipe_bubble,
    .bubble_formula = "(p-1)(F+B+W)",
    .latency_formula = "2(p-1)c",
    .bubble_limit = dts_limit_none,
};
