/* The result of simulating one scenario: all that reports read. JSON names follow these fields one to one. */
#ifndef DTS_RUN_RESULT_H
#define DTS_RUN_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/time.h"
#include "run/explanation.h"
#include "scenario/scenario.h"

typedef struct dts_memory_gib {
    double parameters, gradients, optimizer, activations, temporary, communication, context, fragmentation;
} dts_memory_gib;

/* Sums to the iteration time, for the GPU on the critical path. */
typedef struct dts_time_shares {
    double compute, exposed_communication, bubble, exposed_offload, host_bound, optimizer, input_wait;
    /* the parts of host_bound: launches of kernels, the caching allocator's calls near the GPU's capacity, and the host
     * that has waited for the token counts of experts */
    double launches, allocator, token_counts;
} dts_time_shares;

typedef struct dts_communication_row {
    const char *kind;          /* "all-reduce", "send-recv", … */
    const char *group;         /* "data", "tensor", "pipeline", … */
    double bytes;              /* payload per iteration on one GPU */
    int64_t count;             /* operations per iteration on one GPU */
    double total_s, exposed_s; /* that the GPU waits for, of total_s */
    double awaited_s;          /* that it waits for transfers of other GPUs: of other stages, or slower replicas */
} dts_communication_row;

typedef struct dts_chunk_row {
    int64_t first_layer, layer_count; /* layers from 0 */
} dts_chunk_row;

typedef struct dts_stage_row {
    int64_t stage, first_layer, layer_count; /* of its first chunk; of all */
    dts_chunk_row *chunks;                   /* one after another they may lie anywhere in the model */
    size_t chunk_count;
    double parameters; /* elements on one rank */
    double begins_s;   /* its iteration; 0 unless stages begin one after another (optimizer.post_validation) */
    double compute_s, bubble_fraction;
    double peak_allocated_gib, peak_reserved_gib, peak_device_gib;
    dts_memory_gib memory_gib; /* at this stage's peak */
    double peak_at_s;          /* when in the iteration the peak is reached */
    const char *peak_cause;    /* the task that reached it */
} dts_stage_row;

/* What a span of the timeline is, for colours and legends. */
typedef enum dts_span_kind {
    DTS_SPAN_FORWARD,
    DTS_SPAN_RECOMPUTE,
    DTS_SPAN_BACKWARD,
    DTS_SPAN_BACKWARD_WEIGHT,
    DTS_SPAN_COMMUNICATION,
    DTS_SPAN_OPTIMIZER,
    DTS_SPAN_OFFLOAD,
    DTS_SPAN_HOST,
    DTS_SPAN_INPUT,
    DTS_SPAN_KIND_COUNT
} dts_span_kind;

extern const char *const dts_span_kind_names[DTS_SPAN_KIND_COUNT + 1];

/* One executed task. Spans are ordered by device, stream, start. */
typedef struct dts_span {
    uint32_t device, stream; /* indices into the result's tables */
    uint8_t kind;            /* dts_span_kind */
    int32_t microbatch;      /* -1: none */
    int32_t layer;           /* -1: none; embedding 0, layers from 1, head last+1 */
    int32_t chunk;
    const char *name; /* "mlp_up", "all-reduce bucket 3" */
    double bytes;     /* moved, for communication */
    dts_time start, end;
} dts_span;

typedef struct dts_stream_row {
    uint32_t device;
    const char *name; /* "compute", "host", "all-reduce", "h2d" */
} dts_stream_row;

typedef struct dts_memory_sample {
    uint32_t device;
    dts_time when;
    double bytes; /* allocated, all categories */
} dts_memory_sample;

/* One task of the graph, for dumps. */
typedef struct dts_task_row {
    const char *name, *role;
    const char *streams;   /* "compute", "data collectives" */
    const char *waits_for; /* numbers of tasks, besides the one before it on each stream */
    uint32_t device;
    int32_t microbatch, layer; /* -1: none */
    double fixed_s;            /* fixed part of the duration */
    double work_B;             /* then moves over shared links */
    double flops;
    dts_time start, end;
    int64_t held_up_by; /* the task that ended last of all it waited for; -1: none */
} dts_task_row;

