/* Selective recomputation of named modules of a layer, as Megatron-Core has it [1]:
 *
 *   core_attn        the attention core: its inputs stay
 *   mlp, moe,        a dense feed-forward block, a layer of experts with its exchanges, its shared experts: the output
 *   shared_experts   of the norm before them stays, everything behind it is made again
 *   layernorm,       the norms, the up-projections of latent attention, the activation of the experts: their inputs
 *   mla_up_proj,     stay and their outputs are let go, although the product (or the attention) behind them needs
 *   moe_act          these: they are repeated before its backward
 *
 * What a repeated operator keeps is dropped in forward and made again (plan/lower/operators.c), so what has to stay is
 * counted at the operator before the module instead, and what is let go at the last operator of the module. A narrow
 * copy of what is let go goes with it [2]; casts of weights are not repeated.
 *
 * [1] NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py (recompute_modules),
 * tensor_parallel/random.py (CheckpointWithoutOutput). [2] The same, megatron/core/transformer/moe/experts.py and
 * transformer_layer.py: set_save_original_input. */
#include <math.h>
#include <string.h>

#include "plan/internal.h"

/* The input that stays: what the module's first operator keeps of it, what the norm before it has made, or a tensor
 * that an operator before it keeps anyway. */
typedef enum stays { STAYS_OWN, STAYS_NORM, STAYS_ANYWAY } stays;

/* A module in the row of a layer's operators. */
typedef struct module_form {
    const char *first, *last; /* operators; first NULL: what follows the norm, last NULL: to the end */
    const char *after;        /* only behind this operator; NULL: anywhere */
    stays input;
    bool lets_go; /* of its output */
} module_form;

enum { FORMS_MOST = 4 };

/* The queries of latent attention are made before its keys' latents, so that they are runs of their own. */
static const module_form forms[DTS_MODULE_COUNT][FORMS_MOST] = {
    [DTS_MODULE_LAYERNORM] = {{"attention_norm", "attention_norm", NULL, STAYS_OWN, true},
                              {"mlp_norm", "mlp_norm", NULL, STAYS_OWN, true}},
    [DTS_MODULE_MLA_UP_PROJ] = {{"query_up", "query_up", NULL, STAYS_OWN, false},
                                {"query", "query", NULL, STAYS_OWN, false},
                                {"key_value_up", "join_heads", NULL, STAYS_OWN, true}},
    [DTS_MODULE_MLP] = {{NULL, "mlp_down", "mlp_norm", STAYS_NORM, false}, /* else no norm of its own is before it */
                        {"mlp_gate_up", "mlp_down", NULL, STAYS_OWN, false},
                        {"mlp_gate", "mlp_down", NULL, STAYS_OWN, false},
                        {"mlp_up", "mlp_down", NULL, STAYS_OWN, false}},
    [DTS_MODULE_MOE] = {{NULL, NULL, "mlp_norm", STAYS_NORM, false}},
    [DTS_MODULE_MOE_ACT] = {{"mlp_swiglu", "mlp_swiglu", "expert_gate_up", STAYS_OWN, true},
                            {"mlp_gelu", "mlp_gelu", "expert_up", STAYS_OWN, true}},
    [DTS_MODULE_SHARED_EXPERTS] = {{"shared_gate_up", "shared_down", NULL, STAYS_ANYWAY, false},
                                   {"shared_up", "shared_down", NULL, STAYS_ANYWAY, false}},
};

static size_t find(const dts_operators *operators, const char *name, size_t from) {
    while (from < operators->count && strcmp(operators->items[from].name, name) != 0) {
        from++;
    }
    return from;
}

static void hand_over(dts_operator *from, dts_operator *to, double bytes) {
    from->saved_B -= bytes;
    to->saved_B += bytes;
    to->others_B += bytes;
}

/* What is kept comes with kernels of forward and goes with those of backward. */
static bool keeps(const dts_operator *o) {
    return o->forward_kernels > 0 && o->backward_kernels > 0;
}

/* What stays for the module's backward is counted before it, or, where it is the first of the layer, behind it. */
static void keep_input(dts_operators *operators, size_t first, size_t last, double bytes) {
    dts_operator *items = operators->items;
    size_t keeper = first;
    while (keeper > 0 && !keeps(&items[keeper - 1])) {
        keeper--;
    }
    if (keeper > 0) {
        hand_over(&items[first], &items[keeper - 1], bytes);
    } else if (last + 1 < operators->count) {
        hand_over(&items[first], &items[last + 1], bytes);
    }
}

/* The operator that reads the module's output is the next that keeps something; casts between them are repeated. */
static size_t let_go(dts_operators *operators, size_t last) {
    dts_operator *items = operators->items;
    size_t reader = last + 1;
    while (reader < operators->count && !items[reader].weight && items[reader].kind == DTS_OPERATOR_MEMORY) {
        reader++;
    }
    if (reader == operators->count) {
        return last;
    }
    double read_B = fmin(items[reader].saved_B - items[reader].others_B, items[reader].input_B);
    read_B = items[reader].kind == DTS_OPERATOR_ATTENTION ? 0 : read_B; /* its inputs are kept before it */
    hand_over(&items[reader], &items[last], read_B);
    items[reader].reads_repeated = true;
    items[last].repeats_shard = items[reader].gathers_again_B > 0;
    return reader - 1;
}

