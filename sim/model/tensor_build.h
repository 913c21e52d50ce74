/* What both makers of operator graphs share. */
#ifndef DTS_MODEL_TENSOR_BUILD_H
#define DTS_MODEL_TENSOR_BUILD_H

#include "model/tensor_graph.h"

/* Which dimensions of the output may be split, and in which units; from its type and shape. */
void dts_tensor_op_set_splits(const dts_tensor_graph *graph, dts_tensor_op *op);

/* Marks the outputs that a backward pass reads: those of all but sums, concatenations and views, which a product, a
 * norm or an activation takes as its input. */
void dts_tensor_op_mark_kept(dts_tensor_graph *graph);

#endif
