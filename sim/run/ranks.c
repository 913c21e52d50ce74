#include "run/ranks.h"

bool dts_ranks_are_drawn(const dts_plan *plan) {
    return plan->job.cluster->jitter > 0 || plan->job.cluster->gpu_spread > 0;
}

/* The key of the cluster that makes ranks differ, or NULL. */
static const char *differs(const dts_cluster *cluster) {
    if (cluster->stragglers.count > 0) {
        return "cluster.stragglers";
    }
    if (cluster->gpu_spread > 0) {
        return "cluster.gpu_spread";
    }
    return cluster->jitter > 0 ? "cluster.jitter" : NULL;
}

/* What full ranks cannot do with this plan. */
static dts_status refuse(const dts_plan *plan, const dts_fidelity *fidelity, const char *key, dts_diag *diag) {
    const char *help = key != NULL ? "leave it out, or choose another plan" : "use `ranks: folded`";
    const char *at = key != NULL ? key : "fidelity.ranks";
    if (dts_plan_single_process(plan)) {
        return dts_diag_error(diag, NULL, at, help,
                              "full ranks need a process for each GPU, and one drives all with `data_parallel: dp`");
    }
    if (fidelity->detail == DTS_DETAIL_LAYER || fidelity->detail == DTS_DETAIL_BLOCK) {
        return dts_diag_error(diag, NULL, "fidelity.detail", "use `detail: kernel`, or auto",
                              "full ranks are simulated kernel by kernel");
    }
    if (dts_ranks_are_drawn(plan) && fidelity->microbatches == DTS_MICROBATCHES_FOLDED) {
        return dts_diag_error(diag, NULL, "fidelity.microbatches", "use `microbatches: all`",
                              "no microbatch stands for others where kernel times are drawn at random");
    }
    return DTS_OK;
}

dts_status dts_ranks_choose(const dts_plan *plan, const dts_fidelity *fidelity, bool *full, dts_diag *diag) {
    const char *key = differs(plan->job.cluster);
    if (key != NULL && fidelity->ranks == DTS_RANKS_FOLDED) {
        return dts_diag_error(diag, NULL, "fidelity.ranks", "use `ranks: full`, or auto",
                              "one rank cannot stand for all where %s makes them differ", key);
    }
    *full = fidelity->ranks == DTS_RANKS_FULL || key != NULL;
    return *full ? refuse(plan, fidelity, fidelity->ranks == DTS_RANKS_FULL ? NULL : key, diag) : DTS_OK;
}

/* Time of the compute stream's tasks within the iteration. */
static dts_time busy(const dts_measured *m, dts_id device) {
    const dts_time *starts = dts_simulation_starts(m->simulation);
    const dts_time *ends = dts_simulation_ends(m->simulation);
    size_t count = 0;
    const dts_id *tasks = dts_graph_stream_tasks(m->lowered->graph, m->lowered->compute_stream[device], &count);
    dts_time all = 0;
    for (size_t i = 0; i < count; i++) {
        dts_time from = starts[tasks[i]], to = ends[tasks[i]];
        all += dts_measured_cut(m, &from, &to);
    }
    return all;
}

void dts_measure_ranks(const dts_measured *m, dts_result *result) {
    const int64_t stages = m->plan->pipeline;
    if (!m->lowered->full_ranks) {
        return;
    }
    /* of the ranks that run the same stage: others have other work */
    const dts_id stage = m->critical % (dts_id)stages;
    dts_id fastest = stage;
    dts_time least = DTS_TIME_MAX;
    for (int64_t row = 0; row < m->lowered->rows; row++) {
        dts_id device = (dts_id)(row * stages) + stage;
        dts_time time = busy(m, device);
        fastest = time < least ? device : fastest;
        least = time < least ? time : least;
    }
    result->ranks.count = m->lowered->rows * stages;
    result->ranks.critical = m->lowered->gpus[m->critical];
    result->ranks.least_busy = m->lowered->gpus[fastest];
    result->ranks.critical_busy_s = dts_time_to_s(busy(m, m->critical));
    result->ranks.least_busy_s = dts_time_to_s(least);
}
