#include "schedule/order.h"

void dts_order_add(dts_schedule *schedule, int rank, dts_op_kind kind, int chunk, int microbatch) {
    schedule->ops[rank][schedule->op_count[rank]++] =
        (dts_op){.kind = (uint8_t)kind, .chunk = (uint16_t)chunk, .microbatch = (uint32_t)microbatch};
}

void dts_order_fuse_last_two(dts_schedule *schedule, int rank) {
    schedule->ops[rank][schedule->op_count[rank] - 2].fused_next = 1;
}

/* Appends the operation at position k of the depth-first sequence, whose groups are full up to the last; backwards use
 * the same sequence with the chunks in reverse. */
static void add_at(dts_schedule *schedule, int rank, const dts_depth_first *rule, dts_op_kind kind, int k) {
    const dts_schedule_shape *shape = &schedule->shape;
    int first = k / (rule->group * shape->chunks) * rule->group;
    int within = k - first * shape->chunks;
    int left = shape->microbatches - first;
    int size = left < rule->group && !rule->padded ? left : rule->group;
    int chunk = within / size;
    int microbatch = first + within % size;
    if (microbatch < shape->microbatches) {
        dts_order_add(schedule, rank, kind, kind == DTS_OP_FORWARD ? chunk : shape->chunks - 1 - chunk, microbatch);
    }
}

void dts_order_depth_first(dts_schedule *schedule, int rank, const dts_depth_first *rule) {
    int microbatches = schedule->shape.microbatches;
    if (rule->padded) {
        microbatches = (microbatches + rule->group - 1) / rule->group * rule->group;
    }
    int total = microbatches * schedule->shape.chunks;
    int warmup = rule->warmup < total ? rule->warmup : total;
    bool split = rule->weight_delay >= 0;
    for (int k = 0; k < warmup; k++) {
        add_at(schedule, rank, rule, DTS_OP_FORWARD, k);
    }
    int weights = 0;
    for (int k = 0; k < total; k++) {
        bool pair = warmup + k < total;
        if (pair) {
            add_at(schedule, rank, rule, DTS_OP_FORWARD, warmup + k);
        }
        add_at(schedule, rank, rule, split ? DTS_OP_BACKWARD_INPUT : DTS_OP_BACKWARD, k);
        if (pair && rule->fuse_pairs) {
            dts_order_fuse_last_two(schedule, rank);
        }
        if (split && k >= rule->weight_delay) {
            add_at(schedule, rank, rule, DTS_OP_BACKWARD_WEIGHT, weights++);
        }
    }
    while (split && weights < total) {
        add_at(schedule, rank, rule, DTS_OP_BACKWARD_WEIGHT, weights++);
    }
}
