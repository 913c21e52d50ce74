/* Parts of an operator: what they need of its inputs, and what making them costs.
 *
 *   operator     part (low, high) of            needs of its input
 *   linear       (…, out)                       the same rows, all features
 *   conv, pool   (sample, channel, y, x)        rows low·stride - padding … (high-1)·stride - padding + kernel, inside
 *                                               the input; conv: all channels, pool: the same
 *   flatten      (sample, feature)              channels low/(H·W) … ⌈high/(H·W)⌉
 *   concat       (sample, channel, …)           what of the channels falls into this input
 *   attention    (sample, position, feature)    query: the same; key, value: all positions, the heads that these read
 *   embedding    (sample, position, feature)    the same positions
 *   layer norm, loss                            all of the last dimension
 *   others                                      the same box
 *
 * A convolution is the product of (sample · y · x, channels · kernel²) and (channels · kernel², out) [1].
 *
 * Memory-bound operators read their inputs and write their output once; backward reads the output's gradient and what
 * was kept, and writes the input's gradient: as many bytes again (batch norm reads its input twice to get the
 * statistics first). The loss reads the logits, keeps the log-softmax in fp32 and writes the gradient.
 *
 * [1] Chetlur et al. 2014, cuDNN: Efficient Primitives for Deep Learning, arXiv 1410.0759, section 3. */
#include "model/tensor_graph.h"

#include <math.h>

dts_box dts_tensor_op_whole(const dts_tensor_op *op) {
    dts_box box = {0};
    for (int d = 0; d < op->dims; d++) {
        box.high[d] = op->size[d];
    }
    return box;
}

static int64_t extent(const dts_box *box, int dim) {
    return box->high[dim] > box->low[dim] ? box->high[dim] - box->low[dim] : 0;
}

