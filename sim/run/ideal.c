/* A schedule as a task graph of the engine: one device and one stream per rank, one task per block.
 *
 *   F(i, s) waits for F(i, s-1);  B(i, s) for B(i, s+1) and F(i, s);  W(i, s) for B(i, s);  s is the virtual stage
 *
 * and a rank runs its order strictly one after another. Between different ranks a hop of c lies in between: a task of
 * its own on a lane, so that the sender goes on at once and hops never wait for each other. A fused block waits for the
 * inputs of all its parts and hands on all outputs at its end.
 *
 * Costs are in the caller's unit. Time in the engine is whole: one unit becomes 720720 · 10^k picoseconds with the
 * largest k for which the sum of all costs still fits. 720720 is divisible by 1 … 16, so that a chunk's 1/v of a cost
 * such as 0.1 is exact. */
#include "run/ideal.h"

#include <math.h>
#include <stdio.h>

#include "engine/simulate.h"

enum { PARTS = 720720 };
enum { OPERATIONS_MAX = 20000000 };    /* at about 150 bytes each */
static const double longest_ps = 4e18; /* of the 9.2e18 that dts_time holds */
static const double cost_most = 1e100; /* so that sums stay finite */

/* A hop in flight from a rank and when, in the rank's own busy time, it left. */
typedef struct lane {
    dts_id stream;
    dts_time left_at;
} lane;

/* Lanes of one rank in the order of their last use. The rank's operations follow each other, so that a hop which left
 * at least c of busy time ago has arrived: its lane is free. */
typedef struct lanes {
    lane *ring;
    size_t capacity, first, count;
    dts_time busy;
} lanes;

typedef struct lowering {
    const dts_schedule *schedule;
    const dts_ideal_costs *costs;
    dts_graph *graph;
    dts_arena *arena;
    double ps_per_unit;
    dts_time latency;
    int virtual_stages;
    size_t microbatches; /* per direction */
    dts_id *device;      /* [stages] */
    dts_id *forward;     /* [direction][virtual stage][microbatch] task of F */
    dts_id *backward;    /* the same of B or BW */
    dts_id **block;      /* [stages][op] task of the block that the operation is in */
    lanes *lanes;        /* [stages] */
} lowering;

static int direction_of(const dts_schedule *schedule, const dts_op *op) {
    return schedule->layout == DTS_LAYOUT_BIDIR ? op->chunk : 0;
}

static int stage_of(const dts_schedule *schedule, int rank, const dts_op *op) {
    return dts_virtual_stage(schedule->layout, schedule->shape.stages, rank, op->chunk);
}

/* Index into forward and backward. */
static size_t slot(const lowering *l, int direction, int stage, size_t microbatch) {
    return ((size_t)direction * (size_t)l->virtual_stages + (size_t)stage) * l->microbatches + microbatch;
}

static double cost_of(const lowering *l, const dts_op *op) {
    return dts_op_cost(l->schedule, op, l->costs->forward, l->costs->backward_input, l->costs->backward_weight);
}

static bool is_backward(const dts_op *op) {
    return op->kind == DTS_OP_BACKWARD || op->kind == DTS_OP_BACKWARD_INPUT;
}

/* How many picoseconds stand for one unit: as many as the longest conceivable makespan, all costs and hops in a row,
 * leaves room for. */
static double choose_scale(const dts_schedule *schedule, const dts_ideal_costs *costs) {
    double operations = (double)schedule->shape.stages * schedule->shape.microbatches;
    double longest = operations * (costs->forward + costs->backward_input + costs->backward_weight) +
                     2 * operations * schedule->shape.chunks * costs->latency;
    return PARTS * pow(10, floor(log10(longest_ps / longest / PARTS)));
}

static dts_status check_costs(const dts_ideal_costs *costs, dts_diag *diag) {
    const struct {
        const char *name;
        double value;
    } all[] = {{"forward", costs->forward},
               {"backward-input", costs->backward_input},
               {"backward-weight", costs->backward_weight},
               {"latency", costs->latency}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!(all[i].value >= 0 && all[i].value <= cost_most)) {
            return dts_diag_error(diag, NULL, NULL, "use 0 or a positive number",
                                  "the cost '%s' must be from 0 to %g, but is %g", all[i].name, cost_most,
                                  all[i].value);
        }
    }
    if (costs->forward + costs->backward_input + costs->backward_weight <= 0) {
        return dts_diag_error(diag, NULL, NULL, "give at least one of forward, backward-input, backward-weight",
                              "all operations cost nothing");
    }
    return DTS_OK;
}

