/* What the files of SOAP lowering share. */
#ifndef DTS_PLAN_LOWER_SOAP_INSIDE_H
#define DTS_PLAN_LOWER_SOAP_INSIDE_H

#include "plan/lower/soap.h"

/* Costs of one part under one cut. */
typedef struct dts_soap_cost {
    dts_time forward, backward, update;
    double parameters; /* elements */
    double kept_B;
} dts_soap_cost;

struct dts_soap_lowering {
    const dts_soap_problem *problem;
    dts_arena *arena;
    dts_soap_cost ***costs; /* [operator][cut][part]; NULL: not computed yet */
    dts_tensor_op_execution execution;
    double weight_B; /* parameter, gradient and optimizer states, B per element */
    double update_B; /* moved by the step, B per element */
    int update_kernels;
    uint32_t *latest; /* scratch: [devices] the last transfer to each part */
    uint32_t *stamps; /* scratch: [streams] the group that used a stream last */
    uint32_t stamp;
};

/* The costs of all parts of a cut, computed once; NULL: memory ran out. */
const dts_soap_cost *dts_soap_costs(dts_soap_lowering *l, size_t i, uint32_t cut_index);

#endif
