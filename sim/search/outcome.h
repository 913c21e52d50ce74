/* What is kept of one simulated combination: the figures that tables, stores and searches compare. */
#ifndef DTS_SEARCH_OUTCOME_H
#define DTS_SEARCH_OUTCOME_H

#include "run/verdict.h"
#include "scenario/scenario.h"

typedef enum dts_outcome_kind {
    DTS_OUTCOME_PENDING, /* not simulated: interrupted */
    DTS_OUTCOME_SIMULATED,
    DTS_OUTCOME_ILLEGAL,  /* refused, with a reason */
    DTS_OUTCOME_NO_MEMORY /* its simulation ran out of memory: no fact of the plan, and kept in no store */
} dts_outcome_kind;

typedef struct dts_figures {
    int64_t gpus;
    double iteration_time_s, tokens_per_s, tokens_per_s_per_gpu, samples_per_s;
    double mfu, bubble_fraction, exposed_communication_s;
    bool fits;
    double peak_allocated_gib, peak_device_gib, capacity_gib;
    double unserved_gib;           /* a request that fails in the caching allocator's replay; 0: none does */
    double retry_share;            /* of the iteration, what the allocator's retries take, where they were simulated */
    double price_usd_per_hour;     /* 0: unknown */
    double usd_per_billion_tokens; /* 0: unknown, or it does not fit */
    bool wide;                     /* fp32 though half precision was asked for (run/fp32_fallback.h) */
    double goodput;                /* training's share of a run with failures and checkpoints (run/whole_run.h) */
    /* what a search goes on from, and no table shows */
    double tasks;                  /* of the simulation */
    double retries_s;              /* of the iteration, what the allocator's retries take */
    double device_fill, host_fill; /* shares of the GPU's room for tensors and of host memory or NVMe that it takes */
    bool replays;                  /* `dtsim run` replays the caching allocator of such a plan */
} dts_figures;

typedef struct dts_outcome {
    dts_outcome_kind kind;
    dts_figures figures; /* SIMULATED */
    char *plan;          /* SIMULATED: "pipeline 4 (1f1b) × ddp 2" */
    char *reason, *help; /* ILLEGAL: the first error and its cure; help may be NULL */
} dts_outcome;

/* Why there are no figures, and the cure: of ILLEGAL and NO_MEMORY; else NULL. */
const char *dts_outcome_reason(const dts_outcome *outcome);
const char *dts_outcome_help(const dts_outcome *outcome);

/* The single figures in the order in which CSV, JSON and stores write them. */
typedef enum dts_figure_type { DTS_FIGURE_NUMBER, DTS_FIGURE_INTEGER, DTS_FIGURE_FLAG } dts_figure_type;

typedef struct dts_figure {
    const char *name;
    dts_figure_type type;
    size_t offset; /* in dts_figures */
} dts_figure;

extern const dts_figure dts_figure_table[];
extern const size_t dts_figure_count; /* that are shown */
enum { DTS_FIGURES_STORED = 23 };     /* these, and behind them those that only stores keep */

/* The share below which two results are called a tie: what the model cannot tell apart. The errors of the published
 * tables (docs/accuracy.md) are larger, but most of an error is common to all plans of one model on one cluster. */
extern const double dts_tie;

dts_strain dts_figures_strain(const dts_figures *figures);

/* A figure as a number; flags are 0 or 1. */
double dts_figure_get(const dts_figures *figures, const dts_figure *figure);
void dts_figure_set(dts_figures *figures, const dts_figure *figure, double value);

/* USD for 10^9 tokens at the simulated pace, whether it fits or not: what an objective ranks by; 0: price unknown. */
double dts_figures_cost(const dts_figures *figures);

/* Copies what is kept. DTS_NOMEM: outcome is still one that can be freed. */
dts_status dts_outcome_of_result(const dts_result *result, dts_outcome *out);
/* The first error in diag and its help. */
dts_status dts_outcome_of_errors(const dts_diag *diag, dts_outcome *out);
/* Texts are copied. */
dts_status dts_outcome_copy(const dts_outcome *from, dts_outcome *out);
void dts_outcome_clear(dts_outcome *outcome);

/* Everything in a scenario that decides the result: its bound values as YAML, without its name and remarks, and the
 * digests of the files that values name. */
void dts_effective_document(const dts_scenario *scenario, dts_text *out);

/* Digest of a document as 16 hexadecimal digits. physics: DTS_PHYSICS (run/physics.h), so that results of another
 * physics are not taken for those of this one. */
void dts_document_hash(const char *physics, const char *document, char out[17]);

/* Marks the outcomes that no other beats: more tokens per second, less device memory, less money for a token (where all
 * prices are known), none of them worse. Only what fits takes part, and outcomes are held against those of equal work
 * only. pareto has room for count. */
void dts_pareto_mark(const dts_outcome *outcomes, const size_t *work, size_t count, bool *pareto);

#endif
