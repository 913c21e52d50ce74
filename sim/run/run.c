#include "run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "plan/lower/measured_passes.h"
#include "run/fold.h"
#include "run/measure.h"
#include "run/ranks.h"
#include "run/simulate_plan.h"
#include "run/unused_keys.h"
#include "run/verdict.h"
#include "run/warnings.h"
#include "run/whole_run.h"

void dts_result_free(dts_result *result) {
    if (result != NULL) {
        dts_arena_free(result->arena);
        free(result);
    }
}

/* ---- the figures ------------------------------------------------------------------------------------------------- */

static void describe(const dts_scenario_values *values, const dts_plan *plan, dts_result *result) {
    dts_arena *arena = result->arena;
    result->scenario = dts_arena_strdup(arena, values->name);
    result->model = dts_arena_strdup(arena, values->model.name);
    result->cluster = dts_arena_strdup(arena, values->cluster.name);
    result->stack = dts_arena_strdup(arena, values->stack.name);
    result->plan = dts_plan_describe(plan, arena);
    result->adapters = dts_plan_describe_adapters(plan, arena);
    result->gpus = plan->gpus;
    result->nodes = values->cluster.nodes;
    result->global_batch = values->training.global_batch;
    result->micro_batch = values->training.micro_batch;
    result->microbatches = plan->microbatches;
    result->sequence_length = values->training.sequence_length;
    result->parameters = dts_model_parameters(&values->model);
    result->price_usd_per_hour = dts_cluster_usd_per_hour(&values->cluster);
    result->idle_gpus = values->cluster.idle_gpus * values->cluster.nodes;
}

/* Throughput and utilisation. Model FLOPs count a forward pass once and a backward pass, if there is one, twice, or
 * once where the weights are frozen; no recomputation. */
static void measure_speed(const dts_measured *m, dts_result *result) {
    const dts_plan *plan = m->plan;
    double time = dts_time_to_s(m->to - m->from + m->longer);
    double gpus = (double)plan->gpus;
    result->iteration_time_s = time;
    result->samples_per_s = (double)result->global_batch / time;
    const int64_t computed = dts_plan_decodes(plan) ? 1 : result->sequence_length; /* positions of a sample */
    result->new_tokens = computed;
    result->tokens_per_s = result->samples_per_s * (double)computed;
    result->tokens_per_s_per_gpu = result->tokens_per_s / gpus;
    const double passes = dts_training_passes(plan->job.training);
    double model_flops = passes * dts_model_forward_flops(plan->job.model, result->sequence_length, computed) *
                         (double)result->global_batch;
    double counted = (double)plan->microbatches / (double)plan->passes; /* of what was simulated */
    double hardware_flops =
        counted * m->lowered->flops * (double)plan->tensor * (double)plan->context * (double)plan->data;
    double peak = dts_plan_peak_flops(plan) * gpus * time;
    result->model_tflops_per_gpu = model_flops / time / gpus / 1e12;
    result->mfu = model_flops / peak;
    result->causal_mfu = result->mfu * (1 - dts_model_masked_share(plan->job.model, result->sequence_length, computed));
    result->hfu = hardware_flops / peak;
}

static dts_status measure_stages(const dts_measured *m, dts_result *result) {
    const dts_plan *plan = m->plan;
    result->stage_count = (size_t)plan->pipeline;
    result->stages = dts_arena_array(result->arena, result->stage_count, sizeof *result->stages);
    if (result->stages == NULL) {
        return DTS_NOMEM;
    }
    result->trainable_parameters = m->lowered->trained;
    const dts_id first = m->critical - m->critical % (dts_id)plan->pipeline; /* of its row of ranks */
    for (int64_t p = 0; p < plan->pipeline; p++) {
        dts_accounts accounts;
        dts_account_device(m, first + (dts_id)p, &accounts);
        dts_stage_row *row = &result->stages[p];
        row->stage = p;
        row->begins_s = m->begins == NULL ? 0 : dts_time_to_s(m->begins[first + (dts_id)p]);
        row->compute_s = accounts.shares.compute;
        row->parameters = m->lowered->stage_parameters[p] + m->lowered->stage_frozen[p];
        row->bubble_fraction = accounts.shares.bubble / result->iteration_time_s;
        result->bubble_fraction += row->bubble_fraction / (double)plan->pipeline;
        row->chunk_count = (size_t)plan->virtual_stages;
        row->chunks = dts_arena_array(result->arena, row->chunk_count, sizeof *row->chunks);
        if (row->chunks == NULL) {
            return DTS_NOMEM;
        }
        for (int64_t v = 0; v < plan->virtual_stages; v++) {
            const dts_chunk *chunk = &plan->chunks[dts_plan_stage(plan, p, v)];
            row->chunks[v] = (dts_chunk_row){.first_layer = chunk->first_layer, .layer_count = chunk->layers};
            row->first_layer = row->chunks[0].first_layer;
            row->layer_count += chunk->layers;
        }
    }
    return DTS_OK;
}

