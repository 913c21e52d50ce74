/* One forward, one backward: a stage frees an activation before it makes the next.
 *
 *   PipeDream  the same order of a stream that does not end: (F, BW) pairs with an update after each BW. What is drawn
 *              begins with an empty pipeline and drains it once; in between, nobody waits [1, section 3.2].
 *   1F1B    rank r: w = p-1-r forwards, then (F, BW) pairs, then w backwards. Peak min(m, p-r).
 *           bubble = (p-1) T without latency; with hop latency c, when p divides m, it grows by
 *           [2 (p-1)(1 + m/p) - 2] c for p >= 2: the p microbatches
 *           in flight go round together and pay the 2 (p-1) hops there and back once per p microbatches.
 *   eager   w = 2(p-1-r): one forward more in flight per hop hides the latency. Peak min(m, 2(p-r)-1).
 *           bubble = (p-1) T + 2 (p-1) c while c <= T/2: then two microbatches per hop cover the way there and back.
 *
 * [1] Narayanan et al., PipeDream, SOSP 2019 (flush: PipeDream-2BW, ICML 2021; DAPPLE, PPoPP 2021).
 * [2] Zhuang et al., On Optimizing the Communication of Model Parallelism, MLSys 2023 (eager 1F1B); alpa's
 *     OverlapFriendlyPipeDreamSchedule. The latency terms were found by simulation and hold exactly for all shapes
 *     of tests/unit/run/test_closed_forms.c. */
#include "schedule/order.h"

static void write_with_warmup(dts_schedule *out, int rank, int forwards_per_hop) {
    const dts_schedule_shape *shape = &out->shape;
    dts_depth_first rule = {
        .group = shape->microbatches, .warmup = forwards_per_hop * (shape->stages - 1 - rank), .weight_delay = -1};
    dts_order_depth_first(out, rank, &rule);
}

static void write_1f1b(dts_schedule *out, int rank) {
    write_with_warmup(out, rank, 1);
}

static void write_eager(dts_schedule *out, int rank) {
    write_with_warmup(out, rank, 2);
}

static double bubble_1f1b(const dts_schedule_shape *shape) {
    double p = shape->stages;
    double m = shape->microbatches;
    double bubble = (p - 1) * dts_shape_work(shape);
    return shape->stages == 1 ? bubble : bubble + (2 * (p - 1) * (1 + m / p) - 2) * shape->latency;
}

static const char *limit_1f1b(const dts_schedule_shape *shape) {
    if (shape->latency != 0 && shape->microbatches % shape->stages != 0) {
        return "with latency it needs a number of microbatches that is a multiple of the stages";
    }
    return NULL;
}

static double bubble_eager(const dts_schedule_shape *shape) {
    return (shape->stages - 1) * (dts_shape_work(shape) + 2 * shape->latency);
}

static const char *limit_eager(const dts_schedule_shape *shape) {
    return 2 * shape->latency > dts_shape_work(shape) ? "the latency is too long to be hidden" : NULL;
}

const dts_schedule_method dts_schedule_1f1b = {
    .name = "1f1b",
    .summary = "one forward, one backward: at most p activations",
    .origin = "PipeDream-Flush, DAPPLE; Megatron-LM, DeepSpeed",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .check = dts_shape_check_one_chunk,
    .write_rank = write_1f1b,
    .bubble = bubble_1f1b,
    .bubble_formula = "(p-1)(F+B+W)",
    .latency_formula = "[2(p-1)(1+m/p)-2]c",
    .bubble_limit = limit_1f1b,
};

const dts_schedule_method dts_schedule_pipedream = {
    .name = "pipedream",
    .summary = "1f1b without a flush: an update after every backward",
    .origin = "PipeDream (Narayanan et al. 2019)",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .asynchronous = true,
    .check = dts_shape_check_one_chunk,
    .write_rank = write_1f1b,
    .bubble = bubble_1f1b,
    .bubble_formula = "(p-1)(F+B+W), once",
    .latency_formula = "[2(p-1)(1+m/p)-2]c",
    .bubble_limit = limit_1f1b,
};

const dts_schedule_method dts_schedule_eager_1f1b = {
    .name = "eager-1f1b",
    .summary = "1f1b with twice the forwards in flight",
    .origin = "alpa's overlap-friendly 1F1B (Zhuang et al. 2023)",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .check = dts_shape_check_one_chunk,
    .write_rank = write_eager,
    .bubble = bubble_eager,
    .bubble_formula = "(p-1)(F+B+W)",
    .latency_formula = "2(p-1)c",
    .bubble_limit = limit_eager,
};
