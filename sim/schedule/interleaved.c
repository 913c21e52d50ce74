/* Interleaved 1F1B: every rank holds v chunks of the model, so that the pipeline fills v times faster.
 *
 * Virtual stages lie in a loop over the ranks. Microbatches go in groups of g through all chunks (depth first); rank r
 * warms up with w = 2(p-1-r) + (v-1) g forwards, then runs (F, BW) pairs.
 *
 *   bubble = (p-1) T / v for m >= p with p dividing m (also for g = 2p)      peak (2(p-1-r) + (v-1) g + 1) / v <= m
 *   latency: + 2 (pv - 1) c for g = p while it is small (the chunks have slack)
 *
 * [1] Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, SC 2021.
 * [2] Megatron-LM's schedule table and its option microbatch_group_size_per_vp_stage; torch Interleaved1F1B for the
 *     flexible group size; Megatron-LM's overlap_moe_expert_parallel_comm for the fused pairs. */
#include <stdio.h>

#include "schedule/order.h"

static int group_of(const dts_schedule_shape *shape) {
    return shape->group > 0 ? shape->group : shape->stages;
}

static void write_groups(dts_schedule *out, int rank, int group, bool fuse_pairs) {
    const dts_schedule_shape *shape = &out->shape;
    dts_depth_first rule = {
        .group = group,
        .warmup = 2 * (shape->stages - 1 - rank) + (shape->chunks - 1) * group + (fuse_pairs ? 1 : 0),
        .weight_delay = -1,
        .fuse_pairs = fuse_pairs};
    dts_order_depth_first(out, rank, &rule);
}

static void write_interleaved(dts_schedule *out, int rank) {
    write_groups(out, rank, group_of(&out->shape), false);
}

static void write_flex(dts_schedule *out, int rank) {
    write_groups(out, rank, dts_flexible_group(&out->shape), false);
}

static void write_group2p(dts_schedule *out, int rank) {
    write_groups(out, rank, 2 * out->shape.stages, false);
}

static void write_moe(dts_schedule *out, int rank) {
    write_groups(out, rank, group_of(&out->shape), true);
}

/* Megatron's rule: the last group is full, or still has a microbatch for every stage. */
static bool group_fits(int stages, int group, int microbatches) {
    int rest = microbatches % group;
    return microbatches >= group && (rest == 0 || rest >= stages);
}

static dts_status check_group(const dts_schedule_shape *shape, int group, dts_diag *diag) {
    int p = shape->stages;
    int m = shape->microbatches;
    char help[120];
    if (group < p) {
        snprintf(help, sizeof help, "use a group of %d or more", p);
        return dts_diag_error(diag, NULL, NULL, help, "the group of %d microbatches is smaller than the %d stages",
                              group, p);
    }
    if (group_fits(p, group, m)) {
        return DTS_OK;
    }
    int above = m + 1;
    while (!group_fits(p, group, above)) {
        above++;
    }
    int below = m - 1;
    while (below > 0 && !group_fits(p, group, below)) {
        below--;
    }
    if (below > 0) {
        snprintf(help, sizeof help, "use %d or %d microbatches", below, above);
    } else {
        snprintf(help, sizeof help, "use %d microbatches", above);
    }
    if (group == p) {
        return dts_diag_error(diag, NULL, NULL, help,
                              "the number of microbatches (%d) must be a multiple of the number of stages (%d)", m, p);
    }
    return dts_diag_error(diag, NULL, NULL, help,
                          "%d microbatches in groups of %d leave a last group of %d, fewer than the %d stages", m,
                          group, m % group, p);
}

static dts_status check_interleaved(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_schedule_shape rest = *shape;
    rest.group = 0;
    dts_status status = dts_shape_check_loop(&rest, diag);
    return status == DTS_OK ? check_group(shape, group_of(shape), diag) : status;
}

static dts_status check_group2p(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check_loop(shape, diag);
    return status == DTS_OK ? check_group(shape, 2 * shape->stages, diag) : status;
}

static dts_status check_flex(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check_loop(shape, diag);
    return status == DTS_OK ? dts_shape_check_flexible(shape, diag) : status;
}

static double bubble_interleaved(const dts_schedule_shape *shape) {
    return (shape->stages - 1) * dts_shape_work(shape) / shape->chunks;
}

const dts_schedule_method dts_schedule_interleaved = {
    .name = "interleaved-1f1b",
    .alias = "1f1b-interleaved",
    .summary = "v chunks per stage: a v times smaller bubble",
    .origin = "Megatron-LM (Narayanan et al. 2021)",
    .layout = DTS_LAYOUT_LOOP,
    .default_chunks = 2,
    .check = check_interleaved,
    .write_rank = write_interleaved,
    .bubble = bubble_interleaved,
    .bubble_formula = "(p-1)(F+B+W)/v",
    .bubble_limit = dts_limit_multiple_of_p,
};

const dts_schedule_method dts_schedule_interleaved_flex = {
    .name = "interleaved-1f1b-flex",
    .summary = "interleaved-1f1b for more numbers of microbatches",
    .origin = "torch Interleaved1F1B",
    .layout = DTS_LAYOUT_LOOP,
    .default_chunks = 2,
    .check = check_flex,
    .write_rank = write_flex,
    .bubble = bubble_interleaved,
    .bubble_formula = "(p-1)(F+B+W)/v",
    .bubble_limit = dts_limit_multiple_of_p,
};

const dts_schedule_method dts_schedule_interleaved_group2p = {
    .name = "interleaved-1f1b-group2p",
    .summary = "interleaved-1f1b in groups of 2p microbatches",
    .origin = "Megatron-LM, microbatch_group_size_per_vp_stage = 2p",
    .layout = DTS_LAYOUT_LOOP,
    .default_chunks = 2,
    .check = check_group2p,
    .write_rank = write_group2p,
    .bubble = bubble_interleaved,
    .bubble_formula = "(p-1)(F+B+W)/v",
    .bubble_limit = dts_limit_multiple_of_p,
};

const dts_schedule_method dts_schedule_interleaved_moe = {
    .name = "interleaved-1f1b-moe-overlap",
    .summary = "interleaved-1f1b, forward and backward as a block",
    .origin = "Megatron-LM, overlap_moe_expert_parallel_comm",
    .layout = DTS_LAYOUT_LOOP,
    .default_chunks = 2,
    .fuses = true,
    .check = check_interleaved,
    .write_rank = write_moe,
    .bubble = bubble_interleaved,
    .bubble_formula = "(p-1)(F+B+W)/v",
    .bubble_limit = dts_limit_multiple_of_p,
};
