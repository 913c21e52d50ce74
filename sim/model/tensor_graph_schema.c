/* The keys of an operator graph's profile. */
#include "model/tensor_graph.h"

const char *const dts_tensor_op_type_names[DTS_TENSOR_TYPE_COUNT + 1] = {
    "input",   "linear",     "conv2d",     "pool",      "elementwise", "add",  "concat",
    "flatten", "batch-norm", "layer-norm", "embedding", "attention",   "loss", NULL,
};

/* Limits: small enough that no product of four sizes overflows a double's exact integers by far, and every one fits an
 * int64_t. */
#define MAX_FEATURES 268435456
#define MAX_KERNEL   4096

#define STRUCT        dts_tensor_op_profile
#define FIELD(member) .key = #member, .offset = offsetof(STRUCT, member)
static const dts_field operator_fields[] = {
    {FIELD(name), .type = DTS_FIELD_STRING, .required = true, .help = "by which later operators name it"},
    {FIELD(type), .type = DTS_FIELD_ENUM, .names = dts_tensor_op_type_names, .required = true,
     .help = "what it computes; elementwise with several inputs multiplies them"},
    {FIELD(inputs), .type = DTS_FIELD_LIST, .element_type = DTS_FIELD_STRING,
     .help = "operators whose outputs it reads; left out: the one before"},
    {FIELD(shape), .type = DTS_FIELD_LIST, .element_type = DTS_FIELD_INT, .minimum = 1, .maximum = MAX_FEATURES,
     .help = "input: [channels, height, width], [positions] or [features], without the samples"},
    {FIELD(features), .type = DTS_FIELD_INT, .minimum = 0, .maximum = MAX_FEATURES,
     .help = "width of the output of linear, embedding and conv2d (its channels)"},
    {FIELD(kernel), .type = DTS_FIELD_INT, .minimum = 0, .maximum = MAX_KERNEL,
     .help = "conv2d, pool: side of the window; pool 0: all of it"},
    {FIELD(stride), .type = DTS_FIELD_INT, .minimum = 1, .maximum = MAX_KERNEL, .preset = "1",
     .help = "conv2d, pool: step of the window"},
    {FIELD(padding), .type = DTS_FIELD_INT, .minimum = 0, .maximum = MAX_KERNEL,
     .help = "conv2d, pool: zeros around the input"},
    {FIELD(rows), .type = DTS_FIELD_INT, .minimum = 0, .maximum = MAX_FEATURES, .help = "embedding: rows of the table"},
    {FIELD(heads), .type = DTS_FIELD_INT, .minimum = 0, .maximum = 65536, .help = "attention: heads of the queries"},
    {FIELD(kv_heads), .type = DTS_FIELD_INT, .minimum = 0, .maximum = 65536,
     .help = "attention: heads of keys and values; 0: as many"},
    {FIELD(bias), .type = DTS_FIELD_BOOL, .preset = "true", .help = "linear, conv2d: adds a bias"},
    {FIELD(causal), .type = DTS_FIELD_BOOL, .preset = "true", .help = "attention: looks backward only"},
};
#undef STRUCT

static const dts_schema operator_schema = {
    .name = "operator",
    .help = "one operator: what it is and where its inputs come from",
    .fields = operator_fields,
    .field_count = sizeof operator_fields / sizeof operator_fields[0],
    .struct_size = sizeof(dts_tensor_op_profile),
};

#define STRUCT dts_graph_profile
static const dts_field graph_fields[] = {
    {FIELD(name), .type = DTS_FIELD_STRING, .help = "what reports call the network"},
    {FIELD(description), .type = DTS_FIELD_STRING, .lines = true, .help = "one line for `dtsim list`"},
    {FIELD(operators), .type = DTS_FIELD_LIST, .sub = &operator_schema, .required = true,
     .help = "each behind those whose outputs it reads"},
    {FIELD(expected_parameters), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_NUMBER, .minimum = 0, .maximum = 1e18,
     .help = "published parameter count that the tests compare with; 0: none"},
};
#undef STRUCT

const dts_schema dts_graph_schema = {
    .name = "graph",
    .help = "A network as single operators, for strategies that cut every operator in its own way.",
    .fields = graph_fields,
    .field_count = sizeof graph_fields / sizeof graph_fields[0],
    .struct_size = sizeof(dts_graph_profile),
};
