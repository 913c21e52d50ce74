/* Finding the best plan: the request, the findings, and the families of spaces and methods.
 *
 * A search looks at every legal candidate of a space with closed forms, throws out what a proven bound excludes, has
 * the event simulation measure the best of the rest, and ranks by what it measured. */
#ifndef DTS_SEARCH_SEARCH_H
#define DTS_SEARCH_SEARCH_H

#include <stdatomic.h>

#include "search/space.h"
#include "search/store.h"

typedef enum dts_objective {
    DTS_OBJECTIVE_TIME,
    DTS_OBJECTIVE_COST,                 /* USD for a token */
    DTS_OBJECTIVE_MEMORY,               /* of live tensors on the fullest GPU */
    DTS_OBJECTIVE_THROUGHPUT_PER_DOLLAR /* tokens for a USD */
} dts_objective;

extern const char *const dts_objective_names[]; /* NULL-terminated */

/* May a plan be the answer? Asked of plans that fit, the best first (dts_search_request.accepts). */
typedef enum dts_acceptance { DTS_NOT_ASKED, DTS_ACCEPTED, DTS_PASSED_OVER } dts_acceptance;

/* A candidate that has been simulated. */
typedef struct dts_finding {
    dts_candidate candidate;
    dts_estimate estimate;
    dts_outcome outcome;
    double fill;      /* bytes over capacity, of the fullest GPU, host or drives: above 1 it does not fit */
    double host_fill; /* the same of host and drives alone */
    double full_s;    /* its time as first simulated in full: without stalls of the caching allocator */
    double tasks;     /* of its simulation */
    bool as_run;      /* its figures are those of `dtsim run`: not estimated, not folded (dts_layouts_settle) */
    bool again;       /* its figures are of a second simulation, which made them so */
    bool no_memory;   /* that one ran out of memory: its figures are still those of the first */
    dts_acceptance acceptance;
    const char *obstacle; /* why the stack's launcher cannot run it, where somebody told; borrowed; NULL: nobody did */
    size_t answer;        /* after the ranking: the number of different answers before it; of what fits */
    size_t equal_to; /* the first finding that is the same answer: itself, or one that it differs from in something that
                        changes nothing here */
} dts_finding;

/* What everybody would try first. */
typedef enum dts_rule {
    DTS_RULE_DDP,      /* whole replicas */
    DTS_RULE_FSDP,     /* everything sharded */
    DTS_RULE_MEGATRON, /* tensor parallel up to a node, then as few stages as fit, then data */
    DTS_RULE_COUNT
} dts_rule;

extern const char *const dts_rule_names[];

typedef void dts_search_progress(void *context, size_t done, size_t total, const char *what);

typedef struct dts_search dts_search;

/* Is what a search has found not enough? */
typedef bool dts_search_needs_more(const dts_search *search);

/* *accepted: somebody can run this plan. Called by one thread at a time. */
typedef dts_status dts_search_accepts(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag);

/* How many candidates are simulated where nobody says otherwise. */
enum { DTS_SEARCH_SIMULATIONS = 96 };

typedef struct dts_search_request {
    const dts_scenario_values *base;
    const dts_axis *restrictions; /* --over */
    size_t restriction_count;
    const char *method; /* a name of dts_search_methods */
    dts_objective objective;
    size_t simulations;                /* most candidates that are simulated; 0: until nothing unproven is left */
    dts_search_needs_more *needs_more; /* then the search goes on until there are DTS_SEARCH_SIMULATIONS; NULL: never */
    size_t answers;   /* simulate in full until that many are different, where there are; 0: the best only */
    uint64_t seed;    /* of methods that draw lots */
    int threads;      /* less than 1: one per core */
    dts_store *store; /* NULL: none */
    const char *study, *document; /* with a store: the search's name and the scenario's effective document */
    const atomic_bool *stop;
    dts_search_progress *progress;
    void *progress_context;
    bool only_here; /* the best: no baselines, no plan of the scenario's own, no way out where nothing fits, no count of
                       the others, and what is not accepted only where nothing else fits */
    dts_search_accepts *accepts; /* NULL: every plan may be the answer */
    void *accepts_context;
    bool only_offered; /* among the schedules that are searched unless --over names some: those that the stack offers */
} dts_search_request;

/* What became of the candidates; legal = the sum of the others. */
typedef struct dts_search_counts {
    uint64_t illegal;         /* combinations that a rule refuses */
    char illegal_reason[160]; /* one of the refusals */
    uint64_t legal;
    uint64_t no_memory; /* proven not to fit */
    uint64_t no_better; /* proven no better than the best found */
    uint64_t simulated;
    uint64_t failed;            /* legal, but no simulation of it could be made, coarsely or in full */
    char failure[240];          /* the first of these, and why */
    uint64_t screened;          /* simulated coarsely, and not in full */
    uint64_t worse_by_estimate; /* neither: the closed form ranked them behind what was simulated */
    uint64_t stored;            /* of the simulated ones, found in the store */
    uint64_t out_of_memory;     /* that had a simulation which ran out of memory */
} dts_search_counts;

