/* A user's own order, in the dialect of torch.distributed.pipelining: comma-separated values, a row per rank, in each
 * cell an action such as 0F3: stage, kind, microbatch [1].
 *
 *   F   forward                      I   gradient of the input       (1F2;0B1)OVERLAP_F_B   one block
 *   B   whole backward               W   gradient of the weights     (empty)                nothing
 *
 * Rows of _PipelineScheduleRuntime's lowered dialect may also hold SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD and
 * REDUCE_GRAD. They are left out: the simulation makes transfers, gathers and reductions where the order needs them.
 *
 * [1] pytorch/pytorch, torch/distributed/pipelining/schedules.py: _Action, _load_csv, _dump_csv. */
#ifndef DTS_SCHEDULE_FILE_H
#define DTS_SCHEDULE_FILE_H

#include "base/text.h"
#include "schedule/schedule.h"

/* What a report says of a user's order: no formula. */
extern const dts_schedule_method dts_schedule_own;

/* Does a schedule of this name mean a file? */
bool dts_schedule_is_file(const char *name);

/* Reads and checks an order: complete, unique, laid out in one way, free of deadlock (else the message names the circle
 * and its cells). All errors of a file are reported. out and its name live in arena; text need not outlive the call. */
dts_status dts_schedule_read(const char *path, dts_arena *arena, dts_schedule *out, dts_diag *diag);
dts_status dts_schedule_parse(const char *text, size_t length, const char *path, dts_arena *arena, dts_schedule *out,
                              dts_diag *diag);

/* Writes any order with one direction in the same dialect. */
dts_status dts_schedule_write(const dts_schedule *schedule, dts_text *out, dts_diag *diag);

#endif
