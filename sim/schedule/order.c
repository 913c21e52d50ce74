#include "schedule/order.h"

dts_status dts_order_begin(const dts_schedule_method *method, const dts_schedule_shape *shape, dts_arena *arena,
                           dts_schedule *out) {
    size_t stages = (size_t)shape->stages;
    size_t forwards = (size_t)shape->microbatches;
    if (method->layout != DTS_LAYOUT_BIDIR) { /* there a microbatch passes every rank only once */
        forwards *= (size_t)shape->chunks;
    }
    size_t capacity = forwards * (method->splits_backward ? 3 : 2);
    *out = (dts_schedule){.name = method->name, .layout = method->layout, .shape = *shape};
    out->ops = dts_arena_array(arena, stages, sizeof *out->ops);
    out->op_count = dts_arena_array(arena, stages, sizeof *out->op_count);
    if (out->ops == NULL || out->op_count == NULL) {
        return DTS_NOMEM;
    }
    for (size_t rank = 0; rank < stages; rank++) {
        out->ops[rank] = dts_arena_array(arena, capacity, sizeof *out->ops[rank]);
        if (out->ops[rank] == NULL) {
            return DTS_NOMEM;
        }
    }
    return DTS_OK;
}

void dts_order_add(dts_schedule *schedule, int rank, dts_op_kind kind, int chunk, int microbatch) {
    schedule->ops[rank][schedule->op_count[rank]++] =
        (dts_op){.kind = (uint8_t)kind, .chunk = (uint16_t)chunk, .microbatch = (uint32_t)microbatch};
}

void dts_order_fuse_last_two(dts_schedule *schedule, int rank) {
    schedule->ops[rank][schedule->op_count[rank] - 2].fused_next = 1;
}

/* Position k of the depth-first sequence. All groups before the last are full, so the group follows from k alone. */
static void depth_first_position(const dts_schedule_shape *shape, int group, int k, int *chunk, int *microbatch) {
    int first = k / (group * shape->chunks) * group;
    int within = k - first * shape->chunks;
    int size = shape->microbatches - first < group ? shape->microbatches - first : group;
    *chunk = within / size;
    *microbatch = first + within % size;
}

static void add_forward(dts_schedule *schedule, int rank, int group, int k) {
    int chunk;
    int microbatch;
    depth_first_position(&schedule->shape, group, k, &chunk, &microbatch);
    dts_order_add(schedule, rank, DTS_OP_FORWARD, chunk, microbatch);
}

/* Backwards use the same sequence with the chunks in reverse. */
static void add_backward(dts_schedule *schedule, int rank, int group, dts_op_kind kind, int k) {
    int chunk;
    int microbatch;
    depth_first_position(&schedule->shape, group, k, &chunk, &microbatch);
    dts_order_add(schedule, rank, kind, schedule->shape.chunks - 1 - chunk, microbatch);
}

void dts_order_depth_first(dts_schedule *schedule, int rank, const dts_depth_first *rule) {
    int total = schedule->shape.microbatches * schedule->shape.chunks;
    int warmup = rule->warmup < total ? rule->warmup : total;
    bool split = rule->weight_delay >= 0;
    for (int k = 0; k < warmup; k++) {
        add_forward(schedule, rank, rule->group, k);
    }
    int weights = 0;
    for (int k = 0; k < total; k++) {
        bool pair = warmup + k < total;
        if (pair) {
            add_forward(schedule, rank, rule->group, warmup + k);
        }
        add_backward(schedule, rank, rule->group, split ? DTS_OP_BACKWARD_INPUT : DTS_OP_BACKWARD, k);
        if (pair && rule->fuse_pairs) {
            dts_order_fuse_last_two(schedule, rank);
        }
        if (split && k >= rule->weight_delay) {
            add_backward(schedule, rank, rule->group, DTS_OP_BACKWARD_WEIGHT, weights++);
        }
    }
    while (split && weights < total) {
        add_backward(schedule, rank, rule->group, DTS_OP_BACKWARD_WEIGHT, weights++);
    }
}
