/* From a profile to a graph: names become numbers, and every shape follows from the inputs'. */
#include "model/tensor_graph.h"

#include <string.h>

#include "model/tensor_build.h"

/* So that no product of sizes or kernels passes what a double counts exactly. */
#define MOST_ELEMENTS 9007199254740992.0

typedef struct maker {
    dts_arena *arena;
    dts_diag *diag;
    dts_tensor_graph *graph;
    const dts_tensor_op_profile *profile; /* of the operator being made */
    size_t index;
} maker;

static dts_status refuse(const maker *m, const char *help, const char *format, const char *name) {
    const char *key = dts_arena_printf(m->arena, "graph.operators[%zu]", m->index);
    return dts_diag_error(m->diag, NULL, key, help, format, name);
}

static dts_status find_inputs(const maker *m, dts_tensor_op *op) {
    const dts_list *names = &m->profile->inputs;
    size_t count = names->count > 0 ? names->count : op->type == DTS_TENSOR_INPUT || m->index == 0 ? 0 : 1;
    op->inputs = dts_arena_array(m->arena, count, sizeof *op->inputs);
    if (op->inputs == NULL) {
        return dts_diag_nomem(m->diag);
    }
    op->input_count = count;
    if (names->count == 0 && count == 1) {
        op->inputs[0] = (uint32_t)m->index - 1;
        return DTS_OK;
    }
    for (size_t i = 0; i < count; i++) {
        const char *wanted = ((const char *const *)names->items)[i];
        size_t found = 0;
        while (found < m->index && strcmp(m->graph->ops[found].name, wanted) != 0) {
            found++;
        }
        if (found == m->index) {
            return refuse(m, "an operator stands behind all operators that it reads",
                          "no operator before this one is called '%s'", wanted);
        }
        op->inputs[i] = (uint32_t)found;
    }
    return DTS_OK;
}

static dts_status check_inputs(const maker *m, const dts_tensor_op *op) {
    bool several = op->type == DTS_TENSOR_ELEMENTWISE || op->type == DTS_TENSOR_ADD || op->type == DTS_TENSOR_CONCAT;
    size_t wanted = op->type == DTS_TENSOR_INPUT ? 0 : op->type == DTS_TENSOR_ATTENTION ? 3 : 1;
    if (several ? op->input_count == 0 : op->input_count != wanted) {
        return refuse(
            m, "input has none, attention three (query, key, value), elementwise, add and concat any, others one",
            "operator '%s' has the wrong number of inputs", op->name);
    }
    return DTS_OK;
}

static dts_status set_input_shape(const maker *m, dts_tensor_op *op) {
    const dts_list *shape = &m->profile->shape;
    if (shape->count < 1 || shape->count >= DTS_TENSOR_DIMS) {
        return refuse(m, "shape: [channels, height, width], [positions] or [features]",
                      "input '%s' needs a shape of one to three sizes", op->name);
    }
    op->dims = (int)shape->count + 1;
    for (size_t d = 0; d < shape->count; d++) {
        op->size[d + 1] = ((const int64_t *)shape->items)[d];
    }
    return DTS_OK;
}

/* Several inputs must fit together. */
static dts_status check_same_shape(const maker *m, const dts_tensor_op *op) {
    const dts_tensor_op *first = &m->graph->ops[op->inputs[0]];
    for (size_t i = 1; i < op->input_count; i++) {
        const dts_tensor_op *other = &m->graph->ops[op->inputs[i]];
        bool same = other->dims == first->dims;
        for (int d = 1; d < first->dims && same; d++) {
            same = other->size[d] == first->size[d] || (op->type == DTS_TENSOR_CONCAT && d == 1);
        }
        if (!same) {
            return refuse(m, "all inputs need one shape (concat: up to the second dimension)",
                          "the inputs of '%s' have different shapes", op->name);
        }
    }
    return DTS_OK;
}

static int64_t windows(int64_t size, const dts_tensor_op *op) {
    return op->type == DTS_TENSOR_POOL && op->kernel == 0 ? 1 : (size + 2 * op->padding - op->kernel) / op->stride + 1;
}

static dts_status set_image_shape(const maker *m, dts_tensor_op *op) {
    if (op->dims != 4) {
        return refuse(m, "its input is (sample, channel, height, width)", "'%s' needs an image as input", op->name);
    }
    bool whole = op->type == DTS_TENSOR_POOL && op->kernel == 0;
    if (!whole && (op->kernel < 1 || op->kernel > op->size[2] + 2 * op->padding ||
                   op->kernel > op->size[3] + 2 * op->padding || op->padding >= op->kernel)) {
        return refuse(m, "1 <= kernel <= side of the input + 2 x padding, padding < kernel",
                      "the window of '%s' does not fit its input", op->name);
    }
    op->size[2] = windows(op->size[2], op);
    op->size[3] = windows(op->size[3], op);
    return DTS_OK;
}

static dts_status set_attention_shape(const maker *m, dts_tensor_op *op) {
    const dts_tensor_op *query = &m->graph->ops[op->inputs[0]];
    const dts_tensor_op *key = &m->graph->ops[op->inputs[1]];
    const dts_tensor_op *value = &m->graph->ops[op->inputs[2]];
    op->kv_heads = op->kv_heads > 0 ? op->kv_heads : op->heads;
    bool sequences = query->dims == 3 && key->dims == 3 && value->dims == 3;
    bool heads = op->heads > 0 && op->kv_heads > 0 && op->heads % op->kv_heads == 0;
    if (!sequences || !heads || query->size[2] % op->heads != 0 || key->size[2] != value->size[2] ||
        key->size[1] != value->size[1] || key->size[2] != query->size[2] / op->heads * op->kv_heads) {
        return refuse(m, "query: (sample, position, heads x head_dim); key and value: kv_heads x head_dim",
                      "query, key and value of '%s' do not fit its heads", op->name);
    }
    op->head_dim = query->size[2] / op->heads;
    return DTS_OK;
}