/* The lane for the next hop from rank. */
static dts_id next_lane(lowering *l, int rank) {
    lanes *all = &l->lanes[rank];
    if (all->count > 0 && all->busy - all->ring[all->first].left_at >= l->latency) {
        lane oldest = all->ring[all->first];
        all->first = (all->first + 1) % all->capacity;
        oldest.left_at = all->busy;
        all->ring[(all->first + all->count - 1) % all->capacity] = oldest;
        return oldest.stream;
    }
    if (all->count == all->capacity) { /* grow; the arena keeps the old ring until the end */
        size_t capacity = all->capacity == 0 ? 4 : 2 * all->capacity;
        lane *ring = dts_arena_array(l->arena, capacity, sizeof *ring);
        if (ring == NULL) {
            return DTS_NO_ID;
        }
        for (size_t i = 0; i < all->count; i++) {
            ring[i] = all->ring[(all->first + i) % all->capacity];
        }
        all->ring = ring;
        all->capacity = capacity;
        all->first = 0;
    }
    lane fresh = {dts_graph_add_stream(l->graph, l->device[rank], "hop"), all->busy};
    all->ring[(all->first + all->count) % all->capacity] = fresh;
    all->count++;
    return fresh.stream;
}

/* What a task waits for on the other side of a hop is the hop's task. Both sides of a rank's border need no hop. */
static void hand_on(lowering *l, int rank, const dts_op *op, dts_id block) {
    const dts_schedule *schedule = l->schedule;
    int stage = stage_of(schedule, rank, op);
    int direction = direction_of(schedule, op);
    int to = op->kind == DTS_OP_FORWARD ? stage + 1 : stage - 1;
    dts_id *table = op->kind == DTS_OP_FORWARD ? l->forward : l->backward;
    dts_id arrival = block;
    if (to >= 0 && to < l->virtual_stages && l->latency > 0) {
        int owner;
        int chunk;
        dts_virtual_stage_owner(schedule->layout, schedule->shape.stages, to, direction, &owner, &chunk);
        if (owner != rank) {
            dts_id stream = next_lane(l, rank);
            arrival = dts_graph_add_task(l->graph,
                                         &(dts_task){.streams = &stream, .stream_count = 1, .duration = l->latency});
            dts_graph_depend(l->graph, arrival, block);
        }
    }
    table[slot(l, direction, stage, op->microbatch)] = arrival;
}

static void add_rank_tasks(lowering *l, int rank, dts_id stream) {
    const dts_op *ops = l->schedule->ops[rank];
    size_t count = l->schedule->op_count[rank];
    for (size_t i = 0; i < count;) {
        size_t end = i + dts_schedule_block_size(l->schedule, rank, i);
        dts_time duration = 0;
        for (size_t j = i; j < end; j++) {
            duration += (dts_time)llround(cost_of(l, &ops[j]) * l->ps_per_unit);
        }
        dts_id block =
            dts_graph_add_task(l->graph, &(dts_task){.streams = &stream, .stream_count = 1, .duration = duration});
        l->lanes[rank].busy += duration;
        for (; i < end; i++) {
            l->block[rank][i] = block;
            if (ops[i].kind != DTS_OP_BACKWARD_WEIGHT) {
                hand_on(l, rank, &ops[i], block);
            }
        }
    }
}

/* W of a rank and F before B on one rank need no dependency: they stand in the rank's order. */
static void add_dependencies(lowering *l, int rank) {
    const dts_schedule *schedule = l->schedule;
    for (size_t i = 0; i < schedule->op_count[rank]; i++) {
        const dts_op *op = &schedule->ops[rank][i];
        int stage = stage_of(schedule, rank, op);
        int direction = direction_of(schedule, op);
        if (op->kind == DTS_OP_FORWARD && stage > 0) {
            dts_graph_depend(l->graph, l->block[rank][i], l->forward[slot(l, direction, stage - 1, op->microbatch)]);
        }
        if (is_backward(op) && stage + 1 < l->virtual_stages) {
            dts_graph_depend(l->graph, l->block[rank][i], l->backward[slot(l, direction, stage + 1, op->microbatch)]);
        }
    }
}

static dts_status allocate(lowering *l) {
    const dts_schedule *schedule = l->schedule;
    size_t stages = (size_t)schedule->shape.stages;
    bool both = schedule->layout == DTS_LAYOUT_BIDIR;
    l->virtual_stages = dts_virtual_stage_count(schedule->layout, schedule->shape.stages, schedule->shape.chunks);
    l->microbatches = (size_t)schedule->shape.microbatches / (both ? 2 : 1);
    size_t slots = (both ? 2 : 1) * (size_t)l->virtual_stages * l->microbatches;
    l->forward = dts_arena_array(l->arena, slots, sizeof *l->forward);
    l->backward = dts_arena_array(l->arena, slots, sizeof *l->backward);
    l->device = dts_arena_array(l->arena, stages, sizeof *l->device);
    l->block = dts_arena_array(l->arena, stages, sizeof *l->block);
    l->lanes = dts_arena_array(l->arena, stages, sizeof *l->lanes);
    bool good = l->forward != NULL && l->backward != NULL && l->device != NULL && l->block != NULL && l->lanes != NULL;
    for (size_t rank = 0; good && rank < stages; rank++) {
        l->block[rank] = dts_arena_array(l->arena, schedule->op_count[rank], sizeof *l->block[rank]);
        good = l->block[rank] != NULL;
    }
    return good ? DTS_OK : DTS_NOMEM;
}

