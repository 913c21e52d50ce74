/* Breadth-first orders over a loop of chunks: one chunk for all microbatches, then the next.
 *
 *   bubble = (p-1) T / v for m >= p, peak m. Each chunk's backwards are contiguous: one gather and one reduction of its
 *   weights per pass with fully sharded data parallelism.
 *
 * [1] Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023. [2] torch ScheduleLoopedBFS runs the microbatches
 * of the backward in reverse. */
#include "schedule/order.h"

static void write_chunks(dts_schedule *out, int rank, bool reversed) {
    const int m = out->shape.microbatches;
    for (int chunk = 0; chunk < out->shape.chunks; chunk++) {
        for (int i = 0; i < m; i++) {
            dts_order_add(out, rank, DTS_OP_FORWARD, chunk, i);
        }
    }
    for (int chunk = out->shape.chunks - 1; chunk >= 0; chunk--) {
        for (int i = 0; i < m; i++) {
            dts_order_add(out, rank, DTS_OP_BACKWARD, chunk, reversed ? m - 1 - i : i);
        }
    }
}

static void write_looped(dts_schedule *out, int rank) {
    write_chunks(out, rank, true);
}

static void write_fifo(dts_schedule *out, int rank) {
    write_chunks(out, rank, false);
}

static double bubble(const dts_schedule_shape *shape) {
    return (shape->stages - 1) * dts_shape_work(shape) / shape->chunks;
}

const dts_schedule_method dts_schedule_looped_bfs = {
    .name = "looped-bfs",
    .summary = "chunk by chunk over all microbatches",
    .origin = "torch ScheduleLoopedBFS",
    .layout = DTS_LAYOUT_LOOP,
    .default_chunks = 2,
    .check = dts_shape_check,
    .write_rank = write_looped,
    .bubble = bubble,
    .bubble_formula = "(p-1)(F+B+W)/v",
    .bubble_limit = dts_limit_at_least_p,
};

const dts_schedule_method dts_schedule_breadth_first_fifo = {
    .name = "breadth-first-fifo",
    .summary = "looped-bfs with the backwards in order",
    .origin = "Lamy-Poirier 2023",
    .layout = DTS_LAYOUT_LOOP,
    .default_chunks = 2,
    .check = dts_shape_check,
    .write_rank = write_fifo,
    .bubble = bubble,
    .bubble_formula = "(p-1)(F+B+W)/v",
    .bubble_limit = dts_limit_at_least_p,
};
