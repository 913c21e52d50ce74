/* What the methods of the layout space share: the walk, the best candidates by closed form, and simulation. */
#ifndef DTS_SEARCH_LAYOUTS_H
#define DTS_SEARCH_LAYOUTS_H

#include <pthread.h>

#include "run/coarse_run.h"
#include "search/pruning_notes.h"
#include "search/search.h"

/* The best candidates by a score, the smallest first; ties by the candidates' own order. */
typedef struct dts_ranked {
    double score;
    dts_candidate candidate;
    dts_estimate estimate;
} dts_ranked;

typedef struct dts_top {
    dts_ranked *items; /* sorted */
    size_t count, capacity;
} dts_top;

dts_status dts_top_new(size_t capacity, dts_top *out);
void dts_top_free(dts_top *top);
void dts_top_add(dts_top *top, double score, const dts_candidate *candidate, const dts_estimate *estimate);
void dts_top_merge(dts_top *into, const dts_top *from);

/* A candidate that has been looked at with coarse simulation. */
typedef struct dts_screened {
    dts_ranked of;
    dts_screening screening;
    bool failed;    /* no simulation could be made: more kernels than are simulated, say */
    bool no_memory; /* because memory ran out */
    bool done;
    bool left_out; /* not accepted, where only what is accepted is in question */
} dts_screened;

/* The least values that candidates can have which may fit: for what is told of them at the end. */
typedef struct dts_leasts {
    double *items;
    size_t count, capacity;
} dts_leasts;

/* Tasks of a simulation whose folded microbatches stand for all in that of the answer, too. */
enum { DTS_LAYOUTS_LARGE = 1000000 };

struct dts_search_context {
    const dts_search_request *request;
    dts_search *search;
    size_t simulations;      /* of request, or what is left when the search goes on */
    double capacity_B;       /* for live tensors: the GPU's memory without the context */
    double host_B, drives_B; /* of a node's host, and of its drives */
    size_t capacity;         /* of search->findings */
    dts_top best;            /* by closed form, the best of each family that may fit */
    dts_ranked own;          /* the scenario's own plan */
    bool has_own;            /* it is a candidate */
    bool passed;             /* the first walk left out what is behind all of these, uncounted */
    dts_top nearest;         /* of what is proven not to fit: that lacks least by its bounds */
    dts_leasts *leasts;      /* [pair]; none where only_here */
    dts_branches *branches;  /* [pair] */
    dts_screened *screened;  /* in the order in which they were chosen */
    size_t screened_count, screened_capacity;
    dts_block_cache **caches; /* that no simulation uses now; what they hold speeds up similar candidates */
    size_t cache_count;
    bool keeps_to_accepted; /* nothing else need be looked at: something accepted fits */
    bool only_accepted;     /* what is simulated now is accepted, and compared with such only (accepted_answer.c) */
    bool
        replays; /* what is simulated now is asked for its replay next: large plans get it at once (allocator_safe.c) */
};

/* Candidates of one family have the same schedule (or a single stage), share parameters in the same way, have tensor
 * parallelism inside a node, across nodes or none, and offload activations or do not: what the closed form leaves out
 * is much the same for them. The last family is of what has a schedule or a kind that the space does not hold. Below
 * dts_layouts_families. */
size_t dts_layouts_family(const dts_layout_space *space, const dts_candidate *candidate);
/* The first of count families, one after another, to which candidates may belong that begin with these values, up to
 * the axis of sharding at least. */
size_t dts_layouts_first_family(const dts_layout_space *space, const dts_candidate *candidate, int axes, size_t *count);
size_t dts_layouts_families(const dts_layout_space *space);

/* Walks all pairs, on all threads; each has a context of its own: contexts + pair · size. */
dts_status dts_layouts_walk(dts_search_context *c, const dts_layout_watch *watch, void *contexts, size_t size,
                            dts_walk_counts *total, dts_diag *diag);

/* The finding of a candidate, or DTS_NOWHERE. */
long dts_layouts_find(const dts_search_context *c, const dts_candidate *candidate);

/* Remembers the first candidate of which no simulation could be made. */
void dts_layouts_note_failure(dts_search_context *c, const dts_candidate *candidate, const char *reason);

/* Simulates those of count candidates that have no finding yet, several at a time, and adds their findings in order.
 * Stops early when told to. estimates may be NULL. */
dts_status dts_layouts_simulate(dts_search_context *c, const dts_ranked *candidates, size_t count, dts_diag *diag);

/* Smaller is better; what does not fit comes behind, the less it lacks the better. */
int dts_findings_compare(dts_objective objective, const dts_finding *a, const dts_finding *b);

/* Looks at count candidates with coarse simulation (run/coarse_run.h), several at a time, and adds them to those that
 * have been. Stops early when told to. */
dts_status dts_layouts_screen(dts_search_context *c, const dts_ranked *candidates, size_t count, dts_diag *diag);

/* Looks at up to most of a list's candidates and simulates in full those that may be the best by that. */
dts_status dts_layouts_refine_list(dts_search_context *c, const dts_top *list, size_t limit, dts_diag *diag);

/* Does a screened candidate seem to fit? */
bool dts_screened_fits(const dts_search_context *c, const dts_screened *s);

/* Simulates those of a list that may still become the best, the most promising first, until there are limit findings.
 */
