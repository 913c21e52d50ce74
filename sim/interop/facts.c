/* Facts: the keys of a scenario as text, and numbers that follow from its plan; and the way back.
 *
 *   [1] gpus = data · tensor · context · pipeline;  global_batch = micro_batch · microbatches · data
 *   [2] layers of a virtual stage = layers / (pipeline · virtual_stages)
 *   [3] hybrid sharding: data · context = replicate · shard
 * Sources: the rank arithmetic of megatron/core/parallel_state.py, deepspeed/runtime/config.py (train_batch_size) and
 * torchtitan/distributed/parallel_dims.py. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "interop/inside.h"

static void put(dts_settings *out, const char *path, int64_t value) {
    dts_settings_set(out, path, "%" PRId64, value);
}

/* Optional dimensions of the model with their rule applied; what is 0 does not exist. */
static void add_model(const dts_model *model, dts_settings *out) {
    const struct {
        const char *path;
        int64_t value;
    } numbers[] = {
        {"model.kv_heads", dts_model_kv_heads(model)},
        {"model.ffn_hidden", dts_model_ffn_hidden(model)},
        {"plan.kv_groups", dts_model_kv_heads(model) == model->heads ? 0 : dts_model_kv_heads(model)},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].value > 0) {
            put(out, numbers[i].path, numbers[i].value);
        }
    }
}

/* Megatron-LM's words for stages that differ: E embedding, t layer, L loss, | between virtual stages. */
static void add_layout(const dts_plan *plan, dts_settings *out) {
    bool uneven = false;
    for (int64_t s = 1; s < plan->stages; s++) {
        uneven = uneven || plan->chunks[s].layers != plan->chunks[0].layers;
    }
    if (!uneven) {
        return;
    }
    dts_text text = {0};
    for (int64_t s = 0; s < plan->stages; s++) {
        dts_text_add(&text, s == 0 ? "E" : "|");
        dts_text_add_repeated(&text, "t", (size_t)plan->chunks[s].layers);
    }
    dts_text_add(&text, "L");
    dts_settings_add(out, "plan.layout", dts_text_string(&text), NULL);
    out->failed = out->failed || text.failed;
    dts_text_free(&text);
}

/* How tokens get to experts in the simulation, in Megatron-LM's words: kernels of DeepEP or HybridEP are between ranks
 * that do not pad to a capacity. */
static const char *dispatcher(const dts_stack *stack, const dts_plan *plan) {
    if (plan->job.model->capacity_factor > 0 || !dts_plan_dispatches_on_device(plan)) {
        return "alltoall";
    }
    return stack->device_dispatcher == DTS_DISPATCHER_HYBRIDEP ? "hybridep" : "deepep";
}

/* Nodes over which the experts of a layer lie. */
static int64_t expert_nodes(int64_t expert, int64_t per_node) {
    return per_node > 0 && expert > per_node ? (expert + per_node - 1) / per_node : 1;
}

/* Are gradients reduced beside the backward pass? Not where one bucket holds all of them. */
static bool reduces_beside(const dts_stack *stack) {
    static const double everything_B = 1e11;
    return stack->ddp_overlap && stack->ddp_bucket_B < everything_B;
}

