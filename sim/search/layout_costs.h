/* Everything about a layout that does not depend on its schedule, ZeRO stage, recomputation and offload: where its
 * ranks are, what each does for a microbatch, what its collectives cost. From a frame the closed forms of thousands of
 * candidates follow by arithmetic alone, without an allocation. */
#ifndef DTS_SEARCH_LAYOUT_COSTS_H
#define DTS_SEARCH_LAYOUT_COSTS_H

#include "plan/lower/costs.h"
#include "search/candidate.h"

/* Collectives of data parallelism over the gradients and parameters of one rank, seconds. */
typedef struct dts_rank_collectives {
    double buckets;               /* that gradients fill; of these … */
    double reduce_s, scatter_s;   /* … all-reduces, and reduce-scatters */
    double gather_s, broadcast_s; /* all parameters at once; by the ranks that own their tensors (ddp.owns_tensors) */
    /* sharded, all units one after another: by all, in node groups; of gradients also by the format, ZeRO-3's and
     * FSDP's, and in node groups with the all-reduces between these */
    double unit_gathers_s[2], unit_scatters_s[2][2]; /* [FSDP][in node groups] */
} dts_rank_collectives;

/* What a rank runs again by selective recomputation, as for dts_rank_class, and what its layers keep then. */
typedef struct dts_class_selection {
    double chain_s, kernels_s, launches, way_s;
    double layers_B, extra_B; /* kept by all layers; dropped of the layer that drops most */
    double weights_B;         /* kept by all layers between the halves of a split backward */
    double input_B;           /* of what layers keep, what lies in the buffers in which chunks were received */
} dts_class_selection;

/* Pipeline ranks that do the same work. */
typedef struct dts_rank_class {
    int first, last;                      /* the ranks are neighbours */
    double layers, fewest_layers;         /* of all chunks; of the smallest chunk */
    double units;                         /* of FSDP: those of layers, and one for embedding and head */
    double layer_units;                   /* of these, in one layer on average */
    double ends;                          /* of these, embedding and head by themselves; 0: together */
    double end, end_B;                    /* of the larger of these: elements, and bytes when gathered */
    double unit_quantised[DTS_SET_COUNT]; /* of the elements of one layer's units, in products of 8 or 4 bits */
    bool embedding, head;
    double parameters[DTS_SET_COUNT], quantised[DTS_SET_COUNT];   /* elements on the rank, of those that are trained */
    double frozen_B[DTS_SET_COUNT], unit_frozen_B[DTS_SET_COUNT]; /* of the others: on the rank, in one layer */
    double tensors;
    double owned[DTS_SET_COUNT], owned_tensors; /* of the rank of the group that owns most (ddp.owns_tensors) */
    double statistics;                          /* elements that the optimizer keeps beside moments */
    dts_orthogonal orthogonal[DTS_SET_COUNT];   /* matrices that a step orthogonalises, on the rank */
    dts_orthogonal owned_orthogonal[2];         /* of the rank that takes longest: of all, in node groups */
    double unit[DTS_SET_COUNT];                 /* of these, in one layer on average */
    double layers_saved_B, layers_peak_B;       /* kept by all layers; while one runs */
    double layers_weights_B;                    /* kept by all layers between the halves of a split backward */
    /* one microbatch through all chunks, s: the chain with its exchanges or its launches, whichever takes longer */
    double forward_s, input_s, weight_s, full_s;
    double backward_s;   /* both halves where no schedule splits them: the host runs ahead from one to the other */
    double accumulate_s; /* beside it: new gradients are added to stored ones, where they are not reduced at once */
    /* kernels alone, s, and launches */
    double kernels_forward_s, kernels_backward_s, kernels_full_s;
    /* what a pass waits for exchanges between its kernels at least; in layers only; of the longest */
    double waited_s, waited_layers_s, longest_wait_s;
    double launches_forward, launches_backward, launches_full;
    /* kernels of one microbatch on the way to this rank's first stage and back from it, s */
    double way_forward_s, way_backward_s, way_full_s;
    dts_class_selection selective[DTS_SELECTIONS];
    double saved_B;      /* of the ends: embedding and head */
    double head_saved_B; /* of the head alone */
    double head_weights_B;
    double transient_B, embedding_transient_B; /* temporaries of the ends; of the embedding alone */
    double buffered, input_B; /* chunks that are received in buffers; of what their layers keep, what lies there */
    /* plan/lower/pipeline_buffers.c: buffers; what is kept of all microbatches until the step ends; copies of all
     * outputs then */
    double buffers_B, until_step_B, joined_B;
    dts_rank_collectives collectives;
} dts_rank_class;

typedef struct dts_frame_owners dts_frame_owners; /* layout_owners.c */
typedef struct dts_frame_terms dts_frame_terms;   /* estimate.c */