/* The largest share that is not the work itself, or the work. */
static const char *name_bottleneck(const dts_result *r) {
    const dts_communication_row *worst = NULL;
    for (size_t i = 0; i < r->communication_count; i++) {
        const dts_communication_row *row = &r->communication[i];
        if (worst == NULL || row->exposed_s + row->awaited_s > worst->exposed_s + worst->awaited_s) {
            worst = row;
        }
    }
    const struct {
        double share;
        const char *name;
    } shares[] = {
        {r->time_s.compute, "compute"},
        {r->time_s.exposed_communication, "communication"},
        {r->time_s.bubble, "pipeline bubble"},
        {r->time_s.launches, "host: launching kernels takes longer than running them"},
        {r->time_s.token_counts,
         "host: it waits for the token counts of experts, and the GPU for what depends on them"},
        {r->time_s.allocator, "memory near the GPU's capacity: the GPU waits for retries of the caching allocator"},
        {r->time_s.optimizer, "optimizer step"},
        {r->time_s.exposed_offload, "offload: copies between GPU and host memory"},
        {r->time_s.input_wait, "input: batches are not loaded in time"},
    };
    enum { RETRIES = 5 };
    size_t best = 0;
    for (size_t i = 1; i < sizeof shares / sizeof shares[0]; i++) {
        best = shares[i].share > shares[best].share ? i : best;
    }
    /* work has to be done, retries are for nothing: they limit long before they take more time than all the work */
    best = dts_retries_limit(r) ? RETRIES : best;
    double percent = 100 * (best == RETRIES ? r->allocator.cost_s : shares[best].share) / r->iteration_time_s;
    if (best == 1 && worst != NULL) {
        return dts_arena_printf(r->arena, "%s of the %s group (%.0f %% of the iteration exposed)", worst->kind,
                                worst->group, percent);
    }
    return dts_arena_printf(r->arena, "%s (%.0f %% of the iteration)", shares[best].name, percent);
}

/* What follows from the shares of the time. */
static void judge(dts_result *result) {
    result->allocator.stall_s = result->time_s.allocator;
    result->bottleneck = name_bottleneck(result);
    result->verdict = dts_verdict_of(result);
}

static dts_status measure(dts_measured *m, const dts_run_options *options, dts_result *result) {
    measure_speed(m, result);
    if (dts_critical_device(m, &m->critical) != DTS_OK) {
        return DTS_NOMEM;
    }
    dts_accounts accounts;
    dts_account_device(m, m->critical, &accounts);
    result->time_s = accounts.shares;
    result->time_s.input_wait += dts_time_to_s(m->longer);
    dts_measure_ranks(m, result);
    dts_status status = dts_measure_communication(m, m->critical, &accounts, result);
    if (status == DTS_OK) {
        dts_measure_aco(result);
        status = measure_stages(m, result);
    }
    if (status == DTS_OK) {
        status = dts_measure_memory(m, result);
    }
    if (status == DTS_OK && options != NULL && options->timeline) {
        status = dts_measure_spans(m, result);
    }
    if (status == DTS_OK && options != NULL && options->graph) {
        status = dts_measure_graph(m, result);
    }
    if (status == DTS_OK && options != NULL && options->explain) {
        status = dts_measure_explanation(m, m->critical, result);
    }
    if (status == DTS_OK) {
        judge(result);
        status = result->bottleneck != NULL && result->verdict != NULL ? dts_warn_of_run(m, result) : DTS_NOMEM;
    }
    return status;
}

/* An explanation is about kernels. */
static dts_detail detail_for(const dts_fidelity *fidelity, const dts_run_options *options) {
    bool kernels = fidelity->detail == DTS_DETAIL_AUTO && options != NULL && options->explain && !options->coarse;
    return kernels ? DTS_DETAIL_KERNEL : (dts_detail)fidelity->detail;
}

/* Microbatches that stand for more of them. */
typedef struct folding {
    dts_fold fold;
    bool steady; /* they do, and the result is that of all */
} folding;