static void add_plan(const dts_scenario_values *v, const dts_plan *plan, dts_settings *out) {
    int64_t shards = plan->shards > 0 ? plan->shards : 1;
    int64_t all = plan->data * plan->context;
    bool sharded = dts_plan_shards_parameters(plan);
    const struct {
        const char *path;
        int64_t value;
    } numbers[] = {
        {"parallelism.data", plan->data},
        {"parallelism.tensor", plan->tensor},
        {"parallelism.context", plan->context},
        {"parallelism.pipeline", plan->pipeline},
        {"parallelism.expert", plan->expert},
        {"parallelism.expert_tensor", plan->expert_tensor},
        {"parallelism.virtual_stages", plan->virtual_stages},
        {"plan.gpus", plan->gpus},
        {"plan.nodes", v->cluster.nodes},
        {"plan.gpus_per_node", v->cluster.gpus_per_node},
        {"plan.microbatches", plan->microbatches},
        {"plan.rank_samples", plan->microbatches / plan->flushes * v->training.micro_batch},
        {"plan.microbatch_tokens", v->training.micro_batch * v->training.sequence_length},
        {"plan.step_tokens", v->training.global_batch * v->training.sequence_length},
        {"plan.replicate", sharded && shards < all ? all / shards
                           : sharded               ? 1
                                                   : plan->data},
        {"plan.bucket_elements", (int64_t)(v->stack.ddp_bucket_B / fmax(plan->storage.gradient_B, 1))},
        {"plan.instances", all / shards},
        {"plan.shard", sharded ? (shards < all ? shards : plan->data) : 1},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put(out, numbers[i].path, numbers[i].value);
    }
    if (v->model.layers % plan->stages == 0 && plan->stages > 0) {
        put(out, "plan.stage_layers", v->model.layers / plan->stages);
    }
    const double step_tokens = (double)v->training.global_batch * (double)v->training.sequence_length;
    if (v->training.tokens > 0) {
        put(out, "plan.steps", (int64_t)ceil(v->training.tokens / step_tokens));
    }
    add_layout(plan, out);
    const int64_t some = v->offload.activation_layers; /* the last one's are read at once */
    if (v->model.layers > 1) {
        put(out, "plan.activation_layers", some > 0 ? some : v->model.layers - 1);
    }
    if (v->model.experts > 0) {
        put(out, "plan.expert_nodes", expert_nodes(plan->expert, plan->gpus_per_node));
        dts_settings_add(out, "plan.dispatcher", dispatcher(&v->stack, plan), NULL);
    }
    dts_layer_lists_of(&v->model, out);
    dts_settings_add(out, "plan.hybrid", all > shards ? "true" : "false", NULL);
    dts_settings_add(out, "plan.pipelined", plan->pipeline > 1 ? "true" : "false", NULL);
    dts_settings_add(out, "plan.accumulates", plan->microbatches > 1 ? "true" : "false", NULL);
    dts_settings_add(out, "plan.async_tensor", plan->async_tensor ? "true" : "false", NULL);
    dts_settings_add(out, "plan.reduces_beside", reduces_beside(&v->stack) ? "true" : "false", NULL);
    dts_settings_add(out, "plan.spreads_experts", plan->expert > 1 ? "true" : "false", NULL);
    dts_settings_add(out, "plan.split", plan->tensor * plan->context > 1 ? "true" : "false", NULL);
    dts_settings_add(out, "plan.interleaved", plan->virtual_stages > 1 ? "true" : "false", NULL);
}

/* Modules that are recomputed as launchers name them, whose flag takes several values: {modules: core_attn mlp}. */
static void add_modules(const dts_recompute *recompute, dts_settings *out) {
    dts_text names = {0};
    dts_recompute_write_modules(recompute->modules, " ", &names);
    if (names.length > 0) {
        dts_settings_set(out, "training.recompute", "{modules: %s}", dts_text_string(&names));
    }
    out->failed = out->failed || names.failed;
    dts_text_free(&names);
}

/* … and modules that CUDA graphs hold: [attn moe_router]; all of a layer: no such fact. */
static void add_graph_modules(const dts_stack *stack, dts_settings *out) {
    dts_text names = {0};
    for (int i = 0; i < DTS_GRAPH_MODULE_COUNT; i++) {
        if (dts_stack_captures(stack, (dts_graph_module)i)) {
            dts_text_printf(&names, "%s%s", names.length > 0 ? " " : "", dts_graph_module_names[i]);
        }
    }
    if (names.length > 0) {
        dts_settings_set(out, "stack.cuda_graph_modules", "[%s]", dts_text_string(&names));
    }
    out->failed = out->failed || names.failed;
    dts_text_free(&names);
}

void dts_facts_of(const dts_scenario *scenario, const dts_plan *plan, dts_settings *out) {
    const dts_scenario_values *values = dts_scenario_get(scenario);
    const dts_provenance *provenance = dts_scenario_provenance(scenario);
    for (size_t i = 0; i < dts_provenance_count(provenance); i++) {
        const dts_provenance_entry *entry = dts_provenance_get(provenance, i);
        bool absent = strncmp(entry->key, "model.", 6) == 0 && strcmp(entry->value, "0") == 0;
        dts_setting *setting = absent ? NULL : dts_settings_add(out, entry->key, entry->value, &entry->place);
        if (setting != NULL) {
            setting->preset = entry->place.file == NULL;
        }
    }
    add_modules(&values->training.recompute, out);
    add_graph_modules(&values->stack, out);
    if (values->graph.operators.count == 0) {
        add_model(&values->model, out);
    }
    if (plan != NULL) {
        add_plan(values, plan, out);
    }
}

