/* ZB-V: two chunks per rank laid out as a V, so that the last virtual stage lies on rank 0 and every rank turns its
 * first backward early.
 *
 * Rank r: 2(p-r)-1 forwards of chunk 0; r times (F1, F0); p-r times (F1, B1, W1); the steady round
 * (F0, B0, W0, F1, B1, W1); r times (B0, B1); p-r times (B0, W0); the weight gradients that are left, chunk 1 first.
 *
 *   span beyond m T: 0 when tF = tB = tW and m >= 2p-1; makespan then m T + (p-1) tF / 2. Peak min(m, p).
 *
 * [1] Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024. [2] torch ScheduleZBVZeroBubble: the
 * order is made for at least 2p-1 microbatches and those that do not exist are left out. */
#include "schedule/order.h"

/* One rank's order while it is written: how far each kind has come in each chunk. */
typedef struct writer {
    dts_schedule *out;
    int rank;
    int next[3][2]; /* by dts_op_kind (F, B, W), by chunk */
} writer;

static void put(writer *w, dts_op_kind kind, int chunk) {
    int microbatch = w->next[kind][chunk]++;
    if (microbatch < w->out->shape.microbatches) {
        dts_order_add(w->out, w->rank, kind, chunk, microbatch);
    }
}

static void put_backward(writer *w, int chunk) {
    put(w, DTS_OP_BACKWARD_INPUT, chunk);
    put(w, DTS_OP_BACKWARD_WEIGHT, chunk);
}

static void warm_up(writer *w, int p) {
    for (int i = 0; i < 2 * (p - w->rank) - 1; i++) {
        put(w, DTS_OP_FORWARD, 0);
    }
    for (int i = 0; i < w->rank; i++) {
        put(w, DTS_OP_FORWARD, 1);
        put(w, DTS_OP_FORWARD, 0);
    }
    for (int i = 0; i < p - w->rank; i++) {
        put(w, DTS_OP_FORWARD, 1);
        put_backward(w, 1);
    }
}

static void write_all(writer *w, int p, int microbatches) {
    const int *forwards = w->next[DTS_OP_FORWARD];
    warm_up(w, p);
    while (forwards[1] < forwards[0] || forwards[0] < microbatches) {
        if (forwards[0] < microbatches) {
            put(w, DTS_OP_FORWARD, 0);
        }
        put_backward(w, 0);
        put(w, DTS_OP_FORWARD, 1);
        put_backward(w, 1);
    }
    for (int i = 0; i < w->rank; i++) {
        put(w, DTS_OP_BACKWARD_INPUT, 0);
        put(w, DTS_OP_BACKWARD_INPUT, 1);
    }
    for (int i = 0; i < p - w->rank; i++) {
        put_backward(w, 0);
    }
    for (int chunk = 1; chunk >= 0; chunk--) {
        while (w->next[DTS_OP_BACKWARD_WEIGHT][chunk] < w->next[DTS_OP_BACKWARD_INPUT][chunk]) {
            put(w, DTS_OP_BACKWARD_WEIGHT, chunk);
        }
    }
}

static void write_rank(dts_schedule *out, int rank) {
    const int least = 2 * out->shape.stages - 1;
    writer w = {.out = out, .rank = rank};
    write_all(&w, out->shape.stages, out->shape.microbatches > least ? out->shape.microbatches : least);
}

static double bubble(const dts_schedule_shape *shape) {
    (void)shape;
    return 0;
}

static const char *limit(const dts_schedule_shape *shape) {
    if (shape->forward != shape->backward_input || shape->forward != shape->backward_weight) {
        return "it needs F, B and W to take the same time";
    }
    return dts_limit_at_least_2p(shape);
}

const dts_schedule_method dts_schedule_zbv = {
    .name = "zbv",
    .summary = "two chunks as a V: no bubble in a stage's span",
    .origin = "Qi et al. 2024; torch ScheduleZBVZeroBubble",
    .layout = DTS_LAYOUT_V,
    .default_chunks = 2,
    .splits_backward = true,
    .check = dts_shape_check_two_chunks,
    .write_rank = write_rank,
    .bubble = bubble,
    .bubble_of_span = true,
    .bubble_limit = limit,
};