static dts_status set_features(const maker *m, dts_tensor_op *op) {
    const dts_tensor_op_profile *p = m->profile;
    if (p->features == 0) {
        return refuse(m, "features: the width of its output", "'%s' needs features", op->name);
    }
    if (op->type == DTS_TENSOR_EMBEDDING) {
        if (op->dims != 2 || p->rows == 0) {
            return refuse(m, "its input is (sample, position), and rows: the rows of its table",
                          "'%s' is no complete embedding", op->name);
        }
        op->parameters = (double)p->rows * (double)p->features;
        op->size[op->dims++] = p->features;
        return DTS_OK;
    }
    int dim = op->type == DTS_TENSOR_CONV2D ? 1 : op->dims - 1;
    double window = op->type == DTS_TENSOR_CONV2D ? (double)op->kernel * (double)op->kernel : 1;
    op->parameters = ((double)op->size[dim] * window + (p->bias ? 1 : 0)) * (double)p->features;
    op->size[dim] = p->features;
    return DTS_OK;
}

static dts_status set_shape(const maker *m, dts_tensor_op *op) {
    dts_status status = DTS_OK;
    if (op->type == DTS_TENSOR_INPUT) {
        status = set_input_shape(m, op);
        op->size[0] = m->graph->batch;
        return status;
    }
    const dts_tensor_op *from = &m->graph->ops[op->inputs[0]];
    op->dims = from->dims;
    memcpy(op->size, from->size, sizeof op->size);
    switch (op->type) {
        case DTS_TENSOR_CONV2D:
            status = set_image_shape(m, op);
            return status == DTS_OK ? set_features(m, op) : status;
        case DTS_TENSOR_POOL:
            return set_image_shape(m, op);
        case DTS_TENSOR_LINEAR:
        case DTS_TENSOR_EMBEDDING:
            return set_features(m, op);
        case DTS_TENSOR_ELEMENTWISE:
        case DTS_TENSOR_ADD:
            return check_same_shape(m, op);
        case DTS_TENSOR_CONCAT:
            for (size_t i = 1; i < op->input_count; i++) {
                op->size[1] += m->graph->ops[op->inputs[i]].size[1];
            }
            return check_same_shape(m, op);
        case DTS_TENSOR_FLATTEN:
        case DTS_TENSOR_BATCH_NORM:
            if (op->dims != 4) {
                return refuse(m, "its input is (sample, channel, height, width)", "'%s' needs an image as input",
                              op->name);
            }
            op->parameters = op->type == DTS_TENSOR_BATCH_NORM ? 2 * (double)op->size[1] : 0;
            if (op->type == DTS_TENSOR_FLATTEN) {
                op->size[1] *= op->size[2] * op->size[3];
                op->dims = 2;
            }
            return DTS_OK;
        case DTS_TENSOR_LAYER_NORM:
            op->parameters = 2 * (double)op->size[op->dims - 1];
            return DTS_OK;
        case DTS_TENSOR_ATTENTION:
            return set_attention_shape(m, op);
        case DTS_TENSOR_LOSS:
            op->dims--;
            return DTS_OK;
        case DTS_TENSOR_INPUT:
        case DTS_TENSOR_TYPE_COUNT:
            break;
    }
    return status;
}

static dts_status make_op(const maker *m, dts_tensor_op *op) {
    const dts_tensor_op_profile *p = m->profile;
    *op = (dts_tensor_op){.name = p->name,
                          .type = (dts_tensor_op_type)p->type,
                          .kernel = p->kernel,
                          .stride = p->stride,
                          .padding = p->padding,
                          .heads = p->heads,
                          .kv_heads = p->kv_heads,
                          .causal = p->causal,
                          .chunked = p->chunked,
                          .window = p->window};
    dts_status status = find_inputs(m, op);
    status = status == DTS_OK ? check_inputs(m, op) : status;
    status = status == DTS_OK ? set_shape(m, op) : status;
    if (status != DTS_OK) {
        return status;
    }
    dts_box whole = dts_tensor_op_whole(op);
    if (dts_box_elements(&whole, op->dims) > MOST_ELEMENTS || op->parameters > MOST_ELEMENTS) {
        return refuse(m, NULL, "'%s' is too large", op->name);
    }
    dts_tensor_op_set_splits(m->graph, op);
    return DTS_OK;
}

dts_status dts_tensor_graph_make(const dts_graph_profile *profile, int64_t batch, dts_arena *arena,
                                 dts_tensor_graph *out, dts_diag *diag) {
    *out = (dts_tensor_graph){.name = profile->name, .batch = batch};
    out->ops = dts_arena_array(arena, profile->operators.count, sizeof *out->ops);
    if (out->ops == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_status status = DTS_OK;
    for (size_t i = 0; i < profile->operators.count && status == DTS_OK; i++) {
        maker m = {.arena = arena,
                   .diag = diag,
                   .graph = out,
                   .profile = (const dts_tensor_op_profile *)profile->operators.items + i,
                   .index = i};
        status = make_op(&m, &out->ops[i]);
        out->count = i + 1;
        out->parameters += out->ops[i].parameters;
    }
    dts_tensor_op_mark_kept(out);
    return status;
}
