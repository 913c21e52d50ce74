/* Zero-bubble orders: the gradient of the weights (W) is split from that of the input (B). Only B is on the chain from
 * stage to stage; W fills the bubbles.
 *
 *   zb-h1   warm-up p-1-r, W delayed by r backwards. bubble = (p-1)(tF + tB - tW) for m >= p. Peak min(m, p)
 *           everywhere.
 *   zb-h2   warm-up 2(p-1-r), W delayed by 2r. The span of every rank (last end - first start) exceeds m T by
 *           (p-1) max(0, tF + tB - 2 tW) for m >= 2p-1. Peak min(m, 2p-1).
 *   interleaved-zb1p   interleaved with warm-up p-1-r + (v-1) g, W delayed by r.
 *           Span beyond m T: (p-1)(tF + tB - tW)/v for m >= p. Peak min(m, p) for g = p.
 *
 *   group-interleaved  the same in groups of g = ceil(p/2) … p microbatches, W right behind its B: less memory than
 *           interleaving, for a larger bubble (no closed form). Groups keep the places of microbatches that do not
 *           exist.
 *
 * "Zero bubble" is a property of the span: it pays when the next iteration starts on a rank before the last rank has
 * ended this one. With a barrier at the end of an iteration the makespan counts. All formulas need tW <= tF + tB.
 *
 * [1] Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024. [2] torch ScheduleInterleavedZeroBubble.
 * [3] Wan et al., PipeOffload, ICML 2025; sail-sg/zero-bubble-pipeline-parallelism, group_interleaved_1f1b.py. */
#include <math.h>
#include <stdio.h>

#include "schedule/order.h"

static void write_split(dts_schedule *out, int rank, int forwards_per_hop, int group) {
    const dts_schedule_shape *shape = &out->shape;
    dts_depth_first rule = {.group = group,
                            .warmup = forwards_per_hop * (shape->stages - 1 - rank) + (shape->chunks - 1) * group,
                            .weight_delay = forwards_per_hop * rank};
    dts_order_depth_first(out, rank, &rule);
}

static void write_h1(dts_schedule *out, int rank) {
    write_split(out, rank, 1, out->shape.microbatches);
}

static void write_h2(dts_schedule *out, int rank) {
    write_split(out, rank, 2, out->shape.microbatches);
}

static void write_interleaved(dts_schedule *out, int rank) {
    write_split(out, rank, 1, dts_flexible_group(&out->shape));
}

static int grouped(const dts_schedule_shape *shape) {
    return shape->group > 0 ? shape->group : (shape->stages + 1) / 2;
}

static void write_group_interleaved(dts_schedule *out, int rank) {
    const dts_schedule_shape *shape = &out->shape;
    const int group = grouped(shape);
    dts_depth_first rule = {.group = group,
                            .warmup = shape->stages - 1 - rank + (shape->chunks - 1) * group,
                            .weight_delay = 0,
                            .padded = true};
    dts_order_depth_first(out, rank, &rule);
}

static dts_status check_group_interleaved(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_schedule_shape rest = *shape;
    rest.group = 0;
    dts_status status = dts_shape_check_loop(&rest, diag);
    int least = (shape->stages + 1) / 2;
    if (status == DTS_OK && shape->group != 0 && (shape->group < least || shape->group > shape->stages)) {
        char help[80];
        snprintf(help, sizeof help, "use a group of %d to %d", least, shape->stages);
        status = dts_diag_error(diag, NULL, NULL, help,
                                "groups of this schedule have from half as many microbatches as stages to as many, "
                                "not %d",
                                shape->group);
    }
    return status;
}

static double bubble_h1(const dts_schedule_shape *shape) {
    return (shape->stages - 1) * (shape->forward + shape->backward_input - shape->backward_weight);
}

static double bubble_h2(const dts_schedule_shape *shape) {
    double left = shape->forward + shape->backward_input - 2 * shape->backward_weight;
    return (shape->stages - 1) * fmax(0, left);
}

static double bubble_interleaved(const dts_schedule_shape *shape) {
    return bubble_h1(shape) / shape->chunks;
}

const dts_schedule_method dts_schedule_zb_h1 = {
    .name = "zb-h1",
    .summary = "weight gradients fill the bubbles of 1f1b",
    .origin = "Zero Bubble (Qi et al. 2024); torch",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .splits_backward = true,
    .check = dts_shape_check_one_chunk,
    .write_rank = write_h1,
    .bubble = bubble_h1,
    .bubble_formula = "(p-1)(F+B-W)",
    .bubble_limit = dts_limit_at_least_p,
};

const dts_schedule_method dts_schedule_zb_h2 = {
    .name = "zb-h2",
    .summary = "no bubble in a stage's span, twice the activations",
    .origin = "Zero Bubble (Qi et al. 2024)",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .splits_backward = true,
    .check = dts_shape_check_one_chunk,
    .write_rank = write_h2,
    .bubble = bubble_h2,
    .bubble_of_span = true,
    .bubble_formula = "(p-1) max(0, F+B-2W)",
    .bubble_limit = dts_limit_at_least_2p,
};

const dts_schedule_method dts_schedule_interleaved_zb1p = {
    .name = "interleaved-zb1p",
    .summary = "interleaved-1f1b with weight gradients split off",
    .origin = "torch ScheduleInterleavedZeroBubble",
    .layout = DTS_LAYOUT_LOOP,
    .default_chunks = 2,
    .splits_backward = true,
    .check = dts_shape_check_flexible,
    .write_rank = write_interleaved,
    .bubble = bubble_interleaved,
    .bubble_of_span = true,
    .bubble_formula = "(p-1)(F+B-W)/v",
    .bubble_limit = dts_limit_at_least_p,
};

const dts_schedule_method dts_schedule_group_interleaved = {
    .name = "group-interleaved",
    .summary = "interleaving in small groups: half the activations",
    .origin = "PipeOffload (Wan et al. 2025)",
    .layout = DTS_LAYOUT_LOOP,
    .default_chunks = 2,
    .splits_backward = true,
    .check = check_group_interleaved,
    .write_rank = write_group_interleaved,
};
