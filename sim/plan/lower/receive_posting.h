/* When a stage posts its receives, where transfers overlap (receive_posting.c), and sends that are posted (send.c). */
#ifndef DTS_PLAN_LOWER_RECEIVE_POSTING_H
#define DTS_PLAN_LOWER_RECEIVE_POSTING_H

#include "plan/lower/builder.h"

typedef struct dts_posted dts_posted;

/* For the plan of the builder, in its arena. NULL: memory ran out. */
dts_posted *dts_posted_new(const dts_builder *b);

/* The operation of a rank at index of its order ends with task. */
void dts_posted_done(dts_posted *p, int64_t rank, size_t index, dts_id task);

/* The last kernel of the operation behind which the input of op is posted, which comes from another rank; DTS_NO_ID:
 * there is none. index: that of op in its rank's order, or of the first one of those that run in turns with it. */
dts_id dts_posted_behind(const dts_posted *p, int64_t rank, size_t index, const dts_op *op);

/* dts_build_send for a sender that goes on: what a message spends in the network holds up its receiver, not the next
 * one. A send ends when its data are in the buffers of NCCL's proxy (prims_simple.h, transport/net.cc). */
dts_id dts_build_post(dts_builder *b, dts_stage *from, const dts_stage *to, bool up, double bytes, dts_id after,
                      const dts_task_info *info);
/* When a message that was posted is there; `sent` itself where no network lies between. */
dts_id dts_build_arrival(dts_builder *b, const dts_stage *from, const dts_stage *to, dts_id sent,
                         const dts_task_info *info);

#endif
