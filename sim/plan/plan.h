/* The plan: how a training job is laid over the GPUs. The structs that a scenario binds, the rules that make a plan
 * legal, and what follows from it (degrees, placement, stages). */
#ifndef DTS_PLAN_PLAN_H
#define DTS_PLAN_PLAN_H

#include "hardware/hardware.h"
#include "model/model.h"

typedef enum dts_precision {
    DTS_PRECISION_FP32,
    DTS_PRECISION_TF32,
    DTS_PRECISION_FP16, /* everything in fp16, no master copy */
    DTS_PRECISION_BF16,
    DTS_PRECISION_AMP_FP16, /* fp32 master weights, autocast */
    DTS_PRECISION_AMP_BF16,
    DTS_PRECISION_FP8,
    DTS_PRECISION_MXFP8,
    DTS_PRECISION_NVFP4
} dts_precision;

typedef enum dts_optimizer {
    DTS_OPTIMIZER_SGD,
    DTS_OPTIMIZER_SGD_MOMENTUM,
    DTS_OPTIMIZER_ADAM,
    DTS_OPTIMIZER_ADAMW,
    DTS_OPTIMIZER_ADAFACTOR,
    DTS_OPTIMIZER_ADAMW_8BIT,
    DTS_OPTIMIZER_LAMB,
    DTS_OPTIMIZER_LION
} dts_optimizer;

typedef enum dts_recompute_kind {
    DTS_RECOMPUTE_NONE,
    DTS_RECOMPUTE_SELECTIVE,
    DTS_RECOMPUTE_FULL,
    DTS_RECOMPUTE_EVERY
} dts_recompute_kind;

typedef struct dts_recompute {
    int kind;      /* dts_recompute_kind */
    int64_t every; /* one checkpoint per this many layers */
} dts_recompute;

typedef struct dts_training {
    int64_t global_batch;    /* samples per optimizer step, all replicas */
    int64_t micro_batch;     /* samples per forward pass of one replica */
    int64_t sequence_length; /* tokens per sample */
    int precision;           /* dts_precision */
    int optimizer;           /* dts_optimizer */
    dts_recompute recompute;
} dts_training;

typedef enum dts_data_parallel {
    DTS_DP_SINGLE_PROCESS,
    DTS_DP_DDP,
    DTS_DP_ZERO1,
    DTS_DP_ZERO2,
    DTS_DP_ZERO3,
    DTS_DP_FSDP
} dts_data_parallel;

typedef enum dts_partition_kind {
    DTS_PARTITION_BALANCED,
    DTS_PARTITION_UNIFORM,
    DTS_PARTITION_GIVEN
} dts_partition_kind;

typedef struct dts_partition {
    int kind;        /* dts_partition_kind */
    int64_t *layers; /* GIVEN: layers of each virtual stage */
    size_t count;
} dts_partition;

typedef struct dts_parallelism {
    int64_t data, tensor, context, expert, pipeline; /* 0: left out, follows from the GPU count */
    int64_t virtual_stages;
    int data_parallel; /* dts_data_parallel */
    bool reshard_after_forward;
    int64_t shard_group; /* 0: all */
    bool sequence;
    bool async_tensor;
    const char *schedule; /* a name of schedule/ */
    dts_partition partition;
} dts_parallelism;

typedef enum dts_offload_target { DTS_OFFLOAD_NONE, DTS_OFFLOAD_CPU, DTS_OFFLOAD_NVME } dts_offload_target;

typedef struct dts_offload {
    int parameters, gradients, optimizer, activations; /* dts_offload_target */
} dts_offload;

typedef struct dts_input {
    int64_t workers;
    bool pin_memory;
} dts_input;

#endif
