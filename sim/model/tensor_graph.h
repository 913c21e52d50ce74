/* Operator graphs: a network as single operators on tensors with named dimensions, for strategies that cut every
 * operator in its own way (SOAP: sample, operator, attribute, parameter [1]).
 *
 * A tensor has up to four dimensions: (sample, channel, height, width) of images, (sample, position, feature) of
 * sequences, (sample, feature) of vectors. A *box* is a rectangular part of one. Every operator says which box of each
 * input it needs to make a box of its output; that is all that a partition has to know.
 *
 * [1] Jia, Zaharia, Aiken, Beyond Data and Model Parallelism for Deep Neural Networks, MLSys 2019, section 4. */
#ifndef DTS_MODEL_TENSOR_GRAPH_H
#define DTS_MODEL_TENSOR_GRAPH_H

#include "model/model.h"

typedef enum dts_tensor_op_type {
    DTS_TENSOR_INPUT,       /* data from the loader: free, wherever it is wanted */
    DTS_TENSOR_LINEAR,      /* (…, in) -> (…, out) */
    DTS_TENSOR_CONV2D,      /* (sample, channel, height, width) */
    DTS_TENSOR_POOL,        /* the same shape of input */
    DTS_TENSOR_ELEMENTWISE, /* any number of inputs of one shape: activation, dropout, multiply */
    DTS_TENSOR_ADD,         /* the sum of inputs of one shape; its backward needs none of them */
    DTS_TENSOR_CONCAT,      /* along the second dimension */
    DTS_TENSOR_FLATTEN,     /* (sample, channel, height, width) -> (sample, feature) */
    DTS_TENSOR_BATCH_NORM,  /* statistics of the samples of one part */
    DTS_TENSOR_LAYER_NORM,  /* over the last dimension */
    DTS_TENSOR_EMBEDDING,   /* (sample, position) -> (sample, position, feature) */
    DTS_TENSOR_ATTENTION,   /* query, key, value: (sample, position, heads · head_dim) */
    DTS_TENSOR_LOSS,        /* cross-entropy over the last dimension */
    DTS_TENSOR_TYPE_COUNT
} dts_tensor_op_type;

extern const char *const dts_tensor_op_type_names[DTS_TENSOR_TYPE_COUNT + 1]; /* "input", … NULL-terminated */

/* What splitting a dimension of the output means [1, table 1]. */
typedef enum dts_split {
    DTS_SPLIT_NONE,      /* cannot be split */
    DTS_SPLIT_SAMPLE,    /* copies of the weights, gradients are added up */
    DTS_SPLIT_ATTRIBUTE, /* the same; inputs may overlap */
    DTS_SPLIT_PARAMETER  /* each part has its own share of the weights */
} dts_split;

enum { DTS_TENSOR_DIMS = 4 };

/* [low, high) in every dimension. */
typedef struct dts_box {
    int64_t low[DTS_TENSOR_DIMS], high[DTS_TENSOR_DIMS];
} dts_box;

typedef struct dts_tensor_op {
    const char *name;
    dts_tensor_op_type type;
    uint32_t *inputs; /* [input_count] operators that stand before this one */
    size_t input_count;
    int dims;
    int64_t size[DTS_TENSOR_DIMS]; /* of the output */
    dts_split split[DTS_TENSOR_DIMS];
    int64_t unit[DTS_TENSOR_DIMS]; /* parts are whole multiples of this many elements: a head */
    double parameters;             /* elements */
    int64_t kernel, stride, padding, heads, kv_heads, head_dim;
    bool causal, chunked;
    int64_t window;    /* of attention: see dts_operator; 0: none */
    bool keeps_output; /* some backward pass reads it */
} dts_tensor_op;

typedef struct dts_tensor_graph {
    const char *name;
    dts_tensor_op *ops; /* each behind its inputs */
    size_t count;
    int64_t batch;
    double parameters; /* elements */
} dts_tensor_graph;

/* One operator as a profile describes it. */
typedef struct dts_tensor_op_profile {
    const char *name;
    int type;        /* dts_tensor_op_type */
    dts_list inputs; /* const char *; empty: the operator before */
    dts_list shape;  /* int64_t: of an input, without the samples */
    int64_t features, rows, kernel, stride, padding, heads, kv_heads;
    bool bias, causal, chunked;
    int64_t window; /* attention of a transformer's local layer; 0: none */
} dts_tensor_op_profile;

typedef struct dts_graph_profile {
    const char *name;
    const char *description;
    dts_list operators;         /* dts_tensor_op_profile */
    double expected_parameters; /* published count, 0: none */
} dts_graph_profile;

extern const dts_schema dts_graph_schema;

/* The graph of a profile for batch samples. Shapes follow from the inputs; what does not fit together is an error that
 * names the operator. Lives in arena. */
dts_status dts_tensor_graph_make(const dts_graph_profile *profile, int64_t batch, dts_arena *arena,
                                 dts_tensor_graph *out, dts_diag *diag);

/* The graph of a transformer: query, key and value as operators of their own, so that they can run side by side. Biases
 * are part of their product, dropout is left out. */
dts_status dts_tensor_graph_of_model(const dts_model *model, int64_t batch, int64_t sequence_length, dts_arena *arena,
                                     dts_tensor_graph *out, dts_diag *diag);

/* The box of its input number `input` that op needs to make the box `part` of its output; may be empty. */
dts_box dts_tensor_op_needs(const dts_tensor_graph *graph, const dts_tensor_op *op, size_t input, const dts_box *part);

/* The whole output. */
dts_box dts_tensor_op_whole(const dts_tensor_op *op);
/* Elements; 0 when empty. */
double dts_box_elements(const dts_box *box, int dims);
dts_box dts_box_common(const dts_box *a, const dts_box *b, int dims);

/* Parameters (elements) behind a part of the output. */
double dts_tensor_op_part_parameters(const dts_tensor_op *op, const dts_box *part);

enum { DTS_PART_KERNELS = 3 };

/* How a part is computed. */
typedef struct dts_tensor_op_execution {
    double element_B;     /* of an activation */
    bool flash_attention; /* else scores, softmax and context as kernels of their own */
} dts_tensor_op_execution;

/* What making a part costs, as shapes and bytes that hardware understands: up to DTS_PART_KERNELS operators, 0 for an
 * input. The operator's name is borrowed. */
size_t dts_tensor_op_part_work(const dts_tensor_graph *graph, const dts_tensor_op *op, const dts_box *part,
                               const dts_tensor_op_execution *execution, dts_operator out[DTS_PART_KERNELS]);

/* Bytes that stay on the device from the part's forward until its backward: the output, and what only this operator
 * keeps. */
double dts_tensor_op_part_kept_B(const dts_tensor_op *op, const dts_box *part,
                                 const dts_tensor_op_execution *execution);

#endif