typedef struct dts_frame {
    const dts_plan *plan; /* an outline */
    dts_block_costs costs;
    double least_slowest;                                    /* of the kernels' time */
    double least_saved_B, least_selective_B[DTS_SELECTIONS]; /* of any layer */
    double least_weights_B, least_selective_weights_B[DTS_SELECTIONS];
    double most_copies_B; /* the same: cast weights among them */
    dts_rank_class *classes;
    int class_count;
    double reduce_B[2];      /* as dts_storage has it: of other kinds, of FSDP */
    int64_t chunks;          /* per rank */
    int64_t group;           /* replicas of one node, the group of hybrid sharding; 0: none */
    bool captured;           /* CUDA graphs launch all kernels */
    bool alike;              /* all layers are */
    double least_estimate_s; /* of the closed forms of all candidates */
    double send_s;           /* from stage to stage, with the gather behind it */
    dts_step_work step;
    double copy_s;            /* between GPU and host memory, s/B */
    double read_s, write_s;   /* of the node's drives, with as many others as GPUs share them, s/B; 0: none */
    double host_B;            /* memory of a node's host */
    double cpu_step_s;        /* step on the CPU, s/B */
    dts_frame_owners *owners; /* room to hand out tensors; NULL: no rank owns whole ones */
    dts_frame_terms *terms;   /* what the next candidate has in common with the last one */
} dts_frame;

/* layout: how the schedule lays chunks on ranks. The frame lives in arena and borrows plan. */
dts_status dts_frame_make(const dts_plan *plan, const dts_block_costs *costs, dts_layout layout, dts_arena *arena,
                          dts_frame *out, dts_diag *diag);

/* What the closed forms of no candidates undercut that have these costs, before their frame is made. */
double dts_least_estimate_s(const dts_plan *plan, const dts_block_costs *costs);

/* Which of the costs' selections a value of the recomputation axis is; 0: the stack's, or none of them. */
size_t dts_frame_selection(const dts_frame *frame, int32_t recompute);

/* The closed forms of one candidate. The bounds are proven: no simulation of it is faster or needs less memory. */
typedef struct dts_estimate {
    double time_s, memory_B; /* of live tensors on the fullest GPU */
    double least_time_s, least_memory_B;
    double least_host_B, least_drives_B; /* in the memory of the fullest node's host, and on its drives */
    double most_host_B;                  /* no simulation has more there; where the cluster has drives, else 0 */
} dts_estimate;

/* What the time of no candidate undercuts that differs from this one in its offload alone. */
double dts_frame_least_estimate_s(const dts_frame *frame, const dts_candidate *candidate,
                                  const dts_schedule_method *method);

/* Of the estimate the time alone. */
double dts_frame_time_s(const dts_frame *frame, const dts_candidate *candidate, const dts_schedule_method *method);

/* Where the orders of each class's ranks hold most: [class] in arena; of[rank]. NULL: no memory. */
dts_moments *dts_frame_moments(const dts_frame *frame, const dts_moments *of, dts_arena *arena);

/* moments: [class] */
dts_estimate dts_frame_estimate(const dts_frame *frame, const dts_candidate *candidate,
                                const dts_schedule_method *method, const dts_moments *moments);

/* Makes room for out->terms, once its classes are known. */
dts_status dts_frame_make_terms(dts_frame *out, dts_arena *arena);

/* Makes out->owners where the stack has ranks own whole tensors. */
dts_status dts_frame_make_owners(dts_frame *out, dts_arena *arena);
/* Begins with a rank, adds the tensors of parts of its chunks, so many times, and finds who of a group owns most. */
void dts_frame_own_none(const dts_frame *frame);
void dts_frame_own_part(const dts_frame *frame, const dts_part_cost *part, size_t times);
void dts_frame_own_copy(const dts_frame *frame, double elements);
void dts_frame_hand_out(const dts_frame *frame, dts_rank_class *c);

/* What a rank would do with this chunk alone instead of its own. */
void dts_frame_stage(const dts_frame *frame, int rank, const dts_chunk *chunk, dts_rank_class *out);

/* How long a class of ranks is busy in an iteration, and its memory at its fullest, by the closed forms. */
void dts_class_estimate(const dts_frame *frame, const dts_candidate *candidate, const dts_schedule_method *method,
                        const dts_rank_class *c, const dts_moments *moments, double *busy_s, double *memory_B);

/* What each layer of a chunk of a rank class adds, kept or repeated. */
typedef struct dts_layer_terms {
    int layers;                  /* of a chunk */
    double fixed_B;              /* beside the layers' activations */
    double kept_B, checkpoint_B; /* a layer's activations in flight: kept, or its input only */
    double transient_B, repeated_transient_B;
} dts_layer_terms;

void dts_frame_layer_terms(const dts_frame *frame, const dts_candidate *candidate, int class, double in_flight,
                           dts_layer_terms *out);

#endif
