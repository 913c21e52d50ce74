/* V-Half and V-Min: two chunks as a V with about a half and a third of 1F1B's activations.
 *
 * Every rank repeats a pattern of six slots, one per F, B and W of each chunk. What decides the memory is how long an
 * activation lives, that is how far the waves of forwards (F0 down, F1 up the V) and backwards (B1 down, B0 up) lie
 * apart; first slots of the waves on rank i:
 *
 *           F0    F1          B1                 B0
 *   V-Min   i     2p - i - 1  2p + g + i         4p + g - i - 1    g = 2 when 3 divides p, else 0
 *   V-Half  2i    3p - i - 2  3p + g + 2i - 1    6p + g - i - 2    g = 3 for even p, else 0
 *
 * Weight gradients fill the free slots. Then the beginning and the end are closed up, without raising the peak: once
 * with the weight gradients in place, and once more at the end with weight gradients put in afterwards. Costs are not
 * consulted: a slot is a slot.
 *
 * Peak floor(p/2) + 1 and floor((p+1)/3) + 1. The bubble for equal times and m >= 2p was fitted to simulations, and is
 * exact for all p from 3 to 16: V-Half (3p-7)/2 tF for even and (3p-4)/2 tF for odd p; V-Min (4p-5)/2 tF, and
 * (4p-7)/2 tF when 3 divides p.
 * [1] Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; [2] its code, sail-sg/zero-bubble-
 * pipeline-parallelism, zbv_greedy.py, whose orders are reproduced. */
#include <stdlib.h>
#include <string.h>

#include "schedule/order.h"

enum { PERIOD = 6, WORK_MAX = 20000000 };

/* The wave along the V; W: a weight gradient of either chunk before they are told apart. */
typedef enum mark { NONE, F0, F1, B1, B0, W, W1, W0, MARKS } mark;

typedef struct slots {
    int stages, microbatches;
    int length;  /* slots per rank */
    uint8_t *at; /* [rank][slot] mark; no slot is used twice */
    int *place;  /* [rank][mark][occurrence] slot; W has two occurrences per microbatch */
} slots;

static uint8_t *row(const slots *s, int rank) {
    return s->at + (size_t)rank * (size_t)s->length;
}

static int *place_of(const slots *s, int rank, mark what, int occurrence) {
    size_t per_mark = 2 * (size_t)s->microbatches;
    return &s->place[((size_t)rank * MARKS + (size_t)what) * per_mark + (size_t)occurrence];
}

static void lay_pattern(slots *s, bool half) {
    int p = s->stages;
    int gap = half ? (p % 2 == 0 ? 3 : 0) : (p % 3 == 0 ? 2 : 0);
    for (int i = 0; i < p; i++) {
        const int first[] = {
            [F0] = half ? 2 * i : i,
            [F1] = half ? 3 * p - i - 2 : 2 * p - i - 1,
            [B1] = half ? 3 * p + gap + 2 * i - 1 : 2 * p + gap + i,
            [B0] = half ? 6 * p + gap - i - 2 : 4 * p + gap - i - 1,
        };
        for (int what = F0; what <= B0; what++) {
            for (int k = 0; k < s->microbatches; k++) {
                row(s, i)[first[what] + k * PERIOD] = (uint8_t)what;
            }
        }
    }
}

/* The last slot of a rank that is used. */
static int last_slot(const slots *s, int rank) {
    int last = s->length - 1;
    while (last > 0 && row(s, rank)[last] == NONE) {
        last--;
    }
    return last;
}

/* Weight gradients into the free slots behind their backwards; what is left follows at the end. With told_apart those
 * of chunk 1 go first. */
static void fill_weights(slots *s, bool told_apart) {
    for (int rank = 0; rank < s->stages; rank++) {
        uint8_t *at = row(s, rank);
        int waiting[2] = {0}; /* chunk 1, chunk 0 */
        int last = last_slot(s, rank);
        for (int slot = 0; slot < s->length && (slot <= last || waiting[0] + waiting[1] > 0); slot++) {
            int which = waiting[0] > 0 ? 0 : 1;
            if (at[slot] == B1 || at[slot] == B0) {
                waiting[told_apart && at[slot] == B0 ? 1 : 0]++;
            } else if (at[slot] == NONE && waiting[which] > 0) {
                waiting[which]--;
                at[slot] = !told_apart ? W : which == 0 ? W1 : W0;
            }
        }
    }
}

static void clear_weights(slots *s) {
    for (size_t i = 0; i < (size_t)s->stages * (size_t)s->length; i++) {
        s->at[i] = s->at[i] == W ? NONE : s->at[i];
    }
}

/* Activations at the peak of a rank. Where weight gradients are not laid yet, they count as run in the first free
 * slots. */