dts_status dts_layouts_simulate_list(dts_search_context *c, const dts_top *list, size_t limit, dts_diag *diag);
/* How many findings there may be when as many simulations as are wanted come on top of those that are there. */
size_t dts_layouts_limit(const dts_search_context *c);

/* Would their rows in a table tell the same: two layouts that differ in something that changes nothing here? */
bool dts_layouts_same_answer(dts_objective objective, const dts_finding *a, const dts_finding *b);

/* The best finding that fits, of those that are accepted where only they count; DTS_NOWHERE: none. */
long dts_layouts_best(const dts_search_context *c);

/* By what candidates are ranked before they are simulated, and what it is at least. */
double dts_layouts_score(const dts_search_context *c, const dts_estimate *estimate);
double dts_layouts_least(const dts_search_context *c, const dts_estimate *estimate);

/* The scenario's own plan becomes a candidate unless the user's restrictions leave it out, and is simulated
 * (own_plan.c). */
void dts_layouts_find_own(dts_search_context *c);
dts_status dts_layouts_simulate_own(dts_search_context *c, dts_diag *diag);

/* Axes that change nothing take their first value, as in the walk over all candidates: one plan has one name and is
 * simulated once. */
dts_candidate dts_layouts_settled(const dts_search_context *c, const dts_candidate *of);

/* How full what a plan needs makes the GPU and the node's host at least, whichever is fuller: above 1 it does not fit.
 */
double dts_layouts_least_fill(const dts_search_context *c, const dts_estimate *estimate);

/* Where nothing fits: simulates what may lack least (nearest_to_fit.c). */
dts_status dts_layouts_simulate_nearest(dts_search_context *c, dts_diag *diag);

/* What baselines that do not fit lack, and the smallest change that lifts it (shortage.c). */
dts_status dts_layouts_lift(dts_search_context *c, dts_diag *diag);
/* After the ranking, where nothing fits: how many nodes it takes. */
dts_status dts_layouts_remedy(dts_search_context *c, dts_diag *diag);

/* The whole search. */
dts_status dts_layouts_run(const dts_search_request *request, dts_search **out, dts_diag *diag);

/* Asks which of the findings may be the answer; where the best may not, looks for more that may. */
dts_status dts_layouts_accept(dts_search_context *c, dts_diag *diag);
/* The same of one, if it was not asked yet. */
dts_status dts_layouts_ask_finding(const dts_search_context *c, dts_finding *f, dts_diag *diag);

/* The same of all findings that fit, and leaves out what was looked at coarsely and is not accepted. */
dts_status dts_layouts_ask_all(dts_search_context *c, dts_diag *diag);
/* May a candidate come next: where only what is accepted counts, is it? To ask can take longer than a first look, so it
 * is done of what would be chosen, not of all. */
dts_status dts_layouts_admits(const dts_search_context *c, const dts_candidate *candidate, bool *admitted,
                              dts_diag *diag);
/* Of a list the first ones, up to most, that are accepted where only they count. */
dts_status dts_layouts_keep_accepted(const dts_search_context *c, dts_top *list, size_t most, dts_diag *diag);

/* Where the caching allocator may not serve the best plan: looks for the best that it does (allocator_safe.c). */
dts_status dts_layouts_assure(dts_search_context *c, dts_diag *diag);

/* Sorts the findings, counts what became of the other candidates, and compares closed form and simulation. */
dts_status dts_layouts_conclude(dts_search_context *c, dts_diag *diag);
/* The scenario of a finding for that: as it is, but where even folded microbatches have been many tasks, these stand
 * for all again. */
void dts_layouts_values_as_run(const dts_search_context *c, const dts_finding *f, dts_scenario_values *out);
/* Simulates a finding once more, with the fidelity that the scenario asks for, as `dtsim run` does. */
dts_status dts_layouts_simulate_as_run(const dts_search_context *c, dts_finding *f);

/* The scenario of a candidate as a search simulates it. */
void dts_layouts_values(const dts_search_context *c, const dts_candidate *candidate, dts_scenario_values *out);

/* Sets *out to the candidate's twin, whose simulation has the same result; false: it has none (rank_order_twins.c). */
bool dts_layouts_twin(const dts_search_context *c, const dts_candidate *candidate, dts_candidate *out);
/* The finding of a candidate's twin that has been simulated, once or again; NULL: there is none. */
const dts_finding *dts_layouts_find_twin(const dts_search_context *c, const dts_candidate *candidate, bool again);
/* Is all known of a finding that its twin takes from it? */
bool dts_finding_serves(const dts_finding *f);
/* Gives a finding what was simulated for its twin. */
dts_status dts_finding_take(const dts_finding *from, dts_finding *to);

/* A cache of blocks that no other simulation uses, for one simulation at a time; lock: of the caches. NULL: none. */
dts_block_cache *dts_layouts_take_cache(dts_search_context *c, pthread_mutex_t *lock);
void dts_layouts_give_back(dts_search_context *c, pthread_mutex_t *lock, dts_block_cache *cache);
void dts_layouts_free_caches(dts_search_context *c);

bool dts_layouts_stopped(const dts_search_context *c);
/* Tells the caller of the search that done of count simulations of a batch have ended, coarse ones or full ones. Hold
 * the batch's lock. */
void dts_layouts_tell(const dts_search_context *c, size_t done, size_t count, const char *what);

extern const dts_search_method dts_method_exhaustive, dts_method_dp, dts_method_mcmc;

#endif
