#include "plan/soap.h"

#include <string.h>

#include "plan/internal.h"

enum { MOST_DEVICES = 1024, MOST_DEGREES = 64 };

const char *const dts_soap_baseline_names[DTS_SOAP_BASELINE_COUNT + 1] = {
    "single GPU", "data parallel", "expert", "data parallel on one node", "expert on one node", NULL};

/* 1, the divisors of the GPUs of a node, and all of them times the divisors of the nodes; ascending. */
static size_t list_degrees(uint32_t devices, uint32_t per_node, int64_t *out) {
    size_t count = 0;
    out[count++] = 1;
    for (uint32_t i = 2; i <= per_node && i <= devices && count < MOST_DEGREES; i++) {
        if (per_node % i == 0) {
            out[count++] = i;
        }
    }
    uint32_t nodes = per_node > 0 ? devices / per_node : 0;
    for (uint32_t i = 2; i <= nodes && count < MOST_DEGREES; i++) {
        if (nodes % i == 0) {
            out[count++] = (int64_t)i * per_node;
        }
    }
    return count;
}

static bool is_degree(int64_t value, const int64_t *degrees, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (degrees[i] == value) {
            return true;
        }
    }
    return false;
}

static bool can_split(const dts_tensor_op *op, int dim, int64_t degree) {
    if (degree == 1) {
        return true;
    }
    int64_t units = op->size[dim] / op->unit[dim];
    switch (op->split[dim]) {
        case DTS_SPLIT_NONE:
            return false;
        case DTS_SPLIT_ATTRIBUTE:
            return degree <= units;
        case DTS_SPLIT_SAMPLE:
        case DTS_SPLIT_PARAMETER:
            break;
    }
    return degree <= units && units % degree == 0;
}

/* The next combination of degrees, the last dimension fastest; false after the last one. */
static bool next_digits(size_t *digits, int dims, size_t degree_count) {
    for (int d = dims - 1; d >= 0; d--) {
        if (++digits[d] < degree_count) {
            return true;
        }
        digits[d] = 0;
    }
    return false;
}

/* The cut with these degrees; false when the operator cannot be cut so. */
static bool make_cut(const dts_tensor_op *op, const size_t *digits, const int64_t *degrees, dts_soap_cut *cut) {
    *cut = (dts_soap_cut){.parts = 1, .align = 1};
    for (int d = 0; d < DTS_TENSOR_DIMS; d++) {
        cut->degree[d] = d < op->dims ? degrees[digits[d]] : 1;
        if (d < op->dims && !can_split(op, d, cut->degree[d])) {
            return false;
        }
        cut->parts *= cut->degree[d];
        cut->align *= d < op->dims && op->split[d] == DTS_SPLIT_PARAMETER ? cut->degree[d] : 1;
    }
    return true;
}

/* Every cut of an operator: degrees are 1, divisors of the GPUs of a node, and these times divisors of the nodes [2].
 * Samples and weights are cut evenly, attributes nearly so. */
static dts_soap_cuts cuts_of(const dts_tensor_op *op, uint32_t devices, uint32_t devices_per_node, dts_arena *arena) {
    int64_t degrees[MOST_DEGREES];
    size_t degree_count = list_degrees(devices, devices_per_node, degrees);
    dts_soap_cuts cuts = {0};
    for (int pass = 0; pass < 2; pass++) { /* count, then list */
        size_t digits[DTS_TENSOR_DIMS] = {0}, count = 0;
        do {
            dts_soap_cut cut;
            if (make_cut(op, digits, degrees, &cut) && is_degree(cut.parts, degrees, degree_count)) {
                if (cuts.items != NULL) {
                    cuts.items[count] = cut;
                }
                count++;
            }
        } while (next_digits(digits, op->dims, degree_count));
        if (pass == 0) {
            cuts.items = dts_arena_array(arena, count, sizeof *cuts.items);
            if (cuts.items == NULL) {
                return cuts;
            }
        }
        cuts.count = count;
    }
    return cuts;
}

dts_box dts_soap_part(const dts_tensor_op *op, const dts_soap_cut *cut, int64_t part) {
    dts_box box = {0};
    for (int d = op->dims - 1; d >= 0; d--) {
        int64_t k = part % cut->degree[d], units = op->size[d] / op->unit[d];
        part /= cut->degree[d];
        box.low[d] = k * units / cut->degree[d] * op->unit[d];
        box.high[d] = k + 1 == cut->degree[d] ? op->size[d] : (k + 1) * units / cut->degree[d] * op->unit[d];
    }
    return box;
}

uint32_t dts_soap_positions(const dts_soap_problem *problem, const dts_soap_cut *cut) {
    return (uint32_t)(((int64_t)problem->devices - cut->parts) / cut->align + 1);
}

static dts_status list_consumers(dts_soap_problem *problem, dts_arena *arena, dts_diag *diag) {
    const dts_tensor_graph *graph = problem->graph;
    problem->consumers = dts_arena_array(arena, graph->count, sizeof *problem->consumers);
    problem->consumer_count = dts_arena_array(arena, graph->count, sizeof *problem->consumer_count);
    if (problem->consumers == NULL || problem->consumer_count == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < graph->count; i++) {
        for (size_t k = 0; k < graph->ops[i].input_count; k++) {
            problem->consumer_count[graph->ops[i].inputs[k]]++;
        }
    }
    for (size_t i = 0; i < graph->count; i++) {
        problem->consumers[i] = dts_arena_array(arena, problem->consumer_count[i], sizeof **problem->consumers);
        if (problem->consumers[i] == NULL) {
            return dts_diag_nomem(diag);
        }
        problem->consumer_count[i] = 0;
        for (size_t k = 0; k < graph->ops[i].input_count; k++) {
            uint32_t from = graph->ops[i].inputs[k];
            problem->consumers[from][problem->consumer_count[from]++] = (uint32_t)i;
        }
    }
    return DTS_OK;
}