/* ---- the way back ---- */

static int64_t number(const dts_settings *ours, const dts_settings *base, const char *path) {
    int64_t value = dts_settings_count(ours, path);
    return value > 0 ? value : dts_settings_count(base, path);
}

/* [3] */
static void complete_shards(dts_settings *ours) {
    int64_t replicate = dts_settings_count(ours, "plan.replicate"), shard = dts_settings_count(ours, "plan.shard");
    const char *rest = dts_settings_get(ours, "plan.shard");
    if (replicate > 0 && shard > 0 && dts_settings_find(ours, "parallelism.data") == NULL) {
        put(ours, "parallelism.data", replicate * shard);
    }
    bool sharded = shard > 1 || (rest != NULL && strcmp(rest, "-1") == 0);
    if (rest != NULL && dts_settings_find(ours, "parallelism.data_parallel") == NULL) {
        dts_settings_add(ours, "parallelism.data_parallel", sharded ? "fsdp" : "ddp", NULL);
    }
    if (replicate > 1 && shard > 1) {
        put(ours, "parallelism.shard_group", shard);
    }
}

/* Shards within a node, copies over nodes: HYBRID_SHARD of torch's FSDP. */
static void complete_node_shards(dts_settings *ours, const dts_settings *base) {
    const int64_t per_node = number(ours, base, "cluster.gpus_per_node");
    if (dts_settings_find(ours, "plan.shards_in_node") != NULL && number(ours, base, "cluster.nodes") > 1 &&
        per_node > 1) {
        put(ours, "parallelism.shard_group", per_node);
    }
}

/* A file that says nothing of samples leaves the scenario its global batch: accumulation then decides the microbatch.
 */
static bool keeps_batch(dts_settings *ours, const dts_settings *base, int64_t data, int64_t microbatches) {
    const int64_t global = dts_settings_count(base, "training.global_batch");
    const int64_t parts = data * (microbatches > 0 ? microbatches : 1);
    if (dts_settings_find(ours, "training.micro_batch") != NULL || parts < 1 || global < 1 || global % parts != 0) {
        return false;
    }
    if (microbatches > 0) {
        put(ours, "training.micro_batch", global / parts);
    }
    return true;
}

/* The GPUs of which each works on samples of its own [1]; 0: not known. */
static int64_t data_ranks(const dts_settings *ours, const dts_settings *base) {
    int64_t gpus = dts_settings_count(ours, "plan.gpus"), others = 1;
    if (gpus == 0) {
        int64_t nodes = number(ours, base, "cluster.nodes"), per_node = number(ours, base, "cluster.gpus_per_node");
        gpus = nodes > 0 && per_node > 0 ? nodes * per_node : 0;
    }
    static const char *const degrees[] = {"parallelism.tensor", "parallelism.context", "parallelism.pipeline"};
    for (size_t i = 0; i < 3; i++) {
        int64_t degree = number(ours, base, degrees[i]);
        others *= degree > 0 ? degree : 1;
    }
    return gpus % others == 0 ? gpus / others : 0;
}

/* Copies of what the optimizer shards, over data and context. */
static void complete_instances(dts_settings *ours, const dts_settings *base) {
    const int64_t instances = dts_settings_count(ours, "plan.instances"), data = data_ranks(ours, base);
    const int64_t context = number(ours, base, "parallelism.context"), all = data * (context > 0 ? context : 1);
    if (instances > 1 && all > instances && all % instances == 0) {
        put(ours, "parallelism.shard_group", all / instances);
    }
}

/* A file that gives all three numbers of a batch has to agree with itself, and with the GPUs [1]: fewer ranks than
 * there are may be stages of a pipeline that the script cuts. */