/* The run of many days that the iteration is one of; its goodput does not depend on how many tokens it takes. */
typedef struct dts_whole_run {
    double goodput; /* training's share of the expected time; 0: it never ends */
    struct {
        double training, checkpoints, lost_work, restarts;
    } shares;                   /* of the expected time */
    double mtbf_s;              /* of the job; 0: it never fails */
    double checkpoint_B;        /* of all GPUs together */
    double checkpoint_s;        /* that training waits for it */
    double write_s;             /* until it is safe */
    double interval_s;          /* training between two; 0: none are written */
    double interval_iterations; /* the same in iterations */
    double restart_s;           /* from a failure to training again */
    double tokens;              /* asked for; 0: what follows is unknown */
    double ideal_s, expected_s; /* without and with failures and checkpoints */
    double failures;            /* expected */
    double usd;                 /* 0: the price is unknown, or the plan does not fit */
} dts_whole_run;

/* A change against too little memory, simulated. */
typedef struct dts_cure {
    const char *change;          /* "training.micro_batch=1", as --set takes it; several stand one behind the other */
    const dts_override *changes; /* the same, one by one */
    size_t change_count;
    bool fits;
    int64_t gpus;
    double needed_gib;      /* live tensors and context of the fullest GPU: what has to fit */
    double peak_device_gib; /* with what the allocator holds */
    double unserved_gib;    /* as of dts_result.allocator */
    int64_t retries;        /* the same */
    double retry_share;     /* of its iteration */
    double tokens_per_s;
    double room;         /* for tensors over what they take: a larger one is more sure */
    double fit_share;    /* as of dts_result.likely, by the caller; 0: unknown */
    bool coarse;         /* the figures are those of a first look or a part of the batch: the whole takes long */
    const char *verdict; /* as of dts_result; NULL: it fits by coarse figures, which know too little of retries */
    const char *spelled; /* in the words of the scenario's software, where the caller knows them (interop/spell.c) */
} dts_cure;

/* A published run that was simulated (scenarios/published), as the record of predictions has it. */
typedef struct dts_published_run {
    const char *table, *id;   /* TABLE.csv#ID */
    const char *source;       /* who measured it */
    const char *model;        /* its kind: "llama" */
    const char *stack;        /* its name for people, which a scenario written out in full still has */
    const char *architecture; /* of its GPUs: "hopper" */
    const char *precision;    /* "amp-bf16" */
    double parameters, gpus;
    double mfu;    /* as predicted, 0 to 1 */
    double ratio;  /* measured over predicted time */
    double memory; /* measured over predicted memory, allocated or, where nobody measured that, reserved; 0: unknown */
} dts_published_run;

