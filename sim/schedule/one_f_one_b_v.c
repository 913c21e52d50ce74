/* 1F1B-V: 1F1B with whole backwards on two chunks laid out as a V, for two thirds of 1F1B's activations.
 *
 * In the steady state every rank repeats a pattern of six slots: forward of chunk 0 and of chunk 1 one slot each,
 * backward of chunk 1 and of chunk 0 two slots each. The pattern's offsets follow the wave down and up the V: one slot
 * per rank for forwards, two for backwards, and three more after every third backward so that no slot is used twice.
 *
 * The stretched beginning is then closed up: operations are visited slot by slot and moved to the earliest free slot
 * that their inputs allow; a forward only as far as the rank's activations stay within the peak of the pattern.
 *
 * No closed form of the bubble. Peak 2, 3, 6 for p = 2, 4, 8.
 * [1] Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; [2] its code, sail-sg/zero-bubble-
 * pipeline-parallelism, v1f1b.py, whose orders are reproduced. */
#include <stdio.h>

#include "schedule/order.h"

enum { PERIOD = 6, SLOTS_MAX = 50000000 };

/* The wave along the V. W stands for the second slot of a backward. */
typedef enum mark { NONE, F0, F1, B1, B0, W1, W0, MARKS } mark;

typedef struct slots {
    int stages, microbatches;
    int length;        /* slots per rank */
    uint8_t *at;       /* [rank][slot] mark */
    int *live;         /* [rank][slot] activations after the slot */
    int *place[MARKS]; /* by mark: [rank][microbatch] slot, -1 before it is visited */
    int peak;
} slots;

static uint8_t *mark_at(const slots *s, int rank, int slot) {
    return &s->at[(size_t)rank * (size_t)s->length + (size_t)slot];
}

static int *live_at(const slots *s, int rank, int slot) {
    return &s->live[(size_t)rank * (size_t)s->length + (size_t)slot];
}

static int *place_of(const slots *s, mark what, int rank, int microbatch) {
    return &s->place[what][(size_t)rank * (size_t)s->microbatches + (size_t)microbatch];
}

/* Marks what of microbatch 0 at the first slot from *slot on with the phase, and the others a period apart. */
static void lay(slots *s, mark what, int rank, int phase, int *slot) {
    *slot += ((phase - *slot) % PERIOD + PERIOD) % PERIOD;
    for (int i = 0; i < s->microbatches; i++) {
        *mark_at(s, rank, *slot + i * PERIOD) = (uint8_t)what;
        if (what == B1 || what == B0) {
            *mark_at(s, rank, *slot + i * PERIOD + 1) = what == B1 ? W1 : W0;
        }
    }
    (*slot)++;
}

static void lay_pattern(slots *s) {
    int p = s->stages;
    int phase = 0;
    int slot = PERIOD;
    for (int i = 0; i < p; i++) {
        lay(s, F0, i, ++phase % PERIOD, &slot);
    }
    for (int i = 0; i < p; i++) {
        lay(s, F1, p - 1 - i, ++phase % PERIOD, &slot);
    }
    phase += p % 3 == 0 ? 4 : 1;
    int backwards = (3 - (p + 2) % 3) % 3; /* since the last gap */
    for (int i = 0; i < 2 * p; i++) {
        bool down = i < p;
        lay(s, down ? B1 : B0, down ? i : 2 * p - 1 - i, phase % PERIOD, &slot);
        phase += 2;
        if (++backwards == 3) {
            backwards = 0;
            phase += 3;
        }
    }
}

/* Activations after every slot, and the highest of all ranks. */
static void count_live(slots *s) {
    for (int rank = 0; rank < s->stages; rank++) {
        int live = 0;
        for (int slot = 0; slot < s->length; slot++) {
            mark what = (mark)*mark_at(s, rank, slot);
            live += what == F0 || what == F1;
            live -= what == W0 || what == W1;
            *live_at(s, rank, slot) = live;
            s->peak = live > s->peak ? live : s->peak;
        }
    }
}

/* The slot where the input of an operation comes to be. */
static int input_slot(const slots *s, mark what, int rank, int microbatch) {
    int last = s->stages - 1;
    switch (what) {
        case F0:
            return rank > 0 ? *place_of(s, F0, rank - 1, microbatch) : -1;
        case F1:
            return rank < last ? *place_of(s, F1, rank + 1, microbatch) : *place_of(s, F0, rank, microbatch);
        case B1:
            return rank > 0 ? *place_of(s, W1, rank - 1, microbatch) : *place_of(s, F1, rank, microbatch);
        case B0:
            return rank < last ? *place_of(s, W0, rank + 1, microbatch) : *place_of(s, W1, rank, microbatch);
        case W1:
            return *place_of(s, B1, rank, microbatch);
        case W0:
            return *place_of(s, B0, rank, microbatch);
        case NONE:
        case MARKS:
            break;
    }
    return -1;
}

