/* A first look at a plan.
 *
 * It differs from a run in three ways, which move a time by 0.03 % on average where blocks share nothing with what runs
 * beside them (tests/property/test_screen.c holds that on random scenarios):
 *   - passes are brief blocks, also where `auto` would stay at kernels (block.c, detail.c)
 *   - of many microbatches those are simulated that fill the pipeline, and the rest take as long as the slowest stage
 *     does for the last round of these, where no stream falls behind it and the end keeps it: the pace of a steady
 * state that is not proven (rhythm.c)
 *   - nothing is accounted for but the end of the iteration and the peaks of memory
 * Ranks that differ, and queues of batches, have no such shortcut: they are run. */
#include "run/coarse_run.h"

#include <math.h>

#include "plan/lower/measured_passes.h"
#include "run/fold.h"
#include "run/ranks.h"
#include "run/run.h"
#include "run/stagger.h"
#include "run/stalls.h"

static double share_of(double peak_B, double capacity_B) {
    return peak_B > 0 ? peak_B / capacity_B : 0;
}

/* Do all devices hold what the iteration puts there? */
static void look_at_memory(const dts_plan *plan, const dts_lowered *lowered, const dts_simulation *simulation,
                           dts_screening *out) {
    const double room_B = plan->job.cluster->gpu.memory_B - dts_context_B(plan);
    const dts_host host = dts_cluster_host(plan->job.cluster);
    for (int64_t p = 0; p < plan->pipeline; p++) {
        dts_id device = dts_fullest_device(plan, lowered, simulation, p);
        double bytes = (double)dts_simulation_peak(simulation, device)->bytes;
        out->allocated_B = bytes > out->allocated_B ? bytes : out->allocated_B;
    }
    for (size_t n = 0; n < lowered->host_count; n++) {
        const double host_B = (double)dts_simulation_peak(simulation, lowered->host_device[n])->bytes;
        const dts_id drives = lowered->nvme_device[n];
        const double drives_B = drives == DTS_NO_ID ? 0 : (double)dts_simulation_peak(simulation, drives)->bytes;
        out->host_fill = fmax(out->host_fill, share_of(host_B, host.memory_B));
        out->host_fill = fmax(out->host_fill, share_of(drives_B, host.nvme_capacity_B));
    }
    out->fits = out->allocated_B <= room_B && out->host_fill <= 1;
}

/* Simulates a plan whose microbatches may stand for more of them. fold: NULL, they do not; *known is set to false where
 * they show no pace. */
static dts_status look(const dts_plan *plan, bool flow, dts_detail detail, dts_block_cache *blocks,
                       const atomic_bool *stop, const dts_fold *fold, dts_arena *arena, dts_screening *out, bool *known,
                       dts_diag *diag) {
    const dts_lower_options how = {
        .flow_network = flow, .detail = detail, .blocks = blocks, .stop = stop, .brief = true};
    dts_lowered lowered = {.graph = NULL};
    const dts_observer observer = {.stop = stop};
    dts_simulation *simulation = NULL;
    dts_status status = dts_lower(plan, &how, arena, &lowered, diag);
    status = status == DTS_OK ? dts_simulate(lowered.graph, &observer, &simulation, diag) : status;
    *known = status == DTS_OK;
    if (status == DTS_OK) {
        dts_measured m = {.plan = plan, .lowered = &lowered, .simulation = simulation, .flow_network = flow};
        m.last_task = dts_last_task(&lowered, simulation);
        dts_time end = dts_simulation_ends(simulation)[m.last_task];
        dts_time round = 0;
        if (lowered.window_from != DTS_NO_ID) {
            const dts_time *ends = dts_simulation_ends(simulation);
            end = ends[lowered.window_to] - ends[lowered.window_from];
        }
        if (lowered.stage_to != NULL) {
            end = dts_stagger_longest(plan, &lowered, simulation);
        }
        if (fold != NULL && dts_fold_pace(fold, &m, arena, &round) != DTS_OK) {
            status = dts_diag_nomem(diag);
        }
        *known = round >= 0;
        const double rounds = fold == NULL ? 0 : (double)((fold->all - fold->some) / (fold->round * fold->directions));
        *out = (dts_screening){.time_s = dts_time_to_s(end) + rounds * dts_time_to_s(round),
                               .memory_known = dts_brief_peak_known(plan),
                               .tasks = dts_graph_tasks(lowered.graph)};
        look_at_memory(plan, &lowered, simulation, out);
    }
    dts_simulation_free(simulation);
    dts_lowered_free(&lowered);
    return status;
}