/* What was said of the retries of some microbatches is said of those of all. */
static void tell_again(dts_result *result, const char *told) {
    for (size_t i = 0; told != NULL && i < result->warning_count; i++) {
        const char *text = strcmp(result->warnings[i], told) == 0 ? dts_retries_text(result) : NULL;
        result->warnings[i] = text != NULL ? text : result->warnings[i];
    }
}

/* Does the allocator follow kernels beside the blocks or layers that were simulated? */
static bool replays_beside(const dts_measured *m, dts_allocator_detail allocator) {
    const bool wished =
        allocator == DTS_ALLOCATOR_REPLAY || (allocator == DTS_ALLOCATOR_AUTO && dts_estimate_doubtful(m));
    return wished && m->lowered->detail != DTS_DETAIL_KERNEL;
}

/* Lowers and simulates a made plan, and measures into result. fold: NULL, or what the plan's microbatches stand for. */
static dts_status run_plan(const dts_plan *plan, const dts_fidelity *fidelity, const dts_run_options *options,
                           folding *fold, dts_arena *arena, dts_result *result, dts_diag *diag) {
    bool full = false;
    if (dts_ranks_choose(plan, fidelity, &full, diag) != DTS_OK) {
        return DTS_INVALID;
    }
    bool flow = fidelity->network != DTS_NETWORK_CLOSED_FORM;
    dts_block_cache *own = options == NULL || options->blocks == NULL ? dts_block_cache_new(0) : NULL;
    dts_block_cache *given = options != NULL ? options->blocks : NULL;
    dts_lower_options how = {.flow_network = flow,
                             .detail = detail_for(fidelity, options),
                             .blocks = own != NULL ? own : given,
                             .full_ranks = full,
                             .stop = options != NULL ? options->stop : NULL,
                             .seed = (uint64_t)fidelity->seed};
    dts_simulated s = {.simulation = NULL};
    bool record = options != NULL && options->timeline;
    const dts_allocator_detail allocator = (dts_allocator_detail)fidelity->allocator;
    dts_status status = how.blocks == NULL ? dts_diag_nomem(diag)
                                           : dts_simulate_plan(plan, allocator, &how, record, arena, &s, result, diag);
    if (status == DTS_OK) {
        dts_measured m = {.plan = plan,
                          .lowered = &s.lowered,
                          .simulation = s.simulation,
                          .flow_network = flow,
                          .replays = s.replays,
                          .longer = s.longer,
                          .last_task = dts_last_task(&s.lowered, s.simulation)};
        m.to = dts_simulation_ends(s.simulation)[m.last_task];
        if (s.lowered.window_from != DTS_NO_ID) {
            m.from = dts_simulation_ends(s.simulation)[s.lowered.window_from];
            m.to = dts_simulation_ends(s.simulation)[s.lowered.window_to];
        }
        if (s.lowered.stage_to != NULL) { /* the path to the end of the stage that begins first is one iteration long */
            m.to = s.stagger.length;
            m.begins = s.stagger.begins;
            m.last_task = s.lowered.stage_to[dts_stagger_first(&s.stagger, plan, &s.lowered)];
        }
        m.runs = dts_arena_array(arena, s.lowered.info_count, sizeof *m.runs);
        for (size_t i = 0; m.runs != NULL && i < s.lowered.info_count; i++) {
            m.runs[i] = DTS_NO_ID;
        }
        status = m.runs == NULL ? DTS_NOMEM : DTS_OK;
        const dts_rhythm *rhythm = NULL;
        if (status == DTS_OK && fold != NULL) {
            status = dts_fold_listen(&fold->fold, &m, arena, &rhythm);
            fold->steady = rhythm != NULL;
        }
        const dts_time length = m.to - m.from + m.longer;
        if (s.unhindered > 0 && s.unhindered < length) {
            result->allocator.cost_s = dts_time_to_s(length - s.unhindered);
        }
        bool wanted = fold == NULL || fold->steady;
        if (status == DTS_OK && wanted && replays_beside(&m, allocator)) {
            status = dts_replay_beside(plan, &how, arena, &s, diag);
            m.replays = s.replays;
        }
        status = status == DTS_OK && wanted ? measure(&m, options, result) : status;
        if (status == DTS_OK && rhythm != NULL) {
            const char *told = result->allocator.retries > 0 ? dts_retries_text(result) : NULL;
            dts_fold_follow(rhythm, result);
            judge(result);
            tell_again(result, told);
        }
        if (status != DTS_OK) {
            dts_diag_nomem(diag);
        }
        result->simulation.tasks = dts_graph_tasks(s.lowered.graph);
        result->simulation.events = dts_simulation_events(s.simulation);
        result->simulation.detail = dts_detail_names[s.lowered.detail];
        result->simulation.network = flow ? "flow" : "closed-form";
        result->simulation.ranks = full ? "full" : "folded";
        result->simulation.seed = dts_ranks_are_drawn(plan) ? (uint64_t)fidelity->seed : 0;
    }
    dts_simulated_free(&s, plan->pipeline);
    dts_block_cache_free(own);
    return status;
}