/* The first slot from earliest on that is free (for a backward: with the one behind it), or the present one. */
static int free_slot(const slots *s, mark what, int rank, int earliest, int present) {
    bool two = what == B1 || what == B0;
    while (earliest < present &&
           (*mark_at(s, rank, earliest) != NONE || (two && *mark_at(s, rank, earliest + 1) != NONE))) {
        earliest++;
    }
    return earliest;
}

/* How early a forward may come without a new peak. */
static int free_slot_within_peak(const slots *s, int rank, int earliest, int present) {
    int slot = present;
    while (slot > earliest && *live_at(s, rank, slot - 1) < s->peak) {
        slot--;
    }
    while (slot < present && *mark_at(s, rank, slot) != NONE) {
        slot++;
    }
    return slot;
}

static void move_forward_in_time(slots *s, int rank, int present, int microbatch) {
    mark what = (mark)*mark_at(s, rank, present);
    bool forward = what == F0 || what == F1;
    int earliest = input_slot(s, what, rank, microbatch);
    if (microbatch > 0 && *place_of(s, what, rank, microbatch - 1) > earliest) {
        earliest = *place_of(s, what, rank, microbatch - 1);
    }
    int slot = free_slot(s, what, rank, earliest + 1, present);
    if (forward) {
        slot = free_slot_within_peak(s, rank, slot, present);
    }
    *place_of(s, what, rank, microbatch) = slot;
    *mark_at(s, rank, present) = NONE;
    *mark_at(s, rank, slot) = (uint8_t)what;
    int change = forward ? 1 : what == W0 || what == W1 ? -1 : 0;
    for (int i = slot; i < present; i++) {
        *live_at(s, rank, i) += change;
    }
}

static void close_up(slots *s, int *seen) {
    for (int slot = 0; slot < s->length; slot++) {
        for (int rank = 0; rank < s->stages; rank++) {
            mark what = (mark)*mark_at(s, rank, slot);
            if (what != NONE) {
                move_forward_in_time(s, rank, slot, seen[rank * MARKS + (int)what]++);
            }
        }
    }
}

static void write_out(const slots *s, dts_schedule *out) {
    static const struct {
        dts_op_kind kind;
        int chunk;
    } ops[MARKS] = {[F0] = {DTS_OP_FORWARD, 0},
                    [F1] = {DTS_OP_FORWARD, 1},
                    [B1] = {DTS_OP_BACKWARD, 1},
                    [B0] = {DTS_OP_BACKWARD, 0}};
    for (int rank = 0; rank < s->stages; rank++) {
        int seen[MARKS] = {0};
        for (int slot = 0; slot < s->length; slot++) {
            mark what = (mark)*mark_at(s, rank, slot);
            if (what >= F0 && what <= B0) {
                dts_order_add(out, rank, ops[what].kind, ops[what].chunk, seen[what]++);
            }
        }
    }
}

/* Slots of one rank: the pattern needs less than four periods per stage to run in and out. */
static int slots_needed(const dts_schedule_shape *shape) {
    return PERIOD * (4 * shape->stages + shape->microbatches + 1);
}

static dts_status make(dts_schedule *out, dts_arena *scratch) {
    const dts_schedule_shape *shape = &out->shape;
    slots s = {.stages = shape->stages, .microbatches = shape->microbatches, .length = slots_needed(shape)};
    size_t all = (size_t)s.stages * (size_t)s.length;
    s.at = dts_arena_array(scratch, all, sizeof *s.at);
    s.live = dts_arena_array(scratch, all, sizeof *s.live);
    int *seen = dts_arena_array(scratch, (size_t)s.stages * MARKS, sizeof *seen);
    bool good = s.at != NULL && s.live != NULL && seen != NULL;
    for (int what = F0; what < MARKS && good; what++) {
        s.place[what] = dts_arena_array(scratch, (size_t)s.stages * (size_t)s.microbatches, sizeof *s.place[what]);
        good = s.place[what] != NULL;
    }
    if (!good) {
        return DTS_NOMEM;
    }
    lay_pattern(&s);
    count_live(&s);
    close_up(&s, seen);
    write_out(&s, out);
    return DTS_OK;
}

static dts_status check(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check_two_chunks(shape, diag);
    if (status == DTS_OK && (double)shape->stages * slots_needed(shape) > SLOTS_MAX) {
        status = dts_diag_error(diag, NULL, NULL, "use fewer stages or microbatches",
                                "%d stages x %d microbatches are too many for a schedule made by moving operations",
                                shape->stages, shape->microbatches);
    }
    return status;
}

const dts_schedule_method dts_schedule_1f1b_v = {
    .name = "1f1b-v",
    .summary = "1f1b on two chunks as a V: fewer activations",
    .origin = "Qi et al. 2024 (controllable memory)",
    .layout = DTS_LAYOUT_V,
    .default_chunks = 2,
    .check = check,
    .make = make,
};
