#include "schedule/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schedule/order.h"

/* In teaching order. A schedule stands here only when its orders equal those of its origin (tests/unit/schedule). */
static const dts_schedule_method *const methods[] = {
    &dts_schedule_naive,
    &dts_schedule_gpipe,
    &dts_schedule_gpipe_lifo,
    &dts_schedule_1f1b,
    &dts_schedule_pipedream,
    &dts_schedule_eager_1f1b,
    &dts_schedule_interleaved,
    &dts_schedule_interleaved_flex,
    &dts_schedule_interleaved_group2p,
    &dts_schedule_interleaved_moe,
    &dts_schedule_looped_bfs,
    &dts_schedule_breadth_first_fifo,
    &dts_schedule_zb_h1,
    &dts_schedule_zb_h2,
    &dts_schedule_zb1p_heuristic,
    &dts_schedule_zb2p_heuristic,
    &dts_schedule_interleaved_zb1p,
    &dts_schedule_group_interleaved,
    &dts_schedule_zbv,
    &dts_schedule_zbv_heuristic,
    &dts_schedule_v_half,
    &dts_schedule_v_min,
    &dts_schedule_1f1b_v,
    &dts_schedule_chimera,
    &dts_schedule_dualpipe,
    &dts_schedule_dualpipev,
};

enum { METHOD_COUNT = sizeof methods / sizeof *methods };

const dts_schedule_method *const *dts_schedule_methods(size_t *count) {
    *count = METHOD_COUNT;
    return methods;
}

const dts_schedule_method *dts_schedule_find(const char *name) {
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        const char *alias = methods[i]->alias;
        if (strcmp(methods[i]->name, name) == 0 || (alias != NULL && strcmp(alias, name) == 0)) {
            return methods[i];
        }
    }
    return NULL;
}

const char *dts_schedule_nearest(const char *name) {
    enum { LEAST = 4 }; /* letters: "qi" is in many origins */
    const char *names[METHOD_COUNT];
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        names[i] = methods[i]->name;
    }
    const char *nearest = dts_nearest_name(name, names, METHOD_COUNT);
    for (size_t i = 0; i < METHOD_COUNT && nearest == NULL && strlen(name) >= LEAST; i++) {
        nearest = dts_holds_letters(methods[i]->origin, name) ? names[i] : NULL;
    }
    return nearest;
}

static dts_status unknown_name(const char *name, dts_diag *diag) {
    const char *nearest = dts_schedule_nearest(name);
    char help[120];
    if (nearest != NULL) {
        snprintf(help, sizeof help, "did you mean '%s'?", nearest);
    } else {
        snprintf(help, sizeof help, "see `dtsim list schedules`; the best known are gpipe, 1f1b, interleaved-1f1b");
    }
    return dts_diag_error(diag, NULL, NULL, help, "unknown schedule '%.60s'", name);
}

static dts_status check_flushes(const dts_schedule_method *method, const dts_schedule_shape *shape, dts_diag *diag) {
    if (shape->flushes <= 1) {
        return DTS_OK;
    }
    if (method->asynchronous) {
        return dts_diag_error(diag, NULL, NULL, "leave flushes out, or use 1f1b", "%s has no flush", method->name);
    }
    if (shape->microbatches % shape->flushes != 0) {
        char help[80];
        snprintf(help, sizeof help, "use a multiple of %d microbatches", shape->flushes);
        return dts_diag_error(diag, NULL, NULL, help, "%d flushes do not divide %d microbatches", shape->flushes,
                              shape->microbatches);
    }
    return DTS_OK;
}

/* The question alone: what is wrong is of no interest. */
static bool takes(const dts_schedule_method *method, const dts_schedule_shape *one) {
    dts_diag *why = dts_diag_new();
    const bool good = why != NULL && method->check(one, why) == DTS_OK;
    dts_diag_free(why);
    return good;
}

void dts_schedule_mend_flushes(const dts_schedule_method *method, const dts_schedule_shape *shape, int *flushes,
                               int *microbatches) {
    dts_schedule_shape one = dts_schedule_flush(shape);
    const int last = one.microbatches + 4 * shape->stages; /* rules are about multiples of the stages */
    *flushes = 0;
    *microbatches = 0;
    for (one.microbatches++; one.microbatches <= last && *microbatches == 0; one.microbatches++) {
        *microbatches = takes(method, &one) ? one.microbatches * shape->flushes : 0;
    }
    for (int fewer = shape->flushes - 1; fewer > 0 && *flushes == 0; fewer--) {
        one.microbatches = shape->microbatches / fewer;
        *flushes = shape->microbatches % fewer == 0 && takes(method, &one) ? fewer : 0;
    }
}

