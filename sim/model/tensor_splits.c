/* Which dimensions of an operator can be split [1, table 1]: samples always; positions and image rows as attributes;
 * what has weights of its own (output features, channels, table columns) as parameters. Attention splits by heads.
 * Image columns stay whole: rows already give as many parts as anybody uses.
 *
 * [1] Jia, Zaharia, Aiken, Beyond Data and Model Parallelism for Deep Neural Networks, MLSys 2019. */
#include "model/tensor_build.h"

void dts_tensor_op_set_splits(const dts_tensor_graph *graph, dts_tensor_op *op) {
    for (int d = 0; d < op->dims; d++) {
        op->unit[d] = 1;
        op->split[d] = d == 0 ? DTS_SPLIT_SAMPLE : DTS_SPLIT_ATTRIBUTE;
    }
    int last = op->dims - 1;
    if (op->dims == 4) {
        op->split[3] = DTS_SPLIT_NONE;
    }
    switch (op->type) {
        case DTS_TENSOR_LINEAR:
        case DTS_TENSOR_EMBEDDING:
            op->split[last] = DTS_SPLIT_PARAMETER;
            break;
        case DTS_TENSOR_CONV2D:
        case DTS_TENSOR_BATCH_NORM:
            op->split[1] = DTS_SPLIT_PARAMETER;
            break;
        case DTS_TENSOR_LAYER_NORM:
            op->split[last] = DTS_SPLIT_NONE;
            break;
        case DTS_TENSOR_FLATTEN: {
            const dts_tensor_op *from = &graph->ops[op->inputs[0]];
            op->unit[1] = from->size[2] * from->size[3];
            break;
        }
        case DTS_TENSOR_ATTENTION:
            op->unit[2] = op->head_dim * (op->heads / op->kv_heads); /* a group shares its keys */
            break;
        case DTS_TENSOR_POOL:
            if (op->kernel == 0) {
                op->split[2] = DTS_SPLIT_NONE;
            }
            break;
        case DTS_TENSOR_INPUT:
        case DTS_TENSOR_ELEMENTWISE:
        case DTS_TENSOR_ADD:
        case DTS_TENSOR_CONCAT:
        case DTS_TENSOR_LOSS:
        case DTS_TENSOR_TYPE_COUNT:
            break;
    }
}

/* Does the backward pass of this type read its input? */
static bool reads_input(dts_tensor_op_type type) {
    return type != DTS_TENSOR_INPUT && type != DTS_TENSOR_CONCAT && type != DTS_TENSOR_FLATTEN &&
           type != DTS_TENSOR_EMBEDDING && type != DTS_TENSOR_ADD;
}

void dts_tensor_op_mark_kept(dts_tensor_graph *graph) {
    for (size_t i = graph->count; i-- > 0;) {
        const dts_tensor_op *op = &graph->ops[i];
        bool passes_on = op->type == DTS_TENSOR_CONCAT || op->type == DTS_TENSOR_FLATTEN;
        for (size_t k = 0; k < op->input_count; k++) {
            dts_tensor_op *from = &graph->ops[op->inputs[k]];
            from->keeps_output |= reads_input(op->type) || (passes_on && op->keeps_output);
        }
    }
}
