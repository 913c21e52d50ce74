/* Zero-bubble orders found by list scheduling with the real costs, within a limit on activations.
 *
 * Forward number i and backward number i of all stages are placed round by round; weight gradients fill the time in
 * which a stage would wait for its input, or make room when the limit is reached. Three decisions are open: whether a
 * bubble may arise before the first backward, whether a backward may go ahead of a forward (early_backward), and
 * whether a weight gradient may be put into a wait that is shorter than itself when another stage has a larger bubble
 * anyway (greedy). All eight combinations are tried; the first with the shortest longest span wins.
 *
 *   zb1p-heuristic   limit p      span as of zb-h1
 *   zb2p-heuristic   limit 2p     never worse than zb-h2; better when 2 tW < tF + tB
 *
 * Only ratios of the costs matter. [1] Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, appendix on the
 * automatic schedule; [2] its code, sail-sg/zero-bubble-pipeline-parallelism, zb.py, whose orders are reproduced. */
#include <stdlib.h>

#include "schedule/order.h"

enum { F, B, W, KINDS };

typedef struct choices {
    bool bubble_before_first, early_backward, greedy;
} choices;

typedef struct machine {
    int stages, microbatches;
    int64_t cost[KINDS], latency;
    int64_t memory[KINDS], limit; /* what an operation adds to a stage's activations, and the most it may hold */
    choices how;
    int *count[KINDS];    /* [stages] operations placed */
    int64_t *held;        /* [stages] activations */
    int64_t *free_at;     /* [stages] end of the last operation */
    int64_t *waited;      /* [stages] waiting since the first forward */
    int64_t longest_wait; /* of all stages so far */
    int64_t *first_start; /* [stages] of F0 */
    int64_t *ends[KINDS]; /* F and B: [stages][microbatches] */
    int *wanted;          /* [stages] forwards to place in this round */
    dts_schedule *out;    /* NULL: only the span is asked for */
} machine;

static int64_t *end_of(const machine *m, int kind, int stage, int microbatch) {
    return &m->ends[kind][(size_t)stage * (size_t)m->microbatches + (size_t)microbatch];
}

static bool fits(const machine *m, int stage, int kind) {
    return m->held[stage] + m->memory[kind] <= m->limit;
}

static void put(machine *m, int stage, int kind) {
    static const dts_op_kind kinds[KINDS] = {DTS_OP_FORWARD, DTS_OP_BACKWARD_INPUT, DTS_OP_BACKWARD_WEIGHT};
    int i = m->count[kind][stage];
    int64_t at_once = m->free_at[stage] + m->cost[kind];
    int64_t end = at_once;
    int from = kind == F ? stage - 1 : stage + 1;
    if (kind != W && from >= 0 && from < m->stages) {
        int64_t arrival = *end_of(m, kind, from, i) + m->latency + m->cost[kind];
        end = arrival > end ? arrival : end;
    }
    if (m->count[F][stage] > 0) {
        m->waited[stage] += end - at_once;
        m->longest_wait = m->waited[stage] > m->longest_wait ? m->waited[stage] : m->longest_wait;
    } else {
        m->first_start[stage] = end - m->cost[F];
    }
    m->free_at[stage] = end;
    if (kind != W) {
        *end_of(m, kind, stage, i) = end;
    }
    m->count[kind][stage]++;
    m->held[stage] += m->memory[kind];
    if (m->out != NULL) {
        dts_order_add(m->out, stage, kinds[kind], 0, i);
    }
}

static bool weight_waits(const machine *m, int stage) {
    return m->count[W][stage] < m->count[B][stage];
}

/* Weight gradients that have to run first for an operation to have room. */
static void make_room(machine *m, int stage, int kind) {
    while (weight_waits(m, stage) && !fits(m, stage, kind)) {
        put(m, stage, W);
    }
}

/* Weight gradients in the time until an input arrives. */
static void fill_wait(machine *m, int stage, int64_t arrival) {
    while (weight_waits(m, stage) && m->free_at[stage] + m->cost[W] <= arrival) {
        put(m, stage, W);
    }
    if (weight_waits(m, stage) && m->free_at[stage] < arrival) {
        bool harmless_wait = arrival - m->free_at[stage] <= m->longest_wait - m->waited[stage];
        if (!harmless_wait || m->how.greedy) {
            put(m, stage, W);
        }
    }
}

