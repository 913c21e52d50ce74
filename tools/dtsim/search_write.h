/* A search's answer as text and JSON. */
#ifndef DTS_TOOLS_DTSIM_SEARCH_WRITE_H
#define DTS_TOOLS_DTSIM_SEARCH_WRITE_H

#include "report/evidence.h"
#include "report/json_tree.h"
#include "report/style.h"
#include "scenario/scenario.h"
#include "search/rent.h"
#include "search/search.h"

typedef struct dts_search_writing {
    const dts_style *style;
    size_t top;                    /* plans to show */
    bool wall_time;                /* also what differs from run to run */
    const char *scenario;          /* as the user named it */
    const dts_override *overrides; /* --set, which its commands repeat */
    size_t override_count;
    const char *cluster, *nodes, *price; /* what else its commands set; NULL: nothing */
    const char *unpriced;                /* clusters that are no offers, for want of a price; NULL: none */
    const dts_evidence *evidence;        /* how far published figures of memory were off; NULL: unknown */
} dts_search_writing;

dts_status dts_search_write_text(const dts_search *search, const dts_search_writing *options, dts_text *out);
dts_status dts_search_write_json(const dts_search *search, const dts_search_writing *options, dts_text *out);

/* Parts of the text that the web page has, too. The rule whose plan a finding is, or that the scenario has it, or "";
 * is it in the table? */
const char *dts_search_label(const dts_search *search, size_t index);
/* Where a plan does not fit: " !" on the GPU, " host!" in the memory of the nodes, " ! host!" in neither; "": it does.
 */
const char *dts_search_lacks(const dts_finding *finding);
bool dts_search_shows(const dts_search *search, size_t index, size_t top);
/* What a plan is marked with that the stack's launcher cannot run, and what is said of it and of the best that it can;
 * nothing where no such plan is shown. */
bool dts_search_launchable(const dts_search *search, const dts_finding *finding);
const char *dts_search_offered_mark(const dts_search *search, const dts_finding *finding);
void dts_search_offered_text(const dts_search *search, size_t top, dts_text *out);
void dts_search_offered_write(const dts_search *search, const dts_search_writing *options, dts_text *out);
/* Of the published figures of memory, those no further above their predictions than this plan has room for, 0 to 1;
 * negative: unknown. */
double dts_search_fit_share(const dts_search *search, const dts_evidence *evidence, const dts_finding *f);
/* How sure it is that the first plan fits, and which of those that were simulated surely does; or nothing. */
void dts_search_room(const dts_search *search, const dts_search_writing *options, dts_text *out);
/* The same of plans that stay in fp32 though half precision was asked for. */
const char *dts_search_wide_mark(const dts_finding *finding);
const char *dts_search_wide_text(const dts_search *search, size_t top);
/* "also: training.recompute=full (5.0 GiB)": what has no row because it is the same answer; or nothing. */
void dts_search_equals(const dts_search *search, size_t index, dts_text *out);
/* The largest request that fails in the replay of the plans that are shown; 0: none may run out of memory. */
dts_strain dts_search_strain(const dts_search *search, size_t top);
/* What binds, and what lifts it, where nothing fits; the same of baselines, or why there is none; why there is no plan;
 * the command that runs the first; what was searched and what not. */
void dts_search_binding(const dts_search *search, const dts_style *style, dts_text *out);
void dts_search_baselines(const dts_search *search, const dts_style *style, dts_text *out);
void dts_search_failures(const dts_search *search, const dts_style *style, dts_text *out);
void dts_search_nothing(const dts_search *search, dts_text *out);
void dts_search_again(const dts_search *search, dts_text *out); /* its title: "The first again" */
void dts_search_command(const dts_search *search, const dts_search_writing *options, dts_text *out);
void dts_search_method_text(const dts_search *search, const dts_style *style, dts_text *out);

/* "parallelism.tensor=2 offload.optimizer=cpu": the keys of b that differ from a's. */
void dts_search_changes(const dts_candidate *a, const dts_candidate *b, dts_text *out);
/* The most memory that this process has had, MiB. */
double dts_search_peak_rss_mib(void);

/* The keys of a plan with their values, as a member of object. */
void dts_search_json_settings(dts_json *json, cJSON *object, const dts_candidate *candidate,
                              const dts_scenario_values *base);

/* What became of the candidates, in rows. */
enum { DTS_SEARCH_FATES = 8 };
typedef struct dts_search_fate {
    uint64_t count;
    const char *what;
} dts_search_fate;
size_t dts_search_fates(const dts_search *search, dts_search_fate out[DTS_SEARCH_FATES]);

/* A plan as overrides of the scenario that was searched, up to most; values lie in arena. */
size_t dts_search_overrides(const dts_candidate *candidate, const dts_scenario_values *base, dts_arena *arena,
                            dts_override *out, size_t most);

#endif
