/* What the files of plan/ share. */
#ifndef DTS_PLAN_INTERNAL_H
#define DTS_PLAN_INTERNAL_H

#include "plan/plan.h"

/* What other tools call keys and values (hints.c). */
extern const dts_key_hint dts_training_hints[], dts_parallelism_hints[], dts_lora_hints[];
extern const dts_key_hint dts_mode_hints[], dts_precision_hints[], dts_context_hints[], dts_data_parallel_hints[];

/* schedule: NAME | FILE.csv | {file: FILE} (order.c) */
dts_field_parser dts_plan_parse_schedule;

/* The user's order, if there is one, has as many stages, chunks and microbatches as the plan. */
dts_status dts_plan_check_order(const dts_job *job, const dts_plan *plan, dts_diag *diag);

/* Fills plan's degrees and microbatches; reports every broken rule. */
dts_status dts_plan_apply_rules(const dts_job *job, dts_plan *plan, dts_diag *diag);

/* The schedule, and what follows from it; needs degrees, microbatches and shards (rules_pipeline.c). */
dts_status dts_plan_fill_pipeline(const dts_job *job, dts_plan *plan, dts_diag *diag);

/* Ranks that run one stage, those of a tensor-parallel group counted once: data · context. */
static inline int64_t dts_plan_stage_ranks(const dts_plan *plan) {
    return plan->data * plan->context;
}

/* The largest divisor of n that is at most limit. */
int64_t dts_divisor_below(int64_t n, int64_t limit);

/* How the sequence is split among ranks, after the degrees are known (rules_context.c). */
dts_status dts_plan_check_context(const dts_plan *plan, dts_diag *diag);

/* Experts and latent attention, after the degrees are known; fills in the expert replicas (rules_experts.c). */
dts_status dts_plan_check_experts(dts_plan *plan, dts_diag *diag);

/* What is offloaded, after the degrees are known (rules_offload.c). */
dts_status dts_plan_check_offload(const dts_plan *plan, dts_diag *diag);

/* What inference has no use for, after the degrees are known (rules_inference.c). */
dts_status dts_plan_check_inference(const dts_plan *plan, dts_diag *diag);

/* What adapters go together with, after the degrees are known (adapters.c). */
dts_status dts_plan_check_adapters(const dts_plan *plan, dts_diag *diag);

/* training.adapters: none | {lora: {…}} (adapters.c) */
dts_field_parser dts_plan_parse_adapters;

/* Bytes of a frozen weight of the layers' products with base: native: with or as its narrow copies (precision.c). */
double dts_plan_frozen_B(const dts_plan *plan);

/* How the model quantises (precision.c), and adapts frozen weights (adapters.c). */
dts_quantisation dts_plan_quantisation(const dts_plan *plan);
dts_adaptation dts_plan_adaptation(const dts_plan *plan);

/* Places ranks on nodes: groups, stage_node and what shares a node's network. */
dts_status dts_plan_place(dts_plan *plan, dts_arena *arena, dts_diag *diag);

/* Makes plan->schedule for passes that take so long (NULL: forward and both halves of backward take the same), and says
 * what for, in the arena: " for …", or nothing (order.c). */
dts_status dts_plan_build_order(dts_plan *plan, const dts_schedule_shape *passes, dts_arena *arena, dts_diag *diag);
const char *dts_plan_describe_costs(const dts_plan *plan, dts_arena *arena);

/* Layers have the modules that they are to repeat (modules.c). */
dts_status dts_plan_check_modules(const dts_plan *plan, dts_diag *diag);

/* Cuts the model into plan->chunks. */
dts_status dts_plan_cut(dts_plan *plan, dts_arena *arena, dts_diag *diag);

#endif
