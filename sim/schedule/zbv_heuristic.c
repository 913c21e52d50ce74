/* ZB-V found by list scheduling with the real costs, within 1F1B's memory of p microbatches.
 *
 * On a V of two chunks the stages place one backward and then one forward each, round by round: which chunk's turn it
 * is follows from what has arrived. Weight gradients fill the waits, or make room when the memory is full; into a wait
 * that is shorter than itself one is put when the stage would otherwise wait longer in total than the worst stage does
 * (fill_forward, fill_backward choose for which operations). All four combinations are tried. After a run the waits
 * that each stage turned out to have are allowed from the start in another run, as long as the worst wait shrinks.
 *
 * Here the wave along the V is F0 down, F1 up, B0 down, B1 up: B0 belongs to chunk 1, B1 to chunk 0.
 *
 * [1] Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; [2] its code, sail-sg/zero-bubble-
 * pipeline-parallelism, zbv.py, whose orders are reproduced. */
#include <stdlib.h>
#include <string.h>

#include "schedule/order.h"

enum { F, B, W, KINDS };

static const int64_t not_yet = -1; /* end of what has not been placed */

/* One order: per stage the operations as kind and leg, and how long the stage waits. */
typedef struct trial {
    uint8_t *ops;    /* [stages][6 microbatches] kind * 2 + leg */
    int64_t *waited; /* [stages] */
    int64_t worst;   /* longest of these so far */
} trial;

typedef struct machine {
    int stages, microbatches;
    int64_t cost[KINDS], latency;
    int64_t memory[KINDS], limit; /* what an operation adds to a stage's activations, and the most it may hold */
    bool fill_forward, fill_backward;
    const int64_t *allowed; /* [stages] waits of the run before; NULL in the first */
    int64_t allowed_worst;
    int *count;       /* [stages][kind * 2 + leg] placed */
    int *placed;      /* [stages] */
    int64_t *held;    /* [stages] activations */
    int64_t *now;     /* [stages] end of the last operation */
    int64_t *ends;    /* [kind F, B][leg][stages][microbatches] */
    int64_t last_end; /* of the last weight gradient of leg 1 on the last stage */
    uint8_t *legs;    /* [stages][2 microbatches] of the backwards, in the order of their weight gradients */
    trial *result;
} machine;

static int *count_of(const machine *m, int stage, int kind, int leg) {
    return &m->count[stage * KINDS * 2 + kind * 2 + leg];
}

static int64_t *end_of(const machine *m, int kind, int leg, int stage, int microbatch) {
    size_t wave = (size_t)(kind * 2 + leg) * (size_t)m->stages + (size_t)stage;
    return &m->ends[wave * (size_t)m->microbatches + (size_t)microbatch];
}

static int weights_waiting(const machine *m, int stage) {
    return *count_of(m, stage, B, 0) + *count_of(m, stage, B, 1) - *count_of(m, stage, W, 0) -
           *count_of(m, stage, W, 1);
}

/* How long the stage may still wait without being the worst. */
static int64_t wait_left(const machine *m, int stage) {
    int64_t worst = m->result->worst;
    if (m->allowed != NULL && m->allowed_worst - m->allowed[stage] > worst) {
        worst = m->allowed_worst - m->allowed[stage];
    }
    return worst - m->result->waited[stage];
}

/* The stage that the input of a forward or backward comes from on this leg, or -1. */
static int neighbour(const machine *m, int stage, int leg) {
    int from = leg == 0 ? stage - 1 : stage + 1;
    return from < m->stages ? from : -1;
}

static void put(machine *m, int stage, int kind, int leg) {
    int i = (*count_of(m, stage, kind, leg))++;
    m->held[stage] += m->memory[kind];
    int64_t at_once = m->now[stage] + m->cost[kind];
    int64_t end = at_once;
    int from = neighbour(m, stage, leg);
    if (kind != W && from >= 0) {
        int64_t arrival = *end_of(m, kind, leg, from, i) + m->latency + m->cost[kind];
        end = arrival > end ? arrival : end;
    }
    if (m->placed[stage] > 0) {
        int64_t *waited = &m->result->waited[stage];
        *waited += end - at_once;
        m->result->worst = *waited > m->result->worst ? *waited : m->result->worst;
    }
    m->now[stage] = end;
    if (kind != W) {
        *end_of(m, kind, leg, stage, i) = end;
    } else if (leg == 1 && stage == m->stages - 1 && i == m->microbatches - 1) {
        m->last_end = end;
    }
    if (kind == B) {
        size_t backwards = (size_t)*count_of(m, stage, B, 0) + (size_t)*count_of(m, stage, B, 1);
        m->legs[(size_t)stage * 2 * (size_t)m->microbatches + backwards - 1] = (uint8_t)leg;
    }
    size_t at = (size_t)stage * 6 * (size_t)m->microbatches + (size_t)m->placed[stage]++;
    m->result->ops[at] = (uint8_t)(kind * 2 + leg);
}

