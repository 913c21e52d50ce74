/* The tasks of one operator of a SOAP strategy.
 *
 * A transfer takes latency + bytes / bandwidth on idle links (network.h); all-reduces take the closed form of their
 * group. */
#include "plan/lower/soap.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "plan/lower/soap_inside.h"

static uint32_t compute_stream(uint32_t device) {
    return 3 * device;
}

static uint32_t port(uint32_t device, bool in) {
    return 3 * device + (in ? 2 : 1);
}

/* The adapter that a device sends through. */
static uint32_t lane(const dts_soap_problem *p, uint32_t device, bool in) {
    uint32_t node = device / p->devices_per_node, local = device % p->devices_per_node;
    uint32_t adapter = node * p->lanes_per_node + local * p->lanes_per_node / p->devices_per_node;
    return 3 * p->devices + 2 * adapter + (in ? 1 : 0);
}

void dts_soap_group_free(dts_soap_group *group) {
    free(group->tasks);
    free(group->streams);
    free(group->afters);
    free(group->used);
    *group = (dts_soap_group){0};
}

static dts_soap_task *add_task(dts_soap_group *g, dts_time duration, dts_soap_slot slot) {
    dts_soap_task *tasks = dts_array_room(g->tasks, &g->task_capacity, g->task_count + 1, sizeof *tasks);
    if (tasks == NULL) {
        return NULL;
    }
    g->tasks = tasks;
    dts_soap_task *task = &g->tasks[g->task_count++];
    *task = (dts_soap_task){.duration = duration,
                            .slot = slot,
                            .first_stream = (uint32_t)g->stream_count,
                            .first_after = (uint32_t)g->after_count};
    return task;
}

static bool add_stream(dts_soap_lowering *l, dts_soap_group *g, dts_soap_task *task, uint32_t stream) {
    uint32_t *streams = dts_array_room(g->streams, &g->stream_capacity, g->stream_count + 1, sizeof *streams);
    g->streams = streams != NULL ? streams : g->streams;
    uint32_t *used = dts_array_room(g->used, &g->used_capacity, g->used_count + 1, sizeof *used);
    g->used = used != NULL ? used : g->used;
    if (streams == NULL || used == NULL) {
        return false;
    }
    g->streams[g->stream_count++] = stream;
    task->stream_count++;
    if (l->stamps[stream] != l->stamp) {
        l->stamps[stream] = l->stamp;
        g->used[g->used_count++] = stream;
    }
    return true;
}

static bool add_after(dts_soap_group *g, dts_soap_task *task, dts_soap_slot slot) {
    dts_soap_slot *afters = dts_array_room(g->afters, &g->after_capacity, g->after_count + 1, sizeof *afters);
    if (afters == NULL) {
        return false;
    }
    g->afters = afters;
    g->afters[g->after_count++] = slot;
    task->after_count++;
    return true;
}

static dts_soap_slot slot_of(const dts_soap_problem *p, dts_soap_kind kind, size_t op, int64_t part) {
    return (dts_soap_slot)(((size_t)kind * p->graph->count + op) * p->devices + (size_t)part);
}

static const dts_soap_cut *cut_of(const dts_soap_problem *p, const dts_soap_choice *choices, size_t op) {
    return &p->cuts[op].items[choices[op].cut];
}

/* One edge of the graph, seen from the operator whose group is built: `self` receives from `other`. */
typedef struct edge {
    size_t self, other;
    size_t input; /* of the operator that reads (forward: self, backward: other) */
    bool backward;
} edge;

/* Bytes that part j of self wants from part k of other. */
static double wanted_B(const dts_soap_lowering *l, const dts_soap_choice *choices, const edge *e, const dts_box *mine,
                       int64_t k) {
    const dts_soap_problem *p = l->problem;
    const dts_tensor_op *self = &p->graph->ops[e->self], *other = &p->graph->ops[e->other];
    dts_box theirs = dts_soap_part(other, cut_of(p, choices, e->other), k);
    dts_box need = e->backward ? dts_tensor_op_needs(p->graph, other, e->input, &theirs)
                               : dts_tensor_op_needs(p->graph, self, e->input, mine);
    dts_box common =
        e->backward ? dts_box_common(&need, mine, self->dims) : dts_box_common(&need, &theirs, other->dims);
    return dts_box_elements(&common, e->backward ? self->dims : other->dims) * l->execution.element_B;
}

