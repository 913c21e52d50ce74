/* One candidate on its frame: what the estimates of its time (estimate_time.c) and of its memory (estimate_memory.c)
 * share. */
#ifndef DTS_SEARCH_CANDIDATE_COSTS_H
#define DTS_SEARCH_CANDIDATE_COSTS_H

#include "search/layout_costs.h"

enum { DTS_CASE_NONE, DTS_CASE_SELECTIVE, DTS_CASE_FULL };

typedef struct dts_case {
    const dts_frame *frame;
    const dts_plan *plan;
    int kind;         /* dts_data_parallel */
    int recompute;    /* DTS_CASE_NONE … */
    size_t selection; /* SELECTIVE: of the frame's selections */
    double first;     /* FULL: of the first layers of each chunk only; INFINITY: of all */
    double span;      /* layers of one checkpoint */
    int32_t offload;  /* a level of offload */
    int hybrid;       /* shards inside nodes */
    double shards;
    bool fsdp;       /* and not ZeRO-3, which is the same but for the format of reduced gradients */
    double reduce_B; /* gradients on the wire, B per element */
    double microbatches;
} dts_case;

/* As dts_plan_owns_tensors: then the rank that owns most decides, not the average one. */
bool dts_case_owns_tensors(const dts_case *k);

/* FSDP's no_sync: whole gradients until the last microbatch. */
bool dts_case_defers_reduction(const dts_case *k);

/* What the passes of one microbatch of a rank take. */
typedef struct dts_case_passes {
    double forward_s, input_s, weight_s;
} dts_case_passes;

/* Without offloads, and sends that block. */
dts_case_passes dts_case_passes_of(const dts_case *k, const dts_rank_class *c, bool splits);

/* All passes of all ranks. busiest_s: of one microbatch, of the rank that takes longest; mean: of all ranks. */
double dts_case_pipeline_s(const dts_case *k, const dts_schedule_method *method, double busiest_s,
                           const dts_case_passes *mean);

/* Gradients that no backward pass hides, and gathers of what the step has updated. */
double dts_case_tail_s(const dts_case *k, const dts_rank_class *c, const dts_schedule_method *method,
                       const dts_case_passes *p);
double dts_case_step_s(const dts_case *k, const dts_rank_class *c);

/* Ranks that share one copy of a set of parameters. */
double dts_case_shards(const dts_case *k, int set);

/* Layers of a chunk of layers that are recomputed in full, and their share in a rank's layers. */
double dts_case_repeated(const dts_case *k, double layers);
double dts_case_repeated_share(const dts_case *k, const dts_rank_class *c);

/* Bytes of a rank: gathered units and gradients on their way. */
double dts_case_communication_B(const dts_case *k, const dts_rank_class *c);

/* Activations of a rank, B, whatever is offloaded. */
typedef struct dts_case_activations {
    double kept_B, halves_B; /* of all chunks: until the backward, and between its halves */
    double copied_B;         /* of kept_B, what goes to host memory where activations are offloaded */
    /* temporaries, gathered units and gradients on their way: while a layer runs, the head, the embedding */
    double layer_B, head_B, embedding_B;
    double root_B; /* FSDP's root and its gradients on their way */
    /* the smallest chunk's, without copies of weights: until the backward, and between its halves */
    double least_chunk_B, least_halves_B;
} dts_case_activations;

dts_case_activations dts_case_activations_of(const dts_case *k, const dts_rank_class *c);

/* What a rank has at the end of a step. */
typedef struct dts_case_resident {
    double stepped_B, come_B; /* on the GPU, and of it what comes while a backward pass runs */
    double lists_B;           /* beside it while the step runs */
    double host_B, drives_B;  /* in the memory of the host, and on drives, all the time */
} dts_case_resident;

dts_case_resident dts_case_resident_of(const dts_case *k, const dts_rank_class *c);

/* What a class of ranks does for its offloads, whatever is recomputed. */
typedef struct dts_case_offloads {
    dts_case_resident resident;
    double step_s;
    double parameters_s, gradients_s;           /* on their way there or back, for a pass */
    double activations_out_s, activations_in_s; /* the same of one byte */
} dts_case_offloads;

/* What is on its way, and what rests where. */
void dts_case_add_offloads(const dts_case *k, const dts_rank_class *c, dts_case_offloads *out);

/* Passes beside them; copied_B: of the activations that a microbatch keeps. */
dts_case_passes dts_case_with_offloads(const dts_case *k, const dts_case_offloads *o, double copied_B,
                                       const dts_schedule_method *method, dts_case_passes p);

/* The memory of a class of ranks, and its bound: into the largest so far. ordered: the simulation's order has these
 * moments, and not those of an order that it makes. */
void dts_case_memory(const dts_case *k, const dts_rank_class *c, const dts_case_activations *a,
                     const dts_case_resident *r, const dts_moments *moments, bool ordered, dts_estimate *out);

/* Of one rank's activations in the memory of its host, what is there when the schedule keeps most of them, at least;
 * and what may be there beside all that rests there. */
double dts_case_host_activations_B(const dts_case *k, const dts_rank_class *c, double least_chunk_B, double least);
double dts_case_host_more_B(const dts_case *k, const dts_rank_class *c, double kept_B, double most);
/* What the fullest node's host holds, where a rank of each class holds so much: at least, and at most. */
double dts_case_least_of_host_B(const dts_case *k, const double *rank_B);
double dts_case_most_of_host_B(const dts_case *k, const double *rank_B);

#endif
