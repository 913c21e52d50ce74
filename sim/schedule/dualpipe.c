/* DualPipe and DualPipeV: two streams of microbatches through every rank, so that the forward of one runs as one block
 * with the backward of another (F&BW) and the communication of each hides behind the other's computation.
 *
 * DualPipe feeds p ranks from both ends (chunk 0 runs down, chunk 1 up; every rank holds two full stages); the upper
 * half of the ranks mirrors the lower half. DualPipeV folds the same order: P ranks hold 2P stages as a V. With
 * P = p/2 "half ranks" h, M = m/2 microbatches per direction (DualPipeV: P = p, M = m), a is the side the rank is
 * nearer to, b the other:
 *
 *   1. 2(P-h-1)    Fa
 *   2. h+1         Fa Fb
 *   3. P-h-1       Bb Wb Fb
 *   4. M-2P+h+1    Fa&BWb, Fb&BWa       (the innermost rank leaves the very first pair unfused)
 *   5. P-h-1       BWb, Fb&BWa
 *   6. h+1         BWb BWa, from the middle on as B with W put off
 *   7. P-h-1       W, Ba
 *   8. h+1         W                    (weight gradients that were put off leave first in, first out)
 *
 *   bubble = (P-1)(F&B + BW - 3W), exact for tF = tB, where a block costs the sum of its parts (DualPipeV: half of it)
 *   peak p + 1 (DualPipeV: p + 1/2)
 *
 * [1] DeepSeek-V3 technical report, 2024, and deepseek-ai/DualPipe. */
#include <stdio.h>

#include "schedule/order.h"

/* One rank's order while it is written. Phase 0 is the side the rank is nearer to. */
typedef struct writer {
    dts_schedule *out;
    int rank;
    int flip;                  /* 1: phase 0 is chunk 1 */
    int forwards[2];           /* next microbatch, by phase */
    int backwards[2];          /* next microbatch, by phase */
    int put_off, put_off_done; /* weight gradients put off so far, and done of these */
    dts_op *waiting;           /* [put off] the B of each */
} writer;

static void put_forward(writer *w, int phase) {
    dts_order_add(w->out, w->rank, DTS_OP_FORWARD, phase ^ w->flip, w->forwards[phase]++);
}

static void put_backward(writer *w, int phase, bool put_off_weight) {
    int chunk = phase ^ w->flip;
    int microbatch = w->backwards[phase]++;
    dts_order_add(w->out, w->rank, put_off_weight ? DTS_OP_BACKWARD_INPUT : DTS_OP_BACKWARD, chunk, microbatch);
    if (put_off_weight) {
        w->waiting[w->put_off++] = (dts_op){.chunk = (uint16_t)chunk, .microbatch = (uint32_t)microbatch};
    }
}

static void put_weight(writer *w) {
    dts_op op = w->waiting[w->put_off_done++];
    dts_order_add(w->out, w->rank, DTS_OP_BACKWARD_WEIGHT, op.chunk, (int)op.microbatch);
}

static void put_pair(writer *w, int forward_phase, bool fused) {
    put_forward(w, forward_phase);
    put_backward(w, 1 - forward_phase, false);
    if (fused) {
        dts_order_fuse_last_two(w->out, w->rank);
    }
}

static void fill(writer *w, int ranks, int h) {
    for (int i = 0; i < 2 * (ranks - h - 1); i++) {
        put_forward(w, 0);
    }
    for (int i = 0; i < h + 1; i++) {
        put_forward(w, 0);
        put_forward(w, 1);
    }
    for (int i = 0; i < ranks - h - 1; i++) {
        put_backward(w, 1, true);
        put_weight(w);
        put_forward(w, 1);
    }
}

static void drain(writer *w, int ranks, int h) {
    for (int i = 0; i < ranks - h - 1; i++) {
        put_backward(w, 1, false);
        put_pair(w, 1, true);
    }
    for (int i = 0; i < 2 * (h + 1); i++) { /* the second half of these backwards puts its weights off */
        put_backward(w, i % 2 == 0 ? 1 : 0, i >= h + 1);
    }
    for (int i = 0; i < ranks - h - 1; i++) {
        put_weight(w);
        put_backward(w, 0, true);
    }
    for (int i = 0; i < h + 1; i++) {
        put_weight(w);
    }
}

static void write_rank(writer *w, int ranks, int h, int microbatches) {
    fill(w, ranks, h);
    for (int i = 0; i < microbatches - 2 * ranks + h + 1; i++) {
        bool innermost_first = i == 0 && h == ranks - 1;
        put_pair(w, 0, !innermost_first);
        put_pair(w, 1, true);
    }
    drain(w, ranks, h);
}

