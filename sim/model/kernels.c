/* The two kinds of operators that all others are made of: kernels that move memory, and products. */
#include "model/builder.h"

static dts_operator *add(dts_builder *builder, const char *name, dts_operator_kind kind) {
    dts_operator *op = &builder->items[builder->count++];
    *op = (dts_operator){.name = name, .kind = kind, .region = builder->region, .batch = 1};
    return op;
}

dts_operator *dts_add_memory(dts_builder *builder, const char *name, dts_passes passes) {
    dts_operator *op = add(builder, name, DTS_OPERATOR_MEMORY);
    op->forward_kernels = passes.forward_kernels;
    op->backward_kernels = passes.backward_kernels;
    op->forward_B = passes.forward_B;
    op->backward_B = passes.backward_B;
    op->input_B = passes.input_B;
    op->output_B = passes.output_B;
    op->saved_B = passes.saved_B;
    op->workspace_B = passes.workspace_B;
    return op;
}

dts_operator *dts_add_product(dts_builder *builder, const dts_linear *linear) {
    const dts_local *l = &builder->local;
    dts_operator *product = add(builder, linear->name, DTS_OPERATOR_GEMM);
    double groups = linear->experts > 0 ? (double)linear->experts : 1;
    if (linear->experts > 0) {
        product->batch = linear->experts;
        product->experts = true;
        product->routed_rows = linear->routed_rows;
    }
    product->m = linear->rows;
    product->n = linear->n;
    product->k = linear->k;
    product->weight = true;
    product->forward_kernels = 1;
    product->backward_kernels = 2;
    product->input_B = groups * (double)linear->rows * (double)linear->k * l->e;
    product->output_B = groups * (double)linear->rows * (double)linear->n * l->e;
    return product;
}

dts_operator *dts_add_dropout(dts_builder *builder, const char *name, double tensor_B, double mask_B) {
    dts_operator *dropout = dts_add_memory(builder, name,
                                           (dts_passes){.forward_kernels = 1,
                                                        .forward_B = 2 * tensor_B + mask_B,
                                                        .backward_kernels = 1,
                                                        .backward_B = 2 * tensor_B + mask_B,
                                                        .input_B = tensor_B,
                                                        .output_B = tensor_B,
                                                        .saved_B = mask_B});
    dropout->dropout_B = dropout->forward_B;
    return dropout;
}