/* from and to: devices; part: the one of self that receives. */
static bool add_transfer(dts_soap_lowering *l, dts_soap_group *g, uint32_t from, uint32_t to, int64_t part,
                         double bytes, dts_soap_slot after) {
    const dts_soap_problem *p = l->problem;
    bool same_node = from / p->devices_per_node == to / p->devices_per_node;
    dts_transfer transfer;
    dts_p2p_transfer(p->cluster, same_node, bytes, &transfer);
    uint32_t index = (uint32_t)g->link_count++;
    dts_soap_task *task = add_task(g, dts_time_from_s(transfer.alone_s), DTS_SOAP_LOCAL | index);
    if (task == NULL) {
        return false;
    }
    task->next = l->latest[part];
    l->latest[part] = index;
    bool ok = add_stream(l, g, task, port(from, false)) && add_stream(l, g, task, port(to, true));
    if (ok && !same_node) {
        ok = add_stream(l, g, task, lane(p, from, false)) && add_stream(l, g, task, lane(p, to, true));
    }
    return ok && add_after(g, task, after);
}

static bool contains(const dts_box *outer, const dts_box *inner, int dims) {
    for (int d = 0; d < dims; d++) {
        if (inner->low[d] < outer->low[d] || inner->high[d] > outer->high[d]) {
            return false;
        }
    }
    return true;
}

/* Does every device already hold what it wants of this edge? The common case, and much quicker to see than all pairs
 * of parts. */
static bool is_local(const dts_soap_problem *p, const dts_soap_choice *choices, const edge *e) {
    size_t reader = e->backward ? e->other : e->self, maker = e->backward ? e->self : e->other;
    const dts_tensor_op *reads = &p->graph->ops[reader], *makes = &p->graph->ops[maker];
    const dts_soap_cut *cut = cut_of(p, choices, reader), *made = cut_of(p, choices, maker);
    if (choices[reader].first != choices[maker].first || cut->parts != made->parts) {
        return false;
    }
    for (int64_t j = 0; j < cut->parts; j++) {
        dts_box part = dts_soap_part(reads, cut, j), held = dts_soap_part(makes, made, j);
        dts_box need = dts_tensor_op_needs(p->graph, reads, e->input, &part);
        if (!contains(&held, &need, makes->dims)) {
            return false;
        }
    }
    return true;
}

/* Transfers of one edge, in rounds in which every device sends to the one `round` places further, so that ports are
 * busy side by side. What lies on the same device already is no transfer. */
static bool add_transfers(dts_soap_lowering *l, const dts_soap_choice *choices, const edge *e, dts_soap_group *g) {
    const dts_soap_problem *p = l->problem;
    if (is_local(p, choices, e)) {
        return true;
    }
    const dts_soap_cut *mine = cut_of(p, choices, e->self), *theirs = cut_of(p, choices, e->other);
    dts_soap_kind kind = e->backward ? DTS_SOAP_BACKWARD : DTS_SOAP_FORWARD;
    for (uint32_t round = 1; round < p->devices; round++) {
        for (int64_t j = 0; j < mine->parts; j++) {
            uint32_t to = choices[e->self].first + (uint32_t)j;
            uint32_t from = (to + p->devices - round) % p->devices;
            int64_t k = (int64_t)from - choices[e->other].first;
            if (k < 0 || k >= theirs->parts) {
                continue;
            }
            dts_box box = dts_soap_part(&p->graph->ops[e->self], mine, j);
            double bytes = wanted_B(l, choices, e, &box, k);
            if (bytes > 0 && !add_transfer(l, g, from, to, j, bytes, slot_of(p, kind, e->other, k))) {
                return false;
            }
        }
    }
    return true;
}

/* The main task of a part: after the transfers to it, and after what its own device made for it. */
static bool add_main(dts_soap_lowering *l, const dts_soap_choice *choices, const edge *edges, size_t edge_count,
                     dts_soap_group *g, dts_soap_kind kind, size_t op, int64_t part, dts_time duration) {
    const dts_soap_problem *p = l->problem;
    uint32_t device = choices[op].first + (uint32_t)part;
    dts_soap_task *task = add_task(g, duration, slot_of(p, kind, op, part));
    if (task == NULL || !add_stream(l, g, task, compute_stream(device))) {
        return false;
    }
    dts_box box = dts_soap_part(&p->graph->ops[op], cut_of(p, choices, op), part);
    for (size_t i = 0; i < edge_count; i++) {
        int64_t k = (int64_t)device - choices[edges[i].other].first;
        if (k >= 0 && k < cut_of(p, choices, edges[i].other)->parts && wanted_B(l, choices, &edges[i], &box, k) > 0 &&
            !add_after(g, task, slot_of(p, kind, edges[i].other, k))) {
            return false;
        }
    }
    for (uint32_t i = l->latest[part]; i != DTS_SOAP_LOCAL; i = g->tasks[i].next) {
        if (!add_after(g, task, DTS_SOAP_LOCAL | i)) {
            return false;
        }
    }
    return true;
}

