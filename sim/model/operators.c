/* The public face: dimensions with their rules, operators of a part, and what follows from summing them.
 *
 * FLOPs: 2·m·n·k of each product, forward [1]; fused attention counts as its two products, 4·b·a·s·S·d, and causal
 * attention in full. For a plain layer this is the 24·s·h²·(1 + s/(6h)) of [1], and 2·s·h·V of the logits. Under a
 * window of w positions a query counts min(w, S) of the S keys: in full within the window, as [2] does (which halves
 * both for the causal mask). Of chunks a query counts its own, the last of which has the r = S mod w positions that are
 * left: ((S - r)·w + r²)/S keys on average.
 *
 * [1] Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM,
 *     arXiv 2104.04473, appendix (FLOPs).
 * [2] NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/training/utils/flop_utils.py: swa_core. */
#include <string.h>

#include "model/builder.h"

enum { LENGTH_MAX = 1 << 30 };

/* Is layer one of every n-th behind the first ones? */
static bool is_nth(int64_t layer, int64_t first, int64_t every) {
    return layer >= first && every > 0 && (layer - first) % every == every - 1;
}

dts_part dts_model_layer_part(const dts_model *model, int64_t layer) {
    const int64_t every = model->moe_every > 0 ? model->moe_every : 1;
    const bool experts = model->experts > 0 && is_nth(layer, model->first_dense_layers, every);
    const bool local = model->attention_window > 0 && layer >= model->first_global_layers &&
                       !is_nth(layer, model->first_global_layers, model->global_every);
    return local ? (experts ? DTS_PART_LOCAL_EXPERT_LAYER : DTS_PART_LOCAL_LAYER)
                 : (experts ? DTS_PART_EXPERT_LAYER : DTS_PART_LAYER);
}

void dts_model_count_parts(const dts_model *model, double counts[DTS_PART_COUNT]) {
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        counts[part] = dts_part_is_layer((dts_part)part) ? 0 : 1;
    }
    for (int64_t layer = 0; layer < model->layers; layer++) {
        counts[dts_model_layer_part(model, layer)]++;
    }
}

bool dts_model_layers_alike(const dts_model *model) {
    int64_t layer = 1;
    while (layer < model->layers && dts_model_layer_part(model, layer) == dts_model_layer_part(model, 0)) {
        layer++;
    }
    return layer >= model->layers;
}

int64_t dts_model_expert_layers(const dts_model *model) {
    const int64_t every = model->moe_every > 0 ? model->moe_every : 1;
    const int64_t behind = model->layers - model->first_dense_layers;
    return model->experts > 0 && behind > 0 ? behind / every : 0;
}

/* A degree of the plan: its key, and what people call it. */
typedef struct degree {
    int64_t value;
    const char *key, *name;
} degree;

/* value must be a positive multiple of the degree. */
static dts_status check_multiple(int64_t value, const char *what, degree of, dts_diag *diag) {
    if (value % of.value == 0) {
        return DTS_OK;
    }
    return dts_diag_error(diag, NULL, of.key, "choose a degree that divides it",
                          "%s %lld is not a multiple of the %s-parallel degree %lld", what, (long long)value, of.name,
                          (long long)of.value);
}

static dts_status check_positive(int64_t value, const char *what, dts_diag *diag) {
    if (value >= 1 && value <= LENGTH_MAX) {
        return DTS_OK;
    }
    return dts_diag_error(diag, NULL, NULL, NULL, "%s %lld is not between 1 and %d", what, (long long)value,
                          LENGTH_MAX);
}

/* Fewer heads of keys and values than ranks, each read by the same number of them. */
static dts_status check_few_kv_heads(const dts_model *model, const dts_execution *x, degree of, dts_diag *diag) {
    const int64_t heads = dts_model_kv_heads(model);
    if (!x->gathers_few_kv && !x->whole_few_kv) {
        return dts_diag_error(diag, NULL, of.key,
                              "choose a degree that divides it, or say in stack.few_kv_heads what the software does",
                              "kv_heads %lld is not a multiple of the %s-parallel degree %lld", (long long)heads,
                              of.name, (long long)of.value);
    }
    const int64_t columns = (model->heads + 2 * heads) * dts_model_head_dim(model);
    if (x->gathers_few_kv && columns % of.value != 0) {
        return dts_diag_error(diag, NULL, of.key, "choose another degree, or another stack.few_kv_heads",
                              "the %lld columns of queries, keys and values cannot be cut into %lld parts",
                              (long long)columns, (long long)of.value);
    }
    if (dts_model_adapts(x) && !(x->gathers_few_kv && x->adaptation.joined)) {
        return dts_diag_error(diag, NULL, of.key, "choose a degree that divides kv_heads, or adapters: none",
                              "adapters of keys and values know no more ranks than heads: %lld of %lld",
                              (long long)of.value, (long long)heads);
    }
    return DTS_OK;
}

static dts_status check_kv_heads(const dts_model *model, const dts_execution *x, degree of, dts_diag *diag) {
    const int64_t heads = dts_model_kv_heads(model);
    return heads < of.value && of.value % heads == 0 ? check_few_kv_heads(model, x, of, diag)
                                                     : check_multiple(heads, "kv_heads", of, diag);
}