static dts_status check_batch(const dts_settings *ours, const dts_settings *base, dts_diag *diag) {
    const dts_setting *batch = dts_settings_find(ours, "training.global_batch");
    const int64_t global = dts_settings_count(ours, "training.global_batch");
    const int64_t micro = dts_settings_count(ours, "training.micro_batch");
    const int64_t steps = dts_settings_count(ours, "plan.microbatches");
    if (global == 0 || micro == 0 || steps == 0) {
        return DTS_OK;
    }
    const int64_t ranks = data_ranks(ours, base), part = micro * steps;
    if (global % part == 0 && (ranks == 0 || ranks % (global / part) == 0)) {
        return DTS_OK;
    }
    char known[64] = "the data-parallel ranks", product[32] = "";
    if (ranks > 0) {
        snprintf(known, sizeof known, "%" PRId64 " data-parallel ranks", ranks);
        snprintf(product, sizeof product, " = %" PRId64, part * ranks);
    }
    return dts_diag_error(diag, &batch->place, NULL, "leave one of the three out: it follows from the others",
                          "a batch of %" PRId64 " is not micro-batch %" PRId64 " × %" PRId64
                          " accumulation steps × %s%s",
                          global, micro, steps, known, product);
}

/* Where the batch follows from the replicas, these have to be a whole number. */
static dts_status check_replicas(const dts_settings *ours, const dts_settings *base, dts_diag *diag) {
    const int64_t nodes = number(ours, base, "cluster.nodes"), per_node = number(ours, base, "cluster.gpus_per_node");
    if (nodes * per_node == 0 || data_ranks(ours, base) > 0 || number(ours, base, "training.global_batch") > 0) {
        return DTS_OK;
    }
    return dts_diag_error(
        diag, NULL, "training.global_batch",
        "say how many nodes there are, --set cluster.nodes=8, or --set training.global_batch=512",
        "the batch is left to the number of replicas, and tensor × context × pipeline of this file do "
        "not divide %" PRId64 " GPUs",
        nodes * per_node);
}

/* Steps of accumulation that are written have to be some. */
static dts_status check_accumulation(const dts_settings *ours, dts_diag *diag) {
    const dts_setting *steps = dts_settings_find(ours, "plan.microbatches");
    if (steps == NULL || steps->place.file == NULL || dts_settings_count(ours, "plan.microbatches") > 0) {
        return DTS_OK;
    }
    return dts_diag_error(diag, &steps->place, NULL, "1: none are accumulated",
                          "steps of gradient accumulation are a whole number from 1 on, not '%s'", steps->value);
}

/* What --set says of the machine and the plan wins, before anything follows from it. */
static void prefer_given(dts_settings *ours, const dts_settings *base) {
    static const char *const keys[][2] = {{"cluster.nodes", "plan.nodes"},
                                          {"cluster.gpus_per_node", "plan.gpus_per_node"},
                                          {"cluster.gpus_per_node", "plan.gpus"},
                                          {"parallelism.tensor", "parallelism.tensor"},
                                          {"parallelism.context", "parallelism.context"},
                                          {"parallelism.pipeline", "parallelism.pipeline"}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        dts_setting *said = dts_settings_find(ours, keys[i][1]);
        for (size_t k = 0; k < base->count && said != NULL; k++) {
            const dts_setting *s = &base->items[k];
            if (s->place.origin == DTS_ORIGIN_SET && strcmp(s->path, keys[i][0]) == 0) {
                said->value = strcmp(keys[i][1], "plan.gpus") == 0 ? "" : s->value; /* nodes of that many each */
            }
        }
    }
}

/* [1] from tokens, from what one rank takes, and from microbatches. */
static void complete_batch(dts_settings *ours, const dts_settings *base) {
    int64_t sequence = number(ours, base, "training.sequence_length");
    int64_t tokens = dts_settings_count(ours, "plan.microbatch_tokens");
    int64_t step = dts_settings_count(ours, "plan.step_tokens");
    if (tokens > 0 && sequence > 0 && tokens % sequence == 0) {
        put(ours, "training.micro_batch", tokens / sequence);
    }
    if (step > 0 && sequence > 0 && step % sequence == 0) {
        put(ours, "training.global_batch", step / sequence);
    }
    int64_t microbatches = dts_settings_count(ours, "plan.microbatches");
    int64_t samples = dts_settings_count(ours, "plan.rank_samples");
    if (samples > 0 && dts_settings_find(ours, "training.micro_batch") == NULL) {
        put(ours, "training.micro_batch",
            microbatches > 0 && samples % microbatches == 0 ? samples / microbatches : samples);
    }
    int64_t micro = number(ours, base, "training.micro_batch");
    int64_t global = dts_settings_count(ours, "training.global_batch");
    int64_t data = dts_settings_count(ours, "parallelism.data");
    if (data == 0 && global > 0 && microbatches > 0 && micro > 0 && global % (microbatches * micro) == 0) {
        data = global / (microbatches * micro);
        put(ours, "parallelism.data", data);
    }
    data = data > 0 ? data : data_ranks(ours, base);
    /* what one rank takes fills the pipeline once */
    if (samples > 0 && data > 0 && number(ours, base, "parallelism.pipeline") > 1 && global > samples * data &&
        global % (samples * data) == 0) {
        put(ours, "parallelism.flushes", global / (samples * data));
    }
    if (global == 0 && samples == 0 && keeps_batch(ours, base, data, microbatches)) {
        return;
    }
    if (global == 0 && data > 0 && micro > 0) {
        put(ours, "training.global_batch",
            samples > 0 ? samples * data : (microbatches > 0 ? microbatches : 1) * micro * data);
    }
    if (micro == 0 && global > 0 && data > 0 && microbatches > 0 && global % (microbatches * data) == 0) {
        put(ours, "training.micro_batch", global / (microbatches * data));
    }
}