/* The method's rules for one flush; what they refuse and how to mend it is said in microbatches of all flushes. */
static dts_status check_flush(const dts_schedule_method *method, const dts_schedule_shape *shape, dts_diag *diag) {
    const dts_schedule_shape one = dts_schedule_flush(shape);
    int flushes = 0, microbatches = 0;
    if (shape->flushes > 1 && !takes(method, &one)) {
        dts_schedule_mend_flushes(method, shape, &flushes, &microbatches);
    }
    if (flushes == 0 && microbatches == 0) {
        return method->check(&one, diag);
    }
    dts_diag *why = dts_diag_new();
    if (why == NULL) {
        return dts_diag_nomem(diag);
    }
    char help[100];
    const int length = microbatches > 0 ? snprintf(help, sizeof help, "use %d microbatches", microbatches) : 0;
    if (flushes > 0) {
        snprintf(help + length, sizeof help - (size_t)length, "%s%d flush%s", length > 0 ? ", or " : "use ", flushes,
                 flushes == 1 ? "" : "es");
    }
    dts_status status = method->check(&one, why);
    for (size_t i = 0; i < dts_diag_count(why); i++) {
        dts_diag_error(diag, NULL, NULL, help, "in each of %d flushes: %s", shape->flushes, dts_diag_get(why, i)->text);
    }
    dts_diag_free(why);
    return status;
}

/* An empty order with room for every rank's. */
static dts_status begin(const dts_schedule_method *method, const dts_schedule_shape *shape, dts_arena *arena,
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
    bool good = out->ops != NULL && out->op_count != NULL;
    for (size_t rank = 0; rank < stages && good; rank++) {
        out->ops[rank] = dts_arena_array(arena, capacity, sizeof *out->ops[rank]);
        good = out->ops[rank] != NULL;
    }
    return good ? DTS_OK : DTS_NOMEM;
}

static dts_status write_order(const dts_schedule_method *method, dts_schedule *out) {
    if (method->write_rank != NULL) {
        for (int rank = 0; rank < out->shape.stages; rank++) {
            method->write_rank(out, rank);
        }
        return DTS_OK;
    }
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_status status = scratch != NULL ? method->make(out, scratch) : DTS_NOMEM;
    dts_arena_free(scratch);
    return status;
}

dts_status dts_schedule_build(const char *name, const dts_schedule_shape *shape, dts_arena *arena, dts_schedule *out,
                              dts_diag *diag) {
    const dts_schedule_method *method = dts_schedule_find(name);
    if (method == NULL) {
        return unknown_name(name, diag);
    }
    dts_status status = check_flushes(method, shape, diag);
    if (status != DTS_OK) {
        return status;
    }
    status = check_flush(method, shape, diag);
    if (status != DTS_OK) {
        return status;
    }
    const dts_schedule_shape one = dts_schedule_flush(shape);
    status = begin(method, &one, arena, out);
    status = status == DTS_OK ? write_order(method, out) : status;
    if (status == DTS_OK && shape->flushes > 1) {
        const dts_schedule once = *out;
        status = dts_schedule_repeat(&once, shape->flushes, arena, out) ? DTS_OK : DTS_NOMEM;
    }
    return status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
}

dts_schedule_shape dts_schedule_flush(const dts_schedule_shape *shape) {
    dts_schedule_shape one = *shape;
    one.microbatches /= shape->flushes > 1 ? shape->flushes : 1;
    one.flushes = 0;
    return one;
}

bool dts_schedule_repeat(const dts_schedule *one, int flushes, dts_arena *arena, dts_schedule *out) {
    const size_t stages = (size_t)one->shape.stages;
    const uint32_t each = (uint32_t)one->shape.microbatches / (one->layout == DTS_LAYOUT_BIDIR ? 2 : 1);
    *out = *one;
    out->shape.microbatches *= flushes;
    out->shape.flushes = flushes;
    out->ops = dts_arena_array(arena, stages, sizeof(dts_op *));
    out->op_count = dts_arena_array(arena, stages, sizeof *out->op_count);
    for (size_t p = 0; out->ops != NULL && out->op_count != NULL && p < stages; p++) {
        const size_t count = one->op_count[p];
        out->op_count[p] = count * (size_t)flushes;
        out->ops[p] = dts_arena_array(arena, out->op_count[p], sizeof **out->ops);
        if (out->ops[p] == NULL) {
            return false;
        }
        for (size_t i = 0; i < out->op_count[p]; i++) {
            out->ops[p][i] = one->ops[p][i % count];
            out->ops[p][i].microbatch += (uint32_t)(i / count) * each;
        }
    }
    return out->ops != NULL && out->op_count != NULL;
}

