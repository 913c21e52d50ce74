/* What a shape has to fulfil before an order is built, and the help that names the nearest legal choice. */
#include <math.h>
#include <stdio.h>

#include "schedule/order.h"

enum {
    STAGES_MAX = 4096,
    CHUNKS_MAX = 256,
    OPERATIONS_MAX = 100000000 /* 1e8 operations of 8 bytes: 800 MB, what a workstation can still hold */
};

static dts_status check_range(const char *what, int value, int maximum, dts_diag *diag) {
    if (value < 1) {
        return dts_diag_error(diag, NULL, NULL, "use 1 or more", "%s must be at least 1, not %d", what, value);
    }
    if (value > maximum) {
        return dts_diag_error(diag, NULL, NULL, NULL, "%s must be at most %d, not %d", what, maximum, value);
    }
    return DTS_OK;
}

dts_status dts_shape_check(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = check_range("the number of stages", shape->stages, STAGES_MAX, diag);
    dts_status other = check_range("the number of microbatches", shape->microbatches, DTS_MICROBATCHES_MOST, diag);
    status = status == DTS_OK ? other : status;
    other = check_range("the number of chunks per stage", shape->chunks, CHUNKS_MAX, diag);
    status = status == DTS_OK ? other : status;
    if (status == DTS_OK && shape->group != 0) { /* schedules with a choice look at it before they come here */
        status = dts_diag_error(diag, NULL, NULL, "leave it out, or use interleaved-1f1b",
                                "this schedule has no choice of group size, but %d was given", shape->group);
    }
    if (status != DTS_OK) {
        return status;
    }
    double operations = 3.0 * shape->stages * shape->microbatches * shape->chunks;
    if (operations > OPERATIONS_MAX) {
        return dts_diag_error(diag, NULL, NULL, "use fewer stages, microbatches or chunks",
                              "%d stages x %d microbatches x %d chunks give up to %.3g operations, more than %.0e",
                              shape->stages, shape->microbatches, shape->chunks, operations, (double)OPERATIONS_MAX);
    }
    return DTS_OK;
}

dts_status dts_shape_check_one_chunk(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check(shape, diag);
    if (status == DTS_OK && shape->chunks != 1) {
        status = dts_diag_error(diag, NULL, NULL, "use 1 chunk, or a schedule with several such as interleaved-1f1b",
                                "this schedule has one chunk per stage, not %d", shape->chunks);
    }
    return status;
}

dts_status dts_shape_check_two_chunks(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check(shape, diag);
    if (status == DTS_OK && shape->chunks != 2) {
        status = dts_diag_error(diag, NULL, NULL, "use 2 chunks", "this schedule has two chunks per stage, not %d",
                                shape->chunks);
    }
    return status;
}

dts_status dts_shape_check_loop(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check(shape, diag);
    if (status == DTS_OK && shape->stages < 2) {
        status = dts_diag_error(diag, NULL, NULL, "use 2 stages or more, or 1f1b",
                                "interleaving needs at least 2 stages, not %d", shape->stages);
    }
    if (status == DTS_OK && shape->chunks < 2) {
        status = dts_diag_error(diag, NULL, NULL, "use 2 chunks or more, or 1f1b",
                                "interleaving needs at least 2 chunks per stage, not %d", shape->chunks);
    }
    return status;
}

int dts_flexible_group(const dts_schedule_shape *shape) {
    int rounds = shape->microbatches / shape->stages;
    return shape->microbatches / (rounds > 1 ? rounds : 1);
}

static bool flexible(int stages, int microbatches) {
    int rounds = microbatches / stages;
    return microbatches >= 1 && microbatches % (rounds > 1 ? rounds : 1) == 0;
}

dts_status dts_shape_check_flexible(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check(shape, diag);
    if (status != DTS_OK || flexible(shape->stages, shape->microbatches)) {
        return status;
    }
    int below = shape->microbatches - 1; /* both searches end at a multiple of the stages */
    int above = shape->microbatches + 1;
    while (!flexible(shape->stages, below)) {
        below--;
    }
    while (!flexible(shape->stages, above)) {
        above++;
    }
    char help[80];
    snprintf(help, sizeof help, "use %d or %d microbatches", below, above);
    return dts_diag_error(diag, NULL, NULL, help, "%d microbatches cannot be split into %d rounds of equal size",
                          shape->microbatches, shape->microbatches / shape->stages);
}

double dts_shape_work(const dts_schedule_shape *shape) {
    return shape->forward + shape->backward_input + shape->backward_weight;
}

int64_t dts_shape_ticks(const dts_schedule_shape *shape, double cost) {
    double longest = fmax(fmax(shape->forward, shape->backward_input), fmax(shape->backward_weight, shape->latency));
    return longest > 0 ? (int64_t)llround(cost / longest * 720720e5) : 0;
}

void dts_shape_memory(const dts_schedule_shape *shape, int64_t memory[3]) {
    memory[0] = 720720;
    memory[1] = -llround(shape->input_frees * (double)memory[0]);
    memory[2] = -memory[0] - memory[1];
}

const char *dts_limit_none(const dts_schedule_shape *shape) {
    (void)shape;
    return NULL;
}

const char *dts_limit_latency(const dts_schedule_shape *shape) {
    return shape->latency != 0 && shape->stages > 1 ? "it leaves out the latency of hops" : NULL;
}

const char *dts_limit_at_least_p(const dts_schedule_shape *shape) {
    if (shape->microbatches < shape->stages) {
        return "it needs at least as many microbatches as stages";
    }
    return dts_limit_latency(shape);
}

const char *dts_limit_at_least_2p(const dts_schedule_shape *shape) {
    if (shape->microbatches < 2 * shape->stages - 1) {
        return "it needs at least 2p-1 microbatches";
    }
    return dts_limit_latency(shape);
}

const char *dts_limit_multiple_of_p(const dts_schedule_shape *shape) {
    if (shape->microbatches % shape->stages != 0) {
        return "it needs a number of microbatches that is a multiple of the stages";
    }
    return dts_limit_latency(shape);
}