/* Simulates all microbatches of a plan. */
static dts_status run_whole(const dts_scenario_values *values, const dts_plan *plan, const dts_run_options *options,
                            folding *fold, dts_arena *arena, dts_result **out, dts_diag *diag) {
    dts_result *result = calloc(1, sizeof *result);
    if (result == NULL) {
        return dts_diag_nomem(diag);
    }
    result->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_status status = result->arena == NULL ? dts_diag_nomem(diag) : DTS_OK;
    if (status == DTS_OK) {
        describe(values, plan, result);
        status = run_plan(plan, &values->fidelity, options, fold, arena, result, diag);
    }
    if (status != DTS_OK) {
        dts_result_free(result);
        return status;
    }
    *out = result;
    return DTS_OK;
}

/* NULL: the steady state is not reached with so few microbatches, or they cannot be simulated. */
static dts_result *fold_once(const dts_scenario_values *values, folding *fold, const dts_plan *plan,
                             const dts_run_options *options, dts_diag *diag) {
    dts_scenario_values some = *values;
    if (values->fidelity.detail == DTS_DETAIL_AUTO) { /* as for all of them */
        some.fidelity.detail = (int)dts_lower_detail(plan, values->fidelity.network != DTS_NETWORK_CLOSED_FORM);
    }
    some.training.global_batch = values->training.global_batch / plan->microbatches * fold->fold.some;
    dts_job job = dts_scenario_job(&some);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_plan part;
    dts_result *result = NULL;
    if (arena != NULL && dts_lower_plan(&job, arena, &part, diag) == DTS_OK &&
        run_whole(&some, &part, options, fold, arena, &result, diag) == DTS_OK && !fold->steady) {
        dts_result_free(result);
        result = NULL;
    }
    dts_arena_free(arena);
    return result;
}

/* Are few microbatches to stand for all? Without a wish for it they are looked for in long iterations, as long as that
 * costs little beside what it saves. */
typedef enum wish { WISH_NONE, WISH_CHEAP, WISH_FOLDED } wish;

static wish wish_for(const dts_scenario_values *values, const dts_plan *plan, const dts_run_options *options) {
    /* thousands of equal microbatches show nothing that a few do not, and take all memory of a computer */
    static const int64_t many = 4096;
    const bool pictures = options != NULL && (options->timeline || options->explain || options->graph);
    const int asked = values->fidelity.microbatches;
    if (pictures || asked == DTS_MICROBATCHES_ALL || dts_ranks_are_drawn(plan)) { /* each draw is another one */
        return WISH_NONE;
    }
    if (asked == DTS_MICROBATCHES_FOLDED || plan->microbatches > many) {
        return WISH_FOLDED;
    }
    return dts_lower_is_long(plan) ? WISH_CHEAP : WISH_NONE;
}

/* May so many microbatches be simulated, with those before, to find out? Without a wish for it a third of all, or three
 * quarters where nearly nothing was missing. */
static bool is_worth_it(wish how, const dts_fold *fold, int64_t tried, bool nearly) {
    const double share = (double)(tried + fold->some) / (double)fold->all;
    return how == WISH_FOLDED || (how == WISH_CHEAP && share <= (nearly ? 0.75 : 1.0 / 3));
}

/* The steady state of fewer microbatches stands for all (fold.c). NULL: it does not, or is not wished for. */
static dts_result *run_folded(const dts_scenario_values *values, const dts_plan *plan, const dts_run_options *options,
                              dts_diag *diag) {
    const wish how = wish_for(values, plan, options);
    folding fold = {0};
    dts_result *result = NULL;
    int64_t tried = 0;
    bool more = how != WISH_NONE && dts_fold_find(plan, &fold.fold), nearly = false;
    while (result == NULL && more && is_worth_it(how, &fold.fold, tried, nearly)) {
        tried += fold.fold.some;
        result = fold_once(values, &fold, plan, options, diag);
        nearly = fold.fold.nearly;
        more = dts_fold_retry(&fold.fold);
    }
    return result;
}