enum { MOST_EDGES = 1024 };

/* Whom an operator receives from: its inputs, or in backward its readers. 0 when there are more than MOST_EDGES. */
static size_t list_edges(const dts_soap_problem *p, size_t op, bool backward, edge *edges) {
    const dts_tensor_op *self = &p->graph->ops[op];
    size_t count = 0;
    for (size_t k = 0; !backward && k < self->input_count && count < MOST_EDGES; k++) {
        if (p->graph->ops[self->inputs[k]].type != DTS_TENSOR_INPUT) {
            edges[count++] = (edge){.self = op, .other = self->inputs[k], .input = k};
        }
    }
    for (size_t c = 0; backward && c < p->consumer_count[op]; c++) {
        uint32_t reader = p->consumers[op][c];
        if (c > 0 && p->consumers[op][c - 1] == reader) {
            continue; /* all of its inputs were listed at once */
        }
        const dts_tensor_op *reads = &p->graph->ops[reader];
        for (size_t k = 0; k < reads->input_count && count < MOST_EDGES; k++) {
            if (reads->inputs[k] == op) {
                edges[count++] = (edge){.self = op, .other = reader, .input = k, .backward = true};
            }
        }
    }
    return count;
}

/* Which share of the weights a part has, and how many shares there are. */
static int64_t share_of(const dts_tensor_op *op, const dts_soap_cut *cut, int64_t part, int64_t *shares) {
    int64_t share = 0, factor = 1;
    for (int d = op->dims - 1; d >= 0; d--) {
        if (op->split[d] == DTS_SPLIT_PARAMETER) {
            share += part % cut->degree[d] * factor;
            factor *= cut->degree[d];
        }
        part /= cut->degree[d];
    }
    *shares = factor;
    return share;
}

/* Adds a stream to a task unless it has it: members of a node may share an adapter. */
static bool add_stream_once(dts_soap_lowering *l, dts_soap_group *g, dts_soap_task *task, uint32_t stream) {
    for (uint32_t s = 0; s < task->stream_count; s++) {
        if (g->streams[task->first_stream + s] == stream) {
            return true;
        }
    }
    return add_stream(l, g, task, stream);
}

/* The all-reduce of one share among the parts that have it. */
static bool add_sync(dts_soap_lowering *l, const dts_soap_choice *choices, dts_soap_group *g, size_t op, int64_t share,
                     double bytes) {
    const dts_soap_problem *p = l->problem;
    const dts_tensor_op *self = &p->graph->ops[op];
    const dts_soap_cut *cut = cut_of(p, choices, op);
    dts_placement placement = {0};
    uint32_t last_node = UINT32_MAX;
    int64_t shares;
    dts_soap_task *task = add_task(g, 0, slot_of(p, DTS_SOAP_SYNC, op, share));
    bool ok = task != NULL;
    for (int64_t j = 0; j < cut->parts && ok; j++) {
        if (share_of(self, cut, j, &shares) == share) {
            uint32_t device = choices[op].first + (uint32_t)j, node = device / p->devices_per_node;
            placement.ranks++;
            placement.nodes += node != last_node;
            last_node = node;
            ok = add_stream(l, g, task, port(device, false)) && add_stream(l, g, task, port(device, true)) &&
                 add_after(g, task, slot_of(p, DTS_SOAP_BACKWARD, op, j));
        }
    }
    for (int64_t j = 0; j < cut->parts && ok && placement.nodes > 1; j++) {
        if (share_of(self, cut, j, &shares) == share) {
            uint32_t device = choices[op].first + (uint32_t)j;
            ok = add_stream_once(l, g, task, lane(p, device, false)) &&
                 add_stream_once(l, g, task, lane(p, device, true));
        }
    }
    if (ok) {
        dts_transfer transfer;
        dts_collective_transfer(p->cluster, DTS_ALL_REDUCE, placement, bytes, &transfer);
        task->duration = dts_time_from_s(transfer.alone_s);
    }
    return ok;
}

static bool add_syncs(dts_soap_lowering *l, const dts_soap_choice *choices, dts_soap_group *g, size_t op,
                      const dts_soap_cost *costs) {
    const dts_soap_problem *p = l->problem;
    const dts_soap_cut *cut = cut_of(p, choices, op);
    int64_t shares;
    share_of(&p->graph->ops[op], cut, 0, &shares);
    if (!(costs[0].parameters > 0) || shares == cut->parts) {
        return true;
    }
    for (int64_t s = 0; s < shares; s++) {
        if (!add_sync(l, choices, g, op, s, costs[0].parameters * p->storage.reduce_B)) {
            return false;
        }
    }
    return true;
}

