/* From a simulated graph to the figures of a result. */
#ifndef DTS_RUN_MEASURE_H
#define DTS_RUN_MEASURE_H

#include "engine/simulate.h"
#include "plan/lower/lower.h"
#include "run/replay.h"
#include "run/result.h"

/* What the measuring functions read. */
typedef struct dts_measured {
    const dts_plan *plan;
    const dts_lowered *lowered;
    const dts_simulation *simulation;
    bool flow_network;
    const dts_replay *replays; /* [pipeline] the caching allocator's; NULL: it is estimated */
    dts_id *runs;              /* [task] found so far by charging waits (accounts.c); DTS_NO_ID: not yet */
    dts_id last_task;          /* dts_last_task */
    dts_id critical;           /* dts_critical_device */
    dts_time from, to;         /* the iteration: all that was simulated, or a window of it */
    dts_time longer;           /* iterations are than this one on average: they wait for batches (input.c) */
    const dts_time *begins;    /* [rows · pipeline] of stages that begin at their own times; NULL: at from */
    /* what lies between these of the critical path stands for so many more of its kind (fold.c) */
    dts_time repeated_from, repeated_to;
    int64_t repeats;
} dts_measured;

/* The length of what of [from, to) lies in the iteration; both are moved to its borders. */
dts_time dts_measured_cut(const dts_measured *m, dts_time *from, dts_time *to);

/* The same with the window of a device: where it begins at its own time, that is another one. */
dts_measured dts_measured_on(const dts_measured *m, dts_id device);

/* The task of the iteration that ends last (ties: the lowest id); DTS_NO_ID without any. */
dts_id dts_last_task(const dts_lowered *lowered, const dts_simulation *simulation);

/* Where the time of one device went, and what its communication cost. */
typedef struct dts_accounts {
    dts_time_shares shares;                                           /* sum to the iteration time */
    double exposed_by_row[DTS_GROUP_COUNT][DTS_COLLECTIVE_COUNT + 1]; /* last column: send-recv */
    double awaited_by_row[DTS_GROUP_COUNT][DTS_COLLECTIVE_COUNT + 1]; /* others', the same */
} dts_accounts;

/* Accounts for device's iteration: its compute stream is busy, or idle for a reason. A gap is charged by walking back
 * through what the next kernel waited for (accounts.c). */
void dts_account_device(const dts_measured *all, dts_id device, dts_accounts *out);

/* Does a transfer start or end at device, or is device a member of its group? */
bool dts_takes_part(const dts_measured *m, dts_id task, dts_id device);

/* Is a task of communication a transfer, rather than a wait for one or its way through the network? */
bool dts_moves_bytes(const dts_task_info *info);

/* The device that spends most time on the critical path. */
dts_status dts_critical_device(const dts_measured *m, dts_id *out);

/* The kind of a transfer that is no collective, as rows name it. */
extern const char dts_send_recv[];

/* Communication of device by kind and group, in the result's arena. */
dts_status dts_measure_communication(const dts_measured *all, dts_id device, const dts_accounts *accounts,
                                     dts_result *result);

/* From these rows: amortised communication overhead, the time of one GPU's communication over the samples of its share,
 * ms/sample. */
void dts_measure_aco(dts_result *result);

/* Memory of every stage, and of the fullest: the one with the most on the device (memory.c). */
dts_status dts_measure_memory(const dts_measured *m, dts_result *result);
/* Live tensors fit, but what an estimate says of reserved memory may be wrong where it matters: within 5 % of the
 * capacity; where layers have experts, whose buffers come in sizes of their own. */
bool dts_estimate_doubtful(const dts_measured *m);
size_t dts_fullest_stage(const dts_result *result);

/* Devices, streams and spans for pictures (spans.c). */
dts_status dts_measure_spans(const dts_measured *m, dts_result *result);

/* Every task of the graph: result->tasks (graph_rows.c). */
dts_status dts_measure_graph(const dts_measured *m, dts_result *result);

/* Where time and bytes go, term by term, with the GPU device on the critical path: result->explanation. Needs all of
 * the figures above (explain.c). */
dts_status dts_measure_explanation(const dts_measured *m, dts_id device, dts_result *result);
/* Its parts: kernels (explain_kernels.c), transfers and memory (explain_terms.c). */
dts_status dts_explain_kernels(const dts_measured *m, dts_id device, dts_result *result);
dts_status dts_explain_transfers(const dts_measured *all, dts_id device, dts_result *result);
dts_status dts_explain_memory(const dts_measured *m, dts_result *result);
/* "embedding", "layer", "head" of a task, or NULL. */
const char *dts_part_name(const dts_plan *plan, const dts_task_info *info);

#endif