dts_status dts_soap_problem_make(const dts_tensor_graph *graph, const dts_cluster *cluster, const dts_stack *stack,
                                 const dts_training *training, dts_arena *arena, dts_soap_problem *out,
                                 dts_diag *diag) {
    int64_t devices = cluster->nodes * cluster->gpus_per_node;
    if (devices > MOST_DEVICES) {
        return dts_diag_error(diag, NULL, "cluster.nodes", "search --space layouts is for large clusters",
                              "operator-level strategies are simulated for up to %d GPUs, not %lld", MOST_DEVICES,
                              (long long)devices);
    }
    int64_t lanes = cluster->inter.nics_per_node < 1 ? 1 : cluster->inter.nics_per_node;
    *out = (dts_soap_problem){
        .graph = graph,
        .cluster = cluster,
        .stack = stack,
        .training = training,
        .storage = dts_storage_of(training, stack, &cluster->gpu, false, DTS_HALF_BY_AUTOCAST),
        .devices = (uint32_t)devices,
        .devices_per_node = (uint32_t)cluster->gpus_per_node,
        .lanes_per_node = (uint32_t)(lanes < cluster->gpus_per_node ? lanes : cluster->gpus_per_node)};
    out->cuts = dts_arena_array(arena, graph->count, sizeof *out->cuts);
    if (out->cuts == NULL) {
        return dts_diag_nomem(diag);
    }
    for (size_t i = 0; i < graph->count; i++) {
        out->cuts[i] = cuts_of(&graph->ops[i], out->devices, out->devices_per_node, arena);
        if (out->cuts[i].items == NULL) {
            return dts_diag_nomem(diag);
        }
    }
    return list_consumers(out, arena, diag);
}

/* ---- the strategies that need no search ----------------------------------------------------------------------------
 */

/* What a baseline aims at. */
typedef struct goal {
    bool expert;         /* weights before samples where layers are dense */
    int64_t most_parts;  /* of any operator */
    int64_t most_shares; /* of its weights */
} goal;

/* How much the baseline wants of a cut; the largest wins. */
static int64_t preference(const goal *wish, const dts_tensor_op *op, const dts_soap_cut *cut) {
    int64_t weights = 1, others = 1;
    if (cut->parts > wish->most_parts) {
        return 0;
    }
    for (int d = 1; d < op->dims; d++) {
        *(op->split[d] == DTS_SPLIT_PARAMETER ? &weights : &others) *= cut->degree[d];
    }
    bool heads = op->type == DTS_TENSOR_ATTENTION;
    bool dense = op->type == DTS_TENSOR_LINEAR || op->type == DTS_TENSOR_EMBEDDING || heads;
    if (wish->expert && dense) { /* weights (heads) as far as allowed, samples beyond */
        int64_t split = heads ? cut->degree[op->dims - 1] * (cut->degree[1] == 1) : weights * (others == 1);
        return split > wish->most_shares ? 0 : split * MOST_DEVICES + cut->degree[0];
    }
    return cut->degree[0] == cut->parts ? cut->parts : 0;
}

/* An operator without weights of its own works where its input is, if it can be cut so. */
static bool follow_input(const dts_soap_problem *problem, size_t i, dts_soap_choice *choices) {
    const dts_tensor_op *op = &problem->graph->ops[i];
    if (op->parameters > 0 || op->input_count == 0) {
        return false;
    }
    uint32_t from = op->inputs[0];
    const dts_soap_cut *wanted = &problem->cuts[from].items[choices[from].cut];
    for (size_t c = 0; c < problem->cuts[i].count; c++) {
        if (memcmp(problem->cuts[i].items[c].degree, wanted->degree, sizeof wanted->degree) == 0) {
            choices[i] = (dts_soap_choice){.cut = (uint32_t)c, .first = choices[from].first};
            return true;
        }
    }
    return false;
}

static bool has_attention(const dts_tensor_graph *graph) {
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->ops[i].type == DTS_TENSOR_ATTENTION) {
            return true;
        }
    }
    return false;
}

void dts_soap_baseline_choices(const dts_soap_problem *problem, dts_soap_baseline baseline, dts_soap_choice *choices) {
    bool node = baseline == DTS_SOAP_DATA_NODE || baseline == DTS_SOAP_EXPERT_NODE;
    goal aims = {.expert = baseline == DTS_SOAP_EXPERT || baseline == DTS_SOAP_EXPERT_NODE,
                 .most_parts = baseline == DTS_SOAP_SINGLE ? 1
                               : node                      ? problem->devices_per_node
                                                           : problem->devices,
                 .most_shares = has_attention(problem->graph) ? problem->devices_per_node : problem->devices};
    for (size_t i = 0; i < problem->graph->count; i++) {
        if (aims.expert && follow_input(problem, i, choices)) {
            continue;
        }
        int64_t best = 0;
        choices[i] = (dts_soap_choice){0};
        for (size_t c = 0; c < problem->cuts[i].count; c++) {
            int64_t wanted = preference(&aims, &problem->graph->ops[i], &problem->cuts[i].items[c]);
            if (wanted > best) {
                best = wanted;
                choices[i].cut = (uint32_t)c;
            }
        }
    }
}