const char dts_memory_help[] =
    "--set fidelity.detail=block needs less, and so do fewer microbatches; of several simulations at a time, fewer "
    "--threads";

/* Few microbatches for all, or all of them. */
static dts_status run_plain(const dts_scenario_values *values, const dts_plan *plan, const dts_run_options *options,
                            dts_arena *arena, dts_result **out, dts_diag *diag) {
    *out = run_folded(values, plan, options, diag);
    return *out != NULL ? DTS_OK : run_whole(values, plan, options, NULL, arena, out, diag);
}

/* Where `auto` has taken blocks, and only kernels say whether the caching allocator serves the plan or what its retries
 * cost: a result with kernels, if there are not too many. */
static dts_status run_closer(const dts_scenario_values *values, const dts_plan *plan, const dts_run_options *options,
                             dts_arena *arena, dts_result **result) {
    const dts_fidelity *fidelity = &values->fidelity;
    const bool chosen = fidelity->detail == DTS_DETAIL_AUTO && fidelity->allocator == DTS_ALLOCATOR_AUTO;
    if (!chosen || !(dts_fits_by_estimate(*result) || (*result)->allocator.untimed_retries)) {
        return DTS_OK;
    }
    dts_scenario_values closer = *values;
    closer.fidelity.detail = DTS_DETAIL_KERNEL;
    dts_diag *diag = dts_diag_new(); /* what it says of too many kernels is no error */
    dts_result *with_kernels = NULL;
    dts_status status = diag == NULL ? DTS_NOMEM : run_plain(&closer, plan, options, arena, &with_kernels, diag);
    dts_diag_free(diag);
    if (status == DTS_OK) {
        dts_result_free(*result);
        *result = with_kernels;
    }
    return status == DTS_INVALID ? DTS_OK : status;
}

/* said: where the values were written; NULL: nowhere. */
static dts_status run_said(const dts_scenario_values *values, const dts_provenance *said,
                           const dts_run_options *options, dts_result **out, dts_diag *diag) {
    double begin = dts_clock_s();
    dts_job job = dts_scenario_job(values);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED); /* lives until the measuring is done */
    dts_status status = arena == NULL ? dts_diag_nomem(diag) : DTS_OK;
    if (status == DTS_OK && values->graph.operators.count > 0) {
        status = dts_diag_error(diag, NULL, "graph", "dtsim search --space soap searches it; run simulates a `model`",
                                "operators without layers cannot be laid out by `parallelism`");
    }
    dts_plan plan;
    if (status == DTS_OK) {
        status = dts_lower_plan(&job, arena, &plan, diag);
    }
    dts_result *result = NULL;
    if (status == DTS_OK) {
        status = run_plain(values, &plan, options, arena, &result, diag);
    }
    if (status == DTS_OK) {
        status = run_closer(values, &plan, options, arena, &result);
        status = status == DTS_NOMEM ? dts_diag_nomem(diag) : status;
    }
    if (status != DTS_OK) {
        dts_result_free(result);
        result = NULL;
    }
    if (result != NULL && (dts_measure_whole_run(values, &plan, result) != DTS_OK ||
                           (said != NULL && dts_warn_of_silent(&plan, said, DTS_WARNINGS_MOST, result) != DTS_OK))) {
        status = dts_diag_nomem(diag);
        dts_result_free(result);
        result = NULL;
    }
    dts_arena_free(arena);
    if (result != NULL) { /* so status is DTS_OK */
        dts_warn_of_interval(values, result);
        result->simulation.wall_s = dts_clock_s() - begin;
        *out = result;
    }
    return status == DTS_NOMEM ? dts_diag_nomem_help(diag, dts_memory_help) : status;
}

dts_status dts_run_values(const dts_scenario_values *values, const dts_run_options *options, dts_result **out,
                          dts_diag *diag) {
    return run_said(values, NULL, options, out, diag);
}

dts_status dts_run(const dts_scenario *scenario, const dts_run_options *options, dts_result **out, dts_diag *diag) {
    /* the rules of the plan name keys; the scenario knows where they were written */
    dts_diag_set_locator(diag, dts_provenance_locate, dts_scenario_provenance(scenario));
    dts_status status = run_said(dts_scenario_get(scenario), dts_scenario_provenance(scenario), options, out, diag);
    dts_diag_set_locator(diag, NULL, NULL);
    return status;
}
