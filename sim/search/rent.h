/* What to rent: the best plan on each of some clusters at each of some sizes, and what training on it takes in time and
 * money. */
#ifndef DTS_SEARCH_RENT_H
#define DTS_SEARCH_RENT_H

#include "search/search.h"

/* What a node of this cluster costs, in place of what its profile says: "30 USD/h". */
typedef struct dts_rent_price {
    const char *cluster, *usd_per_hour;
} dts_rent_price;

typedef struct dts_offer dts_offer;

/* Lets the launcher of an offer's software say which plans may be its answer (search->accepts). */
typedef void dts_rent_asks(void *context, const dts_offer *offer, dts_search_request *search);

typedef struct dts_rent_request {
    const char *path; /* the scenario's file */
    const dts_override *overrides;
    size_t override_count;
    const dts_profile_paths *profiles;
    const char *const *clusters; /* profiles; empty: the scenario's own */
    size_t cluster_count;
    const char *const *nodes; /* numbers of nodes; empty: the scenario's own */
    size_t node_count;
    const bool *alone; /* clusters of which only the first number of nodes is an offer; NULL: none */
    const dts_rent_price *prices;
    size_t price_count;
    const char *own_cluster;   /* what prices call the scenario's own; NULL: nothing */
    double tokens;             /* to train on */
    double deadline_s;         /* 0: none */
    double budget_usd;         /* 0: none */
    dts_search_request search; /* how to search; its base and document are filled in */
    /* of each offer at first, before those that an answer names are searched as search says; 0: as search says */
    size_t first_simulations;
    const dts_search_space *space;
    dts_rent_asks *asks; /* before each search of an offer; NULL: every plan may be the answer */
    void *asks_context;
} dts_rent_request;

struct dts_offer {
    const char *cluster, *nodes; /* as asked, or the scenario's number of nodes; borrowed. NULL: the scenario's own */
    const char *price;           /* of a node, where the request names one; borrowed. NULL: the profile's */
    dts_scenario *scenario;      /* NULL: it could not be read */
    dts_search *search;          /* NULL: not searched */
    char *reason;                /* why there is no plan */
    double times_deadline;       /* not searched: this many deadlines even at the GPUs' peak rate; 0: not so */
    double duration_s;           /* for all tokens; of offers with a plan */
    double usd;                  /* 0: the price is unknown */
    bool thorough;               /* searched as the request says, not only at first */
    bool in_time, in_budget;     /* where there is a deadline, a budget; of an unknown price nobody knows */
    bool pareto;                 /* nothing else is sooner and cheaper */
};

typedef struct dts_rent {
    /* best first: within the limits before others, then by the objective; those without a plan at the end */
    dts_offer *offers;
    size_t count;
    double tokens, deadline_s, budget_usd;
    dts_objective objective;
    size_t plans, within; /* offers with a plan; of these in time and in the budget */
    size_t unpriced;      /* offers with a plan but without a price */
    size_t asked;         /* offers that were to be searched */
    size_t searched;      /* of these before an interruption, at least at first */
    char *own_nodes;      /* the number of nodes that the scenario says; NULL: none */
    char *left_out;       /* keys of the scenario's own cluster that offers do not take over; NULL: none */
    bool interrupted;
} dts_rent;

dts_status dts_rent_search(const dts_rent_request *request, dts_rent **out, dts_diag *diag);
void dts_rent_free(dts_rent *rent);

/* The best offer of those in time (where asked) and in the budget (where asked), by what it takes of time or money;
 * NULL: none. */
typedef enum dts_rent_by { DTS_RENT_BY_TIME, DTS_RENT_BY_MONEY } dts_rent_by;
const dts_offer *dts_rent_best(const dts_rent *rent, bool in_time, bool in_budget, dts_rent_by by);

/* Does this override name a cluster, in whose place an offer's comes? */
bool dts_rent_replaces(const dts_override *override);

/* The best plan of an offer; NULL: none fits. */
const dts_finding *dts_offer_plan(const dts_offer *offer);

/* Does any offer's plan stay in fp32 though half precision was asked for? */
bool dts_rent_any_wide(const dts_rent *rent);

#endif