/* How many forwards each stage can run before its first backward arrives. */
static void plan_warmup(machine *m) {
    int64_t arrival = 0; /* when the first backward of the stage behind ends */
    for (int j = m->stages - 1; j >= 0; j--) {
        m->wanted[j] = 0;
        if (j == m->stages - 1) {
            arrival = *end_of(m, F, j, 0) + m->cost[B];
            continue;
        }
        int64_t busy_until = m->free_at[j];
        int64_t held = m->held[j] + m->memory[F];
        for (; m->count[F][j] + m->wanted[j] < m->microbatches && held <= m->limit; held += m->memory[F]) {
            bool late = m->how.bubble_before_first ? busy_until + m->cost[F] > arrival + m->latency
                                                   : busy_until >= arrival + m->latency;
            if (late) {
                break;
            }
            busy_until += m->cost[F];
            m->wanted[j]++;
        }
        int64_t begin = arrival + m->latency;
        arrival = (busy_until > begin ? busy_until : begin) + m->cost[B];
    }
    for (int j = 1; j < m->stages; j++) { /* a stage has fewer than the one before it, unless all are under way */
        while (m->wanted[j] > 0 && m->wanted[j] >= m->wanted[j - 1] &&
               m->count[F][j] + m->wanted[j] < m->microbatches) {
            m->wanted[j]--;
        }
    }
}

static void first_round(machine *m) {
    for (int j = 0; j < m->stages; j++) {
        put(m, j, F);
    }
    plan_warmup(m);
    for (int j = 0; j < m->stages; j++) {
        for (int k = 0; k < m->wanted[j]; k++) {
            put(m, j, F);
        }
    }
    for (int j = m->stages - 1; j >= 0; j--) {
        put(m, j, B);
    }
}

/* Whether a stage that is two forwards ahead of the next should let its backward go first. */
static bool forward_can_wait(const machine *m, int j) {
    if (!m->how.early_backward || j + 1 == m->stages || m->count[F][j] < m->count[F][j + 1] + 2) {
        return false;
    }
    int64_t next_backward = m->free_at[j + 1] + m->cost[F] + m->cost[B] + m->latency;
    if (m->free_at[j] >= next_backward) {
        return true;
    }
    int64_t weights = 0; /* that have to run first for the forward to have room */
    int64_t held = m->held[j] + m->memory[F];
    for (int w = m->count[W][j]; held > m->limit && w < m->count[B][j]; w++, held += m->memory[W]) {
        weights += m->cost[W];
    }
    if (m->free_at[j] + m->cost[F] + weights <= next_backward) {
        return false;
    }
    return next_backward - m->free_at[j] <= m->longest_wait - m->waited[j];
}

static void place_forwards(machine *m) {
    for (int j = 0; j < m->stages; j++) {
        m->wanted[j] = m->count[F][j] < m->microbatches && !forward_can_wait(m, j) ? 1 : 0;
    }
    for (int j = m->stages - 2; j >= 0; j--) {
        m->wanted[j] = m->wanted[j] < m->wanted[j + 1] ? m->wanted[j] : m->wanted[j + 1];
    }
    for (int j = 0; j < m->stages; j++) {
        if (m->wanted[j] == 0) {
            continue;
        }
        make_room(m, j, F);
        if (j > 0) {
            fill_wait(m, j, *end_of(m, F, j - 1, m->count[F][j]) + m->latency);
        }
        put(m, j, F);
    }
}

static void place_backwards(machine *m, int microbatch) {
    for (int j = m->stages - 1; j >= 0; j--) {
        make_room(m, j, B);
        if (j + 1 < m->stages) {
            fill_wait(m, j, *end_of(m, B, j + 1, microbatch) + m->latency);
        }
        while (j == 0 && m->count[F][j] == m->microbatches && weight_waits(m, j)) {
            put(m, j, W);
        }
        put(m, j, B);
    }
}