static dts_status check_execution(const dts_model *model, const dts_execution *x, dts_diag *diag) {
    if (check_positive(x->micro_batch, "micro-batch", diag) != DTS_OK ||
        check_positive(x->sequence_length, "sequence length", diag) != DTS_OK ||
        check_positive(x->tensor, "tensor-parallel degree", diag) != DTS_OK ||
        check_positive(x->context, "context-parallel degree", diag) != DTS_OK ||
        check_positive(x->expert, "expert-parallel degree", diag) != DTS_OK ||
        check_positive(x->expert_tensor, "expert-tensor-parallel degree", diag) != DTS_OK) {
        return DTS_INVALID;
    }
    dts_status status = DTS_OK;
    if (model->max_positions > 0 && x->sequence_length > model->max_positions) {
        status = dts_diag_error(diag, NULL, NULL, "shorten the sequence or raise model.max_positions",
                                "sequence length %lld is beyond the model's %lld positions",
                                (long long)x->sequence_length, (long long)model->max_positions);
    }
    const degree tensor = {x->tensor, "parallelism.tensor", "tensor"};
    const degree context = {x->context, "parallelism.context", "context"};
    if (check_multiple(model->heads, "heads", tensor, diag) != DTS_OK ||
        check_kv_heads(model, x, tensor, diag) != DTS_OK ||
        check_multiple(dts_model_ffn_hidden(model), "ffn_hidden", tensor, diag) != DTS_OK ||
        check_multiple(x->sequence_length, "sequence length", context, diag) != DTS_OK) {
        return DTS_INVALID;
    }
    if (x->expert > 1 && (model->experts == 0 || model->experts % x->expert != 0)) {
        return dts_diag_error(diag, NULL, NULL, "choose a degree that divides the experts",
                              "expert-parallel degree %lld does not divide the model's %lld experts",
                              (long long)x->expert, (long long)model->experts);
    }
    if (x->sequence_parallel &&
        check_multiple(x->sequence_length / x->context, "sequence length of a rank", tensor, diag) != DTS_OK) {
        return DTS_INVALID;
    }
    return status;
}

/* Fills builder->items with the operators of a part. The execution must be valid. */
static void build_part(dts_builder *builder, dts_part part, const dts_model *model, const dts_execution *execution) {
    builder->model = model;
    builder->execution = execution;
    builder->local = dts_local_sizes(model, execution);
    dts_local *l = &builder->local;
    const bool layer = dts_part_is_layer(part), experts = dts_part_has_experts(part);
    l->layer = layer;
    l->window = dts_model_seen_keys(model, part, l->S) < l->S ? model->attention_window : 0;
    l->quantises = layer && dts_model_quantises(&execution->quantisation);
    l->keeps_narrow = l->quantises && !execution->quantisation.rows;
    l->q = dts_numeric_bytes(execution->quantisation.format) + execution->quantisation.scales_B;
    l->narrow_attention =
        l->quantises && execution->quantisation.attention && execution->flash_attention && l->window == 0;
    l->attention_q = l->narrow_attention ? l->q : l->e;
    l->dispatches_quantised = l->keeps_narrow && execution->quantisation.dispatches && execution->expert > 1 &&
                              execution->expert_tensor == 1 && !dts_model_adapts(execution);
    /* what a norm behind a block makes also feeds the head, which is not quantised; a norm before a router or latents
     * feeds those */
    l->gathers_each = l->sequence && execution->gathers_each && execution->separate_qkv && !l->keeps_narrow;
    l->joins_gathers = l->gathers_each && execution->joins_gathers;
    l->gathers_quantised = l->keeps_narrow && l->sequence && !dts_model_adapts(execution) &&
                           model->architecture != DTS_ARCH_BERT && layer && !experts && model->kv_lora_rank == 0;
    builder->count = 0;
    builder->region = layer ? DTS_REGION_ATTENTION : DTS_REGION_NONE;
    switch (part) {
        case DTS_PART_EMBEDDING:
            dts_add_embedding(builder);
            break;
        case DTS_PART_LAYER:
        case DTS_PART_LOCAL_LAYER:
            dts_add_attention(builder);
            builder->region = DTS_REGION_FEED_FORWARD;
            dts_add_feed_forward(builder);
            break;
        case DTS_PART_EXPERT_LAYER:
        case DTS_PART_LOCAL_EXPERT_LAYER:
            dts_add_attention(builder);
            dts_add_experts(builder);
            break;
        case DTS_PART_HEAD:
            dts_add_head(builder);
            break;
    }
    if (dts_model_adapts(execution)) {
        dts_freeze_part(builder, part);
    }
}