/* Fewer microbatches for all; *known: they show how long all take. */
static dts_status look_at_few(const dts_scenario_values *values, const dts_plan *outline, const dts_fold *fold,
                              dts_detail detail, dts_block_cache *blocks, const atomic_bool *stop, dts_arena *arena,
                              dts_screening *out, bool *known) {
    dts_scenario_values some = *values;
    some.training.global_batch = values->training.global_batch / outline->microbatches * fold->some;
    dts_job job = dts_scenario_job(&some);
    dts_plan part;
    dts_diag *refusal = dts_diag_new(); /* where so few cannot be simulated, all are */
    const bool flow = values->fidelity.network != DTS_NETWORK_CLOSED_FORM;
    dts_status status = refusal == NULL ? DTS_NOMEM : dts_lower_plan(&job, arena, &part, refusal);
    *known = status == DTS_OK && dts_fold_holds(fold, &part);
    if (*known) {
        status = look(&part, flow, detail, blocks, stop, fold, arena, out, known, refusal);
    }
    dts_diag_free(refusal);
    return status == DTS_NOMEM ? DTS_NOMEM : DTS_OK;
}

static dts_status run_in_full(const dts_scenario_values *values, dts_block_cache *blocks, const atomic_bool *stop,
                              dts_screening *out, dts_diag *diag) {
    const dts_run_options options = {.blocks = blocks, .stop = stop};
    dts_result *result = NULL;
    dts_status status = dts_run_values(values, &options, &result, diag);
    if (status == DTS_OK) {
        *out = (dts_screening){.time_s = result->iteration_time_s,
                               .allocated_B = result->peak_allocated_gib * DTS_GIB,
                               .fits = result->fits,
                               .host_fill = fmax(share_of(result->host_peak_gib, result->host_capacity_gib),
                                                 share_of(result->nvme_peak_gib, result->nvme_capacity_gib)),
                               .memory_known = true,
                               .tasks = result->simulation.tasks};
    }
    dts_result_free(result);
    return status;
}

/* All microbatches. */
static dts_status look_at_all(const dts_scenario_values *values, dts_detail detail, dts_block_cache *blocks,
                              const atomic_bool *stop, dts_arena *arena, dts_screening *out, dts_diag *diag) {
    dts_job job = dts_scenario_job(values);
    dts_plan plan;
    bool known = false;
    dts_status status = dts_lower_plan(&job, arena, &plan, diag);
    const bool flow = values->fidelity.network != DTS_NETWORK_CLOSED_FORM;
    return status == DTS_OK ? look(&plan, flow, detail, blocks, stop, NULL, arena, out, &known, diag) : status;
}

dts_status dts_screen_values(const dts_scenario_values *values, dts_block_cache *blocks, const atomic_bool *stop,
                             dts_screening *out, dts_diag *diag) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (arena == NULL) {
        return dts_diag_nomem(diag);
    }
    dts_job job = dts_scenario_job(values);
    dts_plan outline;
    bool full = false;
    dts_status status = dts_plan_outline(&job, arena, &outline, diag);
    status = status == DTS_OK ? dts_ranks_choose(&outline, &values->fidelity, &full, diag) : status;
    if (status == DTS_OK && (full || dts_ranks_are_drawn(&outline) || dts_plan_loads_input(&outline))) {
        status = run_in_full(values, blocks, stop, out, diag);
    } else if (status == DTS_OK) {
        const dts_detail detail =
            values->fidelity.detail == DTS_DETAIL_AUTO ? DTS_DETAIL_BLOCK : (dts_detail)values->fidelity.detail;
        dts_fold fold;
        bool known = false;
        bool some = values->fidelity.microbatches != DTS_MICROBATCHES_ALL && dts_fold_guess(&outline, &fold);
        while (status == DTS_OK && some && !known) {
            status = look_at_few(values, &outline, &fold, detail, blocks, stop, arena, out, &known);
            status = status == DTS_OK ? DTS_OK : dts_diag_nomem(diag);
            some = dts_fold_retry(&fold);
        }
        if (status == DTS_OK && !known) {
            status = look_at_all(values, detail, blocks, stop, arena, out, diag);
        }
    }
    dts_arena_free(arena);
    return status;
}
