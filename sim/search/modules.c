/* Which modules to recompute, of those that the model has.
 *
 * With the bytes S(M) that all layers keep for one sample where the modules M are repeated, and the time R(M) of the
 * repetition, the chain begins with nothing and adds
 *
 *   argmax over m of (S(M) - S(M + m)) / (R(M + m) - R(M))
 *
 * as long as one frees anything: the same costs as those of the closed forms (plan/lower/costs.c), of one GPU without
 * parallelism, which divides both alike. */
#include "search/modules.h"

#include <math.h>

#include "plan/lower/costs.h"
#include "plan/lower/measured_passes.h"

typedef struct terms {
    double kept_B, repeat_s;
} terms;

static terms terms_of(const dts_plan *plan, const dts_block_costs *costs, size_t selection) {
    double layers[DTS_PART_COUNT];
    terms sum = {0};
    dts_model_count_parts(plan->job.model, layers);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        if (dts_part_is_layer((dts_part)part)) {
            sum.kept_B += layers[part] * costs->parts[part].selective_B[selection];
            sum.repeat_s += layers[part] * dts_pass_chain_s(plan, &costs->parts[part].repeated[selection], true);
        }
    }
    return sum;
}

/* What layers keep without recomputation. */
static double none_B(const dts_plan *plan, const dts_block_costs *costs) {
    double layers[DTS_PART_COUNT], sum_B = 0;
    dts_model_count_parts(plan->job.model, layers);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        sum_B += dts_part_is_layer((dts_part)part) ? layers[part] * costs->parts[part].saved_B : 0;
    }
    return sum_B;
}

static dts_scenario_values plain(const dts_scenario_values *base) {
    dts_scenario_values v = *base;
    v.training.micro_batch = v.training.global_batch = 1;
    v.training.recompute = (dts_recompute){.kind = DTS_RECOMPUTE_NONE};
    v.parallelism = (dts_parallelism){.tensor = 1,
                                      .context = 1,
                                      .expert = 1,
                                      .pipeline = 1,
                                      .data_parallel = DTS_DP_DDP,
                                      .schedule = {.name = "1f1b"}};
    v.offload = (dts_offload){.prefetch = base->offload.prefetch, .pin_memory = base->offload.pin_memory};
    v.cluster.nodes = v.cluster.gpus_per_node = 1;
    return v;
}

/* The module that frees most for its time beside those of chosen; -1: none frees anything. */
static dts_status next_module(const dts_plan *plan, int64_t chosen, int *best, dts_diag *diag) {
    dts_selections selections = {0};
    int module_of[DTS_SELECTIONS];
    for (int m = 0; m < DTS_MODULE_COUNT; m++) {
        if ((chosen >> m & 1) == 0) {
            module_of[selections.count] = m;
            selections.modules[selections.count++] = chosen | (int64_t)1 << m;
        }
    }
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_block_costs before, costs;
    const dts_selections now = {.modules = {chosen}, .count = 1};
    dts_status status =
        arena == NULL ? dts_diag_nomem(diag) : dts_block_costs_of(plan, &now, arena, arena, &before, diag);
    status = status == DTS_OK ? dts_block_costs_of(plan, &selections, arena, arena, &costs, diag) : status;
    *best = -1;
    double most = 0;
    for (size_t k = 0; k < selections.count && status == DTS_OK; k++) {
        const terms a = terms_of(plan, &before, 0), b = terms_of(plan, &costs, k);
        const double freed_B = (chosen == 0 ? none_B(plan, &before) : a.kept_B) - b.kept_B;
        const double for_s = b.repeat_s - (chosen == 0 ? 0 : a.repeat_s);
        const double rate = freed_B > 0 ? (for_s > 0 ? freed_B / for_s : (double)INFINITY) : 0;
        if (rate > most) {
            most = rate;
            *best = module_of[k];
        }
    }
    dts_arena_free(arena);
    return status;
}

dts_status dts_module_chain(const dts_scenario_values *base, int64_t out[DTS_MODULE_COUNT], size_t *count,
                            dts_diag *diag) {
    const dts_scenario_values values = plain(base);
    dts_job job = dts_scenario_job(&values);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_plan plan;
    dts_status status = arena == NULL ? dts_diag_nomem(diag) : dts_plan_outline(&job, arena, &plan, diag);
    int64_t chosen = 0;
    *count = 0;
    for (int best = 0; best >= 0 && status == DTS_OK && *count < DTS_MODULE_COUNT;) {
        status = next_module(&plan, chosen, &best, diag);
        if (status == DTS_OK && best >= 0) {
            chosen |= (int64_t)1 << best;
            out[(*count)++] = chosen;
        }
    }
    dts_arena_free(arena);
    return status;
}

dts_status dts_modules_check(const dts_scenario_values *base, int64_t modules, dts_diag *diag) {
    dts_scenario_values values = plain(base);
    values.training.recompute = (dts_recompute){.kind = DTS_RECOMPUTE_SELECTIVE, .modules = modules};
    const dts_job job = dts_scenario_job(&values);
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_plan plan;
    const dts_status status = arena == NULL ? dts_diag_nomem(diag) : dts_lower_plan(&job, arena, &plan, diag);
    dts_arena_free(arena);
    return status;
}