double dts_box_elements(const dts_box *box, int dims) {
    double product = 1;
    for (int d = 0; d < dims; d++) {
        product *= (double)extent(box, d);
    }
    return product;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

dts_box dts_box_common(const dts_box *a, const dts_box *b, int dims) {
    dts_box box = {0};
    for (int d = 0; d < dims; d++) {
        box.low[d] = larger(a->low[d], b->low[d]);
        box.high[d] = larger(box.low[d], smaller(a->high[d], b->high[d]));
    }
    return box;
}

static void window(const dts_tensor_op *op, const dts_tensor_op *from, int dim, const dts_box *part, dts_box *box) {
    if (op->type == DTS_TENSOR_POOL && op->kernel == 0) { /* all of it */
        box->high[dim] = from->size[dim];
        return;
    }
    box->low[dim] = larger(0, part->low[dim] * op->stride - op->padding);
    box->high[dim] =
        larger(box->low[dim], smaller(from->size[dim], (part->high[dim] - 1) * op->stride - op->padding + op->kernel));
}

static dts_box image_needs(const dts_tensor_op *op, const dts_tensor_op *from, const dts_box *part) {
    dts_box box = *part;
    if (op->type == DTS_TENSOR_CONV2D) {
        box.low[1] = 0;
        box.high[1] = from->size[1];
    }
    window(op, from, 2, part, &box);
    window(op, from, 3, part, &box);
    return box;
}

static dts_box concat_needs(const dts_tensor_graph *graph, const dts_tensor_op *op, size_t input, const dts_box *part) {
    int64_t offset = 0;
    for (size_t i = 0; i < input; i++) {
        offset += graph->ops[op->inputs[i]].size[1];
    }
    dts_box box = *part;
    int64_t channels = graph->ops[op->inputs[input]].size[1];
    box.low[1] = smaller(channels, larger(0, part->low[1] - offset));
    box.high[1] = larger(box.low[1], smaller(channels, part->high[1] - offset));
    return box;
}

/* Keys and values: the heads that the query heads of the part read. */
static dts_box key_needs(const dts_tensor_op *op, const dts_tensor_op *from, const dts_box *part) {
    int64_t group = op->heads / op->kv_heads;
    dts_box box = *part;
    box.low[1] = 0;
    box.high[1] = from->size[1];
    box.low[2] = part->low[2] / op->head_dim / group * op->head_dim;
    box.high[2] = ((part->high[2] - 1) / op->head_dim / group + 1) * op->head_dim;
    return box;
}

dts_box dts_tensor_op_needs(const dts_tensor_graph *graph, const dts_tensor_op *op, size_t input, const dts_box *part) {
    const dts_tensor_op *from = &graph->ops[op->inputs[input]];
    dts_box box = *part;
    int last = from->dims - 1;
    switch (op->type) {
        case DTS_TENSOR_CONV2D:
        case DTS_TENSOR_POOL:
            return image_needs(op, from, part);
        case DTS_TENSOR_CONCAT:
            return concat_needs(graph, op, input, part);
        case DTS_TENSOR_FLATTEN: {
            int64_t area = from->size[2] * from->size[3];
            box = dts_tensor_op_whole(from);
            box.low[0] = part->low[0];
            box.high[0] = part->high[0];
            box.low[1] = part->low[1] / area;
            box.high[1] = (part->high[1] + area - 1) / area;
            return box;
        }
        case DTS_TENSOR_ATTENTION:
            return input == 0 ? box : key_needs(op, from, part);
        case DTS_TENSOR_LINEAR:
        case DTS_TENSOR_LAYER_NORM:
        case DTS_TENSOR_LOSS:
            box.low[last] = 0;
            box.high[last] = from->size[last];
            return box;
        case DTS_TENSOR_EMBEDDING:
        case DTS_TENSOR_INPUT:
        case DTS_TENSOR_ELEMENTWISE:
        case DTS_TENSOR_ADD:
        case DTS_TENSOR_BATCH_NORM:
        case DTS_TENSOR_TYPE_COUNT:
            break;
    }
    return box;
}

double dts_tensor_op_part_parameters(const dts_tensor_op *op, const dts_box *part) {
    double share = 1;
    for (int d = 0; d < op->dims; d++) {
        if (op->split[d] == DTS_SPLIT_PARAMETER) {
            share *= (double)extent(part, d) / (double)op->size[d];
        }
    }
    return op->parameters * share;
}

static double input_elements(const dts_tensor_graph *graph, const dts_tensor_op *op, const dts_box *part) {
    double sum = 0;
    for (size_t i = 0; i < op->input_count; i++) {
        dts_box box = dts_tensor_op_needs(graph, op, i, part);
        sum += dts_box_elements(&box, graph->ops[op->inputs[i]].dims);
    }
    return sum;
}

static void set_memory(dts_operator *out, double forward_B, double backward_B) {
    out->kind = DTS_OPERATOR_MEMORY;
    out->forward_B = forward_B;
    out->backward_B = backward_B;
    out->forward_kernels = 1;
    out->backward_kernels = 1;
}

static void set_product(dts_operator *out, int64_t batch, int64_t m, int64_t n, int64_t k, bool weight) {
    out->kind = DTS_OPERATOR_GEMM;
    out->batch = batch;
    out->m = m;
    out->n = n;
    out->k = k;
    out->weight = weight;
    out->forward_kernels = 1;
    out->backward_kernels = 2;
}

static void weighted_product(const dts_tensor_graph *graph, const dts_tensor_op *op, const dts_box *part,
                             double element_B, dts_operator *out) {
    const dts_tensor_op *from = &graph->ops[op->inputs[0]];
    double elements = dts_box_elements(part, op->dims);
    bool image = op->type == DTS_TENSOR_CONV2D;
    int64_t n = extent(part, image ? 1 : op->dims - 1);
    int64_t k = image ? from->size[1] * op->kernel * op->kernel : from->size[from->dims - 1];
    set_product(out, 1, (int64_t)(elements / (double)n), n, k, true);
    if (op->parameters > (double)k * (double)op->size[image ? 1 : op->dims - 1]) { /* the bias gradient is summed */
        out->backward_kernels = 3;
        out->backward_B = elements * element_B;
    }
}

static size_t attention_work(const dts_tensor_graph *graph, const dts_tensor_op *op, const dts_box *part,
                             const dts_tensor_op_execution *execution, dts_operator *out) {
    int64_t batch = extent(part, 0), queries = extent(part, 1), heads = extent(part, 2) / op->head_dim;
    int64_t keys = graph->ops[op->inputs[1]].size[1];
    if (execution->flash_attention) {
        out[0] = (dts_operator){.name = op->name,
                                .kind = DTS_OPERATOR_ATTENTION,
                                .batch = batch,
                                .heads = heads,
                                .kv_heads = larger(1, heads * op->kv_heads / op->heads),
                                .head_dim = op->head_dim,
                                .query_length = queries,
                                .key_length = keys,
                                .causal = op->causal,
                                .chunked = op->chunked,
                                .window = op->window,
                                .forward_kernels = 1,
                                .backward_kernels = 3};
        return 1;
    }
    for (int i = 0; i < DTS_PART_KERNELS; i++) {
        out[i] = (dts_operator){.name = op->name};
    }
    double scores_B = (double)batch * (double)heads * (double)queries * (double)keys * execution->element_B;
    set_product(&out[0], batch * heads, queries, keys, op->head_dim, false);
    set_memory(&out[1], 2 * scores_B, 3 * scores_B);
    set_product(&out[2], batch * heads, queries, op->head_dim, keys, false);
    return DTS_PART_KERNELS;
}

size_t dts_tensor_op_part_work(const dts_tensor_graph *graph, const dts_tensor_op *op, const dts_box *part,
                               const dts_tensor_op_execution *execution, dts_operator out[DTS_PART_KERNELS]) {
    if (op->type == DTS_TENSOR_INPUT || dts_box_elements(part, op->dims) <= 0) {
        return 0;
    }
    double made_B = dts_box_elements(part, op->dims) * execution->element_B;
    double read_B = input_elements(graph, op, part) * execution->element_B;
    out[0] = (dts_operator){.name = op->name};
    switch (op->type) {
        case DTS_TENSOR_LINEAR:
        case DTS_TENSOR_CONV2D:
            weighted_product(graph, op, part, execution->element_B, &out[0]);
            return 1;
        case DTS_TENSOR_ATTENTION:
            return attention_work(graph, op, part, execution, out);
        case DTS_TENSOR_FLATTEN: /* a view */
            return 0;
        case DTS_TENSOR_EMBEDDING:
            set_memory(&out[0], 2 * made_B, 2 * made_B);
            return 1;
        case DTS_TENSOR_BATCH_NORM:
            set_memory(&out[0], 2 * read_B + made_B, 2 * read_B + 2 * made_B);
            return 1;
        case DTS_TENSOR_LOSS: {
            double logits = read_B / execution->element_B;
            set_memory(&out[0], read_B + 2 * logits * DTS_FP32_B, 2 * logits * DTS_FP32_B + read_B);
            return 1;
        }
        case DTS_TENSOR_INPUT:
        case DTS_TENSOR_POOL:
        case DTS_TENSOR_ELEMENTWISE:
        case DTS_TENSOR_ADD:
        case DTS_TENSOR_CONCAT:
        case DTS_TENSOR_LAYER_NORM:
        case DTS_TENSOR_TYPE_COUNT:
            break;
    }
    set_memory(&out[0], read_B + made_B, read_B + made_B);
    return 1;
}

double dts_tensor_op_part_kept_B(const dts_tensor_op *op, const dts_box *part,
                                 const dts_tensor_op_execution *execution) {
    if (op->type == DTS_TENSOR_INPUT || op->type == DTS_TENSOR_FLATTEN) {
        return 0;
    }
    double kept_B = op->keeps_output ? dts_box_elements(part, op->dims) * execution->element_B : 0;
    if (op->type == DTS_TENSOR_ATTENTION) { /* (batch, heads, queries) log-sum-exp in fp32, or (…, keys) softmax */
        double rows = dts_box_elements(part, op->dims) / (double)op->head_dim;
        kept_B += execution->flash_attention ? rows * DTS_FP32_B : rows * (double)op->size[1] * execution->element_B;
    }
    return kept_B;
}
