/* SOAP strategies as tasks, operator by operator, so that a search can replace the tasks of one operator and keep the
 * rest.
 *
 * An operator has three groups of tasks: its forward pass with the transfers that bring its inputs, its backward pass
 * with the transfers that bring its output's gradients and the all-reduces of its weights, and its optimizer step.
 * All groups of a strategy have one order: forward passes as the graph lists them, backward passes the other way
 * round, steps at the end. Tasks that share a stream run in that order, whatever is ready first, as work that a
 * program has issued to a CUDA stream does. All dependencies point backward in that order; so the order of the groups
 * is an order of evaluation, and the timing of a strategy has one solution [1, section 5].
 *
 * Streams: a device has one for kernels and one for each direction of its port; a node has one for each direction of
 * every network adapter. A transfer occupies the ports (and the adapters) at both ends, so that transfers over one port
 * follow each other.
 *
 * What is not there: host threads (a kernel takes at least its launch), fused all-reduces of several weights (DDP's
 * buckets), gathers shared by several readers of one tensor.
 *
 * [1] Jia, Zaharia, Aiken, Beyond Data and Model Parallelism for Deep Neural Networks, MLSys 2019. */
#ifndef DTS_PLAN_LOWER_SOAP_H
#define DTS_PLAN_LOWER_SOAP_H

#include "base/time.h"
#include "engine/graph.h"
#include "plan/soap.h"

/* What a task waits for or is known by: DTS_SOAP_LOCAL + the index of a transfer of the same group, or the slot of a
 * main task: (kind · operators + operator) · devices + part. */
typedef uint32_t dts_soap_slot;

#define DTS_SOAP_LOCAL UINT32_C(0x80000000)

typedef enum dts_soap_kind {
    DTS_SOAP_FORWARD,
    DTS_SOAP_BACKWARD,
    DTS_SOAP_SYNC, /* all-reduce of the gradient of one share of the weights; in the group of the backward pass */
    DTS_SOAP_UPDATE,
    DTS_SOAP_KINDS
} dts_soap_kind;

typedef struct dts_soap_task {
    dts_time duration;
    dts_soap_slot slot;                 /* of a main task; DTS_SOAP_LOCAL + index of a transfer */
    uint32_t first_stream, first_after; /* into the group's streams and afters */
    uint32_t next;                      /* of a transfer: another one to the same part, DTS_SOAP_LOCAL: none */
    uint16_t stream_count, after_count;
} dts_soap_task;

typedef struct dts_soap_group {
    dts_soap_task *tasks; /* in order: transfers, main tasks, all-reduces */
    uint32_t *streams;
    dts_soap_slot *afters;
    uint32_t *used; /* every stream of the group once */
    size_t task_count, stream_count, after_count, used_count, link_count;
    size_t task_capacity, stream_capacity, after_capacity, used_capacity;
} dts_soap_group;

void dts_soap_group_free(dts_soap_group *group);

/* Groups are numbered forward 0 … n - 1, backward n … 2n - 1, update 2n … 3n - 1. */
typedef struct dts_soap_lowering dts_soap_lowering;

/* Costs of all cuts are computed once and kept. The caller owns *out; problem is borrowed. */
dts_status dts_soap_lowering_new(const dts_soap_problem *problem, dts_soap_lowering **out, dts_diag *diag);
void dts_soap_lowering_free(dts_soap_lowering *lowering);

/* Streams: devices · 3 (kernels, out, in), then adapters · 2. */
uint32_t dts_soap_streams(const dts_soap_problem *problem);

/* Fills group (its arrays are reused) with the tasks of one operator under the choices. False: memory ran out. */
bool dts_soap_build_group(dts_soap_lowering *lowering, const dts_soap_choice *choices, size_t number,
                          dts_soap_group *group);

/* Adds what operator op keeps on every device to memory_B[device]: weights, gradients, optimizer states, activations
 * and what it received; times sign. Whole bytes. */
void dts_soap_add_memory(dts_soap_lowering *lowering, const dts_soap_choice *choices, size_t op, int sign,
                         int64_t *memory_B);

/* Index of a slot's group in the numbering above. */
static inline size_t dts_soap_group_of(dts_soap_slot slot, size_t operators, size_t devices) {
    size_t block = slot / devices;
    return block < 2 * operators ? block : block - operators;
}

/* The number of the group at a position of the order, 0 … 3n - 1. */
static inline size_t dts_soap_order(size_t position, size_t operators) {
    return position < operators || position >= 2 * operators ? position : 3 * operators - 1 - position;
}

#endif