/* Is it there? */
static bool repeat_module(dts_operators *operators, const module_form *form) {
    dts_operator *items = operators->items;
    const size_t count = operators->count;
    size_t after = form->after == NULL ? 0 : find(operators, form->after, 0) + 1;
    size_t first = form->first == NULL ? after : find(operators, form->first, after);
    if (first >= count) {
        return false;
    }
    size_t last = form->last == NULL ? count - 1 : find(operators, form->last, first);
    while (form->last == NULL && last > first && strncmp(items[last].name, "mlp_", 4) == 0) {
        last--; /* the residual sum is none of the experts' */
    }
    if (last >= count) {
        return false;
    }
    dts_operator *norm = form->input == STAYS_NORM ? &items[first - 1] : NULL;
    const double own_B = form->input == STAYS_OWN ? fmin(items[first].saved_B, items[first].input_B) : 0;
    last = form->lets_go ? let_go(operators, last) : last;
    for (size_t i = first; i <= last; i++) {
        items[i].recomputed_selectively = !items[i].casts_weight;
    }
    if (norm != NULL) { /* one tensor, whatever the operators behind it keep of it, which goes with them */
        norm->saved_B += norm->output_B;
        norm->others_B += norm->output_B;
    }
    keep_input(operators, first, last, own_B);
    return true;
}

int64_t dts_recompute_modules(const dts_plan *plan, dts_part part, dts_operators *operators) {
    const int64_t modules = plan->job.training->recompute.modules;
    const bool experts = dts_part_has_experts(part);
    int64_t found = 0;
    for (size_t i = 0; i < operators->count; i++) {
        dts_operator *o = &operators->items[i];
        found |= o->recomputed_selectively ? 1 << DTS_MODULE_CORE_ATTENTION : 0;
        o->recomputed_selectively &= (modules >> DTS_MODULE_CORE_ATTENTION & 1) != 0;
    }
    for (int module = DTS_MODULE_LAYERNORM; module < DTS_MODULE_COUNT; module++) {
        const bool elsewhere = (module == DTS_MODULE_MLP && experts) || (module >= DTS_MODULE_MOE && !experts);
        bool there = false;
        for (int form = 0; form < FORMS_MOST && (modules >> module & 1) != 0 && !elsewhere; form++) {
            const bool is_form = forms[module][form].last != NULL || (module == DTS_MODULE_MOE && form == 0);
            const bool other = module == DTS_MODULE_MLP && there;
            there = (is_form && !other && repeat_module(operators, &forms[module][form])) || there;
        }
        found |= there ? (int64_t)1 << module : 0;
    }
    return found;
}

/* What of the modules the layers have as they are simulated. */
static dts_status find_modules(const dts_plan *plan, dts_arena *arena, int64_t *found, dts_diag *diag) {
    const dts_model *model = plan->job.model;
    const dts_execution execution = dts_plan_execution(plan);
    bool there[DTS_PART_COUNT] = {false};
    for (int64_t i = 0; i < model->layers; i++) {
        there[dts_model_layer_part(model, i)] = true;
    }
    dts_status status = DTS_OK;
    for (int part = 0; part < DTS_PART_COUNT && status == DTS_OK; part++) {
        dts_operators operators = {0};
        if (there[part] && dts_part_is_layer((dts_part)part)) {
            status = dts_model_operators(model, (dts_part)part, &execution, arena, &operators, diag);
            *found |= status == DTS_OK ? dts_recompute_modules(plan, (dts_part)part, &operators) : 0;
        }
    }
    return status;
}

static dts_status refuse_module(int module, dts_diag *diag) {
    static const char *const needs[DTS_MODULE_COUNT] = {
        [DTS_MODULE_MLA_UP_PROJ] = "latent attention (model.kv_lora_rank)",
        [DTS_MODULE_MOE] = "experts (model.experts)",
        [DTS_MODULE_MOE_ACT] = "experts (model.experts)",
        [DTS_MODULE_SHARED_EXPERTS] = "shared experts (model.shared_expert_ffn_hidden)",
    };
    static const char key[] = "training.recompute";
    const char *name = dts_recompute_module_names[module];
    return needs[module] != NULL
               ? dts_diag_error(diag, NULL, key, "leave it out", "module %s needs %s", name, needs[module])
               : dts_diag_error(diag, NULL, key, "leave it out, or use selective or full",
                                "no layer of this model has a module %s as it is simulated", name);
}

dts_status dts_plan_check_modules(const dts_plan *plan, dts_diag *diag) {
    const dts_recompute *recompute = &plan->job.training->recompute;
    if (recompute->kind != DTS_RECOMPUTE_SELECTIVE || recompute->modules == 0) {
        return DTS_OK;
    }
    dts_arena *scratch = dts_arena_new(DTS_ARENA_UNLIMITED);
    int64_t found = 0;
    dts_status status = scratch == NULL ? dts_diag_nomem(diag) : find_modules(plan, scratch, &found, diag);
    dts_arena_free(scratch);
    for (int module = 0; module < DTS_MODULE_COUNT && status == DTS_OK; module++) {
        status = (recompute->modules & ~found) >> module & 1 ? refuse_module(module, diag) : DTS_OK;
    }
    return status;
}