/* A first look against a closer one, over what fits. */
typedef struct dts_disagreement {
    size_t count;
    double mean_error, worst_error; /* |first / closer - 1| of the time */
    double rank_correlation;        /* Spearman's */
    size_t best_rank;               /* where the first look had the best, from 1 */
} dts_disagreement;

/* Why a plan does not fit, and the change that lifts it: of as few keys as possible, then at the least time. */
typedef struct dts_shortage {
    bool host;   /* of the nodes' own memory, for what is offloaded; */
    bool drives; /* or of their drives; else of the GPUs' */
    double missing_gib;
    double also_gib;     /* of the GPUs', or else of the nodes' own; 0: it has enough */
    const char *largest; /* what takes most of the memory: "optimizer" */
    double largest_gib;
    bool lifted;
    size_t lifted_by; /* index of the finding */
} dts_shortage;

/* Most keys that a change has. */
enum { DTS_MOST_CHANGED = 3 };

/* Where nothing fits: what the plan that lacks least lacks; whether one fits in the whole space, without restrictions;
 * if not, the fewest nodes (of those tried) on which one does. */
typedef struct dts_remedy {
    dts_shortage shortage;
    bool unrestricted;
    int64_t nodes;    /* of what fits; 0: nothing found */
    int64_t most;     /* nodes that were tried */
    dts_candidate on; /* these nodes */
    dts_outcome outcome;
} dts_remedy;

enum { DTS_NOWHERE = -1 };

struct dts_search {
    const dts_scenario_values *base; /* borrowed */
    const char *method;
    dts_objective objective;
    uint64_t seed;
    dts_layout_space space;
    dts_finding *findings; /* best first; what does not fit at the end */
    size_t count;
    long chosen;                            /* index of the best that fits and is accepted; DTS_NOWHERE: none */
    long baselines[DTS_RULE_COUNT];         /* index of the finding, DTS_NOWHERE: no such plan is legal */
    dts_shortage shortages[DTS_RULE_COUNT]; /* of those that do not fit */
    long own;                  /* the scenario's own plan: index of the finding; DTS_NOWHERE: not looked at */
    dts_stage_list own_stages; /* of the scenario's own plan */
    dts_remedy remedy;         /* where nothing fits */
    dts_search_counts counts;
    dts_disagreement disagreement; /* closed form against simulation, coarse or in full */
    dts_disagreement closed;       /* closed form against simulation in full */
    dts_disagreement coarse;       /* coarse simulation against full */
    bool proven;                   /* nothing that was not simulated can be better */
    bool interrupted;
    bool went_on;                        /* because the asker needed more */
    size_t screenings;                   /* candidates that were simulated coarsely */
    double walk_s, screen_s, simulate_s; /* wall clock */
    int threads;
    dts_arena *arena; /* of the candidates' stages */
};

typedef struct dts_search_context dts_search_context; /* layouts.h: what a method works with */

typedef struct dts_search_method {
    const char *name, *summary;
    dts_status (*run)(dts_search_context *context, dts_diag *diag);
    bool cuts_stages; /* chooses how many layers are recomputed, and how many each stage has */
} dts_search_method;

extern const dts_search_method *const dts_search_methods[];
extern const size_t dts_search_method_count;
const dts_search_method *dts_search_method_find(const char *name);

/* A family of plans that can be searched. */
typedef struct dts_search_space {
    const char *name, *summary;
    dts_status (*run)(const dts_search_request *request, dts_search **out,
                      dts_diag *diag); /* NULL: soap_search.h, rent.h */
} dts_search_space;

enum { DTS_SPACE_LAYOUTS, DTS_SPACE_SOAP, DTS_SPACE_RENT }; /* indices of dts_search_spaces */
extern const dts_search_space *const dts_search_spaces[];
extern const size_t dts_search_space_count;

void dts_search_free(dts_search *search);

/* Does any plan fit? The findings begin with those that do. */
bool dts_search_any_fits(const dts_search *search);

/* Is it known that the caching allocator serves it? */
bool dts_finding_surely_fits(const dts_finding *f);

/* Can the launcher of the scenario's stack run it (stack.schedules)? */
bool dts_candidate_offered(const dts_candidate *candidate, const dts_scenario_values *base);
/* The same as dts_search_request.accepts; context: const dts_scenario_values. */
dts_status dts_search_offered(void *context, const dts_candidate *candidate, bool *accepted, dts_diag *diag);

/* Of what is accepted, else of all: the best plan of which it is known that the caching allocator serves it, else the
 * best that fits; NULL: none fits. */
const dts_finding *dts_search_plan(const dts_search *search);

/* Is finding b as good as a, within what the model can tell apart (3 %)? */
bool dts_search_tie(const dts_search *search, const dts_finding *a, const dts_finding *b);

/* The findings from first on that are the same answer as it; false: no more. *at: the last one, or first to begin. */
bool dts_search_next_equal(const dts_search *search, size_t first, size_t *at);

/* A finding's value of the objective; smaller is better. */
double dts_search_value(dts_objective objective, const dts_figures *figures);

#endif