double dts_schedule_bubble(const dts_schedule_method *method, const dts_schedule_shape *shape) {
    const dts_schedule_shape one = dts_schedule_flush(shape);
    return method->bubble(&one) * (shape->flushes > 1 ? shape->flushes : 1);
}

const char *dts_schedule_bubble_limit(const dts_schedule_method *method, const dts_schedule_shape *shape) {
    const dts_schedule_shape one = dts_schedule_flush(shape);
    const char *limit = method->bubble_limit(&one);
    /* where the first rank begins a flush and ends it, no two of them meet */
    const bool meet = shape->flushes > 1 && (method->splits_backward || method->layout == DTS_LAYOUT_V ||
                                             method->layout == DTS_LAYOUT_BIDIR || method->bubble_of_span);
    return limit == NULL && meet ? "it leaves out that flushes overlap" : limit;
}

int dts_virtual_stage(dts_layout layout, int stages, int rank, int chunk) {
    switch (layout) {
        case DTS_LAYOUT_SINGLE:
            return rank;
        case DTS_LAYOUT_LOOP:
            return chunk * stages + rank;
        case DTS_LAYOUT_V:
            return chunk == 0 ? rank : 2 * stages - 1 - rank;
        case DTS_LAYOUT_BIDIR:
            return chunk == 0 ? rank : stages - 1 - rank;
    }
    return 0;
}

void dts_virtual_stage_owner(dts_layout layout, int stages, int virtual_stage, int direction, int *rank, int *chunk) {
    *rank = virtual_stage;
    *chunk = 0;
    switch (layout) {
        case DTS_LAYOUT_SINGLE:
            break;
        case DTS_LAYOUT_LOOP:
            *rank = virtual_stage % stages;
            *chunk = virtual_stage / stages;
            break;
        case DTS_LAYOUT_V:
            if (virtual_stage >= stages) {
                *rank = 2 * stages - 1 - virtual_stage;
                *chunk = 1;
            }
            break;
        case DTS_LAYOUT_BIDIR:
            if (direction != 0) {
                *rank = stages - 1 - virtual_stage;
                *chunk = 1;
            }
            break;
    }
}

int dts_virtual_stage_count(dts_layout layout, int stages, int chunks) {
    switch (layout) {
        case DTS_LAYOUT_SINGLE:
        case DTS_LAYOUT_BIDIR:
            return stages;
        case DTS_LAYOUT_LOOP:
        case DTS_LAYOUT_V:
            return stages * chunks;
    }
    return 0;
}

double dts_schedule_peak_activation(const dts_schedule *schedule, int rank) {
    const double input_frees = schedule->shape.input_frees;
    long kept = 0, half_freed = 0; /* activations; of these, whose B has run */
    double peak = 0;
    for (size_t i = 0; i < schedule->op_count[rank]; i++) {
        switch ((dts_op_kind)schedule->ops[rank][i].kind) {
            case DTS_OP_FORWARD:
                kept++;
                break;
            case DTS_OP_BACKWARD:
                kept--;
                break;
            case DTS_OP_BACKWARD_INPUT:
                half_freed++;
                break;
            case DTS_OP_BACKWARD_WEIGHT:
                half_freed--;
                kept--;
                break;
        }
        peak = fmax(peak, (double)kept - input_frees * (double)half_freed);
    }
    return peak / (schedule->layout == DTS_LAYOUT_BIDIR ? 1 : schedule->shape.chunks);
}

double dts_op_cost(const dts_schedule *schedule, const dts_op *op, double forward, double backward_input,
                   double backward_weight) {
    double whole = 0;
    switch ((dts_op_kind)op->kind) {
        case DTS_OP_FORWARD:
            whole = forward;
            break;
        case DTS_OP_BACKWARD_INPUT:
            whole = backward_input;
            break;
        case DTS_OP_BACKWARD_WEIGHT:
            whole = backward_weight;
            break;
        case DTS_OP_BACKWARD:
            whole = backward_input + backward_weight;
            break;
    }
    return schedule->layout == DTS_LAYOUT_BIDIR ? whole : whole / schedule->shape.chunks;
}

size_t dts_schedule_block_size(const dts_schedule *schedule, int rank, size_t index) {
    size_t size = 1;
    while (index + size < schedule->op_count[rank] && schedule->ops[rank][index + size - 1].fused_next) {
        size++;
    }
    return size;
}

void dts_op_format(const dts_schedule *schedule, const dts_op *op, char *buffer, size_t size) {
    static const char *const kinds[] = {"F", "B", "W", "BW"};
    if (schedule->shape.chunks > 1) {
        snprintf(buffer, size, "%s%u.%u", kinds[op->kind], (unsigned)op->microbatch, (unsigned)op->chunk);
    } else {
        snprintf(buffer, size, "%s%u", kinds[op->kind], (unsigned)op->microbatch);
    }
}
