/* Why a result is what it is: what `dtsim explain` shows. Made only when asked for (dts_run_options.explain); all of it
 * lives in the result's arena. */
#ifndef DTS_RUN_EXPLANATION_H
#define DTS_RUN_EXPLANATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What holds a class of kernels up. */
typedef enum dts_bound {
    DTS_BOUND_COMPUTE,
    DTS_BOUND_WAVES,  /* compute, but at least a quarter of it for multiprocessors that idle in the last wave */
    DTS_BOUND_MEMORY, /* device-memory bandwidth */
    DTS_BOUND_FLOOR,  /* shortest kernel: too little work */
    DTS_BOUND_LAUNCH, /* the GPU waits for the host longer than the kernels run */
    DTS_BOUND_OTHER,  /* none of these: a measured curve, or no length */
    DTS_BOUND_COUNT
} dts_bound;

extern const char *const dts_bound_names[DTS_BOUND_COUNT + 1];

/* All kernels of one operator in one direction on the GPU of the critical path. */
typedef struct dts_kernel_row {
    const char *part;          /* "embedding", "layer", "head"; NULL: none of them (optimizer, copies) */
    const char *name;          /* the operator: "mlp_up" */
    const char *direction;     /* "forward", "recompute", "backward", "backward-weight", "optimizer" */
    const char *shape;         /* "4 x (2048, 1024)·(1024, 4096)"; NULL: no product */
    int64_t count;             /* kernels per iteration */
    double total_s;            /* of all of them */
    double flops, bytes;       /* of all of them; bytes 0: unknown */
    double computed;           /* share of flops that is computed: fused attention skips what a causal mask hides */
    double share_of_peak;      /* achieved FLOP/s, of what is computed, over the dense peak of the type */
    double share_of_bandwidth; /* achieved bytes/s over the memory bandwidth */
    /* relative growth of the time when what stands there gets slower, measured by computing the kernels again */
    double by_compute, by_memory, by_floor;
    double wave_loss; /* share of the time that would go if multiprocessors could share tiles */
    double wait_s;    /* how long the compute stream waited for the host before these kernels */
    int bound;        /* dts_bound */
    bool measured;    /* times of these very shapes are in gpu.measured */
} dts_kernel_row;

/* Tasks of one kind on the critical path: the chain of tasks, each held up by the one before, that ends last. */
typedef struct dts_path_row {
    const char *name;      /* "mlp_up", "launch", "all-reduce bucket" */
    const char *direction; /* as above, "communication", "offload", "host" */
    const char *stream;    /* "compute", "data collectives", "host" */
    const char *part;
    int64_t count;
    int64_t devices; /* on how many */
    double total_s;  /* rows sum to the iteration time */
} dts_path_row;

/* Transfers of one size in one group, of the GPU on the critical path. */
typedef struct dts_transfer_row {
    const char *kind, *group, *algorithm;
    int64_t ranks, nodes;
    double sharing; /* identical groups that share a node's network */
    double bytes;   /* payload of one */
    int64_t count;
    double latency_s;
    double work_B;     /* what the busiest port sends */
    double rate_Bps;   /* on idle links */
    const char *limit; /* which link or cap that is: "GPU links", "node network", "flow cap" */
    double alone_s;    /* on idle links: closed form, or what was measured */
    bool measured;     /* this group is in cluster.measured */
    double mean_s;     /* as simulated, with whoever shares the links */
    double total_s;
    const char *formula;
} dts_transfer_row;

typedef struct dts_memory_term {
    const char *name;
    double gib;
    const char *formula; /* with its numbers */
} dts_memory_term;

/* A number that went in. */
typedef struct dts_input_row {
    const char *use; /* "compute", "device memory", "launch", … */
    const char *key, *value;
    const char *source; /* NULL: none stated */
    const char *file;   /* NULL: the schema's default */
    uint32_t line;
} dts_input_row;

/* One change, simulated. */
typedef struct dts_what_if_row {
    const char *name;   /* "GPU memory bandwidth" */
    const char *change; /* "+10 %", "training.micro_batch=16" */
    const char *keys;   /* what was changed */
    bool plan;          /* a change of the plan, not of the hardware */
    double iteration_s, samples_per_s;
    double peak_device_gib;
    double unserved_gib; /* > 0: may run out of memory, as dts_result.allocator says; 0 where it does not fit */
    double retry_share;  /* of the iteration; 0 where it does not fit */
    bool fits;
} dts_what_if_row;

typedef struct dts_explanation {
    dts_kernel_row *kernels; /* longest first */
    size_t kernel_count;
    dts_path_row *path; /* longest first */
    size_t path_count;
    int64_t path_device; /* the GPU on the critical path */
    dts_transfer_row *transfers;
    size_t transfer_count;
    dts_memory_term *memory;
    size_t memory_count;
    dts_input_row *inputs;
    size_t input_count;
    dts_what_if_row *what_ifs;
    size_t what_if_count;
    const char *advice; /* a paragraph: what limits this plan and what would help; NULL without what-ifs */
} dts_explanation;

#endif