static dts_status lower(lowering *l) {
    if (allocate(l) != DTS_OK) {
        return DTS_NOMEM;
    }
    for (int rank = 0; rank < l->schedule->shape.stages; rank++) {
        char name[32];
        snprintf(name, sizeof name, "stage %d", rank);
        l->device[rank] = dts_graph_add_device(l->graph, name);
        dts_id stream = dts_graph_add_stream(l->graph, l->device[rank], name);
        add_rank_tasks(l, rank, stream);
    }
    for (int rank = 0; rank < l->schedule->shape.stages; rank++) {
        add_dependencies(l, rank);
    }
    return DTS_OK;
}

static dts_status collect_rank(const lowering *l, const dts_simulation *simulation, int rank, dts_ideal *out) {
    size_t count = l->schedule->op_count[rank];
    const dts_time *starts = dts_simulation_starts(simulation);
    const dts_time *ends = dts_simulation_ends(simulation);
    out->start[rank] = dts_arena_array(l->arena, count, sizeof *out->start[rank]);
    out->end[rank] = dts_arena_array(l->arena, count, sizeof *out->end[rank]);
    if (out->start[rank] == NULL || out->end[rank] == NULL) {
        return DTS_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        out->start[rank][i] = (double)starts[l->block[rank][i]] / l->ps_per_unit;
        out->end[rank][i] = (double)ends[l->block[rank][i]] / l->ps_per_unit;
    }
    out->idle[rank] = (double)(dts_simulation_end(simulation) - l->lanes[rank].busy) / l->ps_per_unit;
    out->peak_activation[rank] = dts_schedule_peak_activation(l->schedule, rank);
    double span = count == 0 ? 0 : out->end[rank][count - 1] - out->start[rank][0];
    out->max_stage_span = fmax(out->max_stage_span, span);
    return DTS_OK;
}

static dts_status collect(const lowering *l, const dts_simulation *simulation, dts_ideal *out) {
    size_t stages = (size_t)l->schedule->shape.stages;
    *out = (dts_ideal){.makespan = (double)dts_simulation_end(simulation) / l->ps_per_unit};
    out->idle = dts_arena_array(l->arena, stages, sizeof *out->idle);
    out->peak_activation = dts_arena_array(l->arena, stages, sizeof *out->peak_activation);
    out->start = dts_arena_array(l->arena, stages, sizeof *out->start);
    out->end = dts_arena_array(l->arena, stages, sizeof *out->end);
    if (out->idle == NULL || out->peak_activation == NULL || out->start == NULL || out->end == NULL) {
        return DTS_NOMEM;
    }
    double idle = 0;
    for (size_t rank = 0; rank < stages; rank++) {
        if (collect_rank(l, simulation, (int)rank, out) != DTS_OK) {
            return DTS_NOMEM;
        }
        idle += out->idle[rank];
    }
    out->bubble_fraction = idle / ((double)stages * out->makespan);
    return DTS_OK;
}

static dts_status check_size(const dts_schedule *schedule, dts_diag *diag) {
    size_t operations = 0;
    for (int rank = 0; rank < schedule->shape.stages; rank++) {
        operations += schedule->op_count[rank];
    }
    if (operations > OPERATIONS_MAX) {
        return dts_diag_error(diag, NULL, NULL, "use fewer stages, microbatches or chunks",
                              "%zu operations are too many to be simulated at once (at most %d)", operations,
                              (int)OPERATIONS_MAX);
    }
    return DTS_OK;
}

dts_status dts_ideal_run(const dts_schedule *schedule, const dts_ideal_costs *costs, dts_arena *arena, dts_ideal *out,
                         dts_diag *diag) {
    dts_status status = check_costs(costs, diag);
    if (status == DTS_OK) {
        status = check_size(schedule, diag);
    }
    if (status != DTS_OK) {
        return status;
    }
    lowering l = {.schedule = schedule, .costs = costs, .arena = arena, .ps_per_unit = choose_scale(schedule, costs)};
    l.latency = (dts_time)llround(costs->latency * l.ps_per_unit);
    l.graph = dts_graph_new();
    dts_simulation *simulation = NULL;
    status = l.graph == NULL ? DTS_NOMEM : lower(&l);
    if (status == DTS_OK) {
        status = dts_graph_freeze(l.graph, diag);
    }
    if (status == DTS_OK) {
        status = dts_simulate(l.graph, NULL, &simulation, diag);
    }
    if (status == DTS_OK) {
        status = collect(&l, simulation, out);
    }
    dts_simulation_free(simulation);
    dts_graph_free(l.graph);
    if (status == DTS_NOMEM && diag != NULL && dts_diag_errors(diag) == 0) {
        dts_diag_nomem(diag);
    }
    return status;
}