typedef struct dts_result {
    dts_arena *arena;                               /* owns everything below */
    const char *scenario, *model, *cluster, *stack; /* names */
    const char *plan;                               /* "ddp 16", "fsdp 8 × pipeline 4", one line */
    int64_t gpus, nodes, global_batch, micro_batch, microbatches, sequence_length;
    int64_t new_tokens;          /* of each sample that an iteration computes: all of them, or 1 (mode: decode) */
    double parameters;           /* of the model */
    const char *adapters;        /* "LoRA of rank 16, base nf4"; NULL: none */
    double trainable_parameters; /* what is trained: all of them, or the adapters */
    double iteration_time_s, samples_per_s, tokens_per_s, tokens_per_s_per_gpu;
    struct {
        double low_s, high_s; /* where four of five published runs lay, those of a like mfu counting more; 0: unknown */
        /* 0 to 1: of published figures of memory, those that were no further above their predictions than this GPU
         * has room above this one; 0: none, or unknown */
        double fit_share;
        const dts_published_run *nearest; /* the most alike, at most one of a source */
        size_t nearest_count;
    } likely; /* by the caller: report/evidence.h */
    double model_tflops_per_gpu, mfu, hfu;
    double
        causal_mfu; /* the same as mfu with the half of causal attention that is computed, where mfu counts all pairs */
    double aco_ms_per_sample, exposed_aco_ms_per_sample;
    double bubble_fraction;
    bool wide; /* fp32 though half precision was asked for: a warning says why */
    bool fits;
    double capacity_gib;
    double peak_allocated_gib, peak_reserved_gib, peak_device_gib; /* the most of any GPU */
    dts_memory_gib memory_gib; /* of the GPU with the most on the device, at its peak */
    /* of its activations, outputs that a pipeline's stage keeps until the step ends; of its temporary, their copy */
    double kept_outputs_gib, joined_outputs_gib;
    struct {
        double parameters_gib, gradients_gib, optimizer_gib; /* of the fullest GPU's, where experts lie apart */
        int64_t copies;    /* ranks of a stage, or of a shard group, that hold the same experts */
        bool wide_moments; /* an 8-bit optimizer has smaller ones */
    } experts;
    struct {
        int64_t
            retries; /* of an iteration, on the GPU with most of them: cudaMalloc fails, all that is cached is freed */
        int64_t calls;        /* of cudaFree and cudaMalloc on that GPU */
        double stall_s;       /* of time_s.host_bound: the compute stream waits for those calls */
        double cost_s;        /* what they make the iteration longer, on whatever stage they are */
        double unserved_gib;  /* live tensors fit, but this request fails in the replay; 0: none does */
        bool doubtful;        /* reserved memory is an estimate, and one that a replay may well contradict */
        bool untimed_retries; /* replayed beside blocks or layers: retries, of which the time knows nothing */
    } allocator;
    dts_time_shares time_s;
    dts_communication_row *communication;
    size_t communication_count;
    dts_stage_row *stages;
    size_t stage_count;
    double nvme_peak_gib, nvme_capacity_gib; /* the same of its NVMe drives */
    double host_peak_gib, host_capacity_gib; /* of the fullest node, what is offloaded; 0: nothing is */
    struct {
        int64_t count;                        /* GPUs simulated one by one; 0: one stands for all of a stage */
        int64_t critical, least_busy;         /* GPUs, over all nodes */
        double critical_busy_s, least_busy_s; /* the time that their kernels run */
    } ranks;
    const char *bottleneck;     /* one line: what limits the iteration */
    const char *verdict;        /* on memory: "fits", "fits, but …", "may run out of memory", "does not fit" */
    const char *measured_times; /* how much of the plan takes measured times; NULL: none are given */
    const char **warnings;
    size_t warning_count;
    dts_cure *cures; /* where the plan does not fit or has retries, and it was asked for: the fastest that suffice, or
                        one that does not fit either */
    size_t cure_count, cures_tried;
    size_t cures_left_out;     /* changes that would take too long to simulate, beside the run itself */
    const char *host_short;    /* where none suffices on these GPUs, one that fits them, but not their nodes; or NULL */
    dts_cure *other_trainings; /* where none suffices on these GPUs: adapters or shorter samples that do */
    size_t other_training_count;
    const char *look_further;  /* the command that looks at more, where none of them suffices; or NULL */
    double price_usd_per_hour; /* of all that is rented; 0: unknown */
    int64_t idle_gpus;         /* rented with those that are used: the rest of their nodes */
    dts_whole_run whole_run;
    struct {
        uint64_t events, tasks;
        double wall_s; /* not part of machine-readable output unless asked: it would differ between runs */
        const char *detail, *network, *ranks;
        uint64_t seed;
        int64_t microbatches; /* simulated, where the steady state stands for the others; 0: all */
    } simulation;
    /* the executed timeline */
    const char **devices; /* "stage 0", … */
    size_t device_count;
    dts_stream_row *streams;
    size_t stream_count;
    dts_span *spans;
    size_t span_count;
    dts_memory_sample *memory_samples;
    size_t memory_sample_count;
    dts_task_row *tasks; /* the whole graph, when asked for */
    size_t task_count;
    dts_explanation *explanation; /* NULL unless asked for */
} dts_result;

void dts_result_free(dts_result *result);

#endif
