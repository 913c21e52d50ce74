/* Which strategy for this model on this cluster: rules of thumb on one side, simulation on the other.
 *
 * Facts are simulated (does the model fit one GPU? does its largest layer?) or read off the cluster (is the network
 * fast?). The rules (rules.c) turn them into recommendations. Then the best plan of every family of strategies is
 * searched and simulated, and so is the scenario's own; each recommendation is held against the best of all. */
#ifndef DTS_ADVISE_ADVISE_H
#define DTS_ADVISE_ADVISE_H

#include "search/search.h"

/* ---- facts -------------------------------------------------------------------------------------------------------
 */

typedef struct dts_facts {
    int64_t gpus, nodes, gpus_per_node;
    double parameters;
    double capacity_gib;
    /* the whole model with one sample on one GPU */
    double one_gpu_gib;           /* all activations kept */
    double one_gpu_recompute_gib; /* all recomputed */
    bool fits_one_gpu;            /* one of them does */
    /* the fullest GPU of the finest pipeline: one layer each, one sample */
    double largest_layer_gib;
    bool largest_layer_fits;
    bool fast_inside;        /* NVLink or NVSwitch between the GPUs of a node */
    double node_network_Bps; /* all adapters of a node, one direction, nominal */
    bool fast_between;
    double aco_ms; /* communication of one GPU under DDP, per sample of its share */
    bool high_aco;
} dts_facts;

extern const double dts_fast_network_Bps; /* per node */
extern const double dts_high_aco_ms;

/* ---- families and rules ------------------------------------------------------------------------------------------
 */

typedef enum dts_family {
    DTS_FAMILY_DDP,
    DTS_FAMILY_ZERO,
    DTS_FAMILY_PIPELINE,
    DTS_FAMILY_TENSOR,
    DTS_FAMILY_3D,
    DTS_FAMILY_3D_ZERO,
    DTS_FAMILY_OWN, /* the scenario's own plan, whatever it is; no rule speaks of it */
    DTS_FAMILY_COUNT
} dts_family;

extern const char *const dts_family_names[];

/* A branch: the first of its book whose condition holds is taken. */
typedef struct dts_branch {
    const char *when; /* for people */
    const char *then;
    bool (*holds)(const dts_facts *facts);
    unsigned families; /* bits 1 << dts_family; 0: no recommendation */
    bool alike;        /* the book says that they perform alike */
} dts_branch;

typedef struct dts_rule_book {
    const char *name, *source;
    const dts_branch *branches; /* the last one always holds */
    size_t count;
} dts_rule_book;

enum { DTS_BOOK_TREE, DTS_BOOK_STUDY, DTS_BOOK_COUNT };
extern const dts_rule_book dts_rule_books[DTS_BOOK_COUNT];

const dts_branch *dts_rule_book_branch(const dts_rule_book *book, const dts_facts *facts);

/* ---- advice ------------------------------------------------------------------------------------------------------
 */

enum { DTS_TRIALS_MOST = 16, DTS_NO_TRIAL = -1, DTS_WHY_MOST = 800 };

/* The best plan of a family. */
typedef struct dts_contender {
    bool legal; /* is there a plan? */
    dts_candidate candidate;
    dts_figures figures;
    char why[DTS_WHY_MOST]; /* it does not fit, and a book says that it is as fast as others: what takes the memory */
} dts_contender;

/* The winner with other values of one axis, all else equal. */
typedef struct dts_trial {
    int32_t value;
    dts_figures figures;
} dts_trial;

typedef struct dts_trials {
    const char *rule, *source; /* what the rule of thumb says */
    dts_layout_axis axis;
    dts_trial items[DTS_TRIALS_MOST]; /* legal ones, in the rule's order: what it prefers comes last */
    size_t count;
    int preferred; /* the last that fits: the rule's choice; DTS_NO_TRIAL: none fits */
    int fastest;   /* that fits; DTS_NO_TRIAL: none */
} dts_trials;

enum { DTS_TRIALS_MICRO_BATCH, DTS_TRIALS_RECOMPUTE, DTS_TRIALS_OFFLOAD, DTS_TRIALS_COUNT };

/* What a book recommends, against simulation. */
typedef struct dts_verdict {
    const dts_branch *branch;
    int best;      /* the family recommended whose plan is fastest; DTS_NO_TRIAL: none recommended, or none fits */
    double behind; /* its time over that of the best of all, less 1 */
    bool agrees;   /* less than 3 % behind; and of families said to perform alike, all fit */
    unsigned lack; /* bits 1 << dts_family: of families said to perform alike, those that do not fit */
    double spread; /* slowest over fastest of those recommended that fit, less 1 */
} dts_verdict;

typedef struct dts_advice {
    const dts_scenario_values *base; /* borrowed */
    dts_facts facts;
    dts_contender families[DTS_FAMILY_COUNT];
    dts_stage_list own_stages; /* of the scenario's own plan */
    int best;                  /* family; DTS_NO_TRIAL: nothing fits */
    dts_verdict verdicts[DTS_BOOK_COUNT];
    dts_trials trials[DTS_TRIALS_COUNT]; /* of the best; count 0 without one */
    bool interrupted;
    uint64_t out_of_memory; /* simulations */
} dts_advice;

typedef struct dts_advice_request {
    const dts_scenario_values *base;
    int threads; /* less than 1: one per core */
    const atomic_bool *stop;
    dts_search_progress *progress;
    void *progress_context;
} dts_advice_request;

/* An illegal scenario is an error. */
dts_status dts_advice_make(const dts_advice_request *request, dts_advice *out, dts_diag *diag);

/* facts.c: the facts alone. */
dts_status dts_facts_find(const dts_scenario_values *base, dts_facts *out, dts_diag *diag);

#endif