static bool add_updates(dts_soap_lowering *l, const dts_soap_choice *choices, dts_soap_group *g, size_t op,
                        const dts_soap_cost *costs) {
    const dts_soap_problem *p = l->problem;
    const dts_tensor_op *self = &p->graph->ops[op];
    const dts_soap_cut *cut = cut_of(p, choices, op);
    for (int64_t j = 0; j < cut->parts && costs[0].parameters > 0; j++) {
        int64_t shares, share = share_of(self, cut, j, &shares);
        dts_soap_task *task = add_task(g, costs[j].update, slot_of(p, DTS_SOAP_UPDATE, op, j));
        if (task == NULL || !add_stream(l, g, task, compute_stream(choices[op].first + (uint32_t)j)) ||
            !add_after(
                g, task,
                shares == cut->parts ? slot_of(p, DTS_SOAP_BACKWARD, op, j) : slot_of(p, DTS_SOAP_SYNC, op, share))) {
            return false;
        }
    }
    return true;
}

bool dts_soap_build_group(dts_soap_lowering *lowering, const dts_soap_choice *choices, size_t number,
                          dts_soap_group *group) {
    const dts_soap_problem *p = lowering->problem;
    size_t op = number % p->graph->count, phase = number / p->graph->count;
    group->task_count = group->stream_count = group->after_count = group->used_count = group->link_count = 0;
    lowering->stamp++;
    if (p->graph->ops[op].type == DTS_TENSOR_INPUT) {
        return true;
    }
    const dts_soap_cut *cut = cut_of(p, choices, op);
    const dts_soap_cost *costs = dts_soap_costs(lowering, op, choices[op].cut);
    if (costs == NULL) {
        return false;
    }
    if (phase == 2) {
        return add_updates(lowering, choices, group, op, costs);
    }
    bool backward = phase == 1;
    edge edges[MOST_EDGES];
    size_t edge_count = list_edges(p, op, backward, edges);
    for (int64_t j = 0; j < cut->parts; j++) {
        lowering->latest[j] = DTS_SOAP_LOCAL;
    }
    bool ok = true;
    for (size_t i = 0; i < edge_count && ok; i++) {
        ok = add_transfers(lowering, choices, &edges[i], group);
    }
    for (int64_t j = 0; j < cut->parts && ok; j++) {
        ok = add_main(lowering, choices, edges, edge_count, group, backward ? DTS_SOAP_BACKWARD : DTS_SOAP_FORWARD, op,
                      j, backward ? costs[j].backward : costs[j].forward);
    }
    return ok && (!backward || add_syncs(lowering, choices, group, op, costs));
}

void dts_soap_add_memory(dts_soap_lowering *lowering, const dts_soap_choice *choices, size_t op, int sign,
                         int64_t *memory_B) {
    const dts_soap_problem *p = lowering->problem;
    const dts_tensor_op *self = &p->graph->ops[op];
    const dts_soap_cut *cut = cut_of(p, choices, op);
    const dts_soap_cost *costs = self->type == DTS_TENSOR_INPUT ? NULL : dts_soap_costs(lowering, op, choices[op].cut);
    edge edges[MOST_EDGES];
    size_t edge_count = list_edges(p, op, false, edges);
    for (int64_t j = 0; j < cut->parts && costs != NULL; j++) {
        uint32_t device = choices[op].first + (uint32_t)j;
        dts_box box = dts_soap_part(self, cut, j);
        double bytes = costs[j].parameters * lowering->weight_B + costs[j].kept_B;
        for (size_t i = 0; i < edge_count; i++) { /* what came from other devices is kept as well */
            const dts_tensor_op *from = &p->graph->ops[edges[i].other];
            dts_box need = dts_tensor_op_needs(p->graph, self, edges[i].input, &box);
            int64_t k = (int64_t)device - choices[edges[i].other].first;
            bool held = k >= 0 && k < cut_of(p, choices, edges[i].other)->parts;
            double local_B = held ? wanted_B(lowering, choices, &edges[i], &box, k) : 0;
            double need_B = dts_box_elements(&need, from->dims) * lowering->execution.element_B;
            bytes += from->keeps_output ? need_B - local_B : 0;
        }
        memory_B[device] += sign * (int64_t)llround(bytes);
    }
}