static dts_status make_dualpipe(dts_schedule *out, dts_arena *scratch) {
    const int p = out->shape.stages, m = out->shape.microbatches;
    dts_op *waiting = dts_arena_array(scratch, (size_t)m, sizeof *waiting);
    for (int rank = 0; rank < p && waiting != NULL; rank++) {
        bool upper = rank >= p / 2;
        writer w = {.out = out, .rank = rank, .flip = upper ? 1 : 0, .waiting = waiting};
        write_rank(&w, p / 2, upper ? p - 1 - rank : rank, m / 2);
    }
    return waiting != NULL ? DTS_OK : DTS_NOMEM;
}

static dts_status make_dualpipev(dts_schedule *out, dts_arena *scratch) {
    const int p = out->shape.stages, m = out->shape.microbatches;
    dts_op *waiting = dts_arena_array(scratch, 2 * (size_t)m, sizeof *waiting);
    for (int rank = 0; rank < p && waiting != NULL; rank++) {
        writer w = {.out = out, .rank = rank, .waiting = waiting};
        write_rank(&w, p, rank, m);
    }
    return waiting != NULL ? DTS_OK : DTS_NOMEM;
}

static dts_status check_enough(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check_two_chunks(shape, diag);
    if (status == DTS_OK && shape->microbatches < 2 * shape->stages) {
        char help[80];
        snprintf(help, sizeof help, "use %d microbatches or more", 2 * shape->stages);
        status = dts_diag_error(diag, NULL, NULL, help,
                                "this schedule needs at least two microbatches per stage: %d are fewer than 2 x %d",
                                shape->microbatches, shape->stages);
    }
    return status;
}

static dts_status check_dualpipe(const dts_schedule_shape *shape, dts_diag *diag) {
    char help[80];
    if (shape->stages > 0 && shape->stages % 2 != 0) {
        snprintf(help, sizeof help, shape->stages == 1 ? "use %d stages" : "use %d or %d stages",
                 shape->stages == 1 ? 2 : shape->stages - 1, shape->stages + 1);
        return dts_diag_error(diag, NULL, NULL, help, "the number of stages (%d) must be even", shape->stages);
    }
    dts_status status = check_enough(shape, diag);
    if (status == DTS_OK && shape->microbatches % 2 != 0) {
        snprintf(help, sizeof help, "use %d or %d microbatches", shape->microbatches - 1, shape->microbatches + 1);
        status = dts_diag_error(diag, NULL, NULL, help,
                                "the number of microbatches (%d) must be even: half of them run in each direction",
                                shape->microbatches);
    }
    return status;
}

static double bubble_of(const dts_schedule_shape *shape, int ranks) {
    double backward = shape->backward_input + shape->backward_weight;
    return (ranks - 1) * (shape->forward + 2 * backward - 3 * shape->backward_weight);
}

static const char *limit(const dts_schedule_shape *shape) {
    if (shape->forward != shape->backward_input) {
        return "it needs F and B to take the same time";
    }
    return dts_limit_latency(shape);
}

static double bubble_dualpipe(const dts_schedule_shape *shape) {
    return bubble_of(shape, shape->stages / 2);
}

static double bubble_dualpipev(const dts_schedule_shape *shape) {
    return bubble_of(shape, shape->stages) / 2;
}

const dts_schedule_method dts_schedule_dualpipe = {
    .name = "dualpipe",
    .summary = "two directions, forward and backward as a block",
    .origin = "DeepSeek-V3 (2024)",
    .layout = DTS_LAYOUT_BIDIR,
    .default_chunks = 2,
    .splits_backward = true,
    .fuses = true,
    .check = check_dualpipe,
    .make = make_dualpipe,
    .bubble = bubble_dualpipe,
    .bubble_formula = "(p/2-1)(F+2B-W)",
    .bubble_limit = limit,
};

const dts_schedule_method dts_schedule_dualpipev = {
    .name = "dualpipev",
    .summary = "dualpipe folded into a V, weights held once",
    .origin = "deepseek-ai/DualPipe; torch DualPipeV",
    .layout = DTS_LAYOUT_V,
    .default_chunks = 2,
    .splits_backward = true,
    .fuses = true,
    .check = check_enough,
    .make = make_dualpipev,
    .bubble = bubble_dualpipev,
    .bubble_formula = "(p-1)(F+2B-W)/2",
    .bubble_limit = limit,
};