/* Makes the order; returns the longest span of a stage. */
static int64_t run(machine *m) {
    for (int j = 0; j < m->stages; j++) {
        for (int kind = F; kind <= W; kind++) {
            m->count[kind][j] = 0;
        }
        m->free_at[j] = 0;
        m->waited[j] = 0;
        m->held[j] = 0;
    }
    m->longest_wait = 0;
    first_round(m);
    for (int i = 1; i < m->microbatches; i++) {
        place_forwards(m);
        place_backwards(m, i);
    }
    int64_t longest = 0;
    for (int j = 0; j < m->stages; j++) {
        while (weight_waits(m, j)) {
            put(m, j, W);
        }
        int64_t span = m->free_at[j] - m->first_start[j];
        longest = span > longest ? span : longest;
    }
    return longest;
}

static void run_best(machine *m, dts_schedule *out) {
    choices best = {0};
    int64_t shortest = 0;
    for (int variant = 0; variant < 8; variant++) {
        m->how = (choices){
            .bubble_before_first = !(variant & 4), .early_backward = !(variant & 2), .greedy = !(variant & 1)};
        int64_t span = run(m);
        if (variant == 0 || span < shortest) {
            shortest = span;
            best = m->how;
        }
    }
    m->how = best;
    m->out = out;
    run(m);
}

static dts_status make(dts_schedule *out, int limit, dts_arena *scratch) {
    const dts_schedule_shape *shape = &out->shape;
    machine m = {.stages = shape->stages,
                 .microbatches = shape->microbatches,
                 .cost = {dts_shape_ticks(shape, shape->forward), dts_shape_ticks(shape, shape->backward_input),
                          dts_shape_ticks(shape, shape->backward_weight)},
                 .latency = dts_shape_ticks(shape, shape->latency)};
    dts_shape_memory(shape, m.memory);
    m.limit = limit * m.memory[F];
    size_t stages = (size_t)shape->stages;
    bool good = true;
    for (int kind = F; kind <= W; kind++) {
        m.count[kind] = dts_arena_array(scratch, stages, sizeof *m.count[kind]);
        m.ends[kind] = dts_arena_array(scratch, kind == W ? 0 : stages * (size_t)shape->microbatches, sizeof(int64_t));
        good = good && m.count[kind] != NULL && m.ends[kind] != NULL;
    }
    m.held = dts_arena_array(scratch, stages, sizeof *m.held);
    m.free_at = dts_arena_array(scratch, stages, sizeof *m.free_at);
    m.waited = dts_arena_array(scratch, stages, sizeof *m.waited);
    m.first_start = dts_arena_array(scratch, stages, sizeof *m.first_start);
    m.wanted = dts_arena_array(scratch, stages, sizeof *m.wanted);
    if (!good || m.held == NULL || m.free_at == NULL || m.waited == NULL || m.first_start == NULL || m.wanted == NULL) {
        return DTS_NOMEM;
    }
    run_best(&m, out);
    return DTS_OK;
}

static dts_status make_1p(dts_schedule *out, dts_arena *scratch) {
    return make(out, out->shape.stages, scratch);
}

static dts_status make_2p(dts_schedule *out, dts_arena *scratch) {
    return make(out, 2 * out->shape.stages, scratch);
}

const dts_schedule_method dts_schedule_zb1p_heuristic = {
    .name = "zb1p-heuristic",
    .alias = "zb-1p",
    .summary = "zb-h1 made for the given times",
    .origin = "Qi et al. 2024, automatic schedule",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .splits_backward = true,
    .follows_costs = true,
    .check = dts_shape_check_one_chunk,
    .make = make_1p,
};

const dts_schedule_method dts_schedule_zb2p_heuristic = {
    .name = "zb2p-heuristic",
    .alias = "zb-2p",
    .summary = "zb-h2 made for the given times",
    .origin = "Qi et al. 2024, automatic schedule",
    .layout = DTS_LAYOUT_SINGLE,
    .default_chunks = 1,
    .splits_backward = true,
    .follows_costs = true,
    .check = dts_shape_check_one_chunk,
    .make = make_2p,
};