static void put_weight(machine *m, int stage) {
    size_t done = (size_t)*count_of(m, stage, W, 0) + (size_t)*count_of(m, stage, W, 1);
    put(m, stage, W, m->legs[(size_t)stage * 2 * (size_t)m->microbatches + done]);
}

/* Weight gradients that have to run first for an operation to have room. */
static void make_room(machine *m, int stage, int kind) {
    while (weights_waiting(m, stage) > 0 && m->held[stage] + m->memory[kind] > m->limit) {
        put_weight(m, stage);
    }
}

static void place_warmup(machine *m) {
    int p = m->stages;
    for (int j = 0; j < p; j++) {
        put(m, j, F, 0);
    }
    put(m, p - 1, F, 1);
    for (int j = p - 2; j >= 0; j--) {
        int64_t arrival = *end_of(m, F, 1, j + 1, 0) + m->latency;
        while (m->held[j] + (2 + 2 * j) * m->memory[F] <= m->limit && m->now[j] + m->cost[F] <= arrival &&
               *count_of(m, j, F, 0) < m->microbatches) {
            for (int k = 0; k <= j; k++) {
                put(m, k, F, 0);
            }
        }
        put(m, j, F, 1);
    }
    int leg = 0;
    for (int j = 1; j < p; j++) { /* as many forwards on every stage as on the one before it */
        const int *own = count_of(m, j, F, 0);
        const int *before = count_of(m, j - 1, F, 0);
        while (own[0] + own[1] < before[0] + before[1] || (own[1] <= before[1] && before[1] < m->microbatches)) {
            for (int k = p - 1; k >= j; k--) {
                if (*count_of(m, k, F, leg) < m->microbatches) {
                    put(m, k, F, leg);
                }
            }
            leg = 1 - leg;
        }
    }
}

/* Weight gradients before an operation whose input comes over a hop (or, at the turns of the V, from the rank itself:
 * then the order's last end stands in, which is in the future until the very end). */
static void fill_wait(machine *m, int stage, int kind, int leg, bool short_waits_too) {
    int from = neighbour(m, stage, leg);
    int64_t end = from >= 0 ? *end_of(m, kind, leg, from, *count_of(m, stage, kind, leg)) : m->last_end;
    while (weights_waiting(m, stage) > 0 && from >= 0 && end + m->latency >= m->now[stage] + m->cost[W]) {
        put_weight(m, stage);
    }
    if (weights_waiting(m, stage) > 0 && end + m->latency - m->now[stage] > wait_left(m, stage) && short_waits_too) {
        put_weight(m, stage);
    }
}

/* Leg of the stage's next backward: the second as soon as its input has been placed. */
static int backward_leg(const machine *m, int stage) {
    int first = *count_of(m, stage, B, 0);
    int second = *count_of(m, stage, B, 1);
    if (second >= first) {
        return 0;
    }
    if (stage == m->stages - 1 || first >= m->microbatches) {
        return 1;
    }
    return *end_of(m, B, 1, stage + 1, second) >= 0 ? 1 : 0;
}

static void place_backwards(machine *m, uint8_t *legs) {
    for (int j = 0; j < m->stages; j++) {
        make_room(m, j, B);
        legs[j] = (uint8_t)backward_leg(m, j);
    }
    for (int j = m->stages - 1; j >= 0; j--) {
        if (legs[j] == 1) {
            fill_wait(m, j, B, 1, true);
            put(m, j, B, 1);
        }
    }
    for (int j = 0; j < m->stages; j++) {
        if (legs[j] == 0) {
            fill_wait(m, j, B, 0, m->fill_backward);
            put(m, j, B, 0);
        }
    }
}

/* Leg of the stage's next forward, or -1 when none has its input. */
static int forward_leg(const machine *m, int stage) {
    int first = *count_of(m, stage, F, 0);
    int second = *count_of(m, stage, F, 1);
    if (second >= m->microbatches) {
        return -1;
    }
    if (second >= first) {
        return 0;
    }
    if (stage == m->stages - 1 || *end_of(m, F, 1, stage + 1, second) >= 0) {
        return 1;
    }
    if (first < m->microbatches && (stage == 0 || *end_of(m, F, 0, stage - 1, first) >= 0)) {
        return 0;
    }
    return -1;
}

static void place_forwards(machine *m) {
    for (int j = 0; j < m->stages; j++) {
        int leg = forward_leg(m, j);
        if (leg < 0) {
            continue;
        }
        make_room(m, j, F);
        fill_wait(m, j, F, leg, m->fill_forward);
        put(m, j, F, leg);
    }
}

