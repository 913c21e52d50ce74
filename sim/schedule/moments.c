/* What lives on a rank when most does: the moments of its order that no other one exceeds in everything. */
#include "schedule/schedule.h"

/* Does a hold as much of everything as b does? */
static bool holds_all(const dts_schedule_moment *a, const dts_schedule_moment *b) {
    return a->whole >= b->whole && a->halves >= b->halves && a->last_whole >= b->last_whole &&
           a->last_halves >= b->last_halves;
}

size_t dts_schedule_add_moment(const dts_schedule_moment *moment, dts_schedule_moment *moments, size_t count) {
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (holds_all(&moments[i], moment)) {
            return count; /* which nothing that is held here exceeds either */
        }
        if (!holds_all(moment, &moments[i])) {
            moments[left++] = moments[i];
        }
    }
    moments[left] = *moment;
    return left + 1;
}

static void run(const dts_op *op, bool last, dts_schedule_moment *now) {
    const bool forward = op->kind == DTS_OP_FORWARD, weight = op->kind == DTS_OP_BACKWARD_WEIGHT;
    const float whole = forward ? 1 : weight ? 0 : -1;
    const float halves = weight ? -1 : op->kind == DTS_OP_BACKWARD_INPUT ? 1 : 0;
    now->whole += whole;
    now->halves += halves;
    now->last_whole += last ? whole : 0;
    now->last_halves += last ? halves : 0;
}

dts_moments *dts_schedule_moments(const dts_schedule *schedule, dts_arena *arena) {
    const dts_schedule_shape *shape = &schedule->shape;
    const int stages = dts_virtual_stage_count(schedule->layout, shape->stages, shape->chunks);
    int owner = 0, chunk = 0;
    dts_virtual_stage_owner(schedule->layout, shape->stages, stages - 1, 0, &owner, &chunk);
    dts_moments *out = dts_arena_array(arena, (size_t)shape->stages, sizeof *out);
    for (int rank = 0; rank < shape->stages && out != NULL; rank++) {
        dts_schedule_moment now = {0}, *items = dts_arena_array(arena, schedule->op_count[rank] + 1, sizeof *items);
        if (items == NULL) {
            return NULL;
        }
        out[rank].items = items;
        for (size_t i = 0; i < schedule->op_count[rank]; i++) {
            const dts_op *op = &schedule->ops[rank][i];
            run(op, rank == owner && op->chunk == chunk, &now);
            const bool grows = op->kind == DTS_OP_FORWARD || op->kind == DTS_OP_BACKWARD_INPUT;
            const bool goes_on = i + 1 < schedule->op_count[rank] && op[1].kind == DTS_OP_FORWARD;
            /* of passes in turns one grows while the other goes */
            if (!op->fused_next && !goes_on && (grows || i == 0 || op[-1].fused_next)) {
                out[rank].count = dts_schedule_add_moment(&now, items, out[rank].count);
            }
        }
    }
    return out;
}