static int peak_of(const slots *s, int rank, bool weights_laid) {
    const uint8_t *at = row(s, rank);
    int last = last_slot(s, rank);
    int live = 0;
    int peak = 0;
    int waiting = 0;
    for (int slot = 0; slot <= last; slot++) {
        switch ((mark)at[slot]) {
            case F0:
            case F1:
                live++;
                peak = live > peak ? live : peak;
                break;
            case B0:
            case B1:
                waiting++;
                break;
            case W:
                live--;
                break;
            default:
                if (!weights_laid && waiting > 0) {
                    waiting--;
                    live--;
                }
        }
    }
    return peak;
}

static void note_places(slots *s) {
    for (int rank = 0; rank < s->stages; rank++) {
        int seen[MARKS] = {0};
        for (int slot = 0; slot < s->length; slot++) {
            mark what = (mark)row(s, rank)[slot];
            if (what != NONE) {
                *place_of(s, rank, what, seen[what]++) = slot;
            }
        }
    }
}

/* The slot of the rank's backward number index, of either chunk. */
static int backward_slot(const slots *s, int rank, int index) {
    const uint8_t *at = row(s, rank);
    int slot = 0;
    for (;; slot++) {
        if ((at[slot] == B1 || at[slot] == B0) && index-- == 0) {
            return slot;
        }
    }
}

/* The slot of the latest input of an operation, by place; -1: it has none. */
static int input_slot(const slots *s, int rank, mark what, int k) {
    int slot = -1;
    bool down = what == F0 || what == B1;
    int neighbour = down ? rank - 1 : rank + 1;
    if (what <= B0 && neighbour >= 0 && neighbour < s->stages) {
        slot = *place_of(s, neighbour, what, k);
    }
    if (what > F0 && what <= B0 && *place_of(s, rank, what - 1, k) > slot) {
        slot = *place_of(s, rank, what - 1, k);
    }
    if (k > 0 && *place_of(s, rank, what, k - 1) > slot) {
        slot = *place_of(s, rank, what, k - 1);
    }
    return slot;
}

/* Moves one operation to the earliest free slot behind its inputs that does not raise the rank's peak above most. */
static void move(slots *s, int rank, int present, int k, int most, bool weights_laid) {
    uint8_t *at = row(s, rank);
    mark what = (mark)at[present];
    int input = input_slot(s, rank, what, k);
    if (what == W) {
        int backward = backward_slot(s, rank, k);
        input = backward > input ? backward : input;
    }
    at[present] = NONE;
    for (int slot = input + 1; slot < present; slot++) {
        if (at[slot] == NONE) {
            at[slot] = (uint8_t)what;
            if (peak_of(s, rank, weights_laid) <= most) {
                *place_of(s, rank, what, k) = slot;
                return;
            }
            at[slot] = NONE;
        }
    }
    at[present] = (uint8_t)what;
}

/* Slot after slot from the start: what comes before the first backward of chunk 0 on rank 0 is moved when weight
 * gradients are laid; the steady state stays; what comes after the last forward of chunk 0 is moved. */
static void close_up(slots *s, bool weights_laid, int *seen) {
    enum { BEGINNING, STEADY, END } phase = BEGINNING;
    int most = 0;
    int length = 0;
    for (int rank = 0; rank < s->stages; rank++) {
        int peak = peak_of(s, rank, weights_laid);
        most = peak > most ? peak : most;
        int last = last_slot(s, rank) + 1;
        length = last > length ? last : length;
    }
    note_places(s);
    memset(seen, 0, (size_t)s->stages * MARKS * sizeof *seen);
    for (int slot = 0; slot < length; slot++) {
        for (int rank = 0; rank < s->stages; rank++) {
            mark what = (mark)row(s, rank)[slot];
            if (what == NONE) {
                continue;
            }
            int k = seen[rank * MARKS + (int)what]++;
            if (phase == BEGINNING && what == B0 && rank == 0) {
                phase = STEADY;
            }
            if (phase == STEADY) {
                phase = what == F0 && k == s->microbatches - 1 ? END : STEADY;
                continue;
            }
            if (phase == END || weights_laid) {
                move(s, rank, slot, k, most, weights_laid);
            }
        }
    }
}

/* Every operation as early as its inputs and its rank's order allow, each taking one slot. */
static void squeeze(slots *s, int *seen, int *next_free) {
    int length = 0;
    for (int rank = 0; rank < s->stages; rank++) {
        int last = last_slot(s, rank) + 1;
        length = last > length ? last : length;
    }
    memset(seen, 0, (size_t)s->stages * MARKS * sizeof *seen);
    memset(next_free, 0, (size_t)s->stages * sizeof *next_free);
    for (int slot = 0; slot < length; slot++) {
        for (int rank = 0; rank < s->stages; rank++) {
            uint8_t *at = row(s, rank);
            mark what = (mark)at[slot];
            if (what == NONE) {
                continue;
            }
            int k = seen[rank * MARKS + (int)what]++;
            int earliest = input_slot(s, rank, what, k) + 1;
            earliest = next_free[rank] > earliest ? next_free[rank] : earliest;
            at[slot] = NONE; /* never later than where it was: those slots are free */
            at[earliest] = (uint8_t)what;
            *place_of(s, rank, what, k) = earliest;
            next_free[rank] = earliest + 1;
        }
    }
}