/* Megatron-Core splits experts as everything else unless it is told how. */
static void complete_expert_tensor(dts_settings *ours) {
    const int64_t tensor = dts_settings_count(ours, "parallelism.tensor");
    const bool asks = dts_settings_get(ours, "plan.splits_experts") != NULL;
    if (asks && dts_settings_get(ours, "parallelism.expert_tensor") == NULL &&
        dts_settings_count(ours, "model.experts") > 0 && tensor > 1) {
        put(ours, "parallelism.expert_tensor", tensor);
    }
}

/* GPUs of nodes that share links, which are one here as in a plan; 0: not known. */
static int64_t joined_gpus(const dts_settings *ours, const dts_settings *base) {
    const dts_cluster cluster = {.nodes = number(ours, base, "cluster.nodes"),
                                 .gpus_per_node = number(ours, base, "cluster.gpus_per_node"),
                                 .intra.domain = dts_settings_count(base, "cluster.intra.domain")};
    return cluster.nodes > 0 && cluster.gpus_per_node > 0 ? dts_cluster_joined(&cluster) : cluster.gpus_per_node;
}

/* Router groups lie one after another: a token that is sent to K of N groups over M nodes reaches K·M/N nodes, and K
 * where a node has several (megatron/core/transformer/moe/moe_utils.py, group_limited_topk). */
static void complete_groups(dts_settings *ours, const dts_settings *base) {
    const int64_t groups = dts_settings_count(ours, "plan.expert_groups");
    const int64_t chosen = dts_settings_count(ours, "plan.groups_per_token");
    const int64_t expert = dts_settings_count(ours, "parallelism.expert");
    const int64_t nodes = expert_nodes(expert, joined_gpus(ours, base));
    if (groups > 0 && chosen > 0 && nodes > 1) {
        const int64_t reached = nodes <= groups ? chosen : (chosen * nodes + groups - 1) / groups;
        if (reached < nodes) {
            put(ours, "model.nodes_per_token", reached);
        }
    }
}

/* What Megatron-LM does where nobody says otherwise: every rank gathers the tokens of all. */
static void check_dispatcher(const dts_settings *ours, dts_diag *diag) {
    const dts_setting *gathers = dts_settings_find(ours, "plan.gathers_tokens");
    if (gathers != NULL && (dts_settings_count(ours, "parallelism.expert") > 1 ||
                            dts_settings_count(ours, "parallelism.expert_tensor") > 1)) {
        dts_diag_warning(diag, gathers->place.file == NULL ? NULL : &gathers->place, NULL,
                         "an all-to-all is simulated: --moe-token-dispatcher-type alltoall runs one",
                         "tokens are gathered by all ranks of an expert group%s",
                         strcmp(gathers->value, "default") == 0 ? ", as --moe-token-dispatcher-type is left out" : "");
    }
}

/* Activations of the first layers go to host memory; 0: of none. */
static void complete_offload(dts_settings *ours) {
    if (dts_settings_count(ours, "plan.activation_layers") > 0) {
        const dts_setting some = *dts_settings_find(ours, "plan.activation_layers");
        dts_settings_add(ours, "offload.activations", "cpu", NULL);
        dts_settings_add(ours, "offload.activation_layers", some.value, &some.place);
    }
}