dts_status dts_model_operators(const dts_model *model, dts_part part, const dts_execution *execution, dts_arena *arena,
                               dts_operators *out, dts_diag *diag) {
    dts_status status = check_execution(model, execution, diag);
    if (status != DTS_OK) {
        return status;
    }
    dts_builder builder;
    build_part(&builder, part, model, execution);
    dts_operator *items = dts_arena_array(arena, builder.count, sizeof *items);
    if (items == NULL) {
        return dts_diag_nomem(diag);
    }
    memcpy(items, builder.items, builder.count * sizeof *items);
    *out = (dts_operators){.items = items, .count = builder.count};
    return DTS_OK;
}

/* One sample on one device: enough to count parameters and FLOPs. */
static dts_execution plain_execution(int64_t sequence_length, int64_t queries) {
    return (dts_execution){.micro_batch = 1,
                           .sequence_length = sequence_length,
                           .queries = queries,
                           .tensor = 1,
                           .context = 1,
                           .expert = 1,
                           .expert_tensor = 1,
                           .activation = DTS_FP32,
                           .weight = DTS_FP32};
}

double dts_model_part_parameters(const dts_model *model, dts_part part) {
    dts_builder builder;
    dts_execution execution = plain_execution(1, 0);
    build_part(&builder, part, model, &execution);
    double sum = 0;
    for (size_t i = 0; i < builder.count; i++) {
        sum += builder.items[i].parameters[0] + builder.items[i].parameters[1];
    }
    return sum;
}

double dts_model_parameters(const dts_model *model) {
    double counts[DTS_PART_COUNT], sum = 0;
    dts_model_count_parts(model, counts);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        sum += counts[part] > 0 ? counts[part] * dts_model_part_parameters(model, (dts_part)part) : 0;
    }
    return sum;
}

double dts_model_active_parameters(const dts_model *model) {
    if (model->experts == 0) {
        return dts_model_parameters(model);
    }
    dts_model used = *model; /* the router knows all experts */
    used.experts = model->experts_per_token;
    const double unused = (double)(model->experts - model->experts_per_token);
    const double router =
        (double)dts_model_expert_layers(model) * unused * ((double)model->hidden + (model->router_bias ? 1 : 0));
    return dts_model_parameters(&used) + router;
}

/* Keys that a query of fused attention counts, on average. */
static double counted_keys(const dts_operator *o) {
    if (o->window == 0 || o->window >= o->key_length) {
        return (double)o->key_length;
    }
    if (!o->chunked) {
        return (double)o->window;
    }
    const double keys = (double)o->key_length, rest = (double)(o->key_length % o->window);
    return ((keys - rest) * (double)o->window + rest * rest) / keys;
}

double dts_operator_flops(const dts_operator *o) {
    if (o->kind == DTS_OPERATOR_ATTENTION) {
        return 4.0 * (double)o->batch * (double)o->heads * (double)o->query_length * counted_keys(o) *
               (double)o->head_dim;
    }
    if (o->kind != DTS_OPERATOR_GEMM) {
        return 0;
    }
    const double rows = o->experts ? o->routed_rows : (double)o->batch * (double)o->m;
    return 2.0 * rows * (double)o->n * (double)o->k;
}

double dts_model_part_flops(const dts_model *model, dts_part part, int64_t sequence_length, int64_t queries) {
    dts_model balanced = *model;
    balanced.capacity_factor = 0;
    balanced.load_imbalance = 1;
    dts_builder builder;
    dts_execution execution = plain_execution(sequence_length, queries);
    execution.flash_attention = true; /* which knows windows */
    build_part(&builder, part, &balanced, &execution);
    double sum = 0;
    for (size_t i = 0; i < builder.count; i++) {
        sum += dts_operator_flops(&builder.items[i]);
    }
    return sum;
}

double dts_model_forward_flops(const dts_model *model, int64_t sequence_length, int64_t queries) {
    double counts[DTS_PART_COUNT], sum = 0;
    dts_model_count_parts(model, counts);
    for (int part = 0; part < DTS_PART_COUNT; part++) {
        sum +=
            counts[part] > 0 ? counts[part] * dts_model_part_flops(model, (dts_part)part, sequence_length, queries) : 0;
    }
    return sum;
}

/* What grows with the square of the sequence is attention: with F(S) = a S + b S^2, half of it is (F(2 S) - 2 F(S))
 * / 4. One token behind a cache leaves nothing out. */
double dts_model_masked_share(const dts_model *model, int64_t sequence_length, int64_t queries) {
    if (!model->causal || queries < sequence_length) {
        return 0;
    }
    const double flops = dts_model_forward_flops(model, sequence_length, sequence_length);
    const double twice = dts_model_forward_flops(model, 2 * sequence_length, 2 * sequence_length);
    return (twice - 2 * flops) / 4 / flops;
}

double dts_model_boundary_B(const dts_model *model, const dts_execution *execution) {
    const double element_B = dts_numeric_bytes(dts_model_wide_stream(execution) ? DTS_FP32 : execution->activation);
    const double ranks = execution->sequence_parallel ? (double)execution->tensor : 1;
    const double positions = execution->queries > 0 ? (double)execution->queries
                                                    : (double)execution->sequence_length / (double)execution->context;
    return (double)execution->micro_batch * positions / ranks * (double)model->hidden * element_B;
}