static void write_out(const slots *s, dts_schedule *out) {
    static const struct {
        dts_op_kind kind;
        int chunk;
    } ops[MARKS] = {
        [F0] = {DTS_OP_FORWARD, 0},        [F1] = {DTS_OP_FORWARD, 1},         [B1] = {DTS_OP_BACKWARD_INPUT, 1},
        [B0] = {DTS_OP_BACKWARD_INPUT, 0}, [W1] = {DTS_OP_BACKWARD_WEIGHT, 1}, [W0] = {DTS_OP_BACKWARD_WEIGHT, 0}};
    for (int rank = 0; rank < s->stages; rank++) {
        int seen[MARKS] = {0};
        for (int slot = 0; slot < s->length; slot++) {
            mark what = (mark)row(s, rank)[slot];
            if (what != NONE) {
                dts_order_add(out, rank, ops[what].kind, ops[what].chunk, seen[what]++);
            }
        }
    }
}

static dts_status make(dts_schedule *out, bool half, dts_arena *scratch) {
    int p = out->shape.stages;
    int m = out->shape.microbatches;
    /* the last backward begins before 6p + 3 + 6m, and at most 2m weight gradients follow */
    slots s = {.stages = p, .microbatches = m, .length = 6 * p + 4 + PERIOD * m + 2 * m};
    s.at = dts_arena_array(scratch, (size_t)p * (size_t)s.length, sizeof *s.at);
    s.place = dts_arena_array(scratch, (size_t)p * MARKS * 2 * (size_t)m, sizeof *s.place);
    int *seen = dts_arena_array(scratch, (size_t)p * MARKS, sizeof *seen);
    int *next_free = dts_arena_array(scratch, (size_t)p, sizeof *next_free);
    if (s.at == NULL || s.place == NULL || seen == NULL || next_free == NULL) {
        return DTS_NOMEM;
    }
    lay_pattern(&s, half);
    fill_weights(&s, false);
    close_up(&s, true, seen);
    squeeze(&s, seen, next_free);
    clear_weights(&s);
    close_up(&s, false, seen);
    fill_weights(&s, false);
    squeeze(&s, seen, next_free);
    clear_weights(&s);
    fill_weights(&s, true);
    write_out(&s, out);
    return DTS_OK;
}

static dts_status make_half(dts_schedule *out, dts_arena *scratch) {
    return make(out, true, scratch);
}

static dts_status make_min(dts_schedule *out, dts_arena *scratch) {
    return make(out, false, scratch);
}

/* The work of closing up grows with p² m. */
static dts_status check(const dts_schedule_shape *shape, dts_diag *diag) {
    dts_status status = dts_shape_check_two_chunks(shape, diag);
    if (status == DTS_OK && (double)shape->stages * shape->stages * shape->microbatches > WORK_MAX) {
        status = dts_diag_error(diag, NULL, NULL, "use fewer stages or microbatches, or zbv",
                                "%d stages x %d microbatches are too many for a schedule made by moving operations",
                                shape->stages, shape->microbatches);
    }
    return status;
}

static double bubble_half(const dts_schedule_shape *shape) {
    return (3 * shape->stages - (shape->stages % 2 == 0 ? 7 : 4)) / 2.0 * shape->forward;
}

static double bubble_min(const dts_schedule_shape *shape) {
    return (4 * shape->stages - (shape->stages % 3 == 0 ? 7 : 5)) / 2.0 * shape->forward;
}

static const char *limit(const dts_schedule_shape *shape) {
    if (shape->forward != shape->backward_input || shape->forward != shape->backward_weight) {
        return "it needs F, B and W to take the same time";
    }
    if (shape->stages < 3 || shape->microbatches < 2 * shape->stages) {
        return "it needs three stages and twice as many microbatches as stages";
    }
    return dts_limit_latency(shape);
}

const dts_schedule_method dts_schedule_v_half = {
    .name = "v-half",
    .summary = "zbv with about half of the activations",
    .origin = "Qi et al. 2024 (controllable memory)",
    .layout = DTS_LAYOUT_V,
    .default_chunks = 2,
    .splits_backward = true,
    .check = check,
    .make = make_half,
    .bubble = bubble_half,
    .bubble_formula = "(3p-7)F/2, for odd p (3p-4)F/2",
    .bubble_limit = limit,
};

const dts_schedule_method dts_schedule_v_min = {
    .name = "v-min",
    .summary = "zbv with about a third of the activations",
    .origin = "Qi et al. 2024 (controllable memory)",
    .layout = DTS_LAYOUT_V,
    .default_chunks = 2,
    .splits_backward = true,
    .check = check,
    .make = make_min,
    .bubble = bubble_min,
    .bubble_formula = "(4p-5)F/2, (4p-7)F/2 when 3 divides p",
    .bubble_limit = limit,
};