/* Elements of a bucket, whose gradients are in fp32 unless they are reduced in bf16. */
static void complete_bucket(dts_settings *ours) {
    const int64_t elements = dts_settings_count(ours, "plan.bucket_elements");
    const char *wide = dts_settings_get(ours, "stack.fp32_gradients");
    if (elements > 0) {
        const int64_t bytes = wide != NULL && strcmp(wide, "false") == 0 ? 2 : 4;
        dts_settings_set(ours, "stack.ddp.bucket", "%" PRId64 " B", elements * bytes);
        dts_settings_set(ours, "stack.ddp.first_bucket", "%" PRId64 " B", elements * bytes);
    }
}

/* Low-rank adapters: their rank alone says that there are some, and 0 that there are none. */
static void complete_adapters(dts_settings *ours) {
    const char *rank = dts_settings_get(ours, "plan.lora_rank"), *targets = dts_settings_get(ours, "plan.lora_targets");
    const char *frozen = dts_settings_get(ours, "plan.lora_base");
    if (rank != NULL && strcmp(rank, "0") != 0) {
        dts_settings_set(ours, "training.adapters", "{lora: {rank: %s, targets: %s, base: %s}}", rank,
                         targets != NULL ? targets : "query-value", frozen != NULL ? frozen : "native");
    }
}

/* A number above 0 under path, of any size; 0: none. */
static double amount(const dts_settings *ours, const char *path) {
    const char *text = dts_settings_get(ours, path);
    double value = 0;
    const size_t length = text == NULL ? 0 : dts_number_scan(text, &value);
    return length > 0 && text[length] == '\0' && value > 0 ? value : 0;
}

/* Steps, or samples, of the whole run as tokens. */
static void complete_tokens(dts_settings *ours, const dts_settings *base) {
    const double samples = amount(ours, "plan.samples");
    const double steps = amount(ours, "plan.steps") * (double)number(ours, base, "training.global_batch");
    const double tokens = (samples > 0 ? samples : steps) * (double)number(ours, base, "training.sequence_length");
    if (tokens >= 1) {
        dts_settings_set(ours, "training.tokens", "%.17g", tokens);
    }
}

dts_status dts_facts_complete(dts_settings *ours, const dts_settings *base, dts_diag *diag) {
    prefer_given(ours, base);
    int64_t nodes = dts_settings_count(ours, "plan.nodes"), per_node = dts_settings_count(ours, "plan.gpus_per_node");
    int64_t gpus = dts_settings_count(ours, "plan.gpus");
    if (nodes > 0) {
        put(ours, "cluster.nodes", nodes);
    }
    per_node = per_node == 0 && gpus > 0 && nodes > 0 && gpus % nodes == 0 ? gpus / nodes : per_node;
    if (per_node > 0) {
        put(ours, "cluster.gpus_per_node", per_node);
    }
    dts_status status = dts_layer_lists_complete(ours, diag);
    complete_expert_tensor(ours);
    check_dispatcher(ours, diag);
    status = status == DTS_OK ? dts_stage_layout_complete(ours, diag) : status;
    complete_offload(ours);
    complete_groups(ours, base);
    complete_bucket(ours);
    complete_shards(ours);
    complete_instances(ours, base);
    complete_node_shards(ours, base);
    const char *sequence = dts_settings_get(ours, "parallelism.sequence");
    if (dts_settings_count(ours, "parallelism.tensor") == 1 && sequence != NULL && strcmp(sequence, "true") == 0) {
        dts_settings_set(ours, "parallelism.sequence",
                         "false"); /* as Megatron-LM's arguments.py does, with a warning */
    }
    status = status == DTS_OK ? check_accumulation(ours, diag) : status;
    status = status == DTS_OK ? check_batch(ours, base, diag) : status;
    status = status == DTS_OK ? check_replicas(ours, base, diag) : status;
    complete_batch(ours, base);
    complete_tokens(ours, base);
    complete_adapters(ours);
    int64_t layers = number(ours, base, "model.layers"),
            pipeline = dts_settings_count(ours, "parallelism.pipeline"); /* [2] */
    int64_t stage = dts_settings_count(ours, "plan.stage_layers");
    if (stage > 0 && layers > 0 && pipeline > 0 && layers % (pipeline * stage) == 0) {
        put(ours, "parallelism.virtual_stages", layers / (pipeline * stage));
    }
    return status == DTS_OK ? dts_stage_depths_complete(ours, layers, diag) : status;
}
