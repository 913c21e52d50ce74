/* How far a prediction may be trusted: what published runs took, over what dtsim had predicted for them.
 *
 * The record is a table that `dtsim validate --record` writes; scenarios/published/record/runs.csv is that of the
 * published tables, but for those whose constants were fitted on most of their runs. A range weighs every run of it
 *   - by the root of its source's number of runs, so that a sweep of one user does not outvote all others,
 *   - by exp(-|ln(u / u')|) for predicted utilisations u and u': what a host or a slow network bounds is less certain.
 * More weight for the same software or generation of GPUs does not better the score of intervals (Gneiting and Raftery
 * 2007, J. Am. Stat. Assoc. 102, 359) on sources left out; docs/accuracy.md has the scores. Figures of memory weigh by
 * their sources alone: neither a like utilisation nor a like size betters theirs. */
#ifndef DTS_REPORT_EVIDENCE_H
#define DTS_REPORT_EVIDENCE_H

#include "base/diag.h"
#include "config/schema.h"
#include "run/result.h"
#include "scenario/scenario.h"

typedef struct dts_evidence {
    dts_published_run *runs; /* by ratio, the least first */
    double *share;           /* [run] 1 / root of the number of runs of its source */
    double *memory_share;    /* [run] the same among runs with a figure of memory; 0: it has none */
    size_t count;
} dts_evidence;

/* Reads a record into the arena. What is wrong with it is reported with its line. */
dts_status dts_evidence_read(const char *path, dts_arena *arena, dts_evidence *out, dts_diag *diag);

/* Reads the record of the published runs, which all train, from the first of the folders that has one; none has, or
 * the scenario does not train: an empty one, of which all is unknown. A result is worth more than how sure it is: what
 * is wrong with the record is a warning. */
dts_status dts_evidence_open(const dts_scenario_values *values, const dts_profile_paths *folders, dts_arena *arena,
                             dts_evidence *out, dts_diag *diag);

/* Lines of a record behind its header. */
void dts_evidence_begin(dts_text *out);
void dts_evidence_add(const dts_published_run *run, dts_text *out);

/* The part of a measurement's `source` that names who measured: up to the first of @ ( , ; : */
size_t dts_evidence_source_length(const char *source);

/* Measured over predicted times between which the middle `share` (0 to 1) of the runs lay, weighed as above; false with
 * fewer than five sources. left_out: a source that does not count, to try the range on it, or NULL. */
bool dts_evidence_range(const dts_evidence *evidence, const dts_published_run *like, const char *left_out, double share,
                        double *low, double *high);

/* Of the figures of memory, weighed as above, those of at most `most` times their predictions, 0 to 1; negative with
 * fewer than five sources. left_out: as above. */
double dts_evidence_memory_within(const dts_evidence *evidence, const char *left_out, double most);
/* The share of published figures from which on a plan surely fits: nine of ten, rounded. */
extern const double dts_evidence_sure;
/* The least multiple of their predictions that `share` of them keep within; 0: unknown. */
double dts_evidence_memory_most(const dts_evidence *evidence, double share);

/* Indices of the runs most like this one in software, GPUs, precision, architecture, utilisation and size, the most
 * alike first, one of a source; returns how many (at most `most`). */
size_t dts_evidence_nearest(const dts_evidence *evidence, const dts_published_run *like, size_t most, size_t *out);

/* What identifies a scenario's run, without table, id, source and ratio; borrows from both. */
dts_published_run dts_evidence_of(const dts_scenario *scenario, const dts_result *result);

/* Fills in result->likely, and how sure its cures are; its time stays unknown where it does not fit. The result's
 * arena, or one that lives as long, owns evidence. */
dts_status dts_evidence_attach(const dts_evidence *evidence, const dts_scenario *scenario, dts_result *result,
                               dts_diag *diag);

#endif