static void run(machine *m, uint8_t *legs, trial *result) {
    size_t stages = (size_t)m->stages;
    m->result = result;
    memset(m->count, 0, stages * KINDS * 2 * sizeof *m->count);
    memset(m->placed, 0, stages * sizeof *m->placed);
    memset(m->held, 0, stages * sizeof *m->held);
    memset(m->now, 0, stages * sizeof *m->now);
    memset(result->waited, 0, stages * sizeof *result->waited);
    for (size_t i = 0; i < 4 * stages * (size_t)m->microbatches; i++) {
        m->ends[i] = not_yet;
    }
    m->last_end = not_yet;
    result->worst = 0;
    place_warmup(m);
    for (int round = 0; round < 2 * m->microbatches; round++) {
        place_backwards(m, legs);
        place_forwards(m);
    }
    for (int j = 0; j < m->stages; j++) {
        while (weights_waiting(m, j) > 0) {
            put_weight(m, j);
        }
    }
}

static void swap(trial *a, trial *b) {
    trial c = *a;
    *a = *b;
    *b = c;
}

/* One combination: repeated with the waits that came out, while the worst shrinks. spare ends as garbage. */
static void run_repeatedly(machine *m, uint8_t *legs, trial *result, trial *spare) {
    m->allowed = NULL;
    run(m, legs, result);
    for (;;) {
        m->allowed = result->waited;
        m->allowed_worst = result->worst;
        run(m, legs, spare);
        if (!(spare->worst < result->worst)) {
            return;
        }
        swap(result, spare);
    }
}

static void write_out(const machine *m, const trial *best, dts_schedule *out) {
    static const dts_op_kind kinds[KINDS] = {DTS_OP_FORWARD, DTS_OP_BACKWARD_INPUT, DTS_OP_BACKWARD_WEIGHT};
    for (int j = 0; j < m->stages; j++) {
        int seen[KINDS * 2] = {0};
        for (int i = 0; i < 6 * m->microbatches; i++) {
            int what = best->ops[(size_t)j * 6 * (size_t)m->microbatches + (size_t)i];
            int leg = what % 2;
            dts_order_add(out, j, kinds[what / 2], what / 2 == F ? leg : 1 - leg, seen[what]++);
        }
    }
}

static dts_status make(dts_schedule *out, dts_arena *scratch) {
    const dts_schedule_shape *shape = &out->shape;
    size_t stages = (size_t)shape->stages;
    size_t microbatches = (size_t)shape->microbatches;
    machine m = {.stages = shape->stages,
                 .microbatches = shape->microbatches,
                 .cost = {dts_shape_ticks(shape, shape->forward / 2), dts_shape_ticks(shape, shape->backward_input / 2),
                          dts_shape_ticks(shape, shape->backward_weight / 2)},
                 .latency = dts_shape_ticks(shape, shape->latency)};
    dts_shape_memory(shape, m.memory);
    m.limit = INT64_C(2) * shape->stages * m.memory[F]; /* forwards of chunks */
    m.held = dts_arena_array(scratch, stages, sizeof *m.held);
    m.count = dts_arena_array(scratch, stages * KINDS * 2, sizeof *m.count);
    m.placed = dts_arena_array(scratch, stages, sizeof *m.placed);
    m.now = dts_arena_array(scratch, stages, sizeof *m.now);
    m.ends = dts_arena_array(scratch, 4 * stages * microbatches, sizeof *m.ends);
    m.legs = dts_arena_array(scratch, 2 * stages * microbatches, sizeof *m.legs);
    uint8_t *legs = dts_arena_array(scratch, stages, sizeof *legs);
    bool good = m.held && m.count && m.placed && m.now && m.ends && m.legs && legs;
    trial trials[3]; /* best, this one, spare */
    for (size_t i = 0; i < 3; i++) {
        trials[i].ops = dts_arena_array(scratch, 6 * stages * microbatches, sizeof *trials[i].ops);
        trials[i].waited = dts_arena_array(scratch, stages, sizeof *trials[i].waited);
        good = good && trials[i].ops != NULL && trials[i].waited != NULL;
    }
    if (!good) {
        return DTS_NOMEM;
    }
    for (int variant = 0; variant < 4; variant++) {
        m.fill_backward = !(variant & 2);
        m.fill_forward = !(variant & 1);
        run_repeatedly(&m, legs, &trials[1], &trials[2]);
        if (variant == 0 || trials[1].worst < trials[0].worst) {
            swap(&trials[0], &trials[1]);
        }
    }
    write_out(&m, &trials[0], out);
    return DTS_OK;
}

const dts_schedule_method dts_schedule_zbv_heuristic = {
    .name = "zbv-heuristic",
    .summary = "zbv made for the given times",
    .origin = "Qi et al. 2024 (controllable memory)",
    .layout = DTS_LAYOUT_V,
    .default_chunks = 2,
    .splits_backward = true,
    .follows_costs = true,
    .check = dts_shape_check_two_chunks,
    .make = make,
};
